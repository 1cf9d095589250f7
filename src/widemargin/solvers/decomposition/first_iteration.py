"""The first iteration over all dual variables of a small problem, with what is needed to know whether it suffices.

Most small problems are solved by it, in less time than a few calls of compiled functions from Python take. Therefore
one call takes the pair steps and computes the gradient, its violation, the offsets and the terms of the objectives, at
the start and after the steps. It ends early if kernel rows are needed that are not computed yet, and is then called
again; and if the steps do not reach their goal.
"""

import math
import time
from typing import NamedTuple

import numpy as np

from widemargin._runtime.compile import compiled
from widemargin.kernels.rows import add_weighted_rows
from widemargin.problems.certificates import relative_gap
from widemargin.solvers.contract import HISTORY, KernelSolution, Status
from widemargin.solvers.decomposition.certificate import N_SUMS, add_terms
from widemargin.solvers.decomposition.conjugate_pairs import no_direction
from widemargin.solvers.decomposition.free_step import free_workspace, optimise_finely
from widemargin.solvers.decomposition.kernel_sums import UNIT_ROUNDOFF
from widemargin.solvers.decomposition.pair_step import DualVariables, largest_violation, set_penalties
from widemargin.solvers.decomposition.point import ROUNDINGS_PER_SUM, ROUNDINGS_PER_TERM, Point
from widemargin.solvers.decomposition.scans import scan, set_offsets
from widemargin.solvers.decomposition.starting_point import check_costs, group_sums
from widemargin.solvers.decomposition.stopping import StoppingRule

_N_RESULTS = 11
(
    _STAGE, _DECREASE, _VIOLATION_BEFORE, _VIOLATION, _ROUNDING_BOUND, _GRADIENT_ROUNDING, _GOAL, _MISSING,
    _LARGEST_SUM, _COSTS, _LARGEST_LINEAR,
) = range(_N_RESULTS)  # fmt: skip
_NOT_BEGUN, _NEEDS_ROWS, _IS_UNFINISHED, _IS_DONE = range(4)


class _Arrays(NamedTuple):
    """What the compiled call reads and writes besides the DualVariables.

    `f`, `F`, `rising`, `falling`, `extremes` and `omitted` are those of an ActiveSet; `start`, `row`, `linear` and
    `sums` belong to the problem; `offsets` and `objectives` have an entry for the start and one for the result;
    `totals`, `slots` and `weights` are workspace.
    """

    start: np.ndarray
    row: np.ndarray
    linear: np.ndarray
    sums: np.ndarray
    f: np.ndarray
    F: np.ndarray
    rising: np.ndarray
    falling: np.ndarray
    extremes: np.ndarray
    omitted: np.ndarray
    offsets: np.ndarray
    totals: np.ndarray
    objectives: np.ndarray
    slots: np.ndarray
    weights: np.ndarray


class _Numbers(NamedTuple):
    """The goal and the largest number of pair steps, both also of the finer ones; and numbers of the problem."""

    goal: float
    max_steps: int
    finer_goal: float
    max_finer_steps: int
    bound: float
    offset_order: int
    divides_by_margin: bool


