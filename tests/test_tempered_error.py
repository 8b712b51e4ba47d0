"""Sampling error of tempered rates, against the information and against fresh draws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logit

import labelfree as lf
from labelfree._difficulty import (
    PenalisedLikelihood,
    Tempered,
    Trait,
    fit_trait,
    tempered,
    tempering_slope,
    trait_log_likelihood,
)
from labelfree._intervals import covariance_of_logits
from labelfree._latent_class import Model, Prior, fit
from labelfree._products import Blocks
from labelfree._tempered_error import _trait_parts, _Votes, tempered_covariance

M = 6
FLAT = Trait(0.4, np.zeros(M), np.ones(M), 0.5)


def drawn(items: int, seed: int, spread: float, missing: float = 0.0) -> Blocks:
    random = np.random.default_rng(seed)
    truth = random.random(items) < 0.4
    z = np.where(truth, 1.0, -1.0) + spread * random.standard_normal(items)
    logits = np.linspace(-0.4, 0.5, M) + np.linspace(1.0, 2.0, M) * z[:, None]
    codes = (random.random(logits.shape) < expit(logits)).astype(np.int8)
    codes[random.random(codes.shape) < missing] = -1
    return Blocks(lf.Tally.from_codes(codes, np.ones(items)))


def chain(blocks: Blocks, prevalence: float | None = None) -> tuple:
    """The mode under independence, its prior, the trait model and the tempered rates."""
    b = 0.0 if prevalence is None else 2 * prevalence - 1
    prior = Prior.flat(M, 2, 1.0, fixed_classes=prevalence is not None)
    model = fit(blocks, Model.binary(b, np.full(M, 0.8), np.full(M, 0.8)), prior).model
    trait = fit_trait(blocks, [model], prevalence).trait
    slope = tempering_slope(blocks, model, trait)
    return model, prior, trait, tempered(blocks, model, slope, prevalence)


def errors(blocks: Blocks, prevalence: float | None = None) -> np.ndarray:
    model, prior, trait, cool = chain(blocks, prevalence)
    covariance = covariance_of_logits(blocks, model, prior)
    return np.sqrt(np.diagonal(tempered_covariance(blocks, model, covariance, trait, cool)))


def logits(model: Model) -> np.ndarray:
    return logit(np.r_[model.class_probabilities[1], model.confusion[:, :, 1].reshape(-1)])


def test_untempered_and_independent_it_is_the_inverse_information():
    blocks = drawn(40000, 1, 0.0)
    model, prior, _, _ = chain(blocks)
    covariance = covariance_of_logits(blocks, model, prior)
    cool = Tempered(tempered(blocks, model, 1.0).model, 1.0, 0.0)
    got = tempered_covariance(blocks, model, covariance, FLAT, cool)
    np.testing.assert_allclose(np.diagonal(got) / np.diagonal(covariance), 1.0, atol=0.05)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_scores_and_slopes_of_the_trait_model_agree_with_finite_differences(missing):
    blocks = drawn(60, 2, 1.0, missing)
    trait = Trait(0.35, np.linspace(-0.5, 0.5, M), np.linspace(0.5, 2.0, M), 0.8)
    votes = _Votes.of(blocks)
    objective = PenalisedLikelihood(blocks)
    place = objective.pack(trait)
    posterior, scores, slopes = _trait_parts(blocks, votes, trait)
    for j, step in enumerate(1e-5 * np.eye(len(place))):
        ahead, behind = (objective.unpack(place + sign * step) for sign in (1, -1))
        gain = trait_log_likelihood(blocks, ahead) - trait_log_likelihood(blocks, behind)
        assert votes.counts @ scores[:, j] == pytest.approx(gain / 2e-5, abs=1e-5)
        moved = _trait_parts(blocks, votes, ahead)[0] - _trait_parts(blocks, votes, behind)[0]
        np.testing.assert_allclose(slopes[:, j], moved / 2e-5, atol=1e-7)
    assert ((posterior > 0) & (posterior < 1)).all()


@pytest.mark.parametrize(("prevalence", "missing"), [(None, 0.0), (0.4, 0.0), (None, 0.2)])
def test_errors_are_the_spread_over_fresh_draws(prevalence, missing):
    answers = [
        logits(chain(drawn(5000, 10 + seed, 0.8, missing), prevalence)[3].model)
        for seed in range(40)
    ]
    free = slice(None) if prevalence is None else slice(1, None)
    said = np.mean(
        [errors(drawn(5000, 10 + s, 0.8, missing), prevalence) for s in range(5)], axis=0
    )
    ratio = (said / np.std(answers, axis=0, ddof=1).clip(1e-12))[free]
    assert 0.75 <= np.median(ratio) <= 1.35
    assert ((ratio > 0.5) & (ratio < 2.0)).all()


def test_a_known_prevalence_has_no_error_and_a_constant_classifier_a_wide_one():
    random = np.random.default_rng(3)
    codes = (random.random((500, M)) < 0.6).astype(np.int8)
    codes[:, :4] = random.random((500, 4)) < expit(3 * random.choice([-1, 1], 500))[:, None]
    codes[:, 5] = 1
    said = errors(Blocks(lf.Tally.from_codes(codes, np.ones(500))), 0.5)
    assert said[0] == 0.0
    assert np.isfinite(said).all()
    assert (said[-2:] > 1.0).all()
