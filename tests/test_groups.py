"""Groups of classifiers: pointer, candidates, likelihood, information and rule against plain loops."""

from dataclasses import replace
from itertools import product
from math import log, prod

import numpy as np
import pytest
from scipy.sparse import csr_array

from labelfree import Tally, _group_information, _group_model, _groups, _latent_class, simulate
from labelfree._categories import Layout, thinned, whole_partition
from labelfree._group_information import covariance_of_logits, covariance_of_terms
from labelfree._group_model import fit_groups
from labelfree._group_start import masked, spectral_start
from labelfree._groups import (
    candidate_partitions,
    find_groups,
    group_rule,
    largest_cross_residual,
    pointer,
)
from labelfree._latent_class import Model, Prior
from labelfree._moments import moments
from labelfree._products import Block, Blocks

GROUPS = [(1, 3), (0, 4, 5)]  # of seven; the blocks' members are no neighbours


def agrees(cell, codes):
    """Whether a cell of a block agrees with the codes of its members that voted."""
    return all(code in (-1, cell >> place & 1) for place, code in enumerate(codes))


def joint(row, partition, prevalence, tables):
    """Pr(class and pattern): for each block the sum over the cells that agree with its votes."""
    return [
        p
        * prod(
            sum(
                table[true][cell]
                for cell in range(2 ** len(block))
                if agrees(cell, [row[i] for i in block])
            )
            for block, table in zip(partition, tables, strict=True)
        )
        for true, p in enumerate((1 - prevalence, prevalence))
    ]


def log_likelihood(codes, counts, partition, prevalence, tables):
    return sum(
        count * log(sum(joint(row, partition, prevalence, tables)))
        for row, count in zip(codes, counts, strict=True)
    )


def some_tables(partition, seed=0):
    """Members better than chance, who err together."""
    random = np.random.default_rng(seed)
    tables = []
    for block in partition:
        rates = random.uniform([0.1, 0.65], [0.35, 0.9], (len(block), 2))
        table = np.empty((2, 2 ** len(block)))
        for true, cell in product((0, 1), range(2 ** len(block))):
            votes = [cell >> place & 1 for place in range(len(block))]
            alone = [r[true] if v else 1 - r[true] for v, r in zip(votes, rates, strict=True)]
            same = len(set(votes)) == 1
            table[true, cell] = 0.5 * prod(alone) + 0.5 * same * alone[0]
        tables.append(table / table.sum(axis=1, keepdims=True))
    return tables


def exactly(partition, prevalence, tables):
    codes = list(product((0, 1), repeat=sum(map(len, partition))))
    return Tally.from_codes(
        codes, [sum(joint(row, partition, prevalence, tables)) for row in codes]
    )


def drawn(items=600, missing=0.0, seed=0, classifiers=7):
    votes = simulate.votes(
        items,
        sensitivity=np.linspace(0.6, 0.85, classifiers),
        specificity=np.linspace(0.85, 0.65, classifiers),
        prevalence=0.6,
        copies=GROUPS,
        copying=0.6,
        missing=missing,
        seed=seed,
    ).votes
    return Tally.from_codes(votes, np.ones(items))


def listed(tally):
    return tally.codes().astype(int).tolist(), tally.counts


# --- pointer and candidates ---------------------------------------------------------------------


@pytest.mark.parametrize("m", [3, 5, 8])
def test_pointer_is_the_sum_over_all_minors(m):
    rough = np.random.default_rng(m).normal(size=(m, m))
    r = rough + rough.T
    for i, j in product(range(m), repeat=2):
        others = [k for k in range(m) if k not in (i, j)]
        wanted = sum(
            abs(r[i, j] * r[k, h] - r[i, h] * r[k, j]) for k in others for h in others if k != h
        )
        assert pointer(r)[i, j] == pytest.approx(0.0 if i == j else wanted, abs=1e-12)


