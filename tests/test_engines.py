"""Any dataframe, any engine: the same tally and the same labels, counted and labelled where the votes live."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import labelfree as lf
from labelfree import simulate
from labelfree._consensus import Rule, Together, majority_rule, probabilities, winners
from labelfree._engines import engine_table
from labelfree._expressions import answered
from labelfree._products import Block

from .engines import EAGER, LAZY, held_by, home
from .sentences import refused

NAMES = ["count", "a b", 'it\'s "so" `q`.x', "<script>", "n", "É"]
PAIRS = {
    "int": [0, 1, None],
    "str": ["no", "yes", None],
    "bool": [False, True, None],
    "float with NaN": [0.0, 1.0, float("nan")],
}
ARROW = {"int": pa.int64(), "str": pa.string(), "bool": pa.bool_(), "float with NaN": pa.float64()}

NEVER_EMPTY = {"dask"}  # Dask makes no frame without a row from an empty one


def table_of(kind="str", items=400, seed=3):
    codes = simulate.votes(
        items,
        sensitivity=[0.9, 0.8, 0.7, 0.85, 0.75, 0.8],
        specificity=[0.8, 0.9, 0.75, 0.7, 0.85, 0.8],
        prevalence=0.4,
        missing=0.15,
        seed=seed,
    ).votes
    cells = np.array(PAIRS[kind], dtype=object)[codes]
    return pa.table(
        {name: pa.array(cells[:, i].tolist(), ARROW[kind]) for i, name in enumerate(NAMES)}
    )


@pytest.fixture
def engine(request):
    """engine(name, table) -> the table as that engine holds it."""
    return lambda name, table: held_by(name, table, request)


@pytest.mark.parametrize("kind", PAIRS)
@pytest.mark.parametrize("name", [*EAGER, *LAZY])
def test_every_engine_gives_the_same_tally(engine, name, kind):
    table = table_of(kind)
    expected = lf.tally(np.array([column.to_pylist() for column in table.columns], dtype=object).T)
    counted = lf.tally(engine(name, table))
    assert counted.classifiers == tuple(NAMES)
    assert counted.items == 400
    assert lf.tally(engine(name, table), classes=expected.classes) == counted
    assert counted == lf.Tally.from_codes(
        expected.codes(), expected.counts, classifiers=NAMES, classes=PAIRS[kind][:2]
    )


@pytest.mark.parametrize("kind", PAIRS)
@pytest.mark.parametrize("name", [*EAGER, *LAZY])
def test_every_engine_gives_the_same_labels(engine, name, kind):
    table = table_of(kind, items=60)
    rows = [
        [None] * len(NAMES),
        *zip(*[column.to_pylist() for column in table.columns], strict=True),
    ]
    table = pa.table(
        {n: pa.array([row[i] for row in rows], ARROW[kind]) for i, n in enumerate(NAMES)}
    )
    found = lf.estimate(table_of(kind))
    with pytest.warns(lf.LabelfreeWarning, match="no vote"):
        expected = found.label(np.array(rows, dtype=object)).tolist()
    with pytest.warns(lf.LabelfreeWarning, match="no vote"):
        chances = found.probability(np.array(rows, dtype=object))
    own = engine(name, table)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lf.LabelfreeWarning)  # in memory: an item had no vote
        answer = found.label(own)
        shares = found.probability(own)
    assert type(answer) is type(own)
    answer, shares = home(answer), home(shares)
    assert list(answer.columns) == [*NAMES, "label", "probability"]
    assert list(shares.columns) == [*NAMES, "probability"]
    key = [
        tuple(None if pd.isna(v) else v for v in row)
        for row in answer[NAMES].itertuples(index=False, name=None)
    ]
    wanted = {
        tuple(None if pd.isna(v) else v for v in row): (label, chance)
        for row, label, chance in zip(rows, expected, chances.tolist(), strict=True)
    }
    assert len(answer) == len(rows)
    assert set(key) == set(wanted)
    assert answer["label"].tolist() == [wanted[row][0] for row in key]
    for each in (answer, shares):
        assert each["probability"].to_numpy(float) == pytest.approx(
            [wanted[row][1] for row in key], abs=1e-12
        )


def rules():
    """Rules of every form: ties, limits, groups that are weighed together, four classes."""
    random = np.random.default_rng(1)
    m = len(NAMES)
    weights = np.where(random.random((m, 1, 1)) < 0.5, 0.0, 1.0) * random.normal(size=(m, 2, 2))
    tables = [Together((0, 3, 4), random.normal(size=(27, 2))), Together((1, 5), np.eye(9)[:, :2])]
    alone = weights.copy()
    alone[[0, 1, 3, 4, 5]] = 0.0
    return {
        "majority, with ties": majority_rule(m),
        "limits": Rule(np.array([0.2, 0.0]), 3 * weights, limits=(-1.5, 0.7)),
        "groups": Rule(np.array([0.1, 0.3]), alone, together=tuple(tables)),
        "four classes": Rule(random.normal(size=4), random.normal(size=(m, 4, 4))),
        "four classes, with ties": majority_rule(m, 4),
    }


@pytest.mark.parametrize("rule", rules())
@pytest.mark.parametrize("name", LAZY)
def test_every_rule_is_one_expression(engine, name, rule):
    rule = rules()[rule]
    classes = tuple("abcd")[: len(rule.intercept)]
    codes = np.random.default_rng(2).integers(-1, len(classes), (60, len(NAMES)))
    cells = np.array([*classes, None], dtype=object)[codes]
    table = pa.table({n: pa.array(cells[:, i].tolist(), pa.string()) for i, n in enumerate(NAMES)})
    scores = rule.scores(Block(codes.astype(np.int8), np.ones(60), len(classes)))
    wanted = dict(zip(map(tuple, cells.tolist()), np.array(classes)[winners(scores)], strict=True))
    chance = probabilities(scores)[:, 1]
    chances = dict(zip(map(tuple, cells.tolist()), chance.tolist(), strict=True))
    shown = rule if len(classes) == 2 else None
    answer = home(answered(engine_table(engine(name, table)), NAMES, classes, rule, shown))
    rows = [
        tuple(None if pd.isna(v) else v for v in row)
        for row in answer[NAMES].itertuples(index=False, name=None)
    ]
    assert len(rows) == 60
    assert answer["label"].tolist() == [wanted[row] for row in rows]
    if shown is not None:
        expected = [chances[row] for row in rows]
        assert answer["probability"].to_numpy(float) == pytest.approx(expected, abs=1e-12)


def test_a_rule_of_many_classifiers_is_not_too_deep(engine):
    """Engines take some hundred nested expressions; a sum in a row would be as deep as there are classifiers."""
    names = [f"c{i}" for i in range(300)]
    codes = np.random.default_rng(3).integers(0, 2, (5, 300))
    table = pa.table({n: pa.array(codes[:, i].tolist()) for i, n in enumerate(names)})
    for name in ("polars lazy", "duckdb", "spark"):
        found = answered(engine_table(engine(name, table)), names, (0, 1), majority_rule(300), None)
        assert home(found)["label"].sum() == (codes.mean(axis=1) >= 0.5).sum()


# --- the long form ------------------------------------------------------------------------------

LONG = {"item": "a b", "classifier": "count", "vote": "<script>"}


def long_of(kind="str", names=("x.1", "Y", "y `z`", "it's")):
    """One row a vote, in no order, with rows that hold no vote; every item has one row at least."""
    codes = simulate.votes(
        200,
        sensitivity=[0.9, 0.8, 0.7, 0.85],
        specificity=[0.8, 0.9, 0.75, 0.7],
        missing=0.3,
        seed=5,
    ).votes
    codes[:, 0] = np.where((codes < 0).all(axis=1), 1, codes[:, 0])
    items, places = np.nonzero(np.random.default_rng(0).random(codes.shape) < 0.9)
    order = np.random.default_rng(1).permutation(len(items))
    cells = np.array(PAIRS[kind], dtype=object)[codes[items, places]][order]
    columns = {
        "<script>": pa.array(cells.tolist(), ARROW[kind]),
        "a b": pa.array(items[order]),
        "count": pa.array(np.array(names, dtype=object)[places[order]].tolist()),
        "other": pa.array(order),
    }
    return pa.table(columns)


@pytest.mark.parametrize("kind", PAIRS)
@pytest.mark.parametrize("name", [*EAGER, *LAZY])
def test_every_engine_counts_the_long_form_alike(engine, name, kind):
    table = long_of(kind)
    expected = lf.tally(table, **LONG)
    assert expected.is_sparse is False
    assert lf.tally(engine(name, table), **LONG) == expected
    named = {**LONG, "classifiers": ["Y", "x.1", "it's", "y `z`"], "classes": PAIRS[kind][:2]}
    assert lf.tally(engine(name, table), **named) == lf.tally(table, **named)


@pytest.mark.parametrize("name", LAZY)
def test_every_engine_labels_the_long_form_alike(engine, name):
    table = long_of()
    found = lf.estimate(table, **LONG)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lf.LabelfreeWarning)  # in memory: some items had no vote
        expected = home(found.label(table))
    answer = found.label(engine(name, table))
    assert type(answer) is type(engine(name, table))
    answer = home(answer).sort_values("a b")
    assert list(answer.columns) == ["a b", "label", "probability"]
    assert answer["a b"].tolist() == expected["a b"].tolist()
    assert answer["label"].tolist() == expected["label"].tolist()
    shares = expected["probability"].to_numpy(float)
    assert answer["probability"].to_numpy(float) == pytest.approx(shares, abs=1e-12)


@pytest.mark.parametrize("name", LAZY)
def test_votes_of_the_long_form_that_repeat(engine, name):
    table = long_of()
    twice = pa.concat_tables([table, table.slice(0, 5)])
    refused(lambda: lf.tally(engine(name, twice), **LONG), "repeated pair", "duplicates='drop'")
    with pytest.warns(lf.LabelfreeWarning) as here:
        expected = lf.tally(twice, duplicates="drop", **LONG)
    with pytest.warns(lf.LabelfreeWarning) as there:
        assert lf.tally(engine(name, twice), duplicates="drop", **LONG) == expected
    assert [str(each.message) for each in there] == [str(each.message) for each in here]
    if name == "polars lazy":  # which keeps the order of its rows
        with pytest.warns(lf.LabelfreeWarning, match="last"):
            assert lf.tally(engine(name, twice), duplicates="last", **LONG) == lf.tally(
                table, **LONG
            )
    else:
        refused(lambda: lf.tally(engine(name, twice), duplicates="last", **LONG), "order", name)


@pytest.mark.parametrize("name", ["polars lazy", "duckdb", "spark"])
def test_long_tables_of_many_classifiers_come_home(engine, name):
    random = np.random.default_rng(4)
    n = 150  # classifiers
    items, raters = np.nonzero(random.random((60, n)) < 0.5)
    table = pa.table({"item": items, "rater": raters, "vote": random.integers(0, 2, len(items))})
    long = {"classifier": "rater", "vote": "vote"}
    assert lf.tally(engine(name, table), **long) == lf.tally(table, **long)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("labelfree._engine_long.MOST_VOTES", 100)
        if name != "polars lazy":
            refused(lambda: lf.tally(engine(name, table), **long), "classifiers", "votes", name)


@pytest.mark.parametrize("name", LAZY)
def test_long_tables_with_cells_that_are_empty(engine, name):
    table = long_of()
    for column in ("count", "a b"):
        place = table.column_names.index(column)
        cells = [None, None, *table[column].to_pylist()[2:]]
        empty = table.set_column(place, column, pa.array(cells, table[column].type))
        said = refused(lambda each=empty: lf.tally(each, **LONG), column, "2 empty cells")
        assert refused(lambda each=empty: lf.tally(engine(name, each), **LONG)) == said


# --- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LAZY)
def test_a_label_too_many_in_one_partition_is_named_with_its_column(engine, name):
    cells = table_of("str").to_pydict()
    cells["<script>"][399] = "maybe"
    table = pa.table({key: pa.array(values) for key, values in cells.items()})
    named = {"classes": ["no", "yes"]}
    said = refused(lambda: lf.tally(table, **named), "'<script>'", "'maybe'", "missing='maybe'")
    assert refused(lambda: lf.tally(engine(name, table), **named)) == said
    refused(lambda: lf.estimate(engine(name, table), positive="yes"), "'<script>'", "3 labels")


@pytest.mark.parametrize("name", sorted(set(LAZY) - NEVER_EMPTY))
def test_an_empty_table_is_refused_alike(engine, name):
    table = table_of("str").slice(0, 0)
    said = refused(lambda: lf.estimate(table), "at least one item")
    assert refused(lambda: lf.estimate(engine(name, table))) == said


def test_a_spark_job_that_dies_is_a_sentence_that_names_the_stage(spark_session):
    rows = spark_session.range(0, 1000, numPartitions=4)
    dies = "if(id = 777, raise_error('executor lost'), id % 2) as a"
    frame = rows.selectExpr(dies, "id % 3 % 2 as b", "id % 5 % 2 as c")
    refused(lambda: lf.estimate(frame), "counting the vote patterns in pyspark", "executor lost")
    found = lf.estimate(rows.selectExpr("id % 2 as a", "id % 3 % 2 as b", "id % 5 % 2 as c"))
    long = rows.selectExpr("id % 10 as item", "id as rater", dies.replace("as a", "as vote"))
    refused(
        lambda: lf.estimate(long, item="item", classifier="rater", vote="vote"),
        "looking for the classifiers and labels in pyspark",
        "executor lost",
    )
    assert found.items == 1000


def test_files_of_a_lazy_table_that_are_gone_cut_short_or_of_another_type(tmp_path, spark_session):
    table = pl.from_arrow(table_of("int"))
    first, second = tmp_path / "a.parquet", tmp_path / "b.parquet"
    table.write_parquet(first)
    table.with_columns(pl.col("n").cast(pl.String)).write_parquet(second)
    refused(lambda: lf.estimate(pl.scan_parquet([first, second])), "column n", "type")
    whole = second.read_bytes()
    second.write_bytes(whole[: len(whole) // 2])
    refused(
        lambda: lf.estimate(pl.scan_parquet([first, second])),
        "counting the vote patterns in polars",
        "parquet",
    )
    lazy, spark = pl.scan_parquet(first), spark_session.read.parquet(str(first))
    first.unlink()
    with pytest.raises(lf.FileError, match=r"a\.parquet"):
        lf.estimate(lazy)
    with pytest.raises(lf.FileError, match=r"a\.parquet"):
        lf.estimate(spark)
