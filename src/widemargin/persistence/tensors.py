"""Our own model file: a safetensors file, that is the length of a JSON header, the header, and raw arrays.

    arrays     those of a linear model (`linearfields`) or of a kernel machine (`kernelfields`), classes_ (numbers),
               history_ or history_.0, history_.1, ...
    metadata   "widemargin": JSON of format_version, model (all the rest) and sha256 of the model and the arrays

The checksum tells damage from intent; against intent stand the rules below, which a forged file has to keep as well.
The format is that of the `safetensors` library, whose reader checks every size against the bytes that are there.
"""

import hashlib
import json

import numpy as np
import safetensors
from safetensors.numpy import save
from sklearn.base import is_classifier

from widemargin._runtime.version import __version__
from widemargin.errors import FormatError
from widemargin.models.cutting_plane.measure import MeasureSVC
from widemargin.models.cutting_plane.ranking import OrdinalSVC, RankSVM, ROCAreaSVC
from widemargin.models.kernel.base import KernelModel
from widemargin.models.kernel.one_class import OneClassSVM
from widemargin.models.kernel.svc import SVC, NuSVC
from widemargin.models.kernel.svr import SVR, NuSVR
from widemargin.models.linear import LinearSVC, LinearSVR
from widemargin.persistence import kernel_fields, linear_fields
from widemargin.persistence.encoding import (
    decode_feature_names,
    decode_history,
    decode_labels,
    decode_parameters,
    encode_history,
    encode_labels,
    encode_parameters,
    fact,
)

_OF_PLANES = (RankSVM, OrdinalSVC, ROCAreaSVC, MeasureSVC)
ESTIMATORS = {cls.__name__: cls for cls in (LinearSVC, LinearSVR, SVC, NuSVC, SVR, NuSVR, OneClassSVM, *_OF_PLANES)}

_FORMAT, _VERSION, _VERSION_OF_COLUMNS = "widemargin", 1, 2  # the second has columns of coef_ left out
_LARGEST_HEADER = 100_000_000  # bytes; the library reads no longer one
_DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BOOL": "?",
    "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1",
}  # fmt: skip
_CODES = {np.dtype(name): code for code, name in _DTYPES.items()}
_RECORD = {"gap_": float, "objective_": float, "solver_": str, "status_": str}


def recognises(head):
    """Return whether a file with these first bytes is a safetensors file."""
    return head[8:9] == b"{"


def write(model, *, keep_dual=True):
    """Return the bytes of a file that holds a fitted model."""
    arrays = _arrays_of(model, keep_dual)
    facts = {
        "estimator": type(model).__name__,
        "widemargin": __version__,
        "parameters": encode_parameters(model),
        **_fields_of(model).facts_of(model),
        **{name: kind(getattr(model, name)) for name, kind in _RECORD.items() if hasattr(model, name)},
    }
    if hasattr(model, "n_features_in_"):  # a LIBSVM model without support vectors does not tell
        facts["n_features_in_"] = int(model.n_features_in_)
    if hasattr(model, "feature_names_in_"):
        facts["feature_names_in_"] = list(model.feature_names_in_)
    if "classes_" not in arrays and is_classifier(model):
        facts["classes_"] = encode_labels(model.classes_)
    _restore(facts, arrays)  # what could not be loaded must not be saved
    version = _VERSION_OF_COLUMNS if linear_fields.COLUMNS in arrays else _VERSION
    text = json.dumps({"format_version": version, "sha256": _checksum(facts, arrays), "model": facts})
    content = save(arrays, {_FORMAT: text})  # a single entry: the library would write several in random order
    if int.from_bytes(content[:8], "little") > _LARGEST_HEADER:
        raise ValueError("The names of features and classes take more than 100 MB, more than any reader accepts.")
    return content


def _fields_of(model):
    """Return the module that knows what a model of this kind keeps."""
    return kernel_fields if isinstance(model, KernelModel) else linear_fields


def _arrays_of(model, keep_dual):
    """Return the arrays of a fitted model by name, each in C order."""
    arrays = _fields_of(model).arrays_of(model, keep_dual)
    if is_classifier(model) and model.classes_.dtype.kind in "biuf":
        arrays["classes_"] = model.classes_
    if hasattr(model, "history_"):
        arrays |= encode_history(model.history_)
    for name, array in arrays.items():
        if array.dtype.newbyteorder("<") not in _CODES:
            raise TypeError(f"{name} has type {array.dtype}, for which the model file has no place.")
        arrays[name] = np.asarray(array, order="C")
    return arrays


