"""The command line answers at once: what it imports before it knows what to do is counted, which is the same on every
machine, rather than timed."""

import json
import subprocess
import sys

import pytest

from widemargin.cli.main import COMMANDS
from widemargin.cli.options import solver_names
from widemargin.cli.options.parsing import SVMLIGHT_TASKS
from widemargin.persistence.svmlight import TASKS
from widemargin.problems.formulations import DualQP, Intercept, KernelQP, RiskProblem
from widemargin.solvers.registry import names_of

HEAVY = {"numpy", "scipy", "sklearn", "numba", "llvmlite", "rich", "joblib", "matplotlib", "pyarrow", "dask"}
MOST_MODULES = 160  # Python itself starts with some 60, and argparse takes as many

ANSWERED_AT_ONCE = [
    [], ["--version"], ["--help"], ["trian"],
    *([command, "--help"] for command in COMMANDS),
    *([command, "--no-such-option"] for command in COMMANDS),
    ["train"], ["train", "--solver", "x", "rows"], ["train", "-s", "9", "rows"], ["train", "-c", "0", "rows"],
    ["train", "--stopping", "kkt", "--solver", "newton", "rows"], ["train", "-t", "2", "--loss", "hinge", "rows"],
    ["train", "--task", "rank", "--solver", "dcd", "rows"], ["train", "-s", "2", "-c", "1", "rows"],
    ["grid", "--log2c", "x", "rows"], ["predict", "rows"], ["scale", "-l", "x", "rows"], ["subset", "rows"],
]  # fmt: skip


def modules_after(words):
    """Return the exit status of the command and the modules that are imported when it has ended."""
    script = (
        "import json, sys\n"
        "from widemargin.__main__ import main\n"
        "status = main(sys.argv[1:])\n"
        "print(json.dumps([status, sorted(sys.modules)]), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stderr.splitlines()[-1])


@pytest.mark.parametrize("words", ANSWERED_AT_ONCE, ids=" ".join)
def test_help_and_usage_errors_import_no_library(words):
    status, modules = modules_after(words)
    assert status == (0 if {"--help", "--version"} & {*words} else 2)
    assert not HEAVY & {*modules}
    assert len(modules) <= MOST_MODULES


@pytest.mark.parametrize("formulation", [DualQP, RiskProblem, KernelQP])
@pytest.mark.parametrize("stopping", [None, "gap", "kkt", "violation"])
@pytest.mark.parametrize("free", [False, True])
def test_names_of_solvers_are_those_of_the_registry(formulation, stopping, free):
    ours = {DualQP: solver_names.LINEAR, RiskProblem: solver_names.RISK, KernelQP: solver_names.KERNEL}[formulation]
    known = names_of(formulation, intercept=Intercept.FREE if free else None, stopping=stopping)
    assert solver_names.names_of(ours, free_intercept=free, stopping=stopping) == known


def test_solvers_of_all_classes_are_those_of_risks_and_the_choice():
    assert list(solver_names.ALL_CLASSES) == ["auto", *names_of(RiskProblem)]


def test_tasks_of_svmlight_models_are_those_of_their_reader():
    assert list(SVMLIGHT_TASKS) == list(TASKS)
