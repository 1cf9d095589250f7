"""Reading and writing the files of a workflow, with progress.

The path `-` is standard input or output. Output paths are checked before the work starts, and an existing file is
replaced when the new one is complete.
"""

import errno
import os
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from widemargin._runtime import progress
from widemargin._runtime.atomic_file import replacing
from widemargin._runtime.compile import announcing_compilation
from widemargin._runtime.progress import ProgressReport
from widemargin._runtime.warning import warn_caller
from widemargin.data.precomputed_rows import KERNEL_WORDS, is_kernel
from widemargin.data.svmlight.reader import read_with_base
from widemargin.errors import FormatError
from widemargin.persistence.model_file import load_model, save_model
from widemargin.workflows.errors import ArgumentError, FileError, FileNote, spelled

AnyPath = str | bytes | os.PathLike
Source = AnyPath | BinaryIO


@contextmanager
def shown_progress(verbose):
    """Within the block, show progress if `verbose` is not 0; otherwise an enclosing report, if any, stays in force."""
    if not verbose:
        yield
        return
    with ProgressReport(verbose, last_lines=False) as report, announcing_compilation(report.compiling):
        yield


def as_source(path_or_file):
    """Return a path as a str, and a file object as it is."""
    is_path = isinstance(path_or_file, (str, bytes, os.PathLike))
    return os.fsdecode(path_or_file) if is_path else path_or_file


def as_path(path):
    """Return a path as a str, None as None."""
    return None if path is None else os.fsdecode(path)


def name_of(source):
    """Return the name of a source in messages: its path, or the name of a file object."""
    return source if isinstance(source, str) else str(getattr(source, "name", "<stream>"))


@contextmanager
def naming(name):
    """Within the block, set the file name of every OSError to `name`: it may have none, or that of a temporary file."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        error.filename = name
        raise


def naming_the_file(data, function, *arguments, **options):
    """Call a function; raise its ValueError as a FileError whose message begins with the name of the data file."""
    try:
        return function(*arguments, **options)
    except FormatError:  # of a row-block file or a checkpoint, with its name
        raise
    except ValueError as error:
        raise FileError(f"{name_of(data)}: {error}") from error


def read_rows(source, **options):
    """Return (X, y, qid) of a data file; qid is None if the file has no queries.

    Rows that look like those of a precomputed kernel raise a FileError unless `zero_based` is True.
    """
    name = "standard input" if source == "-" else name_of(source)
    with naming(name):
        X, y, qid, zero_based = read_with_base(sys.stdin.buffer if source == "-" else source, **options)
    if zero_based and options.get("zero_based", "auto") == "auto" and is_kernel(X):
        trained, base = spelled('kernel="precomputed"'), spelled("zero_based=True")
        raise FileError(
            f"{name}: {KERNEL_WORDS}, which is for models trained with {trained}; if index 0 is a feature, add {base}"
        )
    return X, y, qid


def note_queries(source, qid, *, wanted):
    """Warn that the queries of a file are not used, or that a file has none although `wanted` says they are needed."""
    name = name_of(source)
    if wanted and qid is None:
        warn_caller(f"{name} has no qid: all its rows are of one query", FileNote)
    elif not wanted and qid is not None:
        ranking = spelled("RankSVM")
        warn_caller(f"{name} has queries (qid), which only {ranking} uses: they are ignored", FileNote)


def read_model(path, task=None):
    """Return the model of a file; `task` is the task of a model in SVM-light's text, which does not contain it."""
    if path != "-":
        with naming(path), progress.task(f"reading {os.path.basename(path)}"):
            return load_model(path, task=task)
    with tempfile.TemporaryDirectory() as directory:
        copy = Path(directory, "model")
        copy.write_bytes(sys.stdin.buffer.read())
        try:
            return load_model(copy, task=task)
        except FormatError as error:
            raise FormatError("<stdin>", error.rule, error.line, error.column) from error


def check_one_input(data, model_path):
    """Raise an ArgumentError if both the rows and the model would be read from standard input."""
    if data == "-" and model_path == "-":
        raise ArgumentError(f"{spelled('data')} and {spelled('model')} cannot both be standard input")


def check_target(path, *sources):
    """Raise an error if an output path cannot be written, or is one of the input files."""
    if path == "-":
        return
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, "is a directory", path)
    for source in sources:
        is_file = isinstance(source, str) and source != "-" and os.path.exists(source)
        if is_file and os.path.exists(path) and os.path.samefile(path, source):
            raise ArgumentError(f"{path} would be overwritten by the result; name another file")
    directory = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(directory):
        raise FileError(f"{path}: there is no directory {directory}; create it or name another place")
    if not os.access(path if _is_special(path) else directory, os.W_OK):
        raise PermissionError(errno.EACCES, "permission denied", path)


def write_model(model, path, form):
    """Write a model to a file.

    The dual variables, one number per training row, are left out because only a warm start needs them.
    """
    write_whole(path, lambda target: _save(model, target, form))


def write_whole(path, write):
    """Call write(path); of standard output it is given the path of a temporary file, whose content is then printed."""
    if path != "-":
        with naming(path), progress.task(f"writing {os.path.basename(path)}"):
            write(path)
        return
    with tempfile.TemporaryDirectory() as directory:
        made = Path(directory, "made")
        write(made)
        sys.stdout.buffer.write(made.read_bytes())
        sys.stdout.buffer.flush()


def _save(model, path, form):
    try:
        save_model(model, path, format=form, keep_dual=False)
    except (TypeError, ValueError) as error:  # the format cannot represent this model
        raise FileError(f"{path}: {error}") from error


def write_lines(lines, path):
    """Write lines of text to a file."""
    text = (f"{line}\n" for line in lines)
    if path == "-":
        sys.stdout.writelines(text)
        sys.stdout.flush()
        return
    with naming(path), progress.task(f"writing {os.path.basename(path)}"), replacing(path) as file:
        file.writelines(line.encode() for line in text)


def _is_special(path):
    """Return whether a path is a pipe or a device, which cannot be replaced by a new file."""
    return os.path.exists(path) and not os.path.isfile(path)
