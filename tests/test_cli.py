"""The command line: words in, words out, and one sentence where something is wrong."""

import json
import os
import re
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import labelfree as lf
from labelfree import _cli, _terminal

from .drawn import votes_of_classes

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = [str(Path(sys.executable).parent / "labelfree")]
ENDINGS = [".csv", ".tsv", ".parquet", ".pq", ".jsonl", ".ndjson"]
LONG = ["--item", "task", "--classifier", "rater", "--vote", "said"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    return tmp_path


def run(*words):
    return CliRunner().invoke(_cli.app, [str(word) for word in words])


def succeed(*words):
    done = run(*words)
    assert done.exit_code == 0, done.stderr
    assert not done.stderr
    return done.stdout


def complaint(*words):
    """Run a command that must fail: one line on stderr, nothing on stdout, exit code 2."""
    done = run(*words)
    assert done.exit_code == 2, done.output
    assert not done.stdout
    assert done.stderr.startswith("labelfree: ")
    assert done.stderr.count("\n") == 1
    return done.stderr.removeprefix("labelfree: ").rstrip("\n")


def in_process(*words, **more):
    """Run the program as a shell would."""
    return subprocess.run(
        [*PROGRAM, *map(str, words)], check=False, capture_output=True, timeout=60, **more
    )


def drawn(items=400, missing=0.0, seed=2):
    return lf.simulate.votes(
        items,
        sensitivity=[0.9, 0.8, 0.7, 0.85],
        specificity=[0.8, 0.75, 0.9, 0.7],
        missing=missing,
        seed=seed,
    )


def table(votes, names=("ann", "bob", "cem", "dee"), words=None):
    frame = pl.DataFrame(votes, schema=list(names)).select(pl.all().replace(-1, None))
    if words:
        frame = frame.select(pl.all().replace_strict(words, return_dtype=pl.String))
    return frame.insert_column(0, pl.Series("item", range(len(votes))))


def write(frame, path):
    ending = Path(path).suffix
    if ending in {".csv", ".tsv"}:
        frame.write_csv(path, separator="," if ending == ".csv" else "\t")
    elif ending in {".parquet", ".pq"}:
        frame.write_parquet(path)
    else:
        frame.write_ndjson(path)
    return path


def read(path):
    ending = Path(path).suffix
    if ending in {".csv", ".tsv"}:
        return pl.read_csv(path, separator="," if ending == ".csv" else "\t")
    return pl.read_parquet(path) if ending in {".parquet", ".pq"} else pl.read_ndjson(path)


def as_json(*words):
    return json.loads(succeed("estimate", *words, "--json"))


def rates(found):
    keys = ("sensitivity", "specificity", "balanced_accuracy")
    return {row["classifier"]: [row[key] for key in keys] for row in found["classifiers"]}


# --- estimate -----------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_format_gives_the_estimate_that_python_gives(ending):
    votes = table(drawn(missing=0.1).votes)
    found = as_json(write(votes, f"votes{ending}"))
    expected = lf.estimate(votes).as_dict()
    assert found == expected


def with_interval(value, ends):
    low, high = (f"{end:.3f}".removeprefix("0")[:4] for end in ends)
    return f"{value:.3f} ({low}-{high})"


def test_the_table_shows_every_classifier_with_intervals_and_the_verdict():
    votes = table(drawn().votes)
    said = succeed("estimate", write(votes, "votes.csv"))
    expected = lf.estimate(votes)
    ends = [expected.interval(rate) for rate in ("sensitivity", "specificity")]
    for place, row in enumerate(expected.table()):
        cells = [
            row["classifier"],
            "400",
            with_interval(row["sensitivity"], ends[0][place]),
            with_interval(row["specificity"], ends[1][place]),
            f"{row['balanced_accuracy']:.3f}",
        ]
        assert re.search(r"\s+".join(map(re.escape, cells)), said)
    assert "4 classifiers on 400 items; positive is 1; method map" in said
    share = with_interval(expected.prevalence, expected.interval("prevalence"))
    assert f"prevalence {share}\nin parentheses: 95 % intervals\n" in said
    assert f"effective number of classifiers: {expected.effective_number:.1f} of 4" in said
    assert f"verdict {expected.verdict.level}" in said
    assert widest(said) <= 80


def test_the_level_of_the_intervals():
    path = write(table(drawn().votes), "votes.csv")
    narrow, wide = (as_json(path, "--level", level) for level in ("0.5", "0.99"))
    assert (narrow["level"], wide["level"]) == (0.5, 0.99)
    for one, other in zip(narrow["classifiers"], wide["classifiers"], strict=True):
        assert other["sensitivity_low"] < one["sensitivity_low"] < one["sensitivity_high"]
    assert "in parentheses: 99.9 % intervals" in succeed("estimate", path, "--level", "0.999")


def copied():
    drawn = lf.simulate.votes(3000, classifiers=8, copies=[(0, 1, 2)], prevalence=0.4, seed=5)
    return table(drawn.votes, names=[f"model-{number}" for number in range(8)])


def test_groups_are_shown_and_may_be_given():
    votes = copied()
    said = succeed("estimate", write(votes, "votes.csv"))
    found = lf.estimate(votes)
    assert found.groups == (("model-0", "model-1", "model-2"),)
    assert "group that copies: model-0, model-1, model-2" in said
    assert f"effective number of classifiers: {found.effective_number:.1f} of 8" in said
    assert widest(said) <= 80
    given = ["--dependence", "model-0,model-1", "--dependence", "model-5,model-6"]
    groups = [["model-0", "model-1"], ["model-5", "model-6"]]
    assert as_json("votes.csv", *given) == lf.estimate(votes, dependence=groups).as_dict()


def test_rates_by_prevalence_fit_the_terminal():
    votes = table(drawn().votes)
    path = write(votes, "votes.csv")
    said = succeed("estimate", path, "--by-prevalence")
    assert said.startswith(succeed("estimate", path))
    half = {
        row["classifier"]: row
        for row in lf.estimate(votes).by_prevalence()
        if row["prevalence"] == 0.5
    }
    for name, row in half.items():
        both = "/".join(
            f"{row[rate]:.2f}".removeprefix("0")[:3] for rate in ("sensitivity", "specificity")
        )
        assert re.search(rf"^ {name} .* {re.escape(both)} ", said, re.MULTILINE)
    assert widest(said) <= 80
    found = as_json(path, "--by-prevalence")
    assert found.pop("by_prevalence") == lf.estimate(votes).by_prevalence()
    assert found == as_json(path)


def test_rates_by_prevalence_of_votes_without_signal_are_none():
    coins = np.random.default_rng(0).integers(0, 2, (300, 4))
    pl.DataFrame(coins, schema=list("abcd")).write_csv("coins.csv")
    assert succeed("estimate", "coins.csv", "--by-prevalence") == succeed("estimate", "coins.csv")
    assert as_json("coins.csv", "--by-prevalence")["by_prevalence"] is None


# --- more than two classes ----------------------------------------------------------------------

MOODS = ["sad and rather long in the telling", "calm", "glad"]


@pytest.fixture
def moods():
    votes, _ = votes_of_classes(MOODS, items=900, classifiers=30)
    votes.write_csv("moods.csv")
    return lf.estimate(votes)


def test_more_than_two_classes_have_a_line_each_and_no_sensitivity(moods):
    said = succeed("estimate", "moods.csv")
    assert max(map(len, said.splitlines())) <= 80
    assert "30 classifiers on 900 items; 3 classes; method map" in said
    assert "accuracy" in said
    assert not re.search("sensitivity|specificity|prevalence|positive", said)
    for label, share in zip(moods.classes, moods.class_probabilities, strict=True):
        (line,) = (line for line in said.splitlines() if line.startswith(f" {label} "))
        assert f"{share:.3f} (" in line
    for row in moods.table():
        (line,) = (x for x in said.splitlines() if x.startswith(f" {row['classifier']} "))
        assert f"{row['accuracy']:.3f} (" in line
        assert f"{row['balanced_accuracy']:.3f}" in line


def test_each_confusion_matrix_is_printed_where_it_is_asked_for(moods):
    plain, said = (succeed("estimate", "moods.csv", *more) for more in ([], ["--confusion"]))
    assert said.startswith(plain)
    assert max(map(len, said.splitlines())) <= 80
    after = said.removeprefix(plain)
    for name, matrix in zip(moods.classifiers, moods.confusion, strict=True):
        lines = after.split(f"\n{name}\n")[1].splitlines()[2:5]
        shown = [[int(each) for each in line.split()[-3:]] for line in lines]
        assert np.allclose(shown, 100 * matrix, atol=0.51)


def test_a_wide_confusion_matrix_is_printed_in_parts():
    votes, _ = votes_of_classes([f"class_{i:02}_with_a_name" for i in range(20)], items=3000)
    votes.write_csv("many.csv")
    said = succeed("estimate", "many.csv", "--confusion")
    assert max(map(len, said.splitlines())) <= 80
    assert said.count("\n true class ") == 6 * 7  # three columns of sixteen letters at a time


def test_what_is_of_two_classes_is_one_sentence_and_nothing_before_it(moods):
    assert moods.verdict.level != "unidentified"
    assert "is of two classes" in complaint("estimate", "moods.csv", "--by-prevalence")
    words = complaint("check", "moods.csv", "--require", "prevalence > 0.1")
    assert "expected a figure of the whole: effective_number, items, verdict" in words


def test_a_comparison_of_many_classes_names_each(moods):
    moods.save("e.json")
    said = succeed("compare", "e.json", "e.json")
    assert max(map(len, said.splitlines())) <= 80
    for label in moods.classes:
        assert f"Pr({label!r}) " in said
    assert "sensitivity" not in said


@pytest.mark.parametrize("ending", ENDINGS)
def test_long_form_and_wide_form_agree(ending):
    votes = table(drawn(missing=0.2).votes, words={0: "no", 1: "yes"})
    long = votes.unpivot(index="item", variable_name="rater", value_name="said").drop_nulls()
    wide = as_json(write(votes, f"wide{ending}"))
    found = as_json(write(long.rename({"item": "task"}), f"long{ending}"), *LONG)
    assert found["reading"] == {"item": "task", "classifier": "rater", "vote": "said"}
    assert found["classes"] == ["no", "yes"]
    expected = rates(wide)
    assert expected.keys() == rates(found).keys()
    for name, figures in rates(found).items():
        np.testing.assert_allclose(figures, expected[name], rtol=1e-9)


@pytest.mark.parametrize("word", ["last", "drop"])
def test_repeated_votes_are_kept_or_dropped_as_asked(word):
    votes = table(drawn(missing=0.2).votes, words={0: "no", 1: "yes"})
    long = votes.unpivot(index="item", variable_name="rater", value_name="said").drop_nulls()
    path = write(pl.concat([long[1:2], long]).rename({"item": "task"}), "long.csv")
    reading = [*LONG, "--duplicates", word]
    result = run("estimate", path, *reading, "--json", "--save", "kept.json")
    assert result.exit_code == 0
    assert "1 repeated pair of item and classifier" in result.stderr
    assert f"--duplicates '{word}'" in result.stderr
    kept = long if word == "last" else pl.concat([long[:1], long[2:]])
    write(kept.rename({"item": "task"}), "once.csv")
    assert rates(json.loads(result.stdout)) == rates(as_json("once.csv", *LONG))
    assert lf.load("kept.json").reading["duplicates"] == word
    for words in (["--estimate", "kept.json"], reading):
        result = run("label", path, *words, "-o", "labels.csv")
        assert result.exit_code == 0
        assert "1 repeated pair" in result.stderr
        assert pl.read_csv("labels.csv").height == votes.height


def test_json_is_all_there_is_on_stdout_and_has_the_documented_keys():
    write(table(drawn().votes), "votes.csv")
    pl.DataFrame(np.random.default_rng(0).integers(0, 2, (300, 4))).write_csv("coins.csv")
    keys = documented_keys()
    assert keys_of(as_json("votes.csv")) == keys
    assert keys_of(as_json("coins.csv")) == {key for key in keys if not key.startswith("alarm.")}
    assert all(ord(sign) < 128 for sign in succeed("estimate", "votes.csv", "--json"))
    votes_of_classes(["sad", "calm", "glad"])[0].write_csv("moods.csv")
    of_two = {key for key in keys if re.search("[.](sensitivity|specificity)", key)}
    of_more = documented_keys("An estimate of more than two classes")
    found = as_json("moods.csv")
    assert keys_of(found) == keys - of_two | of_more
    assert found["prevalence"] is None


def documented_keys(heading="An estimate"):
    page = (ROOT / "docs" / "json.md").read_text()
    section = page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return set(re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE))


