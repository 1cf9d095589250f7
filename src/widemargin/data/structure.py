"""Validation of sparse matrices from the caller, before compiled code relies on their structure and values.

A CSR matrix is valid if indptr starts with 0, never decreases and does not exceed the number of stored entries, if
every index is a column, and if every value is finite. SciPy checks a part of this when a matrix is constructed, and
nothing if its arrays are modified afterwards; its compiled code then reads and writes outside of the arrays. Here one
compiled pass over each array checks everything. The same pass finds whether the indices of each row ascend strictly
(SciPy's canonical format), so that this need not be checked again.
"""

from copy import copy

import numpy as np
from scipy.sparse import issparse

from widemargin._runtime.compile import compiled

# By item size, the bits of the exponent of a floating point number, which are all set in infinity and NaN.
_EXPONENT_MASKS = {4: np.uint32(0x7F800000), 8: np.uint64(0x7FF0000000000000)}
_INDEX_TYPES = (np.dtype(np.int32), np.dtype(np.int64))  # that SciPy uses
_LINES = {"csr": "row", "csc": "column", "bsr": "row of blocks"}  # what two consecutive entries of indptr delimit


def checked_csr(X, *, finite=True):
    """Return a sparse matrix as CSR of float32 or float64 in canonical format; raise ValueError if it is not valid.

    The caller's matrix and its arrays are not modified; the result shares the arrays that need no change. Unsorted
    indices are sorted, and duplicate entries are summed.

    Parameters
    ----------
    X : scipy sparse matrix or array
        In any format.
    finite : bool, default=True
        Whether NaN and infinity are refused.
    """
    if X.ndim != 2:
        raise ValueError(f"X must have 2 dimensions, got a sparse array of shape {X.shape}.")
    is_canonical = _is_canonical(X)
    _check_type(X.dtype)
    if X.format == "csr":
        X = _twin(X)  # its flags are set below
    else:
        X, is_canonical = X.tocsr(), None
    if X.dtype not in (np.float64, np.float32):
        with np.errstate(over="ignore"):
            X = X.astype(np.float64)
    if finite:
        _check_finite(X)
    if is_canonical is None:
        is_canonical = _is_canonical(X)
    if not is_canonical:
        X = _made_canonical(X, finite)
    X.has_canonical_format = True
    return X


def _twin(X):
    """Return a CSR matrix of the same arrays, with flags of its own, and without entries that no row has.

    SciPy's constructor, which chooses types of indices and cuts off such entries, takes as long as all other checks.
    """
    if X.indices.dtype == X.indptr.dtype in _INDEX_TYPES and len(X.indices) == X.indptr[-1]:
        return copy(X)
    return type(X)((X.data, X.indices, X.indptr), shape=X.shape)


def check_structure(X):
    """Raise ValueError if a sparse matrix of any format has indices or offsets outside of its shape or arrays."""
    if issparse(X) and X.ndim == 2:
        _is_canonical(X)


def _check_type(dtype):
    if dtype.kind == "c":
        raise ValueError(f"Complex data not supported: X must hold real numbers, got {dtype}.")
    if dtype.kind not in "biuf":
        raise ValueError(f"X must hold real numbers, got {dtype}.")


def _made_canonical(X, finite):
    """Return a copy of a CSR matrix in canonical format."""
    X = X.copy()
    X.has_sorted_indices = X.has_canonical_format = False  # flags set earlier may be wrong
    with np.errstate(over="ignore"):
        X.sum_duplicates()
    if finite:
        _check_finite(X)  # sums of duplicates may overflow
    return X


def _is_canonical(X):
    """Return whether X is a CSR matrix whose indices ascend strictly in each row; ValueError if X is not valid."""
    if X.format == "coo":
        _check_coordinates(X)
    if X.format == "lil":
        _check_lists(X)
    if X.format not in _LINES:
        return False
    n_across = _check_sizes(X)
    indptr, indices = _plain(X.indptr), _plain(X.indices)
    descents_at_starts = _descents_at_line_starts(indptr, indices)
    if descents_at_starts < 0:
        _refuse_offsets(X, indptr, -1 - descents_at_starts)
    indices = indices[: indptr[-1]]
    largest, descents = _largest_and_descents(indices.view(f"u{indices.itemsize}"))  # negative indices become large
    if largest >= n_across and len(indices):
        _refuse_index(X, indptr, indices, n_across)
    return X.format == "csr" and descents == descents_at_starts


def _check_sizes(X):
    """Return the upper limit of the indices (of CSR, the number of columns); check sizes and types of the arrays."""
    n_lines, n_across = X.shape if X.format != "csc" else X.shape[::-1]
    n_dimensions = 1
    if X.format == "bsr":
        n_dimensions, (height, width) = 3, X.data.shape[1:] if X.data.ndim == 3 else (1, 1)
        n_lines, n_across = n_lines // max(height, 1), n_across // max(width, 1)
    for name in ("indptr", "indices"):
        array = getattr(X, name)
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise ValueError(f"{_named(X)}: {name} must be integers in one dimension, got {array.dtype} {array.shape}.")
    if X.data.ndim != n_dimensions or len(X.data) != len(X.indices):
        raise ValueError(f"{_named(X)}: data of shape {X.data.shape} and {len(X.indices)} indices do not fit together.")
    if len(X.indptr) != n_lines + 1:
        raise ValueError(
            f"{_named(X)}: indptr must have {n_lines + 1} entries, one more than there are {_LINES[X.format]}s, "
            f"got {len(X.indptr)}."
        )
    return n_across


