"""Which items to ask one more vote on: those where it would tell most.

The worth of a vote is the information, in bits, that it is expected to bring on the item's class: the
entropy of what a new classifier would say, less what remains of it where the class is known. The new
classifier is taken to be as good as those at hand are on average.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelfree._consensus import Rule, each_item, probabilities, winners
from labelfree._latent_class import Model
from labelfree._products import Block
from labelfree._votes import Votes

Array = NDArray[np.float64]


def next_items(votes: Votes, rule: Rule, model: Model, count: int) -> list[dict[str, Any]]:
    """Rank items by what one more vote is expected to tell.

    Parameters
    ----------
    votes : Votes
    rule : Rule
        Of the posterior, for the columns of these votes.
    model : Model
        Whose mean confusion a new classifier is taken to have.
    count : int
        Items to return, at most.

    Returns
    -------
    list of dict
        Keys: item, votes, label, certainty, gain; the largest gain first, ties in the items' order.
    """
    typical = model.confusion.mean(axis=0)

    def work(block: Block) -> Array:
        scores = rule.scores(block)
        shares = probabilities(scores)
        best = winners(scores)
        cast = block.codes >= 0 if isinstance(block.codes, np.ndarray) else block.codes != 0
        return np.stack(
            [
                information_of_a_vote(shares, typical),
                shares[np.arange(len(best)), best],
                best,
                np.asarray(cast.sum(axis=1)),
            ],
            axis=1,
        )

    found = each_item(votes, work)
    # Gains that differ by rounding alone are equal, so that the order of the sums does not decide.
    order = np.argsort(-found[:, 0].round(12), kind="stable")[:count]
    names, labels = votes.names_of_items(), votes.label_array().tolist()
    return [
        {
            "item": names[place],
            "votes": int(cast),
            "label": labels[int(best)],
            "certainty": float(certainty),
            "gain": float(gain),
        }
        for place, (gain, certainty, best, cast) in zip(order.tolist(), found[order], strict=True)
    ]


def information_of_a_vote(shares: Array, confusion: Array) -> Array:
    """Mutual information, in bits, of an item's class and one more vote.

    Parameters
    ----------
    shares : (P, K) array
        Probabilities of the classes.
    confusion : (K, K) array
        [true class, voted class] of whoever votes.

    Returns
    -------
    (P,) array
        At least zero, and at most the entropy of the class.
    """
    return np.maximum(_entropy(shares @ confusion) - shares @ _entropy(confusion), 0.0)


def _entropy(shares: Array) -> Array:
    logs = np.log2(shares, out=np.zeros_like(shares), where=shares > 0)
    return np.asarray(-(shares * logs).sum(axis=-1))
