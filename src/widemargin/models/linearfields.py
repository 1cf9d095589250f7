"""What a fitted linear model keeps, and the rules that it obeys.

always         `coef_`, `intercept_`
dual solvers   `dual_coef_`; cutting planes have none
OrdinalSVC     `thresholds_`, ascending, one less than there are classes; `coef_` has one dimension
"""

import numpy as np
from scipy.sparse import csr_matrix, issparse
from sklearn.base import is_classifier

from widemargin.models.encoding import fact
from widemargin.models.measures import MeasureSVC
from widemargin.models.planes import PlaneModel
from widemargin.models.ranking import OrdinalSVC
from widemargin.problems.measures import parsed


def arrays_of(model, keep_dual):
    """Return the arrays of a fitted model by name."""
    coef = model.coef_.toarray() if issparse(model.coef_) else np.asarray(model.coef_)
    arrays = {"coef_": coef, "intercept_": np.asarray(model.intercept_)}
    if keep_dual and hasattr(model, "dual_coef_"):
        arrays["dual_coef_"] = np.asarray(model.dual_coef_)
    if isinstance(model, OrdinalSVC):
        arrays["thresholds_"] = np.asarray(model.thresholds_)
    return arrays


def facts_of(model):
    """Return what JSON takes of a fitted model."""
    facts = {"coef_is_sparse": issparse(model.coef_)}
    if hasattr(model, "n_iter_"):
        facts["n_iter_"] = int(model.n_iter_)
    return facts


def restore(model, facts, arrays):
    """Set the attributes that the facts and arrays describe; raise ValueError if they break a rule."""
    check_weights(model, arrays)
    for key, array in arrays.items():
        setattr(model, key, float(array) if array.ndim == 0 else array)
    if facts.get("coef_is_sparse") is True:
        model.coef_ = csr_matrix(model.coef_)
    if "n_iter_" in facts:
        model.n_iter_ = fact(facts, "n_iter_", int)


def check_weights(model, arrays):
    """Raise ValueError unless the arrays are those of a linear model, and fit its features and classes."""
    is_ordinal, by_planes = isinstance(model, OrdinalSVC), isinstance(model, PlaneModel)
    known = {"coef_", "intercept_", "thresholds_" if is_ordinal else None, None if by_planes else "dual_coef_"}
    unknown = sorted(set(arrays) - known)
    if unknown:
        raise ValueError(f"a model has no array named {unknown[0]!r}.")
    outputs = ()
    if is_classifier(model) and not is_ordinal:
        outputs = (1 if len(model.classes_) == 2 else len(model.classes_),)
    rules = {"coef_": [(*outputs, model.n_features_in_)], "intercept_": [(), outputs or (1,)]}
    if "dual_coef_" in arrays:
        rules["dual_coef_"] = [(*outputs, arrays["dual_coef_"].shape[-1] if arrays["dual_coef_"].ndim else 0)]
    if is_ordinal:
        rules["thresholds_"] = [(len(model.classes_) - 1,)]
    for name, shapes in rules.items():
        check_numbers(name, arrays.get(name), shapes)
    if by_planes:
        _check_task(model, arrays)


def _check_task(model, arrays):
    """Raise ValueError unless classes, thresholds and the measure are such as the model can have."""
    if isinstance(model, OrdinalSVC):
        if (np.diff(arrays["thresholds_"]) < 0.0).any():
            raise ValueError("thresholds_ must ascend.")
    elif is_classifier(model) and len(model.classes_) != 2:
        raise ValueError(f"classes_ of {type(model).__name__} must be two labels, got {len(model.classes_)}.")
    if isinstance(model, MeasureSVC):
        check_measure(model)


def check_measure(model):
    """Raise ValueError unless the measure of a MeasureSVC is one that there is."""
    if not isinstance(model.measure, str):
        raise ValueError(f"measure must be a string, got {type(model.measure).__name__}.")
    parsed(model.measure)


def check_numbers(name, array, shapes):
    """Raise ValueError unless an array is there, holds finite floating point numbers, and has one of the shapes."""
    if array is None:
        raise ValueError(f"the array {name} is missing.")
    if array.dtype not in (np.float64, np.float32):
        raise ValueError(f"{name} must hold floating point numbers, got {array.dtype}.")
    if array.shape not in shapes:
        raise ValueError(f"{name} must have shape {shapes[-1]}, got {array.shape}.")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity.")
