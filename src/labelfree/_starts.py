"""Where the search for K classes starts: every item's class spread as its votes are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from labelfree._latent_class import Model
from labelfree._products import Block, Blocks

Array = NDArray[np.float64]


def majority_counts(blocks: Blocks) -> tuple[Array, Array]:
    """Classes (K,) and votes (m, K, K) as [classifier, true, voted], every item spread as its votes are."""
    m, classes = len(blocks.tally.classifiers), len(blocks.tally.classes)
    one_each = np.broadcast_to(np.eye(classes), (m, classes, classes)).copy()

    def work(block: Block) -> tuple[Array, Array]:
        votes = block.score(one_each)
        given = votes.sum(axis=1, keepdims=True)
        even = np.full_like(votes, 1.0 / classes)
        shares = np.divide(votes, given, out=even, where=given > 0) * block.counts[:, None]
        return shares.sum(axis=0), block.gather(shares)

    of_classes, of_votes = blocks.total(work)
    return of_classes, of_votes.transpose(0, 2, 1)


def majority_start(blocks: Blocks) -> Model:
    """Class probabilities and rates of the votes themselves; even where there are none."""
    of_classes, of_votes = majority_counts(blocks)
    total = of_votes.sum(axis=2, keepdims=True)
    even = np.full_like(of_votes, 1.0 / len(of_classes))
    rates = np.divide(of_votes, total, out=even, where=total > 0)
    return Model(of_classes / of_classes.sum(), rates)
