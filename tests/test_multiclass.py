"""K classes: exactness, kernels against naive loops, and what happens at the edges."""

from itertools import combinations

import numpy as np
import pytest

from labelfree import Tally
from labelfree._latent_class import expect
from labelfree._moments import moments
from labelfree._multiclass import many_classes
from labelfree._one_vs_rest import recoded
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


# --- what two classes at a time cannot tell (JNK Theorem 2) ----------------------------------------


def even_wrong_votes(right, classes):
    """Matrices whose wrong votes fall on all other classes alike: splits of them are models of two classes."""
    off = (1 - right) / (classes - 1)
    return off[:, None, None] + (right - off)[:, None, None] * np.eye(classes)


def turned(confusion, place, by):
    """The same ensemble with one matrix changed around a cycle of three classes (JNK, proof of Theorem 2)."""
    cycle = np.zeros(confusion.shape[1:])
    for true, voted in ((0, 1), (1, 2), (2, 0)):
        cycle[true, voted] += by
        cycle[voted, true] -= by
    other = confusion.copy()
    other[place] += cycle
    assert (other > 0).all()
    return other


@pytest.mark.parametrize("classes", [3, 4])
def test_no_split_tells_two_ensembles_apart_and_the_likelihood_does(classes):
    even = np.full(classes, 1 / classes)
    one = even_wrong_votes(np.array([0.7, 0.5, 0.6, 0.8]), classes)
    one[1] = confusions(1, classes, seed=7, low=0.45, high=0.6)[0]
    two = turned(one, 1, 0.04)
    assert np.max(np.abs(two - one)) > 0.03
    tallies = exact(even, one), exact(even, two)
    for size in range(1, classes):
        for upper in combinations(range(classes), size):
            seen = [moments(Blocks(recoded(tally, upper))) for tally in tallies]
            assert np.allclose(seen[0].mean, seen[1].mean, rtol=0, atol=1e-12)
            assert np.allclose(seen[0].covariance, seen[1].covariance, rtol=0, atol=1e-12)
    model_one, model_two = (
        many_classes(Blocks(tally), pseudo_count=0.0).model for tally in tallies
    )
    assert np.max(np.abs(model_one.confusion - one)) < 1e-7
    assert np.max(np.abs(model_two.confusion - two)) < 1e-7
    blocks = Blocks(tallies[0])
    assert (
        expect(blocks, model_one).log_likelihood > expect(blocks, model_two).log_likelihood + 1e-4
    )


@pytest.mark.parametrize("classes", [3, 5])
def test_two_at_a_time_say_by_how_much_they_missed(classes):
    """Even wrong votes: each split is a model of two classes, so nothing is missed; uneven ones miss."""
    even = np.full(classes, 1 / classes)
    right = np.random.default_rng(1).uniform(0.5, 0.8, 5)
    plain = even_wrong_votes(right, classes)
    found = many_classes(Blocks(exact(even, plain, items=1e9)), method="likelihood")
    assert abs(found.missed) < 1e-4
    diagonal = np.einsum("ikk->ik", found.model.confusion)
    assert np.max(np.abs(diagonal - right[:, None])) < 1e-3
    other = exact(even, confusions(5, classes, seed=5), items=1e9)
    uneven = many_classes(Blocks(other), method="likelihood")
    assert abs(uneven.missed) > 1e-3
    assert uneven.model.class_probabilities.sum() == pytest.approx(1)


def test_two_classes_stand_in_any_order():
    codes, _ = drawn(np.array([0.6, 0.4]), confusions(5, 2, seed=4), 300, seed=5)
    blocks = Blocks(counted(codes, 2))
    plain, ordered = (many_classes(blocks, ordered=which).model for which in (False, True))
    assert (plain.confusion == ordered.confusion).all()
