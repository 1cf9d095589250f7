"""`crammer_singer`: dual coordinate descent for several classes at once, all dual variables of a row at a time.

With the other rows fixed, the dual variables b of row i are the solution of

    minimise ½ A |b|² + <B, b>   over   Σ b = 0,  b <= upper
    with     A = |x_i|²,   B[m] = [m ≠ label] + <w_m, x_i> − A beta[m]

where upper is the cost of the row for the class of its label, and 0 for other classes. The solution is
b[m] = min(upper[m], (t − B[m]) / A) with the t for which the sum is zero. It is found iteratively, by excluding the
classes that are at their upper bounds. The largest entry is subtracted from B: t is close to it, and if A cost is tiny,
t itself would be lost in rounding.

W has a line of n_classes weights for each column of X, padded with zeros to a multiple of 16, or to 4. So the scores of
a row by all classes, and the step of a row, are sums of vectors that stay in registers: against loops over the classes
fits take half the time (usps, 10 classes; dna, 3 classes; three sweeps of news20, 20 classes).

Reference: Keerthi, Sundararajan, Chang, Hsieh, Lin, "A sequential dual method for large scale multi-class linear
SVMs", KDD 2008.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from widemargin._runtime.compile import compiled
from widemargin._runtime.lanes import FEW_LANES, SHORT_LANES
from widemargin._runtime.simd import aligned_zeros, few_lanes, no_short_lanes, put_lanes
from widemargin._runtime.threads import run
from widemargin.data.rows import row_lanes, row_line_axpy, row_prefetch
from widemargin.problems.magnitudes import check_costs
from widemargin.problems.multiclass import CrammerSinger
from widemargin.solvers.coordinate_descent.dcd import DCD
from widemargin.solvers.coordinate_descent.loop import descend
from widemargin.solvers.coordinate_descent.state import SweepReport, half_square, random_state, shuffle


def crammer_singer(problem, settings, start=None):
    """Minimise a CrammerSinger problem; `start` (n_rows x n_classes) are dual variables."""
    solution = descend(RowSweeps(problem, settings, start), settings)
    constant = problem.X.constant
    return replace(solution, intercept=constant * solution.w[-1]) if constant else solution


CRAMMER_SINGER = replace(DCD, name="crammer_singer", solve=crammer_singer, takes=frozenset({CrammerSinger}))


class Costs(NamedTuple):
    """The class, the cost and |x_i|² of each row."""

    label: np.ndarray
    cost: np.ndarray
    curvature: np.ndarray


class MulticlassCoordinates:
    """The state of the method: W and beta. Kept true by every step: W = X'beta, beta feasible."""

    def __init__(self, problem, start, n_jobs):
        self.X, self.n_jobs, self.scale, self.factor = problem.X, n_jobs, 1.0, 1.0
        self.label, self.cost = problem.label.astype(np.intp), problem.cost
        self.curvature = problem.X.squared_norms(n_jobs)
        check_costs(problem.cost, self.curvature)
        self.beta = np.zeros((problem.X.n_rows, problem.n_classes))
        self.lines = aligned_zeros((problem.X.n_columns, _vectors_for(problem.n_classes).size), np.float64)
        self.w = self.lines[:, : problem.n_classes]
        if start is not None:
            self._start_from(start)
        self._solve_empty_rows()

    def _start_from(self, start):
        """Set the dual variables to a feasible point near `start`: rows that exceed their cost are scaled down."""
        every = np.arange(self.X.n_rows)
        negative = np.minimum(start, 0.0)
        negative[every, self.label] = 0.0
        total = -negative.sum(axis=1)
        factor = np.divide(self.cost, total, out=np.ones_like(total), where=total > self.cost)
        self.beta[:] = negative * factor[:, None]
        # np.minimum: rounding must not make the sum exceed the upper bound
        self.beta[every, self.label] = np.minimum(-self.beta.sum(axis=1), self.cost)
        self.recompute()

    def _solve_empty_rows(self):
        """Set the dual variables of rows of zeros to an optimum: for any W their loss is their cost."""
        for i in np.flatnonzero(self.curvature == 0.0):
            self.beta[i] = 0.0
            self.beta[i, self.label[i]] = self.cost[i]
            self.beta[i, 1 if self.label[i] == 0 else 0] = -self.cost[i]

    def recompute(self):
        """Compute W = X'beta again, without accumulated rounding errors."""
        for m in range(self.beta.shape[1]):
            self.w[:, m] = self.X.combine(self.beta[:, m], self.n_jobs)

    def half_norm(self):
        """Return ½ Σ|w_m|²."""
        return half_square(self.lines.ravel())

    def measure(self):
        """Return ½ Σ|w_m|², the sum of losses, and the sum of dual terms, by one pass over the rows in threads."""
        n_classes = self.w.shape[1]
        _, sum_losses = _loops_of(n_classes)
        arguments = [
            (self.X.rows, self.label, self.cost, self.lines, *ends, n_classes, _vectors_for(n_classes))
            for ends in self.X.ranges()
        ]
        loss = sum(run(sum_losses, arguments, self.X.threads(self.n_jobs)))
        dual_terms = self.beta[np.arange(self.label.size), self.label].sum()
        return self.half_norm(), loss, dual_terms


