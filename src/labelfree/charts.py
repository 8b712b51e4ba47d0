"""Charts of an estimate, made with Altair (extra: ``report``).

Each function returns an Altair chart: a notebook shows it, ``chart.save("rates.svg")`` writes it, and
so do the endings ``.png`` and ``.html`` (with ``inline=True`` that page needs no network).

Examples
--------
>>> import labelfree as lf
>>> estimate = lf.estimate(lf.simulate.votes(2000, classifiers=6).votes)
>>> lf.charts.rates(estimate).save("rates.svg")  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from labelfree._class_charts import matrices, rates_by_class
from labelfree._errors import LabelfreeError, OptionsError, listed
from labelfree._layout import area_of, equal_lines, named, worth_seeing
from labelfree._style import (
    BLUE,
    INK,
    MOST_CROSSES,
    MUTED,
    ORANGE,
    PAPER,
    SIDE,
    altair_or_reason,
    bands,
    chart_of,
    finished,
    rate_axis,
    rate_tooltip,
    refuse_unidentified,
    script_list,
    shares,
)
from labelfree._view import (
    Graded,
    Row,
    harmless,
    is_binary,
    likelihood_rows,
    pairs_of,
    percent,
    prevalence_bands,
    prevalence_row,
    rate_rows,
    short,
    signed,
    with_ends,
)

if TYPE_CHECKING:
    from altair import FacetChart, HConcatChart, LayerChart

__all__ = ["by_prevalence", "confusion", "imbalance", "pairs", "rates"]

MOST_LINES = 40
MOST_MATRICES = 12
IMBALANCE_TITLE = "imbalance, and the prevalence that it stands for"
LEAST_FULL = 2.0  # times the bound: no weaker residual has its full colour
STRONG = 0.8  # of the pairs have weaker residuals than the one from which colours are full


def rates(estimate: Graded) -> LayerChart:
    """Sensitivity against specificity of every classifier, with their intervals.

    Parameters
    ----------
    estimate : Estimate

    Returns
    -------
    altair.LayerChart
        Each cross is one classifier and its intervals; up and right is better. Along a dotted line
        the balanced accuracy is the same. Many classifiers are shown as points, and only the best
        and the worst are named. With more than two classes there is one row a class, and a point
        for each classifier's share of right votes there.
    """
    alt = altair_or_reason()
    refuse_unidentified(estimate)
    if not is_binary(estimate):
        return cast("LayerChart", rates_by_class(estimate))
    rows = rate_rows(estimate)
    crosses = len(rows) <= MOST_CROSSES and rows[0]["sensitivity_low"] is not None
    area = area_of(rows, intervals=crosses)
    names = named(rows, area, SIDE)
    known = {row["classifier"]: row for row in (*rows, *names)}
    lines = equal_lines(area, list(known.values()), SIDE, intervals=crosses)

    def x(field: str) -> Any:
        return rate_axis(alt.X, field, "specificity", (area.left, area.right))

    def y(field: str) -> Any:
        return rate_axis(alt.Y, field, "sensitivity", (area.bottom, area.top))

    at = (x("specificity"), y("sensitivity"))
    layers: list[Any] = [
        chart_of(lines)
        .mark_line(color=MUTED, strokeWidth=1, strokeDash=[2, 4], opacity=0.8, aria=False)
        .encode(*at, detail="line:N"),
        chart_of([line for line in lines if line["words"]])
        .mark_text(angle=45, baseline="bottom", color=MUTED, aria=False)
        .encode(*at, text="words:N"),
    ]
    if crosses:
        arm = chart_of(rows).mark_rule(color=BLUE, strokeWidth=1.5, opacity=0.5, aria=False)
        layers += [
            arm.encode(x("specificity_low"), at[1], x2="specificity_high:Q"),
            arm.encode(at[0], y("sensitivity_low"), y2="sensitivity_high:Q"),
        ]
    size, opacity = (70, 1.0) if crosses else (36, 0.4)
    points = chart_of(rows).mark_circle(color=BLUE, size=size, opacity=opacity)
    layers.append(points.encode(*at, tooltip=rate_tooltip(crosses), description="said:N"))
    for corner in sorted({row["corner"] for row in names}):
        right, above = "right" in corner, "above" in corner
        base = chart_of([row for row in names if row["corner"] == corner])
        where = {"align": "left" if right else "right", "dx": 5 if right else -5}
        where |= {"dy": -8 if above else 9, "fontSize": 12, "aria": False}
        halo = base.mark_text(**where, stroke=PAPER, strokeWidth=3, strokeJoin="round")
        words = base.mark_text(**where, color=INK)
        layers += [layer.encode(*at, text="short:N") for layer in (halo, words)]
    chart = finished(alt.layer(*layers), "Sensitivity against specificity", height=SIDE)
    return cast("LayerChart", chart)


def pairs(estimate: Graded) -> LayerChart:
    """Who shares errors with whom: how much more each pair agrees than its rates explain.

    Parameters
    ----------
    estimate : Estimate

    Returns
    -------
    altair.LayerChart
        Orange pairs agree more than their quality explains, so they share errors; blue ones less.
        Groups that copy one another are framed. With more than thirty classifiers the map shows
        those of the strongest pairs.
    """
    alt = altair_or_reason()
    refuse_unidentified(estimate)
    found = pairs_of(estimate)
    if found is None:
        raise LabelfreeError(
            "There is no map of pairs: the votes leave nothing to test shared errors with; "
            "it takes four classifiers, and votes that determine every rate."
        )
    k = len(found.names)
    # A few pairs of copies must not pale the rest, nor may a map of many strong pairs be one block.
    strong = np.quantile(np.abs(found.residuals[np.triu_indices(k, 1)]), STRONG)
    full = max(float(strong), LEAST_FULL * found.bound)
    cells = [
        {
            "one": str(i),
            "other": str(j),
            "residual": round(float(found.residuals[i, j]), 2),
            "strength": min(abs(float(found.residuals[i, j])) / full, 1.0),
            "kind": "more" if found.residuals[i, j] > 0 else "less",
            "pair": f"{found.names[i]} and {found.names[j]}",
            "said": f"{found.names[i]} and {found.names[j]}: {signed(found.residuals[i, j])}",
        }
        for i in range(k)
        for j in range(k)
        if i != j
    ]
    names = [short(name, 16) for name in found.names]
    step = min(44.0, SIDE / k)
    axis = {
        "labelExpr": f"{script_list(names)}[+datum.value]",
        "title": None,
        "ticks": False,
        "domain": False,
        "labelLimit": 130,
        "labelFontSize": 12 if k <= 15 else 10,
    }
    order = [str(place) for place in range(k)]
    upright = -60 if k <= 15 else -90  # of many names, slanted ones would lie on each other
    x = alt.X("one:O", sort=order, axis=alt.Axis(**axis, labelAngle=upright), scale=bands(step))
    y = alt.Y("other:O", sort=order, axis=alt.Axis(**axis), scale=bands(step))
    layers: list[Any] = [
        chart_of(cells)
        .mark_rect(stroke=None)
        .encode(
            x,
            y,
            color=alt.Color(
                "kind:N",
                scale=alt.Scale(domain=["more", "less"], range=[ORANGE, BLUE]),
                legend=alt.Legend(
                    title=None,
                    orient="top",
                    symbolType="square",
                    labelLimit=300,
                    columnPadding=44,
                    labelExpr="datum.value == 'more' ? 'agree more than quality explains' : 'agree less'",
                ),
            ),
            opacity=alt.Opacity(
                "strength:Q", scale=alt.Scale(domain=[0, 1], range=[0.04, 1]), legend=None
            ),
            tooltip=[alt.Tooltip("pair:N", title="pair"), alt.Tooltip("residual:Q", format="+.1f")],
            description="said:N",
        )
    ]
    if found.groups:
        frames = [{"first": str(first), "last": str(last)} for first, last in found.groups]
        layers.append(
            chart_of(frames)
            .mark_rect(fill=None, stroke=INK, strokeWidth=2, aria=False)
            .encode(
                alt.X("first:O", sort=order, bandPosition=0),
                alt.Y("first:O", sort=order, bandPosition=0),
                alt.X2("last:O", bandPosition=1),
                alt.Y2("last:O", bandPosition=1),
            )
        )
    size = {"width": step * k, "height": step * k}
    chart = finished(alt.layer(*layers), "Who shares errors with whom", **size)
    return cast("LayerChart", chart)


def imbalance(estimate: Graded) -> LayerChart:
    """How well the votes fit each imbalance between the classes, with the point that was chosen.

    Parameters
    ----------
    estimate : Estimate

    Returns
    -------
    altair.LayerChart
        The restricted likelihood (JNK Algorithm 2) over the imbalance: one clear hill is a good
        sign. The estimate, with its interval, need not stand on the top: the method "map" and the
        models of shared errors go on from there.
    """
    alt = altair_or_reason()
    refuse_unidentified(estimate)
    rows = likelihood_rows(estimate)
    chosen = prevalence_row(estimate)
    if not rows or chosen is None:
        raise LabelfreeError(
            "There is no likelihood over the imbalance: it is kept for two classes, by labelfree since it writes "
            "an estimate's origin; estimate anew."
        )
    values = np.array([row["log_likelihood"] for row in rows])
    floor, top = worth_seeing(values)
    place, own = (
        2 * chosen["prevalence"] - 1,
        float(
            np.interp(
                2 * chosen["prevalence"] - 1,
                [row["imbalance"] for row in rows],
                values,
            )
        ),
    )
    percents = "format((1 + datum.value) / 2, '.0%')"
    x = alt.X(
        "imbalance:Q",
        title=IMBALANCE_TITLE,
        scale=alt.Scale(domain=[-1, 1], nice=False),
        axis=alt.Axis(
            values=[-1, -0.5, 0, 0.5, 1],
            labelExpr=f"[datum.value == 0 ? '0' : format(datum.value, '+.1~f'), {percents}]",
            grid=False,
        ),
    )
    y = alt.Y(
        "log_likelihood:Q",
        title="fit (log-likelihood of an item)",
        scale=alt.Scale(domain=[floor, top], nice=False, zero=False),
        axis=alt.Axis(tickCount=4),
    )
    shown = [row for row in rows if row["log_likelihood"] >= floor]
    mark: Row = {"imbalance": place, "log_likelihood": own}
    said = f"chosen: prevalence {with_ends(chosen, 'prevalence')}"
    mark |= {"said": said, "words": f"chosen: {percent(chosen['prevalence'])}"}
    layers: list[Any] = []
    if chosen["prevalence_low"] is not None:
        band = {"low": 2 * chosen["prevalence_low"] - 1, "high": 2 * chosen["prevalence_high"] - 1}
        layers.append(
            chart_of([band])
            .mark_rect(color=ORANGE, opacity=0.18, aria=False)
            .encode(alt.X("low:Q", title=IMBALANCE_TITLE), x2="high:Q")
        )
    layers += [
        chart_of(shown).mark_line(color=BLUE, strokeWidth=2.5, aria=False, clip=True).encode(x, y),
        chart_of([mark]).mark_rule(color=ORANGE, strokeWidth=2, aria=False).encode(x),
        chart_of([mark])
        .mark_circle(color=ORANGE, size=90, clip=True)
        .encode(x, y, description="said:N", tooltip=alt.Tooltip("said:N", title="estimate")),
        chart_of([mark])
        .mark_text(
            color=ORANGE,
            align="left" if place < 0.2 else "right",
            dx=8 if place < 0.2 else -8,
            fontSize=13,
            fontWeight="bold",
            aria=False,
        )
        .encode(x, y=alt.value(12), text="words:N"),
    ]
    chart = finished(alt.layer(*layers), "The imbalance that the votes fit best", height=240)
    return cast("LayerChart", chart)


def by_prevalence(estimate: Graded) -> HConcatChart:
    """Every rate as a function of the prevalence that one would assume.

    Parameters
    ----------
    estimate : Estimate

    Returns
    -------
    altair.HConcatChart
        One line a classifier; with many of them their median, middle half and middle nine tenths.
        The line across is the prevalence that was estimated.
    """
    alt = altair_or_reason()
    refuse_unidentified(estimate)
    if not is_binary(estimate):
        raise OptionsError(
            f"Rates by prevalence are of two classes, got {len(estimate.classes)}; look at confusion() instead."
        )
    many = len(estimate.classifiers) > MOST_LINES
    lines = [row | {"classifier": harmless(row["classifier"])} for row in estimate.by_prevalence()]
    bands = prevalence_bands(estimate) if many else []
    x = alt.X("prevalence:Q", title="assumed prevalence", **shares())
    own = [{"prevalence": estimate.prevalence}]
    panels = []
    for rate in ("sensitivity", "specificity"):
        across = chart_of(own).mark_rule(color=ORANGE, strokeWidth=2, aria=False).encode(x)
        layers = _bands_of(bands, rate, x) if many else [_lines_of(lines, rate, x)]
        panels.append(alt.layer(across, *layers).properties(width=SIDE / 2 - 35, height=190))
    both = alt.hconcat(*panels, spacing=30)
    return cast("HConcatChart", finished(both, "If the prevalence were another", width=None))


def _lines_of(rows: list[Row], rate: str, x: Any) -> Any:
    alt = altair_or_reason()
    line = chart_of(rows).mark_line(color=BLUE, strokeWidth=1.5, opacity=0.6, aria=False)
    y = alt.Y(f"{rate}:Q", title=rate, **shares())
    return line.encode(x, y, detail="classifier:N", tooltip=["classifier:N"])


def _bands_of(rows: list[Row], rate: str, x: Any) -> list[Any]:
    alt = altair_or_reason()
    base = chart_of([row for row in rows if row["rate"] == rate])

    def y(field: str) -> Any:
        return alt.Y(f"{field}:Q", title=rate, **shares())

    outer = base.mark_area(color=BLUE, opacity=0.15, aria=False)
    inner = base.mark_area(color=BLUE, opacity=0.3, aria=False)
    middle = base.mark_line(color=BLUE, strokeWidth=2.5, aria=False)
    return [
        outer.encode(x, y("lowest"), y2="highest:Q"),
        inner.encode(x, y("low"), y2="high:Q"),
        middle.encode(x, y("median")),
    ]


def confusion(estimate: Graded, *, classifiers: Sequence[str] | None = None) -> FacetChart:
    """Chance of each vote given each true class.

    Parameters
    ----------
    estimate : Estimate
    classifiers : sequence of str, optional
        Whose matrices to draw, in this order; by default the best twelve.

    Returns
    -------
    altair.FacetChart
        One square a classifier; rows are true classes, columns votes, and every row sums to one. Blue
        votes are right, orange ones wrong.
    """
    refuse_unidentified(estimate)
    places = _places_of(estimate, classifiers)
    return cast("FacetChart", matrices(estimate, places))


def _places_of(estimate: Graded, classifiers: Sequence[str] | None) -> list[int]:
    """Where the classifiers stand whose matrices are drawn."""
    if classifiers is None:
        order = np.argsort(-estimate.balanced_accuracy, kind="stable")
        return [int(place) for place in order[:MOST_MATRICES]]
    wanted = [classifiers] if isinstance(classifiers, str) else list(classifiers)
    unknown = [name for name in wanted if name not in estimate.classifiers]
    if unknown or not wanted:
        raise OptionsError(
            f"classifiers= must name classifiers of the estimate ({listed(estimate.classifiers)}), got "
            f"{listed(map(repr, unknown)) or 'none'}."
        )
    return [estimate.classifiers.index(name) for name in wanted]
