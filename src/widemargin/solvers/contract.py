"""The arguments and results of every solver, and the `Watch` to which every solver reports its iterations.

A solver is a function of a problem and `Settings`, and returns a `Solution`. Its outer loop is in Python and reports
each iteration to a `Watch`, so that limits, callbacks, interruption and history work in the same way for all solvers.
The primal and the dual objective of a `Solution` are computed at the returned point; they are never estimates.
"""

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from widemargin.problems.certificates import relative_gap
from widemargin.solvers.checkpoint import CheckpointFile, Checkpoints


class Status(Enum):
    """Why a solver stopped."""

    CONVERGED = "converged"
    MAX_ITER = "max_iter reached"
    MAX_SECONDS = "max_seconds reached"
    CALLBACK = "stopped by a callback"
    INTERRUPTED = "interrupted"
    STALLED = "no further progress in double precision"


class Progress(NamedTuple):
    """The state of a solver after an iteration, as it is passed to callbacks.

    If a callback returns a true value, the solver stops, and the best solution so far is kept.

    Attributes
    ----------
    solver : str
        Name of the solver.
    iteration : int
        Number of iterations: sweeps, Newton steps or cutting planes.
    seconds : float
        Time since the solver was started.
    passes : float
        Visits of rows divided by the number of rows.
    primal, dual, gap : float
        Primal and dual objective and their relative gap, at the last measurement.
    tol : float
        The requested tolerance.
    task, n_tasks : int
        If several problems are solved, one per class for instance: the index of this problem, from 0, and their number.
    violation : float
        The largest violation of an optimality condition; NaN for solvers that do not stop by it.
    counts : str
        The unit of `iteration`: "sweeps", "steps", "planes" or "iterations".
    rows : float
        Kernel rows computed so far, in proportion to their columns; NaN for linear models.
    hits : float
        The part of the kernel rows asked for that was in the cache, between 0 and 1; NaN if none was asked for.
    seconds_left : float
        The solver's own estimate of the time left; NaN if it has none.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from widemargin import LinearSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LinearSVC(callbacks=[lambda progress: progress.gap < 0.5], tol=0.1).fit(scale(X), y)
    >>> model.gap_ < 0.5
    True
    """

    solver: str
    iteration: int
    seconds: float
    passes: float
    primal: float
    dual: float
    gap: float
    tol: float
    task: int
    n_tasks: int
    violation: float = math.nan
    counts: str = "iterations"
    rows: float = math.nan
    hits: float = math.nan
    seconds_left: float = math.nan


@dataclass(frozen=True)
class Settings:
    """Stopping rule, limits and callbacks of a solver.

    Attributes
    ----------
    tol : float
        The tolerance of the stopping rule.
    stopping : str
        "gap" (relative duality gap <= tol) or "kkt" (largest violation of an optimality condition < tol).
    max_iter, max_seconds : number or None
        Limits of iterations and time; None means no limit.
    seed : int or tuple of ints
        Seed of the random numbers.
    n_jobs : int or None
        Number of threads.
    callbacks : tuple of functions
        Called with a `Progress` after each iteration; the solver stops if one of them returns a true value.
    interrupt : threading.Event
        The solver stops when it is set, from any thread.
    task, n_tasks : int
        Index and number of problems, which are passed to the callbacks.
    checkpoint : CheckpointFile or None
        Where the state of the solver is written now and then, and read from if it is there.
    """

    tol: float = 1e-3
    stopping: str = "gap"
    max_iter: int | None = None
    max_seconds: float | None = None
    seed: int | tuple[int, ...] = 0
    n_jobs: int | None = None
    callbacks: tuple[Callable[[Progress], object], ...] = ()
    interrupt: threading.Event = field(default_factory=threading.Event)
    task: int = 0
    n_tasks: int = 1
    checkpoint: CheckpointFile | None = None


@dataclass(frozen=True)
class KernelSettings(Settings):
    """Settings of kernel solvers.

    For stopping = "kkt", `tol` is defined as in LIBSVM: within each group, the largest gradient entry F_t of a dual
    variable that can decrease, minus the smallest of one that can increase, must be below `tol`.

    Attributes
    ----------
    cache_size : float
        Memory for kernel rows, in MB.
    shrinking : bool
        Whether dual variables that are expected to stay at their bounds are left out of the working problem.
    working_set : int or None
        Number of dual variables that are optimised at once; None chooses it by measured times.
    certify : bool
        Whether stopping = "kkt" also asks for a small duality gap, and rounding errors that matter for it are removed.
        Predictions do not need either.
    """

    stopping: str = "kkt"
    cache_size: float = 200.0
    shrinking: bool = True
    working_set: int | None = None
    certify: bool = True


Record = TypeVar("Record")


def changed(record: Record, **fields: object) -> Record:
    """Return Settings or a Solution with some fields changed, as `dataclasses.replace`, in a tenth of its time."""
    copy = object.__new__(type(record))
    values = vars(copy)
    values.update(vars(record), **fields)
    if len(values) != len(vars(record)):
        unknown = fields.keys() - vars(record).keys()
        raise TypeError(f"{type(record).__name__} has no field {sorted(unknown)[0]!r}.")
    return copy


