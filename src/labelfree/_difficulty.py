"""Items of unequal difficulty: the one-trait model, and the tempering that it asks for.

Real classifiers err together on hard items. Then the independent model is too sure of every item's
class, and the rates that rest on its certainty are wrong. The one-trait model lets the votes say how
much too sure: its posterior is compared with that of the independent model, and the ratio of their
log-odds, one number τ, tempers the latter. The rates that come of it are nearer the truth than those
of the trait model itself (measured in `benchmarks/real_rates.py`).

The model is a probit-like random-effects model in the manner of Qu, Tan and Kutner (1996), with one
trait that both the class and the difficulty of an item act on:

    logit Pr(f_i = +1 | z) = c_i + g_i z,    z | Y = y ~ N(y, s²),    y = ±1.

The trait is integrated out by Gauss–Hermite quadrature, 11 nodes for each class; so a pattern's
probability is a sum over 22 cells in which votes are independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelfree._latent_class import Model
from labelfree._products import Block, Blocks
from labelfree._rates import clipped, expit, logit, smallest_rate

Array = NDArray[np.float64]

NODES = 11  # of the quadrature, for each class
COEFFICIENT_SPREAD = 2.5  # c_i, g_i ~ N(0, 2.5²)
LOG_SPREAD_MEAN, LOG_SPREAD_SPREAD = -1.0, 1.0  # log s ~ N(−1, 1)
PSEUDO_ITEMS = 1.0  # of each class: the prevalence ~ Beta(2, 2)
SPREADS_AND_STRETCHES = ((0.3, 1.0), (1.0, 1.3))  # s and k of the starts
SMALLEST_START = 0.01  # rates of a start are held this far from 0 and 1
MOST_STEPS = 500
STILL = 1e-6  # largest slope of the mean log-posterior that counts as flat
SAME = 1e-11  # relative gain of a step that counts as none
MOST_LOG_ODDS = 40.0  # beyond, an item is certain
LEAST_SLOPE = 0.03  # of the tempering


@dataclass(frozen=True)
class Trait:
    """Parameters of the one-trait model.

    Attributes
    ----------
    prevalence : float
        Pr(Y = +1).
    offset, slope : (m,) arrays
        c and g.
    spread : float
        s, which is zero where all items are equally hard.
    """

    prevalence: float
    offset: Array
    slope: Array
    spread: float


@dataclass(frozen=True)
class TraitFit:
    """Where the search for the posterior mode ended.

    Attributes
    ----------
    trait : Trait
    log_likelihood : float
        Of all votes, without the penalties.
    parameters : int
        Free ones.
    bic : float
        −2 log-likelihood + parameters · log(items): the smaller, the better.
    converged : bool
    """

    trait: Trait
    log_likelihood: float
    parameters: int
    bic: float
    converged: bool


def fit_trait(blocks: Blocks, starts: Sequence[Model], prevalence: float | None = None) -> TraitFit:
    """Climb to the posterior mode of the one-trait model from every start; the highest is kept.

    Parameters
    ----------
    blocks : Blocks
        Of two classes. The search looks at no more than an even spread of the patterns.
    starts : sequence of Model
        Of independent classifiers; each gives two starts, with items alike and unlike in difficulty.
    prevalence : float, optional
        Pr(Y = +1), where it is known.

    Returns
    -------
    TraitFit
    """
    from scipy.optimize import minimize

    objective = PenalisedLikelihood(blocks.thinned(), prevalence)
    found: list[Any] = [
        minimize(
            objective.loss,
            objective.pack(_started(model, spread, stretch)),
            jac=True,
            method="L-BFGS-B",
            bounds=objective.bounds(),
            options={"maxiter": MOST_STEPS, "gtol": STILL, "ftol": SAME},
        )
        for model in starts
        for spread, stretch in SPREADS_AND_STRETCHES
    ]
    best = min(found, key=lambda result: result.fun)
    trait = objective.unpack(best.x)
    log_likelihood = trait_log_likelihood(blocks, trait)
    parameters = 2 * len(trait.offset) + 1 + (prevalence is None)
    bic = -2.0 * log_likelihood + parameters * np.log(blocks.tally.items)
    return TraitFit(trait, log_likelihood, parameters, float(bic), bool(best.success))


def _started(model: Model, spread: float, stretch: float) -> Trait:
    """Start where z = ±1 gives the model's rates, stretched: c = (A+B)k/2, g = (A−B)k/2 for A = logit ψ, B = −logit η."""
    positive = np.clip(model.confusion[:, :, 1], SMALLEST_START, 1.0 - SMALLEST_START)
    below, above = logit(positive[:, 0]), logit(positive[:, 1])
    prevalence = float(np.clip(model.class_probabilities[1], SMALLEST_START, 1.0 - SMALLEST_START))
    return Trait(prevalence, (above + below) * stretch / 2, (above - below) * stretch / 2, spread)


