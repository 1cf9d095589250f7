"""Small fits that need all compiled functions of the public estimators, readers and writers; see `warmup`.

Each group of fits takes rows in one container, dense or CSR, of float64 or float32. Solvers are named rather than
chosen by `auto`, whose choice depends on the size of the data. One loss stands for all others, since a loss is numbers.
tests/workflows/test_warmup.py fits other data, and fails if one of these fits is missing.
"""

import tempfile
import warnings
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix

from widemargin.data.scaling import learn_ranges
from widemargin.data.svmlight.reader import read_svmlight
from widemargin.data.svmlight.writer import write_svmlight
from widemargin.models.cutting_plane.measure import MeasureSVC
from widemargin.models.cutting_plane.ranking import OrdinalSVC, RankSVM, ROCAreaSVC
from widemargin.models.kernel.machines import KERNELS
from widemargin.models.kernel.one_class import OneClassSVM
from widemargin.models.kernel.svc import SVC, NuSVC
from widemargin.models.kernel.svr import SVR, NuSVR
from widemargin.models.linear import LinearSVC, LinearSVR
from widemargin.problems.formulations import DualQP, Intercept, KernelQP, RiskProblem
from widemargin.problems.measures import NAMES as MEASURES
from widemargin.selection.linear_cv import LinearSVCCV, LinearSVRCV
from widemargin.solvers.registry import names_of
from widemargin.workflows.check import check_file
from widemargin.workflows.scale import scale_file

_N_ROWS = 60


class Rows:
    """Random rows in a container, and labels for each task."""

    def __init__(self, is_sparse, dtype, n_columns=12):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((_N_ROWS, n_columns))
        self.X = np.where(rng.random(X.shape) < 0.5, X, 0.0).astype(dtype)
        self.two = np.where(X[:, 0] + 0.5 * rng.standard_normal(_N_ROWS) > 0.0, 1, -1)
        self.three = np.digitize(X[:, 0] + 0.5 * rng.standard_normal(_N_ROWS), [-0.5, 0.5])
        self.targets = X[:, 0] + 0.1 * rng.standard_normal(_N_ROWS)
        self.queries = np.repeat(np.arange(_N_ROWS // 10), 10)
        self.X = csr_matrix(self.X) if is_sparse else self.X


def _linear_svc(rows):
    for solver in names_of(DualQP):
        LinearSVC(solver=solver).fit(rows.X, rows.two)
    for solver in names_of(DualQP, intercept=Intercept.FREE):
        LinearSVC(solver=solver, penalize_intercept=False).fit(rows.X, rows.two)
    LinearSVC(scaling="standard").fit(rows.X, rows.three).decision_function(rows.X)
    LinearSVC(multi_class="crammer_singer").fit(rows.X, rows.three).predict(rows.X)


def _linear_svr(rows):
    for solver in names_of(DualQP):
        LinearSVR(solver=solver).fit(rows.X, rows.targets).predict(rows.X)
    LinearSVR(penalize_intercept=False).fit(rows.X, rows.targets)


def _linear_cv(rows):
    LinearSVCCV(cv=3).fit(rows.X, rows.two)
    LinearSVRCV(cv=3).fit(rows.X, rows.targets)


def _svc(rows):
    for kernel in KERNELS:
        X = np.eye(_N_ROWS) if kernel == "precomputed" else rows.X
        for solver in names_of(KernelQP):
            SVC(kernel=kernel, solver=solver).fit(X, rows.two).predict(X)
    SVC(probability="libsvm", random_state=0).fit(rows.X, rows.three).predict_proba(rows.X)


def _other_kernel_machines(rows):
    for solver in names_of(KernelQP):
        NuSVC(nu=0.2, solver=solver).fit(rows.X, rows.two).predict(rows.X)
        SVR(solver=solver).fit(rows.X, rows.targets).predict(rows.X)
        NuSVR(solver=solver).fit(rows.X, rows.targets).predict(rows.X)
        OneClassSVM(solver=solver).fit(rows.X).predict(rows.X)


def _ranking(rows):
    for solver in names_of(RiskProblem):
        RankSVM(solver=solver).fit(rows.X, rows.three, qid=rows.queries).predict(rows.X)
        OrdinalSVC(solver=solver).fit(rows.X, rows.three).predict(rows.X)
        ROCAreaSVC(solver=solver).fit(rows.X, rows.two).decision_function(rows.X)


def _measures(rows):
    for measure in MEASURES:
        MeasureSVC(measure=measure.replace("@k", "@5")).fit(rows.X, rows.two).predict(rows.X)
    MeasureSVC(solver="svmperf").fit(rows.X, rows.two)


def _files(rows):
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "rows"))
        write_svmlight(path, rows.X, rows.two)
        X, _ = read_svmlight(path, dtype=rows.X.dtype)[:2]
        learn_ranges(X)
        check_file(path)
        scale_file(path, f"{path}.scaled")


GROUPS = {
    "LinearSVC": _linear_svc,
    "LinearSVR": _linear_svr,
    "LinearSVCCV": _linear_cv,
    "SVC": _svc,
    "SVR": _other_kernel_machines,
    "RankSVM": _ranking,
    "MeasureSVC": _measures,
    "files": _files,
}


def run(group, is_sparse, dtype):
    """Run one group of fits on rows in one container; what the models are does not matter."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        GROUPS[group](Rows(is_sparse, dtype))
