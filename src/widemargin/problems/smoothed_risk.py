"""Sums over rows of smoothed losses, with the derivatives that Newton's method needs.

With the hinges of `row_risk`, z = offset − side s, a half width h of the smoothing, and for each hinge a centre m from
0 to 1:

    loss                weight max(0, z)                               weight max(0, z)², which needs no smoothing
    dual variable       b = side weight u,  u = clip(m + z/(2h), 0, 1) b = side weight 2 max(0, z)
    second derivative   q = weight/(2h) where 0 < u < 1, the band      q = 2 weight where z > 0

−b is the derivative by the score of the smoothed loss, the maximum over u of b z − h (u − m)² weight. The centres are ½
at first. Taking the dual variables found as the next centres is the method of multipliers: h need not become as small
as the accuracy that is asked for, and the band holds fewer rows that are not support vectors.

The dual variables are feasible for every h, so that each point has the lower bound D(b) = Σ |b| offset − ½|X'b|² (less
Σ b²/(4 weight) for squared losses).
"""

from typing import NamedTuple

import numpy as np

from widemargin._runtime.compile import SUMS, compiled
from widemargin._runtime.threads import run
from widemargin.problems.row_risk import BLOCK, hinges_of, ranges_of

_STEPS = 100
_EXACT = 1e-2  # slope at the end of a search, against that at its beginning
_BALANCED = 1e-13  # sum of the multipliers, against that of their sizes


class RiskSums(NamedTuple):
    """Sums over rows at given scores: the losses, not smoothed; Σ |b| offset; Σ b²/(4 weight), 0 unless squared."""

    loss: float
    linear: float
    quadratic: float


class SmoothedRisk:
    """The sum of the smoothed losses of a DualQP.

    Parameters
    ----------
    problem : DualQP
        Of which X is not looked at. Its losses are all linear beyond a point, or all quadratic.
    n_jobs : int or None

    Attributes
    ----------
    squared : bool
        Whether there are no corners, so that h has no meaning.
    """

    def __init__(self, problem, n_jobs=None):
        self.squared = bool((problem.curvature > 0.0).any())
        self._n_jobs, self._ranges, self._ones = n_jobs, ranges_of(len(problem.target)), None
        self._problem, self._hinges = problem, hinges_of(problem, self.squared)
        self._centre = np.full(self._hinges.signed.shape, 0.5)

    def restate(self, problem, factor):
        """Take another problem that differs in its costs; centres below 1 are multiplied by a factor."""
        self._problem, self._hinges = problem, hinges_of(problem, self.squared)
        self._centre[self._centre < 1.0] *= factor

    def _sum(self, function, *arguments):
        tasks = [(self._hinges, self._centre, self.squared, *ends, *arguments) for ends in self._ranges]
        return np.sum(run(function, tasks, self._n_jobs), axis=0)

    def evaluate(self, s, h, b, q):
        """Set the dual variables b and the second derivatives q at scores s; return RiskSums."""
        return RiskSums(*self._sum(_evaluate, s, h, b, q))

    def expect(self, b, q, t, out):
        """Set `out` to the dual variables predicted after a step of scores t, b − q t clipped to their bounds.

        Returns (linear, quadratic) as RiskSums has them.
        """
        p = self._problem
        rows = (p.target, p.epsilon, p.curvature, p.lower, p.upper)
        tasks = [(*rows, b, q, t, *ends, out) for ends in self._ranges]
        return np.sum(run(_expect, tasks, self._n_jobs), axis=0)

    def changing_rows(self, s, t, h, start, stop):
        """Return the rows from start to stop, counted from start, whose dual variable may change on the way to s + t.

        They are those in the band at s, and those whose dual variable differs between the ends of the way.
        """
        rows = np.empty(stop - start, np.int64)
        return rows[: _changing_rows(self._hinges, self._centre, self.squared, start, stop, s, t, h, rows)]

    def support_rows(self, s, h, start, stop):
        """Return the rows from start to stop, counted from start, whose dual variable is not zero at scores s."""
        rows = np.empty(stop - start, np.int64)
        return rows[: _support_rows(self._hinges, self._centre, self.squared, start, stop, s, h, rows)]

    def worth(self, b):
        """Return (linear, quadratic), as RiskSums has them, of any dual variables."""
        p = self._problem
        tasks = [[numbers[slice(*ends)] for numbers in (p.target, p.epsilon, p.curvature, b)] for ends in self._ranges]
        return np.sum(run(_worth, tasks, self._n_jobs), axis=0)

    def room(self, b):
        """Return how far each dual variable is from its bounds."""
        return np.minimum(b - self._problem.lower, self._problem.upper - b)

    def recentre(self, s, h):
        """Take the multipliers at these scores as centres; return how far those within the band are from their bounds.

        That is the mean part of the way between their bounds, ½ at most; ½ too if there are none.
        """
        total, count = self._sum(_recentre, s, h)
        return total / count if count else 0.5

    def lowest(self, s, t, h, curvature, slope, slope_before):
        """Return k where ½ curvature k² + slope k + rounded losses at s + k t are lowest, closely enough.

        `slope_before` is the slope at k = 0.
        """
        return self._zero(s, t, h, curvature, slope, _EXACT * abs(slope_before), 1.0)

    def balance(self, s, h):
        """Return the shift of all scores at which multipliers sum to zero."""
        if self._ones is None:
            self._ones = np.ones(len(s))
        size = float(np.abs(self._hinges.signed).sum())
        return self._zero(s, self._ones, h, 0.0, 0.0, _BALANCED * size, 0.0)

    def lowest_balanced(self, s, t, h, curvature, slope, slope_before):
        """Return k as `lowest` does, where at each k scores are shifted to where multipliers sum to zero."""
        low, high, k, small = 0.0, np.inf, 1.0, _EXACT * abs(slope_before)
        for _ in range(_STEPS):
            there = s + k * t
            there += self.balance(there, h)
            rise = self._sum(_slope_and_bend, there, t, 0.0, h)[0] + slope + curvature * k
            if abs(rise) <= small or high - low <= _EXACT * low:
                break
            low, high = (k, high) if rise < 0.0 else (low, k)
            k = 2.0 * low if np.isinf(high) else 0.5 * (low + high)
        return k

    def _zero(self, s, t, h, curvature, slope, small, k):
        """Return where the slope along a line is as good as zero, by Newton's method within a bracket, from k."""
        low, high, stride = -np.inf, np.inf, h
        for _ in range(_STEPS):
            rise, bend = self._sum(_slope_and_bend, s, t, k, h)
            rise, bend = rise + slope + curvature * k, bend + curvature
            if abs(rise) <= small:
                break
            low, high = (k, high) if rise < 0.0 else (low, k)
            bracketed = np.isfinite(low) and np.isfinite(high)
            if bend > 0.0 and low < k - rise / bend < high:
                k -= rise / bend
            elif bracketed:
                k = 0.5 * (low + high)
            else:  # nothing bends here: look further away
                k, stride = k - np.sign(rise) * stride, 2.0 * stride
            if bracketed and high - low <= 1e-15 * max(abs(low), abs(high)):
                break
        return k


