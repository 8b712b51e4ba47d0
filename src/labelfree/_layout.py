"""Where names and lines go on a chart, so that each can be read.

Lengths are in units of the rates, and in points of the chart where names need room.
"""

from __future__ import annotations

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


def equal_lines(area: Area) -> list[Row]:
    """Lines of equal balanced accuracy, from upper left to lower right; `words` where one is named."""
    step = 0.1 if area.span > 0.4 else 0.05 if area.span > 0.2 else 0.02
    lowest, highest = (area.left + area.bottom) / 2, (area.right + area.top) / 2
    rows: list[Row] = []
    for number in range(int(np.ceil(lowest / step)), int(np.floor(highest / step)) + 1):
        level = number * step
        start, end = max(area.left, 2 * level - area.top), min(area.right, 2 * level - area.bottom)
        if end - start < 0.12 * area.span:
            continue
        words = "50 %: chance" if abs(level - 0.5) < 1e-9 else f"{100 * level:.0f} % balanced"
        named = end - start > 0.4 * area.span
        for x, says in ((start, False), (end, named)):
            rows.append(
                {
                    "line": f"{level:.2f}",
                    "specificity": x,
                    "sensitivity": 2 * level - x,
                    "words": words if says else "",
                }
            )
    return rows


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


def worth_seeing(values: NDArray[np.float64]) -> tuple[float, float]:
    """Range of a log-likelihood around its hill; far from it, it falls out of sight."""
    top, middle = float(values.max()), float(np.median(values))
    floor = max(float(values.min()), top - 3.0 * max(top - middle, 1e-9))
    room = 0.06 * (top - floor)
    return floor - room, top + 3 * room
