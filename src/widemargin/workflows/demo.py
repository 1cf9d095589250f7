"""`compare_solvers`: the solvers on three small data sets of scikit-learn, in a table and a picture.

All solvers minimise the same objective on the same rows, with their default tolerances. The gap of a model of this
package is the one that it certifies. The gap of a model of scikit-learn is computed from its objective and the largest
lower bound that the solvers of this package have proved.
"""

import io
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn import datasets, svm
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from widemargin.data.matrix import Matrix
from widemargin.models.linear import LinearSVC, LinearSVR
from widemargin.plots.convergence import make_figure, plot_convergence
from widemargin.problems import certificates, classification, regression
from widemargin.workflows.files import AnyPath, as_path, naming

PICTURE_NAME = "widemargin-demo.png"
_SOLVERS = ("dcd", "avsf", "climb", "newton")
_HEADINGS = ("data set", "solver", "score", "iterations", "gap", "seconds")
_TABLE_WIDTH = 100  # characters, unless the table is ruled for a terminal
_LEGEND = "score: accuracy, or R2 for regression, on rows held out. gap: proved relative distance to the optimum."


class SolverResult(NamedTuple):
    """One line of the table.

    Attributes
    ----------
    data_set : str
        The data set.
    solver : str
        The solver, or "scikit-learn".
    score : float
        Accuracy, or R² for regression, on held-out rows.
    n_iter : int
        Iterations; the largest number over classes.
    gap : float
        Relative distance of the objective to a proved lower bound of the optimum.
    seconds : float
        Time of the fit.
    """

    data_set: str
    solver: str
    score: float
    n_iter: int
    gap: float
    seconds: float


@dataclass(frozen=True, eq=False)
class SolverComparison:
    """The result of `compare_solvers`; `str` gives the lines that `widemargin demo` prints.

    Attributes
    ----------
    results : tuple of SolverResult
        The lines of the table.
    picture : str or None
        The path of the picture; None if there is none.
    picture_message : str
        Where the picture is, or why there is none.
    """

    results: tuple[SolverResult, ...]
    picture: str | None
    picture_message: str

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a dict that can be written as JSON."""
        return {"results": [result._asdict() for result in self.results], "picture": self.picture}

    def to_text(self, *, ruled: bool = False) -> str:
        """Return the table, its legend and where the picture is; `ruled` draws lines around the cells of the table."""
        return f"{_table(self.results, ruled)}\n{_LEGEND}\n{self.picture_message}"

    def __str__(self) -> str:
        return self.to_text()


class _Case(NamedTuple):
    """A data set with a scaler, and the estimators of this package and of scikit-learn for the same problem."""

    title: str
    load: Callable[..., Any]
    scaler: BaseEstimator
    ours: BaseEstimator
    theirs: BaseEstimator


def compare_solvers(output: AnyPath = "demo") -> SolverComparison:
    """Compare solvers for linear models, scikit-learn's LIBLINEAR included, on three small data sets.

    This is the function of `widemargin demo`. The data sets are bundled with scikit-learn.

    Parameters
    ----------
    output : path, default="demo"
        The folder in which the picture of the convergence, `widemargin-demo.png`, is written. It is created if it does
        not exist. Without matplotlib no picture is written.

    Returns
    -------
    SolverComparison
        Has the `results` of all solvers; `print` shows them as a table.

    Raises
    ------
    OSError
        If the folder or the picture cannot be written.

    Examples
    --------
    >>> from widemargin import compare_solvers
    >>> compared = compare_solvers("pictures")
    >>> len(compared.results), max(result.gap for result in compared.results) < 1e-2
    (15, True)
    """
    folder = as_path(output)
    with naming(folder):
        os.makedirs(folder, exist_ok=True)
    results, models = [], {}
    for case in _cases():
        lines, models[case.title] = _compare(case)
        results += lines
    path = Path(folder, PICTURE_NAME)
    try:
        _draw(models, path)
    except ImportError as error:
        return SolverComparison(tuple(results), None, f"picture skipped. {error}")
    return SolverComparison(tuple(results), str(path), f"picture: {path}")


def _cases():
    hinge = {"loss": "hinge", "max_iter": 10_000, "random_state": 0}
    tube = {"loss": "epsilon_insensitive", "epsilon": 1.0, "max_iter": 10_000, "random_state": 0}
    tube |= {"C": 10.0, "intercept_scaling": 10.0}  # the mean of the targets is large, and so is the intercept
    classifiers = LinearSVC(**hinge), svm.LinearSVC(**hinge)
    regressors = LinearSVR(**tube), svm.LinearSVR(**tube)
    return [
        _Case("breast cancer", datasets.load_breast_cancer, StandardScaler(), *classifiers),
        _Case("digits, 10 classes", datasets.load_digits, MaxAbsScaler(), *classifiers),
        _Case("diabetes, regression", datasets.load_diabetes, StandardScaler(), *regressors),
    ]


def _compare(case):
    """Return the results for one data set, and a dict of our models by solver."""
    X, y = case.load(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, random_state=0)
    scaler = case.scaler.fit(X)
    X, X_test = scaler.transform(X), scaler.transform(X_test)
    models = {name: clone(case.ours).set_params(solver=name) for name in _SOLVERS}
    seconds = {name: _fit(model, X, y) for name, model in models.items()}
    gaps = {name: model.gap_ for name, model in models.items()}
    bounds = np.max([_lower_bounds(model) for model in models.values()], axis=0)
    theirs = clone(case.theirs)
    seconds["scikit-learn"] = _fit(theirs, X, y)
    gaps["scikit-learn"] = max(map(certificates.relative_gap, _objectives(theirs, X, y), bounds))
    results = [
        SolverResult(
            case.title, name, model.score(X_test, y_test), int(np.max(model.n_iter_)), float(gaps[name]), seconds[name]
        )
        for name, model in {**models, "scikit-learn": theirs}.items()
    ]
    return results, models


def _fit(model, X, y):
    """Fit a model and return the seconds of the fit, after a first fit that compiles what is needed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clone(model).fit(X, y)
    started = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - started


