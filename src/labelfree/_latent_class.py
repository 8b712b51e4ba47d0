"""The likelihood of the latent-class model: EM, Newton, and its information.

An item's hidden class y has probability p_y; given y, classifier i votes v with probability
θ_iyv, independently of the others (Dawid and Skene 1979; JNK eq. for the full likelihood). Each
probability may carry pseudo-counts: with a of them in every cell the answer is the posterior mode
under Beta(1 + a, 1 + a), or Dirichlet, priors.

Newton works on the logits log(p_y / p_0) and log(θ_iyv / θ_iy0). There the complete data form an
exponential family, so that the gradient is expected minus fitted counts, and the observed
information is that of the complete data less the variance that the hidden class adds (Louis 1982).
Items whose class is certain add no such variance and are passed over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelfree._products import Block, Blocks

Array = NDArray[np.float64]

FLOOR = 1e-300  # keeps the logarithm of a probability of zero finite
CERTAIN = 1e-5  # other classes' share of an item below which it adds next to no information
EM_TOLERANCE = 1e-10  # largest change of a probability in a round that counts as standing still
NEWTON_GAIN = 1e-22  # expected gain an item below which Newton's last step ends the search
MOST_EM_ROUNDS = 2000
MOST_NEWTON_PARAMETERS = 3000  # beyond, the information matrix is too large to factor at every step
NEAR = 1e-6  # expected gain an item below which the information at hand serves once more
MOST_NEWTON_STEPS = 30
LONGEST_STEP = 2.0  # of a logit in one Newton step


@dataclass(frozen=True)
class Model:
    """Parameters of the latent-class model.

    Attributes
    ----------
    class_probabilities : (K,) array
    confusion : (m, K, K) array
        [classifier, true class, voted class].
    """

    class_probabilities: Array
    confusion: Array

    @classmethod
    def binary(cls, imbalance: float, sensitivity: Array, specificity: Array) -> Model:
        """Make the model of two classes from imbalance and rates."""
        confusion = np.stack(
            [
                np.stack([specificity, 1 - specificity], axis=1),
                np.stack([1 - sensitivity, sensitivity], axis=1),
            ],
            axis=1,
        )
        return cls(np.array([(1 - imbalance) / 2, (1 + imbalance) / 2]), confusion)

    def tables(self) -> Array:
        """Log-probabilities of votes as (classifier, vote, class), ready for scoring."""
        return np.log(np.maximum(self.confusion, FLOOR)).transpose(0, 2, 1)

    def log_prior(self) -> Array:
        """Log-probabilities of the classes."""
        return np.log(np.maximum(self.class_probabilities, FLOOR))


@dataclass(frozen=True)
class Prior:
    """Pseudo-counts, and what is known and stays fixed.

    Attributes
    ----------
    classes : (K,) array
    confusion : (m, K, K) array
    fixed_classes : bool
        The class probabilities are known.
    fixed_rates : (m, K) array of bool, optional
        Rows [classifier, true class] of the confusion matrices that are known.
    """

    classes: Array
    confusion: Array
    fixed_classes: bool = False
    fixed_rates: NDArray[np.bool_] | None = None

    @classmethod
    def flat(
        cls, classifiers: int, classes: int, pseudo_count: float, *, fixed_classes: bool = False
    ) -> Prior:
        """Give every cell the same pseudo-count."""
        return cls(
            np.full(classes, pseudo_count),
            np.full((classifiers, classes, classes), pseudo_count),
            fixed_classes,
        )


@dataclass(frozen=True)
class Fit:
    """Where the search for the posterior mode ended.

    Attributes
    ----------
    model : Model
    log_likelihood : float
        Of the votes, at the model.
    converged : bool
        Whether a further step would change nothing that matters.
    rounds : int
        Rounds of EM.
    """

    model: Model
    log_likelihood: float
    converged: bool
    rounds: int


@dataclass(frozen=True)
class _Expected:
    """What one pass tells: the log-likelihood and the expected counts of classes and votes."""

    log_likelihood: float
    classes: Array  # (K,)
    votes: Array  # (m, K, K) as [classifier, true, voted]


def fit(blocks: Blocks, start: Model, prior: Prior, most_rounds: int = MOST_EM_ROUNDS) -> Fit:
    """Climb to the posterior mode: a little EM, then Newton; more EM wherever Newton is not safe.

    Parameters
    ----------
    blocks : Blocks
    start : Model
        The mode that is found is the one uphill from here.
    prior : Prior
    most_rounds : int
        Rounds of EM after which the search gives up and says so.

    Returns
    -------
    Fit
    """
    model, rounds, patience = start, 0, 2
    expected = expect(blocks, model)
    while rounds < most_rounds:
        for _ in range(patience):
            new = maximised(expected, model, prior)
            still = _largest_change(model, new) <= EM_TOLERANCE
            model, expected, rounds = new, expect(blocks, new), rounds + 1
            if still:
                break
        # EM may stand still far from the mode, as its steps can be a hundredth of what is left to
        # go; Newton goes the rest of the way, where it can.
        model, expected, done = _newton(blocks, model, prior, expected)
        if done or still:
            return Fit(model, expected.log_likelihood, converged=True, rounds=rounds)
        patience = min(patience * 2, 64)
    return Fit(model, expected.log_likelihood, converged=False, rounds=rounds)


def climb(blocks: Blocks, start: Model, prior: Prior, most_rounds: int = MOST_EM_ROUNDS) -> Fit:
    """Do EM alone, for its own sake: :func:`fit` reaches the same place in far fewer passes.

    Parameters
    ----------
    blocks : Blocks
    start : Model
    prior : Prior
    most_rounds : int
        None leaves the start as it is.

    Returns
    -------
    Fit
    """
    model, expected, still, rounds = start, expect(blocks, start), False, 0
    while rounds < most_rounds and not still:
        new = maximised(expected, model, prior)
        still = _largest_change(model, new) <= EM_TOLERANCE
        model, expected, rounds = new, expect(blocks, new), rounds + 1
    return Fit(model, expected.log_likelihood, converged=still, rounds=rounds)


def expect(blocks: Blocks, model: Model) -> _Expected:
    """E-step: every pattern's class shares, summed into expected counts, in one pass."""
    tables, log_prior = model.tables(), model.log_prior()

    def work(block: Block) -> tuple[float, Array, Array]:
        total, shares = class_shares(block, tables, log_prior)
        weighted = shares * block.counts[:, None]
        return float(block.counts @ total), weighted.sum(axis=0), block.gather(weighted)

    log_likelihood, classes, votes = blocks.total(work)
    return _Expected(log_likelihood, classes, votes.transpose(0, 2, 1))


