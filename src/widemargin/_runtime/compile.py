"""How every compiled loop of the package is compiled: the one place that says so.

Cached on disk, the interpreter's lock released, serial (threads live outside, in `_threads`). No signatures,
so that importing compiles nothing. Division follows NumPy: dividing by zero gives an infinity, not an exception.

Compiled without Numba's reference counts (`_nrt=False`): a loop gets all its memory from the caller and allocates
none (views are fine). Counting costs two atomic operations per array and helper call, which on rows of a dozen
values took three quarters of the time, and would make threads that share a matrix wait for each other.

Private interfaces of Numba are used here and nowhere else: the option `_nrt`, the classes of the cache and
`dispatcher._cache`, the intrinsic below. Tested with Numba 0.61.0 (llvmlite 0.44.0) and 0.68.1 (llvmlite 0.50.0);
pyproject.toml also allows what lies between, which is not tested, and nothing newer.
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
    """Compile a loop over arrays, numbers and NamedTuples of arrays; `fastmath=SUMS` only on plain sums.

    With compilation off (NUMBA_DISABLE_JIT), the plain body is as silent about infinities as machine code is.
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
    """Return the cache of the function on disk, or one that keeps nothing if no folder can be written."""
    try:
        return _DiskCache(function)
    except RuntimeError as error:  # Numba's "no locator available", found out while importing
        return _NoCache(str(error))


class _DiskCache(caching.FunctionCache):
    """Numba's cache on disk; a fault of the disk costs a compilation and a warning, never the fit.

    Numba raises when an index (.nbi) or machine code (.nbc) cannot be read back, as after a power failure, and when
    a file cannot be written, as on a full disk.
    """

    def load_overload(self, sig, target_context):
        """Return the machine code for the signature, or None: not compiled before, or not readable."""
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:  # pickle raises almost anything on a damaged file
            warn_once(f"A file of compiled code in {self.cache_path} cannot be read ({error!r}): compiling again.")
            self._discard()
            return None

    def _discard(self):
        """Empty the index, so that what is compiled next replaces the damaged files."""
        try:
            self.flush()
        except OSError as error:
            self._keep_nothing(error)

    def save_overload(self, sig, data):
        """Write the machine code for the signature, if it can be written."""
        try:
            super().save_overload(sig, data)
        except OSError as error:
            self._keep_nothing(error)

    def _keep_nothing(self, error):
        self.disable()
        warn_once(f"Compiled code cannot be kept in {self.cache_path} ({error}). {_ADVICE}")


class _NoCache(caching.NullCache):
    """Compiled code is kept in memory only; said when the first function is compiled, not on import."""

    def __init__(self, reason):
        self._reason = reason

    def load_overload(self, sig, target_context):
        """Return None: nothing was kept. The first time, say why."""
        warn_once(f"Compiled code is kept in memory only ({self._reason}). {_ADVICE}", key="no cache folder")


def compiled_choice(function):
    """Let compiled loops call `function` by another body, chosen from the argument types: `@overload`, our way."""
    return overload(function, inline="always", jit_options=_OPTIONS)


class _Compilations(event.Listener):
    """Calls functions before and after one is compiled; functions loaded from the disk cache do not count."""

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
    """Within the block, call `call()` whenever a function has to be compiled, before it is, and `then()` after it."""
    listener = _Compilations(call, then)
    event.register("numba:compile", listener)
    try:
        yield
    finally:
        event.unregister("numba:compile", listener)


@contextmanager
def announcing_compilation(tell):
    """Within the block, call `tell()` once if anything has to be compiled: the wait needs an explanation."""
    told = []

    def first():
        if not told:
            told.append(True)
            tell()

    with before_compilation(first):
        yield


def prefetch(array, i):
    """Ask the processor to fetch the cache line of array[i] before it is needed; no effect on any result."""


@intrinsic
def _prefetch_line(typing_context, array, i):
    """Emit LLVM's prefetch instruction for the address of array[i] (first axis; read, keep in all caches)."""

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
