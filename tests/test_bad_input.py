"""Bad input is refused in one sentence: what came, what was expected, what to do."""

import datetime as dt
import decimal
import fractions
import json
import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import labelfree as lf
from labelfree import (
    FileError,
    LabelfreeError,
    LabelfreeWarning,
    NotIdentifiedError,
    OptionsError,
    Tally,
    VotesError,
    simulate,
    tally,
)

from .sentences import check_sentence, refused

NAMES = ["ann", "bob", "cem", "dee"]
ITEMS = 200
RATES = {"sensitivity": [0.9, 0.8, 0.85, 0.8], "specificity": [0.8, 0.9, 0.75, 0.8]}
VOTES = simulate.votes(ITEMS, **RATES, seed=5).votes
LONG = {"item": "task", "classifier": "rater", "vote": "said"}


def table(**columns):
    return {**dict(zip(NAMES, VOTES.T.tolist(), strict=True)), **columns}


def words():
    return {name: [("no", "yes")[vote] for vote in column] for name, column in table().items()}


def long():
    rows, places = np.divmod(np.arange(VOTES.size), len(NAMES))
    names = [NAMES[place] for place in places]
    return {"task": rows.tolist(), "rater": names, "said": VOTES.reshape(-1).tolist()}


FRAMES = [dict, pd.DataFrame, pl.DataFrame, pa.table]


# --- too little ---------------------------------------------------------------------------------


@pytest.mark.parametrize("classifiers", [0, 1, 2])
def test_fewer_than_three_classifiers(classifiers):
    votes = VOTES[:, :classifiers]
    refused(lambda: lf.estimate(votes), "three classifiers", f"got {classifiers}", error=VotesError)
    some = {name: table()[name] for name in NAMES[:classifiers]}
    for make in FRAMES if classifiers else (dict,):
        call = lambda make=make: lf.estimate(make(some))  # noqa: E731
        refused(call, "three classifiers", f"got {classifiers}", error=VotesError)
    chosen = lambda: lf.estimate(table(), classifiers=NAMES[:classifiers])  # noqa: E731
    refused(chosen, "three classifiers", error=VotesError)
    few = pl.DataFrame(long()).filter(pl.col("rater").is_in(NAMES[:classifiers]))
    refused(lambda: lf.estimate(few, **LONG), "got", error=VotesError)
    counted = Tally.from_codes(np.zeros((1, classifiers), dtype=int), [3])
    refused(lambda: lf.estimate(counted), "three classifiers", error=VotesError)


def test_no_items():
    refused(lambda: lf.estimate(np.empty((0, 4))), "at least one item", error=VotesError)
    for make in FRAMES:
        refused(lambda make=make: lf.estimate(make({name: [] for name in NAMES})), "at least one")
        refused(lambda make=make: lf.estimate(make({name: [] for name in LONG.values()}), **LONG))


@pytest.mark.parametrize(
    "votes", [np.ones((9, 4)), [["no"] * 4] * 9, {name: [True, None] for name in NAMES}]
)
def test_one_label_only(votes):
    refused(lambda: lf.estimate(votes), "two labels", "got only", "classes=", error=VotesError)


@pytest.mark.parametrize(
    "votes",
    [
        np.full((9, 4), np.nan),
        [[None] * 4] * 9,
        {name: [None, None] for name in NAMES},
        pd.DataFrame({name: [None, None] for name in NAMES}),
        pl.DataFrame({name: [None, None] for name in NAMES}),
        pa.table({name: pa.nulls(2) for name in NAMES}),
        np.ma.masked_all((9, 4), dtype=int),
    ],
)
def test_no_vote_at_all(votes):
    refused(lambda: lf.estimate(votes), "two labels", "no vote at all", error=VotesError)
    found = lf.estimate(votes, classes=(0, 1))
    assert found.verdict.level == "unidentified"
    assert all(row["note"] == "no votes" for row in found.table())


def test_a_single_item():
    for votes in ([[1, 1, 0]], [[1, 1, 1]], [[0, 0, 0, 0]], [[1, None, 0]]):
        found = lf.estimate(votes, classes=(0, 1))
        assert found.verdict.level == "unidentified"
        refused(lambda found=found: found.sensitivity, error=NotIdentifiedError)


# --- too many labels, and what are no labels ------------------------------------------------------


