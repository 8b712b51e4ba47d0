"""Columns of votes -> columns that can be compared with their classes.

A column is an array that is compared where it lies (truth values, numbers, text, bytes), or it is
coded: places in a list of labels. Columns of one kind that lie in memory stay as they are; any
others become codes of the classes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from labelfree._errors import VotesError, listed, warn
from labelfree._labels import (
    MANY,
    MOST_LABELS,
    Label,
    asked_classes,
    fitted,
    fitted_all,
    is_gap,
    is_label,
    joint,
    kind_of,
    kind_of_one,
    missing_labels,
    ordered_classes,
    plain,
    refuse_labels,
    refuse_many,
    refuse_third,
)

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# Kinds of arrays that are compared where they lie, and what they hold.
IN_PLACE = {"b": "truth", "i": "number", "u": "number", "f": "number", "U": "text", "S": "bytes"}
FIRST_LOOK = 512  # rows read to learn the labels; every later row is compared with what was found
CELLS = 1 << 18  # that are searched for labels at a time


@dataclass(frozen=True, eq=False)
class Coded:
    """A column of votes as places in a list of labels.

    Attributes
    ----------
    labels : tuple of labels
        Those that occur in the column.
    codes : (n,) array of int8
        Place in `labels`; −1 where there is no vote.
    """

    labels: tuple[Label, ...]
    codes: NDArray[np.int8]


Column: TypeAlias = NDArray[Any] | Coded
Columns: TypeAlias = NDArray[Any] | tuple[NDArray[Any], ...]


@dataclass(frozen=True, eq=False)
class Learned:
    """Columns, and what to compare them with.

    Attributes
    ----------
    classes : tuple of labels
        As `classes` named them, or in sorted order; of two, the last is positive.
    values : tuple
        What stands for each class in the columns: the label as it is written there, or 0 … K−1.
    missing : tuple
        What stands for a missing vote in the columns, beside NaN.
    columns : (n, m) array, tuple of m arrays of length n, or sparse (n, m) array
    may_hold : str
        What else later rows may hold: "any" other label, which is one more class then; or no other
        than the "named" classes, or than "two", of which one was said to be positive.
    """

    classes: tuple[Label, ...]
    values: tuple[Any, ...]
    missing: tuple[Any, ...]
    columns: Columns | csr_array
    may_hold: str


def learn(
    names: Sequence[str],
    columns: NDArray[Any] | tuple[Column, ...],
    positive: Label,
    classes: Any,
    missing: Any,
    *,
    part: bool = False,
) -> Learned:
    """Find the classes in columns of votes, and put them in order.

    Parameters
    ----------
    names : sequence of str
        One a column, for the errors.
    columns : (n, m) array or tuple of m columns
    positive, classes, missing
        As the user gave them. A label is named by itself, or by how it is written: the text "1"
        names the number 1 among numbers, and the number 1 the text "1" among words.
    part : bool
        Whether these are a part of all votes, which may lack labels.

    Returns
    -------
    Learned
    """
    asked = None if classes is None else asked_classes(classes)
    may_hold = "named" if asked is not None else "any" if positive is None else "two"
    absent = missing_labels(missing)
    kind = _kind_in_place(columns)
    if kind is not None:
        arrays = columns if isinstance(columns, np.ndarray) else tuple(map(np.asarray, columns))
        absent = fitted_all(absent, kind)
        found = _first_labels(names, arrays, absent, may_hold) if asked is None else ()
        ordered, values = ordered_classes(found, asked, kind, positive, absent, part=part)
        return Learned(ordered, values, absent, arrays, may_hold)
    coded = [coded_array(name, column) for name, column in zip(names, columns, strict=True)]
    coded, kind = _of_one_kind(names, [_without(column, absent) for column in coded], asked)
    held = [column.labels for column in coded]
    found = _check_labels(names, held, may_hold) if asked is None else ()
    absent = fitted_all(absent, kind)
    ordered, values = ordered_classes(found, asked, kind, positive, absent, part=part)
    codes = tuple(
        _class_codes(name, column, values) for name, column in zip(names, coded, strict=True)
    )
    return Learned(ordered, tuple(range(len(ordered))), (-1,), codes, may_hold)


def _kind_in_place(columns: NDArray[Any] | tuple[Column, ...]) -> str | None:
    """Tell the kind of columns that can be compared where they lie; None of any others."""
    parts = (columns,) if isinstance(columns, np.ndarray) else columns
    kinds = set()
    for part in parts:
        if isinstance(part, Coded) or part.dtype.kind not in IN_PLACE:
            return None
        kinds.add(IN_PLACE[part.dtype.kind])
    return joint(kinds)


def _first_labels(
    names: Sequence[str], columns: Columns, absent: tuple[Label, ...], may_hold: str
) -> list[Label]:
    """Read rows until two labels have shown themselves; mostly the first few hundred do."""
    rows = len(columns if isinstance(columns, np.ndarray) else columns[0])
    stop, found = FIRST_LOOK, labels_of(names, columns, absent, may_hold, FIRST_LOOK)
    while stop < rows and len(found) < 2:
        stop *= 4
        found = labels_of(names, columns, absent, may_hold, stop)
    return found


def labels_of(
    names: Sequence[str],
    columns: Columns,
    absent: tuple[Label, ...],
    may_hold: str,
    stop: int | None = None,
) -> list[Label]:
    """List the labels of the first rows, or of all rows, where they are not too many."""
    parts = (columns,) if isinstance(columns, np.ndarray) else columns
    found = {label for part in parts for label in labels_in(part[:stop], absent)}
    if len(found) > (2 if may_hold == "two" else MANY):
        each = columns.T if isinstance(columns, np.ndarray) else columns
        _check_labels(names, [labels_in(column[:stop], absent) for column in each], may_hold)
    return list(found)


def _check_labels(
    names: Sequence[str], held: Sequence[Sequence[Label]], may_hold: str
) -> list[Label]:
    """Join the labels of all columns, and refuse too many."""
    found = list(dict.fromkeys(label for labels in held for label in labels))
    if may_hold == "two" and len(found) > 2:
        refuse_third(names, held)
    if len(found) > MOST_LABELS:
        spread = zip((*names, None), (*held, found), strict=True)
        column, labels = next(each for each in spread if len(each[1]) > MOST_LABELS)
        refuse_many(labels, column)
    _look_at_strangers(names, held)
    return found


def _look_at_strangers(names: Sequence[str], held: Sequence[Sequence[Label]]) -> None:
    """Warn of a column with many labels that no other column holds: it may be no classifier."""
    times = Counter(label for labels in held for label in labels)
    for name, labels in zip(names, held, strict=True):
        own = [label for label in labels if times[label] == 1]
        if len(names) > 1 and len(own) > MANY:
            warn(
                f"Column {name!r} holds {len(own)} labels that no other column does ({listed(map(repr, own), 3)}); "
                f"if it names the items, say item={name!r}, and if it is no classifier, leave it out."
            )


# --- coding -------------------------------------------------------------------------------------


def coded_array(name: str, column: Column, gaps: NDArray[np.bool_] | None = None) -> Coded:
    """Code an array of any kind; `gaps` says where it is masked."""
    if isinstance(column, Coded):
        return column
    if column.dtype.kind not in IN_PLACE:
        return coded_objects(name, column.tolist() if gaps is None else _with_gaps(column, gaps))
    present = column if gaps is None else column[~gaps]
    labels = tuple(map(plain, _distinct(present)))
    if len(labels) > MOST_LABELS:
        refuse_many(labels, name)
    codes = np.full(len(column), -1, dtype=np.int8)
    for code, label in enumerate(labels):
        codes[column == label] = code
    if gaps is not None:
        codes[gaps] = -1
    return Coded(labels, codes)


def coded_objects(name: str, cells: Sequence[Any]) -> Coded:
    """Code a list of anything; None, NaN and their like are missing votes."""
    try:
        distinct = dict.fromkeys(cells)
    except TypeError:
        raise VotesError(
            f"Column {name!r} holds nested objects; expected one label a vote: text, a number or a truth value. "
            "Take the label out of each."
        ) from None
    places: dict[Label, int] = {}
    book: dict[Any, int] = {}
    for cell in distinct:
        label = plain(cell)
        if is_gap(label):
            book[cell] = -1
            continue
        if not is_label(label):
            raise VotesError(
                f"Column {name!r} holds {listed([repr(label)])}, of type {type(label).__name__}; expected text, numbers or "
                "truth values. Convert it, or leave it out with classifiers=."
            )
        book[cell] = places.setdefault(label, len(places))
        if len(places) > MOST_LABELS:
            refuse_many(tuple(places), name)
    codes = np.fromiter(map(book.__getitem__, cells), dtype=np.int8, count=len(cells))
    return Coded(tuple(places), codes)


def labels_in(column: NDArray[Any], missing: Collection[Label]) -> list[Label]:
    """List the distinct labels of an array."""
    return [label for label in map(plain, _distinct(column)) if label not in missing]


def _with_gaps(column: NDArray[Any], gaps: NDArray[np.bool_]) -> list[Any]:
    cells = column.astype(object)
    cells[gaps] = None
    return list(cells)


def _distinct(column: NDArray[Any]) -> list[Any]:
    """List distinct values, sorted; of too many, some more than there may be.

    Values that were found are taken out of the next cells by comparison, which is quicker than
    sorting cells of which most are alike.
    """
    found = column[:0].reshape(-1)
    start, step = 0, FIRST_LOOK
    while start < len(column) and len(found) <= MOST_LABELS:
        cells = column[start : start + step].reshape(-1)
        new = cells == cells  # noqa: PLR0124 (NaN is not)
        for value in found:
            np.logical_and(new, cells != value, out=new)
        if new.any():
            found = np.unique(np.concatenate([found, cells[new]]))
        start, step = start + step, max(1, min(step * 4, CELLS // max(cells.size // step, 1)))
    values: list[Any] = found.tolist()
    return values


def _relabelled(column: Coded, new: Mapping[Label, Label]) -> Coded:
    """Put new labels for old ones; a label that has none is no vote."""
    labels = tuple(dict.fromkeys(new[label] for label in column.labels if label in new))
    places = [labels.index(new[label]) if label in new else -1 for label in column.labels]
    return Coded(labels, np.array([*places, -1], dtype=np.int8)[column.codes])


def _without(column: Coded, absent: tuple[Label, ...]) -> Coded:
    """Take the labels that mean no vote out of a column."""
    gone = fitted_all(absent, kind_of(column.labels))
    kept = {label: label for label in column.labels if label not in gone}
    return column if len(kept) == len(column.labels) else _relabelled(column, kept)


def _class_codes(name: str, column: Coded, classes: tuple[Label, ...]) -> NDArray[np.int8]:
    if not set(column.labels) <= set(classes):
        refuse_labels(column.labels, classes, name)
    places = [*map(classes.index, column.labels), -1]
    return np.array(places, dtype=np.int8)[column.codes]


# --- kinds --------------------------------------------------------------------------------------


def _of_one_kind(
    names: Sequence[str], columns: list[Coded], asked: tuple[Label, ...] | None
) -> tuple[list[Coded], str]:
    """Bring columns to one kind of label, or say which one differs.

    In a file, a column with a word for a missing vote is text, though its votes are numbers like
    those of the columns beside it, or like the classes of an estimate.
    """
    wanted = joint({kind_of_one(label) for column in columns for label in column.labels} - {"text"})
    wanted = wanted or kind_of(asked or ())
    if wanted in {"number", "truth"} and all(
        kind_of(column.labels) is not None for column in columns
    ):
        columns = [_relabelled(column, {label: fitted(label, wanted) for label in column.labels}) for column in columns]  # fmt: skip
    kind = kind_of(label for column in columns for label in column.labels)
    if kind is None:
        _refuse_mixture(names, columns, asked)
    return columns, kind


def _refuse_mixture(
    names: Sequence[str], columns: Sequence[Coded], asked: tuple[Label, ...] | None
) -> NoReturn:
    """Say which column holds labels unlike the classes, or unlike those of most other columns."""
    held = Counter(kind for column in columns for kind in set(map(kind_of_one, column.labels)))
    common = kind_of(asked or ()) or max(sorted(held), key=lambda kind: held[kind])
    words = {"number": "numbers", "truth": "truth values"}.get(common, common)
    for name, column in zip(names, columns, strict=True):
        odd = [label for label in column.labels if joint({kind_of_one(label), common}) is None]
        if odd:
            raise VotesError(
                f"Column {name!r} holds {listed(map(repr, odd), 3)} where other votes are {words}; expected labels of one kind. "
                f"Name it with missing={odd[0]!r} if it means no vote, or make all votes {words}."
            )
    raise AssertionError(held)
