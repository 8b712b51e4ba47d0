"""Every reason of a verdict, brought about at the front door."""

import re
from collections.abc import Callable

import numpy as np
import pytest

import labelfree as lf
from labelfree._evidence import alike
from labelfree._moments import moments
from labelfree._products import Blocks
from labelfree._verdict import Findings, look_for_signal


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


def good(items=3000, classifiers=6, **options):
    return lf.simulate.votes(
        items,
        sensitivity=np.full(classifiers, 0.8),
        specificity=np.full(classifiers, 0.75),
        **{"prevalence": 0.3, "seed": 3, **options},
    )


def three_beside_guessing():
    """Two of the three copy each other, and nobody is left to show it."""
    votes = good(classifiers=3, copies=[(0, 1)], copying=0.9).votes
    coins = np.random.default_rng(0).integers(0, 2, (len(votes), 4))
    return lf.estimate(np.column_stack([votes, coins]))


def a_faint_signal():
    return lf.estimate(lf.simulate.votes(20, classifiers=10, seed=3).votes)


def one_beside_constants():
    votes = lf.simulate.votes(2000, classifiers=5, seed=1).votes
    votes[:, :2] = 1
    return lf.estimate(votes)


def two_columns_of_three():
    votes = good().votes
    return lf.estimate(votes[:, [0, 0, 1]])


def one_column():
    return lf.estimate(np.repeat(good().votes[:, :1], 5, axis=1))


def wrong_prevalence():
    return lf.estimate(good().votes, prevalence=0.9)


def wrong_rate():
    return lf.estimate(good().votes, known={"classifier_2": {"sensitivity": 0.99}})


def everything_wrong():
    names = [f"classifier_{i}" for i in range(1, 7)]
    rates = {name: {"sensitivity": 0.8, "specificity": 0.75} for name in names}
    return lf.estimate(good().votes, prevalence=0.7, known=rates)


def random_gold():
    coins = np.random.default_rng(0).integers(0, 2, 100)
    return lf.estimate(good().votes, gold=dict(enumerate(coins.tolist())))


def few_for_the_prevalence():
    """The rates of ten are told by many votes; those of the rare class are what is open."""
    rates = np.array([0.62, 0.65, 0.6, 0.66, 0.63])
    return lf.estimate(lf.simulate.votes(3000, sensitivity=rates, specificity=rates, seed=2).votes)


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
    "So few gold labels (12) calibrate roughly only": lambda: with_gold(12),
    "independent ones would": shared,
    "turned the direction round": turned,
    "Only classifier_1, classifier_2, classifier_3 of the 7 classifiers are clearly better": three_beside_guessing,
    "None of the 10 classifiers are clearly better": a_faint_signal,
    "Only classifier_3 of the 5 classifiers is clearly better": one_beside_constants,
    "vote alike on every item (classifier_1, classifier_2)": two_columns_of_three,
    "vote alike on every item (classifier_1, classifier_2, classifier_3, classifier_4, classifier_5)": one_column,
    "they ask for a prevalence of 0.30, not of 0.90": wrong_prevalence,
    "they ask for a sensitivity of classifier_2 of 0.80, not of 0.99": wrong_rate,
    "they ask for a prevalence of 0.30, not of 0.70": everything_wrong,
    "The gold labels contradict the answer: of 100": random_gold,
    "the prevalence is known to within": few_for_the_prevalence,
    "not determined by these votes at all": undetermined,
    "There are too few items": few_items,
    "contradicts a unanimous vote": overruling,
}
FATAL = ("agree no more than guessing", "Only classifier_1 and classifier_2")


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


def test_copies_that_the_others_would_betray_are_not_suspected():
    """Two that never err, beside six others: were they copies, the others' votes would not fit."""
    drawn = good()
    votes = np.column_stack([drawn.truth, drawn.truth, drawn.votes])
    assert lf.estimate(votes).verdict.level == "sound"
    copied = lf.estimate(np.column_stack([drawn.votes[:, 0], drawn.votes]))
    assert copied.groups == (("classifier_1", "classifier_2"),)
    assert not any("vote alike" in reason for reason in copied.verdict.reasons)


def test_copies_among_classifiers_too_weak_to_betray_them_are_suspected():
    """Three copies that are right in eight of ten look as if they never erred, beside five that tell little."""
    votes = lf.simulate.votes(2000, classifiers=8, seed=201, copies=[(0, 1, 2)]).votes
    found = lf.estimate(votes)
    assert found.balanced_accuracy[0] > 0.95
    assert found.verdict.level == "caution"
    words = "vote alike on every item (classifier_1, classifier_2, classifier_3)"
    assert words in found.verdict.reasons[0]


def test_raters_who_share_a_few_items_of_a_crowd_are_not_taken_for_copies():
    random = np.random.default_rng(0)
    truth = random.random(2000) < 0.5
    votes = np.full((2000, 60), -1)
    for rater in range(60):
        seen = random.choice(2000, 300, replace=False)
        votes[seen, rater] = truth[seen] ^ (random.random(300) < 0.02)
    for copied in (False, True):
        if copied:
            votes[:, 1] = votes[:, 0]
        counts = moments(Blocks(lf.tally(votes, missing=-1)))
        assert ((counts.unlike == 0) & (counts.pair_counts >= 20)).sum() > 100
        assert alike(counts, 2000.0) == (((0, 1),) if copied else ())


def test_what_is_rightly_known_is_not_doubted():
    drawn = good()
    rates = {"classifier_1": {"sensitivity": 0.8, "specificity": 0.75}}
    gold = {place: int(drawn.truth[place]) for place in range(100)}
    estimate = lf.estimate(drawn.votes, prevalence=0.3, known=rates, gold=gold)
    assert estimate.verdict.level == "sound"


def test_a_known_prevalence_is_not_doubted_where_errors_are_shared():
    """Shared errors mislead what the votes say of the prevalence."""
    votes, truth = hard_items()
    for prevalence in (truth.mean(), 0.4):
        estimate = lf.estimate(votes, prevalence=float(prevalence))
        assert estimate.dependence == "difficulty"
        assert not any("as known" in reason for reason in estimate.verdict.reasons)


def test_exact_frequencies_contradict_a_wrong_prevalence_and_no_other():
    rates = np.array([0.8, 0.7, 0.9, 0.75, 0.6])
    exact = lf.simulate.exact(rates, rates[::-1], 0.3)
    assert lf.estimate(exact, prevalence=0.3).verdict.level == "sound"
    reasons = lf.estimate(exact, prevalence=0.31, dependence="test").verdict.reasons
    assert any("a prevalence of 0.30, not of 0.31" in reason for reason in reasons)


@pytest.mark.parametrize(
    ("items", "classifiers", "share"),
    [(2, 25, 0.5), (3, 10, 0.5), (5, 25, 0.5), (10, 10, 0.5), (20, 25, 0.3), (200, 10, 0.5)],
)
def test_guesses_are_seldom_taken_for_a_signal_however_few_the_items(items, classifiers, share):
    random = np.random.default_rng([items, classifiers])
    number, found, sure = 300, 0, 0
    for _ in range(number):
        votes = random.random((items, classifiers)) < share
        seen = moments(Blocks(lf.Tally.from_codes(votes.astype(int), np.ones(items))))
        findings = Findings()
        look_for_signal(findings, seen, float(items), [f"c{i}" for i in range(classifiers)])
        found += not findings.fatal
        sure += not findings.fatal and not findings.doubts
    assert found / number <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / number)
    assert sure / number <= 0.01


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
