"""What a user has -> checked votes.

Arrays, dataframes (through narwhals, which only this room imports), mappings and files, wide (one
column a classifier) or long (one row a vote), become one `Votes`: raw columns, the two labels to
look for in them, and the way back, so that answers return in the caller's own kind.
Nothing is copied that can be compared where it lies.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Number
from typing import TYPE_CHECKING, Any, NoReturn

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from labelfree._errors import FileError, LabelfreeWarning, OptionsError, VotesError, counted, listed
from labelfree._files import read_frame

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Label = Any  # whatever the user calls a class: a string, a number, a truth value
GiveBack = Callable[[NDArray[Any] | None, NDArray[np.float64] | None], Any]

FIRST_LOOK = 512  # rows read to learn the labels; every later row is compared with what was found
DENSE_CELLS = 50_000_000  # a long table with no more cells than this is laid out as a dense one ...
DENSE_SHARE = 0.1  # ... and so is any with at least this share of its cells voted
ITEM_COLUMN = "item"  # a wide table's column of this name is taken for the items' names
ANSWER_COLUMNS = ("label", "probability")


@dataclass(frozen=True, eq=False)
class Votes:
    """Votes of m classifiers on n items, checked but not copied.

    Attributes
    ----------
    classifiers : tuple of str
        Their names, in the caller's order.
    classes : tuple of labels
        The labels in sorted order, or as `positive` and `classes` said; of two, the last is positive.
    values : tuple
        What stands for each class in the columns (the labels themselves, or 0 … K−1).
    columns : (n, m) array, sequence of m arrays of length n, or sparse (n, m) array
        Raw votes. A sparse array holds class code + 1, and zero for a missing vote.
    missing : tuple
        What stands for a missing vote in the columns, beside NaN.
    items : int
        n.
    give_back : callable
        (labels, probabilities) -> the answer in the caller's own kind.
    keeps_table : bool
        Whether that kind is a table, which takes labels and probabilities together.
    """

    classifiers: tuple[str, ...]
    classes: tuple[Label, ...]
    values: tuple[Any, ...]
    columns: NDArray[Any] | tuple[NDArray[Any], ...] | csr_array
    missing: tuple[Any, ...]
    items: int
    give_back: GiveBack = field(repr=False)
    keeps_table: bool = False

    def label_array(self) -> NDArray[Any]:
        """The classes as an array, in the type of the caller's own votes where that holds them."""
        columns = (
            _column_views(self.columns) if isinstance(self.columns, np.ndarray | tuple) else ()
        )
        own = {column.dtype for column in columns} if self.values is self.classes else set()
        if len(own) == 1:
            return np.array(self.classes, dtype=own.pop())
        plain = np.array(self.classes)
        kept = plain.dtype.kind in "biuf" and plain.tolist() == list(self.classes)
        return plain if kept else np.array(self.classes, dtype=object)

    def refuse_unknown_labels(self) -> NoReturn:
        """Look through all votes for the labels that were not expected, and say which they are."""
        for column, name in zip(_column_views(self.columns), self.classifiers, strict=True):
            labels = _labels_in(column, self.missing)
            if not set(labels) <= set(self.values):
                _refuse_labels(labels, self.classes, name)
        labels = sorted(
            {
                label
                for column in _column_views(self.columns)
                for label in _labels_in(column, self.missing)
            }
        )
        _refuse_labels(labels, self.classes, None)


@dataclass(frozen=True, eq=False)
class _Raw:
    """A table as it came: named raw columns, before its labels are known."""

    names: tuple[str, ...]
    columns: NDArray[Any] | tuple[NDArray[Any], ...]
    give_back: GiveBack
    keeps_table: bool = True


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
) -> Votes:
    """Check whatever a user calls votes.

    Parameters
    ----------
    votes : array (n, m), dataframe, mapping of columns, or path of a file
        Rows are items and columns classifiers; or the long form, one row a vote.
    positive : label, optional
        The positive one of two labels; by default the greater in sorted order.
    classes : sequence of labels, optional
        All the labels there may be; any other is refused. Of two, the last is positive.
    missing : label or sequence of labels, optional
        What stands for a missing vote, beside null, None and NaN.
    classifiers : sequence of str, optional
        Names for the columns of an array; or the columns of a wide table that hold votes.
    item, classifier, vote : str, optional
        Column names. `item` alone names a wide table's items; all three read the long form.

    Returns
    -------
    Votes
    """
    missing = _as_tuple(missing)
    if (classifier is None) != (vote is None):
        raise OptionsError(
            "The long form needs item=, classifier= and vote= together; give all three column names."
        )
    if classifier is not None:
        frame, give = _as_frame(votes)
        return _read_long(
            frame, give, item or ITEM_COLUMN, classifier, str(vote), positive, classes, missing
        )
    raw = _read_wide(votes, classifiers, item)
    _check_shape(raw)
    return _with_labels(raw, positive, classes, missing)


