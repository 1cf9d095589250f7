"""Average precision as a risk of the scores (Yue, Finley, Radlinski, Joachims, SIGIR 2007).

    R(s) = C max over rankings of   1 − AP − 2 / (p q) Σ over the swapped pairs (k, j) of   (s_k − s_j)

A pair is one of the p positive rows k and one of the q negative rows j; it is swapped if the ranking has j above k. AP
is the mean over positive rows of the precision at their rank. With both classes sorted by descending score, and with
a_k negative rows above positive row k = 1 .. p,

    1 − AP = 1/p Σ_k a_k / (k + a_k)

In the best ranking both classes are in the order of their scores, since exchanging two rows of a class does not change
AP. Moving negative row j = 1 .. q above positive row k, which has j − 1 negative rows above it, changes the sum by

    gain_j(k) = 1/p (k / ((k + j − 1) (k + j)) − 2/q (s_k − s_j))

so that the number of positive rows above row j, `place_j`, is chosen for each j by itself: it maximises the sum of
gain_j(k) over k > place_j. Each gain decreases with j, hence the best place does not decrease with j, and no choice
contradicts another. We find the place of the middle negative row and go on with both halves, for which fewer places
are left: O((p + q) log q) operations.

No intercept changes the risk, and Σ |c_i| of its subgradients is at most 4 C.
"""

import numpy as np

from widemargin._runtime.compile import compiled
from widemargin.problems.row_risk import BracketedStep
from widemargin.problems.sorting import SORTER_VECTORS, Sorter

_RANGES = 80  # of negative rows that wait to be divided, at most: one for each halving, and two


class AveragePrecisionRisk(BracketedStep):
    """The risk of average precision; see the formulas of this module.

    Parameters
    ----------
    sign : ndarray
        +1 or −1 for each row; both must occur.
    C : float
        Multiplies 1 − AP.

    Attributes
    ----------
    n_vectors : float
        Vectors of eight bytes per row that a subgradient takes besides c: what sorting takes, scores, and places.
    """

    n_vectors = SORTER_VECTORS + 3
    slopes_per_scale = 4.0
    depends_on_intercept = False

    def __init__(self, sign, C):
        self._positive, self._negative = np.flatnonzero(sign > 0), np.flatnonzero(sign < 0)
        self._sorters = Sorter(len(self._positive)), Sorter(len(self._negative))
        self._ranges, self._place = np.empty((_RANGES, 4), np.int64), np.empty(len(self._negative), np.int64)
        self.scale = float(C)

    def subgradient(self, s):
        """Return (R(s), c)."""
        p, q = len(self._positive), len(self._negative)
        (high_order, high), (low_order, low) = (
            sorter.sort(-s[rows]) for sorter, rows in zip(self._sorters, (self._positive, self._negative), strict=True)
        )
        high, low = -2.0 / q * high, -2.0 / q * low
        _set_places(high, low, self._ranges, self._place)
        c = np.empty(len(s))
        rows = self._positive[high_order], self._negative[low_order]
        value = _set_c(high, low, self._place, *rows, 2.0 * self.scale / p / q, c)
        return self.scale * max(0.0, value / p), c


@compiled
def _set_places(high, low, ranges, place):
    """Set place[j] to the number of positive rows above negative row j in the best ranking.

    `high` and `low` are 2/q times the scores of positive and negative rows, in descending order; among equally good
    places the last is taken. Kept true: the places of the negative rows first .. last of a range are least .. most.
    """
    n = _with_range(ranges, 0, 0, low.size - 1, 0, high.size)
    while n > 0:
        n -= 1
        first, last, least, most = ranges[n, 0], ranges[n, 1], ranges[n, 2], ranges[n, 3]
        j = (first + last) // 2
        place[j] = _best_place(high, low[j], j, least, most)
        if first < j:
            n = _with_range(ranges, n, first, j - 1, least, place[j])
        if j < last:
            n = _with_range(ranges, n, j + 1, last, place[j], most)


@compiled
def _with_range(ranges, n, first, last, least, most):
    """Set range n, and return the number of ranges with it."""
    ranges[n, 0], ranges[n, 1], ranges[n, 2], ranges[n, 3] = first, last, least, most
    return n + 1


@compiled
def _best_place(high, score, j, least, most):
    """Return the best place, from `least` to `most`, of the negative row that has j others above it."""
    best, largest, total = most, 0.0, 0.0
    for k in range(most - 1, least - 1, -1):
        rank = k + 1.0
        total += rank / ((rank + j) * (rank + j + 1.0)) - (high[np.uint64(k)] - score)
        if total > largest:
            best, largest = k, total
    return best


@compiled
def _set_c(high, low, place, high_rows, low_rows, weight, c):
    """Set c for the ranking with these places; return p (1 − AP − 2/(p q) Σ over swapped pairs of s_k − s_j).

    `weight` is 2 C / (p q). Places do not decrease.
    """
    value, above = 0.0, 0
    for k in range(high.size):
        while above < low.size and place[np.uint64(above)] <= k:
            above += 1
        value += above / (k + 1.0 + above) - above * high[k]
        c[np.uint64(high_rows[k])] = -weight * above
    for j in range(low.size):
        below = high.size - place[j]
        value += below * low[j]
        c[np.uint64(low_rows[j])] = weight * below
    return value
