"""The state of a dual coordinate method and the exact step for one dual variable.

For row i with score s = <w, x_i>, the smooth part of the dual objective has the derivative

    slope = target − s − curvature beta

with respect to beta_i, and −epsilon |beta| is subtracted. The maximum over beta_i, all other dual variables fixed, is

    clip( soft(slope + total_curvature beta, epsilon) / total_curvature ),   total_curvature = |x_i|² + curvature

where soft(z, epsilon) moves z towards zero by epsilon, and clip projects onto the bounds of beta_i.

The duality gap is a sum over rows of  loss − dual term + beta s,  none of which is negative (Fenchel's inequality). A
sweep sums these terms as it visits the rows, each at the w of that moment; the sum estimates the gap, and tells when it
is worth measuring.

The numbers of a row are stored in one record of 64 bytes, a cache line. Rows are visited in random order, so that a
visit costs one cache miss instead of eight (measured on covertype, with prefetching: 2.1x less time for a sweep).
"""

from typing import NamedTuple

import numpy as np

from widemargin._runtime.compile import SUMS, compiled
from widemargin._runtime.threads import run
from widemargin.data.rows import row_axpy, row_dot
from widemargin.problems.losses import loss_and_slope
from widemargin.problems.magnitudes import check_rows

ROW = np.dtype(
    [
        ("beta", "f8"),
        ("target", "f8"),
        ("lower", "f8"),
        ("upper", "f8"),
        ("curvature", "f8"),
        ("epsilon", "f8"),
        ("total_curvature", "f8"),
        ("preference", "f8"),
    ]
)
_CACHE_LINE = 64
assert ROW.itemsize == _CACHE_LINE


class Coordinates:
    """The state of a dual coordinate method. Kept true by every step: w = Σ beta_i x_i, beta within its bounds.

    Parameters
    ----------
    problem : DualQP
    start : ndarray or None
        Dual variables to start from, clipped to their bounds; None means zero.
    n_jobs : int or None
        Threads for passes over all rows.

    Attributes
    ----------
    rows : ndarray of type ROW
        The numbers of each row.
    w : ndarray
        The weights.
    norms : ndarray
        |x_i|².
    scale : float
        The largest |target|, to which violations are compared.
    factor : float
        The factor by which the costs of the problem are multiplied at present; see `set_costs`.
    """

    def __init__(self, problem, start=None, n_jobs=1):
        self.problem, self.X, self.n_jobs = problem, problem.X, n_jobs
        self.scale = np.abs(problem.target).max()
        self.norms = problem.X.squared_norms(n_jobs)
        check_rows(problem, self.norms)
        self.rows = zeroed_records(problem.X.n_rows)
        for name in ("target", "epsilon"):
            self.rows[name] = getattr(problem, name)
        self.rows["preference"] = 1.0
        self.w = np.zeros(problem.X.n_columns)
        self.set_costs(1.0)
        if start is not None:
            self.rows["beta"] = np.clip(start, problem.lower, problem.upper)
            self.recompute()

    def set_costs(self, factor):
        """Multiply all costs by `factor`: the bounds are multiplied by it, the curvatures divided by it."""
        self.factor = factor
        self.rows["lower"] = self.problem.lower * factor
        self.rows["upper"] = self.problem.upper * factor
        self.rows["curvature"] = self.problem.curvature / factor
        self.rows["total_curvature"] = self.norms + self.rows["curvature"]

    def scale_beta(self, factor):
        """Multiply all dual variables by `factor` and clip them to their bounds."""
        self.rows["beta"] = np.clip(self.beta * factor, self.rows["lower"], self.rows["upper"])
        self.recompute()

    @property
    def beta(self):
        """The dual variables (a view)."""
        return self.rows["beta"]

    def recompute(self):
        """Compute w = X'beta again, without the rounding errors that many small steps accumulate."""
        self.w[:] = self.X.combine(self.beta, self.n_jobs)

    def half_norm(self):
        """Return ½|w|²."""
        return half_square(self.w)

    def measure(self):
        """Return ½|w|², the sum of losses, and the sum of dual terms, by one pass over the rows in threads.

        The primal objective is ½|w|² + losses, the dual objective is dual terms − ½|w|².
        """
        half_norm = self.half_norm()
        if half_norm == 0.0 and not self.w.any():  # all scores are zero, so that no pass is needed
            return half_norm, *_measure_at_zero(self.rows)
        arguments = [(self.X.rows, self.rows, self.w, *ends) for ends in self.X.ranges()]
        return half_norm, *np.sum(run(measure_rows, arguments, self.X.threads(self.n_jobs)), axis=0)


