"""Saving and loading models.

    "widemargin"   arrays and JSON in a safetensors file: the complete model (`tensors`)
    "liblinear"    LIBLINEAR's model text, for linear models: what LIBLINEAR needs for prediction (`liblinear`)
    "libsvm"       LIBSVM's model text, for kernel machines: what LIBSVM needs for prediction (`libsvm`)
    "svmlight"     SVM-light's model text, for models with one decision function (`svmlight`)

Saving is atomic: the new file is written under a temporary name and replaces an existing file when it is complete and
on disk. Loading detects the format from the first bytes. It never executes code from the file; a file that is damaged
or is not a model file raises a `FormatError`.
"""

import os
from typing import Any, Literal

from sklearn.utils.validation import check_is_fitted

from widemargin._runtime.argument_types import FilePath
from widemargin._runtime.atomic_file import replacing
from widemargin.errors import FormatError
from widemargin.models.cutting_plane.ordinal import OrdinalSVC
from widemargin.models.kernel.base import KernelModel
from widemargin.models.linear import LinearSVC, LinearSVR
from widemargin.models.linear_one_class import LinearOneClassSVM
from widemargin.models.solved_model import SolvedModel
from widemargin.persistence import liblinear, libsvm, svmlight, tensors
from widemargin.persistence.tensors import ESTIMATORS

_FORMATS = {"widemargin": tensors, "liblinear": liblinear, "libsvm": libsvm, "svmlight": svmlight}
_ESTIMATORS_OF_TEXT = {  # OrdinalSVC is refused by `svmlight`, with the reason
    "liblinear": (LinearSVC, LinearSVR, LinearOneClassSVM),
    "libsvm": (KernelModel,),
    "svmlight": (*svmlight.ESTIMATORS, OrdinalSVC),
}
_OTHER_FILES = {  # first bytes of files that may be mistaken for model files
    b"SVM-": "a model of SVM-struct or another relative of SVM-light",
    b"\x80": "a pickle, which could run code",
}
_HEAD_BYTES = 64


def save_model(
    model: SolvedModel,
    path: FilePath,
    *,
    format: Literal["widemargin", "liblinear", "libsvm", "svmlight"] = "widemargin",  # noqa: A002
    keep_dual: bool = True,
) -> None:
    """Save a fitted model to a file; a file of that name is replaced only when the new one is complete.

    Parameters
    ----------
    model : any estimator of widemargin
        A fitted model of one of these classes, not of a subclass. Its kernel must not be a Python function, which no
        format can store. For a LinearSVCCV or LinearSVRCV the selected model is saved, a LinearSVC or LinearSVR. For an
        estimator of `widemargin.dask`, the ordinary estimator is saved, without its client.
    path : str or path
        File to write; any suffix is allowed.
    format : {"widemargin", "liblinear", "libsvm", "svmlight"}, default="widemargin"
        "widemargin" keeps all parameters and fitted attributes, except `transduction_` and `stages_` of a
        TransductiveSVC; the loaded model predicts the same to the bit.
        Parameters that are not numbers, strings, None, a RowLoss, or lists and dicts of them (callbacks, a
        RandomState) are not kept and come back as their defaults.
        "liblinear" is LIBLINEAR's text, for its `predict`: weights to the bit, labels, the kind of loss and
        `intercept_scaling`; labels must be integers. Only LinearSVC, LinearSVR and LinearOneClassSVM.
        "libsvm" is LIBSVM's text, for its `svm-predict`: support vectors and their coefficients to the bit, the kernel,
        probabilities; labels must be integers. Only kernel machines.
        "svmlight" is SVM-light's text, for its `svm_classify` and, of a RankSVM, for `svm_rank_classify`: weights, or
        support vectors and coefficients, and intercept to the bit. Those programs print scores, not labels. The two
        labels, which must be integers, the kind of model and the measure of a MeasureSVC are written to the free text
        of `-u`, from which `load_model` restores them. Only models with at most two classes: linear ones and those of
        cutting planes except an OrdinalSVC, which has several thresholds, and SVC, NuSVC, SVR, NuSVR and
        TransductiveSVC without a basis.
    keep_dual : bool, default=True
        Whether "widemargin" saves the dual variables that only a warm start needs, one number per training row:
        `dual_coef_` of a linear model (cutting plane models have none), or the dual variables that a kernel machine
        with `warm_start=True` keeps besides its support vectors. The other formats cannot store them.

    Raises
    ------
    TypeError
        If the format cannot store a model of this class, its kernel, or its labels.
    NotFittedError
        If the model has not been fitted.
    ValueError
        If `format` is unknown, or the model is not valid: weights that are not finite, or shapes that do not match.
    OSError
        If the file cannot be written; an existing file is then unchanged.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import LinearSVC, load_model, save_model
    >>> save_model(LinearSVC(C=0.5).fit(*load_iris(return_X_y=True)), "iris.model")
    >>> load_model("iris.model").C
    0.5
    """
    model = plain_model(model)
    if format not in _FORMATS:
        raise ValueError(f"format must be one of {', '.join(map(repr, _FORMATS))}, got {format!r}.")
    if format in _ESTIMATORS_OF_TEXT and not isinstance(model, _ESTIMATORS_OF_TEXT[format]):
        others = [name for name, classes in _ESTIMATORS_OF_TEXT.items() if isinstance(model, classes)]
        ways = " or ".join(f"format={name!r}" for name in [*others, "widemargin"])
        raise TypeError(f"format={format!r} has no place for {type(model).__name__}; use {ways}.")
    check_is_fitted(model, "intercept_")
    options = {"keep_dual": keep_dual} if format == "widemargin" else {}
    content = _FORMATS[format].write(model, **options)
    with replacing(path) as file:
        file.write(content)


