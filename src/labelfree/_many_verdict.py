"""What the votes say for and against an answer of K classes, or of a crowd: signal, shared errors, gaps.

With two classes and few classifiers the covariances answer these questions. With more, what counts
is how often classifiers agree: beyond what their own frequencies of labels explain (there is a
signal), and beyond what their confusion matrices explain (they share errors).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelfree._consensus import Rule, winners
from labelfree._dependence import EXACT_RESIDUAL, LEAST_LEFT, Alarm
from labelfree._errors import listed
from labelfree._latent_class import FLOOR, Model
from labelfree._many_intervals import softmax_slopes
from labelfree._products import Block, Blocks, label_pairs
from labelfree._shared_prior import SILENT
from labelfree._verdict import (
    EXACT_SIGNAL,
    NEEDED,
    NO_SIGNAL,
    NO_THIRD,
    WEAK_SIGNAL,
    WIDE,
    Findings,
)

Array = NDArray[np.float64]

MOST_PAIRED = 2000  # classifiers times classes of which all pairs are looked at
TAILS = 3.0  # by which the normal tails fell short of cells that the fit nearly takes up: without it, size .1 at 5 %
CERTAIN = 1e6  # standard errors that stand for certainty
LEAST_EXPECTED = 5.0  # variance of a cell of a pair from which the normal distribution serves
FAR_FROM_ONE = 0.05  # by which class probabilities may miss summing to one before it is a doubt
MOST_UNNAMED = 5  # classifiers among which, at K > 2, the largest residual seldom was the copies'
MIXED_UP = 0.5  # share of a class's votes from which another label is said to stand for it


# --- is there a signal? -------------------------------------------------------------------------


def label_shares(votes: Array) -> Array:
    """How often each classifier gives each label, (m, K), from its counts of labels.

    Labelling functions give one label or none. Where most votes are theirs, it tells something that they
    speak up on the same items, and so theirs are the frequencies of all votes together.
    """
    total = votes.sum(axis=1, keepdims=True)
    even = np.full_like(votes, 1.0 / votes.shape[1])
    shares = np.asarray(np.divide(votes, total, out=even, where=total > 0))
    one_label = (votes > 0).sum(axis=1) == 1
    if votes[one_label].sum() > SILENT * votes.sum():
        shares[one_label] = votes.sum(axis=0) / votes.sum()
    return shares


def agreement(blocks: Blocks, shares: Array, left_out: int | None = None) -> float:
    """Standardised agreement of all pairs beyond what their frequencies of labels explain.

    With x_i the one-hot vote of classifier i less its frequencies, the sum of x_i · x_j over the pairs of
    an item is ½ (‖Σ x_i‖² − Σ ‖x_i‖²); its mean is zero where everyone guesses, whatever the frequencies.

    Parameters
    ----------
    blocks : Blocks
    shares : (m, K) array
    left_out : int, optional
        Place of a classifier that is passed over.

    Returns
    -------
    float
        Normal for guesses; infinite where exact frequencies show any agreement.
    """
    moved, squared = _centred(shares)
    if left_out is not None:
        moved[left_out], squared[left_out] = 0.0, 0.0

    def work(block: Block) -> tuple[float, float, float]:
        together = block.score(moved)
        pairs = 0.5 * ((together**2).sum(axis=1) - block.score(squared)[:, 0])
        return (
            float(block.counts @ pairs),
            float(block.counts @ pairs**2),
            float(block.counts.sum()),
        )

    total, squares, items = blocks.total(work)
    if squares <= 0.0:
        return 0.0
    if not np.isfinite(blocks.tally.sample_size):
        return float("inf") if total > EXACT_SIGNAL * np.sqrt(squares * items) else 0.0
    return float(total / np.sqrt(squares))


def most_agreed_with(blocks: Blocks, shares: Array) -> int:
    """Place of the classifier whose agreements with all others add up to the most."""
    moved, squared = _centred(shares)

    def work(block: Block) -> tuple[Array, Array]:
        weighted = block.score(moved) * block.counts[:, None]
        return block.gather(weighted), block.gather(block.counts[:, None])

    others, votes = blocks.total(work)
    own = (votes[:, :, 0] * squared[:, :, 0]).sum(axis=1)
    return int(np.argmax(np.einsum("ivk,ivk->i", others, moved) - own))


def _centred(shares: Array) -> tuple[Array, Array]:
    """Scores of each vote: the one-hot vote less the frequencies, and its squared length."""
    classes = shares.shape[1]
    moved = np.eye(classes)[None] - shares[:, None, :]
    return moved, (moved**2).sum(axis=2, keepdims=True)


def look_for_agreement(
    findings: Findings, blocks: Blocks, votes: Array, classifiers: Sequence[str]
) -> None:
    """Ask whether classifiers agree beyond guessing, and whether more than two of them do."""
    from scipy.special import ndtr

    shares = label_shares(votes)
    chance = float(ndtr(-agreement(blocks, shares)))
    others = chance
    if chance > NO_SIGNAL:
        findings.unidentified(
            "The classifiers agree no more than guessing would make them, so their labels tell nothing of the classes.",
            "More items, or better classifiers.",
        )
        return
    if len(classifiers) < MOST_PAIRED:
        strongest = most_agreed_with(blocks, shares)
        others = float(ndtr(-agreement(blocks, shares, strongest)))
        if others > NO_THIRD:
            findings.unidentified(
                f"Without {classifiers[strongest]} the others look like guesses; it takes {NEEDED} classifiers that "
                "tell something.",
                "More informative classifiers, or more items.",
            )
            return
    if max(chance, others) > WEAK_SIGNAL:
        findings.doubt(
            "The classifiers agree hardly more than guessing would make them, given how often each says what.",
            "More items, or better classifiers.",
        )


# --- do they share errors? ------------------------------------------------------------------------


def pair_alarm(blocks: Blocks, model: Model, covariance: Array | None) -> Alarm:
    """Test the independent model against the joint votes of each pair.

    Two classifiers vote v and w together with probability Σ_y p_y θ_iyv θ_jyw. How far the observed share
    is from that, in its standard errors, is held against the normal distribution, corrected for the
    number of cells of all pairs. As the model was fitted to the same votes, the variance that the fit takes
    up is subtracted: Ξ − Δ I⁻¹ Δᵀ, as for two classes. Where I⁻¹ is too large to have, it is not, and
    the alarm goes off too seldom.

    Parameters
    ----------
    blocks : Blocks
    model : Model
    covariance : (D, D) array, or None
        I⁻¹, of the logits.

    Returns
    -------
    Alarm
        Its residuals are the largest of each pair's cells, positive where the pair agrees more than the
        model says. Not testable with three classifiers of two classes, which fit any votes, or
        with so many that their pairs are not looked at.
    """
    from scipy.special import ndtr

    m, classes, _ = model.confusion.shape
    if m * classes > MOST_PAIRED or (m <= NEEDED and classes == 2):
        return Alarm(testable=False, p_value=1.0, residuals=np.zeros((0, 0)), pair=(0, 1))
    seen = _joint_votes(blocks)
    met = seen.sum(axis=(1, 3), keepdims=True)
    joint = _joint_chances(model)
    missed, variance = seen - met * joint, met * joint * (1.0 - joint)
    others = ~np.eye(m, dtype=bool)[:, None, :, None]
    if np.isfinite(blocks.tally.sample_size):
        left = variance if covariance is None else variance - met**2 * _fitted(model, covariance)
        told = (variance >= LEAST_EXPECTED) & (left >= LEAST_LEFT * variance) & others
        scores = np.divide(
            missed, np.sqrt(np.maximum(left, FLOOR)), out=np.zeros_like(missed), where=told
        )
    else:  # exact frequencies fit exactly, or not at all
        told = (met > 0) & others & np.ones_like(joint, dtype=bool)
        scores = np.where(
            told & (np.abs(missed) > EXACT_RESIDUAL * met), np.sign(missed) * CERTAIN, 0.0
        )
    cells = int(told.sum()) // 2
    largest = float(np.max(np.abs(scores), initial=0.0))
    more = np.einsum("ikjk->ij", missed) >= 0
    residuals = np.abs(scores).max(axis=(1, 3)) * np.where(more, 1.0, -1.0)
    place = np.unravel_index(int(np.argmax(residuals)), residuals.shape)
    first, second = sorted(map(int, place))
    p_value = min(1.0, TAILS * 2.0 * cells * float(ndtr(-largest))) if cells else 1.0
    return Alarm(cells > 0, p_value, residuals, (first, second) if first != second else (0, 1))


def _joint_votes(blocks: Blocks) -> Array:
    """How often each pair voted each pair of labels together, (m, K, m, K)."""
    (together,) = blocks.total(lambda block: (block.cooccurrence(),), narrow=True)
    return label_pairs(together, len(blocks.tally.classes))


def _joint_chances(model: Model) -> Array:
    """The same as the model has it, as probabilities."""
    p, confusion = model.class_probabilities, model.confusion
    return np.asarray(np.einsum("y,iyv,jyw->ivjw", p, confusion, confusion, optimize=True))


def _fitted(model: Model, covariance: Array) -> Array:
    """Variance of each fitted chance of a pair's votes, (m, K, m, K): Δ I⁻¹ Δᵀ, cell by cell."""
    p, confusion = model.class_probabilities, model.confusion
    m, classes, _ = confusion.shape
    first, width = classes - 1, classes * (classes - 1)
    by_row = np.einsum("y,iyva,jyw->ivjwya", p, softmax_slopes(confusion), confusion, optimize=True)
    own = by_row.reshape(
        m, classes, m, classes, width
    )  # of the cell (i, v, j, w), by the logits of i
    of_shares = softmax_slopes(p)
    shares = np.einsum("iyv,jyw,yc->ivjwc", confusion, confusion, of_shares, optimize=True)
    rows = covariance[first:, first:].reshape(m, width, m, width)
    each = rows[np.arange(m), :, np.arange(m), :]
    across = covariance[:first, first:].reshape(first, m, width)
    alone = np.einsum("ivjwa,iab,ivjwb->ivjw", own, each, own, optimize=True)
    alone += 2.0 * np.einsum("ivjwc,cia,ivjwa->ivjw", shares, across, own, optimize=True)
    both = np.einsum("ivjwa,iajb,jwivb->ivjw", own, rows, own, optimize=True)
    whole = covariance[:first, :first]
    of_classes = np.einsum("ivjwc,cd,ivjwd->ivjw", shares, whole, shares, optimize=True)
    return np.asarray(alone + alone.transpose(2, 3, 0, 1) + 2.0 * both + of_classes)


