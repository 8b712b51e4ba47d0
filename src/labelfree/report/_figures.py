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
OTHER_ARIA = re.compile(r' (?:role="graphics-[a-z]+"|aria-[a-z]+="[^"]*")')
IDENTIFIER = re.compile(r'( id="|url\(#|href="#)([^")]+)')
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
    own: dict[str, str] = {}  # vl-convert counts its identifiers through all charts of a process

    def renamed(found: re.Match[str]) -> str:
        mark, old = found.groups()
        return f"{mark}{own.setdefault(old, f'{name}-{len(own)}')}"

    def slim(tag: re.Match[str]) -> str:
        words = tag.group()
        if words.startswith("<path"):  # a mark; axes and legends say only what is written on them
            words = words.replace(' aria-label="', ' data-said="')
        words = OTHER_ARIA.sub("", words)
        words = IDENTIFIER.sub(renamed, words)
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
