"""Files in and out: a votes file -> a frame; a whole file or none is written.

CSV, TSV, Parquet and JSON lines, told apart by their ending.
"""

from __future__ import annotations

import csv
import os
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING

from labelfree._errors import FileError, LabelfreeError, counted, listed

if TYPE_CHECKING:
    import polars as pl

SEPARATORS = {".csv": ",", ".tsv": "\t"}
PARQUET = (".parquet", ".pq")
JSON_LINES = (".jsonl", ".ndjson")
EMPTY = ["", "NaN", "nan"]  # cells of CSV and TSV that are null, in quotes or not
ROWS_TO_INFER_TYPES = 10_000
CHUNK = 1 << 24  # bytes read at a time


def read_frame(path: str | os.PathLike[str]) -> pl.DataFrame:
    """Read a file of votes into a Polars frame.

    Parameters
    ----------
    path : str or path
        A file that ends in .csv, .tsv, .parquet, .pq, .jsonl or .ndjson. Text is UTF-8. In CSV and
        TSV a cell is null that has no content or NaN, in quotes or not; blank lines are passed over.

    Returns
    -------
    polars.DataFrame
        At least one row and one column.
    """
    path = Path(path)
    kind = kind_of(path)
    check_there(path)
    frame = _read(path, kind)
    if frame.width == 0 or frame.height == 0:
        raise FileError(f"{path} holds no votes below its header; one line an item was expected.")
    return frame


def check_there(path: Path) -> None:
    """Refuse what is no file, or one without content."""
    try:
        empty = path.stat().st_size == 0
    except FileNotFoundError:
        raise FileError(f"{path}: there is no such file; name a file of votes.") from None
    except (OSError, ValueError) as error:
        raise FileError(f"{path} cannot be read: {_reason(error)}; name a file of votes.") from None
    if not path.is_file():
        raise FileError(f"{path} is no file; name a file of votes.")
    if empty:
        raise FileError(f"{path} is empty; a header line and one line an item were expected.")


def kind_of(path: Path) -> str:
    """Tell what a file is by its ending, or say which endings are known."""
    kind = path.suffix.lower()
    known = (*SEPARATORS, *PARQUET, *JSON_LINES)
    if kind not in known:
        raise FileError(
            f"{path}: expected a name that ends in {listed(known, 9)}; rename the file or convert it."
        )
    return kind


def _read(path: Path, kind: str) -> pl.DataFrame:
    import polars as pl

    with refused_in_a_sentence(path, kind):
        if kind in SEPARATORS:
            return _read_separated(path, SEPARATORS[kind])
        if kind in PARQUET:
            return pl.read_parquet(path, glob=False)
        content = path.read_bytes().removeprefix(BOM_UTF8)  # which Polars takes for content
        return pl.read_ndjson(content, infer_schema_length=None)


@contextmanager
def refused_in_a_sentence(path: Path, kind: str) -> Iterator[None]:
    """Say in a sentence of our own what the engine or the system cannot read."""
    import polars as pl

    try:
        yield
        return
    except UnicodeDecodeError:
        reason = "it is not UTF-8 text"
    except (pl.exceptions.PolarsError, OSError, csv.Error) as error:
        reason = _reason(error)
    raise FileError(
        f"{path} cannot be read as {kind[1:]}: {reason}; mend or convert the file."
    ) from None


def _reason(error: Exception) -> str:
    """Take the first line of what the engine or the system says."""
    said = (getattr(error, "strerror", None) or str(error)).strip()
    return said.splitlines()[0].rstrip(".") if said else type(error).__name__


# --- text -------------------------------------------------------------------------------------


