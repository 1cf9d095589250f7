"""Compressed text: told from its first bytes when read, chosen by its suffix when written.

A few kilobytes can be made to expand to any size. Text may therefore expand to 256 MB whatever it is made of, and
beyond that to 100 times its compressed size; real data sets stay below 40 times. The environment variable
WIDEMARGIN_MAX_DECOMPRESSED, a number of bytes, is put in the place of the 256 MB.
"""

import bz2
import gzip
import io
import lzma
import os
import sys
import zlib
from contextlib import nullcontext

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_FORMATS = {  # first bytes of a file: name, module
    b"\x1f\x8b": ("gzip", gzip),
    b"BZh": ("bzip2", bz2),
    b"\xfd7zXZ\x00": ("xz", lzma),
    b"\x28\xb5\x2f\xfd": ("zstandard", zstd),
}
_SUFFIXES = {".gz": gzip, ".bz2": bz2, ".xz": lzma, ".zst": zstd}
_DAMAGE = (EOFError, OSError, ValueError, zlib.error, lzma.LZMAError, zstd.ZstdError)
_BLOCK_BYTES = 1 << 20
_FREE_BYTES = 1 << 28
_HIGHEST_RATIO = 100
_VARIABLE = "WIDEMARGIN_MAX_DECOMPRESSED"
LONGEST_MAGIC = max(len(magic) for magic in _FORMATS)


class ExpansionError(ValueError):
    """Compressed text expands to more than is believed of it."""


def check_expansion(n_bytes, n_compressed):
    """Raise ExpansionError if so many bytes may not come from so many compressed ones."""
    if n_bytes <= max(_HIGHEST_RATIO * n_compressed, _free_bytes()):
        return
    raise ExpansionError(
        f"{n_compressed:,} compressed bytes expand to {n_bytes:,} or more, beyond the limit of {_HIGHEST_RATIO} times "
        f"and {_free_bytes():,} bytes. If you trust the file, decompress it first, or set the environment variable "
        f"{_VARIABLE} to the number of bytes that it may expand to"
    )


def _free_bytes():
    """Return how many bytes are allowed whatever they come from."""
    given = os.environ.get(_VARIABLE, "")
    if not given:
        return _FREE_BYTES
    if not given.isascii() or not given.isdigit():
        raise ExpansionError(f"the environment variable {_VARIABLE} must be a number of bytes, got {given!r}")
    return int(given)


def compression_of(head):
    """Return (name, module) of the compression that the first bytes of a file announce, or None."""
    for magic, compression in _FORMATS.items():
        if head.startswith(magic):
            return compression
    return None


def decompress(data, module, advance=None):
    """Decompress bytes or a memory map; a ValueError says what is wrong with damaged or truncated ones.

    An ExpansionError, also a ValueError, says that they expand to more than is believed of them.
    `advance`, if given, is called with a number of compressed bytes whenever so many more are done.
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
        return file.read(_BLOCK_BYTES)
    except _DAMAGE as error:  # no file is read here, so an OSError too speaks of the data
        raise ValueError(str(error) or type(error).__name__) from error


def open_decompressed(file):
    """Return (name of the compression or None, a file of what `file` holds); `file` can peek, and stays open."""
    compression = compression_of(file.peek(LONGEST_MAGIC))
    if compression is None:
        return None, file
    name, module = compression
    return name, module.open(file)


def read_decompressed(file, size):
    """Read up to `size` bytes; a ValueError says what is wrong with damaged or truncated ones."""
    try:
        return file.read(size)
    except _DAMAGE as error:
        if isinstance(error, OSError) and error.errno is not None:  # the system could not read
            raise
        raise ValueError(str(error) or type(error).__name__) from error


def open_compressed(file, path):
    """Return a context whose file compresses into the binary `file` as the suffix of `path` says; `file` stays open."""
    module = _SUFFIXES.get(os.path.splitext(path)[1].lower())
    if module is None:
        return nullcontext(file)
    # The others carry a checksum without being asked.
    options = {"options": {zstd.CompressionParameter.checksum_flag: True}} if module is zstd else {}
    return module.open(file, "wb", **options)
