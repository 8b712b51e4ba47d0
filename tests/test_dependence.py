import itertools

import numpy as np
import pytest

import labelfree as lf
from labelfree._dependence import (
    _products_of_monomials,
    bounded_p_value,
    effective_number,
    joint_residual,
    separation,
    standardised_residuals,
)
from labelfree._intervals import covariance_of_logits
from labelfree._latent_class import Model, Prior, fit
from labelfree._moments import moments
from labelfree._products import Blocks

SENSITIVITY = np.array([0.8, 0.7, 0.9, 0.6, 0.75])
SPECIFICITY = np.array([0.7, 0.8, 0.8, 0.9, 0.6])


def every_pattern(model):
    """All votes ±1 of m classifiers with their probabilities."""
    m = len(model.confusion)
    patterns = np.array(list(itertools.product((0, 1), repeat=m)))
    chance = model.confusion[:, :, 1].T[:, None, :]
    given = np.where(patterns == 1, chance, 1 - chance).prod(axis=2)
    return 2 * patterns - 1, model.class_probabilities @ given


def at(model, logits):
    share = 1 / (1 + np.exp(-logits))
    chance = share[1:].reshape(-1, 2)
    return Model.binary(2 * share[0] - 1, chance[:, 1], 1 - chance[:, 0])


def logits_of(model):
    share = np.concatenate([model.class_probabilities[1:], model.confusion[:, :, 1].reshape(-1)])
    return np.log(share / (1 - share))


@pytest.fixture(scope="module")
def setting():
    drawn = lf.simulate.votes(
        3000, sensitivity=SENSITIVITY, specificity=SPECIFICITY, prevalence=0.4, seed=2
    )
    blocks = Blocks(lf.tally(drawn.votes))
    prior = Prior.flat(5, 2, 1.0)
    found = fit(blocks, Model.binary(-0.2, SENSITIVITY, SPECIFICITY), prior)
    return blocks, moments(blocks), found.model, prior


def test_residuals_are_those_of_plain_enumeration(setting):
    blocks, seen, model, prior = setting
    covariance = covariance_of_logits(blocks, model, prior)
    found = standardised_residuals(seen, model, covariance, 3000)
    votes, chance = every_pattern(model)
    place, step = logits_of(model), 1e-5

    def pair(model, i, j):
        votes, chance = every_pattern(model)
        mean = chance @ votes
        return chance @ ((votes[:, i] - mean[i]) * (votes[:, j] - mean[j]))

    mean = chance @ votes
    for i, j in itertools.combinations(range(5), 2):
        product = (votes[:, i] - mean[i]) * (votes[:, j] - mean[j])
        spread = chance @ product**2 - (chance @ product) ** 2
        slope = np.array(
            [
                (
                    pair(at(model, place + step * axis), i, j)
                    - pair(at(model, place - step * axis), i, j)
                )
                / (2 * step)
                for axis in np.eye(11)
            ]
        )
        variance = spread / 3000 - slope @ covariance @ slope
        expected = (seen.covariance[i, j] - chance @ product) / np.sqrt(variance)
        tested = variance > 0.15 * spread / 3000
        tested |= variance > 9 * second_order(model, covariance, i, j) ** 2
        if tested:
            assert found[i, j] == pytest.approx(expected, rel=1e-4)
            assert found[j, i] == pytest.approx(expected, rel=1e-4)
        else:
            assert found[i, j] == 0
    assert (found != 0).any()


def second_order(model, covariance, i, j):
    """Of p (1 − p) d_i d_j, in the standard errors of p, d_i and d_j."""
    p = model.class_probabilities[1]
    rate = model.confusion[:, :, 1]
    size, error = 2 * np.abs(rate[:, 1] - rate[:, 0]), []
    for place in range(len(rate)):
        slope = np.zeros(len(covariance))
        slope[1 + 2 * place] = -2 * rate[place, 0] * (1 - rate[place, 0])
        slope[2 + 2 * place] = 2 * rate[place, 1] * (1 - rate[place, 1])
        error.append(np.sqrt(slope @ covariance @ slope))
    of_p = p * (1 - p) * np.sqrt(covariance[0, 0])
    return (
        p * (1 - p) * error[i] * error[j]
        + of_p * abs(1 - 2 * p) * (size[i] * error[j] + size[j] * error[i])
        + of_p**2 * size[i] * size[j]
    )


