"""The likelihood, EM and Newton, against plain loops, finite differences and exact probabilities."""

from itertools import product

import numpy as np
import pytest
from scipy.sparse import csr_array

from labelfree import Tally, _latent_class, _products, simulate
from labelfree._latent_class import (
    Model,
    Prior,
    _gradient,
    _moved,
    class_shares,
    climb,
    expect,
    fit,
    information,
    log_prior_density,
    maximised,
)
from labelfree._products import Block, Blocks

from . import naive

CASES = [(m, classes, missing) for m, classes in ((4, 2), (3, 3)) for missing in (0.0, 0.3)]


def some_model(m, classes, seed=0):
    """Better than chance, with no rate so high that an item's class is ever certain."""
    random = np.random.default_rng([seed, m, classes])
    confusion = random.dirichlet(np.full(classes, 5.0), (m, classes))
    confusion = 0.55 * confusion + 0.45 * np.eye(classes)
    return Model(random.dirichlet(np.full(classes, 9.0)), confusion)


def some_votes(m, classes, missing, items=400, seed=0):
    """Drawn from a model, with holes; what a start from another model climbs on."""
    random = np.random.default_rng([seed, m, classes, int(10 * missing)])
    model = some_model(m, classes, seed + 1)
    truth = random.choice(classes, items, p=model.class_probabilities)
    chance = model.confusion[:, truth].cumsum(axis=2)
    codes = (random.random((m, items, 1)) > chance).sum(axis=2).clip(max=classes - 1).T
    codes[random.random(codes.shape) < missing] = -1
    counted = Tally.from_codes(codes, np.ones(items), classes=tuple(range(classes)))
    return counted, counted.codes().astype(int), counted.counts


def exactly(model):
    """Every pattern with its exact probability."""
    m, classes = model.confusion.shape[:2]
    codes = list(product(range(classes), repeat=m))
    chances = [sum(naive.joint(row, model.class_probabilities, model.confusion)) for row in codes]
    return Tally.from_codes(codes, chances, classes=tuple(range(classes)))


def as_sparse(counted):
    patterns = csr_array(counted.codes() + np.int8(1))
    return Tally(counted.classifiers, counted.classes, patterns, counted.counts)


def log_posterior(codes, counts, model, prior):
    total = naive.log_likelihood(codes, counts, model.class_probabilities, model.confusion)
    total += sum((prior.confusion * np.log(model.confusion)).ravel())
    return (
        total if prior.fixed_classes else total + prior.classes @ np.log(model.class_probabilities)
    )


def some_prior(m, classes, strength):
    random = np.random.default_rng(9)
    return Prior(strength * random.random(classes), strength * random.random((m, classes, classes)))


def moved_one(model, place, step):
    direction = np.zeros(model.class_probabilities.size - 1 + model.confusion[:, :, 1:].size)
    direction[place] = step
    return _moved(model, direction)


# --- one pass -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("m", "classes", "missing"), [*CASES, (3, 5, 0.3)])
@pytest.mark.parametrize("stored", [lambda counted: counted, as_sparse], ids=["dense", "sparse"])
def test_expected_counts_and_likelihood_are_those_of_bayes_rule(m, classes, missing, stored):
    counted, codes, counts = some_votes(m, classes, missing)
    model = some_model(m, classes)
    parameters = (model.class_probabilities, model.confusion)
    found = expect(Blocks(stored(counted)), model)
    of_classes, of_votes = naive.expected_counts(codes, counts, *parameters)
    assert found.log_likelihood == pytest.approx(naive.log_likelihood(codes, counts, *parameters))
    assert np.allclose(found.classes, of_classes, rtol=1e-12, atol=0)
    assert np.allclose(found.votes, of_votes, rtol=1e-11, atol=1e-12)


def test_expected_counts_do_not_depend_on_the_blocks(monkeypatch):
    counted, _, _ = some_votes(9, 2, 0.3, items=900)
    whole = expect(Blocks(counted), some_model(9, 2))
    monkeypatch.setattr(_products, "BLOCK_CELLS", 1)
    blocks = Blocks(counted)
    assert len(blocks.places) > 2
    parts = expect(blocks, some_model(9, 2))
    assert parts.log_likelihood == pytest.approx(whole.log_likelihood, rel=1e-13)
    assert np.allclose(parts.votes, whole.votes, rtol=1e-12, atol=1e-12)


