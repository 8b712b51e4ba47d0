"""May the numbers be relied on? A level, the reasons in plain sentences, and what would help."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from labelfree._errors import counted
from labelfree._moments import Moments
from labelfree._rank_one import RankOne

Array = NDArray[np.float64]

LEVELS = ("sound", "caution", "unidentified")
NO_SIGNAL = 0.05  # p-value above which the votes look as if all classifiers were guessing ...
WEAK_SIGNAL = 0.001  # ... and above which that can barely be ruled out
EXACT_SIGNAL = 1e-3  # score that rounding alone may leave where frequencies are exact
NEEDED = 3  # classifiers different from chance without which nothing is identified


@dataclass(frozen=True)
class Verdict:
    """Whether to trust an estimate.

    Attributes
    ----------
    level : {"sound", "caution", "unidentified"}
    reasons : tuple of str
        Sentences; for "sound", why.
    advice : tuple of str
        What would help.
    """

    level: str
    reasons: tuple[str, ...]
    advice: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.level}: " + " ".join(self.reasons)


@dataclass
class Findings:
    """What the rooms noticed on the way, gathered for the verdict."""

    fatal: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    advice: list[str] = field(default_factory=list)

    def unidentified(self, reason: str, advice: str) -> None:
        """Note why there is no answer."""
        self.fatal.append(reason)
        self._advise(advice)

    def doubt(self, reason: str, advice: str) -> None:
        """Note why to be careful."""
        self.doubts.append(reason)
        self._advise(advice)

    def _advise(self, advice: str) -> None:
        if advice not in self.advice:
            self.advice.append(advice)

    def verdict(self) -> Verdict:
        """Weigh the findings."""
        if self.fatal:
            return Verdict("unidentified", tuple(self.fatal), tuple(self.advice))
        if self.doubts:
            return Verdict("caution", tuple(self.doubts), tuple(self.advice))
        return Verdict("sound", ("Nothing in the votes speaks against the model.",), ())


def look_for_signal(
    findings: Findings, moments: Moments, sample_size: float, classifiers: Sequence[str]
) -> None:
    """Ask whether the classifiers agree more than guessing would, and whether enough of them do.

    Under guessing, z_ij = √n r_ij / √((1−μ_i²)(1−μ_j²)) is standard normal, pair by pair.
    Three classifiers must differ from chance, so the pairs besides the strongest one must show it too.
    """
    scores, pairs = _agreement(moments, sample_size)
    strongest = np.unravel_index(np.argmax(np.abs(scores)), scores.shape)
    others = pairs.copy()
    others[strongest] = others[strongest[::-1]] = False
    if not _beyond_chance(scores[np.triu(pairs)], NO_SIGNAL):
        findings.unidentified(
            "The classifiers agree no more than guessing would make them, so the votes do not tell good from bad.",
            "More items, or better classifiers.",
        )
    elif not _beyond_chance(scores[np.triu(others)], NO_SIGNAL):
        names = [classifiers[place] for place in strongest]
        findings.unidentified(
            f"Only {names[0]} and {names[1]} agree more than guessing would make them; it takes {NEEDED} such classifiers.",
            "More informative classifiers, or more items.",
        )
    elif not _beyond_chance(scores[np.triu(others)], WEAK_SIGNAL):
        findings.doubt(
            "The classifiers agree hardly more than guessing would make them.",
            "More items, or better classifiers.",
        )


def _beyond_chance(scores: Array, level: float) -> bool:
    """Ask whether standard normal scores are too large (chi-square) or too one-sided (their sum) for chance.

    The sum has the power where most classifiers are a little better than chance, the chi-square
    where some are worse; each gets half of the level.
    """
    from scipy.special import chdtrc, ndtr

    if not len(scores) or np.max(np.abs(scores)) < EXACT_SIGNAL:
        return False
    one_sided = ndtr(-scores.sum() / np.sqrt(len(scores)))
    return bool(min(chdtrc(len(scores), scores @ scores), one_sided) <= level / 2)


def _agreement(moments: Moments, sample_size: float) -> tuple[Array, NDArray[np.bool_]]:
    """Standardised covariance of each pair, and which pairs have one; exact frequencies count as endless items."""
    variance = np.maximum(1.0 - moments.mean**2, 1e-12)
    met = (
        moments.pair_counts if np.isfinite(sample_size) else np.full_like(moments.pair_counts, 1e16)
    )
    pairs = (moments.pair_counts > 0) & np.outer(~moments.constant, ~moments.constant)
    np.fill_diagonal(pairs, val=False)
    return np.where(
        pairs, moments.covariance * np.sqrt(met / np.outer(variance, variance)), 0.0
    ), pairs


def look_at_sign(findings: Findings, found: RankOne, live: int) -> None:
    """More than half of the classifiers must be better than chance; say when it is a close call."""
    worse = live - found.positive
    if worse and found.positive - worse <= max(1, live // 5):
        findings.doubt(
            f"Which class is which rests on a thin majority: {found.positive} of {live} informative classifiers "
            f"agree, {worse} vote against them.",
            "A few items with known labels would settle the direction.",
        )


def look_at_imbalance(findings: Findings, *, at_boundary: bool) -> None:
    """An imbalance at its bound is a bound, not an estimate."""
    if at_boundary:
        findings.doubt(
            "The estimated prevalence ran into the end of its range, so nearly all items look alike.",
            "Items of the rarer class, or a known prevalence (prevalence=).",
        )


def look_at_search(findings: Findings, *, converged: bool) -> None:
    """Nothing is called a success by default."""
    if not converged:
        findings.doubt(
            "The search for the best fit did not settle, so the numbers may still move.",
            "More items or more informative classifiers.",
        )
