"""A rule -> columns added to a table that lives in an engine, which stays there and stays lazy.

The rule is linear in the votes, so it is one expression: a case for each vote, their sum, and a comparison. Sums
and cases are laid out as balanced trees, as engines take only so many nested expressions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from labelfree._consensus import MOST_EXPONENT, TIE, Rule, Together
from labelfree._engines import EngineTable, balanced, is_vote
from labelfree._errors import VotesError
from labelfree._frames import ANSWER_COLUMNS, check_free, probability_column
from labelfree._labels import Label

MEDIAN = 0.5


def answered(
    table: EngineTable,
    names: Sequence[str],
    classes: Sequence[Label],
    label_by: Rule | None,
    probability_by: Rule | None,
) -> Any:
    """Add the answers of rules to a wide table that lives in an engine.

    Parameters
    ----------
    table : EngineTable
    names : sequence of str
        Its columns that hold votes, in the order of the rules.
    classes : sequence of labels
    label_by, probability_by : Rule, optional

    Returns
    -------
    a table of the caller's own kind
        Lazy, with ``label`` and ``probability`` added: of two classes that of the positive one, of more that of the
        label; or, without labels, a column for each class. A vote that is none of the classes counts as missing.
    """
    probability = ANSWER_COLUMNS[1]
    each = label_by is None and len(classes) > 2
    shown = [probability_column(label) for label in classes] if each else [probability]
    added = [] if label_by is None else [ANSWER_COLUMNS[0]]
    added += [] if probability_by is None else shown
    kept = table.names[: table.shown]
    check_free(kept, added)
    own = [nw.col(f"c{place}") for place in range(len(kept))]
    values = classes if table.shown is None else range(len(classes))
    frame, scored = table.frame, dict[int, list[nw.Expr]]()
    answers = []
    for rule in (label_by, probability_by):
        if rule is not None and id(rule) not in scored:
            frame, scored[id(rule)] = _scored(frame, table, names, values, rule, len(scored))
    if label_by is not None:
        chosen = scored[id(label_by)]
        literals = [_literal(table, names, label) for label in classes]
        answers.append(_picked(chosen, literals, absolute=label_by.absolute))
    if probability_by is not None:
        shares = _shares(scored[id(probability_by)])
        if label_by is not None and len(classes) > 2:
            shares = [_picked(scored[id(label_by)], shares, absolute=label_by.absolute)]
        answers += shares
    named = [answer.alias(name) for answer, name in zip(answers, added, strict=True)]
    return table.back(frame.select(*own, *named), [*kept, *added])


# --- scores -----------------------------------------------------------------------------------


def _scored(
    frame: nw.LazyFrame[Any],
    table: EngineTable,
    names: Sequence[str],
    classes: Sequence[Label],
    rule: Rule,
    number: int,
) -> tuple[nw.LazyFrame[Any], list[nw.Expr]]:
    """Add columns with the scores of a rule; of two classes, one column with the log-odds."""
    votes = [
        [is_vote(table.column(name), table.kind(name), label) for label in classes]
        for name in names
    ]
    weights, intercept = rule.weights, rule.intercept
    tables = [group.table for group in rule.together]
    if len(classes) == 2:  # the second score less the first
        weights, intercept = weights[:, :, 1:] - weights[:, :, :1], intercept[1:] - intercept[:1]
        tables = [each[:, 1:] - each[:, :1] for each in tables]
    frame, places = _placed(frame, rule.together, votes, number)
    scores = []
    for score in range(len(intercept)):
        terms = [nw.lit(float(intercept[score]))]
        terms += [_term(vote, own[:, score]) for vote, own in zip(votes, weights, strict=True)]
        terms += [
            _looked_up(place, each[:, score]) for place, each in zip(places, tables, strict=True)
        ]
        scores.append(balanced(terms).alias(f"s{number}_{score}"))
    frame = frame.with_columns(*scores)
    found = [nw.col(f"s{number}_{score}") for score in range(len(scores))]
    if rule.limits is not None:
        (odds,) = found
        found = [_held(odds, *rule.limits)]
    return frame, found


def _term(votes: Sequence[nw.Expr | None], weights: Any) -> nw.Expr:
    """What one classifier adds: the weight of its vote, and nothing where it is missing."""
    score = nw.lit(0.0)
    for vote, weight in zip(votes, weights.tolist(), strict=True):
        if vote is not None and weight != 0.0:
            score = nw.when(vote).then(nw.lit(weight)).otherwise(score)
    return score


def _placed(
    frame: nw.LazyFrame[Any],
    groups: Sequence[Together],
    votes: Sequence[Sequence[nw.Expr | None]],
    number: int,
) -> tuple[nw.LazyFrame[Any], list[nw.Expr]]:
    """Add a column for each group with the place of its joint vote in the group's table."""
    names, columns = [], []
    for count, group in enumerate(groups):
        digits = [
            _term(votes[member], np.array([1.0, 2.0]) * 3**position)
            for position, member in enumerate(group.members)
            if member >= 0
        ]
        names.append(f"g{number}_{count}")
        columns.append(balanced([nw.lit(0.0), *digits]).alias(names[-1]))
    return (frame.with_columns(*columns) if columns else frame), list(map(nw.col, names))


