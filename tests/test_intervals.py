import numpy as np
import pytest

import labelfree as lf
from labelfree._gold import _calibrated
from labelfree._intervals import (
    covariance_of_logits,
    covariance_of_votes,
    jackknife,
    spread_of,
)
from labelfree._latent_class import Model, Prior, fit, information
from labelfree._multiclass import many_classes
from labelfree._products import Blocks
from labelfree._tally import tally


def fitted(items=4000, seed=1, missing=0.0):
    drawn = lf.simulate.votes(
        items,
        sensitivity=[0.8, 0.7, 0.9, 0.6, 0.75],
        specificity=[0.7, 0.8, 0.8, 0.9, 0.6],
        missing=missing,
        seed=seed,
    )
    return drawn, lf.estimate(drawn.votes, missing=-1, dependence="ignore")


def difficult(items=4000, classifiers=8, seed=3):
    """Votes that share errors on hard items, and the true classes."""
    random = np.random.default_rng(seed)
    truth = random.random(items) < 0.6
    trait = np.where(truth, 1.0, -1.0) + random.normal(size=items)
    slope, shift = random.uniform(0.7, 1.5, classifiers), random.normal(0, 0.4, classifiers)
    votes = random.random((items, classifiers)) < 1 / (1 + np.exp(-shift - slope * trait[:, None]))
    return votes.astype(np.int8), truth.astype(int)


def logit(share):
    return np.log(share / (1 - share))


def covariance_of(drawn, estimate):
    """Of the logits at the posterior mode, from what the votes tell."""
    blocks = Blocks(lf.tally(drawn.votes, missing=-1))
    return covariance_of_logits(blocks, estimate._choice.model, Prior.flat(5, 2, 0.0))


def numbers(logits):
    """Rates, balanced accuracy and prevalence from the logits, as a plain function."""
    share = 1 / (1 + np.exp(-logits))
    specificity, sensitivity = 1 - share[1::2], share[2::2]
    return {
        "sensitivity": sensitivity,
        "specificity": specificity,
        "balanced_accuracy": (sensitivity + specificity) / 2,
        "prevalence": share[:1],
    }


def logits_of(model):
    share = np.concatenate([model.class_probabilities[1:], model.confusion[:, :, 1].reshape(-1)])
    return np.log(share / (1 - share))


def test_standard_errors_are_those_of_the_delta_method():
    drawn, estimate = fitted()
    model, covariance = estimate._choice.model, covariance_of(drawn, estimate)
    place, step = logits_of(model), 1e-5
    spread = spread_of(model, covariance)
    for name in spread.error:
        up, down = [], []
        for each in range(len(place)):
            move = np.zeros(len(place))
            move[each] = step
            up.append(numbers(place + move)[name])
            down.append(numbers(place - move)[name])
        slopes = (np.array(up) - np.array(down)) / (2 * step)
        value = numbers(place)[name]
        slopes = slopes / (value * (1 - value))  # of the logit
        expected = np.sqrt(np.einsum("dq,de,eq->q", slopes, covariance, slopes))
        np.testing.assert_allclose(np.atleast_1d(spread.error[name]), expected, rtol=1e-6)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_error_of_an_items_log_odds_is_that_of_the_delta_method(missing):
    drawn, estimate = fitted(missing=missing)
    model, covariance = estimate._choice.model, covariance_of(drawn, estimate)
    codes = drawn.votes[:50]

    def log_odds(logits):
        share = 1 / (1 + np.exp(-logits))
        chance = share[1:].reshape(-1, 2)
        vote = np.where(codes[:, :, None] == 1, np.log(chance), np.log(1 - chance))
        terms = np.where(codes[:, :, None] >= 0, vote, 0).sum(axis=1)
        return terms[:, 1] - terms[:, 0] + logits[0]

    place, step = logits_of(model), 1e-5
    slopes = np.array(
        [
            (log_odds(place + step * axis) - log_odds(place - step * axis)) / (2 * step)
            for axis in np.eye(len(place))
        ]
    )
    expected = np.sqrt(np.einsum("dp,de,ep->p", slopes, covariance, slopes))
    ends = estimate.probability_interval(drawn.votes[:50])
    odds = np.log(ends / (1 - ends))
    np.testing.assert_allclose(odds[:, 1] - odds[:, 0], 2 * 1.959964 * expected, rtol=1e-6)


