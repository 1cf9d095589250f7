"""Vectors in a model file, such as basis points and support vectors: a dense array, or the three arrays of CSR.

    dense    the array NAME
    CSR      NAME.data, NAME.indices, NAME.indptr; the metadata say which container of SciPy it is

A model on a basis has `basis_`, `basis_coef_`, and in the metadata `_gamma`, the number that gamma="scale" stands for.
"""

import math

import numpy as np
from scipy.sparse import csr_array, csr_matrix, issparse

from widemargin.persistence.encoding import typed_entry

_CONTAINERS = {"csr_array": csr_array, "csr_matrix": csr_matrix}
_BASIS, _COEF = "basis_", "basis_coef_"


def parts_of(name):
    """Return the names of the three arrays of CSR vectors."""
    return [f"{name}.{part}" for part in ("data", "indices", "indptr")]


def vector_arrays(name, vectors):
    """Return vectors as arrays by name."""
    if not issparse(vectors):
        return {name: np.asarray(vectors)}
    return dict(zip(parts_of(name), (vectors.data, vectors.indices, vectors.indptr), strict=True))


def container_of(vectors):
    """Return the name of the container of sparse vectors."""
    return "csr_array" if isinstance(vectors, csr_array) else "csr_matrix"


def check_vectors(name, arrays, shape):
    """Raise ValueError unless the arrays hold vectors of this shape, in one of the two forms."""
    data, indices, indptr = parts_of(name)
    if not {data, indices, indptr} & set(arrays):
        check_numbers(name, arrays.get(name), [shape])
        return
    if name in arrays:
        raise ValueError(f"{data} does not belong to this model.")
    n_entries = arrays[data].size if data in arrays else 0
    check_numbers(data, arrays.get(data), [(n_entries,)])
    check_counts(indices, arrays.get(indices), (n_entries,))
    check_counts(indptr, arrays.get(indptr), (shape[0] + 1,))
    ends = arrays[indptr]
    if ends[0] != 0 or ends[-1] != n_entries or (np.diff(ends) < 0).any():
        raise ValueError(f"{indptr} must rise from 0 to {n_entries}, the number of entries.")
    if (arrays[indices] >= shape[1]).any():
        raise ValueError(f"{indices} must be below {shape[1]}, the number of features.")


def pop_vectors(name, arrays, container, shape):
    """Remove checked vectors from the arrays and return them; `container` is the name of that of CSR, or None."""
    if name in arrays:
        return arrays.pop(name)
    if container not in _CONTAINERS:
        raise ValueError(f"vectors must be one of {', '.join(_CONTAINERS)}, got {container!r}.")
    return _CONTAINERS[container](tuple(arrays.pop(part) for part in parts_of(name)), shape=shape)


def basis_arrays(model):
    """Return the arrays of a fitted model on a basis that other models do not have."""
    return {**vector_arrays(_BASIS, model.basis_), _COEF: np.asarray(model.basis_coef_)}


def basis_metadata(model):
    """Return the metadata of a fitted model on a basis that other models do not have."""
    return {"_gamma": float(model._gamma), "basis_": container_of(model.basis_) if issparse(model.basis_) else "array"}


def restore_basis(model, metadata, arrays, n_outputs):
    """Set `basis_`, `basis_coef_` and `_gamma`, removing their arrays; raise ValueError if they are not valid.

    A `basis` of points, which the parameters in a file do not hold, is set to these points.
    """
    model._validate_params()
    model._gamma = typed_entry(metadata, "_gamma", float)
    if not 0.0 <= model._gamma < math.inf:
        raise ValueError(f"_gamma must be finite and not negative, got {model._gamma}.")
    coefficients = arrays.get(_COEF)
    n_points = coefficients.shape[1] if coefficients is not None and coefficients.ndim == 2 else 0
    check_numbers(_COEF, coefficients, [(n_outputs, n_points)])
    shape = (n_points, model.n_features_in_)
    check_vectors(_BASIS, arrays, shape)
    model.basis_ = pop_vectors(_BASIS, arrays, typed_entry(metadata, "basis_", str), shape)
    model.basis_coef_ = arrays.pop(_COEF)
    if model.basis is None:
        model.basis = model.basis_


def check_counts(name, array, shape):
    """Raise ValueError unless an array is present, has this shape, and holds non-negative integers."""
    if array is None:
        raise ValueError(f"the array {name} is missing.")
    if array.dtype not in (np.int32, np.int64):
        raise ValueError(f"{name} must hold 32-bit or 64-bit integers, got {array.dtype}.")
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}.")
    if (array < 0).any():
        raise ValueError(f"{name} must not be negative, got {array.min()}.")


def check_numbers(name, array, shapes):
    """Raise ValueError unless an array is present, holds finite floating point numbers, and has one of the shapes."""
    if array is None:
        raise ValueError(f"the array {name} is missing.")
    if array.dtype not in (np.float64, np.float32):
        raise ValueError(f"{name} must hold floating point numbers, got {array.dtype}.")
    if array.shape not in shapes:
        raise ValueError(f"{name} must have shape {shapes[-1]}, got {array.shape}.")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity.")
