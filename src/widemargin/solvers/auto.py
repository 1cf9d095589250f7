"""`auto`: which solver takes a problem when the caller leaves the choice to us.

Three numbers decide. The `price` of newton is the time of 25 of its steps, divided by that of a sweep of dcd (of 8
steps for squared losses, and where newton begins with a part of the rows). The `height` is about how many coordinate
steps take a dual variable from zero to its bound. The burden is losses / |w|², with costs divided by the power of ten
that makes the height about 1; it tells how far the rows are from being separable. It is known roughly after one sweep,
and well when that smaller problem is solved.

    | price                              | height     | solver                                                       |
    |------------------------------------|------------|--------------------------------------------------------------|
    | 30 or less, or 3 heights or less   | any        | newton; after 60 steps, the rows below continue from there   |
    | more, n >= d                       | below 5    | dcd                                                          |
    | more, n >= d                       | 5 or more  | climb; or dcd, if a burden x height below 300 after a sweep, |
    |                                    |            | or a burden below 3 when its first stage is solved, tells    |
    |                                    |            | that continuation saves nothing                              |
    | more, n < d                        | below 20   | dcd                                                          |
    | more, n < d                        | 20 or more | climb, which mostly is avsf here                             |

After sweeps, newton continues once the gap falls so slowly that this is expected to be faster, or half of max_iter is
used up.

n is the number of rows, d that of columns. If the intercept is not penalised: newton up to a price of 1,000 or 300
columns, else ocas. For stopping="kkt" or a given start: the lower half of the table, where a start has dcd, or avsf if
n < d, instead of climb. Problems of up to some hundred thousand entries: newton with an active set, see
`newton.active_set`. Measurements: docs/which-solver.md.
"""

from dataclasses import replace

import numpy as np

from widemargin.data.gram import row_cost
from widemargin.problems.formulations import DualQP, is_made_of_hinges
from widemargin.solvers.contract import Status
from widemargin.solvers.coordinate_descent.avsf import AdaptiveSweeps
from widemargin.solvers.coordinate_descent.climb import WORTH_SOLVING, ClimbingSweeps, height
from widemargin.solvers.coordinate_descent.dcd import ShrinkingSweeps
from widemargin.solvers.coordinate_descent.loop import descend
from widemargin.solvers.coordinate_descent.state import Coordinates
from widemargin.solvers.cutting_planes.methods import ocas
from widemargin.solvers.handover import joined, rest_of
from widemargin.solvers.newton.active_set import active_set_newton, can_be_dense, suits_active_set
from widemargin.solvers.newton.smoothed import (
    MOST_COLUMNS,
    NEWTON,
    begins_with_a_part,
    newton,
    newton_together,
    takes_active_set,
)
from widemargin.solvers.spec import SolverSpec, Start

# Prices and heights are defined above.
_CHEAP_PRICE, _AFFORDABLE_PRICE, _HIGHEST_PRICE = 30.0, 150.0, 1000.0
_PRICE_PER_HEIGHT = 3.0  # up to which newton is taken
_COLUMNS_FOR_NEWTON = 300  # up to which newton is the better solver at any price
_NEWTON_STEPS_BEFORE_SWITCH = 60
_LOW_HEIGHT, _LOW_HEIGHT_IF_WIDE = 5.0, 20.0  # below which dcd is taken
_BURDEN_TIMES_HEIGHT_TO_CLIMB = 300.0  # from which on continuation in C pays
# Nanoseconds per stored value in a sweep, and in a pass over the rows; per operation of BLAS; per Newton step besides.
_NS_PER_SWEPT_VALUE, _NS_PER_PASSED_VALUE, _NS_PER_FLOP, _NS_PER_NEWTON_STEP = 3.0, 1.3, 0.05, 7e5
_BAND_FRACTION, _BAND_FRACTION_SQUARED = 0.15, 0.4  # of the rows, which contribute to the matrix of a Newton step
_NEWTON_STEPS, _FEW_NEWTON_STEPS = 25, 8  # usual; for squared losses, and where newton begins with a part of the rows
_TIME_LEFT_AFTER_SWEEPS = 0.6  # of newton's time, when it starts from where the sweeps have come to
_PASSES_BEFORE_FORECAST = 3.0  # before the number of sweeps left is forecast from the gap


def auto(problem, settings, start=None):
    """Minimise a DualQP by the solver that suits it; `start` are multipliers.

    Solution.solver tells which, Solution.why the reason.
    """
    solver, why = chosen(problem, settings, start)
    if solver in (newton, ocas) and start is not None:  # those begin with weights
        beta, start = start, problem.X.combine(start, settings.n_jobs)
        if solver is newton and takes_active_set(problem):
            return replace(active_set_newton(problem, settings, start, beta), why=why)
    solution = solver(problem, settings, start)
    return solution if solution.why else replace(solution, why=why)


