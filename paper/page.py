"""Tables -> docs/paper.md. Every figure on the page is read from a table of the run."""

from __future__ import annotations

import re
from os.path import relpath
from pathlib import Path
from typing import Any

import polars as pl

from paper import artificial, beyond, ensembles, real
from paper.data import SETS
from paper.settings import Settings
from paper.work import read

TEMPLATE = Path(__file__).with_name("page.md.jinja")
GAINS = ("i-SML tensor", "i-SML likelihood", "MAP", "Dawid–Skene", "default")


def write(settings: Settings) -> None:
    settings.page.write_text(written(settings), encoding="utf-8")


def written(settings: Settings) -> str:
    """Return the page."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(  # noqa: S701 (Markdown, and no one's input)
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    environment.filters.update(
        three=three,
        two=lambda x: f"{x:.2f}",
        minus=minus,
    )
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    return template.render(
        tables=Tables(settings), figure=Figure(settings), settings=settings, sets=SETS,
        nearest=ensembles.NEAREST, data=Real(settings), minus=minus,
    )  # fmt: skip


def minus(value: float) -> str:
    """Give a figure with two digits and a true minus sign."""
    return f"{value:.2f}".replace("-", "−")


def three(value: float) -> str:
    return f"{value:.3f}"


class Figure:
    """Charts as seen from the page, each with what the source reports and what is seen here beside it."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def there(self, name: str) -> bool:
        return self._file(name).is_file()

    def _file(self, name: str) -> Path:
        return self.settings.figures / f"{name}.svg"

    def __call__(self, name: str, shows: str, source: str, here: str) -> str:
        if not self.there(name):
            return f"(Not drawn in this run: {name}.)"
        place = relpath(self._file(name), self.settings.page.parent)
        return (
            f"![{shows}]({place})\n\n{markdown(['The source', 'Here'], [[source, here]], words=2)}"
        )


def markdown(heads: list[str], rows: list[list[Any]], words: int = 1) -> str:
    """Lay out a table; the first columns, one unless more are named, are words, the others figures."""
    lines = [heads, ["---"] * words + ["---:"] * (len(heads) - words), *rows]
    text = "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)
    return re.sub(r"(?<![\w-])-(?=\d)", "−", text)  # a true minus sign; not in 1e-05


