"""The first iteration over all dual variables of a small problem, with what is needed to know whether it suffices.

Most small problems are solved by it, in less time than a few calls of compiled functions from Python take. Therefore
one call takes the pair steps and computes the gradient, its violation, the offsets and the terms of the objectives, at
the start and after the steps. It ends early if kernel rows are needed that are not computed yet, and is then called
again; and if the steps do not reach their goal.
"""

import math
import time
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from widemargin._runtime.compile import compiled
from widemargin.kernels.rows import add_weighted_rows
from widemargin.kernels.single_rows import ready_rows
from widemargin.problems.certificates import relative_gap
from widemargin.solvers.contract import HISTORY, KernelSolution, Status
from widemargin.solvers.decomposition.certificate import N_SUMS, add_terms
from widemargin.solvers.decomposition.conjugate_pairs import Direction, no_direction
from widemargin.solvers.decomposition.free_step import free_workspace, optimise_finely
from widemargin.solvers.decomposition.kernel_sums import UNIT_ROUNDOFF
from widemargin.solvers.decomposition.pair_step import DualVariables, largest_violation, set_penalties
from widemargin.solvers.decomposition.point import ROUNDINGS_PER_SUM, ROUNDINGS_PER_TERM, Point
from widemargin.solvers.decomposition.scans import scan, set_offsets
from widemargin.solvers.decomposition.starting_point import check_costs, group_sums
from widemargin.solvers.decomposition.stopping import StoppingRule

_N_RESULTS = 12
(
    _STAGE, _DECREASE, _VIOLATION_BEFORE, _VIOLATION, _ROUNDING_BOUND, _GRADIENT_ROUNDING, _GOAL, _MISSING,
    _LARGEST_SUM, _COSTS, _LARGEST_LINEAR, _N_STEPS,
) = range(_N_RESULTS)  # fmt: skip
_NOT_BEGUN, _NEEDS_ROWS, _IS_UNFINISHED, _IS_DONE = range(4)
_WORK_PER_CALL = 2e6  # pair steps times dual variables, about five milliseconds, so that Ctrl-C is noticed
_BETA, _START, _LINEAR, _LOWER, _UPPER, _DIAGONAL, _GRADIENT, _F, _RISING, _FALLING = range(10)
_N_NUMBERS = 10  # of each dual variable


class _Memory(NamedTuple):
    """What compiled calls read and write: few arrays, since each takes time to be passed, in which problems follow
    one another.

    `of_variables` (10, n) are the numbers of each dual variable by the names above, `penalties` (3, n) those of
    DualVariables and their gain, `row` (n,) the rows; `of_rows` (3, n_rows) are f, omitted and weights of `_Arrays`.
    The others have an entry for each problem: `ends`; `of_groups` (3, n_groups), its sums and the two offsets;
    `extremes` (2, n_groups, 2), those of DualVariables and of an ActiveSet; `objectives`, `result` and `limits`, which
    are the number of pair steps, goal and number of the finer ones, and the bound of kernel values. `slots` and
    `totals` are workspace of the largest problem.
    """

    of_variables: np.ndarray
    penalties: np.ndarray
    row: np.ndarray
    of_rows: np.ndarray
    ends: np.ndarray
    of_groups: np.ndarray
    extremes: np.ndarray
    objectives: np.ndarray
    result: np.ndarray
    limits: np.ndarray
    slots: np.ndarray
    totals: np.ndarray


