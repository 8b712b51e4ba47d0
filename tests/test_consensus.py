"""Every consensus is the rule of its formula, by look-up, by product and in SQL alike."""

import os
from itertools import product

import duckdb
import numpy as np
import polars as pl
import pytest
from scipy.sparse import csr_array

import labelfree as lf
from labelfree import _consensus, _patterns, simulate
from labelfree._consensus import (
    Rule,
    Together,
    answer,
    each_item,
    likelihood_rule,
    majority_rule,
    posterior_rule,
    probabilities,
    spectral_rule,
    sql,
    tempered_rule,
    winners,
)
from labelfree._latent_class import Model
from labelfree._products import Block
from labelfree._votes import Votes, read_votes

from . import naive

IMBALANCE = 0.3
PSI = np.array([0.8, 0.62, 0.9, 0.55, 0.71])
ETA = np.array([0.7, 0.93, 0.6, 0.75, 0.38])
MODEL = Model.binary(IMBALANCE, PSI, ETA)
PATTERNS = np.array(list(product((-1, 0, 1), repeat=5)), dtype=np.int8)
VECTOR = np.sqrt(1 - IMBALANCE**2) * (PSI + ETA - 1)


def answered(rule, codes, classes=2, **options):
    names = [f"c{i}" for i in range(codes.shape[1])]
    votes = read_votes(codes, classes=tuple(range(classes)), missing=-1, classifiers=names)
    return answer(rule, votes, **{"label": True, "probability": True} | options)


def some_model(m, classes=2, seed=0):
    random = np.random.default_rng([seed, m, classes])
    return Model(
        random.dirichlet(np.full(classes, 5.0)), random.dirichlet(np.ones(classes), (m, classes))
    )


def some_codes(items, m, classes=2, missing=0.2, seed=0):
    random = np.random.default_rng([seed, m, classes])
    codes = random.integers(0, classes, (items, m)).astype(np.int8)
    codes[random.random(codes.shape) < missing] = -1
    return codes


# --- the rules ----------------------------------------------------------------------------------


def test_majority_counts_votes():
    found = answered(majority_rule(5), PATTERNS).labels
    assert found.tolist() == [naive.majority(row) for row in PATTERNS]


def test_sml_is_the_sign_of_the_votes_weighted_by_v():
    found = answered(spectral_rule(VECTOR), PATTERNS).labels
    assert found.tolist() == [naive.sml(row, VECTOR) for row in PATTERNS]


def test_maximum_likelihood_is_the_sign_of_alpha_and_beta():
    scores = [naive.maximum_likelihood_score(row, PSI, ETA) for row in PATTERNS]
    assert scores[0] == 0  # the item without votes is a tie
    found = answered(likelihood_rule(MODEL), PATTERNS).labels
    assert found.tolist() == [int(score >= 0) for score in scores]
    rule = likelihood_rule(MODEL)
    both = rule.scores(Block(PATTERNS, np.ones(len(PATTERNS)), 2))
    assert both[:, 1] - both[:, 0] == pytest.approx(0.5 * np.array(scores), abs=1e-13)


def test_posterior_is_bayes_rule_and_labels_the_more_probable_class():
    wanted = [naive.positive_probability(row, PSI, ETA, IMBALANCE) for row in PATTERNS]
    found = answered(posterior_rule(MODEL), PATTERNS)
    assert found.probabilities == pytest.approx(wanted, abs=1e-14)
    assert found.labels.tolist() == [int(p >= 0.5) for p in wanted]
    differ = answered(likelihood_rule(MODEL), PATTERNS).labels != found.labels
    assert differ.any()  # else the prior would not show


def test_the_oracle_is_the_likelihood_rule_with_the_true_rates_and_beats_the_others():
    psi, eta = simulate.rates(9, 0.5, 0.95, seed=4)
    drawn = simulate.votes(20000, sensitivity=psi, specificity=eta, prevalence=0.5, seed=5)
    oracle = likelihood_rule(Model.binary(0.0, psi, eta))
    rules = [oracle, spectral_rule(psi + eta - 1), majority_rule(9)]
    accuracy = [(answered(rule, drawn.votes).labels == drawn.truth).mean() for rule in rules]
    assert accuracy[0] > accuracy[1] > accuracy[2]


