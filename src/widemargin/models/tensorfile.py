"""Our own model file: a safetensors file, that is the length of a JSON header, the header, and raw arrays.

    arrays     coef_, intercept_, dual_coef_, classes_ (numbers), history_ or history_.0, history_.1, ...
    metadata   "widemargin": JSON of format_version, model (all the rest) and sha256 of the model and the arrays

The checksum tells damage from intent; against intent stand the rules below, which a forged file has to keep as well.
The format is that of the `safetensors` library, whose reader checks every size against the bytes that are there.
"""

import hashlib
import json

import numpy as np
import safetensors
from safetensors.numpy import save
from scipy.sparse import csr_matrix, issparse
from sklearn.base import is_classifier

import widemargin
from widemargin.errors import FormatError
from widemargin.models.linear import LinearSVC, LinearSVR
from widemargin.solvers.contract import HISTORY

ESTIMATORS = {"LinearSVC": LinearSVC, "LinearSVR": LinearSVR}

_FORMAT, _VERSION = "widemargin", 1
_LARGEST_HEADER = 100_000_000  # bytes; the library reads no longer one
_WIDEST_SPARE = 64  # characters that the dtype of string labels may have beyond need
_DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BOOL": "?",
    "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1",
}  # fmt: skip
_CODES = {np.dtype(name): code for code, name in _DTYPES.items()}
_FACTS = {"n_iter_": int, "gap_": float, "objective_": float, "solver_": str, "status_": str}
_SEQUENCES = {"list": list, "tuple": tuple}


def recognises(head):
    """Return whether a file with these first bytes is a safetensors file."""
    return head[8:9] == b"{"


def write(model, *, keep_dual=True):
    """Return the bytes of a file that holds a fitted model."""
    arrays = _arrays_of(model, keep_dual)
    facts = {
        "estimator": type(model).__name__,
        "widemargin": widemargin.__version__,
        "parameters": _encode_parameters(model),
        "n_features_in_": int(model.n_features_in_),
        "coef_is_sparse": issparse(model.coef_),
        **{name: kind(getattr(model, name)) for name, kind in _FACTS.items() if hasattr(model, name)},
    }
    if hasattr(model, "feature_names_in_"):
        facts["feature_names_in_"] = list(model.feature_names_in_)
    if "classes_" not in arrays and is_classifier(model):
        facts["classes_"] = _encode_labels(model.classes_)
    _restore(facts, arrays)  # what could not be loaded must not be saved
    text = json.dumps({"format_version": _VERSION, "sha256": _checksum(facts, arrays), "model": facts})
    content = save(arrays, {_FORMAT: text})  # a single entry: the library would write several in random order
    if int.from_bytes(content[:8], "little") > _LARGEST_HEADER:
        raise ValueError("The names of features and classes take more than 100 MB, more than any reader accepts.")
    return content


def _arrays_of(model, keep_dual):
    """Return the arrays of a fitted model by name, each in C order."""
    arrays = {
        "coef_": model.coef_.toarray() if issparse(model.coef_) else np.asarray(model.coef_, order="C"),
        "intercept_": np.asarray(model.intercept_, order="C"),
    }
    if keep_dual and hasattr(model, "dual_coef_"):
        arrays["dual_coef_"] = np.asarray(model.dual_coef_, order="C")
    if is_classifier(model) and model.classes_.dtype.kind in "biuf":
        arrays["classes_"] = np.asarray(model.classes_, order="C")
    history = getattr(model, "history_", None)
    if isinstance(history, list):
        arrays |= {f"history_.{k}": _flatten(each) for k, each in enumerate(history)}
    elif history is not None:
        arrays["history_"] = _flatten(history)
    for name, array in arrays.items():
        if array.dtype.newbyteorder("<") not in _CODES:
            raise TypeError(f"{name} has type {array.dtype}, for which the model file has no place.")
    return arrays


