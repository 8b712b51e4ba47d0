"""Arguments in, words out: the command line. It has no logic of its own.

Each command reads its arguments, asks the rooms above, and says what they answered. Polars, Rich's
tables and the rest of the heavy parts are imported inside the commands, so that ``--help`` is fast.
"""

from __future__ import annotations

import csv
import json
import os
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import labelfree
from labelfree._errors import LabelfreeError, LabelfreeWarning, OptionsError
from labelfree._terminal import (
    in_shell_words,
    printable,
    show_against_truth,
    show_estimate,
    show_labels,
    show_simulated,
)

BAD_INPUT = 2
INTERRUPTED = 130  # 128 + SIGINT, as shells have it


# --- what goes wrong, in one sentence -----------------------------------------------------------


class _Program(TyperGroup):
    """The commands, with every error of bad input said in one sentence on stderr, exit code 2."""

    def main(self, *args: Any, **options: Any) -> Any:
        if not options.get("standalone_mode", True):
            return super().main(*args, **options)
        try:
            code = super().main(*args, **{**options, "standalone_mode": False})
        except LabelfreeError as error:
            _complain(in_shell_words(str(error)))
            code = BAD_INPUT
        except MemoryError:
            _complain("The votes do not fit into memory; give fewer items at a time.")
            code = BAD_INPUT
        except OSError as error:
            _complain(
                f"The answer cannot be written: {error.strerror}; make room, or send it elsewhere."
            )
            _drop_output()
            code = BAD_INPUT
        except typer.Abort:
            code = INTERRUPTED
        except Exception as error:
            if not hasattr(error, "format_message"):  # Typer's own errors of usage have it
                raise
            _complain(_usage_sentence(error))
            code = BAD_INPUT
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: Any) -> Any:
        with _warnings_as_lines():
            answer = super().invoke(ctx)
            sys.stdout.flush()  # a reader that has gone shows here, where it can still be handled
            return answer


def _usage_sentence(error: Any) -> str:
    sentence = error.format_message()
    if sentence and sentence[-1] not in ".?!":
        sentence += "."
    context = getattr(error, "ctx", None)
    return f"{sentence} See '{context.command_path} --help'." if context and sentence else sentence


