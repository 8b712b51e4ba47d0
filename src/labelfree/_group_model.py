"""The likelihood with groups of classifiers that may share errors, and its information.

Blocks of classifiers are independent given the class; inside a block anything may happen: its votes
together are one categorical item with a free table for each class, so that g classifiers have
2(2^g − 1) free probabilities. With every classifier in a block of its own this is the latent-class
model. A missing vote belongs to all cells of its block that agree with the votes that are there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from labelfree._categories import (
    Layout,
    Partition,
    compatible,
    thinned,
    votes_of_categories,
    votes_of_cells,
    whole_partition,
)
from labelfree._imbalance import margin
from labelfree._latent_class import FLOOR, Model, Prior
from labelfree._moments import SIGNS, Moments, moments
from labelfree._products import Blocks
from labelfree._rank_one import rank_one
from labelfree._rates import clipped, rates, smallest_rate
from labelfree._tally import Tally

Array = NDArray[np.float64]

TOLERANCE, ROUGH = 1e-11, 1e-5  # largest change of a probability that counts as standing still
MOST_ROUNDS, MOST_ROUGH_ROUNDS = 2000, 300
MEMORY = 8  # rounds of EM that the extrapolation looks back on
SMALLEST_SHARE = 0.02  # of a class in a category, at the start
START_WEIGHT = 0.1  # of independence in the tables of the start; it keeps them inside (0, 1)
EXACT_ITEMS = 1e9  # what BIC takes exact frequencies to be a sample of
MARGIN_ROUNDS = 20  # of fitting the known rates of several members of one block
CERTAIN = 1e-5  # an item whose other class shares less adds next to nothing to the information
EMPTY = 1e-9  # a cell of no more probability is taken to be impossible, not estimated
SMALLEST_PIVOT = 1e-10  # of the scaled information: below, some direction is not informed at all
INFORMING = 1 << 17  # items that the information is computed from where no pattern repeats
ROWS = 1 << 14  # patterns whose scores are laid out at once


@dataclass(frozen=True)
class GroupModel:
    """The latent-class model with groups, and how well it fits.

    Attributes
    ----------
    partition : tuple of tuples of int
        Places of the classifiers, block by block.
    prevalence : float
        Pr(positive).
    tables : tuple of (2, 2^g) arrays
        For each block, the probability of its votes [true class, cell]; in the cell's number the
        block's first classifier is the lowest bit.
    log_likelihood : float
    parameters : int
        Free probabilities.
    bic : float
        −2 log-likelihood + parameters · log(items).
    converged : bool
    """

    partition: Partition
    prevalence: float
    tables: tuple[Array, ...]
    log_likelihood: float
    parameters: int
    bic: float
    converged: bool

    @property
    def groups(self) -> Partition:
        """Blocks of two classifiers or more."""
        return tuple(block for block in self.partition if len(block) > 1)

    @property
    def positive_rates(self) -> Array:
        """Pr(positive vote given class), (m, 2)."""
        found = np.empty((sum(map(len, self.partition)), 2))
        for block, table in zip(self.partition, self.tables, strict=True):
            found[list(block)] = (table @ votes_of_cells(len(block))).T
        return found

    @property
    def sensitivity(self) -> Array:
        """Each classifier's own, (m,)."""
        return np.asarray(self.positive_rates[:, 1])

    @property
    def specificity(self) -> Array:
        """Each classifier's own, (m,)."""
        return np.asarray(1.0 - self.positive_rates[:, 0])

    @property
    def separation(self) -> float:
        """Expected log-odds that all votes add, positive less negative items (their J-divergence)."""
        total = 0.0
        for table in self.tables:
            logs = np.log(np.maximum(table, FLOOR))
            total += float((table[1] - table[0]) @ (logs[1] - logs[0]))
        return total

    def marginal(self) -> Model:
        """Prevalence and each classifier's own rates; what the groups share is left out."""
        return Model.binary(2.0 * self.prevalence - 1.0, self.sensitivity, self.specificity)


def fit_groups(
    blocks: Blocks,
    groups: Iterable[Sequence[int]],
    prior: Prior,
    prevalence: float | None = None,
    *,
    seen: Moments | None = None,
    known: Model | None = None,
) -> GroupModel:
    """Fit the latent-class model in which the classifiers of a group may share errors.

    Parameters
    ----------
    blocks : Blocks
        Of binary votes.
    groups : sequence of sequences of int
        Places; classifiers that are in none stand alone.
    prior : Prior
        Pseudo-counts of the classes and of the classifiers' own rates.
    prevalence : float, optional
        Pr(positive) where it is known; it then stays fixed.
    seen : Moments, optional
        Of the votes, where they are at hand.
    known : Model, optional
        Holds the rates that `prior` calls fixed.

    Returns
    -------
    GroupModel
        The posterior mode uphill from the moments of different blocks: from the answer of the
        independent model even the true partition may end on the wrong hill.
    """
    seen = moments(blocks) if seen is None else seen
    partition = whole_partition(groups, len(seen.mean))
    return fit_partition(blocks.tally, partition, prior, prevalence, seen, known)


