"""What a user has -> checked votes.

Arrays, dataframes (through narwhals, which only this room imports), mappings and files, wide (one
column a classifier) or long (one row a vote), become one `Votes`: columns, what to look for in
them, and the way back, so that answers return in the caller's own kind.
Nothing is copied that can be compared where it lies.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray

from labelfree._arrays import GiveBack, Table, check_size, from_array
from labelfree._columns import (
    Coded,
    Column,
    coded_array,
    coded_objects,
    labels_in,
    labels_of,
    learn,
)
from labelfree._errors import OptionsError, VotesError, counted, listed, warn
from labelfree._files import read_frame
from labelfree._labels import (
    Label,
    label_array,
    missing_labels,
    ordered_classes,
    refuse_labels,
)

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Frame: TypeAlias = "nw.DataFrame[Any]"

DENSE_CELLS = 50_000_000  # a long table with no more cells than this is laid out as a dense one ...
DENSE_SHARE = 0.1  # ... and so is any with at least this share of its cells voted
ITEM_COLUMN = "item"  # a table's column of this name is taken for the items' names
ANSWER_COLUMNS = ("label", "probability")
DUPLICATES = ("last", "drop")


class UnexpectedLabelError(VotesError):
    """A label came to light that the first rows did not show; the votes are read again with it."""


@dataclass(frozen=True, eq=False)
class Votes:
    """Votes of m classifiers on n items, checked but not copied.

    Attributes
    ----------
    classifiers : tuple of str
        Their names, in the caller's order.
    classes : tuple of labels
        As `classes` named them, or in sorted order; of two, the last is positive.
    values : tuple
        What stands for each class in the columns: the label as it is written there, or 0 … K−1.
    columns : (n, m) array, sequence of m arrays of length n, or sparse (n, m) array
        The votes. A sparse array holds class code + 1, and zero for a missing vote.
    missing : tuple
        What stands for a missing vote in the columns, beside NaN.
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
    may_hold : {"named", "two", "any"}
        Whether the classes were named, or two expected, or whether any label makes a class: then
        `classes` are those of the first rows until all rows have been read.
    """

    classifiers: tuple[str, ...]
    classes: tuple[Label, ...]
    values: tuple[Any, ...]
    columns: NDArray[Any] | tuple[NDArray[Any], ...] | csr_array
    missing: tuple[Any, ...]
    items: int
    give_back: GiveBack = field(repr=False)
    keeps_table: bool = False
    label_type: np.dtype[Any] | None = None
    names_of_items: Callable[[], Sequence[Any]] = field(repr=False, default=tuple)
    column_of_items: Callable[[str], Sequence[Any]] = field(repr=False, default=tuple)
    may_hold: str = "named"

    def label_array(self) -> NDArray[Any]:
        """The classes as an array, in the type of the caller's own votes where that holds them."""
        return label_array(self.classes, self.label_type)

    def refuse_unknown_labels(self) -> NoReturn:
        """Look through all votes for the labels that were not expected, and say which they are."""
        if self.may_hold == "any":
            raise UnexpectedLabelError(
                f"The votes hold other labels than {listed(map(repr, self.classes))}; read them all."
            )
        if self.may_hold == "two":
            self.with_all_labels()
        columns = self.columns.T if isinstance(self.columns, np.ndarray) else self.columns
        for column, name in zip(columns, self.classifiers, strict=True):
            labels = labels_in(column, self.missing)
            if not set(labels) <= set(self.values):
                refuse_labels(labels, self.classes, name)
        raise AssertionError(self.values)

    def with_all_labels(self) -> Votes:
        """Look through all votes for their labels, and take them for the classes."""
        dense: Any = self.columns
        found = labels_of(self.classifiers, dense, self.missing, self.may_hold)
        classes, values = ordered_classes(found, None, None, None, self.missing)
        return replace(self, classes=classes, values=values)


def read_votes(
    votes: Any,
    *,
    positive: Label = None,
    classes: Sequence[Label] | None = None,
    missing: Label | Sequence[Label] = (),
    classifiers: Sequence[str] | None = None,
    item: str | None = None,
    classifier: str | None = None,
    vote: str | None = None,
    duplicates: str | None = None,
    apart: str | None = None,
) -> Votes:
    """Check whatever a user calls votes.

    Parameters
    ----------
    votes : array (n, m), dataframe, mapping of columns, or path of a file
        Rows are items and columns classifiers; or the long form, one row a vote.
    positive : label, optional
        The positive one of two labels; a third is refused then. By default all labels that the
        votes hold are classes, in sorted order, and of two the greater is positive.
    classes : sequence of labels, optional
        All the labels there may be, in order; any other is refused. Of two, the last is positive.
    missing : label or sequence of labels, optional
        What stands for a missing vote, beside null, None and NaN.
    classifiers : sequence of str, optional
        Names for the columns of an array; the columns of a wide table that hold votes; or, in the
        long form, all the classifiers there may be, of which any other is refused.
    item, classifier, vote : str, optional
        Column names. `item` alone names a wide table's items; all three read the long form.
    duplicates : {"last", "drop"}, optional
        What to do where a classifier voted more than once on an item, which only the long form can
        hold: keep the vote that stands last in the table, or drop all of them, which does not depend
        on the order of the rows. By default such votes are refused.
    apart : str, optional
        A column of a wide table that holds neither items nor votes.

    Returns
    -------
    Votes
    """
    names = None if classifiers is None else _names(classifiers)
    _check_duplicates(duplicates)
    if classifier is not None or vote is not None:
        if classifier is None or vote is None:
            raise OptionsError(
                "The long form needs item=, classifier= and vote= together; give all three column names."
            )
        columns = (ITEM_COLUMN if item is None else str(item), str(classifier), str(vote))
        return _read_long(votes, columns, names, positive, classes, missing, duplicates)
    item = None if item is None else str(item)
    if _is_array(votes):
        table = from_array(votes, names, item)
    else:
        table = _from_frame(votes, names, item, apart)
    found = learn(table.names, table.columns, positive, classes, missing)
    return Votes(
        table.names,
        found.classes,
        found.values,
        found.columns,
        found.missing,
        table.items,
        table.give_back,
        table.keeps_table,
        table.label_type,
        table.names_of_items,
        table.column_of_items,
        found.may_hold,
    )


