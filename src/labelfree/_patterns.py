"""Votes -> pattern codes, a stretch of rows at a time.

A vote is class code + 1, and zero when missing; bit b of that number, over all classifiers of a
row, is plane b. For two classes plane 0 says who voted negative and plane 1 who voted positive.
A pattern is its planes in 64-bit words, plane after plane, classifier 0 in the lowest bit.

The planes come from comparisons alone. Truth values are bytes of 0 or 1, and eight of them become
one octet of bits by a multiplication (row by row) or by doubling and adding (column by column), so
that the cost is a few passes over a stretch that stays in the cache. All of it is done on single
bytes, of which a vector unit takes 64 at a time; only whole octets become wider numbers. Buffers are
made once a thread: allocating them anew cost more than the arithmetic (measured: 36 against 5 ms a pass).

Votes of one byte each, whose two labels are 1 or 2 apart (0/1, −1/1, truth values, coded text), need no
comparison: a vote less the lower label is its own bit, and one look at all bits that were seen tells
whether anything else was among them. Labelling by columns takes .7 of the time for it (measured).
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
Octets = NDArray[np.uint8]
Index = TypeVar("Index", np.int32, np.intp)
Result = TypeVar("Result")

CELLS = 1 << 20  # votes a stretch by rows: its truth values fill about a megabyte of cache
ROWS_BY_COLUMN = 1 << 18  # rows a stretch by columns: few columns are in work at a time
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


@dataclass(frozen=True)
class BytesOfTwo:
    """Two classes in columns of single bytes, whose labels are 1 or 2 apart.

    Attributes
    ----------
    low : uint8
        The lower label.
    step : {1, 2}
        By how much the higher one is more.
    turned : bool
        Whether the lower one is the positive class.
    """

    low: np.uint8
    step: int
    turned: bool

    @classmethod
    def of(cls, votes: Votes) -> BytesOfTwo | None:
        """Look whether votes are of this kind."""
        columns = votes.columns if isinstance(votes.columns, tuple) else (votes.columns,)
        kinds = {column.dtype for column in columns if isinstance(column, np.ndarray)}
        if len(votes.values) != 2 or len(kinds) != 1:
            return None
        (kind,) = kinds
        negative, positive = (_in_type(value, kind) for value in votes.values)
        if kind.itemsize != 1 or kind.kind not in "biu" or negative is None or positive is None:
            return None
        step = int(positive) - int(negative)
        low = np.uint8(min(int(negative), int(positive)) & 0xFF)
        return cls(low, abs(step), turned=step < 0) if abs(step) in {1, 2} else None


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
        m, planes = self.shape.classifiers, self.shape.planes
        self.by_rows = isinstance(votes.columns, np.ndarray)
        self.two = BytesOfTwo.of(votes)
        self.holes = False  # whether a vote was missing in a stretch so far
        # Eight bytes more, as the last gather of the last row reads past its row.
        self.truth = np.zeros(self.rows * m + 8 if self.by_rows else self.rows, dtype=bool)
        self.other = np.empty(self.rows * m if self.by_rows else self.rows, dtype=bool)
        self.octet = np.empty(self.rows, dtype=np.uint8)
        self.above = np.empty((0 if self.by_rows else min(m, 8), self.rows), dtype=np.uint8)
        self.eight = np.empty(self.rows if self.by_rows else 0, dtype="<u8")
        self.octets = np.empty((planes, -(-m // 8), self.rows), dtype=np.uint8)
        self.words = np.zeros((planes, self.shape.words, self.rows), dtype="<u8")
        self.number = np.empty(self.rows, dtype=np.uint64)
        self.place = np.empty(self.rows, dtype=np.intp)

    def planes(self, start: int, stop: int) -> tuple[Words, bool]:
        """Return the planes of rows start … stop as (planes, words, rows), and whether no vote is missing.

        The array is a buffer: the next call overwrites it.
        """
        octets, complete = self._fill(start, stop)
        if complete and self.shape.classes == 2:
            self._turn(octets[1], out=octets[0])
        words = self.words[..., : stop - start]
        of_word = words.view(np.uint8).reshape(*words.shape, 8)
        for place in range(octets.shape[1]):
            of_word[:, place // 8, :, place % 8] = octets[:, place]
        return words, complete

    def numbers(self, start: int, stop: int) -> tuple[NDArray[np.unsignedinteger], bool]:
        """Return each row's pattern as one number, and whether no vote is missing.

        The number is plane above plane; of complete binary rows it is plane 1 alone. Its type is the
        narrowest that holds it.
        The array is a buffer: the next call overwrites it.
        """
        octets, complete = self._fill(start, stop)
        if complete and self.shape.classes == 2:
            octets = octets[1:]
        m = self.shape.classifiers
        bits = len(octets) * m
        kind: Any = np.uint16 if bits <= 16 else np.uint32 if bits <= 32 else np.uint64
        number = self.number.view(kind)[: stop - start]
        number[:] = 0
        for plane in octets[::-1]:
            for place in range(len(plane) - 1, -1, -1):
                np.multiply(number, 1 << min(m - 8 * place, 8), out=number)
                np.add(number, plane[place], out=number)
        return number, complete

    def places(self, numbers: NDArray[np.unsignedinteger], kind: type[Index]) -> NDArray[Index]:
        """Return numbers as places in a table, in the type of index that the table is read by.

        The array is a buffer: the next call overwrites it.
        """
        place = self.place.view(kind)[: len(numbers)]
        np.copyto(place, numbers, casting="unsafe")  # they are small: a table is no longer than 2²⁰
        return place

    def _fill(self, start: int, stop: int) -> tuple[Octets, bool]:
        """Fill the octets, but for plane 0 of complete binary rows, which says nothing new."""
        shape, votes = self.shape, self.votes
        columns, octets = self._columns(start, stop), self.octets[..., : stop - start]
        if self.two is not None:
            pack = self._pack_rows_of_two if self.by_rows else self._pack_columns_of_two
            if pack(columns, self.two, octets[1]):
                if self.two.turned:
                    self._turn(octets[1], out=octets[1])
                return octets, True
            self.two = None  # where one vote is missing, more will be
        octets[:] = 0
        matched = sum(
            self._match(columns, votes.values[code], self._planes_of(octets, code))
            for code in range(1, shape.classes)
        )
        cells = (stop - start) * shape.classifiers
        full = shape.classes == 2 and not self.holes
        if full and matched + self._count(columns, votes.values[0]) == cells:
            return octets, True
        # Plane 0 holds the even codes: there code + 1 is odd. Those above 0 have been counted.
        matched += self._match(columns, votes.values[0], [octets[0]])
        for code in range(2, shape.classes, 2):
            self._match(columns, votes.values[code], [octets[0]])
        complete = matched == cells
        if not complete:
            self.holes = True
            if matched + self._count_missing(columns) < cells:
                votes.refuse_unknown_labels()
        return octets, complete

    def _planes_of(self, octets: Octets, code: int) -> list[Octets]:
        """Return the planes above plane 0 that hold a 1 for this class."""
        return [octets[b] for b in range(1, self.shape.planes) if (code + 1) >> b & 1]

    def _turn(self, octets: Octets, out: Octets) -> None:
        """Turn the bits of all classifiers round: who did not vote positive voted negative."""
        m = self.shape.classifiers
        for place in range(len(octets)):
            np.bitwise_xor(octets[place], np.uint8(_bits(m - 8 * place)), out=out[place])

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
        nan = sum(
            int(np.count_nonzero(column != column))  # noqa: PLR0124 (NaN is not itself)
            for column in columns
            if column.dtype.kind == "f"
        )
        return nan + sum(self._count(columns, value) for value in set(self.votes.missing))

    def _match(
        self, columns: list[NDArray[np.generic]], value: object, targets: list[Octets]
    ) -> int:
        """Set the bit of every vote that equals `value` in each target plane; return how many there are."""
        pack = self._pack_rows if self.by_rows else self._pack_columns
        return pack(columns, value, targets)

    def _pack_rows(
        self, columns: list[NDArray[np.generic]], value: object, targets: list[Octets]
    ) -> int:
        truth = _equal(columns[0], value, self.truth[: len(columns[0])])
        for place in range(-(-self.shape.classifiers // 8)):
            octet = self._gathered(place, GATHER, self.octet[: targets[0].shape[1]])
            for target in targets:
                np.bitwise_or(target[place], octet, out=target[place])
        return int(np.count_nonzero(truth))

    def _pack_rows_of_two(
        self, columns: list[NDArray[np.generic]], two: BytesOfTwo, target: Octets
    ) -> bool:
        (cells,) = columns
        above = self.truth.view(np.uint8)[: len(cells)]
        np.subtract(cells.view(np.uint8), two.low, out=above)
        if np.bitwise_or.reduce(above) & (0xFF - two.step):
            return False
        for place, octet in enumerate(target):
            self._gathered(place, GATHER // np.uint64(two.step), octet)
        return True

    def _gathered(self, place: int, factor: np.uint64, octet: Octets) -> Octets:
        """Put the bits of eight classifiers of every row, which lie in bytes, into one octet a row."""
        m, rows = self.shape.classifiers, len(octet)
        # Read as one unaligned number a row; what is past the row is masked.
        eight = np.ndarray((rows,), "<u8", self.truth.data, offset=8 * place, strides=(m,))
        product = self.eight[:rows]
        np.multiply(eight, factor, out=product)
        top = product.view(np.uint8)[7::8]
        np.bitwise_and(top, np.uint8(_bits(m - 8 * place)), out=octet)
        return octet

    def _pack_columns(
        self, columns: list[NDArray[np.generic]], value: object, targets: list[Octets]
    ) -> int:
        rows, matched = len(columns[0]), 0
        octet, truth = self.octet[:rows], self.truth[:rows]
        for first in range(0, len(columns), 8):
            octet[:] = 0
            for column in columns[first : first + 8][::-1]:
                _equal(column, value, truth)
                matched += int(np.count_nonzero(truth))
                np.add(octet, octet, out=octet)
                np.add(octet, truth.view(np.uint8), out=octet)
            for target in targets:
                np.bitwise_or(target[first // 8], octet, out=target[first // 8])
        return matched

    def _pack_columns_of_two(
        self, columns: list[NDArray[np.generic]], two: BytesOfTwo, target: Octets
    ) -> bool:
        rows, seen = len(columns[0]), 0
        for first in range(0, len(columns), 8):
            group = columns[first : first + 8]
            above = self.above[: len(group), :rows]
            for column, bits in zip(group, above, strict=True):
                np.subtract(column.view(np.uint8), two.low, out=bits)
            seen |= int(np.bitwise_or.reduce(above, axis=None))
            np.copyto(target[first // 8], _folded(above, two.step))
        return not seen & ~two.step


def _folded(above: Octets, step: int) -> Octets:
    """Fold up to eight rows of bytes, each 0 or `step`, into one row of octets, in place.

    Neighbours become pairs of bits, those fours, and those eights: seven passes, where one column
    after another would take sixteen.
    """
    if step == 1:
        np.add(above[1::2], above[1::2], out=above[1::2])
    else:  # 2: those of the higher bit are doubled already
        np.equal(above[::2], step, out=above[::2].view(bool))
    width = 2
    while True:
        low, high = above[: len(above) // 2 * 2 : 2], above[1::2]
        np.add(low, high, out=low)
        above = above[::2]
        if len(above) == 1:
            return above.reshape(-1)
        np.multiply(above[1::2], 1 << width, out=above[1::2])
        width *= 2


def _bits(count: int) -> int:
    """As many ones as an octet has of the next `count` bits."""
    return (1 << min(count, 8)) - 1


def _in_type(value: object, kind: np.dtype[Any]) -> Any:
    """Write a value in the type of a column; None where the type cannot hold it."""
    try:
        with np.errstate(invalid="ignore"):  # NaN among whole numbers
            own = np.asarray(value).astype(kind)
    except (TypeError, ValueError, OverflowError):
        return None
    return own if own == value else None


def _equal(cells: NDArray[np.generic], value: object, out: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Compare in the cells' own type; a value that the type cannot hold equals none of them."""
    own = _in_type(value, cells.dtype)
    if own is None:
        out[:] = False
        return out
    np.equal(cells, own, out=out)
    return out


def stretch(votes: Votes) -> int:
    """Rows that are read at a time."""
    if isinstance(votes.columns, np.ndarray):
        return min(votes.items, max(CELLS // len(votes.classifiers), 64))
    return min(votes.items, ROWS_BY_COLUMN, max(32 * CELLS // len(votes.classifiers), 64))


def read_all(votes: Votes, work: Callable[[Reader, int, int], Result]) -> Iterator[Result]:
    """Do `work` on every stretch of rows, on all cores; results come in the order of the rows."""
    rows = stretch(votes)
    starts = range(0, votes.items, rows)
    workers = min(len(starts), os.cpu_count() or 1)
    if isinstance(votes.columns, tuple) and all(each.itemsize == 1 for each in votes.columns):
        # A pass over such a column takes 5 µs, about as long as it takes to hand the interpreter's
        # lock from one thread to another: two threads were slower than one (measured).
        workers = 1
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
