"""Row-block files that tests write."""

import numpy as np
import pytest
from scipy.sparse import csr_array

pytest.importorskip("pyarrow")

from widemargin.data.blocks.reader import open_blocks
from widemargin.data.blocks.writer import write_blocks


def written(folder, X, y=None, *, name="rows.arrow", block_bytes=64, **options):
    """Write rows in their order; return their RowBlocks."""
    y = np.arange(X.shape[0]) if y is None else y
    path = folder / name
    write_blocks(path, [(X, y, *options.pop("belongings", ()))], keep_order=True, block_bytes=block_bytes, **options)
    return open_blocks(path)


def rows_of_kind(kind, n_rows=37, n_features=5, seed=0):
    """Return rows whose narrowest type is the one that is named; some are empty if they are sparse."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features))
    if kind.startswith("dense"):
        kinds = {"dense uint8": np.floor(np.abs(50 * X)), "dense float32": X.astype(np.float32), "dense float64": X}
        return kinds[kind]
    X[rng.random(X.shape) < 0.6] = 0.0
    X[[0, 7, n_rows - 1]] = 0.0
    kinds = {"ones": X != 0.0, "uint8": np.floor(np.abs(50 * X)), "float32": X.astype(np.float32), "float64": X}
    return csr_array(kinds[kind].astype(np.float32 if kind == "float32" else np.float64))


KINDS = ("dense uint8", "dense float32", "dense float64", "ones", "uint8", "float32", "float64")
