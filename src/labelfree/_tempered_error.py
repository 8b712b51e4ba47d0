"""Sampling error of tempered rates: what each item adds to them, by every way it can.

An item moves a tempered rate by its own weight in it; through the independent model, whose log-odds ℓ
it moves; through τ, which it moves itself and by way of ℓ and of the one-trait model; and, where the
prevalence is known, through the shift a. Each way is a derivative in closed form, so the sum of the
squares of all items' influences (Huber's sandwich) costs a few products with the votes. Taking ℓ and τ
as known gives a fraction of the error. It is sampling error only: nothing here knows how wrong the
model is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labelfree._difficulty import (
    COEFFICIENT_SPREAD,
    LEAST_SLOPE,
    LOG_SPREAD_SPREAD,
    MOST_LOG_ODDS,
    NODES,
    Tempered,
    Trait,
    cell_shares,
    log_odds,
    quadrature_cells,
    regressed,
)
from labelfree._latent_class import Model
from labelfree._products import Block, Blocks
from labelfree._rates import expit

Array = NDArray[np.float64]


def tempered_covariance(
    blocks: Blocks, model: Model, covariance: Array, trait: Trait, cool: Tempered
) -> Array:
    """Covariance of the logits of tempered rates, sampling error only.

    Parameters
    ----------
    blocks : Blocks
        No more than an even spread of the patterns is looked at.
    model, covariance : Model, (1 + 2m, 1 + 2m) array
        The posterior mode under independence and the covariance of its logits, which is zero where
        they are known.
    trait : Trait
        The one-trait model that τ came from.
    cool : Tempered

    Returns
    -------
    (1 + 2m, 1 + 2m) array
        In the order of :func:`labelfree._latent_class.information`: the prevalence, then for each
        classifier Pr(positive vote given negative) and given positive. Diagonal entries are no
        smaller than those of a binomial share of the items of that class.
    """
    known = bool(covariance[0, 0] == 0.0)
    spread = blocks.thinned()
    votes = _Votes.of(spread)
    odds = np.concatenate(spread.each(lambda block: log_odds(block, model)))
    of_odds = votes.by_rate(model) * (np.abs(odds) < MOST_LOG_ODDS)[:, None]
    of_model = _scores(votes, model, expit(odds)) @ covariance
    of_slope = _slope_influence(spread, votes, trait, odds, of_odds, of_model, cool.slope)
    influence, own = _influence(votes, cool, odds, of_odds, of_model, of_slope, known=known)
    found = influence.T @ (influence * votes.counts[:, None])
    short = np.maximum(own - np.diagonal(found), 0.0)
    short[0] *= not known
    thinned = spread.tally.items / blocks.tally.items
    return np.asarray((found + np.diag(short)) * thinned)


@dataclass(frozen=True)
class _Votes:
    """The patterns laid out: who voted +, who voted at all, how often."""

    ones: Array  # (P, m)
    voted: Array  # (P, m)
    counts: Array  # (P,)

    @classmethod
    def of(cls, blocks: Blocks) -> _Votes:
        ones, voted, counts = zip(*blocks.each(_laid_out), strict=True)
        return cls(np.concatenate(ones), np.concatenate(voted), np.concatenate(counts))

    def by_rate(self, model: Model) -> Array:
        """Derivative of ℓ by the logits: 1, then Pr(+ given −) − vote and vote − Pr(+ given +)."""
        slopes = np.ones((len(self.counts), 1 + 2 * self.ones.shape[1]))
        slopes[:, 1::2] = self.voted * model.confusion[:, 0, 1] - self.ones
        slopes[:, 2::2] = self.ones - self.voted * model.confusion[:, 1, 1]
        return slopes


def _laid_out(block: Block) -> tuple[Array, Array, Array]:
    ones = block.ones if isinstance(block.ones, np.ndarray) else block.ones.toarray()
    if block.voted is None:
        return ones, np.ones_like(ones), block.counts
    voted = block.voted if isinstance(block.voted, np.ndarray) else block.voted.toarray()
    return ones, voted, block.counts


def _scores(votes: _Votes, model: Model, q: Array) -> Array:
    """Each pattern's score in the logits when its positive class has probability q."""
    scores = votes.by_rate(model)
    scores[:, 0] = q - model.class_probabilities[1]
    scores[:, 1::2] *= -(1.0 - q)[:, None]
    scores[:, 2::2] *= q[:, None]
    return scores


