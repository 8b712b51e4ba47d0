"""The front door: votes in, graded classifiers out. Calls the rooms in their order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelfree._choice import DIFFICULTY, Choice, GoldItems, calibrated, dependent, independent
from labelfree._consensus import winners
from labelfree._dependence import Alarm, alarm
from labelfree._errors import OptionsError, VotesError, listed
from labelfree._gold_labels import gold_items
from labelfree._imbalance import Imbalance, likelihood_imbalance, tensor_imbalance
from labelfree._intervals import covariance_of_logits, jackknife
from labelfree._latent_class import Fit, Model, Prior, fit
from labelfree._moments import Moments, moments
from labelfree._origin import likelihood_curve, origin_of
from labelfree._products import Block, Blocks
from labelfree._rank_one import WAYS, RankOne, rank_one
from labelfree._rates import clipped, rates, smallest_rate
from labelfree._result import Estimate
from labelfree._tally import Tally, settled, tally
from labelfree._tally_file import is_tally_file
from labelfree._verdict import (
    Findings,
    look_at_alarm,
    look_at_gold,
    look_at_imbalance,
    look_at_intervals,
    look_at_model,
    look_at_search,
    look_at_sign,
    look_at_unanimity,
    look_for_signal,
)
from labelfree._votes import Label, Votes, plain_reading, read_votes

Array = NDArray[np.float64]
Known = Mapping[str, Mapping[str, Any]]

METHODS = ("map", "likelihood", "tensor")
DEPENDENCE = ("auto", "test", "ignore")
CLEAR = 0.25  # of the largest |v|: smaller entries do not vouch for the sign
MOST_IN_GROUP = 5  # classifiers of a group that the user may name: its table has 2^5 cells a class


def estimate(
    votes: Any,
    *,
    method: str = "map",
    prevalence: float | None = None,
    positive: Label = None,
    classes: Sequence[Label] | None = None,
    missing: Label | Sequence[Label] = (),
    classifiers: Sequence[str] | None = None,
    item: str | None = None,
    classifier: str | None = None,
    vote: str | None = None,
    duplicates: str | None = None,
    gold: Any = None,
    known: Known | None = None,
    dependence: str | Sequence[Sequence[str]] = "auto",
    level: float = 0.95,
    vector: str = "triplets",
    prior: float = 1.0,
) -> Estimate:
    """Grade classifiers from their votes alone.

    Parameters
    ----------
    votes : array (n, m), dataframe, mapping of columns, path of a file, or Tally
        Rows are items, columns are three or more classifiers; or the long form, one row a vote,
        when `classifier` and `vote` name its columns. Missing votes may be anywhere: null, None,
        NaN, or what `missing` says.
    method : {"map", "likelihood", "tensor"}, default "map"
        "tensor" takes the imbalance from the third moments (JNK Algorithm 1), "likelihood" from
        the restricted likelihood (JNK Algorithm 2), and "map" goes on from there to the posterior
        mode of all rates together, and to models of shared errors where the votes ask for one.
    prevalence : float, optional
        Pr(positive), where it is known.
    positive : label, optional
        The positive label; by default the greater in sorted order: 1 of −1/1 and of 0/1, True,
        "yes" of no/yes.
    classes : sequence of two labels, optional
        Both labels, the positive one last; any other label is refused.
    missing : label or sequence of labels, optional
        What stands for a missing vote.
    classifiers : sequence of str, optional
        Names for the columns of an array, or the columns of a table that hold votes.
    item, classifier, vote : str, optional
        Columns of the long form. `item` alone names the items of a wide table (by default a column
        called "item", where there is one).
    duplicates : {"last", "drop"}, optional
        Long form: what to do where a classifier voted more than once on an item. "last" keeps the
        vote that stands last, and so depends on the order of the table's rows; "drop" keeps none
        of them, whatever the order. A row without a vote does not count. By default they are refused.
    gold : mapping, str or sequence, optional
        Known labels of some items, drawn at random from all: ``{item: label}`` (an item is its row's
        number, or its name where the table has an item column), the name of a column that holds
        them, or one label an item with None elsewhere. They fix the direction; and where the
        classifiers share errors on hard items, they calibrate rates, probabilities and intervals.
    known : mapping, optional
        What is known of some classifiers' rates: ``{"a": {"sensitivity": 0.9}}`` holds a rate
        fixed, ``{"a": {"specificity": (18, 2)}}`` gives it a Beta(18, 2) prior.
    dependence : {"auto", "test", "ignore"} or sequence of groups of names, default "auto"
        "auto" tests whether the classifiers share errors and models it where they do; "test" only
        tests; "ignore" does neither; groups, as ``[("a", "b")]``, are taken as classifiers that copy one another.
        Only method "map" models shared errors by votes alone; the others test.
    level : float, default 0.95
        Of the intervals.
    vector : {"triplets", "log-linear", "iterated"}, default "triplets"
        How the diagonal of the covariance is filled in on the way to the rank-one vector.
    prior : float, default 1
        Pseudo-votes in every cell of every classifier's confusion matrix, and pseudo-items of every
        class, for method "map": 1 is a Beta(2, 2) prior, 0 turns the prior off.

    Returns
    -------
    Estimate

    Notes
    -----
    Assumes that items are drawn alike, and that more than half of the classifiers are better than
    chance. ``estimate.verdict`` says what speaks against it.

    Examples
    --------
    >>> import labelfree as lf
    >>> from labelfree import simulate
    >>> drawn = simulate.votes(
    ...     5000, sensitivity=[0.8, 0.7, 0.9, 0.6], specificity=[0.7, 0.8, 0.8, 0.9]
    ... )
    >>> estimate = lf.estimate(drawn.votes)
    >>> estimate.sensitivity.round(1).tolist()
    [0.8, 0.7, 0.9, 0.6]
    """
    reading = plain_reading(
        missing=missing, item=item, classifier=classifier, vote=vote, duplicates=duplicates
    )
    _check_options(method, vector, prevalence, prior, level)
    options = {"positive": positive, "classes": classes, "classifiers": classifiers, **reading}
    if gold is None:
        counted, known_items = tally(votes, **options), None
    else:
        checked, counted = settled(_votes_with_gold(votes, gold, options))
        known_items = gold_items(gold, checked)
    _check_tally(counted)
    groups = _groups_asked(dependence, counted.classifiers, method)
    facts = _facts(known, counted.classifiers)
    findings = Findings()
    walk = _Walk(counted, method, vector, prevalence, prior, facts, known_items)
    look_for_signal(findings, walk.seen, counted.sample_size, counted.classifiers)
    choice, tested, curve = None, None, None
    if not findings.fatal:
        choice, tested = walk.choose(dependence, groups)
        _look(findings, walk, choice, tested, level, asked=not _is(dependence, "ignore"))
        curve = likelihood_curve(walk.blocks, walk.seen, walk.found.vector)
    graded = {"method": method, "prevalence": prevalence, "known": known, "dependence": dependence}
    graded |= {"level": level, "vector": vector, "prior": prior}
    whole = np.isfinite(counted.sample_size)
    return Estimate(
        classifiers=counted.classifiers,
        classes=counted.classes,
        method=method,
        level=level,
        items=int(counted.items) if whole else counted.items,
        patterns=len(counted),
        votes=tuple(int(count) if whole else float(count) for count in walk.seen.votes),
        notes=_notes(walk.seen),
        converged=choice is not None and walk.converged and choice.converged,
        verdict=findings.verdict(),
        reading=reading,
        _choice=choice,
        _alarm=tested,
        _vector=walk.found.vector if choice is not None else None,
        origin=origin_of(counted, graded, curve),
    )


@dataclass(frozen=True)
class _Facts:
    """What is known of single rates: fixed values and Beta priors, by (place, true class)."""

    fixed: dict[tuple[int, int], float]
    believed: dict[tuple[int, int], tuple[float, float]]


class _Walk:
    """One walk through the numerical rooms; later steps use what earlier ones found."""

    def __init__(
        self,
        counted: Tally,
        method: str,
        vector: str,
        prevalence: float | None,
        prior: float,
        facts: _Facts,
        gold: GoldItems | None,
    ) -> None:
        self.method, self.vector, self.prevalence, self.facts = method, vector, prevalence, facts
        self.gold, self.turned = gold, False
        self.blocks = Blocks(counted)
        self.seen = moments(self.blocks)
        self.found = self._signed(rank_one(self.seen, vector))
        self.prior = _prior(counted, prior, facts, fixed_classes=prevalence is not None)
        self.imbalance: Imbalance | None = None
        self.covariance: Array | None = None

    @property
    def converged(self) -> bool:
        """Whether the steps before the likelihood settled."""
        return self.found.converged and (self.imbalance is None or self.imbalance.converged)

    def choose(self, dependence: Any, groups: Sequence[Sequence[int]]) -> tuple[Choice, Alarm]:
        """Fit the independent model, test it, go on to what the test asks for, and check by gold."""
        spectral, self.imbalance = self._spectral(
            self.blocks, self.method, rough=self.method == "map"
        )
        fitted = fit(self.blocks, spectral, self.prior)
        self.covariance = covariance_of_logits(self.blocks, fitted.model, self.prior)
        choice = self._independent(fitted, spectral)
        tested = Alarm(False, 1.0, np.zeros((len(self.seen.mean),) * 2), (0, 1))
        if not _is(dependence, "ignore"):
            tested = alarm(self.blocks, self.seen, fitted, self.prior, self.covariance)
        # The moment methods model nothing; but gold labels calibrate under every method.
        models = self.method == "map" or self.gold is not None
        if groups or (models and tested.raised and _is(dependence, "auto")):
            other, _ = self._spectral(self.blocks, "tensor")
            modelled = dependent(
                self.blocks,
                self.seen,
                choice,
                fitted,
                [spectral, other],
                self.covariance,
                prior=self.prior,
                prevalence=self.prevalence,
                groups=groups,
            )
            if self.method == "map" or modelled.dependence == DIFFICULTY:
                choice = modelled
        if self.gold is None:
            return choice, tested
        believed = np.zeros((len(self.seen.mean), 2), dtype=bool)
        for place in self.facts.believed:
            believed[place] = True
        checked = calibrated(
            self.blocks, choice, fitted, self.gold, prior=self.prior, believed=believed
        )
        if checked is not None or self.turned:
            return choice if checked is None else checked, tested
        self.turned, self.found = True, self.found.turned()
        return self.choose(dependence, groups)

    def _signed(self, found: RankOne) -> RankOne:
        """Give v the sign that known rates, or gold, ask for."""
        signed = _signed_by(self.facts, found)
        return signed.turned() if self.turned else signed

    def _independent(self, fitted: Fit, spectral: Model) -> Choice:
        size = self.blocks.tally.sample_size
        if self.method == "map":
            model, covariance = fitted.model, self.covariance
        elif np.isfinite(size):
            model, covariance = spectral, jackknife(spectral, self.blocks.tally, self._answer_of)
        else:
            model, covariance = spectral, np.zeros((1 + 2 * len(self.seen.mean),) * 2)
        return independent(fitted, model, covariance, self.seen, self.found.vector, size)

    def _answer_of(self, part: Tally) -> Model:
        return self._spectral(Blocks(part), self.method)[0]

    def _spectral(
        self, blocks: Blocks, method: str, *, rough: bool = False
    ) -> tuple[Model, Imbalance]:
        """Rates by way of v and the imbalance; what is known of them takes their place."""
        own = blocks is self.blocks
        seen = self.seen if own else moments(blocks)
        vector = self.found.vector if own else self._signed(rank_one(seen, self.vector)).vector
        if self.prevalence is not None:
            imbalance = Imbalance(2.0 * self.prevalence - 1.0, at_boundary=False, converged=True)
        elif method == "tensor":
            imbalance = tensor_imbalance(blocks, seen, vector)
        else:
            imbalance = likelihood_imbalance(blocks, seen, vector, rough=rough)
        smallest = smallest_rate(blocks.tally.sample_size)
        sensitivity, specificity = rates(seen.mean, vector, imbalance.value)
        both = np.stack([clipped(specificity, smallest), clipped(sensitivity, smallest)], axis=1)
        votes = seen.votes[:, None] * np.array([1 - imbalance.value, 1 + imbalance.value]) / 2
        for place, value in self.facts.fixed.items():
            both[place] = value
        for place, (above, below) in self.facts.believed.items():
            both[place] = (both[place] * votes[place] + above - 1) / (
                votes[place] + above + below - 2
            )
        return Model.binary(imbalance.value, both[:, 1], both[:, 0]), imbalance


def _look(
    findings: Findings, walk: _Walk, choice: Choice, tested: Alarm, level: float, *, asked: bool
) -> None:
    """Ask every question of the verdict."""
    names = walk.blocks.tally.classifiers
    look_at_sign(findings, walk.found, int((walk.found.vector != 0).sum()))
    look_at_imbalance(
        findings, at_boundary=walk.imbalance is not None and walk.imbalance.at_boundary
    )
    look_at_search(findings, converged=walk.converged and choice.converged)
    look_at_alarm(findings, tested, names, asked=asked)
    groups = [[names[place] for place in group] for group in choice.groups]
    look_at_model(
        findings, choice.dependence, groups, choice.effective_number, len(names), gold=choice.gold
    )
    look_at_gold(findings, choice.gold, turned=walk.turned)
    widths = None
    if choice.spread is not None:
        ends = [choice.spread.ends(rate, level) for rate in ("sensitivity", "specificity")]
        widths = np.concatenate([np.diff(each, axis=-1)[:, 0] for each in ends])
    look_at_intervals(findings, widths)
    unanimous = Block(
        np.repeat(np.array([[0], [1]], dtype=np.int8), len(names), axis=1), np.ones(2), 2
    )
    look_at_unanimity(findings, (winners(choice.rule.scores(unanimous)) == [0, 1]).tolist())


def _votes_with_gold(votes: Any, gold: Any, options: dict[str, Any]) -> Votes:
    if isinstance(votes, Tally) or is_tally_file(votes):
        raise OptionsError(
            "gold= needs the items, but a tally has forgotten them; give the votes themselves."
        )
    return read_votes(votes, **options, apart=gold if isinstance(gold, str) else None)


def _prior(counted: Tally, pseudo_count: float, facts: _Facts, *, fixed_classes: bool) -> Prior:
    shape = counted.shape
    flat = Prior.flat(shape.classifiers, shape.classes, pseudo_count, fixed_classes=fixed_classes)
    fixed = np.zeros((shape.classifiers, shape.classes), dtype=bool)
    for place in facts.fixed:
        fixed[place] = True
    for (i, true), (above, below) in facts.believed.items():
        flat.confusion[i, true, true], flat.confusion[i, true, 1 - true] = above - 1.0, below - 1.0
    return Prior(flat.classes, flat.confusion, fixed_classes, fixed if fixed.any() else None)


def _signed_by(facts: _Facts, found: RankOne) -> RankOne:
    """Let known rates fix the sign of v, where they say which side of chance a classifier is on.

    A classifier near chance has a v too small to say anything of the sign.
    """
    values = facts.fixed | {
        place: above / (above + below) for place, (above, below) in facts.believed.items()
    }
    clear = np.abs(found.vector) >= CLEAR * np.max(np.abs(found.vector), initial=0.0)
    side = sum((value - 0.5) * found.vector[i] for (i, _), value in values.items() if clear[i])
    if side >= 0:
        return found
    return found.turned()


def _notes(seen: Moments) -> tuple[str, ...]:
    return tuple(
        "no votes" if votes == 0 else "constant" if constant else ""
        for votes, constant in zip(seen.votes, seen.constant, strict=True)
    )


# --- options -----------------------------------------------------------------------------------


def _check_options(method: Any, vector: Any, prevalence: Any, prior: Any, level: Any) -> None:
    if not isinstance(method, str) or method not in METHODS:
        raise OptionsError(f"method= must be one of {listed(METHODS)}, got {method!r}.")
    if not isinstance(vector, str) or vector not in WAYS:
        raise OptionsError(f"vector= must be one of {listed(WAYS)}, got {vector!r}.")
    if prevalence is not None and not _is_number(prevalence, 0.0, 1.0):
        raise OptionsError(
            f"prevalence= must lie between 0 and 1, both excluded, got {prevalence!r}."
        )
    if not _is_number(prior, -1.0, float("inf")) or prior < 0:
        raise OptionsError(f"prior= must be a number of at least 0, got {prior!r}.")
    if not _is_number(level, 0.0, 1.0):
        raise OptionsError(f"level= must lie between 0 and 1, both excluded, got {level!r}.")


def _is(option: Any, word: str) -> bool:
    """Compare an option that may also be a list."""
    return isinstance(option, str) and option == word


def _is_number(value: Any, low: float, high: float) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and bool(low < value < high)


def _check_tally(counted: Tally) -> None:
    if len(counted.classes) != 2:
        raise VotesError(
            f"Expected two labels, got {len(counted.classes)} ({listed(counted.classes)}); "
            "merge labels until two are left."
        )
    if len(counted.classifiers) < 3:
        raise VotesError(
            f"Expected votes of at least three classifiers, got {len(counted.classifiers)}; add some."
        )


def _groups_asked(dependence: Any, classifiers: tuple[str, ...], method: str) -> list[list[int]]:
    """Places of the user's own groups; none where a word is given."""
    if isinstance(dependence, str):
        if dependence not in DEPENDENCE:
            raise OptionsError(
                f"dependence= must be {' or '.join(map(repr, DEPENDENCE))}, or a list of groups of classifiers, "
                f"got {dependence!r}."
            )
        return []
    if not isinstance(dependence, Iterable) or not all(
        isinstance(group, Iterable) and not isinstance(group, str) for group in dependence
    ):
        raise OptionsError(
            f"dependence= must be {' or '.join(map(repr, DEPENDENCE))}, or a list of groups of classifiers, "
            f"got {listed([repr(dependence)])}; a group is a list of names."
        )
    groups = [list(group) for group in dependence]
    if groups and method != "map":
        raise OptionsError(
            f"dependence= names groups, which only method='map' can model, got method={method!r}; leave one of them out."
        )
    members = [name for group in groups for name in group]
    unknown = [name for name in members if name not in classifiers]
    if unknown:
        raise OptionsError(
            f"dependence= names {listed(map(repr, unknown))}; the classifiers are {listed(classifiers)}."
        )
    if len(set(members)) < len(members) or any(len(group) < 2 for group in groups):
        raise OptionsError(
            "dependence= must hold groups of at least two classifiers, none of them in two groups, "
            f"got {listed([repr(groups)])}."
        )
    blocks = len(groups) + len(classifiers) - len(members)
    if blocks < 3 or any(len(group) > MOST_IN_GROUP for group in groups):
        raise OptionsError(
            f"dependence= must leave at least three groups or single classifiers, of at most {MOST_IN_GROUP} each, "
            f"got {blocks}; name smaller groups."
        )
    return [[classifiers.index(name) for name in group] for group in groups]


