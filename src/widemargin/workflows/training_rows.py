"""Rows of a file as a model is fitted to them, and where the fitted model goes."""

import os
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike
from scipy.sparse import csr_array
from sklearn.base import is_classifier

from widemargin.models.cutting_plane.ranking import RankSVM
from widemargin.workflows.errors import ArgumentError, FileError
from widemargin.workflows.files import name_of, note_queries, read_rows, write_model
from widemargin.workflows.precomputed import number_support, read_kernel_rows, square
from widemargin.workflows.spelling import spelled

_LARGEST_EXACT = 2.0**53  # whole numbers up to this are all doubles
_LARGEST_LABELS = dict.fromkeys(["liblinear", "libsvm", "svmlight"], 2**31 - 1)  # in files of that format


class Reading(NamedTuple):
    """How a training file is read: the format of the model to come, columns, base of indices and type of values."""

    format: str
    n_features: int | None
    zero_based: str | bool
    dtype: DTypeLike


class TrainingFile(NamedTuple):
    """What a model is fitted to, of a precomputed kernel the serial numbers of its rows, of a ranking their queries."""

    X: np.ndarray | csr_array
    y: np.ndarray
    n_columns: int
    serial: np.ndarray | None = None
    qid: np.ndarray | None = None


def read_training_rows(model, data, reading):
    """Return the rows, labels of classes as integers; refuse labels that are no classes, and weights of none."""
    if getattr(model, "kernel", None) == "precomputed":
        K, serial, y = read_kernel_rows(data, dtype=reading.dtype)
        rows = TrainingFile(square(K, serial), y, K.shape[1], serial)
    else:
        how = {"n_features": reading.n_features, "dtype": reading.dtype, "zero_based": reading.zero_based}
        X, y, qid = read_rows(data, **how)
        note_queries(data, qid, wanted=isinstance(model, RankSVM))
        rows = TrainingFile(X, y, X.shape[1], qid=qid)
    return rows._replace(y=_check_classes(model, y, name_of(data), reading.format)) if is_classifier(model) else rows


def _check_classes(model, y, name, form):
    """Return the labels as integers; refuse those that are none, and weights of classes that no row has."""
    broken = np.flatnonzero((y != np.round(y)) | (np.abs(y) > _LARGEST_EXACT))
    if len(broken):
        raise FileError(
            f"{name}: the label of row {broken[0] + 1} is {y[broken[0]]}, but classes are whole numbers; "
            f"for regression {spelled('take SVR or LinearSVR')}"
        )
    largest, option = _LARGEST_LABELS.get(form, _LARGEST_EXACT), f"{spelled('format')} {form}"
    if np.abs(y).max() > largest:
        raise FileError(f"{name}: labels in files of {option} end at {largest}; leave the option out")
    if form == "svmlight" and len(np.unique(y)) > 2:
        raise FileError(
            f"{name}: files of {option} have one weight vector, and no place for {len(np.unique(y))} classes; "
            "leave the option out"
        )
    if isinstance(getattr(model, "class_weight", None), dict):
        absent = set(model.class_weight) - set(y)
        if absent:
            weights = spelled("class_weight")
            raise FileError(f"{name}: no row has the label {min(absent):g} that {weights} gives a weight; leave it out")
    return y.astype(np.int64)


def choose_target(data, target):
    """Return where the model goes: as asked, or as svm-train chooses."""
    if target is None and (data == "-" or not isinstance(data, str)):
        source = "standard input" if data == "-" else "a file object"
        raise ArgumentError(f"{spelled('the output for the model')} must be named if {spelled('data')} is {source}")
    return os.path.basename(data) + ".model" if target is None else target


def keep_model(model, target, form, rows):
    """Write a model fitted to the rows of a file."""
    if rows.serial is not None:
        number_support(model, rows.n_columns, rows.serial)
    write_model(model, target, form)


def certified_gap(model):
    """Return the certified gap of a fitted model: 0 where rounding puts its lower bound above its objective."""
    return max(float(model.gap_), 0.0)
