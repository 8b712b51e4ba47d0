"""The report: one page, everything in it, nothing from strangers taken for anything but text."""

import json
import re
import sys
import time
from html.parser import HTMLParser
from importlib.resources import files

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import labelfree as lf
from labelfree import _cli
from labelfree._movement import MOST_LISTED
from labelfree._view import certain

from .drawn import votes_of_classes

pytest.importorskip("altair", reason="the report needs its extra")
pytest.importorskip("jinja2", reason="the report needs its extra")
pytest.importorskip("vl_convert", reason="the report needs its extra")

DIGITS = str(files("labelfree") / "example" / "digits.csv")
SECTIONS = (
    "verdict",
    "classifiers",
    "rates",
    "imbalance",
    "pairs",
    "assumed",
    "consensus",
    "next",
    "how",
)
SECTIONS_OF_CLASSES = (
    "verdict",
    "shares",
    "classifiers",
    "rates",
    "consensus",
    "confusion",
    "next",
    "how",
)
HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "</style><!--",
    "{{ 7 * 7 }}",
    "' onmouseover='alert(3)",
]
MOST_BYTES, MOST_BYTES_OF_A_THOUSAND = 3_000_000, 6_000_000


class Page(HTMLParser):
    """The ids and the headings, the words, and what could load or run."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.words, self.tags, self.loads, self.handlers = [], [], [], [], []
        self.text = path.read_text("utf-8")
        self.feed(self.text)
        self.said = re.sub(r"\s+", " ", " ".join(self.words))

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        for name, value in attributes:
            if name == "id":
                self.ids.append(value)
            if name in ("src", "href", "xlink:href", "action", "srcset"):
                self.loads.append(value)
            if name.startswith("on"):
                self.handlers.append((tag, name))

    def handle_data(self, words):
        self.words.append(words)


@pytest.fixture(scope="module")
def digits():
    return lf.estimate(DIGITS)


@pytest.fixture(scope="module")
def written(digits, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    digits.report(path, votes=DIGITS)
    return Page(path)


def report_of(estimate, folder, **options):
    estimate.report(folder / "r.html", **options)
    return Page(folder / "r.html")


def test_the_sections_stand_in_their_order(written):
    places = [written.ids.index(name) for name in SECTIONS]
    assert places == sorted(places)
    assert len(set(written.ids)) == len(written.ids)


def test_the_page_says_what_the_estimate_says(digits, written):
    for sentence in (*digits.verdict.reasons, *digits.verdict.advice):
        assert sentence in written.said
    low, high = digits.interval("prevalence")
    assert f"{100 * digits.prevalence:.0f} %" in written.said
    assert not re.search(r"built-in|object at 0x|None|\bnan\b", written.said)
    assert f"{100 * low:.0f}–{100 * high:.0f} %" in written.said
    assert digits.origin.tally_hash in written.said
    assert lf.__version__ in written.said
    for name in digits.classifiers:
        assert name in written.said.replace("_ ", "_").replace(" _", "_")


def test_the_page_is_one_small_file_that_loads_nothing(written):
    assert len(written.text.encode()) < MOST_BYTES
    assert {each for each in written.loads if not each.startswith("#")} == {"data:,"}
    assert not re.search(r"https?://(?!www\.w3\.org/)", written.text)
    assert "url(http" not in written.text
    assert "default-src 'none'" in written.text


def test_the_same_estimate_and_votes_make_the_same_page(digits, written, tmp_path):
    assert report_of(digits, tmp_path, votes=DIGITS).text == written.text


@pytest.mark.parametrize("source", ["votes", "loaded", "patterns"])
def test_names_and_labels_are_text_whatever_is_in_them(source, tmp_path):
    drawn = lf.simulate.votes(1500, classifiers=5, copies=[(0, 1)], seed=3)
    labels = np.array(["<b>no</b>", "</script><script>alert(4)</script>"])
    frame = pl.DataFrame(labels[drawn.votes], schema=HOSTILE)
    frame = frame.insert_column(0, pl.Series("item", [f"<i>{i}</i>" for i in range(1500)]))
    estimate = lf.estimate(frame)
    if source == "loaded":
        estimate.save(tmp_path / "e.json")
        estimate = lf.load(tmp_path / "e.json")
    page = report_of(estimate, tmp_path, votes=frame if source == "votes" else None)
    assert page.tags.count("script") == 1
    assert page.tags.count("style") == 1
    assert not {"img", "b", "i"} & set(page.tags)
    assert not re.search(r"built-in|object at 0x|None|nan", page.said)
    assert page.handlers == []
    assert "49" not in re.findall(r"\b49\b", page.said) or "{{ 7 * 7 }}" in page.said
    plain = page.said.replace(" ", "").replace("\u2060", "")
    for name in (*HOSTILE, *labels):
        assert name.replace(" ", "") in plain


def test_items_are_named_and_ranked(digits, tmp_path):
    page = report_of(digits, tmp_path, votes=DIGITS)
    table = digits.label(pl.read_csv(DIGITS))
    sure = np.maximum(table["probability"], 1 - table["probability"])
    first = table["item"][int(np.argmin(sure))]
    assert first in page.said.replace("_ ", "_")
    assert "Items to look at first" in page.said


def movement(votes, **options):
    estimate = lf.estimate(votes, **options)
    return estimate, estimate._labeller().movement(estimate._seen, votes, {})


def test_the_movement_counts_what_the_labels_say():
    drawn = lf.simulate.votes(3000, classifiers=7, prevalence=0.3, missing=0.2, seed=5)
    votes = np.where(drawn.votes < 0, np.nan, drawn.votes)
    votes[0] = np.nan
    estimate, found = movement(votes)
    with pytest.warns(lf.LabelfreeWarning):
        consensus = np.array(estimate.label(votes)).astype(int)
    ones, zeros = (votes == 1).sum(axis=1), (votes == 0).sum(axis=1)
    voted = ones + zeros > 0
    majority = np.where(ones > zeros, 1, np.where(ones < zeros, 0, 2))
    expected = np.zeros((3, 2))
    np.add.at(expected, (majority[voted], consensus[voted]), 1)
    assert np.array_equal(found.moved, expected)
    assert found.items == voted.sum()
    assert found.unvoted == 1
    differ = (majority < 2) & (majority != consensus) & voted
    assert found.share_moved == pytest.approx(differ.sum() / (majority[voted] < 2).sum())
    assert found.histogram.sum() == voted.sum()
    assert found.histogram[1].sum() == differ.sum()
    probability = estimate._labeller()  # the ranking, by the plain way
    with pytest.warns(lf.LabelfreeWarning):
        sure = np.abs(np.array(estimate.probability(votes)) - 0.5)
    order = [i for i in np.argsort(sure, kind="stable") if voted[i]]
    shown = [row["certainty"] for row in found.uncertain]
    assert shown == pytest.approx(0.5 + sure[order[:MOST_LISTED]])
    assert all(row["label"] != row["majority"] for row in found.overruled)
    assert [row["certainty"] for row in found.overruled] == sorted(
        (row["certainty"] for row in found.overruled), reverse=True
    )
    assert probability is not None


def test_the_page_says_how_many_items_move_and_where_to(tmp_path):
    votes = lf.simulate.votes(4000, classifiers=8, prevalence=0.3, copies=[(0, 1, 2)], seed=1).votes
    estimate, found = movement(votes)
    assert found.moved[1, 0] > 0
    for source in (votes, None):
        page = report_of(estimate, tmp_path, votes=source)
        assert f"{int(found.moved[1, 0]):,} go from 1 to 0" in page.said
        assert "object at 0x" not in page.said
    first = estimate._labeller().movement(None, lf.tally(votes), {}).uncertain[0]
    assert f"{' '.join(map(str, first['item']))} {first['items']:.0f} " in page.said


@pytest.mark.parametrize(
    ("probability", "words"),
    [(1.0, "100 %"), (0.99996, "> 99.9 %"), (0.996, "99.6 %"), (0.87, "87 %"), (0.5, "50 %")],
)
def test_what_is_nearly_certain_does_not_read_as_certain(probability, words):
    assert certain(probability) == words


def test_patterns_say_the_same_as_items():
    votes = lf.simulate.votes(2000, classifiers=5, seed=6).votes
    estimate, by_item = movement(votes)
    by_pattern = estimate._labeller().movement(None, lf.tally(votes), {})
    assert np.array_equal(by_item.moved, by_pattern.moved)
    assert np.array_equal(by_item.histogram, by_pattern.histogram)
    assert by_pattern.by_pattern
    assert not by_item.by_pattern
    first = by_pattern.uncertain[0]
    rows = (votes == np.array(first["item"])).all(axis=1)
    assert rows.sum() == first["items"]


def test_without_votes_there_are_patterns_and_a_loaded_estimate_says_how_to_get_items(
    digits, tmp_path
):
    assert "Vote patterns to look at first" in report_of(digits, tmp_path).said
    digits.save(tmp_path / "e.json")
    page = report_of(lf.load(tmp_path / "e.json"), tmp_path)
    assert "votes were not at hand" in page.said


def test_an_unidentified_estimate_has_a_page(tmp_path):
    estimate = lf.estimate(np.random.default_rng(0).integers(0, 2, (300, 5)))
    assert estimate.verdict.level == "unidentified"
    page = report_of(estimate, tmp_path)
    assert "Unidentified" in page.said
    assert estimate.verdict.reasons[0] in page.said
    assert estimate.verdict.advice[0] in page.said
    assert "svg" not in page.tags
    assert "classifier_ 5" in page.said


def test_an_estimate_without_intervals_has_a_page(digits, tmp_path):
    kept = digits.as_dict()
    kept["model"]["spread"] = kept["model"]["doubt"] = None
    (tmp_path / "e.json").write_text(json.dumps(kept))
    bare = lf.load(tmp_path / "e.json")
    with pytest.raises(lf.NotIdentifiedError):
        bare.interval("sensitivity")
    page = report_of(bare, tmp_path)
    assert f"{100 * bare.sensitivity[0]:.0f} %" in page.said


def test_an_estimate_of_an_older_version_has_a_page(digits, tmp_path):
    kept = digits.as_dict()
    del kept["origin"]
    (tmp_path / "e.json").write_text(json.dumps(kept))
    page = report_of(lf.load(tmp_path / "e.json"), tmp_path)
    assert "imbalance" not in page.ids
    assert "pairs" in page.ids


def test_rates_by_prevalence_stand_there_where_the_alarm_is_up_and_not_elsewhere(digits, tmp_path):
    assert digits.alarm.raised
    calm = lf.estimate(lf.simulate.votes(2000, classifiers=6, seed=1).votes)
    assert not calm.alarm.raised
    assert "assumed" not in report_of(calm, tmp_path).ids


def test_copying_groups_are_named(tmp_path):
    drawn = lf.simulate.votes(4000, classifiers=8, prevalence=0.3, copies=[(0, 1, 2)], seed=1)
    estimate = lf.estimate(drawn.votes)
    assert estimate.groups
    said = report_of(estimate, tmp_path).said
    assert ", ".join(estimate.groups[0]) in said
    assert "group 1" in said


@pytest.fixture(scope="module")
def thousand():
    votes = lf.simulate.votes(600, classifiers=1000, seed=1).votes
    return lf.estimate(votes, dependence="test"), votes


def test_a_thousand_classifiers_make_a_page_in_seconds(thousand, digits, tmp_path):
    estimate, votes = thousand
    digits.report(tmp_path / "warm.html")  # the first chart of a process starts vl-convert
    started = time.process_time()
    page = report_of(estimate, tmp_path, votes=votes)
    assert time.process_time() - started < 5.0
    assert len(page.text.encode()) < MOST_BYTES_OF_A_THOUSAND
    assert page.tags.count("tr") > 1000


def test_nothing_is_left_of_a_page_that_failed(digits, tmp_path, monkeypatch):
    (tmp_path / "r.html").write_text("before")
    monkeypatch.setattr("labelfree.report.page_of", lambda *_: {})
    with pytest.raises(Exception, match="no attribute"):
        digits.report(tmp_path / "r.html")
    assert (tmp_path / "r.html").read_text() == "before"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("absent", ["altair", "jinja2", "vl_convert"])
def test_a_missing_package_is_named_with_the_extra(absent, digits, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, absent, None)
    with pytest.raises(lf.LabelfreeError, match=rf"need {absent}.*install labelfree\[report\]"):
        digits.report(tmp_path / "r.html")
    assert not (tmp_path / "r.html").exists()


def test_votes_of_others_are_refused(digits, tmp_path):
    with pytest.raises(lf.OptionsError, match="knows nothing of classifier"):
        digits.report(tmp_path / "r.html", votes=lf.tally([["0-4"] * 3, ["5-9"] * 3]))
    with pytest.raises(lf.OptionsError, match="is of classes 0-4, 5-9"):
        digits.report(tmp_path / "r.html", votes=lf.tally([[0, 1, 1], [1, 0, 0]]))


# --- more than two classes ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def moods():
    votes, _ = votes_of_classes(["sad", "calm", "glad"], items=900, classifiers=5)
    return lf.estimate(votes), votes


def test_more_than_two_classes_have_their_sections_in_order(moods, tmp_path):
    estimate, votes = moods
    page = report_of(estimate, tmp_path, votes=votes)
    places = [page.ids.index(name) for name in SECTIONS_OF_CLASSES]
    assert places == sorted(places)
    assert not {"imbalance", "assumed"} & set(page.ids)
    assert not re.search("[Ss]ensitivity|[Ss]pecificity|[Pp]revalence|built-in|None", page.said)
    for share, (low, high) in zip(
        estimate.class_probabilities, estimate.interval("class_probabilities"), strict=True
    ):
        assert f"{100 * share:.0f} % {100 * low:.0f}–{100 * high:.0f} %" in page.said


def test_each_matrix_of_a_page_is_the_estimates(moods, tmp_path):
    estimate, _ = moods
    estimate.report(tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text()
    for name, matrix, ends in zip(
        estimate.classifiers, estimate.confusion, estimate.interval("confusion"), strict=True
    ):
        own = text.split(f"<caption>{name}</caption>")[1].split("</table>")[0]
        cells = re.findall(
            r'<td( class="right")? style="[^"]*">(\d+)<span class="ends">(\d+)–(\d+)</span></td>',
            own,
        )
        shown = np.array([[int(part) for part in cell[1:]] for cell in cells]).reshape(3, 3, 3)
        assert np.allclose(shown[..., 0], 100 * matrix, atol=0.51)
        assert np.allclose(shown[..., 1:], 100 * ends, atol=0.51)
        assert [bool(cell[0]) for cell in cells] == np.eye(3, dtype=bool).ravel().tolist()


def test_votes_of_an_item_are_counted_by_label(moods, tmp_path):
    estimate, votes = moods
    first = votes.row(0)[1:]
    found = estimate._labeller().movement(estimate._seen, votes, {}).uncertain[0]
    page = report_of(estimate, tmp_path, votes=votes)
    most = max(found["votes"])
    label = estimate.classes[found["votes"].index(most)]
    assert f"{label} ×{most}" in page.said  # said has plain blanks
    assert len(first) == 5


@pytest.mark.parametrize(("classifiers", "classes"), [(300, 10), (40, 60)])
def test_a_page_of_many_matrices_stays_small(classifiers, classes, tmp_path):
    votes, _ = votes_of_classes(list(range(classes)), items=600, classifiers=classifiers)
    page = report_of(lf.estimate(votes, dependence="ignore"), tmp_path)
    assert len(page.text.encode()) < MOST_BYTES_OF_A_THOUSAND
    left_out = re.search(r"(\d+) more are left out", page.said)
    matrices = page.text.count("<caption>classifier_")
    assert matrices + (int(left_out[1]) if left_out else 0) == classifiers
    assert matrices >= 4


def test_classes_that_no_votes_tell_apart_have_a_page(tmp_path):
    noise = np.random.default_rng(0).integers(0, 3, (300, 5))
    page = report_of(lf.estimate(noise), tmp_path)
    assert "Unidentified" in page.said
    assert "confusion" not in page.ids


# --- the command line ---------------------------------------------------------------------------


def run(*words):
    return CliRunner().invoke(_cli.app, [str(word) for word in words])


def test_the_command_writes_the_page_that_python_writes(written, tmp_path):
    done = run("report", DIGITS, "-o", tmp_path / "r.html")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "r.html").read_text("utf-8") == written.text
    assert "caution" in done.output


def test_the_command_takes_a_saved_estimate_a_tally_and_several_files(digits, tmp_path):
    digits.save(tmp_path / "e.json")
    lf.tally(DIGITS).save(tmp_path / "a.tally")
    for words in (["e.json"], ["a.tally"], ["a.tally", DIGITS]):
        paths = [tmp_path / word if word != DIGITS else word for word in words]
        done = run("report", *paths, "-o", tmp_path / "r.html")
        assert done.exit_code == 0, done.output
        page = Page(tmp_path / "r.html")
        assert ("votes were not at hand" in page.said) == (words == ["e.json"])


def test_a_name_that_is_no_page_is_refused_before_any_work(tmp_path):
    done = run("report", tmp_path / "absent.csv", "-o", tmp_path / "r.csv")
    assert done.exit_code == 2
    assert "choose a name that ends in .html" in done.output


# --- notebooks ----------------------------------------------------------------------------------


def test_a_notebook_shows_a_table_with_names_as_text(digits):
    drawn = lf.simulate.votes(1500, classifiers=5, seed=3)
    shown = lf.estimate(drawn.votes, classifiers=HOSTILE)._repr_html_()
    assert "<script" not in shown
    assert "&lt;script&gt;" in shown
    assert "<img" not in shown
    whole = digits._repr_html_()
    assert whole.count("<tr>") == 11
    assert digits.verdict.level in whole
    assert "95 % intervals" in whole
    assert f"What would help: {digits.verdict.advice[0]}" in whole


def test_a_notebook_shows_how_common_each_of_more_than_two_classes_is(moods):
    estimate, _ = moods
    shown = estimate._repr_html_()
    assert "<th" in shown
    assert "accuracy" in shown
    assert "sensitivity" not in shown
    for label, share in zip(estimate.classes, estimate.class_probabilities, strict=True):
        assert f"{label} {100 * share:.0f} % (" in shown


def test_a_notebook_needs_no_extra(digits, monkeypatch):
    for absent in ("altair", "jinja2", "vl_convert"):
        monkeypatch.setitem(sys.modules, absent, None)
    assert "Verdict" in digits._repr_html_()
    noise = lf.estimate(np.random.default_rng(0).integers(0, 2, (300, 5)))
    assert "unidentified" in noise._repr_html_()
