"""The interior-point method by a low-rank factor, on problems whose solution is known or can be checked."""

import numpy as np
import pytest

from widemargin.solvers.decomposition.interior_point import interior_point


def never():
    return False


def test_two_dual_variables_meet_at_their_minimum():
    V, row, E = np.eye(2), np.arange(2), np.ones((2, 1))
    bounds = np.full(2, -3.0), np.full(2, 3.0)
    x = interior_point(V, row, np.array([1.0, -1.0]), bounds, E, goal=1e-8, is_over=never)
    np.testing.assert_allclose(x, [-1.0, 1.0], atol=1e-6)


@pytest.mark.parametrize("n_groups", [1, 2])
def test_conditions_of_optimality_hold_with_two_dual_variables_for_each_row(n_groups, rng):
    V, row = rng.standard_normal((40, 5)), np.tile(np.arange(40), 2)
    F = np.concatenate([np.full(40, 0.1), np.full(40, -0.1)]) + np.tile(rng.standard_normal(40), 2)
    bounds = np.repeat([0.0, -7.0], 40), np.repeat([7.0, 0.0], 40)
    E = np.ones((80, 1)) if n_groups == 1 else np.eye(2)[row % 2]
    x = interior_point(V, row, F, bounds, E, goal=1e-6, is_over=never)
    assert (bounds[0] < x).all()
    assert (x < bounds[1]).all()
    np.testing.assert_allclose(x @ E, 0.0, atol=1e-6)
    gradient = F + (V @ ((x[:40] + x[40:]) @ V))[row]
    for members in E.T.astype(bool):
        low, high = (bound[members] for bound in bounds)
        can_rise, can_fall = x[members] < high - 1e-3, x[members] > low + 1e-3
        assert gradient[members][can_fall].max() - gradient[members][can_rise].min() < 1e-3


def test_dual_variables_whose_bounds_are_equal_do_not_change(rng):
    V, row, E = rng.standard_normal((6, 3)), np.arange(6), np.ones((6, 1))
    high = np.array([1.0, 0.0, 1.0, 1.0, 0.0, 1.0])
    x = interior_point(V, row, rng.standard_normal(6), (-high, high), E, goal=1e-6, is_over=never)
    assert x[1] == x[4] == 0.0
    assert np.count_nonzero(x) == 4
    nothing = interior_point(V, row, np.ones(6), (np.zeros(6), np.zeros(6)), E, goal=1e-6, is_over=never)
    assert not nothing.any()


def test_it_ends_when_the_time_is_over(rng):
    V, row, E = rng.standard_normal((6, 3)), np.arange(6), np.ones((6, 1))
    bounds = np.zeros(6), np.full(6, 2.0)
    x = interior_point(V, row, rng.standard_normal(6), bounds, E, goal=1e-6, is_over=lambda: True)
    assert (x == 1.0).all()  # the middle, where it begins
