"""The rivals, against plain loops, exact probabilities and published figures."""

from itertools import combinations

import numpy as np
import polars as pl
import pytest
from scipy.optimize import minimize

import labelfree as lf
from labelfree import rivals, simulate
from labelfree._errors import NotIdentifiedError, OptionsError, VotesError
from labelfree._latent_class import Model
from labelfree._messages import pass_messages
from labelfree._products import Blocks, label_pairs
from labelfree._tensors import over_triples, tensor_power

from . import naive
from .promises.common import data_folder
from .test_latent_class import as_sparse, exactly, some_model, some_votes

PSI = [0.85, 0.7, 0.9, 0.65, 0.75]
BINARY = {
    "dawid_skene": {},
    "karger_oh_shah": {},
    "donmez": {"prevalence": 0.4},
    "platanios": {},
    "zhang": {},
    "jain_oh": {},
}
STORED = pytest.mark.parametrize(
    "stored", [lambda found: found, as_sparse], ids=["dense", "sparse"]
)


def items_of(codes, counts):
    """Every item by itself, in place of patterns with counts."""
    return [
        row.tolist() for row, count in zip(codes, counts, strict=True) for _ in range(int(count))
    ]


def even_model(m, classes, seed=0):
    return Model(np.full(classes, 1 / classes), some_model(m, classes, seed).confusion)


# --- against plain loops ------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3, 4])
def test_majority_counts_the_votes(classes):
    found, codes, counts = some_votes(5, classes, 0.3, items=150)
    rows = [row for row in items_of(codes, counts) if max(row) >= 0]
    labels = rivals.majority(found).label(np.array(rows), missing=-1)
    for row, label in zip(rows, labels, strict=True):
        votes = [row.count(code) for code in range(classes)]
        assert label == max(code for code in range(classes) if votes[code] == max(votes))


@STORED
@pytest.mark.parametrize("classes", [2, 3])
def test_dawid_skene_is_em_item_by_item(classes, stored):
    _, codes, counts = some_votes(4, classes, 0.2, items=150)
    rows = [row for row in items_of(codes, counts) if max(row) >= 0]
    kept = lf.Tally.from_codes(rows, np.ones(len(rows)), classes=tuple(range(classes)))
    rival = rivals.dawid_skene(stored(kept), rounds=7)
    p, confusion = naive.dawid_skene(rows, classes, 8)  # it counts the start as its first round
    assert np.allclose(rival.class_probabilities, p, rtol=0, atol=1e-12)
    assert np.allclose(rival.confusion, confusion, rtol=0, atol=1e-12)
    assert not rival.converged


@STORED
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_messages_are_those_along_every_vote(missing, stored):
    found, codes, counts = some_votes(5, 2, missing, items=60)
    rows = items_of(codes, counts)
    assert len(rows) > len(found)  # some patterns are shared
    for rounds in (1, 2, 5):
        rival = rivals.karger_oh_shah(stored(found), rounds=rounds)
        weights = naive.karger_oh_shah(rows, rounds)
        for row in codes:
            score = sum(w * naive.sign(code) for w, code in zip(weights, row, strict=True))
            if max(row) >= 0:
                assert rival.label(row[None], missing=-1)[0] == int(score >= 0)
        assert np.allclose(pass_messages(found, rounds)[0], weights, rtol=0, atol=1e-12)


@STORED
@pytest.mark.parametrize(("classes", "missing"), [(2, 0.0), (2, 0.3), (3, 0.3)])
def test_sums_over_triples_are_those_of_loops(classes, missing, stored):
    found, codes, counts = some_votes(4, classes, missing, items=80)
    weights = np.random.default_rng(3).normal(size=(4, classes, 2))
    blocks = Blocks(stored(found))
    (columns,) = blocks.total(lambda block: (block.cooccurrence(),))
    total = over_triples(blocks, label_pairs(columns, classes), weights)
    assert np.allclose(total, naive.over_triples(codes, counts, weights), rtol=1e-11, atol=1e-9)


