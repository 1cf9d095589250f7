"""Checks of rows as they come from a caller or a file, and their conversion to the narrowest types."""

from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse

from widemargin.data.blocks.layout import Chunk
from widemargin.data.blocks.row_buffer import RowArrays, RowTypes
from widemargin.data.blocks.statistics import VALUE_TYPES, PartFacts, dense_facts, sparse_facts
from widemargin.data.structure import checked_csr

_LARGEST_EXACT = 2**53  # up to it, every integer is a double
_COLUMNS_OF_UINT16 = 1 << 16


class Incoming(NamedTuple):
    """Rows in the narrowest types, what is known of them, and their classes if labels are strings.

    Then labels are positions among the classes.
    """

    rows: RowArrays
    facts: PartFacts
    classes: list[str] | None = None


def checked_chunk(block, n_before=0):
    """Return a block (X, y[, qid[, weight]]) of a caller as a Chunk of checked arrays.

    Labels are float64 or strings. `n_before` is the number of rows before the block, for messages.

    Raises
    ------
    ValueError
        If arrays do not fit together, have a wrong type, or a label, query or weight is missing or not finite.
    """
    if not isinstance(block, tuple | list) or not 2 <= len(block) <= 4:
        form = "a tuple (X, y), (X, y, qid) or (X, y, qid, weight)"
        raise ValueError(f"a block must be {form}, got {_described(block)}.")
    X = checked_matrix(block[0])
    y, qid, weight = (*block[1:], None, None)[:3]
    chunk = Chunk(
        X,
        checked_labels(y, n_before),
        None if qid is None else checked_queries(qid, n_before),
        None if weight is None else checked_weights(weight, n_before),
    )
    for name, array in zip(("y", "qid", "weight"), chunk[1:], strict=True):
        if array is not None and len(array) != X.shape[0]:
            raise ValueError(f"{name} must have an entry for each of {X.shape[0]} rows of X, got {len(array)}.")
    return chunk


def _described(block):
    return f"{type(block).__name__} of length {len(block)}" if isinstance(block, tuple | list) else type(block).__name__


def checked_matrix(X):
    """Return X as a canonical CSR matrix, or as a C-ordered array, of float32, float64 or uint8."""
    if not issparse(X):
        X = np.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"X must have 2 dimensions, got {X.ndim}.")
    if X.dtype.kind not in "biuf":
        raise ValueError(f"X must hold real numbers, got {X.dtype}.")
    _refuse_rounded(X.data if issparse(X) else X)
    if issparse(X):
        return checked_csr(X, finite=False)
    if X.shape[1] == 0:
        raise ValueError(f"X must have at least 1 column, got an array of shape {X.shape}.")
    if X.dtype.kind == "b" or X.dtype == np.uint8:
        return np.ascontiguousarray(X, dtype=np.uint8)
    narrow = X.dtype.kind == "f" and X.dtype.itemsize <= 4
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(X, dtype=np.float32 if narrow else np.float64)


def _refuse_rounded(values):
    """Refuse integers that are not doubles."""
    if values.dtype.kind in "iu" and values.dtype.itemsize == 8 and values.size:
        largest = max(-int(values.min()), int(values.max()))
        if largest > _LARGEST_EXACT:
            raise ValueError(f"integers must be at most 2**53 in magnitude, the largest exact double, got {largest}.")


def checked_labels(y, n_before):
    """Return labels as float64, or as strings."""
    y = _one_dimensional(y, "y")
    if y.dtype.kind == "O" and all(isinstance(label, str) for label in y.tolist()):
        return y
    if y.dtype.kind in "UT":
        return y.astype(object)
    return _finite(y, "y", "label", n_before)


def checked_queries(qid, n_before):
    """Return queries as int64."""
    qid = _one_dimensional(qid, "qid")
    if qid.dtype.kind not in "iu":
        numbers = _finite(qid, "qid", "query", n_before)
        if not (numbers == np.round(numbers)).all():
            row = int(np.flatnonzero(numbers != np.round(numbers))[0])
            raise ValueError(f"qid must hold integers, got {numbers[row]} in row {n_before + row}.")
        qid = numbers
    if qid.dtype == np.uint64 and len(qid) and qid.max() > np.iinfo(np.int64).max:
        raise ValueError(f"qid must be at most 2**63 − 1, got {qid.max()}.")
    return np.ascontiguousarray(qid, dtype=np.int64)


