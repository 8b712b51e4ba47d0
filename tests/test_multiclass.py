"""K classes: exactness, kernels against naive loops, and what happens at the edges."""

import numpy as np
import pytest

from labelfree import Tally
from labelfree._multiclass import many_classes
from labelfree._products import Blocks


def confusions(classifiers, classes, seed, low=0.5, high=0.8):
    """Confusion matrices with their diagonals in [low, high], the rest spread at random."""
    random = np.random.default_rng(seed)
    found = np.empty((classifiers, classes, classes))
    for matrix in found:
        for true in range(classes):
            right = random.uniform(low, high)
            rest = random.dirichlet(np.full(classes - 1, 4.0)) * (1 - right)
            matrix[true] = np.insert(rest, true, right)
    return found


def exact(class_probabilities, confusion, items=1.0):
    """Every pattern with its exact probability."""
    m, classes, _ = confusion.shape
    codes = np.array(list(np.ndindex(*[classes] * m)))
    given = np.ones((len(codes), classes))
    for i in range(m):
        given *= confusion[i][:, codes[:, i]].T
    return Tally.from_codes(
        codes, items * given @ class_probabilities, classes=tuple(range(classes))
    )


def drawn(class_probabilities, confusion, items, seed, missing=0.0):
    """Codes (n, m) and the truth."""
    random = np.random.default_rng(seed)
    m, classes, _ = confusion.shape
    truth = random.choice(classes, size=items, p=class_probabilities)
    ladder = confusion.cumsum(axis=2)
    codes = np.stack(
        [(random.random(items)[:, None] > ladder[i][truth]).sum(axis=1) for i in range(m)], axis=1
    )
    codes = np.minimum(codes, classes - 1)
    codes[random.random(codes.shape) < missing] = -1
    return codes, truth


def counted(codes, classes):
    return Tally.from_codes(codes, np.ones(len(codes)), classes=tuple(range(classes)))


@pytest.mark.parametrize(("classes", "m"), [(3, 5), (3, 3), (4, 4)])
def test_exact_probabilities_give_the_confusion_matrices_back(classes, m):
    shares = np.arange(2.0, 2.0 + classes)
    shares /= shares.sum()
    truth = confusions(m, classes, seed=classes)
    found = many_classes(Blocks(exact(shares, truth)), pseudo_count=0.0)
    assert found.converged
    assert np.max(np.abs(found.model.class_probabilities - shares)) < 1e-8
    assert np.max(np.abs(found.model.confusion - truth)) < 1e-8


def test_what_is_known_stays_as_it_is():
    shares, truth = np.array([0.5, 0.3, 0.2]), confusions(5, 3, seed=2)
    codes, _ = drawn(shares, truth, 500, seed=3)
    blocks = Blocks(counted(codes, 3))
    known = {(1, 2): np.array([0.1, 0.2, 0.7]), (3, 0): np.array([0.6, 0.3, 0.1])}
    found = many_classes(blocks, class_probabilities=shares, fixed=known)
    assert (found.model.class_probabilities == shares).all()
    for place, row in known.items():
        assert (found.model.confusion[place] == row).all()
    strong = {(0, 0): np.array([1e7, 2e7, 1e7])}
    held = many_classes(blocks, believed=strong).model
    assert np.allclose(held.confusion[0, 0], [0.25, 0.5, 0.25], atol=1e-4)
