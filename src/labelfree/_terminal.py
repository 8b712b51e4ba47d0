"""What a person reads in a terminal: tables and sentences, within 80 columns, with or without colour.

Names come from strangers. They are shown letter by letter: never as Rich markup, never as control
codes that move the cursor or colour the screen.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labelfree._comparison import Change, Comparison, change_words, p_words
from labelfree._drift import Drift, Shift
from labelfree._errors import counted
from labelfree._labelling import Labelled
from labelfree._panel import Panel
from labelfree._plan import Plan
from labelfree._requirements import Check, found_words
from labelfree._result import Estimate
from labelfree._tally import Tally
from labelfree._view import short
from labelfree.simulate import Simulated

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from rich.console import Console
    from rich.table import Table

NARROWEST = 80  # columns; in a narrower terminal lines break, where Rich would drop figures
MOST_PERIODS = 3  # whose rates stand side by side in 80 columns
WIDEST_LABEL = 16  # of a confusion matrix
LEVEL_COLOURS = {"sound": "green", "caution": "yellow", "unidentified": "red"}

# Prevalences that a table of 80 columns has room for; estimates know the rates at each of them.
ASSUMED = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)

# Arguments that errors and verdicts may name, and that are options of the command line.
OPTIONS = (
    *("by", "classes", "classifier", "classifiers", "copies", "copying", "dependence"),
    *("duplicates", "gold", "item", "items"),
    *("known", "level", "loss", "method", "missing", "ordered", "positive", "prevalence", "prior"),
    *("rule", "seed", "sensitivity", "specificity", "vector", "vote", "width"),
)


def in_shell_words(sentence: str) -> str:
    """Spell options as the shell does: ``missing='NA'`` becomes ``--missing 'NA'``."""
    option = rf"(?<![\w.'-])({'|'.join(OPTIONS)})="
    return re.sub(option, r"--\1", re.sub(rf"{option}(?=[^\s,.;)])", r"--\1 ", sentence))


def printable(text: object) -> str:
    """Escape what would move the cursor or colour the terminal."""
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in str(text)
    )


def show_estimate(found: Estimate) -> None:
    """Print the table with its intervals, what else was found, and the verdict."""
    rows = found.table()
    noted = any(row["note"] for row in rows)
    headers = ("classifier", "votes", *found.rates[:-1], "balanced")
    table = _table((*headers, "note") if noted else headers)
    for row in rows:
        table.add_row(
            printable(row["classifier"]),
            _count(row["votes"]),
            *(_with_interval(row, rate) for rate in found.rates[:-1]),
            _figure(row["balanced_accuracy"]),
            *([row["note"]] if noted else []),
        )
    out = _console()
    two = len(found.classes) == 2
    of_what = (
        f"positive is {printable(found.classes[-1])}" if two else f"{len(found.classes)} classes"
    )
    out.print(
        f"{counted(len(rows), 'classifier')} on {_count(found.items)} items; {of_what}; method {found.method}\n"
    )
    out.print(table)
    _show_whole(out, found)
    _show_verdict(out, found)


def _show_whole(out: Console, found: Estimate) -> None:
    """Print what is not of one classifier alone: prevalence or classes, effective number, groups."""
    two = len(found.classes) == 2
    if found.verdict.level == "unidentified":
        out.print(f"\n{'prevalence' if two else 'class probabilities'} {_figure(None)}")
        return
    shares = found.shares()
    out.print()
    if two:
        out.print(f"prevalence {_with_interval(shares[0][1], 'share')}")
    else:
        table = _table(("class", "probability"))
        for label, (_, share) in zip(found.classes, shares, strict=True):
            table.add_row(printable(label), _with_interval(share, "share"))
        out.print(table)
        out.print()
    if shares[0][1]["share_low"] is not None:
        out.print(f"in parentheses: {_percent(found.level)} intervals")
    number = f"{found.effective_number:.1f} of {len(found.classifiers)}"
    out.print(f"effective number of classifiers: {number}")
    for group in found.groups:
        line = f"group that copies: {', '.join(map(printable, group))}"
        out.print(textwrap.fill(line, out.width, subsequent_indent="  ", break_on_hyphens=False))


def _show_verdict(out: Console, found: Estimate) -> None:
    from rich.text import Text

    level = found.verdict.level
    out.print(Text("verdict ").append(level, style=f"bold {LEVEL_COLOURS[level]}"))
    helps = [f"What would help: {advice}" for advice in found.verdict.advice]
    for sentence in (*found.verdict.reasons, *helps):
        out.print(_indented(printable(in_shell_words(sentence)), out.width))


def show_by_prevalence(found: Estimate) -> None:
    """Print each classifier's rates as they would be at some other prevalences."""
    if found.verdict.level == "unidentified":
        return
    cells: dict[str, dict[float, str]] = {}
    for row in found.by_prevalence():
        both = f"{_short(row['sensitivity'])}/{_short(row['specificity'])}"
        cells.setdefault(row["classifier"], {})[row["prevalence"]] = both
    table = _table(("classifier", *(f"{_short(each)}" for each in ASSUMED)))
    for name, by_prevalence in cells.items():
        table.add_row(printable(name), *(by_prevalence[each] for each in ASSUMED))
    out = _console()
    out.print("\nsensitivity/specificity, if the prevalence were\n")
    out.print(table)


