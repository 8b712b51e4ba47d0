"""Charts: what they draw is what the estimate says, and they are written in every form."""

import subprocess
import sys
from importlib.resources import files

import numpy as np
import pytest

import labelfree as lf
from labelfree import _view, charts
from labelfree._layout import area_of, equal_lines, named

from .drawn import votes_of_classes

pytest.importorskip("altair", reason="charts need the extra: report")
pytest.importorskip("vl_convert", reason="charts need the extra: report")

HOSTILE = '</script><script>alert("1")</script><!--'
EVERY = (charts.rates, charts.pairs, charts.imbalance, charts.by_prevalence, charts.confusion)


@pytest.fixture(scope="module")
def digits():
    return lf.estimate(str(files("labelfree") / "example" / "digits.csv"))


@pytest.fixture(scope="module")
def copied():
    drawn = lf.simulate.votes(3000, classifiers=8, prevalence=0.3, copies=[(0, 1, 2)], seed=1)
    return lf.estimate(drawn.votes)


@pytest.fixture(scope="module")
def moods():
    return lf.estimate(votes_of_classes(["sad", "calm", "glad"], items=900, classifiers=30)[0])


@pytest.fixture(scope="module")
def unidentified():
    return lf.estimate(np.random.default_rng(0).integers(0, 2, (300, 5)))


def rows_of(chart, *fields):
    """The rows, of all layers, that have all of these fields."""
    found = []

    def look(part):
        if isinstance(part, dict):
            values = part.get("values")
            if isinstance(values, list) and values and isinstance(values[0], dict):
                found.extend(row for row in values if set(fields) <= set(row))
            for each in part.values():
                look(each)
        elif isinstance(part, list):
            for each in part:
                look(each)

    look(chart.to_dict())
    return found


def test_the_chart_of_rates_shows_the_table(digits):
    rows = {row["classifier"]: row for row in rows_of(charts.rates(digits), "said")}
    assert set(rows) == set(digits.classifiers)
    for row in digits.table():
        shown = rows[row["classifier"]]
        for rate in ("sensitivity", "specificity"):
            assert [shown[f"{rate}{end}"] for end in ("", "_low", "_high")] == [
                row[f"{rate}{end}"] for end in ("", "_low", "_high")
            ]


def test_lines_of_equal_balanced_accuracy_are_what_they_say():
    area = area_of(
        [{"specificity": 0.5, "sensitivity": 0.6}, {"specificity": 0.9, "sensitivity": 0.95}],
        intervals=False,
    )
    lines = equal_lines(area, [], 340, intervals=False)
    assert len({row["line"] for row in lines}) >= 3
    for row in lines:
        assert (row["sensitivity"] + row["specificity"]) / 2 == pytest.approx(float(row["line"]))
        assert area.left - 1e-9 <= row["specificity"] <= area.right + 1e-9
        assert area.bottom - 1e-9 <= row["sensitivity"] <= area.top + 1e-9


def test_names_of_lines_keep_clear_of_dots():
    area = area_of(
        [{"specificity": 0.4, "sensitivity": 0.4}, {"specificity": 0.9, "sensitivity": 0.9}],
        intervals=False,
    )
    free = {line["line"]: line for line in equal_lines(area, [], 340, intervals=False)}

    def place(rows):
        lines = equal_lines(area, rows, 340, intervals=False)
        (named_here,) = (line for line in lines if line["words"] and line["line"] == "0.60")
        return named_here["specificity"], named_here["sensitivity"]

    assert "0.60" in free
    usual = dict(zip(("specificity", "sensitivity"), place([]), strict=True))
    moved = place([usual])
    assert abs(moved[0] - usual["specificity"]) > 0.05


def test_names_are_given_room_and_the_best_comes_first():
    spots = [(0.9, 0.9), (0.9, 0.9001), (0.9, 0.9002), (0.9, 0.9003), (0.9, 0.9004), (0.5, 0.5)]
    rows = [
        {"classifier": f"classifier_{i}", "specificity": x, "sensitivity": y}
        for i, (x, y) in enumerate(spots)
    ]
    found = named(rows, area_of(rows, intervals=False), 380)
    assert "classifier_0" in {row["short"] for row in found}
    assert "classifier_5" in {row["short"] for row in found}
    assert len(found) < len(rows)


def test_the_map_of_pairs_shows_the_residuals_of_the_alarm(copied):
    names = copied.classifiers
    rows = rows_of(charts.pairs(copied), "residual")
    assert len(rows) == len(names) * (len(names) - 1)
    for row in rows:
        one, other = (names.index(name) for name in row["pair"].split(" and "))
        assert row["residual"] == pytest.approx(copied.residuals[one, other], abs=0.006)
        assert row["kind"] == ("more" if copied.residuals[one, other] > 0 else "less")