def keys_of(found, before=""):
    keys = set()
    for key, value in found.items():
        keys.add(before + key)
        if isinstance(value, dict) and key not in {"reading", "model"}:
            keys |= keys_of(value, f"{before}{key}.")
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            keys |= keys_of(value[0], f"{before}{key}[].")
    return keys


def test_votes_without_signal_give_dashes_reasons_and_what_would_help():
    coins = np.random.default_rng(0).integers(0, 2, (300, 4))
    pl.DataFrame(coins, schema=list("abcd")).write_csv("coins.csv")
    said = succeed("estimate", "coins.csv")
    assert re.search(r"a\s+300\s+–\s+–\s+–", said)
    assert "prevalence –" in said
    assert "verdict unidentified" in said
    assert "agree no more than guessing" in said
    assert "What would help: " in said
    found = as_json("coins.csv")
    assert found["prevalence"] is found["confusion"] is found["vector"] is None
    assert all(figures == [None] * 3 for figures in rates(found).values())


def test_classifiers_without_information_are_marked():
    votes = table(drawn().votes).with_columns(same=pl.lit(1), none=pl.lit(None, pl.Int8))
    said = succeed("estimate", write(votes, "votes.parquet"))
    assert re.search(r"same\s+400.*constant", said)
    assert re.search(r"none\s+0.*no votes", said)


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (["--method", "likelihood"], {"method": "likelihood"}),
        (["--method", "tensor", "--vector", "log-linear"], {"method": "tensor", "vector": "log-linear"}),
        (["--prevalence", "0.4"], {"prevalence": 0.4}),
        (["--prior", "0"], {"prior": 0.0}),
        (["--positive", "0"], {"positive": 0}),
        (["--level", "0.8"], {"level": 0.8}),
        (["--dependence", "test"], {"dependence": "test"}),
        (["--dependence", "ignore"], {"dependence": "ignore"}),
        (["--known", "ann.sensitivity=0.9"], {"known": {"ann": {"sensitivity": 0.9}}}),
        (
            ["--known", "ann.sensitivity=.9", "--known", "ann.specificity=18,2", "--known", "bob.specificity=.7"],
            {"known": {"ann": {"sensitivity": 0.9, "specificity": (18, 2)}, "bob": {"specificity": 0.7}}},
        ),
        (["--classifiers", "ann,cem,dee"], {"classifiers": ["ann", "cem", "dee"]}),
        (["--classifiers", "ann,cem", "--classifiers", "dee"], {"classifiers": ["ann", "cem", "dee"]}),
    ],
)  # fmt: skip
def test_options_do_what_those_of_python_do(words, options):
    votes = table(drawn().votes)
    assert as_json(write(votes, "votes.csv"), *words) == lf.estimate(votes, **options).as_dict()


