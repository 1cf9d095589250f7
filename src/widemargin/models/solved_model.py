"""`SolvedModel`, the base class of all estimators: settings of solvers, problems solved in parallel, warnings.

`fit` of every estimator has four steps: check the arguments, state the problems, solve them, keep the result. A problem
is stated by a function without arguments, which is called when the problem is solved, so that the arrays of many
problems are not in memory at the same time.

Solvers do not warn. A Solution has a status, and `SolvedModel._warn` warns if it is not `Status.CONVERGED`.

No solver is imported here: kernel machines do not need the linear ones, nor linear machines those of kernels.
"""

import inspect
import os
import threading
import time
from contextlib import nullcontext
from functools import cache
from numbers import Integral, Real
from operator import attrgetter, is_

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from widemargin._runtime.compile import announcing_compilation
from widemargin._runtime.interrupts import insisting_interrupts
from widemargin._runtime.progress import reporting
from widemargin._runtime.threads import run
from widemargin._runtime.warning import warn_caller
from widemargin.data.columns import scales_differ
from widemargin.data.fingerprint import fingerprint
from widemargin.errors import ConvergenceWarning
from widemargin.models.sklearn_callbacks import CallbackSupportMixin, iteration_callbacks, with_callbacks
from widemargin.models.sklearn_private import Interval, make_constraint
from widemargin.solvers.checkpoint import CheckpointFile
from widemargin.solvers.contract import Settings, Status, changed

_LIMITS = {Status.MAX_ITER: "max_iter", Status.MAX_SECONDS: "max_seconds"}  # parameters that stop a solver early
_ADVICE = {
    Status.CALLBACK: "A callback asked to stop; the model so far was kept.",
    Status.INTERRUPTED: "Interrupted by Ctrl-C; the model is the best point so far.",
    Status.STALLED: "This is as exact as double precision gets; raise tol.",
}
_LARGE_GAP = 0.01  # of a solver that stalled: to raise tol to it would not be a way out
POSITIVE = Interval(Real, 0.0, np.finfo(np.float64).max, closed="right")
"""A parameter that must be positive and finite, such as C."""
_MAX_INTEGER_BITS = 1023  # of an integer parameter; any such integer is less than the largest double
_NAME_OF_CRITERION = {"gap": "gap", "kkt": "KKT violation", "violation": "violation of the planes"}
_NOT_OF_THE_PROBLEM = {  # parameters that may change between a checkpoint and the run that goes on from it
    "cache_size", "checkpoint", "callbacks", "client", "max_iter", "max_memory", "max_seconds", "n_jobs", "tol",
    "verbose", "warm_start",
}  # fmt: skip


_IMMUTABLE = (bool, int, float, str)  # types of parameters that cannot change between two fits
_NO_VALUE = object()
_CERTIFICATE = ("gap_", "status_", "solver_", "objective_")  # in the order in which notebooks show them


class _Words(str):
    """A text that scikit-learn's tables show up to thirty characters, of other texts nine."""

    __slots__ = ()

    def __repr__(self):
        return str(self)