def _drop_output() -> None:
    """Send what is left nowhere, so that the interpreter does not fail on it again at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(sentence: str) -> None:
    if sentence:
        typer.echo(f"labelfree: {printable(sentence)}", err=True)


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    said = set()
    with warnings.catch_warnings():
        warnings.simplefilter("always", LabelfreeWarning)
        usual = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            if not issubclass(category, LabelfreeWarning):
                usual(message, category, *where, **more)
            elif str(message) not in said:
                said.add(str(message))
                _complain(f"warning: {in_shell_words(str(message))}")

        warnings.showwarning = show
        yield


# --- arguments ----------------------------------------------------------------------------------


app = typer.Typer(
    cls=_Program,
    name="labelfree",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example:\n\n  labelfree demo",
)

VotesFile = Annotated[
    Path,
    typer.Argument(
        metavar="VOTES",
        help="File of votes: .csv, .tsv, .parquet, .pq, .jsonl or .ndjson. One row an item and one "
        "column a classifier; or the long form, one row a vote.",
        show_default=False,
    ),
]
Method = Annotated[
    str, typer.Option(metavar="NAME", help="How to estimate: map, likelihood or tensor.")
]
Prevalence = Annotated[
    float | None,
    typer.Option(metavar="P", help="Share of positive items, where it is known; between 0 and 1."),
]
Positive = Annotated[
    str | None,
    typer.Option(
        metavar="LABEL",
        help="The positive label. By default the greater of the two: 1 of 0 and 1, yes of no and yes.",
    ),
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        metavar="LABEL",
        help="What stands for a missing vote, beside an empty cell. May be given several times.",
    ),
]
Classifiers = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAMES",
        help="Columns that hold votes, with commas between. By default all but the items' column.",
    ),
]
Item = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column that names the items. By default 'item', where there is one.",
    ),
]
Classifier = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Long form: the column that names the classifiers."),
]
Vote = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Long form: the column that holds the votes.")
]
Prior = Annotated[
    float,
    typer.Option(
        metavar="COUNT",
        help="Method map: pseudo-votes in every cell of every confusion; 0 turns the prior off.",
    ),
]
Vector = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="How the rank-one vector is found: triplets, log-linear or iterated.",
    ),
]
Out = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        metavar="OUT",
        help="File to write, in the format that its ending names.",
        show_default=False,
    ),
]


def _reading(
    missing: list[str] | None, item: str | None, classifier: str | None, vote: str | None
) -> dict[str, Any]:
    """How to read the votes: what was said, and nothing of what was not."""
    said = {
        "missing": _both_kinds(missing or ()),
        "item": item,
        "classifier": classifier,
        "vote": vote,
    }
    return {key: value for key, value in said.items() if value not in (None, ())}


def _both_kinds(texts: Iterable[str]) -> tuple[str | float, ...]:
    """A label on the command line is text; in the votes it may be a number. Match either."""
    labels: list[str | float] = []
    for text in texts:
        labels.append(text)
        if re.fullmatch(r"[+-]?\d+", text):
            labels.append(int(text))
        elif re.fullmatch(r"[+-]?(\d+\.\d*|\.\d+)", text):
            labels.append(float(text))
    return tuple(labels)


def _names(given: list[str] | None) -> list[str] | None:
    """Split at commas; a name that holds a comma stands in double quotes, as in a CSV file."""
    return [name for row in csv.reader(given) for name in row] if given else None


def _positions(groups: list[str] | None, classifiers: int) -> list[list[int]]:
    """Read groups such as "1,2", counted from 1 as the simulated columns are."""
    try:
        read = [[int(place) - 1 for place in group.split(",")] for group in groups or ()]
    except ValueError:
        read = [[-1]]
    if any(not 0 <= place < classifiers for group in read for place in group):
        raise OptionsError(
            f"copies= must hold numbers of classifiers from 1 to {classifiers} with commas between, "
            f"got {' '.join(groups or ())!r}; write for example --copies 1,2."
        )
    return read


# --- commands -----------------------------------------------------------------------------------


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"labelfree {labelfree.__version__}")
        raise typer.Exit


@app.callback()
def _program(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
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
def estimate(
    votes: VotesFile,
    method: Method = "map",
    prevalence: Prevalence = None,
    positive: Positive = None,
    missing: Missing = None,
    classifiers: Classifiers = None,
    item: Item = None,
    classifier: Classifier = None,
    vote: Vote = None,
    prior: Prior = 1.0,
    vector: Vector = "triplets",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the estimate as JSON, for machines.")
    ] = False,
    save: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keep the estimate, for label --estimate."),
    ] = None,
) -> None:
    """Grade the classifiers of a file of votes."""
    found = labelfree.estimate(
        votes,
        method=method,
        prevalence=prevalence,
        positive=positive,
        classifiers=_names(classifiers),
        prior=prior,
        vector=vector,
        **_reading(missing, item, classifier, vote),
    )
    if save is not None:
        found.save(save)
    if as_json:
        typer.echo(json.dumps(found.as_dict(), indent=1, allow_nan=False))
        return
    show_estimate(found)


@app.command(
    epilog="Example:\n\n  labelfree simulate -o votes.csv\n"
    "  labelfree label votes.csv -o labels.csv"
)
def label(
    context: typer.Context,
    votes: VotesFile,
    output: Out,
    rule: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="How to combine the votes: posterior, likelihood, spectral or majority.",
        ),
    ] = "posterior",
    saved: Annotated[
        Path | None,
        typer.Option(
            "--estimate",
            metavar="FILE",
            help="Use an estimate that estimate --save kept. By default these votes are graded first.",
        ),
    ] = None,
    method: Method = "map",
    prevalence: Prevalence = None,
    positive: Positive = None,
    missing: Missing = None,
    classifiers: Classifiers = None,
    item: Item = None,
    classifier: Classifier = None,
    vote: Vote = None,
    prior: Prior = 1.0,
    vector: Vector = "triplets",
) -> None:
    """Label every item by the consensus of its votes."""
    from labelfree._files import kind_of, read_frame, write_frame

    kind_of(output)
    reading = _reading(missing, item, classifier, vote)
    names = _names(classifiers)
    if saved is not None:
        _refuse_grading_options(context)
        found = labelfree.load(saved)
    table = read_frame(votes)
    if saved is None:
        found = labelfree.estimate(
            table,
            method=method,
            prevalence=prevalence,
            positive=positive,
            classifiers=names,
            prior=prior,
            vector=vector,
            **reading,
        )
    labelled = found.label(table, rule=rule, **reading, **({"classifiers": names} if names else {}))
    write_frame(labelled, output)
    show_labels(found, labelled, output)


def _refuse_grading_options(context: typer.Context) -> None:
    """A saved estimate is used as it is; say so rather than drop an option in silence."""
    for name in ("method", "prevalence", "positive", "prior", "vector"):
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise OptionsError(
                f"--{name} does not go with --estimate, which brings its own; leave one of them out."
            )


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
    seed: Annotated[int, typer.Option(help="The same seed gives the same votes.")] = 0,
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
        copies=_positions(copies, classifiers),
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


def main() -> None:
    """Run the command line; the console script ``labelfree``."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a terminal that lacks a letter gets a "?"
            stream.reconfigure(errors="replace")
    app()
