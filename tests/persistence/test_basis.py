"""Files of cutting plane models on a basis: whatever such a file states is checked."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from widemargin import FormatError, RankSVM, load_model, save_model
from widemargin.persistence import linear_fields, tensors


def without(name):
    return lambda arrays, metadata: arrays.pop(name)


def with_array(name, array):
    return lambda arrays, metadata: arrays.update({name: array})


def with_entry(name, value):
    return lambda arrays, metadata: metadata.update({name: value})


def save_forged(model, path, spoil, monkeypatch):
    """Write the file of a model whose arrays and metadata were changed, with a checksum that is right."""
    arrays, metadata = tensors._arrays_of(model, True), linear_fields.metadata_of(model)
    spoil(arrays, metadata)
    with monkeypatch.context() as patch:
        patch.setattr(tensors, "_arrays_of", lambda model, keep_dual: arrays)
        patch.setattr(linear_fields, "metadata_of", lambda model: metadata)
        patch.setattr(tensors, "_restore", lambda *arguments: None)
        save_model(model, path)


@pytest.fixture
def rows(rng):
    X = rng.standard_normal((30, 3))
    return X, np.round(X @ [1.0, 2.0, 0.0])


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (without("basis_"), "the array basis_ is missing"),
        (without("basis_coef_"), "the array basis_coef_ is missing"),
        (without("intercept_"), "the array intercept_ is missing"),
        (with_array("basis_", np.zeros((4, 3))), r"basis_ must have shape \(5, 3\)"),
        (with_array("basis_", np.full((5, 3), np.nan)), "basis_ must be finite"),
        (with_array("basis_coef_", np.zeros((2, 5))), r"basis_coef_ must have shape \(1, 5\)"),
        (with_array("basis_coef_", np.zeros(5)), r"basis_coef_ must have shape \(1, 0\)"),
        (with_array("coef_", np.zeros(3)), "a model has no array named 'coef_'"),
        (with_entry("_gamma", -1.0), "_gamma must be finite and not negative"),
        (with_entry("_gamma", "1"), "_gamma must be float, got str"),
        (with_entry("basis_", 3), "basis_ must be str, got int"),
    ],
)
def test_a_file_whose_basis_is_not_valid_is_refused(spoil, message, rows, tmp_path, monkeypatch):
    model = RankSVM(kernel="rbf", basis=rows[0][:5]).fit(*rows)
    save_forged(model, tmp_path / "model", spoil, monkeypatch)
    with pytest.raises(FormatError, match=message):
        load_model(tmp_path / "model")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (without("basis_.data"), "the array basis_.data is missing"),
        (with_array("basis_.indices", np.full(15, 3, np.int32)), "basis_.indices must be below 3"),
        (
            with_array("basis_.indptr", np.arange(0, 18, 3, dtype=np.int32)[::-1].copy()),
            "indptr must rise from 0 to 15",
        ),
        (with_array("basis_", np.zeros((5, 3))), "basis_.data does not belong to this model"),
        (with_entry("basis_", "list"), "vectors must be one of csr_array, csr_matrix, got 'list'"),
    ],
)
def test_a_file_whose_sparse_basis_is_not_valid_is_refused(spoil, message, rows, tmp_path, monkeypatch):
    X, y = csr_array(rows[0]), rows[1]
    model = RankSVM(kernel="rbf", basis=X[:5]).fit(X, y)
    save_forged(model, tmp_path / "model", spoil, monkeypatch)
    with pytest.raises(FormatError, match=message):
        load_model(tmp_path / "model")


def test_a_basis_of_points_comes_back_as_the_parameter(rows, tmp_path):
    X, y = rows
    model = RankSVM(kernel="rbf", basis=X[:5]).fit(X, y)
    save_model(model, tmp_path / "model")
    np.testing.assert_array_equal(load_model(tmp_path / "model").basis, model.basis_)
