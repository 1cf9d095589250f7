"""`easy_files`: check, scale, search for parameters, train, predict and report, by the functions for each step."""

import math
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from widemargin._runtime.warning import warn_caller
from widemargin.data.precomputed_rows import KERNEL_WORDS
from widemargin.models.cutting_plane.ranking import RankSVM
from widemargin.models.kernel.svc import SVC
from widemargin.models.kernel.svr import SVR
from widemargin.models.linear import LinearSVC, LinearSVR
from widemargin.selection.parameter_ranges import default_grid
from widemargin.workflows.block_files import refuse_blocks
from widemargin.workflows.check import FileCheck, check_file
from widemargin.workflows.errors import ArgumentError, DefectiveFile, FileError, FileNote, spelled
from widemargin.workflows.files import AnyPath, as_path, check_target, shown_progress
from widemargin.workflows.grid import GridFile, check_results, grid_file
from widemargin.workflows.predict import FilePrediction, predict_file
from widemargin.workflows.report import ReportFile, report_file
from widemargin.workflows.result_text import columns
from widemargin.workflows.scale import scale_file

_MAX_ROWS_OF_RBF = 20_000  # more rows get the linear kernel
_FEATURES_OF_ANY_RBF = 1_000  # more features than this and than rows get the linear kernel
_MAX_DENSITY_OF_SPARSE = 0.25  # files below are scaled without changing zeros
_COMPRESSED_SUFFIX = re.compile(r"\.(gz|bz2|xz|zst)$")
_WARNINGS_NOT_SHOWN = ("scales", "quantities")  # the features are scaled, and the task is inferred
_MAX_TARGET_SPREAD = 10.0  # a standard deviation of targets above this, or below its inverse, is noted
_MEASURE_TEXTS = {
    "accuracy": lambda part: f"accuracy {100 * part:g}%",
    "mse": lambda error: f"mean squared error {error:g}",
    "concordance": lambda part: f"mean concordance {part:g}",
    "ndcg@10": lambda gain: f"NDCG@10 {gain:g}",
}
_EPSILONS = (2.0**-8, 2.0**-5, 2.0**-2)  # in standard deviations of the targets
_KERNEL_CACHE_MEGABYTES = 100.0  # LIBSVM's
_ESTIMATORS = {
    ("classification", "rbf"): SVC,
    ("classification", "linear"): LinearSVC,
    ("regression", "rbf"): SVR,
    ("regression", "linear"): LinearSVR,
}


