"""What a walk through the numerical rooms brings back, whichever way it took."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labelfree._choice import Choice
from labelfree._dependence import Alarm

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Walked:
    """The answer of a walk.

    Attributes
    ----------
    choice : Choice or None
        None where the votes hold no signal.
    alarm : Alarm or None
    votes : (m,) array
        That each classifier gave.
    constant : (m,) array of bool
        Who gave one label only.
    converged : bool
    vector : (m,) array, or None
        The rank-one vector, of two classes.
    curve : tuple of arrays (G,), or None
        Imbalances and the log-likelihood over them, of two classes.
    missed : float
        By how much the class probabilities, each found by itself, missed summing to one.
    """

    choice: Choice | None
    alarm: Alarm | None
    votes: Array
    constant: NDArray[np.bool_]
    converged: bool
    vector: Array | None = None
    curve: tuple[Array, Array] | None = None
    missed: float = 0.0
