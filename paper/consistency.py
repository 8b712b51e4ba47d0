"""Theorems 1 and 2 in the exact limit: pattern probabilities in place of a sample.

Theorem 1: the restricted likelihood has its maximum at the true b. Theorem 2: a cyclic change of a
confusion matrix leaves the moments of every binary split as they were.
"""

from __future__ import annotations

from itertools import combinations, product

import numpy as np

import labelfree as lf
from labelfree._imbalance import RestrictedLikelihood
from paper.settings import Settings
from paper.spectral import Spectral, ensemble
from paper.work import write

CURVES = (-0.6, -0.3, 0.0, 0.3, 0.6)
ENSEMBLES = 20
SCANNED = np.linspace(-0.9, 0.9, 181)
CLASSES, CHANGE = 3, 0.08  # K and Δ of Theorem 2
THREE_CLASSES = (0.7, 0.6, 0.65, 0.75, 0.6)  # diagonals of five classifiers


def theorem_1(settings: Settings) -> None:
    """Ĝ of exact probabilities over b̃, and how far from b its maximum, and the tensor's answer, are."""
    curves, maxima = [], []
    for imbalance in CURVES:
        off = np.zeros((ENSEMBLES, 3))
        for each in range(ENSEMBLES):
            truth = ensemble(each)
            spectral = Spectral(lf.simulate.exact(*truth, (1 + imbalance) / 2))
            found = spectral.of(imbalance)
            off[each] = (
                abs(spectral.likelihood.imbalance - imbalance),
                abs(spectral.tensor.imbalance - imbalance),
                np.max(np.abs([found.sensitivity - truth[0], found.specificity - truth[1]])),
            )
            if each == 0:
                curve = RestrictedLikelihood(spectral.blocks, spectral.seen, spectral.vector)
                height = np.array([curve.value(b) for b in SCANNED])
                top = curve.value(imbalance)
                curves += [
                    {"b": imbalance, "assumed": assumed, "below_top": value - top}
                    for assumed, value in zip(SCANNED, height, strict=True)
                ]
        # Rounded up to a power of ten: the last digits are rounding, and no figure.
        maxima.append(
            {"b": imbalance, "ensembles": ENSEMBLES}
            | dict(
                zip(("likelihood", "tensor", "rates"), map(at_most, off.max(axis=0)), strict=True)
            )
        )
    write(settings.results / "theorem_1_curves.csv", curves)
    write(settings.results / "theorem_1.csv", maxima)


def at_most(value: float) -> str:
    """Give the power of ten that the value does not pass."""
    return f"1e{int(np.ceil(np.log10(max(value, 1e-16)))):+03d}"


def theorem_2(settings: Settings) -> None:
    """Largest change of what the binary splits see, and of what the whole votes say.

    Once with the other classifiers' errors spread evenly over the wrong classes, so that votes "in the
    split, or not" are independent given the split; once unevenly, where they are not.
    """
    rows = []
    for errors, share in (("even", 0.5), ("uneven", 0.8)):
        confusion = np.array([of_diagonal(diagonal, share) for diagonal in THREE_CLASSES])
        changed = confusion.copy()
        changed[0] += cyclic(CHANGE)
        before, after = joint(confusion), joint(changed)
        splits = [
            set(split) for size in range(1, CLASSES) for split in combinations(range(CLASSES), size)
        ]
        moved = [np.max(np.abs(of_split(before, s) - of_split(after, s))) for s in splits]
        off = one_against_rest(before, confusion)
        rows.append(
            {
                "errors": errors,
                "classifiers": len(confusion),
                "splits": len(splits),
                "change": CHANGE,
                "moments_moved": figure(max(moved)),
                "patterns_moved": figure(0.5 * np.abs(before - after).sum()),
                "one_vs_rest_class": figure(off[0]),
                "one_vs_rest_diagonal": figure(off[1]),
                "whole_likelihood": figure(
                    max(recovered(before, confusion), recovered(after, changed))
                ),
            }
        )
    write(settings.results / "theorem_2.csv", rows)


def figure(value: float) -> str:
    """Give a figure to three digits, or what it does not pass where it is rounding."""
    return f"{value:.3g}" if value > 1e-6 else f"below {at_most(value)}"


def of_diagonal(diagonal: float, share: float) -> np.ndarray:
    """Confusion [true, voted]; `share` of the errors goes to the next class, the others to the one after."""
    table = np.zeros((CLASSES, CLASSES))
    for true in range(CLASSES):
        table[true, true] = diagonal
        table[true, (true + 1) % CLASSES] = share * (1 - diagonal)
        table[true, (true + 2) % CLASSES] = (1 - share) * (1 - diagonal)
    return table


def one_against_rest(chances: np.ndarray, confusion: np.ndarray) -> tuple[float, float]:
    """Largest errors of class probabilities and of diagonals by JNK section 5, in the exact limit."""
    votes, off = codes(len(confusion)), []
    for label in range(CLASSES):
        counted = lf.Tally.from_codes((votes == label).astype(np.int8), chances)
        found = Spectral(counted).tensor
        off.append(
            (
                abs((1 + found.imbalance) / 2 - 1 / CLASSES),
                np.max(np.abs(found.sensitivity - confusion[:, label, label])),
            )
        )
    return tuple(np.max(off, axis=0).tolist())


def cyclic(change: float) -> np.ndarray:
    """Return Δ around the three classes, as [true, voted]: rows and columns sum to zero."""
    table = np.zeros((CLASSES, CLASSES))
    for true in range(CLASSES):
        table[true, (true + 1) % CLASSES] = -change
        table[true, (true + 2) % CLASSES] = change
    return table


def codes(classifiers: int) -> np.ndarray:
    return np.array(list(product(range(CLASSES), repeat=classifiers)), dtype=np.int8)


def joint(confusion: np.ndarray) -> np.ndarray:
    """Probability of every pattern; classes are equally likely."""
    votes = codes(len(confusion))
    chances = [
        np.prod([table[true, votes[:, i]] for i, table in enumerate(confusion)], axis=0)
        for true in range(CLASSES)
    ]
    return np.mean(chances, axis=0)


def of_split(chances: np.ndarray, split: set[int]) -> np.ndarray:
    """Means and covariances of the ±1 classifiers "in the split, or not" (JNK section 5)."""
    classifiers = round(np.log(len(chances)) / np.log(CLASSES))
    votes = np.where(np.isin(codes(classifiers), list(split)), 1.0, -1.0)
    mean = chances @ votes
    covariance = (votes * chances[:, None]).T @ votes - np.outer(mean, mean)
    return np.concatenate([mean, covariance.ravel()])


def recovered(chances: np.ndarray, confusion: np.ndarray) -> float:
    """Largest error of all confusion entries by maximum likelihood on the whole votes."""
    counted = lf.Tally.from_codes(codes(len(confusion)), chances, classes=tuple(range(CLASSES)))
    found = lf.rivals.dawid_skene(counted, rounds=20_000)
    return float(np.max(np.abs(found.confusion - confusion)))