def test_a_classifier_with_a_comma_in_its_name_goes_in_quotes():
    votes = table(drawn().votes, names=("Smith, J.", "bob", "cem", "dee"))
    found = as_json(write(votes, "votes.csv"), "--classifiers", '"Smith, J.",bob,cem')
    assert list(rates(found)) == ["Smith, J.", "bob", "cem"]


def test_what_is_known_of_a_classifier_with_dots_and_signs_in_its_name():
    votes = table(drawn().votes, names=("gpt.4=x", "bob", "cem", "dee"))
    found = as_json(write(votes, "votes.csv"), "--known", "gpt.4=x.specificity=0.8")
    assert rates(found)["gpt.4=x"][1] == 0.8


@pytest.mark.parametrize("ending", ENDINGS)
def test_gold_labels_in_a_file_and_in_a_column_are_those_of_python(ending):
    drawn_here = drawn(items=1000)
    votes = table(drawn_here.votes, words={0: "no", 1: "yes"})
    truth = pl.Series("label", drawn_here.truth).replace_strict({0: "no", 1: "yes"})
    gold = votes.select("item").with_columns(truth).head(60)
    expected = lf.estimate(votes, gold=dict(gold.iter_rows())).as_dict()
    write(votes, f"votes{ending}")
    assert as_json(f"votes{ending}", "--gold", write(gold, f"gold{ending}")) == expected
    marked = votes.with_columns(truth=pl.when(pl.col("item") < 60).then(truth))
    found = as_json(write(marked, f"marked{ending}"), "--gold", "truth")
    assert rates(found) == rates(expected)
    succeed("label", f"votes{ending}", "--gold", f"gold{ending}", "-o", "labels.csv")
    assert read("labels.csv").columns == [*votes.columns, "label", "probability"]


def test_gold_labels_may_name_their_items_as_the_votes_do():
    drawn_here = drawn(items=1000)
    votes = table(drawn_here.votes).rename({"item": "task"})
    gold = votes.select("task").with_columns(label=pl.Series(drawn_here.truth)).sample(50, seed=1)
    write(votes, "votes.csv")
    found = as_json("votes.csv", "--item", "task", "--gold", write(gold, "gold.tsv"))
    assert rates(found) == rates(
        lf.estimate(votes, item="task", gold=dict(gold.iter_rows())).as_dict()
    )


