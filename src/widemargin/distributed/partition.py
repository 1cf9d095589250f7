"""`Partition`: some of the rows, in the memory of a worker, and what a fit has computed for them.

A fit sends commands to its partitions: call this function of the objects that you hold, keep what it returns, or return
it. Objects are matrices, problems and vectors with a number for each row. They stay with the partition, and never
travel: a partition that is sent to another worker, or rebuilt after a worker was lost, arrives without them. It then
executes all commands of the fit once more. Commands are functions of the rows and of numbers that are sent with them,
so that the same objects come out, to the last bit.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from widemargin._runtime.threads import run, single_threaded_blas
from widemargin.distributed.tree_sum import Node, added, joined, largest

COMBINATIONS: dict[str, Callable[[Any, Any], Any]] = {"sum": added, "largest": largest}


class Ref(NamedTuple):
    """An object of a partition, as an argument of a command: by its name, or one of its attributes."""

    name: str
    attribute: str | None = None


ROWS = Ref("rows")
"""The rows themselves, a `PartitionRows`."""


class WorkerThreads(int):
    """A number of threads that stands, as an argument of a command, for those that a worker has for the task."""


THREADS = WorkerThreads(-1)
"""All cores in this process, and all threads of the task on a worker."""


class Command(NamedTuple):
    """A function to be called, with its arguments.

    `number` counts the commands of a fit. `out` is the name under which the result is kept, and `result` says what
    becomes of it otherwise: "sum" or "largest" over all partitions, "each" for a list of all, None to drop it.
    `changes` says whether the command changes objects that it refers to; those without a result do.
    """

    number: int
    function: Callable
    arguments: tuple
    out: str | None = None
    result: str | None = None
    changes: bool = True


class Batch(NamedTuple):
    """Commands that are executed in one task; `after` is the number of the last command before them.

    With `is_whole`, the commands are all of the fit so far, and results are those of the last `n_new` ones.
    """

    commands: Sequence[Command]
    after: int
    n_new: int
    is_whole: bool = False


class PartitionRows(NamedTuple):
    """The checked rows of a partition: `X` is an array, a CSR matrix or a RowBlocks; weight and qid may be None."""

    number: int
    X: Any
    y: Any
    weight: Any
    qid: Any


class Outcome(NamedTuple):
    """What a task returns: results of each command by node, the partitions that need the whole fit, and its cost."""

    results: list[dict[Node, Any]]
    incomplete: list[int]
    seconds: float
    worker: str
    numbers: list[int]


class Partition:
    """Rows of a partition, with the objects of a fit."""

    def __init__(self, rows: PartitionRows) -> None:
        self.rows = rows
        self._forget()

    def _forget(self) -> None:
        self._lock, self._last, self._n_threads = threading.Lock(), 0, 1
        self._objects: dict[str, Any] = {}

    def __reduce__(self):
        return Partition, (self.rows,)

    def __sizeof__(self) -> int:
        """Return the bytes of the rows, by which the cluster manages its memory."""
        X = self.rows.X
        arrays = [X.data, X.indices, X.indptr] if hasattr(X, "indptr") else [X]
        return sum(getattr(one, "nbytes", 0) for one in [*arrays, self.rows.y, self.rows.weight, self.rows.qid])

    def is_ready(self, batch: Batch) -> bool:
        """Return whether all commands before a batch were executed here, and none of its own."""
        return batch.is_whole or self._last == batch.after

    def execute(self, batch: Batch, n_threads: int) -> list[Any]:
        """Execute a batch for which the partition is ready; return the results of its new commands."""
        with self._lock:
            if batch.is_whole:
                self._objects = {}
            self._objects[ROWS.name], self._n_threads = self.rows, n_threads
            self._last = -1  # if a command fails, the objects are of no use
            results = [self._call(command) for command in batch.commands]
            self._last = batch.commands[-1].number
            return results[-batch.n_new :]

    def _call(self, command):
        if command.function is drop:
            self._objects.pop(command.arguments[0], None)
            return None
        result = command.function(*(self._resolved(argument) for argument in command.arguments))
        if command.out is not None:
            self._objects[command.out] = result
        return result if command.result is not None else None

    def _resolved(self, argument):
        """Return an argument with references replaced by objects, in lists, too."""
        if isinstance(argument, Ref):
            found = self._objects[argument.name]
            return found if argument.attribute is None else getattr(found, argument.attribute)
        if isinstance(argument, list):
            return [self._resolved(one) for one in argument]
        return self._n_threads if isinstance(argument, WorkerThreads) else argument


def drop(name: str) -> None:
    """Stand for the command that drops an object, which `Partition` does itself."""


def needed_commands(commands: Sequence[Command], following: Sequence[Command]) -> list[Command]:
    """Return the commands that a partition without objects needs before the following ones.

    They are those whose results, or changes, concern an object that has not been dropped, or that the following
    commands refer to; and those that these need in turn.
    """
    dropped = {one.arguments[0] for one in commands if one.function is drop}
    created = {one.out for one in commands if one.out is not None}
    needed = (created - dropped) | {name for one in following for name in _names_in(one.arguments)}
    kept = []
    for one in reversed(commands):
        names = _names_in(one.arguments)
        concerned = {one.out} if one.out is not None else (names if one.changes else set())
        if one.function is not drop and concerned & needed:
            needed |= names
            kept.append(one)
    return kept[::-1]


def _names_in(arguments):
    """Return the names of all objects that arguments refer to."""
    names = {argument.name for argument in arguments if isinstance(argument, Ref)}
    lists = [argument for argument in arguments if isinstance(argument, list)]
    return names.union(*(_names_in(one) for one in lists))


def results_here(partitions: Sequence[Partition], n_partitions: int, batch: Batch, n_threads: int) -> tuple:
    """Return the results of a batch by nodes, one dict per command, and the numbers of incomplete partitions.

    Partitions are taken by several threads if there are enough of them; otherwise one after the other, each by all
    threads.
    """
    incomplete = [one.rows.number for one in partitions if not one.is_ready(batch)]
    if incomplete:
        return [], incomplete
    n_together = n_threads if len(partitions) >= n_threads else 1
    with single_threaded_blas():
        answers = run(Partition.execute, [(one, batch, n_threads) for one in partitions], n_together)
    numbers, results = [one.rows.number for one in partitions], []
    for k, command in enumerate(batch.commands[-batch.n_new :]):
        if command.result is not None:
            nodes = {(0, number): answer[k] for number, answer in zip(numbers, answers, strict=True)}
            combine = COMBINATIONS.get(command.result)
            results.append(nodes if combine is None else joined(nodes, n_partitions, combine))
    return results, []