class FirstIteration(Point):
    """The first iteration of a small problem, from its own start.

    Parameters
    ----------
    problem : KernelQP
    settings : KernelSettings
    matrix : WholeKernelMatrix
    steps : tuple
        The largest number of pair steps, and goal and number of those after them.

    Attributes
    ----------
    variables : DualVariables
        Those after the iteration.
    decrease : float
        The decrease of the objective by the iteration.
    """

    def __init__(self, problem, settings, matrix, steps):
        self.problem, self._settings, self._matrix = problem, settings, matrix
        self._begun, self._passes_before = time.perf_counter(), matrix.passes
        self._rule = StoppingRule(settings)
        n_variables, n_rows, n_groups = len(problem.start), problem.K.n_rows, len(problem.ends) - 1
        self.beta, self.linear = problem.start.copy(), problem.linear
        self.lower, self.upper = problem.lower, problem.upper
        self.ends, self.sums = problem.ends, group_sums(problem, problem.start)
        self.diagonal = problem.K.diagonal if matrix.has_one_per_row else problem.K.diagonal[problem.row]
        self.F, gradient, rising, falling = np.empty((4, n_variables))
        f, self.omitted_bound, weights = np.zeros((3, n_rows))
        self._offsets, self._objectives = np.zeros((2, n_groups)), np.empty((2, 3))
        self._result = np.zeros(_N_RESULTS)
        self.variables = DualVariables(
            self.beta, gradient, self.lower, self.upper, self.diagonal, self.ends,
            *np.empty((3, n_variables), np.float32), np.empty((n_groups, 2)),
        )  # fmt: skip
        self._arrays = _Arrays(
            problem.start, problem.row, self.linear, self.sums, f, self.F, rising, falling, np.empty((n_groups, 2)),
            self.omitted_bound, self._offsets, np.empty((2, N_SUMS)), self._objectives, np.empty(n_rows, np.int64),
            weights,
        )  # fmt: skip
        self._numbers = _Numbers(
            self._rule.inner_goal, *steps, float(problem.K.bound), problem.offset_order,
            problem.divides_by_margin,
        )  # fmt: skip

    @property
    def _largest_diagonal(self):
        return float(np.abs(self.problem.K.diagonal).max(initial=0.0))

    def run(self):
        """Take the steps; return the KernelSolution, or None if the problem is not solved by them."""
        matrix, result, direction = self._matrix, self._result, no_direction(len(self.beta))
        workspace = free_workspace(len(self.omitted_bound) if self._numbers.max_finer_steps else 0)
        arguments = self.variables, direction, workspace, self._arrays, self._numbers, result
        while True:
            _iterate(matrix.block, matrix.cache.values, matrix.rows, *arguments)
            if result[_STAGE] != _NEEDS_ROWS:
                break
            matrix.compute_rows(self.variables, int(result[_MISSING]))
        matrix.cache.count_ready()
        check_costs(self.problem, *result[_COSTS : _LARGEST_LINEAR + 1].tolist())
        self.decrease, before, violation, self.rounding_bound = result[_DECREASE : _ROUNDING_BOUND + 1].tolist()
        if result[_STAGE] != _IS_DONE or before <= self._rule.goal or not violation <= self._rule.goal:
            return None
        self._certificates = {1.0: tuple(self._objectives[1].tolist())}
        if self.rounding_matters or not self._rule.is_solved(self, violation):
            return None
        return self._solution(violation)

    def gradient_rounding(self):
        """Return the size of rounding errors in F, as the compiled call has computed it."""
        return float(self._result[_GRADIENT_ROUNDING])

    def largest_sum(self):
        """Return the largest |(K beta)_t|, as the compiled call has computed it."""
        return float(self._result[_LARGEST_SUM])

    def offsets(self):
        """Return the offset of each group."""
        return self._offsets[1]

    def certificate(self, stretch=1.0):
        """Return what `Point.certificate` does; without a stretch, what the compiled call has found."""
        if stretch not in self._certificates:
            self._certificates[stretch] = super().certificate(stretch)
        return self._certificates[stretch]

    def _solution(self, violation):
        """Return the KernelSolution of a problem that is solved."""
        stretch, passes = self._rule.stretch, self._matrix.passes
        seconds = time.perf_counter() - self._begun
        first = self._objectives[0, :2].tolist()
        primal, dual = self.measure(stretch)
        records = [(0, 0.0, self._passes_before, *first, relative_gap(*first))]
        for objective in {1.0: None, stretch: None}:
            values = self.measure(objective)
            records.append((1, seconds, passes, *values, relative_gap(*values)))
        return KernelSolution(
            beta=self.beta,
            offsets=self._offsets[1].copy(),
            primal=primal,
            dual=dual,
            violation=violation,
            n_iter=1,
            n_computed=self._matrix.cache.n_computed,
            status=Status.CONVERGED,
            solver="svmlight",
            history=np.array(records, HISTORY),
            stretch=stretch,
            scale=self._rule.scale,
        )


