"""The arrays and metadata of a fitted linear model, and the conditions that they must satisfy.

always         `coef_`, `intercept_`. A file may hold only the columns of `coef_` that are not zero, as
               `coef_.columns`, ascending column numbers, and `coef_.values`, their weights.
dual solvers   `dual_coef_`; cutting plane models do not have it
with a kernel  `basis_` and `basis_coef_` in place of `coef_`, see `vector_fields`; cutting plane models only
OrdinalSVC     `thresholds_`, ascending, one fewer than there are classes; `coef_` has one dimension
scaling        `scaling_.centre` and `scaling_.scale`, of models that were fitted to scaled features
"""

import numpy as np
from scipy.sparse import csr_array, csr_matrix, issparse
from sklearn.base import is_classifier

from widemargin.data.column_scaling import ColumnScaling
from widemargin.data.columns import at_columns
from widemargin.models.cutting_plane.base import PlaneModel
from widemargin.models.cutting_plane.measure import MeasureSVC
from widemargin.models.cutting_plane.ordinal import OrdinalSVC
from widemargin.models.linear_one_class import LinearOneClassSVM
from widemargin.persistence.encoding import typed_entry
from widemargin.persistence.vector_fields import basis_arrays, basis_metadata, check_numbers, restore_basis
from widemargin.problems.measures import parsed

COLUMNS, VALUES = "coef_.columns", "coef_.values"
CENTRE, SCALE = "scaling_.centre", "scaling_.scale"
_COLUMN_BYTES = 4  # of a column number in a file
_MANY_FEATURES = 1 << 16  # models with at least so many features may be saved without their zero columns
_MAX_FEATURES = 2**31 - 1


def arrays_of(model, keep_dual):
    """Return the arrays of a fitted model by name."""
    if isinstance(model, MeasureSVC):
        check_measure(model)
    function = basis_arrays(model) if hasattr(model, "basis_coef_") else _coef_arrays(model.coef_)
    arrays = {**function, "intercept_": np.asarray(model.intercept_)}
    if keep_dual and hasattr(model, "dual_coef_"):
        arrays["dual_coef_"] = np.asarray(model.dual_coef_)
    if isinstance(model, OrdinalSVC):
        arrays["thresholds_"] = np.asarray(model.thresholds_)
    if hasattr(model, "scaling_"):
        arrays |= {CENTRE: model.scaling_.centre, SCALE: model.scaling_.scale}
    return arrays


def metadata_of(model):
    """Return the metadata of a fitted model that are specific to linear models."""
    is_on_basis = hasattr(model, "basis_coef_")
    metadata = basis_metadata(model) if is_on_basis else {"coef_is_sparse": issparse(model.coef_)}
    if hasattr(model, "n_iter_"):
        metadata["n_iter_"] = int(model.n_iter_)
    return metadata


def restore(model, metadata, arrays):
    """Set the fitted attributes from the metadata and arrays; raise ValueError if they are not valid."""
    if "basis_" in metadata and isinstance(model, PlaneModel):
        restore_basis(model, metadata, arrays, 1)
    columns, is_sparse = arrays.pop(COLUMNS, None), metadata.get("coef_is_sparse") is True
    if {CENTRE, SCALE} & set(arrays):
        model.scaling_ = _scaling(arrays.pop(CENTRE, None), arrays.pop(SCALE, None), model.n_features_in_)
    if columns is not None:
        _check_columns(columns, model.n_features_in_)
        arrays["coef_"] = arrays.pop(VALUES, None)
    check_weights(model, arrays, None if columns is None else len(columns))
    for key, array in arrays.items():
        setattr(model, key, float(array) if array.ndim == 0 else array)
    if columns is not None:
        model.coef_ = (_sparse_coef if is_sparse else _dense_coef)(model.coef_, columns, model.n_features_in_)
    elif is_sparse:
        model.coef_ = csr_matrix(model.coef_)
    if isinstance(model, LinearOneClassSVM):
        model.offset_ = -model.intercept_
    if "n_iter_" in metadata:
        model.n_iter_ = typed_entry(metadata, "n_iter_", int)


def _scaling(centre, scale, n_features):
    """Return the scaling of the features; raise ValueError unless there are two numbers for each."""
    for name, array in ((CENTRE, centre), (SCALE, scale)):
        check_numbers(name, array, [(n_features,)])
    if not (scale > 0.0).all():
        raise ValueError(f"{SCALE} must be positive.")
    return ColumnScaling(centre, scale)


