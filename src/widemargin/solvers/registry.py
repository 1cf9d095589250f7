"""The solvers by name, and the one place that refuses a problem which a solver does not take.

A new solver is one more line in `SPECS`.

    LINEAR_SOLVERS, RISK_SOLVERS, KERNEL_SOLVERS    by name, those that take a DualQP, a RiskProblem, a KernelQP; each
                                                    checks the problem, and then solves it
"""

from functools import partial

from widemargin.problems.formulations import DualQP, Intercept, KernelQP, RiskProblem, is_made_of_hinges
from widemargin.solvers.auto import AUTO
from widemargin.solvers.coordinate_descent.avsf import AVSF
from widemargin.solvers.coordinate_descent.climb import CLIMB
from widemargin.solvers.coordinate_descent.crammer_singer import CRAMMER_SINGER
from widemargin.solvers.coordinate_descent.dcd import DCD
from widemargin.solvers.cutting_planes.methods import OCAS, SVMPERF
from widemargin.solvers.decomposition.smo import SMO
from widemargin.solvers.decomposition.svmlight import KERNEL_AUTO, SVMLIGHT
from widemargin.solvers.newton.smoothed import NEWTON
from widemargin.solvers.spec import Losses

SPECS = (AUTO, DCD, AVSF, CLIMB, NEWTON, SVMPERF, OCAS, CRAMMER_SINGER, KERNEL_AUTO, SVMLIGHT, SMO)


def specs_of(formulation):
    """Return the specs of the solvers that take a formulation, by name."""
    return {spec.name: spec for spec in SPECS if formulation in spec.takes}


def names_of(formulation, **wanted):
    """Return the names of the solvers that take a formulation, an intercept and a stopping rule, as far as given."""
    return [name for name, spec in specs_of(formulation).items() if not misfit(spec, formulation, **wanted)]


def misfit(spec, formulation, *, intercept=None, stopping=None):
    """Return which of the arguments keeps a solver from problems of a formulation, "intercept" or "stopping", or None.

    Parameters
    ----------
    spec : SolverSpec
    formulation : type
    intercept : Intercept or None
        None if nothing is known of it.
    stopping : str or None
    """
    if spec.chooses:
        others = [one for one in specs_of(formulation).values() if not one.chooses]
        fits = [not misfit(one, formulation, intercept=intercept, stopping=stopping) for one in others]
        return None if any(fits) and stopping in (None, *spec.stopping) else "stopping"
    if intercept is not None and intercept not in spec.intercepts:
        return "intercept"
    return "stopping" if stopping is not None and stopping not in spec.stopping else None


def check_choice(spec, formulation, *, intercept=None, stopping=None):
    """Refuse a solver for problems of a formulation that are not stated yet; the message names those that would do.

    Raises
    ------
    ValueError
        If the solver does not take the intercept, or does not know the stopping rule.
    """
    reason = misfit(spec, formulation, intercept=intercept, stopping=stopping)
    if reason == "intercept":
        others = names_of(formulation, intercept=intercept, stopping=stopping)
        raise ValueError(
            f"penalize_intercept=False needs solver={listed(others)}, got {spec.name!r}, which needs an intercept in "
            "the penalty."
        )
    if reason == "stopping":
        others = names_of(formulation, intercept=intercept, stopping=stopping)
        way = f"is for solver={listed(others)}" if others else "is not for problems of this kind"
        free = " with an intercept that is not penalised" if intercept is Intercept.FREE else ""
        raise ValueError(f"stopping={stopping!r} {way}; the solver is {spec.name!r}{free}.")


def check(spec, problem, settings):
    """Refuse a problem that a solver does not take; the message names the solvers that would do.

    Raises
    ------
    TypeError
        If the formulation is another one.
    ValueError
        If the intercept, the losses, the stopping rule or the size of the problem do not suit the solver.
    """
    formulation = type(problem)
    if formulation not in spec.takes:
        others = listed(specs_of(formulation))
        raise TypeError(f"solver={spec.name!r} does not minimise a {formulation.__name__}; use solver={others}.")
    check_choice(spec, formulation, intercept=getattr(problem, "intercept", None), stopping=settings.stopping)
    reason = _refusal(spec, problem)
    if reason:
        others = [name for name, one in specs_of(formulation).items() if not _refusal(one, problem)]
        others = [name for name in others if name in names_of(formulation, intercept=problem.intercept)]
        way = f"solver={listed(others)}" if others else "penalize_intercept=True, for which there are other solvers"
        raise ValueError(f"solver={spec.name!r} {reason}. Use {way}.")


def _refusal(spec, problem):
    """Return why a solver refuses a problem of a formulation that it takes, or None."""
    if spec.losses is Losses.HINGES and isinstance(problem, DualQP) and not is_made_of_hinges(problem):
        return f"takes losses that are {Losses.HINGES.value}"
    return spec.refuses(problem)


def counts_of(solver):
    """Return what the solvers count that are named in `solver_` of a model, "iterations" if they differ."""
    named = [name for part in solver.split("; ") for name in part.partition(" (")[0].split(", then ")]
    counts = {spec.counts for spec in SPECS if spec.name in named}
    return counts.pop() if len(counts) == 1 else "iterations"


def listed(names, shown=repr):
    """Return names joined by commas and `or`, each as `shown` shows it: in quotes."""
    texts = [shown(name) for name in names]
    return " or ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)


def _solve(spec, problem, settings, start=None):
    """Check a problem, and solve it."""
    check(spec, problem, settings)
    return spec.solve(problem, settings, start)


def _solvers_of(formulation):
    return {name: partial(_solve, spec) for name, spec in specs_of(formulation).items()}


LINEAR_SOLVERS, RISK_SOLVERS, KERNEL_SOLVERS = map(_solvers_of, (DualQP, RiskProblem, KernelQP))