# --- tables -----------------------------------------------------------------------------------


def _read_wide(votes: Any, classifiers: Sequence[str] | None, item: str | None) -> _Raw:
    if _is_array(votes):
        return _from_array(votes, classifiers)
    frame, give = _as_frame(votes)
    if classifiers is None:
        item = ITEM_COLUMN if item is None and ITEM_COLUMN in frame.columns else item
        names = [name for name in frame.columns if name != item]
    else:
        names = list(classifiers)
    _check_columns(frame, [*names, *([item] if item else [])])
    if len(set(names)) < len(names):
        raise OptionsError("classifiers= names a column twice; name each once.")
    columns = tuple(_raw_column(frame[name]) for name in names)

    def give_back(labels: NDArray[Any] | None, probabilities: NDArray[np.float64] | None) -> Any:
        return give(_with_answers(frame, labels, probabilities))

    return _Raw(tuple(names), columns, give_back)


def _is_array(votes: Any) -> bool:
    if isinstance(votes, np.ndarray):
        return True
    return isinstance(votes, Sequence) and not isinstance(votes, str | bytes)


def _from_array(votes: Any, classifiers: Sequence[str] | None) -> _Raw:
    if isinstance(votes, np.ma.MaskedArray):
        votes = np.where(np.ma.getmaskarray(votes), None, votes.data.astype(object))
    try:
        table = np.asarray(votes)
        if table.dtype.kind in "OUS" and not isinstance(votes, np.ndarray):
            table = np.array(votes, dtype=object)  # numpy would turn [1, "a", None] into text
    except ValueError:
        raise VotesError(
            "Expected rows of equal length, one vote a classifier, got rows of unequal length; "
            "fill the gaps with None."
        ) from None
    if table.ndim != 2:
        raise VotesError(
            f"Expected a table of votes with one row an item and one column a classifier, "
            f"got an array of shape {table.shape}; give it two dimensions."
        )
    if table.dtype.kind not in "biufUSO":
        raise VotesError(
            f"Expected votes that are numbers, truth values or strings, got an array of {table.dtype}; convert it."
        )
    n, m = table.shape
    if classifiers is None:
        names = tuple(f"classifier_{number}" for number in range(1, m + 1))
    else:
        names = tuple(str(name) for name in classifiers)
        if len(names) != m or len(set(names)) < m:
            raise OptionsError(
                f"classifiers= must name each of the {m} columns once, got {counted(len(names), 'name')}; "
                "give one name a column."
            )
    if classifiers is None and 3 <= n < m and n <= 50:
        warnings.warn(
            f"The array has {n} rows and {m} columns, so it was read as {m} classifiers on {n} items; "
            "if rows are classifiers, pass votes.T.",
            LabelfreeWarning,
            stacklevel=4,
        )
    # Columns are read one at a time where that is how they lie in memory; rows otherwise.
    by_column = n > 1 and table.strides[0] == table.itemsize and m > 1
    columns = tuple(table.T) if by_column or table.dtype.kind == "O" else table

    def give_back(labels: NDArray[Any] | None, probabilities: NDArray[np.float64] | None) -> Any:
        return labels if labels is not None else probabilities

    return _Raw(names, columns, give_back, keeps_table=False)


def _as_frame(votes: Any) -> tuple[nw.DataFrame[Any], Callable[[nw.DataFrame[Any]], Any]]:
    """Wrap a file, mapping or dataframe, and say how to turn such a frame back into its kind."""
    if isinstance(votes, str | os.PathLike):
        return nw.from_native(read_frame(votes), eager_only=True), nw.to_native
    if isinstance(votes, Mapping):
        return _frame_of_mapping(votes), lambda frame: frame.to_dict(as_series=False)
    try:
        frame = nw.from_native(votes)
    except TypeError:
        raise VotesError(
            f"Expected votes as an array, a dataframe, a mapping of columns or the path of a file, "
            f"got {type(votes).__name__}; convert it."
        ) from None
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    return frame, nw.to_native


