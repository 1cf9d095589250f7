"""What msvmocas does: the classifier of all classes at once, without intercept, by cutting planes.

    minimise ½ Σ_m |w_m|² + C Σ_i max_m ( [m ≠ y_i] + <w_m, x_i> − <w_y_i, x_i> )

Labels are 1 to the largest one; a class between them without rows has a weight vector, too.
"""

import numpy as np

from widemargin._runtime.warning import warn_caller
from widemargin.data.matrix import Matrix
from widemargin.errors import ConvergenceWarning
from widemargin.persistence.ocas import write_classes
from widemargin.problems.multiclass import CrammerSinger
from widemargin.solvers.all_classes import by_planes
from widemargin.solvers.contract import Settings, Status
from widemargin.solvers.cutting_planes.methods import OCAS, SVMPERF
from widemargin.workflows.errors import FileError
from widemargin.workflows.files import check_target, name_of, naming, naming_the_file, read_rows
from widemargin.workflows.originals.ocas import OcasSettings, first_rows, stops_by_values
from widemargin.workflows.originals.ocas_text import Outcome, file_lines, outcome_lines, setting_lines


def learn_classes_file(settings: OcasSettings, data: str, output: str) -> list[str]:
    """Train on a file of rows, write the model of msvmocas, and return what it prints."""
    check_target(output, data)
    X, y, _ = read_rows(data, zero_based=False)
    file = X
    X, y = first_rows(settings, X, y, data)
    label = _class_numbers(y, data)
    problem = CrammerSinger(Matrix(X), label, np.full(len(label), settings.C), int(label.max()) + 1)
    solution = naming_the_file(data, by_planes(SVMPERF if settings.plain else OCAS), problem, _limits(settings))
    if solution.status not in (Status.CONVERGED, Status.CALLBACK):
        warn_caller(f"msvmocas has not converged: {solution.status.value}; gap {solution.gap:.1e}", ConvergenceWarning)
    with naming(output):
        write_classes(output, solution.w)
    wrong = (X @ solution.w).argmax(axis=1) != label
    outcome = Outcome(solution.history, solution.status.value, float(np.mean(wrong)))
    return [*_facts(settings, X, problem, file), *outcome_lines(settings, outcome, output)]


def _class_numbers(y, data):
    """Return the labels less 1; a FileError unless they are whole numbers from 1 on, two of them at least."""
    label = y.astype(np.int64)
    if (label != y).any() or label.min() < 1 or label.max() < 2:
        raise FileError(f"{name_of(data)}: labels must be whole numbers 1, 2, ..., of two classes or more")
    return label - 1


def _limits(settings):
    """Return the Settings of the solver."""
    return Settings(
        tol=settings.relative,
        max_iter=settings.max_planes,
        max_seconds=settings.max_seconds,
        n_jobs=settings.n_jobs,
        callbacks=stops_by_values(settings),
    )


def _facts(settings, X, problem, file):
    """Return the lines about the rows of the file, of which X are used, and about the setting."""
    lines = file_lines(file, problem.n_classes)
    given = {"C": format(settings.C, "f"), "before": [f"   # of examples  : {X.shape[0]}"], "after": []}
    return lines + setting_lines(settings, given)
