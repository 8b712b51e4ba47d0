"""The same table in every engine, and any answer brought home."""

import dask.dataframe as dd
import duckdb
import ibis
import pandas as pd
import polars as pl
import pyarrow as pa

EAGER = ["pandas", "polars", "pyarrow"]
LAZY = ["polars lazy", "duckdb", "ibis", "dask", "spark"]


def held_by(name, table, request):
    """An Arrow table as that engine holds it; Spark's in four partitions."""
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
        "dask": lambda: dd.from_pandas(table.to_pandas(types_mapper=pd.ArrowDtype), npartitions=3),
    }[name]()


def home(answer):
    """An answer of any kind as a pandas frame."""
    for way in ("to_pyarrow", "toArrow", "to_pandas", "compute", "df", "collect"):
        if hasattr(answer, way):
            answer = getattr(answer, way)()
    return answer.to_pandas() if isinstance(answer, pl.DataFrame | pa.Table) else answer
