"""Votes of any layout and type become the same bits."""

import itertools
import os

import numpy as np
import pytest

from labelfree import VotesError, _patterns
from labelfree._patterns import Reader, Shape, codes_of_words, read_all, words_of, words_of_codes
from labelfree._votes import read_votes

from . import naive

SIZES = (3, 7, 8, 9, 15, 16, 17, 20, 21, 31, 32, 33, 63, 64, 65, 70, 130)


def _inside_records(table):
    records = np.zeros((len(table), table.shape[1] * table.itemsize + 1), dtype=np.uint8)
    inside = np.ndarray(
        table.shape, table.dtype, records.data, 1, (records.strides[0], table.itemsize)
    )
    inside[...] = table
    return inside


def _locked(table):
    table = table.copy()
    table.flags.writeable = False
    return table


def _holed(codes, dtype):
    return np.where(codes < 0, np.nan, codes).astype(dtype)


def _objects(codes):
    return np.array([None, "a", "b", "c", "d", "e"], dtype=object)[codes + 1]


LAYOUTS = {
    "by rows": np.ascontiguousarray,
    "by columns": np.asfortranarray,
    "every other row": lambda table: np.repeat(table, 2, axis=0)[::2],
    "every other column": lambda table: np.repeat(table, 2, axis=1)[:, ::2],
    "every other row by columns": lambda table: np.asfortranarray(np.repeat(table, 2, axis=0))[::2],
    "upside down": lambda table: np.ascontiguousarray(table[::-1])[::-1],
    "mirrored by columns": lambda table: np.asfortranarray(table[:, ::-1])[:, ::-1],
    "unaligned": _inside_records,
    "read only": _locked,
}
# Each way to write codes down: the table, what means missing, and the labels of the classes.
KINDS = {
    "int8": lambda codes, k: (codes.astype(np.int8), -1, range(k)),
    "uint8": lambda codes, k: (np.where(codes < 0, 9, codes).astype(np.uint8), 9, range(k)),
    "int64": lambda codes, k: (codes * 1000, -1000, range(0, 1000 * k, 1000)),
    "big-endian": lambda codes, k: (codes.astype(">i4"), -1, range(k)),
    "float32": lambda codes, k: (_holed(codes, np.float32), (), range(k)),
    "float64": lambda codes, k: (_holed(codes, np.float64), float("nan"), range(k)),
    "bool": lambda codes, _: (codes == 1, (), (False, True)),
    "text": lambda codes, k: (np.where(codes < 0, "", codes.astype("<U2")), "", "01234"[:k]),
    "bytes": lambda codes, k: (codes.astype("S2"), b"-1", [b"0", b"1", b"2", b"3", b"4"][:k]),
    "objects": lambda codes, k: (_objects(codes), (), ["a", "b", "c", "d", "e"][:k]),
}


