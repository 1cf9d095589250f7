"""What svmocas and linclassif do.

    minimise ½|w|² + Σ C_i max(0, 1 − y_i (<w, x_i> + b))

The intercept b is the weight of a constant feature, and penalised.
"""

import warnings
from dataclasses import dataclass

import numpy as np

from widemargin.errors import ConvergenceWarning, FormatError
from widemargin.models.linear import LinearSVC
from widemargin.persistence.alpha_file import read_alphas
from widemargin.persistence.ocas import read_weights, write_weights
from widemargin.workflows.errors import FileError
from widemargin.workflows.files import check_target, name_of, naming, naming_the_file, read_rows, write_lines
from widemargin.workflows.originals.ocas_text import Outcome, file_lines, outcome_lines, setting_lines


@dataclass(frozen=True)
class OcasSettings:
    """What svmocas and msvmocas minimise, and when they stop; the defaults are theirs.

    Attributes
    ----------
    C : float
    costs : str or None
        File with the C of each row, in place of `C`.
    constant : float
        Value of the constant feature; 0 is no intercept.
    n_rows : int or None
        Number of rows to use, from the first on.
    plain : bool
        Whether cutting planes are without line search.
    max_planes, n_jobs, max_seconds
        Limits.
    relative, absolute, target : float
        It stops if the relative or the absolute gap, or the primal objective is at most this.
    """

    C: float = 1.0
    costs: str | None = None
    constant: float = 0.0
    n_rows: int | None = None
    plain: bool = False
    max_planes: int = 2000
    n_jobs: int = 1
    max_seconds: float | None = None
    relative: float = 0.01
    absolute: float = 0.0
    target: float = 0.0


def learn_file(settings: OcasSettings, data: str, output: str) -> list[str]:
    """Train on a file of rows, write the model of svmocas, and return what it prints."""
    check_target(output, data)
    X, y, _ = read_rows(data, zero_based=False)
    about_file = file_lines(X)
    X, y = first_rows(settings, X, y, data)
    sign = np.where(y > 0, 1, -1)
    if len(np.unique(sign)) < 2:
        raise FileError(f"{name_of(data)}: all rows are of one class; there must be positive and negative labels")
    weight = None
    if settings.costs is not None:
        with naming(settings.costs):
            weight = read_alphas(settings.costs)[: settings.n_rows]
        if len(weight) != len(y) or (weight <= 0.0).any():
            raise FormatError(settings.costs, f"there must be a positive C for each of the {len(y)} rows.")
    model = _estimator(settings)
    with warnings.catch_warnings():
        if settings.absolute or settings.target:  # to stop by them is what was asked for
            warnings.filterwarnings("ignore", message=".*callback asked to stop", category=ConvergenceWarning)
        naming_the_file(data, model.fit, X, sign, weight)
    with naming(output):
        write_weights(output, model.coef_, np.ravel(model.intercept_)[0])
    return about_file + _lines(settings, X, sign, model, output)


def first_rows(settings, X, y, data):
    """Return the first rows and their labels, as many as are to be used; a FileError if there are fewer."""
    if settings.n_rows is not None and settings.n_rows > len(y):
        raise FileError(f"{name_of(data)} has {len(y)} rows; -n {settings.n_rows} must not be more")
    return X[: settings.n_rows], y[: settings.n_rows]


def stops_by_values(settings):
    """Return the callbacks that stop a run by the absolute gap, or by the objective, if that is asked for."""

    def is_close(progress):
        return progress.primal - progress.dual <= settings.absolute or progress.primal <= settings.target

    return (is_close,) if settings.absolute or settings.target else ()


def _estimator(settings):
    """Return the LinearSVC that the settings describe."""
    return LinearSVC(
        loss="hinge",
        C=1.0 if settings.costs is not None else settings.C,
        fit_intercept=settings.constant != 0.0,
        intercept_scaling=settings.constant or 1.0,
        solver="svmperf" if settings.plain else "ocas",
        tol=settings.relative,
        max_iter=settings.max_planes,
        max_seconds=settings.max_seconds,
        n_jobs=settings.n_jobs,
        callbacks=list(stops_by_values(settings)) or None,
    )


def _lines(settings, X, sign, model, output):
    """Return what svmocas prints about the setting, each plane, and the result."""
    given = {
        "C": settings.costs or format(settings.C, "f"),
        "before": [f"   bias           : {settings.constant:g}", f"   # of examples  : {X.shape[0]}"],
        "after": [f"   # of threads   : {settings.n_jobs}"],
    }
    outcome = Outcome(model.history_, model.status_, float(np.mean(model.predict(X) != sign)))
    return setting_lines(settings, given) + outcome_lines(settings, outcome, output)


def classify_file(data: str, model: str, output: str, *, with_scores: bool = False) -> list[str]:
    """Write the label or the score of each row by a model of svmocas or msvmocas; return lines with the errors.

    Classes of msvmocas are 1, 2, ...; those of svmocas 1 and −1. `output` is "-" for standard output.
    """
    with naming(model):
        W, intercepts = read_weights(model)
    X, y, _ = read_rows(data, zero_based=False)
    n_features = max(W.shape[1], X.shape[1])
    X.resize(X.shape[0], n_features)
    W = np.pad(W, ((0, 0), (0, n_features - W.shape[1])))
    scores = X @ W.T + intercepts
    is_binary = len(W) == 1
    labels = np.where(scores[:, 0] >= 0.0, 1, -1) if is_binary else scores.argmax(axis=1) + 1
    if output != "-":
        check_target(output, data, model)
    form = "{:+d}" if is_binary else "{:d}"
    rows = (" ".join(f"{one:.17g}" for one in row) for row in scores) if with_scores else map(form.format, labels)
    write_lines(rows, output)
    wrong = labels != y
    classes = [1, -1] if is_binary else np.unique(y).astype(int).tolist()
    parts = " ".join(f"{form.format(label)}: {_share(wrong[y == label])}" for label in classes if (y == label).any())
    end = "" if is_binary else " "  # as linclassif prints it
    return [f"Classification error: {_share(wrong)}", f"Per-class errors: {parts}{end}"]


def _share(wrong):
    """Return a fraction of errors as linclassif prints it."""
    return f"{100.0 * wrong.mean():f}%({int(wrong.sum())}/{len(wrong)})"