def test_a_third_label_beside_a_positive_one():
    maybe = {**words(), "bob": ["maybe", *words()["bob"][1:]]}
    positive = lambda votes, label, **more: lambda: tally(votes, positive=label, **more)  # noqa: E731
    said = refused(positive(maybe, "yes"), "'bob'", "3 labels", "'maybe', 'no', 'yes'", "missing=", error=VotesError)  # fmt: skip
    assert "estimate all 3: leave positive= out" in said
    assert tally(maybe, positive="yes", missing="maybe").classes == ("no", "yes")
    assert tally(maybe).classes == ("maybe", "no", "yes")
    unsure = {**words(), "bob": ["Not sure", *words()["bob"][1:]]}
    refused(positive(unsure, "yes"), "missing='Not sure'", error=VotesError)
    late = np.tile(VOTES, (8, 1))
    late[-1, 2] = 2
    for votes in (late, np.asfortranarray(late), late.astype(float), late.astype(str)):
        one = str(1) if votes.dtype.kind == "U" else 1
        refused(positive(votes, one), "'classifier_3'", "3 labels", "2", error=VotesError)
        refused(lambda votes=votes: tally(votes, classes=(0, 1)), "'classifier_3'", "2", "missing=")
        assert len(tally(votes).classes) == 3
    spread = table(ann=[0, 1] * 100, bob=[-1, 1] * 100)
    refused(positive(spread, 1), "-1, 0, 1", "missing=-1", error=VotesError)
    refused(positive(pd.DataFrame(spread).astype("Int8"), 1), "-1, 0, 1", error=VotesError)
    refused(positive(VOTES, 1, classes=(0, 1, 2)), "positive=", "names 3", error=OptionsError)
    infinite = np.where(late == 2, np.inf, late)
    refused(positive(infinite, 1), "infinity", error=VotesError)


def test_a_hundred_labels_are_classes_and_more_are_a_mistake():
    codes = np.repeat(np.arange(ITEMS)[:, None] % 100, 4, axis=1)
    for votes in (
        codes,
        np.asfortranarray(codes),
        codes.astype(str),
        pl.DataFrame(codes).cast(pl.String),
    ):
        assert len(tally(votes).classes) == 100
    late = np.tile(codes, (5, 1))
    late[-1, 2] = 100
    for votes in (late, np.asfortranarray(late), late.astype(float), late.astype(str)):
        call = lambda votes=votes: tally(votes)  # noqa: E731
        refused(call, "'classifier_3'", "more than 100 different", "leave it out", error=VotesError)
    spread = np.arange(26)[:, None] + 26 * np.arange(4)
    for votes in (spread, spread.astype(object), pl.DataFrame(spread).cast(pl.String)):
        call = lambda votes=votes: tally(votes)  # noqa: E731
        refused(call, "The votes hold more than 100 different", error=VotesError)


def test_a_column_with_many_labels_of_its_own_deserves_a_look():
    items = {name: values[:50] for name, values in table(number=list(range(1, ITEMS + 1))).items()}
    for votes in (items, pd.DataFrame(items), pl.DataFrame(items).cast(pl.String)):
        with pytest.warns(LabelfreeWarning, match="49 labels that no other column") as caught:
            assert len(tally(votes).classes) == 51
        for warning in caught:
            assert warning.filename == __file__
            assert "item='number'" in str(warning.message)
            check_sentence(str(warning.message))
        assert tally(votes, item="number").items == 50


