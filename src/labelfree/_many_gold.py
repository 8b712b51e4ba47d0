"""A few gold labels for K classes: a temperature, an offset a class, and what is still missed.

As with two classes (see the room of gold), the gold is not put into the likelihood, where thousands
of unlabelled items drown it. It tells how much too sure the posterior is and which classes it favours:
q = softmax(a + τ ℓ), with ℓ the log-posterior of an item. Rates are counted anew from q, and what the
gold still misses on average corrects the intervals (prediction-powered inference: Angelopoulos et
al. 2023). The gold items must be a random sample of all items.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labelfree._consensus import Rule, posterior_rule, probabilities, winners
from labelfree._intervals import Spread
from labelfree._latent_class import Model, Prior
from labelfree._products import Block, Blocks

Array = NDArray[np.float64]

OFFSET_SPREAD = 1.5  # of a class's offset ~ N(0, 1.5²), as the intercept of two classes
SLOPE_SPREAD = 0.6  # of the slope ~ N(τ₀, (0.6 τ₀)²), as with two classes
LEAST_SLOPE = 0.03
FEW = 5  # gold votes of a classifier below which its own errors say nothing


@dataclass(frozen=True)
class ManyGold:
    """What a few gold labels make of K classes.

    Attributes
    ----------
    model : Model
        Calibrated class probabilities and confusion matrices.
    spread : Spread
        Prediction-powered, on the plain scale.
    rule : Rule
        Its softmax is q.
    slope : float
        τ.
    hits, expected : float
        Gold items that the rule labels rightly, and how many of them it said it would.
    """

    model: Model
    spread: Spread
    rule: Rule
    slope: float
    hits: float
    expected: float


def many_gold(
    blocks: Blocks,
    model: Model,
    prior: Prior,
    slope: float,
    codes: NDArray[np.int8],
    truth: NDArray[np.int64],
) -> ManyGold:
    """Calibrate by gold labels.

    Parameters
    ----------
    blocks : Blocks
        All items, those with gold labels too.
    model : Model
        The posterior mode under independence.
    prior : Prior
        That it was fitted with; what is known stays as it is.
    slope : float
        Where τ is expected.
    codes : (g, m) array
        Votes on the gold items, −1 where missing.
    truth : (g,) array
        Their classes.

    Returns
    -------
    ManyGold
    """
    classes = len(model.class_probabilities)
    gold = Block(np.ascontiguousarray(codes, dtype=np.int8), np.ones(len(codes)), classes)
    own = posterior_rule(model)
    offsets, tempered = _calibrated(own.scores(gold), truth, slope)
    rule = Rule(tempered * own.intercept + offsets, tempered * own.weights)

    def work(block: Block) -> tuple[Array, Array]:
        weighted = probabilities(rule.scores(block)) * block.counts[:, None]
        return weighted.sum(axis=0), block.gather(weighted)

    of_classes, of_votes = blocks.total(work)
    votes = np.maximum(of_votes.transpose(0, 2, 1), 0.0) + prior.confusion
    total = votes.sum(axis=2, keepdims=True)
    confusion = np.divide(votes, total, out=model.confusion.copy(), where=total > 0)
    if prior.fixed_rates is not None:
        confusion = np.where(prior.fixed_rates[:, :, None], model.confusion, confusion)
    shares = model.class_probabilities if prior.fixed_classes else of_classes / of_classes.sum()
    found = Model(shares, confusion)
    scores = rule.scores(gold)
    q = probabilities(scores)
    spread = _powered(found, q, codes, truth, votes.sum(axis=2), prior)
    hits, expected = float((winners(scores) == truth).sum()), float(q.max(axis=1).sum())
    return ManyGold(found, spread, rule, tempered, hits, expected)


def _calibrated(scores: Array, truth: NDArray[np.int64], slope: float) -> tuple[Array, float]:
    """Offsets a and slope τ under which the gold is likeliest, with their priors."""
    from scipy.optimize import minimize

    classes = scores.shape[1]
    centred = scores - scores.mean(axis=1, keepdims=True)
    right = np.eye(classes)[truth]

    def objective(point: Array) -> tuple[float, Array]:
        offsets, tau = point[:classes], point[classes]
        raised = offsets + tau * centred
        top = raised.max(axis=1, keepdims=True)
        logs = raised - top - np.log(np.exp(raised - top).sum(axis=1, keepdims=True))
        missed = right - np.exp(logs)
        away = (tau - slope) / (SLOPE_SPREAD * slope)
        value = float(-(right * logs).sum() + 0.5 * away**2)
        value += 0.5 * float((offsets**2).sum()) / OFFSET_SPREAD**2
        by_offset = -missed.sum(axis=0) + offsets / OFFSET_SPREAD**2
        by_slope = -float((missed * centred).sum()) + away / (SLOPE_SPREAD * slope)
        return value, np.concatenate([by_offset, [by_slope]])

    start = np.append(np.zeros(classes), slope)
    bounds = [(None, None)] * classes + [(LEAST_SLOPE, None)]
    found = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds)
    return np.asarray(found.x[:classes]), float(found.x[classes])


def _powered(
    model: Model,
    q: Array,
    codes: NDArray[np.int8],
    truth: NDArray[np.int64],
    seen: Array,
    prior: Prior,
) -> Spread:
    """Correct by what the gold misses on average; standard errors from both samples.

    A rate of row y is a ratio, whose error moves with (1[truth = y] − q_y) (1[vote] − θ) / p_y.
    """
    p, confusion = model.class_probabilities, model.confusion
    classes = len(p)
    missed = np.eye(classes)[truth] - q  # (g, K)
    voted = codes >= 0
    votes = np.where(voted[:, :, None], np.eye(classes)[np.maximum(codes, 0)], 0.0)  # (g, m, K)
    counts = voted.sum(axis=0)
    terms = (
        missed[:, None, :, None]
        / np.maximum(p, 1e-6)[None, None, :, None]
        * (votes[:, :, None, :] - confusion[None])
        * voted[:, :, None, None]
    )  # (g, m, K, K)
    few = counts < FEW
    items = seen / np.maximum(p, 1e-6)
    right = np.einsum("ikk->ik", confusion)
    hit = np.take_along_axis(missed, np.maximum(codes, 0).astype(np.intp), axis=1) * voted
    diagonal = np.einsum("gikk->gik", terms).mean(axis=2)
    found = {
        "class_probabilities": _mean_and_error(missed[:, None, :], np.full((1, 1), len(truth))),
        "confusion": _mean_and_error(terms, counts[:, None, None]),
        "accuracy": _mean_and_error(hit, counts),
        "balanced_accuracy": _mean_and_error(diagonal, counts),
    }
    values = {
        "class_probabilities": p,
        "confusion": confusion,
        "accuracy": right @ p,
        "balanced_accuracy": right.mean(axis=1),
    }
    unlabelled = {
        "class_probabilities": p * (1 - p) / items.max(initial=1.0),
        "confusion": confusion * (1 - confusion) / np.maximum(seen, 1.0)[:, :, None],
        "accuracy": 0.25 / np.maximum(seen.sum(axis=1), 1.0),
        "balanced_accuracy": (right * (1 - right) / np.maximum(seen, 1.0)).sum(axis=1) / classes**2,
    }
    centre, error = {}, {}
    for name, value in values.items():
        mean, variance = (each.reshape(value.shape) for each in found[name])
        if name != "class_probabilities":
            # With too few gold votes of its own, a classifier is as wrong as all are, on average.
            alone = few.reshape(-1, *(1,) * (mean.ndim - 1))
            pooled = (
                variance[~few].mean(axis=0) if (~few).any() else np.full(variance.shape[1:], 0.25)
            )
            mean = np.where(alone, 0.0, mean)
            variance = np.where(alone, pooled, variance)
        centre[name] = np.clip(value + mean, 0.0, 1.0)
        error[name] = np.sqrt(variance + unlabelled[name])
    if prior.fixed_classes:
        centre["class_probabilities"], error["class_probabilities"] = p, np.zeros_like(p)
    if prior.fixed_rates is not None:
        held = prior.fixed_rates[:, :, None]
        centre["confusion"] = np.where(held, confusion, centre["confusion"])
        error["confusion"] = np.where(held, 0.0, error["confusion"])
    return Spread(centre, error, plain=True)


def _mean_and_error(terms: Array, counts: Array) -> tuple[Array, Array]:
    """Mean of the terms over the gold items that count, and the variance of that mean.

    One pseudo-item that missed by a half keeps the variance from vanishing where nothing was missed.
    """
    number = np.maximum(counts, 1)
    mean = terms.sum(axis=0) / number
    square = ((terms**2).sum(axis=0) + 0.25) / (number + 1)
    return mean, np.maximum(square - mean**2, 0.0) / number