def _read_separated(path: Path, separator: str) -> pl.DataFrame:
    import polars as pl

    width = check_header(path, separator)

    def read(rows: int | None) -> pl.DataFrame:
        return pl.read_csv(
            path, separator=separator, infer_schema_length=rows, null_values=EMPTY, glob=False
        )

    frame = None
    with suppress(pl.exceptions.ComputeError):
        frame = read(ROWS_TO_INFER_TYPES)
    if frame is None:
        check_lines(path, separator)
        frame = read(None)  # a column may turn from numbers to words far down the file
    # Polars fills a row that is too short with nulls, which show in the last column.
    if frame.height and frame[:, -1].null_count():
        whole = (width - 1) * (frame.height + 1)
        if count_bytes(path, separator.encode()) != whole or count_bytes(path, b'"'):
            blank = check_lines(path, separator)
            frame = frame.filter(~pl.int_range(pl.len()).is_in(blank)) if blank else frame
    return frame


def check_header(path: Path, separator: str) -> int:
    """Refuse what is no header of a table; return its width."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        header = next((row for row in csv.reader(file, delimiter=separator) if row), [])
    twice = [name for name, times in Counter(header).items() if times > 1]
    if twice:
        raise FileError(
            f"{path}: column {listed(twice)} stands more than once in the header; rename one."
        )
    if any("\0" in name for name in header):
        raise FileError(f"{path} holds zero bytes, so it is not UTF-8 text; convert the file.")
    others = [other for other in ";\t,|" if len(header) == 1 and other in header[0]]
    if others:
        raise FileError(
            f"{path}: expected cells with {separator!r} between them, got a header with {others[0]!r}; "
            f"{'name the file .tsv' if others[0] == SEPARATORS['.tsv'] else f'put {separator!r} there'}."
        )
    return len(header)


def check_lines(path: Path, separator: str) -> list[int]:
    """Refuse rows with too few or too many cells; return the places of those that are blank."""
    blank = []
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.reader(file, delimiter=separator)
        width = len(next(row for row in rows if row))
        for place, row in enumerate(rows):
            if not row:
                blank.append(place)
            elif len(row) != width:
                raise FileError(
                    f"{path}, line {rows.line_num}: expected {counted(width, 'cell')} as in the header, got {len(row)}; "
                    "complete the line, leaving a missing vote empty."
                )
    return blank


def count_bytes(path: Path, byte: bytes) -> int:
    """Count how often a byte stands in a file."""
    with path.open("rb") as file:
        return sum(chunk.count(byte) for chunk in iter(lambda: file.read(CHUNK), b""))


# --- out --------------------------------------------------------------------------------------


def write_frame(frame: pl.DataFrame, path: str | os.PathLike[str]) -> None:
    """Write a frame in the format that the ending of `path` names; a killed run leaves no half file."""
    path = Path(path)
    kind = kind_of(path)

    def write(target: Path) -> None:
        if kind in SEPARATORS:
            frame.write_csv(target, separator=SEPARATORS[kind])
        elif kind in PARQUET:
            frame.write_parquet(target)
        else:
            frame.write_ndjson(target)

    with unwritable_in_a_sentence(path, kind):
        write_whole(path, write)


@contextmanager
def unwritable_in_a_sentence(path: Path, kind: str) -> Iterator[None]:
    """Say in a sentence of our own what the engine cannot write."""
    import polars as pl

    try:
        yield
    except pl.exceptions.PolarsError as error:
        raise FileError(
            f"{path} cannot be written as {kind[1:]}: {_reason(error)}; choose a name that ends in .parquet."
        ) from None


def write_whole(path: str | os.PathLike[str], write: Callable[[Path], None]) -> None:
    """Let `write` fill a temporary file beside `path`, then rename it: all of the file or nothing.

    A symbolic link stays, and the file that it points to is replaced.
    """
    temporary = None
    try:
        real = Path(os.path.realpath(path))
        if real.exists() and not real.is_file():
            raise FileError(f"{path} cannot be written: it is no file; choose another name.")
        hidden = real.with_name(f".{real.name[:50]}.{token_hex(4)}{real.suffix}")
        hidden.touch(exist_ok=False)
        temporary = hidden
        write(temporary)
        temporary.replace(real)
    except LabelfreeError:
        raise
    except (OSError, ValueError) as error:
        raise FileError(
            f"{path} cannot be written: {_reason(error)}; choose another name."
        ) from None
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
