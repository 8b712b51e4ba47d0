"""How every chart looks: colours, shapes, axes, titles; and charts -> files.

Colours are those of Okabe and Ito, which the colour-blind can tell apart; every method keeps its own
through all charts, and lines have shapes beside their colours.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import altair as alt

COLOURS = {
    "majority": "#9a9a9a",
    "SML": "#E69F00",
    "i-SML tensor": "#56B4E9",
    "i-SML likelihood": "#0072B2",
    "tensor": "#56B4E9",
    "likelihood": "#0072B2",
    "ML": "#7a5230",
    "MAP": "#009E73",
    "Dawid–Skene": "#CC79A7",
    "Jain–Oh": "#8a8a8a",
    "default": "#D55E00",
    "oracle ML": "#222222",
    "known b": "#222222",
    "bound": "#222222",
    # ways to v, in the appendix's figure
    "estimated v": "#56B4E9",
    "true v": "#222222",
    "all at once": "#009E73",
}
SHAPES = {
    "tensor": "circle",
    "likelihood": "square",
    "known b": "triangle-up",
    "ML": "triangle-down",
    "MAP": "triangle-up",
    "default": "cross",
    "Dawid–Skene": "diamond",
    "Jain–Oh": "triangle-left",
    "bound": "stroke",
    "estimated v": "circle",
    "true v": "square",
    "all at once": "triangle-up",
}
FIVE = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#555555"]  # of what is no method
GREY = "#777777"
SCALE = 1.5  # of the PNG

# Powers of ten: as they are from one on, 10⁻³ below.
POWERS = (
    "datum.value >= 1 ? format(datum.value, ',') : "
    "'10⁻' + substring('⁰¹²³⁴⁵⁶⁷⁸⁹', round(-log(datum.value) / LN10), round(-log(datum.value) / LN10) + 1)"
)


def finished(chart: Any) -> Any:
    return (
        chart.configure(
            background="white", font="Helvetica, Arial, sans-serif",
            padding={"left": 24, "right": 20, "top": 12, "bottom": 12},  # for wider fonts than these
        )
        .configure_axis(
            labelFontSize=12, titleFontSize=13, titleFontWeight="normal", gridColor="#e8e8e8",
            labelFlush=False,
        )
        .configure_legend(
            labelFontSize=13, titleFontSize=13, titleFontWeight="normal", symbolSize=90,
            symbolStrokeWidth=3, labelLimit=300,
        )
        .configure_title(fontSize=14, subtitleFontSize=13, subtitleColor="#444444")
        .configure_view(stroke="#bbbbbb")
    )  # fmt: skip


def headed(chart: Any, says: str, reads: str) -> Any:
    """Put over all panels what the chart shows, and how it is read."""
    return chart.properties(
        title=alt.TitleParams(says, subtitle=reads, anchor="start", fontSize=17, offset=14)
    )


def panel(chart: Any, title: str, width: int, height: int) -> Any:
    return chart.properties(
        width=width, height=height, title=alt.TitleParams(title, anchor="middle", offset=6)
    )


def in_rows(parts: Sequence[Any], columns: int, spacing: int) -> Any:
    """Lay panels out in rows of so many, so that the whole is no wider than a page's text."""
    rows = [parts[start : start + columns] for start in range(0, len(parts), columns)]
    return alt.vconcat(*(alt.hconcat(*row, spacing=spacing) for row in rows), spacing=20)


def colour(names: Sequence[str], field: str = "method", **options: Any) -> alt.Color:
    scale = alt.Scale(domain=list(names), range=[COLOURS[each] for each in names])
    return alt.Color(f"{field}:N", sort=list(names), scale=scale, title=None, **options)


def shape(names: Sequence[str], field: str = "method") -> alt.Shape:
    scale = alt.Scale(domain=list(names), range=[SHAPES[each] for each in names])
    return alt.Shape(f"{field}:N", sort=list(names), scale=scale, title=None)


def quantity(names: Sequence[str], kind: Any = alt.Color) -> Any:
    """Colour or shape by which quantity it is an error of."""
    ends = FIVE if kind is alt.Color else ["circle", "square", "triangle-up"]
    scale = alt.Scale(domain=list(names), range=ends[: len(names)])
    return kind("of:N", sort=list(names), title=None, scale=scale)


def lane(names: Sequence[str], field: str = "of") -> alt.YOffset:
    """Give each name its own height within a row, so that no dot hides another."""
    return alt.YOffset(f"{field}:N", sort=list(names), scale=alt.Scale(paddingOuter=0.6))


def powers(low: float, high: float) -> list[float]:
    """Return the powers of ten from `low` to `high`."""
    return [10.0**place for place in range(-9, 10) if low <= 10.0**place * 1.000001 <= high * 1.01]


def log_scale(low: float, high: float) -> alt.Scale:
    return alt.Scale(type="log", domain=[low, high], nice=False)


def power_axis(
    kind: Any, field: str, title: str, ends: tuple[float, float], bare: bool = False
) -> Any:
    """Make a logarithmic axis that names powers of ten; `bare` where the panel beside it does."""
    axis = alt.Axis(values=powers(*ends), labelExpr=POWERS, labels=not bare, ticks=not bare)
    return kind(f"{field}:Q", title=None if bare else title, scale=log_scale(*ends), axis=axis)


def rows_axis(names: Sequence[str], field: str, bare: bool, grid: bool = True) -> alt.Y:
    """Make an axis of names, one a row; `bare` where the panel beside it names them."""
    axis = alt.Axis(
        labels=not bare, ticks=False, labelFontSize=13, labelPadding=7, labelLimit=300, grid=grid
    )
    return alt.Y(f"{field}:N", sort=list(names), title=None, axis=axis)


# --- charts -> files ----------------------------------------------------------------------------


def save(folder: Path, name: str, chart: Any) -> None:
    """Write a chart as SVG and PNG. The same chart gives the same bytes."""
    import vl_convert

    drawn = finished(chart).to_dict()
    svg = numbered(vl_convert.vegalite_to_svg(drawn))
    (folder / f"{name}.svg").write_text(svg + "\n", encoding="utf-8")
    png = vl_convert.vegalite_to_png(drawn, scale=SCALE)
    (folder / f"{name}.png").write_bytes(packed(png))


def numbered(svg: str) -> str:
    """Number clips from one: the renderer counts on from chart to chart."""
    order: dict[str, str] = {}
    return re.sub(
        r"\b(clip|gradient_)(\d+)\b",
        lambda found: order.setdefault(found[0], f"{found[1]}{len(order) + 1}"),
        svg,
    )


def packed(png: bytes) -> bytes:
    """Compress the pixels of a PNG again, as well as may be: the renderer is in a hurry."""
    parts, place = [], 8
    while place < len(png):
        length, kind = struct.unpack(">I4s", png[place : place + 8])
        parts.append((kind, png[place + 8 : place + 8 + length]))
        place += 12 + length
    pixels = zlib.decompress(b"".join(body for kind, body in parts if kind == b"IDAT"))
    header, *others = [(kind, body) for kind, body in parts if kind != b"IDAT"]
    whole = [header, *others[:-1], (b"IDAT", zlib.compress(pixels, 9)), others[-1]]
    return png[:8] + b"".join(
        struct.pack(">I4s", len(body), kind) + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in whole
    )
