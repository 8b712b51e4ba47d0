"""Requirements such as "judge_a.sensitivity >= 0.8": read, and held against what was found.

A requirement has three parts::

    WHAT SIGN BOUND     judge_a.sensitivity >= 0.8     all.balanced_accuracy > 60 %
                        prevalence <= 0.3              verdict != unidentified

WHAT is a classifier's name, a dot and one of its figures; ``all`` or ``any`` in place of the name; or
a word for the whole. The last dot divides, so that names may hold dots and blanks; a classifier that
is called "all" goes in quotes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from labelfree._errors import OptionsError, listed

FORMAT, VERSION = "labelfree.check", 1
LEVELS = ("unidentified", "caution", "sound")  # of a verdict, from worst to best
VERDICT = "verdict"
EVERY, SOME = "all", "any"  # in place of a classifier's name
AT_LEAST, AT_MOST = (">=", ">"), ("<=", "<")
BY = ("interval", "estimate")
COUNTED = ("votes", "items", "effective_number")  # figures that are no share
EXAMPLE = 'write for example "judge_a.sensitivity >= 0.8"'

# The last sign divides: what stands before it may be a name that holds signs.
PARTS = re.compile(
    r"(?P<what>.+)(?<![<>=!])(?P<sign>>=|<=|==|!=|>|<)(?P<bound>[^<>=!]*)", re.DOTALL
)
QUOTED = re.compile(r"(?P<quote>[\"'])(?P<name>.*)(?P=quote)\s*\.(?P<quantity>[^.]*)", re.DOTALL)


@dataclass(frozen=True)
class Requirement:
    """One requirement, read but not yet held against anything.

    Attributes
    ----------
    text : str
        As it was given.
    classifier : str or None
        Whose figure; None for a figure of the whole, for all and for any.
    scope : {"one", "all", "any", "whole"}
    quantity : str
    sign : {">=", ">", "<=", "<", "==", "!="}
    bound : float or str
        A level of the verdict is a word.
    """

    text: str
    classifier: str | None
    scope: str
    quantity: str
    sign: str
    bound: float | str


@dataclass(frozen=True)
class Outcome:
    """What came of one requirement.

    Attributes
    ----------
    requirement : str
        As it was given.
    met : bool
    classifier : str or None
        Whose figure decided: the worst of ``all``, the best of ``any``.
    quantity : str
    estimate, low, high : float, str or None
        What was found; None where the votes do not tell.
    decides : {"estimate", "low", "high"}
        Which of these was held against the bound.
    """

    requirement: str
    met: bool
    classifier: str | None
    quantity: str
    estimate: float | str | None
    low: float | None
    high: float | None
    decides: str


@dataclass(frozen=True)
class Check:
    """What came of some requirements; true if all of them are met.

    Attributes
    ----------
    by : {"interval", "estimate"}
        What was held against the bounds.
    outcomes : tuple of Outcome
        One a requirement, in their order.
    """

    by: str
    outcomes: tuple[Outcome, ...]

    @property
    def met(self) -> bool:
        """Whether all requirements are met."""
        return all(each.met for each in self.outcomes)

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain values: what ``check --json`` prints."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "met": self.met,
            "by": self.by,
            "outcomes": [asdict(each) for each in self.outcomes],
        }

    def __bool__(self) -> bool:
        return self.met

    def __str__(self) -> str:
        return "\n".join(
            f"{'met   ' if each.met else 'missed'}  {each.requirement}  ({found_words(each)})"
            for each in self.outcomes
        )


@dataclass(frozen=True)
class Figures:
    """What requirements are held against.

    Attributes
    ----------
    rows : sequence of mapping
        One a classifier: its name under "classifier", figures, and their ends as ``…_low`` and ``…_high``.
    whole : mapping
        The same for the figures that are not of one classifier.
    verdict : str
        Its level.
    """

    rows: Sequence[Mapping[str, Any]]
    whole: Mapping[str, Any]
    verdict: str


def check(requirements: str | Iterable[str], figures: Figures, *, by: Any = "interval") -> Check:
    """Hold requirements against figures.

    Parameters
    ----------
    requirements : str or iterable of str
    figures : Figures
    by : {"interval", "estimate"}
        What decides: the end of the interval that is nearer to missing the bound (the lower one for
        at least, the upper one for at most), or the estimate itself.

    Returns
    -------
    Check
    """
    if not isinstance(by, str) or by not in BY:
        raise OptionsError(f"by= must be {' or '.join(map(repr, BY))}, got {by!r}.")
    texts = [requirements] if isinstance(requirements, str) else list(requirements)
    if not texts:
        raise OptionsError(f"Expected at least one requirement, got none; {EXAMPLE}.")
    return Check(by, tuple(_held(parse(text), figures, by) for text in texts))


# --- reading ------------------------------------------------------------------------------------


def parse(text: Any) -> Requirement:
    """Read one requirement."""
    parts = PARTS.fullmatch(text) if isinstance(text, str) else None
    if parts is None:
        raise OptionsError(
            f"The requirement {text!r} must hold a figure, one of the signs >= > <= < == != and a bound; {EXAMPLE}."
        )
    scope, classifier, quantity = _what(parts["what"].strip(), text)
    bound = _bound(parts["bound"].strip(), quantity, parts["sign"], text)
    return Requirement(text, classifier, scope, quantity, parts["sign"], bound)


def _what(words: str, text: str) -> tuple[str, str | None, str]:
    quoted = QUOTED.fullmatch(words)
    if quoted:
        return "one", quoted["name"], _quantity(quoted["quantity"])
    name, dot, quantity = words.rpartition(".")
    if not dot:
        return "whole", None, _quantity(words)
    if not name.strip() or not quantity.strip():
        raise OptionsError(
            f"The requirement {text!r} must name a classifier, a dot and a figure; {EXAMPLE}."
        )
    name = name.strip()
    if name in (EVERY, SOME):
        return name, None, _quantity(quantity)
    return "one", name, _quantity(quantity)


def _quantity(words: str) -> str:
    return re.sub(r"[\s-]+", "_", words.strip())


def _bound(words: str, quantity: str, sign: str, text: str) -> float | str:
    if quantity == VERDICT:
        if words not in LEVELS:
            raise OptionsError(
                f"The requirement {text!r} must compare the verdict with {listed(LEVELS)}, got {words!r}."
            )
        return words
    if sign in ("==", "!="):
        raise OptionsError(
            f"The requirement {text!r} must compare a number by >=, >, <= or <, got {sign}; only the verdict takes {sign}."
        )
    share = words.endswith("%")
    try:
        bound = float(words.removesuffix("%")) / (100.0 if share else 1.0)
    except ValueError:
        bound = math.nan
    if not math.isfinite(bound):
        raise OptionsError(
            f"The requirement {text!r} must end in a number, got {words!r}; {EXAMPLE}."
        )
    if quantity not in COUNTED and not 0 <= bound <= 1:
        raise OptionsError(
            f"The requirement {text!r} must have a bound between 0 and 1, got {words}; write 0.8 or 80%."
        )
    return bound


# --- holding ------------------------------------------------------------------------------------


def _held(asked: Requirement, figures: Figures, by: str) -> Outcome:
    if asked.quantity == VERDICT and asked.scope == "whole":
        place, bound = LEVELS.index(figures.verdict), LEVELS.index(str(asked.bound))
        met = _compare(place, asked.sign, bound)
        return Outcome(asked.text, met, None, VERDICT, figures.verdict, None, None, "estimate")
    if asked.scope == "whole":
        known = asked.quantity in _figures_of(figures.whole)
        return _of_row(asked, figures.whole, by, known=known)
    known = all(asked.quantity in _figures_of(row) for row in figures.rows)
    rows = figures.rows
    if asked.scope == "one":
        rows = [row for row in rows if row["classifier"] == asked.classifier]
        if not rows:
            names = [row["classifier"] for row in figures.rows]
            raise OptionsError(
                f"The requirement {asked.text!r} names the classifier {asked.classifier!r}; "
                f"expected one of {listed(map(repr, names))}, or all, or any."
            )
    outcomes = [_of_row(asked, row, by, known=known) for row in rows]
    # Of all, the one nearest to missing decides; of any, the one farthest from it.
    return (max if asked.scope == SOME else min)(outcomes, key=lambda each: _margin(each, asked))


def _figures_of(row: Mapping[str, Any]) -> list[str]:
    ends = ("_low", "_high")
    return [name for name in row if name not in ("classifier", "note") and not name.endswith(ends)]


def _of_row(asked: Requirement, row: Mapping[str, Any], by: str, *, known: bool) -> Outcome:
    if not known:
        kind = "the whole" if asked.scope == "whole" else "a classifier"
        words = [*_figures_of(row), *([VERDICT] if asked.scope == "whole" else [])]
        raise OptionsError(
            f"The requirement {asked.text!r} asks for {asked.quantity!r}; expected a figure of {kind}: {listed(words, 12)}."
        )
    found = {end: row.get(f"{asked.quantity}_{end}") for end in ("low", "high")}
    found["estimate"] = row[asked.quantity]
    has_ends = f"{asked.quantity}_low" in row
    decides = "estimate"
    if by == "interval" and has_ends:
        decides = "low" if asked.sign in AT_LEAST else "high"
    figure = found[decides]
    met = figure is not None and _compare(figure, asked.sign, float(asked.bound))
    return Outcome(asked.text, met, row.get("classifier"), asked.quantity, decides=decides, **found)


def _margin(outcome: Outcome, asked: Requirement) -> float:
    """By how much a figure is on the right side of the bound."""
    figure = getattr(outcome, outcome.decides)
    if figure is None:
        return -math.inf
    margin = float(figure) - float(asked.bound)
    return -margin if asked.sign in AT_MOST else margin


def _compare(figure: float, sign: str, bound: float) -> bool:
    return {
        ">=": figure >= bound,
        ">": figure > bound,
        "<=": figure <= bound,
        "<": figure < bound,
        "==": figure == bound,
        "!=": figure != bound,
    }[sign]


def found_words(outcome: Outcome) -> str:
    """Say what was found, and which end of it decided."""
    if outcome.quantity == VERDICT:
        return f"verdict {outcome.estimate}"
    if outcome.estimate is None:
        return "the votes do not tell"
    name = "" if outcome.classifier is None else f"{outcome.classifier}: "
    figure = getattr(outcome, outcome.decides)
    if outcome.decides == "estimate":
        return f"{name}{float(outcome.estimate):.4g}"
    if figure is None:
        return f"{name}{float(outcome.estimate):.3f}, without an interval"
    end = {"low": "at least", "high": "at most"}[outcome.decides]
    return f"{name}{float(outcome.estimate):.3f}, {end} {figure:.3f}"
