"""Performance measures of a whole labelling, as risks of the scores (Joachims, 2005).

    R(s) = C max(0, max over labellings z of   Δ(z) + 1/n Σ_i (z_i − y_i) s_i )

The loss Δ depends on z only through two counts: fn, the false negatives (positive rows labelled −1), and fp, the false
positives. Among the labellings with given counts, the sum is largest if the false negatives are the positive rows with
the smallest scores and the false positives the negative rows with the largest. With both classes sorted by score,
cumulative sums therefore give

    fn_sums[fn] = −2/n Σ of the fn smallest scores of positive rows
    fp_sums[fp] = 2/n Σ of the fp largest scores of negative rows

and R = C max over (fn, fp) of Δ + fn_sums[fn] + fp_sums[fp]. Each measure searches the counts that it allows; p is the
number of positive rows and hits = p − fn:

    error          (fn + fp) / n                   any counts
    f1             (fn + fp) / (2 p − fn + fp)     any counts
    prbep          fn / p                          fn = fp: p rows are labelled +1
    precision@k    1 − hits / k                    hits + fp = k: k rows are labelled +1
    recall@k       1 − hits / p                    hits + fp = k: k rows are labelled +1
    zero_one       1, or 0 for fn = fp = 0         any counts

1 − F1 is concave in fp, so that the best fp for each fn is found by bisection. `average_precision` is a measure of
rankings instead of labellings, with a risk of its own.

All this is margin rescaling. With slack rescaling (Tsochantaridis et al., 2005), the loss multiplies instead:

    R(s) = C max over labellings z of   Δ(z) (1 + 1/n Σ_i (z_i − y_i) s_i )

which is `rescaled_measures`.
"""

import re

import numpy as np

from widemargin._runtime.compile import compiled
from widemargin.problems.average_precision import AveragePrecisionRisk
from widemargin.problems.measure_of_counts import search_of
from widemargin.problems.row_risk import BracketedStep
from widemargin.problems.sorting import SORTER_VECTORS, Sorter

NAMES = ("error", "f1", "prbep", "precision@k", "recall@k", "zero_one", "average_precision")
_AT_K = re.compile(r"(precision|recall)@([1-9][0-9]*)")


def measure_risk(measure, sign, C):
    """Return the risk of a measure of labellings or of rankings; see MeasureRisk for the arguments."""
    of_rankings = None if callable(measure) else _OF_RANKINGS.get(parsed(measure)[0])
    return MeasureRisk(measure, sign, C) if of_rankings is None else of_rankings(sign, C)


class MeasureRisk(BracketedStep):
    """The risk of a performance measure of labellings.

    Parameters
    ----------
    measure : str or callable
        "error", "f1", "prbep", "zero_one", or "precision@" or "recall@" followed by the number k; or a function of
        counts, see `measure_of_counts`.
    sign : ndarray
        +1 or −1 for each row; both must occur.
    C : float
        Multiplies the loss Δ of the measure, which is between 0 and 1.

    Raises
    ------
    ValueError
        If there is no such measure, or k is larger than the number of rows.

    Attributes
    ----------
    n_vectors : float
        Vectors of eight bytes per row that a subgradient takes besides c: what sorting takes, sums, and their search.
    """

    n_vectors = SORTER_VECTORS + 3

    def __init__(self, measure, sign, C):
        name, k = (None, 0) if callable(measure) else parsed(measure)
        if k > len(sign):
            raise ValueError(f"{measure}: k must be at most the number of rows, {len(sign)}.")
        self._search, self._k = self._search_of(measure, name), k
        self._positive, self._negative = np.flatnonzero(sign > 0), np.flatnonzero(sign < 0)
        self._sorters = Sorter(len(self._positive)), Sorter(len(self._negative))
        self._n = len(sign)
        self.scale = float(C)

    @staticmethod
    def _search_of(measure, name):
        """Return the search for the best counts of a measure with a name, or of a function without one."""
        return search_of(measure) if name is None else _SEARCHES[name]

    def _best(self, fn_sums, fp_sums):
        """Return the best counts, the value that they have, and the factor of the scores in it."""
        return *self._search(fn_sums, fp_sums, self._n, self._k), 1.0

    def subgradient(self, s):
        """Return (R(s), c)."""
        positive_order, ascending = self._sorters[0].sort(s[self._positive])
        negative_order, minus_descending = self._sorters[1].sort(-s[self._negative])
        fn_sums = np.concatenate([[0.0], np.cumsum(-2.0 / self._n * ascending)])
        fp_sums = np.concatenate([[0.0], np.cumsum(-2.0 / self._n * minus_descending)])
        fn, fp, value, factor = self._best(fn_sums, fp_sums)
        c = np.zeros(self._n)
        if value <= 0.0:
            return 0.0, c
        weight = 2.0 * factor * self.scale / self._n
        c[self._positive[positive_order[:fn]]] = -weight
        c[self._negative[negative_order[:fp]]] = weight
        return self.scale * value, c