def worth(tested: Alarm, model: Model, blocks: Blocks) -> float:
    """As many independent classifiers tell about as much: m / (1 + (m − 1) ρ), Kish's design effect.

    ρ is the mean correlation of two classifiers' being right beyond what their rates explain, as
    their agreements show it: where that moves together by c, they agree about 2c more often.
    """
    m = len(model.confusion)
    if not tested.raised or m < 2 or not tested.residuals.size:
        return float(m)
    seen = _joint_votes(blocks)
    met, agreed = seen.sum(axis=(1, 3)), np.einsum("ikjk->ij", seen)
    joint = np.einsum("ikjk->ij", _joint_chances(model))
    right = np.einsum("ikk->ik", model.confusion) @ model.class_probabilities
    deviation = np.sqrt(np.maximum(right * (1.0 - right), FLOOR))
    pairs = np.triu(met > 0, 1)
    excess = (agreed[pairs] / met[pairs] - joint[pairs]) / 2.0
    scale = np.outer(deviation, deviation)[pairs]
    correlation = float((met[pairs] * excess).sum() / (met[pairs] * scale).sum())
    return float(m / (1.0 + (m - 1) * min(max(correlation, 0.0), 1.0)))


# --- what else there is to say --------------------------------------------------------------------


def look_at_shared_errors(
    findings: Findings, tested: Alarm, classifiers: Sequence[str], effective: float, *, asked: bool
) -> None:
    """Say whether they share errors, that it was not looked at, or that it cannot be seen."""
    if not asked:
        findings.doubt(
            'Whether the classifiers share errors was not looked at, as dependence="ignore" asked.',
            'Leave dependence= at "auto".',
        )
    elif not tested.testable:
        findings.doubt(
            "Whether the classifiers share errors was not tested: too few pairs of them met on enough items, "
            "or there are too many to look at.",
            "More votes by the same classifiers on the same items, or gold labels (gold=).",
        )
    elif tested.raised:
        first, second = (classifiers[place] for place in tested.pair)
        few = len(classifiers) <= MOST_UNNAMED
        who = "which of them, so few cannot show" if few else f"{first} and {second} the most"
        findings.doubt(
            f"The classifiers agree more than their rates explain ({who}), so they share errors; "
            f"together they tell about as much as {effective:.1f} independent ones, and the intervals show sampling "
            "error only.",
            "50 to 100 gold labels of random items (gold=).",
        )


