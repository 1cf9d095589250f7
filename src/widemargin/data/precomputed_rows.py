"""Rows of a precomputed kernel, as LIBSVM writes them: `label 0:serial 1:K(x, x1) ... L:K(x, xL)`.

They are recognised by three properties that rows of features hardly ever have together: index 0 is used, every row has
all indices, and the values of index 0 are distinct whole numbers, each of which is the index of a column.
"""

import numpy as np

KERNEL_WORDS = "the rows look like a precomputed kernel (0:serial 1:K(x, x1) ...)"


class KernelRecogniser:
    """Decides whether rows that arrive in blocks look like those of one precomputed kernel matrix."""

    def __init__(self):
        self._width, self._serials, self._may_be = None, [], True

    def update(self, X):
        """Take a block of rows into account: a CSR matrix whose first column is index 0."""
        n_rows, width = X.shape
        if not self._may_be or n_rows == 0:
            return
        self._width = width if self._width is None else self._width
        serials = X.data[::width] if width >= 2 and X.nnz == n_rows * width else np.zeros(1)
        are_columns = np.all((serials == np.round(serials)) & (serials >= 1) & (serials < width))
        self._may_be = bool(are_columns) and width == self._width
        if self._may_be:
            self._serials.append(np.array(serials))

    @property
    def is_kernel(self):
        """Whether all rows so far look like those of one kernel matrix."""
        if not (self._may_be and self._serials):
            return False
        serials = np.concatenate(self._serials)
        return len(np.unique(serials)) == len(serials)


def is_kernel(X):
    """Return whether the rows of a CSR matrix look like a precomputed kernel; its first column is index 0."""
    recogniser = KernelRecogniser()
    recogniser.update(X)
    return recogniser.is_kernel