class SolvedModel(CallbackSupportMixin, BaseEstimator):
    """A model fitted by solvers with a certificate. Subclasses state the problems and keep their solutions.

    Sets after fit: `gap_`, `objective_`, `history_`, `solver_`, `status_`.
    """

    _parameter_constraints: dict = {
        "verbose": ["verbose"],
        "random_state": ["random_state"],
        "warm_start": ["boolean"],
        "max_seconds": [Interval(Real, 0.0, None, closed="left"), None],
        "n_jobs": [Interval(Integral, None, -1, closed="right"), Interval(Integral, 1, None, closed="left"), None],
        "callbacks": [callable, "array-like", None],
    }

    _solvers_are_random = True  # whether they use the seed that `random_state` gives

    gap_: float
    objective_: float
    history_: NDArray[np.void] | list[NDArray[np.void]]
    solver_: str
    status_: str

    def __init_subclass__(cls, **options):
        """Make `fit` call the callbacks of scikit-learn, also one that a class has from a base class of its own."""
        super().__init_subclass__(**options)
        fit = getattr(cls, "fit", None)
        if fit is not None and not hasattr(fit, "__wrapped__"):
            cls.fit = with_callbacks(fit)

    def _get_fitted_attr_html(self, doc_link=""):
        """Return the table of fitted attributes for notebooks, the certificate first (scikit-learn 1.9 and later)."""
        table = super()._get_fitted_attr_html(doc_link)
        first = {name: table.data.pop(name) for name in _CERTIFICATE if name in table.data}
        for shown in first.values():
            if isinstance(shown["value"], str):
                shown["value"] = _Words(shown["value"])
        table.data = first | table.data
        return table

    def _validate_params(self):
        """Raise ValueError if a parameter violates its constraint, or is an integer beyond double precision."""
        parameters, values_of, defaults, last_valid = _parameters_of(type(self))
        if all(map(is_, values_of(self), defaults)):
            return
        for name, default, constraints in parameters:
            value = getattr(self, name)
            if value is default or value is last_valid.get(name, _NO_VALUE):
                continue
            if isinstance(value, int) and value.bit_length() > _MAX_INTEGER_BITS:
                raise ValueError(
                    f"{name} must be a number within double precision, got one of {value.bit_length()} bits."
                )
            if not any(constraint.is_satisfied_by(value) for constraint in constraints):
                super()._validate_params()  # scikit-learn has the words
            if type(value) in _IMMUTABLE:
                last_valid[name] = value

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
                for file in filter(None, files):
                    file.check()
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
        return 1 if self.n_jobs is None and self._callbacks else self.n_jobs

    @property
    def _callbacks(self):
        """The functions that are called after an iteration: `callbacks`, and what calls those of scikit-learn."""
        if self.callbacks is None:
            return iteration_callbacks(self)
        own = (self.callbacks,) if callable(self.callbacks) else tuple(self.callbacks)
        return own + iteration_callbacks(self)

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
        callbacks = self._callbacks
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
            f"gap {worst.gap:.1e}, {asked}. {self._advice(worst, X)}",
            ConvergenceWarning,
        )

    def _advice(self, solution, X):
        """Return a sentence on what to do about a solver that stopped short of the tolerance with this solution."""
        status, or_lower_C = solution.status, " or lower C" if hasattr(self, "C") else ""
        if status is Status.STALLED and solution.gap > _LARGE_GAP:
            return f"Rounding errors are larger than the steps that are left: scale the features{or_lower_C}."
        if status not in _LIMITS:
            return _ADVICE[status]
        ways = ["scale the features"] if X is not None and scales_differ(X) else []
        ways += ["lower C"] if or_lower_C else []
        text = ", ".join([*ways, f"raise tol or {_LIMITS[status]}."])
        return text[0].upper() + text[1:]


@cache
def _parameters_of(model):
    """Return name, default value and constraints of each parameter of an estimator; a function of a model that returns
    its parameters; the default values; and a dictionary for the values that were last found valid.

    A valid value need not be checked again in each fit: with scikit-learn's inspection of signatures, that takes
    longer than a small fit. In place of a default that is not valid, there is an object that no value is.
    """
    signature, found = inspect.signature(model.__init__), []
    for name in model._get_param_names():
        constraints = [make_constraint(one) for one in model._parameter_constraints.get(name, [object])]
        default = signature.parameters[name].default
        is_valid = any(constraint.is_satisfied_by(default) for constraint in constraints)
        found.append((name, default if is_valid else object(), constraints))
    names, defaults = [one[0] for one in found], [one[1] for one in found]
    values_of = attrgetter(*names) if len(names) > 1 else lambda model: [getattr(model, name) for name in names]
    return found, values_of, defaults, {}


def _word_of(parameter):
    """Return the words that describe a parameter in a checkpoint; those of an array tell any two of them apart."""
    return fingerprint(parameter) if isinstance(parameter, np.ndarray) or issparse(parameter) else repr(parameter)


def seed_of(random_state):
    """Return the seed of the solvers: an integer as it is, otherwise a number drawn from the random state."""
    if isinstance(random_state, Integral):
        return int(random_state)  # a RandomState would take a tenth of the time of a small fit
    return check_random_state(random_state).randint(np.iinfo(np.int32).max)


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
