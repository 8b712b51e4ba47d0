"""What charts and pages show of an estimate: plain rows, in an order that reads well, rounded honestly.

Charts and the report draw from the same rows, so that they say the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from labelfree._choice import DIFFICULTY
from labelfree._dependence import ALARM_LEVEL, Alarm
from labelfree._errors import NotIdentifiedError
from labelfree._labels import Label
from labelfree._origin import Origin
from labelfree._verdict import Verdict

Array = NDArray[np.float64]
Row = dict[str, Any]

MOST_IN_MAP = 30  # classifiers whose names can be read beside a map of pairs
MOST_LISTED = 8  # pairs in a list
NO_MORE = "unidentified"
# A spread: the median, the middle half and the middle nine tenths.
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
BANDS = ("lowest", "low", "median", "high", "highest")
WORD_JOINER = "\u2060"  # takes no room


class Graded(Protocol):
    """What is asked of an estimate to show it; :class:`labelfree.Estimate` answers all of it."""

    @property
    def classifiers(self) -> tuple[str, ...]: ...
    @property
    def classes(self) -> tuple[Label, ...]: ...
    @property
    def method(self) -> str: ...
    @property
    def level(self) -> float: ...
    @property
    def items(self) -> float: ...
    @property
    def patterns(self) -> int: ...
    @property
    def notes(self) -> tuple[str, ...]: ...
    @property
    def converged(self) -> bool: ...
    @property
    def verdict(self) -> Verdict: ...
    @property
    def reading(self) -> Mapping[str, Any]: ...
    @property
    def origin(self) -> Origin | None: ...
    @property
    def alarm(self) -> Alarm: ...
    @property
    def residuals(self) -> Array: ...
    @property
    def dependence(self) -> str: ...
    @property
    def groups(self) -> tuple[tuple[str, ...], ...]: ...
    @property
    def effective_number(self) -> float: ...
    @property
    def prevalence(self) -> float: ...
    @property
    def class_probabilities(self) -> Array: ...
    @property
    def confusion(self) -> Array: ...
    @property
    def balanced_accuracy(self) -> Array: ...
    @property
    def rates(self) -> tuple[str, ...]: ...
    def shares(self) -> list[tuple[str, Row]]: ...
    def interval(self, quantity: str, level: float | None = None) -> Array: ...
    def by_prevalence(self) -> list[Row]: ...
    def table(self) -> list[Row]: ...


def is_identified(estimate: Graded) -> bool:
    """Whether there are numbers to show."""
    return estimate.verdict.level != NO_MORE


def is_binary(estimate: Graded) -> bool:
    """Whether sensitivity, specificity and prevalence have a meaning."""
    return len(estimate.classes) == 2


def prevalence_row(estimate: Graded) -> Row | None:
    """Return the prevalence with its interval, under the keys of a table's row; None where there is none."""
    if not is_identified(estimate) or not is_binary(estimate):
        return None
    row = {"prevalence": estimate.prevalence, "prevalence_low": None, "prevalence_high": None}
    try:
        low, high = estimate.interval("prevalence").tolist()
    except NotIdentifiedError:  # the verdict says why
        return row
    return row | {"prevalence_low": low, "prevalence_high": high}


# --- words --------------------------------------------------------------------------------------


def harmless(name: object) -> str:
    """Write a name so that no program takes it for the end of its own text.

    Altair writes charts into script elements as they are. An invisible sign keeps a name that holds
    ``</script`` or ``<!--`` from ending one; it reads as before.
    """
    return str(name).replace("</", f"<{WORD_JOINER}/").replace("<!", f"<{WORD_JOINER}!")


def short(name: str, most: int = 22) -> str:
    """Cut the middle out of a long name: names that start alike often end apart."""
    if len(name) <= most:
        return name
    end = (most - 1) // 2
    return f"{name[: most - 1 - end]}…{name[-end:]}"


def decimals(low: float | None, high: float | None, *, rough: bool = False) -> int:
    """How many decimals of a percentage an interval supports: its half width is at least half a unit of the last.

    A rough figure has an error that its interval does not show, so that decimals would promise too much.
    """
    if low is None or high is None or rough:
        return 0
    half = 100.0 * (high - low) / 2
    return 0 if half >= 0.5 else 1 if half >= 0.05 else 2


def percent(value: float | None, places: int = 0) -> str:
    """``81 %``, or a dash."""
    return "–" if value is None else f"{100 * value:.{places}f} %"


def certain(probability: float) -> str:
    """``97 %``; what is nearly but not quite certain does not read as certain."""
    if 0.9995 <= probability < 1:
        return "> 99.9 %"
    return percent(probability, 1 if 0.995 <= probability < 1 else 0)


