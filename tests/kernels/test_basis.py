"""The basis of a kernel machine: its factor, the map of features, the choice of points, and blocks of kernel values."""

from typing import get_args

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.metrics.pairwise import rbf_kernel

from widemargin.data.blocks.row_blocks import RowBlocks
from widemargin.data.blocks.streamed import StreamedMatrix
from widemargin.kernels.basis import Basis
from widemargin.kernels.basis_choice import METHODS, choose_points, random_rows
from widemargin.kernels.functions import Kernel
from widemargin.kernels.values import KernelValues, kernel_blocks
from widemargin.models.argument_types import BasisChoice

KERNELS = [Kernel("rbf", gamma=0.3), Kernel("poly", gamma=0.5, coef0=1.0, degree=2), Kernel("linear")]


def points(n_rows, n_features=4, seed=0):
    return np.random.default_rng(seed).standard_normal((n_rows, n_features))


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
class TestBasis:
    def test_the_factor_is_that_of_the_kernel_matrix(self, kernel):
        basis = Basis.of(kernel, points(12))
        K = KernelValues(kernel, basis.vectors, np.float64).of(basis.vectors)
        np.testing.assert_allclose(basis.factor @ basis.factor.T, K, rtol=1e-10, atol=1e-12)

    def test_dependent_points_are_left_out(self, kernel):
        X = points(30)
        twice = Basis.of(kernel, np.concatenate([X, X[:10]]))
        assert len(twice) == len(Basis.of(kernel, X))
        assert len(twice) == min(30, {"rbf": 30, "poly": 15, "linear": 4}[kernel.name])  # the dimension of the space

    def test_an_extension_keeps_the_points_and_their_order(self, kernel):
        X = points(20)
        first = Basis.of(kernel, X[:3])
        larger = first.extended(X[:8])
        np.testing.assert_array_equal(larger.vectors[:3], first.vectors)
        np.testing.assert_array_equal(larger.factor[:3, :3], first.factor)
        whole = Basis.of(kernel, X[:8])
        assert len(larger) == len(whole)

    def test_the_map_acts_as_the_matrix_of_features(self, kernel):
        X, random = points(50), np.random.default_rng(1)
        basis = Basis.of(kernel, X[:9])
        values = KernelValues(kernel, basis.vectors, np.float64)
        features = np.linalg.solve(basis.factor, values.of(X).T).T
        how = basis.map(values.bound(np.array([np.square(X).sum(axis=1).max()])))
        np.testing.assert_allclose(how.features(values.of(X)), features, rtol=1e-9, atol=1e-11)
        with_constant = np.column_stack([features, np.full(50, 2.0)])
        for constant, Z in ((0.0, features), (2.0, with_constant)):
            matrix = StreamedMatrix(kernel_blocks(X, values), constant, np.inf, how)
            w, q = random.standard_normal(Z.shape[1]), random.random(50)
            np.testing.assert_allclose(matrix.scores(w), Z @ w, rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(matrix.combine(q), Z.T @ q, rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(np.tril(matrix.gram(q)), np.tril((Z.T * q) @ Z), rtol=1e-8, atol=1e-8)

    def test_weights_and_coefficients_are_converted_both_ways(self, kernel):
        basis = Basis.of(kernel, points(4))
        how, coef = basis.map(1.0), np.arange(2.0 * len(basis)).reshape(2, -1)
        w, intercept = how.weights_of_scaled(coef, np.array([1.0, 2.0]))
        again, same = how.weights_of_data(w, intercept)
        np.testing.assert_allclose(again, coef, rtol=1e-9, atol=1e-9)
        np.testing.assert_array_equal(same, [1.0, 2.0])
        K = KernelValues(kernel, basis.vectors, np.float64).of(basis.vectors)
        np.testing.assert_allclose(np.square(w).sum(axis=1), np.einsum("ij,jk,ik->i", coef, K, coef), rtol=1e-9)


def test_norms_of_features_are_within_the_bound():
    kernel, X = KERNELS[0], points(300)
    basis = Basis.of(kernel, X[:40])
    values = KernelValues(kernel, basis.vectors, np.float64)
    how = basis.map(values.bound(np.array([np.square(X).sum(axis=1).max()])))
    features = how.features(values.of(X))
    assert np.square(features).sum(axis=1).max() <= 1.0 + 1e-9  # K(x, x)
    assert how.norm_bound >= np.square(features).sum(axis=1).max()
    assert np.square(features).sum(axis=1).max() <= how.largest_square < 1.1  # although the other bound is
    assert how.norm_bound > 1e3


def test_norms_of_features_of_a_kernel_that_is_not_definite_have_the_bound_of_their_rounding():
    basis = Basis.of(Kernel("sigmoid", gamma=0.1, coef0=-0.5), points(20))
    how = basis.map(1.0)
    assert how.largest_square == how.norm_bound


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kernel_values_are_those_of_scikit_learn_for_any_storage(dtype):
    X, B = points(3000, seed=1).astype(dtype), points(70, seed=2).astype(dtype)
    expected = rbf_kernel(X, B, gamma=0.3)
    for rows in (X, csr_array(X)):
        for vectors in (B, csr_array(B)):
            found = KernelValues(KERNELS[0], vectors, dtype).of(rows, n_jobs=2)
            assert found.dtype == dtype
            np.testing.assert_allclose(found, expected, rtol=0, atol=3e-6 if dtype == np.float32 else 1e-12)


def test_blocks_of_kernel_values_are_the_same_from_arrays_and_files():
    X = points(40_000, 3).astype(np.float32)
    values = KernelValues(Kernel("rbf", gamma=1.0), X[:700], np.float32)
    from_array, from_blocks = kernel_blocks(X, values), kernel_blocks(RowBlocks.of_array(X), values)
    assert from_blocks.n_blocks > RowBlocks.of_array(X).n_blocks  # a block of rows gives several of kernel values
    np.testing.assert_allclose(from_array.to_memory(), from_blocks.to_memory(), rtol=0, atol=1e-6)
    assert from_array.shape == (40_000, 700)


class TestChoice:
    def test_the_parameter_takes_the_methods_that_there_are(self):
        assert set(get_args(BasisChoice)) == {"auto", *METHODS}

    @pytest.mark.parametrize("method", METHODS)
    def test_points_are_as_many_as_asked_for_and_reproducible(self, method):
        X = points(500)
        chosen = [choose_points(X, 25, method, KERNELS[0], np.random.default_rng(3)) for _ in range(2)]
        assert chosen[0].shape == (25, 4)
        np.testing.assert_array_equal(*chosen)

    @pytest.mark.parametrize("method", ["uniform", "leverage", "greedy"])
    def test_points_are_rows(self, method):
        X = points(300)
        chosen = choose_points(X, 20, method, KERNELS[0], np.random.default_rng(0))
        assert {tuple(row) for row in chosen} <= {tuple(row) for row in X}

    @pytest.mark.parametrize("method", METHODS)
    def test_few_rows_are_all_taken(self, method):
        X = points(10)
        chosen = choose_points(X, 25, method, KERNELS[0], np.random.default_rng(0))
        np.testing.assert_array_equal(np.sort(chosen, axis=0), np.sort(X, axis=0))

    @pytest.mark.parametrize("method", METHODS)
    def test_rows_that_are_all_equal_give_a_point(self, method):
        X = np.ones((100, 2))
        chosen = choose_points(X, 5, method, KERNELS[0], np.random.default_rng(0))
        assert len(Basis.of(KERNELS[0], chosen)) == 1

    def test_greedy_points_are_farther_from_each_other_than_random_ones(self):
        X = points(2000)

        def distance_of_rest(method):
            basis = Basis.of(KERNELS[0], choose_points(X, 30, method, KERNELS[0], np.random.default_rng(0)))
            features = basis.map(1.0).features(KernelValues(KERNELS[0], basis.vectors, np.float64).of(X))
            return float((1.0 - np.square(features).sum(axis=1)).max())

        assert distance_of_rest("greedy") < distance_of_rest("uniform")

    def test_random_rows_of_blocks_are_those_of_the_array(self):
        X = points(40_000, 2)
        chosen = [random_rows(rows, 50, np.random.default_rng(0)) for rows in (X, RowBlocks.of_array(X))]
        np.testing.assert_array_equal(*chosen)
