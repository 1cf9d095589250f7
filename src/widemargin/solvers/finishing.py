"""What every solution of a linear problem goes through at its end: full precision if it is small, and the final proof.

Solvers measure themselves on their way, from scores and vectors that they keep up to date by small changes. What is
reported is measured anew, at the weights and the intercept that are returned, with a bound on rounding: for the unit
roundoff u = 2⁻⁵³, a sum of k products in any order is wrong by at most about k u times the sum of their sizes, so that

    scores      |error of s_i| <= L u (|x_i| |w| + |b|)        L stored values in the longest row
    primal      each loss is taken at the worst of s_i ± that error
    X'beta      |error| <= m u Σ |beta_i| |x_i|                 m terms in the longest sum
    dual        |X'beta| |error| + ½ |error|², and k u for the other sums
    balance     with a free intercept Σ beta = 0 holds up to a rest r: |r| |b*|, where |b*| <= max |target| + epsilon +
                |x_i| √(2 primal), since some optimal intercept lies at a corner of a loss

All of this is taken off the dual value, so that no gap is smaller than what double precision has proved.
"""

import math
from dataclasses import replace

import numpy as np

from widemargin.problems.certificates import relative_gap
from widemargin.problems.forms import FreeIntercept
from widemargin.problems.intercept import best_intercept
from widemargin.solvers.contract import Status
from widemargin.solvers.exact import exact, is_small

_UNIT = 2.0**-53
_BLOCK = 1 << 14  # rows whose losses are computed at once: their numbers stay in the cache
_PAIRWISE = 64.0 * _UNIT  # relative error of NumPy's sum of a block, its products included
_CLOSER = 0.5  # of the tolerance, when a solution misses it by rounding alone


def finished(problem, solution, settings, resolve=None):
    """Return a solver's Solution of a DualQP or FreeIntercept, finished: exact if small, measured, with its intercept.

    `resolve(tol, solution)`, if given, carries on from a solution to another tolerance; it is called where only the
    bound on rounding keeps a gap above the tolerance.
    """
    try:
        best = _measured(problem, with_intercept(problem, solution, settings), settings)
        if solution.status is Status.CONVERGED and is_small(_rows_of(problem).X):
            best = _sharpened(problem, best, settings)
        elif resolve is not None and _missed(solution, settings) < best.gap:
            closer = resolve(_CLOSER * settings.tol, solution)
            closer = replace(closer, n_iter=solution.n_iter + closer.n_iter)
            best = _measured(problem, with_intercept(problem, closer, settings), settings)
    except KeyboardInterrupt:
        settings.interrupt.set()
        return replace(solution, status=Status.INTERRUPTED)
    return _judged(best, settings)


def finishing(solver, starts_from_weights):
    """Return a solver that finishes its solutions; the given one starts from weights, or from dual variables."""

    def solve(problem, settings, start=None):
        def resolve(tol, last):
            return solver(problem, replace(settings, tol=tol), last.w if starts_from_weights else last.beta)

        return finished(problem, solver(problem, settings, start), settings, resolve)

    return solve


def finishing_together(solver):
    """Return a solver of several problems, which it takes and returns as lists, that finishes its solutions."""

    def solve(problems, settings, starts):
        solutions = solver(problems, settings, starts)
        return [finished(*one) for one in zip(problems, solutions, settings, strict=True)]

    return solve


def _rows_of(problem):
    return problem.rows if isinstance(problem, FreeIntercept) else problem


def _missed(solution, settings):
    """Return the gap above which a solution that its solver called good enough is not."""
    return settings.tol if solution.status is Status.CONVERGED and settings.stopping == "gap" else np.inf


def _judged(solution, settings):
    """Return the solution with a status that its gap bears out."""
    if solution.gap > _missed(solution, settings):
        return replace(solution, status=Status.STALLED)
    return solution


