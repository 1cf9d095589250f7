"""Functions on fewer vectors: projections and distances against explicit Gram matrices, and the greedy choice."""

from itertools import combinations

import numpy as np
import pytest
from scipy.sparse import csr_array

from widemargin.kernels import greedy_vectors
from widemargin.kernels.functions import Kernel
from widemargin.kernels.greedy_vectors import choose_vectors
from widemargin.kernels.reduced_expansion import (
    Expansions,
    inner_products,
    projected,
    rounding_of_distances,
    squared_distances,
    values_at,
)

PAIRS = tuple(((j - 1, i), (i, j)) for i, j in combinations(range(3), 2))
KERNELS = [Kernel("rbf", gamma=0.3), Kernel("poly", gamma=0.5, coef0=1.0, degree=3), Kernel("linear")]


def gram(kernel, A, B):
    """Return K(A, B) by its formula."""
    products = A @ B.T
    if kernel.name == "linear":
        return products
    if kernel.name == "poly":
        return (kernel.gamma * products + kernel.coef0) ** kernel.degree
    squares = (A**2).sum(axis=1)[:, np.newaxis] + (B**2).sum(axis=1) - 2.0 * products
    return np.exp(-kernel.gamma * squares)


def three_classes(kernel, sizes=(8, 5, 7), n_features=30, seed=0):
    random = np.random.default_rng(seed)
    vectors = random.normal(size=(sum(sizes), n_features)) / 3.0
    return Expansions(kernel, vectors, random.normal(size=(2, sum(sizes))), np.cumsum([0, *sizes]), PAIRS, 1)


def one_output(kernel, n=20, n_features=30, seed=0):
    random = np.random.default_rng(seed)
    vectors = random.normal(size=(n, n_features)) / 3.0
    return Expansions(kernel, vectors, random.normal(size=(1, n)), np.array([0, n]), (((0, 0),),), 1)


def shared_classes(kernel, seed=0):
    return three_classes(kernel, seed=seed).shared()


def coefficients_of(f, output):
    """Return the coefficients of all vectors in an output, zero where it has none."""
    full = np.zeros(f.n_vectors)
    for line, vectors in f.cells(output):
        full[vectors] = f.table[line, vectors]
    return full


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("make", [three_classes, one_output, shared_classes])
def test_values_norms_and_distances_are_those_of_the_gram_matrix(kernel, make):
    f, g = make(kernel), make(kernel, seed=1)
    values = values_at(f, g)
    K, cross, other = (gram(kernel, A, B) for A, B in ((f.vectors, f.vectors), (g.vectors, f.vectors),
                                                      (g.vectors, g.vectors)))  # fmt: skip
    norms, distances = (
        inner_products(values_at(f, f), f),
        squared_distances(inner_products(values_at(f, f), f), values, g),
    )
    for p in range(len(f.outputs)):
        c, b = coefficients_of(f, p), coefficients_of(g, p)
        for line, vectors in g.cells(p):
            np.testing.assert_allclose(values[line, vectors], (cross @ c)[vectors], rtol=1e-10, atol=1e-10)
        assert norms[p] == pytest.approx(c @ K @ c, rel=1e-10)
        assert distances[p] == pytest.approx(c @ K @ c - 2.0 * b @ cross @ c + b @ other @ b, rel=1e-10)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("make", [three_classes, one_output, shared_classes])
