"""Votes -> pattern codes, a stretch of rows at a time.

A vote is class code + 1, and zero when missing; bit b of that number, over all classifiers of a
row, is plane b. For two classes plane 0 says who voted negative and plane 1 who voted positive.
A pattern is its planes in 64-bit words, plane after plane, classifier 0 in the lowest bit.

The planes come from comparisons alone. Truth values are bytes of 0 or 1, and eight of them become
one byte of bits by a multiplication (row by row) or by doubling and adding (column by column), so
that the cost is a few passes over a stretch that stays in the cache. Buffers are made once a
thread: allocating them anew cost more than the arithmetic (measured: 36 against 5 ms a pass).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from labelfree._votes import Votes

Words = NDArray[np.uint64]
Result = TypeVar("Result")

CELLS = 1 << 20  # votes a stretch by rows: its truth values fill about a megabyte of cache
ROWS_BY_COLUMN = 1 << 18  # rows a stretch by columns: only one column is in work at a time
# Gathers the low bits of eight bytes (little-endian) into the top byte of the product.
GATHER = np.uint64(0x0102040810204080)


@dataclass(frozen=True)
class Shape:
    """How patterns of m classifiers and K classes lie in words."""

    classifiers: int
    classes: int

    @property
    def planes(self) -> int:
        """Bits that a vote needs: room for 0 (missing) … K."""
        return self.classes.bit_length()

    @property
    def words(self) -> int:
        """64-bit words that one plane needs."""
        return -(-self.classifiers // 64)

    @property
    def bits(self) -> int:
        """Bits that a whole pattern needs."""
        return self.planes * self.classifiers


class Reader:
    """Reads stretches of votes with buffers of its own; each thread has one.

    Parameters
    ----------
    votes : Votes
        Dense votes, by rows or by columns.
    """

    def __init__(self, votes: Votes) -> None:
        self.votes = votes
        self.shape = Shape(len(votes.classifiers), len(votes.classes))
        self.rows = stretch(votes)
        m = self.shape.classifiers
        self.by_rows = isinstance(votes.columns, np.ndarray)
        # Eight bytes more, as the last gather of the last row reads past its row.
        self.truth = np.zeros(self.rows * m + 8 if self.by_rows else self.rows, dtype=bool)
        self.other = np.empty(self.rows * m if self.by_rows else self.rows, dtype=bool)
        self.byte = np.empty(self.rows, dtype=np.uint8)
        self.wide = np.empty(self.rows, dtype=np.uint64)
        self.buffer = np.empty(self.shape.planes * self.shape.words * self.rows, dtype=np.uint64)

    def planes(self, start: int, stop: int) -> tuple[Words, bool]:
        """Return the planes of rows start … stop as (planes, words, rows), and whether no vote is missing.

        The array is a buffer: the next call overwrites it.
        """
        planes, complete = self._fill(start, stop)
        if complete and self.shape.classes == 2:
            planes[0] = planes[1] ^ _full(self.shape.classifiers)[:, None]
        return planes, complete

    def numbers(self, start: int, stop: int) -> tuple[Words, bool]:
        """Return each row's pattern as one number, and whether no vote is missing.

        The number is plane above plane; of complete binary rows it is plane 1 alone.
        The array is a buffer: the next call overwrites it.
        """
        planes, complete = self._fill(start, stop)
        if complete and self.shape.classes == 2:
            return planes[1, 0], True
        number = planes[0, 0]
        for plane in range(1, self.shape.planes):
            number |= planes[plane, 0] << np.uint64(plane * self.shape.classifiers)
        return number, complete

    def _fill(self, start: int, stop: int) -> tuple[Words, bool]:
        """Fill the planes, but for plane 0 of complete binary rows, which says nothing new."""
        shape, votes = self.shape, self.votes
        planes = self.buffer[: shape.planes * shape.words * (stop - start)]
        planes = planes.reshape(shape.planes, shape.words, stop - start)
        planes[1:] = 0
        columns = self._columns(start, stop)
        later = range(1, shape.classes)
        matched = sum(
            self._match(columns, votes.values[code], self._planes_of(planes, code))
            for code in later
        )
        matched += self._count(columns, votes.values[0])
        cells = (stop - start) * shape.classifiers
        complete = matched == cells
        if not complete and matched + self._count_missing(columns) < cells:
            votes.refuse_unknown_labels()
        if not (complete and shape.classes == 2):
            planes[0] = 0
            for code in range(0, shape.classes, 2):  # plane 0 holds the even codes: code + 1 is odd
                self._match(columns, votes.values[code], [planes[0]])
        return planes, complete

    def _planes_of(self, planes: Words, code: int) -> list[Words]:
        """Return the planes above plane 0 that hold a 1 for this class."""
        return [planes[b] for b in range(1, self.shape.planes) if (code + 1) >> b & 1]

    def _columns(self, start: int, stop: int) -> list[NDArray[np.generic]]:
        columns: Any = self.votes.columns
        if self.by_rows:
            return [np.ascontiguousarray(columns[start:stop]).reshape(-1)]
        return [column[start:stop] for column in columns]

    def _count(self, columns: list[NDArray[np.generic]], value: object) -> int:
        return sum(
            int(np.count_nonzero(_equal(column, value, self.other[: len(column)])))
            for column in columns
        )

    def _count_missing(self, columns: list[NDArray[np.generic]]) -> int:
        nan = sum(int(np.count_nonzero(column != column)) for column in columns)  # noqa: PLR0124
        return nan + sum(self._count(columns, value) for value in set(self.votes.missing))

    def _match(
        self, columns: list[NDArray[np.generic]], value: object, targets: list[Words]
    ) -> int:
        """Set the bit of every vote that equals `value` in each target plane; return how many there are."""
        pack = self._pack_rows if self.by_rows else self._pack_columns
        return pack(columns, value, targets)

    def _pack_rows(
        self, columns: list[NDArray[np.generic]], value: object, targets: list[Words]
    ) -> int:
        m, (cells,) = self.shape.classifiers, columns
        rows = len(cells) // m
        truth = _equal(cells, value, self.truth[: len(cells)])
        wide = self.wide[:rows]
        for byte in range(-(-m // 8)):
            # Eight classifiers of every row, read as one unaligned number; those past the row are masked.
            eight = np.ndarray((rows,), "<u8", self.truth.data, offset=8 * byte, strides=(m,))
            np.multiply(eight, GATHER, out=wide)
            np.right_shift(wide, np.uint64(56), out=wide)
            if m - 8 * byte < 8:
                np.bitwise_and(wide, np.uint64((1 << (m - 8 * byte)) - 1), out=wide)
            _merge(wide, byte, targets)
        return int(np.count_nonzero(truth))

    def _pack_columns(
        self, columns: list[NDArray[np.generic]], value: object, targets: list[Words]
    ) -> int:
        m, rows, matched = self.shape.classifiers, len(columns[0]), 0
        byte, truth, wide = self.byte[:rows], self.truth[:rows], self.wide[:rows]
        for first in range(0, m, 8):
            group = columns[first : first + 8]
            _equal(group[-1], value, byte.view(bool))
            matched += int(np.count_nonzero(byte.view(bool)))
            for column in group[-2::-1]:
                _equal(column, value, truth)
                matched += int(np.count_nonzero(truth))
                np.add(byte, byte, out=byte)
                np.add(byte, truth.view(np.uint8), out=byte)
            np.copyto(wide, byte)
            _merge(wide, first // 8, targets)
        return matched


def _merge(wide: Words, byte: int, targets: list[Words]) -> None:
    """Put a byte of bits a row in its place in the word."""
    if byte % 8:
        np.left_shift(wide, np.uint64(8 * (byte % 8)), out=wide)
    for target in targets:
        np.bitwise_or(target[byte // 8], wide, out=target[byte // 8])


def _equal(cells: NDArray[np.generic], value: object, out: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Compare in the cells' own type; a value that the type cannot hold equals none of them."""
    try:
        with np.errstate(invalid="ignore"):  # NaN among whole numbers
            own = np.asarray(value).astype(cells.dtype)
    except (TypeError, ValueError, OverflowError):
        own = None
    if own is None or own != value:
        out[:] = False
        return out
    np.equal(cells, own, out=out)
    return out