def _check_coordinates(X):
    """Raise ValueError unless the coordinates of a COO matrix lie within its shape."""
    for name, places, size in (("row", X.row, X.shape[0]), ("column", X.col, X.shape[1])):
        if places.shape != X.data.shape or places.ndim != 1 or places.dtype.kind not in "iu":
            raise ValueError(
                f"{_named(X)}: {name}s of shape {places.shape} and data of shape {X.data.shape} do not fit."
            )
        if len(places) and not (places.min() >= 0 and places.max() < size):
            entry = int(np.flatnonzero((places < 0) | (places >= size))[0])
            raise ValueError(
                f"{_named(X)}: entry {entry} is in {name} {places[entry]}, and {name}s go from 0 to {size - 1}."
            )


def _check_lists(X):
    """Raise ValueError unless each row of a LIL matrix has as many indices as values; indices are checked as CSR."""
    if X.rows.shape != (X.shape[0],) or X.data.shape != (X.shape[0],):
        raise ValueError(f"{_named(X)}: there must be {X.shape[0]} lists, got {X.rows.shape} and {X.data.shape}.")
    for i, (indices, values) in enumerate(zip(X.rows, X.data, strict=True)):
        if len(indices) != len(values):
            raise ValueError(f"{_named(X)}: row {i} has {len(indices)} indices and {len(values)} values.")


def _refuse_offsets(X, indptr, line):
    """Raise a ValueError for the line (row or column) whose offsets in indptr are invalid."""
    begin, end, size = int(indptr[line]), int(indptr[line + 1]), len(X.indices)
    if line == 0 and begin != 0:
        raise ValueError(f"{_named(X)}: indptr must begin with 0, got {begin}.")
    rule = f"indptr must not decrease, and not exceed the {size} stored entries"
    raise ValueError(f"{_named(X)}: {_LINES[X.format]} {line} goes from {begin} to {end} in indptr; {rule}.")


def _refuse_index(X, indptr, indices, n_across):
    """Raise a ValueError for the first index that is not a column (for CSC, not a row)."""
    entry = int(np.flatnonzero((indices < 0) | (indices >= n_across))[0])
    line = int(np.searchsorted(indptr, entry, side="right")) - 1
    across = {"csc": "row", "bsr": "column of blocks"}.get(X.format, "column")
    raise ValueError(
        f"{_named(X)}: {_LINES[X.format]} {line} has an entry in {across} {indices[entry]}, "
        f"and {across}s go from 0 to {n_across - 1}."
    )


def _named(X):
    return f"X is not a valid {X.format.upper()} matrix"


def _check_finite(X):
    """Raise ValueError with scikit-learn's wording if a stored value of a CSR matrix is NaN or infinite."""
    values = _plain(X.data[: X.indptr[-1]])
    exponent_mask = _EXPONENT_MASKS[values.itemsize]
    if _largest_masked(values.view(exponent_mask.dtype), exponent_mask) != exponent_mask:
        return
    entry = int(np.flatnonzero(~np.isfinite(values))[0])
    row, column = int(np.searchsorted(X.indptr, entry, side="right")) - 1, int(X.indices[entry])
    what = "NaN" if np.isnan(values[entry]) else f"infinity or a value too large for {values.dtype!r}"
    raise ValueError(f"Input X contains {what}: row {row}, column {column}. Every value must be finite.")


def _plain(array):
    """Return a contiguous read-only view or copy with 32 or 64 bits per item, as the compiled loops expect."""
    if array.itemsize not in (4, 8) or array.dtype.kind == "u":
        array = array.astype(np.int64)
    array = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("=")).view()
    array.flags.writeable = False
    return array


@compiled
def _descents_at_line_starts(indptr, indices):
    """Return how many lines start with an index not above the entry before it, or −1 − i if line i is not valid."""
    n_descents = 0
    if indptr[0] != 0:
        return -1
    for i in range(indptr.size - 1):
        begin, end = indptr[i], indptr[i + 1]
        if end < begin or end > indices.size:
            return -1 - i
        if 0 < begin < end and indices[begin] <= indices[begin - 1]:
            n_descents += 1
    return n_descents


@compiled
def _largest_and_descents(indices):
    """Return the largest index, and how many indices are not above the one before."""
    if indices.size == 0:
        return np.uint64(0), 0
    largest, n_descents = indices[0], 0
    for k in range(1, indices.size):
        largest = max(largest, indices[k])
        n_descents += indices[k] <= indices[k - 1]
    return np.uint64(largest), n_descents


@compiled
def _largest_masked(bits, mask):
    """Return the largest of the numbers `bits[k] & mask`."""
    largest = mask & ~mask
    for k in range(bits.size):
        largest = max(largest, bits[k] & mask)
    return largest
