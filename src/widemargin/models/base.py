"""What all estimators share: settings from parameters, solving several problems at once, warnings.

A solver returns its status; whoever fits a model must hear of it.
"""

import threading
import time
from contextlib import nullcontext
from dataclasses import replace
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
from widemargin.data.columns import WIDE, scales_differ, wide_products
from widemargin.data.matrix import Matrix
from widemargin.errors import ConvergenceWarning
from widemargin.models.inputs import checked_rows, checked_weights
from widemargin.models.sklearn_private import Interval, StrOptions
from widemargin.problems.formulations import DualQP, Intercept
from widemargin.solvers.contract import Settings, Status
from widemargin.solvers.finishing import finishing, finishing_together
from widemargin.solvers.registry import LINEAR_SOLVERS, check, check_choice, specs_of
from widemargin.solvers.spec import Start

_ADVICE = {
    Status.MAX_ITER: "raise tol or max_iter.",
    Status.MAX_SECONDS: "raise tol or max_seconds.",
    Status.CALLBACK: "A callback asked to stop; the model so far was kept.",
    Status.INTERRUPTED: "Interrupted by Ctrl-C; the model is the best point so far.",
    Status.STALLED: "This is as exact as double precision gets; raise tol.",
}
POSITIVE = Interval(Real, 0.0, np.finfo(np.float64).max, closed="right")
"""A parameter that must be positive and finite, such as C."""
_MOST_BITS = 1023  # of an integer, such that a double can hold it
_TOGETHER = 16  # classes whose problems are solved at once, where that saves passes
_ASKED = {"gap": "gap", "kkt": "KKT violation", "violation": "violation of the planes"}
_LINEAR_SPECS = specs_of(DualQP)


class SolvedModel(BaseEstimator):
    """A model fitted by solvers with a certificate. Subclasses state the problems and keep what comes out.

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

    gap_: float
    objective_: float
    history_: NDArray[np.void] | list[NDArray[np.void]]
    solver_: str
    status_: str

    def _validate_params(self):
        """Refuse parameters beyond their limits, an integer that no double can hold among them."""
        for name, value in self.get_params(deep=False).items():
            if isinstance(value, int) and value.bit_length() > _MOST_BITS:
                raise ValueError(
                    f"{name} must be a number within double precision, got one of {value.bit_length()} bits."
                )
        super()._validate_params()

    def _solve(self, solve_group, problems, starts, group_size=1):
        """Solve problems, in parallel if there are several groups of them; return in order what was found for each.

        Parameters
        ----------
        solve_group : function
            Takes lists of problems, settings and starts, and returns a list; see `one_by_one`.
        problems : list of functions
            Each states its problem when it is called.
        starts : list
            Where to start from, None for zero.
        group_size : int
            How many problems are handed over at a time. Groups of several run one after the other.
        """
        seed = check_random_state(getattr(self, "random_state", None)).randint(np.iinfo(np.int32).max)
        begun = time.perf_counter()
        n_problems = len(problems)
        with reporting(self.verbose) as report, self._announcing(report), report.solving(n_problems) as solving:
            settings = self._settings(report, n_problems)

            def solve(*tasks):
                left = None if self.max_seconds is None else self.max_seconds - (time.perf_counter() - begun)
                mine = [replace(settings, task=task, seed=(seed, task), max_seconds=left) for task in tasks]
                found = solve_group([problems[task]() for task in tasks], mine, [starts[task] for task in tasks])
                solving.finished(len(tasks))
                return found

            tasks = range(n_problems)
            groups = [tasks[first : first + group_size] for first in tasks[::group_size]]
            with insisting_interrupts(settings.interrupt):
                solved = run(solve, groups, 1 if group_size > 1 else self.n_jobs, settings.interrupt)
        found = [one for group in solved for one in group]
        refuse_not_finite(found)
        return found

    def _announcing(self, report):
        """Return a context that explains the wait for compilation to those who want to hear of anything."""
        return announcing_compilation(report.compiling) if report.verbose else nullcontext()

    def _settings(self, report, n_tasks):
        """Return the solver's settings, the same for all tasks."""
        return Settings(**self._limits(report, n_tasks))

    def _limits(self, report, n_tasks):
        """Return the settings that all solvers have in common."""
        if self.callbacks is None:
            callbacks = ()
        else:
            callbacks = (self.callbacks,) if callable(self.callbacks) else tuple(self.callbacks)
        return {
            "tol": self.tol,
            "stopping": self._stopping,
            "max_iter": None if self.max_iter == -1 else self.max_iter,
            "n_jobs": self.n_jobs,
            "callbacks": callbacks + ((report,) if report.verbose and report not in callbacks else ()),
            "interrupt": threading.Event(),
            "n_tasks": n_tasks,
        }

    def _keep_record(self, solutions):
        """Set what is known of the solutions; `status_` is set by `_warn`."""
        self.gap_ = float(max(solution.gap for solution in solutions))
        self.objective_ = float(sum(solution.primal for solution in solutions))
        self.history_ = solutions[0].history if len(solutions) == 1 else [s.history for s in solutions]
        self.solver_ = "; ".join(sorted({_solver_text(solution) for solution in solutions}))

    def _warn(self, solutions, X=None):
        """Set `status_`; warn the caller, with the gap reached, if a solver stopped short.

        X are the features, if they are known and their scales matter: who has scaled them is not told to.
        """
        short = [solution for solution in solutions if solution.status is not Status.CONVERGED]
        self.status_ = short[0].status.value if short else Status.CONVERGED.value
        if not short:
            return
        worst = max(short, key=lambda solution: solution.gap)
        which = f" in {len(short)} of {len(solutions)} problems" if len(solutions) > 1 else ""
        asked = f"{_ASKED[self._stopping]} asked {self.tol:.1e}"
        advice = _ADVICE[worst.status]
        if advice.startswith("raise"):
            scale = "scale the features, " if X is not None and scales_differ(X) else ""
            advice = f"{scale}{'lower C, ' if hasattr(self, 'C') else ''}{advice}"
            advice = advice[0].upper() + advice[1:]
        warn_caller(
            f"{worst.solver} stopped after {worst.n_iter} {worst.counts} "
            f"({worst.status.value}){which}: "
            f"gap {worst.gap:.1e}, {asked}. {advice}",
            ConvergenceWarning,
        )


