"""Covariance -> the rank-one vector v, with its sign.

Off its diagonal the covariance of independent classifiers is v vᵀ (JNK Lemma 1). The diagonal says
nothing of v and must be filled in first; three ways are here, measured side by side in
`benchmarks/statistics.py`. The leading eigenvector of the covariance as it stands is inconsistent
and is not offered.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labelfree._moments import Moments

Array = NDArray[np.float64]

MOST_ROUNDS = 2000  # of the iterated diagonal
ROUND_TOLERANCE = 1e-14


@dataclass(frozen=True)
class RankOne:
    """The vector v and how well it fits.

    Attributes
    ----------
    vector : (m,) array
        v, with |v_i| ≤ √(1 − μ_i²); zero for a constant classifier.
    residual : float
        Root mean square of covariance − v vᵀ off the diagonal.
    positive : int
        Entries above zero: these classifiers are taken to be better than chance.
    converged : bool
    """

    vector: Array
    residual: float
    positive: int
    converged: bool


def rank_one(moments: Moments, way: str = "triplets") -> RankOne:
    """Find v from the off-diagonal of the covariance.

    Parameters
    ----------
    moments : Moments
    way : {"triplets", "log-linear", "iterated"}
        How the diagonal is filled in.

    Returns
    -------
    RankOne

    Notes
    -----
    The leading (not largest in magnitude) eigenvector of the filled matrix is rescaled by least
    squares on the off-diagonal. Its sign makes most entries positive, ties by their sum (assumption
    iii of JNK). Entries are capped at √(1 − μ_i²), beyond which no classifier can be; without the
    cap a few classifiers run into the Heywood case.
    """
    live = ~moments.constant & (moments.votes > 0)
    matrix = np.where(np.outer(live, live), moments.covariance, 0.0)
    met = np.where(np.outer(live, live), moments.pair_counts, 0.0)
    np.fill_diagonal(met, 0.0)
    diagonal, converged = WAYS[way](matrix, met)
    vector = _scaled(_leading(matrix, diagonal), matrix, met > 0)
    vector = _signed(np.where(live, vector, 0.0))
    cap = np.sqrt(np.maximum(1.0 - moments.mean**2, 0.0))
    vector = np.clip(vector, -cap, cap)
    pairs = met > 0
    misfit = (matrix - np.outer(vector, vector))[pairs]
    residual = float(np.sqrt(np.mean(misfit**2))) if misfit.size else 0.0
    return RankOne(vector, residual, int((vector > 0).sum()), converged)


def _triplet_diagonal(matrix: Array, met: Array) -> tuple[Array, bool]:
    """Least squares for d_k over all triples: d_k Q_ij = Q_ki Q_kj for every pair i, j other than k."""
    seen = (met > 0).astype(np.float64)
    above = np.einsum("ki,ki->k", matrix @ matrix, matrix)
    below = np.einsum("ki,ki->k", seen @ matrix**2, seen)
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0), True


def _log_linear_diagonal(matrix: Array, met: Array) -> tuple[Array, bool]:
    """Weighted least squares on log|r_ij| = log|v_i| + log|v_j| (PNAS); the weight of a pair is n_ij r_ij²."""
    size = np.abs(matrix)
    usable = (met > 0) & (size > 0)
    weight = np.where(usable, met * size**2, 0.0)
    log = np.log(np.where(usable, size, 1.0))
    normal = weight + np.diag(weight.sum(axis=1))
    solution = np.linalg.lstsq(normal, (weight * log).sum(axis=1), rcond=None)[0]
    return np.where(usable.any(axis=1), np.exp(2 * solution), 0.0), True


def _iterated_diagonal(matrix: Array, met: Array) -> tuple[Array, bool]:
    """Fit v vᵀ to the off-diagonal by repeating: put v² on the diagonal, take the leading eigenvector."""
    diagonal, _ = _triplet_diagonal(matrix, met)
    for _ in range(MOST_ROUNDS):
        new = _leading(matrix, diagonal) ** 2
        done = bool(
            np.max(np.abs(new - diagonal), initial=0.0)
            <= ROUND_TOLERANCE * max(new.max(initial=0.0), 1e-300)
        )
        diagonal = new
        if done:
            return diagonal, True
    return diagonal, False


WAYS: dict[str, Callable[[Array, Array], tuple[Array, bool]]] = {
    "triplets": _triplet_diagonal,
    "log-linear": _log_linear_diagonal,
    "iterated": _iterated_diagonal,
}


def _leading(matrix: Array, diagonal: Array) -> Array:
    """Leading eigenvector, scaled by the root of its eigenvalue."""
    values, vectors = np.linalg.eigh(matrix + np.diag(diagonal))
    return vectors[:, -1] * np.sqrt(max(values[-1], 0.0))


def _scaled(vector: Array, matrix: Array, pairs: NDArray[np.bool_]) -> Array:
    """Least-squares scale of v vᵀ on the off-diagonal."""
    outer = np.outer(vector, vector)[pairs]
    below = float(outer @ outer)
    if below == 0.0:
        return vector
    return vector * np.sqrt(max(float(matrix[pairs] @ outer) / below, 0.0))


def _signed(vector: Array) -> Array:
    positive, negative = int((vector > 0).sum()), int((vector < 0).sum())
    turn = negative > positive or (negative == positive and vector.sum() < 0)
    return -vector if turn else vector
