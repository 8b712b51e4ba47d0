"""A few gold labels: items whose class is known calibrate the rest.

At full weight in the likelihood a few gold labels are drowned by thousands of unlabelled items, and
all that is wrong with the independent model stays wrong. So they are asked three smaller things:
how much too sure the model is and which way it leans (a logistic regression of the gold on its
log-odds ℓ, drawn towards the tempering τ); whether a classifier's own votes say more or less than
that (two offsets each); and what is then still missed on average, which corrects the intervals
(prediction-powered inference: Angelopoulos et al. 2023). The gold items must be a random sample of
all items.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labelfree._difficulty import log_odds, share, shifts_to
from labelfree._latent_class import Model
from labelfree._products import Block, Blocks
from labelfree._rates import clipped, expit, smallest_rate

Array = NDArray[np.float64]
Codes = NDArray[np.int8]

INTERCEPT_SPREAD = 1.5  # of the calibration's intercept ~ N(0, 1.5²)
SLOPE_SPREAD = 0.6  # of its slope ~ N(τ, (0.6 τ)²)
OFFSET_SPREAD = 0.5  # of a classifier's offsets ~ N(0, 0.5²)
TURNED = 3.0  # gain in log-posterior (e³ ≈ 20 to 1) from which the gold is taken to turn the sign
STEPS = 50
STILL = 1e-10


@dataclass(frozen=True)
class Gold:
    """What a few gold labels make of the estimate.

    Attributes
    ----------
    model : Model
        Calibrated rates and prevalence.
    intercept, slope : float
        Of the calibration: q = sigmoid(intercept + slope ℓ).
    line_covariance : (2, 2) array
        Of intercept and slope.
    offsets : (2, m) array
        Of each classifier's − and + votes.
    flipped : bool
        The gold contradicts the sign: the classes of the independent model were swapped first.
    centres, errors : dict of arrays
        Prediction-powered estimates, and their standard errors, of "sensitivity", "specificity",
        "balanced_accuracy", each (m,), and of "prevalence", (1,).
    """

    model: Model
    intercept: float
    slope: float
    line_covariance: Array
    offsets: Array
    flipped: bool
    centres: dict[str, Array]
    errors: dict[str, Array]

    def interval(self, what: str, level: float) -> Array:
        """Return the prediction-powered interval, (…, 2), at any level."""
        from scipy.special import ndtri

        reach = ndtri((1.0 + level) / 2.0) * self.errors[what]
        ends = np.stack([self.centres[what] - reach, self.centres[what] + reach], axis=-1)
        return np.clip(ends, 0.0, 1.0)


def gold_estimate(
    blocks: Blocks,
    model: Model,
    slope: float,
    codes: Codes,
    labels: NDArray[np.integer],
    prevalence: float | None = None,
) -> Gold:
    """Calibrate by gold labels.

    Parameters
    ----------
    blocks : Blocks
        All items, those with gold labels too.
    model : Model
        The posterior mode under independence.
    slope : float
        τ; one where the classifiers are independent.
    codes : (g, m) array of int8
        Votes on the gold items, −1 where missing.
    labels : (g,) array of int
        Their true classes, 0 or 1.
    prevalence : float, optional
        Pr(Y = +1), where it is known: the mean of q over all items.

    Returns
    -------
    Gold
    """
    gold = Block(np.ascontiguousarray(codes, dtype=np.int8), np.ones(len(codes)), 2)
    truth = np.asarray(labels, dtype=np.float64)
    odds = log_odds(gold, model)
    line, gain, doubt = _calibrated(odds, truth, slope)
    turned_line, turned_gain, turned_doubt = _calibrated(-odds, truth, slope)
    flipped = turned_gain > gain + TURNED
    if flipped:
        model, odds, line, doubt = turned(model), -odds, turned_line, turned_doubt
    if prevalence is not None:
        line, doubt = _through(blocks, model, line, doubt, prevalence)
    votes = np.stack([codes == 0, codes == 1]).astype(np.float64)  # (2, g, m)
    offsets = _offsets(line[0] + line[1] * odds, truth, votes)
    sums = _Sums.over(blocks, model, line, offsets)
    return _finished(sums, line, doubt, offsets, odds, truth, votes, flipped=flipped)


def turned(model: Model) -> Model:
    """Swap the two classes."""
    return Model(model.class_probabilities[::-1].copy(), model.confusion[:, ::-1].copy())


def _calibrated(odds: Array, truth: Array, slope: float) -> tuple[Array, float, Array]:
    """Logistic regression of the gold on ℓ under the priors.

    Returns (intercept, slope), its log-posterior, and its covariance there (of the last step's
    curvature).
    """
    design = np.stack([np.ones_like(odds), odds], axis=1)
    centre = np.array([0.0, slope])
    precision = np.array([INTERCEPT_SPREAD, SLOPE_SPREAD * slope]) ** -2.0

    def height(line: Array) -> float:
        linear = design @ line
        prior = precision @ (line - centre) ** 2 / 2
        return float(truth @ linear - np.logaddexp(0.0, linear).sum() - prior)

    line, best, curvature = centre, height(centre), np.diag(precision)
    for _ in range(STEPS):
        q = expit(design @ line)
        gradient = design.T @ (truth - q) - precision * (line - centre)
        curvature = design.T @ (design * (q * (1.0 - q))[:, None]) + np.diag(precision)
        step = np.linalg.solve(curvature, gradient)
        while (reached := height(line + step)) < best and np.abs(step).max() > STILL:
            step = step / 2
        line, best = line + step, reached
        if np.abs(step).max() <= STILL:
            break
    return line, best, np.asarray(np.linalg.inv(curvature), dtype=np.float64)


def _through(
    blocks: Blocks, model: Model, line: Array, doubt: Array, prevalence: float
) -> tuple[Array, Array]:
    """Shift the line so that the mean of q over all items is the known prevalence.

    The intercept then is a function of the slope alone, with derivative −E[q (1 − q) ℓ] / E[q (1 − q)],
    and the slope is known as well as the curvature along that line says.
    """
    shift = float(shifts_to(blocks, model, line[1], np.array([prevalence]))[0])

    def work(block: Block) -> tuple[float, float]:
        odds = log_odds(block, model)
        q = expit(shift + line[1] * odds)
        weight = block.counts * q * (1.0 - q)
        return float(weight.sum()), float(weight @ odds)

    total, weighted = blocks.total(work)
    along = np.array([-weighted / max(total, 1e-12), 1.0])
    variance = 1.0 / float(along @ np.linalg.solve(doubt, along))
    return np.array([shift, line[1]]), np.asarray(variance * np.outer(along, along))


def by_prevalence(
    blocks: Blocks, model: Model, gold: Gold, prevalences: Array
) -> tuple[Array, Array]:
    """Sensitivities and specificities, (G, m) each, calibrated and shifted to each of G assumed prevalences."""
    spread = blocks.thinned()
    rows = []
    for shift in shifts_to(spread, model, gold.slope, np.asarray(prevalences, dtype=np.float64)):
        sums = _Sums.over(spread, model, np.array([shift, gold.slope]), gold.offsets)
        rows.append([clipped(rate, sums.smallest) for rate in sums.rates()])
    both = np.array(rows)
    return both[:, 0], both[:, 1]


def _offsets(linear: Array, truth: Array, votes: Array) -> Array:
    """Offset of each classifier's − and + votes, (2, m): how far the gold under them is from q.

    Each is the mode of Σ log Pr(truth | sigmoid(linear + offset)) − offset² / (2 · 0.5²), over the
    gold items with that vote; Newton from zero converges, as the prior dominates the curvature.
    """
    offsets = np.zeros((2, votes.shape[2]))
    for _ in range(STEPS):
        q = expit(linear[:, None] + offsets[:, None, :])  # (2, g, m)
        gradient = (votes * (truth[:, None] - q)).sum(axis=1) - offsets / OFFSET_SPREAD**2
        curvature = (votes * q * (1.0 - q)).sum(axis=1) + OFFSET_SPREAD**-2.0
        step = np.clip(gradient / curvature, -1.0, 1.0)
        offsets += step
        if np.abs(step).max() <= STILL:
            break
    return offsets


@dataclass(frozen=True)
class _Sums:
    """Means over all items of what the rates and their standard errors need.

    With q_i the probability of the positive class as classifier i's own term has it, means over all
    items of q_i, and of q_i², where i voted − (first) and + (second), and where it voted at all.
    """

    items: float
    smallest: float
    first: Array  # (2, m) mean of q_i 1[f_i]
    second: Array  # (2, m) mean of q_i² 1[f_i]
    votes: Array  # (2, m) mean of 1[f_i]
    share: float  # mean of q
    square: float  # mean of q²

    @classmethod
    def over(cls, blocks: Blocks, model: Model, line: Array, offsets: Array) -> _Sums:
        def work(block: Block) -> tuple[Array, Array, Array, Array]:
            linear = line[0] + line[1] * log_odds(block, model)
            q = expit(linear)
            m = block.classifiers
            first, second, votes = np.empty((2, m)), np.empty((2, m)), np.empty((2, m))
            for vote, chosen in enumerate(_chosen(block)):
                own = expit(linear[:, None] + offsets[vote])
                first[vote] = block.counts @ (chosen * own)
                second[vote] = block.counts @ (chosen * own**2)
                votes[vote] = block.counts @ chosen
            whole = np.array([block.counts.sum(), block.counts @ q, block.counts @ q**2])
            return first, second, votes, whole

        first, second, votes, (items, total, square) = blocks.total(work, narrow=True)
        return cls(
            float(items),
            smallest_rate(blocks.tally.sample_size),
            first / items,
            second / items,
            votes / items,
            float(total / items),
            float(square / items),
        )

    def rates(self) -> tuple[Array, Array]:
        """ψ = E[q 1+] / E[q 1voted], and η likewise of − with 1 − q."""
        positive, negative = self.first, self.votes - self.first
        return (
            share(positive[1], positive.sum(axis=0)),
            share(negative[0], negative.sum(axis=0)),
        )


def _chosen(block: Block) -> tuple[Array, Array]:
    """Who voted −, and who +, as (patterns, m)."""
    ones = block.ones if isinstance(block.ones, np.ndarray) else block.ones.toarray()
    if block.voted is None:
        return 1.0 - ones, ones
    voted = block.voted if isinstance(block.voted, np.ndarray) else block.voted.toarray()
    return voted - ones, ones


def _finished(
    sums: _Sums,
    line: Array,
    line_covariance: Array,
    offsets: Array,
    odds: Array,
    truth: Array,
    votes: Array,
    *,
    flipped: bool,
) -> Gold:
    """Rates, and the prediction-powered correction of each by its own term.

    ψ = E[q 1+] / E[q 1voted] has the influence q (1+ − ψ) / E[q 1voted]; likewise 1 − η with 1 − q.
    """
    positive, negative = sums.first, sums.votes - sums.first
    sensitivity, specificity = sums.rates()
    linear = line[0] + line[1] * odds
    own = expit(linear[:, None] + np.einsum("vgm,vm->gm", votes, offsets))
    residual = (truth[:, None] - own) * votes.sum(axis=0)
    # Weight of q in the influence of each quantity, by vote: (2, m).
    of_sensitivity = np.stack([-sensitivity, 1.0 - sensitivity]) / _whole(positive)
    of_specificity = -np.stack([1.0 - specificity, -specificity]) / _whole(negative)
    of_balanced = (of_sensitivity + of_specificity) / 2
    estimates = {
        "sensitivity": (sensitivity, of_sensitivity),
        "specificity": (specificity, of_specificity),
        "balanced_accuracy": ((sensitivity + specificity) / 2, of_balanced),
    }
    # What of the influence does not move with q: 1 − q weighs (1− − η), so its constant part is that.
    fixed = {
        "sensitivity": np.zeros_like(of_sensitivity),
        "specificity": -of_specificity,
        "balanced_accuracy": -of_specificity / 2,
    }
    centres, errors = {}, {}
    for name, (value, weight) in estimates.items():
        terms = residual * np.einsum("vgm,vm->gm", votes, weight)
        centres[name] = value + terms.mean(axis=0)
        expected = (weight**2 * (sums.first - sums.second)).sum(axis=0)
        errors[name] = np.sqrt(
            _mean_variance(terms, expected)
            + _model_variance(sums, weight, fixed[name]) / sums.items
            + sums.smallest**2  # a constant classifier's rate is known no closer than this
        )
    missed = truth - expit(linear)
    centres["prevalence"] = np.array([sums.share + missed.mean()])
    spread = sums.square - sums.share**2
    doubt = _mean_variance(missed[:, None], np.array([sums.share - sums.square]))
    errors["prevalence"] = np.sqrt(doubt + spread / sums.items)
    both = (clipped(rate, sums.smallest) for rate in (sensitivity, specificity))
    model = Model.binary(2.0 * sums.share - 1.0, *both)
    return Gold(
        model,
        float(line[0]),
        float(line[1]),
        line_covariance,
        offsets,
        flipped,
        centres,
        errors,
    )


def _whole(parts: Array) -> Array:
    """Whole of the parts, held off zero where a classifier never voted."""
    return np.asarray(np.maximum(parts.sum(axis=0), 1e-12))


def _mean_variance(terms: Array, expected: Array) -> Array:
    """Variance of the mean of each column: the larger of what is seen and what the calibration expects.

    Among few gold items a rare class, or a rare error, may not turn up at all; the variance seen is
    then far too small. Expected is E[q (1 − q) weight²], over all items.
    """
    size = len(terms)
    seen = terms.var(axis=0) * size / max(size - 1, 1)
    return np.asarray(np.maximum(seen, expected) / size)


def _model_variance(sums: _Sums, weight: Array, fixed: Array) -> Array:
    """Variance over all items of the influence fixed + weight q, whose mean is zero."""
    return np.asarray(
        (weight**2 * sums.second + 2 * weight * fixed * sums.first + fixed**2 * sums.votes).sum(
            axis=0
        )
    )
