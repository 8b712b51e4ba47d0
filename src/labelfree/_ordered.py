"""Classes that stand in order: splits at thresholds, and rows that rise with the true class.

A classifier's votes tend upwards as the true class rises: Pr(vote > k given class y) never falls as
y rises. A fit under that constraint cannot take a classifier's few chance votes for the sign that
two classes changed places.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from labelfree._latent_class import FLOOR, Fit, Model, Prior, class_shares, expect, maximised
from labelfree._one_vs_rest import OneVsRest, recoded, split, split_model
from labelfree._products import Block, Blocks

Array = NDArray[np.float64]

MOST_ROUNDS = 1000
STANDSTILL = 1e-7  # largest change of a probability in a round of EM that ends the search


def monotone(votes: Array, free: NDArray[np.bool_] | None = None) -> Array:
    """Expected votes (m, K, K) as [classifier, true, voted] -> rates, the upper ones rising with the true class.

    For each threshold k, the shares of votes above k are fitted by isotonic least squares, each
    true class with the weight of its votes: the greatest over a ≤ y of the least over b ≥ y of the
    mean over a … b. Weights are the same for all k, so that the shares still fall as k rises.

    Parameters
    ----------
    votes : (m, K, K) array
        Rows without votes are filled in by their neighbours; a classifier without any gets even rows.
    free : (m, K) array of bool, optional
        Rows that may move; the others are given as they are, and constrain nothing.

    Returns
    -------
    (m, K, K) array
    """
    classes = votes.shape[2]
    weight = votes.sum(axis=2) if free is None else votes.sum(axis=2) * free
    above = votes[:, :, ::-1].cumsum(axis=2)[:, :, -2::-1]
    above = above if free is None else above * free[:, :, None]
    total = np.pad(weight.cumsum(axis=1), ((0, 0), (1, 0)))
    sums = np.pad(above.cumsum(axis=1), ((0, 0), (1, 0), (0, 0)))
    fitted = np.full(above.shape, -np.inf)
    for true in range(classes):
        for first in range(true + 1):
            least = np.full(above[:, 0].shape, np.inf)
            for last in range(true, classes):
                mass = (total[:, last + 1] - total[:, first])[:, None]
                mean = np.divide(
                    sums[:, last + 1] - sums[:, first],
                    mass,
                    out=np.full_like(least, np.nan),
                    where=mass > 0,
                )
                least = np.fmin(least, mean)
            fitted[:, true] = np.fmax(fitted[:, true], np.where(np.isinf(least), np.nan, least))
    even = np.arange(classes - 1, 0, -1) / classes
    fitted = np.where(np.isfinite(fitted), fitted, even)
    ends = ((0, 0), (0, 0), (1, 1))
    ladder = np.pad(fitted, ends)
    ladder[:, :, 0] = 1.0
    rates = np.maximum(-np.diff(ladder, axis=2), 0.0)
    rates = np.asarray(rates / rates.sum(axis=2, keepdims=True))
    if free is not None:
        own = votes / np.maximum(votes.sum(axis=2, keepdims=True), FLOOR)
        rates = np.where(free[:, :, None], rates, own)
    return rates


def threshold_splits(
    blocks: Blocks, start: Model, method: str, *, rough: bool = False
) -> tuple[OneVsRest, list[Model]]:
    """Class probabilities and diagonals by splits of the classes above each threshold from the rest.

    Parameters
    ----------
    blocks : Blocks
    start : Model
        Stands for thresholds on which the votes tell nothing.
    method : {"likelihood", "tensor"}
    rough : bool
        Good enough to start a search from.

    Returns
    -------
    found : OneVsRest
        The diagonal is that of the votes, every item's class spread as the thresholds say; `missed`
        is by how much the shares of items above the thresholds fail to fall, all in all.
    models : list of Model
        Of two classes, one a threshold.
    """
    classes = len(blocks.tally.classes)
    splits = []
    for k in range(1, classes):
        upper = range(k, classes)
        own = Blocks(recoded(blocks.tally, upper))
        splits.append(split(own, split_model(start, upper), method, rough=rough))
    shares = np.array([1.0, *(each.share for each in splits), 0.0])
    steps = -np.diff(shares)
    missed = float(np.maximum(-steps, 0.0).sum())
    models = [each.model() for each in splits]
    votes = threshold_votes(blocks, models)
    diagonal = np.einsum("ikk->ik", monotone(votes + start.confusion))
    steps = np.maximum(steps, 0.0)
    converged = all(each.converged for each in splits)
    return OneVsRest(steps / steps.sum(), diagonal, missed, converged), models


def threshold_votes(blocks: Blocks, models: list[Model]) -> Array:
    """Expected votes (m, K, K), every item's class spread as its splits at the thresholds say together.

    What the thresholds say of an item, Pr(class > k), is made to fall as k rises by the least
    change in squares; its steps are the shares of the classes.
    """
    classes = len(models) + 1
    tables = []
    for k, model in enumerate(models, start=1):
        side = (np.arange(classes) >= k).astype(np.intp)
        tables.append(model.tables()[:, side])

    def work(block: Block) -> tuple[Array]:
        upper = [
            class_shares(block, table, model.log_prior())[1][:, 1]
            for table, model in zip(tables, models, strict=True)
        ]
        ladder = np.pad(falling(np.stack(upper, axis=1)), ((0, 0), (1, 1)))
        ladder[:, 0] = 1.0
        return (block.gather(-np.diff(ladder, axis=1) * block.counts[:, None]),)

    (votes,) = blocks.total(work)
    return np.asarray(np.maximum(votes.transpose(0, 2, 1), 0.0))


def falling(rows: Array) -> Array:
    """Nearest rows, in squares, that never rise from left to right."""
    places = rows.shape[1]
    sums = np.pad(rows.cumsum(axis=1), ((0, 0), (1, 0)))
    fitted = np.empty_like(rows)
    for place in range(places):
        greatest = None
        for last in range(place, places):
            means = np.stack(
                [(sums[:, last + 1] - sums[:, a]) / (last + 1 - a) for a in range(place + 1)]
            )
            least = means.min(axis=0)
            greatest = least if greatest is None else np.maximum(greatest, least)
        fitted[:, place] = greatest
    return fitted


def fit_monotone(blocks: Blocks, start: Model, prior: Prior) -> Fit:
    """Climb by EM to the posterior mode among models whose rows rise with the true class.

    Parameters
    ----------
    blocks : Blocks
    start : Model
    prior : Prior

    Returns
    -------
    Fit
    """
    free = None if prior.fixed_rates is None else ~prior.fixed_rates
    model, expected = start, expect(blocks, start)
    for rounds in range(1, MOST_ROUNDS + 1):
        plain = maximised(expected, model, prior)
        votes = np.maximum(expected.votes, 0.0) + prior.confusion
        if free is not None:
            votes = np.where(free[:, :, None], votes, plain.confusion)
        new = Model(plain.class_probabilities, monotone(votes, free))
        change = max(
            float(np.max(np.abs(new.class_probabilities - model.class_probabilities))),
            float(np.max(np.abs(new.confusion - model.confusion), initial=0.0)),
        )
        model, expected = new, expect(blocks, new)
        if change <= STANDSTILL:
            return Fit(model, expected.log_likelihood, converged=True, rounds=rounds)
    return Fit(model, expected.log_likelihood, converged=False, rounds=MOST_ROUNDS)
