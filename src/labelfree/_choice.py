"""Which model the answer comes from: independent classifiers, groups that copy, or items unlike in difficulty.

The independent model stands until the alarm refuses it. Then groups and difficulty are fitted too
and BIC chooses. Groups win only where they leave no pair across groups unexplained; otherwise the
answer is the independent model's, tempered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from labelfree._consensus import Rule, posterior_rule, tempered_rule
from labelfree._dependence import (
    bounded_p_value,
    effective_number,
    separation,
    standardised_residuals,
)
from labelfree._difficulty import (
    LEAST_SLOPE,
    MOST_LOG_ODDS,
    fit_trait,
    log_odds,
    tempered,
    tempering_slope,
)
from labelfree._difficulty import by_prevalence as tempered_by_prevalence
from labelfree._gold import Gold, gold_estimate
from labelfree._gold import by_prevalence as gold_by_prevalence
from labelfree._group_information import covariance_of_logits as covariance_of_groups
from labelfree._group_information import covariance_of_terms as terms_of_groups
from labelfree._group_model import GroupModel, fit_groups
from labelfree._group_start import masked
from labelfree._groups import across, find_groups, group_rule, largest_cross_residual
from labelfree._intervals import Spread, covariance_of_terms, spread_of
from labelfree._known import believing, curve_with_known, held, with_known
from labelfree._latent_class import Fit, Model, Prior, free_logits
from labelfree._moments import Moments
from labelfree._products import Block, Blocks
from labelfree._rank_one import rank_one
from labelfree._rates import clipped, rates, smallest_rate
from labelfree._tempered_error import tempered_covariance

Array = NDArray[np.float64]
GoldItems = tuple[NDArray[np.int8], NDArray[np.int64]]  # votes on the gold items, and their classes

INDEPENDENT, GROUPS, DIFFICULTY = "independent", "groups", "difficulty"
# Chance that the largest residual of a pair across groups that are right is larger still: below the
# first, other groups are looked at; below the second, groups are no explanation. True groups passed
# a residual of 3.3 in two of fifty simulated data sets; on real votes where BIC liked groups it was
# above 25.
UNLIKELY, REFUSED = 0.05, 0.001
PREVALENCES = np.round(np.concatenate([[0.02], np.arange(0.05, 0.96, 0.05), [0.98]]), 2)


@dataclass(frozen=True)
class Choice:
    """The model that the answer comes from, and what it says.

    Attributes
    ----------
    dependence : {"independent", "groups", "difficulty"}
    model : Model
        Rates and class probabilities.
    spread : Spread or None
        Of the rates; None where the information is singular.
    rule : Rule
        Its scores are the posterior log-odds.
    effective_number : float
        As many independent classifiers tell as much.
    groups : tuple of tuple of int
        Places of classifiers that copy one another.
    converged : bool
    slope : float
        τ, by which the independent model's log-odds are tempered; 1 where they are not.
    curve : tuple of arrays (G,), (G, m), (G, m), or None
        Assumed prevalences, and the sensitivities and specificities under each; None for more than two
        classes.
    gold : int
        Items with gold labels that it was checked by.
    doubt : (D, D) array or None
        Covariance of the terms of the rule's log-odds; None where the information is singular.
    residuals : (m, m) array or None
        Standardised residual of each pair, where this model's rates explain other than the independent
        model's, of which the alarm has them.
    """

    dependence: str
    model: Model
    spread: Spread | None
    rule: Rule
    effective_number: float
    groups: tuple[tuple[int, ...], ...]
    converged: bool
    slope: float
    curve: tuple[Array, Array, Array] | None
    gold: int = 0
    doubt: Array | None = None
    residuals: Array | None = None


def independent(
    fitted: Fit,
    model: Model,
    covariance: Array | None,
    seen: Moments,
    vector: Array,
    size: float,
    prior: Prior,
) -> Choice:
    """Take the independent model; `model`, with the covariance of its logits, is what the asked method made of it."""
    return Choice(
        INDEPENDENT,
        model,
        None if covariance is None else spread_of(model, covariance),
        posterior_rule(model),
        float(len(vector)),
        (),
        fitted.converged,
        1.0,
        curve_with_known(spectral_curve(seen, vector, size), model, prior),
        doubt=None if covariance is None else covariance_of_terms(model, covariance),
    )


def dependent(
    blocks: Blocks,
    seen: Moments,
    choice: Choice,
    fitted: Fit,
    starts: list[Model],
    covariance: Array | None,
    *,
    prior: Prior,
    prevalence: float | None,
    groups: Sequence[Sequence[int]],
    believed: NDArray[np.bool_],
) -> Choice:
    """Choose among the independent model, groups and difficulty.

    Parameters
    ----------
    blocks : Blocks
    seen : Moments
    choice, fitted : Choice, Fit
        Of the independent model.
    starts : list of Model
        For the one-trait model.
    covariance : array or None
        Of the independent model's logits.
    prior : Prior
    prevalence : float, optional
    groups : sequence of groups of places
        The user's own; they are taken as they are.
    believed : (m, 2) array of bool
        Rates, by true class, of which the user gave a Beta prior.

    Returns
    -------
    Choice
    """
    known = fitted.model if prior.fixed_rates is not None else None
    if groups:
        own = fit_groups(blocks, groups, prior, prevalence, seen=seen, known=known)
        return grouped(blocks, seen, own, prior, prevalence)

    def explains(model: GroupModel) -> bool:
        return _explained(blocks, seen, model, prior, prevalence, UNLIKELY)

    copies = find_groups(blocks, seen, prior, prevalence, known=known, explains=explains)
    explained = bool(copies.groups) and _explained(blocks, seen, copies, prior, prevalence, REFUSED)
    plain_bic = independent_bic(fitted, blocks, prior)
    cool, trait_bic = difficulty(
        blocks,
        seen,
        fitted,
        starts,
        covariance,
        prior=prior,
        prevalence=prevalence,
        believed=believed,
    )
    # Groups that explain what BIC's first choice could not may have a BIC above the plain model's.
    if explained and min(copies.bic, plain_bic) < trait_bic:
        return grouped(blocks, seen, copies, prior, prevalence)
    return choice if plain_bic <= trait_bic else cool


def _explained(
    blocks: Blocks,
    seen: Moments,
    model: GroupModel,
    prior: Prior,
    prevalence: float | None,
    chance: float,
) -> bool:
    """Whether the groups leave no pair across them with a residual that chance gives so seldom."""
    covariance = covariance_of_groups(blocks, model, prior, prevalence)
    if covariance is None:
        return False
    marginal = model.marginal()
    residuals = standardised_residuals(seen, marginal, covariance, blocks.tally.sample_size)
    largest = largest_cross_residual(residuals, model.partition)
    if largest < most_across(len(residuals), chance):
        return True
    # Good classifiers seldom err together, and few such items make large residuals by chance.
    residuals[~across(model.partition)] = 0.0
    return bounded_p_value(seen, marginal, residuals) > chance


def most_across(classifiers: int, chance: float) -> float:
    """Bound on the largest residual of all pairs: among 1225 pairs, chance reaches 3.3 in two of three data sets."""
    from scipy.special import ndtri

    pairs = classifiers * (classifiers - 1) / 2
    return float(-ndtri(chance / 2 / pairs))


def grouped(
    blocks: Blocks, seen: Moments, model: GroupModel, prior: Prior, prevalence: float | None
) -> Choice:
    """Take the model of groups that copy one another."""
    marginal = model.marginal()
    covariance = covariance_of_groups(blocks, model, prior, prevalence)
    apart = masked(seen, model.partition)
    alone = separation(model.sensitivity, model.specificity)
    return Choice(
        GROUPS,
        marginal,
        None if covariance is None else spread_of(marginal, covariance),
        group_rule(model),
        effective_number(alone, model.separation),
        model.groups,
        model.converged,
        1.0,
        curve_with_known(
            spectral_curve(seen, rank_one(apart).vector, blocks.tally.sample_size), marginal, prior
        ),
        doubt=terms_of_groups(blocks, model, prior, prevalence),
        residuals=None
        if covariance is None
        else standardised_residuals(
            seen, marginal, covariance, blocks.tally.sample_size, across(model.partition)
        ),
    )


def calibrated(
    blocks: Blocks,
    choice: Choice,
    fitted: Fit,
    gold: GoldItems,
    *,
    prior: Prior,
    believed: NDArray[np.bool_],
) -> Choice | None:
    """Let gold labels check the direction; and, where items differ in difficulty, calibrate all else.

    Where the votes themselves tell the rates, thousands of them tell more than a few gold labels.
    `believed` are the rates, (m, 2) by true class, of which the user gave a prior.

    Returns
    -------
    Choice, or None
        None where the gold says that the classes are the other way round.
    """
    codes, truth = gold
    known = float(fitted.model.class_probabilities[1]) if prior.fixed_classes else None
    slope = max(choice.slope, LEAST_SLOPE)
    found = gold_estimate(blocks, fitted.model, slope, codes, truth, known)
    if found.flipped:
        return None
    if choice.dependence != DIFFICULTY:
        return replace(choice, gold=len(truth))
    model, spread = found.model, gold_spread(found)
    model, spread = held(model, spread, fitted.model, prior, believed)
    return replace(
        choice,
        model=model,
        spread=spread,
        rule=tempered_rule(fitted.model, found.slope, found.intercept, MOST_LOG_ODDS),
        slope=found.slope,
        curve=curve_with_known(
            (PREVALENCES, *gold_by_prevalence(blocks, fitted.model, found, PREVALENCES)),
            model,
            prior,
        ),
        gold=len(truth),
        doubt=_doubt_of_line(choice, fitted, found),
    )


def _doubt_of_line(choice: Choice, fitted: Fit, found: Gold) -> Array | None:
    """Covariance of the terms of a + τ ℓ, from those of a and τ and of ℓ, which is linear in its terms."""
    if choice.doubt is None:
        return None
    odds = posterior_rule(fitted.model).term_odds()
    by_line = np.stack([np.eye(len(odds))[0], odds], axis=1)
    own = choice.doubt * (found.slope / choice.slope) ** 2
    return np.asarray(own + by_line @ found.line_covariance @ by_line.T)


def spectral_curve(seen: Moments, vector: Array, sample_size: float) -> tuple[Array, Array, Array]:
    """Rates that the means and v imply under every assumed prevalence (JNK Lemma 2)."""
    smallest = smallest_rate(sample_size)
    both = [rates(seen.mean, vector, 2 * p - 1) for p in PREVALENCES]
    return (
        PREVALENCES,
        np.array([clipped(sensitivity, smallest) for sensitivity, _ in both]),
        np.array([clipped(specificity, smallest) for _, specificity in both]),
    )


def difficulty(
    blocks: Blocks,
    seen: Moments,
    fitted: Fit,
    starts: list[Model],
    covariance: Array | None,
    *,
    prior: Prior,
    prevalence: float | None,
    believed: NDArray[np.bool_],
) -> tuple[Choice, float]:
    """Temper the independent model by the one-trait model; return the latter's BIC too."""
    trait = fit_trait(blocks, starts, prevalence)
    slope = tempering_slope(blocks, fitted.model, trait.trait)
    cool = tempered(blocks, fitted.model, slope, prevalence)
    model = with_known(cool.model, fitted.model, seen, prior)
    together = _reached_separation(blocks, fitted.model, slope, cool.shift)
    alone = separation(model.confusion[:, 1, 1], model.confusion[:, 0, 0])
    spread, doubt = None, None
    if covariance is not None:
        doubt = slope**2 * covariance_of_terms(fitted.model, covariance)
        error = tempered_covariance(blocks, fitted.model, covariance, trait.trait, cool)
        known = ~free_logits(fitted.model, prior)
        error[known], error[:, known] = 0.0, 0.0
        model, error = believing(model, cool.model, error, prior, believed)
        spread = spread_of(model, error)
    choice = Choice(
        DIFFICULTY,
        model,
        spread,
        tempered_rule(fitted.model, slope, cool.shift, MOST_LOG_ODDS),
        effective_number(alone, together),
        (),
        fitted.converged and trait.converged,
        slope,
        curve_with_known(
            (PREVALENCES, *tempered_by_prevalence(blocks, fitted.model, slope, PREVALENCES)),
            fitted.model,
            prior,
        ),
        doubt=doubt,
    )
    return choice, trait.bic