def show_confusion(found: Estimate) -> None:
    """Print each classifier's confusion matrix in percent, a row a true class; long ones in parts."""
    if found.verdict.level == "unidentified":
        return
    labels = [printable(label) for label in found.classes]
    most = max(map(len, labels))
    wide = max(4, min(most, WIDEST_LABEL))
    row_head = max(min(most, WIDEST_LABEL), len("true class"))
    per_part = max(1, (NARROWEST - row_head - 2) // (wide + 1))
    out = _console()
    out.print("\nof 100 items of a true class (row), how many are given each label (column)")
    for name, matrix in zip(found.classifiers, found.confusion, strict=True):
        out.print(f"\n{printable(name)}")
        for first in range(0, len(labels), per_part):
            part = slice(first, first + per_part)
            table = _table(("true class", *(short(label, wide) for label in labels[part])))
            for label, row in zip(labels, matrix[:, part].tolist(), strict=True):
                table.add_row(short(label, row_head), *(f"{100 * value:.0f}" for value in row))
            out.print(table)


def show_plan(planned: Plan) -> None:
    """Print how many items, or gold labels, do what was asked."""
    out = _console()
    out.print(f"For {_percent(planned.level)} intervals at most {planned.width:g} wide:\n")
    table = _table(("", "needed"))
    for what, number in (
        ("unlabelled items, for every rate", planned.items_for_rates),
        ("unlabelled items, for the prevalence", planned.items_for_prevalence),
        ("unlabelled items, for both", planned.items),
        ("or gold labels of random items alone", planned.gold),
    ):
        table.add_row(what, _count(number))
    out.print(table)
    out.print(f"\nFor the prevalence an unlabelled item is worth {planned.worth:.2g} gold labels.")
    out.print("This supposes classifiers that err independently.")


def show_labels(found: Estimate, labelled: Labelled, output: Path) -> None:
    """Say where the labels are, how many of each there are, and whether to trust them."""
    shares = ", ".join(
        f"{_count(labelled.labels.get(each, 0))} are {printable(each)}"
        for each in reversed(found.classes)
    )
    out = _console()
    _print_line(out, f"{output}: labels of {_count(labelled.items)} items: {shares}")
    _show_verdict(out, found)


def show_report(found: Estimate, output: Path) -> None:
    """Say where the page is, and whether to trust what it says."""
    out = _console()
    _print_line(out, f"{output}: a report on {counted(len(found.classifiers), 'classifier')}")
    _show_verdict(out, found)


def show_tally(counted_votes: Tally, output: Path) -> None:
    """Say what was counted, and where it is."""
    out = _console()
    classes = ", ".join(printable(label) for label in counted_votes.classes)
    line = (
        f"{output}: {_count(counted_votes.items)} items, {len(counted_votes.classifiers)} classifiers, "
        f"{counted(len(counted_votes), 'distinct pattern')}; classes {classes}"
    )
    _print_line(out, printable(line))


def show_check(found: Estimate, checked: Check) -> None:
    """Print what came of each requirement."""
    from rich.text import Text

    table = _table(("requirement", "found", ""))
    for each in checked.outcomes:
        table.add_row(
            printable(each.requirement),
            printable(found_words(each)),
            Text("met", "green") if each.met else Text("missed", "bold red"),
        )
    table.columns[1].no_wrap, table.columns[1].overflow = False, "fold"
    out = _console()
    out.print(table)
    missed = sum(not each.met for each in checked.outcomes)
    what = "the end of the interval decides" if checked.by == "interval" else "the estimate decides"
    out.print(f"\n{missed} of {counted(len(checked.outcomes), 'requirement')} missed; {what}")
    _show_verdict(out, found)


def show_panels(found: Estimate, panels: Sequence[Panel]) -> None:
    """Print the panel of each size, and what all and the best alone reach."""
    table = _table(("size", "balanced", "classifiers"))
    for panel in panels:
        names = ", ".join(map(printable, panel.classifiers))
        table.add_row(f"{len(panel.classifiers)}", f"{panel.balanced_accuracy:.3f}", names)
    table.columns[2].justify, table.columns[2].no_wrap = "left", False
    table.columns[2].overflow = "fold"
    out = _console()
    out.print("balanced accuracy that the consensus of the best panel is expected to reach\n")
    out.print(table)
    everyone = counted(len(found.classifiers), "classifier")
    out.print(f"\nall {everyone} {panels[0].of_all:.3f}; the best alone {panels[0].of_best:.3f}")
    _show_verdict(out, found)


def show_next_items(found: Estimate, items: Sequence[Mapping[str, Any]]) -> None:
    """Print the items that one more vote would tell most on."""
    table = _table(("item", "votes", "label", "certainty", "gain in bits"))
    for row in items:
        cells = (f"{row['votes']}", printable(row["label"]), f"{row['certainty']:.3f}")
        table.add_row(printable(row["item"]), *cells, f"{row['gain']:.3f}")
    out = _console()
    out.print(table)
    _show_verdict(out, found)


def show_comparison(compared: Comparison) -> None:
    """Print every classifier's rates now and how far they moved, and what moved beyond chance."""
    out = _console()
    before, now = (_count(each) for each in compared.items)
    out.print(f"now, and the change with its standard error; {before} items before, {now} now\n")
    cells: dict[str, dict[str, str]] = {}
    whole = []
    for each in compared.changes:
        if each.classifier is None:
            whole.append(f"{printable(each.quantity)} {_change(each)}")
        else:
            cells.setdefault(each.classifier, {})[each.quantity] = _change(each)
    if cells:
        rates = next(iter(cells.values()))
        heads = (rate.replace("balanced_accuracy", "balanced") for rate in rates)
        table = _table(("classifier", *heads))
        for name, row in cells.items():
            table.add_row(printable(name), *row.values())
        out.print(table)
    out.print("\n" + "\n".join(whole))
    for word, names in (("came", compared.came), ("went", compared.went)):
        if names:
            line = f"{word}: {', '.join(map(printable, names))}"
            out.print(
                textwrap.fill(line, out.width, subsequent_indent="  ", break_on_hyphens=False)
            )
    changed = compared.beyond_chance
    out.print(f"\nbeyond chance (at 5 % over all of them): {counted(len(changed), 'figure')}")
    for each in changed:
        out.print(_indented(printable(change_words(each)), out.width))
    if not compared.same_model and None not in compared.dependence:
        words = (str(each) for each in compared.dependence)
        out.print(
            f"the model of shared errors was {', now '.join(words)}: rates may differ by that alone"
        )
    out.print(f"verdict {compared.verdict[0]}, now {compared.verdict[1]}")


def show_drift(found: Drift) -> None:
    """Print every classifier's rates in each period, and which of them changed beyond chance."""
    out = _console()
    items = ", ".join(
        f"{printable(name)} ({_count(number)} items)"
        for name, number in zip(found.periods, found.items, strict=True)
    )
    out.print(textwrap.fill(f"periods: {items}", out.width, subsequent_indent="  ") + "\n")
    table = _table(("classifier", "sensitivity", "specificity", "corrected p"))
    for each in found.classifiers:
        cells = map(_course, each.values.values())
        table.add_row(printable(each.classifier), *cells, _chance(each))
    out.print(table)
    values = _course(found.prevalence.values["prevalence"])
    out.print(f"\nprevalence {values}  {_chance(found.prevalence)}")
    if len(found.periods) > MOST_PERIODS:
        out.print("shown: the first and the last period; --json has them all")
    if found.p_value is not None:
        out.print(f"all rates together: {p_words(found.p_value)}")
    names = ", ".join(map(printable, found.drifted)) or "none"
    line = f"changed beyond chance (at 5 % over all of them): {names}"
    out.print(textwrap.fill(line, out.width, subsequent_indent="  ", break_on_hyphens=False))
    for reason in found.reasons:
        out.print(_indented(printable(reason), out.width))


def _course(values: Sequence[float | None]) -> str:
    """``0.653 0.540 0.764``, one a period; the first and the last where there are many."""
    if len(values) > MOST_PERIODS:
        return f"{_figure(values[0])} … {_figure(values[-1])}"
    return " ".join(map(_figure, values))


def _chance(each: Shift) -> str:
    """``p = .012*``; a star beyond chance."""
    if each.p_corrected is None:
        return "–"
    return f"{p_words(each.p_corrected)}{'*' if each.drifted else ' '}"


def _change(each: Change) -> str:
    """``0.812 +.034±.020*``: now, the change and its standard error; a star beyond chance."""
    if each.now is None or each.difference is None:
        return _figure(each.now)
    error = "" if each.error is None else f"±{_end(each.error)}"
    moved = f"{each.difference + 0.0:+.3f}".replace("0.", ".")
    return f"{_figure(each.now)} {moved}{error}{'*' if each.beyond_chance else ' '}"


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
    held = (f"{name} {_held(found, name, truth)}" for name, truth, _ in rates)
    out.print(f"{_percent(found.level)} intervals that hold the truth: {', '.join(held)}")
    out.print(f"prevalence: true {_figure(true.mean())}, found {_figure(found.prevalence)}")
    out.print(f"labels that are right: {', '.join(right)}")


def _held(found: Estimate, rate: str, truth: NDArray[np.float64]) -> str:
    ends = found.interval(rate)
    inside = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
    return f"{inside.sum()} of {len(truth)}"


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

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, header_style="bold", padding=(0, 0, 0, 1))
    table.add_column(headers[0], overflow="fold", min_width=10)
    for header in headers[1:]:
        table.add_column(header, justify="right", no_wrap=True)
    return table


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _with_interval(row: Mapping[str, float | None], name: str) -> str:
    """``0.812 (.791-.830)``: the estimate and, where there is one, its interval."""
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    if low is None or high is None:
        return _figure(row[name])
    return f"{_figure(row[name])} ({_end(low)}-{_end(high)})"


def _end(value: float) -> str:
    """Three digits at most, so that columns stay narrow: ``.791``, ``1.00``."""
    return f"{value:.3f}".removeprefix("0")[:4]


def _short(value: float) -> str:
    return f"{value:.2f}".removeprefix("0")[:3]


def _percent(share: float) -> str:
    return f"{100 * share:.4g} %"


def _offset(value: float) -> str:
    return f"{round(float(value), 3) + 0.0:+.3f}"  # the sum turns −0 into 0


def _count(value: float) -> str:
    return f"{value:,.15g}"
