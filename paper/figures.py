"""Tables -> charts, as SVG and PNG. The same tables give the same bytes.

Colours are those of Okabe and Ito, which the colour-blind can tell apart; every method keeps its own
through all charts, and lines have shapes beside their colours.
"""

from __future__ import annotations

import re
from typing import Any

import altair as alt
import polars as pl

from paper import artificial, beyond, real
from paper.data import SETS
from paper.settings import Settings
from paper.work import read

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
    "Zhang": "#9a9a9a",
    "Jain–Oh": "#555555",
    "default": "#D55E00",
    "oracle ML": "#222222",
    "known b": "#222222",
    "bound": "#222222",
}
WAY_COLOURS = {"estimated v": "#56B4E9", "true v": "#222222", "all at once": "#009E73"}
OF_B = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#555555"]
GREY = "#777777"
SCALE = 1.5  # of the PNG


def draw_all(settings: Settings) -> None:
    """Draw every chart whose tables are there."""
    settings.figures.mkdir(parents=True, exist_ok=True)
    for name, (tables, make) in CHARTS.items():
        files = [settings.results / f"{table}.csv" for table in tables]
        if all(file.is_file() for file in files):
            save(settings, name, make(*(read(file) for file in files)))


def save(settings: Settings, name: str, chart: alt.TopLevelMixin) -> None:
    import vl_convert

    drawn = finished(chart).to_dict()
    svg = numbered(vl_convert.vegalite_to_svg(drawn))
    (settings.figures / f"{name}.svg").write_text(svg + "\n", encoding="utf-8")
    (settings.figures / f"{name}.png").write_bytes(vl_convert.vegalite_to_png(drawn, scale=SCALE))


def numbered(svg: str) -> str:
    """Number clips from one: the renderer counts on from chart to chart."""
    order: dict[str, str] = {}
    return re.sub(
        r"\b(clip|gradient_)(\d+)\b",
        lambda found: order.setdefault(found[0], f"{found[1]}{len(order) + 1}"),
        svg,
    )


def finished(chart: Any) -> Any:
    return (
        chart.configure(background="white", font="Helvetica, Arial, sans-serif", padding=10)
        .configure_axis(
            labelFontSize=12, titleFontSize=13, titleFontWeight="normal", gridColor="#e8e8e8"
        )
        .configure_header(labelFontSize=14, titleFontSize=13, labelFontWeight="bold")
        .configure_legend(
            labelFontSize=12, titleFontSize=13, titleFontWeight="normal", symbolSize=90,
            symbolStrokeWidth=3, labelLimit=300,
        )
        .configure_title(fontSize=14, anchor="middle")
        .configure_view(stroke="#bbbbbb")
    )  # fmt: skip


def colour(methods: tuple[str, ...], field: str = "method", **options: Any) -> alt.Color:
    table = WAY_COLOURS if field == "way" else COLOURS
    return alt.Color(
        f"{field}:N",
        sort=list(methods),
        scale=alt.Scale(domain=list(methods), range=[table[each] for each in methods]),
        title=None,
        **options,
    )


def shape(methods: tuple[str, ...], field: str = "method") -> alt.Shape:
    kinds = [
        "circle",
        "square",
        "triangle-up",
        "diamond",
        "cross",
        "triangle-down",
        "triangle-left",
    ]
    return alt.Shape(
        f"{field}:N",
        sort=list(methods),
        scale=alt.Scale(domain=list(methods), range=kinds[: len(methods)]),
        title=None,
    )


def quantity(names: list[str], kind: Any = alt.Color) -> Any:
    """Colour or shape by which quantity it is an error of."""
    ends = OF_B if kind is alt.Color else ["circle", "square", "triangle-up"]
    scale = alt.Scale(domain=names, range=ends[: len(names)])
    return kind("of:N", sort=names, title=None, scale=scale)


def log_axis(field: str, title: str, kind: Any = alt.X, **options: Any) -> Any:
    """Make a logarithmic axis that names powers of ten, or numbers as they are."""
    return kind(
        f"{field}:Q",
        title=title,
        scale=alt.Scale(type="log", nice=False, **options.pop("scale", {})),
        axis=alt.Axis(labelExpr=POWERS, grid=True, tickCount=5, **options),
    )