@pytest.mark.parametrize("classes", [3, 5])
def test_posterior_of_more_classes_is_bayes_rule(classes):
    model, codes = some_model(4, classes), some_codes(300, 4, classes)
    joint = np.array(
        [naive.joint(row, model.class_probabilities, model.confusion) for row in codes.tolist()]
    )
    found = answered(posterior_rule(model), codes, classes)
    assert found.probabilities == pytest.approx(joint / joint.sum(axis=1, keepdims=True), abs=1e-13)
    assert np.array_equal(found.labels, joint.argmax(axis=1))


def test_tempering_flattens_the_log_odds_within_their_limits():
    log_odds = np.array(
        [
            np.log(p / (1 - p))
            for p in (naive.positive_probability(row, PSI, ETA, IMBALANCE) for row in PATTERNS)
        ]
    )
    assert np.abs(log_odds).max() > 2.0
    found = answered(tempered_rule(MODEL, 0.4, -0.1, 2.0), PATTERNS).probabilities
    wanted = 1 / (1 + np.exp(-(0.4 * np.clip(log_odds, -2.0, 2.0) - 0.1)))
    assert found == pytest.approx(wanted, abs=1e-14)


# --- ties and items without votes ---------------------------------------------------------------


def test_ties_go_to_the_last_class_in_whatever_order_they_were_added_up():
    codes = np.array([[0, 1, 0, 1], [1, 0, -1, -1], [1, 1, 0, 0]], dtype=np.int8)
    assert answered(majority_rule(4), codes).labels.tolist() == [1, 1, 1]
    vector = np.array([0.1, 0.2, 0.3])  # 0.1 + 0.2 - 0.3 is not zero in floating point
    codes = np.array([[1, 1, 0], [0, 0, 1]], dtype=np.int8)
    for order in ([0, 1, 2], [2, 0, 1], [2, 1, 0]):
        found = answered(spectral_rule(vector[order]), codes[:, order])
        assert found.labels.tolist() == [1, 1]
    even = Model.binary(0.0, np.full(4, 0.8), np.full(4, 0.8))
    assert answered(posterior_rule(even), np.array([[0, 1, 0, 1]])).labels.tolist() == [1]
    assert winners(
        np.array([[0.3, 0.3, 0.2], [0.1, 0.5, 0.5 - 1e-12], [0.6, 0.5, 0.1]])
    ).tolist() == [
        1,
        2,
        0,
    ]


@pytest.mark.parametrize("m", [3, 30])
def test_an_item_without_votes_gets_the_prior_and_is_counted(m):
    psi = np.full(m, 0.8)
    codes = np.full((4, m), -1, dtype=np.int8)
    codes[1, 1] = 0
    for imbalance in (-0.2, 0.2):
        found = answered(posterior_rule(Model.binary(imbalance, psi, psi)), codes)
        assert found.unvoted == 3
        assert found.labels[0] == int(imbalance > 0)
        assert found.probabilities[[0, 2, 3]] == pytest.approx((1 + imbalance) / 2, abs=1e-15)
    found = answered(posterior_rule(Model.binary(0.2, psi, psi)), np.abs(codes))
    assert found.unvoted == 0


# --- look-up, product, stretches, layouts -------------------------------------------------------


@pytest.mark.parametrize("layout", [np.ascontiguousarray, np.asfortranarray])
@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize(
    ("m", "classes"), [(3, 2), (5, 2), (10, 2), (11, 2), (20, 2), (21, 2), (70, 2), (5, 3), (6, 4)]
)
def test_look_up_and_product_give_the_same_answers(m, classes, missing, layout, monkeypatch):
    codes = some_codes(3000, m, classes, missing)
    rule = posterior_rule(some_model(m, classes))
    scores = naive.score(codes[:200], rule.weights) + rule.intercept
    found = answered(rule, layout(codes), classes)
    shares = probabilities(scores)
    wanted = shares[:, 1] if classes == 2 else shares
    assert found.probabilities[:200] == pytest.approx(wanted, abs=1e-12)
    assert np.array_equal(found.labels[:200], scores.argmax(axis=1))
    monkeypatch.setattr(_consensus, "TABLE_BITS", 0)
    multiplied = answered(rule, layout(codes), classes)
    assert multiplied.probabilities == pytest.approx(found.probabilities, abs=1e-14)
    assert np.array_equal(multiplied.labels, found.labels)
    assert multiplied.unvoted == found.unvoted


