"""What speaks for or against an answer beside its model: copies, chance, and what was taken for known.

The likelihood takes known values and gold labels at their word, and two classifiers that always agree
for two that never err. Here the votes are asked whether that is so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from labelfree._choice import DIFFICULTY, INDEPENDENT, Choice, GoldItems
from labelfree._consensus import Rule, probabilities
from labelfree._dependence import Alarm, alarm
from labelfree._intervals import Spread, covariance_of_logits
from labelfree._latent_class import Fit, Model, Prior, fit
from labelfree._moments import Moments
from labelfree._products import Block, Blocks
from labelfree._rank_one import rank_one
from labelfree._tally import Tally
from labelfree._verdict import (
    Findings,
    look_at_copies,
    look_at_gold,
    look_at_gold_met,
    look_at_informative,
    look_at_known,
)

Array = NDArray[np.float64]
Places = tuple[int, ...]

UNLIKELY = 1e-3  # chance of votes so far from what was given, were it true
EXACT_GAIN = (
    1e-9  # of the log-likelihood an item: what rounding may leave where frequencies are exact
)
FEWEST_SHARED = 20  # items on which two must have agreed
OFTEN_ALIKE, BY_CHANCE = (
    0.95,
    0.05,
)  # raters that often agree, and how seldom a crowd of them may pass for copies
ROUNDING = 1e-12  # of the items that a pair shares
UNSURE = 0.1  # standard error of v, beyond which the others cannot vouch for one of those alike
EDGE = 1e-9  # how far an interval must keep from one half to be called clear of it
FAR, FEWEST_WRONG = (
    4.0,
    3,
)  # standard errors, and gold labels, by which gold must miss to be doubted
CLEAR = 0.05  # chance that any classifier that guesses is called better or worse than chance


def alike(seen: Moments, sample_size: float) -> tuple[Places, ...]:
    """Find classifiers that agree on every item that both voted on, though not always by the same vote.

    In a crowd, where everyone sees some of the items, good raters may agree on all the items that
    they happen to share. There, so many must be shared that no pair of raters who differ on one item
    in twenty is likely to agree on them all.

    Returns
    -------
    tuple of tuples of int
        Sets of two classifiers or more, each with the first of its set.
    """
    if seen.unlike is None:
        return ()
    pairs = max(int((seen.pair_counts > 0).sum() - len(seen.mean)) // 2, 1)
    crowd = (seen.pair_counts < seen.votes.max(initial=0.0)).any()
    fewest = np.log(pairs / BY_CHANCE) / -np.log(OFTEN_ALIKE) if crowd else FEWEST_SHARED
    # Of frequencies that are no counts, rounding may leave something.
    met = (
        seen.pair_counts if np.isfinite(sample_size) else np.where(seen.pair_counts > 0, np.inf, 0)
    )
    same = (met >= max(fewest, FEWEST_SHARED)) & (seen.unlike <= ROUNDING * seen.pair_counts)
    same &= np.outer(~seen.constant, ~seen.constant) & (seen.covariance > 0)
    left, found = np.ones(len(same), dtype=bool), []
    for place in range(len(same)):
        others = np.flatnonzero(same[place] & left) if left[place] else np.zeros(0, dtype=int)
        if len(others):
            found.append((place, *map(int, others)))
            left[list(found[-1])] = False
    return tuple(found)


def _vouched_for(
    seen: Moments, place: int, copies: list[int], choice: Choice, sample_size: float
) -> bool:
    """Whether a classifier is as good as the answer says by its votes and the others' alone, without copies.

    Copies that agree on every item seem to never err, whoever they are. Of v_i from its covariances with
    others, r_ij = v_i v_j, the variance is about (1 / S + v_i² / S²) / n, with S = Σ_j v_j².
    """
    kept = [place, *(other for other in range(len(seen.mean)) if other not in (place, *copies))]
    pairs = np.ix_(kept, kept)
    vector = rank_one(
        Moments(seen.mean[kept], seen.covariance[pairs], seen.pair_counts[pairs])
    ).vector
    strength = max(float((vector[1:] ** 2).sum()), EDGE)
    error = float(np.sqrt((1.0 / strength + (vector[0] / strength) ** 2) / sample_size))
    classes, rates = choice.model.class_probabilities, choice.model.confusion[place]
    claimed = 2.0 * np.sqrt(classes[0] * classes[1]) * (rates[0, 0] + rates[1, 1] - 1.0)
    return bool(error <= UNSURE and abs(vector[0]) >= abs(claimed) - 2.0 * error - EDGE)


def informative(spread: Spread) -> NDArray[np.bool_]:
    """Classifiers whose balanced accuracy is clear of one half, all of them together at 95 %, (m,)."""
    m = len(spread.centre["balanced_accuracy"])
    low, high = spread.ends("balanced_accuracy", 1.0 - CLEAR / m).T
    return np.asarray((low > 0.5 + EDGE) | (high < 0.5 - EDGE))


@dataclass(frozen=True)
class Contradiction:
    """What the votes ask for in place of what was given: the value that is furthest off.

    Attributes
    ----------
    what : str
        "prevalence", "sensitivity" or "specificity".
    place : int or None
        Of the classifier; None for the prevalence.
    given, asked : float
    """

    what: str
    place: int | None
    given: float
    asked: float


def against_known(blocks: Blocks, seen: Moments, fitted: Fit, prior: Prior) -> Contradiction | None:
    """Hold a known prevalence and known rates against the votes, by the ratio of likelihoods.

    Where even without them the classifiers would not look independent, nothing is held against
    them: shared errors move the estimate of a prevalence, and the given one may well be right.
    """
    count = int(prior.fixed_classes) + (
        0 if prior.fixed_rates is None else int(prior.fixed_rates.sum())
    )
    if count == 0:
        return None
    free = replace(prior, fixed_classes=False, fixed_rates=None)
    better = fit(blocks, fitted.model, free)
    if not _gains(better.log_likelihood - fitted.log_likelihood, count, blocks):
        return None
    covariance = covariance_of_logits(blocks, better.model, free)
    if alarm(blocks, seen, better, free, covariance).raised:
        return None
    return _furthest(fitted.model, better.model, prior)


def _gains(gain: float, freedom: int, blocks: Blocks) -> bool:
    from scipy.special import chdtrc

    if not np.isfinite(blocks.tally.sample_size):
        return bool(gain > EXACT_GAIN * blocks.tally.items)
    return bool(chdtrc(freedom, max(2.0 * gain, 0.0)) <= UNLIKELY)


def _furthest(given: Model, asked: Model, prior: Prior) -> Contradiction:
    found = []
    if prior.fixed_classes:
        shares = given.class_probabilities[1], asked.class_probabilities[1]
        found.append(Contradiction("prevalence", None, float(shares[0]), float(shares[1])))
    if prior.fixed_rates is not None:
        for place, true in np.argwhere(prior.fixed_rates).tolist():
            what = ("specificity", "sensitivity")[true]
            right = given.confusion[place, true, true], asked.confusion[place, true, true]
            found.append(Contradiction(what, place, float(right[0]), float(right[1])))
    return max(found, key=lambda each: abs(each.given - each.asked))


def against_gold(
    rule: Rule, codes: NDArray[np.int8], truth: NDArray[np.int64]
) -> tuple[int, float] | None:
    """Hold gold labels against the probabilities of their items.

    Returns
    -------
    (int, float), or None
        How many gold labels the consensus meets and how many it should; None where these agree.
    """
    chances = probabilities(rule.scores(Block(codes, np.ones(len(codes)), 2)))
    best = chances.max(axis=1)
    hits = int((chances.argmax(axis=1) == truth).sum())
    expected, error = float(best.sum()), float(np.sqrt((best * (1.0 - best)).sum()))
    short = expected - hits
    return (hits, expected) if short >= max(FEWEST_WRONG, FAR * error) else None


# --- what the verdict hears of it ---------------------------------------------------------------


def look_at_votes(
    findings: Findings, seen: Moments, tally: Tally, choice: Choice, tested: Alarm
) -> None:
    """Ask whether enough classifiers, each of its own, carry the answer."""
    if choice.spread is None:
        return
    names = tally.classifiers
    told = informative(choice.spread)
    alone = choice.dependence == INDEPENDENT and choice.gold == 0
    clear = [names[place] for place in np.flatnonzero(told)]
    look_at_informative(findings, clear, len(names), testable=tested.testable and alone)
    # Copies that were found, or named by the user, have been weighed as one.
    grouped = {place for group in choice.groups for place in group}
    sets = [each for each in alike(seen, tally.sample_size) if not grouped.issuperset(each)]
    copies = [place for each in sets for place in each[1:]]
    told[copies] = False
    vouched = all(_vouched_for(seen, each[0], copies, choice, tally.sample_size) for each in sets)
    look_at_copies(
        findings,
        [[names[place] for place in each] for each in sets],
        apart=int(told.sum()) if vouched else 0,
        raised=tested.raised,
    )


def look_at_values(
    findings: Findings, seen: Moments, blocks: Blocks, fitted: Fit, prior: Prior
) -> None:
    """Ask whether the votes contradict the prevalence and the rates that were given as known."""
    found = against_known(blocks, seen, fitted, prior)
    if found is not None:
        whose = "" if found.place is None else f" of {blocks.tally.classifiers[found.place]}"
        look_at_known(findings, found.what + whose, found.given, found.asked)


def look_at_labels(findings: Findings, choice: Choice, gold: GoldItems, *, turned: bool) -> None:
    """Ask whether the gold labels contradict the answer, and how far they carry it."""
    met = against_gold(choice.rule, *gold)
    if met is not None:
        look_at_gold_met(findings, len(gold[1]), *met)
    look_at_gold(findings, choice.gold if choice.dependence == DIFFICULTY else 0, turned=turned)
