"""Dual coordinate descent for losses with an entropy, such as the log loss.

No dual variable is ever at a bound, so that nothing is shrunk, and a coordinate step has no closed form. For row i with
the residual r = target − <w, x_i>, the others fixed, the dual objective is largest where

    f(u) = entropy u + |x_i|² (b(u) − beta) − r = 0,        b(u) = lower + (upper − lower) / (1 + exp(−u))

The logit u of the dual variable is the unknown, since b may be too close to a bound for double precision. f increases,
with a derivative of at least the entropy, and its zero lies between (r − |x_i|² (upper − beta)) / entropy and
(r + |x_i|² (beta − lower)) / entropy. Newton's method finds it, by bisection wherever a step leaves the bracket. It
starts from the logit of the last visit, where no exponential is needed, and mostly ends after one step: a coordinate
step need not be exact, as long as the next visit goes on from there.

Reference: Yu, Huang and Lin, "Dual coordinate descent methods for logistic regression and maximum entropy models",
Machine Learning 85 (2011), whose Newton steps are in the distances to the bounds instead.
"""

import math

import numpy as np

from widemargin._runtime.compile import compiled, prefetch
from widemargin.data.rows import long_row_prefetch, row_dot
from widemargin.problems.entropy_risk import EntropyRisk
from widemargin.solvers.coordinate_descent.state import ROW, Coordinates, SweepReport, move, random_state, shuffle

SMOOTH_ROW = np.dtype([(name if name != "preference" else "logit", "f8") for name in ROW.names or ()])
_REDUCTION = 0.1  # of |f|, by a coordinate step
_LARGEST_START = 1.0  # |f| at the start, relative to the entropy, of which the reduction is taken at most
_MAX_NEWTON_STEPS = 50  # of a coordinate step
_ROUNDING = 1e-15  # |f| relative to its terms, which counts as zero
_PREFETCH_ROWS = 16  # visits between the prefetch of the record of a row and its use


class SmoothCoordinates(Coordinates):
    """The state of coordinate descent; `rows` are of type SMOOTH_ROW, the logits are those of the dual variables.

    A logit is −∞ or ∞ only if a dual variable is at a bound, before its first visit.
    """

    def __init__(self, problem, start=None, n_jobs=1):
        super().__init__(problem, start, n_jobs)
        self.scale, self.rows = problem.entropy, self.rows.view(SMOOTH_ROW)
        with np.errstate(divide="ignore", invalid="ignore"):
            self.rows["logit"] = np.log(self.beta - problem.lower) - np.log(problem.upper - self.beta)
        self._risk, self._of_rows = EntropyRisk(problem, n_jobs), np.zeros((3, self.rows.size))

    def measure(self):
        """Return ½|w|², the sum of losses, and the sum of dual terms, by one pass over the rows in threads."""
        half_norm, (scores, slopes, curvatures) = self.half_norm(), self._of_rows
        if half_norm > 0.0 or self.w.any():
            self.X.scores(self.w, self.n_jobs, out=scores)
        loss = self._risk.evaluate(scores, 0.0, slopes, curvatures).loss
        return half_norm, loss, self._risk.dual_sums(np.ascontiguousarray(self.beta))[0]


class SmoothSweeps:
    """Sweeps over all rows with a cost, each in a new random order; for `loop.descend`."""

    name = "dcd"

    def __init__(self, coordinates, settings):
        self.coordinates, problem = coordinates, coordinates.problem
        self.order = np.flatnonzero(problem.upper > problem.lower).astype(np.uint32)
        self.random = random_state(settings.seed)

    def reset_selection(self):
        """Do nothing: all rows take part in every sweep."""

    def advance(self, half_norm, loss):
        """Return False, since there is one stage only."""
        return False

    def sweep(self, max_visits, max_sweeps):
        """Visit every row once, and repeat this within the limits while any dual variable changes."""
        state, limits = self.coordinates, (max_visits, max_sweeps)
        n_sweeps, *found = _sweeps(state.X.rows, state.rows, state.scale, self.order, limits, self.random, state.w)
        violation, gap_estimate, gap_left, loss, moved = found
        return SweepReport(n_sweeps, n_sweeps * self.order.size, violation, gap_estimate, loss, moved, True, gap_left)


