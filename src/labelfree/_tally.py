"""Tally: the distinct vote patterns and how often each occurred; the one thing the numerics see.

Patterns stand in one fixed order, whatever the order of the items, so that equal votes give equal
tallies and every later sum runs in the same order. Tallies add up.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labelfree._arrays import check_size
from labelfree._batches import Gathered, in_batch, is_text_file, numbered, pieces_of
from labelfree._counting import Counts, count_dense, merged_dense, merged_sparse
from labelfree._engine_wide import REPEATING
from labelfree._errors import OptionsError, VotesError, counted, listed
from labelfree._labels import asked_classes, look_at_labels
from labelfree._large_files import LargeFile, is_large, paths_in, scanned_if_wide, with_types
from labelfree._patterns import Shape, Words, codes_of_words, words_of_codes
from labelfree._tally_file import FORMAT, VERSION, is_tally_file, read_tally, write_tally
from labelfree._votes import Label, UnexpectedLabelError, Votes, Whole, read_votes

if TYPE_CHECKING:
    from scipy.sparse import csr_array

DENSE_CELLS = (
    50_000_000  # cells of patterns that are laid out with all classifiers; more are stored sparse
)
MERGE_AT = 1 << 16  # patterns of batches that are gathered before equal ones are merged
ROUNDING = 1e-12  # of the largest count: what rounding may leave of frequencies that cancel


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
    whole : Whole, optional
        Where the patterns are those of a sample: what is known of all items.
    """

    classifiers: tuple[str, ...]
    classes: tuple[Label, ...]
    patterns: Words | csr_array = field(repr=False)
    counts: Counts = field(repr=False)
    whole: Whole | None = field(default=None, repr=False)

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

    @classmethod
    def from_batches(cls, batches: Iterable[Any], **options: Any) -> Tally:
        """Count votes that come in batches, each of them read once and then let go.

        Parameters
        ----------
        batches : iterable
            Arrays, dataframes, mappings, lists of rows or paths of files. An item's votes all stand
            in one batch. A batch without rows is passed over.
        **options
            The reading options of :func:`estimate`: `positive`, `classes`, `missing`, `classifiers`,
            `item`, `classifier`, `vote`, `duplicates`.

        Returns
        -------
        Tally
            Equal to the tally of all votes in one table, whatever the order of the batches and wherever
            they were cut: a batch may lack a label, or in the long form a classifier, that others hold.

        Examples
        --------
        >>> import labelfree as lf
        >>> days = [[["no", "no", "no"]], [["yes", "no", "yes"], ["yes", "yes", "yes"]]]
        >>> lf.Tally.from_batches(days)
        Tally: 3 votes patterns of 3 classifiers, 3 of them distinct; classes no, yes
        """
        return _from_batches(batches, **options)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tally to a file, by custom ``….tally``; :meth:`load` reads it back exactly.

        The file holds plain arrays, a version and a hash, and no pickle. The same tally gives the same bytes.

        Parameters
        ----------
        path : str or path
        """
        self._check_whole("save")
        write_tally(path, (self.classifiers, self.classes, self.patterns, self.counts))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Tally:
        """Read a tally that :meth:`save` wrote.

        Parameters
        ----------
        path : str or path

        Returns
        -------
        Tally
        """
        return cls(*read_tally(path))

    def as_dict(self) -> dict[str, Any]:
        """What was counted, without the patterns: what ``tally --json`` prints."""
        whole = np.isfinite(self.sample_size)
        return {
            "format": FORMAT,
            "version": VERSION,
            "classifiers": list(self.classifiers),
            "classes": list(self.classes),
            "items": int(self.items) if whole else self.items,
            "patterns": len(self),
        }

    @property
    def items(self) -> float:
        """Sum of the counts."""
        return float(self.counts.sum())

    @property
    def stands_for(self) -> float:
        """Number of items, of which these may be a sample."""
        return self.items if self.whole is None else self.whole.items

    def alone(self) -> Tally:
        """Return the patterns by themselves, without what is known of the items beyond them."""
        return self if self.whole is None else replace(self, whole=None)

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

    def thinned(self, most: int) -> Tally:
        """Return no more than an even spread of the patterns: every so-many-th, in their fixed order.

        Parameters
        ----------
        most : int
            Patterns to keep.

        Returns
        -------
        Tally
            The same for any order of the items; this one where its patterns are few enough.
        """
        every = -(-len(self) // most)
        if every <= 1:
            return self
        # Copies, as a part that shares their memory would keep all patterns alive.
        return replace(
            self, patterns=self.patterns[::every].copy(), counts=self.counts[::every].copy()
        )

    def __add__(self, other: Tally) -> Tally:
        if not isinstance(other, Tally):
            return NotImplemented
        self._check_alike(other, "add up")
        return _together([self, other], self.classifiers, self.classes)

    def __sub__(self, other: Tally) -> Tally:
        if not isinstance(other, Tally):
            return NotImplemented
        self._check_alike(other, "can be subtracted")
        less = replace(other, counts=-other.counts)
        rest = _together([self, less], self.classifiers, self.classes)
        # Frequencies that are not whole numbers leave rounding behind.
        exact = np.isfinite(self.sample_size) and np.isfinite(other.sample_size)
        least = 0.0 if exact else ROUNDING * float(self.counts.max())
        short = int(np.count_nonzero(rest.counts < -least))
        if short:
            raise VotesError(
                f"Expected to subtract items that the tally holds, got {counted(short, 'pattern')} with more of them than there are; "
                "subtract only what was added before."
            )
        kept = rest.counts > least
        if not kept.any():
            raise VotesError(
                "Expected some items to be left, got a tally less all of its items; add the new ones before subtracting the old."
            )
        return replace(rest, patterns=rest.patterns[kept], counts=rest.counts[kept])

    def _check_whole(self, what: str) -> None:
        if self.whole is not None:
            raise VotesError(
                f"Expected a tally of all items to {what}, got a sample of {self.items:,.0f} of {self.whole.items:,.0f}, as its "
                "classifiers are too many to count every pattern; name fewer with classifiers=, or count parts with Tally.from_batches."
            )

    def _check_alike(self, other: Tally, what: str) -> None:
        for each in (self, other):
            each._check_whole(what)
        if set(self.classifiers) != set(other.classifiers) or set(self.classes) != set(
            other.classes
        ):
            raise VotesError(
                f"Only tallies of the same classifiers and classes {what}; these have "
                f"{listed(self.classifiers)} with {listed(self.classes)}, and "
                f"{listed(other.classifiers)} with {listed(other.classes)}. Count the votes with the same classes= and classifiers=."
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

    def _arranged(
        self,
        classifiers: tuple[str, ...],
        classes: tuple[Label, ...],
        stands_for: Mapping[Label, Label] | None = None,
    ) -> Tally:
        """Return the same tally with its classifiers and classes in another order, among others perhaps.

        `stands_for` says which of the new classes each of the old ones is, where that is another.
        """
        if (classifiers, classes, stands_for) == (self.classifiers, self.classes, None):
            return self
        grown = len(classifiers) > len(self.classifiers)
        if grown and not self.is_sparse and len(self) * len(classifiers) > DENSE_CELLS:
            return _as_sparse(self)._arranged(classifiers, classes, stands_for)
        new = [label if stands_for is None else stands_for[label] for label in self.classes]
        recode = np.array([-1, *map(classes.index, new)])
        codes = self.codes()
        if isinstance(codes, np.ndarray):
            own = {name: column for column, name in enumerate(self.classifiers)}
            order = [own.get(name, len(own)) for name in classifiers]
            laid = np.pad(codes.astype(np.int64), ((0, 0), (0, 1)), constant_values=-1)[:, order]
            words = words_of_codes(recode[laid + 1], Shape(len(classifiers), len(classes)))
            return Tally(classifiers, classes, *merged_dense(words, self.counts))
        return Tally(classifiers, classes, *_sparse_arranged(self, classifiers, recode))

    def __repr__(self) -> str:
        size = int(self.items) if np.isfinite(self.sample_size) else f"{self.items:g}"
        if self.whole is not None:
            size = f"a sample of {size} of {int(self.whole.items)}"
        return (
            f"Tally: {size} votes patterns of {len(self.classifiers)} classifiers, {len(self)} of them distinct; "
            f"classes {listed(self.classes)}"
        )


def _sparse_arranged(
    tally: Tally, classifiers: tuple[str, ...], recode: NDArray[np.int64]
) -> tuple[csr_array, Counts]:
    from scipy.sparse import csr_array

    patterns: Any = tally.patterns
    place = {name: column for column, name in enumerate(classifiers)}
    columns = np.array([place[name] for name in tally.classifiers])[patterns.indices]
    votes = (recode[patterns.data] + 1).astype(np.int8)
    shape = (len(tally), len(classifiers))
    return merged_sparse(csr_array((votes, columns, patterns.indptr), shape=shape), tally.counts)


def _together(
    tallies: Sequence[Tally], classifiers: tuple[str, ...], classes: tuple[Label, ...]
) -> Tally:
    """Add tallies up, each of some of these classifiers and classes."""
    parts = [each._arranged(classifiers, classes) for each in tallies]
    if any(part.is_sparse for part in parts):
        parts = [_as_sparse(part) for part in parts]
    patterns: list[Any] = [part.patterns for part in parts]
    counts = np.concatenate([part.counts for part in parts])
    if parts[0].is_sparse:
        from scipy.sparse import vstack

        merged = merged_sparse(vstack(patterns, format="csr"), counts)
        return Tally(classifiers, classes, *merged)
    return Tally(classifiers, classes, *merged_dense(np.concatenate(patterns), counts))


def tally(votes: Any, **options: Any) -> Tally:
    """Count the distinct vote patterns, in one pass over the votes.

    Parameters
    ----------
    votes : array, dataframe, mapping of columns, path of a file, or Tally
        As for :func:`estimate`; a tally comes back as it is, and a file ``….tally`` is loaded.
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
    paths = paths_in(votes)
    if paths is not None and (len(paths) > 1 or paths[0] is not votes or is_large(paths[0])):
        return tally_files(paths, **options)
    if is_tally_file(votes):
        votes = Tally.load(votes)
    if isinstance(votes, Tally):
        given = [f"{name}=" for name, value in options.items() if not _is_unsaid(value)]
        if given:
            raise OptionsError(
                f"A tally has been read already, so {listed(given)} cannot apply; leave it out, or give the votes."
            )
        return votes
    return settled(read_votes(votes, **options, items_apart=False))[1]


