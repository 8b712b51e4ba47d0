"""Rates -> the linear rule in the votes: labels, probabilities, SQL.

Every consensus here is one rule, a sum of a weight for each vote and each class: majority vote,
SML (weights v), i-SML (log-likelihoods, no prior; JNK eq. for the ML label) and the posterior
(i-SML with the prior odds). The oracle is the same rule with the true rates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelfree._latent_class import Model
from labelfree._patterns import Reader, codes_of_words, read_all, words_of
from labelfree._products import Block
from labelfree._sql import Dialect, dialect_of
from labelfree._votes import Label, Votes

Array = NDArray[np.float64]

TIE = 1e-9  # scores closer than this are a tie, whatever order they were added in; the last class wins it
MOST_EXPONENT = 700.0  # beyond, the exponential function overflows
TABLE_BITS = 20  # patterns of no more bits are looked up in a table of all answers


@dataclass(frozen=True)
class Together:
    """Classifiers that are weighed together, as their errors are not independent.

    Attributes
    ----------
    members : tuple of int
        Their places; −1 for one whose votes are not at hand.
    table : (3^g, 2) array
        Score of each class for each joint vote: Σ (code + 1) · 3^position, code −1 for missing.
    """

    members: tuple[int, ...]
    table: Array

    def places(self, codes: NDArray[np.int8]) -> NDArray[np.intp]:
        """Where in the table the joint votes of every pattern stand, (P,)."""
        place = np.zeros(len(codes), dtype=np.intp)
        for position, member in enumerate(self.members):
            if member >= 0:
                place += (codes[:, member].astype(np.intp) + 1) * 3**position
        return place


@dataclass(frozen=True)
class Rule:
    """A linear rule: score of class c = intercept_c + Σ_i weights[i, vote of i, c].

    Attributes
    ----------
    intercept : (K,) array
    weights : (m, K, K) array
        [classifier, voted class, true class]; a missing vote adds nothing.
    limits : tuple of float, optional
        Two classes: bounds of the second score less the first.
    together : tuple of Together
        Groups of classifiers whose joint votes add to the scores; their weights are zero.
    absolute : bool
        Whether the label is the one with the least expected distance to the true class, counted in
        classes that stand in order; by default it is the one most often right.
    """

    intercept: Array
    weights: Array
    limits: tuple[float, float] | None = None
    together: tuple[Together, ...] = ()
    absolute: bool = False

    def best(self, scores: Array) -> NDArray[np.int8]:
        """Code of the class that the scores ask for; of several that tie, the last."""
        return medians(probabilities(scores)) if self.absolute else winners(scores)

    def scores(self, block: Block) -> Array:
        """Score every class for every pattern of a block."""
        total = block.score(self.weights) + self.intercept
        for group in self.together:
            total += group.table[group.places(_dense(block))]
        if self.limits is not None:
            total[:, 1] = total[:, 0] + np.clip(total[:, 1] - total[:, 0], *self.limits)
        return total

    def terms(self, block: Block) -> Array:
        """Which terms of the log-odds every pattern takes, (P, D) of 0 and 1.

        The terms are the intercept, each classifier's negative and its positive vote, and the
        joint votes of each group.
        """
        codes = _dense(block)
        votes = np.stack([codes == 0, codes == 1], axis=2).reshape(len(codes), -1)
        joint = [np.eye(len(group.table))[group.places(codes)] for group in self.together]
        return np.concatenate([np.ones((len(codes), 1)), votes, *joint], axis=1)

    def term_odds(self) -> Array:
        """What each term adds to the log-odds, (D,)."""
        parts = [self.intercept, self.weights.reshape(-1, 2), *(g.table for g in self.together)]
        return np.concatenate([np.atleast_2d(part) @ [-1.0, 1.0] for part in parts])

    def terms_of(self, order: Sequence[int]) -> NDArray[np.intp]:
        """Places, among the terms of this rule, of the terms of the rule :meth:`of` the same order."""
        first = 1 + 2 * np.asarray(order, dtype=np.intp)
        votes = np.stack([first, first + 1], axis=1).ravel()
        joint = np.arange(1 + 2 * len(self.weights), len(self.term_odds()))
        return np.concatenate([[0], votes, joint]).astype(np.intp)

    def of(self, order: Sequence[int]) -> Rule:
        """Return the rule for votes whose columns are these of the rule's classifiers, in this order."""
        place = {classifier: column for column, classifier in enumerate(order)}
        together = tuple(
            Together(tuple(place.get(member, -1) for member in group.members), group.table)
            for group in self.together
        )
        return replace(self, weights=self.weights[list(order)], together=together)


