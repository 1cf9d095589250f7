"""The names of the solvers, for options and their messages: what `solvers.registry` says, without importing it.

Importing the solvers takes a second, and a help text or a usage error should not. tests/cli/test_start.py compares
these tables with the registry.
"""

LINEAR = ("auto", "dcd", "avsf", "climb", "sbm", "newton", "svmperf", "ocas")
RISK = ("svmperf", "ocas")
ALL_CLASSES = ("auto", *RISK)
"""Those of crammer_singer; `auto` chooses one of these, or coordinate descent, which has no other name."""
KERNEL = ("auto", "svmlight", "smo")
BASIS_CHOICES = ("auto", "uniform", "kmeans", "leverage", "greedy")
"""What `models.fixed_basis` has."""

_WITH_FREE_INTERCEPT = {"newton", "svmperf", "ocas", *KERNEL}
_BY_STOPPING = {
    "gap": {*LINEAR, *KERNEL},
    "kkt": {"auto", "dcd", "avsf", "climb", *KERNEL},
    "violation": {"svmperf"},
}


def names_of(solvers, *, free_intercept=False, stopping=None):
    """Return those of the solvers that take an intercept that is not penalised, and a stopping rule, if asked for.

    `auto` chooses among the others of the same kind, and takes what one of them takes.
    """
    rule = _BY_STOPPING[stopping or "gap"]
    fits = [name for name in solvers if name != "auto" and name in rule]
    if free_intercept:
        fits = [name for name in fits if name in _WITH_FREE_INTERCEPT]
    return [name for name in solvers if name in fits or (name == "auto" and fits and "auto" in rule)]
