"""What every solver takes and returns, and the watch that every solver's loop reports to.

A solver is a function of a problem and `Settings`. Its loop is in Python and hands each turn to a `Watch`, so that
limits, callbacks, interruption and history are the same everywhere; it returns a `Solution` whose certificate was
measured at the returned point, never estimated.
"""

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from widemargin.problems.certificates import relative_gap


class Status(Enum):
    """Why a solver stopped."""

    CONVERGED = "converged"
    MAX_ITER = "max_iter reached"
    MAX_SECONDS = "max_seconds reached"
    CALLBACK = "stopped by a callback"
    INTERRUPTED = "interrupted"
    STALLED = "no further progress in double precision"


class Progress(NamedTuple):
    """What a callback is given after each iteration of a solver.

    A callback that returns a true value stops the solver, which keeps the model so far.

    Attributes
    ----------
    solver : str
        Name of the solver.
    iteration : int
        Number of iterations: sweeps, Newton steps or cutting planes.
    seconds : float
        Time since the solver began.
    passes : float
        Visits of rows divided by the number of rows.
    primal, dual, gap : float
        Primal and dual objective and their relative gap, at the last measurement.
    tol : float
        The tolerance asked for.
    task, n_tasks : int
        Which of several problems this is, one per class for instance, counted from 0, and how many there are.
    violation : float
        The largest violation of an optimality condition, for solvers that stop by it; NaN for others.
    counts : str
        What iterations are called: "sweeps", "steps", "planes" or "iterations".
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


@dataclass(frozen=True)
class Settings:
    """How far and how long to go.

    `stopping` is "gap" (relative duality gap <= tol) or "kkt" (largest violation of an optimality condition < tol);
    `max_iter` and `max_seconds` None mean no limit; `interrupt`, once set by anyone, stops the solver.
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


@dataclass(frozen=True)
class KernelSettings(Settings):
    """What kernel solvers are told besides.

    `tol` is LIBSVM's: the largest F_t that may fall less the smallest that may rise, within a group. `cache_size` is
    the memory for kernel rows in MB, `working_set` how many multipliers are optimised at once (None: by measurement).
    """

    stopping: str = "kkt"
    cache_size: float = 200.0
    shrinking: bool = True
    working_set: int | None = None


HISTORY = np.dtype(
    [("iteration", "i8"), ("seconds", "f8"), ("passes", "f8"), ("primal", "f8"), ("dual", "f8"), ("gap", "f8")]
)


@dataclass(frozen=True)
class Solution:
    """A point, its proof, and how it came about.

    `w` are the weights, the constant column's last; `beta` the multipliers that prove `dual`, None if the solver has
    none; dual coordinate solvers have w = X'beta, `newton` about that;
    `history` is an array of type HISTORY, one entry per measurement, the last one that of this point;
    `why` is the reason for the choice of the solver, if it was chosen; `intercept` is the value of the intercept,
    0 if there is none; `is_exact` tells that the point is optimal to full precision; `counts` is what `n_iter` counts.
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

    @property
    def gap(self) -> float:
        """Relative duality gap of this point."""
        return relative_gap(self.primal, self.dual)

    @property
    def is_finite(self) -> bool:
        """Whether the point, its multipliers and its objective are; a bound below may be −∞, which proves nothing."""
        parts = (self.w, self.intercept, self.primal, 0.0 if self.beta is None else self.beta)
        return all(np.isfinite(part).all() for part in parts) and not np.isnan(self.dual)


@dataclass(frozen=True)
class KernelSolution:
    """Multipliers of a KernelQP, their proof, and how they came about.

    `offsets` are the levels r_g of the gradient; `violation` is what `tol` was compared with; `n_computed` counts the
    kernel rows that were computed. The model, whose objective is `primal`, is the function of beta and offsets times
    `stretch`, 1 but for the largest costs. Where the function is zero, objective and gap are but rounding: the gap
    is then relative to `scale`, the objective's size if nothing cancelled.
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
        """Relative duality gap of this point."""
        return relative_gap(self.primal, self.dual, self.scale)

    @property
    def is_finite(self) -> bool:
        """Whether multipliers, offsets and the objective are; a bound below may be −∞, which proves nothing."""
        parts = (self.beta, self.offsets, self.primal)
        return all(np.isfinite(part).all() for part in parts) and not np.isnan(self.dual)


class Watch:
    """Keeps the time, the history and the limits of one run; `with` catches Ctrl-C and leaves the model intact."""

    def __init__(self, settings, counts="iterations"):
        self.settings, self.counts = settings, counts
        self.status = None
        self._start = time.perf_counter()
        self._history = []

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            self.settings.interrupt.set()
            self.status = Status.INTERRUPTED
            return True
        return False

    @property
    def seconds(self):
        """Seconds since the run began."""
        return time.perf_counter() - self._start

    @property
    def gap(self):
        """The relative gap last measured."""
        return self._history[-1][-1]

    @property
    def last_iteration(self):
        """The iteration of the last measurement, −1 before the first."""
        return self._history[-1][0] if self._history else -1

    def measured(self, iteration, passes, primal, dual):
        """Write a measurement into the history; return its relative gap."""
        gap = relative_gap(primal, dual)
        self._history.append((iteration, self.seconds, passes, primal, dual, gap))
        return gap

    def turn(self, solver, iteration, passes, violation=math.nan):
        """Tell the callbacks about a turn of `solver`; return True, with `status` set, if the run has to end."""
        settings = self.settings
        if settings.callbacks and self._call_callbacks(solver, iteration, passes, violation):
            self.status = Status.CALLBACK
        elif settings.interrupt.is_set():
            self.status = Status.INTERRUPTED
        elif settings.max_iter is not None and iteration >= settings.max_iter:
            self.status = Status.MAX_ITER
        elif settings.max_seconds is not None and self.seconds >= settings.max_seconds:
            self.status = Status.MAX_SECONDS
        return self.status is not None

    def _call_callbacks(self, solver, iteration, passes, violation):
        primal, dual, gap = self._history[-1][-3:]
        settings = self.settings
        progress = Progress(
            solver, iteration, self.seconds, passes, primal, dual, gap,
            settings.tol, settings.task, settings.n_tasks, violation, self.counts,
        )  # fmt: skip
        wishes = [callback(progress) for callback in settings.callbacks]  # each is told, whatever another says
        return any(wishes)

    def history(self):
        """Return the measurements as an array of type HISTORY."""
        return np.array(self._history, dtype=HISTORY)
