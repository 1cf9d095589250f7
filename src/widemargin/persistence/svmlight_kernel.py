"""The lines of models with a kernel in SVM-light's model text; see `svmlight` for the layout of the file.

    kernel                        SVM-light's parameters         ours
    1  (s <x, z> + r)^d           -d degree, -s factor, -r       degree, gamma, coef0
    2  exp(−g |x − z|²)           -g                             gamma
    3  tanh(s <x, z> + r)         -s factor, -r                  gamma, coef0

A line per support vector has its coefficient in f, y_i α_i or a difference of two dual variables, and its features. Of
cutting plane models with a kernel, such as a RankSVM, a line has a basis point and its coefficient.
"""

import math

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.base import is_classifier

from widemargin.models.cutting_plane.measure import MeasureSVC
from widemargin.models.cutting_plane.ranking import RankSVM
from widemargin.models.cutting_plane.roc_area import ROCAreaSVC
from widemargin.models.kernel.nu_svc import NuSVC
from widemargin.models.kernel.nu_svr import NuSVR
from widemargin.models.kernel.svc import SVC
from widemargin.models.kernel.svr import SVR
from widemargin.models.kernel.transductive import TransductiveSVC

MACHINES = (SVC, NuSVC, SVR, NuSVR, TransductiveSVC)
ESTIMATORS = (*MACHINES, RankSVM, ROCAreaSVC, MeasureSVC)
TASKS = {"classification": SVC, "regression": SVR, "rank": RankSVM}
KERNELS = ("linear", "poly", "rbf", "sigmoid")  # by SVM-light's number
_DEFAULTS = (3, 1, 1, 1)  # -d -g -s -r


def check_machine(model):
    """Raise TypeError if SVM-light's text has no place for the kernel of a model."""
    if model.kernel not in KERNELS:
        raise TypeError(
            f"SVM-light's text has the kernels {', '.join(KERNELS)}, got kernel={model.kernel!r}. "
            'Save with format="widemargin".'
        )


def kernel_values(model):
    """Return the number of the kernel and the parameters -d -g -s -r, as texts."""
    degree, g, factor, constant = _DEFAULTS
    gamma = f"{float(model._gamma):.17g}"
    if model.kernel == "rbf":
        g = gamma
    elif model.kernel != "linear":
        degree, factor, constant = int(model.degree), gamma, f"{float(model.coef0):.17g}"
    return [KERNELS.index(model.kernel), degree, g, factor, constant]


def expansion_of(model):
    """Return the support vectors or basis points of a fitted model, and their coefficients."""
    if hasattr(model, "basis_"):
        return model.basis_, model.basis_coef_.ravel()
    return model.support_vectors_, _dense(model.dual_coef_).ravel()


def vector_lines(model):
    """Return the lines of the support vectors or basis points of a fitted model."""
    vectors, coefficients = expansion_of(model)
    vectors = csr_array(vectors)
    lines = []
    for k, coefficient in enumerate(coefficients.tolist()):
        part = slice(*vectors.indptr[k : k + 2])
        pairs = zip(vectors.indices[part].tolist(), vectors.data[part].tolist(), strict=True)
        cells = [f"{j + 1}:{value:.17g}" for j, value in sorted(pairs)]
        lines.append(" ".join([f"{coefficient:.17g}", *cells, "#"]))
    return lines


def number_of_rows(model):
    """Return the number of training rows, or of vectors if it is not known."""
    return int(model.shape_fit_[0]) if hasattr(model, "shape_fit_") else expansion_of(model)[0].shape[0]


def restore(model, kernel, numbers, X, coefficients):
    """Set the fitted attributes of a model from the support vectors and their coefficients.

    Support vectors of a classifier are ordered by class, negative coefficients first. A cutting plane model has them as
    basis points.
    """
    degree, g, factor, constant = numbers
    options = {"poly": {"degree": int(degree), "gamma": factor, "coef0": constant}, "rbf": {"gamma": g}}
    options["sigmoid"] = {"gamma": factor, "coef0": constant}
    model.set_params(kernel=kernel, **options.get(kernel, {}))
    model._gamma = float(model.gamma) if kernel != "linear" else 0.0
    if not isinstance(model, MACHINES):
        model.basis = model.basis_ = X
        model.basis_coef_ = coefficients[np.newaxis]
        return model
    order = np.arange(len(coefficients))
    model.n_support_ = np.array([len(coefficients)], dtype=np.int32)
    if is_classifier(model):
        order = np.argsort(coefficients >= 0.0, kind="stable")
        n_first = int(np.sum(coefficients < 0.0))
        model.n_support_ = np.array([n_first, len(coefficients) - n_first], dtype=np.int32)
        model.probA_, model.probB_ = np.empty(0), np.empty(0)
    model.support_vectors_, dual_coef = X[order], coefficients[order][np.newaxis]
    model.dual_coef_ = csr_array(dual_coef) if issparse(X) else dual_coef
    return model


def check_numbers(kernel, numbers):
    """Return the rule that the parameters of a kernel break, or None."""
    degree, g, factor, _ = numbers
    if kernel == "poly" and (degree != math.floor(degree) or degree < 0):
        return f"kernel parameter -d must be a whole number from 0, got {degree:g}."
    if kernel == "rbf" and g < 0.0:
        return f"kernel parameter -g must not be negative, got {g:g}."
    if kernel in ("poly", "sigmoid") and factor < 0.0:
        return f"kernel parameter -s must not be negative here, got {factor:g}."
    return None


def _dense(array):
    return array.toarray() if issparse(array) else np.asarray(array)
