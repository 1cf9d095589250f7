"""Checks of X, y and parameters: ordinary arrays are not handed to scikit-learn, and are checked as if they were."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array, csr_matrix, issparse, isspmatrix
from sklearn import config_context, get_config

from widemargin import SVC, LinearSVC, LinearSVR, RankSVM
from widemargin.data.blocks import memory
from widemargin.models import inputs

X = np.random.default_rng(0).normal(size=(30, 3))
LABELS = np.arange(30) % 3


@pytest.fixture
def without_scikit_learn(monkeypatch):
    """Any call of scikit-learn's check is an error."""

    def refuse(*arguments, **options):
        raise AssertionError("validate_data was called")

    monkeypatch.setattr(inputs, "validate_data", refuse)


@pytest.mark.parametrize("rows", [X, X.astype(np.float32), csr_matrix(X)], ids=["float64", "float32", "CSR"])
@pytest.mark.parametrize("labels", [LABELS, LABELS.astype(float), LABELS.astype(str), LABELS > 0])
def test_ordinary_arrays_need_no_check_of_scikit_learn(rows, labels, without_scikit_learn):
    model = LinearSVC().fit(rows, labels)
    assert model.n_features_in_ == 3
    assert model.predict(rows).dtype == labels.dtype
    assert LinearSVR().fit(rows, LABELS).predict(rows).shape == (30,)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", ["X", "y"])
def test_a_number_that_is_not_finite_is_refused(number, place):
    rows, y = X.copy(), X[:, 0].copy()
    (rows[4] if place == "X" else y)[2] = number
    with pytest.raises(ValueError, match=f"Input {place} contains"):
        LinearSVR().fit(rows, y)


def test_finite_numbers_whose_sum_overflows_are_not_refused_as_infinite():
    rows = np.zeros((30, 3), np.float32)
    rows[:, 0] = 3e38
    with pytest.raises(ValueError, match=r"leaves double precision|too long") as refused:
        LinearSVC(C=1e250).fit(rows, LABELS)
    assert "contains" not in str(refused.value)


@pytest.mark.parametrize("rows", [X[:, :2], csr_matrix(X[:, :2])])
def test_another_number_of_features_is_refused(rows):
    with pytest.raises(ValueError, match="2 features, but LinearSVC is expecting 3 features"):
        LinearSVC().fit(X, LABELS).predict(rows)


def test_numbers_of_rows_that_differ_are_refused():
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        LinearSVC().fit(X, LABELS[:-1])


def test_targets_that_are_not_labels_are_refused():
    with pytest.raises(ValueError, match="Unknown label type"):
        LinearSVC().fit(X, X[:, 0])


def test_feature_names_are_forgotten_by_a_fit_without_them_and_missed_by_predictions():
    named = LinearSVC().fit(pd.DataFrame(X, columns=["a", "b", "c"]), LABELS)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        named.predict(X)
    assert not hasattr(named.fit(X, LABELS), "feature_names_in_")


def test_a_default_that_is_not_valid_is_refused():
    class Subclass(LinearSVR):
        def __init__(self, C=-1.0):
            super().__init__(C=C)

    with pytest.raises(ValueError, match="'C' parameter of Subclass must be"):
        Subclass().fit(X, LABELS)


def test_an_integer_beyond_double_precision_is_refused():
    with pytest.raises(ValueError, match="C must be a number within double precision"):
        LinearSVC(C=10**400).fit(X, LABELS)


@pytest.mark.parametrize("kind", [LinearSVC, SVC, RankSVM])
def test_n_jobs_of_0_is_refused_even_where_one_thread_does_the_work(kind):
    with pytest.raises(ValueError, match=r"The 'n_jobs' parameter of \w+ must be .* or None. Got 0 instead"):
        kind(n_jobs=0).fit([[0.0], [1.0], [2.0]], [0, 1, 1])


def test_a_value_is_checked_although_an_equal_one_of_another_type_was_valid():
    X, y = [[0.0], [1.0], [2.0]], [0, 1, 1]
    for _ in range(2):
        LinearSVC(warm_start=True, C=1.0, max_iter=5000).fit(X, y)
        with pytest.raises(ValueError, match="The 'warm_start' parameter of LinearSVC must be"):
            LinearSVC(warm_start=1).fit(X, y)
        with pytest.raises(ValueError, match="The 'max_iter' parameter of LinearSVC must be"):
            LinearSVC(max_iter=5000.0).fit(X, y)


@pytest.mark.parametrize("kind", [LinearSVC, RankSVM])
def test_rows_in_memory_are_fitted_without_asking_the_system_for_its_free_memory(kind, monkeypatch):
    def refuse():
        raise AssertionError("/proc was read, which takes a third of a small fit")

    monkeypatch.setattr(memory, "free_bytes", refuse)
    assert kind().fit([[0.0], [1.0], [2.0]], [0, 1, 1]).gap_ <= kind().tol


@pytest.mark.parametrize("kind", [LinearSVC, RankSVM])
def test_a_wrong_max_memory_is_refused_for_rows_in_memory_too(kind):
    with pytest.raises(ValueError, match=r'max_memory must be a number of bytes, or a text such as "3GB".*got \'3X\''):
        kind(max_memory="3X").fit([[0.0], [1.0], [2.0]], [0, 1, 1])


@pytest.mark.parametrize("container", [csr_array, csr_matrix])
def test_sparse_attributes_are_of_the_kind_of_the_rows(container):
    model = SVC(kernel="linear").fit(container(X), LABELS)
    for attribute in (model.support_vectors_, model.dual_coef_, model.coef_):
        assert isspmatrix(attribute) == (container is csr_matrix)


@pytest.mark.skipif("sparse_interface" not in get_config(), reason="scikit-learn before 1.9")
def test_sparse_attributes_are_arrays_where_scikit_learn_is_told_so():
    with config_context(sparse_interface="sparray"):
        model = SVC(kernel="linear").fit(csr_matrix(X), LABELS)
    for attribute in (model.support_vectors_, model.dual_coef_, model.coef_):
        assert issparse(attribute)
        assert not isspmatrix(attribute)


@pytest.mark.parametrize("n", [400, 700])  # on both sides of the number of labels from which on they are counted
@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int64, np.uint64, np.float64])
@pytest.mark.parametrize("step", [1, 3, 10_000])
def test_labels_are_numbered_in_ascending_order(n, dtype, step, rng):
    lowest = 0 if np.dtype(dtype).kind in "bu" else -2
    y = (rng.integers(lowest, 9, n) * (step if np.dtype(dtype).itemsize > 1 else 1)).astype(dtype)
    classes, label = inputs.encode_labels(y)
    expected, numbers = np.unique(y, return_inverse=True)
    assert classes.dtype == y.dtype
    assert label.dtype == np.intp
    np.testing.assert_array_equal(classes, expected)
    np.testing.assert_array_equal(label, numbers)
