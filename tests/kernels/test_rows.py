"""Blocks of kernel rows: against scikit-learn, into any slots, of subsets, with large norms, and what is refused."""

import numpy as np
import pytest
from scipy.sparse import csc_array, csr_array
from sklearn.metrics.pairwise import pairwise_kernels

from widemargin.kernels.functions import Kernel
from widemargin.kernels.rows import KernelRows, MatrixPart

KERNELS = {
    "linear": Kernel("linear"),
    "poly": Kernel("poly", gamma=0.2, coef0=1.0, degree=3),
    "rbf": Kernel("rbf", gamma=0.3),
    "sigmoid": Kernel("sigmoid", gamma=0.1, coef0=0.2),
}
EACH_KERNEL = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
TYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
ACCURACY = {np.float32: 1e-4, np.float64: 1e-12}


def numbers_of(kernel):
    return {"gamma": kernel.gamma, "coef0": kernel.coef0, "degree": kernel.degree}


def matrix_of(kernel, X):
    X = np.asarray(X, dtype=np.float64)
    return pairwise_kernels(X, metric=kernel.name, filter_params=True, **numbers_of(kernel))


def block(K, rows, chosen=None):
    """Return K(rows, chosen) by `fill`, into slots in reverse order of memory that holds NaN."""
    columns = K.columns(chosen)
    out = np.full((len(rows) + 3, columns.n_columns), np.nan, K.dtype)
    slots = np.arange(len(rows))[::-1] + 2
    K.fill(np.asarray(rows), columns, out, slots)
    assert np.isnan(np.delete(out, slots, axis=0)).all()
    return out[slots]


@pytest.fixture
def X(rng):
    return np.where(rng.random((140, 12)) < 0.4, rng.standard_normal((140, 12)), 0.0)


@TYPES
@EACH_KERNEL
@pytest.mark.parametrize("container", [np.asarray, csr_array, csc_array], ids=["dense", "csr", "csc"])
def test_all_rows_are_the_kernel_matrix(container, kernel, dtype, X):
    K = KernelRows(kernel, container(X), dtype=dtype)
    assert (K.n_rows, K.dtype) == (140, dtype)
    expected = matrix_of(kernel, X)
    np.testing.assert_allclose(block(K, np.arange(140)), expected, rtol=ACCURACY[dtype], atol=ACCURACY[dtype])
    np.testing.assert_allclose(K.diagonal, expected.diagonal(), rtol=1e-6 if dtype == np.float32 else 1e-12)
    assert K.diagonal.dtype == np.float64


@EACH_KERNEL
@pytest.mark.parametrize("density", [0.05, 0.9])
def test_any_rows_and_columns_go_into_any_slots(density, kernel, rng):
    X = np.where(rng.random((90, 20)) < density, rng.standard_normal((90, 20)), 0.0)
    rows, chosen = rng.permutation(90)[:35], rng.permutation(90)[:50]
    found = block(KernelRows(kernel, X, dtype=np.float64), rows, chosen)
    np.testing.assert_allclose(found, matrix_of(kernel, X)[np.ix_(rows, chosen)], atol=1e-12)


@EACH_KERNEL
@pytest.mark.parametrize("container", [np.asarray, csr_array], ids=["dense", "csr"])
def test_a_subset_is_the_kernel_of_those_rows_alone(container, kernel, X, rng):
    subset = rng.permutation(140)[:30]
    K = KernelRows(kernel, container(X), subset=subset, dtype=np.float64)
    assert K.n_rows == len(K.diagonal) == 30
    expected = matrix_of(kernel, X)[np.ix_(subset, subset)]
    np.testing.assert_allclose(block(K, np.arange(30)), expected, atol=1e-12)
    np.testing.assert_allclose(block(K, [3, 4], [29, 0, 7]), expected[[3, 4]][:, [29, 0, 7]], atol=1e-12)


@pytest.mark.parametrize("kind", ["precomputed", "precomputed-sparse", "callable", "callable-sparse"])
@pytest.mark.parametrize("subset", [None, np.array([5, 80, 3, 41, 9])], ids=["all", "subset"])
def test_matrices_and_functions_serve_as_kernels(kind, subset, X):
    expected = matrix_of(KERNELS["poly"], X)
    function = lambda A, B: pairwise_kernels(A, B, metric="poly", gamma=0.2, coef0=1.0, degree=3)  # noqa: E731
    kernel, given = {
        "precomputed": (Kernel("precomputed"), expected),
        "precomputed-sparse": (Kernel("precomputed"), csr_array(expected)),
        "callable": (Kernel("callable", function=function), X),
        "callable-sparse": (Kernel("callable", function=function), csr_array(X)),
    }[kind]
    K = KernelRows(kernel, given, subset=subset, dtype=np.float64)
    if subset is not None:
        expected = expected[np.ix_(subset, subset)]
    np.testing.assert_allclose(block(K, np.arange(K.n_rows)), expected, rtol=1e-12)
    np.testing.assert_allclose(block(K, [2, 0], [4, 1]), expected[[2, 0]][:, [4, 1]], rtol=1e-12)
    np.testing.assert_allclose(K.diagonal, expected.diagonal(), rtol=1e-12)


