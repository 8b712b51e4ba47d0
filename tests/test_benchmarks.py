"""What `make bench` runs does run, and every benchmark that a page or a comment names is there."""

import importlib.util
import re
import sys
from pathlib import Path

import polars as pl
import pytest

import labelfree as lf

ROOT = Path(__file__).parents[1]
BENCHMARKS = ROOT / "benchmarks"


@pytest.fixture
def bench(monkeypatch):
    """The module that `make bench` runs, and its measurements on small votes, once each."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    for name in ("speed", "run"):
        spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
    speed = sys.modules["speed"]
    once, draw, draw_long = speed.seconds, speed.votes, speed.long_votes
    monkeypatch.setattr(speed, "seconds", lambda work, _repeats=1: once(work, 1))
    monkeypatch.setattr(speed, "votes", lambda _items, classifiers: draw(2000, classifiers))
    monkeypatch.setattr(speed, "long_votes", lambda _items, *sizes: draw_long(2000, *sizes))
    return sys.modules["run"]


def test_make_bench_prints_every_ratio_beside_its_bar(bench, capsys):
    bench.main()
    said = capsys.readouterr().out
    assert len(re.findall(r"bar [\d.]+.*(ok|MISSED)$", said, re.MULTILINE)) == 10
    for words in bench.OTHERS:
        assert (BENCHMARKS / words.split()[0]).is_file()


def test_every_benchmark_that_is_named_is_there():
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("src/**/*.py")]
    named = {
        name
        for page in pages
        for name in re.findall(r"benchmarks/(\w+\.py)", page.read_text(encoding="utf-8"))
    }
    assert named
    assert sorted(name for name in named if not (BENCHMARKS / name).is_file()) == []


def test_the_votes_of_the_scale_benchmark_are_those_that_it_says(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    spec = importlib.util.spec_from_file_location("scale", BENCHMARKS / "scale.py")
    scale = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "scale", scale)
    spec.loader.exec_module(scale)
    monkeypatch.setattr(scale, "BLOCK", 500)
    path = scale.write(tmp_path / "votes.parquet", 6000, 4)
    found = lf.tally(path)
    assert (found.items, len(found.classifiers)) == (6000, 4)
    assert found == lf.Tally.from_batches(
        pl.DataFrame(each, schema=[f"c{i}" for i in range(4)]) for each in scale.blocks(6000, 4)
    )
    assert scale.slope([10, 100, 1000], [3.0, 30.0, 300.0]) == pytest.approx(1.0)
    cost = scale.run([sys.executable, "-c", scale.GROUP_BY, path])
    assert cost.cores > 0
    assert cost.peak > 10
    with pytest.raises(RuntimeError, match="ended with 3"):
        scale.run([sys.executable, "-c", "raise SystemExit(3)"])
