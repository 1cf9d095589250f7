"""Numbers that svm_learn prints about a machine of rows: losses, objective, norms, violated optimality conditions."""

import numpy as np

from widemargin.data.products import squared_norms
from widemargin.kernels.functions import Kernel
from widemargin.models.linear import LinearSVC, LinearSVR

_AT_BOUND = 1.0 - 1e-12  # of the cost


def kernel_of(settings):
    """Return the Kernel of LightSettings."""
    return Kernel(settings.kernel, **settings.kernel_numbers)


def distances_from_zero(kernel, norms):
    """Return |φ(x) − φ(0)| of rows with these squared norms: the root of K(x, x) − 2 K(x, 0) + K(0, 0)."""
    if kernel.name == "rbf":
        return np.sqrt(2.0 - 2.0 * np.exp(-kernel.gamma * norms))
    at_zero = {
        "linear": 0.0,
        "poly": float(kernel.coef0) ** kernel.degree,
        "sigmoid": np.tanh(kernel.coef0),
    }[kernel.name]
    return np.sqrt(np.maximum(kernel.diagonal(norms) - at_zero, 0.0))  # K(x, 0) is K(0, 0)


def signed_alphas(model, n_rows):
    """Return a number for each row: its dual variable times its label, of regression the difference of two."""
    if isinstance(model, (LinearSVC, LinearSVR)):
        return np.asarray(model.dual_coef_, dtype=float).ravel()
    beta = np.zeros(n_rows)
    coefficients = model.dual_coef_
    beta[model.support_] = (coefficients.toarray() if hasattr(coefficients, "toarray") else coefficients).ravel()
    return beta


def costs_of(settings, y):
    """Return the upper bound of the dual variable of each labelled row."""
    cost = np.full(len(y), float(settings.C))
    if settings.task == "classification":
        cost[y > 0] *= settings.positive_factor
    return cost


def are_at_bound(beta, cost):
    """Return which signed dual variables are as large as their costs allow."""
    return np.abs(beta) >= cost * _AT_BOUND


def facts_of(settings, X, y, f, beta, cost):
    """Return what svm_learn prints about a function f with the signed dual variables beta and these costs of rows.

    With an intercept, the sum of beta is zero.
    """
    is_regression = settings.task == "regression"
    length = float(np.sqrt(max(beta @ f, 0.0)))
    excess = np.abs(y - f) - settings.epsilon if is_regression else 1.0 - y * f
    loss, at_bound = np.maximum(excess, 0.0), are_at_bound(beta, cost)
    violation = np.where(beta == 0.0, loss, np.where(at_bound, np.maximum(-excess, 0.0), np.abs(excess)))
    linear = y @ beta - settings.epsilon * np.abs(beta).sum() if is_regression else np.abs(beta).sum()
    dual = float(linear) - 0.5 * length**2
    norms = squared_norms(X[np.flatnonzero(beta)]) if beta.any() else np.zeros(1)
    return {
        "support": int(np.count_nonzero(beta)),
        "at_bound": int(at_bound.sum()),
        "misclassified": int(np.sum(y * f <= 0.0)),
        "violation": float(violation.max()),
        "dual": dual,
        "gap": 0.5 * length**2 + float(cost @ loss) - dual,
        "loss": float(loss.sum()),
        "length": length,
        "sphere": float(distances_from_zero(kernel_of(settings), norms).max()),
        "longest": float(np.sqrt(kernel_of(settings).diagonal(squared_norms(X)).max())),
    }
