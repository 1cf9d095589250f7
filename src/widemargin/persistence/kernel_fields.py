"""The arrays and metadata of a fitted kernel machine, and the conditions that they must satisfy.

    support vectors   an array `support_vectors_`, or CSR as `support_vectors_.data`, `.indices`, `.indptr`;
                      none for a precomputed kernel, whose `support_` gives the columns of K to use
    on a basis        `basis_`, in the same forms, and `basis_coef_`, in place of support vectors, `dual_coef_` and
                      `n_support_`
    always            `dual_coef_`, `intercept_`, `n_support_`, and `_gamma`, the value that gamma="scale" stands for
    classification    `probA_`, `probB_` (empty without sigmoids), `class_weight_`, `n_iter_` (one per pair),
                      `isotonic_points_`, `isotonic_ends_` (probabilities by isotonic regression),
                      `_class_order` (the order of classes in LIBSVM's model text),
                      `_seen_order` (the order in which classes first occur, if that is not the sorted order)
    one class         `offset_`, `density_marks_`
    transduction      `positive_share_`, `inductive_objective_`, `n_exchanges_`; not what belongs to single rows
    if present        `support_`, `shape_fit_`, `fit_status_`, `facts_`, `laplace_scale_`, and the dual variables for a
                      warm start

With k classes there are k (k − 1) / 2 pairs, each with an intercept, and k − 1 coefficients per support vector.
"""

import math

import numpy as np
from scipy.sparse import issparse
from sklearn.base import is_classifier, is_outlier_detector

from widemargin.models.kernel.base import dual_start, set_dual_start
from widemargin.persistence.encoding import decode, encode, typed_entry
from widemargin.persistence.vector_fields import (
    check_counts,
    check_numbers,
    check_vectors,
    container_of,
    parts_of,
    pop_vectors,
    vector_arrays,
)

N_MARKS = 10
_VECTORS, _BASIS = "support_vectors_", "basis_"
_DUAL_START = "_last_multipliers"  # prefix of the names of the dual variables in a file
_ARRAYS = (
    "dual_coef_", "intercept_", "n_support_", "support_", "probA_", "probB_", "class_weight_", "n_iter_",
    "offset_", "density_marks_", "_class_order", "_seen_order", "isotonic_points_", "isotonic_ends_", "basis_coef_",
)  # fmt: skip
_ORDERS = ("_class_order", "_seen_order")
_NUMBERS = {
    "_gamma": float, "laplace_scale_": float, "fit_status_": int,
    "positive_share_": float, "inductive_objective_": float, "n_exchanges_": int,
}  # fmt: skip


def check_kernel(model):
    """Raise TypeError if the kernel is a Python function, which cannot be saved."""
    if callable(model.kernel):
        raise TypeError(
            f"kernel={model.kernel!r} is a Python function: a model file holds no code, so this model cannot be saved. "
            'Fit with kernel="precomputed" on the values of the function and save that model, or pickle this one.'
        )


def arrays_of(model, keep_dual):
    """Return the arrays of a fitted model by name; with `keep_dual` also the dual variables for a warm start."""
    check_kernel(model)
    arrays = {name: np.asarray(_dense(getattr(model, name))) for name in _ARRAYS if hasattr(model, name)}
    if not is_classifier(model):
        arrays.pop("n_iter_", None)  # a single number, which is part of the metadata
    name, vectors = _vectors_of(model)
    arrays |= vector_arrays(name, vectors)
    if keep_dual:
        arrays |= {f"{_DUAL_START}.{k}": beta for k, beta in enumerate(dual_start(model))}
    return arrays


def _vectors_of(model):
    """Return the name of the vectors of a fitted model, and the vectors: support vectors or basis points."""
    name = _BASIS if hasattr(model, _BASIS) else _VECTORS
    return name, getattr(model, name)


def _dense(array):
    return array.toarray() if issparse(array) else array


def metadata_of(model):
    """Return the metadata of a fitted model that are specific to kernel machines."""
    metadata = {name: kind(getattr(model, name)) for name, kind in _NUMBERS.items() if hasattr(model, name)}
    _, vectors = _vectors_of(model)
    if issparse(vectors):
        metadata["vectors"] = container_of(vectors)
    if not is_classifier(model) and hasattr(model, "n_iter_"):
        metadata["n_iter_"] = int(model.n_iter_)
    if hasattr(model, "shape_fit_"):
        metadata["shape_fit_"] = [int(length) for length in model.shape_fit_]
    if hasattr(model, "facts_"):
        metadata["facts_"] = encode(model.facts_)
    return metadata


