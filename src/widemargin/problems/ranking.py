"""The hinge loss of ordered pairs of rows: ranking within groups (queries), ordinal regression, ROC area (two ranks).

    R(s) = C/N Σ over the N pairs (i, j) with group_i = group_j, rank_i > rank_j of   max(0, 1 − (s_i − s_j))

There are up to n² pairs, but R and its subgradient need only two counts per row (Joachims, 2006)

    above_i = #{j: rank_j < rank_i, s_i − s_j < 1}     below_j = #{i: rank_i > rank_j, s_i − s_j < 1}
    c = C/N (below − above),    R = C/N Σ above + <c, s>

The rows of a group are visited in the order of their scores. A second pointer stays ahead of the first by a difference
of 1 in the scores, and the ranks of the rows that it has passed are counted in a binary indexed tree (Fenwick, 1994):
O(n log n) for any number of ranks. If there are only two ranks, they are sorted separately and no tree is needed.
Counts are 64-bit integers.
"""

from itertools import pairwise

import numpy as np

from widemargin._runtime.compile import compiled
from widemargin._runtime.threads import run, split
from widemargin.problems.row_risk import BracketedStep
from widemargin.problems.sorting import Sorter

_ROWS_PER_TASK = 1 << 15


def pair_risk(rank, group, C, n_jobs=None):
    """Return the risk of all ordered pairs within groups: a TwoRankRisk for two ranks in one group, else a PairRisk."""
    ranks = np.unique(rank)
    if len(ranks) == 2 and (group == group[0]).all():
        return TwoRankRisk(rank == ranks[1], C, n_jobs)
    return PairRisk(rank, group, C, n_jobs)


class TwoRankRisk(BracketedStep):
    """The risk of all pairs of a row of the higher rank and a row of the lower rank; both ranks must occur.

    Parameters
    ----------
    higher : ndarray of bool
        Whether a row is of the higher rank.
    C, n_jobs
        As for PairRisk.
    """

    def __init__(self, higher, C, n_jobs=None):
        self._rows = [np.flatnonzero(higher), np.flatnonzero(~higher)]
        self._sorters = [Sorter(len(rows)) for rows in self._rows]
        self.n_pairs = len(self._rows[0]) * len(self._rows[1])
        self.scale, self._weight, self._n_jobs = float(C), float(C) / self.n_pairs, n_jobs

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


