"""Promised coverage of the intervals of K classes."""

import numpy as np
import pytest
from common import sets

import labelfree as lf

pytestmark = pytest.mark.promise

# (K, m, n, share of missing votes)
CELLS = [(3, 5, 1000, 0.0), (3, 8, 2000, 0.3), (5, 8, 4000, 0.0), (5, 8, 4000, 0.2)]


def drawn(classes, classifiers, items, missing, seed):
    """Votes of independent classifiers, with class probabilities and confusion matrices."""
    random = np.random.default_rng([classes, items, seed])
    shares = random.dirichlet(np.full(classes, 10.0))
    right = random.uniform(0.55, 0.85, (classifiers, classes))
    confusion = np.stack(
        [
            [
                np.insert(random.dirichlet(np.full(classes - 1, 4.0)) * (1 - r), true, r)
                for true, r in enumerate(row)
            ]
            for row in right
        ]
    )
    truth = random.choice(classes, items, p=shares)
    ladder = confusion.cumsum(axis=2)[:, :, :-1]
    votes = np.stack(
        [(random.random(items)[:, None] > each[truth]).sum(axis=1) for each in ladder], axis=1
    )
    votes[random.random(votes.shape) < missing] = -1
    return votes, shares, confusion


def coverage(cell, number):
    """Shares of what the 95 % intervals hold: of the cells, of the class probabilities, of the accuracies."""
    held = []
    for seed in range(number):
        votes, shares, confusion = drawn(*cell, seed)
        found = lf.estimate(votes, missing=-1, dependence="ignore", classes=range(cell[0]))
        accuracy = np.einsum("ikk->ik", confusion) @ shares
        held.append(
            [
                _holds(found.interval("confusion"), confusion),
                _holds(found.interval("class_probabilities"), shares),
                _holds(found.interval("accuracy"), accuracy),
            ]
        )
    return np.mean(held, axis=0)


def _holds(ends, truth):
    return ((ends[..., 0] <= truth) & (truth <= ends[..., 1])).mean()


def test_intervals_of_many_classes_cover():
    rows = np.array([coverage(cell, sets(6, 200)) for cell in CELLS])
    assert 0.92 <= rows[:, 0].mean() <= 0.98
    assert rows[:, 0].min() >= sets(0.89, 0.91)
    assert rows[:, 1].mean() >= sets(0.85, 0.9)
    assert rows[:, 2].mean() >= sets(0.85, 0.9)
