"""Options of the front door: what each may be, and what it says of these votes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelfree._errors import OptionsError, listed
from labelfree._labels import Label, fitted, kind_of
from labelfree._rank_one import WAYS
from labelfree._tally import Tally

Array = NDArray[np.float64]
Row = tuple[int, int]  # a row of the confusion matrices: (place of the classifier, true class)

METHODS = ("map", "likelihood", "tensor")
DEPENDENCE = ("auto", "test", "ignore")
MOST_TWO_CLASSES = 1000  # classifiers of two classes whose pairs are all looked at; a crowd beyond
ROUNDED = 1e-6  # by which shares that sum to one may miss it
SMALLEST_KNOWN = 1e-12  # a known chance of zero, for its logarithm to be finite
MOST_IN_GROUP = 5  # classifiers of a group that the user may name: its table has 2^5 cells a class


@dataclass(frozen=True)
class Facts:
    """What is known of single rates: fixed values and Beta priors, by (place, true class)."""

    fixed: dict[tuple[int, int], float]
    believed: dict[tuple[int, int], tuple[float, float]]


def check_options(method: Any, vector: Any, prior: Any, level: Any) -> None:
    if not isinstance(method, str) or method not in METHODS:
        raise OptionsError(f"method= must be one of {listed(METHODS)}, got {method!r}.")
    if not isinstance(vector, str) or vector not in WAYS:
        raise OptionsError(f"vector= must be one of {listed(WAYS)}, got {vector!r}.")
    if not is_number(prior, -1.0, float("inf")) or prior < 0:
        raise OptionsError(f"prior= must be a number of at least 0, got {prior!r}.")
    if not is_number(level, 0.0, 1.0):
        raise OptionsError(f"level= must lie between 0 and 1, both excluded, got {level!r}.")


def share_of(prevalence: Any, classes: tuple[Label, ...]) -> float | None:
    """Prevalence of the positive one of two classes, where it is known."""
    if isinstance(prevalence, Mapping):
        shares = _shares(prevalence, classes)
        return None if shares is None else float(shares[1])
    if prevalence is None or is_number(prevalence, 0.0, 1.0):
        return None if prevalence is None else float(prevalence)
    raise OptionsError(f"prevalence= must lie between 0 and 1, both excluded, got {prevalence!r}.")


def is_word(option: Any, word: str) -> bool:
    """Compare an option that may also be a list."""
    return isinstance(option, str) and option == word


def is_number(value: Any, low: float, high: float) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and bool(low < value < high)


def groups_asked(dependence: Any, classifiers: tuple[str, ...], method: str) -> list[list[int]]:
    """Places of the user's own groups; none where a word is given."""
    if isinstance(dependence, str):
        if dependence not in DEPENDENCE:
            raise OptionsError(
                f"dependence= must be {' or '.join(map(repr, DEPENDENCE))}, or a list of groups of classifiers, "
                f"got {dependence!r}."
            )
        return []
    if not isinstance(dependence, Iterable) or not all(
        isinstance(group, Iterable) and not isinstance(group, str) for group in dependence
    ):
        raise OptionsError(
            f"dependence= must be {' or '.join(map(repr, DEPENDENCE))}, or a list of groups of classifiers, "
            f"got {listed([repr(dependence)])}; a group is a list of names."
        )
    groups = [list(group) for group in dependence]
    if groups and method != "map":
        raise OptionsError(
            f"dependence= names groups, which only method='map' can model, got method={method!r}; leave one of them out."
        )
    members = [name for group in groups for name in group]
    unknown = [name for name in members if name not in classifiers]
    if unknown:
        raise OptionsError(
            f"dependence= names {listed(map(repr, unknown))}; the classifiers are {listed(classifiers)}."
        )
    if len(set(members)) < len(members) or any(len(group) < 2 for group in groups):
        raise OptionsError(
            "dependence= must hold groups of at least two classifiers, none of them in two groups, "
            f"got {listed([repr(groups)])}."
        )
    blocks = len(groups) + len(classifiers) - len(members)
    if blocks < 3 or any(len(group) > MOST_IN_GROUP for group in groups):
        raise OptionsError(
            f"dependence= must leave at least three groups or single classifiers, of at most {MOST_IN_GROUP} each, "
            f"got {blocks}; name smaller groups."
        )
    return [[classifiers.index(name) for name in group] for group in groups]


