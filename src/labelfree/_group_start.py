"""Where the search for groups starts: moments of classifiers of different groups.

The start matters: from the answer of the independent model even the true partition may end on the
wrong hill. So v comes from pairs of classifiers of different blocks, b from triples of them, and each
block's table from how its joint votes go with the votes of the other blocks.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from labelfree._categories import Layout, Partition, votes_of_categories, votes_of_cells
from labelfree._imbalance import margin
from labelfree._moments import SIGNS, Moments
from labelfree._rank_one import rank_one
from labelfree._rates import clipped, rates, smallest_rate

Array = NDArray[np.float64]

SMALLEST_SHARE = 0.02  # of a class in a category
START_WEIGHT = 0.1  # of independence in the tables; it keeps them inside (0, 1)


def masked(seen: Moments, partition: Partition) -> Moments:
    """Return the moments as if the classifiers of one block had never met."""
    inside = np.zeros(seen.covariance.shape, dtype=bool)
    for block in partition:
        inside[np.ix_(block, block)] = True
    np.fill_diagonal(inside, val=False)
    return replace(
        seen,
        covariance=np.where(inside, 0.0, seen.covariance),
        pair_counts=np.where(inside, 0.0, seen.pair_counts),
    )


def spectral_start(layout: Layout, seen: Moments, prevalence: float | None) -> tuple[float, Array]:
    """Take v from pairs, b from triples and tables from cell–vote pairs, all of different blocks.

    Returns
    -------
    prevalence : float
    tables : (2, cells) array
        Of all blocks side by side.
    """
    vector = rank_one(masked(seen, layout.partition)).vector
    sums, squares = _block_sums(layout, seen.mean, vector)
    imbalance = _imbalance(layout, sums, squares) if prevalence is None else 2.0 * prevalence - 1.0
    smallest = max(smallest_rate(layout.tally.sample_size), 1e-4)
    psi, eta = (clipped(rate, smallest) for rate in rates(seen.mean, vector, imbalance))
    alone = np.stack([_product(layout, 1.0 - eta), _product(layout, psi)])
    tables = _tables(layout, sums, squares, imbalance)
    single = np.repeat([len(block) == 1 for block in layout.partition], layout.cell_sizes)
    mixed = np.where(single, alone, (1.0 - START_WEIGHT) * tables + START_WEIGHT * alone)
    return (1.0 + imbalance) / 2.0, mixed


def _product(layout: Layout, rate: Array) -> Array:
    """Cells' probabilities were the classifiers independent, (cells,)."""
    parts = []
    for block in layout.partition:
        own = rate[list(block)]
        parts.append(np.where(votes_of_cells(len(block)) == 1, own, 1.0 - own).prod(axis=1))
    return np.concatenate(parts)


def _block_sums(layout: Layout, mean: Array, vector: Array) -> tuple[Array, Array]:
    """Σ v_i (f_i − μ_i) and Σ v_i² over those of a block who voted, for every category."""
    sums, squares = [], []
    for block in layout.partition:
        places = list(block)
        votes = (votes_of_cells if layout.complete else votes_of_categories)(len(block))
        centred = np.where(votes >= 0, SIGNS[votes] - mean[places], 0.0)
        sums.append(centred @ vector[places])
        squares.append((votes >= 0) @ vector[places] ** 2)
    return np.concatenate(sums), np.concatenate(squares)


def _imbalance(layout: Layout, sums: Array, squares: Array) -> float:
    """JNK Algorithm 1 on triples of different blocks: e3 of the blocks' sums, not of the votes."""
    above = (layout.counts * _triples(layout, sums)).sum()
    below = (layout.counts * _triples(layout, squares)).sum()
    ratio = above / below if below > 0 else 0.0
    end = 1.0 - margin(layout.tally.sample_size)
    return float(np.clip(-ratio / np.sqrt(4.0 + ratio**2), -end, end))


def _triples(layout: Layout, values: Array) -> Array:
    """Sum over three different blocks of the product of their values (Newton's identity for e3)."""
    p1, p2, p3 = (layout.look_up(values**power) for power in (1, 2, 3))
    return np.asarray((p1**3 - 3 * p1 * p2 + 2 * p3) / 6)


def _tables(layout: Layout, sums: Array, squares: Array, imbalance: float) -> Array:
    """Tables of the blocks from the covariance of their categories with votes of other blocks.

    E(f_j − μ_j given category) = 2 (Pr(positive given category) − p) v_j / √(1 − b²) for j in
    another block (as JNK Lemma 1); least squares over j.
    """
    histogram = layout.histogram
    above = layout.collect(layout.counts * layout.look_up(sums)) - sums * histogram
    below = layout.collect(layout.counts * layout.look_up(squares)) - squares * histogram
    level = np.divide(above, below, out=np.zeros_like(above), where=below > 0)
    share = (1.0 + imbalance) / 2.0 + 0.5 * np.sqrt(1.0 - imbalance**2) * level
    share = np.clip(share, SMALLEST_SHARE, 1.0 - SMALLEST_SHARE)
    even = np.repeat(1.0 / np.array(layout.cell_sizes), layout.cell_sizes)
    even = np.stack([even, even])
    counts = layout.spread(histogram * np.stack([1.0 - share, share]), even) + even
    return np.asarray(counts / layout.totals(counts))
