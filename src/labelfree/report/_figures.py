"""Charts as SVG that a page can hold: its own colours for light and dark, no identifier twice."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any

from labelfree._style import BLUE, GRID, INK, MUTED, ORANGE, PAPER

# Each colour of a chart, and what the page calls it; page.css says what it is on light and dark.
NAMED = {
    INK: "ink",
    MUTED: "muted",
    GRID: "grid",
    PAPER: "paper",
    BLUE: "blue",
    ORANGE: "orange",
}
TAG = re.compile(r'<[a-zA-Z](?:[^"<>]|"[^"]*")*>')  # words between tags stay as they are
SPOKEN = re.compile(
    r' role="graphics-(?:symbol|object)" aria-roledescription="[^"]*" aria-label="([^"]*)"'
)
OTHER_ARIA = re.compile(r' (?:role="graphics-[a-z]+"|aria-[a-z]+="[^"]*")')
PLACES = re.compile(r' (?:d|transform)="[^"]*"')
LONG_NUMBER = re.compile(r"(\d+\.\d{2})\d+")


def svg_of(chart: Any, name: str) -> str:
    """Draw a chart as an SVG element for a page.

    The words on a mark go into ``data-said``, which the page shows where the mouse is; for readers
    who do not see, the element is one picture, whose alternative the page gives.
    """
    import altair as alt

    bare = chart.copy(deep=False)
    bare.title, bare.background = alt.Undefined, "transparent"
    out = io.StringIO()
    bare.save(out, format="svg")
    return _for_page(out.getvalue(), name)


def _for_page(svg: str, name: str) -> str:
    def slim(tag: re.Match[str]) -> str:
        words = OTHER_ARIA.sub("", SPOKEN.sub(r' data-said="\1"', tag.group()))
        words = re.sub(r' id="', f' id="{name}-', words).replace("url(#", f"url(#{name}-")
        return PLACES.sub(lambda place: LONG_NUMBER.sub(r"\1", place.group()), words)

    svg = TAG.sub(slim, svg[svg.index("<svg") :])
    start, _, rest = svg.partition(">")
    size = re.search(r'width="([\d.]+)" height="([\d.]+)"', start)
    if size is None:
        raise AssertionError(start)
    width, height = size.groups()
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'style="max-width:{width}px" aria-hidden="true" focusable="false">'
    )
    return opening + rest


def drawn(draw: Callable[..., Any], estimate: Any, name: str) -> str:
    """Draw one of the charts for the page."""
    return svg_of(draw(estimate), name)
