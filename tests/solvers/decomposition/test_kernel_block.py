"""Blocks of working sets: those of the kernel matrix, whatever the previous block was and however many threads work."""

import numpy as np
import pytest

from widemargin.solvers.decomposition import kernel_block
from widemargin.solvers.decomposition.kernel_block import KernelBlock


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_blocks_are_those_of_the_matrix_after_any_others(n_jobs, rng, monkeypatch):
    monkeypatch.setattr(kernel_block, "_ENTRIES_WORTH_THREADS", 0)
    K = rng.random((60, 60))
    K += K.T
    block, columns = KernelBlock(25, 60, K.dtype), np.sort(rng.choice(60, 40, replace=False))
    for size in (25, 25, 7, 25, 1):
        slots = rng.permutation(60)
        stored = np.empty((60, 40))
        stored[slots] = K[:, columns]  # the rows of a cache, at the columns that it keeps
        chosen = np.sort(rng.choice(40, size, replace=False))
        found = block.take(stored, slots[columns[chosen]], chosen, columns[chosen], n_jobs)
        np.testing.assert_array_equal(found, K[np.ix_(columns[chosen], columns[chosen])])
