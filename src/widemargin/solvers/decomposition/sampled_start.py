"""A start from the solution for a random sample of the rows, for one-class machines, which cannot start from zero.

The sum of their dual variables is fixed, almost all of those that are not zero end at their upper bounds, and which
ones do is known roughly from few rows: the problem of an eighth of the rows, whose bounds are multiplied so that they
have the same sum, has nearly the same decision function. Its gradient F at all rows gives the start, the feasible beta
that minimises F'beta:

    beta_t = upper_t  if F_t < r,   lower_t  if F_t > r,   in between for one t, so that the sum is right

The sample itself starts likewise, from an eighth of it. The smallest sample starts from the gradient at dual variables
that are all the same part of their intervals, which is the density of its rows.
"""

import time
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from widemargin._runtime.threads import single_threaded_blas
from widemargin.solvers.contract import changed
from widemargin.solvers.decomposition.starting_point import group_sums
from widemargin.solvers.decomposition.stopping import Deadline, WithinViolation

_MIN_ROWS = 2048  # of a problem that has a sample
_MIN_NONZERO = 256  # dual variables of a feasible start; with fewer, the sample takes as long as it saves (measured)
_ROWS_PER_SAMPLED_ROW = 8
_VIOLATION_RATIO = 1e-3  # of the sample, relative to the range of the gradient at its start
_MAX_ITERATIONS = 400  # working sets


class SampledStart(NamedTuple):
    """Feasible dual variables, and the number of kernel rows that were computed for them."""

    beta: np.ndarray
    n_computed: float


def sampled_start(problem, settings, decomposition):
    """Return a SampledStart for a KernelQP or None, and settings with the time that is left.

    Problems that have few rows or support vectors, have several groups or can start from zero have none, nor is there
    one if the time is over or the solver is interrupted.

    Parameters
    ----------
    problem : KernelQP
    settings : KernelSettings
    decomposition : class
        The method that solves the sample, which is `svmlight`'s.
    """
    is_large = problem.K.n_rows >= _MIN_ROWS and np.count_nonzero(problem.start) >= max(_MIN_NONZERO, 1)
    if not (is_large and len(problem.ends) == 2 and problem.K.kernel.from_products):
        return None, settings
    begun, found = time.perf_counter(), None
    try:
        with single_threaded_blas():
            found = _from_sample(problem, settings, decomposition, Deadline(settings).is_over)
    except KeyboardInterrupt:
        settings.interrupt.set()
    if settings.max_seconds is None:
        return found, settings
    return found, changed(settings, max_seconds=max(0.0, settings.max_seconds - (time.perf_counter() - begun)))


def _from_sample(problem, settings, decomposition, is_over):
    """Return the SampledStart of a problem that has a sample, or None if the time is over."""
    rows = np.sort(random_rows(problem, problem.K.n_rows // _ROWS_PER_SAMPLED_ROW))
    part, chosen = _sample(problem, rows)
    has_sample = part.K.n_rows >= _MIN_ROWS
    start = _from_sample(part, settings, decomposition, is_over) if has_sample else _from_density(part)
    if start is None:
        return None
    method = decomposition(part, changed(settings, certify=False), start.beta)
    method.state.scan()
    method.rule = WithinViolation(_VIOLATION_RATIO * np.ptp(method.state.F))
    while method.iteration < _MAX_ITERATIONS and method.status() is None:
        if is_over():
            return None
        method.iterate()
    method.state.unshrink()
    beta = np.zeros(len(problem.start))
    beta[chosen] = method.state.beta
    n_computed = start.n_computed + method.state.n_computed
    return _vertex_at(problem, beta, n_computed * part.K.n_rows / problem.K.n_rows)


def _sample(problem, rows):
    """Return the problem of some rows, whose bounds are multiplied to keep the sum, and its dual variables."""
    position = np.full(problem.K.n_rows, -1)
    position[rows] = np.arange(len(rows))
    chosen = np.flatnonzero(position[problem.row] >= 0)
    lower, upper = problem.lower[chosen], problem.upper[chosen]
    length = np.sum(upper - lower)
    factor = np.sum(problem.upper - problem.lower) / length if length > 0.0 else 1.0
    part = replace(
        problem,
        K=problem.K.restricted(rows),
        row=position[problem.row[chosen]],
        linear=problem.linear[chosen],
        lower=factor * lower,
        upper=factor * upper,
        ends=np.array([0, len(chosen)]),
        start=np.zeros(len(chosen)),
    )
    return replace(part, start=_vertex(part, part.start, group_sums(problem, problem.start)[0])), chosen


def _from_density(problem):
    """Return the SampledStart by the gradient at dual variables that are all the same part of their intervals."""
    length = problem.upper - problem.lower
    part = (problem.start.sum() - problem.lower.sum()) / length.sum() if length.any() else 0.0
    return _vertex_at(problem, problem.lower + part * length, 0.0)


def _vertex_at(problem, beta, n_computed):
    """Return the SampledStart by the gradient at `beta`, for which so many kernel rows have been computed."""
    K, f = problem.K, np.zeros(problem.K.n_rows)
    weights = np.bincount(problem.row, beta, minlength=K.n_rows)
    nonzero = np.flatnonzero(weights)
    K.add(nonzero, weights[nonzero], K.columns(), f)
    total = group_sums(problem, problem.start)[0]
    return SampledStart(_vertex(problem, f[problem.row] + problem.linear, total), n_computed + len(nonzero))


def _vertex(problem, F, total):
    """Return the dual variables within bounds, of this sum, that minimise F'beta."""
    order = np.argsort(F, kind="stable")
    lower, upper = problem.lower[order], problem.upper[order]
    before = lower.sum() + np.cumsum(upper - lower) - (upper - lower)
    beta = np.empty(len(F))
    beta[order] = np.clip(lower + (total - before), lower, upper)
    return beta


def random_rows(problem, size):
    """Return random rows, half of them with a dual variable that can be positive, if there are enough of each kind."""
    random = np.random.default_rng(0)
    can_be_positive = np.zeros(problem.K.n_rows, bool)
    can_be_positive[problem.row[problem.upper > 0]] = True
    fewer, more = sorted((np.flatnonzero(can_be_positive), np.flatnonzero(~can_be_positive)), key=len)
    n_fewer = min(len(fewer), size // 2)
    return np.concatenate(
        [random.choice(fewer, n_fewer, replace=False), random.choice(more, size - n_fewer, replace=False)]
    )
