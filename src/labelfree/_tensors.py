"""Confusion matrices of K classes from second and third moments of the votes.

Two ways, both of published rivals. Three groups: the mean votes of three groups of classifiers are
three views of an item, and give its hidden class by one orthogonal tensor (Zhang, Chen, Zhou and
Jordan 2014). Completion: the moments of all pairs and triples of different classifiers are fitted by
those of a mixture (Jain and Oh 2014).

Throughout, a third moment Σ_h w_h x_h ⊗ x_h ⊗ x_h turns orthogonal when it is seen through a matrix
that makes the second moment Σ_h w_h x_h x_hᵀ the identity; the tensor power method then takes it
apart (Anandkumar, Ge, Hsu, Kakade and Telgarsky 2014).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from labelfree._errors import NotIdentifiedError
from labelfree._latent_class import Model
from labelfree._products import Block, Blocks, label_pairs

Array = NDArray[np.float64]

STARTS = 24  # of the power method, for each of its vectors
TRIAL_ROUNDS = 30  # from every start, before the best one goes on
MOST_ROUNDS = 1000  # of the power method, and of the completion
STANDSTILL = 1e-14  # change of a unit vector that ends the power method
COMPLETED = 1e-12  # change of the completed matrix, relative to its size, that ends the completion
SINGULAR = 1e-9  # share of the largest singular value below which one is taken for zero


# --- the tensor power method --------------------------------------------------------------------


def tensor_power(tensor: Array, seed: int) -> tuple[Array, Array, bool]:
    """Take an orthogonal tensor Σ_h λ_h v_h ⊗ v_h ⊗ v_h apart.

    Parameters
    ----------
    tensor : (K, K, K) array
        Symmetric.
    seed : int
        Of the random starts.

    Returns
    -------
    values : (K,) array
    vectors : (K, K) array
        One a column.
    converged : bool
        Whether every vector came to a standstill.
    """
    random = np.random.default_rng(seed)
    rest, values, vectors, converged = tensor.copy(), [], [], True
    for _ in range(len(tensor)):
        tried = random.standard_normal((STARTS, len(tensor)))
        for _ in range(TRIAL_ROUNDS):
            tried = _unit(np.einsum("abc,sb,sc->sa", rest, tried, tried))
        reached = np.einsum("abc,sa,sb,sc->s", rest, tried, tried, tried)
        vector, still = tried[np.argmax(reached)], False
        for _ in range(MOST_ROUNDS):
            new = _unit(np.einsum("abc,b,c->a", rest, vector, vector))
            still = bool(np.max(np.abs(new - vector)) <= STANDSTILL)
            vector = new
            if still:
                break
        value = float(np.einsum("abc,a,b,c->", rest, vector, vector, vector))
        rest = rest - value * np.einsum("a,b,c->abc", vector, vector, vector)
        values.append(value)
        vectors.append(vector)
        converged &= still
    return np.array(values), np.stack(vectors, axis=1), converged


def _unit(vectors: Array) -> Array:
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0))


# --- three groups -------------------------------------------------------------------------------


def from_three_groups(
    blocks: Blocks, groups: Sequence[Sequence[int]], seed: int
) -> tuple[Model, bool]:
    """Estimate the model from three groups of classifiers (Zhang et al. 2014, Algorithm 1).

    Parameters
    ----------
    blocks : Blocks
    groups : three sequences of places
        None of them empty, no classifier in two.
    seed : int
        Of the power method's starts.

    Returns
    -------
    model : Model
        Rates as the moments give them, held within 0 and 1.
    converged : bool
        Whether the power method came to a standstill.
    """
    m, classes = len(blocks.tally.classifiers), len(blocks.tally.classes)
    views = np.zeros((m, classes, 3 * classes))
    group_of = np.zeros(m, dtype=np.intp)
    for place, group in enumerate(groups):
        members = list(group)
        group_of[members] = place
        columns = slice(place * classes, (place + 1) * classes)
        views[members, :, columns] = np.eye(classes) / len(members)
    items = blocks.tally.items

    def second(block: Block) -> tuple[Array, Array]:
        seen = block.score(views)
        weighted = seen * block.counts[:, None]
        return seen.T @ weighted, block.gather(weighted)

    pairs, votes = (total / items for total in blocks.total(second))
    pairs = pairs.reshape(3, classes, 3, classes).transpose(0, 2, 1, 3)  # [a, b] is E Z_a Z_bᵀ
    confusions, weights, converged = [], [], True
    for third in range(3):
        confusion, weight, still = _of_group(blocks, views, pairs, third, seed)
        confusions.append(confusion)
        weights.append(weight)
        converged &= still
    weight = np.mean(weights, axis=0)
    # E z_i Z_aᵀ = C_i W C_aᵀ for any group a that classifier i is not in; columns are true classes.
    joint = votes.reshape(m, classes, 3, classes)
    found = np.empty((m, classes, classes))
    for i, own in enumerate(group_of):
        other = (own + 1) % 3
        found[i] = joint[i, :, other] @ _inverse(confusions[other].T) / weight
    return Model(weight / weight.sum(), _as_chances(found.transpose(0, 2, 1))), converged


def _of_group(
    blocks: Blocks, views: Array, pairs: Array, third: int, seed: int
) -> tuple[Array, Array, bool]:
    """Mean votes of one group given each class, one column a class; Pr(class)."""
    classes = views.shape[1]
    first, second = (third + 1) % 3, (third + 2) % 3
    # Z_a' = E[Z_c Z_bᵀ] E[Z_a Z_bᵀ]⁻¹ Z_a has the conditional mean of Z_c, and likewise Z_b'.
    from_first = pairs[third, second] @ _inverse(pairs[first, second])
    from_second = pairs[third, first] @ _inverse(pairs[second, first])
    whitening, back = _whitening(from_first @ pairs[first, second] @ from_second.T)
    mapped = np.concatenate(
        [
            views[:, :, place * classes : (place + 1) * classes] @ (matrix.T @ whitening)
            for place, matrix in (
                (first, from_first),
                (second, from_second),
                (third, np.eye(classes)),
            )
        ],
        axis=2,
    )

    def cubes(block: Block) -> tuple[Array]:
        x, y, z = np.split(block.score(mapped), 3, axis=1)
        square = (x[:, :, None] * y[:, None, :]).reshape(len(x), -1)
        return (square.T @ (z * block.counts[:, None]),)

    (cube,) = blocks.total(cubes)
    tensor = _symmetric(cube.reshape((classes,) * 3) / blocks.tally.items)
    values, vectors, converged = tensor_power(tensor, seed)
    _refuse_lost(values)
    confusion, order = _matched(back @ (vectors * values))
    return confusion, values[order] ** -2.0, converged


def _whitening(second: Array) -> tuple[Array, Array]:
    """Find Q with Qᵀ M Q = 1 for the symmetric part of M, and B = Q⁻ᵀ, which goes back."""
    values, vectors = np.linalg.eigh((second + second.T) / 2)
    if values[0] <= SINGULAR * abs(values[-1]):
        raise _no_rank()
    return vectors / np.sqrt(values), vectors * np.sqrt(values)


def _inverse(matrix: Array) -> Array:
    sizes = np.linalg.svd(matrix, compute_uv=False)
    if not sizes[-1] > SINGULAR * sizes[0]:
        raise _no_rank()
    return np.asarray(np.linalg.inv(matrix))


def _no_rank() -> NotIdentifiedError:
    return NotIdentifiedError(
        "The second moments of these votes do not tell all classes apart (a matrix of them is singular or indefinite); "
        "more items, better classifiers or fewer classes would help."
    )


def _refuse_lost(values: Array) -> None:
    if not (values > SINGULAR).all():
        raise NotIdentifiedError(
            "The third moments of these votes do not show as many classes as there are labels; "
            "more items, better classifiers or fewer classes would help."
        )


def _symmetric(tensor: Array) -> Array:
    turns = ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))
    return np.asarray(sum(tensor.transpose(turn) for turn in turns) / len(turns))


def _matched(columns: Array) -> tuple[Array, NDArray[np.intp]]:
    """Put the columns in the order of the classes: each where its own row is greatest, all in all."""
    from scipy.optimize import linear_sum_assignment

    _, order = linear_sum_assignment(columns, maximize=True)
    return columns[:, order], np.asarray(order, dtype=np.intp)


def _as_chances(confusion: Array) -> Array:
    """Hold rates within 0 and 1 and make rows sum to one; a row with nothing in it is even."""
    inside = np.maximum(confusion, 0.0)
    total = inside.sum(axis=2, keepdims=True)
    even = np.full_like(inside, 1.0 / inside.shape[2])
    return np.asarray(np.divide(inside, total, out=even, where=total > 0))


# --- completion ---------------------------------------------------------------------------------


def from_completion(blocks: Blocks, seed: int) -> tuple[Model, bool]:
    """Estimate the model from all pairs and triples of different classifiers (Jain and Oh 2014).

    The second moments E z_i z_jᵀ of pairs i ≠ j are Q_i Q_jᵀ for a matrix Q with K columns, which
    alternating least squares find (their MatrixAltMin). The third moments of different i, j, k are
    then G[Q_i, Q_j, Q_k] for an orthogonal tensor G, found by least squares (their TensorLS). Where
    votes are missing, a pair or triple has the weight of the items on which it met.

    Parameters
    ----------
    blocks : Blocks
    seed : int
        Of the power method's starts.

    Returns
    -------
    model : Model
        Rates as the moments give them, held within 0 and 1.
    converged : bool
        Whether the completion and the power method came to a standstill.
    """
    m, classes = len(blocks.tally.classifiers), len(blocks.tally.classes)
    (columns,) = blocks.total(lambda block: (block.cooccurrence(),))
    table = label_pairs(columns, classes)
    factor, completed = _completed(table)
    values, vectors, converged = tensor_power(_fitted_tensor(blocks, table, factor), seed)
    _refuse_lost(values)
    # x_h of the mixture is all classifiers' chances given class h, and λ_h = w_h^(−1/2).
    found = (factor.reshape(m * classes, classes) @ (vectors * values)).reshape(m, classes, classes)
    _, order = _matched(found.sum(axis=0))
    weight = values[order] ** -2.0
    rates = _as_chances(found[:, :, order].transpose(0, 2, 1))
    return Model(weight / weight.sum(), rates), completed and converged


def _completed(table: Array) -> tuple[Array, bool]:
    """Q of M_ij = Q_i Q_jᵀ for the pairs i ≠ j, (m, K, K) as [classifier, vote, column]."""
    m, classes = table.shape[:2]
    own = np.einsum("ikik->ik", table)
    own = own / np.maximum(own.sum(axis=1, keepdims=True), 1.0)
    met = table.sum(axis=(1, 3))
    np.fill_diagonal(met, 0.0)
    wanted = np.where(met[:, None, :, None] > 0, table, 0.0)
    wanted[np.arange(m), :, np.arange(m)] = 0.0
    # To start with, means stand for whatever was not seen: right but for the covariance.
    means = np.einsum("ik,jl->ikjl", own, own)
    seen = np.divide(wanted, met[:, None, :, None], out=means, where=met[:, None, :, None] > 0)
    wanted = wanted.reshape(m * classes, m * classes)
    values, vectors = np.linalg.eigh(seen.reshape(m * classes, m * classes))
    left = vectors[:, -classes:] * np.sqrt(np.abs(values[-classes:]))
    matrix: Array = np.zeros_like(wanted)
    done = False
    for _ in range(MOST_ROUNDS):
        right = _least_squares(wanted, met, left)
        left = _least_squares(wanted, met, right)
        new = left @ right.T
        done = bool(np.max(np.abs(new - matrix)) <= COMPLETED * np.max(np.abs(new)))
        matrix = new
        if done:
            break
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    values, vectors = values[-classes:], vectors[:, -classes:]
    if not values[0] > SINGULAR * values[-1]:
        raise _no_rank()
    return (vectors * np.sqrt(values)).reshape(m, classes, classes), done


def _least_squares(wanted: Array, met: Array, other: Array) -> Array:
    """Solve min Σ_ij met_ij |M_ij − X_i Y_jᵀ|² for X, given Y; `wanted` holds met_ij M_ij."""
    m, rank = len(met), other.shape[1]
    rows = other.reshape(m, -1, rank)
    normal = np.einsum("ij,jab->iab", met, rows.transpose(0, 2, 1) @ rows)
    aims = (wanted @ other).reshape(m, -1, rank)
    found = aims @ np.linalg.pinv(normal, rcond=1e-12, hermitian=True)
    return np.asarray(found.reshape(-1, rank))


def _fitted_tensor(blocks: Blocks, table: Array, factor: Array) -> Array:
    """G that minimises Σ N_ijk |T_ijk − G[Q_i, Q_j, Q_k]|² over different i, j, k."""
    m, _, rank = factor.shape
    squares = np.einsum("ika,ikb->iab", factor, factor).reshape(m, 1, -1)  # Q_iᵀ Q_i
    everywhere = np.broadcast_to(squares, (m, rank, rank * rank))
    sums = over_triples(blocks, table, everywhere).reshape((rank,) * 6)
    normal = sums.transpose(0, 2, 4, 1, 3, 5).reshape(rank**3, rank**3)
    aims = over_triples(blocks, table, factor).ravel()
    found = np.asarray(np.linalg.lstsq(normal, aims, rcond=1e-12)[0], dtype=np.float64)
    return _symmetric(found.reshape(rank, rank, rank))


def over_triples(blocks: Blocks, table: Array, weights: Array) -> Array:
    """Sum x_i ⊗ x_j ⊗ x_k over the triples of different classifiers of every pattern.

    Parameters
    ----------
    blocks : Blocks
    table : (m, K, m, K) array
        Pairs of labels, as :func:`label_pairs` counts them.
    weights : (m, K, C) array
        x_i, by the vote of classifier i.

    Returns
    -------
    (C, C, C) array

    Notes
    -----
    As for power sums: all triples, less thrice those with two alike, plus twice those of one. Only
    the first sum needs the patterns.
    """
    rows = weights.reshape(-1, weights.shape[2])
    pairs = table.reshape(len(rows), len(rows))

    def cubes(block: Block) -> tuple[Array]:
        sums, counts = block.score(weights), block.counts
        if (sums == sums[0]).all():  # the same for all who voted alike, where all voted
            sums, counts = sums[:1], counts.sum(keepdims=True)
        return (np.stack([sums.T @ (sums * (counts * sum_)[:, None]) for sum_ in sums.T]),)

    (every,) = blocks.total(cubes)
    alike = np.stack([(rows * row[:, None]).T @ (pairs @ rows) for row in rows.T])
    own = np.diagonal(pairs)
    one = np.stack([rows.T @ (rows * (own * row)[:, None]) for row in rows.T])
    return np.asarray(every - 3.0 * _symmetric(alike) + 2.0 * one)
