"""Answers come back in the caller's own kind, and new votes meet an old estimate."""

import copy
import pickle
import warnings

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from polars.testing import assert_frame_equal

import labelfree as lf
from labelfree import LabelfreeWarning, NotIdentifiedError, OptionsError, VotesError, simulate

from .sentences import check_sentence, refused

NAMES = ["ann", "bob", "cem", "dee"]
ITEMS = 300
RATES = {"sensitivity": [0.9, 0.8, 0.85, 0.7], "specificity": [0.8, 0.9, 0.75, 0.7]}
CODES = simulate.votes(ITEMS, **RATES, missing=0.1, seed=3).votes
CODES = CODES[(CODES >= 0).any(axis=1)]
ITEMS = len(CODES)
FOUND = lf.estimate(CODES, missing=-1, classifiers=NAMES, classes=(0, 1))
TEXT = ("no", "yes")
LABELS = [TEXT[code] for code in FOUND.label(CODES)]
SHARES = FOUND.probability(CODES)
LONG = {"item": "task", "classifier": "rater", "vote": "said"}


def wide(extra=True):
    table = {
        name: [None if code < 0 else TEXT[code] for code in column]
        for name, column in zip(NAMES, CODES.T.tolist(), strict=True)
    }
    if not extra:
        return table
    before = {"item": [f"i{place}" for place in range(ITEMS)]}
    return {**before, **table, "note": [["x", None, "é"][place % 3] for place in range(ITEMS)]}


def long():
    rows, places = np.nonzero(CODES >= 0)
    return {
        "task": rows.tolist(),
        "rater": [NAMES[place] for place in places],
        "said": [TEXT[code] for code in CODES[rows, places]],
        "seconds": (rows / 7).tolist(),
    }


def columns_of(table):
    return getattr(table, "column_names", None) or list(getattr(table, "columns", table))


@pytest.fixture(scope="module")
def found():
    return lf.estimate(wide(), classifiers=NAMES)


# --- the caller's own kind ----------------------------------------------------------------------


def test_the_answers_are_those_of_the_codes(found):
    assert found.classes == TEXT
    assert found.label(wide(), classifiers=NAMES)["label"] == LABELS
    assert 0 < sum(label == "yes" for label in LABELS) < ITEMS


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "float32", "float64", object])
def test_an_array_gives_an_array_of_its_type(dtype):
    votes = np.where(CODES < 0, 9, CODES).astype(dtype)
    labels = FOUND.label(votes, missing=9)
    assert type(labels) is np.ndarray
    assert labels.dtype == dtype
    assert [TEXT[int(label)] for label in labels] == LABELS
    shares = FOUND.probability(votes, missing=9)
    assert type(shares) is np.ndarray
    assert shares.dtype == np.float64
    assert np.array_equal(shares, SHARES)


def test_labels_that_the_type_of_the_votes_cannot_hold_keep_their_own():
    votes = np.array([["a", "b", "c"], ["a", "a", "b"], ["b", "c", "c"]])
    counted = lf.Tally.from_codes([[0, 0, 0], [1, 1, 1]], [6, 4], classes=("a", "a long label"))
    both = lf.estimate(counted, prevalence=0.4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LabelfreeWarning)
        labels = both.label(votes, missing=["b", "c"])
    assert set(labels) <= {"a", "a long label"}


def test_an_array_of_floats_with_nan_gives_floats():
    votes = np.where(CODES < 0, np.nan, CODES)
    assert FOUND.label(votes).dtype == np.float64
    assert [TEXT[int(label)] for label in FOUND.label(votes)] == LABELS


def test_lists_give_an_array(found):
    rows = list(map(list, zip(*wide(extra=False).values(), strict=True)))
    labels = found.label(rows)
    assert isinstance(labels, np.ndarray)
    assert labels.tolist() == LABELS


def test_a_polars_frame_keeps_its_columns(found):
    frame = pl.DataFrame(wide()).with_columns(
        when=pl.lit(0).cast(pl.Datetime), parts=pl.concat_list("ann", "bob")
    )
    before = frame.clone()
    labelled = found.label(frame)
    assert isinstance(labelled, pl.DataFrame)
    assert labelled.columns == [*frame.columns, "label", "probability"]
    assert_frame_equal(labelled.select(frame.columns), frame)
    assert_frame_equal(frame, before)
    assert labelled["label"].to_list() == LABELS
    assert labelled["label"].dtype == pl.String
    assert labelled["probability"].dtype == pl.Float64
    assert np.array_equal(labelled["probability"], SHARES)
    shares = found.probability(frame)
    assert shares.columns == [*frame.columns, "probability"]
    assert_frame_equal(shares, labelled.drop("label"))


