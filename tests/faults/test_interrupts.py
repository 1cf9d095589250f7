"""Ctrl-C is heard wherever it strikes: in a destructor that swallows it, while compiling, at the shell."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress

import numba
import numpy as np
import pytest
from numba.core import event

import widemargin._runtime.jit  # noqa: F401 (which listens to Numba)
from widemargin._runtime.interrupts import insisting_interrupts, remembering_interrupts
from widemargin.kernels.functions import Kernel
from widemargin.kernels.rows import KernelRows
from widemargin.problems.certificates import certify_kernel
from widemargin.problems.classification import c_svc
from widemargin.solvers.contract import KernelSettings
from widemargin.solvers.decomposition.active_set import ActiveSet

PATIENCE = 20.0  # seconds, to tell a hang from a busy machine


class Swallowing:
    """Ctrl-C strikes in its destructor."""

    def __del__(self):
        signal.raise_signal(signal.SIGINT)


def swallow_ctrl_c(then):
    Swallowing()
    then()


def wait():
    """Wait in steps, as a solver that has not heard of Ctrl-C works on."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        time.sleep(0.01)
    raise AssertionError("Ctrl-C was never heard")


def fail():
    raise RuntimeError("no compiled object yet")


def press_ctrl_c(heard, then):
    """Press Ctrl-C, hear it, and go on."""
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    heard.set()
    then()


def test_ctrl_c_that_a_destructor_swallows_is_raised_again():
    before = signal.getsignal(signal.SIGINT), sys.unraisablehook
    with pytest.raises(KeyboardInterrupt), insisting_interrupts(threading.Event()):
        swallow_ctrl_c(then=wait)
    assert (signal.getsignal(signal.SIGINT), sys.unraisablehook) == before


def test_ctrl_c_that_was_heard_is_not_raised_again():
    heard = threading.Event()
    with insisting_interrupts(heard):
        press_ctrl_c(heard, then=lambda: time.sleep(0.4))


def test_a_failure_of_the_compiler_after_ctrl_c_is_told_as_an_interruption():
    with pytest.raises(KeyboardInterrupt), insisting_interrupts(threading.Event()):
        swallow_ctrl_c(then=fail)


def test_other_failures_stay_what_they_are():
    with pytest.raises(RuntimeError, match="no compiled object yet"), insisting_interrupts(threading.Event()):
        fail()


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_nothing_is_compiled_after_ctrl_c():
    heard, compiled = threading.Event(), []
    with pytest.raises(KeyboardInterrupt), insisting_interrupts(heard):
        press_ctrl_c(heard, then=lambda: compiled.append(numba.njit(lambda x: x + 1)(1)))
    assert not compiled


def test_another_thread_and_an_unusual_handler_are_left_alone():
    found, former = [], signal.signal(signal.SIGINT, lambda number, frame: found.append(number))
    try:
        with insisting_interrupts(threading.Event()):
            signal.raise_signal(signal.SIGINT)
            time.sleep(0.4)
    finally:
        signal.signal(signal.SIGINT, former)
    assert found == [signal.SIGINT]


def test_what_is_left_of_the_gradient_after_ctrl_c_is_bounded(rng):
    """Multipliers change while rows are set aside; with no time to complete the gradient the bounds hold all the same.

    The exact bounds are those of the judge.
    """
    X, sign = rng.standard_normal((40, 3)), np.where(rng.random(40) < 0.5, 1.0, -1.0)
    K = KernelRows(Kernel("rbf", gamma=0.5), X, dtype=np.float64)
    problem = c_svc(K, sign, np.full(40, 2.0))
    state = ActiveSet(problem, KernelSettings(), None, 40)
    state.scan()
    state.shrink(np.arange(40) < 20)
    first, second = np.flatnonzero(sign[:20] > 0)[0], np.flatnonzero(sign[:20] < 0)[0]
    chosen = np.sort([first, second])
    state.move(chosen, 1.5 * sign[chosen], state.cache.fetch(chosen))
    state.unshrink(0.0)
    primal, dual = state.measure()
    exact = certify_kernel(problem, K.whole(), state.beta, state.offsets())
    assert state.omitted_bound[20:].all()
    assert dual <= exact.dual + 1e-12
    assert primal >= exact.primal - 1e-12
    assert np.isfinite([primal, dual]).all()


def test_ctrl_c_that_the_compiler_swallows_is_raised_when_it_has_compiled():
    with remembering_interrupts() as pressed:
        with pytest.raises(KeyboardInterrupt), event.trigger_event("numba:compile"), suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert pressed.is_set()


def test_ctrl_c_that_was_heard_does_not_end_the_next_compilation():
    with remembering_interrupts():
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        with event.trigger_event("numba:compile"):
            pass


@pytest.mark.parametrize("options", ["--solver dcd", "-t 2"])
def test_at_the_shell_ctrl_c_while_compiling_leaves_one_line_and_status_130(options, tmp_path):
    data = tmp_path / "data.svm"
    rng = np.random.default_rng(0)
    rows = (" ".join(f"{j + 1}:{x:.3f}" for j, x in enumerate(rng.standard_normal(4))) for _ in range(200))
    data.write_text("".join(f"{k % 2} {row}\n" for k, row in enumerate(rows)))
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "WIDEMARGIN_SHIPPED_CODE": "no"}
    script = (  # Ctrl-C comes soon after the first function has begun to be compiled
        "import os, signal, sys, threading\n"
        "from widemargin._runtime.compile import before_compilation\n"
        "from widemargin.cli.main import main\n"
        "begun = []\n"
        "def press():\n"
        "    if not begun:\n"
        "        begun.append(threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start())\n"
        "with before_compilation(press):\n"
        f"    sys.exit(main(['train', '-q', *{options.split()!r}, {str(data)!r}, {str(tmp_path / 'model')!r}]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=3 * PATIENCE, env=environment
    )
    assert (done.returncode, done.stdout) == (130, ""), done.stderr
    assert done.stderr == "widemargin: error: interrupted; nothing was written\n"
    assert not (tmp_path / "model").exists()


def test_ctrl_c_while_the_package_is_imported_ends_the_command_without_a_traceback():
    script = """
import signal, sys

class PressesCtrlC:
    def find_spec(self, name, path=None, target=None):
        if name == "sklearn":
            signal.raise_signal(signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, PressesCtrlC())
from widemargin.__main__ import main
assert "sklearn" not in sys.modules, "scikit-learn is imported before the command can answer to Ctrl-C"
sys.exit(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", script, "train", "rows"], capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert done.returncode == 130
    assert done.stderr == "widemargin: error: interrupted; nothing was written\n"
    assert not done.stdout
