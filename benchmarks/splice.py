"""A stand-in for the human splice set of OCAS's paper: 15,028,326 rows of 141 positions with four letters, one-hot.

About two per cent of the rows are positive: those whose letters around the middle agree with a planted motif, with
noise, so that no hyperplane separates the classes. The rows are independent, and the same for the same seed.
"""

import numpy as np
from scipy.sparse import csr_array

ROWS = 15_028_326
POSITIONS, LETTERS = 141, 4
_MOTIF_WIDTH = 8.0  # standard deviation, in positions, of the window in which letters matter
_NOISE = 1.0
_POSITIVE_DEVIATIONS = 2.054  # above the mean, beyond which 2% of a normal distribution lie
_ROWS_PER_BLOCK = 1 << 16


def splice_blocks(n_rows, seed=0):
    """Generate blocks (X, y) of the stand-in, n_rows rows in all."""
    rng = np.random.default_rng(seed)
    window = np.exp(-(((np.arange(POSITIONS) - POSITIONS // 2) / _MOTIF_WIDTH) ** 2))
    motif = rng.standard_normal((POSITIONS, LETTERS)) * window[:, np.newaxis]
    threshold = motif.mean(axis=1).sum() + _POSITIVE_DEVIATIONS * np.sqrt(motif.var(axis=1).sum() + _NOISE**2)
    matters = np.flatnonzero(window > 1e-6)
    first_columns = LETTERS * np.arange(POSITIONS, dtype=np.int32)
    for start in range(0, n_rows, _ROWS_PER_BLOCK):
        n = min(_ROWS_PER_BLOCK, n_rows - start)
        letters = rng.integers(0, LETTERS, (n, POSITIONS), dtype=np.uint8)
        scores = _NOISE * rng.standard_normal(n)
        for position in matters:
            scores += motif[position][letters[:, position]]
        indices = (letters + first_columns).ravel()
        offsets = np.arange(0, n * POSITIONS + 1, POSITIONS)
        X = csr_array((np.ones(len(indices), np.uint8), indices, offsets), shape=(n, LETTERS * POSITIONS))
        X.has_canonical_format = True
        yield X, np.where(scores > threshold, 1, -1).astype(np.int8)
