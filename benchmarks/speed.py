"""Speed and memory, as ratios to plain NumPy on the same votes in the same run.

`make bench` prints the table; every bar stands beside its figure.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl

import labelfree as lf
from labelfree._products import Blocks

NO_BYTECODE = {"PYTHONDONTWRITEBYTECODE"}


def seconds(work: Callable[[], object], repeats: int = 5) -> float:
    """Best of several runs: the machine's noise only ever adds."""
    best = np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def votes(items: int, classifiers: int, seed: int = 1) -> np.ndarray:
    sensitivity, specificity = lf.simulate.rates(classifiers, seed=seed)
    parts = [
        lf.simulate.votes(
            min(10**6, items),
            sensitivity=sensitivity,
            specificity=specificity,
            prevalence=0.65,
            seed=s,
        ).votes
        for s in range(max(1, items // 10**6))
    ]
    return np.ascontiguousarray(np.concatenate(parts))


def majority(table: np.ndarray) -> np.ndarray:
    """The plain way, on votes of −1 and 1."""
    return np.sign(table.sum(axis=1))


def dawid_skene(table: np.ndarray, rounds: int = 10) -> np.ndarray:
    """Dawid–Skene in plain NumPy: EM from the majority, votes as one float matrix."""
    ones = table.astype(np.float64)
    share = ones.mean(axis=1)
    for _ in range(rounds):
        sensitivity = np.clip(share @ ones / share.sum(), 1e-9, 1 - 1e-9)
        false_alarms = np.clip((1 - share) @ ones / (1 - share).sum(), 1e-9, 1 - 1e-9)
        prevalence = share.mean()
        weights = np.log(sensitivity / false_alarms) - np.log(
            (1 - sensitivity) / (1 - false_alarms)
        )
        start = np.log((1 - sensitivity) / (1 - false_alarms)).sum() + np.log(
            prevalence / (1 - prevalence)
        )
        share = 1.0 / (1.0 + np.exp(-(ones @ weights + start)))
    return share


def peak_beyond(work: Callable[[], object]) -> int:
    """Bytes that NumPy and Python allocate at most while working, beyond what was there before."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        work()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def row(what: str, figure: float, bar: float | None, unit: str = "×") -> None:
    against = "" if bar is None else f"  bar {bar:g}{unit}  {'ok' if figure <= bar else 'MISSED'}"
    print(f"{what:<62}{figure:8.3f}{unit}{against}")


def ten_million() -> None:
    zero_one = votes(10**7, 10)
    table = (2 * zero_one - 1).astype(np.int8)
    del zero_one
    base = seconds(lambda: majority(table))
    print(f"\nn=10⁷, m=10, int8 ±1 by row: numpy.sign(votes.sum(axis=1)) {base:.3f} s")
    estimate = lf.estimate(table)
    row("estimate / majority vote", seconds(lambda: lf.estimate(table)) / base, 0.5)
    row("label / majority vote", seconds(lambda: estimate.label(table)) / base, 0.5)
    row("probability / majority vote", seconds(lambda: estimate.probability(table)) / base, None)
    row(
        "estimate: memory beyond the votes, MB",
        peak_beyond(lambda: lf.estimate(table)) / 2**20,
        200,
        " MB",
    )
    row(
        "label: memory beyond votes and answer, MB",
        peak_beyond(lambda: estimate.label(table)) / 2**20 - 10**7 / 2**20,
        200,
        " MB",
    )
    columns = np.asfortranarray(table)
    base = seconds(lambda: majority(columns))
    print(f"\nthe same by column: numpy.sign(votes.sum(axis=1)) {base:.3f} s")
    row("one pass over the votes (max) / majority vote", seconds(columns.max) / base, None)
    row("estimate / majority vote (aim: 0.1)", seconds(lambda: lf.estimate(columns)) / base, None)
    row("label / majority vote (aim: 0.1)", seconds(lambda: estimate.label(columns)) / base, None)
    frame = pl.DataFrame({f"c{i}": columns[:, i] for i in range(10)})
    framed = lf.estimate(frame)
    row(
        "Polars frame: estimate / majority vote (aim: 0.1)",
        seconds(lambda: lf.estimate(frame)) / base,
        None,
    )
    row(
        "Polars frame: label and probability / majority vote",
        seconds(lambda: framed.label(frame)) / base,
        None,
    )


def hundred_thousand() -> None:
    table = (2 * votes(10**5, 10) - 1).astype(np.int8)
    base = seconds(lambda: majority(table), 20)
    print(f"\nn=10⁵, m=10, by row: majority vote {base * 1e3:.2f} ms")
    row("estimate / majority vote", seconds(lambda: lf.estimate(table), 20) / base, 8)


def many_classifiers() -> None:
    table = votes(10**6, 100)
    base = seconds(lambda: dawid_skene(table), 2)
    print(f"\nn=10⁶, m=100, by row: plain-NumPy Dawid–Skene, 10 iterations {base:.2f} s")
    row("estimate / Dawid–Skene", seconds(lambda: lf.estimate(table), 2) / base, 3)
    row(
        "estimate: memory beyond the votes, MB",
        peak_beyond(lambda: lf.estimate(table)) / 2**20,
        200,
        " MB",
    )
    estimate = lf.estimate(table)
    row("label / Dawid–Skene", seconds(lambda: estimate.label(table), 2) / base, None)


def long_votes(items: int, raters: int, each: int, classes: int) -> pl.DataFrame:
    """One row a vote, in any order; the raters of an item differ."""
    random = np.random.default_rng(1)
    apart = np.cumsum(random.integers(1, raters // each, (items, each)), axis=1)
    voters = (random.integers(0, raters, (items, 1)) + apart) % raters
    table = pl.DataFrame(
        {
            "item": np.repeat(np.arange(items), each),
            "rater": pl.Series(voters.reshape(-1)).cast(pl.String),
            "vote": random.integers(0, classes, items * each),
        }
    )
    return table.sample(fraction=1.0, shuffle=True, seed=1)


def long_form() -> None:
    """Votes of ten thousand raters, five an item, one row a vote in a Parquet file."""
    table = long_votes(10**6, 10**4, 5, 5)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "votes.parquet"
        table.write_parquet(path)
        base = seconds(lambda: pl.read_parquet(path).sort("item", "rater"), 2)
        print(f"\n10⁶ items × 5 votes by 10⁴ raters, K=5, long Parquet: read and sort {base:.2f} s")
        counted = lf.tally(path, classifier="rater", vote="vote")
        count = seconds(lambda: lf.tally(path, classifier="rater", vote="vote"), 2)
    row("tally, s", count, 20, " s")
    row("tally / read and sort", count / base, None)
    blocks = Blocks(counted)
    weights = np.random.default_rng(2).random(
        (len(counted.classifiers), *[len(counted.classes)] * 2)
    )
    work = seconds(lambda: blocks.total(lambda block: (block.gather(block.score(weights)),)), 2)
    row("one pass over the sparse patterns (score, gather), s", work, None, " s")


def run(command: list[str | Path]) -> None:
    """Run a program with the bytecode beside it that every installed package has."""
    plain = {name: value for name, value in os.environ.items() if name not in NO_BYTECODE}
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=plain)


def start_up() -> None:
    print("\nstarting")
    blank = seconds(lambda: run([sys.executable, "-c", "pass"]), 7)
    bare = seconds(lambda: run([sys.executable, "-c", "import labelfree"]), 7)
    row("import labelfree, less a bare interpreter, s", bare - blank, 0.25, " s")
    words: list[str | Path] = [Path(sys.executable).with_name("labelfree"), "--help"]
    row("labelfree --help, whole process, s", seconds(lambda: run(words), 7), 0.4, " s")


def main() -> None:
    for part in (start_up, hundred_thousand, ten_million, many_classifiers, long_form):
        part()


if __name__ == "__main__":
    main()
