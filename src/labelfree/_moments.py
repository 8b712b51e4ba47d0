"""Tally -> means, covariances and the third-moment sum of binary votes.

Votes count as −1 and +1 (JNK, section 2). Sums are divided by n, not n − 1, so that exact pattern
probabilities give the exact population moments; the difference is far below sampling error.
With missing votes every mean and covariance is of the items where both classifiers voted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labelfree._products import Block, Blocks, label_pairs

Array = NDArray[np.float64]

SIGNS = np.array([-1.0, 1.0])  # the vote that each of the two codes stands for


@dataclass(frozen=True)
class Moments:
    """First and second moments of the votes.

    Attributes
    ----------
    mean : (m,) array
        Mean vote of each classifier; zero for one that never voted.
    covariance : (m, m) array
        Off the diagonal, the pairwise-complete covariance; zero for a pair that never met.
        The diagonal is zero: only the rest carries the signal (JNK Lemma 1).
    pair_counts : (m, m) array
        Items on which both voted; on the diagonal, those on which the one did.
    unlike : (m, m) array, optional
        Of these, the items on which the two voted differently.
    """

    mean: Array
    covariance: Array
    pair_counts: Array
    unlike: Array | None = None

    @property
    def constant(self) -> NDArray[np.bool_]:
        """Classifiers that gave one label only, or none."""
        return 1.0 - self.mean**2 <= 1e-12

    @property
    def votes(self) -> Array:
        """Votes that each classifier gave."""
        return np.diagonal(self.pair_counts)


def moments(blocks: Blocks) -> Moments:
    """Compute the first two moments from the co-occurrence of binary votes."""
    (columns,) = blocks.total(lambda block: (block.cooccurrence(),))
    return _moments_of(columns)


def _moments_of(columns: Array) -> Moments:
    table = label_pairs(columns, len(SIGNS))
    pairs = table.sum(axis=(1, 3))
    met = np.maximum(pairs, np.finfo(float).tiny)
    product = np.einsum("ikjl,k,l->ij", table, SIGNS, SIGNS) / met
    own = np.einsum("ikjl,k->ij", table, SIGNS) / met  # mean of i where j voted too
    covariance = np.where(pairs > 0, product - own * own.T, 0.0)
    np.fill_diagonal(covariance, 0.0)
    unlike = pairs - np.einsum("ikjk->ij", table)
    return Moments(np.diagonal(own).copy(), covariance, pairs, unlike)


def moments_of_all(blocks: Blocks) -> Moments:
    """Compute the same of all items, where the blocks are those of a sample and an engine has summed the rest."""
    whole = blocks.tally.whole
    if whole is None or whole.cooccurrence is None:
        return moments(blocks)
    return _moments_of(whole.cooccurrence)


def third_moment_ratio(blocks: Blocks, mean: Array, direction: Array) -> float:
    """Fit T_ijk = α v_i v_j v_k by least squares over i < j < k (JNK eq. for α̂), without the tensor.

    With x_i = v_i (f_i − μ_i), the sum over i < j < k of x_i x_j x_k is an elementary symmetric
    polynomial, (p1³ − 3 p1 p2 + 2 p3) / 6 in the power sums of x; likewise its weight, in v².
    A missing vote adds nothing to either.
    """
    centred = direction[:, None] * (SIGNS - mean[:, None])
    square = np.broadcast_to(direction[:, None] ** 2, centred.shape)
    powers = np.stack([centred, centred**2, centred**3, square, square**2, square**3], axis=2)

    def sums(block: Block) -> tuple[float, float]:
        if block.voted is None:  # then every pattern has the same weight
            p = block.score(powers[:, :, :3])
            weight = _triples(*(direction**2 @ direction ** (2 * k) for k in (0, 1, 2)))
            return float(block.counts @ _triples(*p.T)), float(weight * block.counts.sum())
        p = block.score(powers)
        return float(block.counts @ _triples(*p.T[:3])), float(block.counts @ _triples(*p.T[3:]))

    whole = blocks.tally.whole
    if whole is not None and whole.cooccurrence is not None:
        above, below = whole.triples(powers)
    else:
        above, below = blocks.total(sums)
    return above / below if below > 0 else 0.0


def _triples(p1: Array, p2: Array, p3: Array) -> Array:
    return (p1**3 - 3 * p1 * p2 + 2 * p3) / 6