def fit_partition(
    tally: Tally,
    partition: Partition,
    prior: Prior,
    prevalence: float | None,
    seen: Moments,
    known: Model | None,
    start: GroupModel | None = None,
    *,
    rough: bool = False,
) -> GroupModel:
    """Fit one partition, from the moments or from a fit; a rough fit stops early."""
    search = _Search(Layout(tally, partition), _with_class(prior, prevalence), known)
    state = (
        _start(search.layout, seen, prevalence)
        if start is None
        else _State(start.prevalence, np.concatenate(start.tables, axis=1))
    )
    state, expected, converged = search.climb(search.held(state), rough=rough)
    fixed = 0 if prior.fixed_rates is None else int(prior.fixed_rates.sum())
    free = sum(2 * (size - 1) for size in search.layout.cell_sizes) - fixed + (prevalence is None)
    return GroupModel(
        partition,
        state.prevalence,
        tuple(state.tables[:, cells] for cells in search.layout.cells),
        expected.log_likelihood,
        free,
        _bic(expected.log_likelihood, free, tally),
        converged,
    )


def _bic(log_likelihood: float, parameters: int, tally: Tally) -> float:
    items = tally.items if np.isfinite(tally.sample_size) else EXACT_ITEMS
    return float(-2.0 * log_likelihood * items / tally.items + parameters * np.log(items))


def _with_class(prior: Prior, prevalence: float | None) -> Prior:
    return replace(prior, fixed_classes=prevalence is not None)


# --- EM -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _State:
    """Parameters: the prevalence, and the tables of all blocks side by side, (2, cells)."""

    prevalence: float
    tables: Array

    def flat(self) -> Array:
        return np.concatenate([[self.prevalence], self.tables.ravel()])


@dataclass(frozen=True)
class _Expected:
    """What one pass tells."""

    log_likelihood: float
    positive: float  # expected number of positive items
    counts: Array  # expected items of each class in each category, (2, categories)


def _log_odds(layout: Layout, state: _State) -> tuple[Array, Array]:
    """Log-odds of the class of every pattern; log-probabilities of the categories if negative."""
    logs = np.log(np.maximum(layout.probabilities(state.tables), FLOOR))
    prior = np.log(state.prevalence / (1.0 - state.prevalence))
    return layout.look_up(logs[1] - logs[0]) + prior, logs[0]


def _expect(layout: Layout, state: _State) -> _Expected:
    """E-step: log-odds of every pattern by look-up; what negative items hold is the rest."""
    odds, negative = _log_odds(layout, state)
    small = np.exp(-np.abs(odds))
    share = np.where(odds > 0, 1.0, small) / (1.0 + small)
    log_likelihood = (
        layout.tally.items * np.log(1.0 - state.prevalence)
        + layout.histogram @ negative
        + (layout.counts * (np.maximum(odds, 0.0) + np.log1p(small))).sum()
    )
    weights = layout.counts * share
    positive = layout.collect(weights)
    counts = np.stack([np.maximum(layout.histogram - positive, 0.0), positive])
    return _Expected(float(log_likelihood), float(weights.sum()), counts)


