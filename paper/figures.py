"""Tables -> charts, as SVG and PNG. The same tables give the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import polars as pl

from paper import artificial, beyond, real
from paper.data import SETS
from paper.settings import Settings
from paper.style import (
    COLOURS,
    FIVE,
    GREY,
    colour,
    headed,
    in_rows,
    lane,
    log_scale,
    panel,
    power_axis,
    powers,
    quantity,
    rows_axis,
    save,
    shape,
)
from paper.work import read

ON_CHARTS = tuple(each for each in beyond.METHODS if each not in beyond.OFF_THE_CHARTS)


def draw_all(settings: Settings) -> None:
    """Draw every chart whose tables are there."""
    settings.figures.mkdir(parents=True, exist_ok=True)
    for name, (tables, make) in CHARTS.items():
        files = [settings.results / f"{table}.csv" for table in tables]
        if all(file.is_file() for file in files):
            save(settings.figures, name, make(*(read(file) for file in files)))


# --- section 6.1 --------------------------------------------------------------------------------


def estimates(table: pl.DataFrame) -> Any:
    """Mean and standard deviation of both estimates against n."""
    rows = table.filter(pl.col("method") != "known b").with_columns(
        low=pl.col("mean") - pl.col("sd"), high=pl.col("mean") + pl.col("sd")
    )
    ends = float(rows["n"].min()), float(rows["n"].max())
    values = [float(rows["low"].min()) - 0.05, float(rows["high"].max()) + 0.05]
    scale = alt.Scale(domain=values, nice=False)
    titles = {
        "tensor": "third-moment tensor (Algorithm 1)",
        "likelihood": "restricted likelihood (Algorithm 2)",
    }
    true = sorted(artificial.IMBALANCES, reverse=True)  # the legend stands as the lines do
    tint = alt.Color(
        "b:N", sort=true, title="true b", scale=alt.Scale(domain=true, range=FIVE[:3]),
        legend=alt.Legend(symbolOpacity=1, symbolType="circle"),
    )  # fmt: skip
    parts = []
    for place, method in enumerate(artificial.METHODS):
        own = rows.filter(pl.col("method") == method)
        base = alt.Chart(own).encode(power_axis(alt.X, "n", "items n", ends), color=tint)
        truth = alt.Chart(own).mark_rule(strokeDash=[4, 4], color=GREY).encode(y="b:Q")
        band = base.mark_area(opacity=0.25).encode(y=alt.Y("low:Q", scale=scale), y2="high:Q")
        line = base.mark_line(point=alt.OverlayMarkDef(size=50, filled=True)).encode(
            alt.Y(
                "mean:Q",
                scale=scale,
                title=None if place else "estimate of b",
                axis=alt.Axis(values=[-0.3, 0, 0.3, 0.6, 0.9], format="~g", labels=not place),
            )
        )
        parts.append(panel(alt.layer(band, truth, line), titles[method], 275, 250))
    return headed(
        alt.hconcat(*parts, spacing=24),
        "Both estimates of b close in on the truth",
        "mean, and a band of one standard deviation on both sides; dashed: the true b",
    )


def squared_errors(table: pl.DataFrame, slopes: pl.DataFrame) -> Any:
    """MSE of b against n on log–log axes."""
    return headed(
        _falling(
            table.filter(pl.col("method") != "known b"),
            slopes.filter(pl.col("of") == "b"),
            artificial.METHODS,
            "mse",
            "mean squared error of b",
        ),
        "The squared error of b falls like 1/n",
        _slopes_read(slopes),
    )


def rate_errors(table: pl.DataFrame, slopes: pl.DataFrame) -> Any:
    """MSE of the rates against n, b known or estimated."""
    return headed(
        _falling(
            table,
            slopes.filter(pl.col("of") == "rates"),
            (*artificial.METHODS, "known b"),
            "rates_mse",
            "mean squared error of ψ and η",
        ),
        "The squared error of the rates falls like 1/n too, b known or not",
        _slopes_read(slopes),
    )


def _slopes_read(slopes: pl.DataFrame) -> str:
    return f"log–log; dashed: a slope of −1; the figures are fitted slopes, n ≥ {slopes['from_n'][0]:,}"


def _falling(
    rows: pl.DataFrame, slopes: pl.DataFrame, methods: Sequence[str], field: str, title: str
) -> Any:
    """Lines by method, a panel for each b, with their slopes, and a thin line that falls like 1/n."""
    across = float(rows["n"].min()), float(rows["n"].max())
    up = float(rows[field].min()) / 2, float(rows[field].max()) * 2.5
    return alt.hconcat(
        *(
            panel(
                alt.layer(
                    _guide(rows.filter(pl.col("b") == imbalance), field, across),
                    alt.Chart(rows.filter(pl.col("b") == imbalance))
                    .mark_line(point=alt.OverlayMarkDef(size=60, filled=True))
                    .encode(
                        power_axis(alt.X, "n", "items n", across),
                        power_axis(alt.Y, field, title, up, bare=place > 0),
                        color=colour(methods),
                        shape=shape(methods),
                    ),
                    *_slope_words(slopes.filter(pl.col("b") == imbalance), methods),
                ),
                f"b = {imbalance:g}",
                185,
                250,
            )
            for place, imbalance in enumerate(artificial.IMBALANCES)
        ),
        spacing=20,
    )


def _guide(own: pl.DataFrame, field: str, across: tuple[float, float]) -> Any:
    """Draw a dashed line of slope −1 above all others."""
    height = 1.6 * float((own[field] * own["n"]).max())
    line = pl.DataFrame({"n": list(across), field: [height / each for each in across]})
    return (
        alt.Chart(line)
        .mark_line(strokeDash=[5, 4], color=GREY, strokeWidth=1.5)
        .encode(x="n:Q", y=f"{field}:Q")
    )


def _slope_words(slopes: pl.DataFrame, methods: Sequence[str]) -> list[Any]:
    """Write the fitted slopes into the panel's lower left corner, in the colours of their lines."""
    of = {row["method"]: row["slope"] for row in slopes.to_dicts()}
    return [
        alt.Chart(pl.DataFrame({"t": [f"{method}: {of[method]:.2f}".replace("-", "−")]}))
        .mark_text(align="left", fontSize=13, fontWeight="bold", color=COLOURS[method])
        .encode(x=alt.value(10), y=alt.value(238 - 18 * place), text="t:N")
        for place, method in enumerate(reversed(methods))
    ]


