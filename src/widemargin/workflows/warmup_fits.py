"""Small fits that need all compiled functions of the public estimators, readers and writers; see `warmup`.

Each group of fits takes rows in one container, dense or CSR, of float64 or float32: few rows, for which solvers are
named rather than chosen by `auto`, and more rows, since some functions are for those only. One loss stands for all
others, since a loss is numbers; those with an entropy have loops of their own.
tests/workflows/test_warmup.py fits other data, and fails if one of these fits is missing.
"""

import tempfile
import warnings
from importlib.util import find_spec
from itertools import product
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix, issparse
from scipy.sparse import random as random_matrix

from widemargin.data.blocks.reader import open_blocks
from widemargin.data.scaling import learn_ranges
from widemargin.data.svmlight.reader import read_svmlight
from widemargin.data.svmlight.writer import write_svmlight
from widemargin.models.cutting_plane.measure import MeasureSVC
from widemargin.models.cutting_plane.ordinal import OrdinalSVC
from widemargin.models.cutting_plane.ranking import RankSVM
from widemargin.models.cutting_plane.roc_area import ROCAreaSVC
from widemargin.models.kernel.machines import KERNELS
from widemargin.models.kernel.nu_svc import NuSVC
from widemargin.models.kernel.nu_svr import NuSVR
from widemargin.models.kernel.one_class import OneClassSVM
from widemargin.models.kernel.svc import SVC
from widemargin.models.kernel.svr import SVR
from widemargin.models.linear import LinearSVC, LinearSVR
from widemargin.models.linear_one_class import LinearOneClassSVM
from widemargin.problems.formulations import DualQP, FixedSumQP, Intercept, KernelQP, RiskProblem
from widemargin.problems.margin_losses import LOSSES as MARGIN_LOSSES
from widemargin.problems.measures import NAMES as MEASURES
from widemargin.selection.grid_search import grid_search
from widemargin.selection.linear_cv import LinearSVCCV, LinearSVRCV
from widemargin.solvers.registry import names_of
from widemargin.workflows.check import check_file
from widemargin.workflows.convert import convert_file
from widemargin.workflows.scale import scale_file

_N_ROWS, _N_COLUMNS, _N_MORE_ROWS, _N_MORE_COLUMNS, _N_COLUMNS_OF_TEXT = 60, 12, 3000, 40, 20_000
_DENSITY_OF_TEXT = 0.001


class Rows:
    """Random rows in a container, and labels for each task.

    Attributes
    ----------
    X : ndarray or csr_matrix of shape (n_rows, n_columns)
    two, three, targets : ndarray of shape (n_rows,)
        Labels of two and of three classes, and targets of a regression.
    queries : ndarray of shape (n_rows,)
        The query of each row, ten rows a query.
    """

    def __init__(self, n_rows, n_columns, is_sparse, dtype):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((n_rows, min(n_columns, _N_MORE_COLUMNS)))
        scores = X[:, 0] + 0.5 * rng.standard_normal(n_rows)
        self.two, self.three = np.where(scores > 0.0, 1, -1), np.digitize(scores, [-0.5, 0.5])
        self.targets, self.queries = scores, np.arange(n_rows) // 10
        X[rng.random(X.shape) < 0.5] = 0.0
        self.X = X.astype(dtype)
        if is_sparse:
            columns = csr_matrix(self.X).tocoo()
            spread = np.sort(rng.choice(n_columns, X.shape[1], replace=False))
            self.X = csr_matrix((columns.data, (columns.row, spread[columns.col])), (n_rows, n_columns))


def _linear_svc(rows, more):
    for solver in names_of(DualQP):
        LinearSVC(solver=solver).fit(rows.X, rows.two)
    for solver in names_of(DualQP, intercept=Intercept.FREE):
        LinearSVC(solver=solver, penalize_intercept=False).fit(rows.X, rows.two)
    LinearSVC(scaling="standard").fit(rows.X, rows.three).decision_function(rows.X)
    for solver in ("auto", "ocas", "svmperf"):
        LinearSVC(multi_class="crammer_singer", solver=solver).fit(rows.X, rows.three).predict(rows.X)
    for of_rows, is_penalised in product((rows, more), (True, False)):
        for loss in MARGIN_LOSSES:
            LinearSVC("l1", loss, penalize_intercept=is_penalised).fit(of_rows.X, of_rows.two)
    for solver in ("newton", "dcd"):
        LinearSVC(loss="log_loss", solver=solver).fit(rows.X, rows.two).predict_proba(rows.X)
    for loss in ("hinge", "squared_hinge", "log_loss"):
        for is_penalised in (True, False):
            LinearSVC(loss=loss, penalize_intercept=is_penalised).fit(more.X, more.two)


def _linear_svr(rows, more):
    for solver in names_of(DualQP):
        LinearSVR(solver=solver).fit(rows.X, rows.targets).predict(rows.X)
    LinearSVR(penalize_intercept=False).fit(rows.X, rows.targets)
    for loss in ("epsilon_insensitive", "squared_epsilon_insensitive"):
        LinearSVR(loss=loss).fit(more.X, more.targets)


