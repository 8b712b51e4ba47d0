"""A crowd in the long form: a million items, five votes each, ten thousand raters, and crowd-kit beside it.

Prints seconds and memory from a Parquet file to class probabilities, confusion matrices and labels, with
two and with five classes, in a process of its own; and, on the largest size that crowd-kit's DawidSkene
(ten iterations) finishes in `PATIENCE` seconds, how many times as fast that is. Crowd-kit runs in an
environment of its own, as in peers.py; where it does not install, its row says so.

Usage: python benchmarks/crowd.py [FOLDER]    (of peers' environments, by default ~/.cache/labelfree-peers)
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
from peers import PEERS, installed
from speed import long_votes, row

ITEMS, RATERS, EACH = 10**6, 10**4, 5
PATIENCE = 300
MOST_SECONDS, MOST_GIGABYTES, FASTER = 60, 3, 30
CROWDKIT = """
import json, sys, time
import pandas as pd
from crowdkit.aggregation import DawidSkene
table = pd.read_parquet(sys.argv[1]).rename(columns={"item": "task", "rater": "worker", "vote": "label"})
start = time.perf_counter()
labels = DawidSkene(n_iter=10, tol=0.0).fit_predict(table)
seconds = time.perf_counter() - start
truth = pd.read_parquet(sys.argv[2])["true"]
print(json.dumps({"seconds": seconds, "right": float((labels.sort_index().to_numpy() == truth.to_numpy()).mean())}))
"""


def crowd(items: int, raters: int, classes: int) -> tuple[pl.DataFrame, np.ndarray]:
    """Votes that are right with each rater's own chance, one row a vote in any order; and the truth."""
    table = long_votes(items, raters, EACH, classes)
    random = np.random.default_rng(2)
    truth = random.integers(0, classes, items)
    accuracy = random.beta(6, 3, raters)
    of_rater = accuracy[table["rater"].cast(pl.Int64).to_numpy()]
    right = random.random(len(table)) < of_rater
    own = truth[table["item"].to_numpy()]
    vote = np.where(right, own, table["vote"].to_numpy())
    return table.with_columns(vote=vote), truth


def measure(path: str, truth: str) -> None:
    """Do all of it, from the file to the labels; print what it took as JSON."""
    import labelfree as lf

    start, work = time.perf_counter(), time.process_time()
    found = lf.estimate(path, item="item", classifier="rater", vote="vote")
    seconds = time.perf_counter() - start
    labels = found.label(path).sort("item")["label"]
    right = float((labels == pl.read_parquet(truth)["true"]).mean())
    said = {
        "seconds": seconds,
        "labelled": time.perf_counter() - start,
        "work": time.process_time() - work,
        "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "converged": found.converged,
        "right": right,
    }
    print(json.dumps(said))


def run(words: list[str], patience: float | None = None) -> dict[str, float] | str:
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=patience)
    except subprocess.TimeoutExpired:
        return f"did not finish in {patience} s"
    if done.returncode:
        return (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    return dict(json.loads(done.stdout.strip().splitlines()[-1]))


def written(folder: Path, items: int, raters: int, classes: int) -> list[str]:
    table, truth = crowd(items, raters, classes)
    paths = [str(folder / name) for name in ("votes.parquet", "truth.parquet")]
    table.write_parquet(paths[0])
    pl.DataFrame({"true": truth}).write_parquet(paths[1])
    return paths


def whole(folder: Path) -> None:
    for classes in (2, 5):
        paths = written(folder, ITEMS, RATERS, classes)
        said = run([sys.executable, __file__, "measure", *paths])
        print(f"\n{ITEMS:,} items × {EACH} votes by {RATERS:,} raters, K={classes}: {said}")
        if isinstance(said, dict):
            row("file to confusion matrices, s", said["seconds"], MOST_SECONDS, " s")
            row("most memory, GB", said["gigabytes"], MOST_GIGABYTES, " GB")


def beside_crowdkit(folder: Path, cache: Path) -> None:
    peer = PEERS[0]
    python, why_not = installed(peer, cache)
    if python is None:
        print(f"{peer.words} not installed: {why_not}")
        return
    print(f"\n{peer.words}, ten iterations, and labelfree, whole (labels too), K=5")
    for items in (10**4, 10**5, 10**6):
        paths = written(folder, items, max(items // 100, 100), 5)
        theirs = run([str(python), "-c", CROWDKIT, *paths], PATIENCE)
        own = run([sys.executable, __file__, "measure", *paths])
        if isinstance(theirs, str) or isinstance(own, str):
            print(f"  {items:>9,} items: {theirs if isinstance(theirs, str) else own}")
            return
        times = theirs["seconds"] / own["labelled"]
        print(
            f"  {items:>9,} items: {theirs['seconds']:7.1f} s, right {theirs['right']:.4f}; labelfree {own['labelled']:6.1f} s, "
            f"right {own['right']:.4f}: {times:5.1f} ×  bar {FASTER} ×  {'ok' if times >= FASTER else 'MISSED'}"
        )


def main(cache: str | None = None) -> None:
    home = Path(cache) if cache else Path.home() / ".cache" / "labelfree-peers"
    home.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as folder:
        whole(Path(folder))
        beside_crowdkit(Path(folder), home)


if __name__ == "__main__":
    if sys.argv[1:2] == ["measure"]:
        measure(*sys.argv[2:])
    else:
        main(*sys.argv[1:])
