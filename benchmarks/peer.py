"""One peer on votes kept in a file, run in the peer's own environment; peers.py starts it.

Usage: PYTHON peer.py NAME VOTES.npy ANSWER.json
Only the fit is timed: the votes are brought into the peer's own form before. The answer has the
seconds of the fit and the rates; of the two classes the one that most votes agree with is positive.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np

ENOUGH = 5.0  # seconds, after which a fit is not repeated


def timed(fit):
    """Fit once or a few times; return the last fit and the least time."""
    best, spent = float("inf"), 0.0
    while spent < ENOUGH:
        start = time.perf_counter()
        found = fit()
        best = min(best, time.perf_counter() - start)
        spent += time.perf_counter() - start
    return found, best


def crowdkit(votes):
    """Crowd-kit's Dawid–Skene, with its own defaults."""
    import pandas as pd
    from crowdkit.aggregation import DawidSkene

    items, m = votes.shape
    table = pd.DataFrame(
        {
            "task": np.repeat(np.arange(items), m),
            "worker": np.tile(np.arange(m), items),
            "label": votes.ravel().astype(int),
        }
    )
    found, seconds = timed(lambda: DawidSkene().fit(table))
    errors = found.errors_
    rates = [[errors.loc[(i, label), label] for label in (1, 0)] for i in range(m)]
    return seconds, np.array(rates)


def snorkel(votes):
    """Snorkel's LabelModel, with its own defaults: classes equally frequent."""
    from snorkel.labeling.model import LabelModel

    def fit():
        model = LabelModel(cardinality=2, verbose=False)
        model.fit(votes.astype(int), seed=1, progress_bar=False)
        return model

    found, seconds = timed(fit)
    votes_given_class = found.get_conditional_probs()[:, 1:, :]
    return seconds, np.stack([votes_given_class[:, 1, 1], votes_given_class[:, 0, 0]], axis=1)


def judgepanel(votes):
    """Judgepanel's Dawid–Skene, with its own defaults."""
    from judgepanel import fit_dawid_skene
    from judgepanel.panel import Panel

    items, m = votes.shape
    panel = Panel(
        votes.astype(np.int64),
        tuple(map(str, range(items))),
        tuple(map(str, range(m))),
        ("no", "yes"),
    )
    found, seconds = timed(lambda: fit_dawid_skene(panel))
    return seconds, found.confusion[:, [1, 0], [1, 0]]


def stepmix(votes):
    """StepMix with two latent classes; the class with more positive votes is the positive one."""
    from stepmix.stepmix import StepMix

    def fit():
        model = StepMix(n_components=2, measurement="binary", random_state=1, progress_bar=0)
        return model.fit(votes.astype(float))

    found, seconds = timed(fit)
    positive_given = np.asarray(found.get_parameters()["measurement"]["pis"])
    positive_given = positive_given[np.argsort(positive_given.mean(axis=1))]
    return seconds, np.stack([positive_given[1], 1 - positive_given[0]], axis=1)


PEERS = {each.__name__: each for each in (crowdkit, snorkel, judgepanel, stepmix)}


def main() -> None:
    """Fit, and write the answer."""
    name, votes, answer = sys.argv[1:]
    warnings.simplefilter("ignore")
    seconds, rates = PEERS[name](np.load(votes))
    content = {"seconds": seconds, "sensitivity": rates[:, 0].tolist()}
    Path(answer).write_text(json.dumps(content | {"specificity": rates[:, 1].tolist()}))


if __name__ == "__main__":
    main()
