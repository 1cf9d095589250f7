"""Some of the rows, at random: each as likely as another, by label, or queries as a whole. Rows come in their order.

By label means: as many of each class as its part of all rows, rounded by largest remainders so that the sum is right,
and one at least where there is room for it. Labels that are quantities are put in order and cut into as many groups of
neighbours as rows are wanted, of which one is taken from each, so that small and large ones come in proportion.
"""

import numpy as np

from widemargin.data.summary import are_classes


def random_rows(y, number, seed=0):
    """Return `number` rows, each set of them as likely as another, in their order.

    Parameters
    ----------
    y : array of shape (n_rows,)
        Labels; only their number matters.
    number : int
        How many rows, at most as many as there are.
    seed : int, default=0
        The same seed gives the same rows.
    """
    return np.sort(np.random.default_rng(seed).permutation(len(y))[:number])


def stratified_rows(y, number, seed=0):
    """Return `number` rows, in their order, in which labels come in the proportion they have in y.

    Parameters
    ----------
    y : array of shape (n_rows,)
        Labels; `are_classes` tells whether they are classes or quantities.
    number : int
        How many rows, at most as many as there are.
    seed : int, default=0
        The same seed gives the same rows.
    """
    rng = np.random.default_rng(seed)
    if not are_classes(y):
        return _one_of_each_group(y, number, rng)
    _, group, counts = np.unique(y, return_inverse=True, return_counts=True)
    shuffled = rng.permutation(len(y))
    by_class = shuffled[np.argsort(group[shuffled], kind="stable")]
    place_in_class = np.arange(len(y)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.sort(by_class[place_in_class < np.repeat(apportion(counts, number), counts)])


def query_rows(qid, number, seed=0):
    """Return the rows of whole queries, taken at random until there are as nearly `number` as that gives.

    Parameters
    ----------
    qid : array of shape (n_rows,)
        Queries.
    number : int
        About how many rows; there is one query at least.
    seed : int, default=0
        The same seed gives the same rows.
    """
    _, group, sizes = np.unique(qid, return_inverse=True, return_counts=True)
    order = np.random.default_rng(seed).permutation(len(sizes))
    n_queries = np.argmin(np.abs(np.cumsum(sizes[order]) - number)) + 1
    return np.flatnonzero(np.isin(group, order[:n_queries]))


def apportion(counts, number):
    """Divide `number` in the proportion of counts, by largest remainders; each gets one if there is enough for all."""
    counts = np.asarray(counts, dtype=np.int64)
    quota = [divmod(int(count) * number, int(counts.sum())) for count in counts]  # exact, however large
    seats = np.array([whole for whole, _ in quota])
    remainders = np.array([rest for _, rest in quota])
    seats[np.lexsort((-counts, -remainders))[: number - seats.sum()]] += 1
    if number >= len(counts):
        for k in np.flatnonzero(seats == 0):
            seats[k], seats[np.argmax(seats)] = 1, seats.max() - 1
    return seats


def _one_of_each_group(y, number, rng):
    """Return a row out of each of `number` groups of neighbours by label; equal labels are neighbours at random."""
    shuffled = rng.permutation(len(y))
    in_order = shuffled[np.argsort(y[shuffled], kind="stable")]
    edges = np.arange(number + 1) * len(y) // number
    return np.sort(in_order[rng.integers(edges[:-1], edges[1:])])
