"""Blocks of working sets: those of the kernel matrix, whatever the previous block was and however many threads work."""

import numpy as np
import pytest

from widemargin.solvers.decomposition import kernel_block
from widemargin.solvers.decomposition.kernel_block import KernelBlock


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("n_groups", [1, 2])
def test_blocks_are_those_of_the_matrix_after_any_others(n_groups, n_jobs, rng, monkeypatch):
    monkeypatch.setattr(kernel_block, "_ENTRIES_WORTH_THREADS", 0)
    K = rng.random((60, 60))
    K += K.T
    block, columns = KernelBlock(25, 60, K.dtype), np.sort(rng.choice(60, 40, replace=False))
    for size in (25, 25, 7, 25, 1):
        slots = rng.permutation(60)
        stored = np.empty((60, 40))
        stored[slots] = K[:, columns]  # the rows of a cache, at the columns that it keeps
        chosen = np.sort(rng.choice(40, size, replace=False))
        chosen = chosen[block.arrange(columns[chosen], np.linspace(0, size, n_groups + 1).astype(int))]
        found = block.take(stored, slots[columns[chosen]], chosen, columns[chosen], n_jobs)
        np.testing.assert_array_equal(found[:size, :size], K[np.ix_(columns[chosen], columns[chosen])])


def test_rows_that_remain_keep_their_places_unless_these_are_of_another_group():
    K, block = np.eye(30), KernelBlock(6, 30, np.float64)
    first, no_groups, two_groups = np.array([3, 5, 7, 9, 12, 15]), np.array([0, 6]), np.array([0, 2, 6])
    block.arrange(first, no_groups)
    block.take(K, first, first, first)
    rows = np.array([1, 7, 5, 9, 11, 15])
    np.testing.assert_array_equal(rows[block.arrange(rows, no_groups)], [1, 5, 7, 9, 11, 15])
    np.testing.assert_array_equal(rows[block.arrange(rows, two_groups)], [1, 7, 5, 9, 11, 15])


def test_a_row_of_two_dual_variables_has_two_places(rng):
    K, block = rng.random((30, 30)), KernelBlock(4, 30, np.float64)
    K += K.T
    for rows in (np.array([2, 4, 6, 8]), np.array([4, 8, 4, 9]), np.array([9, 4, 4, 1])):
        rows = rows[block.arrange(rows, np.array([0, 4]))]
        np.testing.assert_array_equal(block.take(K, rows, rows, rows)[:4, :4], K[np.ix_(rows, rows)])