HISTORY = np.dtype(
    [("iteration", "i8"), ("seconds", "f8"), ("passes", "f8"), ("primal", "f8"), ("dual", "f8"), ("gap", "f8")]
)


@dataclass(frozen=True)
class Solution:
    """The solution of a linear problem, with its certificate.

    Attributes
    ----------
    w : ndarray of shape (n_columns,)
        The weights; the weight of the constant column, if there is one, is last.
    beta : ndarray of shape (n_rows,), or None
        Feasible dual variables whose dual objective is `dual`; None if the solver has none. Dual coordinate descent
        keeps w = X'beta; for other solvers this holds only approximately.
    primal, dual : float
        The primal objective at `w`, and a lower bound of the optimum.
    n_iter : int
        Number of iterations.
    status : Status
        Why the solver stopped.
    solver : str
        Name of the solver, or of several in the order in which they were used.
    history : ndarray of type HISTORY
        One entry per measurement; the last one is that of the returned point.
    why : str
        Why `auto` chose this solver; empty if the caller chose it.
    intercept : float
        The intercept; 0 if there is none.
    is_exact : bool
        Whether the optimality conditions hold to full precision.
    counts : str
        The unit of `n_iter`, as in `Progress`.
    scale : float
        A lower limit of the denominator of `gap`; above 0 only for problems whose optimum may be zero.
    risk_sums : tuple of floats, or None
        The risk at `w`, and Σ |c_i| (1 + |w| |x_i|) of its subgradient c, from scores computed for it; known to cutting
        planes, so that the certificate does not take another pass over the rows.
    """

    w: NDArray[np.float64]
    beta: NDArray[np.float64] | None
    primal: float
    dual: float
    n_iter: int
    status: Status
    solver: str
    history: NDArray[np.void]
    why: str = ""
    intercept: float = 0.0
    is_exact: bool = False
    counts: str = "iterations"
    scale: float = 0.0
    risk_sums: tuple[float, float] | None = None

    @property
    def gap(self) -> float:
        """Relative duality gap of the solution."""
        return relative_gap(self.primal, self.dual, self.scale)

    @property
    def is_finite(self) -> bool:
        """Whether weights, intercept, dual variables and primal objective are finite; `dual` may be −∞, but not NaN."""
        intercept: Any = self.intercept  # an array, if there are several classes
        parts = [self.w]
        if isinstance(self.beta, np.ndarray):  # those of rows elsewhere are not seen here
            parts.append(self.beta)
        if isinstance(intercept, np.ndarray):
            parts.append(intercept)
        elif not math.isfinite(intercept):
            return False
        if math.isnan(self.dual) or not math.isfinite(self.primal):
            return False
        return all(np.isfinite(part).all() for part in parts)


@dataclass(frozen=True)
class KernelSolution:
    """The solution of a KernelQP, with its certificate.

    `n_iter`, `status`, `solver`, `history` and `counts` are those of `Solution`.

    Attributes
    ----------
    beta : ndarray of shape (n_variables,)
        The dual variables.
    offsets : ndarray of shape (n_groups,)
        The offset r_g of each group, which the gradient entries of its free dual variables are equal to.
    primal, dual : float
        The primal objective of the model, which is `stretch` times the function of beta and offsets, and a lower bound
        of the optimum.
    violation : float
        The largest violation of an optimality condition, which `tol` limits.
    n_computed : float
        Number of kernel rows that were computed.
    stretch : float
        The factor of the function; other than 1 only if the costs are very large.
    scale : float
        A lower limit of the denominator of `gap`. If the function is zero, the objective consists of rounding errors
        only, and the gap is taken relative to the sum of the absolute values of its terms.
    """

    beta: NDArray[np.float64]
    offsets: NDArray[np.float64]
    primal: float
    dual: float
    violation: float
    n_iter: int
    n_computed: float
    status: Status
    solver: str
    history: NDArray[np.void]
    stretch: float = 1.0
    scale: float = 0.0
    counts: str = "iterations"

    @property
    def gap(self) -> float:
        """Relative duality gap of the solution."""
        return relative_gap(self.primal, self.dual, self.scale)

    @property
    def is_finite(self) -> bool:
        """Whether dual variables, offsets and primal objective are finite; `dual` may be −∞, but not NaN."""
        if math.isnan(self.dual) or not all(map(math.isfinite, [self.primal, *self.offsets.tolist()])):
            return False
        return math.isfinite(self.beta.dot(self.beta)) or bool(np.isfinite(self.beta).all())


