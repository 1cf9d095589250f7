"""What every solution of a linear problem goes through at its end: full precision if it is small, and the final proof.

Solvers measure themselves on their way, from scores and vectors that they keep up to date by small changes. What is
reported is measured anew, at the weights and the intercept that are returned, with a bound on rounding: for the unit
roundoff u = 2⁻⁵³, a sum of k products in any order is wrong by at most about k u times the sum of their sizes, so that

    scores      |error of s_i| <= L u (|x_i| |w| + |b|)        L stored values in the longest row
    primal      each loss is taken at the worst of s_i ± that error; losses are added up in compensated sums
    X'beta      |error| <= m u Σ |beta_i| |x_i|                 m terms in the longest sum
    dual        |X'beta| |error| + ½ |error|², and a few u for the other sums, which are compensated
    small ones  where this is more than 1e-9 of the objective, or keeps the gap above the tolerance: a few u, by sums
                that are exact, see `exact_sums`
    pairs       risks of all scores together are those of cutting planes, with |target| = 1; the slopes of any plane add
                up to at most 2 C, so that wrong scores cost at most 2 C times the worst of them
    planes      where there is no beta: a plane is wrong by about m u Σ |c_i| (|target_i| + |x_i| |w|), c the slopes
    balance     with a free intercept Σ beta = 0 holds up to a rest r: |r| |b*|, where |b*| <= max |target| + epsilon +
                |x_i| √(2 primal), since some optimal intercept lies at a corner of a loss

All of this is taken off the dual value, so that no gap is smaller than what double precision has proved.
"""

import math
from dataclasses import replace

import numpy as np

from widemargin._runtime.compile import compiled
from widemargin._runtime.threads import run, split
from widemargin.problems.certificates import relative_gap
from widemargin.problems.intercept import best_intercept
from widemargin.problems.losses import loss_and_slope
from widemargin.solvers.contract import Status
from widemargin.solvers.exact_sums import SAFE, exact_sum, precise_dual, precise_primal, precise_scores
from widemargin.solvers.newton.active_set import exact, is_small, is_small_matrix

_UNIT = 2.0**-53
_ROWS_OF_A_TASK = 1 << 17
_FEW_ROUNDINGS = 16.0 * _UNIT  # relative error of a term of a sum, and of a compensated sum
_ROUNDING_THAT_SHOWS = 1e-9  # against the objective
_CLOSER = 0.5  # of the tolerance, when a solution misses it by rounding alone


def finished(problem, solution, settings, resolve=None):
    """Return a solver's Solution of a DualQP, finished: exact if small, measured, with its intercept.

    `resolve(tol, solution)`, if given, carries on from a solution to another tolerance; it is called where only the
    bound on rounding keeps a gap above the tolerance.
    """
    return _with_penalised_intercept(problem, _finished(problem, solution, settings, resolve))


def _finished(problem, solution, settings, resolve):
    best = _measured(problem, _with_free_intercept(problem, solution, settings), settings)
    if best.gap > settings.tol:
        best = _constant_if_that_costs_nothing(problem, best, settings)
    if solution.status not in (Status.CONVERGED, Status.STALLED) or solution.is_exact:
        return _judged(best, settings)
    try:
        if is_small(problem):
            best = _sharpened(problem, best, settings)
        elif resolve is not None and _missed(solution, settings) < best.gap:
            closer = resolve(_CLOSER * settings.tol, solution)
            closer = replace(closer, n_iter=solution.n_iter + closer.n_iter)
            best = _measured(problem, _with_free_intercept(problem, closer, settings), settings)
    except KeyboardInterrupt:
        settings.interrupt.set()
        best = replace(best, status=Status.INTERRUPTED)
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


def _missed(solution, settings):
    """Return the gap above which a solution that its solver called good enough is not."""
    return settings.tol if solution.status is Status.CONVERGED and settings.stopping == "gap" else np.inf


def _judged(solution, settings):
    """Return the solution with a status that its gap bears out."""
    if solution.gap > _missed(solution, settings):
        return replace(solution, status=Status.STALLED)
    if solution.status is Status.STALLED and settings.stopping == "gap" and solution.gap <= settings.tol:
        return replace(solution, status=Status.CONVERGED)
    return solution


def with_intercept(problem, solution, settings):
    """Return the Solution of a DualQP with the value of its intercept, if there is one."""
    return _with_penalised_intercept(problem, _with_free_intercept(problem, solution, settings))


