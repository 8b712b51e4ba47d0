"""Two estimates side by side: what changed from one to the other, and whether it is more than chance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labelfree._errors import OptionsError, listed
from labelfree._result import Estimate

Array = NDArray[np.float64]

FORMAT, VERSION = "labelfree.comparison", 1
BEYOND_CHANCE = 0.05  # corrected p-value below which a change is called one


@dataclass(frozen=True)
class Change:
    """One figure, before and now.

    Attributes
    ----------
    classifier : str or None
        None for the prevalence.
    quantity : str
    before, now : float or None
        None where the votes did not tell.
    difference : float or None
        Now less before.
    error : float or None
        Its standard error; None where one of the two has no interval.
    p_value : float or None
        Chance of a difference as large, if nothing had changed.
    p_corrected : float or None
        The same, corrected for the number of figures that are compared (Holm).
    """

    classifier: str | None
    quantity: str
    before: float | None
    now: float | None
    difference: float | None
    error: float | None
    p_value: float | None
    p_corrected: float | None = None

    @property
    def beyond_chance(self) -> bool:
        """Whether the change is more than chance, at 5 % over all figures together."""
        return self.p_corrected is not None and self.p_corrected < BEYOND_CHANCE


@dataclass(frozen=True)
class Comparison:
    """What changed from one estimate to another, from :func:`compare`.

    Attributes
    ----------
    changes : tuple of Change
        The rates of every classifier that is in both, in the order of the later estimate, then the
        prevalence.
    came, went : tuple of str
        Classifiers of the later estimate alone, and of the earlier one alone.
    verdict, dependence, items : tuple
        Each before and now: the verdict's level, the model of shared errors (None where the votes
        did not tell), and the number of items.
    """

    changes: tuple[Change, ...]
    came: tuple[str, ...]
    went: tuple[str, ...]
    verdict: tuple[str, str]
    dependence: tuple[str | None, str | None]
    items: tuple[float, float]

    @property
    def beyond_chance(self) -> tuple[Change, ...]:
        """Changes that are more than chance, at 5 % over all figures together."""
        return tuple(each for each in self.changes if each.beyond_chance)

    @property
    def same_model(self) -> bool:
        """Whether both answers come from the same model of shared errors; if not, rates may differ by that alone."""
        return self.dependence[0] == self.dependence[1]

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain numbers, strings and lists: what ``compare --json`` prints."""
        two = ("before", "now")
        return {
            "format": FORMAT,
            "version": VERSION,
            "verdict": dict(zip(two, self.verdict, strict=True)),
            "dependence": dict(zip(two, self.dependence, strict=True)),
            "items": dict(zip(two, self.items, strict=True)),
            "came": list(self.came),
            "went": list(self.went),
            "changes": [
                {**asdict(each), "beyond_chance": each.beyond_chance} for each in self.changes
            ],
        }

    def __str__(self) -> str:
        lines = [f"verdict {self.verdict[0]}, now {self.verdict[1]}"]
        lines += [f"came: {', '.join(self.came)}"] if self.came else []
        lines += [f"went: {', '.join(self.went)}"] if self.went else []
        lines += [f"{change_words(each)}" for each in self.beyond_chance]
        if not self.beyond_chance:
            lines.append("no figure changed beyond chance")
        return "\n".join(lines)


def compare(before: Estimate, now: Estimate) -> Comparison:
    """Say what changed from one estimate to another.

    Parameters
    ----------
    before, now : Estimate
        Of the same classes; of the same classifiers, or of some of them.

    Returns
    -------
    Comparison

    Notes
    -----
    The standard error of a difference is the root of the sum of the two squared errors, and the
    p-value that of a normal score. Both suppose that the two estimates come from different items.
    Where they share items, the figures move together, and a change is clearer than its p-value says.

    Examples
    --------
    >>> import labelfree as lf
    >>> rates = {"specificity": [0.8, 0.7, 0.9, 0.8, 0.8]}
    >>> one = lf.simulate.votes(4000, sensitivity=[0.8, 0.7, 0.9, 0.7, 0.8], seed=1, **rates)
    >>> other = lf.simulate.votes(4000, sensitivity=[0.8, 0.7, 0.7, 0.7, 0.8], seed=3, **rates)
    >>> comparison = lf.compare(lf.estimate(one.votes), lf.estimate(other.votes))
    >>> print(comparison)
    verdict sound, now sound
    classifier_3: sensitivity 0.922, now 0.694 (p < .0001)
    classifier_3: balanced accuracy 0.908, now 0.803 (p < .0001)
    """
    if before.classes != now.classes:
        raise OptionsError(
            f"Expected estimates of the same classes in the same order, got {listed(before.classes)} and "
            f"{listed(now.classes)}; estimate both with the same classes=."
        )
    kept = [name for name in now.classifiers if name in before.classifiers]
    return Comparison(
        _corrected(_changes(before, now, kept)),
        tuple(name for name in now.classifiers if name not in before.classifiers),
        tuple(name for name in before.classifiers if name not in now.classifiers),
        (before.verdict.level, now.verdict.level),
        (_model(before), _model(now)),
        (before.items, now.items),
    )