def signed(value: float) -> str:
    """``+4.5`` or ``−4.5``, with a sign as wide as the other."""
    return f"{value:+.1f}".replace("-", "\N{MINUS SIGN}")


def ends(low: float | None, high: float | None, places: int = 0) -> str:
    """``78–84 %``; nothing where there is no interval, or none that the decimals show."""
    if low is None or high is None:
        return ""
    first, last = f"{100 * low:.{places}f}", f"{100 * high:.{places}f}"
    return f"{first}–{last} %" if first != last else ""


def with_ends(row: Mapping[str, Any], name: str, *, rough: bool = False) -> str:
    """``81 % (78–84 %)``."""
    low, high = row.get(f"{name}_low"), row.get(f"{name}_high")
    places = decimals(low, high, rough=rough)
    between = ends(low, high, places)
    return percent(row[name], places) + (f" ({between})" if between else "")


def is_rough(estimate: Graded) -> bool:
    """Whether the rates are off by more than the intervals show."""
    return (
        is_identified(estimate)
        and (estimate.dependence == DIFFICULTY or (estimate.alarm.raised and not estimate.groups))
        and estimate.verdict.level != "sound"
    )


def rounded(value: float) -> str:
    """Write a count or a number as people do: 19,020, or 2.5."""
    return f"{int(value):,}" if value == math.floor(value) else f"{value:,.4g}"


# --- rows ---------------------------------------------------------------------------------------


def rate_rows(estimate: Graded) -> list[Row]:
    """One row a classifier: its rates, their intervals, a sentence that says them; best first."""
    if not is_identified(estimate):
        return []
    rough, rows = is_rough(estimate), []
    group_of = {name: place for place, group in enumerate(estimate.groups, 1) for name in group}
    for row in estimate.table():
        name = harmless(row["classifier"])
        said = f"{name}: sensitivity {with_ends(row, 'sensitivity', rough=rough)}, "
        said += f"specificity {with_ends(row, 'specificity', rough=rough)}"
        group = group_of.get(row["classifier"], 0)
        rows.append(row | {"classifier": name, "said": said, "group": group})
    return sorted(rows, key=lambda row: -row["balanced_accuracy"])


@dataclass(frozen=True)
class Pairs:
    """Pairs of classifiers and how much more they agree than their rates explain.

    Attributes
    ----------
    names : tuple of str
        Classifiers of the map, those of a group beside each other.
    places : tuple of int
        Where they stand in the estimate.
    total : int
        All classifiers that there are.
    residuals : (k, k) array
        Standardised; positive where a pair shares errors.
    bound : float
        A residual that chance exceeds in one of twenty estimates.
    strongest : list of (name, name, residual)
        Largest first.
    groups : tuple of (first, last)
        Stretches of `names` that copy one another.
    """

    names: tuple[str, ...]
    places: tuple[int, ...]
    total: int
    residuals: Array
    bound: float
    strongest: list[tuple[str, str, float]]
    groups: tuple[tuple[int, int], ...]


def pairs_of(estimate: Graded, most: int = MOST_IN_MAP) -> Pairs | None:
    """Lay out the map of pairs; None where nothing was tested.

    With more classifiers than a map can hold, it shows those of the strongest pairs.
    """
    from scipy.special import ndtri

    if not is_identified(estimate):
        return None
    residuals = estimate.residuals
    m = len(residuals)
    if not estimate.alarm.testable or m < 2 or not residuals.any():
        return None
    above = np.triu_indices(m, 1)
    order = np.argsort(-np.abs(residuals[above]), kind="stable")
    ranked = [(int(above[0][place]), int(above[1][place])) for place in order[: 4 * most]]
    chosen = _members(ranked, m, most)
    place_of = {name: place for place, name in enumerate(estimate.classifiers)}
    groups = [[place_of[name] for name in group] for group in estimate.groups]
    groups = [[place for place in group if place in chosen] for group in groups]
    groups = [group for group in groups if len(group) > 1]
    places = _arranged(chosen, groups, residuals)
    stretches = [sorted(map(places.index, group)) for group in groups]
    names = tuple(harmless(name) for name in estimate.classifiers)
    return Pairs(
        names=tuple(names[place] for place in places),
        places=tuple(places),
        total=m,
        residuals=residuals[np.ix_(places, places)],
        bound=float(-ndtri(ALARM_LEVEL / (m * (m - 1)))),
        strongest=[
            (names[i], names[j], float(residuals[i, j]))
            for i, j in ranked[:MOST_LISTED]
            if residuals[i, j]
        ],
        groups=tuple((stretch[0], stretch[-1]) for stretch in stretches),
    )


