"""`crammer_singer`: dual coordinate descent for several classes at once, all dual variables of a row at a time.

With the other rows fixed, the dual variables b of row i minimise ½ A |b|² + <B, b> under Σ b = 0 and b <= capacity,
where A = |x_i|² and B[m] = [m ≠ label] + <w_m, x_i> − A beta[m]. The solution is
b[m] = min(capacity[m], (t − B[m]) / A) with the one t that makes the sum zero, found by leaving out, one after the
other, the classes that reach their capacity.
B is measured from its largest entry: t is close to that, and where A cost is tiny only the difference has any digits.

Reference: Keerthi, Sundararajan, Chang, Hsieh, Lin, "A sequential dual method for large scale multi-class linear
SVMs", KDD 2008.
"""

from dataclasses import replace

import numpy as np

from widemargin._runtime.compile import compiled
from widemargin._runtime.threads import run
from widemargin.data.rows import row_axpys, row_dots, row_prefetch
from widemargin.problems.formulations import Intercept
from widemargin.problems.magnitudes import check_costs
from widemargin.problems.multiclass import CrammerSinger
from widemargin.solvers.coordinate_descent.loop import descend
from widemargin.solvers.coordinate_descent.state import Sweep, half_square, random_state, shuffle
from widemargin.solvers.spec import SolverSpec, Start


def crammer_singer(problem, settings, start=None):
    """Minimise a CrammerSinger problem; `start` (n_rows x n_classes) are multipliers to begin with."""
    solution = descend(RowSweeps(problem, settings, start), settings)
    constant = problem.X.constant
    return replace(solution, intercept=constant * solution.w[-1]) if constant else solution


CRAMMER_SINGER = SolverSpec(
    name="crammer_singer",
    solve=crammer_singer,
    takes=frozenset({CrammerSinger}),
    intercepts=frozenset({Intercept.NONE, Intercept.PENALISED}),
    starts_from=Start.DUAL,
    stopping=("gap", "kkt"),
    counts="sweeps",
)


class MulticlassCoordinates:
    """W and beta. Kept true by every step: W = X'beta, rows of beta feasible."""

    def __init__(self, problem, start, n_jobs):
        self.X, self.n_jobs, self.scale, self.factor = problem.X, n_jobs, 1.0, 1.0
        self.label, self.cost = problem.label.astype(np.intp), problem.cost
        self.curvature = problem.X.squared_norms(n_jobs)
        check_costs(problem.cost, self.curvature)
        self.beta = np.zeros((problem.X.n_rows, problem.n_classes))
        self.w = np.zeros((problem.X.n_columns, problem.n_classes))
        if start is not None:
            self._begin_at(start)
        self._settle_empty_rows()

    def _begin_at(self, start):
        """Take over multipliers as far as they are feasible: scale each row down to its capacity."""
        every = np.arange(self.X.n_rows)
        wanted = np.minimum(start, 0.0)
        wanted[every, self.label] = 0.0
        total = -wanted.sum(axis=1)
        share = np.divide(self.cost, total, out=np.ones_like(total), where=total > self.cost)
        self.beta[:] = wanted * share[:, None]
        # np.minimum: rounding must not lift the sum above the capacity
        self.beta[every, self.label] = np.minimum(-self.beta.sum(axis=1), self.cost)
        self.recompute()

    def _settle_empty_rows(self):
        """A row of zeros cannot be told apart by any W: it pays in full, to the first other class."""
        for i in np.flatnonzero(self.curvature == 0.0):
            self.beta[i] = 0.0
            self.beta[i, self.label[i]] = self.cost[i]
            self.beta[i, 1 if self.label[i] == 0 else 0] = -self.cost[i]

    def recompute(self):
        """Set W = X'beta anew."""
        for m in range(self.beta.shape[1]):
            self.w[:, m] = self.X.combine(self.beta[:, m], self.n_jobs)

    def half_norm(self):
        """Return ½ Σ|w_m|²."""
        return half_square(self.w.ravel())

    def measure(self):
        """Return ½ Σ|w_m|², the sum of losses, and the multipliers' value in the dual, by one threaded pass."""
        arguments = [
            (self.X.rows, self.label, self.cost, self.w, *ends, np.empty(self.w.shape[1])) for ends in self.X.ranges()
        ]
        loss = sum(run(_loss, arguments, self.n_jobs))
        value = self.beta[np.arange(self.label.size), self.label].sum()
        return self.half_norm(), loss, value


