"""What stands behind a command: its options.

Options that several commands share are declared once. What is read here is passed on as Python would
take it; whether it makes sense is for the rooms above to say.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from labelfree._given import (
    both_kinds,
    dependence_of,
    gold_of,
    known_of,
    names_of,
    prevalence_of,
)


def one_of(*words: str) -> Callable[[str], list[str]]:
    """Tell a shell the words that an option knows, for completion."""

    def complete(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return complete


# How --help and the documentation group the options that many commands share.
READING, GRADING = "Reading votes", "Grading"

VotesFile = Annotated[
    Path,
    typer.Argument(
        metavar="VOTES",
        help="File of votes: .csv, .tsv, .parquet, .pq, .jsonl or .ndjson. One row an item and one "
        "column a classifier; or the long form, one row a vote.",
        show_default=False,
    ),
]
VotesOrEstimate = Annotated[
    Path,
    typer.Argument(
        metavar="VOTES",
        help="File of votes, as for estimate; or an estimate that estimate --save kept, a file that ends "
        "in .json.",
        show_default=False,
    ),
]
VotesFiles = Annotated[
    list[Path],
    typer.Argument(
        metavar="VOTES",
        help="File of votes: .csv, .tsv, .parquet, .pq, .jsonl or .ndjson. One row an item and one "
        "column a classifier; or the long form, one row a vote. Or a .tally that tally wrote. "
        "Several files are added up.",
        show_default=False,
    ),
]
Periods = Annotated[
    list[Path],
    typer.Argument(
        metavar="PERIODS",
        help="Two files or more, one a period, the earliest first: a .tally that tally wrote, a file of votes, or "
        "a .json that estimate --save kept.",
        show_default=False,
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
Page = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        metavar="OUT.html",
        help="Page to write: one HTML file.",
        show_default=False,
    ),
]
FLAG = ""  # what stands for the value of an option that has none
AsJson = Annotated[
    bool,
    typer.Option("--json", metavar=FLAG, help="Print JSON and nothing else, for machines."),
]
Positive = Annotated[
    str | None,
    typer.Option(
        metavar="LABEL",
        help="The positive one of two labels. By default the greater: 1 of 0 and 1, yes of no and yes.",
        rich_help_panel=READING,
    ),
]
Classes = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAMES",
        help="All the labels there may be, in order, with commas between; of two, the positive one last. By default "
        "those that the votes hold, in sorted order.",
        rich_help_panel=READING,
    ),
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        metavar="LABEL",
        help="What stands for a missing vote, beside an empty cell. May be given several times.",
        rich_help_panel=READING,
    ),
]
Classifiers = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAMES",
        help="Columns that hold votes, with commas between. By default all but the items' column.",
        rich_help_panel=READING,
    ),
]
Item = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column that names the items. By default 'item', where there is one.",
        rich_help_panel=READING,
    ),
]
Classifier = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Long form: the column that names the classifiers.",
        rich_help_panel=READING,
    ),
]
Vote = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Long form: the column that holds the votes.",
        rich_help_panel=READING,
    ),
]
Duplicates = Annotated[
    str | None,
    typer.Option(
        metavar="WORD",
        help="Long form, where a classifier voted more than once on an item: last keeps the vote that "
        "stands last, drop keeps none of them. By default such votes are refused.",
        rich_help_panel=READING,
        autocompletion=one_of("last", "drop"),
    ),
]
Method = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="How to estimate: map, likelihood or tensor.",
        rich_help_panel=GRADING,
        autocompletion=one_of("map", "likelihood", "tensor"),
    ),
]
Ordered = Annotated[
    bool,
    typer.Option(
        "--ordered",
        metavar=FLAG,
        help="The classes stand in order, as grades do.",
        rich_help_panel=GRADING,
    ),
]
Prevalence = Annotated[
    str | None,
    typer.Option(
        metavar="P",
        help="Share of positive items, where it is known; between 0 and 1. Of more than two classes the share of "
        "each, as low=0.5,mid=0.3,high=0.2.",
        rich_help_panel=GRADING,
    ),
]
Known = Annotated[
    list[str] | None,
    typer.Option(
        metavar="RATE=VALUE",
        help="A rate that is known, as ann.sensitivity=0.9, or its Beta prior, as "
        "ann.specificity=18,2. May be given several times.",
        rich_help_panel=GRADING,
    ),
]
Gold = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN|FILE",
        help="Known labels of some items, drawn at random: a column of the votes, empty elsewhere; or "
        "a file with columns 'item' and 'label'.",
        rich_help_panel=GRADING,
    ),
]
Dependence = Annotated[
    list[str] | None,
    typer.Option(
        metavar="WORD|GROUP",
        help="Shared errors: auto looks for them and models them (the default), test only looks, "
        "ignore does neither; a group as ann,bob is taken to copy one another. Groups may be given "
        "several times.",
        rich_help_panel=GRADING,
        autocompletion=one_of("auto", "test", "ignore"),
    ),
]
Level = Annotated[
    float,
    typer.Option(
        metavar="P", help="Level of the intervals; between 0 and 1.", rich_help_panel=GRADING
    ),
]
Prior = Annotated[
    float,
    typer.Option(
        metavar="COUNT",
        help="Method map: pseudo-votes in every cell of every confusion; 0 turns the prior off.",
        rich_help_panel=GRADING,
    ),
]
Vector = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="How the rank-one vector is found: triplets, log-linear or iterated.",
        rich_help_panel=GRADING,
        autocompletion=one_of("triplets", "log-linear", "iterated"),
    ),
]


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Options by which votes are read, the same for every command that reads them."""

    positive: Positive = None
    classes: Classes = None
    missing: Missing = None
    classifiers: Classifiers = None
    item: Item = None
    classifier: Classifier = None
    vote: Vote = None
    duplicates: Duplicates = None

    def again(self) -> dict[str, Any]:
        """How to read votes for an answer that there is: what was said, and nothing of what was not."""
        said = {
            "missing": both_kinds(self.missing or ()),
            "classifiers": names_of(self.classifiers),
            "item": self.item,
            "classifier": self.classifier,
            "vote": self.vote,
            "duplicates": self.duplicates,
        }
        return {key: value for key, value in said.items() if value not in (None, ())}

    def options(self) -> dict[str, Any]:
        """What Python would be given."""
        return {
            "positive": self.positive,
            "classes": names_of(self.classes),
            **self.again(),
        }


