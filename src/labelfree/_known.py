"""Rates of which the user knows something: fixed values stay as they are, Beta priors pull."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from labelfree._intervals import Spread
from labelfree._latent_class import Model, Prior
from labelfree._moments import Moments

Array = NDArray[np.float64]
Curve = tuple[Array, Array, Array]


def with_known(model: Model, fitted: Model, seen: Moments, prior: Prior) -> Model:
    """Add the pseudo-votes of the prior to tempered rates; rates that are known stay as they are."""
    votes = (
        seen.votes[:, None, None] * model.class_probabilities[:, None] * model.confusion
        + prior.confusion
    )
    total = votes.sum(axis=2, keepdims=True)
    confusion = np.divide(votes, total, out=np.full_like(votes, 0.5), where=total > 0)
    if prior.fixed_rates is not None:
        confusion = np.where(prior.fixed_rates[:, :, None], fitted.confusion, confusion)
    return Model(model.class_probabilities, confusion)


def believing(
    model: Model, told: Model, covariance: Array, prior: Prior, believed: NDArray[np.bool_]
) -> tuple[Model, Array]:
    """Let Beta priors of single rates pull at tempered ones, and narrow their intervals.

    As many votes speak for a rate r of standard error s as r (1 − r) / s²: fewer than there are items
    of its class, as nobody knows which these are. The prior's pseudo-votes are added to those.

    Parameters
    ----------
    model : Model
        Rates with the pseudo-votes of the prior.
    told : Model
        The same without them.
    covariance : (1 + 2m, 1 + 2m) array
        Of the logits of `told`.
    prior : Prior
    believed : (m, 2) array of bool
        Rates, by true class, of which the user gave a Beta prior.

    Returns
    -------
    Model, (1 + 2m, 1 + 2m) array
    """
    confusion, shrunk = model.confusion.copy(), np.ones(len(covariance))
    for place, true in np.argwhere(believed).tolist():
        rate = told.confusion[place, true]
        logit = 1 + 2 * place + true
        own = prior.confusion[place, true]
        votes = 1.0 / max(covariance[logit, logit] * rate[0] * rate[1], 1e-12)
        pulled = (votes * rate + own) / (votes + own.sum())
        confusion[place, true] = pulled
        variance = 1.0 / ((votes + own.sum()) * pulled[0] * pulled[1])
        shrunk[logit] = np.sqrt(variance / max(covariance[logit, logit], 1e-12))
    return Model(model.class_probabilities, confusion), covariance * np.outer(shrunk, shrunk)


def held(
    model: Model, spread: Spread, fitted: Model, prior: Prior, believed: NDArray[np.bool_]
) -> tuple[Model, Spread]:
    """Keep what is known as it is, with no error, and let Beta priors of single rates pull at theirs.

    A gold estimate r with standard error s tells as much as r (1 − r) / s² votes on items of a known
    class; the prior's pseudo-votes are added to those.
    """
    fixed = np.zeros_like(believed) if prior.fixed_rates is None else prior.fixed_rates
    confusion = model.confusion.copy()
    centre, error = dict(spread.centre), dict(spread.error)
    for name, true in (("specificity", 0), ("sensitivity", 1)):
        known, pulled, own = fixed[:, true], believed[:, true], prior.confusion[:, true]
        rate = confusion[:, true, true]
        votes = rate * (1 - rate) / np.maximum(error[name], 1e-12) ** 2
        total = votes + own.sum(axis=1)
        middle = np.where(pulled, (votes * centre[name] + own[:, true]) / total, centre[name])
        rate = np.where(pulled, (votes * rate + own[:, true]) / total, rate)
        rate = np.where(known, fitted.confusion[:, true, true], rate)
        centre[name] = np.where(known, rate, middle)
        error[name] = np.where(pulled, np.sqrt(rate * (1 - rate) / total), error[name])
        error[name] = np.where(known, 0.0, error[name])
        confusion[:, true, true], confusion[:, true, 1 - true] = rate, 1 - rate
    told = (fixed | believed).any(axis=1)
    both = np.hypot(error["sensitivity"], error["specificity"]) / 2
    middle = (centre["sensitivity"] + centre["specificity"]) / 2
    centre["balanced_accuracy"] = np.where(told, middle, centre["balanced_accuracy"])
    error["balanced_accuracy"] = np.where(told, both, error["balanced_accuracy"])
    classes = fitted.class_probabilities if prior.fixed_classes else model.class_probabilities
    if prior.fixed_classes:
        centre["prevalence"], error["prevalence"] = classes[1:].reshape(()), np.zeros(())
    return Model(classes, confusion), Spread(centre, error, spread.plain)


def curve_with_known(curve: Curve, model: Model, prior: Prior) -> Curve:
    """Rates by assumed prevalence, those that are known the same under all."""
    if prior.fixed_rates is None:
        return curve
    prevalences, sensitivity, specificity = curve
    return (
        prevalences,
        np.where(prior.fixed_rates[:, 1], model.confusion[:, 1, 1], sensitivity),
        np.where(prior.fixed_rates[:, 0], model.confusion[:, 0, 0], specificity),
    )