def test_another_column_may_name_the_items():
    votes = table(drawn().votes).with_columns(pl.format("x{}", "item").alias("item"))
    path = write(votes.rename({"item": "id"}), "votes.csv")
    assert rates(as_json(path, "--item", "id")) == rates(as_json(write(votes, "same.csv")))


@pytest.mark.parametrize(
    ("sign", "given"), [("-1", "-1"), ("NA", "NA"), ("?", "?"), ("9", "9"), ("-1.5", "-1.5")]
)
@pytest.mark.parametrize("everywhere", [True, False])
def test_a_missing_vote_is_found_as_text_and_as_number(sign, given, everywhere):
    votes = table(drawn(missing=0.2).votes)
    if not everywhere:  # one column of numbers and words, beside others of numbers alone
        votes = votes.with_columns(pl.col("bob", "cem", "dee").fill_null(0))
    votes.fill_null(-7).write_csv("votes.csv")
    text = Path("votes.csv").read_text().replace("-7", sign)
    Path("votes.csv").write_text(text)
    found = as_json("votes.csv", "--missing", given)
    assert [str(label).removesuffix(".0") for label in found["classes"]] == ["0", "1"]
    assert rates(found) == rates(lf.estimate(votes).as_dict())


def test_several_signs_for_a_missing_vote():
    votes = table(drawn(missing=0.2).votes, words={0: "no", 1: "yes"})
    marked = votes.with_columns(pl.col("ann").fill_null("?"), pl.col("bob").fill_null("skipped"))
    path = write(marked, "votes.csv")
    assert rates(as_json(path, "--missing", "?", "--missing", "skipped")) == rates(
        lf.estimate(votes).as_dict()
    )


@pytest.mark.parametrize(
    ("labels", "positive"), [((0, 1), "0"), ((-1, 1), "-1"), (("no", "yes"), "no")]
)
def test_the_positive_label_is_matched_by_how_it_is_written(labels, positive):
    votes = pl.DataFrame(np.where(drawn().votes == 1, labels[1], labels[0]))
    found = as_json(write(votes, "votes.csv"), f"--positive={positive}")
    assert str(found["classes"][-1]) == positive


def test_a_byte_order_mark_windows_line_ends_and_quoted_newlines():
    votes = table(drawn().votes).with_columns(pl.format("x{}", "item").alias("item"))
    text = votes.write_csv().replace("x0,", '"x\n0",', 1)
    Path("votes.csv").write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert rates(as_json("votes.csv")) == rates(lf.estimate(votes).as_dict())


# --- label --------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ENDINGS)
def test_labels_of_a_wide_file_are_its_table_with_two_columns_more(ending):
    votes = table(drawn(missing=0.1).votes, words={0: "no", 1: "yes"})
    said = succeed("label", write(votes, "votes.parquet"), "-o", f"labels{ending}")
    labelled = read(f"labels{ending}")
    expected = lf.estimate(votes).label(votes)
    assert labelled.columns == [*votes.columns, "label", "probability"]
    assert labelled["item"].to_list() == votes["item"].to_list()
    assert labelled["label"].to_list() == expected["label"].to_list()
    np.testing.assert_allclose(labelled["probability"], expected["probability"], rtol=1e-12)
    yes = (labelled["label"] == "yes").sum()
    assert f"labels{ending}: labels of 400 items: {yes} are yes, {400 - yes} are no" in said
    assert "verdict " in said


def test_labels_of_a_long_file_are_one_row_an_item():
    votes = table(drawn(missing=0.1).votes, words={0: "no", 1: "yes"})
    long = votes.unpivot(index="item", variable_name="rater", value_name="said").drop_nulls()
    write(long.rename({"item": "task"}), "long.csv")
    succeed("label", "long.csv", *LONG, "-o", "labels.csv")
    labelled = read("labels.csv")
    assert labelled.columns == ["task", "label", "probability"]
    assert labelled["label"].to_list() == lf.estimate(votes).label(votes)["label"].to_list()


@pytest.mark.parametrize("rule", ["posterior", "likelihood", "spectral", "majority"])
def test_every_rule_labels_as_python_does(rule):
    votes = table(drawn().votes)
    succeed("label", write(votes, "votes.csv"), "--rule", rule, "-o", "labels.csv")
    expected = lf.estimate(votes).label(votes, rule=rule)["label"]
    assert read("labels.csv")["label"].to_list() == expected.to_list()


def test_a_saved_estimate_labels_new_votes():
    old, new = table(drawn().votes), table(drawn(items=30, seed=7).votes)
    write(old, "old.csv")
    write(new, "new.jsonl")
    said = succeed("estimate", "old.csv", "--save", "kept.json")
    assert "verdict" in said
    assert lf.load("kept.json") == lf.estimate(old)
    succeed("label", "new.jsonl", "--estimate", "kept.json", "-o", "labels.csv")
    expected = lf.estimate(old).label(new)
    assert read("labels.csv")["label"].to_list() == expected["label"].to_list()
    succeed("label", "old.csv", "-o", "direct.csv")
    succeed("label", "old.csv", "--estimate", "kept.json", "-o", "kept.csv")
    assert Path("direct.csv").read_bytes() == Path("kept.csv").read_bytes()


def test_a_saved_estimate_remembers_how_its_votes_were_read():
    votes = table(drawn(missing=0.2).votes).fill_null(9)
    write(votes, "votes.csv")
    succeed("estimate", "votes.csv", "--missing", "9", "--save", "kept.json")
    succeed("label", "votes.csv", "--estimate", "kept.json", "-o", "labels.csv")
    assert read("labels.csv").height == 400


def test_a_saved_estimate_labels_votes_of_some_of_its_classifiers():
    write(table(drawn().votes), "votes.csv")
    succeed("estimate", "votes.csv", "--save", "kept.json")
    words = ["--estimate", "kept.json", "--classifiers", "ann,cem,dee", "-o", "labels.csv"]
    succeed("label", "votes.csv", *words)
    assert read("labels.csv")["label"].n_unique() == 2


