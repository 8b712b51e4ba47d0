"""What is promised of drift: rarely a false flag, none by the prevalence alone, and real changes are found."""

import numpy as np
import pytest
from common import sets
from scipy.stats import binom

import labelfree as lf

SIZE = 0.07  # promised share of data sets with any false flag, at 5 %
SETS = sets(30, 1000)


def compared(seed, change=0.0, items=(2000, 2000), classifiers=5, prevalence=(0.6, 0.6)):
    """Two periods of votes; of the first classifier alone the sensitivity falls by `change`."""
    random = np.random.default_rng(seed)
    sensitivity, specificity = random.uniform(0.6, 0.9, (2, classifiers))
    later = sensitivity - np.where(np.arange(classifiers) == 0, change, 0.0)
    drawn = [
        lf.simulate.votes(
            n, sensitivity=rates, specificity=specificity, prevalence=p, seed=2 * seed + place
        ).votes
        for place, (n, rates, p) in enumerate(
            zip(items, (sensitivity, later), prevalence, strict=True)
        )
    ]
    return lf.drift([lf.tally(votes) for votes in drawn])


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"items": (5000, 1000)},
        {"items": (2000, 2000), "classifiers": 10},
        {"prevalence": (0.7, 0.4), "items": (5000, 5000)},
    ],
    ids=["alike", "unequal", "ten", "another prevalence"],
)
def test_where_no_rate_changed_few_data_sets_are_flagged(more):
    found = [compared(seed, **more) for seed in range(SETS)]
    most = binom.ppf(0.999, SETS, SIZE)  # of a share of SIZE, once in a thousand runs more
    assert sum(bool(each.drifted) for each in found) <= most
    assert sum(each.p_value < 0.05 for each in found) <= most
    moved = sum(each.prevalence.drifted for each in found)
    assert moved == SETS if "prevalence" in more else moved <= most


def test_a_real_change_is_found():
    found = [compared(seed, change=0.1, items=(5000, 5000), classifiers=10) for seed in range(SETS)]
    assert np.mean(["classifier_1" in each.drifted for each in found]) > 0.95
