"""Gold labels: the calibration, the sign, and intervals that cover."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

import labelfree as lf
from labelfree._difficulty import fit_trait, log_odds, tempered, tempering_slope
from labelfree._gold import _calibrated, _offsets, by_prevalence, gold_estimate, turned
from labelfree._latent_class import Model, Prior, fit
from labelfree._products import Block, Blocks

M = 8


def drawn(items: int, seed: int, missing: float = 0.0) -> tuple:
    """Codes and classes of votes that share the items' difficulty."""
    random = np.random.default_rng(seed)
    truth = random.random(items) < 0.4
    z = np.where(truth, 1.0, -1.0) + random.standard_normal(items)
    logits = random.normal(0, 0.7, M) + random.uniform(0.6, 2.0, M) * z[:, None]
    codes = (random.random(logits.shape) < expit(logits)).astype(np.int8)
    codes[random.random(codes.shape) < missing] = -1
    return codes, truth.astype(int)


def fitted(codes: np.ndarray) -> tuple:
    """Blocks, the mode under independence, and τ."""
    blocks = Blocks(lf.Tally.from_codes(codes, np.ones(len(codes))))
    start = Model.binary(0.0, np.full(M, 0.7), np.full(M, 0.7))
    model = fit(blocks, start, Prior.flat(M, 2, 1.0)).model
    trait = fit_trait(blocks, [model]).trait
    return blocks, model, tempering_slope(blocks, model, trait)


def rates_of(codes: np.ndarray, truth: np.ndarray) -> dict:
    def rate(code: int) -> np.ndarray:
        own = codes[truth == code]
        return (own == code).sum(axis=0) / (own >= 0).sum(axis=0)

    both = rate(1), rate(0)
    return {
        "sensitivity": both[0],
        "specificity": both[1],
        "balanced_accuracy": (both[0] + both[1]) / 2,
        "prevalence": np.array([truth.mean()]),
    }


def test_the_calibration_is_the_posterior_mode():
    random = np.random.default_rng(1)
    odds = random.normal(0, 6, 40)
    truth = (random.random(40) < expit(0.4 + 0.3 * odds)).astype(float)

    def loss(line: np.ndarray) -> float:
        linear = line[0] + line[1] * odds
        prior = line[0] ** 2 / (2 * 1.5**2) + (line[1] - 0.25) ** 2 / (2 * (0.6 * 0.25) ** 2)
        return float(np.logaddexp(0, linear).sum() - truth @ linear + prior)

    line, height, covariance = _calibrated(odds, truth, 0.25)
    by_hand = minimize(loss, [0.0, 0.25], tol=1e-10)
    np.testing.assert_allclose(line, by_hand.x, atol=1e-5)
    assert height == pytest.approx(-by_hand.fun)
    step = 1e-3
    curvature = [
        [
            (loss(line + a + c) - loss(line + a - c) - loss(line - a + c) + loss(line - a - c))
            / (4 * step**2)
            for c in step * np.eye(2)
        ]
        for a in step * np.eye(2)
    ]
    np.testing.assert_allclose(covariance, np.linalg.inv(curvature), rtol=1e-4)


def test_offsets_are_the_posterior_modes():
    random = np.random.default_rng(2)
    linear, truth = random.normal(0, 1, 30), random.integers(0, 2, 30).astype(float)
    codes = random.integers(-1, 2, (30, 3))
    offsets = _offsets(linear, truth, np.stack([codes == 0, codes == 1]).astype(float))
    for vote in (0, 1):
        for i in range(3):
            own = codes[:, i] == vote
            d = offsets[vote, i]
            slope = (truth[own] - expit(linear[own] + d)).sum() - d / 0.5**2
            assert slope == pytest.approx(0, abs=1e-8)


def test_without_gold_evidence_it_stays_near_the_tempered_rates():
    codes, _ = drawn(3000, 3)
    blocks, model, slope = fitted(codes)
    one = log_odds(Block(codes[:200], np.ones(200), 2), model)
    undecided = codes[:200][np.abs(one).argsort()[:2]]  # two items that say next to nothing
    gold = gold_estimate(blocks, model, slope, undecided, np.array([0, 1]))
    cool = tempered(blocks, model, slope).model
    np.testing.assert_allclose(gold.model.confusion, cool.confusion, atol=0.12)
    assert not gold.flipped


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_labels_of_all_items_give_the_labels_own_rates(missing):
    codes, truth = drawn(4000, 4, missing)
    blocks, model, slope = fitted(codes)
    gold = gold_estimate(blocks, model, slope, codes, truth)
    right = rates_of(codes, truth)
    for what in right:
        # The correction by the residuals is linear in the rates, so exact to second order only.
        np.testing.assert_allclose(gold.centres[what], right[what], atol=2e-3)


