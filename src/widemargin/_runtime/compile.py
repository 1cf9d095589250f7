"""The decorators by which all compiled functions of the package are compiled, and their options.

Machine code is cached on disk. Compiled functions release the GIL and are serial; threads are created outside of them,
in `_runtime.threads`. No signatures are given, so that importing the package compiles nothing. Division follows NumPy:
a division by zero gives an infinity, not an exception.

Functions are compiled without Numba's reference counting (`_nrt=False`). They get all memory from the caller and
allocate no arrays (views are fine). Reference counting costs two atomic operations per array and inner call, which on
rows of a dozen values took three quarters of the time, and makes threads that share a matrix wait for each other.

Private interfaces of Numba are used only in this file: the option `_nrt`, the classes of the cache,
`dispatcher._cache`, and the intrinsic below. Tested with Numba 0.61.0 (llvmlite 0.44.0) and 0.68.1 (llvmlite 0.50.0).
pyproject.toml also allows the versions between these, which are not tested, and no newer ones.
"""

from contextlib import contextmanager

import numba
import numpy as np
from llvmlite import ir
from numba.core import caching, cgutils, event, types
from numba.extending import intrinsic, overload

from widemargin._runtime.warning import warn_once

SUMS = frozenset({"reassoc", "contract"})
"""fastmath flags for sums: terms may be reordered and fused; NaN and infinities keep their meaning."""

_OPTIONS = {"nogil": True, "error_model": "numpy", "_nrt": False}


def compiled(function=None, *, fastmath=frozenset()):
    """Compile a function of arrays, numbers and NamedTuples of arrays; use `fastmath=SUMS` only on plain sums.

    If compilation is disabled (NUMBA_DISABLE_JIT), the Python body runs without NumPy's floating point warnings, as
    machine code does.
    """

    def compile_with_cache(function):
        if numba.config.DISABLE_JIT:
            return np.errstate(divide="ignore", over="ignore", invalid="ignore")(function)
        dispatcher = numba.njit(fastmath=set(fastmath) or False, **_OPTIONS)(function)
        dispatcher._cache = _cache_of(function)
        return dispatcher

    return compile_with_cache if function is None else compile_with_cache(function)


_ADVICE = (
    "Every new process has to compile again. To keep compiled code, set the environment variable "
    "NUMBA_CACHE_DIR to a folder that can be written."
)


def _cache_of(function):
    """Return the disk cache of a function, or a cache that stores nothing if no folder is writable."""
    try:
        return _DiskCache(function)
    except RuntimeError as error:  # Numba's "no locator available", raised while the package is imported
        return _NoCache(str(error))


class _DiskCache(caching.FunctionCache):
    """Numba's disk cache, in which a disk error leads to a compilation and a warning instead of an exception.

    Numba itself raises if an index file (.nbi) or a file of machine code (.nbc) cannot be read, as after a power
    failure, and if a file cannot be written, as on a full disk.
    """

    def load_overload(self, sig, target_context):
        """Return the machine code for the signature, or None if it is not in the cache or cannot be read."""
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:  # a damaged pickle can raise almost any exception
            warn_once(f"A file of compiled code in {self.cache_path} cannot be read ({error!r}): compiling again.")
            self._discard()
            return None

    def _discard(self):
        """Empty the index, so that the next compilation replaces the damaged files."""
        try:
            self.flush()
        except OSError as error:
            self._keep_nothing(error)

    def save_overload(self, sig, data):
        """Write the machine code for the signature; if that fails, warn and disable the cache."""
        try:
            super().save_overload(sig, data)
        except OSError as error:
            self._keep_nothing(error)

    def _keep_nothing(self, error):
        self.disable()
        warn_once(f"Compiled code cannot be kept in {self.cache_path} ({error}). {_ADVICE}")


class _NoCache(caching.NullCache):
    """Keeps compiled code in memory only, and warns of it when the first function is compiled, not on import."""

    def __init__(self, reason):
        self._reason = reason

    def load_overload(self, sig, target_context):
        """Return None, since nothing is stored; the first call warns and gives the reason."""
        warn_once(f"Compiled code is kept in memory only ({self._reason}). {_ADVICE}", key="no cache folder")


def compiled_choice(function):
    """Choose the body that compiled code calls in place of `function` from the argument types (Numba's `overload`)."""
    return overload(function, inline="always", jit_options=_OPTIONS)


class _Compilations(event.Listener):
    """Calls two functions before and after each compilation; loading from the disk cache is not a compilation."""

    def __init__(self, before, after):
        self._before, self._after = before, after

    def on_start(self, event):
        self._before()

    def on_end(self, event):
        self._after()


def _nothing():
    """Do nothing."""


@contextmanager
def before_compilation(call, then=_nothing):
    """Within the block, call `call()` before each compilation of a function, and `then()` after it."""
    listener = _Compilations(call, then)
    event.register("numba:compile", listener)
    try:
        yield
    finally:
        event.unregister("numba:compile", listener)


@contextmanager
def announcing_compilation(tell):
    """Within the block, call `tell()` once, before the first compilation, so that the wait can be explained."""
    announced = []

    def first():
        if not announced:
            announced.append(True)
            tell()

    with before_compilation(first):
        yield


def prefetch(array, i):
    """Ask the processor to load the cache line of array[i] in advance; this has no effect on any result."""


@intrinsic
def _prefetch_line(typing_context, array, i):
    """Emit LLVM's prefetch instruction for the address of array[i] on the first axis: for reading, into all caches."""

    def generate(context, builder, signature, arguments):
        array_type, index_type = signature.args
        data = context.make_array(array_type)(context, builder, arguments[0])
        index = context.cast(builder, arguments[1], index_type, types.intp)
        stride = builder.extract_value(data.strides, 0)
        byte_pointer = ir.IntType(8).as_pointer()
        address = builder.gep(builder.bitcast(data.data, byte_pointer), [builder.mul(index, stride)])
        flag = ir.IntType(32)
        function_type = ir.FunctionType(ir.VoidType(), [byte_pointer, flag, flag, flag])
        function = cgutils.get_or_insert_function(builder.module, function_type, "llvm.prefetch.p0")
        builder.call(function, [address, flag(0), flag(3), flag(1)])
        return context.get_dummy_value()

    return types.void(array, i), generate


@compiled_choice(prefetch)
def _compiled_prefetch(array, i):
    return lambda array, i: _prefetch_line(array, i)


def count_bits(word):
    """Return the number of bits that are set in an unsigned integer of 64 bits."""
    return int(word).bit_count()


@intrinsic
def _count_bits(typing_context, word):
    """Emit LLVM's instruction that counts bits."""

    def generate(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@compiled_choice(count_bits)
def _compiled_count_bits(word):
    return lambda word: _count_bits(word)