@dataclass(frozen=True, eq=False)
class EasyFiles:
    """The result of `easy_files`; `str` gives the lines that `widemargin easy` prints.

    Attributes
    ----------
    task : {"classification", "regression", "rank"}
        The task that the labels are for.
    kernel : {"rbf", "linear"}
        The kernel of the model.
    check : FileCheck
        The check of the training file.
    grid : GridFile
        The result of the search, with the best model.
    prediction : FilePrediction or None
        The predictions for the test file.
    report : ReportFile
        The page about the model.
    files : dict of kind to path
        The files that were written: "range", "scale", "model", "html" and "grid"; with a test file also "test scale"
        and "predict".
    seconds : float
        The time in seconds.
    lines : tuple of str
        The lines about each step.
    """

    task: str
    kernel: str
    check: FileCheck
    grid: GridFile
    prediction: FilePrediction | None
    report: ReportFile
    files: dict[str, str]
    seconds: float
    lines: tuple[str, ...]

    @property
    def last_line(self) -> str:
        """The line with the total time."""
        return columns({"done in": f"{self.seconds:.1f} s"})

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a dict that can be written as JSON."""
        search = self.grid.to_dict()
        summary: Any = self.check.summary  # not None, because a file without rows has a defect
        facts = {"task": self.task, "rows": summary.n_rows, "features": summary.n_features, "kernel": self.kernel}
        facts |= {name: search[name] for name in ("best", "edges", "score", "scoring", "gap")}
        if self.prediction is not None:
            facts["test"] = self.prediction.to_dict()
        return facts | {"files": dict(self.files), "seconds": self.seconds}

    def __str__(self) -> str:
        return "\n".join([*self.lines, self.last_line])


def easy_files(
    train: AnyPath,
    test: AnyPath | None = None,
    *,
    task: str | None = None,
    kernel: str | None = None,
    extend: int = 0,
    refine: int = 0,
    scale_targets: bool = False,
    n_folds: int = 5,
    n_jobs: int | None = None,
    seed: int = 0,
    resume: bool = False,
    overwrite: bool = False,
    verbose: int = 0,
    tell: Callable[[str], Any] | None = None,
    command: str | None = None,
) -> EasyFiles:
    """Check and scale a file, choose parameters, train a model with the best, report on it, and predict another file.

    This is the function of `widemargin easy`. It calls `check_file`, `scale_file`, `grid_file`, `predict_file` and
    `report_file`.
    Files are written in the current directory. Their names are those of `train` with .range, .scale, .scale.grid,
    .model and .html appended, and that of `test` with .scale and .predict appended.

    Parameters
    ----------
    train : path
        The training rows as SVM-light / LIBSVM text, plain or compressed.
    test : path, default=None
        Rows to predict; they are scaled by the ranges of the training rows.
    task : {"classification", "regression", "rank"}, default=None
        The task; None infers it from the labels, and is ranking if rows have queries.
    kernel : {"rbf", "linear"}, default=None
        None is "rbf", or "linear" if there are more than 20,000 rows, or if there are more features than rows and more
        than 1,000.
    extend : int, default=0
        Largest number of times that the grid is extended while the best C, gamma or epsilon is on its edge.
    refine : int, default=0
        Number of refinements of the grid around the best point.
    scale_targets : bool, default=False
        For regression, whether to search with targets scaled to mean 0 and standard deviation 1.
    n_folds : int, default=5
        Number of folds of the search.
    n_jobs : int or None, default=None
        Number of threads; None and −1 are one per core.
    seed : int, default=0
        Seed of the folds.
    resume, overwrite : bool, default=False
        Whether to continue the search of an earlier run, or to replace it. An existing results file is an error if
        neither is True.
    verbose : int, default=0
        Above 0, show progress and a table of the scores so far.
    tell : callable, default=None
        Called with each line about a finished step.
    command : str, default=None
        The command that makes the page, which is shown at its end.

    Returns
    -------
    EasyFiles
        Has the search, the predictions and the names of all files; `print` shows the lines about each step.

    Raises
    ------
    FormatError, ValueError
        If a file has defects, or arguments do not apply to it.
    OSError
        If a file cannot be read or written.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from widemargin import easy_files, write_svmlight
    >>> write_svmlight("wines", *load_wine(return_X_y=True))
    >>> made = easy_files("wines", kernel="linear", overwrite=True)
    >>> made.task, made.files["model"], made.grid.result.best_score > 0.9
    ('classification', 'wines.model', True)
    """
    started = time.perf_counter()
    train_path, test_path = as_path(train), as_path(test)
    _check_arguments(train_path, test_path, task, kernel, scale_targets)
    files = _name_files(train_path, test_path)
    check_results(files["grid"], resume=resume, overwrite=overwrite)
    steps = _Steps(train_path, test_path, files, verbose, tell)
    check = steps.check(task)
    task = task or _task_of(check.summary)
    if scale_targets and task != "regression":
        targets = spelled("scale_targets=True")
        raise FileError(f"{train_path}: {targets} is for regression, this is {task}; leave it out")
    steps.scale(check.summary)
    if task == "regression" and not scale_targets:
        _note_spread_of_targets(train_path, check.summary.labels.spread)
    kernel = "linear" if task == "rank" else kernel or steps.choose_kernel(check.summary)
    common = {"n_jobs": n_jobs, "random_state": seed}
    model, grid = _estimator_and_grid(task, kernel, check.summary.labels, scale_targets, common)
    how = {"n_folds": n_folds, "seed": seed, "n_jobs": n_jobs, "extend": extend, "refine": refine}
    how |= {"scale_targets": scale_targets, "resume": resume, "overwrite": overwrite}
    search = steps.search(model, grid, how)
    prediction = None if test_path is None else steps.predict()
    report = steps.report(command)
    seconds = time.perf_counter() - started
    return EasyFiles(task, kernel, check, search, prediction, report, files, seconds, tuple(steps.lines))


def _check_arguments(train, test, task, kernel, scale_targets):
    """Raise an ArgumentError if arguments are not valid or contradict each other."""
    if "-" in (train, test):
        raise ArgumentError("train and test must be files, as they are read more than once")
    for path in (train, test):
        refuse_blocks(path, spelled("easy_files"))
    if task not in (None, "classification", "regression", "rank"):
        raise ArgumentError(f"task must be 'classification', 'regression', 'rank' or None, got {task!r}")
    if kernel not in (None, "rbf", "linear"):
        raise ArgumentError(f"kernel must be 'rbf', 'linear' or None, got {kernel!r}")
    if task == "rank" and kernel == "rbf":
        raise ArgumentError("kernel='rbf' is not for task='rank': a RankSVM is linear; leave it out")
    if scale_targets and task not in (None, "regression"):
        raise ArgumentError("scale_targets is for regression; leave it out")


def _name_files(train, test):
    """Return a dict of kind to path of the files to be written; raise an error if one cannot be written."""
    stem = _COMPRESSED_SUFFIX.sub("", os.path.basename(train))
    files = {kind: f"{stem}.{kind}" for kind in ("range", "scale", "model", "html")}
    files["grid"] = f"{stem}.scale.grid"  # the default name of grid_file
    if test is not None:
        test_stem = _COMPRESSED_SUFFIX.sub("", os.path.basename(test))
        files |= {"test scale": f"{test_stem}.scale", "predict": f"{test_stem}.predict"}
        if test_stem == stem:
            raise ArgumentError(f"{train} and {test} would be written to the same files; rename one of them")
    for path in files.values():
        check_target(path, *filter(None, (train, test)))
    return files


def _task_of(summary):
    """Return the task that the summary of the data suggests."""
    if summary.queries is not None:
        return "rank"
    return "regression" if summary.labels.classes is None else "classification"


def _note_spread_of_targets(train, spread):
    """Note that the standard deviation of the targets is far from 1, which the default values of C are meant for."""
    if not 1.0 / _MAX_TARGET_SPREAD < spread < _MAX_TARGET_SPREAD:
        targets = f"{train}: targets have the standard deviation {spread:g}"
        warn_caller(f"{targets}; {spelled('scale_targets=True')} searches in units of it", FileNote)


def _estimator_and_grid(task, kernel, labels, scale_targets, common):
    """Return the estimator and the grid of parameters."""
    if task == "rank":
        model = RankSVM(n_jobs=common["n_jobs"])
        return model, default_grid(model)
    own = {"gamma": "auto", "cache_size": _KERNEL_CACHE_MEGABYTES} if kernel == "rbf" else {}
    model = _ESTIMATORS[task, kernel](**own, **common)
    if task == "classification":
        return model, default_grid(model)
    known = math.isfinite(labels.spread) and labels.spread > 0
    unit = labels.spread if known and not scale_targets else 1.0
    return model, {**default_grid(model), "epsilon": [part * unit for part in _EPSILONS]}


class _Steps:
    """The steps; each reads and writes files and adds lines about it to `lines`."""

    def __init__(self, train, test, files, verbose, tell):
        self._train, self._test, self._files = train, test, files
        self._verbose, self._tell, self.lines = verbose, tell, []

    def _add_line(self, step, message):
        self.lines.append(f"{step:<8} {message}")
        if self._tell is not None:
            self._tell(self.lines[-1])

    def check(self, task):
        """Return the check of the training file; raise an error if a file has defects, and note what looks wrong."""
        found = {path: self._check(path, task) for path in filter(None, (self._train, self._test))}
        return found[self._train]

    def _check(self, path, task):
        with shown_progress(self._verbose):
            found = check_file(path, task=None if task == "rank" else task)
        if count := found.n_defects:
            raise DefectiveFile(
                f"{path} has {count} defect{'' if count == 1 else 's'}; mend {'it' if count == 1 else 'them'} first",
                found,
            )
        if found.summary.is_kernel:
            search = spelled('grid_file with kernel="precomputed"')
            raise FileError(f"{path}: {KERNEL_WORDS}, which is not scaled; search with {search}")
        if path == self._train:
            for warning in found.warnings:
                if warning.kind not in _WARNINGS_NOT_SHOWN:
                    warn_caller(f"{path}: {warning}", FileNote)
        self._add_line("check", f"{path}: {found.summary.n_rows} rows, {found.summary.n_features} features, no defects")
        return found

    def scale(self, summary):
        """Scale both files by the ranges of the training file."""
        files, keep_zeros = self._files, summary.density < _MAX_DENSITY_OF_SPARSE
        with shown_progress(self._verbose):
            scale_file(self._train, files["scale"], save=files["range"], keep_zeros=keep_zeros)
            if self._test is not None:
                scale_file(self._test, files["test scale"], restore=files["range"])
        how = "largest absolute value to 1, zeros stay" if keep_zeros else "each feature to [-1, 1]"
        self._add_line("scale", f"{files['scale']}: {how}, ranges in {files['range']}")

    def choose_kernel(self, summary):
        """Return the default kernel for data of this size."""
        rows, features = summary.n_rows, summary.n_features
        if rows <= _MAX_ROWS_OF_RBF and features <= max(rows, _FEATURES_OF_ANY_RBF):
            return "rbf"
        rbf = spelled('kernel="rbf"')
        self._add_line("grid", f"linear, as {rows} rows of {features} features are many for a kernel ({rbf} does it)")
        return "linear"

    def search(self, model, grid, how):
        """Search for parameters, and train with the best ones."""
        files = self._files
        found = grid_file(
            model, files["scale"], files["model"], grid=grid, results=files["grid"], verbose=self._verbose, **how
        )
        result = found.result
        best = ", ".join(f"{name} {value:g}" for name, value in result.best_params.items())
        score = f"{result.scoring} {abs(result.best_score):.6g}"
        self._add_line("grid", f"{len(result.points)} points: best {best}, {score}")
        for name, side in found.edges.items():
            beyond = spelled("extend=N")
            self._add_line("grid", f"{name} {result.best_params[name]:g} is the {side} tried; {beyond} goes beyond")
        self._add_line("train", f"{files['model']}: certified gap {found.gap:.1e}")
        return found

    def predict(self):
        """Predict the test file."""
        files = self._files
        with shown_progress(self._verbose):
            found = predict_file(files["test scale"], files["model"], files["predict"])
        measures = [
            words(found.measures[name])
            for name, words in _MEASURE_TEXTS.items()
            if name in found.measures and math.isfinite(found.measures[name])
        ]
        facts = ", ".join([*measures, f"{found.measures['rows']} rows"])
        self._add_line("predict", f"{files['predict']}: {facts}")
        return found

    def report(self, command):
        """Write the page about the model."""
        files = self._files
        data = files["scale"] if self._test is None else files["test scale"]
        title = os.path.basename(self._train) + ("" if self._test is None else f" and {os.path.basename(self._test)}")
        with shown_progress(self._verbose):
            page = report_file(files["model"], data, files["html"], grid=files["grid"], title=title, command=command)
        self._add_line("report", files["html"])
        return page
