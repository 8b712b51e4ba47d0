"""K classes: from the tally to confusion matrices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labelfree._intervals import inverse
from labelfree._latent_class import Fit, Model, Prior, fit, free_logits, information
from labelfree._products import Blocks
from labelfree._starts import majority_start

Array = NDArray[np.float64]
Row = tuple[int, int]  # a row of the confusion matrices: (place of the classifier, true class)

MOST_CLASSES = 10  # with intervals
MOST_PARAMETERS = 3000  # beyond, the information is too large to invert


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
        Sum of the one-vs-rest class probabilities, less one.
    converged : bool
    start : Model
        Where the search for the posterior mode started.
    """

    model: Model
    prior: Prior
    fit: Fit
    covariance: Array | None
    missed: float
    converged: bool
    start: Model


def many_classes(
    blocks: Blocks,
    *,
    method: str = "map",
    ordered: bool = False,  # noqa: ARG001 - the start is the votes' own so far, ordered or not
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
        "map" goes on to the posterior mode; the others stay with the one-vs-rest estimates, with
        the class imbalance by the restricted likelihood or from third moments.
    ordered : bool
        The classes stand in order.
    pseudo_count : float
        In every cell of the prior, unless `prior` is given.
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
    """
    shape = blocks.tally.shape
    own = prior or Prior.flat(shape.classifiers, shape.classes, pseudo_count)
    own = _with_known(own, class_probabilities, fixed or {}, believed or {})
    start = _holding(majority_start(blocks), class_probabilities, fixed or {})
    fitted = fit(blocks, start, own)
    final = method == "map"
    return ManyClasses(
        fitted.model if final else start,
        own,
        fitted,
        covariance_of_logits(blocks, fitted.model, own) if final else None,
        0.0,
        fitted.converged,
        start,
    )


def covariance_of_logits(blocks: Blocks, model: Model, prior: Prior) -> Array | None:
    """Covariance of the logits at the posterior mode; None where there is none, or it costs too much."""
    classes = len(model.class_probabilities)
    free = free_logits(model, prior)
    if classes > MOST_CLASSES or len(free) > MOST_PARAMETERS:
        return None
    if not np.isfinite(blocks.tally.sample_size):
        return np.zeros((len(free), len(free)))
    return inverse(information(blocks, model, prior), free)


def _with_known(
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


def _holding(model: Model, class_probabilities: Array | None, fixed: Mapping[Row, Array]) -> Model:
    """Put what is known in its place."""
    confusion = model.confusion.copy()
    for place, row in fixed.items():
        confusion[place] = row
    classes = model.class_probabilities if class_probabilities is None else class_probabilities
    return Model(np.asarray(classes, dtype=np.float64), confusion)
