"""Information -> intervals of K classes: of every cell of every confusion matrix, and of what follows from them.

Every number is a smooth function of the logits of the latent-class room, so its variance follows
from theirs by the delta method. All logits together have a covariance as long as there are not too
many; of thousands of classifiers each has one of its own, as if the other rates were known: with
so many, no single one of them matters much to another.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from labelfree._intervals import SMALLEST_PIVOT, Spread
from labelfree._latent_class import FLOOR, Model, Prior, class_shares, expect
from labelfree._products import Block, Blocks
from labelfree._rates import logit

Array = NDArray[np.float64]

EDGE = 1e-9  # how far from 0 and 1 a probability stays, for its logit to be finite


def own_blocks(covariance: Array, model: Model) -> tuple[Array, Array, Array]:
    """Cut the covariance of all logits into that of the classes, of each classifier, and across the two.

    Parameters
    ----------
    covariance : (D, D) array
        In the order of :func:`labelfree._latent_class.information`.
    model : Model

    Returns
    -------
    (K−1, K−1) array
    (m, K (K−1), K (K−1)) array
    (m, K−1, K (K−1)) array
    """
    classes = len(model.class_probabilities)
    first, width = classes - 1, classes * (classes - 1)
    places = first + width * np.arange(len(model.confusion))[:, None] + np.arange(width)
    own = covariance[places[:, :, None], places[:, None, :]]
    across = covariance[np.arange(first)[None, :, None], places[:, None, :]]
    return covariance[:first, :first], own, across


def blockwise(
    blocks: Blocks, model: Model, prior: Prior, told_twice: Array | None = None
) -> tuple[Array, Array, Array]:
    """Compute the same where all logits together are too many: each classifier's by itself.

    The information on one classifier's logits is that of the complete data less what the hidden
    class takes away (Louis 1982). For an item on which it voted v, with class shares q, the score of
    row y is q_y (e_v − θ_y), so what is taken away is Σ (δ_yz q_y − q_y q_z) (e_v − θ_y) (e_v − θ_z)ᵀ,
    which needs one gather of the products of the shares.

    Parameters
    ----------
    blocks : Blocks
    model : Model
    prior : Prior
    told_twice : (m, K (K−1), K (K−1)) array, optional
        Information in the prior that rests on the same votes, and is left out.

    Returns
    -------
    As for :func:`own_blocks`; nothing is known across.
    """
    expected = expect(blocks, model)
    m, classes, _ = model.confusion.shape
    tables, log_prior = model.tables(), model.log_prior()

    def work(block: Block) -> tuple[Array, Array]:
        _, shares = class_shares(block, tables, log_prior)
        doubt = -shares[:, :, None] * shares[:, None, :]
        doubt[:, np.arange(classes), np.arange(classes)] += shares
        doubt = (doubt * block.counts[:, None, None]).reshape(len(shares), -1)
        return doubt.sum(axis=0), block.gather(doubt)

    of_classes, of_votes = blocks.total(work)
    taken = of_votes.reshape(m, classes, classes, classes)  # [classifier, vote, row, row]
    above = model.confusion[:, :, 1:]
    moves = np.eye(classes)[None, :, None, 1:] - above[:, None]  # [classifier, vote, row, label]
    hidden = np.einsum("ivyz,ivya,ivzb->iyazb", taken, moves, moves, optimize=True)
    totals = expected.votes.sum(axis=2) + prior.confusion.sum(axis=2)
    complete = np.zeros_like(hidden)
    each = (
        np.einsum("iya,ab->iyab", above, np.eye(classes - 1))
        - above[..., None] * above[..., None, :]
    )
    rows = np.arange(classes)
    complete[:, rows, :, rows] = (totals[:, :, None, None] * each).transpose(1, 0, 2, 3)
    width = classes * (classes - 1)
    free = np.ones((m, classes, classes - 1), dtype=bool)
    if prior.fixed_rates is not None:
        free &= ~prior.fixed_rates[:, :, None]
    told = (complete - hidden).reshape(m, width, width)
    if told_twice is not None:
        told -= told_twice
    own = _inverses(told, free.reshape(m, width))
    shares = model.class_probabilities[1:]
    counted = (expected.classes + prior.classes).sum()
    whole = counted * (np.diag(shares) - np.outer(shares, shares))
    whole -= of_classes.reshape(classes, classes)[1:, 1:]
    known = np.full((1, classes - 1), not prior.fixed_classes)
    return _inverses(whole[None], known)[0], own, np.zeros((m, classes - 1, width))


def _inverses(matrices: Array, free: NDArray[np.bool_]) -> Array:
    """Invert a stack of informations; what is fixed gets zero, and directions without any, no more than the least."""
    both = free[:, :, None] & free[:, None, :]
    matrices = np.where(both, matrices, 0.0)
    scale = np.sqrt(np.maximum(np.diagonal(matrices, axis1=1, axis2=2), FLOOR))
    values, vectors = np.linalg.eigh(matrices / (scale[:, :, None] * scale[:, None, :]))
    kept = np.maximum(values, SMALLEST_PIVOT)
    turned = (vectors / kept[:, None, :]) @ vectors.transpose(0, 2, 1)
    return np.where(both, turned / (scale[:, :, None] * scale[:, None, :]), 0.0)


def spread_of_classes(model: Model, of_classes: Array, own: Array, across: Array) -> Spread:
    """Standard errors, on the logit scale, of K classes.

    Parameters
    ----------
    model : Model
    of_classes, own, across : arrays
        Covariances of the logits, as :func:`own_blocks` returns them.

    Returns
    -------
    Spread
        Of "class_probabilities" (K,), "confusion" (m, K, K), "accuracy" and "balanced_accuracy" (m,).
    """
    p, confusion = model.class_probabilities, model.confusion
    m, classes, _ = confusion.shape
    first, width = classes - 1, classes * (classes - 1)
    by_class = softmax_slopes(p)  # (K, K−1)
    by_cell = softmax_slopes(confusion).reshape(m, classes, classes, first)
    rows = own.reshape(m, classes, first, classes, first)
    each_row = rows[:, np.arange(classes), :, np.arange(classes), :].transpose(1, 0, 2, 3)
    of_cells = np.einsum("iyva,iyab,iyvb->iyv", by_cell, each_row, by_cell, optimize=True)
    diagonal = np.arange(classes)
    right = confusion[:, diagonal, diagonal]  # (m, K)
    by_right = by_cell[:, diagonal, diagonal]  # (m, K, K−1)
    balanced_slopes = (by_right / classes).reshape(m, width)
    accuracy_slopes = (p[:, None] * by_right).reshape(m, width)
    share_slopes = right @ by_class  # (m, K−1)
    of_accuracy = (
        np.einsum("ia,iab,ib->i", accuracy_slopes, own, accuracy_slopes, optimize=True)
        + np.einsum("ia,ab,ib->i", share_slopes, of_classes, share_slopes, optimize=True)
        + 2 * np.einsum("ia,iab,ib->i", share_slopes, across, accuracy_slopes, optimize=True)
    )
    of_balanced = np.einsum("ia,iab,ib->i", balanced_slopes, own, balanced_slopes, optimize=True)
    found = {
        "class_probabilities": (p, np.einsum("ka,ab,kb->k", by_class, of_classes, by_class)),
        "confusion": (confusion, of_cells),
        "accuracy": (right @ p, of_accuracy),
        "balanced_accuracy": (right.mean(axis=1), of_balanced),
    }
    centre, error = {}, {}
    for name, (value, variance) in found.items():
        inside = np.clip(value, EDGE, 1.0 - EDGE)
        centre[name] = logit(inside)
        error[name] = np.sqrt(np.maximum(variance, 0.0)) / (inside * (1.0 - inside))
    return Spread(centre, error)


def softmax_slopes(probabilities: Array) -> Array:
    """Derivatives of probabilities (…, K) by their logits against the first one, (…, K, K−1)."""
    classes = probabilities.shape[-1]
    above = probabilities[..., 1:]
    return np.asarray(probabilities[..., :, None] * (np.eye(classes)[:, 1:] - above[..., None, :]))
