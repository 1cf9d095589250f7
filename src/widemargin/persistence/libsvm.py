"""Conversion between kernel machines and LIBSVM's model text.

LIBSVM orders the classes by their first row in the training data; our models have them sorted. Its decision value for
the classes at positions i < j is positive for class i, and a support vector of class c has its coefficient in the pair
with class o in row o − 1 if o > c, in row o if o < c. Sorting the classes therefore permutes rows, and changes the sign
of whatever belongs to a pair whose classes are exchanged:

    rho → −rho,   coefficients → −coefficients,   and, as P(i) = 1 / (1 + exp(A f + B)),   A → A,   B → −B

With two classes there is one more change of sign, because in scikit-learn the decision value is positive for the second
class.

A model that was read from a file keeps the file's order of classes as `_class_order` if that is not the sorted order.
It decides which class wins a tie of votes, and it affects the result of the iteration that couples probabilities. A
model that was fitted here breaks ties and couples probabilities by sorted labels; it keeps the order of first rows as
`_seen_order`, which is used only to write the text (`written_order`), and the text records that ties are broken so.
"""

from dataclasses import replace
from functools import partial
from itertools import combinations

import numpy as np
from scipy.sparse import csr_array, issparse, vstack
from sklearn.base import is_classifier, is_outlier_detector

from widemargin.models.kernel.nu_svc import NuSVC
from widemargin.models.kernel.nu_svr import NuSVR
from widemargin.models.kernel.one_class import OneClassSVM
from widemargin.models.kernel.svc import SVC
from widemargin.models.kernel.svr import SVR
from widemargin.models.kernel.transductive import TransductiveSVC
from widemargin.persistence.kernel_fields import arrays_of, check_arrays
from widemargin.persistence.libsvm_text import KEYS, LibsvmModel, read_text, write_text
from widemargin.persistence.text import first_word, integer_labels

ESTIMATORS = {"c_svc": SVC, "nu_svc": NuSVC, "one_class": OneClassSVM, "epsilon_svr": SVR, "nu_svr": NuSVR}
_WRITTEN = {estimator: name for name, estimator in ESTIMATORS.items()} | {TransductiveSVC: "c_svc"}
_KERNELS = {
    "linear": "linear",
    "poly": "polynomial",
    "rbf": "rbf",
    "sigmoid": "sigmoid",
    "precomputed": "precomputed",
}


def recognises(head):
    """Return whether a file with these first bytes is LIBSVM's model text."""
    return first_word(head) in KEYS


def write(model):
    """Return LIBSVM's model text, as bytes, of a fitted model."""
    arrays = arrays_of(model, keep_dual=False)
    if "isotonic_ends_" in arrays:
        raise TypeError(
            "LIBSVM's text has no place for probabilities by isotonic regression. Fit with calibration='sigmoid', or "
            'save with format="widemargin".'
        )
    check_arrays(model, arrays)
    vectors, n_support = _support_of(model, arrays)
    is_precomputed = model.kernel == "precomputed"
    fields = {
        "svm_type": _WRITTEN[type(model)],
        "kernel": _KERNELS[model.kernel],
        "numbers": {"degree": int(model.degree), "gamma": float(model._gamma), "coef0": float(model.coef0)},
        "rho": -arrays["intercept_"],
        "coefficients": arrays["dual_coef_"],
        "vectors": None if is_precomputed else vectors,
        "rows": model.support_ if is_precomputed else None,
        "n_features": getattr(model, "n_features_in_", None),
    }
    if is_classifier(model):
        fields |= {"labels": np.array(integer_labels(model.classes_, "LIBSVM")), "n_support": n_support}
        if len(model.classes_) == 2:
            fields |= {"rho": arrays["intercept_"], "coefficients": -arrays["dual_coef_"]}
        if arrays["probA_"].size:
            fields |= {"probA": arrays["probA_"], "probB": arrays["probB_"]}
    elif hasattr(model, "laplace_scale_"):
        fields["probA"] = np.array([model.laplace_scale_])
    elif "density_marks_" in arrays:
        fields["marks"] = arrays["density_marks_"]
    machine = LibsvmModel(**fields)
    return write_text(_as_libsvm_orders(machine, model) if is_classifier(model) else machine)


def _support_of(model, arrays):
    """Return the vectors of a model in LIBSVM's layout, and their number in each class; sets `dual_coef_` of arrays.

    Of a machine on a basis, all pairs have coefficients of the same points. In LIBSVM's layout, a pair has vectors of
    its two classes: each class but the last has all points, with their coefficients in its pairs with later classes.
    """
    if "basis_coef_" not in arrays:
        return model.support_vectors_, getattr(model, "n_support_", None)
    coefficients, n_points = arrays["basis_coef_"], model.basis_.shape[0]
    n_classes = len(model.classes_) if is_classifier(model) else 2
    n_copies = n_classes - 1
    table = np.zeros((n_classes - 1, n_copies * n_points))
    for pair, (i, j) in zip(coefficients, combinations(range(n_classes), 2), strict=True):
        table[j - 1, i * n_points : (i + 1) * n_points] = pair
    arrays["dual_coef_"] = table
    vectors = model.basis_
    if n_copies > 1:
        join = partial(vstack, format="csr") if issparse(vectors) else np.concatenate
        vectors = join([vectors] * n_copies)
    return vectors, np.array([n_points] * n_copies + [0])