POWERS = (
    "abs(log(datum.value) / LN10 - round(log(datum.value) / LN10)) < 1e-6 ? "
    "(datum.value >= 1 ? format(datum.value, ',') : format(datum.value, '.0e')) : ''"
)


# --- section 6.1 --------------------------------------------------------------------------------


def estimates(table: pl.DataFrame) -> Any:
    """Mean and standard deviation of both estimates against n."""
    rows = table.filter(pl.col("method") != "known b").with_columns(
        low=pl.col("mean") - pl.col("sd"), high=pl.col("mean") + pl.col("sd")
    )
    titles = {
        "tensor": "third-moment tensor (Algorithm 1)",
        "likelihood": "restricted likelihood (Algorithm 2)",
    }
    parts = []
    for method in artificial.METHODS:
        own = rows.filter(pl.col("method") == method)
        base = alt.Chart(own).encode(
            log_axis("n", "items n"),
            color=alt.Color("b:N", title="true b", scale=alt.Scale(range=OF_B[:3])),
        )
        y = alt.Y(
            "mean:Q", title="estimate of b: mean ± one sd", scale=alt.Scale(domain=[-0.4, 1.0])
        )
        truth = alt.Chart(own).mark_rule(strokeDash=[4, 4], color=GREY).encode(y="b:Q")
        band = base.mark_area(opacity=0.25, clip=True).encode(
            y=alt.Y("low:Q", scale=alt.Scale(domain=[-0.4, 1.0])), y2="high:Q"
        )
        line = base.mark_line(point=True).encode(y=y)
        parts.append(
            alt.layer(truth, band, line).properties(width=310, height=260, title=titles[method])
        )
    return alt.hconcat(*parts)


def squared_errors(table: pl.DataFrame) -> Any:
    """MSE of b against n on log–log axes."""
    rows = table.filter(pl.col("method") != "known b")
    return _falling(rows, artificial.METHODS, "mse", "mean squared error of b")


def rate_errors(table: pl.DataFrame) -> Any:
    """MSE of the rates against n, b known or estimated."""
    return _falling(
        table, (*artificial.METHODS, "known b"), "rates_mse", "mean squared error of ψ and η"
    )


def _falling(rows: pl.DataFrame, methods: tuple[str, ...], field: str, title: str) -> Any:
    """Lines by method, a panel for each b, and a thin line that falls like 1/n."""
    parts = []
    sizes = rows["n"].unique().sort()
    first, last = float(sizes[0]), float(sizes[-1])
    top = float(rows[field].max()) * 1.5
    for imbalance in artificial.IMBALANCES:
        own = rows.filter(pl.col("b") == imbalance)
        start = float(own.filter(pl.col("n") == sizes[-1])[field].max()) * last / first * 1.5
        slope = pl.DataFrame({"n": [first, last], "y": [start, start * first / last]})
        guide = (
            alt.Chart(slope)
            .mark_line(strokeDash=[5, 4], color=GREY, clip=True)
            .encode(log_axis("n", "items n"), log_axis("y", title, alt.Y, scale={"domainMax": top}))
        )
        word = (
            alt.Chart(pl.DataFrame({"n": [last], "y": [start * first / last], "t": ["∝ 1/n"]}))
            .mark_text(dy=-14, dx=-4, align="right", color=GREY, fontSize=12, font="sans-serif")
            .encode(x="n:Q", y="y:Q", text="t:N")
        )
        line = (
            alt.Chart(own)
            .mark_line(point=alt.OverlayMarkDef(size=55, filled=True))
            .encode(
                log_axis("n", "items n"),
                log_axis(field, title, alt.Y, scale={"domainMax": top}),
                color=colour(methods),
                shape=shape(methods),
            )
        )
        parts.append(
            alt.layer(guide, word, line).properties(
                width=215, height=260, title=f"b = {imbalance:g}"
            )
        )
    return alt.hconcat(*parts).resolve_scale(y="shared", color="shared", shape="shared")


