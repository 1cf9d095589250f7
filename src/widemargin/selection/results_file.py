"""The results of a grid search as they come, in a file that survives a kill.

Lines of JSON: first what the search is about, with a fingerprint of data and folds; then a line for each point and fold
that is done. A line that a kill cut short is dropped when the search goes on; if that is the first line, nothing is
done yet and the search begins anew. Beside the file, in `FILE.state`,
are the multipliers with which each unfinished walk along C goes on, together with the line of the point they belong
to: so that what follows comes out to the bit as if nothing had happened. The folder is removed at the end.
"""

import hashlib
import json
import math
import os
import pickle
import shutil
import threading
import zipfile
from pathlib import Path

import numpy as np
from scipy.sparse import issparse

from widemargin._runtime.argument_types import FilePath
from widemargin._runtime.atomic_file import replacing
from widemargin.errors import FormatError
from widemargin.selection.grid_result import GridResult, Weights

_VERSION = 1


def read_grid(path: FilePath) -> GridResult:
    """Return the GridResult of a results file: of the points all of whose folds are done.

    Raises
    ------
    FormatError
        If the file is no results file, or a line of it is damaged.
    """
    header, records, _ = _read(path)
    return result_of(header["names"], header["n_folds"], header["scoring"], records)


def result_of(names, n_folds, scoring, records):
    """Return the GridResult of records, {(point as tuple of items, fold): (score, seconds)}."""
    points = list(dict.fromkeys(point for point, _ in records))
    done = [point for point in points if all((point, fold) in records for fold in range(n_folds))]
    table = [[records[point, fold] for fold in range(n_folds)] for point in done]
    scores = np.array([[score for score, _ in line] for line in table]).reshape(len(done), n_folds)
    seconds = np.array([sum(seconds for _, seconds in line) for line in table])
    return GridResult(tuple(names), tuple(map(dict, done)), scores, scoring, seconds)


def fingerprint(X, y, folds, fit_parameters):
    """Return a text that tells other data, or other folds, from these."""
    digest = hashlib.sha256()
    arrays = [X.data, X.indices, X.indptr] if issparse(X) else [X]
    arrays += [y, *(part for fold in folds for part in fold), *fit_parameters.values()]
    for array in arrays:
        array = np.ascontiguousarray(array)
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        if array.dtype.hasobject:  # pointers, other ones in every process
            for value in array.ravel().tolist():
                digest.update(_bytes_of(value))
        elif array.size:
            digest.update(memoryview(array).cast("B"))
    return digest.hexdigest()[:32]


def _bytes_of(value):
    """Return bytes that are the same for equal objects in every process, and begin with how many they are."""
    is_plain = value is None or isinstance(value, str | bytes | int | float | complex | np.generic)
    text = f"{type(value).__name__} {value!r}"
    content = text.encode("utf-8", "surrogatepass") if is_plain else pickle.dumps(value, 4)
    return len(content).to_bytes(8, "little") + content


