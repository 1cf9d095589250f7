"""The options of `widemargin train`, and the estimator that they describe."""

import argparse
from functools import partial
from importlib import import_module

from widemargin._runtime.words import listed
from widemargin.cli.messages import add_output_options
from widemargin.cli.options import kernel as kernel_options
from widemargin.cli.options import parsing, penalty, solver_names
from widemargin.cli.options.parsing import Parser
from widemargin.data.blocks.memory import bytes_of

_TASKS = {"classification": "linear.LinearSVC", "regression": "linear.LinearSVR"}  # estimators, in widemargin.models
_LOSSES = {
    "hinge": "classification",
    "squared_hinge": "classification",
    "log_loss": "classification",
    "epsilon_insensitive": "regression",
    "squared_epsilon_insensitive": "regression",
}
_ONLY_FOR = {
    "epsilon": "regression",
    **dict.fromkeys(("class_weight", "multi_class", *penalty.OPTIONS), "classification"),
}
_CUTTING_PLANE_TASKS = {
    "rank": "cutting_plane.ranking.RankSVM",
    "ordinal": "cutting_plane.ordinal.OrdinalSVC",
    "rocarea": "cutting_plane.roc_area.ROCAreaSVC",
    "measure": "cutting_plane.measure.MeasureSVC",
}
_LINEAR_ONE_CLASS = "linear-oneclass"
_FORMATS_OF_TASK = {"rank": ("widemargin", "svmlight"), "ordinal": ("widemargin",)}  # the others have those of rank
_OF_LARGE_DATA = ("scaling", "max_memory", "checkpoint")
_CUTTING_PLANE_OPTIONS = ("C", "tol", "stopping", "solver", "max_iter", "max_seconds", *_OF_LARGE_DATA)
_OPTIONS_OF_TASK = {"measure": ("measure", "bias")}
_LINEAR_DEFAULTS = {"C": 1.0, "tol": 1e-4, "stopping": "gap", "solver": "auto", "max_iter": 1000}
_PASSED_ON = (
    *_LINEAR_DEFAULTS, "max_seconds", "loss", "epsilon", "multi_class", "penalize_intercept", *penalty.OPTIONS,
    *_OF_LARGE_DATA,
)  # fmt: skip

_LINEAR_CHOICES = {
    "svm_type",
    "loss",
    "bias",
    "multi_class",
    "stopping",
    "solver",
    "penalize_intercept",
    *penalty.OPTIONS,
}
_ANSWERS = {
    "-C": "-C is LIBLINEAR's search for C, which is widemargin grid --kernel linear here; -c is C",
    "-R": "-R is LIBLINEAR's option for an intercept without penalty; use --no-penalize-intercept",
    "--dual": "--dual is not available: --solver chooses how the problem is solved, see --help; leave it out",
}

_DESCRIPTION = """\
Train a support vector machine on a file of SVM-light / LIBSVM text (plain, .gz, .bz2, .xz or .zst), or on row-block
files of any size. The model is linear, or a kernel machine if an option of kernel machines is given; --task selects
regression, ranking and others. If MODEL is left out, it is DATA's name + ".model" in the current directory; "-" is
standard input or output."""