def classifiers(table: pl.DataFrame) -> Any:
    """MAE of b against m."""
    titles = {0.0: "b = 0", 0.3: "b = 0.3"}
    low, high = float(table["mae"].min()) * 0.8, float(table["mae"].max()) * 1.2
    numbers = table["m"].unique().sort().to_list()
    parts = [
        alt.Chart(table.filter(pl.col("b") == imbalance))
        .mark_line(point=alt.OverlayMarkDef(size=60, filled=True))
        .encode(
            alt.X(
                "m:Q",
                title="classifiers m",
                scale=alt.Scale(type="log", domain=[min(numbers) * 0.9, max(numbers) * 1.1]),
                axis=alt.Axis(values=numbers, format="d"),
            ),
            alt.Y(
                "mae:Q",
                title="mean absolute error of b",
                scale=alt.Scale(type="log", domain=[low, high], nice=False),
                axis=alt.Axis(values=[0.005, 0.01, 0.02, 0.03, 0.05, 0.1], format="~g"),
            ),
            color=colour(artificial.WAYS, "way"),
            shape=shape(artificial.WAYS, "way"),
        )
        .properties(width=300, height=270, title=titles[imbalance])
        for imbalance in titles
    ]
    return alt.hconcat(*parts)


# --- section 6.2 --------------------------------------------------------------------------------


def _titles(table: pl.DataFrame) -> dict[str, str]:
    return {name: SETS[name].title for name in SETS if name in set(table["set"])}


def bars(table: pl.DataFrame) -> Any:
    """Balanced accuracy, mean and standard deviation over the realizations; bars start at chance."""
    means = table.group_by("set", "method", maintain_order=True).agg(
        mean=pl.col("balanced_accuracy").mean(), sd=pl.col("balanced_accuracy").std()
    )
    means = means.with_columns(
        low=pl.col("mean") - pl.col("sd"),
        high=pl.col("mean") + pl.col("sd"),
        chance=0.5,
        said=pl.col("mean").map_elements(lambda value: f"{value:.3f}", return_dtype=pl.String),
    )
    parts = []
    for place, (name, title) in enumerate(_titles(table).items()):
        own = means.filter(pl.col("set") == name)
        y = alt.Y(
            "method:N",
            sort=list(real.METHODS),
            title=None,
            axis=alt.Axis(labels=place == 0, ticks=place == 0, labelFontSize=13),
        )
        scale = alt.Scale(domain=[0.5, 1.06], nice=False)
        axis = alt.Axis(values=[0.5, 0.6, 0.7, 0.8, 0.9, 1.0], format=".1f")
        x = alt.X("mean:Q", scale=scale, title="balanced accuracy", axis=axis)
        bar = (
            alt.Chart(own)
            .mark_bar(height=18)
            .encode(x=x, x2="chance:Q", y=y, color=colour(real.METHODS, legend=None))
        )
        whisker = (
            alt.Chart(own)
            .mark_rule(color="black", strokeWidth=1.5)
            .encode(x=alt.X("low:Q", scale=scale), x2="high:Q", y=y)
        )
        text = (
            alt.Chart(own)
            .mark_text(align="left", dx=6, fontSize=12)
            .encode(x=alt.X("high:Q", scale=scale), y=y, text="said:N")
        )
        parts.append(alt.layer(bar, whisker, text).properties(width=190, height=230, title=title))
    return alt.hconcat(*parts, spacing=12)


def scatter(table: pl.DataFrame) -> Any:
    """i-SML's error against SML's: below the diagonal i-SML is better."""
    wide = table.filter(pl.col("method").is_in([real.SML, real.ISML])).pivot(
        on="method", index=["set", "realization"], values="balanced_accuracy"
    )
    wide = wide.select("set", "realization", sml=1 - pl.col(real.SML), isml=1 - pl.col(real.ISML))
    parts = []
    for place, (name, title) in enumerate(_titles(table).items()):
        own = wide.filter(pl.col("set") == name)
        ends = pl.concat([own["sml"], own["isml"]])
        room = 0.08 * (float(ends.max()) - float(ends.min())) + 0.001
        domain = [float(ends.min()) - room, float(ends.max()) + room]
        scale = alt.Scale(domain=domain, nice=False, zero=False)
        diagonal = (
            alt.Chart(pl.DataFrame({"sml": domain, "isml": domain}))
            .mark_line(color=GREY, strokeDash=[5, 4])
            .encode(x="sml:Q", y="isml:Q")
        )
        axis = alt.Axis(format=".2f" if domain[1] - domain[0] > 0.06 else ".3f", tickCount=4)
        dots = (
            alt.Chart(own)
            .mark_circle(size=60, color=COLOURS[real.ISML], opacity=0.75)
            .encode(
                alt.X("sml:Q", scale=scale, axis=axis, title="error of SML"),
                alt.Y(
                    "isml:Q", scale=scale, axis=axis, title="error of i-SML" if place == 0 else None
                ),
            )
        )
        better = int((own["isml"] < own["sml"]).sum())
        parts.append(
            alt.layer(diagonal, dots).properties(
                width=190, height=190, title=f"{title}: {better} of {len(own)} below"
            )
        )
    return alt.hconcat(*parts, spacing=14)


