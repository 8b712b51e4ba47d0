"""Beyond the source: errors over the Cramér–Rao bound, missing votes, classifiers that copy.

The same methods throughout, all that estimate rates. The bound and the copying cases are those of
`benchmarks/`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import product

import numpy as np
from benchmarks.dependence import CASES, CLASSIFIERS, PREVALENCE
from benchmarks.dependence import ITEMS as COPYING_ITEMS
from benchmarks.dependence import draw as draw_copying
from benchmarks.estimators import bounds

import labelfree as lf
from paper.settings import Settings
from paper.spectral import Found, Spectral, draw, ensemble, of_confusion, patterns
from paper.work import random, run_cells, write

METHODS = (
    "tensor",
    "likelihood",
    "ML",
    "MAP",
    "default",
    "Dawid–Skene",
    "Jain–Oh",
    "Zhang",
    "Donmez",
    "Platanios",
)
# These do not converge to the truth here; charts that held them would show nothing else.
OFF_THE_CHARTS = ("Zhang", "Donmez", "Platanios")
BOUND_CELLS = (
    (0.3, 300),
    (0.6, 300),
    (0.3, 1000),
    (0.0, 10_000),
    (0.3, 10_000),
    (0.6, 10_000),
    (0.6, 100_000),
)
MISSING = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
MISSING_ITEMS, MISSING_IMBALANCE = 5000, 0.3


# --- the methods --------------------------------------------------------------------------------


def answers(counted: lf.Tally, imbalance: float) -> list[Found]:
    """Return what each of `METHODS` finds. Donmez alone is told the imbalance, as it asks for it."""
    spectral = Spectral(counted)

    def donmez(votes: lf.Tally) -> Found:
        told = lf.rivals.donmez(votes, prevalence=(1 + imbalance) / 2)
        return of_confusion(None, told.confusion)

    found = {
        "tensor": spectral.tensor,
        "likelihood": spectral.likelihood,
        "ML": spectral.finish(0.0),
        "MAP": spectral.finish(1.0),
        "default": _asked(_default, counted),
        "Dawid–Skene": _asked(_rival(lf.rivals.dawid_skene), counted),
        "Jain–Oh": facing_majority(_asked(_rival(lf.rivals.jain_oh), counted)),
        "Zhang": facing_majority(_asked(_rival(lf.rivals.zhang), counted)),
        "Donmez": _asked(donmez, counted),
        "Platanios": _asked(_rival(lf.rivals.platanios), counted),
    }
    return [found[method] for method in METHODS]


def _asked(method: Callable[[lf.Tally], Found], counted: lf.Tally) -> Found:
    """Return what a method found; nothing where it refuses, which is counted."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", lf.LabelfreeWarning)
            return method(counted)
    except lf.NotIdentifiedError:
        none = np.full(len(counted.classifiers), np.nan)
        return Found(np.nan, none, none)


def _default(counted: lf.Tally) -> Found:
    estimate = lf.estimate(counted)
    return Found(estimate.imbalance, estimate.sensitivity, estimate.specificity)


def _rival(method: Callable[[lf.Tally], lf.rivals.Rival]) -> Callable[[lf.Tally], Found]:
    def asked(counted: lf.Tally) -> Found:
        found = method(counted)
        return of_confusion(found.class_probabilities, found.confusion)

    return asked


def squared(found: Found, imbalance: float, truth: tuple) -> tuple[float, float]:
    """Squared error of b, and the sum of those of all rates."""
    rates = ((found.sensitivity - truth[0]) ** 2).sum()
    return (found.imbalance - imbalance) ** 2, rates + ((found.specificity - truth[1]) ** 2).sum()


def facing_majority(found: Found) -> Found:
    """Turn an answer round where most classifiers come out worse than chance (assumption iii).

    A method that names its two classes by chance is judged by the better half of its answers.
    """
    if not np.sum(found.sensitivity + found.specificity - 1) < 0:
        return found
    return Found(-found.imbalance, 1 - found.specificity, 1 - found.sensitivity)


# --- over the bound -----------------------------------------------------------------------------


def bound_errors(imbalance: float, items: int, sets: range) -> np.ndarray:
    """Squared errors of b and of the rates for each method, then both bounds: (sets, methods + 1, 2)."""
    rows = []
    for each in sets:
        truth = ensemble(each)
        codes, chances = patterns(*truth, imbalance)
        stream = random(5, round(10 * imbalance), items, each)
        found = answers(draw(stream, codes, chances, items), imbalance)
        of_imbalance, of_rates, _ = bounds(*truth, imbalance, items)
        rows.append(
            [*(squared(one, imbalance, truth) for one in found), (of_imbalance, of_rates.sum())]
        )
    return np.array(rows)


def over_bound(settings: Settings) -> None:
    cells = run_cells(bound_errors, BOUND_CELLS, settings.bound_sets, settings.jobs)
    write(
        settings.results / "bound.csv",
        [
            {"b": imbalance, "n": items, "method": method} | over(rows[:, place], rows[:, -1])
            for (imbalance, items), rows in zip(BOUND_CELLS, cells, strict=True)
            for place, method in enumerate(METHODS)
        ],
    )