@dataclass(frozen=True, kw_only=True)
class Grading(Reading):
    """Options by which votes are read and graded, the same for every command that grades."""

    method: Method = "map"
    ordered: Ordered = False
    prevalence: Prevalence = None
    known: Known = None
    gold: Gold = None
    dependence: Dependence = None
    level: Level = 0.95
    prior: Prior = 1.0
    vector: Vector = "triplets"

    def without_reading(self) -> dict[str, Any]:
        """The options for grading alone, where votes have been read already."""
        return {name: value for name, value in self.options().items() if name in self.own()}

    @classmethod
    def own(cls) -> list[str]:
        """Names of the options for grading, without those for reading."""
        return [each.name for each in fields(cls) if each.name not in Reading.__dataclass_fields__]

    def options(self) -> dict[str, Any]:
        """What Python would be given."""
        return {
            **super().options(),
            "method": self.method,
            "ordered": self.ordered,
            "prevalence": prevalence_of(self.prevalence),
            "known": known_of(self.known),
            "gold": gold_of(self.gold, self.item),
            "dependence": dependence_of(self.dependence),
            "level": self.level,
            "prior": self.prior,
            "vector": self.vector,
        }


def with_options_apart(command: Callable[..., None]) -> Callable[..., None]:
    """Show Typer the fields of a command's Reading or Grading as options of their own.

    Each field is declared once, above, however many commands have it. The parameter that takes them
    is called ``how``.
    """
    given = inspect.signature(command, eval_str=True).parameters
    group = given["how"].annotation
    types = get_type_hints(group, include_extras=True)
    apart = [
        inspect.Parameter(
            each.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=each.default,
            annotation=types[each.name],
        )
        for each in fields(group)
    ]
    own = [
        each.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for each in given.values()
        if each.name != "how"
    ]

    @wraps(command)
    def run(**said: Any) -> None:
        how = group(**{each.name: said.pop(each.name) for each in apart})
        command(how=how, **said)

    run.__annotations__ = {}  # Typer reads these too; the signature says it all
    run.__signature__ = inspect.Signature([*own, *apart])  # type: ignore[attr-defined]
    return run
