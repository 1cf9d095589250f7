"""The matrix that solvers get for rows: in memory if it fits, else in blocks on disk; scaled if that is asked for.

fits as it is                  an ordinary Matrix; or, if there are many values that are all one or bytes, a
                               ResidentMatrix, whose values stay as narrow as they are in the file
fits in the types of the file  a StreamedMatrix that reads each block once and keeps it
otherwise                      a StreamedMatrix that keeps some blocks, and rows that the next sums need
"""

import numpy as np
from scipy.sparse import csr_array, issparse

from widemargin.data.blocks.memory import bytes_of, memory_in_use
from widemargin.data.blocks.resident import ResidentMatrix
from widemargin.data.blocks.row_blocks import RowBlocks
from widemargin.data.blocks.streamed import BLOCKS_IN_FLIGHT, StreamedMatrix
from widemargin.data.byte_rows import stays_bytes
from widemargin.data.column_scaling import ColumnScaling, column_statistics
from widemargin.data.columns import WIDE
from widemargin.data.matrix import Matrix
from widemargin.data.scaled_bytes import ScaledBytes

VECTORS_OF_ROW_LOSSES = 16  # with a number for each row, that solvers have for a problem
VECTORS_OF_PLANES = 10
"""Vectors of eight bytes per row that cutting planes have besides those of the risk: the scores and c of the best point
and of two points of a line search, the scores of a direction, c of the last plane and its change, and norms of rows."""
_MAX_DENSE_ENTRIES = 1 << 24  # of sparse rows that centring makes dense
_VALUES_WORTH_BYTES = 1 << 24  # stored values from which on they stay bytes; loops for bytes are compiled separately
_SHARE_OF_VECTORS = 0.5  # of the memory, at most, for vectors of further problems, where rows are on disk


def matrix_of_arrays(X, constant=0.0, scaling=None):
    """Return the matrix of an array or CSR matrix; `scaling` is "standard", "maxabs" or None.

    Sparse rows whose columns are centred become dense if they are not many, and else are kept as they are, see
    `column_scaling`. Many bytes are kept as they are, too.
    """
    if scaling is None:
        return Matrix.of_columns_that_occur(X, constant)
    return scaled_matrix(X, constant, ColumnScaling.of(scaling, column_statistics([X])))


def scaled_matrix(X, constant, how):
    """Return the matrix of an array or CSR matrix whose columns are scaled as `how` says, a ColumnScaling."""
    if issparse(X) and how.is_centred and X.shape[0] * X.shape[1] <= _MAX_DENSE_ENTRIES:
        X = X.toarray()
    if issparse(X) and how.is_centred:
        matrix = StreamedMatrix(RowBlocks.of_array(X), constant, np.inf, how)
    elif issparse(X):
        matrix = Matrix.of_columns_that_occur(csr_array(X) * (1.0 / how.scale), constant)
    elif stays_bytes(X):
        matrix = ScaledBytes(X, constant, how)
    else:
        matrix = Matrix((X - how.centre) / how.scale, constant)
    matrix.scaling, matrix.source, matrix.most_problems = how, X, Matrix.most_problems
    return matrix


def matrix_of_blocks(
    blocks, constant=0.0, *, max_memory=None, scaling=None, n_problems=1, n_vectors=VECTORS_OF_ROW_LOSSES
):
    """Return the matrix of a RowBlocks for solvers.

    Parameters
    ----------
    blocks : RowBlocks
    constant : float
        Value of the constant column; 0 without one.
    max_memory : int, str or None
        Memory that the process may use in all; None is half of what is free, besides what is in use.
    scaling : "standard", "maxabs" or None
    n_vectors : float
        Vectors of eight bytes for each row, at most, that a solver has for a problem.
    n_problems : int
        Problems to be solved, each with its own vectors over rows. `most_problems` of the result says how many of them
        have room at the same time, with rows in memory taking what is left.

    Raises
    ------
    MemoryError
        If there is no room for the vectors of one problem.
    """
    how = None if scaling is None else ColumnScaling.of(scaling, _column_statistics(blocks))
    return mapped_matrix(blocks, constant, how, max_memory=max_memory, n_problems=n_problems, n_vectors=n_vectors)


def mapped_matrix(blocks, constant, how, *, max_memory=None, n_problems=1, n_vectors=VECTORS_OF_ROW_LOSSES):
    """Return what `matrix_of_blocks` does, of columns mapped as `how` says: a ColumnScaling, a BasisMap, or None."""
    in_use = memory_in_use()
    limit = bytes_of(max_memory) + (in_use if max_memory is None else 0)
    vectors = round(8 * n_vectors * max(1, len(blocks)))
    in_flight = BLOCKS_IN_FLIGHT * blocks.n_bytes // max(1, blocks.n_blocks)
    left = limit - in_use - in_flight
    if left < vectors:
        raise MemoryError(
            f"The fit needs about {_shown(vectors)} for vectors with a number for each of {len(blocks)} rows, "
            f"{_shown(in_flight)} for blocks that are being read, and {_shown(in_use)} that are in use already; "
            f"max_memory is {_shown(limit)}. Raise max_memory, or take a part of the rows."
        )
    in_memory = _bytes_in_memory(blocks)
    if how is None and in_memory * (1 if _stays_bytes(blocks) else 2) <= left - vectors:  # twice while it is made
        matrix = _loaded(blocks, constant)
        n_together = (left - in_memory) // vectors
    else:
        n_together = max(1, min(n_problems, _SHARE_OF_VECTORS * left // vectors))
        matrix = StreamedMatrix(blocks, constant, left - n_together * vectors, how)
    matrix.source, matrix.most_problems = blocks, int(min(n_problems, n_together))
    return matrix


def _column_statistics(blocks):
    """Return the statistics of columns that a file has, or compute them by a pass if it has none."""
    return blocks.columns or column_statistics(X for X, _ in blocks)


def _loaded(blocks, constant):
    """Return the matrix of all rows in memory."""
    if _stays_bytes(blocks):
        return ResidentMatrix(blocks, constant)
    return Matrix.of_columns_that_occur(blocks.to_memory(), constant)


def _stays_bytes(blocks):
    """Return whether the rows in memory have values of a byte; rows with columns to leave out have not."""
    has_bytes = blocks.layout.value_type is None or blocks.layout.value_type == np.uint8
    return has_bytes and _n_stored(blocks) >= _VALUES_WORTH_BYTES and blocks.shape[1] < WIDE


def _bytes_in_memory(blocks):
    """Return how many bytes the matrix of all rows takes, in the form in which it takes most."""
    layout, is_sparse = blocks.layout, blocks.layout.is_sparse
    if _stays_bytes(blocks):
        per_row, per_value = (8, 1 + layout.index_type.itemsize) if is_sparse else (0, 1)
        return per_row * len(blocks) + per_value * _n_stored(blocks)
    value = 4 if layout.value_type == np.float32 else 8
    return (value + 4 * is_sparse) * _n_stored(blocks)


def _n_stored(blocks):
    """Return the number of stored values; that of a range of rows as the mean of the files tells."""
    if not blocks.layout.is_sparse:
        return blocks.shape[0] * blocks.shape[1]
    return blocks.summary.n_stored / max(1, blocks.summary.n_rows) * len(blocks)


def _shown(n_bytes):
    return f"{n_bytes / 1e9:.2f} GB"