class RowSweeps:
    """Sweeps over all rows in random order."""

    name = "crammer_singer"

    def __init__(self, problem, settings, start=None):
        self.coordinates = MulticlassCoordinates(problem, start, settings.n_jobs)
        self.order = np.arange(problem.X.n_rows, dtype=np.uint32)
        self.random = random_state(settings.seed)
        self._sweep_all, _ = _loops_of(problem.n_classes)
        self._workspace = tuple(_vectors_for(problem.n_classes) for _ in range(2))

    def reset_selection(self):
        """Do nothing, since all rows take part in every sweep."""

    def advance(self, half_norm, loss):
        """Return False, since there is one stage only."""
        return False

    def sweep(self, max_visits, max_sweeps):
        """Visit every row once, and repeat this within the limits while any dual variable changes."""
        state = self.coordinates
        result = self._sweep_all(
            state.X.rows, Costs(state.label, state.cost, state.curvature), self.order, (max_visits, max_sweeps),
            self.random, self._workspace, state.beta, state.lines,
        )  # fmt: skip
        n_sweeps, violation, gap_estimate, loss, moved = result
        return SweepReport(n_sweeps, n_sweeps * self.order.size, violation, gap_estimate, loss, moved, full=True)


def _vectors_for(n_classes):
    """Return zeros for as many numbers as there are classes, as vectors: the lines of an array."""
    width = FEW_LANES if n_classes <= FEW_LANES else SHORT_LANES
    return aligned_zeros((-(-n_classes // width), width), np.float64)


def _loops_of(n_classes):
    """Return the compiled loops for so many classes: those of sweeps, and of the losses."""
    return (_sweeps_of_few, _loss_of_few) if n_classes <= FEW_LANES else (_sweeps_of_many, _loss_of_many)


@compiled
def _sweeps_of_few(X, costs, order, limits, random, workspace, beta, W):
    """Do what `_sweeps` does with vectors of FEW_LANES numbers."""
    return _sweeps(X, costs, order, limits, random, workspace, beta, W, few_lanes(W))


@compiled
def _sweeps_of_many(X, costs, order, limits, random, workspace, beta, W):
    """Do what `_sweeps` does with vectors of SHORT_LANES numbers."""
    return _sweeps(X, costs, order, limits, random, workspace, beta, W, no_short_lanes(W))


@compiled
def _sweeps(X, costs, order, limits, random, workspace, beta, W, zeros):
    """Sweep over all rows within limits (visits, sweeps), each time in a new random order."""
    max_visits, max_sweeps = limits
    violation = gap_estimate = loss = 0.0
    n_sweeps = 0
    moved = True
    while n_sweeps == 0 or (moved and n_sweeps < max_sweeps and (n_sweeps + 1) * order.size <= max_visits):
        shuffle(order, random)
        violation, gap_estimate, loss, moved = _sweep(X, costs, order, workspace, beta, W, zeros)
        n_sweeps += 1
    return n_sweeps, violation, gap_estimate, loss, moved


@compiled
def _sweep(X, costs, order, workspace, beta, W, zeros):
    """Visit the rows in order. Kept true: W = X'beta, beta feasible; `zeros` is a vector."""
    label, cost, curvature = costs
    scores, steps = workspace
    gradient, best = scores.reshape(scores.size)[: beta.shape[1]], steps.reshape(steps.size)[: beta.shape[1]]
    violation = gap_estimate = loss = 0.0
    moved = False
    for k in range(order.size):
        row_prefetch(X, order, k)
        i = order[k]
        row, own = beta[i], label[i]
        _put_scores(X, i, W, zeros, scores)
        largest = gradient[own]
        for m in range(row.size):
            if m != own:
                gradient[m] += 1.0
                largest = max(largest, gradient[m])
        loss += cost[i] * (largest - gradient[own])
        gap_estimate += cost[i] * (largest - gradient[own])
        for m in range(row.size):
            gap_estimate += row[m] * gradient[m]
        if curvature[i] == 0.0:
            continue
        violation = max(violation, _violation(gradient, row, own, cost[i]))
        _best_row(gradient, row, own, cost[i], curvature[i], best)
        changed = False
        for m in range(row.size):
            step = best[m] - row[m]
            row[m] = best[m]
            best[m] = step
            changed = changed or step != 0.0
        if changed:
            _add_row(X, i, steps, W, zeros)
            moved = True
    return violation, gap_estimate, loss, moved


@compiled
def _put_scores(X, i, W, zeros, scores):
    """Set the lines of `scores` to the scores of row i by all classes."""
    width = scores.shape[1]
    for p in range(scores.shape[0]):
        put_lanes(row_lanes(X, i, W[:, p * width : (p + 1) * width], zeros), scores, p)


@compiled
def _add_row(X, i, steps, W, zeros):
    """Add the outer product of row i and the steps of all classes, which are the lines of `steps`, to W."""
    width = steps.shape[1]
    for p in range(steps.shape[0]):
        row_line_axpy(X, i, steps, p, W[:, p * width : (p + 1) * width], zeros)


@compiled
def _violation(gradient, row, own, cost):
    """Return the largest gradient less the smallest of the dual variables below their bounds; 0 at the optimum."""
    largest, smallest = -np.inf, np.inf
    for m in range(row.size):
        largest = max(largest, gradient[m])
        if row[m] < (cost if m == own else 0.0):
            smallest = min(smallest, gradient[m])
    return max(0.0, largest - smallest)


@compiled
def _best_row(gradient, row, own, cost, curvature, best):
    """Set `best` to the optimal dual variables of one row, the other rows fixed; see the module's formulas."""
    t, n_free, largest = -np.inf, row.size + 1, gradient[0]
    for m in range(1, row.size):
        largest = max(largest, gradient[m])
    while True:
        # A class is free, below its upper bound, if t is below its threshold. As t increases, fewer classes are free.
        total, n_below = -curvature * cost, 0
        for m in range(row.size):
            threshold = (gradient[m] - largest) - curvature * (row[m] - (cost if m == own else 0.0))
            if threshold > t:
                total += threshold
                n_below += 1
        if n_below >= n_free or n_below == 0:
            break
        t, n_free = total / n_below, n_below
    for m in range(row.size):
        upper = cost if m == own else 0.0
        best[m] = min(upper, (t - (gradient[m] - largest)) / curvature + row[m])


@compiled
def _loss_of_few(X, label, cost, W, start, stop, n_classes, scores):
    """Do what `_loss` does with vectors of FEW_LANES numbers."""
    return _loss(X, label, cost, W, start, stop, n_classes, scores, few_lanes(W))


@compiled
def _loss_of_many(X, label, cost, W, start, stop, n_classes, scores):
    """Do what `_loss` does with vectors of SHORT_LANES numbers."""
    return _loss(X, label, cost, W, start, stop, n_classes, scores, no_short_lanes(W))


@compiled
def _loss(X, label, cost, W, start, stop, n_classes, scores, zeros):
    """Return the sum of losses over start <= i < stop; `scores` are vectors as work space, `zeros` is another."""
    loss, score = 0.0, scores.reshape(scores.size)
    for i in range(start, stop):
        _put_scores(X, i, W, zeros, scores)
        largest = 0.0
        for m in range(n_classes):
            if m != label[i]:
                largest = max(largest, 1.0 + score[m] - score[label[i]])
        loss += cost[i] * largest
    return loss
