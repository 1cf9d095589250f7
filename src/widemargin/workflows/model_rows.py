"""The rows of a file in the form that a model needs, to be fitted to them or to predict them."""

import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike
from scipy.sparse import csr_array, issparse
from sklearn.base import is_classifier

from widemargin._runtime import progress
from widemargin._runtime.warning import warn_caller
from widemargin.data.blocks.row_blocks import RowBlocks
from widemargin.models.base import LinearModel, WeightedModel
from widemargin.models.cutting_plane.ranking import RankSVM
from widemargin.models.kernel.base import KernelModel
from widemargin.workflows.block_files import name_of_files, open_block_files, refuse_blocks, refuse_options_of_text
from widemargin.workflows.errors import ArgumentError, FileError, FileNote, FileWarning, spelled
from widemargin.workflows.files import name_of, note_queries, read_rows, write_model
from widemargin.workflows.precomputed import number_support, read_kernel_rows, square

_LARGEST_EXACT_INTEGER = 2.0**53  # float64 represents all integers up to this one
_LARGEST_LABELS = dict.fromkeys(["liblinear", "libsvm", "svmlight"], 2**31 - 1)  # of model files in these formats


class ReadOptions(NamedTuple):
    """How a training file is read: format of the model file, number of columns, base of the indices, type of values."""

    format: str
    n_features: int | None
    zero_based: str | bool
    dtype: DTypeLike


class TrainingFile(NamedTuple):
    """The rows of a training file, with serial numbers if the kernel is precomputed and queries if there are any."""

    X: np.ndarray | csr_array | RowBlocks
    y: np.ndarray
    n_columns: int
    serial: np.ndarray | None = None
    qid: np.ndarray | None = None


def open_training_blocks(model, paths, options):
    """Return the TrainingFile of row-block files, to which a linear model or one on a basis is going to be fitted.

    The rows are not read. Labels are checked as by `read_training_rows`; those of classes may be strings.
    """
    name = name_of_files(paths)
    given = {spelled("n_features"): options.n_features is not None, spelled("zero_based"): options.zero_based != "auto"}
    refuse_options_of_text(paths, {**given, spelled("dtype"): np.dtype(options.dtype) != np.float64})
    if not isinstance(model, WeightedModel) and getattr(model, "basis", None) is None:
        refuse_blocks(paths, "a kernel machine without a basis")
    blocks = open_block_files(paths)
    y, has_words = blocks.labels, isinstance(blocks.layout.label_type, tuple)
    note_queries(name, blocks.qid, wanted=isinstance(model, RankSVM))
    if blocks.layout.has_weight and not isinstance(model, LinearModel | KernelModel):
        warn_caller(f"{name} has weights of rows, which {type(model).__name__} does not use", FileNote)
    check_words(model, y if has_words else None, name, options.format)
    if is_classifier(model):
        y = y if has_words else check_classes(model, y, name, options.format)
    return TrainingFile(blocks, y, blocks.shape[1], qid=blocks.qid)


def read_training_rows(model, data, options):
    """Return the TrainingFile of a file, to which an estimator is going to be fitted.

    For a classifier, labels are returned as integers. A FileError is raised if they are not integers, or if
    `class_weight` gives a weight to a class that has no row.
    """
    if getattr(model, "kernel", None) == "precomputed":
        K, serial, y = read_kernel_rows(data, dtype=options.dtype)
        rows = TrainingFile(square(K, serial), y, K.shape[1], serial)
    else:
        X, y, qid = read_rows(data, n_features=options.n_features, dtype=options.dtype, zero_based=options.zero_based)
        note_queries(data, qid, wanted=isinstance(model, RankSVM))
        rows = TrainingFile(X, y, X.shape[1], qid=qid)
    return rows._replace(y=check_classes(model, y, name_of(data), options.format)) if is_classifier(model) else rows


def check_words(model, words, name, form):
    """Raise a FileError if labels are words, and the model or its file needs numbers; `words` is None for numbers."""
    if words is not None and (not is_classifier(model) or form in _LARGEST_LABELS):
        what = f"a model file of {spelled('format')} {form}" if is_classifier(model) else "the task"
        raise FileError(f"{name}: labels are words, such as {str(words[0])!r}, and {what} needs numbers")


def check_classes(model, y, name, form):
    """Return class labels as integers; FileError if the labels or the class weights are not valid."""
    broken = np.flatnonzero((y != np.round(y)) | (np.abs(y) > _LARGEST_EXACT_INTEGER))
    if len(broken):
        raise FileError(
            f"{name}: the label of row {broken[0] + 1} is {y[broken[0]]}, but classes are whole numbers; "
            f"for regression {spelled('take SVR or LinearSVR')}"
        )
    largest, option = _LARGEST_LABELS.get(form, _LARGEST_EXACT_INTEGER), f"{spelled('format')} {form}"
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
    """Return the path of the model file: `target`, or if it is None, the path that svm-train would choose."""
    if target is None and (data == "-" or not isinstance(data, str)):
        source = "standard input" if data == "-" else "several files" if isinstance(data, list) else "a file object"
        raise ArgumentError(f"{spelled('the output for the model')} must be named if {spelled('data')} is {source}")
    return os.path.basename(data) + ".model" if target is None else target


