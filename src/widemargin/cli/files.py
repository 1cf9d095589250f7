"""The files of a command: `-` is standard input or output; targets are checked first and replaced when complete."""

import errno
import os
import sys
import tempfile
from pathlib import Path

from widemargin._runtime import progress
from widemargin._runtime.atomic_file import replacing
from widemargin.cli.messages import CommandError, UsageError, naming, say
from widemargin.data.precomputed_rows import KERNEL_WORDS, is_kernel
from widemargin.data.svmlight.reader import read_with_base
from widemargin.errors import FormatError
from widemargin.persistence.model_file import load_model, save_model

ZERO_BASED = {"auto": "auto", "yes": True, "no": False}


def read_rows(path, **options):
    """Return (X, y, qid) of a data file, qid None if there is none; `-` is standard input.

    Rows of a precomputed kernel are refused unless it is said that indices count from 0.
    """
    name = path if path != "-" else "standard input"
    with naming(name):
        X, y, qid, zero_based = read_with_base(sys.stdin.buffer if path == "-" else path, **options)
    if zero_based and options.get("zero_based", "auto") == "auto" and is_kernel(X):
        raise CommandError(
            f"{name}: {KERNEL_WORDS}, which is for models trained with -t 4; if index 0 is a feature, add "
            "--zero-based yes"
        )
    return X, y, qid


def note_queries(path, qid, *, wanted):
    """Say that a file's queries are not used, or that it has none where they are wanted."""
    if wanted and qid is None:
        say("note", f"{path} has no qid: all its rows are of one query")
    elif not wanted and qid is not None:
        say("note", f"{path} has queries (qid), which only --task rank uses: they are ignored")


def read_model(path, task=None):
    """Return the model of a file, told what SVM-light's text is for; `-` is standard input."""
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


def check_target(path, *sources):
    """Refuse a target that cannot be written, or that is one of the sources, before any work is done."""
    if path == "-":
        return
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, "is a directory", path)
    for source in sources:
        if source != "-" and os.path.exists(path) and os.path.exists(source) and os.path.samefile(path, source):
            raise UsageError(f"{path} would be overwritten by the result; name another file")
    directory = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(directory):
        raise CommandError(f"{path}: there is no directory {directory}; create it or name another place")
    if not os.access(path if _is_special(path) else directory, os.W_OK):
        raise PermissionError(errno.EACCES, "permission denied", path)


def write_model(model, path, form):
    """Write a model to a file, which is replaced when the new one is complete; `-` is standard output.

    The multipliers, a number per training row, are left out: only a warm start would need them.
    """
    if path != "-":
        with naming(path), progress.task(f"writing {os.path.basename(path)}"):
            _save(model, path, form)
        return
    with tempfile.TemporaryDirectory() as directory:
        made = Path(directory, "model")
        _save(model, made, form)
        sys.stdout.buffer.write(made.read_bytes())
        sys.stdout.buffer.flush()


def _save(model, path, form):
    try:
        save_model(model, path, format=form, keep_dual=False)
    except (TypeError, ValueError) as error:  # what the format has no place for
        raise CommandError(f"{path}: {error}") from error


def write_lines(lines, path):
    """Write lines to a file, which is replaced when the new one is complete; `-` is standard output."""
    text = (f"{line}\n" for line in lines)
    if path == "-":
        sys.stdout.writelines(text)
        sys.stdout.flush()
        return
    with naming(path), progress.task(f"writing {os.path.basename(path)}"), replacing(path) as file:
        file.writelines(line.encode() for line in text)


def _is_special(path):
    """Whether a path is a pipe or a device, which is written to and never replaced."""
    return os.path.exists(path) and not os.path.isfile(path)