def look_at_classes(
    findings: Findings, model: Model, votes: Array, classes: Sequence[Any], missed: float
) -> None:
    """Ask of every class whether anyone voted it, and whether its own label is what is mostly said of it."""
    given = votes.sum(axis=0)
    silent = [repr(label) for label, count in zip(classes, given, strict=True) if count == 0]
    if silent:
        findings.doubt(
            f"Nobody voted {listed(silent)}; what is said of it is a guess that the votes do not touch.",
            "Leave the label out of classes=, or add classifiers that use it.",
        )
    weights = votes.sum(axis=1)
    typical = np.einsum("i,iyv->yv", weights / weights.sum(), model.confusion)
    for code in np.flatnonzero(given > 0).tolist():
        other = int(np.argmax(typical[code]))
        if other != code and typical[code, other] > MIXED_UP:
            findings.doubt(
                f"Items that are {classes[code]!r} are mostly called {classes[other]!r}, so the two may stand for each "
                "other.",
                "A few gold labels of random items (gold=).",
            )
    if abs(missed) > FAR_FROM_ONE:
        findings.doubt(
            f"Found two classes at a time, the class probabilities missed summing to one by {missed:+.2f}.",
            'method="map", which finds all classes together.',
        )


def look_at_widths(findings: Findings, widths: Array | None, why: str = "") -> None:
    """Say when sampling error alone leaves the classifiers' accuracy open, or was not computed."""
    if widths is None:
        findings.doubt(
            f"There are no intervals: {why}.",
            'Fewer classes, or method="map".',
        )
    elif len(widths) and np.median(widths) > WIDE:
        findings.doubt(
            f"There are too few votes: a typical classifier's accuracy is known to within ±{np.median(widths) / 2:.2f} only.",
            "More votes of each classifier.",
        )


