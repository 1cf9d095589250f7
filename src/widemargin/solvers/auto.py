"""`auto`: the choice of a solver for a DualQP, by rules that were derived from measurements.

Three numbers decide:

    price    time of newton, divided by the time of a sweep of dcd; newton is taken to need 25 steps, or 8 for squared
             losses, and if it starts from a sample of the rows
    height   approximate number of coordinate steps from zero to the bound of a dual variable, the mean over the rows
    burden   Σ losses / |w|² at costs divided by the power of ten that makes the height about 1. The larger it is, the
             farther the classes are from being separable. It is estimated after one sweep, and known after convergence

With n rows and d columns, problems are solved by

    | price                              | height     | solver                                                       |
    |------------------------------------|------------|--------------------------------------------------------------|
    | up to 30, or up to 3 height        | any        | newton; after 60 steps, a solver of the next lines continues |
    | 13 to 30, losses not squared, X of | below 20   | dcd or climb, as in the next lines                           |
    | 262,144 stored values or more      |            |                                                              |
    | 9 to 13, such losses and X         | 0.2 steps  | dcd; 0.2 coordinate steps at most, which the height does not |
    |                                    |            | tell from 1                                                  |
    | higher, n >= d                     | below 5    | dcd                                                          |
    | higher, n >= d                     | 5 or more  | climb; but dcd if burden x height is below 300 after a sweep |
    |                                    |            | or the burden is below 3 after the first stage, since        |
    |                                    |            | continuation in C then saves nothing                         |
    | higher, n < d                      | below 5    | dcd                                                          |
    | higher, n < d                      | 5 or more  | climb, which here mostly skips its stages, and so is avsf    |

newton continues after sweeps if the gap decreases so slowly that newton is expected to be faster, or if half of
max_iter is used.

Exceptions. One-class machines, whose dual variables have a fixed sum, are solved by pairs if their rows are in memory.
Other problems of up to some hundred thousand entries are solved by newton with an active set, see `newton.active_set`.
If the intercept is not penalised, newton is used up to a price of 1,000 or up to 300 columns, otherwise ocas. With
stopping="kkt" or a start, only the lines of the table without newton apply, and climb is replaced by dcd, or by avsf if
n < d. With a checkpoint, only solvers that write checkpoints are used: newton where it suits the problem whatever its
costs are, otherwise ocas if the intercept is not penalised, and sbm if it is. With rows in blocks on disk, newton is
used up to its number of columns, but sbm for a single problem with a price above 30, at most one coordinate step (a
fifth for squared losses) from zero to the bound and a tolerance of 1e-4 or more; for more columns, sbm, or ocas if the
intercept is not penalised. The speed of the disk does not enter: within these limits sbm needs fewer passes than newton
and less time between them. Losses with an entropy, such as the log loss, are for newton and dcd only: newton up to a
price of 150, or if the intercept is not penalised or rows are not in memory, otherwise dcd, which newton continues as
above; dcd comes first from a price of 50 on if the height is below 5. If there are too many columns for a matrix, or
fewer rows than columns, newton takes its steps by conjugate gradients, and its price is 40; it is used without sweeps
only if dual variables are at most 0.3 coordinate steps from zero to their bounds, and X has at least 8 stored values
for each column, so that a pass takes longer than what is done with the columns. The measurements are in
docs/which-solver.md.
"""

import numpy as np

