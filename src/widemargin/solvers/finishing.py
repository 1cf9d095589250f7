"""The last step of every linear solver: full precision for small problems, and a certificate that includes rounding.

Solvers estimate their gap from scores and vectors that they update by small changes. Here the primal and the dual
objective are computed anew, at the weights and the intercept that are returned, together with bounds on their rounding
errors. With the unit roundoff u = 2⁻⁵³, a sum of k products has an error of at most about k u times the sum of their
absolute values, in any order of summation. Hence:

    scores            |error of s_i| <= L u (|x_i| |w| + |b|), where the longest row has L stored values
    primal objective  each loss is taken at the worst score within s_i ± error; losses are added by compensated sums
    X'beta            |error| <= m u Σ |beta_i| |x_i|, where the longest sum has m terms
    dual objective    |X'beta| |error| + ½ |error|², and a few u for the other sums, which are compensated
    small problems    if these bounds exceed 1e-9 of the objective, or keep the gap above the tolerance, the sums are
                      computed exactly (see `exact_sums`), with errors of a few u
    cutting planes    without beta: a plane of subgradient c has an error of about m u Σ |c_i| (|target_i| + |x_i| |w|)
    risks of pairs    the targets are 1 and −1, and Σ |c_i| <= 2 C for every plane (4 C of average precision), so that
                      errors of the scores change the risk by at most 2 C times the largest of them
    free intercept    if Σ beta − dual_sum = r instead of 0, the dual objective is a bound up to |r| |b*|. Some optimal
                      intercept b* is at a corner of a loss, which bounds it (`error_of_imbalance`)

All these bounds are subtracted from the dual objective, so that the reported gap holds in spite of rounding.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from widemargin._runtime.place import HERE
from widemargin._runtime.threads import run, split
from widemargin.problems.certificates import losses, relative_gap
from widemargin.problems.intercept import best_intercept
from widemargin.problems.losses import error_of_imbalance
from widemargin.problems.row_risk import norms_of, product_of_sizes
from widemargin.solvers.certificate_sums import (
    ROWS_ADDED_PLAINLY,
    sum_dual,
    sum_losses,
    sum_smooth_dual,
    sum_smooth_losses,
)
from widemargin.solvers.contract import HISTORY, Solution, Status, changed
from widemargin.solvers.coordinate_descent.state import half_square
from widemargin.solvers.exact_sums import MAX_FACTOR, exact_sum, precise_dual, precise_primal, precise_scores
from widemargin.solvers.newton.active_set import is_small, is_small_matrix, solve_exactly

_UNIT_ROUNDOFF = 2.0**-53
_COMPENSATED_SUM_ERROR = 16.0 * _UNIT_ROUNDOFF  # relative error of a term of a sum, and of a compensated sum
_NEGLIGIBLE_ROUNDING = 1e-9  # bound on rounding, relative to the objective, up to which exact sums are not needed
_RETRY_TOL_FRACTION = 0.5  # of the tolerance, which a solver is asked for if rounding alone keeps the gap above it
_FEW_ROWS = 1 << 12  # of which dual variables are summed exactly
_PAIRWISE_SUM_ERROR = 64.0 * _UNIT_ROUNDOFF  # of NumPy's sums, relative to the sum of the sizes of up to 2⁵⁰ numbers
_MAX_ENTRIES_TO_REFINE = 1 << 13  # of X, up to which one-class machines are solved to full precision
_ROWS_PER_TASK = 1 << 17
_MAX_TERMS_OF_ONE_BLAS_THREAD = 1 << 13  # of a sum that no BLAS shares among threads


def finished(problem, solution, settings, resolve=None):
    """Return a solver's Solution of a DualQP with its intercept and a certificate that includes rounding errors.

    Small problems are solved to full precision first.

    Parameters
    ----------
    problem : DualQP
    solution : Solution
    settings : Settings
    resolve : function or None
        `resolve(tol, solution)` continues from a solution to another tolerance. It is called if only the bound on
        rounding errors keeps the gap above the tolerance.
    """
    return with_penalised_intercept(problem, _finished(problem, solution, settings, resolve))


def _finished(problem, solution, settings, resolve):
    if _ends_at_once(problem, solution):
        return solution
    best = _certified(problem, solution, settings)
    if best.gap > settings.tol or (problem.dual_sum and best.primal > 0.0):
        best = _constant_if_objective_is_zero(problem, best, settings)
    if solution.status not in (Status.CONVERGED, Status.STALLED) or solution.is_exact:
        return _with_true_status(best, settings)
    try:
        if is_small(problem) and not _suffices(problem, best, settings):
            best = _at_full_precision(problem, best, settings)
        elif resolve is not None and best.gap > _largest_gap_of(solution, settings):
            closer = resolve(_RETRY_TOL_FRACTION * settings.tol, solution)
            closer = changed(closer, n_iter=solution.n_iter + closer.n_iter)
            best = _certified(problem, closer, settings)
    except KeyboardInterrupt:
        settings.interrupt.set()
        best = changed(best, status=Status.INTERRUPTED)
    return _with_true_status(best, settings)


def _suffices(problem, solution, settings):
    """Return whether a solution of a small problem is not refined: the pairs of a one-class machine take less time."""
    return problem.dual_sum and problem.X.n_entries > _MAX_ENTRIES_TO_REFINE and solution.gap <= settings.tol


def _ends_at_once(problem, solution):
    """Return whether an interrupted solution is returned with the bounds that its solver has measured.

    A certificate that includes rounding errors takes a pass over the rows. Whoever presses Ctrl-C does not want to wait
    for it if the rows are on disk. The intercept is that of the solver, too.
    """
    return solution.status is Status.INTERRUPTED and not problem.X.is_in_memory


def finishing(solver, name, starts_from_weights):
    """Return a solver whose solutions are `finished`; the given one starts from weights, or from dual variables."""

    def solve(problem, settings, start=None):
        def resolve(tol, last):
            return solver(problem, changed(settings, tol=tol), last.w if starts_from_weights else last.beta)

        found = _unless_interrupted(lambda: [solver(problem, settings, start)], name, [problem], [settings])
        return finished(problem, found[0], settings, resolve)

    return solve


def finishing_together(solver, name):
    """Return a solver of lists of problems whose solutions are `finished`."""

    def solve(problems, settings, starts):
        solutions = _unless_interrupted(lambda: solver(problems, settings, starts), name, problems, settings)
        return [finished(*one) for one in zip(problems, solutions, settings, strict=True)]

    return solve


def _unless_interrupted(solve, name, problems, settings):
    """Return the solutions of problems, or zeros if Ctrl-C comes before there are any and the rows are on disk.

    Solutions of earlier problems, one per class for instance, are kept by that. If there are none, KeyboardInterrupt
    is raised.
    """
    on_disk, interrupt = not problems[0].X.is_in_memory, settings[0].interrupt
    if not (on_disk and interrupt.is_set()):
        try:
            return solve()
        except KeyboardInterrupt:
            if not on_disk or settings[0].task == 0:
                raise
            interrupt.set()
    return [_at_zero(problem, name) for problem in problems]


def _loss_at_zero(problem):
    """Return the sum of the losses at w = 0."""
    return float(losses(problem, np.zeros(problem.X.n_rows)).sum())


def _at_zero(problem, solver):
    """Return the solution w = 0 of a problem, whose bounds need no rows."""
    X = problem.X
    primal, (beta, dual) = float(X.place.total(_loss_at_zero, problem)), problem.trivial_bound
    gap = relative_gap(primal, dual, problem.objective_scale)
    history = np.array([(0, 0.0, 0.0, primal, dual, gap)], dtype=HISTORY)
    w = np.zeros(X.n_columns)
    return Solution(w, beta, primal, dual, 0, Status.INTERRUPTED, solver, history, scale=problem.objective_scale)


def _largest_gap_of(solution, settings):
    """Return the largest gap that is consistent with the status of a solution."""
    return settings.tol if solution.status is Status.CONVERGED and settings.stopping == "gap" else np.inf


def _with_true_status(solution, settings):
    """Return a solution whose status is CONVERGED or STALLED as its certified gap says."""
    if solution.gap > _largest_gap_of(solution, settings):
        return changed(solution, status=Status.STALLED)
    if solution.status is Status.STALLED and settings.stopping == "gap" and solution.gap <= settings.tol:
        return changed(solution, status=Status.CONVERGED)
    return solution


def with_penalised_intercept(problem, solution):
    """Return a solution whose intercept is the value of the constant column times its weight, if there is one."""
    constant = problem.X.constant
    return changed(solution, intercept=constant * float(solution.w[-1])) if constant else solution


def _at_full_precision(problem, solution, settings):
    """Return the solution of a small problem to full precision, or the given one if that has the smaller gap."""
    with np.errstate(over="ignore", invalid="ignore"):  # overflow is detected by the comparison below
        found = solve_exactly(problem, solution.w, solution.beta)
    if not all(np.isfinite(part).all() for part in found):
        return solution
    refined = _certified(problem, changed(solution, **found._asdict()), settings, keeps_intercept=True)
    acceptable_gap = max(solution.gap, settings.tol if settings.stopping == "gap" else 0.0)
    return refined if refined.gap <= acceptable_gap else solution


def _constant_if_objective_is_zero(problem, solution, settings):
    """Return w = 0 with the best intercept if its objective is zero, otherwise the given solution.

    If the optimum is zero, the relative gap of any other solution is 1 or more, however small its objective is. No
    objective is below zero, unless there is a `dual_sum`.
    """
    if problem.X.place is not HERE:
        return solution
    zeros = {"w": np.zeros_like(solution.w)}
    if not problem.dual_sum:  # then the dual variables zero are feasible, and optimal
        zeros |= {"beta": np.zeros(problem.X.n_rows), "dual": 0.0, "is_exact": True}
    constant = _certified(problem, changed(solution, **zeros), settings)
    return constant if constant.primal == 0.0 <= solution.primal else solution


def _certified(problem, solution, settings, *, keeps_intercept=False):
    """Return a solution with primal and dual objective computed anew, less rounding, here and in its history.

    An intercept that is not penalised becomes the best one for the weights, unless it is to be kept. All takes one pass
    over the rows.
    """
    solution, sums = _sums_of(problem, solution, settings.n_jobs, keeps_intercept)
    primal, primal_error, plane_error = _primal(problem, solution, sums)
    if solution.beta is None:
        dual, dual_error = solution.dual, plane_error
    else:
        dual, dual_error = _dual(problem, sums)
    needs_exact_sums = _is_significant(primal_error + dual_error, primal, dual, solution.scale, settings)
    if needs_exact_sums and is_small(problem) and _has_exact_products(problem, solution):
        primal = precise_primal(problem, solution.w, solution.intercept if problem.free_intercept else 0.0)
        primal_error = _COMPENSATED_SUM_ERROR * (abs(primal) + 2.0 * abs(problem.dual_sum * solution.intercept))
        if solution.beta is not None:
            dual, size = precise_dual(problem, solution.beta)
            dual_error = _COMPENSATED_SUM_ERROR * size
    dual -= primal_error + dual_error
    if problem.free_intercept and solution.beta is not None:
        target, norm = _intercept_numbers(problem, settings.n_jobs)
        w_norm = math.sqrt(_square(solution.w))
        dual -= error_of_imbalance(_imbalance(problem, sums), primal - dual, w_norm, target, norm)
    return _with_bounds(solution, primal, dual)


def _intercept_numbers(problem, n_jobs):
    """Return t and n such that some optimal free intercept is at most t + n |w|: see `error_of_imbalance`.

    With an entropy the losses have no corners. Let the costs of rows with upper > 0 sum to P, those of the others to N.
    If b exceeds all |s_i| + |target_i| by x entropy, the sum of all dual variables is zero only if exp(x) <= P / N.
    """
    target, epsilon, norm = problem.X.place.largest(_largest_numbers, problem, n_jobs)
    if problem.entropy:
        above, below = problem.X.place.total(_side_sums, problem)
        with np.errstate(divide="ignore"):
            target += problem.entropy * abs(np.log(above) - np.log(below))
    return float(target + epsilon), norm


def _side_sums(problem):
    """Return Σ upper and Σ −lower."""
    return np.array([problem.upper.sum(), -problem.lower.sum()])


def _imbalance(problem, sums):
    """Return a bound on |Σ beta − dual_sum|.

    The problems of parts that are elsewhere know nothing of `dual_sum`, which is a number of all rows.
    """
    rounding = _PAIRWISE_SUM_ERROR if problem.X.n_rows > _FEW_ROWS else 0.0
    if problem.X.place is HERE:
        return abs(sums.beta_sum) + rounding * sums.beta_size
    rounding += problem.X.n_parts * _UNIT_ROUNDOFF
    return abs(sums.beta_sum - problem.dual_sum) + rounding * sums.beta_size


def _with_bounds(solution, primal, dual):
    """Return a solution with these objectives, which also replace those of the last entry of its history."""
    history = solution.history.copy()
    last = history[-1]
    last["primal"], last["dual"], last["gap"] = primal, dual, relative_gap(primal, dual, solution.scale)
    return changed(solution, primal=primal, dual=dual, history=history)


def _is_significant(rounding, primal, dual, scale, settings):
    """Return whether a bound on rounding is large against the objective, or keeps the gap above the tolerance."""
    if not rounding <= _NEGLIGIBLE_ROUNDING * max(abs(primal), scale):
        return True
    return settings.stopping == "gap" and relative_gap(primal, dual - rounding, scale) > settings.tol >= 0.0


def finished_risk(problem, solution, settings):
    """Return a solver's Solution of a RiskProblem with a certificate that includes rounding errors."""
    if _ends_at_once(problem, solution):
        return solution
    X, w = problem.X, solution.w
    w_norm = math.sqrt(_square(w))
    largest_norm = float(X.place.largest(_largest_norm, problem, settings.n_jobs))
    largest_slope = problem.largest_slope
    risk_error = largest_slope * (X.longest_row + 2) * _UNIT_ROUNDOFF * largest_norm * w_norm
    known = solution.risk_sums
    risk, size = known or X.place.total(_risk_sums, problem, w, w_norm, settings.n_jobs)
    has_exact_products = max(np.abs(w).max(initial=0.0), largest_norm) < MAX_FACTOR
    is_negligible = risk_error <= _NEGLIGIBLE_ROUNDING * (0.5 * w_norm**2 + float(risk))
    if is_small_matrix(X) and has_exact_products and not is_negligible:
        scores = precise_scores(X, w)
        risk_error = largest_slope * _COMPENSATED_SUM_ERROR * float(np.abs(scores).max(initial=0.0))
        risk, size = _risk_sums(problem, w, w_norm, settings.n_jobs, scores)
    primal = 0.5 * w_norm**2 + float(risk)
    plane_error = (X.longest_row + X.longest_sum + 64) * _UNIT_ROUNDOFF * (size + primal)
    return _with_true_status(_with_bounds(solution, primal, solution.dual - risk_error - plane_error), settings)


