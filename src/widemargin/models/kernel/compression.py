"""`compress`: a fitted kernel machine on fewer vectors, and how far it is from the original.

    f(z) = Σ_i c_i K(x_i, z) + b     becomes     g(z) = Σ_j b_j K(z_j, z) + b,     with far fewer vectors z_j

The z_j are chosen among the support vectors so that |f − g|, the norm in the kernel's space, falls most with each
(`kernels.greedy_vectors`); the coefficients minimise it (`kernels.reduced_expansion`). With several classes there is
one function for each pair of classes, all share the vectors, and the sum of their squared distances is reduced. In the
original, a pair has the support vectors of its two classes. In the compressed model, it has all vectors, as in a
machine on a basis: the functions come nearer to the original. If there are so many pairs that their coefficients would
take more time than the kernel values, a pair keeps the vectors of its two classes. `refit` goes on from there and fits
g to the values of f at given rows (`models.kernel.refit`).

References
----------
Burges, Simplified support vector decision rules, ICML (1996).
Schölkopf, Mika, Burges, Knirsch, Müller, Rätsch and Smola, Input space versus feature space in kernel-based methods,
IEEE Transactions on Neural Networks 10 (1999).
"""

from copy import copy
from dataclasses import replace
from numbers import Integral
from typing import Literal, TypeVar

import numpy as np
from scipy.sparse import issparse
from sklearn.base import is_classifier, is_outlier_detector, is_regressor

from widemargin._runtime.argument_types import Rows
from widemargin._runtime.progress import reporting
from widemargin.data.products import squared_norms
from widemargin.kernels.greedy_vectors import choose_vectors
from widemargin.kernels.reduced_expansion import (
    Expansions,
    inner_products,
    projected,
    rounding_of_distances,
    squared_distances,
    values_at,
)
from widemargin.models.kernel.base import KernelModel
from widemargin.models.kernel.compression_report import Compression
from widemargin.models.kernel.refit import refit_coefficients, refit_vectors
from widemargin.models.kernel.training_rows import parts_of
from widemargin.models.multiclass import blocks_of, labels_of, pair_cells

_OF_SUPPORT_VECTORS = ("support_", "support_vectors_", "n_support_", "dual_coef_")
_REFITS = {"coefficients": refit_coefficients, "vectors": refit_vectors}
# What a fit leaves that is not true of the compressed model: its proof, its record, and where a warm start begins.
_ONLY_OF_THE_FIT = (
    "gap_", "objective_", "history_", "solver_", "status_", "fit_status_", "facts_", "n_iter_", "_last_multipliers",
)  # fmt: skip
# Time of a kernel value in prediction, in units of that of one coefficient: measured with 16 to 784 dense features.
_COEFFICIENTS_PER_KERNEL_VALUE, _COEFFICIENTS_PER_FEATURE, _COEFFICIENTS_PER_STORED_VALUE = 10.0, 0.35, 0.7
_MOST_TIMES_AS_SLOW = 2.0  # that prediction may become where pairs of classes share vectors
_FEWEST_ON_FIRST_TRY = 256  # vectors that are chosen before it is seen how many `max_change` takes
_SMALLER_GOAL, _SMALLEST_GOAL = 0.1, 1e-16  # of squared distances, where rounding keeps them from `max_change`
_MORE = 1.02  # factor of their number while rounding keeps them from reaching `max_change`

Machine = TypeVar("Machine", bound=KernelModel)


