"""Compressed text: told from its first bytes when read, chosen by its suffix when written."""

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
LONGEST_MAGIC = max(len(magic) for magic in _FORMATS)


def compression_of(head):
    """Return (name, module) of the compression that the first bytes of a file announce, or None."""
    for magic, compression in _FORMATS.items():
        if head.startswith(magic):
            return compression
    return None


def decompress(data, module, advance=None):
    """Decompress bytes or a memory map; a ValueError says what is wrong with damaged or truncated ones.

    `advance`, if given, is called with a number of compressed bytes whenever so many more are done.
    """
    source, blocks, done = data if hasattr(data, "read") else io.BytesIO(data), [], 0
    with module.open(source) as file:
        while block := _read_block(file):
            blocks.append(block)
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