def doubt_of_two_types(votes):
    """Standard errors of the first items' log-odds, by moving every logit of the model that labels."""
    counted = tally(votes)
    found = many_classes(Blocks(counted))
    positive = np.concatenate(
        [found.model.class_probabilities[1:], found.model.confusion[:, :, 1].ravel()]
    )
    codes = np.asarray(votes)[:50]

    def odds(logits):
        chances = 1 / (1 + np.exp(-logits))
        rates = chances[1:].reshape(-1, 2)
        said = np.where(codes[:, :, None] == 1, rates, 1 - rates)
        return logits[0] + (np.log(said[:, :, 1]) - np.log(said[:, :, 0])).sum(axis=1)

    middle = logit(positive)
    steps = 1e-5 * np.eye(len(middle))
    slopes = np.stack([(odds(middle + s) - odds(middle - s)) / 2e-5 for s in steps])
    return np.sqrt(np.einsum("dp,de,ep->p", slopes, found.covariance, slopes))


@pytest.mark.parametrize("gold", [False, True])
def test_items_have_intervals_where_difficulty_is_shared(gold):
    """Of a + τ ℓ: τ² Var(ℓ), and what the line through the gold adds."""
    votes, truth = difficult()
    known = {place: int(truth[place]) for place in range(0, 4000, 80)} if gold else None
    estimate = lf.estimate(votes, gold=known)
    assert estimate.dependence == "difficulty"
    ends = estimate.probability_interval(votes)
    probability = estimate.probability(votes)
    assert ((ends[:, 0] < probability) & (probability < ends[:, 1])).all()
    again = np.diff(logit(estimate.probability_interval(votes, 0.5)))
    np.testing.assert_allclose(np.diff(logit(ends)), again * 1.959964 / 0.6744898, rtol=1e-5)
    plain = lf.estimate(votes, dependence="ignore")
    width = estimate._choice.slope * np.diff(logit(plain.probability_interval(votes)))[:, 0]
    if not gold:
        expected = estimate._choice.slope * doubt_of_two_types(votes)
        reach = np.diff(logit(ends))[:50, 0] / (2 * 1.959964)
        np.testing.assert_allclose(reach, expected, rtol=1e-3)
        return
    places = np.array(sorted(known))
    odds = logit(plain.probability(votes))
    line = _calibrated(odds[places], truth[places].astype(float), lf.estimate(votes)._choice.slope)
    assert line[0] == pytest.approx(
        [logit(probability[0]) - estimate._choice.slope * odds[0], estimate._choice.slope], abs=1e-6
    )
    design = np.stack([np.ones_like(odds), odds], axis=1)
    added = ((design @ line[2]) * design).sum(axis=1)
    expected = np.sqrt(width**2 + (2 * 1.959964) ** 2 * added)
    np.testing.assert_allclose(np.diff(logit(ends))[:, 0], expected, rtol=1e-5)


def test_items_of_a_part_of_the_classifiers_have_the_intervals_of_votes_missing():
    drawn = lf.simulate.votes(5000, classifiers=7, copies=[(1, 4)], copying=0.9, seed=2)
    estimate = lf.estimate(drawn.votes)
    assert estimate.dependence == "groups"
    hidden = drawn.votes.copy()
    hidden[:, [2, 4]] = -1
    kept = [0, 1, 3, 5, 6]
    names = [estimate.classifiers[place] for place in kept]
    np.testing.assert_allclose(
        estimate.probability_interval(drawn.votes[:, kept], classifiers=names),
        estimate.probability_interval(hidden, missing=-1),
    )