@pytest.mark.parametrize("m", [4, 12, 30])
def test_stretches_are_answered_in_the_order_of_the_items(m, monkeypatch):
    codes = some_codes(64 * 6 + 1, m)
    codes[64:192] = np.abs(codes[64:192])
    rule = posterior_rule(some_model(m))
    whole = answered(rule, codes)
    monkeypatch.setattr(_patterns, "CELLS", 1)
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    votes = read_votes(codes, classes=(0, 1), missing=-1)
    assert each_item(votes, rule.scores) == pytest.approx(
        naive.score(codes, rule.weights) + rule.intercept, abs=1e-12
    )
    parts = answered(rule, codes)
    assert np.array_equal(parts.labels, whole.labels)
    assert parts.probabilities == pytest.approx(whole.probabilities, abs=1e-15)
    assert parts.unvoted == whole.unvoted


def test_only_what_is_asked_for_is_answered():
    rule, codes = posterior_rule(MODEL), some_codes(50, 5)
    assert answered(rule, codes, probability=False).probabilities is None
    assert answered(rule, codes, label=False).labels is None


@pytest.mark.parametrize("m", [5, 40])
def test_sparse_votes_get_the_answers_of_dense_ones(m):
    codes = some_codes(400, m, missing=0.8)
    names = tuple(f"c{i}" for i in range(m))
    sparse = Votes(
        names, (0, 1), (0, 1), csr_array(codes + np.int8(1)), (-1,), 400, lambda *_: None
    )
    grouped = Together((0, 3), np.random.default_rng(0).normal(size=(9, 2)))
    plain = posterior_rule(some_model(m))
    for rule in (plain, Rule(plain.intercept, plain.weights, (-3.0, 2.0), (grouped,))):
        one = answered(rule, codes)
        other = answer(rule, sparse, label=True, probability=True)
        assert np.array_equal(one.labels, other.labels)
        assert other.probabilities == pytest.approx(one.probabilities, abs=1e-13)
        assert other.unvoted == one.unvoted
    wanted = naive.score(codes, plain.weights) + plain.intercept
    assert each_item(sparse, plain.scores) == pytest.approx(wanted, abs=1e-12)


def test_answers_come_in_the_callers_own_labels():
    votes = read_votes(np.array([["nay", "nay", "yea"], ["yea", "yea", "nay"]]))
    found = answer(majority_rule(3), votes).labels
    assert found.tolist() == ["nay", "yea"]
    votes = read_votes(np.array([[-1, -1, 1], [1, 1, -1]], dtype=np.int8))
    found = answer(majority_rule(3), votes).labels
    assert found.tolist() == [-1, 1]
    assert found.dtype == np.int8


# --- classifiers weighed together ---------------------------------------------------------------


def grouped_rule():
    random = np.random.default_rng(7)
    base = posterior_rule(MODEL)
    weights = base.weights.copy()
    weights[[1, 4, 2]] = 0.0
    groups = (
        Together((4, 1), random.normal(size=(9, 2))),
        Together((2,), random.normal(size=(3, 2))),
    )
    return Rule(base.intercept, weights, None, groups)


def grouped_scores(rule, row):
    """Scores of one pattern, each group looked up by its members' joint vote."""
    scores = rule.intercept + naive.score([row], rule.weights)[0]
    for group in rule.together:
        joint = [row[member] for member in group.members]
        scores = scores + group.table[sum((code + 1) * 3**i for i, code in enumerate(joint))]
    return scores


