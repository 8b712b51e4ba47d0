"""The prior that rare classifiers share: against loops, and what a rater with three votes gets."""

import numpy as np
import polars as pl
import pytest
from scipy.special import gammaln

from labelfree import Tally
from labelfree._item_types import COMMON, Types, expect_types, leap
from labelfree._multiclass import many_classes
from labelfree._products import Blocks
from labelfree._shared_prior import MIDDLE, STRENGTHS, label_counts, shared
from labelfree._starts import majority_start

from .promises.common import data_folder


def crowd(items, raters, each, classes, seed, strength=20.0, accuracy=0.7):
    """Codes (items, raters): every item is seen by a few raters, whose rates come from one Dirichlet."""
    random = np.random.default_rng(seed)
    mean = np.full((classes, classes), (1 - accuracy) / (classes - 1))
    np.fill_diagonal(mean, accuracy)
    confusion = np.stack(
        [[random.dirichlet(strength * row) for row in mean] for _ in range(raters)]
    )
    truth = random.integers(classes, size=items)
    codes = np.full((items, raters), -1, dtype=np.int8)
    for item, true in enumerate(truth):
        for rater in random.choice(raters, each, replace=False):
            codes[item, rater] = random.choice(classes, p=confusion[rater, true])
    return codes, truth, confusion, mean


def blocks_of(codes, classes):
    return Blocks(Tally.from_codes(codes, np.ones(len(codes)), classes=tuple(range(classes))))


@pytest.mark.parametrize("classes", [2, 4])
def test_the_strength_of_the_pool_is_found(classes):
    for strength in (5.0, 20.0):
        codes, _, _, _ = crowd(3000, 60, 6, classes, seed=1, strength=strength)
        blocks = blocks_of(codes, classes)
        found = shared(blocks, majority_start(blocks))
        assert strength / 2 < found.strength < strength * 2


def test_the_strength_is_the_likeliest_of_a_plain_loop():
    codes, truth, _, mean = crowd(400, 15, 5, 3, seed=2)
    votes = np.zeros((15, 3, 3))
    for row, true in zip(codes, truth, strict=True):
        for rater in np.flatnonzero(row >= 0):
            votes[rater, true, row[rater]] += 1
    heights = []
    for strength in STRENGTHS:
        total = -0.5 * (np.log(strength / MIDDLE) / 1.5) ** 2
        for rater in range(15):
            for true in range(3):
                own, pseudo = votes[rater, true], strength * mean[true]
                total += gammaln(pseudo.sum()) - gammaln(pseudo.sum() + own.sum())
                total += sum(gammaln(pseudo[k] + own[k]) - gammaln(pseudo[k]) for k in range(3))
        heights.append(total)
    from labelfree._shared_prior import _Pool

    pool = _Pool(blocks_of(codes, 3), 1.0)
    found = pool.strength(votes, np.broadcast_to(mean, votes.shape))
    place = int(np.argmax(heights))
    assert found == STRENGTHS[place]
    everyone = np.broadcast_to(mean, votes.shape)
    assert pool.strength(votes, everyone, near=STRENGTHS[place - 1]) == found
    assert pool.strength(votes, everyone, near=STRENGTHS[place - 5]) == STRENGTHS[place - 3]


@pytest.mark.parametrize("classes", [3, 5])
def test_a_rater_with_three_votes_is_near_the_pool_and_its_interval_wide(classes):
    codes, _, _, mean = crowd(1500, 20, 5, classes, seed=3)
    codes[3:, 0], codes[:3, 0] = -1, 0  # three votes, all for the first class
    found = many_classes(blocks_of(codes, classes))
    rare = found.model.confusion[0]
    assert found.converged
    assert np.max(np.abs(rare - mean)) < 0.25
    assert found.covariance is not None
    error = np.sqrt(np.diag(found.covariance)[classes - 1 :]).reshape(20, classes, classes - 1)
    # As wide as raters differ: with c = 20 and a rate of .7 or less, a logit's spread is .45 or more.
    assert error[0].min() > 0.4
    assert error[0].mean() > 1.5 * error[1:].mean()