class SweepReport(NamedTuple):
    """The result of one or more sweeps; all but the first two fields describe the last sweep.

    Attributes
    ----------
    n_sweeps, visits : int
        Number of sweeps, and of visits of rows in all of them.
    violation : float
        Largest violation of an optimality condition that was met.
    gap_estimate, loss : float
        Sums over rows of the terms of the duality gap and of the losses, each at the w of the moment of its visit.
    moved : bool
        Whether any dual variable changed.
    full : bool
        Whether all rows took part, with the same frequency.
    gap_left : float
        An estimate of the gap after the last sweep; infinite if there is none.
    """

    n_sweeps: int
    visits: int
    violation: float
    gap_estimate: float
    loss: float
    moved: bool
    full: bool
    gap_left: float = np.inf


def zeroed_records(n_rows):
    """Return n_rows records of zeros, aligned to cache lines."""
    memory = np.zeros((n_rows + 1) * _CACHE_LINE, dtype=np.uint8)
    offset = -memory.ctypes.data % _CACHE_LINE
    return memory[offset : offset + n_rows * _CACHE_LINE].view(ROW)


@compiled(fastmath=SUMS)
def half_square(w):
    """Return ½ Σ w_j². BLAS is not used, since its threads wait for each other: milliseconds, if all cores are busy.

    A loop over the values instead of their indices would not be vectorised.
    """
    total = 0.0
    for j in range(w.size):
        total += w[j] * w[j]
    return 0.5 * total


@compiled
def best_beta(row, slope):
    """Return the value of the dual variable, within its bounds, that maximises the dual; see the module's formulas.

    A row of zeros without curvature has a constant slope: the division gives infinity, which is clipped to a bound.
    """
    z = slope + row["total_curvature"] * row["beta"]
    beta = 0.0
    if z > row["epsilon"]:
        beta = (z - row["epsilon"]) / row["total_curvature"]
    elif z < -row["epsilon"]:
        beta = (z + row["epsilon"]) / row["total_curvature"]
    return min(max(beta, row["lower"]), row["upper"])


@compiled
def one_sided_derivatives(row, slope):
    """Return the right and the left derivative of the dual at the dual variable; they differ at the kink of |beta|."""
    epsilon = row["epsilon"]
    right = slope - epsilon if row["beta"] >= 0.0 else slope + epsilon
    left = slope + epsilon if row["beta"] <= 0.0 else slope - epsilon
    return right, left


@compiled
def loss_and_dual_term(row, score):
    """Return the loss of a row at `score`, and its dual term: target beta − epsilon |beta| − ½ curvature beta²."""
    epsilon, curvature, beta = row["epsilon"], row["curvature"], row["beta"]
    loss, _ = loss_and_slope(row["target"] - score, row["lower"], row["upper"], curvature, epsilon)
    return loss, row["target"] * beta - epsilon * abs(beta) - 0.5 * curvature * beta * beta


@compiled
def move(X, i, row, beta, w):
    """Set the dual variable of row i to `beta`. Kept true: w = Σ beta_i x_i."""
    row_axpy(X, i, beta - row["beta"], w)
    row["beta"] = beta


@compiled
def measure_rows(X, rows, w, start, stop):
    """Return the sums of losses and of dual terms over start <= i < stop."""
    loss = dual_terms = 0.0
    for i in range(start, stop):
        row_loss, dual_term = loss_and_dual_term(rows[i], row_dot(X, i, w))
        loss += row_loss
        dual_terms += dual_term
    return loss, dual_terms


@compiled
def _measure_at_zero(rows):
    """Return the sums of losses and of dual terms if all scores are zero."""
    loss = dual_terms = 0.0
    for row in rows:
        row_loss, dual_term = loss_and_dual_term(row, 0.0)
        loss += row_loss
        dual_terms += dual_term
    return loss, dual_terms


@compiled
def random_below(state, n):
    """Return a random integer in 0 .. n−1 (n < 2³²) by xorshift; `state` is an array of one 64-bit number, not zero."""
    s = state[0]
    s ^= s << np.uint64(13)
    s ^= s >> np.uint64(7)
    s ^= s << np.uint64(17)
    state[0] = s
    return ((s >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32)


@compiled
def shuffle(order, state):
    """Shuffle `order`, all permutations equally likely."""
    for k in range(order.size - 1):
        j = np.uint64(k) + random_below(state, order.size - k)
        order[k], order[j] = order[j], order[k]


def random_state(seed):
    """Return the 64-bit state of `random_below` for an integer seed; consecutive seeds give unrelated states."""
    return np.random.SeedSequence(seed).generate_state(1, np.uint64) | np.uint64(1)