def classifiers(table: pl.DataFrame) -> Any:
    """MAE of b against m."""
    ends = float(table["mae"].min()) * 0.85, float(table["mae"].max()) * 1.15
    numbers = table["m"].unique().sort().to_list()
    parts = []
    for place, imbalance in enumerate((0.0, 0.3)):
        lines = (
            alt.Chart(table.filter(pl.col("b") == imbalance))
            .mark_line(point=alt.OverlayMarkDef(size=60, filled=True))
            .encode(
                alt.X(
                    "m:Q",
                    title="classifiers m",
                    scale=log_scale(min(numbers) * 0.9, max(numbers) * 1.1),
                    axis=alt.Axis(values=numbers, format="d"),
                ),
                alt.Y(
                    "mae:Q",
                    title=None if place else "mean absolute error of b",
                    scale=log_scale(*ends),
                    axis=alt.Axis(
                        values=[0.003, 0.005, 0.01, 0.02, 0.03, 0.05], format="~g", labels=not place
                    ),
                ),
                color=colour(artificial.WAYS, "way"),
                shape=shape(artificial.WAYS, "way"),
            )
        )
        floor = (
            alt.Chart(pl.DataFrame({"mae": [artificial.with_labels(imbalance)]}))
            .mark_rule(strokeDash=[5, 4], color=GREY)
            .encode(y="mae:Q")
        )
        parts.append(panel(alt.layer(floor, lines), f"b = {imbalance:g}", 265, 250))
    return headed(
        alt.hconcat(*parts, spacing=24),
        "More classifiers, smaller error of b; at b = 0 the true v brings nothing",
        f"tensor with v estimated, with the true v, and all fitted at once; n = {artificial.APPENDIX_ITEMS:,}; dashed: with the true labels",
    )


# --- section 6.2 --------------------------------------------------------------------------------


def _titles(table: pl.DataFrame) -> dict[str, str]:
    return {name: SETS[name].title for name in SETS if name in set(table["set"])}


