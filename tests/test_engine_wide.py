"""Wide tables in an engine: sums over all items there, exact; a sample at home, the same from every engine."""

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import labelfree as lf
from labelfree import _engine_wide, simulate
from labelfree._moments import moments, moments_of_all, third_moment_ratio
from labelfree._products import Blocks
from labelfree._tally import tally_files

from .engines import LAZY, held_by
from .sentences import refused

NAMES = ["count", "a b", 'it\'s "so" `q`.x', "<script>", "bucket", "É", "v1", "first", "draw"]
KINDS = {
    "int": ([0, 1, None], pa.int64()),
    "str": (["no", "yes", None], pa.string()),
    "bool": ([False, True, None], pa.bool_()),
    "float with NaN": ([0.0, 1.0, float("nan")], pa.float64()),
}
ITEMS = 3000


def codes_of(missing, items=ITEMS, seed=3):
    rates = np.random.default_rng(seed).uniform(0.6, 0.9, (2, len(NAMES)))
    return simulate.votes(
        items,
        sensitivity=rates[0],
        specificity=rates[1],
        prevalence=0.4,
        missing=missing,
        seed=seed,
    ).votes


def table_of(codes, kind="str"):
    cells, arrow = KINDS[kind]
    cells = np.array(cells, dtype=object)[codes]
    return pa.table(
        {name: pa.array(cells[:, place].tolist(), arrow) for place, name in enumerate(NAMES)}
    )


@pytest.fixture
def engine(request, monkeypatch):
    """engine(name, table) -> the table as that engine holds it; nine classifiers on 3000 items are wide."""
    small = {"REPEATING": 5, "HOME_CELLS": 0, "SAMPLE_CELLS": 1800, "FEWEST_SAMPLED": 16}
    small |= {"FIRST_ROWS": 50, "TOGETHER": 4, "TOGETHER_WITH_MISSING": 4, "BUCKETS": 64}
    for name, value in small.items():
        monkeypatch.setattr(_engine_wide, name, value)
    return lambda name, table: held_by(name, table, request)