def _lower_bounds(model):
    """Return the proved lower bounds of the optimal objectives of a model's problems, one per class."""
    histories = model.history_ if isinstance(model.history_, list) else [model.history_]
    return [history["dual"].max() for history in histories]


def _objectives(model, X, y):
    """Return the objectives of a fitted linear model with a penalised intercept, one per class."""
    matrix, cost = Matrix(X, constant=model.intercept_scaling), np.full(len(y), float(model.C))
    coef = np.atleast_2d(model.coef_)
    W = np.hstack([coef, np.reshape(model.intercept_, (-1, 1)) / model.intercept_scaling])
    if not is_classifier(model):
        problems = [regression.LOSSES[model.loss](matrix, y, cost, model.epsilon)]
    else:
        positives = model.classes_[1:] if len(coef) == 1 else model.classes_
        state = classification.LOSSES[model.loss]
        problems = [state(matrix, np.where(y == label, 1.0, -1.0), cost) for label in positives]
    return [certificates.primal(problem, w) for problem, w in zip(problems, W, strict=True)]


def _table(results, ruled):
    """Return the results as a table."""
    from rich import box  # takes a while to import, and is needed for output only
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.ROUNDED if ruled else None, pad_edge=ruled, header_style="bold")
    for heading in _HEADINGS:
        table.add_column(heading, justify="left" if heading in _HEADINGS[:2] else "right", no_wrap=True)
    for result in results:
        gap = max(result.gap, 0.0)  # rounding can make a gap negative
        cells = f"{result.score:.3f}", str(result.n_iter), f"{gap:.1e}", f"{result.seconds:.4f}"
        table.add_row(result.data_set, result.solver, *cells, end_section=result.solver == results[-1].solver)
    text = io.StringIO()
    Console(file=text, width=_TABLE_WIDTH, force_terminal=ruled).print(table)
    return text.getvalue()


def _draw(models, path):
    """Draw the convergence of our models, two panels per data set; ImportError if matplotlib is not installed."""
    figure = make_figure(n_rows=len(models))
    rows = figure.subplots(len(models), 2, sharey="row")
    for axes, (title, compared) in zip(rows, models.items(), strict=True):
        plot_convergence(compared, axes=axes)
        axes[0].set_title(title, loc="left", fontsize=10, fontweight="bold")
    with naming(str(path)):
        figure.savefig(path, dpi=200)
