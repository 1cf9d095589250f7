"""Measures of an order of rows: swapped pairs, NDCG, ROC area, and what the rows with the largest scores hold.

None depends on the order in which rows of equal score stand: a pair of them is swapped, as svm_rank_classify counts;
elsewhere they count by the mean over all their orders. What is undefined is NaN.
"""

import numpy as np
from sklearn.metrics import roc_auc_score

from widemargin.problems.ranking import concordance


def swapped_pairs(scores, y, query):
    """Count pairs of rows of a query, the first with the larger target, whose scores are equal or the other way round.

    Returns
    -------
    swapped, pairs : int
        Their number, and that of all pairs of different targets within queries.
    share : float
        The mean over queries of the part of its pairs that is swapped; 0 for a query without pairs.
    """
    pessimistic = np.empty(len(y), np.int64)  # a score like the others', but of equal ones the largest target is last
    pessimistic[np.lexsort((-y, scores))] = np.arange(len(y))
    pairs = _count_pairs(y, query)
    parts = 1.0 - concordance(pessimistic.astype(np.float64), y, query)
    swapped = np.rint(parts * pairs[pairs > 0])
    return int(swapped.sum()), int(pairs.sum()), float(parts.sum() / len(pairs))


def _count_pairs(y, query):
    """Return, for each query in ascending order, the number of pairs of different targets."""
    _, query = np.unique(query, return_inverse=True)
    _, rank = np.unique(y, return_inverse=True)
    kinds, counts = np.unique(query * (rank.max() + 1) + rank, return_counts=True)
    same = np.bincount(kinds // (rank.max() + 1), weights=counts.astype(np.float64) ** 2)
    return (np.bincount(query).astype(np.float64) ** 2 - same) / 2.0


def mean_concordance(scores, y, query):
    """Return the mean over queries with pairs of the part of them that is in order; equal scores count half."""
    parts = concordance(scores, y, query)
    return float(parts.mean()) if len(parts) else float("nan")


def ndcg(scores, y, query, k=10):
    """Return (mean normalised discounted cumulative gain at k over queries with relevant rows, number of those).

    The gain of a row is 2^y − 1, or 0 if y < 0; the row at place p, from 1, counts gain / log2(1 + p), up to p = k. The
    sum is divided by that of the best order. A row is relevant if y > 0.
    """
    order = np.argsort(query, kind="stable")
    ends = np.flatnonzero(np.diff(query[order])) + 1
    parts = [_ndcg_of_query(scores[rows], y[rows], k) for rows in np.split(order, ends) if y[rows].max() > 0]
    return (float(np.mean(parts)) if parts else float("nan")), len(parts)


def _ndcg_of_query(scores, y, k):
    highest = y.max()
    gain = np.exp2(np.maximum(y, 0.0) - highest) - np.exp2(-highest)  # in units of 2^highest, which may be any number
    discount = np.zeros(len(y))
    discount[:k] = 1.0 / np.log2(2.0 + np.arange(min(k, len(y))))
    _, tied, size = np.unique(-scores, return_inverse=True, return_counts=True)
    mean_gain = np.bincount(tied, weights=gain) / size
    return float(np.repeat(mean_gain, size) @ discount / (np.sort(gain)[::-1] @ discount))


def roc_area(scores, positive):
    """Return the area under the ROC curve: the part of pairs of a positive and a negative row that is in order."""
    return float(roc_auc_score(positive, scores)) if 0 < np.sum(positive) < len(positive) else float("nan")


def hits(scores, positive, k):
    """Return how many of the k rows with the largest scores are positive."""
    if not 0 < k <= len(scores):
        return float("nan")
    cut = np.partition(scores, len(scores) - k)[len(scores) - k]
    above, at = scores > cut, scores == cut
    return float(positive[above].sum() + positive[at].mean() * (k - above.sum()))


def prbep(scores, positive):
    """Return the precision/recall break-even point: the precision of as many rows as there are positive ones."""
    n_positive = int(np.sum(positive))
    return hits(scores, positive, n_positive) / n_positive if n_positive else float("nan")


def precision_at(scores, positive, k):
    """Return the part of the k rows with the largest scores that is positive."""
    return hits(scores, positive, k) / k


def recall_at(scores, positive, k):
    """Return the part of the positive rows that is among the k with the largest scores."""
    n_positive = int(np.sum(positive))
    return hits(scores, positive, k) / n_positive if n_positive else float("nan")
