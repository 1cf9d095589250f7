"""`train_file`: rows in, one fit, a model file out. `cross_validate_file`: rows in, measures of a model out."""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from sklearn.base import BaseEstimator, clone, is_classifier

from widemargin.evaluation.predictions import cross_predict, cross_validation_lines, fit, measure
from widemargin.models.cutting_plane.ranking import RankSVM
from widemargin.models.kernel.machines import machine_of
from widemargin.solvers.contract import Status
from widemargin.solvers.registry import counts_of
from widemargin.workflows.columns import columns
from widemargin.workflows.files import AnyPath, Source, as_path, as_source, check_target, naming_the_file
from widemargin.workflows.kernel_summary import kernel_facts, train_lines
from widemargin.workflows.model_words import model_words
from widemargin.workflows.training_rows import Reading, certified_gap, choose_target, keep_model, read_training_rows

_SHOWN_CLASSES = 8
_IN_WORDS = (
    "rows", "features", "queries", "classes", "measure", "machine", "kernel", "solver", "sweeps", "steps", "iterations",
    "planes", "objective", "gap", "seconds", "status", "model",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class TrainedFile:
    """What `train_file` trained; `str` gives the lines that `widemargin train` prints.

    Attributes
    ----------
    model : estimator
        The fitted model.
    output : str
        The file that it was written to, "-" for standard output.
    description : str
        What kind of machine it is, in words.
    facts : dict
        Rows, features, solver, certified gap, objective, seconds, status and more, those that the machine has.
    """

    model: BaseEstimator
    output: str
    description: str
    facts: dict

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the training; the model is the one so far."""
        return self.facts["status"] == Status.INTERRUPTED.value

    @property
    def summary(self) -> str:
        """The lines below the description: those of svm-train for a kernel machine, then names and facts."""
        lines = train_lines(self.model, self.facts) if machine_of(self.model) is not None else []
        return "\n".join([*lines, columns(_in_words(self.model, self.facts))])

    def to_dict(self) -> dict[str, Any]:
        """Return description and facts for JSON."""
        return {"trained": self.description, **self.facts}

    def __str__(self) -> str:
        return f"{self.description}\n{self.summary}"


def train_file(
    estimator: BaseEstimator,
    data: Source,
    output: AnyPath | None = None,
    *,
    format: str = "widemargin",  # noqa: A002
    n_features: int | None = None,
    zero_based: str | bool = "auto",
    dtype: DTypeLike = np.float64,
) -> TrainedFile:
    """Fit an estimator to the rows of a file, and write the model to another.

    It is what `widemargin train` does.

    Parameters
    ----------
    estimator : estimator
        Any of widemargin, with its parameters; a copy of it is fitted.
    data : path or binary file object
        The rows, SVM-light / LIBSVM text, plain or compressed; "-" is standard input. Labels of a classification are
        whole numbers, a ranking takes its queries from `qid`, a precomputed kernel has rows `0:serial 1:K(x, x1) ...`.
    output : path, default=None
        Where the model goes; None is the name of the data + ".model" in the current directory, "-" standard output.
    format : {"widemargin", "liblinear", "libsvm", "svmlight"}, default="widemargin"
        The format of the model file, see `save_model`.
    n_features : int, default=None
        Columns; None is the largest index in the file.
    zero_based : {"auto", True, False}, default="auto"
        Whether indices count from 0; "auto": if index 0 occurs.
    dtype : {numpy.float64, numpy.float32}, default=numpy.float64
        Type of the values; single precision takes half the memory.

    Returns
    -------
    TrainedFile
        With the fitted `model` and `facts` about it; it prints itself.

    Raises
    ------
    FormatError
        If the file breaks a rule of its format.
    ValueError
        If the labels are not for the estimator, or the format has no place for it.
    OSError
        If a file cannot be read or written.

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
    target = choose_target(source, as_path(output))
    check_target(target, source)
    rows = read_training_rows(model, source, Reading(format, n_features, zero_based, dtype))
    started = time.perf_counter()
    naming_the_file(source, fit, model, rows.X, rows.y, rows.qid)
    seconds = time.perf_counter() - started
    if model.status_ == Status.INTERRUPTED.value and np.max(model.n_iter_) == 0:
        raise KeyboardInterrupt  # a model that has seen no row must not take the place of a file
    keep_model(model, target, format, rows)
    outcome = {"seconds": seconds, "status": model.status_, "model": target}
    return TrainedFile(model, target, model_words(model), _facts(model, rows) | outcome)


def _facts(model, rows):
    """Return what is worth knowing of a model fitted to rows."""
    facts = {"rows": rows.X.shape[0], "features": rows.n_columns}
    if isinstance(model, RankSVM):
        facts["queries"] = 1 if rows.qid is None else len(np.unique(rows.qid))
    if is_classifier(model):
        facts["classes"] = model.classes_.tolist()
    of_machine = kernel_facts(model, rows.y) if machine_of(model) is not None else _linear_facts(model)
    return facts | of_machine | {"gap": certified_gap(model)}


def _linear_facts(model):
    """Return what is worth knowing of a fitted linear model."""
    facts = {name: getattr(model, name) for name in ("loss", "measure") if hasattr(model, name)}
    facts["solver"] = model.solver_
    facts[counts_of(model.solver_)] = int(model.n_iter_)
    if hasattr(model, "thresholds_"):
        facts["thresholds"] = model.thresholds_.tolist()
    return {**facts, "objective": model.objective_}


def _in_words(model, facts):
    """Return the facts as a person reads them, but for those in the lines of svm-train."""
    words = {name: str(facts[name]) for name in _IN_WORDS if name in facts}
    if "classes" in facts:
        names = [str(label) for label in facts["classes"]]
        shown = names if len(names) <= _SHOWN_CLASSES else [*names[: _SHOWN_CLASSES - 1], "..."]
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
    """What `cross_validate_file` measured; `str` gives the lines that `widemargin train -v` prints.

    Attributes
    ----------
    description : str
        What kind of machine was trained, in words.
    n_folds : int
        How many folds there were.
    measures : dict
        How predictions agree with labels, such as `accuracy`, `mse`, `concordance`, each row predicted by the model
        that was not trained on it.
    seconds : float
        How long it took.
    lines : tuple of str
        The measures in words, as svm-train prints them.
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
        """Return description and measures for JSON."""
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

    It is what `widemargin train -v` does. Folds are shuffled; those of a classification have the classes in
    proportion, those of a ranking have queries whole.

    Parameters
    ----------
    estimator : estimator
        Any of widemargin, with its parameters; copies of it are fitted.
    data : path or binary file object
        The rows, as for `train_file`.
    n_folds : int, default=5
        How many parts the rows are split into.
    seed : int, default=0
        The same seed gives the same folds.
    format : {"widemargin", "liblinear", "libsvm", "svmlight"}, default="widemargin"
        Of the model that is to be trained with `train_file`: labels that it has no place for are refused.
    n_features : int, default=None
        Columns; None is the largest index in the file.
    zero_based : {"auto", True, False}, default="auto"
        Whether indices count from 0; "auto": if index 0 occurs.
    dtype : {numpy.float64, numpy.float32}, default=numpy.float64
        Type of the values.

    Returns
    -------
    CrossValidatedFile
        With `measures`; it prints itself.

    Raises
    ------
    FormatError
        If the file breaks a rule of its format.
    ValueError
        If the labels are not for the estimator, or there are fewer rows than folds.
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
    if not is_classifier(model) and getattr(model, "probability", False):
        model.set_params(probability=False)  # no measure depends on it
    rows = read_training_rows(model, data, Reading(format, n_features, zero_based, dtype))
    started = time.perf_counter()
    prediction = naming_the_file(data, cross_predict, model, rows.X, rows.y, n_folds, seed, rows.qid)
    seconds = time.perf_counter() - started
    measures = measure(model, rows.y, prediction)
    lines = tuple(cross_validation_lines(model, measures))
    return CrossValidatedFile(model_words(model), n_folds, measures, seconds, lines)
