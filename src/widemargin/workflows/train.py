"""`train_file` fits a model to the rows of a file; `cross_validate_file` measures a model by cross-validation."""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from sklearn.base import BaseEstimator, clone, is_classifier

from widemargin.errors import ClusterError
from widemargin.evaluation.predictions import cross_predict, cross_validation_lines, fit, measure
from widemargin.models.cutting_plane.ranking import RankSVM
from widemargin.models.kernel.machines import machine_of
from widemargin.solvers.contract import Status
from widemargin.solvers.registry import counts_of
from widemargin.workflows.block_files import block_paths, is_block_file, memory_in_words, name_of_files, refuse_blocks
from widemargin.workflows.cluster import cluster_files, fit_on_cluster
from widemargin.workflows.errors import ArgumentError, spelled
from widemargin.workflows.files import (
    AnyPath,
    Source,
    as_path,
    as_source,
    check_target,
    name_of,
    naming_the_file,
    write_model,
)
from widemargin.workflows.model_rows import (
    ReadOptions,
    certified_gap,
    choose_target,
    open_training_blocks,
    read_training_rows,
    write_trained_model,
)
from widemargin.workflows.result_text import columns, kernel_facts, model_words, train_lines

_MAX_CLASSES_SHOWN = 8
_FACTS_SHOWN = (
    "rows", "features", "queries", "workers", "classes", "measure", "machine", "kernel", "basis", "solver", "sweeps",
    "steps", "iterations", "planes", "objective", "gap", "seconds", "status", "model",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class TrainedFile:
    """The result of `train_file`; `str` gives the lines that `widemargin train` prints.

    Attributes
    ----------
    model : estimator
        The fitted model.
    output : str
        The path of the model file; "-" is standard output.
    description : str
        A description of the model.
    facts : dict
        Numbers of rows and features, solver, certified gap, objective, seconds, status, and others that depend on the
        estimator.
    """

    model: BaseEstimator
    output: str
    description: str
    facts: dict

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C stopped the fit; the model is then the last iterate."""
        return self.facts["status"] == Status.INTERRUPTED.value

    @property
    def summary(self) -> str:
        """The lines below the description: those of svm-train for a kernel machine, then two columns of facts."""
        lines = train_lines(self.model, self.facts) if machine_of(self.model) is not None else []
        return "\n".join([*lines, columns(_in_words(self.model, self.facts))])

    def to_dict(self) -> dict[str, Any]:
        """Return the description and the facts as a dict that can be written as JSON."""
        return {"trained": self.description, **self.facts}

    def __str__(self) -> str:
        return f"{self.description}\n{self.summary}"


def train_file(
    estimator: BaseEstimator,
    data: Source | Sequence[AnyPath],
    output: AnyPath | None = None,
    *,
    format: str = "widemargin",  # noqa: A002
    n_features: int | None = None,
    zero_based: str | bool = "auto",
    dtype: DTypeLike = np.float64,
    dask: Any = None,
) -> TrainedFile:
    """Fit an estimator to the rows of a file, and write the model to another file.

    This is the function of `widemargin train`.

    Parameters
    ----------
    estimator : estimator
        Any estimator of widemargin; a copy of it is fitted.
    data : path, list of paths, or binary file object
        The rows as SVM-light / LIBSVM text, plain or compressed; "-" is standard input. Class labels must be
        integers. The queries of a ranking are given by `qid`. Rows of a precomputed kernel are
        `label 0:serial 1:K(x, x1) ...`. Or, for a linear machine, one or several row-block files, which are recognised
        by their content; a pattern such as "part-*.arrow" stands for all files that match it. What does not fit into
        the `max_memory` of the estimator is read from disk in every pass.
    output : path, default=None
        The model file. None is the name of the data file with ".model" appended, in the current directory; "-" is
        standard output.
    format : {"widemargin", "liblinear", "libsvm", "svmlight"}, default="widemargin"
        The format of the model file, see `save_model`.
    n_features : int, default=None
        Of text, the number of columns; None is the largest index in the file.
    zero_based : {"auto", True, False}, default="auto"
        Of text, whether indices count from 0; "auto" is True if index 0 occurs.
    dtype : {numpy.float64, numpy.float32}, default=numpy.float64
        Of text, the type of the values; single precision takes half the memory.
    dask : str, distributed.Client or None, default=None
        Where a linear machine is fitted to row-block files, which the workers of a Dask cluster read: the address of a
        scheduler such as "tcp://HOST:8786", a client, or "local" for processes on this machine, as many as the
        `n_jobs` of the estimator says, by default one for each core. Of another cluster, `n_jobs` is the number of
        threads of each worker. Paths may have a protocol of fsspec, such as "s3://". None is this process.

    Returns
    -------
    TrainedFile
        Has the fitted `model` and `facts` about it; `print` shows a summary.

    Raises
    ------
    FormatError
        If the file breaks a rule of its format.
    ValueError
        If the labels do not suit the estimator, or the format cannot represent the model.
    OSError
        If a file cannot be read or written.
    ClusterError
        If the cluster cannot be reached, or cannot go on. The best model so far is written, if there is one.

    Examples
    --------
    >>> import io
    >>> from widemargin import LinearSVC, train_file
    >>> rows = io.BytesIO(b"1 1:2\\n-1 1:-3\\n1 1:1\\n")
    >>> trained = train_file(LinearSVC(C=10.0), rows, "line.model")
    >>> trained.description, trained.facts["rows"]
    ('linear SVC, squared hinge loss', 3)
    """
    source, model = as_source(data), clone(estimator)
    options, output = ReadOptions(format, n_features, zero_based, dtype), as_path(output)
    if dask is not None:
        return _train_on_cluster(model, source, output, options, dask)
    paths = block_paths(source)
    source = source if paths is None else name_of_files(paths)
    target = choose_target(source if paths is None or len(paths) == 1 else paths, output)
    _check_outputs(model, target, paths or [source])
    if paths is None:
        _refuse_max_memory(model, source)
        rows = read_training_rows(model, source, options)
    else:
        rows = open_training_blocks(model, paths, options)
    started = time.perf_counter()
    with memory_in_words(paths or [name_of(source)]):
        naming_the_file(source, fit, model, rows.X, rows.y, rows.qid)
    seconds = time.perf_counter() - started
    _refuse_no_iteration(model)
    write_trained_model(model, target, format, rows)
    facts = {"rows": rows.X.shape[0], "features": rows.n_columns}
    if isinstance(model, RankSVM):
        facts["queries"] = 1 if rows.qid is None else len(np.unique(rows.qid))
    return _trained(model, target, facts | _facts(model, rows.y), seconds)


def _train_on_cluster(model, data, output, options, dask):
    """Fit a model to row-block files on a cluster, as `train_file` does."""
    files = cluster_files(model, data, dask, options)
    target = choose_target(files.paths[0] if len(files.paths) == 1 else files.paths, output)
    _check_outputs(model, target, files.paths)
    model, facts, error = fit_on_cluster(model, files, dask, options)
    _refuse_no_iteration(model)
    write_model(model, target, options.format)
    if error is not None:
        raise ClusterError(f"{error} {target} holds it.") from error
    seconds = facts.pop("seconds")
    return _trained(model, target, facts | _facts(model, None), seconds)


def _refuse_no_iteration(model):
    """Raise KeyboardInterrupt if Ctrl-C came before the first iteration: a file must not be replaced by that model."""
    if model.status_ == Status.INTERRUPTED.value and np.max(model.n_iter_) == 0:
        raise KeyboardInterrupt


def _trained(model, target, facts, seconds):
    """Return the TrainedFile of a model."""
    outcome = {"seconds": seconds, "status": model.status_, "model": target}
    return TrainedFile(model, target, model_words(model), facts | outcome)


def _check_outputs(model, target, sources):
    """Raise an error if the model or the checkpoint cannot be written, or would replace rows or one another."""
    check_target(target, *sources)
    if is_block_file(target):
        raise ArgumentError(f"{target} is a row-block file, which the model would replace; name another file")
    checkpoint = as_path(getattr(model, "checkpoint", None))
    if checkpoint is not None:
        check_target(checkpoint, *sources)
        if os.path.realpath(checkpoint) == os.path.realpath(target):
            raise ArgumentError(f"the model and {spelled('checkpoint')} are both {target}; name two files")


def _refuse_max_memory(model, source):
    """Raise an ArgumentError if `max_memory` is given for rows that are not in row-block files, and without a basis."""
    if getattr(model, "basis", None) is not None:
        return
    is_absent = isinstance(source, str) and source != "-" and not os.path.exists(source)  # whoever reads it reports it
    if getattr(model, "max_memory", None) is not None and not is_absent:
        raise ArgumentError(
            f"{spelled('max_memory')} is for row-block files, {name_of(source)} is not one and is read into memory as "
            f"a whole; leave it out, or convert the file with {spelled('convert_file')}"
        )


def _facts(model, y):
    """Return a dict of facts about a model that was fitted to rows with targets y."""
    facts = {"classes": model.classes_.tolist()} if is_classifier(model) else {}
    of_machine = kernel_facts(model, y) if machine_of(model) is not None else _linear_facts(model)
    return facts | of_machine | {"gap": certified_gap(model)}


def _linear_facts(model):
    """Return a dict of facts about a fitted linear model."""
    facts = {name: getattr(model, name) for name in ("loss", "measure") if hasattr(model, name)}
    if hasattr(model, "basis_"):
        facts |= {"kernel": model.kernel, "basis": model.basis_.shape[0]}
    facts["solver"] = model.solver_
    facts[counts_of(model.solver_)] = int(model.n_iter_)
    if hasattr(model, "thresholds_"):
        facts["thresholds"] = model.thresholds_.tolist()
    return {**facts, "objective": model.objective_}


def _in_words(model, facts):
    """Return the facts as texts, except those that the lines of svm-train contain."""
    words = {name: str(facts[name]) for name in _FACTS_SHOWN if name in facts}
    if "classes" in facts:
        names = [str(label) for label in facts["classes"]]
        shown = names if len(names) <= _MAX_CLASSES_SHOWN else [*names[: _MAX_CLASSES_SHOWN - 1], "..."]
        words["classes"] = f"{len(names)} ({', '.join(shown)})"
    asked = f", asked {model.tol:.1e}" if getattr(model, "stopping", None) == "gap" else ""
    words["gap"] = f"{facts['gap']:.1e} (certified{asked})"
    if "objective" in facts:
        words["objective"] = f"{facts['objective']:.6g}"
    words["seconds"] = f"{facts['seconds']:.2f}"
    words["model"] = "standard output" if facts["model"] == "-" else facts["model"]
    return words


@dataclass(frozen=True)
class CrossValidatedFile:
    """The result of `cross_validate_file`; `str` gives the lines that `widemargin train -v` prints.

    Attributes
    ----------
    description : str
        A description of the model.
    n_folds : int
        Number of folds.
    measures : dict
        Measures such as `accuracy`, `mse` and `concordance` of the predictions; each row is predicted by the model that
        was not trained on it.
    seconds : float
        The time in seconds.
    lines : tuple of str
        The measures as svm-train prints them.
    """

    description: str
    n_folds: int
    measures: dict
    seconds: float
    lines: tuple[str, ...]

    @property
    def summary(self) -> str:
        """The lines below the description."""
        return "\n".join(self.lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the description and the measures as a dict that can be written as JSON."""
        return {"trained": self.description, "folds": self.n_folds, **self.measures, "seconds": self.seconds}

    def __str__(self) -> str:
        return f"{self.description}\n{self.summary}"


def cross_validate_file(
    estimator: BaseEstimator,
    data: Source,
    *,
    n_folds: int = 5,
    seed: int = 0,
    format: str = "widemargin",  # noqa: A002
    n_features: int | None = None,
    zero_based: str | bool = "auto",
    dtype: DTypeLike = np.float64,
) -> CrossValidatedFile:
    """Measure an estimator on the rows of a file by cross-validation.

    This is the function of `widemargin train -v`. Rows are shuffled; each fold of a classification has the
    classes in the same proportion, and queries of a ranking are not divided.

    Parameters
    ----------
    estimator : estimator
        Any estimator of widemargin; copies of it are fitted.
    data : path or binary file object
        The rows, as for `train_file`.
    n_folds : int, default=5
        Number of folds.
    seed : int, default=0
        Seed of the folds.
    format : {"widemargin", "liblinear", "libsvm", "svmlight"}, default="widemargin"
        The format of the model that `train_file` is going to write; labels that it cannot represent are an error.
    n_features : int, default=None
        Number of columns; None is the largest index in the file.
    zero_based : {"auto", True, False}, default="auto"
        Whether indices count from 0; "auto" is True if index 0 occurs.
    dtype : {numpy.float64, numpy.float32}, default=numpy.float64
        Type of the values.

    Returns
    -------
    CrossValidatedFile
        Has the `measures`; `print` shows them.

    Raises
    ------
    FormatError
        If the file breaks a rule of its format.
    ValueError
        If the labels do not suit the estimator, or there are fewer rows than folds.
    OSError
        If the file cannot be read.

    Examples
    --------
    >>> import io
    >>> from widemargin import LinearSVC, cross_validate_file
    >>> rows = io.BytesIO(b"1 1:2\\n-1 1:-3\\n1 1:1\\n-1 1:-1\\n")
    >>> print(cross_validate_file(LinearSVC(), rows, n_folds=2))
    linear SVC, squared hinge loss
    Cross Validation Accuracy = 100%
    """
    data, model = as_source(data), clone(estimator)
    refuse_blocks(data, "cross-validation")
    if getattr(model, "checkpoint", None) is not None:
        raise ArgumentError(f"{spelled('checkpoint')} is for a single fit, and each fold has its own; leave it out")
    _refuse_max_memory(model, data)
    if not is_classifier(model) and getattr(model, "probability", False):
        model.set_params(probability=False)  # the measures of a regression do not depend on it
    rows = read_training_rows(model, data, ReadOptions(format, n_features, zero_based, dtype))
    started = time.perf_counter()
    prediction = naming_the_file(data, cross_predict, model, rows.X, rows.y, n_folds, seed, rows.qid)
    seconds = time.perf_counter() - started
    measures = measure(model, rows.y, prediction)
    lines = tuple(cross_validation_lines(model, measures))
    return CrossValidatedFile(model_words(model), n_folds, measures, seconds, lines)
