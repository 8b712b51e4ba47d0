"""What a person reads in a terminal: tables and sentences, within 80 columns, with or without colour.

Names come from strangers. They are shown letter by letter: never as Rich markup, never as control
codes that move the cursor or colour the screen.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from labelfree._errors import counted
from labelfree._result import Estimate
from labelfree.simulate import Simulated

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray
    from rich.console import Console
    from rich.table import Table

NARROWEST = 80  # columns; in a narrower terminal lines break, where Rich would drop figures
LEVEL_COLOURS = {"sound": "green", "caution": "yellow", "unidentified": "red"}

# Arguments that errors and verdicts may name, and that are options of the command line.
OPTIONS = (
    *("classifier", "classifiers", "copies", "copying", "item", "items", "method", "missing"),
    *("positive", "prevalence", "prior", "rule", "seed", "vector", "vote"),
)


def in_shell_words(sentence: str) -> str:
    """Spell options as the shell does: ``missing='NA'`` becomes ``--missing 'NA'``."""
    option = rf"(?<![\w-])({'|'.join(OPTIONS)})="
    return re.sub(option, r"--\1", re.sub(rf"{option}(?=[^\s,.;)])", r"--\1 ", sentence))


def printable(text: object) -> str:
    """Escape what would move the cursor or colour the terminal."""
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in str(text)
    )


def show_estimate(found: Estimate) -> None:
    """Print the table, the prevalence and the verdict."""
    rows = found.table()
    noted = any(row["note"] for row in rows)
    headers = ("classifier", "votes", "sensitivity", "specificity", "balanced")
    table = _table((*headers, "note") if noted else headers)
    for row in rows:
        figures = (row["sensitivity"], row["specificity"], row["balanced_accuracy"])
        cells = [printable(row["classifier"]), _count(row["votes"]), *map(_figure, figures)]
        table.add_row(*cells, *([row["note"]] if noted else []))
    out = _console()
    out.print(
        f"{counted(len(rows), 'classifier')} on {_count(found.items)} items; "
        f"positive is {printable(found.classes[-1])}; method {found.method}\n"
    )
    out.print(table)
    known = found.verdict.level != "unidentified"
    out.print(f"\nprevalence {_figure(found.prevalence if known else None)}")
    _show_verdict(out, found)


def _show_verdict(out: Console, found: Estimate) -> None:
    from rich.text import Text

    level = found.verdict.level
    out.print(Text("verdict ").append(level, style=f"bold {LEVEL_COLOURS[level]}"))
    helps = [f"What would help: {advice}" for advice in found.verdict.advice]
    for sentence in (*found.verdict.reasons, *helps):
        out.print(_indented(printable(in_shell_words(sentence)), out.width))


def show_labels(found: Estimate, labelled: pl.DataFrame, output: Path) -> None:
    """Say where the labels are, how many of each there are, and whether to trust them."""
    shares = ", ".join(
        f"{_count((labelled['label'] == each).sum())} are {printable(each)}"
        for each in reversed(found.classes)
    )
    out = _console()
    _print_line(out, f"{output}: labels of {_count(labelled.height)} items: {shares}")
    _show_verdict(out, found)


def show_simulated(names: Sequence[str], drawn: Simulated, output: Path, truth: Path) -> None:
    """Print the true rates, and say where votes and truth are."""
    table = _table(("classifier", "true sensitivity", "true specificity"))
    for name, *rates in zip(names, drawn.sensitivity, drawn.specificity, strict=True):
        table.add_row(name, *map(_figure, rates))
    out = _console()
    out.print(table)
    out.print(f"\nprevalence {_figure(drawn.prevalence)}")
    items = _count(len(drawn.truth))
    _print_line(out, f"{output}: votes on {items} items")
    _print_line(out, f"{truth}: true labels of {items} items")


def show_against_truth(
    found: Estimate,
    voted: NDArray[np.bool_],
    true: NDArray[np.bool_],
    labelled: Mapping[str, NDArray[np.bool_]],
) -> None:
    """Compare an estimate with the truth: each rate, the prevalence, and labels by two rules."""
    rates = (
        ("sensitivity", voted[true].mean(axis=0), found.sensitivity),
        ("specificity", 1 - voted[~true].mean(axis=0), found.specificity),
    )
    table = _table(("\nclassifier", *(f"{name}\n true  found     off" for name, *_ in rates)))
    for place, name in enumerate(found.classifiers):
        table.add_row(
            printable(name),
            *(
                f"{truth[place]:.3f}  {guess[place]:.3f}  {_offset(guess[place] - truth[place])}"
                for _, truth, guess in rates
            ),
        )
    out = _console()
    out.print("\nNow the truth is opened. How far were the estimates from it?\n")
    out.print(table)
    errors = (f"{name} {abs(guess - truth).mean():.3f}" for name, truth, guess in rates)
    right = (f"{rule} {(labels == true).mean():.1%}" for rule, labels in labelled.items())
    out.print(f"\nmean absolute error: {', '.join(errors)}")
    out.print(f"prevalence: true {_figure(true.mean())}, found {_figure(found.prevalence)}")
    out.print(f"labels that are right: {', '.join(right)}")


def _console() -> Console:
    from rich.console import Console

    out = Console(markup=False, highlight=False, emoji=False)
    out.width = max(out.width, NARROWEST)
    return out


def _indented(words: str, width: int) -> str:
    lines = textwrap.wrap(words, max(width - 2, 20), break_on_hyphens=False)
    return textwrap.indent("\n".join(lines), "  ")


def _print_line(out: Console, line: str) -> None:
    """Print a line that names a file, unbroken, so that the name can be copied."""
    out.print(printable(line), soft_wrap=True)


def _table(headers: Sequence[str]) -> Table:
    """A first column of names, folded where they are long, and columns of figures."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, header_style="bold")
    table.add_column(headers[0], overflow="fold", min_width=10)
    for header in headers[1:]:
        table.add_column(header, justify="right", no_wrap=True)
    return table


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _offset(value: float) -> str:
    return f"{round(float(value), 3) + 0.0:+.3f}"  # the sum turns −0 into 0


def _count(value: float) -> str:
    return f"{value:,.15g}"
