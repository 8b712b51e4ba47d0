import numpy as np
import pandas as pd
import polars as pl
import pytest

import labelfree as lf

NAMES = list("abcdef")


def drawn(items=3000, seed=1):
    return lf.simulate.votes(items, classifiers=6, prevalence=0.4, seed=seed)


def some(votes, number=60, seed=0):
    places = np.random.default_rng(seed).choice(len(votes.truth), number, replace=False)
    return {int(place): int(votes.truth[place]) for place in places}


def test_every_way_to_give_gold_is_the_same():
    votes = drawn()
    gold = some(votes)
    column = [gold.get(place) for place in range(len(votes.truth))]
    names = [f"item_{place}" for place in range(len(votes.truth))]
    table = pl.DataFrame(votes.votes, schema=NAMES).with_columns(pl.Series("truth", column))
    named = table.drop("truth").with_columns(pl.Series("item", names))
    long = named.unpivot(index="item", variable_name="who", value_name="vote").sample(
        fraction=1.0, shuffle=True, seed=1
    )
    by_name = {f"item_{place}": label for place, label in gold.items()}
    answers = [
        lf.estimate(votes.votes, gold=gold),
        lf.estimate(votes.votes, gold=column),
        lf.estimate(votes.votes, gold=pd.Series(column)),
        lf.estimate(
            votes.votes, gold=np.array([np.nan if each is None else each for each in column])
        ),
        lf.estimate(table, gold="truth"),
        lf.estimate(table.to_pandas(), gold="truth"),
        lf.estimate(named, gold=by_name),
        lf.estimate(long, gold=by_name, item="item", classifier="who", vote="vote"),
    ]
    for answer in answers:
        np.testing.assert_allclose(answer.sensitivity, answers[0].sensitivity, atol=1e-9)
        np.testing.assert_allclose(
            answer.interval("prevalence"), answers[0].interval("prevalence"), atol=1e-9
        )
        assert answer._choice.gold == 60
    np.testing.assert_array_equal(
        answers[4].label(table)["label"].to_numpy(), answers[0].label(votes.votes)
    )


def test_gold_fixes_the_direction():
    votes = lf.simulate.votes(
        4000, sensitivity=[0.9, 0.2, 0.3, 0.25], specificity=[0.9, 0.2, 0.25, 0.3], seed=1
    )
    estimate = lf.estimate(votes.votes, gold=some(votes))
    assert estimate.sensitivity[0] > 0.6
    assert estimate.sensitivity[1] < 0.4
    assert any("turned the direction" in reason for reason in estimate.verdict.reasons)
    assert (estimate.label(votes.votes) == votes.truth).mean() > 0.8


def test_known_prevalence_and_rates_stay_beside_gold():
    votes = drawn()
    known = {"classifier_3": {"sensitivity": 0.66}}
    estimate = lf.estimate(votes.votes, gold=some(votes), prevalence=0.42, known=known)
    assert estimate.prevalence == pytest.approx(0.42)
    assert estimate.sensitivity[2] == pytest.approx(0.66)
    np.testing.assert_allclose(estimate.interval("sensitivity")[2], 0.66)


def test_a_calibrated_estimate_is_saved_and_loaded(tmp_path):
    votes = drawn()
    estimate = lf.estimate(votes.votes, gold=some(votes))
    estimate.save(tmp_path / "e.json")
    again = lf.load(tmp_path / "e.json")
    assert again == estimate
    np.testing.assert_array_equal(again.probability(votes.votes), estimate.probability(votes.votes))


@pytest.mark.parametrize(
    "gold", [{99_999: 1}, {"stranger": 1}, {0: 7}, "nope", [1, 0], {}, {0: None}, 5, [None] * 3000]
)
def test_bad_gold_gets_a_sentence(gold):
    with pytest.raises(lf.OptionsError, match=r"gold=|column"):
        lf.estimate(drawn().votes, gold=gold)


def test_gold_that_contradicts_every_classifier_is_refused():
    votes = drawn()
    swapped = {place: 1 - label for place, label in some(votes, 300).items()}
    with pytest.raises(lf.OptionsError, match="contradict every classifier"):
        lf.estimate(votes.votes, gold=swapped)


def test_a_tally_has_no_items_for_gold():
    with pytest.raises(lf.OptionsError, match="forgotten"):
        lf.estimate(lf.tally(drawn().votes), gold={0: 1})


def test_the_gold_column_is_no_classifier_and_must_exist():
    votes = drawn()
    table = pl.DataFrame(votes.votes, schema=NAMES)
    with pytest.raises(lf.OptionsError, match="truth"):
        lf.estimate(table, gold="truth")