def restore(model, metadata, arrays):
    """Set the fitted attributes from the metadata and arrays; raise ValueError if they are not valid."""
    model._validate_params()
    _restore_metadata(model, metadata)
    arrays = dict(arrays)
    model._fit_rows = None  # training rows; only a model with a callable kernel has them
    set_dual_start(model, _pop_dual_start(arrays))
    check_arrays(model, arrays)
    name, coefficients = _names(arrays)
    if f"{name}.data" in arrays:
        shape = (arrays[coefficients].shape[1], getattr(model, "n_features_in_", 0))
        vectors = pop_vectors(name, arrays, typed_entry(metadata, "vectors", str), shape)
        setattr(model, name, vectors)
        if name == _VECTORS:
            arrays["dual_coef_"] = type(vectors)(arrays["dual_coef_"])
    for name, array in arrays.items():
        setattr(model, name, array)


def _names(arrays):
    """Return the names of the vectors and of their coefficients: those of support vectors, or of basis points."""
    return (_BASIS, "basis_coef_") if "basis_coef_" in arrays else (_VECTORS, "dual_coef_")


def _restore_metadata(model, metadata):
    """Set the attributes that the metadata hold."""
    for name, kind in _NUMBERS.items():
        if name in metadata or name == "_gamma":
            setattr(model, name, typed_entry(metadata, name, kind))
    if not 0.0 <= model._gamma < math.inf:
        raise ValueError(f"_gamma must be finite and not negative, got {model._gamma}.")
    if not 0.0 <= getattr(model, "laplace_scale_", 0.0) < math.inf:
        raise ValueError(f"laplace_scale_ must be finite and not negative, got {model.laplace_scale_}.")
    if not is_classifier(model) and "n_iter_" in metadata:
        model.n_iter_ = typed_entry(metadata, "n_iter_", int)
    if "shape_fit_" in metadata:
        model.shape_fit_ = tuple(typed_entry(metadata, "shape_fit_", list))
        if not all(type(length) is int for length in model.shape_fit_) or len(model.shape_fit_) != 2:
            raise ValueError(f"shape_fit_ must be two integers, got {metadata['shape_fit_']}.")
        if model.shape_fit_[1] != getattr(model, "n_features_in_", None):
            raise ValueError(f"shape_fit_ must end with n_features_in_, got {model.shape_fit_}.")
    if "facts_" in metadata:
        model.facts_ = decode(metadata["facts_"])
        if not isinstance(model.facts_, list) or not all(map(_maps_names_to_numbers, model.facts_)):
            raise ValueError("facts_ must be a list of dicts from names to numbers.")


def _maps_names_to_numbers(value):
    return isinstance(value, dict) and all(
        isinstance(key, str) and type(entry) in (int, float) for key, entry in value.items()
    )


def _pop_dual_start(arrays):
    """Remove the dual variables for a warm start from the arrays, and return them."""
    found = {key: arrays.pop(key) for key in list(arrays) if key.startswith(_DUAL_START)}
    names = [f"{_DUAL_START}.{k}" for k in range(len(found))]
    if set(names) != set(found):
        raise ValueError(f"dual variables must be named {_DUAL_START}.0 and so on, got {sorted(found)}.")
    for name, array in found.items():
        check_numbers(name, array, [(array.shape[0] if array.ndim else 0,)])
    return [found[name] for name in names]


