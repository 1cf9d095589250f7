"""Sums over rows of losses with an entropy, such as the log loss, with the derivatives that Newton's method needs.

For the residual r = target − s and e = exp(−|r| / entropy) (see `formulations`),

    loss                bound r + entropy width log(1 + e)    width = upper − lower; bound = upper if r > 0, else lower
    dual variable       |bound − b| = width e / (1 + e)       −b is the derivative of the loss by the score
    second derivative   q = (width / entropy) e / (1 + e)²

e is at most 1, so that nothing overflows. The losses are smooth as they are: there is no band, and the half width h of
`SmoothedRisk`, whose methods these are, is not used. At the dual variables of the scores Fenchel's inequality is an
equality, target b + entropy H(b) = loss + b s, which saves the logarithms of the entropies.
"""

from typing import NamedTuple

import numpy as np

from widemargin._runtime.compile import SUMS, compiled
from widemargin._runtime.threads import run
from widemargin.kernels.exponential import fast_exp, fast_log
from widemargin.problems.losses import unit_log1p
from widemargin.problems.row_risk import BLOCK_ROWS, dot, ranges_of
from widemargin.problems.smoothed_risk import RiskSums, SmoothedRisk

_SMALLEST_FRACTION = 1e-300  # of an interval, whose logarithm is taken for smaller ones


class SmoothRows(NamedTuple):
    """The numbers of the losses: arrays of the rows, and the entropy."""

    target: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    entropy: float


def risk_of(problem, n_jobs=1):
    """Return the SmoothedRisk of a DualQP, or its EntropyRisk if its losses have an entropy."""
    return (EntropyRisk if problem.entropy else SmoothedRisk)(problem, n_jobs)


class EntropyRisk(SmoothedRisk):
    """The sum of the losses of a DualQP with an entropy; X is not used.

    The methods are those of SmoothedRisk. `linear` of their results is Σ target b + entropy H(b), and `quadratic` is 0.
    """

    STATE = ()  # there are no centres of bands

    def __init__(self, problem, n_jobs=1):
        self.squared, self._dual_sum = False, 0.0
        self._n_jobs, self._ranges, self._ones = n_jobs, ranges_of(len(problem.target)), None
        self.change_costs(problem, 1.0)

    def change_costs(self, problem, factor):
        """Replace the problem by one that differs only in its costs."""
        self._problem = problem
        arrays = [np.ascontiguousarray(array) for array in (problem.target, problem.lower, problem.upper)]
        self._rows = SmoothRows(*arrays, float(problem.entropy))

    def _sum(self, function, *arguments):
        """Return the sums of the results of a function over all ranges of rows."""
        tasks = [(self._rows, *ends, *arguments) for ends in self._ranges]
        sums = run(function, tasks, self._n_jobs)
        return np.sum(sums, axis=0) if len(sums) > 1 else np.array(sums[0])

    def evaluate(self, s, h, b, q):
        """Set the dual variables b and the second derivatives q at scores s; return RiskSums."""
        loss, linear = self._sum(_evaluate, s, b, q)
        return RiskSums(loss, linear, 0.0)

    def predict_dual(self, b, q, t, out, clipped):
        """Set `out` to b − q t clipped to its bounds, the dual variables that a step t of the scores would give.

        Sets `clipped` to what this has added. Returns `linear` of these, and how many were clipped.
        """
        return self._sum(_predict, b, q, t, out, clipped)

    def changing_rows(self, s, t, h, start, stop):
        """Return all rows: every dual variable changes with the scores."""
        return np.arange(stop - start)

    def support_rows(self, s, h, start, stop):
        """Return all rows: no dual variable is zero."""
        return np.arange(stop - start)

    def dual_sums(self, b):
        """Return (linear, quadratic) of any dual variables b."""
        return np.array([self._sum(_dual_sum, b), 0.0])

    def recentre(self, s, h):
        """Return what `mean_distance` takes for an empty band."""
        return np.zeros(2)

    def band_sums(self, s, h):
        """Return what `recentre` does."""
        return np.zeros(2)

    def derivatives(self, s, t, k, h=1.0):
        """Return the first and second derivative of R(s + k t) by k, R the sum of the losses."""
        return self._sum(_derivatives, s, t, k)

    @property
    def total_weight(self):
        """The sum of the widths of all intervals."""
        return total_width(self._problem)


def total_width(problem):
    """Return Σ upper_i − lower_i of a DualQP, the sum of the costs of all rows."""
    return float((problem.upper - problem.lower).sum())


