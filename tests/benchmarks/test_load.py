"""The work of others is what all processes used, less what ours used."""

import os
import subprocess
import sys
import time

import pytest
from benchmarks.machinery import load
from benchmarks.machinery.load import MachineBusyError, OtherWork, own_processes, processes, wait_until_quiet

BURN = "import time\nwhile time.process_time() < 0.4: pass"
linux = pytest.mark.skipif(not os.path.exists("/proc/stat"), reason="only Linux tells the work of others")


def seconds_of_ours():
    return load._processor_seconds()[1]


@linux
def test_time_of_a_child_that_has_ended_is_ours():
    before = seconds_of_ours()
    subprocess.run([sys.executable, "-c", BURN], check=True)
    assert seconds_of_ours() - before >= 0.35


@linux
def test_a_child_and_its_child_are_ours_while_they_run():
    code = "import subprocess, sys\np = subprocess.Popen(['sleep', '30'])\nprint(p.pid, flush=True)\np.wait()"
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    grandchild = int(child.stdout.readline())
    try:
        assert {os.getpid(), child.pid, grandchild} <= own_processes(processes())
        assert os.getppid() not in own_processes(processes())
    finally:
        os.kill(grandchild, 9)
        child.communicate()


def numbers(monkeypatch, everybody, own):
    """Let the system tell these processor seconds, one pair after the other."""
    pairs = iter(zip(everybody, own, strict=True))
    monkeypatch.setattr(load, "_processor_seconds", lambda: next(pairs))


def test_others_are_all_less_ours(monkeypatch):
    numbers(monkeypatch, [100.0, 100.5], [10.0, 10.3])
    work = OtherWork()
    time.sleep(0.1)
    assert 0.5 < work.cores() <= 2.0  # 0.2 processor seconds in 0.1 seconds and a little


def test_a_busy_machine_is_refused_and_the_busiest_are_named(monkeypatch):
    numbers(monkeypatch, [100.0, 101.0], [10.0, 10.0])
    monkeypatch.setattr(load, "_busiest", lambda: "a.out (7)")
    with pytest.raises(MachineBusyError, match=r"others use .* cores \(0.2 are allowed\): a.out \(7\)"):
        wait_until_quiet(0.0, second=0.05)


def test_a_machine_that_gets_quiet_is_waited_for(monkeypatch):
    numbers(monkeypatch, [100.0, 101.0, 101.0, 101.0], [10.0, 10.0, 10.0, 10.0])
    assert wait_until_quiet(10.0, second=0.05) == 0.0


def test_a_system_that_does_not_tell_is_not_refused(monkeypatch):
    monkeypatch.setattr(load, "_processor_seconds", lambda: None)
    assert wait_until_quiet(0.0, second=0.0) is None
