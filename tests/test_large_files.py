"""Files read in pieces give what the same votes give in memory; bad ones are refused in one sentence."""

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import labelfree as lf
from labelfree import FileError, VotesError, _files, _large_files, simulate
from labelfree._large_files import LargeFile, is_large, watching, with_types
from labelfree._tally import Tally

from .sentences import refused

ENDINGS = ("parquet", "csv", "tsv", "jsonl")


@pytest.fixture(autouse=True)
def small_is_large(tmp_path, monkeypatch):
    """In a folder of its own every file is large, and a piece has a few rows."""
    monkeypatch.chdir(tmp_path)
    for name in ("LARGE_CELLS", "LARGE_BYTES"):
        monkeypatch.setattr(_large_files, name, 0)
    monkeypatch.setattr(_large_files, "PIECE_CELLS", 700)
    monkeypatch.setattr(_large_files, "PIECE_BYTES", 3000)
    monkeypatch.setattr(_large_files, "LONG_ROWS", 500)


def drawn(items=600, m=5, seed=2, labels=("no", "yes")):
    """A table of votes with gaps, and a column of items."""
    votes = simulate.votes(items, classifiers=m, missing=0.1, seed=seed).votes
    words = np.array([*labels, None], dtype=object)[votes]
    table = pl.DataFrame({f"c{i}": words[:, i].tolist() for i in range(m)})
    return table.insert_column(0, pl.Series("item", [f"i{row}" for row in range(items)]))


def lay(table, name):
    _files.write_frame(table, name)
    return name


# --- the same answer --------------------------------------------------------------------------


@pytest.mark.parametrize("labels", [("no", "yes"), (0, 1), (1.5, -2.0), (False, True)])
@pytest.mark.parametrize("ending", ENDINGS)
def test_pieces_give_the_tally_of_the_whole(ending, labels):
    table = drawn(labels=labels)
    name = lay(table, f"v.{ending}")
    assert is_large(name)
    assert len(list(LargeFile(Path(name)).pieces())) > 3
    assert lf.tally(name) == lf.tally(table)
    kept = {"classifiers": ["c3", "c1", "c0"]}
    assert lf.tally(name, **kept) == lf.tally(table, **kept)
    renamed = table.rename({"item": "who"})
    lay(renamed, name)
    assert lf.tally(name, item="who") == lf.tally(table)


@pytest.mark.parametrize("ending", ENDINGS)
def test_pieces_give_the_estimate_of_the_whole_bit_for_bit(ending):
    table = drawn(2000)
    found = lf.estimate(lay(table, f"v.{ending}"))
    assert found.as_dict() == lf.estimate(table).as_dict()


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_long_form_is_read_by_shares_of_its_items(ending):
    long = drawn().unpivot(index="item", variable_name="who", value_name="said").drop_nulls()
    long = long.sample(fraction=1.0, shuffle=True, seed=1)
    columns = {"classifier": "who", "vote": "said"}
    name = lay(long.with_columns(more=pl.lit("?")), f"v.{ending}")
    assert len(list(LargeFile(Path(name)).shares(["item", "who", "said"], "item"))) > 3
    assert lf.tally(name, **columns) == lf.tally(long, **columns)


def test_many_classifiers_whose_patterns_do_not_repeat():
    table = drawn(300, m=70)
    assert lf.tally(lay(table, "v.parquet")) == lf.tally(table)


def test_labels_that_only_later_pieces_hold_are_classes():
    table = pl.concat([drawn(), drawn(5, labels=("maybe", "no"))])
    assert lf.tally(lay(table, "v.parquet")).classes == ("maybe", "no", "yes")
    assert lf.tally("v.parquet") == lf.tally(table)


# --- types ------------------------------------------------------------------------------------


