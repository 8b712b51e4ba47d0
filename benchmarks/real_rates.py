"""How far the estimates are from the truth on real votes, family by family.

Prints mean absolute errors of ψ, η, balanced accuracy and b. A family is one data set; several
realizations of one are averaged first. Settings were tried on the tuning families alone; the
held-out ones are reported apart. Only votes of two classes where nearly every classifier voted on
nearly every item are taken.

The set magic_weka, the votes of `magic` over thirty realizations side by side (m = 300), is no family
of its own and takes very long; name it to run it. Of the small families fifty gold items are a good
part of all, so their intervals cover too often: the last table leaves them out.

Usage: python benchmarks/real_rates.py [families …]
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

import labelfree as lf
from labelfree._difficulty import fit_trait, tempered, tempering_slope
from labelfree._gold import gold_estimate
from labelfree._imbalance import likelihood_imbalance, tensor_imbalance
from labelfree._latent_class import Model, Prior, fit
from labelfree._moments import moments
from labelfree._products import Blocks
from labelfree._rank_one import rank_one
from labelfree._rates import clipped, rates, smallest_rate

TUNING = ("magic", "judgebench", "bluebird")
SMALL = ("judgebench", "bluebird", "llmbar", "mrmc_franken")  # so few items that 50 are a good part
HELD_OUT = ("musk", "spambase", "mnist", "llmbar", "chexpert_radiologists", "mrmc_franken")
WEKA = ("magic", "musk", "spambase", "mnist")
REALIZATIONS = 3  # of each Weka family
DRAWS = 20  # of the gold labels, for each realization
GOLD = (20, 50)
LEVEL = 0.9


@dataclass(frozen=True)
class Votes:
    """Votes as codes −1 … 1, one row an item, and the true classes."""

    codes: np.ndarray
    truth: np.ndarray

    def figures(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Empirical ψ, η and b."""
        positive = self.truth == 1
        return (
            _share_positive(self.codes[positive]),
            1.0 - _share_positive(self.codes[~positive]),
            2.0 * positive.mean() - 1.0,
        )


def _share_positive(codes: np.ndarray) -> np.ndarray:
    return (codes == 1).sum(axis=0) / (codes >= 0).sum(axis=0)


