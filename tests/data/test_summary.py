"""Facts about data sets, against counting by hand and by plain NumPy."""

from itertools import combinations

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array

from widemargin.data import repeats, summary
from widemargin.data.matrix import Matrix
from widemargin.data.precomputed_rows import KernelRecogniser
from widemargin.data.repeats import find_repeats
from widemargin.data.summary import are_classes, summarise


@pytest.fixture
def small():
    """Four features: ordinary, constant, absent, zero wherever it is written; the last row is empty."""
    rows, columns = [0, 0, 0, 1, 1, 2], [0, 1, 3, 0, 1, 1]
    X = csr_array(coo_array(([5.0, 2.0, 0.0, -3.0, 2.0, 2.0], (rows, columns)), shape=(4, 4)))
    return X, np.array([1.0, 2.0, 1.0, 1.0])


def test_counts_are_those_of_the_rows(small):
    found = summarise(*small)
    assert (found.n_rows, found.n_features, found.n_entries, found.density) == (4, 4, 6, 6 / 16)
    assert (found.n_zeros, found.n_empty, found.n_first_index, found.first_index) == (1, 1, 2, 1)
    assert (found.has_unit_rows, found.is_kernel, found.queries) == (False, False, None)


def test_a_constant_feature_has_one_value_in_all_rows_and_an_absent_one_no_entry(small):
    X, y = small
    features = summarise(X[:3], y[:3]).features
    assert (features.n_constant, features.constant) == (2, (2, 4))  # 2 everywhere, and 0 everywhere
    assert (features.n_absent, features.absent) == (1, (3,))
    features = summarise(X, y, first_index=0).features
    assert (features.constant, features.absent) == ((3,), (2,))  # in the last row feature 1 is 0


def test_ranges_count_values_that_are_not_written_as_zero(small):
    features = summarise(*small).features
    assert (features.largest, features.widest, features.narrowest) == ((5.0, 1), (8.0, 1), (2.0, 2))
    assert features.median_range == 5.0


def test_only_the_first_few_features_are_listed():
    X = np.zeros((3, 40))
    X[:, 20:] = 1.0
    features = summarise(X, [1, 2, 3]).features
    assert (features.n_constant, features.constant) == (20, (21, 22, 23, 24, 25))
    assert (features.n_absent, features.absent) == (20, (1, 2, 3, 4, 5))


def test_a_huge_index_takes_no_memory_for_the_features_before_it():
    indices = [5, 2**31 - 3, 2**31 - 3]
    X = csr_array(([1.0, 7.0, 8.0], indices, [0, 2, 3]), shape=(2, 2**31 - 2))
    features = summarise(X, [1, 2]).features
    assert (features.n_absent, features.absent) == (2**31 - 4, (1, 2, 3, 4, 5))
    assert (features.largest, features.narrowest, features.widest) == ((8.0, 2**31 - 2), (1.0, 6), (1.0, 6))


def test_no_entries_at_all_are_summarised():
    found = summarise(csr_array((3, 0)), [1, 2, 2])
    assert (found.n_features, found.n_entries, found.density, found.n_empty) == (0, 0, 0.0, 3)
    assert (found.features.largest, found.features.widest, found.features.n_constant) == (None, None, 0)
    assert (found.repeats.n_repeats, found.repeats.n_conflicts) == (1, 3)


def test_numbers_near_the_largest_do_no_harm():
    X, y = np.tile([[1e308, 1.0], [-1e308, 2.0]], (20, 1)), np.tile([1e308, -1e308], 20)
    found = summarise(X, y)
    assert (found.features.largest, found.features.widest) == ((1e308, 1), (np.inf, 1))
    assert not np.isfinite(found.labels.spread)
    assert are_classes(y) is False


