"""`StackedMatrix`: X for several weight vectors at once, as one matrix of all scores and all weights.

With m outputs, w are m weight vectors one after the other, and the scores of X w are those of all rows of X by the
first output, then those by the second, and so on: n_rows and n_columns are m times those of X. So a method that knows
`scores(w)` and `combine(c)` fits several outputs together, and makes one pass over X for all of them.
"""

from functools import cached_property
from typing import Any

import numpy as np

from widemargin._runtime.argument_types import Floats


class StackedMatrix:
    """A matrix of scores and weights of several outputs.

    Parameters
    ----------
    X : Matrix, or one of the matrices with its methods
        In memory, in blocks on disk, or on a cluster.
    n_outputs : int
        Number of weight vectors.

    Attributes
    ----------
    X, n_outputs
        As given.
    n_rows, n_columns : int
        Number of scores, and of weights.
    """

    is_small = False  # so small that exact sums would be used: they are those of one output

    def __init__(self, X: Any, n_outputs: int) -> None:
        self.X, self.n_outputs = X, n_outputs
        self.n_rows, self.n_columns = n_outputs * X.n_rows, n_outputs * X.n_columns
        self.is_in_memory, self.place, self.n_parts, self.source = X.is_in_memory, X.place, X.n_parts, X.source

    @property
    def longest_row(self) -> int:
        """Number of terms of a score, at most."""
        return self.X.longest_row

    @cached_property
    def longest_sum(self) -> int:
        """Largest number of terms added sequentially in an entry of `combine`."""
        return self.X.longest_table_sum(self.n_outputs)

    @property
    def largest_norm(self) -> float:
        """The largest |x_i|², of rows on a cluster."""
        return self.X.largest_norm

    def scores(self, w: Floats, n_jobs: int | None = 1, out: Floats | None = None) -> Floats:
        """Return the scores of all rows by all outputs; they are written to `out` if given."""
        out = np.empty(self.n_rows) if out is None else out
        self.X.score_table(self.weights(w), n_jobs, out=self._table(out))
        return out

    def combine(self, c: Floats, n_jobs: int | None = 1) -> Floats:
        """Return Σ_i c_ik x_i of every output k, one after the other."""
        return self.X.combine_table(self._table(c), n_jobs).ravel()

    def squared_norms(self, n_jobs: int | None = 1) -> Floats | None:
        """Return |x_i|² for each score; None if the norms of rows are not known here."""
        norms = self.X.squared_norms(n_jobs)
        if norms is None:
            return None
        if norms.strides == (0,) and len(norms):
            return np.broadcast_to(norms[0], self.n_rows)
        return np.tile(norms, self.n_outputs)

    def weights(self, w: Floats) -> Floats:
        """Return the weight vectors as the rows of an array."""
        return np.ascontiguousarray(w, dtype=np.float64).reshape(self.n_outputs, self.X.n_columns)

    def _table(self, scores):
        return scores.reshape(self.n_outputs, self.X.n_rows)
