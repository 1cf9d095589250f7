"""The results file of a grid search, from which a search that was killed can be resumed.

The file has one JSON object per line. The first line describes the search: names of the parameters, score, number of
folds, estimator, and a fingerprint of the data and the folds. Each further line is the score of one point on one fold,
appended as soon as it is known. When a search is resumed, a last line that is incomplete because the process was killed
is dropped; if that is the first line, the file holds no results and the search starts from the beginning.

The folder `FILE.state` holds, for each unfinished path along C, the dual variables from which its next fit starts,
together with the line of the point that they are the solution of. A resumed search therefore gives the same results to
the bit as one that was not interrupted. The folder is removed when the search ends.
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

_FORMAT_VERSION = 1


def read_grid(path: FilePath) -> GridResult:
    """Return the GridResult of a results file, with the points that have a score for every fold.

    Parameters
    ----------
    path : str or path
        A file written by `grid_search(results=...)` or `widemargin grid`.

    Returns
    -------
    GridResult
        `best_model` is None: models are not in the file.

    Raises
    ------
    FormatError
        If the file is not a results file, or one of its lines is damaged.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import SVC, grid_search, read_grid
    >>> result = grid_search(SVC(), *load_iris(return_X_y=True), {"C": [1, 10]}, results="iris.grid")
    >>> read_grid("iris.grid").best_params == result.best_params
    True
    """
    header, records, _ = _read(path)
    return result_of(header["names"], header["n_folds"], header["scoring"], records)


def result_of(names, n_folds, scoring, records):
    """Return the GridResult of records, a dict {(items of the point, fold): (score, seconds)}."""
    points = list(dict.fromkeys(point for point, _ in records))
    done = [point for point in points if all((point, fold) in records for fold in range(n_folds))]
    table = [[records[point, fold] for fold in range(n_folds)] for point in done]
    scores = np.array([[score for score, _ in line] for line in table]).reshape(len(done), n_folds)
    seconds = np.array([sum(seconds for _, seconds in line) for line in table])
    return GridResult(tuple(names), tuple(map(dict, done)), scores, scoring, seconds)


def fingerprint(X, y, folds, fit_parameters):
    """Return a hash of the data and the folds as a text of 32 hexadecimal digits."""
    digest = hashlib.sha256()
    arrays = [X.data, X.indices, X.indptr] if issparse(X) else [X]
    arrays += [y, *(part for fold in folds for part in fold), *fit_parameters.values()]
    for array in arrays:
        array = np.ascontiguousarray(array)
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        if array.dtype.hasobject:  # the buffer holds pointers, which differ between processes
            for value in array.ravel().tolist():
                digest.update(_bytes_of(value))
        elif array.size:
            digest.update(memoryview(array).cast("B"))
    return digest.hexdigest()[:32]


def _bytes_of(value):
    """Return bytes that are the same for equal objects in every process, preceded by their number."""
    is_plain = value is None or isinstance(value, str | bytes | int | float | complex | np.generic)
    text = f"{type(value).__name__} {value!r}"
    content = text.encode("utf-8", "surrogatepass") if is_plain else pickle.dumps(value, 4)
    return len(content).to_bytes(8, "little") + content


class GridFile:
    """A results file to which scores are appended, possibly by several threads.

    Parameters
    ----------
    path : str or path
    header : dict
        Description of the search. An existing file can be continued only if it has the same header.
    resume : bool
        True: continue the file if it exists. False: an existing file is an error.

    Attributes
    ----------
    records : dict of (items of the point, fold) to (score, seconds)
        The results that the file held when it was opened; `add` does not change it.
    was_cut : bool
        Whether an existing file ended inside its first line, so that it held no results and was started anew.
    """

    def __init__(self, path, header, resume):
        self._path, self._lock = Path(path), threading.Lock()
        self._states = Path(f"{path}.state")
        self._header = {"widemargin_grid": _FORMAT_VERSION, **header}
        self.records = {}
        exists = self._path.exists() and self._path.stat().st_size > 0
        if exists and not resume:
            raise FileExistsError(
                f"{path} holds the results of an earlier search: pass resume=True to continue it, or name another file"
            )
        self.was_cut = exists and _is_cut_header(self._path.read_bytes())
        if exists and not self.was_cut:
            self._resume()
        else:
            self._start()

    def _start(self):
        """Write the first line, and remove the state folder that another search may have left."""
        self.finish()
        with replacing(self._path) as file:
            file.write((json.dumps(self._header) + "\n").encode())

    def _resume(self):
        """Read the results, drop an incomplete last line, and append results that only the state folder holds.

        The dual variables of a fit are written before its line, so that a process can be killed between the two.
        """
        found, self.records, n_bytes = _read(self._path)
        for name, value in self._header.items():
            if found.get(name) != value:
                raise ValueError(f"{self._path} is of another search ({name}: {found.get(name)!r}, now {value!r}).")
        os.truncate(self._path, n_bytes)
        for path in sorted(self._states.glob("*.npz")) if self._states.exists() else []:
            try:
                with np.load(path) as arrays:
                    record = json.loads(str(arrays["record"]))
            except (OSError, ValueError, KeyError, zipfile.BadZipFile):  # incomplete
                path.unlink()
                continue
            key, result = _entry(record)
            if key not in self.records:
                self._append(record)
                self.records[key] = result

    def add(self, point, fold, score, seconds, state=()):
        """Append the score of a point on a fold, and store the dual variables from which the next fit starts.

        Returns
        -------
        (score, seconds)
            As a later reading of the file gives them: a score that is not finite as NaN, seconds with six decimals.
        """
        score = float(score) if math.isfinite(score) else None  # JSON has no NaN
        record = {"point": encoded(point), "fold": fold, "score": score, "seconds": round(seconds, 6)}
        if len(state):
            self._states.mkdir(exist_ok=True)
            path = self._state_path(point, fold)
            partial = path.with_suffix(".part")
            with open(partial, "wb") as file:
                np.savez(file, record=json.dumps(record), **{f"state{k}": array for k, array in enumerate(state)})
            os.replace(partial, path)
        self._append(record)
        return _entry(record)[1]

    def _append(self, record):
        with self._lock, open(self._path, "ab") as file:
            file.write((json.dumps(record) + "\n").encode())

    def state(self, point, fold):
        """Return the stored dual variables of this point and fold as a list of arrays; empty if there are none."""
        path = self._state_path(point, fold)
        if not path.exists():
            return []
        with np.load(path) as arrays:
            if _decoded(json.loads(str(arrays["record"]))["point"]) != point:
                return []
            return [arrays[f"state{k}"] for k in range(len(arrays.files) - 1)]

    def _state_path(self, point, fold):
        """Return the path of the stored dual variables: one file for all points that differ in C alone."""
        others = json.dumps({name: value for name, value in encoded(point).items() if name != "C"}, sort_keys=True)
        return self._states / f"{hashlib.sha256(others.encode()).hexdigest()[:16]}-{fold}.npz"

    def finish(self):
        """Remove the state folder, which only an unfinished search needs."""
        if self._states.exists():
            shutil.rmtree(self._states)


def _key(point):
    return tuple(point.items())


def encoded(point):
    """Return a point for JSON. A dict, whose keys need not be strings, becomes {"items": [[key, value]]}."""
    return {name: {"items": list(value.items())} if isinstance(value, dict) else value for name, value in point.items()}


def _decoded(point):
    return {name: Weights(value["items"]) if isinstance(value, dict) else value for name, value in point.items()}


def _entry(line):
    """Return ((items of the point, fold), (score, seconds)) of a line of the file."""
    score = float("nan") if line["score"] is None else float(line["score"])
    return (_key(_decoded(line["point"])), line["fold"]), (score, line["seconds"])


def _is_cut_header(content):
    """Return whether the content of a file is an incomplete first line."""
    first = b'{"widemargin_grid": '
    return len(content) > 0 and b"\n" not in content and content[: len(first)] == first[: len(content)]


def _read(path):
    """Return (header, records, number of bytes in complete lines)."""
    content = Path(path).read_bytes()
    if _is_cut_header(content):
        rule = "is cut inside its first line, and holds no results of a grid search; let the search begin anew"
        raise FormatError(str(path), rule, 1)
    complete = content[: content.rfind(b"\n") + 1]
    records = {}
    header = None
    for number, line in enumerate(complete.splitlines(), 1):
        try:
            entry = json.loads(line)
            if header is None:
                header, _ = entry, entry["widemargin_grid"]
            else:
                key, result = _entry(entry)
                records[key] = result
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            rule = "is not a results file of a grid search" if number == 1 else "the line is damaged; take it out"
            raise FormatError(str(path), rule, number) from error
    if header is None:
        raise FormatError(str(path), "is not a results file of a grid search", 1)
    if header["widemargin_grid"] != _FORMAT_VERSION:
        rule = f"has format version {header['widemargin_grid']}; this program reads version {_FORMAT_VERSION}"
        raise FormatError(str(path), rule, 1)
    return header, records, len(complete)
