"""Two types of items: on some, half of everybody's votes follow one matrix that all classifiers share.

Real classifiers err together on hard items, and are right together on easy ones. One class of items
with each classifier's own matrix takes such agreement for accuracy. So every class has items of two
types. On those of the first, classifier i votes by its own matrix θ_i; on those of the second, each
vote comes from θ_i or, with chance `COMMON`, from a matrix common to all, which is right with
probability a and spreads its other votes evenly:

    Pr(vote v | class y, second type) = (1 − κ) θ_iyv + κ C_yv,    C_yy = a,    κ = COMMON.

How many items of each class are of which type, and a, come from the votes. What the rest of the library
sees is the model of one type with the same class probabilities and the same confusion matrices.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labelfree._latent_class import FLOOR, Model, class_shares
from labelfree._products import Block, Blocks

Array = NDArray[np.float64]

COMMON = 0.5  # κ; on real votes no value was the best everywhere, and this one the best on average
SECOND = 0.2  # share of the items that are of the second type, to start from
ACCURACY = 0.6  # a to start from, and the mean of its prior
PSEUDO_VOTES = 5.0  # that the prior of a weighs
MOST_ACCURATE = 0.99  # a is no more
FARTHEST = 30.0  # steps of a leap


@dataclass(frozen=True)
class Types:
    """Parameters of the model with two types of items.

    Attributes
    ----------
    shares : (2, K) array
        Pr(type, class).
    own : (m, K, K) array
        θ as [classifier, true class, voted class].
    accuracy : float
        a, of the common matrix.
    alike : (m, K) array of bool
        Rows that are the same on items of both types: those that are known.
    """

    shares: Array
    own: Array
    accuracy: float
    alike: NDArray[np.bool_]

    @classmethod
    def start(cls, model: Model, alike: NDArray[np.bool_]) -> Types:
        """Start from a model of one type."""
        shares = np.outer([1.0 - SECOND, SECOND], model.class_probabilities)
        return cls(shares, model.confusion, ACCURACY, alike)

    def common(self) -> Array:
        """C, the matrix that all classifiers share, (K, K)."""
        classes = self.shares.shape[1]
        wrong = (1.0 - self.accuracy) / (classes - 1)
        return np.asarray(wrong + (self.accuracy - wrong) * np.eye(classes))

    def second(self) -> Array:
        """Confusion matrices on items of the second type, (m, K, K)."""
        mixed = (1.0 - COMMON) * self.own + COMMON * self.common()
        return np.where(self.alike[:, :, None], self.own, mixed)

    def marginal(self) -> Model:
        """Model of one type with the same class probabilities and confusion matrices."""
        classes = self.shares.sum(axis=0)
        weight = (self.shares / np.maximum(classes, FLOOR))[:, None, :, None]
        return Model(classes, weight[0] * self.own + weight[1] * self.second())

    def logs(self) -> Array:
        """All parameters as logarithms in one vector, in which a search may be speeded up."""
        parts = (self.shares, self.own, np.array([self.accuracy, 1.0 - self.accuracy]))
        together = np.concatenate([part.ravel() for part in parts])
        return np.asarray(np.log(np.maximum(together, FLOOR)))

    def moved(self, logs: Array) -> Types:
        """Take parameters from such a vector; probabilities are made to sum to one."""
        size = self.shares.size
        shares = _shares_of(logs[:size]).reshape(self.shares.shape)
        own = _shares_of(logs[size:-2].reshape(self.own.shape))
        own = np.where(self.alike[:, :, None], self.own, own)
        accuracy = float(_shares_of(logs[-2:])[0])
        least = 1.0 / self.shares.shape[1]
        return Types(shares, own, min(max(accuracy, least), MOST_ACCURATE), self.alike)

    def joint(self) -> Model:
        """The same as a model of 2K classes, (m, 2K, K): those of the first type, then those of the second."""
        return Model(self.shares.ravel(), np.concatenate([self.own, self.second()], axis=1))


@dataclass(frozen=True)
class TypeCounts:
    """What one pass tells.

    Attributes
    ----------
    log_likelihood : float
    items : (2, K) array
        Expected items of every type and class.
    own : (m, K, K) array
        Expected votes that came from the classifiers' own matrices.
    common : (K, K) array
        Expected votes that came from the common one.
    """

    log_likelihood: float
    items: Array
    own: Array
    common: Array


def expect_types(blocks: Blocks, types: Types) -> TypeCounts:
    """E-step: expected items of every type and class, and where their votes came from."""
    joint = types.joint()
    tables, log_prior = joint.tables(), joint.log_prior()

    def work(block: Block) -> tuple[float, Array, Array]:
        total, shares = class_shares(block, tables, log_prior)
        weighted = shares * block.counts[:, None]
        return float(block.counts @ total), weighted.sum(axis=0), block.gather(weighted)

    log_likelihood, items, votes = blocks.total(work)
    classes = types.shares.shape[1]
    first, second = np.split(np.maximum(votes.transpose(0, 2, 1), 0.0), 2, axis=1)
    # Of a vote on an item of the second type, the share that the own matrix explains.
    explained = (1.0 - COMMON) * types.own / np.maximum(types.second(), FLOOR)
    own = second * np.where(types.alike[:, :, None], 1.0, explained)
    common = (second - own).sum(axis=0)
    return TypeCounts(log_likelihood, items.reshape(2, classes), first + own, common)


def _shares_of(logs: Array) -> Array:
    powers = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def leap(path: list[Types]) -> Types:
    """Go on from three successive rounds as far as their steps promise (Varadhan and Roland 2008, S3).

    With r the first step and v the change of the step, x − 2αr + α²v for α = −|r| / |v|, at most `FARTHEST`.
    """
    first, second, third = (each.logs() for each in path)
    step, change = second - first, third - 2.0 * second + first
    bend = float(np.linalg.norm(change))
    if bend == 0.0:
        return path[-1]
    reach = -min(max(float(np.linalg.norm(step)) / bend, 1.0), FARTHEST)
    return path[-1].moved(first - 2.0 * reach * step + reach**2 * change)


def common_accuracy(votes: Array) -> float:
    """Posterior mode of a, from the expected votes by the common matrix."""
    right, all_votes = float(np.trace(votes)), float(votes.sum())
    accuracy = (right + PSEUDO_VOTES * ACCURACY) / (all_votes + PSEUDO_VOTES)
    return min(max(accuracy, 1.0 / len(votes)), MOST_ACCURATE)
