"""The long form in an engine, one row a vote -> one row an item, which stays there; or its tally.

Each classifier's vote on an item is a sum over the rows of that item, so one `group_by` turns the table. That is as
many sums as there are classifiers: tables of more classifiers than an engine likes to sum are brought home.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from labelfree._arrays import Table, check_size
from labelfree._columns import Learned, coded_array, learn
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
)
from labelfree._errors import OptionsError, VotesError, counted
from labelfree._frames import Frame, series_column
from labelfree._labels import Label
from labelfree._long_form import (
    check_columns,
    numbered,
    placed_keys,
    refuse_repeats,
    warn_of_repeats,
)

MOST_CLASSIFIERS = (
    100  # whose votes are summed in the engine; more are brought home, vote by vote ...
)
MOST_VOTES = 20_000_000  # ... unless there are more votes than this
MOST_PAIRS = 50_000  # of classifiers and labels that are looked at
ONE = 1 << 32  # what a vote adds beside its code, so that a sum tells one vote from several


def counted_long(
    table: EngineTable,
    columns: tuple[str, str, str],
    names: tuple[str, ...] | None,
    positive: Label,
    classes: Sequence[Label] | None,
    missing: Label | Sequence[Label],
    duplicates: str | None,
) -> tuple[Table, Learned] | None:
    """Count the patterns of a long table in its engine: who voted what comes first, then the patterns.

    Parameters
    ----------
    table : EngineTable
    columns : tuple of str
        Those of item, classifier and vote.
    names, positive, classes, missing, duplicates
        As for :func:`labelfree._votes.read_votes`.

    Returns
    -------
    Table, Learned
        One row a pattern, with counts; or None where the table had better be read at home.
    """
    check_columns(table.names, columns)
    home = _goes_home(table, duplicates)
    pairs = _pairs(table, columns)
    keys = numbered(pairs.get_column("k").alias(columns[1]))[1]
    if home or len(keys) > MOST_CLASSIFIERS or len(pairs) == MOST_PAIRS:
        _check_votes(table, pairs)
        return None
    named: tuple[Any, ...] = tuple(keys.to_list()) if names is None else names
    if names is not None:
        placed_keys(keys, names)
    names = tuple(map(str, named))
    check_size(1, len(names))
    cells = pairs.get_column("v").alias(columns[2])
    found = learn(
        [columns[2]],
        (coded_array(columns[2], series_column(columns[2], cells)),),
        positive,
        classes,
        missing,
    )
    (codes,) = map(np.asarray, found.columns)
    raw = dict(zip(cells.to_list(), codes.tolist(), strict=True))
    places = {str(key): key for key in keys.to_list()}
    votes = [(label, code) for label, code in raw.items() if code >= 0]
    turned = _turned(table, columns, [places.get(name, name) for name in names], votes)
    patterns = _patterns(turned, len(names))
    _look_at_repeats(patterns, duplicates)
    digits = [
        patterns.get_column(f"v{place}").to_numpy().astype(np.int8) - np.int8(1)
        for place in range(len(names))
    ]
    counts = counts_of(patterns)
    laid = counted_table(names, (), counts, keys=named)
    return laid, replace(found, columns=tuple(digits))


def item_table(
    table: EngineTable,
    columns: tuple[str, str, str],
    names: Sequence[str],
    classes: Sequence[Label],
) -> EngineTable:
    """Turn a long table of classifiers and classes that are known into one row an item, without reading it.

    The votes become codes 0 … K−1, and −1 where there is none, or more than one. The items keep their column.
    """
    check_columns(table.names, columns)
    if len(names) > MOST_CLASSIFIERS:
        raise VotesError(
            f"Expected at most {MOST_CLASSIFIERS} classifiers to label a long {table.engine} table by, got {len(names)}; "
            "collect the votes and label them in memory."
        )
    votes = list(zip(classes, range(len(classes)), strict=True))
    turned = _turned(table, columns, names, votes)
    codes = [(nw.col(f"v{place}") - 1).alias(f"c{place + 1}") for place in range(len(names))]
    kinds = (table.kind(columns[0]), *[nw.Int64()] * len(names))
    frame = turned.select(nw.col("item").alias("c0"), *codes)
    kind = frame.implementation
    if not (kind.is_dask() or kind.is_pyspark() or kind.is_pyspark_connect()):
        frame = frame.sort("c0")  # as in memory; across machines it would cost more than the answer
    return EngineTable(frame, (columns[0], *names), kinds, table.back, shown=1)


def _goes_home(table: EngineTable, duplicates: str | None) -> bool:
    """Whether the order of the rows is asked for, which only Polars keeps."""
    if duplicates != "last":
        return False
    if not table.frame.implementation.is_polars():
        raise OptionsError(
            f"duplicates='last' keeps the last vote in the order of the rows, but a {table.engine} table has none; "
            "say duplicates='drop', or sort and keep the last ones there."
        )
    return True


def _pairs(table: EngineTable, columns: tuple[str, str, str]) -> Frame:
    """Bring home which classifiers gave which labels, and refuse votes of nobody or on nothing."""
    item, classifier, vote = columns
    frame = table.frame.select(
        table.column(classifier).alias("k"),
        table.column(vote).alias("v"),
        flag(is_empty(table.column(item), table.kind(item))).alias("gap"),
    )
    grouped = frame.group_by("k", "v").agg(nw.len().alias(COUNT), nw.col("gap").sum())
    pairs = collected(grouped.head(MOST_PAIRS), "looking for the classifiers and labels")
    if len(pairs) == 0:
        raise VotesError("Expected at least one vote, got none; give the table rows.")
    keys = pairs.get_column("k")
    empty = keys.is_null() | keys.is_nan() if keys.dtype.is_float() else keys.is_null()
    gaps = {
        columns[0]: int(sum(pairs.get_column("gap").to_list())),
        columns[1]: int(counts_of(pairs)[empty.to_numpy()].sum()),
    }
    for name, number in gaps.items():
        if number:
            raise VotesError(
                f"Column {name!r} has {counted(number, 'empty cell')}; expected an item and a classifier for every vote. "
                "Fill them, or leave those rows out."
            )
    return pairs


def _check_votes(table: EngineTable, pairs: Frame) -> None:
    """Refuse to bring home more votes than fit."""
    if table.frame.implementation.is_polars():
        return
    votes = counts_of(pairs).sum()
    if len(pairs) == MOST_PAIRS:
        total = collected(table.frame.select(nw.len().alias(COUNT)), "counting the votes")
        votes = counts_of(total)[0]
    if votes > MOST_VOTES:
        raise VotesError(
            f"Expected at most {MOST_CLASSIFIERS} classifiers, or at most {MOST_VOTES:,} votes, in a long {table.engine} table, "
            f"got {int(votes):,} votes of more; count parts of the items apart with Tally.from_batches, and add up."
        )


def _turned(
    table: EngineTable,
    columns: tuple[str, str, str],
    keys: Sequence[Any],
    votes: Sequence[tuple[Label, int]],
) -> nw.LazyFrame[Any]:
    """Turn the table: item; v0, v1 … = class code + 1, 0 where there is no vote, or several; how many were cast."""
    item, classifier, vote = columns
    code = nw.lit(0, nw.Int64)
    for label, place in votes:
        given = is_vote(table.column(vote), table.kind(vote), label)
        if given is not None:
            code = nw.when(given).then(nw.lit(place + 1, nw.Int64)).otherwise(code)
    rows = table.frame.select(
        table.column(item).alias("item"), table.column(classifier).alias("who"), code.alias("code")
    )
    cells = []
    for number, key in enumerate(keys):
        own = is_vote(nw.col("who"), table.kind(classifier), key)
        mine = nw.lit(0, nw.Int64)
        if own is not None:
            mine = nw.when(own & (nw.col("code") > 0)).then(nw.col("code") + ONE).otherwise(mine)
        cells.append(mine.alias(f"v{number}"))
    spread = rows.select("item", *cells, flag(nw.col("code") > 0).alias("cast"))
    names = [f"v{number}" for number in range(len(keys))]
    summed = spread.group_by("item").agg(*(nw.col(name).sum() for name in [*names, "cast"]))
    # Sums of whole numbers are of a type of DuckDB's own, which would come home as decimals.
    whole = summed.select("item", *(nw.col(name).cast(nw.Int64) for name in [*names, "cast"]))
    sums = [nw.col(name) for name in names]
    single = [(each > ONE) & (each < 2 * ONE) for each in sums]
    codes = [
        nw.when(one).then(each - ONE).otherwise(nw.lit(0, nw.Int64)).alias(name)
        for one, each, name in zip(single, sums, names, strict=True)
    ]
    repeated = nw.col("cast") - balanced([flag(each > 0) for each in sums])
    lost = nw.col("cast") - balanced(list(map(flag, single)))
    return whole.select("item", *codes, repeated.alias("repeated"), lost.alias("lost"))


def _patterns(turned: nw.LazyFrame[Any], width: int) -> Frame:
    keys = [*(f"v{place}" for place in range(width)), "repeated", "lost"]
    return collected(turned.group_by(keys).agg(nw.len().alias(COUNT)), "counting the vote patterns")


def _look_at_repeats(patterns: Frame, duplicates: str | None) -> None:
    counts = counts_of(patterns)
    repeated, lost = (
        int(patterns.get_column(name).to_numpy() @ counts) for name in ("repeated", "lost")
    )
    if repeated and duplicates is None:
        refuse_repeats(repeated)
    if repeated:
        warn_of_repeats(repeated, lost, "drop")