def write_trained_model(model, target, form, rows):
    """Write a model that was fitted to a TrainingFile."""
    if rows.serial is not None:
        number_support(model, rows.n_columns, rows.serial)
    write_model(model, target, form)


def certified_gap(model):
    """Return the certified relative duality gap of a fitted model, or 0 if rounding has made it negative."""
    return max(float(model.gap_), 0.0)


def read_rows_for(model, data, model_path, *, zero_based):
    """Return (X, y, qid) of a file whose rows a fitted model is going to predict; qid is None if there are no queries.

    X has one column for each feature of the model. Columns beyond those of a linear model are dropped, with a warning.
    A kernel machine instead gets further features, in which its support vectors are zero.

    Parameters
    ----------
    model : fitted estimator
        The model.
    data : str or binary file object
        The file of rows.
    model_path : str
        The path of the model, for messages.
    zero_based : {"auto", True, False}
        Whether indices count from 0.
    """
    n_features = getattr(model, "n_features_in_", 0)  # a LIBSVM file without support vectors does not contain it
    if getattr(model, "kernel", None) == "precomputed":
        if zero_based != "auto":
            raise ArgumentError(
                f"{spelled('zero_based')} is for features, {model_path} has a precomputed kernel; leave it out"
            )
        K, _, y = read_kernel_rows(data, n_columns=n_features)
        return K[:, :n_features], y, None
    X, y, qid = read_rows(data, zero_based=zero_based)
    note_queries(data, qid, wanted=isinstance(model, RankSVM))
    if X.shape[1] <= n_features:
        X.resize(X.shape[0], n_features)
    elif isinstance(model, KernelModel) or hasattr(model, "basis_"):
        _widen(model, X.shape[1])
    else:
        extent = f"{name_of(data)} has {X.shape[1]} features, the model {n_features}"
        warn_caller(f"{extent}: the columns beyond are dropped", FileWarning)
        X = X[:, :n_features]
    return X, y, qid


class RowsToPredict(NamedTuple):
    """Rows for a fitted model: the parts of X, one after the other, and label and query of every row."""

    parts: Iterator[Any]
    y: np.ndarray
    qid: np.ndarray | None


def blocks_for(model, paths, model_path):
    """Return the RowsToPredict of row-block files; one block is in memory at a time.

    X has one column for each feature of the model; for columns that one of them lacks, see `read_rows_for`.
    """
    blocks, name = open_block_files(paths), name_of_files(paths)
    if getattr(model, "kernel", None) == "precomputed":
        raise FileError(f"{name} is a row-block file, which has no rows of a kernel matrix; {model_path} needs them")
    _check_names(model, blocks.feature_names, name, model_path)
    labels = getattr(model, "classes_", np.zeros(1))
    if isinstance(blocks.layout.label_type, tuple) and labels.dtype.kind in "biuf":
        raise FileError(f"{name}: labels are words, such as {blocks.layout.label_type[0]!r}, {model_path} has numbers")
    note_queries(name, blocks.qid, wanted=isinstance(model, RankSVM))
    n_features, n_columns = getattr(model, "n_features_in_", 0), blocks.shape[1]
    if n_columns > n_features:
        if isinstance(model, KernelModel) or hasattr(model, "basis_"):
            _widen(model, n_columns)
            n_features = n_columns
        else:
            extent = f"{name} has {n_columns} features, the model {n_features}"
            warn_caller(f"{extent}: the columns beyond are dropped", FileWarning)
    y = blocks.labels
    y = y if isinstance(blocks.layout.label_type, tuple) else y.astype(np.float64)
    return RowsToPredict(_parts(blocks, n_features, name), y, blocks.qid)


def _parts(blocks, n_features, name):
    """Yield the rows of each block with this number of columns."""
    with progress.task(f"predicting {os.path.basename(name)}", len(blocks), "rows") as predicting:
        for X, y in blocks:
            X = csr_array(X, dtype=np.float32 if X.dtype == np.float32 else np.float64)
            X.resize(X.shape[0], n_features)
            yield X
            predicting.advance(len(y))


def _check_names(model, names, name, model_path):
    """Raise a FileError if the features of a file have other names than those of the model, which are then removed.

    Parts of the file come without names, of which scikit-learn would warn.
    """
    of_model = vars(model).pop("feature_names_in_", None)
    if names is not None and of_model is not None and list(names) != list(of_model):
        pairs = zip(names, of_model, strict=False)
        first = next((f"{a!r} instead of {b!r}" for a, b in pairs if a != b), f"{len(names)} and {len(of_model)}")
        raise FileError(f"{name}: the features have other names than those of {model_path}: {first}")


def _widen(model, n_features):
    """Add features to a kernel machine; its support vectors or basis points are zero in them."""
    name = "basis_" if hasattr(model, "basis_") else "support_vectors_"
    before = getattr(model, name)
    vectors = csr_array(before)
    vectors.resize(vectors.shape[0], n_features)
    setattr(model, name, vectors if issparse(before) else vectors.toarray())
    model.n_features_in_ = n_features
