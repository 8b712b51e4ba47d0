"""Which prior, and how many types of items, label real votes best: the evidence for one default setting.

Prints the share of items labelled rightly by majority vote, by Dawid–Skene, and by the posterior mode
of K classes under the default setting and under others, each the same for all data sets. Ties share
their item; of a repeated pair of item and classifier the last vote is kept. Then the data sets are dealt
into two halves many times over: the setting that is best on one half is looked up on the other,
beside the default.

Usage: python benchmarks/consensus_choice.py [data sets …]
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from labelfree import Tally, _item_types, _shared_prior
from labelfree._consensus import Rule, likelihood_rule, majority_rule, posterior_rule
from labelfree._latent_class import Model, Prior, climb, fit
from labelfree._multiclass import many_classes
from labelfree._products import Block, Blocks
from labelfree._shared_prior import shared
from labelfree._starts import majority_start

ITEMS_AT_ONCE = 20_000
DEALS = 200
MOST_ORDERED = 6  # classes: the kinds of ordered classifiers take long for more


@contextmanager
def setting(**constants: Any) -> Iterator[None]:
    """Change constants of the two rooms for a while."""
    room = {"COMMON": _item_types}
    before = {name: getattr(room.get(name, _shared_prior), name) for name in constants}
    for name, value in constants.items():
        setattr(room.get(name, _shared_prior), name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(room.get(name, _shared_prior), name, value)


def majority(blocks: Blocks) -> Rule:
    shape = blocks.tally.shape
    return majority_rule(shape.classifiers, shape.classes)


def pooled(**constants: Any) -> Callable[[Blocks], Rule]:
    """Labels by the posterior, under the shared prior with these constants."""

    def rule(blocks: Blocks) -> Rule:
        with setting(**constants):
            return posterior_rule(shared(blocks, majority_start(blocks)).model)

    return rule


def unpooled(blocks: Blocks) -> Rule:
    shape = blocks.tally.shape
    flat = Prior.flat(shape.classifiers, shape.classes, 1.0)
    return posterior_rule(fit(blocks, majority_start(blocks), flat).model)


def dawid_skene(blocks: Blocks) -> Rule:
    shape = blocks.tally.shape
    none = Prior.flat(shape.classifiers, shape.classes, 0.0)
    return posterior_rule(climb(blocks, majority_start(blocks), none, 100).model)


def ordered(blocks: Blocks) -> Rule:
    if blocks.tally.shape.classes > MOST_ORDERED:
        return pooled()(blocks)
    return posterior_rule(many_classes(blocks, ordered=True).model)


def without_class_shares(blocks: Blocks) -> Rule:
    return likelihood_rule(shared(blocks, majority_start(blocks)).model)


def own_matrices(blocks: Blocks) -> Rule:
    found = shared(blocks, majority_start(blocks))
    return posterior_rule(Model(found.model.class_probabilities, found.types.own))


SETTINGS: dict[str, Callable[[Blocks], Rule]] = {
    "majority": majority,
    "D-S": dawid_skene,
    "default": pooled(),
    "flat": unpooled,
    "1 type": pooled(COMMON=0.0),
    "κ=.25": pooled(COMMON=0.25),
    "κ=.75": pooled(COMMON=0.75),
    "κ=1": pooled(COMMON=1.0),
    "pull 0": pooled(PULL=1e-3),
    "pull 1": pooled(PULL=1.0),
    "no common": pooled(common_share=lambda _classes: 0.0),
    "half": pooled(common_share=lambda _classes: 0.5),
    "common": pooled(common_share=lambda _classes: 1.0),
    "no shares": without_class_shares,
    "own": own_matrices,
    "ordered": ordered,
}
RIVALS = ("majority", "D-S")
APART = ("ordered",)  # says something of the classes that most of these votes do not have


def read(folder: Path) -> tuple[np.ndarray, np.ndarray, int]:
    """Codes (n, m), true codes (n,) with −1 for a class that nobody voted and −2 for no truth, and K."""
    votes = pl.read_parquet(folder / "votes.parquet").unique(
        ["item", "worker"], keep="last", maintain_order=True
    )
    truth = pl.read_parquet(folder / "truth.parquet")
    classes, items, workers = (
        {value: place for place, value in enumerate(sorted(votes[name].unique()))}
        for name in ("label", "item", "worker")
    )
    codes = np.full((len(items), len(workers)), -1, dtype=np.int8)
    for item, worker, label in votes.select("item", "worker", "label").iter_rows():
        codes[items[item], workers[worker]] = classes[label]
    true = np.full(len(items), -2)
    for item, label in truth.select("item", "label").iter_rows():
        if item in items:
            true[items[item]] = classes.get(label, -1)
    return codes, true, len(classes)


def share_right(rule: Rule, codes: np.ndarray, true: np.ndarray, classes: int) -> float:
    """Share of the items with truth whose label is it; where classes tie, each gets its part."""
    hits = 0.0
    codes, true = codes[true > -2], true[true > -2]
    for start in range(0, len(codes), ITEMS_AT_ONCE):
        part, own = codes[start : start + ITEMS_AT_ONCE], true[start : start + ITEMS_AT_ONCE]
        scores = rule.scores(Block(part, np.ones(len(part)), classes))
        best = scores >= scores.max(axis=1, keepdims=True) - 1e-9
        won = best[np.arange(len(own)), np.maximum(own, 0)] / best.sum(axis=1)
        hits += float(won[own >= 0].sum())
    return hits / len(true)


def choose_by_halves(table: np.ndarray, names: list[str]) -> None:
    """Choose on half of the data sets, look up on the other half.

    The default was chosen on all of them, so that it is no fair measure: the model of one type is.
    """
    random = np.random.default_rng(0)
    candidates = [j for j, name in enumerate(names) if name not in (*RIVALS, *APART)]
    plain, gains = names.index("1 type"), []
    for _ in range(DEALS):
        order = random.permutation(len(table))
        half, other = table[order[: len(order) // 2]], table[order[len(order) // 2 :]]
        best = candidates[int(np.argmax(half[:, candidates].mean(axis=0)))]
        means = other.mean(axis=0)
        gains.append([means[best] - means[plain], means[best] - max(means[0], means[1])])
    (gain, above), (spread, _) = np.mean(gains, axis=0), np.std(gains, axis=0)
    print(
        f"\nthe setting that is best on one half, on the other half: {gain:+.4f} beside one type of items "
        f"(standard deviation over {DEALS} deals {spread:.4f}), {above:+.4f} beside the better rival"
    )


def main() -> None:
    folder = Path(os.environ.get("LABELFREE_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not folder.is_dir():
        print(f"the real votes are not here ({folder}); set LABELFREE_DATA to their folder")
        return
    names = list(SETTINGS)
    print(f"{'share right':<24}{'K':>3}" + "".join(f"{name:>10}" for name in names))
    rows = []
    for name in sys.argv[1:] or sorted(path.name for path in (folder / "votes").iterdir()):
        codes, true, classes = read(folder / "votes" / name)
        counted = Tally.from_codes(codes, np.ones(len(codes)), classes=tuple(range(classes)))
        blocks = Blocks(counted)
        print(f"{name:<24}{classes:>3}", end="", flush=True)
        row = []
        for rule in SETTINGS.values():
            row.append(share_right(rule(blocks), codes, true, classes))
            print(f"{row[-1]:>10.3f}", end="", flush=True)
        rows.append(row)
        print()
    table = np.array(rows)
    print(f"{'mean':<27}" + "".join(f"{mean:>10.4f}" for mean in table.mean(axis=0)))
    better = np.maximum(table[:, 0], table[:, 1])[:, None]
    print(
        f"{'worst below the better':<27}" + "".join(f"{w:>10.3f}" for w in (table - better).min(0))
    )
    below = (table < better - 0.01).sum(axis=0)
    print(f"{'sets a point below it':<27}" + "".join(f"{each:>10}" for each in below))
    if len(table) > 3:
        choose_by_halves(table, names)


if __name__ == "__main__":
    main()
