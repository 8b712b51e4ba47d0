"""Slow versions of the numerical rooms, in plain loops, to be checked against the formulas by eye.

Codes are 0 … K−1, and −1 for a missing vote; of two classes, 1 is positive. Where JNK (Jaffe,
Nadler and Kluger 2015) writes votes as f = ±1, so does `sign`. Counts may be any weights.
"""

from collections import Counter
from itertools import combinations, product
from math import exp, log, prod, sqrt

import numpy as np


def sign(code):
    return {-1: 0, 0: -1, 1: 1}[int(code)]


# --- patterns and tallies -----------------------------------------------------------------------


def words(codes, classes):
    """The bits of code + 1, plane after plane, each plane in 64-bit words, classifier 0 lowest."""
    m = len(codes[0])
    table = []
    for row in codes:
        packed = []
        for plane in range(len(bin(classes)) - 2):
            bits = sum(((int(code) + 1) >> plane & 1) << i for i, code in enumerate(row))
            packed += [bits >> 64 * word & 2**64 - 1 for word in range((m + 63) // 64)]
        table.append(packed)
    return np.array(table, dtype=np.uint64)


def counts_of(codes, counts=None):
    """Each distinct pattern with its count."""
    found = Counter()
    for row, count in zip(codes, [1] * len(codes) if counts is None else counts, strict=True):
        found[tuple(int(code) for code in row)] += float(count)
    return dict(found)


# --- the three products -------------------------------------------------------------------------


def cooccurrence(codes, counts, classes):
    """How often classifier i gave label k while classifier j gave label l: [i, k, j, l]."""
    m = len(codes[0])
    table = np.zeros((m, classes, m, classes))
    for row, count in zip(codes, counts, strict=True):
        for i, j in product(range(m), repeat=2):
            if row[i] >= 0 and row[j] >= 0:
                table[i, row[i], j, row[j]] += count
    return table


def score(codes, weights):
    """Sum of weights[i, vote of i] over the classifiers that voted."""
    scores = np.zeros((len(codes), weights.shape[2]))
    for place, row in enumerate(codes):
        for i, code in enumerate(row):
            if code >= 0:
                scores[place] += weights[i, code]
    return scores


def gather(codes, shares, classes):
    """Sum of the shares of the patterns in which classifier i gave label k: [i, k]."""
    table = np.zeros((len(codes[0]), classes, shares.shape[1]))
    for row, share in zip(codes, shares, strict=True):
        for i, code in enumerate(row):
            if code >= 0:
                table[i, code] += share
    return table


# --- moments ------------------------------------------------------------------------------------


def weighted_mean(values, counts):
    values, counts = list(values), list(counts)
    total = sum(counts)
    return sum(v * c for v, c in zip(values, counts, strict=True)) / total if total else 0.0


def means(codes, counts):
    return np.array(
        [
            weighted_mean(*_those(codes, counts, [i], lambda row, i=i: sign(row[i])))
            for i in range(len(codes[0]))
        ]
    )


def covariance(codes, counts):
    """Of each pair, over the patterns in which both voted; zero on the diagonal."""
    m = len(codes[0])
    table = np.zeros((m, m))
    for i, j in product(range(m), repeat=2):
        if i != j:
            here = weighted_mean(*_those(codes, counts, [i, j], lambda row, i=i: sign(row[i])))
            there = weighted_mean(*_those(codes, counts, [i, j], lambda row, j=j: sign(row[j])))
            table[i, j] = weighted_mean(
                *_those(
                    codes,
                    counts,
                    [i, j],
                    lambda row, i=i, j=j, a=here, b=there: (sign(row[i]) - a) * (sign(row[j]) - b),
                )
            )
    return table


def pair_counts(codes, counts):
    m = len(codes[0])
    table = np.zeros((m, m))
    for row, count in zip(codes, counts, strict=True):
        for i, j in product(range(m), repeat=2):
            if row[i] >= 0 and row[j] >= 0:
                table[i, j] += count
    return table


def third_moments(codes, counts, mean):
    """T of JNK and, for each triple, the number of items on which all three voted: m × m × m."""
    m = len(codes[0])
    tensor, met = np.zeros((m, m, m)), np.zeros((m, m, m))
    for triple in product(range(m), repeat=3):
        values, weights = _those(
            codes, counts, triple, lambda row, t=triple: prod(sign(row[i]) - mean[i] for i in t)
        )
        tensor[triple], met[triple] = weighted_mean(values, weights), sum(weights)
    return tensor, met


def third_moment_ratio(tensor, met, direction):
    """α that minimises Σ_{i<j<k} N_ijk (T_ijk − α v_i v_j v_k)²."""
    above = below = 0.0
    for triple in combinations(range(len(direction)), 3):
        fitted = prod(direction[i] for i in triple)
        above += met[triple] * tensor[triple] * fitted
        below += met[triple] * fitted**2
    return above / below


def _those(codes, counts, voters, value):
    rows = [
        (row, c) for row, c in zip(codes, counts, strict=True) if all(row[i] >= 0 for i in voters)
    ]
    return [value(row) for row, _ in rows], [c for _, c in rows]


# --- rank one -----------------------------------------------------------------------------------


def triplet_fill(matrix, met):
    """Put a number in place of every entry that was not observed, by least squares over pairs.

    Rank one says x_ij Q_kh = Q_ik Q_hj for every pair k, h that met; on the diagonal, that is
    d_i Q_kh = Q_ki Q_ih, over all triples.
    """
    m = len(matrix)
    seen = np.array(met) > 0
    np.fill_diagonal(seen, val=False)
    filled = np.where(seen, matrix, 0.0)
    for i, j in product(range(m), repeat=2):
        if not seen[i, j]:
            above = below = 0.0
            for k, h in product(range(m), repeat=2):
                if seen[i, k] and seen[k, h] and seen[h, j]:
                    above += matrix[i, k] * matrix[k, h] * matrix[h, j]
                    below += matrix[k, h] ** 2
            filled[i, j] = above / below if below else 0.0
    return filled


# --- the model ----------------------------------------------------------------------------------


def rates(mean, vector, imbalance):
    """Sensitivity and specificity by JNK Lemma 2."""
    odds = (1 - imbalance) / (1 + imbalance)
    pairs = [
        (0.5 * (1 + mu + v * sqrt(odds)), 0.5 * (1 - mu + v / sqrt(odds)))
        for mu, v in zip(mean, vector, strict=True)
    ]
    return [psi for psi, _ in pairs], [eta for _, eta in pairs]


def restricted_likelihood(codes, counts, mean, vector, imbalance, smallest):
    """Ĝ(b) of JNK: the mean of log Pr(f | ψ̂(b), η̂(b), b), rates held inside [ε, 1 − ε]."""
    psi, eta = (
        [min(max(rate, smallest), 1 - smallest) for rate in each]
        for each in rates(mean, vector, imbalance)
    )
    p = (1 + imbalance) / 2
    total = 0.0
    for row, count in zip(codes, counts, strict=True):
        positive = negative = 1.0
        for i, code in enumerate(row):
            if code >= 0:
                positive *= psi[i] if code == 1 else 1 - psi[i]
                negative *= 1 - eta[i] if code == 1 else eta[i]
        total += count * log(p * positive + (1 - p) * negative)
    return total / sum(counts)


def joint(row, class_probabilities, confusion):
    """Pr(class and pattern) for every class."""
    return [
        p * prod(confusion[i][true][code] for i, code in enumerate(row) if code >= 0)
        for true, p in enumerate(class_probabilities)
    ]


def log_likelihood(codes, counts, class_probabilities, confusion):
    return sum(
        count * log(sum(joint(row, class_probabilities, confusion)))
        for row, count in zip(codes, counts, strict=True)
        if count
    )


def expected_counts(codes, counts, class_probabilities, confusion):
    """What EM counts: items of each class, and votes as [classifier, true class, voted class]."""
    m, classes = len(confusion), len(class_probabilities)
    of_classes, of_votes = np.zeros(classes), np.zeros((m, classes, classes))
    for row, count in zip(codes, counts, strict=True):
        shares = joint(row, class_probabilities, confusion)
        for true in range(classes):
            part = count * shares[true] / sum(shares)
            of_classes[true] += part
            for i, code in enumerate(row):
                if code >= 0:
                    of_votes[i, true, code] += part
    return of_classes, of_votes


# --- consensus ----------------------------------------------------------------------------------


def majority(row):
    return int(sum(sign(code) for code in row) >= 0)


def sml(row, vector):
    return int(sum(v * sign(code) for v, code in zip(vector, row, strict=True)) >= 0)


def maximum_likelihood_score(row, sensitivity, specificity):
    """Σ f_i ln α_i + ln β_i of JNK, over the classifiers that voted."""
    total = 0.0
    for code, psi, eta in zip(row, sensitivity, specificity, strict=True):
        if code >= 0:
            alpha = psi * eta / ((1 - psi) * (1 - eta))
            beta = psi * (1 - psi) / (eta * (1 - eta))
            total += sign(code) * log(alpha) + log(beta)
    return total


def positive_probability(row, sensitivity, specificity, imbalance):
    """Bayes' rule, with the log-odds as half the score above plus the prior's."""
    odds = 0.5 * maximum_likelihood_score(row, sensitivity, specificity)
    return 1 / (1 + exp(-(odds + log((1 + imbalance) / (1 - imbalance)))))


# --- rivals -------------------------------------------------------------------------------------


def dawid_skene(codes, classes, rounds):
    """EM of Dawid and Skene 1979, item by item; every item's class starts spread as its votes are."""
    m = len(codes[0])
    shares = []
    for row in codes:
        voted = [code for code in row if code >= 0]
        shares.append([voted.count(k) / len(voted) for k in range(classes)])
    for _ in range(rounds):
        p = [sum(share[k] for share in shares) / len(codes) for k in range(classes)]
        confusion = np.zeros((m, classes, classes))
        for i, true in product(range(m), range(classes)):
            for row, share in zip(codes, shares, strict=True):
                if row[i] >= 0:
                    confusion[i, true, row[i]] += share[true]
            confusion[i, true] /= confusion[i, true].sum()
        joints = [joint(row, p, confusion) for row in codes]
        shares = [[each / sum(row) for each in row] for row in joints]
    return p, confusion


def karger_oh_shah(codes, rounds):
    """Messages of Karger, Oh and Shah 2011 along every single vote; the weights, of length 1."""
    edges = {
        (a, i): sign(code) for a, row in enumerate(codes) for i, code in enumerate(row) if code >= 0
    }
    to_items = dict.fromkeys(edges, 1.0)
    for _ in range(rounds):
        to_voters = {
            (a, i): sum(edges[a, k] * to_items[a, k] for b, k in edges if b == a and k != i)
            for a, i in edges
        }
        to_items = {
            (a, i): sum(edges[b, i] * to_voters[b, i] for b, k in edges if k == i and b != a)
            for a, i in edges
        }
    weights = np.zeros(len(codes[0]))
    for (a, i), vote in edges.items():
        weights[i] += vote * to_voters[a, i]
    return weights / np.linalg.norm(weights)


def over_triples(codes, counts, weights):
    """Sum of x_i ⊗ x_j ⊗ x_k over ordered triples of different classifiers that voted."""
    size = weights.shape[2]
    total = np.zeros((size, size, size))
    for row, count in zip(codes, counts, strict=True):
        for triple in product(range(len(row)), repeat=3):
            if len(set(triple)) == 3 and all(row[i] >= 0 for i in triple):
                x, y, z = (weights[i, row[i]] for i in triple)
                for a, b, c in product(range(size), repeat=3):
                    total[a, b, c] += count * x[a] * y[b] * z[c]
    return total
