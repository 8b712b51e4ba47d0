"""Every kind of input gives the same tally and the same labels."""

import decimal
import itertools
import time
import tracemalloc

import duckdb
import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import labelfree as lf
from labelfree import Tally, _long_form, _tally, simulate, tally
from labelfree._patterns import Reader
from labelfree._votes import read_votes

from . import naive

NAMES = ("ann", "bob", "cem", "dee")
RATES = {"sensitivity": [0.9, 0.8, 0.85, 0.7], "specificity": [0.8, 0.9, 0.75, 0.7]}
ITEMS = 400

WHOLE = simulate.votes(ITEMS, **RATES, seed=1).votes  # 0 and 1
HOLED = simulate.votes(ITEMS, **RATES, missing=0.15, seed=2).votes  # and −1 where missing

TEXT, NUMBERS, TRUTHS, BYTES = ("no", "yes"), (0, 1), (False, True), (b"no", b"yes")


def reference(codes, classes, names=NAMES):
    return Tally.from_codes(codes, np.ones(len(codes)), classifiers=names, classes=classes)


def cells(codes, classes, gap=None):
    """Rows of labels, with `gap` where the vote is missing."""
    return [[gap if code < 0 else classes[code] for code in row] for row in codes.tolist()]


def columns(codes, classes, gap=None, names=NAMES):
    return dict(zip(names, map(list, zip(*cells(codes, classes, gap), strict=True)), strict=True))


def check_same(votes, codes, classes, **reading):
    """The tally, every estimated number, and the label of every item are what the codes give."""
    assert tally(votes, **reading) == reference(codes, classes, tally(votes, **reading).classifiers)
    found = lf.estimate(votes, **reading)
    wanted = lf.estimate(codes, missing=-1)
    assert found.classes == classes
    assert [type(label) for label in found.classes] == [type(label) for label in classes]
    assert found.sensitivity.tolist() == wanted.sensitivity.tolist()
    assert found.prevalence == wanted.prevalence
    shares = wanted.probability(codes)
    labels = [classes[code] for code in wanted.label(codes)]
    answers = found.label(votes)
    if isinstance(answers, np.ndarray):
        assert answers.tolist() == labels
        assert found.probability(votes).tolist() == shares.tolist()
        return answers
    lazy = isinstance(answers, pl.LazyFrame | duckdb.DuckDBPyRelation)
    if lazy:
        answers = nw.from_native(answers).collect().to_native()
    assert list(answers["label"]) == labels or answers["label"].to_pylist() == labels
    if lazy:  # its own engine computes: the sum in another order, and its own exponential function
        assert np.asarray(answers["probability"]) == pytest.approx(shares, abs=1e-14)
    else:
        assert np.array_equal(np.asarray(answers["probability"]), shares)
    return answers


# --- arrays -------------------------------------------------------------------------------------


INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", ">i2", "<u4"]
FLOATS = ["float16", "float32", "float64", "longdouble", ">f8"]


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS, "bool"])
def test_arrays_of_numbers(dtype):
    classes = TRUTHS if dtype == "bool" else (0.0, 1.0) if dtype in FLOATS else NUMBERS
    labels = check_same(WHOLE.astype(dtype), WHOLE, classes)
    assert labels.dtype == np.dtype(dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_arrays_of_floats_with_nan(dtype):
    votes = np.where(HOLED < 0, np.nan, HOLED).astype(dtype)
    labels = check_same(votes, HOLED, (0.0, 1.0))
    assert labels.dtype == np.dtype(dtype)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_arrays_of_whole_numbers_with_a_number_for_missing(dtype):
    votes = np.where(HOLED < 0, 9, HOLED).astype(dtype)
    assert check_same(votes, HOLED, NUMBERS, missing=9).dtype == np.dtype(dtype)


def test_signs():
    votes = (2 * WHOLE - 1).astype(np.int8)
    assert check_same(votes, WHOLE, (-1, 1)).dtype == np.int8
    signed = np.where(HOLED < 0, 0, 2 * HOLED - 1)
    check_same(signed, HOLED, (-1, 1), missing=0)


@pytest.mark.parametrize(
    ("classes", "dtype"), [(TEXT, "U3"), (TEXT, ">U9"), (BYTES, "S3"), (TEXT, "T"), (TEXT, object)]
)
def test_arrays_of_text(classes, dtype):
    dtype = np.dtypes.StringDType() if dtype == "T" else dtype
    assert check_same(np.array(cells(WHOLE, classes), dtype=dtype), WHOLE, classes).dtype == dtype
    gap = b"?" if classes is BYTES else "?"
    votes = np.array(cells(HOLED, classes, gap), dtype=dtype)
    assert check_same(votes, HOLED, classes, missing=gap).dtype == dtype


@pytest.mark.parametrize("classes", [TEXT, NUMBERS, TRUTHS, BYTES, (0.25, 1.5)])
@pytest.mark.parametrize(
    "gap",
    [None, np.nan, float("nan"), pd.NA, pd.NaT, np.float32("nan"), decimal.Decimal("nan")],
    ids=repr,
)
def test_arrays_of_objects_with_any_word_for_nothing(classes, gap):
    votes = np.array(cells(HOLED, classes, gap), dtype=object)
    assert check_same(votes, HOLED, classes).dtype == object


def test_objects_of_numpys_own_types_are_pythons():
    votes = np.empty(WHOLE.shape, dtype=object)
    for place, code in np.ndenumerate(WHOLE):
        votes[place] = (np.int8, np.float32, np.bool_, np.longdouble, int)[sum(place) % 5](code)
    assert tally(votes).classes == (0, 1)
    assert tally(votes, classes=(0, 1)) == tally(WHOLE)
    text = np.array(np.array(TEXT)[WHOLE].tolist(), dtype=object)
    text[0, 0] = np.str_(text[0, 0])
    assert all(type(label) is str for label in tally(text).classes)


@pytest.mark.parametrize("dtype", ["int8", "int64", "float64", "bool", "U3", "S3", object])
def test_masked_arrays(dtype):
    classes = {"U3": TEXT, "S3": BYTES, object: TEXT}.get(dtype, NUMBERS)
    data = np.array(cells(np.abs(HOLED), classes), dtype=dtype)
    classes = tuple(np.array(classes, dtype=dtype).tolist())
    votes = np.ma.masked_array(data, mask=HOLED < 0)
    assert check_same(votes, HOLED, classes).dtype == dtype
    assert check_same(np.ma.masked_array(data), np.abs(HOLED), classes).dtype == dtype
    under = np.ma.masked_array(data.copy(), mask=HOLED < 0)
    under.data[HOLED < 0] = data.flat[0]  # what lies under the mask is no vote
    check_same(under, HOLED, classes)


def locked(table):
    table = table.copy()
    table.flags.writeable = False
    return table


LAYOUTS = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "transposed": lambda table: np.ascontiguousarray(table.T).T,
    "sliced": lambda table: np.repeat(np.repeat(table, 2, axis=0), 3, axis=1)[::2, ::3],
    "sliced columns": lambda table: np.asfortranarray(np.repeat(table, 2, axis=0))[::2],
    "turned around": lambda table: np.ascontiguousarray(table[::-1, ::-1])[::-1, ::-1],
    "read-only": locked,
    "matrix": lambda table: table.view(np.matrix),
}


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["int8", "float32", "U3", object])
def test_arrays_in_any_layout(layout, dtype):
    classes = TEXT if dtype in {"U3", object} else tuple(np.array(NUMBERS, dtype).tolist())
    table = np.array(cells(WHOLE, classes), dtype=dtype)
    votes = LAYOUTS[layout](table)
    before = votes.copy()
    check_same(votes, WHOLE, classes)
    assert np.array_equal(votes, before)


@pytest.mark.parametrize("classes", [TEXT, NUMBERS, TRUTHS, BYTES, (0.0, 1.0)])
@pytest.mark.parametrize("gap", [None, float("nan"), pd.NA])
def test_lists_of_lists(classes, gap):
    check_same(cells(WHOLE, classes), WHOLE, classes)
    votes = cells(HOLED, classes, gap)
    as_floats = gap != gap if isinstance(gap, float) else False  # noqa: PLR0124
    wanted = (0.0, 1.0) if as_floats and classes in (NUMBERS, TRUTHS) else classes
    check_same(votes, HOLED, wanted)
    check_same(tuple(map(tuple, votes)), HOLED, wanted)
    check_same([np.array(row, dtype=object) for row in votes], HOLED, classes)


def test_anything_that_lays_itself_out_as_an_array():
    class Tensor:
        def __array__(self, dtype=None, copy=None):
            return WHOLE

    check_same(Tensor(), WHOLE, NUMBERS)


# --- wide tables --------------------------------------------------------------------------------


def pandas_of(dtype):
    return lambda table: pd.DataFrame(
        {name: pd.Series(v, dtype=dtype) for name, v in table.items()}
    )


def polars_of(dtype):
    return lambda table: pl.DataFrame(
        {name: pl.Series(v, dtype=dtype) for name, v in table.items()}
    )


def arrow_of(dtype):
    return lambda table: pa.table({name: pa.array(v, dtype) for name, v in table.items()})


def arrow_dictionary(table):
    return pa.table({name: pa.array(v).dictionary_encode() for name, v in table.items()})


def in_chunks(make):
    """Make a PyArrow table of several chunks, with dictionaries that differ."""

    def join(table):
        parts = [
            make({name: v[start : start + 90] for name, v in table.items()})
            for start in range(0, ITEMS, 90)
        ]
        return pa.concat_tables(parts)

    return join