class PenalisedLikelihood:
    """The mean log-posterior of the one-trait model, with its gradient.

    Coordinates are logit of the prevalence, log s, c and g; a known prevalence is left out.

    Parameters
    ----------
    blocks : Blocks
    prevalence : float, optional
        Pr(Y = +1), where it is known.
    """

    def __init__(self, blocks: Blocks, prevalence: float | None = None) -> None:
        self.blocks = blocks
        self.prevalence = prevalence
        self.items = blocks.tally.items

    def pack(self, trait: Trait) -> Array:
        """Coordinates of a trait model."""
        head = [] if self.prevalence is not None else [logit(trait.prevalence)]
        return np.concatenate([head, [np.log(trait.spread)], trait.offset, trait.slope])

    def unpack(self, place: Array) -> Trait:
        """Return the trait model at some coordinates."""
        known = self.prevalence is not None
        rest = place if known else place[1:]
        offset, slope = rest[1:].reshape(2, -1)
        prevalence = self.prevalence if self.prevalence is not None else float(expit(place[0]))
        return Trait(prevalence, offset, slope, float(np.exp(rest[0])))

    def bounds(self) -> list[tuple[float, float]]:
        """Box far beyond what the penalties allow; it only keeps a wild step finite."""
        m = len(self.blocks.tally.classifiers)
        head = [] if self.prevalence is not None else [(-15.0, 15.0)]
        return [*head, (-6.0, 3.0), *[(-30.0, 30.0)] * (2 * m)]

    def loss(self, place: Array) -> tuple[float, Array]:
        """Minus the mean log-posterior, and its gradient."""
        trait = self.unpack(place)
        value, (classes, spread, offset, slope) = _likelihood(self.blocks, trait)
        away = np.log(trait.spread) - LOG_SPREAD_MEAN
        value -= away**2 / (2 * LOG_SPREAD_SPREAD**2)
        value -= (trait.offset @ trait.offset + trait.slope @ trait.slope) / (
            2 * COEFFICIENT_SPREAD**2
        )
        gradient: list[Any] = [
            [spread - away / LOG_SPREAD_SPREAD**2],
            offset - trait.offset / COEFFICIENT_SPREAD**2,
            slope - trait.slope / COEFFICIENT_SPREAD**2,
        ]
        if self.prevalence is None:
            p = trait.prevalence
            value += PSEUDO_ITEMS * float(np.log(p) + np.log1p(-p))
            gradient.insert(0, [classes + PSEUDO_ITEMS * (1.0 - 2.0 * p)])
        return -value / self.items, -np.concatenate(gradient) / self.items


@dataclass(frozen=True)
class _Cells:
    """The 22 cells of the quadrature: the 11 of the negative class, then those of the positive."""

    trait: Array  # (22,) z
    deviation: Array  # (22,) z − y
    log_share: Array  # (22,) log-probability of the cell
    chances: Array  # (m, 22) Pr(f_i = +1 | z)
    tables: Array  # (m, 2, 22) log Pr(vote | z)


@cache
def _quadrature(nodes: int) -> tuple[Array, Array]:
    """Nodes and weights for a standard normal."""
    return np.polynomial.hermite_e.hermegauss(nodes)


