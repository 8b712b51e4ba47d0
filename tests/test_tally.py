"""Tallies count patterns, add up, and do not depend on the order of anything."""

import os
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from scipy.sparse import csr_array

import labelfree as lf
from labelfree import Tally, _counting, _long_form, _patterns, simulate, tally
from labelfree._tally import count_votes
from labelfree._votes import Votes

from . import naive

NAMES = ("a", "b", "c", "d", "e", "f")


def drawn(items, m, classes=2, missing=0.2, distinct=None, seed=0):
    """Codes with repeated patterns: items are drawn from a few distinct rows."""
    random = np.random.default_rng([seed, m, classes])
    codes = random.integers(0, classes, (distinct or items, m))
    codes[random.random(codes.shape) < missing] = -1
    return codes[random.integers(0, len(codes), items)].astype(np.int8)


def default_names(codes):
    return tuple(f"classifier_{i + 1}" for i in range(codes.shape[1]))


def dense(codes, classes=2, names=None):
    return tally(
        codes, classes=tuple(range(classes)), missing=-1, classifiers=names or default_names(codes)
    )


def sparse(codes, classes=2, names=None, table=None):
    votes = Votes(
        tuple(names or default_names(codes)),
        tuple(range(classes)),
        tuple(range(classes)),
        csr_array(codes + np.int8(1)) if table is None else table,
        (-1,),
        len(codes),
        lambda *_: None,
    )
    return count_votes(votes)


def content(counted):
    """The patterns with their counts, each by the names and labels of its votes."""
    codes = counted.codes()
    if counted.is_sparse:
        codes = codes.toarray().astype(int) - 1
    labels = np.array([None, *counted.classes], dtype=object)
    return {
        frozenset(zip(counted.classifiers, labels[row + 1].tolist(), strict=True)): count
        for row, count in zip(codes, counted.counts.tolist(), strict=True)
    }


def same(one, other):
    """Equal to the last bit, in the same order."""
    return (
        one == other
        and np.array_equal(one.patterns, other.patterns)
        and np.array_equal(one.counts, other.counts)
    )


@pytest.mark.parametrize("layout", [np.ascontiguousarray, np.asfortranarray])
@pytest.mark.parametrize(
    ("m", "classes"),
    [
        *((m, 2) for m in (3, 8, 10, 11, 20, 21, 64, 70, 130)),
        *((m, 3) for m in (3, 10, 11, 33)),
        *((m, 4) for m in (6, 7)),
        *((m, 5) for m in (5, 66)),
        *((m, 20) for m in (4, 9)),
        *((m, 100) for m in (3, 10, 66)),
        (4, 127),
    ],
)
def test_counts_are_those_of_a_plain_counter(m, classes, layout):
    for missing in (0.0, 0.2):
        codes = drawn(700, m, classes, missing, distinct=90)
        counted = dense(layout(codes), classes)
        found = naive.counts_of(counted.codes(), counted.counts)
        assert len(found) == len(counted)
        assert found == naive.counts_of(codes)
        assert counted.items == counted.sample_size == 700


@pytest.mark.parametrize("m", [4, 12, 20, 25])
def test_stretches_with_and_without_missing_votes_are_counted_together(m, monkeypatch):
    monkeypatch.setattr(_patterns, "CELLS", 1)
    monkeypatch.setattr(_counting, "SORT_ROWS", 100)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    codes = drawn(64 * 9 + 1, m, distinct=50)
    codes[64:256] = np.abs(codes[64:256])
    counted = dense(codes)
    assert naive.counts_of(counted.codes(), counted.counts) == naive.counts_of(codes)
    monkeypatch.undo()
    assert same(counted, dense(codes))


@pytest.mark.parametrize("classes", [2, 3, 5, 20, 100, 127])
def test_sparse_counts_are_those_of_a_plain_counter(classes):
    codes = drawn(500, 40, classes, missing=0.9, distinct=60)
    codes[7] = -1
    counted = sparse(codes, classes)
    assert counted.is_sparse
    patterns = counted.codes().toarray().astype(int) - 1
    assert naive.counts_of(patterns, counted.counts) == naive.counts_of(codes)