def polars_in_chunks(table):
    halves = [{name: v[part] for name, v in table.items()} for part in (slice(7), slice(7, None))]
    return pl.concat([pl.DataFrame(half) for half in halves], rechunk=False)


def duckdb_of(table):
    frame = pl.DataFrame(table).with_row_index("place")  # noqa: F841 (DuckDB finds it by name)
    return duckdb.sql("select * exclude place from frame order by place")


ARROW_TEXT = pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string()))
# How to make a table of columns, and the labels that it can hold.
TABLES = {
    "mapping of lists": (dict, TEXT),
    "mapping of lists of numbers": (dict, NUMBERS),
    "mapping of lists of truth values": (dict, TRUTHS),
    "mapping of tuples": (lambda table: {name: tuple(v) for name, v in table.items()}, BYTES),
    "mapping of arrays of objects": (
        lambda table: {name: np.array(v, dtype=object) for name, v in table.items()},
        TEXT,
    ),
    "mapping of pandas series": (
        lambda table: {name: pd.Series(v, dtype="Int8") for name, v in table.items()},
        NUMBERS,
    ),
    "mapping of all kinds": (
        lambda table: {
            name: make(v)
            for (name, v), make in zip(
                table.items(), (list, pl.Series, pa.array, pd.Categorical), strict=True
            )
        },
        TEXT,
    ),
    "pandas object": (pandas_of(object), TEXT),
    "pandas object of numbers": (pandas_of(object), NUMBERS),
    "pandas object of truth values": (pandas_of(object), TRUTHS),
    "pandas object of bytes": (pandas_of(object), BYTES),
    "pandas str": (pandas_of("str"), TEXT),
    "pandas string": (pandas_of("string"), TEXT),
    "pandas string[pyarrow]": (pandas_of("string[pyarrow]"), TEXT),
    "pandas category": (pandas_of("category"), TEXT),
    "pandas category of numbers": (pandas_of("category"), NUMBERS),
    "pandas category of truth values": (pandas_of("category"), TRUTHS),
    "pandas ordered category": (pandas_of(pd.CategoricalDtype(["yes", "no"], ordered=True)), TEXT),
    "pandas float64": (pandas_of("float64"), (0.0, 1.0)),
    "pandas float16": (pandas_of("float16"), (0.0, 1.0)),
    "pandas Float32": (pandas_of("Float32"), (0.0, 1.0)),
    "pandas Int64": (pandas_of("Int64"), NUMBERS),
    "pandas UInt8": (pandas_of("UInt8"), NUMBERS),
    "pandas boolean": (pandas_of("boolean"), TRUTHS),
    "pandas int64[pyarrow]": (pandas_of("int64[pyarrow]"), NUMBERS),
    "pandas double[pyarrow]": (pandas_of("double[pyarrow]"), (0.0, 1.0)),
    "pandas bool[pyarrow]": (pandas_of("bool[pyarrow]"), TRUTHS),
    "pandas dictionary[pyarrow]": (pandas_of(ARROW_TEXT), TEXT),
    "polars String": (polars_of(pl.String), TEXT),
    "polars Categorical": (polars_of(pl.Categorical), TEXT),
    "polars Enum": (polars_of(pl.Enum(["yes", "no"])), TEXT),
    "polars Boolean": (polars_of(pl.Boolean), TRUTHS),
    "polars Int8": (polars_of(pl.Int8), NUMBERS),
    "polars UInt64": (polars_of(pl.UInt64), NUMBERS),
    "polars Int128": (polars_of(pl.Int128), NUMBERS),
    "polars Float32": (polars_of(pl.Float32), (0.0, 1.0)),
    "polars Decimal": (polars_of(pl.Decimal(10, 2)), (0.0, 1.0)),
    "polars Binary": (polars_of(pl.Binary), BYTES),
    "polars Object": (polars_of(pl.Object), TEXT),
    "polars in chunks": (polars_in_chunks, TEXT),
    "polars lazy": (pl.LazyFrame, TEXT),
    "polars lazy numbers": (pl.LazyFrame, NUMBERS),
    "pyarrow string": (arrow_of(pa.string()), TEXT),
    "pyarrow large_string": (arrow_of(pa.large_string()), TEXT),
    "pyarrow string_view": (arrow_of(pa.string_view()), TEXT),
    "pyarrow int8": (arrow_of(pa.int8()), NUMBERS),
    "pyarrow double": (arrow_of(pa.float64()), (0.0, 1.0)),
    "pyarrow half float": (arrow_of(pa.float16()), (0.0, 1.0)),
    "pyarrow bool": (arrow_of(pa.bool_()), TRUTHS),
    "pyarrow binary": (arrow_of(pa.binary()), BYTES),
    "pyarrow decimal": (
        lambda table: arrow_of(pa.int64())(table).cast(
            pa.schema([(name, pa.decimal128(22, 1)) for name in NAMES])
        ),
        (0.0, 1.0),
    ),
    "pyarrow dictionary": (arrow_dictionary, TEXT),
    "pyarrow dictionary of numbers": (arrow_dictionary, NUMBERS),
    "pyarrow in chunks": (in_chunks(arrow_of(pa.string())), TEXT),
    "pyarrow numbers in chunks": (in_chunks(arrow_of(pa.int16())), NUMBERS),
    "pyarrow dictionary in chunks": (in_chunks(arrow_dictionary), TEXT),
    "duckdb": (duckdb_of, TEXT),
    "duckdb numbers": (duckdb_of, NUMBERS),
}


