"""How well votes determine the model with groups: its information, and what follows from it.

Fitting needs none of it; intervals do. The information is the observed one in the logits of the prevalence
and of all cells of all tables that are estimated, by what knowing the class would tell, less what
hiding it takes away (Louis 1982).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from labelfree._categories import Layout, compatible, thinned, votes_of_cells
from labelfree._group_model import GroupModel, State, class_log_odds, expect, pseudo_counts
from labelfree._latent_class import FLOOR, Prior
from labelfree._products import Blocks

Array = NDArray[np.float64]

CERTAIN = 1e-5  # an item whose other class shares less adds next to nothing to the information
EMPTY = 1e-9  # a cell of no more probability is taken to be impossible, not estimated
SMALLEST_PIVOT = 1e-10  # of the scaled information: below, some direction is not informed at all
INFORMING = 1 << 17  # items that the information is computed from where no pattern repeats
ROWS = 1 << 14  # patterns whose scores are laid out at once


def covariance_of_logits(
    blocks: Blocks, model: GroupModel, prior: Prior, prevalence: float | None = None
) -> Array | None:
    """Covariance of the logits of the prevalence and of every classifier's own rates.

    From the observed information in the prevalence and all tables (Louis 1982), by the delta
    method; where there are very many patterns, that of a draw of the items, scaled up. It is zero
    where something is known, and for exact frequencies.

    Parameters
    ----------
    blocks : Blocks
    model : GroupModel
        At its posterior mode.
    prior : Prior
    prevalence : float, optional
        Where it is known.

    Returns
    -------
    (1 + 2m, 1 + 2m) array, or None
        The prevalence, then for each classifier Pr(positive vote given negative) and Pr(positive
        vote given positive), as in the latent-class room. None where the information is singular.
    """
    return _covariance(blocks, model, prior, prevalence, _slopes)


def covariance_of_terms(
    blocks: Blocks, model: GroupModel, prior: Prior, prevalence: float | None = None
) -> Array | None:
    """Covariance of what the prior, single votes and the joint votes of groups add to the log-odds.

    Parameters
    ----------
    blocks, model, prior, prevalence
        As for :func:`covariance_of_logits`.

    Returns
    -------
    (D, D) array, or None
        The prior, each classifier's negative and positive vote (zero for members of groups), and
        each group's categories. None where the information is singular.
    """
    size = 1 + 2 * len(blocks.tally.classifiers)

    def slopes(layout: Layout, tables: Array, free: NDArray[np.bool_]) -> Array:
        # The logits first: what is known of them is known of the terms too.
        both = _slopes(layout, tables, free), _slopes_of_terms(layout, tables, free)
        return np.concatenate(both)

    covariance = _covariance(blocks, model, prior, prevalence, slopes)
    return None if covariance is None else covariance[size:, size:]


Slopes = Callable[[Layout, Array, NDArray[np.bool_]], Array]


def _covariance(
    blocks: Blocks, model: GroupModel, prior: Prior, prevalence: float | None, slopes_of: Slopes
) -> Array | None:
    """Covariance of what has these slopes by the free logits."""
    drawn = thinned(blocks.tally, INFORMING)
    layout = Layout(drawn, model.partition)
    state = State(model.prevalence, np.concatenate(model.tables, axis=1))
    free = _free_cells(layout, state.tables)
    slopes = slopes_of(layout, state.tables, free)
    if not np.isfinite(blocks.tally.sample_size):
        return np.zeros((len(slopes),) * 2)
    matrix = _information(layout, state, prior, free)
    if prevalence is not None:
        matrix, slopes = matrix[1:, 1:], slopes[:, 1:]
    scale = np.sqrt(np.maximum(np.diagonal(matrix), 0.0))
    if not (scale > 0).all():
        return None
    values, vectors = np.linalg.eigh(matrix / np.outer(scale, scale))
    if values[0] <= SMALLEST_PIVOT:
        return None
    half = (slopes / scale) @ vectors / np.sqrt(values)
    return _given_known(half @ half.T * (drawn.items / blocks.tally.items), prior)


def _given_known(covariance: Array, prior: Prior) -> Array:
    """Covariance of all given those that are known, as of a normal distribution."""
    if prior.fixed_rates is None or not prior.fixed_rates.any():
        return covariance
    known = 1 + np.flatnonzero(prior.fixed_rates.ravel())
    across = covariance[:, known]
    left = covariance - across @ np.linalg.pinv(covariance[np.ix_(known, known)]) @ across.T
    left[known] = left[:, known] = 0.0
    return np.asarray(left)


def _free_cells(layout: Layout, tables: Array) -> NDArray[np.bool_]:
    """Cells whose logits are estimated, (2, cells): not the most likely of each table, nor empty ones."""
    free = tables > EMPTY
    for cells in layout.cells:
        free[[0, 1], cells.start + np.argmax(tables[:, cells], axis=1)] = False
    return np.asarray(free)


def _information(layout: Layout, state: State, prior: Prior, free: NDArray[np.bool_]) -> Array:
    """Observed information in the logits of the prevalence and of the free cells, (1 + F, 1 + F).

    Were the class known, a table would be informed by its items, less what missing votes hide:
    Σ N (diag t − t tᵀ) − Σ N_c (diag t_c − t_c t_cᵀ), with t_c the cells given category c. The
    hidden class takes Σ counts q (1 − q) d dᵀ away, d the difference of the two classes' scores.
    """
    expected = expect(layout, state)
    totals = layout.totals(
        layout.spread(expected.counts, state.tables) + pseudo_counts(layout, prior)
    )
    whole = np.zeros((2, free.shape[1], free.shape[1]))
    for block, (members, cells) in enumerate(zip(layout.partition, layout.cells, strict=True)):
        for true in (0, 1):
            table = state.tables[true, cells]
            part = totals[true, cells.start] * _multinomial(table)
            if not layout.complete:
                within = _within(compatible(len(members)), table)
                counts = expected.counts[true, layout.categories[block]]
                part -= np.diag(counts @ within) - (within.T * counts) @ within
            whole[true, cells, cells] = part
    matrix = np.zeros((1 + int(free.sum()),) * 2)
    p, first = state.prevalence, 1 + int(free[0].sum())
    matrix[0, 0] = (layout.tally.items + prior.classes.sum()) * p * (1.0 - p)
    matrix[1:first, 1:first] = whole[0][np.ix_(free[0], free[0])]
    matrix[first:, first:] = whole[1][np.ix_(free[1], free[1])]
    return np.asarray(matrix - _hidden(layout, state, free))


def _multinomial(table: Array) -> Array:
    return np.diag(table) - np.outer(table, table)


def _within(agree: Array, table: Array) -> Array:
    """Probability of each cell given each category, (categories, cells)."""
    joint = agree * table
    total = joint.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(joint, total, out=np.zeros_like(joint), where=total > 0))


def _hidden(layout: Layout, state: State, free: NDArray[np.bool_]) -> Array:
    """Variance of the score that the unknown class adds, over patterns whose class is in doubt."""
    odds, _ = class_log_odds(layout, state)
    small = np.exp(-np.abs(odds))
    doubt = small / (1.0 + small) ** 2  # q (1 − q)
    doubtful = np.flatnonzero(small / (1.0 + small) > CERTAIN)
    differences = _score_differences(layout, state.tables, free, complete=layout.complete)
    total = np.zeros((1 + int(free.sum()),) * 2)
    for start in range(0, len(doubtful), ROWS):
        rows = doubtful[start : start + ROWS]
        scores = np.empty((len(rows), len(total)))
        scores[:, 0] = 1.0
        for block, (columns, values) in enumerate(differences):
            scores[:, columns] = values[layout.of_block(block, rows)]
        scores *= np.sqrt(doubt[rows] * layout.counts[rows])[:, None]
        total += scores.T @ scores
    return total


def _score_differences(
    layout: Layout, tables: Array, free: NDArray[np.bool_], *, complete: bool
) -> list[tuple[NDArray[np.intp], Array]]:
    """For each block its columns in the information, and each category's score, positive less negative.

    Where no vote is missing (`complete`), categories are cells.
    """
    place = 1 + np.cumsum(free.ravel()).reshape(free.shape) - 1
    found = []
    for members, cells in zip(layout.partition, layout.cells, strict=True):
        size = 1 << len(members)
        agree = np.eye(size) if complete else compatible(len(members))
        parts, columns = [], []
        for true, sign in ((0, -1.0), (1, 1.0)):
            table, kept = tables[true, cells], free[true, cells]
            parts.append(sign * (_within(agree, table) - table)[:, kept])
            columns.append(place[true, cells][kept])
        found.append((np.concatenate(columns), np.concatenate(parts, axis=1)))
    return found


def _slopes(layout: Layout, tables: Array, free: NDArray[np.bool_]) -> Array:
    """Derivatives of the reported logits by the free ones, (1 + 2m, 1 + F).

    For a rate r = Σ t_c over the cells where the classifier votes 1, by the logit of cell d:
    t_d (vote of d − r), over r (1 − r) for the logit of r.
    """
    m = sum(map(len, layout.partition))
    place = np.cumsum(free.ravel()).reshape(free.shape)
    slopes = np.zeros((1 + 2 * m, 1 + int(free.sum())))
    slopes[0, 0] = 1.0
    for members, cells in zip(layout.partition, layout.cells, strict=True):
        votes = votes_of_cells(len(members))
        for true in (0, 1):
            table, kept = tables[true, cells], free[true, cells]
            rate = table @ votes
            slope = table[:, None] * (votes - rate) / np.maximum(rate * (1.0 - rate), FLOOR)
            rows = 1 + 2 * np.array(members) + true
            slopes[np.ix_(rows, place[true, cells][kept])] = slope[kept].T
    return slopes


def _slopes_of_terms(layout: Layout, tables: Array, free: NDArray[np.bool_]) -> Array:
    """Derivatives of the terms of the posterior log-odds by the free logits, (D, 1 + F)."""
    m = sum(map(len, layout.partition))
    alone = np.zeros((1 + 2 * m, 1 + int(free.sum())))
    alone[0, 0] = 1.0
    together = []
    found = _score_differences(layout, tables, free, complete=False)
    for members, (columns, values) in zip(layout.partition, found, strict=True):
        if len(members) == 1:  # categories: missing, negative, positive
            first = 1 + 2 * members[0]
            alone[first : first + 2, columns] = values[1:]
        else:
            joint = np.zeros((len(values), alone.shape[1]))
            joint[:, columns] = values
            together.append(joint)
    return np.concatenate([alone, *together])
