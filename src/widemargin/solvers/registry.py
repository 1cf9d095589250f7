"""All solvers by name, and the check that refuses problems which a solver does not take.

A solver is registered by the place of its spec in `LINEAR_SPECS` or, if it takes a KernelQP, in `KERNEL_SPECS`. The
dictionaries LINEAR_SOLVERS, RISK_SOLVERS, KERNEL_SOLVERS and FIXED_SUM_SOLVERS hold the solvers that take a DualQP, a
RiskProblem, a KernelQP and a FixedSumQP, as functions that check a problem and then solve it. They and SPECS, the tuple
of all specs, are made when they are first asked for: kernel machines do not import the linear solvers, which would take
as long as all else that is ours.
"""

from functools import cache, partial
from importlib import import_module
from typing import Any

from widemargin._runtime.place import HERE
from widemargin._runtime.words import listed as listed
from widemargin.problems.formulations import DualQP, FixedSumQP, Intercept, KernelQP, RiskProblem
from widemargin.solvers.spec import Losses, Rows, SolverSpec

LINEAR_SPECS = (  # modules of `widemargin.solvers`, and the names of specs in them
    "auto.AUTO", "coordinate_descent.dcd.DCD", "coordinate_descent.avsf.AVSF", "coordinate_descent.climb.CLIMB",
    "coordinate_descent.block_minimisation.SBM", "coordinate_descent.pairs.PAIRS", "newton.smoothed.NEWTON",
    "cutting_planes.methods.SVMPERF", "cutting_planes.methods.OCAS", "coordinate_descent.crammer_singer.CRAMMER_SINGER",
    "proximal_newton.prox_newton.PROX_NEWTON",
)  # fmt: skip
KERNEL_SPECS = (
    "decomposition.whole_matrix.KERNEL_AUTO", "decomposition.whole_matrix.SVMLIGHT", "decomposition.smo.SMO",
)  # fmt: skip


@cache
def _specs(places):
    """Return the specs at these places, whose modules are imported."""
    found = [place.rpartition(".") for place in places]
    return tuple(getattr(import_module(f"widemargin.solvers.{module}"), name) for module, _, name in found)


@cache
def specs_of(formulation):
    """Return a dictionary of the specs of all solvers that take a formulation, by name."""
    specs = _specs(KERNEL_SPECS if formulation is KernelQP else LINEAR_SPECS)
    return {spec.name: spec for spec in specs if formulation in spec.takes}


def names_of(formulation, *, intercept=None, stopping=None):
    """Return the names of the solvers that take a formulation with an intercept and a stopping rule, if given."""
    return [
        name
        for name, spec in specs_of(formulation).items()
        if not _unsupported(spec, formulation, intercept=intercept, stopping=stopping)
    ]


@cache
def _unsupported(spec, formulation, *, intercept, stopping):
    """Return which argument a solver does not support, "intercept" or "stopping"; None if it supports both.

    Parameters
    ----------
    spec : SolverSpec
    formulation : type
    intercept : Intercept or None
        The intercept of the problem; None if it is not known yet.
    stopping : str or None
        The stopping rule; None if it is not known yet.
    """
    if spec.chooses:
        others = [one for one in specs_of(formulation).values() if not one.chooses]
        fits = [not _unsupported(one, formulation, intercept=intercept, stopping=stopping) for one in others]
        return None if any(fits) and stopping in (None, *spec.stopping) else "stopping"
    if intercept is not None and intercept not in spec.intercepts:
        return "intercept"
    return "stopping" if stopping is not None and stopping not in spec.stopping else None


def check_choice(spec, formulation, *, intercept=None, stopping=None):
    """Check a solver before there is a problem; the error message names the solvers that can be used instead.

    Raises
    ------
    ValueError
        If the solver does not support the intercept or the stopping rule.
    """
    unsupported = _unsupported(spec, formulation, intercept=intercept, stopping=stopping)
    if unsupported == "intercept":
        others = names_of(formulation, intercept=intercept, stopping=stopping)
        raise ValueError(
            f"penalize_intercept=False needs solver={listed(others)}, got {spec.name!r}, which needs an intercept in "
            "the penalty."
        )
    if unsupported == "stopping":
        others = names_of(formulation, intercept=intercept, stopping=stopping)
        rule = f"is for solver={listed(others)}" if others else "is not for problems of this kind"
        free = " with an intercept that is not penalised" if intercept is Intercept.FREE else ""
        raise ValueError(f"stopping={stopping!r} {rule}; the solver is {spec.name!r}{free}.")