def test_sparse_votes_may_be_stored_in_any_order_and_with_zeros():
    codes = drawn(200, 30, missing=0.8, distinct=60)
    tidy = csr_array(codes + np.int8(1))
    rows = [np.arange(start, stop)[::-1] for start, stop in pairwise(tidy.indptr)]
    places = np.concatenate(rows)
    untidy = csr_array((tidy.data[places], tidy.indices[places], tidy.indptr), tidy.shape)
    untidy.data[::7] = 0
    codes = untidy.toarray() - np.int8(1)
    assert not untidy.has_sorted_indices
    counted = sparse(codes, table=untidy)
    assert counted == sparse(codes)
    assert np.array_equal(counted.patterns.indices, sparse(codes).patterns.indices)
    assert (counted.patterns.data != 0).all()


def test_long_votes_come_out_the_same_whether_laid_out_dense_or_sparse(monkeypatch):
    codes = drawn(300, 6, missing=0.5)
    codes = codes[(codes >= 0).any(axis=1)]
    items, classifiers = np.nonzero(codes >= 0)
    long = pl.DataFrame(
        {
            "item": items,
            "classifier": [NAMES[i] for i in classifiers],
            "vote": codes[items, classifiers],
        }
    )
    reading = {"classifier": "classifier", "vote": "vote"}
    as_dense = tally(long, **reading)
    monkeypatch.setattr(_long_form, "DENSE_CELLS", 0)
    monkeypatch.setattr(_long_form, "DENSE_SHARE", 2.0)
    as_sparse = tally(long.sample(fraction=1.0, shuffle=True, seed=1), **reading)
    assert as_sparse.is_sparse
    assert not as_dense.is_sparse
    assert content(as_sparse) == content(as_dense) == content(dense(codes, names=NAMES))
    assert as_sparse == as_dense


@pytest.mark.parametrize("m", [5, 15, 30, 70])
@pytest.mark.parametrize("make", [dense, sparse])
def test_the_order_of_the_items_does_not_show(m, make):
    codes = drawn(600, m, distinct=200)
    shuffled = np.random.default_rng(1).permutation(codes)
    assert make(codes) == make(shuffled)
    assert np.array_equal(make(codes).counts, make(shuffled).counts)


@pytest.mark.parametrize(
    ("m", "classes"),
    [
        (3, 2),
        (10, 2),
        (15, 2),
        (30, 2),
        (70, 3),
        (5, 4),
        (9, 5),
        (4, 20),
        (40, 20),
        (3, 100),
        (12, 100),
    ],
)
@pytest.mark.parametrize("make", [dense, sparse])
def test_tallies_of_parts_add_up_to_the_tally_of_the_whole_in_any_order(m, classes, make):
    codes = drawn(500, m, classes, distinct=120)
    whole = make(codes, classes)
    random = np.random.default_rng(2)
    for parts in (2, 3, 7):
        random.shuffle(codes)
        ends = np.sort(random.integers(1, 500, parts - 1))
        pieces = [make(part, classes) for part in np.split(codes, ends) if len(part)]
        random.shuffle(pieces)
        total = pieces[0]
        for piece in pieces[1:]:
            total = total + piece
        assert total == whole
        assert np.array_equal(total.counts, whole.counts)


@pytest.mark.parametrize("make", [dense, sparse])
def test_parts_may_name_classifiers_and_classes_in_any_order(make):
    codes = drawn(200, 6, missing=0.3)
    order = [3, 0, 5, 1, 2, 4]
    other = make(codes[80:, order], names=[NAMES[i] for i in order])
    turned = Tally.from_codes(
        np.where(codes[80:] < 0, -1, 1 - codes[80:]),
        np.ones(120),
        classifiers=NAMES,
        classes=(1, 0),
    )
    first, whole = make(codes[:80], names=NAMES), make(codes, names=NAMES)
    assert first + other == whole
    assert first + turned == whole
    assert content(other + first) == content(whole)
    assert (other + first).classifiers == other.classifiers
    assert (turned + first).classes == (1, 0)
    assert content(turned + first) == content(whole)


