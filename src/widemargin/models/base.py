"""Base classes of the estimators: settings of the solver, problems solved in parallel, fitted attributes, warnings.

    SolvedModel      all estimators
    WeightedModel    models with a weight for each feature, `coef_`
    LinearModel      those of them whose objective is a sum over rows: `LinearSVC` and `LinearSVR`

`fit` of every estimator has four steps: check the arguments, state the problems, solve them, keep the result. A problem
is stated by a function without arguments, which is called when the problem is solved, so that the arrays of many
problems are not in memory at the same time.

Solvers do not warn. A Solution has a status, and `SolvedModel._warn` warns if it is not `Status.CONVERGED`.
"""

import inspect
import os
import threading
import time
from contextlib import nullcontext
from functools import cache
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from widemargin._runtime.compile import announcing_compilation
from widemargin._runtime.interrupts import insisting_interrupts
from widemargin._runtime.progress import reporting
from widemargin._runtime.threads import run
from widemargin._runtime.warning import warn_caller
from widemargin.data.blocks.placement import VECTORS_OF_ROW_LOSSES, matrix_of_arrays, matrix_of_blocks
from widemargin.data.blocks.row_blocks import RowBlocks
from widemargin.data.blocks.streamed import StreamedMatrix
from widemargin.data.column_scaling import METHODS as SCALINGS
from widemargin.data.columns import WIDE, scales_differ, wide_products
from widemargin.data.fingerprint import fingerprint
from widemargin.errors import ConvergenceWarning
from widemargin.models.argument_types import Checkpoint, MaxMemory, Scaling
from widemargin.models.inputs import checked_rows, checked_weights
from widemargin.models.sklearn_private import Interval, StrOptions, make_constraint
from widemargin.problems.formulations import DualQP, Intercept
from widemargin.solvers.checkpoint import CheckpointFile
from widemargin.solvers.contract import Settings, Status, changed
from widemargin.solvers.finishing import finishing, finishing_together
from widemargin.solvers.registry import check, check_choice, solvers_of, specs_of
from widemargin.solvers.spec import Start

_LIMITS = {Status.MAX_ITER: "max_iter", Status.MAX_SECONDS: "max_seconds"}  # parameters that stop a solver early
_ADVICE = {
    Status.CALLBACK: "A callback asked to stop; the model so far was kept.",
    Status.INTERRUPTED: "Interrupted by Ctrl-C; the model is the best point so far.",
    Status.STALLED: "This is as exact as double precision gets; raise tol.",
}
POSITIVE = Interval(Real, 0.0, np.finfo(np.float64).max, closed="right")
"""A parameter that must be positive and finite, such as C."""
_MAX_INTEGER_BITS = 1023  # of an integer parameter; any such integer is less than the largest double
_VALUES_WORTH_THREADS = 1 << 14  # stored values of X from which on problems of several classes are solved by threads
_MAX_PROBLEMS_IN_GROUP = 16  # problems that a solver takes together, if it saves passes over X by that
_NAME_OF_CRITERION = {"gap": "gap", "kkt": "KKT violation", "violation": "violation of the planes"}
_NOT_OF_THE_PROBLEM = {  # parameters that may change between a checkpoint and the run that goes on from it
    "cache_size", "checkpoint", "callbacks", "max_iter", "max_memory", "max_seconds", "n_jobs", "tol", "verbose",
    "warm_start",
}  # fmt: skip


