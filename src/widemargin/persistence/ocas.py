"""The model text of svmocas and msvmocas: numbers and line ends, nothing else.

svmocas    a line for each weight, then the intercept
msvmocas   a line for each feature, with a column for each class
"""

import os

import numpy as np

from widemargin._runtime.argument_types import FilePath, Floats
from widemargin._runtime.atomic_file import replacing
from widemargin.errors import FormatError
from widemargin.persistence.text import check_complete, number


def write_weights(path: FilePath, w: Floats, intercept: float) -> None:
    """Write a weight vector and an intercept as svmocas does, with 17 digits."""
    with replacing(path) as file:
        file.writelines(f"{value:.17g}\n".encode() for value in [*np.ravel(w).tolist(), float(intercept)])


def write_classes(path: FilePath, W: Floats) -> None:
    """Write weights (n_features, n_classes) as msvmocas does, with 17 digits."""
    with replacing(path) as file:
        file.writelines((" ".join(f"{value:.17g}" for value in line) + "\n").encode() for line in W.tolist())


def read_weights(path: FilePath) -> tuple[Floats, Floats]:
    """Return weights (n_classes, n_features) and intercepts; there is one row if svmocas wrote the file.

    Raises
    ------
    FormatError
        If a line is not made of numbers, or lines have different numbers of them.
    """
    name = os.fsdecode(path)
    with open(name, "rb") as file:
        content = file.read()
    check_complete(content, name)
    lines = [line.split() for line in content.split(b"\n")[:-1]]
    n_columns = len(lines[0])
    if not n_columns or any(len(line) != n_columns for line in lines):
        place = next((k for k, line in enumerate(lines) if len(line) != n_columns), 0)
        raise FormatError(name, f"every line must have {max(n_columns, 1)} numbers.", place + 1)
    table = np.array([[number(word, name, k + 1) for word in line] for k, line in enumerate(lines)])
    if n_columns > 1:
        return table.T.copy(), np.zeros(n_columns)
    if len(table) < 2:
        raise FormatError(name, "a weight for each feature and the intercept are at least two lines.")
    return table[:-1].T.copy(), table[-1]
