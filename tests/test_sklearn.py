"""The scikit-learn face: scikit-learn's own checks, and what its users rely on."""

import inspect
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import validate_data

import labelfree as lf
from labelfree import simulate
from labelfree.sklearn import SpectralEnsemble

# --- scikit-learn's own checks ----------------------------------------------------------------
#
# Most of them feed random numbers, which are not votes. So they run twice: on SpectralEnsemble
# itself, and on a subclass that makes votes of the numbers, where only those that want `y` to be
# learned from can fail.


class VotesOfNumbers(SpectralEnsemble):
    """Nine classifiers, each asking whether its own mixture of the numbers is above its median."""

    def _checked(self, X, *, fitting):
        numbers = validate_data(
            self,
            X,
            reset=fitting,
            dtype=np.float64,
            ensure_all_finite="allow-nan",
            ensure_min_samples=2 if fitting else 1,
        )
        width = numbers.shape[1]
        nine = np.arange(9)
        mixtures = np.nan_to_num(numbers) @ (1 + 0.5 * np.cos(nine + np.arange(width)[:, None]))
        if fitting:
            self._medians = np.median(mixtures, axis=0)
        votes = (mixtures > self._medians).astype(float)
        votes[np.isnan(numbers[:, nine % width])] = np.nan
        return votes

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = False
        tags.classifier_tags.multi_class = False  # above or below the median: two labels
        return tags


# Here the estimator and the check want different things, whatever X holds.
Y_IS_IGNORED = {
    "check_classifiers_classes": "wants the classes of y; they are those of the votes",
    "check_classifiers_one_label": "wants the only label in y predicted; y teaches nothing",
    "check_classifiers_regression_target": "wants continuous y refused; its values are not read",
    "check_classifier_not_supporting_multiclass": "wants a third class in y refused; its values "
    "are not read. Only the votes of two labels that are made here are asked",
    "check_supervised_y_2d": "wants a warning for y of two dimensions; its values are not read",
    "check_supervised_y_no_nan": "wants NaN in y refused; its values are not read",
}

TWO_COLUMNS = "feeds two columns; it takes the votes of three classifiers"
MANY_LABELS = "feeds numbers that are all different; votes have few labels"
NO_SIGNAL = "feeds columns that know nothing of each other, so there is nothing to estimate"

# Here the numbers that the check feeds are no votes. All of these pass on VotesOfNumbers.
NOT_VOTES = {
    "check_classifier_data_not_an_array": TWO_COLUMNS,
    "check_classifiers_train": TWO_COLUMNS,
    "check_estimators_fit_returns_self": TWO_COLUMNS,
    "check_estimators_overwrite_params": TWO_COLUMNS,
    "check_fit_check_is_fitted": TWO_COLUMNS,
    "check_fit_idempotent": TWO_COLUMNS,
    "check_n_features_in": TWO_COLUMNS,
    "check_readonly_memmap_input": TWO_COLUMNS,
    "check_dict_unchanged": MANY_LABELS,
    "check_dont_overwrite_parameters": MANY_LABELS,
    "check_estimators_dtypes": MANY_LABELS,
    "check_f_contiguous_array_estimator": MANY_LABELS,
    "check_fit2d_predict1d": MANY_LABELS,
    "check_methods_sample_order_invariance": MANY_LABELS,
    "check_methods_subset_invariance": MANY_LABELS,
    "check_n_features_in_after_fitting": MANY_LABELS,
    "check_positive_only_tag_during_fit": MANY_LABELS,
    "check_dtype_object": NO_SIGNAL,
    "check_fit_score_takes_y": NO_SIGNAL,
}

# These want a refusal, and do get one on SpectralEnsemble itself: of X, before y is looked at.
REFUSED_FOR_X = {"check_classifiers_one_label", "check_supervised_y_no_nan"}