class SolvedModel(BaseEstimator):
    """A model fitted by solvers with a certificate. Subclasses state the problems and keep their solutions.

    Sets after fit: `gap_`, `objective_`, `history_`, `solver_`, `status_`.
    """

    _parameter_constraints: dict = {
        "verbose": ["verbose"],
        "random_state": ["random_state"],
        "warm_start": ["boolean"],
        "max_seconds": [Interval(Real, 0.0, None, closed="left"), None],
        "n_jobs": [Integral, None],
        "callbacks": [callable, "array-like", None],
    }

    _solvers_are_random = True  # whether they use the seed that `random_state` gives

    gap_: float
    objective_: float
    history_: NDArray[np.void] | list[NDArray[np.void]]
    solver_: str
    status_: str

    def _validate_params(self):
        """Raise ValueError if a parameter violates its constraint, or is an integer beyond double precision."""
        for name, default, constraints in _parameters_of(type(self)):
            value = getattr(self, name)
            if value is default:
                continue
            if isinstance(value, int) and value.bit_length() > _MAX_INTEGER_BITS:
                raise ValueError(
                    f"{name} must be a number within double precision, got one of {value.bit_length()} bits."
                )
            if not any(constraint.is_satisfied_by(value) for constraint in constraints):
                super()._validate_params()  # scikit-learn has the words

    def _solve(self, solve_group, problems, starts, group_size=1, *, checkpoint=None, in_turn=False, begun=None):
        """Solve problems, several at the same time if there are threads for it; return their results in order.

        Parameters
        ----------
        solve_group : function
            Takes three lists, of problems, settings and starts, and returns a list of results; see `one_by_one`.
        problems : list of functions
            Each states a problem when it is called.
        starts : list
            The starting point of each problem, or None for the solver's own.
        group_size : int
            Number of problems in each call of `solve_group`. Groups of several problems are solved one after the other,
            because their solver itself uses the threads.
        checkpoint : CheckpointFile or None
            Where solvers keep their state; removed when all have converged.
        in_turn : bool
            Whether groups are solved one after the other even if they consist of one problem: small problems, which
            threads would make slower, and rows on disk, which are not read by several solvers at the same time, so
            that memory is counted for one group.
        begun : float or None
            When the fit began, from which `max_seconds` are counted, by `time.perf_counter`; None is now.
        """
        seed = seed_of(getattr(self, "random_state", None)) if self._solvers_are_random else 0
        begun = time.perf_counter() if begun is None else begun
        n_problems = len(problems)
        with reporting(self.verbose) as report, self._announcing(report), report.solving(n_problems) as solving:
            settings = self._settings(report, n_problems)

            def solve(*tasks):
                seconds = None if self.max_seconds is None else self.max_seconds - (time.perf_counter() - begun)
                stated = [problems[task]() for task in tasks]
                files = [
                    checkpoint and checkpoint.of_task(task, n_problems).of_problem(problem)
                    for task, problem in zip(tasks, stated, strict=True)
                ]
                of_tasks = [
                    changed(settings, task=task, seed=(seed, task), max_seconds=seconds, checkpoint=file)
                    for task, file in zip(tasks, files, strict=True)
                ]
                results = solve_group(stated, of_tasks, [starts[task] for task in tasks])
                solving.finished(len(tasks))
                return results

            tasks = range(n_problems)
            groups = [tasks[first : first + group_size] for first in tasks[::group_size]]
            with insisting_interrupts(settings.interrupt):
                n_jobs = 1 if in_turn or group_size > 1 else self._n_jobs_over_problems
                solved = run(solve, groups, n_jobs, settings.interrupt)
        results = [result for group in solved for result in group]
        refuse_not_finite(results)
        if checkpoint is not None and all(result.status is Status.CONVERGED for result in results):
            checkpoint.remove(n_problems)
        return results

    @property
    def _n_jobs_over_problems(self):
        """`n_jobs` of threads that solve a problem each; callbacks come from several threads only if asked for."""
        return 1 if self.n_jobs is None and self.callbacks is not None else self.n_jobs

    def _checkpoint_of(self, rows):
        """Return where the state of the solver is kept, with the words that describe a fit of these rows, or None."""
        if self.checkpoint is None:
            return None
        parameters = self.get_params(deep=False)
        words = {name: _word_of(value) for name, value in parameters.items() if name not in _NOT_OF_THE_PROBLEM}
        words |= {"estimator": type(self).__name__, "data": fingerprint(rows)}
        return CheckpointFile(os.fspath(self.checkpoint), words)

    def _announcing(self, report):
        """Return a context in which a verbose report says that functions are being compiled, when they are."""
        return announcing_compilation(report.compiling) if report.verbose else nullcontext()

    def _settings(self, report, n_tasks):
        """Return the settings of the solver that all problems have in common."""
        return Settings(**self._limits(report, n_tasks))

    def _limits(self, report, n_tasks):
        """Return the settings that every solver has, as keyword arguments of `Settings`."""
        if self.callbacks is None:
            callbacks = ()
        else:
            callbacks = (self.callbacks,) if callable(self.callbacks) else tuple(self.callbacks)
        return {
            "tol": self.tol,
            "stopping": self.stopping,
            "max_iter": None if self.max_iter == -1 else self.max_iter,
            "n_jobs": self.n_jobs,
            "callbacks": callbacks + ((report,) if report.verbose and report not in callbacks else ()),
            "interrupt": threading.Event(),
            "n_tasks": n_tasks,
        }

    def _keep_record(self, solutions):
        """Set `gap_`, `objective_`, `history_` and `solver_`; `status_` is set by `_warn`."""
        self.gap_ = float(max(solution.gap for solution in solutions))
        self.objective_ = float(sum(solution.primal for solution in solutions))
        self.history_ = solutions[0].history if len(solutions) == 1 else [s.history for s in solutions]
        self.solver_ = "; ".join(sorted({_solver_text(solution) for solution in solutions}))

    def _warn(self, solutions, X=None):
        """Set `status_`; give a ConvergenceWarning if a solver has not converged.

        X are the features, if the model has any. If their scales differ much, the warning advises to scale them.
        """
        unconverged = [solution for solution in solutions if solution.status is not Status.CONVERGED]
        self.status_ = unconverged[0].status.value if unconverged else Status.CONVERGED.value
        if not unconverged:
            return
        worst = max(unconverged, key=lambda solution: solution.gap)
        which = f" in {len(unconverged)} of {len(solutions)} problems" if len(solutions) > 1 else ""
        asked = f"{_NAME_OF_CRITERION[self.stopping]} asked {self.tol:.1e}"
        warn_caller(
            f"{worst.solver} stopped after {worst.n_iter} {worst.counts} "
            f"({worst.status.value}){which}: "
            f"gap {worst.gap:.1e}, {asked}. {self._advice(worst.status, X)}",
            ConvergenceWarning,
        )

    def _advice(self, status, X):
        """Return a sentence on what to do about a solver that stopped with this status."""
        if status not in _LIMITS:
            return _ADVICE[status]
        ways = ["scale the features"] if X is not None and scales_differ(X) else []
        ways += ["lower C"] if hasattr(self, "C") else []
        text = ", ".join([*ways, f"raise tol or {_LIMITS[status]}."])
        return text[0].upper() + text[1:]


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
        return self._scores_of_checked(checked_rows(self, X, reset=False))

    def _scores_of_checked(self, X):
        """Return X coef' + intercept of rows that are checked already, one column for each output."""
        coef = self.coef_ if self.coef_.ndim == 2 else self.coef_[np.newaxis]
        if isinstance(X, RowBlocks):
            W = coef.toarray() if issparse(coef) else coef
            return StreamedMatrix(X).scores_of_all(W, self.n_jobs).T + self.intercept_
        if issparse(X) and X.shape[1] >= WIDE:
            return wide_products(X, coef) + self.intercept_
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
        X, y = checked_rows(self, X, y, order="C", **options)
        weight = checked_weights(sample_weight, X, non_negative=True)
        if not weight.any():
            raise ValueError("sample_weight is zero for every row; at least one must be positive.")
        return X, y, weight

    def _matrix(self, X, n_problems):
        """Return X as a Matrix for so many problems, with a constant column if the intercept is penalised."""
        constant = self.intercept_scaling if self._intercept is Intercept.PENALISED else 0.0
        return self._matrix_of(X, constant, n_problems)

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


