"""How busy the machine is with the work of others: processor time of all, less that of our own processes.

The share of others is given in cores: 0.5 is half of one core. Time that a hypervisor gave to other machines is work
of others too. Our own processes are this one, its children and theirs; children that lose their parent stay ours
(Linux's subreaper). Only Linux tells what is needed; elsewhere the share is None, and a page says that it was not
measured.
"""

import ctypes
import os
import time
from pathlib import Path

QUIET_CORES = 0.2  # others may use so much
_PR_SET_CHILD_SUBREAPER = 36
_TICK = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


class MachineBusyError(RuntimeError):
    """Others use the processor, so that times would not be ours."""


def adopt_orphans():
    """Make this process the parent of descendants whose parent has ended, so that their time stays ours."""
    if Path("/proc/self/stat").exists():
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


class OtherWork:
    """Measures the work of others from its construction on."""

    def __init__(self):
        self._begun, self._times = time.perf_counter(), _processor_seconds()

    def cores(self):
        """Return how many cores others used on average since the beginning, None if the system does not tell."""
        now = _processor_seconds()
        if now is None or self._times is None:
            return None
        (everybody, own), (before, own_before) = now, self._times
        spent = (everybody - before) - (own - own_before)
        return max(0.0, spent) / max(time.perf_counter() - self._begun, 1e-9)


def wait_until_quiet(patience, most=QUIET_CORES, second=1.0):
    """Return the cores that others use once they are few; raise MachineBusyError if they are not after `patience` s."""
    begun = time.perf_counter()
    while True:
        work = OtherWork()
        time.sleep(second)
        cores = work.cores()
        if cores is None or cores <= most:
            return cores
        if time.perf_counter() - begun >= patience:
            raise MachineBusyError(f"others use {cores:.2f} cores ({most:g} are allowed): {_busiest()}")


def _processor_seconds():
    """Return the processor seconds of everybody and of our own processes since the start, None if not told."""
    try:
        user, nice, system, _, _, _, _, steal = map(int, Path("/proc/stat").read_text().split()[1:9])
    except (OSError, ValueError):
        return None  # interrupts are left out: most of them serve our own files and sockets
    return (user + nice + system + steal) / _TICK, _own_ticks(processes()) / _TICK


def processes():
    """Return (parent, ticks of itself and of its children that have ended, name) by process."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            head, _, tail = path.read_text().rpartition(")")
        except OSError:  # it has ended
            continue
        fields = tail.split()
        found[int(path.parent.name)] = int(fields[1]), sum(map(int, fields[11:15])), head.partition("(")[2]
    return found


def own_processes(found):
    """Return the numbers of this process and its descendants."""
    own, grown = {os.getpid()}, True
    while grown:
        more = {number for number, (parent, _, _) in found.items() if parent in own} - own
        own, grown = own | more, bool(more)
    return own


def _own_ticks(found):
    return sum(found[number][1] for number in own_processes(found) if number in found)


def _busiest(second=0.5, n_shown=3):
    """Return the names of the processes that use the processor most, ours left out."""
    before = processes()
    time.sleep(second)
    after = processes()
    own = own_processes(after)
    spent = {
        number: ticks - before[number][1]
        for number, (_, ticks, _) in after.items()
        if number in before and number not in own
    }
    chosen = [number for number in sorted(spent, key=spent.get, reverse=True)[:n_shown] if spent[number] > 0]
    return ", ".join(f"{after[number][2]} ({number})" for number in chosen) or "none of them for long"