def data_folder() -> Path:
    folder = Path(os.environ.get("LABELFREE_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not folder.is_dir():
        print(f"the real votes are not here ({folder}); set LABELFREE_DATA to their folder")
        sys.exit(0)
    return folder


def family(name: str, realizations: int = REALIZATIONS) -> Iterator[Votes]:
    folder = data_folder()
    if name in WEKA:
        for file in sorted((folder / "weka").glob(f"{name}_r*.npz"))[:realizations]:
            kept = np.load(file)
            codes = np.array([0, -1, 1], dtype=np.int8)[kept["votes"].T + 1]  # −1, none, +1
            yield Votes(codes, (kept["y"] > 0).astype(int))
        return
    yield _long(folder / "votes" / name)


def _long(folder: Path) -> Votes:
    votes = pl.read_parquet(folder / "votes.parquet")
    truth = pl.read_parquet(folder / "truth.parquet").sort("item")
    labels = truth["label"].unique().sort()
    wide = votes.pivot(on="worker", index="item", values="label", aggregate_function="first")
    wide = (
        truth.select("item").join(wide, on="item", how="left", maintain_order="left").drop("item")
    )
    table = wide.to_numpy()
    codes = np.full(table.shape, -1, dtype=np.int8)
    for code, label in enumerate(labels):
        codes[table == label] = code
    return Votes(codes, (truth["label"] == labels[1]).to_numpy().astype(int))


@dataclass(frozen=True)
class Independent:
    """The estimates under independence."""

    blocks: Blocks
    tensor: Model
    likelihood: Model
    posterior_mode: Model


def independent(codes: np.ndarray) -> Independent:
    blocks = Blocks(lf.Tally.from_codes(codes, np.ones(len(codes))))
    seen = moments(blocks)
    found = rank_one(seen)
    smallest = smallest_rate(blocks.tally.sample_size)

    def model(imbalance: float) -> Model:
        both = rates(seen.mean, found.vector, imbalance)
        return Model.binary(imbalance, *(clipped(rate, smallest) for rate in both))

    likelihood = model(likelihood_imbalance(blocks, seen, found.vector).value)
    mode = fit(blocks, likelihood, Prior.flat(codes.shape[1], 2, 1.0)).model
    return Independent(
        blocks, model(tensor_imbalance(blocks, seen, found.vector).value), likelihood, mode
    )


def errors(sensitivity, specificity, imbalance, truth) -> np.ndarray:
    psi, eta, b = truth
    return np.array(
        [
            np.nanmean(np.abs(sensitivity - psi)),
            np.nanmean(np.abs(specificity - eta)),
            np.nanmean(np.abs(sensitivity + specificity - psi - eta)) / 2,
            abs(imbalance - b),
        ]
    )


def of_model(model: Model, truth) -> np.ndarray:
    return errors(
        model.confusion[:, 1, 1],
        model.confusion[:, 0, 0],
        2.0 * model.class_probabilities[1] - 1.0,
        truth,
    )


def gold_alone(codes: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Rates of the labelled items, with half an item added to every cell."""

    def rate(code: int) -> np.ndarray:
        own = codes[labels == code]
        return ((own == code).sum(axis=0) + 0.5) / ((own >= 0).sum(axis=0) + 1.0)

    return rate(1), rate(0), 2.0 * (labels.sum() + 0.5) / (len(labels) + 1.0) - 1.0


def measured(votes: Votes, seed: int) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray], str]:
    """Errors by method; coverage of the gold intervals; a remark."""
    truth = votes.figures()
    known = (truth[2] + 1.0) / 2.0
    found = independent(votes.codes)
    start = time.perf_counter()
    trait = fit_trait(found.blocks, [found.likelihood, found.tensor])
    slope = tempering_slope(found.blocks, found.posterior_mode, trait.trait)
    spent = time.perf_counter() - start
    cool = tempered(found.blocks, found.posterior_mode, slope)
    informed = tempered(found.blocks, found.posterior_mode, slope, known)
    figures = {
        "tensor": of_model(found.tensor, truth),
        "restricted likelihood": of_model(found.likelihood, truth),
        "MAP": of_model(found.posterior_mode, truth),
        "tempered": of_model(cool.model, truth),
        "tempered, prevalence known": of_model(informed.model, truth),
    }
    covered = {}
    random = np.random.default_rng(seed)
    for size in GOLD:
        alone, calibrated, both, cover = [], [], [], []
        for _ in range(DRAWS):
            chosen = random.choice(len(votes.truth), size, replace=False)
            codes, labels = votes.codes[chosen], votes.truth[chosen]
            alone.append(errors(*gold_alone(codes, labels), truth))
            gold = gold_estimate(found.blocks, found.posterior_mode, slope, codes, labels)
            calibrated.append(of_model(gold.model, truth))
            aware = gold_estimate(
                found.blocks, found.posterior_mode, slope, codes, labels, float(known)
            )
            both.append(of_model(aware.model, truth))
            cover.append(coverage(gold, truth))
        figures[f"{size} gold alone"] = np.mean(alone, axis=0)
        figures[f"{size} gold, calibrated"] = np.mean(calibrated, axis=0)
        figures[f"{size} gold, prevalence known"] = np.mean(both, axis=0)
        covered[f"{size} gold"] = np.mean(cover, axis=0)
    b = 2.0 * found.posterior_mode.class_probabilities[1] - 1.0
    remark = (
        f"m={votes.codes.shape[1]} n={len(votes.codes)} b={truth[2]:.2f} (MAP {b:.2f}) τ={slope:.3f} "
        f"s={trait.trait.spread:.2f} trait in {spent:.1f} s{'' if trait.converged else ' NOT CONVERGED'}"
    )
    return figures, covered, remark


def coverage(gold, truth) -> np.ndarray:
    """Shares of ψ, η, balanced accuracy and prevalence that the gold intervals cover."""
    psi, eta, b = truth
    targets = {
        "sensitivity": psi,
        "specificity": eta,
        "balanced_accuracy": (psi + eta) / 2,
        "prevalence": np.array([(1 + b) / 2]),
    }
    shares = []
    for what, target in targets.items():
        low, high = gold.interval(what, LEVEL).T
        shares.append(np.mean((low <= target) & (target <= high)))
    return np.array(shares)


def table(title: str, rows: dict[str, list[np.ndarray]]) -> None:
    print(f"\n{title:<34}{'ψ':>8}{'η':>8}{'bal.acc':>9}{'b':>8}")
    for name, parts in rows.items():
        psi, eta, balanced, b = np.mean(parts, axis=0)
        print(f"{name:<34}{psi:8.3f}{eta:8.3f}{balanced:9.3f}{b:8.3f}")


def main() -> None:
    asked = sys.argv[1:]
    everything: dict[str, tuple[dict, dict]] = {}
    for name in asked or TUNING + HELD_OUT:
        figures, covers = [], []
        for seed, votes in enumerate(family(name)):
            figure, cover, remark = measured(votes, seed)
            print(f"{name:<22}{remark}", flush=True)
            figures.append(figure)
            covers.append(cover)
        everything[name] = tuple(
            {key: np.mean([part[key] for part in parts], axis=0) for key in parts[0]}
            for parts in (figures, covers)
        )
        table(name, {key: [value] for key, value in everything[name][0].items()})
        table(
            f"  cover at {LEVEL:.0%}", {key: [value] for key, value in everything[name][1].items()}
        )
    for title, names in (
        ("TUNING", TUNING),
        ("HELD OUT", HELD_OUT),
        ("ALL", TUNING + HELD_OUT),
        ("LARGE", tuple(name for name in TUNING + HELD_OUT if name not in SMALL)),
    ):
        kept = [everything[name] for name in names if name in everything]
        if kept:
            for place, what in enumerate(("mean absolute error", f"cover at {LEVEL:.0%}")):
                table(
                    f"{title}: {what}",
                    {key: [part[place][key] for part in kept] for key in kept[0][place]},
                )


if __name__ == "__main__":
    main()