@pytest.mark.parametrize("copying", [0.6, 1.0])
def test_the_map_blames_those_who_copy_and_nobody_else(copying):
    drawn = lf.simulate.votes(
        5000, classifiers=9, prevalence=0.3, copies=[(0, 1, 2)], copying=copying, seed=1
    )
    estimate = lf.estimate(drawn.votes)
    assert [set(group) for group in estimate.groups] == [set(estimate.classifiers[:3])]
    inside = np.zeros((9, 9), dtype=bool)
    inside[:3, :3] = True
    np.fill_diagonal(inside, val=False)
    bound = _view.pairs_of(estimate).bound
    assert (estimate.residuals[inside] > 3 * bound).all()
    assert np.abs(estimate.residuals[~inside]).max() < bound


def test_the_residuals_of_a_saved_estimate_come_back(copied, tmp_path):
    copied.save(tmp_path / "e.json")
    assert np.array_equal(lf.load(tmp_path / "e.json").residuals, copied.residuals)


def test_groups_stand_together_in_the_map_and_are_framed(copied):
    assert copied.groups
    found = _view.pairs_of(copied)
    for (first, last), group in zip(found.groups, copied.groups, strict=True):
        assert set(found.names[first : last + 1]) == set(group)
    assert len(rows_of(charts.pairs(copied), "first", "last")) == len(copied.groups)


def test_a_map_of_many_shows_the_classifiers_of_the_strongest_pairs():
    drawn = lf.simulate.votes(2000, classifiers=60, copies=[(40, 50)], copying=0.6, seed=5)
    estimate = lf.estimate(drawn.votes, dependence="test")
    found = _view.pairs_of(estimate)
    assert len(found.names) == _view.MOST_IN_MAP
    assert found.total == 60
    i, j = np.unravel_index(np.abs(estimate.residuals).argmax(), (60, 60))
    assert {estimate.classifiers[i], estimate.classifiers[j]} == set(found.strongest[0][:2])
    assert {"classifier_41", "classifier_51"} <= set(found.names)


def test_the_chart_of_the_imbalance_marks_the_estimate_on_the_curve(digits):
    chart = charts.imbalance(digits)
    (mark,) = {row["imbalance"]: row for row in rows_of(chart, "said")}.values()
    assert mark["imbalance"] == digits.imbalance
    curve = rows_of(chart, "prevalence", "log_likelihood")
    best = max(curve, key=lambda row: row["log_likelihood"])
    assert best["log_likelihood"] == max(digits.origin.log_likelihood)
    (band,) = rows_of(chart, "low", "high")
    assert [band["low"], band["high"]] == pytest.approx(digits.interval("imbalance").tolist())


def test_the_chart_by_prevalence_shows_what_the_estimate_says(digits):
    rows = rows_of(charts.by_prevalence(digits), "sensitivity", "classifier")
    lines = {(row["prevalence"], row["classifier"]): row for row in rows}
    for row in digits.by_prevalence():
        assert lines[row["prevalence"], row["classifier"]]["specificity"] == row["specificity"]


def test_bands_by_prevalence_hold_the_rates_that_they_say():
    estimate = lf.estimate(lf.simulate.votes(2000, classifiers=50, seed=2).votes)
    bands = rows_of(charts.by_prevalence(estimate), "median", "rate")
    rates = [row["sensitivity"] for row in estimate.by_prevalence() if row["prevalence"] == 0.5]
    (band,) = {
        row["median"]: row
        for row in bands
        if row["rate"] == "sensitivity" and row["prevalence"] == 0.5
    }.values()
    assert band["median"] == pytest.approx(np.median(rates))
    assert band["low"] == pytest.approx(np.quantile(rates, 0.25))


def test_the_chart_of_confusion_shows_the_best_or_those_that_are_named(digits, moods):
    for estimate in (digits, moods):
        rows = rows_of(charts.confusion(estimate), "probability")
        best = np.argsort(-estimate.balanced_accuracy, kind="stable")[:12]
        shown = list(dict.fromkeys(row["classifier"] for row in rows))
        assert shown == [estimate.classifiers[place] for place in best]
        assert len(rows) == len(shown) * len(estimate.classes) ** 2
        labels = [str(label) for label in estimate.classes]
        for row in rows:
            at = (
                estimate.classifiers.index(row["classifier"]),
                *map(labels.index, (row["true"], row["vote"])),
            )
            assert row["probability"] == estimate.confusion[at]
            assert row["kind"] == ("right" if at[1] == at[2] else "wrong")
    rows = rows_of(charts.confusion(moods, classifiers=["classifier_30", "classifier_2"]), "vote")
    assert list(dict.fromkeys(row["classifier"] for row in rows)) == [
        "classifier_30",
        "classifier_2",
    ]
    low, high = moods.interval("confusion")[29, 0, 0]
    assert (rows[0]["probability_low"], rows[0]["probability_high"]) == (low, high)
    assert f"({100 * low:.0f}–{100 * high:.0f} %)" in rows[0]["said"]


@pytest.mark.parametrize("wrong", [["nobody"], []])
def test_matrices_of_nobody_are_refused(wrong, digits):
    with pytest.raises(lf.OptionsError, match="classifiers= must name classifiers of the estimate"):
        charts.confusion(digits, classifiers=wrong)


