"""Ordered pairs of rows: ordinal regression, ROC area (two ranks), ranking within groups (queries).

    R(s) = C/N Σ over the N pairs (i, j) of a group with rank_i > rank_j of   max(0, 1 − (s_i − s_j))

There are up to n² pairs, but R and its subgradient need only two counts per row (Joachims, 2006)

    above_i = #{j: rank_j < rank_i, s_i − s_j < 1}     below_j = #{i: rank_i > rank_j, s_i − s_j < 1}
    c = C/N (below − above),    R = C/N Σ above + <c, s>

With the rows of a group in the order of their scores, one pointer runs ahead of another by a margin of 1, and a binary
indexed tree (Fenwick, 1994) counts ranks between them: O(n log n) however many ranks there are. Two ranks are sorted
apart, and need no tree. Counts have 64 bits.
"""

from itertools import pairwise

import numpy as np

from widemargin._runtime.compile import compiled
from widemargin._runtime.threads import run, split
from widemargin.problems.row_risk import BracketedStep
from widemargin.problems.sorting import Sorter

_RANGE = 1 << 15  # rows of one task


def pair_risk(rank, group, C, n_jobs=None):
    """Return the risk of all ordered pairs within groups: a PairRisk, or a TwoRankRisk if that is the same."""
    ranks = np.unique(rank)
    if len(ranks) == 2 and (group == group[0]).all():
        return TwoRankRisk(rank == ranks[1], C, n_jobs)
    return PairRisk(rank, group, C, n_jobs)


