"""`report_file`: write a page of HTML about a model and its predictions on the rows of a file."""

import os
import sys
from dataclasses import dataclass
from typing import Any

from widemargin._runtime.atomic_file import replacing
from widemargin.errors import FormatError
from widemargin.models.cutting_plane.ranking import RankSVM
from widemargin.report.markup import size
from widemargin.report.model_report import report_page
from widemargin.selection.results_file import read_grid
from widemargin.workflows.block_files import refuse_blocks
from widemargin.workflows.errors import ArgumentError, FileError, spelled
from widemargin.workflows.files import (
    AnyPath,
    Source,
    as_path,
    as_source,
    check_one_input,
    check_target,
    name_of,
    naming,
    read_model,
)
from widemargin.workflows.model_rows import read_rows_for
from widemargin.workflows.result_text import columns


@dataclass(frozen=True)
class ReportFile:
    """The page that `report_file` wrote; `str` gives the lines that `widemargin report` prints.

    Attributes
    ----------
    path : str
        The path of the page; "-" is standard output.
    n_bytes : int
        Its size in bytes.
    """

    path: str
    n_bytes: int

    def to_dict(self) -> dict[str, Any]:
        """Return path and size as a dict that can be written as JSON."""
        return {"report": self.path, "bytes": self.n_bytes}

    def __str__(self) -> str:
        return columns({"report": "standard output" if self.path == "-" else self.path, "size": size(self.n_bytes)})


def report_file(
    model: AnyPath,
    data: Source,
    output: AnyPath | None = None,
    *,
    grid: AnyPath | None = None,
    title: str | None = None,
    task: str | None = None,
    zero_based: str | bool = "auto",
    command: str | None = None,
) -> ReportFile:
    """Write a page of HTML about a model and its predictions on the rows of a file.

    This is the function of `widemargin report`. The page is one file and needs no network. The same files give the
    same page, byte for byte.

    Parameters
    ----------
    model : path
        A model of widemargin, LIBSVM, LIBLINEAR or SVM-light; "-" is standard input.
    data : path or binary file object
        The rows as SVM-light / LIBSVM text, plain or compressed; "-" is standard input.
    output : path, default=None
        The file of the page. None is the name of the model file with ".html" appended, in the current directory; "-" is
        standard output.
    grid : path, default=None
        The results file of a grid search, which is shown as a figure.
    title : str, default=None
        The heading of the page; None is made from the names of the files.
    task : {"classification", "regression", "rank"}, default=None
        The task of a model in SVM-light's text, which contains it only if widemargin wrote the file; None is
        classification.
    zero_based : {"auto", True, False}, default="auto"
        Whether indices count from 0; "auto" is True if index 0 occurs. The page numbers features from 1,
        unless this is True.
    command : str, default=None
        The command that makes the page, which is shown at its end; None shows nothing.

    Returns
    -------
    ReportFile
        Has `path` and `n_bytes`; `print` shows them.

    Raises
    ------
    FormatError
        If a file breaks a rule of its format.
    ValueError
        If an argument does not apply to the files, or the grid search has no results yet.
    OSError
        If a file cannot be read or written.

    Examples
    --------
    >>> import io
    >>> from widemargin import LinearSVC, report_file, save_model
    >>> save_model(LinearSVC().fit([[0.0], [1.0]], [-1, 1]), "line.model")
    >>> report_file("line.model", io.BytesIO(b"1 1:2\\n-1 1:-3\\n")).path
    'line.model.html'
    """
    path, source, grid_path = as_path(model), as_source(data), as_path(grid)
    check_one_input(source, path)
    refuse_blocks(source, "a report")
    target = _choose_target(path, as_path(output))
    check_target(target, *(one for one in (path, source, grid_path) if one is not None))
    found = None if grid_path is None else _read_grid(grid_path)
    fitted = _read_model(path, source, task)
    X, y, qid = read_rows_for(fitted, source, path, zero_based=zero_based)
    if getattr(getattr(fitted, "classes_", None), "dtype", y.dtype).kind not in "biuf":
        raise FileError(
            f"{path}: its classes are words, such as {str(fitted.classes_[0])!r}, and labels in a data file are "
            "numbers; train on numbers, or make the page in Python: widemargin.report.model_report.report_page"
        )
    names = {"model_name": _name(path), "data_name": _name(source), "title": title}
    query = qid if isinstance(fitted, RankSVM) else None
    first = 0 if zero_based is True else 1
    page = report_page(fitted, X, y, query, **names, grid=found, command=command, first_feature=first)
    content = page.encode("utf-8", "backslashreplace")  # file names may contain bytes that are not valid UTF-8
    _write(content, target)
    return ReportFile(target, len(content))


def _choose_target(model_path, output):
    """Return the path of the page."""
    if output is None and model_path == "-":
        output_name, model_name = spelled("output path"), spelled("model")
        raise ArgumentError(f"{output_name} must be given if {model_name} is standard input")
    return os.path.basename(model_path) + ".html" if output is None else output


def _read_grid(path):
    """Return the GridResult of a results file; FileError if no point is complete."""
    with naming(path):
        grid = read_grid(path)
    if not grid.points:
        raise FileError(
            f"{path}: no point of the grid has all its folds yet; let the search go on, or leave {spelled('grid')} out"
        )
    return grid


def _read_model(path, data, task):
    """Return the model; if the paths of model and data were exchanged, the error says so."""
    try:
        return read_model(path, task)
    except FormatError as error:
        if path != "-" and data != "-" and isinstance(data, str) and _is_model(data):
            order = spelled("report_file(model, data)")
            raise ArgumentError(f"{data} is a model and {path} is not; the order is: {order}") from error
        raise


def _is_model(path):
    try:
        read_model(path)
    except (FormatError, OSError):
        return False
    return True


def _name(source):
    return "standard input" if source == "-" else os.path.basename(name_of(source))


def _write(content, target):
    if target == "-":
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    with naming(target), replacing(target) as file:
        file.write(content)
