"""How every chart looks: colours, letters, axes; and how rows become a chart. The only importer of Altair."""

from __future__ import annotations

import json
from typing import Any

from labelfree._errors import LabelfreeError, NotIdentifiedError
from labelfree._view import Graded, Row, is_identified

# Readable on white, and apart for every kind of colour blindness. A page for dark screens puts
# another colour in the place of each, so each is used for one thing only.
INK, MUTED, GRID, PAPER = "#1f2a37", "#5b6675", "#dfe4ea", "#fefefe"
BLUE, ORANGE = "#0b63a5", "#c2500a"
# Widths are measured with Liberation Sans, whose letters are as wide as those of Arial.
FONT = "Arial, 'Liberation Sans', Helvetica, sans-serif"
MOST_CROSSES = 40  # classifiers that can be told apart one by one
SIDE = 340  # points of a square chart: readable at the width of a phone, and beside a text


def altair_or_reason() -> Any:
    """Import Altair, or say what to install."""
    try:
        import altair as alt
        import vl_convert  # noqa: F401 (saves the charts)
    except ImportError as error:
        raise LabelfreeError(
            f"Charts and reports need {error.name}, which is not installed; install labelfree[report]."
        ) from None
    return alt


def refuse_unidentified(estimate: Graded) -> None:
    """Say that there is nothing to draw, where the votes do not tell."""
    if not is_identified(estimate):
        raise NotIdentifiedError(
            f"There is nothing to draw: {estimate.verdict.reasons[0]} "
            f"What would help: {estimate.verdict.advice[0]}"
        )


def chart_of(rows: list[Row]) -> Any:
    """Make a chart of rows."""
    alt = altair_or_reason()
    return alt.Chart(alt.Data(values=rows))


def finished(
    chart: Any, title: str, *, width: float | None = SIDE, height: float | None = None
) -> Any:
    """Give a chart its title, size and style."""
    sizes = {"width": width, "height": height}
    sized = chart.properties(
        title=title, **{name: size for name, size in sizes.items() if size is not None}
    )
    return (
        sized.configure(font=FONT, padding=6)
        .configure_title(anchor="start", color=INK, fontSize=15, fontWeight=600, offset=12)
        .configure_view(stroke=None)
        .configure_axis(
            labelColor=MUTED,
            titleColor=INK,
            labelFontSize=12,
            titleFontSize=13,
            titleFontWeight=500,
            titlePadding=8,
            gridColor=GRID,
            domainColor=MUTED,
            tickColor=MUTED,
        )
        .configure_legend(labelColor=INK, labelFontSize=12)
        .configure_header(labelColor=INK, labelFontSize=12, labelFontWeight=600)
    )


def shares() -> dict[str, Any]:
    """Scale and axis of a share, from 0 to 100 %."""
    alt = altair_or_reason()
    scale = alt.Scale(domain=[0, 1], nice=False)
    axis = alt.Axis(format=".0%", values=[0, 0.25, 0.5, 0.75, 1])
    return {"scale": scale, "axis": axis}


def rate_axis(channel: Any, field: str, title: str, domain: tuple[float, float]) -> Any:
    """Scale and axis of a rate."""
    alt = altair_or_reason()
    return channel(
        f"{field}:Q",
        title=f"{title} →",
        scale=alt.Scale(domain=list(domain), nice=False, zero=False, clamp=True),
        axis=alt.Axis(format=".0%", tickCount=5),
    )


def bands(step: float) -> Any:
    """Scale of the cells of a map."""
    return altair_or_reason().Scale(paddingInner=0.04, paddingOuter=0.02) if step > 0 else None


def script_list(names: list[str]) -> str:
    """Write names as a list in Vega's expressions, where nothing in them can end the text."""
    return json.dumps(names)


def rate_tooltip(crosses: bool) -> list[Any]:
    """What is said of a classifier that the mouse is on."""
    alt = altair_or_reason()
    fields = ["sensitivity", "specificity", "balanced_accuracy"]
    if crosses:
        fields[1:1], fields[4:4] = (
            ["sensitivity_low", "sensitivity_high"],
            ["specificity_low", "specificity_high"],
        )
    tips = [alt.Tooltip(f"{each}:Q", format=".1%", title=each.replace("_", " ")) for each in fields]
    return [alt.Tooltip("classifier:N"), *tips]