def memory_of(problems, steps):
    """Return the memory for the first iterations of problems with equally many groups.

    `steps` has for each problem the largest number of pair steps, and goal and number of those after them.
    """
    n_problems, n_groups = len(problems), len(problems[0].ends) - 1
    n_rows = [problem.K.n_rows for problem in problems]
    row = problems[0].row if n_problems == 1 else np.concatenate([problem.row for problem in problems])
    memory = _Memory(
        np.empty((_N_NUMBERS, len(row))), np.empty((3, len(row)), np.float32), row, np.zeros((3, sum(n_rows))),
        np.empty((n_problems, n_groups + 1), np.int64), np.zeros((n_problems, 3, n_groups)),
        np.empty((n_problems, 2, n_groups, 2)), np.empty((n_problems, 2, 3)), np.zeros((n_problems, _N_RESULTS)),
        np.array([(*one, problem.K.bound) for one, problem in zip(steps, problems, strict=True)], np.float64),
        np.empty(max(n_rows), np.int64), np.empty((2, N_SUMS)),
    )  # fmt: skip
    begin = 0
    for k, problem in enumerate(problems):
        numbers = memory.of_variables[:, begin : begin + len(problem.start)]
        numbers[_BETA] = numbers[_START] = problem.start
        numbers[_LINEAR], numbers[_LOWER], numbers[_UPPER] = problem.linear, problem.lower, problem.upper
        diagonal = problem.K.diagonal
        numbers[_DIAGONAL] = diagonal if len(diagonal) == numbers.shape[1] else diagonal[problem.row]
        memory.ends[k], memory.of_groups[k, 0] = problem.ends, group_sums(problem, problem.start)
        begin += len(problem.start)
    return memory