from widemargin._runtime.place import HERE
from widemargin.data.gram import row_cost
from widemargin.problems.formulations import DualQP, FixedSumQP
from widemargin.solvers.contract import Status, changed
from widemargin.solvers.coordinate_descent.avsf import AdaptiveSweeps
from widemargin.solvers.coordinate_descent.block_minimisation import sbm
from widemargin.solvers.coordinate_descent.climb import MIN_BURDEN, ClimbingSweeps, coordinate_steps, height
from widemargin.solvers.coordinate_descent.dcd import ShrinkingSweeps, dcd
from widemargin.solvers.coordinate_descent.loop import descend
from widemargin.solvers.coordinate_descent.pairs import pairs
from widemargin.solvers.coordinate_descent.state import Coordinates
from widemargin.solvers.cutting_planes.methods import ocas
from widemargin.solvers.handover import joined, rest_of
from widemargin.solvers.newton.active_set import active_set_newton, can_be_dense, suits_active_set, takes_problem
from widemargin.solvers.newton.iterate import has_matrix
from widemargin.solvers.newton.smoothed import (
    MAX_COLUMNS,
    NEWTON,
    newton,
    newton_together,
    starts_from_sample,
    takes_active_set,
)
from widemargin.solvers.spec import SolverSpec, Start

# Prices, heights and burdens are defined above.
_MAX_PRICE_OF_NEWTON, _MAX_PRICE_PER_HEIGHT = 30.0, 3.0  # up to which newton is used
_MIN_PRICE_TO_SWEEP_FIRST, _MAX_HEIGHT_TO_SWEEP_FIRST = 13.0, 20.0  # the exception, for losses that are not squared,
_MIN_STORED_TO_SWEEP_FIRST = 1 << 18  # and if X has so many stored values
_MIN_PRICE_TO_SWEEP_FIRST_IF_FEW, _MAX_STEPS_TO_SWEEP_FIRST_IF_FEW = 9.0, 0.2  # the same: coordinate steps to the bound
_MAX_PRICE_AT_ANY_COST, _MAX_COLUMNS_AT_ANY_COST = 1000.0, 300  # the same, with a free intercept and on paths of costs
_MAX_PRICE_WITH_ENTROPY = 150.0  # up to which newton is used for losses with an entropy, whatever the costs are
_MIN_PRICE_TO_SWEEP_FIRST_WITH_ENTROPY = 50.0  # the same, from which dcd comes first if costs are small
_MAX_STEPS_FOR_CONJUGATE_GRADIENTS, _MIN_VALUES_PER_COLUMN = 0.3, 8.0  # the same, without a matrix: coordinate steps
# from zero to the bound, and stored values for each column, with which newton is used without sweeps
_PRICE_OF_CONJUGATE_GRADIENTS = 40.0  # of newton for losses with an entropy, without a matrix; measured on text
_MAX_PRICE_FOR_SMALL_COSTS = 150.0  # up to which small costs are given as the reason why newton is not used
# For rows on disk: coordinate steps from zero to the bound, and tolerance, within which sbm was measured to be faster.
_MAX_STEPS_OF_SBM, _MAX_STEPS_OF_SBM_SQUARED, _MIN_TOL_OF_SBM = 1.0, 0.2, 1e-4
_NEWTON_STEPS_BEFORE_SWITCH = 60
_MIN_HEIGHT_TO_CLIMB = 5.0  # below which dcd is used
_MIN_BURDEN_TIMES_HEIGHT_TO_CLIMB = 300.0
# Nanoseconds per stored value in a sweep, and in a pass over the rows; per operation of BLAS; per Newton step besides.
_NS_PER_SWEPT_VALUE, _NS_PER_PASSED_VALUE, _NS_PER_FLOP, _NS_PER_NEWTON_STEP = 3.0, 1.3, 0.05, 7e5
_BAND_FRACTION, _BAND_FRACTION_SQUARED = 0.15, 0.4  # of the rows, which contribute to the matrix of a Newton step;
# with an entropy all rows do
_NEWTON_STEPS, _FEW_NEWTON_STEPS = 25, 8  # usual; for squared losses, and if newton starts from a sample of the rows
_TIME_FRACTION_AFTER_SWEEPS = 0.6  # of newton's time, which it takes if it starts from the result of sweeps
_PASSES_BEFORE_FORECAST = 3.0  # before the number of remaining sweeps is extrapolated from the gap
_MIN_FORECAST_TOL = 1e-16  # smaller tolerances are taken as this one in the extrapolation


