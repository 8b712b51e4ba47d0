"""Rare classifiers lend strength from all: pseudo-votes whose shape and number the votes tell.

A classifier with three votes cannot tell its confusion matrix; the pool of all classifiers can tell
what such matrices look like. So every row of a confusion matrix has a Dirichlet prior, in the manner of
empirical Bayes: its mean is looked up from the expected counts of all classifiers, and its strength c,
in pseudo-votes a row, is the one that makes those counts likeliest (Dirichlet-multinomial). Many votes
outweigh it; few do not.

The mean of classifier i's rows is mostly symmetric: its own accuracy, drawn towards the pool's in the
same manner, on the diagonal, the rest spread evenly. The common matrix of the pool has a share in it of one part in
K (K − 1), the number of its cells off the diagonal: of two classes, a half; of many, next to nothing,
as so many cells are the less known, and shared errors take a common matrix astray.
`benchmarks/consensus_choice.py` compares the shapes on real votes.

Items are of two types, as real classifiers err together on hard items: see the room of item types.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labelfree._item_types import TypeCounts, Types, common_accuracy, expect_types, leap
from labelfree._latent_class import FLOOR, Model, Prior
from labelfree._products import Blocks
from labelfree._starts import Row, holding, majority_counts, with_known

Array = NDArray[np.float64]

PULL = 0.5  # of the likeliest, on own accuracies: on real votes too strong a pull cost more than too weak
MIDDLE, SPREAD = 10.0, 1.5  # of a strength: log c ~ N(log 10, 1.5²)
STRENGTHS = np.exp(np.linspace(np.log(0.5), np.log(2000.0), 25))  # that are tried
MOST_ROUNDS = 500  # of EM
OFTEN = 10  # rounds without leaps, each with a new look at the strength; later, every tenth has one
WORSE = 2.0  # times as large a change as before a leap, from which the search goes back
STEPS = 2  # among these that the strength moves when it is looked up anew
LATEST = (
    100  # round with such a look: the strength is one of a few, and might go to and fro for ever
)
STILL = 1e-4  # largest change of a probability in a round that counts as standing still
LEAST_ABOVE_CHANCE = 1.2  # times 1 / K: the pool's accuracy is at least this
EXTREME = 1e-3  # an accuracy in the prior is this far from 0 and 1
SILENT = 0.5  # share of the votes from classifiers with one label only that makes silence their other vote


@dataclass(frozen=True)
class Shared:
    """What the pool tells.

    Attributes
    ----------
    model : Model
        Class probabilities and confusion matrices over the items of both types.
    prior : Prior
        That the search ended with.
    types : Types
        Where the search stood when it ended.
    log_likelihood : float
        Of the votes, before the last round.
    strength : float
        c, pseudo-votes a row.
    pull : float
        Votes that the pool's accuracy weighs beside a classifier's own.
    rounds : int
    converged : bool
    """

    model: Model
    prior: Prior
    types: Types
    log_likelihood: float
    strength: float
    pull: float
    rounds: int
    converged: bool


def shared(
    blocks: Blocks,
    start: Model,
    *,
    weight: float = 1.0,
    class_probabilities: Array | None = None,
    fixed: Mapping[Row, Array] | None = None,
    believed: Mapping[Row, Array] | None = None,
    most_rounds: int = MOST_ROUNDS,
) -> Shared:
    """Search for the posterior mode, and look up the prior on the way.

    Parameters
    ----------
    blocks : Blocks
    start : Model
        Where the search starts: the majority's, where nothing speaks for another.
    weight : float
        Multiplies the pseudo-votes.
    class_probabilities : (K,) array, optional
        Where they are known.
    fixed : mapping of (place, true class) to (K,) arrays, optional
        Rows of confusion matrices that are known.
    believed : mapping of (place, true class) to (K,) arrays, optional
        Pseudo-counts of single rows, in place of the pool's.
    most_rounds : int
        Of EM.

    Returns
    -------
    Shared

    Notes
    -----
    Where most votes come from classifiers that only ever give one label, as labelling functions do,
    nothing but their silence tells of their errors, and the likelihood of the votes does not see it:
    there the votes would make one class swallow all others. So such classifiers keep the pool's
    rates, and the classes are held at equal shares.

    Examples
    --------
    >>> import numpy as np
    >>> from labelfree import Tally
    >>> from labelfree._starts import majority_start
    >>> codes = np.array([[0, 0, 0, -1], [1, 1, 1, 0], [0, 0, -1, -1], [1, 1, 1, -1]])
    >>> blocks = Blocks(Tally.from_codes(codes, np.array([30.0, 20.0, 10.0, 30.0])))
    >>> found = shared(blocks, majority_start(blocks))
    >>> bool(found.model.confusion[0, 1, 1] > 0.9)
    True
    """
    pool, fixed, believed = _Pool(blocks, weight), fixed or {}, believed or {}
    if class_probabilities is None and pool.silent.any():
        class_probabilities = np.full(pool.classes, 1.0 / pool.classes)
    alike = np.repeat(pool.silent[:, None], pool.classes, axis=1)
    for place in (*fixed, *believed):
        alike[place] = True
    types = Types.start(holding(start, class_probabilities, fixed), alike)
    prior = Prior.flat(pool.classifiers, pool.classes, 0.0)
    model, strength, log_likelihood, rounds, still = types.marginal(), MIDDLE, -np.inf, 0, False
    path, safe, before = [types], types, np.inf
    while rounds < most_rounds and not still:
        counts = expect_types(blocks, types)
        mean = pool.mean(counts.own)
        if rounds < OFTEN or (rounds % OFTEN == 0 and rounds <= LATEST):
            strength = pool.strength(counts.own, mean, strength if rounds else None)
        prior = pool.prior(mean, strength)
        prior = with_known(prior, class_probabilities, fixed, believed)
        new = _maximised(counts, types, pool.own(counts.own), prior, class_probabilities, fixed)
        # The types may still drift where votes do not tell them apart; the answer is what counts.
        model, old = new.marginal(), types.marginal()
        change = float(np.max(np.abs(model.confusion - old.confusion), initial=0.0))
        still = change <= STILL
        log_likelihood, rounds = counts.log_likelihood, rounds + 1
        if change > WORSE * before and len(path) == 1:  # the leap led astray
            new, change = safe, np.inf
        types, path, before = new, [*path, new], change
        if rounds < OFTEN:
            path = [types]
        elif len(path) == 3 and not still:
            safe, types = types, leap(path)
            path = [types]
    model = holding(model, class_probabilities, fixed)  # to the last bit
    return Shared(model, prior, types, log_likelihood, strength, pool.pull, rounds, still)


class _Pool:
    """All classifiers together: what a confusion matrix looks like, and how far they differ."""

    def __init__(self, blocks: Blocks, weight: float) -> None:
        shape = blocks.tally.shape
        self.classifiers, self.classes, self.weight = shape.classifiers, shape.classes, weight
        votes = label_counts(blocks)
        one_label = (votes > 0).sum(axis=1) == 1
        share = votes[one_label].sum() / max(votes.sum(), 1.0)
        self.silent = one_label if share > SILENT else np.zeros(len(votes), dtype=bool)
        self.of_classes, self.pull = np.full(self.classes, weight), 0.0
        # Silent classifiers agree with themselves under any model: the majority tells how right they are.
        self.accuracy = _accuracy(majority_counts(blocks)[1]) if self.silent.any() else None

    def own(self, votes: Array) -> Array:
        """Expected votes that tell of a classifier's rates: those of silent ones do not."""
        return np.where(self.silent[:, None, None], 0.0, votes)

    def mean(self, votes: Array) -> Array:
        """Mean of the prior of every classifier's rows, (m, K, K)."""
        own, classes = self.own(votes), self.classes
        pooled = _accuracy(votes) if self.accuracy is None else self.accuracy
        pooled = min(max(pooled, LEAST_ABOVE_CHANCE / classes), 1.0 - EXTREME)
        right = _right(own)
        hits = np.stack([right, own.sum(axis=(1, 2)) - right], axis=1)[:, None]
        self.pull = drawn = PULL * _likeliest(hits, np.array([[[pooled, 1.0 - pooled]]]))
        accuracy = (right + drawn * pooled) / (hits.sum(axis=(1, 2)) + drawn)
        symmetric = _symmetric(np.clip(accuracy, EXTREME, 1.0 - EXTREME), classes)
        common = own.sum(axis=0) + classes * _symmetric(np.array([pooled]), classes)[0]
        common /= common.sum(axis=1, keepdims=True)
        share = common_share(classes)
        return np.asarray((1.0 - share) * symmetric + share * common)

    def strength(self, votes: Array, mean: Array, near: float | None = None) -> float:
        """Pseudo-votes a row under which the expected votes are likeliest; among those near one found before."""
        told = ~self.silent
        if not told.any():
            return MIDDLE
        return _likeliest(votes[told], mean[told], near)

    def prior(self, mean: Array, strength: float) -> Prior:
        """As pseudo-counts; the rows of silent classifiers stay at their mean."""
        fixed = np.repeat(self.silent[:, None], self.classes, axis=1)
        return Prior(
            self.of_classes,
            self.weight * strength * mean,
            fixed_rates=fixed if fixed.any() else None,
        )


