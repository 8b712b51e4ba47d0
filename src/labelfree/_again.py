"""Votes read again: like those that an answer was made from, for that answer to be applied to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from labelfree._engine_long import item_table
from labelfree._engines import EngineTable, engine_table
from labelfree._errors import OptionsError, listed
from labelfree._frames import check_kind, check_known
from labelfree._large_files import is_large, paths_in
from labelfree._long_form import long_columns
from labelfree._tally import Tally, tally
from labelfree._tally_file import is_tally_file
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
    options = _options(classifiers, classes, reading, given)
    checked = read_votes(votes, **options)
    return checked, _places(checked.classifiers, classifiers)


def engine_again(
    votes: Any,
    *,
    classifiers: Sequence[str],
    classes: Sequence[Label],
    reading: Mapping[str, Any],
    given: Mapping[str, Any],
) -> tuple[EngineTable, tuple[str, ...], list[int]] | None:
    """Take votes that live in an engine, of classifiers that are known already; None of any others.

    Nothing is read: what the columns hold is looked at when the answer is.

    Parameters
    ----------
    votes, classifiers, classes, reading, given
        As for :func:`read_again`.

    Returns
    -------
    EngineTable
        Wide: a row an item.
    tuple of str
        Its columns that hold votes.
    list of int
        The place of each of these among `classifiers`.
    """
    table = engine_table(votes)
    if table is None:
        return None
    options = _options(classifiers, classes, reading, given)
    names = tuple(map(str, options["classifiers"]))
    if options.get("classifier") is not None and options.get("vote") is not None:
        places = _places(names, classifiers)
        columns = long_columns(options.get("item"), options["classifier"], options["vote"])
        return item_table(table, columns, names, classes), names, places
    check_known(table.names, [name for name in [options.get("item")] if name is not None])
    places = _places(names, classifiers)
    for name in names:
        check_kind(name, table.kind(name))
    return table, names, places


def counted_again(
    votes: Any,
    *,
    classifiers: Sequence[str],
    classes: Sequence[Label],
    reading: Mapping[str, Any],
    given: Mapping[str, Any],
) -> tuple[Tally, list[int]] | None:
    """Count votes whose items cannot be held one by one; None of any others.

    These are tallies, tables of an engine, several files and large ones.

    Parameters
    ----------
    votes, classifiers, classes, reading, given
        As for :func:`read_again`.

    Returns
    -------
    Tally
    list of int
        The place of each of its classifiers among `classifiers`.
    """
    paths = paths_in(votes)
    if isinstance(votes, Tally) or (paths and all(map(is_tally_file, paths))):
        found = tally(votes)
    elif engine_table(votes) is not None or (paths and (len(paths) > 1 or is_large(paths[0]))):
        found = tally(votes, **_options(classifiers, classes, reading, given))
    else:
        return None
    if tuple(found.classes) != tuple(classes):
        raise OptionsError(
            f"The estimate is of classes {listed(classes)}, the tally of {listed(found.classes)}; "
            "count the votes with the same classes=."
        )
    return found, _places(found.classifiers, classifiers)


def _options(
    classifiers: Sequence[str],
    classes: Sequence[Label],
    reading: Mapping[str, Any],
    given: Mapping[str, Any],
) -> dict[str, Any]:
    """Put together the options of reading again, and refuse those that are settled."""
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
    return {"classes": classes, "classifiers": classifiers, **reading, **given}


def _places(names: Sequence[str], classifiers: Sequence[str]) -> list[int]:
    unknown = [name for name in names if name not in classifiers]
    if unknown:
        raise OptionsError(
            f"The estimate knows nothing of classifier {listed(unknown)}; it was made from {listed(classifiers)}."
        )
    return [classifiers.index(name) for name in names]
