"""v and moments -> class imbalance b = Pr(positive) − Pr(negative), when it is not known.

By the third moments (JNK Algorithm 1) or by the restricted likelihood (JNK Algorithm 2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labelfree._moments import Moments, third_moment_ratio
from labelfree._products import Block, Blocks
from labelfree._rates import clipped, rate_slopes, rates, smallest_rate

Array = NDArray[np.float64]

GRID = 41  # points of the coarse scan of the restricted likelihood
EXACT, ROUGH = 1e-13, 1e-4  # how close to the root of the derivative the search stops


@dataclass(frozen=True)
class Imbalance:
    """An estimate of b.

    Attributes
    ----------
    value : float
        Within [−1 + δ, 1 − δ].
    at_boundary : bool
        The estimate ran into ±(1 − δ), where it says little.
    converged : bool
    """

    value: float
    at_boundary: bool
    converged: bool


def margin(sample_size: float) -> float:
    """δ: an imbalance closer than this to ±1 is not told apart from it."""
    return min(max(0.02, 3.0 / sample_size), 0.5)


def tensor_imbalance(
    blocks: Blocks, moments: Moments, vector: Array, *, end: float | None = None
) -> Imbalance:
    """JNK Algorithm 1: b = −α / √(4 + α²), α from the third moments; held within ±`end`."""
    ratio = third_moment_ratio(blocks, moments.mean, vector)
    imbalance = -ratio / np.sqrt(4.0 + ratio**2)
    end = 1.0 - margin(blocks.tally.sample_size) if end is None else end
    return Imbalance(
        float(np.clip(imbalance, -end, end)), bool(abs(imbalance) >= end), converged=True
    )


def likelihood_imbalance(
    blocks: Blocks,
    moments: Moments,
    vector: Array,
    *,
    rough: bool = False,
    end: float | None = None,
) -> Imbalance:
    """JNK Algorithm 2: maximise the restricted likelihood Ĝ(b) over [−1 + δ, 1 − δ], or ±`end`.

    Ĝ is smooth but not concave: a coarse scan finds the hill, then the root of its derivative is
    found. A rough answer, good enough to start a search from, looks at no more than an even spread
    of the patterns and stops early.
    """
    from scipy.optimize import brentq

    end = 1.0 - margin(blocks.tally.sample_size) if end is None else end
    spread = blocks.thinned()
    likelihood = RestrictedLikelihood(spread if rough else blocks, moments, vector)
    tolerance = ROUGH if rough else EXACT
    # Denser towards the ends, where a rare class has its hill.
    even = np.linspace(-1.0, 1.0, GRID)
    grid = end * (np.sin(np.pi / 2 * even) if end > 1.0 - margin(np.inf) else even)
    best = int(np.argmax(RestrictedLikelihood(spread, moments, vector).scan(grid)))
    left, right = grid[max(best - 1, 0)], grid[min(best + 1, GRID - 1)]
    slope = likelihood.slope(grid[best])
    if slope == 0.0:
        return Imbalance(float(grid[best]), at_boundary=False, converged=True)
    outer = right if slope > 0 else left
    if outer == grid[best]:
        return Imbalance(float(outer), at_boundary=True, converged=True)
    if likelihood.slope(outer) * slope > 0:
        # A kink, where a rate meets its bound: climb without the derivative.
        return _climbed(likelihood, left, right, end)
    root, report = brentq(
        likelihood.slope,
        grid[best],
        outer,
        xtol=tolerance,
        rtol=1e-14,
        full_output=True,
        disp=False,
    )
    return Imbalance(float(root), at_boundary=False, converged=bool(report.converged))


def _climbed(likelihood: RestrictedLikelihood, left: float, right: float, end: float) -> Imbalance:
    from scipy.optimize import minimize_scalar

    found = minimize_scalar(
        lambda b: -likelihood.value(b),
        bounds=(left, right),
        method="bounded",
        options={"xatol": 1e-9},
    )
    return Imbalance(float(found.x), bool(abs(found.x) > end - 1e-6), bool(found.success))


class RestrictedLikelihood:
    """Ĝ(b): the mean log-likelihood with the rates that b implies (JNK eqs for ĝ and Ĝ).

    Parameters
    ----------
    blocks : Blocks
    moments : Moments
    vector : (m,) array
        v.
    """

    def __init__(self, blocks: Blocks, moments: Moments, vector: Array) -> None:
        self.blocks = blocks
        self.mean = moments.mean
        self.vector = vector
        self.smallest = smallest_rate(blocks.tally.sample_size)

    def scan(self, grid: Array) -> Array:
        """Ĝ at many points in one pass, up to a constant."""
        tables = self._log_tables(grid)
        prior = np.log(np.stack([(1 - grid) / 2, (1 + grid) / 2], axis=1).reshape(-1))

        def work(block: Block) -> tuple[Array]:
            scores = block.score(tables) + prior
            return (block.counts @ np.logaddexp(scores[:, ::2], scores[:, 1::2]),)

        return np.asarray(self.blocks.total(work)[0])

    def value(self, imbalance: float) -> float:
        """Ĝ(b)."""
        return self._evaluate(imbalance)[0]

    def slope(self, imbalance: float) -> float:
        """Derivative of Ĝ by b."""
        return self._evaluate(imbalance)[1]

    def _evaluate(self, imbalance: float) -> tuple[float, float]:
        log_rates, log_slopes = self._log_rates(imbalance), self._log_slopes(imbalance)
        tables = np.concatenate([log_rates, log_slopes], axis=2)
        prior = np.array([(1 - imbalance) / 2, (1 + imbalance) / 2])
        prior_slope = np.array([-0.5, 0.5]) / prior

        def work(block: Block) -> tuple[float, float, float]:
            scores = block.score(tables)
            joint = scores[:, :2] + np.log(prior)
            total = np.logaddexp(joint[:, 0], joint[:, 1])
            share = np.exp(joint - total[:, None])
            slope = (share * (scores[:, 2:] + prior_slope)).sum(axis=1)
            return (
                float(block.counts @ total),
                float(block.counts @ slope),
                float(block.counts.sum()),
            )

        value, slope, items = self.blocks.total(work)
        return value / items, slope / items

    def _rates(self, imbalance: float) -> tuple[Array, Array]:
        sensitivity, specificity = rates(self.mean, self.vector, imbalance)
        return clipped(sensitivity, self.smallest), clipped(specificity, self.smallest)

    def _log_rates(self, imbalance: float) -> Array:
        """Log Pr(vote given class) as (classifier, vote, class)."""
        sensitivity, specificity = self._rates(imbalance)
        return np.log(_vote_table(sensitivity, specificity))

    def _log_tables(self, grid: Array) -> Array:
        """`_log_rates` at many points side by side, (classifier, vote, class at every point)."""
        mean, vector = self.mean[:, None], self.vector[:, None]
        sensitivity, specificity = (
            clipped(rate, self.smallest) for rate in rates(mean, vector, grid)
        )
        found = np.empty((len(self.vector), 2, len(grid), 2))
        found[:, 0, :, 0], found[:, 1, :, 0] = specificity, 1 - specificity
        found[:, 0, :, 1], found[:, 1, :, 1] = 1 - sensitivity, sensitivity
        return np.asarray(np.log(found).reshape(len(self.vector), 2, -1))

    def _log_slopes(self, imbalance: float) -> Array:
        sensitivity, specificity = self._rates(imbalance)
        raw = rates(self.mean, self.vector, imbalance)
        slopes = rate_slopes(self.vector, imbalance)
        inside = [np.abs(rate - 0.5) < 0.5 - self.smallest for rate in raw]
        up, down = slopes[0] * inside[0], slopes[1] * inside[1]
        change = np.stack([np.stack([down, -up], axis=1), np.stack([-down, up], axis=1)], axis=1)
        return change / _vote_table(sensitivity, specificity)


def _vote_table(sensitivity: Array, specificity: Array) -> Array:
    """Pr(vote given class) as (classifier, vote, class)."""
    negative = np.stack([specificity, 1 - sensitivity], axis=1)
    positive = np.stack([1 - specificity, sensitivity], axis=1)
    return np.stack([negative, positive], axis=1)
