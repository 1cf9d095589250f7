"""Ranges do what their formulas say, to the bit where a limit is promised, however rows are stored or cut."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import coo_array, csc_array, csr_array, csr_matrix, issparse
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from widemargin.data import scaling
from widemargin.data.scaling import METHODS, FeatureRanges, FeatureStatistics, LabelRange, learn_ranges

DTYPES = [np.float64, np.float32]


@pytest.fixture
def X(rng):
    """60 rows, 8 features: mixed signs, all positive, all negative, sparse, one without any, two constant ones."""
    X = rng.standard_normal((60, 8)) * [1, 5, 100, 0.01, 1, 1, 1, 1]
    X[:, 1] = np.abs(X[:, 1]) + 1.0
    X[:, 2] = -np.abs(X[:, 2]) - 1.0
    X[:, 3:5] *= rng.random((60, 2)) < 0.3
    X[:, 5], X[:, 6] = 0.0, 0.1
    X[:, 7] = np.abs(X[:, 7]) * (rng.random(60) < 0.2)
    return X


def dense(X):
    return X.toarray() if issparse(X) else X


# The formulas


def test_range_is_sklearn_s_min_max_on_features_that_vary(X):
    varying = X.min(axis=0) != X.max(axis=0)
    expected = np.where(varying, MinMaxScaler((-0.3, 2)).fit_transform(X), 0.0)
    np.testing.assert_allclose(learn_ranges(X, lower=-0.3, upper=2).apply(X), expected, atol=1e-15)


def test_magnitude_is_sklearn_s_max_abs_times_the_limit(X):
    expected = 3 * MaxAbsScaler().fit_transform(X)
    expected[:, 6] = 0.0  # never varies
    np.testing.assert_allclose(
        learn_ranges(X, method="magnitude", lower=-3, upper=3).apply(X), expected, rtol=1e-15, atol=0
    )


@pytest.mark.parametrize("centered", [False, True])
def test_variance_is_sklearn_s_standard_scaler(X, centered):
    X[:, 6] = 0.0  # of a constant, scikit-learn keeps the value
    ranges = learn_ranges(X, method="standard" if centered else "variance")
    np.testing.assert_allclose(ranges.apply(X), StandardScaler(with_mean=centered).fit_transform(X), atol=1e-13)


def test_variance_has_the_number_of_rows_as_denominator():
    ranges = learn_ranges(np.array([[0.0], [2.0], [4.0], [2.0]]), method="variance")
    np.testing.assert_allclose(ranges.high, [np.sqrt(2.0)], rtol=1e-15)
    np.testing.assert_array_equal(ranges.low, -ranges.high)


def test_moments_are_exact_to_rounding_far_from_zero(rng):
    X = 1e9 + rng.random((1000, 1))
    ranges = learn_ranges(X, method="variance")
    np.testing.assert_allclose(ranges.high, [np.std(X - 1e9)], rtol=1e-9)


def test_a_feature_that_never_varies_is_left_out_by_every_method(X):
    for method in METHODS:
        ranges = learn_ranges(X, method=method)
        assert ranges.kept.tolist() == [0, 1, 2, 3, 4, 7]
        assert not ranges.apply(X)[:, 5:7].any()


def test_absent_entries_are_zeros_like_any_other():
    X = csr_array([[2.0, -3.0, 4.0], [0.0, 0.0, 5.0], [1.0, -1.0, 6.0]])
    X.eliminate_zeros()
    ranges = learn_ranges(X)
    assert ranges.low.tolist() == [0, -3, 4]
    assert ranges.high.tolist() == [2, 0, 6]


def test_written_zeros_change_nothing():
    with_zeros = csr_array((np.array([0.0, 2.0, -0.0, 3.0]), np.array([0, 1, 0, 1]), np.array([0, 2, 4])), shape=(2, 2))
    ranges, other = learn_ranges(with_zeros), learn_ranges(with_zeros.toarray())
    assert ranges.low.tolist() == other.low.tolist() == [0, 2]
    assert ranges.high.tolist() == other.high.tolist() == [0, 3]


@given(
    arrays(np.float64, st.tuples(st.integers(2, 6), st.integers(1, 3)), elements=st.floats(-1e300, 1e300)),
    st.floats(-1e3, 1e3),
    st.floats(1e-3, 1e3),
)
def test_the_ends_of_a_range_go_to_the_limits_to_the_bit(X, lower, width):
    ranges = learn_ranges(X, lower=lower, upper=lower + width)
    scaled = ranges.apply(X)[:, ranges.kept]
    assert (scaled.min(axis=0) == lower).all()
    assert (scaled.max(axis=0) == lower + width).all()


@given(arrays(np.float64, (4, 2), elements=st.floats(-1e200, 1e200)), st.floats(1e-3, 1e3))
def test_magnitude_keeps_zeros_whatever_the_limit(X, upper):
    ranges = learn_ranges(X, method="magnitude", lower=-upper, upper=upper)
    assert len(ranges.filled) == 0
    scaled = ranges.apply(X)
    assert (scaled[X == 0] == 0).all()
    assert np.abs(scaled).max(initial=0) <= upper


def test_a_symmetric_range_is_a_factor_without_rounding_in_between():
    ranges = FeatureRanges(-1.0, 1.0, np.array([-10.0]), np.array([10.0]))
    assert ranges.apply(np.array([[1e-20], [1.0]])).tolist() == [[1e-21], [0.1]]


def test_a_range_longer_than_the_largest_number_is_scaled():
    X = np.array([[-1.5e308], [1.5e308], [0.75e308], [0.0]])
    ranges = learn_ranges(X, lower=0, upper=1)
    np.testing.assert_allclose(ranges.apply(X), [[0], [1], [0.75], [0.5]])


def test_values_beyond_the_range_go_beyond_the_limits():
    ranges = learn_ranges(np.array([[0.0], [2.0]]))
    assert ranges.apply(np.array([[3.0], [-1.0]])).tolist() == [[2.0], [-2.0]]


# Storage and blocks


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("container", [csr_array, csr_matrix, csc_array, coo_array])
@pytest.mark.parametrize("dtype", DTYPES)
def test_sparse_and_dense_rows_are_scaled_alike(method, container, dtype, X):
    X = X.astype(dtype)
    ranges, of_sparse = learn_ranges(X, method=method), learn_ranges(container(X), method=method)
    np.testing.assert_array_equal(of_sparse.low, ranges.low)
    scaled, sparse = ranges.apply(X), ranges.apply(container(X))
    assert scaled.dtype == sparse.dtype == dtype
    assert isinstance(sparse, csr_array)
    assert sparse.has_canonical_format
    assert sparse.nnz == np.count_nonzero(scaled)
    np.testing.assert_array_equal(sparse.toarray(), scaled)


@pytest.mark.parametrize("method", METHODS)
def test_how_rows_are_cut_into_blocks_makes_no_difference(method, X, monkeypatch):
    whole = learn_ranges(X, method=method)
    monkeypatch.setattr(scaling, "_DENSE_VALUES_PER_PASS", 20)
    blocks = learn_ranges([X[:7], csr_array(X[7:8]), X[8:8], X[8:]], method=method)
    np.testing.assert_allclose(blocks.low, whole.low, rtol=1e-13)
    np.testing.assert_allclose(blocks.high, whole.high, rtol=1e-13)
    np.testing.assert_array_equal(whole.apply(X[5:20]), whole.apply(X)[5:20])


def test_blocks_may_grow_wider():
    ranges = learn_ranges([csr_array([[1.0]]), csr_array([[2.0, 5.0, 0.0, 1.0]])])
    assert ranges.low.tolist() == [1, 0, 0, 0]
    assert ranges.high.tolist() == [2, 5, 0, 1]


def test_rows_with_fewer_columns_have_zeros_there():
    ranges = FeatureRanges(-1.0, 1.0, np.array([0.0, 0.0, 1.0]), np.array([2.0, 0.0, 3.0]))
    for container in (np.asarray, csr_array):
        assert dense(ranges.apply(container([[2.0]]))).tolist() == [[1.0, 0.0, -2.0]]


def test_sparse_rows_are_filled_where_zeros_do_not_stay_zeros_and_only_there():
    ranges = FeatureRanges(-1.0, 1.0, np.array([-1.0, 0.0, 0.0, 1.0]), np.array([1.0, 2.0, 0.0, 3.0]))
    assert ranges.filled.tolist() == [1, 3]
    scaled = ranges.apply(csr_array([[0.5, 0.0, 7.0, 2.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]))
    assert scaled.indices.tolist() == [0, 1, 3, 1, 3]  # 2 of feature 3 and 1 of feature 1 become 0
    assert scaled.data.tolist() == [0.5, -1.0, -2.0, -1.0, -2.0]


def test_float32_rows_stay_float32_and_whole_numbers_become_doubles():
    ranges = FeatureRanges(-1.0, 1.0, np.array([0.0]), np.array([3.0]))
    assert ranges.apply(np.ones((1, 1), np.float32)).dtype == np.float32
    for dtype in (np.int8, np.int64):
        assert ranges.apply(np.ones((1, 1), dtype)).dtype == np.float64
        assert ranges.apply(csr_array(np.ones((1, 1), dtype))).dtype == np.float64


def test_the_input_is_left_as_it_was(X):
    for container in (np.array, csr_array):
        rows = container(X)
        learn_ranges(rows).apply(rows)
        np.testing.assert_array_equal(dense(rows), X)


def test_entries_after_scaling_are_counted_before(X):
    X[0, 1] = 0.0
    statistics = FeatureStatistics().update(csr_array(X))
    for lower in (-1.0, 0.0):
        ranges = statistics.ranges(lower=lower)
        expected = statistics.n_entries_scaled(ranges)
        # At most one value per feature that becomes dense goes to zero here.
        assert 0 <= expected - ranges.apply(csr_array(X)).nnz <= len(ranges.filled)


def test_seen_and_varying_features_are_known(X):
    statistics = FeatureStatistics().update(X)
    assert statistics.seen().tolist() == [0, 1, 2, 3, 4, 6, 7]
    assert statistics.varying().tolist() == [0, 1, 2, 3, 4, 7]
    assert statistics.n_entries == np.count_nonzero(X)


# Labels


def test_labels_are_scaled_like_a_feature():
    y = np.array([1.0, 5.0, 3.0])
    ranges = learn_ranges([(np.eye(3)[:2], y[:2], None), (np.eye(3)[2:], y[2:], None)], label_limits=(0, 1))
    assert ranges.labels == LabelRange(0, 1, 1.0, 5.0)
    assert ranges.apply_to_labels([1, 5, 3, 9]).tolist() == [0, 1, 0.5, 2]


def test_labels_stay_if_not_asked_for():
    assert learn_ranges([(np.eye(2), np.ones(2), None)]).apply_to_labels([3, 4]).tolist() == [3, 4]


def test_labels_that_are_all_equal_go_to_the_lower_limit_and_others_cannot_be_scaled():
    ranges = learn_ranges([(np.eye(2), np.ones(2), None)], label_limits=(0, 5))
    assert ranges.apply_to_labels([1, 1]).tolist() == [0, 0]
    with pytest.raises(ValueError, match="y must be 1 everywhere, the only label the ranges know, got 2"):
        ranges.apply_to_labels([1, 2])


# Mistakes


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "size"}, "method must be one of range, magnitude, variance, standard, got 'size'"),
        ({"lower": 1}, "lower must be below upper, both finite, got 1 and 1.0"),
        ({"lower": -1e308, "upper": 1e308}, "lower must be below upper, both finite"),
        ({"lower": 0, "method": "magnitude"}, 'lower must be −upper for the method "magnitude", got 0 and 1.0'),
        ({"upper": 2, "method": "variance"}, 'lower and upper must be −1 and 1 for the method "variance"'),
        ({"label_limits": (1, 0)}, r"label_limits\[0\] must be below label_limits\[1\], both finite, got 1 and 0"),
        ({"label_limits": (0, 1)}, "label_limits need labels"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        learn_ranges(np.eye(2), **options)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((0, 3)), "there must be at least one row"),
        (np.zeros(3), "X must have 2 dimensions, got 1"),
        (np.array([[np.nan]]), "X must be finite, got nan"),
        (csr_array([[1.0, np.inf]]), "X must be finite, got inf"),
        (csr_array((1, 2**28 + 1)), "X must have at most 268435456 columns to be scaled, got 268435457"),
    ],
)
def test_wrong_rows_are_refused(X, message):
    with pytest.raises(ValueError, match=message):
        learn_ranges(X)


@pytest.mark.parametrize("container", [np.array, csr_array])
def test_rows_that_cannot_be_scaled_are_refused(container):
    ranges = FeatureRanges(-1.0, 1.0, np.zeros(2), np.array([1.0, 1e-300]))
    with pytest.raises(ValueError, match=r"X must have at most 2 columns, .* got 3; use X\[:, :2\]"):
        ranges.apply(container(np.eye(3)))
    with pytest.raises(ValueError, match=r"column 1: 1e\+300 cannot be scaled by the range from 0 to 1e-300"):
        ranges.apply(container([[1.0, 1e300]]))
    with pytest.raises(ValueError, match="column 0: nan cannot be scaled by the range from 0 to 1"):
        ranges.apply(container([[np.nan, 1.0]]))


def test_variances_that_numbers_cannot_hold_are_refused():
    for X in ([[1e200], [-1e200]], [[1e-200], [1.1e-200]]):
        with pytest.raises(
            ValueError, match=r'column 0: the variance of values .* in double precision; use .* "range"'
        ):
            learn_ranges(np.array(X), method="variance")
    with pytest.raises(ValueError, match=r"column 0: the standard deviation 8 is too small .* the mean 1e\+17"):
        learn_ranges(np.array([[1e17], [1e17 + 16]]), method="standard")


def test_deviations_need_moments():
    with pytest.raises(ValueError, match=r"deviations need FeatureStatistics\(moments=True\)"):
        FeatureStatistics().update(np.eye(2)).ranges("variance")


def test_ranges_must_be_ranges():
    with pytest.raises(ValueError, match="low and high must have the same length, and low <= high"):
        FeatureRanges(-1.0, 1.0, np.ones(1), np.zeros(1))
    with pytest.raises(ValueError, match="low and high must have the same length, and low <= high"):
        FeatureRanges(-1.0, 1.0, np.zeros(2), np.ones(1))
