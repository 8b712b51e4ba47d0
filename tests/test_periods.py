"""Tallies on the command line: counted, added up, estimated."""

import json
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

import labelfree as lf
from labelfree import simulate
from labelfree._cli import app


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def succeed(*words):
    result = run(*words)
    assert result.exit_code == 0, result.output
    return result.stdout


def fail(*words):
    result = run(*words)
    assert result.exit_code == 2
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    return line


@pytest.fixture
def days(tmp_path, monkeypatch):
    """Votes of three days in a folder of their own, and all of them together."""
    monkeypatch.chdir(tmp_path)
    drawn = simulate.votes(900, classifiers=5, missing=0.1, seed=2).votes
    votes = pl.DataFrame(drawn, schema=list("abcde")).with_columns(pl.all().replace(-1, None))
    for day in range(3):
        votes[300 * day : 300 * (day + 1)].write_csv(f"{day}.csv")
    return votes


def test_tallies_of_days_make_the_months_estimate(days):
    said = succeed("tally", "0.csv", "-o", "month.tally")
    assert said.startswith("month.tally: 300 items, 5 classifiers, ")
    succeed("tally", "month.tally", "1.csv", "2.csv", "-o", "month.tally")
    assert lf.Tally.load("month.tally") == lf.tally(days)
    for words in (["month.tally"], ["0.csv", "1.csv", "2.csv"]):
        found = json.loads(succeed("estimate", *words, "--json"))
        assert found == lf.estimate(lf.tally(days)).as_dict()
    succeed("tally", "2.csv", "-o", "2.tally")
    succeed("tally", "0.csv", "1.csv", "-o", "01.tally")
    found = json.loads(succeed("estimate", "2.tally", "01.tally", "--level", "0.5", "--json"))
    assert found == lf.estimate(lf.tally(days), level=0.5).as_dict()


def test_a_day_that_lacks_a_label_is_read_with_the_tallys_classes(days):
    succeed("tally", "0.csv", "--positive", "0", "-o", "month.tally")
    pl.DataFrame({name: [1, 1] for name in "abcde"}).write_csv("quiet.csv")
    found = json.loads(succeed("tally", "month.tally", "quiet.csv", "-o", "month.tally", "--json"))
    assert found == lf.Tally.load("month.tally").as_dict()
    assert (found["items"], found["classes"]) == (302, [1, 0])


def test_files_that_do_not_fit_are_refused_in_a_line(days):
    days.rename({"a": "z"}).write_csv("other.csv")
    succeed("tally", "0.csv", "-o", "0.tally")
    succeed("tally", "other.csv", "-o", "other.tally")
    assert "same classifiers and classes" in fail("estimate", "0.tally", "other.tally")
    assert "'a', 'z'" in fail("estimate", "0.csv", "other.csv")
    assert "ends in .tally" in fail("tally", "0.csv", "-o", "0.csv")
    assert "--gold" in fail("estimate", "0.tally", "--gold", "a")
    assert "--gold" in fail("estimate", "0.tally", "0.tally", "--gold", "a")
    assert "--missing" in fail("estimate", "0.tally", "0.tally", "--missing", "3")
    with Path("0.tally").open("r+b") as file:
        file.truncate(100)
    assert "cut short" in fail("estimate", "0.tally")
    assert "Missing argument" in fail("tally", "-o", "0.tally")


def test_the_drift_of_many_periods_fits_a_terminal_and_names_every_classifier(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    for period in range(8):
        drawn = simulate.votes(2000, classifiers=4, seed=period).votes
        names = [f"judge_{number}_of_the_panel" for number in range(4)]
        pl.DataFrame(drawn, schema=names).write_csv(f"{period}.csv")
    files = [f"{period}.csv" for period in range(8)]
    said = succeed("drift", *files)
    assert max(map(len, said.splitlines())) <= 80
    found = lf.drift(files)
    for each in found.classifiers:
        (line,) = (line for line in said.splitlines() if f"{each.classifier} " in line[:30])
        values = each.values["sensitivity"]
        assert f"{values[0]:.3f} … {values[-1]:.3f}" in line
    assert "--json has them all" in said
    assert "…" not in succeed("drift", *files[:3])
