"""The decorators by which all compiled functions of the package are compiled, and their options.

Machine code is kept on disk, see `code_cache`. Compiled functions release the GIL and are serial; threads are created
outside of them, in `_runtime.threads`. No signatures are given, so that importing the package compiles nothing.
Division follows NumPy: a division by zero gives an infinity, not an exception.

Importing the package does not import Numba either, which takes a third of a second. The decorators only take note of a
function. What they return imports Numba, in `jit`, when it is first called, or when a compiled function that calls it
is compiled. From then on the names in the modules of the package stand for Numba's own functions, so that later calls
cost nothing more.

Functions are compiled without Numba's reference counting (`_nrt=False`). They get all memory from the caller and
allocate no arrays (views are fine). Reference counting costs two atomic operations per array and inner call, which on
rows of a dozen values took three quarters of the time, and makes threads that share a matrix wait for each other.
"""

import sys
import threading
from functools import update_wrapper
from importlib import import_module

from widemargin._runtime.compile_events import announcing_compilation as announcing_compilation
from widemargin._runtime.compile_events import before_compilation as before_compilation

SUMS = frozenset({"reassoc", "contract"})
"""fastmath flags for sums: terms may be reordered and fused; NaN and infinities keep their meaning."""

_making = threading.RLock()
_choices: list = []  # (function, choose) of `compiled_choice` that Numba does not know yet
_names_of: dict = {}  # by the id of a noted function, the (namespace, name) pairs of the package that hold it
_n_modules_searched = 0  # of sys.modules, when `_names_of` was made


class Noted:
    """A function that Numba is to compile, or an instruction for compiled code, before Numba is imported.

    Calls are passed on to the function that Numba makes of it, and so are all attributes, such as `stats`.

    Parameters
    ----------
    function : function
    make : callable
        Called as make(jit, function), once; returns what Numba makes of the function.
    """

    def __init__(self, function, make):
        update_wrapper(self, function)
        self.py_func = function
        self._make, self._made = make, None

    def __call__(self, *arguments, **named):
        made = self._made
        return (self.made() if made is None else made)(*arguments, **named)

    def made(self):
        """Return what Numba makes of the function, and let the names in the package stand for it."""
        with _making:
            if self._made is None:
                jit = _started()
                self._made = self._make(jit, self.py_func)
                for namespace, name in _names(self):
                    if namespace.get(name) is self:
                        namespace[name] = self._made
            return self._made

    @property
    def _numba_type_(self):
        """The type that Numba sees where compiled code names the function."""
        return _started().type_of(self.made())

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.made(), name)

    def __reduce__(self):
        return _named, (self.__module__, self.__qualname__)


def _named(module, name):
    return getattr(import_module(module), name)


def _started():
    """Return the module `jit`, which imports Numba, after all choices known so far are registered there."""
    from widemargin._runtime import jit

    with _making:
        while _choices:
            jit.register_choice(*_choices.pop(0))
    return jit


def _names(noted):
    """Return the (namespace, name) pairs of modules of the package, and of its own module, that hold a function."""
    global _n_modules_searched
    if len(sys.modules) != _n_modules_searched:
        _n_modules_searched = len(sys.modules)
        _names_of.clear()
        modules = [vars(module) for path, module in list(sys.modules.items()) if path.startswith("widemargin.")]
        for namespace in modules:
            for name in [name for name, value in namespace.items() if type(value) is Noted]:
                _names_of.setdefault(id(namespace[name]), []).append((namespace, name))
    return [*_names_of.get(id(noted), []), (noted.py_func.__globals__, noted.__name__)]


def compiled(function=None, *, fastmath=frozenset()):
    """Compile a function of arrays, numbers and NamedTuples of arrays; use `fastmath=SUMS` only on plain sums.

    If compilation is disabled (NUMBA_DISABLE_JIT), the Python body runs without NumPy's floating point warnings, as
    machine code does.
    """

    def note(function):
        return Noted(function, lambda jit, function: jit.compile_with_cache(function, fastmath))

    return note if function is None else note(function)


def instruction(function):
    """Make an instruction for compiled code of a function that emits it (Numba's `intrinsic`)."""
    return Noted(function, lambda jit, function: jit.intrinsic(function))


def compiled_choice(function):
    """Choose the body that compiled code calls in place of `function` from the argument types (Numba's `overload`)."""

    def note(choose):
        _choices.append((function, choose))
        return choose

    return note


def prefetch(array, i):
    """Ask the processor to load the cache line of array[i] in advance; this has no effect on any result."""


@instruction
def _prefetch_line(typing_context, array, i):
    """Emit LLVM's prefetch instruction for the address of array[i] on the first axis: for reading, into all caches."""
    from llvmlite import ir
    from numba.core import cgutils, types

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


@instruction
def _count_bits(typing_context, word):
    """Emit LLVM's instruction that counts bits."""
    from numba.core import types

    def generate(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@compiled_choice(count_bits)
def _compiled_count_bits(word):
    return lambda word: _count_bits(word)