@pytest.mark.parametrize("size", [2, 3, 6])
def test_the_power_method_takes_an_orthogonal_tensor_apart(size):
    random = np.random.default_rng(size)
    vectors, _ = np.linalg.qr(random.normal(size=(size, size)))
    values = random.uniform(1, 3, size)
    tensor = np.einsum("h,ah,bh,ch->abc", values, vectors, vectors, vectors)
    found_values, found, converged = tensor_power(tensor, 0)
    order = np.argmax(vectors.T @ found, axis=1)
    assert converged
    assert sorted(order) == list(range(size))
    assert np.allclose(found[:, order], vectors, rtol=0, atol=1e-12)
    assert np.allclose(found_values[order], values, rtol=1e-12)


def agreement_of(codes, counts, i, j):
    met = [(row, c) for row, c in zip(codes, counts, strict=True) if row[i] >= 0 and row[j] >= 0]
    return sum(c for row, c in met if row[i] == row[j]) / sum(c for _, c in met)


def test_error_rates_of_three_are_the_closed_form_of_their_agreements():
    drawn = simulate.votes(3000, sensitivity=PSI[:3], specificity=[0.8, 0.6, 0.8], missing=0.1)
    found = lf.tally(drawn.votes, missing=-1)
    error = 1 - np.einsum("ikk->ik", rivals.platanios(found).confusion)
    assert np.allclose(error[:, 0], error[:, 1])
    codes, counts = found.codes().tolist(), found.counts
    for i, j, k in ((0, 1, 2), (1, 0, 2), (2, 0, 1)):
        ij, ik, jk = (
            1 - 2 * agreement_of(codes, counts, *pair) for pair in ((i, j), (i, k), (j, k))
        )
        # 1 − 2e_i = √((1−2a_ij)(1−2a_ik) / −(1−2a_jk)), each factor below zero here.
        assert error[i, 0] == pytest.approx((1 - np.sqrt(-ij * ik / jk)) / 2, abs=1e-9)


def test_error_rates_of_many_make_shared_errors_least():
    drawn = simulate.votes(2000, sensitivity=PSI, specificity=[0.8, 0.6, 0.8, 0.7, 0.6])
    found = lf.tally(drawn.votes)
    codes, counts = found.codes().tolist(), found.counts
    pairs = {pair: agreement_of(codes, counts, *pair) for pair in combinations(range(5), 2)}

    def surplus(error):
        return sum(
            ((a - 1 + error[i] + error[j]) / 2 - error[i] * error[j]) ** 2
            for (i, j), a in pairs.items()
        )

    best = minimize(surplus, np.full(5, 0.3), tol=1e-14).x
    rival = rivals.platanios(found)
    assert rival.converged
    assert np.allclose(rival.confusion[:, 1, 0], best, rtol=0, atol=1e-5)


def test_the_accuracies_with_known_prevalence_are_at_the_top_of_their_likelihood():
    drawn = simulate.votes(800, sensitivity=PSI, specificity=PSI, prevalence=0.3, missing=0.2)
    found = lf.tally(drawn.votes, missing=-1)
    codes, counts = found.codes().astype(int), found.counts
    rival = rivals.donmez(found, prevalence=0.3)
    accuracy = rival.confusion[:, 1, 1]

    def height(accuracy):
        confusion = Model.binary(-0.4, accuracy, accuracy).confusion
        return naive.log_likelihood(codes, counts, [0.7, 0.3], confusion)

    assert rival.converged
    assert rival.class_probabilities.tolist() == pytest.approx([0.7, 0.3])
    for step in 1e-4 * np.eye(5):
        assert height(accuracy) > max(height(accuracy + step), height(accuracy - step))
        assert height(accuracy + step) == pytest.approx(height(accuracy - step), abs=1e-6)


# --- exact probabilities in, the truth out ------------------------------------------------------


@pytest.mark.parametrize("prevalence", [0.5, 0.3])
@pytest.mark.parametrize("method", ["donmez", "platanios"])
def test_symmetric_rates_come_out_exactly(method, prevalence):
    known = {"prevalence": prevalence} if method == "donmez" else {}
    rival = getattr(rivals, method)(simulate.exact(PSI, PSI, prevalence), **known)
    assert rival.converged
    assert rival.confusion[:, 1, 1] == pytest.approx(PSI, abs=1e-8)
    assert rival.confusion[:, 0, 0] == pytest.approx(PSI, abs=1e-8)


