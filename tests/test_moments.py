"""Means, covariances and the third-moment ratio, against loops and against the closed forms."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from labelfree import Tally, _products, simulate
from labelfree._moments import moments, third_moment_ratio
from labelfree._products import Blocks

from . import naive


def drawn(m, missing, patterns=60, seed=0):
    random = np.random.default_rng([seed, m, int(10 * missing)])
    codes = random.integers(0, 2, (patterns, m))
    codes[random.random(codes.shape) < missing] = -1
    counts = random.integers(1, 50, patterns).astype(float)
    counted = Tally.from_codes(codes, counts)
    return counted, counted.codes().astype(int), counted.counts


def as_sparse(counted):
    patterns = csr_array(counted.codes() + np.int8(1))
    return Tally(counted.classifiers, counted.classes, patterns, counted.counts)


@pytest.mark.parametrize("m", [1, 3, 7])
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_moments_are_those_of_the_pairs_that_both_voted(m, missing):
    counted, codes, counts = drawn(m, missing)
    for stored in (counted, as_sparse(counted)):
        found = moments(Blocks(stored))
        assert np.allclose(found.mean, naive.means(codes, counts), rtol=0, atol=1e-13)
        assert np.allclose(found.covariance, naive.covariance(codes, counts), rtol=0, atol=1e-13)
        assert np.array_equal(found.pair_counts, naive.pair_counts(codes, counts))
        assert np.array_equal(found.votes, np.diagonal(found.pair_counts))


def test_covariance_without_missing_votes_is_numpys():
    counted, codes, counts = drawn(6, 0.0)
    found = moments(Blocks(counted))
    wanted = np.cov(2 * codes.T - 1, fweights=counts.astype(int), bias=True)
    np.fill_diagonal(wanted, 0.0)
    assert np.allclose(found.covariance, wanted, rtol=0, atol=1e-14)


@pytest.mark.parametrize("imbalance", [-0.8, 0.0, 0.3])
def test_moments_of_exact_probabilities_are_those_of_the_lemmas(imbalance):
    psi, eta = simulate.rates(5, seed=1)
    blocks = Blocks(simulate.exact(psi, eta, (1 + imbalance) / 2))
    found = moments(blocks)
    strength = psi + eta - 1
    vector = np.sqrt(1 - imbalance**2) * strength
    wanted = np.outer(vector, vector)
    np.fill_diagonal(wanted, 0.0)
    assert np.allclose(found.mean, psi - eta + imbalance * strength, rtol=0, atol=1e-14)
    assert np.allclose(found.covariance, wanted, rtol=0, atol=1e-14)
    ratio = third_moment_ratio(blocks, found.mean, vector)
    assert ratio == pytest.approx(-2 * imbalance / np.sqrt(1 - imbalance**2), abs=1e-12)


@pytest.mark.parametrize("m", [3, 4, 6])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_third_moment_ratio_is_that_of_the_whole_tensor(m, missing):
    counted, codes, counts = drawn(m, missing)
    direction = np.random.default_rng(m).normal(size=m)
    mean = naive.means(codes, counts)
    wanted = naive.third_moment_ratio(*naive.third_moments(codes, counts, mean), direction)
    for stored in (counted, as_sparse(counted)):
        found = third_moment_ratio(Blocks(stored), mean, direction)
        assert found == pytest.approx(wanted, rel=1e-11)


def test_third_moment_ratio_does_not_depend_on_the_blocks(monkeypatch):
    counted, codes, counts = drawn(12, 0.1, patterns=1500)
    direction, mean = np.linspace(0.2, 0.9, 12), naive.means(codes, counts)
    whole = third_moment_ratio(Blocks(counted), mean, direction)
    monkeypatch.setattr(_products, "BLOCK_CELLS", 1)
    assert third_moment_ratio(Blocks(counted), mean, direction) == pytest.approx(whole, rel=1e-12)


def test_third_moment_ratio_without_a_triple_is_zero():
    blocks = Blocks(Tally.from_codes([[0, 1, -1], [-1, 1, 0]], [3, 4]))
    assert third_moment_ratio(blocks, np.zeros(3), np.ones(3)) == 0.0
    assert third_moment_ratio(blocks, np.zeros(3), np.zeros(3)) == 0.0


def test_classifiers_of_one_label_or_no_vote_are_constant_and_covary_with_nobody():
    codes = np.array([[1, 0, -1, 0, 1], [1, 1, -1, 0, 0], [1, 0, -1, -1, 1]])
    found = moments(Blocks(Tally.from_codes(codes, [5, 7, 2])))
    assert found.constant.tolist() == [True, False, False, True, False]
    assert found.votes.tolist() == [14, 14, 0, 12, 14]
    assert found.mean[[0, 2, 3]].tolist() == [1, 0, -1]
    assert not found.covariance[[0, 2, 3]].any()
    assert not found.covariance[:, [0, 2, 3]].any()


def test_one_differing_vote_in_a_billion_is_not_constant():
    counted = Tally.from_codes([[1, 1, 0], [0, 1, 1]], [1e9 - 1, 1])
    assert moments(Blocks(counted)).constant.tolist() == [False, True, False]


def test_a_pair_that_never_met_has_no_covariance_and_no_count():
    codes = np.array([[1, 0, -1], [0, 0, -1], [-1, 1, 1], [-1, 0, 0]])
    found = moments(Blocks(Tally.from_codes(codes, [2, 3, 4, 5])))
    assert found.pair_counts[0, 2] == 0
    assert found.covariance[0, 2] == 0
    assert found.covariance[1, 2] != 0
