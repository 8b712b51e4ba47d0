"""Tables that live in an engine: Polars lazy, DuckDB, Ibis, Dask, Spark. Their votes are counted there.

The engine groups the rows by their votes, and only the distinct patterns with their counts come home.
Plain aggregates and expressions through narwhals; no function of ours runs in the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from importlib.util import find_spec
from operator import add
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray

from labelfree._arrays import Table, Whole, check_size
from labelfree._columns import Column
from labelfree._frames import (
    Frame,
    by_name,
    check_kind,
    check_known,
    chosen,
    in_engine,
    series_column,
)
from labelfree._labels import Label, fitted

COUNT = "n"  # of the rows that hold a pattern; no column is called so, as they are renamed
LARGEST = 2**63  # whole numbers from here on are none that engines know


@dataclass(frozen=True, eq=False)
class EngineTable:
    """A table that lives in an engine, its columns renamed by their places.

    Names of columns may be anything; an engine may read a dot, a backtick or the case of a letter in them as its
    own. So all columns are called c0, c1 … on the way, and go back under their own names.

    Attributes
    ----------
    frame : narwhals LazyFrame
        With columns c0, c1 …
    names : tuple of str
        The own names, by place.
    kinds : tuple of narwhals types
        Of the columns, by place.
    back : callable
        (frame, names) -> such a frame in the caller's own kind, its columns under these names.
    shown : int, optional
        Of a table that was made for its answers: so many columns, from the first, go along; the others are
        votes as codes 0 … K−1.
    """

    frame: nw.LazyFrame[Any]
    names: tuple[str, ...]
    kinds: tuple[Any, ...]
    back: Callable[[nw.LazyFrame[Any], Sequence[str]], Any]
    shown: int | None = None

    @property
    def engine(self) -> str:
        """What the engine is called."""
        return str(self.frame.implementation.value)

    def place(self, name: str) -> int:
        """Place of a column."""
        check_known(self.names, [name])
        return self.names.index(name)

    def kind(self, name: str) -> Any:
        """Type of a column."""
        return self.kinds[self.place(name)]

    def column(self, name: str) -> nw.Expr:
        """Return a column as an expression."""
        return nw.col(f"c{self.place(name)}")


def engine_table(votes: Any) -> EngineTable | None:
    """Take votes that live in an engine; None of any others."""
    try:
        frame = nw.from_native(votes, pass_through=True)
    except DuplicateError:
        return None  # which whoever reads frames says
    if not isinstance(frame, nw.LazyFrame):
        return None
    schema = in_engine("looking at the columns", frame.collect_schema)
    if frame.implementation.is_polars() and nw.Object in schema.dtypes():
        return None  # which Polars cannot group; so it is collected
    own = by_name(schema.names())
    placed = [f"c{place}" for place in range(len(own))]
    if hasattr(votes, "toDF"):  # Spark renames by place, and so any name will do
        frame = nw.from_native(votes.toDF(*placed)) if placed else frame
        return EngineTable(frame, tuple(own), tuple(schema.dtypes()), _spark_back)
    frame = frame.rename(dict(zip(own.values(), placed, strict=True)))

    def back(answered: nw.LazyFrame[Any], names: Sequence[str]) -> Any:
        now = answered.collect_schema().names()
        keys = [own.get(name, name) for name in names]
        return answered.rename(dict(zip(now, keys, strict=True))).to_native()

    return EngineTable(frame, tuple(own), tuple(schema.dtypes()), back)


def _spark_back(answered: nw.LazyFrame[Any], names: Sequence[str]) -> Any:
    return answered.to_native().toDF(*names)


def is_vote(column: nw.Expr, kind: Any, label: Label) -> nw.Expr | None:
    """Compare a column with a label in the column's own type; None where it can hold no such label."""
    if kind == nw.Boolean:
        truth = fitted(label, "truth")
        return column == bool(truth) if truth in (0, 1) else None
    if kind.is_numeric():
        number = fitted(label, "number")
        if isinstance(number, str | bytes) or abs(number) >= LARGEST:
            return None
        # No cast but where it must be: Dask's goes to NumPy's types, which hold no null.
        column = column.cast(nw.Float64) if kind.is_decimal() else column
        return column == (
            int(number) if kind.is_integer() and number == int(number) else float(number)
        )
    if isinstance(label, bytes) or kind == nw.Binary:
        return column == nw.lit(label) if isinstance(label, bytes) and kind == nw.Binary else None
    return _is_written(column if kind == nw.String else column.cast(nw.String), label)


def _is_written(text: nw.Expr, label: Label) -> nw.Expr:
    """Compare text with what a label is written as: 1 and 1.0 are one number."""
    if isinstance(label, bool):
        return text.str.to_lowercase() == str(label).lower()
    if isinstance(label, float) and label == int(label):
        return (text == str(label)) | (text == str(int(label)))
    return text == str(label)


