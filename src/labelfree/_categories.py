"""Votes of blocks of classifiers as categories, and sums over them by look-up.

A partition puts the classifiers into blocks. The votes of a block together are one of 2^g cells; in
the cell's number the block's first classifier is the lowest bit. Where votes are missing a block
shows one of 3^g categories, each of which agrees with one or more cells.

Neighbouring blocks are bundled until they have some thousand joint categories: then a sum over all
blocks costs a pattern one look-up a bundle, and the way back is one histogram a bundle.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from labelfree._tally import Tally

Array = NDArray[np.float64]
Partition = tuple[tuple[int, ...], ...]

BUNDLE = 1 << 12  # joint categories looked up at once: as many numbers as the fastest cache holds
STRETCH = 1 << 16  # patterns that are turned into categories at once


def whole_partition(groups: Iterable[Sequence[int]], classifiers: int) -> Partition:
    """Add the classifiers that are in no group as blocks of one; in order of first members."""
    given = [tuple(sorted(int(place) for place in group)) for group in groups if len(group)]
    together = {place for group in given for place in group}
    alone = [(place,) for place in range(classifiers) if place not in together]
    return tuple(sorted([*given, *alone]))


def votes_of_cells(members: int) -> NDArray[np.intp]:
    """Votes 0 and 1 of each cell of a block, (2^g, g)."""
    return np.asarray(np.arange(1 << members)[:, None] >> np.arange(members) & 1, dtype=np.intp)


def votes_of_categories(members: int) -> NDArray[np.intp]:
    """Votes −1 (missing), 0 and 1 of each category of a block, (3^g, g)."""
    return np.asarray(np.arange(3**members)[:, None] // 3 ** np.arange(members) % 3 - 1)


@lru_cache
def compatible(members: int) -> Array:
    """Which cells agree with which categories, (3^g, 2^g) of 0 and 1."""
    votes, cells = votes_of_categories(members), votes_of_cells(members)
    agree = (votes[:, None] == -1) | (votes[:, None] == cells[None])
    return np.asarray(agree.all(axis=2), dtype=np.float64)


class Layout:
    """A tally's patterns as categories of the blocks of one partition.

    Values of the categories of all blocks stand in one row, block after block, as do those of all
    cells. Where no vote is missing, categories and cells are the same.

    Parameters
    ----------
    tally : Tally
        Of binary votes.
    partition : partition of its classifiers
    """

    def __init__(self, tally: Tally, partition: Partition) -> None:
        self.tally = tally
        self.partition = partition
        self.counts = tally.counts
        self.complete = not any_missing(tally)
        self.sizes = [(2 if self.complete else 3) ** len(block) for block in partition]
        self.categories = _slices(self.sizes)
        self.cell_sizes = [1 << len(block) for block in partition]
        self.cells = _slices(self.cell_sizes)
        self.bundles = _bundles(self.sizes)
        self._places = self._read()

    def _read(self) -> NDArray[np.uint16]:
        """Joint category of each pattern, (bundles, patterns)."""
        powers = np.zeros((len(self.tally.classifiers), len(self.bundles)), dtype=np.float32)
        for column, bundle in enumerate(self.bundles):
            step = 1
            for each in bundle:
                for place in self.partition[each]:
                    powers[place, column] = step
                    step *= 2 if self.complete else 3
        places = np.empty((len(self.bundles), len(self.counts)), dtype=np.uint16)
        for start in range(0, len(self.counts), STRETCH):
            codes = self.tally.codes(start, min(start + STRETCH, len(self.counts)))
            digits = codes.astype(np.float32)  # sparse codes are one higher already
            if isinstance(digits, np.ndarray) and not self.complete:
                digits += 1
            places[:, start : start + STRETCH] = (digits @ powers).T
        return places

    @cached_property
    def histogram(self) -> Array:
        """Items in each category."""
        return self.collect(self.counts)

    def look_up(self, values: Array) -> Array:
        """Sum over the blocks the value of each pattern's category: (categories,) -> (patterns,)."""
        total = np.zeros(len(self.counts))
        for places, bundle in zip(self._places, self.bundles, strict=True):
            joint = np.zeros(1)
            for block in reversed(bundle):  # the first block of a bundle runs fastest
                joint = np.add.outer(joint, values[self.categories[block]]).ravel()
            total += np.take(joint, places)
        return total

    def collect(self, weights: Array) -> Array:
        """Sum the weights of the patterns in each category: (patterns,) -> (categories,)."""
        sums = np.empty(self.categories[-1].stop)
        for places, bundle in zip(self._places, self.bundles, strict=True):
            sizes = [self.sizes[block] for block in bundle]
            joint = np.bincount(places, weights, minlength=int(np.prod(sizes)))
            for block, size in zip(bundle, sizes, strict=True):
                table = joint.reshape(-1, size)
                sums[self.categories[block]] = table.sum(axis=0)
                joint = table.sum(axis=1)
        return sums

    def of_block(self, block: int, patterns: NDArray[np.intp]) -> NDArray[np.intp]:
        """Category of these patterns in one block, counted from 0."""
        for places, bundle in zip(self._places, self.bundles, strict=True):
            if block in bundle:
                step = int(np.prod([self.sizes[each] for each in bundle if each < block]))
                return np.asarray(places[patterns].astype(np.intp) // step % self.sizes[block])
        raise IndexError(block)

    def probabilities(self, tables: Array) -> Array:
        """Probability of each category, (2, cells) -> (2, categories)."""
        if self.complete:
            return tables
        parts = [
            tables[:, cells] @ compatible(len(block)).T
            for block, cells in zip(self.partition, self.cells, strict=True)
        ]
        return np.concatenate(parts, axis=1)

    def spread(self, counts: Array, tables: Array) -> Array:
        """Expected counts of the cells, given those of the categories: (2, categories) -> (2, cells)."""
        if self.complete:
            return counts
        fitted = self.probabilities(tables)
        ratio = np.divide(counts, fitted, out=np.zeros_like(counts), where=fitted > 0)
        parts = [
            tables[:, cells] * (ratio[:, categories] @ compatible(len(block)))
            for block, cells, categories in zip(
                self.partition, self.cells, self.categories, strict=True
            )
        ]
        return np.concatenate(parts, axis=1)

    def totals(self, cells: Array) -> Array:
        """Each block's sum over its cells, repeated for every cell: (2, cells) -> (2, cells)."""
        starts = [part.start for part in self.cells]
        return np.repeat(np.add.reduceat(cells, starts, axis=1), self.cell_sizes, axis=1)


def any_missing(tally: Tally) -> bool:
    """Whether some classifier gave no vote on some item; sparse votes are taken to have gaps."""
    if tally.is_sparse:
        return True
    for start in range(0, len(tally), STRETCH):
        codes = tally.codes(start, min(start + STRETCH, len(tally)))
        if isinstance(codes, np.ndarray) and (codes < 0).any():
            return True
    return False


def thinned(tally: Tally, items: int) -> Tally:
    """Take so many items, by a fixed draw, where there are more patterns than that.

    Drawn item by item: every so-many-th pattern in the tally's order may hold one vote only.
    """
    if len(tally) <= items or not np.isfinite(tally.sample_size):
        return tally
    random = np.random.default_rng(0)
    whole = np.rint(tally.counts).astype(np.int64)
    counts = random.multivariate_hypergeometric(whole, items, method="marginals")
    kept = counts > 0
    return replace(tally, patterns=tally.patterns[kept], counts=counts[kept].astype(np.float64))


def _slices(sizes: Sequence[int]) -> list[slice]:
    ends = np.cumsum(sizes)
    return [slice(int(end - size), int(end)) for size, end in zip(sizes, ends, strict=True)]


def _bundles(sizes: Sequence[int]) -> list[list[int]]:
    """Neighbouring blocks whose categories have at most so many combinations."""
    bundles: list[list[int]] = []
    product = BUNDLE + 1
    for place, size in enumerate(sizes):
        if product * size > BUNDLE:
            bundles.append([])
            product = 1
        bundles[-1].append(place)
        product *= size
    return bundles
