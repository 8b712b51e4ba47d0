"""Imbalance -> sensitivity and specificity (JNK Lemma 2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def smallest_rate(sample_size: float) -> float:
    """Return the rate below which none is told apart from zero: no vote in n speaks for less."""
    return max(1e-9, 0.5 / (sample_size + 1.0))


def rates(mean: Array, vector: Array, imbalance: float | Array) -> tuple[Array, Array]:
    """Sensitivity and specificity, as they come: sampling error may push them past 0 or 1.

    ψ = ½(1 + μ + v √((1−b)/(1+b))),  η = ½(1 − μ + v √((1+b)/(1−b)))   (JNK eq. for ψ, η)
    """
    tilt = np.sqrt((1.0 - imbalance) / (1.0 + imbalance))
    return 0.5 * (1.0 + mean + vector * tilt), 0.5 * (1.0 - mean + vector / tilt)


def rate_slopes(vector: Array, imbalance: float) -> tuple[Array, Array]:
    """Derivatives of :func:`rates` by the imbalance."""
    tilt = np.sqrt((1.0 - imbalance) / (1.0 + imbalance))
    slope = -1.0 / (tilt * (1.0 + imbalance) ** 2)
    return 0.5 * vector * slope, -0.5 * vector * slope / tilt**2


def clipped(rate: Array, smallest: float) -> Array:
    """Rates inside [smallest, 1 − smallest]."""
    return np.clip(rate, smallest, 1.0 - smallest)


def logit(rate: Array | float) -> Array:
    """Log-odds, finite at 0 and 1."""
    inside = np.clip(rate, 1e-12, 1 - 1e-12)
    return np.asarray(np.log(inside / (1 - inside)))


def expit(odds: Array | float) -> Array:
    """Probability of log-odds; the hyperbolic tangent overflows nowhere."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * np.asarray(odds))))
