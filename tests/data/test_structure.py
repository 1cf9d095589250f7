"""Sparse matrices whose arrays do not fit together are refused, whatever their format; sound ones pass unchanged."""

import numpy as np
import pytest
from scipy.sparse import (
    bsr_array,
    coo_array,
    coo_matrix,
    csc_array,
    csc_matrix,
    csr_array,
    csr_matrix,
    dia_array,
    dok_array,
    lil_array,
    lil_matrix,
)

from widemargin.data.structure import check_structure, checked_csr

FORMATS = [csr_array, csr_matrix, csc_array, csc_matrix, coo_array, coo_matrix, lil_array, lil_matrix, dok_array]
FORMATS += [dia_array, bsr_array]


@pytest.fixture
def plain(rng):
    """Eight rows of four columns, a third of them zero; the first row and the last are empty."""
    X = rng.standard_normal((8, 4)) * (rng.random((8, 4)) < 0.7)
    X[[0, -1]] = 0.0
    return X


def _with_indices_of(X, width):
    X.indices, X.indptr = X.indices.astype(width), X.indptr.astype(width)
    return X


@pytest.mark.parametrize("make", FORMATS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16, bool])
def test_a_sound_matrix_of_any_format_keeps_its_values(plain, make, dtype):
    X = make(plain.astype(dtype))
    checked = checked_csr(X)
    assert checked.format == "csr"
    assert checked.has_canonical_format
    assert checked.dtype == (np.float32 if dtype == np.float32 else np.float64)
    np.testing.assert_array_equal(checked.toarray(), plain.astype(dtype).astype(checked.dtype))


def test_a_sound_csr_matrix_is_not_copied_and_the_callers_object_not_touched(plain):
    X = csr_matrix(plain)
    before = dict(vars(X))
    checked = checked_csr(X)
    assert np.shares_memory(checked.data, X.data)
    assert np.shares_memory(checked.indices, X.indices)
    assert type(checked) is csr_matrix
    assert vars(X).keys() == before.keys()


@pytest.mark.parametrize(
    "kinds", [("i8", "i4"), ("i4", "i8"), ("i2", "i2"), ("u4", "i4"), (">i4", ">i4"), ("i8", "i8")]
)
def test_indices_of_any_type_become_those_that_scipy_uses(plain, kinds):
    X = csr_matrix(plain)
    X.indices, X.indptr = X.indices.astype(kinds[0]), X.indptr.astype(kinds[1])
    checked = checked_csr(X)
    assert checked.indices.dtype == checked.indptr.dtype
    assert checked.indices.dtype in (np.int32, np.int64)
    np.testing.assert_array_equal(checked.toarray(), plain)


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (0, 0), (3, 3)])
def test_a_matrix_without_entries_is_sound(shape):
    assert checked_csr(csr_array(shape)).shape == shape


@pytest.mark.parametrize("width", [np.int32, np.int64])
@pytest.mark.parametrize("make", [csr_array, csc_array])
@pytest.mark.parametrize(
    ("name", "position", "value", "rule"),
    [
        ("indices", 5, 99, "and (column|row)s go from 0 to"),
        ("indices", 5, -1, "and (column|row)s go from 0 to"),
        ("indices", -1, 8, "and (column|row)s go from 0 to"),
        ("indices", 5, np.iinfo(np.int32).min, "and (column|row)s go from 0 to"),
        ("indices", 5, np.iinfo(np.int32).max, "and (column|row)s go from 0 to"),
        ("indptr", 0, 2, "indptr must begin with 0, got 2"),
        ("indptr", 0, -2, "indptr must begin with 0, got -2"),
        ("indptr", 2, -7, "goes from . to -7 in indptr"),
        ("indptr", 3, 1, "indptr must not decrease"),
        ("indptr", -1, 10**6, "not exceed the .* stored entries"),
        ("indptr", 2, 2**31 - 1, "not exceed the .* stored entries"),
    ],
)
def test_indices_and_offsets_that_lead_outside_are_refused(plain, make, width, name, position, value, rule):
    X = _with_indices_of(make(plain), width)
    getattr(X, name)[position] = value
    for check in (checked_csr, check_structure):
        with pytest.raises(ValueError, match=rf"X is not a valid CS[RC] matrix.*{rule}"):
            check(X)


def test_the_message_names_the_row_and_the_column(plain):
    X = csr_array(plain)
    row = 3
    X.indices[X.indptr[row]] = 12
    with pytest.raises(ValueError, match="row 3 has an entry in column 12, and columns go from 0 to 3"):
        checked_csr(X)


