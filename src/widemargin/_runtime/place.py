"""The place where rows are, and where functions of rows are called.

The rows of a matrix are in this process, in memory or in files that it reads, or in the processes of a cluster. Solvers
ask the `place` of a matrix to call the functions that need rows, or vectors with a number for each row, and they get
back what the functions return, or the sum of that over all parts of the rows. `Here` is this process; another place
has the same methods.
"""

from collections.abc import Callable, Sequence
from typing import Any

from widemargin._runtime.threads import run


class Here:
    """This process."""

    def create(self, kind: Callable, problem: Any, *arguments: Any) -> Any:
        """Return kind(problem, *arguments): an object that holds vectors over the rows of a problem."""
        return kind(problem, *arguments)

    def total(self, function: Callable, problem: Any, *arguments: Any) -> Any:
        """Return function(problem, *arguments); where rows are divided, the sum over all parts."""
        return function(problem, *arguments)

    def largest(self, function: Callable, problem: Any, *arguments: Any) -> Any:
        """As `total`, but the largest result of all parts, for each of its entries."""
        return function(problem, *arguments)

    def on_all(self, function: Callable, objects: Sequence[Any], *arguments: Any) -> None:
        """Call function(objects, *arguments) for a list of objects of `create`."""
        function(objects, *arguments)

    def run(self, function: Callable, argument_lists: Sequence[tuple], n_jobs: int | None) -> list[Any]:
        """Return the results of calls that are independent of each other, made by several threads."""
        return run(function, argument_lists, n_jobs)


HERE = Here()
