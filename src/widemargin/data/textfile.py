"""SVM-light / LIBSVM text: one row per line, `label [qid:query] index:value ... [# comment]`, indices increasing.

Reading: the file is memory-mapped and cut at newlines into chunks, which threads parse with compiled code
(`textparser`) straight into the arrays of one CSR matrix. Every number is the double nearest to its decimal text, as
Python's `float` would give. A file that breaks a rule is refused with its first mistake, by line and column.

Writing: every number in the fewest digits that read back as the same number, and a file is replaced only when the
new one is complete.
"""

import mmap
import os
import re
import stat

import numpy as np
from scipy.sparse import csr_array

from widemargin._threads import run
from widemargin.data import textparser
from widemargin.data.compression import compress_by_suffix, decompress
from widemargin.data.textmistakes import LARGEST_INDEX, explain
from widemargin.data.textparser import Place, Rules, count_lines, parse_rows
from widemargin.errors import FormatError

_CHUNK_BYTES = 1 << 20
_LISTED_UNDECIDED = 64
_SHORTEST_ENTRY = 4  # a blank, a digit, a colon, a digit
_LARGEST_INT32 = 2**31 - 1
# Blank and comment lines, a label, and then a query.
_STARTS_WITH_QUERY = re.compile(rb"(?:[ \t\r]*+(?:#[^\n]*+)?\n)*+[ \t\r]*+[^ \t\r\n#]++[ \t\r]++qid:")
_BYTE_ORDER_MARKS = {b"\xef\xbb\xbf": "UTF-8", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}


def read_svmlight(path_or_file, *, n_features=None, dtype=np.float64, zero_based="auto"):
    """Read rows of SVM-light / LIBSVM text.

    Parameters
    ----------
    path_or_file : str, path or file object
        Plain text, or compressed with gzip, bzip2, xz or zstandard, which is told from the first bytes. A file
        object may be open in binary or text mode and is read to its end.
    n_features : int, default=None
        Number of columns; None takes the largest index in the file.
    dtype : float64 or float32, default=float64
        Type of the values. A float32 is the nearest to the double nearest to the text, as NumPy converts.
    zero_based : "auto" or bool, default="auto"
        Whether indices count from 0 rather than from 1; "auto" says so if index 0 occurs.

    Returns
    -------
    X : csr_array of shape (n_rows, n_features)
        The values, including zeros that are written in the file.
    y : ndarray of shape (n_rows,), float64
        The labels.
    qid : ndarray of shape (n_rows,), int64, or None
        The queries, if the rows have any.

    Raises
    ------
    FormatError
        At the first place where the file breaks a rule of the format.
    """
    if n_features is not None and not 0 <= n_features <= _LARGEST_INT32:
        raise ValueError(f"n_features must be between 0 and {_LARGEST_INT32}, got {n_features}.")
    if np.dtype(dtype) not in (np.float64, np.float32):
        raise ValueError(f"dtype must be float64 or float32, got {np.dtype(dtype)}.")
    if not (isinstance(zero_based, bool) or zero_based == "auto"):
        raise ValueError(f'zero_based must be True, False or "auto", got {zero_based!r}.')
    source, buffer = _load(path_or_file)
    rules = _make_rules(n_features, np.dtype(dtype), zero_based, bool(_STARTS_WITH_QUERY.match(buffer)))
    return _read_chunks(_Text(source, buffer, n_features), rules, np.dtype(dtype), zero_based)