def test_shares_of_many_classifiers_neither_underflow_nor_overflow():
    m = 3000
    model = Model.binary(0.2, np.full(m, 0.9), np.full(m, 0.8))
    codes = np.array([[1] * m, [0] * m, [1, 0] * (m // 2), [-1] * m], dtype=np.int8)
    total, shares = class_shares(Block(codes, np.ones(4), 2), model.tables(), model.log_prior())
    assert np.allclose(total[:2], m * np.log([0.9, 0.8]) + np.log([0.6, 0.4]), rtol=1e-12)
    # Half of each vote: .9·.1 against .8·.2, m/2 times; and no vote at all.
    assert np.allclose(shares, [[0, 1], [1, 0], [1, 0], [0.4, 0.6]], rtol=0, atol=1e-12)


def test_the_binary_model_puts_the_rates_where_they_belong():
    model = Model.binary(0.2, np.array([0.9, 0.6]), np.array([0.8, 0.7]))
    assert model.class_probabilities == pytest.approx([0.4, 0.6])
    assert model.confusion[0] == pytest.approx(np.array([[0.8, 0.2], [0.1, 0.9]]))
    assert model.confusion[1] == pytest.approx(np.array([[0.7, 0.3], [0.4, 0.6]]))


# --- derivatives --------------------------------------------------------------------------------


@pytest.mark.parametrize("strength", [0.0, 2.0], ids=["no prior", "prior"])
@pytest.mark.parametrize(("m", "classes", "missing"), CASES)
def test_gradient_is_the_difference_of_the_log_posterior(m, classes, missing, strength):
    counted, codes, counts = some_votes(m, classes, missing)
    model, prior = some_model(m, classes), some_prior(m, classes, strength)
    found = _gradient(expect(Blocks(counted), model), model, prior)
    step = 1e-5
    for place in range(len(found)):
        above = log_posterior(codes, counts, moved_one(model, place, step), prior)
        below = log_posterior(codes, counts, moved_one(model, place, -step), prior)
        assert found[place] == pytest.approx((above - below) / (2 * step), abs=2e-5, rel=1e-6)


@pytest.mark.parametrize("strength", [0.0, 2.0], ids=["no prior", "prior"])
@pytest.mark.parametrize(("m", "classes", "missing"), CASES)
@pytest.mark.parametrize("stored", [lambda counted: counted, as_sparse], ids=["dense", "sparse"])
def test_information_is_the_difference_of_the_gradient(m, classes, missing, strength, stored):
    counted, _, _ = some_votes(m, classes, missing)
    blocks, model = Blocks(stored(counted)), some_model(m, classes)
    prior = some_prior(m, classes, strength)

    def slope(there):
        return _gradient(expect(blocks, there), there, prior)

    found, step = information(blocks, model, prior), 1e-4
    wanted = [
        (slope(moved_one(model, place, -step)) - slope(moved_one(model, place, step))) / (2 * step)
        for place in range(len(found))
    ]
    assert np.allclose(found, wanted, rtol=1e-6, atol=1e-5)
    assert np.allclose(found, found.T, rtol=0, atol=1e-9)


def test_items_whose_class_is_certain_hardly_count_in_the_information(monkeypatch):
    psi, eta = simulate.rates(8, 0.8, 0.99, seed=3)
    blocks = Blocks(simulate.exact(psi, eta, 0.4, items=1000))
    model, prior = Model.binary(-0.2, psi, eta), Prior.flat(8, 2, 1.0)
    found = information(blocks, model, prior)
    monkeypatch.setattr(_latent_class, "CERTAIN", -1.0)
    whole = information(blocks, model, prior)
    scale = np.sqrt(np.diagonal(whole))
    difference = np.abs(found - whole) / np.outer(scale, scale)
    assert 0 < difference.max() < 1e-4


# --- EM -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("fixed", [False, True], ids=["free", "prevalence known"])
@pytest.mark.parametrize("strength", [0.0, 2.0], ids=["no prior", "prior"])
@pytest.mark.parametrize(("m", "classes", "missing"), CASES)
def test_no_round_of_em_lowers_the_log_posterior(m, classes, missing, strength, fixed):
    counted, codes, counts = some_votes(m, classes, missing, items=60)
    blocks, model = Blocks(counted), some_model(m, classes, seed=5)
    free = some_prior(m, classes, strength)
    prior = Prior(free.classes, free.confusion, fixed)
    reached = []
    for _ in range(60):
        expected = expect(blocks, model)
        reached.append(expected.log_likelihood + log_prior_density(model, prior))
        if len(reached) % 20 == 1:
            wanted = log_posterior(codes, counts, model, prior)
            assert reached[-1] == pytest.approx(wanted, rel=1e-12)
        new = maximised(expected, model, prior)
        if fixed:
            assert np.array_equal(new.class_probabilities, model.class_probabilities)
        assert new.confusion.sum(axis=2) == pytest.approx(np.ones((m, classes)))
        model = new
    assert (np.diff(reached) >= -1e-11 * abs(reached[0])).all()
    assert reached[-1] > reached[0] + 1e-3


def test_a_step_of_em_is_expected_counts_plus_pseudo_counts():
    counted, codes, counts = some_votes(3, 3, 0.3)
    model, prior = some_model(3, 3), some_prior(3, 3, 2.0)
    found = maximised(expect(Blocks(counted), model), model, prior)
    of_classes, of_votes = naive.expected_counts(
        codes, counts, model.class_probabilities, model.confusion
    )
    classes, votes = of_classes + prior.classes, of_votes + prior.confusion
    assert found.class_probabilities == pytest.approx(classes / classes.sum(), rel=1e-12)
    assert found.confusion == pytest.approx(votes / votes.sum(axis=2, keepdims=True), rel=1e-12)


# --- the search ---------------------------------------------------------------------------------


@pytest.mark.parametrize("fixed", [False, True], ids=["free", "prevalence known"])
@pytest.mark.parametrize("pseudo_count", [0.0, 1.0])
@pytest.mark.parametrize(("m", "classes"), [(5, 2), (5, 3)])
def test_the_search_ends_where_a_long_em_ends(m, classes, pseudo_count, fixed):
    counted, codes, counts = some_votes(m, classes, 0.1, items=1500, seed=1)
    blocks = Blocks(counted)
    start = some_model(m, classes, seed=2)
    prior = Prior.flat(m, classes, pseudo_count, fixed_classes=fixed)
    found = fit(blocks, start, prior)
    assert found.converged
    slow = start
    for _ in range(6000):
        slow = maximised(expect(blocks, slow), slow, prior)
    assert found.model.confusion == pytest.approx(slow.confusion, abs=1e-6)
    assert found.model.class_probabilities == pytest.approx(slow.class_probabilities, abs=1e-6)
    gradient = _gradient(expect(blocks, found.model), found.model, prior)
    free = slice(classes - 1 if fixed else 0, None)
    assert np.abs(gradient[free]).max() < 1e-8
    wanted = naive.log_likelihood(
        codes, counts, found.model.class_probabilities, found.model.confusion
    )
    assert found.log_likelihood == pytest.approx(wanted, rel=1e-12)
    if fixed:
        assert np.array_equal(found.model.class_probabilities, start.class_probabilities)


def test_known_rates_stay_and_the_others_end_where_a_long_em_ends():
    counted, _, _ = some_votes(5, 3, 0.1, items=800, seed=1)
    blocks, start = Blocks(counted), some_model(5, 3, seed=2)
    known = np.zeros((5, 3), dtype=bool)
    known[0] = known[2, 1] = True
    free = Prior.flat(5, 3, 1.0)
    prior = Prior(free.classes, free.confusion, fixed_rates=known)
    found, slow = fit(blocks, start, prior), start
    for _ in range(3000):
        slow = maximised(expect(blocks, slow), slow, prior)
    assert found.converged
    assert found.model.confusion == pytest.approx(slow.confusion, abs=1e-6)
    assert found.model.confusion[known] == pytest.approx(start.confusion[known], abs=1e-15)
    assert np.abs(found.model.confusion - start.confusion)[~known].max() > 0.01


def test_a_model_that_is_known_altogether_is_its_own_fit():
    counted, _, _ = some_votes(4, 2, 0.0)
    start, free = some_model(4, 2), Prior.flat(4, 2, 1.0)
    prior = Prior(free.classes, free.confusion, True, np.ones((4, 2), dtype=bool))
    found = fit(Blocks(counted), start, prior)
    assert found.converged
    assert found.model.confusion == pytest.approx(start.confusion, abs=1e-15)


@pytest.mark.parametrize("distance", [1e-1, 1e-3, 1e-5, 1e-7, 1e-9])
@pytest.mark.parametrize(("m", "classes"), [(3, 2), (6, 2), (3, 3), (4, 3)])
def test_exact_probabilities_give_the_model_back_however_near_the_start(m, classes, distance):
    model = some_model(m, classes)
    near = (1 - distance) * model.confusion + distance / classes
    shifted = (1 - distance) * model.class_probabilities + distance / classes
    blocks = Blocks(exactly(model))
    found = fit(blocks, Model(shifted, near), Prior.flat(m, classes, 0.0))
    assert found.converged
    assert found.model.class_probabilities == pytest.approx(model.class_probabilities, abs=1e-10)
    assert found.model.confusion == pytest.approx(model.confusion, abs=1e-10)


def test_rates_at_their_bounds_are_found_and_stay_probabilities():
    psi, eta = np.array([1.0, 0.8, 0.7, 0.9]), np.array([0.9, 1.0, 0.8, 0.6])
    blocks = Blocks(simulate.exact(psi, eta, 0.4))
    start = Model.binary(-0.1, np.full(4, 0.75), np.full(4, 0.7))
    found = fit(blocks, start, Prior.flat(4, 2, 0.0))
    assert found.converged
    assert found.model.confusion[:, 1, 1] == pytest.approx(psi, abs=1e-6)
    assert found.model.confusion[:, 0, 0] == pytest.approx(eta, abs=1e-6)
    assert ((found.model.confusion >= 0) & (found.model.confusion <= 1)).all()


def test_pseudo_counts_are_votes_and_items_beside_the_real_ones():
    # Thirty classifiers who never err leave no doubt, so that all counts are known.
    codes = np.repeat([[0], [1]], 30, axis=1)
    counted = Tally.from_codes(codes, [30, 10])
    start = Model.binary(-0.3, np.full(30, 0.8), np.full(30, 0.8))
    found = fit(Blocks(counted), start, Prior.flat(30, 2, 1.0)).model
    assert found.class_probabilities == pytest.approx([31 / 42, 11 / 42], abs=1e-10)
    assert found.confusion[:, 0, 0] == pytest.approx(31 / 32, abs=1e-10)
    assert found.confusion[:, 1, 1] == pytest.approx(11 / 12, abs=1e-10)


@pytest.mark.parametrize("pseudo_count", [0.0, 1.0])
def test_a_classifier_without_votes_has_the_priors_rates(pseudo_count):
    counted, _, _ = some_votes(5, 2, 0.0)
    codes = counted.codes().copy()
    codes[:, 2] = -1
    start = some_model(5, 2)
    blocks = Blocks(Tally.from_codes(codes, counted.counts))
    found = fit(blocks, start, Prior.flat(5, 2, pseudo_count))
    wanted = np.full((2, 2), 0.5) if pseudo_count else start.confusion[2]
    assert found.model.confusion[2] == pytest.approx(wanted, abs=1e-10)
    assert found.converged


def test_a_search_that_is_cut_short_says_so(monkeypatch):
    counted, _, _ = some_votes(4, 2, 0.0)
    blocks, start, prior = Blocks(counted), some_model(4, 2), Prior.flat(4, 2, 1.0)
    cut = fit(blocks, start, prior, most_rounds=0)
    assert not cut.converged
    assert cut.model is start
    monkeypatch.setattr(_latent_class, "MOST_NEWTON_PARAMETERS", 0)
    cut = fit(blocks, start, prior, most_rounds=5)
    assert not cut.converged
    assert 5 <= cut.rounds <= 8
    assert fit(blocks, start, prior).converged


def test_em_alone_reaches_the_same_mode_and_says_when_it_has_not():
    counted, _, _ = some_votes(4, 3, 0.2)
    blocks, start, prior = Blocks(counted), some_model(4, 3, 1), Prior.flat(4, 3, 1.0)
    alone, both = climb(blocks, start, prior), fit(blocks, start, prior)
    assert alone.converged
    assert np.allclose(alone.model.confusion, both.model.confusion, rtol=0, atol=1e-6)
    assert alone.log_likelihood == pytest.approx(both.log_likelihood, abs=1e-5)
    short = climb(blocks, start, prior, 2)
    assert (short.rounds, short.converged) == (2, False)
    none = climb(blocks, start, prior, 0)
    assert (none.model.confusion == start.confusion).all()
