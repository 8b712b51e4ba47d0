"""Dataframes of any kind -> columns of votes, and answers back in the caller's own kind.

Through narwhals. Nothing is copied that can be compared where it lies.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray

from labelfree._arrays import Shares, Table, check_size
from labelfree._columns import Coded, Column, coded_objects
from labelfree._errors import FileError, OptionsError, VotesError, listed
from labelfree._files import read_frame
from labelfree._labels import Label

Frame: TypeAlias = "nw.DataFrame[Any]"

ITEM_COLUMN = "item"  # a table's column of this name is taken for the items' names
ANSWER_COLUMNS = ("label", "probability")
NO_FILE = ("FILE_NOT_EXIST", "FileNotFound", "PATH_NOT_FOUND", "No such file", "No files found")
LONGEST_REASON = 240  # letters of what an engine says that are passed on: room for a path
CAUSE = "Caused by: "  # before the causes of an error of Java


def is_array(votes: Any) -> bool:
    if isinstance(votes, np.ndarray):
        return True
    if isinstance(votes, Sequence):
        return not isinstance(votes, str | bytes)
    return hasattr(votes, "__array__") and not nw.dependencies.is_into_dataframe(votes)


def from_frame(
    votes: Any, names: tuple[str, ...] | None, item: str | None, apart: str | None
) -> Table:
    frame, give = as_frame(votes)
    own = by_name(frame.columns)
    check_known(own, [] if apart is None else [apart])
    names = chosen(tuple(name for name in own if name != apart), names, item)
    check_size(len(frame), len(names))
    columns = tuple(series_column(name, frame.get_column(own[name])) for name in names)

    def give_back(labels: NDArray[Any] | None, probabilities: Shares | None) -> Any:
        return give(with_answers(frame, labels, probabilities))

    named = ITEM_COLUMN if item is None else item

    def names_of_items() -> Sequence[Any]:
        return frame.get_column(own[named]).to_list() if named in own else range(len(frame))

    def column_of_items(name: str) -> Sequence[Any]:
        check_known(own, [name])
        return frame.get_column(own[name]).to_list()

    common = _common_type(columns)
    return Table(
        names, columns, len(frame), give_back, True, common, names_of_items, column_of_items
    )


def as_frame(votes: Any) -> tuple[Frame, Callable[[Frame], Any]]:
    """Wrap a file, mapping or dataframe, and say how to turn such a frame back into its kind."""
    if isinstance(votes, str | os.PathLike):
        return nw.from_native(read_frame(votes), eager_only=True), nw.to_native
    if isinstance(votes, Mapping):
        arrays = any(isinstance(values, np.ndarray) for values in votes.values())
        return _from_mapping(votes), lambda answers: {
            name: values.to_numpy() if arrays else values.to_list()
            for name, values in answers.to_dict(as_series=True).items()
        }
    try:
        frame = nw.from_native(votes)
    except TypeError:
        raise VotesError(
            "Expected votes as an array, a dataframe, a mapping of columns or the path of a file, "
            f"got {type(votes).__name__}; convert it."
        ) from None
    except DuplicateError:
        raise _twice() from None
    if isinstance(frame, nw.LazyFrame):
        engine = frame.implementation
        whole = in_engine(f"collecting from {engine.value}", frame.collect)
        return whole, lambda answers: answers.lazy(backend=engine).to_native()
    return frame, nw.to_native


def _from_mapping(votes: Mapping[Any, Any]) -> Frame:
    import polars as pl

    series = []
    for name, key in by_name(votes).items():
        values = votes[key]
        if not hasattr(values, "__len__") or isinstance(values, str | bytes | Mapping):
            raise VotesError(
                f"Expected a column under {name!r}, got {type(values).__name__}; give a list or an array."
            )
        if isinstance(values, np.ma.MaskedArray):
            values = values.tolist()
        try:
            series.append(pl.Series(name, values))
        except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
            series.append(pl.Series(name, list(values), dtype=pl.Object))  # of several kinds
    lengths = {each.name: len(each) for each in series}
    if len(set(lengths.values())) > 1:
        shown = listed(f"{name}: {length}" for name, length in lengths.items())
        raise VotesError(f"Expected columns of equal length, got {shown}; fill the gaps with None.")
    return nw.from_native(pl.DataFrame(series), eager_only=True)


def _twice() -> VotesError:
    return VotesError(
        "Expected columns of different names, got a name that stands more than once; rename one."
    )


def by_name(columns: Iterable[Any]) -> dict[str, Any]:
    """Find a table's own names, which need not be text, by the text that they are written as."""
    own = list(columns)
    named = {str(name): name for name in own}
    if len(named) < len(own):
        raise _twice()
    return named


def chosen(
    columns: tuple[str, ...], names: tuple[str, ...] | None, item: str | None
) -> tuple[str, ...]:
    """Pick the columns that hold votes."""
    check_known(columns, [*(names or ()), *([] if item is None else [item])])
    if names is None:
        apart = ITEM_COLUMN if item is None else item
        return tuple(name for name in columns if name != apart)
    if item in names:
        raise OptionsError(
            f"item={item!r} is named in classifiers= too; a column holds the items or votes, not both."
        )
    return names


