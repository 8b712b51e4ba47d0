"""What the intervals, the alarm and the verdict cost beside the fit, and the models of shared errors.

All on tallies or votes made here; every bar stands beside its figure. The fit is what `estimate`
does up to the rates: the tally, the moments, v, the imbalance and the posterior mode.
Usage: python benchmarks/cost.py
"""

from __future__ import annotations

import time

import numpy as np
from speed import row, seconds

import labelfree as lf
from labelfree._imbalance import likelihood_imbalance
from labelfree._latent_class import Model, Prior, fit
from labelfree._moments import moments
from labelfree._products import Blocks
from labelfree._rank_one import rank_one
from labelfree._rates import clipped, rates, smallest_rate


def only_fitted(votes: np.ndarray) -> Model:
    """Rates and prevalence, and nothing else."""
    blocks = Blocks(lf.tally(votes))
    seen = moments(blocks)
    vector = rank_one(seen).vector
    imbalance = likelihood_imbalance(blocks, seen, vector, rough=True).value
    smallest = smallest_rate(blocks.tally.sample_size)
    both = [clipped(rate, smallest) for rate in rates(seen.mean, vector, imbalance)]
    start = Model.binary(imbalance, *both)
    return fit(blocks, start, Prior.flat(len(vector), 2, 1.0)).model


def hard(items: int, classifiers: int, seed: int = 1) -> np.ndarray:
    """Votes of classifiers that err together on hard items."""
    random = np.random.default_rng(seed)
    trait = np.where(random.random(items) < 0.6, 1.0, -1.0) + random.normal(size=items)
    slope, shift = random.uniform(0.5, 1.5, classifiers), random.normal(0, 0.5, classifiers)
    votes = np.empty((items, classifiers), np.int8)
    for i in range(classifiers):
        votes[:, i] = random.random(items) < 1 / (1 + np.exp(-shift[i] - slope[i] * trait))
    return votes


def copied(items: int, classifiers: int) -> np.ndarray:
    """Votes of which three classifiers copy nearly all from one another."""
    return lf.simulate.votes(
        items, classifiers=classifiers, copies=[(0, 1, 2)], copying=0.9, seed=1
    ).votes


def share_of_checks(items: int = 10**6, repeats: int = 7) -> float:
    """Time of `estimate` with intervals, alarm and verdict over that of the fit alone, at m = 10."""
    votes = lf.simulate.votes(items, classifiers=10, prevalence=0.65, seed=1).votes
    if lf.estimate(votes).dependence != "independent":
        raise AssertionError("these votes should need no model of shared errors")
    return seconds(lambda: lf.estimate(votes), repeats) / seconds(
        lambda: only_fitted(votes), repeats
    )


def of_models(votes: np.ndarray, expected: str, repeats: int = 2) -> float:
    """Seconds that the models of shared errors add to an estimate that only tests for them."""
    if lf.estimate(votes).dependence != expected:
        raise AssertionError(f"these votes should be modelled by {expected}")
    tested = seconds(lambda: lf.estimate(votes, dependence="test"), repeats)
    return seconds(lambda: lf.estimate(votes), repeats) - tested


def main() -> None:
    start = time.perf_counter()
    row("n=10⁶, m=10: estimate / fit alone", share_of_checks(), 2)
    print("\nmodels of shared errors, fitted only where the alarm is up")
    for classifiers, sizes, bar in ((10, (10**4, 10**6, 10**7), 2), (50, (5000, 10**5), 60)):
        for items in sizes:
            for name, votes in (("groups", copied), ("difficulty", hard)):
                figure = of_models(votes(items, classifiers), name)
                row(f"n={items:,}, m={classifiers}: {name}", figure, bar, " s")
    print(f"\n{time.perf_counter() - start:.0f} s in all")


if __name__ == "__main__":
    main()
