"""What is promised of the cost of intervals, alarm, verdict and models; `benchmarks/cost.py` prints it."""

import sys
from pathlib import Path

import pytest
from common import FULL

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import cost

pytestmark = pytest.mark.promise


def test_intervals_alarm_and_verdict_at_most_double_the_time():
    assert cost.share_of_checks(10**6, repeats=15) <= 2


@pytest.mark.parametrize("items", [10**4, 10**6])
@pytest.mark.parametrize(("name", "votes"), [("groups", cost.copied), ("difficulty", cost.hard)])
def test_models_of_ten_classifiers_take_two_seconds_whatever_the_items(items, name, votes):
    assert cost.of_models(votes(items, 10), name, repeats=3) <= 2


@pytest.mark.parametrize(("name", "votes"), [("groups", cost.copied), ("difficulty", cost.hard)])
def test_models_of_fifty_classifiers_take_a_minute(name, votes):
    assert cost.of_models(votes(10**5 if FULL else 2000, 50), name, repeats=1) <= 60