@pytest.mark.parametrize("codes", [WHOLE, HOLED], ids=["whole", "with gaps"])
@pytest.mark.parametrize("kind", TABLES)
def test_wide_tables(kind, codes):
    make, classes = TABLES[kind]
    check_same(make(columns(codes, classes)), codes, classes)


def test_columns_of_different_kinds_of_numbers_side_by_side():
    table = pl.DataFrame(
        {
            "ann": pl.Series(WHOLE[:, 0], dtype=pl.Int8),
            "bob": pl.Series(WHOLE[:, 1], dtype=pl.Float64),
            "cem": pl.Series(WHOLE[:, 2], dtype=pl.UInt32),
            "dee": pl.Series(WHOLE[:, 3] == 1),
        }
    )
    assert tally(table) == reference(WHOLE, NUMBERS)
    gaps = table.with_columns(pl.when(pl.int_range(pl.len()) > 0).then(pl.col("ann")).alias("ann"))
    codes = WHOLE.copy()
    codes[0, 0] = -1
    assert tally(gaps) == reference(codes, NUMBERS)


def test_names_that_are_no_text_are_written_as_text():
    frame = pd.DataFrame(WHOLE)
    assert tally(frame).classifiers == ("0", "1", "2", "3")
    found = lf.estimate(frame)
    assert list(found.label(frame).columns) == [0, 1, 2, 3, "label", "probability"]
    assert lf.estimate(frame, classifiers=[3, 1, "0"]).classifiers == ("3", "1", "0")
    pairs = pd.DataFrame(WHOLE, columns=pd.MultiIndex.from_product([["a", "b"], [1, 2]]))
    assert tally(pairs).classifiers == ("('a', 1)", "('a', 2)", "('b', 1)", "('b', 2)")


def test_an_items_column_is_no_classifier():
    table = {"item": list(range(ITEMS)), **columns(HOLED, TEXT)}
    assert tally(table) == reference(HOLED, TEXT)
    patients = {"patient": [f"p{i}" for i in range(ITEMS)], **columns(HOLED, TEXT)}
    assert tally(pd.DataFrame(patients), item="patient") == reference(HOLED, TEXT)
    assert tally(table, classifiers=NAMES) == reference(HOLED, TEXT)
    chosen = tally(pl.DataFrame(patients), classifiers=("dee", "ann", "bob"))
    assert chosen == reference(HOLED[:, [3, 0, 1]], TEXT, ("dee", "ann", "bob"))


# --- files --------------------------------------------------------------------------------------


def write_text(separator):
    return lambda frame, path: frame.write_csv(path, separator=separator)


