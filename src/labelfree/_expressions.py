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
from labelfree._frames import ANSWER_COLUMNS, check_free
from labelfree._labels import Label


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
        Lazy, with ``label`` and ``probability`` added. A vote that is none of the classes counts as missing.
    """
    added = [
        name
        for name, rule in zip(ANSWER_COLUMNS, (label_by, probability_by), strict=True)
        if rule is not None
    ]
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
        answers.append(_label(table, names, classes, scored[id(label_by)]).alias(ANSWER_COLUMNS[0]))
    if probability_by is not None:
        answers.append(_probability(scored[id(probability_by)]).alias(ANSWER_COLUMNS[1]))
    return table.back(frame.select(*own, *answers), [*kept, *added])


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


def _label(
    table: EngineTable, names: Sequence[str], classes: Sequence[Label], scores: list[nw.Expr]
) -> nw.Expr:
    """Return the label of the best score; of several that tie, the last."""
    literals = [_literal(table, names, label) for label in classes]
    if len(classes) == 2:
        return nw.when(scores[0] >= -TIE).then(literals[1]).otherwise(literals[0])
    best = balanced(scores, lambda one, two: nw.when(one > two).then(one).otherwise(two))
    label = literals[0]
    for score, literal in zip(scores[1:], literals[1:], strict=True):
        label = nw.when(score >= best - TIE).then(literal).otherwise(label)
    return label


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


def _probability(scores: list[nw.Expr]) -> nw.Expr:
    """Probability of the positive class, from the log-odds."""
    (odds,) = scores
    return 1.0 / (1.0 + (0.0 - _held(odds, -MOST_EXPONENT, MOST_EXPONENT)).exp())
