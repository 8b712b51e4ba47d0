"""Votes -> labels, probabilities and their intervals, by the rules of an estimate; the same as SQL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelfree._again import counted_again, engine_again, read_again
from labelfree._choice import Choice
from labelfree._consensus import (
    Rule,
    answer,
    each_item,
    given_back,
    likelihood_rule,
    majority_rule,
    spectral_rule,
    sql,
)
from labelfree._engines import EngineTable
from labelfree._errors import NotIdentifiedError, OptionsError, counted, listed, warn
from labelfree._expressions import answered
from labelfree._labelling import Labelled, label_file
from labelfree._labels import fitted, kind_of
from labelfree._large_files import Named
from labelfree._movement import Movement, movement_of_tally, movement_of_votes
from labelfree._next_items import next_items
from labelfree._panel import Panel, best_panel
from labelfree._tally import Tally, settled
from labelfree._votes import Label, Votes

Array = NDArray[np.float64]

RULES = ("posterior", "likelihood", "spectral", "majority")
LOSSES = ("zero-one", "absolute")


@dataclass(frozen=True)
class Labeller:
    """What an estimate labels votes by.

    Attributes
    ----------
    classifiers : tuple of str
    classes : tuple of labels
    reading : mapping
        The options by which the estimate's own votes were read.
    choice : Choice or None
    vector : array or None
        The rank-one vector, where there is one.
    why_not : str
        Where there is no choice: the sentence that says so.
    """

    classifiers: tuple[str, ...]
    classes: tuple[Label, ...]
    reading: Mapping[str, Any]
    choice: Choice | None
    vector: Array | None
    why_not: str

    def label(self, votes: Any, rule: str, loss: str, reading: Mapping[str, Any]) -> Any:
        """Label every item by a rule; a table takes the probability along."""
        labels, unvoted = self._labelled(votes, rule, loss, reading)
        _warn_unvoted(unvoted)
        return labels

    def label_file(
        self, votes: Named, output: Named, rule: str, loss: str, reading: Mapping[str, Any]
    ) -> Labelled:
        """Label the items of a file into another file."""
        read = {**self.reading, **reading}
        done = label_file(
            votes, output, lambda part: self._labelled(part, rule, loss, reading), read
        )
        _warn_unvoted(done.unvoted)
        return done

    def _labelled(
        self, votes: Any, rule: str, loss: str, reading: Mapping[str, Any]
    ) -> tuple[Any, int]:
        """Labels, and the number of items without any vote."""
        label_by = self._label_rule(rule, loss)
        # The probability is the posterior's, whatever rule labels.
        shown = None if self.choice is None else self.choice.rule
        if shown is not None and rule == "posterior":
            shown = label_by
        there = self._engine(votes, reading)
        if there is not None:
            table, names, places = there
            by = label_by.of(places)
            beside = None if shown is None else by if shown is label_by else shown.of(places)
            return answered(table, names, self.classes, by, beside), 0  # nothing is read yet
        checked, order = self._again(votes, reading)
        answers = answer(
            label_by.of(order),
            checked,
            probability=shown is not None and checked.keeps_table,
            probability_by=None if shown is None or shown is label_by else shown.of(order),
            of_label=True,
        )
        return given_back(answers, checked), answers.unvoted

    def probability(self, votes: Any, reading: Mapping[str, Any]) -> Any:
        """Probability of the positive class of every item; of more classes, of each."""
        there = self._engine(votes, reading)
        if there is not None:
            table, names, places = there
            return answered(table, names, self.classes, None, self._rule("posterior").of(places))
        checked, rule_here = self._prepared(votes, "posterior", reading)
        answers = answer(rule_here, checked, label=False, probability=True)
        _warn_unvoted(answers.unvoted)
        return given_back(answers, checked)

    def probability_interval(self, votes: Any, level: float, reading: Mapping[str, Any]) -> Array:
        """Interval of each item's probability, (n, 2)."""
        from scipy.special import expit, ndtri

        choice = self._chosen()
        if len(self.classes) > 2:
            raise OptionsError(
                f"Intervals of single items are of two classes, and these votes have {len(self.classes)}; "
                "ask for probability(votes)."
            )
        if choice.doubt is None:
            raise NotIdentifiedError(
                "There are no intervals of single items: the votes do not determine every rate (their information "
                "matrix is singular), or the estimate was saved with too many classifiers to keep them."
            )
        checked, rule = self._prepared(votes, "posterior", reading)
        terms = choice.rule.terms_of(self._order(checked))
        doubt = choice.doubt[np.ix_(terms, terms)]
        reach = ndtri(0.5 + level / 2)

        def ends(block: Any) -> Array:
            scores, taken = rule.scores(block), rule.terms(block)
            odds = scores[:, 1] - scores[:, 0]
            variance = ((taken @ doubt) * taken).sum(axis=1)
            error = reach * np.sqrt(np.maximum(variance, 0.0))
            return np.asarray(expit(np.stack([odds - error, odds + error], axis=1)))

        return each_item(checked, ends)

    def best(self, size: Any, seen: Tally | None, votes: Any, reading: Mapping[str, Any]) -> Panel:
        """Choose the best panel of `size` classifiers, on votes that were seen or on these."""
        choice = self._chosen()
        order = list(range(len(self.classifiers)))
        if votes is not None:
            checked, order = self._again(votes, reading)
            seen = settled(checked)[1]
        if seen is None:
            raise OptionsError(
                "best() compares panels on votes, and an estimate that was saved holds none; give them: best(k, votes)."
            )
        if not isinstance(size, int | np.integer) or not 1 <= size <= len(order):
            raise OptionsError(
                f"best() takes a whole number of classifiers from 1 to {len(order)}, got {size!r}."
            )
        model = replace(choice.model, confusion=choice.model.confusion[order])
        return best_panel(seen, choice.rule.of(order), model, int(size))

    def next_items(
        self, votes: Any, count: Any, reading: Mapping[str, Any]
    ) -> list[dict[str, Any]]:
        """Rank items by what one more vote is expected to tell."""
        choice = self._chosen()
        if not isinstance(count, int | np.integer) or count < 1:
            raise OptionsError(f"count= must be a whole number of at least 1, got {count!r}.")
        checked, order = self._again(votes, reading)
        return next_items(checked, choice.rule.of(order), choice.model, int(count))

    def movement(
        self, seen: Tally | None, votes: Any, reading: Mapping[str, Any]
    ) -> Movement | None:
        """Compare the consensus with the majority, on these votes or on those that were seen."""
        if self.choice is None:
            return None
        if votes is None:
            rule = self.choice.rule
            return None if seen is None else movement_of_tally(seen, rule)
        found = counted_again(
            votes,
            classifiers=self.classifiers,
            classes=self.classes,
            reading=self.reading,
            given=reading,
        )
        if found is not None:
            return movement_of_tally(found[0], self.choice.rule.of(found[1]))
        checked, order = self._again(votes, reading)
        return movement_of_votes(checked, self.choice.rule.of(order))

    def sql(self, dialect: str | None, label: Label) -> str:
        """Write the posterior rule as SQL: the probability of one class."""
        rule, known = self._chosen().rule, [fitted(label, kind_of(self.classes))]
        if label is None and len(self.classes) == 2:
            known = [self.classes[-1]]
        if known[0] not in self.classes:
            raise OptionsError(
                f"label= must name the class whose probability is wanted, one of {listed(map(repr, self.classes))}, "
                f"got {label!r}."
            )
        code = self.classes.index(known[0])
        return sql(rule, self.classifiers, self.classes, dialect, code)

    def _chosen(self) -> Choice:
        if self.choice is None:
            raise NotIdentifiedError(self.why_not)
        return self.choice

    def _engine(
        self, votes: Any, reading: Mapping[str, Any]
    ) -> tuple[EngineTable, tuple[str, ...], list[int]] | None:
        """Take votes that live in an engine, and whose answers stay there; None of any others."""
        return engine_again(
            votes,
            classifiers=self.classifiers,
            classes=self.classes,
            reading=self.reading,
            given=reading,
        )

    def _prepared(self, votes: Any, rule: str, reading: Mapping[str, Any]) -> tuple[Votes, Rule]:
        checked, order = self._again(votes, reading)
        return checked, self._rule(rule).of(order)

    def _again(self, votes: Any, reading: Mapping[str, Any]) -> tuple[Votes, list[int]]:
        return read_again(
            votes,
            classifiers=self.classifiers,
            classes=self.classes,
            reading=self.reading,
            given=reading,
        )

    def _order(self, votes: Votes) -> list[int]:
        """Places of the votes' classifiers among the estimate's."""
        return [self.classifiers.index(name) for name in votes.classifiers]

    def _label_rule(self, name: str, loss: str) -> Rule:
        """Look up the rule that labels; by the absolute loss it takes the median class."""
        rule = self._rule(name)
        if loss not in LOSSES:
            raise OptionsError(f"loss= must be one of {listed(LOSSES)}, got {loss!r}.")
        if loss == LOSSES[0] or len(self.classes) == 2:
            return rule
        if name not in ("posterior", "likelihood"):
            raise OptionsError(
                f"loss={loss!r} needs probabilities, which rule={name!r} does not give; label by rule='posterior'."
            )
        return replace(rule, absolute=True)

    def _rule(self, name: str) -> Rule:
        if name == "majority":
            return majority_rule(len(self.classifiers), len(self.classes))
        if name not in RULES:
            raise OptionsError(f"rule= must be one of {listed(RULES)}, got {name!r}.")
        choice = self._chosen()
        if name == "spectral":
            if self.vector is None:
                raise OptionsError(
                    f"rule='spectral' needs two classes and at most a thousand classifiers, got {len(self.classes)} "
                    f"and {len(self.classifiers)}; label by rule='posterior'."
                )
            return spectral_rule(self.vector)
        return choice.rule if name == "posterior" else likelihood_rule(choice.model)


def _warn_unvoted(unvoted: int) -> None:
    if unvoted:
        warn(
            f"{counted(unvoted, 'item')} had no vote at all; the label there is the more frequent class, "
            "and the probability that of the class among all items."
        )
