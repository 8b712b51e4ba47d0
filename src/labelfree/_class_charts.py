"""What charts show of more than two classes: how much of each is called right, and matrices of confusion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from labelfree._layout import LETTER
from labelfree._style import (
    BLUE,
    INK,
    MOST_CROSSES,
    ORANGE,
    altair_or_reason,
    chart_of,
    finished,
    script_list,
    shares,
)
from labelfree._view import (
    Graded,
    bands_by_class,
    confusion_rows,
    harmless,
    right_by_class,
    short,
)

MOST_SPELLED = 12  # classes of a matrix whose cells have room for numbers


def rates_by_class(estimate: Graded) -> Any:
    """One row a class: a point for each classifier, or how they spread where they are many."""
    alt = altair_or_reason()
    rows = bands_by_class(estimate)
    step = min(30.0, max(12.0, 600 / len(rows)))
    title = "share of the class that is called right"
    axis = alt.Axis(labelLimit=130, labelFontSize=12 if step > 15 else 10)
    order = [row["true"] for row in rows]
    y = alt.Y("true:N", title=None, sort=order, axis=axis)

    def x(field: str) -> Any:
        return alt.X(f"{field}:Q", title=title, **shares())

    base = chart_of(rows)
    if len(estimate.classifiers) > MOST_CROSSES:
        thick = 0.55 * step
        layers = [
            base.mark_bar(color=BLUE, opacity=0.15, size=thick, aria=False).encode(
                x("lowest"), y, x2="highest:Q"
            ),
            base.mark_bar(color=BLUE, opacity=0.35, size=thick, aria=False).encode(
                x("low"), y, x2="high:Q"
            ),
            base.mark_tick(color=ORANGE, thickness=3, size=thick).encode(
                x("median"), y, description="said:N", tooltip=alt.Tooltip("said:N", title="spread")
            ),
        ]
    else:
        points = chart_of(right_by_class(estimate)).mark_circle(color=BLUE, size=60, opacity=0.6)
        layers = [
            base.mark_tick(color=ORANGE, thickness=2.5, size=0.7 * step, aria=False).encode(
                x("median"), y
            ),
            points.encode(
                x("probability"),
                y,
                tooltip=["classifier:N", "true:N", alt.Tooltip("probability:Q", format=".0%")],
                description="said:N",
            ),
        ]
    chart = alt.layer(*layers)
    return finished(chart, "Share of each class that is called right", height=step * len(rows))


def matrices(estimate: Graded, places: Sequence[int]) -> Any:
    """Draw the confusion matrices of the classifiers at these places, a square each."""
    alt = altair_or_reason()
    rows = confusion_rows(estimate, places)
    labels = [harmless(label) for label in estimate.classes]
    small = len(labels) > 5
    axis = {"ticks": False, "domain": False, "labelLimit": 70, "grid": False}
    axis |= {"labelFontSize": 9 if small else 11}
    side = min(400, max(120, 26 * len(labels)))
    upright = max(map(len, labels)) * len(labels) > side / LETTER
    base = alt.Chart().encode(
        alt.X(
            "vote:N",
            sort=labels,
            title="vote",
            axis=alt.Axis(**axis, labelAngle=-90 if upright else 0),
        ),
        alt.Y("true:N", sort=labels, title="true class", axis=alt.Axis(**axis)),
    )
    cell = base.mark_rect().encode(
        color=alt.Color(
            "kind:N", scale=alt.Scale(domain=["right", "wrong"], range=[BLUE, ORANGE]), legend=None
        ),
        opacity=alt.Opacity(
            "strength:Q", scale=alt.Scale(domain=[0, 1], range=[0.03, 0.75]), legend=None
        ),
        description="said:N",
        tooltip=["classifier:N", "true:N", "vote:N", alt.Tooltip("probability:Q", format=".0%")],
    )
    words = base.mark_text(color=INK, fontSize=9 if small else 11, aria=False).encode(
        text=alt.Text("percent:N")
    )
    words = words.transform_calculate(percent="round(100 * datum.probability)")
    names = [short(harmless(estimate.classifiers[place]), round(side / 7.5)) for place in places]
    chart = alt.layer(
        cell, *([] if len(labels) > MOST_SPELLED else [words]), data=alt.Data(values=rows)
    )
    faceted = chart.properties(width=side, height=side).facet(
        alt.Facet(
            "order:O",
            title=None,
            header=alt.Header(labelExpr=f"{script_list(names)}[datum.value]", labelLimit=side),
        ),
        columns=max(1, round(700 / (side + 60))),
    )
    title = "Of 100 items of a true class, how many are given each vote"
    return finished(faceted, title, width=None)
