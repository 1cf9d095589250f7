"""Which solver takes which problem when the caller says "auto"."""

from widemargin.solvers.avsf import avsf
from widemargin.solvers.dual_cd import dcd

SOLVERS = {"dcd": dcd, "avsf": avsf}


def choose(problem):
    """Return the name of the solver for a DualQP."""
    return "dcd"
