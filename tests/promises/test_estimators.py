"""The statistical promises of the estimators: JNK section 6 and the table of mean squared errors."""

import numpy as np
import pytest
from common import balanced_accuracy, cramer_rao, data_folder, sets

import labelfree as lf

pytestmark = pytest.mark.promise


def errors(imbalance, items, number, method="map", seed=0):
    """Squared errors and bounds, (data sets, [b, bound of b, rates, bound of rates])."""
    rows = []
    for each in range(number):
        random = np.random.default_rng([seed, each])
        sensitivity, specificity = random.uniform(0.5, 0.8, 10), random.uniform(0.5, 0.8, 10)
        drawn = lf.simulate.votes(
            items,
            sensitivity=sensitivity,
            specificity=specificity,
            prevalence=(1 + imbalance) / 2,
            seed=int(random.integers(2**31)),
        )
        estimate = lf.estimate(drawn.votes, method=method)
        if estimate.verdict.level == "unidentified":
            rows.append([np.nan] * 4)  # counted below: it must be rare
            continue
        bounds = cramer_rao(sensitivity, specificity, imbalance, items)
        of_rates = ((estimate.sensitivity - sensitivity) ** 2).sum() + (
            (estimate.specificity - specificity) ** 2
        ).sum()
        rows.append(
            [
                (estimate.imbalance - imbalance) ** 2,
                bounds[0],
                of_rates,
                bounds[1].sum() + bounds[2].sum(),
            ]
        )
    return np.array(rows)


def over_bound(rows):
    sums = np.nansum(rows, axis=0)
    return sums[0] / sums[1], sums[2] / sums[3]


@pytest.mark.parametrize("imbalance", [0.0, 0.3, 0.6])
def test_map_is_near_the_cramer_rao_bound(imbalance):
    rows = errors(imbalance, 10**4, sets(1000, 4000))
    of_imbalance, of_rates = over_bound(rows)
    assert not np.isnan(rows).any()
    assert of_imbalance <= 1.15
    assert of_rates <= 1.06


def test_map_is_at_the_bound_with_few_items():
    rows = errors(0.3, 300, sets(1000, 4000))
    of_imbalance, of_rates = over_bound(rows)
    assert np.isnan(rows[:, 0]).mean() <= 0.01
    assert of_imbalance <= 1.05
    assert of_rates <= 1.06


@pytest.mark.parametrize("method", ["tensor", "likelihood"])
@pytest.mark.parametrize("imbalance", [0.0, 0.3, 0.6])
def test_error_of_the_imbalance_falls_like_one_over_n(method, imbalance):
    sizes = [3000, 10_000, 30_000, 100_000]
    squared = [np.nanmean(errors(imbalance, n, sets(150, 600), method)[:, 0]) for n in sizes]
    slope = np.polyfit(np.log(sizes), np.log(squared), 1)[0]
    assert -1.1 <= slope <= -0.9


def test_likelihood_beats_sml_on_magic():
    folder = data_folder() / "weka"
    gains = []
    for realization in range(30):
        kept = np.load(folder / f"magic_r{realization:02d}.npz")
        votes, truth = kept["votes"].T, kept["y"] * 2 - 1 if kept["y"].min() == 0 else kept["y"]
        estimate = lf.estimate(votes, method="likelihood")
        better = balanced_accuracy(estimate.label(votes, rule="likelihood"), truth)
        gains.append(better - balanced_accuracy(estimate.label(votes, rule="spectral"), truth))
    assert np.sum(np.array(gains) > 0) >= 29
    assert 0.015 <= np.mean(gains) <= 0.025
