"""Random samples of rows: uniform, stratified by label, or of whole queries. Sampled rows are in ascending order.

A sample stratified by classes has the class proportions of the data, rounded by the method of largest remainders, with
at least one row of each class if the sample is large enough for that. If the labels are real-valued targets, the rows
are sorted by target and divided into as many groups of consecutive targets as rows are requested; one row is drawn from
each group, so that the sample has the distribution of the targets.
"""

import numpy as np

from widemargin.data.summary import are_classes


def random_rows(y, number, seed=0):
    """Return the indices of `number` rows, ascending; every set of so many rows has the same probability.

    Parameters
    ----------
    y : array of shape (n_rows,)
        Labels; only the length of y is used.
    number : int
        Number of rows, at most len(y).
    seed : int, default=0
        The same seed gives the same rows.
    """
    return np.sort(np.random.default_rng(seed).permutation(len(y))[:number])


def stratified_rows(y, number, seed=0):
    """Return the indices of `number` rows, ascending, with labels in the same proportions as in y.

    Parameters
    ----------
    y : array of shape (n_rows,)
        Labels; `are_classes` decides whether they are classes or real-valued targets.
    number : int
        Number of rows, at most len(y).
    seed : int, default=0
        The same seed gives the same rows.
    """
    rng = np.random.default_rng(seed)
    if not are_classes(y):
        return _one_row_per_group(y, number, rng)
    _, group, counts = np.unique(y, return_inverse=True, return_counts=True)
    shuffled = rng.permutation(len(y))
    by_class = shuffled[np.argsort(group[shuffled], kind="stable")]
    place_in_class = np.arange(len(y)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.sort(by_class[place_in_class < np.repeat(apportion(counts, number), counts)])


def query_rows(qid, number, seed=0):
    """Return the indices of all rows of randomly chosen queries, about `number` rows, ascending.

    Queries are taken in random order, and so many of them that the number of rows is closest to `number`.

    Parameters
    ----------
    qid : array of shape (n_rows,)
        Query of each row.
    number : int
        Approximate number of rows; at least one query is returned.
    seed : int, default=0
        The same seed gives the same rows.
    """
    _, group, sizes = np.unique(qid, return_inverse=True, return_counts=True)
    order = np.random.default_rng(seed).permutation(len(sizes))
    n_queries = np.argmin(np.abs(np.cumsum(sizes[order]) - number)) + 1
    return np.flatnonzero(np.isin(group, order[:n_queries]))


def apportion(counts, number):
    """Divide `number` in proportion to `counts` by largest remainders; each share is at least 1 if that is possible."""
    counts = np.asarray(counts, dtype=np.int64)
    quota = [divmod(int(count) * number, int(counts.sum())) for count in counts]  # Python integers do not overflow
    seats = np.array([whole for whole, _ in quota])
    remainders = np.array([rest for _, rest in quota])
    seats[np.lexsort((-counts, -remainders))[: number - seats.sum()]] += 1
    if number >= len(counts):
        for k in np.flatnonzero(seats == 0):
            seats[k], seats[np.argmax(seats)] = 1, seats.max() - 1
    return seats


def _one_row_per_group(y, number, rng):
    """Return a random row of each of `number` groups of rows with consecutive targets; ties are broken at random."""
    shuffled = rng.permutation(len(y))
    in_order = shuffled[np.argsort(y[shuffled], kind="stable")]
    edges = np.arange(number + 1) * len(y) // number
    return np.sort(in_order[rng.integers(edges[:-1], edges[1:])])