def _with_free_intercept(problem, solution, settings):
    """Return a solution with the best intercept for its weights, if the intercept is not penalised."""
    if not problem.free_intercept:
        return solution
    scores = problem.X.scores(solution.w, settings.n_jobs)
    return replace(solution, intercept=best_intercept(problem, scores))


def _with_penalised_intercept(problem, solution):
    """Return a solution with the intercept that the weight of the constant column makes, if there is one."""
    constant = problem.X.constant
    return replace(solution, intercept=constant * float(solution.w[-1])) if constant else solution


def _sharpened(problem, solution, settings):
    """Return the exact solution, or the given one if that has the smaller gap."""
    with np.errstate(over="ignore", invalid="ignore"):  # beyond double precision the comparison below decides
        found = exact(problem, solution.w, solution.beta)
    if not all(np.isfinite(part).all() for part in found):
        return solution
    sharp = _measured(problem, replace(solution, **found._asdict()), settings)
    return sharp if sharp.gap <= max(solution.gap, settings.tol if settings.stopping == "gap" else 0.0) else solution


def _constant_if_that_costs_nothing(problem, solution, settings):
    """Return w = 0 with the best intercept if its objective is zero, which no relative gap can come close to."""
    zeros = {"w": np.zeros_like(solution.w), "beta": np.zeros(problem.X.n_rows), "dual": 0.0}
    nothing = replace(solution, **zeros, is_exact=True)
    nothing = _measured(problem, _with_free_intercept(problem, nothing, settings), settings)
    return nothing if nothing.primal == 0.0 else solution


def _measured(problem, solution, settings):
    """Return the solution with its objective and its proof measured anew, in the last line of its history too."""
    norms = np.sqrt(problem.X.squared_norms(settings.n_jobs))
    primal, above, of_a_plane = _primal(problem, solution, norms, settings.n_jobs)
    if solution.beta is None:
        dual, below = solution.dual, of_a_plane
    else:
        dual, below = _dual(problem, solution.beta, norms, settings.n_jobs)
    if is_small(problem) and _shows(above + below, primal, dual, settings) and _is_safe(problem, solution):
        primal = precise_primal(problem, solution.w, solution.intercept if problem.free_intercept else 0.0)
        above = _FEW_ROUNDINGS * primal
        if solution.beta is not None:
            dual, size = precise_dual(problem, solution.beta)
            below = _FEW_ROUNDINGS * size
    dual -= above + below
    if problem.free_intercept and solution.beta is not None:
        reach = np.abs(problem.target).max() + problem.epsilon.max() + norms.max() * math.sqrt(2.0 * primal)
        dual -= abs(exact_sum(solution.beta)) * reach
    history = solution.history.copy()
    history[-1]["primal"], history[-1]["dual"] = primal, dual
    history[-1]["gap"] = relative_gap(primal, dual)
    return replace(solution, primal=primal, dual=dual, history=history)


def _shows(rounding, primal, dual, settings):
    """Return whether a bound on rounding is worth being made smaller."""
    if not rounding <= _ROUNDING_THAT_SHOWS * primal:
        return True
    return settings.stopping == "gap" and relative_gap(primal, dual - rounding) > settings.tol >= 0.0


def finished_risk(problem, solution, settings):
    """Return a solver's Solution of a RiskProblem with its objective and its proof measured anew."""
    X, w = problem.X, solution.w
    norms, size = np.sqrt(X.squared_norms(settings.n_jobs)), math.sqrt(float(w @ w))
    steepest = 2.0 * problem.risk.scale  # Σ |c_i| of any plane, at most
    scores = X.scores(w, settings.n_jobs)
    of_scores = steepest * (X.longest_row + 2) * _UNIT * float(norms.max(initial=0.0)) * size
    risk, c = problem.risk.subgradient(scores)
    safe = max(np.abs(w).max(initial=0.0), norms.max(initial=0.0)) < SAFE
    if is_small_matrix(X) and safe and not of_scores <= _ROUNDING_THAT_SHOWS * (0.5 * size**2 + float(risk)):
        scores = precise_scores(X, w)
        of_scores = steepest * _FEW_ROUNDINGS * float(np.abs(scores).max(initial=0.0))
        risk, c = problem.risk.subgradient(scores)
    primal = 0.5 * size**2 + float(risk)
    planes = float(np.abs(c) @ (1.0 + size * norms)) + primal
    dual = solution.dual - of_scores - (X.longest_row + X.longest_sum + 64) * _UNIT * planes
    history = solution.history.copy()
    history[-1]["primal"], history[-1]["dual"] = primal, dual
    history[-1]["gap"] = relative_gap(primal, dual)
    return _judged(replace(solution, primal=primal, dual=dual, history=history), settings)