EXPECTED_FAILED_CHECKS = {
    SpectralEnsemble: NOT_VOTES
    | {
        name: reason
        for name, reason in Y_IS_IGNORED.items()
        if name not in REFUSED_FOR_X and "multiclass" not in name
    },
    VotesOfNumbers: Y_IS_IGNORED,
}


@pytest.mark.parametrize("kind", EXPECTED_FAILED_CHECKS)
def test_scikit_learns_own_checks_pass(kind):
    expected = EXPECTED_FAILED_CHECKS[kind]
    results = check_estimator(kind(), expected_failed_checks=expected, on_skip=None)
    failed = {result["check_name"] for result in results if result["status"] == "xfail"}
    assert failed == set(expected), "listed, but passing"
    # Needs a variable set before Python starts; see the next test.
    skipped = {result["check_name"] for result in results if result["status"] == "skipped"}
    assert skipped <= {"check_array_api_input"}


@pytest.mark.slow
def test_scikit_learns_array_check_passes(tmp_path):
    script = tmp_path / "check.py"
    script.write_text(
        "from sklearn.utils.estimator_checks import check_array_api_input\n"
        "from test_sklearn import VotesOfNumbers\n"
        "check_array_api_input('VotesOfNumbers', VotesOfNumbers(), array_namespace='numpy')\n"
    )
    path = {"PYTHONPATH": str(Path(__file__).parent), "SCIPY_ARRAY_API": "1"}
    subprocess.run([sys.executable, str(script)], check=True, env=path, timeout=120)


def test_a_check_that_no_estimator_passes_is_one_that_wants_y():
    assert EXPECTED_FAILED_CHECKS[VotesOfNumbers] == Y_IS_IGNORED
    assert not set(NOT_VOTES) & set(Y_IS_IGNORED)


# --- the same as the front door ---------------------------------------------------------------

RATES = {"sensitivity": [0.8, 0.7, 0.9, 0.7], "specificity": [0.7, 0.8, 0.8, 0.9]}
DRAWN = simulate.votes(600, **RATES, prevalence=0.4, missing=0.1, seed=3)
WORDS = np.array(["no", "yes", None], dtype=object)[DRAWN.votes]
NUMBERS = np.where(DRAWN.votes < 0, np.nan, DRAWN.votes)
NAMES = ["ada", "item", "label", "zoe"]  # with names that other ways in keep for themselves
TRUTH = np.array(["no", "yes"])[DRAWN.truth]

