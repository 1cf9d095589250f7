"""Model files: saved whole or not at all, and recognised by their content when loaded.

    "widemargin"   arrays and JSON in a safetensors file: everything a model has (`tensorfile`)
    "liblinear"    LIBLINEAR's model text, for linear models: what LIBLINEAR needs to predict (`liblinearfile`)
    "libsvm"       LIBSVM's model text, for kernel machines: what LIBSVM needs to predict (`libsvmfile`)
    "svmlight"     SVM-light's model text, for linear models of one weight vector (`svmlightfile`)

A new file is written beside the old one and takes its place when it is complete and on disk. Loading runs no code
from the file: a file that is damaged, or of another kind, is refused with a `FormatError`.
"""

import os
from typing import Any, Literal

from sklearn.utils.validation import check_is_fitted

from widemargin._runtime.argument_types import FilePath
from widemargin._runtime.atomic_file import replacing
from widemargin.errors import FormatError
from widemargin.models.base import SolvedModel
from widemargin.models.cutting_plane.ranking import OrdinalSVC
from widemargin.models.kernel.base import KernelModel
from widemargin.models.linear import LinearSVC, LinearSVR
from widemargin.persistence import liblinear, libsvm, svmlight, tensors
from widemargin.persistence.tensors import ESTIMATORS

_FORMATS = {"widemargin": tensors, "liblinear": liblinear, "libsvm": libsvm, "svmlight": svmlight}
_PLACES = {  # of texts; what an OrdinalSVC lacks there, `svmlightfile` says
    "liblinear": (LinearSVC, LinearSVR),
    "libsvm": (KernelModel,),
    "svmlight": (*svmlight.ESTIMATORS, OrdinalSVC),
}
_RELATIVES = {  # how files begin that people may take for model files of ours
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
        A fitted model of exactly such a class. The kernel must not be a Python function, for which no file has a place.
        Of a LinearSVCCV or LinearSVRCV the chosen model is saved, a LinearSVC or LinearSVR.
    path : str or path
        Where to; any suffix will do.
    format : {"widemargin", "liblinear", "libsvm", "svmlight"}, default="widemargin"
        "widemargin" keeps all parameters and fitted attributes; the loaded model predicts the same to the bit.
        Parameters that are not numbers, strings, None or lists and dicts of them (callbacks, a RandomState) are not
        kept and come back as their defaults.
        "liblinear" is LIBLINEAR's text, for its `predict`: weights to the bit, labels, the kind of loss and
        `intercept_scaling`; labels must be integers. Only LinearSVC and LinearSVR.
        "libsvm" is LIBSVM's text, for its `svm-predict`: support vectors and their coefficients to the bit, the kernel,
        probabilities; labels must be integers. Only kernel machines.
        "svmlight" is SVM-light's text, for its `svm_classify` and, of a RankSVM, for `svm_rank_classify`: weights and
        intercept to the bit. Those programs print scores, not labels; the two labels, which must be integers,
        the kind of model and the measure of a MeasureSVC stand in the free text of `-u`, where we find them again.
        Only linear models, with two classes at most; an OrdinalSVC has too many thresholds.
    keep_dual : bool, default=True
        Whether "widemargin" keeps what only a warm start needs: one number per training row, `dual_coef_` of a linear
        model (cutting planes have none), or the multipliers that a kernel machine with `warm_start=True` has besides
        its support vectors. The other formats have no place for it.

    Raises
    ------
    TypeError
        If there is no place in the format for a model of this class, for its kernel, or for its labels.
    NotFittedError
        If the model has not been fitted.
    ValueError
        If `format` is unknown, or the model is not whole: weights that are not finite, shapes that disagree.
    OSError
        If the file cannot be written; a file that was there stays as it was.
    """
    if hasattr(model, "chosen"):  # a LinearSVCCV or LinearSVRCV
        model = model.chosen()
    if ESTIMATORS.get(type(model).__name__) is not type(model):
        raise TypeError(f"model must be one of {', '.join(ESTIMATORS)}, got {type(model).__name__}.")
    if format not in _FORMATS:
        raise ValueError(f"format must be one of {', '.join(map(repr, _FORMATS))}, got {format!r}.")
    if format in _PLACES and not isinstance(model, _PLACES[format]):
        others = [name for name, classes in _PLACES.items() if isinstance(model, classes)]
        ways = " or ".join(f"format={name!r}" for name in [*others, "widemargin"])
        raise TypeError(f"format={format!r} has no place for {type(model).__name__}; use {ways}.")
    check_is_fitted(model, "intercept_")
    options = {"keep_dual": keep_dual} if format == "widemargin" else {}
    content = _FORMATS[format].write(model, **options)
    with replacing(path) as file:
        file.write(content)


def load_model(path: FilePath, *, task: Literal["classification", "regression", "rank"] | None = None) -> Any:
    """Load a model from a file of `save_model`, LIBLINEAR, LIBSVM or SVM-light, whichever its content says it is.

    Parameters
    ----------
    path : str or path
        The file. Files from strangers are safe to load: no code in them is run, and sizes they state are checked
        against what is there before memory is taken.
    task : {"classification", "regression", "rank"}, default=None
        What a model in SVM-light's text is for: SVM-light, SVM-rank and SVM-perf write the same text, which does not
        say. None: what it is for if we wrote it, classification otherwise. Refused for all other files, which do say.

    Returns
    -------
    model : any estimator of widemargin
        Text has only what prediction needs. `classes_` are sorted, as always here; `gap_`, `history_` and their like
        are absent, and `C`, `nu`, `epsilon` and `tol` are the defaults.
        From LIBLINEAR's text: `coef_`, `intercept_`, `n_features_in_`. It predicts as LIBLINEAR does; a row whose
        scores tie exactly (say, an empty row without an intercept) belongs to the first class here, and there to the
        one that the file's order favours.
        From LIBSVM's text: `support_vectors_`, `n_support_`, `dual_coef_`, `intercept_`, the kernel's parameters and
        what gives probabilities. `n_features_in_` is the largest index in the file; for a precomputed kernel it is the
        last training row that is a support vector, so pass so many columns of K. It predicts
        as LIBSVM does; only a decision that is zero to the bit may fall to the other class of its pair.
        From SVM-light's text: `coef_`, `intercept_`, `n_features_in_`, as LinearSVC, LinearSVR or RankSVM, or as what
        we saved; `classes_` are -1 and 1 unless we saved others.

    Raises
    ------
    FormatError
        If the file is not a model file, or breaks a rule of its format: path, line where there is one, and rule.
    OSError
        If the file cannot be read.
    ValueError
        If `task` is unknown.
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
    """Return the module that reads files with these first bytes; refuse the file if there is none."""
    for reader in _FORMATS.values():
        if reader.recognises(head):
            return reader
    if not head:
        raise FormatError(path, "not a model file: it is empty.")
    kind = next((kind for start, kind in _RELATIVES.items() if head.startswith(start)), f"it begins with {head[:16]!r}")
    raise FormatError(path, f"not a model file of widemargin, LIBLINEAR, LIBSVM or SVM-light: {kind}.")
