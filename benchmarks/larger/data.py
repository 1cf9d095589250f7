"""Data of any size for the page of data larger than memory, generated block by block; the same for the same seed.

splice    a stand-in for the human splice set of OCAS's paper, 15,028,326 rows: 141 positions with four letters,
          one-hot. About two per cent of the rows are positive: those whose letters around the middle agree with a
          planted motif, with noise, so that no hyperplane separates the classes
ranking   queries of 100 rows with 136 dense columns and relevance 0 to 4, sizes as in MSLR-WEB30K
wide      rows of 100 values in a million columns, whose frequencies fall as those of words do
"""

import numpy as np
from scipy.sparse import csr_array

ROWS = 15_028_326
POSITIONS, LETTERS = 141, 4
_MOTIF_WIDTH = 8.0  # standard deviation, in positions, of the window in which letters matter
_NOISE = 1.0
_POSITIVE_DEVIATIONS = 2.054  # above the mean, beyond which 2% of a normal distribution lie
ROWS_PER_BLOCK = 1 << 16


def splice_blocks(n_rows, seed=0):
    """Generate blocks (X, y) of the stand-in, n_rows rows in all."""
    rng = np.random.default_rng(seed)
    window = np.exp(-(((np.arange(POSITIONS) - POSITIONS // 2) / _MOTIF_WIDTH) ** 2))
    motif = rng.standard_normal((POSITIONS, LETTERS)) * window[:, np.newaxis]
    threshold = motif.mean(axis=1).sum() + _POSITIVE_DEVIATIONS * np.sqrt(motif.var(axis=1).sum() + _NOISE**2)
    matters = np.flatnonzero(window > 1e-6)
    first_columns = LETTERS * np.arange(POSITIONS, dtype=np.int32)
    for start in range(0, n_rows, ROWS_PER_BLOCK):
        n = min(ROWS_PER_BLOCK, n_rows - start)
        letters = rng.integers(0, LETTERS, (n, POSITIONS), dtype=np.uint8)
        scores = _NOISE * rng.standard_normal(n)
        for position in matters:
            scores += motif[position][letters[:, position]]
        indices = (letters + first_columns).ravel()
        offsets = np.arange(0, n * POSITIONS + 1, POSITIONS)
        X = csr_array((np.ones(len(indices), np.uint8), indices, offsets), shape=(n, LETTERS * POSITIONS))
        X.has_canonical_format = True
        yield X, np.where(scores > threshold, 1, -1).astype(np.int8)


def ranking_blocks(n_rows, seed=0, n_columns=136, rows_per_query=100):
    """Generate blocks (X, y, qid): float32 rows, relevance 0 to 4 by a noisy linear function, queries of 100 rows."""
    rng = np.random.default_rng(seed)
    w = rng.standard_normal(n_columns) / np.sqrt(n_columns)
    queries_per_block = ROWS_PER_BLOCK // rows_per_query
    for first in range(0, n_rows // rows_per_query, queries_per_block):
        n_queries = min(queries_per_block, n_rows // rows_per_query - first)
        n = n_queries * rows_per_query
        X = rng.standard_normal((n, n_columns), dtype=np.float32)
        scores = X @ w + rng.standard_normal(n)
        y = np.digitize(scores, [0.5, 1.5, 2.5, 3.5]).astype(np.int8)
        yield X, y, np.repeat(np.arange(first, first + n_queries), rows_per_query)


def wide_blocks(n_rows, seed=0, n_columns=1_000_000, values_per_row=100):
    """Generate blocks (X, y): rows of unit length whose columns are drawn as words are, the label by a sparse w."""
    rng = np.random.default_rng(seed)
    w = rng.standard_normal(n_columns) * (rng.random(n_columns) < 0.1)
    for start in range(0, n_rows, ROWS_PER_BLOCK):
        n = min(ROWS_PER_BLOCK, n_rows - start)
        columns = (n_columns * rng.random((n, values_per_row)) ** 3).astype(np.int32)
        columns.sort(axis=1)
        values = rng.random((n, values_per_row), dtype=np.float32)
        values[:, 1:][columns[:, 1:] == columns[:, :-1]] = 0.0
        values /= np.sqrt(np.square(values).sum(axis=1, keepdims=True))
        kept = values > 0.0
        offsets = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
        X = csr_array((values[kept], columns[kept], offsets), shape=(n, n_columns))
        X.has_canonical_format = True
        scores = X @ w + 0.1 * rng.standard_normal(n)
        yield X, np.where(scores > 0.0, 1, -1).astype(np.int8)