def class_shares(block: Block, tables: Array, log_prior: Array) -> tuple[Array, Array]:
    """Return each pattern's log-probability and the posterior probabilities of its classes."""
    joint = np.ascontiguousarray(block.score(tables).T)  # (K, patterns): sums run along rows
    joint += log_prior[:, None]
    top = joint.max(axis=0)
    shares = np.exp(joint - top)
    total = shares.sum(axis=0)
    shares /= total
    return top + np.log(total), shares.T


def maximised(expected: _Expected, model: Model, prior: Prior) -> Model:
    """M-step: expected counts plus pseudo-counts, as probabilities."""
    classes = expected.classes + prior.classes
    p = model.class_probabilities if prior.fixed_classes else classes / classes.sum()
    votes = np.maximum(expected.votes, 0.0) + prior.confusion
    total = votes.sum(axis=2, keepdims=True)
    estimated = total > 0
    if prior.fixed_rates is not None:
        estimated &= ~prior.fixed_rates[:, :, None]
    return Model(p, np.divide(votes, total, out=model.confusion.copy(), where=estimated))


def _largest_change(old: Model, new: Model) -> float:
    classes = np.max(np.abs(old.class_probabilities - new.class_probabilities))
    return float(max(classes, np.max(np.abs(old.confusion - new.confusion), initial=0.0)))


