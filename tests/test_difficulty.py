"""The one-trait model against finite differences and simulation; tempering against plain sums."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.special import expit

import labelfree as lf
from labelfree import _difficulty
from labelfree._difficulty import (
    PenalisedLikelihood,
    Trait,
    by_prevalence,
    fit_trait,
    log_odds,
    tempered,
    tempering_slope,
    trait_log_likelihood,
    trait_posterior,
)
from labelfree._latent_class import Model, Prior, fit
from labelfree._products import Blocks

TRUE = Trait(
    prevalence=0.4,
    offset=np.array([0.2, -0.3, 0.5, 0.0, -0.4, 0.1, 0.3]),
    slope=np.array([1.2, 0.9, 1.5, 0.7, 1.1, 1.0, 1.3]),
    spread=1.0,
)


def drawn(trait: Trait, items: int, seed: int, missing: float = 0.0) -> tuple:
    """Votes as codes, and the true classes."""
    random = np.random.default_rng(seed)
    truth = random.random(items) < trait.prevalence
    z = np.where(truth, 1.0, -1.0) + trait.spread * random.standard_normal(items)
    chances = expit(trait.offset + trait.slope * z[:, None])
    codes = (random.random(chances.shape) < chances).astype(np.int8)
    codes[random.random(codes.shape) < missing] = -1
    return codes, truth


def blocks_of(codes: np.ndarray) -> Blocks:
    return Blocks(lf.Tally.from_codes(codes, np.ones(len(codes))))


def independent(blocks: Blocks, prevalence: float | None = None) -> Model:
    m = len(blocks.tally.classifiers)
    b = 0.0 if prevalence is None else 2 * prevalence - 1
    start = Model.binary(b, np.full(m, 0.7), np.full(m, 0.7))
    return fit(blocks, start, Prior.flat(m, 2, 1.0, fixed_classes=prevalence is not None)).model


@pytest.mark.parametrize("prevalence", [None, 0.3])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_the_gradient_agrees_with_finite_differences(prevalence, missing):
    objective = PenalisedLikelihood(blocks_of(drawn(TRUE, 300, 1, missing)[0]), prevalence)
    random = np.random.default_rng(2)
    place = objective.pack(
        Trait(0.35, random.standard_normal(7), random.standard_normal(7), spread=0.6)
    )
    value, gradient = objective.loss(place)
    assert np.isfinite(value)
    rough = approx_fprime(place, lambda where: objective.loss(where)[0], 1e-7)
    np.testing.assert_allclose(gradient, rough, atol=2e-6)


def test_coordinates_come_back():
    objective = PenalisedLikelihood(blocks_of(drawn(TRUE, 50, 1)[0]))
    back = objective.unpack(objective.pack(TRUE))
    assert back.prevalence == pytest.approx(TRUE.prevalence)
    assert back.spread == pytest.approx(TRUE.spread)
    np.testing.assert_allclose(back.offset, TRUE.offset)
    np.testing.assert_allclose(back.slope, TRUE.slope)


@pytest.mark.parametrize(("nodes", "close"), [(11, 1e-5), (61, 1e-9)])
def test_the_likelihood_is_the_integral_over_the_trait(nodes, close, monkeypatch):
    monkeypatch.setattr(_difficulty, "NODES", nodes)
    codes, _ = drawn(TRUE, 40, 3, missing=0.2)
    z = np.linspace(-9, 9, 20001)
    density = sum(
        share * np.exp(-((z - y) ** 2) / (2 * TRUE.spread**2)) / np.sqrt(2 * np.pi) / TRUE.spread
        for y, share in ((-1, 1 - TRUE.prevalence), (1, TRUE.prevalence))
    )
    chances = expit(TRUE.offset[:, None] + TRUE.slope[:, None] * z)
    by_hand = 0.0
    for row in codes:
        parts = [chances[i] if v == 1 else 1 - chances[i] for i, v in enumerate(row) if v >= 0]
        by_hand += np.log((np.prod(parts, axis=0) * density).sum() * (z[1] - z[0]))
    assert trait_log_likelihood(blocks_of(codes), TRUE) == pytest.approx(by_hand, rel=close)


def test_without_spread_it_is_the_independent_model():
    blocks = blocks_of(drawn(TRUE, 500, 4)[0])
    flat = Trait(TRUE.prevalence, TRUE.offset, TRUE.slope, spread=1e-6)
    above, below = expit(flat.offset + flat.slope), expit(flat.offset - flat.slope)
    model = Model.binary(2 * flat.prevalence - 1, above, 1 - below)
    (block,) = blocks.each(lambda block: block)
    np.testing.assert_allclose(
        trait_posterior(block, flat), expit(log_odds(block, model)), atol=1e-5
    )
    assert tempering_slope(blocks, model, flat) == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("prevalence", [None, 0.4])
def test_the_fit_beats_independence_on_votes_with_a_trait_and_says_so(prevalence):
    codes, _ = drawn(TRUE, 20000, 5)
    blocks = blocks_of(codes)
    model = independent(blocks, prevalence)
    found = fit_trait(blocks, [model], prevalence)
    assert found.converged
    assert found.parameters == 16 - (prevalence is not None)
    expected = -2 * found.log_likelihood + found.parameters * np.log(20000)
    assert found.bic == pytest.approx(expected)
    assert found.log_likelihood >= trait_log_likelihood(blocks, TRUE) - 5
    assert tempering_slope(blocks, model, found.trait) < 0.9
    if prevalence is not None:
        assert found.trait.prevalence == prevalence


def test_tempered_rates_are_weighted_shares():
    codes, _ = drawn(TRUE, 400, 6, missing=0.2)
    blocks = blocks_of(codes)
    model = independent(blocks)
    got = tempered(blocks, model, 0.4)
    tables, prior = model.tables(), model.log_prior()
    for i in range(7):
        positive = negative = positive_hits = negative_hits = total = 0.0
        for row in codes:
            odds = prior[1] - prior[0]
            odds += sum(tables[j, v, 1] - tables[j, v, 0] for j, v in enumerate(row) if v >= 0)
            q = expit(0.4 * np.clip(odds, -40, 40))
            total += q
            if row[i] >= 0:
                positive, negative = positive + q, negative + 1 - q
                positive_hits += q * (row[i] == 1)
                negative_hits += (1 - q) * (row[i] == 0)
        assert got.model.confusion[i, 1, 1] == pytest.approx(positive_hits / positive)
        assert got.model.confusion[i, 0, 0] == pytest.approx(negative_hits / negative)
    assert got.model.class_probabilities[1] == pytest.approx(total / 400)


def test_a_slope_of_one_leaves_the_maximum_of_the_likelihood_where_it_is():
    blocks = blocks_of(drawn(TRUE, 3000, 7)[0])
    start = independent(blocks)
    model = fit(blocks, start, Prior.flat(7, 2, 0.0)).model
    same = tempered(blocks, model, 1.0).model
    np.testing.assert_allclose(same.confusion, model.confusion, atol=1e-6)


@pytest.mark.parametrize("prevalence", [0.001, 0.3, 0.97])
def test_a_known_prevalence_is_the_mean_of_the_probabilities(prevalence):
    blocks = blocks_of(drawn(TRUE, 2000, 8)[0])
    model = independent(blocks)
    got = tempered(blocks, model, 0.3, prevalence)
    assert got.model.class_probabilities[1] == pytest.approx(prevalence, rel=1e-12)
    counts = blocks.each(lambda block: block.counts)[0]
    q = expit(got.shift + 0.3 * blocks.each(lambda block: log_odds(block, model))[0])
    assert counts @ q / counts.sum() == pytest.approx(prevalence, abs=1e-9)
    one = by_prevalence(blocks, model, 0.3, np.array([0.5, prevalence]))
    np.testing.assert_allclose(one[0][1], got.model.confusion[:, 1, 1])
    np.testing.assert_allclose(one[1][1], got.model.confusion[:, 0, 0])


def test_rates_are_nearer_the_truth_than_under_independence():
    codes, truth = drawn(TRUE, 20000, 9)
    blocks = blocks_of(codes)
    model = independent(blocks)
    trait = fit_trait(blocks, [model]).trait
    cool = tempered(blocks, model, tempering_slope(blocks, model, trait)).model
    right = np.stack([codes[truth].mean(axis=0), 1 - codes[~truth].mean(axis=0)])

    def error(one: Model) -> float:
        rates = np.stack([one.confusion[:, 1, 1], one.confusion[:, 0, 0]])
        return float(np.abs((rates - right).mean(axis=0)).mean())

    assert error(cool) < 0.5 * error(model)
