"""The compiled loops of `expansion`: kernel values of some rows with some support vectors, added to the scores."""

import numpy as np

from widemargin._runtime.compile import compiled
from widemargin._runtime.simd import LANES
from widemargin.data.column_lists import row_with_lists
from widemargin.data.feature_lines import ROWS_TOGETHER, products_with_lines, row_with_lines
from widemargin.data.integer_rows import put_distances
from widemargin.kernels.functions import finish_row
from widemargin.kernels.weighted_sums import add_sums


@compiled
def add_from_table(table, Z, ends, block, weights, memory, out):
    """Add the contributions of a block of support vectors to out[b], of row ends[0] + b up to row ends[1]."""
    integers, values, sums = memory
    start, stop, lines, norms = block
    distances = integers[: stop - start]
    for first in range(ends[0], ends[1], values.shape[0]):
        last = min(first + values.shape[0], ends[1])
        for b in range(first, last):
            row = values[np.uint64(b - first)]
            put_distances(Z, np.uint64(b), lines, norms, distances)
            for j in range(distances.size):
                row[j] = table[np.uint16(distances[j])]
        add_sums(values, (start, stop), weights, sums, out[first - ends[0] : last - ends[0]])


@compiled
def add_columns(Z, columns, weights, memory, out):
    """Add the contributions of all support vectors to out[b], from the kernel values Z[b, columns], for all b."""
    values, sums = memory
    for first in range(0, Z.shape[0], values.shape[0]):
        last = min(first + values.shape[0], Z.shape[0])
        for b in range(first, last):
            row, target = Z[np.uint64(b)], values[np.uint64(b - first)]
            for j in range(columns.size):
                target[j] = row[columns[j]]
        add_sums(values, (0, columns.size), weights, sums, out[first:last])


@compiled
def add_tile(numbers, products, norms, ends, weights, memory, out):
    """Add the contributions of the support vectors from ends[0] to ends[1] to out[b], from the products[b], all b.

    `norms` are those of the rows, and those of the support vectors; there may be more products than support vectors.
    """
    values, sums = memory
    own, others = norms
    kind, gamma, coef0, degree = numbers
    for first in range(0, out.shape[0], values.shape[0]):
        last = min(first + values.shape[0], out.shape[0])
        for b in range(first, last):
            inner, row = products[np.uint64(b)][: others.size], values[np.uint64(b - first)][: others.size]
            finish_row(kind, gamma, coef0, degree, inner, own[b], others, row)
        add_sums(values, ends, weights, sums, out[first:last])


@compiled
def add_by_lists(numbers, rows, norms, lists, part, weights, memory, out):
    """Add the contributions of the support vectors of some lists, from part[1] on, to out[b] of row part[0] + b."""
    products, values, sums = memory
    own, others = norms
    begin, start = part
    for first in range(0, out.shape[0], products.shape[0]):
        last = min(first + products.shape[0], out.shape[0])
        for b in range(first, last):
            row_with_lists(rows, np.uint64(begin + b), lists, products[np.uint64(b - first)][: others.size])
        ends = start, start + others.size
        add_tile(numbers, products, (own[first:last], others), ends, weights, (values, sums), out[first:last])


@compiled
def add_by_lines(numbers, rows, own, prepared, memory, out):
    """Add the contributions of all support vectors to out[b], for all rows b: some panels with some rows, and so on.

    One call does the work of a task, because threads wait for each other where a call returns to Python.
    """
    products, n_together = memory[0], prepared.n_together
    for first in range(0, prepared.lines.shape[0], n_together):
        panels = prepared.lines[first : first + n_together]
        for begin in range(0, own.size, products.shape[0]):
            end = min(begin + products.shape[0], own.size)
            for p in range(panels.shape[0]):
                for b in range(begin, end):
                    row_with_lines(rows, np.uint64(b), panels[p : p + 1], products[np.uint64(b - begin)][p : p + 1])
            _add_panels(numbers, (begin, end, first), own, prepared, memory, out)


@compiled
def add_by_dense_lines(numbers, Z, own, prepared, memory, out):
    """Do the work of `add_by_lines` for the rows of an array, some of them at once."""
    products, n_together = memory[0], prepared.n_together
    for first in range(0, prepared.lines.shape[0], n_together):
        panels = prepared.lines[first : first + n_together]
        for begin in range(0, own.size, products.shape[0]):
            end = min(begin + products.shape[0], own.size)
            for b in range(begin, end, ROWS_TOGETHER):
                products_with_lines(Z, b, panels, products[b - begin : b - begin + ROWS_TOGETHER])
            _add_panels(numbers, (begin, end, first), own, prepared, memory, out)


@compiled
def _add_panels(numbers, here, own, prepared, memory, out):
    """Add the contributions of some panels, from here[2] on, to out[b], from products, for here[0] <= b < here[1]."""
    products, values, sums = memory
    begin, end, first = here
    norms, weights, n_together = prepared.norms, prepared.weights, prepared.n_together
    inner = products.reshape(products.shape[0], n_together * LANES)
    start, stop = first * LANES, min((first + n_together) * LANES, norms.size)
    ends = start, min(stop, weights.lines.shape[1])
    add_tile(numbers, inner, (own[begin:end], norms[start:stop]), ends, weights, (values, sums), out[begin:end])