def checked_weights(weight, n_before):
    """Return weights as float64."""
    weight = _finite(_one_dimensional(weight, "weight"), "weight", "weight", n_before)
    if (weight < 0).any():
        row = int(np.flatnonzero(weight < 0)[0])
        raise ValueError(f"weight must not be negative, got {weight[row]} in row {n_before + row}.")
    return weight


def _one_dimensional(array, name):
    array = np.asarray(array)
    if array.ndim != 1:
        raise ValueError(f"{name} must have 1 dimension, got {array.ndim}.")
    return array


def _finite(array, name, what, n_before):
    """Return an array as float64; refuse what is missing, no number, or not finite."""
    if array.dtype.kind not in "biufO":
        raise ValueError(f"{name} must hold {'numbers or strings' if name == 'y' else 'numbers'}, got {array.dtype}.")
    _refuse_rounded(array)
    try:
        numbers = array.astype(np.float64)
    except (TypeError, ValueError) as error:
        kinds = sorted({type(one).__name__ for one in array.tolist()})
        raise ValueError(f"{name} must hold one kind of {what}s, got {', '.join(kinds)}.") from error
    if not np.isfinite(numbers).all():
        row = int(np.flatnonzero(~np.isfinite(numbers))[0])
        raise ValueError(f"the {what} of row {n_before + row} is {numbers[row]}; every {what} must be finite.")
    return numbers


def received(chunk, n_before=0, names=None):
    """Return a checked Chunk as Incoming rows.

    Arrays may have wider types than `types` of the rows says; they are narrowed when they are copied.

    Raises
    ------
    ValueError
        If a value is NaN or infinite; row and column are named, the column by `names` if they are given.
    """
    classes, label = None, chunk.label
    if label.dtype == object:
        classes, label = np.unique(label.astype(str), return_inverse=True)
        classes, label = classes.tolist(), label.astype(np.float64)
    belongings = {"label": label, "qid": chunk.qid, "weight": chunk.weight}
    X = chunk.X
    if issparse(X):
        n_stored = int(X.indptr[-1])
        rows, facts = _sparse_rows(X.indptr, X.indices[:n_stored], X.data[:n_stored], belongings)
    else:
        facts = dense_facts(X, label)
        types = RowTypes(None, VALUE_TYPES[facts.kind], X.shape[1], **_has(belongings))
        rows = RowArrays(types, None, None, X.reshape(-1), **belongings)
    if facts.not_finite >= 0:
        _refuse_not_finite(X, facts.not_finite, n_before, names)
    return Incoming(rows, facts, classes)


def received_text(rows):
    """Return parsed `Rows` of text, whose values are finite, as Incoming rows."""
    belongings = {"label": rows.labels, "qid": rows.queries, "weight": None}
    return Incoming(*_sparse_rows(rows.indptr, rows.indices, rows.values, belongings))


def _sparse_rows(indptr, indices, values, belongings):
    """Return (RowArrays, PartFacts) of the arrays of a CSR matrix."""
    indptr, indices = indptr.astype(np.int64, copy=False), indices.astype(np.int32, copy=False)
    facts = sparse_facts(indices, values, indptr, belongings["label"])
    types = RowTypes(_index_type(facts.largest_column + 1), VALUE_TYPES[facts.kind], 0, **_has(belongings))
    return RowArrays(types, indptr, indices, None if types.value is None else values, **belongings), facts


def _has(belongings):
    return {"has_qid": belongings["qid"] is not None, "has_weight": belongings["weight"] is not None}


def _index_type(n_columns):
    return np.dtype(np.uint16 if n_columns <= _COLUMNS_OF_UINT16 else np.uint32)


def _refuse_not_finite(X, row, n_before, names):
    """Raise a ValueError for the first value of a row that is not finite."""
    if issparse(X):
        begin, end = X.indptr[row], X.indptr[row + 1]
        values, columns = X.data[begin:end], X.indices[begin:end]
    else:
        values, columns = X[row], np.arange(X.shape[1])
    first = int(np.flatnonzero(~np.isfinite(values))[0])
    column = int(columns[first])
    where = f"column {column}" if names is None else f"column {names[column]!r}"
    raise ValueError(f"row {n_before + row}, {where} is {values[first]}; every value must be finite.")