@pytest.mark.parametrize("n_rows", [1, 30])
def test_facts_of_features_agree_with_plain_numpy(rng, n_rows):
    for _ in range(20):
        X = rng.integers(-2, 3, (n_rows, 12)) * (rng.random((n_rows, 12)) < rng.random(12)) * 1.5
        features, ranges = summarise(X, rng.random(n_rows)).features, np.ptp(X, axis=0)
        stored = (X != 0).any(axis=0)
        assert features.n_constant == np.sum((ranges == 0) & stored)
        assert features.n_absent == np.sum(~stored)
        assert features.largest is None or features.largest[0] == np.abs(X).max()
        assert features.widest is None or features.widest[0] == ranges.max()
        assert features.narrowest is None or features.narrowest[0] == ranges[ranges > 0].min()


# Labels


@pytest.mark.parametrize(
    ("y", "expected"),
    [
        ([1, -1, 1], True),
        (range(10), True),
        (range(11), False),
        ([*range(11)] * 10, True),
        ([*range(1001)] * 20, False),
        ([0.5, 1, 1], False),
        ([1e300, 1, 1], False),
    ],
)
def test_classes_are_few_whole_numbers_or_more_with_ten_rows_each(y, expected):
    assert are_classes(np.array(y, dtype=float)) is expected
    found = summarise(np.ones((len(y), 1)), y)
    assert (found.labels.classes is not None) is expected


def test_labels_are_counted_or_measured_as_the_task_says():
    X, y = np.ones((4, 1)), [1, 3, 3, 5]
    labels = summarise(X, y).labels
    assert labels.classes == ((1, 1), (3, 2), (5, 1))
    assert (labels.n_distinct, labels.smallest, labels.largest, labels.mean) == (3, 1.0, 5.0, 3.0)
    assert labels.spread == pytest.approx(np.std(y))
    assert summarise(X, y, task="regression").labels.classes is None
    assert summarise(X, [0.5, 1, 1, 2], task="classification").labels.classes == ((0.5, 1), (1.0, 2), (2.0, 1))
    with pytest.raises(ValueError, match=r"task must be .classification., .regression. or None, got 'rank'"):
        summarise(X, y, task="rank")


def test_a_feature_that_is_the_label_again_is_found_whatever_its_origin_and_unit(rng):
    y = np.where(rng.random(60) < 0.5, 1.0, -1.0)
    X = rng.standard_normal((60, 6))
    assert summarise(X, y).features.label_copies == ()
    X[:, 2], X[:, 4] = 1e6 - 3 * y, y == 1
    assert summarise(X, y).features.label_copies == (3, 5)
    assert summarise(csr_array(X), 2.5 * y + 7, first_index=0).features.label_copies == (2, 4)
    X[7, 2], X[7, 4] = 1e6, 1 - X[7, 4]
    assert summarise(X, y).features.label_copies == ()
    assert summarise(X, np.ones(60)).features.label_copies == ()


def test_a_few_rows_agree_with_the_label_by_chance():
    y = np.array([1.0, -1.0] * 4)
    assert summarise(y[:, None], y).features.label_copies == ()


# Kernels, lengths, queries


def test_rows_of_unit_length_are_noticed(rng):
    X = rng.standard_normal((50, 5))
    assert not summarise(X, X[:, 0]).has_unit_rows
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    assert summarise(X.round(4), X[:, 0]).has_unit_rows


def test_a_precomputed_kernel_is_known_by_its_serials():
    K = np.arange(12.0).reshape(3, 4) + 0.5
    K[:, 0] = [2, 1, 3]
    assert summarise(K, [1, -1, 1], first_index=0).is_kernel
    assert not summarise(K, [1, -1, 1], first_index=1).is_kernel
    for serials in ([2, 2, 3], [2, 1.5, 3], [4, 1, 2], [0, 1, 2]):
        K[:, 0] = serials
        assert not summarise(K, [1, -1, 1], first_index=0).is_kernel


@pytest.mark.parametrize("cut", range(4))
def test_a_precomputed_kernel_is_known_from_its_blocks(cut):
    K = np.arange(12.0).reshape(3, 4) + 0.5
    for serials, known in (([2, 1, 3], True), ([2, 1, 2], False), ([2, 1, 4], False)):
        K[:, 0] = serials
        recogniser = KernelRecogniser()
        for block in (K[:cut], K[cut:]):
            recogniser.update(csr_array(block))
        assert recogniser.is_kernel == known
    recogniser.update(csr_array(K[:, :3]))
    assert not recogniser.is_kernel
    assert not KernelRecogniser().is_kernel


