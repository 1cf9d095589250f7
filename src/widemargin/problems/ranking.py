"""The hinge loss of ordered pairs of rows: ranking within groups (queries), ordinal regression, ROC area (two ranks).

    R(s) = C/N Σ over the N pairs (i, j) with group_i = group_j, rank_i > rank_j of   max(0, 1 − (s_i − s_j))

There are up to n² pairs, but R and its subgradient need only two counts per row (Joachims, 2006)

    above_i = #{j: rank_j < rank_i, s_i − s_j < 1}     below_j = #{i: rank_i > rank_j, s_i − s_j < 1}
    c = C/N (below − above),    R = C/N Σ above + <c, s>

The rows of a group are visited in the order of their scores. A second pointer stays ahead of the first by a difference
of 1 in the scores, and the ranks of the rows that it has passed are counted in a binary indexed tree (Fenwick, 1994):
O(n log n) for any number of ranks. If there are only two ranks, they are sorted separately and no tree is needed.
The number of pairs has 64 bits; counts per row, which are at most the number of rows of a group, have 32.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from widemargin._runtime.compile import compiled
from widemargin._runtime.threads import n_threads, run, split
from widemargin.problems.row_risk import BracketedStep
from widemargin.problems.sorting import SORTER_VECTORS, Sorter

_ROWS_PER_TASK = 1 << 15
_RUN = 16  # rows that are sorted by insertion before runs are merged
_BYTES_OF_WORKSPACE = 2 * 8 + 6 * 4  # for each row of the largest group, see _Workspace


def pair_risk(rank, ends, C, n_jobs=1):
    """Return the risk of all ordered pairs within groups; see PairRisk for the arguments.

    Rows of one group with two ranks have a TwoRankRisk, other rows of one group a OneGroupRisk, and several groups a
    PairRisk.
    """
    if len(ends) > 2:
        return PairRisk(rank, ends, C, n_jobs)
    ranks = np.unique(rank)
    if len(ranks) == 2:
        return TwoRankRisk(rank == ranks[1], C, n_jobs)
    return OneGroupRisk(np.unique(rank, return_inverse=True)[1], C, n_jobs)


class TwoRankRisk(BracketedStep):
    """The risk of all pairs of a row of the higher rank and a row of the lower rank; both ranks must occur.

    Parameters
    ----------
    higher : ndarray of bool
        Whether a row is of the higher rank.
    C, n_jobs
        As for PairRisk.

    Attributes
    ----------
    n_vectors : float
        As of PairRisk: the scores of both ranks, and what sorting them takes.
    """

    n_vectors = 1 + SORTER_VECTORS

    def __init__(self, higher, C, n_jobs=1):
        self._rows = [np.flatnonzero(higher), np.flatnonzero(~higher)]
        self._sorters = [Sorter(len(rows)) for rows in self._rows]
        self.n_pairs = len(self._rows[0]) * len(self._rows[1])
        self.scale, self._weight = float(C), float(C) / self.n_pairs
        self._n_jobs = n_jobs if len(higher) > _ROWS_PER_TASK else 1

    def subgradient(self, s):
        """Return (R(s), c)."""
        ranks = zip(self._sorters, self._rows, strict=True)
        (high_order, high), (low_order, low) = run(lambda sorter, rows: sorter.sort(s[rows]), ranks, self._n_jobs)
        c = np.empty(len(s))
        tasks = [
            (_set_c_of_higher, high, low, self._rows[0], high_order, self._weight, c),
            (_set_c_of_lower, low, high, self._rows[1], low_order, self._weight, c),
        ]
        (n_violated, above_s), (_, below_s) = run(_call, tasks, self._n_jobs)
        return max(0.0, self._weight * (n_violated + below_s - above_s)), c


class OneGroupRisk(BracketedStep):
    """The risk of all pairs of rows of different rank, if all rows are in one group.

    Parameters
    ----------
    rank : ndarray of int
        One per row, 0, 1, 2, .. without gaps.
    C, n_jobs
        As for PairRisk.

    Attributes
    ----------
    n_vectors : float
        As of PairRisk: what sorting takes, two counts of 32 bits, and ranks of 32 bits in the order of the scores.
    """

    n_vectors = SORTER_VECTORS + 1.5

    def __init__(self, rank, C, n_jobs=1):
        self._rank, sizes = rank.astype(np.int32), np.bincount(rank)
        self.n_pairs = (len(rank) ** 2 - sum(size**2 for size in sizes.tolist())) // 2
        self.scale, self._weight = float(C), float(C) / max(1, self.n_pairs)
        self._n_jobs = n_jobs if len(rank) > _ROWS_PER_TASK else 1
        self._sorter = Sorter(len(rank))
        self._counts, self._trees = np.empty((2, len(rank)), np.int32), np.zeros((2, len(sizes) + 1), np.int32)

    def subgradient(self, s):
        """Return (R(s), c)."""
        order, sorted_s = self._sorter.sort(s)
        sorted_rank = self._rank[order]
        sides = zip((_count_above, _count_below), self._trees, self._counts, strict=True)
        tasks = [(count, sorted_s, sorted_rank, tree, counts) for count, tree, counts in sides]
        run(_call, tasks, self._n_jobs)
        c = np.empty(len(s))
        n_violated = _set_c(self._counts[0], self._counts[1], order, self._weight, c)
        return max(0.0, self._weight * float(n_violated) + float(c @ s)), c


class _Workspace(NamedTuple):
    """Memory for the rows of one group: their values in ascending order, and the position of each in the group.

    `merged_values` and `merged` are used by the sort, `rank` is in the order of the values, `above` are counts, and
    `tree` has a node for each rank, and one more.
    """

    values: np.ndarray
    merged_values: np.ndarray
    order: np.ndarray
    merged: np.ndarray
    rank: np.ndarray
    above: np.ndarray
    below: np.ndarray
    tree: np.ndarray


class PairRisk(BracketedStep):
    """The risk of all ordered pairs within groups.

    Memory is that of the largest group for each thread, and a rank for each row.

    Parameters
    ----------
    rank : ndarray of numbers
        One per row; only the order of the ranks within a group matters.
    ends : ndarray of int64
        The rows ends[g] <= i < ends[g + 1] are those of group g; the first entry is 0, the last the number of rows.
    C : float
        Multiplies the mean loss of the pairs.
    n_jobs : int or None

    Attributes
    ----------
    n_pairs : int
        The number N of pairs; 0 if the rows of each group all have the same rank, and R is then 0.
    n_vectors : float
        Bytes that a subgradient takes besides c, divided by eight times the number of rows.
    scale : float
        C.
    """

    def __init__(self, rank, ends, C, n_jobs=1):
        n_rows, n_groups = len(rank), len(ends) - 1
        self._ends, self._largest, self._n_jobs = ends, int(np.diff(ends).max(initial=0)), n_jobs
        self._tasks = split(n_groups, min(n_groups, -(-n_rows // _ROWS_PER_TASK)))
        n_bytes = min(n_threads(n_jobs), len(self._tasks)) * _BYTES_OF_WORKSPACE * self._largest
        self.n_vectors = n_bytes / (8 * max(1, n_rows))
        self._rank = np.empty(n_rows, np.int32)
        self.n_pairs = int(sum(self._run(_set_ranks, np.ascontiguousarray(rank), self._rank)))
        self.scale, self._weight = float(C), float(C) / max(1, self.n_pairs)

    def as_part_of(self, n_pairs, C):
        """Return this risk as the part of one with so many pairs, in other parts of the rows; C multiplies the mean."""
        self._weight = float(C) / n_pairs
        self.scale = self._weight * self.n_pairs
        return self

    def subgradient(self, s):
        """Return (R(s), c)."""
        c = np.empty(len(s))
        n_violated = sum(self._run(_set_c_of_groups, s, self._rank, self._weight, c))
        return max(0.0, self._weight * float(n_violated) + float(c @ s)), c

    def _run(self, function, *arguments):
        """Return what a function of groups returns for each range of groups."""

        def work(first, last):
            return function(self._ends, first, last, self._workspace(), *arguments)

        return run(work, self._tasks, self._n_jobs)

    def _workspace(self):
        values, positions = np.empty((2, self._largest)), np.empty((5, self._largest), np.int32)
        return _Workspace(*values, *positions, np.empty(self._largest + 2, np.int32))


def concordance(s, rank, group):
    """Return the fraction of concordant pairs of each group that has pairs; pairs with equal scores count one half."""
    rows = np.lexsort((s, group))
    s, rank, group = s[rows], rank[rows], group[rows]
    ends = np.append(np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]])), len(s))
    tree, concordant, pairs = np.zeros(len(s) + 2, np.int64), np.empty(len(ends) - 1), np.empty(len(ends) - 1)
    _, codes = np.unique(rank, return_inverse=True)
    _count_concordant(s, _ranks_within_groups(codes, ends), ends, tree, concordant, pairs)
    return concordant[pairs > 0] / pairs[pairs > 0]


def _ranks_within_groups(codes, ends):
    """Return the ranks 0, 1, 2, .. of the rows of each group, in the order of their codes."""
    ranks = np.empty(len(codes), np.int32)
    for begin, end in pairwise(ends):
        ranks[begin:end] = np.unique(codes[begin:end], return_inverse=True)[1]
    return ranks


def thresholds(s, rank, n_ranks):
    """Return the n_ranks − 1 ascending thresholds with the smallest sum of |predicted rank − rank| over the rows.

    The predicted rank of a row is the number of thresholds below its score. Each threshold is halfway between two
    scores, or 1 below the smallest or above the largest score; of several optimal ones it is the smallest.
    """
    order, sorted_s = Sorter(len(s)).sort(s)
    sorted_rank = rank[order].astype(np.int64)
    cuts = np.zeros(n_ranks - 1, np.int64)
    _find_cuts(sorted_s, sorted_rank, cuts, np.zeros((4, 2 * n_ranks + 2), np.int64))
    padded = np.concatenate([[sorted_s[0] - 2.0], sorted_s, [sorted_s[-1] + 2.0]])
    return 0.5 * (padded[cuts] + padded[cuts + 1])


def _call(function, *arguments):
    return function(*arguments)


@compiled
def _set_ranks(ends, first, last, workspace, target, rank):
    """Set the ranks 0, 1, 2, .. of the rows of each group, in the order of their targets; return the number of pairs.

    A pair consists of two rows of different rank.
    """
    values, order, n_pairs = workspace.values, workspace.order, np.int64(0)
    for g in range(first, last):
        begin, n = ends[g], ends[g + 1] - ends[g]
        _sort_group(target, begin, n, workspace)
        here, first_of_rank = 0, 0
        for p in range(n):
            if values[p] != values[first_of_rank]:
                here, first_of_rank = here + 1, p
            rank[begin + order[p]] = here
            n_pairs += first_of_rank
    return n_pairs


@compiled
def _set_c_of_groups(ends, first, last, workspace, s, rank, weight, c):
    """Set c = weight (below − above) for the rows of groups; return Σ above_i over them."""
    n_violated = np.int64(0)
    for g in range(first, last):
        begin, n = ends[g], ends[g + 1] - ends[g]
        _sort_group(s, begin, n, workspace)
        sorted_s, order, sorted_rank = workspace.values[:n], workspace.order[:n], workspace.rank[:n]
        for p in range(n):
            sorted_rank[p] = rank[begin + order[p]]
        above, below = workspace.above[:n], workspace.below[:n]
        _count_above(sorted_s, sorted_rank, workspace.tree, above)
        _count_below(sorted_s, sorted_rank, workspace.tree, below)
        n_violated += _set_c(above, below, order, weight, c[begin : begin + n])
    return n_violated


@compiled
def _set_c(above, below, order, weight, c):
    """Set c = weight (below − above) for counts of rows in this order; return Σ above."""
    n_violated = np.int64(0)
    for p in range(order.size):
        n_violated += above[p]
        c[np.uint64(order[p])] = weight * (below[p] - above[p])
    return n_violated


@compiled
def _sort_group(s, begin, n, workspace):
    """Set the ascending scores of n rows from `begin` on, and their order: insertion sort of runs, then merge sort."""
    values, order = workspace.values, workspace.order
    for block in range(0, n, _RUN):
        for p in range(block, min(block + _RUN, n)):
            value, place = s[begin + p], p
            while place > block and values[place - 1] > value:
                values[place], order[place] = values[place - 1], order[place - 1]
                place -= 1
            values[place], order[place] = value, p
    width = _RUN
    while width < n:
        for left in range(0, n - width, 2 * width):
            _merge(left, left + width, min(left + 2 * width, n), workspace)
        width *= 2


@compiled
def _merge(left, middle, right, workspace):
    """Merge the sorted runs left <= p < middle and middle <= p < right; only the first is copied to other memory."""
    values, order, first_values, first = workspace.values, workspace.order, workspace.merged_values, workspace.merged
    if values[middle - 1] <= values[middle]:
        return
    for p in range(left, middle):
        first_values[p], first[p] = values[p], order[p]
    a, b, place = left, middle, left
    while a < middle and b < right:
        if first_values[a] <= values[b]:
            values[place], order[place] = first_values[a], first[a]
            a += 1
        else:
            values[place], order[place] = values[b], order[b]
            b += 1
        place += 1
    while a < middle:
        values[place], order[place] = first_values[a], first[a]
        a += 1
        place += 1


@compiled
def _set_c_of_higher(high, low, rows, order, weight, c):
    """Set c_i = −weight above_i for the rows of the higher rank; return Σ above_i and Σ above_i s_i.

    `high` and `low` are the sorted scores of both ranks; rows[order[p]] is the row of high[p].
    """
    ahead, total, inner = low.size, np.int64(0), 0.0
    for p in range(high.size - 1, -1, -1):
        while ahead > 0 and high[p] - low[ahead - 1] < 1.0:
            ahead -= 1
        count = low.size - ahead
        total += count
        inner += count * high[p]
        c[rows[np.uint64(order[p])]] = -weight * count
    return total, inner


@compiled
def _set_c_of_lower(low, high, rows, order, weight, c):
    """Set c_j = weight below_j for the rows of the lower rank; return Σ below_j and Σ below_j s_j.

    `low` and `high` are the sorted scores of both ranks; rows[order[p]] is the row of low[p].
    """
    ahead, total, inner = 0, np.int64(0), 0.0
    for p in range(low.size):
        while ahead < high.size and high[ahead] - low[p] < 1.0:
            ahead += 1
        total += ahead
        inner += ahead * low[p]
        c[rows[np.uint64(order[p])]] = weight * ahead
    return total, inner


@compiled
def _count_above(s, rank, tree, counts):
    """Set counts[p] to the number of rows with a lower rank and a score above s[p] − 1, for ascending scores."""
    n_ranks, ahead = _clear(tree, rank, 0, s.size), s.size - 1
    for p in range(s.size - 1, -1, -1):
        while ahead >= 0 and s[p] - s[ahead] < 1.0:
            _insert(tree, n_ranks, rank[ahead])
            ahead -= 1
        counts[p] = _n_lower(tree, rank[p])


@compiled
def _count_below(s, rank, tree, counts):
    """Set counts[p] to the number of rows with a higher rank and a score below s[p] + 1, for ascending scores."""
    n_ranks, ahead = _clear(tree, rank, 0, s.size), 0
    for p in range(s.size):
        while ahead < s.size and s[ahead] - s[p] < 1.0:
            _insert(tree, n_ranks, rank[ahead])
            ahead += 1
        counts[p] = ahead - _n_lower(tree, rank[p] + 1)


@compiled
def _clear(tree, rank, begin, end):
    """Set all counts of the tree to zero; return the number of ranks of the group."""
    highest = 0
    for p in range(begin, end):
        highest = max(highest, rank[p])
    for node in range(highest + 2):
        tree[node] = 0
    return highest + 1


@compiled
def _insert(tree, n_ranks, rank):
    """Add a row of this rank to the tree."""
    node = rank + 1
    while node <= n_ranks:
        tree[np.uint64(node)] += 1
        node += node & -node


@compiled
def _n_lower(tree, rank):
    """Return the number of rows in the tree with a rank below this one."""
    total, node = np.int64(0), rank
    while node > 0:
        total += tree[np.uint64(node)]
        node -= node & -node
    return total


@compiled
def _count_concordant(s, rank, ends, tree, concordant, pairs):
    """Set the numbers of concordant pairs (equal scores count one half) and of pairs of each group."""
    for g in range(ends.size - 1):
        begin, end = ends[g], ends[g + 1]
        n_ranks = _clear(tree, rank, begin, end)
        in_order, tied, total = 0.0, 0.0, np.int64(0)
        p = begin
        while p < end:
            stop = p + 1  # at least one row: a NaN is not equal to itself
            while stop < end and s[stop] == s[p]:
                stop += 1
            for q in range(p, stop):
                in_order += _n_lower(tree, rank[q])
                tied -= _n_lower(tree, rank[q])
            for q in range(p, stop):
                _insert(tree, n_ranks, rank[q])
            for q in range(p, stop):
                tied += _n_lower(tree, rank[q])
            p = stop
        for q in range(begin, end):
            total += _n_lower(tree, rank[q])
        concordant[g], pairs[g] = in_order + 0.5 * tied, total


@compiled
def _find_cuts(s, rank, cuts, stack):
    """Set cuts[r] to the number of rows, in the order of their scores, with a predicted rank of at most r.

    Cutting after p rows instead of after none changes the sum of |predicted rank − rank| by the number of those rows
    with rank > r less the number with rank <= r. The best cuts ascend with r. The middle one is found first and
    divides the rows for the lower and the higher cuts, so that each row is visited O(log n_ranks) times.
    """
    n, depth = s.size, 0
    stack[0, 0], stack[1, 0], stack[2, 0], stack[3, 0] = 0, cuts.size, 0, n
    depth = 1 if cuts.size else 0
    while depth > 0:
        depth -= 1
        first, last, low, high = stack[0, depth], stack[1, depth], stack[2, depth], stack[3, depth]
        middle = (first + last) // 2
        best, best_change, change = low, 0, 0
        for p in range(low, high):
            change += 1 if rank[p] > middle else -1
            if change < best_change and (p + 1 == n or s[p] < s[p + 1]):
                best, best_change = p + 1, change
        cuts[middle] = best
        if first < middle:
            stack[0, depth], stack[1, depth], stack[2, depth], stack[3, depth] = first, middle, low, best
            depth += 1
        if middle + 1 < last:
            stack[0, depth], stack[1, depth], stack[2, depth], stack[3, depth] = middle + 1, last, best, high
            depth += 1