KINDS = {
    "integers": (DRAWN.votes, {"missing": -1}),
    "floats": (NUMBERS, {}),
    "columns in memory": (np.asfortranarray(NUMBERS, dtype=np.float32), {}),
    "masked": (np.ma.masked_less(DRAWN.votes, 0), {}),
    "objects": (WORDS, {}),
    "strings": (np.where(DRAWN.votes < 0, "?", WORDS).astype(str), {"missing": "?"}),
    "lists": (WORDS.tolist(), {}),
    "pandas": (pd.DataFrame(WORDS, columns=NAMES), {}),
    "pandas, nullable": (pd.DataFrame(NUMBERS, columns=NAMES).astype("Int64"), {}),
    "pandas, boolean": (pd.DataFrame(NUMBERS, columns=list("abcd")).astype("boolean"), {}),
    "pandas, unnamed": (pd.DataFrame(WORDS).astype("string"), {}),
    "polars": (pl.DataFrame(WORDS.tolist(), schema=list("abcd"), orient="row"), {}),
    "polars, labelled": (pl.DataFrame(WORDS.tolist(), schema=NAMES, orient="row"), {}),
    "pyarrow": (pa.table({name: WORDS[:, i].tolist() for i, name in enumerate("abcd")}), {}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_any_kind_of_votes_gives_what_the_front_door_gives(kind):
    X, options = KINDS[kind]
    expected = lf.estimate(DRAWN.votes, missing=-1)
    ensemble = SpectralEnsemble(**options).fit(X)
    for name in ("sensitivity", "specificity", "balanced_accuracy", "prevalence"):
        assert np.array_equal(getattr(ensemble, f"{name}_"), getattr(expected, name)), name
    assert ensemble.verdict_ == ensemble.estimate_.verdict == expected.verdict
    probability = ensemble.predict_proba(X)
    assert np.array_equal(probability[:, 1], expected.probability(DRAWN.votes))
    assert np.array_equal(probability.sum(axis=1), np.ones(600))
    labels = ensemble.predict(X)
    assert labels.dtype == ensemble.classes_.dtype
    assert np.array_equal(labels, ensemble.classes_[expected.label(DRAWN.votes)])
    assert np.mean(labels == ensemble.classes_[DRAWN.truth]) > 0.85


@pytest.mark.parametrize("kind", ["pandas", "polars, labelled"])
def test_names_of_columns_are_kept_and_compared(kind):
    X, _ = KINDS[kind]
    ensemble = SpectralEnsemble().fit(X)
    assert ensemble.feature_names_in_.tolist() == list(ensemble.estimate_.classifiers) == NAMES
    with pytest.raises(ValueError, match="same order"):
        ensemble.predict(X[NAMES[::-1]])
    with pytest.raises(ValueError, match="feature names"):
        ensemble.predict_proba(X[NAMES[:3]])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        unnamed = ensemble.predict(WORDS)
    assert np.array_equal(unnamed, ensemble.predict(X))


def test_names_that_fitting_did_not_see_are_warned_of():
    ensemble = SpectralEnsemble().fit(WORDS)
    assert not hasattr(ensemble, "feature_names_in_")
    X, _ = KINDS["polars"]
    with pytest.warns(UserWarning, match="fitted without feature names"):
        assert np.array_equal(ensemble.predict(X), ensemble.predict(WORDS))


def test_parameters_are_those_of_the_front_door():
    theirs = inspect.signature(lf.estimate).parameters
    ours = inspect.signature(SpectralEnsemble).parameters
    assert list(ours) == [
        *["method", "prevalence", "positive", "ordered", "missing", "vector", "prior"]
    ]
    for name, parameter in ours.items():
        assert parameter.default == theirs[name].default, name
        assert parameter.kind == theirs[name].kind, name


@pytest.mark.parametrize(
    "options",
    [
        {"method": "tensor", "vector": "iterated"},
        {"method": "likelihood", "vector": "log-linear"},
        {"prevalence": 0.4},
        {"prior": 0},
        {"positive": "no"},
    ],
)
def test_parameters_reach_the_front_door(options):
    expected = lf.estimate(WORDS, **options)
    ensemble = SpectralEnsemble().set_params(**options).fit(WORDS)
    assert ensemble.estimate_ == clone(ensemble).fit(WORDS).estimate_ == expected


def test_classes_are_sorted_whichever_is_positive():
    usual, turned = (SpectralEnsemble(positive=label).fit(WORDS) for label in ("yes", "no"))
    assert usual.classes_.tolist() == turned.classes_.tolist() == ["no", "yes"]
    assert np.allclose(usual.sensitivity_, turned.specificity_, atol=1e-4)
    assert usual.prevalence_ == pytest.approx(1 - turned.prevalence_, abs=1e-4)
    assert np.allclose(usual.predict_proba(WORDS), turned.predict_proba(WORDS), atol=1e-4)
    assert np.mean(usual.predict(WORDS) == turned.predict(WORDS)) > 0.99
    assert turned.predict_proba([["no"] * 4])[0, 0] > 0.9


# --- what goes wrong --------------------------------------------------------------------------


def test_votes_without_signal_are_not_fitted():
    guesses = np.random.default_rng(0).integers(0, 2, (200, 5))
    ensemble = SpectralEnsemble()
    with pytest.raises(lf.NotIdentifiedError, match="no more than guessing"):
        ensemble.fit(guesses)
    with pytest.raises(NotFittedError):
        ensemble.predict(guesses)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (NUMBERS[:, :2], "a minimum of 3 is required"),
        (pd.DataFrame(WORDS[:, :2], columns=["a", "b"]), "at least three classifiers, got 2"),
        (NUMBERS[0], "Expected 2D array"),
        (np.where(DRAWN.votes < 0, np.inf, DRAWN.votes), "infinity"),
        (np.ones((50, 4)), "two labels or more, got only 1"),
        (np.full((50, 4), np.nan), "no vote at all"),
    ],
)
def test_what_are_no_votes_is_refused(X, message):
    with pytest.raises(ValueError, match=message):
        SpectralEnsemble().fit(X)


