"""The fits of a grid search on one fold, along ascending values of C.

Three computations are shared between fits. The kernel matrix of all rows is computed once and serves all folds and all
values of C, for training as well as for scoring the held-out rows. The kernel matrices of pairs of classes, which are
parts of it, are kept from one C to the next. Each fit is a warm start from the dual solution of the previous C.

`SharedData` holds what all folds of one kernel share; `FoldPath` fits the models of one fold.
"""

from contextlib import nullcontext

import numpy as np
from sklearn import config_context
from sklearn.base import clone
from sklearn.utils import check_array

from widemargin.kernels.functions import Kernel
from widemargin.kernels.rows import KernelRows, submatrix
from widemargin.models.kernel.base import KernelModel, dual_start, fit_reusing, set_dual_start
from widemargin.models.kernel.machines import machine_of
from widemargin.models.kernel.training_rows import block_dtype, gamma_value, kernel_values
from widemargin.models.solved_model import SolvedModel
from widemargin.solvers.contract import Status


class SharedData:
    """The rows, or the kernel matrix of all rows, from which the folds of a grid are taken.

    Parameters
    ----------
    model : estimator
        With all parameters of the grid set except C.
    X : ndarray or csr
        The rows; for a precomputed kernel, the kernel matrix.
    shares_kernel : bool
        Whether the kernel matrix of all rows may be kept in memory.

    Attributes
    ----------
    K : ndarray or None
        The kernel matrix of all rows; None if the folds do not share one.
    """

    def __init__(self, model, X, shares_kernel):
        self.model, self.X, self.K = model, X, None
        if shares_kernel and _may_share_kernel(model):
            if not callable(model.kernel):
                # Checked here once; the fits of the folds skip the check for finite values.
                check_array(X, accept_sparse="csr", estimator=model, input_name="X")
            self.K = _kernel_matrix(model, X)

    def fold(self, train, test):
        """Return (estimator, its training rows, its held-out rows) for a fold given by row numbers."""
        model = clone(self.model)
        if "warm_start" in model.get_params():
            model.set_params(warm_start=True)
        if self.K is not None:
            model.set_params(kernel="precomputed", shrinking=False)
            return model, submatrix(self.K, train, train), submatrix(self.K, test, train)
        if getattr(model, "kernel", None) == "precomputed":
            return model, self.X[np.ix_(train, train)], self.X[np.ix_(test, train)]
        return model, self.X[train], self.X[test]


def bytes_to_share(model, n_rows, n_threads):
    """Return the memory for a shared kernel matrix and each thread's parts of it; infinite if none can be shared."""
    if not _may_share_kernel(model):
        return np.inf
    kernel = Kernel("callable" if callable(model.kernel) else model.kernel)
    itemsize = np.dtype(block_dtype(kernel, model.tol, n_rows)).itemsize
    return itemsize * float(n_rows) ** 2 * (1 + 2 * n_threads)


def _may_share_kernel(model):
    """Return whether K(x, z) is the same function in all folds; with gamma="scale" it depends on the training rows."""
    return isinstance(model, KernelModel) and not (
        model.kernel in ("poly", "rbf", "sigmoid") and model.gamma == "scale"
    )


def _kernel_matrix(model, X):
    """Return the kernel matrix of all rows, in the precision in which a fit would compute it."""
    if model.kernel == "precomputed":
        return np.ascontiguousarray(X)
    if callable(model.kernel):
        return np.ascontiguousarray(kernel_values(model.kernel, X, X), dtype=np.float64)
    # gamma="scale" arrives here only for the linear kernel, which does not use gamma.
    gamma = gamma_value("auto" if model.gamma == "scale" else model.gamma, X)
    kernel = Kernel(model.kernel, gamma=gamma, coef0=float(model.coef0), degree=int(model.degree))
    dtype = block_dtype(kernel, model.tol, X.shape[0])
    return KernelRows(kernel, X, dtype=dtype, n_jobs=1).whole()


class FoldPath:
    """The models of one fold, each a warm start from the previous one.

    Parameters
    ----------
    shared : SharedData
    fold : (train, test)
        Row numbers.
    y : ndarray
        Targets or labels of all rows; finite, as are the fit parameters.
    fit_parameters : dict
        An array with one value per row for each name, such as sample_weight or qid.
    scorer : callable(estimator, X, y, rows) -> float
        Scores the held-out rows; `rows` are their numbers.
    stopping : callable() -> bool
        Called during each fit; True ends it.
    """

    def __init__(self, shared, fold, y, fit_parameters, scorer, stopping):
        self.train, self.test = fold
        self.model, self._X, self._Z = shared.fold(*fold)
        self._y, self._parameters, self._scorer = y, fit_parameters, scorer
        self._is_checked = shared.K is not None
        # A subclass may have a `fit` of its own, so that only the estimators of this package reuse submatrices.
        reuses = self._is_checked and machine_of(self.model) is not None
        self._submatrices = {} if reuses else None
        if isinstance(self.model, SolvedModel):
            self.model.set_params(callbacks=lambda progress: stopping())

    def score(self, point):
        """Fit the model with the parameters of a point, and return its score on the held-out rows."""
        if "C" in point:  # the rest is set already; a shared kernel matrix must not be taken for rows of another kernel
            self.model.set_params(C=point["C"])
        with config_context(assume_finite=True) if self._is_checked else nullcontext():
            self._fit()
            return float(self._scorer(self.model, self._Z, self._y[self.test], self.test))

    def _fit(self):
        y, parameters = self._y[self.train], {name: each[self.train] for name, each in self._parameters.items()}
        if self._submatrices is None:
            self.model.fit(self._X, y, **parameters)
        else:
            fit_reusing(self.model, self._X, y, self._submatrices, **parameters)

    @property
    def fell_short(self):
        """Whether the last fit did not reach its tolerance."""
        return getattr(self.model, "status_", Status.CONVERGED.value) != Status.CONVERGED.value

    @property
    def interrupted(self):
        """Whether Ctrl-C ended the last fit."""
        return getattr(self.model, "status_", None) == Status.INTERRUPTED.value

    @property
    def state(self):
        """The dual variables from which the next fit starts, as a list of arrays; empty if it starts from zero."""
        return dual_start(self.model) if isinstance(self.model, KernelModel) else []

    @state.setter
    def state(self, arrays):
        if isinstance(self.model, KernelModel):
            set_dual_start(self.model, arrays)
