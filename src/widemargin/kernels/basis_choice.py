"""Choosing basis points from rows, four ways; see `basis` for what they are for.

    uniform    rows at random
    kmeans     the centres of clusters of rows, by Lloyd's method from random rows
    leverage   rows at random, with probabilities in proportion to their ridge leverage scores: rows whose functions are
               far from those of the others are more likely
    greedy     rows whose functions are farthest from the span of those chosen before, some at a time

All but the first look at a random sample of rows only, some twenty for each point.

References
----------
Zhang, Tsang and Kwok, Improved Nyström low-rank approximation and error analysis, ICML (2008).
Alaoui and Mahoney, Fast randomized kernel ridge regression with statistical guarantees, NIPS 28 (2015).
Fine and Scheinberg, Efficient SVM training using low-rank kernel representations, JMLR 2 (2001).
"""

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.linalg.lapack import dpstrf
from scipy.sparse import issparse
from scipy.sparse import vstack as sparse_vstack

from widemargin.data.blocks.row_blocks import RowBlocks
from widemargin.data.products import squared_norms
from widemargin.kernels.values import KernelValues

_ROWS_PER_POINT = 20  # of the sample from which points are chosen
_FEWEST_ROWS, _MOST_ROWS = 2_000, 100_000  # of the sample
_MOST_PILOT_POINTS = 1_000  # by which leverage scores are estimated
_LLOYD_ITERATIONS = 10
_GREEDY_BLOCKS = 16  # in which points are chosen one block after the other
_CANDIDATES_PER_POINT = 3  # of a block, those with the largest distances
_SMALLEST_DISTANCE = 1e-7  # squared, relative to the largest norm, of a function from the span of those chosen before


def choose_points(X, n_points, method, kernel, random, before=None):
    """Return basis points, at most n_points, in the type of X, or as an array if they are centres.

    Parameters
    ----------
    X : ndarray, csr matrix or RowBlocks
        The rows.
    n_points : int
    method : {"uniform", "kmeans", "leverage", "greedy"}
    kernel : Kernel
    random : numpy Generator
    before : Basis or None
        The points to which these are added; "greedy" takes them into account.
    """
    if method == "uniform":
        return random_rows(X, n_points, random)
    wanted = int(np.clip(_ROWS_PER_POINT * n_points, _FEWEST_ROWS, _MOST_ROWS))
    pool = random_rows(X, max(n_points, wanted), random)
    if pool.shape[0] <= n_points:
        return pool
    return _METHODS[method](pool, n_points, kernel, random, before)


def random_rows(X, n_rows, random):
    """Return at most n_rows rows at random, none of them twice, in ascending order."""
    n_rows = min(n_rows, X.shape[0])
    return rows_at(X, np.sort(random.choice(X.shape[0], n_rows, replace=False)))


def rows_at(X, chosen):
    """Return the rows with these numbers, which are ascending, of an array, a CSR matrix or a RowBlocks."""
    if not isinstance(X, RowBlocks):
        return X[chosen]
    parts = []
    for start, stop in X.ends():
        here = chosen[slice(*np.searchsorted(chosen, (start, stop)))]
        if len(here):
            parts.append(X[start:stop].to_memory()[here - start])
    if not parts:
        return X[:1].to_memory()[:0]
    return sparse_vstack(parts, format="csr") if issparse(parts[0]) else np.concatenate(parts)


def _centres(pool, n_points, kernel, random, before):
    """Return the centres of clusters, in the precision of the rows."""
    from sklearn.cluster import KMeans  # imported here, since it takes as long as all else

    start = pool[np.sort(random.choice(pool.shape[0], n_points, replace=False))]
    means = KMeans(n_points, init=start.toarray() if issparse(start) else start, n_init=1, max_iter=_LLOYD_ITERATIONS)
    return np.unique(_quietly(means.fit, pool).cluster_centers_.astype(pool.dtype), axis=0)


def _quietly(function, *arguments):
    """Call a function of scikit-learn whose warnings on few distinct rows are of no interest here."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*arguments)


def _by_leverage(pool, n_points, kernel, random, before):
    """Return rows drawn by their ridge leverage scores, estimated with a smaller random basis."""
    n_pilot = min(n_points, _MOST_PILOT_POINTS)
    pilot = KernelValues(kernel, pool[np.sort(random.choice(pool.shape[0], n_pilot, replace=False))], np.float64)
    values, own = pilot.of(pool), pilot.of(pilot.vectors)
    ridge = float(np.trace(own)) / n_pilot * pool.shape[0] / n_points
    # The scores of features L⁻¹k are k'(K'K + ridge K_BB)⁻¹k.
    factor = cho_factor(values.T @ values + ridge * own + 1e-10 * ridge * np.eye(n_pilot), lower=True)
    explained = np.einsum("ij,ji->i", values, cho_solve(factor, values.T))
    inside = np.einsum("ij,ji->i", values, cho_solve(cho_factor(own + 1e-10 * np.eye(n_pilot) * ridge), values.T))
    beyond = np.maximum(_diagonal(kernel, pool) - inside, 0.0) / ridge  # what the pilot points do not explain
    scores = np.maximum(explained, 0.0) + beyond
    total = scores.sum()
    shares = scores / total if total > 0.0 else None
    n_positive = np.count_nonzero(scores)
    return pool[np.sort(random.choice(pool.shape[0], min(n_points, n_positive or n_points), replace=False, p=shares))]


def _greedily(pool, n_points, kernel, random, before):
    """Return rows that are far from the span of those before, chosen in blocks by pivoted Cholesky factorisations."""
    distances = _diagonal(kernel, pool)
    smallest = _SMALLEST_DISTANCE * float(distances.max(initial=0.0))
    features = np.empty((pool.shape[0], 0))  # of all rows, on the basis so far
    if before is not None and len(before):
        known = KernelValues(kernel, before.vectors, np.float64).of(pool)
        features = solve_triangular(before.factor, known.T, lower=True).T
        distances = distances - np.square(features).sum(axis=1)
    chosen = []
    step = -(-n_points // _GREEDY_BLOCKS)
    while len(chosen) < n_points and distances.max() > smallest:
        n_candidates = min(_CANDIDATES_PER_POINT * step, pool.shape[0])
        candidates = np.argpartition(-distances, n_candidates - 1)[:n_candidates]
        rest = KernelValues(kernel, pool[candidates], np.float64).of(pool[candidates])
        rest -= features[candidates] @ features[candidates].T
        _, pivots, rank, _ = dpstrf(rest, lower=1, tol=smallest)
        new = pivots[: min(rank, step, n_points - len(chosen))] - 1
        if not len(new):
            break
        corner = np.linalg.cholesky(rest[np.ix_(new, new)])
        block = candidates[new]
        values = KernelValues(kernel, pool[block], np.float64).of(pool) - features @ features[block].T
        mapped = solve_triangular(corner, values.T, lower=True).T
        features = np.hstack([features, mapped])
        distances = distances - np.square(mapped).sum(axis=1)
        chosen.extend(block)
        distances[chosen] = 0.0
    return pool[np.sort(chosen)] if chosen else pool[:n_points]


def _diagonal(kernel, rows):
    """Return K(x, x) of rows."""
    if kernel.from_products:
        return kernel.diagonal(squared_norms(rows))
    return np.array([float(kernel.function(rows[i : i + 1], rows[i : i + 1])[0, 0]) for i in range(rows.shape[0])])


_METHODS = {"kmeans": _centres, "leverage": _by_leverage, "greedy": _greedily}
METHODS = ("uniform", *_METHODS)