def test_a_sign_for_missing_that_was_not_named_is_warned_of():
    with pytest.warns(lf.LabelfreeWarning, match="-1, 0 was taken for a class"):
        SpectralEnsemble().fit(DRAWN.votes)


def test_more_than_two_classes():
    truth = np.arange(600) % 3
    random = np.random.default_rng(0)
    votes = np.where(random.random((600, 5)) < 0.8, truth[:, None], random.integers(0, 3, (600, 5)))
    words = np.array(["low", "mid", "high"])[votes]
    ensemble = SpectralEnsemble().fit(words)
    assert ensemble.classes_.tolist() == ["high", "low", "mid"]
    assert ensemble.confusion_.shape == (5, 3, 3)
    assert ensemble.class_probabilities_ == pytest.approx([1 / 3] * 3, abs=0.05)
    assert not hasattr(ensemble, "sensitivity_")
    shares = ensemble.predict_proba(words)
    assert shares.sum(axis=1) == pytest.approx(1)
    labels = ensemble.predict(words)
    assert (labels == np.array(["low", "mid", "high"])[truth]).mean() > 0.95
    assert np.array_equal(labels, ensemble.classes_[shares.argmax(axis=1)])
    frame = pl.DataFrame(words, schema=[f"c{place}" for place in range(5)])
    of_frame = SpectralEnsemble().fit(frame)
    assert np.array_equal(of_frame.predict_proba(frame), shares)
    assert np.array_equal(of_frame.predict(frame), labels)


def test_unknown_options_are_refused_at_fit_and_not_before():
    for option in ({"method": "magic"}, {"vector": 3}, {"prevalence": 2}, {"positive": "maybe"}):
        ensemble = SpectralEnsemble(**option)
        with pytest.raises(lf.OptionsError, match=f"{next(iter(option))}="):
            ensemble.fit(WORDS)


def test_a_label_that_fitting_did_not_see_is_refused():
    ensemble = SpectralEnsemble().fit(WORDS)
    with pytest.raises(lf.VotesError, match="unsure"):
        ensemble.predict([["yes", "no", "yes", "unsure"]])


def test_an_item_without_votes_is_warned_of_and_gets_the_prevalence():
    ensemble = SpectralEnsemble().fit(NUMBERS)
    with pytest.warns(lf.LabelfreeWarning, match="1 item had no vote"):
        probability = ensemble.predict_proba(np.full((1, 4), np.nan))
    assert probability[0, 1] == pytest.approx(ensemble.prevalence_)


# --- what scikit-learn's users rely on --------------------------------------------------------


def test_y_is_ignored_but_for_its_length():
    with_truth = SpectralEnsemble().fit(WORDS, TRUTH)
    assert with_truth.estimate_ == SpectralEnsemble().fit(WORDS, TRUTH[::-1]).estimate_
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        SpectralEnsemble().fit(WORDS, TRUTH[:-1])


def test_score_is_the_accuracy():
    ensemble = SpectralEnsemble().fit(WORDS)
    assert is_classifier(ensemble)
    assert ensemble.score(WORDS, TRUTH) == np.mean(ensemble.predict(WORDS) == TRUTH)


