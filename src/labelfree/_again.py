"""Votes read again: like those that an answer was made from, for that answer to be applied to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from labelfree._errors import OptionsError, listed
from labelfree._votes import Label, Votes, read_votes

READING = (
    "missing",
    "classifiers",
    "item",
    "classifier",
    "vote",
    "duplicates",
)  # options of reading that may differ


def read_again(
    votes: Any,
    *,
    classifiers: Sequence[str],
    classes: Sequence[Label],
    reading: Mapping[str, Any],
    given: Mapping[str, Any],
) -> tuple[Votes, list[int]]:
    """Read votes of classifiers that are known already.

    Parameters
    ----------
    votes : array, dataframe, mapping or path
    classifiers, classes : sequences
        Those of the answer at hand; the votes may be of some of these classifiers, in any order.
    reading : mapping
        The options by which its own votes were read.
    given : mapping
        Options that differ this time.

    Returns
    -------
    Votes
    list of int
        The place of each of the votes' classifiers among `classifiers`.
    """
    fixed = [name for name in ("positive", "classes") if given.get(name) is not None]
    if fixed:
        raise OptionsError(
            f"{fixed[0]}= was settled when the estimate was made ({listed(classes)}, the last positive); "
            "leave it out here."
        )
    fixed = [f"{option}=" for option in given if option not in READING]
    if fixed:
        raise OptionsError(
            f"{listed(fixed)} cannot be given here: an estimate brings its own; estimate anew for others."
        )
    options = {**reading, **given}
    checked = read_votes(votes, **{"classes": classes, "classifiers": classifiers, **options})
    unknown = [name for name in checked.classifiers if name not in classifiers]
    if unknown:
        raise OptionsError(
            f"The estimate knows nothing of classifier {listed(unknown)}; it was made from {listed(classifiers)}."
        )
    return checked, [classifiers.index(name) for name in checked.classifiers]
