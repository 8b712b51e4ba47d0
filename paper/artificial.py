"""JNK section 6.1: both estimators of b, ten independent classifiers, rates ~ U(.5, .8).

And the figure of the appendix: the error of the tensor method against the number of classifiers, with
v estimated and with the true v.
"""

from __future__ import annotations

from itertools import product

import numpy as np

import labelfree as lf
from paper.settings import Settings
from paper.spectral import Spectral, draw, ensemble, patterns, true_vector
from paper.work import random, run_cells, write

IMBALANCES = (0.0, 0.3, 0.6)
METHODS = ("tensor", "likelihood")
FITTED_FROM = 1000  # items, of the slopes
APPENDIX_ITEMS, APPENDIX_RATES = 10_000, (0.69, 0.71)
WAYS = ("estimated v", "true v", "all at once")


def errors(imbalance: float, items: int, sets: range) -> np.ndarray:
    """Estimates of b, then mean squared errors of ψ and η: (sets, [2 of b, 2 of rates, 1 with b known])."""
    rows = []
    for each in sets:
        truth = ensemble(each)
        codes, chances = patterns(*truth, imbalance)
        stream = random(2, round(10 * imbalance), items, each)
        spectral = Spectral(draw(stream, codes, chances, items))
        found = [spectral.tensor, spectral.likelihood, spectral.of(imbalance)]
        squared = [
            np.mean([(one.sensitivity - truth[0]) ** 2, (one.specificity - truth[1]) ** 2])
            for one in found
        ]
        rows.append([found[0].imbalance, found[1].imbalance, *squared])
    return np.array(rows)


def section_6_1(settings: Settings) -> None:
    cells = list(product(IMBALANCES, settings.sizes))
    found = run_cells(errors, cells, settings.sets, settings.jobs)
    table, slopes, gains = [], [], []
    for (imbalance, items), rows in zip(cells, found, strict=True):
        squared = (rows[:, :2] - imbalance) ** 2
        for place, method in enumerate(METHODS):
            table.append(
                {
                    "b": imbalance,
                    "n": items,
                    "method": method,
                    "mean": rows[:, place].mean(),
                    "sd": rows[:, place].std(ddof=1),
                    "mse": squared[:, place].mean(),
                    "mse_error": squared[:, place].std(ddof=1) / np.sqrt(len(rows)),
                    "rates_mse": rows[:, 2 + place].mean(),
                    "sets": len(rows),
                }
            )
        table.append(
            {
                "b": imbalance,
                "n": items,
                "method": "known b",
                "mean": imbalance,
                "sd": 0.0,
                "mse": 0.0,
                "mse_error": 0.0,
                "rates_mse": rows[:, 4].mean(),
                "sets": len(rows),
            }
        )
        saved = squared[:, 0] - squared[:, 1]
        gains.append(
            {
                "b": imbalance,
                "n": items,
                "likelihood_over_tensor": squared[:, 1].mean() / squared[:, 0].mean(),
                "saved": saved.mean(),
                "saved_error": saved.std(ddof=1) / np.sqrt(len(rows)),
            }
        )
    for imbalance, method, what in product(IMBALANCES, (*METHODS, "known b"), ("mse", "rates_mse")):
        own = [
            row
            for row in table
            if (row["b"], row["method"]) == (imbalance, method) and row["n"] >= FITTED_FROM
        ]
        if method == "known b" and what == "mse":
            continue
        slopes.append(
            {
                "b": imbalance,
                "method": method,
                "of": "b" if what == "mse" else "rates",
                "slope": slope([row["n"] for row in own], [row[what] for row in own]),
                "from_n": FITTED_FROM,
            }
        )
    write(settings.results / "artificial.csv", table)
    write(settings.results / "artificial_gain.csv", gains)
    write(settings.results / "artificial_slopes.csv", slopes)


def slope(sizes: list[int], squared: list[float]) -> float:
    """Least-squares slope on log–log axes."""
    return float(np.polyfit(np.log(sizes), np.log(squared), 1)[0])


# --- the figure of the appendix -----------------------------------------------------------------


def appendix_errors(imbalance: float, classifiers: int, sets: range) -> np.ndarray:
    """Absolute errors of b with v estimated, with the true v, and by the posterior mode."""
    rows = []
    for each in sets:
        stream = random(3, round(10 * imbalance), classifiers, each)
        sensitivity, specificity = (stream.uniform(*APPENDIX_RATES, classifiers) for _ in range(2))
        positive = stream.random(APPENDIX_ITEMS) < (1 + imbalance) / 2
        chance = np.where(positive[:, None], sensitivity, 1 - specificity)
        votes = (stream.random(chance.shape) < chance).astype(np.int8)
        spectral = Spectral(lf.tally(votes, classes=(0, 1)))
        found = [
            spectral.tensor.imbalance,
            spectral.tensor_with(true_vector(sensitivity, specificity, imbalance)),
            spectral.finish(1.0).imbalance,
        ]
        rows.append(np.abs(np.array(found) - imbalance))
    return np.array(rows)


def with_labels(imbalance: float) -> float:
    """Mean absolute error of b were it estimated from the true labels: what is left of it for any m."""
    return float(np.sqrt(2 / np.pi * (1 - imbalance**2) / APPENDIX_ITEMS))


def appendix(settings: Settings) -> None:
    cells = list(product((0.0, 0.3), settings.classifiers))
    found = run_cells(appendix_errors, cells, settings.classifier_sets, settings.jobs)
    write(
        settings.results / "classifiers.csv",
        [
            {
                "b": imbalance,
                "m": classifiers,
                "way": way,
                "mae": rows[:, place].mean(),
                "mae_error": rows[:, place].std(ddof=1) / np.sqrt(len(rows)),
                "sets": len(rows),
            }
            for (imbalance, classifiers), rows in zip(cells, found, strict=True)
            for place, way in enumerate(WAYS)
        ],
    )
