"""The fits of a grid search on one fold, along ascending values of C.

Three computations are shared between fits. The kernel matrix of all rows is computed once and serves all folds and all
values of C, for training as well as for scoring the held-out rows. The kernel matrices of pairs of classes, which are
parts of it, are kept from one C to the next, and so are the checks of the arguments. Each fit is a warm start from the
dual solution of the previous C.

If the largest C of a path asks for it and there is memory, the kernel matrix is in double precision for the whole path.
In single precision, rounding makes it indefinite. With a large C, dual variables of nearly dependent rows then move
along directions of negative curvature, and a fit takes several times as long.

`SharedData` holds what all folds of one kernel share; `FoldPath` fits the models of one fold. The kernel matrices of
folds and of pairs of classes are copies, some hundred megabytes for a few thousand rows. The system takes longer to
provide and clear new memory of this size than the copies take, so that it is used again for the next path (`Memory`).
"""

import threading
from contextlib import nullcontext

import numpy as np
from sklearn import config_context
from sklearn.base import clone
from sklearn.utils import check_array

from widemargin.kernels.functions import Kernel
from widemargin.kernels.rows import KernelRows, submatrix
from widemargin.models.kernel.base import KernelModel, dual_start, fit_reusing, set_dual_start
from widemargin.models.kernel.machines import machine_of
from widemargin.models.kernel.training_rows import Reused, block_dtype, gamma_value, kernel_values
from widemargin.models.solved_model import SolvedModel
from widemargin.solvers.contract import Status

_SPARE = 1.1  # memory for an array, relative to its size: the next fold may have some rows more


class Memory:
    """Memory of arrays that are not used any more, for new ones. The methods may be called from several threads."""

    def __init__(self):
        self._lock, self._kept = threading.Lock(), []

    def take(self, shape, dtype):
        """Return a C-ordered array of any values, and its memory, which `give_back` takes."""
        n_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
        with self._lock:
            sufficient = [k for k, kept in enumerate(self._kept) if n_bytes <= kept.nbytes <= 2 * _SPARE * n_bytes]
            best = min(sufficient, key=lambda k: self._kept[k].nbytes, default=None)
            memory = None if best is None else self._kept.pop(best)
        memory = np.empty(int(_SPARE * n_bytes), np.uint8) if memory is None else memory
        return memory[:n_bytes].view(dtype).reshape(shape), memory

    def give_back(self, memories):
        """Keep memory whose arrays are not used any more."""
        with self._lock:
            self._kept += memories


class _Borrower:
    """Something that takes arrays from a Memory, and gives all of them back at the end."""

    def __init__(self, memory):
        self._memory, self._taken = memory, []

    def _new(self, shape, dtype):
        """Return an array of any values."""
        array, memory = self._memory.take(shape, dtype)
        self._taken.append(memory)
        return array

    def release(self):
        """Give the memory of all arrays back; nothing can be used any more."""
        self._memory.give_back(self._taken)
        self._taken = []


class SharedData(_Borrower):
    """The rows, or the kernel matrix of all rows, from which the folds of a grid are taken.

    Parameters
    ----------
    model : estimator
        With all parameters of the grid set except C.
    X : ndarray or csr
        The rows; for a precomputed kernel, the kernel matrix.
    dtype : numpy dtype or None
        The precision of the kernel matrix of all rows; None if there is no memory for it. See `shared_dtype`.
    memory : Memory

    Attributes
    ----------
    K : ndarray or None
        The kernel matrix of all rows; None if the folds do not share one.
    bound : float or None
        An upper bound of its absolute values; None if they are the user's.
    """

    def __init__(self, model, X, dtype, memory):
        super().__init__(memory)
        self.model, self.X, self.K, self.bound = model, X, None, None
        if dtype is not None:
            if not callable(model.kernel):
                # Checked here once; the fits of the folds skip the check for finite values.
                check_array(X, accept_sparse="csr", estimator=model, input_name="X")
            self.K, self.bound = _kernel_matrix(model, X, dtype, self._new)

    def fold(self, train, test, new):
        """Return (estimator, its training rows, its held-out rows) for a fold given by row numbers.

        `new` returns an array of a shape and dtype, for copies of parts of the kernel matrix.
        """
        model = clone(self.model)
        if "warm_start" in model.get_params() and not _is_kernel_machine_on_basis(model):
            model.set_params(warm_start=True)
        if self.K is not None:
            model.set_params(kernel="precomputed", shrinking=False)
            own = submatrix(self.K, train, train, new)
            if self.bound is None:  # the user knows whether the matrix is symmetric
                return model, own, submatrix(self.K, test, train, new)
            return model, own, submatrix(self.K, train, test, new).T  # scores read the columns of support vectors
        if getattr(model, "kernel", None) == "precomputed":
            return model, self.X[np.ix_(train, train)], self.X[np.ix_(test, train)]
        return model, self.X[train], self.X[test]


