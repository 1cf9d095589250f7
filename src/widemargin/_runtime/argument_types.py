"""Types of what public functions take and return, for annotations.

SciPy and scikit-learn come without types: sparse matrices and splitters of folds are described by what is used of them.
"""

import os
from collections.abc import Callable, Iterable
from typing import IO, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray


class SparseMatrix(Protocol):
    """A sparse matrix or array of SciPy."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Numbers of rows and columns."""
        ...

    @property
    def nnz(self) -> int:
        """Number of stored entries."""
        ...

    def tocsr(self) -> Any:
        """Return the matrix in compressed sparse rows."""
        ...

    def toarray(self) -> NDArray[Any]:
        """Return the matrix as an array."""
        ...


class Splitter(Protocol):
    """What splits rows into folds, such as scikit-learn's KFold."""

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterable[Any]:
        """Return the rows to train on and those to score on, for each fold."""
        ...


Rows: TypeAlias = ArrayLike | SparseMatrix
"""A matrix X: anything that NumPy makes an array of, data frames included, or a sparse matrix."""

Floats: TypeAlias = NDArray[np.float64]

FilePath: TypeAlias = str | bytes | os.PathLike[str] | os.PathLike[bytes]
PathOrFile: TypeAlias = FilePath | IO[bytes] | IO[str]

Folds: TypeAlias = int | Splitter | Iterable[tuple[ArrayLike, ArrayLike]]
Scoring: TypeAlias = str | Callable[..., float]
