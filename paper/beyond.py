"""Beyond the source: errors over the Cramér–Rao bound, missing votes, classifiers that copy.

The bound and the copying cases are those of `benchmarks/`.
"""

from __future__ import annotations

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

BOUND_CELLS = (
    (0.3, 300),
    (0.6, 300),
    (0.3, 1000),
    (0.0, 10_000),
    (0.3, 10_000),
    (0.6, 10_000),
    (0.6, 100_000),
)
BOUND_METHODS = ("tensor", "likelihood", "ML", "MAP", "Dawid–Skene", "Zhang", "Jain–Oh")
MISSING = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
MISSING_ITEMS, MISSING_IMBALANCE = 5000, 0.3
MISSING_METHODS = ("tensor", "likelihood", "MAP", "Dawid–Skene")
COPYING_METHODS = ("tensor", "likelihood", "MAP", "Dawid–Skene", "default")


def squared(found: Found, imbalance: float, truth: tuple) -> tuple[float, float]:
    """Squared error of b, and the sum of those of all rates."""
    rates = ((found.sensitivity - truth[0]) ** 2).sum()
    return (found.imbalance - imbalance) ** 2, rates + ((found.specificity - truth[1]) ** 2).sum()


def rival(method: Callable[[lf.Tally], lf.rivals.Rival], counted: lf.Tally) -> Found:
    """Return what another method found; nothing where it refuses, which is counted."""
    try:
        found = method(counted)
    except lf.NotIdentifiedError:
        none = np.full(len(counted.classifiers), np.nan)
        return Found(np.nan, none, none)
    return of_confusion(found.class_probabilities, found.confusion)


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
        counted = draw(stream, codes, chances, items)
        spectral = Spectral(counted)
        found = (
            spectral.tensor,
            spectral.likelihood,
            spectral.finish(0.0),
            spectral.finish(1.0),
            rival(lf.rivals.dawid_skene, counted),
            facing_majority(rival(lf.rivals.zhang, counted)),
            facing_majority(rival(lf.rivals.jain_oh, counted)),
        )
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
            for place, method in enumerate(BOUND_METHODS)
        ],
    )


def over(errors: np.ndarray, least: np.ndarray) -> dict[str, float | int]:
    """Sums of squared errors over sums of bounds, with the standard errors of these ratios.

    Data sets on which the method refused are left out of both sums, and counted.
    """
    answered = ~np.isnan(errors[:, 0])
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
        spectral = Spectral(counted)
        found = (
            spectral.tensor,
            spectral.likelihood,
            spectral.finish(1.0),
            rival(lf.rivals.dawid_skene, counted),
        )
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
                *zip(
                    MISSING_METHODS,
                    (over(rows[:, place], rows[:, -1]) for place in range(len(MISSING_METHODS))),
                    strict=True,
                ),
                ("bound", of_bound(rows[:, -1])),
            ]
        ],
    )


# --- classifiers that copy ----------------------------------------------------------------------


def copying_errors(case: str, sets: range) -> np.ndarray:
    """Absolute error of b, mean one of the rates, and balanced accuracy of the labels: (sets, methods, 3)."""
    groups, copying = CASES[case]
    rows = []
    for each in sets:
        drawn, _ = draw_copying(groups, copying, each)
        counted = lf.tally(drawn.votes, classes=(0, 1))
        spectral = Spectral(counted)
        found = (
            spectral.tensor,
            spectral.likelihood,
            spectral.finish(1.0),
            rival(lf.rivals.dawid_skene, counted),
            default(counted),
        )
        rows.append([absolute(one, drawn) for one in found])
    return np.array(rows)


def default(counted: lf.Tally) -> Found:
    estimate = lf.estimate(counted)
    return Found(estimate.imbalance, estimate.sensitivity, estimate.specificity)


def absolute(found: Found, drawn: lf.simulate.Simulated) -> tuple[float, float]:
    off = [found.sensitivity - drawn.sensitivity, found.specificity - drawn.specificity]
    return abs(found.imbalance - (2 * PREVALENCE - 1)), float(np.mean(np.abs(off)))


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
                "b": rows[:, place, 0].mean(),
                "b_error": rows[:, place, 0].std(ddof=1) / np.sqrt(len(rows)),
                "rates": rows[:, place, 1].mean(),
                "rates_error": rows[:, place, 1].std(ddof=1) / np.sqrt(len(rows)),
                "sets": len(rows),
            }
            for (case, rows), (place, method) in product(
                zip(CASES, cells, strict=True), enumerate(COPYING_METHODS)
            )
        ],
    )
