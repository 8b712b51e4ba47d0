"""Estimate: the answer, and what can be done with it."""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelfree._consensus import (
    Rule,
    answer,
    likelihood_rule,
    majority_rule,
    posterior_rule,
    spectral_rule,
    sql,
)
from labelfree._errors import (
    FileError,
    LabelfreeWarning,
    NotIdentifiedError,
    OptionsError,
    counted,
    listed,
)
from labelfree._files import write_whole
from labelfree._latent_class import Model
from labelfree._verdict import Verdict
from labelfree._votes import Label, Votes, read_votes

Array = NDArray[np.float64]

FORMAT = "labelfree.estimate"
VERSION = 1
RULES = ("posterior", "likelihood", "spectral", "majority")
SHOWN_CLASSIFIERS = 20


@dataclass(frozen=True, eq=False)
class Estimate:
    """Graded classifiers, from :func:`estimate` or :func:`load`.

    Where the votes hold no signal (``verdict.level == "unidentified"``) every number below raises
    :class:`NotIdentifiedError`; no number is dressed up as an answer.

    Attributes
    ----------
    classifiers : tuple of str
        In the order of the votes.
    classes : tuple of labels
        Of two, the last is positive.
    method : {"map", "likelihood", "tensor"}
    items : int
        Items that were counted.
    patterns : int
        Distinct vote patterns among them.
    votes : tuple of int
        Votes that each classifier gave.
    notes : tuple of str
        For each classifier "", "constant" (one label only) or "no votes" (its rates are the prior's).
    converged : bool
        Whether the search for the estimate settled.
    verdict : Verdict
        ``.level`` in {"sound", "caution", "unidentified"}, ``.reasons`` and ``.advice``: sentences.
    """

    classifiers: tuple[str, ...]
    classes: tuple[Label, ...]
    method: str
    items: float
    patterns: int
    votes: tuple[float, ...]
    notes: tuple[str, ...]
    converged: bool
    verdict: Verdict
    reading: Mapping[str, Any] = field(repr=False)
    _model: Model | None = field(repr=False)
    _vector: Array | None = field(repr=False)

    # --- numbers ------------------------------------------------------------------------------

    @property
    def confusion(self) -> Array:
        """Pr(vote given true class) as (m, K, K): [classifier, true class, voted class]."""
        return self._identified().confusion

    @property
    def class_probabilities(self) -> Array:
        """Pr(class) of every class, (K,)."""
        return self._identified().class_probabilities

    @property
    def sensitivity(self) -> Array:
        """Pr(votes positive given positive) of every classifier, (m,)."""
        return np.asarray(self.confusion[:, 1, 1])

    @property
    def specificity(self) -> Array:
        """Pr(votes negative given negative) of every classifier, (m,)."""
        return np.asarray(self.confusion[:, 0, 0])

    @property
    def balanced_accuracy(self) -> Array:
        """Mean of sensitivity and specificity, (m,)."""
        return 0.5 * (self.sensitivity + self.specificity)

    @property
    def prevalence(self) -> float:
        """Pr(positive)."""
        return float(self.class_probabilities[1])

    @property
    def imbalance(self) -> float:
        """Pr(positive) − Pr(negative)."""
        return 2.0 * self.prevalence - 1.0

    def _identified(self) -> Model:
        if self._model is None:
            raise NotIdentifiedError(
                f"These votes do not identify the rates: {self.verdict.reasons[0]} What would help: {self.verdict.advice[0]}"
            )
        return self._model

    # --- shown --------------------------------------------------------------------------------

    def table(self) -> list[dict[str, Any]]:
        """One plain dict a classifier, which any dataframe library takes as rows.

        Returns
        -------
        list of dict
            Keys: classifier, votes, sensitivity, specificity, balanced_accuracy, note. The numbers
            are None where the rates are not identified.
        """
        rates = [[None] * len(self.classifiers)] * 3
        if self._model is not None:
            rates = [
                each.tolist()
                for each in (self.sensitivity, self.specificity, self.balanced_accuracy)
            ]
        rows = zip(self.classifiers, self.votes, *rates, self.notes, strict=True)
        keys = ("classifier", "votes", "sensitivity", "specificity", "balanced_accuracy", "note")
        return [dict(zip(keys, row, strict=True)) for row in rows]

    def __repr__(self) -> str:
        rows = self.table()
        shown = rows[:SHOWN_CLASSIFIERS]
        width = max(10, *(len(row["classifier"]) for row in shown))
        lines = [
            f"{counted(len(rows), 'classifier')} on {_number(self.items)} items, "
            f"{self.classes[1]!r} positive, method {self.method!r}",
            f"{'classifier':<{width}}  sensitivity  specificity  balanced",
        ]
        for row in shown:
            figures = (row["sensitivity"], row["specificity"], row["balanced_accuracy"])
            texts = ["–" if figure is None else f"{figure:.3f}" for figure in figures]
            lines.append(
                f"{row['classifier']:<{width}}  {texts[0]:>11}  {texts[1]:>11}  {texts[2]:>8}  {row['note']}".rstrip()
            )
        if len(rows) > len(shown):
            lines.append(f"… and {len(rows) - len(shown)} more; see .table()")
        if self._model is not None:
            lines.append(f"prevalence {self.prevalence:.3f}")
        lines.append(f"verdict: {self.verdict.level}")
        lines.extend(f"  - {reason}" for reason in self.verdict.reasons)
        return "\n".join(lines)

    # --- consensus ----------------------------------------------------------------------------

    def label(self, votes: Any, *, rule: str = "posterior", **reading: Any) -> Any:
        """Label every item by the consensus of its votes.

        Parameters
        ----------
        votes : array, dataframe, mapping or path
            Votes of the same classifiers, on these or on new items.
        rule : {"posterior", "likelihood", "spectral", "majority"}
            The most probable class; the same without the prior odds (i-SML); the sign of Σ v_i f_i
            (SML); or one vote each. Ties go to the positive class.
        **reading
            How to read the votes, where that differs from how the estimate's were read.

        Returns
        -------
        same kind as `votes`
            An array gives labels in its own type; a wide table comes back with ``label`` and
            ``probability`` (of the positive class) added; a long one gives a row an item: the item,
            ``label``, ``probability``. An item without any vote gets the prior's label, with a warning.
        """
        checked, rule_here = self._prepared(votes, rule, reading)
        table = checked.keeps_table
        answers = answer(rule_here, checked, label=True, probability=table)
        self._warn_unvoted(answers.unvoted)
        return checked.give_back(answers.labels, answers.probabilities)

    def probability(self, votes: Any, **reading: Any) -> Any:
        """Probability that each item is positive, given its votes.

        Parameters
        ----------
        votes : array, dataframe, mapping or path
            As for :meth:`label`.
        **reading
            As for :meth:`label`.

        Returns
        -------
        same kind as `votes`
            (n,) array for an array; a table comes back with ``probability`` added.
        """
        checked, rule_here = self._prepared(votes, "posterior", reading)
        answers = answer(rule_here, checked, label=False, probability=True)
        self._warn_unvoted(answers.unvoted)
        return checked.give_back(None, answers.probabilities)

    def sql(self) -> str:
        """Write :meth:`probability` as one SQL expression over columns named like the classifiers."""
        return sql(posterior_rule(self._identified()), self.classifiers, self.classes)

    def _prepared(self, votes: Any, rule: str, reading: Mapping[str, Any]) -> tuple[Votes, Rule]:
        options = {**self.reading, **reading}
        checked = read_votes(
            votes, **{"classes": self.classes, "classifiers": self.classifiers, **options}
        )
        unknown = [name for name in checked.classifiers if name not in self.classifiers]
        if unknown:
            raise OptionsError(
                f"The estimate knows nothing of classifier {listed(unknown)}; it was made from {listed(self.classifiers)}."
            )
        own = self._rule(rule)
        order = [self.classifiers.index(name) for name in checked.classifiers]
        return checked, Rule(own.intercept, own.weights[order])

    def _rule(self, name: str) -> Rule:
        if name == "majority":
            return majority_rule(len(self.classifiers), len(self.classes))
        if name not in RULES:
            raise OptionsError(f"rule= must be one of {listed(RULES)}, got {name!r}.")
        model = self._identified()
        if name == "spectral":
            assert self._vector is not None
            return spectral_rule(self._vector)
        return posterior_rule(model) if name == "posterior" else likelihood_rule(model)

    def _warn_unvoted(self, unvoted: int) -> None:
        if unvoted:
            warnings.warn(
                f"{counted(unvoted, 'item')} had no vote at all; the label there is the more frequent class, "
                "and the probability the prevalence.",
                LabelfreeWarning,
                stacklevel=3,
            )

    # --- kept ---------------------------------------------------------------------------------

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain numbers, strings and lists: what :meth:`save` and ``--json`` write.

        Returns
        -------
        dict
            The keys are documented on the page "JSON" of the documentation, and versioned.
        """
        identified = self._model is not None
        return {
            "format": FORMAT,
            "version": VERSION,
            "method": self.method,
            "classes": list(self.classes),
            "items": self.items,
            "patterns": self.patterns,
            "prevalence": self.prevalence if identified else None,
            "imbalance": self.imbalance if identified else None,
            "converged": self.converged,
            "verdict": {
                "level": self.verdict.level,
                "reasons": list(self.verdict.reasons),
                "advice": list(self.verdict.advice),
            },
            "classifiers": self.table(),
            "class_probabilities": self._model.class_probabilities.tolist()
            if self._model
            else None,
            "confusion": self._model.confusion.tolist() if self._model else None,
            "vector": None if self._vector is None else self._vector.tolist(),
            "reading": dict(self.reading),
        }

    def __eq__(self, other: object) -> bool:
        return self.as_dict() == other.as_dict() if isinstance(other, Estimate) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the estimate as JSON; :func:`load` reads it back exactly."""
        try:
            text = json.dumps(self.as_dict(), indent=1, allow_nan=False)
        except TypeError as error:
            raise FileError(
                f"The estimate cannot be written as JSON: {error}; use labels that are text or numbers."
            ) from None
        write_whole(path, lambda target: _write_text(target, text))


