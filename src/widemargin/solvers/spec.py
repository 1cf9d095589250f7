"""`SolverSpec`: the declaration of a solver, one frozen object beside each solver function.

The specs are the only source of information about solvers: which of them take a problem, which names `solver=` and
`--solver` accept, what error messages recommend, the tables of the documentation, and the parameters of the tests.
`registry` collects them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from widemargin.problems.formulations import Intercept
from widemargin.solvers.contract import Settings


class Start(Enum):
    """The kind of point that a solver starts from."""

    DUAL = "dual variables"
    WEIGHTS = "weights"


class Losses(Enum):
    """The losses of a DualQP that a solver takes."""

    ANY = "any"
    QUADRATIC = "linear or quadratic, in parts at least"
    HINGES = "hinges or their squares"


class Rows(Enum):
    """Where the rows of X may be."""

    IN_MEMORY = "in memory"
    BLOCKS = "in memory, or in blocks on disk"
    PARTITIONS = "in memory, in blocks on disk, or in partitions on a cluster"


def refuses_nothing(problem: Any) -> str | None:
    """Return None: the solver takes every problem that the other fields of its spec allow."""
    return None


def always(problem: Any) -> bool:
    """Return True: the solver keeps its state in checkpoints, whatever the problem."""
    return True


def writes_none(problem: Any) -> bool:
    """Return False: the solver writes no checkpoints."""
    return False


def never(problem: Any, settings: Settings, start: Any) -> bool:
    """Return False: several problems with the same X are solved one by one."""
    return False


@dataclass(frozen=True, eq=False)  # by identity, since the hash of all fields takes microseconds
class SolverSpec:
    """The problems that a solver takes, what it starts from, and how it stops.

    Attributes
    ----------
    name : str
        The value of `solver=`.
    solve : function
        `solve(problem, settings, start=None)` returns a Solution.
    takes : frozenset of types
        The formulations that the solver minimises: DualQP, RiskProblem, KernelQP, CrammerSinger.
    intercepts : frozenset of Intercept
        The kinds of intercept that the problem may have.
    losses : Losses
        The losses that a DualQP may have.
    starts_from : Start
        The meaning of `start`.
    stopping : tuple of str
        The stopping rules that the solver implements.
    counts : str
        The unit of `max_iter` and `n_iter_`, in the plural.
    reads : Rows
        Where the rows of X may be.
    refuses : function
        `refuses(problem)` returns why a problem is refused that fits all other fields, or None if it is not.
    writes_checkpoints : function
        `writes_checkpoints(problem)` returns whether a run that is killed can go on from `Settings.checkpoint`, or the
        problem is so small that it is solved at once.
    together : function or None
        `together(problems, settings, starts)` solves several problems with the same X, or with parts of one kernel
        matrix, at once, and returns a list.
    is_better_together : function
        `is_better_together(problem, settings, start)` returns whether `together` is faster than one call per problem.
    chooses : bool
        Whether the solver chooses another solver for each problem, and so takes all problems that any of these takes.
    """

    name: str
    solve: Callable[..., Any]
    takes: frozenset[type]
    starts_from: Start
    stopping: tuple[str, ...]
    counts: str
    intercepts: frozenset[Intercept] = frozenset(Intercept)
    losses: Losses = Losses.ANY
    reads: Rows = Rows.IN_MEMORY
    refuses: Callable[[Any], str | None] = refuses_nothing
    writes_checkpoints: Callable[[Any], bool] = writes_none
    together: Callable[[Sequence[Any], Sequence[Settings], Sequence[Any]], list[Any]] | None = None
    is_better_together: Callable[[Any, Settings, Any], bool] = never
    chooses: bool = False
