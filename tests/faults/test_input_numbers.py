"""No numbers and no inputs, however wild, crash, hang or leave a model that is not finite: see `input_abuses`.

Every case runs in a subprocess with limits of memory and time; one that ends the process is a defect, and the others
go on in a new one. The short version, some cases of every kind for every estimator, is part of all runs;
WIDEMARGIN_NIGHTLY=1 runs every case with every solver, loss and kernel.
"""

import importlib.util
import json
import os
import queue
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path

import pytest

_SCRIPT = Path(__file__).parent / "input_abuses.py"
_SPEC = importlib.util.spec_from_file_location("input_abuses", _SCRIPT)
input_abuses = importlib.util.module_from_spec(_SPEC)
sys.modules["input_abuses"] = input_abuses
_SPEC.loader.exec_module(input_abuses)

NIGHTLY = os.environ.get("WIDEMARGIN_NIGHTLY") == "1"
_SECONDS_OF_SILENCE = 120  # until a case counts as a hang; compiling is part of it, other processes may be busy
_BATCH = 40  # cases of a subprocess in the short version
_EVERY = 37  # of the cases with default parameters, one in so many is in the short version

ALWAYS = [  # found by earlier campaigns, in all runs
    "SVR() y object None", "SVR() y all None", "SVR() y object inf", "LinearSVR() y object None",
    "RankSVM() y object None",
    "OrdinalSVC() y object None", "ROCAreaSVC() y object None", "MeasureSVC() y object None", "NuSVR() y object NaN",
    "SVC() X csr index 99", "LinearSVC() X csr index 99", "RankSVM() X csr index -1", "SVR() X csr indptr falls",
    "LinearSVC() X csc index 99", "LinearSVC() X coo column 99", "LinearSVC() predict csr index 99",
    "SVC() predict csr indptr ends late", "OneClassSVM() predict csr64 index 2**31-1", "LinearSVCCV() X csr index 99",
    "LinearSVC() X csr unsorted", "LinearSVC() X csr repeated", "SVC() X csr repeated",
    "LinearSVC() weight object None",
    "SVC() weight NaN", "LinearSVC() weight negative", "OneClassSVM() weight text", "RankSVM() qid NaN",
    "RankSVM() qid None", "RankSVM() qid mixed", "RankSVM() qid two columns", "RankSVM() X*1e300", "RankSVM() C=1e+300",
    "OrdinalSVC() X column 1e200", "MeasureSVC() C=1e+308", "LinearSVC() C=1e+308", "LinearSVC() C=inf",
    "SVR() X float32 denormal", "LinearSVR() y zeros", "LinearSVC() class_weight={0: -1.0}",
    "NuSVC(sigmoid, smo) class_weight={0: 0.0}", "LinearSVR(climb, squared_epsilon_insensitive) y*1e-320",
    "NuSVC(poly, smo) coef0=1e+20", "SVC(linear, smo) X*1e-160",
]  # fmt: skip


def _chosen():
    cases = input_abuses.all_cases()
    if NIGHTLY:
        return list(enumerate(cases))
    plain = [number for number, case in enumerate(cases) if not case.settings]
    short = {*plain[::_EVERY], *(number for number, case in enumerate(cases) if str(case) in ALWAYS)}
    return [(number, cases[number]) for number in sorted(short)]


CHOSEN = _chosen()
_BATCH_OF = {number: k // _BATCH for k, (number, _) in enumerate(CHOSEN)}


@cache
def _outcomes(batch):
    """Return what came of each case of a batch, by its number."""
    left, judged = [number for number, which in _BATCH_OF.items() if which == batch], {}
    while left:
        judged |= _judge_until_it_ends(left)
        left = [number for number in left if number not in judged]
    return judged


def _judge_until_it_ends(numbers):
    """Return what came of cases in one subprocess, up to the one that ended it."""
    with subprocess.Popen(
        [sys.executable, str(_SCRIPT)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        lines, told = queue.Queue(), []
        threading.Thread(target=_hand_on, args=(process.stdout, lines), daemon=True).start()
        threading.Thread(target=lambda: told.extend(process.stderr), daemon=True).start()
        process.stdin.write("\n".join(map(str, numbers)))
        process.stdin.close()
        judged, current = {}, None
        try:
            while line := lines.get(timeout=_SECONDS_OF_SILENCE):
                news = json.loads(line)
                current = news.get("begins")
                if "judged" in news:
                    judged[news["judged"]] = news
        except queue.Empty:
            process.kill()
            return judged | {current: {"good": False, "outcome": f"silent for {_SECONDS_OF_SILENCE} s", "seconds": 0.0}}
    if current is None and not judged:
        raise RuntimeError(f"no case could be judged: {''.join(told)[-2000:]}")
    if current is not None:
        outcome = f"ended the process, status {process.returncode}: {''.join(told)[-300:]}"
        judged[current] = {"good": False, "outcome": outcome, "seconds": 0.0}
    return judged


def _hand_on(stream, lines):
    for line in stream:
        lines.put(line)
    lines.put("")


def _parameters():
    for number, case in CHOSEN:
        yield pytest.param(number, id=str(case))


@pytest.mark.parametrize("number", list(_parameters()))
def test_a_case_is_refused_clearly_or_leaves_an_honest_finite_model(number):
    result = _outcomes(_BATCH_OF[number])[number]
    assert result["good"], result["outcome"]
    assert result["seconds"] < input_abuses.CPU_LIMIT


def test_cases_that_are_listed_exist():
    names = {str(case) for case in input_abuses.all_cases()}
    assert set(ALWAYS) <= names