def difference(
    before: ArrayLike, before_error: ArrayLike, now: ArrayLike, now_error: ArrayLike
) -> tuple[Array, Array, Array]:
    """Differences of figures that were found independently, their standard errors and p-values."""
    from scipy.special import ndtr

    change = np.asarray(np.asarray(now, dtype=np.float64) - np.asarray(before, dtype=np.float64))
    error = np.asarray(np.hypot(np.asarray(before_error), np.asarray(now_error)), dtype=np.float64)
    # Without any error, a difference is certain and no difference is none.
    certain = np.where(change == 0, 0.0, np.inf)
    score = np.divide(np.abs(change), error, out=certain, where=error > 0)
    return change, error, np.asarray(2.0 * ndtr(-score))


def corrected(p_values: ArrayLike) -> Array:
    """Correct p-values for their number, by Holm's steps: the least times their count, and so on up."""
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    result = np.empty_like(p)
    result[order] = np.minimum(steps, 1.0)
    return result


def _model(found: Estimate) -> str | None:
    return None if found.verdict.level == "unidentified" else found.dependence


def _changes(before: Estimate, now: Estimate, kept: list[str]) -> list[Change]:
    changes = []
    for name in kept:
        changes += [
            _change(name, quantity, old, new)
            for quantity, old, new in zip(
                now.rates, _figures(before, name), _figures(now, name), strict=True
            )
        ]
    whole = zip(_whole(before), _whole(now), strict=True)
    return [*changes, *(_change(None, what, old, new) for (what, old), (_, new) in whole)]


Figure = tuple[float, float | None] | None  # a figure and its standard error, where there are such


def _figures(found: Estimate, name: str) -> Iterator[Figure]:
    place = found.classifiers.index(name)
    for quantity in found.rates:
        if found.verdict.level == "unidentified":
            yield None
        else:
            errors = found.standard_error(quantity)
            error = None if errors is None else float(errors[place])
            yield float(getattr(found, quantity)[place]), error


def _whole(found: Estimate) -> list[tuple[str, Figure]]:
    """The prevalence, or the probability of each of more than two classes."""
    two = len(found.classes) == 2
    names = ["prevalence"] if two else [f"Pr({label!r})" for label in found.classes]
    if found.verdict.level == "unidentified":
        return [(name, None) for name in names]
    errors = found.standard_error("prevalence" if two else "class_probabilities")
    values = found.class_probabilities[-len(names) :]
    each = [None] * len(names) if errors is None else np.ravel(errors).tolist()
    return [
        (name, (value, error))
        for name, value, error in zip(names, values.tolist(), each, strict=True)
    ]


def _change(name: str | None, quantity: str, before: Figure, now: Figure) -> Change:
    values = [None if figure is None else figure[0] for figure in (before, now)]
    if before is None or now is None:
        return Change(name, quantity, values[0], values[1], None, None, None)
    if before[1] is None or now[1] is None:
        return Change(name, quantity, before[0], now[0], now[0] - before[0], None, None)
    change, error, p = (float(each) for each in difference(*before, *now))  # type: ignore[arg-type]
    return Change(name, quantity, before[0], now[0], change, error, p)


def _corrected(changes: list[Change]) -> tuple[Change, ...]:
    tested = [place for place, each in enumerate(changes) if each.p_value is not None]
    p_values = corrected([changes[place].p_value for place in tested])  # type: ignore[arg-type]
    for place, p in zip(tested, p_values, strict=True):
        changes[place] = Change(**{**asdict(changes[place]), "p_corrected": float(p)})
    return tuple(changes)


def change_words(change: Change) -> str:
    """Say a change in a line: ``judge_a: sensitivity 0.922, now 0.694 (p < .0001)``."""
    name = "" if change.classifier is None else f"{change.classifier}: "
    before, now = ("–" if each is None else f"{each:.3f}" for each in (change.before, change.now))
    words = f"{name}{change.quantity.replace('_', ' ')} {before}, now {now}"
    return words if change.p_value is None else f"{words} ({p_words(change.p_value)})"


def p_words(p: float) -> str:
    """``p = .012``, or ``p < .0001``."""
    return "p < .0001" if p < 1e-4 else f"p = {p:.2g}".replace("= 0.", "= .")