def _coef_arrays(coef):
    """Return `coef_` as arrays by name: in full, or its nonzero columns if these take at most half the bytes."""
    n_features = coef.shape[-1]
    if n_features >= _MANY_FEATURES:
        columns = _columns_not_zero(coef)
        if 2 * len(columns) * (coef.dtype.itemsize + _COLUMN_BYTES) <= n_features * coef.dtype.itemsize:
            values = at_columns(csr_array(coef), columns).toarray() if issparse(coef) else coef[..., columns]
            return {COLUMNS: columns.astype(np.uint32), VALUES: values}
    return {"coef_": coef.toarray() if issparse(coef) else np.asarray(coef)}


def _columns_not_zero(coef):
    """Return the columns that hold a value other than +0.0, ascending; works in blocks to bound the memory."""
    if issparse(coef):
        return np.unique(coef.indices[: coef.indptr[-1]])
    lines = coef.reshape(-1, coef.shape[-1])
    found = []
    for begin in range(0, lines.shape[1], _MANY_FEATURES):
        part = np.ascontiguousarray(lines[:, begin : begin + _MANY_FEATURES])
        found.append(begin + np.flatnonzero(part.view(f"u{part.itemsize}").any(axis=0)))
    return np.concatenate(found)


def _check_columns(columns, n_features):
    """Raise ValueError unless the column numbers are ascending and below the number of features."""
    if columns.dtype != np.uint32 or columns.ndim != 1 or n_features > _MAX_FEATURES:
        raise ValueError(f"{COLUMNS} must be uint32 in one dimension, of at most {_MAX_FEATURES} features.")
    if (np.diff(columns.astype(np.int64)) <= 0).any() or (len(columns) and columns[-1] >= n_features):
        raise ValueError(f"{COLUMNS} must ascend and stay below {n_features}, the number of features.")


def _dense_coef(values, columns, n_features):
    """Return the weights of all features; memory pages that hold only zeros are not written to."""
    shape = (*values.shape[:-1], n_features)
    try:
        coef = np.zeros(shape, dtype=values.dtype)
    except MemoryError as error:
        raise ValueError(f"there is not enough memory for coef_ of shape {shape}.") from error
    coef[..., columns] = values
    return coef


def _sparse_coef(values, columns, n_features):
    """Return the weights of all features as a sparse matrix."""
    lines = np.atleast_2d(values)
    entries = csr_matrix(lines)
    return csr_matrix((entries.data, columns[entries.indices], entries.indptr), shape=(len(lines), n_features))


def check_weights(model, arrays, n_features=None):
    """Raise ValueError unless the arrays are those of a linear model with the model's features and classes."""
    n_features = model.n_features_in_ if n_features is None else n_features
    is_ordinal, by_planes = isinstance(model, OrdinalSVC), isinstance(model, PlaneModel)
    known = {"coef_", "intercept_", "thresholds_" if is_ordinal else None, None if by_planes else "dual_coef_"}
    outputs = (1,) if isinstance(model, LinearOneClassSVM) else ()
    if is_classifier(model) and not is_ordinal:
        outputs = (1 if len(model.classes_) == 2 else len(model.classes_),)
    rules = {"coef_": [(*outputs, n_features)], "intercept_": [(), outputs or (1,)]}
    if isinstance(model, LinearOneClassSVM):
        rules["intercept_"] = [(1,)]
    if hasattr(model, "basis_coef_"):
        known, rules = known - {"coef_"}, {"intercept_": rules["intercept_"]}
    unknown = sorted(set(arrays) - known)
    if unknown:
        raise ValueError(f"a model has no array named {unknown[0]!r}.")
    if "dual_coef_" in arrays:
        rules["dual_coef_"] = [(*outputs, arrays["dual_coef_"].shape[-1] if arrays["dual_coef_"].ndim else 0)]
    if is_ordinal:
        rules["thresholds_"] = [(len(model.classes_) - 1,)]
    for name, shapes in rules.items():
        check_numbers(name, arrays.get(name), shapes)
    if by_planes:
        _check_task(model, arrays)


def _check_task(model, arrays):
    """Raise ValueError unless the classes, thresholds and measure are valid for a cutting plane model."""
    if isinstance(model, OrdinalSVC):
        if (np.diff(arrays["thresholds_"]) < 0.0).any():
            raise ValueError("thresholds_ must ascend.")
    elif is_classifier(model) and len(model.classes_) != 2:
        raise ValueError(f"classes_ of {type(model).__name__} must be two labels, got {len(model.classes_)}.")
    if isinstance(model, MeasureSVC):
        check_measure(model)


def check_measure(model):
    """Raise an error unless the measure of a MeasureSVC is the name of one: TypeError for a Python function."""
    if callable(model.measure):
        raise TypeError(
            f"measure={model.measure!r} is a Python function: a model file holds no code, so this model cannot be "
            "saved. Pickle it instead."
        )
    if not isinstance(model.measure, str):
        raise ValueError(f"measure must be a string, got {type(model.measure).__name__}.")
    parsed(model.measure)