def _newton(
    blocks: Blocks, model: Model, prior: Prior, expected: _Expected
) -> tuple[Model, _Expected, bool]:
    """Take Newton steps while the information is positive definite and the objective rises.

    The information is computed anew only while the steps are large; near the mode an old one
    serves, as the gradient alone decides where the search ends.
    """
    if model.confusion[:, :, 1:].size > MOST_NEWTON_PARAMETERS:
        return model, expected, False
    items = blocks.tally.items
    free = free_logits(model, prior)
    gain, matrix = np.inf, np.empty(0)
    for _ in range(MOST_NEWTON_STEPS):
        if gain > NEAR * items:
            matrix = information(blocks, model, prior, expected)[np.ix_(free, free)]
        gradient = _gradient(expected, model, prior)[free]
        move = _solved(matrix, gradient)
        if move is None:
            return model, expected, False
        gain = float(gradient @ move)
        step = np.zeros(len(free))
        step[free] = move * min(
            1.0, LONGEST_STEP / max(float(np.max(np.abs(move), initial=0.0)), FLOOR)
        )
        if gain <= NEWTON_GAIN * items:
            return _moved(model, step), expected, True
        uphill = _uphill(blocks, model, prior, expected, step)
        if uphill is None:
            return model, expected, False
        model, expected = uphill
    return model, expected, False


def _uphill(
    blocks: Blocks, model: Model, prior: Prior, expected: _Expected, step: Array
) -> tuple[Model, _Expected] | None:
    """Take the step, or the part of it that raises the log-posterior."""
    before = expected.log_likelihood + log_prior_density(model, prior)
    for _ in range(4):
        new = _moved(model, step)
        reached = expect(blocks, new)
        if reached.log_likelihood + log_prior_density(new, prior) >= before - 1e-12 * abs(before):
            return new, reached
        step = step / 4
    return None


def _solved(matrix: Array, gradient: Array) -> Array | None:
    """Solve for the Newton step, or say that the information is not positive definite."""
    scale = np.sqrt(np.maximum(np.diagonal(matrix), 0.0))
    if not (scale > 0).all():
        return None
    try:
        factor = np.linalg.cholesky(matrix / np.outer(scale, scale))
    except np.linalg.LinAlgError:
        return None
    if np.diagonal(factor).min(initial=1.0) < 1e-7:
        return None
    return np.asarray(np.linalg.solve(factor.T, np.linalg.solve(factor, gradient / scale)) / scale)


def log_prior_density(model: Model, prior: Prior) -> float:
    """Log-density of the prior, up to a constant: pseudo-counts times log-probabilities."""
    cells = prior.confusion * np.log(np.maximum(model.confusion, FLOOR))
    if prior.fixed_rates is not None:
        cells = cells[~prior.fixed_rates]
    return float(cells.sum() + (0.0 if prior.fixed_classes else prior.classes @ model.log_prior()))


# --- logits: the class probabilities first, then each classifier's row of each true class -------


def _gradient(expected: _Expected, model: Model, prior: Prior) -> Array:
    """Derivative of the log-posterior by the logits: expected less fitted counts."""
    classes = expected.classes + prior.classes
    votes = expected.votes + prior.confusion
    by_class = classes - model.class_probabilities * classes.sum()
    by_vote = votes - model.confusion * votes.sum(axis=2, keepdims=True)
    return np.concatenate([by_class[1:], by_vote[:, :, 1:].reshape(-1)])


def _moved(model: Model, step: Array) -> Model:
    """Move the logits by a step; what does not move stays as it is, to the last bit."""
    classes = len(model.class_probabilities)
    of_classes, of_rows = step[: classes - 1], step[classes - 1 :]
    moves = of_rows.reshape(*model.confusion.shape[:2], classes - 1)
    log_confusion = np.log(np.maximum(model.confusion, FLOOR))
    log_confusion[:, :, 1:] += moves
    still = ~moves.any(axis=2, keepdims=True)
    confusion = np.where(still, model.confusion, _softmax(log_confusion))
    if not of_classes.any():
        return Model(model.class_probabilities, confusion)
    return Model(_softmax(model.log_prior() + np.concatenate([[0.0], of_classes])), confusion)