@pytest.mark.parametrize("options", [{}, {"method": "tensor"}, {"gold": True}])
def test_intervals_of_items_come_back_from_a_file(tmp_path, options):
    drawn = lf.simulate.votes(5000, classifiers=7, copies=[(1, 4)], copying=0.9, seed=2)
    gold = {place: int(drawn.truth[place]) for place in range(60)} if "gold" in options else None
    estimate = lf.estimate(drawn.votes, **{**options, "gold": gold})
    estimate.save(tmp_path / "e.json")
    np.testing.assert_array_equal(
        lf.load(tmp_path / "e.json").probability_interval(drawn.votes),
        estimate.probability_interval(drawn.votes),
    )


def test_covariance_is_the_inverse_of_the_information_and_zero_where_a_rate_is_known():
    drawn, _ = fitted()
    blocks = Blocks(lf.tally(drawn.votes))
    model = Model.binary(0.0, drawn.sensitivity, drawn.specificity)
    fixed = np.zeros((5, 2), dtype=bool)
    fixed[2, 1] = True
    prior = Prior(np.ones(2), np.ones((5, 2, 2)), fixed_classes=True, fixed_rates=fixed)
    covariance = covariance_of_logits(blocks, model, prior)
    free = np.array([place not in {0, 6} for place in range(11)])
    inside = information(blocks, model, prior)[np.ix_(free, free)]
    np.testing.assert_allclose(covariance[np.ix_(free, free)] @ inside, np.eye(9), atol=1e-9)
    assert not covariance[~free].any()
    assert not covariance[:, ~free].any()


@pytest.mark.parametrize("prior", [1.0, 3.0])
def test_intervals_do_not_borrow_from_a_flat_prior_but_from_what_is_known(prior):
    drawn, estimate = fitted(missing=0.2)
    blocks, model = Blocks(lf.tally(drawn.votes, missing=-1)), estimate._choice.model
    flat, kept = (Prior.flat(5, 2, count) for count in (prior, 0.0))
    for each in (flat, kept):
        each.confusion[1, 1] = [3.0, 8.0]  # a Beta prior of one rate, which the user gave
    with_prior, of_votes = covariance_of_votes(blocks, model, flat, kept)
    np.testing.assert_allclose(with_prior, covariance_of_logits(blocks, model, flat), rtol=1e-9)
    np.testing.assert_allclose(of_votes, covariance_of_logits(blocks, model, kept), rtol=1e-9)
    assert (np.diagonal(of_votes) > np.diagonal(with_prior)).all()


def test_where_the_votes_leave_a_direction_open_part_of_the_prior_closes_it():
    rates = [0.65] * 3, [0.6] * 3
    votes = lf.simulate.votes(
        200, sensitivity=rates[0], specificity=rates[1], prevalence=0.85, seed=0
    ).votes
    blocks = Blocks(lf.tally(votes))
    flat, kept = (Prior.flat(3, 2, count) for count in (1.0, 0.0))
    model = fit(blocks, Model.binary(0.5, np.full(3, 0.7), np.full(3, 0.7)), flat).model
    assert covariance_of_logits(blocks, model, kept) is None
    with_prior, of_votes = covariance_of_votes(blocks, model, flat, kept)
    assert np.isfinite(of_votes).all()
    assert (np.diagonal(of_votes) > np.diagonal(with_prior)).all()


def test_an_estimates_intervals_hold_their_numbers_and_grow_with_the_level():
    _, estimate = fitted()
    for name in ("sensitivity", "specificity", "balanced_accuracy", "prevalence", "imbalance"):
        narrow, wide = estimate.interval(name, 0.5), estimate.interval(name, 0.99)
        value = np.asarray(getattr(estimate, name))
        assert (narrow[..., 0] < value).all()
        assert (value < narrow[..., 1]).all()
        assert (wide[..., 0] < narrow[..., 0]).all()
        assert (wide[..., 1] > narrow[..., 1]).all()
    assert estimate.interval("sensitivity").shape == (5, 2)
    assert estimate.interval("prevalence").shape == (2,)
    np.testing.assert_allclose(
        estimate.interval("imbalance"), 2 * estimate.interval("prevalence") - 1
    )


