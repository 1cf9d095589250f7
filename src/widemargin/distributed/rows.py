"""Vectors with a number for each row, on all partitions: what solvers ask of them in one pass, or in few.

`NewtonRows` stands for the `RowState`, and `CuttingRows` for the `PlaneRows`, of each partition. Most of their methods
are those of the objects themselves, whose results are added. Here are the others: searches, which need sums over all
rows at each step, and what concerns one row of all.
"""

import json
import math

import numpy as np

from widemargin.distributed.group import Everywhere, as_refs
from widemargin.distributed.partition import ROWS, Ref
from widemargin.problems.line_search import (
    SampledKinks,
    bracketed_step,
    stride_of_sample,
    zero_by_kinks,
    zero_by_newton,
)
from widemargin.problems.smoothed_risk import SLOPE_REDUCTION, line_search_by_bisection, mean_distance, zero_of_sum
from widemargin.solvers.cutting_planes.plane_rows import PlaneRows
from widemargin.solvers.newton.row_state import RowState, set_directions

_MAX_PASSES = 30  # of a line search
_STEPS_PER_PASS = 7
_FACTORS = 2.0 ** np.arange(1, _STEPS_PER_PASS + 1)  # by which a step length is multiplied


class KeptDual:
    """The dual variables that the rows have kept; they stay where they are."""

    def __init__(self, rows):
        self.rows, self.ref = rows, Ref(rows.ref.name, "best_b")


class RecordedRows(Everywhere):
    """Objects whose state a checkpoint keeps as the record of the calls that led to it.

    The calls are few, and their arguments are numbers and vectors over columns. A run that goes on from a checkpoint
    makes them once more, on all partitions at the same time, and has the same objects, to the last bit.
    """

    STATE = ("record_words", "record_numbers")

    @property
    def record_words(self):
        """The names of the methods, and the kinds of their arguments, as JSON."""
        return json.dumps(self._recorded()[0])

    @record_words.setter
    def record_words(self, words):
        self._words = json.loads(words)

    @property
    def record_numbers(self):
        """The numbers of all vectors among the arguments, in one array."""
        return np.concatenate([np.empty(0), *(part.ravel() for part in self._recorded()[1])])

    @record_numbers.setter
    def record_numbers(self, numbers):
        self.group.recreate(self)
        start, factors = 0, {}
        for name, kinds in self._words:
            arguments = []
            for kind in kinds:
                if isinstance(kind, dict) and "factor" in kind:
                    factor = kind["factor"] / self.problem.factor
                    if factor not in factors:
                        factors[factor] = self.problem.scaled(factor)
                    arguments.append(factors[factor])
                elif isinstance(kind, dict):
                    stop = start + int(np.prod(kind["shape"]))
                    arguments.append(numbers[start:stop].reshape(kind["shape"]))
                    start = stop
                else:
                    arguments.append(kind)
            self.repeat(name, arguments)

    def repeat(self, name, arguments):
        """Call a method of the objects once more, without its result."""
        self.group._defer(getattr(self.kind, name), as_refs((self, *arguments)), None)

    def _recorded(self):
        """Return the words and the vectors of the record."""
        words, vectors = [], []
        for function, arguments in self.group.record_of(self.ref):
            name, arguments = self.own_call(function, arguments)
            kinds = []
            for argument in arguments:
                if isinstance(argument, np.ndarray):
                    kinds.append({"shape": argument.shape})
                    vectors.append(argument)
                elif isinstance(argument, Ref):
                    kinds.append({"factor": self.group.factors[argument.name]})
                else:
                    kinds.append(argument.item() if isinstance(argument, np.generic) else argument)
            words.append([name, kinds])
        return words, vectors

    def own_call(self, function, arguments):
        """Return the name of the method that a command calls, and its arguments."""
        return function.__name__, arguments[1:]


