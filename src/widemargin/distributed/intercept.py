"""The intercept that is not penalised, for fixed weights of a problem whose rows are on a cluster.

The losses at scores s + b, and dual_sum b, are searched over b as a line in direction 1, see `line_search`. Of
piecewise linear losses with an interval of minimisers, the midpoint is taken, as in `problems.intercept`.
"""

import math

import numpy as np

from widemargin.distributed.partition import THREADS
from widemargin.problems.entropy_risk import EntropyRisk
from widemargin.problems.line_search import SampledKinks, sampled_interval, stride_of_sample, zero_by_newton
from widemargin.problems.row_risk import RowRisk
from widemargin.problems.smoothed_risk import zero_of_sum

_ZERO_SLOPE = 1e-12  # slopes up to this fraction of the sum of all weights count as zero


class ShiftedRows:
    """Scores of the rows of a partition at given weights, and their losses as a function of a number added to all."""

    def __init__(self, problem, w, n_jobs):
        self._risk, self._scores = RowRisk(problem, n_jobs), problem.X.scores(w, n_jobs)
        self._ones = np.ones(problem.X.n_rows)

    def sampled_kinks(self, stride):
        """Return the SampledKinks of all numbers."""
        return self._risk.sampled_kinks(self._scores, self._ones, -np.inf, stride)

    def kinks_in(self, low, high):
        """Return `RowRisk.kinks_in`, as arrays of their own."""
        slope, *kinks = self._risk.kinks_in(self._scores, self._ones, low, high)
        return slope, *(part.copy() for part in kinks)

    def derivatives(self, shift):
        """Return `RowRisk.derivatives`."""
        return self._risk.derivatives(self._scores, self._ones, shift)


class SmoothShiftedRows:
    """As ShiftedRows, for losses with an entropy."""

    def __init__(self, problem, w, n_jobs):
        self._risk, self._scores = EntropyRisk(problem, n_jobs), problem.X.scores(w, n_jobs)

    def derivatives(self, shift):
        """Return the first and second derivative of the losses by the number added to all scores."""
        return self._risk.derivatives_by_shift(self._scores, shift, 1.0)


def best_intercept(problem, w):
    """Return the minimiser b of the losses at scores X w + b."""
    place = problem.X.place
    if problem.entropy:
        rows = place.create(SmoothShiftedRows, problem, w, THREADS)
        return float(zero_of_sum(rows.derivatives, 1.0, problem.total_weight))
    rows = place.create(ShiftedRows, problem, w, THREADS)
    if problem.is_squared:
        return float(zero_by_newton(rows.derivatives, 0.0, 0.0, -np.inf))
    low, high, stride = -np.inf, np.inf, stride_of_sample(problem.X.n_rows)
    if stride > 1:
        found = place.each(ShiftedRows.sampled_kinks, rows, stride)
        places, jumps = (np.concatenate([one[part] for one in found]) for part in (1, 2))
        slope = math.fsum(one.slope_before for one in found)
        low, high = sampled_interval(SampledKinks(slope, places, jumps, stride), 0.0, problem.dual_sum, -np.inf)
    tolerance = _ZERO_SLOPE * problem.total_weight
    for interval in ((low, high), (-np.inf, np.inf)):
        slope, places, jumps = _kinks(place, rows, *interval)
        ends = _zero_interval(slope + problem.dual_sum, places, jumps, tolerance)
        if None not in ends:
            return float(np.mean(ends))
    ends = [end for end in ends if end is not None]  # beyond the other one, the slope is zero everywhere
    return ends[0] if ends else 0.0


def _kinks(place, rows, low, high):
    """Return the slope just after `low`, and places and jumps of the kinks up to `high`, ascending."""
    slopes, places, jumps = zip(*place.each(ShiftedRows.kinks_in, rows, low, high), strict=True)
    places, jumps = np.concatenate(places), np.concatenate(jumps)
    order = np.argsort(places, kind="stable")
    return math.fsum(slopes), places[order], jumps[order]


def _zero_interval(slope, places, jumps, tolerance):
    """Return the ends of the interval on which the slope is zero up to a tolerance; None beyond all kinks."""
    after = slope + np.cumsum(jumps)
    if not len(after):
        return None, None
    left = None if slope >= -tolerance or after[-1] < -tolerance else float(places[np.argmax(after >= -tolerance)])
    right = None if slope > tolerance or after[-1] <= tolerance else float(places[np.argmax(after > tolerance)])
    return left, right
