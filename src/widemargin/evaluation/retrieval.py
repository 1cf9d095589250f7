"""Measures of rankings by score: concordant pairs, NDCG, ROC area, average precision, PRBEP, precision, recall at k.

Ties are handled so that no measure depends on the order in which rows with equal scores are stored: a tied pair counts
one half, and NDCG, PRBEP, precision and recall at k are expectations over all orders of the tied rows. A measure that
is undefined is NaN.
"""

import numpy as np
from sklearn.metrics import roc_auc_score

from widemargin.problems.ranking import concordance


def count_pairs(scores, y, query):
    """Count the pairs of rows of one query with different targets: how many scores swap, and how many they tie.

    A pair is concordant if the row with the larger target has the larger score, swapped if it has the smaller score,
    and tied if the scores are equal. The concordance is the fraction of concordant pairs, where a tied pair counts one
    half: 1 − (swapped + tied / 2) / pairs.

    Returns
    -------
    swapped, tied, pairs : ndarray of shape (n_queries,), int64
        One number for each query; queries are in ascending order.
    """
    # Ranks by score, in which ties are broken against the targets, so that no tied pair is concordant.
    pessimistic = np.empty(len(y), np.int64)
    pessimistic[np.lexsort((-y, scores))] = np.arange(len(y))
    pairs = pairs_of_queries(y, query)
    in_order, tied = np.zeros(len(pairs)), np.zeros(len(pairs))
    strictly = concordance(pessimistic.astype(np.float64), y, query)
    in_order[pairs > 0] = np.rint(strictly * pairs[pairs > 0])
    tied[pairs > 0] = np.rint(2.0 * (concordance(scores, y, query) - strictly) * pairs[pairs > 0])
    return tuple(counts.astype(np.int64) for counts in (pairs - in_order - tied, tied, pairs))


def average_precision(scores, positive):
    """Return the mean over positive rows of the precision at their rank; tied rows share the last of their ranks."""
    if not np.any(positive):
        return float("nan")
    order = np.argsort(-scores, kind="stable")
    value, hit = scores[order], positive[order].astype(np.float64)
    last = np.append(np.flatnonzero(np.diff(value)), len(value) - 1)
    ends = last[np.searchsorted(last, np.arange(len(value)))]
    return float(np.sum(hit * np.cumsum(hit)[ends] / (ends + 1.0)) / hit.sum())


def pairs_of_queries(y, query):
    """Return, for each query in ascending order, the number of pairs of rows with different targets."""
    _, query = np.unique(query, return_inverse=True)
    _, rank = np.unique(y, return_inverse=True)
    kinds, counts = np.unique(query * (rank.max() + 1) + rank, return_counts=True)
    same = np.bincount(kinds // (rank.max() + 1), weights=counts.astype(np.float64) ** 2)
    return (np.bincount(query).astype(np.float64) ** 2 - same) / 2.0


def ndcg(scores, y, query, k=10):
    """Return (mean normalised discounted cumulative gain at k, number of queries over which it is a mean).

    The gain of a row is 2^y − 1, or 0 if y < 0. The discounted cumulative gain is the sum of gain / log2(1 + p) over
    the rows at ranks p = 1, ..., k; it is divided by that of the best order. The mean is over the queries that have a
    relevant row, one with y > 0.
    """
    order = np.argsort(query, kind="stable")
    ends = np.flatnonzero(np.diff(query[order])) + 1
    parts = [_ndcg_of_query(scores[rows], y[rows], k) for rows in np.split(order, ends) if y[rows].max() > 0]
    return (float(np.mean(parts)) if parts else float("nan")), len(parts)


def _ndcg_of_query(scores, y, k):
    highest = y.max()
    gain = np.exp2(np.maximum(y, 0.0) - highest) - np.exp2(-highest)  # divided by 2^highest, which could overflow
    discount = np.zeros(len(y))
    discount[:k] = 1.0 / np.log2(2.0 + np.arange(min(k, len(y))))
    _, tied, size = np.unique(-scores, return_inverse=True, return_counts=True)
    mean_gain = np.bincount(tied, weights=gain) / size
    return float(np.repeat(mean_gain, size) @ discount / (np.sort(gain)[::-1] @ discount))


def roc_area(scores, positive):
    """Return the area under the ROC curve: the concordance over all pairs of a positive and a negative row."""
    return float(roc_auc_score(positive, scores)) if 0 < np.sum(positive) < len(positive) else float("nan")


def hits(scores, positive, k):
    """Return how many of the k rows with the largest scores are positive; an expectation if scores are tied."""
    if not 0 < k <= len(scores):
        return float("nan")
    cut = np.partition(scores, len(scores) - k)[len(scores) - k]
    above, at = scores > cut, scores == cut
    return float(positive[above].sum() + positive[at].mean() * (k - above.sum()))


def prbep(scores, positive):
    """Return the precision/recall break-even point: the precision at k, where k is the number of positive rows."""
    n_positive = int(np.sum(positive))
    return hits(scores, positive, n_positive) / n_positive if n_positive else float("nan")


def precision_at(scores, positive, k):
    """Return the fraction of the k rows with the largest scores that are positive."""
    return hits(scores, positive, k) / k


def recall_at(scores, positive, k):
    """Return the fraction of the positive rows that are among the k rows with the largest scores."""
    n_positive = int(np.sum(positive))
    return hits(scores, positive, k) / n_positive if n_positive else float("nan")
