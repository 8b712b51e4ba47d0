"""Files too large to hold at once: a votes file -> pieces of its rows; pieces of answers -> a file.

A piece is a frame of some of the rows, in their order. Of a long file a piece holds all votes on
some of the items; for these the file is read once for each share of the items.
"""

from __future__ import annotations

import os
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cached_property
from glob import glob
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from labelfree._errors import FileError
from labelfree._files import (
    EMPTY,
    JSON_LINES,
    PARQUET,
    ROWS_TO_INFER_TYPES,
    SEPARATORS,
    check_header,
    check_lines,
    check_there,
    count_bytes,
    kind_of,
    refused_in_a_sentence,
    unwritable_in_a_sentence,
    write_whole,
)

if TYPE_CHECKING:
    import polars as pl

LARGE_CELLS = 1 << 24  # of a Parquet file, from which on it is read in pieces
LARGE_BYTES = 1 << 25  # of text, likewise
PIECE_CELLS = 1 << 24  # of a table: larger pieces cost less, each having a cost of its own ...
PIECE_MEMORY = (
    1 << 25
)  # ... but no more bytes than this, as several of them are on their way at a time
TEXT_BYTES = 16  # that a cell of text takes in Polars, beside longer words
PIECE_BYTES = 1 << 25  # of JSON lines, which are divided as text
WIDE_ROWS = (
    1 << 24
)  # of Parquet files of many classifiers, from which on their patterns would fill the memory
LONG_ROWS = 1 << 22  # votes of a long file that are laid out at a time
SIGNS = "*?["  # a name with one of them that is no file stands for the files that it matches
# What Polars takes for numbers and truth values in text.
WHOLE, TRUTH = r"^-?\d+$", "^(true|false)$"
BROKEN = r"^[-+]?(\d*\.\d+([eE][-+]?\d+)?|inf|\d+[eE][-+]?\d+|\d+\.)$"

Result = TypeVar("Result")
Types = Mapping[str, Any]
Named = str | os.PathLike[str]
Watch = Callable[[int, int], None]

_watch: ContextVar[Watch | None] = ContextVar("watch", default=None)


@contextmanager
def watching(tell: Watch) -> Iterator[None]:
    """Call ``tell(rows read, rows there are)`` after every piece; both grow from file to file."""
    seen = [0, 0]

    def add(rows: int, of: int) -> None:
        seen[0], seen[1] = seen[0] + rows, seen[1] + of
        tell(*seen)

    token = _watch.set(add)
    try:
        yield
    finally:
        _watch.reset(token)


# --- which files ------------------------------------------------------------------------------


def paths_in(votes: Any) -> list[Named] | None:
    """List the files that a user named, those that ``*`` stands for in order; None of no files."""
    if isinstance(votes, str | os.PathLike):
        return _matched(votes)
    if not isinstance(votes, list | tuple) or not votes:
        return None
    if not all(isinstance(each, str | os.PathLike) for each in votes):
        return None
    return [path for each in votes for path in _matched(each)]


def _matched(name: Named) -> list[Named]:
    text = os.fspath(name)
    if not any(sign in text for sign in SIGNS) or os.path.lexists(text):
        return [name]
    found: list[Named] = [*sorted(glob(text))]  # noqa: PTH207 (Path.glob knows no absolute patterns)
    if not found:
        raise FileError(
            f"{text}: there is no such file, and none that it matches; name a file of votes."
        )
    return found


def is_large(path: Named) -> bool:
    """Whether a file is read in pieces; what is wrong with it is left for the reading to say."""
    import polars as pl

    path = Path(path)
    try:
        if path.suffix.lower() not in PARQUET:
            return path.stat().st_size > LARGE_BYTES
        if not path.is_file():
            return False
        frame = pl.scan_parquet(path, glob=False)
        rows = frame.select(pl.len()).collect().item()
        return bool(rows * len(frame.collect_schema()) > LARGE_CELLS)
    except (OSError, ValueError, pl.exceptions.PolarsError):
        return False


def scanned_if_wide(paths: Sequence[Named], columns: int) -> pl.LazyFrame | None:
    """Take Parquet files of very many rows, and of more than so many columns, for one lazy table; None of others."""
    import polars as pl

    if any(Path(path).suffix.lower() not in PARQUET or not is_large(path) for path in paths):
        return None
    table = pl.scan_parquet([Path(path) for path in paths], glob=False)
    try:
        wide = len(table.collect_schema()) > columns
        rows = table.select(pl.len()).collect().item() if wide else 0
    except (OSError, pl.exceptions.PolarsError):
        return None  # what is wrong with them is left for the reading to say
    return table if rows > WIDE_ROWS else None


