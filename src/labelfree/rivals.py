"""Other published methods under one signature, for comparison.

Each takes votes as :func:`labelfree.tally` does, its own options, and the reading options, and
returns a :class:`Rival`. They are written from the papers; where a paper leaves something to chance,
it is fixed or seeded here, so that the same votes give the same answer.

>>> import labelfree as lf
>>> rates = [0.8, 0.7, 0.9, 0.6]
>>> drawn = lf.simulate.votes(9000, sensitivity=rates, specificity=rates, seed=1)
>>> lf.rivals.donmez(drawn.votes, prevalence=0.5).confusion[:, 1, 1].round(1).tolist()
[0.8, 0.7, 0.9, 0.6]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelfree._arrays import check_size
from labelfree._consensus import Rule, majority_rule, posterior_rule, spectral_rule
from labelfree._errors import NotIdentifiedError, OptionsError, VotesError
from labelfree._latent_class import Model, Prior, climb, expect
from labelfree._messages import pass_messages
from labelfree._moments import Moments
from labelfree._products import Blocks, label_pairs
from labelfree._rank_one import rank_one
from labelfree._rates import clipped, smallest_rate
from labelfree._rival import Rival, rival_of
from labelfree._starts import majority_counts, majority_start
from labelfree._tally import Tally, tally
from labelfree._tensors import from_completion, from_three_groups

Array = NDArray[np.float64]

MOST_ROUNDS = 500  # of EM
STANDSTILL = 1e-10  # change of a rate that ends a search
NO_SIGNAL = 1e-6  # agreement beyond chance that is none: the square of it is rounding
MOST_CLASSES = 10  # of the completion: its least squares has K⁶ numbers

__all__ = [
    "Rival",
    "dawid_skene",
    "donmez",
    "jain_oh",
    "karger_oh_shah",
    "majority",
    "platanios",
    "zhang",
]


# --- the methods --------------------------------------------------------------------------------


def majority(votes: Any, **reading: Any) -> Rival:
    """Count one vote each.

    It estimates neither class probabilities nor confusion: both are None.

    Parameters
    ----------
    votes : array, dataframe, mapping, path or Tally
        As for :func:`labelfree.tally`.
    **reading
        The reading options of :func:`labelfree.tally`.

    Returns
    -------
    Rival
    """
    found = tally(votes, **reading)
    rule = majority_rule(len(found.classifiers), len(found.classes))
    return rival_of("majority", found, reading, rule)


def dawid_skene(votes: Any, *, rounds: int = MOST_ROUNDS, **reading: Any) -> Rival:
    """Maximise the likelihood by EM from the majority's shares (Dawid and Skene 1979).

    Any number of classes; it estimates both class probabilities and confusion.

    Parameters
    ----------
    votes : array, dataframe, mapping, path or Tally
        As for :func:`labelfree.tally`.
    rounds : int, default 500
        After which the search gives up and says so.
    **reading
        The reading options of :func:`labelfree.tally`.

    Returns
    -------
    Rival

    Notes
    -----
    No pseudo-counts, as in the paper. Start: every item's class is spread as its votes are.
    """
    _check_whole("rounds", rounds, 1)
    found = _counted(votes, reading)
    blocks = Blocks(found)
    shape = (len(found.classifiers), len(found.classes))
    fitted = climb(blocks, majority_start(blocks), Prior.flat(*shape, 0.0), rounds)
    return rival_of(
        "dawid_skene",
        found,
        reading,
        posterior_rule(fitted.model),
        class_probabilities=fitted.model.class_probabilities,
        confusion=fitted.model.confusion,
        converged=fitted.converged,
    )


def karger_oh_shah(votes: Any, *, rounds: int = 10, **reading: Any) -> Rival:
    """Weigh the classifiers by messages passed along the votes (Karger, Oh and Shah 2011).

    Two classes. It estimates neither class probabilities nor confusion, only a weight for every
    classifier: both are None.

    Parameters
    ----------
    votes : array, dataframe, mapping, path or Tally
        As for :func:`labelfree.tally`.
    rounds : int, default 10
        Most rounds; it stops earlier where the weights settle, and says so as `converged`. More is
        seldom better: where one class is more common, the weights drift towards who votes for it.
    **reading
        The reading options of :func:`labelfree.tally`.

    Returns
    -------
    Rival

    Notes
    -----
    With votes A_ij = ±1, the messages are x_i→j = Σ_{k≠j} A_ik y_k→i and y_j→i = Σ_{k≠i} A_kj x_k→j.
    The paper draws the first y from N(1, 1); here each is 1, their mean. A classifier's weight is
    the sum of all that its items tell it, Σ_k A_kj x_k→j, so that new items can be labelled too;
    the paper leaves out of it what the labelled item itself said.
    """
    _check_whole("rounds", rounds, 1)
    found = _counted(votes, reading, binary=True)
    weights, converged = pass_messages(found, rounds)
    return rival_of("karger_oh_shah", found, reading, spectral_rule(weights), converged=converged)


def donmez(votes: Any, *, prevalence: float, rounds: int = MOST_ROUNDS, **reading: Any) -> Rival:
    """Maximise the likelihood under symmetric noise and a known prevalence (Donmez et al. 2010).

    Two classes. Every classifier has one accuracy, sensitivity and specificity alike;
    `class_probabilities` are those given.

    Parameters
    ----------
    votes : array, dataframe, mapping, path or Tally
        As for :func:`labelfree.tally`.
    prevalence : float
        Pr(positive).
    rounds : int, default 500
        Of EM, after which the search gives up and says so.
    **reading
        The reading options of :func:`labelfree.tally`.

    Returns
    -------
    Rival

    Notes
    -----
    The paper climbs the same likelihood by gradients; EM from the majority's shares reaches the
    maximum uphill from there.
    """
    _check_share("prevalence", prevalence)
    _check_whole("rounds", rounds, 1)
    found = _counted(votes, reading, binary=True)
    blocks = Blocks(found)
    imbalance = 2.0 * float(prevalence) - 1.0
    _, of_votes = majority_counts(blocks)
    accuracy, converged = _shared_accuracy(of_votes), False
    for _ in range(rounds):
        new = _shared_accuracy(expect(blocks, Model.binary(imbalance, accuracy, accuracy)).votes)
        converged = bool(np.max(np.abs(new - accuracy)) <= STANDSTILL)
        accuracy = new
        if converged:
            break
    model = Model.binary(imbalance, accuracy, accuracy)
    return rival_of(
        "donmez",
        found,
        reading,
        _held_rule(model, found),
        class_probabilities=model.class_probabilities,
        confusion=model.confusion,
        converged=converged,
    )


def platanios(votes: Any, **reading: Any) -> Rival:
    """Find error rates from how often classifiers agree (Platanios, Blum and Mitchell 2014).

    Two classes. The method finds one error rate a classifier, whatever the class, so that
    `confusion` holds it for both; `class_probabilities` is None, and labels and probabilities take
    both classes for equally likely.

    Parameters
    ----------
    votes : array, dataframe, mapping, path or Tally
        As for :func:`labelfree.tally`.
    **reading
        The reading options of :func:`labelfree.tally`.

    Returns
    -------
    Rival

    Notes
    -----
    The agreement of two is a_ij = 1 − e_i − e_j + 2 e_ij, with e_ij the rate at which both err. The
    method minimises Σ (e_ij − e_i e_j)² subject to the agreement rates seen, which is the least
    squares fit of 2 a_ij − 1 by (1 − 2e_i)(1 − 2e_j). Three labels of two kinds hold one pair that
    agrees, or three: the agreement of a triple is (a_ij + a_ik + a_jk − 1) / 2, so that triples add
    nothing to pairs, and for three classifiers the fit is the paper's closed form. Errors are taken
    to be independent over all items, which needs sensitivity and specificity alike, and most
    classifiers to be better than chance.
    """
    found = _counted(votes, reading, binary=True)
    blocks = Blocks(found)
    (columns,) = blocks.total(lambda block: (block.cooccurrence(),))
    table = label_pairs(columns, 2)
    met = table.sum(axis=(1, 3))
    agreed = np.einsum("ikjk->ij", table)
    surplus = np.divide(2.0 * agreed - met, met, out=np.zeros_like(met), where=met > 0)
    np.fill_diagonal(surplus, 0.0)
    # Least squares off the diagonal, as for a covariance; no mean to take off here.
    fitted = rank_one(Moments(np.zeros(len(met)), surplus, met), "iterated")
    if not (np.abs(fitted.vector) > NO_SIGNAL).any():
        raise NotIdentifiedError(
            "These classifiers agree as often as by chance, which tells nothing of their errors; better classifiers would help."
        )
    accuracy = (1.0 + fitted.vector) / 2.0
    model = Model.binary(0.0, accuracy, accuracy)
    return rival_of(
        "platanios",
        found,
        reading,
        _held_rule(model, found),
        confusion=model.confusion,
        converged=fitted.converged,
    )


def zhang(
    votes: Any,
    *,
    groups: Sequence[Sequence[str]] | None = None,
    rounds: int = 10,
    seed: int = 0,
    **reading: Any,
) -> Rival:
    """Start EM from three groups' moments (Zhang, Chen, Zhou and Jordan 2014).

    Any number of classes; it estimates both class probabilities and confusion.

    Parameters
    ----------
    votes : array, dataframe, mapping, path or Tally
        As for :func:`labelfree.tally`.
    groups : three sequences of names, optional
        By default the classifiers, sorted by name and then shuffled by `seed`, are dealt out.
    rounds : int, default 10
        Of EM; 0 leaves the moments' own estimate. EM that has not settled by then is said to have
        not converged.
    seed : int, default 0
        Of the groups and of the tensor power method.
    **reading
        The reading options of :func:`labelfree.tally`.

    Returns
    -------
    Rival

    Notes
    -----
    As in the paper, EM takes the classes for equally likely while it seeks the confusion; the class
    probabilities are the moments' own, and labels are by maximum likelihood.
    """
    _check_whole("rounds", rounds, 0)
    _check_whole("seed", seed, 0)
    found = _counted(votes, reading)
    blocks = Blocks(found)
    start, converged = from_three_groups(blocks, _three_groups(found, groups, seed), seed)
    classes = len(found.classes)
    even = np.full(classes, 1.0 / classes)
    model = Model(even, _held(start.confusion, found))
    if rounds:
        prior = Prior.flat(len(found.classifiers), classes, 0.0, fixed_classes=True)
        fitted = climb(blocks, model, prior, rounds)
        model, converged = fitted.model, converged and fitted.converged
    return rival_of(
        "zhang",
        found,
        reading,
        posterior_rule(model),
        class_probabilities=start.class_probabilities,
        confusion=model.confusion if rounds else start.confusion,
        converged=converged,
    )


def jain_oh(votes: Any, *, seed: int = 0, **reading: Any) -> Rival:
    """Complete the second moments and take the third apart (Jain and Oh 2014).

    Up to ten classes; it estimates both class probabilities and confusion, from moments alone.

    Parameters
    ----------
    votes : array, dataframe, mapping, path or Tally
        As for :func:`labelfree.tally`.
    seed : int, default 0
        Of the tensor power method.
    **reading
        The reading options of :func:`labelfree.tally`.

    Returns
    -------
    Rival

    Notes
    -----
    The paper has every vote; here missing ones leave pairs and triples with the weight of the items
    on which they met.
    """
    _check_whole("seed", seed, 0)
    found = _counted(votes, reading)
    if len(found.classes) > MOST_CLASSES:
        raise OptionsError(
            f"jain_oh takes at most {MOST_CLASSES} classes, got {len(found.classes)}; take zhang for more."
        )
    model, converged = from_completion(Blocks(found), seed)
    return rival_of(
        "jain_oh",
        found,
        reading,
        _held_rule(model, found),
        class_probabilities=model.class_probabilities,
        confusion=model.confusion,
        converged=converged,
    )


# --- what they share ----------------------------------------------------------------------------


def _counted(votes: Any, reading: Mapping[str, Any], *, binary: bool = False) -> Tally:
    """Count the votes, and refuse those that a method cannot do with."""
    found = tally(votes, **reading)
    check_size(len(found), len(found.classifiers))
    classes = len(found.classes)
    if binary and classes != 2:
        raise VotesError(
            f"This method knows two classes, got {classes}; take dawid_skene, zhang or jain_oh for more."
        )
    return found


def _check_whole(name: str, value: Any, least: int) -> None:
    try:
        whole = index(value)
    except TypeError:
        whole = least - 1
    if whole < least:
        raise OptionsError(f"{name}= must be a whole number of at least {least}, got {value!r}.")


def _check_share(name: str, value: Any) -> None:
    if not isinstance(value, int | float | np.number) or not 0 < value < 1:
        raise OptionsError(
            f"{name}= must be a number between 0 and 1, both excluded, got {value!r}."
        )


def _held(confusion: Array, found: Tally) -> Array:
    """Hold rates away from 0 and 1, so that no single vote settles an item."""
    inside = clipped(confusion, smallest_rate(found.sample_size))
    return np.asarray(inside / inside.sum(axis=2, keepdims=True))


def _held_rule(model: Model, found: Tally) -> Rule:
    return posterior_rule(Model(model.class_probabilities, _held(model.confusion, found)))


def _shared_accuracy(votes: Array) -> Array:
    """Share of the votes for the true class, whichever it is; one half for one that never voted."""
    total = votes.sum(axis=(1, 2))
    right = np.einsum("ikk->i", votes)
    return np.asarray(np.divide(right, total, out=np.full_like(right, 0.5), where=total > 0))


def _three_groups(
    found: Tally, groups: Sequence[Sequence[str]] | None, seed: int
) -> list[list[int]]:
    """Places of the classifiers of each group."""
    places = {name: place for place, name in enumerate(found.classifiers)}
    if groups is None:
        names = np.random.default_rng(seed).permutation(np.array(sorted(places)))
        return [[places[str(name)] for name in names[start::3]] for start in range(3)]
    named = [list(map(str, group)) for group in groups]
    together = [name for group in named for name in group]
    if (
        len(named) != 3
        or not all(named)
        or len(set(together)) < len(together)
        or set(together) != set(places)
    ):
        raise OptionsError(
            f"groups= must put every classifier into one of three groups, none of them empty, got {groups!r}."
        )
    return [[places[name] for name in group] for group in named]
