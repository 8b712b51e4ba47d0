"""Estimate: the answer, and what can be done with it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelfree._answers import Labeller
from labelfree._choice import Choice
from labelfree._dependence import Alarm
from labelfree._errors import FileError, NotIdentifiedError, OptionsError, listed
from labelfree._intervals import QUANTITIES, QUANTITIES_OF_CLASSES
from labelfree._labelling import Labelled
from labelfree._latent_class import Model
from labelfree._notebook import notebook_html
from labelfree._origin import Origin, plain_origin, revived_origin
from labelfree._panel import Panel
from labelfree._requirements import Check, Figures, check
from labelfree._saved import (
    FORMAT,
    VERSION,
    optional_array,
    plain_alarm,
    plain_choice,
    read_json,
    revived_alarm,
    revived_choice,
    write_json,
)
from labelfree._shown import RATES, RATES_OF_CLASSES, rows_of, text_of, with_interval
from labelfree._tally import Tally
from labelfree._verdict import Verdict
from labelfree._votes import Label

Array = NDArray[np.float64]


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
    level : float
        Of the intervals, where no other is asked for.
    missed : float
        By how much the class probabilities missed summing to one, where more than two classes were
        found two at a time; they have been made to.
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
    origin : Origin or None
        How it was computed: version, options, hash of the votes, the likelihood over the imbalance.
        None for an estimate saved by a labelfree that did not note it.
    sample : int or None
        Where the votes live in an engine and are of so many classifiers that patterns do not repeat: items
        of the seeded sample that the likelihood was climbed on. The moments are those of all items.
    """

    classifiers: tuple[str, ...]
    classes: tuple[Label, ...]
    method: str
    level: float
    items: float
    patterns: int
    votes: tuple[float, ...]
    notes: tuple[str, ...]
    converged: bool
    verdict: Verdict
    reading: Mapping[str, Any] = field(repr=False)
    _choice: Choice | None = field(repr=False)
    _alarm: Alarm | None = field(repr=False)
    _vector: Array | None = field(repr=False)
    missed: float = 0.0
    origin: Origin | None = field(default=None, repr=False)
    _seen: Tally | None = field(default=None, repr=False)  # votes to compare panels on; not saved
    sample: int | None = None

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
        """Pr(votes positive given positive) of every classifier, (m,); of two classes."""
        return np.asarray(self._of_two("sensitivity").confusion[:, 1, 1])

    @property
    def specificity(self) -> Array:
        """Pr(votes negative given negative) of every classifier, (m,); of two classes."""
        return np.asarray(self._of_two("specificity").confusion[:, 0, 0])

    @property
    def balanced_accuracy(self) -> Array:
        """Mean over the classes of Pr(votes so given the class), (m,); of two, of sensitivity and specificity."""
        return np.asarray(np.einsum("ikk->ik", self.confusion).mean(axis=1))

    @property
    def accuracy(self) -> Array:
        """Pr(votes for the true class) of every classifier, (m,)."""
        return np.asarray(np.einsum("ikk->ik", self.confusion) @ self.class_probabilities)

    @property
    def prevalence(self) -> float:
        """Pr(positive); of two classes."""
        return float(self._of_two("prevalence").class_probabilities[1])

    @property
    def imbalance(self) -> float:
        """Pr(positive) − Pr(negative); of two classes."""
        return 2.0 * self.prevalence - 1.0

    def interval(self, quantity: str, level: float | None = None) -> Array:
        """Interval of a rate, for sampling error under the model that was chosen.

        Parameters
        ----------
        quantity : {"sensitivity", "specificity", "balanced_accuracy", "prevalence", "imbalance"}
            Of more than two classes {"class_probabilities", "confusion", "accuracy", "balanced_accuracy"}.
        level : float, optional
            By default the estimate's own.

        Returns
        -------
        array (…, 2)
            Lower and upper ends, after the axes of the quantity itself.
        """
        level = self._level(level)
        known = self.quantities if len(self.classes) > 2 else (*self.quantities, "imbalance")
        if quantity not in known:
            raise OptionsError(f"There is no {quantity!r}; intervals are of {listed(known, 9)}.")
        spread = self._chosen().spread
        if spread is None:
            raise NotIdentifiedError(
                "There are no intervals: the votes do not determine every rate (their information matrix is singular); "
                "more items or classifiers would help."
                if len(self.classes) == 2
                else "There are no intervals: of more than two classes they come with method='map' and at most ten "
                "classes; choose these."
            )
        if quantity == "imbalance":
            return 2.0 * spread.ends("prevalence", level) - 1.0
        return spread.ends(quantity, level)

    @property
    def quantities(self) -> tuple[str, ...]:
        """What there are intervals and standard errors of."""
        return QUANTITIES if len(self.classes) == 2 else QUANTITIES_OF_CLASSES

    @property
    def rates(self) -> tuple[str, ...]:
        """The rates of one classifier that a table shows."""
        return RATES if len(self.classes) == 2 else RATES_OF_CLASSES

    def standard_error(self, quantity: str) -> Array | None:
        """Standard error of a rate or the prevalence, of sampling alone; None where there are no intervals.

        Parameters
        ----------
        quantity : {"sensitivity", "specificity", "balanced_accuracy", "prevalence"}
            Of more than two classes {"class_probabilities", "confusion", "accuracy", "balanced_accuracy"}.

        Returns
        -------
        array of the quantity's own shape, or None
        """
        if quantity not in self.quantities:
            raise OptionsError(
                f"There is no {quantity!r}; standard errors are of {listed(self.quantities)}."
            )
        spread = self._chosen().spread
        return None if spread is None else spread.standard_error(quantity)

    def _level(self, level: float | None) -> float:
        level = self.level if level is None else level
        if not 0 < level < 1:
            raise OptionsError(f"level= must lie between 0 and 1, both excluded, got {level!r}.")
        return level

    @property
    def dependence(self) -> str:
        """The model of the answer: "independent", "groups" (copies) or "difficulty" (hard items)."""
        return self._chosen().dependence

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """Classifiers that copy one another; empty under the other models."""
        return tuple(
            tuple(self.classifiers[place] for place in group) for group in self._chosen().groups
        )

    @property
    def effective_number(self) -> float:
        """As many independent classifiers of the same mean quality would tell as much."""
        return self._chosen().effective_number

    @property
    def alarm(self) -> Alarm:
        """The test whether the classifiers share errors beyond their quality."""
        self._chosen()
        return (
            self._alarm if self._alarm is not None else Alarm(False, 1.0, np.zeros((0, 0)), (0, 1))
        )

    @property
    def residuals(self) -> Array:
        """How much more each pair agrees than the rates explain, in standard errors, (m, m).

        Members of a group that copies have large ones: they agree beyond what is explained by their
        rates alone. Zero where nothing can be tested.
        """
        own = self._chosen().residuals
        return self.alarm.residuals if own is None else own

    def by_prevalence(self) -> list[dict[str, Any]]:
        """Every rate as a function of the prevalence that one would assume.

        Without labels the votes cannot vouch for the prevalence once classifiers share errors; this
        shows what hangs on it.

        Returns
        -------
        list of dict
            Keys: prevalence, classifier, sensitivity, specificity.
        """
        curve = self._chosen().curve
        if curve is None:
            raise OptionsError(self._only_of_two("by_prevalence()"))
        prevalences, sensitivity, specificity = curve
        return [
            {
                "prevalence": float(p),
                "classifier": name,
                "sensitivity": float(sensitivity[row, place]),
                "specificity": float(specificity[row, place]),
            }
            for row, p in enumerate(prevalences)
            for place, name in enumerate(self.classifiers)
        ]

    def _chosen(self) -> Choice:
        if self._choice is None:
            raise NotIdentifiedError(self._why_not())
        return self._choice

    def _why_not(self) -> str:
        return (
            f"These votes do not identify the rates: {self.verdict.reasons[0]} "
            f"What would help: {self.verdict.advice[0]}"
        )

    def _identified(self) -> Model:
        return self._chosen().model

    def _of_two(self, what: str) -> Model:
        if len(self.classes) > 2:
            raise OptionsError(self._only_of_two(what))
        return self._identified()

    def _only_of_two(self, what: str) -> str:
        return (
            f"{what} is of two classes, and these votes have {len(self.classes)}; see confusion, accuracy and "
            "class_probabilities."
        )

    # --- shown --------------------------------------------------------------------------------

    def table(self) -> list[dict[str, Any]]:
        """One plain dict a classifier, which any dataframe library takes as rows.

        Returns
        -------
        list of dict
            Keys: classifier, votes, then for each of sensitivity, specificity and balanced_accuracy (of
            more than two classes accuracy and balanced_accuracy) the estimate and its interval as
            ``…_low`` and ``…_high``, and note. A number is None where it is not identified.
        """
        return rows_of(
            self.classifiers,
            self.votes,
            self.notes,
            {rate: (self._known(rate), self._ends(rate)) for rate in self.rates},
        )

    def confusion_table(self) -> list[dict[str, Any]]:
        """One plain dict for each cell of each confusion matrix.

        Returns
        -------
        list of dict
            Keys: classifier, true, voted, probability: Pr(voted given true); and its interval, of more
            than two classes, as probability_low and probability_high, None where there is none.
        """
        cells = self.confusion
        ends = self._ends("confusion") if "confusion" in self.quantities else None
        return [
            {
                "classifier": name,
                "true": true,
                "voted": voted,
                "probability": float(cells[i, y, v]),
                "probability_low": None if ends is None else float(ends[i, y, v, 0]),
                "probability_high": None if ends is None else float(ends[i, y, v, 1]),
            }
            for i, name in enumerate(self.classifiers)
            for y, true in enumerate(self.classes)
            for v, voted in enumerate(self.classes)
        ]

    def _known(self, quantity: str) -> Array | None:
        """Look a rate up; None where it is not identified."""
        return None if self._choice is None else np.asarray(getattr(self, quantity))

    def _ends(self, quantity: str) -> Array | None:
        """Its interval, or None."""
        known = self._choice is not None and self._choice.spread is not None
        return self.interval(quantity) if known else None

    def check(self, requirements: str | Iterable[str], *, by: str = "interval") -> Check:
        """Hold the estimate against requirements, as ``labelfree check`` does.

        Parameters
        ----------
        requirements : str or sequence of str
            Such as ``"judge_a.sensitivity >= 0.8"``, ``"all.balanced_accuracy > 60%"``,
            ``"prevalence <= 0.3"``, ``"effective number >= 3"`` or ``"verdict != unidentified"``.
        by : {"interval", "estimate"}
            What is held against a bound: the end of the interval that is nearer to missing it, so
            that chance does not pass for a good classifier; or the estimate itself.

        Returns
        -------
        Check
            True where all are met; ``.outcomes`` has one entry a requirement. A requirement on a
            number that the votes do not tell is missed.
        """
        return check(requirements, self._figures(), by=by)

    def _figures(self) -> Figures:
        whole: dict[str, Any] = {}
        if len(self.classes) == 2:
            whole = {"prevalence": None, "prevalence_low": None, "prevalence_high": None}
            if self._choice is not None:
                share = self.shares()[0][1]
                whole = {name.replace("share", "prevalence"): end for name, end in share.items()}
        whole["effective_number"] = None if self._choice is None else self.effective_number
        whole["items"] = self.items
        return Figures(self.table(), whole, self.verdict.level)

    def __repr__(self) -> str:
        return text_of(
            self.table(),
            self._lines(),
            self.verdict,
            items=self.items,
            classes=self.classes,
            method=self.method,
            rates=self.rates,
        )

    def _repr_html_(self) -> str:
        return notebook_html(self)

    def _lines(self) -> list[str]:
        """What is not of one classifier alone: the prevalence, the effective number."""
        if self._choice is None:
            return []
        lines = [f"{name} {with_interval(share, 'share')}" for name, share in self.shares()]
        if self.sample is not None:
            lines.append(f"the likelihood is that of a sample of {self.sample:,} items")
        if self.dependence != "independent":
            lines.append(
                f"worth {self.effective_number:.1f} independent classifiers ({self.dependence})"
            )
        return lines

    def shares(self) -> list[tuple[str, dict[str, Any]]]:
        """The prevalence; of more than two classes, the probability of each, by its label.

        Returns
        -------
        list of (name, dict)
            Keys: share, share_low and share_high, which are None where there is no interval.
        """
        two = len(self.classes) == 2
        names = ["prevalence"] if two else [f"Pr({label!r})" for label in self.classes]
        values = self.class_probabilities[1:] if two else self.class_probabilities
        ends = self._ends("prevalence" if two else "class_probabilities")
        both = [(None, None)] * len(names) if ends is None else ends.reshape(-1, 2).tolist()
        return [
            (name, {"share": value, "share_low": low, "share_high": high})
            for name, value, (low, high) in zip(names, values.tolist(), both, strict=True)
        ]

    # --- consensus ----------------------------------------------------------------------------

    def label(
        self, votes: Any, *, rule: str = "posterior", loss: str = "zero-one", **reading: Any
    ) -> Any:
        """Label every item by the consensus of its votes.

        Parameters
        ----------
        votes : array, dataframe, mapping or path
            Votes of the same classifiers, on these or on new items.
        rule : {"posterior", "likelihood", "spectral", "majority"}
            The most probable class; the same without the prior odds (i-SML); the sign of Σ v_i f_i
            (SML); or one vote each. Ties go to the positive class, or the last of the best.
        loss : {"zero-one", "absolute"}
            What a wrong label costs: one; or, of classes that stand in order, as many as there are steps
            from it to the true class, so that the label is the median class.
        **reading
            How to read the votes, where that differs from how the estimate's were read.

        Returns
        -------
        same kind as `votes`
            An array gives labels in its own type; a wide table comes back with ``label`` and
            ``probability`` (of the positive class; of more than two classes, of the label) added; a long
            one gives a row an item: the item, ``label``, ``probability``. An item without any vote gets the prior's label, with a warning.
            A table that lives in an engine (Polars lazy, DuckDB, Ibis, Dask, Spark) stays there and
            stays lazy: nothing is read yet, so nothing is warned of, and a vote that is no label
            counts as missing.
        """
        return self._labeller().label(votes, rule, loss, reading)

    def label_file(
        self,
        votes: str | os.PathLike[str],
        output: str | os.PathLike[str],
        *,
        rule: str = "posterior",
        loss: str = "zero-one",
        **reading: Any,
    ) -> Labelled:
        """Label the items of a file into another file, as :meth:`label` does, however large it is.

        Parameters
        ----------
        votes : str or path
            A large file is read, labelled and written in pieces.
        output : str or path
            In the format that its ending names. A run that is stopped leaves no half file.
        rule, loss, **reading
            As for :meth:`label`.

        Returns
        -------
        Labelled
            ``.items``, ``.labels`` (how many items each label was given) and ``.unvoted``.

        Notes
        -----
        The items of a long file that is large come in no particular order.
        """
        return self._labeller().label_file(votes, output, rule, loss, reading)

    def probability(self, votes: Any, **reading: Any) -> Any:
        """Probability that each item is positive, given its votes; of more than two classes, that it is of each.

        Parameters
        ----------
        votes : array, dataframe, mapping or path
            As for :meth:`label`.
        **reading
            As for :meth:`label`.

        Returns
        -------
        same kind as `votes`
            (n,) array for an array, (n, K) of K > 2 classes; a table comes back with ``probability``
            added, or with a column ``probability_<label>`` for each of more than two classes.
        """
        return self._labeller().probability(votes, reading)

    def probability_interval(self, votes: Any, level: float | None = None, **reading: Any) -> Array:
        """Interval of each item's probability, for the sampling error of the rates behind it.

        Parameters
        ----------
        votes : array, dataframe, mapping or path
            As for :meth:`label`.
        level : float, optional
            By default the estimate's own.
        **reading
            As for :meth:`label`.

        Returns
        -------
        (n, 2) array
            In the order of the items.
        """
        return self._labeller().probability_interval(votes, self._level(level), reading)

    def best(self, size: int, votes: Any = None, **reading: Any) -> Panel:
        """Choose the few classifiers whose consensus is expected to be best.

        Parameters
        ----------
        size : int
            How many to keep.
        votes : array, dataframe, mapping or path, optional
            Votes to compare panels on; by default those that the estimate was made from, or a fixed
            part of these where their patterns are many. A loaded estimate has none, and needs them.
        **reading
            As for :meth:`label`.

        Returns
        -------
        Panel
            ``.classifiers``, and ``.balanced_accuracy``: what their consensus is expected to reach if
            each votes on every item. Votes that a classifier did not give are drawn from its rates.

        Notes
        -----
        A panel's consensus is graded as one more classifier would be, by the posterior that all votes
        together give. So errors that are shared count as far as the estimate has found them. Where
        there are more than 3,000 panels of that size, members are added and exchanged until no
        exchange helps.

        Examples
        --------
        >>> import labelfree as lf
        >>> drawn = lf.simulate.votes(
        ...     5000, sensitivity=[0.9, 0.6, 0.8, 0.85, 0.6], specificity=[0.9, 0.6, 0.85, 0.8, 0.6]
        ... )
        >>> lf.estimate(drawn.votes).best(3).classifiers
        ('classifier_1', 'classifier_3', 'classifier_4')
        """
        return self._labeller().best(size, self._seen, votes, reading)

    def next_items(self, votes: Any, count: int = 10, **reading: Any) -> list[dict[str, Any]]:
        """Rank the items by what one more vote on each is expected to tell.

        Parameters
        ----------
        votes : array, dataframe, mapping or path
            As for :meth:`label`.
        count : int
            How many items to return, at most.
        **reading
            As for :meth:`label`.

        Returns
        -------
        list of dict
            Keys: item, votes (how many it has), label, certainty (the probability that this label
            is right) and gain: the information on its class, in bits, that a vote by a classifier of
            average quality is expected to bring. The largest gain comes first; ties stand in the
            order of the items.
        """
        return self._labeller().next_items(votes, count, reading)

    def report(self, path: str | os.PathLike[str], *, votes: Any = None, **reading: Any) -> None:
        """Write a page that anyone can open: verdict, tables and charts in one HTML file (extra: report).

        Parameters
        ----------
        path : str or path
        votes : array, dataframe, mapping, path or Tally, optional
            Votes on which to compare the consensus with the majority vote, and to name the items to
            look at first. Without them, patterns of the votes that the estimate was made from.
        **reading
            As for :meth:`label`.

        Notes
        -----
        The page asks no network for anything. The same estimate and votes make the same page.
        """
        from labelfree.report import write_report

        write_report(self, path, self._labeller().movement(self._seen, votes, reading))

    def sql(self, dialect: str | None = None, *, label: Label = None) -> str:
        """Write :meth:`probability` as one SQL expression over columns named like the classifiers.

        Parameters
        ----------
        dialect : {"ansi", "postgres", "duckdb", "spark", "bigquery", "snowflake"}, optional
            Whose spelling of names, labels and numbers; by default that of standard SQL.
        label : label, optional
            Whose probability; by default the positive one of two. Of more classes one must be named.

        Returns
        -------
        str
            Computed in double precision; equal to :meth:`probability` to 1e-12. A vote that is no
            label, NULL among them, counts as missing.
        """
        return self._labeller().sql(dialect, label)

    def _labeller(self) -> Labeller:
        why_not = "" if self._choice is not None else self._why_not()
        return Labeller(
            self.classifiers, self.classes, self.reading, self._choice, self._vector, why_not
        )

    # --- kept ---------------------------------------------------------------------------------

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain numbers, strings and lists: what :meth:`save` and ``--json`` write.

        Returns
        -------
        dict
            The keys are documented on the page "JSON" of the documentation, and versioned.
        """
        choice = self._choice
        known = choice is not None
        two = known and len(self.classes) == 2
        determined = two and choice is not None and choice.spread is not None
        return {
            "format": FORMAT,
            "version": VERSION,
            "method": self.method,
            "level": self.level,
            "classes": list(self.classes),
            "items": self.items,
            "patterns": self.patterns,
            "sample": self.sample,
            "prevalence": self.prevalence if two else None,
            "prevalence_interval": self.interval("prevalence").tolist() if determined else None,
            "imbalance": self.imbalance if two else None,
            "converged": self.converged,
            "verdict": {
                "level": self.verdict.level,
                "reasons": list(self.verdict.reasons),
                "advice": list(self.verdict.advice),
            },
            "classifiers": self.table(),
            "dependence": self.dependence if known else None,
            "groups": [list(group) for group in self.groups] if known else [],
            "effective_number": self.effective_number if known else None,
            "alarm": None if self._alarm is None else plain_alarm(self._alarm),
            "class_probabilities": self.class_probabilities.tolist() if known else None,
            "class_probabilities_missed": self.missed,
            "confusion": self.confusion.tolist() if known else None,
            "model": None if choice is None else plain_choice(choice),
            "vector": None if self._vector is None else self._vector.tolist(),
            "reading": dict(self.reading),
            "origin": None if self.origin is None else plain_origin(self.origin),
        }

    def __eq__(self, other: object) -> bool:
        return self.as_dict() == other.as_dict() if isinstance(other, Estimate) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the estimate as JSON; :func:`load` reads it back exactly."""
        write_json(path, self.as_dict())


