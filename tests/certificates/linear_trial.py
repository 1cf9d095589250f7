"""Fits of `LinearSVC` and `LinearSVR` to one problem by every solver, judged.

Rules, for the exact objective P of (coef_, intercept_), and an optimum that is at most the least objective known:

    finite        every number of the model and of its record
    warnings      none but those about convergence; no exception
    objective     objective_ = P up to 1e-9 P, or up to 5e-32 of the objective at zero weights, where the optimum is 0
    bound         objective_ (1 − gap_), which is said to be below the optimum, is not above any known objective
    converged     gap_ <= tol, if that is what the fit had to reach
    dual          dual_coef_ is within its bounds, sums to 0 for a free intercept, and proves the gap
"""

from fractions import Fraction

import numpy as np
from scipy.sparse import issparse
from tests.certificates.campaign import fitted
from tests.certificates.judge import LinearJudge
from tests.certificates.nasty import linear
from tests.certificates.reference import linear_bracket

from widemargin import LinearSVC, LinearSVR

OBJECTIVE_ERROR = 1e-9
ROUNDING = 8 * np.finfo(float).eps  # of the few operations between objective_, gap_ and the bound
BALANCE = 1e-9  # |Σ β| / Σ |β| that counts as 0
FLOOR = np.finfo(float).eps ** 2  # of the objective at zero: a difference below it is none
LOOSE = 1e-9  # a reference whose bounds are further apart says little


def model_of(problem, solver):
    """Return the estimator of a problem."""
    options = {
        "C": problem.C,
        "loss": problem.loss,
        "tol": problem.tol,
        "fit_intercept": problem.intercept != "none",
        "penalize_intercept": problem.intercept != "free",
        "intercept_scaling": problem.intercept_scaling,
        "solver": solver,
        "random_state": 0,
    }
    return LinearSVR(epsilon=problem.epsilon, **options) if problem.is_regression else LinearSVC(**options)


def warm_up(say):
    """Compile what the problems of the first seeds need, so that no fit is judged by the time that takes."""
    from tests.certificates.warmth import linear_fits

    linear_fits(say)


def judge_seed(seed, solvers, say):
    """Judge all solvers on the problem of a seed."""
    problem = linear(seed)
    say(problem=problem.told(), problems=1)
    judge = LinearJudge(problem)
    fits = {}
    for solver in solvers or problem.solvers:
        if solver not in problem.solvers:
            continue
        say(solver=solver, fits=1)
        model = model_of(problem, solver)
        try:
            strange = fitted(model, problem.X, problem.target, problem.weight)
        except Exception as error:  # whatever it is, the problem was a valid one
            say(by=solver, rule="raises", message=f"{type(error).__name__}: {error}")
            continue
        for message in strange:
            say(by=solver, rule="warnings", message=message)
        if unfinished := not_finite(model):
            say(by=solver, rule="finite", message=f"{unfinished}, status_ {model.status_!r}")
        else:
            fits[solver] = model
    objectives = {solver: judge.objective(model.coef_, model.intercept_) for solver, model in fits.items()}
    lower, upper = linear_bracket(problem, judge)
    least = min([upper, *objectives.values()])
    if float(least - lower) > LOOSE * float(least):
        say(loose=1)
    for solver, model in fits.items():
        for rule, message in mistakes(judge, model, objectives[solver], least):
            say(by=solver, rule=rule, message=f"{message}; {model.solver_}, {model.n_iter_} turns, {model.status_}")


def not_finite(model):
    """Return the names of fitted numbers that are not finite."""
    names = [name for name in ("coef_", "intercept_", "dual_coef_", "objective_", "gap_") if hasattr(model, name)]
    numbers = {name: getattr(model, name) for name in names}
    numbers = {name: one.data if issparse(one) else one for name, one in numbers.items()}
    return ", ".join(name for name, one in numbers.items() if not np.isfinite(one).all())


def mistakes(judge, model, objective, least):
    """Yield (rule, message) of what is wrong with a fit, for its exact objective and the least one known."""
    P, said, gap = float(objective), model.objective_, model.gap_
    floor = Fraction(FLOOR) * judge.at_zero
    if abs(Fraction(said) - objective) > Fraction(OBJECTIVE_ERROR) * objective + floor:
        yield "objective", f"objective_ is {said!r}, that of coef_ and intercept_ {P!r}"
    bound = Fraction(said) * (1 - Fraction(gap))
    if bound > least * (1 + Fraction(ROUNDING)) + floor:
        above = float((bound - least) / least) if least else float("inf")
        yield (
            "bound",
            f"gap_ {gap:.3e} but {distance(objective, least):.3e} from the best, bound too high by {above:.1e}",
        )
    if model.status_ == "converged" and not gap <= judge.problem.tol:
        yield "converged", f"gap_ {gap:.3e} > tol {judge.problem.tol:.1e}"
    if gap < 0.0:
        yield "bound", f"gap_ {gap:.3e} is negative"
    if hasattr(model, "dual_coef_"):
        yield from dual_mistakes(judge, model, bound - floor)


def distance(objective, least):
    return float((objective - least) / objective) if objective else 0.0


def dual_mistakes(judge, model, bound):
    """Yield what is wrong with the dual variables."""
    beta = np.ravel(model.dual_coef_)
    outside = judge.outside(beta)
    if outside > 0.0:
        yield "dual", f"dual_coef_ is outside its bounds by {outside:.3e}"
    if judge.problem.intercept == "free":
        rest, size = abs(float(sum(map(Fraction, beta.tolist())))), np.abs(beta).sum()
        if rest > BALANCE * size:
            yield "dual", f"dual_coef_ sums to {rest:.3e}, of sizes that sum to {size:.3e}"
        return
    value = judge.dual_value(judge.repaired(beta))
    if value < bound - abs(bound) * Fraction(ROUNDING):
        yield (
            "dual",
            f"the dual value of dual_coef_ is {float(value)!r}, below the bound {float(bound)!r} it is to prove",
        )