def check_known(columns: Iterable[str], names: Iterable[str]) -> None:
    unknown = [name for name in names if name not in columns]
    if unknown:
        raise OptionsError(
            f"There is no column {listed(map(repr, unknown))}; the columns are {listed(map(repr, columns), 12)}."
        )


def check_kind(name: str, kind: Any) -> None:
    """Refuse a type that cannot hold votes."""
    if kind.is_nested() or kind.is_temporal():
        raise VotesError(
            f"Column {name!r} holds {kind}; expected text, numbers or truth values. "
            "Convert it, or leave it out with classifiers=."
        )


def series_column(name: str, column: nw.Series[Any]) -> Column:
    """Take a column's memory where that can be compared; code it where not."""
    kind = column.dtype
    check_kind(name, kind)
    if kind in {nw.Object, nw.Binary, nw.Unknown}:  # engines cannot compare these
        return coded_objects(name, column.to_list())
    whole = kind.is_integer() and kind not in {nw.Int128, nw.UInt128}  # NumPy knows no such numbers
    if kind.is_float() or ((whole or kind == nw.Boolean) and column.null_count() == 0):
        return np.asarray(column.to_numpy())
    return _engine_coded(name, column)


def _engine_coded(name: str, column: nw.Series[Any]) -> Coded:
    """Compare in the frame's own engine; only the few distinct labels become Python's."""
    if column.dtype.is_decimal():
        column = column.cast(nw.Float64)
    elif column.dtype == nw.String and column.implementation.is_pyarrow():
        column = column.cast(nw.String)  # Arrow has no filter for views of strings
    try:
        distinct = column.drop_nulls().unique().to_list()
    except TypeError:  # pandas keeps lists among text, unseen by the type of the column
        distinct = column.to_list()
    labels = coded_objects(name, distinct).labels
    codes = np.full(len(column), -1, dtype=np.int8)
    for place, label in enumerate(labels):
        codes[(column == label).fill_null(value=False).to_numpy().astype(bool)] = place
    return Coded(labels, codes)


def _common_type(columns: tuple[Column, ...]) -> np.dtype[Any] | None:
    types = {None if isinstance(column, Coded) else column.dtype for column in columns}
    return types.pop() if len(types) == 1 else None


# --- the way back -----------------------------------------------------------------------------


def check_free(columns: Iterable[str], new: Iterable[str]) -> None:
    """Refuse to put answers in the place of the caller's own columns."""
    taken = [name for name in new if name in columns]
    if taken:
        raise OptionsError(
            f"The table already has a column {listed(map(repr, taken))}, which the answer needs; rename it first."
        )


def probability_column(label: Label) -> str:
    """Name the column that holds the probability of one of several classes."""
    return f"{ANSWER_COLUMNS[1]}_{label}"


def with_answers(frame: Frame, labels: NDArray[Any] | None, probabilities: Shares | None) -> Frame:
    new = {} if labels is None else {ANSWER_COLUMNS[0]: labels}
    if isinstance(probabilities, np.ndarray):
        new[ANSWER_COLUMNS[1]] = probabilities
    elif probabilities is not None:
        new |= {probability_column(label): share for label, share in probabilities.items()}
    check_free(frame.columns, new)
    series = [
        nw.new_series(
            name,
            values if values.dtype.kind in "biuf" else values.tolist(),
            backend=frame.implementation,
        )
        for name, values in new.items()
    ]
    index = nw.maybe_get_index(frame)
    if index is not None:
        series = [nw.maybe_set_index(each, index=index) for each in series]
    return frame.with_columns(*series)


# --- engines that fail -----------------------------------------------------------------------


def in_engine(stage: str, work: Callable[[], Any]) -> Any:
    """Do some work in the engine, whose errors may be of any kind."""
    try:
        return work()
    except (MemoryError, VotesError):
        raise
    except Exception as error:  # noqa: BLE001 (whatever stands in the caller's own table may raise)
        said = _reason(error)
        kind = FileError if _is_of_a_file(error, str(error)) else VotesError
    raise kind(
        f"The table could not be read: {stage} ended with {said}; mend what the table is made from."
    )


def _is_of_a_file(error: Exception, said: str) -> bool:
    return isinstance(error, OSError) or any(sign in said for sign in NO_FILE)


def _reason(error: Exception) -> str:
    """Take the line that says what happened: the last of a Python error within, Java's first cause, or the first."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    within = [line for line in lines if line.partition(":")[0].endswith(("Error", "Exception"))]
    causes = [line.removeprefix(CAUSE) for line in lines if line.startswith(CAUSE)]
    told = [*within[-1:], *causes[:1], *lines[:1], ""][0]
    said = " ".join(told.split()).rstrip(".")
    if len(said) > LONGEST_REASON:
        said = said[: LONGEST_REASON - 3] + "..."
    return f"{type(error).__name__}: {said}" if said else type(error).__name__
