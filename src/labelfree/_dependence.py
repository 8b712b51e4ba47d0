"""Do the classifiers err independently? Alarm, and how many independent ones they are worth.

Under independence given the class, the model fits every pair's covariance up to sampling error.
The alarm is the largest standardised residual of a pair, and M₂ (Maydeu-Olivares and Joe 2005) the
sum over all of them in the metric of their covariance. Both need only moments given the class, in
closed form: no table of 2^m patterns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from labelfree._groups import MOST_SCORED, pointer
from labelfree._intervals import covariance_of_logits
from labelfree._latent_class import Fit, Model, Prior, fit
from labelfree._moments import Moments, moments
from labelfree._products import Blocks
from labelfree._tally import Tally

Array = NDArray[np.float64]

ALARM_LEVEL = 0.05
FEW_ITEMS = 500  # below, no bound holds and an alarm is always checked by simulation
MOST_DRAWN = 500_000  # votes of one simulated data set; beyond, the bound decides by itself
FEW_CLASSIFIERS = (
    50  # up to here drawing votes costs the most, beyond it the information of their rates
)
REPLICATES = 39  # enough for a p-value of 1/40; drawing stops once independence stands
MOST_JOINT = 40  # classifiers for which M₂ is computed along with the alarm; its cost grows with m⁶
LEAST_LEFT = 0.15  # of the variance of a covariance after fitting, for a pair to be tested as it is
LEAST_AT_ALL = 1e-4  # of it, below which rounding has its say
CLEAR_OF_CURVATURE = 3.0  # times the second order of fitting, from which less will do
EXACT_RESIDUAL = 1e-9  # of a covariance: what rounding may leave where frequencies are exact


@dataclass(frozen=True)
class Alarm:
    """What the residuals of the independent model say.

    Attributes
    ----------
    testable : bool
        Whether there is anything to test: three classifiers fit any votes.
    p_value : float
        Of the largest standardised residual, corrected for the number of pairs.
    residuals : (m, m) array
        Standardised residual of each pair's covariance; zero where there is none.
    pair : tuple of int
        Places of the two classifiers with the largest.
    joint, joint_freedom, joint_p_value : float, int, float, or None
        M₂, its degrees of freedom and p-value; None with missing votes or very many classifiers.
    """

    testable: bool
    p_value: float
    residuals: Array
    pair: tuple[int, int]
    joint: float | None = None
    joint_freedom: int | None = None
    joint_p_value: float | None = None

    @property
    def raised(self) -> bool:
        """Whether independence is refused at the 5 % level."""
        return self.testable and self.p_value <= ALARM_LEVEL


def alarm(
    blocks: Blocks, seen: Moments, fitted: Fit, prior: Prior, covariance: Array | None
) -> Alarm:
    """Test the independent model against the pairs' covariances.

    Parameters
    ----------
    blocks : Blocks
    seen : Moments
    fitted : Fit
        Of the independent model.
    prior : Prior
        It was fitted under.
    covariance : (1 + 2m, 1 + 2m) array or None
        Of its logits; None where its information is singular, which leaves nothing to test with.

    Returns
    -------
    Alarm
    """
    m = len(seen.mean)
    if m <= 3 or covariance is None:
        return Alarm(testable=False, p_value=1.0, residuals=np.zeros((m, m)), pair=(0, 1))
    residuals = standardised_residuals(seen, fitted.model, covariance, blocks.tally.sample_size)
    found = _judged(residuals, seen)
    if not np.isfinite(blocks.tally.sample_size):
        return replace(found, testable=True)  # exact frequencies fit exactly, or not at all
    if found.raised:
        found = _confirmed(blocks.tally, seen, fitted.model, prior, found)
    if (
        m <= MOST_JOINT
        and np.isfinite(blocks.tally.sample_size)
        and (seen.pair_counts == blocks.tally.items).all()
    ):
        statistic, freedom = joint_residual(seen, fitted.model, prior, blocks.tally.items)
        p_value = _upper_tail(statistic, freedom)
        return Alarm(
            found.testable, found.p_value, residuals, found.pair, statistic, freedom, p_value
        )
    return found


def _upper_tail(statistic: float, freedom: int) -> float:
    from scipy.special import chdtrc

    return float(chdtrc(freedom, statistic)) if freedom > 0 else 1.0


def _judged(residuals: Array, seen: Moments) -> Alarm:
    """Bonferroni over the pairs that have a residual; the pointer names the pair.

    The pointer, as the largest residual of a good classifier's copy often is its partner's with
    another: the fit gives way where that costs least.
    """
    from scipy.special import ndtr

    size = np.abs(residuals)
    pairs = int((size > 0).sum()) // 2
    p_value = min(1.0, 2 * max(pairs, 1) * float(ndtr(-size.max())))
    score = size
    if p_value <= ALARM_LEVEL and 4 < len(size) <= MOST_SCORED:
        score = pointer(seen.covariance)
    place = np.unravel_index(int(np.argmax(score)), score.shape)
    return Alarm(pairs > 0, p_value, residuals, (int(min(place)), int(max(place))))


def standardised_residuals(
    seen: Moments,
    model: Model,
    covariance: Array,
    sample_size: float,
    apart: NDArray[np.bool_] | None = None,
) -> Array:
    """Residual covariance of each pair over its standard error.

    n Var(e) = Ξ − n Δ C Δᵀ: the variance of the sample covariance, less what fitting takes up.
    With d_i = m_i1 − m_i0 the covariance of a pair is p(1−p) d_i d_j, so that Δ has five entries.
    Of pairs that are not `apart`, the model takes the joint votes as they are: their rates do not give
    way to their covariance, and fitting takes up nothing of it.
    """
    p, mean_given, difference = _given_class(model)
    fitted_mean = p @ mean_given
    fitted = p[0] * p[1] * np.outer(difference, difference)
    square = 1 - 2 * fitted_mean * mean_given + fitted_mean**2  # E((f − μ)² given the class)
    spread = np.einsum("y,yi,yj->ij", p, square, square) - fitted**2
    slopes = _slopes_of_difference(model)
    among = slopes @ covariance @ slopes.T
    with_class = slopes @ covariance[:, 0]
    tilt = p[0] * p[1] * (p[0] - p[1]) * np.outer(difference, difference)
    scale = p[0] * p[1]
    own = scale * np.outer(
        np.ones_like(difference), difference
    )  # multiplies the slope of the row's classifier
    taken = (
        tilt**2 * covariance[0, 0]
        + own**2 * np.diagonal(among)[:, None]
        + own.T**2 * np.diagonal(among)[None, :]
        + 2 * tilt * (own * with_class[:, None] + own.T * with_class[None, :])
        + 2 * own * own.T * among
    )
    live = ~seen.constant
    pairs = np.outer(live, live) & (seen.pair_counts > 0)
    np.fill_diagonal(pairs, val=False)
    error = np.where(pairs, seen.covariance - fitted, 0.0)
    if not np.isfinite(sample_size):
        return np.where(np.abs(error) > EXACT_RESIDUAL, np.sign(error) * 1e3, 0.0)
    whole = spread / np.maximum(seen.pair_counts, 1.0)
    variance = whole - (taken if apart is None else np.where(apart, taken, 0.0))
    # Where fitting takes up nearly all of the variance, what is left may be fitting's own second
    # order: then the pair tests nothing, and that badly (.2 of data sets alarmed at m = 5). Of good
    # classifiers little is left as well, but the rates are known so well that it is no artefact.
    curvature = _second_order(p, difference, np.diagonal(among), covariance[0, 0])
    tested = pairs & (variance > LEAST_LEFT * whole)
    tested |= pairs & (
        variance > np.maximum(LEAST_AT_ALL * whole, (CLEAR_OF_CURVATURE * curvature) ** 2)
    )
    return np.asarray(np.where(tested, error / np.sqrt(np.where(tested, variance, 1.0)), 0.0))


def _second_order(p: Array, difference: Array, of_difference: Array, of_class: float) -> Array:
    """Size of the second-order terms of p(1−p) d_i d_j in the errors of p and d, pair by pair."""
    scale = p[0] * p[1]
    error, size = np.sqrt(np.maximum(of_difference, 0.0)), np.abs(difference)
    of_share = scale * np.sqrt(max(of_class, 0.0))
    mixed = np.outer(size, error)
    return np.asarray(
        scale * np.outer(error, error)
        + of_share * abs(p[0] - p[1]) * (mixed + mixed.T)
        + of_share**2 * np.outer(size, size)
    )


def _given_class(model: Model) -> tuple[Array, Array, Array]:
    """Class probabilities, mean votes given the class as (2, m), and their difference."""
    mean_given = 2 * model.confusion[:, :, 1].T - 1
    return model.class_probabilities, mean_given, mean_given[1] - mean_given[0]


def _slopes_of_difference(model: Model) -> Array:
    """Derivatives of d_i = m_i1 − m_i0 by the logits, (m, 1 + 2m)."""
    rate = model.confusion[:, :, 1]
    slope = 2 * rate * (1 - rate)
    m = len(rate)
    slopes = np.zeros((m, 1 + 2 * m))
    places = np.arange(m)
    slopes[places, 1 + 2 * places] = -slope[:, 0]
    slopes[places, 2 + 2 * places] = slope[:, 1]
    return slopes


def joint_residual(seen: Moments, model: Model, prior: Prior, items: float) -> tuple[float, int]:
    """M₂: residuals of all means and pairs in the metric that fitting leaves; and its degrees of freedom.

    Means and pairs leave one direction of the parameters open, the imbalance (JNK Lemmas 1 and 2),
    so that m(m − 3)/2 degrees of freedom remain, as many with the prevalence known as without.

    Votes are ±1, so a product of two monomials is the monomial of the classifiers in one of them
    only, and every fourth moment given the class is a product of means.
    """
    p, mean_given, difference = _given_class(model)
    m = len(difference)
    first, second = np.triu_indices(m, 1)
    members = np.zeros((m + len(first), m))
    members[np.arange(m), np.arange(m)] = 1
    members[m + np.arange(len(first)), first] = members[m + np.arange(len(first)), second] = 1
    raw = seen.covariance + np.outer(seen.mean, seen.mean)
    observed = np.concatenate([seen.mean, raw[first, second]])
    by_class = np.stack([np.concatenate([mean, mean[first] * mean[second]]) for mean in mean_given])
    fitted = p @ by_class
    second_moment = sum(p[y] * _products_of_monomials(members, mean_given[y]) for y in (0, 1))
    spread = second_moment - np.outer(fitted, fitted)
    slopes = _slopes_of_monomials(model, mean_given, by_class, first, second)
    if prior.fixed_classes:
        slopes = slopes[:, 1:]
    # Project the residuals, whitened, off the directions that the parameters can fit.
    white = _whitened(spread, np.column_stack([observed - fitted, slopes]))
    directions, sizes, _ = np.linalg.svd(white[:, 1:], full_matrices=False)
    span = directions[:, sizes > 1e-8 * sizes[0]]
    left = white[:, 0] - span @ (span.T @ white[:, 0])
    return float(items * left @ left), int(len(white) - span.shape[1])


def _whitened(spread: Array, columns: Array) -> Array:
    """Columns in units in which `spread` is the identity; directions without any spread are left out."""
    try:
        return np.asarray(np.linalg.solve(np.linalg.cholesky(spread), columns))
    except np.linalg.LinAlgError:  # a constant classifier, or rates of 0 or 1
        values, vectors = np.linalg.eigh(spread)
        kept = values > 1e-10 * values[-1]
        return np.asarray((vectors[:, kept] / np.sqrt(values[kept])).T @ columns)


def _products_of_monomials(members: Array, mean: Array) -> Array:
    """E(product of two monomials), for all pairs of monomials, given the class."""
    size = np.log(np.maximum(np.abs(mean), 1e-100))
    negative = (mean < 0).astype(np.float64)
    total = []
    for weight in (size, negative):
        alone = members @ weight
        total.append(alone[:, None] + alone[None, :] - 2 * (members * weight) @ members.T)
    return np.asarray(np.exp(total[0]) * np.where(np.rint(total[1]) % 2 == 1, -1.0, 1.0))


def _slopes_of_monomials(
    model: Model,
    mean_given: Array,
    by_class: Array,
    first: NDArray[np.intp],
    second: NDArray[np.intp],
) -> Array:
    """Derivatives of the fitted means and pair products by the logits."""
    p = model.class_probabilities
    m = mean_given.shape[1]
    slopes = np.zeros((by_class.shape[1], 1 + 2 * m))
    slopes[:, 0] = p[0] * p[1] * (by_class[1] - by_class[0])
    rate = model.confusion[:, :, 1]
    slope = 2 * rate * (1 - rate)
    pairs = m + np.arange(len(first))
    for y in (0, 1):
        slopes[np.arange(m), 1 + 2 * np.arange(m) + y] = p[y] * slope[:, y]
        slopes[pairs, 1 + 2 * first + y] = p[y] * slope[first, y] * mean_given[y, second]
        slopes[pairs, 1 + 2 * second + y] = p[y] * slope[second, y] * mean_given[y, first]
    return slopes


def _confirmed(tally: Tally, seen: Moments, model: Model, prior: Prior, found: Alarm) -> Alarm:
    """Ask whether an alarm stands without the normal approximation.

    Two good classifiers seldom err together, and one such item more than expected makes a large
    residual: at rates of .8 to .99 the approximation alone alarmed in 19 % of data sets of 600
    independent items, and in 10 % of those of 5000. A bound settles most alarms at once; the others
    are compared with simulated votes.
    """
    few = tally.sample_size < FEW_ITEMS
    bound = 1.0 if few else bounded_p_value(seen, model, found.residuals)
    if bound <= ALARM_LEVEL:
        return found
    m = len(seen.mean)
    if few or tally.items * m * max(1.0, m / FEW_CLASSIFIERS) <= MOST_DRAWN:
        return _simulated(tally, model, prior, found)
    return replace(found, p_value=bound)


def bounded_p_value(seen: Moments, model: Model, residuals: Array) -> float:
    """Bound the p-value of the largest residual by Bernstein's inequality, over all pairs.

    Given the class, an item moves the covariance of a pair by (f_i − m_i)(f_j − m_j) / n, at most
    b standard errors of it; then Pr(|e| ≥ z) ≤ 2 exp(−z² / (2 + 2bz/3)).

    Parameters
    ----------
    seen : Moments
    model : Model
        Of independent classifiers.
    residuals : (m, m) array
        Standardised; zero where a pair is not tested.

    Returns
    -------
    float
    """
    p, mean_given, _ = _given_class(model)
    one, other = np.nonzero(np.triu(residuals))
    if not len(one):
        return 1.0
    size, spread, reach = np.abs(residuals[one, other]), 1 - mean_given**2, 1 + np.abs(mean_given)
    variance = p @ (spread[:, one] * spread[:, other])
    with np.errstate(divide="ignore"):
        share = (reach[:, one] * reach[:, other]).max(axis=0) / np.sqrt(
            seen.pair_counts[one, other] * variance
        )
    tails = 2 * np.exp(-(size**2) / (2 + 2 / 3 * share * size))
    return min(1.0, len(one) * float(tails.min()))


def _simulated(tally: Tally, model: Model, prior: Prior, found: Alarm) -> Alarm:
    """Compare the largest residual with those of votes drawn from the fitted model, gaps where they are."""
    random = np.random.default_rng(0)
    codes = tally.codes()
    table = codes if isinstance(codes, np.ndarray) else codes.toarray().astype(np.int8) - np.int8(1)
    table = np.repeat(table, np.rint(tally.counts).astype(np.int64), axis=0)
    observed = float(np.max(np.abs(found.residuals)))
    beyond = 0
    for _ in range(REPLICATES):
        truth = (random.random(len(table)) < model.class_probabilities[1]).astype(np.int64)
        chance = model.confusion[:, :, 1].T[truth]
        drawn = np.where(table >= 0, random.random(table.shape) < chance, -1)
        again = Blocks(Tally.from_codes(drawn, np.ones(len(drawn))))
        refitted = fit(again, model, prior)
        covariance = covariance_of_logits(again, refitted.model, prior)
        if covariance is not None:
            residuals = standardised_residuals(
                moments(again), refitted.model, covariance, again.tally.sample_size
            )
            beyond += float(np.max(np.abs(residuals))) >= observed
        if (1 + beyond) / (REPLICATES + 1) > ALARM_LEVEL:
            break
    p_value = max(found.p_value, (1 + beyond) / (REPLICATES + 1))
    return Alarm(found.testable, p_value, found.residuals, found.pair)


def separation(sensitivity: Array, specificity: Array) -> Array:
    """Expected log-odds that one classifier's vote adds, positive less negative items (its J-divergence)."""
    odds = np.log(sensitivity / (1 - sensitivity)) + np.log(specificity / (1 - specificity))
    return np.asarray((sensitivity + specificity - 1) * odds)


def effective_number(alone: Array, together: float) -> float:
    """As many independent classifiers, of these classifiers' mean separation, as separate what they do together.

    Parameters
    ----------
    alone : (m,) array
        Separation of each classifier by itself.
    together : float
        Separation that their votes reach jointly, under the model that was chosen.
    """
    total = float(alone.sum())
    if total <= 0:
        return 1.0
    return float(np.clip(len(alone) * together / total, 1.0, len(alone)))