def _is_unsaid(option: Any) -> bool:
    return option is None or (isinstance(option, tuple | list) and len(option) == 0)


def settled(votes: Votes) -> tuple[Votes, Tally]:
    """Count votes; where a later row holds one more label, count again with all of them as classes.

    Nothing is looked up beforehand: counting notices any label that the first rows did not show.
    """
    votes, found = _counted(votes)
    if votes.may_hold != "named":
        look_at_labels(votes.classes)
    return votes, found


def _counted(votes: Votes) -> tuple[Votes, Tally]:
    found = None
    with suppress(UnexpectedLabelError):
        found = count_votes(votes)
    if found is None:
        votes = votes.with_all_labels()
        found = count_votes(votes)
    return votes, found


def count_votes(votes: Votes) -> Tally:
    """Count the patterns of checked votes."""
    if isinstance(votes.columns, np.ndarray | tuple):
        patterns, counts = count_dense(votes)
        return Tally(votes.classifiers, votes.classes, patterns, counts, votes.whole)
    merged_votes = merged_sparse(votes.columns, np.ones(votes.items))
    return Tally(votes.classifiers, votes.classes, *merged_votes)


def _from_batches(batches: Iterable[Any], **options: Any) -> Tally:
    """Count batch by batch, with the labels that each holds; put them in order at the end."""
    so_far = _Sum(options, Gathered(long=options.get("classifier") is not None))
    for number, batch in numbered(batches):
        named = isinstance(batch, str | os.PathLike)
        for part in paths_in(batch) or () if named else (batch,):
            if named and is_large(part):
                so_far = with_types(part, so_far.with_pieces)
            else:
                place = str(part) if named else f"Batch {number}"
                so_far.add(part, options, place, typed=not is_text_file(part))
    return so_far.tally()