def plain_reading(
    *,
    missing: Any,
    item: str | None,
    classifier: str | None,
    vote: str | None,
    duplicates: str | None,
) -> dict[str, Any]:
    """Write down how votes were read, so that others can be read alike: what was said, in plain values."""
    said: dict[str, Any] = {"missing": list(missing_labels(missing))}
    _check_duplicates(duplicates)
    names = {"item": item, "classifier": classifier, "vote": vote, "duplicates": duplicates}
    said.update((option, str(name)) for option, name in names.items() if name is not None)
    return {option: value for option, value in said.items() if value != []}


def _check_duplicates(duplicates: Any) -> None:
    if duplicates is not None and not (isinstance(duplicates, str) and duplicates in DUPLICATES):
        raise OptionsError(
            f"duplicates= must be {' or '.join(map(repr, DUPLICATES))}, got {listed([repr(duplicates)])}."
        )


def _is_array(votes: Any) -> bool:
    if isinstance(votes, np.ndarray):
        return True
    if isinstance(votes, Sequence):
        return not isinstance(votes, str | bytes)
    return hasattr(votes, "__array__") and not nw.dependencies.is_into_dataframe(votes)


def _names(classifiers: Any) -> tuple[str, ...]:
    if not isinstance(classifiers, Iterable) or isinstance(classifiers, str | bytes):
        raise OptionsError(
            f"classifiers= must list names, got {listed([repr(classifiers)])}; give a list."
        )
    names = tuple(map(str, classifiers))
    if len(set(names)) < len(names):
        twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
        raise OptionsError(
            f"classifiers= names a column twice ({listed(map(repr, twice))}); name each once."
        )
    return names


# --- tables -----------------------------------------------------------------------------------


def _from_frame(
    votes: Any, names: tuple[str, ...] | None, item: str | None, apart: str | None
) -> Table:
    frame, give = _as_frame(votes)
    own = _by_name(frame.columns)
    _check_known(own, [] if apart is None else [apart])
    names = _chosen(tuple(name for name in own if name != apart), names, item)
    check_size(len(frame), len(names))
    columns = tuple(_series_column(name, frame.get_column(own[name])) for name in names)

    def give_back(labels: NDArray[Any] | None, probabilities: NDArray[np.float64] | None) -> Any:
        return give(_with_answers(frame, labels, probabilities))

    named = ITEM_COLUMN if item is None else item

    def names_of_items() -> Sequence[Any]:
        return frame.get_column(own[named]).to_list() if named in own else range(len(frame))

    def column_of_items(name: str) -> Sequence[Any]:
        _check_known(own, [name])
        return frame.get_column(own[name]).to_list()

    common = _common_type(columns)
    return Table(
        names, columns, len(frame), give_back, True, common, names_of_items, column_of_items
    )


def _as_frame(votes: Any) -> tuple[Frame, Callable[[Frame], Any]]:
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
        return frame.collect(), lambda answers: answers.lazy(backend=engine).to_native()
    return frame, nw.to_native


def _from_mapping(votes: Mapping[Any, Any]) -> Frame:
    import polars as pl

    series = []
    for name, key in _by_name(votes).items():
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


def _by_name(columns: Iterable[Any]) -> dict[str, Any]:
    """Find a table's own names, which need not be text, by the text that they are written as."""
    own = list(columns)
    named = {str(name): name for name in own}
    if len(named) < len(own):
        raise _twice()
    return named


def _chosen(
    columns: tuple[str, ...], names: tuple[str, ...] | None, item: str | None
) -> tuple[str, ...]:
    """Pick the columns that hold votes."""
    _check_known(columns, [*(names or ()), *([] if item is None else [item])])
    if names is None:
        apart = ITEM_COLUMN if item is None else item
        return tuple(name for name in columns if name != apart)
    if item in names:
        raise OptionsError(
            f"item={item!r} is named in classifiers= too; a column holds the items or votes, not both."
        )
    return names