class PairRisk(BracketedStep):
    """The risk of all ordered pairs within groups.

    Parameters
    ----------
    rank : ndarray of int
        One per row; only the order of the ranks within a group matters.
    group : ndarray of int
        One per row.
    C : float
        Multiplies the mean loss of the pairs.
    n_jobs : int or None

    Attributes
    ----------
    n_pairs : int
        The number N of pairs; 0 if the rows of each group all have the same rank, and R is then 0.
    scale : float
        C.
    """

    def __init__(self, rank, group, C, n_jobs=None):
        rows = np.lexsort((rank, group))
        rank, group = rank[rows], group[rows]
        self._ends = np.append(np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]])), len(rank))
        n_groups = len(self._ends) - 1
        is_new_rank = np.concatenate([[False], rank[1:] != rank[:-1]])
        is_new_rank[self._ends[:-1]] = False
        n_changes = np.cumsum(is_new_rank)
        rank = (n_changes - np.repeat(n_changes[self._ends[:-1]], np.diff(self._ends))).astype(np.int32)
        self.n_pairs = int(_count_pairs(rank, self._ends))
        self._rows = rows if n_groups > 1 else None  # the rows of each group are contiguous
        self._rank = np.empty_like(rank)
        self._rank[rows] = rank
        self.scale, self._weight = float(C), float(C) / max(1, self.n_pairs)
        self._n_jobs = n_jobs
        self._tasks = split(n_groups, min(n_groups, -(-len(rank) // _ROWS_PER_TASK)))
        self._trees = np.zeros((2, len(rank) + 2 * n_groups), np.int64)
        self._counts = np.empty((2, len(rank)), np.int64)
        self._sorter = Sorter(len(rank) if n_groups == 1 else 0)

    def as_part_of(self, n_pairs, C):
        """Return this risk as the part of one with so many pairs, in other parts of the rows; C multiplies the mean."""
        self._weight = float(C) / n_pairs
        self.scale = self._weight * self.n_pairs
        return self

    def subgradient(self, s):
        """Return (R(s), c)."""
        order, sorted_s = self._sorted(s)
        sorted_rank = self._rank[order]
        above, below = self._counts
        tasks = [
            (count, sorted_s, sorted_rank, self._ends, *groups, trees, counts)
            for groups in self._tasks
            for count, trees, counts in zip((_count_above, _count_below), self._trees, (above, below), strict=True)
        ]
        run(_call, tasks, self._n_jobs)
        n_violated = above.sum()
        below -= above
        c = np.empty(len(s))
        c[order] = self._weight * below
        return max(0.0, self._weight * float(n_violated) + float(c @ s)), c

    def _sorted(self, s):
        """Return the rows sorted by group, and by score within a group, and the scores in this order."""
        if self._rows is None:
            return self._sorter.sort(s)
        order, buffer = self._rows.copy(), np.empty_like(self._rows)
        run(_sort_groups, [(s, self._ends, *groups, order, buffer) for groups in self._tasks], self._n_jobs)
        return order, s[order]


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
def _count_pairs(rank, ends):
    """Return the number of pairs of different rank within groups, for ranks that ascend within each group."""
    total = np.int64(0)
    for g in range(ends.size - 1):
        first_of_rank = ends[g]
        for p in range(ends[g], ends[g + 1]):
            if rank[p] != rank[first_of_rank]:
                first_of_rank = p
            total += first_of_rank - ends[g]
    return total


@compiled
def _sort_groups(s, ends, first, last, order, buffer):
    """Sort the rows of each group by score, from any order: insertion sort of runs of 16 rows, then merge sort."""
    for g in range(first, last):
        begin, end = ends[g], ends[g + 1]
        for block in range(begin, end, 16):
            for p in range(block + 1, min(block + 16, end)):
                row, place = order[p], p
                while place > block and s[order[place - 1]] > s[row]:
                    order[place] = order[place - 1]
                    place -= 1
                order[place] = row
        width = 16
        while width < end - begin:
            for left in range(begin, end - width, 2 * width):
                _merge(s, order, left, left + width, min(left + 2 * width, end), buffer)
            width *= 2


@compiled
def _merge(s, order, left, middle, right, buffer):
    """Merge the sorted runs left <= p < middle and middle <= p < right; only the first is copied to the buffer."""
    if s[order[middle - 1]] <= s[order[middle]]:
        return
    for p in range(left, middle):
        buffer[p] = order[p]
    a, b, place = left, middle, left
    while a < middle and b < right:
        if s[buffer[a]] <= s[order[b]]:
            order[place] = buffer[a]
            a += 1
        else:
            order[place] = order[b]
            b += 1
        place += 1
    while a < middle:
        order[place] = buffer[a]
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
def _count_above(s, rank, ends, first, last, trees, counts):
    """Set counts[p] to the number of rows of the group with a lower rank and a score above s[p] − 1."""
    for g in range(first, last):
        begin, end = ends[g], ends[g + 1]
        tree = trees[begin + 2 * g : end + 2 * g + 2]
        n_ranks = _clear(tree, rank, begin, end)
        ahead = end - 1
        for p in range(end - 1, begin - 1, -1):
            while ahead >= begin and s[p] - s[ahead] < 1.0:
                _insert(tree, n_ranks, rank[ahead])
                ahead -= 1
            counts[p] = _n_lower(tree, rank[p])


@compiled
def _count_below(s, rank, ends, first, last, trees, counts):
    """Set counts[p] to the number of rows of the group with a higher rank and a score below s[p] + 1."""
    for g in range(first, last):
        begin, end = ends[g], ends[g + 1]
        tree = trees[begin + 2 * g : end + 2 * g + 2]
        n_ranks = _clear(tree, rank, begin, end)
        ahead = begin
        for p in range(begin, end):
            while ahead < end and s[ahead] - s[p] < 1.0:
                _insert(tree, n_ranks, rank[ahead])
                ahead += 1
            counts[p] = (ahead - begin) - _n_lower(tree, rank[p] + 1)


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