@pytest.mark.parametrize("late", ["1.0", "true", "maybe", "", "nan", "+1", " 1", "1e3", "2."])
@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_a_column_of_text_may_change_its_kind_far_down(ending, late, monkeypatch):
    for room in (_files, _large_files):
        monkeypatch.setattr(room, "ROWS_TO_INFER_TYPES", 100)
    sign = _files.SEPARATORS[f".{ending}"]
    lines = ["a,b,c", *["1,0,1", "0,0,1"] * 300, f"1,{late},0"]
    Path(f"v.{ending}").write_text("\n".join(lines).replace(",", sign))
    whole = _files.read_frame(f"v.{ending}")
    pieces = with_types(f"v.{ending}", lambda file: [piece for _, piece in file.pieces()])
    assert pl.concat(pieces).equals(whole)
    assert pl.concat(pieces).schema == whole.schema


def test_fields_of_json_may_come_late_and_change_their_kind():
    early = '{"a": 1, "b": 0, "c": null}\n' * 300
    late = '{"a": 1, "b": 0.5, "c": true, "d": 1}\n' * 300
    Path("v.jsonl").write_text("\ufeff" + early + "\n" + late + early)
    pieces = with_types("v.jsonl", lambda file: [piece for _, piece in file.pieces()])
    whole = _files.read_frame("v.jsonl")
    assert pl.concat(pieces).equals(whole)
    assert pl.concat(pieces).schema == whole.schema


@pytest.mark.parametrize("end", ["", "\n", "\n\n\n"])
def test_blank_lines_are_no_rows_and_lines_without_votes_are(end):
    lines = ["a,b,c", "", *["1,0,1", "", ",,", "0,1,"] * 200]
    Path("v.csv").write_text("\n".join(lines) + end)
    assert lf.tally("v.csv").items == 600
    assert lf.tally("v.csv") == lf.tally(_files.read_frame("v.csv"))


# --- several files ----------------------------------------------------------------------------


def test_several_files_are_one_table(monkeypatch):
    table = drawn()
    parts = [table[:200], table[200:220], table[220:]]
    names = [
        lay(part, f"2026-{n}.{end}")
        for n, (part, end) in enumerate(zip(parts, ENDINGS, strict=False))
    ]
    for large in (0, 1 << 24):
        monkeypatch.setattr(_large_files, "LARGE_BYTES", large)
        monkeypatch.setattr(_large_files, "LARGE_CELLS", large)
        for votes in (
            names,
            tuple(map(Path, names)),
            "2026-*",
            Path("2026-?.*"),
            ["2026-0*", names[1], names[2]],
        ):
            assert lf.tally(votes) == lf.tally(table)
        assert lf.estimate("2026-*").as_dict() == lf.estimate(table).as_dict()
        assert Tally.from_batches(["2026-[01].*", names[2]]) == lf.tally(table)
        lf.tally(names[:2]).save("two.tally")
        assert lf.tally(["two.tally", names[2]]) == lf.tally(table)
        Path("two.tally").unlink()


def test_a_name_with_a_star_that_is_a_file_means_itself():
    table = drawn()
    lay(table, "v*.parquet")
    lay(drawn(seed=3), "v1.parquet")
    assert lf.tally("v*.parquet") == lf.tally(table)
    refused(lambda: lf.tally("w*.parquet"), "w*.parquet", "none that it matches", error=FileError)


def test_progress_is_told_in_rows_of_all_files():
    lay(drawn(), "a.parquet")
    lay(drawn(), "b.csv")
    told = []
    with watching(lambda *rows: told.append(rows)):
        lf.tally(["a.parquet", "b.csv"])
    lf.tally("a.parquet")
    assert told[0] == (0, 600)
    assert told[-1] == (1200, 1201)  # the header of a file of text is a line
    assert sorted(told) == told


# --- bad files --------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.0, 0.3, 0.95, 0.999])
def test_a_parquet_file_cut_short_is_refused(share):
    content = Path(lay(drawn(), "v.parquet")).read_bytes()
    Path("v.parquet").write_bytes(content[: int(share * len(content))])
    refused(lambda: lf.tally("v.parquet"), "v.parquet", error=FileError)
    refused(lambda: lf.tally(["v.parquet", "v.parquet"]), "v.parquet", error=FileError)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_table_without_rows_is_refused(ending):
    lay(drawn().head(0), f"v.{ending}")
    refused(lambda: lf.tally(f"v.{ending}"), f"v.{ending}", error=FileError)