def _members(ranked: Sequence[tuple[int, int]], m: int, most: int) -> list[int]:
    """Classifiers of the strongest pairs; all, where there is room."""
    if m <= most:
        return list(range(m))
    chosen: list[int] = []
    for pair in ranked:
        new = [place for place in pair if place not in chosen]
        if len(chosen) + len(new) <= most:
            chosen += new
    return sorted(chosen)


def _arranged(chosen: list[int], groups: list[list[int]], residuals: Array) -> list[int]:
    """Groups first; the rest so that pairs that share errors stand beside each other."""
    grouped = [place for group in groups for place in group]
    rest = [place for place in chosen if place not in grouped]
    if len(rest) > 2:
        from scipy.cluster.hierarchy import leaves_list, linkage
        from scipy.spatial.distance import squareform

        among = residuals[np.ix_(rest, rest)]
        apart = among.max() - (among + among.T) / 2
        np.fill_diagonal(apart, 0.0)
        tree = linkage(squareform(apart, checks=False), "average", optimal_ordering=True)
        rest = [rest[leaf] for leaf in leaves_list(tree)]
    return grouped + rest


def likelihood_rows(estimate: Graded) -> list[Row]:
    """Ĝ over the imbalance; empty where it is not known."""
    if estimate.origin is None:
        return []
    return [
        {"imbalance": b, "prevalence": (1 + b) / 2, "log_likelihood": value}
        for b, value in zip(
            estimate.origin.imbalances.tolist(),
            estimate.origin.log_likelihood.tolist(),
            strict=True,
        )
    ]


def confusion_rows(estimate: Graded, places: Sequence[int]) -> list[Row]:
    """One row for each true class and vote of the classifiers at these places."""
    labels = [harmless(label) for label in estimate.classes]
    rough = is_rough(estimate)
    low = high = None
    if not is_binary(estimate) and estimate.table()[0]["balanced_accuracy_low"] is not None:
        low, high = np.moveaxis(estimate.interval("confusion"), -1, 0)
    rows: list[Row] = []
    for order, place in enumerate(places):
        name = harmless(estimate.classifiers[place])
        for (true, voted), value in np.ndenumerate(estimate.confusion[place]):
            row: Row = {"order": order, "classifier": name, "probability": float(value)}
            row |= {"true": labels[true], "vote": labels[voted]}
            row["kind"] = "right" if true == voted else "wrong"
            row["strength"] = cell_strength(float(value), right=true == voted)
            if low is not None and high is not None:
                at = (place, true, voted)
                row |= {"probability_low": float(low[at]), "probability_high": float(high[at])}
            said = with_ends(row, "probability", rough=rough)
            row["said"] = (
                f"{name}: of items that are {labels[true]}, {said} are called {labels[voted]}"
            )
            rows.append(row)
    return rows


def cell_strength(share: float, *, right: bool) -> float:
    """How strong the colour of a cell of a confusion matrix is, 0 … 1.

    Wrong votes are twice as strong as right ones of the same share: a mistake on one item in six is to be seen.
    """
    return min(share if right else 2.0 * share, 1.0)


def right_by_class(estimate: Graded) -> list[Row]:
    """One row for each class and classifier: the share of the class that it calls right."""
    labels = [harmless(label) for label in estimate.classes]
    right = np.einsum("ikk->ik", estimate.confusion)
    return [
        {
            "classifier": harmless(name),
            "true": label,
            "probability": value,
            "said": f"{harmless(name)}: calls {percent(value)} of {label} right",
        }
        for name, values in zip(estimate.classifiers, right.tolist(), strict=True)
        for label, value in zip(labels, values, strict=True)
    ]


def bands_by_class(estimate: Graded) -> list[Row]:
    """One row a class: how the classifiers' shares of right votes spread."""
    right = np.einsum("ikk->ik", estimate.confusion)
    cuts = np.quantile(right, QUANTILES, axis=0).T.tolist()
    return [
        {
            "true": harmless(label),
            "said": f"{harmless(label)}: the middle classifier calls {percent(cut[2])} right, half of all "
            f"{percent(cut[1])} to {percent(cut[3])}",
        }
        | dict(zip(BANDS, cut, strict=True))
        for label, cut in zip(estimate.classes, cuts, strict=True)
    ]


def prevalence_bands(estimate: Graded) -> list[Row]:
    """Spread of the classifiers' rates at each assumed prevalence: median, middle half, middle nine tenths."""
    rows, bands = estimate.by_prevalence(), []
    prevalences = sorted({row["prevalence"] for row in rows})
    for rate in ("sensitivity", "specificity"):
        for assumed in prevalences:
            values = [row[rate] for row in rows if row["prevalence"] == assumed]
            cut = np.quantile(values, QUANTILES).tolist()
            bands.append({"rate": rate, "prevalence": assumed} | dict(zip(BANDS, cut, strict=True)))
    return bands