def plain_model(model: Any) -> Any:
    """Return the ordinary estimator of a model: the selected one of a cross-validation, the local one of a cluster.

    Raises
    ------
    TypeError
        If it is no estimator of this package.
    """
    if hasattr(model, "to_local"):  # of widemargin.dask, which is not imported here
        model = model.to_local()
    if hasattr(model, "chosen"):  # a LinearSVCCV or LinearSVRCV
        model = model.chosen()
    if ESTIMATORS.get(type(model).__name__) is not type(model):
        raise TypeError(f"model must be one of {', '.join(ESTIMATORS)}, got {type(model).__name__}.")
    return model


def load_model(path: FilePath, *, task: Literal["classification", "regression", "rank"] | None = None) -> Any:
    """Load a model from a file written by `save_model`, LIBLINEAR, LIBSVM or SVM-light; the format is detected.

    Parameters
    ----------
    path : str or path
        The file. Files from untrusted sources are safe to load: no code in them is executed, and the sizes that they
        state are compared with the size of the file before memory is allocated.
    task : {"classification", "regression", "rank"}, default=None
        The kind of a model in SVM-light's text, which SVM-light, SVM-rank and SVM-perf write without stating the kind.
        None: the kind that `save_model` recorded, otherwise classification. An error for files of other formats,
        which state the kind of model.

    Returns
    -------
    model : any estimator of widemargin
        A model from a text format has only what prediction needs. `classes_` are sorted; `gap_`, `history_` and the
        other results of training are absent, and `C`, `nu`, `epsilon` and `tol` have their default values.
        From LIBLINEAR's text: `coef_`, `intercept_`, `n_features_in_`. It predicts as LIBLINEAR does, except where
        scores are exactly equal (for example of an empty row, without an intercept): the first of the sorted classes
        wins here, and in LIBLINEAR the one that the order of the file prefers.
        From LIBSVM's text: `support_vectors_`, `n_support_`, `dual_coef_`, `intercept_`, the kernel's parameters and
        those of probabilities. `n_features_in_` is the largest index in the file; for a precomputed kernel it is the
        number of the last training row that is a support vector, and K must have so many columns. It predicts as
        LIBSVM does, except that a decision value of exactly zero may give the other class of its pair.
        From SVM-light's text: `coef_`, `intercept_`, `n_features_in_`, as LinearSVC, LinearSVR or RankSVM; with a
        kernel `support_vectors_`, `dual_coef_`, `intercept_`, as SVC or SVR, or `basis_`, `basis_coef_` as RankSVM; or
        as the class that `save_model` recorded. `classes_` are -1 and 1 unless `save_model` recorded others.

    Raises
    ------
    FormatError
        If the file is not a model file, or violates its format; with the path, the line if there is one, and the rule.
    OSError
        If the file cannot be read.
    ValueError
        If `task` is unknown.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import SVC, load_model, save_model
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SVC().fit(X, y)
    >>> save_model(model, "iris.model", format="libsvm")
    >>> bool((load_model("iris.model").predict(X) == model.predict(X)).all())
    True
    """
    if task is not None and task not in svmlight.TASKS:
        raise ValueError(f"task must be one of {', '.join(map(repr, svmlight.TASKS))} or None, got {task!r}.")
    path = os.fsdecode(path)
    with open(path, "rb") as file:
        head = file.read(_HEAD_BYTES)
        reader = _reader_of(head, path)
        if task is None:
            return reader.read(head + file.read(), path)
        if reader is not svmlight:
            raise FormatError(path, f"task={task!r} is for SVM-light's text; this file says itself what the model is.")
        return reader.read(head + file.read(), path, task)


def _reader_of(head, path):
    """Return the module that reads files with these first bytes; FormatError if there is none."""
    for reader in _FORMATS.values():
        if reader.recognises(head):
            return reader
    if not head:
        raise FormatError(path, "not a model file: it is empty.")
    kind = next(
        (kind for start, kind in _OTHER_FILES.items() if head.startswith(start)), f"it begins with {head[:16]!r}"
    )
    raise FormatError(path, f"not a model file of widemargin, LIBLINEAR, LIBSVM or SVM-light: {kind}.")
