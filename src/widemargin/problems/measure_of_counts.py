"""A performance measure given by a function of two counts, the false negatives fn and the false positives fp.

For the risk of such a measure (see `measures`) the pair of counts with the largest sum of the loss Δ and of what the
scores contribute has to be found. Nothing is known of the function, so that all pairs are searched, block by block.
"""

import numpy as np

_PAIRS_IN_A_BLOCK = 1 << 20  # pairs of counts for which the function is called at once: 8 MB of losses


def search_of(loss, rescaled=False):
    """Return a search over all pairs of counts, as `MeasureRisk` calls it, or with slack rescaling, see below.

    Parameters
    ----------
    loss : callable
        loss(fn, fp, n_positive, n_negative) returns the loss Δ for arrays of counts.
    rescaled : bool
        Whether Δ multiplies 1 + the sums instead of being added to them; the search then returns Δ in place of the
        value of the best counts, as `RescaledMeasureRisk` expects it.
    """

    def search(fn_sums, fp_sums, n, _):
        n_positive, n_negative = len(fn_sums) - 1, len(fp_sums) - 1
        all_fp, n_lines = np.arange(n_negative + 1), max(1, _PAIRS_IN_A_BLOCK // (n_negative + 1))
        best, best_value = (0, 0, -np.inf), -np.inf
        for first in range(0, n_positive + 1, n_lines):
            some_fn = np.arange(first, min(first + n_lines, n_positive + 1))
            losses = loss_of(loss, some_fn[:, np.newaxis], all_fp, n_positive, n_negative)
            sums = fn_sums[some_fn, np.newaxis] + fp_sums
            values = _products(losses, sums) if rescaled else losses + sums
            line, fp = np.unravel_index(values.argmax(), values.shape)
            if values[line, fp] > best_value:
                best_value = values[line, fp]
                best = (int(some_fn[line]), int(fp), float((losses if rescaled else values)[line, fp]))
        return best

    return search


def _products(losses, sums):
    """Return Δ (1 + sums), and −∞ for counts that no labelling may have."""
    allowed = losses > -np.inf
    return np.where(allowed, np.where(allowed, losses, 0.0) * (1.0 + sums), -np.inf)


def loss_of(loss, fn, fp, n_positive, n_negative):
    """Return loss(fn, fp, n_positive, n_negative) for all pairs that the arrays fn and fp broadcast to, as float64.

    Raises
    ------
    ValueError
        If the function returns another shape, or NaN or +∞; −∞ means that no labelling may have these counts.
    """
    shape = np.broadcast_shapes(np.shape(fn), np.shape(fp))
    values = np.asarray(loss(fn, fp, n_positive, n_negative), dtype=np.float64)
    if values.shape not in ((), shape, np.shape(fn), np.shape(fp)):
        raise ValueError(
            f"The function given as measure must return one loss for each pair of counts, shape {shape}; "
            f"got shape {values.shape}."
        )
    if not (values < np.inf).all():
        raise ValueError(
            "The function given as measure must return finite losses, or -inf for counts that no prediction may have; "
            "got NaN or infinity."
        )
    return np.broadcast_to(values, shape)
