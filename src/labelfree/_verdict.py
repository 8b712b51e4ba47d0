"""May the numbers be relied on? A level, the reasons in plain sentences, and what would help."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from labelfree._dependence import Alarm
from labelfree._errors import counted, listed
from labelfree._moments import Moments
from labelfree._rank_one import RankOne

Array = NDArray[np.float64]

LEVELS = ("sound", "caution", "unidentified")
NO_SIGNAL = 0.1  # p-value above which the votes look as if all classifiers were guessing ...
NO_THIRD = 0.25  # ... or all but two of them ...
WEAK_SIGNAL = 0.001  # ... and above which that can barely be ruled out
EXACT_SIGNAL = 1e-3  # score that rounding alone may leave where frequencies are exact
FEW_GOLD = 20  # gold labels below which their own sampling error is large
WIDE = 0.2  # width of an interval from which it says little
MOST_COUNTED = 500  # classifiers of which the triples are counted
NO_SKEW = 1e-4  # skewness from which the normal distribution serves
MOST_UNNAMED = 4  # classifiers among which the covariances cannot tell one pair from another
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
    scores, met = _agreement(moments, sample_size)
    strongest = np.unravel_index(np.argmax(np.abs(scores)), scores.shape)
    others = met.copy()
    others[strongest] = others[strongest[::-1]] = 0.0
    if not _beyond_chance(scores, met, NO_SIGNAL):
        findings.unidentified(
            "The classifiers agree no more than guessing would make them, so the votes do not tell good from bad.",
            "More items, or better classifiers.",
        )
    elif not _beyond_chance(scores, others, NO_THIRD):
        names = [classifiers[int(place)] for place in strongest]
        findings.unidentified(
            f"Only {names[0]} and {names[1]} agree more than guessing would make them; it takes {NEEDED} such classifiers.",
            "More informative classifiers, or more items.",
        )
    elif not _beyond_chance(scores, others, WEAK_SIGNAL):
        findings.doubt(
            "The classifiers agree hardly more than guessing would make them.",
            "More items, or better classifiers.",
        )


def _beyond_chance(scores: Array, met: Array, level: float) -> bool:
    """Ask whether scores are too large (their squares) or too one-sided (their sum) for chance.

    The sum has the power where most classifiers are a little better than chance, the squares
    where some are worse; each gets half of the level. `met` holds each pair's items, less one; zero
    leaves a pair out. With few items the pairs hang together through the items: three correlations
    r_ij, r_jk, r_ki of guesses multiply to 1/d² on average (d = items − 1), their squares to
    4 (d − 1) / (d³ (d + 2)²) beyond independence. So both sums are skewed, and are held against
    gamma distributions of their own first three moments.
    """
    pairs = np.triu(met > 0)
    number = int(pairs.sum())
    if number == 0 or np.max(np.abs(scores[pairs])) < EXACT_SIGNAL:
        return False
    d = float(number / (1.0 / met[pairs]).sum())
    if d <= 1.0:
        return False  # two items: every correlation is 1 or −1
    triangles = _triangles(met > 0, number)
    own = float(scores[pairs].sum())
    skewed = 6.0 * triangles / np.sqrt(d) / number**1.5
    one_sided = _upper_tail(own / np.sqrt(number), skewed)
    squares = float((scores[pairs] ** 2).sum())
    variance = 2.0 * number * (d - 1.0) / (d + 2.0)
    third = 8.0 * number + 24.0 * triangles * (d - 1.0) / (d + 2.0) ** 2
    two_sided = _upper_tail((squares - number) / np.sqrt(variance), third / variance**1.5)
    return bool(min(one_sided, two_sided) <= level / 2)


def _triangles(met: NDArray[np.bool_], pairs: int) -> float:
    """Count the triples of classifiers that met pair by pair; of very many, the most that there can be."""
    if len(met) > MOST_COUNTED:
        return float(np.sqrt(2.0) / 3.0 * pairs**1.5)  # Kruskal–Katona
    links = met.astype(np.float32)
    return float(np.einsum("ij,ij->", links @ links, links, dtype=float)) / 6.0


def _upper_tail(standardised: float, skewness: float) -> float:
    """Chance of a larger value, of a gamma distribution with mean 0, variance 1 and this skewness."""
    from scipy.special import gammaincc, ndtr

    if skewness < NO_SKEW:
        return float(ndtr(-standardised))
    shape = 4.0 / skewness**2
    return float(gammaincc(shape, max(shape + standardised * np.sqrt(shape), 0.0)))


def _agreement(moments: Moments, sample_size: float) -> tuple[Array, Array]:
    """Standardised covariance of each pair, and its items less one; exact frequencies count as endless items."""
    variance = np.maximum(1.0 - moments.mean**2, 1e-12)
    counts = moments.pair_counts
    met = counts if np.isfinite(sample_size) else np.where(counts > 0, 1e16, 0.0)
    met = np.where(np.outer(~moments.constant, ~moments.constant), np.maximum(met - 1.0, 0.0), 0.0)
    np.fill_diagonal(met, 0.0)
    return moments.covariance * np.sqrt(met / np.outer(variance, variance)), met


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
    """Note an imbalance at its bound: it is a bound, not an estimate."""
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


def look_at_alarm(
    findings: Findings, tested: Alarm, classifiers: Sequence[str], *, asked: bool
) -> None:
    """Say whether the classifiers share errors, or that this cannot be seen."""
    if not asked:
        findings.doubt(
            'Whether the classifiers share errors was not looked at, as dependence="ignore" asked.',
            'Leave dependence= at "auto".',
        )
    elif not tested.testable:
        findings.doubt(
            f"{counted(len(classifiers), 'classifier')} like these leave nothing to test with whether they share errors.",
            "One or two more classifiers.",
        )
    elif tested.raised:
        first, second = (classifiers[place] for place in tested.pair)
        named = (
            "which of them, four or fewer cannot show."
            if len(classifiers) <= MOST_UNNAMED
            else f"{first} and {second} the most."
        )
        findings.doubt(
            f"The classifiers share errors beyond what their quality explains: {named}",
            "The prevalence, if it is known (prevalence=), or 50 to 100 gold labels of random items (gold=).",
        )


def look_at_model(
    findings: Findings,
    dependence: str,
    groups: Sequence[Sequence[str]],
    effective: float,
    classifiers: int,
    *,
    gold: int,
) -> None:
    """Say what was done about shared errors, and what the numbers then mean."""
    if dependence == "groups":
        named = "; ".join(" with ".join(group) for group in groups)
        findings.doubt(
            f"Some classifiers copy one another ({named}); each such group was weighed as one.",
            "Drop the copies, or add classifiers that were made apart from these.",
        )
    if dependence == "difficulty" and gold:
        findings.doubt(
            "They err together on the same hard items, as real classifiers do; "
            f"{counted(gold, 'gold label')} calibrate the rates and their intervals.",
            "More gold labels of random items narrow the intervals.",
        )
    elif dependence == "difficulty":
        findings.doubt(
            "They err together on the same hard items, as real classifiers do. The rates were tempered for it, "
            "but the intervals show sampling error only; the prevalence itself cannot be checked without labels.",
            "The prevalence, if it is known (prevalence=), or 50 to 100 gold labels of random items (gold=).",
        )
    if dependence != "independent" and effective < classifiers / 2:
        findings.doubt(
            f"Together the {classifiers} classifiers tell about as much as {effective:.1f} independent ones would.",
            "Classifiers that were made apart from these.",
        )


def look_at_copies(
    findings: Findings, alike: Sequence[Sequence[str]], *, apart: int, raised: bool
) -> None:
    """Say when some always vote alike, and nobody is left to show whether they are good or copies.

    With three informative classifiers that differ (`apart`), the pairs of the alike with the others
    would show copies, and raise the alarm.
    """
    if alike and (apart < NEEDED or raised):
        named = "; ".join(listed(names) for names in alike)
        findings.doubt(
            f"Some vote alike on every item ({named}): either they hardly ever err, or all but one are copies, "
            "and these votes cannot tell which.",
            "Drop the copies, or add classifiers that were made apart from these.",
        )


def look_at_informative(
    findings: Findings, informative: Sequence[str], classifiers: int, *, testable: bool
) -> None:
    """Say when only three classifiers are clear of chance: any votes of three fit the model."""
    if testable and len(informative) <= NEEDED:
        who = f"Only {listed(informative)}" if informative else "None"
        are = "is" if len(informative) == 1 else "are"
        findings.doubt(
            f"{who} of the {classifiers} classifiers {are} clearly better or worse than guessing; "
            "with so few, the votes cannot show whether they share errors.",
            "More informative classifiers, or more items.",
        )


def look_at_known(findings: Findings, what: str, given: float, asked: float) -> None:
    """Say that the votes ask for another value than the one that was given."""
    findings.doubt(
        f"What was given as known does not fit the votes: they ask for a {what} of {asked:.2f}, not of {given:.2f}.",
        "A look at whether the known values hold for these items.",
    )


def look_at_gold_met(findings: Findings, labels: int, hits: int, expected: float) -> None:
    """Say that gold labels are not what the answer says of their items."""
    findings.doubt(
        f"The gold labels contradict the answer: of {labels} it gets {hits} right, where {expected:.0f} were expected.",
        "A look at how the gold labels came about; if they are right, the classifiers share errors that no vote shows.",
    )


def look_at_gold(findings: Findings, labels: int, *, turned: bool) -> None:
    """Say what the gold labels changed, and when those that calibrate are few."""
    if turned:
        findings.doubt(
            "The gold labels turned the direction round: most classifiers vote against them.",
            "A look at the classifiers that are worse than chance.",
        )
    if 0 < labels < FEW_GOLD:
        findings.doubt(
            f"So few gold labels ({labels}) calibrate roughly only.",
            "50 to 100 gold labels of random items (gold=).",
        )


def look_at_intervals(findings: Findings, widths: Array | None, of_prevalence: float = 0.0) -> None:
    """Say when sampling error alone leaves the rates, or the prevalence, open."""
    if widths is None:
        findings.doubt(
            "Some rate is not determined by these votes at all, so there are no intervals.",
            "More informative classifiers, or more items.",
        )
    elif np.median(widths) > WIDE:
        findings.doubt(
            f"There are too few items: a typical rate is known to within ±{np.median(widths) / 2:.2f} only.",
            "More items (labelfree plan says how many).",
        )
    elif of_prevalence > WIDE:
        findings.doubt(
            f"There are too few items: the prevalence is known to within ±{of_prevalence / 2:.2f} only.",
            "More items (labelfree plan says how many), or the prevalence, if it is known (prevalence=).",
        )


def look_at_unanimity(findings: Findings, unanimous: Sequence[bool]) -> None:
    """Say when the consensus overrules classifiers that all agree."""
    if not all(unanimous):
        findings.doubt(
            "The consensus contradicts a unanimous vote: where all classifiers say one thing, it says the other.",
            "A few gold labels (gold=) would show who is right.",
        )
