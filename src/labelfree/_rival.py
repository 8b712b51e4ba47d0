"""Rival: what another published method found, and the labels that follow from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelfree._again import READING, read_again
from labelfree._consensus import Rule, answer, given_back
from labelfree._errors import NotIdentifiedError, counted, warn
from labelfree._tally import Tally
from labelfree._votes import Label

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Rival:
    """What one of the methods found.

    Attributes
    ----------
    method : str
        The name of the function.
    classifiers : tuple of str
    classes : tuple of labels
        Of two, the last is positive.
    class_probabilities : (K,) array, or None
        Pr(class); None where the method does not estimate it.
    confusion : (m, K, K) array, or None
        Pr(vote given true class) as [classifier, true class, voted class]; None where the method
        does not estimate it.
    converged : bool
        Whether every search on the way settled.
    """

    method: str
    classifiers: tuple[str, ...]
    classes: tuple[Label, ...]
    class_probabilities: Array | None
    confusion: Array | None
    converged: bool
    reading: Mapping[str, Any] = field(repr=False)
    _rule: Rule = field(repr=False)

    def label(self, votes: Any, **reading: Any) -> Any:
        """Label every item by the method's own rule, which is linear in the votes.

        Parameters
        ----------
        votes : array, dataframe, mapping or path
            Votes of the same classifiers, on these or on new items.
        **reading
            How to read the votes, where that differs from how the first were read.

        Returns
        -------
        same kind as `votes`
            As for :meth:`labelfree.Estimate.label`; ``probability`` is added to tables where the
            method has one. A tie goes to the last class.
        """
        return self._answer(votes, reading, label=True)

    def probability(self, votes: Any, **reading: Any) -> Any:
        """Probability of the positive class, or of every class, given an item's votes.

        Parameters
        ----------
        votes : array, dataframe, mapping or path
            As for :meth:`label`.
        **reading
            As for :meth:`label`.

        Returns
        -------
        same kind as `votes`
            (n,) array for an array of two classes, (n, K) for more; a table comes back with
            ``probability`` added, or a column for each of more than two classes.
        """
        if self.confusion is None:
            raise NotIdentifiedError(
                f"{self.method} gives labels but no probabilities, as it estimates no rates; ask for label(votes)."
            )
        return self._answer(votes, reading, label=False)

    def _answer(self, votes: Any, reading: Mapping[str, Any], *, label: bool) -> Any:
        checked, order = read_again(
            votes,
            classifiers=self.classifiers,
            classes=self.classes,
            reading=self.reading,
            given=reading,
        )
        beside = self.confusion is not None and checked.keeps_table
        answers = answer(
            self._rule.of(order),
            checked,
            label=label,
            probability=beside or not label,
            of_label=label,
        )
        if answers.unvoted:
            warn(
                f"{counted(answers.unvoted, 'item')} had no vote at all; the answer there is the same for all of them."
            )
        return given_back(answers, checked)


def rival_of(
    method: str,
    found: Tally,
    reading: Mapping[str, Any],
    rule: Rule,
    *,
    class_probabilities: Array | None = None,
    confusion: Array | None = None,
    converged: bool = True,
) -> Rival:
    """Put together what a method found in a tally, and how its votes had been read."""
    kept = {
        option: value
        for option, value in reading.items()
        if option in READING and option != "classifiers" and value is not None
    }
    return Rival(
        method,
        found.classifiers,
        found.classes,
        class_probabilities,
        confusion,
        converged,
        kept,
        rule,
    )
