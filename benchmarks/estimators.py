"""Errors of the estimators beside the Cramér–Rao bound: the ways to the rank-one vector, and the methods.

Rates ~ U(.5, .8). The first table: root mean square error of v over the root of its bound, for each way
to fill in the diagonal, b = .3. The second: mean squared errors of b and of all rates over their bounds,
for each method, ten classifiers. 1 is the least that an unbiased estimate can reach; the prior of method
"map" goes below it where items are few. Run: python benchmarks/estimators.py [data sets a row]
"""

import sys
from itertools import product

import numpy as np

import labelfree as lf
from labelfree._latent_class import Model, Prior, information
from labelfree._moments import moments
from labelfree._products import Blocks
from labelfree._rank_one import WAYS, rank_one

SIZES = [(5, 300), (5, 10_000), (10, 1000), (10, 10_000)]
CELLS = [(0.3, 300), (0.6, 300), (0.3, 1000), (0.0, 10_000), (0.3, 10_000), (0.6, 10_000)]
METHODS = ("tensor", "likelihood", "map")


def draw(classifiers, items, imbalance, each):
    random = np.random.default_rng([11, each])
    rates = random.uniform(0.5, 0.8, classifiers), random.uniform(0.5, 0.8, classifiers)
    drawn = lf.simulate.votes(
        items,
        sensitivity=rates[0],
        specificity=rates[1],
        prevalence=(1 + imbalance) / 2,
        seed=int(random.integers(2**31)),
    )
    return lf.tally(drawn.votes, classes=(0, 1)), *rates


def with_missing(exact, missing):
    """Pattern probabilities once every vote has been lost at random with probability `missing`."""
    codes, chances = exact.codes(), exact.counts
    for place in range(codes.shape[1]):
        lost = codes.copy()
        lost[:, place] = -1
        codes = np.concatenate([codes, lost])
        chances = np.concatenate([chances * (1 - missing), chances * missing])
        found = lf.Tally.from_codes(codes, chances)  # merges the patterns that have become equal
        codes, chances = found.codes(), found.counts
    return found


def bounds(sensitivity, specificity, imbalance, items, missing=0.0):
    """Least variances of b, of every ψ and η, and of every entry of v = √(1 − b²)·(ψ + η − 1)."""
    m, prevalence = len(sensitivity), (1 + imbalance) / 2
    exact = lf.simulate.exact(sensitivity, specificity, prevalence)
    blocks = Blocks(with_missing(exact, missing) if missing else exact)
    model = Model.binary(imbalance, sensitivity, specificity)
    of_logits = np.linalg.inv(items * information(blocks, model, Prior.flat(m, 2, 0.0)))
    # The logits of the prevalence, then of each classifier's Pr(voted 1) given 0 and given 1.
    slopes = np.empty(1 + 2 * m)
    slopes[0] = 2 * prevalence * (1 - prevalence)
    slopes[1::2] = -specificity * (1 - specificity)
    slopes[2::2] = sensitivity * (1 - sensitivity)
    of_all = of_logits * np.outer(slopes, slopes)
    root, both = np.sqrt(1 - imbalance**2), sensitivity + specificity - 1
    gradient = np.zeros((m, 1 + 2 * m))
    gradient[:, 0] = -imbalance / root * both
    gradient[np.arange(m), 1 + 2 * np.arange(m)] = root
    gradient[np.arange(m), 2 + 2 * np.arange(m)] = root
    variances = np.diagonal(of_all)
    return variances[0], variances[1:], np.einsum("ij,jk,ik->i", gradient, of_all, gradient)


def errors_of_vector(classifiers, items, sets, imbalance=0.3):
    """Root mean square error of v over the root of its bound, one figure a way."""
    squared, least = dict.fromkeys(WAYS, 0.0), 0.0
    for each in range(sets):
        counted, sensitivity, specificity = draw(classifiers, items, imbalance, each)
        truth = np.sqrt(1 - imbalance**2) * (sensitivity + specificity - 1)
        seen = moments(Blocks(counted))
        for way in WAYS:
            squared[way] += ((rank_one(seen, way).vector - truth) ** 2).sum()
        least += bounds(sensitivity, specificity, imbalance, items)[2].sum()
    return [np.sqrt(total / least) for total in squared.values()]


def errors_of_methods(imbalance, items, sets):
    """Mean squared errors of b and of the rates over their bounds; refusals are counted apart."""
    squared, least, refused = np.zeros((len(METHODS), 2)), np.zeros(2), 0
    for each in range(sets):
        counted, sensitivity, specificity = draw(10, items, imbalance, each)
        found = [lf.estimate(counted, method=method) for method in METHODS]
        if any(estimate.verdict.level == "unidentified" for estimate in found):
            refused += 1
            continue
        for row, estimate in zip(squared, found, strict=True):
            row[0] += (estimate.imbalance - imbalance) ** 2
            row[1] += ((estimate.sensitivity - sensitivity) ** 2).sum()
            row[1] += ((estimate.specificity - specificity) ** 2).sum()
        of_imbalance, of_rates, _ = bounds(sensitivity, specificity, imbalance, items)
        least += of_imbalance, of_rates.sum()
    return squared / least, refused


def main() -> None:
    sets = int(sys.argv[1]) if len(sys.argv) > 1 else 450
    print(f"{sets} data sets a row\n\nv: RMSE/√bound" + "".join(f"{way:>13}" for way in WAYS))
    for classifiers, items in SIZES:
        figures = errors_of_vector(classifiers, items, sets)
        print(f"m={classifiers:<3} n={items:<7}" + "".join(f"{each:13.2f}" for each in figures))
    heads = [f"{method} {what}" for method, what in product(METHODS, ("b", "rates"))]
    print("\nMSE/bound      " + "".join(f"{head:>18}" for head in heads) + "   refused")
    for imbalance, items in CELLS:
        figures, refused = errors_of_methods(imbalance, items, sets)
        shown = "".join(f"{each:18.2f}" for each in figures.reshape(-1))
        print(f"b={imbalance:<4} n={items:<7}{shown}{refused:10}", flush=True)


if __name__ == "__main__":
    main()