_EXAMPLES = """\
examples:
  widemargin train heart_scale                            linear, squared hinge loss, writes heart_scale.model
  widemargin train -c 10 --loss hinge --tol 1e-6 heart_scale heart.model
  widemargin train --loss log_loss heart_scale            logistic regression; -s 7 is the same, as in LIBLINEAR
  widemargin train --task regression -p 0.1 abalone       linear support vector regression
  widemargin train --no-penalize-intercept heart_scale    an intercept that is not penalised
  widemargin train --penalty l1 -c 0.1 heart_scale        many weights zero; the same is -s 5, as for LIBLINEAR
  widemargin train -s 6 -c 0.1 heart_scale                logistic regression with many weights zero
  widemargin train --task rank -c 20 train.dat            ranking within queries: `3 qid:1 1:0.5 ...`, as for SVM-rank
  widemargin train --task rank --kernel rbf --basis 500 -c 20 train.dat   ranking by functions of 500 basis points
  widemargin train --task ordinal stars                   ordinal regression: ordered labels, separated by thresholds
  widemargin train --task rocarea -v 5 heart_scale        maximise the area under the ROC curve
  widemargin train --task measure --measure prbep -c 100 heart_scale
  widemargin train --kernel rbf heart_scale               C-SVC; the same is -s 0 -t 2
  widemargin train -s 1 -t 1 -d 2 -n 0.3 -b 1 heart_scale       nu-SVC, polynomial kernel, probabilities
  widemargin train --task oneclass --nu 0.1 --gamma 0.5 normal  outlier detection
  widemargin train -s 21 -n 0.1 big.arrow big.model       the same by a linear machine, --task linear-oneclass
  widemargin train -t 4 kernel.txt                        rows are `label 0:serial 1:K(x, x1) 2:K(x, x2) ...`
  widemargin train -v 5 -w1 2 -w-1 0.5 -g 0.1 heart_scale  5-fold cross-validation, classes weighted
  widemargin train --progress yes big.xz big.model 2> log       write progress to a log file
  xzcat big.xz | widemargin train --format liblinear - big.model
  widemargin train --max-memory 3G --checkpoint run.ckpt big.arrow big.model
  widemargin train --scaling standard part-1.arrow part-2.arrow parts.model
  widemargin train --dask local 'part-*.arrow' parts.model
  widemargin train --dask local --kernel rbf --basis 1000 'part-*.arrow' parts.model

Without an option of kernel machines the model is linear: the intercept is penalised with the other weights, and -e is a
relative duality gap. Any of LIBSVM's letters -s -t -d -g -r -n -m -h -b, or their long names, selects a kernel machine
(also -s 0 -t 0), trained as by svm-train: with its defaults (C-SVC, rbf, gamma 1/features, -e 1e-3 for the optimality
conditions), an intercept that is not penalised, and its output. Options that svm-train would ignore are an error.
MODEL is written in widemargin's format, also with LIBSVM's letters, unless --format libsvm selects LIBSVM's.

The tasks rank, ordinal, rocarea and measure are linear, too, or have a kernel on a basis (-t or --kernel with --basis):
½|w|² + C times a mean over pairs, or times 1 - measure, is minimised by cutting planes (--solver ocas or svmperf,
-e 1e-3). --format svmlight writes SVM-light's model text, for
svm_classify and svm_rank_classify, which print scores; class labels are stored in it for widemargin only.
With -v, all rows of a query are in one fold; ROC area, PRBEP, precision@K and recall@K are means over the folds.

Row-block files, which widemargin convert writes, are recognised by their content and are for linear machines without
-v. DATA may be several of them, or a pattern in quotes such as 'part-*.arrow'. Rows that fit into --max-memory are
loaded, others are read from disk in every pass. After kill -9 or Ctrl-C, the same command goes on from --checkpoint.
With --dask the rows are those of the workers: -j is the number of threads of each, by default all, --max-memory is what
each keeps, and paths may have a protocol, such as s3://. A worker that dies costs time only. MODEL is an ordinary one.

exit status:
  0  success, also if a warning says that the solver stopped before it reached the tolerance
  1  an error in the data or in the run; also after Ctrl-C, when the model so far was written
  2  wrong usage
  130  Ctrl-C before there was a model: nothing was written"""


def make_parser(command="train", description=_DESCRIPTION, examples=_EXAMPLES, data="DATA"):
    """Return the parser of `widemargin train`, or of another command with all of its options.

    Options of estimators that are not given are absent from the parsed options. `data` is the name of the file of rows,
    "DATA..." if there may be several.
    """
    parser = Parser(command, [data, "[MODEL]"], description=description, examples=examples, answers=_ANSWERS)
    _add_problem_options(parser.add_argument_group("what is minimised"))
    kernel_options.add_kernel_options(
        _adding(parser.add_argument_group("kernel machines (each of these asks for one)"))
    )
    solver_options = parser.add_argument_group("how, and how far")
    _add_solver_options(solver_options)
    if command == "train":
        _add_cluster_option(solver_options)
    _add_file_options(parser.add_argument_group("files and messages"))
    return parser


