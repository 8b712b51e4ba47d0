"""How much is run, and where it goes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Settings:
    """The lengths of all experiments."""

    folder: Path  # of tables and figures
    page: Path
    sets: int  # data sets a cell of section 6.1
    sizes: tuple[int, ...]  # n of section 6.1
    classifier_sets: int  # data sets a cell of the appendix's figure
    classifiers: tuple[int, ...]  # m of the appendix's figure
    realizations: int  # of each real data set, at most
    bound_sets: int
    missing_sets: int
    copying_sets: int
    jobs: int  # processes

    @property
    def results(self) -> Path:
        return self.folder / "results"

    @property
    def figures(self) -> Path:
        return self.folder / "figures"


def full(jobs: int) -> Settings:
    return Settings(
        folder=ROOT / "paper",
        page=ROOT / "docs" / "paper.md",
        sets=2000,
        sizes=(300, 1000, 3000, 10_000, 30_000, 100_000, 300_000),
        classifier_sets=300,
        classifiers=(5, 7, 10, 15, 20, 30, 50),
        realizations=30,
        bound_sets=450,
        missing_sets=200,
        copying_sets=150,
        jobs=jobs,
    )


def quick(jobs: int, folder: Path | None = None) -> Settings:
    """Return a short run, never over the full one's tables."""
    folder = ROOT / "paper" / "quick" if folder is None else folder
    return Settings(
        folder=folder,
        page=folder / "paper.md",
        sets=40,
        sizes=(1000, 10_000, 100_000),
        classifier_sets=40,
        classifiers=(5, 10, 20),
        realizations=3,
        bound_sets=10,
        missing_sets=6,
        copying_sets=4,
        jobs=jobs,
    )
