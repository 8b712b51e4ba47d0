"""Which few of many classifiers to keep: the panel whose consensus is expected to be best.

The consensus of a panel is graded as one more classifier would be. An item counts for every class
with the probability that all its votes give that class, whatever model these come from, so that
shared errors count as far as they show in the votes. A vote that a member of the panel did not give
is drawn from its confusion matrix.

The panel's rule is the estimate's own, over the votes of its members, without the prior odds: of all
rules this one has the highest balanced accuracy (JNK, the ML label).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelfree._consensus import Rule, Together, probabilities, winners
from labelfree._latent_class import Model
from labelfree._products import Block
from labelfree._tally import Tally

Array = NDArray[np.float64]
Codes = NDArray[np.int8]

FORMAT, VERSION = "labelfree.panels", 1
CELLS = 1 << 21  # votes on which panels are compared, times the classes
ROWS = 1 << 13  # rows over which items with missing votes are spread
LEAST_ROWS = 1 << 10
MOST_CONSIDERED = 200  # classifiers, by balanced accuracy; more are not tried
MOST_TRIED = 3000  # panels; of no more than these, every one is tried
SEED = 20150509


@dataclass(frozen=True)
class Panel:
    """A few classifiers, and how good their consensus is expected to be.

    Attributes
    ----------
    classifiers : tuple of str
        In the order of the estimate.
    balanced_accuracy : float
        Expected of their consensus: the mean over the classes of Pr(labelled so given class), where
        every member votes on every item.
    of_all : float
        The same for all classifiers together.
    of_best : float
        The same for the best single classifier.
    """

    classifiers: tuple[str, ...]
    balanced_accuracy: float
    of_all: float
    of_best: float

    def __str__(self) -> str:
        return (
            f"{', '.join(self.classifiers)}: expected balanced accuracy {self.balanced_accuracy:.3f} "
            f"(all together {self.of_all:.3f}, the best alone {self.of_best:.3f})"
        )


def panels_as_dict(panels: Sequence[Panel]) -> dict[str, Any]:
    """Write panels of the same classifiers as plain values: what ``best --json`` prints."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "panels": [
            {
                "size": len(panel.classifiers),
                "classifiers": list(panel.classifiers),
                "balanced_accuracy": panel.balanced_accuracy,
            }
            for panel in panels
        ],
        "of_all": panels[0].of_all,
        "of_best": panels[0].of_best,
    }


def to_compare_on(tally: Tally) -> Tally:
    """Keep as many patterns as panels are compared on: an even spread of them."""
    return tally.thinned(_most_patterns(tally))