def over(errors: np.ndarray, least: np.ndarray) -> dict[str, float | int]:
    """Sums of squared errors over sums of bounds, with the standard errors of these ratios.

    Data sets on which the method refused are left out of both sums, and counted. A method that
    estimates no b has NaN there.
    """
    answered = ~np.isnan(errors[:, 1])
    errors, least = errors[answered], least[answered]
    ratio = errors.sum(axis=0) / least.sum(axis=0)
    spread = (errors - ratio * least).std(axis=0, ddof=1) / np.sqrt(len(errors))
    off = spread / least.mean(axis=0)
    return {
        "b_over_bound": ratio[0],
        "b_error": off[0],
        "rates_over_bound": ratio[1],
        "rates_error": off[1],
        "b_rmse": np.sqrt(errors[:, 0].mean()),
        "rates_rmse": np.sqrt(errors[:, 1].mean() / 20),
        "sets": len(errors),
        "refused": int((~answered).sum()),
    }


def of_bound(least: np.ndarray) -> dict[str, float | int]:
    """Return the bound's own row: what an estimate without bias reaches at best."""
    rows = over(least, least)
    return rows | {"b_error": 0.0, "rates_error": 0.0}


# --- missing votes ------------------------------------------------------------------------------


def missing_errors(missing: float, sets: range) -> np.ndarray:
    """As :func:`bound_errors`, with votes missing at random and the bound of such votes."""
    rows = []
    for each in sets:
        truth = ensemble(each)
        stream = random(6, round(10 * missing), each)
        drawn = lf.simulate.votes(
            MISSING_ITEMS,
            sensitivity=truth[0],
            specificity=truth[1],
            prevalence=(1 + MISSING_IMBALANCE) / 2,
            missing=missing,
            seed=int(stream.integers(2**31)),
        )
        counted = lf.tally(drawn.votes, missing=-1, classes=(0, 1))
        found = answers(counted, MISSING_IMBALANCE)
        of_imbalance, of_rates, _ = bounds(
            *truth, MISSING_IMBALANCE, MISSING_ITEMS, missing=missing
        )
        rows.append(
            [
                *(squared(one, MISSING_IMBALANCE, truth) for one in found),
                (of_imbalance, of_rates.sum()),
            ]
        )
    return np.array(rows)


def missing_votes(settings: Settings) -> None:
    cells = run_cells(
        missing_errors, [(share,) for share in MISSING], settings.missing_sets, settings.jobs
    )
    write(
        settings.results / "missing.csv",
        [
            {"missing": share, "n": MISSING_ITEMS, "method": method} | figures
            for share, rows in zip(MISSING, cells, strict=True)
            for method, figures in [
                *(
                    (method, over(rows[:, place], rows[:, -1]))
                    for place, method in enumerate(METHODS)
                ),
                ("bound", of_bound(rows[:, -1])),
            ]
        ],
    )


# --- classifiers that copy ----------------------------------------------------------------------


def copying_errors(case: str, sets: range) -> np.ndarray:
    """Absolute error of b, and the mean one of the rates: (sets, methods, 2)."""
    groups, copying = CASES[case]
    rows = []
    for each in sets:
        drawn, _ = draw_copying(groups, copying, each)
        found = answers(lf.tally(drawn.votes, classes=(0, 1)), 2 * PREVALENCE - 1)
        rows.append([absolute(one, drawn) for one in found])
    return np.array(rows)


def absolute(found: Found, drawn: lf.simulate.Simulated) -> tuple[float, float]:
    off = [found.sensitivity - drawn.sensitivity, found.specificity - drawn.specificity]
    return abs(found.imbalance - (2 * PREVALENCE - 1)), float(np.mean(np.abs(off)))


def mean_errors(errors: np.ndarray) -> dict[str, float | int]:
    """Means over the data sets that the method answered, with their standard errors."""
    answered = errors[~np.isnan(errors[:, 1])]
    mean = answered.mean(axis=0)
    spread = answered.std(axis=0, ddof=1) / np.sqrt(len(answered))
    return {
        "b": mean[0],
        "b_error": spread[0],
        "rates": mean[1],
        "rates_error": spread[1],
        "sets": len(answered),
        "refused": len(errors) - len(answered),
    }


def copying(settings: Settings) -> None:
    cells = run_cells(
        copying_errors, [(case,) for case in CASES], settings.copying_sets, settings.jobs
    )
    write(
        settings.results / "copying.csv",
        [
            {
                "case": case,
                "m": CLASSIFIERS,
                "n": COPYING_ITEMS,
                "method": method,
                **mean_errors(rows[:, place]),
            }
            for (case, rows), (place, method) in product(
                zip(CASES, cells, strict=True), enumerate(METHODS)
            )
        ],
    )
