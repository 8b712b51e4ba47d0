"""What a user has -> checked votes.

Arrays, dataframes, mappings and files, wide (one column a classifier) or long (one row a vote),
become one `Votes`: columns, what to look for in them, and the way back, so that answers return in
the caller's own kind. Nothing is copied that can be compared where it lies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from labelfree._arrays import GiveBack, Whole, from_array
from labelfree._columns import labels_in, labels_of, learn
from labelfree._engine_long import counted_long
from labelfree._engine_wide import counted_wide
from labelfree._engines import counted_there, engine_table
from labelfree._errors import OptionsError, VotesError, listed
from labelfree._frames import ANSWER_COLUMNS, from_frame, is_array
from labelfree._labels import (
    Label,
    label_array,
    missing_labels,
    ordered_classes,
    refuse_labels,
)
from labelfree._long_form import long_columns, read_long

if TYPE_CHECKING:
    from scipy.sparse import csr_array

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
    classifier_keys : tuple
        The classifiers as the long form names them, numbers as numbers; empty for the wide form.
    counts : (n,) array, optional
        Where the rows have been counted already: how many items each stands for.
    whole : Whole, optional
        Where the rows are a sample: what is known of all items.
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
    classifier_keys: tuple[Any, ...] = ()
    counts: NDArray[np.float64] | None = None
    whole: Whole | None = None

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
    part: bool = False,
    items_apart: bool = True,
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
    part : bool
        Whether these are a part of all votes, which may lack labels, and in the long form classifiers.
    items_apart : bool
        Whether a row for each item is needed. If not, votes that live in an engine are counted there.

    Returns
    -------
    Votes
    """
    names = None if classifiers is None else _names(classifiers)
    _check_duplicates(duplicates)
    there = None if items_apart else engine_table(votes)
    if classifier is not None or vote is not None:
        if classifier is None or vote is None:
            raise OptionsError(
                "The long form needs item=, classifier= and vote= together; give all three column names."
            )
        columns = long_columns(item, classifier, vote)
        long = None
        if there is not None:
            long = counted_long(there, columns, names, positive, classes, missing, duplicates)
        table, found = long or read_long(
            votes, columns, names, positive, classes, missing, duplicates, part=part
        )
    else:
        item = None if item is None else str(item)
        wide = None
        if there is not None:
            wide = counted_wide(there, names, item, positive, classes, missing)
        if wide is not None:
            table, found = wide
        else:
            if there is not None:
                table = counted_there(there, names, item)
            elif is_array(votes):
                table = from_array(votes, names, item)
            else:
                table = from_frame(votes, names, item, apart)
            found = learn(table.names, table.columns, positive, classes, missing, part=part)
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
        table.classifier_keys,
        table.counts,
        table.whole,
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


__all__ = ["ANSWER_COLUMNS", "GiveBack", "Label", "Votes", "Whole", "plain_reading", "read_votes"]