def _adding(group):
    """Return the `add_argument` of a group, for options that are absent from the parsed options if not given."""
    return partial(group.add_argument, default=argparse.SUPPRESS)


def _add_problem_options(group):
    add = _adding(group)
    tasks = [*_TASKS, "oneclass", _LINEAR_ONE_CLASS, *_CUTTING_PLANE_TASKS]
    group.add_argument("--task", choices=tasks, help="default: classification, or what --loss is for")
    add("-c", "--C", type=parsing.positive, help="weight of the losses, or of their mean for rank, ordinal, rocarea "
        "and measure (default: 1)")  # fmt: skip
    add("-p", "--epsilon", type=parsing.non_negative,
        help="regression: half-width of the tube without loss (default: 0, for kernel machines 0.1)")  # fmt: skip
    add("--class-weight", type=parsing.class_weight, action="append", metavar="LABEL:WEIGHT",
        help="factor of C for a class, may be repeated; also -wLABEL WEIGHT, or balanced (nu-SVC has it too, unlike "
        "svm-train's)")  # fmt: skip
    add("--loss", choices=list(_LOSSES), help="linear: default squared_hinge, or epsilon_insensitive for regression")
    penalty.add_penalty_options(add)
    add("--measure", type=_measure_name, help="task measure: f1, prbep, precision@K or recall@K of the K rows with the "
        "largest scores, average_precision, or error; the larger label is the positive one (default: f1)")  # fmt: skip
    add("--no-penalize-intercept", action="store_false", dest="penalize_intercept", help="classification and "
        "regression: do not penalise the intercept; needs --solver newton, ocas or svmperf")  # fmt: skip
    add("-B", "--bias", type=parsing.number, metavar="B", help="linear: constant feature of the intercept, larger "
        "penalises it less; negative: none (default: 1)")  # fmt: skip
    add("--multi-class", choices=["ovr", "crammer_singer"],
        help="linear: default ovr, one class against the rest; kernel machines take one against one")  # fmt: skip


def _add_solver_options(group):
    add, solvers = _adding(group), list(dict.fromkeys([*solver_names.LINEAR, *solver_names.KERNEL]))
    add("-e", "--tol", type=parsing.non_negative, help="linear: requested relative duality gap (default: 1e-4, for "
        "rank, ordinal, rocarea and measure 1e-3); kernel machines: largest violation of an optimality condition "
        "(default: 1e-3)")  # fmt: skip
    add("--stopping", choices=["gap", "kkt", "violation"], help="what --tol is compared with; violation is svmperf's, "
        "kkt that of dcd, avsf and climb, and of kernel machines (default: gap, for kernel machines kkt)")  # fmt: skip
    add("--solver", choices=solvers, help="default: auto; svmlight and smo are for kernel machines, others linear; "
        "newton is for few columns, ocas and svmperf are cutting planes")  # fmt: skip
    add("--max-iter", type=parsing.whole(1, also="none"), metavar="N", help="most sweeps over the rows, steps or "
        "planes (kernel machines: iterations), none for no limit (default: 1000; kernel machines: none)")  # fmt: skip
    add("--max-seconds", type=parsing.positive, metavar="S", help="stop after about this time (default: no limit)")
    add("--scaling", choices=["standard", "maxabs"],
        help="linear: scale features for the solver, to mean 0 and standard deviation 1 or to a largest absolute value "
        "of 1; the weights in MODEL are those of unscaled features")  # fmt: skip
    add("--max-memory", type=_memory, metavar="SIZE",
        help="row-block files: memory of the process in all, such as 3G or 500M (default: half of what is "
        "free)")  # fmt: skip
    add("--checkpoint", metavar="FILE",
        help="keep the state of the solver in FILE now and then, and go on from it if it is there; FILE is "
        "removed when the fit has converged")  # fmt: skip
    add = group.add_argument
    add("-j", "--jobs", type=parsing.threads, metavar="N", help="threads (default: all cores where that saves time)")
    add("--seed", type=parsing.whole(0), default=0, metavar="N", help="the same seed gives the same model (default: 0)")
    add(
        "-v",
        type=parsing.whole(2),
        dest="n_folds",
        metavar="K",
        help="K-fold cross-validation; train writes no model then",
    )