def _reached_separation(blocks: Blocks, model: Model, slope: float, shift: float) -> float:
    """Mean tempered log-odds of the positive items less that of the negative ones."""

    def work(block: Block) -> tuple[float, float, float, float]:
        odds = shift + slope * log_odds(block, model)
        q = 1.0 / (1.0 + np.exp(-odds))
        positive, negative = block.counts * q, block.counts * (1 - q)
        return (
            float(positive @ odds),
            float(positive.sum()),
            float(negative @ odds),
            float(negative.sum()),
        )

    above, positives, below, negatives = blocks.total(work)
    return float(above / max(positives, 1e-12) - below / max(negatives, 1e-12))


def independent_bic(fitted: Fit, blocks: Blocks, prior: Prior) -> float:
    """−2 log-likelihood + parameters · log(items)."""
    parameters = int(free_logits(fitted.model, prior).sum())
    return float(-2 * fitted.log_likelihood + parameters * np.log(blocks.tally.items))


def gold_spread(gold: Gold) -> Spread:
    """Prediction-powered intervals, on the plain scale."""
    centre = {
        name: value if name != "prevalence" else value.reshape(())
        for name, value in gold.centres.items()
    }
    error = {
        name: value if name != "prevalence" else value.reshape(())
        for name, value in gold.errors.items()
    }
    return Spread(centre, error, plain=True)