def auto(problem, settings, start=None):
    """Minimise a DualQP by a solver chosen for it; `start` are dual variables.

    `Solution.solver` is the solver that was chosen, `Solution.why` the reason.
    """
    solver, why = chosen(problem, settings, start)
    if start is None and not problem.X.is_in_memory and solver is newton and _sbm_is_faster(problem, settings):
        solver, why = sbm, "rows in blocks, small costs"
    if solver in (newton, ocas) and start is not None:  # these start from weights
        beta, start = start, problem.X.combine(start, settings.n_jobs)
        if solver is newton and takes_active_set(problem):
            return changed(active_set_newton(problem, settings, start, beta), why=why)
    solution = solver(problem, settings, start)
    return solution if solution.why else changed(solution, why=why)


def chosen(problem, settings, start=None):
    """Return the solver for a problem, as a function, and the reason of the choice."""
    if problem.entropy:
        return _chosen_for_entropy(problem, settings, start)
    if not problem.X.is_in_memory:
        return _chosen_for_blocks(problem)
    if problem.dual_sum and settings.checkpoint is None:
        return pairs, "a fixed sum of dual variables"
    if settings.stopping == "gap" and suits_active_set(problem) and takes_active_set(problem):
        return newton, "a small problem"
    if settings.checkpoint is not None:
        return _chosen_with_checkpoints(problem)
    if not problem.is_made_of_hinges:
        return newton if problem.free_intercept else _sweeps, "losses that are not hinges"
    if problem.free_intercept:
        if can_be_dense(problem.X) and problem.X.is_wide:
            return newton, "the intercept is not penalised, and rows are few"
        if suits_newton_at_any_cost(problem.X):
            return newton, "the intercept is not penalised"
        return ocas, "the intercept is not penalised, and there are many columns"
    if settings.stopping != "gap" or start is not None:
        return _sweeps, "stopping='kkt'" if settings.stopping != "gap" else "a start"
    price = _price_of(problem)
    if price <= _MAX_PRICE_OF_NEWTON and not _sweeps_are_few(problem, price):
        return _newton_then_sweeps, "many rows for each column"
    if _MAX_PRICE_OF_NEWTON < price < np.inf and price <= _MAX_PRICE_PER_HEIGHT * height(problem):
        return _newton_then_sweeps, "large costs"
    return _sweeps_then_newton, "small costs" if price <= _MAX_PRICE_FOR_SMALL_COSTS else "many columns or few rows"


def _sweeps_are_few(problem, price):
    """Return whether sweeps are tried although newton is not expensive: they converge fast if costs are small."""
    if problem.is_squared or problem.X.n_stored < _MIN_STORED_TO_SWEEP_FIRST:
        return False
    if price > _MIN_PRICE_TO_SWEEP_FIRST:
        return height(problem) < _MAX_HEIGHT_TO_SWEEP_FIRST
    is_in_range = price > _MIN_PRICE_TO_SWEEP_FIRST_IF_FEW
    return is_in_range and coordinate_steps(problem) < _MAX_STEPS_TO_SWEEP_FIRST_IF_FEW


def _chosen_for_entropy(problem, settings, start):
    """Return the solver for losses with an entropy, and the reason."""
    if settings.stopping != "gap":
        return dcd, "stopping='kkt'"
    if problem.free_intercept:
        return newton, "the intercept is not penalised"
    if not problem.X.is_in_memory or settings.checkpoint is not None:
        return newton, "rows are not in memory" if settings.checkpoint is None else "it writes checkpoints"
    if not has_matrix(problem.X):
        if start is None and _suits_conjugate_gradients(problem):
            return newton, "small costs"
        return (_sweeps_then_newton, "many columns or few rows") if start is None else (dcd, "a start")
    price = _price_of(problem)
    if start is None and price > _MIN_PRICE_TO_SWEEP_FIRST_WITH_ENTROPY and height(problem) < _MIN_HEIGHT_TO_CLIMB:
        return _sweeps_then_newton, "small costs"
    if price <= _MAX_PRICE_WITH_ENTROPY:
        return newton, "many rows for each column"
    return (_sweeps_then_newton, "many columns or few rows") if start is None else (dcd, "a start")