def test_an_item_without_votes_is_labelled_with_a_warning_of_one_line():
    votes = table(drawn().votes).with_columns(
        pl.when(pl.col("item") == 3).then(None).otherwise(pl.col(name)).alias(name)
        for name in ("ann", "bob", "cem", "dee")
    )
    done = run("label", write(votes, "votes.parquet"), "-o", "labels.csv")
    assert done.exit_code == 0
    assert done.stderr.startswith("labelfree: warning: 1 item had no vote at all")
    assert done.stderr.count("\n") == 1
    assert read("labels.csv").height == 400


def test_votes_without_signal_are_not_labelled():
    coins = np.random.default_rng(0).integers(0, 2, (300, 4))
    pl.DataFrame(coins, schema=list("abcd")).write_csv("coins.csv")
    said = complaint("label", "coins.csv", "-o", "labels.csv")
    assert "do not identify" in said
    assert "What would help" in said
    assert not Path("labels.csv").exists()


@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_write_that_fails_half_way_leaves_the_old_file_and_nothing_else(monkeypatch, failure):
    write(table(drawn().votes), "votes.csv")
    Path("labels.csv").write_text("old")

    def half(frame, target, **options):
        Path(target).write_text("half")
        raise failure

    monkeypatch.setattr(pl.DataFrame, "write_csv", half)
    done = run("label", "votes.csv", "-o", "labels.csv")
    assert done.exit_code == (2 if isinstance(failure, OSError) else 130)
    assert "Traceback" not in done.output
    assert Path("labels.csv").read_text() == "old"
    assert sorted(path.name for path in Path().iterdir()) == ["labels.csv", "votes.csv"]


def test_a_table_that_the_format_cannot_hold_is_refused():
    votes = table(drawn().votes).with_columns(more=pl.lit([1, 2]))
    write(votes, "votes.parquet")
    said = complaint("label", "votes.parquet", "--classifiers", "ann,bob,cem", "-o", "labels.csv")
    assert "labels.csv cannot be written as csv" in said
    assert sorted(path.name for path in Path().iterdir()) == ["votes.parquet"]


# --- simulate -----------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ENDINGS)
def test_simulate_writes_votes_and_beside_them_the_truth(ending):
    words = ["--items", 300, "--classifiers", 5, "--prevalence", 0.3, "--seed", 4]
    said = succeed("simulate", *words, "-o", f"votes{ending}")
    votes, truth = read(f"votes{ending}"), read(f"votes.truth{ending}")
    expected = lf.simulate.votes(300, classifiers=5, prevalence=0.3, seed=4)
    names = [f"classifier_{number}" for number in range(1, 6)]
    assert votes.columns == ["item", *names]
    assert truth.columns == ["item", "label"]
    assert votes["item"].to_list() == truth["item"].to_list()
    assert (votes.select(names).to_numpy() == expected.votes).all()
    assert (truth["label"].to_numpy() == expected.truth).all()
    first = (f"{expected.sensitivity[0]:.3f}", f"{expected.specificity[0]:.3f}")
    assert re.search(r"classifier_1\s+" + r"\s+".join(first), said)
    assert f"votes.truth{ending}: true labels of 300 items" in said


def test_simulate_gives_the_same_votes_for_the_same_seed():
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        succeed("simulate", "--seed", seed, "-o", f"{name}.csv")
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()
    assert Path("a.csv").read_bytes() != Path("c.csv").read_bytes()


def test_simulate_leaves_cells_empty_and_lets_classifiers_copy():
    words = ["--missing", 0.25, "--copies", "1,2", "--copies", "4,6,7", "--items", 2000]
    succeed("simulate", *words, "-o", "votes.csv")
    votes = read("votes.csv")
    share = votes.null_count().sum_horizontal()[0] / (2000 * 10)
    assert abs(share - 0.25) < 0.02
    for first, second, agree in ((1, 2, True), (4, 6, True), (4, 7, True), (1, 3, False)):
        pair = votes.select(f"classifier_{first}", f"classifier_{second}").drop_nulls()
        assert (pair.to_series(0) == pair.to_series(1)).all() is agree
    found = as_json("votes.csv")
    assert found["items"] == 2000
    succeed("simulate", "--copies", "1,2", "--copying", 0, "-o", "free.csv")
    free = read("free.csv")
    assert not (free["classifier_1"] == free["classifier_2"]).all()


# --- demo and the rest --------------------------------------------------------------------------


def test_demo_compares_with_the_truth():
    said = succeed("demo")
    folder = Path(_cli.__file__).parent / "example"
    votes, truth = pl.read_csv(folder / "digits.csv"), pl.read_csv(folder / "digits.truth.csv")
    found = lf.estimate(votes)
    positive = (truth["label"] == "5-9").to_numpy()
    assert found.classes[-1] == "5-9"
    off = []
    for place, name in enumerate(found.classifiers):
        true = (votes[name] == "5-9").to_numpy()[positive].mean()
        guess = found.sensitivity[place]
        off.append(abs(true - guess))
        assert re.search(rf"{name}\s+{true:.3f}\s+{guess:.3f}\s+[+-]{off[-1]:.3f}", said)
    assert f"sensitivity {np.mean(off):.3f}" in said
    held = [
        ((ends[:, 0] <= true) & (true <= ends[:, 1])).sum()
        for ends, true in (
            (found.interval("sensitivity"), true_rates(votes, positive, "5-9")),
            (found.interval("specificity"), true_rates(votes, ~positive, "0-4")),
        )
    ]
    holding = f"hold the truth: sensitivity {held[0]} of 10, specificity {held[1]} of 10"
    assert holding in said
    assert f"prevalence: true {positive.mean():.3f}, found {found.prevalence:.3f}" in said
    for words, rule in (("consensus", "posterior"), ("majority vote", "majority")):
        right = (found.label(votes, rule=rule)["label"] == truth["label"]).mean()
        assert f"{words} {right:.1%}" in said
    assert widest(said) <= 80


