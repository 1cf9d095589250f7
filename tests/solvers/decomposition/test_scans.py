"""Which violations a working set takes: the largest, and of the others those that are largest when weighted."""

import numpy as np
import pytest

from widemargin.solvers.decomposition.scans import largest_violations


def test_without_weights_they_are_the_largest():
    gradients = np.array([3.0, -5.0, 1.0, np.inf, -2.0])
    assert sorted(largest_violations(gradients, 2.0, 2)) == [1, 4]
    assert sorted(largest_violations(gradients, 2.0, 9)) == [1, 2, 4]


def test_a_violation_of_small_weight_gives_way_unless_it_is_among_the_largest():
    gradients, weights = np.array([-9.0, -8.0, -7.0, -6.0, -5.9, -5.8]), np.array([0.5, 0.5, 0.5, 1.0, 1.0, 1.0])
    assert sorted(largest_violations(gradients, 0.0, 4, weights.take)) == [0, 3, 4, 5]
    assert sorted(largest_violations(gradients, 0.0, 1, weights.take)) == [0]


@pytest.mark.parametrize("count", [1, 4, 7, 20])
def test_none_is_taken_twice_and_nothing_that_does_not_violate(count, rng):
    gradients, weights = rng.standard_normal(12), rng.choice([0.7, 1.0], 12)
    gradients[3] = np.inf
    chosen = largest_violations(gradients, 0.3, count, weights.take)
    assert len(chosen) == len(set(chosen)) == min(count, np.count_nonzero(gradients < 0.3))
    assert (gradients[chosen] < 0.3).all()


@pytest.mark.parametrize("weigh", [None, np.ones(4).take], ids=["without", "with"])
def test_nothing_is_chosen_if_nothing_violates_and_large_numbers_overflow_in_silence(weigh):
    assert largest_violations(np.array([0.0, 1.0, np.inf, 3.0]), -np.inf, 3, weigh).size == 0
    assert largest_violations(np.full(4, -1.7e308), 1.7e308, 3, weigh).size == 3