def _dense(block: Block) -> NDArray[np.int8]:
    codes = block.codes
    return codes if isinstance(codes, np.ndarray) else codes.toarray().astype(np.int8) - np.int8(1)


def tempered_rule(model: Model, slope: float, shift: float, most: float) -> Rule:
    """Posterior with its log-odds ℓ, held within ±most, flattened to shift + slope · ℓ."""
    prior = model.log_prior()
    limits = (shift - slope * most, shift + slope * most)
    return Rule(slope * prior + np.array([0.0, shift]), slope * model.tables(), limits)


def posterior_rule(model: Model) -> Rule:
    """Log posterior of each class, up to a constant: its softmax is the class probability."""
    return Rule(model.log_prior(), model.tables())


def likelihood_rule(model: Model) -> Rule:
    """i-SML: maximum likelihood with no prior. With the true rates it is the oracle."""
    return Rule(np.zeros(len(model.class_probabilities)), model.tables())


def spectral_rule(vector: Array) -> Rule:
    """SML: the sign of Σ v_i f_i."""
    signs = np.array([[1.0, -1.0], [-1.0, 1.0]]) / 2
    return Rule(np.zeros(2), vector[:, None, None] * signs)


def majority_rule(classifiers: int, classes: int = 2) -> Rule:
    """One vote each; a tie goes to the last class."""
    return Rule(
        np.zeros(classes), np.broadcast_to(np.eye(classes), (classifiers, classes, classes)).copy()
    )


def probabilities(scores: Array) -> Array:
    """Softmax of the scores: the class probabilities under the posterior rule."""
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def winners(scores: Array) -> NDArray[np.int8]:
    """Code of the best class; of several that tie, the last."""
    best = scores.max(axis=1, keepdims=True) - TIE
    last = scores.shape[1] - 1 - np.argmax((scores >= best)[:, ::-1], axis=1)
    return np.asarray(last, dtype=np.int8)


def medians(shares: Array) -> NDArray[np.int8]:
    """Code of the median class of each row of probabilities: its expected distance to the true one is least."""
    below = shares.cumsum(axis=1)[:, :-1]
    return np.asarray((below <= 0.5 + TIE).sum(axis=1), dtype=np.int8)


@dataclass(frozen=True)
class Answers:
    """One answer an item.

    Attributes
    ----------
    labels : (n,) array, or None
        The winning class, in the caller's own labels.
    probabilities : (n,) array (K = 2: of the positive class; else of the label), (n, K) array, or None
    unvoted : int
        Items on which no classifier voted; their answer is the rule's intercept alone.
    """

    labels: NDArray[Any] | None
    probabilities: Array | None
    unvoted: int


