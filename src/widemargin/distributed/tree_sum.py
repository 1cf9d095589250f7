"""Sums over partitions in the order of a fixed binary tree.

Rounding makes a sum depend on the order in which its terms are added. The order here depends on the numbers of the
partitions only: those of partitions 2k and 2k + 1 are added, then these sums in pairs, and so on. A worker adds what
the tree allows among its own partitions, and the client adds the rest, so that the result is the same to the last bit
for any number of workers and any placement of the partitions, and a worker with many adjacent partitions returns few
sums.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

Node = tuple[int, int]  # (level, k): the partitions from k 2^level on, 2^level of them


def added(first: Any, second: Any) -> Any:
    """Return the sum of two results: numbers, arrays, or tuples of them, which are added entry by entry."""
    return _combined(first, second, np.add)


def largest(first: Any, second: Any) -> Any:
    """Return the larger of two numbers; of arrays and tuples, of each entry."""
    return _combined(first, second, np.maximum)


def _combined(first, second, combine):
    if isinstance(first, tuple):
        parts = [_combined(*pair, combine) for pair in zip(first, second, strict=True)]
        return type(first)(*parts) if hasattr(first, "_fields") else tuple(parts)
    return combine(first, second)


def joined(results: dict[Node, Any], n_partitions: int, combine: Callable[[Any, Any], Any]) -> dict[Node, Any]:
    """Combine results of nodes as far as possible; the root stands for all partitions.

    A node whose sibling has no partitions is its parent.
    """
    found, level = dict(results), 0
    while 1 << level < n_partitions:
        for k in sorted(k for at, k in found if at == level):
            left = (level, k - k % 2)
            right = (level, left[1] + 1)
            if right[1] << level >= n_partitions:
                found[level + 1, k // 2] = found.pop(left)
            elif left in found and right in found:
                found[level + 1, k // 2] = combine(found.pop(left), found.pop(right))
        level += 1
    return found


def root(n_partitions: int) -> Node:
    """Return the node of all partitions."""
    return max(0, (n_partitions - 1).bit_length()), 0
