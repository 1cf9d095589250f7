"""`widemargin grid`: choose parameters by cross-validation, and train with the best; see `grid_file`."""

import argparse
import math
import sys

from widemargin.cli.messages import print_json, wants_progress, warnings_afterwards
from widemargin.cli.options import model as model_options
from widemargin.cli.options.parsing import positive, translate_letters, whole

_DESCRIPTION = """\
Score the points of a parameter grid by cross-validation, and train a model on all rows of DATA with the best point. By
default C and gamma have LIBSVM's ranges. The options of train select the machine; without them it is a C-SVC with the
rbf kernel. --kernel linear selects a linear machine, whose models for all C are fitted as one path of warm starts."""

_EXAMPLES = """\
examples:
  widemargin grid heart_scale                             110 points: log2 C = -5, -3 .. 15, log2 gamma = 3, 1 .. -15
  widemargin grid --kernel linear heart_scale             C alone, by LinearSVC
  widemargin grid --log2c -1,7,2 --log2g -1,-9,-2 --refine 1 heart_scale
  widemargin grid --resume heart_scale                    continue an interrupted search
  widemargin grid -c 10 --kernel poly --values degree=2,3,4 --values coef0=0,1 heart_scale
  widemargin grid -s 3 --log2p -6,-2,2 --plot grid.png --plot grid.html abalone
  widemargin grid --scoring roc_auc --json heart_scale
  widemargin grid --task rank --extend 5 train.dat        C of a RankSVM by concordance, extended beyond 2^15
  widemargin grid -s 3 --scale-targets cadata             C and epsilon in units of the targets' deviation

A parameter that is given by -c, -g, -p or -n is fixed. The folds are drawn once, from --seed. A kernel matrix is shared
by all folds and all C if it fits in --memory, and each fit is a warm start from the dual variables of the next smaller
C. Each score is appended to RESULTS as a line of JSON; by default this is DATA's name + ".grid" in the current
directory. The score is accuracy for classification, mean squared error for regression, and concordance for ranking,
where all rows of a query are in one fold; --scoring selects another score of scikit-learn. If the best value of a
parameter is on the edge of the grid, a message says so, and --extend extends the grid.

exit status:
  0  done      1  the data or the run failed      2  wrong usage      130  interrupted; continue with --resume"""

_OPTIONS_OF_GRID_PY = {
    "-log2c": "--log2c",
    "-log2g": "--log2g",
    "-log2p": "--log2p",
    "-out": "--results",
    "-png": "--plot",
}
_AXES = {"log2c": "C", "log2g": "gamma", "log2p": "epsilon"}
_ARGUMENTS = (
    "n_folds", "seed", "scoring", "extend", "refine", "scale_targets", "memory", "results", "resume", "overwrite",
)  # fmt: skip
_OPTIONS_THAT_SELECT_A_MACHINE = {
    "kernel", "kernel_type", "svm_type", "loss", "bias", "multi_class", "penalize_intercept", "stopping", "penalty",
    "l1_ratio",
}  # fmt: skip


def make_parser():
    """Return the parser of `widemargin grid`: the options of train, and those of the grid."""
    parser = model_options.make_parser("grid", _DESCRIPTION, _EXAMPLES)
    add = parser.add_argument_group("the grid").add_argument
    for option, name in _AXES.items():
        add(f"--{option}", type=_powers, metavar="BEGIN,END,STEP", help=f"{name} = 2^BEGIN, 2^(BEGIN+STEP) .. 2^END; "
            "null keeps the value of the machine")  # fmt: skip
    add("--values", type=_values, action="append", default=[], metavar="NAME=V1,V2,...",
        help="values of a parameter: C, gamma, degree, coef0, epsilon, nu, ...; may be repeated")  # fmt: skip
    add("--extend", type=whole(0), default=0, metavar="N", help="while the best C, gamma or epsilon is on the edge "
        "of the grid, add the next value beyond it, at most N times (default: 0)")  # fmt: skip
    add(
        "--refine",
        type=whole(0),
        default=0,
        metavar="N",
        help="then refine the grid around the best point N times (default: 0)",
    )
    add("--scoring", type=_score, metavar="NAME", help="scikit-learn's name of the score "
        "(default: accuracy, or neg_mean_squared_error for regression)")  # fmt: skip
    add("--scale-targets", action="store_true", help="regression: search with targets scaled to mean 0 and standard "
        "deviation 1, which is then the unit of C and epsilon; the model predicts in the units of DATA")  # fmt: skip
    add(
        "--memory",
        type=positive,
        default=2000.0,
        metavar="MB",
        help="memory for shared kernel matrices (default: 2000)",
    )
    add("--results", metavar="FILE", help='file of the scores (default: DATA\'s name + ".grid")')
    add("--resume", action="store_true", help="continue RESULTS; the scores in it are not computed again")
    add("--overwrite", action="store_true", help="replace an existing RESULTS")
    add("--plot", action="append", default=[], metavar="FILE", help="a picture of the scores (.png, .svg or .pdf) or "
        "an interactive page (.html); may be repeated")  # fmt: skip
    return parser