def facts_of(known: Any, classifiers: tuple[str, ...]) -> Facts:
    fixed, believed = {}, {}
    known = {} if known is None else known
    if not isinstance(known, Mapping) or not all(
        isinstance(rates_of, Mapping) for rates_of in known.values()
    ):
        raise OptionsError(
            f"known= must map names of classifiers to their rates, got {listed([repr(known)])}; "
            "write for example {'a': {'sensitivity': 0.9}}."
        )
    for name, rates_of in known.items():
        if name not in classifiers:
            raise OptionsError(f"known= names {name!r}; the classifiers are {listed(classifiers)}.")
        for rate, value in rates_of.items():
            if rate not in ("specificity", "sensitivity"):
                raise OptionsError(
                    f"known= holds {rate!r} for {name}; expected sensitivity or specificity."
                )
            place = (classifiers.index(name), int(rate == "sensitivity"))
            if isinstance(value, tuple | list):
                believed[place] = _beta(name, rate, value)
            elif is_number(value, 0.0, 1.0):
                fixed[place] = float(value)
            else:
                raise OptionsError(
                    f"known= gives {name} a {rate} of {value!r}; expected a number between 0 and 1, both excluded, "
                    "or the two parameters of a Beta prior."
                )
    return Facts(fixed, believed)


def _beta(name: str, rate: str, value: Sequence[float]) -> tuple[float, float]:
    if len(value) != 2 or not all(
        each == 1 or is_number(each, 1.0, float("inf")) for each in value
    ):
        raise OptionsError(
            f"known= gives {name} a {rate} with prior {tuple(value)!r}; expected the two parameters of a Beta "
            "distribution, both at least 1."
        )
    return float(value[0]), float(value[1])


# --- more than two classes ------------------------------------------------------------------------


def many_facts(
    known: Any, prevalence: Any, counted: Tally, groups: Sequence[Sequence[int]]
) -> tuple[Array | None, dict[Row, Array], dict[Row, Array]]:
    """What is known of K classes, or of a crowd: class probabilities, fixed rows, and pseudo-counts of rows."""
    if groups:
        raise OptionsError(
            f"dependence= names groups, which are modelled for two classes and at most {MOST_TWO_CLASSES} classifiers, "
            f"got {len(counted.classes)} classes and {len(counted.classifiers)} classifiers; leave the groups out."
        )
    if len(counted.classes) > 2:
        return _shares(prevalence, counted.classes), _known_rows(known, counted), {}
    facts = facts_of(known, counted.classifiers)
    return rows_of(facts, share_of(prevalence, counted.classes))


def rows_of(
    facts: Facts, share: float | None
) -> tuple[Array | None, dict[Row, Array], dict[Row, Array]]:
    """What is known of two classes, as class probabilities, fixed rows, and pseudo-counts of rows."""
    fixed, believed = {}, {}
    for (place, true), value in facts.fixed.items():
        fixed[place, true] = np.where(np.arange(2) == true, value, 1.0 - value)
    for (place, true), (above, below) in facts.believed.items():
        believed[place, true] = np.where(np.arange(2) == true, above - 1.0, below - 1.0)
    return None if share is None else np.array([1.0 - share, share]), fixed, believed


def _shares(prevalence: Any, classes: tuple[Label, ...]) -> Array | None:
    """Class probabilities that are known, in the order of the classes."""
    if prevalence is None:
        return None
    wanted = f"a share for each of the classes {listed(map(repr, classes))}, which sum to one"
    kind = kind_of(classes)
    given = (
        {fitted(label, kind): share for label, share in prevalence.items()}
        if isinstance(prevalence, Mapping)
        else {}
    )
    if set(given) != set(classes):
        raise OptionsError(
            f"prevalence= must map each class to its share: {wanted}; got {listed([repr(prevalence)])}."
        )
    shares = [given[label] for label in classes]
    if not all(is_number(share, 0.0, 1.0) for share in shares) or abs(sum(shares) - 1) > ROUNDED:
        raise OptionsError(f"prevalence= must hold {wanted}, got {listed(map(repr, shares))}.")
    total = np.array(shares, dtype=np.float64)
    return np.asarray(total / total.sum())


def _known_rows(known: Any, counted: Tally) -> dict[Row, Array]:
    """Rows of confusion matrices that are known."""
    known = {} if known is None else known
    classes = len(counted.classes)
    wanted = f"{{'confusion': rows}}, {classes} rows of {classes} chances, each row summing to one"
    if not isinstance(known, Mapping):
        raise OptionsError(
            f"known= must map names of classifiers to {wanted}, got {listed([repr(known)])}."
        )
    fixed = {}
    for name, facts in known.items():
        if name not in counted.classifiers:
            raise OptionsError(
                f"known= names {name!r}; the classifiers are {listed(counted.classifiers)}."
            )
        try:
            rows = np.array(
                facts["confusion"] if set(facts) == {"confusion"} else None, dtype=float
            )
        except (TypeError, ValueError):
            rows = np.zeros(0)
        if (
            rows.shape != (classes, classes)
            or not np.isfinite(rows).all()
            or (rows < 0).any()
            or np.abs(rows.sum(axis=1) - 1).max() > ROUNDED
        ):
            raise OptionsError(
                f"known= must give {name} {wanted}, got {listed([' '.join(repr(facts).split())])}; mend the rows."
            )
        place = counted.classifiers.index(name)
        rows = np.maximum(rows, SMALLEST_KNOWN)
        for true, row in enumerate(rows / rows.sum(axis=1, keepdims=True)):
            fixed[place, true] = row
    return fixed
