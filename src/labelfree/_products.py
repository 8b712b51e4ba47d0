"""The three products with the one-hot vote matrix, a block of patterns at a time.

Let H be the matrix of patterns × (classifier, label) with a 1 where that classifier gave that
label. Everything that the library estimates comes from

    cooccurrence   Hᵀ diag(counts) H     means, covariances, pair counts under missing votes
    score          H W                   log-likelihoods, consensus weights, power sums
    gather         Hᵀ Q                  expected counts, gradients, information

H is never laid out whole. A block holds the columns of the labels 1 … K−1, and who voted at all
where votes are missing; label 0 is the rest. So binary votes cost one column a classifier, and
dense and sparse patterns run through the same lines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from labelfree._tally import Tally

Array = NDArray[np.float64]
Sparse = Any  # scipy.sparse.csr_array, whose stubs know no products with dense arrays
Result = TypeVar("Result")

BLOCK_CELLS = 1 << 19  # numbers a block: some megabytes, which stay in the cache
SPREAD = 1 << 15  # patterns of a thinned tally
KEPT_CELLS = 1 << 23  # a tally with no more numbers than this is laid out once and kept
SPARSE_SHARE = 0.06  # of cells voted: with fewer, patterns are laid out sparse, 30 to 130 times faster at 1 to 3 %
SAMPLED = 1 << 10  # patterns by which that share is judged


class Block:
    """Some patterns, laid out for the three products.

    Parameters
    ----------
    codes : (P, m) array of int8, or sparse (P, m) array
        Votes as −1 (missing) … K−1; sparse ones as code + 1.
    counts : (P,) array
        How often each pattern occurred.
    classes : int
        K.
    """

    def __init__(self, codes: NDArray[np.int8] | Sparse, counts: Array, classes: int) -> None:
        self.codes = codes
        self.counts = counts
        self.classes = classes
        self.classifiers: int = codes.shape[1]
        # Columns label by label: those of label 1 for every classifier, then those of label 2 …
        self.ones: Array | Sparse
        self.voted: Array | Sparse | None
        if isinstance(codes, np.ndarray):
            labels = range(1, classes)
            self.ones = np.concatenate([codes == label for label in labels], axis=1).astype(
                np.float64
            )
            self.voted = (codes >= 0).astype(np.float64) if codes.min(initial=0) < 0 else None
        else:
            self.ones = _one_hot(codes, classes)
            self.voted = (codes != 0).astype(np.float64)

    def score(self, weights: Array) -> Array:
        """Sum each pattern's weights over its votes: (m, K, C) -> (patterns, C)."""
        above = weights[:, 1:] - weights[:, :1]
        total = self.ones @ above.transpose(1, 0, 2).reshape(-1, weights.shape[2])
        if self.voted is None:
            return np.asarray(total + weights[:, 0].sum(axis=0))
        return np.asarray(total + self.voted @ weights[:, 0])

    def gather(self, shares: Array) -> Array:
        """Sum each vote's shares over the patterns that hold it: (patterns, C) -> (m, K, C)."""
        above = (self.ones.T @ shares).reshape(self.classes - 1, self.classifiers, -1)
        everyone = (
            np.broadcast_to(shares.sum(axis=0), above.shape[1:])
            if self.voted is None
            else self.voted.T @ shares
        )
        return np.concatenate(
            [(everyone - above.sum(axis=0))[:, None], above.transpose(1, 0, 2)], axis=1
        )

    def cooccurrence(self) -> Array:
        """Sum, for each pair of columns, the counts of the patterns that hold both.

        Returns
        -------
        (m K, m K) array
            The columns are who voted at all, classifier by classifier, then label 1, label 2 …;
            :func:`label_pairs` turns the total over all blocks into pairs of labels.
        """
        m = self.classifiers
        if self.voted is not None:
            columns = self._columns()
            weighted = (
                columns.T * self.counts
                if isinstance(columns, np.ndarray)
                else columns.T.multiply(self.counts)
            )
            product = weighted @ columns
            return product if isinstance(product, np.ndarray) else np.asarray(product.toarray())
        # Everyone voted: the first block of rows and columns is known without a product. The rest is
        # a matrix times its own transpose, which costs half as much and comes out symmetric.
        scaled = self.ones * np.sqrt(self.counts)[:, None]
        table = np.empty((m * self.classes,) * 2)
        table[:m, :m] = self.counts.sum()
        table[:m, m:] = self.counts @ self.ones
        table[m:, :m] = table[:m, m:].T
        table[m:, m:] = scaled.T @ scaled
        return table

    def _columns(self) -> Any:
        if isinstance(self.ones, np.ndarray):
            return np.concatenate([self.voted, self.ones], axis=1)
        from scipy.sparse import hstack

        parts: Any = [self.voted, self.ones]
        return hstack(parts, format="csr")


