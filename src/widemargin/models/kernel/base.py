"""Base class of the kernel machines: f(x) = Σ_i coef_i K(x_i, x) + intercept, fitted by a solver with a certificate.

The support vectors are the rows with a coefficient other than zero. A fitted model keeps only these rows, or all rows
if the kernel is a function of the user. Prediction divides new rows into blocks, so that its memory is bounded.

Prediction uses only the public attributes of a model, `_gamma` (the number that gamma="scale" stands for) and, for a
function of the user, `_fit_rows`. A model that is read from a file therefore predicts as one that was fitted here.
"""

import os
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, csr_matrix, issparse
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from widemargin._runtime.argument_types import Floats, SparseMatrix
from widemargin._runtime.progress import SILENCE, reporting
from widemargin._runtime.threads import n_threads, single_threaded_blas
from widemargin.data.blocks.row_blocks import RowBlocks
from widemargin.data.structure import check_structure
from widemargin.kernels.functions import Kernel
from widemargin.kernels.rows import PreparedRows
from widemargin.models.argument_types import Checkpoint
from widemargin.models.inputs import checked_rows, checked_weights, finite_targets, refuse_missing
from widemargin.models.kernel.compression_report import Compression
from widemargin.models.kernel.solved_problem import solved
from widemargin.models.kernel.training_rows import (
    SharedMatrix,
    TrainingRows,
    block_dtype,
    gamma_value,
    kernel_sums,
    kernel_values,
    n_rows_of,
    parts_of,
)
from widemargin.models.kernel_constraints import KERNEL_CONSTRAINTS
from widemargin.models.sklearn_private import Hidden, Interval, StrOptions, _num_samples
from widemargin.models.solved_model import SolvedModel, one_by_one
from widemargin.problems.formulations import KernelQP
from widemargin.solvers.contract import KernelSettings, Status, changed
from widemargin.solvers.registry import KERNEL_SOLVERS, solve_together, specs_of

_BYTES_PER_MEGABYTE = 1 << 20
_MAX_ROWS_TO_SHARE = 2000  # rows up to which several problems share one kernel matrix of at most 32 MB
# With more rows and at most so many features, single kernel rows that each problem computes when it needs them take
# less time than the part of them that it would copy.
_MIN_ROWS_TO_COMPUTE_SINGLY, _MAX_NARROW_FEATURES = 256, 100
_MAX_ROWS_IN_TURN = 256  # up to which several problems are solved one after the other: threads would wait for Python
_ATTRIBUTES_OF_SUPPORT = ("support_", "support_vectors_", "n_support_", "dual_coef_", "facts_", "_fit_rows")
MAX_C = 1e30  # used instead of larger values of C; dual variables never reach it, and the objective stays finite


def available_with_probability(message):
    """Return a decorator for methods of a KernelModel that exist only if it is to be fitted with probabilities.

    `message` is that of the AttributeError otherwise.
    """

    def is_available(model):
        if not model._wants_probability:
            raise AttributeError(message)
        return True

    return available_if(is_available)


def fit_reusing(model, K, y, reused, sample_weight=None):
    """Fit a model with kernel="precomputed" once more, reusing what earlier fits to the same rows have computed.

    Parameters
    ----------
    model : KernelModel
        One of the estimators of this package, with kernel="precomputed". Only its C may have changed.
    K : ndarray of shape (n_samples, n_samples)
        The kernel matrix; as the following arguments, it must be the same in all fits that share `reused`.
    y : array-like of shape (n_samples,)
    reused : Reused
    sample_weight : array-like of shape (n_samples,), default=None

    Returns
    -------
    model
    """
    return model._fit(K, y, sample_weight, reused)


def dual_start(model):
    """Return the dual variables from which the next fit of a model with warm_start=True starts: one array per problem.

    The list is empty if that fit has no previous solution to start from.
    """
    return list(getattr(model, "_last_multipliers", []))


def set_dual_start(model, arrays):
    """Set the dual variables from which the next fit of a model with warm_start=True starts, as `dual_start` gives."""
    model._last_multipliers = list(arrays)


