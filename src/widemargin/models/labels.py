"""Class labels as numbers."""

import numpy as np
from sklearn.utils.multiclass import check_classification_targets


def finite_targets(y):
    """Return numeric targets as float64; refuse missing ones, which None in an array of objects becomes unseen.

    Raises
    ------
    ValueError
        If a target is NaN or infinite.
    """
    y = np.asarray(y, dtype=np.float64)
    wrong = ~np.isfinite(y)
    if wrong.any():
        i = int(np.argmax(wrong))
        raise ValueError(
            f"y must hold finite numbers, got {y[i]} (or None) in row {i}. Input contains NaN or infinity."
        )
    return y


def coded(y):
    """Return the distinct labels, in order, and the number of each row's among them; there must be at least two.

    Raises
    ------
    ValueError
        If y holds one class, or is no class labels.
    """
    check_classification_targets(y)
    try:
        classes = np.unique(y)
    except TypeError as error:  # None among strings, or strings among numbers
        raise ValueError(f"y must hold labels of one kind, without missing ones: {error}.") from error
    if len(classes) < 2:
        raise ValueError(f"y must hold at least 2 classes, got 1 class: {classes.tolist()}.")
    if len(classes) == 2:
        return classes, (y == classes[1]).astype(np.intp)  # far faster than a search
    return classes, np.searchsorted(classes, y)