def test_a_group_adds_the_score_of_its_joint_vote():
    rule = grouped_rule()
    wanted = probabilities(np.array([grouped_scores(rule, row) for row in PATTERNS.tolist()]))
    assert answered(rule, PATTERNS).probabilities == pytest.approx(wanted[:, 1], abs=1e-14)


def test_a_rule_of_other_columns_knows_its_classifiers_again():
    rule = grouped_rule()
    whole = answered(rule, PATTERNS).probabilities
    order = [3, 1, 0, 4, 2]
    assert answered(rule.of(order), PATTERNS[:, order]).probabilities == pytest.approx(whole)
    few = [3, 4, 2]  # 0 and 1 are not at hand: as if they had not voted
    silent = PATTERNS.copy()
    silent[:, [0, 1]] = -1
    found = answered(rule.of(few), PATTERNS[:, few]).probabilities
    assert found == pytest.approx(answered(rule, silent).probabilities)


# --- SQL ----------------------------------------------------------------------------------------

NAMES = ("plain", 'says "no"', "two words", "it's", "SELECT")


def in_duckdb(expression, frame):
    with duckdb.connect() as engine:
        return engine.from_arrow(frame.to_arrow()).project(f"{expression} AS p").fetchnumpy()["p"]


def columns(codes, labels):
    values = [*labels, None]
    return pl.DataFrame(
        {name: [values[code] for code in codes[:, i]] for i, name in enumerate(NAMES)}
    )


RULES = {
    "posterior": posterior_rule(MODEL),
    "likelihood": likelihood_rule(MODEL),
    "certain rates": posterior_rule(
        Model.binary(0.1, np.array([1.0, 0.5, 1.0, 0, 1]), np.array([1.0, 0.9, 0, 1, 1]))
    ),
    "tempered": tempered_rule(MODEL, 0.4, -0.1, 2.0),
    "groups": grouped_rule(),
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    "labels",
    [
        (0, 1),
        (-1, 1),
        (False, True),
        (0.5, 1e300),
        ("no", "yes"),
        ("it isn't", 'it "is"'),
        ("", " "),
        ("x\\", "ß − ✓"),
    ],
)
def test_sql_gives_the_probability(labels, rule):
    frame = columns(PATTERNS, labels)
    found = in_duckdb(sql(RULES[rule], NAMES, labels), frame)
    wanted = answered(RULES[rule], PATTERNS).probabilities
    assert np.abs(found - wanted).max() < 1e-12


def test_sql_takes_what_is_no_label_for_a_missing_vote():
    codes = some_codes(200, 5, missing=0.3)
    frame = columns(codes, ("no", "yes")).with_columns(pl.all().fill_null("don't know"))
    found = in_duckdb(sql(RULES["posterior"], NAMES, ("no", "yes")), frame)
    assert np.abs(found - answered(RULES["posterior"], codes).probabilities).max() < 1e-12


def test_sql_of_many_classifiers_neither_overflows_nor_loses_digits():
    m = 200
    random = np.random.default_rng(3)
    codes = some_codes(300, m, missing=0.1)
    for power in (1, 12):
        rates = random.random((2, m)) ** power
        rule = posterior_rule(Model.binary(-0.4, *rates))
        names = [f"c{i}" for i in range(m)]
        frame = pl.DataFrame({name: codes[:, i] for i, name in enumerate(names)})
        found = in_duckdb(sql(rule, names, (0, 1)), frame)
        assert np.abs(found - answered(rule, codes).probabilities).max() < 1e-12


def test_an_estimates_sql_is_its_probability():
    psi, eta = np.linspace(0.6, 0.9, 5), np.linspace(0.8, 0.7, 5)
    drawn = simulate.votes(3000, sensitivity=psi, specificity=eta, missing=0.2, seed=8)
    frame = columns(drawn.votes, ("ham", "spam"))
    for method in ("tensor", "likelihood", "map"):
        estimate = lf.estimate(frame, method=method, positive="ham")
        found = in_duckdb(estimate.sql(), frame)
        wanted = estimate.probability(frame)["probability"].to_numpy()
        assert np.abs(found - wanted).max() < 1e-12
