"""Wide tables in an engine whose patterns do not repeat -> sums over all items there, and a sample at home.

The more classifiers, the fewer items share a pattern, until the patterns are as many as the items and had
better stay where they are. Then the engine adds up what the moments need, and only a sample of the patterns
comes home, drawn by a seeded hash of the votes themselves: the same sample from every engine.

The hash is plain arithmetic on whole numbers below 2⁶³, as no two engines have a hash function in common:
a random sum of the codes modulo a prime, squared and reduced again. Patterns, not items, are drawn, and so
a pattern that many items share would be all in or all out. The few that very many share are found by a
census of the hashes and come home apart; where all are shared by some, the sample counts for as much as
it is worth.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from labelfree._arrays import Table, Whole, check_size
from labelfree._columns import Coded, Learned, coded_array, learn
from labelfree._engines import (
    COUNT,
    EngineTable,
    balanced,
    collected,
    counted_table,
    counts_of,
    flag,
    is_empty,
    is_vote,
    vote_columns,
)
from labelfree._errors import LabelfreeError
from labelfree._frames import Frame, series_column
from labelfree._labels import MOST_LABELS, Label, missing_labels

Array = NDArray[np.float64]
Codes = NDArray[np.int8]

REPEATING = 24  # classifiers up to which patterns are taken to repeat, and are all counted
HOME_CELLS = 1 << 25  # votes that come home whole, however many their patterns
SAMPLE_CELLS, MOST_SAMPLED, FEWEST_SAMPLED = 1 << 24, 1 << 18, 1 << 14  # votes, patterns
FIRST_ROWS = 1000  # in which the labels are looked for; all rows are compared with them
MOST_PAIRED = 256  # classifiers whose pairs are added up in the engine; of more, in the sample
PRIME = (1 << 31) - 1  # squares of what is left by it fit into 63 bits
BUCKETS = 1 << 16  # of the census
HEAVY, MOST_HEAVY = (
    4.0,
    1024,
)  # times the usual bucket; buckets that are searched for shared patterns
WORTH = 0.9  # of the items of a sample: below, its counts are scaled down to what it is worth
TOGETHER, TOGETHER_WITH_MISSING = 10, 6  # classifiers whose votes are one key: some thousand groups


def counted_wide(
    table: EngineTable,
    names: tuple[str, ...] | None,
    item: str | None,
    positive: Label,
    classes: Sequence[Label] | None,
    missing: Label | Sequence[Label],
) -> tuple[Table, Learned] | None:
    """Add up a wide table in its engine and bring a sample of its patterns home.

    Parameters
    ----------
    table : EngineTable
    names, item, positive, classes, missing
        As for :func:`labelfree._votes.read_votes`.

    Returns
    -------
    Table, Learned
        One row a pattern, with counts, and the sums over all items; or None where the patterns are few enough
        to count them all.
    """
    names = vote_columns(table, names, item)
    if len(names) <= REPEATING:
        return None
    found, coded = _learned(table, names, positive, classes, missing)
    check_size(int(coded.items), len(names))
    few = np.count_nonzero(coded.census) < BUCKETS // 2
    if few or coded.items * len(names) <= HOME_CELLS:
        return None
    digits, counts, complete = _sampled(coded)
    whole = None if complete else Whole(coded.items, coded.cooccurrence(), coded.triples)
    laid = counted_table(names, (), counts, whole=whole)
    return laid, replace(found, columns=tuple(digits.T))


# --- labels -----------------------------------------------------------------------------------


def _learned(
    table: EngineTable, names: tuple[str, ...], positive: Label, classes: Any, missing: Any
) -> tuple[Learned, _Coded]:
    """Learn the labels from the first rows; where all rows hold others, from every column."""
    first, found, absent = _first_labels(table, names), None, missing_labels(missing)
    with suppress(LabelfreeError):  # which all rows may refute, or confirm
        found = learn(names, first, positive, classes, missing)
    if found is not None:
        coded = _Coded(table, names, found.classes, absent)
        if not coded.strangers:
            return found, coded
    found = learn(names, _labels_of_each(table, names), positive, classes, missing)
    return found, _Coded(table, names, found.classes, absent)


def _first_labels(table: EngineTable, names: tuple[str, ...]) -> tuple[Coded, ...]:
    votes = [table.column(name).alias(f"v{place}") for place, name in enumerate(names)]
    first = collected(table.frame.select(*votes).head(FIRST_ROWS), "looking for the labels")
    check_size(len(first), len(names))
    return tuple(_coded(name, first, place) for place, name in enumerate(names))


def _labels_of_each(table: EngineTable, names: tuple[str, ...]) -> tuple[Coded, ...]:
    """Look through every column for its labels; rare, as mostly the first rows show them all."""
    found = []
    for place, name in enumerate(names):
        column = table.frame.select(table.column(name).alias(f"v{place}"))
        labels = column.group_by(f"v{place}").agg(nw.len().alias(COUNT)).head(MOST_LABELS + 2)
        home = collected(labels, f"looking for the labels of column {name!r}")
        found.append(_coded(name, home, place))
    return tuple(found)


def _coded(name: str, frame: Frame, place: int) -> Coded:
    return coded_array(name, series_column(name, frame.get_column(f"v{place}")))


# --- what the engine adds up ------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Coded:
    """A wide table whose votes are codes: class + 1, 0 where there is no vote, −1 for any other label.

    Attributes
    ----------
    table : EngineTable
    names : tuple of str
    classes, missing : tuple of labels
    """

    table: EngineTable
    names: tuple[str, ...]
    classes: tuple[Label, ...]
    missing: tuple[Label, ...]

    @cached_property
    def frame(self) -> nw.LazyFrame[Any]:
        """Columns v0, v1 … of codes, and the two hashes of each row's pattern."""
        codes = [self._code(name).alias(f"v{place}") for place, name in enumerate(self.names)]
        columns = [nw.col(f"v{place}") for place in range(len(self.names))]
        # Salts beyond 2³²: DuckDB below Ibis takes smaller ones, and what is made of them, for 32 bits.
        salts = np.random.default_rng(0).integers(1 << 32, 1 << 33, len(self.names) + 2).tolist()
        total = balanced([each * salt for each, salt in zip(columns, salts, strict=False)])
        first = nw.col("first")
        coded = self.table.frame.select(*codes)
        # Codes of −1 make a sum smaller, but never below −2³³ m; as much is added to keep it positive.
        coded = coded.with_columns(((total + (1 << 33) * len(columns)) % PRIME).alias("first"))
        coded = coded.with_columns(((first * first + salts[-2]) % PRIME).alias("first"))
        return coded.with_columns(
            (first % BUCKETS).alias("bucket"),
            ((first * first + salts[-1]) % PRIME).alias("draw"),
        )

    def _code(self, name: str) -> nw.Expr:
        column, kind = self.table.column(name), self.table.kind(name)
        code = nw.lit(-1, nw.Int64)
        labels = [*((label, place + 1) for place, label in enumerate(self.classes))]
        for label, value in [*labels, *((label, 0) for label in self.missing)]:
            given = is_vote(column, kind, label)
            if given is not None:
                code = nw.when(given).then(nw.lit(value, nw.Int64)).otherwise(code)
        return nw.when(is_empty(column, kind)).then(nw.lit(0, nw.Int64)).otherwise(code)

    @cached_property
    def _counted(self) -> Frame:
        """For each bucket: items, votes, and labels that are none of the classes."""
        columns = [nw.col(f"v{place}") for place in range(len(self.names))]
        cast = balanced([flag(each > 0) for each in columns]).alias("votes")
        strange = balanced([flag(each < 0) for each in columns]).alias("strangers")
        grouped = self.frame.select("bucket", cast, strange).group_by("bucket")
        sums = grouped.agg(nw.len().alias(COUNT), nw.col("votes").sum(), nw.col("strangers").sum())
        return collected(sums, "counting the items")

    @property
    def census(self) -> Array:
        """Items of each bucket that has any."""
        return counts_of(self._counted)

    @property
    def items(self) -> float:
        """Number of items."""
        return float(self.census.sum())

    @property
    def strangers(self) -> bool:
        """Whether there are labels that are none of the classes."""
        return bool(sum(map(int, self._counted.get_column("strangers").to_list())))

    @property
    def complete(self) -> bool:
        """Whether no vote is missing."""
        votes = sum(map(int, self._counted.get_column("votes").to_list()))
        return votes == int(self.items) * len(self.names)

    def heavy(self) -> tuple[list[int], float]:
        """Buckets that hold many more items than is usual, and from how many items on a pattern explains it."""
        usual = float(np.median(self.census))
        most = HEAVY * (usual + np.sqrt(usual) + 1.0)
        order = np.argsort(-self.census, kind="stable")[:MOST_HEAVY]
        places = order[self.census[order] > most]
        buckets = self._counted.get_column("bucket").to_numpy()[places]
        return sorted(map(int, buckets)), most / 2

    def patterns(self, which: nw.Expr, least: float = 0.0) -> tuple[Codes, Array]:
        """Bring the patterns of some rows home: codes −1 … K−1, and counts."""
        keys = [f"v{place}" for place in range(len(self.names))]
        grouped = self.frame.filter(which).select(*keys).group_by(keys).agg(nw.len().alias(COUNT))
        if least:
            grouped = grouped.filter(nw.col(COUNT) >= least)
        home = collected(grouped, "drawing a sample of the items")
        columns = [np.asarray(home.get_column(key).to_numpy()).astype(np.int8) for key in keys]
        return np.stack(columns, axis=1) - np.int8(1), counts_of(home)

    # --- sums over all items ------------------------------------------------------------------

    def cooccurrence(self) -> Array | None:
        """Sum over all items what :meth:`labelfree._products.Block.cooccurrence` sums over patterns.

        Rows are grouped by the votes of some classifiers together, and the votes of all others are
        summed in every group. That is m sums a row and group of classifiers, where a sum for
        each pair would be m²/2: six against 48 seconds in DuckDB, with 60 classifiers.
        """
        m = len(self.names)
        if len(self.classes) != 2 or m > MOST_PAIRED:
            return None
        together = TOGETHER if self.complete else TOGETHER_WITH_MISSING
        table = np.zeros((2 * m, 2 * m))
        for start in range(0, m, together):
            members = range(start, min(start + together, m))
            digits, voted, ones = self._crossed(members)
            rows = np.arange(members.start, members.stop)
            for offset, own in ((0, digits > 0), (m, digits == 2)):
                table[rows + offset, :m] = own.T @ voted
                table[rows + offset, m:] = own.T @ ones
        return table

    def _crossed(self, members: range) -> tuple[NDArray[np.int64], Array, Array]:
        """Group by the votes of some classifiers; in each group, sum who voted and who voted positive."""
        key = balanced([nw.col(f"v{i}") * 3 ** (i - members.start) for i in members])
        frame = self._votes().select(key.alias("key"), *self._sums())
        sums = [nw.col(name).sum() for name in self._sums()]
        home = collected(
            frame.group_by("key").agg(nw.len().alias(COUNT), *sums), "adding up the pairs"
        )
        keys = np.asarray(home.get_column("key").to_numpy()).astype(np.int64)
        digits = keys[:, None] // 3 ** np.arange(len(members)) % 3
        totals = {name: _numbers(home, name) for name in self._sums()}
        m = len(self.names)
        ones = np.stack([totals[f"x{place}"] for place in range(m)], axis=1)
        if self.complete:
            return digits, np.repeat(counts_of(home)[:, None], m, axis=1), ones
        return digits, np.stack([totals[f"w{place}"] for place in range(m)], axis=1), ones

    def _votes(self) -> nw.LazyFrame[Any]:
        """Add columns x0 … who voted positive, and w0 … who voted at all, as 0 and 1."""
        columns = {f"v{place}": nw.col(f"v{place}") for place in range(len(self.names))}
        ones = [flag(each == 2).alias(f"x{name[1:]}") for name, each in columns.items()]
        voted = [flag(each > 0).alias(f"w{name[1:]}") for name, each in columns.items()]
        return self.frame.select(*columns, *ones, *([] if self.complete else voted))

    def _sums(self) -> list[str]:
        kinds = "x" if self.complete else "xw"
        return [f"{kind}{place}" for kind in kinds for place in range(len(self.names))]

    def triples(self, powers: Array) -> tuple[float, float]:
        """Sum over all items the elementary symmetric polynomials of the third moments, in one pass.

        Parameters
        ----------
        powers : (m, 2, 6) array
            For each vote the first three powers of x, and of the weight.

        Returns
        -------
        float, float
            Sums over i < j < k of x_i x_j x_k, and of their weights.
        """
        negative, above = powers[:, 0], powers[:, 1] - powers[:, 0]
        votes, places = self._votes(), range(len(powers))
        columns = []
        for power in range(3 if self.complete else 6):
            terms = [_number(f"x{i}") * float(above[i, power]) for i in places]
            if self.complete:
                terms.append(nw.lit(float(negative[:, power].sum())))
            else:
                terms += [_number(f"w{i}") * float(negative[i, power]) for i in places]
            columns.append(balanced(terms).alias(f"p{power}"))
        powers_of = votes.select(*columns)
        p = [nw.col(f"p{power}") for power in range(len(columns))]
        sums = [_triple(*p[:3]).sum().alias("above")]
        sums += [] if self.complete else [_triple(*p[3:]).sum().alias("below")]
        home = collected(powers_of.select(*sums), "adding up the third moments")
        if self.complete:  # then every item has the same weight
            weight = float(_triple(*negative[:, 3:].sum(axis=0)))
            return float(home.get_column("above").to_list()[0]), weight * self.items
        total, weights = (float(home.get_column(name).to_list()[0]) for name in ("above", "below"))
        return total, weights