@pytest.mark.parametrize("positive", ["yes", "no"])
@pytest.mark.parametrize("scoring", ["accuracy", "roc_auc", "neg_log_loss"])
def test_scorers_read_the_classes_right(scoring, positive):
    ensemble = SpectralEnsemble(positive=positive)
    scores = cross_val_score(ensemble, WORDS, TRUTH, scoring=scoring, cv=3)
    assert scores.min() > {"accuracy": 0.8, "roc_auc": 0.9, "neg_log_loss": -0.45}[scoring]


def test_it_works_inside_pipelines_and_searches():
    to_votes = FunctionTransformer(lambda numbers: numbers > 0.5)
    pipeline = make_pipeline(to_votes, SpectralEnsemble())
    shifted = simulate.votes(600, **RATES).votes + 0.25
    search = GridSearchCV(pipeline, {"spectralensemble__method": ["map", "tensor"]}, cv=2)
    search.fit(shifted, simulate.votes(600, **RATES).truth.astype(bool))
    assert search.best_score_ > 0.85


def test_few_items_of_many_classifiers_are_labelled_without_ado():
    votes = simulate.votes(500, classifiers=12).votes
    ensemble = SpectralEnsemble().fit(votes)
    assert np.array_equal(ensemble.predict(votes[:5]), ensemble.predict(votes)[:5])


def test_a_pickled_copy_answers_alike():
    ensemble = SpectralEnsemble(positive="no").fit(KINDS["pandas"][0])
    copy = pickle.loads(pickle.dumps(ensemble))  # noqa: S301 (made one call ago)
    assert copy.estimate_ == ensemble.estimate_
    assert np.array_equal(
        copy.predict_proba(KINDS["pandas"][0]), ensemble.predict_proba(KINDS["pandas"][0])
    )


def test_votes_are_left_as_they_were():
    for X in (NUMBERS.copy(), WORDS.copy(), KINDS["pandas"][0].copy(), KINDS["masked"][0].copy()):
        before = pickle.dumps(X)
        SpectralEnsemble().fit(X).predict(X)
        assert pickle.dumps(X) == before


# --- imports ----------------------------------------------------------------------------------


def _python(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )


def test_the_library_does_not_import_scikit_learn():
    done = _python("import sys, labelfree; sys.exit('sklearn' in sys.modules)")
    assert done.returncode == 0, done.stderr


def test_without_scikit_learn_one_sentence_says_what_to_install():
    done = _python("import sys; sys.modules['sklearn'] = None; import labelfree.sklearn")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "ImportError: labelfree.sklearn needs scikit-learn, which is not installed; "
        "install it with: pip install 'labelfree[sklearn]'."
    )
    assert "During handling" not in done.stderr


# --- documentation ----------------------------------------------------------------------------

PAGE = (Path(__file__).parent.parent / "docs" / "sklearn.md").read_text(encoding="utf-8")


def test_the_example_of_the_page_runs_and_gives_what_the_page_says(capsys):
    (block,) = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
    space = {}
    exec(block, space)  # noqa: S102 (our own page)
    assert capsys.readouterr().out
    votes, truth = space["votes"], space["truth"][450:]
    alone = (votes == truth[:, None]).mean(axis=0)
    rates = np.array([votes[truth].mean(axis=0), 1 - votes[~truth].mean(axis=0)])
    error = space["ensemble"].balanced_accuracy_ - rates.mean(axis=0)
    assert np.mean(space["labels"] == truth) == pytest.approx(0.90, abs=0.01)
    assert np.mean((votes.mean(axis=1) > 0.5) == truth) == pytest.approx(0.88, abs=0.01)
    assert [alone.min(), alone.max()] == pytest.approx([0.57, 0.91], abs=0.01)
    assert np.argmin(alone) == np.argmin(space["ensemble"].balanced_accuracy_)
    assert np.argmax(alone) == np.argmax(space["ensemble"].balanced_accuracy_)
    assert np.mean(np.abs(error)) == pytest.approx(0.02, abs=0.005)


def test_the_page_names_every_check_that_cannot_pass():
    assert set(re.findall(r"`(check_\w+)`", PAGE)) == {*Y_IS_IGNORED, "check_estimator"}
