"""JNK section 6.2 and its appendix: consensus and rates of ten classifiers on real data."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

import labelfree as lf
from labelfree._consensus import Rule, likelihood_rule, spectral_rule, winners
from labelfree._latent_class import Model
from labelfree._products import Block
from labelfree._rates import clipped, logit, smallest_rate
from paper import ensembles
from paper.data import SETS, UnexpectedData, file_of, load
from paper.ensembles import Votes
from paper.settings import Settings
from paper.spectral import Found, Spectral, of_confusion
from paper.work import run, write, write_part

METHODS = (
    "majority",
    "SML",
    "i-SML tensor",
    "i-SML likelihood",
    "MAP",
    "Dawid–Skene",
    "default",
    "oracle ML",
)
# The one that the source's figure of four calls by that name; and what is set against it.
ISML, SML = "i-SML likelihood", "SML"


def real(settings: Settings, folder: Path | None, ways: list[str], names: list[str]) -> None:
    """Run every set by every way: a table of all runs for each way."""
    for way in ways:
        jobs = [
            (name, way, realization, folder)
            for name in names
            for realization in range(_realizations(name, way, folder, settings))
        ]
        rows = [row for part in run(realization_of, jobs, settings.jobs) for row in part]
        if rows:
            write_part(settings.results / f"real_runs_{way}.csv", rows, "set", list(SETS))


def _realizations(name: str, way: str, folder: Path | None, settings: Settings) -> int:
    if way == "ready":
        return min(len(ensembles.ready(folder, name)), settings.realizations)
    here = file_of(name, folder) is not None or _fetched(name)
    return settings.realizations if here else 0


def _fetched(name: str) -> bool:
    """Tell whether OpenML gives the set; scikit-learn keeps it for the processes to come."""
    try:
        load(name, None)
    except (OSError, UnexpectedData) as error:  # no network, or it refuses, or other data
        why = error if isinstance(error, UnexpectedData) else f"it cannot be reached: {error}"
        print(
            f"{SETS[name].title} is in no folder, and not to be had from OpenML ({why}); skipped. "
            "Give the data by --data FOLDER."
        )
        return False
    return True


def realization_of(
    name: str, way: str, realization: int, folder: Path | None
) -> list[dict[str, Any]]:
    """Return one row a method: balanced accuracies of its labels, errors of its rates."""
    warnings.simplefilter("ignore", lf.LabelfreeWarning)  # an item without a vote
    drawn = votes_of(name, way, realization, folder)
    counted = lf.tally(drawn.votes, missing=0, classes=(-1, 1))
    truth = empirical(drawn)
    rows = []
    for method, (found, labels, posterior) in answers(counted, drawn, truth).items():
        row: dict[str, Any] = {
            "set": name,
            "realization": realization,
            "method": method,
            "balanced_accuracy": np.mean([balanced_accuracy(each, drawn.truth) for each in labels]),
            "with_prior": None if posterior is None else balanced_accuracy(posterior, drawn.truth),
        }
        rows.append(row | errors_of_rates(found, truth))
    return rows


def votes_of(name: str, way: str, realization: int, folder: Path | None) -> Votes:
    if way == "ready":
        return ensembles.read(ensembles.ready(folder, name)[realization])
    attributes, truth = load(name, folder)
    train = ensembles.by_weka if way == "weka" else ensembles.by_sklearn
    return train(attributes, truth, realization)


def answers(counted: lf.Tally, drawn: Votes, truth: Found) -> dict[str, tuple]:
    """Return for each method its rates, its labels with no prior odds (as i-SML), and those with them.

    Ten classifiers often tie, and a tie of the majority is a coin: both its sides are given, and the mean
    of their accuracies counts. The other rules hardly ever tie.
    """

    def plain(**options: Any) -> lf.Estimate:
        return lf.estimate(counted, dependence="ignore", **options)

    def by(rule: Rule) -> list[np.ndarray]:
        return [labels_by(rule, drawn.votes)]

    tensor, likelihood, mode = (plain(method=name) for name in ("tensor", "likelihood", "map"))
    default = lf.estimate(counted)
    classic = lf.rivals.dawid_skene(counted)
    spectral = np.asarray(likelihood._vector)
    held = clipped(
        np.array([truth.specificity, truth.sensitivity]), smallest_rate(counted.sample_size)
    )
    oracle = Model.binary(truth.imbalance, held[1], held[0])
    return {
        "majority": (None, [majority(drawn.votes, side) for side in (-1, 1)], None),
        "SML": (None, by(spectral_rule(spectral)), None),
        "i-SML tensor": _of_estimate(tensor, drawn),
        "i-SML likelihood": _of_estimate(likelihood, drawn),
        "MAP": _of_estimate(mode, drawn),
        "Dawid–Skene": (
            of_confusion(classic.class_probabilities, classic.confusion),
            by(likelihood_rule(Model(classic.class_probabilities, classic.confusion))),
            classic.label(drawn.votes, missing=0),
        ),
        "default": _of_estimate(default, drawn),
        "oracle ML": (None, by(likelihood_rule(oracle)), None),
    }


def _of_estimate(estimate: lf.Estimate, drawn: Votes) -> tuple:
    return (
        Found(estimate.imbalance, estimate.sensitivity, estimate.specificity),
        [estimate.label(drawn.votes, rule="likelihood", missing=0)],
        estimate.label(drawn.votes, missing=0),
    )


def majority(votes: np.ndarray, tie: int) -> np.ndarray:
    """Labels of the majority, and `tie` where there is none."""
    total = votes.sum(axis=1, dtype=int)
    return np.where(total == 0, tie, np.sign(total))


def labels_by(rule: Rule, votes: np.ndarray) -> np.ndarray:
    codes = np.array([0, -1, 1], dtype=np.int8)[votes + 1]  # −1, none, +1
    return 2 * winners(rule.scores(Block(codes, np.ones(len(codes)), 2))) - 1


def empirical(drawn: Votes) -> Found:
    """Return the rates on the whole set with its labels, of the votes that were given."""
    rates = []
    for label in (1, -1):
        own = drawn.votes[drawn.truth == label]
        rates.append((own == label).sum(axis=0) / np.maximum((own != 0).sum(axis=0), 1))
    return Found(float(np.mean(drawn.truth)), *rates)


def balanced_accuracy(labels: np.ndarray, truth: np.ndarray) -> float:
    return float(np.mean([(labels[truth == label] == label).mean() for label in (-1, 1)]))


def errors_of_rates(found: Found | None, truth: Found) -> dict[str, float | None]:
    """Mean absolute errors over the classifiers, and of b."""
    if found is None:
        return dict.fromkeys(("sensitivity", "specificity", "balanced", "b", "found_b"))
    sensitivity = found.sensitivity - truth.sensitivity
    specificity = found.specificity - truth.specificity
    return {
        "sensitivity": np.mean(np.abs(sensitivity)),
        "specificity": np.mean(np.abs(specificity)),
        "balanced": np.mean(np.abs(sensitivity + specificity)) / 2,
        "b": abs(found.imbalance - truth.imbalance),
        "found_b": found.imbalance,
    }


# --- what real data do, beside the runs ---------------------------------------------------------


def ensembles_looked_at(settings: Settings, folder: Path | None) -> None:
    """For the ready votes: how good and how alike the classifiers are, and what a constant one does."""
    rows = []
    for name in SETS:
        for file in ensembles.ready(folder, name)[: settings.realizations]:
            drawn = ensembles.read(file)
            truth = empirical(drawn)
            balanced = (truth.sensitivity + truth.specificity) / 2
            rows.append(
                {
                    "set": name,
                    "realization": int(file.stem[-2:]),
                    "b": truth.imbalance,
                    "least": balanced.min(),
                    "mean": balanced.mean(),
                    "most": balanced.max(),
                    "shared": shared_errors(drawn),
                    "constant": int((drawn.votes.min(axis=0) == drawn.votes.max(axis=0)).sum()),
                    "unvoted": float((drawn.votes == 0).mean()),
                    **weights_of_best(drawn, truth),
                    "ties": float((drawn.votes.sum(axis=1, dtype=int) == 0).mean()),
                    **{
                        f"majority_{word}": balanced_accuracy(
                            majority(drawn.votes, tie), drawn.truth
                        )
                        for word, tie in (("positive", 1), ("negative", -1), ("wrong", 0))
                    },
                }
            )
    if rows:
        write(settings.results / "real_ensembles.csv", rows)


def weights_of_best(drawn: Votes, truth: Found) -> dict[str, float]:
    """Weight ln α of the best classifier over the greatest of the others': true rates, and i-SML's."""
    counted = lf.tally(drawn.votes, missing=0, classes=(-1, 1))
    smallest = smallest_rate(counted.sample_size)
    best = int(np.argmax(truth.sensitivity + truth.specificity))
    ratios = {}
    for word, found in (("true", truth), ("found", Spectral(counted).likelihood)):
        weight = sum(
            logit(clipped(rate, smallest)) for rate in (found.sensitivity, found.specificity)
        )
        ratios[f"best_weight_{word}"] = float(weight[best] / np.delete(weight, best).max())
    return ratios


def shared_errors(drawn: Votes) -> float:
    """Mean correlation of two classifiers' votes given the true class; zero if errors are independent."""
    found = []
    for label in (-1, 1):
        own = drawn.votes[drawn.truth == label].astype(float)
        own = own[:, own.std(axis=0) > 0]
        table = np.corrcoef(own.T)
        found.append(table[np.triu_indices(len(table), 1)].mean())
    return float(np.mean(found))


def weka_check(settings: Settings, folder: Path | None) -> None:
    """Train Weka on the same instances as a ready realization of MAGIC, and set both side by side."""
    files = ensembles.ready(folder, "magic")
    if not files or not ensembles.weka_is_here():
        print("Weka, Java or the ready votes are not here; the check of Weka is skipped")
        return
    file = files[0]
    kept = ensembles.read(file)
    attributes, truth = load("magic", folder)
    trained_on = list(np.load(file)["train"])
    own = ensembles.by_weka(attributes, truth, 0, trained_on)
    write(
        settings.results / "weka_check.csv",
        [
            {
                "classifier": name,
                "ready": np.mean(kept.votes[:, place] == kept.truth),
                "trained": np.mean(own.votes[:, place] == truth),
                "alike": np.mean(own.votes[:, place] == kept.votes[:, place]),
            }
            for place, name in enumerate(ensembles.WEKA)
        ],
    )