def _triple(p1: Any, p2: Any, p3: Any) -> Any:
    return (p1 * p1 * p1 - p1 * p2 * 3.0 + p3 * 2.0) / 6.0


def _number(name: str) -> nw.Expr:
    # DuckDB below Ibis multiplies whole numbers and fractions as decimals, and runs out of digits.
    return nw.col(name).cast(nw.Float64)


def _numbers(frame: Frame, name: str) -> Array:
    # Whole sums come home as decimals from DuckDB.
    return np.array(list(map(float, frame.get_column(name).to_list())))


# --- the sample -------------------------------------------------------------------------------


def _sampled(coded: _Coded) -> tuple[Codes, Array, bool]:
    """Draw patterns by their hash; return their codes and counts, and whether they are all there are."""
    wanted = int(np.clip(SAMPLE_CELLS // len(coded.names), FEWEST_SAMPLED, MOST_SAMPLED))
    buckets, least = coded.heavy()
    shared, often = np.empty((0, len(coded.names)), np.int8), np.empty(0)
    if buckets:
        shared, often = coded.patterns(nw.col("bucket").is_in(buckets), least)
    others = coded.items - often.sum()
    share = min(1.0, wanted / others) if others else 1.0
    while True:
        digits, counts = _drawn(coded, share, shared)
        more = min(1.0, share * wanted / max(len(counts), 1))
        if more < 1.5 * share:
            break
        share = more
    codes, together = np.concatenate([shared, digits]), np.concatenate([often, counts])
    if share >= 1.0:
        return codes, together, True
    # Patterns are drawn, not items: by Kish's formula the sample is worth (Σ c)² / Σ c² items.
    worth = float(counts.sum() / (counts**2).sum())
    thinned = worth if worth < WORTH else 1.0
    share_of_items = float(counts.sum()) * thinned / others
    scaled = np.concatenate([often * share_of_items, counts * thinned])
    rounded = np.floor(scaled + _uniform(codes))
    return codes[rounded > 0], rounded[rounded > 0], False


def _drawn(coded: _Coded, share: float, shared: Codes) -> tuple[Codes, Array]:
    """Bring home a share of the patterns, without those that came home apart."""
    digits, counts = coded.patterns(nw.col("draw") < int(share * PRIME))
    if not len(shared):
        return digits, counts
    apart = {row.tobytes() for row in shared}
    kept = np.array([row.tobytes() not in apart for row in digits], dtype=bool)
    return digits[kept], counts[kept]


def _uniform(codes: Codes) -> Array:
    """Numbers in [0, 1) that depend on the pattern alone, so that engines may bring rows in any order."""
    weights = np.random.default_rng(1).random(codes.shape[1]) * 1e6
    return np.asarray((codes @ weights) % 1.0)