def check_arrays(model, arrays):
    """Raise ValueError unless the arrays are those of a kernel machine with the model's features and classes."""
    n_classes = len(model.classes_) if is_classifier(model) else 2
    n_pairs = n_classes * (n_classes - 1) // 2
    vectors, of_vectors = _names(arrays)
    coefficients = arrays.get(of_vectors)
    n_vectors = coefficients.shape[1] if coefficients is not None and coefficients.ndim == 2 else 0
    is_on_basis = vectors == _BASIS
    rules = {of_vectors: [(n_pairs if is_on_basis else n_classes - 1, n_vectors)], "intercept_": [(n_pairs,)]}
    counts = {} if is_on_basis else {"n_support_": (n_classes if is_classifier(model) else 1,)}
    if is_classifier(model):
        rules |= {"probA_": [(0,), (n_pairs,)], "probB_": [np.shape(arrays.get("probA_"))]}
        rules |= {"class_weight_": [(n_classes,)]} if "class_weight_" in arrays else {}
        counts |= {"n_iter_": (n_pairs,)} if "n_iter_" in arrays else {}
        counts |= {name: (n_classes,) for name in _ORDERS if name in arrays}
        if "isotonic_points_" in arrays or "isotonic_ends_" in arrays:
            rules["isotonic_points_"] = [(len(arrays.get("isotonic_points_", ())), 2)]
            counts["isotonic_ends_"] = (n_pairs + 1,)
    elif is_outlier_detector(model):
        rules["offset_"] = [(1,)]
        rules |= {"density_marks_": [(N_MARKS,)]} if "density_marks_" in arrays else {}
    if "support_" in arrays or model.kernel == "precomputed":
        counts["support_"] = (n_vectors,)
    unknown = sorted(set(arrays) - set(rules) - set(counts) - {vectors, *parts_of(vectors)})
    if unknown:
        raise ValueError(f"a {type(model).__name__} has no array named {unknown[0]!r}.")
    for name, shapes in rules.items():
        check_numbers(name, arrays.get(name), shapes)
    for name, shape in counts.items():
        check_counts(name, arrays.get(name), shape)
    _check_agreement(model, arrays, n_vectors)
    _check_vectors(model, arrays, vectors, n_vectors)


def _check_agreement(model, arrays, n_vectors):
    """Raise ValueError unless the arrays, whose shapes have been checked, are consistent with each other."""
    # Each count is compared first, because a sum of large integers could overflow to the correct value.
    counts = arrays.get("n_support_", np.array([n_vectors]))
    if (counts > n_vectors).any() or counts.sum() != n_vectors:
        raise ValueError(f"n_support_ must add up to the {n_vectors} columns of dual_coef_.")
    if "support_" in arrays:
        n_rows = model.shape_fit_[0] if hasattr(model, "shape_fit_") else np.iinfo(np.int32).max
        n_rows = min(n_rows, model.n_features_in_) if model.kernel == "precomputed" else n_rows
        if (arrays["support_"] >= n_rows).any():
            raise ValueError(f"support_ must be below {n_rows}, the number of training rows.")
    for name in _ORDERS:
        if name in arrays and not np.array_equal(np.sort(arrays[name]), np.arange(len(model.classes_))):
            raise ValueError(f"{name} must be a permutation of the classes.")
    if "offset_" in arrays and arrays["offset_"] != -arrays["intercept_"]:
        raise ValueError(f"offset_ must be -intercept_, got {arrays['offset_']} and {arrays['intercept_']}.")
    if "isotonic_ends_" in arrays:
        _check_isotonic(arrays["isotonic_points_"], arrays["isotonic_ends_"])
    if "density_marks_" in arrays and (np.diff(arrays["density_marks_"]) < 0).any():
        raise ValueError("density_marks_ must not decrease.")


def _check_isotonic(points, ends):
    """Raise ValueError unless each pair has points, of ascending decision values and probabilities."""
    if ends[0] != 0 or ends[-1] != len(points) or (np.diff(ends) <= 0).any():
        raise ValueError(f"isotonic_ends_ must rise from 0 to {len(points)}, the number of isotonic_points_.")
    inside = np.ones(len(points) - 1, bool)
    inside[ends[1:-1] - 1] = False
    if (np.diff(points[:, 0])[inside] <= 0.0).any() or (np.diff(points[:, 1])[inside] < 0.0).any():
        raise ValueError("isotonic_points_ must have ascending decision values and probabilities for each pair.")
    if points[:, 1].min() < 0.0 or points[:, 1].max() > 1.0:
        raise ValueError("isotonic_points_ must have probabilities from 0 to 1.")


def _check_vectors(model, arrays, name, n_vectors):
    """Raise ValueError unless there are `n_vectors` vectors of this name with the model's number of features."""
    if n_vectors and not hasattr(model, "n_features_in_"):
        raise ValueError("n_features_in_ must be known if there are support vectors.")
    if model.kernel == "precomputed" and set(parts_of(name)) & set(arrays):
        raise ValueError(f"{name}.data does not belong to this model.")
    n_features = getattr(model, "n_features_in_", 0)
    check_vectors(name, arrays, (0, 0) if model.kernel == "precomputed" else (n_vectors, n_features))
