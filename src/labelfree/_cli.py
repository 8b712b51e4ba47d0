"""Arguments in, words out: the command line. It has no logic of its own.

Each command reads its arguments, asks the rooms above, and says what they answered. Polars, Rich's
tables and the rest of the heavy parts are imported inside the commands, so that ``--help`` is fast.
"""

from __future__ import annotations

import sys
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated

import typer

import labelfree
from labelfree._arguments import (
    FLAG,
    AsJson,
    Grading,
    Level,
    Out,
    Reading,
    VotesFile,
    VotesFiles,
    one_of,
    with_options_apart,
)
from labelfree._given import numbers_of, positions_of
from labelfree._periods import app as periods
from labelfree._program import Program, import_ahead, print_json, working
from labelfree._questions import app as questions
from labelfree._questions import refuse_grading_options
from labelfree._terminal import (
    show_against_truth,
    show_by_prevalence,
    show_confusion,
    show_estimate,
    show_labels,
    show_plan,
    show_simulated,
)

app = typer.Typer(
    cls=Program,
    name="labelfree",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example:\n\n  labelfree demo",
)


# --- commands -----------------------------------------------------------------------------------


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"labelfree {labelfree.__version__}")
        raise typer.Exit


@app.callback()
def _program(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            metavar=FLAG,
            callback=_show_version,
            is_eager=True,
            help="Show the version.",
        ),
    ] = False,
) -> None:
    """Grade classifiers without labels.

    Votes of three or more classifiers, judges, raters or tests go in. Each
    one's sensitivity and specificity, the prevalence, a label for every item,
    and a verdict on whether to trust them come out.
    """


@app.command(
    epilog="Example:\n\n  labelfree simulate -o votes.csv\n  labelfree estimate votes.csv\n"
    "  labelfree estimate votes.csv --json > estimate.json"
)
@with_options_apart
def estimate(
    votes: VotesFiles,
    how: Grading,
    by_prevalence: Annotated[
        bool,
        typer.Option(
            "--by-prevalence",
            metavar=FLAG,
            help="Show what each rate would be at other prevalences, too.",
        ),
    ] = False,
    confusion: Annotated[
        bool,
        typer.Option(
            "--confusion",
            metavar=FLAG,
            help="Show each classifier's confusion matrix, too; --json always has them.",
        ),
    ] = False,
    as_json: AsJson = False,
    save: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keep the estimate, for label --estimate."),
    ] = None,
) -> None:
    """Grade the classifiers of a file of votes."""
    from labelfree._tally import tally_files

    import_ahead()
    with working(f"grading the classifiers of {' '.join(map(str, votes))}"):
        if len(votes) == 1:
            found = labelfree.estimate(votes[0], **how.options())
        else:
            counted = tally_files(votes, **Reading.options(how))
            found = labelfree.estimate(counted, **how.without_reading())
    if save is not None:
        found.save(save)
    known_rates = found.verdict.level != "unidentified"
    curve = found.by_prevalence() if by_prevalence and known_rates else None
    if as_json:
        print_json(found.as_dict() | ({"by_prevalence": curve} if by_prevalence else {}))
        return
    show_estimate(found)
    if by_prevalence:
        show_by_prevalence(found)
    if confusion:
        show_confusion(found)


@app.command(
    epilog="Example:\n\n  labelfree simulate -o votes.csv\n"
    "  labelfree label votes.csv -o labels.csv"
)
@with_options_apart
def label(
    context: typer.Context,
    votes: VotesFile,
    output: Out,
    how: Grading,
    rule: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="How to combine the votes: posterior, likelihood, spectral or majority.",
            autocompletion=one_of("posterior", "likelihood", "spectral", "majority"),
        ),
    ] = "posterior",
    loss: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="What a wrong label costs: zero-one, or absolute, the steps to the true one of ordered classes.",
            autocompletion=one_of("zero-one", "absolute"),
        ),
    ] = "zero-one",
    saved: Annotated[
        Path | None,
        typer.Option(
            "--estimate",
            metavar="FILE",
            help="Use an estimate that estimate --save kept. By default these votes are graded first.",
        ),
    ] = None,
) -> None:
    """Label every item by the consensus of its votes."""
    from labelfree._files import kind_of

    kind_of(output)
    if saved is not None:
        refuse_grading_options(context, "--estimate")
        found = labelfree.load(saved)
    with working(f"labelling the items of {votes}"):
        if saved is None:
            found = labelfree.estimate(votes, **how.options())
        labelled = found.label_file(votes, output, rule=rule, loss=loss, **how.again())
    show_labels(found, labelled, output)


