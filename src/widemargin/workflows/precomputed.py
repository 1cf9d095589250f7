"""Files of precomputed kernels in LIBSVM's format, `label 0:serial 1:K(x, x1) ... L:K(x, xL)`, with all values written.

The serial number of a row is the number of the column that belongs to the row itself. A file may therefore contain some
of the rows of a kernel matrix only: the kernel value of rows i and j is in row i, column serial[j].
"""

import io
import sys

import numpy as np

from widemargin.data.svmlight.compression import LONGEST_MAGIC, compression_of, decompress
from widemargin.errors import FormatError
from widemargin.workflows.files import name_of, read_rows


def read_kernel_rows(source, *, dtype=np.float64, n_columns=None):
    """Return (K, serial, y) of a file; `-` is standard input.

    Parameters
    ----------
    source : str or binary file object
        The file.
    dtype : float64 or float32
        Type of the values.
    n_columns : int, default=None
        The smallest number of kernel values that a row must have. None is that of the longest row; then serial numbers
        must be numbers of columns.

    Returns
    -------
    K : ndarray of shape (n_rows, at least n_columns)
        Kernel values.
    serial : ndarray of shape (n_rows,)
        Serial numbers, from 1.
    y : ndarray of shape (n_rows,)
        Labels.

    Raises
    ------
    FormatError
        If a row breaks a rule; it has the line of the first such row.
    """
    name = "<stdin>" if source == "-" else name_of(source)
    if not isinstance(source, str) or source == "-":  # kept in memory, to find the line of an error
        source = io.BytesIO((sys.stdin.buffer if source == "-" else source).read())
        source.name = name
    X, y, _ = read_rows(source, dtype=dtype, zero_based=True)
    mistake = _first_mistake(X, n_columns)
    if mistake is not None:
        row, rule = mistake
        raise FormatError(name, rule, _line_of_row(source, row))
    values = X.data.reshape(X.shape)
    return values[:, 1:], values[:, 0], y


def _first_mistake(X, n_columns):
    """Return (row, rule) of the first row that breaks a rule; None if there is none."""
    width = X.shape[1]
    short = np.flatnonzero(np.diff(X.indptr) < width)  # indices increase: a row with as many entries has them all
    if len(short):
        indices = X.indices[X.indptr[short[0]] : X.indptr[short[0] + 1]]
        if len(indices) == 0 or indices[0] != 0:
            return short[0], "a row of a precomputed kernel begins with 0:serial"
        n_values = len(indices) - 1
        return short[0], f"the row has {n_values} of {width - 1} kernel values; write every one, zeros too"
    if n_columns is None:
        serial = X.data[::width]
        wrong = np.flatnonzero((serial != np.round(serial)) | (serial < 1) | (serial >= width))
        if len(wrong):
            rule = f"the serial number must be a whole number from 1 to {width - 1}, the number of columns"
            return wrong[0], f"{rule}, got {serial[wrong[0]]:g}"
    elif width <= n_columns:
        rule = "give the kernel of the row with every training row"
        return 0, f"the row has {width - 1} kernel values, the model needs {n_columns}; {rule}"
    return None


def _line_of_row(source, row):
    """Return the line number of a row; blank lines and comments do not count as rows."""
    if isinstance(source, str):
        with open(source, "rb") as file:
            content = file.read()
    else:
        content = source.getvalue()
    compression = compression_of(content[:LONGEST_MAGIC])
    if compression is not None:
        content = decompress(content, compression[1])
    lines = (number for number, line in enumerate(content.split(b"\n"), 1) if line.partition(b"#")[0].strip())
    return next(number for k, number in enumerate(lines) if k == row)


def square(K, serial):
    """Return the kernel matrix of the rows with each other."""
    columns = serial.astype(np.int64) - 1
    if np.array_equal(columns, np.arange(K.shape[1])):
        return K
    return K[:, columns]


def number_support(model, n_columns, serial):
    """Replace the row numbers in `support_` of a model fitted to `square(K, serial)` by column numbers of K."""
    model.support_ = (serial.astype(np.int64) - 1)[model.support_].astype(model.support_.dtype)
    model.n_features_in_, model.shape_fit_ = n_columns, (n_columns, n_columns)