def _frame_of_mapping(votes: Mapping[Any, Any]) -> nw.DataFrame[Any]:
    import polars as pl

    lengths = {
        str(name): len(column) for name, column in votes.items() if hasattr(column, "__len__")
    }
    if len(set(lengths.values())) > 1 or len(lengths) < len(votes):
        shown = listed(f"{name}: {length}" for name, length in lengths.items())
        raise VotesError(f"Expected columns of equal length, got {shown}; fill the gaps with None.")
    try:
        frame = pl.DataFrame(
            {str(name): _list_of(column) for name, column in votes.items()}, strict=True
        )
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
        raise VotesError(
            "Expected columns that each hold one kind of label, got mixed or nested values; use one kind."
        ) from None
    return nw.from_native(frame, eager_only=True)


def _list_of(column: Any) -> list[Any]:
    return column.tolist() if isinstance(column, np.ndarray) else list(column)


def _check_columns(frame: nw.DataFrame[Any], names: Iterable[str]) -> None:
    unknown = [name for name in names if name not in frame.columns]
    if unknown:
        raise OptionsError(
            f"There is no column {listed(map(repr, unknown))}; the columns are {listed(map(repr, frame.columns), 12)}."
        )


def _check_shape(raw: _Raw) -> None:
    n, m = (
        raw.columns.shape
        if isinstance(raw.columns, np.ndarray)
        else (len(raw.columns[0]) if raw.columns else 0, len(raw.columns))
    )
    if m < 3:
        raise VotesError(
            f"Expected votes of at least three classifiers, got {m}; with fewer, no method can tell "
            "a good classifier from a bad one without labels."
        )
    if n == 0:
        raise VotesError("Expected at least one item, got none; give the table rows.")


def _raw_column(column: nw.Series[Any]) -> NDArray[Any]:
    """Take a column's memory where that can be; otherwise its values as objects."""
    kind = column.dtype
    if kind.is_nested() or kind.is_temporal():
        raise VotesError(
            f"Column {column.name!r} holds {kind}; expected numbers, truth values or strings. "
            "Leave it out with classifiers=, or convert it."
        )
    if kind == nw.Object:
        return column.to_numpy()
    gaps = column.null_count() > 0
    if kind.is_float() or (kind.is_integer() and not gaps) or (kind == nw.Boolean and not gaps):
        return np.asarray(column.to_numpy())
    return _coded_column(column)


def _coded_column(column: nw.Series[Any]) -> NDArray[Any]:
    """Compare in the frame's own engine; only the few distinct labels become objects."""
    if column.dtype.is_decimal():
        column = column.cast(nw.Float64)
    elif column.dtype in (nw.Categorical, nw.Enum):
        column = column.cast(nw.String)
    labels = column.drop_nulls().unique().to_list()
    if len(labels) > 100:
        raise VotesError(
            f"Column {column.name!r} holds {len(labels)} different labels ({listed(sorted(labels, key=str), 3)}); two were "
            f"expected. If it names the items, say item={column.name!r}; if it is no classifier, leave it out with classifiers=."
        )
    out = np.full(len(column), None, dtype=object)
    for label in labels:
        out[(column == label).fill_null(value=False).to_numpy().astype(bool)] = label
    return out


def _with_answers(
    frame: nw.DataFrame[Any], labels: NDArray[Any] | None, probabilities: NDArray[np.float64] | None
) -> nw.DataFrame[Any]:
    new: dict[str, NDArray[Any]] = {}
    for name, values in zip(ANSWER_COLUMNS, (labels, probabilities), strict=True):
        if values is not None:
            new[name] = values
    taken = [name for name in new if name in frame.columns]
    if taken:
        raise OptionsError(
            f"The table already has a column {listed(map(repr, taken))}; rename it first."
        )
    series = [
        nw.new_series(name, _engine_values(values), backend=frame.implementation)
        for name, values in new.items()
    ]
    if frame.implementation.is_pandas():
        index = nw.maybe_get_index(frame)
        series = [nw.maybe_set_index(each, index=index) for each in series]
    return frame.with_columns(*series)


def _engine_values(values: NDArray[Any]) -> Any:
    return values if values.dtype.kind in "biuf" else values.tolist()


# --- the long form ----------------------------------------------------------------------------


