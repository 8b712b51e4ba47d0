"""Kinds of classifiers of ordered classes: few numbers a classifier, for those who voted little.

A classifier of one kind sees the true class on a line, stretched and shifted in its own way and
with its own noise, and votes for the nearest class; now and then it votes at random. Shift, noise,
stretch and chance votes run over a grid. Which kinds are common among the classifiers is learned
from all of them together, and each classifier's own matrix is the mean over the kinds that its
votes leave likely: a prior with few parameters, from which many votes may depart.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

from labelfree._latent_class import Model, Prior, expect
from labelfree._products import Blocks

Array = NDArray[np.float64]

SHIFTS = np.linspace(-1.5, 1.5, 13)  # in classes
NOISES = np.geomspace(0.2, 4.0, 10)  # standard deviation, in classes
STRETCHES = (0.3, 0.6, 1.0, 1.4)
CHANCE_VOTES = (0.001, 0.2, 0.6)  # share of votes at random
LEAST = 1e-6  # of an entry of a kind's matrix
STRENGTH = (
    2.0  # pseudo-votes a cell of a row, with pseudo_count=1: a row of five classes weighs ten
)
MOST_ROUNDS = 100
STANDSTILL = 1e-4  # largest change of a class share that ends the rounds: a start needs no more


def kinds(classes: int) -> Array:
    """Confusion matrices of all kinds, (G, K, K).

    Pr(vote > k given y) = Φ((c + stretch · (y − c) + shift − k − ½) / noise) with c the middle class.
    """
    from scipy.special import ndtr

    places = np.arange(classes)
    middle = (classes - 1) / 2
    found = []
    for shift, noise, stretch, chance in product(SHIFTS, NOISES, STRETCHES, CHANCE_VOTES):
        seen = middle + stretch * (places - middle) + shift
        ladder = np.pad(ndtr((seen[:, None] - places[:-1] - 0.5) / noise), ((0, 0), (1, 1)))
        ladder[:, 0] = 1.0
        found.append((1.0 - chance) * -np.diff(ladder, axis=1) + chance / classes)
    tables = np.maximum(np.array(found), LEAST)
    return np.asarray(tables / tables.sum(axis=2, keepdims=True))


def fit_kinds(blocks: Blocks, start: Model, pseudo_count: float) -> Model:
    """Class probabilities, and for each classifier the mean matrix of the kinds it may be of.

    Parameters
    ----------
    blocks : Blocks
    start : Model
    pseudo_count : float
        Items added to every class.

    Returns
    -------
    Model
    """
    classes = len(start.class_probabilities)
    tables = kinds(classes)
    logs = np.log(tables).reshape(len(tables), -1).T
    common, model = np.full(len(tables), 1.0 / len(tables)), start
    for _ in range(MOST_ROUNDS):
        expected = expect(blocks, model)
        votes = np.maximum(expected.votes, 0.0).reshape(len(model.confusion), -1)
        likely = votes @ logs + np.log(common)
        likely = np.exp(likely - likely.max(axis=1, keepdims=True))
        likely /= likely.sum(axis=1, keepdims=True)
        common = likely.mean(axis=0) + LEAST
        common /= common.sum()
        shares = np.maximum(expected.classes, 0.0) + pseudo_count
        rates = (likely @ tables.reshape(len(tables), -1)).reshape(model.confusion.shape)
        new = Model(shares / shares.sum(), rates)
        change = np.max(np.abs(new.confusion - model.confusion), initial=0.0)
        model = new
        if change <= STANDSTILL:
            break
    return model


def prior_of_kinds(model: Model, pseudo_count: float) -> Prior:
    """Pseudo-votes in every row, spread as the classifier's kinds say; as many as `STRENGTH` a cell."""
    classes = len(model.class_probabilities)
    return Prior(
        np.full(classes, pseudo_count), STRENGTH * pseudo_count * classes * model.confusion
    )
