"""Data of the page of clusters: covertype, repeated, and the splice stand-in, as files from which workers read.

Covertype is standardised, float32, in one `.npy` file; a block of it is a delayed function that reads some rows, so
that a block that is lost is read again. The splice set is in several row-block files of about the same size.
"""

from functools import cache
from itertools import islice

import numpy as np
from dask import delayed
from distributed import wait

from benchmarks.datasets import binary
from benchmarks.larger.data import ROWS_PER_BLOCK, splice_blocks
from widemargin import open_blocks, write_blocks
from widemargin.dask import from_blocks

COVERTYPE = "covtype.libsvm.binary.scale"
SPLICE_FILES = 8
BLOCKS_PER_COPY = 2  # of covertype: 290,506 rows each


def covertype_files(folder):
    """Return the paths of the rows and signs of covertype, which are written if they are not there."""
    rows, signs = folder / "covertype.npy", folder / "covertype-signs.npy"
    if not signs.exists():
        X, sign = binary(COVERTYPE)
        X = X.toarray()
        deviation = X.std(axis=0)
        np.save(rows, ((X - X.mean(axis=0)) / np.where(deviation == 0.0, 1.0, deviation)).astype(np.float32))
        np.save(signs, sign)
    return str(rows), str(signs)


@cache
def covertype(folder, n_copies=1):
    """Return covertype in memory, repeated: X (float32, dense) and signs."""
    rows, signs = covertype_files(folder)
    return np.tile(np.load(rows), (n_copies, 1)), np.tile(np.load(signs), n_copies)


def block_of_covertype(rows, signs, part, n_parts):
    """Return (X, y) of one of several parts of covertype, read from its files."""
    X, y = np.load(rows, mmap_mode="r"), np.load(signs, mmap_mode="r")
    start, stop = (len(y) * k // n_parts for k in (part, part + 1))
    return np.array(X[start:stop]), np.array(y[start:stop])


def covertype_on(client, folder, n_copies=1, n_parts=BLOCKS_PER_COPY):
    """Return delayed blocks of covertype, repeated, in the memory of the workers."""
    rows, signs = covertype_files(folder)
    read = delayed(block_of_covertype, pure=False)
    blocks = [read(rows, signs, part, n_parts) for _ in range(n_copies) for part in range(n_parts)]
    blocks = list(client.persist(blocks))
    wait(blocks)
    return blocks


def splice_files(folder, n_rows):
    """Return the paths of row-block files of the splice stand-in, which are written if they are not there."""
    n_blocks = -(-n_rows // ROWS_PER_BLOCK)
    n_files = min(SPLICE_FILES, n_blocks)
    paths = [folder / f"splice-{n_rows}-{k}.arrow" for k in range(n_files)]
    if not all(path.exists() for path in paths):
        blocks = splice_blocks(n_rows)
        for k, path in enumerate(paths):
            n = n_blocks * (k + 1) // n_files - n_blocks * k // n_files
            write_blocks(path, islice(blocks, n), max_memory="2GB")
    return [str(path) for path in paths]


def splice(folder, n_rows):
    """Return the splice stand-in as the ordinary estimator, and as that of a cluster, takes it."""
    paths = splice_files(folder, n_rows)
    return open_blocks(paths), from_blocks(paths)


def hinge_objective(blocks, w, C):
    """Return ½|w|² + C Σ max(0, 1 − y <w, x>) over blocks (X, y)."""
    loss = sum(float(np.maximum(0.0, 1.0 - y * (X @ w)).sum()) for X, y in blocks)
    return 0.5 * float(w @ w) + C * loss