def _add_cluster_option(group):
    group.add_argument("--dask", metavar="ADDRESS", help="linear or with --basis, row-block files: train on the "
        "Dask cluster with the scheduler at this address, such as tcp://HOST:8786, whose workers read the files; or "
        "local for a process on each core, or -j N processes")  # fmt: skip


def _add_file_options(group):
    add = group.add_argument
    add("--format", choices=["widemargin", "liblinear", "libsvm", "svmlight"], default="widemargin",
        help="of MODEL: libsvm for kernel machines, liblinear for linear classification, regression and one class, "
        "svmlight for other linear models except ordinal ones and those of several classes (default: "
        "widemargin)")  # fmt: skip
    add("--n-features", type=parsing.whole(1), metavar="N", help="columns (default: the largest index in DATA)")
    parsing.add_zero_based_option(group)
    add("--float32", action="store_true", help="keep the values in single precision: half the memory")
    add_output_options(group, quiet="no progress, notes or summary; warnings, errors and the result of -v stay")


def reading_options(options):
    """Return the options of train and grid about reading DATA and the format of MODEL, as arguments of the library."""
    import numpy as np

    return {
        "format": options.format,
        "n_features": options.n_features,
        "zero_based": parsing.ZERO_BASED[options.zero_based],
        "dtype": np.float32 if options.float32 else np.float64,
    }


def make_model(parser, options):
    """Return the estimator that the options describe; a usage error if they contradict each other or do not apply."""
    if hasattr(options, "measure") and options.task != "measure":
        parser.error("--measure is for --task measure; add that or leave it out")
    if options.task in _CUTTING_PLANE_TASKS:
        return _make_cutting_plane_model(parser, options)
    if _is_linear_one_class(options):
        return _make_linear_one_class(parser, options)
    penalty.take_liblinear_type(parser, options)
    if getattr(options, "svm_type", None) == kernel_options.LOGISTIC:
        return _make_linear_model(parser, _with_log_loss(parser, options))
    selecting = kernel_options.selecting_option(parser, options)
    if selecting is not None:
        return kernel_options.make_kernel_model(parser, options, selecting)
    return _make_linear_model(parser, options)


def hint(model, options):
    """Return a hint for users who know the same options from other programs, or ""."""
    from widemargin.models.kernel.machines import machine_of

    if machine_of(model) is not None:
        return kernel_options.kernel_hint(options)
    is_named = options.task in _CUTTING_PLANE_TASKS or _is_linear_one_class(options)
    if is_named or _LINEAR_CHOICES & set(vars(options)):
        return ""
    return "; the rbf kernel, svm-train's default, is -t 2"


def _with_log_loss(parser, options):
    """Return the options with --loss log_loss in place of LIBLINEAR's -s 7; a usage error if others contradict it."""
    given, number = dict(vars(options)), options.svm_type
    del given["svm_type"]
    if given.setdefault("loss", "log_loss") != "log_loss":
        parser.error(f"-s {number} means --loss log_loss, got --loss {given['loss']}; leave one of them out")
    options = argparse.Namespace(**given)
    selecting = kernel_options.selecting_option(parser, options)
    if selecting is not None:
        parser.error(f"{selecting} is for kernel machines, and -s {number} is logistic regression; leave one out")
    return options