def _checksum(facts, arrays):
    """Return the SHA-256 of the facts and of every array with its name, type and shape."""
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    for name in sorted(arrays):
        array = arrays[name].astype(arrays[name].dtype.newbyteorder("<"), order="C", copy=False)
        digest.update(f"\n{name} {_CODES[array.dtype]} {list(array.shape)}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def read(content, path):
    """Return the model in the bytes of a file, or raise FormatError, naming `path`."""
    try:
        return _read(content)
    except safetensors.SafetensorError as error:
        raise FormatError(path, f"not a whole safetensors file: {error}.") from error
    except RecursionError as error:
        raise FormatError(path, "the metadata is nested too deeply.") from error
    except ValueError as error:
        raise FormatError(path, str(error)) from error


def _read(content):
    tensors = safetensors.deserialize(content)
    length = int.from_bytes(content[:8], "little")
    metadata = json.loads(content[8 : 8 + length]).get("__metadata__") or {}
    if _FORMAT not in metadata:
        raise ValueError("a safetensors file, but its metadata do not say that widemargin wrote it.")
    entry = _parse(metadata[_FORMAT])
    arrays = {name: _array(name, tensor) for name, tensor in tensors}
    if entry.get("sha256") != _checksum(entry["model"], arrays):
        raise ValueError("the checksum does not match: the file is damaged.")
    return _restore(entry["model"], arrays)


def _parse(text):
    """Return the entry of the metadata that is ours, of a version that is known."""
    try:
        entry = json.loads(text)
    except ValueError as error:
        raise ValueError(f"the metadata are not JSON: {error}.") from error
    version = entry.get("format_version") if isinstance(entry, dict) else None
    if type(version) is not int or version not in (_VERSION, _VERSION_OF_COLUMNS):
        rule = f"format_version must be {_VERSION} or {_VERSION_OF_COLUMNS}, got {version!r}."
        raise ValueError(f"{rule} A newer widemargin may read the file.")
    if not isinstance(entry.get("model"), dict):
        raise ValueError("the metadata lack the model.")
    return entry


def _array(name, tensor):
    """Return a tensor of the library as an array of its own."""
    if tensor["dtype"] not in _DTYPES:
        raise ValueError(f"{name} has type {tensor['dtype']}, which no array of a model has.")
    dtype = np.dtype(_DTYPES[tensor["dtype"]])
    flat = np.frombuffer(tensor["data"], dtype=dtype) if tensor["data"] else np.empty(0, dtype)
    return np.array(flat.reshape(tensor["shape"]), dtype=dtype.newbyteorder("="))


def _restore(facts, arrays):
    """Return the model that the facts and arrays describe; raise ValueError if they break a rule."""
    name = facts.get("estimator")
    if not isinstance(name, str) or name not in ESTIMATORS:
        raise ValueError(f"estimator must be one of {', '.join(ESTIMATORS)}, got {name!r}.")
    model = ESTIMATORS[name](**decode_parameters(facts, ESTIMATORS[name]))
    if "n_features_in_" in facts or not isinstance(model, KernelModel):
        model.n_features_in_ = fact(facts, "n_features_in_", int)
    arrays = dict(arrays)
    if is_classifier(model):
        model.classes_ = _classes(facts, arrays)
    histories = {key: arrays.pop(key) for key in list(arrays) if key.startswith("history_")}
    _fields_of(model).restore(model, facts, arrays)
    if histories:
        model.history_ = decode_history(histories)
    if "feature_names_in_" in facts:
        model.feature_names_in_ = decode_feature_names(facts["feature_names_in_"], fact(facts, "n_features_in_", int))
    for key, kind in _RECORD.items():
        if key in facts:
            setattr(model, key, fact(facts, key, kind))
    return model


def _classes(facts, arrays):
    """Return the class labels, from the arrays (and remove them there) or from the facts."""
    classes = arrays.pop("classes_") if "classes_" in arrays else decode_labels(facts.get("classes_"))
    if classes.ndim != 1 or len(classes) < 2 or not np.array_equal(np.unique(classes), classes):
        raise ValueError("classes_ must be two labels or more, distinct and sorted.")
    return classes
