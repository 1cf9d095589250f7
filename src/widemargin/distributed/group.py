"""`Group`: the partitions of a fit on a Dask cluster, as the place where functions of rows are called.

A function is sent to all partitions as a command (see `partition`), one task for each worker, and its results are added
in a fixed order (see `tree_sum`). Commands without a result wait for the next one that has a result, and go with it.
Several threads may ask at the same time: what they ask while a pass is under way goes with the next pass.

Faults. The partitions are futures, which Dask rebuilds from their graph when a worker is lost. A task is never bound to
its worker, so that another worker takes it over. A partition that was rebuilt or moved has lost its objects, says so,
and is sent all commands of the fit. Whatever cannot be repaired becomes a `ClusterFailure` within half a minute.
"""

import itertools
import threading
import time
import uuid
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

from distributed import Client, Future, get_worker

from widemargin._runtime.threads import n_threads as threads_asked
from widemargin.distributed.failures import ClusterFailure, Overseer
from widemargin.distributed.partition import (
    COMBINATIONS,
    Batch,
    Command,
    Outcome,
    Partition,
    Ref,
    drop,
    needed_commands,
    results_here,
)
from widemargin.distributed.placement import Assignment, assigned, balanced
from widemargin.distributed.tree_sum import joined, root
from widemargin.distributed.worker_process import end_quickly

_MAX_THREADS = 64  # of the client, which wait for results of different problems
_COMMANDS_BEFORE_PRUNING = 1000


def run_batch(partitions: list[Partition], n_partitions: int, batch: Batch, n_jobs: int | None) -> Outcome:
    """Execute a batch on partitions of a worker: the body of a task."""
    begun, worker = time.perf_counter(), get_worker()
    end_quickly(worker)
    n_threads = worker.state.nthreads if n_jobs is None else min(worker.state.nthreads, threads_asked(n_jobs))
    results, incomplete = results_here(partitions, n_partitions, batch, n_threads)
    numbers = [one.rows.number for one in partitions]
    return Outcome(results, incomplete, time.perf_counter() - begun, worker.address, numbers)


