"""Commands on tallies of periods: tally, drift. No logic of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from labelfree._arguments import AsJson, Periods, Reading, VotesFiles, with_options_apart
from labelfree._program import Program, print_json, working
from labelfree._terminal import show_drift, show_tally

app = typer.Typer(cls=Program)


@app.command(
    epilog="Example:\n\n  labelfree simulate --seed 1 -o monday.csv\n"
    "  labelfree simulate --seed 2 -o tuesday.csv\n"
    "  labelfree tally monday.csv -o month.tally\n"
    "  labelfree tally month.tally tuesday.csv -o month.tally\n"
    "  labelfree estimate month.tally"
)
@with_options_apart
def tally(
    votes: VotesFiles,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="File to write; its name ends in .tally.",
            show_default=False,
        ),
    ],
    how: Reading,
    as_json: AsJson = False,
) -> None:
    """Count votes into a tally, which stands for them in every estimate.

    Several files are added up: votes, tallies, or both.
    """
    from labelfree._tally import tally_files
    from labelfree._tally_file import check_name

    check_name(output)
    with working(f"counting the votes of {len(votes)} files"):
        counted = tally_files(votes, whole=True, **how.options())
        counted.save(output)
    if as_json:
        print_json(counted.as_dict())
        return
    show_tally(counted, output)


@app.command(
    epilog="Example:\n\n  labelfree simulate --items 5000 --seed 1 -o may.csv\n"
    "  labelfree simulate --items 5000 --seed 2 -o june.csv\n"
    "  labelfree drift may.csv june.csv"
)
@with_options_apart
def drift(periods: Periods, how: Reading, as_json: AsJson = False) -> None:
    """Say whether classifiers' rates changed between periods.

    One file a period, the earliest first: a tally, votes, or an estimate that
    estimate --save kept. No item stands in two of them.
    """
    from labelfree._drift import drift_of_files

    with working(f"grading the classifiers of {len(periods)} periods"):
        found = drift_of_files(periods, **how.options())
    if as_json:
        print_json(found.as_dict())
        return
    show_drift(found)