@STORED
@pytest.mark.parametrize(("m", "classes"), [(3, 2), (5, 2), (3, 3), (5, 3), (6, 4)])
@pytest.mark.parametrize(("method", "options"), [("zhang", {"rounds": 0}), ("jain_oh", {})])
def test_confusion_comes_out_of_moments_exactly(method, options, m, classes, stored):
    truth = some_model(m, classes)
    rival = getattr(rivals, method)(stored(exactly(truth)), **options)
    assert rival.converged
    assert np.allclose(rival.confusion, truth.confusion, rtol=0, atol=1e-9)
    assert np.allclose(rival.class_probabilities, truth.class_probabilities, rtol=0, atol=1e-9)


@pytest.mark.parametrize("classes", [2, 3])
def test_em_stays_where_exact_moments_put_it(classes):
    truth = even_model(5, classes)
    rival = rivals.zhang(exactly(truth))
    assert rival.converged
    assert np.allclose(rival.confusion, truth.confusion, rtol=0, atol=1e-8)


def test_completion_bears_pairs_that_never_meet_and_missing_votes():
    truth = some_model(6, 3)
    whole = exactly(truth)
    codes, counts = whole.codes().astype(int), whole.counts
    parts = []
    for absent in ([0], [1, 2], [3, 4]):
        part = codes.copy()
        part[:, absent] = -1
        parts.append(part)
    found = lf.Tally.from_codes(np.concatenate(parts), np.tile(counts, 3), classes=(0, 1, 2))
    assert np.allclose(rivals.jain_oh(found).confusion, truth.confusion, rtol=0, atol=1e-8)
    split = np.concatenate([codes, codes])
    split[: len(codes), 5], split[len(codes) :, 0] = -1, -1  # 0 and 5 never meet
    found = lf.Tally.from_codes(split, np.tile(counts, 2), classes=(0, 1, 2))
    assert np.allclose(rivals.jain_oh(found).confusion, truth.confusion, rtol=0, atol=1e-8)


# --- published figures --------------------------------------------------------------------------


def real(name):
    """Votes of the long form, the truth, and how to read them."""
    folder = data_folder()
    votes = pl.read_parquet(folder / "votes" / name / "votes.parquet")
    truth = pl.read_parquet(folder / "votes" / name / "truth.parquet")
    classes = sorted(votes["label"].unique())
    return (
        votes,
        truth,
        {"item": "item", "classifier": "worker", "vote": "label", "classes": classes},
    )


def share_right(rival, votes, truth):
    answers = rival.label(votes).join(truth.rename({"label": "true"}), on="item")
    assert len(answers) == len(truth)
    return (answers["label"] == answers["true"]).mean()


@pytest.mark.parametrize(
    ("name", "right", "within"),
    [
        ("bluebird", 0.898, 0.001),
        ("rte", 0.927, 0.001),
        ("temporal", 0.942, 0.001),
        ("d_product", 0.940, 0.001),
        ("sentiment_polarity", 0.915, 0.001),
        ("barzan_tweets", 0.712, 0.001),
        ("llmbar", 0.835, 0.001),
        ("face_sentiment", 0.640, 0.001),
        ("leaves", 0.638, 0.001),
        ("web", 0.822, 0.012),  # EM still climbs after hundreds of rounds
        ("fej2013", 0.859, 0.02),  # the other program's EM ended elsewhere
    ],
)
def test_dawid_skene_is_as_right_on_real_votes_as_elsewhere(name, right, within):
    """The shares that the folder's own README lists, made by another program."""
    votes, truth, reading = real(name)
    rival = rivals.dawid_skene(votes, rounds=50, **reading)
    assert share_right(rival, votes, truth) == pytest.approx(right, abs=within)


@pytest.mark.parametrize(
    ("name", "published", "within"),
    [("bluebird", 10.09, 0.2), ("rte", 7.12, 0.5), ("web", 15.86, 2.5)],
)
def test_zhang_errs_about_as_published(name, published, within):
    """Zhang et al. 2014, table of errors in per cent; their groups are drawn at random."""
    votes, truth, reading = real(name)
    error = 100 * (1 - share_right(rivals.zhang(votes, **reading), votes, truth))
    assert error == pytest.approx(published, abs=within)


# --- what they all do ---------------------------------------------------------------------------


