"""The loop of all dual coordinate methods: sweep, measure the duality gap at intervals, stop when it is small enough.

Measuring the gap takes a pass over all rows. It is measured when the estimate made during the last sweep suggests that
the tolerance is reached, and otherwise after so many visits of rows that measuring is a small part of the work. The
decision does not depend on the clock, so that the same seed gives the same model. Each measurement also shows how good
the estimate was, and corrects the next ones.

Sweeps are done in batches: short sweeps, of few values, are repeated in compiled code before Python decides again. If
several sweeps over all rows fit into a batch, the problem is small, and is solved beyond the tolerance, until no
optimality condition is violated. This takes milliseconds, and makes the model independent of the order of rows and of
the seed.
"""

import numpy as np

from widemargin.solvers.contract import Solution, Status, Watch

_PASSES_BETWEEN_MEASUREMENTS = 5.0  # at most; a measurement costs 0.1 to 0.3 of a pass
_FRACTION_OF_ESTIMATE_LEFT = 0.5  # at most: the assumed gap after a sweep / its estimate, before the first measurement
_MAX_GAP_PER_ESTIMATE = 3.0  # if the gap is more times the estimate, it is due to rows left out of the sweep
_BATCHES_BETWEEN_RECOMPUTATIONS = 64  # of w = X'beta, to remove accumulated rounding errors
_STAGE_TOL = 1e-3  # relative gap of a stage before the last; with 1e-2 the following stages take much longer
_VALUES_PER_BATCH = 1 << 16  # stored values visited in one batch, about
_MAX_SHRUNK_SWEEPS_PER_BATCH = 8  # over the rows that shrinking left; it may have removed the wrong ones
_POLISHING_BATCHES = 16  # at most, some milliseconds, in which a small problem is solved beyond the tolerance
_ZERO_VIOLATION = 1e-13  # relative to the largest |target|; smaller violations count as none


def descend(method, settings):
    """Run a dual coordinate method until it is within the tolerance or a limit is reached; return a Solution.

    Parameters
    ----------
    method : object with `name`, `coordinates`, `sweep`, `reset_selection` and `advance`
        `name` is that of the solver, for callbacks and the solution; `coordinates` is the state.
        `sweep(max_visits, max_sweeps) -> SweepReport` does one sweep, and more, at most `max_sweeps`, as long as their
        visits of rows are within `max_visits` and dual variables change.
        `reset_selection()` makes all rows take part with the same frequency again: it undoes shrinking, or resets
        preferences.
        `advance(half_norm, loss)` is called when the present stage is solved. It changes to the next stage and returns
        True, or returns False if this was the last.
    settings : Settings
    """
    state = method.coordinates
    loop = _Loop(method, settings, Watch(settings, "sweeps"))
    with loop.watch as watch:
        while not loop.done():
            loop.run_batch()
    if state.factor != 1.0:  # stopped in an earlier stage: the solution is measured with the costs of the problem
        state.set_costs(1.0)
        loop.moved_since_measurement = True
    if loop.moved_since_measurement:
        loop.measure()
    return Solution(
        w=state.w,
        beta=state.beta.copy(),
        primal=loop.primal,
        dual=loop.dual,
        n_iter=loop.iteration,
        status=watch.status,
        solver=method.name,
        history=watch.history(),
        counts="sweeps",
    )


