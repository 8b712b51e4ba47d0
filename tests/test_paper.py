"""The source paper's experiments: every part runs, and gives the same again."""

import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import labelfree as lf

ROOT = Path(__file__).resolve().parents[1]
PAPER = ROOT / "paper"


@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    yield
    for name in [each for each in sys.modules if each.split(".")[0] in ("paper", "benchmarks")]:
        del sys.modules[name]


@pytest.fixture
def small(tmp_path):
    """Settings of a run of seconds, into a folder of its own."""
    from dataclasses import replace

    from paper.settings import quick

    return replace(
        quick(1, tmp_path), sets=6, sizes=(1000, 10_000), classifier_sets=3, classifiers=(5, 10)
    )


def spectral(counted):
    from paper.spectral import Spectral

    return Spectral(counted)


# --- the parts ----------------------------------------------------------------------------------


def test_the_paper_s_own_rooms_answer_as_the_front_door():
    drawn = lf.simulate.votes(3000, classifiers=10, prevalence=0.65, seed=5)
    counted = lf.tally(drawn.votes, classes=(0, 1))
    own = spectral(counted)
    for method, found in (
        ("tensor", own.tensor),
        ("likelihood", own.likelihood),
        ("map", own.finish(1.0)),
    ):
        estimate = lf.estimate(counted, method=method, dependence="ignore")
        assert found.imbalance == pytest.approx(estimate.imbalance, abs=1e-6)
        np.testing.assert_allclose(found.sensitivity, estimate.sensitivity, atol=1e-6)
        np.testing.assert_allclose(found.specificity, estimate.specificity, atol=1e-6)


def test_section_6_1_runs_and_gives_the_same_bytes_in_any_number_of_processes(small, tmp_path):
    from dataclasses import replace

    from paper import artificial

    artificial.section_6_1(small)
    twice = replace(small, folder=tmp_path / "again", jobs=2)
    artificial.section_6_1(twice)
    names = sorted(file.name for file in small.results.iterdir())
    assert names == ["artificial.csv", "artificial_gain.csv", "artificial_slopes.csv"]
    for name in names:
        assert (small.results / name).read_bytes() == (twice.results / name).read_bytes()


def test_a_data_set_is_the_same_whatever_chunk_it_comes_in():
    from paper.artificial import errors

    whole = errors(0.3, 1000, range(4))
    np.testing.assert_array_equal(whole[2:], errors(0.3, 1000, range(2, 4)))


def test_drawn_counts_follow_the_exact_pattern_probabilities():
    from paper.spectral import draw, patterns
    from paper.work import random

    truth = np.array([0.8, 0.7, 0.6]), np.array([0.6, 0.9, 0.7])
    counted = draw(random(0), *patterns(*truth, 0.3), 10**7)
    exact = lf.simulate.exact(*truth, 0.65, items=10**7)
    np.testing.assert_array_equal(counted.codes(), exact.codes())
    np.testing.assert_allclose(counted.counts, exact.counts, atol=6 * np.sqrt(2.5e6))


def test_with_the_true_v_and_many_classifiers_the_tensor_errs_less(small):
    from paper import artificial

    artificial.appendix(small)
    table = pl.read_csv(small.results / "classifiers.csv")
    assert table["mae"].is_between(0, 0.2).all()
    assert set(table["way"]) == set(artificial.WAYS)


def test_the_theorems_hold_in_the_exact_limit(small):
    from paper import consistency

    consistency.theorem_1(small)
    top = pl.read_csv(small.results / "theorem_1_curves.csv")
    for b, curve in top.group_by("b"):
        best = curve.sort("below_top")["assumed"][-1]
        assert best == pytest.approx(b[0], abs=0.0051)  # the curve's own grid
    for row in pl.read_csv(small.results / "theorem_1.csv").to_dicts():
        assert max(float(row[name]) for name in ("likelihood", "tensor", "rates")) <= 1e-11

    consistency.theorem_2(small)
    even, uneven = pl.read_csv(small.results / "theorem_2.csv", infer_schema=False).to_dicts()
    assert even["moments_moved"].startswith("below 1e-1")
    assert even["one_vs_rest_diagonal"].startswith("below 1e-1")
    assert float(even["patterns_moved"]) > 0.01
    assert float(uneven["moments_moved"]) > 0.001
    assert even["whole_likelihood"].startswith("below")
    assert uneven["whole_likelihood"].startswith("below")


