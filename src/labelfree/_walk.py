"""The walk of two classes through the numerical rooms, and what the verdict is told on the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelfree._choice import DIFFICULTY, Choice, GoldItems, calibrated, dependent, independent
from labelfree._consensus import tempered_rule, winners
from labelfree._dependence import Alarm, alarm
from labelfree._difficulty import MOST_LOG_ODDS, tempered
from labelfree._evidence import look_at_labels, look_at_values, look_at_votes
from labelfree._imbalance import Imbalance, likelihood_imbalance, tensor_imbalance
from labelfree._intervals import covariance_of_terms, covariance_of_votes, jackknife
from labelfree._latent_class import Fit, Model, Prior, fit
from labelfree._moments import moments, moments_of_all
from labelfree._multiclass import many_classes
from labelfree._options import Facts, is_word, rows_of
from labelfree._origin import likelihood_curve
from labelfree._products import Block, Blocks
from labelfree._rank_one import RankOne, rank_one
from labelfree._rates import clipped, rates, smallest_rate
from labelfree._tally import Tally
from labelfree._verdict import (
    Findings,
    look_at_alarm,
    look_at_imbalance,
    look_at_intervals,
    look_at_model,
    look_at_search,
    look_at_sign,
    look_at_unanimity,
    look_for_signal,
)
from labelfree._walked import Walked

Array = NDArray[np.float64]

CLEAR = 0.25  # of the largest |v|: smaller entries do not vouch for the sign


def walk_two(
    findings: Findings,
    walk: Walk,
    *,
    dependence: Any,
    groups: Sequence[Sequence[int]],
    level: float,
) -> Walked:
    """Go from the tally to the answer, and tell the verdict what was noticed."""
    counted, seen = walk.blocks.tally, walk.of_all
    size = counted.stands_for if np.isfinite(counted.sample_size) else counted.sample_size
    look_for_signal(findings, seen, size, counted.classifiers)
    if findings.fatal:
        return Walked(None, None, seen.votes, seen.constant, converged=False)
    choice, tested = walk.choose(dependence, groups)
    look(findings, walk, choice, tested, level, asked=not is_word(dependence, "ignore"))
    return Walked(
        choice,
        tested,
        seen.votes,
        seen.constant,
        walk.converged and choice.converged,
        walk.found.vector,
        likelihood_curve(walk.blocks, walk.seen, walk.found.vector),
    )


class Walk:
    """One walk through the numerical rooms; later steps use what earlier ones found."""

    def __init__(
        self,
        counted: Tally,
        method: str,
        vector: str,
        prevalence: float | None,
        prior: float,
        facts: Facts,
        gold: GoldItems | None,
    ) -> None:
        self.method, self.vector, self.prevalence, self.facts = method, vector, prevalence, facts
        self.gold, self.turned = gold, False
        self.blocks = Blocks(counted)
        self.seen = moments(self.blocks)
        # Of a sample: the moments of all items, which the way to v and the spectral rates start from.
        self.of_all = self.seen if counted.whole is None else moments_of_all(self.blocks)
        self.found = self._signed(rank_one(self.of_all, vector))
        self.prior = _prior(counted, prior, facts, fixed_classes=prevalence is not None)
        self.imbalance: Imbalance | None = None
        # The part of the prior that the user knows; of a classifier without votes nothing else is.
        self.known = _prior(counted, 0.0, facts, fixed_classes=prevalence is not None)
        silent = self.seen.votes == 0
        self.known.confusion[silent] = self.prior.confusion[silent]
        self.covariance: Array | None = None
        self.of_votes: Array | None = None
        self.fitted: Fit | None = None

    @property
    def converged(self) -> bool:
        """Whether the steps before the likelihood settled."""
        return self.found.converged and (self.imbalance is None or self.imbalance.converged)

    def choose(self, dependence: Any, groups: Sequence[Sequence[int]]) -> tuple[Choice, Alarm]:
        """Fit the independent model, test it, go on to what the test asks for, and check by gold."""
        spectral, self.imbalance = self._spectral(
            self.blocks, self.method, rough=self.method == "map"
        )
        self.fitted = fitted = fit(self.blocks, spectral, self.prior)
        self.covariance, self.of_votes = covariance_of_votes(
            self.blocks, fitted.model, self.prior, self.known
        )
        choice = self._independent(fitted, spectral)
        tested = Alarm(False, 1.0, np.zeros((len(self.seen.mean),) * 2), (0, 1))
        if not is_word(dependence, "ignore"):
            tested = alarm(self.blocks, self.seen, fitted, self.prior, self.covariance)
        # The moment methods model nothing; but gold labels calibrate under every method.
        models = self.method == "map" or self.gold is not None
        believed = np.zeros((len(self.seen.mean), 2), dtype=bool)
        for place in self.facts.believed:
            believed[place] = True
        if groups or (models and tested.raised and is_word(dependence, "auto")):
            other, _ = self._spectral(self.blocks, "tensor")
            modelled = dependent(
                self.blocks,
                self.seen,
                choice,
                fitted,
                [spectral, other],
                self.of_votes,
                prior=self.prior,
                prevalence=self.prevalence,
                groups=groups,
                believed=believed,
            )
            if self.method == "map" or modelled.dependence == DIFFICULTY:
                choice = modelled
        if self.gold is None:
            return self._labelled_apart(choice), tested
        checked = calibrated(
            self.blocks, choice, fitted, self.gold, prior=self.prior, believed=believed
        )
        if checked is not None or self.turned:
            return choice if checked is None else checked, tested
        self.turned, self.found = True, self.found.turned()
        return self.choose(dependence, groups)

    def _labelled_apart(self, choice: Choice) -> Choice:
        """Where items differ in difficulty, take labels from the model of items of two types.

        Its rates are further off than tempered ones, but its labels are right more often on real votes
        (`benchmarks/consensus_choice.py`): it sees items on which everybody errs alike. Its log-odds are
        flattened as the tempering asks for, which moves no label.
        """
        if choice.dependence != DIFFICULTY or self.method != "map":
            return choice
        shares, fixed, believed = rows_of(self.facts, self.prevalence)
        found = many_classes(
            self.blocks, class_probabilities=shares, fixed=fixed, believed=believed
        )
        shift = 0.0
        if self.prevalence is not None:  # the mean probability is then the prevalence
            shift = tempered(self.blocks, found.model, choice.slope, self.prevalence).shift
        rule = tempered_rule(found.model, choice.slope, shift, MOST_LOG_ODDS)
        doubt = None
        if found.covariance is not None:
            doubt = choice.slope**2 * covariance_of_terms(found.model, found.covariance)
        return replace(
            choice, rule=rule, doubt=doubt, converged=choice.converged and found.converged
        )

    def _signed(self, found: RankOne) -> RankOne:
        """Give v the sign that known rates, or gold, ask for."""
        signed = _signed_by(self.facts, found)
        return signed.turned() if self.turned else signed

    def _independent(self, fitted: Fit, spectral: Model) -> Choice:
        size = self.blocks.tally.sample_size
        if self.method == "map":
            model, covariance = fitted.model, self.of_votes
        elif np.isfinite(size):
            model, covariance = spectral, self._jackknifed(spectral)
        else:
            model, covariance = spectral, np.zeros((1 + 2 * len(self.seen.mean),) * 2)
        vector = self.found.vector
        return independent(fitted, model, covariance, self.of_all, vector, size, self.prior)

    def _jackknifed(self, spectral: Model) -> Array:
        """Covariance of the spectral rates; of a sample, and so of fewer items than the moments are of."""
        counted = self.blocks.tally
        if counted.whole is None:
            return jackknife(spectral, counted, self._answer_of)
        alone = counted.alone()
        covariance = jackknife(self._answer_of(alone), alone, self._answer_of)
        of_all = self.method == "tensor" and counted.whole.cooccurrence is not None
        return covariance * (counted.items / counted.stands_for if of_all else 1.0)

    def _answer_of(self, part: Tally) -> Model:
        return self._spectral(Blocks(part), self.method)[0]

    def _spectral(
        self, blocks: Blocks, method: str, *, rough: bool = False
    ) -> tuple[Model, Imbalance]:
        """Rates by way of v and the imbalance; what is known of them takes their place."""
        own = blocks is self.blocks
        seen = self.of_all if own else moments(blocks)
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


def look(
    findings: Findings, walk: Walk, choice: Choice, tested: Alarm, level: float, *, asked: bool
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
    look_at_votes(findings, walk.seen, walk.blocks.tally, choice, tested)
    if walk.fitted is not None:
        look_at_values(findings, walk.seen, walk.blocks, walk.fitted, walk.prior)
    if walk.gold is not None:
        look_at_labels(findings, choice, walk.gold, turned=walk.turned)
    widths, of_prevalence = None, 0.0
    if choice.spread is not None:
        voted = walk.seen.votes > 0
        ends = [choice.spread.ends(rate, level)[voted] for rate in ("sensitivity", "specificity")]
        widths = np.concatenate([np.diff(each, axis=-1)[:, 0] for each in ends])
        of_prevalence = float(np.diff(choice.spread.ends("prevalence", level))[0])
    look_at_intervals(findings, widths, of_prevalence)
    unanimous = Block(
        np.repeat(np.array([[0], [1]], dtype=np.int8), len(names), axis=1), np.ones(2), 2
    )
    look_at_unanimity(findings, (winners(choice.rule.scores(unanimous)) == [0, 1]).tolist())


def _prior(counted: Tally, pseudo_count: float, facts: Facts, *, fixed_classes: bool) -> Prior:
    shape = counted.shape
    if not np.isfinite(counted.sample_size):
        pseudo_count = 0.0  # beside exact frequencies, which are as of endless items
    flat = Prior.flat(shape.classifiers, shape.classes, pseudo_count, fixed_classes=fixed_classes)
    fixed = np.zeros((shape.classifiers, shape.classes), dtype=bool)
    for place in facts.fixed:
        fixed[place] = True
    for (i, true), (above, below) in facts.believed.items():
        flat.confusion[i, true, true], flat.confusion[i, true, 1 - true] = above - 1.0, below - 1.0
    return Prior(flat.classes, flat.confusion, fixed_classes, fixed if fixed.any() else None)


def _signed_by(facts: Facts, found: RankOne) -> RankOne:
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