@pytest.mark.parametrize("missing", [0.0, 0.2], ids=["complete", "missing"])
@pytest.mark.parametrize("name", LAZY)
def test_sums_over_all_items_are_those_of_all_patterns(engine, name, missing):
    codes = codes_of(missing)
    here, there = lf.tally(table_of(codes)), lf.tally(engine(name, table_of(codes)))
    assert there.whole is not None
    assert there.stands_for == ITEMS
    assert there.items < 0.5 * ITEMS
    (columns,) = Blocks(here).total(lambda block: (block.cooccurrence(),))
    if columns.shape == there.whole.cooccurrence.shape:
        np.testing.assert_array_equal(there.whole.cooccurrence, columns)
    expected, found = moments(Blocks(here)), moments_of_all(Blocks(there))
    np.testing.assert_allclose(found.covariance, expected.covariance, atol=1e-15)
    np.testing.assert_array_equal(found.pair_counts, expected.pair_counts)
    vector = np.linspace(0.1, 0.6, len(NAMES))
    ratio = third_moment_ratio(Blocks(there), found.mean, vector)
    assert ratio == pytest.approx(
        third_moment_ratio(Blocks(here), expected.mean, vector), rel=1e-10
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", LAZY)
def test_every_engine_draws_the_same_sample(engine, name, kind):
    table = table_of(codes_of(0.2), kind)
    first = lf.tally(engine("polars lazy", table))
    found = lf.tally(engine(name, table))
    assert found == first
    assert found.classes == tuple(KINDS[kind][0][:2])
    every = {row.tobytes(): count for row, count in zip(*_rows(lf.tally(table)), strict=True)}
    assert all(every[row.tobytes()] >= count for row, count in zip(*_rows(found), strict=True))


def _rows(tally):
    return tally.codes(), tally.counts


@pytest.mark.parametrize("missing", [0.0, 0.2], ids=["complete", "missing"])
@pytest.mark.parametrize("name", LAZY)
def test_the_tensor_method_is_exact(engine, name, missing):
    table = table_of(codes_of(missing))
    here = lf.estimate(table, method="tensor")
    there = lf.estimate(engine(name, table), method="tensor")
    for rate in ("sensitivity", "specificity", "prevalence"):
        assert getattr(there, rate) == pytest.approx(getattr(here, rate), abs=1e-12)
    assert (there.items, there.votes) == (here.items, here.votes)
    widths = [each.standard_error("sensitivity").mean() for each in (here, there)]
    assert widths[1] == pytest.approx(widths[0], rel=0.4)  # a jackknife of a sample


def test_the_likelihood_is_that_of_the_sample(engine, monkeypatch, tmp_path):
    monkeypatch.setattr(_engine_wide, "SAMPLE_CELLS", 1 << 14)
    monkeypatch.setattr(_engine_wide, "BUCKETS", 1 << 10)
    table = table_of(codes_of(0.1, items=20_000))
    here, there = lf.estimate(table), lf.estimate(engine("polars lazy", table))
    alone = lf.estimate(lf.tally(engine("polars lazy", table)).alone())
    assert there.sensitivity == pytest.approx(alone.sensitivity, abs=1e-6)
    low, high = there.interval("sensitivity").T
    assert ((low < here.sensitivity) & (here.sensitivity < high)).mean() > 0.7
    assert there.sample == alone.items
    assert there.items == 20_000
    assert f"sample of {there.sample:,} items" in repr(there)
    there.save(tmp_path / "e.json")
    assert lf.load(tmp_path / "e.json").sample == there.sample


def test_intervals_are_as_wide_as_the_sample_makes_them(engine, monkeypatch):
    """Patterns are drawn, and patterns repeat here: the sample counts for what it is worth, and no more."""
    errors = []
    monkeypatch.setattr(_engine_wide, "SAMPLE_CELLS", 1800)
    monkeypatch.setattr(_engine_wide, "BUCKETS", 1 << 8)
    truth = None
    for seed in range(30):
        rates = np.random.default_rng(0).uniform(0.6, 0.9, (2, len(NAMES)))
        drawn = simulate.votes(
            4000, sensitivity=rates[0], specificity=rates[1], prevalence=0.4, seed=seed
        )
        truth = rates[0]
        found = lf.estimate(engine("polars lazy", table_of(drawn.votes)), dependence="ignore")
        assert found.sample is not None
        assert found.sample < 4000
        errors.append((found.sensitivity - truth) / found.standard_error("sensitivity"))
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(1.0, abs=0.35)


@pytest.mark.parametrize("name", LAZY)
def test_labels_that_show_late(engine, name):
    codes = np.zeros((ITEMS, len(NAMES)), dtype=int)
    codes[200:] = codes_of(0.1)[200:]  # the first rows hold one label alone
    assert lf.tally(engine(name, table_of(codes))).classes == ("no", "yes")
    cells = table_of(codes).to_pydict()
    cells["É"][2000] = "maybe"
    odd = pa.table({key: pa.array(values) for key, values in cells.items()})
    assert lf.tally(engine(name, odd)).classes == ("maybe", "no", "yes")
    said = refused(lambda: lf.tally(engine(name, odd), classes=["no", "yes"]), "'É'", "'maybe'")
    assert said == refused(lambda: lf.tally(odd, classes=["no", "yes"]))
    refused(lambda: lf.tally(engine(name, odd), positive="yes"), "'É'", "3 labels")
    found = lf.tally(engine(name, odd), missing="maybe")
    assert found.classes == ("no", "yes")
    assert found.whole is not None
    nothing = table_of(np.zeros((ITEMS, len(NAMES)), dtype=int))
    refused(lambda: lf.tally(engine(name, nothing)), "two labels", "'no'")


def test_many_items_that_agree_are_all_in_the_sample(engine, monkeypatch):
    """A pattern that very many items share is not left to chance."""
    monkeypatch.setattr(_engine_wide, "BUCKETS", 256)
    codes = codes_of(0.0)
    codes[:1200] = 1  # one pattern of four items in ten
    found = lf.tally(engine("polars lazy", table_of(codes)))
    share = found.counts[(found.codes() == 1).all(axis=1)].sum() / found.items
    assert share == pytest.approx((codes == 1).all(axis=1).mean(), abs=0.03)


def test_patterns_that_repeat_after_all_are_all_counted(engine, monkeypatch):
    codes = codes_of(0.0)[np.random.default_rng(1).integers(0, 20, ITEMS)]
    table = table_of(codes)
    assert lf.tally(engine("polars lazy", table)) == lf.tally(table)
    monkeypatch.setattr(_engine_wide, "BUCKETS", 2)  # so that the census does not show it
    found = lf.tally(engine("polars lazy", table))
    assert found.whole is None
    assert found == lf.tally(table)
    monkeypatch.undo()
    few = lf.tally(held_by("polars lazy", table_of(codes_of(0.1)), None))
    assert few == lf.tally(table_of(codes_of(0.1)))


def test_more_classes_are_a_sample_alone(engine):
    random = np.random.default_rng(1)
    table = pa.table({name: random.integers(0, 3, ITEMS) for name in NAMES})
    found = lf.tally(engine("polars lazy", table))
    assert found.classes == (0, 1, 2)
    assert found.whole.cooccurrence is None
    assert found.stands_for == ITEMS


def test_a_sample_is_no_tally_to_add_to(engine, tmp_path):
    found = lf.tally(engine("polars lazy", table_of(codes_of(0.1))))
    assert "a sample of" in repr(found)
    for work in (
        lambda: found + found,
        lambda: found - found,
        lambda: found.save(tmp_path / "a.tally"),
    ):
        refused(work, "sample", "classifiers=")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", LAZY)
def test_an_empty_wide_table(engine, name):
    if name == "dask":
        pytest.skip("Dask makes no frame without a row from an empty one")
    empty = table_of(codes_of(0.0)).slice(0, 0)
    assert refused(lambda: lf.tally(engine(name, empty))) == refused(lambda: lf.tally(empty))


def test_wide_files_of_very_many_rows_are_read_as_a_lazy_table(engine, monkeypatch, tmp_path):
    monkeypatch.setattr("labelfree._large_files.LARGE_CELLS", 100)
    table = pl.from_arrow(table_of(codes_of(0.1)))
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    for path, part in zip(paths, (table[:1000], table[1000:]), strict=True):
        part.write_parquet(path)
    monkeypatch.setattr("labelfree._tally.REPEATING", 5)
    assert lf.tally(paths) == lf.tally(table)  # not so many rows
    monkeypatch.setattr("labelfree._large_files.WIDE_ROWS", 2000)
    found = lf.tally(paths)
    assert found == lf.tally(engine("polars lazy", table_of(codes_of(0.1))))
    assert found.stands_for == ITEMS
    assert tally_files(paths, whole=True) == lf.tally(table)
    assert lf.tally(paths, classifiers=NAMES[:4]) == lf.tally(table, classifiers=NAMES[:4])
    paths[1].write_bytes(paths[1].read_bytes()[:500])
    refused(lambda: lf.tally(paths), "b.parquet")
