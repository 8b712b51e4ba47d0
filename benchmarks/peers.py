"""labelfree beside other tools on the same votes in the same run: time, and errors of the rates.

Each peer is installed, at a fixed version, into an environment of its own below a folder of caches, so
that the project's stays clean; the first run takes some minutes and 3 GB. A peer that does not install
says so in its row.
Usage: python benchmarks/peers.py [FOLDER]    (by default ~/.cache/labelfree-peers)
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory

import numpy as np
from speed import seconds

import labelfree as lf

ITEMS, CLASSIFIERS, SETS = 10**5, 10, 3
FASTER, AS_GOOD = (
    100,
    1.0,
)  # the bars: times as fast, at an error of at most this share of the peer's
HERE = Path(__file__).parent


@dataclass(frozen=True)
class Peer:
    """A tool, what pip is asked for, and the oldest Python that it runs on."""

    name: str
    words: str
    packages: tuple[str, ...]
    python: tuple[int, int] = (3, 9)


PEERS = (
    Peer("crowdkit", "crowd-kit 1.4.2 DawidSkene", ("crowd-kit==1.4.2",)),
    # Any CPU build of torch will do: Snorkel asks for no particular one.
    Peer("snorkel", "Snorkel 0.10.0 LabelModel", ("torch==2.13.0", "snorkel==0.10.0")),
    Peer("judgepanel", "judgepanel 0.1.0", ("judgepanel==0.1.0",), (3, 12)),
)
INSTEAD = {"judgepanel": Peer("stepmix", "StepMix 3.0.0", ("stepmix==3.0.0",))}


def python_for(peer: Peer) -> str | None:
    """Find an interpreter with pip that is new enough, this one first."""
    names = [sys.executable, *(f"python3.{minor}" for minor in range(peer.python[1], 16))]
    test = f"import sys; sys.exit(sys.version_info < {peer.python})"
    for name in names:
        found = which(name)
        if (
            found
            and subprocess.run([found, "-c", test], capture_output=True, check=False).returncode
            == 0
        ):
            return found
    return None


def installed(peer: Peer, folder: Path) -> tuple[Path | None, str]:
    """Install a peer where it is not yet; return its interpreter, or why there is none."""
    home = folder / "-".join(each.replace("==", "-") for each in peer.packages)
    python, done = home / "bin" / "python", home / "installed"
    if done.exists():
        return python, ""
    base = python_for(peer)
    if base is None:
        return None, f"needs Python {'.'.join(map(str, peer.python))}"
    print(f"  installing {peer.words}", file=sys.stderr)
    steps = (
        [base, "-m", "venv", "--clear", "--without-pip", home],
        [*pip(), "--python", python, "install", "--quiet", "--progress-bar", "off", *peer.packages],
    )
    for step in steps:
        run = subprocess.run(list(map(str, step)), capture_output=True, text=True, check=False)
        if run.returncode:
            said = [line for line in run.stderr.splitlines() if line.startswith("ERROR")]
            return None, (said or run.stderr.splitlines() or ["no reason given"])[-1]
    done.touch()
    return python, ""


def pip() -> list[str]:
    """A pip that installs into other environments: of this interpreter, or of the machine."""
    for python in (sys.executable, which("python3") or "", sys.base_prefix + "/bin/python3"):
        if (
            python
            and subprocess.run(
                [python, "-m", "pip", "--version"], capture_output=True, check=False
            ).returncode
            == 0
        ):
            return [python, "-m", "pip"]
    return [sys.executable, "-m", "pip"]


@dataclass(frozen=True)
class Found:
    """Seconds of a fit, and the mean absolute error of all sensitivities and specificities."""

    seconds: float
    error: float


def of_peer(peer: Peer, python: Path, votes: Path, truth: np.ndarray) -> Found | str:
    """Let a peer grade the votes."""
    answer = votes.with_suffix(".json")
    words = [python, HERE / "peer.py", peer.name, votes, answer]
    run = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False)
    if run.returncode:
        return (run.stderr.strip().splitlines() or [f"exit code {run.returncode}"])[-1]
    said = json.loads(answer.read_text())
    return Found(said["seconds"], error_of(said["sensitivity"], said["specificity"], truth))


def error_of(sensitivity: object, specificity: object, truth: np.ndarray) -> float:
    return float(np.mean(np.abs(np.stack([sensitivity, specificity]) - truth)))  # type: ignore[call-overload]


def of_labelfree(table: np.ndarray, truth: np.ndarray) -> Found:
    """All of it: intervals, the test for shared errors and the verdict are among what is timed."""
    found = lf.estimate(table)
    return Found(
        seconds(lambda: lf.estimate(table), 9),
        error_of(found.sensitivity, found.specificity, truth),
    )


def compare(peer: Peer, python: Path, folder: Path) -> list[tuple[Found, Found]] | str:
    """Grade a few sets of votes with labelfree and with a peer, in turn."""
    pairs = []
    for seed in range(1, SETS + 1):
        sensitivity, specificity = lf.simulate.rates(CLASSIFIERS, seed=seed)
        truth = np.stack([sensitivity, specificity])
        table = lf.simulate.votes(
            ITEMS, sensitivity=sensitivity, specificity=specificity, prevalence=0.65, seed=seed
        ).votes.astype(np.int8)
        np.save(folder / "votes.npy", table)
        theirs = of_peer(peer, python, folder / "votes.npy", truth)
        if isinstance(theirs, str):
            return theirs
        pairs.append((of_labelfree(table, truth), theirs))
    return pairs


def show(peer: Peer, pairs: list[tuple[Found, Found]]) -> None:
    """Print the ratios of the medians, each beside its bar."""
    own, theirs = (
        np.median([[each.seconds, each.error] for each in side], axis=0)
        for side in zip(*pairs, strict=True)
    )
    faster, error = theirs[0] / own[0], own[1] / theirs[1]
    print(
        f"{peer.words:<28}{theirs[0]:8.2f} s{faster:8.0f} ×  bar {FASTER} ×  {'ok' if faster >= FASTER else 'MISSED':<7}"
        f"error {theirs[1]:.4f}, ours {own[1]:.4f}:{error:6.2f} ×  bar {AS_GOOD:g} ×  {'ok' if error <= AS_GOOD else 'MISSED'}"
    )


def main(cache: str | None = None) -> None:
    folder = Path(cache) if cache else Path.home() / ".cache" / "labelfree-peers"
    folder.mkdir(parents=True, exist_ok=True)
    print(
        f"\nn={ITEMS:,}, m={CLASSIFIERS}, medians of {SETS} sets: seconds of the peer's fit, how many times as fast "
        "labelfree is; mean |error| of all sensitivities and specificities"
    )
    for first in PEERS:
        peer = first
        python, why_not = installed(peer, folder)
        if python is None and peer.name in INSTEAD:
            print(
                f"{peer.words:<28}not installed: {why_not}; {INSTEAD[peer.name].words} takes its place"
            )
            peer = INSTEAD[peer.name]
            python, why_not = installed(peer, folder)
        if python is None:
            print(f"{peer.words:<28}not installed: {why_not}")
            continue
        with TemporaryDirectory() as place:
            pairs = compare(peer, python, Path(place))
        if isinstance(pairs, str):
            print(f"{peer.words:<28}did not run: {pairs}")
        else:
            show(peer, pairs)


if __name__ == "__main__":
    main(*sys.argv[1:])
