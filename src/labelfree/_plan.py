"""How many items, or gold labels, for an interval of a wanted width? From the Fisher information."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labelfree import simulate
from labelfree._errors import NotIdentifiedError, OptionsError
from labelfree._intervals import inverse, spread_of
from labelfree._latent_class import Model, Prior, free_logits, information
from labelfree._options import is_number
from labelfree._products import Blocks
from labelfree._tally import tally

Array = NDArray[np.float64]

FORMAT, VERSION = "labelfree.plan", 1
MOST_EXACT = 14  # classifiers whose patterns are all laid out; more are sampled
SAMPLED = 20_000  # items that stand for all in the sampled information
MOST_PLANNED = 1000  # classifiers: with so many, the rates of each hardly hang on the others


@dataclass(frozen=True)
class Plan:
    """What an interval of the wanted width takes.

    Attributes
    ----------
    items : int
        Unlabelled items after which the interval of every rate, and that of the prevalence, is no
        wider than asked.
    items_for_rates, items_for_prevalence : int
        The same for the rates alone and for the prevalence alone.
    gold : int
        Gold labels of random items that would do it by themselves.
    worth : float
        Labelled items that one unlabelled item is worth, for the prevalence.
    width, level : float
        As asked.
    """

    items: int
    items_for_rates: int
    items_for_prevalence: int
    gold: int
    worth: float
    width: float
    level: float

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain numbers: what ``plan --json`` prints."""
        return {"format": FORMAT, "version": VERSION, **asdict(self)}

    def __str__(self) -> str:
        return (
            f"{self.items:,} unlabelled items, or {self.gold:,} gold labels alone, make every "
            f"{self.level:.0%} interval at most {self.width:g} wide "
            f"({self.items_for_rates:,} items for the rates, {self.items_for_prevalence:,} for the prevalence)."
        )


def plan(
    classifiers: int | None = None,
    *,
    sensitivity: ArrayLike = 0.75,
    specificity: ArrayLike = 0.75,
    prevalence: float = 0.5,
    width: float = 0.1,
    level: float = 0.95,
    missing: float = 0.0,
) -> Plan:
    """Plan a study: how many items until every interval is as narrow as wanted.

    Parameters
    ----------
    classifiers : int, optional
        How many; by default as many as there are rates.
    sensitivity, specificity : float or (m,) array
        Expected rates, the same for all or one each.
    prevalence : float
        Expected Pr(positive).
    width : float
        Wanted width of the intervals, upper less lower end.
    level : float
        Of the intervals.
    missing : float
        Share of votes expected to be missing.

    Returns
    -------
    Plan

    Notes
    -----
    Supposes classifiers that err independently; where they share errors, no number of unlabelled
    items is enough. The information is exact up to 14 classifiers without missing votes, else that
    of a fixed sample of 20,000 items.

    Examples
    --------
    >>> import labelfree as lf
    >>> lf.plan(5, sensitivity=0.8, specificity=0.9, prevalence=0.3).items
    1015
    """
    psi, eta = _rates(classifiers, sensitivity, specificity)
    for name, value in (("prevalence", prevalence), ("width", width), ("level", level)):
        if not is_number(value, 0.0, 1.0):
            raise OptionsError(f"{name}= must lie between 0 and 1, both excluded, got {value!r}.")
    if missing != 0 and not is_number(missing, 0.0, 1.0):
        raise OptionsError(f"missing= must be at least 0 and below 1, got {missing!r}.")
    variance = _variance_of_one(psi, eta, prevalence, missing)
    from scipy.special import ndtri

    reach = 2.0 * float(ndtri(0.5 + level / 2))
    for_rates = _needed(variance[0].max(), reach, width)
    for_prevalence = _needed(variance[1], reach, width)
    labelled = [psi * (1 - psi) / prevalence, eta * (1 - eta) / (1 - prevalence)]
    gold = max(
        _needed(float(np.max(labelled)) / (1 - missing), reach, width),
        _needed(prevalence * (1 - prevalence), reach, width),
    )
    worth = prevalence * (1 - prevalence) / variance[1]
    return Plan(
        max(for_rates, for_prevalence), for_rates, for_prevalence, gold, float(worth), width, level
    )


def _needed(variance: float, reach: float, width: float) -> int:
    return math.ceil(variance * (reach / width) ** 2)


def _rates(
    classifiers: int | None, sensitivity: ArrayLike, specificity: ArrayLike
) -> tuple[Array, Array]:
    psi, eta = _numbers("sensitivity", sensitivity), _numbers("specificity", specificity)
    asked: Any = max(len(psi), len(eta)) if classifiers is None else classifiers
    whole = isinstance(asked, int | np.integer) and not isinstance(asked, bool)
    if not whole or not 3 <= asked <= MOST_PLANNED:
        raise OptionsError(
            f"Expected three to {MOST_PLANNED:,} classifiers to plan for, got {asked!r}; give classifiers= or a rate each."
        )
    m = int(asked)
    for name, rate in (("sensitivity", psi), ("specificity", eta)):
        if rate.ndim != 1 or len(rate) not in (1, m):
            raise OptionsError(f"{name}= must hold one rate, or {m}, got {rate.size}.")
        if not ((rate > 0) & (rate < 1)).all():
            raise OptionsError(
                f"{name}= must lie between 0 and 1, both excluded, got {rate.tolist()}."
            )
    return np.broadcast_to(psi, int(m)).copy(), np.broadcast_to(eta, int(m)).copy()


def _numbers(name: str, rates: ArrayLike) -> Array:
    try:
        return np.atleast_1d(np.asarray(rates, float))
    except (TypeError, ValueError):
        raise OptionsError(f"{name}= must hold numbers between 0 and 1, got {rates!r}.") from None


def _variance_of_one(
    psi: Array, eta: Array, prevalence: float, missing: float
) -> tuple[Array, float]:
    """Variance that one item would leave in each rate and in the prevalence: n items leave an n-th of it."""
    m = len(psi)
    if m <= MOST_EXACT and missing == 0:
        counted, items = simulate.exact(psi, eta, prevalence), 1.0
    else:
        drawn = simulate.votes(
            SAMPLED,
            sensitivity=psi,
            specificity=eta,
            prevalence=prevalence,
            missing=missing,
            seed=0,
        )
        counted, items = (
            tally(drawn.votes, classes=(0, 1), missing=simulate.MISSING),
            float(SAMPLED),
        )
    model = Model.binary(2 * prevalence - 1, psi, eta)
    prior = Prior.flat(m, 2, 0.0)
    covariance = inverse(
        information(Blocks(counted), model, prior) / items, free_logits(model, prior)
    )
    if covariance is None:
        raise NotIdentifiedError(
            "Classifiers with these rates cannot be graded by any number of items: fewer than three differ from chance."
        )
    error = spread_of(model, covariance).error
    rates = np.concatenate(
        [error["sensitivity"] * psi * (1 - psi), error["specificity"] * eta * (1 - eta)]
    )
    return rates**2, float((error["prevalence"] * prevalence * (1 - prevalence)) ** 2)