def test_gold_turns_a_wrong_sign():
    codes, truth = drawn(3000, 5)
    blocks, model, slope = fitted(codes)
    right = gold_estimate(blocks, model, slope, codes[:50], truth[:50])
    wrong = gold_estimate(blocks, turned(model), slope, codes[:50], truth[:50])
    assert not right.flipped
    assert wrong.flipped
    np.testing.assert_allclose(wrong.model.confusion, right.model.confusion)
    np.testing.assert_allclose(
        wrong.interval("sensitivity", 0.9), right.interval("sensitivity", 0.9)
    )


def test_rates_by_prevalence_pass_through_the_calibrated_ones():
    codes, truth = drawn(3000, 9, 0.2)
    blocks, model, slope = fitted(codes)
    gold = gold_estimate(blocks, model, slope, codes[:60], truth[:60])
    own = gold.model.class_probabilities[1]
    sensitivity, specificity = by_prevalence(blocks, model, gold, np.array([0.1, own, 0.9]))
    np.testing.assert_allclose(sensitivity[1], gold.model.confusion[:, 1, 1], atol=1e-8)
    np.testing.assert_allclose(specificity[1], gold.model.confusion[:, 0, 0], atol=1e-8)
    assert (np.diff(sensitivity, axis=0) < 0).all()
    assert (np.diff(specificity, axis=0) > 0).all()


def test_a_known_prevalence_holds_beside_gold_and_helps():
    errors = {"known": [], "unknown": []}
    for seed in range(10):
        codes, truth = drawn(3000, 200 + seed)
        blocks, model, slope = fitted(codes)
        right = rates_of(codes, truth)
        chosen = np.random.default_rng(seed).choice(len(truth), 20, replace=False)
        for name, prevalence in (("known", truth.mean()), ("unknown", None)):
            gold = gold_estimate(blocks, model, slope, codes[chosen], truth[chosen], prevalence)
            errors[name].append(
                np.abs(gold.model.confusion[:, 1, 1] - right["sensitivity"]).mean()
                + np.abs(gold.model.confusion[:, 0, 0] - right["specificity"]).mean()
            )
            if prevalence is not None:
                assert gold.model.class_probabilities[1] == pytest.approx(prevalence, abs=1e-9)
                assert abs(np.linalg.det(gold.line_covariance)) < 1e-9  # one direction is left
    assert np.mean(errors["known"]) < np.mean(errors["unknown"])


@pytest.mark.parametrize("label", [0, 1])
def test_gold_of_one_class_alone_gives_finite_numbers(label):
    codes, truth = drawn(2000, 6)
    codes[:, 3] = 1  # constant
    codes[:, 4] = -1  # never votes
    blocks, model, slope = fitted(codes)
    chosen = np.flatnonzero(truth == label)[:1]
    gold = gold_estimate(blocks, model, slope, codes[chosen], truth[chosen])
    for what in gold.centres:
        ends = gold.interval(what, 0.95)
        assert np.isfinite(ends).all()
        assert (ends[:, 0] <= ends[:, 1]).all()
    assert gold.interval("sensitivity", 0.9)[3, 1] == 1.0  # the constant one votes + whatever comes
    assert gold.interval("specificity", 0.9)[3, 0] == 0.0
    assert ((gold.model.confusion >= 0) & (gold.model.confusion <= 1)).all()


def test_a_higher_level_gives_wider_intervals():
    codes, truth = drawn(2000, 7)
    gold = gold_estimate(*fitted(codes), codes[:40], truth[:40])
    narrow, wide = gold.interval("specificity", 0.5), gold.interval("specificity", 0.99)
    assert (wide[:, 0] <= narrow[:, 0]).all()
    assert (wide[:, 1] >= narrow[:, 1]).all()


def test_intervals_cover_and_rates_beat_the_labels_alone():
    covered, errors = [], {"gold": [], "alone": []}
    for seed in range(12):
        codes, truth = drawn(3000, 100 + seed)
        known = fitted(codes)
        right = rates_of(codes, truth)
        random = np.random.default_rng(seed)
        for _ in range(5):
            chosen = random.choice(len(truth), 50, replace=False)
            gold = gold_estimate(*known, codes[chosen], truth[chosen])
            for what, value in right.items():
                low, high = gold.interval(what, 0.9).T
                covered.append(np.mean((low <= value) & (value <= high)))
            alone = rates_of(codes[chosen], truth[chosen])["balanced_accuracy"]
            ours = (gold.model.confusion[:, 1, 1] + gold.model.confusion[:, 0, 0]) / 2
            errors["alone"].append(np.abs(alone - right["balanced_accuracy"]).mean())
            errors["gold"].append(np.abs(ours - right["balanced_accuracy"]).mean())
    assert 0.85 <= np.mean(covered) <= 0.96
    assert np.mean(errors["gold"]) < 0.7 * np.mean(errors["alone"])