def _write_text(path: Path, text: str) -> None:
    path.write_text(text + "\n", encoding="utf-8")


def _number(value: float) -> str:
    return f"{int(value):,}" if value == math.floor(value) else f"{value:g}"


def load(path: str | os.PathLike[str]) -> Estimate:
    """Read an estimate that :meth:`Estimate.save` wrote.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    Estimate
    """
    try:
        kept = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}.") from None
    except ValueError:
        raise FileError(f"{path} is not JSON; expected a file written by Estimate.save.") from None
    if not isinstance(kept, dict) or kept.get("format") != FORMAT:
        raise FileError(f"{path} is not an estimate; expected a file written by Estimate.save.")
    if kept.get("version") != VERSION:
        raise FileError(
            f"{path} has version {kept.get('version')} of the format; this labelfree reads version {VERSION}."
        )
    try:
        return _revived(kept)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise FileError(
            f"{path} is damaged: {type(error).__name__} at {error}; save the estimate again."
        ) from None


def _revived(kept: dict[str, Any]) -> Estimate:
    rows = kept["classifiers"]
    model = None
    if kept["confusion"] is not None:
        model = Model(
            np.array(kept["class_probabilities"], dtype=float),
            np.array(kept["confusion"], dtype=float),
        )
        classes = len(kept["classes"])
        if (
            model.confusion.shape != (len(rows), classes, classes)
            or not np.isfinite(model.confusion).all()
        ):
            raise ValueError("confusion")
    verdict = kept["verdict"]
    return Estimate(
        classifiers=tuple(row["classifier"] for row in rows),
        classes=tuple(kept["classes"]),
        method=kept["method"],
        items=kept["items"],
        patterns=kept["patterns"],
        votes=tuple(row["votes"] for row in rows),
        notes=tuple(row["note"] for row in rows),
        converged=kept["converged"],
        verdict=Verdict(verdict["level"], tuple(verdict["reasons"]), tuple(verdict["advice"])),
        reading=kept["reading"],
        _model=model,
        _vector=None if kept["vector"] is None else np.array(kept["vector"], dtype=float),
    )
