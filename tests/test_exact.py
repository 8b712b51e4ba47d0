"""Exact pattern probabilities in, the same parameters out, whatever the way from the one to the other."""

from itertools import product

import numpy as np
import pytest

import labelfree as lf
from labelfree import simulate

from . import naive

METHODS = ("tensor", "likelihood", "map")
VECTORS = ("triplets", "log-linear", "iterated")


def recovers(counted, imbalance, psi, eta, tolerance=1e-10, **options):
    estimate = lf.estimate(counted, prior=0, **options)
    assert estimate.converged
    assert estimate.imbalance == pytest.approx(imbalance, abs=tolerance)
    assert estimate.sensitivity == pytest.approx(psi, abs=tolerance)
    assert estimate.specificity == pytest.approx(eta, abs=tolerance)
    return estimate


def with_holes(psi, eta, prevalence, gone):
    """Every pattern's probability where each vote is missing with its classifier's own probability."""
    confusion = [[[h, 1 - h], [1 - s, s]] for s, h in zip(psi, eta, strict=True)]
    codes = list(product((-1, 0, 1), repeat=len(psi)))
    chances = [
        sum(naive.joint(row, [1 - prevalence, prevalence], confusion))
        * np.prod([q if code < 0 else 1 - q for code, q in zip(row, gone, strict=True)])
        for row in codes
    ]
    return lf.Tally.from_codes(codes, chances)


def in_crews(psi, eta, prevalence, crews):
    """Each crew votes on a part of the items of its own; nobody else does."""
    codes, counts = [], []
    for crew in crews:
        part = simulate.exact(psi[crew], eta[crew], prevalence)
        table = np.full((len(part), len(psi)), -1)
        table[:, crew] = part.codes()
        codes.append(table)
        counts.append(part.counts)
    return lf.Tally.from_codes(np.concatenate(codes), np.concatenate(counts))


@pytest.mark.parametrize("items", [1, 1e6])
@pytest.mark.parametrize("imbalance", [-0.9, -0.3, 0.0, 0.1, 0.6, 0.95])
@pytest.mark.parametrize("m", [3, 5, 10])
def test_every_way_gives_the_parameters_back(m, imbalance, items):
    for seed in (0, 2):
        psi, eta = simulate.rates(m, 0.55, 0.9, seed=seed)
        prevalence = (1 + imbalance) / 2
        counted = simulate.exact(psi, eta, prevalence, items)
        for method, vector in product(METHODS, VECTORS):
            ways = {"method": method, "vector": vector, "dependence": "ignore"}
            recovers(counted, imbalance, psi, eta, **ways)
            recovers(counted, imbalance, psi, eta, prevalence=prevalence, **ways)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("m", [3, 5, 10])
def test_independent_classifiers_are_recovered_by_default_too(m, method):
    psi, eta = simulate.rates(m, 0.55, 0.9, seed=1)
    estimate = recovers(simulate.exact(psi, eta, 0.6, 1e6), 0.2, psi, eta, method=method)
    assert estimate.verdict.level != "unidentified"


@pytest.mark.parametrize("method", METHODS)
def test_classifiers_that_are_worse_than_chance_or_guess_are_recovered(method):
    psi = np.array([0.8, 0.3, 0.7, 0.9, 0.5, 0.65])
    eta = np.array([0.7, 0.4, 0.9, 0.6, 0.5, 0.8])
    ways = {"method": method, "dependence": "ignore"}
    recovers(simulate.exact(psi, eta, 0.35), -0.3, psi, eta, **ways)


@pytest.mark.parametrize("vector", VECTORS)
@pytest.mark.parametrize("method", METHODS)
def test_votes_missing_at_random_do_not_move_the_estimate(method, vector):
    psi, eta = np.array([0.8, 0.65, 0.9, 0.7]), np.array([0.75, 0.85, 0.6, 0.7])
    counted = with_holes(psi, eta, 0.65, gone=[0.1, 0.5, 0.0, 0.3])
    ways = {"method": method, "vector": vector, "dependence": "ignore"}
    recovers(counted, 0.3, psi, eta, **ways)


@pytest.mark.parametrize("vector", VECTORS)
@pytest.mark.parametrize("method", METHODS)
def test_crews_that_share_classifiers_are_put_on_one_scale(method, vector):
    psi, eta = simulate.rates(7, 0.6, 0.9, seed=1)
    counted = in_crews(psi, eta, 0.65, [[0, 1, 2, 3], [2, 3, 4, 5], [0, 4, 5, 6]])
    ways = {"method": method, "vector": vector, "dependence": "ignore"}
    recovers(counted, 0.3, psi, eta, **ways)


def test_rates_that_are_known_leave_the_others_exact():
    psi, eta = simulate.rates(4, 0.6, 0.9, seed=1)
    names = ["a", "b", "c", "d"]
    exact = simulate.exact(psi, eta, 0.65)
    counted = lf.Tally.from_codes(exact.codes(), exact.counts, classifiers=names)
    known = {"b": {"sensitivity": psi[1]}, "d": {"specificity": eta[3]}}
    recovers(counted, 0.3, psi, eta, known=known, dependence="ignore")