class Watch:
    """The clock, the history and the limits of one run of a solver.

    As a context manager it catches KeyboardInterrupt, so that the solver returns its best solution so far.

    Parameters
    ----------
    settings : Settings
    counts : str
        The unit of iterations, as in `Progress`.
    scale : float
        A lower limit of the denominator of the relative gap.

    Attributes
    ----------
    settings, counts, scale
        As given.
    status : Status or None
        Why the run ended; None while it goes on.
    """

    settings: Settings
    counts: str
    scale: float
    status: Status | None

    def __init__(self, settings: Settings, counts: str = "iterations", scale: float = 0.0) -> None:
        self.settings, self.counts, self.scale = settings, counts, scale
        self.status = None
        self._start = self._begun = time.perf_counter()  # of the run; of the part of it that this process has made
        self._is_restored = False
        self._history: list[tuple[int, float, float, float, float, float]] = []
        self._checkpoints = Checkpoints(settings.checkpoint)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            self.settings.interrupt.set()
            self.status = Status.INTERRUPTED
            return True
        return False

    @property
    def seconds(self) -> float:
        """Seconds that the run has taken, those before a checkpoint from which it goes on included."""
        return time.perf_counter() - self._start

    @property
    def seconds_here(self) -> float:
        """Seconds that the run has taken in this process, which `max_seconds` limits."""
        return time.perf_counter() - self._begun

    @property
    def is_over(self) -> bool:
        """Whether the run was interrupted, or has taken the time that it may take, which ends a warm start."""
        max_seconds = self.settings.max_seconds
        return self.settings.interrupt.is_set() or (max_seconds is not None and self.seconds_here >= max_seconds)

    @property
    def gap(self) -> float:
        """The relative gap of the last measurement."""
        return self._history[-1][-1]

    @property
    def last_iteration(self) -> int:
        """The iteration of the last measurement; −1 if there is none."""
        return self._history[-1][0] if self._history else -1

    def record(self, iteration: int, passes: float, primal: float, dual: float) -> float:
        """Add a measurement to the history, and return its relative gap.

        The first one after a checkpoint may be that of an iteration which the history has already.
        """
        gap = relative_gap(primal, dual, self.scale)
        if self._is_restored and iteration == self.last_iteration:
            self._history.pop()
        self._is_restored = False
        self._history.append((iteration, self.seconds, passes, primal, dual, gap))
        return gap

    def should_stop(
        self, solver: str, iteration: int, passes: float, violation: float = math.nan, **more: float
    ) -> bool:
        """Report an iteration to the callbacks; return whether the run has to end, in which case `status` is set.

        At least one measurement must have been recorded before. `more` are other attributes of `Progress`.
        """
        settings = self.settings
        if settings.callbacks and self._call_callbacks(solver, iteration, passes, violation, more):
            self.status = Status.CALLBACK
        elif settings.interrupt.is_set():
            self.status = Status.INTERRUPTED
        elif settings.max_iter is not None and iteration >= settings.max_iter:
            self.status = Status.MAX_ITER
        elif settings.max_seconds is not None and self.seconds_here >= settings.max_seconds:
            self.status = Status.MAX_SECONDS
        return self.status is not None

    def _call_callbacks(
        self, solver: str, iteration: int, passes: float, violation: float, more: dict[str, float]
    ) -> bool:
        """Call every callback, even if an earlier one asks to stop; return whether any of them does."""
        primal, dual, gap = self._history[-1][-3:]
        settings = self.settings
        progress = Progress(
            solver, iteration, self.seconds, passes, primal, dual, gap,
            settings.tol, settings.task, settings.n_tasks, violation, self.counts, **more,
        )  # fmt: skip
        stop_requests = [callback(progress) for callback in settings.callbacks]
        return any(stop_requests)

    STATE = ("state",)

    @property
    def state(self) -> NDArray[np.float64]:
        """What a checkpoint keeps of the run: the measurements, and in a last row the seconds so far."""
        return np.array([*self._history, (0, self.seconds, 0.0, 0.0, 0.0, 0.0)])

    @state.setter
    def state(self, rows: NDArray[np.float64]) -> None:
        self._history = [(int(row[0]), *map(float, row[1:])) for row in rows[:-1]]  # type: ignore[misc]
        self._start, self._is_restored = time.perf_counter() - float(rows[-1, 1]), True

    def forget(self) -> None:
        """Forget what a checkpoint has restored, since the run starts anew."""
        self._history, self._start, self._is_restored = [], self._begun, False

    @property
    def gaps(self) -> list[float]:
        """The relative gaps of all measurements."""
        return [row[-1] for row in self._history]

    def restore(self, run: Any) -> bool:
        """Set the state of a solver and this history from the checkpoint, if there is one; return whether there is."""
        return self._checkpoints.restore({"run": run, "watch": self})

    def save(self, run: Any, *, now: bool = False) -> None:
        """Write a checkpoint of the state of a solver and of this history, if one is due or `now` asks for it."""
        self._checkpoints.save({"run": run, "watch": self}, now=now)

    def history(self) -> NDArray[np.void]:
        """Return the measurements as an array of type HISTORY."""
        return np.array(self._history, dtype=HISTORY)