def parsed(measure):
    """Return (name, k) of a measure; k is 0 for a measure without k.

    Raises
    ------
    ValueError
        If there is no such measure.
    """
    match = _AT_K.fullmatch(measure)
    if match:
        return f"{match[1]}@k", int(match[2])
    if measure in NAMES and "@" not in measure:
        return measure, 0
    raise ValueError(
        "measure must be 'error', 'f1', 'prbep', 'precision@K' or 'recall@K' with a number K, 'zero_one', or "
        f"'average_precision'; got {measure!r}."
    )


# Each search returns (fn, fp, Δ + fn_sums[fn] + fp_sums[fp]) of the counts for which the sum is largest.


def _search_error(fn_sums, fp_sums, n, _):
    """Search both counts separately: Δ is a sum of a term of each."""
    fn, fp = (int(np.argmax(sums + np.arange(len(sums)) / n)) for sums in (fn_sums, fp_sums))
    return fn, fp, fn_sums[fn] + fp_sums[fp] + (fn + fp) / n


def _search_f1(fn_sums, fp_sums, n, _):
    return _best_f1(fn_sums, fp_sums)


def _search_prbep(fn_sums, fp_sums, n, _):
    """Search fn = fp."""
    n_counts = min(len(fn_sums), len(fp_sums))
    values = fn_sums[:n_counts] + fp_sums[:n_counts] + np.arange(n_counts) / (len(fn_sums) - 1)
    best = int(np.argmax(values))
    return best, best, values[best]


def _search_at_k(fn_sums, fp_sums, k, denominator):
    """Search the labellings with k rows labelled +1, for Δ = 1 − hits / denominator."""
    n_positive, n_negative = len(fn_sums) - 1, len(fp_sums) - 1
    hits = np.arange(max(0, k - n_negative), min(n_positive, k) + 1)
    values = fn_sums[n_positive - hits] + fp_sums[k - hits] + 1.0 - hits / denominator
    best = int(np.argmax(values))
    return int(n_positive - hits[best]), int(k - hits[best]), values[best]


def _search_precision(fn_sums, fp_sums, n, k):
    return _search_at_k(fn_sums, fp_sums, k, k)


def _search_recall(fn_sums, fp_sums, n, k):
    return _search_at_k(fn_sums, fp_sums, k, len(fn_sums) - 1)


def search_zero_one(fn_sums, fp_sums, n, _):
    """Search both counts separately; if no error is best, compare with the best single error."""
    fn, fp = int(np.argmax(fn_sums)), int(np.argmax(fp_sums))
    if fn or fp:
        return fn, fp, 1.0 + fn_sums[fn] + fp_sums[fp]
    fn, fp = (1, 0) if fn_sums[1] >= fp_sums[1] else (0, 1)
    return fn, fp, 1.0 + fn_sums[fn] + fp_sums[fp]


_SEARCHES = {
    "zero_one": search_zero_one,
    "error": _search_error,
    "f1": _search_f1,
    "prbep": _search_prbep,
    "precision@k": _search_precision,
    "recall@k": _search_recall,
}
_OF_RANKINGS = {"average_precision": AveragePrecisionRisk}


@compiled
def _best_f1(fn_sums, fp_sums):
    """Return (fn, fp, value) of the largest fn_sums[fn] + fp_sums[fp] + 1 − F1."""
    n_positive, n_negative = fn_sums.size - 1, fp_sums.size - 1
    best_fn, best_fp, best = 0, 0, -np.inf
    for fn in range(n_positive + 1):
        low, high = 0, n_negative  # the value increases up to the best fp and decreases after it
        while low < high:
            middle = (low + high) // 2
            loss_change = f1_loss(n_positive, fn, middle + 1) - f1_loss(n_positive, fn, middle)
            if loss_change + fp_sums[middle + 1] - fp_sums[middle] > 0.0:
                low = middle + 1
            else:
                high = middle
        value = fn_sums[fn] + fp_sums[low] + f1_loss(n_positive, fn, low)
        if value > best:
            best_fn, best_fp, best = fn, low, value
    return best_fn, best_fp, best


@compiled
def f1_loss(n_positive, fn, fp):
    """Return 1 − F1 = 1 − 2 (p − fn) / (2 p − fn + fp)."""
    return (fn + fp) / (2.0 * n_positive - fn + fp)
