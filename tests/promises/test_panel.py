"""The promise for panels: what their consensus is expected to reach, it reaches on new votes, m = 8, n = 2000, ψ and η ~ U(.6, .9)."""

import numpy as np
import pytest
from common import sets

import labelfree as lf

pytestmark = pytest.mark.promise

ITEMS, NEW_ITEMS, SIZES = 2000, 20_000, (3, 5)
MOST_OFF, LEAST_NEAR = 0.01, 0.9  # of the median; share of panels off by less than three times that
KINDS: dict[str, dict] = {
    "independent": {},
    "half of the votes missing": {"missing": 0.5},
    "three that copy": {"copies": [(0, 1, 2)], "copying": 0.9},
    "a rare class": {"prevalence": 0.15},
}


def reached(estimate, panel, drawn, more, seed):
    """The balanced accuracy of the panel's labels on new and complete votes of the same classifiers."""
    new = lf.simulate.votes(
        NEW_ITEMS,
        sensitivity=drawn.sensitivity,
        specificity=drawn.specificity,
        seed=seed,
        **{name: value for name, value in more.items() if name != "missing"},
    )
    places = [estimate.classifiers.index(name) for name in panel.classifiers]
    votes = np.full(new.votes.shape, np.nan)
    votes[:, places] = new.votes[:, places]
    labels = np.asarray(estimate.label(votes, rule="likelihood")).astype(int)
    return np.mean([(labels[new.truth == true] == true).mean() for true in (0, 1)])


@pytest.mark.parametrize("kind", KINDS)
def test_a_panel_reaches_what_is_expected_of_it(kind):
    more, off = KINDS[kind], []
    for seed in range(sets(12, 40)):
        random = np.random.default_rng([11, seed])
        rates = dict(
            zip(("sensitivity", "specificity"), random.uniform(0.6, 0.9, (2, 8)), strict=True)
        )
        drawn = lf.simulate.votes(ITEMS, seed=200 + seed, **rates, **more)
        votes = np.where(drawn.votes < 0, np.nan, drawn.votes)
        estimate = lf.estimate(votes, classes=[0, 1])
        for size in SIZES:
            panel = estimate.best(size)
            off.append(panel.balanced_accuracy - reached(estimate, panel, drawn, more, 5000 + seed))
    # Now and then copies pass for two good classifiers; the median bears it.
    assert abs(np.median(off)) < MOST_OFF
    assert np.mean(np.abs(off) < 3 * MOST_OFF) > LEAST_NEAR