def test_pointer_is_zero_under_independence_and_points_at_a_copy():
    vector = np.linspace(0.2, 0.6, 6)
    covariance = np.outer(vector, vector)
    assert pointer(covariance) == pytest.approx(np.zeros((6, 6)), abs=1e-12)
    covariance[1, 4] = covariance[4, 1] = 0.9
    assert np.unravel_index(np.argmax(pointer(covariance)), (6, 6)) == (1, 4)


def test_candidates_have_three_blocks_or_more_of_five_at_most():
    rough = np.random.default_rng(0).random((12, 12))
    found = candidate_partitions(rough + rough.T)
    assert len(found) == len(set(found)) > 5
    for partition in found:
        assert sorted(i for block in partition for i in block) == list(range(12))
        assert 3 <= len(partition) < 12
        assert max(map(len, partition)) <= 5


def test_constant_classifiers_stay_alone():
    constant = np.array([True, False, False, False, True, False, False])
    for partition in candidate_partitions(np.ones((7, 7)) - np.eye(7), constant):
        assert {(0,), (4,)} <= set(partition)
        assert len(partition) >= 5


def test_of_four_classifiers_none_can_be_named():
    assert candidate_partitions(np.ones((4, 4))) == []
    assert candidate_partitions(np.ones((5, 5)), np.array([0, 0, 1, 0, 0], dtype=bool)) == []


# --- likelihood ---------------------------------------------------------------------------------


@pytest.mark.parametrize("bundle", [8, 1 << 12], ids=["many bundles", "few bundles"])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_likelihood_and_mode_against_plain_loops(missing, bundle, monkeypatch):
    monkeypatch.setattr("labelfree._categories.BUNDLE", bundle)
    tally = drawn(missing=missing)
    found = fit_groups(Blocks(tally), GROUPS, Prior.flat(7, 2, 1.0))
    assert found.converged
    codes, counts = listed(tally)
    wanted = log_likelihood(codes, counts, found.partition, found.prevalence, found.tables)
    assert found.log_likelihood == pytest.approx(wanted, rel=1e-12)
    assert found.parameters == 1 + 2 * 2 + 2 * 3 + 2 * 7
    assert found.bic == pytest.approx(-2 * wanted + 25 * log(600), rel=1e-12)
    prevalence, tables = plain_round(codes, counts, found)
    assert found.prevalence == pytest.approx(prevalence, abs=1e-9)
    for table, again in zip(found.tables, tables, strict=True):
        assert table == pytest.approx(again, abs=1e-9)


def plain_round(codes, counts, found):
    """One round of EM with one pseudo-vote in every cell of a single classifier."""
    of_classes = [1.0, 1.0]
    tables = [np.full_like(table, 2 / table.shape[1]) for table in found.tables]
    for row, count in zip(codes, counts, strict=True):
        shares = joint(row, found.partition, found.prevalence, found.tables)
        for true in (0, 1):
            share = count * shares[true] / sum(shares)
            of_classes[true] += share
            for block, table, fitted in zip(found.partition, tables, found.tables, strict=True):
                cells = [c for c in range(2 ** len(block)) if agrees(c, [row[i] for i in block])]
                whole = sum(fitted[true][c] for c in cells)
                for c in cells:
                    table[true, c] += share * fitted[true][c] / whole
    return of_classes[1] / sum(of_classes), [t / t.sum(axis=1, keepdims=True) for t in tables]


def test_with_no_groups_it_is_the_latent_class_model():
    tally = drawn(missing=0.2)
    blocks, prior = Blocks(tally), Prior.flat(7, 2, 1.0)
    found = fit_groups(blocks, [], prior)
    plain = _latent_class.fit(blocks, found.marginal(), prior)
    assert found.log_likelihood == pytest.approx(plain.log_likelihood, rel=1e-12)
    assert found.sensitivity == pytest.approx(plain.model.confusion[:, 1, 1], abs=1e-8)
    assert found.specificity == pytest.approx(plain.model.confusion[:, 0, 0], abs=1e-8)


