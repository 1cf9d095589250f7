"""Fits of the kernel machines to one problem by every solver, judged; for the rules see `linear_trial`.

With stopping="gap" a converged fit has a gap of at most `tol`. With "kkt", `tol` is for the largest violation of an
optimality condition, and the gap of a converged fit is at most ten times it. Where rounding is more than 1e-9 of the
objective the gap has to include it, and objective_ is right to that. Besides, a fit called converged at a usual
tolerance is within a tenth of the optimum ("poor"), and epsilon of a ν-SVR and the margin of a ν-SVC are not negative
("sign").
"""

from fractions import Fraction

import numpy as np
from scipy.sparse import issparse
from tests.certificates.campaign import fitted
from tests.certificates.kernel_judge import KernelJudge, given_matrix
from tests.certificates.linear_trial import BALANCE, LOOSE, OBJECTIVE_ERROR, ROUNDING, not_finite
from tests.certificates.nasty_kernel import kernel
from tests.certificates.reference import kernel_bracket

from widemargin import SVC, SVR, NuSVC, NuSVR, OneClassSVM

_MODELS = {"c_svc": SVC, "nu_svc": NuSVC, "one_class": OneClassSVM, "eps_svr": SVR, "nu_svr": NuSVR}
_NUMBERS = {"c_svc": ["C"], "nu_svc": ["nu"], "one_class": ["nu"], "eps_svr": ["C", "epsilon"], "nu_svr": ["C", "nu"]}
SECONDS_OF_PAIRS = 3.0
NOTHING = 1e-9  # of the objective's scale: an optimum below it has no tenth to speak of
ZERO = 1e-12  # of the objective's scale: below it the function is zero, and the gap is relative to rounding
GAP_OF_KKT = 10.0  # times tol: the gap of a fit that converged by its violation, at most
POOR = 0.1  # of the optimum: a fit that is called converged at a usual tolerance and further from it is none


def model_of(problem, solver):
    """Return the estimator of a problem."""
    options = {name: getattr(problem, name) for name in ("kernel", "gamma", "degree", "coef0", "tol")}
    options |= {name: getattr(problem, name) for name in _NUMBERS[problem.kind]}
    if solver == "smo":  # the reference takes as long as its pairs take
        options["max_seconds"] = SECONDS_OF_PAIRS
    return _MODELS[problem.kind](solver=solver, stopping=problem.stopping, **options)


def warm_up(say):
    """Compile what the kernel machines need."""
    from tests.certificates.warmth import kernel_fits

    kernel_fits(say)


def judge_seed(seed, solvers, say):
    """Judge all solvers on the problem of a seed."""
    problem = kernel(seed)
    say(problem=problem.told(), problems=1)
    judge = KernelJudge(problem)
    X = given_matrix(problem) if problem.kernel == "precomputed" else problem.X
    points = {}
    for solver in solvers or problem.solvers:
        say(solver=solver, fits=1)
        model = model_of(problem, solver)
        try:
            strange = fitted(model, X, problem.target, problem.weight)
        except Exception as error:  # whatever it is, the problem was a valid one
            say(by=solver, rule="raises", message=f"{type(error).__name__}: {error}")
            continue
        for message in strange:
            say(by=solver, rule="warnings", message=message)
        if unfinished := not_finite(model):
            say(by=solver, rule="finite", message=f"{unfinished}, status_ {model.status_!r}")
        else:
            point = read(problem, model)
            points[solver] = (model, point, judge.objective(*point))
    lower, upper = kernel_bracket(judge)
    least = min([upper, *(objective for _, _, objective in points.values())])
    if float(least - lower) > LOOSE * abs(float(least)):
        say(loose=1)
    for solver, (model, point, objective) in points.items():
        for rule, message in mistakes(judge, model, point, objective, least):
            say(
                by=solver,
                rule=rule,
                message=f"{message}; {model.solver_}, {np.max(model.n_iter_)} turns, {model.status_}",
            )