def test_good_classifiers_are_tested_too_though_their_quality_explains_nearly_all_agreement():
    drawn = lf.simulate.votes(
        5000, sensitivity=np.linspace(0.94, 0.99, 8), specificity=np.full(8, 0.97), seed=3
    )
    fine = lf.estimate(drawn.votes)
    assert fine.alarm.testable
    assert (fine.alarm.residuals[~np.eye(8, dtype=bool)] != 0).all()
    assert fine.verdict.level == "sound"


@pytest.mark.parametrize(("copying", "prevalence"), [(0.9, 0.5), (0.5, 0.8)])
def test_copies_among_good_classifiers_are_found(copying, prevalence):
    drawn = lf.simulate.votes(
        5000,
        sensitivity=np.linspace(0.9, 0.98, 10),
        specificity=np.linspace(0.99, 0.92, 10),
        prevalence=prevalence,
        copies=[(1, 6)],
        copying=copying,
        seed=3,
    )
    estimate = lf.estimate(drawn.votes)
    assert estimate.alarm.raised
    assert estimate.groups == (("classifier_2", "classifier_7"),)


def test_bound_of_the_p_value_is_that_of_a_plain_loop():
    model = Model.binary(0.2, SENSITIVITY, SPECIFICITY)
    drawn = lf.simulate.votes(800, sensitivity=SENSITIVITY, specificity=SPECIFICITY, missing=0.2)
    seen = moments(Blocks(lf.tally(drawn.votes, missing=lf.simulate.MISSING)))
    residuals = np.zeros((5, 5))
    residuals[0, 1] = residuals[1, 0] = 4.5
    residuals[2, 3] = residuals[3, 2] = -6.0
    tails = []
    for i, j in ((0, 1), (2, 3)):
        variance, most = 0.0, 0.0
        for p, rates in ((0.6, SENSITIVITY), (0.4, 1 - SPECIFICITY)):
            for one, other in itertools.product((0, 1), repeat=2):
                chance = (rates[i] if one else 1 - rates[i]) * (rates[j] if other else 1 - rates[j])
                move = 4 * (one - rates[i]) * (other - rates[j])  # votes are ±1
                variance += p * chance * move**2
                most = max(most, abs(move))
        z, share = abs(residuals[i, j]), most / np.sqrt(seen.pair_counts[i, j] * variance)
        tails.append(2 * np.exp(-(z**2) / (2 + 2 * share * z / 3)))
    assert bounded_p_value(seen, model, residuals) == pytest.approx(2 * min(tails), rel=1e-9)


def test_no_residual_no_bound():
    seen = moments(Blocks(lf.tally(lf.simulate.votes(300, classifiers=5).votes)))
    model = Model.binary(0.2, SENSITIVITY, SPECIFICITY)
    assert bounded_p_value(seen, model, np.zeros((5, 5))) == 1.0


def test_good_classifiers_seldom_raise_a_false_alarm():
    """Two of them seldom err together, so that one such item more makes a large residual."""
    raised = 0
    for seed in range(40):
        random = np.random.default_rng(seed)
        drawn = lf.simulate.votes(
            600,
            sensitivity=random.uniform(0.8, 0.99, 10),
            specificity=random.uniform(0.8, 0.99, 10),
            seed=seed,
        )
        raised += lf.estimate(drawn.votes, dependence="test").alarm.raised
    assert raised <= 6  # 19 % without simulation, and by chance 6 of 40 once in 100 runs


def test_products_of_monomials_are_those_of_plain_enumeration(setting):
    _, _, model, _ = setting
    members = np.array(
        [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [0, 1, 1, 0, 0], [0, 0, 0, 1, 1], [0, 0, 1, 0, 0]], float
    )
    votes = every_pattern(model)[0]
    for y in (0, 1):
        chance = model.confusion[:, y, 1]
        given = np.where(votes == 1, chance, 1 - chance).prod(axis=1)
        monomials = np.array([np.where(row == 1, votes, 1).prod(axis=1) for row in members])
        expected = (monomials * given) @ monomials.T
        np.testing.assert_allclose(
            _products_of_monomials(members, 2 * chance - 1), expected, atol=1e-12
        )