def _looked_up(place: nw.Expr, values: Any) -> nw.Expr:
    """Look a place up in a table, by halves."""

    def within(start: int, stop: int) -> nw.Expr:
        if stop - start == 1:
            return nw.lit(float(values[start]))
        middle = (start + stop) // 2
        return (
            nw.when(place < middle - 0.5)
            .then(within(start, middle))
            .otherwise(within(middle, stop))
        )

    return within(0, len(values))


def _held(value: nw.Expr, low: float, high: float) -> nw.Expr:
    above = nw.when(value > high).then(nw.lit(high)).otherwise(value)
    return nw.when(value < low).then(nw.lit(low)).otherwise(above)


# --- answers ----------------------------------------------------------------------------------


def _picked(scores: list[nw.Expr], values: list[nw.Expr], *, absolute: bool) -> nw.Expr:
    """Pick the value of the best score, of several that tie the last; or that of the median class."""
    if len(values) == 2:
        return nw.when(scores[0] >= -TIE).then(values[1]).otherwise(values[0])
    picked = values[0]
    if absolute:
        below, shares = nw.lit(0.0), _shares(scores)
        for share, value in zip(shares[:-1], values[1:], strict=True):
            below = below + share
            picked = nw.when(below <= MEDIAN + TIE).then(value).otherwise(picked)
        return picked
    best = balanced(scores, lambda one, two: nw.when(one > two).then(one).otherwise(two))
    for score, value in zip(scores[1:], values[1:], strict=True):
        picked = nw.when(score >= best - TIE).then(value).otherwise(picked)
    return picked


def _literal(table: EngineTable, names: Sequence[str], label: Label) -> nw.Expr:
    """Write a label as a literal, in the type of the votes where they have one and hold it."""
    if isinstance(label, bytes):
        raise VotesError(
            f"Labels that are bytes ({label!r}) cannot be written into a {table.engine} table; "
            "turn the votes into text, or label them in memory."
        )
    kinds = {table.kind(name) for name in names}
    kind = kinds.pop() if len(kinds) == 1 else None
    if kind is None or isinstance(label, bool | str) or not (kind.is_integer() or kind.is_float()):
        return nw.lit(label)
    return nw.lit(int(label) if kind.is_integer() else float(label), dtype=kind)


def _shares(scores: list[nw.Expr]) -> list[nw.Expr]:
    """Probability of the positive one of two classes, from the log-odds; of more, of every class."""
    if len(scores) == 1:
        (odds,) = scores
        return [1.0 / (1.0 + _power(0.0 - odds))]
    return [
        1.0
        / balanced(
            [nw.lit(1.0)]
            + [_power(other - score) for place, other in enumerate(scores) if place != code]
        )
        for code, score in enumerate(scores)
    ]


def _power(exponent: nw.Expr) -> nw.Expr:
    return _held(exponent, -MOST_EXPONENT, MOST_EXPONENT).exp()
