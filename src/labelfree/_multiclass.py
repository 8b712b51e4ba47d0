"""K classes: from the tally to confusion matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labelfree._intervals import inverse
from labelfree._kinds import fit_kinds, prior_of_kinds
from labelfree._latent_class import (
    FLOOR,
    Fit,
    Model,
    Prior,
    climb,
    expect,
    fit,
    free_logits,
    information,
    log_prior_density,
)
from labelfree._one_vs_rest import one_vs_rest
from labelfree._ordered import fit_monotone, monotone, threshold_splits, threshold_votes
from labelfree._products import Blocks
from labelfree._shared_prior import Shared, shared
from labelfree._starts import (
    BESIDE,
    LEAST,
    Row,
    holding,
    majority_start,
    start_of_diagonals,
    with_known,
)

Array = NDArray[np.float64]

MOST_CLASSES = 10  # with intervals
MOST_SPECTRAL = 1000  # classifiers of which all pairs are looked at; of more, most never meet
MOST_BESIDE = 200  # the same, where the search starts elsewhere
TRIAL_ROUNDS = 5  # of EM from every start, before the best goes on
MOST_PARAMETERS = 1000  # beyond, each classifier has an information of its own, which covers as well and costs less


@dataclass(frozen=True)
class ManyClasses:
    """What the votes say of K classes.

    Attributes
    ----------
    model : Model
    prior : Prior
        That the fit used.
    fit : Fit
    covariance : (D, D) array, or None
        Of the logits, in the order of :func:`labelfree._latent_class.information`; None where the
        information is singular, or where there are more than ten classes or too many parameters.
    missed : float
        Sum of the class probabilities found two classes at a time, less one; of ordered classes, by
        how much the shares of items above the thresholds fail to fall. Zero where none were found.
    converged : bool
    start : Model
        What two classes at a time gave; the majority's, where there are too many classifiers for it.
    pool : Shared, optional
        The prior that all classifiers share, where the fit used it.
    posterior : (D, D) array, or None
        Covariance of the logits with all that the prior says, as the fit gave way to it.
    """

    model: Model
    prior: Prior
    fit: Fit
    covariance: Array | None
    missed: float
    converged: bool
    start: Model
    pool: Shared | None = None
    posterior: Array | None = None


def many_classes(
    blocks: Blocks,
    *,
    method: str = "map",
    ordered: bool = False,
    pseudo_count: float = 1.0,
    prior: Prior | None = None,
    class_probabilities: Array | None = None,
    fixed: Mapping[Row, Array] | None = None,
    believed: Mapping[Row, Array] | None = None,
) -> ManyClasses:
    """Find class probabilities and confusion matrices of K classes.

    Parameters
    ----------
    blocks : Blocks
    method : {"map", "likelihood", "tensor"}
        "tensor" and "likelihood" take two classes at a time, with the imbalance from the third
        moments or the restricted likelihood; "map" goes on to the posterior mode: from the majority's
        shares under the prior that all classifiers share; without a prior, from whichever is likelier.
    ordered : bool
        The classes stand in order: two at a time are those above a threshold and those below, and
        at the posterior mode each classifier's votes tend upwards as the true class rises.
    pseudo_count : float
        Multiplies the pseudo-votes of the prior that all classifiers share, unless `prior` is given;
        0 turns it off. Of ordered classes, in every row `STRENGTH`
        times as many, spread as the classifier's kind has it (see the room of kinds).
    prior : Prior, optional
        Pseudo-counts of every class and every cell; what is known is laid on top.
    class_probabilities : (K,) array, optional
        Where they are known.
    fixed : mapping of (place, true class) to (K,) arrays, optional
        Rows of confusion matrices that are known.
    believed : mapping of (place, true class) to (K,) arrays, optional
        Pseudo-counts of single rows, in place of the prior's.

    Returns
    -------
    ManyClasses

    Notes
    -----
    Two classes at a time are exact where each classifier's wrong votes for a class come alike from
    all other classes; elsewhere the votes against the rest are a mixture, their covariance has a
    rank above one, and class probabilities and diagonals are off even with endless votes. The
    posterior mode has no such fault: with exact pattern probabilities and no prior it gives the
    matrices back. Beyond `MOST_SPECTRAL` classifiers, whose pairs hardly meet, the start is the
    majority's alone.

    Examples
    --------
    >>> import numpy as np
    >>> from labelfree import Tally
    >>> from labelfree._products import Blocks
    >>> codes = np.repeat(np.arange(3), 30)[:, None].repeat(4, axis=1)
    >>> codes[::7, 0], codes[1::7, 1], codes[2::7, 2], codes[3::7, 3] = 0, 1, 2, 0
    >>> votes = Tally.from_codes(codes, np.ones(90), classes=("a", "b", "c"))
    >>> many_classes(Blocks(votes)).model.class_probabilities.round(2).tolist()
    [0.33, 0.33, 0.33]
    """
    shape = blocks.tally.shape
    majority = majority_start(blocks)
    ordered = ordered and shape.classes > 2  # two classes stand in any order
    starts, missed, settled = [majority], 0.0, True
    flat = Prior.flat(shape.classifiers, shape.classes, pseudo_count)
    if ordered and method == "map":
        starts.append(fit_kinds(blocks, majority, pseudo_count))
        flat = prior_of_kinds(starts[-1], pseudo_count)
    pool = None
    if method == "map" and prior is None and not ordered and pseudo_count > 0:
        pool = shared(
            blocks,
            majority,
            weight=pseudo_count,
            class_probabilities=class_probabilities,
            fixed=fixed,
            believed=believed,
        )
        flat = pool.prior
    own = with_known(prior or flat, class_probabilities, fixed or {}, believed or {})
    most = MOST_SPECTRAL if pool is None else MOST_BESIDE
    if shape.classifiers <= most or method != "map":
        way = "likelihood" if method == "map" else method
        # Under the pool's prior the splits start nothing, and only tell by how much they missed.
        of = blocks.thinned() if pool is not None else blocks
        starts[:0], missed, settled = _two_at_a_time(
            of, majority, way, ordered=ordered, rough=method == "map"
        )
    starts = [holding(start, class_probabilities, fixed or {}) for start in starts]
    if method != "map":
        model = starts[0]
        reached = Fit(model, expect(blocks, model).log_likelihood, settled, 0)
        return ManyClasses(model, own, reached, None, missed, settled, model)
    if pool is not None:
        fitted = Fit(pool.model, pool.log_likelihood, pool.converged, pool.rounds)
    else:
        start = _most_likely(blocks, starts, own)
        fitted = fit(blocks, start, own)
        if ordered and not _is_monotone(fitted.model):
            fitted = fit_monotone(blocks, start, own)
    posterior, covariance = covariance_of_logits(blocks, fitted.model, own, pool)
    if covariance is not None and pool is not None:
        covariance = _untold(covariance, pool, fixed or {})
    return ManyClasses(
        fitted.model, own, fitted, covariance, missed, fitted.converged, starts[0], pool, posterior
    )


def _two_at_a_time(
    blocks: Blocks, majority: Model, way: str, *, ordered: bool, rough: bool
) -> tuple[list[Model], float, bool]:
    """Start from one class against the rest, or from thresholds; by how much they missed; whether they settled."""
    if ordered and len(majority.class_probabilities) > 2:
        found, models = threshold_splits(blocks, majority, way, rough=rough)
        votes = threshold_votes(blocks, models) + BESIDE * majority.confusion
        model = Model(np.maximum(found.class_probabilities, LEAST), monotone(votes))
    else:
        found = one_vs_rest(blocks, majority, way, rough=rough)
        model = start_of_diagonals(blocks, found.class_probabilities, found.diagonal, majority)
    return [model], found.missed, found.converged


def _most_likely(blocks: Blocks, starts: Sequence[Model], prior: Prior) -> Model:
    """Let a few rounds of EM go on from each start; the one with the highest posterior goes on."""
    if len(starts) == 1:
        return starts[0]
    tried = [climb(blocks, start, prior, TRIAL_ROUNDS) for start in starts]
    heights = [each.log_likelihood + log_prior_density(each.model, prior) for each in tried]
    return tried[int(np.argmax(heights))].model


def _is_monotone(model: Model) -> bool:
    """Whether every classifier's votes tend upwards as the true class rises."""
    above = model.confusion[:, :, ::-1].cumsum(axis=2)[:, :, -2::-1]
    return bool((np.diff(above, axis=1) >= -1e-9).all())


