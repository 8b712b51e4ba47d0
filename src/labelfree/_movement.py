"""How the consensus moves against the majority vote, and which items a person should look at first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelfree._consensus import Rule, each_item, majority_rule, probabilities, winners
from labelfree._labels import Label
from labelfree._products import Block, Blocks
from labelfree._tally import Tally
from labelfree._votes import Votes

Array = NDArray[np.float64]

MOST_LISTED = 10
BINS = 10  # of the histogram of certainty
EVEN = 1e-9


@dataclass(frozen=True)
class Movement:
    """The consensus against the majority vote.

    Attributes
    ----------
    items : float
        Items with at least one vote.
    unvoted : float
        Items without.
    moved : (K + 1, K) array
        Items by the majority's class and the consensus's; the last row holds those with a tie.
    histogram : (2, 10) array
        Items by the consensus's certainty, from 1/K to 1 in equal steps: where it agrees with the
        majority, and where it does not.
    uncertain, contested, overruled : list of dict
        The first items of each kind: the least certain; those on which the votes are split most
        evenly; those on which the consensus is surest against the majority. Keys: item, items (how
        many are alike), votes (one count a class), label, majority (None for a tie), certainty.
    by_pattern : bool
        Whether `item` is a vote pattern, a tuple of labels with None for a missing vote, in place
        of one item.
    """

    items: float
    unvoted: float
    moved: Array
    histogram: Array
    uncertain: list[dict[str, Any]]
    contested: list[dict[str, Any]]
    overruled: list[dict[str, Any]]
    by_pattern: bool

    @property
    def share_moved(self) -> float:
        """Share of the items with a majority on which the consensus says something else."""
        clear = self.moved[:-1]
        total = float(clear.sum())
        return 1.0 - float(np.trace(clear)) / total if total else 0.0


def movement_of_votes(votes: Votes, rule: Rule) -> Movement:
    """Compare on items; `rule` is for the columns of these votes."""
    found = each_item(votes, _work(rule, len(votes.classifiers), len(votes.classes)))
    names = votes.names_of_items()
    return _movement(
        found, np.ones(len(found)), lambda place: names[place], votes.label_array().tolist()
    )


def movement_of_tally(tally: Tally, rule: Rule) -> Movement:
    """Compare on patterns, where the items are not at hand."""
    classes = list(tally.classes)
    work = _work(rule, len(tally.classifiers), len(classes))
    found = np.concatenate(Blocks(tally).each(work))

    def pattern(place: int) -> tuple[Label, ...]:
        codes: Any = tally.codes(place, place + 1)
        row = codes[0] if isinstance(codes, np.ndarray) else codes.toarray()[0].astype(int) - 1
        return tuple(None if code < 0 else classes[code] for code in row)

    return _movement(found, tally.counts, pattern, classes, by_pattern=True)


def _work(rule: Rule, classifiers: int, classes: int) -> Callable[[Block], Array]:
    """Per pattern: the consensus's class and certainty, then the number of votes for each class."""
    ballots = majority_rule(classifiers, classes)

    def work(block: Block) -> Array:
        scores = rule.scores(block)
        best = winners(scores)
        certainty = probabilities(scores)[np.arange(len(best)), best]
        return np.column_stack([best, certainty, ballots.scores(block)])

    return work


def _movement(
    found: Array,
    counts: Array,
    name: Callable[[int], Any],
    classes: Sequence[Label],
    *,
    by_pattern: bool = False,
) -> Movement:
    k = len(classes)
    best, certainty, votes = found[:, 0].astype(np.intp), found[:, 1], found[:, 2:].round()
    cast = votes.sum(axis=1)
    voted = cast > 0
    ordered = np.sort(votes, axis=1)
    margin = ordered[:, -1] - ordered[:, -2]
    majority = np.where(margin > EVEN, votes.argmax(axis=1), k)
    weights = np.where(voted, counts, 0.0)
    flows = np.bincount(majority * k + best, weights, (k + 1) * k)
    moved = flows.astype(np.float64).reshape(k + 1, k)
    against = (majority < k) & (majority != best) & voted

    def listed(chosen: NDArray[np.bool_], *keys: Array) -> list[dict[str, Any]]:
        """Rank by the keys, the first one first; then the more frequent; then as they stand."""
        places = np.flatnonzero(chosen)
        order = np.lexsort([-counts[places], *(key[places].round(9) for key in reversed(keys))])
        return [
            {
                "item": name(place),
                "items": float(counts[place]),
                "votes": votes[place].astype(int).tolist(),
                "label": classes[best[place]],
                "majority": None if majority[place] == k else classes[majority[place]],
                "certainty": float(certainty[place]),
            }
            for place in places[order[:MOST_LISTED]].tolist()
        ]

    split = margin / np.maximum(cast, 1.0)
    return Movement(
        float(weights.sum()),
        float(counts[~voted].sum()),
        moved,
        _histogram(certainty, weights, against, k),
        listed(voted, certainty),
        listed(voted & (cast > 1), split, -cast),
        listed(against, -certainty),
        by_pattern,
    )


def _histogram(certainty: Array, weights: Array, against: NDArray[np.bool_], k: int) -> Array:
    place = np.floor((certainty - 1 / k) / (1 - 1 / k) * BINS + EVEN).astype(np.intp)
    place = np.clip(place, 0, BINS - 1)
    both = np.bincount(place + BINS * against, weights, 2 * BINS)
    return np.asarray(both.reshape(2, BINS))
