"""The walk of K classes, or of a crowd of two, through the numerical rooms, and what the verdict is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelfree._choice import DIFFICULTY, INDEPENDENT, PREVALENCES, Choice, GoldItems
from labelfree._consensus import posterior_rule
from labelfree._dependence import Alarm
from labelfree._difficulty import by_prevalence
from labelfree._evidence import UNLIKELY
from labelfree._intervals import Spread
from labelfree._many_gold import ManyGold, many_gold
from labelfree._many_intervals import blockwise, own_blocks, spread_of_classes
from labelfree._many_verdict import (
    look_at_classes,
    look_at_parts,
    look_at_shared_errors,
    look_at_unanimous,
    look_at_widths,
    look_for_agreement,
    pair_alarm,
    worth,
)
from labelfree._multiclass import MOST_CLASSES, ManyClasses, many_classes, own_accuracy_told
from labelfree._options import MOST_TWO_CLASSES, is_word
from labelfree._products import SAMPLED, Blocks
from labelfree._shared_prior import label_counts
from labelfree._tally import Tally
from labelfree._verdict import Findings, look_at_gold_met, look_at_search
from labelfree._walked import Walked

Array = NDArray[np.float64]
Row = tuple[int, int]

FEW_VOTED = 0.5  # share of all possible votes below which the classifiers are a crowd
MOST_BLOCKWISE = 50_000_000  # numbers in the information of every classifier by itself


def is_for_many(counted: Tally, method: str, groups: Sequence[Sequence[int]]) -> bool:
    """Whether these votes take this walk: more than two classes, or a crowd, of which few vote on each item.

    The covariances of pairs that hardly met tell little; the prior that all classifiers share does
    better there, and faster (`benchmarks/consensus_choice.py`). What only the other walk can do,
    it does: methods of moments, and groups that the user names.
    """
    if len(counted.classes) > 2 or len(counted.classifiers) > MOST_TWO_CLASSES:
        return True
    return method == "map" and not groups and _share_voted(counted) < FEW_VOTED


def _share_voted(counted: Tally) -> float:
    """Share of all possible votes that were given, judged by an even spread of the patterns."""
    part = counted.thinned(SAMPLED)
    codes: Any = part.codes()
    voted = codes >= 0 if isinstance(codes, np.ndarray) else codes != 0
    shares = (voted.T @ part.counts) / part.counts.sum()
    return float(shares.mean())


def walk_many(
    findings: Findings,
    counted: Tally,
    *,
    method: str,
    ordered: bool,
    prior: float,
    class_probabilities: Array | None,
    fixed: Mapping[Row, Array],
    believed: Mapping[Row, Array],
    gold: GoldItems | None,
    dependence: Any,
    level: float,
) -> Walked:
    """Go from the tally to the answer, and tell the verdict what was noticed."""
    blocks = Blocks(counted)
    votes = label_counts(blocks)
    given, constant = votes.sum(axis=1), (votes > 0).sum(axis=1) == 1
    look_for_agreement(findings, blocks, votes, counted.classifiers)
    if findings.fatal:
        return Walked(None, None, given, constant, converged=False)
    exact = not np.isfinite(counted.sample_size)
    found = many_classes(
        blocks,
        method=method,
        ordered=ordered,
        pseudo_count=0.0 if exact else prior,
        class_probabilities=class_probabilities,
        fixed=fixed,
        believed=believed,
    )
    asked = not is_word(dependence, "ignore")
    tested = pair_alarm(blocks, found.model, found.posterior) if asked else _untested()
    effective = worth(tested, found.model, blocks)
    choice = _choice(blocks, found, method, effective)
    if gold is not None:
        choice = _checked_by_gold(findings, blocks, found, choice, tested, gold)
    if len(counted.classes) == 2:
        choice = _as_two(blocks, choice)
    converged = found.converged
    look_at_search(findings, converged=converged)
    if gold is None or not tested.raised:
        look_at_shared_errors(findings, tested, counted.classifiers, effective, asked=asked)
    missed = 0.0 if method == "map" else found.missed  # the posterior mode does not rest on it
    look_at_classes(findings, choice.model, votes, counted.classes, missed)
    look_at_parts(findings, blocks)
    look_at_unanimous(findings, choice.rule, votes, counted.classes)
    _look_at_widths(findings, choice, given, method, level)
    return Walked(choice, tested, given, constant, converged, missed=found.missed)


def _untested() -> Alarm:
    return Alarm(testable=False, p_value=1.0, residuals=np.zeros((0, 0)), pair=(0, 1))


def _choice(blocks: Blocks, found: ManyClasses, method: str, effective: float) -> Choice:
    return Choice(
        INDEPENDENT,
        found.model,
        _spread(blocks, found) if method == "map" else None,
        posterior_rule(found.model),
        effective,
        (),
        found.converged,
        1.0,
        None,
    )


def _spread(blocks: Blocks, found: ManyClasses) -> Spread | None:
    """Intervals from all logits together, or, where these are too many, from each classifier's own."""
    m, classes, _ = found.model.confusion.shape
    if found.covariance is not None:
        return spread_of_classes(found.model, *own_blocks(found.covariance, found.model))
    if classes > MOST_CLASSES or m * (classes * (classes - 1)) ** 2 > MOST_BLOCKWISE:
        return None
    told_twice = None if found.pool is None else own_accuracy_told(found.pool)
    return spread_of_classes(found.model, *blockwise(blocks, found.model, found.prior, told_twice))


