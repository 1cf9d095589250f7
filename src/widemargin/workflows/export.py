"""`export_file`: the model of a file for ONNX runtimes, or as a program in Python or C."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from widemargin.persistence.export.c_scorer import export_c
from widemargin.persistence.export.numpy_scorer import export_numpy
from widemargin.persistence.export.onnx_file import export_onnx
from widemargin.workflows.errors import ArgumentError, FileError, spelled
from widemargin.workflows.files import AnyPath, as_path, check_target, read_model, write_whole
from widemargin.workflows.result_text import columns, model_words

_FUNCTIONS: dict[str, Callable[..., Any]] = {"onnx": export_onnx, "numpy": export_numpy, "c": export_c}
_OPTIONS = {"dtype": "onnx", "prefix": "c"}  # options, and what they are for
_WORDS = {"onnx": "ONNX, opset 17", "numpy": "Python with NumPy", "c": "C99"}


@dataclass(frozen=True, eq=False)
class ExportedFile:
    """The result of `export_file`; `str` gives the lines that `widemargin export` prints.

    Attributes
    ----------
    model : estimator
        The model that was exported.
    to : {"onnx", "numpy", "c"}
        What it was exported to.
    output : str
        The path of the new file.
    n_bytes : int or None
        Its size; None of standard output.
    """

    model: Any
    to: str
    output: str
    n_bytes: int | None

    def to_dict(self) -> dict[str, Any]:
        """Return the facts as a dict that can be written as JSON."""
        return {"machine": model_words(self.model), "to": self.to, "output": self.output, "bytes": self.n_bytes}

    def __str__(self) -> str:
        facts = {"machine": model_words(self.model), "written as": _WORDS[self.to], "output": self.output}
        return columns(facts | ({} if self.n_bytes is None else {"bytes": f"{self.n_bytes:,}"}))


def export_file(
    model: AnyPath,
    output: AnyPath,
    *,
    to: Literal["onnx", "numpy", "c"] = "onnx",
    dtype: Literal["float64", "float32"] | None = None,
    prefix: str | None = None,
) -> ExportedFile:
    """Write the model of a file for ONNX runtimes, or a linear one as a program in Python or C.

    This is the function of `widemargin export`; see `export_onnx`, `export_numpy` and `export_c`.

    Parameters
    ----------
    model : path
        A model file of widemargin, LIBSVM, LIBLINEAR or SVM-light; "-" is standard input.
    output : path
        The file to write; "-" is standard output.
    to : {"onnx", "numpy", "c"}, default="onnx"
        An ONNX graph, a Python file that needs NumPy only, or a file of C99. The last two are for linear models.
    dtype : {"float64", "float32"}, default=None
        Of an ONNX graph: the type of rows, results and kernel values; None is "float64".
    prefix : str, default=None
        Of a C file: the beginning of all names; None is "svm".

    Returns
    -------
    ExportedFile
        `print` shows a summary.

    Raises
    ------
    FormatError
        If the model file breaks a rule of its format.
    ValueError
        If the model cannot be exported, onnx is not installed, or an option is not for this kind of file.
    OSError
        If a file cannot be read or written.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import LinearSVC, export_file, save_model
    >>> save_model(LinearSVC(C=0.1, random_state=0).fit(*load_iris(return_X_y=True)), "iris.model")
    >>> print(export_file("iris.model", "iris.c", to="c"))
    machine     linear SVC, squared hinge loss
    written as  C99
    output      iris.c
    bytes       ...
    """
    if to not in _FUNCTIONS:
        raise ArgumentError(f"to must be one of {', '.join(map(repr, _FUNCTIONS))}, got {to!r}.")
    given = {name: value for name, value in (("dtype", dtype), ("prefix", prefix)) if value is not None}
    for name in given:
        if _OPTIONS[name] != to:
            raise ArgumentError(f"{spelled(name)} is for {_WORDS[_OPTIONS[name]]}, not for {_WORDS[to]}")
    path, target = as_path(model), as_path(output)
    check_target(target, path)
    fitted = read_model(path)
    try:
        write_whole(target, partial(_FUNCTIONS[to], fitted, **given))
    except (ImportError, TypeError, ValueError) as error:
        raise FileError(f"{path}: {error}") from error
    return ExportedFile(fitted, to, target, None if target == "-" else os.path.getsize(target))