def test_the_change_of_theorem_2_is_the_source_s():
    from paper.consistency import cyclic

    change = cyclic(0.1)
    np.testing.assert_allclose(change, -change.T)
    np.testing.assert_allclose(change.sum(axis=0), 0, atol=1e-15)
    np.testing.assert_allclose(change.sum(axis=1), 0, atol=1e-15)


def test_lost_votes_have_the_probabilities_of_a_slow_count():
    from itertools import product

    from benchmarks.estimators import with_missing

    truth = np.array([0.8, 0.7, 0.6]), np.array([0.6, 0.9, 0.7])
    exact = lf.simulate.exact(*truth, 0.65)
    found = with_missing(exact, 0.3)
    slow = {}
    for votes, chance in zip(exact.codes().tolist(), exact.counts, strict=True):
        for lost in product((False, True), repeat=3):
            key = tuple(-1 if gone else vote for vote, gone in zip(votes, lost, strict=True))
            slow[key] = slow.get(key, 0) + chance * 0.3 ** sum(lost) * 0.7 ** (3 - sum(lost))
    assert len(found) == len(slow) == 27
    for votes, chance in zip(found.codes().tolist(), found.counts, strict=True):
        assert chance == pytest.approx(slow[tuple(votes)])


def test_the_parts_beyond_the_source_run(small):
    from dataclasses import replace

    from paper import beyond

    one = replace(small, bound_sets=2, missing_sets=2, copying_sets=2)
    beyond.over_bound(one)
    beyond.missing_votes(one)
    beyond.copying(one)
    bound = pl.read_csv(small.results / "bound.csv")
    assert (bound.filter(pl.col("method") == "MAP")["rates_over_bound"] < 4).all()
    missing = pl.read_csv(small.results / "missing.csv")
    assert missing.filter(pl.col("method") == "bound")[
        "b_rmse"
    ].is_sorted()  # fewer votes tell less
    copying = pl.read_csv(small.results / "copying.csv")
    assert (copying.filter(pl.col("method") == "default")["rates"] < 0.05).all()
    for table in (bound, missing, copying):
        assert set(beyond.METHODS) <= set(table["method"])
        # who is told b, and who does not estimate it, has no error of b
        of_b = table.filter(pl.col("method").is_in(["Donmez", "Platanios"])).select(r"^b_over.*|b$")
        assert of_b.null_count().row(0)[-1] == len(of_b)


def test_a_method_that_refuses_is_counted_and_left_out():
    from paper.beyond import mean_errors, over

    errors = np.array([[0.2, 0.4], [np.nan, np.nan], [0.4, 0.8]])
    least = np.array([[0.1, 0.4], [9.0, 9.0], [0.2, 0.8]])
    found = over(errors, least)
    assert (found["b_over_bound"], found["rates_over_bound"]) == (pytest.approx(2), 1)
    assert (found["sets"], found["refused"]) == (2, 1)
    found = mean_errors(errors)
    assert (found["b"], found["rates"]) == (pytest.approx(0.3), pytest.approx(0.6))
    assert (found["sets"], found["refused"]) == (2, 1)


def test_an_answer_the_wrong_way_round_is_turned():
    from paper.beyond import facing_majority
    from paper.spectral import Found

    right = Found(0.3, np.array([0.8, 0.7, 0.4]), np.array([0.6, 0.9, 0.5]))
    wrong = Found(-0.3, 1 - right.specificity, 1 - right.sensitivity)
    for found in (facing_majority(right), facing_majority(wrong)):
        assert found.imbalance == 0.3
        np.testing.assert_allclose(found.sensitivity, right.sensitivity)
        np.testing.assert_allclose(found.specificity, right.specificity)


# --- real data ----------------------------------------------------------------------------------


def made_up(items=400, seed=0):
    """Two clouds of points, and their classes."""
    random = np.random.default_rng(seed)
    truth = np.where(random.random(items) < 0.6, 1, -1).astype(np.int8)
    return random.normal(size=(items, 4)) + 0.8 * truth[:, None], truth


def folder_of(place, name="magic"):
    attributes, truth = made_up()
    (place / "uci").mkdir()
    columns = {f"f{i}": column for i, column in enumerate(attributes.T)}
    pl.DataFrame(columns | {"y": (truth > 0).astype(int)}).write_parquet(
        place / "uci" / f"{name}.parquet"
    )
    return place, attributes, truth


