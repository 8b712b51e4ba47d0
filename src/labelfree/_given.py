"""How the words of a command line become what Python takes: lists of names, groups, known rates, gold labels."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from labelfree._errors import FileError, OptionsError, listed


def both_kinds(texts: Iterable[str]) -> tuple[str | float, ...]:
    """A label on the command line is text; in the votes it may be a number. Match either."""
    labels: list[str | float] = []
    for text in texts:
        labels.append(text)
        if re.fullmatch(r"[+-]?\d+", text):
            labels.append(int(text))
        elif re.fullmatch(r"[+-]?(\d+\.\d*|\.\d+)", text):
            labels.append(float(text))
    return tuple(labels)


def names_of(given: list[str] | None) -> list[str] | None:
    """Split at commas; a name that holds a comma stands in double quotes, as in a CSV file."""
    return [name for row in csv.reader(given) for name in row] if given else None


def positions_of(groups: list[str] | None, classifiers: int) -> list[list[int]]:
    """Read groups such as "1,2", counted from 1 as the simulated columns are."""
    try:
        read = [[int(place) - 1 for place in group.split(",")] for group in groups or ()]
    except ValueError:
        read = [[-1]]
    if any(not 0 <= place < classifiers for group in read for place in group):
        raise OptionsError(
            f"copies= must hold numbers of classifiers from 1 to {classifiers} with commas between, "
            f"got {' '.join(groups or ())!r}; write for example --copies 1,2."
        )
    return read


def dependence_of(given: list[str] | None) -> str | list[list[str]]:
    """Read a word, or groups such as "ann,bob"."""
    groups = [names_of([each]) or [] for each in given or ["auto"]]
    return groups[0][0] if len(groups) == 1 and len(groups[0]) == 1 else groups


def known_of(given: list[str] | None) -> dict[str, dict[str, Any]] | None:
    """Read "ann.sensitivity=0.9" and "ann.specificity=18,2"; a name may hold dots and signs."""
    found: dict[str, dict[str, Any]] = {}
    for text in given or ():
        place, _, value = text.rpartition("=")
        name, _, rate = place.rpartition(".")
        try:
            numbers = [float(part) for part in value.split(",")]
        except ValueError:
            numbers = []
        if not name or not numbers:
            raise OptionsError(
                f"known= must name a classifier, its rate and a value, got {text!r}; "
                "write for example --known ann.sensitivity=0.9."
            )
        found.setdefault(name, {})[rate] = numbers[0] if len(numbers) == 1 else tuple(numbers)
    return found or None


def prevalence_of(given: str | None) -> float | dict[Any, float] | None:
    """Read "0.3", or "low=0.5,mid=0.3,high=0.2"."""
    if given is None:
        return None
    try:
        if "=" not in given:
            return float(given)
        pairs = [each.rpartition("=") for each in names_of([given]) or ()]
        return {label: float(share) for label, _, share in pairs}
    except ValueError:
        raise OptionsError(
            f"prevalence= must hold a number, or one for each class, got {given!r}; write for example --prevalence 0.3."
        ) from None


def gold_of(given: str | None, item: str | None) -> str | dict[Any, Any] | None:
    """Read known labels from a file; what does not end like one is the name of a column."""
    from labelfree._files import JSON_LINES, PARQUET, SEPARATORS, read_frame

    if given is None or Path(given).suffix not in (*SEPARATORS, *PARQUET, *JSON_LINES):
        return given
    frame = read_frame(given)
    names = item if item in frame.columns else "item"
    if names not in frame.columns or "label" not in frame.columns:
        raise FileError(
            f"{given} must have a column 'item' and a column 'label', got {listed(frame.columns)}; "
            "rename its columns."
        )
    rows = frame.select(names, "label").drop_nulls().unique()
    twice = rows.filter(rows[names].is_duplicated())[names]
    if len(twice):
        raise FileError(f"{given} gives item {twice[0]!r} two labels; keep the right one.")
    return dict(rows.iter_rows())


def numbers_of(given: str, option: str) -> list[float]:
    """Read one number, or several with commas between."""
    try:
        return [float(part) for part in given.split(",")]
    except ValueError:
        raise OptionsError(
            f"{option}= must hold one rate, or one a classifier with commas between, got {given!r}."
        ) from None
