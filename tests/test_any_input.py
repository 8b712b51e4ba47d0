"""Whatever comes to the front door: it ends in a valid estimate or in the library's own error.

More than three thousand generated inputs. Many of them start from votes that can be graded, so that both ends are
reached; the rest is made of anything.
"""

import json
import warnings
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import labelfree as lf
from labelfree import LabelfreeError, LabelfreeWarning, NotIdentifiedError, simulate

from .sentences import check_sentence

NAMES = ["ann", "bob", "cem", "dee", "eve", "fay"]

# --- how a call ends ------------------------------------------------------------------------------


def ending(votes, options):
    """Grade the votes; check what came of it, and say which of the three ends it was."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LabelfreeWarning)  # any other is an error, as everywhere
        try:
            found = lf.estimate(votes, **options)
        except LabelfreeError as error:
            check_sentence(str(error))
            return "refused"
        check_words(found)
        if found.verdict.level == "unidentified":
            check_no_numbers(found)
            return "unidentified"
        check_numbers(found)
        check_labels(found, votes, options)
        return "graded"


def check_words(found):
    assert repr(found)
    assert found.verdict.reasons
    assert len(found.table()) == len(found.classifiers)
    json.dumps(found.as_dict(), allow_nan=False, default=str)


def check_no_numbers(found):
    for name in ("accuracy", "balanced_accuracy", "class_probabilities", "confusion"):
        with pytest.raises(NotIdentifiedError):
            getattr(found, name)


def check_numbers(found):
    for name in found.quantities:
        rates = np.asarray(getattr(found, name))
        assert np.all((rates >= 0) & (rates <= 1)), name
        try:
            ends = found.interval(name)
        except NotIdentifiedError:  # where the information does not bound every rate
            assert found.verdict.level == "caution"
            continue
        low, high = np.moveaxis(ends, -1, 0)
        assert np.all((low >= 0) & (high <= 1) & (low <= high)), name
    if len(found.classes) == 2:
        assert 0 < found.prevalence < 1
        assert found.imbalance == pytest.approx(2 * found.prevalence - 1)
    assert np.all((found.class_probabilities >= 0) & (found.class_probabilities <= 1))
    assert found.class_probabilities.sum() == pytest.approx(1)
    assert np.all((found.accuracy >= 0) & (found.accuracy <= 1))
    assert np.all((found.confusion >= 0) & (found.confusion <= 1))
    assert found.confusion.sum(axis=2) == pytest.approx(1)


def check_labels(found, votes, options):
    if isinstance(votes, lf.Tally):
        return
    reading = {
        name: options[name]
        for name in ("missing", "item", "classifier", "vote", "classifiers")
        if name in options
    }
    labels = column_of(found.label(votes, **reading), "label")
    beside = "probability" if len(found.classes) == 2 else f"probability_{found.classes[-1]}"
    shares = column_of(found.probability(votes, **reading), beside)
    assert len(labels) == len(shares) == found.items
    assert np.all((shares >= 0) & (shares <= 1))
    assert set(labels.tolist()) <= set(found.classes)


def column_of(answer, name):
    if isinstance(answer, pl.LazyFrame):
        answer = answer.collect()
    return answer if isinstance(answer, np.ndarray) else np.asarray(answer[name])


def all_end_well(inputs, number):
    """Throw that many inputs at the front door; return how often each end was reached."""
    ends = Counter()

    # The same inputs on every run: a failure in CI is one that can be had again.
    @settings(
        max_examples=number,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(inputs)
    def throw(case):
        ends[ending(*case)] += 1

    throw()
    assert ends.total() >= number
    return ends


# --- what is thrown -------------------------------------------------------------------------------

NOTHING = st.sampled_from([None, float("nan"), pd.NA, pd.NaT, np.nan])
LABELS = st.one_of(
    st.sampled_from([0, 1, -1, "0", "1", "no", "yes", True, False, 0.0, 1.0, ""]),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=3),
    st.binary(max_size=2),
    st.booleans(),
)
CELLS = st.one_of(NOTHING, LABELS, st.lists(LABELS, max_size=2), st.dates(), st.complex_numbers())
PAIRS = st.sampled_from(
    [
        *[(0, 1), (-1, 1), (1, 2), ("no", "yes"), (False, True), (0.0, 1.0), ("", "a"), (2**40, 7)],
        *[(0, 1, 2), ("a", "b", "c", "d"), (0.5, 1.0, 1.5)],
    ]
)
OPTIONS = {
    "method": st.sampled_from(["map", "likelihood", "tensor", "mean"]),
    "vector": st.sampled_from(["triplets", "log-linear", "iterated", None]),
    "prevalence": st.one_of(st.floats(), st.floats(0.01, 0.99), LABELS),
    "positive": st.one_of(st.just(1), LABELS),
    "classes": st.one_of(PAIRS, st.lists(LABELS, max_size=3)),
    "missing": st.one_of(st.just(-1), CELLS, st.lists(LABELS, max_size=2)),
    "ordered": st.booleans(),
    "classifiers": st.lists(st.sampled_from([*NAMES, "gus", 1]), max_size=5),
    "item": st.sampled_from([*NAMES, "item"]),
    "classifier": st.sampled_from([*NAMES, "item"]),
    "vote": st.sampled_from([*NAMES, "item"]),
    "gold": st.one_of(
        st.dictionaries(st.integers(-1, 9), LABELS, max_size=3),
        st.dictionaries(st.integers(0, 9), st.integers(0, 1), max_size=8),
        st.lists(CELLS, max_size=4),
        st.sampled_from(NAMES),
    ),
    "known": st.dictionaries(
        st.sampled_from([*NAMES, "classifier_1"]),
        st.dictionaries(
            st.sampled_from(["sensitivity", "specificity", "x"]),
            st.one_of(st.floats(0, 1), st.tuples(st.floats(), st.integers(0, 9)), LABELS),
        ),
        max_size=2,
    ),
    "dependence": st.one_of(
        st.sampled_from(["auto", "test", "ignore", "none"]),
        st.lists(st.lists(st.sampled_from(NAMES), max_size=3), max_size=2),
    ),
    "level": st.one_of(st.floats(), st.floats(0.5, 0.99)),
    "prior": st.one_of(st.floats(), st.floats(0, 5)),
}


@st.composite
def some_options(draw):
    """One to three options, each with what it may be given, or with what it may not."""
    names = draw(st.lists(st.sampled_from(sorted(OPTIONS)), min_size=1, max_size=3, unique=True))
    return {name: draw(OPTIONS[name]) for name in names}


@st.composite
def gradable(draw):
    """Codes that an ensemble could have voted, −1 where a vote is missing."""
    m = draw(st.integers(3, 6))
    prevalence = draw(st.floats(0.1, 0.9))
    low = draw(st.floats(0.2, 0.9))
    psi, eta = simulate.rates(m, low, 0.95, seed=draw(st.integers(0, 99)))
    return simulate.votes(
        draw(st.integers(1, 150)),
        sensitivity=psi,
        specificity=eta,
        prevalence=prevalence,
        missing=draw(st.sampled_from([0.0, 0.2, 0.7])),
        seed=draw(st.integers(0, 99)),
    ).votes


@st.composite
def objects(draw):
    """A table of objects: gradable votes in some pair of labels with a few odd cells, or anything."""
    if draw(st.booleans()):
        pair, gap = draw(PAIRS), draw(NOTHING)
        table = np.array([*pair, gap], dtype=object)[draw(gradable())]
    else:
        n, m = draw(st.integers(0, 6)), draw(st.integers(0, 6))
        some = st.one_of(st.sampled_from(draw(PAIRS)), CELLS) if draw(st.booleans()) else CELLS
        table = np.empty((n, m), dtype=object)
        for place in np.ndindex(n, m):
            table[place] = draw(some)
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 3]))):
        if table.size:
            row, column = (draw(st.integers(0, size - 1)) for size in table.shape)
            table[row, column] = draw(CELLS)
    return table


@st.composite
def arrays(draw):
    """Arrays of any type, layout and number of dimensions."""
    table = draw(st.one_of(gradable(), objects()))
    kind = draw(
        st.sampled_from(
            ["b", "B", "i8", "u8", "f2", "f4", "f8", "?", "O", "U3", "S3", "c16", "M8[D]", "T"]
        )
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy's own, while the input is made
            table = table.astype("StringDType" if kind == "T" else kind)
    except (ValueError, TypeError, OverflowError):
        pass  # what does not fit stays as it was
    shape = draw(st.sampled_from(["rows", "columns", "turned", "strided", "flat", "deep", "lists"]))
    return {
        "rows": lambda: np.ascontiguousarray(table),
        "columns": lambda: np.asfortranarray(table),
        "turned": lambda: table.T,
        "strided": lambda: np.repeat(table, 2, axis=0)[::-2],
        "flat": lambda: table.reshape(-1),
        "deep": lambda: table[None],
        "lists": table.tolist,
    }[shape]()


@st.composite
def frames(draw):
    """Tables of every library, some with columns that are too long, too short or named twice."""
    table = draw(objects())
    names = draw(st.permutations([*NAMES, "item"]))[: table.shape[1]]
    columns = {name: table[:, place].tolist() for place, name in enumerate(names)}
    if columns and draw(st.integers(0, 9)) == 0:
        columns[names[0]] = columns[names[0]][1:]
    make = draw(st.sampled_from([dict, pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.table]))
    try:
        frame = make(columns)
        if isinstance(frame, pd.DataFrame) and len(names) > 1 and draw(st.integers(0, 9)) == 0:
            frame.columns = [names[1], *names[1:]]
    except Exception:  # noqa: BLE001 (the library of the frame refuses it: then it is no input)
        return columns
    return frame


@st.composite
def long_tables(draw):
    """One row a vote: gradable votes in any order, some rows gone, doubled or odd."""
    codes = draw(gradable())
    items, places = np.nonzero(codes >= 0)
    pair = draw(PAIRS)
    rows = [
        (int(item), NAMES[place], pair[codes[item, place]])
        for item, place in zip(items, places, strict=True)
    ]
    for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):
        odd = (draw(CELLS), draw(CELLS), draw(CELLS))
        whole = rows[draw(st.integers(0, len(rows) - 1))] if rows else odd
        keep = draw(st.tuples(st.booleans(), st.booleans(), st.booleans()))
        rows.append(tuple(w if k else o for w, o, k in zip(whole, odd, keep, strict=True)))
    turned = draw(st.integers(0, max(0, len(rows) - 1)))
    rows = rows[turned:] + rows[:turned]
    columns = {
        name: [row[place] for row in rows] for place, name in enumerate(("task", "rater", "said"))
    }
    try:
        frame = draw(st.sampled_from([dict, pd.DataFrame, pl.DataFrame, pa.table]))(columns)
    except Exception:  # noqa: BLE001 (as above)
        frame = columns
    return frame, {"item": "task", "classifier": "rater", "vote": "said"}


@st.composite
def texts(draw):
    """What a file may hold: a table in some dialect, with anything put in somewhere; or anything."""
    if draw(st.integers(0, 4)) == 0:
        return draw(st.binary(max_size=60))
    pair = draw(
        st.sampled_from([("0", "1"), ("no", "yes"), ("-1", "1"), ("a\nb", "c"), ("é", "ñ")])
    )
    separator = draw(st.sampled_from([",", ",", "\t", ";"]))
    end = draw(st.sampled_from(["\n", "\n", "\r\n", "\r"]))
    cells = np.array([f'"{label}"' if "\n" in label else label for label in (*pair, "")])
    codes = draw(gradable())
    lines = [separator.join(NAMES[: codes.shape[1]])]
    lines += [separator.join(row) for row in cells[codes].tolist()]
    for _ in range(draw(st.sampled_from([0, 0, 1]))):
        line = draw(st.integers(0, len(lines) - 1))
        odd = draw(st.sampled_from([separator, '"', "nan", "inf", "é", "\0", "1e400", end, "x,y"]))
        at = draw(st.integers(0, len(lines[line])))
        lines[line] = lines[line][:at] + odd + lines[line][at:]
    content = end.join(lines) + draw(st.sampled_from(["", end]))
    return draw(st.sampled_from([b"", b"", b"\xef\xbb\xbf"])) + content.encode()


@st.composite
def json_lines(draw):
    """Lines of JSON: gradable votes, with a record of another form here and there."""
    pair = draw(st.sampled_from([(0, 1), ("no", "yes"), (False, True), (0.5, 1)]))
    codes = draw(gradable())
    lines = [
        json.dumps(dict(zip(NAMES, [(*pair, None)[code] for code in row], strict=False)))
        for row in codes.tolist()
    ]
    odd = [
        "{",
        "[]",
        "1",
        '{"ann": [1]}',
        '{"gus": 1}',
        '{"ann": {"x": 1}}',
        "",
        "null",
        '{"ann":NaN}',
    ]
    for _ in range(draw(st.sampled_from([0, 0, 1]))):
        lines.insert(draw(st.integers(0, len(lines))), draw(st.sampled_from(odd)))
    return "\n".join(lines).encode()


@st.composite
def tallies(draw):
    """Codes and counts that may make a tally."""
    codes = draw(st.one_of(gradable(), gradable(), objects()))
    counts = draw(
        st.one_of(
            st.just([1] * len(codes)),
            st.lists(st.integers(0, 9), min_size=len(codes), max_size=len(codes)),
            st.lists(st.one_of(st.floats(), st.integers(-1, 9)), max_size=8),
        )
    )
    return codes, counts


# --- the door -------------------------------------------------------------------------------------

NO_OPTIONS = st.just({})


@pytest.mark.slow
def test_arrays_and_lists():
    ends = all_end_well(st.tuples(arrays(), NO_OPTIONS), 800)
    assert min(ends["refused"], ends["graded"], ends["unidentified"]) >= 20, ends


@pytest.mark.slow
def test_tables():
    ends = all_end_well(st.tuples(frames(), NO_OPTIONS), 600)
    assert min(ends["refused"], ends["graded"], ends["unidentified"]) >= 20, ends


@pytest.mark.slow
def test_long_tables():
    ends = all_end_well(long_tables(), 300)
    assert min(ends["refused"], ends["graded"], ends["unidentified"]) >= 10, ends


@pytest.mark.slow
def test_options():
    zero_one = gradable().map(lambda codes: np.maximum(codes, 0))
    named = zero_one.map(lambda codes: dict(zip(NAMES, codes.T, strict=False)))
    votes = st.one_of(zero_one, named, gradable(), frames())
    ends = all_end_well(st.tuples(votes, some_options()), 800)
    assert min(ends["refused"], ends["graded"]) >= 20, ends


@pytest.mark.slow
def test_files(tmp_path):
    @st.composite
    def files(draw):
        content, kinds = draw(
            st.one_of(
                st.tuples(texts(), st.just((".csv", ".tsv"))),
                st.tuples(json_lines(), st.just((".jsonl", ".ndjson"))),
                st.tuples(st.binary(max_size=60), st.just((".parquet", ".pq", ".jsonl"))),
            )
        )
        path = tmp_path / f"votes{draw(st.sampled_from(kinds))}"
        path.write_bytes(content)
        return path, {}

    ends = all_end_well(files(), 400)
    assert min(ends["refused"], ends["graded"], ends["unidentified"]) >= 10, ends


@pytest.mark.slow
def test_tallies():
    ends = Counter()

    @settings(max_examples=300, deadline=None, derandomize=True, database=None)
    @given(tallies())
    def throw(case):
        try:
            counted = lf.Tally.from_codes(*case)
        except LabelfreeError as error:
            check_sentence(str(error))
            ends["refused"] += 1
            return
        ends[ending(counted, {})] += 1

    throw()
    assert min(ends["refused"], ends["graded"]) >= 10, ends
