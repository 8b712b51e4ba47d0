"""How an estimate was computed: options, the hash of the votes, the likelihood over the imbalance."""

import json

import numpy as np
import pytest

import labelfree as lf
from labelfree._imbalance import RestrictedLikelihood
from labelfree._moments import moments
from labelfree._origin import POINTS, hash_of
from labelfree._products import Blocks
from labelfree._rank_one import rank_one
from labelfree._tally import _as_sparse

VOTES = lf.simulate.votes(2000, classifiers=6, prevalence=0.3, missing=0.2, seed=3).votes


def test_the_hash_is_of_the_votes_whatever_the_order_of_the_items():
    shuffled = np.random.default_rng(1).permutation(VOTES)
    assert hash_of(lf.tally(shuffled, missing=-1)) == hash_of(lf.tally(VOTES, missing=-1))


def test_the_hash_is_the_same_for_sparse_votes():
    dense = lf.tally(VOTES, missing=-1)
    sparse = _as_sparse(dense)
    assert sparse.is_sparse
    assert hash_of(sparse) == hash_of(dense)


@pytest.mark.parametrize("what", ["a vote", "a name", "a class"])
def test_the_hash_changes_with(what):
    votes, names, classes = VOTES.copy(), [f"c{i}" for i in range(6)], (0, 1)
    before = hash_of(lf.tally(votes, missing=-1, classifiers=names, classes=classes))
    if what == "a vote":
        votes[7, 0] = 1 - votes[7, 0] if votes[7, 0] >= 0 else 1
    elif what == "a name":
        names[3] = "other"
    else:
        classes = (1, 0)
    after = hash_of(lf.tally(votes, missing=-1, classifiers=names, classes=classes))
    assert after != before


def test_the_curve_is_the_restricted_likelihood():
    found = lf.estimate(VOTES, missing=-1).origin
    blocks = Blocks(lf.tally(VOTES, missing=-1))
    seen = moments(blocks)
    exact = RestrictedLikelihood(blocks, seen, rank_one(seen).vector)
    assert len(found.imbalances) == POINTS
    for place in (0, 20, 55, 80):
        value = exact.value(found.imbalances[place])
        assert found.log_likelihood[place] == pytest.approx(value, abs=1e-12)


def test_the_curve_is_highest_where_algorithm_2_says():
    found = lf.estimate(VOTES, missing=-1, method="likelihood")
    best = found.origin.imbalances[np.argmax(found.origin.log_likelihood)]
    assert abs(best - found.imbalance) <= found.origin.imbalances[1] - found.origin.imbalances[0]


def test_only_options_that_were_given_are_noted():
    assert lf.estimate(VOTES, missing=-1).origin.options == {}
    options = {"prevalence": 0.3, "known": {"classifier_1": {"sensitivity": (18, 2)}}}
    found = lf.estimate(VOTES, missing=-1, method="map", **options).origin.options
    assert found == {"prevalence": 0.3, "known": {"classifier_1": {"sensitivity": [18, 2]}}}


def test_it_is_kept_in_the_file(tmp_path):
    made = lf.estimate(VOTES, missing=-1, level=0.9)
    made.save(tmp_path / "e.json")
    again = lf.load(tmp_path / "e.json")
    assert again == made
    assert again.origin.tally_hash == made.origin.tally_hash == hash_of(lf.tally(VOTES, missing=-1))


def test_an_estimate_that_an_older_version_saved_has_no_origin(tmp_path):
    kept = lf.estimate(VOTES, missing=-1).as_dict()
    del kept["origin"]
    (tmp_path / "e.json").write_text(json.dumps(kept))
    assert lf.load(tmp_path / "e.json").origin is None


def test_votes_without_signal_have_a_hash_and_no_curve():
    noise = np.random.default_rng(0).integers(0, 2, (300, 5))
    found = lf.estimate(noise)
    assert found.verdict.level == "unidentified"
    assert len(found.origin.log_likelihood) == 0
    assert len(found.origin.tally_hash) == 64
