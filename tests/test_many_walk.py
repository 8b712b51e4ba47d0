"""The front door with more than two classes, and with crowds."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import labelfree as lf
from labelfree._dependence import ALARM_LEVEL
from labelfree._many_verdict import agreement, label_shares
from labelfree._products import Blocks
from labelfree._shared_prior import label_counts
from labelfree._tally import tally

from .sentences import refused

LABELS = ("cat", "cow", "dog")


def matrices(classifiers, classes, seed=0, low=0.5, high=0.85):
    random = np.random.default_rng(seed)
    wrong = random.dirichlet(np.full(classes, 2.0), (classifiers, classes))
    diagonal = np.arange(classes)
    wrong[:, diagonal, diagonal] = 0.0
    wrong /= wrong.sum(axis=2, keepdims=True)
    right = random.uniform(low, high, (classifiers, classes))
    cells = wrong * (1.0 - right)[:, :, None]
    cells[:, diagonal, diagonal] = right
    return cells


def drawn(shares, cells, items, seed=11, missing=0.0):
    """Truth and votes as codes; missing votes as −1."""
    random = np.random.default_rng(seed)
    truth = random.choice(len(shares), items, p=shares)
    chance = random.random((items, len(cells)))
    steps = cells.cumsum(axis=2)[:, :, :-1]
    votes = np.stack(
        [(chance[:, [i]] > steps[i, truth]).sum(axis=1) for i in range(len(cells))], axis=1
    )
    return truth, np.where(random.random(votes.shape) < missing, -1, votes)


SHARES, CELLS = np.array([0.5, 0.2, 0.3]), matrices(5, 3)
TRUTH, CODES = drawn(SHARES, CELLS, 3000)
VOTES = np.array(LABELS)[CODES]
FOUND = lf.estimate(VOTES)


def exact(shares, cells):
    """Every pattern there can be, and its probability."""
    classes, m = len(shares), len(cells)
    patterns = np.stack(np.meshgrid(*[range(classes)] * m, indexing="ij"), axis=-1).reshape(-1, m)
    chances = np.ones((len(patterns), classes)) * shares
    for i in range(m):
        chances *= cells[i][:, patterns[:, i]].T
    return lf.Tally.from_codes(patterns, chances.sum(axis=1), classes=LABELS[:classes])


def test_exact_frequencies_give_the_matrices_back():
    found = lf.estimate(exact(SHARES, CELLS))
    assert found.class_probabilities == pytest.approx(SHARES, abs=1e-8)
    assert found.confusion == pytest.approx(CELLS, abs=1e-8)
    assert found.verdict.level == "sound"
    assert not found.alarm.raised


def test_an_estimate_of_three_classes():
    assert FOUND.classes == LABELS
    assert FOUND.class_probabilities == pytest.approx(SHARES, abs=0.03)
    assert np.abs(FOUND.confusion - CELLS).mean() < 0.02
    assert FOUND.accuracy == pytest.approx(
        np.einsum("ikk->ik", FOUND.confusion) @ FOUND.class_probabilities
    )
    assert FOUND.balanced_accuracy == pytest.approx(np.einsum("ikk->i", FOUND.confusion) / 3)
    assert FOUND.verdict.level == "sound"
    assert "3 classes" in repr(FOUND)
    assert "Pr('cow')" in repr(FOUND)
    labels = FOUND.label(VOTES)
    assert (labels == np.array(LABELS)[TRUTH]).mean() > (
        FOUND.label(VOTES, rule="majority") == np.array(LABELS)[TRUTH]
    ).mean()


def test_intervals_hold_the_truth_as_often_as_they_say():
    held = {"class_probabilities": [], "confusion": [], "accuracy": []}
    for seed in range(30):
        _, codes = drawn(SHARES, CELLS, 1500, seed=seed)
        found = lf.estimate(codes)
        right = np.einsum("ikk->ik", CELLS) @ SHARES
        for name, true in zip(held, (SHARES, CELLS, right), strict=True):
            low, high = np.moveaxis(found.interval(name), -1, 0)
            held[name].append(((low <= true) & (true <= high)).mean())
    for name, shares in held.items():
        assert 0.9 <= np.mean(shares) <= 0.99, name


def test_every_quantity_has_an_interval_around_it():
    for name in FOUND.quantities:
        low, high = np.moveaxis(FOUND.interval(name), -1, 0)
        value = getattr(FOUND, name)
        assert np.all((low < value) & (value < high))
        assert np.all(FOUND.standard_error(name) > 0)
        wide = np.diff(FOUND.interval(name, 0.99))
        assert np.all(wide > np.diff(FOUND.interval(name)))


def test_what_is_of_two_classes_says_so():
    for name in ("sensitivity", "specificity", "prevalence", "imbalance"):
        refused(
            lambda name=name: getattr(FOUND, name), name.replace("imbalance", "prevalence"), "3"
        )
    refused(FOUND.by_prevalence, "two classes")
    refused(lambda: FOUND.interval("sensitivity"), "'sensitivity'", "confusion")
    refused(lambda: FOUND.probability_interval(VOTES), "two classes")
    refused(lambda: FOUND.label(VOTES, rule="spectral"), "two classes")


def test_the_table_of_cells():
    rows = FOUND.confusion_table()
    assert len(rows) == 5 * 9
    assert rows[1]["true"] == "cat"
    assert rows[1]["voted"] == "cow"
    assert rows[1]["probability"] == FOUND.confusion[0, 0, 1]
    assert rows[1]["probability_low"] < rows[1]["probability"] < rows[1]["probability_high"]


def test_tables_get_labels_and_a_column_a_class():
    frame = pl.DataFrame(VOTES, schema=["a", "b", "c", "d", "e"])
    found = lf.estimate(frame)
    shares = FOUND.probability(VOTES)
    assert shares.sum(axis=1) == pytest.approx(1)
    for table in (frame, frame.lazy(), frame.to_pandas()):
        labelled, given = found.label(table), found.probability(table)
        if isinstance(table, pl.LazyFrame):
            labelled, given = labelled.collect(), given.collect()
        assert np.array_equal(np.asarray(labelled["label"]), FOUND.label(VOTES))
        assert np.asarray(labelled["probability"]) == pytest.approx(shares.max(axis=1), abs=1e-12)
        for place, label in enumerate(LABELS):
            assert np.asarray(given[f"probability_{label}"]) == pytest.approx(
                shares[:, place], abs=1e-12
            )
    by_majority = found.label(frame, rule="majority")
    place = pd.Index(LABELS).get_indexer(by_majority["label"].to_list())
    assert by_majority["probability"].to_numpy() == pytest.approx(
        shares[np.arange(len(place)), place]
    )


def test_sql_gives_the_probability_of_the_class_that_is_named():
    duckdb = pytest.importorskip("duckdb")
    table = pl.DataFrame(VOTES[:200], schema=list(FOUND.classifiers))
    for place, label in enumerate(LABELS):
        asked = f"SELECT {FOUND.sql('duckdb', label=label)} FROM given"  # noqa: S608 (our own)
        found = duckdb.connect().register("given", table.to_arrow()).sql(asked).fetchnumpy()
        (column,) = found.values()
        assert column == pytest.approx(FOUND.probability(VOTES[:200])[:, place], abs=1e-12)
    refused(FOUND.sql, "label=", "'cat'", "'dog'")


def test_an_estimate_is_saved_and_read_back(tmp_path):
    FOUND.save(tmp_path / "kept.json")
    kept = lf.load(tmp_path / "kept.json")
    assert kept == FOUND
    assert np.array_equal(kept.label(VOTES), FOUND.label(VOTES))
    assert np.array_equal(kept.interval("confusion"), FOUND.interval("confusion"))


def test_the_order_of_items_and_classifiers_changes_nothing():
    order, columns = np.random.default_rng(0).permutation(len(VOTES)), [3, 0, 4, 1, 2]
    names = [f"classifier_{i + 1}" for i in columns]
    other = lf.estimate(VOTES[order][:, columns], classifiers=names)
    assert other.confusion == pytest.approx(FOUND.confusion[columns], abs=1e-9)
    assert lf.estimate(VOTES[order]) == FOUND


@pytest.mark.parametrize("method", ["tensor", "likelihood"])
def test_two_classes_at_a_time(method):
    even = np.where(np.eye(3) == 1, 0.75, 0.125) * np.ones((6, 1, 1))
    _, codes = drawn(SHARES, even, 20_000)
    found = lf.estimate(codes, method=method)
    assert found.class_probabilities == pytest.approx(SHARES, abs=0.03)
    assert np.einsum("ikk->ik", found.confusion) == pytest.approx(np.full((6, 3), 0.75), abs=0.04)
    assert abs(found.missed) < 0.05
    assert found.missed != 0.0
    assert "There are no intervals" in " ".join(found.verdict.reasons)
    refused(lambda: found.interval("accuracy"), "no intervals", error=lf.NotIdentifiedError)


def test_labels_by_the_absolute_loss_are_medians():
    grades = [1, 2, 3, 4]
    cells = matrices(4, 4, seed=3, low=0.3, high=0.5)
    _, codes = drawn(np.full(4, 0.25), cells, 2000)
    found = lf.estimate(np.array(grades)[codes], classes=grades, ordered=True)
    shares = found.probability(np.array(grades)[codes])
    distance = np.abs(np.subtract.outer(np.arange(4), np.arange(4)))
    expected = shares @ distance
    labels = found.label(np.array(grades)[codes], loss="absolute")
    chosen = expected[np.arange(len(labels)), labels - 1]
    assert chosen == pytest.approx(expected.min(axis=1), abs=1e-8)
    assert (labels != found.label(np.array(grades)[codes])).any()
    frame = pl.DataFrame(np.array(grades)[codes], schema=list(found.classifiers))
    lazy = found.label(frame.lazy(), loss="absolute").collect()
    assert np.array_equal(lazy["label"].to_numpy(), labels)
    refused(lambda: found.label(codes, loss="squared"), "loss=", "'squared'")
    refused(lambda: found.label(frame, loss="absolute", rule="majority"), "loss=")


# --- signal and shared errors ---------------------------------------------------------------------


def naive_agreement(codes, shares):
    """The same statistic by loops over items and pairs."""
    items = []
    for row in codes:
        pairs = 0.0
        for i in range(len(row)):
            for j in range(i):
                if row[i] >= 0 and row[j] >= 0:
                    one = np.eye(shares.shape[1])[row[i]] - shares[i]
                    pairs += one @ (np.eye(shares.shape[1])[row[j]] - shares[j])
        items.append(pairs)
    return np.sum(items) / np.sqrt(np.sum(np.square(items)))


def test_agreement_is_that_of_a_plain_loop():
    _, codes = drawn(SHARES, CELLS, 60, missing=0.2)
    counted = tally(codes, missing=-1, classes=(0, 1, 2))
    shares = label_shares(label_counts(Blocks(counted)))
    assert agreement(Blocks(counted), shares) == pytest.approx(naive_agreement(codes, shares))


def test_guesses_hold_no_signal():
    told = 0
    for seed in range(40):
        guesses = np.random.default_rng(seed).choice(3, (300, 5), p=SHARES)
        found = lf.estimate(guesses)
        told += found.verdict.level != "unidentified"
    assert told <= 8


def test_two_that_agree_are_not_enough():
    random = np.random.default_rng(0)
    guesses = random.choice(3, (600, 4))
    guesses[:, 1] = np.where(random.random(600) < 0.7, guesses[:, 0], guesses[:, 1])
    found = lf.estimate(guesses)
    assert found.verdict.level == "unidentified"
    assert "guesses" in found.verdict.reasons[0]
    refused(lambda: found.confusion, "do not identify", error=lf.NotIdentifiedError)


def test_the_alarm_is_quiet_under_independence_and_hears_a_copy():
    alarms = 0
    for seed in range(40):
        _, codes = drawn(SHARES, CELLS, 1500, seed=seed)
        alarms += lf.estimate(codes).alarm.p_value <= ALARM_LEVEL
    assert alarms <= 6  # chance of more at a size of .05: .003
    named = 0
    for seed in range(6):
        _, codes = drawn(SHARES, matrices(8, 3), 3000, seed=seed)
        random = np.random.default_rng(seed)
        codes[:, 3] = np.where(random.random(3000) < 0.2, codes[:, 1], codes[:, 3])
        found = lf.estimate(codes)
        assert found.alarm.raised
        assert found.verdict.level == "caution"
        named += "classifier_2 and classifier_4" in found.verdict.reasons[0]
    assert named >= 5
    _, codes = drawn(SHARES, CELLS, 3000)
    codes[:, 3] = np.where(np.random.default_rng(0).random(3000) < 0.6, codes[:, 1], codes[:, 3])
    assert "so few cannot show" in lf.estimate(codes).verdict.reasons[0]


def hard_items(items, seed=0):
    """Three classes; on three items in ten everybody guesses."""
    truth, codes = drawn(SHARES, matrices(10, 3), items, seed=seed)
    random = np.random.default_rng(seed + 100)
    hard = (random.random(items) < 0.3)[:, None]
    return truth, np.where(hard, random.integers(0, 3, codes.shape), codes)


def test_gold_labels_calibrate_where_errors_are_shared():
    without, with_gold, held = [], [], []
    for seed in range(8):
        truth, codes = hard_items(3000, seed)
        right = (codes == truth[:, None]).mean(axis=0)
        items = np.random.default_rng(seed).choice(3000, 100, replace=False)
        plain = lf.estimate(codes)
        found = lf.estimate(codes, gold={int(item): int(truth[item]) for item in items})
        assert plain.alarm.raised
        assert found.dependence == "difficulty"
        without.append(np.abs(plain.accuracy - right).mean())
        with_gold.append(np.abs(found.accuracy - right).mean())
        low, high = found.interval("accuracy").T
        held.append(((low <= right) & (right <= high)).mean())
    assert np.mean(with_gold) < 0.5 * np.mean(without)
    assert np.mean(held) >= 0.85


# --- what is known --------------------------------------------------------------------------------


def test_known_shares_and_matrices_are_kept():
    shares = dict(zip(LABELS, SHARES, strict=True))
    found = lf.estimate(VOTES, prevalence=shares, known={"classifier_1": {"confusion": CELLS[0]}})
    assert found.class_probabilities == pytest.approx(SHARES)
    assert found.confusion[0] == pytest.approx(CELLS[0])
    assert np.diff(found.interval("confusion")[0]) == pytest.approx(0, abs=1e-9)
    assert np.diff(found.interval("class_probabilities")) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"prevalence": 0.3}, ("prevalence=", "0.3")),
        ({"prevalence": {"cat": 0.5, "cow": 0.5}}, ("prevalence=", "'dog'")),
        ({"prevalence": {"cat": 0.5, "cow": 0.5, "dog": 0.5}}, ("prevalence=", "sum to one")),
        ({"known": {"ann": {"confusion": CELLS[0]}}}, ("known=", "'ann'")),
        ({"known": {"classifier_1": {"sensitivity": 0.9}}}, ("known=", "confusion")),
        ({"known": {"classifier_1": {"confusion": CELLS[0] * 2}}}, ("known=", "summing to one")),
        ({"dependence": [("classifier_1", "classifier_2")]}, ("dependence=", "two classes")),
        ({"gold": {0: "emu"}}, ("gold=", "'emu'", "classes=")),
        ({"positive": "cat"}, ("positive",)),
    ],
)
def test_bad_options_get_one_sentence(options, words):
    refused(lambda: lf.estimate(VOTES, **options), *words)


# --- odd votes ------------------------------------------------------------------------------------


def test_a_class_that_nobody_voted():
    found = lf.estimate(VOTES, classes=("cat", "cow", "dog", "emu"))
    assert "Nobody voted 'emu'" in " ".join(found.verdict.reasons)
    assert found.class_probabilities[3] < 0.02


def test_a_class_that_only_the_gold_has():
    gold = {item: LABELS[TRUTH[item]] for item in range(40)} | {40: "emu"}
    found = lf.estimate(VOTES, classes=(*LABELS, "emu"), gold=gold)
    assert "Nobody voted 'emu'" in " ".join(found.verdict.reasons)
    assert np.isfinite(found.class_probabilities).all()


def long(codes, names=None):
    items, raters = np.nonzero(codes >= 0)
    return pl.DataFrame(
        {
            "item": items,
            "rater": [f"r{each}" for each in raters] if names is None else np.array(names)[raters],
            "vote": [LABELS[code] for code in codes[items, raters]],
        }
    )


READING = {"item": "item", "classifier": "rater", "vote": "vote"}


def test_a_rater_with_one_vote_gets_a_sane_rate_and_a_wide_interval():
    crowd = matrices(40, 3, seed=4, low=0.6, high=0.9)
    truth, codes = drawn(SHARES, crowd, 800)
    random = np.random.default_rng(0)
    codes = np.where(random.random(codes.shape) < 0.85, -1, codes)
    codes[:, 0] = -1
    codes[7, 0] = truth[7]
    found = lf.estimate(long(codes), **READING)
    place = found.classifiers.index("r0")
    low, high = found.interval("accuracy")[place]
    assert 0.5 < found.accuracy[place] < 0.95
    widths = np.diff(found.interval("accuracy"))[:, 0]
    assert high - low > 1.5 * np.median(widths)
    assert found.notes[place] == "constant"


def test_items_without_a_vote_are_told_of():
    votes = VOTES[:500].astype(object)
    votes[3] = None
    found = lf.estimate(votes)
    with pytest.warns(lf.LabelfreeWarning, match="1 item had no vote"):
        labels = found.label(votes)
    assert labels[3] == "cat"


def test_raters_who_never_meet_are_told_of():
    codes = np.full((600, 6), -1)
    codes[:300, :3], codes[300:, 3:] = CODES[:300, :3], CODES[300:600, :3]
    found = lf.estimate(long(codes), **READING)
    assert "2 parts that share no item" in " ".join(found.verdict.reasons)


def test_a_crowd_of_two_classes_takes_the_walk_of_the_shared_prior():
    random = np.random.default_rng(2)
    skill = random.uniform(0.6, 0.95, 60)
    truth = random.integers(0, 2, 500)
    votes = np.where(random.random((500, 60)) < skill, truth[:, None], 1 - truth[:, None])
    votes = np.where(random.random(votes.shape) < 0.1, votes, -1)
    found = lf.estimate(votes, missing=-1)
    assert found.sensitivity.shape == (60,)
    assert np.abs(found.balanced_accuracy - skill).mean() < 0.08
    assert found.interval("prevalence").shape == (2,)
    assert np.diff(found.interval("sensitivity")).min() > 0
    assert len(found.by_prevalence()) % 60 == 0
    assert (found.label(votes) == truth).mean() > 0.93
    low, high = found.interval("balanced_accuracy").T
    assert ((low <= skill) & (skill <= high)).mean() > 0.85


def test_more_classifiers_than_all_pairs_are_looked_at():
    random = np.random.default_rng(3)
    truth = random.integers(0, 3, 4000)
    rows = np.repeat(np.arange(4000), 5)
    raters = random.integers(0, 1500, len(rows))
    right = random.random(len(rows)) < 0.75
    votes = np.where(right, truth[rows], random.integers(0, 3, len(rows)))
    table = pl.DataFrame({"item": rows, "rater": raters, "vote": votes}).unique(
        ["item", "rater"], keep="last"
    )
    found = lf.estimate(table, **READING)
    assert len(found.classifiers) == 1500 or len(found.classifiers) > 1400
    assert np.abs(found.accuracy - (0.75 + 0.25 / 3)).mean() < 0.06
    assert found.interval("confusion").shape == (len(found.classifiers), 3, 3, 2)
    labels = found.label(table).sort("item")
    assert (labels["label"].to_numpy() == truth[labels["item"].to_numpy()]).mean() > 0.93
    assert any("was not tested" in reason for reason in found.verdict.reasons)