FILES = {
    "v.csv": write_text(","),
    "v.TSV": write_text("\t"),
    "v.parquet": pl.DataFrame.write_parquet,
    "v.pq": pl.DataFrame.write_parquet,
    "v.jsonl": pl.DataFrame.write_ndjson,
    "v.ndjson": pl.DataFrame.write_ndjson,
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("classes", [TEXT, NUMBERS, TRUTHS, (0.5, 1.5)])
def test_files(name, classes, tmp_path):
    for codes in (WHOLE, HOLED):
        FILES[name](pl.DataFrame(columns(codes, classes)), tmp_path / name)
        check_same(tmp_path / name, codes, classes)
        check_same(str(tmp_path / name), codes, classes)


@pytest.mark.parametrize("name", FILES)
def test_long_files(name, tmp_path):
    FILES[name](pl.DataFrame(long_of(HOLED, TEXT)), tmp_path / name)
    reading = {"item": "task", "classifier": "rater", "vote": "said"}
    check_same(tmp_path / name, HOLED, TEXT, **reading)


def test_a_word_for_missing_in_some_columns_of_a_file_leaves_numbers_numbers(tmp_path):
    table = columns(WHOLE, NUMBERS)
    table["bob"] = ["?" if place % 7 == 0 else vote for place, vote in enumerate(table["bob"])]
    codes = WHOLE.copy()
    codes[::7, 1] = -1
    lines = [
        ",".join(table),
        *(",".join(map(str, row)) for row in zip(*table.values(), strict=True)),
    ]
    (tmp_path / "v.csv").write_text("\n".join(lines))
    assert tally(tmp_path / "v.csv", missing="?") == reference(codes, NUMBERS)
    truths = "\n".join(lines).replace("0", "false").replace("1", "TRUE")
    (tmp_path / "v.csv").write_text(truths)
    assert tally(tmp_path / "v.csv", missing="?") == reference(codes, TRUTHS)
    found = lf.estimate(WHOLE, classifiers=NAMES)
    (tmp_path / "v.csv").write_text("ann,bob,cem,dee\n?,1,?,1\n0,?,0,?\n1,1,1,1")
    labelled = found.label(tmp_path / "v.csv", missing="?")
    assert labelled["label"].to_list()[1:] == [0, 1]
    assert labelled["ann"].to_list() == ["?", "0", "1"]


# --- the long form ------------------------------------------------------------------------------

LONG = {"item": "task", "classifier": "rater", "vote": "said"}


def long_of(codes, classes, item=int, rater=str, seed=0, gaps=False):
    """One row a vote, in any order; `gaps` keeps a row for a missing vote."""
    rows, raters = np.nonzero(codes >= -gaps)
    order = np.random.default_rng(seed).permutation(len(rows))
    rows, raters = rows[order].tolist(), raters[order].tolist()
    said = [
        None if codes[i, j] < 0 else classes[codes[i, j]] for i, j in zip(rows, raters, strict=True)
    ]
    return {
        "task": [item(row) for row in rows],
        "rater": [rater(NAMES[place]) for place in raters],
        "said": said,
    }


def padded(row):
    return f"task {row:04}"


LONG_TABLES = {
    "mapping": dict,
    "pandas": pd.DataFrame,
    "pandas category": lambda table: pd.DataFrame(table).astype("category"),
    "pandas pyarrow": lambda table: pd.DataFrame(table).convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.DataFrame,
    "polars lazy": pl.LazyFrame,
    "polars Categorical": lambda table: pl.DataFrame(table).cast({pl.String: pl.Categorical}),
    "pyarrow": pa.table,
    "pyarrow dictionary": arrow_dictionary,
    "pyarrow string_view": lambda table: pa.table(
        {"task": table["task"], "rater": table["rater"], "said": pa.array(table["said"])}
    ),
    "duckdb": duckdb_of,
}


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("item", [int, padded, float])
@pytest.mark.parametrize("kind", LONG_TABLES)
def test_long_tables(kind, item, gaps):
    votes = LONG_TABLES[kind](long_of(HOLED, TEXT, item=item, gaps=gaps))
    answers = check_same(votes, HOLED, TEXT, **LONG)
    items = answers["task"].to_pylist() if isinstance(answers, pa.Table) else list(answers["task"])
    assert items == [item(row) for row in range(ITEMS)]


@pytest.mark.parametrize("classes", [NUMBERS, TRUTHS, (0.5, 1.5), BYTES])
@pytest.mark.parametrize("kind", ["mapping", "pandas", "polars", "pyarrow"])
def test_long_tables_of_any_labels(kind, classes):
    for codes in (WHOLE, HOLED):
        check_same(LONG_TABLES[kind](long_of(codes, classes)), codes, classes, **LONG)


def test_the_long_form_in_any_order():
    tallies = [tally(long_of(HOLED, TEXT, seed=seed), **LONG) for seed in range(5)]
    assert all(each == reference(HOLED, TEXT) for each in tallies)


def test_the_long_form_with_items_and_classifiers_left_out():
    codes = HOLED.copy()
    codes[10:20] = -1
    codes[:, 2] = -1
    kept = codes[(codes >= 0).any(axis=1)]
    counted = tally(long_of(codes, TEXT), **LONG)
    assert counted == reference(kept[:, [0, 1, 3]], TEXT, ("ann", "bob", "dee"))
    named = tally(long_of(codes, TEXT), **LONG, classifiers=NAMES)
    assert named == reference(kept, TEXT)
    turned = tally(long_of(codes, TEXT), **LONG, classifiers=NAMES[::-1])
    assert turned == reference(kept[:, ::-1], TEXT, NAMES[::-1])


def test_classifiers_of_the_long_form_may_be_numbers():
    numbered = long_of(HOLED, TEXT, rater=lambda name: 8 + NAMES.index(name))
    assert tally(pl.DataFrame(numbered), **LONG) == reference(HOLED, TEXT, ("8", "9", "10", "11"))


def test_items_of_the_long_form_may_be_dates():
    dates = pd.date_range("2020-01-01", periods=ITEMS, freq="D")
    long = pd.DataFrame(long_of(HOLED, TEXT, item=lambda row: dates[row]))
    answers = check_same(long, HOLED, TEXT, **LONG)
    assert list(answers["task"]) == list(dates)
    assert answers.index.tolist() == list(range(ITEMS))


def test_columns_of_the_long_form_may_have_any_names():
    names = ["row", "place", "key"]
    for order in itertools.permutations(names):
        long = pl.DataFrame(long_of(HOLED, TEXT)).rename(
            dict(zip(LONG.values(), order, strict=True))
        )
        reading = dict(zip(LONG, order, strict=True))
        assert tally(long.with_columns(extra=1), **reading) == reference(HOLED, TEXT)
    bare = pl.DataFrame(long_of(HOLED, TEXT)).rename({"task": "item"})
    assert tally(bare, classifier="rater", vote="said") == reference(HOLED, TEXT)


# --- which labels -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "positive"),
    [((-1, 1), 1), ((0, 1), 1), ((False, True), True), (("no", "yes"), "yes"), ((1, 2), 2)],
)
def test_the_greater_label_is_positive_unless_said_otherwise(labels, positive):
    votes = cells(WHOLE, labels)
    assert tally(votes).classes[1] == positive
    other = labels[0]
    assert tally(votes, positive=other).classes == labels[::-1]
    assert tally(votes, positive=other) == reference(
        1 - WHOLE, labels[::-1], tally(votes).classifiers
    )
    assert tally(votes, classes=labels[::-1]).classes == labels[::-1]
    assert tally(votes, classes=labels[::-1], positive=positive).classes == labels