class GridFile:
    """A results file that is being written; several threads may.

    Parameters
    ----------
    path : str or path
    header : dict
        What the search is about: a file to go on with must have the same.
    resume : bool
        Go on with the file if it is there; otherwise there must be none.

    Attributes
    ----------
    records : dict of (point, fold) to (score, seconds)
        What is done.
    was_cut : bool
        Whether the file to go on with ended inside its first line, so that the search begins anew.
    """

    def __init__(self, path, header, resume):
        self._path, self._lock = Path(path), threading.Lock()
        self._states = Path(f"{path}.state")
        self._header = {"widemargin_grid": _VERSION, **header}
        self.records = {}
        is_there = self._path.exists() and self._path.stat().st_size > 0
        if is_there and not resume:
            raise FileExistsError(
                f"{path} holds the results of an earlier search: go on with it (resume), or name another file"
            )
        self.was_cut = is_there and _is_cut_header(self._path.read_bytes())
        if is_there and not self.was_cut:
            self._go_on()
        else:
            self._begin()

    def _begin(self):
        """Write the first line; what another search left beside the file is not for this one."""
        self.finish()
        with replacing(self._path) as file:
            file.write((json.dumps(self._header) + "\n").encode())

    def _go_on(self):
        """Take over what the file holds, with what a kill left beside it."""
        found, self.records, n_bytes = _read(self._path)
        for name, mine in self._header.items():
            if found.get(name) != mine:
                raise ValueError(f"{self._path} is of another search ({name}: {found.get(name)!r}, now {mine!r}).")
        os.truncate(self._path, n_bytes)
        for path in sorted(self._states.glob("*.npz")) if self._states.exists() else []:
            try:
                with np.load(path) as arrays:
                    record = json.loads(str(arrays["record"]))
            except (OSError, ValueError, KeyError, zipfile.BadZipFile):  # not complete: it is as good as absent
                path.unlink()
                continue
            if (_key(_decoded(record["point"])), record["fold"]) not in self.records:
                self._append(record)

    def add(self, point, fold, score, seconds, state=()):
        """Record that a fold of a point is done, and with which multipliers the walk goes on."""
        score = float(score) if math.isfinite(score) else None  # as JSON has no name for what is not a number
        record = {"point": encoded(point), "fold": fold, "score": score, "seconds": round(seconds, 6)}
        if len(state):
            self._states.mkdir(exist_ok=True)
            path = self._state_path(point, fold)
            fresh = path.with_suffix(".part")
            with open(fresh, "wb") as file:
                np.savez(file, record=json.dumps(record), **{f"state{k}": array for k, array in enumerate(state)})
            os.replace(fresh, path)
        self._append(record)

    def _append(self, record):
        with self._lock:
            with open(self._path, "ab") as file:
                file.write((json.dumps(record) + "\n").encode())
            point = _decoded(record["point"])
            self.records[_key(point), record["fold"]] = (_number(record["score"]), record["seconds"])

    def state(self, point, fold):
        """Return the multipliers that this point's walk left, if they are this point's; otherwise none."""
        path = self._state_path(point, fold)
        if not path.exists():
            return []
        with np.load(path) as arrays:
            if _decoded(json.loads(str(arrays["record"]))["point"]) != point:
                return []
            return [arrays[f"state{k}"] for k in range(len(arrays.files) - 1)]

    def _state_path(self, point, fold):
        """Return where the multipliers of a walk are: one file for all C."""
        others = json.dumps({name: value for name, value in encoded(point).items() if name != "C"}, sort_keys=True)
        return self._states / f"{hashlib.sha256(others.encode()).hexdigest()[:16]}-{fold}.npz"

    def finish(self):
        """Remove what only an unfinished search needs."""
        if self._states.exists():
            shutil.rmtree(self._states)


def _key(point):
    return tuple(point.items())


def encoded(point):
    """Return a point as JSON takes it: a dict, whose keys need not be texts, is {"items": [[key, value], ...]}."""
    return {name: {"items": list(value.items())} if isinstance(value, dict) else value for name, value in point.items()}


def _decoded(point):
    return {name: Weights(value["items"]) if isinstance(value, dict) else value for name, value in point.items()}


def _number(score):
    return float("nan") if score is None else float(score)


def _is_cut_header(content):
    """Tell whether the content of a file is the beginning of a first line, and nothing else."""
    first = b'{"widemargin_grid": '
    return len(content) > 0 and b"\n" not in content and content[: len(first)] == first[: len(content)]


def _read(path):
    """Return (header, records, bytes of whole lines)."""
    content = Path(path).read_bytes()
    if _is_cut_header(content):
        rule = "is cut inside its first line, and holds no results of a grid search; let the search begin anew"
        raise FormatError(str(path), rule, 1)
    whole = content[: content.rfind(b"\n") + 1]
    records = {}
    header = None
    for number, line in enumerate(whole.splitlines(), 1):
        try:
            entry = json.loads(line)
            if header is None:
                header, _ = entry, entry["widemargin_grid"]
            else:
                records[_key(_decoded(entry["point"])), entry["fold"]] = (_number(entry["score"]), entry["seconds"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            rule = "is not a results file of a grid search" if number == 1 else "the line is damaged; take it out"
            raise FormatError(str(path), rule, number) from error
    if header is None:
        raise FormatError(str(path), "is not a results file of a grid search", 1)
    if header["widemargin_grid"] != _VERSION:
        raise FormatError(str(path), f"is of version {header['widemargin_grid']}, this is {_VERSION}", 1)
    return header, records, len(whole)
