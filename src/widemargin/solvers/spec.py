"""What a solver declares of itself: a `SolverSpec`, one frozen object beside each solver.

Everything that is asked about solvers elsewhere is read from the specs: which of them take a problem, which names
`solver=` and `--solver` accept, what error messages recommend, the tables of the documentation, and the parameters of
the tests. `registry` collects them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from widemargin.problems.formulations import Intercept


class Start(Enum):
    """What a solver starts from."""

    DUAL = "dual variables"
    WEIGHTS = "weights"


class Losses(Enum):
    """The losses of a DualQP that a solver takes."""

    ANY = "any"
    HINGES = "hinges or their squares"


class Rows(Enum):
    """Where the rows of X may be."""

    IN_MEMORY = "in memory"
    BLOCKS = "in memory, or in blocks on disk"


def refuses_nothing(problem):
    """Return None: a solver without this rule takes every problem that its other fields allow."""


def never(problem, settings, start):
    """Return False: problems with one X are solved one by one."""
    return False


@dataclass(frozen=True)
class SolverSpec:
    """What a solver takes, needs and counts.

    Attributes
    ----------
    name : str
        The value of `solver=`.
    solve : function
        `solve(problem, settings, start=None)` returns a Solution.
    takes : frozenset of types
        The formulations that it minimises: DualQP, RiskProblem, KernelQP, CrammerSinger.
    intercepts : frozenset of Intercept
        The intercepts that it can treat.
    losses : Losses
        The losses of a DualQP that it can treat.
    starts_from : Start
        What `start` is.
    stopping : tuple of str
        The stopping rules that it knows.
    counts : str
        What `max_iter` limits and `n_iter_` counts, in the plural.
    reads : Rows
        Where the rows of X may be.
    refuses : function
        `refuses(problem)` returns why a problem is refused although all of the above fits, or None.
    together : function or None
        `together(problems, settings, starts)` solves several problems with the same X at once, and returns a list.
    is_better_together : function
        `is_better_together(problem, settings, start)` returns whether that is the faster way.
    chooses : bool
        Whether the solver hands each problem to another solver, so that it takes what any of them takes.
    """

    name: str
    solve: Callable
    takes: frozenset
    starts_from: Start
    stopping: tuple
    counts: str
    intercepts: frozenset = frozenset(Intercept)
    losses: Losses = Losses.ANY
    reads: Rows = Rows.IN_MEMORY
    refuses: Callable = refuses_nothing
    together: Callable | None = None
    is_better_together: Callable = never
    chooses: bool = False