def compress(
    model: Machine,
    X: Rows | None = None,
    *,
    n_vectors: int | None = None,
    max_change: float | None = None,
    refit: Literal["coefficients", "vectors"] | None = None,
    shared: bool | None = None,
) -> Machine:
    """Return a fitted kernel machine on fewer vectors, which predicts in proportion faster.

    Vectors are chosen among the support vectors one after the other, each so that the distance from the original in the
    norm of the kernel's space falls most; their coefficients are those that make it smallest. `compression_` of the
    result says what has changed. It predicts, is saved and loaded as before. What only a fit can say is absent:
    `gap_`, `objective_`, `history_`, `solver_`, `status_`, `fit_status_`, `facts_`, `n_iter_`, and the dual variables
    for a warm start. The parameters of probabilities are those of the original.

    Parameters
    ----------
    model : SVC, NuSVC, SVR, NuSVR or OneClassSVM
        A fitted model, exact or on a basis, which is not changed. Its kernel is "rbf", "linear", or "poly" with
        coef0 >= 0. With a linear kernel there is never a need for more vectors than features; prediction by this
        package does not get faster, as it uses one weight vector.
    X : array-like or sparse matrix of shape (n_rows, n_features), default=None
        Rows such as those of training, without labels: the change of their decision values is reported, and `refit`
        fits the values of the original at these rows.
    n_vectors : int, default=None
        How many vectors to keep. There are fewer if the others are combinations of these except for rounding.
    max_change : float, default=None
        Keep as few vectors as the greedy choice takes for `compression_.bound` to be at most this: a proof for every
        row, if the kernel is "rbf", and for the rows of X otherwise. Such proofs take many vectors; a model with
        given `n_vectors` usually changes by far less than its bound. Exactly one of the two must be given.
    refit : {"coefficients", "vectors"}, default=None
        "coefficients" fits coefficients and intercepts to the decision values of the original at the rows of X, by
        least squares, of a classifier with larger weights near zero. "vectors" also moves the vectors, by gradient
        descent on the same sum of squares: they are no longer rows of the training data, and there is no `support_`.
        Only for "rbf". Pairs of classes are fitted to the rows that the original assigns to one of the two. Not with
        `max_change`.
    shared : bool, default=None
        With more than two classes, whether the decision functions of all pairs have all vectors, as in a machine on a
        basis: the model then has `basis_` and `basis_coef_` in place of support vectors, and comes nearer to the
        original. False keeps the layout of LIBSVM, in which a pair has the vectors of its two classes: its text
        files are then smaller and faster in LIBSVM's own programs. None is True, unless there are so many pairs that
        their coefficients would more than double the time of prediction.

    Returns
    -------
    model
        A model of the same class with the same parameters, and `compression_`, a `Compression`.

    Raises
    ------
    TypeError
        If the model is not one of these machines.
    ValueError
        If the kernel has no norm to measure the distance in, or if the arguments contradict each other.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from widemargin import SVC, compress
    >>> X, y = load_digits(return_X_y=True)
    >>> model = SVC(C=10.0).fit(X[:1200], y[:1200])
    >>> small = compress(model, X[:1200], n_vectors=len(model.support_) // 4)
    >>> small.compression_.agreement > 0.98
    True
    """
    _check_model(model)
    if isinstance(X, Integral):
        raise ValueError(f"X must be rows, got {X}: for so many vectors, write n_vectors={X}.")
    X = None if X is None else model._check_new_rows(X)
    _check_arguments(model, X, n_vectors, max_change, refit)
    with reporting(model.verbose):
        return _compressed(model, X, n_vectors, max_change, refit, shared)


def _compressed(model, X, n_vectors, max_change, refit, shared):
    """Return the compressed model; the arguments have been checked."""
    original = _expansions_of(model)
    f = exact = original.in_double()
    if _shares_vectors(f, n_vectors, shared):
        f = f.shared()
    values = values_at(exact, f)
    norms = np.maximum(inner_products(values, f), 0.0)
    if n_vectors is not None:
        order, g = _with_vectors(f, values, norms, int(n_vectors))
    else:
        order, g = _within_change(f, values, norms, float(max_change) / _largest_norm(f.kernel, X))
    if g is f:
        f = g = exact
    intercept, before = model.intercept_, None if X is None else _all_decision_values(model, X, len(f.outputs))
    values_of_g = values[:, order]
    if refit is not None:
        g, intercept = _REFITS[refit](model, exact, g, X, before)
    if refit == "vectors":
        order, values_of_g = None, values_at(exact, g)
    small = _with_functions(model, order, g, intercept, original.vectors)
    report = _report(model, small, (f, norms), (g, values_of_g), X)
    small.compression_ = replace(report, refit=refit, **_changes(model, small, X, before))
    return small


def _check_model(model):
    """Raise an error unless the model is a fitted kernel machine whose kernel has a norm."""
    if not isinstance(model, KernelModel):
        raise TypeError(
            f"compress takes a fitted SVC, NuSVC, SVR, NuSVR or OneClassSVM, got {type(model).__name__}; "
            "a linear model has no vectors to leave out."
        )
    model._check_fitted()
    model._check_unaltered()
    if not model._has_features:
        kind = "precomputed" if model.kernel == "precomputed" else "a function"
        raise ValueError(
            f"kernel is {kind}: compress computes kernel values of the support vectors, which such a model does not "
            'hold. Fit with kernel="rbf", "poly" or "linear".'
        )
    if not model._kernel().positive_definite:
        rule = 'coef0 is negative: "poly" needs coef0 >= 0' if model.kernel == "poly" else "its values are no products"
        raise ValueError(
            f"kernel={model.kernel!r} has no norm in which the distance of two models could be measured ({rule}). "
            'Fit with kernel="rbf", "poly" with coef0 >= 0, or "linear".'
        )