@cache
def _parameters_of(model):
    """Return name, default value and constraints of each parameter of an estimator.

    A valid default need not be checked again in each fit: with scikit-learn's inspection of signatures, that takes
    longer than a small fit. In place of a default that is not valid, there is an object that no value is.
    """
    signature, found = inspect.signature(model.__init__), []
    for name in model._get_param_names():
        constraints = [make_constraint(one) for one in model._parameter_constraints.get(name, [object])]
        default = signature.parameters[name].default
        is_valid = any(constraint.is_satisfied_by(default) for constraint in constraints)
        found.append((name, default if is_valid else object(), constraints))
    return found


def _word_of(parameter):
    """Return the words that describe a parameter in a checkpoint; those of an array tell any two of them apart."""
    return fingerprint(parameter) if isinstance(parameter, np.ndarray) or issparse(parameter) else repr(parameter)


def seed_of(random_state):
    """Return the seed of the solvers: an integer as it is, otherwise a number drawn from the random state."""
    if isinstance(random_state, Integral):
        return int(random_state)  # a RandomState would take a tenth of the time of a small fit
    return check_random_state(random_state).randint(np.iinfo(np.int32).max)


def _rows_of(arrays):
    """Return vectors as the rows of an array, or the rows of arrays one after the other; of one array no copy."""
    return np.atleast_2d(arrays[0]) if len(arrays) == 1 else np.vstack(arrays)


def refuse_not_finite(found):
    """Raise ValueError if a solution is not finite.

    `found` are Solutions, or objects with an attribute `solution`, which may be None.
    """
    for result in found:
        solution = getattr(result, "solution", result)
        if solution is not None and not solution.is_finite:
            raise ValueError(
                f"{solution.solver} left double precision after {solution.n_iter} {solution.counts}: the solution is "
                "not finite. Scale the features, or lower C or the weights of rows and classes."
            )


def one_by_one(solver):
    """Return a function of three lists, of problems, settings and starts, that calls a solver for each problem."""
    return lambda *lists: [solver(*each) for each in zip(*lists, strict=True)]


def _solver_text(solution):
    """Return the name of the solver and, if "auto" chose it, the reason in parentheses."""
    why = getattr(solution, "why", "")
    return f"{solution.solver} ({why})" if why else solution.solver
