"""Commands that ask something of an estimate, as a shell would run them."""

import json
import os
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import labelfree as lf

from .test_cli import (
    complaint,
    documented_keys,
    drawn,
    folder,
    in_process,
    keys_of,
    lay_out_files,
    run,
    succeed,
    table,
    widest,
    write,
)

__all__ = ["folder"]  # the fixture that puts each test into a folder of its own


@pytest.fixture
def votes():
    frame = table(drawn(items=2000).votes)
    write(frame, "votes.csv")
    return frame


# --- check --------------------------------------------------------------------------------------


def test_requirements_that_are_met_and_missed(votes):
    found = lf.estimate(votes)
    low = found.interval("sensitivity")[0, 0]
    met = [f"ann.sensitivity >= {low - 0.001:.4f}", "verdict != unidentified", "items >= 2000"]
    said = succeed("check", "votes.csv", *(word for each in met for word in ("--require", each)))
    assert "0 of 3 requirements missed" in said
    assert widest(said) <= 80
    missed = f"ann.sensitivity >= {low + 0.001:.4f}"
    done = run("check", "votes.csv", "--require", met[0], "--require", missed)
    assert (done.exit_code, done.stderr) == (1, "")
    assert "1 of 2 requirements missed" in done.stdout
    assert re.search(rf"{re.escape(missed)} +ann: .* missed", done.stdout)
    assert run("check", "votes.csv", "--require", missed, "--by", "estimate").exit_code == 0


def test_a_check_as_json_has_the_documented_keys_and_the_exit_code(votes):
    done = run("check", "votes.csv", "--require", "all.sensitivity > 99%", "--json")
    assert done.exit_code == 1
    found = json.loads(done.stdout)
    assert keys_of(found) == documented_keys("A check")
    assert found == lf.estimate(votes).check("all.sensitivity > 99%").as_dict()
    assert found["met"] is False


def test_a_saved_estimate_is_checked_without_its_votes(votes):
    succeed("estimate", "votes.csv", "--save", "kept.json")
    Path("votes.csv").unlink()
    succeed("check", "kept.json", "--require", "verdict != unidentified")
    said = complaint("check", "kept.json", "--require", "items > 1", "--method", "tensor")
    assert "--method does not go with kept.json, an estimate" in said


def test_long_requirements_and_names_fold(votes):
    names = ["a very long name of a classifier" * 4, "bob", "cem", "dee"]
    write(table(drawn().votes, names=names), "votes.csv")
    said = succeed("check", "votes.csv", "--require", f"{names[0]}.sensitivity >= 0.1")
    assert widest(said) <= 80
    hostile = table(drawn().votes, names=["[bold]x", "\x1b[31m", "c", "d"])
    write(hostile, "votes.csv")
    said = succeed(
        "check", "votes.csv", "--require", "\x1b[31m.votes > 1", "--require", "[bold]x.votes > 1"
    )
    assert "\\x1b[31m.votes" in said
    assert "[bold]x.votes" in said
    assert "\x1b" not in said


def test_votes_without_signal_miss_and_say_why():
    coins = np.random.default_rng(0).integers(0, 2, (300, 4))
    pl.DataFrame(coins, schema=list("abcd")).write_csv("coins.csv")
    done = run("check", "coins.csv", "--require", "a.sensitivity >= 0.1")
    assert done.exit_code == 1
    assert "the votes do not tell" in done.stdout
    assert "verdict unidentified" in done.stdout


# --- compare ------------------------------------------------------------------------------------


def kept(path, **options):
    drawn_here = lf.simulate.votes(3000, **options)
    lf.estimate(drawn_here.votes).save(path)


def test_a_comparison_shows_what_changed():
    kept("last.json", sensitivity=[0.8, 0.7, 0.9, 0.7, 0.8], specificity=[0.8] * 5, seed=1)
    kept("now.json", sensitivity=[0.8, 0.7, 0.7, 0.7, 0.8], specificity=[0.8] * 5, seed=3)
    said = succeed("compare", "last.json", "now.json")
    assert widest(said) <= 80
    assert "beyond chance (at 5 % over all of them): 2 figures" in said
    expected = lf.compare(lf.load("last.json"), lf.load("now.json"))
    change = expected.changes[6]
    assert f"{change.now:.3f} {change.difference:+.3f}".replace("-0.", "-.") in said
    assert "classifier_3: sensitivity" in said
    found = json.loads(succeed("compare", "last.json", "now.json", "--json"))
    assert found == expected.as_dict()
    assert keys_of(found) == documented_keys("A comparison")


def test_a_comparison_of_many_classifiers_fits_and_shows_each():
    for path, seed in (("last.json", 1), ("now.json", 2)):
        drawn_here = lf.simulate.votes(1500, classifiers=60, seed=seed)
        names = [f"model-{place:03}" for place in range(seed, seed + 60)]
        lf.estimate(drawn_here.votes, classifiers=names, dependence="ignore").save(path)
    said = succeed("compare", "last.json", "now.json")
    assert widest(said) <= 80
    assert all(f" model-{place:03} " in said for place in range(2, 61))
    assert "came: model-061" in said
    assert "went: model-001" in said