def test_a_lazy_frame_stays_lazy(found):
    labelled = found.label(pl.LazyFrame(wide()))
    assert isinstance(labelled, pl.LazyFrame)
    assert_frame_equal(labelled.collect(), found.label(pl.DataFrame(wide())))
    votes = pl.DataFrame(wide())  # noqa: F841 (DuckDB finds it by name)
    relation = found.label(duckdb.sql("select * from votes"))
    assert isinstance(relation, duckdb.DuckDBPyRelation)
    assert sorted(relation.select("item, label").fetchall()) == sorted(
        zip(wide()["item"], LABELS, strict=True)
    )
    items = lf.estimate(pl.LazyFrame(long()), **LONG).label(pl.LazyFrame(long()))
    assert isinstance(items, pl.LazyFrame)


INDEXES = {
    "default": None,
    "turned": list(range(ITEMS))[::-1],
    "twice": [1] * ITEMS,
    "text": [f"p{place}" for place in range(ITEMS)],
    "pairs": pd.MultiIndex.from_product([["x"], range(ITEMS)], names=["site", "patient"]),
    "dates": pd.date_range("2020-01-01", periods=ITEMS),
}


@pytest.mark.parametrize("index", INDEXES)
def test_a_pandas_frame_keeps_its_index_and_its_columns(found, index):
    frame = pd.DataFrame(wide(), index=INDEXES[index])
    frame["ann"] = frame["ann"].astype("category")
    before = frame.copy()
    labelled = found.label(frame)
    pd.testing.assert_frame_equal(frame, before)
    pd.testing.assert_frame_equal(labelled[frame.columns], frame)
    assert list(labelled.columns) == [*frame.columns, "label", "probability"]
    assert labelled.index.equals(frame.index)
    assert labelled.index.names == frame.index.names
    assert list(labelled["label"]) == LABELS
    assert np.array_equal(labelled["probability"], SHARES)
    assert list(found.probability(frame).columns) == [*frame.columns, "probability"]


def test_a_pyarrow_table_keeps_its_columns(found):
    table = pa.table(wide())
    labelled = found.label(table)
    assert isinstance(labelled, pa.Table)
    assert labelled.select(table.column_names).equals(table)
    assert labelled.column("label").to_pylist() == LABELS
    assert labelled.column("probability").to_pylist() == SHARES.tolist()


def test_a_mapping_gives_a_dict_of_lists_or_of_arrays(found):
    table = wide()
    before = copy.deepcopy(table)
    labelled = found.label(table)
    assert table == before
    assert labelled == {**table, "label": LABELS, "probability": SHARES.tolist()}
    arrays = {name: np.array(values, dtype=object) for name, values in table.items()}
    labelled = found.label(arrays)
    assert all(isinstance(values, np.ndarray) for values in labelled.values())
    assert labelled["label"].tolist() == LABELS
    assert labelled["item"].tolist() == table["item"]


def test_a_file_gives_a_frame(found, tmp_path):
    pl.DataFrame(wide()).write_csv(tmp_path / "v.csv")
    labelled = found.label(tmp_path / "v.csv")
    assert_frame_equal(labelled, found.label(pl.DataFrame(wide())))


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame, pa.table])
def test_the_long_form_gives_one_row_an_item(make):
    votes = make(long())
    found = lf.estimate(votes, **LONG)
    labelled, shares = found.label(votes), found.probability(votes)
    assert type(labelled) is type(votes)
    names = ["task", "label", "probability"]
    assert columns_of(labelled) == names
    assert columns_of(shares) == ["task", "probability"]
    values = {name: pl.Series("answer", labelled[name]).to_list() for name in names}
    assert values["task"] == list(range(ITEMS))
    assert values["label"] == LABELS
    assert np.array_equal(values["probability"], SHARES)


@pytest.mark.parametrize("taken", ["label", "probability"])
@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame, pa.table, pl.LazyFrame])
def test_a_table_that_already_has_the_column_is_refused(found, make, taken):
    votes = make({**wide(), taken: [1] * ITEMS})
    refused(lambda: found.label(votes), repr(taken), "rename", error=OptionsError)
    if taken == "probability":
        refused(lambda: found.probability(votes), repr(taken), "rename", error=OptionsError)
    else:
        found.probability(votes)
    named = {"label": long()["task"], **{name: long()[name] for name in ("rater", "said")}}
    reading = {**LONG, "item": "label"}
    refused(lambda: lf.estimate(named, **reading).label(named), "'label'", "rename")


def test_answers_go_on_to_the_next_question(found):
    labelled = found.label(pl.DataFrame(wide()), rule="majority").drop("probability")
    again = found.probability(labelled)
    assert np.array_equal(again["probability"], SHARES)


