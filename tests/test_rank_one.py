"""The rank-one vector: every way of filling in what was not observed, its sign, scale and cap."""

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import least_squares

from labelfree._moments import Moments
from labelfree._rank_one import WAYS, rank_one

from . import naive


def seen(vector, noise=0.0, unmet=(), mean=None, counts=None, seed=0):
    """Moments whose covariance is v vᵀ with symmetric noise; `unmet` pairs never met."""
    vector = np.asarray(vector, dtype=float)
    m = len(vector)
    random = np.random.default_rng(seed)
    rough = random.normal(scale=noise, size=(m, m))
    covariance = np.outer(vector, vector) + rough + rough.T
    counts = np.full((m, m), 100.0) if counts is None else counts.copy()
    for i, j in unmet:
        covariance[i, j] = covariance[j, i] = counts[i, j] = counts[j, i] = 0.0
    np.fill_diagonal(covariance, 0.0)
    return Moments(np.zeros(m) if mean is None else np.asarray(mean, float), covariance, counts)


def symmetric_counts(m, seed=0):
    counts = np.random.default_rng(seed).integers(20, 400, (m, m)).astype(float)
    return np.triu(counts) + np.triu(counts, 1).T


def off_diagonal(moments):
    return moments.covariance, np.where(np.eye(len(moments.mean)) > 0, 0.0, moments.pair_counts)


def leading(matrix):
    values, vectors = np.linalg.eigh(matrix)
    return vectors[:, -1] * np.sqrt(values[-1])


def scaled(vector, moments):
    """The multiple of v whose v vᵀ is nearest to the covariances of the pairs that met."""
    pairs = [(i, j) for i, j in combinations(range(len(vector)), 2) if moments.pair_counts[i, j]]
    above = sum(moments.covariance[i, j] * vector[i] * vector[j] for i, j in pairs)
    below = sum((vector[i] * vector[j]) ** 2 for i, j in pairs)
    return vector * np.sqrt(above / below) * np.sign(vector.sum())


VECTOR = np.array([0.5, 0.35, 0.6, 0.2, 0.45, 0.3])
CHAIN = [(0, 2), (0, 3), (1, 5), (2, 4)]  # pairs that never met


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("vector", "unmet"),
    [
        (VECTOR, []),
        (VECTOR, CHAIN),
        ([0.5, 0.4, 0.3], []),
        ([0.5, 0.4, -0.3, 0.45, 0.2, 0.6], []),
        ([0.5, 0.4, -0.3, 0.45, 0.2, 0.6], CHAIN),
        ([0.9, 0.8, 0.7, 0, 0, 0.6], []),
        ([0.9, 0.8, 0.7, 0, 0, 0.6], [(0, 2), (3, 4), (1, 3)]),
    ],
)
def test_exact_covariances_give_the_vector_back(way, vector, unmet):
    found = rank_one(seen(vector, unmet=unmet), way)
    assert found.vector == pytest.approx(np.array(vector), abs=1e-12)
    assert found.residual == pytest.approx(0.0, abs=1e-12)
    assert found.converged


@pytest.mark.parametrize("way", WAYS)
def test_two_crews_that_share_two_classifiers_are_put_on_one_scale(way):
    unmet = [(i, j) for i in (0, 1) for j in (4, 5)]
    found = rank_one(seen(VECTOR, unmet=unmet), way)
    assert found.vector == pytest.approx(VECTOR, abs=1e-12)


@pytest.mark.parametrize("way", ["triplets", "log-linear"])
def test_nothing_is_filled_in_beyond_one(way):
    matrix, met = off_diagonal(seen([0.9, 0.9, 0.9]))
    matrix[0, 1] = matrix[1, 0] = 0.01  # so that the third would need 81 on the diagonal
    filled, _ = WAYS[way](matrix, met)
    assert np.diagonal(filled) == pytest.approx([0.01, 0.01, 1.0], abs=1e-12)


@pytest.mark.parametrize("unmet", [[], CHAIN], ids=["all met", "some never met"])
def test_triplets_fill_in_by_least_squares_over_triples(unmet):
    moments = seen(VECTOR, noise=0.02, unmet=unmet)
    wanted = scaled(leading(naive.triplet_fill(*off_diagonal(moments))), moments)
    assert rank_one(moments, "triplets").vector == pytest.approx(wanted, abs=1e-13)


def test_triplet_diagonal_is_the_explicit_least_squares():
    moments = seen(VECTOR, noise=0.02)
    matrix, met = off_diagonal(moments)
    filled = naive.triplet_fill(matrix, met)
    for k in range(6):
        pairs = list(combinations([i for i in range(6) if i != k], 2))
        coefficients = np.array([[matrix[i, j]] for i, j in pairs])
        products = np.array([matrix[k, i] * matrix[k, j] for i, j in pairs])
        assert filled[k, k] == pytest.approx(np.linalg.lstsq(coefficients, products)[0][0])


