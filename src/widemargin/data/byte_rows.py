"""Dense arrays of int8 or uint8 that stay as they are: an eighth of the memory of float64.

Compiled loops convert each value when they read it. What NumPy and BLAS compute takes some rows at a time, converted to
float64. Small arrays are converted as a whole, since the loops for bytes are compiled separately.
"""

import numpy as np

BYTES = (np.dtype(np.uint8), np.dtype(np.int8))
VALUES_WORTH_BYTES = 1 << 22  # of an array, from which on it stays as it is
_VALUES_AT_A_TIME = 1 << 17  # that are converted, which then stay in the processor's second cache


def has_bytes(X):
    """Return whether X is an array of int8 or uint8, of any size."""
    return isinstance(X, np.ndarray) and X.dtype in BYTES


def stays_bytes(X):
    """Return whether X is an array of int8 or uint8 with so many values that it is not converted as a whole."""
    return has_bytes(X) and X.size >= VALUES_WORTH_BYTES


def converted_parts(X):
    """Yield (start, stop, rows) for some rows of an array at a time, which are converted to float64.

    All have the same memory, and are valid until the next ones are asked for.
    """
    n_rows = max(1, _VALUES_AT_A_TIME // max(1, X.shape[1]))
    memory = np.empty((min(n_rows, len(X)), X.shape[1]))
    for start in range(0, len(X), n_rows):
        stop = min(start + n_rows, len(X))
        rows = memory[: stop - start]
        rows[...] = X[start:stop]
        yield start, stop, rows


def scores_of_bytes(X, W):
    """Return X W' in float64, of shape (n_rows, n_outputs)."""
    out = np.empty((len(X), len(W)))
    for start, stop, rows in converted_parts(X):
        np.matmul(rows, W.T, out=out[start:stop])
    return out