@compiled
def _evaluate(rows, start, stop, s, b, q):
    """Set b and q for start <= i < stop; return the sum of the losses, and Σ loss + b s.

    Sums are in loops of their own, as in `row_risk`; q holds e between the first loop and the last.
    """
    loss, linear = 0.0, 0.0
    for first in range(start, stop, BLOCK_ROWS):
        here = slice(first, min(first + BLOCK_ROWS, stop))
        target, lower, upper = rows.target[here], rows.lower[here], rows.upper[here]
        _set_exponentials(target, rows.entropy, s[here], q[here])
        part = _sum_losses(target, lower, upper, rows.entropy, s[here], q[here])
        _set_slopes(target, lower, upper, rows.entropy, s[here], b[here], q[here])
        loss += part
        linear += part + dot(b[here], s[here])
    return loss, linear


@compiled
def _set_exponentials(target, entropy, s, e):
    """Set e = exp(−|target − s| / entropy)."""
    for i in range(s.size):
        e[i] = fast_exp(-abs(target[i] - s[i]) / entropy)


@compiled(fastmath=SUMS)
def _sum_losses(target, lower, upper, entropy, s, e):
    """Return the sum of the losses."""
    total = 0.0
    for i in range(s.size):
        residual = target[i] - s[i]
        bound = upper[i] if residual > 0.0 else lower[i]
        total += bound * residual + entropy * (upper[i] - lower[i]) * unit_log1p(e[i])
    return total


@compiled
def _set_slopes(target, lower, upper, entropy, s, b, q):
    """Set b, and q, which holds e."""
    for i in range(s.size):
        width, fraction = upper[i] - lower[i], q[i] / (1.0 + q[i])
        b[i] = upper[i] - width * fraction if target[i] - s[i] > 0.0 else lower[i] + width * fraction
        q[i] = width / entropy * fraction * (1.0 - fraction)


@compiled(fastmath=SUMS)
def _derivatives(rows, start, stop, s, t, k):
    """Return the first and second derivative of the losses at s + k t by k."""
    first, second, entropy = 0.0, 0.0, rows.entropy
    target, lower, upper = rows.target[start:stop], rows.lower[start:stop], rows.upper[start:stop]
    s, t = s[start:stop], t[start:stop]
    for i in range(s.size):
        residual, width = target[i] - s[i] - k * t[i], upper[i] - lower[i]
        e = fast_exp(-abs(residual) / entropy)
        fraction = e / (1.0 + e)
        b = upper[i] - width * fraction if residual > 0.0 else lower[i] + width * fraction
        first -= b * t[i]
        second += width / entropy * fraction * (1.0 - fraction) * t[i] * t[i]
    return first, second


@compiled
def _predict(rows, start, stop, b, q, t, out, clipped):
    """Set out = b − q t clipped to its bounds; return Σ target out + entropy H(out), and how many were clipped."""
    total, n_clipped = 0.0, 0
    for first in range(start, stop, BLOCK_ROWS):
        here = slice(first, min(first + BLOCK_ROWS, stop))
        target, lower, upper = rows.target[here], rows.lower[here], rows.upper[here]
        n_clipped += _clip_step(lower, upper, b[here], q[here], t[here], out[here], clipped[here])
        total += sum_dual_terms(target, lower, upper, rows.entropy, out[here])[0]
    return total, n_clipped


@compiled
def _clip_step(lower, upper, b, q, t, out, clipped):
    """Set out = b − q t clipped to its bounds, and `clipped` to what this has added; return how many were clipped."""
    n_clipped = 0
    for i in range(b.size):
        new = b[i] - q[i] * t[i]
        within = lower[i] if new < lower[i] else (upper[i] if new > upper[i] else new)
        n_clipped += within != new
        clipped[i] = within - new
        out[i] = within
    return n_clipped


@compiled
def _dual_sum(rows, start, stop, b):
    """Return Σ target b + entropy H(b) over start <= i < stop."""
    target, lower, upper = rows.target[start:stop], rows.lower[start:stop], rows.upper[start:stop]
    return sum_dual_terms(target, lower, upper, rows.entropy, b[start:stop])[0]


@compiled(fastmath=SUMS)
def sum_dual_terms(target, lower, upper, entropy, b):
    """Return Σ target b + entropy H(b), and the sum of the absolute values of both terms.

    The formula is that of `interval_entropy`, which would not be vectorised if it were called here.
    """
    total, size = 0.0, 0.0
    for i in range(b.size):
        width, below, above = upper[i] - lower[i], b[i] - lower[i], upper[i] - b[i]
        part = below if below < above else above
        part = part if part > 0.0 else 0.0
        fraction = part / width
        fraction = fraction if fraction > 0.0 else 0.0  # also of an empty interval
        logarithm = fast_log(fraction if fraction > _SMALLEST_FRACTION else _SMALLEST_FRACTION)
        term = -entropy * (part * logarithm + (width - part) * unit_log1p(-fraction))
        total += target[i] * b[i] + term
        size += abs(target[i] * b[i]) + term
    return total, size
