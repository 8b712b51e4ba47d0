"""Files come in whole or are refused in one sentence; files go out whole or not at all."""

import os
import stat
import threading

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from labelfree import FileError, _files
from labelfree._files import kind_of, read_frame, write_frame, write_whole

from .sentences import refused


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def lay(name, content):
    with open(name, "wb") as file:  # noqa: PTH123 (Path would turn some of the names around)
        file.write(content if isinstance(content, bytes) else content.encode())
    return name


def rows(name, content):
    return read_frame(lay(name, content)).rows()


# --- in -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        "a,b,c\n1,0,1\n0,1,\n",
        "a,b,c\n1,0,1\n0,1,",
        "\ufeffa,b,c\n1,0,1\n0,1,\n",
        "a,b,c\r\n1,0,1\r\n0,1,\r\n",
        "\ufeffa,b,c\r\n1,0,1\r\n0,1,\r\n",
        '"a","b","c"\n"1","0","1"\n"0","1",""\n',
        '"a","b","c"\r\n"1","0","1"\r\n"0","1",""\r\n',
        "\na,b,c\n1,0,1\n0,1,\n",
        "a,b,c\n\n1,0,1\n\n\n0,1,\n\n\n",
        "a,b,c\r\n\r\n1,0,1\r\n0,1,\r\n\r\n",
    ],
)
def test_the_same_table_in_many_spellings(content):
    wanted = pl.DataFrame({"a": [1, 0], "b": [0, 1], "c": [1, None]})
    assert_frame_equal(read_frame(lay("v.csv", content)), wanted)
    assert_frame_equal(read_frame(lay("v.tsv", content.replace(",", "\t"))), wanted)


def test_quoted_cells_may_hold_anything():
    content = 'item,a,b,c\n"x, y\n\nz",yes,no,yes\n"say ""no""",no,"",no\n;,no,no,\n'
    assert rows("v.csv", content) == [
        ("x, y\n\nz", "yes", "no", "yes"),
        ('say "no"', "no", None, "no"),
        (";", "no", "no", None),
    ]


def test_a_row_of_missing_votes_is_kept_and_a_blank_line_is_not():
    assert rows("v.csv", "a,b,c\n1,0,1\n,,\n\n1,1,1\n") == [(1, 0, 1), (None,) * 3, (1, 1, 1)]
    assert rows("v.csv", 'a,b,c\n1,0,1\n"","",""\n\n1,1,1\n')[1:] == [(None,) * 3, (1, 1, 1)]


@pytest.mark.parametrize(
    ("late", "kind"),
    [("1.5", pl.Float64), ("maybe", pl.String), ("", pl.Int64), ("nan", pl.Int64)],
)
def test_a_column_may_change_its_kind_far_down(late, kind):
    lines = ["a,b,c", *["1,0,1"] * (2 * _files.ROWS_TO_INFER_TYPES), f"1,{late},0"]
    frame = read_frame(lay("v.csv", "\n".join(lines)))
    assert frame.dtypes == [pl.Int64, kind, pl.Int64]
    assert frame["a"].sum() == frame.height == len(lines) - 1


def test_lines_of_json():
    content = '{"a": 1, "b": "x"}\n\n{"b": "y", "a": null, "c": true}\r\n'
    wanted = pl.DataFrame({"a": [1, None], "b": ["x", "y"], "c": [None, True]})
    for name, start in (("v.jsonl", ""), ("v.ndjson", "\ufeff")):
        frame = read_frame(lay(name, start + content))
        assert_frame_equal(frame, wanted, check_column_order=False)


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "pq", "jsonl", "ndjson", "CSV", "Pq"])
@pytest.mark.parametrize("stem", ["v", "v[1]", "v*", "v?", "{v}", "ü 日本", "~", ".hidden", "a.b"])
def test_names_mean_themselves(stem, ending):
    frame = pl.DataFrame({"a": [1, None], "b": ["x", "y"]})
    name = f"{stem}.{ending}"
    write_frame(frame, name)
    lay(f"v1.{ending}", "something else")
    assert_frame_equal(read_frame(name), frame)


