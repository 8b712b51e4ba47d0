"""Arrays and lists -> a table of votes. Nothing is copied that can be compared where it lies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from labelfree._columns import IN_PLACE, Column, coded_array
from labelfree._errors import OptionsError, VotesError, counted, listed, warn

# Probabilities of the positive class, or of the labels; of each class by its label, which tables take.
Shares: TypeAlias = NDArray[np.float64] | dict[Any, NDArray[np.float64]]
GiveBack: TypeAlias = Callable[[NDArray[Any] | None, Shares | None], Any]

FEWEST = 3  # classifiers; of two, no method can tell the better one without labels


@dataclass(frozen=True, eq=False)
class Whole:
    """All items, of which only a sample came home, as far as their engine has added them up.

    Attributes
    ----------
    items : float
        How many there are.
    cooccurrence : (m K, m K) array, optional
        For each pair of vote columns, the items that hold both, as the room of products lays them out.
    triples : callable
        (m, 2, 6) array of powers -> sums over all items for the third moments; asks the engine.
    """

    items: float
    cooccurrence: NDArray[np.float64] | None
    triples: Callable[[NDArray[np.float64]], tuple[float, float]]


@dataclass(frozen=True, eq=False)
class Table:
    """A wide table as it came, before its labels are known.

    Attributes
    ----------
    names : tuple of str
        Of the classifiers.
    columns : (n, m) array or tuple of m columns
    items : int
        n.
    give_back : callable
        (labels, probabilities) -> the answer in the caller's own kind.
    keeps_table : bool
        Whether that kind is a table, which takes labels and probabilities together.
    label_type : dtype, optional
        Type of the caller's own votes, which labels take where it holds them.
    names_of_items : callable
        () -> the items' names, one each; their numbers where they have none.
    column_of_items : callable
        name -> the values of a column of the caller's table, one an item.
    classifier_keys : tuple
        The classifiers as the long form names them, numbers as numbers; empty for the wide form.
    counts : (n,) array, optional
        Where the rows have been counted already: how many items each stands for.
    whole : Whole, optional
        Where the rows are a sample: what is known of all items.
    """

    names: tuple[str, ...]
    columns: NDArray[Any] | tuple[Column, ...]
    items: int
    give_back: GiveBack
    keeps_table: bool
    label_type: np.dtype[Any] | None
    names_of_items: Callable[[], Sequence[Any]]
    column_of_items: Callable[[str], Sequence[Any]]
    classifier_keys: tuple[Any, ...] = ()
    counts: NDArray[np.float64] | None = None
    whole: Whole | None = None


def check_size(items: int, classifiers: int) -> None:
    """Refuse a table that is too small to grade anyone by."""
    if classifiers < FEWEST:
        raise VotesError(
            f"Expected votes of at least three classifiers, got {classifiers}; with fewer, no method can tell "
            "a good classifier from a bad one without labels."
        )
    if items == 0:
        raise VotesError("Expected at least one item, got none; give the table rows.")


def from_array(votes: Any, names: tuple[str, ...] | None, item: str | None) -> Table:
    """Read an array, or lists of lists."""
    if item is not None:
        raise OptionsError(
            f"item={item!r} names a column, but an array has no column names; leave it out, or give a dataframe."
        )
    table, gaps = _as_array(votes)
    if table.ndim != 2:
        raise VotesError(
            f"Expected a table of votes with one row an item and one column a classifier, "
            f"got an array of shape {table.shape}; give it two dimensions."
        )
    n, m = table.shape
    if names is None:
        names = tuple(f"classifier_{number}" for number in range(1, m + 1))
        if 3 <= n < m and n <= 50:
            warn(
                f"The array has {n} rows and {m} columns, so it was read as {m} classifiers on {n} items; "
                "if rows are classifiers, pass votes.T."
            )
    elif len(names) != m:
        raise OptionsError(
            f"Expected {counted(len(names), 'column')}, one for each of {listed(names)}, got an array with {m}; "
            "give one column a classifier."
        )
    check_size(n, m)
    columns: NDArray[Any] | tuple[Column, ...] = table
    if gaps is not None or table.dtype.kind not in IN_PLACE:
        columns = tuple(
            coded_array(name, table[:, place], None if gaps is None else gaps[:, place])
            for place, name in enumerate(names)
        )
    elif n > 1 and table.strides[0] == table.itemsize:
        columns = tuple(table.T)  # read one column at a time, as that is how they lie in memory

    def give_back(labels: NDArray[Any] | None, probabilities: Shares | None) -> Any:
        return labels if labels is not None else probabilities

    def column_of_items(name: str) -> Sequence[Any]:
        raise OptionsError(
            f"{name!r} was given as a column's name, but an array has no column names; give the values instead."
        )

    own = table.dtype if table.dtype.kind in IN_PLACE or isinstance(votes, np.ndarray) else None
    return Table(names, columns, n, give_back, False, own, lambda: range(n), column_of_items)


def _as_array(values: Any) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    """Lay lists out as an array; say where a masked one has gaps."""
    try:
        array = np.asarray(values)
        if array.dtype.kind in "US" and not isinstance(values, np.ndarray):
            array = np.array(values, dtype=object)  # NumPy would turn [1, "a", None] into text
    except ValueError:
        raise VotesError(
            "Expected rows of equal length, one vote a classifier, got rows of unequal length; "
            "fill the gaps with None."
        ) from None
    if array.dtype.kind not in {*IN_PLACE, "O", "T"}:
        raise VotesError(
            f"Expected votes that are numbers, truth values or text, got an array of {array.dtype}; convert it."
        )
    masked = isinstance(values, np.ma.MaskedArray) and bool(np.ma.is_masked(values))
    return array, np.ma.getmaskarray(values) if masked else None