def load(path: str | os.PathLike[str]) -> Estimate:
    """Read an estimate that :meth:`Estimate.save` wrote.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    Estimate
    """
    kept = read_json(path)
    try:
        return _revived(kept)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise FileError(
            f"{path} is damaged: {type(error).__name__} at {error}; save the estimate again."
        ) from None


def _revived(kept: dict[str, Any]) -> Estimate:
    rows, verdict = kept["classifiers"], kept["verdict"]
    choice = None if kept["model"] is None else revived_choice(kept["model"])
    classes = len(kept["classes"])
    if choice is not None and choice.model.confusion.shape != (len(rows), classes, classes):
        raise ValueError("confusion")
    return Estimate(
        classifiers=tuple(row["classifier"] for row in rows),
        classes=tuple(kept["classes"]),
        method=kept["method"],
        level=kept["level"],
        items=kept["items"],
        patterns=kept["patterns"],
        sample=kept.get("sample"),
        votes=tuple(row["votes"] for row in rows),
        notes=tuple(row["note"] for row in rows),
        converged=kept["converged"],
        verdict=Verdict(verdict["level"], tuple(verdict["reasons"]), tuple(verdict["advice"])),
        reading=kept["reading"],
        _choice=choice,
        _alarm=None if kept["alarm"] is None else revived_alarm(kept["alarm"]),
        _vector=optional_array(kept["vector"]),
        missed=float(kept.get("class_probabilities_missed", 0.0)),
        origin=revived_origin(kept.get("origin")),
    )
