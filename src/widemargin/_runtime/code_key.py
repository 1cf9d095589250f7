"""What decides how the loops of the package are compiled, as a digest: code with another digest is never run.

Numba itself notices neither an edited function in another file nor a setting such as NUMBA_BOUNDSCHECK.
"""

import hashlib
import os
import sys
from functools import cache
from importlib.metadata import version
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
ROOMS = ("_runtime", "data", "kernels", "problems", "solvers")
"""The folders of the package that have compiled functions."""
_WITHOUT_EFFECT = {"NUMBA_CACHE_DIR", "NUMBA_CPU_FEATURES", "NUMBA_CPU_NAME", "NUMBA_DISABLE_JIT", "NUMBA_NUM_THREADS"}


@cache
def digest_of_sources():
    """Return a digest of the files that have compiled functions, and of the versions that compile them."""
    digest = hashlib.sha256()
    for room in ROOMS:
        for path in sorted((PACKAGE / room).rglob("*.py")):
            content = path.read_bytes()
            digest.update(f"{path.relative_to(PACKAGE).as_posix()} {len(content)}\n".encode())
            digest.update(content)
    numpy = version("numpy").split(".")[:2]  # on which the types of results depend
    words = [version("numba"), version("llvmlite"), *numpy, sys.implementation.cache_tag, sys.platform, sys.maxsize]
    digest.update(" ".join(map(str, words)).encode())
    return digest.hexdigest()[:24]


def digest_of_compiled_code():
    """Return a digest of all that decides how loops are compiled, except for the processor."""
    return hashlib.sha256(f"{digest_of_sources()} {settings_of_numba()}".encode()).hexdigest()[:24]


def settings_of_numba():
    """Return what changes compiled code beside the sources, as a text; "" if all is as it usually is.

    That are environment variables of Numba, and Intel's library of vectorised functions, which Numba uses if it is
    installed.
    """
    from numba.core import config

    names = sorted(name for name in os.environ if name.startswith("NUMBA_") and name not in _WITHOUT_EFFECT)
    return " ".join([f"{name}={os.environ[name]}" for name in names] + ["SVML"] * bool(config.USING_SVML))


def key_of(function, signature, processor):
    """Return a digest for one compiled function: of its name, the types of its arguments, and the processor."""
    words = [function.__module__, function.__qualname__, _described(signature), repr(processor)]
    if not Path(function.__code__.co_filename).is_relative_to(PACKAGE):
        words.append(_digest_outside(function))
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:32]


def _digest_outside(function):
    """Return a digest of the file of a function that is not in the package, as those of tests."""
    try:
        content = Path(function.__code__.co_filename).read_bytes()
    except OSError:  # as in a notebook
        content = function.__code__.co_code + repr(function.__code__.co_consts).encode()
    return hashlib.sha256(content).hexdigest()


def _described(kind):
    """Return a text for a type of Numba, or for a tuple of types, with the modules of the classes of named tuples."""
    if isinstance(kind, tuple):
        return f"({', '.join(map(_described, kind))})"
    made_of = getattr(kind, "instance_class", None)
    if made_of is None:
        return str(kind)
    return f"{made_of.__module__}.{made_of.__qualname__}{_described(tuple(kind))}"