def bars(table: pl.DataFrame) -> Any:
    """Balanced accuracy, mean and standard deviation over the realizations; bars start at chance."""
    means = (
        table.group_by("set", "method", maintain_order=True)
        .agg(mean=pl.col("balanced_accuracy").mean(), sd=pl.col("balanced_accuracy").std())
        .with_columns(pl.col("sd").fill_null(0.0), chance=0.5)
        .with_columns(
            low=pl.col("mean") - pl.col("sd"),
            high=pl.col("mean") + pl.col("sd"),
            said=pl.col("mean").map_elements(lambda value: f"{value:.3f}", return_dtype=pl.String),
        )
    )
    scale = alt.Scale(domain=[0.5, 1.06], nice=False)
    axis = alt.Axis(values=[0.5, 0.6, 0.7, 0.8, 0.9, 1.0], format=".1f")
    parts = []
    for place, (name, title) in enumerate(_titles(table).items()):
        base = alt.Chart(means.filter(pl.col("set") == name)).encode(
            rows_axis(real.METHODS, "method", bare=place % 2 > 0, grid=False)
        )
        bar = base.mark_bar(height=16).encode(
            alt.X("mean:Q", scale=scale, title="balanced accuracy", axis=axis),
            x2="chance:Q",
            color=colour(real.METHODS, legend=None),
        )
        whisker = base.mark_rule(color="black", strokeWidth=1.5).encode(x="low:Q", x2="high:Q")
        word = base.mark_text(align="left", dx=5, fontSize=12).encode(x="high:Q", text="said:N")
        parts.append(panel(alt.layer(bar, whisker, word), title, 265, 190))
    return headed(
        in_rows(parts, 2, 14),
        "Labels from the votes of ten classifiers: how often they are right",
        "balanced accuracy: mean and one standard deviation over the realizations; bars start at chance",
    )


def scatter(table: pl.DataFrame) -> Any:
    """i-SML's error against SML's: below the diagonal i-SML is better."""
    wide = (
        table.filter(pl.col("method").is_in([real.SML, real.ISML]))
        .pivot(on="method", index=["set", "realization"], values="balanced_accuracy")
        .select("set", sml=1 - pl.col(real.SML), isml=1 - pl.col(real.ISML))
    )
    parts = []
    for place, (name, title) in enumerate(_titles(table).items()):
        own = wide.filter(pl.col("set") == name)
        both = pl.concat([own["sml"], own["isml"]])
        room = 0.08 * (float(both.max()) - float(both.min())) + 0.001
        ends = [float(both.min()) - room, float(both.max()) + room]
        step = _step(ends[1] - ends[0])
        axis = alt.Axis(
            values=[step * k for k in range(round(1 / step)) if ends[0] <= step * k <= ends[1]],
            format=".2f" if step >= 0.01 else ".3f",
        )
        scale = alt.Scale(domain=ends, nice=False, zero=False)
        half = alt.Chart(pl.DataFrame({"sml": ends, "isml": ends, "floor": [ends[0]] * 2}))
        shade = half.mark_area(color="#0072B2", opacity=0.09).encode(
            x="sml:Q", y="isml:Q", y2="floor:Q"
        )
        diagonal = half.mark_line(color=GREY, strokeDash=[5, 4]).encode(x="sml:Q", y="isml:Q")
        dots = (
            alt.Chart(own)
            .mark_circle(size=60, color=COLOURS[real.ISML], opacity=0.8)
            .encode(
                alt.X("sml:Q", scale=scale, axis=axis, title="error of SML"),
                alt.Y(
                    "isml:Q", scale=scale, axis=axis, title=None if place % 2 else "error of i-SML"
                ),
            )
        )
        better = int((own["isml"] < own["sml"]).sum())
        heads = f"{title}: {better} of {len(own)}"
        parts.append(panel(alt.layer(shade, diagonal, dots), heads, 250, 200))
    return headed(
        in_rows(parts, 2, 24),
        "i-SML errs less than SML where dots lie in the shaded half",
        "1 − balanced accuracy, one dot a realization; over the panels: how many lie there",
    )