def finishing_risk(solver):
    """Return a solver of RiskProblems that finishes its solutions."""
    return lambda problem, settings, start=None: finished_risk(problem, solver(problem, settings, start), settings)


def _is_safe(rows, solution):
    """Return whether exact products neither overflow nor lose digits."""
    numbers = [solution.w, rows.target, rows.X.squared_norms()]
    numbers += [] if solution.beta is None else [solution.beta]
    return all(np.abs(part).max(initial=0.0) < SAFE for part in numbers)


def _primal(rows, solution, norms, n_jobs):
    """Return the objective, by how much it may be larger, and how wrong a plane taken there may be."""
    w, b = solution.w, solution.intercept if rows.free_intercept else 0.0
    scores = rows.X.scores(w, n_jobs)
    half_norm = 0.5 * float(w @ w)
    size, unit = math.sqrt(2.0 * half_norm), (rows.X.longest_row + 2) * _UNIT
    loss, worst, plane = _sums(_sum_losses, rows, n_jobs, scores, norms, b, size, unit)
    rounding = _FEW_ROUNDINGS * loss + (len(w) + 2) * _UNIT * half_norm
    return half_norm + loss, max(worst - loss, 0.0) + rounding, (rows.X.longest_sum + 64) * _UNIT * plane


def _dual(rows, beta, norms, n_jobs):
    """Return the dual value of beta, and by how much it may be smaller."""
    v = rows.X.combine(beta, n_jobs)
    half_norm = 0.5 * float(v @ v)
    value, size, length = _sums(_sum_dual, rows, n_jobs, beta, norms)
    error = (rows.X.longest_sum + 2) * _UNIT * length
    rounding = _FEW_ROUNDINGS * size + (len(v) + 2) * _UNIT * half_norm
    return value - half_norm, math.sqrt(2.0 * half_norm) * error + 0.5 * error**2 + rounding


def _sums(function, rows, n_jobs, *arguments):
    """Return the three sums that a loop makes over all rows."""
    numbers = rows.target, rows.lower, rows.upper, rows.curvature, rows.epsilon
    tasks = [(*numbers, *ends, *arguments) for ends in split(len(rows.target), -(-len(rows.target) // _ROWS_OF_A_TASK))]
    return tuple(exact_sum(part) for part in zip(*run(function, tasks, n_jobs), strict=True))


@compiled
def _sum_losses(target, lower, upper, curvature, epsilon, start, stop, scores, norms, intercept, size, unit):
    """Return the sum of the losses, that at the worst scores within rounding, and Σ |c_i| (|target_i| + |x_i| |w|).

    Rows have |x_i| = norms[i], weights |w| = size; a score is wrong by at most `unit` times what is added up for it.
    """
    loss, loss_rest, worst, worst_rest, plane = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(start, stop):
        residual, error = target[i] - (scores[i] + intercept), unit * (norms[i] * size + abs(intercept))
        here, slope = loss_and_slope(residual, lower[i], upper[i], curvature[i], epsilon[i])
        above, _ = loss_and_slope(residual + error, lower[i], upper[i], curvature[i], epsilon[i])
        below, _ = loss_and_slope(residual - error, lower[i], upper[i], curvature[i], epsilon[i])
        loss, loss_rest = _added(loss, loss_rest, here)
        worst, worst_rest = _added(worst, worst_rest, max(above, below))
        plane += abs(slope) * (abs(target[i]) + epsilon[i] + norms[i] * size)
    return loss + loss_rest, worst + worst_rest, plane


@compiled
def _sum_dual(target, lower, upper, curvature, epsilon, start, stop, beta, norms):
    """Return Σ target beta − epsilon |beta| − ½ curvature beta², the sum of its parts' sizes, and Σ |beta| |x|."""
    value, rest, size, length = 0.0, 0.0, 0.0, 0.0
    for i in range(start, stop):
        gain, cost = target[i] * beta[i], abs(beta[i]) * (epsilon[i] + 0.5 * curvature[i] * abs(beta[i]))
        value, rest = _added(value, rest, gain - cost)
        size += abs(gain) + cost
        length += abs(beta[i]) * norms[i]
    return value + rest, size, length


@compiled
def _added(total, rest, number):
    """Return a sum, and what its rounding has lost, with a number added (Neumaier, 1974)."""
    changed = total + number
    if abs(total) >= abs(number):
        rest += (total - changed) + number
    else:
        rest += (number - changed) + total
    return changed, rest
