"""`compress_file`: a kernel machine of a model file on fewer vectors."""

from dataclasses import dataclass
from typing import Any, Literal

from widemargin.models.kernel.compression import compress
from widemargin.models.kernel.compression_report import Compression
from widemargin.workflows.block_files import block_paths, refuse_blocks
from widemargin.workflows.errors import ArgumentError, FileError, spelled
from widemargin.workflows.files import (
    AnyPath,
    Source,
    as_path,
    as_source,
    check_one_input,
    check_target,
    read_model,
    write_model,
)
from widemargin.workflows.model_rows import read_rows_for
from widemargin.workflows.result_text import model_words


@dataclass(frozen=True, eq=False)
class CompressedFile:
    """The result of `compress_file`; `str` gives the lines that `widemargin compress` prints.

    Attributes
    ----------
    model : SVC, NuSVC, SVR, NuSVR or OneClassSVM
        The compressed model.
    output : str
        The path of its file.
    """

    model: Any
    output: str

    @property
    def compression(self) -> Compression:
        """How far the model is from the original."""
        return self.model.compression_

    def to_dict(self) -> dict[str, Any]:
        """Return the facts as a dict that can be written as JSON."""
        return {"machine": model_words(self.model), **self.compression.to_dict(), "model": self.output}

    def __str__(self) -> str:
        return f"machine            {model_words(self.model)}\n{self.compression}\nmodel              {self.output}"


def compress_file(
    model: AnyPath,
    output: AnyPath,
    *,
    n_vectors: int | None = None,
    max_change: float | None = None,
    rows: Source | None = None,
    refit: Literal["coefficients", "vectors"] | None = None,
    format: Literal["widemargin", "libsvm"] = "widemargin",  # noqa: A002
    zero_based: str | bool = "auto",
) -> CompressedFile:
    """Write a kernel machine on fewer vectors, which predicts in proportion faster.

    This is the function of `widemargin compress`; see `compress` for the method.

    Parameters
    ----------
    model : path
        A kernel machine of widemargin or LIBSVM; "-" is standard input.
    output : path
        The file of the compressed model; "-" is standard output.
    n_vectors : int, default=None
        How many vectors to keep.
    max_change : float, default=None
        Keep as few vectors as it takes to prove that no decision value changes by more. Exactly one of `n_vectors` and
        `max_change` must be given.
    rows : path or binary file object, default=None
        Rows as SVM-light / LIBSVM text such as those of training, whose labels are not used: the change of their
        decision values is reported, and `refit` fits them.
    refit : {"coefficients", "vectors"}, default=None
        What to fit to the decision values of the original at the rows: the coefficients, or the vectors as well.
    format : {"widemargin", "libsvm"}, default="widemargin"
        The format of the new file. In LIBSVM's, pairs of classes have the vectors of their two classes, as with
        `compress(shared=False)`.
    zero_based : {"auto", True, False}, default="auto"
        Whether indices of the rows count from 0; "auto" is True if index 0 occurs.

    Returns
    -------
    CompressedFile
        Has `model` and `compression`; `print` shows a summary.

    Raises
    ------
    FormatError
        If a file breaks a rule of its format.
    ValueError
        If the model cannot be compressed, or arguments contradict each other.
    OSError
        If a file cannot be read or written.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import SVC, compress_file, save_model
    >>> save_model(SVC().fit(*load_iris(return_X_y=True)), "iris.model")
    >>> compress_file("iris.model", "small.model", n_vectors=10).compression.n_after
    10
    """
    path, target, source = as_path(model), as_path(output), None if rows is None else as_source(rows)
    _check_arguments(n_vectors, max_change, source, refit)
    check_one_input(source, path)
    check_target(target, path, source)
    fitted = read_model(path)
    X = None if source is None else _rows_of(fitted, source, path, zero_based)
    try:
        shared = False if format == "libsvm" else None  # LIBSVM's text would repeat shared vectors for each class
        small = compress(fitted, X, n_vectors=n_vectors, max_change=max_change, refit=refit, shared=shared)
    except (TypeError, ValueError) as error:
        raise FileError(f"{path}: {error}") from error
    write_model(small, target, format)
    return CompressedFile(small, target)


def _check_arguments(n_vectors, max_change, rows, refit):
    """Raise an ArgumentError if arguments contradict each other."""
    number, change, fit = spelled("n_vectors"), spelled("max_change"), spelled("refit")
    if (n_vectors is None) == (max_change is None):
        raise ArgumentError(f"give either {number} or {change}, and not both")
    if refit is not None and max_change is not None:
        raise ArgumentError(f"{fit} does not keep to {change}, which bounds the change of every row; use {number}")
    if refit is not None and rows is None:
        raise ArgumentError(f"{fit} needs {spelled('rows')}, a file such as that of training")


def _rows_of(model, source, path, zero_based):
    """Return the rows of a file, with one column for each feature of the model."""
    paths = block_paths(source)
    if paths is not None:
        refuse_blocks(paths, "compression")
    return read_rows_for(model, source, path, zero_based=zero_based)[0]
