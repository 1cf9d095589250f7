"""One fold of a grid search, C after C: the kernel matrix is computed once for all folds and all C, each model begins
with the last one's multipliers, and the rows held out are scored through the same matrix.

A `Ground` is what the folds of one kernel share; a `FoldWalk` goes along C on one fold of it.
"""

from contextlib import nullcontext

import numpy as np
from scipy.sparse import issparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.utils import check_array

from widemargin.data.structure import check_structure
from widemargin.kernels.functions import Kernel
from widemargin.kernels.rows import KernelRows, submatrix
from widemargin.models.base import SolvedModel
from widemargin.models.kernel.base import KernelModel, block_dtype, kernel_values
from widemargin.solvers.contract import Status


class Ground:
    """The rows, or the kernel matrix of all rows, that the folds of a grid share.

    Parameters
    ----------
    model : estimator
        With all parameters but C.
    X : ndarray or csr
        The rows; of a precomputed kernel, the matrix.
    shares : bool
        Whether the kernel matrix of all rows may be kept in memory.

    Attributes
    ----------
    K : ndarray or None
        The kernel matrix; None if folds do not share one.
    """

    def __init__(self, model, X, shares):
        self.model, self.X, self.K = model, X, None
        if shares and _may_share(model):
            if not callable(model.kernel):
                check_array(X, accept_sparse="csr", estimator=model, input_name="X")  # once, for all that follow
            self.K = _kernel_matrix(model, X)

    def fold(self, train, test):
        """Return (estimator, training rows, rows held out) of a fold."""
        model = clone(self.model)
        if "warm_start" in model.get_params():
            model.set_params(warm_start=True)
        if self.K is not None:
            model.set_params(kernel="precomputed", shrinking=False)
            model._held = {}
            return model, submatrix(self.K, train, train), submatrix(self.K, test, train)
        if getattr(model, "kernel", None) == "precomputed":
            return model, self.X[np.ix_(train, train)], self.X[np.ix_(test, train)]
        return model, self.X[train], self.X[test]


def bytes_to_share(model, n_rows, n_threads):
    """Return the memory that a shared kernel matrix, and each thread's part of it, would take; infinite if none may."""
    if not _may_share(model):
        return np.inf
    kernel = Kernel("callable" if callable(model.kernel) else model.kernel)
    width = np.dtype(block_dtype(kernel, model.tol, n_rows)).itemsize
    return width * float(n_rows) ** 2 * (1 + 2 * n_threads)


def _may_share(model):
    """Whether the kernel is the same whatever rows it is of: gamma="scale" depends on those that are trained on."""
    return isinstance(model, KernelModel) and not (
        model.kernel in ("poly", "rbf", "sigmoid") and model.gamma == "scale"
    )


def _kernel_matrix(model, X):
    """Return the kernel matrix of all rows, in the precision in which a fit would compute it."""
    if model.kernel == "precomputed":
        return np.ascontiguousarray(X)
    if callable(model.kernel):
        return np.ascontiguousarray(kernel_values(model.kernel, X, X), dtype=np.float64)
    gamma = 1.0 / X.shape[1] if model.gamma in ("auto", "scale") else float(model.gamma)  # "scale": of no consequence
    kernel = Kernel(model.kernel, gamma=gamma, coef0=float(model.coef0), degree=int(model.degree))
    dtype = block_dtype(kernel, model.tol, X.shape[0])
    return KernelRows(kernel, X, dtype=dtype, n_jobs=1).whole()


class FoldWalk:
    """Models of one fold, each begun where the last one ended.

    Parameters
    ----------
    ground : Ground
    fold : (train, test)
        Row numbers.
    y : ndarray
        Finite, like what follows.
    fit_parameters : dict
        A value for each row by name, such as sample_weight or qid.
    scorer : callable(estimator, X, y, rows) -> float
        Of the rows held out, whose numbers are the last argument.
    stopping : callable() -> bool
        Asked now and then whether to give up.
    """

    def __init__(self, ground, fold, y, fit_parameters, scorer, stopping):
        self.train, self.test = fold
        self.model, self._X, self._Z = ground.fold(*fold)
        self._y, self._parameters, self._scorer = y, fit_parameters, scorer
        self._is_checked = ground.K is not None
        if isinstance(self.model, SolvedModel):
            self.model.set_params(callbacks=lambda progress: stopping())

    def score(self, point):
        """Fit the model of a point, and return its score on the rows held out."""
        if "C" in point:  # the rest is set; a shared kernel matrix must not be taken for rows of the kernel it is of
            self.model.set_params(C=point["C"])
        parameters = {name: values[self.train] for name, values in self._parameters.items()}
        with config_context(assume_finite=True) if self._is_checked else nullcontext():
            self.model.fit(self._X, self._y[self.train], **parameters)
            return float(self._scorer(self.model, self._Z, self._y[self.test], self.test))

    @property
    def fell_short(self):
        """Whether the last model is not as exact as asked."""
        return getattr(self.model, "status_", Status.CONVERGED.value) != Status.CONVERGED.value

    @property
    def interrupted(self):
        """Whether Ctrl-C ended the last fit."""
        return getattr(self.model, "status_", None) == Status.INTERRUPTED.value

    @property
    def state(self):
        """What the next model begins with: arrays, none if it begins with nothing."""
        return list(getattr(self.model, "_last_multipliers", [])) if isinstance(self.model, KernelModel) else []

    @state.setter
    def state(self, arrays):
        if isinstance(self.model, KernelModel):
            self.model._last_multipliers = list(arrays)


def rows_of(X):
    """Return rows that can be taken by number: an array or CSR matrix of floats, or what a callable kernel takes."""
    if issparse(X):
        check_structure(X)
        return X.tocsr()
    return X if isinstance(X, np.ndarray) else np.asarray(X)