def _check_arguments(model, X, n_vectors, max_change, refit):
    """Raise ValueError if the arguments are out of range or contradict each other."""
    if (n_vectors is None) == (max_change is None):
        raise ValueError(f"give either n_vectors or max_change, got n_vectors={n_vectors} and max_change={max_change}.")
    is_count = isinstance(n_vectors, Integral) and not isinstance(n_vectors, bool) and n_vectors >= 1
    if n_vectors is not None and not is_count:
        raise ValueError(f"n_vectors must be an integer >= 1, got {n_vectors}.")
    if max_change is not None and not 0.0 < max_change < np.inf:
        raise ValueError(f"max_change must be a positive number, got {max_change}.")
    if max_change is not None and X is None and model.kernel != "rbf":
        raise ValueError(
            f"max_change with kernel={model.kernel!r} needs X: K(x, x) has no bound, so that the change is bounded for "
            "given rows only. Pass the training rows as X, or use n_vectors."
        )
    if refit is None:
        return
    if refit not in _REFITS:
        raise ValueError(f"refit must be one of {', '.join(map(repr, _REFITS))} or None, got {refit!r}.")
    if max_change is not None:
        raise ValueError("refit does not keep to max_change, which bounds the change of every row: use n_vectors.")
    if X is None:
        raise ValueError(f"refit={refit!r} needs X, rows such as those of training; no labels are needed.")
    if refit == "vectors" and model.kernel != "rbf":
        raise ValueError(f"refit='vectors' is for kernel='rbf', got {model.kernel!r}; use refit='coefficients'.")


def _expansions_of(model):
    """Return the functions of a model, without intercepts."""
    if model._is_on_basis:
        table = np.asarray(model.basis_coef_, dtype=np.float64)
        outputs = tuple(((p, 0),) for p in range(len(table)))
        return Expansions(model._kernel(), model.basis_, table, np.array([0, table.shape[1]]), outputs, model.n_jobs)
    table = model.dual_coef_.toarray() if issparse(model.dual_coef_) else model.dual_coef_
    outputs = pair_cells(len(model.classes_)) if is_classifier(model) else (((0, 0),),)
    table = np.asarray(table, dtype=np.float64)
    return Expansions(
        model._kernel(), model.support_vectors_, table, blocks_of(model.n_support_), outputs, model.n_jobs
    )


def _shares_vectors(f, n_vectors, shared):
    """Return whether all outputs get all vectors, which some outputs of f do not have.

    They do unless told otherwise, if prediction takes at most twice the time for that.
    """
    if len(f.groups()) == 1 or shared is False or (n_vectors is not None and n_vectors >= f.n_vectors):
        return False
    if shared:
        return True
    if issparse(f.vectors):
        of_features = _COEFFICIENTS_PER_STORED_VALUE * f.vectors.nnz / f.n_vectors
    else:
        of_features = _COEFFICIENTS_PER_FEATURE * f.vectors.shape[1]
    of_value = _COEFFICIENTS_PER_KERNEL_VALUE + of_features
    return of_value + len(f.outputs) <= _MOST_TIMES_AS_SLOW * (of_value + f.table.shape[0])


def _with_vectors(f, values, norms, n_vectors):
    """Return the numbers of up to `n_vectors` chosen vectors, ascending, and the nearest functions on them."""
    if n_vectors >= f.n_vectors:
        return np.arange(f.n_vectors), f
    order = np.sort(choose_vectors(f, values, norms, n_vectors).order)
    return order, projected(f, values, order)


