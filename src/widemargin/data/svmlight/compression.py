"""Compressed text: the format is recognised by the first bytes in reading, and chosen by the suffix in writing.

A few kilobytes can be crafted to expand to any size (a decompression bomb). Therefore text may expand to at most
256 MB, or 100 times its compressed size if that is more; real data sets expand to less than 40 times their compressed
size. The environment variable WIDEMARGIN_MAX_DECOMPRESSED, a number of bytes, replaces the 256 MB.
"""

import gzip
import io
import os
import sys
import zlib
from contextlib import nullcontext
from importlib import import_module


class MissingModuleError(ValueError):
    """This Python was built without a module that reads or writes a compressed file."""


class MissingModule:
    """In place of a module of a Python that was built without its library: all but opening files works."""

    class NeverRaised(Exception):
        """Stands for the errors of the module."""

    LZMAError = ZstdError = NeverRaised

    def __init__(self, name):
        self.name = name

    def open(self, *_arguments, **_options):
        """Raise a MissingModuleError, a ValueError, that names the way out."""
        raise MissingModuleError(f"this Python was built without the module {self.name}; take another format, as gzip")


def _module(name):
    """Return a module, or what stands for it if this Python has none."""
    try:
        return import_module(name)
    except ImportError:
        return MissingModule(name)


bz2, lzma = _module("bz2"), _module("lzma")
zstd = _module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")

_FORMATS = {  # first bytes of a file: name, module
    b"\x1f\x8b": ("gzip", gzip),
    b"BZh": ("bzip2", bz2),
    b"\xfd7zXZ\x00": ("xz", lzma),
    b"\x28\xb5\x2f\xfd": ("zstandard", zstd),
}
_SUFFIXES = {".gz": gzip, ".bz2": bz2, ".xz": lzma, ".zst": zstd}
_DAMAGE_ERRORS = (EOFError, OSError, ValueError, zlib.error, lzma.LZMAError, zstd.ZstdError)
_BYTES_PER_READ = 1 << 20
_DEFAULT_ALLOWED_BYTES = 1 << 28  # decompressed bytes that are allowed for any compressed size
_MAX_EXPANSION_RATIO = 100  # decompressed to compressed bytes, beyond that
_LIMIT_VARIABLE = "WIDEMARGIN_MAX_DECOMPRESSED"
LONGEST_MAGIC = max(len(magic) for magic in _FORMATS)


class ExpansionError(ValueError):
    """Compressed text expands to more than the allowed size."""


def check_expansion(n_bytes, n_compressed):
    """Raise ExpansionError if n_bytes are more than n_compressed bytes may expand to."""
    if n_bytes <= max(_MAX_EXPANSION_RATIO * n_compressed, _allowed_bytes()):
        return
    raise ExpansionError(
        f"{n_compressed:,} compressed bytes expand to {n_bytes:,} or more, beyond the limit of "
        f"{_MAX_EXPANSION_RATIO} times and {_allowed_bytes():,} bytes. If you trust the file, decompress it "
        f"first, or set the environment variable {_LIMIT_VARIABLE} to the number of bytes that it may expand to"
    )


def _allowed_bytes():
    """Return how many decompressed bytes are allowed for any compressed size."""
    given = os.environ.get(_LIMIT_VARIABLE, "")
    if not given:
        return _DEFAULT_ALLOWED_BYTES
    if not given.isascii() or not given.isdigit():
        raise ExpansionError(f"the environment variable {_LIMIT_VARIABLE} must be a number of bytes, got {given!r}")
    return int(given)


def compression_of(head):
    """Return (name, module) of the compression format that starts with these bytes, or None."""
    for magic, compression in _FORMATS.items():
        if head.startswith(magic):
            return compression
    return None


def decompress(data, module, advance=None):
    """Return the decompressed content of bytes, a memory map or a binary file.

    Raises ValueError if the data is damaged or truncated, and ExpansionError, a subclass, if it expands to more than
    the allowed size. `advance`, if given, is called with a number of compressed bytes whenever so many more are done.
    """
    source, blocks, done, n_bytes = data if hasattr(data, "read") else io.BytesIO(data), [], 0, 0
    with module.open(source) as file:
        while block := _read_block(file):
            blocks.append(block)
            n_bytes += len(block)
            check_expansion(n_bytes, source.tell())
            if advance is not None:
                advance(source.tell() - done)
                done = source.tell()
    return b"".join(blocks)


def _read_block(file):
    try:
        return file.read(_BYTES_PER_READ)
    except _DAMAGE_ERRORS as error:  # the data is in memory, so that an OSError is about the data too
        raise ValueError(str(error) or type(error).__name__) from error


def open_decompressed(file):
    """Return (name of the compression or None, file object of the decompressed content); `file` must have `peek`.

    Closing the returned object does not close `file`, unless the content is not compressed: then it is `file` itself.
    """
    compression = compression_of(file.peek(LONGEST_MAGIC))
    if compression is None:
        return None, file
    name, module = compression
    return name, module.open(file)


def read_decompressed(file, size):
    """Read up to `size` bytes of a decompressing file; raise ValueError if the data is damaged or truncated."""
    try:
        return file.read(size)
    except _DAMAGE_ERRORS as error:
        if isinstance(error, OSError) and error.errno is not None:  # an error of the operating system
            raise
        raise ValueError(str(error) or type(error).__name__) from error


def open_compressed(file, path):
    """Return a context manager of a file that compresses into the binary `file`, in the format of the suffix of `path`.

    `file` stays open.
    """
    module = _SUFFIXES.get(os.path.splitext(path)[1].lower())
    if module is None:
        return nullcontext(file)
    # The other formats contain a checksum by default.
    is_zstd = module is zstd and not isinstance(zstd, MissingModule)
    options = {"options": {zstd.CompressionParameter.checksum_flag: True}} if is_zstd else {}
    return module.open(file, "wb", **options)