@dataclass
class _Sum:
    """What has been counted of batches so far.

    Attributes
    ----------
    options : mapping
        By which all of them are read.
    found : Gathered
    total, waiting : list of Tally
        Merged already, and not yet: merging when as many wait as there are keeps its cost linear.
    unvoted : float
        Items of batches in which nobody voted.
    """

    options: Mapping[str, Any]
    found: Gathered
    total: list[Tally] = field(default_factory=list)
    waiting: list[Tally] = field(default_factory=list)
    unvoted: float = 0.0

    def add(self, votes: Any, options: Mapping[str, Any], place: str, *, typed: bool) -> None:
        """Count one more batch; of one without any vote there is only the number of items to know."""
        asked = dict(options)
        if asked.get("classes") is None:
            asked["positive"] = None  # which this batch may lack
        if asked.get("classifiers") is None:
            asked["classifiers"] = self.found.columns(votes)
        with in_batch(place):
            checked = read_votes(votes, **asked, part=True)
            if checked.classes:
                checked, part = _counted(checked)
                self.waiting.append(part)
            else:
                self.unvoted += checked.items
            self.found.add(checked, typed=typed, place=place)
        if _patterns_in(self.waiting) > max(MERGE_AT, _patterns_in(self.total)):
            self.total, self.waiting = [_union(self.total + self.waiting)], []

    def with_pieces(self, file: LargeFile) -> _Sum:
        """Return the sum of this and of a large file's pieces; this stays as it is."""
        grown = replace(self, found=self.found.copy(), total=[*self.total], waiting=[*self.waiting])
        for place, piece, options in pieces_of(file, self.options):
            grown.add(piece, options, place, typed=not is_text_file(file.path))
        return grown

    def tally(self) -> Tally:
        """Put classifiers and classes in order, now that all have been seen."""
        if not self.found.orders:
            raise VotesError(
                "Expected at least one batch with votes, got none; give batches that have rows."
            )
        classifiers = self.found.classifiers(self.options.get("classifiers"))
        check_size(1, len(classifiers))
        if self.options.get("classes") is not None:
            classes, stands_for = tuple(self.found.labels), None
        else:
            positive, missing = self.options.get("positive"), self.options.get("missing", ())
            classes, stands_for = self.found.classes(positive, missing)
            look_at_labels(classes)
        parts = [_union(self.total + self.waiting)._arranged(classifiers, classes, stands_for)]
        if self.unvoted:
            nothing = np.full((1, len(classifiers)), -1)
            parts.append(
                Tally.from_codes(nothing, [self.unvoted], classifiers=classifiers, classes=classes)
            )
        return _together(parts, classifiers, classes)