def _linear_one_class(rows, more):
    for solver in names_of(FixedSumQP):
        LinearOneClassSVM(solver=solver).fit(rows.X).predict(rows.X)
        if solver != "newton":  # it is not for many columns
            LinearOneClassSVM(solver=solver).fit(more.X)


def _linear_cv(rows, more):
    LinearSVCCV(cv=3).fit(rows.X, rows.two)
    LinearSVRCV(cv=3).fit(rows.X, rows.targets)
    LinearSVCCV(cv=3, Cs=[0.1, 1.0]).fit(more.X, more.two)


def _svc(rows, more):
    for kernel in KERNELS:
        X = np.eye(_N_ROWS) if kernel == "precomputed" else rows.X
        for solver in names_of(KernelQP):
            SVC(kernel=kernel, solver=solver).fit(X, rows.two).predict(X)
    SVC(probability="libsvm", random_state=0).fit(rows.X, rows.three).predict_proba(rows.X)
    SVC(max_iter=300).fit(rows.X, rows.two)  # with a limit, not by one call
    SVC(solver="smo").fit(more.X, more.two)
    SVC(cache_size=1.0).fit(more.X, more.two)
    SVC(max_iter=300).fit(more.X, more.three).predict(more.X)
    ones = (rows.X > 0.0).astype(rows.X.dtype)  # few different values: see `integer_rows`
    SVC().fit(ones, rows.two).predict(ones)
    SVC(kernel="linear", max_iter=300).fit(more.X, more.two).predict(more.X)
    grid_search(SVC(), rows.X, rows.two, {"C": [1.0, 10.0], "gamma": [0.1, 1.0]}, cv=3)
    SVC(calibration="sigmoid").fit(rows.X, rows.three).predict_proba(rows.X)
    if not issparse(rows.X):  # others have many zeros: see `feature_lines`
        SVC().fit(rows.X + 1.0, rows.two).predict(rows.X + 1.0)
    if issparse(more.X):  # rows with few columns in common: see `column_lists`
        scattered = random_matrix(*more.X.shape, _DENSITY_OF_TEXT, "csr", more.X.dtype, random_state=0)
        SVC(max_iter=20, tol=0.1).fit(scattered, more.two).predict(scattered)


def _other_kernel_machines(rows, more):
    for solver in names_of(KernelQP):
        NuSVC(nu=0.2, solver=solver).fit(rows.X, rows.two).predict(rows.X)
        SVR(solver=solver).fit(rows.X, rows.targets).predict(rows.X)
        NuSVR(solver=solver).fit(rows.X, rows.targets).predict(rows.X)
        OneClassSVM(solver=solver).fit(rows.X).predict(rows.X)
    SVR(max_iter=300).fit(rows.X, rows.targets)
    if not issparse(rows.X):  # others have many zeros: see `feature_lines`
        SVR().fit(rows.X + 1.0, rows.targets).predict(rows.X + 1.0)
    SVR(max_iter=300).fit(more.X, more.targets).predict(more.X)


def _ranking(rows, more):
    for solver in names_of(RiskProblem):
        RankSVM(solver=solver).fit(rows.X, rows.three, qid=rows.queries).predict(rows.X)
        OrdinalSVC(solver=solver).fit(rows.X, rows.three).predict(rows.X)
        ROCAreaSVC(solver=solver).fit(rows.X, rows.two).decision_function(rows.X)
    RankSVM().fit(more.X, more.three, qid=more.queries)


def _measures(rows, more):
    for measure in MEASURES:
        MeasureSVC(measure=measure.replace("@k", "@5")).fit(rows.X, rows.two).predict(rows.X)
    MeasureSVC(solver="svmperf").fit(rows.X, rows.two)
    MeasureSVC(measure="prbep", max_iter=20).fit(more.X, more.two)


def _files(rows, more):
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "rows"))
        write_svmlight(path, rows.X, rows.two)
        X, _ = read_svmlight(path, dtype=rows.X.dtype)[:2]
        learn_ranges(X)
        check_file(path)
        scale_file(path, f"{path}.scaled")
        if all(map(find_spec, ("pyarrow", "xxhash"))):  # the extra `arrow`
            convert_file(path, f"{path}.arrow", dtype=rows.X.dtype)
            LinearSVC().fit(open_blocks(f"{path}.arrow"))


GROUPS = {
    "LinearSVC": _linear_svc,
    "LinearSVR": _linear_svr,
    "LinearOneClassSVM": _linear_one_class,
    "LinearSVCCV": _linear_cv,
    "SVC": _svc,
    "SVR": _other_kernel_machines,
    "RankSVM": _ranking,
    "MeasureSVC": _measures,
    "files": _files,
}


def run(group, is_sparse, dtype):
    """Run one group of fits on rows in one container; what the models are does not matter."""
    rows = Rows(_N_ROWS, _N_COLUMNS, is_sparse, dtype)
    more = Rows(_N_MORE_ROWS, _N_COLUMNS_OF_TEXT if is_sparse else _N_MORE_COLUMNS, is_sparse, dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        GROUPS[group](rows, more)