def test_known_rates_and_prevalence_have_no_width_and_no_error():
    drawn, _ = fitted()
    for method in ("map", "likelihood", "tensor"):
        estimate = lf.estimate(
            drawn.votes,
            method=method,
            prevalence=0.4,
            known={"classifier_2": {"sensitivity": 0.71}},
        )
        assert estimate.prevalence == pytest.approx(0.4, abs=1e-12)
        assert estimate.sensitivity[1] == pytest.approx(0.71, abs=1e-12)
        np.testing.assert_allclose(estimate.interval("prevalence"), 0.4, atol=1e-9)
        np.testing.assert_allclose(estimate.interval("sensitivity")[1], 0.71, atol=1e-9)


def test_a_beta_prior_draws_a_rate_towards_it_and_narrows_its_interval():
    drawn, plain = fitted(items=300)
    believed = {"classifier_4": {"specificity": (900, 100)}}
    estimate = lf.estimate(drawn.votes, known=believed, dependence="ignore")
    assert abs(estimate.specificity[3] - 0.9) < abs(plain.specificity[3] - 0.9) + 1e-9
    assert abs(estimate.specificity[3] - 0.9) < 0.02
    assert (
        np.diff(estimate.interval("specificity")[3])[0]
        < np.diff(plain.interval("specificity")[3])[0]
    )


def test_exact_probabilities_have_intervals_without_width():
    counted = lf.simulate.exact([0.8, 0.7, 0.9, 0.6], [0.7, 0.8, 0.8, 0.9], 0.4)
    for method in ("map", "likelihood", "tensor"):
        estimate = lf.estimate(counted, method=method, prior=0)
        np.testing.assert_allclose(estimate.interval("prevalence"), 0.4, atol=1e-9)


def test_singular_information_gives_no_interval_but_a_sentence():
    drawn, _ = fitted(items=200)
    votes = drawn.votes.astype(float)
    votes[:, 4] = np.nan
    estimate = lf.estimate(votes, prior=0, classes=(0, 1))
    with pytest.raises(lf.NotIdentifiedError, match="no intervals"):
        estimate.interval("sensitivity")
    assert estimate.table()[0]["sensitivity_low"] is None
    assert any("no intervals" in reason for reason in estimate.verdict.reasons)
    assert "nan" not in repr(estimate).lower()


@pytest.mark.parametrize(
    ("quantity", "level"),
    [("accuracy", 0.95), ("sensitivity", 0.0), ("sensitivity", 1.0), ("sensitivity", 7)],
)
def test_bad_requests_get_a_sentence(quantity, level):
    _, estimate = fitted(items=500)
    with pytest.raises(lf.OptionsError, match=r"level=|There is no"):
        estimate.interval(quantity, level)


def test_moment_methods_have_intervals_of_their_own_that_are_wider_for_the_tensor():
    drawn = lf.simulate.votes(10_000, classifiers=8, prevalence=0.8, seed=5)
    tensor = lf.estimate(drawn.votes, method="tensor").interval("prevalence")
    best = lf.estimate(drawn.votes).interval("prevalence")
    assert np.diff(tensor)[0] > np.diff(best)[0]


def test_the_jackknife_is_the_spread_over_fresh_draws():
    """Of a mean of votes, whose covariance is known in closed form: p (1 − p) / n on the plain scale."""
    drawn = lf.simulate.votes(6000, classifiers=4, prevalence=0.4, seed=6)
    counted = lf.tally(drawn.votes)

    def model_of(part):
        share = part.counts @ part.codes() / part.counts.sum()
        return Model.binary(0.0, share, np.full(4, 0.5))

    share = drawn.votes.mean(axis=0)
    covariance = jackknife(model_of(counted), counted, model_of)
    error = np.sqrt(np.diagonal(covariance)[2::2])
    np.testing.assert_allclose(error, 1 / np.sqrt(6000 * share * (1 - share)), rtol=0.35)
    assert not np.diagonal(covariance)[1::2].any()
    assert not covariance[0].any()
