"""Queries: which rows are ranked against each other."""

from numbers import Real

import numpy as np


def queries(qid, n_rows):
    """Return the number of the query of each row, counted from 0; all zero if qid is None.

    Raises
    ------
    ValueError
        If qid has not one entry for each row, or the rows of a query are not adjacent.
    """
    if qid is None:
        return np.zeros(n_rows, np.int64)
    qid = _one_per_row(qid, n_rows)
    first = np.concatenate([[True], qid[1:] != qid[:-1]])
    group = np.cumsum(first) - 1
    names, counts = np.unique(qid[first], return_counts=True)
    if (counts > 1).any():
        raise ValueError(
            f"Rows of query {names[np.argmax(counts > 1)]} are not together: sort the rows by qid, for instance with "
            "numpy.argsort(qid, kind='stable')."
        )
    return group


def _one_per_row(qid, n_rows):
    """Return qid as an array of numbers or strings; ValueError unless there is one for each row and none is missing."""
    try:
        qid = np.asarray(qid)
    except ValueError as error:
        raise ValueError(f"qid must have one entry per row: {error}.") from error
    if qid.ndim == 2 and qid.shape[1] == 1:
        qid = qid[:, 0]
    if qid.shape != (n_rows,):
        raise ValueError(f"qid must have one entry per row: {n_rows} rows, got shape {qid.shape}.")
    if qid.dtype.kind not in "biufUSO":
        raise ValueError(f"qid must hold integers or texts, got {qid.dtype}.")
    missing = np.array([one is None or one != one for one in qid.tolist()])
    if missing.any():
        raise ValueError(f"qid of row {int(np.argmax(missing))} is missing: every row must belong to a query.")
    kinds = {str if isinstance(one, str) else Real if isinstance(one, Real) else type(one) for one in qid.tolist()}
    if qid.dtype.kind == "O" and not (len(kinds) == 1 and kinds <= {str, Real, bytes}):
        raise ValueError(f"qid must hold numbers or texts, all of one kind, got {_kinds_of(qid)}.")
    return qid


def _kinds_of(qid):
    """Return the names of the types of the entries, for a message."""
    return " and ".join(sorted({type(one).__name__ for one in qid.tolist()}))
