"""Importing an estimator imports little more than scikit-learn's own machines do, and nothing that only a fit needs."""

import json
import subprocess
import sys

import pytest

ESTIMATORS = [
    "LinearSVC", "LinearSVR", "LinearSVCCV", "LinearSVRCV", "SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM", "RankSVM",
    "OrdinalSVC", "ROCAreaSVC", "MeasureSVC", "LinearOneClassSVM", "TransductiveSVC",
]  # fmt: skip


def modules_after(script):
    script += "\nimport json, sys; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    return set(json.loads(done.stdout))


@pytest.fixture(scope="module")
def of_scikit_learn():
    return modules_after("import sklearn.svm")


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_imports_only_what_scikit_learn_has_imported(name, of_scikit_learn):
    ours = modules_after(f"from widemargin import {name}") - of_scikit_learn
    others = {module.partition(".")[0] for module in ours} - {"widemargin"}
    assert others <= {"lazy_loader"}, "what a fit needs is imported by the fit"
    assert not {"numba", "llvmlite"} & others


@pytest.mark.parametrize(
    ("name", "rooms"),
    [
        ("SVC", {"solvers.coordinate_descent", "solvers.cutting_planes", "solvers.newton", "models.calibration"}),
        ("SVC", {"solvers.auto", "solvers.finishing", "data.blocks.streamed", "kernels.basis"}),
        ("LinearSVC", {"solvers.decomposition", "kernels.basis", "models.kernel"}),
    ],
)
def test_a_machine_does_not_import_what_only_other_machines_need(name, rooms):
    imported = modules_after(f"from widemargin import {name}")
    assert not {f"widemargin.{room}" for room in rooms} & imported


def test_numba_is_imported_by_the_first_fit_that_needs_it():
    before = "import sys; from widemargin import LinearSVC; model = LinearSVC(); assert 'numba' not in sys.modules"
    assert "numba" in modules_after(f"{before}; model.fit([[0.0], [1.0]], [0, 1])")