class TwoRankRisk(BracketedStep):
    """The risk of all pairs of a row of the higher and one of the lower rank; both must occur.

    Parameters
    ----------
    higher : ndarray of bool
        For each row, whether it is of the higher rank.
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
        sides = zip(self._sorters, self._rows, strict=True)
        (first, high), (second, low) = run(lambda sorter, rows: sorter.sort(s[rows]), sides, self._n_jobs)
        c = np.empty(len(s))
        tasks = [
            (_spread_above, high, low, self._rows[0], first, self._weight, c),
            (_spread_below, low, high, self._rows[1], second, self._weight, c),
        ]
        (count, above), (_, below) = run(_call, tasks, self._n_jobs)
        return max(0.0, self._weight * (count + below - above)), c


class PairRisk(BracketedStep):
    """The risk of all ordered pairs within groups.

    Parameters
    ----------
    rank : ndarray of int
        One per row; only their order counts, and only within a group.
    group : ndarray of int
        One per row.
    C : float
        Multiplies the mean loss of the pairs.
    n_jobs : int or None

    Attributes
    ----------
    n_pairs : int
        0 if all rows of each group have the same rank: then there is nothing to learn, and R is 0.
    scale : float
        C.
    """

    def __init__(self, rank, group, C, n_jobs=None):
        rows = np.lexsort((rank, group))
        rank, group = rank[rows], group[rows]
        self._ends = np.append(np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]])), len(rank))
        n_groups = len(self._ends) - 1
        change = np.concatenate([[False], rank[1:] != rank[:-1]])
        change[self._ends[:-1]] = False
        count = np.cumsum(change)
        rank = (count - np.repeat(count[self._ends[:-1]], np.diff(self._ends))).astype(np.int32)
        self.n_pairs = int(_count_pairs(rank, self._ends))
        self._rows = None
        if n_groups > 1:
            self._rows = rows  # those of a group together
        self._rank = np.empty_like(rank)
        self._rank[rows] = rank
        self.scale, self._weight = float(C), float(C) / max(1, self.n_pairs)
        self._n_jobs = n_jobs
        self._tasks = split(n_groups, min(n_groups, -(-len(rank) // _RANGE)))
        self._memory = np.zeros((2, len(rank) + 2 * n_groups), np.int64)  # trees
        self._counts = np.empty((2, len(rank)), np.int64)
        self._sorter = Sorter(len(rank) if n_groups == 1 else 0)

    def subgradient(self, s):
        """Return (R(s), c)."""
        order, sorted_s = self._sorted(s)
        sorted_rank = self._rank[order]
        above, below = self._counts
        tasks = [
            (sweep, sorted_s, sorted_rank, self._ends, *part, memory, counts)
            for part in self._tasks
            for sweep, memory, counts in zip((_count_above, _count_below), self._memory, (above, below), strict=True)
        ]
        run(_call, tasks, self._n_jobs)
        n_violated = above.sum()
        below -= above
        c = np.empty(len(s))
        c[order] = self._weight * below
        return max(0.0, self._weight * float(n_violated) + float(c @ s)), c

    def _sorted(self, s):
        """Return the rows by group, those of a group by score, and the scores in this order."""
        if self._rows is None:
            return self._sorter.sort(s)
        order, buffer = self._rows.copy(), np.empty_like(self._rows)
        run(_sort_groups, [(s, self._ends, *part, order, buffer) for part in self._tasks], self._n_jobs)
        return order, s[order]


def concordance(s, rank, group):
    """Return, for each group that has pairs, the part of its pairs that scores put right; equal scores count half."""
    rows = np.lexsort((s, group))
    s, rank, group = s[rows], rank[rows], group[rows]
    ends = np.append(np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]])), len(s))
    tree, right, pairs = np.zeros(len(s) + 2, np.int64), np.empty(len(ends) - 1), np.empty(len(ends) - 1)
    _, codes = np.unique(rank, return_inverse=True)
    _count_right(s, _within_groups(codes, ends), ends, tree, right, pairs)
    return right[pairs > 0] / pairs[pairs > 0]


def _within_groups(codes, ends):
    """Return ranks that begin with 0 in each group and leave no rank out."""
    ranks = np.empty(len(codes), np.int32)
    for begin, end in pairwise(ends):
        ranks[begin:end] = np.unique(codes[begin:end], return_inverse=True)[1]
    return ranks


def thresholds(s, rank, n_ranks):
    """Return n_ranks − 1 ascending scores that cut the rows into ranks with the least sum of |rank − true rank|.

    A row is of the rank that is the number of thresholds below its score. Each threshold is halfway between two
    scores, or 1 beyond the outermost one; of several that are equally good it is the smallest.
    """
    order, sorted_s = Sorter(len(s)).sort(s)
    sorted_rank = rank[order].astype(np.int64)
    cuts = np.zeros(n_ranks - 1, np.int64)
    _cut(sorted_s, sorted_rank, cuts, np.zeros((4, 2 * n_ranks + 2), np.int64))
    padded = np.concatenate([[sorted_s[0] - 2.0], sorted_s, [sorted_s[-1] + 2.0]])
    return 0.5 * (padded[cuts] + padded[cuts + 1])


def _call(function, *arguments):
    return function(*arguments)


@compiled
def _count_pairs(rank, ends):
    """Return the number of pairs of different rank within groups; ranks ascend within each group."""
    total = np.int64(0)
    for g in range(ends.size - 1):
        run_begin = ends[g]
        for p in range(ends[g], ends[g + 1]):
            if rank[p] != rank[run_begin]:
                run_begin = p
            total += run_begin - ends[g]
    return total


@compiled
def _sort_groups(s, ends, first, last, order, buffer):
    """Sort the positions of each group by score, from whatever order they are in: insertion, then merging."""
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
    """Merge two sorted neighbours, of which only the first needs to be copied."""
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
def _spread_above(high, low, rows, order, weight, c):
    """Set c of the rows of the higher rank; return the sum of their counts, and that of counts times scores."""
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
def _spread_below(low, high, rows, order, weight, c):
    """Set c of the rows of the lower rank; return the sum of their counts, and that of counts times scores."""
    ahead, total, inner = 0, np.int64(0), 0.0
    for p in range(low.size):
        while ahead < high.size and high[ahead] - low[p] < 1.0:
            ahead += 1
        total += ahead
        inner += ahead * low[p]
        c[rows[np.uint64(order[p])]] = weight * ahead
    return total, inner


@compiled
def _count_above(s, rank, ends, first, last, memory, counts):
    """Set counts[p] to the number of rows of the group with a lower rank and a score above s[p] − 1."""
    for g in range(first, last):
        begin, end = ends[g], ends[g + 1]
        tree = memory[begin + 2 * g : end + 2 * g + 2]
        n_ranks = _clear(tree, rank, begin, end)
        ahead = end - 1
        for p in range(end - 1, begin - 1, -1):
            while ahead >= begin and s[p] - s[ahead] < 1.0:
                _insert(tree, n_ranks, rank[ahead])
                ahead -= 1
            counts[p] = _up_to(tree, rank[p])


@compiled
def _count_below(s, rank, ends, first, last, memory, counts):
    """Set counts[p] to the number of rows of the group with a higher rank and a score below s[p] + 1."""
    for g in range(first, last):
        begin, end = ends[g], ends[g + 1]
        tree = memory[begin + 2 * g : end + 2 * g + 2]
        n_ranks = _clear(tree, rank, begin, end)
        ahead = begin
        for p in range(begin, end):
            while ahead < end and s[ahead] - s[p] < 1.0:
                _insert(tree, n_ranks, rank[ahead])
                ahead += 1
            counts[p] = (ahead - begin) - _up_to(tree, rank[p] + 1)


@compiled
def _clear(tree, rank, begin, end):
    """Empty the tree; return how many ranks the group has."""
    highest = 0
    for p in range(begin, end):
        highest = max(highest, rank[p])
    for node in range(highest + 2):
        tree[node] = 0
    return highest + 1


@compiled
def _insert(tree, n_ranks, rank):
    """Count one more row of this rank."""
    node = rank + 1
    while node <= n_ranks:
        tree[np.uint64(node)] += 1
        node += node & -node


@compiled
def _up_to(tree, rank):
    """Return how many rows have a lower rank than this."""
    total, node = np.int64(0), rank
    while node > 0:
        total += tree[np.uint64(node)]
        node -= node & -node
    return total


@compiled
def _count_right(s, rank, ends, tree, right, pairs):
    """Set, for each group, how many of its pairs are in order (equal scores count half) and how many there are."""
    for g in range(ends.size - 1):
        begin, end = ends[g], ends[g + 1]
        n_ranks = _clear(tree, rank, begin, end)
        in_order, tied, total = 0.0, 0.0, np.int64(0)
        p = begin
        while p < end:
            stop = p + 1  # NaN is not even equal to itself
            while stop < end and s[stop] == s[p]:
                stop += 1
            for q in range(p, stop):
                in_order += _up_to(tree, rank[q])
                tied -= _up_to(tree, rank[q])
            for q in range(p, stop):
                _insert(tree, n_ranks, rank[q])
            for q in range(p, stop):
                tied += _up_to(tree, rank[q])
            p = stop
        for q in range(begin, end):
            total += _up_to(tree, rank[q])
        right[g], pairs[g] = in_order + 0.5 * tied, total


@compiled
def _cut(s, rank, cuts, stack):
    """Set cuts[r] to the number of rows that are best called of rank r or lower.

    The best cuts ascend with r: the middle one divides the search for those below from that for those above it, so
    that each row is looked at once for each halving of the ranks.
    """
    n, depth = s.size, 0
    stack[0, 0], stack[1, 0], stack[2, 0], stack[3, 0] = 0, cuts.size, 0, n
    depth = 1 if cuts.size else 0
    while depth > 0:
        depth -= 1
        first, last, low, high = stack[0, depth], stack[1, depth], stack[2, depth], stack[3, depth]
        middle = (first + last) // 2
        best, best_height, height = low, 0, 0
        for p in range(low, high):
            height += 1 if rank[p] > middle else -1
            if height < best_height and (p + 1 == n or s[p] < s[p + 1]):
                best, best_height = p + 1, height
        cuts[middle] = best
        if first < middle:
            stack[0, depth], stack[1, depth], stack[2, depth], stack[3, depth] = first, middle, low, best
            depth += 1
        if middle + 1 < last:
            stack[0, depth], stack[1, depth], stack[2, depth], stack[3, depth] = middle + 1, last, best, high
            depth += 1