@compiled
def _sweeps(X, rows, entropy, order, limits, random, w):
    """Sweep within limits (visits, sweeps); return the number of sweeps, and the results of the last one."""
    max_visits, max_sweeps = limits
    violation, gap_estimate, gap_left, loss, moved, n_sweeps = 0.0, 0.0, 0.0, 0.0, True, 0
    while n_sweeps == 0 or (moved and n_sweeps < max_sweeps and (n_sweeps + 1) * order.size <= max_visits):
        shuffle(order, random)
        violation, gap_estimate, gap_left, loss, moved = _sweep(X, rows, entropy, order, w)
        n_sweeps += 1
    return n_sweeps, violation, gap_estimate, gap_left, loss, moved


@compiled
def _sweep(X, rows, entropy, order, w):
    """Visit the rows in order. Kept true: w = Σ beta_i x_i, the logits are those of the dual variables.

    The sums of losses and of gap terms are estimates: the losses are those at which a dual variable is optimal, and the
    gap terms are quadratic in the violation. At its first visit, a row of a dual variable at a bound adds its loss to
    the gap. Its score then is due to the rows before it. Those after it change it by about as much, which tells the gap
    that is left after the sweep.
    """
    violation = gap_estimate = gap_left = loss = 0.0
    moved = False
    for k in range(order.size):
        long_row_prefetch(X, order, k)
        if k + _PREFETCH_ROWS < order.size:
            prefetch(rows, np.uint64(order[k + _PREFETCH_ROWS]))
        i = order[k]
        row = rows[i]
        score = row_dot(X, i, w)
        excess = entropy * row["logit"] - (row["target"] - score)
        violation = max(violation, abs(excess))
        logit, beta = best_logit(row, row["target"] - score, entropy)
        row_loss = _loss_at(row, logit, beta, entropy)
        if math.isinf(row["logit"]):
            gap_estimate += row_loss
            gap_left += _gap_term(row, beta, score, entropy)
        else:
            term = _gap_term(row, row["beta"], excess, entropy)
            gap_estimate += term
            gap_left += term
        loss += row_loss
        row["logit"] = logit
        if beta != row["beta"]:
            move(X, i, row, beta, w)
            moved = True
    return violation, gap_estimate, gap_left, loss, moved


@compiled
def _gap_term(row, beta, excess, entropy):
    """Return about what a row adds to the gap if f is `excess` at a dual variable."""
    below, above = beta - row["lower"], row["upper"] - beta
    width, size = above + below, abs(excess)
    return min(0.5 * below * above / (width * entropy) * size, width) * min(size, entropy)


@compiled
def _loss_at(row, logit, beta, entropy):
    """Return the loss at which a dual variable is optimal, within 1 %: log(1 + e) is about e (6 + e) / (6 + 4 e)."""
    width, bound = row["upper"] - row["lower"], row["upper"] if logit > 0.0 else row["lower"]
    e = abs(bound - beta) / (width - abs(bound - beta))
    return entropy * (bound * logit + width * e * (6.0 + e) / (6.0 + 4.0 * e))


@compiled
def best_logit(row, residual, entropy):
    """Return the logit at which f is zero, about, and the dual variable there, which is within its bounds."""
    beta, lower, upper, norm = row["beta"], row["lower"], row["upper"], row["total_curvature"]
    low, high = (residual - norm * (upper - beta)) / entropy, (residual + norm * (beta - lower)) / entropy
    u, b = row["logit"], beta
    if not low <= u <= high:  # it is not finite before the first visit, and otherwise just beyond by rounding
        u = min(max(0.0, low), high)
        b = _at_logit(u, lower, upper)
    tolerance = _REDUCTION * min(abs(entropy * u + norm * (b - beta) - residual), _LARGEST_START * entropy)
    for _ in range(_MAX_NEWTON_STEPS):
        f = entropy * u + norm * (b - beta) - residual
        if abs(f) <= max(tolerance, _ROUNDING * max(abs(residual), norm * (upper - lower))):
            break
        low, high = (low, u) if f > 0.0 else (u, high)
        step = f / (entropy + norm * (b - lower) * (upper - b) / (upper - lower))
        u = u - step if low < u - step < high else 0.5 * (low + high)
        b = _at_logit(u, lower, upper)
    return u, b


@compiled
def _at_logit(u, lower, upper):
    """Return b(u)."""
    e = math.exp(-abs(u))
    share = (upper - lower) * (e / (1.0 + e))
    return upper - share if u > 0.0 else lower + share
