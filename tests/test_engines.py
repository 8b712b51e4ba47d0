"""Any dataframe, any engine: the same tally and the same labels, counted and labelled where the votes live."""

import dask.dataframe as dd
import duckdb
import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import labelfree as lf
from labelfree import simulate

NAMES = ["count", "a b", 'it\'s "so" `q`.x', "<script>", "n", "É"]
PAIRS = {
    "int": [0, 1, None],
    "str": ["no", "yes", None],
    "bool": [False, True, None],
    "float with NaN": [0.0, 1.0, float("nan")],
}
ARROW = {"int": pa.int64(), "str": pa.string(), "bool": pa.bool_(), "float with NaN": pa.float64()}

EAGER = ["pandas", "polars", "pyarrow"]
LAZY = ["polars lazy", "duckdb", "ibis", "dask", "spark"]
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

    def make(name, table):
        if name == "spark":
            session = request.getfixturevalue("spark_session")
            return session.createDataFrame(table).repartition(4)
        return {
            "pandas": lambda: table.to_pandas(types_mapper=pd.ArrowDtype),
            "polars": lambda: pl.from_arrow(table),
            "pyarrow": lambda: table,
            "polars lazy": lambda: pl.from_arrow(table).lazy(),
            "duckdb": lambda: duckdb.from_arrow(table),
            "ibis": lambda: ibis.memtable(table),
            "dask": lambda: dd.from_pandas(
                table.to_pandas(types_mapper=pd.ArrowDtype), npartitions=3
            ),
        }[name]()

    return make


def home(answer):
    """An answer of any kind as a pandas frame."""
    for way in ("to_pandas", "toPandas", "compute", "df", "collect"):
        if hasattr(answer, way):
            answer = getattr(answer, way)()
    return answer.to_pandas() if isinstance(answer, pl.DataFrame) else answer


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