def test_joint_residual_is_that_of_plain_enumeration(setting):
    _, seen, model, prior = setting
    statistic, freedom = joint_residual(seen, model, prior, 3000)
    pairs = list(itertools.combinations(range(5), 2))

    def monomials(votes):
        return np.concatenate([votes.T, np.array([votes[:, i] * votes[:, j] for i, j in pairs])])

    def expected(model):
        votes, chance = every_pattern(model)
        return monomials(votes) @ chance

    votes, chance = every_pattern(model)
    values = monomials(votes)
    spread = (values * chance) @ values.T - np.outer(values @ chance, values @ chance)
    place, step = logits_of(model), 1e-5
    slopes = np.array(
        [
            (expected(at(model, place + step * a)) - expected(at(model, place - step * a)))
            / (2 * step)
            for a in np.eye(11)
        ]
    ).T
    inverse = np.linalg.inv(spread)
    taken = np.linalg.pinv(slopes.T @ inverse @ slopes, rcond=1e-8)
    metric = inverse - inverse @ slopes @ taken @ slopes.T @ inverse
    raw = seen.covariance + np.outer(seen.mean, seen.mean)
    error = np.concatenate([seen.mean, [raw[i, j] for i, j in pairs]]) - expected(model)
    assert freedom == 15 - 10  # means and pairs say nothing of the imbalance: 10 of 11 directions
    assert statistic == pytest.approx(3000 * error @ metric @ error, rel=1e-4)


def test_a_copy_raises_the_alarm_and_is_named():
    drawn = lf.simulate.votes(5000, classifiers=8, copies=[(2, 6)], copying=0.3, seed=3)
    estimate = lf.estimate(drawn.votes)
    assert estimate.alarm.raised
    assert estimate.alarm.pair == (2, 6)
    assert estimate.alarm.joint_p_value < 1e-6
    assert estimate.verdict.level == "caution"


def test_independent_classifiers_raise_none():
    drawn = lf.simulate.votes(5000, classifiers=8, seed=4)
    estimate = lf.estimate(drawn.votes)
    assert not estimate.alarm.raised
    assert estimate.dependence == "independent"
    assert estimate.effective_number == 8
    assert estimate.verdict.level == "sound"


def test_three_classifiers_leave_nothing_to_test_and_the_verdict_says_so():
    drawn = lf.simulate.votes(5000, sensitivity=SENSITIVITY[:3], specificity=SPECIFICITY[:3])
    estimate = lf.estimate(drawn.votes)
    assert not estimate.alarm.testable
    assert estimate.verdict.level == "caution"
    assert "nothing to test" in estimate.verdict.reasons[0]


def test_ignoring_dependence_is_said_in_the_verdict():
    drawn = lf.simulate.votes(5000, classifiers=8, seed=4)
    estimate = lf.estimate(drawn.votes, dependence="ignore")
    assert estimate.verdict.level == "caution"
    assert "not looked at" in estimate.verdict.reasons[0]


def test_few_items_are_checked_by_simulation():
    raised = 0
    for seed in range(12):
        drawn = lf.simulate.votes(120, classifiers=8, seed=seed)
        estimate = lf.estimate(drawn.votes)
        raised += estimate.verdict.level != "unidentified" and estimate.alarm.raised
    assert raised <= 3


def test_separation_and_effective_number():
    psi, eta = np.array([0.8]), np.array([0.7])
    vote = np.array([0.2, 0.8]), np.array([0.7, 0.3])
    expected = ((vote[0] - vote[1]) * np.log(vote[0] / vote[1])).sum()
    assert separation(psi, eta)[0] == pytest.approx(expected)
    assert effective_number(np.array([1.0, 2.0, 3.0]), 6.0) == 3
    assert effective_number(np.array([1.0, 2.0, 3.0]), 2.0) == 1
    assert effective_number(np.zeros(3), 0.0) == 1


@pytest.mark.parametrize(
    "dependence",
    [
        "yes",
        [("classifier_1", "stranger")],
        [("classifier_1",)],
        [("classifier_1", "classifier_2"), ("classifier_2", "classifier_3")],
        [tuple(f"classifier_{i}" for i in range(1, 5)), ("classifier_5", "classifier_6")],
    ],
)
def test_bad_groups_get_a_sentence(dependence):
    drawn = lf.simulate.votes(500, classifiers=6)
    with pytest.raises(lf.OptionsError, match="dependence="):
        lf.estimate(drawn.votes, dependence=dependence)


@pytest.mark.parametrize("method", ["likelihood", "tensor"])
def test_groups_are_not_passed_over_by_methods_that_cannot_model_them(method):
    drawn = lf.simulate.votes(500, classifiers=6)
    with pytest.raises(lf.OptionsError, match="only method='map'"):
        lf.estimate(drawn.votes, dependence=[("classifier_1", "classifier_2")], method=method)