def test_rates_of_a_crowd_are_nearer_the_truth_than_under_a_flat_prior():
    from labelfree._latent_class import Prior, fit

    for classes in (2, 4):
        codes, _, confusion, _ = crowd(900, 150, 5, classes, seed=4)
        blocks = blocks_of(codes, classes)
        start = majority_start(blocks)
        flat = fit(blocks, start, Prior.flat(150, classes, 1.0)).model
        pool = shared(blocks, start).model
        errors = [np.abs(model.confusion - confusion).mean() for model in (flat, pool)]
        assert errors[1] < 0.75 * errors[0]


def test_labelling_functions_keep_what_they_say():
    """Each only ever votes one label; the votes alone would let one class swallow all others."""
    random = np.random.default_rng(5)
    truth = random.integers(3, size=900)
    codes = np.full((900, 6), -1, dtype=np.int8)
    for function in range(6):
        own = function % 3
        chance = np.where(truth == own, 0.5, 0.1 if own else 0.3)
        codes[random.random(900) < chance, function] = own
    blocks = blocks_of(codes, 3)
    found = shared(blocks, majority_start(blocks))
    assert np.allclose(found.model.class_probabilities, 1 / 3)
    assert (found.model.confusion[:, range(3), range(3)] > 0.5).all()
    covariance = many_classes(blocks).covariance
    assert covariance is None or (np.diag(covariance)[2:] > 0.01).all()


def test_counts_of_labels():
    codes = np.array([[0, 1, -1], [1, 1, 2], [0, -1, 2]], dtype=np.int8)
    assert label_counts(blocks_of(codes, 3)).tolist() == [[2, 1, 0], [0, 2, 0], [0, 0, 2]]


def test_many_votes_outweigh_the_pool():
    random = np.random.default_rng(6)
    truth = random.integers(2, size=20_000)
    rates = np.array([0.95, 0.9, 0.7, 0.6, 0.85])
    right = random.random((20_000, 5)) < rates
    codes = np.where(right, truth[:, None], 1 - truth[:, None]).astype(np.int8)
    blocks = blocks_of(codes, 2)
    found = shared(blocks, majority_start(blocks)).model.confusion
    assert np.max(np.abs(found[:, [0, 1], [0, 1]] - rates[:, None])) < 0.015


def test_the_order_of_classifiers_changes_nothing():
    codes, _, _, _ = crowd(300, 12, 5, 3, seed=7)
    one = shared(blocks_of(codes, 3), majority_start(blocks_of(codes, 3)))
    other = shared(blocks_of(codes[:, ::-1], 3), majority_start(blocks_of(codes[:, ::-1], 3)))
    assert one.strength == other.strength
    assert np.allclose(one.model.confusion, other.model.confusion[::-1], atol=1e-9)


def some_types(classes, m, seed):
    random = np.random.default_rng(seed)
    shares = random.dirichlet(np.ones(2 * classes)).reshape(2, classes)
    own = random.dirichlet(np.ones(classes), (m, classes))
    alike = np.zeros((m, classes), dtype=bool)
    alike[1, 0] = True
    return Types(shares, own, 0.7, alike)