def _largest_norm(problem, n_jobs):
    return math.sqrt(problem.X.squared_norms(n_jobs).max(initial=0.0))


def _risk_sums(problem, w, w_norm, n_jobs, scores=None):
    """Return the risk at weights, and Σ |c_i| (1 + |w| |x_i|) of its subgradient c."""
    risk, c = problem.risk.subgradient(problem.X.scores(w, n_jobs) if scores is None else scores)
    norms = norms_of(problem.X.squared_norms(n_jobs))
    return np.array([risk, float(np.abs(c).sum()) + w_norm * product_of_sizes(c, norms)])


def finishing_risk(solver):
    """Return a solver of RiskProblems whose solutions are finished by `finished_risk`."""
    return lambda problem, settings, start=None: finished_risk(problem, solver(problem, settings, start), settings)


def _has_exact_products(problem, solution):
    """Return whether all numbers are so small that `exact_sums` can split their products without overflow."""
    numbers = [solution.w, problem.target, problem.X.squared_norms()]
    numbers += [] if solution.beta is None else [solution.beta]
    return all(np.abs(part).max(initial=0.0) < MAX_FACTOR for part in numbers)


class CertificateSums(NamedTuple):
    """Sums over rows that a certificate is made of: those of `sum_losses`, X'beta, those of `sum_dual`, and of beta.

    Those of beta are 0 if there are no dual variables; `beta_sum`, less `dual_sum`, and `beta_size` are 0 unless there
    is a free intercept. `intercept` is the best one, if it was asked for.
    """

    loss: float
    worst: float
    plane_size: float
    vector: Any = 0.0
    value: float = 0.0
    value_size: float = 0.0
    vector_size: float = 0.0
    beta_sum: float = 0.0
    beta_size: float = 0.0
    intercept: float = 0.0


