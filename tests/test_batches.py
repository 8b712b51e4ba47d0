"""Votes in batches give the tally of all votes in one table; tallies are kept, added and taken away."""

import json
import weakref
from decimal import Decimal
from io import BytesIO
from itertools import pairwise

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import labelfree as lf
from labelfree import FileError, OptionsError, Tally, VotesError, _tally, simulate, tally
from labelfree._tally_file import VERSION

from .sentences import refused

NAMES = ["ann", "count", "<script>", 'a "b"']


def drawn(items=300, m=4, missing=0.2, seed=3):
    return simulate.votes(items, classifiers=m, missing=missing, seed=seed).votes


def frame(labels=("no", "yes", None), **options):
    codes = drawn(**options)
    return pl.DataFrame({name: [labels[c] for c in codes[:, i]] for i, name in enumerate(NAMES)})


def cut(table, places):
    edges = [0, *sorted(places), len(table)]
    return [table[start:stop] for start, stop in pairwise(edges)]


CUTS = st.lists(st.integers(0, 300), max_size=6)


# --- batches ----------------------------------------------------------------------------------


@given(cuts=CUTS, order=st.randoms())
@settings(deadline=None, max_examples=25)
def test_the_tally_depends_on_neither_the_order_nor_the_cut_of_batches(cuts, order):
    table = frame()
    batches = cut(table, [*cuts, 1, 2])  # of one item each: they lack labels, and some lack votes
    order.shuffle(batches)
    found = Tally.from_batches(batches)
    assert found == tally(table)
    assert found.classes == ("no", "yes")


@given(cuts=CUTS, order=st.randoms())
@settings(deadline=None, max_examples=25)
def test_the_long_form_may_lack_classifiers_too(cuts, order):
    codes = drawn(m=12)
    items, raters = np.nonzero(codes >= 0)
    long = pl.DataFrame({"item": items, "rater": raters, "said": codes[items, raters]})
    columns = {"item": "item", "classifier": "rater", "vote": "said"}
    edges = sorted({0, 1, *cuts, 300})
    batches = [
        long.filter(pl.col("item").is_between(start, stop - 1)) for start, stop in pairwise(edges)
    ]
    order.shuffle(batches)
    found = Tally.from_batches(batches, **columns)
    assert found == tally(long, **columns)
    assert found.classifiers == tuple(map(str, range(12)))  # as numbers, not as words


@pytest.mark.parametrize(
    "kind",
    [
        lambda table: table,
        pl.DataFrame.to_pandas,
        pl.DataFrame.to_arrow,
        pl.DataFrame.to_dict,
        lambda table: table.to_numpy().tolist(),
        lambda table: table.to_numpy(),
    ],
)
def test_batches_of_every_kind(kind):
    table = frame()
    batches = [kind(part) for part in cut(table, [1, 2, 40])]
    found = Tally.from_batches(iter(batches), classifiers=NAMES)
    assert found == tally(table)


def test_batches_of_files(tmp_path):
    names = ["ann", "count", "<script>", "b c"]
    table = frame(labels=("0", "1", "unsure")).rename(dict(zip(NAMES, names, strict=True)))
    for number, part in enumerate(cut(table, [1, 2, 40, 41])):
        part.write_csv(tmp_path / f"{number}.csv")
    paths = sorted(tmp_path.iterdir())
    wanted = tally(drawn(), missing=-1, classifiers=names)
    for order in (paths, paths[::-1], paths[2:3]):
        assert Tally.from_batches(order, missing="unsure").classes == (0, 1)
    assert Tally.from_batches(paths, missing="unsure") == wanted


def test_many_batches_are_merged_as_they_come(monkeypatch):
    monkeypatch.setattr(_tally, "MERGE_AT", 5)
    table = drawn(m=15)
    assert Tally.from_batches(cut(table, range(0, 300, 7)), missing=-1) == tally(table, missing=-1)


def test_sparse_batches_make_a_sparse_tally(monkeypatch):
    random = np.random.default_rng(5)
    raters = np.stack([random.choice(500, 4, replace=False) for _ in range(300)])
    said = random.integers(0, 3, raters.shape)
    long = pl.DataFrame(
        {"item": np.repeat(range(300), 4), "rater": raters.ravel(), "said": said.ravel()}
    )
    columns = {"item": "item", "classifier": "rater", "vote": "said"}
    whole = tally(long, **columns)
    monkeypatch.setattr(_tally, "DENSE_CELLS", 10_000)
    found = Tally.from_batches([long[:400], long[400:404], long[404:]], **columns)
    assert found.is_sparse
    assert found == whole


def test_labels_of_one_kind_are_one_class_however_a_batch_writes_them():
    numbers = [[0, 1, 1], [1, 1, 0]]
    others = [
        [["1", "0", "0"], ["0", "0", "1"]],
        [[1.0, 0.0, 0.0], [np.nan, 0.0, 1.0]],
        [[True, False, False], [False, False, True]],
    ]
    for other in others:
        for batches in ([numbers, other], [other, numbers]):
            found = Tally.from_batches(batches)
            assert found.classes == (0, 1)
            assert [type(label) for label in found.classes] == [int, int]
            assert found.items == 4


