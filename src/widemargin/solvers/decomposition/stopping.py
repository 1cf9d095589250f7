"""When a kernel problem is solved, and when no further progress is possible.

    stopping="kkt"   the largest violation of an optimality condition is at most tol, in units of the decision function
                     (LIBSVM's rule, with a unit below 1 if the problem has one), and the relative duality gap is at
                     most 10 tol, and at most 0.1, unless the settings ask for no certificate
    stopping="gap"   the relative duality gap is at most tol

With a very large C, losses of rows whose margins are below 1 by rounding errors alone dominate the primal objective. If
the problem allows it (C-SVC), the model is then the decision function times `stretch`, 1 + 2 violation: all margins are
at least 1, and the relative gap is about 4 violation.

The violation is known after every iteration, but the gap costs a pass over the dual variables. It is therefore measured
only if the violation is within a goal. If the gap is too large, the goal is reduced to a tenth of the violation.
"""

import time

from widemargin.problems.certificates import relative_gap

_GAP_PER_TOL, _LARGEST_GAP = 10.0, 0.1  # relative gap required by stopping="kkt"
_GOAL_FACTOR = 0.1  # new goal / violation, if the gap is too large
_INNER_GOAL, _INNER_GOAL_WITHOUT_GAP = 0.5, 0.9  # violation at which steps stop / goal; with less, the gap is smaller
_MARGIN_ROUNDING = 1e-14
_ZERO_ROUNDINGS, _ZERO_ROUNDINGS_WITHOUT_LINEAR = 1.0, 32.0  # F within so many roundings of a sum counts as zero


class StoppingRule:
    """The stopping rule of a KernelSettings.

    Attributes
    ----------
    goal : float
        The violation at which to ask whether the problem is solved.
    stretch : float
        The factor of the decision function.
    scale : float
        If the decision function is zero, the objective to which the gap is relative; else 0.
    """

    def __init__(self, settings):
        self._tol, self._by_gap = settings.tol, settings.stopping == "gap"
        self._gap = settings.tol if self._by_gap else min(_GAP_PER_TOL * settings.tol, _LARGEST_GAP)
        self._asks_for_gap = self._by_gap or settings.certify
        self.goal, self.stretch = settings.tol * (_GAP_PER_TOL if self._by_gap else 1.0), 1.0
        self.scale = 0.0
        self._first_goal = self.goal

    STATE = ("_reduction",)

    @property
    def inner_goal(self):
        """The violation at which steps over all dual variables stop."""
        return (_INNER_GOAL if self._asks_for_gap else _INNER_GOAL_WITHOUT_GAP) * self.goal

    @property
    def _reduction(self):
        """The goal relative to that of the settings, whose `tol` may be another when a run goes on."""
        return self.goal / self._first_goal

    @_reduction.setter
    def _reduction(self, reduction):
        self.goal = reduction * self._first_goal

    def is_solved(self, state, violation):
        """Return whether an ActiveSet, with all dual variables active, is solved; if not, reduce the goal."""
        if violation > self.goal:
            return False
        if self._is_zero(state, violation):
            self.scale = state.objective_scale()
            return True
        if self._is_within_violation(state, violation) and self._is_within_gap(state, violation):
            return True
        self.goal = _GOAL_FACTOR * violation
        return False

    def _is_zero(self, state, violation):
        """Return whether the decision function is zero, so that objective and gap consist of rounding errors.

        Without a linear term, the function that is zero has the objective zero, and larger values count as zero. This
        does not apply to ν-SVC: there a function that is zero means that there is no margin.
        """
        rounding = state.gradient_rounding()
        if state.problem.divides_by_margin or violation > _ZERO_ROUNDINGS_WITHOUT_LINEAR * rounding:
            return False
        size = max(violation, state.largest_sum())
        if size > _ZERO_ROUNDINGS_WITHOUT_LINEAR * rounding:
            return False
        return size <= rounding * (_ZERO_ROUNDINGS if state.linear.any() else _ZERO_ROUNDINGS_WITHOUT_LINEAR)

    def _is_within_violation(self, state, violation):
        """Return whether the violation is at most tol, in units of the decision function, or only the gap counts."""
        return self._by_gap or violation <= self._tol * min(1.0, state.problem.violation_unit(state.offsets()))

    def _is_within_gap(self, state, violation):
        """Return whether the relative gap is small enough, with a `stretch` of 1 or another, which is set."""
        if not self._asks_for_gap:
            return True
        factor = 1.0 + 2.0 * violation + _MARGIN_ROUNDING
        for stretch in (1.0, factor):
            can_be = stretch == 1.0 or self._can_stretch(state, factor)
            if can_be and relative_gap(*state.measure(stretch)) <= self._gap:
                self.stretch = stretch
                return True
        return False

    @staticmethod
    def _can_stretch(state, factor):
        """Return whether the problem allows a stretch, and the dual variables times the factor are within bounds."""
        stretched = factor * state.beta
        return state.problem.allows_scaling and (state.lower <= stretched).all() and (stretched <= state.upper).all()


