"""Where the search for K classes starts: the votes' own shares, or what two classes at a time said."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from labelfree._latent_class import Model, Prior, expect
from labelfree._products import Block, Blocks

Array = NDArray[np.float64]
Row = tuple[int, int]  # a row of the confusion matrices: (place of the classifier, true class)

BESIDE = 10.0  # votes that the majority's rate counts for beside a classifier's own
LEAST = 1e-6  # of a rate or a class to start from: EM never leaves zero


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


def start_of_diagonals(
    blocks: Blocks, class_probabilities: Array, diagonal: Array, majority: Model
) -> Model:
    """Confusion matrices with these diagonals; what is off them from the votes that the diagonals give.

    Every item's class is spread by the diagonals, wrong votes being even; the wrong votes counted
    so are the next matrices'. Few votes say little of a diagonal: the majority's stands beside it
    as if it came of `BESIDE` votes.

    Parameters
    ----------
    blocks : Blocks
    class_probabilities : (K,) array
    diagonal : (m, K) array
    majority : Model

    Returns
    -------
    Model
    """
    classes = len(class_probabilities)
    (given,) = blocks.total(lambda block: (block.gather(block.counts[:, None]),))
    votes = given.sum(axis=(1, 2))[:, None] * class_probabilities
    own = np.einsum("ikk->ik", majority.confusion)
    inside = np.clip((votes * diagonal + BESIDE * own) / (votes + BESIDE), LEAST, 1.0 - LEAST)
    off = ~np.eye(classes, dtype=bool)
    rough = np.where(off, ((1.0 - inside) / (classes - 1))[:, :, None], inside[:, :, None])
    shares = np.maximum(class_probabilities, LEAST)
    shares = shares / shares.sum()
    wrong = np.where(off, expect(blocks, Model(shares, rough)).votes.clip(0.0) + LEAST, 0.0)
    wrong *= (1.0 - inside)[:, :, None] / wrong.sum(axis=2, keepdims=True)
    return Model(shares, np.where(off, wrong, inside[:, :, None]))


def with_known(
    prior: Prior,
    class_probabilities: Array | None,
    fixed: Mapping[Row, Array],
    believed: Mapping[Row, Array],
) -> Prior:
    """Lay what is known of classes and single rows over a prior."""
    confusion = prior.confusion.copy()
    known = np.zeros(confusion.shape[:2], dtype=bool)
    if prior.fixed_rates is not None:
        known |= prior.fixed_rates
    for place, row in believed.items():
        confusion[place] = row
    for place in fixed:
        known[place] = True
    return Prior(
        prior.classes,
        confusion,
        prior.fixed_classes or class_probabilities is not None,
        known if known.any() else None,
    )


def holding(model: Model, class_probabilities: Array | None, fixed: Mapping[Row, Array]) -> Model:
    """Put what is known in its place."""
    confusion = model.confusion.copy()
    for place, row in fixed.items():
        confusion[place] = row
    classes = model.class_probabilities if class_probabilities is None else class_probabilities
    return Model(np.asarray(classes, dtype=np.float64), confusion)
