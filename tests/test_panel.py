"""Panels against every panel there is, exact probabilities and drawn votes; items by what a vote tells."""

from itertools import combinations, product

import numpy as np
import pytest

import labelfree as lf
from labelfree import _panel
from labelfree._consensus import posterior_rule
from labelfree._latent_class import Model
from labelfree._next_items import information_of_a_vote
from labelfree._panel import best_panel

RATES = {
    "sensitivity": [0.9, 0.7, 0.6, 0.8, 0.75, 0.65],
    "specificity": [0.6, 0.8, 0.9, 0.7, 0.72, 0.65],
}


def exact_accuracy(members):
    """Balanced accuracy of the ML rule, pattern by pattern."""
    psi, eta = (np.asarray(RATES[name])[list(members)] for name in ("sensitivity", "specificity"))
    total = 0.0
    for pattern in product((0, 1), repeat=len(members)):
        votes = np.array(pattern)
        positive = np.prod(np.where(votes == 1, psi, 1 - psi))
        negative = np.prod(np.where(votes == 0, eta, 1 - eta))
        total += max(positive, negative) / 2
    return total


@pytest.mark.parametrize("size", [1, 2, 3, 5, 6])
def test_the_panel_is_the_best_of_all_by_exact_probabilities(size):
    drawn = lf.simulate.exact(**RATES, prevalence=0.3)
    model = Model.binary(-0.4, np.array(RATES["sensitivity"]), np.array(RATES["specificity"]))
    found = best_panel(drawn, posterior_rule(model), model, size)
    expected = {members: exact_accuracy(members) for members in combinations(range(6), size)}
    best = max(expected.values())
    assert found.balanced_accuracy == pytest.approx(best, abs=1e-10)
    own = tuple(int(name.removeprefix("classifier_")) - 1 for name in found.classifiers)
    assert expected[own] == pytest.approx(best, abs=1e-12)
    assert found.of_all == pytest.approx(exact_accuracy(range(6)), abs=1e-10)
    assert found.of_best == pytest.approx(max(exact_accuracy([i]) for i in range(6)), abs=1e-10)


def test_the_search_finds_a_panel_as_good_as_trying_all_does(monkeypatch):
    drawn = lf.simulate.exact(**RATES, prevalence=0.3)
    model = Model.binary(-0.4, np.array(RATES["sensitivity"]), np.array(RATES["specificity"]))

    def accuracies():
        found = [best_panel(drawn, posterior_rule(model), model, size) for size in (2, 3, 4)]
        return [each.balanced_accuracy for each in found]

    tried = accuracies()
    monkeypatch.setattr(_panel, "MOST_TRIED", 0)
    assert accuracies() == tried


def test_missing_votes_are_filled_in_by_the_model():
    whole = lf.simulate.votes(20_000, **RATES, prevalence=0.3, seed=2)
    torn = lf.simulate.votes(20_000, **RATES, prevalence=0.3, missing=0.5, seed=2)
    model = Model.binary(-0.4, np.array(RATES["sensitivity"]), np.array(RATES["specificity"]))
    found = [
        best_panel(
            lf.tally(each.votes, missing=-1, classes=[0, 1]), posterior_rule(model), model, 3
        )
        for each in (whole, torn)
    ]
    best = max(exact_accuracy(members) for members in combinations(range(6), 3))
    assert found[1].balanced_accuracy == pytest.approx(best, abs=0.015)
    assert found[1].balanced_accuracy == pytest.approx(found[0].balanced_accuracy, abs=0.015)


def naive_information(shares, confusion):
    total = 0.0
    for true, share in enumerate(shares):
        for voted in range(confusion.shape[1]):
            joint = share * confusion[true, voted]
            if joint > 0:
                total += joint * np.log2(joint / share / (shares @ confusion[:, voted]))
    return total


def test_the_information_of_a_vote_is_that_of_a_plain_loop():
    draw = np.random.default_rng(0)
    confusion = draw.dirichlet(np.ones(4), size=4)
    shares = np.concatenate([draw.dirichlet(np.ones(4), size=20), np.eye(4)])
    expected = [naive_information(row, confusion) for row in shares]
    assert information_of_a_vote(shares, confusion) == pytest.approx(expected, abs=1e-12)
    assert (information_of_a_vote(np.eye(4), confusion) == 0).all()
