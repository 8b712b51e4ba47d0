"""Files in and out: a votes file -> a frame; a whole file or none is written.

CSV, TSV, Parquet and JSON lines, told apart by their ending.
"""

from __future__ import annotations

import csv
import os
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from labelfree._errors import FileError, listed

if TYPE_CHECKING:
    import polars as pl

SEPARATORS = {".csv": ",", ".tsv": "\t"}
PARQUET = (".parquet", ".pq")
JSON_LINES = (".jsonl", ".ndjson")
ROWS_TO_INFER_TYPES = 10_000


def read_frame(path: str | os.PathLike[str]) -> pl.DataFrame:
    """Read a file of votes into a Polars frame.

    Parameters
    ----------
    path : str or path
        A file that ends in .csv, .tsv, .parquet, .pq, .jsonl or .ndjson.

    Returns
    -------
    polars.DataFrame
        At least one row and one column.
    """
    path = Path(path)
    kind = kind_of(path)
    if not path.is_file():
        raise FileError(f"{path}: there is no such file; name a file of votes.")
    if path.stat().st_size == 0:
        raise FileError(f"{path} is empty; a header line and one line an item were expected.")
    frame = _read(path, kind)
    if frame.width == 0 or frame.height == 0:
        raise FileError(f"{path} holds no votes below its header; one line an item was expected.")
    return frame


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

    try:
        if kind in SEPARATORS:
            return _read_separated(path, SEPARATORS[kind])
        if kind in PARQUET:
            return pl.read_parquet(path)
        return pl.read_ndjson(path, infer_schema_length=None)
    except (pl.exceptions.PolarsError, OSError, UnicodeDecodeError) as error:
        raise FileError(f"{path} cannot be read as {kind[1:]}: {_reason(error)}.") from None


def _reason(error: Exception) -> str:
    """Take the first line of what the engine says."""
    said = str(error).strip()
    return said.splitlines()[0] if said else type(error).__name__


def _read_separated(path: Path, separator: str) -> pl.DataFrame:
    import polars as pl

    _check_header(path, separator)
    try:
        frame = pl.read_csv(path, separator=separator, infer_schema_length=ROWS_TO_INFER_TYPES)
    except pl.exceptions.ComputeError:
        _check_widths(path, separator)
        # A column that turns from numbers to words far down the file: every cell is then text.
        frame = pl.read_csv(path, separator=separator, infer_schema=False)
    # Polars fills a row that is too short with nulls, which shows as a null in the last column.
    if frame.height and frame[:, -1].null_count():
        _check_widths(path, separator)
    return frame


def _check_header(path: Path, separator: str) -> None:
    with path.open(encoding="utf-8-sig", newline="") as file:
        header = next(csv.reader(file, delimiter=separator), [])
    twice = [name for name, times in Counter(header).items() if times > 1]
    if twice:
        raise FileError(
            f"{path}: column {listed(twice)} stands more than once in the header; rename one."
        )


def _check_widths(path: Path, separator: str) -> None:
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.reader(file, delimiter=separator)
        width = len(next(rows, []))
        for row in rows:
            if row and len(row) != width:
                raise FileError(
                    f"{path}, line {rows.line_num}: expected {width} cells as in the header, got {len(row)}; "
                    "complete the line, leaving a missing vote empty."
                )


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

    import polars as pl

    try:
        write_whole(path, write)
    except pl.exceptions.PolarsError as error:
        raise FileError(
            f"{path} cannot be written as {kind[1:]}: {_reason(error)}; choose a name that ends in .parquet."
        ) from None


def write_whole(path: str | os.PathLike[str], write: Callable[[Path], None]) -> None:
    """Let `write` fill a temporary file beside `path`, then rename it: all of the file or nothing."""
    path = Path(path)
    try:
        handle, name = tempfile.mkstemp(
            dir=path.parent, prefix=f".{path.name}.", suffix=path.suffix
        )
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror}.") from None
    os.close(handle)
    temporary = Path(name)
    try:
        write(temporary)
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)  # mkstemp makes the file private; give it the usual rights
        temporary.replace(path)
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror}.") from None
    finally:
        temporary.unlink(missing_ok=True)