def _slope_influence(
    blocks: Blocks,
    votes: _Votes,
    trait: Trait,
    odds: Array,
    of_odds: Array,
    of_model: Array,
    slope: float,
) -> Array:
    """What each item adds to τ, which solves Σ (t − sigmoid(α + τℓ)) (1, ℓ) = 0 for the trait model's posterior t."""
    if not LEAST_SLOPE < slope < 1.0:
        return np.zeros(len(odds))
    posterior, scores, posterior_slopes = _trait_parts(blocks, votes, trait)
    intercept, _ = regressed(odds, posterior, votes.counts)
    fitted = expit(intercept + slope * odds)
    design = np.stack([np.ones_like(odds), odds], axis=1)
    curved = votes.counts * fitted * (1.0 - fitted)
    by_trait = (design * votes.counts[:, None]).T @ posterior_slopes
    by_model = -slope * (design * curved[:, None]).T @ of_odds
    by_model[1] += (votes.counts * (posterior - fitted)) @ of_odds
    moved = design * (posterior - fitted)[:, None] + of_model @ by_model.T
    moved += scores @ np.linalg.solve(_trait_information(scores, votes.counts), by_trait.T)
    return np.asarray(np.linalg.solve(design.T @ (design * curved[:, None]), moved.T)[1])


def _trait_information(scores: Array, counts: Array) -> Array:
    """Outer products of the scores, and the curvature of the penalties (p's is of no account)."""
    m = (scores.shape[1] - 2) // 2
    penalty = [1.0, LOG_SPREAD_SPREAD**-2.0, *[COEFFICIENT_SPREAD**-2.0] * (2 * m)]
    return np.asarray(scores.T @ (scores * counts[:, None]) + np.diag(penalty))


def _trait_parts(blocks: Blocks, votes: _Votes, trait: Trait) -> tuple[Array, Array, Array]:
    """Posterior t of the positive class, the scores in logit p, log s, c and g, and the slopes of t by these.

    The score of a pattern is the mean of its cells' scores; t moves by the part of that mean that is
    the positive cells' own, less t times the whole.
    """
    cells = quadrature_cells(trait)
    shares = np.concatenate(blocks.each(lambda block: cell_shares(block, cells)[1]))
    whole = _trait_scores(votes, trait, shares)
    of_positive = shares.copy()
    of_positive[:, :NODES] = 0.0
    posterior = of_positive.sum(axis=1)
    part = _trait_scores(votes, trait, of_positive)
    return posterior, whole, part - posterior[:, None] * whole


def _trait_scores(votes: _Votes, trait: Trait, shares: Array) -> Array:
    """Sum over the cells of share · score."""
    cells = quadrature_cells(trait)
    total = shares.sum(axis=1)[:, None]

    def residual(weights: Array) -> Array:
        """Σ share · weight · (vote − chance), for each classifier."""
        weighted = shares * weights
        expected = votes.voted * (weighted @ cells.chances.T)
        return np.asarray(votes.ones * weighted.sum(axis=1)[:, None] - expected)

    by_class = shares[:, NODES:].sum(axis=1)[:, None] - trait.prevalence * total
    by_spread = residual(cells.deviation) @ trait.slope
    by_offset, by_slope = residual(np.ones(2 * NODES)), residual(cells.trait)
    return np.concatenate([by_class, by_spread[:, None], by_offset, by_slope], axis=1)


def _influence(
    votes: _Votes,
    cool: Tempered,
    odds: Array,
    of_odds: Array,
    of_model: Array,
    of_slope: Array,
    *,
    known: bool,
) -> tuple[Array, Array]:
    """What each item adds to the logits of the tempered rates; and the binomial variances of these."""
    q = expit(cool.shift + cool.slope * odds)
    curved = votes.counts * q * (1.0 - q)
    model = cool.model
    rate = np.concatenate([model.class_probabilities[1:], model.confusion[:, :, 1].reshape(-1)])
    whole = np.empty(len(rate))
    whole[0] = votes.counts.sum()
    whole[1::2] = (votes.counts * (1.0 - q)) @ votes.voted
    whole[2::2] = (votes.counts * q) @ votes.voted
    size = np.maximum(whole * rate * (1.0 - rate), 1e-12)
    by_q = votes.by_rate(model) / size
    own = _scores(votes, model, q) / size
    if known:
        by_q[:, 0] = own[:, 0] = 0.0
    by_slope, by_model = (curved * odds) @ by_q, cool.slope * (of_odds * curved[:, None]).T @ by_q
    total = own + np.outer(of_slope, by_slope) + of_model @ by_model
    if known:
        # The shift keeps the mean of q where it is.
        moved = q - model.class_probabilities[1] + of_slope * (curved @ odds)
        moved += cool.slope * of_model @ (curved @ of_odds)
        total -= np.outer(moved / max(curved.sum(), 1e-12), curved @ by_q)
    return total, 1.0 / size