def test_a_set_is_read_from_a_folder_and_trained_and_compared(small, tmp_path):
    from paper import real
    from paper.data import load

    folder, attributes, truth = folder_of(tmp_path)
    found = load("magic", folder)
    np.testing.assert_array_equal(found[0], attributes)
    np.testing.assert_array_equal(found[1], truth)
    real.real(small, folder, ["ready", "sklearn"], ["magic"])  # no ready votes there
    assert not (small.results / "real_runs_ready.csv").exists()
    runs = pl.read_csv(small.results / "real_runs_sklearn.csv")
    assert len(runs) == small.realizations * len(real.METHODS)
    assert (runs["balanced_accuracy"] > 0.85).all()
    assert runs.filter(pl.col("method") == "majority")["b"].is_null().all()


def openml(monkeypatch, columns, targets):
    """Have scikit-learn's loader give this many numeric columns, beside those that are none."""
    from types import SimpleNamespace

    import pandas as pd
    import sklearn.datasets

    asked = []

    def fetch_openml(*, data_id, as_frame):
        assert as_frame
        asked.append(data_id)
        numbers = {f"f{i}": [i, i + 0.5, i + 1] for i in range(columns)}
        table = pd.DataFrame({"ID": [1, 2, 3], **numbers, "word": ["x", "y", "z"]})
        return SimpleNamespace(data=table, target=pd.Series(targets))

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch_openml)
    return asked


@pytest.mark.parametrize(
    ("name", "columns", "targets"),
    [
        ("magic", 10, ["h", "g", "g"]),
        ("spambase", 57, ["0", "1", "1"]),
        ("musk", 166, ["0", "1", "1"]),
        ("mnist", 784, ["4", "5", "9"]),
        ("miniboone", 50, ["False", "True", "True"]),
    ],
)
def test_a_set_comes_from_openml_where_there_is_no_folder(monkeypatch, name, columns, targets):
    from paper.data import SETS, load

    asked = openml(monkeypatch, columns, targets)
    attributes, truth = load(name, None)
    assert asked == [SETS[name].openml]
    np.testing.assert_array_equal(attributes[1], np.arange(columns) + 0.5)
    assert truth.tolist() == [-1, 1, 1]


@pytest.mark.parametrize(
    ("columns", "targets", "says"),
    [
        (11, ["h", "g", "g"], "expected 10 attributes at OpenML, got 11"),
        (10, ["a", "b", "b"], r"expected targets of which some are \('g',\), got \['a', 'b'\]"),
    ],
)
def test_another_set_than_was_asked_for_is_refused(monkeypatch, columns, targets, says):
    from paper.data import UnexpectedData, load

    openml(monkeypatch, columns, targets)
    with pytest.raises(UnexpectedData, match=says):
        load("magic", None)


def test_a_set_that_is_nowhere_is_skipped_in_a_sentence(small, tmp_path, monkeypatch, capsys):
    from paper import real

    def load(_name, _folder):
        raise OSError("no route")

    monkeypatch.setattr(real, "load", load)
    (tmp_path / "uci").mkdir()
    for folder in (None, tmp_path):  # no folder, and one that does not hold it
        real.real(small, folder, ["sklearn"], ["miniboone"])
        assert (
            "MiniBooNE is in no folder, and not to be had from OpenML (it cannot be reached: no route)"
            in capsys.readouterr().out
        )
    assert not small.results.exists()


def test_a_folder_s_sets_are_run_unless_others_are_named(tmp_path):
    from paper.data import usual

    assert usual(None) == ["magic", "spambase", "musk", "mnist"]
    folder, *_ = folder_of(tmp_path, "miniboone")
    assert usual(folder) == ["miniboone"]


def test_a_part_of_the_sets_may_be_run_again(tmp_path):
    from paper.work import write_part

    file = tmp_path / "runs.csv"
    write_part(file, [{"set": "b", "x": 1 / 3}, {"set": "a", "x": 2.0}], "set", ["a", "b"])
    before = file.read_text()
    assert before == "set,x\na,2\nb,0.333333\n"
    write_part(file, [{"set": "a", "x": 2.0}], "set", ["a", "b"])
    assert file.read_text() == before


def test_a_tie_of_the_majority_is_what_it_is_said_to_be():
    from paper.real import majority

    votes = np.array([[1, -1, 0], [1, 1, -1], [0, 0, 0]], dtype=np.int8)
    assert majority(votes, -1).tolist() == [-1, 1, -1]
    assert majority(votes, 0).tolist() == [0, 1, 0]


