"""Two estimates side by side: differences, their errors, and what is more than chance."""

import numpy as np
import pytest
from scipy.stats import false_discovery_control, norm

import labelfree as lf
from labelfree._comparison import corrected, difference

from .sentences import refused


def estimated(sensitivity, *, seed, items=3000, names=None):
    drawn = lf.simulate.votes(
        items, sensitivity=sensitivity, specificity=[0.8] * len(sensitivity), seed=seed
    )
    return lf.estimate(drawn.votes, classifiers=names)


def test_a_difference_has_the_error_and_p_value_of_a_normal_score():
    change, error, p = difference([0.5, 0.8], [0.03, 0.02], [0.6, 0.8], [0.04, 0.02])
    np.testing.assert_allclose(change, [0.1, 0.0])
    np.testing.assert_allclose(error, [0.05, np.hypot(0.02, 0.02)])
    np.testing.assert_allclose(p, [2 * norm.sf(2.0), 1.0])


def test_without_error_a_difference_is_certain_and_none_is_none():
    _, _, p = difference([0.5, 0.5], [0.0, 0.0], [0.6, 0.5], [0.0, 0.0])
    assert p.tolist() == [0.0, 1.0]


def naive_holm(p_values):
    """Step down: the k-th smallest times how many are left, never below an earlier one."""
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    result, highest = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(order):
        highest = max(highest, (len(p_values) - rank) * p_values[place])
        result[place] = min(1.0, highest)
    return result


def test_the_correction_is_holms():
    random = np.random.default_rng(0)
    for size in (1, 2, 7, 40):
        p_values = random.uniform(size=size) ** 3
        np.testing.assert_allclose(corrected(p_values), naive_holm(p_values.tolist()))
        assert (corrected(p_values) >= false_discovery_control(p_values) - 1e-12).all()
    assert corrected([]).size == 0


def test_a_change_of_one_classifier_is_found_and_no_other():
    before = estimated([0.8, 0.7, 0.9, 0.7, 0.8], seed=1)
    now = estimated([0.8, 0.7, 0.7, 0.7, 0.8], seed=3)
    compared = lf.compare(before, now)
    found = {(each.classifier, each.quantity) for each in compared.beyond_chance}
    assert found == {("classifier_3", "sensitivity"), ("classifier_3", "balanced_accuracy")}
    assert len(compared.changes) == 3 * 5 + 1
    for each in compared.changes[:-1]:
        place = now.classifiers.index(each.classifier)
        assert each.now == getattr(now, each.quantity)[place]
        assert each.before == getattr(before, each.quantity)[place]
        assert each.difference == pytest.approx(each.now - each.before)
    assert compared.changes[-1].quantity == "prevalence"
    assert compared.changes[-1].now == now.prevalence


def test_the_standard_error_is_that_of_the_interval():
    found = estimated([0.8, 0.7, 0.9, 0.7, 0.8], seed=1, items=20_000)
    for quantity in ("sensitivity", "specificity", "balanced_accuracy", "prevalence"):
        half = np.diff(found.interval(quantity), axis=-1)[..., 0] / 2
        np.testing.assert_allclose(
            found.standard_error(quantity), half / norm.ppf(0.975), rtol=0.03
        )
    refused(lambda: found.standard_error("imbalance"), "imbalance")


def test_nothing_changed_is_seldom_taken_for_a_change():
    wrong = 0
    for seed in range(30):
        pair = [estimated([0.8, 0.7, 0.9, 0.7, 0.8], seed=2 * seed + each) for each in (0, 1)]
        wrong += bool(lf.compare(*pair).beyond_chance)
    assert wrong <= 5  # 5 % of 30, and what chance adds: above 5 in one of a thousand runs


def test_an_estimate_did_not_change_from_itself():
    found = estimated([0.8, 0.7, 0.9, 0.7], seed=1)
    compared = lf.compare(found, found)
    assert all(each.difference == 0 and each.p_value == 1 for each in compared.changes)
    assert "no figure changed" in str(compared)


def test_classifiers_that_came_and_went_and_the_verdict():
    before = estimated([0.8, 0.7, 0.9, 0.7], seed=1, names=list("abcd"))
    now = estimated([0.8, 0.7, 0.9, 0.7], seed=2, names=list("ebca"))
    compared = lf.compare(before, now)
    assert (compared.came, compared.went) == (("e",), ("d",))
    assert [each.classifier for each in compared.changes[::3]] == ["b", "c", "a", None]
    coins = lf.estimate(np.random.default_rng(0).integers(0, 2, (500, 4)), classifiers=list("abcd"))
    lost = lf.compare(before, coins)
    assert lost.verdict == (before.verdict.level, "unidentified")
    assert lost.dependence == ("independent", None)
    assert not lost.same_model
    assert all(each.now is each.difference is each.p_value is None for each in lost.changes)
    assert lf.compare(coins, coins).beyond_chance == ()


def test_other_classes_are_refused():
    votes = lf.simulate.votes(500, classifiers=4).votes
    one, other = lf.estimate(votes), lf.estimate(votes, positive=0)
    refused(lambda: lf.compare(one, other), "same classes", "1, 0")
    assert lf.compare(one, lf.estimate(votes, classes=[0, 1])).came == ()


def test_a_comparison_of_saved_estimates_is_the_same(tmp_path):
    before, now = (estimated([0.8, 0.7, 0.9, 0.7], seed=seed) for seed in (1, 2))
    before.save(tmp_path / "a.json")
    now.save(tmp_path / "b.json")
    kept = lf.compare(lf.load(tmp_path / "a.json"), lf.load(tmp_path / "b.json"))
    assert kept == lf.compare(before, now)
