"""Performance measures of a whole labelling with slack rescaling (Tsochantaridis et al., 2005).

    R(s) = C max over labellings z of   Δ(z) (1 + 1/n Σ_i (z_i − y_i) s_i )

The notation is that of `measures`, whose risks add the loss Δ instead: margin rescaling. Among labellings with the same
counts fn and fp, the same one is best, so that R = C max over (fn, fp) of Δ (1 + fn_sums[fn] + fp_sums[fp]). The right
labelling, for which Δ is 0, is always allowed: R is not negative.

    error       of the labellings with k errors, the best has those that contribute most: the k largest terms of both
                classes, which are merged
    f1          Δ increases with fp, and so do the sums up to the best fp; beyond it they decrease and are concave, so
                that the product, where it is positive, is increasing and then decreasing: bisection for each fn
    others      as in `measures`, all counts that are allowed
"""

import numpy as np

from widemargin._runtime.compile import compiled
from widemargin.problems.measure_of_counts import search_of
from widemargin.problems.measures import MeasureRisk, f1_loss, search_zero_one


class RescaledMeasureRisk(MeasureRisk):
    """The risk of a performance measure of labellings with slack rescaling; the parameters are those of MeasureRisk."""

    @staticmethod
    def _search_of(measure, name):
        return search_of(measure, rescaled=True) if name is None else _SEARCHES[name]

    def _best(self, fn_sums, fp_sums):
        fn, fp, loss = self._search(fn_sums, fp_sums, self._n, self._k)
        return fn, fp, loss * (1.0 + fn_sums[fn] + fp_sums[fp]), loss


# Each search returns (fn, fp, Δ) of the counts for which Δ (1 + fn_sums[fn] + fp_sums[fp]) is largest.


def _search_error(fn_sums, fp_sums, n, _):
    """Search the number of errors: each more takes the class whose next row contributes more."""
    terms = np.concatenate([np.diff(fn_sums), np.diff(fp_sums)])
    order = np.argsort(-terms, kind="stable")
    n_errors = np.arange(n + 1)
    sums = np.concatenate([[0.0], np.cumsum(terms[order])])
    best = int(np.argmax(n_errors / n * (1.0 + sums)))
    fn = int(np.sum(order[:best] < len(fn_sums) - 1))
    return fn, best - fn, best / n


def _search_f1(fn_sums, fp_sums, n, _):
    return _best_f1(fn_sums, fp_sums, int(np.argmax(fp_sums)))


def _search_prbep(fn_sums, fp_sums, n, _):
    """Search fn = fp."""
    count = np.arange(min(len(fn_sums), len(fp_sums)))
    return _best_of(count, count, count / (len(fn_sums) - 1), fn_sums, fp_sums)


def _search_at_k(fn_sums, fp_sums, k, denominator):
    """Search the labellings with k rows labelled +1, for Δ = 1 − hits / denominator."""
    n_positive, n_negative = len(fn_sums) - 1, len(fp_sums) - 1
    hits = np.arange(max(0, k - n_negative), min(n_positive, k) + 1)
    return _best_of(n_positive - hits, k - hits, 1.0 - hits / denominator, fn_sums, fp_sums)


def _best_of(fn, fp, loss, fn_sums, fp_sums):
    """Return the best of arrays of counts and losses."""
    best = int(np.argmax(loss * (1.0 + fn_sums[fn] + fp_sums[fp])))
    return int(fn[best]), int(fp[best]), float(loss[best])


def _search_precision(fn_sums, fp_sums, n, k):
    return _search_at_k(fn_sums, fp_sums, k, k)


def _search_recall(fn_sums, fp_sums, n, k):
    return _search_at_k(fn_sums, fp_sums, k, len(fn_sums) - 1)


def _search_zero_one(fn_sums, fp_sums, n, _):
    """Search as margin rescaling does, since Δ is 1 for every error."""
    fn, fp, _value = search_zero_one(fn_sums, fp_sums, n, _)
    return fn, fp, 1.0


_SEARCHES = {
    "zero_one": _search_zero_one,
    "error": _search_error,
    "f1": _search_f1,
    "prbep": _search_prbep,
    "precision@k": _search_precision,
    "recall@k": _search_recall,
}


@compiled
def _best_f1(fn_sums, fp_sums, first):
    """Return (fn, fp, 1 − F1) of the largest (1 − F1) (1 + fn_sums[fn] + fp_sums[fp]).

    `first` is the fp for which fp_sums is largest.
    """
    n_positive, n_negative = fn_sums.size - 1, fp_sums.size - 1
    best_fn, best_fp, best = 0, 0, 0.0
    for fn in range(n_positive + 1):
        constant = 1.0 + fn_sums[fn]
        low, high = first, n_negative
        while low < high:
            middle = (low + high) // 2
            here = f1_loss(n_positive, fn, middle) * (constant + fp_sums[middle])
            if f1_loss(n_positive, fn, middle + 1) * (constant + fp_sums[middle + 1]) > here:
                low = middle + 1
            else:
                high = middle
        value = f1_loss(n_positive, fn, low) * (constant + fp_sums[low])
        if value > best:
            best_fn, best_fp, best = fn, low, value
    return best_fn, best_fp, f1_loss(n_positive, best_fn, best_fp)