@pytest.mark.parametrize("make", [dense, sparse])
@pytest.mark.parametrize("classes", [3, 20, 100])
def test_parts_of_many_classes_may_name_them_in_any_order(classes, make):
    codes = drawn(300, 6, classes, missing=0.3)
    order = np.random.default_rng(1).permutation(classes)
    recoded = np.where(codes < 0, -1, np.argsort(order)[codes])
    first, whole = make(codes[:80], classes, NAMES), make(codes, classes, NAMES)
    turned = Tally.from_codes(
        recoded[80:], np.ones(220), classifiers=NAMES, classes=tuple(order.tolist())
    )
    assert first + turned == whole
    assert (turned + first).classes == turned.classes
    assert content(turned + first) == content(whole)


def test_dense_and_sparse_tallies_add_up_and_compare_by_what_they_hold():
    codes = drawn(300, 20, missing=0.6, distinct=100)
    whole = dense(codes)
    assert sparse(codes) == whole
    assert whole == sparse(codes)
    for total in (
        dense(codes[:90]) + sparse(codes[90:]),
        sparse(codes[:90]) + dense(codes[90:]),
    ):
        assert total == whole
        assert total == sparse(codes)
    assert sparse(codes[1:]) != whole
    assert dense(codes[1:]) != sparse(codes)


def test_a_part_with_one_label_only_adds_up_when_the_classes_are_named():
    codes = drawn(60, 4, missing=0.0)
    part = np.zeros((9, 4), dtype=int)
    with pytest.raises(lf.VotesError, match="two labels"):
        tally(part)
    total = tally(codes, classes=(0, 1)) + tally(part, classes=(0, 1))
    assert total == tally(np.concatenate([part, codes]))


def test_tallies_of_other_classifiers_or_classes_do_not_add_up():
    one = tally(drawn(20, 3, missing=0.0))
    others = [
        tally(drawn(20, 4, missing=0.0)),
        tally(drawn(20, 3, missing=0.0), classifiers=["x", "y", "z"]),
        Tally.from_codes([[0, 1, 2]], [1], classes=(0, 1, 2)),
    ]
    for other in others:
        with pytest.raises(lf.VotesError, match="same classifiers and classes"):
            one + other
    with pytest.raises(TypeError):
        one + 1


def test_tallies_are_equal_only_when_all_of_it_is():
    one = Tally.from_codes([[0, 1, 1], [1, 1, 1]], [2, 3])
    assert one == Tally.from_codes([[1, 1, 1], [0, 1, 1]], [3, 2])
    assert one != Tally.from_codes([[0, 1, 1], [1, 1, 1]], [2, 4])
    assert one != Tally.from_codes([[0, 1, 0], [1, 1, 1]], [2, 3])
    assert one != Tally.from_codes([[0, 1, 1], [1, 1, 1], [0, 0, 0]], [2, 3, 1])
    assert one != Tally.from_codes([[0, 1, 1], [1, 1, 1]], [2, 3], classifiers="abc")
    assert one != Tally.from_codes([[0, 1, 1], [1, 1, 1]], [2, 3], classes=("no", "yes"))
    assert one != "a tally"


def test_from_codes_merges_equal_patterns_and_drops_those_that_never_occurred():
    codes = [[1, -1, 0], [0, 0, 0], [1, -1, 0], [1, 1, 1]]
    counted = Tally.from_codes(codes, [1, 2, 3.5, 0])
    assert content(counted) == content(Tally.from_codes([[1, -1, 0], [0, 0, 0]], [4.5, 2]))
    assert len(counted) == 2
    assert counted.items == 6.5
    assert counted.sample_size == np.inf


@pytest.mark.parametrize(
    ("codes", "counts", "options"),
    [
        ([[0, 1, 2]], [1], {}),
        ([[0, 1, -2]], [1], {}),
        ([[0.0, 1.0, 1.0]], [1], {}),
        ([0, 1, 1], [1], {}),
        ([[0, 1, 1]], [1, 2], {}),
        ([[0, 1, 1]], [-1], {}),
        ([[0, 1, 1]], [0], {}),
        ([[0, 1, 1]], [np.nan], {}),
        ([[0, 1, 1]], [np.inf], {}),
        ([[0, 1, 1]], [1], {"classifiers": ["a", "b"]}),
        ([[0, 1, 1]], [1], {"classifiers": ["a", "b", "a"]}),
    ],
)
def test_from_codes_refuses_rubbish_in_a_sentence(codes, counts, options):
    with pytest.raises(lf.LabelfreeError, match=r"got|mend"):
        Tally.from_codes(codes, counts, **options)


