"""The promises for choosing: panels reach what is expected of them; votes on the next items tell most.

m = 8, n = 2000, ψ and η ~ U(.6, .9).
"""

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


MORE_VOTES, TIMES_AS_MANY = 200, 3.0


def test_a_vote_on_the_next_items_mends_more_labels_than_one_on_any():
    chosen = other = 0.0
    for seed in range(sets(6, 40)):
        random = np.random.default_rng([12, seed])
        rates = dict(
            zip(("sensitivity", "specificity"), random.uniform(0.6, 0.9, (2, 12)), strict=True)
        )
        drawn = lf.simulate.votes(ITEMS, prevalence=0.4, missing=0.6, seed=seed, **rates)
        voted = (drawn.votes >= 0).any(axis=1)
        votes = np.where(drawn.votes < 0, np.nan, drawn.votes)[voted]
        truth = drawn.truth[voted] == 1
        estimate = lf.estimate(votes, classes=[0, 1])
        before = np.asarray(estimate.probability(votes), dtype=float)

        def mended(items, drawn=drawn, truth=truth, before=before, random=random):
            """Labels that turn right, less those that turn wrong, by one vote of an average classifier."""
            sensitivity, specificity = drawn.sensitivity.mean(), drawn.specificity.mean()
            true = truth[items]
            vote = random.random(len(items)) < np.where(true, sensitivity, 1 - specificity)
            for_one = sensitivity / (1 - specificity)
            for_zero = (1 - sensitivity) / specificity
            odds = before[items] / (1 - before[items]) * np.where(vote, for_one, for_zero)
            return ((odds > 1) == true).sum() - ((before[items] > 0.5) == true).sum()

        best = np.array([int(row["item"]) for row in estimate.next_items(votes, MORE_VOTES)])
        chosen += mended(best)
        other += mended(random.choice(len(votes), MORE_VOTES, replace=False))
    assert chosen > TIMES_AS_MANY * max(other, 1.0)
