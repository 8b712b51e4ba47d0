"""Errors when classifiers copy one another: the plain model, the groups found, a majority vote.

Ten classifiers, 5000 items, b = .3, rates ~ U(.5, .8); each member of a group copies the vote of the
group's first with probability q. "groups found" is what `lf.estimate` answers by default; its seconds are
those of the whole call. Run: python benchmarks/dependence.py [data sets a row]
"""

import sys
import time
from itertools import product

import numpy as np

import labelfree as lf
from labelfree._categories import whole_partition
from labelfree._consensus import winners
from labelfree._group_model import GroupModel
from labelfree._groups import group_rule
from labelfree._products import Block

CASES = {
    "independent": ([], 0.0),
    "an exact copy": ([(0, 1)], 1.0),
    "two pairs, q=.5": ([(0, 1), (2, 3)], 0.5),
    "four of ten, q=.5": ([(0, 1, 2, 3)], 0.5),
    "four of ten, q=.8": ([(0, 1, 2, 3)], 0.8),
    "three of ten, q=.9": ([(0, 1, 2)], 0.9),
}
ITEMS, CLASSIFIERS, PREVALENCE = 5000, 10, 0.65


def draw(groups, copying, each):
    random = np.random.default_rng([7, each])
    own = random.uniform(0.5, 0.8, CLASSIFIERS), random.uniform(0.5, 0.8, CLASSIFIERS)
    votes = lf.simulate.votes(
        ITEMS,
        sensitivity=own[0],
        specificity=own[1],
        prevalence=PREVALENCE,
        copies=groups,
        copying=copying,
        seed=int(random.integers(2**31)),
    )
    return votes, own


def table(group, own, copying):
    """Pr(votes of a group given class), (2, 2^g)."""
    found = np.empty((2, 1 << len(group)))
    for true, cell in product((0, 1), range(1 << len(group))):
        votes = [cell >> place & 1 for place in range(len(group))]
        chance = [
            own[1 - true][i] if vote == true else 1 - own[1 - true][i]
            for i, vote in zip(group, votes, strict=True)
        ]
        for place in range(1, len(group)):
            chance[place] = copying * (votes[place] == votes[0]) + (1 - copying) * chance[place]
        found[true, cell] = np.prod(chance)
    return found


def oracle(groups, own, copying):
    """The posterior with the true joint probabilities."""
    partition = whole_partition(groups, CLASSIFIERS)
    tables = tuple(table(block, own, copying) for block in partition)
    return group_rule(GroupModel(partition, PREVALENCE, tables, 0.0, 0, 0.0, True))


def labels_of(rule, votes):
    return winners(rule.scores(Block(votes.votes, np.ones(ITEMS), 2)))


def accuracy(labels, votes):
    return np.mean([(labels[votes.truth == y] == y).mean() for y in (0, 1)])


def errors(prevalence, sensitivity, specificity, votes):
    of_rates = [sensitivity - votes.sensitivity, specificity - votes.specificity]
    return abs(2 * prevalence - 2 * PREVALENCE), np.mean(np.abs(of_rates))


def row(groups, copying, number):
    """Mean over data sets: errors and consensus of each way, share of exact partitions, seconds."""
    rows = []
    for each in range(number):
        votes, own = draw(groups, copying, each)
        plain = lf.estimate(votes.votes, dependence="ignore")
        start = time.perf_counter()
        found = lf.estimate(votes.votes)
        seconds = time.perf_counter() - start
        rows.append(
            [
                *errors(plain.prevalence, plain.sensitivity, plain.specificity, votes),
                *errors(found.prevalence, found.sensitivity, found.specificity, votes),
                set(found.groups)
                == {tuple(found.classifiers[i] for i in group) for group in groups},
                accuracy(plain.label(votes.votes, rule="majority"), votes),
                accuracy(plain.label(votes.votes), votes),
                accuracy(found.label(votes.votes), votes),
                accuracy(labels_of(oracle(groups, own, copying), votes), votes),
                seconds,
            ]
        )
    return np.mean(rows, axis=0)


def main():
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print(f"Means over {number} data sets; errors as b / rates; consensus as balanced accuracy.\n")
    print(
        f"{'':20}{'plain MAP':>13}{'groups found':>15}{'exact':>7}   "
        f"{'majority':>9}{'plain':>7}{'groups':>8}{'oracle':>8}{'seconds':>9}"
    )
    for name, (groups, copying) in CASES.items():
        b0, r0, b1, r1, exact, *shares, seconds = row(groups, copying, number)
        print(
            f"{name:20}{b0:8.3f}/{r0:.3f}{b1:9.3f}/{r1:.3f}{exact:6.0%}   "
            f"{shares[0]:9.3f}{shares[1]:7.3f}{shares[2]:8.3f}{shares[3]:8.3f}{seconds:9.3f}"
        )


if __name__ == "__main__":
    main()
