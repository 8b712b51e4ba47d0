"""JNK's two algorithms and what stands beside them, on one tally.

The front door gives the same estimates (a test compares them) and more than is needed in a simulation
of ten thousand data sets: intervals, the alarm, and a refusal where votes hold no signal. Here no data
set is refused, so that none is left out of an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

import labelfree as lf
from labelfree._imbalance import likelihood_imbalance, tensor_imbalance
from labelfree._latent_class import Model, Prior, fit
from labelfree._moments import moments, third_moment_ratio
from labelfree._products import Blocks
from labelfree._rank_one import rank_one
from labelfree._rates import clipped, rates, smallest_rate
from paper.work import random


@dataclass(frozen=True)
class Found:
    """Imbalance, sensitivities and specificities."""

    imbalance: float
    sensitivity: np.ndarray
    specificity: np.ndarray


class Spectral:
    """The steps up to the rank-one vector, and the methods that go on from there."""

    def __init__(self, counted: lf.Tally) -> None:
        self.blocks = Blocks(counted)
        self.seen = moments(self.blocks)
        self.vector = rank_one(self.seen).vector
        self.smallest = smallest_rate(counted.sample_size)

    def of(self, imbalance: float) -> Found:
        """Rates by JNK Lemma 2 for a given imbalance, as they come."""
        return Found(imbalance, *rates(self.seen.mean, self.vector, imbalance))

    def _held(self, imbalance: float) -> Found:
        found = self.of(imbalance)
        both = (clipped(rate, self.smallest) for rate in (found.sensitivity, found.specificity))
        return Found(imbalance, *both)

    @cached_property
    def tensor(self) -> Found:
        """JNK Algorithm 1."""
        return self._held(tensor_imbalance(self.blocks, self.seen, self.vector).value)

    @cached_property
    def likelihood(self) -> Found:
        """JNK Algorithm 2."""
        return self._held(likelihood_imbalance(self.blocks, self.seen, self.vector).value)

    def tensor_with(self, vector: np.ndarray) -> float:
        """Return b by JNK Algorithm 1 with the true v in place of its estimate."""
        return tensor_imbalance(self.blocks, self.seen, vector).value

    def ratio_with(self, vector: np.ndarray) -> float:
        """Return α̂ with this v."""
        return third_moment_ratio(self.blocks, self.seen.mean, vector)

    def finish(self, prior: float) -> Found:
        """Climb on to the posterior mode (`prior` pseudo-votes), or to maximum likelihood (0)."""
        start = self.likelihood
        model = Model.binary(start.imbalance, start.sensitivity, start.specificity)
        found = fit(self.blocks, model, Prior.flat(len(self.vector), 2, prior)).model
        return of_model(found)


def of_model(model: Model) -> Found:
    return of_confusion(model.class_probabilities, model.confusion)


def of_confusion(class_probabilities: np.ndarray | None, confusion: np.ndarray) -> Found:
    """Return the rates of a confusion [classifier, true, voted]; NaN for an imbalance that is not estimated."""
    imbalance = np.nan if class_probabilities is None else 2.0 * float(class_probabilities[1]) - 1.0
    return Found(imbalance, confusion[:, 1, 1], confusion[:, 0, 0])


def true_vector(sensitivity: np.ndarray, specificity: np.ndarray, imbalance: float) -> np.ndarray:
    """Return v = √(1 − b²)·(2π − 1) (JNK eq. for v)."""
    return np.sqrt(1 - imbalance**2) * (sensitivity + specificity - 1)


def ensemble(each: int, classifiers: int = 10, low: float = 0.5, high: float = 0.8) -> tuple:
    """Rates of data set `each`: the same for every n and b, so that cells differ by these alone."""
    stream = random(1, each, classifiers)
    return stream.uniform(low, high, classifiers), stream.uniform(low, high, classifiers)


def patterns(sensitivity: np.ndarray, specificity: np.ndarray, imbalance: float) -> tuple:
    """Every pattern and its exact probability."""
    exact = lf.simulate.exact(sensitivity, specificity, (1 + imbalance) / 2)
    return exact.codes(0, len(exact)), exact.counts / exact.counts.sum()


def draw(
    stream: np.random.Generator, codes: np.ndarray, chances: np.ndarray, items: int
) -> lf.Tally:
    """Draw the tally of so many items: counts of patterns are multinomial, whatever n is."""
    return lf.Tally.from_codes(codes, stream.multinomial(items, chances))