def test_a_projection_is_the_least_squares_solution_in_the_kernels_space(kernel, make):
    f = make(kernel)
    order = np.array([1, 4, 6, 9, 10, 14, 17])
    g = projected(f, values_at(f, f), order)
    K = gram(kernel, f.vectors, f.vectors)
    root = np.linalg.cholesky(K + 1e-13 * np.eye(len(K))).T
    for p in range(len(f.outputs)):
        mine = np.concatenate([vectors for _, vectors in f.cells(p, order)])
        b, *_ = np.linalg.lstsq(root[:, mine], root @ coefficients_of(f, p), rcond=None)
        places = np.searchsorted(order, mine)
        np.testing.assert_allclose(coefficients_of(g, p)[places], b, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_shared_vectors_are_the_same_functions_and_come_nearer_on_fewer(kernel):
    f = three_classes(kernel)
    g, order = f.shared(), np.array([1, 4, 9, 14, 17])
    assert [len(f.groups()), len(g.groups())] == [3, 1]
    for p in range(3):
        np.testing.assert_array_equal(coefficients_of(g, p), coefficients_of(f, p))
    values = values_at(f, g)
    np.testing.assert_allclose(values, values_at(g, g), rtol=1e-10, atol=1e-10)
    norms = inner_products(values, g)
    np.testing.assert_allclose(norms, inner_products(values_at(f, f), f), rtol=1e-10)
    distances = [
        squared_distances(norms, of_all[:, order], projected(each, of_all, order))
        for each, of_all in ((g, values), (f, values_at(f, f)))
    ]
    assert (distances[0] < distances[1]).all()


def test_sparse_vectors_give_the_same():
    f = three_classes(KERNELS[0])
    sparse = Expansions(f.kernel, csr_array(f.vectors), f.table, f.ends, f.outputs, 1)
    np.testing.assert_allclose(values_at(sparse, sparse), values_at(f, f), rtol=1e-12)
    order = np.array([0, 3, 9, 15])
    of_sparse, of_dense = (projected(each, values_at(each, each), order).table for each in (sparse, f))
    np.testing.assert_allclose(of_sparse, of_dense, rtol=1e-9)


@pytest.mark.parametrize("make", [three_classes, one_output, shared_classes])
@pytest.mark.parametrize("at_once", [1, 48])
def test_each_chosen_vector_is_the_one_that_reduces_the_distance_most(make, at_once, monkeypatch):
    monkeypatch.setattr(greedy_vectors, "_VECTORS_PER_ROUND", at_once)
    f = make(KERNELS[0])
    values = values_at(f, f)
    norms = inner_products(values, f)
    choice = choose_vectors(f, values, norms, 8)
    for n in range(8):
        before = np.sort(choice.order[:n])
        rest = [
            squared_distances(
                norms, values[:, np.sort([*before, i])], projected(f, values, np.sort([*before, i]))
            ).sum()
            for i in np.setdiff1d(np.arange(f.n_vectors), before)
        ]
        after = norms.sum() - choice.decrease[: n + 1].sum()
        assert after == pytest.approx(min(rest), rel=1e-9)


def test_all_vectors_of_a_pool_that_is_smaller_than_the_choice_are_found(monkeypatch):
    monkeypatch.setattr(greedy_vectors, "_POOL", 4)
    f = one_output(KERNELS[0], n=30)
    values = values_at(f, f)
    choice = choose_vectors(f, values, inner_products(values, f), 30)
    assert sorted(choice.order) == list(range(30))
    assert choice.decrease.sum() == pytest.approx(inner_products(values, f)[0], rel=1e-10)


def test_repeated_vectors_are_passed_over():
    f = one_output(KERNELS[0], n=12)
    twice = Expansions(f.kernel, np.vstack([f.vectors, f.vectors]), np.hstack([f.table, f.table]), np.array([0, 24]),
                       f.outputs, 1)  # fmt: skip
    values = values_at(twice, twice)
    choice = choose_vectors(twice, values, inner_products(values, twice), 24)
    assert sorted(choice.order % 12) == list(range(12))
    g = projected(twice, values, np.sort(choice.order))
    np.testing.assert_allclose(g.table[0], 2.0 * f.table[0, np.sort(choice.order) % 12], rtol=1e-8)


def test_a_linear_kernel_needs_as_many_vectors_as_features():
    f = one_output(KERNELS[2], n=40, n_features=5)
    values = values_at(f, f)
    choice = choose_vectors(f, values, inner_products(values, f), 40)
    assert len(choice.order) == 5


def test_few_candidates_are_evenly_spaced_and_factors_in_single_precision_choose_as_well(monkeypatch):
    f = one_output(KERNELS[0], n=200, n_features=4)
    values = values_at(f, f)
    norms = inner_products(values, f)
    best = norms[0] - choose_vectors(f, values, norms, 20).decrease.sum()
    monkeypatch.setattr(greedy_vectors, "_MAX_NUMBERS_IN_DOUBLE", 0)
    single = norms[0] - choose_vectors(f, values, norms, 20).decrease.sum()
    assert single == pytest.approx(best, rel=1e-2)
    monkeypatch.setattr(greedy_vectors, "_BYTES_OF_FACTORS", 4 * 20 * 100)
    assert set(choose_vectors(f, values, norms, 20).order) <= set(range(0, 200, 2))


def test_the_bound_of_rounding_covers_the_error_of_a_distance_that_is_zero():
    f = one_output(KERNELS[0], n=50)
    values = values_at(f, f)
    shuffled = np.random.default_rng(2).permutation(50)
    g = Expansions(f.kernel, f.vectors[shuffled], f.table[:, shuffled], f.ends, f.outputs, 1)
    apart = inner_products(values, f) - 2.0 * inner_products(values_at(f, g), g) + inner_products(values_at(g, g), g)
    bound = rounding_of_distances(f, g)
    assert abs(apart[0]) <= bound[0] < 1e-8