def _suits_conjugate_gradients(problem):
    """Return whether newton takes a few products with vectors only, and less time than sweeps."""
    if problem.X.n_stored < _MIN_VALUES_PER_COLUMN * problem.X.n_columns:
        return False
    return coordinate_steps(problem) <= _MAX_STEPS_FOR_CONJUGATE_GRADIENTS


def _chosen_for_blocks(problem):
    """Return the solver for rows on disk or on a cluster, where passes over the rows cost most, and the reason."""
    if problem.X.place is not HERE:
        if problem.X.n_columns <= MAX_COLUMNS:
            return newton, "rows on a cluster, few columns"
        return ocas, "rows on a cluster, many columns"
    if problem.X.n_columns <= min(MAX_COLUMNS, problem.X.n_rows) and problem.is_made_of_hinges:
        return newton, "rows in blocks, few columns"
    if problem.free_intercept or problem.X.is_centred:
        return ocas, "rows in blocks, and the intercept is not penalised or columns are centred"
    return sbm, "rows in blocks, many columns"


def _sbm_is_faster(problem, settings):
    """Return whether sbm is faster than newton for a single problem with rows on disk, whatever the disk is.

    Several problems share the passes of newton, and do not come here.
    """
    is_elsewhere = problem.X.place is not HERE
    if is_elsewhere or problem.free_intercept or problem.X.is_centred or settings.tol < _MIN_TOL_OF_SBM:
        return False
    squared = problem.is_squared
    most_steps = _MAX_STEPS_OF_SBM_SQUARED if squared else _MAX_STEPS_OF_SBM
    return _price(problem.X, squared) > _MAX_PRICE_OF_NEWTON and coordinate_steps(problem) <= most_steps


def _chosen_with_checkpoints(problem):
    """Return a solver that writes checkpoints of a problem that is not small, and the reason."""
    why = "it writes checkpoints"
    if NEWTON.refuses(problem) is None and not takes_active_set(problem) and suits_newton_at_any_cost(problem.X):
        return newton, why
    return ocas if problem.free_intercept else sbm, why


def auto_together(problems, settings, starts):
    """Minimise problems with the same X for which newton is used first; return their Solutions. `starts` are None."""
    solver, why = chosen(problems[0], settings[0])
    if solver is newton:
        solutions = newton_together(problems, settings, starts)
    else:
        firsts = newton_together(problems, [_with_step_limit(one) for one in settings], starts)
        solutions = [_continued_by_sweeps(*one) for one in zip(problems, settings, firsts, strict=True)]
    return [solution if solution.why else changed(solution, why=why) for solution in solutions]


def suits_newton_at_any_cost(X):
    """Return whether newton suits problems with this X whatever their costs are, as on a path of costs."""
    return _price(X) <= _MAX_PRICE_AT_ANY_COST or X.n_columns <= min(X.n_rows, _MAX_COLUMNS_AT_ANY_COST)


def _price_of(problem):
    """Return the expected time of newton divided by that of a sweep of dcd; infinite if it is not possible."""
    return _price(problem.X, squared=problem.is_squared, has_entropy=problem.entropy > 0.0)


def _price(X, squared=False, has_entropy=False):
    """Return `_price_of` problems with this X."""
    if not has_matrix(X):
        return _PRICE_OF_CONJUGATE_GRADIENTS if has_entropy else np.inf
    n_steps = _FEW_NEWTON_STEPS if squared or has_entropy or starts_from_sample(X) else _NEWTON_STEPS
    band = 1.0 if has_entropy else (_BAND_FRACTION_SQUARED if squared else _BAND_FRACTION)
    return n_steps * _step_time(X, band * X.n_rows) / (_NS_PER_SWEPT_VALUE * max(1, X.n_stored))