def _make_linear_model(parser, options):
    given = {**_LINEAR_DEFAULTS, **vars(options)}
    if given["solver"] not in solver_names.LINEAR:
        _refuse_kernel(parser, f"--solver {given['solver']}")
    if options.format == "libsvm":
        _refuse_kernel(parser, "--format libsvm")
    loss = given.get("loss")
    task = options.task or _LOSSES.get(loss, "classification")
    if loss and _LOSSES[loss] != task:
        parser.error(f"--loss {loss} is for {_LOSSES[loss]}, the task is {task}")
    for dest, only in _ONLY_FOR.items():
        if dest in given and task != only:
            parser.error(f"{parser.name(dest)} is for {only}, the task is {task}; leave it out or change --task")
    if given.get("multi_class") == "crammer_singer":
        _check_all_classes(parser, loss, given["solver"])
    penalty.check_penalty(parser, given)
    _check_intercept_and_stopping(parser, given)
    bias = given.get("bias", 1.0)
    if bias == 0:
        parser.error("--bias must not be 0: positive for an intercept, negative for none")
    parameters = {name: given[name] for name in _PASSED_ON if name in given}
    parameters |= {"n_jobs": options.jobs, "random_state": options.seed}
    parameters |= {"fit_intercept": bias > 0, "intercept_scaling": abs(bias)}
    if "class_weight" in given:
        parameters["class_weight"] = parsing.join_weights(parser, given["class_weight"])
    return _estimator(_TASKS[task])(**parameters)


def _estimator(place):
    """Return the class of an estimator from its place in widemargin.models."""
    module, _, name = place.rpartition(".")
    return getattr(import_module(f"widemargin.models.{module}"), name)


def _check_all_classes(parser, loss, solver):
    """Report a usage error for a loss, or a solver that is not for all classes at once."""
    if loss:
        parser.error("--multi-class crammer_singer has a loss of its own; leave --loss out")
    if solver not in solver_names.ALL_CLASSES:
        parser.error(f"--multi-class crammer_singer needs --solver {listed(solver_names.ALL_CLASSES, str)}")


def _check_intercept_and_stopping(parser, given):
    """Report a usage error for options that contradict --no-penalize-intercept or do not apply to the solver."""
    solver = given["solver"]
    if "penalize_intercept" in given:
        name = parser.name("penalize_intercept")
        takers = solver_names.names_of(solver_names.LINEAR, free_intercept=True)
        if solver not in takers:
            parser.error(f"{name} needs --solver {listed(takers, str)}, got {solver}; leave one of them out")
        if "bias" in given:
            parser.error(f"{parser.name('bias')} is for an intercept with a penalty; leave it or {name} out")
        if given.get("multi_class") == "crammer_singer":
            parser.error(f"{name} is not for --multi-class crammer_singer; leave one of them out")
    names = solver_names.LINEAR
    _check_stopping(parser, given["stopping"], solver, names, free_intercept="penalize_intercept" in given)


def _refuse_kernel(parser, name):
    parser.error(f"{name} is for kernel machines, and without an option of those training is linear; add --kernel")


def _memory(text):
    """Return an amount of memory as it is written; ArgumentTypeError if it is none."""
    try:
        bytes_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"must be an amount of memory such as 3G or 500M, got {text!r}") from error
    return text