class _Search:
    """Log-posterior under pseudo-counts and known rates, and the rounds of EM that climb it."""

    def __init__(self, layout: Layout, prior: Prior, known: Model | None) -> None:
        self.layout = layout
        self.prior = prior
        self.pseudo = _pseudo_counts(layout, prior)
        self.margins = _known_margins(layout, prior, known)

    def value(self, state: _State, expected: _Expected) -> float:
        """Log-posterior, up to a constant."""
        density = (self.pseudo * np.log(np.maximum(state.tables, FLOOR))).sum()
        if not self.prior.fixed_classes:
            density += self.prior.classes @ np.log([1.0 - state.prevalence, state.prevalence])
        return float(expected.log_likelihood + density)

    def round(self, state: _State, expected: _Expected) -> _State:
        """M-step: expected counts plus pseudo-counts, as probabilities."""
        counts = self.layout.spread(expected.counts, state.tables) + self.pseudo
        totals = self.layout.totals(counts)
        tables = np.divide(counts, totals, out=state.tables.copy(), where=totals > 0)
        prevalence = state.prevalence
        if not self.prior.fixed_classes:
            alpha = self.prior.classes
            prevalence = (expected.positive + alpha[1]) / (self.layout.tally.items + alpha.sum())
            prevalence = float(np.clip(prevalence, 1e-12, 1.0 - 1e-12))
        return self.held(_State(prevalence, tables))

    def held(self, state: _State) -> _State:
        """Give known rates their value: exact for one a block, by proportional fitting for more."""
        if not self.margins:
            return state
        tables = state.tables.copy()
        for _ in range(MARGIN_ROUNDS):
            for true, cells, rate in self.margins:
                for part, share in zip(cells, (1.0 - rate, rate), strict=True):
                    total = tables[true, part].sum()
                    tables[true, part] = (
                        tables[true, part] * share / total if total > 0 else share / len(part)
                    )
        return _State(state.prevalence, tables)

    def climb(self, state: _State, *, rough: bool) -> tuple[_State, _Expected, bool]:
        """EM, extrapolated from its last rounds, until a round changes nothing that matters.

        The extrapolation is Anderson's, damped by monotonicity as in Henderson and Varadhan (2019):
        it takes the affine combination of the last rounds that would stand stillest, were EM
        linear. Where that does not raise the log-posterior, the plain round is taken instead.
        """
        tolerance, most = (ROUGH, MOST_ROUGH_ROUNDS) if rough else (TOLERANCE, MOST_ROUNDS)
        expected = _expect(self.layout, state)
        value = self.value(state, expected)
        past: list[tuple[Array, Array]] = []  # parameters after a round, and the change it made
        for _ in range(most):
            plain = self.round(state, expected)
            change = plain.flat() - state.flat()
            if np.max(np.abs(change)) <= tolerance:
                return state, expected, True
            past = [*past[-MEMORY:], (plain.flat(), change)]
            state = self._extrapolated(past, plain)
            expected = _expect(self.layout, state)
            reached = self.value(state, expected)
            if reached < value - 1e-13 * abs(value):
                state, past = plain, past[-1:]
                expected = _expect(self.layout, state)
                reached = self.value(state, expected)
            value = reached
        return state, expected, False

    def _extrapolated(self, past: list[tuple[Array, Array]], plain: _State) -> _State:
        if len(past) == 1:
            return plain
        ends = np.stack([end for end, _ in past], axis=1)
        changes = np.stack([change for _, change in past], axis=1)
        weights = np.linalg.lstsq(np.diff(changes, axis=1), changes[:, -1], rcond=1e-10)[0]
        flat = ends[:, -1] - np.diff(ends, axis=1) @ weights
        # A probability may fall to a tenth of what the plain round gave, never below.
        tables = np.maximum(flat[1:].reshape(plain.tables.shape), 0.1 * plain.tables)
        p = plain.prevalence
        if not self.prior.fixed_classes:
            p = float(np.clip(flat[0], 0.5 * p, 0.5 + 0.5 * p))
        return self.held(_State(p, tables / self.layout.totals(tables)))


def _pseudo_counts(layout: Layout, prior: Prior) -> Array:
    """Pseudo-counts of the cells, (2, cells): those of a block's members' votes, shared out evenly.

    A flat prior of a in every cell of a classifier becomes 2a / 2^g in every cell of the block.
    """
    parts = []
    for block in layout.partition:
        votes = votes_of_cells(len(block))
        own = np.stack([prior.confusion[i][:, votes[:, k]] for k, i in enumerate(block)])
        parts.append(own.mean(axis=0) / (1 << (len(block) - 1)))
    return np.concatenate(parts, axis=1)


Margin = tuple[int, tuple[NDArray[np.intp], NDArray[np.intp]], float]


def _known_margins(layout: Layout, prior: Prior, known: Model | None) -> list[Margin]:
    """Known rates as (true class, cells with vote 0 and cells with vote 1, Pr(vote 1))."""
    if prior.fixed_rates is None or known is None:
        return []
    found: list[Margin] = []
    for block, cells in zip(layout.partition, layout.cells, strict=True):
        votes = votes_of_cells(len(block))
        for position, i in enumerate(block):
            sides = tuple(cells.start + np.flatnonzero(votes[:, position] == v) for v in (0, 1))
            for true in np.flatnonzero(prior.fixed_rates[i]):
                rate = float(known.confusion[i, true, 1])
                found.append((int(true), (sides[0], sides[1]), rate))
    return found


# --- the start: moments of pairs and triples of different blocks --------------------------------


def masked(seen: Moments, partition: Partition) -> Moments:
    """Return the moments as if the classifiers of one block had never met."""
    inside = np.zeros(seen.covariance.shape, dtype=bool)
    for block in partition:
        inside[np.ix_(block, block)] = True
    np.fill_diagonal(inside, val=False)
    return replace(
        seen,
        covariance=np.where(inside, 0.0, seen.covariance),
        pair_counts=np.where(inside, 0.0, seen.pair_counts),
    )


