"""How cost grows with items, classifiers and engines, beside what the engines' own group-by costs.

The figures of docs/scale.md. Every bar stands beside its figure. The votes are made here, in a folder that goes
at the end: 10⁸ items × 10 classifiers are some 130 MB of Parquet, and 1 GB in memory.
Usage: python benchmarks/scale.py [file] [items] [classifiers] [wide] [spark]    (by default all of them)
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
from speed import row, seconds, votes

import labelfree as lf

ROOT = Path(__file__).parents[1]
TIMES_GROUP_BY, PEAK_MB = 1.5, 1000
EXPONENT = 1.05
SPARK_MORE = 2.0  # seconds beyond Spark's own group-by
BLOCK = 10**6
SHAPES = ((3, 10**6), (10, 10**6), (30, 10**5), (100, 10**5), (300, 10**4), (1000, 10**4))
# Programs start from compiled modules, as they do where they are installed.
ENVIRONMENT = {key: each for key, each in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
GROUP_BY = """
import sys
import polars as pl
frame = pl.scan_parquet(sys.argv[1])
names = frame.collect_schema().names()
print(frame.group_by(names).agg(pl.len()).collect(engine="streaming").height)
"""


def blocks(items: int, classifiers: int) -> Iterator[np.ndarray]:
    """Votes, a million items at a time; after ten million they come again, which nobody can see who counts."""
    kept = [
        votes(min(items, BLOCK), classifiers, seed=seed)
        for seed in range(1, min(10, max(1, items // BLOCK)) + 1)
    ]
    for place in range(max(1, items // BLOCK)):
        yield kept[place % len(kept)]


def write(path: Path, items: int, classifiers: int) -> Path:
    """A Parquet file of votes, one column of small integers a classifier."""
    from polars.io.plugins import register_io_source

    schema = {f"c{place}": pl.Int8 for place in range(classifiers)}
    frames = (
        pl.DataFrame(block.astype(np.int8), schema=schema, orient="row")
        for block in blocks(items, classifiers)
    )
    register_io_source(lambda *_: frames, schema=schema).sink_parquet(path)
    return path


@dataclass(frozen=True)
class Cost:
    """Seconds on the clock, seconds of all cores together, and megabytes at most."""

    clock: float
    cores: float
    peak: float


def run(words: list[object]) -> Cost:
    """Run a program and measure all of it, its start included."""
    start = time.perf_counter()
    child = subprocess.Popen(list(map(str, words)), stdout=subprocess.DEVNULL, env=ENVIRONMENT)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise RuntimeError(f"{words} ended with {child.returncode}")
    clock = time.perf_counter() - start
    return Cost(clock, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def in_turn(programs: list[list[object]], repeats: int) -> list[Cost]:
    """The least of several runs of each, one after the other, so that whatever else runs slows all alike."""
    rounds = [[run(words) for words in programs] for _ in range(repeats)]
    return [
        Cost(min(e.clock for e in each), min(e.cores for e in each), max(e.peak for e in each))
        for each in zip(*rounds, strict=True)
    ]


def file() -> None:
    """`labelfree estimate` on files that need not fit into memory, whole processes."""
    program = Path(sys.executable).with_name("labelfree")
    with TemporaryDirectory() as folder:
        for items in (10**5, 10**6, 10**7, 10**8):
            path = write(Path(folder) / f"{items}.parquet", items, 10)
            plain = [sys.executable, "-c", GROUP_BY, path]
            for words in (plain, own_words := [program, "estimate", path]):
                run(words)  # once for the file to be in memory, and for what Python compiles
            base, own = in_turn([plain, own_words], 5)
            last = items == 10**8
            print(
                f"\nParquet {items:,} × 10, whole processes: Polars' own group-by {base.clock:.2f} s, "
                f"labelfree estimate {own.clock:.2f} s ({base.cores:.2f} and {own.cores:.2f} s of all cores)"
            )
            ratio = own.clock / base.clock
            row("labelfree estimate / Polars' group-by", ratio, TIMES_GROUP_BY if last else None)
            row("the same, time of all cores", own.cores / base.cores, None)
            row("peak memory, MB", own.peak, PEAK_MB if last else None, " MB")
        labels = run([program, "label", path, "-o", Path(folder) / "labels.parquet"])
        print(f"\nlabelfree label, {items:,} × 10 from file to file: {labels.clock:.1f} s")
        row("peak memory, MB", labels.peak, PEAK_MB, " MB")


def slope(sizes: list[int], times: list[float]) -> float:
    """Exponent of the growth: least squares on the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def items() -> None:
    """In memory, ten classifiers, by number of items."""
    sizes, times = [10**5, 10**6, 10**7, 10**8], []
    table = np.concatenate(list(blocks(sizes[-1], 10)), dtype=np.int8)
    print("\nin memory, m=10: seconds of lf.estimate")
    for size in sizes:
        times.append(seconds(lambda size=size: lf.estimate(table[:size]), 9 if size < 10**7 else 3))
        print(f"  n={size:<12,}{times[-1]:9.4f} s{times[-1] / size * 1e9:9.1f} ns an item")
    row("exponent of the growth, n = 10⁵ … 10⁸", slope(sizes, times), EXPONENT, "")
    row("exponent of the growth, n = 10⁶ … 10⁸", slope(sizes[1:], times[1:]), EXPONENT, "")


