"""Which classifiers share errors: the pointer, the candidate groups, and the choice among them.

The score of Jaffe, Fetaya, Nadler, Jiang and Kluger (2016) points at pairs that break the rank-one
law of independent classifiers; cuts of its linkage trees are the candidates. Each is fitted, and
BIC chooses, the plain model among them. Then small changes of the winner are tried: a chance pair
in a cut hides the same cut without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from labelfree._categories import Partition, compatible, thinned, whole_partition
from labelfree._consensus import Rule, Together
from labelfree._group_model import GroupModel, fit_partition
from labelfree._latent_class import FLOOR, Model, Prior
from labelfree._moments import Moments
from labelfree._products import Blocks

Array = NDArray[np.float64]

LARGEST_BLOCK = 5  # classifiers; a table of 32 cells a class
FEWEST_BLOCKS = 3  # below, nothing is identified
FEWEST_CLASSIFIERS = 5  # among four, no pair can be named: {1, 2} and {3, 4} break the same minors
MOST_SCORED = 200  # classifiers; the score costs their fourth power
SPREAD = 1 << 15  # items that the choice among candidates looks at; the winner sees all
MOST_CHANGES = 10  # of the winner, one after the other
MOST_ASKED = 8  # likelier partitions whose residuals are looked at
FAR_LIKELIER = 1e-3  # p-value of the likelihood ratio, times the partitions tried
MERGERS = 5  # pairs of blocks that each change tries to merge
LINKAGES: tuple[Literal["single", "average", "complete"], ...] = ("single", "average", "complete")


def pointer(covariance: Array) -> Array:
    """Score how much each pair breaks the rank-one law (Jaffe et al. 2016).

    s_ij = Σ over k ≠ l, both other than i and j, of |r_ij r_kl − r_il r_kj|. For classifiers that
    are independent given the class every term is zero.

    Parameters
    ----------
    covariance : (m, m) array
        Its diagonal is not looked at.

    Returns
    -------
    (m, m) array
        Symmetric, zero on the diagonal.
    """
    r = np.array(covariance, dtype=np.float64)
    np.fill_diagonal(r, 0.0)
    size = np.abs(r)
    sums = size.sum(axis=1)
    # The sum is taken over all k and l; what that counts too much has a closed form.
    score = r**2 - size @ size - size * (sums[:, None] + sums[None, :])
    term = np.empty_like(r)
    for i, j in combinations(range(len(r)), 2):
        np.multiply.outer(r[j], r[i], out=term)
        term -= r[i, j] * r
        np.abs(term, out=term)
        score[i, j] = score[j, i] = score[i, j] + term.sum()
    np.fill_diagonal(score, 0.0)
    return np.asarray(np.maximum(score, 0.0))


def candidate_partitions(
    score: Array, constant: NDArray[np.bool_] | None = None
) -> list[Partition]:
    """Cut the linkage trees of the score into partitions worth fitting.

    Parameters
    ----------
    score : (m, m) array
        Of the pairs; a high one asks for a common block.
    constant : (m,) array of bool, optional
        Classifiers that gave one label only; they stay alone.

    Returns
    -------
    list of partitions
        Of at least three blocks of at most five; none of them all single. Empty for four
        classifiers or fewer, where no pair can be named.
    """
    m = len(score)
    live = np.arange(m) if constant is None else np.flatnonzero(~constant)
    if len(live) < FEWEST_CLASSIFIERS or m > MOST_SCORED:
        return []
    found: dict[Partition, None] = {}
    for linkage in LINKAGES:
        for groups in _cuts(score[np.ix_(live, live)], linkage):
            if len(groups) >= FEWEST_BLOCKS:
                found[whole_partition([live[group].tolist() for group in groups], m)] = None
    return list(found)


def _cuts(
    score: Array, linkage: Literal["single", "average", "complete"]
) -> Iterator[list[list[int]]]:
    """Clusters after each merger of a linkage tree, for as long as none is too large."""
    from scipy.cluster import hierarchy
    from scipy.spatial.distance import squareform

    distance = score.max() - score
    np.fill_diagonal(distance, 0.0)
    tree = hierarchy.linkage(squareform(distance, checks=False), linkage)
    clusters = {place: [place] for place in range(len(score))}
    for step, (one, two, _, size) in enumerate(tree):
        if size > LARGEST_BLOCK:
            return
        clusters[len(score) + step] = clusters.pop(int(one)) + clusters.pop(int(two))
        yield list(clusters.values())


def find_groups(
    blocks: Blocks,
    seen: Moments,
    prior: Prior,
    prevalence: float | None = None,
    *,
    known: Model | None = None,
    explains: Callable[[GroupModel], bool] | None = None,
) -> GroupModel:
    """Find the groups of classifiers that share errors: the partition of smallest BIC.

    Parameters
    ----------
    blocks : Blocks
        Of binary votes.
    seen : Moments
    prior : Prior
    prevalence : float, optional
        Pr(positive) where it is known.
    known : Model, optional
        Holds the rates that `prior` calls fixed.
    explains : callable, optional
        Whether a fit leaves no pair of different blocks unexplained. Where the choice of BIC does
        not, it gives way to a far likelier partition that does, if there is one: a group that
        copies much may pass for the class itself, which BIC likes and the residuals do not.

    Returns
    -------
    GroupModel
        Without groups where no candidate is better than the plain model.
    """
    spread = thinned(blocks.tally, SPREAD)
    fits: dict[Partition, GroupModel] = {}

    def bic(partition: Partition) -> float:
        if partition not in fits:
            fits[partition] = fit_partition(
                spread, partition, prior, prevalence, seen, known, rough=True
            )
        return fits[partition].bic

    score = pointer(seen.covariance) if len(seen.mean) <= MOST_SCORED else np.zeros((0, 0))
    candidates = candidate_partitions(score, seen.constant) if len(score) else []
    best = min([whole_partition([], len(seen.mean)), *candidates], key=bic)
    for _ in range(MOST_CHANGES if candidates else 0):
        better = min([best, *_changes(best, score, seen.constant)], key=bic)
        if better == best:
            break
        best = better

    def whole(partition: Partition) -> GroupModel:
        start = fits[partition]
        return fit_partition(blocks.tally, partition, prior, prevalence, seen, known, start)

    chosen = whole(best)
    if explains is None or explains(chosen):
        return chosen
    for other in _far_likelier(fits, best)[:MOST_ASKED]:
        instead = whole(other)
        if explains(instead):
            return instead
    return chosen


def _far_likelier(fits: dict[Partition, GroupModel], best: Partition) -> list[Partition]:
    """Partitions that a likelihood ratio prefers to the best, beyond what trying many explains; by BIC."""
    from scipy.special import chdtrc

    found = []
    for partition, model in fits.items():
        extra = model.parameters - fits[best].parameters
        gain = 2.0 * (model.log_likelihood - fits[best].log_likelihood)
        if extra > 0 and gain > 0 and chdtrc(extra, gain) * len(fits) < FAR_LIKELIER:
            found.append(partition)
    return sorted(found, key=lambda partition: fits[partition].bic)


def _changes(
    partition: Partition, score: Array, constant: NDArray[np.bool_]
) -> Iterator[Partition]:
    """Partitions one step away: a group dissolved, a member set free, two blocks that point merged."""
    groups = [block for block in partition if len(block) > 1]
    m = len(score)
    for group in groups:
        others = [other for other in groups if other != group]
        yield whole_partition(others, m)
        if len(group) > 2:
            for member in group:
                yield whole_partition([*others, [i for i in group if i != member]], m)
    pairs = [
        (float(score[np.ix_(one, two)].mean()), one, two)
        for one, two in combinations([b for b in partition if not constant[list(b)].any()], 2)
        if len(one) + len(two) <= LARGEST_BLOCK
    ]
    if len(partition) - constant.sum() > FEWEST_BLOCKS:
        for _, one, two in sorted(pairs, reverse=True)[:MERGERS]:
            yield whole_partition([*(g for g in groups if g not in (one, two)), one + two], m)


def largest_cross_residual(residuals: Array, partition: Partition) -> float:
    """Largest standardised residual of a pair of classifiers of different blocks.

    Parameters
    ----------
    residuals : (m, m) array
        Of the pairs' covariances under :meth:`GroupModel.marginal`. Given the class, a pair of
        different blocks is independent: its fitted covariance, and the variance of the sample's,
        are those of the plain model. What fitting takes up comes from the group model's own
        covariance of the logits.
    partition : partition
    """
    return float(np.max(np.abs(residuals[across(partition)]), initial=0.0))


def across(partition: Partition) -> NDArray[np.bool_]:
    """Pairs of classifiers of different blocks, (m, m)."""
    m = sum(map(len, partition))
    apart = np.ones((m, m), dtype=bool)
    for block in partition:
        apart[np.ix_(block, block)] = False
    return apart


def group_rule(model: GroupModel) -> Rule:
    """Log posterior of each class under the group model, up to a constant.

    Single classifiers have weights, groups a table of their joint votes, missing ones among them.
    """
    weights = model.marginal().tables()
    together = []
    for block, table in zip(model.partition, model.tables, strict=True):
        if len(block) > 1:
            weights[list(block)] = 0.0
            fitted = compatible(len(block)) @ table.T
            together.append(Together(block, np.log(np.maximum(fitted, FLOOR))))
    return Rule(model.marginal().log_prior(), weights, together=tuple(together))