class WithinViolation:
    """The rule for a part of a larger problem, whose objectives say nothing: the violation is within a goal."""

    def __init__(self, goal):
        self.goal, self.inner_goal = goal, _INNER_GOAL * goal

    def is_solved(self, state, violation):
        """Return whether the violation of an ActiveSet is within the goal."""
        return violation <= self.goal


class Deadline:
    """The end of the time that a solver may take, or of the patience of the user, for steps that take long."""

    def __init__(self, settings):
        self._settings, self._begun = settings, time.perf_counter()

    def is_over(self):
        """Return whether `max_seconds` have passed, or the solver is interrupted."""
        seconds = self._settings.max_seconds
        is_late = seconds is not None and time.perf_counter() - self._begun >= seconds
        return is_late or self._settings.interrupt.is_set()


class StallDetector:
    """Detects that iterations no longer make progress because of rounding errors.

    The first time, f has to be recomputed exactly, and shrinking ends, so that a final stall is one of the whole
    problem. The second time, the solver ends.

    Attributes
    ----------
    has_stalled_once : bool
    """

    _FUTILE_ITERATIONS = 3  # in a row, without a decrease or with a violation within rounding
    _SLOW_ITERATIONS = 200  # over all dual variables, without a relevant decrease of violation or objective
    _SLOW_EXACT_ITERATIONS = 3  # the same for iterations that solve for all dual variables exactly
    _VIOLATION_RATIO = 0.5  # a violation below this fraction of the smallest so far is a relevant decrease
    _DECREASE_PER_OBJECTIVE = 1e-7  # a larger relative decrease of the objective is relevant

    def __init__(self):
        self._n_futile, self._n_slow, self._smallest_violation = 0, 0.0, float("inf")
        self.has_stalled_once = False

    STATE = ("_n_futile", "_n_slow", "_smallest_violation", "has_stalled_once")

    def record(self, decrease, violation, rounding, objective, *, fraction=1.0, exact=False):
        """Record an iteration.

        Parameters
        ----------
        decrease : float
            Decrease of the objective.
        violation, rounding : float
            The violation, and the size of its rounding errors.
        objective : float
            The objective.
        fraction : float
            Size of the working set / number of dual variables.
        exact : bool
            Whether the iteration solved for all dual variables as accurately as double precision allows. Then only a
            smaller violation counts as progress.
        """
        futile = decrease <= 0.0 or violation <= rounding
        self._n_futile = self._n_futile + 1 if futile else 0
        decreased = decrease > self._DECREASE_PER_OBJECTIVE * abs(objective) and not exact
        if violation <= self._VIOLATION_RATIO * self._smallest_violation or decreased:
            self._n_slow, self._smallest_violation = 0.0, min(violation, self._smallest_violation)
        else:
            self._n_slow += self._SLOW_ITERATIONS / self._SLOW_EXACT_ITERATIONS if exact else fraction

    @property
    def _is_stalled(self):
        return self._n_futile >= self._FUTILE_ITERATIONS or self._n_slow >= self._SLOW_ITERATIONS

    def stalls_first_time(self):
        """Return whether there is a stall for the first time; the counts begin again after it."""
        if self.has_stalled_once or not self._is_stalled:
            return False
        self._n_futile, self._n_slow, self.has_stalled_once = 0, 0.0, True
        return True

    @property
    def is_final(self):
        """Whether there is a stall for the second time."""
        return self.has_stalled_once and self._is_stalled
