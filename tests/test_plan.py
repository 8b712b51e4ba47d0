import numpy as np
import pytest

import labelfree as lf


def test_the_planned_number_of_items_gives_the_wanted_width():
    planned = lf.plan(8, sensitivity=0.8, specificity=0.7, prevalence=0.4, width=0.06)
    drawn = lf.simulate.votes(
        planned.items, sensitivity=[0.8] * 8, specificity=[0.7] * 8, prevalence=0.4, seed=1
    )
    estimate = lf.estimate(drawn.votes)
    widths = [
        np.diff(estimate.interval(name), axis=-1).mean() for name in ("sensitivity", "specificity")
    ]
    assert max(widths) == pytest.approx(0.06, rel=0.1)


def test_sampled_information_is_near_the_exact_one():
    exact = lf.plan(14, sensitivity=0.7, specificity=0.75)
    sampled = lf.plan(15, sensitivity=0.7, specificity=0.75)
    assert sampled.items < exact.items
    assert sampled.items > 0.85 * exact.items


def test_an_unlabelled_item_is_worth_what_the_information_says():
    # .13 labelled items at m = 10, rates of .65 and b = .3 (measured for the design of the library).
    assert lf.plan(10, sensitivity=0.65, specificity=0.65, prevalence=0.65).worth == pytest.approx(
        0.13, abs=0.01
    )


def test_missing_votes_and_narrow_intervals_take_more():
    base = lf.plan(6)
    assert lf.plan(6, missing=0.3).items > base.items
    assert lf.plan(6, width=0.05).items == pytest.approx(4 * base.items, abs=4)
    assert lf.plan(6, level=0.99).items > base.items
    assert str(base.items) in str(base).replace(",", "")


@pytest.mark.parametrize(
    "options",
    [
        {"classifiers": 2},
        {"classifiers": 5, "sensitivity": 1.0},
        {"classifiers": 5, "sensitivity": [0.8, 0.7]},
        {"classifiers": 5, "width": 0},
        {"classifiers": 5, "level": 1},
        {"classifiers": 5, "prevalence": 0},
        {"classifiers": 5, "missing": 1},
        {"classifiers": 5.5},
        {"classifiers": "5"},
        {"classifiers": True},
        {"classifiers": 10**6},
        {"classifiers": 5, "prevalence": "high"},
        {"classifiers": 5, "sensitivity": "high"},
        {"classifiers": 5, "width": None},
        {"classifiers": 5, "missing": "some"},
        {"classifiers": 5, "level": float("nan")},
    ],
)
def test_bad_plans_get_a_sentence(options):
    with pytest.raises(lf.OptionsError):
        lf.plan(**options)


def test_guessing_classifiers_cannot_be_planned_for():
    with pytest.raises(lf.NotIdentifiedError):
        lf.plan(5, sensitivity=0.5, specificity=0.5)