@pytest.mark.parametrize("make", [np.array, list, pl.DataFrame], ids=["array", "list", "polars"])
def test_a_label_is_named_by_itself_or_as_it_is_written(make):
    codes = HOLED
    for classes, gap, written, gap_written in (
        (NUMBERS, -1, ("0", "1"), "-1"),
        (("0", "1"), "-1", NUMBERS, -1),
    ):
        rows = cells(codes, classes, gap)
        votes = make(columns(codes, classes, gap)) if make is pl.DataFrame else make(rows)
        wanted = reference(codes, classes, tally(votes, missing=gap).classifiers)
        named = reference(codes, written, wanted.classifiers)
        for missing in (gap, gap_written, [gap, gap_written], {gap}, (gap, None, float("nan"))):
            assert tally(votes, missing=missing) == wanted
            assert tally(votes, missing=missing, classes=written) == named
            assert tally(votes, missing=missing, positive=written[1]) == wanted
            assert tally(votes, missing=missing, positive=written[0]).classes == classes[::-1]
    truths = pl.DataFrame(columns(WHOLE, TRUTHS))
    assert tally(truths, positive="false").classes == (True, False)
    assert tally(truths, positive="False", classes=[0, 1]).classes == (1, 0)


def test_several_words_for_missing():
    rows = cells(HOLED, TEXT, "?")
    rows = [
        ["n/a" if (i + j) % 2 and v == "?" else v for j, v in enumerate(r)]
        for i, r in enumerate(rows)
    ]
    for missing in (["?", "n/a"], ("n/a", "?"), {"?", "n/a"}, np.array(["?", "n/a", "none"])):
        check_same(rows, HOLED, TEXT, missing=missing)
        check_same(np.array(rows), HOLED, TEXT, missing=missing)
    numbers = np.where(HOLED < 0, np.where(np.arange(ITEMS)[:, None] % 2, 7, 9), HOLED)
    check_same(numbers, HOLED, NUMBERS, missing=[7, 9])
    check_same(numbers, HOLED, NUMBERS, missing=np.array([7, 9]))
    check_same(numbers.astype(float), HOLED, (0.0, 1.0), missing=[7, 9, 7.0])


MANY_CLASSES = {
    "numbers": lambda k: tuple(range(k)),
    "numbers with gaps": lambda k: tuple(range(5, 5 + 3 * k, 3)),
    "text": lambda k: tuple(f"class {place:03}" for place in range(k)),
    "floats": lambda k: tuple(place / 4 for place in range(k)),
}
MANY_FORMS = {
    "array": np.array,
    "array by columns": lambda rows: np.asfortranarray(np.array(rows)),
    "array of objects": lambda rows: np.array(rows, dtype=object),
    "lists": list,
    "mapping": lambda rows: dict(zip(NAMES, map(list, zip(*rows, strict=True)), strict=True)),
    "pandas": lambda rows: pd.DataFrame(rows, columns=NAMES),
    "pandas category": lambda rows: pd.DataFrame(rows, columns=NAMES).astype("category"),
    "polars": lambda rows: pl.DataFrame(rows, schema=list(NAMES), orient="row"),
    "pyarrow": lambda rows: pl.DataFrame(rows, schema=list(NAMES), orient="row").to_arrow(),
}