def answer(
    rule: Rule,
    votes: Votes,
    *,
    label: bool = True,
    probability: bool = False,
    probability_by: Rule | None = None,
    of_label: bool = False,
) -> Answers:
    """Apply a rule to every item, in one pass over the votes.

    Few classifiers: the answer to every possible pattern is computed once and looked up by the
    pattern's number. Many: a product with the one-hot votes of a stretch of items.

    Parameters
    ----------
    rule : Rule
        The label is its best class.
    votes : Votes
    label, probability : bool
        What is wanted.
    probability_by : Rule, optional
        Whose scores give the probabilities; by default the same.
    of_label : bool
        More than two classes: whether the probability of the label is wanted, and not of every class.

    Returns
    -------
    Answers
    """
    names = votes.label_array()
    classes = len(names)
    by_label = of_label and classes > 2
    judged = _judge(rule, (probability_by or rule) if probability else None, by_label=by_label)
    if not isinstance(votes.columns, np.ndarray | tuple):
        found = judged(Block(votes.columns, np.ones(votes.items), classes))
        unvoted = int((np.diff(votes.columns.indptr) == 0).sum())
        return Answers(
            names[found.codes] if label else None, found.shown if probability else None, unvoted
        )
    labels = np.empty(votes.items, dtype=names.dtype) if label else None
    one_each = classes == 2 or by_label
    shown = np.empty(votes.items if one_each else (votes.items, classes)) if probability else None
    few = len(votes.classifiers) <= TABLE_BITS
    table_of = cache(lambda complete: _table(judged, votes, complete=complete))

    def look_up(reader: Reader, start: int, stop: int) -> int | None:
        numbers, complete = reader.numbers(start, stop)
        table = table_of(complete and classes == 2)
        if table is None:
            return None
        place = reader.places(numbers, np.intp)
        # Every place is in the table. Of the ways to say so, "wrap" takes .6 of the time (measured).
        if labels is not None:
            np.take(names[table.codes], place, out=labels[start:stop], mode="wrap")
        if shown is not None:
            np.take(table.shown, place, axis=0, out=shown[start:stop], mode="wrap")
        return 0 if complete else int((numbers == 0).sum())

    def multiply(reader: Reader, start: int, stop: int) -> int:
        planes, _ = reader.planes(start, stop)
        codes = codes_of_words(words_of(planes), reader.shape)
        found = judged(Block(codes, np.ones(len(codes)), classes))
        if labels is not None:
            labels[start:stop] = names[found.codes]
        if shown is not None:
            shown[start:stop] = found.shown
        return int((codes < 0).all(axis=1).sum())

    def work(reader: Reader, start: int, stop: int) -> int:
        found = look_up(reader, start, stop) if few else None
        return multiply(reader, start, stop) if found is None else found

    return Answers(labels, shown, sum(read_all(votes, work)))


def given_back(answers: Answers, votes: Votes) -> Any:
    """Give answers back in the caller's own kind; a table takes one column of probabilities a class."""
    shares = answers.probabilities
    if shares is None or shares.ndim == 1 or not votes.keeps_table:
        return votes.give_back(answers.labels, shares)
    columns = dict(zip(votes.classes, np.ascontiguousarray(shares.T), strict=True))
    return votes.give_back(answers.labels, columns)


def each_item(votes: Votes, work: Callable[[Block], Array]) -> Array:
    """Compute something from every item's votes: (n, …), a stretch of items at a time."""
    classes = len(votes.classes)
    if not isinstance(votes.columns, np.ndarray | tuple):
        return work(Block(votes.columns, np.ones(votes.items), classes))

    def stretch(reader: Reader, start: int, stop: int) -> Array:
        codes = codes_of_words(words_of(reader.planes(start, stop)[0]), reader.shape)
        return work(Block(codes, np.ones(len(codes)), classes))

    return np.concatenate(list(read_all(votes, stretch)))


@dataclass(frozen=True)
class _Table:
    codes: NDArray[np.int8]
    shown: Array


def _judge(
    label_by: Rule, probability_by: Rule | None, *, by_label: bool
) -> Callable[[Block], _Table]:
    """Return what answers every pattern of a block; `by_label` asks for the probability of the label alone."""

    def judged(block: Block) -> _Table:
        scores = label_by.scores(block)
        codes = label_by.best(scores)
        if probability_by is None:
            return _Table(codes, np.empty(0))
        shares = probabilities(
            scores if probability_by is label_by else probability_by.scores(block)
        )
        if block.classes == 2:
            return _Table(codes, np.ascontiguousarray(shares[:, 1]))
        return _Table(codes, shares[np.arange(len(codes)), codes] if by_label else shares)

    return judged


