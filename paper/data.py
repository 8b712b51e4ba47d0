"""The data sets of the source's appendix, by files of a folder or by OpenML.

A folder holds `uci/NAME.parquet` with columns f0 …, and y (for MNIST `digit` in its place), and may
hold `weka/NAME_rRR.npz`, votes that are ready. Without a folder a set comes from OpenML by
scikit-learn, which keeps it in its own cache.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from paper.settings import ROOT


class UnexpectedData(ValueError):  # noqa: N818 (what it is, in words)
    """OpenML gives something else than the set that was asked for."""


@dataclass(frozen=True)
class DataSet:
    """One of the source's five sets.

    Attributes
    ----------
    file : str
        Name below `uci/`, without its end.
    openml : int
        Its number there.
    positive : tuple of str
        Targets that are class +1, at OpenML.
    instances, columns : int
        Of the set as it comes; OpenML's is refused where it has other columns.
    printed : str
        What the source prints of it.
    most : int or None
        So many are drawn where the set has more, as the source did with MNIST.
    """

    name: str
    title: str
    file: str
    openml: int
    positive: tuple[str, ...]
    instances: int
    columns: int
    printed: str
    most: int | None = None


SETS = {
    each.name: each
    for each in (
        DataSet("magic", "MAGIC", "magic", 1120, ("g",), 19_020, 10, "19000, 11"),
        DataSet("spambase", "Spambase", "spambase", 44, ("1",), 4601, 57, "4600, 57"),
        DataSet("musk", "Musk", "musk2", 1116, ("1",), 6598, 166, "6600, 88"),
        DataSet(
            "mnist", "MNIST 0–4 / 5–9", "mnist", 554, tuple("56789"), 70_000, 784, "40000, 28²",
            most=40_000,
        ),
        DataSet(
            "miniboone", "MiniBooNE", "miniboone", 41150, ("True", "signal", "1"), 130_064, 50,
            "130000, 50",
        ),
    )
}  # fmt: skip


def folder_of(given: str | None) -> Path | None:
    """Return the folder that was given, or that of LABELFREE_DATA, or the usual one; None where there is none."""
    place = given or os.environ.get("LABELFREE_DATA")
    folder = Path(place) if place else ROOT.parent / "shared" / "data"
    if place and not folder.is_dir():
        raise SystemExit(f"Expected a folder of data, but {folder} is none; mend --data.")
    return folder if folder.is_dir() else None


def file_of(name: str, folder: Path | None) -> Path | None:
    """Return the file of a set, None where the folder has none."""
    file = None if folder is None else folder / "uci" / f"{SETS[name].file}.parquet"
    return file if file is not None and file.is_file() else None


def usual(folder: Path | None) -> list[str]:
    """Return the sets that are run unless others are named: those of the folder; all but the largest of OpenML's."""
    held = [name for name in SETS if file_of(name, folder) is not None]
    return held or [name for name in SETS if name != "miniboone"]


def load(name: str, folder: Path | None) -> tuple[np.ndarray, np.ndarray]:
    """Return attributes (n, d) and the class, 1 or −1, of every instance."""
    chosen = SETS[name]
    file = file_of(name, folder)
    if file is not None:
        attributes, positive = _of_file(file)
    else:
        attributes, positive = _of_openml(chosen)
    labels = np.where(positive, 1, -1).astype(np.int8)
    if chosen.most is not None and len(labels) > chosen.most:
        kept = _drawn(chosen, file, len(labels))
        return attributes[kept], labels[kept]
    return attributes, labels


def _of_file(file: Path) -> tuple[np.ndarray, np.ndarray]:
    table = pl.read_parquet(file)
    numbers = table.select("^f[0-9]+$").to_numpy()
    if "digit" in table.columns:
        return numbers, (table["digit"] >= 5).to_numpy()
    return numbers, (table["y"] == 1).to_numpy()


def _of_openml(chosen: DataSet) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import fetch_openml

    found = fetch_openml(data_id=chosen.openml, as_frame=True)
    table = found.data.select_dtypes("number")
    numbers = table.drop(columns="ID", errors="ignore").to_numpy(dtype=np.float64)  # Musk's rows
    if numbers.shape[1] != chosen.columns:
        raise UnexpectedData(
            f"expected {chosen.columns} attributes at OpenML, got {numbers.shape[1]}; mend its entry in paper/data.py"
        )
    positive = found.target.astype(str).isin(chosen.positive).to_numpy()
    if not 0 < positive.sum() < len(positive):
        raise UnexpectedData(
            f"expected targets of which some are {chosen.positive}, got "
            f"{sorted(found.target.astype(str).unique())}; mend its entry in paper/data.py"
        )
    return numbers, positive


def _drawn(chosen: DataSet, file: Path | None, rows: int) -> np.ndarray:
    """Return the rows of a set that is too large: those that the ready votes were made of, where known."""
    listed = None if file is None else file.with_name(f"{chosen.file}40k_idx.npy")
    if listed is not None and listed.is_file():
        return np.load(listed)
    return np.sort(np.random.default_rng(0).permutation(rows)[: chosen.most])