def of_many_classes(classes, missing, items=1200):
    """Codes of which some stand only in the last row, so that the first rows do not show them all."""
    random = np.random.default_rng([classes, missing])
    codes = random.integers(0, classes - 1, (items, len(NAMES))).astype(np.int8)
    codes[:classes] = np.arange(classes)[:, None] % (classes - 1)
    if missing:
        codes[random.random(codes.shape) < 0.2] = -1
    codes[-1] = [0, classes - 1, 0, 0]
    return codes


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("classes", [3, 5, 20, 100])
@pytest.mark.parametrize("labels", MANY_CLASSES)
@pytest.mark.parametrize("form", MANY_FORMS)
def test_whatever_labels_the_votes_hold_are_the_classes(form, labels, classes, missing):
    codes, labels = of_many_classes(classes, missing), MANY_CLASSES[labels](classes)
    if missing and form in {"array", "array by columns"}:
        gap = "" if isinstance(labels[0], str) else -7
    else:
        gap = None
    votes = MANY_FORMS[form](cells(codes, labels, gap))
    reading = {"missing": () if gap is None else gap}
    found = tally(votes, **reading)
    assert found.classes == labels
    assert naive.counts_of(found.codes(), found.counts) == naive.counts_of(codes)
    turned = tally(votes, classes=labels[::-1], **reading)
    assert turned.classes == labels[::-1]
    recoded = np.where(codes < 0, -1, classes - 1 - codes)
    assert naive.counts_of(turned.codes(), turned.counts) == naive.counts_of(recoded)


@pytest.mark.parametrize("classes", [3, 20, 100])
@pytest.mark.parametrize("labels", MANY_CLASSES)
@pytest.mark.parametrize("kind", ["mapping", "pandas", "polars", "pyarrow"])
def test_whatever_labels_the_long_form_holds_are_the_classes(kind, labels, classes):
    codes, labels = of_many_classes(classes, missing=True), MANY_CLASSES[labels](classes)
    found = tally(LONG_TABLES[kind](long_of(codes, labels)), **LONG)
    assert found.classes == labels
    kept = codes[(codes >= 0).any(axis=1)]
    assert naive.counts_of(found.codes(), found.counts) == naive.counts_of(kept)


def test_a_label_that_is_found_late_has_all_votes_counted_once_more_and_no_more(monkeypatch):
    counted = []
    monkeypatch.setattr(
        _tally,
        "count_votes",
        lambda votes, count=_tally.count_votes: counted.append(1) or count(votes),
    )
    codes = np.tile(WHOLE, (20, 1))
    for late, passes in (([], 1), ([-1], 2), ([-3, -2, -1], 2)):
        for label, row in enumerate(late, start=2):
            codes[row, label % 4] = label
        for layout in (np.ascontiguousarray, np.asfortranarray):
            counted.clear()
            assert len(tally(layout(codes)).classes) == 2 + len(late)
            assert len(counted) == passes


def test_gold_labels_of_votes_whose_labels_are_found_late():
    votes = np.tile(WHOLE, (20, 1))
    votes[-1, 2] = 2
    found = lf.estimate(votes, gold={0: 1, 9: 2, len(votes) - 1: 0})
    assert found.classes == (0, 1, 2)


def test_classes_that_nobody_voted_are_kept():
    codes = of_many_classes(3, missing=True)
    for votes, reading in (
        (pl.DataFrame(columns(codes, "abc")), {}),
        (pl.DataFrame(long_of(codes, "abc", gaps=True)), LONG),
    ):
        found = tally(votes, classes=["d", "c", "b", "a"], **reading)
        assert found.classes == ("d", "c", "b", "a")
        recoded = np.where(codes < 0, -1, 3 - codes)
        assert naive.counts_of(found.codes(), found.counts) == naive.counts_of(recoded)


def test_raters_with_one_vote_and_raters_who_never_meet_are_read():
    votes = {
        "task": [1, 1, 2, 3, 4],
        "rater": ["a", "b", "a", "c", "d"],
        "said": [0, 2, 2, 1, None],
    }
    found = tally(votes, **LONG)
    assert (found.classifiers, found.classes) == (("a", "b", "c", "d"), (0, 1, 2))
    rows = [[0, 2, -1, -1], [2, -1, -1, -1], [-1, -1, 1, -1], [-1] * 4]
    assert found == Tally.from_codes(rows, [1] * 4, classifiers="abcd", classes=(0, 1, 2))


def test_labels_late_in_the_table_are_found():
    votes = np.zeros((100_000, 4), dtype=np.int8)
    votes[99_999, 3] = 5
    for layout in (np.ascontiguousarray, np.asfortranarray):
        assert tally(layout(votes)).classes == (0, 5)
    assert tally(pl.DataFrame(votes)).classes == (0, 5)


# --- speed --------------------------------------------------------------------------------------