def test_classes_and_positive_are_settled_over_all_batches():
    batches = [[["b", "b", "b"]], [["a", "b", "a"]]]
    assert Tally.from_batches(batches, positive="a").classes == ("b", "a")
    assert Tally.from_batches(batches, classes=("c", "b", "a")).classes == ("c", "b", "a")
    named = Tally.from_batches(batches, classes=("a", "b"), positive="a")
    assert named == Tally.from_batches(batches, positive="a")


def test_columns_in_another_order_are_the_same_classifiers():
    table = frame()
    turned = table.select(NAMES[::-1])
    for batches in ([table[:99], turned[99:]], [turned[99:], table[:99]]):
        found = Tally.from_batches(batches)
        assert found.classifiers == tuple(sorted(NAMES))
        assert found == tally(table.select(sorted(NAMES)))


def test_batches_that_come_one_by_one_are_let_go():
    alive = []

    def stream():
        for part in cut(drawn(items=3000), range(100, 3000, 100)):
            batch = part.copy()
            alive.append(weakref.ref(batch))
            yield batch
            del batch
            assert sum(each() is not None for each in alive) <= 2

    assert Tally.from_batches(stream(), missing=-1).items == 3000


# --- sums and differences ---------------------------------------------------------------------


def test_a_window_slides():
    days = cut(drawn(items=700), range(100, 700, 100))
    counted = [tally(day, missing=-1) for day in days]
    window = counted[0] + counted[1] + counted[2]
    for new, old in zip(counted[3:], counted, strict=False):
        window = window + new - old
    assert window == tally(np.concatenate(days[-3:]), missing=-1)


def test_subtraction_undoes_addition_for_sparse_tallies_and_other_orders():
    one, other = tally(drawn(), missing=-1), tally(drawn(seed=4)[:, ::-1], missing=-1)
    turned = Tally.from_codes(
        other.codes()[:, ::-1], other.counts, classifiers=other.classifiers[::-1]
    )
    assert (one + other) - turned == one
    sparse = _tally._as_sparse(one)
    assert ((sparse + other) - other) == one
    exact = simulate.exact([0.8, 0.7, 0.6], [0.6, 0.7, 0.9], 0.3)
    assert np.allclose(((exact + exact) - exact).counts, exact.counts, atol=1e-15)


def test_what_was_never_added_is_not_subtracted():
    one, other = tally(drawn(), missing=-1), tally(drawn(seed=4), missing=-1)
    refused(lambda: one - other, "subtract only what was added before", error=VotesError)
    refused(lambda: one - one, "add the new ones before", error=VotesError)
    strange = tally(drawn(m=5), missing=-1)
    for words in (lambda: one - strange, lambda: one + strange):
        refused(words, "Only tallies of the same classifiers and classes", error=VotesError)
    three = Tally.from_codes(one.codes(), one.counts, classes=("a", "b", "c"))
    refused(lambda: one + three, "a, b, c", error=VotesError)
    with pytest.raises(TypeError):
        one - 3


# --- files ------------------------------------------------------------------------------------

LABELS = {
    "numbers": (0, 1),
    "truth": (False, True),
    "fractions": (0.5, 1e300),
    "text": ("no", "ß\n"),
    "bytes": (b"a\xff", b"\x00"),
    "decimals": (Decimal("0.10"), Decimal("2")),
    "many": tuple(range(100)),
}


@pytest.mark.parametrize("labels", LABELS)
def test_a_file_holds_the_tally_exactly(labels, tmp_path):
    codes = np.random.default_rng(1).integers(-1, len(LABELS[labels]), (50, 4))
    counts = np.random.default_rng(2).integers(1, 2**40, 50)
    written = Tally.from_codes(codes, counts, classifiers=NAMES, classes=LABELS[labels])
    for one in (written, _tally._as_sparse(written)):
        one.save(tmp_path / "a.tally")
        found = Tally.load(tmp_path / "a.tally")
        assert found == one
        assert found.is_sparse == one.is_sparse
        assert [type(label) for label in found.classes] == [type(label) for label in one.classes]
        one.save(tmp_path / "b.tally")
        assert (tmp_path / "a.tally").read_bytes() == (tmp_path / "b.tally").read_bytes()


def test_exact_frequencies_are_kept_to_the_last_bit(tmp_path):
    exact = simulate.exact([0.8, 0.7, 0.6], [0.6, 0.7, 0.9], 0.3)
    exact.save(tmp_path / "a.tally")
    assert Tally.load(str(tmp_path / "a.tally")) == exact


