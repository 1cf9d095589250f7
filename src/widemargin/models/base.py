"""What all estimators share: settings from parameters, solving several problems at once, warnings.

A solver returns its status; whoever fits a model must hear of it.
"""

import threading
import time
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from numbers import Integral, Real

import numpy as np
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
from widemargin.problems.formulations import FreeIntercept
from widemargin.solvers.auto import DUAL_SOLVERS, SOLVERS, WEIGHT_SOLVERS, auto_together, takes_newton
from widemargin.solvers.contract import Settings, Status
from widemargin.solvers.finishing import finishing, finishing_together
from widemargin.solvers.newton.smoothed import MOST_COLUMNS, newton_together, takes_active_set, takes_columns

_ADVICE = {
    Status.MAX_ITER: "raise tol or max_iter.",
    Status.MAX_SECONDS: "raise tol or max_seconds.",
    Status.CALLBACK: "A callback asked to stop; the model so far was kept.",
    Status.INTERRUPTED: "Interrupted by Ctrl-C; the model so far was kept.",
    Status.STALLED: "This is as exact as double precision gets; raise tol.",
}
POSITIVE = Interval(Real, 0.0, np.finfo(np.float64).max, closed="right")
"""A parameter that must be positive and finite, such as C."""
_MOST_BITS = 1023  # of an integer, such that a double can hold it
_TOGETHER = 16  # classes whose problems are solved at once, where that saves passes
_ASKED = {"gap": "gap", "kkt": "KKT violation", "violation": "violation of the planes"}
_TURNS = {"svmperf": "planes", "ocas": "planes", "newton": "steps"}  # what these count


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
    _turns = "sweeps"  # what a solver counts

    def _validate_params(self):
        """Refuse parameters beyond their limits, an integer that no double can hold among them."""
        for name, value in self.get_params(deep=False).items():
            if isinstance(value, int) and value.bit_length() > _MOST_BITS:
                raise ValueError(
                    f"{name} must be a number within double precision, got one of {value.bit_length()} bits."
                )
        super()._validate_params()

    def _solve(self, solver, problems, starts, together=None):
        """Solve the problems, in parallel if there are several; return in order what `solver` returns.

        With `together`, a number, it is given lists of up to so many problems, settings and starts, and returns a list.
        """
        seed = check_random_state(getattr(self, "random_state", None)).randint(np.iinfo(np.int32).max)
        begun = time.perf_counter()
        n_problems = len(problems)
        with reporting(self.verbose) as report, self._announcing(report), report.solving(n_problems) as solving:
            settings = self._settings(report, n_problems)

            def solve(*tasks):
                left = None if self.max_seconds is None else self.max_seconds - (time.perf_counter() - begun)
                stated = [problems[task]() for task in tasks]
                mine = [replace(settings, task=task, seed=(seed, task), max_seconds=left) for task in tasks]
                begin = [starts[task] for task in tasks]
                solutions = solver(stated, mine, begin) if together else [solver(stated[0], mine[0], begin[0])]
                solving.finished(len(tasks))
                return solutions

            tasks = range(n_problems)
            groups = [tasks[first : first + (together or 1)] for first in tasks[:: together or 1]]
            with insisting_interrupts(settings.interrupt):
                solved = run(solve, groups, 1 if together else self.n_jobs, settings.interrupt)
        found = [solution for group in solved for solution in group]
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
        self.solver_ = "; ".join(sorted({_told(solution) for solution in solutions}))

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
            f"{worst.solver} stopped after {worst.n_iter} {turns_of(worst.solver) or self._turns} "
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

    _parameter_constraints: dict = {
        **SolvedModel._parameter_constraints,
        "dual": ["boolean", StrOptions({"auto"})],
        "tol": [Interval(Real, 0.0, None, closed="left")],
        "C": [POSITIVE],
        "fit_intercept": ["boolean"],
        "intercept_scaling": [POSITIVE],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "solver": [StrOptions(set(SOLVERS))],
        "stopping": [StrOptions({"gap", "kkt", "violation"})],
        "penalize_intercept": ["boolean"],
    }

    @property
    def _stopping(self):
        return self.stopping

    @property
    def _free_intercept(self):
        """Whether there is an intercept that is not penalised."""
        return self.fit_intercept and not self.penalize_intercept

    def _check_solver(self):
        """Refuse what the solver cannot do."""
        if self._free_intercept and self.solver in DUAL_SOLVERS:
            raise ValueError(
                f"penalize_intercept=False needs solver='newton', 'ocas', 'svmperf' or 'auto', got {self.solver!r}: "
                "dual coordinate solvers need the intercept in the penalty."
            )
        if self.stopping == "violation" and self.solver != "svmperf":
            raise ValueError(f"stopping='violation' is svmperf's criterion; the solver is {self.solver!r}.")
        if self.stopping == "kkt" and (self.solver in WEIGHT_SOLVERS or self._free_intercept):
            raise ValueError(
                f"stopping='kkt' is a rule of dual coordinate solvers; the solver is {self.solver!r}"
                f"{', for an intercept without penalty' if self._free_intercept else ''}."
            )

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
        constant = self.intercept_scaling if self.fit_intercept and self.penalize_intercept else 0.0
        return Matrix.of_columns_that_occur(X, constant)

    def _last_multipliers(self, n_outputs, n_rows):
        """Return `dual_coef_` of the last fit, a line per output, if a warm start is wanted and it fits, else None."""
        last = getattr(self, "dual_coef_", None)
        fits = self.warm_start and np.shape(np.atleast_2d(last)) == (n_outputs, n_rows)
        return np.atleast_2d(last) if fits else None

    def _solve_rows(self, problems, X):
        """Solve problems that are sums over rows, each stated as a DualQP when its turn comes.

        Sets `intercept_` if it is not penalised.
        """
        if self.solver == "newton" and not takes_columns(X):
            raise ValueError(
                f"solver='newton' is for up to {MOST_COLUMNS} columns, or few rows, X is {X.n_rows} x {X.n_columns}: a "
                "step works with a matrix of columns x columns. Use solver='auto'."
            )
        by_weights = self.solver in WEIGHT_SOLVERS
        last = self._last_weights(len(problems), X) if by_weights else self._last_multipliers(len(problems), X.n_rows)
        starts = [None] * len(problems) if last is None else list(last)
        stated = [partial(_freed, problem) for problem in problems] if self._free_intercept else problems
        if len(problems) > 1 and (solver := self._of_all_at_once(stated[0], starts)) is not None:
            solutions = self._solve(finishing_together(solver), stated, starts, _TOGETHER)
        else:
            solutions = self._solve(finishing(SOLVERS[self.solver], by_weights), stated, starts)
        if self._free_intercept:
            self.intercept_ = np.array([solution.intercept for solution in solutions])
        return solutions

    def _of_all_at_once(self, state, starts):
        """Return a solver that takes several problems at once, None if these are better solved one by one."""
        if self.solver not in ("auto", "newton") or takes_active_set(problem := state()):
            return None
        if self.solver == "newton":
            return newton_together
        if starts[0] is not None:
            return None
        return auto_together if takes_newton(problem, Settings(stopping=self.stopping)) else None

    def _keep_multipliers(self, beta):
        """Set `dual_coef_`; cutting planes have none, and leave none of an earlier fit."""
        if beta is not None:
            self.dual_coef_ = beta
        elif hasattr(self, "dual_coef_"):
            del self.dual_coef_

    def _keep(self, solutions, W, X):
        """Set the fitted attributes from the solutions and W (n_outputs x columns of X); warn if any fell short."""
        if self._free_intercept:
            self.coef_ = X.spread(W)  # the intercept is there already
        elif self.fit_intercept:
            self.coef_ = X.spread(np.ascontiguousarray(W[:, :-1]))
            self.intercept_ = self.intercept_scaling * W[:, -1]
        else:
            self.coef_, self.intercept_ = X.spread(W), 0.0
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
                f"{solution.solver} left double precision after {solution.n_iter} "
                f"{turns_of(solution.solver) or 'iterations'}: the solution is not finite. Scale the features, or "
                "lower C or the weights of rows and classes."
            )


def _freed(state):
    """State a problem that is a sum over rows with an intercept that is not penalised."""
    return FreeIntercept(state())


def turns_of(solver):
    """Return what a solver, or `solver_` of a model, counts; None if that is the usual."""
    name = solver.partition(" (")[0]
    return "turns" if ", then " in name else _TURNS.get(name)


def _told(solution):
    """Return the solver's name and, if it was chosen, the reason."""
    why = getattr(solution, "why", "")
    return f"{solution.solver} ({why})" if why else solution.solver
