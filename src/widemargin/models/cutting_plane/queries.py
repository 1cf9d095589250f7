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
    ends = query_ends(qid, n_rows)
    return np.repeat(np.arange(len(ends) - 1), np.diff(ends))


def query_ends(qid, n_rows, blocks=None):
    """Return the first row of each query, and the number of rows at the end.

    Parameters
    ----------
    qid : array-like or None
        The query of each row. None takes those of the blocks; without any, all rows belong to one query.
    n_rows : int
    blocks : RowBlocks or None

    Raises
    ------
    ValueError
        As `queries` does.
    """
    if qid is not None:
        qid = _one_per_row(qid, n_rows)
        starts = np.flatnonzero(np.concatenate([[True], qid[1:] != qid[:-1]]))
        runs = starts, qid[starts]
    else:
        runs = None if blocks is None else blocks.query_runs()
    if runs is None:
        return np.array([0, n_rows])
    _refuse_repeated(runs[1])
    return np.append(runs[0], n_rows)


def _refuse_repeated(qid):
    """Raise ValueError if a query occurs twice among those of runs of rows."""
    names, counts = np.unique(qid, return_counts=True)
    if (counts > 1).any():
        raise ValueError(
            f"Rows of query {names[np.argmax(counts > 1)]} are not together: sort the rows by qid, for instance with "
            "numpy.argsort(qid, kind='stable')."
        )


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
    if qid.dtype.kind == "f":
        _refuse_missing(np.isnan(qid))
    elif qid.dtype.kind == "O":
        _check_objects(qid)
    return qid


def _check_objects(qid):
    """Raise ValueError unless all entries are numbers, or all are texts."""
    _refuse_missing(np.array([one is None or one != one for one in qid.tolist()]))
    kinds = {str if isinstance(one, str) else Real if isinstance(one, Real) else type(one) for one in qid.tolist()}
    if not (len(kinds) == 1 and kinds <= {str, Real, bytes}):
        raise ValueError(f"qid must hold numbers or texts, all of one kind, got {_kinds_of(qid)}.")


def _refuse_missing(missing):
    if missing.any():
        raise ValueError(f"qid of row {int(np.argmax(missing))} is missing: every row must belong to a query.")


def _kinds_of(qid):
    """Return the names of the types of the entries, for a message."""
    return " and ".join(sorted({type(one).__name__ for one in qid.tolist()}))