def read(problem, model):
    """Return β of all rows, b, and r, ρ or ε of a fitted model."""
    coefficients = model.dual_coef_.toarray() if issparse(model.dual_coef_) else model.dual_coef_
    beta = np.zeros(len(problem.target))
    beta[model.support_] = np.ravel(coefficients)
    b, (facts,) = float(model.intercept_[0]), model.facts_
    if problem.kind == "nu_svc":
        C = facts.get("C")  # without a margin there is none, and the function is zero
        return (beta / C, b / C, 1.0 / C) if C else (beta, b, 0.0)
    if problem.kind == "one_class":
        return beta, 0.0, -b
    return beta, b, facts.get("epsilon", 0.0)


def mistakes(judge, model, point, objective, least):
    """Yield (rule, message) of what is wrong with a fit."""
    said, gap, beta = model.objective_, model.gap_, point[0]
    doubt = Fraction(judge.doubt(beta)) + Fraction(np.finfo(float).tiny)
    if abs(Fraction(said) - objective) > Fraction(max(OBJECTIVE_ERROR, gap)) * abs(objective) + doubt:
        yield "objective", f"objective_ is {said!r}, that of the model {float(objective)!r} (doubt {float(doubt):.1e})"
    bound = Fraction(said) - Fraction(gap) * abs(Fraction(said))
    doubt += Fraction(ZERO * judge.scale) if abs(said) <= ZERO * judge.scale else 0
    if bound > least + abs(least) * Fraction(ROUNDING) + doubt:
        yield "bound", f"gap_ {gap:.3e}, the bound {float(bound)!r} is above a known objective {float(least)!r}"
    if gap < 0.0:
        yield "bound", f"gap_ {gap:.3e} is negative"
    most = judge.problem.tol * (1.0 if judge.problem.stopping == "gap" else GAP_OF_KKT)
    if model.status_ == "converged" and gap > most:
        yield "converged", f"gap_ {gap:.3e} > {most:.1e}, {judge.problem.stopping} at tol {judge.problem.tol:.1e}"
    distance = float(objective - least - doubt) / max(abs(float(least)), 1e-300)
    is_usual = model.tol <= 1e-3 and abs(float(least)) > NOTHING * judge.scale
    if model.status_ == "converged" and is_usual and distance > POOR:
        yield "poor", f"converged, but {distance:.2e} of the optimum {float(least):.6g} above it; gap_ {gap:.2e}"
    if point[2] < 0.0 and judge.problem.kind in ("nu_svc", "nu_svr"):
        yield "sign", f"margin or epsilon is {point[2]!r}"
    yield from dual_mistakes(judge, beta)


def dual_mistakes(judge, beta):
    """Yield what is wrong with the dual variables: one number per row, within bounds, with the sums that are asked."""
    form = judge.form
    lower, upper = np.zeros(len(beta)), np.zeros(len(beta))
    np.minimum.at(lower, form.row, form.lower)
    np.maximum.at(upper, form.row, form.upper)
    room = 4 * np.finfo(float).eps  # of costs that are products, and of a function that is divided by its margin
    outside = np.maximum(lower - beta - room * np.abs(lower), beta - upper - room * np.abs(upper)).max()
    if outside > 0.0:
        yield "dual", f"dual_coef_ is outside its bounds by {outside:.3e}"
    if judge.problem.kind == "nu_svr":
        sums = [(beta.sum(), 0.0)]
    else:
        members = [np.unique(form.row[group > 0]) for group in form.groups]
        sums = [(beta[mine].sum(), float(total)) for mine, total in zip(members, form.totals, strict=True)]
    size = max(np.abs(beta).sum(), *(abs(total) for _, total in sums))
    for total, asked in sums:
        if abs(total - asked) > BALANCE * size:
            yield "dual", f"dual_coef_ sums to {total!r}, which is to be {asked!r}"
