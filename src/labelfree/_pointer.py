"""Which pair of classifiers shares errors? A score of how much each breaks the rank-one law."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

MOST_SCORED = 200  # classifiers; the score costs their fourth power


def pointer(covariance: Array) -> Array:
    """Score how much each pair breaks the rank-one law (Jaffe et al. 2016).

    s_ij = Σ over k ≠ l, both other than i and j, of |r_ij r_kl − r_il r_kj|. For classifiers that
    are independent given the class every term is zero.

    Parameters
    ----------
    covariance : (m, m) array
        Its diagonal is not looked at.

    Returns
    -------
    (m, m) array
        Symmetric, zero on the diagonal.
    """
    r = np.array(covariance, dtype=np.float64)
    np.fill_diagonal(r, 0.0)
    size = np.abs(r)
    sums = size.sum(axis=1)
    # Over all k and l the sum is plain; what it counts too much has a closed form.
    score = -(size @ size) - size * (sums[:, None] + sums[None, :]) + r**2
    term = np.empty_like(r)
    for i, j in combinations(range(len(r)), 2):
        np.multiply.outer(r[j], r[i], out=term)
        term -= r[i, j] * r
        np.abs(term, out=term)
        score[i, j] = score[j, i] = score[i, j] + term.sum()
    np.fill_diagonal(score, 0.0)
    return np.asarray(np.maximum(score, 0.0))
