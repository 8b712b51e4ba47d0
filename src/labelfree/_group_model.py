"""The likelihood with groups of classifiers that may share errors, and its maximum.

Blocks of classifiers are independent given the class; inside a block anything may happen: its votes
together are one categorical item with a free table for each class, so that g classifiers have
2(2^g − 1) free probabilities. With every classifier in a block of its own this is the latent-class
model. A missing vote belongs to all cells of its block that agree with the votes that are there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from labelfree._categories import (
    Layout,
    Partition,
    votes_of_cells,
    whole_partition,
)
from labelfree._group_start import spectral_start
from labelfree._latent_class import FLOOR, Model, Prior
from labelfree._moments import Moments, moments
from labelfree._products import Blocks
from labelfree._tally import Tally

Array = NDArray[np.float64]

TOLERANCE, ROUGH = 1e-11, 1e-5  # largest change of a probability that counts as standing still
MOST_ROUNDS, MOST_ROUGH_ROUNDS = 2000, 300
MEMORY = 8  # rounds of EM that the extrapolation looks back on
EXACT_ITEMS = 1e9  # what BIC takes exact frequencies to be a sample of
MARGIN_ROUNDS = 20  # of fitting the known rates of several members of one block


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
        State(*spectral_start(search.layout, seen, prevalence))
        if start is None
        else State(start.prevalence, np.concatenate(start.tables, axis=1))
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
class State:
    """Parameters: the prevalence, and the tables of all blocks side by side, (2, cells)."""

    prevalence: float
    tables: Array

    def flat(self) -> Array:
        return np.concatenate([[self.prevalence], self.tables.ravel()])


@dataclass(frozen=True)
class Expected:
    """What one pass tells."""

    log_likelihood: float
    positive: float  # expected number of positive items
    counts: Array  # expected items of each class in each category, (2, categories)


def class_log_odds(layout: Layout, state: State) -> tuple[Array, Array]:
    """Log-odds of the class of every pattern; log-probabilities of the categories if negative."""
    logs = np.log(np.maximum(layout.probabilities(state.tables), FLOOR))
    prior = np.log(state.prevalence / (1.0 - state.prevalence))
    return layout.look_up(logs[1] - logs[0]) + prior, logs[0]


def expect(layout: Layout, state: State) -> Expected:
    """E-step: log-odds of every pattern by look-up; what negative items hold is the rest."""
    odds, negative = class_log_odds(layout, state)
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
    return Expected(float(log_likelihood), float(weights.sum()), counts)


class _Search:
    """Log-posterior under pseudo-counts and known rates, and the rounds of EM that climb it."""

    def __init__(self, layout: Layout, prior: Prior, known: Model | None) -> None:
        self.layout = layout
        self.prior = prior
        self.pseudo = pseudo_counts(layout, prior)
        self.margins = _known_margins(layout, prior, known)

    def value(self, state: State, expected: Expected) -> float:
        """Log-posterior, up to a constant."""
        density = (self.pseudo * np.log(np.maximum(state.tables, FLOOR))).sum()
        if not self.prior.fixed_classes:
            density += self.prior.classes @ np.log([1.0 - state.prevalence, state.prevalence])
        return float(expected.log_likelihood + density)

    def round(self, state: State, expected: Expected) -> State:
        """M-step: expected counts plus pseudo-counts, as probabilities."""
        counts = self.layout.spread(expected.counts, state.tables) + self.pseudo
        totals = self.layout.totals(counts)
        tables = np.divide(counts, totals, out=state.tables.copy(), where=totals > 0)
        prevalence = state.prevalence
        if not self.prior.fixed_classes:
            alpha = self.prior.classes
            prevalence = (expected.positive + alpha[1]) / (self.layout.tally.items + alpha.sum())
            prevalence = float(np.clip(prevalence, 1e-12, 1.0 - 1e-12))
        return self.held(State(prevalence, tables))

    def held(self, state: State) -> State:
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
        return State(state.prevalence, tables)

    def climb(self, state: State, *, rough: bool) -> tuple[State, Expected, bool]:
        """EM, extrapolated from its last rounds, until a round changes nothing that matters.

        The extrapolation is Anderson's, damped by monotonicity as in Henderson and Varadhan (2019):
        it takes the affine combination of the last rounds that would stand stillest, were EM
        linear. Where that does not raise the log-posterior, the plain round is taken instead.
        """
        tolerance, most = (ROUGH, MOST_ROUGH_ROUNDS) if rough else (TOLERANCE, MOST_ROUNDS)
        expected = expect(self.layout, state)
        value = self.value(state, expected)
        past: list[tuple[Array, Array]] = []  # parameters after a round, and the change it made
        for _ in range(most):
            plain = self.round(state, expected)
            change = plain.flat() - state.flat()
            if np.max(np.abs(change)) <= tolerance:
                return state, expected, True
            past = [*past[-MEMORY:], (plain.flat(), change)]
            state = self._extrapolated(past, plain)
            expected = expect(self.layout, state)
            reached = self.value(state, expected)
            if reached < value - 1e-13 * abs(value):
                state, past = plain, past[-1:]
                expected = expect(self.layout, state)
                reached = self.value(state, expected)
            value = reached
        return state, expected, False

    def _extrapolated(self, past: list[tuple[Array, Array]], plain: State) -> State:
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
        return self.held(State(p, tables / self.layout.totals(tables)))


def pseudo_counts(layout: Layout, prior: Prior) -> Array:
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