def test_a_tally_passes_through_unchanged():
    counted = tally(drawn(20, 3, missing=0.0))
    assert tally(counted) is counted


def test_slices_of_the_codes_are_the_codes_of_the_slices():
    codes = drawn(100, 5)
    for counted in (dense(codes), sparse(codes)):
        whole, part = counted.codes(), counted.codes(3, 11)
        if counted.is_sparse:
            whole, part = whole.toarray(), part.toarray()
        assert np.array_equal(part, whole[3:11])


# --- what follows for the estimate --------------------------------------------------------------


def votes_of(m, items=400):
    low = np.linspace(0.6, 0.85, m)
    return simulate.votes(
        items, sensitivity=low, specificity=low[::-1], prevalence=0.4, missing=0.1, seed=3
    ).votes


@pytest.mark.parametrize("method", ["map", "likelihood", "tensor"])
@pytest.mark.parametrize("m", [5, 22])
def test_estimates_agree_to_the_last_bit_for_shuffled_items_and_for_any_split(m, method):
    votes, random = votes_of(m), np.random.default_rng(4)
    names = [f"c{i}" for i in range(m)]
    reading = {"missing": -1, "classes": (0, 1), "classifiers": names}
    whole = lf.estimate(tally(votes, **reading), method=method)
    shuffled = lf.estimate(tally(random.permutation(votes), **reading), method=method)
    assert shuffled.as_dict() == whole.as_dict()
    by_column = lf.estimate(tally(np.asfortranarray(votes), **reading), method=method)
    assert by_column.as_dict() == whole.as_dict()
    for ends in ([1], [70, 71, 300]):
        parts = [tally(part, **reading) for part in np.split(votes, ends)]
        total = parts[-1]
        for part in parts[:-1]:
            total = total + part
        assert lf.estimate(total, method=method).as_dict() == whole.as_dict()


@pytest.mark.parametrize("method", ["map", "likelihood", "tensor"])
@pytest.mark.parametrize("m", [5, 22])
def test_estimates_of_permuted_classifiers_are_the_permuted_estimates(m, method):
    votes = votes_of(m)
    order = np.random.default_rng(5).permutation(m)
    one = lf.estimate(votes, missing=-1, method=method)
    other = lf.estimate(votes[:, order], missing=-1, method=method)
    assert other.imbalance == pytest.approx(one.imbalance, abs=1e-9)
    assert other.sensitivity == pytest.approx(one.sensitivity[order], abs=1e-9)
    assert other.specificity == pytest.approx(one.specificity[order], abs=1e-9)


@pytest.mark.parametrize("method", ["map", "likelihood", "tensor"])
def test_estimates_from_dense_and_sparse_tallies_agree(method):
    votes = votes_of(12)
    one = lf.estimate(dense(votes), method=method, dependence="ignore")
    other = lf.estimate(sparse(votes), method=method, dependence="ignore")
    assert other.imbalance == pytest.approx(one.imbalance, abs=1e-9)
    assert other.sensitivity == pytest.approx(one.sensitivity, abs=1e-9)
    assert other.specificity == pytest.approx(one.specificity, abs=1e-9)


@pytest.mark.parametrize("bins", [1, 8, 1 << 20])
def test_places_are_counted_alike_few_or_many(bins, monkeypatch):
    random = np.random.default_rng(bins)
    for size in (0, 1, 1000, 300_000):
        places = (bins * random.random(size) ** 3).astype(np.int32)
        wanted = np.zeros(bins, dtype=np.int64)
        np.add.at(wanted, places, 1)
        for start in (0, 1 << 30):
            monkeypatch.setattr(_counting, "SPARSE_FROM", start)
            found = _counting._histogram(places, bins)
            assert found.shape == (bins,)
            assert np.array_equal(found, wanted)
