"""What a fitted model computes, as arrays: the one description that all exports are written from.

A `Scorer` is a function of the features and an outcome of its values.

    LinearFunction    f(x) = W x + b
    KernelFunction    f(x) = Σ_i c_i K(x_i, x) + b

    Number            regression and ranking: the value
    SecondIfPositive  two classes: the second if f > 0
    LargestScore      one value for each class: the class of the largest
    Ordered           ordered classes: the number of thresholds below f
    Pairs             one value for each pair of classes, positive for its first: the class with the most votes
    Inlier            one class: +1 if f >= 0, otherwise −1
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.extmath import row_norms
from sklearn.utils.validation import check_is_fitted

from widemargin.kernels.functions import Kernel
from widemargin.models.cutting_plane.measure import MeasureSVC
from widemargin.models.cutting_plane.ordinal import OrdinalSVC
from widemargin.models.cutting_plane.ranking import RankSVM
from widemargin.models.cutting_plane.roc_area import ROCAreaSVC
from widemargin.models.kernel.nu_svc import NuSVC
from widemargin.models.kernel.nu_svr import NuSVR
from widemargin.models.kernel.one_class import RELATIVE_ROUNDING, RELATIVE_ROUNDING_OF_TERMS, OneClassSVM
from widemargin.models.kernel.svc import SVC
from widemargin.models.kernel.svr import SVR
from widemargin.models.linear import LinearSVC, LinearSVR
from widemargin.models.linear_one_class import RELATIVE_ROUNDING as RELATIVE_ROUNDING_OF_LINEAR
from widemargin.models.linear_one_class import LinearOneClassSVM
from widemargin.models.multiclass import blocks_of, order_of, pair_coefficients
from widemargin.models.probabilities import has_logistic_scores
from widemargin.persistence.kernel_fields import arrays_of, check_arrays
from widemargin.persistence.model_file import plain_model
from widemargin.persistence.vector_fields import check_numbers

MAX_BYTES = 2_000_000_000  # of arrays in an exported file; the format of ONNX, protobuf, ends at 2 GiB
_LARGEST_INTEGER = np.iinfo(np.int64).max


@dataclass(frozen=True)
class LinearFunction:
    """f(x) = weights x + intercept, with weights (n_outputs, n_features)."""

    weights: np.ndarray
    intercept: np.ndarray


@dataclass(frozen=True)
class KernelFunction:
    """f(x) = Σ_i coefficients_i K(vectors_i, x) + intercept, with coefficients (n_outputs, n_vectors).

    The kernel is not the linear one, whose functions are LinearFunctions.
    If there are `ends`, the vectors are those of classes, from ends[c] to ends[c + 1], and the coefficients are the
    table of `models.multiclass`, from which the values of all pairs of classes follow.
    """

    kernel: Kernel
    vectors: np.ndarray
    coefficients: np.ndarray
    intercept: np.ndarray
    ends: np.ndarray | None = None


@dataclass(frozen=True)
class Number:
    """The value itself, of a regression or a ranking."""


@dataclass(frozen=True)
class SecondIfPositive:
    """The second of two classes if f > 0; with `logistic`, its probability is the logistic function of f."""

    classes: np.ndarray
    logistic: bool = False


@dataclass(frozen=True)
class LargestScore:
    """The class of the largest value; with `logistic`, probabilities are logistic functions divided by their sum."""

    classes: np.ndarray
    logistic: bool = False


@dataclass(frozen=True)
class Ordered:
    """The class whose number is that of the thresholds below f."""

    classes: np.ndarray
    thresholds: np.ndarray


@dataclass(frozen=True)
class Pairs:
    """The class with the most votes of the pairs of classes; of several such classes, the first in `order`.

    `one_against_rest` says which decision values are asked for, `break_ties` and `by_probability` how the class is
    chosen. Probabilities of the first classes of pairs are those of `sigmoids`, A and B in two rows, or of `curves`,
    points of an isotonic function for each pair, or there are none.
    """

    classes: np.ndarray
    order: np.ndarray
    one_against_rest: bool
    break_ties: bool
    by_probability: bool
    sigmoids: np.ndarray | None
    curves: list[np.ndarray] | None

    @property
    def has_probabilities(self):
        """Whether there are probabilities."""
        return self.sigmoids is not None or self.curves is not None


@dataclass(frozen=True)
class Inlier:
    """+1 if f >= 0, otherwise −1.

    f is zero where it is at most `rounding`, plus `rounding_of_terms` times the function `terms` of the norm of x, of
    `n_features` features, if there is one. The probability depends on the bin between `marks` that contains f, unless
    these are None.
    """

    rounding: float
    terms: LinearFunction | KernelFunction | None = None
    rounding_of_terms: float = RELATIVE_ROUNDING_OF_TERMS
    marks: np.ndarray | None = None
    n_features: int = 0


class Scorer(NamedTuple):
    """A fitted model as a function of the features and an outcome of its values."""

    name: str
    n_features: int
    function: LinearFunction | KernelFunction
    outcome: Any

    @property
    def classes(self):
        """The labels of the classes; None if there are none."""
        return getattr(self.outcome, "classes", None)


def scorer_of(model):
    """Return the Scorer of a fitted model.

    Raises
    ------
    TypeError
        If it is not an estimator of this package, or no export can hold its kernel or its labels.
    NotFittedError
        If it is not fitted.
    ValueError
        If it is not valid: weights that are not finite, or shapes that do not match.
    """
    model = plain_model(model)
    if type(model) not in _SCORERS:
        raise TypeError(
            f"{type(model).__name__} cannot be exported: use save_model, or fit an SVC to the labels it chose."
        )
    check_is_fitted(model, "intercept_")
    function, outcome = _SCORERS[type(model)](model)
    if getattr(outcome, "classes", None) is not None:
        outcome = replace(outcome, classes=_plain_labels(outcome.classes))
    return Scorer(type(model).__name__, int(model.n_features_in_), function, outcome)


def linear_scorer_of(model, function):
    """Return the Scorer of a fitted linear model; TypeError, which names the function that asks, if it is another."""
    scorer = scorer_of(model)
    if not isinstance(scorer.function, LinearFunction):
        has = f"the kernel {scorer.function.kernel.name!r}, and its scores are sums over vectors"
    elif isinstance(scorer.outcome, Pairs):
        has = "a function for each pair of classes, which vote"
    elif getattr(scorer.outcome, "terms", None) is not None:
        has = "a boundary with the rounding of sums over vectors"
    else:
        return scorer
    raise TypeError(
        f"{function} writes models with a weight for each feature; this {scorer.name} has {has}. Use export_onnx, or "
        "fit a linear model such as LinearSVC."
    )


def _plain_labels(classes):
    """Return labels as int64, float64, bool or an array of str objects; TypeError if they are none of these."""
    kind = classes.dtype.kind
    if kind in "iu" and int(classes.max()) <= _LARGEST_INTEGER:
        return classes.astype(np.int64)
    if kind in "bf":
        return classes.astype(bool if kind == "b" else np.float64)
    names = classes.tolist()
    if kind not in "UO" or not all(isinstance(name, str) for name in names):
        raise TypeError(f"classes_ must be numbers, booleans or strings to be exported, got type {classes.dtype}.")
    return np.array(names, dtype=object)


def _dense(array):
    """Return an array or sparse matrix as a float64 array; ValueError if no exported file could hold it."""
    n_bytes = 8 * array.shape[0] * array.shape[-1] if array.ndim > 1 else 8 * array.shape[0]
    if n_bytes > MAX_BYTES:
        raise ValueError(
            f"An array of shape {array.shape} takes {n_bytes / 1e9:.1f} GB with its zeros, and an exported file holds "
            "at most 2 GB. Use save_model, which keeps sparse arrays sparse, or compress the model."
        )
    return np.asarray(array.toarray() if issparse(array) else array, dtype=np.float64)


def _linear(model):
    """Return the LinearFunction of a model with `coef_`, or the KernelFunction of one on a basis."""
    if hasattr(model, "basis_coef_"):
        kernel = Kernel(model.kernel, gamma=model._gamma, coef0=float(model.coef0), degree=int(model.degree))
        intercept = np.broadcast_to(np.asarray(model.intercept_, np.float64), len(model.basis_coef_)).copy()
        return _expansion(kernel, _dense(model.basis_), _dense(model.basis_coef_), intercept)
    weights = np.atleast_2d(_dense(model.coef_))
    intercept = np.broadcast_to(np.asarray(model.intercept_, np.float64), len(weights)).copy()
    check_numbers("coef_", weights, [(len(intercept), model.n_features_in_)])
    check_numbers("intercept_", intercept, [(len(weights),)])
    return LinearFunction(weights, intercept)


def _expansion(kernel, vectors, coefficients, intercept, ends=None):
    """Return the KernelFunction, or for the linear kernel the LinearFunction of the same values.

    Without vectors there is one of zeros, whose coefficients are zero: not all programs take arrays without rows.
    """
    if not len(vectors):
        vectors, ends = np.zeros((1, vectors.shape[1])), None
        coefficients = np.zeros((len(intercept), 1))
    if kernel.name != "linear":
        return KernelFunction(kernel, vectors, coefficients, intercept, ends)
    if ends is not None:
        coefficients = pair_coefficients(coefficients, np.diff(ends))
    return LinearFunction(coefficients @ vectors, intercept)


def _machine(model, n_classes=2, sign=1.0):
    """Return the function of a kernel machine, its values multiplied by `sign`."""
    if not isinstance(model.kernel, str) or model.kernel == "precomputed":
        what = "a Python function" if callable(model.kernel) else "a matrix of the caller's"
        raise TypeError(
            f"kernel={model.kernel!r} cannot be exported: its values come from {what}, which the exported file does "
            'not have. Fit with kernel "linear", "poly", "rbf" or "sigmoid".'
        )
    if not hasattr(model, "n_features_in_"):
        raise ValueError("The model has no support vectors and does not say how many features it takes.")
    check_arrays(model, arrays_of(model, keep_dual=False))
    is_on_basis = hasattr(model, "basis_coef_")
    vectors = _dense(model.basis_ if is_on_basis else model.support_vectors_)
    coefficients = _dense(model.basis_coef_ if is_on_basis else model.dual_coef_)
    ends = blocks_of(model.n_support_) if n_classes > 2 and not is_on_basis else None
    kernel = Kernel(model.kernel, gamma=model._gamma, coef0=float(model.coef0), degree=int(model.degree))
    return _expansion(kernel, vectors, sign * coefficients, sign * np.asarray(model.intercept_, np.float64), ends)


def _linear_classifier(model):
    rule = SecondIfPositive if len(model.classes_) == 2 else LargestScore
    return _linear(model), rule(model.classes_, has_logistic_scores(model))


def _plane_classifier(model):
    return _linear(model), SecondIfPositive(model.classes_)


def _linear_number(model):
    return _linear(model), Number()


def _ordered(model):
    check_numbers("thresholds_", model.thresholds_, [(len(model.classes_) - 1,)])
    return _linear(model), Ordered(model.classes_, np.asarray(model.thresholds_))


def _linear_one_class(model):
    return _linear(model), Inlier(float(RELATIVE_ROUNDING_OF_LINEAR * np.abs(model.offset_[0])))


def _machine_number(model):
    return _machine(model), Number()


def _machine_classifier(model):
    """Return the function of the pairs of classes, positive for the first of each, and the Pairs."""
    if model.break_ties and model.decision_function_shape == "ovo":
        raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")
    n_classes = len(model.classes_)
    sigmoids = np.stack([model.probA_, model.probB_]) if model.probA_.size else None
    curves = None
    if sigmoids is None and hasattr(model, "isotonic_ends_"):
        curves = np.split(model.isotonic_points_, model.isotonic_ends_[1:-1])
    if model.predict_by == "probability" and sigmoids is None and curves is None:
        raise ValueError("predict_by='probability' needs probabilities, which this model was fitted without.")
    outcome = Pairs(
        classes=model.classes_,
        order=np.asarray(order_of(model)),
        one_against_rest=model.decision_function_shape == "ovr",
        break_ties=bool(model.break_ties),
        by_probability=model.predict_by == "probability",
        sigmoids=sigmoids,
        curves=curves,
    )
    return _machine(model, n_classes, sign=-1.0 if n_classes == 2 else 1.0), outcome


def _machine_one_class(model):
    """Return the function of a OneClassSVM, and the Inlier: see `OneClassSVM._rounded_to_boundary`."""
    function = _machine(model)
    rounding, marks = RELATIVE_ROUNDING * abs(float(model.offset_[0])), getattr(model, "density_marks_", None)
    if model.kernel not in ("linear", "poly"):
        return function, Inlier(rounding, marks=marks)
    is_on_basis = hasattr(model, "basis_coef_")
    norms = row_norms(model.basis_ if is_on_basis else model.support_vectors_).astype(np.float64)
    sizes = np.abs(_dense(model.basis_coef_ if is_on_basis else model.dual_coef_))
    if not len(norms):
        return function, Inlier(rounding, marks=marks)
    kernel = Kernel(model.kernel, gamma=model._gamma, coef0=abs(float(model.coef0)), degree=int(model.degree))
    of_mean = sizes @ _values(kernel, norms * norms.mean())
    terms = _expansion(kernel, norms[:, np.newaxis], sizes, of_mean)
    return function, Inlier(rounding, terms, marks=marks, n_features=model.n_features_in_)


def _values(kernel, products):
    """Return the values of a linear or polynomial kernel from inner products."""
    return products if kernel.name == "linear" else (kernel.gamma * products + kernel.coef0) ** kernel.degree


_SCORERS = {
    LinearSVC: _linear_classifier,
    LinearSVR: _linear_number,
    LinearOneClassSVM: _linear_one_class,
    RankSVM: _linear_number,
    OrdinalSVC: _ordered,
    ROCAreaSVC: _plane_classifier,
    MeasureSVC: _plane_classifier,
    SVC: _machine_classifier,
    NuSVC: _machine_classifier,
    SVR: _machine_number,
    NuSVR: _machine_number,
    OneClassSVM: _machine_one_class,
}
