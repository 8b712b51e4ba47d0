"""Tally: the distinct vote patterns and how often each occurred; the one thing the numerics see.

Patterns stand in one fixed order, whatever the order of the items, so that equal votes give equal
tallies and every later sum runs in the same order. Tallies add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labelfree._errors import OptionsError, VotesError, listed
from labelfree._labels import asked_classes, look_at_labels
from labelfree._patterns import (
    Reader,
    Shape,
    Words,
    codes_of_words,
    read_all,
    words_of,
    words_of_codes,
)
from labelfree._votes import Label, UnexpectedLabelError, Votes, read_votes

if TYPE_CHECKING:
    from scipy.sparse import csr_array

HISTOGRAM_BITS = 20  # patterns of no more bits are counted by direct address
SORT_ROWS = 1 << 21  # rows that are gathered before equal ones are merged
Counts = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Tally:
    """Distinct vote patterns with their counts.

    Made by :func:`tally` from votes, or by :meth:`from_codes`.

    Attributes
    ----------
    classifiers : tuple of str
    classes : tuple of labels
        Of two, the last is positive.
    patterns : (P, words) array of uint64, or sparse (P, m) array
        Dense patterns as bits (see the room of patterns); sparse ones as class code + 1.
    counts : (P,) array of float
        Positive. Whole numbers are counts of items; others are read as exact frequencies.
    """

    classifiers: tuple[str, ...]
    classes: tuple[Label, ...]
    patterns: Words | csr_array = field(repr=False)
    counts: Counts = field(repr=False)

    @classmethod
    def from_codes(
        cls,
        codes: ArrayLike,
        counts: ArrayLike,
        *,
        classifiers: Sequence[str] | None = None,
        classes: Sequence[Label] = (0, 1),
    ) -> Tally:
        """Make a tally from patterns and their counts.

        Parameters
        ----------
        codes : (P, m) array of int
            Votes as positions in `classes`, 0 … K−1; −1 for a missing vote.
        counts : (P,) array
            How often each pattern occurred; exact probabilities are allowed too.
        classifiers : sequence of str, optional
            Names; by default ``classifier_1`` …
        classes : sequence of labels
            By default 0 and 1.

        Returns
        -------
        Tally

        Examples
        --------
        >>> import labelfree as lf
        >>> lf.Tally.from_codes([[1, 1, 0], [0, 0, 0], [1, 1, 0]], [3, 4, 1])
        Tally: 8 votes patterns of 3 classifiers, 2 of them distinct; classes 0, 1
        """
        classes = asked_classes(classes)
        try:
            table, weights = np.asarray(codes), np.asarray(counts)
        except ValueError:
            raise VotesError(
                "Expected codes in rows of equal length, got rows of unequal length; mark a missing vote by -1."
            ) from None
        if table.ndim != 2 or weights.shape != (len(table),):
            raise VotesError(
                f"Expected codes of shape (patterns, classifiers) and one count a pattern, "
                f"got shapes {table.shape} and {weights.shape}; make them agree."
            )
        if table.dtype.kind not in "iu" or (
            table.size and not (table.min() >= -1 and table.max() < len(classes))
        ):
            raise VotesError(
                f"Expected codes that are whole numbers from -1 to {len(classes) - 1}, got others; mend them."
            )
        numbers = weights.dtype.kind in "biuf"
        weights = weights.astype(np.float64) if numbers else np.zeros(0)
        # Finite by one half of the range, so that sums over them are too.
        finite = bool((np.abs(weights) < np.finfo(np.float64).max / 2 / max(len(weights), 1)).all())
        if not finite or (weights < 0).any() or not (weights > 0).any():
            raise VotesError(
                "Expected counts that are finite numbers, not negative and not all zero, got others; drop or mend them."
            )
        m = table.shape[1]
        names = (
            tuple(f"classifier_{i}" for i in range(1, m + 1))
            if classifiers is None
            else tuple(map(str, classifiers))
        )
        if len(names) != m or len(set(names)) < m:
            raise OptionsError(
                f"classifiers= must name each of the {m} columns once, got {listed(names)}; give one name a column."
            )
        shape = Shape(m, len(classes))
        kept = weights > 0
        words = words_of_codes(table[kept].astype(np.int64), shape)
        return cls(names, classes, *_merged(words, weights[kept]))

    @property
    def items(self) -> float:
        """Sum of the counts."""
        return float(self.counts.sum())

    @cached_property
    def sample_size(self) -> float:
        """Number of items that sampling error comes from: infinite where the counts are not whole numbers."""
        return self.items if (self.counts == np.rint(self.counts)).all() else float("inf")

    @property
    def shape(self) -> Shape:
        """Numbers of classifiers and classes."""
        return Shape(len(self.classifiers), len(self.classes))

    @property
    def is_sparse(self) -> bool:
        """Whether the patterns are stored sparse."""
        return not isinstance(self.patterns, np.ndarray)

    def __len__(self) -> int:
        return len(self.counts)

    def codes(self, start: int = 0, stop: int | None = None) -> NDArray[np.int8] | csr_array:
        """Patterns start … stop as codes −1 … K−1; sparse ones as code + 1."""
        part = self.patterns[start : len(self) if stop is None else stop]
        return codes_of_words(part, self.shape) if isinstance(part, np.ndarray) else part

    def __add__(self, other: Tally) -> Tally:
        if not isinstance(other, Tally):
            return NotImplemented
        if set(self.classifiers) != set(other.classifiers) or set(self.classes) != set(
            other.classes
        ):
            raise VotesError(
                f"Only tallies of the same classifiers and classes add up; these have "
                f"{listed(self.classifiers)} with {listed(self.classes)}, and "
                f"{listed(other.classifiers)} with {listed(other.classes)}."
            )
        other = other._arranged(self.classifiers, self.classes)
        one, two = _stored_alike(self, other)
        patterns: tuple[Any, Any] = (one.patterns, two.patterns)
        counts = np.concatenate([one.counts, two.counts])
        if one.is_sparse:
            from scipy.sparse import vstack

            merged = _merged_sparse(vstack(patterns, format="csr"), counts)
            return Tally(self.classifiers, self.classes, *merged)
        return Tally(self.classifiers, self.classes, *_merged(np.concatenate(patterns), counts))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tally):
            return NotImplemented
        if (self.classifiers, self.classes, len(self)) != (
            other.classifiers,
            other.classes,
            len(other),
        ):
            return False
        one, two = _stored_alike(self, other)
        patterns: tuple[Any, Any] = (one.patterns, two.patterns)
        differ = patterns[0] != patterns[1]
        count = differ.nnz if one.is_sparse else np.count_nonzero(differ)
        return bool(count == 0 and np.array_equal(one.counts, two.counts))

    __hash__ = None  # type: ignore[assignment]

    def _arranged(self, classifiers: tuple[str, ...], classes: tuple[Label, ...]) -> Tally:
        """Return the same tally with its classifiers and classes in another order."""
        if (classifiers, classes) == (self.classifiers, self.classes):
            return self
        order = [self.classifiers.index(name) for name in classifiers]
        recode = np.array([-1, *(classes.index(label) for label in self.classes)])
        codes = self.codes()
        if isinstance(codes, np.ndarray):
            words = words_of_codes(recode[codes[:, order].astype(np.int64) + 1], self.shape)
            return Tally(classifiers, classes, *_merged(words, self.counts))
        patterns = codes[:, order].tocsr()
        patterns.data = (recode[patterns.data] + 1).astype(np.int8)
        return Tally(classifiers, classes, *_merged_sparse(patterns, self.counts))

    def __repr__(self) -> str:
        size = int(self.items) if np.isfinite(self.sample_size) else f"{self.items:g}"
        return (
            f"Tally: {size} votes patterns of {len(self.classifiers)} classifiers, {len(self)} of them distinct; "
            f"classes {listed(self.classes)}"
        )


def tally(votes: Any, **options: Any) -> Tally:
    """Count the distinct vote patterns, in one pass over the votes.

    Parameters
    ----------
    votes : array, dataframe, mapping of columns, path of a file, or Tally
        As for :func:`estimate`; a tally comes back as it is.
    **options
        The reading options of :func:`estimate`: `positive`, `classes`, `missing`, `classifiers`,
        `item`, `classifier`, `vote`, `duplicates`.

    Returns
    -------
    Tally
        ``tally(a) + tally(b) == tally(a and b)`` for any split of the items, where both parts name
        the same classes (give `classes` when a part may lack a label).

    Examples
    --------
    >>> import labelfree as lf
    >>> lf.tally([[1, 1, 0], [0, 0, 0], [1, 1, 0]])
    Tally: 3 votes patterns of 3 classifiers, 2 of them distinct; classes 0, 1
    >>> lf.tally({"ann": ["cat", "dog"], "bob": ["cow", "dog"], "cem": ["cow", None]})
    Tally: 2 votes patterns of 3 classifiers, 2 of them distinct; classes cat, cow, dog
    """
    if isinstance(votes, Tally):
        given = [f"{name}=" for name, value in options.items() if not _is_unsaid(value)]
        if given:
            raise OptionsError(
                f"A tally has been read already, so {listed(given)} cannot apply; leave it out, or give the votes."
            )
        return votes
    return settled(read_votes(votes, **options))[1]


def _is_unsaid(option: Any) -> bool:
    return option is None or (isinstance(option, tuple | list) and len(option) == 0)


def settled(votes: Votes) -> tuple[Votes, Tally]:
    """Count votes; where a later row holds one more label, count again with all of them as classes.

    Nothing is looked up beforehand: counting notices any label that the first rows did not show.
    """
    counted = None
    with suppress(UnexpectedLabelError):
        counted = count_votes(votes)
    if counted is None:
        votes = votes.with_all_labels()
        counted = count_votes(votes)
    if votes.may_hold != "named":
        look_at_labels(votes.classes)
    return votes, counted


def count_votes(votes: Votes) -> Tally:
    """Count the patterns of checked votes."""
    if not isinstance(votes.columns, np.ndarray | tuple):
        return Tally(
            votes.classifiers, votes.classes, *_merged_sparse(votes.columns, np.ones(votes.items))
        )
    shape = Shape(len(votes.classifiers), len(votes.classes))
    complete_bits = shape.classifiers if shape.classes == 2 else shape.bits
    count = _count_by_address if complete_bits <= HISTOGRAM_BITS else _count_by_sorting
    return Tally(votes.classifiers, votes.classes, *count(votes, shape))


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
            return complete, np.bincount(numbers.view(np.intp), minlength=bins[complete])
        return False, np.unique(numbers, return_counts=True)

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
    return _merged(words, np.concatenate([counts for _, counts in gathered]))


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
    return _merged(together, np.concatenate([counts, np.ones(new)]))


def _merged(words: Words, counts: Counts) -> tuple[Words, Counts]:
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


def _stored_alike(one: Tally, two: Tally) -> tuple[Tally, Tally]:
    """Store both sparse where one is: how votes are stored is no part of what they say."""
    if one.is_sparse == two.is_sparse:
        return one, two
    return _as_sparse(one), _as_sparse(two)


def _as_sparse(tally: Tally) -> Tally:
    from scipy.sparse import csr_array

    codes = tally.codes()
    if not isinstance(codes, np.ndarray):
        return tally
    patterns, counts = _merged_sparse(csr_array(codes + np.int8(1)), tally.counts)
    return replace(tally, patterns=patterns, counts=counts)


def _merged_sparse(patterns: csr_array, counts: Counts) -> tuple[csr_array, Counts]:
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