def covariance_of_logits(
    blocks: Blocks, model: Model, prior: Prior, pool: Shared | None = None
) -> tuple[Array | None, Array | None]:
    """Covariance of the logits at the posterior mode, and what it is without what the prior says twice.

    None where there is none, or it costs too much.
    """
    classes = len(model.class_probabilities)
    free = free_logits(model, prior)
    if classes > MOST_CLASSES or len(free) > MOST_PARAMETERS:
        return None, None
    if not np.isfinite(blocks.tally.sample_size):
        return (np.zeros((len(free), len(free))),) * 2
    told = information(blocks, model, prior)
    posterior = inverse(told, free)
    if pool is None:
        return posterior, posterior
    told_twice = np.zeros_like(told)
    classes = len(model.class_probabilities)
    width = classes * (classes - 1)
    for i, surplus in enumerate(own_accuracy_told(pool)):
        place = slice(classes - 1 + i * width, classes - 1 + (i + 1) * width)
        told_twice[place, place] = surplus
    alone = inverse(told - told_twice, free)
    return posterior, posterior if alone is None else alone


def own_accuracy_told(pool: Shared) -> Array:
    """What the prior says of each classifier's own accuracy, as information on its logits, (m, D, D).

    The mean of its prior rests on the accuracy that its own votes show; taken for known, a strong
    prior would count these twice. With P the prior's part and u the move of the logits as the
    accuracy a grows, P u uᵀ P / uᵀ P u is what it says along u; only the pool's own pull on a,
    so many votes at a (1 − a) each, stays of it.
    """
    confusion, pseudo = pool.model.confusion, pool.prior.confusion.sum(axis=2)
    m, classes, _ = confusion.shape
    diagonal = np.eye(classes)
    moves = (diagonal - (1.0 - diagonal) / (classes - 1)) / np.maximum(confusion, FLOOR)
    moves = moves[:, :, 1:] - moves[:, :, :1]
    pseudo = np.where(pool.types.alike, 0.0, pseudo)[:, :, None]
    above = confusion[:, :, 1:]
    inside = (above * moves).sum(axis=2, keepdims=True)
    pushes = (pseudo * above * (moves - inside)).reshape(m, -1)  # P u
    along = (pushes * moves.reshape(m, -1)).sum(axis=1)  # uᵀ P u
    accuracy = np.einsum("iyy->i", confusion) / classes
    of_pool = pool.pull / np.maximum(accuracy * (1.0 - accuracy), FLOOR)
    share = np.maximum(1.0 - of_pool / np.maximum(along, FLOOR), 0.0) / np.maximum(along, FLOOR)
    return np.asarray(share[:, None, None] * pushes[:, :, None] * pushes[:, None, :])


def _untold(covariance: Array, pool: Shared, known: Mapping[Row, Array]) -> Array:
    """Give rates that the votes do not tell, and that rest on the pool alone, the prior's own spread."""
    from scipy.special import polygamma

    if pool.prior.fixed_rates is None:
        return covariance
    wide = covariance.copy()
    classes = pool.prior.confusion.shape[1]
    for row in np.flatnonzero(pool.prior.fixed_rates.ravel()).tolist():
        if divmod(row, classes) in known:
            continue
        spread = polygamma(1, pool.prior.confusion.reshape(-1, classes)[row])
        place = classes - 1 + row * (classes - 1) + np.arange(classes - 1)
        wide[np.ix_(place, place)] = np.diag(spread[1:]) + spread[0]
    return wide