def is_empty(column: nw.Expr, kind: Any) -> nw.Expr:
    """Tell which cells hold nothing: null, and NaN where there can be one."""
    return column.is_null() | column.is_nan() if kind.is_float() else column.is_null()


def flag(condition: nw.Expr) -> nw.Expr:
    """Write a condition as 1 and 0."""
    return nw.when(condition).then(nw.lit(1, nw.Int64)).otherwise(nw.lit(0, nw.Int64))


def balanced(
    terms: Sequence[nw.Expr], join: Callable[[nw.Expr, nw.Expr], nw.Expr] = add
) -> nw.Expr:
    """Join expressions in pairs, and the pairs in pairs: a hundred of them are seven deep."""
    parts = list(terms)
    while len(parts) > 1:
        pairs = [parts[place : place + 2] for place in range(0, len(parts), 2)]
        parts = [reduce(join, pair) for pair in pairs]
    return parts[0]


# --- the wide form ----------------------------------------------------------------------------


def counted_there(table: EngineTable, names: tuple[str, ...] | None, item: str | None) -> Table:
    """Count the patterns of a wide table in its engine.

    Parameters
    ----------
    table : EngineTable
    names : tuple of str, optional
        The columns that hold votes.
    item : str, optional

    Returns
    -------
    Table
        One row a pattern, with counts.
    """
    names = vote_columns(table, names, item)
    votes = [table.column(name).alias(f"v{place}") for place, name in enumerate(names)]
    return pattern_table(names, counted_patterns(table.frame.select(*votes), len(names)))


def vote_columns(
    table: EngineTable, names: tuple[str, ...] | None, item: str | None
) -> tuple[str, ...]:
    """Pick the columns that hold votes, and look at their types."""
    names = chosen(table.names, names, item)
    check_size(1, len(names))
    for name in names:
        check_kind(name, table.kind(name))
    return names


def counted_patterns(votes: nw.LazyFrame[Any], width: int) -> Frame:
    """Group rows by the columns v0, v1 … and bring the groups home with their counts."""
    keys = [f"v{place}" for place in range(width)]
    return collected(votes.group_by(keys).agg(nw.len().alias(COUNT)), "counting the vote patterns")


def pattern_table(names: tuple[str, ...], patterns: Frame) -> Table:
    """Lay counted patterns out as a table with counts."""
    counts = counts_of(patterns)
    check_size(len(counts), len(names))
    columns = tuple(
        series_column(name, patterns.get_column(f"v{place}")) for place, name in enumerate(names)
    )
    return counted_table(names, columns, counts)


def counted_table(
    names: tuple[str, ...],
    columns: tuple[Column, ...],
    counts: NDArray[np.float64],
    *,
    keys: tuple[Any, ...] = (),
    whole: Whole | None = None,
) -> Table:
    """Lay out a row a pattern with its count; such rows are no items, and nothing is given back by them."""
    return Table(
        names,
        columns,
        len(counts),
        lambda *_: None,
        True,
        None,
        lambda: range(len(counts)),
        lambda _: (),
        keys,
        counts,
        whole,
    )


def counts_of(patterns: Frame) -> NDArray[np.float64]:
    """How often each pattern occurred."""
    return np.asarray(patterns.get_column(COUNT).to_numpy()).astype(np.float64)


# --- what comes home --------------------------------------------------------------------------


def collected(frame: nw.LazyFrame[Any], stage: str) -> Frame:
    """Let the engine do its work and bring the result home; an engine that fails is an error of ours."""
    home: Frame = in_engine(f"{stage} in {frame.implementation.value}", lambda: _brought(frame))
    return home


def _brought(frame: nw.LazyFrame[Any]) -> Frame:
    """Spark and DuckDB bring tables by way of PyArrow, and rows without it; Polars reads in pieces if told to."""
    native: Any = frame.to_native()
    kind = frame.implementation
    if find_spec("pyarrow") is None and (kind.is_pyspark() or kind.is_duckdb()):
        rows = native.collect() if kind.is_pyspark() else native.fetchall()
        return _from_rows(rows, frame.collect_schema())
    # Polars would lay the whole table out first, as it does by itself, and may have no room for it.
    return frame.collect(engine="streaming") if kind.is_polars() else frame.collect()


def _from_rows(rows: Sequence[Sequence[Any]], schema: Mapping[str, Any]) -> Frame:
    cells = list(zip(*rows, strict=True)) or [()] * len(schema)
    columns = dict(zip(schema, map(list, cells), strict=True))
    return nw.from_dict(columns, schema=schema, backend="polars")