BAD = {
    "nowhere.csv": (None, "there is no such file"),
    "empty.csv": ("", "is empty"),
    "empty.parquet": ("", "is empty"),
    "empty.jsonl": ("", "is empty"),
    "blank.csv": ("\n\n\n", "empty"),
    "header.csv": ("a,b,c\n", "no votes below its header"),
    "header2.csv": ("a,b,c", "no votes below its header"),
    "short.csv": ("a,b,c\n1,0,1\n\n0,1\n", "line 4: expected 3 cells as in the header, got 2"),
    "short2.csv": ("a,b,c\n1,0\n1,0,1\n", "line 2: expected 3 cells as in the header, got 2"),
    "spaces.csv": ("a,b,c\n1,0,1\n  \n", "line 3: expected 3 cells as in the header, got 1"),
    "long.csv": ("a,b,c\n1,0,1\n0,1,1,1\n", "line 3: expected 3 cells as in the header, got 4"),
    "quoted.csv": ('a,b,c\n"1\n2",0,1\n0,1,1,1\n', "line 4"),
    "open.csv": ('a,b,c\n1,0,1\n1,0,"1\n', "cannot be read as csv"),
    "open_header.csv": ('"a,b,c\n' + "1,0,1\n" * 50_000, "cannot be read as csv"),
    "twice.csv": ("a,b,a\n1,0,1\n", "column a stands more than once"),
    "nameless.csv": ("a,,\n1,0,1\n", "column '' stands more than once"),
    "comment.csv": ("# votes\na,b,c\n1,0,1\n", "expected 1 cell as in the header, got 3"),
    "semicolons.csv": ("a;b;c\n1;0;1\n", "header with ';'"),
    "tabs.csv": ("a\tb\tc\n1\t0\t1\n", ".tsv"),
    "commas.tsv": ("a,b,c\n1,0,1\n", "header with ','"),
    "latin.csv": ("name,b,c\ncafé,0,1\n".encode("latin-1"), "not UTF-8"),
    "latin_header.csv": ("é,b,c\n1,0,1\n".encode("latin-1"), "not UTF-8"),
    "sixteen.csv": ("a,b,c\n1,0,1\n".encode("utf-16"), "not UTF-8"),
    "sixteen_bare.csv": ("a,b,c\n1,0,1\n".encode("utf-16-le"), "not UTF-8"),
    "text.parquet": ("a,b,c\n1,0,1\n", "cannot be read as parquet"),
    "zeros.parquet": (bytes(1000), "cannot be read as parquet"),
    "cut.jsonl": ('{"a": 1', "cannot be read as jsonl"),
    "array.jsonl": ('[{"a": 1}, {"a": 2}]', "cannot be read as jsonl"),
    "rows.jsonl": ("[1, 0, 1]\n[0, 1, 0]\n", "cannot be read as jsonl"),
    "csv.jsonl": ("a,b,c\n1,0,1\n", "cannot be read as jsonl"),
    "nothing.jsonl": ("{}\n{}\n", ""),
    "votes.txt": ("a,b,c\n1,0,1\n", "ends in .csv, .tsv"),
    "votes": ("a,b,c\n1,0,1\n", "ends in .csv, .tsv"),
    "votes.csv.gz": ("", "ends in .csv, .tsv"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_file_that_holds_no_table_is_refused(name):
    content, words = BAD[name]
    if content is not None:
        lay(name, content)
    refused(lambda: read_frame(name), name, words, error=FileError)


def test_what_is_no_file_is_refused(folder):
    (folder / "folder.csv").mkdir()
    refused(lambda: read_frame("folder.csv"), "is no file", error=FileError)
    refused(lambda: read_frame("folder.csv/v.csv"), "no such file", error=FileError)
    lay("v.csv", "a\n1\n")
    refused(lambda: read_frame("v.csv/v.csv"), "cannot be read", error=FileError)
    refused(lambda: read_frame("v\0.csv"), "cannot be read", error=FileError)
    refused(lambda: read_frame("v" * 300 + ".csv"), "cannot be read", error=FileError)
    refused(lambda: read_frame(folder), "ends in", error=FileError)
    refused(lambda: kind_of(folder / ".csv"), "ends in", error=FileError)
    (folder / "loop.csv").symlink_to("loop.csv")
    refused(lambda: read_frame("loop.csv"), "cannot be read", error=FileError)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_refused(folder):
    for name in ("v.csv", "v.parquet", "v.jsonl"):
        lay(name, "a,b\n1,0\n")
        (folder / name).chmod(0)
        refused(lambda name=name: read_frame(name), "ermission denied", error=FileError)


@pytest.mark.parametrize("name", ["v.csv", "v.parquet", "v.jsonl"])
def test_a_refusal_by_the_system_is_told(name, monkeypatch):
    lay(name, "a,b\n1,0\n")

    def deny(*_, **__):
        raise PermissionError(13, "Permission denied")

    for call in ("read_csv", "read_parquet", "read_ndjson"):
        monkeypatch.setattr(pl, call, deny)
    refused(lambda: read_frame(name), name, "Permission denied", error=FileError)


def test_a_large_file_with_gaps_in_its_last_column_is_not_read_line_by_line(monkeypatch):
    lay("v.csv", "a,b,c\n" + "1,0,\n" * 1000)
    monkeypatch.setattr(_files, "check_lines", lambda *_: pytest.fail("read line by line"))
    assert read_frame("v.csv").height == 1000


# --- out ----------------------------------------------------------------------------------------


FRAME = pl.DataFrame({"a": [1, None, 3], "b": ["x", "y,\n", 'z"'], "c": [0.5, 1 / 3, None]})


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "pq", "jsonl", "ndjson"])
def test_a_frame_comes_back_as_it_was(ending):
    write_frame(FRAME, f"out.{ending}")
    assert_frame_equal(read_frame(f"out.{ending}"), FRAME)
    write_frame(FRAME.head(1), f"out.{ending}")
    assert_frame_equal(read_frame(f"out.{ending}"), FRAME.head(1), check_dtypes=False)
    assert os.listdir() == [f"out.{ending}"]  # noqa: PTH208