@pytest.mark.parametrize(
    "odd",
    ["unsure", "Unknown", "skip", "ABSTAIN", " n/a", "None", "?", "", "not  sure", "Don't know"],
)
@pytest.mark.parametrize("make", [*FRAMES, lambda votes: np.array(list(votes.values())).T])
def test_a_label_that_means_no_vote_deserves_a_look(odd, make):
    votes = make({**words(), "dee": [odd, *words()["dee"][1:]]})
    with pytest.warns(LabelfreeWarning, match="no vote") as caught:
        assert set(tally(votes).classes) == {"no", "yes", odd}
    (warning,) = caught
    assert warning.filename == __file__
    assert f"missing={odd!r}" in str(warning.message)
    check_sentence(str(warning.message))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tally(votes, missing=odd).classes == ("no", "yes")
        assert tally(votes, classes=("no", odd, "yes")).classes == ("no", odd, "yes")


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ((-1, 0, 1), "-1, 0 was taken .* missing=-1"),
        ((-1, 0, 1, 2), "^-1 was taken .* missing=-1"),
        ((-9, 1, 2), "^-9 was taken"),
        ((-1, 1), None),
        ((-2, -1, 0, 1, 2), None),
        ((0, 1, 2), None),
        ((False, True), None),
    ],
)
def test_a_number_that_means_no_vote_deserves_a_look(labels, said):
    votes = np.array(labels)[np.arange(4 * ITEMS).reshape(-1, 4) % len(labels)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert tally(votes).classes == labels
    assert len(caught) == (said is not None)
    for warning in caught:
        assert re.search(said, str(warning.message))
        check_sentence(str(warning.message))


def test_labels_that_differ_by_case_or_spaces_deserve_a_look():
    said = {name: list(column) for name, column in words().items()}
    said["ann"][3], said["bob"][5], said["cem"][199] = "Yes", "yes ", "No"
    rows = np.array(list(said.values())).T
    many = np.concatenate([rows[:3], np.tile(rows[6:7], (2000, 1)), rows])
    for votes in (said, pd.DataFrame(said), rows, np.asfortranarray(many), many):
        with pytest.warns(LabelfreeWarning, match="differ only by case or spaces") as caught:
            assert tally(votes).classes == ("No", "Yes", "no", "yes", "yes ")
        (warning,) = caught
        assert "'No', 'Yes', 'no', 'yes', 'yes '" in str(warning.message)
        check_sentence(str(warning.message))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(tally(said, classes=("no", "No", "yes", "Yes", "yes ")).classes) == 5


def test_a_class_that_only_the_gold_has():
    gold = {0: "yes", 1: "no", 2: "never"}
    call = lambda: lf.estimate(words(), gold=gold)  # noqa: E731
    refused(call, "'never'", "'no', 'yes'", "classes=", error=OptionsError)


@pytest.mark.parametrize("make", FRAMES)
def test_a_column_of_something_else(make):
    items = table(name=[f"item {place}" for place in range(ITEMS)])
    refused(lambda: lf.estimate(make(items)), "'name'", "more than 100", "item='name'")
    numbers = table(score=[place / 3 for place in range(ITEMS)])
    refused(lambda: lf.estimate(make(numbers)), "'score'", "different labels", "leave it out")
    missing = table(score=[None, *[place / 3 for place in range(ITEMS - 1)]])
    refused(lambda: lf.estimate(make(missing)), "'score'", "different labels", "leave it out")


@pytest.mark.parametrize("where", [(0, 0), (ITEMS - 1, 3)])
@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinities(where, value):
    votes = VOTES.astype(float)
    votes[where] = value
    column = {name: each.tolist() for name, each in zip(NAMES, votes.T, strict=True)}
    objects = votes.astype(object)
    frames = [make(column) for make in FRAMES]
    for given in (votes, np.asfortranarray(votes), votes.tolist(), objects, *frames):
        refused(lambda given=given: lf.estimate(given), "infinity", "NaN", error=VotesError)
        named = lambda given=given: lf.estimate(given, classes=(0, 1))  # noqa: E731
        refused(named, "infinity", error=VotesError)
    replaced = np.where(np.isinf(votes), np.nan, votes)
    assert lf.estimate(replaced).items == ITEMS


NO_LABELS = [
    [1],
    (1, 0),
    {"a": 1},
    {1},
    np.array([1, 2]),
    dt.date(2020, 1, 1),
    dt.datetime(2020, 1, 1),  # noqa: DTZ001
    dt.time(1),
    dt.timedelta(1),
    np.datetime64("2020-01-01"),
    pd.Timestamp("2020-01-01"),
    pd.Period("2020-01"),
    pd.Interval(0, 1),
    1j,
    np.complex64(1j),
    fractions.Fraction(1, 2),
    object(),
    print,
    int,
    Ellipsis,
    pl.Series([1, 2]),
    pd.Series([1, 2]),
    lf.estimate,
]


@pytest.mark.parametrize("value", NO_LABELS, ids=lambda value: type(value).__name__)
def test_what_is_no_label(value):
    objects = VOTES.astype(object)
    objects[3, 1] = value
    refused(lambda: lf.estimate(objects), "expected", error=VotesError)
    refused(lambda: lf.estimate(objects.tolist()), "xpected", error=VotesError)
    frame = pd.DataFrame(objects, columns=NAMES)
    refused(lambda: lf.estimate(frame), "'bob'", "expected", error=VotesError)
    if not isinstance(value, fractions.Fraction):  # which a column of a table takes for a number
        refused(lambda: lf.estimate(table(bob=[value] * ITEMS)), error=VotesError)
    for option in ("classes", "missing"):
        given = {option: (0, value)}
        refused(lambda given=given: lf.estimate(VOTES, **given), f"{option}=", error=OptionsError)
    refused(lambda: lf.estimate(VOTES, positive=value), "positive=", error=OptionsError)


@pytest.mark.parametrize(
    "dtype", ["complex64", "complex128", "M8[D]", "m8[s]", [("a", "i4"), ("b", "i4")], "V3"]
)
def test_arrays_of_other_types(dtype):
    votes = np.zeros((5, 4), dtype=dtype)
    refused(
        lambda: lf.estimate(votes), "numbers, truth values or text", "convert", error=VotesError
    )


COLUMNS = {
    "date": [dt.date(2020, 1, 1)] * ITEMS,
    "time": [dt.datetime(2020, 1, 1)] * ITEMS,  # noqa: DTZ001
    "span": [dt.timedelta(1)] * ITEMS,
    "list": [[1, 2]] * ITEMS,
    "struct": [{"a": 1}] * ITEMS,
    "complex": [1j] * ITEMS,
}


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("kind", COLUMNS)
def test_columns_of_other_types(make, kind):
    votes = make(table(**{kind: COLUMNS[kind]}))
    refused(lambda: lf.estimate(votes), repr(kind), "expected", error=VotesError)
    assert lf.estimate(votes, classifiers=NAMES).classifiers == tuple(NAMES)


def test_pandas_own_types():
    for values in (
        pd.period_range("2020", periods=ITEMS, freq="D"),
        pd.interval_range(0, ITEMS),
        pd.Categorical(pd.period_range("2020", periods=ITEMS, freq="D")),
        pd.cut(np.arange(ITEMS), 3),
    ):
        frame = pd.DataFrame(table()).assign(odd=values)
        refused(lambda frame=frame: lf.estimate(frame), "'odd'", error=VotesError)
    sparse = pd.DataFrame(table()).assign(ann=pd.arrays.SparseArray(VOTES[:, 0]))
    assert tally(sparse) == tally(pd.DataFrame(table()))


@pytest.mark.parametrize(
    ("odd", "shown"),
    [
        ("NA", "'NA'"),
        ("nan", "'nan'"),
        ("", "''"),
        (b"1", "b'1'"),
        ("1 0", "'1 0'"),
        ("1,0", "'1,0'"),
    ],
)
def test_labels_of_several_kinds(odd, shown):
    mixed = table(bob=[odd, *table()["bob"][1:]])
    said = refused(lambda: lf.estimate(mixed), "'bob'", shown, f"missing={shown}", error=VotesError)
    assert "numbers" in said
    assert lf.estimate(mixed, missing=odd).items == ITEMS
    refused(lambda: lf.estimate(pd.DataFrame(mixed)), "'bob'", shown)
    rows = [list(row) for row in zip(*mixed.values(), strict=True)]
    refused(lambda: lf.estimate(rows), "'classifier_2'", shown)
    refused(lambda: lf.estimate({**words(), "cem": VOTES[:, 2]}), "'cem'", "text")


# --- shapes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (9,), (3, 3, 3), (1, 2, 3, 4), (0,)])
def test_arrays_of_other_dimensions(shape):
    for dtype in (int, float, object, "U1", bool):
        votes = np.zeros(shape, dtype=dtype)
        refused(lambda votes=votes: lf.estimate(votes), "two dimensions", str(shape))


def test_a_series_is_no_table():
    for make in (pd.Series, pl.Series, pa.array, list, tuple):
        refused(lambda make=make: lf.estimate(make([0, 1, 1])), "two dimensions", error=VotesError)


def test_rows_of_unequal_length():
    for rows in ([[0, 1, 1], [0, 1]], [[0, 1, 1], 1], [[0, 1, 1], [0, [1], 1]], [["a"], []]):
        refused(lambda rows=rows: lf.estimate(rows), error=VotesError)
    refused(lambda: lf.estimate([[0, 1, 1], [0, 1]]), "equal length", "None", error=VotesError)


def test_columns_of_unequal_length():
    refused(lambda: lf.estimate(table(bob=[0, 1])), "equal length", "bob: 2", error=VotesError)
    uneven = {**long(), "said": [0, 1]}
    refused(lambda: lf.estimate(uneven, **LONG), "equal length", "said: 2", error=VotesError)


@pytest.mark.parametrize("column", [1, None, "votes", b"votes", {"a": 1}, iter([1]), {0, 1}, len])
def test_columns_that_are_none(column):
    refused(lambda: lf.estimate(table(bob=column)), "bob", error=VotesError)


def test_a_table_on_its_side():
    drawn = VOTES[:40].T
    with pytest.warns(LabelfreeWarning, match="40 classifiers on 4 items") as caught:
        tally(drawn)
    with pytest.warns(LabelfreeWarning, match=r"votes\.T") as again:
        lf.estimate(drawn)
    for warning in (*caught, *again):
        assert warning.filename == __file__
        check_sentence(str(warning.message))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tally(drawn, classifiers=[f"c{place}" for place in range(40)])
        tally(VOTES[:4])


@pytest.mark.parametrize(
    "votes", [None, 1, 1.5, True, object(), lf, len, b"votes", {1, 2}, iter([[1, 0, 1]]), range(3)]
)
def test_what_are_no_votes(votes):
    refused(lambda: lf.estimate(votes), "xpected", error=VotesError)


def test_a_word_is_taken_for_the_name_of_a_file():
    for word in ("", "votes", "0,1,1"):
        refused(lambda word=word: lf.estimate(word), "name that ends in .csv", error=FileError)
    refused(lambda: lf.estimate("nowhere.csv"), "nowhere.csv", "no such file", error=FileError)


# --- names --------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [*FRAMES, pl.LazyFrame])
def test_unknown_columns(make):
    votes = make(table())
    some = {"classifiers": ["ann", "bob", "eve"]}
    refused(lambda: lf.estimate(votes, **some), "'eve'", "'ann'", error=OptionsError)
    refused(lambda: lf.estimate(votes, item="who"), "'who'", "'ann'", error=OptionsError)
    for column in LONG:
        reading = {**LONG, column: "who"}
        call = lambda reading=reading: lf.estimate(make(long()), **reading)  # noqa: E731
        refused(call, "'who'", "'task'", error=OptionsError)


def test_columns_named_twice():
    twice = {"classifiers": ["ann", "bob", "ann", "cem"]}
    for votes in (VOTES, table(), pd.DataFrame(table())):
        refused(lambda votes=votes: lf.estimate(votes, **twice), "'ann'", "once")
    both = {"classifiers": NAMES, "item": "bob"}
    refused(lambda: lf.estimate(table(), **both), "item='bob'", "classifiers=", error=OptionsError)
    for option in LONG:
        reading = {**LONG, option: "task" if option != "item" else "said"}
        call = lambda reading=reading: lf.estimate(long(), **reading)  # noqa: E731
        refused(call, "three different columns", error=OptionsError)
    frame = pd.DataFrame(VOTES, columns=["ann", "bob", "ann", "cem"])
    refused(lambda: lf.estimate(frame), "more than once", "rename", error=VotesError)
    arrow = pa.table(list(VOTES.T), names=["ann", "bob", "ann", "cem"])
    refused(lambda: lf.estimate(arrow), "more than once", error=VotesError)
    alike = pd.DataFrame(VOTES, columns=[0, 1, "1", 2])
    refused(lambda: lf.estimate(alike), "more than once", error=VotesError)
    refused(lambda: lf.estimate({1: [0], "1": [1], 2: [1], 3: [0]}), "more than once")


def test_names_for_an_array():
    for names in ([], ["a"], list("abcde"), range(3)):
        call = lambda names=names: lf.estimate(VOTES, classifiers=names)  # noqa: E731
        refused(call, "got an array with 4", error=OptionsError)
    for names in ("abcd", b"abcd", 4, True):
        call = lambda names=names: lf.estimate(VOTES, classifiers=names)  # noqa: E731
        refused(call, "classifiers=", "list", error=OptionsError)


def test_an_array_has_no_columns():
    refused(lambda: lf.estimate(VOTES, item="task"), "item='task'", error=OptionsError)
    refused(lambda: lf.estimate(VOTES, **LONG), "long form", "array", error=OptionsError)
    refused(lambda: lf.estimate(VOTES.tolist(), **LONG), "long form", error=OptionsError)


@pytest.mark.parametrize("option", ["classifier", "vote"])
def test_half_of_the_long_form(option):
    reading = {option: LONG[option]}
    for votes in (long(), pl.DataFrame(long()), VOTES):
        refused(lambda votes=votes: lf.estimate(votes, **reading), "item=, classifier= and vote=")


# --- the long form ------------------------------------------------------------------------------


@pytest.mark.parametrize("make", FRAMES)
def test_two_votes_of_one_classifier_on_one_item(make):
    more = {name: [*values, values[0]] for name, values in long().items()}
    said = refused(lambda: lf.estimate(make(more), **LONG), "1 repeated pair", error=VotesError)
    assert "duplicates='last'" in said
    assert "duplicates='drop'" in said
    gap = {**more, "said": [*more["said"][:-1], None]}
    assert tally(make(gap), **LONG) == tally(make(long()), **LONG)


@pytest.mark.parametrize("make", FRAMES)
def test_repeated_votes_are_kept_or_dropped_as_asked_and_counted(make):
    more = {name: [*values, *values[:3], values[0]] for name, values in long().items()}
    more["said"][-4:] = [1 - vote for vote in long()["said"][:3]] + [None]
    flipped, dropped = VOTES.astype(float).copy(), VOTES.astype(float).copy()
    flipped[0, :3] = 1 - flipped[0, :3]
    dropped[0, :3] = np.nan
    with pytest.warns(LabelfreeWarning, match=r"3 repeated pairs .* left out: 3 votes") as caught:
        assert tally(make(more), **LONG, duplicates="last") == tally(flipped, classes=(0, 1), classifiers=NAMES)  # fmt: skip
    for warning in caught:
        assert warning.filename == __file__
        check_sentence(str(warning.message))
    with pytest.warns(LabelfreeWarning, match=r"3 repeated pairs .* left out: 6 votes"):
        assert tally(make(more), **LONG, duplicates="drop") == tally(dropped, classes=(0, 1), classifiers=NAMES)  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tally(make(long()), **LONG, duplicates="drop") == tally(make(long()), **LONG)
        assert tally(make(table()), duplicates="last") == tally(make(table()))


def test_repeated_votes_are_read_alike_when_items_are_labelled():
    more = {name: [*values, values[0]] for name, values in long().items()}
    with pytest.warns(LabelfreeWarning, match="1 repeated pair"):
        found = lf.estimate(more, **LONG, duplicates="drop")
    assert found.reading["duplicates"] == "drop"
    with pytest.warns(LabelfreeWarning, match="1 repeated pair"):
        dropped = found.label(more)
    with pytest.warns(LabelfreeWarning, match="1 repeated pair"):
        assert found.probability(more, duplicates="last") == lf.Estimate.probability(found, long())
    assert dropped["label"][1:] == found.label(long())["label"][1:]
    refused(lambda: found.label(more, duplicates=None), "1 repeated pair", error=VotesError)


@pytest.mark.parametrize("make", FRAMES)
@pytest.mark.parametrize("option", ["item", "classifier"])
def test_an_empty_cell_in_the_long_form(make, option):
    table = long()
    name = LONG[option]
    table[name] = [None, *table[name][1:]]
    refused(lambda: lf.estimate(make(table), **LONG), repr(name), "1 empty cell", error=VotesError)
    if option == "item":
        floats = {**table, name: [float("nan"), float("nan"), *map(float, table[name][2:])]}
        refused(lambda: lf.estimate(make(floats), **LONG), repr(name), "2 empty cells")


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("odd", [[[1], [2]], [{"a": 1}, {"a": 2}], [1, "a"], [object(), object()]])
def test_names_of_other_kinds_in_the_long_form(make, odd):
    for name in ("task", "rater"):
        votes = {**long(), name: odd * (len(long()[name]) // 2)}
        if make is pl.DataFrame and odd == [1, "a"]:
            continue  # Polars holds no such column
        refused(lambda votes=votes: lf.estimate(make(votes), **LONG), repr(name), error=VotesError)


@pytest.mark.parametrize("odd", [[1], {"a": 1}, 7, dt.date(2020, 1, 1)])
def test_what_pandas_hides_far_down_among_text(odd):
    """Only the first hundred cells are looked at to tell what a column of objects holds."""
    text = pd.DataFrame(words())
    text["bob"] = [*text["bob"][:-1], odd]
    refused(lambda: lf.estimate(text), "'bob'", "expected", error=VotesError)
    for name in ("task", "rater"):
        table = {**long(), "task": [f"t{item}" for item in long()["task"]]}
        table[name][-1] = odd
        refused(lambda table=table: lf.estimate(pd.DataFrame(table), **LONG), repr(name), "sorted")


def test_labels_in_the_long_form():
    table = long()
    table["said"][-1] = 2
    refused(lambda: tally(table, **LONG, positive=1), "'said'", "3 labels", error=VotesError)
    assert tally(table, **LONG).classes == (0, 1, 2)
    refused(lambda: lf.estimate(table, **LONG, classes=(0, 1)), "'said'", "2", "missing=2")
    assert tally(table, **LONG, missing=2).items == ITEMS
    constant = {**long(), "said": [1] * len(table["said"])}
    refused(lambda: lf.estimate(constant, **LONG), "two labels", "only 1", error=VotesError)
    dates = {**long(), "said": [dt.date(2020, 1, 1)] * len(table["said"])}
    refused(lambda: lf.estimate(dates, **LONG), "'said'", "Date", error=VotesError)


def test_classifiers_in_the_long_form():
    reading = {**LONG, "classifiers": ["ann", "bob", "cem"]}
    said = refused(lambda: lf.estimate(long(), **reading), "'dee'", "'rater'", error=VotesError)
    assert "'ann', 'bob', 'cem'" in said


# --- options ------------------------------------------------------------------------------------


ODD = [[], {}, (), object(), np.array([1.0, 2.0]), "", b"x", float("nan"), float("inf"), 1j]
OPTIONS = {
    "prevalence": [0, 1, -0.5, 2, "0.5", True, *ODD],
    "prior": [-1, -1e-9, "1", [1], *ODD],
    "method": ["magic", 1, None, ["map"], *ODD],
    "vector": ["magic", 1, None, ["triplets"], *ODD],
    "level": [0, 1, -1, 95, "0.95", *ODD],
    "dependence": ["magic", 1, None, [1], ["ann"], [["ann"]], [["ann", "eve"]]],
    "known": [1, "ann", {"eve": {}}, {"ann": 1}, {"ann": {"rate": 1}}, {"ann": {"sensitivity": 2}}],
    "positive": [2, "2", "yes", (), [1], {1}, *ODD],
    "classes": [0, "01", b"01", (), (1,), (1, 1), (0, "0"), {0, 1}, {0: 1}, (0, None), (0, np.nan)],
    "missing": [
        np.inf,
        (0, -np.inf),
        [[1]],
        [{}],
        object(),
        dt.date(2020, 1, 1),
    ],
    "duplicates": ["first", "LAST", 1, True, ["last"], *ODD],
}


@pytest.mark.parametrize("option", OPTIONS)
def test_options_outside_their_range(option):
    for value in OPTIONS[option]:
        call = lambda value=value: lf.estimate(VOTES, classifiers=NAMES, **{option: value})  # noqa: E731
        refused(call, f"{option}=", error=OptionsError)


def test_unknown_options_are_pythons_own_error():
    with pytest.raises(TypeError, match="magic"):
        lf.estimate(VOTES, magic=True)
    with pytest.raises(TypeError, match="magic"):
        tally(VOTES, magic=True)


def test_classes_that_the_votes_do_not_hold():
    refused(lambda: lf.estimate(VOTES, classes=("no", "yes")), "0", "'no', 'yes'", error=VotesError)
    refused(lambda: lf.estimate(VOTES, classes=(1, 2)), "'classifier_1'", "0", error=VotesError)
    refused(lambda: lf.estimate(words(), classes=(0, 1)), "'ann'", "'no'", error=VotesError)
    both = {"classes": (0, 1), "missing": 1}
    refused(lambda: lf.estimate(VOTES, **both), "classes=", "missing=1", error=OptionsError)
    written = {"classes": (0, 1), "missing": "1"}
    refused(lambda: lf.estimate(VOTES, **written), "missing=1", error=OptionsError)
    refused(lambda: lf.estimate(VOTES, positive=1, missing=1), "only 0", error=VotesError)
    many = tuple(range(128))
    refused(lambda: tally(VOTES, classes=many), "2 to 127", error=OptionsError)
    assert len(tally(VOTES, classes=many[:127]).classes) == 127


@pytest.mark.parametrize(
    "option", [{"positive": 0}, {"classes": (1, 0)}, {"missing": 1}, {"classifiers": NAMES}, LONG]
)
def test_a_tally_takes_no_option_of_reading(option):
    counted = tally(VOTES)
    refused(lambda: lf.estimate(counted, **option), f"{next(iter(option))}=", "tally")
    refused(lambda: tally(counted, **option), f"{next(iter(option))}=", error=OptionsError)
    assert tally(counted) is counted
    assert lf.estimate(counted, missing=(), classifiers=None) == lf.estimate(VOTES)


# --- tallies ------------------------------------------------------------------------------------


CODES = [[1, 1, 0, 1], [0, 0, 0, 1], [1, 0, 1, 1]]


@pytest.mark.parametrize(
    "counts",
    [
        [0, 0, 0],
        [1, -1, 3],
        [1, np.nan, 3],
        [1, np.inf, 3],
        [1, -np.inf, 3],
        [1e308, 1e308, 1e308],
        ["1", "2", "3"],
        [1j, 2, 3],
        [None, 1, 2],
        [[1], [2], [3]],
        [1, 2],
        [1, [2], 3],
        5,
        [],
        "abc",
    ],
)
def test_counts_that_count_nothing(counts):
    refused(lambda: Tally.from_codes(CODES, counts), "xpected", error=VotesError)


@pytest.mark.parametrize(
    "codes",
    [
        [[1, 1], [0, 0], [1, 2]],
        [[1, 1], [0, 0], [1, -2]],
        [[1.0, 0.0]] * 3,
        [["1", "0"]] * 3,
        [[None, 1]] * 3,
        [[True, False]] * 3,
        [1, 0, 1],
        [[[1]]] * 3,
        [[1, 0], [1], [0, 1]],
        5,
        [],
    ],
)
def test_codes_that_are_none(codes):
    refused(lambda: Tally.from_codes(codes, [1, 2, 3]), "xpected", error=VotesError)


def test_names_and_classes_of_a_tally():
    for names in ([], ["a"], ["a", "a", "b", "c"], list("abcde")):
        call = lambda names=names: Tally.from_codes(CODES, [1, 2, 3], classifiers=names)  # noqa: E731
        refused(call, "classifiers=", error=OptionsError)
    for classes in ((), (1,), (1, 1), "ab", (0, None), (0, float("nan"))):
        call = lambda classes=classes: Tally.from_codes(CODES, [1, 2, 3], classes=classes)  # noqa: E731
        refused(call, "classes=", error=OptionsError)
    dropped = Tally.from_codes(CODES, [1, 0, 2])
    assert dropped == Tally.from_codes([CODES[0], CODES[2]], [1, 2])


# --- votes that say little ----------------------------------------------------------------------


def test_a_constant_classifier_is_kept_and_noted():
    for constant in (0, 1):
        votes = table(bob=[constant] * ITEMS)
        found = lf.estimate(votes)
        row = found.table()[1]
        assert (row["classifier"], row["note"], row["votes"]) == ("bob", "constant", ITEMS)
        assert [each["note"] for each in found.table()] == ["", "constant", "", ""]
        assert found.verdict.level != "unidentified"
        assert found.label(votes)["label"].count(1) > 0


def test_a_classifier_without_votes_is_kept_and_noted():
    votes = pl.DataFrame(table(bob=[None] * ITEMS))
    found = lf.estimate(votes)
    row = found.table()[1]
    assert (row["classifier"], row["note"], row["votes"]) == ("bob", "no votes", 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert found.label(votes).height == ITEMS


def test_an_item_without_votes_does_not_count_against_anyone():
    gaps = np.vstack([VOTES, np.full((30, 4), -1)])
    found, without = lf.estimate(gaps, missing=-1), lf.estimate(VOTES)
    assert found.items == ITEMS + 30
    assert found.sensitivity == pytest.approx(without.sensitivity, abs=1e-6)


@pytest.mark.parametrize(
    "votes",
    [
        np.random.default_rng(0).integers(0, 2, (1000, 5)),
        np.eye(4, dtype=int),
        [[0, 1, 1], [1, 0, 0]],
        [[1, 1, 0]] * 50,
    ],
    ids=["coins", "eye", "two items", "constant"],
)
def test_votes_without_signal_give_no_numbers(votes):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = lf.estimate(votes)
    assert found.verdict.level == "unidentified"
    assert found.verdict.reasons
    assert found.verdict.advice
    said = refused(lambda: found.prevalence, error=NotIdentifiedError)
    assert found.verdict.reasons[0] in said
    assert found.as_dict()["prevalence"] is None
    json.dumps(found.as_dict(), allow_nan=False)


# --- the shelf ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shelf")
    lf.estimate(table()).save(folder / "good.json")
    return folder


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is not JSON"),
        ("votes", "is not JSON"),
        ('{"format": "labelfree.estimate"', "is not JSON"),
        (b"\xff\xfe\x00", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "is not an estimate"),
        ("null", "is not an estimate"),
        ("3", "is not an estimate"),
        ("{}", "is not an estimate"),
        ('{"format": "other"}', "is not an estimate"),
        ('{"format": "labelfree.estimate"}', "version None"),
        ('{"format": "labelfree.estimate", "version": 999}', "version 999"),
        ('{"format": "labelfree.estimate", "version": "1"}', "version 1"),
        ('{"format": "labelfree.estimate", "version": 1}', "damaged"),
    ],
)
def test_files_that_are_no_estimate(shelf, content, said):
    path = shelf / "bad.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    refused(lambda: lf.load(path), "bad.json", said, error=FileError)


def test_files_that_cannot_be_read(shelf):
    refused(lambda: lf.load(shelf / "nowhere.json"), "nowhere.json", "cannot be read")
    refused(lambda: lf.load(shelf), "cannot be read", error=FileError)
    refused(lambda: lf.load("a\0b"), error=FileError)
    refused(lambda: lf.estimate(table()).save(shelf), "cannot be written", error=FileError)
    refused(lambda: lf.estimate(table()).save(shelf / "no" / "e.json"), "cannot be written")


def test_damaged_estimates(shelf):
    kept = json.loads((shelf / "good.json").read_text())
    path = shelf / "damaged.json"
    needed = {"classes", "classifiers", "method", "items", "model", "verdict", "reading"}
    assert needed <= set(kept)
    for key in needed:
        less = {name: value for name, value in kept.items() if name != key}
        path.write_text(json.dumps(less))
        refused(lambda: lf.load(path), "damaged", "estimate", error=FileError)
    for key in ("classifiers", "model", "verdict", "classes"):
        for value in (3, "x", [3], {"a": 1}, [[1]]):
            path.write_text(json.dumps({**kept, key: value}))
            refused(lambda: lf.load(path), "damaged", error=FileError)
    path.write_text(json.dumps(kept).replace("0.", "NaN", 1))
    refused(lambda: lf.load(path), error=FileError)


@pytest.mark.parametrize(
    "classes", [(b"no", b"yes"), (decimal.Decimal("0.1"), decimal.Decimal("0.2"))]
)
def test_labels_that_json_cannot_hold(shelf, classes):
    rows = [[classes[code] for code in row] for row in VOTES.tolist()]
    found = lf.estimate(rows)
    refused(lambda: found.save(shelf / "e.json"), "JSON", "labels", error=FileError)
    assert not (shelf / "e.json").exists()
    assert set(found.label(rows)) == set(classes)


def test_every_error_is_the_librarys_own_and_a_value_error():
    for error in (VotesError, OptionsError, FileError, NotIdentifiedError):
        assert issubclass(error, LabelfreeError)
        assert issubclass(error, ValueError)
    assert issubclass(LabelfreeWarning, UserWarning)
