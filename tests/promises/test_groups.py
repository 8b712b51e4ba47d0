"""The promises for classifiers that share errors: m = 10, n = 5000, b = .3, ψ and η ~ U(.5, .8)."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from common import balanced_accuracy, sets

import labelfree as lf
from labelfree._categories import whole_partition
from labelfree._consensus import winners
from labelfree._dependence import standardised_residuals
from labelfree._group_information import covariance_of_logits
from labelfree._group_model import GroupModel, fit_groups
from labelfree._groups import find_groups, group_rule, largest_cross_residual
from labelfree._latent_class import Prior
from labelfree._moments import moments
from labelfree._products import Block, Blocks

pytestmark = pytest.mark.promise

ITEMS, CLASSIFIERS, PREVALENCE = 5000, 10, 0.65
PRIOR = Prior.flat(CLASSIFIERS, 2, 1.0)
COPYING = {
    "an exact copy": ([(0, 1)], 1.0, 0.045, 0.016),
    "two pairs, half copied": ([(0, 1), (2, 3)], 0.5, 0.045, 0.016),
    "four of ten, half copied": ([(0, 1, 2, 3)], 0.5, 0.045, 0.016),
    "four of ten, .8 copied": ([(0, 1, 2, 3)], 0.8, 0.07, 0.02),
    "three of ten, .9 copied": ([(0, 1, 2)], 0.9, 0.045, 0.016),
}


def draw(groups, copying, each):
    """Votes, and the rates that the classifiers have where they do not copy."""
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


def found_in(votes):
    """Find the groups, by BIC and by the residuals across them."""
    blocks = Blocks(lf.tally(votes.votes))
    seen = moments(blocks)

    def explains(model):
        covariance = covariance_of_logits(blocks, model, PRIOR)
        residuals = standardised_residuals(seen, model.marginal(), covariance, ITEMS)
        return largest_cross_residual(residuals, model.partition) < 3.3

    return find_groups(blocks, seen, PRIOR, explains=explains)


def true_table(group, own, copying):
    """Pr(votes of a group given class), members copying its first: (2, 2^g)."""
    table = np.empty((2, 1 << len(group)))
    for true, cell in product((0, 1), range(1 << len(group))):
        votes = [cell >> place & 1 for place in range(len(group))]
        right = [own[1 - true][i] for i in group]  # sensitivity of the positive class
        chance = [r if v == true else 1 - r for v, r in zip(votes, right, strict=True)]
        for place in range(1, len(group)):
            chance[place] = copying * (votes[place] == votes[0]) + (1 - copying) * chance[place]
        table[true, cell] = np.prod(chance)
    return table


def oracle(groups, own, copying):
    """The rule with the true joint probabilities of votes and class."""
    partition = whole_partition(groups, CLASSIFIERS)
    tables = tuple(true_table(block, own, copying) for block in partition)
    return group_rule(GroupModel(partition, PREVALENCE, tables, 0.0, 0, 0.0, converged=True))


def accuracies(rule, votes):
    """Balanced accuracy of the posterior rule, and of the rule with no prior."""
    block = Block(votes.votes, np.ones(ITEMS), 2)
    both = rule, replace(rule, intercept=np.zeros(2))
    return [balanced_accuracy(winners(each.scores(block)), votes.truth) for each in both]


def errors(found, votes):
    """Of b, and the mean of those of the rates."""
    of_rates = [found.sensitivity - votes.sensitivity, found.specificity - votes.specificity]
    return abs(2 * found.prevalence - 2 * PREVALENCE), np.mean(np.abs(of_rates))


@pytest.mark.parametrize("case", COPYING)
def test_rates_groups_and_consensus_under_copying(case):
    groups, copying, most_b, most_rate = COPYING[case]
    rows = []
    for each in range(sets(50, 400)):
        votes, own = draw(groups, copying, each)
        found = lf.estimate(votes.votes)
        assert found.converged
        assert found.verdict.level == "caution"
        best = accuracies(oracle(groups, own, copying), votes)
        reached = accuracies(found._choice.rule, votes)
        assert reached[0] == balanced_accuracy(found.label(votes.votes), votes.truth)
        named = [tuple(found.classifiers[place] for place in group) for group in groups]
        rows.append(
            [*errors(found, votes), set(found.groups) == set(named), *np.subtract(best, reached)]
        )
    of_b, of_rate, exact, behind, behind_without_prior = np.mean(rows, axis=0)
    assert of_b <= most_b
    assert of_rate <= most_rate
    assert exact >= 0.8
    assert behind <= 0.01
    assert behind_without_prior <= 0.01


def test_independent_classifiers_are_left_alone():
    found = [found_in(draw([], 0.0, each)[0]).groups for each in range(sets(40, 400))]
    assert np.mean([groups == () for groups in found]) >= 0.97


def test_under_independence_next_to_nothing_is_lost():
    """Where the alarm is false, what is modelled then may cost a little: at most 5 % on average."""
    rows = []
    for each in range(sets(40, 400)):
        votes, _ = draw([], 0.0, each)
        both = lf.estimate(votes.votes), lf.estimate(votes.votes, dependence="ignore")
        rows.append([errors(one, votes) for one in both])
    of_auto, of_plain = np.mean(rows, axis=0)
    assert (of_auto <= 1.05 * of_plain).all()


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_intervals_cover_under_copying(missing):
    covered = []
    for each in range(sets(40, 400)):
        votes, _ = draw([(0, 1, 2)], 0.9, each)
        codes = votes.votes.copy()
        codes[np.random.default_rng(each).random(codes.shape) < missing] = -1
        blocks = Blocks(lf.Tally.from_codes(codes, np.ones(ITEMS)))
        found = fit_groups(blocks, [(0, 1, 2)], PRIOR)
        covariance = covariance_of_logits(blocks, found, PRIOR)
        logits = [
            np.log(rates / (1 - rates))
            for rates in (
                np.concatenate([[found.prevalence], found.positive_rates.ravel()]),
                np.concatenate(
                    [[PREVALENCE], np.stack([1 - votes.specificity, votes.sensitivity], 1).ravel()]
                ),
            )
        ]
        covered.append(np.abs(logits[0] - logits[1]) <= 1.96 * np.sqrt(np.diagonal(covariance)))
    assert 0.93 <= np.mean(covered) <= 0.97
