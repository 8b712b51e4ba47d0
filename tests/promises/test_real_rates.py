"""Promises on real votes with the truth known: MAGIC, Musk and Spambase, ten classifiers each.

The label-free rates tempered, and those that fifty gold labels calibrate. `benchmarks/real_rates.py`
prints the figures of every family.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from common import data_folder, sets

import labelfree as lf
from labelfree._difficulty import fit_trait, tempered, tempering_slope
from labelfree._gold import gold_estimate
from labelfree._imbalance import likelihood_imbalance, tensor_imbalance
from labelfree._latent_class import Model, Prior, fit
from labelfree._moments import moments
from labelfree._products import Blocks
from labelfree._rank_one import rank_one
from labelfree._rates import clipped, rates, smallest_rate

pytestmark = pytest.mark.promise

FAMILIES = ("magic", "musk", "spambase")
REALIZATIONS = sets(1, 10)
DRAWS = sets(10, 40)
GOLD = 50


def balanced(model: Model) -> np.ndarray:
    return (model.confusion[:, 1, 1] + model.confusion[:, 0, 0]) / 2


def realizations(family: str) -> list:
    files = sorted((data_folder() / "weka").glob(f"{family}_r*.npz"))[:REALIZATIONS]
    kept = [np.load(file) for file in files]
    return [((each["votes"].T > 0).astype(np.int8), (each["y"] > 0).astype(int)) for each in kept]


@cache
def measured() -> list:
    """(family, codes, truth, blocks, mode under independence, τ, the true rates) of every realization."""
    found = []
    for family in FAMILIES:
        for codes, truth in realizations(family):
            blocks = Blocks(lf.Tally.from_codes(codes, np.ones(len(codes))))
            likelihood, tensor = starts(blocks)
            mode = fit(blocks, likelihood, Prior.flat(codes.shape[1], 2, 1.0)).model
            trait = fit_trait(blocks, [likelihood, tensor]).trait
            slope = tempering_slope(blocks, mode, trait)
            right = {
                "sensitivity": codes[truth == 1].mean(axis=0),
                "specificity": 1 - codes[truth == 0].mean(axis=0),
            }
            right["balanced_accuracy"] = (right["sensitivity"] + right["specificity"]) / 2
            found.append((family, codes, truth, blocks, mode, slope, right))
    return found


def starts(blocks: Blocks) -> list[Model]:
    seen = moments(blocks)
    vector = rank_one(seen).vector
    smallest = smallest_rate(blocks.tally.sample_size)
    imbalances = [
        way(blocks, seen, vector).value for way in (likelihood_imbalance, tensor_imbalance)
    ]
    return [
        Model.binary(b, *(clipped(rate, smallest) for rate in rates(seen.mean, vector, b)))
        for b in imbalances
    ]


def by_family(values: list[tuple[str, float]]) -> float:
    """Mean over families of the mean over a family's realizations."""
    return float(
        np.mean([np.mean([value for name, value in values if name == one]) for one in FAMILIES])
    )


def error_of(model: Model, right: dict) -> float:
    return float(np.abs(balanced(model) - right["balanced_accuracy"]).mean())


def test_tempered_balanced_accuracies_are_near_the_truth_and_nearer_than_under_independence():
    cool, independent = [], []
    for family, _, _, blocks, mode, slope, right in measured():
        cool.append((family, error_of(tempered(blocks, mode, slope).model, right)))
        independent.append((family, error_of(mode, right)))
    assert by_family(cool) <= 0.065
    assert by_family(cool) <= 0.75 * by_family(independent)


def test_fifty_gold_labels_bring_them_nearer_and_the_intervals_cover():
    errors, covered = [], {"sensitivity": [], "specificity": [], "balanced_accuracy": []}
    for place, (family, codes, truth, blocks, mode, slope, right) in enumerate(measured()):
        random = np.random.default_rng(place)
        for _ in range(DRAWS):
            chosen = random.choice(len(truth), GOLD, replace=False)
            gold = gold_estimate(blocks, mode, slope, codes[chosen], truth[chosen])
            errors.append((family, error_of(gold.model, right)))
            for what, shares in covered.items():
                low, high = gold.interval(what, 0.9).T
                inside = (low <= right[what]) & (right[what] <= high)
                shares.append((family, float(inside.mean())))
    assert by_family(errors) <= 0.035
    for shares in covered.values():
        assert by_family(shares) >= 0.85