def _within_change(f, values, norms, largest):
    """Return the first chosen vectors, ascending, with which all distances are at most `largest`, and the functions.

    All vectors, with their coefficients, if no choice comes so near, be it for rounding.
    """
    if (norms <= largest**2).all() and f.n_vectors > 1:  # not even one would be needed, but a model has one
        return _with_vectors(f, values, norms, 1)
    n_most, goal = f.n_vectors - 1, largest**2
    n_tried = min(n_most, max(_FEWEST_ON_FIRST_TRY, n_most // 8))
    while n_tried > 0:
        choice = choose_vectors(f, values, norms, n_tried, goal)
        order, g = _first_within(f, values, norms, choice, largest)
        if order is not None:
            return order, g
        if len(choice.order) == n_tried < n_most:
            n_tried = min(n_most, 2 * n_tried)
        elif len(choice.order) < n_tried and goal > _SMALLEST_GOAL * norms.max():
            goal *= _SMALLER_GOAL
        else:  # there is no vector left, or none that would reduce the distance by more than rounding
            break
    return np.arange(f.n_vectors), f


def _first_within(f, values, norms, choice, largest):
    """Return the first vectors of a choice, ascending, with which all distances are at most `largest`, or None."""
    left = norms - np.cumsum(choice.decrease, axis=0)
    near = np.flatnonzero((left <= largest**2).all(axis=1))
    n_taken = 1 + near[0] if len(near) else len(choice.order)
    while 0 < n_taken <= len(choice.order):
        order = np.sort(choice.order[:n_taken])
        g = projected(f, values, order)
        if _distances(f, norms, g, values[:, order]).max(initial=0.0) <= largest:
            return order, g
        n_taken = max(n_taken + 1, int(_MORE * n_taken))
    return None, None


def _distances(f, norms, g, values_of_g):
    """Return upper bounds of |f − g| of each output, rounding included; 0 if g is f."""
    if g is f:
        return np.zeros(len(f.outputs))
    return np.sqrt(squared_distances(norms, values_of_g, g) + rounding_of_distances(f, g))


def _largest_norm(kernel, X):
    """Return the largest √K(x, x): 1 of "rbf", otherwise that of the rows of X."""
    return 1.0 if kernel.name == "rbf" else float(np.sqrt(kernel.diagonal(squared_norms(X)).max(initial=0.0)))


def _with_functions(model, order, g, intercept, vectors):
    """Return a copy of the model with other functions; `order` are the numbers of its vectors, None if they moved."""
    small, table = copy(model), g.table.copy()
    for name in _ONLY_OF_THE_FIT:
        vars(small).pop(name, None)
    if order is None:
        vars(small).pop("support_", None)
        moved = g.vectors.astype(vectors.dtype)
        kept = type(vectors)(moved) if issparse(vectors) else moved
    else:
        kept = vectors[order]
    if model._is_on_basis or len(g.groups()) < len(g.outputs):
        for name in _OF_SUPPORT_VECTORS:
            vars(small).pop(name, None)
        small.basis_, small.basis_coef_ = kept, table
    else:
        small.support_vectors_, small.n_support_ = kept, np.diff(g.ends).astype(np.int32)
        small.dual_coef_ = type(model.dual_coef_)(table) if issparse(model.dual_coef_) else table
        if order is not None and hasattr(model, "support_"):
            small.support_ = model.support_[order]
    small.intercept_ = np.array(intercept, dtype=np.float64)
    if is_outlier_detector(model):
        small.offset_ = -small.intercept_
    return small


def _report(model, small, original, compressed, X):
    """Return the Compression of a model, from both functions and the values that are known of them."""
    (f, norms), (g, values_of_g) = original, compressed
    distance = _distances(f, norms, g, values_of_g)
    size = np.sqrt(norms)
    relative = np.divide(distance, size, out=np.zeros_like(distance), where=size > 0.0)
    bound = None
    if X is not None or f.kernel.name == "rbf":
        shift = np.abs(small.intercept_ - model.intercept_)
        bound = float((distance * _largest_norm(f.kernel, X) + shift).max(initial=0.0))
    return Compression(f.n_vectors, g.n_vectors, distance, relative, bound)


def _changes(model, small, X, before):
    """Return the largest change of a decision value of the rows X, and the fraction of equal labels, as a dict."""
    if X is None:
        return {}
    after = _all_decision_values(small, X, before.shape[1])
    is_equal = _labels(model, before) == _labels(small, after)
    agreement = None if is_regressor(model) else float(is_equal.mean())
    return {"change": float(np.abs(after - before).max(initial=0.0)), "agreement": agreement}


def _all_decision_values(model, X, n_outputs):
    """Return `decision_values` of all rows, computed block by block."""
    return np.concatenate([decision_values(model, part) for part in parts_of(X, 2 * n_outputs)])


def decision_values(model, X):
    """Return the value of each output of checked rows, (n_rows, n_outputs)."""
    if is_classifier(model):
        return model._decisions(X)
    values = model.decision_function(X) if is_outlier_detector(model) else model.predict(X)
    return values[:, np.newaxis]


def _labels(model, decisions):
    """Return what a model predicts from decision values; those themselves, for regression."""
    if is_classifier(model):
        return labels_of(model, decisions)
    return decisions[:, 0] >= 0.0 if is_outlier_detector(model) else decisions[:, 0]