class NewtonRows(RecordedRows):
    """The RowState of each partition."""

    without_result = frozenset(
        {"set_scores", "evaluate_restored", "shift_scores", "set_direction", "shift_direction", "advance",
         "change_costs", "keep_dual"}
    )  # fmt: skip
    without_change = frozenset(
        {
            "intercept_derivatives",
            "newton_system",
            "intercept_system",
            "curvature_product",
            "weighted_direction",
            "derivatives",
            "derivatives_with_shift",
        }
    )

    def evaluate(self, h):
        """As `RowState.evaluate`; a free intercept is searched by sums over all rows."""
        if not self.problem.free_intercept:
            found, self._band = self.group._ask(_evaluated, (self.ref, h), "sum", True)
            return found
        shift = self._best_intercept(h)
        self.shift_scores(shift)
        found = self.group._ask(RowState.evaluate_unbalanced, (self.ref, h), "each", True)
        loss, imbalance = math.fsum(one[0] for one in found), math.fsum(one[1] for one in found)
        farthest = int(np.argmax([one[2] for one in found]))
        arguments = (ROWS, self.ref, farthest, imbalance - self.problem.dual_sum, h)
        sums, self._band = self.group._ask(_balanced, arguments, "sum", True)
        return loss, sums, shift

    def _best_intercept(self, h):
        return self._zero_of_sum(lambda shift: self.intercept_derivatives(shift, h), h)

    def _zero_of_sum(self, derivatives, h):
        """Return the shift of all scores at which the dual variables have the sum that is asked for."""
        return zero_of_sum(derivatives, h, self.problem.total_weight, self.problem.dual_sum)

    def centre_direction(self, intercept_curvature):
        """As `RowState.centre_direction`."""
        shift = -float(self.weighted_direction()) / intercept_curvature
        self.shift_direction(shift)
        return shift

    def predict_and_search(self, h, *terms):
        """As `RowState.predict_and_search`; the derivatives of the whole step come with the prediction."""
        sums, found = self.group._ask(_predicted, (self.ref, h), "sum", True)
        return sums, self._searched(h, float(found[0]), *terms)

    def line_search(self, h, *terms):
        """As `RowState.line_search`."""
        return self._searched(h, float(self.derivatives(1.0, h)[0]), *terms)

    def _searched(self, h, last, curvature, slope, initial_slope):
        """Return a k near the minimiser of φ, as `line_search` of `smoothed_risk`; `last` is the slope of R at k = 1.

        Each pass has the slopes of several k, so that few are needed.
        """
        ks, slopes = np.array([0.0, 1.0]), np.array([initial_slope, last + slope + curvature])
        for _ in range(_MAX_PASSES):
            best = int(np.argmin(np.abs(slopes[1:]))) + 1
            n_left = int(np.count_nonzero(slopes < 0.0))  # φ is convex: the slopes ascend
            if abs(slopes[best]) <= SLOPE_REDUCTION * abs(initial_slope) or not n_left > 0:
                break
            low, high = ks[n_left - 1], ks[n_left] if n_left < len(ks) else np.inf
            if high - low <= SLOPE_REDUCTION**2 * low:
                break
            new = low * _FACTORS if np.isinf(high) else np.linspace(low, high, _STEPS_PER_PASS + 2)[1:-1]
            found = self.group._ask(_slopes, (self.ref, new, h), "sum") + slope + curvature * new
            order = np.argsort(np.concatenate([ks, new]), kind="stable")
            ks, slopes = np.concatenate([ks, new])[order], np.concatenate([slopes, found])[order]
        return float(ks[best])

    def line_search_with_intercept(self, h, *terms):
        """As `RowState.line_search_with_intercept`."""

        def slope_at(k):
            found = {}

            def derivatives(shift):
                found[shift] = self.derivatives_with_shift(k, shift, h)
                return found[shift][1:]

            return found[self._zero_of_sum(derivatives, h)][0]

        return line_search_by_bisection(slope_at, *terms)

    def recentre(self, h):
        """As `RowState.recentre`; the result came with the last evaluation, so that no pass is needed."""
        self.group._defer(RowState.recentre_sums, (self.ref, h), None)
        return mean_distance(*self._band)

    def kept_dual(self):
        """Return what stands for the dual variables that were kept."""
        return KeptDual(self)

    def own_call(self, function, arguments):
        """As in RecordedRows; directions of several problems, and the balancing of one partition, are calls of all."""
        if function is set_directions:
            states, directions, half_widths, _ = arguments
            mine = states.index(self.ref)
            return "set_direction", (directions[mine], half_widths[mine])
        if function is _balanced:
            return "_balanced", arguments[2:]
        if function is _predicted:
            return "predict", ()
        return ("evaluate", arguments[1:]) if function is _evaluated else super().own_call(function, arguments)

    def repeat(self, name, arguments):
        """As in RecordedRows."""
        if name == "_balanced":
            self.group._defer(_balanced, (ROWS, self.ref, *arguments), None)
        else:
            super().repeat(name, arguments)


def _evaluated(state, h):
    """Return the results of `evaluate`, and of `band_sums`, which a change of the half width needs."""
    return state.evaluate(h), state.band_sums(h)


def _slopes(state, ks, h):
    """Return the first derivatives of the smoothed losses at several step lengths."""
    return np.array([state.derivatives(k, h)[0] for k in ks])


def _predicted(state, h):
    """Return the results of `predict`, and the derivatives at the end of the step."""
    slope = state.derivatives(1.0, h)
    return state.predict(), slope


def _balanced(rows, state, farthest, imbalance, h):
    """Make the dual variables of all partitions sum to zero, by one of the partition where there is most room."""
    return state.balance(imbalance if rows.number == farthest else 0.0), state.band_sums(h)


class CuttingRows(RecordedRows):
    """The PlaneRows of each partition, for risks that are sums over rows or over whole queries."""

    without_result = frozenset({"forget_planes", "accept", "direct", "take_point"})
    without_change = frozenset({"scale", "derivatives", "point"})

    def aim(self, w, scores=None):
        """As `PlaneRows.aim`; scores that are not finite are noticed by the risk."""
        self.group._defer(PlaneRows.aim, (self.ref, w), None)
        return True

    def intercept(self, w):
        """Return 0: problems with a free intercept bring their scores to the client."""
        return 0.0

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
        found = self.group._ask(PlaneRows.sampled_kinks, (self.ref, stride), "each")
        places, jumps = (np.concatenate(parts) for parts in list(zip(*found, strict=True))[1:3])
        return SampledKinks(math.fsum(one.slope_before for one in found), places, jumps, stride)

    def _kinks_in(self, low, high):
        found = self.group._ask(PlaneRows.kinks_in, (self.ref, low, high), "each")
        slopes, places, jumps = zip(*found, strict=True)
        return math.fsum(slopes), np.concatenate(places), np.concatenate(jumps)
