"""Kernel machines on a fixed basis, fitted by the linear solvers; see `fixed_basis`.

`LinearOnBasis` is the linear machine: it has the parameters of the kernel machine as far as linear solvers know them,
and solves problems that the kernel machine states for the matrix of each stage.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from widemargin.data.matrix import Matrix
from widemargin.kernels.basis import Basis
from widemargin.kernels.basis_choice import rows_at
from widemargin.kernels.values import KernelValues
from widemargin.models.base import LinearModel
from widemargin.models.fixed_basis import matrix_on_basis, solved_in_stages, stages_of
from widemargin.models.kernel.training_rows import block_dtype
from widemargin.models.solved_model import seed_of
from widemargin.solvers.newton.smoothed import MAX_COLUMNS


class Expansion(NamedTuple):
    """The functions f(x) = Σ_j coef_j K(b_j, x) + intercept of all outputs, which have the same basis points.

    `features` is a function of row numbers, ascending, that returns the features of these rows in double precision.
    """

    basis: Basis
    coef: np.ndarray
    intercept: np.ndarray
    features: Callable


class LinearOnBasis(LinearModel):
    """The linear machine whose features are those of a kernel machine on its basis.

    Parameters
    ----------
    model : KernelModel
        The kernel machine, with the parameters `basis`, `basis_choice` and `max_memory`.
    """

    penalize_intercept, fit_intercept, intercept_scaling = False, True, 1.0
    stopping, scaling, warm_start, solver = "gap", None, True, "newton"

    def __init__(self, model):
        self._model = model
        self.tol, self.C, self.max_iter = model.tol, getattr(model, "C", 1.0), model.max_iter
        self.max_seconds, self.n_jobs, self.callbacks = model.max_seconds, model.n_jobs, model._callbacks or None
        self.verbose, self.random_state, self.checkpoint = model.verbose, model.random_state, model.checkpoint
        self._refuse_what_does_not_apply()

    def _refuse_what_does_not_apply(self):
        """Raise ValueError if parameters are set that a machine on a basis does not have."""
        model = self._model
        reasons = {
            "solver": (model.solver != "auto", "is for the exact machine; a basis has the linear solvers: use 'auto'"),
            "working_set": (model.working_set is not None, "is for the exact machine: use None"),
            "warm_start": (model.warm_start, "is for the exact machine: use False"),
            "kernel": (
                model.kernel == "precomputed",
                "must compute values of any two rows: use another one, or basis=None",
            ),
            "checkpoint": (
                model.checkpoint is not None and isinstance(model.basis, str),
                "is for a basis of a fixed number of points, or None",
            ),
        }
        for name, (does_not_apply, why) in reasons.items():
            if does_not_apply:
                raise ValueError(f"With a basis, {name} {why}; got {name}={getattr(model, name)!r}.")

    def _checkpoint_file(self, X):
        """Return where the state of the solver is kept, with the words that describe the fit of the kernel machine."""
        return self._model._checkpoint_of(X.source)

    def fitted(self, X, kernel, state, n_problems):
        """Solve the problems of each stage; return the Expansion of the last one, and its solutions.

        Parameters
        ----------
        X : ndarray, csr matrix or RowBlocks
            Checked rows.
        kernel : Kernel
        state : function
            state(matrix) returns the functions that state the problems.
        n_problems : int
        """
        begun, found = time.perf_counter(), None
        dtype = block_dtype(kernel, self.tol, X.shape[0])
        needs_seed = self.checkpoint is not None and self.random_state is None  # to choose the same points again

        def solve(basis):
            nonlocal found
            self.solver = "newton" if len(basis) <= MAX_COLUMNS else "ocas"
            matrix = self._matrix_on(X, basis, dtype, n_problems)
            self._extend_weights(len(basis), n_problems)
            if self._model.max_seconds is not None:
                self.max_seconds = max(0.0, self._model.max_seconds - (time.perf_counter() - begun))
            found = basis, self._solve_problems(state(matrix), matrix), partial(_features_of, X, basis, matrix)
            return self._keep(found[1], matrix)

        seed = 0 if needs_seed else seed_of(self.random_state)
        history = solved_in_stages(stages_of(self._model, self._rows_to_choose_from(X, seed), kernel, seed), solve)
        if isinstance(self._model.basis, str):
            self.history_ = history
        basis, solutions, features = found
        intercept = np.broadcast_to(self.intercept_, n_problems).copy()
        return Expansion(basis, self.coef_, intercept, features), solutions

    def _matrix_on(self, X, basis, dtype, n_problems):
        """Return the matrix of the features of rows on a basis."""
        options = {"max_memory": self._model.max_memory, "n_problems": n_problems, "n_jobs": self.n_jobs}
        return matrix_on_basis(X, basis, dtype, **options)

    def _rows_to_choose_from(self, X, seed):
        """Return the rows from which basis points are chosen."""
        return X

    def _extend_weights(self, n_points, n_outputs):
        """Make the coefficients of the last stage those of a larger basis, whose first points are the same."""
        if hasattr(self, "coef_"):
            more = np.zeros((n_outputs, n_points - self.coef_.shape[1]))
            self.coef_ = np.hstack([self.coef_, more])


def _features_of(X, basis, matrix, rows):
    """Return the features of some rows: from the matrix if it holds those of all rows, otherwise computed again."""
    if isinstance(matrix, Matrix):
        return matrix.values[rows].astype(np.float64)
    values = KernelValues(basis.kernel, basis.vectors, np.float64)
    return basis.map(1.0).features(values.of(rows_at(X, rows)))