def test_a_damaged_page_in_the_middle_is_refused():
    table = pl.DataFrame(simulate.votes(20000, classifiers=5).votes, schema=list("abcde"))
    table.write_parquet("v.parquet", row_group_size=1000)
    content = bytearray(Path("v.parquet").read_bytes())
    middle = len(content) // 2
    content[middle : middle + 4000] = b"\xff" * 4000
    Path("v.parquet").write_bytes(content)
    refused(lambda: lf.tally("v.parquet"), "v.parquet", "cannot be read", error=FileError)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["1,0"], "line 402: expected 3 cells as in the header, got 2"),
        (["1,0,1,1"], "line 402: expected 3 cells as in the header, got 4"),
        (["1,0,\udce9"], "not UTF-8"),
    ],
)
def test_a_line_that_is_no_row_is_named(lines, words):
    content = "\n".join(["a,b,c", *["1,0,1", "0,1,1"] * 200, *lines, ""])
    Path("v.csv").write_text(content, errors="surrogateescape")
    refused(lambda: lf.tally("v.csv"), "v.csv", words, error=FileError)


def test_a_label_too_many_in_a_later_piece_is_named_with_file_and_column():
    table = pl.concat([drawn(), drawn(3, labels=("no", "perhaps"), seed=8)])
    for ending in ENDINGS:
        name = lay(table, f"v.{ending}")
        said = refused(
            lambda name=name: lf.tally(name, classes=("no", "yes")), "'perhaps'", "Column 'c"
        )
        assert said.startswith(f"{name}, rows ")
        refused(lambda name=name: lf.tally(name, positive="yes"), "3 labels", "positive=")
    lay(drawn(), "a.parquet")
    said = refused(lambda: lf.tally(["a.parquet", "v.csv"], classes=("no", "yes")), "'perhaps'")
    assert said.startswith("v.csv, rows ")


def test_a_column_that_changes_its_type_between_files_is_named():
    lay(drawn(), "a.parquet")
    lay(drawn(labels=(0, 1)), "b.parquet")
    for votes in (["a.parquet", "b.parquet"], "[ab].parquet"):
        refused(
            lambda votes=votes: lf.tally(votes),
            "several kinds",
            "in column 'c0' of a.parquet",
            "in column 'c0' of b.parquet",
            error=VotesError,
        )
    other = drawn().with_columns(c2=pl.date(2026, 1, 1))
    said = refused(
        lambda: lf.tally(["a.parquet", lay(other, "c.parquet")]), "Column 'c2' holds Date"
    )
    assert said.startswith("c.parquet, rows 1 to ")


def test_other_classifiers_in_a_later_file_are_named():
    lay(drawn(), "a.parquet")
    lay(drawn().rename({"c2": "ann"}), "b.parquet")
    said = refused(lambda: lf.tally(["a.parquet", "b.parquet"]), "'ann', 'c2' is not in both")
    assert said.startswith("b.parquet")


def test_options_that_do_not_fit_are_refused_as_ever():
    name = lay(drawn(), "v.parquet")
    table = drawn()
    for options in (
        {"classifiers": ["c0", "c1", "ann"]},
        {"classifiers": "c0"},
        {"classifiers": ["c0", "c0", "c1"]},
        {"classifiers": ["item", "c1", "c2"], "item": "item"},
        {"item": "who"},
        {"classifier": "who", "vote": "said"},
        {"classifier": "who"},
        {"classifier": "c0", "vote": "c0"},
        {"positive": "maybe"},
        {"duplicates": "first"},
    ):
        with pytest.raises(lf.LabelfreeError) as expected:
            lf.tally(table, **options)
        said = refused(
            lambda options=options: lf.tally(name, **options), error=type(expected.value)
        )
        assert said.endswith(str(expected.value).partition(": ")[2] or str(expected.value))


