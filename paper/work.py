"""Jobs on all cores, and tables.

A job's random numbers hang on its own seed alone and answers come back in the order of the jobs, so
that the number of processes changes no figure. Tables hold rounded figures and no time.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

CHUNK = 50  # data sets a job


def random(*place: int) -> np.random.Generator:
    """Return the stream of random numbers of one place: experiment, cell, data set."""
    return np.random.default_rng(np.random.SeedSequence(place))


def chunks(sets: int) -> list[range]:
    return [range(start, min(start + CHUNK, sets)) for start in range(0, sets, CHUNK)]


def run(work: Callable[..., Any], jobs: Sequence[tuple[Any, ...]], processes: int) -> list[Any]:
    """Do `work(*job)` for every job; the answers stand in the order of the jobs."""
    if processes <= 1 or len(jobs) <= 1:
        return [work(*job) for job in jobs]
    # Spawned, as Polars does not survive a fork.
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        return list(pool.map(work, *zip(*jobs, strict=True)))


def run_cells(
    work: Callable[..., np.ndarray], cells: Sequence[tuple[Any, ...]], sets: int, processes: int
) -> list[np.ndarray]:
    """Do `work(*cell, sets)` in chunks; one array a cell, its first axis the data sets."""
    parts = chunks(sets)
    jobs = [(*cell, part) for cell in cells for part in parts]
    answers = run(work, jobs, processes)
    return [
        np.concatenate(answers[start : start + len(parts)])
        for start in range(0, len(answers), len(parts))
    ]


def write(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Write a table; six digits are more than any of these figures is known to."""
    rows = list(rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(rows[0])
        table.writerows([[_plain(value) for value in row.values()] for row in rows])


def write_part(path: Path, rows: list[dict[str, Any]], by: str, order: Sequence[str]) -> None:
    """Write the rows of some sets, and keep those of the others that the table holds."""
    fresh = {row[by] for row in rows}
    kept = []
    if path.is_file():
        with path.open(encoding="utf-8", newline="") as file:
            kept = [row for row in csv.DictReader(file) if row[by] not in fresh]
    everything = sorted([*kept, *rows], key=lambda row: order.index(row[by]))  # stable
    write(path, everything)


def _plain(value: Any) -> Any:
    """Give a figure as it is written: NaN, which is none, as nothing."""
    if not isinstance(value, float | np.floating):
        return value
    return "" if np.isnan(value) else f"{value:.6g}"


def read(path: Path) -> pl.DataFrame:
    return pl.read_csv(path, infer_schema_length=None)
