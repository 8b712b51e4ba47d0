"""The class imbalance: by third moments, and by the restricted likelihood of JNK in a plain loop."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from labelfree import Tally, _products, simulate, tally
from labelfree._imbalance import (
    RestrictedLikelihood,
    likelihood_imbalance,
    margin,
    tensor_imbalance,
)
from labelfree._moments import moments
from labelfree._products import Blocks
from labelfree._rank_one import rank_one
from labelfree._rates import clipped, rate_slopes, rates, smallest_rate

from . import naive


def drawn(items=400, m=5, missing=0.0, prevalence=0.65, low=0.5, seed=0):
    votes = simulate.votes(
        items,
        sensitivity=np.linspace(low, 0.9, m),
        specificity=np.linspace(0.85, low + 0.05, m),
        prevalence=prevalence,
        missing=missing,
        seed=seed,
    ).votes
    return tally(votes, missing=-1, classes=(0, 1))


def walked(counted):
    blocks = Blocks(counted)
    seen = moments(blocks)
    return blocks, seen, rank_one(seen).vector


def as_sparse(counted):
    patterns = csr_array(counted.codes() + np.int8(1))
    return Tally(counted.classifiers, counted.classes, patterns, counted.counts)


# --- rates --------------------------------------------------------------------------------------


@pytest.mark.parametrize("imbalance", [-0.9, -0.3, 0.0, 0.5])
def test_rates_are_those_of_the_second_lemma(imbalance):
    mean, vector = np.array([0.1, -0.3, 0.0, 0.7]), np.array([0.4, 0.3, -0.1, 0.5])
    psi, eta = rates(mean, vector, imbalance)
    wanted = naive.rates(mean, vector, imbalance)
    assert psi == pytest.approx(wanted[0], abs=1e-15)
    assert eta == pytest.approx(wanted[1], abs=1e-15)


@pytest.mark.parametrize("imbalance", [-0.9, -0.3, 0.0, 0.5])
def test_slopes_of_the_rates_are_their_differences(imbalance):
    mean, vector, step = np.array([0.1, -0.3, 0.0]), np.array([0.4, 0.3, -0.1]), 1e-5
    above, below = rates(mean, vector, imbalance + step), rates(mean, vector, imbalance - step)
    for slope, up, down in zip(rate_slopes(vector, imbalance), above, below, strict=True):
        assert slope == pytest.approx((up - down) / (2 * step), rel=1e-6)


def test_rates_are_held_inside_what_the_sample_can_tell():
    assert clipped(np.array([-0.2, 0.4, 1.3]), 0.01).tolist() == [0.01, 0.4, 0.99]
    assert smallest_rate(99) == 0.5 / 100
    assert smallest_rate(np.inf) == 1e-9


# --- third moments ------------------------------------------------------------------------------


@pytest.mark.parametrize("imbalance", [-0.97, -0.5, 0.0, 0.1, 0.8])
def test_exact_third_moments_give_the_imbalance_back(imbalance):
    psi, eta = simulate.rates(4, 0.6, 0.9, seed=2)
    found = tensor_imbalance(*walked(simulate.exact(psi, eta, (1 + imbalance) / 2)))
    assert found.value == pytest.approx(imbalance, abs=1e-10)
    assert not found.at_boundary
    assert found.converged


def test_third_moments_give_the_value_of_the_formula():
    counted = drawn(missing=0.2)
    blocks, seen, vector = walked(counted)
    tensor = naive.third_moments(counted.codes(), counted.counts, seen.mean)
    alpha = naive.third_moment_ratio(*tensor, vector)
    found = tensor_imbalance(blocks, seen, vector)
    assert found.value == pytest.approx(-alpha / np.sqrt(4 + alpha**2), rel=1e-11)


@pytest.mark.parametrize("way", [tensor_imbalance, likelihood_imbalance])
@pytest.mark.parametrize("imbalance", [-0.995, 0.995])
def test_an_imbalance_beyond_the_margin_ends_there_and_says_so(way, imbalance):
    psi, eta = simulate.rates(5, 0.7, 0.9, seed=2)
    found = way(*walked(simulate.exact(psi, eta, (1 + imbalance) / 2)))
    assert found.value == pytest.approx(np.sign(imbalance) * 0.98)
    assert found.at_boundary


def test_the_margin_narrows_with_the_sample_down_to_a_fiftieth():
    assert [margin(n) for n in (1, 6, 60, 150, 10**6, np.inf)] == [0.5, 0.5, 0.05, 0.02, 0.02, 0.02]


# --- restricted likelihood ----------------------------------------------------------------------


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("stored", [lambda counted: counted, as_sparse], ids=["dense", "sparse"])
def test_restricted_likelihood_is_that_of_the_formula(stored, missing):
    counted = drawn(missing=missing)
    blocks, seen, vector = walked(stored(counted))
    likelihood = RestrictedLikelihood(blocks, seen, vector)
    for imbalance in (-0.9, -0.4, 0.0, 0.3, 0.9):
        wanted = naive.restricted_likelihood(
            counted.codes(), counted.counts, seen.mean, vector, imbalance, 0.5 / 401
        )
        assert likelihood.value(imbalance) == pytest.approx(wanted, rel=1e-13)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_slope_is_the_difference_of_the_restricted_likelihood(missing):
    likelihood = RestrictedLikelihood(*walked(drawn(missing=missing)))
    step = 1e-5
    held = []
    for imbalance in (-0.9, -0.4, 0.0, 0.3, 0.9):
        above, below = likelihood.value(imbalance + step), likelihood.value(imbalance - step)
        assert likelihood.slope(imbalance) == pytest.approx((above - below) / (2 * step), abs=1e-7)
        psi, eta = rates(likelihood.mean, likelihood.vector, imbalance)
        held.append(int((np.concatenate([psi, eta]) > 1 - likelihood.smallest).sum()))
    assert min(held) == 0  # both without and with rates that are held at their bounds
    assert max(held) > 0


def test_scan_is_the_restricted_likelihood_of_all_items(monkeypatch):
    counted = drawn(items=3000, m=12, missing=0.1)
    walk = walked(counted)
    likelihood, grid = RestrictedLikelihood(*walk), np.linspace(-0.9, 0.9, 7)
    values = [likelihood.value(b) for b in grid]
    assert likelihood.scan(grid) / 3000 == pytest.approx(values, rel=1e-12)
    monkeypatch.setattr(_products, "BLOCK_CELLS", 1)
    assert likelihood.scan(grid) == pytest.approx(
        RestrictedLikelihood(Blocks(counted), *walk[1:]).scan(grid), rel=1e-12
    )


@pytest.mark.parametrize("imbalance", [-0.97, -0.5, 0.0, 0.1, 0.8])
def test_exact_restricted_likelihood_gives_the_imbalance_back(imbalance):
    psi, eta = simulate.rates(4, 0.6, 0.9, seed=2)
    found = likelihood_imbalance(*walked(simulate.exact(psi, eta, (1 + imbalance) / 2)))
    assert found.value == pytest.approx(imbalance, abs=1e-10)
    assert not found.at_boundary
    assert found.converged


@pytest.mark.parametrize("seed", range(12))
def test_no_point_of_a_fine_grid_is_higher_than_the_maximum(seed):
    items, m = (40, 3) if seed % 3 == 0 else (150, 4) if seed % 3 == 1 else (1000, 8)
    walk = walked(drawn(items=items, m=m, prevalence=0.3 + 0.05 * seed, seed=seed))
    found = likelihood_imbalance(*walk)
    likelihood = RestrictedLikelihood(*walk)
    end = 1 - margin(items)
    highest = likelihood.scan(np.linspace(-end, end, 1001)).max() / items
    assert abs(found.value) <= end
    assert likelihood.value(found.value) >= highest - 1e-12
    assert found.converged


@pytest.mark.parametrize(
    ("items", "m", "prevalence", "seed"),
    [
        *((259, 5, 0.85, 28), (242, 5, 0.58, 181), (44, 5, 0.67, 364)),  # on a kink
        *((118, 5, 0.94, 8), (219, 5, 0.59, 115), (214, 3, 0.1, 123)),  # of several hills
    ],
)
def test_kinks_and_hills_do_not_hide_the_maximum(items, m, prevalence, seed):
    votes = simulate.votes(
        items,
        sensitivity=np.linspace(0.5, 0.95, m),
        specificity=np.linspace(0.9, 0.55, m),
        prevalence=prevalence,
        seed=seed,
    ).votes
    walk = walked(tally(votes, classes=(0, 1)))
    found, likelihood = likelihood_imbalance(*walk), RestrictedLikelihood(*walk)
    end = 1 - margin(items)
    highest = likelihood.scan(np.linspace(-end, end, 4001)).max() / items
    assert likelihood.value(found.value) >= highest - 1e-9
    assert found.converged


def test_a_rough_answer_is_near_and_looks_at_a_spread_of_patterns(monkeypatch):
    counted = drawn(items=4000, m=12)
    exact = likelihood_imbalance(*walked(counted)).value
    assert likelihood_imbalance(*walked(counted), rough=True).value == pytest.approx(
        exact, abs=1e-3
    )
    monkeypatch.setattr(_products, "SPREAD", 500)
    assert likelihood_imbalance(*walked(counted)).value == pytest.approx(exact, abs=1e-12)
    rough = likelihood_imbalance(*walked(counted), rough=True).value
    assert rough == pytest.approx(exact, abs=0.1)
    assert rough != pytest.approx(exact, abs=1e-6)
