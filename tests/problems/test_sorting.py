"""Sorting: few scores and many, with ties, and scores that are equal in single precision."""

import numpy as np
import pytest

from widemargin.problems.sorting import Sorter


@pytest.mark.parametrize("n", [0, 1, 1000, 20_000, 100_003])
@pytest.mark.parametrize("kind", ["plain", "ties", "same in single precision", "wide", "zeros of both signs"])
def test_scores_are_sorted(kind, n, rng):
    s = rng.standard_normal(n)
    s = {
        "plain": s,
        "ties": np.round(s, 2),
        "same in single precision": 1.0 + 1e-12 * s,
        "wide": np.sign(s) * 10.0 ** (30 * s),
        "zeros of both signs": np.where(s > 1, s, np.where(s > 0, 0.0, -0.0)),
    }[kind]
    sorter = Sorter(n)
    for scores in (s, -s):  # in the same memory
        order, in_order = sorter.sort(scores)
        np.testing.assert_array_equal(np.sort(order), np.arange(n))
        np.testing.assert_array_equal(scores[order], np.sort(scores))
        np.testing.assert_array_equal(in_order, np.sort(scores))
