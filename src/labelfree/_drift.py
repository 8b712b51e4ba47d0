"""Tallies of periods: which rates changed from one to another, by more than chance."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelfree._comparison import BEYOND_CHANCE, corrected, p_words
from labelfree._errors import OptionsError, VotesError, listed
from labelfree._estimate import estimate
from labelfree._rates import logit
from labelfree._result import Estimate, load
from labelfree._tally import Tally, tally
from labelfree._tally_file import is_tally_file

Array = NDArray[np.float64]

FORMAT, VERSION = "labelfree.drift", 1
CERTAIN = 1e-12  # of the largest variance: a direction of less is known without error


@dataclass(frozen=True)
class Shift:
    """One classifier over the periods, or the prevalence.

    Attributes
    ----------
    classifier : str or None
        None for the prevalence.
    values : dict of lists
        ``sensitivity`` and ``specificity``, or ``prevalence``: one number a period, None where the
        votes of a period do not tell.
    statistic : float or None
        Wald's: squared differences of the logits in units of their errors. None where fewer than two
        periods tell.
    degrees : int
        Of freedom of the χ² that the statistic has where nothing changed.
    p_value : float or None
        Chance of a statistic as large, if nothing had changed.
    p_corrected : float or None
        The same, corrected for the number of classifiers and the prevalence (Holm).
    """

    classifier: str | None
    values: dict[str, list[float | None]]
    statistic: float | None
    degrees: int
    p_value: float | None
    p_corrected: float | None = None

    @property
    def drifted(self) -> bool:
        """Whether it changed by more than chance, at 5 % over all classifiers and the prevalence together."""
        return self.p_corrected is not None and self.p_corrected < BEYOND_CHANCE


@dataclass(frozen=True)
class Drift:
    """What changed over periods, from :func:`drift`.

    Attributes
    ----------
    periods : tuple of str
    items : tuple of float
        Of each period.
    classifiers : tuple of Shift
    prevalence : Shift
    p_value : float or None
        Chance of changes as large as those of all rates together, if none had changed.
    reasons : tuple of str
        What to keep in mind; empty where nothing speaks against the tests.
    estimates : tuple of Estimate
        One a period, for :func:`compare`.
    """

    periods: tuple[str, ...]
    items: tuple[float, ...]
    classifiers: tuple[Shift, ...]
    prevalence: Shift
    p_value: float | None
    reasons: tuple[str, ...]
    estimates: tuple[Estimate, ...] = field(repr=False, compare=False)

    @property
    def drifted(self) -> tuple[str, ...]:
        """Classifiers whose rates changed by more than chance, at 5 % over all of them together."""
        return tuple(str(each.classifier) for each in self.classifiers if each.drifted)

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain numbers, strings and lists: what ``drift --json`` prints."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "periods": list(self.periods),
            "items": list(self.items),
            "p_value": self.p_value,
            "drifted": list(self.drifted),
            "classifiers": [{**asdict(each), "drifted": each.drifted} for each in self.classifiers],
            "prevalence": {**asdict(self.prevalence), "drifted": self.prevalence.drifted},
            "reasons": list(self.reasons),
        }

    def __str__(self) -> str:
        shifts = [each for each in (*self.classifiers, self.prevalence) if each.drifted]
        lines = [shift_words(each) for each in shifts]
        lines = lines or [
            "no classifier changed beyond chance"
            if self.p_value is not None
            else "nothing is known"
        ]
        if self.p_value is not None:
            lines.append(f"all rates together: {p_words(self.p_value)}")
        return "\n".join([*lines, *(f"  - {reason}" for reason in self.reasons)])


def drift(periods: Sequence[Any] | Mapping[str, Any], **options: Any) -> Drift:
    """Say whether classifiers' rates, and the prevalence, changed between periods.

    Parameters
    ----------
    periods : sequence, or mapping of names
        Two or more, in the order of time: tallies, estimates, or votes in any form that
        :func:`estimate` takes. No item stands in two of them.
    **options
        As for :func:`estimate`, for those that are not estimates already.

    Returns
    -------
    Drift

    Notes
    -----
    Each classifier's sensitivity and specificity are tested together by Wald's test on their logits:
    with θ_t of period t and V_t its covariance, the differences d_t = θ_t − θ_1, t = 2 … T, have the
    covariance V_1 + V_t, V_1 between each other, and dᵀ cov(d)⁻¹ d is χ² with 2(T − 1) degrees of
    freedom where nothing changed. Periods are of different items, so that their estimates have no
    covariance. Holm's correction is over all classifiers and the prevalence, which is tested alike
    with T − 1 degrees of freedom. A change of the prevalence alone is no change of a rate.

    All this is sampling error under the model. Where classifiers share errors, what the model leaves
    out may change, and look like a change of rates: ``reasons`` says so.

    Examples
    --------
    >>> import labelfree as lf
    >>> rates = {"specificity": [0.8, 0.7, 0.9, 0.8, 0.8]}
    >>> one = lf.simulate.votes(4000, sensitivity=[0.8, 0.7, 0.9, 0.7, 0.8], seed=1, **rates)
    >>> two = lf.simulate.votes(4000, sensitivity=[0.8, 0.7, 0.7, 0.7, 0.8], seed=3, **rates)
    >>> drift = lf.drift({"May": lf.tally(one.votes), "June": lf.tally(two.votes)})
    >>> drift.drifted
    ('classifier_3',)
    """
    names, given = _named(periods)
    found = [each if isinstance(each, Estimate) else estimate(each, **options) for each in given]
    _check_classes(found)
    told = [place for place, each in enumerate(found) if _tells(each)]
    shifts = [
        *(_classifier(name, found, told) for name in _names_of(found)),
        _shift(None, {"prevalence": [_prevalence(each) for each in found]}, found, told),
    ]
    tested = [place for place, each in enumerate(shifts) if each.p_value is not None]
    p_values = corrected([shifts[place].p_value for place in tested])  # type: ignore[arg-type]
    for place, p in zip(tested, p_values, strict=True):
        shifts[place] = replace(shifts[place], p_corrected=float(p))
    return Drift(
        names,
        tuple(each.items for each in found),
        tuple(shifts[:-1]),
        shifts[-1],
        _global(found, told, shifts[:-1]),
        tuple(_reasons(names, found, told)),
        tuple(found),
    )


def drift_of_files(paths: Sequence[str | os.PathLike[str]], **options: Any) -> Drift:
    """Compare files, one a period: tallies and saved estimates as they are, votes read by the options."""
    names = [os.fspath(path) for path in paths]
    if len(set(names)) < len(names):
        raise OptionsError(f"Expected a file for each period, got {listed(names)}; name each once.")
    periods: dict[str, Any] = {}
    for name in names:
        if name.endswith(".json"):
            periods[name] = load(name)
        elif is_tally_file(name):
            periods[name] = Tally.load(name)
        else:
            periods[name] = tally(name, **options)
    return drift(periods)


def _named(periods: Any) -> tuple[tuple[str, ...], list[Any]]:
    """List the periods with their names: files by their paths, others by their numbers."""
    several = isinstance(periods, Mapping | Sequence) and not isinstance(periods, str | bytes)
    if not several or len(periods) < 2:
        got = "one" if not several or len(periods) == 1 else "none"
        raise OptionsError(
            f"Expected two or more periods, got {got}; give a list of tallies, the earliest first."
        )
    if isinstance(periods, Mapping):
        return tuple(map(str, periods)), list(periods.values())
    names = tuple(
        str(each) if isinstance(each, str | os.PathLike) else f"period {number}"
        for number, each in enumerate(periods, start=1)
    )
    return names, list(periods)


def _check_classes(found: Sequence[Estimate]) -> None:
    odd = next((each for each in found if each.classes != found[0].classes), None)
    if odd is not None:
        raise VotesError(
            f"Expected periods of the same classes in the same order, got {listed(found[0].classes)} and "
            f"{listed(odd.classes)}; read all of them with the same classes=."
        )
    if len(found[0].classes) != 2:
        raise VotesError(
            f"Expected periods of two classes, got {len(found[0].classes)} ({listed(found[0].classes)}); "
            "compare the estimates by compare()."
        )


def _names_of(found: Sequence[Estimate]) -> list[str]:
    """Classifiers of any period, as the last has them, then those that went."""
    return list(dict.fromkeys(name for each in reversed(found) for name in each.classifiers))


def _tells(found: Estimate) -> bool:
    return found.verdict.level != "unidentified" and found.standard_error("prevalence") is not None


# --- tests --------------------------------------------------------------------------------------


def _classifier(name: str, found: Sequence[Estimate], told: Sequence[int]) -> Shift:
    values: dict[str, list[float | None]] = {
        rate: [_rate(each, rate, name) for each in found] for rate in ("sensitivity", "specificity")
    }
    here = [place for place in told if name in found[place].classifiers]
    return _shift(name, values, found, here)


def _rate(found: Estimate, rate: str, name: str) -> float | None:
    if found.verdict.level == "unidentified" or name not in found.classifiers:
        return None
    return float(getattr(found, rate)[found.classifiers.index(name)])


def _prevalence(found: Estimate) -> float | None:
    return None if found.verdict.level == "unidentified" else found.prevalence


def _shift(
    name: str | None,
    values: dict[str, list[float | None]],
    found: Sequence[Estimate],
    told: Sequence[int],
) -> Shift:
    if len(told) < 2:
        return Shift(name, values, None, 0, None)
    logits = [_logits_of(found[place], name) for place in told]
    statistic, degrees, p_value = changed(
        [each[0] for each in logits], [each[1] for each in logits]
    )
    return Shift(name, values, statistic, degrees, p_value)


def _logits_of(found: Estimate, name: str | None) -> tuple[Array, Array]:
    """Logits of a classifier's two rates, or of the prevalence, and their covariance.

    With s the standard errors, the variance of π = ½(ψ + η) is ¼(s_ψ² + s_η² + 2 cov(ψ, η)).
    """
    if name is None:
        value = np.array([found.prevalence])
        error = np.reshape(_error(found, "prevalence"), (1,))
        return logit(value), np.diag((error / (value * (1 - value))) ** 2)
    place = found.classifiers.index(name)
    value = np.array([found.sensitivity[place], found.specificity[place]])
    of_each = [_error(found, rate)[place] for rate in ("sensitivity", "specificity")]
    both = _error(found, "balanced_accuracy")[place]
    across = 2 * both**2 - (of_each[0] ** 2 + of_each[1] ** 2) / 2
    covariance = np.array([[of_each[0] ** 2, across], [across, of_each[1] ** 2]])
    slope = 1 / (value * (1 - value))
    return logit(value), covariance * np.outer(slope, slope)


def _error(found: Estimate, quantity: str) -> Array:
    error = found.standard_error(quantity)
    return np.asarray(error, dtype=np.float64)  # there is one: _tells has asked


def changed(values: Sequence[Array], covariances: Sequence[Array]) -> tuple[float, int, float]:
    """Test whether independent estimates of the same k numbers differ by more than chance (Wald).

    Parameters
    ----------
    values : sequence of T (k,) arrays
    covariances : sequence of T (k, k) arrays

    Returns
    -------
    statistic : float
    degrees : int
        k(T − 1), less what is known without error.
    p_value : float
    """
    from scipy.special import chdtrc

    later = len(values) - 1
    difference = np.concatenate([each - values[0] for each in values[1:]])
    covariance = np.kron(np.ones((later, later)), covariances[0])
    size = len(values[0])
    for place, each in enumerate(covariances[1:]):
        here = slice(place * size, (place + 1) * size)
        covariance[here, here] += each
    variances, directions = np.linalg.eigh(covariance)
    along = directions.T @ difference
    open_ = variances > CERTAIN * max(float(variances[-1]), np.finfo(float).tiny)
    statistic = float(np.sum(along[open_] ** 2 / variances[open_]))
    if (np.abs(along[~open_]) > CERTAIN**0.5).any():
        return float("inf"), int(open_.sum()), 0.0
    degrees = int(open_.sum())
    return statistic, degrees, float(chdtrc(degrees, statistic)) if degrees else 1.0


def _global(
    found: Sequence[Estimate], told: Sequence[int], shifts: Sequence[Shift]
) -> float | None:
    """Test all rates together; by the least corrected p-value where their joint covariance is not at hand."""
    if len(told) < 2:
        return None
    parts = [found[place] for place in told]
    spreads = [None if each._choice is None else each._choice.spread for each in parts]
    alike = len({each.classifiers for each in parts}) == 1
    joint = [spread.covariance for spread in spreads if spread is not None and not spread.plain]
    covariances = [each[1:, 1:] for each in joint if each is not None]
    if alike and len(covariances) == len(parts):
        # As the covariance has them: Pr(positive vote given negative), given positive.
        values = [logit(each.confusion[:, :, 1].ravel()) for each in parts]
        return changed(values, covariances)[2]
    p_values = [each.p_value for each in shifts if each.p_value is not None]
    return float(corrected(p_values).min()) if p_values else None


# --- words --------------------------------------------------------------------------------------


def _reasons(names: Sequence[str], found: Sequence[Estimate], told: Sequence[int]) -> list[str]:
    """Say what keeps the tests from being the whole truth."""
    reasons = []
    silent = [names[place] for place in range(len(found)) if place not in told]
    if silent:
        reasons.append(
            f"The votes of {listed(silent)} do not tell the rates; nothing can be said of any change there."
        )
    models = [found[place].dependence for place in told]
    sharing = [names[place] for place in told if found[place].dependence != "independent"]
    if len(set(models)) > 1:
        words = listed(f"{names[place]}: {found[place].dependence}" for place in told)
        reasons.append(
            f"The periods were graded under different models of shared errors ({words}); rates may differ by that alone."
        )
    if sharing:
        reasons.append(
            f"Classifiers share errors in {listed(sharing)}: harder items, or another prevalence, can then look like a "
            "change of rates. Known labels of some items of each period would tell."
        )
    return reasons


def shift_words(shift: Shift) -> str:
    """Say a shift in a line: ``ann: sensitivity 0.912, 0.703; specificity 0.801, 0.811 (p < .0001)``."""
    name = "" if shift.classifier is None else f"{shift.classifier}: "
    parts = [
        f"{quantity} {', '.join('–' if value is None else f'{value:.3f}' for value in values)}"
        for quantity, values in shift.values.items()
    ]
    words = f"{name}{'; '.join(parts)}"
    return words if shift.p_corrected is None else f"{words} ({p_words(shift.p_corrected)})"