@pytest.mark.parametrize("groups", [[(1, 3)], GROUPS, [(0, 1, 2, 3)]])
def test_exact_probabilities_give_the_tables_back(groups):
    partition = whole_partition(groups, 7)
    tables = some_tables(partition)
    blocks = Blocks(exactly(partition, 0.65, tables))
    found = fit_groups(blocks, groups, Prior.flat(7, 2, 0.0))
    assert found.converged
    assert found.prevalence == pytest.approx(0.65, abs=1e-8)
    for table, wanted in zip(found.tables, tables, strict=True):
        assert table == pytest.approx(wanted, abs=1e-8)
    positive = found.tables[partition.index(groups[0])][1]
    members = len(groups[0])
    wanted = [sum(p for c, p in enumerate(positive) if c >> k & 1) for k in range(members)]
    assert found.sensitivity[list(groups[0])] == pytest.approx(wanted, abs=1e-12)


def test_the_start_is_exact_where_the_moments_are():
    partition = whole_partition(GROUPS, 7)
    blocks = Blocks(exactly(partition, 0.65, some_tables(partition)))
    prevalence, tables = spectral_start(Layout(blocks.tally, partition), moments(blocks), None)
    assert tables.shape == (2, sum(2 ** len(block) for block in partition))
    assert prevalence == pytest.approx(0.65, abs=1e-9)


def test_masked_moments_forget_the_pairs_of_a_block():
    seen = moments(Blocks(drawn()))
    left = masked(seen, whole_partition(GROUPS, 7))
    for i, j in product(range(7), repeat=2):
        inside = i != j and any(i in group and j in group for group in GROUPS)
        assert left.pair_counts[i, j] == (0 if inside else 600)
        assert left.covariance[i, j] == (0.0 if inside else seen.covariance[i, j])


def test_sparse_votes_give_what_dense_ones_give():
    tally = drawn(missing=0.4)
    patterns = csr_array(tally.codes() + np.int8(1))
    sparse = Tally(tally.classifiers, tally.classes, patterns, tally.counts)
    prior = Prior.flat(7, 2, 1.0)
    one, two = (fit_groups(Blocks(each), GROUPS, prior) for each in (tally, sparse))
    assert one.sensitivity == pytest.approx(two.sensitivity, abs=1e-12)


@pytest.mark.parametrize("members", [(2,), (1, 3)], ids=["alone", "two of a group"])
def test_what_is_known_stays_fixed(members):
    blocks = Blocks(drawn(3000))
    fixed = np.zeros((7, 2), dtype=bool)
    fixed[list(members), 1] = True
    prior = replace(Prior.flat(7, 2, 1.0), fixed_rates=fixed)
    known = Model.binary(0.0, np.full(7, 0.75), np.full(7, 0.6))
    found = fit_groups(blocks, GROUPS, prior, 0.6, known=known)
    assert found.converged
    assert found.prevalence == 0.6
    assert found.sensitivity[list(members)] == pytest.approx(0.75, abs=1e-9)
    assert found.specificity[list(members)] != pytest.approx(0.6, abs=1e-3)
    covariance = covariance_of_logits(blocks, found, prior, 0.6)
    held = [0, *(2 + 2 * i for i in members)]
    assert not covariance[held].any()
    assert (np.delete(np.diagonal(covariance), held) > 0).all()


def test_a_search_that_does_not_settle_says_so(monkeypatch):
    monkeypatch.setattr(_group_model, "MOST_ROUNDS", 2)
    assert not fit_groups(Blocks(drawn()), GROUPS, Prior.flat(7, 2, 1.0)).converged