def _sums_of(problem, solution, n_jobs, keeps_intercept):
    """Return a solution with its intercept, and its CertificateSums."""
    X, intercept = problem.X, solution.intercept if problem.free_intercept else 0.0
    if problem.free_intercept and not keeps_intercept:  # here it takes no pass of its own
        intercept = None if X.place is HERE else problem.best_intercept(solution.w)
    point = solution.w, intercept, (X.longest_row + 2) * _UNIT_ROUNDOFF
    sums = X.place.total(_certificate_sums, problem, point, solution.beta, n_jobs)
    if problem.free_intercept:
        solution = changed(solution, intercept=sums.intercept if intercept is None else intercept)
    return solution, sums


def _certificate_sums(problem, point, beta, n_jobs):
    """Return the CertificateSums of rows; `point` are weights, intercept and the relative error of a score.

    An intercept of None is the best one, which the sums then have, too.
    """
    X, (w, intercept, score_error) = problem.X, point
    norms, w_norm = norms_of(X.squared_norms(n_jobs)), math.sqrt(_square(w))
    scores, v = (X.scores(w, n_jobs), 0.0) if beta is None else X.scores_and_combination(w, beta, n_jobs)
    found = best_intercept(problem, scores) if intercept is None else 0.0
    intercept = found if intercept is None else intercept
    of_losses, of_dual = (sum_smooth_losses, sum_smooth_dual) if problem.entropy else (sum_losses, sum_dual)
    losses = _sums(of_losses, problem, n_jobs, scores, norms, intercept, w_norm, score_error)
    if beta is None:
        return CertificateSums(*losses, intercept=found)
    of_beta = (_excess(problem, beta), float(np.abs(beta).sum())) if problem.free_intercept else (0.0, 0.0)
    return CertificateSums(*losses, v, *_sums(of_dual, problem, n_jobs, beta, norms), *of_beta, found)


