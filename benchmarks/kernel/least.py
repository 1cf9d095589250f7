"""The seconds that computing the kernel rows of some rows takes, once: by NumPy, and by our own code."""

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from scipy.sparse import issparse

_NUMBERS_AT_ONCE = 1 << 19  # of NumPy's blocks, so that they stay in the second cache


def seconds_by_our_code(K, used, step=512):
    """Return the seconds of filling the rows `used` of KernelRows, all columns, into memory that is there already."""
    columns, out = K.columns(), np.zeros((min(step, len(used)), K.n_rows), K.dtype)
    K.fill(used[:1], columns, out, np.arange(1))  # compiled or loaded now, if it has to be
    begun = time.perf_counter()
    for begin in range(0, len(used), step):
        part = used[begin : begin + step]
        K.fill(part, columns, out, np.arange(len(part)))
    return time.perf_counter() - begun


def seconds_by_numpy(X, used, gamma, dtype, n_threads):
    """Return the seconds of exp(−gamma |x_i − x_j|²) for i in `used` and all j, as one writes it with NumPy.

    A block of rows is a matrix product of BLAS, norms are added, and `exp` is taken in place, in `dtype`; threads take
    turns at blocks. The dense copy of sparse rows and the norms are made before.
    """
    dense = (X.toarray() if issparse(X) else X).astype(dtype) * dtype.type(np.sqrt(2.0 * gamma))
    halves = 0.5 * np.einsum("ij,ij->i", dense, dense)  # gamma |x|²
    step = max(1, _NUMBERS_AT_ONCE // len(dense))
    blocks = [used[begin : begin + step] for begin in range(0, len(used), step)]

    def compute(blocks):
        out = np.empty((step, len(dense)), dtype)
        for rows in blocks:
            values = np.matmul(dense[rows], dense.T, out=out[: len(rows)])
            values -= halves
            values -= halves[rows, np.newaxis]
            np.exp(values, out=values)

    compute(blocks[:n_threads])
    begun = time.perf_counter()
    with ThreadPoolExecutor(n_threads) as threads:
        list(threads.map(compute, [blocks[k::n_threads] for k in range(n_threads)]))
    return time.perf_counter() - begun