def drawn_frame():
    drawn = simulate.votes(600, sensitivity=PSI, specificity=PSI, prevalence=0.4, seed=4)
    return drawn, pl.DataFrame({f"c{i}": column for i, column in enumerate(drawn.votes.T)})


@pytest.mark.parametrize("method", [*BINARY, "majority"])
def test_every_method_labels_arrays_frames_and_the_long_form_alike(method):
    drawn, frame = drawn_frame()
    options = BINARY.get(method, {})
    rival = getattr(rivals, method)(frame, **options)
    assert rival.method == method
    wide = rival.label(frame)
    assert (wide["label"].to_numpy() == drawn.truth).mean() > 0.8
    own = getattr(rivals, method)(drawn.votes, **options, classifiers=frame.columns)
    assert (own.label(drawn.votes) == wide["label"].to_numpy()).all()
    long = frame.with_row_index("item").unpivot(
        index="item", variable_name="who", value_name="vote"
    )
    rival = getattr(rivals, method)(long, **options, item="item", classifier="who", vote="vote")
    assert rival.label(long).sort("item")["label"].equals(wide["label"])
    if rival.confusion is None:
        assert "probability" not in wide.columns
        with pytest.raises(NotIdentifiedError, match=f"{method} gives labels but no probabilities"):
            rival.probability(frame)
    else:
        positive = own.probability(drawn.votes)
        assert np.allclose(wide["probability"].to_numpy(), positive)
        assert ((positive > 0.5) == (wide["label"].to_numpy() == 1)).all()


@pytest.mark.parametrize("method", [*BINARY, "majority"])
def test_the_order_of_items_and_of_classifiers_changes_nothing(method):
    _, frame = drawn_frame()
    function, options = getattr(rivals, method), BINARY.get(method, {})
    labels = function(frame, **options).label(frame)["label"].to_numpy()
    turned = frame.select(frame.columns[::-1])[::-1]
    assert (function(turned, **options).label(turned)["label"].to_numpy()[::-1] == labels).all()
    first, again = function(frame, **options), function(frame, **options)
    if first.confusion is not None:
        assert (first.confusion == again.confusion).all()


def test_probabilities_of_three_classes_are_by_bayes_rule():
    truth = even_model(4, 3)
    rival = rivals.zhang(exactly(truth))
    rows = exactly(truth).codes().astype(int)[:20]
    shown = rival.probability(rows)
    for row, shares in zip(rows, shown, strict=True):
        joint = naive.joint(row, truth.class_probabilities, truth.confusion)
        assert shares == pytest.approx(np.array(joint) / sum(joint), abs=1e-7)


# --- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize("prevalence", [0, 1, 1.2, float("nan"), "half", None])
def test_a_prevalence_must_lie_inside_its_bounds(prevalence):
    with pytest.raises(OptionsError, match="prevalence= must be a number between 0 and 1"):
        rivals.donmez(simulate.exact(PSI, PSI), prevalence=prevalence)


@pytest.mark.parametrize("method", BINARY)
def test_two_classifiers_are_too_few(method):
    rows = [[1, 0], [0, 0], [1, 1]]
    for votes in (rows, lf.Tally.from_codes(rows, [1, 2, 3])):
        with pytest.raises(VotesError, match="at least three classifiers, got 2"):
            getattr(rivals, method)(votes, **BINARY[method])


@pytest.mark.parametrize("method", ["karger_oh_shah", "donmez", "platanios"])
def test_binary_methods_refuse_three_classes(method):
    with pytest.raises(VotesError, match="knows two classes, got 3"):
        getattr(rivals, method)(exactly(some_model(3, 3)), **BINARY[method])


@pytest.mark.parametrize(
    "groups",
    [
        [["classifier_1"], ["classifier_2"], []],
        [["classifier_1"], ["classifier_2", "classifier_3"]],
        [["classifier_1"], ["classifier_2"], ["classifier_2"]],
        [["classifier_1"], ["classifier_2"], ["other"]],
    ],
)
def test_groups_must_be_three_and_hold_everyone(groups):
    with pytest.raises(OptionsError, match="groups= must put every classifier into one of three"):
        rivals.zhang(simulate.exact(PSI[:3], PSI[:3]), groups=groups)


