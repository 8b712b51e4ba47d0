"""K classes by two at a time: class k against the rest, or the classes above k against those below (JNK section 5).

Recoded so, the votes are those of two classes, and the binary machinery finds how common the
one side is, and each classifier's two rates. No moment of these splits tells the rest of the
confusion matrices (JNK Theorem 2); that is for the likelihood.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labelfree._imbalance import likelihood_imbalance, tensor_imbalance
from labelfree._latent_class import Model
from labelfree._moments import Moments, moments
from labelfree._products import Blocks
from labelfree._rank_one import RankOne, rank_one
from labelfree._rates import clipped, rates, smallest_rate
from labelfree._tally import Tally

Array = NDArray[np.float64]

RAREST = 1e-4  # share of the items that a class has at least, where there are items enough
LEAST_LIVE = 3  # classifiers whose v is not zero, without which a split tells nothing


@dataclass(frozen=True)
class Split:
    """Two classes, each standing for some of the K.

    Attributes
    ----------
    share : float
        Of the items whose class is on the upper side.
    upper, lower : (m,) arrays
        Chance that a classifier votes for the upper side where it is right, and for the lower where that is.
    identified : bool
        Whether the votes told; otherwise the numbers are the start's.
    converged : bool
    """

    share: float
    upper: Array
    lower: Array
    identified: bool
    converged: bool

    def model(self) -> Model:
        """Model of the two classes."""
        return Model.binary(2.0 * self.share - 1.0, self.upper, self.lower)


@dataclass(frozen=True)
class OneVsRest:
    """What the splits say together.

    Attributes
    ----------
    class_probabilities : (K,) array
        Normalised.
    diagonal : (m, K) array
        Chance of the right vote given each class.
    missed : float
        Sum of the class probabilities as they were found, less one.
    converged : bool
    """

    class_probabilities: Array
    diagonal: Array
    missed: float
    converged: bool


def recoded(tally: Tally, upper: Iterable[int]) -> Tally:
    """Return the tally of two classes, the upper of which stands for these codes."""
    above = set(upper)
    stands_for = {label: place in above for place, label in enumerate(tally.classes)}
    return tally._arranged(tally.classifiers, (False, True), stands_for)


def split_model(model: Model, upper: Iterable[int]) -> Split:
    """Merge the classes of a model to two, each class with the weight of its items."""
    above = np.isin(np.arange(len(model.class_probabilities)), list(upper))
    shares = np.maximum(model.class_probabilities, 1e-12)
    for_above = model.confusion[:, :, above].sum(axis=2)
    within = [shares * side / (shares * side).sum() for side in (above, ~above)]
    share = float(shares[above].sum() / shares.sum())
    return Split(share, for_above @ within[0], 1.0 - for_above @ within[1], False, True)


def split(blocks: Blocks, start: Split, method: str, *, rough: bool = False) -> Split:
    """Estimate two classes by the means, v and the imbalance.

    Parameters
    ----------
    blocks : Blocks
        Of the recoded tally.
    start : Split
        Stands where the votes tell nothing: a side that nobody voted for, or fewer than three
        classifiers that vote unlike chance.
    method : {"likelihood", "tensor"}
    rough : bool
        Good enough to start a search from.

    Returns
    -------
    Split
    """
    seen = moments(blocks)
    found = _signed(rank_one(seen), seen)
    if (found.vector != 0).sum() < LEAST_LIVE:
        return start
    size = blocks.tally.sample_size
    end = 1.0 - 2.0 * max(RAREST, 1.5 / size)
    if method == "tensor":
        imbalance = tensor_imbalance(blocks, seen, found.vector, end=end)
    else:
        imbalance = likelihood_imbalance(blocks, seen, found.vector, rough=rough, end=end)
    upper, lower = rates(seen.mean, found.vector, imbalance.value)
    smallest, voted = smallest_rate(size), seen.votes > 0
    return Split(
        (1.0 + imbalance.value) / 2.0,
        np.where(voted, clipped(upper, smallest), start.upper),
        np.where(voted, clipped(lower, smallest), start.lower),
        identified=True,
        converged=found.converged and imbalance.converged,
    )


def _signed(found: RankOne, seen: Moments) -> RankOne:
    """Most votes, not most classifiers, are taken to be better than chance: few votes leave a sign to chance."""
    side = float(np.sign(found.vector) @ seen.votes)
    return found.turned() if side < -1e-9 * float(seen.votes.sum()) else found


def one_vs_rest(blocks: Blocks, start: Model, method: str, *, rough: bool = False) -> OneVsRest:
    """Class probabilities and diagonals, each class against the rest (JNK section 5).

    Parameters
    ----------
    blocks : Blocks
    start : Model
        Stands for classes on which the votes tell nothing.
    method : {"likelihood", "tensor"}
    rough : bool
        Good enough to start a search from.

    Returns
    -------
    OneVsRest

    Notes
    -----
    Two classes are one split, and miss nothing.
    """
    classes = len(blocks.tally.classes)
    if classes == 2:
        only = split(blocks, split_model(start, [1]), method, rough=rough)
        shares, diagonal = np.array([1.0 - only.share, only.share]), [only.lower, only.upper]
        return OneVsRest(shares, np.stack(diagonal, axis=1), 0.0, only.converged)
    found = [
        split(Blocks(recoded(blocks.tally, [k])), split_model(start, [k]), method, rough=rough)
        for k in range(classes)
    ]
    shares = np.array([each.share for each in found])
    return OneVsRest(
        shares / shares.sum(),
        np.stack([each.upper for each in found], axis=1),
        float(shares.sum() - 1.0),
        all(each.converged for each in found),
    )
