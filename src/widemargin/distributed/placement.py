"""Which worker processes which partition.

Partitions stay where they are. They move only if a worker has none and another has several, or if one worker takes much
longer than the others, so that the time that all passes together take becomes shorter by more than the move costs.
"""

from collections.abc import Mapping, Sequence

_SLOWEST_TO_MEAN = 1.5  # time of the slowest worker, in multiples of the mean, from which on partitions move
_LEAST_SECONDS = 0.25  # of a pass from which on it pays to move partitions

Assignment = dict[str, list[int]]


def assigned(homes: Mapping[int, Sequence[str]], workers: Sequence[str], last: Mapping[int, str]) -> Assignment:
    """Return the partitions of each worker, each at a worker that has it in memory, if there is one.

    Parameters
    ----------
    homes : dict
        The workers that have a partition in memory, by its number.
    workers : list of str
        The addresses of all workers.
    last : dict
        The worker that processed a partition last, which keeps it if it still has it.
    """
    found: Assignment = {worker: [] for worker in sorted(workers)}
    homeless = []
    for number in sorted(homes):
        at = [worker for worker in homes[number] if worker in found]
        if at:
            found[last[number] if last.get(number) in at else min(at, key=lambda one: len(found[one]))].append(number)
        else:
            homeless.append(number)
    for number in homeless:
        min(found.values(), key=len).append(number)
    idle = [worker for worker in found if not found[worker]]
    for worker in idle:
        largest = max(found.values(), key=len)
        if len(largest) > 1:
            half = len(largest) // 2
            found[worker], largest[half:] = largest[half:], []
    return {worker: sorted(numbers) for worker, numbers in found.items() if numbers}


def balanced(assignment: Assignment, seconds: Mapping[str, float]) -> Assignment:
    """Return an assignment in which partitions of workers that take much longer than others are at faster ones.

    `seconds` is how long each worker took for its partitions in the last pass.
    """
    known = [worker for worker in assignment if seconds.get(worker, 0.0) > 0.0]
    if len(known) < 2 or max(seconds[worker] for worker in known) < _LEAST_SECONDS:
        return assignment
    rates = {worker: seconds[worker] / len(assignment[worker]) for worker in known}  # of one partition
    moved = {worker: list(numbers) for worker, numbers in assignment.items()}
    times = {worker: seconds[worker] for worker in known}
    if max(times.values()) < _SLOWEST_TO_MEAN * sum(times.values()) / len(times):
        return assignment
    while True:
        slowest = max(times, key=times.__getitem__)
        fastest = min(times, key=lambda one: times[one] + rates[one])
        if len(moved[slowest]) < 2 or times[fastest] + rates[fastest] >= times[slowest]:
            return {worker: sorted(numbers) for worker, numbers in moved.items()}
        moved[fastest].append(moved[slowest].pop())
        times[slowest] -= rates[slowest]
        times[fastest] += rates[fastest]