@compiled
def _iterate(block, values, rows, D, direction, workspace, A, numbers, result):
    """Take pair steps, and measure the start and the result; set `result`.

    `block` is the kernel matrix of the dual variables, `values` that of the rows. Kept true: the sum of each group.
    """
    if result[_STAGE] == _NOT_BEGUN:
        _begin(values, D, A, numbers, result)
    goal, finer_goal = max(numbers.goal, result[_GOAL]), max(numbers.finer_goal, result[_GOAL])
    decrease, missing = optimise_finely(
        block, rows, D, direction, workspace, goal, numbers.max_steps, finer_goal, numbers.max_finer_steps
    )  # fmt: skip
    result[_DECREASE] += decrease
    result[_MISSING] = missing
    if missing >= 0:
        result[_STAGE] = _NEEDS_ROWS
    elif largest_violation(D) <= goal:
        result[_STAGE] = _IS_DONE
        _add_changes(values, A.start, D, A, numbers, result)
        result[_VIOLATION] = _measure(D, A, 1, numbers, result)
    else:
        result[_STAGE] = _IS_UNFINISHED


@compiled
def _begin(values, D, A, numbers, result):
    """Compute f and all that follows from it at the start, and set what the pair steps need."""
    for t in range(D.beta.size):
        D.F[t] = 0.0
        result[_COSTS] += max(abs(D.lower[t]), abs(D.upper[t]))
        result[_LARGEST_LINEAR] = max(result[_LARGEST_LINEAR], abs(A.linear[t]))
    _add_changes(values, D.F, D, A, numbers, result)
    result[_VIOLATION_BEFORE] = _measure(D, A, 0, numbers, result)
    result[_GOAL] = result[_GRADIENT_ROUNDING]
    for t in range(D.beta.size):
        D.F[t] = A.F[t]
    set_penalties(D)


@compiled
def _add_changes(values, before, D, A, numbers, result):
    """Add the kernel rows of the changes of beta to f, and a bound on the rounding errors.

    The bound is that of `addition_error`, plus the rounding of the sums of changes that belong to the same row.
    """
    n_changed, size, largest = 0, 0.0, 0.0
    for i in range(A.f.size):
        A.weights[i], largest = 0.0, max(largest, abs(A.f[i]))
    for t in range(D.beta.size):
        A.weights[np.uint64(A.row[t])] += D.beta[t] - before[t]
        size += abs(D.beta[t] - before[t])
    for i in range(A.f.size):
        if A.weights[i] != 0.0:
            A.slots[n_changed], A.weights[n_changed] = i, A.weights[i]
            n_changed += 1
    if n_changed == 0:
        return
    add_weighted_rows(values, A.slots[:n_changed], A.weights[:n_changed], 0, A.f.size, A.f)
    size *= numbers.bound
    result[_ROUNDING_BOUND] += UNIT_ROUNDOFF * ((0.25 * n_changed + 2.0) * (largest + size) + 5.0 * size)


@compiled
def _measure(D, A, k, numbers, result):
    """Compute the gradient, offsets k and totals k of the dual variables; return the violation, NaN if it overflows."""
    violation = scan(
        A.f, A.row, A.linear, D.beta, D.lower, D.upper, D.ends, A.F, A.rising, A.falling, A.extremes
    )  # fmt: skip
    set_offsets(A.F, D.beta, D.lower, D.upper, D.ends, A.extremes, numbers.offset_order, A.offsets[k])
    size, largest, total, diagonal = 0.0, 0.0, 0.0, 0.0
    for t in range(D.beta.size):
        size += abs(D.beta[t])
        largest = max(largest, abs(A.F[t]))
        total += A.F[t]
        diagonal = max(diagonal, abs(D.diagonal[t]))
    result[_GRADIENT_ROUNDING] = UNIT_ROUNDOFF * (ROUNDINGS_PER_TERM * size * diagonal + ROUNDINGS_PER_SUM * largest)
    result[_LARGEST_SUM] = 0.0
    for t in range(D.beta.size):
        result[_LARGEST_SUM] = max(result[_LARGEST_SUM], abs(A.F[t] - A.linear[t]))
    error = result[_ROUNDING_BOUND]
    if numbers.divides_by_margin:
        error += 2.0 * UNIT_ROUNDOFF * size * numbers.bound
    add_terms(
        A.F, A.linear, D.beta, D.lower, D.upper, D.diagonal, A.row, D.ends, A.sums, A.offsets[k], A.omitted, error,
        1.0, A.totals, A.objectives[k],
    )  # fmt: skip
    return violation if math.isfinite(total) else np.nan
