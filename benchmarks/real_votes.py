"""How often each method labels real votes rightly, beside published figures.

Prints the error in per cent of every method on every data set, at the methods' own defaults. Items
without a known truth are left out of the count; of a repeated pair of item and classifier the last
vote is kept. A method that knows two classes has no figure on a set with more; one whose search had
not settled is marked by a star, and one that found the votes to tell nothing says so.

The published figures are those of Zhang, Chen, Zhou and Jordan 2014, in the order majority,
Dawid–Skene, spectral start with EM; and of the crowd-kit library, majority and Dawid–Skene.

Usage: python benchmarks/real_votes.py [data sets …]
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

import labelfree as lf

PUBLISHED = {
    "bluebird": "24.07 / 11.11 / 10.09",
    "rte": "10.31 / 7.12 / 7.12",
    "web": "26.93 / 15.91 / 15.86",
    "d_product": "10.3 / 6.0",
}
METHODS: dict[str, Callable[..., Any]] = {
    "majority": lf.rivals.majority,
    "Dawid–Skene": lf.rivals.dawid_skene,
    "KOS": lf.rivals.karger_oh_shah,
    "Platanios": lf.rivals.platanios,
    "Zhang start": partial(lf.rivals.zhang, rounds=0),
    "Zhang": lf.rivals.zhang,
    "Jain–Oh": lf.rivals.jain_oh,
    "labelfree": lf.estimate,
    "in order": partial(lf.estimate, ordered=True),
}
BINARY = ("KOS", "Platanios")  # what takes two classes only
ORDERED = ("web",)  # whose classes are grades
LARGE = ("magic_weka", "mnist10_models")  # take long; name them to run them


def read(folder: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    votes = pl.read_parquet(folder / "votes.parquet").unique(
        ["item", "worker"], keep="last", maintain_order=True
    )
    truth = pl.read_parquet(folder / "truth.parquet").rename({"label": "true"})
    return votes, truth.join(votes.select("item").unique(), on="item", how="semi")


def error(method: Callable[..., Any], votes: pl.DataFrame, truth: pl.DataFrame) -> str:
    """Per cent of the items with truth whose label is not it."""
    classes = sorted(votes["label"].unique())
    reading = {"item": "item", "classifier": "worker", "vote": "label", "classes": classes}
    try:
        found = method(votes, **reading)
        answers = found.label(votes).join(truth, on="item")
    except lf.NotIdentifiedError:
        return "nothing"
    wrong = (answers["label"] != answers["true"]).sum()
    return f"{100.0 * wrong / len(truth):.2f}{'' if found.converged else '*'}"


def main() -> None:
    folder = Path(os.environ.get("LABELFREE_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not folder.is_dir():
        print(f"the real votes are not here ({folder}); set LABELFREE_DATA to their folder")
        return
    warnings.simplefilter("ignore", lf.LabelfreeWarning)
    every = sorted(path.name for path in (folder / "votes").iterdir())
    print(f"{'error in %':<24}{'K':>3}" + "".join(f"{name:>12}" for name in METHODS))
    for name in sys.argv[1:] or [name for name in every if name not in LARGE]:
        votes, truth = read(folder / "votes" / name)
        classes = votes["label"].n_unique()
        print(f"{name:<24}{classes:>3}", end="", flush=True)
        start = time.perf_counter()
        for label, method in METHODS.items():
            skipped = (
                (classes > 2 and label in BINARY)
                or (classes > 10 and label == "Jain–Oh")
                or (label == "in order" and name not in ORDERED)
            )
            print(f"{'–' if skipped else error(method, votes, truth):>12}", end="", flush=True)
        print(f"  {PUBLISHED.get(name, '')}  ({time.perf_counter() - start:.0f} s)")


if __name__ == "__main__":
    main()