def check(spec, problem, settings):
    """Check that a solver takes a problem; the error message names the solvers that can be used instead.

    Raises
    ------
    TypeError
        If the solver does not take the formulation of the problem.
    ValueError
        If the solver does not support the intercept, the losses, the stopping rule or the size of the problem, or
        writes no checkpoints and these are asked for.
    """
    formulation = formulation_of(problem)
    if formulation not in spec.takes:
        others = listed(specs_of(formulation))
        raise TypeError(f"solver={spec.name!r} does not minimise a {formulation.__name__}; use solver={others}.")
    check_choice(spec, formulation, intercept=getattr(problem, "intercept", None), stopping=settings.stopping)
    reason = _refusal(spec, problem)
    if reason is not None:
        others = listed(_others(problem, settings))
        way = f"solver={others}" if others else "penalize_intercept=True, for which there are other solvers"
        raise ValueError(f"solver={spec.name!r} {reason}. Use {way}.")
    if settings.checkpoint is not None:
        _check_checkpoints(spec, problem, settings)


def _check_checkpoints(spec, problem, settings):
    """Raise ValueError if a solver that takes a problem cannot go on from a checkpoint."""
    others = [
        name
        for name in _others(problem, settings)
        if specs_of(formulation_of(problem))[name].writes_checkpoints(problem)
    ]
    if not (others if spec.chooses else spec.writes_checkpoints(problem)):
        way = f"Use solver={listed(others)}, or" if others else "No solver of this problem does. Use"
        raise ValueError(f"solver={spec.name!r} writes no checkpoints for this problem. {way} checkpoint=None.")


def _others(problem, settings):
    """Return the names of all solvers that take a problem, with its intercept, and the stopping rule."""
    formulation = formulation_of(problem)
    names = names_of(formulation, intercept=getattr(problem, "intercept", None), stopping=settings.stopping)
    return [name for name in names if not _refusal(specs_of(formulation)[name], problem)]


def _refusal(spec, problem):
    """Return why a solver refuses the losses or the size of a problem, or None if it does not."""
    if not spec.chooses and _needed(problem) not in _READABLE[spec.reads]:
        where = "in partitions on a cluster" if _needed(problem) is Rows.PARTITIONS else "in blocks on disk"
        return (
            f"needs all rows {'in memory' if spec.reads is Rows.IN_MEMORY else 'in one process'}, and these are {where}"
        )
    if spec.losses is Losses.HINGES and isinstance(problem, DualQP) and not problem.is_made_of_hinges:
        return f"takes losses that are {Losses.HINGES.value}"
    if spec.losses is Losses.QUADRATIC and problem.entropy:
        return f"takes losses that are {Losses.QUADRATIC.value}, which the log loss is not"
    return spec.refuses(problem)


_READABLE = {  # where rows may be, by what a solver reads
    Rows.IN_MEMORY: {Rows.IN_MEMORY},
    Rows.BLOCKS: {Rows.IN_MEMORY, Rows.BLOCKS},
    Rows.PARTITIONS: {Rows.IN_MEMORY, Rows.BLOCKS, Rows.PARTITIONS},
}


def _needed(problem):
    """Return where the rows of a problem are; those of a kernel problem are in memory."""
    if not hasattr(problem, "X") or problem.X.is_in_memory:
        return Rows.IN_MEMORY
    return Rows.BLOCKS if problem.X.place is HERE else Rows.PARTITIONS


def formulation_of(problem):
    """Return the formulation of a problem: its class, or the class that it derives from."""
    return _formulation_of_class(type(problem))


@cache
def _formulation_of_class(kind):
    """Return the formulation that a class of problems is or derives from."""
    return next((base for base in kind.__mro__ if specs_of(base)), kind)


def counts_of(solver):
    """Return the unit of the iterations of the solvers named in `solver_` of a model; "iterations" if they differ."""
    named = [name for part in solver.split("; ") for name in part.partition(" (")[0].split(", then ")]
    counts = {spec.counts for spec in _specs(LINEAR_SPECS + KERNEL_SPECS) if spec.name in named}
    return counts.pop() if len(counts) == 1 else "iterations"


def solve_with(spec, problem, settings, start=None):
    """Check that a solver takes a problem, and solve it."""
    check(spec, problem, settings)
    return spec.solve(problem, settings, start)


def solve_together(spec, problems, settings, starts):
    """Check that a solver takes the first of several problems that are alike, and solve all; return a list."""
    check(spec, problems[0], settings[0])
    return spec.together(problems, settings, starts)


@cache
def solvers_of(formulation):
    """Return a dictionary of the solvers that take a formulation, by name, as functions that check a problem first."""
    return {name: partial(solve_with, spec) for name, spec in specs_of(formulation).items()}


SPECS: tuple[SolverSpec, ...]
LINEAR_SOLVERS: dict[str, Any]
RISK_SOLVERS: dict[str, Any]
KERNEL_SOLVERS: dict[str, Any]
FIXED_SUM_SOLVERS: dict[str, Any]
_DICTIONARIES = {
    "LINEAR_SOLVERS": DualQP, "RISK_SOLVERS": RiskProblem, "KERNEL_SOLVERS": KernelQP, "FIXED_SUM_SOLVERS": FixedSumQP,
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """Make SPECS or a dictionary of solvers when it is first asked for."""
    if name == "SPECS":
        made = _specs(LINEAR_SPECS + KERNEL_SPECS)
    elif name in _DICTIONARIES:
        made = solvers_of(_DICTIONARIES[name])
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, made)