def test_a_file_has_the_usual_rights(folder):
    usual = folder / "usual"
    usual.touch()
    write_frame(FRAME, "out.csv")
    assert stat.S_IMODE((folder / "out.csv").stat().st_mode) == stat.S_IMODE(usual.stat().st_mode)


def test_a_link_stays_and_its_file_is_replaced(folder):
    (folder / "real").mkdir()
    lay("real/out.csv", "old")
    (folder / "link.csv").symlink_to("real/out.csv")
    write_frame(FRAME, "link.csv")
    assert (folder / "link.csv").is_symlink()
    assert_frame_equal(read_frame("real/out.csv"), FRAME)


@pytest.mark.parametrize("wrong", [KeyboardInterrupt, MemoryError, OSError, RuntimeError])
def test_a_run_that_is_stopped_leaves_the_old_file_and_no_other(folder, wrong):
    lay("out.csv", "old")

    def stopped(target):
        target.write_text("half")
        raise wrong

    with pytest.raises(FileError if wrong is OSError else wrong):
        write_whole("out.csv", stopped)
    assert (folder / "out.csv").read_text() == "old"
    assert os.listdir() == ["out.csv"]  # noqa: PTH208


def test_many_writers_do_not_get_in_each_others_way(folder):
    def write(number):
        write_whole("out.txt", lambda target: target.write_text(f"{number}" * 10_000))

    writers = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    content = (folder / "out.txt").read_text()
    assert content in {f"{number}" * 10_000 for number in range(8)}
    assert os.listdir() == ["out.txt"]  # noqa: PTH208


def test_what_cannot_be_written_is_refused(folder):
    (folder / "folder.csv").mkdir()
    lay("file", "")
    for path, words in {
        "out.txt": "ends in",
        "nowhere/out.csv": "No such file or directory",
        "file/out.csv": "Not a directory",
        "folder.csv": "is no file",
        "out\0.csv": "null",
        "v" * 300 + ".csv": "too long",
    }.items():
        refused(lambda path=path: write_frame(FRAME, path), words, error=FileError)
    nested = pl.DataFrame({"a": [[1], [2]]})
    refused(lambda: write_frame(nested, "out.csv"), "cannot be written as csv", error=FileError)
    refused(
        lambda: write_whole("out.txt", lambda target: target.write_text("\ud800", "utf-8")),
        "out.txt cannot be written",
        error=FileError,
    )
    assert sorted(os.listdir()) == ["file", "folder.csv"]  # noqa: PTH208