# --- new votes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame, pa.table, pl.LazyFrame])
def test_columns_are_found_by_name(found, make):
    names = ["extra", "dee", "bob", "note", "ann", "item", "cem"]
    table = {**wide(), "extra": [0.5] * ITEMS}
    votes = make({name: table[name] for name in names})
    labelled = found.label(votes)
    labelled = labelled.collect() if make is pl.LazyFrame else labelled
    assert pl.Series("answer", labelled["label"]).to_list() == LABELS


def test_columns_of_an_array_may_be_named():
    turned = CODES[:, ::-1]
    shares = FOUND.probability(turned, classifiers=NAMES[::-1])
    assert shares == pytest.approx(SHARES, rel=1e-12)
    assert np.array_equal(FOUND.label(turned, classifiers=NAMES[::-1]), FOUND.label(CODES))
    some = FOUND.probability(CODES[:, [2, 0, 1]], classifiers=["cem", "ann", "bob"])
    gone = CODES.copy()
    gone[:, 3] = -1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LabelfreeWarning)
        assert some == pytest.approx(FOUND.probability(gone), rel=1e-12)


def test_a_classifier_that_is_missing_or_unknown_is_named(found):
    table = wide()
    del table["cem"]
    for make in (dict, pd.DataFrame, pl.DataFrame, pa.table):
        refused(lambda make=make: found.label(make(table)), "no column 'cem'", "'ann'")
    for width in (3, 5, 1):
        votes = np.resize(CODES, (20, width))
        refused(
            lambda votes=votes: FOUND.label(votes, missing=-1), "Expected 4 columns", str(width)
        )
    refused(
        lambda: FOUND.label(CODES, classifiers=[*NAMES[:3], "eve"]),
        "eve",
        "ann, bob, cem, dee",
        error=OptionsError,
    )
    judged = lf.estimate(long(), **LONG)
    more = {name: [*values, new] for (name, values), new in zip(long().items(), [0, "eve", "no", 0.0], strict=True)}  # fmt: skip
    refused(lambda: judged.label(more), "'eve'", "'ann', 'bob', 'cem', 'dee'", error=VotesError)


def test_the_long_form_of_some_classifiers_only():
    judged = lf.estimate(long(), **LONG)
    some = pl.DataFrame(long()).filter(pl.col("rater").is_in(["bob", "cem"]))
    votes = np.where(np.isin(NAMES, ["bob", "cem"]), CODES, -1)
    votes = votes[(votes >= 0).any(axis=1)]
    assert np.array_equal(judged.probability(some)["probability"], FOUND.probability(votes))


def test_an_estimate_of_one_form_labels_the_other(found):
    judged = found.label(long(), **LONG)
    assert judged["label"] == LABELS
    again = lf.estimate(long(), **LONG)
    labelled = again.label(wide(), item=None, classifier=None, vote=None)
    assert labelled["label"] == LABELS


@pytest.mark.parametrize("new", ["maybe", "", 1, True, b"yes"])
def test_unknown_labels_are_named(found, new):
    for place in (0, ITEMS - 1):
        table = wide()
        table["bob"][place] = new
        for make in (dict, lambda table: pd.DataFrame(table, dtype=object)):
            refused(lambda make=make, table=table: found.label(make(table)), "'bob'", repr(new))
    numbers = CODES.copy()
    numbers[-1, 2] = 7
    for layout in (np.ascontiguousarray, np.asfortranarray, pl.DataFrame):
        votes = layout(numbers)
        reading = {"classifiers": None} if layout is pl.DataFrame else {}
        if reading:
            votes.columns = NAMES
        refused(lambda votes=votes: FOUND.label(votes, missing=-1), "'cem'", "7", "missing=7")


def test_one_label_alone_is_fine():
    for code in (0, 1):
        votes = np.full((5, 4), code)
        assert FOUND.label(votes).tolist() == [code] * 5
    words = {name: ["yes"] * 3 for name in NAMES}
    assert lf.estimate(wide(), classifiers=NAMES).label(words)["label"] == ["yes"] * 3


def test_a_single_item_and_few_items_are_fine_and_warn_of_nothing():
    for items in (1, 3, 4):
        assert np.array_equal(FOUND.probability(CODES[:items]), SHARES[:items])


