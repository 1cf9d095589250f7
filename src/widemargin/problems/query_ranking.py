"""The hinge loss of ordered pairs of rows, as a mean over groups (queries) of the mean over the pairs of a group.

    R(s) = C/G Σ over the G groups g that have pairs of   1/N_g Σ over its N_g pairs (i, j) of   max(0, 1 − (s_i − s_j))

A query with many rows counts as much as one with few, as in the second loss of SVM-rank. Counts are those of `ranking`.
"""

from itertools import pairwise

import numpy as np

from widemargin._runtime.compile import compiled
from widemargin.problems.ranking import PairRisk, _count_above, _count_below, _set_c, _sort_group


class QueryRisk(PairRisk):
    """The risk of all ordered pairs within groups, in which groups have the same weight; see PairRisk."""

    def __init__(self, rank, ends, C, n_jobs=1):
        super().__init__(rank, ends, C, n_jobs)
        pairs = np.array([_pairs_in(self._rank[begin:end]) for begin, end in pairwise(ends)])
        self._weights = np.zeros(len(pairs))
        self._weights[pairs > 0] = self.scale / (np.count_nonzero(pairs) * pairs[pairs > 0])

    def subgradient(self, s):
        """Return (R(s), c)."""
        c = np.empty(len(s))
        constant = sum(self._run(_set_c_of_weighted_groups, s, self._rank, self._weights, c))
        return max(0.0, float(constant) + float(c @ s)), c


def _pairs_in(rank):
    """Return the number of pairs of rows of different rank."""
    sizes = np.bincount(rank)
    return (len(rank) ** 2 - int(sizes @ sizes)) // 2


@compiled
def _set_c_of_weighted_groups(ends, first, last, workspace, s, rank, weights, c):
    """Set c = weight of the group (below − above) for the rows of groups; return Σ weight Σ above_i over them."""
    constant = 0.0
    for g in range(first, last):
        begin, n = ends[g], ends[g + 1] - ends[g]
        _sort_group(s, begin, n, workspace)
        sorted_s, order, sorted_rank = workspace.values[:n], workspace.order[:n], workspace.rank[:n]
        for p in range(n):
            sorted_rank[p] = rank[begin + order[p]]
        above, below = workspace.above[:n], workspace.below[:n]
        _count_above(sorted_s, sorted_rank, workspace.tree, above)
        _count_below(sorted_s, sorted_rank, workspace.tree, below)
        constant += weights[g] * _set_c(above, below, order, weights[g], c[begin : begin + n])
    return constant