# --- pieces in --------------------------------------------------------------------------------


class OtherTypes(Exception):  # noqa: N818 (no error: the file is read again)
    """Later rows do not fit the types that the first ones show; `types` fit them all."""

    def __init__(self, types: Types) -> None:
        super().__init__(types)
        self.types = types


def with_types(path: Named, work: Callable[[LargeFile], Result]) -> Result:
    """Do `work` on a file; where later rows do not fit the types of the first, do it all over again."""
    file = LargeFile(Path(path))
    while True:
        try:
            return work(file)
        except OtherTypes as found:
            file = replace(file, types=found.types)


@dataclass(frozen=True)
class LargeFile:
    """A file of votes, read in pieces.

    Attributes
    ----------
    path : Path
    types : mapping, optional
        Type of every column; by default as the first rows show them.
    """

    path: Path
    types: Types | None = field(default=None, repr=False)

    @cached_property
    def kind(self) -> str:
        """The ending, which says how the file is written."""
        kind = kind_of(self.path)
        check_there(self.path)
        return kind

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns; of JSON lines, of those in the first rows, until types are given."""
        if self.types is not None:
            return tuple(self.types)
        with refused_in_a_sentence(self.path, self.kind):
            if self.kind in JSON_LINES:
                return tuple(next(self._json_frames()).columns)
            return tuple(self._scanned().collect_schema().names())

    @cached_property
    def rows(self) -> int:
        """Number of rows; of text, of lines, the header among them."""
        import polars as pl

        with refused_in_a_sentence(self.path, self.kind):
            if self.kind in PARQUET:
                return int(self._scanned().select(pl.len()).collect().item())
            return _count_lines(self.path)

    def pieces(self, columns: Sequence[str] | None = None) -> Iterator[tuple[str, pl.DataFrame]]:
        """Yield pieces in the order of their rows, each with its place: ``votes.csv, rows 1 to 500``."""
        tell, first = _watch.get(), 0
        if tell is not None:
            tell(0, self.rows)
        with refused_in_a_sentence(self.path, self.kind):
            kind = self._json_pieces() if self.kind in JSON_LINES else self._scanned_pieces(columns)
            for piece in kind:
                if piece.height:
                    place = f"{self.path}, rows {first + 1:,} to {first + piece.height:,}"
                    yield place, piece if columns is None else piece.select(columns)
                first += piece.height
                if tell is not None:
                    tell(piece.height, 0)
        if first == 0:
            raise FileError(
                f"{self.path} holds no votes below its header; one line an item was expected."
            )

    def shares(self, columns: Sequence[str], item: str) -> Iterator[pl.DataFrame]:
        """Yield all rows on some of the items, then all on others, and so on."""
        import polars as pl

        shares = -(-self.rows // LONG_ROWS)
        for share in range(shares):
            mine = pl.col(item).hash(seed=0) % shares == share
            rows = pl.concat([piece.filter(mine) for _, piece in self.pieces(columns)])
            if rows.height:
                yield rows

    def _scanned(self) -> pl.LazyFrame:
        import polars as pl

        if self.kind in PARQUET:
            return pl.scan_parquet(self.path, glob=False)
        check_header(self.path, SEPARATORS[self.kind])
        return pl.scan_csv(
            self.path,
            separator=SEPARATORS[self.kind],
            infer_schema_length=ROWS_TO_INFER_TYPES,
            schema_overrides=self.types,
            null_values=EMPTY,
            glob=False,
        )

    def _scanned_pieces(self, columns: Sequence[str] | None) -> Iterator[pl.DataFrame]:
        import polars as pl

        text, last = self.kind in SEPARATORS, self.columns[-1]
        read = list(self.columns if columns is None else columns)
        if text and last not in read:
            read.append(last)  # where lines that are too short show
        rows = self._rows_of_piece(read)
        first, blank, fits = 0, None, True
        pieces = self._scanned().select(read).collect_batches(chunk_size=rows)
        try:
            for piece in pieces:
                if text and blank is None and piece[last].null_count():
                    blank = self._blank_lines()
                yield _without(piece, first, blank) if blank else piece
                first += piece.height
        except pl.exceptions.ComputeError:
            if not text or self.types is not None:
                raise
            fits = False
        if not fits:
            check_lines(self.path, SEPARATORS[self.kind])  # which says what line is no row
            raise OtherTypes(self._types_of_text())

    def _rows_of_piece(self, columns: Sequence[str]) -> int:
        types = self._scanned().collect_schema()
        memory = sum(_bytes_of(types[name]) for name in columns)
        return max(min(PIECE_CELLS // len(columns), PIECE_MEMORY // memory), 1)

    def _blank_lines(self) -> list[int]:
        """List the blank lines, and refuse lines that are too short; mostly counting shows that there are none."""
        separator, cells = SEPARATORS[self.kind], len(self.columns) - 1
        whole = count_bytes(self.path, separator.encode()) == cells * self.rows
        if whole and not count_bytes(self.path, b'"'):
            return []
        return check_lines(self.path, separator)

    def _types_of_text(self) -> Types:
        """Find in one pass the types that fit all rows, as Polars does with all of them in memory."""
        import polars as pl

        kinds: dict[Any, str] = {
            pl.Int64: WHOLE,
            pl.Float64: f"{WHOLE}|{BROKEN}",
            pl.Boolean: TRUTH,
        }
        scanned = pl.scan_csv(
            self.path,
            separator=SEPARATORS[self.kind],
            infer_schema=False,
            null_values=EMPTY,
            glob=False,
        )
        names = scanned.collect_schema().names()
        fit = [
            pl.col(name).str.contains(words).all().alias(f"{place} {kind}")
            for place, name in enumerate(names)
            for kind, words in kinds.items()
        ]
        found = scanned.select(fit).collect(engine="streaming").row(0, named=True)
        return {
            name: next((kind for kind in kinds if found[f"{place} {kind}"]), pl.String)
            for place, name in enumerate(names)
        }

    # --- JSON lines ---------------------------------------------------------------------------

    def _json_pieces(self) -> Iterator[pl.DataFrame]:
        """Yield pieces that all have the same columns; a column that some lack is empty there."""
        types = None if self.types is None else dict(self.types)
        frames = self._json_frames()
        for frame in frames:
            every = _joined(types or {}, frame.schema)
            if types is not None and every != types:
                for later in frames:
                    every = _joined(every, later.schema)
                raise OtherTypes(every)
            types = every
            yield _with_types(frame, types)

    def _json_frames(self) -> Iterator[pl.DataFrame]:
        """Read lines of JSON, some of them at a time, each with the types that they show."""
        import polars as pl

        with self.path.open("rb") as file:
            file.seek(len(BOM_UTF8) if file.read(len(BOM_UTF8)) == BOM_UTF8 else 0)
            while text := file.read(PIECE_BYTES):
                text += file.readline()
                if text.strip():
                    yield pl.read_ndjson(text, infer_schema_length=None)


def _bytes_of(kind: Any) -> int:
    """Bytes that a cell of this type takes."""
    import polars as pl

    own = pl.Series([], dtype=kind).to_numpy().dtype
    return own.itemsize if own.kind in "biuf" else TEXT_BYTES


def _joined(types: Types, more: Types) -> dict[str, Any]:
    """Join types of columns: of two that differ, one that holds both."""
    import polars as pl

    parts = [pl.DataFrame(schema=each) for each in (types, more)]
    return dict(pl.concat(parts, how="diagonal_relaxed").schema)


def _with_types(frame: pl.DataFrame, types: Types) -> pl.DataFrame:
    import polars as pl

    return frame.select(
        (pl.col(name) if name in frame.columns else pl.lit(None)).cast(kind).alias(name)
        for name, kind in types.items()
    )


def _without(piece: pl.DataFrame, first: int, blank: Sequence[int]) -> pl.DataFrame:
    import polars as pl

    return piece.filter(~pl.int_range(first, first + pl.len()).is_in(blank))


def _count_lines(path: Path) -> int:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        unfinished = file.read() != b"\n"
    return count_bytes(path, b"\n") + unfinished


# --- pieces out -------------------------------------------------------------------------------


def write_pieces(pieces: Iterator[pl.DataFrame], path: Named) -> None:
    """Write pieces of one table to a file, each as it comes; a killed run leaves no half file."""
    from polars.io.plugins import register_io_source

    kind = kind_of(Path(path))

    def write(target: Path) -> None:
        start = next(pieces)
        types = dict(start.schema)
        same = (piece.cast(types) for piece in chain([start], pieces))  # type: ignore[arg-type]
        table = register_io_source(lambda *_: same, schema=start.schema)
        if kind in SEPARATORS:
            table.sink_csv(target, separator=SEPARATORS[kind])
        elif kind in PARQUET:
            table.sink_parquet(target)
        else:
            table.sink_ndjson(target)

    with unwritable_in_a_sentence(Path(path), kind):
        write_whole(path, write)
