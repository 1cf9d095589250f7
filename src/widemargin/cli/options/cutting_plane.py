"""Options of the tasks that are solved by cutting planes: ranking, ordinal regression, ROC area, measures."""

import argparse

from widemargin.models.cutting_plane.measure import MeasureSVC
from widemargin.models.cutting_plane.ranking import OrdinalSVC, RankSVM, ROCAreaSVC
from widemargin.problems.formulations import DualQP, RiskProblem
from widemargin.problems.measures import parsed
from widemargin.solvers.registry import RISK_SOLVERS, listed, names_of

TASKS = {"rank": RankSVM, "ordinal": OrdinalSVC, "rocarea": ROCAreaSVC, "measure": MeasureSVC}
FORMATS = {"rank": ("widemargin", "svmlight"), "ordinal": ("widemargin",)}  # the other tasks as rank
_COMMON_OPTIONS = ("C", "tol", "stopping", "solver", "max_iter", "max_seconds")
_OPTIONS_OF_TASK = {"measure": ("measure", "bias")}


def add_plane_options(add):
    """Add the options of these tasks; `add` is the `add_argument` of a parser or group."""
    add("--measure", type=measure_name, help="task measure: f1, prbep, precision@K or recall@K of the K rows with the "
        "largest scores, or error; the larger label is the positive one (default: f1)")  # fmt: skip
    add("--no-penalize-intercept", action="store_false", dest="penalize_intercept", help="classification and "
        "regression: do not penalise the intercept; needs --solver newton, ocas or svmperf")  # fmt: skip


def measure_name(text):
    """Return the name of a measure; ArgumentTypeError if it does not exist."""
    try:
        parsed(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return text


def make_plane_model(parser, options):
    """Return the estimator of `--task`; a usage error for options that do not apply to it."""
    task, given = options.task, vars(options)
    takes = (*_COMMON_OPTIONS, *_OPTIONS_OF_TASK.get(task, ()))
    for dest in given:  # options of estimators have no default, so that they are present only if they were given
        if parser.get_default(dest) == argparse.SUPPRESS and dest not in takes:
            parser.error(f"{parser.name(dest)} is not for --task {task}; leave it out")
    if options.format not in FORMATS.get(task, FORMATS["rank"]):
        parser.error(f"--format {options.format} has no place for --task {task}; leave it out")
    if given.get("solver", "ocas") not in RISK_SOLVERS:
        parser.error(f"--solver {options.solver} is not for --task {task}; use {' or '.join(RISK_SOLVERS)}")
    check_stopping(parser, given.get("stopping"), given.get("solver", "ocas"), RiskProblem)
    parameters = {dest: given[dest] for dest in takes if dest in given and dest != "bias"}
    if "bias" in given:
        if options.bias == 0:
            parser.error("--bias must not be 0: positive for an intercept, negative for none")
        parameters |= {"fit_intercept": options.bias > 0, "intercept_scaling": abs(options.bias)}
    return TASKS[task](n_jobs=options.jobs, **parameters)


def check_stopping(parser, stopping, solver, formulation=DualQP, intercept=None):
    """Refuse a stopping rule that the solver does not have."""
    others = names_of(formulation, stopping=stopping, intercept=intercept)
    if stopping is None or solver in others:
        return
    if not others:
        parser.error(f"--stopping {stopping} is for none of the solvers that would do here; leave it out")
    parser.error(
        f"--stopping {stopping} is a rule of {listed(others, str)}, the solver is {solver}; add --solver {others[0]}"
    )
