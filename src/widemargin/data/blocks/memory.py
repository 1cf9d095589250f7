"""Amounts of memory, as callers write them."""

import math
import os
import re
from pathlib import Path

from widemargin.data.blocks.extra import OptionError

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_AMOUNT = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([KMGT]?)B?\s*", re.IGNORECASE)
_DEFAULT_FRACTION_OF_FREE_MEMORY = 0.5
_BYTES_IF_UNKNOWN = 10**9


def bytes_of(amount, name="max_memory"):
    """Return an amount of memory, a number or a text such as "3GB" or "800 MB", in bytes; None is half of what is free.

    Raises
    ------
    ValueError
        If it is no positive amount.
    """
    if amount is None:
        return int(_DEFAULT_FRACTION_OF_FREE_MEMORY * free_bytes())
    found = _AMOUNT.fullmatch(amount) if isinstance(amount, str) else None
    if found:
        amount = float(found[1]) * _UNITS[found[2].upper()]
    if isinstance(amount, str | bool) or not 1 <= amount < math.inf:
        raise OptionError(f'{name} must be a number of bytes, or a text such as "3GB" or "500M", got {amount!r}.')
    return int(amount)


def free_bytes():
    """Return the bytes of memory that the process may still take, as far as the system tells."""
    return int(max(0, min(_free_in_system(), _free_in_control_group())))


def memory_in_use():
    """Return the bytes of memory that the process has in use; 0 where the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return 0


def _free_in_control_group():
    """Return what the memory control group of the process leaves it; infinity if there is no limit."""
    try:
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers == "":
                file = Path(f"/sys/fs/cgroup{path}/memory.max")
            elif "memory" in controllers.split(","):
                file = Path(f"/sys/fs/cgroup/memory{path}/memory.limit_in_bytes")
            else:
                continue
            if file.exists() and (limit := file.read_text().strip()) != "max":
                return int(limit) - memory_in_use()
    except (OSError, ValueError):  # no control groups, or hidden ones
        return math.inf
    return math.inf


def _free_in_system():
    """Return the bytes of memory that are free, or could be made free at once."""
    try:
        with open("/proc/meminfo") as file:
            lines = dict(line.split(":") for line in file)
        return int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):  # not Linux
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, OSError, ValueError):
        return _BYTES_IF_UNKNOWN