def errors_of_rates(table: pl.DataFrame) -> Any:
    """Mean absolute error of what each method says about the classifiers."""
    methods = tuple(
        method for method in real.METHODS if method not in ("majority", "SML", "oracle ML")
    )
    names = {"sensitivity": "sensitivity", "specificity": "specificity", "b": "imbalance b"}
    means = (
        table.filter(pl.col("method").is_in(methods))
        .group_by("set", "method", maintain_order=True)
        .agg(*(pl.col(name).mean() for name in names))
        .unpivot(on=list(names), index=["set", "method"], variable_name="of", value_name="error")
        .with_columns(pl.col("of").replace(names))
    )
    parts = [
        alt.Chart(means.filter(pl.col("set") == name))
        .mark_point(size=95, filled=True, opacity=0.9)
        .encode(
            alt.X(
                "error:Q",
                title="mean absolute error",
                scale=alt.Scale(domain=[0, float(means["error"].max()) * 1.05], nice=False),
                axis=alt.Axis(tickCount=4),
            ),
            alt.Y(
                "method:N",
                sort=list(methods),
                title=None,
                axis=alt.Axis(labels=place == 0, ticks=place == 0, labelFontSize=13, grid=True),
            ),
            color=quantity(list(names.values())),
            shape=quantity(list(names.values()), alt.Shape),
        )
        .properties(width=180, height=170, title=title)
        for place, (name, title) in enumerate(_titles(table).items())
    ]
    return alt.hconcat(*parts, spacing=12)


# --- theorem 1 ----------------------------------------------------------------------------------


def curves(table: pl.DataFrame) -> Any:
    """The restricted likelihood in the exact limit, for several true b."""
    floor = -0.012
    rows = table.filter(pl.col("below_top") >= floor)
    tops = pl.DataFrame({"b": table["b"].unique().sort(), "height": 0.0})
    tint = alt.Color("b:N", title="true b", scale=alt.Scale(range=OF_B))
    lines = (
        alt.Chart(rows)
        .mark_line(strokeWidth=2.5)
        .encode(
            alt.X("assumed:Q", title="assumed imbalance", scale=alt.Scale(domain=[-1, 1])),
            alt.Y(
                "below_top:Q",
                title="restricted likelihood, less its height at b",
                scale=alt.Scale(domain=[floor, 0.001], nice=False),
            ),
            color=tint,
        )
    )
    dots = (
        alt.Chart(tops).mark_circle(size=110, opacity=1).encode(x="b:Q", y="height:Q", color=tint)
    )
    return alt.layer(lines, dots).properties(width=480, height=260)


# --- beyond -------------------------------------------------------------------------------------


def over_bound(table: pl.DataFrame) -> Any:
    """Mean squared errors over the Cramér–Rao bound; Zhang's are far off, and in the table alone."""
    methods = [method for method in beyond.BOUND_METHODS if method != "Zhang"]
    table = table.filter(pl.col("method").is_in(methods))
    names = {"b_over_bound": "imbalance b", "rates_over_bound": "all rates"}
    rows = table.unpivot(
        on=list(names), index=["b", "n", "method"], variable_name="of", value_name="ratio"
    ).with_columns(pl.col("of").replace(names))
    ends = [float(rows["ratio"].min()) / 1.1, float(rows["ratio"].max()) * 1.1]
    parts = []
    for place, (imbalance, items) in enumerate(beyond.BOUND_CELLS):
        own = rows.filter((pl.col("b") == imbalance) & (pl.col("n") == items))
        one = (
            alt.Chart(pl.DataFrame({"ratio": [1.0]}))
            .mark_rule(color=GREY, strokeDash=[5, 4])
            .encode(x="ratio:Q")
        )
        first = place in (0, 4)
        dots = (
            alt.Chart(own)
            .mark_point(size=85, filled=True, opacity=0.9)
            .encode(
                alt.X(
                    "ratio:Q",
                    title="mean squared error ÷ bound",
                    scale=alt.Scale(type="log", domain=ends, nice=False),
                    axis=alt.Axis(values=[0.5, 0.7, 1, 1.5, 2, 3, 5, 10], format="~g"),
                ),
                alt.Y(
                    "method:N",
                    sort=methods,
                    title=None,
                    axis=alt.Axis(labels=first, ticks=first, labelFontSize=12, grid=True),
                ),
                color=quantity(list(names.values())),
                shape=quantity(list(names.values()), alt.Shape),
            )
        )
        parts.append(
            alt.layer(one, dots).properties(
                width=175, height=165, title=f"b = {imbalance:g}, n = {items:,}"
            )
        )
    return alt.vconcat(alt.hconcat(*parts[:4]), alt.hconcat(*parts[4:])).resolve_scale(
        color="shared", shape="shared"
    )