def test_weka_is_asked_for_in_a_sentence_where_it_is_not(monkeypatch, tmp_path):
    from paper import ensembles

    monkeypatch.setenv("WEKA_JAR", str(tmp_path / "absent.jar"))
    with pytest.raises(SystemExit, match=r"needs Java and Weka's jar"):
        ensembles.weka_class_path()


@pytest.mark.skipif(
    "not __import__('os').environ.get('WEKA_JAR')", reason="set WEKA_JAR to weka.jar"
)
def test_weka_s_nearest_neighbour_votes_as_scikit_learn_s():
    from paper import ensembles
    from sklearn.neighbors import KNeighborsClassifier

    attributes, truth = made_up()
    votes = ensembles.by_weka(attributes, truth, 0)
    rows = ensembles.drawn_instances(0, len(truth))[0]
    low, high = attributes[rows].min(axis=0), attributes[rows].max(axis=0)
    scaled = (attributes - low) / (high - low)
    nearest = KNeighborsClassifier(1).fit(scaled[rows], truth[rows]).predict(scaled)
    assert (votes.votes[:, 0] == nearest).mean() > 0.99
    assert (votes.votes != 0).all()


# --- charts -------------------------------------------------------------------------------------


def test_a_chart_is_the_same_bytes_however_often_it_is_drawn(small):
    from paper import artificial, figures

    artificial.section_6_1(small)
    figures.draw_all(small)
    files = sorted(small.figures.iterdir())
    assert [file.name for file in files if file.suffix == ".svg"] == [
        "artificial_estimates.svg",
        "artificial_mse.svg",
        "artificial_rates.svg",
    ]
    before = [file.read_bytes() for file in files]
    figures.draw_all(small)
    assert [file.read_bytes() for file in files] == before


def test_every_colour_differs_from_those_beside_it():
    from paper import artificial, beyond, figures, real, style

    for methods in (real.METHODS, figures.ON_CHARTS, artificial.WAYS):
        assert len({style.COLOURS[each] for each in methods}) == len(methods)
    assert len({style.SHAPES[each] for each in figures.ON_CHARTS}) == len(figures.ON_CHARTS)
    assert set(beyond.OFF_THE_CHARTS) < set(beyond.METHODS)


def test_a_packed_png_has_the_same_pixels(tmp_path):
    import struct
    import zlib

    import altair as alt
    import vl_convert
    from paper import style

    def read(png):
        parts, place = {}, 8
        while place < len(png):
            length, kind = struct.unpack(">I4s", png[place : place + 8])
            body = png[place + 8 : place + 8 + length]
            (checked,) = struct.unpack(">I", png[place + 8 + length : place + 12 + length])
            assert checked == zlib.crc32(kind + body)
            parts[kind] = parts.get(kind, b"") + body
            place += 12 + length
        return parts | {b"IDAT": zlib.decompress(parts[b"IDAT"])}, list(parts)

    chart = alt.Chart(pl.DataFrame({"x": [1, 2, 3]})).mark_point().encode(x="x:Q")
    drawn = vl_convert.vegalite_to_png(chart.to_dict(), scale=2)
    packed = style.packed(drawn)
    assert packed[:8] == drawn[:8]
    assert len(packed) < len(drawn)
    assert read(packed) == read(drawn)


# --- the command --------------------------------------------------------------------------------


def test_a_short_run_never_touches_the_full_one():
    from paper.settings import full, quick

    assert quick(1).folder == PAPER / "quick"
    assert quick(1).page != full(1).page
    assert "/paper/quick/" in (ROOT / ".gitignore").read_text()


