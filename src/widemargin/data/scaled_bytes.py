"""`ScaledBytes`: the matrix of an array of bytes whose columns are scaled when rows are read; see `scaled_rows`."""

from typing import Any

from numpy.typing import NDArray

from widemargin.data.byte_rows import stays_bytes
from widemargin.data.column_scaling import ColumnScaling
from widemargin.data.matrix import Matrix
from widemargin.data.scaled_rows import ScaledRows


class ScaledBytes(Matrix):
    """X, an array of int8 or uint8 that stays as it is, with columns that solvers see scaled.

    Parameters
    ----------
    X : ndarray
        Large enough to stay as it is, see `byte_rows.stays_bytes`.
    constant : float
        Value of an additional last column for the intercept; 0 means that there is no such column.
    how : ColumnScaling
    """

    values_or_none = None
    scaling: ColumnScaling

    def __init__(self, X: NDArray[Any], constant: float, how: ColumnScaling) -> None:
        super().__init__(X, constant)
        self.scaling = how
        self.rows = ScaledRows(self.values, how.centre, 1.0 / how.scale, self.constant)

    def features(self, rows: Any, columns: Any = slice(None)) -> NDArray[Any]:
        """Return the scaled values of some rows and columns in float64, without the constant column."""
        some = self.values[rows][:, columns] - self.rows.centre[columns]
        some *= self.rows.factor[columns]
        return some

    def part(self, chosen: NDArray[Any] | slice) -> Matrix:
        """Return a Matrix of the chosen rows."""
        values = self.values[chosen]
        if stays_bytes(values):
            return ScaledBytes(values, self.constant, self.scaling)
        return Matrix(self.features(chosen), self.constant)
