"""Files of dual variables as svm_learn writes and reads them (-a, -y): a line for each training row.

classification   y_i α_i, between −C and C
regression       the difference of the two dual variables of a row
"""

import os

import numpy as np
from numpy.typing import ArrayLike

from widemargin._runtime.argument_types import FilePath, Floats
from widemargin._runtime.atomic_file import replacing
from widemargin.errors import FormatError
from widemargin.persistence.text import check_complete, number


def write_alphas(path: FilePath, alphas: ArrayLike) -> None:
    """Write signed dual variables to a file, a line for each row, as svm_learn -a does.

    Parameters
    ----------
    path : str or path
        The file; one of that name is replaced when the new one is complete.
    alphas : array-like of shape (n_rows,)
        The dual variables times the labels; for a SVC with two classes,
        `a = numpy.zeros(n_rows); a[model.support_] = model.dual_coef_[0]`.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import SVC, write_alphas
    >>> X, y = np.array([[0.0], [1.0], [3.0]]), np.array([-1, 1, 1])
    >>> model, alphas = SVC(kernel="linear").fit(X, y), np.zeros(3)
    >>> alphas[model.support_] = model.dual_coef_[0]
    >>> write_alphas("alphas", alphas)
    """
    values = np.asarray(alphas, dtype=np.float64)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise ValueError(f"alphas must be a vector of finite numbers, got shape {values.shape}.")
    with replacing(path) as file:
        file.writelines(f"{value:.18g}\n".encode() for value in values.tolist())


def read_alphas(path: FilePath, n_rows: int | None = None) -> Floats:
    """Read a file of signed dual variables, as svm_learn -a writes it.

    Parameters
    ----------
    path : str or path
        The file.
    n_rows : int, default=None
        The number of lines that the file must have; None is any.

    Returns
    -------
    alphas : ndarray of shape (n_rows,)
        The dual variables times the labels.

    Raises
    ------
    FormatError
        If a line is not a number, or the number of lines is another one.

    Examples
    --------
    >>> from widemargin import read_alphas, write_alphas
    >>> write_alphas("alphas", [0.5, -0.5, 0.0])
    >>> read_alphas("alphas", n_rows=3)
    array([ 0.5, -0.5,  0. ])
    """
    name = os.fsdecode(path)
    with open(name, "rb") as file:
        content = file.read()
    if content:
        check_complete(content, name)
    lines = content.split(b"\n")[:-1]
    if n_rows is not None and len(lines) != n_rows:
        raise FormatError(name, f"there must be a line for each of {n_rows} rows, got {len(lines)}.")
    return np.array([number(line.strip(), name, k + 1) for k, line in enumerate(lines)], dtype=np.float64)