def _table(judged: Callable[[Block], _Table], votes: Votes, *, complete: bool) -> _Table | None:
    """Answer every pattern there can be, where that is less work than answering every item."""
    m, classes = len(votes.classifiers), len(votes.classes)
    planes = classes.bit_length()
    bits = m if complete and classes == 2 else m * planes
    if bits > TABLE_BITS or 1 << bits > max(votes.items, 1024) or (complete and classes > 2):
        return None
    numbers = np.arange(1 << bits)
    codes = np.full((len(numbers), m), 0 if complete else -1, dtype=np.int8)
    for plane in range(1 if complete else planes):
        codes += (((numbers[:, None] >> (np.arange(m) + plane * m)) & 1) << plane).astype(np.int8)
    # Numbers that no votes make (both planes of two classes set) are given any answer.
    return judged(Block(np.minimum(codes, classes - 1), np.ones(len(numbers)), classes))


# --- SQL --------------------------------------------------------------------------------------


def sql(
    rule: Rule,
    classifiers: Sequence[str],
    classes: Sequence[Label],
    dialect: str | None = None,
    code: int = 1,
) -> str:
    """Write the probability of a class as one SQL expression over the classifiers' columns.

    It is 1 / (1 + Σ exp(s_c − s)), over the other classes c. Numbers are written so that they read
    back exactly; every exponent is held within ±700, where no engine overflows.
    """
    spelling = dialect_of(dialect)
    one = spelling.number(1)
    others = [
        _sql_odds(rule, classifiers, classes, spelling, code, other)
        for other in range(len(classes))
        if other != code
    ]
    total = "\n  + ".join(f"EXP(-{odds})" for odds in others)
    return f"{one} / ({one} + {total})"


def _sql_odds(
    rule: Rule,
    classifiers: Sequence[str],
    classes: Sequence[Label],
    spelling: Dialect,
    code: int,
    other: int,
) -> str:
    """Log-odds of one class against another."""
    name, literal, number = spelling.name, spelling.literal, spelling.number
    odds = rule.weights[:, :, code] - rule.weights[:, :, other]
    joined = {member for group in rule.together for member in group.members}
    terms = [number(rule.intercept[code] - rule.intercept[other])]
    for place, (classifier, weights) in enumerate(zip(classifiers, odds, strict=True)):
        if place not in joined:
            cases = " ".join(
                f"WHEN {literal(label)} THEN {number(weight)}"
                for label, weight in zip(classes, weights, strict=True)
            )
            terms.append(f"CASE {name(classifier)} {cases} ELSE {number(0)} END")
    terms += [
        _sql_together(group, classifiers, classes, spelling, code, other) for group in rule.together
    ]
    low, high = rule.limits or (-MOST_EXPONENT, MOST_EXPONENT)
    if rule.limits is not None and code == 0:
        low, high = -high, -low
    log_odds = "\n  + ".join(terms)
    return f"GREATEST({number(low)}, LEAST({number(high)},\n    {log_odds}\n))"


def _sql_together(
    group: Together,
    classifiers: Sequence[str],
    classes: Sequence[Label],
    spelling: Dialect,
    code: int,
    other: int,
) -> str:
    """One case for each joint vote of a group; a vote that is neither label counts as missing."""
    cases = []
    for place, scores in enumerate(group.table.tolist()):
        digits = [place // 3**position % 3 - 1 for position in range(len(group.members))]
        votes = [
            f"{spelling.name(classifiers[member])} = {spelling.literal(classes[digit])}"
            for member, digit in zip(group.members, digits, strict=True)
            if digit >= 0
        ]
        score = spelling.number(scores[code] - scores[other])
        cases.append((len(votes), f"WHEN {' AND '.join(votes) or 'TRUE'} THEN {score}"))
    # The first case that holds is taken, so those that name more votes come first.
    cases.sort(key=lambda case: -case[0])
    return "CASE " + "\n      ".join(text for _, text in cases) + " END"
