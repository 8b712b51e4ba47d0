"""Commands that ask something of an estimate: check, compare, best, next, report. No logic of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import labelfree
from labelfree._arguments import (
    AsJson,
    Grading,
    Page,
    Reading,
    VotesFile,
    VotesFiles,
    VotesOrEstimate,
    one_of,
    with_options_apart,
)
from labelfree._errors import OptionsError
from labelfree._panel import panels_as_dict
from labelfree._program import MISSED, Program, print_json, working
from labelfree._result import Estimate
from labelfree._terminal import (
    show_check,
    show_comparison,
    show_next_items,
    show_panels,
    show_report,
)

app = typer.Typer(cls=Program)

SAVED = "that estimate --save kept: a file that ends in .json."
Last = Annotated[
    Path,
    typer.Argument(metavar="LAST", help=f"The earlier estimate {SAVED}", show_default=False),
]
Now = Annotated[
    Path,
    typer.Argument(metavar="NOW", help=f"The later estimate {SAVED}", show_default=False),
]


def estimate_of(votes: Path, how: Grading, context: typer.Context) -> Estimate:
    """Read an estimate that was saved, or grade the votes."""
    if votes.suffix != ".json":
        with working(f"grading the classifiers of {votes}"):
            return labelfree.estimate(votes, **how.options())
    refuse_grading_options(context, f"{votes}, an estimate")
    return labelfree.load(votes)


def refuse_grading_options(context: typer.Context, other: str) -> None:
    """A saved estimate is used as it is; say so rather than drop an option in silence."""
    for name in ("positive", "classes", *Grading.own()):
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise OptionsError(
                f"--{name} does not go with {other}, which brings its own; leave one of them out."
            )


@app.command(
    epilog="Example:\n\n  labelfree simulate --seed 1 -o votes.csv\n"
    '  labelfree check votes.csv --require "verdict != unidentified" \\\n'
    '    --require "any.sensitivity >= 0.6"'
)
@with_options_apart
def check(
    context: typer.Context,
    votes: VotesOrEstimate,
    how: Grading,
    require: Annotated[
        list[str],
        typer.Option(
            metavar="REQUIREMENT",
            help='A bound on what is found: "ann.sensitivity >= 0.8", "all.balanced_accuracy > 60%", '
            '"prevalence <= 0.3", "effective number >= 3", "verdict != unidentified". A name with <, > or = '
            "in it goes in quotes of its own. May be given several times.",
            show_default=False,
        ),
    ],
    by: Annotated[
        str,
        typer.Option(
            metavar="WORD",
            help="What is held against a bound: interval takes the end that is nearer to missing it, "
            "estimate the estimate itself.",
            autocompletion=one_of("interval", "estimate"),
        ),
    ] = "interval",
    as_json: AsJson = False,
) -> None:
    """Hold classifiers to requirements: exit code 1 if one is missed."""
    found = estimate_of(votes, how, context)
    checked = found.check(require, by=by)
    if as_json:
        print_json(checked.as_dict())
    else:
        show_check(found, checked)
    if not checked.met:
        raise typer.Exit(MISSED)


@app.command(
    epilog="Example:\n\n  labelfree simulate --seed 1 -o votes.csv\n"
    "  labelfree estimate votes.csv --save last.json\n"
    "  labelfree simulate --seed 2 -o votes.csv\n"
    "  labelfree estimate votes.csv --save now.json\n"
    "  labelfree compare last.json now.json"
)
def compare(last: Last, now: Now, as_json: AsJson = False) -> None:
    """Say what changed from one saved estimate to another.

    The standard error of a difference supposes that the two come from
    different items.
    """
    compared = labelfree.compare(labelfree.load(last), labelfree.load(now))
    if as_json:
        print_json(compared.as_dict())
        return
    show_comparison(compared)


@app.command(
    epilog="Example:\n\n  labelfree simulate --seed 1 -o votes.csv\n  labelfree best votes.csv -k 3"
)
@with_options_apart
def best(
    votes: VotesFile,
    how: Grading,
    size: Annotated[
        int | None,
        typer.Option(
            "--size",
            "-k",
            metavar="K",
            help="How many classifiers to keep. By default the best panel of every size, up to ten.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Choose the few classifiers whose consensus is expected to be best."""
    with working(f"comparing panels of the classifiers of {votes}"):
        found = labelfree.estimate(votes, **how.options())
        sizes = range(1, min(len(found.classifiers), 10) + 1) if size is None else [size]
        panels = [found.best(each) for each in sizes]
    if as_json:
        print_json(panels_as_dict(panels))
    else:
        show_panels(found, panels)


@app.command(
    "next",
    epilog="Example:\n\n  labelfree simulate --seed 1 -o votes.csv\n"
    "  labelfree next votes.csv --count 5",
)
@with_options_apart
def next_items(
    votes: VotesFile,
    how: Grading,
    count: Annotated[
        int, typer.Option("--count", "-n", metavar="N", help="How many items to show.")
    ] = 10,
    as_json: AsJson = False,
) -> None:
    """Show the items on which one more vote would tell most."""
    with working(f"ranking the items of {votes}"):
        found = labelfree.estimate(votes, **how.options())
        items = found.next_items(votes, count)
    if as_json:
        print_json({"format": "labelfree.next", "version": 1, "items": items})
    else:
        show_next_items(found, items)


@app.command(
    epilog="Example:\n\n  labelfree simulate -o votes.csv\n"
    "  labelfree report votes.csv -o report.html"
)
@with_options_apart
def report(context: typer.Context, votes: VotesFiles, output: Page, how: Grading) -> None:
    """Write a page that anyone can open: verdict, tables and charts.

    One HTML file that needs no network. VOTES may also be an estimate that
    estimate --save kept; the page then names no items. Needs the extra
    "report".
    """
    from labelfree.report import check_page

    check_page(output)
    if len(votes) == 1:
        found = estimate_of(votes[0], how, context)
    else:
        with working(f"grading the classifiers of {' '.join(map(str, votes))}"):
            counted = labelfree.tally([str(path) for path in votes], **Reading.options(how))
            found = labelfree.estimate(counted, **how.without_reading())
    with working(f"writing {output}"):
        kept = votes[0].suffix == ".json"
        again = votes[0] if len(votes) == 1 else counted
        found.report(output, votes=None if kept else again, **({} if kept else how.again()))
    show_report(found, output)
