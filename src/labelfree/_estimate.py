"""The front door: votes in, graded classifiers out. Calls the rooms in their order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelfree._errors import OptionsError, VotesError, listed
from labelfree._imbalance import Imbalance, likelihood_imbalance, tensor_imbalance
from labelfree._latent_class import Model, Prior, fit
from labelfree._moments import Moments, moments
from labelfree._products import Blocks
from labelfree._rank_one import WAYS, RankOne, rank_one
from labelfree._rates import clipped, rates, smallest_rate
from labelfree._result import Estimate
from labelfree._tally import Tally, tally
from labelfree._verdict import (
    Findings,
    look_at_imbalance,
    look_at_search,
    look_at_sign,
    look_for_signal,
)
from labelfree._votes import Label

Array = NDArray[np.float64]

METHODS = ("map", "likelihood", "tensor")


def estimate(
    votes: Any,
    *,
    method: str = "map",
    prevalence: float | None = None,
    positive: Label = None,
    classes: Sequence[Label] | None = None,
    missing: Label | Sequence[Label] = (),
    classifiers: Sequence[str] | None = None,
    item: str | None = None,
    classifier: str | None = None,
    vote: str | None = None,
    vector: str = "triplets",
    prior: float = 1.0,
) -> Estimate:
    """Grade classifiers from their votes alone.

    Parameters
    ----------
    votes : array (n, m), dataframe, mapping of columns, path of a file, or Tally
        Rows are items, columns are three or more classifiers; or the long form, one row a vote,
        when `classifier` and `vote` name its columns. Missing votes may be anywhere: null, None,
        NaN, or what `missing` says.
    method : {"map", "likelihood", "tensor"}, default "map"
        "tensor" takes the imbalance from the third moments (JNK Algorithm 1), "likelihood" from
        the restricted likelihood (JNK Algorithm 2), and "map" goes on from there to the posterior
        mode of all rates together.
    prevalence : float, optional
        Pr(positive), where it is known.
    positive : label, optional
        The positive label; by default the greater in sorted order: 1 of −1/1 and of 0/1, True,
        "yes" of no/yes.
    classes : sequence of two labels, optional
        Both labels, the positive one last; any other label is refused.
    missing : label or sequence of labels, optional
        What stands for a missing vote.
    classifiers : sequence of str, optional
        Names for the columns of an array, or the columns of a table that hold votes.
    item, classifier, vote : str, optional
        Columns of the long form. `item` alone names the items of a wide table (by default a column
        called "item", where there is one).
    vector : {"triplets", "log-linear", "iterated"}, default "triplets"
        How the diagonal of the covariance is filled in on the way to the rank-one vector.
    prior : float, default 1
        Pseudo-votes in every cell of every classifier's confusion matrix, and pseudo-items of every
        class, for method "map": 1 is a Beta(2, 2) prior, 0 turns the prior off.

    Returns
    -------
    Estimate

    Notes
    -----
    Assumes that classifiers err independently given the class, that items are drawn alike, and that
    more than half of the classifiers are better than chance. ``estimate.verdict`` says what speaks
    against it.

    Examples
    --------
    >>> import labelfree as lf
    >>> from labelfree import simulate
    >>> drawn = simulate.votes(
    ...     5000, sensitivity=[0.8, 0.7, 0.9, 0.6], specificity=[0.7, 0.8, 0.8, 0.9]
    ... )
    >>> estimate = lf.estimate(drawn.votes)
    >>> estimate.sensitivity.round(1).tolist()
    [0.8, 0.7, 0.9, 0.6]
    """
    _check_options(method, vector, prevalence, prior)
    reading = {"missing": missing, "item": item, "classifier": classifier, "vote": vote}
    counted = tally(votes, positive=positive, classes=classes, classifiers=classifiers, **reading)
    _check_tally(counted)
    findings = Findings()
    blocks = Blocks(counted)
    seen = moments(blocks)
    look_for_signal(findings, seen, counted.sample_size, counted.classifiers)
    found = rank_one(seen, vector)
    converged, model = True, None
    if not findings.fatal:
        look_at_sign(findings, found, int((found.vector != 0).sum()))
        imbalance = _imbalance(blocks, seen, found, method, prevalence)
        model, converged = _model(blocks, seen, found, imbalance, method, prevalence, prior)
        look_at_imbalance(findings, at_boundary=imbalance.at_boundary)
        converged = converged and found.converged and imbalance.converged
        look_at_search(findings, converged=converged)
    whole = np.isfinite(counted.sample_size)
    return Estimate(
        classifiers=counted.classifiers,
        classes=counted.classes,
        method=method,
        items=int(counted.items) if whole else counted.items,
        patterns=len(counted),
        votes=tuple(int(count) if whole else float(count) for count in seen.votes),
        notes=_notes(seen),
        converged=converged,
        verdict=findings.verdict(),
        reading={key: value for key, value in reading.items() if value not in (None, ())},
        _model=model,
        _vector=found.vector if model is not None else None,
    )


def _imbalance(
    blocks: Blocks, seen: Moments, found: RankOne, method: str, prevalence: float | None
) -> Imbalance:
    if prevalence is not None:
        return Imbalance(2.0 * prevalence - 1.0, at_boundary=False, converged=True)
    if method == "tensor":
        return tensor_imbalance(blocks, seen, found.vector)
    if method == "likelihood":
        return likelihood_imbalance(blocks, seen, found.vector)
    return likelihood_imbalance(blocks, seen, found.vector, rough=True)


def _model(
    blocks: Blocks,
    seen: Moments,
    found: RankOne,
    imbalance: Imbalance,
    method: str,
    prevalence: float | None,
    prior: float,
) -> tuple[Model, bool]:
    """Rates from the imbalance; for "map", on to the posterior mode."""
    smallest = smallest_rate(blocks.tally.sample_size)
    sensitivity, specificity = rates(seen.mean, found.vector, imbalance.value)
    start = Model.binary(
        imbalance.value, clipped(sensitivity, smallest), clipped(specificity, smallest)
    )
    if method != "map":
        return start, True
    shape = blocks.tally.shape
    belief = Prior.flat(
        shape.classifiers, shape.classes, prior, fixed_classes=prevalence is not None
    )
    finished = fit(blocks, start, belief)
    return finished.model, finished.converged


def _notes(seen: Moments) -> tuple[str, ...]:
    return tuple(
        "no votes" if votes == 0 else "constant" if constant else ""
        for votes, constant in zip(seen.votes, seen.constant, strict=True)
    )


def _check_options(method: str, vector: str, prevalence: float | None, prior: float) -> None:
    if method not in METHODS:
        raise OptionsError(f"method= must be one of {listed(METHODS)}, got {method!r}.")
    if vector not in WAYS:
        raise OptionsError(f"vector= must be one of {listed(WAYS)}, got {vector!r}.")
    if prevalence is not None and not _is_number(prevalence, 0.0, 1.0):
        raise OptionsError(
            f"prevalence= must lie between 0 and 1, both excluded, got {prevalence!r}."
        )
    if not (prior == 0 or _is_number(prior, 0.0, float("inf"))):
        raise OptionsError(f"prior= must be a number of at least 0, got {prior!r}.")


def _is_number(value: Any, low: float, high: float) -> bool:
    try:
        return bool(low < float(value) < high)
    except (TypeError, ValueError):
        return False


def _check_tally(counted: Tally) -> None:
    if len(counted.classes) != 2:
        raise VotesError(
            f"Expected two labels, got {len(counted.classes)} ({listed(counted.classes)}); merge labels until two are left."
        )
    if len(counted.classifiers) < 3:
        raise VotesError(
            f"Expected votes of at least three classifiers, got {len(counted.classifiers)}; add some."
        )