def test_named_groups_are_taken():
    found = simulate.exact(PSI, PSI, 0.4)
    groups = [["classifier_1", "classifier_5"], ["classifier_2"], ["classifier_3", "classifier_4"]]
    rival = rivals.zhang(found, groups=groups, rounds=0)
    assert rival.confusion[:, 1, 1] == pytest.approx(PSI, abs=1e-9)


@pytest.mark.parametrize(
    ("method", "options", "words"),
    [
        ("dawid_skene", {"rounds": 0}, "rounds= must be a whole number of at least 1"),
        ("karger_oh_shah", {"rounds": 1.5}, "rounds= must be a whole number of at least 1"),
        ("zhang", {"seed": -1}, "seed= must be a whole number of at least 0"),
        ("jain_oh", {"seed": "x"}, "seed= must be a whole number of at least 0"),
    ],
)
def test_whole_numbers_are_asked_for(method, options, words):
    with pytest.raises(OptionsError, match=words):
        getattr(rivals, method)(simulate.exact(PSI, PSI), **options)


@pytest.mark.parametrize("method", ["zhang", "jain_oh"])
def test_votes_that_tell_no_classes_apart_are_refused(method):
    chance = np.full(4, 0.5)
    with pytest.raises(NotIdentifiedError, match="moments of these votes"):
        getattr(rivals, method)(simulate.exact(chance, chance))
    alike = lf.Tally.from_codes([[0, 0, 0], [1, 1, 1]], [1, 0], classes=(0, 1))
    with pytest.raises(NotIdentifiedError, match="moments of these votes"):
        getattr(rivals, method)(alike)


def test_agreement_by_chance_tells_nothing():
    with pytest.raises(NotIdentifiedError, match="agree as often as by chance"):
        rivals.platanios(simulate.exact([0.5] * 3, [0.5] * 3))


def test_messages_die_out_where_every_item_has_one_vote():
    with pytest.raises(NotIdentifiedError, match="no item has two votes"):
        rivals.karger_oh_shah([[1, -1, -1], [-1, 0, -1], [-1, -1, 1]], missing=-1)


def test_completion_takes_ten_classes_at_most():
    codes = np.tile(np.arange(11)[:, None], 3)
    many = lf.Tally.from_codes(codes, np.ones(11), classes=tuple(range(11)))
    with pytest.raises(OptionsError, match="at most 10 classes, got 11"):
        rivals.jain_oh(many)


def test_an_item_without_votes_is_warned_of():
    rival = rivals.dawid_skene(simulate.exact(PSI, PSI, 0.4))
    with pytest.warns(lf.LabelfreeWarning, match="1 item had no vote at all"):
        rival.label(np.array([[-1] * 5, [1] * 5]), missing=-1)


@pytest.mark.parametrize("method", [*BINARY, "majority"])
@pytest.mark.parametrize(
    "rows",
    [
        [[0, 0, 0, 0], [1, 1, 1, 1]],
        [[0, 0, 0, 0]],
        [[1, 0, 1, 1], [1, 0, 0, 0], [1, 0, 1, 0]],
        [[1, 0, -1, 1], [0, 0, -1, 1], [1, 1, -1, 0]],
        [[-1, -1, -1, -1], [0, 1, 1, 1], [1, 0, 0, 0], [1, 1, 0, 1]],
        [[0, -1, -1, 0], [-1, 1, 1, -1], [0, -1, -1, 1]],
    ],
    ids=["unanimous", "one item", "constant", "no votes", "opposed", "two that never meet"],
)
def test_scanty_votes_give_numbers_or_are_refused(method, rows):
    found = lf.Tally.from_codes(rows, np.ones(len(rows)))
    try:
        rival = getattr(rivals, method)(found, **BINARY.get(method, {}))
    except NotIdentifiedError:
        return
    for numbers in (rival.class_probabilities, rival.confusion):
        if numbers is not None:
            assert ((numbers >= 0) & (numbers <= 1)).all()
            assert np.allclose(numbers.sum(axis=-1), 1)
    if rival.confusion is not None:
        shares = rival.probability(np.array([[0, 1, 1, 0], [1, 1, 1, 1]]), missing=-1)
        assert ((shares >= 0) & (shares <= 1)).all()