def _flatten(history):
    """Return a history as floats, a column per field of HISTORY."""
    return np.stack([history[name].astype(np.float64) for name in HISTORY.names], axis=1)


def _encode_labels(labels):
    """Return string labels, and the width of their type or None for objects, as JSON takes them."""
    names = labels.tolist()
    if labels.dtype.kind not in "UO" or not all(isinstance(name, str) for name in names):
        raise TypeError(f"classes_ must be numbers, booleans or strings to be saved, got type {labels.dtype}.")
    if labels.dtype.kind == "O":
        return {"width": None, "names": names}
    longest = max(map(len, names))
    return {"width": min(labels.dtype.itemsize // 4, longest + _WIDEST_SPARE), "names": names}


def _encode_parameters(model):
    """Return the constructor's parameters as JSON takes them, without those that it cannot take."""
    encoded = {}
    for name, value in model.get_params(deep=False).items():
        try:
            encoded[name] = _encode(value)
        except TypeError:  # a callback or a RandomState: `save_model` says that it is left out
            continue
    return encoded


def _encode(value):
    """Return a value as JSON takes it; dicts become pairs, since their keys may be numbers."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) is dict:
        return {"dict": [[_encode(key), _encode(entry)] for key, entry in value.items()]}
    if type(value) in (list, tuple):
        return {type(value).__name__: [_encode(entry) for entry in value]}
    raise TypeError(f"{type(value).__name__} has no place in JSON.")


def _decode(value):
    """Return what `_encode` was given; raise ValueError for what it never gives."""
    if not isinstance(value, dict | list):
        return value
    kind, entries = next(iter(value.items())) if isinstance(value, dict) and len(value) == 1 else (None, None)
    if kind in _SEQUENCES and isinstance(entries, list):
        return _SEQUENCES[kind](_decode(entry) for entry in entries)
    if kind == "dict" and isinstance(entries, list) and all(_is_pair(entry) for entry in entries):
        return {key: _decode(entry) for key, entry in entries}
    raise ValueError("a parameter is neither a number, a string, null, a list, a tuple nor a dict.")


def _is_pair(entry):
    return isinstance(entry, list) and len(entry) == 2 and not isinstance(entry[0], dict | list)


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
    if type(version) is not int or version != _VERSION:
        raise ValueError(f"format_version must be {_VERSION}, got {version!r}. A newer widemargin may read the file.")
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
    model = ESTIMATORS[name](**_parameters(facts, ESTIMATORS[name]))
    model.n_features_in_ = _fact(facts, "n_features_in_", int)
    arrays = dict(arrays)
    if is_classifier(model):
        model.classes_ = _classes(facts, arrays)
    histories = {key: arrays.pop(key) for key in list(arrays) if key.startswith("history_")}
    check_weights(model, arrays)
    for key, array in arrays.items():
        setattr(model, key, float(array) if array.ndim == 0 else array)
    if facts.get("coef_is_sparse") is True:
        model.coef_ = csr_matrix(model.coef_)
    if histories:
        model.history_ = _history(histories)
    if "feature_names_in_" in facts:
        model.feature_names_in_ = _feature_names(facts, model.n_features_in_)
    for key, kind in _FACTS.items():
        if key in facts:
            setattr(model, key, _fact(facts, key, kind))
    return model


def _parameters(facts, estimator):
    """Return the constructor's parameters; those that the file lacks keep their defaults."""
    parameters = facts.get("parameters")
    if not isinstance(parameters, dict):
        raise ValueError("the metadata lack the parameters of the model.")
    unknown = sorted(set(parameters) - set(estimator._get_param_names()))
    if unknown:
        raise ValueError(
            f"{estimator.__name__} has no parameter {unknown[0]!r}; "
            f"the file was written by widemargin {facts.get('widemargin')}, this is {widemargin.__version__}."
        )
    return {name: _decode(value) for name, value in parameters.items()}


def _fact(facts, name, kind):
    value = facts.get(name)
    if type(value) is not kind:
        raise ValueError(f"{name} must be {kind.__name__}, got {type(value).__name__}.")
    return value


def _classes(facts, arrays):
    """Return the class labels, from the arrays (and remove them there) or from the facts."""
    classes = arrays.pop("classes_") if "classes_" in arrays else _decode_labels(facts.get("classes_"))
    if classes.ndim != 1 or len(classes) < 2 or not np.array_equal(np.unique(classes), classes):
        raise ValueError("classes_ must be two labels or more, distinct and sorted.")
    return classes


def _decode_labels(encoded):
    names = encoded.get("names") if isinstance(encoded, dict) else None
    if not names or not _are_strings(names):
        raise ValueError("classes_ are neither an array nor a list of strings.")
    width, longest = encoded.get("width"), max(map(len, names))
    if width is None:
        return np.array(names, dtype=object)
    if type(width) is not int or not longest <= width <= longest + _WIDEST_SPARE:
        raise ValueError(f"classes_ have labels of up to {longest} characters, but the width {width!r}.")
    return np.array(names, dtype=f"U{max(width, 1)}")


def _are_strings(names):
    return isinstance(names, list) and all(isinstance(name, str) for name in names)


def _feature_names(facts, n_features):
    names = facts["feature_names_in_"]
    if not _are_strings(names) or len(names) != n_features:
        raise ValueError(f"feature_names_in_ must be {n_features} strings, one per feature.")
    return np.array(names, dtype=object)


def check_weights(model, arrays):
    """Raise ValueError unless the arrays are those of a linear model, and fit its features and classes."""
    unknown = sorted(set(arrays) - {"coef_", "intercept_", "dual_coef_"})
    if unknown:
        raise ValueError(f"a model has no array named {unknown[0]!r}.")
    outputs = ()
    if is_classifier(model):
        outputs = (1 if len(model.classes_) == 2 else len(model.classes_),)
    rules = {"coef_": [(*outputs, model.n_features_in_)], "intercept_": [(), outputs or (1,)]}
    if "dual_coef_" in arrays:
        rules["dual_coef_"] = [(*outputs, arrays["dual_coef_"].shape[-1] if arrays["dual_coef_"].ndim else 0)]
    for name, shapes in rules.items():
        if name not in arrays:
            raise ValueError(f"the array {name} is missing.")
        if arrays[name].dtype not in (np.float64, np.float32):
            raise ValueError(f"{name} must hold floating point numbers, got {arrays[name].dtype}.")
        if arrays[name].shape not in shapes:
            raise ValueError(f"{name} must have shape {shapes[-1]}, got {arrays[name].shape}.")
        if not np.isfinite(arrays[name]).all():
            raise ValueError(f"{name} must be finite, got NaN or infinity.")


def _history(histories):
    """Return the history, or the list of them, that arrays named history_ or history_.0, history_.1, ... hold."""
    if set(histories) == {"history_"}:
        return _unflatten(histories["history_"])
    names = [f"history_.{k}" for k in range(len(histories))]
    if set(names) != set(histories):
        raise ValueError(f"histories must be named history_.0, history_.1 and so on, got {sorted(histories)}.")
    return [_unflatten(histories[name]) for name in names]


def _unflatten(columns):
    """Return floats, a column per field, as a history."""
    if columns.dtype != np.float64 or columns.ndim != 2 or columns.shape[1] != len(HISTORY.names):
        raise ValueError(f"a history must be float64 with {len(HISTORY.names)} columns, got shape {columns.shape}.")
    if not (np.abs(columns[:, 0]) < 2.0**53).all():
        raise ValueError("a history's iterations must be integers.")
    history = np.empty(len(columns), dtype=HISTORY)
    for k, name in enumerate(HISTORY.names):
        history[name] = columns[:, k]
    return history
