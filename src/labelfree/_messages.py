"""Messages between items and classifiers, along the votes (Karger, Oh and Shah 2011)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from labelfree._errors import NotIdentifiedError
from labelfree._tally import Tally

Array = NDArray[np.float64]

STANDSTILL = 1e-10  # change of the unit vector of weights that ends the rounds


def pass_messages(found: Tally, rounds: int) -> tuple[Array, bool]:
    """Pass messages along the votes; one a pattern and classifier, as equal items send the same."""
    rows, columns, signs = _edges(found)
    counts = found.counts[rows]
    m, patterns = len(found.classifiers), len(found)
    weights, heard = np.ones(m), np.zeros(len(rows))
    to_patterns = np.ones(len(rows))
    for place in range(rounds):
        told = signs * to_patterns
        heard = np.bincount(rows, told, patterns)[rows] - told
        told = signs * heard
        total = np.bincount(columns, counts * told, m)
        to_patterns = total[columns] - told  # of the items with this pattern, one is left out
        size = float(np.linalg.norm(total))
        if size == 0.0:
            raise NotIdentifiedError(
                "The messages between items and classifiers died out, as no item has two votes; give items more votes."
            )
        new = total / size
        to_patterns = to_patterns / size
        if place and np.max(np.abs(new - weights)) <= STANDSTILL:
            return new, True
        weights = new
    return weights, False


def _edges(found: Tally) -> tuple[NDArray[np.intp], NDArray[np.intp], Array]:
    """Every vote of every pattern: its pattern, its classifier, and −1 or +1."""
    codes = found.codes()
    if isinstance(codes, np.ndarray):
        rows, columns = np.nonzero(codes >= 0)
        given = codes[rows, columns]
    else:
        rows = np.repeat(np.arange(len(found)), np.diff(codes.indptr))
        columns, given = codes.indices.astype(np.intp), codes.data - 1
    return np.asarray(rows), np.asarray(columns), np.where(given > 0, 1.0, -1.0)