def _start(layout: Layout, seen: Moments, prevalence: float | None) -> _State:
    """Take v from pairs, b from triples and tables from cell–vote pairs, all of different blocks."""
    vector = rank_one(masked(seen, layout.partition)).vector
    sums, squares = _block_sums(layout, seen.mean, vector)
    imbalance = _imbalance(layout, sums, squares) if prevalence is None else 2.0 * prevalence - 1.0
    smallest = max(smallest_rate(layout.tally.sample_size), 1e-4)
    psi, eta = (clipped(rate, smallest) for rate in rates(seen.mean, vector, imbalance))
    alone = np.stack([_product(layout, 1.0 - eta), _product(layout, psi)])
    tables = _tables(layout, sums, squares, imbalance)
    single = np.repeat([len(block) == 1 for block in layout.partition], layout.cell_sizes)
    mixed = np.where(single, alone, (1.0 - START_WEIGHT) * tables + START_WEIGHT * alone)
    return _State((1.0 + imbalance) / 2.0, mixed)


def _product(layout: Layout, rate: Array) -> Array:
    """Cells' probabilities were the classifiers independent, (cells,)."""
    parts = []
    for block in layout.partition:
        own = rate[list(block)]
        parts.append(np.where(votes_of_cells(len(block)) == 1, own, 1.0 - own).prod(axis=1))
    return np.concatenate(parts)


def _block_sums(layout: Layout, mean: Array, vector: Array) -> tuple[Array, Array]:
    """Σ v_i (f_i − μ_i) and Σ v_i² over those of a block who voted, for every category."""
    sums, squares = [], []
    for block in layout.partition:
        places = list(block)
        votes = (votes_of_cells if layout.complete else votes_of_categories)(len(block))
        centred = np.where(votes >= 0, SIGNS[votes] - mean[places], 0.0)
        sums.append(centred @ vector[places])
        squares.append((votes >= 0) @ vector[places] ** 2)
    return np.concatenate(sums), np.concatenate(squares)


def _imbalance(layout: Layout, sums: Array, squares: Array) -> float:
    """JNK Algorithm 1 on triples of different blocks: e3 of the blocks' sums, not of the votes."""
    above = (layout.counts * _triples(layout, sums)).sum()
    below = (layout.counts * _triples(layout, squares)).sum()
    ratio = above / below if below > 0 else 0.0
    end = 1.0 - margin(layout.tally.sample_size)
    return float(np.clip(-ratio / np.sqrt(4.0 + ratio**2), -end, end))


def _triples(layout: Layout, values: Array) -> Array:
    """Sum over three different blocks of the product of their values (Newton's identity for e3)."""
    p1, p2, p3 = (layout.look_up(values**power) for power in (1, 2, 3))
    return np.asarray((p1**3 - 3 * p1 * p2 + 2 * p3) / 6)


def _tables(layout: Layout, sums: Array, squares: Array, imbalance: float) -> Array:
    """Tables of the blocks from the covariance of their categories with votes of other blocks.

    E(f_j − μ_j given category) = 2 (Pr(positive given category) − p) v_j / √(1 − b²) for j in
    another block (as JNK Lemma 1); least squares over j.
    """
    histogram = layout.histogram
    above = layout.collect(layout.counts * layout.look_up(sums)) - sums * histogram
    below = layout.collect(layout.counts * layout.look_up(squares)) - squares * histogram
    level = np.divide(above, below, out=np.zeros_like(above), where=below > 0)
    share = (1.0 + imbalance) / 2.0 + 0.5 * np.sqrt(1.0 - imbalance**2) * level
    share = np.clip(share, SMALLEST_SHARE, 1.0 - SMALLEST_SHARE)
    even = np.repeat(1.0 / np.array(layout.cell_sizes), layout.cell_sizes)
    even = np.stack([even, even])
    counts = layout.spread(histogram * np.stack([1.0 - share, share]), even) + even
    return np.asarray(counts / layout.totals(counts))


# --- information --------------------------------------------------------------------------------


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
    state = _State(model.prevalence, np.concatenate(model.tables, axis=1))
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


def _information(layout: Layout, state: _State, prior: Prior, free: NDArray[np.bool_]) -> Array:
    """Observed information in the logits of the prevalence and of the free cells, (1 + F, 1 + F).

    Were the class known, a table would be informed by its items, less what missing votes hide:
    Σ N (diag t − t tᵀ) − Σ N_c (diag t_c − t_c t_cᵀ), with t_c the cells given category c. The
    hidden class takes Σ counts q (1 − q) d dᵀ away, d the difference of the two classes' scores.
    """
    expected = _expect(layout, state)
    totals = layout.totals(
        layout.spread(expected.counts, state.tables) + _pseudo_counts(layout, prior)
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


def _hidden(layout: Layout, state: _State, free: NDArray[np.bool_]) -> Array:
    """Variance of the score that the unknown class adds, over patterns whose class is in doubt."""
    odds, _ = _log_odds(layout, state)
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