@pytest.mark.parametrize("classes", [2, 3])
def test_items_of_two_types_are_counted_as_in_a_plain_loop(classes):
    random = np.random.default_rng(8)
    codes = random.integers(-1, classes, (40, 4)).astype(np.int8)
    types = some_types(classes, 4, seed=9)
    found = expect_types(blocks_of(codes, classes), types)
    wrong = 0.3 / (classes - 1)
    items, height = np.zeros((2, classes)), 0.0
    own, common = np.zeros((4, classes, classes)), np.zeros((classes, classes))

    def chances(kind, i, true, vote):
        by_own = types.own[i, true, vote]
        by_common = 0.7 if vote == true else wrong
        share = COMMON if kind == 1 and not types.alike[i, true] else 0.0
        return (1 - share) * by_own, share * by_common

    for row in codes:
        votes = [(i, vote) for i, vote in enumerate(row) if vote >= 0]
        joint = types.shares.copy()
        for kind, true in np.ndindex(2, classes):
            for i, vote in votes:
                joint[kind, true] *= sum(chances(kind, i, true, vote))
        height += np.log(joint.sum())
        joint /= joint.sum()
        items += joint
        for kind, true in np.ndindex(2, classes):
            for i, vote in votes:
                parts = chances(kind, i, true, vote)
                own[i, true, vote] += joint[kind, true] * parts[0] / sum(parts)
                common[true, vote] += joint[kind, true] * parts[1] / sum(parts)
    assert found.log_likelihood == pytest.approx(height, rel=1e-12)
    assert np.allclose(found.items, items, rtol=0, atol=1e-10)
    assert np.allclose(found.own, own, rtol=0, atol=1e-10)
    assert np.allclose(found.common, common, rtol=0, atol=1e-10)


def test_the_model_of_one_type_is_the_mean_over_items():
    types = some_types(3, 4, seed=10)
    model = types.marginal()
    for true in range(3):
        first, second = types.shares[:, true] / types.shares[:, true].sum()
        for i in range(4):
            both = first * types.own[i, true] + second * types.second()[i, true]
            assert np.allclose(model.confusion[i, true], both)
    assert (types.second()[1, 0] == types.own[1, 0]).all()
    assert np.allclose(model.class_probabilities, types.shares.sum(axis=0))


@pytest.mark.parametrize(
    ("name", "least"), [("chexpert_radiologists", 0.96), ("llmbar", 0.85), ("judgebench", 0.674)]
)
def test_errors_shared_on_hard_items_are_not_taken_for_skill(name, least):
    """Real votes on which a model of one type of items labels .935, .835 and .671 rightly."""
    import labelfree as lf
    from labelfree._consensus import posterior_rule, winners
    from labelfree._products import Block

    folder = data_folder() / "votes" / name
    votes = pl.read_parquet(folder / "votes.parquet").unique(
        ["item", "worker"], keep="last", maintain_order=True
    )
    table = votes.pivot("worker", index="item", values="label").join(
        pl.read_parquet(folder / "truth.parquet"), on="item"
    )
    classes = sorted(votes["label"].unique())
    codes = table.drop("item", "label").to_numpy()
    codes = np.where(codes == classes[1], 1, np.where(codes == classes[0], 0, -1)).astype(np.int8)
    found = many_classes(Blocks(lf.Tally.from_codes(codes, np.ones(len(codes)))))
    rule = posterior_rule(found.model)
    labels = winners(rule.scores(Block(codes, np.ones(len(codes)), 2)))
    assert (np.array(classes)[labels] == table["label"].to_numpy()).mean() >= least


def test_leaps_end_where_plain_rounds_end(monkeypatch):
    codes, _, _, _ = crowd(400, 30, 5, 3, seed=13)
    blocks = blocks_of(codes, 3)
    monkeypatch.setattr("labelfree._shared_prior.STILL", 1e-8)
    quick = shared(blocks, majority_start(blocks), most_rounds=5000)
    monkeypatch.setattr("labelfree._shared_prior.leap", lambda path: path[-1])
    slow = shared(blocks, majority_start(blocks), most_rounds=5000)
    assert quick.converged
    assert slow.converged
    assert quick.rounds < slow.rounds
    assert np.allclose(quick.model.confusion, slow.model.confusion, rtol=0, atol=1e-5)


def test_a_leap_keeps_probabilities_and_what_is_alike():
    path = [some_types(3, 4, seed=seed) for seed in (1, 2, 3)]
    far = leap(path)
    assert np.allclose(far.own.sum(axis=2), 1)
    assert far.shares.sum() == pytest.approx(1)
    assert (far.own[1, 0] == path[-1].own[1, 0]).all()
    assert leap([path[0]] * 3) is path[0]