class Group:
    """The partitions of one fit.

    Parameters
    ----------
    client : distributed.Client
    partitions : list of Future
        Of `Partition` objects, in the order of their numbers.
    n_jobs : int or None
        Threads of each worker, at most; None is all that it has.
    proxies : dict
        For kinds of objects, the class that stands for one such object on every partition.

    Attributes
    ----------
    n_partitions : int
    n_trips : int
        How many times all workers were asked.
    seconds_beyond_tasks : float
        Time of all trips less that of the slowest task of each.
    failure : ClusterFailure or None
        Why the cluster could not go on.
    """

    failure: ClusterFailure | None = None

    def __init__(self, client: Client, partitions: Sequence[Future], n_jobs: int | None, proxies: dict) -> None:
        self._client, self._partitions, self._n_jobs, self._proxies = client, list(partitions), n_jobs, proxies
        self.n_partitions, self.n_trips, self.seconds_beyond_tasks = len(self._partitions), 0, 0.0
        self._sent: list[Command] = []  # of the fit so far, but for those of objects that are no longer needed
        self._waiting: list[Command] = []
        self._dropped: deque[str] = deque()  # names of objects that nothing refers to any longer
        self._last_sent = 0
        self._numbers = itertools.count(1)
        self._requests: list[_Request] = []
        self._condition, self._is_busy = threading.Condition(), False
        self._is_abandoned = threading.Event()
        self._assignment: Assignment = {}
        self._workers: frozenset[str] = frozenset()
        self._seconds: dict[str, float] = {}
        self._overseer = Overseer(client)
        self.factors: dict[str, float] = {}  # of the costs of problems, by name

    # --- The methods of a place ---------------------------------------------------------------------------------------

    def create(self, kind: Callable, problem: Any, *arguments: Any) -> Any:
        """Create an object on every partition; return what stands for all of them."""
        name = f"{getattr(kind, '__name__', 'object')}-{next(self._numbers)}"
        proxy = self._proxies.get(kind, Everywhere)(self, kind, Ref(name), (problem, *arguments))
        self.recreate(proxy)
        weakref.finalize(proxy, self._dropped.append, name)
        return proxy

    def recreate(self, proxy: "Everywhere") -> None:
        """Create the objects that a proxy stands for, in place of those that may be there."""
        self._defer(proxy.kind, as_refs(proxy.arguments), proxy.ref.name)

    def total(self, function: Callable, problem: Any, *arguments: Any) -> Any:
        """Return the sum of function(problem, *arguments) over all partitions."""
        return self._ask(function, as_refs((problem, *arguments)), "sum")

    def largest(self, function: Callable, problem: Any, *arguments: Any) -> Any:
        """As `total`, but the largest result of all partitions, for each of its entries."""
        return self._ask(function, as_refs((problem, *arguments)), "largest")

    def each(self, function: Callable, *arguments: Any) -> list[Any]:
        """Return the results of all partitions, in order."""
        return self._ask(function, as_refs(arguments), "each")

    def each_later(self, function: Callable, *arguments: Any) -> Callable[[], list[Any]]:
        """Return a function that returns the results of `each`; they come with the next pass, or by their own."""
        request = _Request()
        with self._condition:
            self._waiting.append(Command(next(self._numbers), function, as_refs(arguments), None, "each", False))
            self._requests.append(request)
        return lambda: request.outcome() if request.is_done else self._answered(request)

    def on_all(self, function: Callable, objects: Sequence[Any], *arguments: Any) -> None:
        """Call function(objects, *arguments) on every partition, for a list of objects of `create`."""
        self._defer(function, as_refs((list(objects), *arguments)), None)

    def run(self, function: Callable, argument_lists: Sequence[tuple], n_jobs: int | None) -> list[Any]:
        """Return the results of calls that are independent of each other; what they ask for goes in common passes."""
        if len(argument_lists) == 1:
            return [function(*argument_lists[0])]
        with ThreadPoolExecutor(min(_MAX_THREADS, len(argument_lists)), "widemargin-dask") as pool:
            futures = [pool.submit(function, *arguments) for arguments in argument_lists]
            try:
                return [future.result() for future in futures]
            except BaseException:
                self._is_abandoned.set()  # the other threads end, too
                raise
            finally:
                wait(futures)
                self._is_abandoned.clear()

    # --- Commands -----------------------------------------------------------------------------------------------------

    def _defer(self, function, arguments, out):
        """Add a command without a result, which goes with the next one that has a result."""
        with self._condition:
            self._waiting.append(Command(next(self._numbers), function, arguments, out))

    def _ask(self, function, arguments, result, changes=False):
        """Return the result of a command.

        `changes` says whether the command changes objects, so that partitions that are rebuilt need it, too.
        """
        request = _Request()
        with self._condition:
            self._waiting.append(Command(next(self._numbers), function, arguments, None, result, changes))
            self._requests.append(request)
        return self._answered(request)

    def _answered(self, request):
        """Return what was asked for; the calling thread makes the pass, or waits for another that does."""
        if self._is_abandoned.is_set():
            raise KeyboardInterrupt
        with self._condition:
            while self._is_busy and not request.is_done:
                self._condition.wait()
            if request.is_done:
                return request.outcome()
            self._is_busy, requests, self._requests = True, self._requests, []
            batch = self._next_batch()
        try:
            for one, value in zip(requests, self._trip(batch), strict=True):
                one.value = value
        except BaseException as error:
            self.failure = error if isinstance(error, ClusterFailure) else self.failure
            for one in requests:
                one.error = error
        finally:
            with self._condition:
                self._is_busy = False
                for one in requests:
                    one.is_done = True
                self._condition.notify_all()
        return request.outcome()

    def _next_batch(self):
        """Return the commands that have not been sent, and count them as sent."""
        while self._dropped:
            self._waiting.append(Command(next(self._numbers), drop, (self._dropped.popleft(),)))
        batch = Batch(tuple(self._waiting), self._last_sent, len(self._waiting))
        self._sent += self._waiting
        self._waiting, self._last_sent = [], batch.commands[-1].number
        if len(self._sent) > _COMMANDS_BEFORE_PRUNING:
            self._sent = needed_commands(self._sent, ())
        return batch

    # --- Passes -------------------------------------------------------------------------------------------------------

    def _trip(self, batch):
        """Send a batch to all partitions; return the result of each command that has one."""
        begun = time.perf_counter()
        self._place_partitions()
        outcomes = self._outcomes(batch, dict(self._assignment))
        incomplete = sorted({number for one in outcomes for number in one.incomplete})
        if incomplete:
            outcomes = [one for one in outcomes if not one.incomplete] + self._repaired(batch, outcomes, incomplete)
        self._seconds = {one.worker: one.seconds for one in outcomes if not incomplete}
        self.n_trips += 1
        self.seconds_beyond_tasks += time.perf_counter() - begun - max(one.seconds for one in outcomes)
        if {one.worker for one in outcomes} != set(self._assignment):  # a worker was lost
            self._overseer.forget_workers()
        self._assignment = {}
        for one in outcomes:
            self._assignment.setdefault(one.worker, []).extend(one.numbers)
        wanted = [command for command in batch.commands if command.result is not None]
        return [self._combined(command, [one.results[k] for one in outcomes]) for k, command in enumerate(wanted)]

    def _combined(self, command, parts):
        """Return the result of a command from those of the workers."""
        nodes = {node: value for part in parts for node, value in part.items()}
        combine = COMBINATIONS.get(command.result)
        if combine is None:
            return [nodes[0, number] for number in range(self.n_partitions)]
        return joined(nodes, self.n_partitions, combine)[root(self.n_partitions)]

    def _repaired(self, batch, outcomes, incomplete):
        """Return the outcomes for partitions that lost their objects, and for those of the same tasks."""
        before = [one for one in self._sent if one.number <= batch.after]
        commands = (*needed_commands(before, batch.commands), *batch.commands)
        whole = batch._replace(commands=commands, is_whole=True)
        lost, rest = {}, {}
        for one in outcomes:
            if one.incomplete:
                lost.setdefault(one.worker, []).extend(one.incomplete)
                others = sorted(set(one.numbers) - set(one.incomplete))
                if others:
                    rest.setdefault(one.worker, []).extend(others)
        found = self._outcomes(whole, lost) + (self._outcomes(batch, rest) if rest else [])
        again = sorted({number for one in found for number in one.incomplete})
        if again:  # another worker was lost meanwhile
            found = [one for one in found if not one.incomplete] + self._repaired(batch, found, again)
        return found

    def _outcomes(self, batch, assignment):
        """Run a batch on partitions, one task for each worker; return the Outcomes."""
        try:
            return self._run_tasks(batch, assignment)
        except Exception as error:
            if self._client.status == "running":
                raise
            raise ClusterFailure("The connection to the scheduler has been lost.") from error

    def _run_tasks(self, batch, assignment):
        """Run a batch on partitions, one task for each worker; return the Outcomes."""
        verb = next(one.function for one in reversed(batch.commands) if one.result is not None)
        verb = getattr(verb, "__name__", type(verb).__name__).strip("_")
        verb = verb.title().replace("_", "-")  # Dask would take "evaluate" for a hexadecimal number, and not show it
        futures = [
            self._client.submit(
                run_batch, [self._partitions[number] for number in numbers], self.n_partitions, batch, self._n_jobs,
                key=f"widemargin-{verb}-{uuid.uuid4().hex}", pure=False, priority=1,
                workers=[worker], allow_other_workers=True,
            )
            for worker, numbers in sorted(assignment.items())
        ]  # fmt: skip
        try:
            self._overseer.wait(futures, self._partitions)
            return self._client.gather(futures, direct=False)
        except BaseException:
            if self._client.status == "running":
                self._client.cancel(futures)
            raise
        finally:
            for future in futures:
                future.release()

    def _place_partitions(self):
        """Assign partitions to workers, again if workers have come or gone, or some take much longer than others."""
        workers = frozenset(self._overseer.workers())
        if self._assignment and workers == self._workers:
            self._assignment = balanced(self._assignment, self._seconds)
            return
        self._workers = workers
        has = self._client.who_has(self._partitions)
        homes = {number: has.get(future.key, ()) for number, future in enumerate(self._partitions)}
        last = {number: worker for worker, numbers in self._assignment.items() for number in numbers}
        self._assignment = assigned(homes, sorted(workers), last)

    def record_of(self, ref: Ref) -> list[tuple[Callable, tuple]]:
        """Return the commands that have changed an object since it was created: function and arguments of each."""
        with self._condition:
            commands = [*self._sent, *self._waiting]
        created = max(k for k, one in enumerate(commands) if one.out == ref.name)
        changes = [one for one in commands[created + 1 :] if one.changes and one.out is None]
        return [(one.function, one.arguments) for one in changes if ref in _refs_in(one.arguments)]

    def close(self):
        """Release the partitions, and with them everything that the fit keeps on the cluster."""
        for future in self._partitions:
            future.release()
        self._sent, self._waiting, self._partitions = [], [], []