def _most_patterns(tally: Tally) -> int:
    return max(CELLS // (len(tally.classifiers) * len(tally.classes)), LEAST_ROWS)


def best_panel(tally: Tally, rule: Rule, model: Model, size: int) -> Panel:
    """Choose the panel of a given size with the highest expected balanced accuracy.

    Parameters
    ----------
    tally : Tally
        Votes to compare panels on.
    rule : Rule
        Of the posterior, over the classifiers of the tally.
    model : Model
        Class probabilities and confusion.
    size : int
        1 … m.

    Returns
    -------
    Panel
        The best of all where there are at most 3,000 panels of that size; else one that no exchange
        of a single member improves. Of more than 200 classifiers, or than `size`, only so many of
        the best are considered.
    """
    trial = _Trial(tally, rule, model)
    considered = _considered(model, max(size, MOST_CONSIDERED))
    if comb(len(considered), size) <= MOST_TRIED:
        members = max(combinations(considered, size), key=trial.worth)
    else:
        members = _exchanged(trial, _grown(trial, size, considered), considered)
    return Panel(
        tuple(tally.classifiers[place] for place in sorted(members)),
        trial.worth(members)[0],
        trial.worth(range(len(tally.classifiers)))[0],
        max(trial.worth([place])[0] for place in considered),
    )


def _considered(model: Model, most: int) -> list[int]:
    """Places of the classifiers with the highest balanced accuracy, in their own order."""
    accuracy = np.trace(model.confusion, axis1=1, axis2=2)
    best = np.argsort(-accuracy, kind="stable")[:most]
    return sorted(best.tolist())


def _grown(trial: _Trial, size: int, considered: Sequence[int]) -> tuple[int, ...]:
    """Add the member that helps most, one after another.

    A second classifier may change no label, so it is the mean probability of the true class that is
    raised here, which every vote that tells anything moves.
    """
    members: tuple[int, ...] = ()
    while len(members) < size:
        others = (place for place in considered if place not in members)
        members = max(
            ((*members, place) for place in others), key=lambda panel: trial.worth(panel)[1]
        )
    return members


def _exchanged(
    trial: _Trial, members: tuple[int, ...], considered: Sequence[int]
) -> tuple[int, ...]:
    """Exchange one member for another until no exchange helps."""
    while True:
        for leaving in members:
            stay = tuple(place for place in members if place != leaving)
            others = (place for place in considered if place not in members)
            found = max(((*stay, place) for place in others), key=trial.worth)
            if trial.worth(found) > trial.worth(members):
                members = found
                break
        else:
            return members


class _Trial:
    """Votes on which panels are tried: complete, once for every true class, with their weights."""

    def __init__(self, tally: Tally, rule: Rule, model: Model) -> None:
        self.rule = rule
        self.classes = len(model.class_probabilities)
        codes, counts = _rows(to_compare_on(tally))
        shares = probabilities(rule.scores(Block(codes, counts, self.classes)))
        weights = (counts[:, None] * shares).T  # (K, P)
        self.weights = weights / weights.sum(axis=1, keepdims=True) / self.classes
        draw = np.random.default_rng(SEED)
        self.codes = [_completed(codes, model.confusion[:, y], draw) for y in range(self.classes)]
        # Each class stands for as much as any other, so the prior odds go.
        self._intercept = rule.intercept - model.log_prior()
        self._together = {member: group for group in rule.together for member in group.members}
        self._seen: dict[tuple[int, ...], tuple[float, float]] = {}

    def worth(self, members: Iterable[int]) -> tuple[float, float]:
        """Expected balanced accuracy, then the mean probability that the panel gives the true class."""
        key = tuple(sorted(members))
        if key not in self._seen:
            right = sure = 0.0
            for true, weights in enumerate(self.weights):
                scores = self._scores(key, self.codes[true])
                right += float(weights @ (winners(scores) == true))
                sure += float(weights @ probabilities(scores)[:, true])
            self._seen[key] = (round(right, 12), round(sure, 12))
        return self._seen[key]

    def _scores(self, members: Sequence[int], codes: Codes) -> Array:
        total = np.tile(self._intercept, (len(codes), 1))
        for member in members:
            if member not in self._together:
                total += self.rule.weights[member][codes[:, member]]
        for group in {id(each): each for each in self._together.values()}.values():
            inside = tuple(each if each in members else -1 for each in group.members)
            if any(each >= 0 for each in inside):
                total += group.table[Together(inside, group.table).places(codes)]
        return total


def _rows(tally: Tally) -> tuple[Codes, Array]:
    """Patterns and their counts; those with missing votes stand in several rows each.

    The several rows of one pattern differ in the votes that are drawn for them.
    """
    codes, counts = tally.codes(), tally.counts
    if not isinstance(codes, np.ndarray):
        codes = codes.toarray().astype(np.int8) - np.int8(1)
    rows = np.ones(len(codes), dtype=np.intp)
    torn = (codes < 0).any(axis=1)
    most = min(ROWS, _most_patterns(tally))
    rows[torn] = np.ceil(counts[torn] / counts.sum() * most).astype(np.intp)
    return np.repeat(codes, rows, axis=0), np.repeat(counts / rows, rows)


def _completed(codes: Codes, rates: Array, draw: np.random.Generator) -> Codes:
    """Draw the votes that are missing, given the true class: `rates` is (m, K), of each label."""
    if (codes >= 0).all():
        return codes
    ends = np.cumsum(rates, axis=1)[:, :-1]
    chance = draw.random(codes.shape)
    drawn = (chance[:, :, None] > ends[None]).sum(axis=2).astype(np.int8)
    return np.where(codes < 0, drawn, codes)