def _checked_by_gold(
    findings: Findings,
    blocks: Blocks,
    found: ManyClasses,
    choice: Choice,
    tested: Alarm,
    gold: GoldItems,
) -> Choice:
    """Let gold labels calibrate where errors are shared; where they are not, the votes tell more."""
    slope = choice.effective_number / len(found.model.confusion)
    checked = many_gold(blocks, found.model, found.prior, slope, *gold)
    _look_at_gold(findings, checked, len(gold[1]), tested)
    if not tested.raised:
        return replace(choice, gold=len(gold[1]))
    return replace(
        choice,
        dependence=DIFFICULTY,
        model=checked.model,
        spread=checked.spread,
        rule=checked.rule,
        slope=checked.slope,
        gold=len(gold[1]),
    )


def _look_at_gold(findings: Findings, checked: ManyGold, labels: int, tested: Alarm) -> None:
    """Say what the gold did; and when it is not what the answer says of its items."""
    from scipy.special import bdtr

    share = min(checked.expected / labels, 1.0 - 1e-9)
    if bdtr(checked.hits, labels, share) < UNLIKELY:
        look_at_gold_met(findings, labels, int(checked.hits), checked.expected)
    if tested.raised:
        from labelfree._verdict import look_at_gold, look_at_model

        look_at_model(findings, DIFFICULTY, (), np.inf, 0, gold=labels)
        look_at_gold(findings, labels, turned=False)


def _as_two(blocks: Blocks, choice: Choice) -> Choice:
    """Name what two classes are asked for, and add the rates under other prevalences."""
    spread = choice.spread
    spread_out = blocks.thinned()  # the curve needs no more patterns than that
    curve = by_prevalence(spread_out, choice.model, choice.slope, PREVALENCES)
    if spread is not None:
        spread = Spread(_two(spread.centre), _two(spread.error), spread.plain)
    return replace(choice, spread=spread, curve=(PREVALENCES, *curve))


def _two(figures: Mapping[str, Array]) -> dict[str, Array]:
    return {
        "sensitivity": figures["confusion"][:, 1, 1],
        "specificity": figures["confusion"][:, 0, 0],
        "balanced_accuracy": figures["balanced_accuracy"],
        "prevalence": figures["class_probabilities"][1:].reshape(()),
    }


def _look_at_widths(
    findings: Findings, choice: Choice, given: Array, method: str, level: float
) -> None:
    if choice.spread is None:
        why = (
            f"there are more than {MOST_CLASSES} classes, or too many classifiers for so many"
            if method == "map"
            else f"method {method!r} looks at two classes at a time"
        )
        look_at_widths(findings, None, why)
        return
    quantity = "accuracy" if "accuracy" in choice.spread.error else "balanced_accuracy"
    ends = choice.spread.ends(quantity, level)[given > 0]
    look_at_widths(findings, np.diff(ends, axis=-1)[:, 0])