class KernelModel(SolvedModel):
    """A kernel machine. Subclasses state the problems, and compute predictions from the values of f.

    Sets after fit: `support_`, `support_vectors_`, `n_support_`, `dual_coef_`, `intercept_`, `n_iter_`, `fit_status_`,
    `shape_fit_`, `facts_`, `gap_`, `objective_`, `history_`, `solver_`, `status_`.
    """

    _solvers_are_random = False
    _parameter_constraints: dict = {
        **SolvedModel._parameter_constraints,
        "kernel": [StrOptions({"linear", "poly", "rbf", "sigmoid", "precomputed"}), callable],
        **KERNEL_CONSTRAINTS,
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "shrinking": ["boolean"],
        "probability": [None, StrOptions({"libsvm"}), "boolean", Hidden(StrOptions({"deprecated"}))],
        "cache_size": [Interval(Real, 0.0, None, closed="neither")],
        "max_iter": [Interval(Integral, -1, None, closed="left")],
        "solver": [StrOptions(set(KERNEL_SOLVERS))],
        "working_set": [Interval(Integral, 2, None, closed="left"), None],
        "stopping": [StrOptions({"kkt", "gap"})],
        "checkpoint": [str, os.PathLike, None],
    }

    _are_most_rows_at_bound = False  # whether most dual variables are expected to be as large as C allows
    checkpoint: Checkpoint = None

    support_: NDArray[np.int32]
    support_vectors_: NDArray[Any] | SparseMatrix
    n_support_: NDArray[np.int32]
    dual_coef_: Floats | SparseMatrix
    intercept_: Floats
    fit_status_: int
    shape_fit_: tuple[int, ...]
    facts_: list[dict[str, float]]
    compression_: Compression  # of a model that `compress` made
    n_features_in_: int

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = self.kernel != "precomputed"
        return tags

    @property
    def coef_(self) -> Floats | SparseMatrix:
        """Weights of the features, read-only; AttributeError for kernels other than "linear"."""
        if self.kernel != "linear":
            raise AttributeError("coef_ is only available when using a linear kernel")
        check_is_fitted(self)
        coef = self._weights()
        (coef.data if issparse(coef) else coef).flags.writeable = False
        return coef

    def _weights(self):
        """Return Σ coef_i x_i over the support vectors or basis points, one row for each output."""
        vectors, coefficients = self._expansion()
        return coefficients @ vectors

    @property
    def _wants_basis(self):
        """Whether the machine is to be fitted on a basis; some take none."""
        return getattr(self, "basis", None) is not None

    @property
    def _is_on_basis(self):
        """Whether the fitted model is a machine on a basis."""
        return "basis_coef_" in vars(self)

    def _expansion(self):
        """Return the support vectors or basis points, and their coefficients, one row for each output."""
        if self._is_on_basis:
            return self.basis_, self.basis_coef_
        return self.support_vectors_, self.dual_coef_

    @property
    def _wants_probability(self):
        """Whether probabilities are to be fitted; scikit-learn's default, "deprecated", means that they are not."""
        return self.probability != "deprecated" and bool(self.probability)

    def _costs(self, training, rows):
        """Return C times the weight of each of these rows."""
        return self._costs_of(training.weight[rows])

    def _costs_of(self, weight):
        """Return C times the weights."""
        return min(float(self.C), MAX_C) * weight

    def _check_rows(self, X, *y, **options):
        """Return X, and y if given, after checks of these and of the parameters. Sets `shape_fit_`.

        X of a callable kernel may be anything that the function takes, and is returned unchanged.
        """
        self._validate_params()
        if isinstance(X, RowBlocks) and not self._wants_basis:
            with_basis = "takes row blocks with a basis only, for instance basis=1000; without one it "
            raise TypeError(
                f"{type(self).__name__} {with_basis if hasattr(self, 'basis') else 'has no basis, and '}"
                "needs all rows in memory: pass X.to_memory() and X.labels, or a part such as X[:50000]."
            )
        if issparse(X) and self.kernel == "precomputed":
            raise TypeError("Sparse precomputed kernels are not supported: pass K(X, X) as an array.")
        if callable(self.kernel):
            check_structure(X)
            y = [self._check_targets(targets, **options) for targets in y]
            check_consistent_length(X, *y)
        else:
            checked = checked_rows(self, X, *y, order="C", **options)
            X, *y = checked if y else [checked]
        self.shape_fit_ = X.shape if hasattr(X, "shape") else (_num_samples(X),)
        if self.kernel == "precomputed" and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"Precomputed matrix must be a square matrix, K(X, X) of the training rows; "
                f"got {X.shape[0]}x{X.shape[1]}."
            )
        return X, *y

    def _check_once(self, check, reused):
        """Return check(), TrainingRows and targets; the checks of fits that share `reused` are made in the first."""
        if reused is None:
            return check()
        if reused.checked is None:
            training, *targets = check()
            reused.checked = replace(training, reused=reused), *targets
        else:
            self._validate_params()
        return reused.checked

    def _check_targets(self, y, y_numeric=False):
        """Return y, checked as scikit-learn would; for callable kernels, whose X scikit-learn cannot check."""
        refuse_missing(y, "y")
        return finite_targets(y) if y_numeric else column_or_1d(y, warn=True)

    def _weigh(self, X, sample_weight):
        """Return one weight for each row, and 0 for negative weights, as in scikit-learn. Sets `_gamma`."""
        weight = checked_weights(sample_weight, X, non_negative=False)
        if sample_weight is not None:
            weight = np.maximum(weight, 0.0)
        if sample_weight is not None and not weight.any():
            raise ValueError("Invalid input - all samples have zero or negative weights. One must be positive.")
        is_given = sample_weight is not None or (isinstance(X, RowBlocks) and X.weight is not None)
        weight_for_gamma = weight if is_given else None
        self._gamma = gamma_value(self.gamma, X, weight_for_gamma) if self._has_features else 0.0
        return weight

    def _training_rows(self, X, weight, n_problems, label=None):
        """Return the TrainingRows of `n_problems` problems, by classes if there are labels.

        Sets `_fit_rows`, the rows that a callable kernel needs.
        """
        kernel = self._kernel()
        self._fit_rows = X if kernel.name == "callable" else None
        if kernel.name == "callable" and self._computes_all_values_first(X, n_problems):
            X, kernel = kernel_values(self.kernel, X, X), Kernel("precomputed")
        cost = float(self.C) * float(weight.max()) if self._are_most_rows_at_bound else 1.0
        dtype = block_dtype(kernel, self.tol, len(weight), cost)
        prepared = PreparedRows(kernel, X, dtype) if kernel.from_products else X
        shared = None
        if kernel.from_products and n_problems > 1 and len(weight) <= _MAX_ROWS_TO_SHARE:
            is_narrow = not issparse(X) and X.shape[1] <= _MAX_NARROW_FEATURES
            if not is_narrow or len(weight) <= _MIN_ROWS_TO_COMPUTE_SINGLY:
                shared = SharedMatrix(kernel, prepared, label, self.n_jobs)
        return TrainingRows(kernel, X, prepared, shared, weight, dtype, self.n_jobs)

    def _computes_all_values_first(self, X, n_problems):
        """Return whether all values of a callable kernel are computed before the problems are solved.

        They are if several problems can share them within `cache_size`, and if X is a list or a data frame, of which
        the solver could not take some rows.
        """
        if not isinstance(X, np.ndarray) and getattr(X, "format", None) != "csr":
            return True
        return n_problems > 1 and 8 * X.shape[0] ** 2 <= self.cache_size * _BYTES_PER_MEGABYTE

    @property
    def _has_features(self):
        """Whether kernel values are computed from features, neither given as a matrix nor by a function of the user."""
        return self.kernel != "precomputed" and not callable(self.kernel)

    def _features(self, training):
        """Return the features of the training rows; None if the kernel values are not computed from features."""
        return training.X if self._has_features else None

    def _kernel(self):
        """Return the Kernel with the parameters of the model and `_gamma`."""
        if callable(self.kernel):
            return Kernel("callable", function=partial(kernel_values, self.kernel))
        return Kernel(self.kernel, gamma=self._gamma, coef0=float(self.coef0), degree=int(self.degree))

    def _settings(self, report, n_tasks):
        """Return the settings of the solver."""
        return KernelSettings(
            **self._limits(report, n_tasks),
            cache_size=self.cache_size,
            shrinking=bool(self.shrinking),
            working_set=self.working_set,
        )

    def _train(self, problems, training=None):
        """Return the SolvedProblem of each problem; `problems` are functions that state them.

        Checkpoints are written if `training`, the TrainingRows by which they are recognised, is given. With warm_start,
        a problem starts from the dual variables of the same problem in the last fit, if their number is the same.
        Problems that are solved at the same time divide the cache among them.
        """
        solver, spec = KERNEL_SOLVERS[self.solver], specs_of(KernelQP)[self.solver]
        in_turn = len(problems) == 1 or (training is not None and len(training.weight) <= _MAX_ROWS_IN_TURN)
        n_at_once = 1 if in_turn else min(n_threads(self.n_jobs), len(problems))
        certify = training is None or training.reused is None or training.reused.certify

        def train(problem, settings, start):
            if start is not None and start.shape != problem.start.shape:
                start = None
            settings = changed(settings, cache_size=settings.cache_size / n_at_once, certify=certify)
            return solved(problem, settings, solver(problem, settings, start))

        def train_together(stated, given, starts):
            settings = [changed(one, certify=certify) for one in given]
            solutions = solve_together(spec, stated, settings, starts)
            return [solved(*one) for one in zip(stated, settings, solutions, strict=True)]

        last = getattr(self, "_last_multipliers", []) if self.warm_start else []
        starts = [*last, *[None] * len(problems)][: len(problems)]
        checkpoint = None if training is None else self._kernel_checkpoint(training)
        if in_turn and len(problems) > 1 and spec.together is not None and not (last or checkpoint or self._is_watched):
            return self._solve(train_together, problems, starts, len(problems), in_turn=True)
        with nullcontext() if in_turn else single_threaded_blas():  # once, not for each problem
            return self._solve(one_by_one(train), problems, starts, checkpoint=checkpoint, in_turn=in_turn)

    @property
    def _is_watched(self):
        """Whether limits, callbacks or reports ask for one problem after the other."""
        has_limits = self.max_seconds is not None or self.max_iter != -1
        return has_limits or bool(self._callbacks) or reporting(self.verbose) is not SILENCE

    def _kernel_checkpoint(self, training):
        """Return where the state of the solver is kept, or None; an error if the rows cannot be recognised later."""
        if self.checkpoint is not None and not self._has_features:
            raise ValueError(
                "checkpoint is for kernels that are computed from features; kernel is "
                f"{self.kernel if isinstance(self.kernel, str) else 'a function'}: use checkpoint=None."
            )
        return self._checkpoint_of(training.X)

    def _fit_on_basis(self, X, state, n_problems):
        """Fit the machine on its basis; return the Expansion and the solutions of its problems.

        `state` is a function of the matrix of features that returns functions that state the problems. Sets the
        attributes that describe how they were solved.
        """
        linear = self._linear_machine()
        expansion, solutions = linear.fitted(X, self._kernel(), state, n_problems)
        for name in _ATTRIBUTES_OF_SUPPORT:
            vars(self).pop(name, None)
        self.basis_, self.basis_coef_, self.intercept_ = expansion.basis.vectors, expansion.coef, expansion.intercept
        for name in ("gap_", "objective_", "history_", "solver_", "status_"):
            setattr(self, name, getattr(linear, name))
        self.fit_status_ = int(any(solution.status is not Status.CONVERGED for solution in solutions))
        return expansion, solutions

    def _linear_machine(self):
        """Return the LinearOnBasis that fits the machine on its basis."""
        from widemargin.models.kernel.on_basis import LinearOnBasis  # with all linear solvers

        return LinearOnBasis(self)

    def _keep_model(self, support, n_support, dual_coef, intercept, training):
        """Set the attributes that define f, in the layout of scikit-learn."""
        for name in ("basis_", "basis_coef_"):
            vars(self).pop(name, None)
        if not (np.isfinite(dual_coef).all() and np.isfinite(intercept).all()):
            raise ValueError("The dual coefficients or intercepts are not finite: scale the features, or lower C.")
        self.support_ = support.astype(np.int32)
        self.n_support_ = np.asarray(n_support, dtype=np.int32)
        self.dual_coef_, self.intercept_ = dual_coef, intercept
        if self._fit_rows is not None or training.kernel.name == "precomputed":
            self.support_vectors_ = np.empty((0, 0))
        else:
            self.support_vectors_ = training.X[support]
        if issparse(self.support_vectors_):
            container = csr_array if isinstance(self.support_vectors_, csr_array) else csr_matrix
            self.dual_coef_ = container(dual_coef)

    def _keep_solutions(self, trained, others=()):
        """Set the attributes that describe how the problems of the model, `trained`, were solved.

        Returns the solutions of these problems and of `others`, those of cross-validation.
        """
        solutions = [solved.solution for solved in trained if solved.solution is not None]
        self.facts_ = [solved.facts for solved in trained]
        self._last_multipliers = [solution.beta for solution in solutions] if self.warm_start else []
        self._keep_record(solutions)
        solutions += [solved.solution for solved in others if solved.solution is not None]
        self.fit_status_ = int(any(solution.status is not Status.CONVERGED for solution in solutions))
        return solutions

    def _not_calibrated(self, name):
        """Return the error for a method that needs a model fitted with probability."""
        return NotFittedError(f"{name} is not available when fitted with probability=False: set it and fit again.")

    def _check_fitted(self):
        """Raise NotFittedError if the model is not fitted; scikit-learn's check takes as long as a small prediction."""
        if "dual_coef_" not in vars(self) and not self._is_on_basis:
            check_is_fitted(self)

    def _check_new_rows(self, X):
        """Return the rows to predict, checked; as CSR if the support vectors are sparse."""
        self._check_fitted()
        self._check_unaltered()
        if callable(self.kernel):
            return X
        if self.kernel == "precomputed":
            return checked_rows(self, X, accept_sparse=False, reset=False)
        X = checked_rows(self, X, accept_sparse="csr", order="C", reset=False)
        is_sparse = issparse(self._expansion()[0])
        return csr_array(X) if is_sparse and not issparse(X) and not isinstance(X, RowBlocks) else X

    def _check_unaltered(self):
        """Raise ValueError unless `dual_coef_`, `n_support_` and `support_vectors_` agree on the number of vectors."""
        if self._is_on_basis:
            if self.basis_coef_.shape[1] != self.basis_.shape[0]:
                raise ValueError(
                    f"The internal representation of {type(self).__name__} was altered: {self.basis_.shape[0]} basis "
                    f"points have {self.basis_coef_.shape[1]} coefficients. Fit the model again."
                )
            return
        n_columns, n_support = self.dual_coef_.shape[1], np.asarray(self.n_support_).tolist()
        n_vectors = self.support_vectors_.shape[0] if self._has_features else n_columns
        if min(n_support) < 0 or not sum(n_support) == n_vectors == n_columns:
            raise ValueError(
                f"The internal representation of {type(self).__name__} was altered: n_support_ is {n_support} "
                f"for {n_vectors} support vectors and {n_columns} columns of dual_coef_. Fit the model again."
            )

    def _new_sums(self, X):
        """Check rows to predict and return `_sums` of the only output, with a progress report."""
        X = self._check_new_rows(X)
        with self._showing("predicting", n_rows_of(X)) as advance:
            if isinstance(X, RowBlocks):
                return np.concatenate([self._sums(part, advance=advance).ravel() for part in parts_of(X, 1)])
            return self._sums(X, advance=advance).ravel()

    def _showing(self, what, n_rows):
        """Return a context that reports the progress of work on rows.

        The block is given a function to call with numbers of finished rows, or None if nobody is to be told.
        """
        report = reporting(self.verbose)
        return nullcontext() if report is SILENCE else _shown(report, what, n_rows)

    def _sums(self, Z, **options):
        """Return Σ_i dual_coef_i K(x_i, z) of checked rows z, as `kernel_scores` with these options."""
        options["n_jobs"] = self.n_jobs
        vectors, coefficients = self._expansion()
        coefficients = coefficients.toarray() if issparse(coefficients) else coefficients
        if self._has_features or self._is_on_basis:
            if issparse(Z) and not issparse(vectors):
                vectors = csr_array(vectors)
            return kernel_sums(self._kernel(), vectors, coefficients, Z, **options)
        n_training = _num_samples(self._fit_rows) if callable(self.kernel) else Z.shape[1]
        blocks = (self._values(part) for part in parts_of(Z, n_training))
        precomputed = Kernel("precomputed")
        return np.concatenate([kernel_sums(precomputed, self.support_, coefficients, K, **options) for K in blocks])

    def _values(self, Z):
        """Return the kernel values of new rows and all training rows; Z itself if the kernel is "precomputed"."""
        return kernel_values(self.kernel, Z, self._fit_rows) if callable(self.kernel) else Z


@contextmanager
def _shown(report, what, n_rows):
    """Report the progress of work on rows in a context of a report."""
    with report as shown, shown.task(what, n_rows, "rows") as task:
        yield task.advance
