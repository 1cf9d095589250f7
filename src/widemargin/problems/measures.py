"""Measures of a whole labelling, as risks (Joachims, 2005, on multivariate performance measures).

    R(s) = C max over labellings z of   Δ(z) + 1/n Σ_i (z_i − y_i) s_i ,   or 0 if that is less

Δ depends on z through two counts only: the positives that z misses and the negatives that it takes. Of all labellings
with such counts the best misses the positives of the smallest scores and takes the negatives of the largest. So with
both classes sorted, sums of the scores in that order tell the best labelling for given counts; which counts are
possible, and what they cost, is the measure's affair:

    error          (missed + taken) / n                                      any counts
    f1             (missed + taken) / (2 p − missed + taken)                 any counts
    prbep          missed / p                                                missed = taken: p rows are called positive
    precision@k    1 − hits / k                                              k rows are called positive, p − missed hits
    recall@k       1 − hits / p                                              the same

p is the number of positives. 1 − F1 is concave in `taken`, so the best number for each `missed` is found by bisection.
"""

import re

import numpy as np

from widemargin._runtime.compile import compiled
from widemargin.problems.measure_of_counts import search_of
from widemargin.problems.row_risk import BracketedStep
from widemargin.problems.sorting import Sorter

NAMES = ("error", "f1", "prbep", "precision@k", "recall@k")
_PATTERN = re.compile(r"(precision|recall)@([1-9][0-9]*)")


class MeasureRisk(BracketedStep):
    """The worst labelling by a measure.

    Parameters
    ----------
    measure : str or callable
        "error", "f1", "prbep", or "precision@" or "recall@" followed by the number k; or a function of counts, see
        `measure_of_counts`.
    sign : ndarray
        +1 or −1 for each row; both must occur.
    C : float
        Multiplies the measure's loss, which is between 0 and 1.

    Raises
    ------
    ValueError
        If there is no such measure, or k is larger than the number of rows.
    """

    def __init__(self, measure, sign, C):
        name, k = (None, 0) if callable(measure) else parsed(measure)
        if k > len(sign):
            raise ValueError(f"{measure}: k must be at most the number of rows, {len(sign)}.")
        self._search, self._k = search_of(measure) if name is None else _SEARCHES[name], k
        self._positive, self._negative = np.flatnonzero(sign > 0), np.flatnonzero(sign < 0)
        self._sorters = Sorter(len(self._positive)), Sorter(len(self._negative))
        self._n = len(sign)
        self.scale = float(C)

    def subgradient(self, s):
        """Return (R(s), c)."""
        positive, negative = self._positive, self._negative
        first, low = self._sorters[0].sort(s[positive])
        second, high = self._sorters[1].sort(-s[negative])
        lowest, highest = positive[first], negative[second]
        missing, taking = (np.concatenate([[0.0], np.cumsum(-2.0 / self._n * side)]) for side in (low, high))
        missed, taken, value = self._search(missing, taking, self._n, self._k)
        c = np.zeros(self._n)
        if value <= 0.0:
            return 0.0, c
        each = 2.0 * self.scale / self._n
        c[lowest[:missed]], c[highest[:taken]] = -each, each
        return self.scale * value, c


def parsed(measure):
    """Return (name, k) of a measure; k is 0 where there is none."""
    match = _PATTERN.fullmatch(measure)
    if match:
        return f"{match[1]}@k", int(match[2])
    if measure in NAMES and "@" not in measure:
        return measure, 0
    raise ValueError(
        f"measure must be 'error', 'f1', 'prbep', 'precision@K' or 'recall@K' with a number K; got {measure!r}."
    )


def _error(missing, taking, n, _):
    """Each row is on its own."""
    missed, taken = (int(np.argmax(sums + np.arange(len(sums)) / n)) for sums in (missing, taking))
    return missed, taken, missing[missed] + taking[taken] + (missed + taken) / n


def _f1(missing, taking, n, _):
    return _best_f1(missing, taking)


def _prbep(missing, taking, n, _):
    """As many missed as taken."""
    most = min(len(missing), len(taking))
    values = missing[:most] + taking[:most] + np.arange(most) / (len(missing) - 1)
    best = int(np.argmax(values))
    return best, best, values[best]


def _at(missing, taking, k, whole):
    """`k` rows are called positive; a hit is worth 1 / whole."""
    p, q = len(missing) - 1, len(taking) - 1
    hits = np.arange(max(0, k - q), min(p, k) + 1)
    values = missing[p - hits] + taking[k - hits] + 1.0 - hits / whole
    best = int(np.argmax(values))
    return int(p - hits[best]), int(k - hits[best]), values[best]


def _precision(missing, taking, n, k):
    return _at(missing, taking, k, k)


def _recall(missing, taking, n, k):
    return _at(missing, taking, k, len(missing) - 1)


_SEARCHES = {"error": _error, "f1": _f1, "prbep": _prbep, "precision@k": _precision, "recall@k": _recall}


@compiled
def _best_f1(missing, taking):
    """Return (missed, taken, value) of the largest missing + taking + 1 − F1."""
    p, q = missing.size - 1, taking.size - 1
    best_missed, best_taken, best = 0, 0, -np.inf
    for missed in range(p + 1):
        low, high = 0, q  # one more is worth it below the best number, not above
        while low < high:
            middle = (low + high) // 2
            gain = _f1_loss(p, missed, middle + 1) - _f1_loss(p, missed, middle) + taking[middle + 1] - taking[middle]
            if gain > 0.0:
                low = middle + 1
            else:
                high = middle
        value = missing[missed] + taking[low] + _f1_loss(p, missed, low)
        if value > best:
            best_missed, best_taken, best = missed, low, value
    return best_missed, best_taken, best


@compiled
def _f1_loss(p, missed, taken):
    """1 − F1 = 1 − 2 (p − missed) / (2 p − missed + taken)."""
    return (missed + taken) / (2.0 * p - missed + taken)
