"""Weighted sums of kernel values, against scikit-learn's kernel matrices."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.metrics.pairwise import pairwise_kernels

from widemargin.kernels.expansion import kernel_scores
from widemargin.kernels.functions import Kernel

KERNELS = {
    "linear": Kernel("linear"),
    "poly": Kernel("poly", gamma=0.2, coef0=1.0, degree=3),
    "rbf": Kernel("rbf", gamma=0.3),
    "sigmoid": Kernel("sigmoid", gamma=0.1, coef0=0.2),
    "callable": Kernel("callable", function=lambda A, B: pairwise_kernels(A, B, metric="laplacian", gamma=0.5)),
    "precomputed": Kernel("precomputed"),
}
EACH_KERNEL = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
TYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
ENDS = np.array([0, 10, 10, 70, 100])


def values_of(kernel, Z, X):
    """Return K(Z, X) in float64."""
    if kernel.name in {"callable", "precomputed"}:
        return KERNELS["callable"].function(Z.astype(np.float64), X.astype(np.float64))
    numbers = {"gamma": kernel.gamma, "coef0": kernel.coef0, "degree": kernel.degree}
    Z, X = Z.astype(np.float64), X.astype(np.float64)
    return pairwise_kernels(Z, X, metric=kernel.name, filter_params=True, **numbers)


def given(kernel, Z, X):
    """Return what stands for Z: the kernel values themselves if they are precomputed."""
    return values_of(kernel, Z, X).astype(Z.dtype) if kernel.name == "precomputed" else Z


def support_of(kernel, X):
    """Return what stands for the support vectors X: nothing if the kernel values are those of all of them."""
    return None if kernel.name == "precomputed" else X


@pytest.fixture
def case(rng):
    """100 support vectors, 333 rows, 3 outputs."""
    X, Z = rng.standard_normal((100, 8)), rng.standard_normal((333, 8))
    X[rng.random(X.shape) < 0.6] = 0.0
    return X, rng.standard_normal((3, 100)), Z


@TYPES
@EACH_KERNEL
def test_scores_are_sums_of_kernel_values(kernel, dtype, case):
    X, coefficients, Z = case
    X, Z = X.astype(dtype), Z.astype(dtype)
    found = kernel_scores(kernel, support_of(kernel, X), coefficients, given(kernel, Z, X))
    assert found.dtype == np.float64
    accuracy = {"rtol": 1e-4, "atol": 1e-3} if dtype == np.float32 else {"rtol": 1e-10, "atol": 1e-10}
    np.testing.assert_allclose(found, values_of(kernel, Z, X) @ coefficients.T, **accuracy)


@EACH_KERNEL
def test_blocks_of_support_vectors_are_summed_apart(kernel, case):
    X, coefficients, Z = case
    values = values_of(kernel, Z, X)
    found = kernel_scores(kernel, support_of(kernel, X), coefficients, given(kernel, Z, X), ends=ENDS)
    assert found.shape == (333, 4, 3)
    for block, (begin, end) in enumerate(pairwise(ENDS)):
        expected = values[:, begin:end] @ coefficients[:, begin:end].T
        np.testing.assert_allclose(found[:, block], expected, rtol=1e-10, atol=1e-10)


@TYPES
def test_support_vectors_have_some_columns_of_precomputed_values(dtype, rng):
    values, coefficients = rng.standard_normal((333, 250)).astype(dtype), rng.standard_normal((3, 100))
    columns = rng.permutation(250)[:100].astype(np.int32)
    for Z in (values, np.asfortranarray(values)):
        found = kernel_scores(KERNELS["precomputed"], columns, coefficients, Z, ends=ENDS, n_jobs=2)
        expected = values[:, columns].astype(np.float64) @ coefficients.T
        np.testing.assert_allclose(found.sum(axis=1), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("column", [-1, 5], ids=["negative", "too large"])
def test_a_column_that_precomputed_values_lack_is_refused(column):
    with pytest.raises(ValueError, match="kernel values that have 5"):
        kernel_scores(KERNELS["precomputed"], np.array([0, column]), np.ones((1, 2)), np.ones((3, 5)))


@pytest.mark.parametrize("kernel", [KERNELS[name] for name in ("linear", "poly", "rbf", "sigmoid")], ids=str)
@pytest.mark.parametrize("support", [np.asarray, csr_array], ids=["dense-support", "csr-support"])
@pytest.mark.parametrize("rows", [np.asarray, csr_array], ids=["dense-rows", "csr-rows"])
@pytest.mark.parametrize("density", [0.05, 0.6])
def test_support_and_rows_may_be_stored_differently(kernel, support, rows, density, rng):
    X, Z = (np.where(rng.random((n, 20)) < density, rng.standard_normal((n, 20)), 0.0) for n in (100, 150))
    coefficients = rng.standard_normal((2, 100))
    found = kernel_scores(kernel, support(X), coefficients, rows(Z), ends=ENDS)
    assert isinstance(found, np.ndarray)
    expected = values_of(kernel, Z, X) @ coefficients.T
    np.testing.assert_allclose(found.sum(axis=1), expected, rtol=1e-10, atol=1e-10)


@EACH_KERNEL
@pytest.mark.parametrize("ends", [None, np.array([0, 0])], ids=["no-ends", "one-block"])
def test_no_support_vectors_give_zeros_and_no_rows_give_nothing(kernel, ends, case):
    X, coefficients, Z = case
    none = kernel_scores(kernel, X[:0], coefficients[:, :0], Z[:, :0] if kernel.name == "precomputed" else Z, ends=ends)
    assert none.shape == ((333, 3) if ends is None else (333, 1, 3))
    assert not none.any()
    assert kernel_scores(kernel, support_of(kernel, X), coefficients, given(kernel, Z, X)[:0]).shape == (0, 3)


@pytest.mark.parametrize("ends", [None, ENDS], ids=["no-ends", "ends"])
@pytest.mark.parametrize("density", [0.05, 0.9])
def test_the_number_of_threads_changes_no_bit(density, ends, rng):
    Z, X = (np.where(rng.random((n, 12)) < density, rng.standard_normal((n, 12)), 0.0) for n in (2000, 100))
    coefficients = rng.standard_normal((2, 100))
    one, two = (kernel_scores(KERNELS["rbf"], X, coefficients, Z, ends=ends, n_jobs=n) for n in (1, 2))
    assert one.tobytes() == two.tobytes()


LEVELS = {
    "ones": [0.0, 1.0],
    "one-value": [0.0, 0.18257],
    "scale": [-1.0, -1 / 3, 1 / 3, 1.0],
    "far": [1e3, 1e3 + 1],
    "off-grid": [0.0, 1.0, 1.5, 1.7],
}


@TYPES
@pytest.mark.parametrize("levels", LEVELS.values(), ids=LEVELS.keys())
@pytest.mark.parametrize("container", [np.asarray, csr_array], ids=["dense", "csr"])
def test_rbf_scores_of_features_with_few_values(container, levels, dtype, rng):
    X, Z = (rng.choice(np.array(levels, dtype), (n, 30)) for n in (3000, 50))
    coefficients, ends = rng.standard_normal((2, 3000)), np.array([0, 1000, 2999, 3000])
    kernel = Kernel("rbf", gamma=0.1 / np.var(levels))
    found = kernel_scores(kernel, container(X), coefficients, container(Z), ends=ends)
    distances = ((Z[:, None].astype(np.float64) - X[None]) ** 2).sum(axis=2)
    values = np.exp(-kernel.gamma * distances)
    tolerance = 1e-12 if dtype == np.float64 else 1e-5
    tolerance *= 1e7 if container is csr_array and min(levels) > 1.0 else 1.0  # sparse rows are not centred
    for block, (begin, end) in enumerate(pairwise(ends)):
        expected = values[:, begin:end] @ coefficients[:, begin:end].T
        np.testing.assert_allclose(found[:, block], expected, atol=1000 * tolerance)


@pytest.mark.parametrize("container", [np.asarray, csr_array], ids=["dense", "csr"])
def test_the_number_of_threads_changes_no_bit_of_scores_from_a_table(container, rng):
    X, Z = (container(rng.choice([0.0, 1.0], (n, 12))) for n in (300, 4000))
    coefficients = rng.standard_normal((2, 300))
    one, two = (kernel_scores(KERNELS["rbf"], X, coefficients, Z, n_jobs=n) for n in (1, 2))
    assert one.tobytes() == two.tobytes()


def test_a_gamma_that_overflows_is_refused_for_zeros_and_ones_too(rng):
    X = rng.choice([0.0, 1.0], (40, 5))
    with pytest.raises(ValueError, match="overflows"):
        kernel_scores(Kernel("rbf", gamma=1e305), X, np.ones((1, 40)), X)


def test_more_support_vectors_than_a_tile_has_columns_leave_no_seam(rng):
    X, Z = rng.standard_normal((5000, 2)), rng.standard_normal((7, 2))
    coefficients, ends = rng.standard_normal((1, 5000)), np.array([0, 1000, 4999, 5000])
    values = values_of(KERNELS["rbf"], Z, X)
    found = kernel_scores(KERNELS["rbf"], X, coefficients, Z, ends=ends)
    for block, (begin, end) in enumerate(pairwise(ends)):
        expected = values[:, begin:end] @ coefficients[:, begin:end].T
        np.testing.assert_allclose(found[:, block], expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("n_features", [1, 64, 65])
@pytest.mark.parametrize("n_support", [1, 127, 129, 300])
@pytest.mark.parametrize("n_rows", [15, 16, 17, 19])
def test_rows_without_zeros_are_scored_for_any_numbers_of_rows_and_features(n_rows, n_support, n_features, rng):
    X, Z = 3.0 + rng.standard_normal((n_support, n_features)), 3.0 + rng.standard_normal((n_rows, n_features))
    coefficients, ends = rng.standard_normal((2, n_support)), np.array([0, n_support // 3, n_support])
    kernel = Kernel("rbf", gamma=1.0 / n_features)
    distances = ((Z[:, np.newaxis] - X) ** 2).sum(axis=2)
    values = np.exp(-kernel.gamma * distances)
    for rows in (Z, csr_array(Z)):
        found = kernel_scores(kernel, X, coefficients, rows, ends=ends)
        for block, (begin, end) in enumerate(pairwise(ends)):
            expected = values[:, begin:end] @ coefficients[:, begin:end].T
            np.testing.assert_allclose(found[:, block], expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("ends", [None, ENDS], ids=["one-block", "blocks"])
@pytest.mark.parametrize("order", "CF")
@EACH_KERNEL
def test_the_outcome_of_scores_is_that_of_all_scores_to_the_bit(kernel, order, ends, n_jobs, case):
    X, coefficients, _ = case
    Z = np.random.default_rng(1).standard_normal((3000, 8))
    arguments = kernel, support_of(kernel, X), coefficients, np.asarray(given(kernel, Z, X), order=order)
    scores = kernel_scores(*arguments, ends=ends)
    largest = kernel_scores(*arguments, ends=ends, n_jobs=n_jobs, outcome=lambda some: some.argmax(axis=-1))
    np.testing.assert_array_equal(largest, scores.argmax(axis=-1))
    kept = kernel_scores(*arguments, ends=ends, n_jobs=n_jobs, outcome=lambda some: some)
    np.testing.assert_array_equal(kept, scores)
    none = kernel_scores(kernel, X[:0], coefficients[:, :0], Z, ends=ends, outcome=lambda some: some + 1.0)
    assert none.shape == scores.shape
    assert (none == 1.0).all()


@TYPES
@pytest.mark.parametrize("container", [np.asarray, csr_array], ids=["dense", "csr"])
def test_rbf_scores_far_from_the_origin_keep_their_digits(container, dtype, rng):
    X, Z = np.zeros((60, 50), dtype), np.zeros((40, 50), dtype)
    for part in (X, Z):
        part[:, 0] = 1e3 + rng.standard_normal(len(part))
        part[:, 1:3] = rng.standard_normal((len(part), 2))
    coefficients = np.full((1, 60), 1.0)
    found = kernel_scores(KERNELS["rbf"], container(X), coefficients, container(Z))
    np.testing.assert_allclose(found, values_of(KERNELS["rbf"], Z, X) @ coefficients.T, rtol=1e-4, atol=1e-3)


@TYPES
@pytest.mark.parametrize("distance", [1.0, 1e6], ids=["near-the-origin", "far-away"])
def test_rbf_scores_of_rows_half_of_whose_values_are_zero_keep_their_digits(distance, dtype, rng):
    X, Z = rng.standard_normal((150, 12)), rng.standard_normal((300, 12))
    for part in (X, Z):
        part[rng.random(part.shape) < 0.5] = 0.0
        part[:, 0] = distance
    X, Z = X.astype(dtype), Z.astype(dtype)
    found = kernel_scores(KERNELS["rbf"], X, np.eye(150), Z)
    distances = ((Z[:, np.newaxis].astype(np.float64) - X) ** 2).sum(axis=2)
    accuracy = {"atol": 1e-5} if dtype == np.float32 else {"rtol": 1e-11}
    np.testing.assert_allclose(found, np.exp(-0.3 * distances), **accuracy)


def test_steep_rbf_scores_of_single_precision_data_keep_their_digits(rng):
    kernel = Kernel("rbf", gamma=2e3)
    Z = rng.standard_normal((200, 5)).astype(np.float32)
    X = (Z + 0.01 * rng.standard_normal((200, 5))).astype(np.float32)
    found = kernel_scores(kernel, X, np.eye(200), Z)
    np.testing.assert_allclose(found, values_of(kernel, Z, X), atol=1e-4)


def test_large_powers_of_single_precision_data_do_not_overflow():
    X = np.array([[1e6]], np.float32)
    found = kernel_scores(Kernel("poly", gamma=1.0, degree=4), X, np.ones((1, 1)), X)
    np.testing.assert_allclose(found, 1e48, rtol=1e-6)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda A, B: np.zeros((len(A), 1)), r"must return shape \(333, 100\), got \(333, 1\)"),
        (lambda A, B: np.full((len(A), len(B)), np.inf), "returned NaN or infinity"),
    ],
)
def test_a_function_that_returns_something_else_is_refused(function, message, case):
    with pytest.raises(ValueError, match=message):
        kernel_scores(Kernel("callable", function=function), *case)


def test_a_function_is_asked_for_a_bounded_number_of_values():
    sizes = []

    def function(A, B):
        sizes.append(len(A) * len(B))
        return np.ones((len(A), len(B)))

    found = kernel_scores(
        Kernel("callable", function=function), np.ones((3000, 1)), np.ones((1, 3000)), np.ones((3000, 1))
    )
    assert (found == 3000).all()
    assert sum(sizes) == 9_000_000
    assert max(sizes) <= 1 << 22


def test_rows_that_are_centred_a_few_at_a_time_have_the_scores_of_the_formula():
    random = np.random.default_rng(0)
    Z, support = (100.0 + random.standard_normal((n, 400)) for n in (3000, 30))  # so many that threads share the norms
    coefficients = random.standard_normal((2, 30))
    expected = pairwise_kernels(Z, support, metric="rbf", gamma=1e-3) @ coefficients.T
    one, two = (kernel_scores(Kernel("rbf", gamma=1e-3), support, coefficients, Z, n_jobs=n) for n in (1, 2))
    np.testing.assert_allclose(one, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(one, two)
    single = kernel_scores(Kernel("rbf", gamma=1e-3), support.astype(np.float32), coefficients, Z.astype(np.float32))
    np.testing.assert_allclose(single, expected, rtol=0, atol=1e-4)