def quadrature_cells(trait: Trait) -> _Cells:
    node, weight = _quadrature(NODES)
    deviation = np.tile(trait.spread * node, 2)
    z = np.repeat([-1.0, 1.0], NODES) + deviation
    classes = np.log([1.0 - trait.prevalence, trait.prevalence])
    share = np.tile(np.log(weight / weight.sum()), 2) + np.repeat(classes, NODES)
    logits = trait.offset[:, None] + trait.slope[:, None] * z
    tables = -np.logaddexp(0.0, np.stack([logits, -logits], axis=1))
    return _Cells(z, deviation, share, expit(logits), tables)


def cell_shares(block: Block, cells: _Cells) -> tuple[Array, Array]:
    """Each pattern's log-probability and the posterior probabilities of its cells."""
    joint = block.score(cells.tables) + cells.log_share
    top = joint.max(axis=1, keepdims=True)
    shares = np.exp(joint - top)
    total = shares.sum(axis=1, keepdims=True)
    return (top + np.log(total))[:, 0], shares / total


def _likelihood(blocks: Blocks, trait: Trait) -> tuple[float, tuple[float, float, Array, Array]]:
    """Log-likelihood and its derivatives by logit p, log s, c and g."""
    cells = quadrature_cells(trait)

    def work(block: Block) -> tuple[float, Array, Array]:
        total, shares = cell_shares(block, cells)
        weighted = shares * block.counts[:, None]
        return float(block.counts @ total), weighted.sum(axis=0), block.gather(weighted)

    value, items, votes = blocks.total(work)
    # Derivative by the logit of each vote in each cell: positive votes less those expected.
    residual = votes[:, 1] - votes.sum(axis=1) * cells.chances
    return value, (
        float(items[NODES:].sum() - trait.prevalence * items.sum()),
        float(trait.slope @ residual @ cells.deviation),
        residual.sum(axis=1),
        residual @ cells.trait,
    )


def trait_log_likelihood(blocks: Blocks, trait: Trait) -> float:
    """Log-likelihood of the votes, without penalties."""
    cells = quadrature_cells(trait)
    (value,) = blocks.total(lambda block: (float(block.counts @ cell_shares(block, cells)[0]),))
    return float(value)


def trait_posterior(block: Block, trait: Trait) -> Array:
    """Pr(Y = +1 | pattern) under the one-trait model."""
    return np.asarray(cell_shares(block, quadrature_cells(trait))[1][:, NODES:].sum(axis=1))


# --- tempering ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tempered:
    """Rates under tempered class probabilities.

    Attributes
    ----------
    model : Model
    slope : float
        τ.
    shift : float
        a of q = sigmoid(a + τℓ); zero where the prevalence is not known.
    """

    model: Model
    slope: float
    shift: float


def log_odds(block: Block, model: Model) -> Array:
    """ℓ: posterior log-odds of the positive class under independence, within ±40."""
    tables, prior = model.tables(), model.log_prior()
    odds = block.score(tables[:, :, 1:] - tables[:, :, :1])[:, 0] + prior[1] - prior[0]
    return np.asarray(np.clip(odds, -MOST_LOG_ODDS, MOST_LOG_ODDS))


def tempering_slope(blocks: Blocks, model: Model, trait: Trait) -> float:
    """τ: slope of the logistic regression of the trait model's posterior on ℓ, within [.03, 1].

    One means that the independent model is as sure as the votes allow.
    """
    parts = blocks.thinned().each(
        lambda block: (log_odds(block, model), trait_posterior(block, trait), block.counts)
    )
    odds, posterior, counts = (np.concatenate(part) for part in zip(*parts, strict=True))
    _, slope = regressed(odds, posterior, counts)
    return float(np.clip(slope, LEAST_SLOPE, 1.0))


def regressed(odds: Array, target: Array, counts: Array) -> tuple[float, float]:
    """Weighted logistic regression with intercept, by Newton's method; a hair of ridge keeps it finite."""
    line = np.array([0.0, 0.5])
    design = np.stack([np.ones_like(odds), odds], axis=1)
    ridge = 1e-8 * counts.sum() * np.eye(2)
    for _ in range(100):
        fitted = expit(design @ line)
        gradient = design.T @ (counts * (target - fitted)) - ridge @ line
        curvature = design.T @ (design * (counts * fitted * (1.0 - fitted))[:, None]) + ridge
        step = np.linalg.solve(curvature, gradient)
        line = line + step / max(1.0, float(np.abs(step).max()))
        if np.abs(step).max() < 1e-10:
            break
    return float(line[0]), float(line[1])


