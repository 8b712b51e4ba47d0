"""Where names and lines go on a chart, so that each can be read.

Lengths are in units of the rates, and in points of the chart where names need room.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labelfree._view import Row, short

LEAST_SPAN = 0.1  # of an axis of rates: a closer look would show noise
LETTER, LINE, DOT = 6.6, 13.0, 4.0  # points: a letter's mean width, a line's height, a dot's radius
MOST_LETTERS = 18
MOST_NAMED = 12  # names beside points; with more classifiers, the best and the worst three
MOST_APART = 40  # dots that names keep clear of

Box = tuple[float, float, float, float]  # left, lower, right, upper


@dataclass(frozen=True)
class Area:
    """A square of rates: specificity to the right, sensitivity upwards, a step the same on both."""

    left: float
    bottom: float
    span: float

    @property
    def right(self) -> float:
        """Largest specificity."""
        return self.left + self.span

    @property
    def top(self) -> float:
        """Largest sensitivity."""
        return self.bottom + self.span


def area_of(rows: list[Row], *, intervals: bool) -> Area:
    """Choose the square that holds all points, and their intervals if asked."""
    reach = []
    for rate in ("specificity", "sensitivity"):
        names = (f"{rate}_low", f"{rate}_high") if intervals else (rate,)
        values = [row[name] for row in rows for name in names]
        reach.append((min(values), max(values)))
    span = min(1.0, max(LEAST_SPAN, *(1.12 * (high - low) for low, high in reach)))
    left, bottom = (
        round(min(max((low + high - span) / 2, 0.0), 1.0 - span), 4) for low, high in reach
    )
    return Area(left, bottom, round(span, 4))


def named(rows: list[Row], area: Area, side: float) -> list[Row]:
    """Choose the classifiers whose names have room, the best and the worst before the rest.

    Parameters
    ----------
    rows : list of dict
        Best first.
    area : Area
    side : float
        Length of the chart's side in points.

    Returns
    -------
    list of dict
        The rows with ``short``, the name as it is written, and ``corner``: where it stands, as
        (left or right, above or below).
    """
    scale = side / area.span
    dots = [
        ((row["specificity"] - area.left) * scale, (row["sensitivity"] - area.bottom) * scale)
        for row in rows
    ]
    many = len(rows) > MOST_NAMED
    wanted = [*range(3), *range(len(rows) - 3, len(rows))] if many else list(range(len(rows)))
    wanted.sort(key=lambda place: min(place, len(rows) - 1 - place))
    taken: list[Box] = []
    if len(rows) <= MOST_APART:
        taken = [(x - DOT, y - DOT, x + DOT, y + DOT) for x, y in dots]
    found = []
    for place in wanted:
        words = short(rows[place]["classifier"], MOST_LETTERS)
        placed = _placed(dots[place], LETTER * len(words), taken, side)
        if placed is not None:
            corner, box = placed
            taken.append(box)
            found.append(rows[place] | {"short": words, "corner": corner})
    return found


def _placed(
    dot: tuple[float, float], wide: float, taken: list[Box], side: float
) -> tuple[str, Box] | None:
    """Find the first corner of a dot where a name has room."""
    x, y = dot
    for corner in ("right above", "left above", "right below", "left below"):
        left = x + DOT if "right" in corner else x - DOT - wide
        lower = y + 1 if "above" in corner else y - 1 - LINE
        box = (left, lower, left + wide, lower + LINE)
        inside = left > -10 and box[2] < side + 10 and lower > 0 and box[3] < side + 10
        if inside and not any(_overlap(box, other) for other in taken):
            return corner, box
    return None


def _overlap(one: Box, other: Box) -> bool:
    return not (
        one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
    )


def equal_lines(area: Area, rows: list[Row], side: float, *, intervals: bool) -> list[Row]:
    """Lines of equal balanced accuracy, from upper left to lower right.

    Parameters
    ----------
    area : Area
    rows : list of dict
        From :func:`named`: the names of the lines keep clear of their dots and names, and of the ends of
        their intervals if asked, as far as they can.
    side : float
        Length of the chart's side in points.

    Returns
    -------
    list of dict
        Both ends of each line and, with ``words``, the place between them where it is named.
    """
    taken = _taken(area, rows, side, intervals=intervals)
    step = 0.1 if area.span > 0.4 else 0.05 if area.span > 0.2 else 0.02
    lowest, highest = (area.left + area.bottom) / 2, (area.right + area.top) / 2
    found: list[Row] = []
    for number in range(int(np.ceil(lowest / step)), int(np.floor(highest / step)) + 1):
        level = number * step
        start, end = max(area.left, 2 * level - area.top), min(area.right, 2 * level - area.bottom)
        if end - start < 0.12 * area.span:
            continue
        share = f"{100 * level:.0f} %"
        forms = (f"{share}: chance" if share == "50 %" else f"{share} balanced", share)
        ends = [(start, ""), (end, "")]
        if end - start > 0.4 * area.span:
            names = _names(forms, level, start, end, taken, area.span / side)
            ends.append(min(names, key=lambda each: each[0])[1:])
        found += [
            {"line": f"{level:.2f}", "specificity": x, "sensitivity": 2 * level - x, "words": says}
            for x, says in ends
        ]
    return found


def _names(
    forms: tuple[str, ...],
    level: float,
    start: float,
    end: float,
    taken: NDArray[np.float64],
    unit: float,
) -> Iterator[tuple[int, float, str]]:
    """Where a line may be named, and by which form, with how much is in the way."""
    for words in forms:
        half = LETTER * len(words) * unit / np.sqrt(8)  # its reach on either axis
        for middle in np.linspace(end - half, start + half, 9).tolist():
            yield _crowd(taken, middle, 2 * level - middle, half), middle, words


def _taken(area: Area, rows: list[Row], side: float, *, intervals: bool) -> NDArray[np.float64]:
    """Places where a dot, the end of an interval or a part of a name is, (n, 2)."""
    fields = [("specificity", "sensitivity")]
    if intervals:
        fields += [(f"specificity_{end}", "sensitivity") for end in ("low", "high")]
        fields += [("specificity", f"sensitivity_{end}") for end in ("low", "high")]
    places = [(row[x], row[y]) for row in rows for x, y in fields]
    unit = area.span / side
    for row in rows:
        if "corner" in row:
            wide = LETTER * len(row["short"]) * unit * (1 if "right" in row["corner"] else -1)
            high = LINE / 2 * unit * (1 if "above" in row["corner"] else -1)
            places += [
                (row["specificity"] + part * wide, row["sensitivity"] + high)
                for part in (0.25, 0.5, 0.75, 1.0)
            ]
    return np.array(places).reshape(-1, 2)


def _crowd(taken: NDArray[np.float64], x: float, y: float, reach: float) -> int:
    """Count what is near a place."""
    return int((np.abs(taken - [x, y]).max(axis=1) < reach).sum())


def worth_seeing(values: NDArray[np.float64]) -> tuple[float, float]:
    """Range of a log-likelihood around its hill; far from it, it falls out of sight."""
    top, middle = float(values.max()), float(np.median(values))
    floor = max(float(values.min()), top - 3.0 * max(top - middle, 1e-9))
    room = 0.06 * (top - floor)
    return floor - room, top + 3 * room