def chosen(problem, settings, start=None):
    """Return the solver for a problem, a function, and the reason."""
    if settings.stopping == "gap" and suits_active_set(problem) and takes_active_set(problem):
        return newton, "a small problem"
    if not is_made_of_hinges(problem):
        return newton if problem.free_intercept else _sweeps, "losses that are not hinges"
    if problem.free_intercept:
        if can_be_dense(problem.X) and problem.X.is_wide:
            return newton, "the intercept is not penalised, and rows are few"
        if suits_newton_at_any_cost(problem.X):
            return newton, "the intercept is not penalised"
        return ocas, "the intercept is not penalised, and there are many columns"
    if settings.stopping != "gap" or start is not None:
        return _sweeps, "stopping='kkt'" if settings.stopping != "gap" else "a start"
    price = _price(problem.X, squared=bool(problem.curvature.any()))
    if price <= _CHEAP_PRICE:
        return _steps_first, "many rows for each column"
    if np.isfinite(price) and price <= _PRICE_PER_HEIGHT * height(problem):
        return _steps_first, "large costs"
    return _sweeps_first, "small costs" if price <= _AFFORDABLE_PRICE else "many columns or few rows"


def auto_together(problems, settings, starts):
    """Minimise problems with the same X that begin with newton, without starts; return their Solutions."""
    solver, why = chosen(problems[0], settings[0])
    if solver is newton:
        solutions = newton_together(problems, settings, starts)
    else:
        firsts = newton_together(problems, [with_step_limit(one) for one in settings], starts)
        solutions = [continued(*one) for one in zip(problems, settings, firsts, strict=True)]
    return [solution if solution.why else replace(solution, why=why) for solution in solutions]


def suits_newton_at_any_cost(X):
    """Whether newton is the solver for problems with this X of which nothing else is known, or on paths of costs."""
    return _price(X) <= _HIGHEST_PRICE or X.n_columns <= min(X.n_rows, _COLUMNS_FOR_NEWTON)


def _price(X, squared=False):
    """Return how many sweeps of dcd take as long as newton."""
    if X.n_columns > min(MOST_COLUMNS, X.n_rows):
        return np.inf
    n_steps = _FEW_NEWTON_STEPS if squared or begins_with_a_part(X) else _NEWTON_STEPS
    return n_steps * _step_time(X, squared) / (_NS_PER_SWEPT_VALUE * max(1, X.n_stored))


def _step_time(X, squared):
    """Return about how many nanoseconds a step of newton takes."""
    rows = X.n_rows * (_BAND_FRACTION_SQUARED if squared else _BAND_FRACTION)
    return (
        _NS_PER_NEWTON_STEP
        + _NS_PER_PASSED_VALUE * X.n_stored
        + rows * row_cost(X)
        + _NS_PER_FLOP * X.n_columns**3 / 3.0
    )


# --- One solver, then another ---------------------------------------------------------------------------------------


def _steps_first(problem, settings, start=None):
    """Take Newton steps, and continue with sweeps if they converge slowly."""
    return continued(problem, settings, newton(problem, with_step_limit(settings)))


def with_step_limit(settings):
    """Return settings with the number of Newton steps after which sweeps are tried."""
    return replace(
        settings,
        max_iter=_NEWTON_STEPS_BEFORE_SWITCH
        if settings.max_iter is None
        else min(_NEWTON_STEPS_BEFORE_SWITCH, settings.max_iter),
    )


def continued(problem, settings, first):
    """Return newton's solution if it has converged within its steps, or that of the sweeps that continue it."""
    if first.status not in (Status.MAX_ITER, Status.STALLED) or first.n_iter == settings.max_iter:
        return first
    second = _sweeps_first(problem, rest_of(settings, first), first.beta, after_steps=True)
    return joined(first, second, "steps turned out to be slow")


def _sweeps_first(problem, settings, start=None, after_steps=False):
    """Sweep, and continue with `newton` when that is faster; with its active set, if newton was tried already."""
    price, is_dense = _price(problem.X, squared=bool(problem.curvature.any())), can_be_dense(problem.X)
    if not is_dense and np.isinf(price):
        return _sweeps(problem, settings, start)
    forecast = _SwitchForecast(_TIME_LEFT_AFTER_SWEEPS * price, settings)
    first = _sweeps(problem, replace(settings, callbacks=(forecast,)), start)
    if not forecast.is_over:
        return first
    rest = rest_of(settings, first)
    if is_dense and (after_steps or np.isinf(price)):
        return joined(first, active_set_newton(problem, rest, first.w, first.beta), "sweeps turned out to be slow")
    return joined(first, newton(problem, rest, first.w), "sweeps turned out to be slow")