def _read_long(
    frame: nw.DataFrame[Any],
    give: Callable[[nw.DataFrame[Any]], Any],
    item: str,
    classifier: str,
    vote: str,
    positive: Label,
    classes: Sequence[Label] | None,
    missing: tuple[Label, ...],
) -> Votes:
    _check_columns(frame, [item, classifier, vote])
    if len({item, classifier, vote}) < 3:
        raise OptionsError("item=, classifier= and vote= must name three different columns.")
    item_codes, item_keys = _numbered(frame, item)
    classifier_codes, classifier_keys = _numbered(frame, classifier)
    n, m = len(item_keys), len(classifier_keys)
    names = tuple(str(key) for key in classifier_keys.to_list())
    column = _Raw((vote,), (_raw_column(frame[vote]),), lambda *_: None)
    cells = item_codes * m + classifier_codes
    if len(np.unique(cells)) < len(cells):
        times = len(cells) - len(np.unique(cells))
        raise VotesError(
            f"Expected at most one vote for each pair of item and classifier, got {counted(times, 'repeated pair')}; "
            "keep one vote of each."
        )

    def give_back(labels: NDArray[Any] | None, probabilities: NDArray[np.float64] | None) -> Any:
        return give(_with_answers(item_keys.to_frame(), labels, probabilities))

    _check_shape(_Raw(names, np.empty((n, m), dtype=bool), give_back))
    found = _with_labels(column, positive, classes, missing)
    codes = _codes(found)
    if n * m <= DENSE_CELLS or len(codes) >= DENSE_SHARE * n * m:
        table = np.full((n, m), -1, dtype=np.int8)
        table[item_codes, classifier_codes] = codes
        columns: NDArray[Any] | csr_array = table
    else:
        from scipy.sparse import csr_array

        kept = codes >= 0
        columns = csr_array(
            (codes[kept] + np.int8(1), (item_codes[kept], classifier_codes[kept])), shape=(n, m)
        )
        columns.sort_indices()
    values = tuple(range(len(found.classes)))
    return Votes(names, found.classes, values, columns, (-1,), n, give_back, keeps_table=True)


def _numbered(frame: nw.DataFrame[Any], name: str) -> tuple[NDArray[np.int64], nw.Series[Any]]:
    """Number the sorted distinct values of a column; the engine does the matching."""
    column = frame[name]
    if column.null_count():
        raise VotesError(
            f"Column {name!r} has {counted(column.null_count(), 'empty cell')}; every vote needs one."
        )
    if column.dtype.is_nested() or column.dtype == nw.Object:
        raise VotesError(f"Column {name!r} holds {column.dtype}; expected names or numbers.")
    keys = column.unique().sort()
    # narwhals has no rank of a value in another column; a join on the key column is its way.
    table = keys.to_frame().with_row_index("__number")
    rows = frame.select(nw.col(name)).with_row_index("__row")
    joined = rows.join(table, on=name, how="left").sort("__row")
    return joined["__number"].to_numpy().astype(np.int64), keys


def _codes(votes: Votes) -> NDArray[np.int8]:
    """Code one long column of votes: 0 … K−1, and −1 for missing."""
    (column,) = _column_views(votes.columns)
    codes = np.full(len(column), -1, dtype=np.int8)
    for code, value in enumerate(votes.values):
        codes[column == value] = code
    unknown = codes < 0
    if unknown.any() and _labels_in(column[unknown], votes.missing):
        votes.refuse_unknown_labels()
    return codes


# --- labels -----------------------------------------------------------------------------------


def _with_labels(
    raw: _Raw, positive: Label, classes: Sequence[Label] | None, missing: tuple[Label, ...]
) -> Votes:
    views = _column_views(raw.columns)
    if any(column.dtype.kind == "O" for column in views):
        raw, labels = _factorized(raw, missing)
        found: Iterable[Label] = labels
    else:
        found = _first_labels(raw, missing)
    ordered = _order_classes(found, positive, classes)
    n = len(views[0])
    if any(column.dtype.kind == "O" for column in views):
        values = tuple(labels.index(label) if label in labels else len(labels) for label in ordered)
        if any(label not in ordered for label in labels):
            _refuse_labels(labels, ordered, None)
        return Votes(
            raw.names, ordered, values, raw.columns, (-1,), n, raw.give_back, raw.keeps_table
        )
    return Votes(
        raw.names, ordered, ordered, raw.columns, missing, n, raw.give_back, raw.keeps_table
    )


def _column_views(columns: Any) -> tuple[NDArray[Any], ...]:
    return tuple(columns.T) if isinstance(columns, np.ndarray) else tuple(columns)