class WeightedModel(SolvedModel):
    """A model that is a weight for each feature, `coef_`, and `intercept_`."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _last_weights(self, n_outputs, X):
        """Return the weights of the last fit, constant column included, if a warm start is wanted and they fit."""
        coef = getattr(self, "coef_", None)
        if not self.warm_start or coef is None or np.prod(np.shape(coef)) != n_outputs * X.width:
            return None
        W = X.kept(coef if issparse(coef) else np.reshape(coef, (n_outputs, X.width)))
        if X.constant:
            return np.column_stack([W, np.broadcast_to(self.intercept_ / X.constant, n_outputs)])
        return W

    def _scores(self, X):
        """Check rows and return their scores, one column per output."""
        check_is_fitted(self)
        return self._scores_of_checked(checked_rows(self, X, reset=False))

    def _scores_of_checked(self, X):
        """Return X coef' + intercept; within `fit`, where a data frame has lost its names already."""
        coef = self.coef_ if self.coef_.ndim == 2 else self.coef_[np.newaxis]
        if issparse(X) and X.shape[1] >= WIDE:
            return wide_products(X, coef) + self.intercept_
        return safe_sparse_dot(X, coef.T, dense_output=True) + self.intercept_


class LinearModel(WeightedModel):
    """A linear model. Subclasses state the problems.

    Sets after fit: `coef_`, `intercept_`, `dual_coef_`, `n_iter_`, `gap_`, `objective_`, `history_`, `solver_`,
    `status_`.
    """

    coef_: Any  # an array, or a matrix of SciPy after `sparsify`
    intercept_: NDArray[np.float64] | float
    dual_coef_: NDArray[np.float64]
    n_iter_: int

    _parameter_constraints: dict = {
        **SolvedModel._parameter_constraints,
        "dual": ["boolean", StrOptions({"auto"})],
        "tol": [Interval(Real, 0.0, None, closed="left")],
        "C": [POSITIVE],
        "fit_intercept": ["boolean"],
        "intercept_scaling": [POSITIVE],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "solver": [StrOptions(set(_LINEAR_SPECS))],
        "stopping": [StrOptions({"gap", "kkt", "violation"})],
        "penalize_intercept": ["boolean"],
    }

    @property
    def _stopping(self):
        return self.stopping

    @property
    def _intercept(self):
        """The intercept of the problem that is to be stated."""
        if not self.fit_intercept:
            return Intercept.NONE
        return Intercept.PENALISED if self.penalize_intercept else Intercept.FREE

    def _check_solver(self):
        """Refuse what the solver cannot do, before the rows are looked at."""
        check_choice(_LINEAR_SPECS[self.solver], DualQP, intercept=self._intercept, stopping=self.stopping)

    def _check_rows(self, X, y, sample_weight, **options):
        """Return X, y and one weight per row, checked; refuse what no solver here can do."""
        self._validate_params()
        self._check_solver()
        X, y = checked_rows(self, X, y, order="C", **options)
        weight = checked_weights(sample_weight, X, non_negative=True)
        if not weight.any():
            raise ValueError("sample_weight is zero for every row; at least one must be positive.")
        return X, y, weight

    def _matrix(self, X):
        constant = self.intercept_scaling if self._intercept is Intercept.PENALISED else 0.0
        return Matrix.of_columns_that_occur(X, constant)

    def _last_multipliers(self, n_outputs, n_rows):
        """Return `dual_coef_` of the last fit, a line per output, if a warm start is wanted and it fits, else None."""
        last = getattr(self, "dual_coef_", None)
        fits = self.warm_start and np.shape(np.atleast_2d(last)) == (n_outputs, n_rows)
        return np.atleast_2d(last) if fits else None

    def _solve_rows(self, problems, X):
        """Solve problems that are sums over rows, each stated as a DualQP when its turn comes."""
        spec, n = _LINEAR_SPECS[self.solver], len(problems)
        by_weights = spec.starts_from is Start.WEIGHTS
        last = self._last_weights(n, X) if by_weights else self._last_multipliers(n, X.n_rows)
        starts = [None] * n if last is None else list(last)
        if n > 1 and spec.together is not None:
            first, settings = problems[0](), Settings(stopping=self.stopping)
            check(spec, first, settings)
            if spec.is_better_together(first, settings, starts[0]):
                return self._solve(finishing_together(spec.together), problems, starts, _TOGETHER)
        solve = finishing(LINEAR_SOLVERS[self.solver], by_weights)
        return self._solve(one_by_one(solve), problems, starts)

    def _keep_multipliers(self, beta):
        """Set `dual_coef_`; cutting planes have none, and leave none of an earlier fit."""
        if beta is not None:
            self.dual_coef_ = beta
        elif hasattr(self, "dual_coef_"):
            del self.dual_coef_

    def _keep(self, solutions, X):
        """Set the fitted attributes from the solutions, a line of weights per output; warn if any fell short."""
        W = np.vstack([solution.w.T for solution in solutions])
        self.coef_ = X.spread(np.ascontiguousarray(W[:, : X.n_features]))
        self.intercept_ = np.hstack([solution.intercept for solution in solutions]) if self.fit_intercept else 0.0
        self.n_iter_ = max(solution.n_iter for solution in solutions)
        self._keep_record(solutions)
        self._warn(solutions, X.values)
        return self


def refuse_not_finite(found):
    """Refuse solutions, or what was trained from them, that are not finite: nothing of the kind is kept as a model."""
    for one in found:
        solution = getattr(one, "solution", one)
        if solution is not None and not solution.is_finite:
            raise ValueError(
                f"{solution.solver} left double precision after {solution.n_iter} {solution.counts}: the solution is "
                "not finite. Scale the features, or lower C or the weights of rows and classes."
            )


def one_by_one(solver):
    """Return a function of lists of problems, settings and starts that calls a solver for each."""
    return lambda *lists: [solver(*each) for each in zip(*lists, strict=True)]


def _solver_text(solution):
    """Return the solver's name and, if it was chosen, the reason."""
    why = getattr(solution, "why", "")
    return f"{solution.solver} ({why})" if why else solution.solver