def common_share(classes: int) -> float:
    """Weight of the common matrix in the prior's mean."""
    return 1.0 / (classes * (classes - 1))


def label_counts(blocks: Blocks) -> Array:
    """How often each classifier gave each label, (m, K)."""
    (votes,) = blocks.total(lambda block: (block.gather(block.counts[:, None])[:, :, 0],))
    return np.asarray(votes)


def _maximised(
    counts: TypeCounts,
    types: Types,
    own: Array,
    prior: Prior,
    class_probabilities: Array | None,
    fixed: Mapping[Row, Array],
) -> Types:
    """M-step: expected counts plus pseudo-counts, as probabilities; what is known stays."""
    items = counts.items + prior.classes
    if class_probabilities is None:
        shares = items / items.sum()
    else:
        shares = items / items.sum(axis=0) * class_probabilities
    votes = own + prior.confusion
    rates = votes / votes.sum(axis=2, keepdims=True)
    for place, row in fixed.items():
        rates[place] = row
    return Types(shares, rates, common_accuracy(counts.common), types.alike)


def _right(votes: Array) -> Array:
    return np.asarray(np.trace(votes, axis1=1, axis2=2))


def _symmetric(accuracy: Array, classes: int) -> Array:
    """Matrices (m, K, K) with these accuracies on the diagonal, and the rest spread evenly."""
    wrong = (1.0 - accuracy) / (classes - 1)
    diagonal = np.eye(classes)
    return np.asarray(wrong[:, None, None] * (1.0 - diagonal) + accuracy[:, None, None] * diagonal)


def _accuracy(votes: Array) -> float:
    """Share of all votes that are right."""
    return float(_right(votes).sum() / max(votes.sum(), FLOOR))


def _likeliest(votes: Array, mean: Array, near: float | None = None) -> float:
    """Strength under which the expected votes are likeliest, with a weak prior of its own."""
    tried = STRENGTHS
    if near is not None:
        place = int(np.argmin(np.abs(STRENGTHS - near)))
        tried = STRENGTHS[max(place - STEPS, 0) : place + STEPS + 1]
    heights = [
        _dirichlet_multinomial(votes, strength * mean)
        - 0.5 * (np.log(strength / MIDDLE) / SPREAD) ** 2
        for strength in tried
    ]
    return float(tried[int(np.argmax(heights))])


def _dirichlet_multinomial(votes: Array, pseudo: Array) -> float:
    """Log-probability of expected votes whose rates were drawn from Dirichlet priors, up to a constant."""
    from scipy.special import gammaln

    cells = gammaln(pseudo + votes) - gammaln(pseudo)
    given, all_pseudo = votes.sum(axis=2), pseudo.sum(axis=2)
    rows = gammaln(all_pseudo) - gammaln(all_pseudo + given)
    return float(cells.sum() + rows.sum())
