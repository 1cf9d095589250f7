"""Base class of the models that are fitted by cutting planes: ½|w|² plus a risk of all scores, one weight vector.

The scores are <w, x>, or with a kernel those of a function of the points of a basis, see `fixed_basis`.
"""

import time
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from widemargin._runtime.argument_types import Floats
from widemargin.data.blocks.placement import VECTORS_OF_PLANES
from widemargin.kernels.functions import Kernel
from widemargin.models.argument_types import BasisPoints, Gamma, PlaneKernel, RowsOrBlocks
from widemargin.models.base import WeightedModel
from widemargin.models.fixed_basis import (
    matrix_on_basis,
    scores_on_basis,
    solved_in_stages,
    stages_of,
    weights_on,
)
from widemargin.models.inputs import checked_rows, encode_labels
from widemargin.models.kernel.training_rows import block_dtype, gamma_value
from widemargin.models.kernel_constraints import BASIS_CONSTRAINTS, KERNEL_CONSTRAINTS
from widemargin.models.scoring import ScoresRowBlocks
from widemargin.models.sklearn_private import Interval, StrOptions
from widemargin.models.solved_model import POSITIVE, one_by_one
from widemargin.problems.formulations import RiskProblem
from widemargin.solvers.finishing import finishing_risk
from widemargin.solvers.registry import RISK_SOLVERS, check_choice, specs_of

_SEED_OF_CHOICE = 0  # of basis points: the same rows give the same points