def _step(length: float) -> float:
    """Return the least of 1, 2, 5 × a power of ten that divides a length into five at most."""
    steps = [digit * 10.0**place for place in range(-4, 1) for digit in (1, 2, 5)]
    return next(step for step in steps if length / step <= 5)


def errors_of_rates(table: pl.DataFrame) -> Any:
    """Mean absolute error of what each method says about the classifiers."""
    methods = [method for method in real.METHODS if method not in ("majority", "SML", "oracle ML")]
    names = {"sensitivity": "sensitivity", "specificity": "specificity", "b": "imbalance b"}
    of = list(names.values())
    means = (
        table.filter(pl.col("method").is_in(methods))
        .group_by("set", "method", maintain_order=True)
        .agg(*(pl.col(name).mean() for name in names))
        .unpivot(on=list(names), index=["set", "method"], variable_name="of", value_name="error")
        .with_columns(pl.col("of").replace(names))
    )
    scale = alt.Scale(domain=[0, float(means["error"].max()) * 1.06], nice=False)
    parts = [
        panel(
            alt.Chart(means.filter(pl.col("set") == name))
            .mark_point(size=90, filled=True, opacity=1)
            .encode(
                alt.X(
                    "error:Q",
                    title="mean absolute error",
                    scale=scale,
                    axis=alt.Axis(tickCount=4, format="~g"),
                ),
                rows_axis(methods, "method", bare=place % 2 > 0),
                lane(of),
                quantity(of),
                quantity(of, alt.Shape),
            ),
            title,
            215,
            190,
        )
        for place, (name, title) in enumerate(_titles(table).items())
    ]
    return headed(
        in_rows(parts, 2, 14),
        "What the methods say of the classifiers: how far it is off",
        "mean absolute error over ten classifiers and all realizations; left is better",
    )


# --- theorem 1 ----------------------------------------------------------------------------------


def curves(table: pl.DataFrame) -> Any:
    """The restricted likelihood in the exact limit, for several true b."""
    floor = -0.012
    true = sorted(table["b"].unique().to_list())
    tint = alt.Color(
        "b:N",
        sort=true,
        title="true b",
        scale=alt.Scale(domain=true, range=FIVE),
        legend=alt.Legend(labelExpr="replace(datum.label, '-', '−')"),
    )
    lines = (
        alt.Chart(table.filter(pl.col("below_top") >= 2 * floor))
        .mark_line(strokeWidth=2.5, clip=True)
        .encode(
            alt.X("assumed:Q", title="assumed imbalance", scale=alt.Scale(domain=[-1, 1])),
            alt.Y(
                "below_top:Q",
                title="restricted likelihood, less its height at b",
                scale=alt.Scale(domain=[floor, 0.001], nice=False),
                axis=alt.Axis(values=[-0.012, -0.008, -0.004, 0], format="~g"),
            ),
            tint,
        )
    )
    tops = pl.DataFrame({"assumed": true, "b": true, "below_top": [0.0] * len(true)})
    dots = (
        alt.Chart(tops)
        .mark_circle(size=120, opacity=1)
        .encode(x="assumed:Q", y="below_top:Q", color=tint)
    )
    return headed(
        alt.layer(lines, dots).properties(width=560, height=270),
        "The restricted likelihood is highest at the true b",
        "one ensemble of ten, exact probabilities in place of a sample; dots: the true b",
    )


# --- beyond -------------------------------------------------------------------------------------


