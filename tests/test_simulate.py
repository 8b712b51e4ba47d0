"""Drawn votes have the rates they were drawn from; rubbish is refused in a sentence."""

import numpy as np
import pytest

import labelfree as lf
from labelfree import simulate

from . import naive

PSI, ETA = np.array([0.9, 0.6, 0.75]), np.array([0.55, 0.8, 0.7])
RATES = {"sensitivity": PSI, "specificity": ETA}
BOUND = 4.5  # standard deviations: with some thirty comparisons a chance of 1 in 5000


def within(found, wanted, number):
    """Whether a frequency of so many draws is one that its probability gives."""
    spread = np.sqrt(np.asarray(wanted) * (1 - np.asarray(wanted)) / number)
    return (np.abs(found - wanted) <= BOUND * spread).all()


def frequencies(drawn):
    """Share of the votes cast that are right, on positive and on negative items."""
    return [
        np.ma.masked_array(drawn.votes == true, drawn.votes == -1)[drawn.truth == true]
        .mean(axis=0)
        .filled(np.nan)
        for true in (1, 0)
    ]


@pytest.mark.parametrize("prevalence", [0.0, 0.2, 0.5, 1.0])
def test_frequencies_are_those_of_the_rates(prevalence):
    n = 100_000
    drawn = simulate.votes(n, **RATES, prevalence=prevalence, seed=11)
    assert drawn.votes.shape == (n, 3)
    assert drawn.votes.dtype == drawn.truth.dtype == np.int8
    assert within(drawn.truth.mean(), prevalence, n)
    assert drawn.prevalence == prevalence
    sensitivity, specificity = frequencies(drawn)
    if prevalence > 0:
        assert within(sensitivity, PSI, n * prevalence)
    if prevalence < 1:
        assert within(specificity, ETA, n * (1 - prevalence))
    assert np.array_equal(drawn.sensitivity, PSI)
    assert np.array_equal(drawn.specificity, ETA)


def test_classifiers_err_independently_given_the_class():
    n = 100_000
    drawn = simulate.votes(n, **RATES, prevalence=0.4, seed=12)
    for true in (0, 1):
        votes = drawn.votes[drawn.truth == true]
        residual = np.corrcoef(votes.T)[np.triu_indices(3, 1)]
        assert (np.abs(residual) < BOUND / np.sqrt(len(votes))).all()


def test_votes_are_missing_at_random_with_the_given_probability():
    n = 60_000
    drawn = simulate.votes(n, **RATES, prevalence=0.5, missing=0.3, seed=13)
    gone = drawn.votes == -1
    assert within(gone.mean(axis=0), 0.3, n)
    assert np.isin(drawn.votes, (-1, 0, 1)).all()
    assert within(gone[drawn.truth == 1].mean(), 0.3, 3 * (drawn.truth == 1).sum())
    assert within((gone[:, 0] & gone[:, 1]).mean(), 0.09, n)
    sensitivity, specificity = frequencies(drawn)
    assert within(sensitivity, PSI, n * 0.5 * 0.65)
    assert within(specificity, ETA, n * 0.5 * 0.65)
    whole = simulate.votes(n, **RATES, prevalence=0.5, seed=13)
    assert np.array_equal(drawn.votes[~gone], whole.votes[~gone])
    assert (simulate.votes(50, **RATES, missing=1.0).votes == -1).all()
    assert (whole.votes >= 0).all()


@pytest.mark.parametrize("copying", [0.0, 0.4, 1.0])
def test_copying_classifiers_vote_like_their_model_with_that_probability(copying):
    n, truth = 100_000, 0.5
    psi, eta = np.array([0.9, 0.6, 0.75, 0.7, 0.8]), np.array([0.6, 0.8, 0.7, 0.9, 0.65])
    drawn = simulate.votes(
        n,
        sensitivity=psi,
        specificity=eta,
        prevalence=truth,
        copies=[(2, 0, 4)],
        copying=copying,
        seed=14,
    )
    sensitivity, specificity = frequencies(drawn)
    assert within(sensitivity, drawn.sensitivity, 0.49 * n)
    assert within(specificity, drawn.specificity, 0.49 * n)
    for member in (0, 4):
        wanted = copying * psi[2] + (1 - copying) * psi[member]
        assert drawn.sensitivity[member] == pytest.approx(wanted)
        positive = drawn.votes[drawn.truth == 1]
        agree = psi[2] * psi[member] + (1 - psi[2]) * (1 - psi[member])
        same = (positive[:, member] == positive[:, 2]).mean()
        chance = copying + (1 - copying) * agree
        assert within(same, chance, 0.49 * n) or copying == same == 1.0
    assert drawn.sensitivity[[1, 2, 3]] == pytest.approx(psi[[1, 2, 3]])
    residual = np.corrcoef(drawn.votes[drawn.truth == 1].T)
    for alone in (1, 3):
        others = np.delete(residual[alone], alone)
        assert (np.abs(others) < BOUND / np.sqrt(0.49 * n)).all()


