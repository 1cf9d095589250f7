"""What needs Numba; see `compile`, which imports this file when something is first compiled or loaded.

Private interfaces of Numba are used only here, in `code_cache` and in `code_key`: the option `_nrt`, the class of
functions that Numba makes and its `_cache`, the classes of the cache, and what describes the processor. Tested with
Numba 0.61.0 (llvmlite 0.44.0) and 0.68.1 (llvmlite 0.50.0). pyproject.toml also allows the versions between these,
which are not tested, and no newer ones.
"""

import numba
import numpy as np
from numba.core import event, types
from numba.core.registry import CPUDispatcher, cpu_target
from numba.extending import intrinsic, overload

from widemargin._runtime.code_cache import CodeCache
from widemargin._runtime.compile_events import listeners
from widemargin._runtime.compile_notice import Notice

__all__ = ["compile_with_cache", "intrinsic", "register_choice", "type_of"]

_OPTIONS = {"nogil": True, "error_model": "numpy", "_nrt": False}


class _Function(CPUDispatcher):
    """A function compiled by Numba, once for arguments of the same types.

    Numba itself also compiles a function that compiled code calls once for each constant among the arguments. LLVM
    inserts constants anyway where it inlines the call, and of the 54 functions of a first LinearSVC.fit 7 were such
    copies.
    """

    def get_call_template(self, args, kws):
        """Return what Numba needs to know of a call with arguments of these types, constants taken for numbers."""
        args = tuple(types.unliteral(argument) for argument in args)
        return super().get_call_template(args, {name: types.unliteral(argument) for name, argument in kws.items()})


def compile_with_cache(function, fastmath):
    """Return a function that is compiled, or loaded from the disk, when it is called with new types of arguments."""
    if numba.config.DISABLE_JIT:
        return np.errstate(divide="ignore", over="ignore", invalid="ignore")(function)
    options = {"nopython": True, "boundscheck": None, "fastmath": set(fastmath) or False, **_OPTIONS}
    made = _Function(py_func=function, locals={}, targetoptions=options)
    made._cache = CodeCache(function)
    return made


def register_choice(function, choose):
    """Let compiled code call the body that `choose` returns for the argument types, in place of `function`."""
    overload(function, inline="always", jit_options=_OPTIONS)(choose)


def type_of(made):
    """Return Numba's type of a compiled function or of an instruction."""
    context = cpu_target.typing_context
    context.refresh()
    return context.resolve_value_type(made)


class _Listener(event.Listener):
    """Passes on that a compilation begins or ends; loading from the disk is not a compilation."""

    def __init__(self):
        self._notice = Notice()

    def on_start(self, event):
        for before, _ in list(listeners):
            before()
        self._notice.begin(event.data)

    def on_end(self, event):
        self._notice.end()
        for _, after in reversed(listeners):
            after()


event.register("numba:compile", _Listener())
