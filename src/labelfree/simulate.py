"""Votes drawn from known rates, for tests, benchmarks and planning.

>>> from labelfree import simulate
>>> drawn = simulate.votes(1000, sensitivity=[0.8, 0.7, 0.9], specificity=[0.7, 0.9, 0.6], seed=1)
>>> drawn.votes.shape, drawn.truth.shape
((1000, 3), (1000,))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import index
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labelfree._errors import OptionsError
from labelfree._tally import Tally

Array = NDArray[np.float64]

MISSING = -1
MOST_EXACT = 20  # classifiers whose 2^m patterns are laid out one by one


@dataclass(frozen=True)
class Simulated:
    """Votes with their truth.

    Attributes
    ----------
    votes : (n, m) array of int8
        0 and 1; −1 where a vote is missing (pass ``missing=-1`` to :func:`labelfree.estimate`).
    truth : (n,) array of int8
    sensitivity, specificity : (m,) arrays
        The rates of each classifier by itself; a copying one has those of a mixture with its model.
    prevalence : float
    """

    votes: NDArray[np.int8]
    truth: NDArray[np.int8]
    sensitivity: Array
    specificity: Array
    prevalence: float


def rates(
    classifiers: int, low: float = 0.5, high: float = 0.8, seed: int | None = 0
) -> tuple[Array, Array]:
    """Draw sensitivities and specificities uniformly, as in JNK section 6.1.

    Parameters
    ----------
    classifiers : int
    low, high : float
    seed : int or None

    Returns
    -------
    sensitivity, specificity : (m,) arrays
    """
    classifiers = _whole("classifiers", classifiers)
    for name, value in (("low", low), ("high", high)):
        _probabilities(name, value, 0)
    if low > high:
        raise OptionsError(f"low= must not be above high=, got {low} and {high}.")
    random = _random(seed)
    return random.uniform(low, high, classifiers), random.uniform(low, high, classifiers)


def votes(
    items: int,
    *,
    classifiers: int | None = None,
    sensitivity: ArrayLike | None = None,
    specificity: ArrayLike | None = None,
    prevalence: float = 0.5,
    missing: float = 0.0,
    copies: Sequence[Sequence[int]] = (),
    copying: float = 1.0,
    seed: int | None = 0,
) -> Simulated:
    """Draw votes of independent classifiers, or of some that copy.

    Parameters
    ----------
    items : int
        n.
    classifiers : int, optional
        How many classifiers with random rates in [0.5, 0.8]; or give the rates.
    sensitivity, specificity : (m,) arrays, optional
    prevalence : float
        Pr(positive).
    missing : float
        Probability that a vote is missing, at random.
    copies : sequence of groups of positions
        Each member of a group copies the vote of the group's first with probability `copying`, and
        votes by itself otherwise.
    copying : float
    seed : int or None
        The same seed gives the same votes.

    Returns
    -------
    Simulated

    Examples
    --------
    >>> from labelfree import simulate
    >>> drawn = simulate.votes(500, classifiers=10, copies=[(0, 1)], copying=1.0)
    >>> bool((drawn.votes[:, 0] == drawn.votes[:, 1]).all())
    True
    """
    items = _whole("items", items)
    if sensitivity is None and specificity is None and classifiers is not None:
        psi, eta = rates(classifiers, seed=seed)
    elif sensitivity is not None and specificity is not None and classifiers is None:
        psi = _probabilities("sensitivity", sensitivity, 1)
        eta = _probabilities("specificity", specificity, 1)
        if psi.shape != eta.shape:
            raise OptionsError(
                f"Expected one sensitivity and one specificity a classifier, got {psi.size} and {eta.size}; make them agree."
            )
    else:
        raise OptionsError("Give either classifiers=, or both sensitivity= and specificity=.")
    for name, value in (("prevalence", prevalence), ("missing", missing), ("copying", copying)):
        _probabilities(name, value, 0)
    random = _random(seed, 1)
    truth = random.random(items) < prevalence
    drawn = _draw(random, truth, psi, eta)
    psi, eta = _copy(random, drawn, psi, eta, _groups(copies, len(psi)), copying)
    table = drawn.astype(np.int8)
    if missing:
        table[random.random(table.shape) < missing] = MISSING
    return Simulated(table, truth.astype(np.int8), psi, eta, prevalence)


def _draw(
    random: np.random.Generator, truth: NDArray[np.bool_], psi: Array, eta: Array
) -> NDArray[np.bool_]:
    chance = np.where(truth[:, None], psi, 1.0 - eta)
    return np.asarray(random.random(chance.shape) < chance)


def _copy(
    random: np.random.Generator,
    drawn: NDArray[np.bool_],
    psi: Array,
    eta: Array,
    groups: list[list[int]],
    copying: float,
) -> tuple[Array, Array]:
    psi, eta = psi.copy(), eta.copy()
    for first, *others in groups:
        for other in others:
            copied = random.random(len(drawn)) < copying
            drawn[copied, other] = drawn[copied, first]
            psi[other] = copying * psi[first] + (1 - copying) * psi[other]
            eta[other] = copying * eta[first] + (1 - copying) * eta[other]
    return psi, eta


def exact(
    sensitivity: ArrayLike,
    specificity: ArrayLike,
    prevalence: float = 0.5,
    items: float = 1.0,
) -> Tally:
    """Return the tally that an endless sample would give: every pattern with its exact probability.

    Parameters
    ----------
    sensitivity, specificity : (m,) arrays
        m ≤ 20.
    prevalence : float
    items : float
        What the counts sum to.

    Returns
    -------
    Tally

    Examples
    --------
    >>> from labelfree import simulate
    >>> len(simulate.exact([0.8, 0.7, 0.6], [0.7, 0.7, 0.9]))
    8
    """
    psi = _probabilities("sensitivity", sensitivity, 1)
    eta = _probabilities("specificity", specificity, 1)
    if psi.shape != eta.shape or len(psi) > MOST_EXACT:
        raise OptionsError(
            f"Expected as many sensitivities as specificities, at most {MOST_EXACT}; give fewer."
        )
    _probabilities("prevalence", prevalence, 0)
    items = _positive("items", items)
    codes = np.arange(1 << len(psi))[:, None] >> np.arange(len(psi)) & 1
    positive = np.where(codes == 1, psi, 1 - psi).prod(axis=1)
    negative = np.where(codes == 1, 1 - eta, eta).prod(axis=1)
    return Tally.from_codes(codes, items * (prevalence * positive + (1 - prevalence) * negative))


def _probabilities(name: str, value: ArrayLike, dimensions: int) -> Array:
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.ndim != dimensions or not array.size or not ((array >= 0) & (array <= 1)).all():
        raise OptionsError(
            f"{name}= must hold probabilities between 0 and 1, got {value!r}; mend them."
        )
    return array


def _whole(name: str, value: Any, least: int = 1) -> int:
    try:
        whole = int(value)
    except (TypeError, ValueError, OverflowError):
        whole = least - 1
    if whole < least or whole != value:
        raise OptionsError(f"{name}= must be a whole number of at least {least}, got {value!r}.")
    return whole


def _positive(name: str, value: Any) -> float:
    if not isinstance(value, int | float | np.number) or not 0 < value < float("inf"):
        raise OptionsError(f"{name}= must be a number above 0, got {value!r}.")
    return float(value)


def _random(seed: int | None, *stream: int) -> np.random.Generator:
    return np.random.default_rng(None if seed is None else [_whole("seed", seed, 0), *stream])


def _groups(copies: Sequence[Sequence[int]], classifiers: int) -> list[list[int]]:
    try:
        groups = [[index(member) for member in group] for group in copies]
    except TypeError:
        groups = [[]]
    members = [member for group in groups for member in group]
    if (
        not all(groups)
        or len(set(members)) < len(members)
        or any(not 0 <= member < classifiers for member in members)
    ):
        raise OptionsError(
            f"copies= must hold groups of positions 0 to {classifiers - 1}, none of them twice; "
            f"got {copies!r}."
        )
    return groups