def look_at_parts(findings: Findings, blocks: Blocks) -> None:
    """Say when the classifiers fall into parts that never met, not even by way of others."""
    number, largest = _parts(blocks)
    if number > 1:
        findings.doubt(
            f"The classifiers fall into {number} parts that share no item, the largest with {largest} classifiers; "
            "nothing in the votes sets one part against another.",
            "Items on which classifiers of different parts vote.",
        )


def _parts(blocks: Blocks) -> tuple[int, int]:
    """Count the connected parts of the graph of classifiers and items, and the classifiers of the largest."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    m = len(blocks.tally.classifiers)

    def work(block: Block) -> Any:
        """Link every pattern's first classifier to its others."""
        if block.voted is None:
            return None
        part = csr_array(block.voted)
        cast = np.diff(part.indptr)
        leaders = np.repeat(part.indices[part.indptr[:-1][cast > 0]], cast[cast > 0])
        return csr_array((np.ones(len(leaders)), (leaders, part.indices)), shape=(m, m))

    links = blocks.each(work)
    if any(each is None for each in links):
        return 1, m  # somewhere everyone voted
    graph = sum(links[1:], start=links[0])
    voted = (graph.sum(axis=0) > 0) | (graph.sum(axis=1) > 0)
    _, labels = connected_components(graph, directed=False)
    sizes = np.bincount(labels[voted])
    sizes = sizes[sizes > 0]
    return len(sizes), int(sizes.max(initial=0))


def look_at_unanimous(findings: Findings, rule: Rule, voted: Array, classes: Sequence[Any]) -> None:
    """Say when the consensus overrules classifiers that all agree."""
    m, codes = len(rule.weights), np.flatnonzero(voted.sum(axis=0) > 0)
    unanimous = Block(
        np.repeat(codes[:, None].astype(np.int8), m, axis=1), np.ones(len(codes)), len(classes)
    )
    overruled = [repr(classes[code]) for code in codes[winners(rule.scores(unanimous)) != codes]]
    if overruled:
        findings.doubt(
            f"The consensus overrules a unanimous vote for {listed(overruled)}.",
            "A few gold labels (gold=) would show who is right.",
        )