def test_with_more_than_two_classes_rates_are_the_shares_of_each_that_are_called_right(moods):
    right = np.einsum("ikk->ik", moods.confusion)
    points = rows_of(charts.rates(moods), "classifier", "probability")
    assert len(points) == right.size
    for row in points:
        at = moods.classifiers.index(row["classifier"]), moods.classes.index(row["true"])
        assert row["probability"] == right[at]
    medians = rows_of(charts.rates(moods), "median")
    assert {row["true"]: row["median"] for row in medians} == pytest.approx(
        dict(zip(moods.classes, np.median(right, axis=0), strict=True))
    )


def test_with_many_classifiers_and_classes_rates_are_bands():
    votes, _ = votes_of_classes(list("abcd"), items=400, classifiers=60)
    estimate = lf.estimate(votes)
    chart = charts.rates(estimate)
    assert rows_of(chart, "classifier") == []
    right = np.einsum("ikk->ik", estimate.confusion)
    for row in rows_of(chart, "median"):
        values = right[:, estimate.classes.index(row["true"])]
        assert (values <= row["low"]).mean() == pytest.approx(0.25, abs=0.02)
        assert (values <= row["high"]).mean() == pytest.approx(0.75, abs=0.02)


@pytest.mark.parametrize("draw", [charts.imbalance, charts.by_prevalence])
def test_charts_of_two_classes_say_so(draw, moods):
    with pytest.raises(lf.LabelfreeError, match="two classes"):
        draw(moods)


def test_a_map_of_many_strong_pairs_is_not_one_block():
    votes = lf.simulate.votes(20_000, classifiers=9, copies=[range(6)], copying=0.5, seed=1).votes
    rows = rows_of(charts.pairs(lf.estimate(votes, dependence="test")), "strength")
    full = [row for row in rows if row["strength"] == 1.0]
    assert 0 < len(full) <= 0.25 * len(rows)


@pytest.mark.parametrize("draw", EVERY)
def test_a_chart_is_written_as_svg_png_and_html(draw, digits, tmp_path):
    chart = draw(digits)
    for ending, start in (("svg", b"<svg"), ("png", b"\x89PNG"), ("html", b"<!DOCTYPE html>")):
        path = tmp_path / f"chart.{ending}"
        chart.save(path)
        assert path.read_bytes().strip().startswith(start)


@pytest.mark.parametrize("draw", EVERY)
def test_hostile_names_cannot_end_a_script(draw, tmp_path):
    drawn = lf.simulate.votes(2000, classifiers=5, seed=4)
    names = [f"{HOSTILE}{i}" for i in range(5)]
    classes = ["no", "</script>"]
    estimate = lf.estimate(np.array(classes)[drawn.votes], classifiers=names, classes=classes)
    chart = draw(estimate)
    assert "</script" not in chart.to_json()
    assert "<!--" not in chart.to_json()
    chart.save(tmp_path / "chart.svg")
    assert "<script" not in (tmp_path / "chart.svg").read_text()


@pytest.mark.parametrize("classifiers", [5, 45])
@pytest.mark.parametrize("draw", [charts.rates, charts.confusion])
def test_hostile_labels_cannot_end_a_script(draw, classifiers, tmp_path):
    labels = [HOSTILE, "<!--<script>", "plain"]
    votes, _ = votes_of_classes(labels, items=300, classifiers=classifiers)
    draw(lf.estimate(votes)).save(tmp_path / "c.html", inline=True)
    text = (tmp_path / "c.html").read_text("utf-8")
    assert "</script><script>alert" not in text
    assert "<!--<script>" not in text


@pytest.mark.parametrize("draw", EVERY)
def test_unidentified_estimates_have_no_charts(draw, unidentified):
    with pytest.raises(lf.NotIdentifiedError, match=r"nothing to draw: .* What would help: "):
        draw(unidentified)


def test_three_classifiers_have_no_map_of_pairs():
    estimate = lf.estimate(lf.simulate.votes(1000, classifiers=3, seed=1).votes)
    with pytest.raises(lf.LabelfreeError, match="no map of pairs"):
        charts.pairs(estimate)


@pytest.mark.parametrize("absent", ["altair", "vl_convert"])
def test_a_missing_package_is_named_with_the_extra(absent, digits, monkeypatch):
    monkeypatch.setitem(sys.modules, absent, None)
    with pytest.raises(lf.LabelfreeError, match=rf"need {absent}.*install labelfree\[report\]"):
        charts.rates(digits)


def test_importing_the_package_leaves_altair_alone():
    code = "import sys, labelfree; labelfree.charts.rates; print('altair' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("low", "high", "places"),
    [(0.7, 0.8, 0), (0.79, 0.801, 0), (0.79, 0.799, 1), (0.79, 0.7905, 2), (None, None, 0)],
)
def test_decimals_are_those_that_the_interval_supports(low, high, places):
    assert _view.decimals(low, high) == places
    assert _view.decimals(low, high, rough=True) == 0


def test_a_long_name_loses_its_middle():
    assert _view.short("ChatGPT-0301/Vanilla/swap", 11) == "ChatG…/swap"
    assert _view.short("short", 11) == "short"
