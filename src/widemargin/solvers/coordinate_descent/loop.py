"""The loop of all dual coordinate methods: sweep, measure the duality gap now and then, stop when it is small enough.

Measuring the gap takes a pass over all rows. It is measured when the estimate made during the sweep promises that the
tolerance is reached, and otherwise only after so many visits of rows that measuring is a small part of the work. The
clock plays no part in this, so that the same seed gives the same model. Each measurement also corrects the estimate.

A problem so small that several sweeps fit into one iteration is continued beyond the tolerance until no optimality
condition is violated. That takes milliseconds, and makes the model independent of the order of rows and of the seed.
"""

import numpy as np

from widemargin.solvers.contract import Solution, Status, Watch

_PASSES_BETWEEN = 5.0  # passes after which the gap is measured anyway; a measurement costs 0.1 to 0.3 of a pass
_HOPE = 0.5  # the most that is taken to be left of a sweep's estimate at its end, until a measurement knows better
_HIDDEN = 3.0  # a gap this many times the sweep's estimate sits in rows that were left out of the sweep
_TURNS_BETWEEN_RECOMPUTING = 64  # turns after which w = X'beta is computed anew, free of accumulated rounding
_STAGE_TOL = 1e-3  # relative gap to which a stage before the last is solved; 1e-2 makes the next ones much longer
_TURN_WORK = 1 << 16  # stored values visited in one turn: short sweeps are many before Python hears of them
_SWEEPS_OF_A_FEW_ROWS = 8  # most sweeps in one turn over what shrinking left; it may have left the wrong ones
_FINISHING_TURNS = 16  # turns, some milliseconds, in which a small problem is brought to full precision
_EXACT = 1e-13  # violation, relative to the largest target, that counts as none


