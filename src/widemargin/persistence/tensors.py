"""The package's own model file: a safetensors file, which is the length of a JSON header, the header, and raw arrays.

    arrays     those of a linear model (`linear_fields`) or of a kernel machine (`kernel_fields`), numeric classes_,
               history_ or history_.0, history_.1, ...
    metadata   one entry, "widemargin", whose text is JSON with format_version, model (the metadata of the model: its
               estimator, parameters, names and numbers) and sha256 (of this metadata and the arrays)

The checksum detects accidental damage. A file may also have been forged, with a valid checksum, so that every value is
validated as well. The reader of the `safetensors` library compares all sizes in the header with the size of the file.
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
from widemargin.models.cutting_plane.ordinal import OrdinalSVC
from widemargin.models.cutting_plane.ranking import RankSVM
from widemargin.models.cutting_plane.roc_area import ROCAreaSVC
from widemargin.models.kernel.base import KernelModel
from widemargin.models.kernel.nu_svc import NuSVC
from widemargin.models.kernel.nu_svr import NuSVR
from widemargin.models.kernel.one_class import OneClassSVM
from widemargin.models.kernel.svc import SVC
from widemargin.models.kernel.svr import SVR
from widemargin.models.kernel.transductive import TransductiveSVC
from widemargin.models.linear import LinearSVC, LinearSVR
from widemargin.models.linear_one_class import LinearOneClassSVM
from widemargin.persistence import kernel_fields, linear_fields
from widemargin.persistence.encoding import (
    decode_feature_names,
    decode_history,
    decode_labels,
    decode_parameters,
    encode_history,
    encode_labels,
    encode_parameters,
    typed_entry,
)

_PLANE_MODELS = (RankSVM, OrdinalSVC, ROCAreaSVC, MeasureSVC)
_KERNEL_MODELS = (SVC, NuSVC, SVR, NuSVR, OneClassSVM)
_OTHERS = (LinearOneClassSVM, TransductiveSVC)
ESTIMATORS = {cls.__name__: cls for cls in (LinearSVC, LinearSVR, *_KERNEL_MODELS, *_PLANE_MODELS, *_OTHERS)}

_METADATA_KEY = "widemargin"
_VERSION, _VERSION_WITH_COLUMNS = 1, 2  # of the format; version 2 leaves out the zero columns of coef_
_MAX_HEADER_BYTES = 100_000_000  # the limit of the safetensors library
_DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BOOL": "?",
    "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1",
}  # fmt: skip
_CODES = {np.dtype(name): code for code, name in _DTYPES.items()}
_TRAINING_RECORD = {"gap_": float, "objective_": float, "solver_": str, "status_": str}


def recognises(head):
    """Return whether a file with these first bytes is a safetensors file."""
    return head[8:9] == b"{"


def write(model, *, keep_dual=True):
    """Return the content of a model file."""
    arrays = _arrays_of(model, keep_dual)
    metadata = {
        "estimator": type(model).__name__,
        "widemargin": __version__,
        "parameters": encode_parameters(model),
        **_fields_of(model).metadata_of(model),
        **{name: kind(getattr(model, name)) for name, kind in _TRAINING_RECORD.items() if hasattr(model, name)},
    }
    if hasattr(model, "n_features_in_"):  # unknown for a LIBSVM model without support vectors
        metadata["n_features_in_"] = int(model.n_features_in_)
    if hasattr(model, "feature_names_in_"):
        metadata["feature_names_in_"] = list(model.feature_names_in_)
    if "classes_" not in arrays and is_classifier(model):
        metadata["classes_"] = encode_labels(model.classes_)
    _restore(metadata, arrays)  # raises an error now rather than when the file is loaded
    version = _VERSION_WITH_COLUMNS if linear_fields.COLUMNS in arrays else _VERSION
    text = json.dumps({"format_version": version, "sha256": _checksum(metadata, arrays), "model": metadata})
    content = save(arrays, {_METADATA_KEY: text})  # one entry, because the order of several would be random
    if int.from_bytes(content[:8], "little") > _MAX_HEADER_BYTES:
        raise ValueError("The names of features and classes take more than 100 MB, more than any reader accepts.")
    return content


def _fields_of(model):
    """Return the module that defines the arrays and metadata of this kind of model."""
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
            raise TypeError(f"{name} has type {array.dtype}, which a model file cannot hold.")
        arrays[name] = np.asarray(array, order="C")
    return arrays


def _checksum(metadata, arrays):
    """Return the SHA-256 of the metadata and of every array with its name, type and shape."""
    digest = hashlib.sha256(json.dumps(metadata, sort_keys=True).encode())
    for name in sorted(arrays):
        array = arrays[name].astype(arrays[name].dtype.newbyteorder("<"), order="C", copy=False)
        digest.update(f"\n{name} {_CODES[array.dtype]} {list(array.shape)}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def read(content, path):
    """Return the model from the content of a file; FormatError, with `path`, if it is not valid."""
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
    entries = json.loads(content[8 : 8 + length]).get("__metadata__") or {}
    if _METADATA_KEY not in entries:
        raise ValueError("a safetensors file, but its metadata do not say that widemargin wrote it.")
    document = _parse(entries[_METADATA_KEY])
    arrays = {name: _array(name, tensor) for name, tensor in tensors}
    if document.get("sha256") != _checksum(document["model"], arrays):
        raise ValueError("the checksum does not match: the file is damaged.")
    return _restore(document["model"], arrays)


def _parse(text):
    """Return the decoded JSON of our metadata entry; raise ValueError if its format version is not supported."""
    try:
        document = json.loads(text)
    except ValueError as error:
        raise ValueError(f"the metadata are not JSON: {error}.") from error
    version = document.get("format_version") if isinstance(document, dict) else None
    if type(version) is not int or version not in (_VERSION, _VERSION_WITH_COLUMNS):
        rule = f"format_version must be {_VERSION} or {_VERSION_WITH_COLUMNS}, got {version!r}."
        raise ValueError(f"{rule} A newer widemargin may read the file.")
    if not isinstance(document.get("model"), dict):
        raise ValueError("the metadata lack the model.")
    return document


def _array(name, tensor):
    """Return a tensor of the safetensors library as a NumPy array that owns its memory."""
    if tensor["dtype"] not in _DTYPES:
        raise ValueError(f"{name} has type {tensor['dtype']}, which a model file cannot hold.")
    dtype = np.dtype(_DTYPES[tensor["dtype"]])
    flat = np.frombuffer(tensor["data"], dtype=dtype) if tensor["data"] else np.empty(0, dtype)
    return np.array(flat.reshape(tensor["shape"]), dtype=dtype.newbyteorder("="))


def _restore(metadata, arrays):
    """Return the model that the metadata and arrays describe; raise ValueError if they are not valid."""
    name = metadata.get("estimator")
    if not isinstance(name, str) or name not in ESTIMATORS:
        raise ValueError(f"estimator must be one of {', '.join(ESTIMATORS)}, got {name!r}.")
    model = ESTIMATORS[name](**decode_parameters(metadata, ESTIMATORS[name]))
    if "n_features_in_" in metadata or not isinstance(model, KernelModel):
        model.n_features_in_ = typed_entry(metadata, "n_features_in_", int)
    arrays = dict(arrays)
    if is_classifier(model):
        model.classes_ = _classes(metadata, arrays)
    histories = {key: arrays.pop(key) for key in list(arrays) if key.startswith("history_")}
    _fields_of(model).restore(model, metadata, arrays)
    if histories:
        model.history_ = decode_history(histories)
    if "feature_names_in_" in metadata:
        model.feature_names_in_ = decode_feature_names(
            metadata["feature_names_in_"], typed_entry(metadata, "n_features_in_", int)
        )
    for key, kind in _TRAINING_RECORD.items():
        if key in metadata:
            setattr(model, key, typed_entry(metadata, key, kind))
    return model


def _classes(metadata, arrays):
    """Return the class labels: removed from the arrays if they are there, otherwise from the metadata."""
    classes = arrays.pop("classes_") if "classes_" in arrays else decode_labels(metadata.get("classes_"))
    if classes.ndim != 1 or len(classes) < 2 or not np.array_equal(np.unique(classes), classes):
        raise ValueError("classes_ must be two labels or more, distinct and sorted.")
    return classes
