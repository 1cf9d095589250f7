"""Checks of the arguments of `fit` and `predict`: X, y, sample_weight and class_weight.

They are those of scikit-learn, and some that it does not have: sparse matrices whose arrays are inconsistent, and None
or NaN in arrays of objects. Class labels become integers here. Messages name the argument.
"""

from numbers import Real

import numpy as np
from scipy.sparse import csr_array, issparse, isspmatrix
from sklearn import get_config
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

from widemargin._runtime.threads import run, split
from widemargin._runtime.warning import warn_caller
from widemargin.data.blocks.row_blocks import RowBlocks
from widemargin.data.byte_rows import BYTES
from widemargin.data.structure import checked_csr
from widemargin.models.sklearn_private import _check_sample_weight, _num_samples

_LABEL_KINDS = "iubU"  # kinds of dtype whose values are valid class labels without a further check
_ROWS_WORTH_COUNTING = 500  # with integer labels, from which on counting them is faster than sorting
_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
_VALUES_PER_TASK = 1 << 20  # of an array that is looked through for NaN and infinity
_OPTIONS_OF_PLAIN_ARRAYS = {"accept_sparse", "order", "reset"}  # of `checked_rows`, which `_is_plain` knows


def checked_rows(model, X, *y, y_numeric=False, keeps_bytes=False, **options):
    """Return X as an array or as CSR in canonical format, float32 or float64 and finite; and y, if given, checked.

    Sparse matrices stay matrices and sparse arrays stay arrays, and so do the fitted attributes made from them; with
    scikit-learn's configuration `sparse_interface="sparray"`, all become arrays.

    Parameters
    ----------
    model : estimator
        Its `n_features_in_` and `feature_names_in_` are set or, with reset=False, compared with X.
    X : array-like or sparse matrix
    *y : array-like
        The targets, if there are any.
    y_numeric : bool, default=False
        Whether targets must be numbers.
    keeps_bytes : bool, default=False
        Whether arrays of int8 and uint8 are returned as they are.
    **options
        Passed to scikit-learn's `validate_data`.
    """
    if isinstance(X, RowBlocks):
        return _checked_blocks(model, X, *y, y_numeric=y_numeric, reset=options.get("reset", True))
    X, y = as_numpy(X, "X"), tuple(as_numpy(targets, "y") for targets in y)
    for targets in y:
        refuse_missing(targets, "y")
    if issparse(X):
        X = checked_csr(X, finite=not get_config()["assume_finite"])
        if isspmatrix(X) and get_config().get("sparse_interface") == "sparray":  # scikit-learn 1.9 and later
            X = csr_array(X)
    kinds = _FLOATS if issparse(X) or not keeps_bytes else _FLOATS + BYTES
    is_simple = options.keys() <= _OPTIONS_OF_PLAIN_ARRAYS
    if is_simple and _is_plain(model, X, *y, kinds=kinds, y_numeric=y_numeric, **options):
        if options.get("reset", True):
            vars(model).pop("feature_names_in_", None)
            model.n_features_in_ = X.shape[1]
        return (X, y[0].astype(np.float64) if y_numeric else y[0]) if y else X
    if issparse(X):
        options["ensure_all_finite"] = False  # `checked_csr` has checked it
    options = {"accept_sparse": "csr", "dtype": list(kinds), **options}
    if not y:
        return validate_data(model, X, **options)
    X, targets = validate_data(model, X, *y, y_numeric=y_numeric, **options)
    return X, finite_targets(targets) if y_numeric else targets


def as_numpy(array, name):
    """Return an array that speaks DLPack and not NumPy's own protocol as an ndarray; others as they are.

    TypeError if its memory is not the CPU's.
    """
    if not hasattr(array, "__dlpack__") or hasattr(array, "__array__"):
        return array
    try:
        return np.from_dlpack(array)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise TypeError(
            f"{name} must be in the memory of the CPU, got a {type(array).__name__} that NumPy cannot read ({error}). "
            "Copy it to the CPU first."
        ) from error