def test_an_item_without_votes_gets_the_prior_and_a_warning(found):
    votes = CODES.copy()
    votes[[3, 5]] = -1
    where = np.array([3, 5])
    for answer in (FOUND.label, FOUND.probability):
        with pytest.warns(LabelfreeWarning, match="^2 items had no vote at all") as caught:
            given = answer(votes)
        (warning,) = caught
        assert warning.filename == __file__
        check_sentence(str(warning.message))
        likely = int(FOUND.prevalence >= 0.5)
        wanted = likely if answer == FOUND.label else FOUND.prevalence
        assert given[where] == pytest.approx(wanted)
    with pytest.warns(LabelfreeWarning, match="^1 item had no vote at all"):
        FOUND.label(np.full((1, 4), -1))
    table = {name: [None, *values[1:]] for name, values in wide(extra=False).items()}
    with pytest.warns(LabelfreeWarning, match="^1 item had no vote"):
        found.label(pd.DataFrame(table))
    judged = lf.estimate(long(), **LONG)
    new = {"task": ["x", "y", "y"], "rater": ["ann", "bob", "cem"], "said": [None, "no", "no"]}
    with pytest.warns(LabelfreeWarning, match="^1 item had no vote"):
        assert judged.label(new)["task"] == ["x", "y"]


def test_missing_votes_are_read_as_the_estimate_read_them():
    words = {
        name: ["?" if v is None else v for v in values]
        for name, values in wide(extra=False).items()
    }
    found = lf.estimate(words, missing="?")
    assert found.label(words)["label"] == LABELS
    assert lf.estimate(CODES, missing=-1).label(CODES).tolist() == FOUND.label(CODES).tolist()
    refused(lambda: found.label(words, missing=()), "'?'", "missing='?'")
    assert found.label(wide(extra=False), missing=())["label"] == LABELS


@pytest.mark.parametrize("option", ["positive", "classes", "method", "rules"])
def test_options_that_an_estimate_brings_itself_are_refused(option):
    for answer in (FOUND.label, FOUND.probability):
        refused(
            lambda answer=answer: answer(CODES, **{option: "no"}), f"{option}=", error=OptionsError
        )
    refused(lambda: FOUND.label(CODES, rule="magic"), "rule=", "posterior", error=OptionsError)
    refused(lambda: FOUND.label(CODES, rule=["posterior"]), "rule=", error=OptionsError)


@pytest.mark.parametrize("votes", [[], [[]], {}, pl.DataFrame(), None, 3, "x", b"x", {1, 2}, FOUND])
def test_what_is_no_votes_is_refused(votes):
    refused(lambda: FOUND.label(votes))
    refused(lambda: FOUND.probability(votes))
    refused(lambda: lf.estimate(votes))


# --- an estimate on the shelf -------------------------------------------------------------------


@pytest.mark.parametrize(
    "reading",
    [
        {},
        {"missing": "?"},
        {"missing": ("?", -1, None, float("nan"))},
        {"missing": np.array(["?"])},
        {"missing": {"?"}},
        {"item": "patient"},
    ],
    ids=repr,
)
def test_an_estimate_is_equal_to_itself_after_save_and_load(tmp_path, reading):
    votes = {"patient" if "item" in reading else "item": list(range(ITEMS)), **wide(extra=False)}
    found = lf.estimate(votes, **reading)
    found.save(tmp_path / "e.json")
    again = lf.load(tmp_path / "e.json")
    assert again == found
    assert repr(again) == repr(found)
    assert again.label(votes) == found.label(votes)
    assert pickle.loads(pickle.dumps(found)) == found  # noqa: S301
    assert copy.deepcopy(found) == found


@pytest.mark.parametrize(
    "labels", [(0, 1), (False, True), (-1.5, 2), ("no", "yes"), (2**60, 2**61)]
)
def test_labels_keep_their_kind_on_the_shelf(tmp_path, labels):
    rows = [[labels[code] if code >= 0 else None for code in row] for row in CODES.tolist()]
    found = lf.estimate(rows)
    found.save(tmp_path / "e.json")
    again = lf.load(tmp_path / "e.json")
    assert again.classes == found.classes == labels
    assert [type(label) for label in again.classes] == [type(label) for label in labels]
    assert again.label(rows).tolist() == found.label(rows).tolist()


def test_no_signal_gives_no_numbers_and_no_labels(tmp_path):
    coins = np.random.default_rng(0).integers(0, 2, (500, 4))
    found = lf.estimate(coins)
    assert found.verdict.level == "unidentified"
    found.save(tmp_path / "e.json")
    for each in (found, lf.load(tmp_path / "e.json")):
        for number in ("sensitivity", "specificity", "prevalence", "confusion", "imbalance"):
            refused(
                lambda number=number, each=each: getattr(each, number), error=NotIdentifiedError
            )
        for answer in (each.label, each.probability):
            refused(lambda answer=answer: answer(coins), error=NotIdentifiedError)
        refused(each.sql, error=NotIdentifiedError)
        assert each.label(coins, rule="majority").shape == (500,)
        assert all(row["sensitivity"] is None for row in each.table())
        repr(each)