class _Request:
    """What a thread has asked for: the result of a command, or the exception that came instead."""

    def __init__(self):
        self.is_done, self.value, self.error = False, None, None

    def outcome(self):
        """Return the result, or raise the exception."""
        if self.error is not None:
            raise self.error
        return self.value


def _refs_in(arguments):
    """Return all references among arguments, those in lists included."""
    found = [one for argument in arguments for one in (argument if isinstance(argument, list) else [argument])]
    return {one for one in found if isinstance(one, Ref)}


def as_refs(arguments):
    """Return arguments in which objects that are on all partitions are replaced by references to them."""
    return tuple(_as_ref(argument) for argument in arguments)


def _as_ref(argument):
    if isinstance(argument, list):
        return [_as_ref(one) for one in argument]
    return getattr(argument, "ref", argument)


class Everywhere:
    """One object on each partition. Its methods are called on all of them, and the results are added.

    Parameters
    ----------
    group : Group
    kind : class
        That of the objects.
    ref : Ref
        How commands name them.
    arguments : tuple
        Those they are created with; the first is the problem.
    """

    without_result: frozenset[str] = frozenset()  # methods that return nothing: they wait for the next pass
    without_change: frozenset[str] = frozenset()  # methods that leave the objects as they are

    def __init__(self, group: Group, kind: Any, ref: Ref, arguments: tuple) -> None:
        self.group, self.kind, self.ref, self.problem, self.arguments = group, kind, ref, arguments[0], arguments

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.kind, name)
        if name in self.without_result:
            return lambda *arguments: self.group._defer(method, as_refs((self, *arguments)), None)
        changes = name not in self.without_change
        return lambda *arguments: self.group._ask(method, as_refs((self, *arguments)), "sum", changes)