@pytest.mark.parametrize(
    ("name", "change", "rule"),
    [
        ("data", lambda array: array[:-2], "do not fit together"),
        ("indices", lambda array: array[:-2], "do not fit together"),
        ("indptr", lambda array: array[:-2], "indptr must have 9 entries, one more than there are rows, got 7"),
        ("indptr", lambda array: np.append(array, array[-1]), "indptr must have 9 entries"),
        ("indices", lambda array: array + 0.5, "indices must be integers in one dimension, got float64"),
        ("indptr", lambda array: array[:, np.newaxis], "indptr must be integers in one dimension"),
        ("data", lambda array: array[:, np.newaxis], "do not fit together"),
    ],
)
def test_arrays_of_other_sizes_and_types_are_refused(plain, name, change, rule):
    X = csr_array(plain)
    setattr(X, name, change(getattr(X, name)))
    with pytest.raises(ValueError, match=rule):
        checked_csr(X)


@pytest.mark.parametrize("dtype", [object, complex, "U5"])
def test_values_that_are_no_real_numbers_are_refused(plain, dtype):
    X = csr_array(plain)
    X.data = X.data.astype(dtype)
    with pytest.raises(ValueError, match="X must hold real numbers, got"):
        checked_csr(X)


def test_coordinates_outside_the_shape_are_refused_before_scipy_converts_them(plain):
    for name, value in (("row", 8), ("row", -1), ("col", 4), ("col", -5)):
        X = coo_matrix(plain)
        getattr(X, name)[2] = value
        with pytest.raises(ValueError, match=f"entry 2 is in {name[:3]}[a-z]* {value}, and .* go from 0 to"):
            checked_csr(X)


def test_lists_of_unequal_lengths_and_wrong_columns_are_refused(plain):
    X = lil_matrix(plain)
    X.rows[2].append(1)
    with pytest.raises(ValueError, match=r"row 2 has \d indices and \d values"):
        checked_csr(X)
    X = lil_matrix(plain)
    X.rows[2][0] = 77
    with pytest.raises(ValueError, match="entry in column 77"):
        checked_csr(X)


def test_blocks_outside_the_shape_are_refused(plain):
    X = bsr_array(plain, blocksize=(2, 2))
    X.indices[0] = 5
    with pytest.raises(ValueError, match="not a valid BSR matrix: row of blocks 0 has an entry in column of blocks 5"):
        checked_csr(X)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("value", "words"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
def test_values_that_are_not_finite_are_refused_by_row_and_column_unless_allowed(plain, dtype, value, words):
    X = csr_array(plain.astype(dtype))
    entry = X.indptr[2]
    X.data[entry] = value
    with pytest.raises(ValueError, match=rf"Input X contains {words}.*: row 2, column {X.indices[entry]}\."):
        checked_csr(X)
    assert checked_csr(X, finite=False).nnz == X.nnz


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_largest_and_smallest_numbers_are_finite(plain, dtype):
    X = csr_array(plain.astype(dtype))
    X.data[:4] = [np.finfo(dtype).max, -np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal, -0.0]
    assert checked_csr(X).data.tobytes() == X.data.tobytes()


def test_entries_out_of_order_or_twice_are_put_right_in_a_copy_even_if_flags_say_otherwise(plain):
    X = csr_matrix(plain)
    X.indices[:2], X.data[:2] = X.indices[1::-1].copy(), X.data[1::-1].copy()
    X.indices[-1] = X.indices[-2]
    X.has_canonical_format = X.has_sorted_indices = True
    given = X.data.copy(), X.indices.copy()
    expected = np.zeros(plain.shape)
    np.add.at(expected, (np.repeat(np.arange(8), np.diff(X.indptr)), X.indices), X.data)
    checked = checked_csr(X)
    assert all(
        (np.diff(checked.indices[a:b]) > 0).all() for a, b in zip(checked.indptr, checked.indptr[1:], strict=False)
    )
    np.testing.assert_array_equal(checked.toarray(), expected)
    assert X.data.tobytes() == given[0].tobytes()
    assert X.indices.tobytes() == given[1].tobytes()


def test_a_sum_of_repeated_entries_that_is_too_large_is_refused():
    X = csr_array((np.array([1e308, 1e308]), np.array([0, 0]), np.array([0, 2])), shape=(1, 1))
    with pytest.raises(ValueError, match="Input X contains infinity"):
        checked_csr(X)


def test_entries_behind_the_last_offset_do_not_count(plain):
    X = csr_array(plain)
    X.indices, X.data = np.append(X.indices, 99).astype(np.int32), np.append(X.data, np.nan)
    np.testing.assert_array_equal(checked_csr(X).toarray(), plain)
