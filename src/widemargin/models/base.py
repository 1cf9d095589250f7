"""Base classes of the estimators with a weight for each feature; that of all estimators is in `solved_model`.

WeightedModel    models with a weight for each feature, `coef_`
LinearModel      those of them whose objective is a sum over rows: `LinearSVC` and `LinearSVR`
"""

import os
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from widemargin.data.blocks.memory import bytes_of
from widemargin.data.blocks.placement import VECTORS_OF_ROW_LOSSES, matrix_of_arrays, matrix_of_blocks
from widemargin.data.blocks.row_blocks import RowBlocks
from widemargin.data.blocks.streamed import StreamedMatrix
from widemargin.data.byte_rows import has_bytes, scores_of_bytes
from widemargin.data.column_scaling import METHODS as SCALINGS
from widemargin.data.columns import WIDE, wide_products
from widemargin.models.argument_types import Checkpoint, MaxMemory, Scaling
from widemargin.models.inputs import checked_rows, checked_weights
from widemargin.models.sklearn_private import Interval, StrOptions
from widemargin.models.solved_model import POSITIVE, SolvedModel, one_by_one
from widemargin.problems.formulations import DualQP, Intercept
from widemargin.solvers.contract import Settings
from widemargin.solvers.finishing import finishing, finishing_together
from widemargin.solvers.registry import check, check_choice, solvers_of, specs_of
from widemargin.solvers.spec import Start

_VALUES_WORTH_THREADS = 1 << 14  # stored values of X from which on problems of several classes are solved by threads
_MAX_PROBLEMS_IN_GROUP = 16  # problems that a solver takes together, if it saves passes over X by that


class WeightedModel(SolvedModel):
    """A model with a weight for each feature, `coef_`, and an `intercept_`.

    With `scaling`, the solver sees scaled features; `coef_` and `intercept_` are those of the features as they are.
    """

    _parameter_constraints: dict = {
        **SolvedModel._parameter_constraints,
        "max_memory": [str, Interval(Real, 1.0, None, closed="left"), None],
        "scaling": [StrOptions(set(SCALINGS)), None],
        "checkpoint": [str, os.PathLike, None],
    }

    scaling: Scaling = None
    max_memory: MaxMemory = None
    checkpoint: Checkpoint = None

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _last_weights(self, n_outputs, X):
        """Return the weights of the last fit as a starting point, those of the constant column last.

        The result has one row for each output. It is None without warm_start, or if the numbers of outputs or features
        have changed.
        """
        coef = getattr(self, "coef_", None)
        if not self.warm_start or coef is None or np.prod(np.shape(coef)) != n_outputs * X.width:
            return None
        coef = coef.toarray() if issparse(coef) and X.scaling is not None else coef
        W = coef if issparse(coef) else np.reshape(coef, (n_outputs, X.width))
        intercept = np.broadcast_to(self.intercept_, n_outputs)
        if X.scaling is not None:
            W, intercept = X.scaling.weights_of_scaled(W, intercept)
        W = X.kept(W)
        return np.column_stack([W, intercept / X.constant]) if X.constant else W

    def _matrix_of(self, X, constant, n_problems=1, n_vectors=VECTORS_OF_ROW_LOSSES):
        """Return the matrix of checked rows, scaled as `scaling` asks, with a constant column unless that is 0."""
        if isinstance(X, RowBlocks):
            options = {"max_memory": self.max_memory, "scaling": self.scaling}
            return matrix_of_blocks(X, constant, **options, n_problems=n_problems, n_vectors=n_vectors)
        if self.max_memory is not None:  # it is for row blocks, but a wrong text is refused whatever the rows are
            bytes_of(self.max_memory)
        return matrix_of_arrays(X, constant, self.scaling)

    def _checkpoint_file(self, X):
        """Return where the state of the solver is kept, with the words that describe this fit, or None."""
        return self._checkpoint_of(X.source)

    def _undo_scaling(self, X):
        """Make `coef_` and `intercept_` those of the features as they are; set `scaling_` to how they were scaled."""
        vars(self).pop("scaling_", None)
        if X.scaling is not None:
            self.coef_, self.intercept_ = X.scaling.weights_of_data(self.coef_, self.intercept_)
            self.scaling_ = X.scaling

    def _scores(self, X):
        """Check X and return the scores of its rows, one column for each output."""
        check_is_fitted(self)
        return self._scores_of_checked(checked_rows(self, X, reset=False, keeps_bytes=True))

    def _scores_of_checked(self, X):
        """Return X coef' + intercept of rows that are checked already, one column for each output."""
        coef = self.coef_ if self.coef_.ndim == 2 else self.coef_[np.newaxis]
        if isinstance(X, RowBlocks):
            W = coef.toarray() if issparse(coef) else coef
            return StreamedMatrix(X).scores_of_all(W, self.n_jobs).T + self.intercept_
        if issparse(X) and X.shape[1] >= WIDE:
            return wide_products(X, coef) + self.intercept_
        if has_bytes(X):
            return scores_of_bytes(X, coef.toarray() if issparse(coef) else coef) + self.intercept_
        return safe_sparse_dot(X, coef.T, dense_output=True) + self.intercept_