def _measure_name(text):
    """Return the name of a measure; ArgumentTypeError if it does not exist."""
    from widemargin.problems.measures import parsed

    try:
        parsed(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return text


def _make_cutting_plane_model(parser, options):
    """Return the estimator of `--task`; a usage error for options that do not apply to it."""
    task, given = options.task, vars(options)
    own = (*_CUTTING_PLANE_OPTIONS, *_OPTIONS_OF_TASK.get(task, ()))
    _refuse_other_options(parser, given, (*own, *kernel_options.OPTIONS_OF_BASIS), task)
    if options.format not in _FORMATS_OF_TASK.get(task, _FORMATS_OF_TASK["rank"]):
        parser.error(f"--format {options.format} has no place for --task {task}; leave it out")
    if given.get("solver", "ocas") not in solver_names.RISK:
        parser.error(f"--solver {options.solver} is not for --task {task}; use {' or '.join(solver_names.RISK)}")
    _check_stopping(parser, given.get("stopping"), given.get("solver", "ocas"), solver_names.RISK)
    parameters = {dest: given[dest] for dest in own if dest in given and dest != "bias"}
    parameters |= kernel_options.basis_parameters(parser, options)
    if "bias" in given:
        if options.bias == 0:
            parser.error("--bias must not be 0: positive for an intercept, negative for none")
        if given.get("measure") == "average_precision" and options.bias > 0:
            parser.error("no intercept changes the average precision; leave --bias out, or negative for none")
        parameters |= {"fit_intercept": options.bias > 0, "intercept_scaling": abs(options.bias)}
    return _estimator(_CUTTING_PLANE_TASKS[task])(n_jobs=options.jobs, **parameters)


def _refuse_other_options(parser, given, takes, task):
    """Report a usage error for an option of estimators that is not one of `takes`."""
    for dest in given:  # options of estimators have no default, so that they are present only if they were given
        if parser.get_default(dest) == argparse.SUPPRESS and dest not in takes:
            parser.error(f"{parser.name(dest)} is not for --task {task}; leave it out")


def _is_linear_one_class(options):
    """Return whether the options ask for a linear one-class machine: --task linear-oneclass, or LIBLINEAR's -s 21."""
    return options.task == _LINEAR_ONE_CLASS or getattr(options, "svm_type", None) == kernel_options.LINEAR_ONE_CLASS


def _make_linear_one_class(parser, options):
    """Return the linear one-class machine; a usage error for options that do not apply to it."""
    given, takers = vars(options), solver_names.names_of(solver_names.LINEAR, free_intercept=True)
    if options.task not in (None, "oneclass", _LINEAR_ONE_CLASS):
        parser.error(f"-s {options.svm_type} means --task {_LINEAR_ONE_CLASS}, got --task {options.task}")
    if given.get("svm_type", kernel_options.LINEAR_ONE_CLASS) != kernel_options.LINEAR_ONE_CLASS:
        parser.error(f"--task {_LINEAR_ONE_CLASS} is -s {kernel_options.LINEAR_ONE_CLASS}, got -s {options.svm_type}")
    parameters = ("nu", "tol", "solver", "max_iter", "max_seconds", *_OF_LARGE_DATA)
    _refuse_other_options(parser, given, ("svm_type", *parameters), _LINEAR_ONE_CLASS)
    if options.format not in ("widemargin", "liblinear"):
        parser.error(f"--format {options.format} has no place for --task {_LINEAR_ONE_CLASS}; leave it out")
    if given.get("solver", "auto") not in takers:
        parser.error(f"--solver {options.solver} is not for --task {_LINEAR_ONE_CLASS}; use {listed(takers, str)}")
    if given.get("scaling", "maxabs") != "maxabs":
        parser.error(f"--scaling {options.scaling} moves the origin, which the task needs; use --scaling maxabs")
    chosen = {dest: given[dest] for dest in parameters if dest in given}
    return _estimator("linear_one_class.LinearOneClassSVM")(n_jobs=options.jobs, random_state=options.seed, **chosen)


def _check_stopping(parser, stopping, solver, solvers, *, free_intercept=False):
    """Refuse a stopping rule that the solver, one of `solvers`, does not have."""
    others = solver_names.names_of(solvers, stopping=stopping, free_intercept=free_intercept)
    if stopping is None or solver in others:
        return
    if not others:
        parser.error(f"--stopping {stopping} is for none of the solvers that would do here; leave it out")
    parser.error(
        f"--stopping {stopping} is a rule of {listed(others, str)}, the solver is {solver}; add --solver {others[0]}"
    )
