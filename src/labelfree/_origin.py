"""Where an estimate comes from: the version, the options, the votes, and the likelihood that was climbed.

What a report needs to say how its numbers were computed, and what a reader needs to make them again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
}
POINTS = 81  # of the curve: smooth to the eye
KEPT_CELLS = 1 << 22  # votes of patterns that an estimate holds on to; packed, half a megabyte


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
    tally : Tally or None
        The votes themselves, where they have few distinct patterns. Never saved.
    """

    version: str
    options: Mapping[str, Any]
    tally_hash: str
    imbalances: Array
    log_likelihood: Array
    tally: Tally | None = field(default=None, repr=False)


def origin_of(
    counted: Tally, options: Mapping[str, Any], likelihood: tuple[Array, Array] | None
) -> Origin:
    """Note where an estimate comes from."""
    from importlib.metadata import version

    imbalances, values = likelihood or (np.zeros(0), np.zeros(0))
    given = {name: _plain(value) for name, value in options.items()}
    return Origin(
        version("labelfree"),
        {name: value for name, value in given.items() if value != DEFAULTS[name]},
        hash_of(counted),
        imbalances,
        values,
        counted if len(counted) * len(counted.classifiers) <= KEPT_CELLS else None,
    )


def likelihood_curve(blocks: Blocks, moments: Moments, vector: Array) -> tuple[Array, Array]:
    """Ĝ over the whole range of the imbalance, on no more than an even spread of the patterns."""
    spread = blocks.thinned()
    end = 1.0 - margin(blocks.tally.sample_size)
    grid = np.linspace(-end, end, POINTS)
    total = RestrictedLikelihood(spread, moments, vector).scan(grid)
    return grid, total / spread.tally.items


def hash_of(counted: Tally) -> str:
    """SHA-256 of a tally, the same whether its patterns are stored dense or sparse."""
    found = hashlib.sha256(repr((counted.classifiers, counted.classes)).encode())
    patterns: Any = counted.patterns
    if counted.is_sparse and len(counted) * len(counted.classifiers) <= DENSE_CELLS:
        codes = patterns.toarray().astype(np.int64) - 1
        words = words_of_codes(codes, counted.shape)
        order = np.lexsort(words.T[::-1])
        arrays = [words[order], counted.counts[order]]
    elif counted.is_sparse:
        arrays = [patterns.indptr, patterns.indices, patterns.data, counted.counts]
    else:
        order = np.lexsort(patterns.T[::-1])
        arrays = [patterns[order], counted.counts[order]]
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