class _Arrays(NamedTuple):
    """What the compiled steps of a problem read and write besides the DualVariables.

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
    """The goal of the pair steps, and numbers that all problems have in common."""

    goal: float
    offset_order: int
    divides_by_margin: bool


class FirstIteration(Point):
    """The first iteration of a small problem, from its own start.

    Parameters
    ----------
    problem : KernelQP
    settings : KernelSettings
    memory : _Memory
        That of several problems or of this one.
    k, begin, row_begin : int
        The place of the problem in the memory: its number, and those of its first dual variable and of its first row.
    """

    def __init__(self, problem, settings, memory, k=0, begin=0, row_begin=0):
        self.problem, self._memory, self._k = problem, memory, k
        self._begun, self._rule = time.perf_counter(), StoppingRule(settings)
        self._place = slice(begin, begin + len(problem.start))
        numbers = self._numbers = memory.of_variables[:, self._place]
        self.beta, self.F, self.diagonal = numbers[_BETA], numbers[_F], numbers[_DIAGONAL]
        self.linear, self.lower, self.upper = problem.linear, problem.lower, problem.upper
        self.ends, self.sums = problem.ends, memory.of_groups[k, 0]
        self.omitted_bound = memory.of_rows[1, row_begin : row_begin + problem.K.n_rows]
        self._offsets, self._objectives, self._result = memory.of_groups[k, 1:], memory.objectives[k], memory.result[k]
        self._certificates = {}

    @property
    def variables(self):
        """The DualVariables after the iteration."""
        numbers, penalties = self._numbers, self._memory.penalties[:, self._place]
        return DualVariables(
            self.beta, numbers[_GRADIENT], self.lower, self.upper, self.diagonal, self.ends, *penalties,
            self._memory.extremes[self._k, 0],
        )  # fmt: skip

    @property
    def has_begun(self):
        """Whether the compiled call has come to this problem."""
        return self._result[_STAGE] != _NOT_BEGUN

    @property
    def decrease(self):
        """The decrease of the objective by the iteration."""
        return float(self._result[_DECREASE])

    @property
    def _largest_diagonal(self):
        return float(np.abs(self.problem.K.diagonal).max(initial=0.0))

    def run(self, matrix):
        """Take the steps with a WholeKernelMatrix; return the KernelSolution, or None if they do not suffice."""
        memory, result, passes = self._memory, self._result, matrix.passes
        workspace = free_workspace(len(self.omitted_bound) if memory.limits[0, 2] else 0)
        arguments = memory, no_direction(len(self.beta)), workspace, _numbers_of(self.problem, self._rule)
        while True:
            _iterate_one(matrix.block, matrix.cache.values, matrix.rows, *arguments)
            if result[_STAGE] != _NEEDS_ROWS:
                break
            matrix.compute_rows(self.variables, int(result[_MISSING]))
        matrix.cache.count_ready()
        return self.solution(matrix.cache.n_computed, passes, matrix.passes)

    def solution(self, n_computed=0.0, passes_before=0.0, passes=0.0):
        """Return the KernelSolution, or None if the problem is not solved by the steps that were taken."""
        stage, _, before, violation, self.rounding_bound, *_, costs, largest_linear, _ = self._result.tolist()
        check_costs(self.problem, costs, largest_linear)
        if stage != _IS_DONE or before <= self._rule.goal or not violation <= self._rule.goal:
            return None
        start, end = self._objectives.tolist()
        self._certificates[1.0] = tuple(end)
        if self.rounding_matters or not self._rule.is_solved(self, violation):
            return None
        stretch, seconds = self._rule.stretch, time.perf_counter() - self._begun
        primal, dual = self.measure(stretch)
        records = [(0, 0.0, passes_before, *start[:2], relative_gap(*start[:2]))]
        for objective in {1.0: None, stretch: None}:
            values = self.measure(objective)
            records.append((1, seconds, passes, *values, relative_gap(*values)))
        return KernelSolution(
            beta=self.beta.copy(),
            offsets=self._offsets[1].copy(),
            primal=primal,
            dual=dual,
            violation=violation,
            n_iter=1,
            n_computed=n_computed,
            status=Status.CONVERGED,
            solver="svmlight",
            history=np.array(records, HISTORY),
            stretch=stretch,
            scale=self._rule.scale,
        )

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


class FirstIterations:
    """The first iterations of several small problems whose kernel matrices are parts of one in memory.

    Parameters
    ----------
    problems : list of KernelQP
        With a MatrixPart of the same matrix each, equally many groups, and a dual variable for each row.
    settings : list of KernelSettings
        Which differ only in what does not concern an iteration.
    steps : list of tuples
        As in `memory_of`.

    Attributes
    ----------
    each : list of FirstIteration
    """

    def __init__(self, problems, settings, steps):
        self._memory = memory = memory_of(problems, steps)
        self._places = np.concatenate([problem.K.places for problem in problems])
        self._begins = begins = [0, *accumulate(len(problem.start) for problem in problems)]
        places = [(memory, k, begin, begin) for k, begin in enumerate(begins[:-1])]
        self.each = [FirstIteration(*one, *place) for *one, place in zip(problems, settings, places, strict=True)]
        self._source = problems[0].K.source
        self._numbers = _numbers_of(problems[0], StoppingRule(settings[0]))
        self._n_largest = max(len(problem.start) for problem in problems)

    def run(self):
        """Take the steps of all problems, a few milliseconds in each compiled call."""
        n_largest, k, begins = self._n_largest, 0, np.array(self._begins)
        finely = self._memory.limits[:, 2] > 0.0
        workspace = free_workspace(int(np.diff(begins)[finely].max(initial=0)))
        block, rows = np.empty(n_largest * n_largest), ready_rows(n_largest, self._source.dtype)
        arguments = self._source, self._places, begins, block, rows, self._memory, no_direction(n_largest)
        while k < len(self.each):
            k = _iterate_parts(*arguments, workspace, self._numbers, k, _WORK_PER_CALL)


def _numbers_of(problem, rule):
    """Return the _Numbers of a problem and a StoppingRule."""
    return _Numbers(rule.inner_goal, problem.offset_order, problem.divides_by_margin)


@compiled
def _iterate_parts(source, places, begins, block, rows, memory, direction, workspace, numbers, k, max_work):
    """Iterate over problem k and those after it, until `max_work` is done; return the number of the next one.

    A problem whose dual variables are not in the order of its rows is left out.
    """
    work = 0.0
    while k < begins.size - 1 and work < max_work:
        begin, end = begins[k], begins[k + 1]
        n_rows, is_ordered = end - begin, True
        values = block[: n_rows * n_rows].reshape((n_rows, n_rows))
        for a in range(n_rows):
            is_ordered &= memory.row[begin + a] == a
            line, target = source[np.uint64(places[begin + a])], values[np.uint64(a)]
            for b in range(n_rows):
                target[b] = line[np.uint64(places[begin + b])]
        if is_ordered:
            of_problem = Direction(
                direction.v[:n_rows], direction.h[:n_rows], direction.members[:n_rows], direction.is_member[:n_rows]
            )
            D, A = _variables_of(memory, k, begin, end), _arrays_of(memory, k, begin, end, begin, end)
            _iterate(values, values, rows, D, of_problem, workspace, A, numbers, memory.limits[k], memory.result[k])
            work += memory.result[k, _N_STEPS] * n_rows
        work += n_rows * n_rows
        k += 1
    return k


@compiled
def _iterate_one(block, values, rows, memory, direction, workspace, numbers):
    """Iterate over the only problem in the memory; see `_iterate`."""
    n_variables, n_rows = memory.of_variables.shape[1], memory.of_rows.shape[1]
    D, A = _variables_of(memory, 0, 0, n_variables), _arrays_of(memory, 0, 0, n_variables, 0, n_rows)
    _iterate(block, values, rows, D, direction, workspace, A, numbers, memory.limits[0], memory.result[0])


@compiled
def _variables_of(memory, k, begin, end):
    """Return the DualVariables of problem k."""
    numbers, penalties = memory.of_variables, memory.penalties
    return DualVariables(
        numbers[_BETA, begin:end], numbers[_GRADIENT, begin:end], numbers[_LOWER, begin:end],
        numbers[_UPPER, begin:end], numbers[_DIAGONAL, begin:end], memory.ends[k], penalties[0, begin:end],
        penalties[1, begin:end], penalties[2, begin:end], memory.extremes[k, 0],
    )  # fmt: skip


@compiled
def _arrays_of(memory, k, begin, end, row_begin, row_end):
    """Return the _Arrays of problem k."""
    numbers, of_rows = memory.of_variables, memory.of_rows
    return _Arrays(
        numbers[_START, begin:end], memory.row[begin:end], numbers[_LINEAR, begin:end], memory.of_groups[k, 0],
        of_rows[0, row_begin:row_end], numbers[_F, begin:end], numbers[_RISING, begin:end],
        numbers[_FALLING, begin:end], memory.extremes[k, 1], of_rows[1, row_begin:row_end], memory.of_groups[k, 1:],
        memory.totals, memory.objectives[k], memory.slots, of_rows[2, row_begin:row_end],
    )  # fmt: skip


@compiled
def _iterate(block, values, rows, D, direction, workspace, A, numbers, limits, result):
    """Take pair steps, and measure the start and the result; set `result`.

    `block` is the kernel matrix of the dual variables, `values` that of the rows. Kept true: the sum of each group.
    """
    bound = limits[3]
    if result[_STAGE] == _NOT_BEGUN:
        _begin(values, D, A, numbers, bound, result)
    goal, finer_goal = max(numbers.goal, result[_GOAL]), max(limits[1], result[_GOAL])
    decrease, missing, n_steps = optimise_finely(
        block, rows, D, direction, workspace, goal, int(limits[0]), finer_goal, int(limits[2])
    )  # fmt: skip
    result[_DECREASE] += decrease
    result[_N_STEPS] += n_steps
    result[_MISSING] = missing
    if missing >= 0:
        result[_STAGE] = _NEEDS_ROWS
    elif largest_violation(D) <= goal:
        result[_STAGE] = _IS_DONE
        _add_changes(values, A.start, D, A, bound, result)
        result[_VIOLATION] = _measure(D, A, 1, numbers, bound, result)
    else:
        result[_STAGE] = _IS_UNFINISHED


@compiled
def _begin(values, D, A, numbers, bound, result):
    """Compute f and all that follows from it at the start, and set what the pair steps need."""
    for t in range(D.beta.size):
        D.F[t] = 0.0
        result[_COSTS] += max(abs(D.lower[t]), abs(D.upper[t]))
        result[_LARGEST_LINEAR] = max(result[_LARGEST_LINEAR], abs(A.linear[t]))
    _add_changes(values, D.F, D, A, bound, result)
    result[_VIOLATION_BEFORE] = _measure(D, A, 0, numbers, bound, result)
    result[_GOAL] = result[_GRADIENT_ROUNDING]
    for t in range(D.beta.size):
        D.F[t] = A.F[t]
    set_penalties(D)


@compiled
def _add_changes(values, before, D, A, bound, result):
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
    size *= bound
    result[_ROUNDING_BOUND] += UNIT_ROUNDOFF * ((0.25 * n_changed + 2.0) * (largest + size) + 5.0 * size)


@compiled
def _measure(D, A, k, numbers, bound, result):
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
        error += 2.0 * UNIT_ROUNDOFF * size * bound
    add_terms(
        A.F, A.linear, D.beta, D.lower, D.upper, D.diagonal, A.row, D.ends, A.sums, A.offsets[k], A.omitted, error,
        1.0, A.totals, A.objectives[k],
    )  # fmt: skip
    return violation if math.isfinite(total) else np.nan