class LinearModel(WeightedModel):
    """A linear model whose objective is ½|w|² plus a sum of losses over rows. Subclasses state the problems.

    Sets after fit: `coef_`, `intercept_`, `dual_coef_`, `n_iter_`, `gap_`, `objective_`, `history_`, `solver_`,
    `status_`.
    """

    coef_: Any  # an array, or a matrix of SciPy after `sparsify`
    intercept_: NDArray[np.float64] | float
    dual_coef_: NDArray[np.float64]
    n_iter_: int

    _parameter_constraints: dict = {
        **WeightedModel._parameter_constraints,
        "dual": ["boolean", StrOptions({"auto"})],
        "tol": [Interval(Real, 0.0, None, closed="left")],
        "C": [POSITIVE],
        "fit_intercept": ["boolean"],
        "intercept_scaling": [POSITIVE],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "solver": [StrOptions(set(specs_of(DualQP)))],
        "stopping": [StrOptions({"gap", "kkt", "violation"})],
        "penalize_intercept": ["boolean"],
    }
    _formulation: type = DualQP  # of the problems

    @property
    def _intercept(self):
        """The kind of intercept that the parameters ask for."""
        if not self.fit_intercept:
            return Intercept.NONE
        return Intercept.PENALISED if self.penalize_intercept else Intercept.FREE

    def _check_parameters(self):
        """Raise ValueError if a parameter is not valid, or the solver does not take this intercept or stopping rule."""
        self._validate_params()
        spec = specs_of(self._formulation)[self.solver]
        check_choice(spec, self._formulation, intercept=self._intercept, stopping=self.stopping)

    def _check_rows(self, X, y, sample_weight, **options):
        """Return X, y and one weight for each row, after checks of these and of the parameters."""
        self._check_parameters()
        X, y = checked_rows(self, X, y, order="C", keeps_bytes=True, **options)
        weight = checked_weights(sample_weight, X, non_negative=True)
        if not weight.any():
            raise ValueError("sample_weight is zero for every row; at least one must be positive.")
        return X, y, weight

    def _matrix(self, X, n_problems, n_vectors=VECTORS_OF_ROW_LOSSES):
        """Return X as a Matrix for so many problems, with a constant column if the intercept is penalised."""
        constant = self.intercept_scaling if self._intercept is Intercept.PENALISED else 0.0
        return self._matrix_of(X, constant, n_problems, n_vectors)

    def _check(self, X, y, sample_weight):
        """Return the matrix, the targets and one weight for each row, as `_check_data` of the subclass does."""
        X, target, weight = self._check_data(X, y, sample_weight)
        return self._matrix(X, self._n_outputs), target, weight

    def _last_dual_variables(self, n_outputs, n_rows):
        """Return `dual_coef_` of the last fit as a starting point, one row for each output.

        It is None without warm_start, or if the numbers of outputs or rows have changed.
        """
        last = getattr(self, "dual_coef_", None)
        fits = self.warm_start and np.shape(np.atleast_2d(last)) == (n_outputs, n_rows)
        return np.atleast_2d(last) if fits else None

    def _solve_problems(self, problems, X):
        """Return the Solution of each problem; all are DualQPs with the same X."""
        spec, n_problems = specs_of(self._formulation)[self.solver], len(problems)
        by_weights = spec.starts_from is Start.WEIGHTS
        last = self._last_weights(n_problems, X) if by_weights else self._last_dual_variables(n_problems, X.n_rows)
        starts = [None] * n_problems if last is None else list(last)
        in_turn = X.most_problems == 1 or not X.is_in_memory or X.n_stored < _VALUES_WORTH_THREADS
        options = {"checkpoint": self._checkpoint_file(X), "in_turn": in_turn}
        if n_problems > 1 and spec.together is not None:
            first, settings = problems[0](), Settings(stopping=self.stopping, checkpoint=options["checkpoint"])
            check(spec, first, settings)
            problems = [lambda: first, *problems[1:]]
            if spec.is_better_together(first, settings, starts[0]):
                group_size = max(1, min(_MAX_PROBLEMS_IN_GROUP, X.most_problems))
                return self._solve(
                    finishing_together(spec.together, spec.name), problems, starts, group_size, **options
                )
        solve = finishing(solvers_of(self._formulation)[self.solver], spec.name, by_weights)
        return self._solve(one_by_one(solve), problems, starts, **options)

    def _keep(self, solutions, X):
        """Set the fitted attributes; warn if a solver has not converged."""
        self._set_weights(solutions, X)
        self.n_iter_ = max(solution.n_iter for solution in solutions)
        self._keep_record(solutions)
        self._warn(solutions, X.values_or_none)
        return self

    def _set_weights(self, solutions, X):
        """Set `coef_`, `intercept_` and `dual_coef_`, one row for each output.

        Cutting planes have no dual variables of rows; `dual_coef_` of an earlier fit is then removed.
        """
        W = _rows_of([solution.w.T for solution in solutions])
        self.coef_ = X.spread(np.ascontiguousarray(W[:, : X.n_features]))
        self.intercept_ = np.hstack([solution.intercept for solution in solutions]) if self.fit_intercept else 0.0
        self._undo_scaling(X)
        if all(solution.beta is not None for solution in solutions):
            self.dual_coef_ = np.ascontiguousarray(_rows_of([solution.beta.T for solution in solutions]))
        else:
            vars(self).pop("dual_coef_", None)


def _rows_of(arrays):
    """Return vectors as the rows of an array, or the rows of arrays one after the other; of one array no copy."""
    return np.atleast_2d(arrays[0]) if len(arrays) == 1 else np.vstack(arrays)