def _square(v):
    """Return |v|². BLAS would share a long sum among threads, which wait milliseconds for each other on busy cores."""
    return float(v @ v) if len(v) <= _MAX_TERMS_OF_ONE_BLAS_THREAD else 2.0 * half_square(v)


def _excess(problem, beta):
    """Return Σ beta − dual_sum, rounded once if there are few rows."""
    if len(beta) > _FEW_ROWS:
        return float(beta.sum()) - problem.dual_sum
    return exact_sum(np.append(beta[beta != 0.0], -problem.dual_sum))


def _largest_numbers(problem, n_jobs):
    """Return the largest |target|, the largest epsilon and the largest norm of a row."""
    largest = [part.max(initial=0.0) for part in (problem.epsilon, problem.X.squared_norms(n_jobs))]
    target = max(problem.target.max(initial=0.0), -problem.target.min(initial=0.0))
    return np.array([target, largest[0], math.sqrt(largest[1])])


def _primal(problem, solution, sums):
    """Return the primal objective, a bound on its rounding error, and one on that of a cutting plane at this point."""
    X, w = problem.X, solution.w
    half_norm, term = 0.5 * _square(w), problem.dual_sum * solution.intercept
    sum_error = _sum_error(problem) * (sums.loss + abs(term)) + (len(w) + 2) * _UNIT_ROUNDOFF * half_norm
    plane_error = (X.longest_sum + 64) * _UNIT_ROUNDOFF * (sums.plane_size + abs(term))
    return half_norm + sums.loss + term, max(sums.worst - sums.loss, 0.0) + sum_error, plane_error