@pytest.mark.parametrize("given", [np.float32, np.float64], ids=["f32-data", "f64-data"])
def test_rbf_far_from_the_origin_keeps_its_digits(given, rng):
    # |x|² is 1e9 here and distances are about 3: without a move to the mean, single precision would know nothing.
    X = (rng.standard_normal((80, 6)) + 1e4).astype(given)
    expected = matrix_of(KERNELS["rbf"], X)
    assert np.abs(block(KernelRows(KERNELS["rbf"], X, dtype=np.float32), np.arange(80)) - expected).max() < 1e-5


def test_sparse_rbf_with_large_norms_keeps_its_digits(rng):
    # Sparse rows cannot be moved: the products have to be double.
    X = np.zeros((80, 60))
    X[:, 0] = 1e3 + rng.standard_normal(80)
    X[:, 1:3] = rng.standard_normal((80, 2))
    expected = matrix_of(KERNELS["rbf"], X)
    K = KernelRows(KERNELS["rbf"], csr_array(X), dtype=np.float32)
    assert K.dtype == np.float32
    assert np.abs(block(K, np.arange(80)) - expected).max() < 1e-5


def test_two_far_clusters_which_no_move_helps_keep_their_digits(rng):
    X = rng.standard_normal((80, 6)) + np.where(np.arange(80) % 2, 1e3, -1e3)[:, None]
    expected = matrix_of(KERNELS["rbf"], X)
    assert np.abs(block(KernelRows(KERNELS["rbf"], X, dtype=np.float32), np.arange(80)) - expected).max() < 1e-5


@pytest.mark.parametrize("gamma", [1e-3, 1.0, 30.0, 1e4])
def test_rbf_in_single_precision_is_exact_to_five_digits_whatever_gamma(gamma, rng):
    kernel, X = Kernel("rbf", gamma=gamma), 0.3 * rng.standard_normal((100, 4))
    found = block(KernelRows(kernel, X, dtype=np.float32), np.arange(100))
    assert np.abs(found - matrix_of(kernel, X)).max() < 2e-5


@pytest.mark.parametrize("name", ["linear", "poly"])
def test_values_too_large_for_single_precision_are_kept_in_double(name, rng):
    X = 1e20 * rng.standard_normal((10, 3))
    kernel = Kernel(name, gamma=1.0, degree=3)
    K = KernelRows(kernel, X, dtype=np.float32)
    assert K.dtype == np.float64
    np.testing.assert_allclose(block(K, np.arange(10)), matrix_of(kernel, X), rtol=1e-9)


@pytest.mark.parametrize("kind", ["precomputed", "callable"])
def test_given_values_too_large_for_single_precision_are_kept_in_double(kind):
    given = np.diag([1e39, 2e39, 3e39])
    kernel, X = (Kernel("precomputed"), given)
    if kind == "callable":
        kernel, X = Kernel("callable", function=lambda A, B: (1e39 * A) @ B.T), np.diag([1.0, 2.0**0.5, 3.0**0.5])
    found = block(KernelRows(kernel, X, dtype=np.float32), np.arange(3))
    np.testing.assert_allclose(found, given, rtol=1e-6)


def test_large_values_off_the_diagonal_count_as_well():
    # x and −x with coef0 = −|x|²: the diagonal is 0, and (−2 |x|²)³ = −6e45 does not fit into single precision.
    K = KernelRows(Kernel("poly", gamma=1.0, coef0=-9e14, degree=3), np.array([[3e7], [-3e7]]), dtype=np.float32)
    np.testing.assert_allclose(block(K, [0])[0, 1], (-1.8e15) ** 3, rtol=1e-6)


@pytest.mark.parametrize("degree", [3, 100])
def test_a_kernel_that_overflows_names_its_parameters_and_the_way_out(degree):
    X = np.array([[1.0], [1e150], [1.0]])
    says = (
        rf"kernel='poly' overflows: .* reach 1e\+300.* lower degree \(now {degree}\), gamma \(1\) .* scale the features"
    )
    with pytest.raises(ValueError, match=says):
        KernelRows(Kernel("poly", degree=degree), X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_linear_rows_whose_norm_overflows_are_refused(dtype):
    with pytest.raises(ValueError, match=r"kernel='linear' overflows: .* reach inf\. .* scale the features"):
        KernelRows(Kernel("linear"), np.array([[1.0], [2.0], [1e200]]), dtype=dtype)


def test_a_precomputed_matrix_must_be_square():
    with pytest.raises(ValueError, match=r"precomputed kernel matrix must be square, got shape \(3, 4\)"):
        KernelRows(Kernel("precomputed"), np.ones((3, 4)))


def test_a_precomputed_diagonal_must_be_finite():
    with pytest.raises(ValueError, match=r"K\(x, x\) of row 1 is nan"):
        KernelRows(Kernel("precomputed"), np.array([[1.0, 0.0], [0.0, np.nan]]))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda A, B: np.zeros((len(A), len(B) + 1)), r"must return shape \(1, 1\), got \(1, 2\)"),
        (lambda A, B: np.zeros(len(A)), r"must return shape \(1, 1\), got \(1,\)"),
        (lambda A, B: np.full((len(A), len(B)), np.nan), "returned NaN or infinity"),
        (lambda A, B: np.full((len(A), len(B)), -np.inf), "returned NaN or infinity"),
    ],
)
def test_a_function_that_returns_something_else_is_refused(function, message):
    with pytest.raises(ValueError, match=message):
        KernelRows(Kernel("callable", function=function), np.ones((4, 2)))