def true_rates(votes, items, label):
    return (votes.drop("item").to_numpy()[items] == label).mean(axis=0)


def test_plan_says_what_python_says():
    words = ["--classifiers", 4, "--sensitivity", "0.8,.7,0.9,0.85", "--specificity", "0.9"]
    more = ["--prevalence", 0.3, "--width", 0.08, "--level", 0.9, "--missing", 0.1]
    expected = lf.plan(
        4,
        sensitivity=[0.8, 0.7, 0.9, 0.85],
        specificity=0.9,
        prevalence=0.3,
        width=0.08,
        level=0.9,
        missing=0.1,
    )
    said = succeed("plan", *words, *more)
    found = json.loads(succeed("plan", *words, *more, "--json"))
    assert found == {"format": "labelfree.plan", "version": 1, **asdict(expected)}
    assert keys_of(found) == documented_keys("A plan")
    assert "For 90 % intervals at most 0.08 wide" in said
    for number in (expected.items_for_rates, expected.items_for_prevalence, expected.gold):
        assert f" {number:,}\n" in said
    assert widest(said) <= 80


def test_version_and_help():
    assert succeed("--version") == f"labelfree {lf.__version__}\n"
    said = succeed("--help")
    for command in ("estimate", "label", "simulate", "plan", "demo"):
        assert command in said
        for flag in ("--help", "-h"):
            help_of_one = succeed(command, flag)
            assert "Example:" in help_of_one
            assert widest(help_of_one) <= 80
    nothing = run()
    assert nothing.exit_code == 2
    assert nothing.stdout.strip() == said.strip()


# --- what a terminal shows ----------------------------------------------------------------------


def widest(said):
    return max(map(len, said.splitlines()))


HOSTILE = ["[bold]x[/bold]", "[/]", ":smile:", "a\nb", "\x1b[31mred\x07", "x" * 200, "分類器" * 20]


def test_hostile_names_are_shown_letter_by_letter():
    found = lf.simulate.votes(500, sensitivity=[0.9] * 7, specificity=[0.8] * 7)
    write(table(found.votes, names=HOSTILE), "votes.csv")
    said = succeed("estimate", "votes.csv")
    for shown in ("[bold]x[/bold]", " [/] ", ":smile:", "a\\nb", "\\x1b[31mred\\x07"):
        assert shown in said
    assert "\x1b" not in said
    assert said.count("x" * 20) > 1  # folded, not cut
    assert widest(said) <= 80
    assert list(rates(as_json("votes.csv"))) == HOSTILE
    succeed("label", "votes.csv", "-o", "labels.csv")
    assert read("labels.csv").columns == ["item", *HOSTILE, "label", "probability"]
    assert "\x1b" not in run("estimate", "votes.csv", "--item", "\x1b[31m").stderr


def test_two_hundred_classifiers_each_have_their_line():
    found = lf.simulate.votes(1000, classifiers=200)
    names = [f"model-{number:03}" for number in range(200)]
    path = write(table(found.votes, names=names), "votes.parquet")
    options = ["--by-prevalence", "--dependence", "ignore"]
    said = succeed("estimate", path, *options)
    assert all(len(re.findall(rf"^ {name} ", said, re.MULTILINE)) == 2 for name in names)
    assert widest(said) <= 80


def test_a_long_name_leaves_room_for_every_figure():
    names = ["a_very_long_name_of_a_classifier_" * 4, "bob", "cem", "dee"]
    votes = table(drawn().votes, names=names).with_columns(same=pl.lit(1))
    said = succeed("estimate", write(votes, "votes.csv"))
    for row in lf.estimate(votes).table()[:4]:
        assert f"{row['sensitivity']:.3f}" in said
    assert widest(said) <= 80


def test_a_narrow_terminal_loses_no_figure(monkeypatch):
    path = write(table(drawn().votes), "votes.csv")
    usual = succeed("estimate", path)
    monkeypatch.setenv("COLUMNS", "30")
    assert succeed("estimate", path) == usual


def test_options_in_messages_are_spelled_as_in_a_shell():
    said = _terminal.in_shell_words
    assert said("Name it with missing='NA', or") == "Name it with --missing 'NA', or"
    assert said("prevalence= must lie") == "--prevalence must lie"
    assert said("a known prevalence (prevalence=).") == "a known prevalence (--prevalence)."
    assert said("x.prevalence, true_item=3") == "x.prevalence, true_item=3"
    assert said("got 'ann.sensitivity=2'") == "got 'ann.sensitivity=2'"


