"""Numbers that overflow: every fit ends with a clear error or a finite model that says how far it came.

Each group of cases runs in a process of its own with a limit of memory and of time, so that what used to destroy memory
or never end fails here as a test, and does not take the others along.
"""

import json
import os
import subprocess
import sys

import pytest

MEMORY = 8 << 30  # bytes of address space; the compiler reserves a good part of it
SECONDS = 300

ABUSE = """
import json, resource, sys, warnings
resource.setrlimit(resource.RLIMIT_AS, ({memory}, {memory}))
import numpy as np
import widemargin
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = rng.standard_normal((60, 4))
y = np.where(X[:, 0] + rng.standard_normal(60) > 0, 1, -1)
y3, t = rng.integers(0, 3, 60), X @ [1.0, 2.0, 0.0, 1.0]
wide = X * [1.0, 1e200, 1.0, 1.0]
kept = ("coef_", "intercept_", "objective_", "gap_", "dual_coef_", "thresholds_")
for name, rows, targets, options, weight in {cases}:
    rows, targets = eval(rows), eval(targets)
    given = {{}} if weight is None else {{"sample_weight": np.full(60, weight)}}
    try:
        model = getattr(widemargin, name)(**options).fit(rows, targets, **given)
    except ValueError as error:
        print(json.dumps(["refused", str(error)]), flush=True)
        continue
    assert all(np.isfinite(getattr(model, one)).all() for one in kept if hasattr(model, one)), (name, options)
    if model.status_ == "converged":
        assert model.gap_ <= model.tol, (name, options, model.gap_)
    print(json.dumps([model.status_, ""]), flush=True)
"""

SOLVERS = ("auto", "dcd", "avsf", "climb", "newton", "ocas", "svmperf")
PLANES = [
    ("RankSVM", "t", {}),
    ("OrdinalSVC", "y3", {}),
    ("ROCAreaSVC", "y", {}),
    *[
        ("MeasureSVC", "y", {"measure": measure})
        for measure in ("f1", "prbep", "error", "precision@5", "recall@5", "average_precision")
    ],
]


def outcomes(cases):
    """Run the cases in a process of its own; return (status, message) of each."""
    script = ABUSE.format(memory=MEMORY, cases=repr(cases))
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=SECONDS, env=environment
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == len(cases)
    return found


def test_sums_over_rows_that_overflow_are_refused_with_the_way_out():
    fits = [
        ({"C": 1e308}, "X", None),
        ({"C": 1e300}, "X", None),
        ({}, "X", 1e300),
        ({}, "np.sign(X) * 1e300", None),
        ({}, "X * [1, 1e200, 1, 1]", None),
    ]
    cases = [
        ["LinearSVC", rows, "y", {"solver": solver, "loss": loss, **options}, weight]
        for solver in SOLVERS
        for loss in ("hinge", "squared_hinge")
        for options, rows, weight in fits
    ]
    for outcome, message in outcomes(cases):
        assert outcome == "refused"
        assert "Scale the features" in message
        assert "overflows" in message or "leaves double precision" in message


def test_planes_that_overflow_are_refused_with_the_way_out():
    cases = [
        [name, rows, targets, {**more, "C": C, "solver": solver}, None]
        for name, targets, more in PLANES
        for solver in ("ocas", "svmperf")
        for C, rows in ((1e300, "X"), (1e308, "X"), (1.0, "np.sign(X) * 1e300"))
    ]
    for outcome, message in outcomes(cases):
        assert outcome == "refused"
        assert "Scale the features" in message


def test_huge_numbers_that_do_not_overflow_end_with_a_finite_model():
    fits = [({"C": 1e100}, "X"), ({"C": 1e20}, "X"), ({}, "X * 1e100"), ({}, "X * 1e20"), ({}, "X * 1e-200")]
    cases = [
        ["LinearSVC", rows, "y", {"solver": solver, "loss": loss, "max_iter": 100, **options}, None]
        for solver in SOLVERS
        for loss in ("hinge", "squared_hinge")
        for options, rows in fits
    ]
    cases += [
        [name, rows, targets, {**more, "solver": solver, "max_iter": 100, **options}, None]
        for name, targets, more in PLANES
        for solver in ("ocas", "svmperf")
        for options, rows in fits
    ]
    found = [outcome for outcome, _ in outcomes(cases)]
    assert "converged" in found


def test_crammer_singer_refuses_what_overflows_and_solves_what_does_not():
    of_all = {"multi_class": "crammer_singer", "max_iter": 100}
    refused = [["LinearSVC", "wide", "y3", of_all, None], ["LinearSVC", "X", "y3", {**of_all, "C": 1e308}, None]]
    solved = [["LinearSVC", f"X * {scale}", "y3", of_all, None] for scale in (1e20, 1e-20, 1e-170)]
    found = [outcome for outcome, _ in outcomes(refused + solved)]
    assert found[:2] == ["refused", "refused"]
    assert found[3:] == ["converged", "converged"]


def test_costs_must_be_finite():
    with_C = ["LinearSVC", "LinearSVR", "RankSVM", "OrdinalSVC", "ROCAreaSVC", "MeasureSVC", "SVC", "SVR", "NuSVR"]
    script_cases = [[name, "X", "y", {"C": 1e999}, None] for name in with_C]
    script = repr(script_cases).replace("inf", "np.inf")
    done = subprocess.run(
        [sys.executable, "-c", ABUSE.format(memory=MEMORY, cases=script)],
        capture_output=True, text=True, timeout=SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [outcome for outcome, _ in found] == ["refused"] * len(with_C)
    assert all("The 'C' parameter" in message and "Got inf" in message for _, message in found)


@pytest.mark.parametrize("name", ["RankSVM", "LinearSVR"])
def test_a_missing_target_among_objects_is_refused(name):
    targets = "np.array([None] * 2 + list(range(58)), object)"
    ((outcome, message),) = outcomes([[name, "X", targets, {}, None]])
    assert outcome == "refused"
    assert "Input y contains None, not a value: row 0" in message


def test_the_commands_end_with_one_line_each(tmp_path):
    """As typed: `widemargin train` on a file of huge values, and with huge costs."""
    data = tmp_path / "e300.svm"
    data.write_text("1 1:1e300\n-1 1:-1e300\n1 1:2e300 2:1\n-1 2:-1e299\n")
    small = tmp_path / "small.svm"
    small.write_text("".join(f"{1 if k % 3 else -1} 1:{k % 7 - 3} 2:{k % 5 - 2}\n" for k in range(40)))
    commands = [
        *[["--task", task, str(data)] for task in ("rank", "ordinal", "rocarea", "measure")],
        *[["--solver", solver, str(data)] for solver in ("ocas", "svmperf", "dcd", "auto")],
        ["--task", "measure", "-c", "1e308", str(small)],
        ["--task", "rank", "-c", "1e300", str(small)],
        ["--solver", "ocas", "-c", "1e200", str(small)],
    ]
    script = (
        f"import resource, sys\nresource.setrlimit(resource.RLIMIT_AS, ({MEMORY}, {MEMORY}))\n"
        "from widemargin.cli.main import main\n"
        f"for words in {commands!r}:\n"
        f"    print(main(['train', '-q', *words, {str(tmp_path / 'model')!r}]), flush=True)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=SECONDS)
    assert done.stdout.split() == ["1"] * len(commands), done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == len(commands)
    assert all("error:" in line and "cale the features" in line for line in lines), done.stderr
    assert not (tmp_path / "model").exists()
