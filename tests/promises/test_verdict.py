"""Promises on real votes through the front door: the verdict, and the rates that it comes with."""

import sys
from pathlib import Path

import numpy as np
import pytest
from common import FULL, data_folder, sets

import labelfree as lf

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

pytestmark = pytest.mark.promise

QUICK = (
    "magic",
    "judgebench",
    "musk",
    "spambase",
    "mnist",
    "chexpert_radiologists",
    "mrmc_franken",
    "bluebird",
)
SLOW = ("llmbar",)


def test_no_real_ensemble_is_called_sound_and_rates_are_near_the_truth():
    data_folder()
    import real_rates

    errors, verdicts = [], {}
    for name in QUICK + (SLOW if FULL else ()):
        of_family = []
        for each, votes in enumerate(real_rates.family(name, sets(1, 30))):
            estimate = lf.estimate(votes.codes, missing=-1, classes=(0, 1))
            sensitivity, specificity, _ = votes.figures()
            truth = (sensitivity + specificity) / 2
            of_family.append(np.nanmean(np.abs(estimate.balanced_accuracy - truth)))
            verdicts[name, each] = estimate.verdict.level
        errors.append(np.mean(of_family))
    assert "sound" not in verdicts.values(), verdicts
    assert np.mean(errors) <= 0.065


def test_three_hundred_real_classifiers_are_not_called_sound():
    """The thirty realizations of MAGIC side by side; to model them takes minutes."""
    data_folder()
    import real_rates

    votes = next(real_rates.family("magic_weka", 1))
    dependence = "auto" if FULL else "test"
    estimate = lf.estimate(votes.codes, missing=-1, classes=(0, 1), dependence=dependence)
    assert estimate.verdict.level == "caution"


def test_fifty_gold_labels_bring_the_rates_near_the_truth():
    data_folder()
    import real_rates

    errors, covered = [], []
    for name in QUICK:
        votes = next(real_rates.family(name, 1))
        sensitivity, specificity, _ = votes.figures()
        truth = (sensitivity + specificity) / 2
        random = np.random.default_rng(5)
        for _ in range(10 if FULL else 2):
            chosen = random.choice(len(votes.truth), 50, replace=False)
            gold = {int(place): int(votes.truth[place]) for place in chosen}
            estimate = lf.estimate(votes.codes, missing=-1, classes=(0, 1), gold=gold)
            errors.append(np.nanmean(np.abs(estimate.balanced_accuracy - truth)))
            for quantity, value in (("sensitivity", sensitivity), ("specificity", specificity)):
                ends = estimate.interval(quantity, 0.9)
                covered.append(np.nanmean((ends[:, 0] <= value) & (value <= ends[:, 1])))
    assert np.mean(errors) <= 0.035
    assert np.mean(covered) >= 0.85
