"""Vectors with a number for each row, on all partitions: what solvers ask of them in one pass, or in few.

`NewtonRows` stands for the `RowState`, and `CuttingRows` for the `PlaneRows`, of each partition. Most of their methods
are those of the objects themselves, whose results are added. Here are the others: searches, which need sums over all
rows at each step, and what concerns one row of all.
"""

import math

import numpy as np

from widemargin.distributed.group import Everywhere
from widemargin.distributed.partition import Ref
from widemargin.problems.line_search import (
    SampledKinks,
    bracketed_step,
    stride_of_sample,
    zero_by_kinks,
    zero_by_newton,
)
from widemargin.problems.smoothed_risk import line_search, line_search_by_bisection, mean_distance, zero_of_sum
from widemargin.solvers.cutting_planes.plane_rows import PlaneRows
from widemargin.solvers.newton.row_state import RowState


class KeptDual:
    """The dual variables that the rows have kept; they stay where they are."""

    def __init__(self, rows):
        self.rows, self.ref = rows, Ref(rows.ref.name, "best_b")


class NewtonRows(Everywhere):
    """The RowState of each partition."""

    without_result = frozenset(
        {"set_scores", "evaluate_restored", "shift_scores", "set_direction", "shift_direction", "advance",
         "change_costs", "keep_dual"}
    )  # fmt: skip

    def evaluate(self, h):
        """As `RowState.evaluate`; a free intercept is searched by sums over all rows."""
        if not self.problem.free_intercept:
            return self.group._ask(RowState.evaluate, (self.ref, h), "sum", True)
        self.shift_scores(self._best_intercept(h))
        found = self.group._ask(RowState.evaluate_unbalanced, (self.ref, h), "each", True)
        loss, imbalance = math.fsum(one[0] for one in found), math.fsum(one[1] for one in found)
        farthest = int(np.argmax([one[2] for one in found]))
        arguments = (Ref("rows"), self.ref, farthest, imbalance)
        return loss, self.group._ask(_balance, arguments, "sum", True)

    def _best_intercept(self, h):
        return zero_of_sum(lambda shift: self.intercept_derivatives(shift, h), h, self.problem.total_weight)

    def centre_direction(self, intercept_curvature):
        """As `RowState.centre_direction`."""
        self.shift_direction(-float(self.weighted_direction()) / intercept_curvature)

    def line_search(self, h, *terms):
        """As `RowState.line_search`."""
        return line_search(lambda k: self.derivatives(k, h), h, *terms)

    def line_search_with_intercept(self, h, *terms):
        """As `RowState.line_search_with_intercept`."""

        def slope_at(k):
            found = {}

            def derivatives(shift):
                found[shift] = self.derivatives_with_shift(k, shift, h)
                return found[shift][1:]

            return found[zero_of_sum(derivatives, h, self.problem.total_weight)][0]

        return line_search_by_bisection(slope_at, *terms)

    def recentre(self, h):
        """As `RowState.recentre`."""
        return mean_distance(*self.recentre_sums(h))

    def kept_dual(self):
        """Return what stands for the dual variables that were kept."""
        return KeptDual(self)


def _balance(rows, state, farthest, imbalance):
    """Make the dual variables of all partitions sum to zero, by one of the partition where there is most room."""
    return state.balance(imbalance if rows.number == farthest else 0.0)


class CuttingRows(Everywhere):
    """The PlaneRows of each partition, for risks that are sums over rows or over whole queries."""

    without_result = frozenset({"forget_planes", "accept", "direct", "take_point"})

    def aim(self, w, scores=None):
        """As `PlaneRows.aim`; scores that are not finite are noticed by the risk."""
        self.group._defer(PlaneRows.aim, (self.ref, w), None)
        return True

    def step(self, curvature, slope):
        """As `PlaneRows.step`: exact for losses of rows, by few evaluations for losses of pairs."""
        self.direct()
        if not self.problem.is_sum_over_rows:
            k, cut = bracketed_step(self.evaluate_on_line, curvature, slope)
            risk = float(self.evaluate_on_line(k)[0])
            self.take_point(k, cut)
            return k, risk, cut is None
        if self.problem.is_squared:
            k = zero_by_newton(self.derivatives, curvature, slope, 0.0)
        else:
            k, _ = zero_by_kinks(self._kinks_in, self._sample(), curvature, slope, 0.0)
        return k, float(self.take_step(k)), True

    def _sample(self):
        """Return the SampledKinks of all partitions."""
        stride = stride_of_sample(self.problem.X.n_rows)
        if stride == 1:
            return None
        found = self.group._ask(PlaneRows.sampled_kinks, (self.ref, stride), "each", True)
        places, jumps = (np.concatenate(parts) for parts in list(zip(*found, strict=True))[1:3])
        return SampledKinks(math.fsum(one.slope_before for one in found), places, jumps, stride)

    def _kinks_in(self, low, high):
        found = self.group._ask(PlaneRows.kinks_in, (self.ref, low, high), "each", True)
        slopes, places, jumps = zip(*found, strict=True)
        return math.fsum(slopes), np.concatenate(places), np.concatenate(jumps)