def written_order(model):
    """Return the positions in `classes_` of a classifier's labels, in the order in which svm-train writes them.

    svm-train orders labels by their first rows, except that 1 precedes −1 if these are the two labels. A model that was
    read from LIBSVM's text keeps the order of the text. Labels are sorted if the order is not known.
    """
    if hasattr(model, "_class_order"):
        return model._class_order
    if _are_signs(model.classes_):
        return np.array([1, 0])
    return getattr(model, "_seen_order", np.arange(len(model.classes_)))


def _are_signs(labels):
    return len(labels) == 2 and labels.dtype.kind in "iuf" and labels.tolist() == [-1, 1]


def _as_libsvm_orders(machine, model):
    """Return the LibsvmModel with its classes in svm-train's order, and whether ties are broken by sorted labels."""
    order = written_order(model)
    is_sorted = np.array_equal(order, np.arange(len(order)))
    if is_sorted:
        return machine
    return replace(_in_order(machine, order), ties_ascend=not hasattr(model, "_class_order"))


def read(content, path):
    """Return the model from LIBSVM's model text; FormatError with the line of the first error."""
    machine = read_text(content, path)
    kernel = next(name for name, theirs in _KERNELS.items() if theirs == machine.kernel)
    has_probability = machine.probA is not None or machine.marks is not None
    model = ESTIMATORS[machine.svm_type](kernel=kernel, **machine.numbers)
    if has_probability:
        model.set_params(probability="libsvm")
    model._gamma = machine.numbers.get("gamma", 0.0)
    if machine.n_features is not None:
        model.n_features_in_ = machine.n_features
    if is_classifier(model):
        order = np.argsort(machine.labels)
        if not np.array_equal(order, np.arange(len(order))):
            name = "_seen_order" if machine.ties_ascend else "_class_order"
            setattr(model, name, np.argsort(order))
            machine = _in_order(machine, order)
        elif _are_signs(machine.labels):
            model._class_order = order  # svm-train would have written 1 before -1
        model.classes_ = machine.labels
        model.n_support_ = machine.n_support.astype(np.int32)
        model.probA_ = machine.probA if has_probability else np.empty(0)
        model.probB_ = machine.probB if has_probability else np.empty(0)
    else:
        model.n_support_ = np.array([machine.coefficients.shape[1]], dtype=np.int32)
    sign = -1.0 if is_classifier(model) and len(model.classes_) == 2 else 1.0
    model.dual_coef_, model.intercept_ = sign * machine.coefficients, -sign * machine.rho
    if is_outlier_detector(model):
        model.offset_ = machine.rho
        if has_probability:
            model.density_marks_ = machine.marks
    elif has_probability and not is_classifier(model):
        model.laplace_scale_ = float(machine.probA[0])
    return _keep_vectors(model, machine)


def _keep_vectors(model, machine):
    """Set the support vectors, or for a precomputed kernel their row numbers; make `dual_coef_` sparse if they are."""
    if machine.rows is not None:
        model.support_, model.support_vectors_ = machine.rows.astype(np.int32), np.empty((0, 0))
        return model
    model.support_vectors_ = machine.vectors
    if issparse(machine.vectors):
        model.dual_coef_ = csr_array(model.dual_coef_)
    return model


def _in_order(machine, order):
    """Return the same LibsvmModel with its classes in another order."""
    ends = np.concatenate([[0], np.cumsum(machine.n_support)])
    vectors = np.concatenate([np.arange(*ends[c : c + 2]) for c in order])
    blocks = [_reordered(machine.coefficients[:, slice(*ends[c : c + 2])], c, order) for c in order]
    return replace(
        machine,
        labels=machine.labels[order],
        n_support=machine.n_support[order],
        coefficients=np.concatenate(blocks, axis=1),
        rho=_permuted(machine.rho, order, -1.0),
        probA=None if machine.probA is None else _permuted(machine.probA, order, 1.0),
        probB=None if machine.probB is None else _permuted(machine.probB, order, -1.0),
        vectors=None if machine.vectors is None else machine.vectors[vectors],
        rows=None if machine.rows is None else machine.rows[vectors],
    )


def _reordered(coefficients, own, order):
    """Return the coefficients (n_classes − 1, n) of the support vectors of class `own` for reordered classes."""
    others = order[order != own]
    comes_first = np.arange(len(others)) >= np.flatnonzero(order == own)[0]
    sign = np.where(comes_first == (own < others), 1.0, -1.0)
    return sign[:, np.newaxis] * coefficients[others - (others > own)]


def _permuted(numbers, order, sign):
    """Return one number per pair for reordered classes, times `sign` where the classes of a pair are exchanged."""
    pairs = np.triu_indices(len(order), 1)
    table = np.empty((len(order), len(order)))
    table[pairs], table.T[pairs] = numbers, sign * numbers
    return table[np.ix_(order, order)][pairs]
