"""May the numbers be relied on? A level, the reasons in plain sentences, and what would help."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from labelfree._errors import counted, listed
from labelfree._moments import Moments
from labelfree._rank_one import RankOne

LEVELS = ("sound", "caution", "unidentified")
NO_SIGNAL = 0.01  # p-value above which the votes look as if all classifiers were guessing
UNINFORMATIVE = 0.05  # the same for one classifier's agreement with the others
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

    Under guessing, n r_ij² / ((1−μ_i²)(1−μ_j²)) is chi-square with one degree of freedom a pair.
    """
    from scipy.special import chdtrc

    strength = _squared_correlations(moments)
    if not np.isfinite(sample_size):
        informative = (strength > 1e-12).any(axis=1)
        signal = bool(informative.any())
    else:
        squares = strength * moments.pair_counts
        np.fill_diagonal(squares, 0.0)
        pairs = (moments.pair_counts > 0) & np.outer(~moments.constant, ~moments.constant)
        np.fill_diagonal(pairs, val=False)
        freedom = pairs.sum(axis=1)
        signal = freedom.sum() > 0 and chdtrc(freedom.sum() / 2, squares.sum() / 2) <= NO_SIGNAL
        informative = (freedom > 0) & (
            chdtrc(np.maximum(freedom, 1), squares.sum(axis=1)) <= UNINFORMATIVE
        )
    if not signal:
        findings.unidentified(
            "The classifiers agree no more than guessing would make them, so the votes do not tell good from bad.",
            "More items, or better classifiers.",
        )
    elif informative.sum() < NEEDED:
        names = [name for name, good in zip(classifiers, informative, strict=True) if good]
        findings.unidentified(
            f"Only {counted(len(names), 'classifier')} ({listed(names) or 'none'}) can be told from guessing; "
            f"it takes {NEEDED}.",
            "More informative classifiers, or more items.",
        )


def _squared_correlations(moments: Moments) -> NDArray[np.float64]:
    variance = np.maximum(1.0 - moments.mean**2, 1e-12)
    square = moments.covariance**2 / np.outer(variance, variance)
    live = ~moments.constant
    return np.asarray(np.where(np.outer(live, live), square, 0.0))


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