def _check_known(columns: Iterable[str], names: Iterable[str]) -> None:
    unknown = [name for name in names if name not in columns]
    if unknown:
        raise OptionsError(
            f"There is no column {listed(map(repr, unknown))}; the columns are {listed(map(repr, columns), 12)}."
        )


def _series_column(name: str, column: nw.Series[Any]) -> Column:
    """Take a column's memory where that can be compared; code it where not."""
    kind = column.dtype
    if kind.is_nested() or kind.is_temporal():
        raise VotesError(
            f"Column {name!r} holds {kind}; expected text, numbers or truth values. "
            "Convert it, or leave it out with classifiers=."
        )
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


def _with_answers(
    frame: Frame, labels: NDArray[Any] | None, probabilities: NDArray[np.float64] | None
) -> Frame:
    answers = zip(ANSWER_COLUMNS, (labels, probabilities), strict=True)
    new = {name: values for name, values in answers if values is not None}
    taken = [name for name in new if name in frame.columns]
    if taken:
        raise OptionsError(
            f"The table already has a column {listed(map(repr, taken))}, which the answer needs; rename it first."
        )
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


# --- the long form ----------------------------------------------------------------------------


def _read_long(
    votes: Any,
    columns: tuple[str, str, str],
    names: tuple[str, ...] | None,
    positive: Label,
    classes: Sequence[Label] | None,
    missing: Label | Sequence[Label],
    duplicates: str | None,
) -> Votes:
    (item, classifier, vote), give = _long_columns(votes, columns)
    rows, items = _numbered(item)
    voters, keys = _numbered(classifier)
    if names is None:
        names = tuple(map(str, keys.to_list()))
    else:
        voters = _placed(keys, names)[voters]
    check_size(len(items), len(names))
    coded = coded_array(vote.name, _series_column(vote.name, vote))
    found = learn([vote.name], (coded,), positive, classes, missing)
    laid = _laid_out(rows, voters, found.columns[0], (len(items), len(names)), duplicates)

    def give_back(labels: NDArray[Any] | None, probabilities: NDArray[np.float64] | None) -> Any:
        return give(_with_answers(items.to_frame(), labels, probabilities))

    def column_of_items(name: str) -> Sequence[Any]:
        raise OptionsError(
            f"{name!r} was given as a column's name, but the long form has a row a vote; "
            "give a mapping of items to labels instead."
        )

    return Votes(
        names,
        found.classes,
        found.values,
        laid,
        (-1,),
        len(items),
        give_back,
        keeps_table=True,
        names_of_items=items.to_list,
        column_of_items=column_of_items,
        may_hold=found.may_hold,
    )


def _long_columns(
    votes: Any, columns: tuple[str, str, str]
) -> tuple[list[nw.Series[Any]], Callable[[Frame], Any]]:
    """Take the three columns of the long form out of whatever holds them."""
    if _is_array(votes):
        raise OptionsError(
            "classifier= and vote= name columns of the long form, but an array has no column names; "
            "leave them out, or give a dataframe."
        )
    frame, give = _as_frame(votes)
    own = _by_name(frame.columns)
    _check_known(own, columns)
    if len(set(columns)) < len(columns):
        raise OptionsError(
            f"item=, classifier= and vote= must name three different columns, got {listed(map(repr, columns))}."
        )
    if len(frame) == 0:
        raise VotesError("Expected at least one vote, got none; give the table rows.")
    return [frame.get_column(own[name]).alias(name) for name in columns], give


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
    repeated = counted(len(codes) - pairs, "repeated pair")
    if duplicates is None:
        raise VotesError(
            f"Expected at most one vote for each pair of item and classifier, got {repeated}; keep one vote of each, "
            "or say duplicates='last' to keep the last in the table's order, or duplicates='drop' to keep none."
        )
    kept = _without_repeats(rows * shape[1] + voters, duplicates)
    left_out = counted(len(codes) - len(kept), "vote")
    of_each = "all but the last of each" if duplicates == "last" else "all of each"
    warn(
        f"The votes hold {repeated} of item and classifier; as duplicates={duplicates!r} asks, "
        f"{of_each} were left out: {left_out}."
    )
    return _laid_out(rows[kept], voters[kept], codes[kept], shape, duplicates)


def _without_repeats(pairs: NDArray[np.int64], duplicates: str) -> NDArray[np.int64]:
    """Say which places to keep, in their order: the last of each pair, or those of pairs met once."""
    order = np.argsort(pairs, kind="stable")
    new = np.concatenate([[True], pairs[order[1:]] != pairs[order[:-1]]])
    last = np.concatenate([new[1:], [True]])
    return np.sort(order[last if duplicates == "last" else last & new])


def _placed(keys: nw.Series[Any], names: tuple[str, ...]) -> NDArray[np.int64]:
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


def _numbered(column: nw.Series[Any]) -> tuple[NDArray[np.int64], nw.Series[Any]]:
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


__all__ = ["ANSWER_COLUMNS", "GiveBack", "Label", "Votes", "plain_reading", "read_votes"]
