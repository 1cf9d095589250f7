"""Compiled code that comes with the package: a file for each kind of processor, made when the package is built.

The file holds what `widemargin warmup` compiles, for a level of x86-64 processors (v2, v3, v4, each of which all newer
processors run, too) or for the processor of the machine that built it. Its name has the digest of all that decides how
the code is compiled (`code_key`), so a file of another version of the package, of Numba or of Python is never looked
into, and functions are compiled as if there were none. WIDEMARGIN_SHIPPED_CODE=no has the same effect.

    bytes 0 to 7    length of the index
    index           JSON: the processor, as Numba describes it, and name: [first byte, bytes] of each function
    the functions   as in `code_cache`, compressed by zlib
"""

import json
import mmap
import os
import zlib
from functools import cache

from llvmlite import binding

from widemargin._runtime.code_key import PACKAGE, key_of, settings_of_numba

FOLDER = PACKAGE / "_code"
_V2 = {"cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3"}
_V3 = _V2 | {"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"}
_V4 = _V3 | {"avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"}
LEVELS = {"x86-64-v4": _V4, "x86-64-v3": _V3, "x86-64-v2": _V2}
"""The levels of x86-64 processors, the newest first, and the instructions that each needs, as LLVM names them."""
HOST = "host"
"""The name of a file for the processor that it was built on, and no other."""
_BYTES_OF_LENGTH = 8
_LEVEL_OF_COMPRESSION = 6


def path_of(folder, digest, kind):
    """Return the path of a file of compiled code in a folder; `kind` is one of LEVELS or HOST."""
    return folder / f"{digest}-{kind}.code"


def kinds_for_this_processor():
    """Return the kinds of files whose code runs here, the best first."""
    try:
        has = {name for name, is_there in binding.get_host_cpu_features().items() if is_there}
    except RuntimeError:  # LLVM does not know on this platform
        has = set()
    is_x86 = binding.get_process_triple().startswith("x86_64")
    return [HOST, *(level for level, needs in LEVELS.items() if is_x86 and needs <= has)]


def pack(functions, processor, path):
    """Write a file of compiled code.

    Parameters
    ----------
    functions : dict of str to bytes
        The content of the files of `code_cache`, by name.
    processor : list
        The processor for which they were compiled, as Numba describes it.
    path : Path
    """
    index, blobs, place = {}, [], 0
    for name, content in sorted(functions.items()):
        blobs.append(zlib.compress(content, _LEVEL_OF_COMPRESSION))
        index[name] = [place, len(blobs[-1])]
        place += len(blobs[-1])
    head = json.dumps({"processor": processor, "functions": index}).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(f".{os.getpid()}")
    temporary.write_bytes(b"".join([len(head).to_bytes(_BYTES_OF_LENGTH, "little"), head, *blobs]))
    os.replace(temporary, path)


class _File:
    """An open file of compiled code."""

    def __init__(self, path):
        with path.open("rb") as file:
            self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        length = int.from_bytes(self._bytes[:_BYTES_OF_LENGTH], "little")
        self._start = _BYTES_OF_LENGTH + length
        head = json.loads(self._bytes[_BYTES_OF_LENGTH : self._start])
        self.processor, self._places = tuple(head["processor"]), head["functions"]

    def get(self, name):
        """Return the content of a function, or None if it is not in the file."""
        if name not in self._places:
            return None
        first, length = self._places[name]
        first += self._start
        return zlib.decompress(self._bytes[first : first + length])


def find(function, signature, digest, this_processor):
    """Return the content of the file of `code_cache` for a function, if it came with the package; None otherwise."""
    file = _open(FOLDER, digest, this_processor, settings_of_numba())
    return None if file is None else file.get(f"{function.__name__}-{key_of(function, signature, file.processor)}")


@cache
def _open(folder, digest, this_processor, settings):
    """Return the best file of compiled code for this processor; None if there is none, or if it must not be used.

    It must not be used with settings of Numba, and if a processor was chosen by NUMBA_CPU_NAME.
    """
    refused = settings or any(name in os.environ for name in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"))
    if refused or os.environ.get("WIDEMARGIN_SHIPPED_CODE") == "no":
        return None
    for kind in kinds_for_this_processor():
        try:
            file = _File(path_of(folder, digest, kind))
        except (OSError, ValueError, KeyError):  # absent, or damaged: compiling does without
            continue
        if kind != HOST or file.processor == this_processor:
            return file
    return None