def shared_dtype(model, n_rows, largest_cost, n_threads, max_bytes):
    """Return the precision of a kernel matrix that is shared by all folds; None if none can be, or memory lacks.

    Parameters
    ----------
    model : estimator
    n_rows : int
    largest_cost : float
        The largest C times the largest weight of a row.
    n_threads : int
        Threads, each of which needs parts of the matrix.
    max_bytes : float
        Memory for the matrix and all parts.
    """
    if not _may_share_kernel(model):
        return None
    kernel = Kernel("callable" if callable(model.kernel) else model.kernel)
    for cost in (largest_cost, 1.0):
        dtype = np.dtype(block_dtype(kernel, model.tol, n_rows, cost))
        if dtype.itemsize * float(n_rows) ** 2 * (1 + 2 * n_threads) <= max_bytes:
            return dtype
    return None


def _may_share_kernel(model):
    """Return whether K(x, z) is the same function in all folds; with gamma="scale" it depends on the training rows."""
    depends = getattr(model, "kernel", None) in ("poly", "rbf", "sigmoid") and model.gamma == "scale"
    return isinstance(model, KernelModel) and not depends and not _is_kernel_machine_on_basis(model)


def _is_kernel_machine_on_basis(model):
    """Return whether a model needs kernel values of its basis only; it starts from zero."""
    return isinstance(model, KernelModel) and getattr(model, "basis", None) is not None


def _kernel_matrix(model, X, dtype, new):
    """Return the kernel matrix of all rows, and a bound of its values or None.

    If it is computed from features, it is in this precision, and made by `new`.
    """
    if model.kernel == "precomputed":
        return np.ascontiguousarray(X), None
    if callable(model.kernel):
        return np.ascontiguousarray(kernel_values(model.kernel, X, X), dtype=np.float64), None
    # gamma="scale" arrives here only for the linear kernel, which does not use gamma.
    gamma = gamma_value("auto" if model.gamma == "scale" else model.gamma, X)
    kernel = Kernel(model.kernel, gamma=gamma, coef0=float(model.coef0), degree=int(model.degree))
    rows = KernelRows(kernel, X, dtype=dtype, n_jobs=1, new=new)
    return rows.whole(), rows.bound


class FoldPath(_Borrower):
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
    memory : Memory
    certify : bool
        Whether the scorer may look at the duality gaps of models, which need not be small if it does not.
    """

    def __init__(self, shared, fold, y, fit_parameters, scorer, stopping, *, memory, certify=True):
        super().__init__(memory)
        self.train, self.test = fold
        self.model, self._X, self._Z = shared.fold(*fold, self._new)
        self._y, self._parameters, self._scorer = y, fit_parameters, scorer
        self._is_checked = shared.K is not None
        # A subclass may have a `fit` of its own, so that only the estimators of this package reuse submatrices.
        reuses = self._is_checked and machine_of(self.model) is not None
        self._reused = Reused(self._new, shared.bound, certify) if reuses else None
        if isinstance(self.model, SolvedModel):
            self.model.set_params(callbacks=lambda progress: stopping())

    def score(self, point):
        """Fit the model with the parameters of a point, and return its score on the held-out rows."""
        # All but C is set already; a shared kernel matrix must not be taken for rows of another kernel.
        if "C" in point and self._reused is not None:
            self.model.C = point["C"]  # `set_params` would take as long as some fits
        elif "C" in point:
            self.model.set_params(C=point["C"])
        with config_context(assume_finite=True) if self._is_checked else nullcontext():
            self._fit()
            return float(self._scorer(self.model, self._Z, self._y[self.test], self.test))

    def _fit(self):
        y, parameters = self._y[self.train], {name: each[self.train] for name, each in self._parameters.items()}
        if self._reused is None:
            self.model.fit(self._X, y, **parameters)
        else:
            fit_reusing(self.model, self._X, y, self._reused, **parameters)

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
        """What the next fit starts from, as a list of arrays; empty if it starts from zero.

        They are the dual variables of each problem and, as two lines each, the sums that kernel matrices remember:
        their weights and values, each followed by the bound on their error.
        """
        if not isinstance(self.model, KernelModel):
            return []
        matrices = [] if self._reused is None else self._reused.submatrices.values()
        known = [K.remembered for K in matrices if K.remembered is not None]
        return dual_start(self.model) + [np.array([[*w, error], [*sums, error]]) for w, sums, error in known]

    @state.setter
    def state(self, arrays):
        if isinstance(self.model, KernelModel):
            set_dual_start(self.model, [array for array in arrays if array.ndim == 1])
        if self._reused is not None:
            known = [array for array in arrays if array.ndim == 2]
            self._reused.sums = [(weights[:-1], sums[:-1], float(sums[-1])) for weights, sums in known]