def _softmax(logs: Array) -> Array:
    powers = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def free_logits(model: Model, prior: Prior) -> NDArray[np.bool_]:
    """Tell which logits are estimated, and which are known and stay fixed."""
    classes = len(model.class_probabilities)
    free = np.ones(classes - 1 + model.confusion[:, :, 1:].size, dtype=bool)
    free[: classes - 1] = not prior.fixed_classes
    if prior.fixed_rates is not None:
        free[classes - 1 :] = np.repeat(~prior.fixed_rates.reshape(-1), classes - 1)
    return free


def information(blocks: Blocks, model: Model, prior: Prior, expected: Any = None) -> Array:
    """Observed information of the log-posterior in the logits (Louis 1982).

    Parameters
    ----------
    blocks : Blocks
    model : Model
    prior : Prior
    expected : optional
        The expected counts at the model, where they are at hand.

    Returns
    -------
    (D, D) array
        D = (K−1) + m K (K−1): the class logits, then [classifier, true class, voted class].
    """
    expected = expect(blocks, model) if expected is None else expected
    classes = len(model.class_probabilities)
    totals = expected.votes.sum(axis=2) + prior.confusion.sum(axis=2)
    complete = np.zeros((classes - 1 + model.confusion[:, :, 1:].size,) * 2)
    complete[: classes - 1, : classes - 1] = (
        expected.classes + prior.classes
    ).sum() * _multinomial(model.class_probabilities)
    place = classes - 1
    for i in range(len(model.confusion)):
        for true in range(classes):
            rows = slice(place, place + classes - 1)
            complete[rows, rows] = totals[i, true] * _multinomial(model.confusion[i, true])
            place += classes - 1
    (hidden,) = blocks.total(_hidden_variance(model), narrow=True)
    return np.asarray(complete - hidden)


def _multinomial(probabilities: Array) -> Array:
    above = probabilities[1:]
    return np.diag(above) - np.outer(above, above)


def _hidden_variance(model: Model) -> Callable[[Block], tuple[Array]]:
    """Σ counts · Var(complete-data score given the pattern), for one block."""
    tables, log_prior = model.tables(), model.log_prior()
    m, classes = model.confusion.shape[:2]
    # Columns of a block stand label by label, those of the logits classifier by classifier.
    fitted = model.confusion[:, :, 1:]

    def work(block: Block) -> tuple[Array]:
        _, shares = class_shares(block, tables, log_prior)
        doubtful = np.flatnonzero(1.0 - shares.max(axis=1) > CERTAIN)
        shares, counts = shares[doubtful], block.counts[doubtful]
        ones = (
            _dense(block.ones, doubtful).reshape(len(doubtful), classes - 1, m).transpose(0, 2, 1)
        )
        voted = None if block.voted is None else _dense(block.voted, doubtful)
        scores = np.empty((len(doubtful), classes - 1 + fitted.size))
        variance = np.zeros((scores.shape[1],) * 2)
        for true in range(classes):
            # Score given class `true`, less its mean over the classes, weighted by its share.
            others = -shares.copy()
            others[:, true] += 1.0
            scores[:, : classes - 1] = others[:, 1:]
            rows = scores[:, classes - 1 :].reshape(len(doubtful), m, classes, classes - 1)
            for row in range(classes):
                residual = ones - fitted[:, row]
                if voted is not None:
                    residual = residual * voted[:, :, None]
                rows[:, :, row] = residual * others[:, row, None, None]
            variance += scores.T @ (scores * (counts * shares[:, true])[:, None])
        return (variance,)

    return work


def _dense(columns: Any, rows: NDArray[np.intp]) -> Array:
    part = columns[rows]
    return part if isinstance(part, np.ndarray) else np.asarray(part.toarray())
