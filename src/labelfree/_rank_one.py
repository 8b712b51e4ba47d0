"""Covariance -> the rank-one vector v, with its sign.

Off its diagonal the covariance of independent classifiers is v vᵀ (JNK Lemma 1). The diagonal says
nothing of v, nor does a pair that never met; these entries must be filled in first. Three ways are
here, measured side by side in `benchmarks/estimators.py`. The leading eigenvector of the covariance
as it stands is inconsistent and is not offered.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labelfree._moments import Moments

Array = NDArray[np.float64]

MOST_ROUNDS = 2000  # of the iteration
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

    def turned(self) -> RankOne:
        """Return the same with the sign of v turned round."""
        return RankOne(-self.vector, self.residual, int((self.vector < 0).sum()), self.converged)


def rank_one(moments: Moments, way: str = "triplets") -> RankOne:
    """Find v from the off-diagonal of the covariance.

    Parameters
    ----------
    moments : Moments
    way : {"triplets", "log-linear", "iterated"}
        How what was not observed is filled in: the diagonal, and pairs that never met.

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
    filled, converged = WAYS[way](matrix, met)
    vector = _scaled(_leading(filled), matrix, met > 0)
    vector = _signed(np.where(live, vector, 0.0))
    cap = np.sqrt(np.maximum(1.0 - moments.mean**2, 0.0))
    vector = np.clip(vector, -cap, cap)
    pairs = met > 0
    misfit = (matrix - np.outer(vector, vector))[pairs]
    residual = float(np.sqrt(np.mean(misfit**2))) if misfit.size else 0.0
    return RankOne(vector, residual, int((vector > 0).sum()), converged)


def _filled_by_triplets(matrix: Array, met: Array) -> tuple[Array, bool]:
    """Least squares for every entry over all triples: d_k Q_ij = Q_ki Q_kj for each pair i, j that met.

    The same holds for a pair that never met: x_kl Q_ij = Q_ki Q_jl. No covariance of ±1 passes 1.
    """
    seen = (met > 0).astype(np.float64)
    above = matrix @ matrix @ matrix
    below = seen @ matrix**2 @ seen
    fill = np.divide(above, below, out=np.zeros_like(above), where=below > 0)
    return np.where(met > 0, matrix, fill.clip(-1.0, 1.0)), True


def _filled_by_logs(matrix: Array, met: Array) -> tuple[Array, bool]:
    """Weighted least squares on log|r_ij| = log|v_i| + log|v_j| (PNAS); the weight of a pair is n_ij r_ij²."""
    size = np.abs(matrix)
    usable = (met > 0) & (size > 0)
    weight = np.where(usable, met * size**2, 0.0)
    log = np.log(np.where(usable, size, 1.0))
    normal = weight + np.diag(weight.sum(axis=1))
    solution = np.linalg.lstsq(normal, (weight * log).sum(axis=1), rcond=None)[0]
    vector = np.where(usable.any(axis=1), np.exp(np.minimum(solution, 0.0)), 0.0)
    signs = np.sign(_filled_by_triplets(matrix, met)[0])
    np.fill_diagonal(signs, 1.0)
    return np.where(met > 0, matrix, signs * np.outer(vector, vector)), True


def _filled_by_iteration(matrix: Array, met: Array) -> tuple[Array, bool]:
    """Fit v vᵀ to what was observed by repeating: fill the rest from v vᵀ, take the leading eigenvector."""
    filled, _ = _filled_by_triplets(matrix, met)
    for _ in range(MOST_ROUNDS):
        vector = _leading(filled)
        new = np.where(met > 0, matrix, np.outer(vector, vector))
        change, size = np.max(np.abs(new - filled)), np.max(np.abs(new))
        filled = new
        if change <= ROUND_TOLERANCE * size:
            return filled, True
    return filled, False


WAYS: dict[str, Callable[[Array, Array], tuple[Array, bool]]] = {
    "triplets": _filled_by_triplets,
    "log-linear": _filled_by_logs,
    "iterated": _filled_by_iteration,
}


def _leading(matrix: Array) -> Array:
    """Leading eigenvector, scaled by the root of its eigenvalue."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray(vectors[:, -1] * np.sqrt(max(values[-1], 0.0)))


def _scaled(vector: Array, matrix: Array, pairs: NDArray[np.bool_]) -> Array:
    """Least-squares scale of v vᵀ on the off-diagonal."""
    outer = np.outer(vector, vector)[pairs]
    below = float(outer @ outer)
    if below == 0.0:
        return vector
    return np.asarray(vector * np.sqrt(max(float(matrix[pairs] @ outer) / below, 0.0)))


def _signed(vector: Array) -> Array:
    positive, negative = int((vector > 0).sum()), int((vector < 0).sum())
    turn = negative > positive or (negative == positive and vector.sum() < 0)
    return -vector if turn else vector