def test_what_can_be_compared_where_it_lies_is_not_copied():
    by_rows = np.ascontiguousarray(WHOLE.astype(np.int8))
    assert np.shares_memory(read_votes(by_rows).columns, by_rows)
    assert np.shares_memory(Reader(read_votes(by_rows))._columns(0, ITEMS)[0], by_rows)
    by_columns = np.asfortranarray(by_rows)
    for column in read_votes(by_columns).columns:
        assert np.shares_memory(column, by_columns)
    for start, column in enumerate(Reader(read_votes(by_columns))._columns(10, 20)):
        assert np.shares_memory(column, by_columns[10:20, start])
    words = np.array(cells(WHOLE, TEXT))
    assert np.shares_memory(read_votes(words).columns, words)


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint16", "float32", "float64"])
def test_columns_of_numbers_without_nulls_are_not_copied(dtype):
    frames = [
        pd.DataFrame({name: WHOLE[:, i].astype(dtype) for i, name in enumerate(NAMES)}),
        pd.DataFrame(WHOLE.astype(dtype), columns=NAMES),
        pl.DataFrame({name: WHOLE[:, i].astype(dtype) for i, name in enumerate(NAMES)}),
    ]
    for frame in frames:
        for name, column in zip(NAMES, read_votes(frame).columns, strict=True):
            assert np.shares_memory(column, frame[name].to_numpy())


def plainly_without_repeats(table, duplicates):
    """The votes that are left, row by row: {(task, rater): vote}."""
    kept, times = {}, {}
    for pair_and_vote in zip(*table.values(), strict=True):
        *pair, said = pair_and_vote
        if said is not None:
            kept[tuple(pair)] = said
            times[tuple(pair)] = times.get(tuple(pair), 0) + 1
    if duplicates == "drop":
        kept = {pair: said for pair, said in kept.items() if times[pair] == 1}
    return kept


@pytest.mark.parametrize("stored", ["dense", "sparse"])
@pytest.mark.parametrize("duplicates", ["last", "drop"])
def test_repeated_votes_of_the_long_form_against_a_plain_loop(duplicates, stored, monkeypatch):
    if stored == "sparse":
        monkeypatch.setattr(_long_form, "DENSE_CELLS", 0)
        monkeypatch.setattr(_long_form, "DENSE_SHARE", 2.0)
    random = np.random.default_rng(3)
    table = {
        "task": random.integers(0, 60, 500).tolist(),
        "rater": [NAMES[place] for place in random.integers(0, 4, 500)],
        "said": [[None, "a", "b", "c"][code] for code in random.integers(0, 4, 500)],
    }
    kept = plainly_without_repeats(table, duplicates)
    tasks = sorted(set(table["task"]))
    codes = [["abc".find(kept.get((task, name), "-")) for name in NAMES] for task in tasks]
    wanted = reference(np.array(codes), ("a", "b", "c"))
    rows = list(zip(*table.values(), strict=True))
    order = random.permutation(len(rows))
    shuffled = dict(zip(table, zip(*[rows[place] for place in order], strict=True), strict=True))
    for make in (dict, pd.DataFrame, pl.DataFrame):
        with pytest.warns(lf.LabelfreeWarning, match="repeated pairs"):
            found = tally(make(table), **LONG, duplicates=duplicates)
        assert found.is_sparse == (stored == "sparse")
        assert found == wanted
        with pytest.warns(lf.LabelfreeWarning, match="repeated pairs"):
            other = tally(make(shuffled), **LONG, duplicates=duplicates)
        assert (other == wanted) == (duplicates == "drop")


@pytest.mark.slow
def test_a_million_sparse_votes_stay_sparse_and_small(tmp_path):
    random = np.random.default_rng(4)
    items, raters, each = 200_000, 10_000, 5
    offsets = np.cumsum(random.integers(1, raters // each, (items, each)), axis=1)
    long = pl.DataFrame(
        {
            "item": np.repeat(np.arange(items), each),
            "rater": pl.Series(
                ((random.integers(0, raters, (items, 1)) + offsets) % raters).reshape(-1)
            ).cast(pl.String),
            "vote": random.integers(0, 5, items * each),
        }
    )
    long.sample(fraction=1.0, shuffle=True, seed=1).write_parquet(tmp_path / "v.parquet")
    read = time.perf_counter()
    assert pl.read_parquet(tmp_path / "v.parquet").sort("item", "rater").height == items * each
    sorting = time.perf_counter() - read
    tracemalloc.start()
    try:
        found = tally(tmp_path / "v.parquet", classifier="rater", vote="vote")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.is_sparse
    assert found.items == items
    assert found.patterns.nnz == items * each
    assert peak < 100 * items * each  # bytes a vote; as a dense table they would be 2000
    read = time.perf_counter()
    tally(tmp_path / "v.parquet", classifier="rater", vote="vote")
    assert time.perf_counter() - read < 30 * sorting


@pytest.mark.slow
def test_a_million_rows_of_text_are_read_in_well_under_two_seconds():
    random = np.random.default_rng(0)
    table = pl.DataFrame(
        {
            f"c{i}": pl.Series(random.integers(0, 3, 1_000_000)).replace_strict(
                {0: "no", 1: "yes", 2: None}, return_dtype=pl.String
            )
            for i in range(10)
        }
    )
    started = time.perf_counter()
    votes = read_votes(table)
    assert time.perf_counter() - started < 2
    assert votes.items == 1_000_000