def _dual(problem, sums):
    """Return the dual objective, and a bound on its rounding error."""
    X, v = problem.X, sums.vector
    half_norm = 0.5 * _square(v)
    v_error = (X.longest_sum + 2) * _UNIT_ROUNDOFF * sums.vector_size
    sum_error = _sum_error(problem) * sums.value_size + (len(v) + 2) * _UNIT_ROUNDOFF * half_norm
    return sums.value - half_norm, math.sqrt(2.0 * half_norm) * v_error + 0.5 * v_error**2 + sum_error


def _sum_error(problem):
    """Return the relative error of a compensated sum over the rows, whose parts are added in a tree."""
    plain = ROWS_ADDED_PLAINLY if problem.entropy else 0
    return _COMPENSATED_SUM_ERROR + (plain + (problem.X.n_parts - 1).bit_length()) * _UNIT_ROUNDOFF


def _sums(function, problem, n_jobs, *arguments):
    """Return the three sums that a compiled function returns for a range of rows, over all rows."""
    numbers = problem.target, problem.lower, problem.upper, problem.curvature, problem.epsilon
    if problem.entropy:
        numbers = *numbers[:3], problem.entropy
    if len(problem.target) <= _ROWS_PER_TASK:
        return function(*numbers, 0, len(problem.target), *arguments)
    ranges = split(len(problem.target), -(-len(problem.target) // _ROWS_PER_TASK))
    tasks = [(*numbers, *ends, *arguments) for ends in ranges]
    return tuple(exact_sum(part) for part in zip(*run(function, tasks, n_jobs), strict=True))