def _facts(known: Any, classifiers: tuple[str, ...]) -> _Facts:
    fixed, believed = {}, {}
    known = {} if known is None else known
    if not isinstance(known, Mapping) or not all(
        isinstance(rates_of, Mapping) for rates_of in known.values()
    ):
        raise OptionsError(
            f"known= must map names of classifiers to their rates, got {listed([repr(known)])}; "
            "write for example {'a': {'sensitivity': 0.9}}."
        )
    for name, rates_of in known.items():
        if name not in classifiers:
            raise OptionsError(f"known= names {name!r}; the classifiers are {listed(classifiers)}.")
        for rate, value in rates_of.items():
            if rate not in ("specificity", "sensitivity"):
                raise OptionsError(
                    f"known= holds {rate!r} for {name}; expected sensitivity or specificity."
                )
            place = (classifiers.index(name), int(rate == "sensitivity"))
            if isinstance(value, tuple | list):
                believed[place] = _beta(name, rate, value)
            elif _is_number(value, 0.0, 1.0):
                fixed[place] = float(value)
            else:
                raise OptionsError(
                    f"known= gives {name} a {rate} of {value!r}; expected a number between 0 and 1, both excluded, "
                    "or the two parameters of a Beta prior."
                )
    return _Facts(fixed, believed)


def _beta(name: str, rate: str, value: Sequence[float]) -> tuple[float, float]:
    if len(value) != 2 or not all(
        each == 1 or _is_number(each, 1.0, float("inf")) for each in value
    ):
        raise OptionsError(
            f"known= gives {name} a {rate} with prior {tuple(value)!r}; expected the two parameters of a Beta "
            "distribution, both at least 1."
        )
    return float(value[0]), float(value[1])
