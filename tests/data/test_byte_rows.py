"""Arrays of int8 and uint8 in memory: the numbers of float64, by every verb, with scaled columns and without."""

import numpy as np
import pytest
from tests.data.blocks.test_streamed import check_verbs

from widemargin.data import byte_rows
from widemargin.data.blocks.placement import matrix_of_arrays
from widemargin.data.by_columns import chosen_columns, weighted_squares
from widemargin.data.column_scaling import ColumnScaling, column_statistics
from widemargin.data.columns import scales_differ
from widemargin.data.matrix import Matrix
from widemargin.data.rows import joined_rows, row_distance, taken

KINDS = ["int8", "uint8"]
SCALINGS = [None, "standard", "maxabs"]
N_ROWS, N_FEATURES = 2500, 33  # more entries than those of small matrices, which become arrays of float64


def rows_of(kind, n_rows=N_ROWS):
    """Return rows of bytes with the smallest and the largest value of the type."""
    limits, rng = np.iinfo(kind), np.random.default_rng(0)
    X = rng.integers(limits.min, limits.max + 1, (n_rows, N_FEATURES)).astype(kind)
    X[:, ::2] *= rng.random((n_rows, X[:, ::2].shape[1])) < 0.3
    X[0], X[1] = limits.min, limits.max
    return X


@pytest.fixture(autouse=True)
def all_stay_bytes(monkeypatch):
    """Let small arrays stay bytes."""
    monkeypatch.setattr(byte_rows, "VALUES_WORTH_BYTES", 0)


def both(kind, scaling=None, constant=0.5):
    """Return the matrices of bytes and of the same numbers as float64."""
    X = rows_of(kind)
    return (matrix_of_arrays(one, constant, scaling) for one in (X, X.astype(np.float64)))


@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_verb_gives_the_numbers_of_float64(kind, scaling):
    found, expected = both(kind, scaling)
    assert found.values.dtype == kind
    assert expected.rows.values.dtype == np.float64
    check_verbs(found, expected)
    W = np.random.default_rng(2).standard_normal((3, N_FEATURES + 1))
    C = np.random.default_rng(3).standard_normal((3, N_ROWS))
    np.testing.assert_allclose(found.score_table(W), expected.score_table(W), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.combine_table(C), expected.combine_table(C), rtol=1e-9, atol=1e-8)
    np.testing.assert_allclose(found.squared_norms(), expected.squared_norms(), rtol=1e-12)
    assert row_distance(found.rows, 0, 5, None) == pytest.approx(row_distance(expected.rows, 0, 5, None), rel=1e-12)
    assert (found.squared_lengths, found.longest_row) == (expected.squared_lengths, expected.longest_row)


@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_parts_of_the_rows_and_columns_are_those_of_float64(kind, scaling, monkeypatch):
    found, expected = both(kind, scaling)
    weights, which, chosen = np.random.default_rng(2).random(N_ROWS), np.array([1, 4, N_FEATURES]), np.arange(7, 900, 3)
    np.testing.assert_allclose(weighted_squares(found, weights), weighted_squares(expected, weights), rtol=1e-12)
    (columns, _), (expected_columns, _) = chosen_columns(found, which), chosen_columns(expected, which)
    np.testing.assert_allclose(columns.data, expected_columns.data, rtol=1e-12, atol=1e-12)
    w = np.random.default_rng(3).standard_normal(N_FEATURES + 1)
    np.testing.assert_allclose(found.part(chosen).scores(w), expected.part(chosen).scores(w), rtol=1e-9, atol=1e-9)
    assert found.part(chosen).values.dtype == kind
    again = Matrix(rows_of(kind), 0.5)
    again.rows = joined_rows([taken(found.rows, chosen), taken(found.rows, np.setdiff1d(np.arange(N_ROWS), chosen))])
    np.testing.assert_allclose(np.sort(again.scores(w)), np.sort(expected.scores(w)), rtol=1e-9, atol=1e-9)
    monkeypatch.setattr(byte_rows, "VALUES_WORTH_BYTES", 1 << 20)
    part = found.part(chosen)
    assert part.values.dtype == np.float64
    np.testing.assert_allclose(part.scores(w), expected.part(chosen).scores(w), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_statistics_of_columns_are_those_of_float64(kind, monkeypatch):
    monkeypatch.setattr(byte_rows, "_VALUES_AT_A_TIME", 1000)
    X = rows_of(kind)
    found, exact = column_statistics([X]), X.astype(np.float64)
    np.testing.assert_allclose(found["mean"], exact.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(found["deviation"], exact.std(axis=0), rtol=1e-12)
    np.testing.assert_array_equal(found["max_abs"], np.abs(exact).max(axis=0))


def test_the_smallest_byte_counts_with_its_absolute_value():
    """In int8 there is no 128, and −(−128) is −128."""
    X = np.array([[-128, 10], [3, 5]], np.int8)
    assert scales_differ(X)
    assert ColumnScaling.of("maxabs", column_statistics([X])).scale.tolist() == [128.0, 10.0]


def test_small_arrays_of_bytes_are_converted(monkeypatch):
    monkeypatch.setattr(byte_rows, "VALUES_WORTH_BYTES", N_ROWS * N_FEATURES + 1)
    X = rows_of("uint8")
    assert Matrix(X).values.dtype == np.float64
    assert matrix_of_arrays(X, 0.0, "standard").values.dtype == np.float64


def test_scores_of_bytes_are_those_of_float64_in_any_order_of_memory():
    X, W = rows_of("int8"), np.random.default_rng(1).standard_normal((3, N_FEATURES))
    for one in (X, np.asfortranarray(X), X[::-2], X[:0]):
        np.testing.assert_allclose(
            byte_rows.scores_of_bytes(one, W), one.astype(np.float64) @ W.T, rtol=1e-9, atol=1e-9
        )