def descend(method, settings):
    """Run a dual coordinate method until it is within the tolerance or a limit is reached.

    Parameters
    ----------
    method : object with `name`, `coordinates`, `sweep`, `widen` and `advance`
        `name` is the solver's, for the callbacks and the solution.
        `sweep(budget, most) -> Sweep` does one sweep, and more, at most `most`, while their visits of rows stay
        within the budget. `widen()` gives all rows equal terms again: it undoes shrinking or preferences.
        `advance(half_norm, loss)` is called when the problem as it is stated at present is solved; it may state the
        next one, nearer to the real one, and return True, or return False if this is the real one.
    settings : Settings
    """
    state = method.coordinates
    loop = _Loop(method, settings, Watch(settings, "sweeps"))
    with loop.watch as watch:
        while not loop.done():
            loop.turn()
    if state.factor != 1.0:  # stopped on the way: the real problem is the one to be measured
        state.set_costs(1.0)
        loop.stale = True
    if loop.stale:
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
    """The turns of one descent and what they remember.

    Sets: `iteration` (sweeps done), `passes`, `primal` and `dual` (last measured), `stale` (whether w moved since).
    """

    def __init__(self, method, settings, watch):
        self.method, self.settings, self.watch = method, settings, watch
        self.iteration, self.passes, self.stale = 0, 0.0, True
        self._turns, self._finishing = 0, 0
        self._since, self._trust, self._last_excess = 0.0, None, np.inf
        X = method.coordinates.X
        self._budget = 0 if settings.stopping == "kkt" else _TURN_WORK * X.n_rows // (X.n_stored + X.n_rows)
        self._small = self._budget >= 2 * X.n_rows
        self.measure()

    def measure(self):
        """Measure the gap at the present point, write it into the history, and return the measured parts.

        While costs are scaled down, the losses are those of the real problem again in the history, and the dual value
        is a lower bound of the real one, since intervals only grow and springs only weaken.
        """
        state = self.method.coordinates
        half_norm, loss, value = state.measure()
        self.primal, self.dual = half_norm + loss / state.factor, value - half_norm
        self.watch.record(self.iteration, self.passes, self.primal, self.dual)
        self._since, self.stale = 0.0, False
        return half_norm, loss, value

    def done(self):
        """Whether the run is over; before the first sweep, whether the start was within the tolerance already."""
        start_suffices = self.iteration == 0 and self.settings.stopping == "gap" and self.watch.gap <= self.settings.tol
        if start_suffices and self.method.coordinates.factor == 1.0:
            self.watch.status = Status.CONVERGED
        return self.watch.status is not None

    def turn(self):
        """Sweep, and decide: the watch's status is set when the run is over."""
        self._turns += 1
        if self._turns % _TURNS_BETWEEN_RECOMPUTING == 0:
            self.method.coordinates.recompute()
        most = max(_SWEEPS_OF_A_FEW_ROWS, self._budget // self.method.coordinates.X.n_rows)
        if self.settings.max_iter is not None:
            most = min(most, self.settings.max_iter - self.iteration)
        sweep = self.method.sweep(self._budget, most)
        visited = sweep.visits / self.method.coordinates.X.n_rows
        self.iteration += sweep.n_sweeps
        self.passes += visited
        self._since += visited
        self.stale = self.stale or sweep.moved
        self._decide(sweep)

    def _decide(self, sweep):
        """Set the watch's status if the run is over."""
        finished = self._finished(sweep)
        over = self.watch.should_stop(self.method.name, self.iteration, self.passes)
        if finished or (over and self._finishing):
            self._settle()
            self.watch.status = Status.CONVERGED
        elif not over and not sweep.moved and sweep.full:
            self.watch.status = Status.STALLED

    def _finished(self, sweep):
        if self.settings.stopping == "kkt":
            return self._within_violation(sweep)
        if self._finishing == 0 and not self._within_gap(sweep):
            return False
        return self._exact(sweep) if self._small else True

    def _exact(self, sweep):
        """Within the tolerance, a small problem goes on for some turns; True once it is exact or has had them."""
        state = self.method.coordinates
        if self._finishing == 0:
            self._within = state.w.copy(), state.beta.copy()
        self._finishing += 1
        exact = sweep.violation <= _EXACT * state.scale or not sweep.moved
        if exact and not sweep.full:
            self.method.widen()
            self._budget, exact = 0, False
        return exact or self._finishing > _FINISHING_TURNS

    def _settle(self):
        """After finishing turns, measure; the primal value can rise: then go back to where it was good enough."""
        if self._finishing == 0:
            return
        self.measure()
        if self.watch.gap > self.settings.tol:
            state = self.method.coordinates
            state.w[:], state.beta[:] = self._within
            self.measure()

    def _within_violation(self, sweep):
        """The paper's rule: all violations small in one sweep over all rows on equal terms."""
        if sweep.violation < self.settings.tol:
            if sweep.full:
                return True
            self.method.widen()
        return False

    def _within_gap(self, sweep):
        """Measure if the estimate promises success or a measurement is due; True if the gap is small enough."""
        promise = self._promise(sweep.excess)
        tol = self.settings.tol if self.method.coordinates.factor == 1.0 else max(self.settings.tol, _STAGE_TOL)
        goal = tol * (sweep.loss + self.method.coordinates.half_norm())
        idle = not sweep.moved
        if promise > goal and self._since < _PASSES_BETWEEN and not idle:
            return False
        half_norm, loss, value = self.measure()
        open_gap = 2.0 * half_norm + loss - value
        if open_gap <= tol * (half_norm + loss):
            return not self._advanced(half_norm, loss)
        if promise <= goal or idle or open_gap > _HIDDEN * sweep.excess:
            self.method.widen()
        if sweep.excess > 0.0:
            # What this sweep's estimate was worth; one that promises too much is believed less next time.
            self._trust = min(max(open_gap / sweep.excess, 0.1), 1e6)
        return False

    def _advanced(self, half_norm, loss):
        """Go on to the next stage if there is one."""
        self._trust, self._last_excess = None, np.inf
        return self.method.advance(half_norm, loss)

    def _promise(self, excess):
        """Return about how much of the gap is left now, after a sweep that met this much of it on its way.

        Measurements tell what the estimate is worth; before the first, the fall from sweep to sweep does.
        """
        last, self._last_excess = self._last_excess, excess
        if self._trust is not None:
            return self._trust * excess
        return min(_HOPE, excess / last) * excess if 0.0 < last < np.inf else _HOPE * excess