def _step_time(X, rows):
    """Return the expected time of a Newton step in nanoseconds; so many rows contribute to the matrix."""
    return (
        _NS_PER_NEWTON_STEP
        + _NS_PER_PASSED_VALUE * X.n_stored
        + rows * row_cost(X)
        + _NS_PER_FLOP * X.n_columns**3 / 3.0
    )


# --- One solver after another -----------------------------------------------------------------------------------------


def _newton_then_sweeps(problem, settings, start=None):
    """Take Newton steps, and continue with sweeps if they converge slowly."""
    return _continued_by_sweeps(problem, settings, newton(problem, _with_step_limit(settings)))


def _with_step_limit(settings):
    """Return settings with the number of Newton steps after which sweeps are tried."""
    limits = [_NEWTON_STEPS_BEFORE_SWITCH, settings.max_iter]
    return changed(settings, max_iter=min(limit for limit in limits if limit is not None))


def _continued_by_sweeps(problem, settings, first):
    """Return newton's solution, continued by sweeps if it has stalled or reached the limit of `_with_step_limit`."""
    if first.status not in (Status.MAX_ITER, Status.STALLED) or first.n_iter == settings.max_iter:
        return first
    second = _sweeps_then_newton(problem, rest_of(settings, first), first.beta, after_newton=True)
    return joined(first, second, "steps turned out to be slow")


def _sweeps_then_newton(problem, settings, start=None, after_newton=False):
    """Sweep, and continue with newton when that is expected to be faster.

    If newton was tried before (`after_newton`), or there are too many columns for it, its active-set method continues.
    """
    price, is_dense = _price_of(problem), takes_problem(problem)
    if not is_dense and np.isinf(price):
        return _sweeps(problem, settings, start)
    forecast = _SwitchForecast(_TIME_FRACTION_AFTER_SWEEPS * price, settings, by_last=problem.entropy > 0.0)
    first = _sweeps(problem, changed(settings, callbacks=(forecast,)), start)
    if not forecast.has_switched:
        return first
    rest = rest_of(settings, first)
    if is_dense and (after_newton or np.isinf(price)):
        return joined(first, active_set_newton(problem, rest, first.w, first.beta), "sweeps turned out to be slow")
    return joined(first, newton(problem, rest, first.w), "sweeps turned out to be slow")


class _SwitchForecast:
    """A callback that stops sweeps when newton is expected to be faster; it calls the callbacks of the caller first.

    The gap is taken to decrease geometrically with the passes, so that reaching the tolerance takes
    log(tol) / log(gap) times as many passes as were made so far.

    Parameters
    ----------
    max_sweeps : float
        Number of sweeps that take as long as newton.
    settings : Settings
    by_last : bool
        Whether the rate of the decrease is at most that between the last two measurements, as for smooth losses, of
        which it decreases steadily: fast at first, then slowly.

    Attributes
    ----------
    has_switched : bool
        Whether this callback has stopped the sweeps.
    """

    def __init__(self, max_sweeps, settings, by_last=False):
        self._callbacks, self._tol, self._max_sweeps = settings.callbacks, settings.tol, max_sweeps
        self._gap, self._passes, self._by_last, self.has_switched = np.inf, 0.0, by_last, False
        self._max_iterations = np.inf if settings.max_iter is None else settings.max_iter // 2

    def __call__(self, progress):
        stop_requests = [callback(progress) for callback in self._callbacks]  # every one of them is called
        if any(stop_requests):
            return True
        if progress.gap == self._gap:
            return False
        last_gap, last_passes = self._gap, self._passes
        self._gap, self._passes = progress.gap, progress.passes  # a new measurement
        if progress.passes < _PASSES_BEFORE_FORECAST:
            return False
        if self._gap > self._tol and progress.iteration > self._max_iterations:
            self.has_switched = True
        elif self._tol < self._gap < 1.0:
            logarithm = np.log(self._gap / max(self._tol, _MIN_FORECAST_TOL))
            rate = -np.log(self._gap) / progress.passes
            if self._by_last and last_gap < 1.0:
                rate = min(rate, max(np.log(last_gap / self._gap), 0.0) / (progress.passes - last_passes))
            self.has_switched = logarithm > self._max_sweeps * rate
        else:
            self.has_switched = self._gap > self._tol and progress.passes > self._max_sweeps
        return self.has_switched