# --- information --------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_covariance_is_the_inverse_of_the_curvature(missing):
    tally = drawn(1500, missing)
    blocks, prior = Blocks(tally), Prior.flat(7, 2, 1.0)
    found = fit_groups(blocks, [(1, 3)], prior)
    codes, counts = tally.codes().astype(int), tally.counts

    def unpacked(logits):
        tables, place = [], 1
        for block in found.partition:
            size = 2 ** len(block) - 1
            part = np.concatenate(
                [np.zeros((2, 1)), logits[place : place + 2 * size].reshape(2, -1)], 1
            )
            tables.append(np.exp(part) / np.exp(part).sum(axis=1, keepdims=True))
            place += 2 * size
        return 1 / (1 + np.exp(-logits[0])), tables

    def objective(logits):
        prevalence, tables = unpacked(logits)
        chance = np.stack([np.full(len(codes), 1 - prevalence), np.full(len(codes), prevalence)])
        total = np.log(chance[:, 0]).sum()
        for block, table in zip(found.partition, tables, strict=True):
            cells = np.arange(2 ** len(block))[:, None] >> np.arange(len(block)) & 1
            own = codes[:, block][:, None]
            chance *= table @ ((own == -1) | (own == cells[None])).all(axis=2).T
            total += 2 / table.shape[1] * np.log(table).sum()
        return counts @ np.log(chance.sum(axis=0)) + total

    def reported(logits):
        prevalence, tables = unpacked(logits)
        model = replace(found, prevalence=prevalence, tables=tuple(tables))
        rates = np.concatenate([[prevalence], model.positive_rates.ravel()])
        return np.log(rates / (1 - rates))

    at = [np.log(found.prevalence / (1 - found.prevalence))]
    for table in found.tables:
        at.extend((np.log(table[:, 1:]) - np.log(table[:, :1])).ravel())
    at, step = np.array(at), 1e-3 * np.eye(len(at))
    curvature = np.array(
        [
            [
                (
                    objective(at + a + b)
                    - objective(at + a - b)
                    - objective(at - a + b)
                    + objective(at - a - b)
                )
                / 4e-6
                for b in step
            ]
            for a in step
        ]
    )
    slopes = np.array([(reported(at + a) - reported(at - a)) / 2e-3 for a in step]).T
    wanted = slopes @ np.linalg.inv(-curvature) @ slopes.T
    covariance = covariance_of_logits(blocks, found, prior)
    assert covariance == pytest.approx(wanted, rel=1e-3, abs=1e-3 * np.diagonal(wanted).min())

    def terms(logits):
        prevalence, tables = unpacked(logits)
        return group_rule(replace(found, prevalence=prevalence, tables=tuple(tables))).term_odds()

    slopes = np.array([(terms(at + a) - terms(at - a)) / 2e-3 for a in step]).T
    wanted = slopes @ np.linalg.inv(-curvature) @ slopes.T
    doubt = covariance_of_terms(blocks, found, prior)
    assert doubt == pytest.approx(wanted, rel=1e-3, abs=1e-5 * np.diagonal(wanted).max())


def test_exact_frequencies_have_no_sampling_error():
    partition = whole_partition(GROUPS, 7)
    blocks = Blocks(exactly(partition, 0.65, some_tables(partition)))
    prior = Prior.flat(7, 2, 0.0)
    assert not covariance_of_logits(blocks, fit_groups(blocks, GROUPS, prior), prior).any()


def test_information_that_is_singular_is_none():
    codes = np.random.default_rng(0).integers(0, 2, (50, 2))
    blocks = Blocks(Tally.from_codes(codes, np.ones(50)))
    prior = Prior.flat(2, 2, 0.0)
    found = fit_groups(blocks, [(0, 1)], prior)
    assert covariance_of_logits(blocks, found, prior) is None


def test_cross_residual_passes_over_pairs_of_a_block():
    residuals = np.zeros((5, 5))
    residuals[0, 1] = residuals[1, 0] = 9.0
    residuals[2, 3] = residuals[3, 2] = -2.0
    assert largest_cross_residual(residuals, ((0, 1), (2,), (3,), (4,))) == 2.0
    assert residuals[0, 1] == 9.0


# --- the search and the rule --------------------------------------------------------------------


def test_finds_the_groups():
    tally = drawn(20_000, missing=0.1, seed=3)
    blocks = Blocks(tally)
    found = find_groups(blocks, moments(blocks), Prior.flat(7, 2, 1.0))
    assert found.groups == ((0, 4, 5), (1, 3))
    assert found.converged