@pytest.mark.parametrize("unmet", [[], CHAIN], ids=["all met", "some never met"])
def test_log_linear_is_the_weighted_least_squares_of_the_logarithms(unmet):
    moments = seen(VECTOR, noise=0.02, unmet=unmet, counts=symmetric_counts(6))
    matrix, met = off_diagonal(moments)
    pairs = [(i, j) for i, j in combinations(range(6), 2) if met[i, j]]

    def misfit(logs):
        return [
            np.sqrt(met[i, j]) * abs(matrix[i, j]) * (logs[i] + logs[j] - np.log(abs(matrix[i, j])))
            for i, j in pairs
        ]

    logs = least_squares(misfit, np.log(VECTOR), xtol=1e-15, ftol=1e-15, gtol=1e-15).x
    filled = np.where((met > 0), matrix, np.exp(np.add.outer(logs, logs)))
    wanted = scaled(leading(filled), moments)
    assert rank_one(moments, "log-linear").vector == pytest.approx(wanted, abs=1e-9)


def test_log_linear_fills_the_diagonal_with_squares_also_where_triplets_disagree():
    matrix, met = off_diagonal(seen([0.5, 0.5, 0.5]))
    matrix[0, 1] = matrix[1, 0] = -0.1
    assert (np.diagonal(WAYS["triplets"](matrix, met)[0]) < 0).all()
    filled, _ = WAYS["log-linear"](matrix, met)
    assert np.diagonal(filled) == pytest.approx([0.1, 0.1, 0.625], abs=1e-12)


@pytest.mark.parametrize("unmet", [[], CHAIN], ids=["all met", "some never met"])
def test_iterated_is_the_least_squares_of_the_observed_covariances(unmet):
    moments = seen(VECTOR, noise=0.02, unmet=unmet)
    pairs = [(i, j) for i, j in combinations(range(6), 2) if moments.pair_counts[i, j]]

    def misfit(v):
        return [moments.covariance[i, j] - v[i] * v[j] for i, j in pairs]

    wanted = least_squares(misfit, VECTOR, xtol=1e-15, ftol=1e-15, gtol=1e-15)
    found = rank_one(moments, "iterated")
    assert found.vector == pytest.approx(wanted.x, abs=1e-9)
    assert found.residual == pytest.approx(np.sqrt(2 * wanted.cost / len(pairs)), rel=1e-9)
    assert found.converged


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("vector", "turned"),
    [
        ([0.5, 0.4, -0.3], False),
        ([-0.5, -0.4, 0.3], True),
        ([0.5, 0.4, -0.3, -0.2], False),
        ([0.2, 0.3, -0.4, -0.5], True),
        ([0.9, -0.2, -0.3, -0.2], True),
    ],
)
def test_most_are_better_than_chance_and_the_sum_decides_a_tie(vector, turned, way):
    wanted = -np.array(vector) if turned else np.array(vector)
    found = rank_one(seen(vector), way)
    assert found.vector == pytest.approx(wanted, abs=1e-12)
    assert found.positive == (wanted > 0).sum()


@pytest.mark.parametrize("way", WAYS)
def test_the_largest_eigenvalue_leads_also_where_a_negative_one_is_larger(way):
    rough = seen([0.3, 0.25, 0.3, 0.2], noise=0.0)
    rough.covariance[0, 1] = rough.covariance[1, 0] = -0.4
    values = np.linalg.eigvalsh(rough.covariance)
    assert values[-1] < -values[0]
    vector = rank_one(rough, way).vector
    assert np.isfinite(vector).all()
    assert vector @ rough.covariance @ vector > 0


@pytest.mark.parametrize("way", WAYS)
def test_no_entry_passes_what_the_mean_allows(way):
    mean = [0.9, 0.0, 0.1, -0.2]
    found = rank_one(seen([0.8, 0.5, 0.6, 0.4], mean=mean), way)
    cap = np.sqrt(1 - np.square(mean))
    assert found.vector == pytest.approx([cap[0], 0.5, 0.6, 0.4], abs=1e-12)
    assert found.residual > 0.01


@pytest.mark.parametrize("way", WAYS)
def test_constant_and_silent_classifiers_take_no_part(way):
    moments = seen(VECTOR, noise=0.01)
    mean = moments.mean.copy()
    mean[2] = 1.0
    counts = moments.pair_counts.copy()
    counts[4] = counts[:, 4] = 0.0
    found = rank_one(Moments(mean, moments.covariance, counts), way)
    left = [0, 1, 3, 5]
    alone = rank_one(
        Moments(mean[left], moments.covariance[np.ix_(left, left)], counts[np.ix_(left, left)]),
        way,
    )
    assert found.vector[[2, 4]].tolist() == [0.0, 0.0]
    assert found.vector[left] == pytest.approx(alone.vector, abs=1e-12)
    assert found.residual == pytest.approx(alone.residual, abs=1e-12)


@pytest.mark.parametrize("way", WAYS)
def test_without_any_covariance_the_vector_is_zero(way):
    found = rank_one(seen(np.zeros(4)), way)
    assert not found.vector.any()
    assert found.residual == 0.0
    assert found.positive == 0


def test_an_iteration_that_does_not_settle_says_so(monkeypatch):
    monkeypatch.setattr("labelfree._rank_one.MOST_ROUNDS", 2)
    assert not rank_one(seen(VECTOR, noise=0.05), "iterated").converged
