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


# --- from an estimate ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def drawn():
    return lf.simulate.votes(4000, **RATES, prevalence=0.3, missing=0.1, seed=7)


@pytest.fixture(scope="module")
def estimate(drawn):
    return lf.estimate(drawn.votes, missing=-1, classes=[0, 1])


def test_a_loaded_estimate_asks_for_votes(drawn, estimate, tmp_path):
    estimate.save(tmp_path / "e.json")
    loaded = lf.load(tmp_path / "e.json")
    with pytest.raises(lf.OptionsError, match="best"):
        loaded.best(2)
    assert loaded.best(2, drawn.votes) == estimate.best(2)


def test_a_panel_of_some_of_the_classifiers_in_another_order(drawn, estimate):
    names = [f"classifier_{i}" for i in (5, 1, 3)]
    some = estimate.best(2, drawn.votes[:, [4, 0, 2]], classifiers=names)
    assert set(some.classifiers) <= set(names)
    assert some.of_all < estimate.best(2).of_all


def test_copies_are_not_kept_together():
    copied = lf.simulate.votes(
        5000,
        sensitivity=[0.78, 0.78, 0.75, 0.75, 0.75, 0.75],
        specificity=[0.78, 0.78, 0.75, 0.75, 0.75, 0.75],
        copies=[(0, 1)],
        copying=0.95,
        seed=3,
    )
    found = lf.estimate(copied.votes)
    assert found.groups
    assert not {"classifier_1", "classifier_2"} <= set(found.best(3).classifiers)


@pytest.mark.parametrize("size", [0, 7, 1.5, "3", None])
def test_a_size_that_is_none(estimate, size):
    with pytest.raises(lf.OptionsError, match="from 1 to 6"):
        estimate.best(size)


def test_next_items_stand_in_the_order_of_what_a_vote_tells(drawn, estimate):
    rows = estimate.next_items(drawn.votes, 4000)
    assert [set(row) for row in rows[:1]] == [{"item", "votes", "label", "certainty", "gain"}]
    gains = [row["gain"] for row in rows]
    assert gains == sorted(gains, reverse=True)
    assert sorted(row["item"] for row in rows) == list(range(4000))
    probability = estimate.probability(drawn.votes)
    labels = estimate.label(drawn.votes)
    for row in rows[::97]:
        positive = probability[row["item"]]
        assert row["certainty"] == pytest.approx(max(positive, 1 - positive), abs=1e-12)
        assert row["label"] == labels[row["item"]]
        assert row["votes"] == (drawn.votes[row["item"]] >= 0).sum()


def test_next_items_of_a_long_table_have_their_names(drawn, estimate):
    polars = pytest.importorskip("polars")
    items, places = np.nonzero(drawn.votes >= 0)
    long = polars.DataFrame(
        {
            "item": [f"i{item}" for item in items],
            "who": [f"classifier_{place + 1}" for place in places],
            "vote": drawn.votes[items, places],
        }
    )
    found = estimate.next_items(long, 5, item="item", classifier="who", vote="vote", missing=())
    plain = estimate.next_items(drawn.votes, 4000)
    gain = {row["item"]: row["gain"] for row in plain}
    assert len(found) == 5
    for row in found:
        assert row["gain"] == pytest.approx(gain[int(row["item"][1:])], abs=1e-9)


def test_votes_without_signal_have_no_panel_and_no_next_items():
    coins = np.random.default_rng(0).integers(0, 2, (300, 4))
    nothing = lf.estimate(coins)
    with pytest.raises(lf.NotIdentifiedError):
        nothing.best(2)
    with pytest.raises(lf.NotIdentifiedError):
        nothing.next_items(coins, 2)
