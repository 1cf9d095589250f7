"""`svm_learn -z p`: rankings, with any of the kernels.

    minimise ½|w|² + C Σ over pairs of rows of a query of max(0, 1 − f(x_i) + f(x_j)), y_i > y_j,    f(x) = <w, φ(x)>

The optimum is a combination of the φ(x_i), so that RankSVM on the basis of all rows is the exact machine.
"""

import numpy as np

from widemargin.data.products import squared_norms
from widemargin.evaluation.retrieval import pairs_of_queries
from widemargin.kernels.values import KernelValues
from widemargin.models.cutting_plane.ranking import RankSVM
from widemargin.workflows.originals.svm_light_facts import kernel_of
from widemargin.workflows.originals.svm_light_unbiased import basis_of

_ROWS_AT_A_TIME = 512  # of which the pairs with all rows of their query are looked at
_ROUNDING = 1e-9  # of margins of pairs, relative to the largest score


def rank(settings, X, y, qid):
    """Return a RankSVM whose C is that of a sum over pairs, and facts about it."""
    query = np.zeros(len(y), int) if qid is None else qid
    n_pairs = int(pairs_of_queries(y, query).sum())
    if not n_pairs:
        raise ValueError("no query has rows with different targets: there is no pair to put in order.")
    options = {"C": settings.C * n_pairs, "tol": settings.tol, "max_iter": None}
    if settings.kernel != "linear":
        basis = basis_of(X, "ranking with a kernel")  # points that depend on others are left out
        options |= {"kernel": settings.kernel, "basis": basis, **settings.kernel_numbers}
    model = RankSVM(**options).fit(X, y, qid=qid)
    length = length_of(model)
    facts = {
        "iterations": int(model.n_iter_),
        "pairs": n_pairs,
        "violation": max(model.gap_, 0.0),
        "dual": model.objective_ * (1.0 - max(model.gap_, 0.0)),
        "length": length,
        "loss": max(model.objective_ - 0.5 * length**2, 0.0) / settings.C,
    }
    return model, facts | _facts_of_pairs(settings, X, y, query, model.decision_function(X))


def length_of(model):
    """Return |w|, in the space of the kernel."""
    if not hasattr(model, "basis_"):
        return float(np.linalg.norm(model.coef_))
    values = model.decision_function(model.basis_) - model.intercept_
    return float(np.sqrt(max(float(model.basis_coef_[0] @ values), 0.0)))


def _facts_of_pairs(settings, X, y, query, scores):
    """Return the longest |φ(x_i) − φ(x_j)| over pairs, and how many have a margin of at most 1, and below 1."""
    kernel, tol = kernel_of(settings), settings.tol + _ROUNDING * float(np.abs(scores).max(initial=0.0))
    order, longest, n_support, n_below = np.argsort(query, kind="stable"), 0.0, 0, 0
    for rows in np.split(order, np.flatnonzero(np.diff(query[order])) + 1):
        values, squares = KernelValues(kernel, X[rows], np.float64), kernel.diagonal(squared_norms(X[rows]))
        for begin in range(0, len(rows), _ROWS_AT_A_TIME):
            part = slice(begin, begin + _ROWS_AT_A_TIME)
            is_pair = y[rows[part], np.newaxis] > y[rows]
            distances = squares[part, np.newaxis] + squares - 2.0 * values.of(X[rows[part]])
            longest = max(longest, float(distances[is_pair].max(initial=0.0)))
            margins = (scores[rows[part], np.newaxis] - scores[rows])[is_pair]
            n_support += int(np.sum(margins <= 1.0 + tol))
            n_below += int(np.sum(margins < 1.0 - tol))
    return {"longest": float(np.sqrt(longest)), "support": n_support, "at_bound": n_below}
