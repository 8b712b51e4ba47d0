"""Every reason of a verdict, brought about at the front door."""

import re
from collections.abc import Callable

import numpy as np
import pytest

import labelfree as lf


def drawn(items=5000, classifiers=8, **options):
    return lf.simulate.votes(items, classifiers=classifiers, **{"seed": 4, **options})


def hard_items(items=4000, classifiers=8, seed=3):
    """Votes that share errors on hard items, and the true classes."""
    random = np.random.default_rng(seed)
    truth = random.random(items) < 0.6
    trait = np.where(truth, 1.0, -1.0) + 1.5 * random.normal(size=items)
    votes = random.random((items, classifiers)) < 1 / (1 + np.exp(-trait[:, None]))
    return votes.astype(np.int8), truth.astype(int)


def guessing():
    return lf.estimate(np.random.default_rng(0).integers(0, 2, (2000, 6)))


def two_that_agree():
    votes = np.random.default_rng(0).integers(0, 2, (2000, 6))
    votes[:1500, 1] = votes[:1500, 0]
    return lf.estimate(votes)


def hardly_agreeing():
    rates = np.full(5, 0.58)
    return lf.estimate(
        lf.simulate.votes(600, sensitivity=rates, specificity=rates, seed=7).votes,
    )


def thin_majority():
    rates = np.array([0.9, 0.85, 0.8, 0.2, 0.15])
    return lf.estimate(lf.simulate.votes(5000, sensitivity=rates, specificity=rates, seed=1).votes)


def boundary():
    rates = np.full(6, 0.8)
    votes = lf.simulate.votes(
        20_000, sensitivity=rates, specificity=rates, prevalence=0.995, seed=3
    ).votes
    return lf.estimate(votes)


def ignored():
    return lf.estimate(drawn().votes, dependence="ignore")


def three():
    return lf.estimate(drawn(classifiers=3).votes)


def alarming():
    return lf.estimate(drawn(copies=[(2, 6)], copying=0.3).votes)


def copies():
    return lf.estimate(drawn(copies=[(2, 6)], copying=1.0).votes)


def shared():
    return lf.estimate(hard_items()[0])


def with_gold(number):
    votes, truth = hard_items()
    chosen = np.random.default_rng(0).choice(len(truth), number, replace=False)
    return lf.estimate(votes, gold={int(place): int(truth[place]) for place in chosen})


def turned():
    rates = np.array([0.9, 0.2, 0.3, 0.25])
    votes = lf.simulate.votes(4000, sensitivity=rates, specificity=rates, seed=1)
    return lf.estimate(votes.votes, gold={place: int(votes.truth[place]) for place in range(60)})


def undetermined():
    votes = drawn(items=200, classifiers=5).votes.astype(float)
    votes[:, 4] = np.nan
    return lf.estimate(votes, prior=0, classes=(0, 1))


def few_items():
    return lf.estimate(drawn(items=150, classifiers=5).votes)


def overruling():
    """Nearly all items are positive, and weak classifiers cannot outvote that."""
    rates = np.full(3, 0.7)
    return lf.estimate(
        lf.simulate.votes(5000, sensitivity=rates, specificity=rates, prevalence=0.97).votes,
        prevalence=0.97,
    )


CASES: dict[str, Callable[[], lf.Estimate]] = {
    "agree no more than guessing": guessing,
    "Only classifier_1 and classifier_2 agree more than guessing": two_that_agree,
    "agree hardly more than guessing": hardly_agreeing,
    "rests on a thin majority: 3 of 5": thin_majority,
    "ran into the end of its range": boundary,
    "was not looked at": ignored,
    "leave nothing to test with": three,
    "share errors beyond what their quality explains: classifier_3 and classifier_7": alarming,
    "copy one another (classifier_3 with classifier_7)": copies,
    "the intervals show sampling error only": shared,
    "50 gold labels calibrate the rates and their intervals": lambda: with_gold(50),
    "12 gold labels calibrate roughly only": lambda: with_gold(12),
    "independent ones would": shared,
    "turned the direction round": turned,
    "not determined by these votes at all": undetermined,
    "There are too few items": few_items,
    "contradicts a unanimous vote": overruling,
}
FATAL = ("agree no more than guessing", "Only classifier_1")


@pytest.mark.parametrize("words", CASES)
def test_every_reason_is_given_where_it_holds(words):
    verdict = CASES[words]().verdict
    assert verdict.level == ("unidentified" if words.startswith(FATAL) else "caution")
    assert any(words in reason for reason in verdict.reasons), verdict
    assert verdict.advice
    for sentence in (*verdict.reasons, *verdict.advice):
        assert re.fullmatch(r"[A-Z0-9].*[.]", sentence)
        assert not re.search(r"\bnan\b", sentence.lower())


def test_nothing_is_said_against_independent_classifiers_with_items_enough():
    assert lf.estimate(drawn().votes).verdict == lf.Verdict(
        "sound", ("Nothing in the votes speaks against the model.",)
    )


def test_four_classifiers_or_fewer_are_not_named():
    rates = np.array([0.8, 0.75, 0.7, 0.85])
    votes = lf.simulate.votes(
        20_000, sensitivity=rates, specificity=rates[::-1], copies=[(0, 1)], copying=0.5, seed=2
    ).votes
    estimate = lf.estimate(votes)
    if not estimate.alarm.raised:
        pytest.fail("the alarm of a half-copied pair among four was not raised")
    assert any("four or fewer cannot show" in reason for reason in estimate.verdict.reasons)
    assert estimate.groups == ()
    assert not any("classifier_" in reason for reason in estimate.verdict.reasons)


def test_a_search_that_is_cut_short_is_said(monkeypatch):
    import labelfree._choice as choice

    fitted = choice.fit_trait

    def cut(*given):
        from dataclasses import replace

        return replace(fitted(*given), converged=False)

    monkeypatch.setattr(choice, "fit_trait", cut)
    estimate = lf.estimate(hard_items()[0])
    assert not estimate.converged
    assert any("did not settle" in reason for reason in estimate.verdict.reasons)