class _SwitchForecast:
    """A callback that stops sweeps when newton is expected to be faster; the caller's callbacks are called first."""

    def __init__(self, most_sweeps, settings):
        self._callbacks, self._tol, self._most = settings.callbacks, settings.tol, most_sweeps
        self._gap, self.is_over = np.inf, False
        self._most_iterations = np.inf if settings.max_iter is None else settings.max_iter // 2

    def __call__(self, progress):
        wishes = [callback(progress) for callback in self._callbacks]  # each is told, whatever another says
        if any(wishes):
            return True
        if progress.gap == self._gap or progress.passes < _PASSES_BEFORE_FORECAST:
            return False
        self._gap = progress.gap  # measured just now
        if self._gap > self._tol and progress.iteration > self._most_iterations:
            self.is_over = True
            return True
        if self._tol < self._gap < 1.0:
            expected = progress.passes * (np.log(max(self._tol, 1e-16)) / np.log(self._gap) - 1.0)
            self.is_over = expected > self._most
        else:
            self.is_over = self._gap > self._tol and progress.passes > self._most
        return self.is_over


# --- Sweeps alone ---------------------------------------------------------------------------------------------------


def _sweeps(problem, settings, start=None):
    """Sweep as `dcd`, `avsf` or `climb` does."""
    state = Coordinates(problem, start, settings.n_jobs)
    wide = problem.X.is_wide
    if height(problem, state.norms) < (_LOW_HEIGHT_IF_WIDE if wide else _LOW_HEIGHT):
        method = ShrinkingSweeps(state, settings)
    elif start is not None or settings.stopping == "kkt":
        method = AdaptiveSweeps(state, settings) if wide else ShrinkingSweeps(state, settings)
    else:
        method = ClimbingSweeps(state, settings) if wide else ChoosingSweeps(state, settings)
    return descend(method, settings)


class ChoosingSweeps:
    """Sweeps of `climb` until it is clear whether there is anything to climb; if not, of `dcd`."""

    def __init__(self, coordinates, settings):
        self.coordinates, self._settings = coordinates, settings
        self._worth = _BURDEN_TIMES_HEIGHT_TO_CLIMB / height(coordinates.problem, coordinates.norms)
        self._chosen, self._open = ClimbingSweeps(coordinates, settings), True

    @property
    def name(self):
        """The solver chosen."""
        return self._chosen.name

    def sweep(self, budget, most):
        """Sweep, and choose if that is still open."""
        report = self._chosen.sweep(budget, most)
        if self._open:
            self._choose(report.loss / max(2.0 * self.coordinates.half_norm(), np.finfo(float).tiny))
        return report

    def widen(self):
        """As the solver chosen does."""
        self._chosen.widen()

    def advance(self, half_norm, loss):
        """Choose by the burden of the stage just solved, if that is still open, and go on to the next."""
        if self._open and self._chosen.tens and loss < WORTH_SOLVING * 2.0 * half_norm:
            self._settle_for_dcd()
            return True
        self._open = False
        return self._chosen.advance(half_norm, loss)

    def _choose(self, burden):
        """Choose dcd if the first sweep shows too little to climb, or the last power of ten is reached."""
        if burden < self._worth or self._chosen.tens == 0:
            self._settle_for_dcd()
        self._worth = 0.0

    def _settle_for_dcd(self):
        self.coordinates.set_costs(1.0)
        self._chosen, self._open = ShrinkingSweeps(self.coordinates, self._settings), False


def _is_better_together(problem, settings, start):
    """Return whether several such problems begin with newton, which shares their passes."""
    return start is None and not takes_active_set(problem) and chosen(problem, settings)[0] in (newton, _steps_first)


def _refuses(problem):
    """Return why a DualQP is refused, or None: a free intercept with losses that are not hinges is for newton alone."""
    reason = NEWTON.refuses(problem) if problem.free_intercept and not is_made_of_hinges(problem) else None
    return reason and f"has only {NEWTON.name!r} for such losses with penalize_intercept=False, which {reason}"


AUTO = SolverSpec(
    name="auto",
    solve=auto,
    takes=frozenset({DualQP}),
    starts_from=Start.DUAL,
    stopping=("gap", "kkt"),
    counts="iterations",
    refuses=_refuses,
    together=auto_together,
    is_better_together=_is_better_together,
    chooses=True,
)
