"""How every compiled loop of the package is compiled: the one place that says so.

Cached on disk, the interpreter's lock released, serial (threads live outside, in `_threads`). No signatures,
so that importing compiles nothing. Division follows NumPy: dividing by zero gives an infinity, not an exception.

Compiled without Numba's reference counts (`_nrt=False`): a loop gets all its memory from the caller and allocates
none (views are fine). Counting costs two atomic operations per array and helper call, which on rows of a dozen
values took three quarters of the time, and would make threads that share a matrix wait for each other.
"""

from contextlib import contextmanager

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, event, types
from numba.extending import intrinsic, overload

SUMS = frozenset({"reassoc", "contract"})
"""fastmath flags for sums: terms may be reordered and fused; NaN and infinities keep their meaning."""


_OPTIONS = {"nogil": True, "error_model": "numpy", "_nrt": False}


def compiled(function=None, *, fastmath=frozenset()):
    """Compile a loop over arrays, numbers and NamedTuples of arrays; `fastmath=SUMS` only on plain sums.

    With compilation off (NUMBA_DISABLE_JIT), the plain body is as silent about infinities as machine code is.
    """
    if numba.config.DISABLE_JIT:
        jit = np.errstate(divide="ignore", over="ignore", invalid="ignore")
    else:
        jit = numba.njit(cache=True, fastmath=set(fastmath) or False, **_OPTIONS)
    return jit if function is None else jit(function)


def compiled_choice(function):
    """Let compiled loops call `function` by another body, chosen from the argument types: `@overload`, our way."""
    return overload(function, inline="always", jit_options=_OPTIONS)


class _Compilations(event.Listener):
    """Calls a function when one is compiled; functions loaded from the disk cache do not count."""

    def __init__(self, call):
        self._call = call

    def on_start(self, event):
        self._call()

    def on_end(self, event):
        """Nothing to say when a compilation ends."""


@contextmanager
def before_compilation(call):
    """Within the block, call `call()` whenever a function has to be compiled, before it is."""
    listener = _Compilations(call)
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
