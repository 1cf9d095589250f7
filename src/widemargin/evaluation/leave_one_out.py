"""Bounds of the leave-one-out error of a support vector classifier that follow from one fit (Joachims, 2000).

Let α and ξ be the dual variables and the losses of a machine with hinge loss, and f the decision function of the
machine without row t. If it errs on t, y_t f(x_t) <= 0, then

    ξ_t + ½ α_t (D_t + D'_t) >= 1                                                                     (1)

D_t is |φ(x_t) − Σ_j d_j φ(x_j)|², where Σ d_j = 1 and α_t d_j can be moved from t to the free support vectors j without
leaving the bounds of the dual problem; D'_t is the same for the free support vectors of the machine without t.

Proof. Removing t that way gives a feasible point of the dual problem without t whose value is lower by
α_t ξ_t + ½ α_t² D_t: the gradient of the dual objective is zero along exchanges between free variables. Adding t with
α_t to the solution without t raises the dual objective by at least α_t (1 − y_t f(x_t)) − ½ α_t² D'_t. The first is at
least the second, since α is optimal with t and the other solution without it.

Both D are at most max_j |φ(x_t) − φ(x_j)|² = 2 R_t², so that an error implies ξ_t + 2 α_t R_t² >= 1. The number of rows
for which this holds bounds the number of leave-one-out errors. It assumes that there are free support vectors which can
take what is moved, in either machine, if the dual variables have a fixed sum: there is an intercept without penalty.
Therefore rows with α_t > 0 also count as errors if the other free support vectors cannot take 2 α_t: once for t, and
once more for the machine without it, in whose place they stand.

So with rho = 2, whatever the depth, the bound is proved up to the tolerance of the fit if there is no intercept, or a
penalised one. With an intercept without penalty it is proved for rows whose α_t the free support vectors of the machine
without them can take; that the rule of 2 α_t finds the other rows is not proved, but tested: 200 random problems have
no exception. With rho in place of 2 it is Joachims's family of estimates, of which SVM-light uses rho = 1; this is no
bound any more if there is an intercept, but closer to the error. Rows with α_t = 0 are never errors. With a `depth`,
D_t is made small by a greedy choice of d, in steps of 1 / depth; D'_t is 2 R_t² for rho = 2, is taken to be D_t for rho
= 1, and is between them for numbers between these.

T. Joachims, Estimating the generalization performance of an SVM efficiently, ICML 2000.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import check_is_fitted

from widemargin._runtime.argument_types import Rows
from widemargin._runtime.progress import task
from widemargin.data.products import squared_norms
from widemargin.kernels.functions import Kernel
from widemargin.kernels.values import KernelValues
from widemargin.models.inputs import checked_rows
from widemargin.models.kernel.svc import SVC
from widemargin.models.linear import LinearSVC

_ROWS_AT_A_TIME = 512  # of kernel values with all rows
_AT_BOUND = 1.0 - 1e-9  # of the upper bound, from which on a dual variable is not free


@dataclass(frozen=True)
class LeaveOneOutEstimates:
    """Bounds of leave-one-out measures, and the measures themselves if they were asked for.

    Attributes
    ----------
    error : float
        Upper bound of the leave-one-out error, between 0 and 1.
    recall, precision : float
        Lower bounds of recall and precision of the positive class, the second of `classes_`.
    rows : ndarray of bool
        For each row, whether it may be an error.
    rho, depth
        As they were given.
    exact_error, exact_recall, exact_precision : float or None
        With `exact=True`: the measures by fits without each of those rows.
    n_fits : int
        Number of these fits.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from widemargin import SVC, leave_one_out_estimates
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> estimates = leave_one_out_estimates(SVC(gamma=1e-5).fit(X, y), X, y)
    >>> bool(estimates.rows.mean() == estimates.error), estimates.exact_error is None
    (True, True)
    """

    error: float
    recall: float
    precision: float
    rows: np.ndarray
    rho: float
    depth: int
    exact_error: float | None = None
    exact_recall: float | None = None
    exact_precision: float | None = None
    n_fits: int = 0


def leave_one_out_estimates(
    model: SVC | LinearSVC,
    X: Rows,
    y: ArrayLike,
    *,
    rho: float = 2.0,
    depth: int = 0,
    exact: bool = False,
    squared_radius: float | None = None,
) -> LeaveOneOutEstimates:
    """Estimate the leave-one-out error, recall and precision of a classifier from its dual variables.

    Parameters
    ----------
    model : SVC or LinearSVC
        A fitted classifier of two classes, with hinge loss and dual variables for all rows: a SVC whose kernel is
        computed from features, or LinearSVC(loss="hinge", solver="dcd").
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The rows that it was fitted to.
    y : array-like of shape (n_samples,)
        Their labels.
    rho : float, default=2.0
        A row counts as an error if ξ + rho α R² >= 1, where R² is half the largest squared distance from the row to
        another one in the space of the kernel, or if too few support vectors are free. 2 gives bounds, which are proved
        without an intercept or with a penalised one; of SVC, which has one without penalty, they are proved if the
        machines without one row have free support vectors enough, and otherwise only tested. SVM-light's 1 gives
        estimates that are closer to the error, and may be too small.
    depth : int, default=0
        With a depth above 0, rows that would count are tried again with a sharper condition, whose cost is in
        proportion to the depth and to the number of free support vectors; SVM-light suggests 100.
    exact : bool, default=False
        Whether to compute the leave-one-out measures, too, by a fit without each row that may be an error. The depth is
        not used to choose these rows.
    squared_radius : float, default=None
        One R² for all rows, in place of that of each row, as SVM-light has it. Whether support vectors are free is not
        asked then.

    Returns
    -------
    LeaveOneOutEstimates
        Bounds, as numbers between 0 and 1.

    Raises
    ------
    TypeError
        If the model is not one of these classifiers.
    ValueError
        If the rows are not those of the model, or a parameter is out of range.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from widemargin import SVC, leave_one_out_estimates
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = SVC(C=10.0, gamma=1e-5, tol=1e-6).fit(X, y)
    >>> estimates = leave_one_out_estimates(model, X, y, exact=True)
    >>> estimates.exact_error <= estimates.error < 0.2
    True
    """
    if not 0.0 < rho <= 2.0:
        raise ValueError(f"rho must be above 0 and at most 2, got {rho}.")
    if depth < 0:
        raise ValueError(f"depth must be at least 0, got {depth}.")
    problem = _Problem(model, X, y)
    radius = problem.squared_radii() if squared_radius is None else np.full(problem.n_rows, float(squared_radius))
    candidates = problem.loss + rho * problem.alpha * radius >= 1.0
    lacks_room = problem.lacks_room() if squared_radius is None else np.zeros(problem.n_rows, bool)
    candidates |= lacks_room
    may_err = candidates.copy()
    if depth:
        bounded = max(rho - 1.0, 0.0)
        for t in np.flatnonzero(may_err & (problem.alpha > 0.0) & ~lacks_room):
            spread = problem.spread(t, depth)
            mean = (1.0 - 0.5 * bounded) * spread + bounded * radius[t]
            may_err[t] = problem.loss[t] + min(rho, 1.0) * problem.alpha[t] * mean >= 1.0
    error, recall, precision = _measures(problem.sign, may_err)
    found = LeaveOneOutEstimates(error, recall, precision, may_err, rho, depth)
    if not exact:
        return found
    errs, n_fits = problem.leave_one_out(candidates)
    error, recall, precision = _measures(problem.sign, errs)
    return replace(found, exact_error=error, exact_recall=recall, exact_precision=precision, n_fits=n_fits)


def _measures(sign, errs):
    """Return error, recall and precision if these rows are errors; precision is 1 if no row is predicted positive."""
    n_positive = int(np.sum(sign > 0))
    missed, wrong = int(np.sum(errs & (sign > 0))), int(np.sum(errs & (sign < 0)))
    found = n_positive - missed
    precision = found / (found + wrong) if found + wrong else 1.0
    return float(np.mean(errs)), found / n_positive, precision


class _Problem:
    """A fitted classifier with its rows: signs, dual variables, losses and kernel values."""

    def __init__(self, model, X, y):
        self._model, self.X = model, _checked(model, X)
        y = np.asarray(y)
        if y.shape != (self.X.shape[0],) or not np.isin(y, model.classes_).all():
            raise ValueError("y must have one of the two labels of the model for each row of X.")
        self.y, self.sign = y, np.where(y == model.classes_[1], 1.0, -1.0)
        self.n_rows = len(y)
        self.alpha = self._dual_variables() * self.sign
        if (self.alpha < 0.0).any():
            raise ValueError("X and y must be the rows and labels that the model was fitted to.")
        self.loss = np.maximum(1.0 - self.sign * model.decision_function(self.X), 0.0)
        factors = compute_class_weight(model.class_weight, classes=model.classes_, y=y)
        self.cost = float(model.C) * factors[(self.sign > 0).astype(int)]

    def _dual_variables(self):
        """Return the signed dual variable of each row."""
        model = self._model
        coefficients = model.dual_coef_.toarray() if issparse(model.dual_coef_) else np.asarray(model.dual_coef_)
        if isinstance(model, LinearSVC):
            if coefficients.shape != (1, self.n_rows):
                raise ValueError(f"X must have the {coefficients.shape[1]} rows of the fit, got {self.n_rows}.")
            return coefficients[0]
        if self.n_rows != model.shape_fit_[0]:
            raise ValueError(f"X must have the {model.shape_fit_[0]} rows of the fit, got {self.n_rows}.")
        signed = np.zeros(self.n_rows)
        signed[model.support_] = coefficients[0]
        return signed

    def _kernel(self):
        return Kernel("linear") if isinstance(self._model, LinearSVC) else self._model._kernel()

    @property
    def _has_sum(self):
        """Whether the dual variables have a fixed sum, which they have if there is an intercept without penalty."""
        model = self._model
        return isinstance(model, SVC) or (model.fit_intercept and not model.penalize_intercept)

    def _squares(self):
        """Return the square of each row, with its constant feature."""
        model = self._model
        constant = model.intercept_scaling if isinstance(model, LinearSVC) and model.fit_intercept else 0.0
        return self._kernel().diagonal(squared_norms(self.X)) + constant**2

    def squared_radii(self):
        """Return half the largest squared distance to another row, for each row; 0 for rows that are no candidates.

        Without a fixed sum of dual variables, nothing has to be moved to other rows, and it is half the square of the
        row.
        """
        if not self._has_sum:
            return 0.5 * self._squares()
        radii, kernel = np.zeros(self.n_rows), self._kernel()
        values, diagonal = KernelValues(kernel, self.X, np.float64), kernel.diagonal(squared_norms(self.X))
        candidates = np.flatnonzero(self.alpha > 0.0)
        for begin in range(0, len(candidates), _ROWS_AT_A_TIME):
            rows = candidates[begin : begin + _ROWS_AT_A_TIME]
            distances = diagonal[rows, np.newaxis] + diagonal - 2.0 * values.of(self.X[rows])
            radii[rows] = 0.5 * np.maximum(distances.max(axis=1), 0.0)
        return radii

    def _is_free(self):
        """Return which rows are free support vectors: their dual variables are between their bounds."""
        return (self.alpha > 0.0) & (self.alpha < _AT_BOUND * self.cost)

    def lacks_room(self):
        """Return the rows with α > 0 of which the other free support vectors cannot take 2 α.

        They take it by larger dual variables of the same class, and by smaller ones of the other class. Without a fixed
        sum of dual variables there is nothing to be taken.
        """
        if not self._has_sum:
            return np.zeros(self.n_rows, bool)
        free, room = self._is_free(), np.empty(self.n_rows)
        for sign in (1.0, -1.0):
            mine = self.sign == sign
            room[mine] = (self.cost - self.alpha)[free & mine].sum() + self.alpha[free & ~mine].sum()
        room[free] -= (self.cost - self.alpha)[free]  # a row does not take its own
        return (self.alpha > 0.0) & (room < 2.0 * self.alpha)

    def spread(self, t, depth):
        """Return a small |φ(x_t) − Σ d_j φ(x_j)|² over free support vectors j, by `depth` greedy steps."""
        if not self._has_sum:
            return float(self._squares()[t])
        kernel = self._kernel()
        is_free = self._is_free()
        is_free[t] = False
        free = np.flatnonzero(is_free)
        own = float(kernel.diagonal(squared_norms(self.X[t : t + 1]))[0])
        room = np.where(self.sign[free] == self.sign[t], self.cost[free] - self.alpha[free], self.alpha[free])
        step = self.alpha[t] / depth
        if not len(free) or room.sum() < self.alpha[t]:
            return np.inf
        K = KernelValues(kernel, self.X[free], np.float64)
        with_t, among = K.of(self.X[t : t + 1])[0], K.of(self.X[free])
        sums, moved, square = np.zeros(len(free)), np.zeros(len(free)), own
        for _ in range(depth):
            change = (2.0 * (sums - with_t) + np.diag(among) / depth) / depth
            change[moved + step > room] = np.inf
            j = int(np.argmin(change))
            if not np.isfinite(change[j]):
                return np.inf
            square += change[j]
            moved[j] += step
            sums += among[j] / depth
        return max(square, 0.0)

    def leave_one_out(self, candidates):
        """Return which rows are leave-one-out errors, of those that may be, and the number of fits.

        A row that is an error of the model with it is one of the model without it, whose loss there is not smaller.
        """
        errs = self.loss >= 1.0
        rows = np.flatnonzero(candidates & ~errs & (self.alpha > 0.0))
        with task("leave-one-out", len(rows), "fits") as fits:
            for t in rows:
                errs[t] = self.errs_without(t)
                fits.advance()
        return errs, len(rows)

    def errs_without(self, t):
        """Return whether the model that is fitted to the other rows errs on row t."""
        others = np.delete(np.arange(self.n_rows), t)
        if len(np.unique(self.sign[others])) < 2:
            return True
        model = clone(self._model)
        if isinstance(model, SVC) and self._model.kernel != "linear":
            model.set_params(gamma=self._model._gamma)
        if getattr(model, "class_weight", None) == "balanced":
            model.set_params(class_weight=dict(zip(self._model.classes_, self._model.class_weight_, strict=True)))
        score = model.fit(self.X[others], self.y[others]).decision_function(self.X[t : t + 1])[0]
        return bool(self.sign[t] * score <= 0.0)


def _checked(model, X):
    """Return the rows; TypeError unless the model is a classifier with hinge loss, two classes and dual variables."""
    check_is_fitted(model)
    is_machine = isinstance(model, SVC) and not hasattr(model, "basis_") and hasattr(model, "support_")
    is_linear = isinstance(model, LinearSVC) and model.loss == "hinge" and hasattr(model, "dual_coef_")
    if not (is_machine or is_linear) or len(model.classes_) != 2:
        raise TypeError(
            "leave_one_out_estimates needs a fitted SVC, or a LinearSVC with loss='hinge' and solver='dcd', of two "
            f"classes; got {model!r}."
        )
    if is_machine and not (isinstance(model.kernel, str) and model.kernel != "precomputed"):
        raise TypeError("leave_one_out_estimates needs a kernel that is computed from features.")
    return checked_rows(model, X, accept_sparse="csr", reset=False)