def test_a_comparison_with_an_estimate_that_tells_nothing():
    kept("last.json", classifiers=4, seed=1)
    lf.estimate(np.random.default_rng(0).integers(0, 2, (300, 4))).save("now.json")
    said = succeed("compare", "last.json", "now.json")
    assert f"verdict {lf.load('last.json').verdict.level}, now unidentified" in said
    assert "None" not in said
    assert "beyond chance (at 5 % over all of them): 0 figures" in said
    assert (
        json.loads(succeed("compare", "now.json", "last.json", "--json"))["changes"][0]["before"]
        is None
    )


# --- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["check"], "Missing"),
        (["check", "good.csv"], "Missing option '--require'"),
        (["check", "good.csv", "--require", ""], "must hold a figure"),
        (["check", "good.csv", "--require", "a.sensitivity"], "'a.sensitivity' must hold a figure"),
        (["check", "good.csv", "--require", "a.sensitivity >= 80"], "between 0 and 1, got 80"),
        (["check", "good.csv", "--require", "z.sensitivity >= 0.8"], "names the classifier 'z'"),
        (["check", "good.csv", "--require", "a.recall >= 0.8"], "asks for 'recall'"),
        (["check", "good.csv", "--require", "items > 1", "--by", "luck"], "--by must be"),
        (["check", "short.csv", "--require", "items > 1"], "line 3"),
        (["check", "missing.csv", "--require", "items > 1"], "there is no such file"),
        (["check", "missing.json", "--require", "items > 1"], "missing.json cannot be read"),
        (["check", "not_estimate.json", "--require", "items > 1"], "is not an estimate"),
        (["check", "good.csv", "--require", "items > 1", "--level", "95"], "--level must lie"),
        (["compare"], "Missing argument"),
        (["compare", "good.csv"], "Missing argument"),
        (["compare", "missing.json", "missing.json"], "missing.json cannot be read"),
        (["compare", "good.csv", "good.csv"], "good.csv is not JSON"),
        (["compare", "not_estimate.json", "not_estimate.json"], "is not an estimate"),
    ],
)
def test_bad_words_get_one_sentence(words, expected):
    before = lay_out_files()
    said = complaint(*words)
    assert expected in said
    assert said[-1] in ".?!"
    assert sorted(path.name for path in Path().iterdir()) == before


def test_estimates_of_other_classes_are_not_compared():
    kept("last.json", classifiers=4, seed=1)
    lf.estimate(lf.simulate.votes(300, classifiers=4).votes, positive=0).save("now.json")
    assert "same classes" in complaint("compare", "last.json", "now.json")


# --- completion ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("labelfree comp", "compare"),
        ("labelfree check --req", "--require"),
        ("labelfree estimate --method l", "likelihood"),
        ("labelfree label --rule maj", "majority"),
        ("labelfree check --by e", "estimate"),
    ],
)
def test_a_shell_completes_commands_and_options(typed, expected):
    asked = {"COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
    environment = {**os.environ, **asked, "_LABELFREE_COMPLETE": "complete_bash"}
    done = in_process(env=environment)
    assert done.stdout.decode().split() == [expected]
    assert done.stderr == b""


def test_what_a_shell_needs_for_completion_can_be_shown():
    done = in_process(
        "--show-completion",
        "bash",
        env={**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"},
    )
    assert b"complete -o default -F _labelfree_completion labelfree" in done.stdout


# --- best and next ------------------------------------------------------------------------------


def test_the_best_panel_of_each_size(votes):
    said = succeed("best", "votes.csv")
    assert widest(said) <= 80
    found = lf.estimate(votes)
    for size in range(1, len(found.classifiers) + 1):
        assert f"{found.best(size).balanced_accuracy:.3f}" in said
    plain = json.loads(succeed("best", "votes.csv", "-k", "2", "--json"))
    assert keys_of(plain) == documented_keys("Panels")
    assert plain["panels"][0]["classifiers"] == list(found.best(2).classifiers)
    assert "whole number of classifiers from 1 to 4, got 9" in complaint(
        "best", "votes.csv", "-k", "9"
    )


def test_the_items_to_ask_on_next(votes):
    said = succeed("next", "votes.csv", "-n", "3")
    assert widest(said) <= 80
    plain = json.loads(succeed("next", "votes.csv", "-n", "3", "--json"))
    assert keys_of(plain) == documented_keys("Items to ask on next")
    assert plain["items"] == lf.estimate(votes).next_items(votes, 3)
    assert "at least 1, got 0" in complaint("next", "votes.csv", "-n", "0")