def drawn(m, classes, missing, items=60, seed=0):
    random = np.random.default_rng([seed, m, classes])
    codes = random.integers(0, classes, (items, m))
    if missing:
        codes[random.random(codes.shape) < 0.2] = -1
        codes[items // 2] = -1
    return codes


def words_read(votes, start=0, stop=None):
    planes, complete = Reader(votes).planes(start, votes.items if stop is None else stop)
    return words_of(planes).copy(), complete


@pytest.mark.parametrize("m", SIZES)
@pytest.mark.parametrize("classes", [2, 3, 4, 5])
def test_patterns_are_the_bits_of_the_codes_in_every_layout(m, classes):
    for missing in (False, True):
        codes = drawn(m, classes, missing)
        wanted = naive.words(codes, classes)
        for (name, layout), dtype in itertools.product(LAYOUTS.items(), (np.int8, np.int32)):
            votes = read_votes(layout(codes.astype(dtype)), classes=range(classes), missing=-1)
            found, complete = words_read(votes)
            assert np.array_equal(found, wanted), name
            assert complete is not missing, name


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("m", [3, 8, 13, 65])
def test_patterns_are_the_bits_of_the_codes_for_every_type_of_label(kind, m):
    for classes in (2,) if kind == "bool" else (2, 3, 5):
        for missing in (False,) if kind == "bool" else (False, True):
            codes = drawn(m, classes, missing)
            table, absent, labels = KINDS[kind](codes, classes)
            for layout in (np.ascontiguousarray, np.asfortranarray):
                votes = read_votes(layout(table), classes=tuple(labels), missing=absent)
                found, complete = words_read(votes)
                assert np.array_equal(found, naive.words(codes, classes))
                assert complete is not missing


@pytest.mark.parametrize("m", SIZES)
@pytest.mark.parametrize("classes", [2, 3, 4, 5])
def test_words_and_codes_turn_into_each_other(m, classes):
    codes, shape = drawn(m, classes, missing=True), Shape(m, classes)
    words = words_of_codes(codes, shape)
    assert np.array_equal(words, naive.words(codes, classes))
    assert words.dtype == np.uint64
    back = codes_of_words(words, shape)
    assert np.array_equal(back, codes)
    assert back.dtype == np.int8


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize(
    ("m", "classes"), [(3, 2), (8, 2), (9, 2), (20, 2), (32, 2), (5, 3), (6, 5)]
)
def test_numbers_put_plane_above_plane(m, classes, missing):
    codes = drawn(m, classes, missing)
    for layout in (np.ascontiguousarray, np.asfortranarray):
        votes = read_votes(layout(codes), classes=range(classes), missing=-1)
        numbers, complete = Reader(votes).numbers(0, votes.items)
        assert complete is not missing
        planes = naive.words(codes, classes)
        if complete and classes == 2:
            wanted = planes[:, 1]
        else:
            wanted = sum(planes[:, b] << np.uint64(b * m) for b in range(planes.shape[1]))
        assert np.array_equal(numbers, wanted)


@pytest.mark.parametrize("m", [3, 9, 65])
@pytest.mark.parametrize("layout", [np.ascontiguousarray, np.asfortranarray])
def test_stretches_join_into_the_whole_in_the_order_of_the_rows(m, layout, monkeypatch):
    monkeypatch.setattr(_patterns, "CELLS", 1)
    monkeypatch.setattr(_patterns, "ROWS_BY_COLUMN", 64)
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    codes = drawn(m, 2, missing=True, items=64 * 7 + 1)
    codes[64:192] = np.abs(codes[64:192])  # two stretches without a missing vote
    codes[-1, 0] = -1
    votes = read_votes(layout(codes), classes=(0, 1), missing=-1)
    assert _patterns.stretch(votes) == 64

    def work(reader, start, stop):
        planes, complete = reader.planes(start, stop)
        return words_of(planes).copy(), complete

    parts = list(read_all(votes, work))
    assert np.array_equal(np.concatenate([words for words, _ in parts]), naive.words(codes, 2))
    assert [complete for _, complete in parts] == [False, True, True, *[False] * 5]


PAIRS = [
    (np.int8, (-1, 1)),
    (np.int8, (1, -1)),
    (np.int8, (0, 1)),
    (np.int8, (-128, -126)),
    (np.int8, (-1, 0)),
    (np.uint8, (2, 1)),
    (np.uint8, (253, 255)),
    (bool, (False, True)),
    (bool, (True, False)),
    # Votes of one byte that are read as all others are.
    (np.int8, (-128, 127)),
    (np.uint8, (0, 3)),
    (np.int8, (0, 4)),
    ("S1", (b"a", b"b")),
]


@pytest.mark.parametrize("m", [3, 7, 8, 9, 10, 16, 17, 65])
@pytest.mark.parametrize(("dtype", "labels"), PAIRS)
@pytest.mark.parametrize("layout", [np.ascontiguousarray, np.asfortranarray])
def test_two_labels_in_single_bytes(layout, dtype, labels, m):
    codes = drawn(m, 2, missing=False)
    table = layout(np.array(labels, dtype=dtype)[codes])
    votes = read_votes(table, classes=labels)
    found, complete = words_read(votes)
    assert complete
    assert np.array_equal(found, naive.words(codes, 2))
    assert np.array_equal(Reader(votes).numbers(0, 60)[0], naive.words(codes, 2)[:, 1]) or m > 64


@pytest.mark.parametrize("odd", range(-128, 128))
def test_any_other_byte_among_two_labels_is_seen(odd):
    for labels in ((-1, 1), (1, -1), (0, 1), (1, 2), (-128, -126)):
        codes = drawn(9, 2, missing=False)
        table = np.array(labels, dtype=np.int8)[codes]
        table[37, 8] = odd
        codes[37, 8] = labels.index(odd) if odd in labels else -1
        for layout in (np.ascontiguousarray, np.asfortranarray):
            votes = read_votes(layout(table), classes=labels, missing=() if odd in labels else odd)
            found, complete = words_read(votes)
            assert complete == (odd in labels)
            assert np.array_equal(found, naive.words(codes, 2))
            if odd not in labels:
                with pytest.raises(VotesError, match="'classifier_9'"):
                    words_read(read_votes(layout(table), classes=labels))


@pytest.mark.parametrize("layout", [np.ascontiguousarray, np.asfortranarray])
def test_a_reader_that_has_met_a_hole_reads_whole_rows_too(layout):
    codes = drawn(10, 2, missing=False, items=90)
    codes[40, 3] = -1
    reader = Reader(read_votes(layout(codes.astype(np.int8)), classes=(0, 1), missing=-1))
    for start, stop in ((0, 30), (30, 60), (60, 90), (0, 30)):
        planes, complete = reader.planes(start, stop)
        assert complete == (start != 30)
        assert np.array_equal(words_of(planes), naive.words(codes[start:stop], 2))


def test_a_reader_forgets_the_stretch_before():
    codes = drawn(11, 3, missing=True, items=60)
    votes = read_votes(codes, classes=(0, 1, 2), missing=-1)
    reader = Reader(votes)
    for start, stop in ((0, 60), (50, 60), (7, 8), (0, 30)):
        planes, _ = reader.planes(start, stop)
        assert np.array_equal(words_of(planes), naive.words(codes[start:stop], 3))


@pytest.mark.parametrize("layout", [np.ascontiguousarray, np.asfortranarray])
@pytest.mark.parametrize("missing", [-1, (-1, -1), (-1, -1.0), (-1, 300, 0.5, "none"), (-1, None)])
def test_a_label_that_is_neither_a_class_nor_missing_is_refused_wherever_it_stands(layout, missing):
    codes = drawn(4, 2, missing=True, items=900)
    codes[890, 2] = 7
    votes = read_votes(layout(codes.astype(np.int8)), missing=missing, classes=(0, 1))
    with pytest.raises(VotesError, match=r"'classifier_3' holds .* 7"):
        words_read(votes)
    votes = read_votes(layout(codes.astype(np.int8)), missing=missing, positive=1)
    with pytest.raises(VotesError, match=r"'classifier_3' holds 3 labels \(0, 1, 7\); two were"):
        words_read(votes)
    votes = read_votes(layout(codes.astype(np.int8)), missing=missing)
    with pytest.raises(VotesError, match="other labels than 0, 1"):
        words_read(votes)


@pytest.mark.parametrize("value", [float("nan"), None, 300, -200, 2**70, 0.5, "none"])
def test_what_a_type_cannot_hold_stands_for_none_of_its_votes(value):
    codes = drawn(4, 2, missing=True)
    votes = read_votes(codes.astype(np.int8), classes=(0, 1), missing=(-1, value))
    assert np.array_equal(words_read(votes)[0], naive.words(codes, 2))


def test_columns_of_different_types_are_read_side_by_side():
    codes = drawn(3, 2, missing=False)
    table = {"a": codes[:, 0] == 1, "b": codes[:, 1].astype(float), "c": codes[:, 2]}
    votes = read_votes(table, classes=(0, 1))
    assert np.array_equal(words_read(votes)[0], naive.words(codes, 2))
