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

from labelfree._counting import Counts, count_dense, merged_dense, merged_sparse
from labelfree._errors import OptionsError, VotesError, listed
from labelfree._labels import asked_classes, look_at_labels
from labelfree._patterns import Shape, Words, codes_of_words, words_of_codes
from labelfree._votes import Label, UnexpectedLabelError, Votes, read_votes

if TYPE_CHECKING:
    from scipy.sparse import csr_array


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
        return cls(names, classes, *merged_dense(words, weights[kept]))

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

            merged = merged_sparse(vstack(patterns, format="csr"), counts)
            return Tally(self.classifiers, self.classes, *merged)
        return Tally(
            self.classifiers, self.classes, *merged_dense(np.concatenate(patterns), counts)
        )

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
            return Tally(classifiers, classes, *merged_dense(words, self.counts))
        patterns = codes[:, order].tocsr()
        patterns.data = (recode[patterns.data] + 1).astype(np.int8)
        return Tally(classifiers, classes, *merged_sparse(patterns, self.counts))

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
    if isinstance(votes.columns, np.ndarray | tuple):
        patterns, counts = count_dense(votes)
        return Tally(votes.classifiers, votes.classes, patterns, counts)
    merged_votes = merged_sparse(votes.columns, np.ones(votes.items))
    return Tally(votes.classifiers, votes.classes, *merged_votes)


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
    patterns, counts = merged_sparse(csr_array(codes + np.int8(1)), tally.counts)
    return replace(tally, patterns=patterns, counts=counts)
