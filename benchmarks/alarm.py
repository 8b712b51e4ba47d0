"""How often the alarm is raised: falsely, where classifiers are independent, and where one copies another.

Every row draws its own data sets at a prevalence of .65; in the second table the second classifier copies the vote of the
first with probability q. Data sets without an answer are left out. Usage: python benchmarks/alarm.py [data sets a row]
"""

from __future__ import annotations

import sys

import numpy as np

import labelfree as lf

# (classifiers, items, share of votes missing, lowest and highest rate)
INDEPENDENT = [
    (8, 200, 0.0, 0.5, 0.8),
    (10, 500, 0.2, 0.5, 0.8),
    (5, 5000, 0.0, 0.5, 0.8),
    (10, 5000, 0.0, 0.5, 0.8),
    (10, 600, 0.0, 0.8, 0.99),
    (25, 2000, 0.0, 0.8, 0.99),
    (10, 5000, 0.0, 0.9, 0.99),
]
# The same, then q.
COPIED = [
    (10, 200, 0.0, 0.5, 0.8, 0.8),
    (10, 1000, 0.0, 0.5, 0.8, 0.3),
    (10, 5000, 0.0, 0.5, 0.8, 0.1),
    (10, 5000, 0.2, 0.5, 0.8, 0.1),
    (10, 1000, 0.0, 0.8, 0.99, 0.3),
    (10, 5000, 0.0, 0.8, 0.99, 0.1),
    (10, 5000, 0.0, 0.9, 0.99, 0.3),
    (5, 5000, 0.0, 0.9, 0.97, 0.5),
]


def share_raised(
    classifiers: int,
    items: int,
    missing: float,
    lowest: float,
    highest: float,
    copying: float = 0.0,
    *,
    sets: int,
) -> float:
    found = []
    for each in range(sets):
        random = np.random.default_rng([13, classifiers, items, each])
        sensitivity, specificity = random.uniform(lowest, highest, (2, classifiers))
        votes = lf.simulate.votes(
            items,
            sensitivity=sensitivity,
            specificity=specificity,
            prevalence=0.65,
            missing=missing,
            copies=[(0, 1)] if copying else [],
            copying=copying,
            seed=int(random.integers(2**31)),
        ).votes
        missing_vote = lf.simulate.MISSING
        tested = lf.estimate(votes, missing=missing_vote, classes=(0, 1), dependence="test")
        if tested.verdict.level != "unidentified":
            found.append(tested.alarm.raised)
    return float(np.mean(found))


def main() -> None:
    sets = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    print(f"Share of {sets} data sets in which the alarm is raised.\n")
    print("classifiers  items  missing      rates      q  raised")
    for setting in (*INDEPENDENT, *COPIED):
        m, n, missing, low, high, *copying = setting
        raised = share_raised(*setting, sets=sets)
        q = f"{copying[0]:6.1f}" if copying else "     –"
        print(f"{m:11} {n:6} {missing:8.0%}  {low:.2f}-{high:.2f} {q} {raised:7.1%}", flush=True)


if __name__ == "__main__":
    main()
