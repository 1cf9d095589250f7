"""Row-block files in workflows: recognised by their first bytes, opened, and refused where rows must be in memory."""

import errno
import glob
import os
from contextlib import contextmanager

from widemargin.data.blocks.reader import open_blocks
from widemargin.workflows.errors import ArgumentError, FileError, spelled

_FIRST_BYTES = b"ARROW1"
_OF_PATTERNS = "*?["


def is_block_file(source):
    """Return whether a source is the path of an Arrow file, by its first bytes; its name does not matter."""
    if not isinstance(source, str) or source == "-" or not os.path.isfile(source):
        return False
    try:
        with open(source, "rb") as file:
            return file.read(len(_FIRST_BYTES)) == _FIRST_BYTES
    except OSError:  # whoever reads the file next reports it
        return False


def block_paths(data):
    """Return the paths of the row-block files that `data` stands for, or None if it is something else.

    Parameters
    ----------
    data : str, list of paths, or file object
        A path; a pattern such as "part-*.arrow" if there is no file of that name; or several paths.

    Raises
    ------
    ArgumentError
        If there are several files, and one of them is not a row-block file.
    """
    if isinstance(data, str):
        if is_block_file(data):
            return [data]
        found = [] if os.path.lexists(data) or not set(_OF_PATTERNS) & set(data) else sorted(glob.glob(data))
        return block_paths(found) if found else None
    if not isinstance(data, list | tuple):
        return None
    paths = [os.fsdecode(path) for path in data]
    if not paths:
        raise ArgumentError(f"{spelled('data')} must be at least one file, got none")
    for path in paths:
        if not os.path.exists(path):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        if not is_block_file(path):
            raise ArgumentError(
                f"{path} is not a row-block file, and rows in several files must be in such; convert it with "
                f"{spelled('convert_file')}, or name one file of rows"
            )
    return paths


def name_of_files(paths):
    """Return the name of one or several files in messages."""
    return paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"


def open_block_files(paths):
    """Return the RowBlocks of files; FileError if pyarrow is not installed."""
    try:
        return open_blocks(paths)
    except ImportError as error:
        raise FileError(f"{name_of_files(paths)}: {error}") from error


def refuse_blocks(data, what):
    """Raise a FileError if `data` is a row-block file, which `what`, the subject of the sentence, cannot read."""
    paths = block_paths(data)
    if paths is not None:
        raise FileError(
            f"{name_of_files(paths)} is a row-block file, which {what} cannot read; write a part of its rows as text "
            f"with {spelled('subset_file with text=True')}, or train a linear machine, or one on a basis, on all of it "
            f"with {spelled('train_file')}"
        )


def refuse_options_of_text(paths, options):
    """Raise an ArgumentError for the first option that is given; `options` are names as `spelled`, and whether so."""
    for name, is_given in options.items():
        if is_given:
            raise ArgumentError(f"{name} is for text, {name_of_files(paths)} is a row-block file; leave it out")


@contextmanager
def memory_in_words(paths):
    """Within the block, raise a MemoryError that has a message as a FileError with the name of the files."""
    try:
        yield
    except MemoryError as error:
        if not str(error):
            raise
        raise FileError(f"{name_of_files(paths)}: {error}") from error