@compiled
def _evaluate(hinges, centre, squared, start, stop, s, h, b, q):
    """Set b and q for rows start <= i < stop; return the numbers of RiskSums."""
    loss, linear, quadratic = 0.0, 0.0, 0.0
    for first in range(start, stop, BLOCK):
        here = slice(first, min(first + BLOCK, stop))
        b[here], q[here] = 0.0, 0.0
        for line in range(hinges.signed.shape[0]):
            signed, offset, middle = hinges.signed[line][here], hinges.offset[line][here], centre[line][here]
            if squared:
                _add_squares(signed, offset, s[here], b[here], q[here])
                sums = _sum_squares(signed, offset, s[here])
                quadratic += sums[0]
            else:
                _add_rounded(signed, offset, middle, s[here], h, b[here], q[here])
                sums = _sum_rounded(signed, offset, middle, s[here], h)
            loss, linear = loss + sums[0], linear + sums[1]
    return loss, linear, quadratic


@compiled
def _add_rounded(signed, offset, middle, s, h, b, q):
    half = 0.5 / h
    for i in range(s.size):
        u = middle[i] + half * (offset[i] - np.copysign(1.0, signed[i]) * s[i])
        b[i] += signed[i] * (0.0 if u < 0.0 else (1.0 if u > 1.0 else u))
        q[i] += abs(signed[i]) * (half if (u > 0.0) & (u < 1.0) else 0.0)


@compiled(fastmath=SUMS)
def _sum_rounded(signed, offset, middle, s, h):
    """Return the sum of the losses, and that of |b| offset."""
    loss, linear, half = 0.0, 0.0, 0.5 / h
    for i in range(s.size):
        z = offset[i] - np.copysign(1.0, signed[i]) * s[i]
        u = middle[i] + half * z
        loss += abs(signed[i]) * (z if z > 0.0 else 0.0)
        linear += abs(signed[i]) * offset[i] * (0.0 if u < 0.0 else (1.0 if u > 1.0 else u))
    return loss, linear


@compiled
def _add_squares(signed, offset, s, b, q):
    for i in range(s.size):
        z = offset[i] - np.copysign(1.0, signed[i]) * s[i]
        b[i] += 2.0 * signed[i] * (z if z > 0.0 else 0.0)
        q[i] += 2.0 * abs(signed[i]) * (1.0 if z > 0.0 else 0.0)