def test_a_terminal_without_unicode_gets_words_all_the_same():
    coins = np.random.default_rng(0).integers(0, 2, (300, 4))
    pl.DataFrame(coins, schema=["é", "b", "c", "d"]).write_csv("coins.csv")
    done = in_process("estimate", "coins.csv", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert not done.stderr
    assert b"verdict unidentified" in done.stdout


# --- bad input ----------------------------------------------------------------------------------


FILES = {
    "empty.csv": "",
    "header.csv": "item,a,b,c\n",
    "short.csv": "a,b,c\n1,0,1\n0,1\n",
    "long_row.csv": "a,b,c\n1,0,1\n0,1,1,1\n",
    "twice.csv": "a,b,a\n1,0,1\n",
    "two.csv": "a,b\n1,0\n0,1\n",
    "one_label.csv": "a,b,c\n1,1,1\n1,1,1\n",
    "infinite.csv": "a,b,c\ninf,0,1\n0,1,1\n",
    "empty.jsonl": "",
    "broken.jsonl": '{"a": 1',
    "nested.jsonl": '{"a": [1], "b": 0, "c": 1}\n',
    "not_parquet.parquet": "PAR1 or not",
    "not_text.csv": b"\xff\xfe\x00a,b,c\n",
    "votes.txt": "a,b,c\n1,0,1\n",
    "good.csv": "item,a,b,c\n"
    + "".join(f"{n},1,1,0\n{n + 1},0,0,0\n{n + 2},1,1,1\n{n + 3},0,1,0\n" for n in range(1, 81, 4)),
    "twice_gold.csv": "item,label\n1,1\n1,0\n2,0\n",
    "stranger.csv": "item,label\n1,1\n200,0\n",
    "other_label.csv": "item,label\n1,1\n2,maybe\n",
    "labelled.csv": "a,b,c,label\n" + "1,1,0,1\n0,0,0,0\n1,1,1,1\n0,1,0,0\n" * 20,
    "long.csv": "task,rater,said\n1,a,yes\n1,b,no\n1,c,yes\n1,a,no\n",
    "not_estimate.json": "{}",
}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("missing.csv", "there is no such file"),
        (".", "expected a name that ends in"),
        ("votes.txt", "expected a name that ends in .csv"),
        ("empty.csv", "empty.csv is empty"),
        ("empty.jsonl", "empty.jsonl is empty"),
        ("header.csv", "no votes below its header"),
        ("short.csv", "short.csv, line 3: expected 3 cells as in the header, got 2"),
        ("long_row.csv", "line 3: expected 3 cells as in the header, got 4"),
        ("twice.csv", "column a stands more than once"),
        ("two.csv", "at least three classifiers, got 2"),
        ("one_label.csv", "two labels"),
        ("infinite.csv", "infinit"),
        ("broken.jsonl", "cannot be read as jsonl"),
        ("nested.jsonl", "'a'"),
        ("not_parquet.parquet", "cannot be read as parquet"),
        ("not_text.csv", "cannot be read as csv"),
        ("long.csv", ""),
        ("long.csv --item task --classifier rater --vote said", "1 repeated pair"),
        ("long.csv --item task --classifier rater --vote said", "say --duplicates 'last' to keep"),
        (
            "long.csv --item task --classifier rater --vote said --duplicates all",
            "--duplicates must",
        ),
        ("long.csv --item task --classifier rater", "--vote"),
        ("long.csv --item task --classifier who --vote said", "no column 'who'"),
        ("good.csv --item nothing", "no column 'nothing'"),
        ("good.csv --classifiers a,b,nobody", "no column 'nobody'"),
        ("good.csv --classifiers a,b,b", "--classifiers names a column twice"),
        ("good.csv --positive 2", "--positive must be one of the labels"),
        ("good.csv --prevalence 0", "--prevalence must lie between 0 and 1"),
        ("good.csv --prevalence 1", "--prevalence must lie between 0 and 1"),
        ("good.csv --prevalence -0.5", "--prevalence must lie between 0 and 1"),
        ("good.csv --prevalence nan", "--prevalence"),
        ("good.csv --prevalence half", "--prevalence must hold a number"),
        ("good.csv --prior -1", "--prior must be a number of at least 0"),
        ("good.csv --method magic", "--method must be one of map, likelihood, tensor"),
        ("good.csv --vector magic", "--vector must be one of"),
        ("good.csv --metod map", "No such option"),
        ("good.csv --level 0", "--level must lie between 0 and 1"),
        ("good.csv --level 95", "--level must lie between 0 and 1"),
        ("good.csv --level nan", "--level must lie between 0 and 1"),
        ("good.csv --level high", "Invalid value for '--level'"),
        ("good.csv --known a", "--known must name a classifier, its rate and a value, got 'a'"),
        ("good.csv --known sensitivity=0.9", "got 'sensitivity=0.9'"),
        ("good.csv --known a.sensitivity=high", "got 'a.sensitivity=high'"),
        ("good.csv --known a.sensitivity=1", "--known gives a a sensitivity of 1"),
        ("good.csv --known a.specificity=nan", "--known gives a a specificity of nan"),
        ("good.csv --known a.specificity=18,0.5", "parameters of a Beta"),
        ("good.csv --known a.specificity=18,2,1", "parameters of a Beta"),
        ("good.csv --known a.accuracy=0.9", "--known holds 'accuracy' for a"),
        ("good.csv --known z.sensitivity=0.9", "--known names 'z'"),
        ("good.csv --dependence magic", "--dependence must be"),
        ("good.csv --dependence a,z", "--dependence names 'z'"),
        ("good.csv --dependence a,a", "--dependence must hold groups"),
        ("good.csv --dependence a,b", "at least three groups"),
        ("good.csv --gold nothing", "no column 'nothing'"),
        ("good.csv --gold nothing.csv", "nothing.csv: there is no such file"),
        ("good.csv --gold long.csv", "long.csv must have a column 'item' and a column 'label'"),
        ("good.csv --gold twice_gold.csv", "gives item 1 two labels"),
        ("good.csv --gold stranger.csv", "--gold names 1 item that the votes do not have"),
        ("good.csv --gold other_label.csv", "--gold holds the label"),
        ("good.csv --save nowhere/kept.json", "nowhere/kept.json cannot be written"),
        ("", "Missing argument 'VOTES"),
    ],
)
@pytest.mark.parametrize("command", ["estimate", "label"])
def test_bad_input_gets_one_sentence(command, words, expected):
    if command == "label" and "--save" in words:
        pytest.skip("an option of estimate alone")
    before = lay_out_files()
    said = complaint(command, *words.split(), *(["-o", "out.csv"] if command == "label" else []))
    assert expected in said
    assert said[-1] in ".?!"
    assert sorted(path.name for path in Path().iterdir()) == before