@app.command(
    epilog="Example:\n\n  labelfree simulate --items 2000 --classifiers 8 --copies 1,2 -o votes.csv"
)
def simulate(
    output: Out,
    items: Annotated[int, typer.Option(metavar="N", help="Number of items.")] = 1000,
    classifiers: Annotated[int, typer.Option(metavar="M", help="Number of classifiers.")] = 10,
    prevalence: Annotated[float, typer.Option(metavar="P", help="Share of positive items.")] = 0.5,
    missing: Annotated[
        float, typer.Option(metavar="P", help="Chance that a vote is missing.")
    ] = 0.0,
    copies: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GROUP",
            help="Classifiers that copy the first of them, such as 1,2. May be given several times.",
        ),
    ] = None,
    copying: Annotated[
        float, typer.Option(metavar="P", help="Chance that a copying classifier copies.")
    ] = 1.0,
    seed: Annotated[int, typer.Option(metavar="N", help="The same seed gives the same votes.")] = 0,
) -> None:
    """Draw votes from random known rates, and keep the truth beside them.

    Sensitivities and specificities lie between 0.5 and 0.8. The true labels
    go into a second file: votes.truth.csv beside votes.csv.
    """
    import polars as pl

    from labelfree._files import kind_of, write_frame

    kind_of(output)
    drawn = labelfree.simulate.votes(
        items,
        classifiers=classifiers,
        prevalence=prevalence,
        missing=missing,
        copies=positions_of(copies, classifiers),
        copying=copying,
        seed=seed,
    )
    names = [f"classifier_{number}" for number in range(1, classifiers + 1)]
    item = pl.Series("item", range(1, items + 1))
    votes = pl.DataFrame(drawn.votes, schema=names).with_columns(
        pl.all().replace(labelfree.simulate.MISSING, None)
    )
    truth = output.with_name(f"{output.stem}.truth{output.suffix}")
    write_frame(votes.insert_column(0, item), output)
    write_frame(pl.DataFrame([item, pl.Series("label", drawn.truth)]), truth)
    show_simulated(names, drawn, output, truth)


@app.command(
    epilog="Example:\n\n  labelfree plan --classifiers 5 --sensitivity 0.8 --specificity 0.9 \\\n"
    "    --prevalence 0.3"
)
def plan(
    classifiers: Annotated[
        int | None,
        typer.Option(
            metavar="M", help="Number of classifiers; by default as many as there are rates."
        ),
    ] = None,
    sensitivity: Annotated[
        str,
        typer.Option(
            metavar="P", help="Expected sensitivity: of all, or of each with commas between."
        ),
    ] = "0.75",
    specificity: Annotated[
        str, typer.Option(metavar="P", help="Expected specificity, in the same way.")
    ] = "0.75",
    prevalence: Annotated[
        float, typer.Option(metavar="P", help="Expected share of positive items.")
    ] = 0.5,
    width: Annotated[
        float, typer.Option(metavar="W", help="Wanted width of the intervals, end to end.")
    ] = 0.1,
    level: Level = 0.95,
    missing: Annotated[
        float, typer.Option(metavar="P", help="Share of votes expected to be missing.")
    ] = 0.0,
    as_json: AsJson = False,
) -> None:
    """Say how many items, or gold labels, make the intervals narrow enough.

    Supposes classifiers that err independently. Where they share errors, no
    number of unlabelled items is enough.
    """
    planned = labelfree.plan(
        classifiers,
        sensitivity=numbers_of(sensitivity, "sensitivity"),
        specificity=numbers_of(specificity, "specificity"),
        prevalence=prevalence,
        width=width,
        level=level,
        missing=missing,
    )
    if as_json:
        print_json(planned.as_dict())
        return
    show_plan(planned)


@app.command(epilog="Example:\n\n  labelfree demo")
def demo() -> None:
    """Grade ten classifiers of handwritten digits, and compare with the truth."""
    from importlib.resources import as_file, files

    from labelfree._files import read_frame

    with as_file(files("labelfree") / "example") as folder:
        votes, truth = (read_frame(folder / name) for name in ("digits.csv", "digits.truth.csv"))
    found = labelfree.estimate(votes)
    typer.echo(
        "Ten classifiers say of each handwritten digit whether it is 0-4 or 5-9.\n"
        "Their votes are graded without the right answers.\n"
    )
    show_estimate(found)
    positive = found.classes[-1]
    rules = {"consensus": "posterior", "majority vote": "majority"}
    show_against_truth(
        found,
        voted=(votes.select(found.classifiers) == positive).to_numpy(),
        true=(truth["label"] == positive).to_numpy(),
        labelled={
            words: (found.label(votes, rule=rule)["label"] == positive).to_numpy()
            for words, rule in rules.items()
        },
    )


app.add_typer(periods)
app.add_typer(questions)  # their commands stand beside those above


def main() -> None:
    """Run the command line; the console script ``labelfree``."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a terminal that lacks a letter gets a "?"
            stream.reconfigure(errors="replace")
    app()