@compiled(fastmath=SUMS)
def _sum_squares(signed, offset, s):
    """Return the sum of the losses, which is Σ b²/(4 weight) too, and that of |b| offset."""
    loss, linear = 0.0, 0.0
    for i in range(s.size):
        z = offset[i] - np.copysign(1.0, signed[i]) * s[i]
        z = z if z > 0.0 else 0.0
        loss += abs(signed[i]) * z * z
        linear += 2.0 * abs(signed[i]) * z * offset[i]
    return loss, linear


@compiled(fastmath=SUMS)
def _slope_and_bend(hinges, centre, squared, start, stop, s, t, k, h):
    """Return the first and second derivative of the rounded losses at s + k t by k."""
    rise, bend = 0.0, 0.0
    s, t, half = s[start:stop], t[start:stop], 0.5 / h
    for line in range(hinges.signed.shape[0]):
        signed, offset = hinges.signed[line][start:stop], hinges.offset[line][start:stop]
        middle = centre[line][start:stop]
        for i in range(s.size):
            z = offset[i] - np.copysign(1.0, signed[i]) * (s[i] + k * t[i])
            if squared:
                u, bent = (2.0 * z, 2.0) if z > 0.0 else (0.0, 0.0)
            else:
                u = middle[i] + half * z
                bent = half if (u > 0.0) & (u < 1.0) else 0.0
                u = 0.0 if u < 0.0 else (1.0 if u > 1.0 else u)
            rise -= signed[i] * u * t[i]
            bend += abs(signed[i]) * bent * t[i] * t[i]
    return rise, bend


@compiled
def _recentre(hinges, centre, squared, start, stop, s, h):
    half, s, total, count = 0.5 / h, s[start:stop], 0.0, 0
    for line in range(hinges.signed.shape[0]):
        signed, offset = hinges.signed[line][start:stop], hinges.offset[line][start:stop]
        middle = centre[line][start:stop]
        for i in range(s.size):
            u = middle[i] + half * (offset[i] - np.copysign(1.0, signed[i]) * s[i])
            u = 0.0 if u < 0.0 else (1.0 if u > 1.0 else u)
            middle[i] = u
            total += u if u < 0.5 else 1.0 - u
            count += (u > 0.0) & (u < 1.0) & (signed[i] != 0.0)
    return total, count


@compiled
def _expect(target, epsilon, curvature, lower, upper, b, q, t, start, stop, out):
    """Set out = b − q t within the bounds; return Σ target b − epsilon |b|, and Σ ½ curvature b²."""
    linear, quadratic = 0.0, 0.0
    for first in range(start, stop, BLOCK):
        here = slice(first, min(first + BLOCK, stop))
        _move(lower[here], upper[here], b[here], q[here], t[here], out[here])
        sums = _worth(target[here], epsilon[here], curvature[here], out[here])
        linear, quadratic = linear + sums[0], quadratic + sums[1]
    return linear, quadratic


@compiled
def _move(lower, upper, b, q, t, out):
    for i in range(out.size):
        moved = b[i] - q[i] * t[i]
        out[i] = lower[i] if moved < lower[i] else (upper[i] if moved > upper[i] else moved)


@compiled(fastmath=SUMS)
def _worth(target, epsilon, curvature, b):
    linear, quadratic = 0.0, 0.0
    for i in range(b.size):
        linear += target[i] * b[i] - epsilon[i] * abs(b[i])
        quadratic += 0.5 * curvature[i] * b[i] * b[i]
    return linear, quadratic


@compiled
def _changing_rows(hinges, centre, squared, start, stop, s, t, h, rows):
    """Set `rows` to what SmoothedRisk.changing_rows returns, at its beginning; return how many there are."""
    n, half = 0, 0.5 / h
    for i in range(start, stop):
        changes = False
        for line in range(hinges.signed.shape[0]):
            signed = hinges.signed[line, i]
            z = hinges.offset[line, i] - np.copysign(1.0, signed) * s[i]
            moved = hinges.offset[line, i] - np.copysign(1.0, signed) * (s[i] + t[i])
            if squared:
                changes |= (signed != 0.0) & ((z > 0.0) | (moved > 0.0))
            else:
                u, v = centre[line, i] + half * z, centre[line, i] + half * moved
                stays = ((u <= 0.0) & (v <= 0.0)) | ((u >= 1.0) & (v >= 1.0))
                changes |= (signed != 0.0) & (not stays)
        rows[np.uint64(n)] = i - start
        n += changes
    return n


@compiled
def _support_rows(hinges, centre, squared, start, stop, s, h, rows):
    """Set `rows` to what SmoothedRisk.support_rows returns, at its beginning; return how many there are."""
    n, half = 0, 0.5 / h
    for i in range(start, stop):
        counts = False
        for line in range(hinges.signed.shape[0]):
            z = hinges.offset[line, i] - np.copysign(1.0, hinges.signed[line, i]) * s[i]
            counts |= (hinges.signed[line, i] != 0.0) & ((z > 0.0) if squared else (centre[line, i] + half * z > 0.0))
        rows[np.uint64(n)] = i - start
        n += counts
    return n
