"""The long form, one row a vote -> a table of votes, dense or sparse."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from labelfree._arrays import Shares, Table, check_size
from labelfree._columns import Learned, coded_array, learn
from labelfree._errors import OptionsError, VotesError, counted, listed, warn
from labelfree._frames import (
    ITEM_COLUMN,
    Frame,
    as_frame,
    by_name,
    check_known,
    is_array,
    series_column,
    with_answers,
)
from labelfree._labels import Label

if TYPE_CHECKING:
    from scipy.sparse import csr_array

DENSE_CELLS = 50_000_000  # a long table with no more cells than this is laid out as a dense one ...
DENSE_SHARE = 0.1  # ... and so is any with at least this share of its cells voted


def read_long(
    votes: Any,
    columns: tuple[str, str, str],
    names: tuple[str, ...] | None,
    positive: Label,
    classes: Sequence[Label] | None,
    missing: Label | Sequence[Label],
    duplicates: str | None,
    *,
    part: bool = False,
) -> tuple[Table, Learned]:
    """Number items and classifiers, and lay the votes out as a table."""
    (item, classifier, vote), give = _long_columns(votes, columns)
    rows, items = numbered(item)
    voters, keys = numbered(classifier)
    named: tuple[Any, ...] = tuple(keys.to_list()) if names is None else names
    if names is None:
        names = tuple(map(str, named))
    else:
        voters = placed_keys(keys, names)[voters]
    if not part:
        check_size(len(items), len(names))
    coded = coded_array(vote.name, series_column(vote.name, vote))
    found = learn([vote.name], (coded,), positive, classes, missing, part=part)
    (codes,) = map(np.asarray, found.columns)
    laid = _laid_out(rows, voters, codes, (len(items), len(names)), duplicates)

    def give_back(labels: NDArray[Any] | None, probabilities: Shares | None) -> Any:
        return give(with_answers(items.to_frame(), labels, probabilities))

    def column_of_items(name: str) -> Sequence[Any]:
        raise OptionsError(
            f"{name!r} was given as a column's name, but the long form has a row a vote; "
            "give a mapping of items to labels instead."
        )

    table = Table(
        names, (), len(items), give_back, True, None, items.to_list, column_of_items, named
    )
    return table, replace(found, columns=laid)


def _long_columns(
    votes: Any, columns: tuple[str, str, str]
) -> tuple[list[nw.Series[Any]], Callable[[Frame], Any]]:
    """Take the three columns of the long form out of whatever holds them."""
    if is_array(votes):
        raise OptionsError(
            "classifier= and vote= name columns of the long form, but an array has no column names; "
            "leave them out, or give a dataframe."
        )
    frame, give = as_frame(votes)
    own = by_name(frame.columns)
    check_columns(own, columns)
    if len(frame) == 0:
        raise VotesError("Expected at least one vote, got none; give the table rows.")
    return [frame.get_column(own[name]).alias(name) for name in columns], give


def long_columns(item: str | None, classifier: str, vote: str) -> tuple[str, str, str]:
    """Name the columns of the long form; that of the items has a name by custom."""
    return ITEM_COLUMN if item is None else str(item), str(classifier), str(vote)


def check_columns(own: Iterable[str], columns: Sequence[str]) -> None:
    """Refuse columns of the long form that are not there, or not three."""
    check_known(own, columns)
    if len(set(columns)) < len(columns):
        raise OptionsError(
            f"item=, classifier= and vote= must name three different columns, got {listed(map(repr, columns))}."
        )


def _laid_out(
    rows: NDArray[np.int64],
    voters: NDArray[np.int64],
    codes: NDArray[np.int8],
    shape: tuple[int, int],
    duplicates: str | None,
) -> NDArray[np.int8] | csr_array:
    """Lay single votes out as a table, dense or sparse."""
    voted = codes >= 0
    if not voted.all():
        rows, voters, codes = rows[voted], voters[voted], codes[voted]
    table: NDArray[np.int8] | csr_array
    if shape[0] * shape[1] <= DENSE_CELLS or len(codes) >= DENSE_SHARE * shape[0] * shape[1]:
        table = np.full(shape, -1, dtype=np.int8)
        table[rows, voters] = codes
        pairs = int(np.count_nonzero(table >= 0))
    else:
        from scipy.sparse import csr_array

        table = csr_array((codes + np.int8(1), (rows, voters)), shape=shape)
        pairs = table.nnz
    if pairs == len(codes):
        return table
    repeated = len(codes) - pairs
    if duplicates is None:
        refuse_repeats(repeated)
    kept = _without_repeats(rows * shape[1] + voters, duplicates)
    warn_of_repeats(repeated, len(codes) - len(kept), duplicates)
    return _laid_out(rows[kept], voters[kept], codes[kept], shape, duplicates)


def refuse_repeats(number: int) -> NoReturn:
    """Say that classifiers voted more than once on an item."""
    raise VotesError(
        f"Expected at most one vote for each pair of item and classifier, got {counted(number, 'repeated pair')}; "
        "keep one vote of each, or say duplicates='last' to keep the last in the table's order, or duplicates='drop' "
        "to keep none."
    )


def warn_of_repeats(number: int, lost: int, duplicates: str) -> None:
    """Warn of the votes that were left out."""
    of_each = "all but the last of each" if duplicates == "last" else "all of each"
    warn(
        f"The votes hold {counted(number, 'repeated pair')} of item and classifier; as duplicates={duplicates!r} asks, "
        f"{of_each} were left out: {counted(lost, 'vote')}."
    )


def _without_repeats(pairs: NDArray[np.int64], duplicates: str) -> NDArray[np.int64]:
    """Say which places to keep, in their order: the last of each pair, or those of pairs met once."""
    order = np.argsort(pairs, kind="stable")
    new = np.concatenate([[True], pairs[order[1:]] != pairs[order[:-1]]])
    last = np.concatenate([new[1:], [True]])
    return np.sort(order[last if duplicates == "last" else last & new])


def placed_keys(keys: nw.Series[Any], names: tuple[str, ...]) -> NDArray[np.int64]:
    """Say where each classifier found stands among those named."""
    found = list(map(str, keys.to_list()))
    unknown = [name for name in found if name not in names]
    if unknown:
        raise VotesError(
            f"Column {keys.name!r} names {listed(map(repr, unknown))}; expected {listed(map(repr, names))}. "
            "Leave the votes of others out."
        )
    places = {name: place for place, name in enumerate(names)}
    return np.array([places[name] for name in found], dtype=np.int64)


def numbered(column: nw.Series[Any]) -> tuple[NDArray[np.int64], nw.Series[Any]]:
    """Number the sorted distinct values of a column; the engine does the matching."""
    kind = column.dtype
    empty = column.is_null() | column.is_nan() if kind.is_float() else column.is_null()
    gaps = int(empty.sum())
    if gaps:
        raise VotesError(
            f"Column {column.name!r} has {counted(gaps, 'empty cell')}; expected an item and a classifier for every vote. "
            "Fill them, or leave those rows out."
        )
    if kind == nw.Object:  # engines cannot sort these, or not all of them
        return _numbered_objects(column)
    if kind.is_nested() or kind == nw.Unknown:
        raise _no_names(column)
    try:
        keys = column.unique().sort()
    except TypeError:  # pandas keeps other things among text, unseen by the type of the column
        raise _no_names(column) from None
    # narwhals has no rank of a value in another column; a join on the key column is its way.
    rows = column.alias("key").to_frame().with_row_index("row")
    places = keys.alias("key").to_frame().with_row_index("place")
    joined = rows.join(places, on="key", how="left")
    numbers = np.empty(len(column), dtype=np.int64)
    numbers[joined.get_column("row").to_numpy()] = joined.get_column("place").to_numpy()
    return numbers, nw.maybe_reset_index(keys)


def _numbered_objects(column: nw.Series[Any]) -> tuple[NDArray[np.int64], nw.Series[Any]]:
    cells = column.to_list()
    try:
        keys = sorted(set(cells))
    except TypeError:
        raise _no_names(column) from None
    places = {key: place for place, key in enumerate(keys)}
    numbers = np.fromiter(map(places.__getitem__, cells), dtype=np.int64, count=len(cells))
    _, first = np.unique(numbers, return_index=True)
    return numbers, nw.maybe_reset_index(column[first.tolist()])


def _no_names(column: nw.Series[Any]) -> VotesError:
    return VotesError(
        f"Column {column.name!r} holds {column.dtype} that cannot be sorted; expected names or numbers, all of one kind. "
        "Convert it."
    )