def test_estimate_takes_the_file_of_a_tally(tmp_path):
    counted = tally(drawn(items=2000), missing=-1)
    counted.save(tmp_path / "a.tally")
    assert lf.estimate(tmp_path / "a.tally") == lf.estimate(counted)
    refused(lambda: lf.estimate(tmp_path / "a.tally", missing="x"), "missing=", error=OptionsError)
    refused(lambda: lf.estimate(tmp_path / "a.tally", gold={0: 1}), "gold=", error=OptionsError)


def arrays_of(path):
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


def test_a_file_cut_short_or_changed_is_refused(tmp_path):
    path = tmp_path / "a.tally"
    tally(drawn(), missing=-1).save(path)
    whole = path.read_bytes()
    for size in (5, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        refused(lambda: Tally.load(path), "damaged or cut short", str(path), error=FileError)
    path.write_bytes(whole)
    for name in ("counts", "patterns", "page"):
        arrays = arrays_of(path)
        arrays[name] = arrays[name].copy()
        arrays[name].view(np.uint8).reshape(-1)[-2] ^= 1
        changed = BytesIO()
        np.savez(changed, **arrays)
        (tmp_path / "b.tally").write_bytes(changed.getvalue())
        refused(lambda: Tally.load(tmp_path / "b.tally"), error=FileError)
    arrays = arrays_of(path)
    del arrays["counts"]
    np.savez(tmp_path / "c.npz", **arrays)
    refused(lambda: Tally.load(tmp_path / "c.npz"), "damaged", error=FileError)


def test_a_later_version_is_refused(tmp_path):
    path = tmp_path / "a.npz"
    tally(drawn(), missing=-1).save(path)
    arrays = arrays_of(path)
    page = json.loads(arrays["page"].tobytes()) | {"version": VERSION + 1}
    arrays["page"] = np.frombuffer(json.dumps(page).encode(), dtype=np.uint8)
    np.savez(path, **arrays)
    refused(lambda: Tally.load(path), f"has version {VERSION + 1}", error=FileError)


def test_what_is_no_tally_is_refused_and_never_unpickled(tmp_path):
    path = tmp_path / "a.tally"
    refused(lambda: Tally.load(path), "no such file", error=FileError)
    refused(lambda: Tally.load(tmp_path), error=FileError)
    for content in (b"", b"item,a,b,c\n", b"\x80\x04K\x01."):
        path.write_bytes(content)
        refused(lambda: Tally.load(path), "is not a tally", error=FileError)

    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("a pickle was run",))

    np.savez(tmp_path / "b.npz", page=np.array([Trap()], dtype=object))
    refused(lambda: Tally.load(tmp_path / "b.npz"), error=FileError)
    np.savez(tmp_path / "c.npz", counts=np.ones(3))
    refused(lambda: Tally.load(tmp_path / "c.npz"), "is not a tally", error=FileError)
    pl.DataFrame({"a": [1]}).write_parquet(path)
    refused(lambda: Tally.load(path), "is not a tally", error=FileError)


# --- bad input --------------------------------------------------------------------------------


@pytest.mark.parametrize("batches", [[], iter(()), [[]], [pl.DataFrame({"a": [], "b": []})]])
def test_no_batch_at_all(batches):
    refused(lambda: Tally.from_batches(batches), "at least one batch", error=VotesError)


@pytest.mark.parametrize(
    "one", ["votes.csv", frame(), {"a": [1], "b": [0], "c": [1]}, 3, frame().to_pandas()]
)
def test_one_table_is_no_list_of_batches(one):
    refused(lambda: Tally.from_batches(one), "give a list of them", error=OptionsError)


def test_a_batch_that_does_not_fit_is_named():
    table = frame()
    other = table.rename({"ann": "bob"})
    said = refused(lambda: Tally.from_batches([table, other]), "'ann', 'bob'", error=VotesError)
    assert said.startswith("Batch 2: ")
    refused(lambda: Tally.from_batches([drawn(), drawn(m=5)], missing=-1), "Batch 2", "4 columns")
    twice = pa.table([[1], [0], [1], [1]], names=["a", "b", "b", "c"])
    refused(lambda: Tally.from_batches([table, twice]), "Batch 2", "more than once")
    two = table.select(NAMES[:2])
    refused(lambda: Tally.from_batches([two, two]), "at least three classifiers")


def test_labels_that_do_not_go_together_are_refused():
    words, numbers = [["a", "b", "a"]], [[1, 0, 1]]
    refused(lambda: Tally.from_batches([words, numbers]), "several kinds")
    refused(lambda: Tally.from_batches([words, words], positive="c"), "positive=")
    third = [["a", "c", "a"]]
    refused(lambda: Tally.from_batches([words, third], positive="a"), "3 labels", "positive=")
    refused(lambda: Tally.from_batches([words, third], classes=("a", "b")), "Batch 2", "'c'")
    refused(lambda: Tally.from_batches([[["a", "a", "a"]]] * 2), "two labels or more")
    many = [[[place, place + 1, place]] for place in range(0, 300, 2)]
    refused(lambda: Tally.from_batches(many), "more than 100 different labels")