def _patterns_in(tallies: Sequence[Tally]) -> int:
    return sum(len(each) for each in tallies)


def _union(tallies: Sequence[Tally]) -> Tally:
    """Add up tallies of different classifiers and classes, in no particular order."""
    classifiers = dict.fromkeys(name for each in tallies for name in each.classifiers)
    classes = dict.fromkeys(label for each in tallies for label in each.classes)
    return _together(tallies, tuple(classifiers), tuple(classes))


def tally_files(
    paths: Sequence[str | os.PathLike[str]], *, whole: bool = False, **options: Any
) -> Tally:
    """Add up files: tallies as they are, and votes counted with the classes of the tallies, where there are any.

    With `whole` every pattern is counted, where of many classifiers on very many items a sample would do.
    """
    paths = paths_in(list(paths)) or []
    kept = [Tally.load(path) for path in paths if is_tally_file(path)]
    others = [path for path in paths if not is_tally_file(path)]
    if not (whole or kept) and options.get("classifier") is None and options.get("vote") is None:
        lazy = scanned_if_wide(others, REPEATING)
        if lazy is not None:
            return tally(lazy, **options)
    if others:
        if kept and options.get("classes") is None and options.get("positive") is None:
            options = {**options, "classes": kept[0].classes}
        kept.append(_from_batches(others, **options))
    elif any(not _is_unsaid(value) for value in options.values()):
        tally(kept[0], **options)  # which says that they cannot apply
    total = kept[0]
    for each in kept[1:]:
        total = total + each
    return total


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