def _one_hot(codes: Sparse, classes: int) -> Sparse:
    """Sparse patterns of class code + 1 -> the columns of the labels 1 … K−1."""
    from scipy.sparse import csr_array

    rows, m = codes.shape
    held = codes.data > 1
    columns = (codes.data[held].astype(codes.indices.dtype) - 2) * m + codes.indices[held]
    ends = np.concatenate([[0], np.cumsum(held)])[codes.indptr]
    return csr_array((np.ones(len(columns)), columns, ends), shape=(rows, m * (classes - 1)))


def label_pairs(cooccurrence: Array, classes: int) -> Array:
    """Pairs of columns -> pairs of labels, (m, K, m, K): label 0 is whoever voted, less all other labels."""
    m = len(cooccurrence) // classes
    table = cooccurrence.reshape(classes, m, classes, m).transpose(1, 0, 3, 2).copy()
    table[:, 0] -= table[:, 1:].sum(axis=1)
    table[:, :, :, 0] -= table[:, :, :, 1:].sum(axis=3)
    return table


class Blocks:
    """All patterns of a tally, block after block; laid out once where they are few, or sparse."""

    def __init__(self, tally: Tally) -> None:
        self.tally = tally
        tally = self._laid_out = _sparse_where_few_voted(tally)
        classes = len(tally.classes)
        width = len(tally.classifiers) * (classes - 1)
        # A sparse block costs what its votes cost, and what is found for each of its patterns and
        # classes; and, once a block, what all classifiers cost: so it has as many rows as it may.
        self.places = self._narrow = self._places(width)
        if not isinstance(tally.patterns, np.ndarray):
            self.places = self._places(max(tally.patterns.nnz // len(tally), classes))
        few = len(tally) * width <= KEPT_CELLS or tally.is_sparse
        self._kept: Sequence[Block] | None = (
            [self._block(*place) for place in self.places] if few else None
        )

    def _places(self, cells: int) -> list[tuple[int, int]]:
        rows, patterns = max(BLOCK_CELLS // cells, 256), len(self.tally)
        return [(start, min(start + rows, patterns)) for start in range(0, patterns, rows)]

    def _block(self, start: int, stop: int) -> Block:
        tally = self._laid_out
        return Block(tally.codes(start, stop), tally.counts[start:stop], len(tally.classes))

    def each(self, work: Callable[[Block], Result], *, narrow: bool = False) -> list[Result]:
        """Do `work` on every block, in order.

        Work that lays the columns of a sparse block out whole asks for narrow ones, with few rows.
        One after the other: the linear algebra below is threaded already, and threads of our own
        around it made every product slower (measured; a block fits the cache, so does its product).
        """
        if self._kept is not None and (self._narrow is self.places or not narrow):
            return [work(block) for block in self._kept]
        return [work(self._block(*place)) for place in (self._narrow if narrow else self.places)]

    def thinned(self) -> Blocks:
        """Return the blocks of an even spread of the patterns; these where they are few enough."""
        part = self.tally.thinned(SPREAD)
        return self if part is self.tally else Blocks(part)

    def total(
        self, work: Callable[[Block], tuple[Any, ...]], *, narrow: bool = False
    ) -> tuple[Any, ...]:
        """Do `work` on every block and add up what it returns, in order."""
        parts = zip(*self.each(work, narrow=narrow), strict=True)
        return tuple(sum(each[1:], start=each[0]) for each in parts)


def _sparse_where_few_voted(tally: Tally) -> Tally:
    """Store patterns sparse that are dense but nearly empty; the same patterns, in the same order."""
    if not isinstance(tally.patterns, np.ndarray):
        return tally
    sample = tally.thinned(SAMPLED).codes()
    if not isinstance(sample, np.ndarray) or np.mean(sample >= 0) >= SPARSE_SHARE:
        return tally
    from scipy.sparse import csr_array, vstack

    rows = max(BLOCK_CELLS // len(tally.classifiers), 256)
    parts: Any = [
        csr_array(np.asarray(tally.codes(start, start + rows)) + np.int8(1))
        for start in range(0, len(tally), rows)
    ]
    return replace(tally, patterns=vstack(parts, format="csr"))