def over_bound(table: pl.DataFrame) -> Any:
    """Mean squared errors over the Cramér–Rao bound."""
    names = {"b_over_bound": "imbalance b", "rates_over_bound": "all rates"}
    of = list(names.values())
    rows = (
        table.filter(pl.col("method").is_in(ON_CHARTS))
        .unpivot(on=list(names), index=["b", "n", "method"], variable_name="of", value_name="ratio")
        .with_columns(pl.col("of").replace(names))
    )
    ends = float(rows["ratio"].min()) / 1.12, float(rows["ratio"].max()) * 1.12
    bound = alt.Chart(pl.DataFrame({"ratio": [1.0]})).mark_rule(color=GREY, strokeDash=[5, 4])
    parts = []
    for place, (imbalance, items) in enumerate(beyond.BOUND_CELLS):
        dots = (
            alt.Chart(rows.filter((pl.col("b") == imbalance) & (pl.col("n") == items)))
            .mark_point(size=75, filled=True, opacity=1)
            .encode(
                alt.X(
                    "ratio:Q",
                    title="mean squared error ÷ bound",
                    scale=log_scale(*ends),
                    axis=alt.Axis(values=[0.3, 0.5, 0.7, 1, 1.4, 2, 3, 5, 10], format="~g"),
                ),
                rows_axis(ON_CHARTS, "method", bare=place % 3 > 0),
                lane(of),
                quantity(of),
                quantity(of, alt.Shape),
            )
        )
        one = bound.encode(x="ratio:Q")
        parts.append(panel(alt.layer(one, dots), f"b = {imbalance:g}, n = {items:,}", 180, 195))
    return headed(
        in_rows(parts, 3, 14).resolve_scale(color="shared", shape="shared"),
        "How near each method comes to the Cramér–Rao bound",
        f"dashed: the bound; left is better; {_listed(beyond.OFF_THE_CHARTS)} are off it, see the table",
    )


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"


def missing(table: pl.DataFrame) -> Any:
    """What missing votes do to every method, and the least that they must."""
    methods = (*ON_CHARTS, "bound")
    table = table.filter(pl.col("method").is_in(methods))
    parts = []
    for field, head in (("b_rmse", "imbalance b"), ("rates_rmse", "sensitivities, specificities")):
        ends = float(table[field].min()) / 1.1, float(table[field].max()) * 1.1
        values = [digit * ten for ten in powers(0.001, 1) for digit in (1, 1.5, 2, 3, 5, 7)]
        base = alt.Chart(table).encode(
            alt.X("missing:Q", title="share of votes missing", axis=alt.Axis(format="%")),
            alt.Y(
                f"{field}:Q",
                title="root mean square error",
                scale=log_scale(*ends),
                axis=alt.Axis(
                    values=[each for each in values if ends[0] <= each <= ends[1]], format="~g"
                ),
            ),
            color=colour(methods),
        )
        bound = base.transform_filter(alt.datum.method == "bound").mark_line(
            strokeDash=[5, 4], strokeWidth=2.5
        )
        lines = (
            base.transform_filter(alt.datum.method != "bound")
            .mark_line(point=alt.OverlayMarkDef(size=55, filled=True))
            .encode(shape=shape(methods))
        )
        parts.append(panel(alt.layer(lines, bound), head, 255, 270))
    return headed(
        alt.hconcat(*parts, spacing=24),
        "With votes missing, errors grow as fast as they must",
        "dashed: the root of the Cramér–Rao bound of votes with as many missing; log scale",
    )


def copying(table: pl.DataFrame) -> Any:
    """What copies do to every method."""
    cases = table["case"].unique(maintain_order=True).to_list()
    table = table.filter(pl.col("method").is_in(ON_CHARTS))
    parts = [
        panel(
            alt.Chart(table)
            .mark_point(size=80, filled=True, opacity=1)
            .encode(
                alt.X(
                    f"{field}:Q",
                    title="mean absolute error",
                    scale=alt.Scale(domain=[0, float(table[field].max()) * 1.06], nice=False),
                    axis=alt.Axis(tickCount=5, format="~g"),
                ),
                rows_axis(cases, "case", bare=place > 0),
                lane(ON_CHARTS, "method"),
                colour(ON_CHARTS),
                shape(ON_CHARTS),
            ),
            head,
            240,
            400,
        )
        for place, (field, head) in enumerate(
            (("b", "imbalance b"), ("rates", "sensitivities, specificities"))
        )
    ]
    return headed(
        alt.hconcat(*parts, spacing=14),
        "Where classifiers copy, all but the default are misled",
        "mean absolute error; left is better; each row a case, q the share of votes copied",
    )


# Name of the chart -> the tables that it shows, and the function that draws it.
CHARTS: dict[str, tuple[tuple[str, ...], Any]] = {
    "artificial_estimates": (("artificial",), estimates),
    "artificial_mse": (("artificial", "artificial_slopes"), squared_errors),
    "artificial_rates": (("artificial", "artificial_slopes"), rate_errors),
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