def _full(classifiers: int) -> Words:
    """All m bits of one plane."""
    bits = (1 << classifiers) - 1
    return np.array(
        [bits >> (64 * word) & (2**64 - 1) for word in range(-(-classifiers // 64))],
        dtype=np.uint64,
    )


def stretch(votes: Votes) -> int:
    """Rows that are read at a time."""
    if isinstance(votes.columns, np.ndarray):
        return min(votes.items, max(CELLS // len(votes.classifiers), 64))
    return min(votes.items, ROWS_BY_COLUMN)


def read_all(votes: Votes, work: Callable[[Reader, int, int], Result]) -> Iterator[Result]:
    """Do `work` on every stretch of rows, on all cores; results come in the order of the rows."""
    rows = stretch(votes)
    starts = range(0, votes.items, rows)
    workers = min(len(starts), os.cpu_count() or 1)
    if workers == 1:
        reader = Reader(votes)
        for start in starts:
            yield work(reader, start, min(start + rows, votes.items))
        return
    idle = [Reader(votes) for _ in range(workers)]

    def task(start: int) -> Result:
        reader = idle.pop()
        try:
            return work(reader, start, min(start + rows, votes.items))
        finally:
            idle.append(reader)

    with ThreadPoolExecutor(workers) as pool:
        yield from pool.map(task, starts)


def words_of(planes: Words) -> Words:
    """(planes, words, rows) -> one row of words a pattern, plane after plane."""
    return np.array(
        planes.reshape(-1, planes.shape[-1]).T, order="C"
    )  # a copy: planes are a buffer


def words_of_codes(codes: NDArray[np.integer], shape: Shape) -> Words:
    """Patterns given as codes −1 … K−1, (P, m), -> (P, planes × words)."""
    rows = np.zeros((len(codes), shape.planes, shape.words * 64), dtype=np.uint8)
    for plane in range(shape.planes):
        rows[:, plane, : shape.classifiers] = (codes + 1) >> plane & 1
    return (
        np.packbits(rows, axis=-1, bitorder="little")
        .view("<u8")
        .reshape(len(codes), -1)
        .astype(np.uint64)
    )


def codes_of_words(words: Words, shape: Shape) -> NDArray[np.int8]:
    """(P, planes × words) -> codes −1 … K−1, (P, m)."""
    octets = (
        np.ascontiguousarray(words, dtype="<u8")
        .view(np.uint8)
        .reshape(len(words), shape.planes, -1)
    )
    number = np.zeros((len(words), shape.classifiers), dtype=np.uint8)
    for plane in range(shape.planes - 1, -1, -1):
        bits = np.unpackbits(octets[:, plane], axis=-1, count=shape.classifiers, bitorder="little")
        number += number  # addition runs on vector units; a shift of bytes does not
        number += bits
    codes = number.view(np.int8)
    codes -= 1
    return codes


def codes_at(votes: Votes, places: NDArray[np.int64]) -> NDArray[np.int8]:
    """Votes on some items as codes −1 … K−1, (g, m)."""
    columns: Any = votes.columns
    if not isinstance(columns, np.ndarray | tuple):
        return np.asarray(columns[places].toarray(), dtype=np.int8) - np.int8(1)
    reader = Reader(votes)
    rows = [words_of(reader.planes(int(place), int(place) + 1)[0]) for place in places]
    return codes_of_words(np.concatenate(rows), reader.shape)