def lay_out_files():
    for name, content in FILES.items():
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return sorted(FILES)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("label good.csv", "Missing option"),
        ("label good.csv -o out.xlsx", "expected a name that ends in"),
        ("label good.csv -o nowhere/out.csv", "nowhere/out.csv cannot be written"),
        ("label good.csv -o out.csv --rule magic", "--rule must be one of"),
        ("label good.csv -o out.csv --estimate missing.json", "missing.json cannot be read"),
        ("label good.csv -o out.csv --estimate good.csv", "good.csv is not JSON"),
        ("label good.csv -o out.csv --estimate not_estimate.json", "is not an estimate"),
        ("label good.csv -o out.csv --estimate x.json --method map", "--method does not go with"),
        ("label good.csv -o out.csv --estimate x.json --positive 0", "--positive does not go with"),
        ("label good.csv -o out.csv --estimate x.json --gold c", "--gold does not go with"),
        ("label good.csv -o out.csv --estimate x.json --level 0.9", "--level does not go with"),
        ("plan", "--classifiers or a rate each"),
        ("plan --classifiers 2", "Expected three to 1,000 classifiers"),
        ("plan --classifiers few", "Invalid value for '--classifiers'"),
        ("plan --classifiers 5 --sensitivity good", "--sensitivity must hold one rate"),
        ("plan --classifiers 5 --sensitivity 1", "--sensitivity must lie between 0 and 1"),
        (
            "plan --specificity 0.8,0.7,0.9 --sensitivity 0.8,0.9",
            "--sensitivity must hold one rate",
        ),
        ("plan --classifiers 5 --width 0", "--width must lie between 0 and 1"),
        ("plan --classifiers 5 --level 95", "--level must lie between 0 and 1"),
        ("plan --classifiers 5 --missing 1", "--missing must be at least 0 and below 1"),
        ("plan --classifiers 5 --sensitivity 0.5 --specificity 0.5", "cannot be graded"),
        ("label labelled.csv -o out.csv --classifiers a,b,c", "already has a column 'label'"),
        ("simulate", "Missing option"),
        ("simulate -o votes.xlsx", "expected a name that ends in"),
        ("simulate -o nowhere/votes.csv", "nowhere/votes.csv cannot be written"),
        ("simulate -o v.csv --items 0", "--items must be a whole number of at least 1"),
        ("simulate -o v.csv --items ten", "Invalid value for '--items'"),
        ("simulate -o v.csv --classifiers 0", "--classifiers must be a whole number"),
        ("simulate -o v.csv --classifiers -3", "--classifiers must be a whole number"),
        ("simulate -o v.csv --prevalence 2", "--prevalence must hold probabilities"),
        ("simulate -o v.csv --missing 2", "--missing must hold probabilities"),
        ("simulate -o v.csv --copying -1", "--copying must hold probabilities"),
        ("simulate -o v.csv --copies one,two", "--copies must hold"),
        ("simulate -o v.csv --copies 1,11", "--copies must hold"),
        ("simulate -o v.csv --copies 0,1", "--copies must hold"),
        ("simulate -o v.csv --copies 1,2 --copies 2,3", "--copies must hold"),
        ("simulate -o v.csv --seed -1", "--seed"),
        ("demo --fast", "No such option"),
        ("demo digits", "unexpected extra argument"),
        ("grade good.csv", "No such command 'grade'"),
    ],
)
def test_other_bad_words_get_one_sentence_too(words, expected):
    before = lay_out_files()
    said = complaint(*words.split())
    assert expected in said
    assert said[-1] in ".?!"
    assert sorted(path.name for path in Path().iterdir()) == before


# --- as a process -------------------------------------------------------------------------------


def test_exit_codes_and_streams_of_a_process():
    lay_out_files()
    good = in_process("estimate", "good.csv", "--json")
    assert (good.returncode, good.stderr) == (0, b"")
    assert json.loads(good.stdout)["items"] == 80
    bad = in_process("estimate", "short.csv")
    assert (bad.returncode, bad.stdout) == (2, b"")
    assert bad.stderr.count(b"\n") == 1


@pytest.mark.parametrize("json_too", [[], ["--json"]])
def test_a_reader_that_goes_away_is_no_drama(json_too):
    found = lf.simulate.votes(300, classifiers=200)
    pl.DataFrame(found.votes).write_csv("votes.csv")
    process = subprocess.Popen(
        [*PROGRAM, "estimate", "votes.csv", *json_too],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(60) == 1


def test_an_answer_that_finds_no_room_is_one_sentence():
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    lay_out_files()
    for more in ([], ["--json"]):
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(
                [*PROGRAM, "estimate", "good.csv", *more],
                check=False,
                stdout=full,
                stderr=subprocess.PIPE,
            )
        assert done.returncode == 2
        assert done.stderr.count(b"\n") == 1
        assert b"No space left" in done.stderr


def test_an_interrupted_run_is_quiet_and_leaves_no_file():
    code = (
        "import polars as pl, sys, signal\n"
        "def write(frame, target, **options):\n"
        "    open(target, 'w').write('half')\n"
        "    signal.raise_signal(signal.SIGINT)\n"
        "pl.DataFrame.write_csv = write\n"
        "from labelfree._cli import main\n"
        "sys.argv = ['labelfree', 'simulate', '-o', 'votes.csv']\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True)
    assert done.returncode == 130
    assert done.stderr == b""
    assert not list(Path().iterdir())


# --- speed --------------------------------------------------------------------------------------


def fastest(command, enough):
    """Best of several runs, in seconds; stops at the first that is fast enough.

    On a busy machine a run waits for its turn. What it computes itself then counts, on one thread.
    """
    best = float("inf")
    for _ in range(10):
        start, before = time.perf_counter(), computed()
        alone = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        # An installed package has its bytecode beside it; so has this one after the first run.
        alone.pop("PYTHONDONTWRITEBYTECODE", None)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=alone)
        best = min(best, time.perf_counter() - start, computed() - before)
        if best < enough:
            break
    return best


def computed():
    """Processor time of all finished children so far, in seconds."""
    times = os.times()
    return times.children_user + times.children_system


def test_help_takes_less_than_two_fifths_of_a_second():
    assert fastest([*PROGRAM, "--help"], 0.4) < 0.4


def test_import_takes_less_than_a_quarter_of_a_second():
    assert fastest([sys.executable, "-c", "import labelfree"], 0.25) < 0.25


def test_what_is_heavy_is_imported_where_it_is_used():
    heavy = {"polars", "pandas", "pyarrow", "scipy", "sklearn", "rich", "pydantic"}
    code = f"import sys, labelfree._cli; print(sorted({heavy!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"