def test_the_command_names_its_parts():
    import subprocess

    done = subprocess.run(
        [sys.executable, "-m", "paper", "--help"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for part in ("artificial", "consistency", "real", "bound", "figures", "page"):
        assert part in done.stdout
    wrong = subprocess.run(
        [sys.executable, "-m", "paper", "nonsense"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert wrong.returncode == 2
    assert "Traceback" not in wrong.stderr


# --- the page -----------------------------------------------------------------------------------


def test_a_page_is_written_with_no_real_data_too(small):
    from dataclasses import replace

    from paper import artificial, beyond, consistency, page

    short = replace(small, bound_sets=2, missing_sets=2, copying_sets=2)
    artificial.section_6_1(short)
    artificial.appendix(short)
    consistency.theorem_1(short)
    consistency.theorem_2(short)
    beyond.over_bound(short)
    beyond.missing_votes(short)
    beyond.copying(short)
    written = page.written(short)
    assert "Ready Weka votes were not at hand in this run." in written
    assert "(Not drawn in this run: theorem_1.)" in written
    assert "MiniBooNE was not run here" in written
    assert "None" not in written
    assert "nan" not in written.split()


def test_a_page_needs_no_set_in_particular(small):
    from paper import page, real
    from paper.work import write

    rows = [
        {"set": name, "realization": each, "method": method}
        | {"balanced_accuracy": 0.7 + 0.01 * place + 0.002 * each, "with_prior": 0.7}
        | dict.fromkeys(("sensitivity", "specificity", "balanced", "b", "found_b"), 0.1)
        for name in ("musk", "miniboone")
        for each in range(2)
        for place, method in enumerate(real.METHODS)
    ]
    write(small.results / "real_runs_ready.csv", [row for row in rows if row["set"] == "musk"])
    for way in ("weka", "sklearn"):
        write(small.results / f"real_runs_{way}.csv", rows)
    for file in (PAPER / "results").glob("*.csv"):
        if not file.name.startswith("real_runs"):
            (small.results / file.name).write_bytes(file.read_bytes())
    small.figures.mkdir()
    for name in ("real_bars", "real_bars_sklearn", "real_bars_weka"):
        (small.figures / f"{name}.svg").touch()
    written = page.written(small)
    assert "Musk: majority 0.701, SML 0.711, i-SML 0.731, oracle 0.771." in written
    assert "i-SML is above SML on average on 2 of 2 sets; on Musk by 0.020, in 2 of 2." in written
    assert "| MiniBooNE | 130000, 50 | 130064, 50 |" in written
    assert "MiniBooNE was not run here" not in written
    assert "**Spambase: i-SML gains" not in written
    assert "None" not in written


PAGE = ROOT / "docs" / "paper.md"


def committed(name):
    return pl.read_csv(PAPER / "results" / f"{name}.csv", infer_schema_length=None)


def test_the_page_is_what_its_tables_say():
    from paper import page
    from paper.settings import full

    assert PAGE.read_text("utf-8") == page.written(full(1)), "run python -m paper page"


def test_every_figure_of_the_page_is_there_and_small_and_no_other():
    import re

    shown = re.findall(r"^!\[[^\]]+\]\(\.\./(paper/figures/\w+)\.svg\)$", PAGE.read_text(), re.M)
    assert len(shown) == PAGE.read_text().count("![")
    drawn = {f"paper/figures/{file.stem}" for file in (PAPER / "figures").iterdir()}
    assert set(shown) == drawn
    for name in shown:
        for end in ("svg", "png"):
            assert 1000 < (ROOT / f"{name}.{end}").stat().st_size < 200_000


def test_beside_every_figure_stands_what_the_source_reports():
    import re

    page = PAGE.read_text("utf-8")
    beside = re.findall(
        r"^!\[.*\)\n\n\| The source \| Here \|\n.*\n\| .{10,} \| .{10,} \|$", page, re.M
    )
    assert len(beside) == page.count("![")


def test_the_full_run_reaches_what_it_must_on_artificial_data():
    slopes = committed("artificial_slopes")
    assert slopes["slope"].is_between(-1.1, -0.9).all()
    gain = committed("artificial_gain").filter(pl.col("n") >= 1000)
    assert set(gain["b"]) == {0.0, 0.3, 0.6}
    assert (gain["likelihood_over_tensor"] <= 1).all()


@pytest.mark.parametrize("way", ["ready", "sklearn"])
def test_the_full_run_reaches_what_it_must_on_real_data(way):
    runs = committed(f"real_runs_{way}").pivot(
        on="method", index=["set", "realization"], values="balanced_accuracy"
    )
    means = runs.group_by("set").mean()
    assert set(means["set"]) == {"magic", "spambase", "musk", "mnist"}
    assert (means["i-SML likelihood"] > means["SML"]).sum() >= 3
    assert (means["SML"] > means["majority"]).all()
    if way == "ready":
        magic = runs.filter(pl.col("set") == "magic")
        gain = magic["i-SML likelihood"] - magic["SML"]
        assert len(gain) == 30
        assert (gain > 0).sum() >= 29
        assert 0.015 <= gain.mean() <= 0.025