def missing(table: pl.DataFrame) -> Any:
    """What missing votes do to every method, and the least that they must."""
    methods = (*beyond.MISSING_METHODS, "bound")
    parts = [
        alt.Chart(table)
        .mark_line(point=alt.OverlayMarkDef(size=55, filled=True))
        .encode(
            alt.X("missing:Q", title="share of votes missing", axis=alt.Axis(format="%")),
            log_axis_of_errors(field, title),
            color=colour(methods),
            shape=shape(methods),
            strokeDash=alt.condition(
                alt.datum.method == "bound", alt.value([5, 4]), alt.value([1, 0])
            ),
        )
        .properties(width=310, height=280, title=head)
        for field, title, head in (
            ("b_rmse", "root mean square error", "imbalance b"),
            ("rates_rmse", "root mean square error", "sensitivities and specificities"),
        )
    ]
    return alt.hconcat(*parts)


def log_axis_of_errors(field: str, title: str) -> alt.Y:
    return alt.Y(
        f"{field}:Q",
        title=title,
        scale=alt.Scale(type="log", nice=False),
        axis=alt.Axis(values=[0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5], format="~g"),
    )


def copying(table: pl.DataFrame) -> Any:
    """What copies do to every method."""
    cases = table["case"].unique(maintain_order=True).to_list()
    parts = [
        alt.Chart(table)
        .mark_point(size=110, filled=True, opacity=0.9)
        .encode(
            alt.X(
                f"{field}:Q",
                title=title,
                scale=alt.Scale(domain=[0, float(table[field].max()) * 1.06], nice=False),
                axis=alt.Axis(tickCount=6),
            ),
            alt.Y(
                "case:N",
                sort=cases,
                title=None,
                axis=alt.Axis(labels=place == 0, ticks=place == 0, labelFontSize=13, grid=True),
            ),
            color=colour(beyond.COPYING_METHODS),
            shape=shape(beyond.COPYING_METHODS),
        )
        .properties(width=300, height=230, title=head)
        for place, (field, title, head) in enumerate(
            (
                ("b", "mean absolute error", "imbalance b"),
                ("rates", "mean absolute error", "sensitivities and specificities"),
            )
        )
    ]
    return alt.hconcat(*parts)


# Name of the chart -> the tables that it shows, and the function that draws it.
CHARTS: dict[str, tuple[tuple[str, ...], Any]] = {
    "artificial_estimates": (("artificial",), estimates),
    "artificial_mse": (("artificial",), squared_errors),
    "artificial_rates": (("artificial",), rate_errors),
    "classifiers": (("classifiers",), classifiers),
    "real_bars": (("real_runs_ready",), bars),
    "real_scatter": (("real_runs_ready",), scatter),
    "real_rates": (("real_runs_ready",), errors_of_rates),
    "real_bars_sklearn": (("real_runs_sklearn",), bars),
    "real_scatter_sklearn": (("real_runs_sklearn",), scatter),
    "real_bars_weka": (("real_runs_weka",), bars),
    "real_scatter_weka": (("real_runs_weka",), scatter),
    "theorem_1": (("theorem_1_curves",), curves),
    "bound": (("bound",), over_bound),
    "missing": (("missing",), missing),
    "copying": (("copying",), copying),
}
