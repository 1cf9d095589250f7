"""Decision values of small machines without each support vector: those of NumPy and LAPACK for many."""

import numpy as np
import pytest

from widemargin.models.kernel.out_of_sample import BinaryMachine
from widemargin.models.kernel.spans import AT_BOUND, RIDGE, without_each
from widemargin.problems.left_out import SmallMachine, leave_each_out, memory_for


def machine_of(rng, n_rows, n_free, n_bound, dtype=np.float64, n_equal=0):
    """Return a BinaryMachine, its kernel matrix and its decision values; the first rows may be equal."""
    X = rng.standard_normal((n_rows, 3))
    X[:n_equal] = X[0]
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2)).astype(dtype)
    sign, cost = rng.choice([-1.0, 1.0], n_rows), rng.uniform(1.0, 2.0, n_rows)
    coef = np.zeros(n_rows)
    support = rng.permutation(n_rows)[: n_free + n_bound] if not n_equal else np.arange(n_free + n_bound)
    coef[support] = sign[support] * cost[support]
    coef[support[:n_free]] *= rng.uniform(0.1, 0.9, n_free)
    machine = BinaryMachine(np.arange(n_rows), sign, np.ones(n_rows), cost, coef, 0.3)
    return machine, K, coef @ K + 0.3


def left_out(machine, K, function=leave_each_out):
    """Return what the compiled call returns."""
    support, out = machine.support, np.empty(len(K))
    arrays = machine.sign, machine.cost, machine.coef, np.diagonal(K).astype(float), support.view(np.uint64)
    function(SmallMachine(*arrays, K[support], 0.3), AT_BOUND, RIDGE[K.dtype], memory_for(len(support)), out)
    return out


@pytest.mark.parametrize("is_compiled", [True, False])
@pytest.mark.parametrize(("n_free", "n_bound"), [(5, 4), (12, 0), (0, 6), (2, 1), (0, 2), (1, 0)])
def test_values_are_those_of_the_general_method(rng, n_free, n_bound, is_compiled):
    machine, K, f = machine_of(rng, 30, n_free, n_bound)
    function = leave_each_out if is_compiled else leave_each_out.py_func
    expected = without_each(machine, f, lambda rows, columns: K[np.ix_(rows, columns)], np.diagonal(K))
    np.testing.assert_allclose(left_out(machine, K, function), expected, atol=1e-8)


def test_single_precision_and_dependent_rows_are_as_accurate_as_by_the_general_method(rng):
    for dtype, n_equal, tolerance in ((np.float32, 0, 1e-3), (np.float64, 3, 1e-4), (np.float32, 3, 1e-2)):
        machine, K, f = machine_of(rng, 40, 10, 5, dtype, n_equal)
        expected = without_each(machine, f, lambda rows, columns, K=K: K[np.ix_(rows, columns)], np.diagonal(K))
        np.testing.assert_allclose(left_out(machine, K), expected, atol=tolerance)


def test_a_matrix_that_is_not_positive_definite_ends(rng):
    machine, K, _ = machine_of(rng, 20, 8, 4)
    K[np.ix_(machine.support, machine.support)] *= rng.choice([-1.0, 1.0], (12, 12))
    found = left_out(machine, K)
    assert np.isfinite(found).all()
