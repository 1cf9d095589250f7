"""Encoding of class labels as integers."""

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

_ALWAYS_LABELS = "iubU"  # dtype kinds whose values are valid class labels without further checks


def encode_labels(y):
    """Return (classes, label): the distinct labels, sorted, and for each row the position of its label in `classes`.

    Raises
    ------
    ValueError
        If y has fewer than two classes, or does not consist of class labels.
    """
    if y.dtype.kind not in _ALWAYS_LABELS or y.ndim != 1:  # the check would be a fifth of the time of a small fit
        check_classification_targets(y)
    try:
        classes = np.unique(y)
    except TypeError as error:  # None among strings, or strings among numbers
        raise ValueError(f"y must hold labels of one kind, without missing ones: {error}.") from error
    if len(classes) < 2:
        raise ValueError(f"y must hold at least 2 classes, got 1 class: {classes.tolist()}.")
    if len(classes) == 2:
        return classes, (y == classes[1]).astype(np.intp)  # much faster than a binary search
    return classes, np.searchsorted(classes, y)


def order_of_first(label, n_classes):
    """Return 0 .. n_classes − 1 in the order in which they first occur in `label`, where each must occur."""
    first = np.empty(n_classes, dtype=np.intp)
    first[label[::-1]] = np.arange(len(label))[::-1]  # the last assignment to an index, the first row, remains
    return np.argsort(first)
