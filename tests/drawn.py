"""Votes of more than two classes, drawn from known confusion matrices."""

import numpy as np
import polars as pl


def votes_of_classes(labels, *, items=1500, classifiers=6, right=(0.6, 0.9), seed=0):
    """A table of votes with a column called item, and the true classes.

    A classifier calls each class right by a chance drawn from `right`; its other votes spread evenly.
    """
    draw = np.random.default_rng(seed)
    k = len(labels)
    truth = draw.integers(0, k, items)
    columns = {}
    for number in range(1, classifiers + 1):
        chance = draw.uniform(*right, k)[truth]
        other = (truth + draw.integers(1, k, items)) % k
        votes = np.where(draw.random(items) < chance, truth, other)
        columns[f"classifier_{number}"] = [labels[vote] for vote in votes]
    return pl.DataFrame({"item": [f"item_{i}" for i in range(items)], **columns}), truth
