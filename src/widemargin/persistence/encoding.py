"""Conversion of the parts of a model that are not numeric arrays: parameters, string labels, histories.

Parameters, labels and feature names become JSON; a history, which is a structured array, becomes a float64 array.
Decoding raises ValueError for every value that encoding cannot have produced.
"""

import os

import numpy as np

from widemargin._runtime.version import __version__
from widemargin.models.fixed_basis import STAGE
from widemargin.problems.row_loss import RowLoss
from widemargin.solvers.contract import HISTORY

_MAX_SPARE_CHARACTERS = 64  # how much wider the dtype of string labels may be than the longest label
_STAGES = "history_.stages"
_SEQUENCES = {"list": list, "tuple": tuple}


def encode_parameters(model):
    """Return the constructor's parameters for JSON; those that JSON cannot hold are left out."""
    encoded = {}
    for name, value in model.get_params(deep=False).items():
        try:
            encoded[name] = encode(value)
        except TypeError:  # a callback or a RandomState; the docs of `save_model` say that these are not saved
            continue
    return encoded


def decode_parameters(metadata, estimator):
    """Return the constructor's parameters; those that are not in the file keep their defaults."""
    parameters = metadata.get("parameters")
    if not isinstance(parameters, dict):
        raise ValueError("the metadata lack the parameters of the model.")
    unknown = sorted(set(parameters) - set(estimator._get_param_names()))
    if unknown:
        raise ValueError(
            f"{estimator.__name__} has no parameter {unknown[0]!r}; "
            f"the file was written by widemargin {metadata.get('widemargin')}, this is {__version__}."
        )
    return {name: decode(value) for name, value in parameters.items()}


def encode(value):
    """Return a value for JSON. Dicts become lists of pairs, because their keys may be numbers; paths become texts."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    if type(value) is dict:
        return {"dict": [[encode(key), encode(entry)] for key, entry in value.items()]}
    if type(value) in (list, tuple):
        return {type(value).__name__: [encode(entry) for entry in value]}
    if type(value) is RowLoss:
        return {"RowLoss": [value.lower, value.upper, value.curvature]}
    raise TypeError(f"{type(value).__name__} cannot be stored as JSON.")


def decode(value):
    """Return the value that `encode` converted; raise ValueError for anything that `encode` cannot return."""
    if not isinstance(value, dict | list):
        return value
    kind, entries = next(iter(value.items())) if isinstance(value, dict) and len(value) == 1 else (None, None)
    if kind in _SEQUENCES and isinstance(entries, list):
        return _SEQUENCES[kind](decode(entry) for entry in entries)
    if kind == "dict" and isinstance(entries, list) and all(_is_pair(entry) for entry in entries):
        return {key: decode(entry) for key, entry in entries}
    if kind == "RowLoss" and isinstance(entries, list) and len(entries) == 3:
        return RowLoss(*entries)
    raise ValueError("a parameter is neither a number, a string, null, a list, a tuple, a dict nor a RowLoss.")


def _is_pair(entry):
    return isinstance(entry, list) and len(entry) == 2 and not isinstance(entry[0], dict | list)


def typed_entry(metadata, name, kind):
    """Return the entry of that name in the metadata; raise ValueError unless it has the type `kind`."""
    value = metadata.get(name)
    if type(value) is not kind:
        raise ValueError(f"{name} must be {kind.__name__}, got {type(value).__name__}.")
    return value


def encode_labels(labels):
    """Return string labels for JSON, with the width of their dtype; the width is None for an array of objects."""
    names = labels.tolist()
    if labels.dtype.kind not in "UO" or not all(isinstance(name, str) for name in names):
        raise TypeError(f"classes_ must be numbers, booleans or strings to be saved, got type {labels.dtype}.")
    if labels.dtype.kind == "O":
        return {"width": None, "names": names}
    longest = max(map(len, names))
    return {"width": min(labels.dtype.itemsize // 4, longest + _MAX_SPARE_CHARACTERS), "names": names}


def decode_labels(encoded):
    """Return the labels that `encode_labels` converted."""
    names = encoded.get("names") if isinstance(encoded, dict) else None
    if not names or not _are_strings(names):
        raise ValueError("classes_ are neither an array nor a list of strings.")
    width, longest = encoded.get("width"), max(map(len, names))
    if width is None:
        return np.array(names, dtype=object)
    if type(width) is not int or not longest <= width <= longest + _MAX_SPARE_CHARACTERS:
        raise ValueError(f"classes_ have labels of up to {longest} characters, but the width {width!r}.")
    return np.array(names, dtype=f"U{max(width, 1)}")


def _are_strings(names):
    return isinstance(names, list) and all(isinstance(name, str) for name in names)


def decode_feature_names(names, n_features):
    """Return the names of the features, one for each."""
    if not _are_strings(names) or len(names) != n_features:
        raise ValueError(f"feature_names_in_ must be {n_features} strings, one per feature.")
    return np.array(names, dtype=object)


def encode_history(history):
    """Return a history as the array history_, or a list of histories as arrays history_.0, history_.1, ...

    That of the stages of a basis is the array history_.stages.
    """
    if isinstance(history, list):
        return {f"history_.{k}": _flatten(each) for k, each in enumerate(history)}
    return {_STAGES if history.dtype == STAGE else "history_": _flatten(history)}


def _flatten(history):
    """Return a history as a float64 array with one column per field."""
    return np.stack([history[name].astype(np.float64) for name in history.dtype.names], axis=1)


def decode_history(histories):
    """Return the history, or the list of histories, that `encode_history` converted."""
    if set(histories) == {"history_"}:
        return _unflatten(histories["history_"])
    if set(histories) == {_STAGES}:
        return _unflatten(histories[_STAGES], STAGE)
    names = [f"history_.{k}" for k in range(len(histories))]
    if set(names) != set(histories):
        raise ValueError(f"histories must be named history_.0, history_.1 and so on, got {sorted(histories)}.")
    return [_unflatten(histories[name]) for name in names]


def _unflatten(columns, dtype=HISTORY):
    """Return a float64 array with one column per field as a history."""
    if columns.dtype != np.float64 or columns.ndim != 2 or columns.shape[1] != len(dtype.names):
        raise ValueError(f"a history must be float64 with {len(dtype.names)} columns, got shape {columns.shape}.")
    history = np.empty(len(columns), dtype=dtype)
    for k, name in enumerate(dtype.names):
        if dtype[name].kind == "i" and not (np.abs(columns[:, k]) < 2.0**53).all():
            raise ValueError("a history's iterations must be integers.")
        history[name] = columns[:, k]
    return history
