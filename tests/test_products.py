"""The three products with the one-hot vote matrix, dense and sparse, against plain loops."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from labelfree import Tally, _products
from labelfree._products import Block, Blocks, label_pairs

from . import naive

CASES = [
    (m, classes, missing) for m in (1, 3, 9) for classes in (2, 3, 5) for missing in (0.0, 0.3)
]


def drawn(m, classes, missing, patterns=50):
    random = np.random.default_rng([m, classes, int(10 * missing)])
    codes = random.integers(0, classes, (patterns, m))
    codes[random.random(codes.shape) < missing] = -1
    if missing:
        codes[3] = -1
    return codes.astype(np.int8), random.integers(1, 9, patterns).astype(float), random


def both(codes, counts, classes):
    return (
        Block(codes, counts, classes),
        Block(csr_array(codes + np.int8(1)), counts, classes),
    )


def close(found, wanted):
    return np.allclose(found, wanted, rtol=1e-12, atol=1e-12) and found.shape == wanted.shape


@pytest.mark.parametrize(("m", "classes", "missing"), CASES)
def test_cooccurrence_counts_pairs_of_labels(m, classes, missing):
    codes, counts, _ = drawn(m, classes, missing)
    wanted = naive.cooccurrence(codes, counts, classes)
    for block in both(codes, counts, classes):
        assert close(label_pairs(block.cooccurrence(), classes), wanted)


@pytest.mark.parametrize(("m", "classes", "missing"), CASES)
@pytest.mark.parametrize("columns", [1, 4])
def test_score_sums_the_weights_of_a_patterns_votes(m, classes, missing, columns):
    codes, counts, random = drawn(m, classes, missing)
    weights = random.normal(size=(m, classes, columns))
    wanted = naive.score(codes, weights)
    for block in both(codes, counts, classes):
        assert close(block.score(weights), wanted)


@pytest.mark.parametrize(("m", "classes", "missing"), CASES)
@pytest.mark.parametrize("columns", [1, 4])
def test_gather_sums_the_shares_of_the_patterns_with_a_vote(m, classes, missing, columns):
    codes, counts, random = drawn(m, classes, missing)
    shares = random.normal(size=(len(codes), columns))
    wanted = naive.gather(codes, shares, classes)
    for block in both(codes, counts, classes):
        assert close(block.gather(shares), wanted)


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("classes", [2, 3])
def test_blocks_cover_every_pattern_once_and_in_order(classes, kept, is_sparse, monkeypatch):
    monkeypatch.setattr(_products, "BLOCK_CELLS", 1)
    monkeypatch.setattr(_products, "KEPT_CELLS", 10**9 if kept else 0)
    codes, counts, random = drawn(7, classes, 0.2, patterns=900)
    counted = Tally.from_codes(codes, counts, classes=tuple(range(classes)))
    codes, counts = counted.codes().astype(int), counted.counts
    if is_sparse:
        counted = replace(counted, patterns=csr_array((codes + 1).astype(np.int8)))
    blocks = Blocks(counted)
    assert len(blocks.places) > 2
    weights = random.normal(size=(7, classes, 2))
    scores = np.concatenate(blocks.each(lambda block: block.score(weights)))
    assert close(scores, naive.score(codes, weights))
    for _ in range(2):
        table, items = blocks.total(lambda block: (block.cooccurrence(), block.counts.sum()))
        assert items == counts.sum()
        assert close(label_pairs(table, classes), naive.cooccurrence(codes, counts, classes))


@pytest.mark.parametrize("narrow", [False, True])
def test_blocks_of_sparse_votes_are_long_unless_asked_to_be_narrow(narrow):
    random = np.random.default_rng(1)
    codes = np.full((4000, 900), -1)
    codes[np.arange(4000)[:, None], random.integers(0, 900, (4000, 3))] = random.integers(
        0, 3, (4000, 3)
    )
    patterns = csr_array((codes + 1).astype(np.int8))
    counted = Tally(tuple(map(str, range(900))), (0, 1, 2), patterns, np.ones(4000))
    blocks = Blocks(counted)
    weights = random.normal(size=(900, 3, 2))
    parts = blocks.each(lambda block: block.score(weights), narrow=narrow)
    assert len(parts) == (14 if narrow else 1)
    assert close(np.concatenate(parts), naive.score(codes, weights))
    (found,) = blocks.total(lambda block: (block.gather(block.score(weights)),), narrow=narrow)
    wanted = naive.gather(codes, naive.score(codes, weights), 3)
    assert np.allclose(found, wanted, rtol=1e-9, atol=1e-9)


def test_a_block_without_missing_votes_beside_one_with_them_adds_up(monkeypatch):
    monkeypatch.setattr(_products, "BLOCK_CELLS", 1)
    complete, counts, _ = drawn(5, 2, 0.0, patterns=2000)
    holed, _, _ = drawn(5, 2, 0.4, patterns=2000)
    counted = Tally.from_codes(np.concatenate([complete, holed]), np.concatenate([counts, counts]))
    blocks = Blocks(counted)
    (table,) = blocks.total(lambda block: (block.cooccurrence(),))
    wanted = naive.cooccurrence(counted.codes(), counted.counts, 2)
    assert close(label_pairs(table, 2), wanted)
