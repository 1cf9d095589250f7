"""When a kernel problem is solved, and when no further progress is possible.

    stopping="kkt"   the largest violation of an optimality condition is at most tol, in units of the decision function
                     (LIBSVM's rule, with a unit below 1 where the problem has one), and the relative duality gap is
                     at most 10 tol, and at most 0.1
    stopping="gap"   the relative duality gap is at most tol

With a very large C, margins that are short of 1 by rounding alone cost more than all the rest of the objective. Where
the problem allows it (C-SVC), the model is then the function times `stretch`, 1 + 2 violation: its margins are at least
1, and it has a gap of about 4 violation.

A violation is known at every iteration, the gap costs a pass over the dual variables. So the violation has a goal, the
gap is measured when that is reached, and if it is too large the goal is divided by ten.
"""

import numpy as np

from widemargin.problems.certificates import relative_gap

_GAP_PER_TOL, _LARGEST_GAP = 10.0, 0.1
_SMALLER = 0.1
_ROUNDING = 1e-14  # of a margin
_ROUNDINGS, _ROUNDINGS_OF_NOTHING = 1.0, 32.0  # of a sum of kernel values: what is below is zero


class StoppingRule:
    """The rule of a KernelSettings.

    `goal` is the violation at which to ask whether the problem is solved, `stretch` the factor of the function, `scale`
    what the gap is relative to if the function is zero, else 0.
    """

    def __init__(self, settings):
        self._tol, self._by_gap = settings.tol, settings.stopping == "gap"
        self._gap = settings.tol if self._by_gap else min(_GAP_PER_TOL * settings.tol, _LARGEST_GAP)
        self.goal, self.stretch = settings.tol * (_GAP_PER_TOL if self._by_gap else 1.0), 1.0
        self.scale = 0.0

    def solved(self, state, violation):
        """Return whether an ActiveSet, with all dual variables active, is solved; if not, the goal is a smaller one."""
        if violation > self.goal:
            return False
        if self._is_zero(state, violation):
            self.scale = state.scale()
            return True
        if self._is_small(state, violation) and self._is_proved(state, violation):
            return True
        self.goal = _SMALLER * violation
        return False

    def _is_zero(self, state, violation):
        """Return whether the function is zero everywhere, so that objective and gap are nothing but rounding.

        Without a linear term an objective of zero is that of no function at all, and needs no such exact zero. A ν-SVC
        whose function is zero has no margin, which is another matter.
        """
        rounding = (_ROUNDINGS if state.linear.any() else _ROUNDINGS_OF_NOTHING) * state.rounding()
        is_zero = violation <= rounding and np.abs(state.F - state.linear).max() <= rounding
        return is_zero and not state.problem.divides_by_margin

    def _is_small(self, state, violation):
        return self._by_gap or violation <= self._tol * min(1.0, state.problem.violation_unit(state.offsets()))

    def _is_proved(self, state, violation):
        """Return whether the gap is small enough, and set the `stretch` with which it is."""
        factor = 1.0 + 2.0 * violation + _ROUNDING
        for stretch in (1.0, factor) if self._stretches(state, factor) else (1.0,):
            if relative_gap(*state.measure(stretch)) <= self._gap:
                self.stretch = stretch
                return True
        return False

    @staticmethod
    def _stretches(state, factor):
        """Return whether the multipliers times a factor are a model as good as they are, and within their bounds."""
        stretched = factor * state.beta
        return state.problem.allows_scaling and (state.lower <= stretched).all() and (stretched <= state.upper).all()


class StallDetector:
    """Notices iterations at the level of rounding: several in a row call for exact sums, and again for an end.

    Sets `called`: from then on nothing may be set aside, so that the end is that of the whole problem.
    """

    _ROUNDING_TURNS, _EXACT_TURNS, _SLOW_TURNS = 3, 3, 200
    _HALVED, _SMALL_FALL = 0.5, 1e-7

    def __init__(self):
        self._in_a_row, self._slow, self._least, self.called = 0, 0.0, float("inf"), False

    def turn(self, fallen, violation, rounding, objective, share=1.0, exact=False):
        """Take notice of an iteration.

        Parameters
        ----------
        fallen : float
            By how much the objective fell.
        violation, rounding : float
            The violation, and how exact it can be.
        objective : float
            The objective's size.
        share : float
            What part of the dual variables it was about.
        exact : bool
            Whether it solved for all of them as well as double precision allows: the violation has to fall then.
        """
        futile = fallen <= 0.0 or violation <= rounding
        self._in_a_row = self._in_a_row + 1 if futile else 0
        fell = fallen > self._SMALL_FALL * abs(objective) and not exact
        if violation <= self._HALVED * self._least or fell:
            self._slow, self._least = 0.0, min(violation, self._least)
        else:
            self._slow += self._SLOW_TURNS / self._EXACT_TURNS if exact else share

    @property
    def _is_over(self):
        return self._in_a_row >= self._ROUNDING_TURNS or self._slow >= self._SLOW_TURNS

    @property
    def first_time(self):
        """Whether it is time to compute everything anew; true once."""
        if self.called or not self._is_over:
            return False
        self._in_a_row, self._slow, self.called = 0, 0.0, True
        return True

    @property
    def final(self):
        """Whether nothing is left to try."""
        return self.called and self._is_over