class _Loop:
    """The batches of sweeps of one run, and the decisions between them.

    Attributes
    ----------
    iteration : int
        Number of sweeps done.
    passes : float
        Visits of rows divided by the number of rows.
    primal, dual : float
        Objectives at the last measurement.
    moved_since_measurement : bool
        Whether w has changed since then.
    """

    def __init__(self, method, settings, watch):
        self.method, self.settings, self.watch = method, settings, watch
        self.iteration, self.passes, self.moved_since_measurement = 0, 0.0, True
        self._n_batches, self._n_polishing = 0, 0
        self._passes_since_measurement, self._gap_per_estimate, self._last_estimate = 0.0, None, np.inf
        X = method.coordinates.X
        by_kkt = settings.stopping == "kkt"
        self._max_visits = 0 if by_kkt else _VALUES_PER_BATCH * X.n_rows // (X.n_stored + X.n_rows)
        self._is_small = self._max_visits >= 2 * X.n_rows
        self.measure()

    def measure(self):
        """Measure the gap, write it into the history, and return ½|w|², losses and dual terms.

        The history is that of the problem itself even if the costs are multiplied by a factor below 1: the losses are
        divided by it, and the dual value is a lower bound, since the dual variables are within the larger bounds, and
        the curvatures are smaller.
        """
        state = self.method.coordinates
        half_norm, loss, dual_terms = state.measure()
        self.primal, self.dual = half_norm + loss / state.factor, dual_terms - half_norm
        self.watch.record(self.iteration, self.passes, self.primal, self.dual)
        self._passes_since_measurement, self.moved_since_measurement = 0.0, False
        return half_norm, loss, dual_terms

    def done(self):
        """Return whether the run is over; before the first sweep, whether the start is within the tolerance."""
        start_suffices = self.iteration == 0 and self.settings.stopping == "gap" and self.watch.gap <= self.settings.tol
        if start_suffices and self.method.coordinates.factor == 1.0:
            self.watch.status = Status.CONVERGED
        return self.watch.status is not None

    def run_batch(self):
        """Do a batch of sweeps; set the status of the watch if the run is over."""
        self._n_batches += 1
        if self._n_batches % _BATCHES_BETWEEN_RECOMPUTATIONS == 0:
            self.method.coordinates.recompute()
        n_rows = self.method.coordinates.X.n_rows
        max_sweeps = max(_MAX_SHRUNK_SWEEPS_PER_BATCH, self._max_visits // n_rows)
        if self.settings.max_iter is not None:
            max_sweeps = min(max_sweeps, self.settings.max_iter - self.iteration)
        report = self.method.sweep(self._max_visits, max_sweeps)
        passes = report.visits / n_rows
        self.iteration += report.n_sweeps
        self.passes += passes
        self._passes_since_measurement += passes
        self.moved_since_measurement = self.moved_since_measurement or report.moved
        self._decide(report)

    def _decide(self, report):
        """Set the status of the watch if the run is over."""
        finished = self._is_finished(report)
        over = self.watch.should_stop(self.method.name, self.iteration, self.passes)
        if finished or (over and self._n_polishing):
            self._measure_polished()
            self.watch.status = Status.CONVERGED
        elif not over and not report.moved and report.full:
            self.watch.status = Status.STALLED

    def _is_finished(self, report):
        """Return whether the stopping rule is satisfied, and a small problem is solved beyond it."""
        if self.settings.stopping == "kkt":
            return self._is_within_violation(report)
        if self._n_polishing == 0 and not self._is_within_gap(report):
            return False
        return self._is_polished(report) if self._is_small else True

    def _is_polished(self, report):
        """Return whether no optimality condition is violated any more, or all polishing batches are used up."""
        state = self.method.coordinates
        if self._n_polishing == 0:
            self._within_tol = state.w.copy(), state.beta.copy()
        self._n_polishing += 1
        exact = report.violation <= _ZERO_VIOLATION * state.scale or not report.moved
        if exact and not report.full:
            self.method.reset_selection()
            self._max_visits, exact = 0, False
        return exact or self._n_polishing > _POLISHING_BATCHES

    def _measure_polished(self):
        """Measure after polishing; if the primal objective has increased beyond the tolerance, undo the polishing."""
        if self._n_polishing == 0:
            return
        self.measure()
        if self.watch.gap > self.settings.tol:
            state = self.method.coordinates
            state.w[:], state.beta[:] = self._within_tol
            self.measure()

    def _is_within_violation(self, report):
        """Return whether all violations are below the tolerance in a sweep over all rows (LIBLINEAR's rule)."""
        if report.violation < self.settings.tol:
            if report.full:
                return True
            self.method.reset_selection()
        return False

    def _is_within_gap(self, report):
        """Return whether the gap is within the tolerance; it is measured only if it may be, or if that is due."""
        expected = min(report.gap_left, self._expected_gap(report.gap_estimate))
        is_last_stage = self.method.coordinates.factor == 1.0
        tol = self.settings.tol if is_last_stage else max(self.settings.tol, _STAGE_TOL)
        goal = tol * (report.loss + self.method.coordinates.half_norm())
        idle = not report.moved
        if expected > goal and self._passes_since_measurement < _PASSES_BETWEEN_MEASUREMENTS and not idle:
            return False
        half_norm, loss, dual_terms = self.measure()
        gap = 2.0 * half_norm + loss - dual_terms
        if gap <= tol * (half_norm + loss):
            return not self._advance(half_norm, loss)
        if expected <= goal or idle or gap > _MAX_GAP_PER_ESTIMATE * report.gap_estimate:
            self.method.reset_selection()
        if report.gap_estimate > 0.0:
            self._gap_per_estimate = min(max(gap / report.gap_estimate, 0.1), 1e6)
        return False

    def _advance(self, half_norm, loss):
        """Advance to the next stage; return whether there is one."""
        self._gap_per_estimate, self._last_estimate = None, np.inf
        return self.method.advance(half_norm, loss)

    def _expected_gap(self, estimate):
        """Return the gap to be expected after a sweep with this estimate, which sums the gap terms before each step.

        The ratio of the two is taken from the last measurement; before the first, from the decrease of the estimate.
        """
        last, self._last_estimate = self._last_estimate, estimate
        if self._gap_per_estimate is not None:
            return self._gap_per_estimate * estimate
        if 0.0 < last < np.inf:
            return min(_FRACTION_OF_ESTIMATE_LEFT, estimate / last) * estimate
        return _FRACTION_OF_ESTIMATE_LEFT * estimate