# --- labels -----------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["posterior", "majority"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_labels_are_written_piece_by_piece_as_in_memory(ending, rule, monkeypatch):
    table = drawn(2000)
    found = lf.estimate(table)
    name = lay(table, f"v.{ending}")
    done = found.label_file(name, f"out.{ending}", rule=rule)
    whole = found.label(_files.read_frame(name), rule=rule)
    assert _files.read_frame(f"out.{ending}").equals(whole)
    times = dict(whole["label"].value_counts().iter_rows())
    assert (done.items, done.labels, done.unvoted) == (2000, times, 0)
    monkeypatch.setattr(_large_files, "LARGE_CELLS", 1 << 24)
    monkeypatch.setattr(_large_files, "LARGE_BYTES", 1 << 24)
    assert found.label_file(name, f"small.{ending}", rule=rule) == done
    assert _files.read_frame(f"small.{ending}").equals(whole)


def test_labels_of_a_long_file_stand_one_an_item():
    long = drawn().unpivot(index="item", variable_name="who", value_name="said").drop_nulls()
    found = lf.estimate(long, classifier="who", vote="said")
    found.label_file(lay(long, "v.parquet"), "out.parquet")
    assert pl.read_parquet("out.parquet").sort("item").equals(found.label(long))


def test_items_without_votes_are_warned_of_once():
    table = drawn(2000)
    silent = pl.DataFrame({name: [None] * 300 for name in table.columns}, schema=table.schema)
    found = lf.estimate(table)
    lay(pl.concat([table, silent]), "v.parquet")
    with pytest.warns(lf.LabelfreeWarning, match="300 items had no vote") as said:
        found.label_file("v.parquet", "out.parquet")
    assert len(said) == 1


def test_a_column_that_changes_its_kind_while_labels_are_written(monkeypatch):
    for room in (_files, _large_files):
        monkeypatch.setattr(room, "ROWS_TO_INFER_TYPES", 100)
    table = drawn(2000)
    found = lf.estimate(table)
    names = [*map(str, range(1999)), "last"]
    lay(table.with_columns(item=pl.Series(names)), "v.csv")
    found.label_file("v.csv", "out.csv")
    assert pl.read_csv("out.csv", infer_schema=False)["item"].to_list() == names


@pytest.mark.parametrize("ending", ENDINGS)
def test_labels_that_go_wrong_half_way_leave_the_old_file(ending):
    table = drawn(2000)
    found = lf.estimate(table)
    bad = pl.concat([table, drawn(3, labels=("no", "perhaps"), seed=8)])
    lay(bad, f"v.{ending}")
    Path(f"out.{ending}").write_text("old")
    refused(lambda: found.label_file(f"v.{ending}", f"out.{ending}"), "'perhaps'", f"v.{ending}")
    assert Path(f"out.{ending}").read_text() == "old"
    assert len(list(Path().iterdir())) == 2
    refused(lambda: found.label_file(f"v.{ending}", "out.txt"), "ends in", error=FileError)
    refused(lambda: found.label_file("nowhere.csv", "out.csv"), "no such file", error=FileError)


KILLED = """
import sys
import labelfree as lf
from labelfree import _large_files
_large_files.LARGE_CELLS, _large_files.PIECE_CELLS = 0, 60_000
found = lf.estimate("v.parquet")
from labelfree._answers import Labeller
label = Labeller._labelled
def slow(self, *given):
    print("labelling", flush=True)
    return label(self, *given)
Labeller._labelled = slow
found.label_file("v.parquet", "out.parquet")
"""


def test_a_killed_run_leaves_no_half_file():
    lay(drawn(300_000), "v.parquet")
    with subprocess.Popen([sys.executable, "-c", KILLED], stdout=subprocess.PIPE) as run:
        for _ in range(3):  # some pieces are on their way into the file
            assert run.stdout.readline() == b"labelling\n"
        run.kill()
        run.wait()
    assert run.returncode == -signal.SIGKILL
    assert not Path("out.parquet").exists()
    left = [path.name for path in Path().iterdir() if path.name != "v.parquet"]
    assert all(name.startswith(".out.parquet.") for name in left)