def with_intercept(problem, solution, settings):
    """Return a solution with its intercept, if that is not penalised: the best one for its weights."""
    if not isinstance(problem, FreeIntercept):
        return solution
    scores = problem.rows.X.scores(solution.w, settings.n_jobs)
    return replace(solution, intercept=best_intercept(problem.rows, scores))


def _sharpened(problem, solution, settings):
    """Return the exact solution, or the given one if that has the smaller gap."""
    with np.errstate(over="ignore", invalid="ignore"):  # beyond double precision the comparison below decides
        found = exact(problem, solution.w, solution.beta)
    if not all(np.isfinite(part).all() for part in found):
        return solution
    sharp = _measured(problem, replace(solution, **found._asdict()), settings)
    return sharp if sharp.gap <= max(solution.gap, settings.tol if settings.stopping == "gap" else 0.0) else solution


def _measured(problem, solution, settings):
    """Return the solution with its objective and its proof measured anew, in the last line of its history too."""
    rows = _rows_of(problem)
    norms = np.sqrt(rows.X.squared_norms(settings.n_jobs))
    primal, above = _primal(rows, solution, norms, settings.n_jobs)
    if solution.beta is None:
        dual = solution.dual - above
    else:
        dual = _dual(rows, solution.beta, norms, settings.n_jobs) - above
        if isinstance(problem, FreeIntercept):
            reach = np.abs(rows.target).max() + rows.epsilon.max() + norms.max() * math.sqrt(2.0 * primal)
            dual -= abs(math.fsum(solution.beta)) * reach
    history = solution.history.copy()
    history[-1]["primal"], history[-1]["dual"] = primal, dual
    history[-1]["gap"] = relative_gap(primal, dual)
    return replace(solution, primal=primal, dual=dual, history=history)


def _primal(rows, solution, norms, n_jobs):
    """Return the objective, and by how much it may be larger."""
    w, b = solution.w, solution.intercept
    scores = rows.X.scores(w, n_jobs) + b
    half_norm = 0.5 * float(w @ w)
    error = (rows.X.longest_row + 2) * _UNIT * (norms * math.sqrt(2.0 * half_norm) + abs(b))
    losses, worst = [], []
    for first in range(0, len(scores), _BLOCK):
        here = slice(first, first + _BLOCK)
        residual = rows.target[here] - scores[here]
        losses.append(_losses(rows, here, residual).sum())
        either = [_losses(rows, here, residual + sign * error[here]) for sign in (-1.0, 1.0)]
        worst.append(np.maximum(*either).sum())
    loss = math.fsum(losses)
    rounding = _PAIRWISE * loss + (len(w) + 2) * _UNIT * half_norm
    return half_norm + loss, max(math.fsum(worst) - loss, 0.0) + rounding


def _losses(rows, here, residual):
    """Return the losses of some rows at their residuals."""
    beyond = np.sign(residual) * np.maximum(np.abs(residual) - rows.epsilon[here], 0.0)
    curvature, low, high = rows.shift[here], rows.lower[here], rows.upper[here]
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = np.where(beyond == 0.0, 0.0, np.clip(beyond / curvature, low, high))
    return slope * (beyond - 0.5 * curvature * slope)


def _dual(rows, beta, norms, n_jobs):
    """Return a number that the dual value of beta is not below."""
    v = rows.X.combine(beta, n_jobs)
    parts = rows.target * beta, -rows.epsilon * np.abs(beta), -0.5 * rows.shift * beta**2
    half_norm = 0.5 * float(v @ v)
    error = (rows.X.longest_sum + 2) * _UNIT * float(np.abs(beta) @ norms)
    rounding = _PAIRWISE * sum(float(np.abs(part).sum()) for part in parts) + (len(v) + 2) * _UNIT * half_norm
    value = math.fsum(float(part.sum()) for part in parts) - half_norm
    return value - math.sqrt(2.0 * half_norm) * error - 0.5 * error**2 - rounding
