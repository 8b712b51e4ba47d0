"""Votes -> their distinct patterns and how often each occurred; equal patterns are merged.

Few bits a pattern: a histogram by direct address. More: patterns are gathered, sorted and merged.
Patterns come out in one fixed order, whatever the order of the items.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from labelfree._patterns import Reader, Shape, Words, read_all, words_of
from labelfree._votes import Votes

if TYPE_CHECKING:
    from scipy.sparse import csr_array

HISTOGRAM_BITS = 20  # patterns of no more bits are counted by direct address
SORT_ROWS = 1 << 21  # rows that are gathered before equal ones are merged
SPARSE_FROM = 1 << 17  # places: as many are counted in .1 ms, and the import takes 75 ms
Counts = NDArray[np.float64]


def count_dense(votes: Votes) -> tuple[Words, Counts]:
    """Count the patterns of dense votes."""
    shape = Shape(len(votes.classifiers), len(votes.classes))
    if votes.counts is not None:
        rows = read_all(votes, lambda reader, *place: words_of(reader.planes(*place)[0]))
        return merged_dense(np.concatenate(list(rows)), votes.counts)
    complete_bits = shape.classifiers if shape.classes == 2 else shape.bits
    count = _count_by_address if complete_bits <= HISTOGRAM_BITS else _count_by_sorting
    return count(votes, shape)


def _count_by_address(votes: Votes, shape: Shape) -> tuple[Words, Counts]:
    """Count by direct address: the histogram of the patterns' numbers, complete binary rows apart."""
    bins = {True: 1 << shape.classifiers if shape.classes == 2 else 0, False: 1 << shape.bits}
    bins = {complete: size if size <= 1 << HISTOGRAM_BITS else 0 for complete, size in bins.items()}
    histograms = {complete: np.zeros(size, dtype=np.int64) for complete, size in bins.items()}
    gathered: list[tuple[Words, Counts]] = []

    def work(reader: Reader, start: int, stop: int) -> tuple[bool, Any]:
        numbers, complete = reader.numbers(start, stop)
        complete = complete and shape.classes == 2
        if bins[complete]:
            return complete, _histogram(reader.places(numbers, np.int32), bins[complete])
        return False, np.unique(numbers.astype(np.uint64), return_counts=True)

    for complete, found in read_all(votes, work):
        if isinstance(found, tuple):
            gathered.append((found[0], found[1].astype(np.float64)))
        else:
            histograms[complete] += found
    for complete, counts in histograms.items():
        numbers = np.flatnonzero(counts).astype(np.uint64)
        found = counts[numbers.view(np.intp)].astype(np.float64)
        gathered.append((_with_plane_0(numbers, shape) if complete else numbers, found))
    numbers = np.concatenate([numbers for numbers, _ in gathered])
    mask = np.uint64((1 << shape.classifiers) - 1)
    words = np.stack(
        [numbers >> np.uint64(plane * shape.classifiers) & mask for plane in range(shape.planes)],
        axis=1,
    )
    return merged_dense(words, np.concatenate([counts for _, counts in gathered]))


def _histogram(places: NDArray[np.int32], bins: int) -> NDArray[np.integer]:
    """Count how often each place occurs.

    A sparse matrix of one column, with a one at each place, times that one: repeated places add up.
    It takes .4 of the time of NumPy's `bincount` (measured), which looks at all places twice and keeps
    other threads waiting all the while. Few places do not repay loading SciPy's sparse matrices.
    """
    if len(places) < SPARSE_FROM:
        return np.bincount(places, minlength=bins)
    from scipy.sparse import csc_array

    ones = np.ones(len(places), dtype=np.int32)
    ends = np.array([0, len(places)], dtype=np.int32)
    column = csc_array((ones, places, ends), shape=(bins, 1))
    return np.asarray(column @ np.ones(1, dtype=np.int32))


def _with_plane_0(numbers: Words, shape: Shape) -> Words:
    """Complete binary rows: plane 0, the negative votes, is the complement of plane 1."""
    return numbers << np.uint64(shape.classifiers) | numbers ^ np.uint64(
        (1 << shape.classifiers) - 1
    )


def _count_by_sorting(votes: Votes, shape: Shape) -> tuple[Words, Counts]:
    """Gather packed patterns and merge equal ones, often enough to keep few where they repeat."""
    gathered: list[Words] = []
    words, counts = np.empty((0, shape.planes * shape.words), dtype=np.uint64), np.empty(0)
    waiting = 0
    for stretch in read_all(
        votes, lambda reader, start, stop: words_of(reader.planes(start, stop)[0])
    ):
        gathered.append(stretch)
        waiting += len(stretch)
        if waiting >= max(SORT_ROWS, len(words)):
            words, counts = _merge_gathered(words, counts, gathered)
            waiting = 0
    return _merge_gathered(words, counts, gathered)


def _merge_gathered(words: Words, counts: Counts, gathered: list[Words]) -> tuple[Words, Counts]:
    new = sum(map(len, gathered))
    together = np.concatenate([words, *gathered])
    gathered.clear()
    return merged_dense(together, np.concatenate([counts, np.ones(new)]))


def merged_dense(words: Words, counts: Counts) -> tuple[Words, Counts]:
    """Sort patterns by their words and add up the counts of equal ones."""
    if len(words) < 2:
        return words, counts
    order = _sorting_order(words)
    words = words[order]
    first = np.flatnonzero(np.concatenate([[True], (words[1:] != words[:-1]).any(axis=1)]))
    if len(first) == len(words):
        return words, counts[order]
    return words[first], np.add.reduceat(counts[order], first)


def _sorting_order(words: Words) -> NDArray[np.intp]:
    """Order rows by their last word, then by the one before; most rows differ in the last alone."""
    order = np.argsort(words[:, -1], kind="stable")
    last = words[order, -1]
    tied = np.concatenate([[False], last[1:] == last[:-1]])
    if words.shape[1] > 1 and tied.any():
        in_run = tied | np.concatenate([tied[1:], [False]])
        places = np.flatnonzero(in_run)
        rows = order[places]
        order[places] = rows[np.lexsort(words[rows].T)]
    return order


def merged_sparse(patterns: csr_array, counts: Counts) -> tuple[csr_array, Counts]:
    """Sort sparse patterns by a 128-bit fingerprint of their votes and merge equal ones."""
    from scipy.sparse import csr_array

    patterns = csr_array(patterns, copy=True)
    patterns.eliminate_zeros()
    patterns.sort_indices()
    cell = patterns.indices.astype(np.uint64) << np.uint64(8) | patterns.data.astype(np.uint64)
    prints = np.empty((2, patterns.shape[0]), dtype=np.uint64)
    for line, salt in enumerate((0x9E3779B97F4A7C15, 0xD1B54A32D192ED03)):
        # Sums over rows as differences of running sums: both wrap round at 2⁶⁴, so they are exact.
        running = np.zeros(len(cell) + 1, dtype=np.uint64)
        np.cumsum(_mixed(cell + np.uint64(salt)), out=running[1:])
        prints[line] = running[patterns.indptr[1:]] - running[patterns.indptr[:-1]]
    order = np.lexsort(prints)
    ordered = prints[:, order]
    first = np.flatnonzero(
        np.concatenate([[True], (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)])
    )
    return patterns[order[first]], np.add.reduceat(counts[order], first)


def _mixed(number: Words) -> Words:
    """Scatter 64-bit numbers (the finishing steps of splitmix64; Steele, Lea and Flood 2014)."""
    number = (number ^ (number >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    number = (number ^ (number >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return number ^ (number >> np.uint64(31))