def _factorized(raw: _Raw, missing: tuple[Label, ...]) -> tuple[_Raw, list[Label]]:
    """Turn columns of objects into columns of codes, in order of first appearance."""
    codes: dict[Label, int] = {}
    absent = set(missing)
    columns = []
    for name, column in zip(raw.names, _column_views(raw.columns), strict=True):
        try:
            columns.append(
                np.array([_code(label, codes, absent) for label in column.tolist()], dtype=np.int64)
            )
        except TypeError:
            raise VotesError(
                f"Column {name!r} holds nested objects; expected one label a vote: a string, a number or a truth value."
            ) from None
    width = np.int8 if len(codes) < 127 else np.int64
    return replace(raw, columns=tuple(column.astype(width) for column in columns)), list(codes)


def _code(label: Label, codes: dict[Label, int], absent: set[Label]) -> int:
    if isinstance(label, list | dict | set | tuple | np.ndarray):
        raise TypeError
    if _is_gap(label) or label in absent:
        return -1
    return codes.setdefault(label, len(codes))


def _is_gap(label: Label) -> bool:
    try:
        return label is None or bool(label != label)  # noqa: PLR0124 (NaN is not equal to itself)
    except TypeError:  # pandas' NA will not even say that
        return True


def _first_labels(raw: _Raw, missing: tuple[Label, ...]) -> list[Label]:
    """Read rows until two labels have shown themselves; mostly the first few hundred do."""
    found: set[Label] = set()
    views = _column_views(raw.columns)
    n = len(views[0])
    start, step = 0, FIRST_LOOK
    while start < n and len(found) < 2:
        for column in views:
            found.update(_labels_in(column[start : start + step], missing))
        start, step = start + step, step * 4
    return sorted(found) if _sortable(found) else list(found)


def _labels_in(column: NDArray[Any], missing: tuple[Label, ...]) -> list[Label]:
    if column.dtype.kind == "f":
        column = column[~np.isnan(column)]
    if len(column) and not (column[0] == column).all():
        labels = np.unique(column).tolist()
    else:
        labels = column[:1].tolist()
    return [label for label in labels if label not in missing]


def _sortable(labels: Iterable[Label]) -> bool:
    labels = list(labels)
    return (
        all(isinstance(label, Number) for label in labels)
        or all(isinstance(label, str) for label in labels)
        or (all(isinstance(label, bytes) for label in labels))
    )


def _order_classes(
    found: Iterable[Label], positive: Label, classes: Sequence[Label] | None
) -> tuple[Label, ...]:
    found = list(found)
    for label in found:
        if isinstance(label, float) and not np.isfinite(label):
            raise VotesError(
                "Expected finite labels, got an infinity among the votes; replace it by NaN if it means missing."
            )
    if classes is None:
        if not _sortable(found):
            raise VotesError(
                f"Expected labels of one kind, got {listed(map(repr, found))}, which mix kinds; make them all text or all numbers."
            )
        if len(found) < 2:
            what = f"only {found[0]!r}" if found else "no vote at all"
            raise VotesError(
                f"Expected votes with two labels, got {what}; if the other label just never occurs, name both with classes=."
            )
        ordered = tuple(sorted(found))
    else:
        ordered = tuple(classes)
        if len(ordered) < 2 or len(set(ordered)) < len(ordered):
            raise OptionsError(
                f"classes= must name at least two different labels, got {listed(map(repr, ordered))}."
            )
    if classes is None and len(ordered) > 2:
        _refuse_labels(ordered, ordered[:2], None)
    return _positive_last(ordered, positive)


def _positive_last(ordered: tuple[Label, ...], positive: Label) -> tuple[Label, ...]:
    if positive is None:
        return ordered
    # A command line can only say '1' where the votes hold the number 1.
    match = [label for label in ordered if label == positive or str(label) == positive]
    if not match:
        raise OptionsError(
            f"positive= must be one of the labels {listed(map(repr, ordered))}, got {positive!r}."
        )
    return (*(label for label in ordered if label != match[0]), match[0])


def _refuse_labels(
    labels: Sequence[Label], classes: Sequence[Label], column: str | None
) -> NoReturn:
    where = f"Column {column!r} holds" if column else "The votes hold"
    others = [label for label in labels if label not in classes] or list(labels)[-1:]
    raise VotesError(
        f"{where} {counted(len(labels), 'label')} ({listed(labels)}); expected {listed(classes, 3)}"
        f"{' or another two' if len(classes) == 2 else ''}. Name a label that means no vote with missing={others[0]!r}, "
        "or merge labels until two are left."
    )


def _as_tuple(missing: Any) -> tuple[Any, ...]:
    if missing is None:
        return ()
    if isinstance(missing, list | tuple | set | frozenset):
        return tuple(missing)
    return (missing,)


__all__ = ["FileError", "GiveBack", "Label", "Votes", "read_votes"]