def _is_plain(model, X, *y, kinds, y_numeric, reset=True, order=None, accept_sparse="csr"):
    """Return whether `validate_data` would return X and y as they are: ordinary arrays of finite numbers that fit.

    An array X has one of the types `kinds`; X may also be what `checked_csr` returns. Everything else is left to
    scikit-learn, whose checks take longer than a small fit.
    """
    is_sparse, are_arrays = issparse(X) and accept_sparse == "csr", type(X) is np.ndarray and X.ndim == 2
    if not (is_sparse or (are_arrays and X.dtype in kinds and (order != "C" or X.flags.c_contiguous))):
        return False
    if min(X.shape) == 0:
        return False
    if not reset and (hasattr(model, "feature_names_in_") or X.shape[1] != getattr(model, "n_features_in_", -1)):
        return False
    letters = "biuf" if y_numeric else "biufU"
    if not all(type(one) is np.ndarray and one.shape == X.shape[:1] and one.dtype.kind in letters for one in y):
        return False
    if get_config()["assume_finite"]:
        return True
    return all(_has_finite_sums(array, getattr(model, "n_jobs", None)) for array in (y if is_sparse else (X, *y)))


def _has_finite_sums(array, n_jobs):
    """Return whether the sums of some rows at a time are finite; then all of their values are."""
    if array.dtype.kind != "f":
        return True

    def is_finite(begin, end):
        with np.errstate(over="ignore", invalid="ignore"):
            return bool(np.isfinite(array[begin:end].sum()))

    return all(run(is_finite, split(len(array), array.size // _VALUES_PER_TASK + 1), n_jobs))


def _checked_blocks(model, blocks, *y, y_numeric, reset):
    """Return a RowBlocks, whose values were checked when it was written; and y, by default the labels of its file."""
    n_features = blocks.shape[1]
    if reset:
        model.n_features_in_ = n_features
    elif n_features != model.n_features_in_:
        raise ValueError(
            f"X has {n_features} features, but {type(model).__name__} is expecting {model.n_features_in_} features."
        )
    names = None if blocks.feature_names is None else np.array(blocks.feature_names, dtype=object)
    if reset:
        vars(model).pop("feature_names_in_", None)
        if names is not None:
            model.feature_names_in_ = names
    else:
        _check_names(model, names)
    if not y:
        return blocks
    targets = blocks.labels if y[0] is None else column_or_1d(y[0], warn=True)
    if len(targets) != len(blocks):
        raise ValueError(f"y has {len(targets)} values, the row blocks have {len(blocks)} rows.")
    refuse_missing(targets, "y")
    return blocks, finite_targets(targets) if y_numeric else targets


def _check_names(model, names):
    """Raise ValueError if features have other names than at fit; warn if only one side has names, as scikit-learn."""
    fitted, kind = getattr(model, "feature_names_in_", None), type(model).__name__
    if fitted is None and names is None:
        return
    if fitted is None:
        warn_caller(f"The row blocks have feature names, but {kind} was fitted without feature names.", UserWarning)
    elif names is None:
        warn_caller(f"The row blocks have no feature names, but {kind} was fitted with feature names.", UserWarning)
    elif not np.array_equal(fitted, names):
        j = int(np.argmax(fitted != names))
        raise ValueError(
            f"The features of the row blocks must have the names and the order of those that {kind} was fitted with: "
            f"feature {j} is {names[j]!r}, at fit it was {fitted[j]!r}."
        )


def finite_targets(y):
    """Return targets as a float64 array; ValueError unless they are finite numbers in one dimension."""
    y = np.asarray(column_or_1d(y, warn=True))
    if y.dtype.kind not in "biufOUS":
        kind = "Complex data not supported: " if y.dtype.kind == "c" else ""
        raise ValueError(f"{kind}y must hold real numbers, got {y.dtype}.")
    try:
        numbers = y.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"y must hold numbers, got {y.dtype}: {error}.") from error
    if not np.isfinite(numbers).all():
        row = int(np.flatnonzero(~np.isfinite(numbers))[0])
        what = "NaN" if np.isnan(numbers[row]) else "infinity"
        raise ValueError(f"Input y contains {what}: row {row}. Every target must be finite.")
    return numbers


def encode_labels(y):
    """Return (classes, label): the distinct labels, sorted, and for each row the position of its label in `classes`.

    Raises
    ------
    ValueError
        If y has fewer than two classes, or does not consist of class labels.
    """
    if y.ndim != 1 or not (y.dtype.kind in _LABEL_KINDS or _are_whole(y)):  # the check would take as long as a fit
        check_classification_targets(y)
    counts = len(y) >= _ROWS_WORTH_COUNTING and np.can_cast(y.dtype, np.int64)
    try:
        classes, label = _encode_integers(y) if counts else (np.unique(y), None)
    except TypeError as error:  # None among strings, or strings among numbers
        raise ValueError(f"y must hold labels of one kind, without missing ones: {error}.") from error
    if len(classes) < 2:
        raise ValueError(f"y must hold at least 2 classes, got 1 class: {classes.tolist()}.")
    if label is not None:
        return classes, label
    if len(classes) == 2:
        return classes, (y == classes[1]).astype(np.intp)  # much faster than a binary search
    return classes, np.searchsorted(classes, y)


def _encode_integers(y):
    """Return what `encode_labels` does for integers, by counting; the labels are None where they lie far apart."""
    low, high = int(y.min()), int(y.max())
    if high - low >= len(y):
        return np.unique(y), None
    place = np.subtract(y, low, dtype=np.int64)
    is_class = np.bincount(place) > 0
    classes = np.flatnonzero(is_class)
    label = place if len(classes) == len(is_class) else (np.cumsum(is_class) - 1)[place]
    return (classes + low).astype(y.dtype), label.astype(np.intp, copy=False)


def _are_whole(y):
    """Return whether an array holds floating point numbers that are integers, as class labels may."""
    return y.dtype.kind == "f" and bool((np.floor(y) == y).all() and np.isfinite(y).all())


def refuse_missing(values, name):
    """Raise ValueError if an array of objects contains None, NaN, pandas' NA or another missing value."""
    array = np.asarray(values, dtype=object) if isinstance(values, list) and None in values else values
    if getattr(getattr(array, "dtype", None), "kind", None) != "O" or getattr(array, "ndim", 1) != 1:
        return
    for row, one in enumerate(np.asarray(array).tolist()):
        if one is None or not _equals_itself(one):
            shown = "None" if one is None else "NaN"
            raise ValueError(f"Input {name} contains {shown}, not a value: row {row}. Leave out rows without one.")


def _equals_itself(one):
    """Return whether one == one; for NaN this is False, and for pandas' NA it has no truth value."""
    try:
        return bool(one == one)
    except (TypeError, ValueError):
        return False


def checked_weights(sample_weight, X, *, non_negative):
    """Return one finite weight per row of X, as float64; ones if `sample_weight` is None.

    Parameters
    ----------
    sample_weight : array-like, number or None
    X : array-like or sparse matrix
        The rows.
    non_negative : bool
        Whether a negative weight is refused.
    """
    if sample_weight is None and isinstance(X, RowBlocks):
        sample_weight = X.weight
    if sample_weight is None and isinstance(X, RowBlocks):
        return np.broadcast_to(1.0, len(X))  # vectors over rows are what memory is short of
    if sample_weight is None:
        return np.ones(X.shape[0] if hasattr(X, "shape") else _num_samples(X))
    refuse_missing(sample_weight, "sample_weight")
    given = np.asarray(sample_weight)
    if given.dtype.kind == "c" or given.ndim > 1 or given.size == 0:
        raise ValueError(
            f"sample_weight must hold a real number for each of {_num_samples(X)} rows, "
            f"got {given.dtype} of shape {given.shape}."
        )
    try:
        given = given.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"sample_weight must hold numbers, got {given.dtype}: {error}.") from error
    if given.shape == (_num_samples(X),) and not given.any():
        return given  # the estimators that need a positive weight raise their own error
    weight = given if given.ndim else float(given)
    weight = _check_sample_weight(weight, X, dtype=np.float64, ensure_non_negative=non_negative)
    if not np.isfinite(weight).all():
        raise ValueError(f"Input sample_weight contains infinity or NaN: {weight[~np.isfinite(weight)][0]}.")
    return weight


def check_class_weight(class_weight):
    """Raise ValueError unless all values of a dict of class weights are finite and not negative."""
    for label, factor in class_weight.items() if isinstance(class_weight, dict) else ():
        if not isinstance(factor, Real) or not 0.0 <= factor < np.inf:
            raise ValueError(
                f"class_weight must have a finite number, 0 or larger, for each class, got {factor!r} for {label!r}."
            )


def narrowed(label):
    """Return labels 0, 1, ... in the narrowest type of integers that holds them."""
    return label.astype(np.min_scalar_type(int(label.max(initial=0))))


def scaled_rows(factor, weight):
    """Return factor times weight; if all weights are one number without memory of its own, so is the result."""
    return np.broadcast_to(factor * weight[0], len(weight)) if weight.strides == (0,) else factor * weight


def class_factors(class_weight, classes, label, weight):
    """Return the factor of C of each class, or None without class weights; "balanced" counts rows of positive weight.

    `label` has the position of each row's label in `classes`. A class that is not counted has the factor 0.
    """
    if class_weight is None:
        return None
    counted = classes[label if class_weight != "balanced" else label[weight > 0.0]]
    present = np.unique(counted)
    factor = np.zeros(len(classes))
    factor[np.searchsorted(classes, present)] = compute_class_weight(class_weight, classes=present, y=counted)
    return factor