def test_a_function_whose_later_values_are_wrong_is_refused_when_they_come():
    def function(A, B):
        return A @ B.T if len(B) == 1 else np.full((len(A), len(B)), np.nan)

    K = KernelRows(Kernel("callable", function=function), np.ones((4, 2)))
    with pytest.raises(ValueError, match="returned NaN or infinity"):
        block(K, [0, 1])


@TYPES
@pytest.mark.parametrize("density", [0.05, 0.9])
def test_the_number_of_threads_changes_no_bit(density, dtype, rng):
    X = np.where(rng.random((9000, 16)) < density, rng.standard_normal((9000, 16)), 0.0)
    rows = rng.permutation(9000)[:150]
    one, two = (block(KernelRows(KERNELS["rbf"], X, dtype=dtype, n_jobs=n), rows) for n in (1, 2))
    assert one.tobytes() == two.tobytes()
    some = rng.integers(0, 9000, 200)
    exact = np.exp(-0.3 * ((X[rows[:5], None] - X[some]) ** 2).sum(axis=-1))
    np.testing.assert_allclose(one[:5][:, some], exact, atol=1e-5)


@pytest.mark.parametrize("container", [np.asarray, csr_array], ids=["dense", "csr"])
def test_the_callers_data_are_neither_changed_nor_needed_writable(container, X):
    given = container(X)
    (given if container is np.asarray else given.data).flags.writeable = False
    before = X.copy()
    for kernel in KERNELS.values():
        block(KernelRows(kernel, given, dtype=np.float64), np.arange(40))
    assert np.array_equal(given if container is np.asarray else given.toarray(), before)


def test_a_part_of_a_matrix_is_the_kernel_of_those_rows_and_copied_when_it_is_needed(X, rng):
    whole = KernelRows(KERNELS["poly"], X, dtype=np.float64)
    values, places = whole.whole(), rng.permutation(140)[:50]
    part = MatrixPart(values, places, whole.bound, whole.diagonal, None)
    expected = values[np.ix_(places, places)]
    np.testing.assert_array_equal(block(part, np.arange(0, 50, 3)), expected[::3])
    np.testing.assert_allclose(part.diagonal, expected.diagonal(), rtol=1e-12)
    np.testing.assert_array_equal(part.held, expected)
    assert part.held is part.held
    assert (part.n_rows, part.bound, part.cheap) == (50, whole.bound, True)
    np.testing.assert_array_equal(part.restricted(np.array([1, 4])).whole(), expected[np.ix_([1, 4], [1, 4])])


def test_one_row_is_a_kernel_matrix_too():
    K = KernelRows(KERNELS["rbf"], np.array([[3.0, 4.0]]), dtype=np.float64)
    assert block(K, [0]).tolist() == [[1.0]]


@TYPES
@pytest.mark.parametrize("container", [np.asarray, csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("kernel", [KERNELS["poly"], KERNELS["rbf"]], ids=["poly", "rbf"])
def test_many_rows_with_many_zeros_are_the_kernel_matrix(kernel, container, dtype, rng):
    X = np.where(rng.random((2600, 20)) < 0.2, rng.standard_normal((2600, 20)), 0.0)
    K, rows = KernelRows(kernel, container(X), dtype=dtype), np.array([3, 2599, 40])
    assert not K.has_single_rows  # they are in CSR format
    expected = pairwise_kernels(X[rows], X, metric=kernel.name, filter_params=True, **numbers_of(kernel))
    np.testing.assert_allclose(block(K, rows), expected, rtol=ACCURACY[dtype], atol=ACCURACY[dtype])
    sums = np.zeros(2600)
    K.add(rows, np.array([1.0, -2.0, 3.0]), K.columns(), sums)
    np.testing.assert_allclose(sums, np.array([1.0, -2.0, 3.0]) @ expected, rtol=1e-3, atol=10 * ACCURACY[dtype])


@TYPES
@pytest.mark.parametrize("distance", [30.0, 1e5], ids=["beyond-single-precision", "beyond-double-precision"])
def test_many_rows_with_many_zeros_keep_their_digits_far_from_the_origin(distance, dtype, rng):
    X = np.where(rng.random((2600, 20)) < 0.2, rng.standard_normal((2600, 20)), 0.0)
    X[:, 0] = distance
    distances = ((X[:2, np.newaxis] - X) ** 2).sum(axis=2)
    K = KernelRows(KERNELS["rbf"], X, dtype=dtype)
    np.testing.assert_allclose(block(K, [0, 1]), np.exp(-0.3 * distances), atol=3e-6 if dtype == np.float32 else 1e-12)