def test_the_same_seed_gives_the_same_votes_and_another_gives_others():
    def drawn(seed):
        return simulate.votes(200, classifiers=4, missing=0.1, copies=[(0, 1)], seed=seed)

    one, two, other = drawn(3), drawn(3), drawn(4)
    assert np.array_equal(one.votes, two.votes)
    assert np.array_equal(one.truth, two.truth)
    assert np.array_equal(one.sensitivity, two.sensitivity)
    assert not np.array_equal(one.votes, other.votes)
    assert not np.array_equal(one.sensitivity, other.sensitivity)
    assert not np.array_equal(drawn(None).votes, drawn(None).votes)


def test_random_rates_lie_in_their_range():
    psi, eta = simulate.rates(2000, 0.6, 0.9, seed=1)
    for rate in (psi, eta):
        assert rate.shape == (2000,)
        assert 0.6 <= rate.min() < 0.61
        assert 0.89 < rate.max() <= 0.9
    assert not np.array_equal(psi, eta)
    drawn = simulate.votes(10, classifiers=7, seed=5)
    assert np.array_equal(drawn.sensitivity, simulate.rates(7, seed=5)[0])


@pytest.mark.parametrize("prevalence", [0.0, 0.3, 1.0])
def test_exact_gives_every_pattern_its_probability(prevalence):
    counted = simulate.exact(PSI, ETA, prevalence, items=50)
    confusion = [[[eta, 1 - eta], [1 - psi, psi]] for psi, eta in zip(PSI, ETA, strict=True)]
    assert len(counted) == 8
    assert counted.items == pytest.approx(50, rel=1e-14)
    for row, count in zip(counted.codes(), counted.counts, strict=True):
        chance = sum(naive.joint(row, [1 - prevalence, prevalence], confusion))
        assert count == pytest.approx(50 * chance, rel=1e-13)


def test_exact_leaves_out_what_cannot_occur():
    assert len(simulate.exact([1, 1, 1], [1, 1, 1], 0.3)) == 2


def test_draws_tend_to_the_exact_probabilities():
    n = 100_000
    drawn = lf.tally(simulate.votes(n, **RATES, prevalence=0.3, seed=15).votes)
    exact = simulate.exact(PSI, ETA, 0.3)
    assert np.array_equal(drawn.patterns, exact.patterns)
    assert within(drawn.counts / n, exact.counts, n)


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    "options",
    [
        *({"items": items} for items in (0, -1, 2.5, NAN, INF, "many", None, [3])),
        *({"prevalence": p} for p in (-0.1, 1.1, NAN, None, "half", [0.5])),
        *({"missing": p} for p in (-0.1, 1.1, NAN, None, "some")),
        *({"copying": p} for p in (-0.1, 1.1, NAN, None, "always")),
        *({"sensitivity": rate} for rate in (0.5, [0.5], [0.5, 0.5, 1.2], [0.5, NAN, 0.5])),
        *({"specificity": rate} for rate in ("abc", [], [0.5, None, 0.5], [[0.5] * 3])),
        {"specificity": [0.5, [0.5], 0.5]},
        {"sensitivity": [], "specificity": []},
        {"sensitivity": None},
        {"sensitivity": None, "specificity": None},
        {"classifiers": 3},
        *({"copies": groups} for groups in ([(0, 5)], [(0, 1), (1, 2)], [(0, 0)], [(-1, 0)])),
        *({"copies": groups} for groups in ([0, 1], ["ab"], [(0, 0.5)], 5, None, [()])),
        *({"seed": seed} for seed in (-1, "a", 1.5, NAN, [1, 2])),
    ],
    ids=str,
)
def test_votes_refuses_bad_options_in_a_sentence(options):
    with pytest.raises(lf.OptionsError, match=r"[a-z]=|one sensitivity") as error:
        simulate.votes(**({"items": 5} | RATES | options))
    assert str(error.value).endswith(".")


@pytest.mark.parametrize(
    "options",
    [
        *({"classifiers": m} for m in (0, -1, 2.5, NAN, "three", None)),
        *({"low": low} for low in (-0.1, 0.9, NAN, "low")),
        *({"high": high} for high in (1.1, 0.2, NAN, None)),
        *({"seed": seed} for seed in (-1, "a", 1.5, NAN)),
    ],
    ids=str,
)
def test_rates_refuses_bad_options_in_a_sentence(options):
    with pytest.raises(lf.OptionsError, match="=") as error:
        simulate.rates(**({"classifiers": 3} | options))
    assert str(error.value).endswith(".")


@pytest.mark.parametrize(
    "options",
    [
        *({"items": items} for items in (0, -1, NAN, INF, "many", None)),
        *({"prevalence": p} for p in (-0.1, 1.1, NAN, None, "half")),
        {"sensitivity": [0.5] * 4},
        {"sensitivity": [0.5] * 21, "specificity": [0.5] * 21},
        {"sensitivity": [], "specificity": []},
        {"sensitivity": [0.5, 0.5, -0.1]},
    ],
    ids=str,
)
def test_exact_refuses_bad_options_in_a_sentence(options):
    with pytest.raises(lf.OptionsError, match=r"[a-z]=|sensitivities") as error:
        simulate.exact(**(RATES | options))
    assert str(error.value).endswith(".")


def test_counts_may_be_written_as_floats():
    assert simulate.votes(1e3, classifiers=np.int64(3)).votes.shape == (1000, 3)
