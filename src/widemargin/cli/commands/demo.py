"""`widemargin demo`: solvers compared on small data sets that come with scikit-learn, in a table and a picture.

All solve the same problem on the same rows, each with its default tolerance. The gap of our models is the one they
certify; that of scikit-learn's is its objective, computed here, against the lower bound that our solvers proved.
"""

import os
import sys
import time
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table
from sklearn import datasets, svm
from sklearn.base import clone, is_classifier
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from widemargin.cli.options.parsing import Parser
from widemargin.cli.progress import add_progress_option, reporting
from widemargin.data.matrix import Matrix
from widemargin.models.linear import LinearSVC, LinearSVR
from widemargin.plots.convergence import make_figure, plot_convergence
from widemargin.problems import certificates, classification, regression
from widemargin.workflows.files import naming

_SOLVERS = ("dcd", "avsf", "climb", "newton")
_HEADINGS = ("data set", "solver", "score", "iterations", "gap", "seconds")
_PICTURE = "widemargin-demo.png"
_DESCRIPTION = """\
Train on three small data sets that come with scikit-learn, with several solvers and with scikit-learn's own
(LIBLINEAR), and compare them in a table and a picture. Takes less than a minute, most of it compiling."""
_EXAMPLES = f"""\
examples:
  widemargin demo                    writes demo/{_PICTURE}
  widemargin demo --output pictures"""


class Case(NamedTuple):
    """A data set with a scaler, our estimator and scikit-learn's for the same problem."""

    title: str
    load: object
    scaler: object
    ours: object
    theirs: object


class Result(NamedTuple):
    """A line of the table."""

    title: str
    solver: str
    score: float
    sweeps: int
    gap: float
    seconds: float

    def texts(self):
        """Return the cells of the line."""
        return (
            self.title,
            self.solver,
            f"{self.score:.3f}",
            str(self.sweeps),
            f"{max(self.gap, 0.0):.1e}",
            f"{self.seconds:.4f}",
        )


def make_parser():
    """Return the parser of `widemargin demo`."""
    parser = Parser("demo", [], description=_DESCRIPTION, examples=_EXAMPLES)
    parser.add_argument("--output", default="demo", metavar="DIR", help="where the picture goes (default: demo)")
    add_progress_option(parser)
    parser.add_argument("-q", "--quiet", action="store_true", help="no word about compiling")
    return parser


def run(tokens):
    """Compare the solvers on all cases, print the table, write the picture; return the exit status."""
    options = make_parser().parse(tokens)
    with naming(options.output):
        os.makedirs(options.output, exist_ok=True)
    results, models = [], {}
    with reporting(options):
        for case in _cases():
            lines, models[case.title] = compare(case)
            results += lines
    print_table(results, sys.stdout)
    print("\nscore: accuracy, or R2 for regression, on rows held out. gap: proved relative distance to the optimum.")
    print(_draw(models, Path(options.output, _PICTURE)))
    return 0


def _cases():
    """Return what the demo compares on."""
    hinge = {"loss": "hinge", "max_iter": 10_000, "random_state": 0}
    tube = {"loss": "epsilon_insensitive", "epsilon": 1.0, "max_iter": 10_000, "random_state": 0}
    tube |= {"C": 10.0, "intercept_scaling": 10.0}  # targets are far from 0, and so the intercept has to be
    return [
        Case(
            "breast cancer", datasets.load_breast_cancer, StandardScaler(), LinearSVC(**hinge), svm.LinearSVC(**hinge)
        ),
        Case("digits, 10 classes", datasets.load_digits, MaxAbsScaler(), LinearSVC(**hinge), svm.LinearSVC(**hinge)),
        Case(
            "diabetes, regression", datasets.load_diabetes, StandardScaler(), LinearSVR(**tube), svm.LinearSVR(**tube)
        ),
    ]


def compare(case):
    """Return the results on one case, and our models by solver."""
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
    gaps["scikit-learn"] = max(map(certificates.relative_gap, objectives(theirs, X, y), bounds))
    results = [
        Result(case.title, name, model.score(X_test, y_test), int(np.max(model.n_iter_)), gaps[name], seconds[name])
        for name, model in {**models, "scikit-learn": theirs}.items()
    ]
    return results, models


def _fit(model, X, y):
    """Fit and return the seconds it took; a first fit, which may have to compile, does not count."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clone(model).fit(X, y)
    started = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - started


def _lower_bounds(model):
    """Return the proved lower bound on the optimum of each of a model's problems."""
    histories = model.history_ if isinstance(model.history_, list) else [model.history_]
    return [history["dual"].max() for history in histories]


def objectives(model, X, y):
    """Return the objective of each problem, one per class, at a fitted linear model with a penalised intercept."""
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


def print_table(results, stream):
    """Print results as a table: ruled on a terminal, aligned text elsewhere."""
    on_terminal = stream.isatty()
    table = Table(box=box.ROUNDED if on_terminal else None, pad_edge=on_terminal, header_style="bold")
    for heading in _HEADINGS:
        table.add_column(heading, justify="left" if heading in _HEADINGS[:2] else "right", no_wrap=True)
    for result in results:
        table.add_row(*result.texts(), end_section=result.solver == results[-1].solver)
    console = Console(file=stream, width=None if on_terminal else 100)
    with console.capture() as captured:
        console.print(table)
    stream.write(captured.get())  # where the console itself would end the process if nobody reads


def _draw(models, path):
    """Draw how our models converged, two panels per data set; return where the picture is, or why there is none."""
    try:
        figure = make_figure(n_rows=len(models))
    except ImportError as error:
        return f"picture skipped. {error}"
    rows = figure.subplots(len(models), 2, sharey="row")
    for axes, (title, compared) in zip(rows, models.items(), strict=True):
        plot_convergence(compared, axes=axes)
        axes[0].set_title(title, loc="left", fontsize=10, fontweight="bold")
    with naming(str(path)):
        figure.savefig(path, dpi=200)
    return f"picture: {path}"
