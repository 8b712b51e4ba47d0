"""Requirements as text: read, refused in a sentence, and held against what was found."""

import itertools

import numpy as np
import pytest

import labelfree as lf
from labelfree import _requirements
from labelfree._requirements import Figures, check, parse

from .sentences import refused


def row(name, sensitivity=0.8, low=0.75, high=0.85, votes=100):
    ends = {"sensitivity_low": low, "sensitivity_high": high}
    return {"classifier": name, "votes": votes, "sensitivity": sensitivity, **ends, "note": ""}


FIGURES = Figures(
    [row("a"), row("b", 0.6, 0.5, 0.7), row("gpt 4.1", 0.9, 0.86, 0.94), row("all", 0.3, 0.2, 0.4)],
    {
        "prevalence": 0.3,
        "prevalence_low": 0.25,
        "prevalence_high": 0.35,
        "effective_number": 2.5,
        "items": 100,
    },
    "caution",
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.sensitivity >= 0.8", ("one", "a", "sensitivity", ">=", 0.8)),
        ("  a . sensitivity>=80% ", ("one", "a", "sensitivity", ">=", 0.8)),
        ("gpt 4.1.sensitivity < .9", ("one", "gpt 4.1", "sensitivity", "<", 0.9)),
        ("x>=y.sensitivity > .5", ("one", "x>=y", "sensitivity", ">", 0.5)),
        ("O'Brien.sensitivity > .5", ("one", "O'Brien", "sensitivity", ">", 0.5)),
        ("'all'.sensitivity > .5", ("one", "all", "sensitivity", ">", 0.5)),
        ('" a ".sensitivity > .5', ("one", " a ", "sensitivity", ">", 0.5)),
        ("分類器.balanced accuracy <= 1", ("one", "分類器", "balanced_accuracy", "<=", 1.0)),
        ("all.specificity > 60 %", ("all", None, "specificity", ">", 0.6)),
        ("any.balanced-accuracy > 0", ("any", None, "balanced_accuracy", ">", 0.0)),
        ("prevalence<=0.3", ("whole", None, "prevalence", "<=", 0.3)),
        ("effective number >= 3", ("whole", None, "effective_number", ">=", 3.0)),
        ("items >= 1e3", ("whole", None, "items", ">=", 1000.0)),
        ("verdict != unidentified", ("whole", None, "verdict", "!=", "unidentified")),
    ],
)
def test_a_requirement_is_read(text, expected):
    found = parse(text)
    assert (found.scope, found.classifier, found.quantity, found.sign, found.bound) == expected
    assert found.text == text


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "must hold a figure"),
        ("a.sensitivity", "must hold a figure"),
        ("a.sensitivity = 0.8", "must hold a figure"),
        ("a.sensitivity => 0.8", "must hold a figure"),
        (">= 0.8", "must hold a figure"),
        (17, "must hold a figure"),
        (".sensitivity >= 0.8", "must name a classifier"),
        ("a. >= 0.8", "must name a classifier"),
        ("a.sensitivity >=", "must end in a number"),
        ("a.sensitivity >= high", "must end in a number"),
        ("a.sensitivity >= nan", "must end in a number"),
        ("a.sensitivity >= 80", "between 0 and 1"),
        ("a.sensitivity >= -0.1", "between 0 and 1"),
        ("a.sensitivity == 0.8", "only the verdict"),
        ("verdict == good", "sound"),
        ("verdict >= 0.5", "sound"),
        ("z.sensitivity >= 0.8", "names the classifier 'z'"),
        ("a.accuracy >= 0.8", "asks for 'accuracy'"),
        ("all.accuracy >= 0.8", "asks for 'accuracy'"),
        ("a.sensitivity_low >= 0.8", "asks for 'sensitivity_low'"),
        ("a.note >= 0.8", "asks for 'note'"),
        ("accuracy >= 0.8", "asks for 'accuracy'"),
        ("all.verdict == sound", "asks for 'verdict'"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(text, word):
    refused(lambda: check([text], FIGURES), word, repr(text), error=lf.LabelfreeError)


def test_no_requirement_and_an_unknown_way_are_refused():
    refused(lambda: check([], FIGURES), "at least one requirement")
    refused(lambda: check("items > 1", FIGURES, by="median"), "by=", "'median'")


@pytest.mark.parametrize(
    ("text", "by_interval", "by_estimate"),
    [
        ("a.sensitivity >= 0.78", False, True),  # .75 to .85 around .8
        ("a.sensitivity >= 0.75", True, True),
        ("a.sensitivity > 0.75", False, True),
        ("a.sensitivity <= 0.82", False, True),
        ("a.sensitivity <= 0.85", True, True),
        ("a.sensitivity < 0.85", False, True),
        ("'all'.sensitivity <= 0.4", True, True),
        ("all.sensitivity >= 0.2", True, True),
        ("all.sensitivity >= 0.25", False, True),
        ("any.sensitivity >= 0.86", True, True),
        ("any.sensitivity >= 0.88", False, True),
        ("any.sensitivity <= 0.4", True, True),
        ("all.sensitivity <= 0.92", False, True),
        ("prevalence <= 0.32", False, True),
        ("items >= 100", True, True),
        ("effective number >= 3", False, False),
        ("gpt 4.1.votes >= 101", False, False),
        ("verdict != unidentified", True, True),
        ("verdict >= caution", True, True),
        ("verdict > caution", False, False),
        ("verdict == sound", False, False),
    ],
)
def test_the_nearer_end_decides_or_the_estimate(text, by_interval, by_estimate):
    assert check(text, FIGURES).met is by_interval
    assert check(text, FIGURES, by="estimate").met is by_estimate


def naive(scope, sign, bound, by):
    """Hold every classifier against the bound, one by one."""
    signs = {">=": np.greater_equal, ">": np.greater, "<=": np.less_equal, "<": np.less}
    end = {
        "estimate": "sensitivity",
        "interval": f"sensitivity_{'low' if sign[0] == '>' else 'high'}",
    }
    held = [bool(signs[sign](each[end[by]], bound)) for each in FIGURES.rows]
    return all(held) if scope == "all" else any(held)


def test_all_and_any_agree_with_every_one_by_one():
    bounds = np.linspace(0.0, 1.0, 41).round(3)
    for scope, sign, by, bound in itertools.product(
        ("all", "any"), (">=", ">", "<=", "<"), ("interval", "estimate"), bounds
    ):
        found = check(f"{scope}.sensitivity {sign} {bound}", FIGURES, by=by)
        assert found.met is naive(scope, sign, bound, by), (scope, sign, by, bound)


def test_who_decides_is_named():
    (worst,) = check("all.sensitivity >= 0.4", FIGURES).outcomes
    assert (worst.classifier, worst.estimate, worst.low, worst.decides) == ("all", 0.3, 0.2, "low")
    (best,) = check("any.sensitivity >= 0.4", FIGURES).outcomes
    assert best.classifier == "gpt 4.1"


def test_a_number_that_the_votes_do_not_tell_misses_every_requirement():
    nothing = {"sensitivity": None, "sensitivity_low": None, "sensitivity_high": None}
    figures = Figures([row("a") | nothing], FIGURES.whole, "unidentified")
    for text, by in itertools.product(
        [
            "a.sensitivity >= 0",
            "a.sensitivity <= 1",
            "all.sensitivity >= 0",
            "any.sensitivity >= 0",
        ],
        ["interval", "estimate"],
    ):
        assert not check(text, figures, by=by)
        assert "do not tell" in str(check(text, figures, by=by))


def test_an_estimate_without_intervals_meets_by_estimate_only():
    figures = Figures(
        [row("a", low=None, high=None)], FIGURES.whole | {"prevalence_low": None}, "caution"
    )
    assert not check("a.sensitivity >= 0.1", figures)
    assert check("a.sensitivity >= 0.1", figures, by="estimate")


def test_a_check_is_true_where_all_are_met_and_shows_what_was_found():
    both = check(["a.sensitivity >= 0.7", "b.sensitivity >= 0.55"], FIGURES)
    assert not both
    assert [each.met for each in both.outcomes] == [True, False]
    assert "missed  b.sensitivity >= 0.55  (b: 0.600, at least 0.500)" in str(both)
    assert bool(check("a.sensitivity >= 0.7", FIGURES)) is True


def test_an_estimate_is_held_to_its_own_figures():
    drawn = lf.simulate.votes(3000, classifiers=5, prevalence=0.3, seed=1)
    found = lf.estimate(drawn.votes)
    for place, name in enumerate(found.classifiers):
        for quantity in ("sensitivity", "specificity", "balanced_accuracy"):
            low, high = found.interval(quantity)[place]
            for sign, end, inside in ((">=", low, -1e-6), ("<=", high, 1e-6)):
                assert found.check(f"{name}.{quantity} {sign} {end + inside:.9f}")
                assert not found.check(f"{name}.{quantity} {sign} {end - inside:.9f}")
    low, high = found.interval("prevalence")
    assert found.check([f"prevalence > {low - 1e-6:.9f}", f"prevalence < {high + 1e-6:.9f}"])
    assert found.check("items >= 3000")
    assert found.check("effective number >= 5")
    assert found.check(f"verdict == {found.verdict.level}")


def test_coins_meet_no_requirement_on_a_number():
    coins = np.random.default_rng(0).integers(0, 2, (500, 4))
    found = lf.estimate(coins)
    assert not found.check("verdict != unidentified")
    assert not found.check("prevalence >= 0")
    assert not found.check("any.sensitivity >= 0", by="estimate")
    assert not found.check("effective number >= 0")


def test_levels_are_those_of_verdicts():
    from labelfree._verdict import LEVELS

    assert set(_requirements.LEVELS) == set(LEVELS)
