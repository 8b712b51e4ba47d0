"""Gold labels as a user gives them -> which items, and which class each is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelfree._errors import OptionsError, counted, listed
from labelfree._patterns import codes_at
from labelfree._votes import Label, Votes

FEWEST_GOLD = 10  # gold items from which they may be called swapped


def gold_items(gold: Any, votes: Votes) -> tuple[NDArray[np.int8], NDArray[np.int64]]:
    """Find the votes and the classes of the gold items.

    Parameters
    ----------
    gold : mapping, str or sequence
        {item: label}, where an item is a row's number for arrays and tables without an item column,
        and its name otherwise; the name of a column of the table; or one label an item. None and
        NaN stand for items whose label is not known.
    votes : Votes

    Returns
    -------
    codes : (g, m) array
        Votes on the gold items, −1 where missing.
    truth : (g,) array
        Their classes, 0 … K−1.
    """
    labels = _by_place(gold, votes)
    known = {place: label for place, label in labels.items() if not _is_gap(label)}
    if not known:
        raise OptionsError("gold= holds no label; give some items' known labels, or leave it out.")
    places = np.array(sorted(known), dtype=np.int64)
    truth = np.array([_class_of(known[place], votes.classes) for place in places.tolist()])
    codes = codes_at(votes, places)
    _refuse_contradiction(codes, truth)
    return codes, truth


def _by_place(gold: Any, votes: Votes) -> dict[int, Label]:
    if isinstance(gold, str):
        return dict(enumerate(votes.column_of_items(gold)))
    if isinstance(gold, Mapping):
        names = votes.names_of_items()
        place = {name: number for number, name in enumerate(names)}
        spelled = {str(name): number for name, number in place.items()}
        found = {item: place.get(item, spelled.get(str(item))) for item in gold}
        unknown = [item for item, number in found.items() if number is None]
        if unknown:
            raise OptionsError(
                f"gold= names {counted(len(unknown), 'item')} that the votes do not have ({listed(unknown)}); "
                f"items are called {listed(names, 3)}."
            )
        return {number: gold[item] for item, number in found.items() if number is not None}
    if isinstance(gold, Sequence) or hasattr(gold, "__array__") or hasattr(gold, "to_list"):
        labels = (
            gold.to_list() if hasattr(gold, "to_list") else np.asarray(gold, dtype=object).tolist()
        )
        if len(labels) != votes.items:
            raise OptionsError(
                f"gold= must hold one label an item, None where it is not known: {votes.items}, got {len(labels)}."
            )
        return dict(enumerate(labels))
    raise OptionsError(
        f"gold= must be a mapping of items to labels, a column's name or one label an item, got {type(gold).__name__}."
    )


def _is_gap(label: Label) -> bool:
    return (
        label is None
        or (isinstance(label, float) and np.isnan(label))
        or str(label) in {"", "<NA>"}
    )


def _class_of(label: Label, classes: tuple[Label, ...]) -> int:
    for code, known in enumerate(classes):
        if label == known or str(label) == str(known):
            return code
    raise OptionsError(
        f"gold= holds the label {label!r}; the votes' labels are {listed(map(repr, classes))}. "
        "Name all classes with classes= if it is one that nobody voted, or mend it."
    )


def _refuse_contradiction(codes: NDArray[np.int8], truth: NDArray[np.int64]) -> None:
    """Gold that every classifier contradicts is more likely turned round than a sign that all are wrong."""
    voted = codes >= 0
    wrong = (voted & (codes != truth[:, None])).sum(axis=0)
    counts = voted.sum(axis=0)
    constant = np.array([len(np.unique(column[column >= 0])) < 2 for column in codes.T])
    share = wrong[~constant] / np.maximum(counts[~constant], 1)
    # Shares of classifiers that err together scatter like one: half a standard unit is 1 / (2 √g).
    if (
        len(truth) >= FEWEST_GOLD
        and len(share)
        and (share > 0.5).all()
        and share.mean() > 0.5 + len(truth) ** -0.5
    ):
        raise OptionsError(
            "The gold labels contradict every classifier on most of their items; "
            "check that the two labels are not swapped in gold=."
        )
