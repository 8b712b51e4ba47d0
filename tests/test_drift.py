"""Drift: which classifiers changed between periods, by more than chance."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import labelfree as lf
from labelfree import OptionsError, VotesError, simulate
from labelfree._cli import app
from labelfree._drift import changed

from .sentences import refused

RATES = {"specificity": [0.8, 0.7, 0.9, 0.8, 0.8], "prevalence": 0.6}
BEFORE, NOW = [0.8, 0.7, 0.9, 0.7, 0.8], [0.8, 0.7, 0.7, 0.7, 0.8]


def period(sensitivity=BEFORE, items=4000, seed=1, **more):
    return simulate.votes(items, sensitivity=sensitivity, seed=seed, **(RATES | more)).votes


def exact(sensitivity=BEFORE, **more):
    return simulate.exact(sensitivity, **(RATES | more))


def hard(items=4000, m=6, seed=1):
    """Votes of classifiers that err together on hard items."""
    random = np.random.default_rng(seed)
    trait = np.where(random.random(items) < 0.6, 1.0, -1.0) + random.normal(size=items)
    chance = 1 / (1 + np.exp(-1.5 * trait[:, None] - random.normal(0, 0.3, m)))
    return (random.random((items, m)) < chance).astype(np.int8)


# --- the test -----------------------------------------------------------------------------------


def test_the_statistic_is_that_of_the_weighted_mean():
    random = np.random.default_rng(3)
    values = [random.normal(size=2) for _ in range(4)]
    roots = [random.normal(size=(2, 2)) for _ in range(4)]
    covariances = [root @ root.T + np.eye(2) for root in roots]
    weights = [np.linalg.inv(each) for each in covariances]
    middle = np.linalg.solve(sum(weights), sum(w @ v for w, v in zip(weights, values, strict=True)))
    naive = sum((v - middle) @ w @ (v - middle) for w, v in zip(weights, values, strict=True))
    statistic, degrees, _ = changed(values, covariances)
    assert (statistic, degrees) == (pytest.approx(naive), 6)
    order = [2, 0, 3, 1]
    again = changed([values[i] for i in order], [covariances[i] for i in order])
    assert again[0] == pytest.approx(statistic)


def test_the_statistic_has_its_distribution():
    random = np.random.default_rng(4)
    covariances = [np.array([[1.0, 0.5], [0.5, 2.0]]), np.eye(2), np.diag([3.0, 0.1])]
    drawn = [random.multivariate_normal([1, 2], each, 4000) for each in covariances]
    p_values = [changed(list(values), covariances)[2] for values in zip(*drawn, strict=True)]
    for level in (0.05, 0.5):
        assert np.mean(np.less(p_values, level)) == pytest.approx(level, abs=0.015)


def test_what_is_known_without_error_changes_or_does_not():
    nothing = [np.zeros((2, 2))] * 2
    assert changed([np.zeros(2)] * 2, nothing) == (0.0, 0, 1.0)
    assert changed([np.zeros(2), np.ones(2)], nothing)[2] == 0.0
    half = [np.diag([1.0, 0.0])] * 2
    assert changed([np.array([0.0, 3.0]), np.array([0.0, 3.0])], half)[1:] == (1, 1.0)
    assert changed([np.array([0.0, 3.0]), np.array([0.0, 3.1])], half)[2] == 0.0


# --- from votes ---------------------------------------------------------------------------------


def test_exact_frequencies_change_only_where_the_rates_do():
    same = lf.drift([exact(), exact()], dependence="ignore")
    assert same.drifted == ()
    assert (same.p_value, same.prevalence.p_value) == (1.0, 1.0)
    whole = [exact(rates, prevalence=p) for rates, p in ((BEFORE, 0.6), (NOW, 0.6))]
    counted = [lf.Tally.from_codes(each.codes(), np.rint(1e6 * each.counts)) for each in whole]
    moved = lf.drift(counted)
    assert moved.drifted == ("classifier_3",)
    assert moved.classifiers[2].values["sensitivity"] == pytest.approx([0.9, 0.7], abs=1e-3)
    assert not moved.prevalence.drifted


def test_a_change_is_found_and_told():
    found = lf.drift({"May": lf.tally(period()), "June": lf.tally(period(NOW, seed=3))})
    assert found.drifted == ("classifier_3",)
    assert found.periods == ("May", "June")
    assert found.p_value < 1e-4
    assert str(found).startswith("classifier_3: sensitivity 0.9")
    assert found.reasons == ()
    shift = found.classifiers[2]
    assert shift.degrees == 2
    before, now = found.estimates
    figures = lf.compare(before, now).changes
    (sensitivity,) = (
        each
        for each in figures
        if (each.classifier, each.quantity) == ("classifier_3", "sensitivity")
    )
    assert shift.values["sensitivity"] == [sensitivity.before, sensitivity.now]


def test_another_prevalence_is_no_change_of_rates():
    found = lf.drift([period(), period(seed=5, prevalence=0.3)])
    assert found.prevalence.drifted
    assert found.drifted == ()
    assert found.p_value > 0.01
    assert "prevalence 0.5" in str(found) or "prevalence 0.6" in str(found)


def test_three_periods_of_which_the_last_differs():
    parts = [period(seed=1), period(seed=2), period(NOW, seed=3)]
    found = lf.drift(parts)
    assert found.drifted == ("classifier_3",)
    assert found.classifiers[0].degrees == 4
    assert found.prevalence.degrees == 2
    assert len(found.classifiers[0].values["sensitivity"]) == 3
    back = lf.drift(parts[::-1])
    for one, other in zip(found.classifiers, back.classifiers, strict=True):
        assert one.statistic == pytest.approx(other.statistic)


def test_the_global_test_sees_small_changes_of_many_that_none_of_them_shows():
    less = [rate - 0.035 for rate in BEFORE]
    found = lf.drift([period(items=6000), period(less, items=6000, seed=2)])
    assert found.p_value < min(each.p_corrected for each in found.classifiers)


def test_saved_estimates_give_the_same_classifiers(tmp_path):
    parts = [lf.estimate(period()), lf.estimate(period(NOW, seed=3))]
    for number, each in enumerate(parts):
        each.save(tmp_path / f"{number}.json")
    kept = lf.drift([lf.load(tmp_path / f"{number}.json") for number in (0, 1)])
    found = lf.drift(parts)
    assert kept.classifiers == found.classifiers
    assert kept.drifted == found.drifted
    assert kept.p_value == min(each.p_value for each in found.classifiers) * 5


def test_classifiers_that_come_or_go_are_compared_where_they_are():
    one, two = (
        pl.DataFrame(period(rates, seed=seed), schema=list("abcde"))
        for rates, seed in ((BEFORE, 1), (NOW, 3))
    )
    found = lf.drift([one.drop("e"), two.drop("d")])
    names = [each.classifier for each in found.classifiers]
    assert names == ["a", "b", "c", "e", "d"]
    assert found.drifted == ("c",)
    assert found.classifiers[3].p_value is None
    assert found.classifiers[3].values["sensitivity"][0] is None
    assert found.p_value is not None


def test_periods_that_tell_nothing_are_said_to():
    random = np.random.default_rng(1).integers(0, 2, (4000, 5)).astype(np.int8)
    found = lf.drift([period(), random, period(NOW, seed=3)])
    assert found.drifted == ("classifier_3",)
    assert found.classifiers[0].values["sensitivity"][1] is None
    assert "period 2 do not tell the rates" in found.reasons[0]
    nothing = lf.drift([period(), random])
    assert (nothing.p_value, nothing.drifted) == (None, ())
    assert all(each.p_value is None for each in (*nothing.classifiers, nothing.prevalence))
    assert "nothing is known" in str(nothing)
    json.dumps(nothing.as_dict(), allow_nan=False)


def test_shared_errors_are_said_to_be_in_the_way():
    found = lf.drift([hard(seed=1), hard(seed=2)])
    assert "share errors" in found.reasons[-1]
    mixed = lf.drift([hard(m=5), period()])
    assert "different models" in mixed.reasons[0]


def test_what_are_no_periods_is_refused():
    for wrong in ([], [period()], period()[:0], "a.tally", lf.tally(period()), None):
        refused(lambda wrong=wrong: lf.drift(wrong), "two or more periods", error=OptionsError)
    yes = np.array(["no", "yes"])[period()]
    refused(lambda: lf.drift([period(), yes]), "same classes", error=VotesError)
    refused(lambda: lf.drift([period(), period()], level=2), "level=", error=OptionsError)


# --- on the command line ------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pl.DataFrame(period(), schema=list("abcde")).write_csv("may.csv")
    pl.DataFrame(period(NOW, seed=3), schema=list("abcde")).write_parquet("june.parquet")
    lf.tally("june.parquet").save("june.tally")
    lf.estimate("may.csv").save("may.json")


def run(*words):
    return CliRunner().invoke(app, ["drift", *words])


def test_files_of_every_kind_are_periods(files):
    expected = lf.drift({"may.csv": lf.tally("may.csv"), "june.tally": lf.Tally.load("june.tally")})
    for words in (["may.csv", "june.tally"], ["may.json", "june.parquet"]):
        found = json.loads(run(*words, "--json").stdout)
        assert found["drifted"] == ["c"]
        assert found["periods"] == words
        assert found["classifiers"] == expected.as_dict()["classifiers"]
    said = run("may.csv", "june.tally").stdout
    assert "periods: may.csv (4,000 items), june.tally (4,000 items)" in said
    assert "changed beyond chance (at 5 % over all of them): c" in said
    assert said.count("*") == 1


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["may.csv"], "two or more periods"),
        (["may.csv", "may.csv"], "name each once"),
        (["may.csv", "nowhere.tally"], "nowhere.tally: there is no such file"),
        (["may.csv", "june.txt"], "ends in"),
    ],
)
def test_bad_periods_are_refused_in_a_sentence(files, words, expected):
    done = run(*words)
    assert done.exit_code == 2
    (line,) = done.stderr.splitlines()
    assert expected in line
    assert sorted(path.name for path in Path().iterdir()) == [
        "june.parquet",
        "june.tally",
        "may.csv",
        "may.json",
    ]