@pytest.mark.parametrize("method", ["map", "likelihood", "tensor"])
@pytest.mark.parametrize("shared", ["nothing", "copies", "difficulty"])
@pytest.mark.parametrize("gold", [False, True])
def test_what_is_known_holds_under_every_method_and_model(method, shared, gold):
    votes, truth = votes_that_share(shared)
    fixed, believed = votes[truth == 1][:, 1].mean(), votes[truth == 1][:, 3].mean() + 0.03
    other = 1 - votes[truth == 0][:, 3].mean()
    known = {
        "classifier_2": {"sensitivity": fixed},
        "classifier_4": {
            "sensitivity": (1e5 * believed, 1e5 * (1 - believed)),
            "specificity": other,
        },
    }
    labels = {place: int(truth[place]) for place in range(0, 3000, 60)} if gold else None
    estimate = lf.estimate(votes, method=method, prevalence=0.58, known=known, gold=labels)
    if method == "map" or (gold and shared == "difficulty"):
        expected = {"nothing": "independent", "copies": "groups"}.get(shared, shared)
        assert estimate.dependence == expected
    assert estimate.prevalence == pytest.approx(0.58, abs=1e-9)
    np.testing.assert_allclose(estimate.interval("prevalence"), 0.58, atol=1e-9)
    assert estimate.sensitivity[1] == pytest.approx(fixed, abs=1e-6)
    np.testing.assert_allclose(estimate.interval("sensitivity")[1], fixed, atol=1e-6)
    assert estimate.specificity[3] == pytest.approx(other, abs=1e-6)
    assert estimate.sensitivity[3] == pytest.approx(believed, abs=0.01)
    low, high = estimate.interval("balanced_accuracy")[3]
    assert low <= (estimate.sensitivity[3] + other) / 2 <= high
    low, high = estimate.interval("sensitivity")[3]
    assert high - low <= 0.01  # the prior tells as much as 100 000 votes
    assert low <= estimate.sensitivity[3] <= high
    for row in estimate.by_prevalence():
        if row["classifier"] == "classifier_2":
            assert row["sensitivity"] == pytest.approx(fixed, abs=1e-6)
    if estimate.dependence == "difficulty":
        mean = estimate.probability(votes).mean()
        assert mean == pytest.approx(0.58, abs=1e-3)
    wide = np.diff(estimate.interval("sensitivity"))[[0, 2]]
    assert (wide > 0.005).all()  # what is not known still has its error


def votes_that_share(what):
    if what != "difficulty":
        copies = [(4, 6)] if what == "copies" else []
        drawn = lf.simulate.votes(
            3000, classifiers=7, prevalence=0.58, copies=copies, copying=0.9, seed=8
        )
        return drawn.votes, drawn.truth
    random = np.random.default_rng(5)
    truth = random.random(3000) < 0.58
    trait = np.where(truth, 1.0, -1.0) + random.normal(size=3000)
    slope = random.uniform(0.7, 1.5, 7)
    votes = random.random((3000, 7)) < 1 / (1 + np.exp(-slope * trait[:, None]))
    return votes.astype(np.int8), truth.astype(int)


@pytest.mark.parametrize(
    "known",
    [
        {"stranger": {"sensitivity": 0.9}},
        {"classifier_1": {"accuracy": 0.9}},
        {"classifier_1": {"sensitivity": 1.0}},
        {"classifier_1": {"sensitivity": -3}},
        {"classifier_1": {"sensitivity": "high"}},
        {"classifier_1": {"sensitivity": (0.5, 3)}},
        {"classifier_1": {"sensitivity": (2, 3, 4)}},
    ],
)
def test_bad_known_rates_get_a_sentence(known):
    drawn = lf.simulate.votes(500, classifiers=6)
    with pytest.raises(lf.OptionsError, match="known="):
        lf.estimate(drawn.votes, known=known)


def test_known_rates_fix_the_direction():
    drawn = lf.simulate.votes(
        4000, sensitivity=[0.9, 0.2, 0.3, 0.25], specificity=[0.9, 0.2, 0.25, 0.3], seed=1
    )
    assert lf.estimate(drawn.votes).sensitivity[0] < 0.5
    known = {"classifier_1": {"sensitivity": (90, 10)}}
    assert lf.estimate(drawn.votes, known=known).sensitivity[0] > 0.5
