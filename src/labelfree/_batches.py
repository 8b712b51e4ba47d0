"""Batches of votes -> the classifiers and classes of them all, whatever their order and cut.

A batch may lack labels, and in the long form classifiers, that others show. So batches are read with
the labels that they hold, and the classes are put in order once all have been read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from labelfree._errors import LabelfreeError, OptionsError, VotesError, listed
from labelfree._files import SEPARATORS
from labelfree._frames import ITEM_COLUMN
from labelfree._labels import (
    MOST_LABELS,
    Label,
    fitted,
    fitted_all,
    joint,
    kind_of,
    kind_of_one,
    missing_labels,
    ordered_classes,
    refuse_many,
    refuse_third,
)
from labelfree._large_files import LargeFile
from labelfree._votes import Votes

# Where batches write one number differently, the first of these is taken for the class.
SPELLINGS: tuple[type, ...] = (int, float)


def numbered(batches: Any) -> Iterator[tuple[int, Any]]:
    """Number the batches from 1, and pass over those without a row."""
    one = isinstance(batches, str | bytes | os.PathLike | Mapping) or hasattr(batches, "columns")
    if one or not isinstance(batches, Iterable):
        raise OptionsError(
            f"Expected batches of votes, one after the other, got {type(batches).__name__}; give a list of them, "
            "or the votes themselves to tally()."
        )
    for number, batch in enumerate(batches, start=1):
        sized = hasattr(batch, "__len__") and not isinstance(batch, str | Mapping)
        if not sized or len(batch):
            yield number, batch


@contextmanager
def in_batch(place: str) -> Iterator[None]:
    """Say in which batch something went wrong."""
    try:
        yield
    except LabelfreeError as error:
        if str(error).startswith(place.partition(", rows ")[0]):
            raise
        raise type(error)(f"{place}: {error}") from None


def pieces_of(
    file: LargeFile, options: Mapping[str, Any]
) -> Iterator[tuple[str, Any, Mapping[str, Any]]]:
    """Read a large file in pieces: each with its place, and with the options to read it by.

    Columns that hold no votes are left in the file.
    """
    item, classifier, vote = (options.get(name) for name in ("item", "classifier", "vote"))
    named = ITEM_COLUMN if item is None else str(item)
    if classifier is not None or vote is not None:
        columns = [named, str(classifier), str(vote)]
        if set(columns) <= set(file.columns) and len(set(columns)) == len(columns):
            yield from ((str(file.path), rows, options) for rows in file.shares(columns, named))
            return
        kept = None
    else:
        kept, options = _vote_columns(file.columns, named, options)
    yield from ((place, rows, options) for place, rows in file.pieces(kept))


def _vote_columns(
    columns: Sequence[str], item: str, options: Mapping[str, Any]
) -> tuple[list[str] | None, Mapping[str, Any]]:
    """List the columns that hold votes; None, for all, where the options do not fit the columns."""
    asked = options.get("classifiers")
    names = [name for name in columns if name != item] if asked is None else asked
    told = [*([] if options.get("item") is None else [item]), *names]
    if not isinstance(names, list | tuple) or len(set(told)) < len(told):
        return None, options
    return (
        (list(names), {**options, "item": None}) if set(told) <= set(columns) else (None, options)
    )


@dataclass
class Gathered:
    """The classifiers and labels of the batches so far.

    Attributes
    ----------
    long : bool
        Whether each batch names only the classifiers that voted in it.
    typed : bool
        Whether some batch came with types, as files of text do not.
    orders, keys, labels : dict
        Classifiers of each batch; what each is called in the votes; every label, and how it is written.
    first : dict
        Where the first label of each kind was found.
    """

    long: bool
    typed: bool = False
    orders: dict[tuple[str, ...], None] = field(default_factory=dict)
    keys: dict[str, Any] = field(default_factory=dict)
    labels: dict[Label, Label] = field(default_factory=dict)
    first: dict[str | None, str] = field(default_factory=dict)

    def copy(self) -> Gathered:
        """Return what has been gathered, to go on from without changing this."""
        return Gathered(
            self.long,
            self.typed,
            dict(self.orders),
            dict(self.keys),
            dict(self.labels),
            dict(self.first),
        )

    def add(self, votes: Votes, *, typed: bool, place: str) -> None:
        """Note what one more batch holds; `typed` says whether its numbers and words are told apart."""
        if not self.long and self.orders:
            self._check(votes.classifiers)
        self.orders[votes.classifiers] = None
        self.typed = self.typed or typed
        keys = votes.classifier_keys or votes.classifiers
        for name, key in zip(votes.classifiers, keys, strict=True):
            if type(self.keys.setdefault(name, key)) is not type(key):
                self.keys[name] = name  # a number here and text there: names are what they share
        for label in votes.classes:
            if kind_of_one(label) not in self.first:
                self.first[kind_of_one(label)] = _found_in(votes, label, place)
            self.labels[label] = min(self.labels.get(label, label), label, key=_spelling)

    def columns(self, batch: Any) -> tuple[str, ...] | None:
        """Names for the columns of an array; a table brings its own.

        An array may well have fewer rows than columns here: it is a part.
        """
        if self.long or not isinstance(batch, np.ndarray | list | tuple):
            return None
        if self.orders:
            return next(iter(self.orders))
        first = batch[0]
        cells = len(first) if hasattr(first, "__len__") and not isinstance(first, str) else 0
        return tuple(f"classifier_{place}" for place in range(1, cells + 1)) or None

    def _check(self, classifiers: tuple[str, ...]) -> None:
        first = next(iter(self.orders))
        odd = sorted(set(first) ^ set(classifiers))
        if odd:
            raise VotesError(
                f"Expected the classifiers {listed(first)}, as in the batches before, got {listed(classifiers)}; "
                f"{listed(map(repr, odd))} is not in both. Name the columns that hold votes with classifiers=."
            )

    def classifiers(self, named: Sequence[str] | None) -> tuple[str, ...]:
        """Put the classifiers in order: as named, or as all batches have them, or sorted."""
        if named is not None:
            return tuple(map(str, named))
        if not self.long and len(self.orders) == 1:
            return next(iter(self.orders))
        try:
            return tuple(sorted(self.keys, key=lambda name: self.keys[name]))
        except TypeError:
            return tuple(sorted(self.keys))

    def classes(
        self, positive: Label, missing: Any
    ) -> tuple[tuple[Label, ...], dict[Label, Label]]:
        """Put the labels in order as classes, and say which class each label stands for.

        Where some batches hold numbers, text that can be read as a number is one, as within a table.
        """
        own = list(self.labels.values())
        wanted = joint({kind_of_one(label) for label in own} - {"text"})
        if not self.typed and wanted == "":
            # A word for a missing vote makes a column text, in one batch and not in the next.
            kinds = ("truth", "number")
            wanted = next((kind for kind in kinds if kind_of(fitted_all(own, kind)) == kind), "")
        fit = {label: _fitted(label, wanted) for label in own}
        found = list(dict.fromkeys(sorted(fit.values(), key=_spelling)))
        kind = kind_of(found)
        if kind is None:
            raise VotesError(
                f"The batches hold labels of several kinds ({'; '.join(self.first.values())}); expected labels of one kind. "
                "Make all votes numbers, or all text, or name with missing= what means no vote."
            )
        if len(found) > MOST_LABELS:
            refuse_many(sorted(found), None)
        if positive is not None and len(found) > 2:
            refuse_third((None,), (sorted(found),))
        absent = fitted_all(missing_labels(missing), kind)
        return ordered_classes(found, None, kind, positive, absent)[0], fit


def _found_in(votes: Votes, label: Label, place: str) -> str:
    """Say where a label was found: ``'yes' in column 'ann' of a.csv``."""
    columns: Any = votes.columns
    value = votes.values[votes.classes.index(label)]
    if isinstance(columns, np.ndarray | tuple) and not votes.classifier_keys:
        each = columns.T if isinstance(columns, np.ndarray) else columns
        for name, column in zip(votes.classifiers, each, strict=True):
            if np.any(column == value):
                return f"{label!r} in column {name!r} of {place}"
    return f"{label!r} in {place}"


def is_text_file(batch: Any) -> bool:
    """Whether a batch is a file in which everything is text."""
    return isinstance(batch, str | os.PathLike) and Path(batch).suffix.lower() in SEPARATORS


def _spelling(label: Label) -> int:
    kind = type(label)
    return SPELLINGS.index(kind) if kind in SPELLINGS else len(SPELLINGS)


def _fitted(label: Label, wanted: str | None) -> Label:
    if wanted == "number" and isinstance(label, bool):
        return int(label)
    return fitted(label, wanted) if wanted in {"number", "truth"} else label