class Tables:
    """The tables of the page, each from one table of the run."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def of(self, name: str) -> pl.DataFrame:
        return read(self.settings.results / f"{name}.csv")

    def rows(self, name: str) -> list[dict[str, Any]]:
        return self.of(name).to_dicts()

    # --- section 6.1 ----------------------------------------------------------------------------

    def squared_errors(self) -> str:
        gains = {(row["b"], row["n"]): row for row in self.rows("artificial_gain")}
        found = {(r["b"], r["n"], r["method"]): r for r in self.rows("artificial")}
        rows = []
        for (b, n), gain in gains.items():
            cells = [found[b, n, method] for method in artificial.METHODS]
            rows.append(
                [
                    f"{b:g}",
                    f"{n:,}",
                    *(f"{each['mean']:.3f} ± {each['sd']:.3f}" for each in cells),
                    *(f"{each['mse']:.2e}" for each in cells),
                    f"{gain['likelihood_over_tensor']:.3f}",
                ]
            )
        heads = [
            "b", "n", "tensor: mean ± sd", "likelihood: mean ± sd", "tensor: MSE",
            "likelihood: MSE", "likelihood ÷ tensor",
        ]  # fmt: skip
        return markdown(heads, rows)

    def bias(self) -> dict[str, Any]:
        """How far the means of both estimates are from the truth: at the least n, and from n = 1000 on."""
        rows = [row for row in self.rows("artificial") if row["method"] != "known b"]
        least = min(row["n"] for row in rows)

        def most(chosen: list[dict[str, Any]]) -> float:
            return max(abs(row["mean"] - row["b"]) for row in chosen)

        return {
            "least_n": least,
            "at_least_n": most([row for row in rows if row["n"] == least]),
            "from_n": most([row for row in rows if row["n"] >= artificial.FITTED_FROM]),
            "from_ten_thousand": most([row for row in rows if row["n"] >= 10_000]),
        }

    def slopes(self) -> dict[str, Any]:
        """Slopes of the log MSE: a table, and their least and greatest."""
        rows = self.rows("artificial_slopes")
        of = {(row["of"], row["method"], row["b"]): row["slope"] for row in rows}
        words = {"b": "MSE of b", "rates": "MSE of ψ and η"}
        lines = [
            [
                f"{words[what]}, {method}",
                *(f"{of[what, method, b]:.3f}" for b in artificial.IMBALANCES),
            ]
            for what, method in dict.fromkeys((row["of"], row["method"]) for row in rows)
        ]
        steep = {what: [row["slope"] for row in rows if row["of"] == what] for what in words}
        heads = ["slope of", *(f"b = {b:g}" for b in artificial.IMBALANCES)]
        return {
            "table": markdown(heads, sorted(lines)),
            "least": {what: min(each) for what, each in steep.items()},
            "most": {what: max(each) for what, each in steep.items()},
            "hold": all(-1.1 <= row["slope"] <= -0.9 for row in rows),
            "from_n": rows[0]["from_n"],
        }

    def gain(self) -> dict[str, Any]:
        """How the likelihood's MSE compares with the tensor's from n = 1000 on."""
        rows = [row for row in self.rows("artificial_gain") if row["n"] >= artificial.FITTED_FROM]
        ratios = [row["likelihood_over_tensor"] for row in rows]
        return {
            "cells": len(rows),
            "below": sum(ratio <= 1 for ratio in ratios),
            "least": min(ratios),
            "most": max(ratios),
        }

    def classifiers(self) -> dict[str, Any]:
        rows = self.rows("classifiers")
        of = {(row["b"], row["m"], row["way"]): row["mae"] for row in rows}
        sizes = sorted({row["m"] for row in rows})
        lines = [
            [f"{b:g}", m, *(f"{of[b, m, way]:.4f}" for way in artificial.WAYS)]
            for b in (0.0, 0.3)
            for m in sizes
        ]
        ratio = {
            b: [of[b, m, "estimated v"] / of[b, m, "true v"] for m in sizes] for b in (0.0, 0.3)
        }
        joint = [
            of[b, m, "all at once"] / of[b, m, "estimated v"] for b in (0.0, 0.3) for m in sizes
        ]
        most = [of[0.3, sizes[-1], way] for way in artificial.WAYS]
        return {
            "table": markdown(["b", "m", *(f"MAE, {way}" for way in artificial.WAYS)], lines),
            "sets": rows[0]["sets"],
            "at_zero": max(abs(each - 1) for each in ratio[0.0]),
            "at_three": (min(ratio[0.3]), max(ratio[0.3])),
            "joint": (min(joint), max(joint)),
            "most_m": sizes[-1],
            "at_most_m": dict(zip(artificial.WAYS, most, strict=True)),
            "with_labels": artificial.with_labels(0.3),
        }

    # --- theorems -------------------------------------------------------------------------------

    def theorem_1(self) -> str:
        rows = [
            [f"{row['b']:g}", row["likelihood"], row["tensor"], row["rates"]]
            for row in self.rows("theorem_1")
        ]
        return markdown(["b", "likelihood: b̂ − b", "tensor: b̂ − b", "ψ, η with b known"], rows)

    def theorem_2(self) -> str:
        heads = [
            "errors of the other classifiers", "moments of the splits moved by",
            "share of votes moved", "one-vs-rest: error of p", "one-vs-rest: error of the diagonals",
            "whole likelihood: error of all entries",
        ]  # fmt: skip
        names = (
            "moments_moved", "patterns_moved", "one_vs_rest_class", "one_vs_rest_diagonal",
            "whole_likelihood",
        )  # fmt: skip
        rows = [
            [f"spread {row['errors']}ly", *(row[name] for name in names)]
            for row in self.rows("theorem_2")
        ]
        return markdown(heads, rows)

    # --- beyond ---------------------------------------------------------------------------------

    def bound(self) -> str:
        of = {((row["b"], row["n"]), row["method"]): row for row in self.rows("bound")}
        heads = {cell: f"b = {cell[0]:g}, n = {cell[1]:,}" for cell in beyond.BOUND_CELLS}
        return _of_b_and_rates(of, heads, ("b_over_bound", "rates_over_bound"))

    def refused(self, name: str = "bound") -> dict[str, float]:
        """Return by method the largest share of data sets in a cell on which it refused, where it ever did."""
        shares: dict[str, float] = {}
        for row in self.rows(name):
            if row["refused"]:
                share = row["refused"] / (row["sets"] + row["refused"])
                shares[row["method"]] = max(share, shares.get(row["method"], 0.0))
        return shares

    def over_bound(self, methods: tuple[str, ...], field: str, least_n: int, most_n: int) -> str:
        """Give the least and the greatest ratio of these methods in the cells from least to most n."""
        ratios = [
            row[f"{field}_over_bound"]
            for row in self.rows("bound")
            if row["method"] in methods and least_n <= row["n"] <= most_n
        ]
        return f"{min(ratios):.2f} to {max(ratios):.2f}"

    def bound_error(self) -> float:
        """Largest standard error of the ratios that the chart shows."""
        rows = [row for row in self.rows("bound") if row["method"] not in beyond.OFF_THE_CHARTS]
        return max(max(row["b_error"], row["rates_error"]) for row in rows)

    def missing(self) -> str:
        of = {(row["missing"], row["method"]): row for row in self.rows("missing")}
        heads = {share: f"{share:.0%}" for share in beyond.MISSING}
        return _of_b_and_rates(of, heads, ("b_over_bound", "rates_over_bound"))

    def copying(self) -> str:
        of = {(row["case"], row["method"]): row for row in self.rows("copying")}
        heads = {case: case for case, _ in of}
        return _of_b_and_rates(of, heads, ("b", "rates"), ".3f")


def _of_b_and_rates(
    of: dict[tuple[Any, str], dict[str, Any]],
    heads: dict[Any, str],
    fields: tuple[str, str],
    form: str = ".2f",
) -> str:
    """Lay out two tables, of b and of the rates: a row a method, a column a cell."""
    tables = []
    for field, head in zip(fields, ("of b", "of the rates"), strict=True):
        rows = [
            [method, *(_figure(of[cell, method], field, form) for cell in heads)]
            for method in beyond.METHODS
            if any(of[cell, method][field] is not None for cell in heads)
        ]
        tables.append(markdown([head, *heads.values()], rows))
    return "\n\n".join(tables)


def _figure(row: dict[str, Any], field: str, form: str) -> str:
    """Give a figure, without digits after the point from ten on; marked where the method ever refused."""
    said = format(row[field], ".0f" if row[field] >= 10 else form)
    return said + ("\\*" if row["refused"] else "")


class Real:
    """What section 6.2 asks of the runs on real data."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def there(self, way: str) -> bool:
        return (self.settings.results / f"real_runs_{way}.csv").is_file()

    def runs(self, way: str) -> pl.DataFrame:
        return read(self.settings.results / f"real_runs_{way}.csv")

    def was_run(self, name: str) -> bool:
        """Tell whether a set is in any of the tables."""
        return any(self.there(way) and name in self.names(way) for way in ensembles.WAYS)

    def names(self, way: str) -> list[str]:
        held = set(self.runs(way)["set"])
        return [name for name in SETS if name in held]

    def accuracy(self, way: str) -> str:
        """Return mean ± standard deviation of the balanced accuracy; no prior odds."""
        found = _means(self.runs(way), "balanced_accuracy")
        return self._by_set(
            way, real.METHODS, lambda key: f"{found[key][0]:.3f} ± {found[key][1]:.3f}"
        )

    def with_prior(self, way: str) -> str:
        """Means with the prior odds."""
        found = _means(self.runs(way).drop_nulls("with_prior"), "with_prior")
        return self._by_set(way, GAINS, lambda key: f"{found[key][0]:.3f}")

    def _by_set(self, way: str, methods: tuple[str, ...], cell: Any) -> str:
        names = self.names(way)
        rows = [[method, *(cell((name, method)) for name in names)] for method in methods]
        return markdown(["method", *(SETS[name].title for name in names)], rows)

    def gains(self, way: str) -> str:
        """How often, and by how much, each method is above SML."""
        names = self.names(way)
        rows = []
        for method in GAINS:
            cells = [self.gain(way, name, method) for name in names]
            rows.append(
                [
                    method,
                    *(f"{each['mean']:+.3f}, {each['above']} of {each['of']}" for each in cells),
                ]
            )
        return markdown(["above SML by", *(SETS[name].title for name in names)], rows)

    def mean(self, way: str, name: str, method: str) -> float:
        """Return the mean balanced accuracy."""
        return _means(self.runs(way), "balanced_accuracy")[name, method][0]

    def gain(self, way: str, name: str, method: str = real.ISML, over: str = real.SML) -> dict:
        """Mean gain of a method over another, and in how many realizations it is above."""
        runs = self.runs(way).filter(pl.col("set") == name)
        mine, other = (
            runs.filter(pl.col("method") == each)["balanced_accuracy"] for each in (method, over)
        )
        ahead = mine - other
        return {"mean": ahead.mean(), "above": int((ahead > 0).sum()), "of": len(ahead)}

    def lead(self, way: str) -> dict[str, Any]:
        """Return the gain on MAGIC, which the source shows first, or else on the first set there is."""
        name = self.names(way)[0]  # in the order of SETS, where MAGIC is the first
        return self.gain(way, name) | {"set": name, "title": SETS[name].title}

    def off(self, way: str) -> str:
        """Say how far the rates are off where errors are taken to be independent, and by default."""
        runs = self.runs(way)
        of = {
            (method, what): _means(runs.filter(pl.col("method") == method), what)
            for method in ("MAP", "default")
            for what in ("sensitivity", "specificity", "b")
        }
        said = [
            f"{SETS[name].title}: "
            + " / ".join(
                f"{of['default', what][name, 'default'][0]:.3f} for {of['MAP', what][name, 'MAP'][0]:.3f}"
                for what in ("sensitivity", "specificity", "b")
            )
            for name in self.names(way)
        ]
        return (
            "Methods that take errors to be independent are off by .1 and more where errors are shared most. "
            "The default takes much of that back for the rates, though not on every set, and less for b. "
            f"The default, for MAP's sensitivity / specificity / b: {'; '.join(said)}."
        )

    def room(self, way: str, name: str) -> float:
        """What the oracle has over SML."""
        return float(self.gain(way, name, "oracle ML")["mean"])

    def rates(self, way: str) -> str:
        """Mean absolute errors of sensitivity, specificity and b."""
        parts = {
            what: _means(self.runs(way).drop_nulls(what), what)
            for what in ("sensitivity", "specificity", "b")
        }
        return self._by_set(
            way, GAINS, lambda key: " / ".join(f"{part[key][0]:.3f}" for part in parts.values())
        )

    def looked_at(self) -> pl.DataFrame:
        return read(self.settings.results / "real_ensembles.csv")

    def like(self, name: str) -> dict[str, float]:
        """Means over a set's realizations of what its ensembles are like."""
        table = self.looked_at().filter(pl.col("set") == name).drop("set")
        return table.mean().to_dicts()[0]

    def ties(self) -> str:
        """Return the majority's balanced accuracy by what a tie counts as."""
        table, names = self.looked_at(), self.names("ready")
        rows = []
        for head, column in (
            ("share of items with a tie", "ties"),
            ("a tie is a coin (as above)", None),
            ("a tie is positive", "majority_positive"),
            ("a tie is negative", "majority_negative"),
            ("a tie is wrong, as sign(0) = 0 is", "majority_wrong"),
        ):
            cells = []
            for name in names:
                own = table.filter(pl.col("set") == name)
                value = (
                    own[column].mean()
                    if column
                    else (own["majority_positive"] + own["majority_negative"]).mean() / 2
                )
                cells.append(f"{value:.3f}")
            rows.append([head, *cells])
        return markdown(["majority", *(SETS[name].title for name in names)], rows)

    def described(self) -> str:
        """What the ensembles are like."""
        table, rows = self.looked_at(), []
        for name in self.names("ready"):
            own = table.filter(pl.col("set") == name)
            rows.append(
                [
                    SETS[name].title.partition(" ")[0],
                    len(own),
                    f"{own['b'].mean():.2f}",
                    f"{own['least'].mean():.3f}",
                    f"{own['mean'].mean():.3f}",
                    f"{own['most'].mean():.3f}",
                    f"{own['shared'].mean():.2f}",
                    f"{int((own['constant'] > 0).sum())} of {len(own)}",
                    f"{own['unvoted'].mean():.1%}",
                ]
            )
        heads = [
            "set", "runs", "b", "worst", "mean", "best", "shared errors", "constant in",
            "no vote",
        ]  # fmt: skip
        return markdown(heads, rows)

    def checked(self) -> str | None:
        """Weka run here beside the ready votes, on the same training instances."""
        file = self.settings.results / "weka_check.csv"
        if not file.is_file():
            return None
        rows = [
            [row["classifier"], *(f"{row[name]:.4f}" for name in ("ready", "trained", "alike"))]
            for row in read(file).to_dicts()
        ]
        return markdown(
            ["classifier", "ready votes: accuracy", "run anew: accuracy", "same votes"], rows
        )

    def above(self, way: str) -> dict[str, Any]:
        """On how many sets the means stand in the source's order."""
        found = _means(self.runs(way), "balanced_accuracy")
        names = self.names(way)
        return {
            "sets": len(names),
            "over_sml": sum(found[name, real.ISML][0] > found[name, real.SML][0] for name in names),
            "over_majority": sum(
                min(found[name, real.ISML][0], found[name, real.SML][0])
                > found[name, "majority"][0]
                for name in names
            ),
        }


def _means(runs: pl.DataFrame, what: str) -> dict[tuple[str, str], tuple[float, float]]:
    table = runs.group_by("set", "method", maintain_order=True).agg(
        mean=pl.col(what).mean(), sd=pl.col(what).std()
    )
    return {
        (row["set"], row["method"]): (row["mean"], row["sd"] or 0.0) for row in table.to_dicts()
    }
