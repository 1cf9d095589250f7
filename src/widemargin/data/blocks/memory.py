"""Amounts of memory, as callers write them."""

import os
import re

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
    if isinstance(amount, str | bool) or not amount >= 1:
        raise ValueError(f'{name} must be a number of bytes, or a text such as "3GB" or "500M", got {amount!r}.')
    return int(amount)


def free_bytes():
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