def of_shape(items: int, classifiers: int) -> tuple[float, float, float]:
    """Seconds of counting, and of an estimate by method map and by method tensor."""
    table = votes(items, classifiers).astype(np.int8)
    return (
        seconds(lambda: lf.tally(table), 3),
        seconds(lambda: lf.estimate(table, dependence="ignore"), 1),
        seconds(lambda: lf.estimate(table, dependence="ignore", method="tensor"), 1),
    )


def classifiers() -> None:
    """In memory, by number of classifiers."""
    print(
        "\nin memory, by classifiers: seconds of lf.tally, and of lf.estimate by map and by tensor"
    )
    for m, n in SHAPES:
        counted, by_map, by_tensor = of_shape(n, m)
        print(
            f"  m={m:<6}n={n:<10,}tally {counted:8.3f} s  map {by_map:8.3f} s  tensor {by_tensor:8.3f} s"
        )


def of_wide(table: Callable[[], object]) -> tuple[float, float, lf.Tally]:
    """Seconds of counting a wide table in its engine, and of the pass for the third moments."""
    found = lf.tally(table())
    powers = np.random.default_rng(1).normal(size=(len(found.classifiers), 2, 6))
    return (
        seconds(lambda: lf.tally(table()), 1),
        seconds(lambda: found.whole.triples(powers), 1),
        found,
    )


def wide() -> None:
    """Lazy tables whose patterns do not repeat: sums in the engine, and a sample at home."""
    import duckdb

    with TemporaryDirectory() as folder:
        path = write(Path(folder) / "wide.parquet", 10**6, 60)
        print(
            "\n60 classifiers × 10⁶ items in an engine: seconds of lf.tally, and of the third moments"
        )
        for name, table in {
            "Polars": lambda: pl.scan_parquet(path),
            "DuckDB": lambda: duckdb.read_parquet(str(path)),
        }.items():
            counted, third, found = of_wide(table)
            print(f"  {name:<8}{counted:8.2f} s{third:8.2f} s   sample of {found.items:,.0f}")


def spark() -> None:
    """`lf.estimate` on a Spark frame, beside Spark's own group-by of the same columns."""
    sys.path.insert(0, str(ROOT))
    from tests import spark as session_of

    reason = session_of.reason_for_none()
    if reason:
        print(f"\n{reason}")
        return
    with TemporaryDirectory() as folder, session_of.running() as session:
        path = write(Path(folder) / "votes.parquet", 10**7, 10)
        frame = session.read.parquet(str(path)).repartition(8).cache()
        frame.count()
        base = seconds(lambda: frame.groupBy(frame.columns).count().toPandas(), 3)
        own = seconds(lambda: lf.estimate(frame), 3)
        print(
            f"\nSpark, local[2], 10⁷ × 10: its own group-by {base:.2f} s, lf.estimate {own:.2f} s"
        )
        row("lf.estimate less Spark's own group-by, s", own - base, SPARK_MORE, " s")
        path = write(Path(folder) / "wide.parquet", 10**6, 60)
        counted, third, _ = of_wide(lambda: session.read.parquet(str(path)))
        print(
            f"\nSpark, 60 classifiers × 10⁶ items: lf.tally {counted:.1f} s, third moments {third:.1f} s"
        )


PARTS = {each.__name__: each for each in (file, items, classifiers, wide, spark)}


def main() -> None:
    """Run the parts that were asked for."""
    for name in sys.argv[1:] or PARTS:
        PARTS[name]()


if __name__ == "__main__":
    main()
