"""Fits of `RankSVM`, `OrdinalSVC`, `ROCAreaSVC` and `MeasureSVC`, judged; for the rules see `linear_trial`."""

from fractions import Fraction

import numpy as np
from tests.certificates.campaign import fitted
from tests.certificates.linear_trial import FLOOR, LOOSE, OBJECTIVE_ERROR, ROUNDING, distance, not_finite
from tests.certificates.nasty_planes import planes
from tests.certificates.planes_judge import MeasureJudge, PairJudge, measure_bracket
from tests.certificates.reference import pairs_bracket

from widemargin import MeasureSVC, OrdinalSVC, RankSVM, ROCAreaSVC

_MODELS = {"rank": RankSVM, "ordinal": OrdinalSVC, "roc": ROCAreaSVC}


def model_of(problem, solver):
    """Return the estimator of a problem."""
    options = {"C": problem.C, "tol": problem.tol, "solver": solver}
    if problem.kind != "measure":
        return _MODELS[problem.kind](**options)
    return MeasureSVC(problem.measure, fit_intercept=problem.intercept_scaling > 0.0,
                      intercept_scaling=problem.intercept_scaling or 1.0, **options)  # fmt: skip


def warm_up(say):
    """Compile what cutting planes need."""
    from tests.certificates.warmth import planes_fits

    planes_fits(say)


def judge_seed(seed, solvers, say):
    """Judge both solvers on the problem of a seed."""
    problem = planes(seed)
    say(problem=problem.told(), problems=1)
    is_measure = problem.kind == "measure"
    judge = MeasureJudge(problem) if is_measure else PairJudge(problem)
    fits = {}
    for solver in solvers or problem.solvers:
        say(solver=solver, fits=1)
        model = model_of(problem, solver)
        arguments = (problem.X, problem.target, *([problem.query] if problem.kind == "rank" else []))
        try:
            strange = fitted(model, *arguments)
        except Exception as error:  # whatever it is, the problem was a valid one
            say(by=solver, rule="raises", message=f"{type(error).__name__}: {error}")
            continue
        for message in strange:
            say(by=solver, rule="warnings", message=message)
        if unfinished := not_finite(model):
            say(by=solver, rule="finite", message=f"{unfinished}, status_ {model.status_!r}")
        else:
            fits[solver] = model
    objectives = {solver: _objective(judge, model) for solver, model in fits.items()}
    lower, upper = measure_bracket(judge) if is_measure else pairs_bracket(judge)
    least = min([upper, *objectives.values()])
    if float(least - lower) > LOOSE * float(least):
        say(loose=1)
    for solver, model in fits.items():
        for rule, message in mistakes(judge, model, objectives[solver], least):
            say(by=solver, rule=rule, message=f"{message}; {model.solver_}, {model.n_iter_} turns, {model.status_}")


def _objective(judge, model):
    if judge.problem.kind != "measure":
        return judge.objective(np.ravel(model.coef_))
    scaling = judge.problem.intercept_scaling
    return judge.objective(np.ravel(model.coef_), np.ravel(model.intercept_) if scaling else np.zeros(1))


def mistakes(judge, model, objective, least):
    """Yield (rule, message) of what is wrong with a fit."""
    said, gap = model.objective_, model.gap_
    floor = Fraction(FLOOR) * judge.at_zero
    if abs(Fraction(said) - objective) > Fraction(max(OBJECTIVE_ERROR, gap)) * objective + floor:
        yield "objective", f"objective_ is {said!r}, that of coef_ and intercept_ {float(objective)!r}"
    bound = Fraction(said) * (1 - Fraction(gap))
    if bound > least * (1 + Fraction(ROUNDING)) + floor:
        above = float((bound - least) / least) if least else float("inf")
        yield (
            "bound",
            f"gap_ {gap:.3e} but {distance(objective, least):.3e} from the best, bound too high by {above:.1e}",
        )
    if gap < 0.0:
        yield "bound", f"gap_ {gap:.3e} is negative"
    if model.status_ == "converged" and not gap <= judge.problem.tol:
        yield "converged", f"gap_ {gap:.3e} > tol {judge.problem.tol:.1e}"