def test_finds_them_in_a_part_of_the_items_and_fits_all(monkeypatch):
    tally = drawn(20_000, seed=3)
    blocks, prior = Blocks(tally), Prior.flat(7, 2, 1.0)
    monkeypatch.setattr(_groups, "SPREAD", 100)
    monkeypatch.setattr(
        _groups, "thinned", lambda tally, _: replace(tally, counts=tally.counts / 4)
    )
    found = find_groups(blocks, moments(blocks), prior)
    whole = fit_groups(blocks, found.groups, prior)
    assert found.sensitivity == pytest.approx(whole.sensitivity, abs=1e-8)


def test_residuals_choose_among_far_likelier_partitions():
    blocks, prior = Blocks(drawn(20_000, seed=3)), Prior.flat(7, 2, 1.0)
    seen = moments(blocks)
    asked = []

    def explains(model):
        asked.append(model)
        return False

    plain = find_groups(blocks, seen, prior)
    assert find_groups(blocks, seen, prior, explains=explains) == asked[0]
    assert asked[0].groups == plain.groups
    assert all(other.log_likelihood > plain.log_likelihood + 5 for other in asked[1:])
    assert find_groups(blocks, seen, prior, explains=lambda _: True).groups == plain.groups


def test_thinning_draws_items_one_by_one():
    tally = drawn(3000)
    part = thinned(tally, 50)
    assert part.items == 50
    assert part == thinned(tally, 50)
    assert thinned(tally, 5000) is tally


def test_information_of_a_draw_is_scaled_up(monkeypatch):
    tally = drawn(20_000, missing=0.3, classifiers=12)
    blocks, prior = Blocks(tally), Prior.flat(12, 2, 1.0)
    found = fit_groups(blocks, GROUPS, prior)
    whole = covariance_of_logits(blocks, found, prior)
    assert len(tally) > 5000
    monkeypatch.setattr(_group_information, "INFORMING", 5000)
    part = covariance_of_logits(blocks, found, prior)
    assert np.diagonal(part) == pytest.approx(np.diagonal(whole), rel=0.3)


def test_without_shared_errors_there_are_no_groups():
    votes = simulate.votes(5000, classifiers=8, prevalence=0.65, seed=1).votes
    blocks = Blocks(Tally.from_codes(votes, np.ones(5000)))
    found = find_groups(blocks, moments(blocks), Prior.flat(8, 2, 1.0))
    assert found.groups == ()


@pytest.mark.parametrize("exact", [GROUPS, []], ids=["groups", "none"])
def test_exact_frequencies_name_the_groups(exact):
    partition = whole_partition(exact, 7)
    blocks = Blocks(exactly(partition, 0.65, some_tables(partition)))
    found = find_groups(blocks, moments(blocks), Prior.flat(7, 2, 0.0))
    assert set(found.groups) == set(exact)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_rule_is_the_posterior(missing):
    tally = drawn(missing=missing)
    found = fit_groups(Blocks(tally), GROUPS, Prior.flat(7, 2, 1.0))
    scores = group_rule(found).scores(Block(tally.codes(), tally.counts, 2))
    for row, score in zip(tally.codes().tolist(), scores, strict=True):
        negative, positive = joint(row, found.partition, found.prevalence, found.tables)
        assert score[1] - score[0] == pytest.approx(log(positive / negative), abs=1e-10)


def test_separation_is_what_all_votes_add_to_the_log_odds():
    partition = whole_partition(GROUPS, 7)
    tally = exactly(partition, 0.5, some_tables(partition))
    found = fit_groups(Blocks(tally), GROUPS, Prior.flat(7, 2, 0.0))
    wanted = 0.0
    for row in tally.codes().tolist():
        negative, positive = joint(row, partition, 0.5, found.tables)
        wanted += 2 * (positive - negative) * log(positive / negative)
    assert found.separation == pytest.approx(wanted, rel=1e-9)