def test_queries_are_measured_and_scattered_or_flat_ones_found():
    qid, y = [7, 7, 3, 9, 9, 9, 7, 3], [1, 1, 2, 1, 2, 3, 1, 2]
    queries = summarise(np.ones((8, 1)), y, qid, lines=np.arange(10, 90, 10)).queries
    assert (queries.n_queries, queries.smallest, queries.median, queries.largest) == (3, 2, 3.0, 3)
    assert (queries.n_scattered, queries.first_scattered, queries.n_flat) == (2, (7, 70), 2)
    queries = summarise(np.ones((4, 1)), [1, 2, 1, 2], [4, 4, -4, -4]).queries
    assert (queries.n_scattered, queries.first_scattered, queries.n_flat) == (0, None, 0)


# Repeats


def repeats_by_comparing_all(X, y, qid, lines):
    """Return (n_repeats, first, n_conflicts) by looking at every pair of rows."""
    same = [(i, j) for i, j in combinations(range(len(y)), 2) if np.array_equal(X[i], X[j]) and qid[i] == qid[j]]
    again = sorted({j for i, j in same if y[i] == y[j]})
    first = None
    if again:
        first = (lines[max(i for i, j in same if j == again[0] and y[i] == y[j])], lines[again[0]])
    return len(again), first, len({k for i, j in same if y[i] != y[j] for k in (i, j)})


@pytest.mark.parametrize("hashed", ["well", "all alike"])
def test_repeats_and_conflicts_are_those_found_by_comparing_all_rows(rng, hashed, monkeypatch):
    if hashed == "all alike":
        monkeypatch.setattr(repeats, "_hash_rows", lambda *arrays: arrays[-1].fill(0))
    for _ in range(40):
        X = rng.integers(0, 3, (25, 2)) * 1.5
        y, qid, lines = rng.integers(0, 2, 25) * 1.0, rng.integers(0, 2, 25), np.cumsum(rng.integers(1, 4, 25))
        for queries in (qid, None):
            found = find_repeats(Matrix(csr_array(X)).rows, y, queries, lines)
            expected = repeats_by_comparing_all(X, y, np.zeros(25) if queries is None else queries, lines)
            assert (found.n_repeats, found.first, found.n_conflicts) == expected
            assert (found.first_conflict is None) == (found.n_conflicts == 0)
            if found.first_conflict is not None:
                i, j = np.searchsorted(lines, found.first_conflict)
                assert np.array_equal(X[i], X[j])
                assert y[i] != y[j]


def test_zeros_make_no_difference_between_rows_whether_written_or_not():
    X = csr_array(([0.0, 1.0, 1.0, -0.0, 1.0], [0, 1, 1, 2, 0], [0, 2, 4, 5]), shape=(3, 3))
    found = find_repeats(Matrix(X).rows, np.ones(3), None, np.arange(1, 4))
    assert (found.n_repeats, found.first) == (1, (1, 2))


def test_rows_that_are_nearly_the_same_are_no_repeats(rng):
    X = np.tile(rng.standard_normal(6), (7, 1))
    X[np.arange(1, 7), np.arange(6)] = np.nextafter(X[0], 9)
    assert find_repeats(Matrix(csr_array(X)).rows, np.ones(7), None, np.arange(7)).n_repeats == 0


def test_uncompiled_and_compiled_agree(rng, monkeypatch):
    X, y = rng.integers(0, 3, (40, 3)) * 0.7, rng.integers(0, 2, 40) * 1.0
    compiled = summarise(X, y)
    for module in (repeats, summary):
        for name, function in list(vars(module).items()):
            if hasattr(function, "py_func"):
                monkeypatch.setattr(module, name, function.py_func)
    assert summarise(X, y) == compiled
