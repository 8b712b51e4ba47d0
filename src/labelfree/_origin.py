"""Where an estimate comes from: the version, the options, the votes, and the likelihood that was climbed.

What a report needs to say how its numbers were computed, and what a reader needs to make them again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelfree._counting import merged_dense
from labelfree._imbalance import RestrictedLikelihood, margin
from labelfree._moments import Moments
from labelfree._patterns import words_of_codes
from labelfree._products import Blocks
from labelfree._tally import DENSE_CELLS, Tally

Array = NDArray[np.float64]

DEFAULTS = {
    "method": "map",
    "prevalence": None,
    "known": None,
    "dependence": "auto",
    "level": 0.95,
    "vector": "triplets",
    "prior": 1.0,
    "ordered": False,
}
POINTS = 81  # of the curve: smooth to the eye
PARTS = 2  # of it: with ten classifiers the whole is large enough for threads, and too small to gain by them


@dataclass(frozen=True, eq=False)
class Origin:
    """How an estimate was computed.

    Attributes
    ----------
    version : str
        Of labelfree.
    options : mapping
        Options of grading that were not left at their defaults.
    tally_hash : str
        SHA-256 of the distinct patterns and their counts, with the names of classifiers and classes:
        the same for the same votes, in whatever order the items stood and in whatever kind of table.
    imbalances, log_likelihood : (G,) arrays
        Ĝ over the imbalance: the mean log-likelihood of an item's votes with the rates that the
        imbalance implies (JNK Algorithm 2). Empty where there is none: the votes hold no signal, or
        there are more than two classes.
    """

    version: str
    options: Mapping[str, Any]
    tally_hash: str
    imbalances: Array
    log_likelihood: Array


def origin_of(
    counted: Tally, options: Mapping[str, Any], likelihood: tuple[Array, Array] | None
) -> Origin:
    """Note where an estimate comes from."""
    imbalances, values = likelihood or (np.zeros(0), np.zeros(0))
    given = {name: _plain(value) for name, value in options.items()}
    return Origin(
        _version(),
        {name: value for name, value in given.items() if value != DEFAULTS[name]},
        hash_of(counted),
        imbalances,
        values,
    )


@cache
def _version() -> str:
    """Look up the version once: it takes as long as many an estimate."""
    from importlib.metadata import version

    return version("labelfree")


def likelihood_curve(blocks: Blocks, moments: Moments, vector: Array) -> tuple[Array, Array]:
    """Ĝ over the whole range of the imbalance, on no more than an even spread of the patterns."""
    spread = blocks.thinned()
    end = 1.0 - margin(blocks.tally.sample_size)
    grid = np.linspace(-end, end, POINTS)
    likelihood = RestrictedLikelihood(spread, moments, vector)
    total = np.concatenate([likelihood.scan(part) for part in np.array_split(grid, PARTS)])
    return grid, total / spread.tally.items


def hash_of(counted: Tally) -> str:
    """SHA-256 of a tally, the same whether its patterns are stored dense or sparse."""
    found = hashlib.sha256(repr((counted.classifiers, counted.classes)).encode())
    patterns: Any = counted.patterns
    if counted.is_sparse and len(counted) * len(counted.classifiers) <= DENSE_CELLS:
        codes = patterns.toarray().astype(np.int64) - 1
        arrays = [*merged_dense(words_of_codes(codes, counted.shape), counted.counts)]
    elif counted.is_sparse:
        arrays = [patterns.indptr, patterns.indices, patterns.data, counted.counts]
    else:
        arrays = [patterns, counted.counts]  # in the one order that merging gives
    for array in arrays:
        found.update(f"{array.dtype.str} {array.shape};".encode())
        found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()


def _plain(option: Any) -> Any:
    """Write an option as JSON holds it: mappings, lists, text and numbers."""
    if isinstance(option, Mapping):
        return {str(name): _plain(value) for name, value in option.items()}
    if isinstance(option, str) or option is None:
        return option
    if isinstance(option, int | float | np.integer | np.floating):
        return float(option)
    return [_plain(each) for each in option]


def plain_origin(found: Origin) -> dict[str, Any]:
    """Write where an estimate comes from as plain values."""
    return {
        "labelfree": found.version,
        "options": dict(found.options),
        "tally_hash": found.tally_hash,
        "imbalances": found.imbalances.tolist(),
        "log_likelihood": found.log_likelihood.tolist(),
    }


def revived_origin(kept: Mapping[str, Any] | None) -> Origin | None:
    """Read what :func:`plain_origin` wrote; estimates saved before it was kept have none."""
    if kept is None:
        return None
    curve = np.array([kept["imbalances"], kept["log_likelihood"]], dtype=np.float64)
    if not np.isfinite(curve).all():
        raise ValueError("a number that is not finite")
    return Origin(kept["labelfree"], dict(kept["options"]), kept["tally_hash"], curve[0], curve[1])
