"""Line searches over k for φ(k) = ½ curvature k² + slope k + R(s + k t), where R is a risk, a sum over rows.

Each search asks for what it needs of R by a function, and does not see rows: these may be in this process, or in
several parts whose sums are added.

    hinges           R is piecewise linear in k, and its slope jumps at kinks. `zero_by_kinks` finds the kink at which
                     the slope of φ changes its sign, in O(n) without sorting: the kinks of a sample of the rows give a
                     short interval that probably contains it, and quickselect finds it among the kinks inside
    squared hinges   the slope has no jumps, and `zero_by_newton` finds its zero
    other risks      `bracketed_step` takes the best of few points
"""

from typing import NamedTuple

import numpy as np

from widemargin._runtime.compile import SUMS, compiled

_SAMPLE_ROWS = 1 << 12  # for the first interval of a line search
_SAMPLE_DEVIATIONS = 3.0  # half width of that interval, in standard deviations of the sample
_MAX_NEWTON_STEPS = 60
_ZERO_SLOPE = 1e-13  # relative to the sum of the sizes of its terms
_MAX_EVALUATIONS = 2  # of a risk without exact line search, per step
_FLAT_SLOPE = 0.05  # relative to the change of the slope over the bracket: small enough to stop


def stride_of_sample(n_rows):
    """Return how many rows there are for each row of a sample for a line search; 1 if there are few rows."""
    return max(1, n_rows // _SAMPLE_ROWS)


class SampledKinks(NamedTuple):
    """Kinks of a part of the rows, beyond some k: the slope there, places and jumps, and rows for each row of it."""

    slope_before: float
    places: np.ndarray
    jumps: np.ndarray
    stride: int


def zero_by_kinks(kinks_in, sample, curvature, slope, k_min, likely=np.inf):
    """Return (k, fraction): the k >= k_min where the slope of φ changes its sign, for hinges that are not squared.

    `kinks_in(low, high)` returns what `RowRisk.kinks_in` does. `sample` are SampledKinks beyond k_min, or None if there
    are few rows; k is then looked for up to `likely` first. If k is a kink, `fraction` is the fraction of its jump that
    lies below zero.
    """
    low, high = (k_min, likely) if sample is None else sampled_interval(sample, curvature, slope, k_min)

    def search(*interval):
        slope_before, places, jumps = kinks_in(*interval)
        return _zero_crossing(places, jumps, *interval, curvature, slope + slope_before)

    k, fraction, side = search(low, high)
    # If the zero is outside, the interval beside is searched. Should rounding place it outside of that one too, it
    # is their common end, which `_zero_crossing` returns.
    if side < 0 and low > k_min:
        k, fraction, _ = search(k_min, low)
    elif side > 0:
        k, fraction, _ = search(high, np.inf)
    return k, fraction


def sampled_interval(sample, curvature, slope, k_min):
    """Return an interval that probably contains the zero, from a sample of the rows."""
    count, stride = len(sample.places), sample.stride
    if count == 0:
        return k_min, np.inf
    places, slope_before = sample.places.copy(), sample.slope_before + slope / stride
    k, _, _ = _zero_crossing(sample.places, sample.jumps, k_min, np.inf, curvature / stride, slope_before)
    n_before, error = np.count_nonzero(places < k), int(_SAMPLE_DEVIATIONS * np.sqrt(count)) + 1
    first, last = max(n_before - error, 0), min(n_before + error, count - 1)
    places.partition((first, last))
    low = places[first] if n_before >= error else k_min
    return low, places[last] if n_before + error < count else np.inf


def zero_by_newton(derivatives, curvature, slope, k_min):
    """Return the k >= k_min where the slope of φ is zero, for squared hinges.

    `derivatives(k)` returns what `RowRisk.derivatives` does.
    """
    low, high, k = k_min, np.inf, 0.0
    for _ in range(_MAX_NEWTON_STEPS):
        first, second, size = derivatives(k)
        first, second = first + slope + curvature * k, second + curvature
        if abs(first) <= _ZERO_SLOPE * (size + abs(slope) + abs(curvature * k)) or second <= 0.0:
            break
        if first > 0.0 and k <= k_min:
            break
        low, high = (k, high) if first < 0.0 else (low, k)
        k -= first / second
        if not low < k < high:
            k = 0.5 * (low + high) if np.isfinite(low) and np.isfinite(high) else (low if k <= low else high)
    return max(k, k_min)


def bracketed_step(evaluate, curvature, slope):
    """Return the best k >= 0 that was evaluated, and one beyond the minimiser, or None if no k was.

    `evaluate(k)` returns R(s + k t) and its derivative by k.
    """
    risk, risk_slope = evaluate(0.0)
    best, best_phi, cut = 0.0, risk, None
    low, low_slope, high, high_slope, k = 0.0, slope + risk_slope, np.inf, np.inf, 1.0
    n_evaluations = _MAX_EVALUATIONS if low_slope < 0.0 else 1
    for evaluation in range(n_evaluations):
        risk, risk_slope = evaluate(k)
        phi, phi_slope = risk + k * (slope + 0.5 * curvature * k), slope + curvature * k + risk_slope
        if phi < best_phi:
            best, best_phi = k, phi
        if phi_slope < 0.0:
            low, low_slope = k, phi_slope
        else:
            high, high_slope, cut = k, phi_slope, k
        if evaluation + 1 == n_evaluations or abs(phi_slope) <= _FLAT_SLOPE * abs(low_slope - phi_slope):
            break
        k = 2.0 * low if np.isinf(high) else low + (high - low) * low_slope / (low_slope - high_slope)
    return best, cut


@compiled
def _zero_crossing(places, jumps, low, high, curvature, slope):
    """Return (k, fraction, side): the k in [low, high] where slope + curvature k + Σ {jumps up to k} changes its sign.

    `fraction` is the fraction of the jump at k that is below zero. `side` is −1 if the change is before low, 1 if it is
    after high, else 0. The kinks may be in any order and are overwritten: as in quickselect, those on the wrong side of
    a pivot are discarded until none is left.
    """
    if np.isfinite(low) and slope + curvature * low >= 0.0:
        return low, 0.0, -1
    n, k, jump, last = places.size, np.inf, 0.0, -np.inf
    while n > 0:
        pivot = _median(places[0], places[n // 2], places[n - 1])
        below, at = _jumps_up_to(places, jumps, n, pivot)
        is_left = slope + below + at + curvature * pivot >= 0.0
        if is_left:
            k, jump = pivot, at
        else:
            slope, last = slope + below + at, pivot
        n = _keep(places, jumps, n, pivot, is_left)
    if k < np.inf:
        if curvature > 0.0 and slope + curvature * k >= 0.0:
            return -slope / curvature, 0.0, 0
        return k, -(slope + curvature * k) / jump if jump > 0.0 else 0.0, 0
    if curvature > 0.0 and -slope / curvature <= high:
        return -slope / curvature, 0.0, 0
    if not np.isfinite(high):
        return last if last > -np.inf else 0.0, 1.0, 0
    return high, 0.0, 1


@compiled
def _median(a, b, c):
    return max(min(a, b), min(max(a, b), c))


@compiled(fastmath=SUMS)
def _jumps_up_to(places, jumps, n, k):
    """Return the sum of the jumps below k, and of those at k."""
    below, at = 0.0, 0.0
    places, jumps = places[:n], jumps[:n]
    for m in range(places.size):
        below += jumps[m] if places[m] < k else 0.0
        at += jumps[m] if places[m] == k else 0.0
    return below, at


@compiled
def _keep(places, jumps, n, k, is_left):
    """Move the kinks below k, or those above k, to the front; return their number."""
    n_kept = 0
    for m in range(n):
        place, jump = places[m], jumps[m]
        places[np.uint64(n_kept)], jumps[np.uint64(n_kept)] = place, jump
        n_kept += (place < k) if is_left else (place > k)
    return n_kept
