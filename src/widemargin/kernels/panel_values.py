"""Values of the rbf kernel for a panel of rows and many sparse rows x_j: see the panels of `data.products`.

The products of x_j with all rows of the panel are one after the other, and so their kernel values are computed at once,
a few x_j at a time. The values are then transposed into the rows of the output, by blocks in the processor's registers.
Thus neither products nor values leave the first cache before they are written, and one call of compiled code does the
work of a task.
"""

import numpy as np

from widemargin._runtime.compile import compiled
from widemargin._runtime.simd import BLOCK, LANES, aligned_zeros, put_lanes, put_transposed
from widemargin.data.products import row_with_panel
from widemargin.kernels.gaussians import numbers_per_vector, put_gaussians

_ROWS_TRANSPOSED_TOGETHER = 64  # rows x_j: four cache lines of each row of the output


class PanelValues:
    """Computes values of the rbf kernel.

    Parameters
    ----------
    gamma : float
    rows : CsrRows
        The rows x_j.
    """

    def __init__(self, gamma, rows):
        self._gamma, self._rows = rows.data.dtype.type(gamma), rows

    def fill(self, panel, own, columns, norms, out, slots, *, origin=0):
        """Set out[slots[b], origin + k] to the kernel value of row b of the panel and x_columns[k], for all k.

        `own` are the squared norms of the rows of the panel, `norms` those of x_columns[k]; `columns` are uint32.
        """
        lanes = aligned_zeros((LANES,), panel.dtype)
        lanes[: len(own)] = own
        memory = aligned_zeros((1, LANES), panel.dtype), aligned_zeros((_ROWS_TRANSPOSED_TOGETHER, LANES), out.dtype)
        slots = np.ascontiguousarray(slots, dtype=np.int64)
        _fill(self._gamma, self._rows, columns, norms, panel, lanes, memory, slots, out, origin)


@compiled
def _fill(gamma, rows, columns, norms, panel, own, memory, slots, out, origin):
    """Do the work of `PanelValues.fill`; entries of `own` beyond the slots are of rows that the panel does not have."""
    line, values = memory
    products = line[0]
    for begin in range(0, columns.size, values.shape[0]):
        end = min(begin + values.shape[0], columns.size)
        for k in range(begin, end):
            put_lanes(row_with_panel(rows, np.uint64(columns[k]), panel), line, 0)
            target = values[np.uint64(k - begin)]
            for j in range(0, LANES, numbers_per_vector(products, target)):
                put_gaussians(products, gamma, (norms[k], own), target, j)
        _put_columns(values, end - begin, slots, out, origin + begin)


@compiled
def _put_columns(values, n_columns, slots, out, place):
    """Set out[slots[b], place + j] = values[j, b] for all b, and j < n_columns."""
    n_by_blocks = n_columns // BLOCK * BLOCK
    n_slots_by_blocks = slots.size // BLOCK * BLOCK
    for b in range(0, n_slots_by_blocks, BLOCK):
        for j in range(0, n_by_blocks, BLOCK):
            put_transposed(values, (j, b), out, slots, place + j)
    for b in range(slots.size):
        line = out[np.uint64(slots[b])]
        for j in range(n_by_blocks if b < n_slots_by_blocks else 0, n_columns):
            line[np.uint64(place + j)] = values[np.uint64(j), np.uint64(b)]