def _score(text):
    """Return the name of a score of scikit-learn, which is imported only if one is given."""
    from sklearn.metrics import get_scorer_names

    names = get_scorer_names()
    if text not in names:
        raise argparse.ArgumentTypeError(f"invalid choice: {text!r} (choose from {', '.join(map(repr, names))})")
    return text


def run(tokens):
    """Search, train and write the model; return the exit status."""
    parser = make_parser()
    options = parser.parse(translate_letters(_translate_grid_py(tokens)))
    model, grid = _machine_and_grid(parser, options)
    arguments = {name: getattr(options, name) for name in _ARGUMENTS}
    from widemargin.workflows.grid import grid_file

    with warnings_afterwards(notes=not options.quiet):
        found = grid_file(
            model, *options.files, grid=grid, **arguments, n_jobs=options.jobs, plots=options.plot,
            verbose=wants_progress(options), **model_options.reading_options(options),
        )  # fmt: skip
    stream = sys.stderr if found.output == "-" else sys.stdout
    if options.json:
        print_json(found.to_dict(), stream)
    elif not options.quiet:
        hint = model_options.hint(found.result.best_model, options)
        print(f"{found.description}{hint}\n{found.summary}", file=stream)
    return 0


def _translate_grid_py(tokens):
    """Return the tokens with the options of LIBSVM's grid.py translated, and `--log2c RANGE` joined by `=`.

    A range may begin with a minus sign, which argparse would take for an option.
    """
    rest, translated = [_OPTIONS_OF_GRID_PY.get(token, token) for token in tokens], []
    while rest:
        token = rest.pop(0)
        is_range = token.removeprefix("--") in _AXES
        translated.append(f"{token}={rest.pop(0)}" if is_range and rest else token)
    return translated


def _machine_and_grid(parser, options):
    """Return the estimator and the grid of parameters."""
    given = vars(options)
    if options.resume and options.overwrite:
        parser.error("--resume and --overwrite contradict each other; leave one of them out")
    if options.n_folds is None:
        options.n_folds = 5
    fixed = {name for name in ("C", "gamma", "epsilon", "nu") if name in given}
    if given.get("kernel") == "linear" and "svm_type" not in given and "kernel_type" not in given:
        del options.kernel  # LinearSVC or LinearSVR
    elif options.task in (None, "classification", "regression") and not set(given) & _OPTIONS_THAT_SELECT_A_MACHINE:
        options.kernel = "rbf"
    model = model_options.make_model(parser, options)
    _check_machine(parser, options, model)
    from widemargin.selection.parameter_ranges import default_grid

    grid = {name: values for name, values in default_grid(model).items() if name not in fixed}
    for option, name in _AXES.items():
        if given[option] is not None:
            _check_parameter(parser, model, name, f"--{option}", fixed)
            grid[name] = given[option]
    for name, values in options.values:
        _check_parameter(parser, model, name, "--values", fixed)
        grid[name] = values
    grid = {name: values for name, values in grid.items() if values}
    if not grid:
        parser.error("nothing is left to try: every parameter is fixed; use train -v")
    return model, grid


def _check_machine(parser, options, model):
    """Refuse a machine that cannot be scored, and options of the search that do not apply to it."""
    from sklearn.base import is_regressor

    from widemargin.models.cutting_plane.ranking import RankSVM
    from widemargin.models.kernel.one_class import OneClassSVM
    from widemargin.models.linear_one_class import LinearOneClassSVM

    if isinstance(model, OneClassSVM | LinearOneClassSVM):
        parser.error("a one-class machine has no labels to be scored by; choose nu, and train")
    if options.scale_targets and not is_regressor(model):
        parser.error("--scale-targets is for regression; leave it out or add --task regression")
    if options.scoring is not None and isinstance(model, RankSVM):
        parser.error("--scoring is not for --task rank, whose score is the mean concordance over queries; leave it out")


def _check_parameter(parser, model, name, option, fixed):
    if name not in model.get_params():
        parser.error(f"{option}: {type(model).__name__} has no parameter {name!r}")
    if name in fixed:
        parser.error(f"{option}: {name} is given by {parser.name(name)}; leave one of them out")


def _powers(text):
    """Return the powers of two with the exponents BEGIN,END,STEP; an empty list for null."""
    if text == "null":
        return []
    try:
        begin, end, step = map(float, text.split(","))
        count = math.floor((end - begin) / step + 1e-9) + 1
        values = [2.0 ** (begin + step * k) for k in range(count)]
    except (ValueError, ZeroDivisionError, OverflowError) as error:
        raise argparse.ArgumentTypeError(f"must be BEGIN,END,STEP or null, got {text!r}") from error
    if count < 1 or not all(map(math.isfinite, values)):
        raise argparse.ArgumentTypeError(f"{text!r} has no values: STEP must lead from BEGIN to END")
    return values


def _values(text):
    """Return (name, values) of NAME=V1,V2,...; values are converted to int or float if possible."""
    name, equals, values = text.partition("=")
    if not (name and equals and values):
        raise argparse.ArgumentTypeError(f"must be NAME=V1,V2,..., got {text!r}")
    return name, [_value(value) for value in values.split(",")]


def _value(text):
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