# --- Sweeps alone -----------------------------------------------------------------------------------------------------


def _sweeps(problem, settings, start=None):
    """Minimise a DualQP by `dcd`, `avsf` or `climb`."""
    if problem.entropy:
        return dcd(problem, settings, start)
    state = Coordinates(problem, start, settings.n_jobs)
    wide = problem.X.is_wide
    if height(problem, state.norms) < _MIN_HEIGHT_TO_CLIMB:
        method = ShrinkingSweeps(state, settings)
    elif start is not None or settings.stopping == "kkt":
        method = AdaptiveSweeps(state, settings) if wide else ShrinkingSweeps(state, settings)
    else:
        method = ClimbingSweeps(state, settings) if wide else ChoosingSweeps(state, settings)
    return descend(method, settings)


class ChoosingSweeps:
    """Sweeps of `climb`, replaced by those of `dcd` if the burden shows that continuation in C saves nothing."""

    def __init__(self, coordinates, settings):
        self.coordinates, self._settings = coordinates, settings
        self._min_burden = _MIN_BURDEN_TIMES_HEIGHT_TO_CLIMB / height(coordinates.problem, coordinates.norms)
        self._chosen, self._is_undecided = ClimbingSweeps(coordinates, settings), True

    @property
    def name(self):
        """Name of the solver whose sweeps are made."""
        return self._chosen.name

    def sweep(self, max_visits, max_sweeps):
        """Sweep, and choose between `climb` and `dcd` if this is undecided."""
        report = self._chosen.sweep(max_visits, max_sweeps)
        if self._is_undecided:
            self._choose(report.loss / max(2.0 * self.coordinates.half_norm(), np.finfo(float).tiny))
        return report

    def reset_selection(self):
        """Include all rows in the next sweep again."""
        self._chosen.reset_selection()

    def advance(self, half_norm, loss):
        """Choose by the burden of the first stage, and start the next stage; return whether there is one."""
        if self._is_undecided and self._chosen.n_stages_left and loss < MIN_BURDEN * 2.0 * half_norm:
            self._choose_dcd()
            return True
        self._is_undecided = False
        return self._chosen.advance(half_norm, loss)

    def _choose(self, burden):
        """Choose dcd if the burden is small after the first sweep, or if the full costs are reached."""
        if burden < self._min_burden or self._chosen.n_stages_left == 0:
            self._choose_dcd()
        self._min_burden = 0.0

    def _choose_dcd(self):
        """Continue with sweeps of `dcd` at the full costs."""
        self.coordinates.set_costs(1.0)
        self._chosen, self._is_undecided = ShrinkingSweeps(self.coordinates, self._settings), False


def _is_better_together(problem, settings, start):
    """Return whether newton is used first, which shares its passes over the rows among several problems."""
    if start is not None or takes_active_set(problem):
        return False
    return chosen(problem, settings)[0] in (newton, _newton_then_sweeps)


def _refuses(problem):
    """Return why a DualQP is refused, or None: a free intercept with losses that are not hinges is for newton alone."""
    reason = NEWTON.refuses(problem) if problem.free_intercept and not problem.is_made_of_hinges else None
    return reason and f"has only {NEWTON.name!r} for such losses with penalize_intercept=False, which {reason}"


AUTO = SolverSpec(
    name="auto",
    solve=auto,
    takes=frozenset({DualQP, FixedSumQP}),
    starts_from=Start.DUAL,
    stopping=("gap", "kkt"),
    counts="iterations",
    refuses=_refuses,
    together=auto_together,
    is_better_together=_is_better_together,
    chooses=True,
)
