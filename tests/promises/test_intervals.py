"""Promised coverage of the intervals, and size and power of the alarm."""

import numpy as np
import pytest
from common import sets

import labelfree as lf

pytestmark = pytest.mark.promise

# (m, n, b, share of missing votes, lowest rate, highest rate)
CELLS = [
    (m, n, b, missing, 0.5, 0.8)
    for m in (5, 10, 25)
    for n in (500, 5000)
    for b in (0.0, 0.6)
    for missing in (0.0, 0.2)
]
HIGH = [
    (10, 500, 0.6, 0.0, 0.6, 0.98),
    (10, 5000, 0.0, 0.2, 0.6, 0.98),
    (5, 5000, 0.0, 0.0, 0.6, 0.98),
    (25, 500, 0.6, 0.0, 0.6, 0.98),
]
THREE = [(3, n, b, 0.0, 0.55, 0.9) for n in (500, 5000) for b in (0.0, 0.6)]


def coverage(cell, number, method="map"):
    """Shares of data sets whose 95 % intervals hold the truth, of the rates and of the prevalence; and of refusals."""
    m, n, b, missing, low, high = cell
    held = []
    for each in range(number):
        random = np.random.default_rng([m, n, each])
        sensitivity, specificity = random.uniform(low, high, m), random.uniform(low, high, m)
        drawn = lf.simulate.votes(
            n,
            sensitivity=sensitivity,
            specificity=specificity,
            prevalence=(1 + b) / 2,
            missing=missing,
            seed=int(random.integers(2**31)),
        )
        estimate = lf.estimate(drawn.votes, missing=-1, dependence="ignore", method=method)
        if estimate.verdict.level == "unidentified":
            continue  # no interval is claimed
        hits = [
            _holds(estimate.interval("sensitivity"), sensitivity).mean(),
            _holds(estimate.interval("specificity"), specificity).mean(),
        ]
        held.append([np.mean(hits), _holds(estimate.interval("prevalence"), (1 + b) / 2)])
    return [*np.mean(held, axis=0), 1 - len(held) / number]


def _holds(ends, truth):
    return (ends[..., 0] <= truth) & (truth <= ends[..., 1])


def test_intervals_cover_what_they_promise():
    """Averaged over the rates of every cell; a single cell is noisy in the short form."""
    rows = np.array([coverage(cell, sets(25, 400)) for cell in CELLS + HIGH])
    assert 0.93 <= rows[:, 0].mean() <= 0.97
    assert rows[:, 1].mean() >= 0.92
    assert rows[:, 0].min() >= sets(0.86, 0.925)
    assert rows[:, 1].min() >= sets(0.76, 0.9)
    assert rows[:, 2].mean() <= 0.05


def test_three_classifiers_cover_at_least_nine_tenths():
    rows = np.array([coverage(cell, sets(100, 1000)) for cell in THREE])
    assert rows[:, 0].mean() >= 0.9
    assert rows[:, 0].min() >= sets(0.86, 0.88)
    assert rows[:, 2].mean() <= 0.1


@pytest.mark.parametrize("method", ["likelihood", "tensor"])
def test_moment_methods_cover_too(method):
    """From 500 items on the jackknife knows their spread; at 500 the tensor's is the noisiest."""
    cells = [
        (10, n, b, missing, 0.5, 0.8) for n in (500, 5000) for b, missing in ((0, 0), (0.6, 0.2))
    ]
    rows = np.array([coverage(cell, sets(15, 150), method=method) for cell in cells])
    assert 0.92 <= rows[:, 0].mean() <= 0.98
    assert rows[:, 1].mean() >= sets(0.85, 0.88)


@pytest.mark.parametrize("groups", [(), ((0, 1, 2),)])
def test_intervals_of_items_cover(groups):
    """The probability that the true rates give an item, averaged over items and data sets."""
    held = []
    for each in range(sets(25, 200)):
        random = np.random.default_rng([11, each])
        own = random.uniform(0.5, 0.8, 10), random.uniform(0.5, 0.8, 10)
        drawn = lf.simulate.votes(
            5000,
            sensitivity=own[0],
            specificity=own[1],
            prevalence=0.65,
            copies=groups,
            copying=0.9 if groups else 0.0,
            seed=each,
        )
        estimate = lf.estimate(drawn.votes)
        true = probability(drawn.votes, own, groups, 0.9)
        held.append(_holds(estimate.probability_interval(drawn.votes), true).mean())
    assert sets(0.9, 0.92) <= np.mean(held) <= 0.98


def probability(votes, own, groups, copying):
    """Pr(positive given votes), the members of groups copying their first."""
    model = {member: group[0] for group in groups for member in group[1:]}
    odds = np.full(len(votes), np.log(0.65 / 0.35))
    for i, (sensitivity, specificity) in enumerate(zip(*own, strict=True)):
        positive = votes[:, i] == 1
        given = [np.where(positive, r, 1 - r) for r in (1 - specificity, sensitivity)]
        if i in model:
            same = votes[:, i] == votes[:, model[i]]
            given = [copying * same + (1 - copying) * chance for chance in given]
        odds += np.log(given[1]) - np.log(given[0])
    return 1 / (1 + np.exp(-odds))


def raised(seed, classifiers=10, items=5000, rates=(0.5, 0.8), **options):
    """Whether there is an alarm; None where there is no answer."""
    random = np.random.default_rng([7, seed])
    sensitivity, specificity = random.uniform(*rates, (2, classifiers))
    drawn = lf.simulate.votes(
        items,
        sensitivity=sensitivity,
        specificity=specificity,
        prevalence=0.65,
        seed=int(random.integers(2**31)),
        **options,
    )
    found = lf.estimate(drawn.votes, dependence="test", missing=lf.simulate.MISSING, classes=(0, 1))
    return None if found.verdict.level == "unidentified" else found.alarm.raised


def share_raised(number, **options):
    every = [raised(seed, **options) for seed in range(number)]
    return np.mean([each for each in every if each is not None])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"items": 200},
        {"items": 200, "classifiers": 8, "missing": 0.2},
        {"items": 500},
        {"items": 600, "rates": (0.8, 0.99)},
        {"items": 2000, "rates": (0.8, 0.99), "classifiers": 25},
        {"rates": (0.9, 0.99)},
        {"classifiers": 5},
    ],
    ids=str,
)
def test_alarm_is_seldom_false(options):
    number = sets(300, 2000) if not options else sets(60, 1000)
    noise = 3 * np.sqrt(0.05 * 0.95 / number) - 0.02  # what a true size of .05 may show by chance
    assert share_raised(number, **options) <= 0.07 + max(0.0, noise)


def test_alarm_finds_a_pair_that_copies_one_vote_in_ten():
    assert share_raised(sets(150, 1000), copies=[(0, 1)], copying=0.1) >= 0.95


@pytest.mark.parametrize("classifiers", [5, 10])
def test_alarm_finds_copies_among_good_classifiers(classifiers):
    found = share_raised(
        sets(40, 400),
        classifiers=classifiers,
        rates=(0.9, 0.98),
        copies=[(0, 1)],
        copying=0.5,
    )
    assert found >= 0.95