def tempered(
    blocks: Blocks, model: Model, slope: float, prevalence: float | None = None
) -> Tempered:
    """Rates from q = sigmoid(τℓ), or, with the prevalence known, sigmoid(a + τℓ) with mean q = p.

    Parameters
    ----------
    blocks : Blocks
    model : Model
        The posterior mode under independence.
    slope : float
        τ.
    prevalence : float, optional
        Pr(Y = +1), where it is known.

    Returns
    -------
    Tempered
    """
    shifts = np.zeros(1)
    if prevalence is not None:
        shifts = shifts_to(blocks, model, slope, np.array([prevalence]))
    positives, sensitivity, specificity = _rates_at(blocks, model, slope, shifts)
    share = prevalence if prevalence is not None else positives[0]
    return Tempered(
        Model.binary(2.0 * float(share) - 1.0, sensitivity[0], specificity[0]),
        slope,
        float(shifts[0]),
    )


def by_prevalence(
    blocks: Blocks, model: Model, slope: float, prevalences: Array
) -> tuple[Array, Array]:
    """Sensitivities and specificities, (G, m) each, under each of G assumed prevalences."""
    shifts = shifts_to(blocks, model, slope, np.asarray(prevalences, dtype=np.float64))
    _, sensitivity, specificity = _rates_at(blocks, model, slope, shifts)
    return sensitivity, specificity


def _rates_at(
    blocks: Blocks, model: Model, slope: float, shifts: Array
) -> tuple[Array, Array, Array]:
    """Mean q, ψ and η for q = sigmoid(a + τℓ), for every shift a."""

    def work(block: Block) -> tuple[Array, Array, Array]:
        q = expit(slope * log_odds(block, model)[:, None] + shifts)
        both = np.concatenate([q, 1.0 - q], axis=1) * block.counts[:, None]
        return q.T @ block.counts, block.gather(both), block.counts.sum()

    positives, votes, items = blocks.total(work)
    of_positive, of_negative = votes[:, :, : len(shifts)], votes[:, :, len(shifts) :]
    smallest = smallest_rate(blocks.tally.sample_size)
    sensitivity = clipped(share(of_positive[:, 1], of_positive.sum(axis=1)), smallest)
    specificity = clipped(share(of_negative[:, 0], of_negative.sum(axis=1)), smallest)
    return positives / items, sensitivity.T, specificity.T


def share(part: Array, whole: Array) -> Array:
    """Part of the whole; one half where there is nothing."""
    return np.asarray(np.divide(part, whole, out=np.full_like(part, 0.5), where=whole > 0))


def shifts_to(blocks: Blocks, model: Model, slope: float, prevalences: Array) -> Array:
    """Find a such that the mean of sigmoid(a + τℓ) is p, for every p: Newton, kept between bounds."""
    parts = blocks.each(lambda block: (slope * log_odds(block, model), block.counts))
    odds, counts = (np.concatenate(part) for part in zip(*parts, strict=True))
    counts = counts / counts.sum()
    return np.array([_shift(odds, counts, p) for p in prevalences])


def _shift(odds: Array, counts: Array, prevalence: float) -> float:
    low, high = logit(prevalence) - odds.max(), logit(prevalence) - odds.min()
    shift = logit(prevalence) - float(counts @ odds)
    for _ in range(60):
        q = expit(odds + shift)
        excess = float(counts @ q) - prevalence
        if abs(excess) < 1e-12:
            break
        low, high = (low, shift) if excess > 0 else (shift, high)
        curvature = float(counts @ (q * (1.0 - q)))
        shift = shift - excess / curvature if curvature > 0 else low
        if not low <= shift <= high:
            shift = (low + high) / 2
    return float(shift)