class PlaneModel(WeightedModel):
    """A model that minimises ½|w|² + R(X w), where R is a risk. Subclasses state the risk and set the intercept.

    Sets after fit: `coef_`, or with a kernel `basis_` and `basis_coef_`; `n_iter_`, `gap_`, `objective_`, `history_`,
    `solver_`, `status_`.
    """

    _parameter_constraints: dict = {
        **WeightedModel._parameter_constraints,
        "C": [POSITIVE],
        "tol": [Interval(Real, 0.0, None, closed="left")],
        "solver": [StrOptions(set(RISK_SOLVERS))],
        "stopping": [StrOptions({"gap", "violation"})],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "kernel": [StrOptions({"linear", "poly", "rbf", "sigmoid"})],
        **KERNEL_CONSTRAINTS,
        **BASIS_CONSTRAINTS,
    }
    _coef_shape: tuple[int, ...] = (-1,)

    kernel: PlaneKernel
    gamma: Gamma
    basis: BasisPoints
    basis_: Any
    basis_coef_: Floats

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            """Raise AttributeError for an attribute that the model has not; a model on a basis has no `coef_`."""
            if name == "coef_" and self._is_on_basis:
                raise AttributeError("coef_ is only available when using a linear kernel")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def _is_on_basis(self):
        """Whether the fitted model is a function of basis points."""
        return "basis_coef_" in vars(self)

    def _check_parameters(self):
        """Raise ValueError if a parameter is not valid, or the solver does not take the stopping rule."""
        self._validate_params()
        self._check_basis()
        check_choice(specs_of(RiskProblem)[self.solver], RiskProblem, stopping=self.stopping)

    def _check_rows(self, X, y, **options):
        """Return X and y, after checks of these and of the parameters."""
        self._check_parameters()
        return checked_rows(self, X, y, order="C", keeps_bytes=self.kernel == "linear", **options)

    def _check_basis(self):
        """Raise ValueError unless there is a basis just if the kernel needs one, and nothing that it does not have."""
        if self.kernel == "linear":
            if self.basis is not None:
                raise ValueError(
                    "basis is for kernels other than 'linear', which has a weight for each feature: use basis=None, or "
                    "set kernel, for instance kernel='rbf'."
                )
            return
        if self.basis is None:
            raise ValueError(
                f"kernel={self.kernel!r} needs a basis, since {type(self).__name__} has no exact kernel machine: use "
                "basis=1000, basis='auto' or an array of points."
            )
        if self.scaling is not None:
            raise ValueError(
                f"scaling={self.scaling!r} is for kernel='linear': with a kernel, scale the features beforehand, for "
                "instance by scikit-learn's StandardScaler, and use scaling=None."
            )
        if self.checkpoint is not None and isinstance(self.basis, str):
            raise ValueError(
                f"checkpoint is for a basis of a fixed number of points; got basis={self.basis!r}: use a number, or "
                "checkpoint=None."
            )

    def _minimise(self, X, risk, constant=0.0):
        """Set the coefficients that minimise ½|w|² + R(X w), as `_minimise_stated` does; return the intercept."""
        n_vectors = VECTORS_OF_PLANES + risk.n_vectors

        def state(basis):
            if basis is None:
                return RiskProblem(self._matrix_of(X, constant, n_vectors=n_vectors), risk)
            return RiskProblem(self._matrix_on_basis(X, constant, basis, n_vectors), risk)

        return self._minimise_stated(X, state)

    def _matrix_on_basis(self, X, constant, basis, n_vectors):
        """Return the matrix of the features of checked rows on a basis, with a constant column unless that is 0."""
        dtype = block_dtype(basis.kernel, self.tol, X.shape[0])
        options = {"constant": constant, "max_memory": self.max_memory, "n_vectors": n_vectors, "n_jobs": self.n_jobs}
        return matrix_on_basis(X, basis, dtype, **options)

    def _minimise_stated(self, X, state):
        """Set `coef_`, of the features as they are, or `basis_` and `basis_coef_`; return the intercept.

        `state` is a function of a Basis, or of None without a kernel, that states the RiskProblem. The intercept is
        that of the constant column, 0.0 without one, and what centring adds to the scores. Sets the attributes that
        describe the solution, and warns if the solver has not converged.
        """
        if self.kernel != "linear":
            return self._minimise_on_basis(X, state)
        problem = state(None)
        last = self._last_weights(1, problem.X)
        coef, intercept = self._minimise_problem(problem, None if last is None else last[0], time.perf_counter())
        for name in ("basis_", "basis_coef_", "_gamma", "scaling_"):
            vars(self).pop(name, None)
        if problem.X.scaling is not None:
            self.scaling_ = problem.X.scaling
        self.coef_ = coef.reshape(self._coef_shape)
        return intercept

    def _minimise_on_basis(self, X, state):
        """Do what `_minimise_stated` does, with a kernel; each stage of basis="auto" starts from the last one."""
        begun = time.perf_counter()
        found = (self.basis_, self.basis_coef_, self.intercept_) if self.warm_start and self._is_on_basis else None
        self._gamma = self._gamma_of(X)

        def solve(basis):
            nonlocal found
            problem = state(basis)
            start = None if found is None else weights_on(basis, problem.X, *found)
            coef, intercept = self._minimise_problem(problem, start, begun)
            found = basis.vectors, coef[np.newaxis], intercept
            return self

        stages = stages_of(self, self._rows_to_choose_from(X), self._kernel(), _SEED_OF_CHOICE)
        history = solved_in_stages(stages, solve)
        for name in ("coef_", "scaling_"):
            vars(self).pop(name, None)
        if isinstance(self.basis, str):
            self.history_ = history
        self.basis_, self.basis_coef_, intercept = found
        return intercept

    def _gamma_of(self, X):
        """Return the number that the parameter gamma stands for, with checked rows X."""
        return gamma_value(self.gamma, X)

    def _rows_to_choose_from(self, X):
        """Return the rows from which basis points are chosen."""
        return X

    def _kernel(self):
        """Return the Kernel with the parameters of the model and `_gamma`."""
        return Kernel(self.kernel, gamma=self._gamma, coef0=float(self.coef0), degree=int(self.degree))

    def _minimise_problem(self, problem, start, begun):
        """Return (coef, intercept) of the features as they are, or of kernel values, that minimise a RiskProblem.

        `start` are weights to start from, or None; `begun` is when the fit began.
        """
        matrix = problem.X
        solve = one_by_one(finishing_risk(RISK_SOLVERS[self.solver]))
        options = {"checkpoint": self._checkpoint_file(matrix), "begun": begun}
        (solution,) = self._solve(solve, [lambda: problem], [start], **options)
        self.n_iter_ = solution.n_iter
        self._keep_record([solution])
        self._warn([solution], matrix.values_or_none if self.kernel == "linear" else None)
        w = matrix.spread(solution.w)
        coef, intercept = (w[:-1], matrix.constant * float(w[-1])) if matrix.constant else (w, 0.0)
        if matrix.scaling is None:
            return coef, intercept
        coef, intercept = matrix.scaling.weights_of_data(coef, intercept)
        return coef, float(intercept)

    def _scores(self, X):
        """Check X and return the scores of its rows, one column for each output."""
        check_is_fitted(self)
        return self._scores_of_checked(checked_rows(self, X, reset=False, keeps_bytes=not self._is_on_basis))

    def _scores_of_checked(self, X):
        """Return the scores of rows that are checked already, in one column."""
        if not self._is_on_basis:
            return super()._scores_of_checked(X)
        return scores_on_basis(self._kernel(), self.basis_, self.basis_coef_, X, self.n_jobs) + self.intercept_


class BinaryPlaneModel(ScoresRowBlocks, ClassifierMixin, PlaneModel):
    """A classifier of two classes that is fitted by cutting planes; a positive score predicts the second class."""

    classes_: NDArray[Any]
    _coef_shape = (1, -1)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _check_two_classes(self, X, y):
        """Return X and labels 0 and 1. Sets `classes_`."""
        X, y = self._check_rows(X, y)
        self.classes_, label = encode_labels(y)
        self._refuse_more_than_two_classes()
        return X, label

    def _refuse_more_than_two_classes(self):
        """Raise ValueError if `classes_` has more than two labels."""
        if len(self.classes_) > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass: y must hold 2 "
                f"classes, got {len(self.classes_)}."
            )

    def decision_function(self, X: RowsOrBlocks) -> Floats:
        """Return the score of each row (n_samples,)."""
        return self._scores(X).ravel()

    def predict(self, X: RowsOrBlocks) -> NDArray[Any]:
        """Return the class of each row."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0.0).astype(int)]
