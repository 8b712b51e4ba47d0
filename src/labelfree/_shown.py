"""An estimate as rows of plain values, and as text a person can read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelfree._errors import counted
from labelfree._labels import Label
from labelfree._verdict import Verdict

Array = NDArray[np.float64]
Row = dict[str, Any]
Figures = Mapping[str, tuple[Array | None, Array | None]]  # a name, its values, their ends

RATES = ("sensitivity", "specificity", "balanced_accuracy")
RATES_OF_CLASSES = ("accuracy", "balanced_accuracy")
WITHOUT_ENDS = {"balanced_accuracy": "balanced"}  # shown short, to fit into 80 columns
SHOWN_CLASSIFIERS = 20


def rows_of(
    classifiers: Sequence[str], votes: Sequence[float], notes: Sequence[str], figures: Figures
) -> list[Row]:
    """One plain dict a classifier: its figures with their ends, None where they are not identified."""
    columns: dict[str, Sequence[Any]] = {"classifier": classifiers, "votes": votes}
    nothing = [None] * len(classifiers)
    for name, (values, ends) in figures.items():
        columns[name] = nothing if values is None else values.tolist()
        columns[f"{name}_low"] = nothing if ends is None else ends[:, 0].tolist()
        columns[f"{name}_high"] = nothing if ends is None else ends[:, 1].tolist()
    columns["note"] = notes
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def text_of(
    rows: Sequence[Row],
    whole: Sequence[str],
    verdict: Verdict,
    *,
    items: float,
    classes: Sequence[Label],
    method: str,
    rates: Sequence[str],
) -> str:
    """Write the table of the classifiers, what is said of the whole, and the verdict."""
    shown = rows[:SHOWN_CLASSIFIERS]
    width = max(10, *(len(row["classifier"]) for row in shown))
    of_what = f"{classes[1]!r} positive" if len(classes) == 2 else f"{len(classes)} classes"
    headline = (
        f"{counted(len(rows), 'classifier')} on {_number(items)} items, "
        f"{of_what}, method {method!r}"
    )
    heads = "  ".join(f"{WITHOUT_ENDS.get(rate) or f'{rate:<18}'}" for rate in rates)
    lines = [headline, f"{'classifier':<{width}}  {heads}"]
    for row in shown:
        cells = "  ".join(
            f"{_figure(row[rate]):>8}"
            if rate in WITHOUT_ENDS
            else f"{with_interval(row, rate):<18}"
            for rate in rates
        )
        lines.append(f"{row['classifier']:<{width}}  {cells}  {row['note']}".rstrip())
    if len(rows) > len(shown):
        lines.append(f"… and {len(rows) - len(shown)} more; see .table()")
    lines.extend(whole)
    lines.append(f"verdict: {verdict.level}")
    lines.extend(f"  - {reason}" for reason in verdict.reasons)
    return "\n".join(lines)


def with_interval(row: Mapping[str, Any], name: str) -> str:
    """``0.812 [.79, .83]``, or a dash."""
    low, high = row.get(f"{name}_low"), row.get(f"{name}_high")
    if low is None or high is None:
        return _figure(row[name])
    return f"{_figure(row[name])} [{low:.2f}, {high:.2f}]"


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _number(value: float) -> str:
    return f"{int(value):,}" if value == math.floor(value) else f"{value:g}"