class RowSweeps:
    """Sweeps over all rows in random order."""

    name = "crammer_singer"

    def __init__(self, problem, settings, start=None):
        self.coordinates = MulticlassCoordinates(problem, start, settings.n_jobs)
        self.order = np.arange(problem.X.n_rows, dtype=np.uint32)
        self.random = random_state(settings.seed)
        self._work = np.empty((2, problem.n_classes))

    def widen(self):
        """All rows always take part."""

    def advance(self, half_norm, loss):
        """There is no further stage."""
        return False

    def sweep(self, budget, most):
        """Visit every row once; again, up to `most` times, while rows move and visits stay in the budget."""
        state = self.coordinates
        result = _sweeps(
            state.X.rows, state.label, state.cost, state.curvature, self.order, (budget, most), self.random,
            self._work, state.beta, state.w,
        )  # fmt: skip
        n_sweeps, violation, excess, loss, moved = result
        return Sweep(n_sweeps, n_sweeps * self.order.size, violation, excess, loss, moved, True)


@compiled
def _sweeps(X, label, cost, curvature, order, bounds, random, work, beta, W):
    """Sweep over all rows within bounds (visits, sweeps), each time in a new random order."""
    budget, most = bounds
    violation = excess = loss = 0.0
    n_sweeps = 0
    moved = True
    while n_sweeps == 0 or (moved and n_sweeps < most and (n_sweeps + 1) * order.size <= budget):
        shuffle(order, random)
        violation, excess, loss, moved = _sweep(X, label, cost, curvature, order, work, beta, W)
        n_sweeps += 1
    return n_sweeps, violation, excess, loss, moved


@compiled
def _sweep(X, label, cost, curvature, order, work, beta, W):
    """Visit the rows in order. Kept true: W = X'beta, rows of beta feasible."""
    slope, best = work
    violation = excess = loss = 0.0
    moved = False
    for k in range(order.size):
        row_prefetch(X, order, k)
        i = order[k]
        row, own = beta[i], label[i]
        row_dots(X, i, W, slope)
        worst = slope[own]
        for m in range(row.size):
            if m != own:
                slope[m] += 1.0
                worst = max(worst, slope[m])
        loss += cost[i] * (worst - slope[own])
        excess += cost[i] * (worst - slope[own])
        for m in range(row.size):
            excess += row[m] * slope[m]
        if curvature[i] == 0.0:
            continue
        violation = max(violation, _violation(slope, row, own, cost[i]))
        _best_row(slope, row, own, cost[i], curvature[i], best)
        changed = False
        for m in range(row.size):
            step = best[m] - row[m]
            row[m] = best[m]
            best[m] = step
            changed = changed or step != 0.0
        if changed:
            row_axpys(X, i, best, W)
            moved = True
    return violation, excess, loss, moved


@compiled
def _violation(slope, row, own, cost):
    """Largest slope less the smallest of those multipliers that may still grow; 0 at the optimum."""
    highest, lowest = -np.inf, np.inf
    for m in range(row.size):
        highest = max(highest, slope[m])
        if row[m] < (cost if m == own else 0.0):
            lowest = min(lowest, slope[m])
    return max(0.0, highest - lowest)


@compiled
def _best_row(slope, row, own, cost, curvature, best):
    """Set `best` to the minimiser over one row's multipliers, the others fixed; slopes count from the largest."""
    t, n_free, highest = -np.inf, row.size + 1, slope[0]
    for m in range(1, row.size):
        highest = max(highest, slope[m])
    while True:
        # Those that the present t leaves below their capacity share what is to be balanced; t only rises.
        total, n_left = -curvature * cost, 0
        for m in range(row.size):
            threshold = (slope[m] - highest) - curvature * (row[m] - (cost if m == own else 0.0))
            if threshold > t:
                total += threshold
                n_left += 1
        if n_left >= n_free or n_left == 0:
            break
        t, n_free = total / n_left, n_left
    for m in range(row.size):
        capacity = cost if m == own else 0.0
        best[m] = min(capacity, (t - (slope[m] - highest)) / curvature + row[m])


@compiled
def _loss(X, label, cost, W, start, stop, slope):
    """Return the sum of losses over start <= i < stop; `slope` is work space."""
    loss = 0.0
    for i in range(start, stop):
        row_dots(X, i, W, slope)
        worst = 0.0
        for m in range(slope.size):
            if m != label[i]:
                worst = max(worst, 1.0 + slope[m] - slope[label[i]])
        loss += cost[i] * worst
    return loss
