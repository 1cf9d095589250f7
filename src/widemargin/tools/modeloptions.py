"""Options of `widemargin train`: what they are, and the estimator they describe."""

from widemargin.models.linear import LinearSVC, LinearSVR
from widemargin.solvers.auto import SOLVERS
from widemargin.tools import options as reading
from widemargin.tools.files import ZERO_BASED
from widemargin.tools.options import Parser

_TASKS = {"classification": LinearSVC, "regression": LinearSVR}
_LOSSES = {
    "hinge": "classification",
    "squared_hinge": "classification",
    "epsilon_insensitive": "regression",
    "squared_epsilon_insensitive": "regression",
}
_LIBSVM_TYPES = {0: "hinge", 3: "epsilon_insensitive"}  # -s: C-SVC, epsilon-SVR
_LIBSVM_EPSILON = 0.1  # the default of svm-train's -p
_AVAILABLE = (
    "available are -s 0 -t 0 (C-SVC, linear kernel) and -s 3 -t 0 (epsilon-SVR, linear kernel); "
    "other losses by --loss; kernels come in the next release"
)
_ONLY_FOR = {"epsilon": "regression", "class_weight": "classification", "multi_class": "classification"}

_DESCRIPTION = """\
Train a linear support vector machine on a file of SVM-light / LIBSVM text (plain, .gz, .bz2, .xz or .zst).
MODEL is DATA's name + ".model" in the current directory if left out; "-" is standard input or output."""

_EXAMPLES = """\
examples:
  widemargin train heart_scale                            squared hinge loss, writes heart_scale.model
  widemargin train -c 10 --loss hinge --tol 1e-6 heart_scale heart.model
  widemargin train -v 5 -w1 2 -w-1 0.5 heart_scale        5-fold cross-validation, classes weighted
  widemargin train --task regression -p 0.1 abalone       support vector regression
  xzcat big.xz | widemargin train --format liblinear - big.model

LIBSVM's letters keep LIBSVM's meaning: -s 0|3 with -t 0, -c, -p, -wLABEL, -v, -q, and -h 1 (shrinking, which is always
on). Two things differ: the intercept is penalised with the other weights, and -e is a relative duality gap.

exit status:
  0  done, also if a warning says that the solver stopped short of the tolerance
  1  the data or the run failed; also after Ctrl-C, when the model so far was written
  2  wrong usage
  130  Ctrl-C before there was a model: nothing was written"""


def make_parser():
    """Return the parser of `widemargin train`."""
    parser = Parser("train", ["DATA", "[MODEL]"], description=_DESCRIPTION, examples=_EXAMPLES)
    _add_problem_options(parser.add_argument_group("what is minimised"))
    _add_solver_options(parser.add_argument_group("how, and how far"))
    _add_file_options(parser.add_argument_group("files and messages"))
    parser.refuse_kernel_letters()
    return parser


def _add_problem_options(group):
    add = group.add_argument
    add("--task", choices=list(_TASKS), help="default: classification, or what --loss is for")
    add("--loss", choices=list(_LOSSES), help="default: squared_hinge, or epsilon_insensitive for regression")
    add("-c", "--C", type=reading.positive, default=1.0, help="weight of the losses (default: 1)")
    add("-p", "--epsilon", type=reading.non_negative, help="regression: residuals this small are free (default: 0)")
    add("-B", "--bias", type=reading.number, default=1.0, metavar="B",
        help="constant feature of the intercept, larger penalises it less; negative: none (default: 1)")  # fmt: skip
    add("--class-weight", type=reading.class_weight, action="append", metavar="LABEL:WEIGHT",
        help="factor of C for a class, may be repeated; also -wLABEL WEIGHT, or balanced")  # fmt: skip
    add("--multi-class", choices=["ovr", "crammer_singer"], help="default: ovr, one class against the rest")
    add("-s", type=reading.whole(0), dest="svm_type", metavar="TYPE", help="LIBSVM's: 0 (C-SVC) or 3 (epsilon-SVR)")
    add("-t", type=reading.whole(0), dest="kernel_type", metavar="KERNEL", help="LIBSVM's: 0 (linear)")


def _add_solver_options(group):
    add = group.add_argument
    add("-e", "--tol", type=reading.non_negative, default=1e-4, help="relative duality gap asked for (default: 1e-4)")
    add("--stopping", choices=["gap", "kkt"], default="gap", help="what --tol is compared with (default: gap)")
    add("--solver", choices=list(SOLVERS), default="auto", help="default: auto")
    add("--max-iter", type=reading.whole(1, also="none"), default=1000, metavar="N",
        help="most sweeps over the rows, or none for no limit (default: 1000)")  # fmt: skip
    add("--max-seconds", type=reading.positive, metavar="S", help="stop after about this time (default: no limit)")
    add("-j", "--jobs", type=reading.threads, default=1, metavar="N", help="threads; -1 for all cores (default: 1)")
    add("--seed", type=reading.whole(0), default=0, metavar="N", help="the same seed gives the same model (default: 0)")
    add("-v", type=reading.whole(2), dest="n_folds", metavar="K", help="K-fold cross-validation; no model is written")


def _add_file_options(group):
    add = group.add_argument
    add("--format", choices=["widemargin", "liblinear"], default="widemargin", help="of MODEL (default: widemargin)")
    add("--n-features", type=reading.whole(1), metavar="N", help="columns (default: the largest index in DATA)")
    add("--zero-based", choices=list(ZERO_BASED), default="auto",
        help="whether indices count from 0 (default: auto, yes if index 0 occurs)")  # fmt: skip
    add("--float32", action="store_true", help="keep the values in single precision: half the memory")
    add(
        "-q",
        "--quiet",
        action="store_true",
        help="no progress, notes or summary; warnings, errors and the result of -v stay",
    )
    add("--json", action="store_true", help="print one JSON object instead of text")


def make_model(parser, options):
    """Return the estimator that the options describe; refuse options that contradict each other or do not apply."""
    _apply_libsvm_types(parser, options)
    task = options.task or _LOSSES.get(options.loss, "classification")
    if options.loss and _LOSSES[options.loss] != task:
        parser.error(f"--loss {options.loss} is for {_LOSSES[options.loss]}, the task is {task}")
    for name, only in _ONLY_FOR.items():
        if getattr(options, name) is not None and task != only:
            parser.error(f"--{name.replace('_', '-')} is for {only}, the task is {task}; leave it out or change --task")
    if options.multi_class == "crammer_singer" and (options.loss or options.solver != "auto"):
        parser.error("--multi-class crammer_singer has a loss and a solver of its own; leave --loss and --solver out")
    if options.bias == 0:
        parser.error("--bias must not be 0: positive for an intercept, negative for none")
    parameters = {
        "C": options.C,
        "tol": options.tol,
        "stopping": options.stopping,
        "solver": options.solver,
        "max_iter": options.max_iter,
        "max_seconds": options.max_seconds,
        "n_jobs": options.jobs,
        "random_state": options.seed,
        "fit_intercept": options.bias > 0,
        "intercept_scaling": abs(options.bias),
        "class_weight": _join_weights(parser, options.class_weight),
        **{name: getattr(options, name) for name in ("loss", "epsilon", "multi_class")},
    }
    return _TASKS[task](
        **{name: value for name, value in parameters.items() if value is not None or name == "max_iter"}
    )


def _apply_libsvm_types(parser, options):
    """Turn -s and -t into a loss; refuse what LIBSVM would do with them and this release cannot."""
    if options.svm_type is None and options.kernel_type is None:
        return
    if options.kernel_type is None:
        parser.error(f"-s without -t means LIBSVM's RBF kernel; {_AVAILABLE}")
    loss = _LIBSVM_TYPES.get(options.svm_type or 0)
    if loss is None or options.kernel_type != 0:
        parser.error(f"-s {options.svm_type or 0} -t {options.kernel_type} is not in this release; {_AVAILABLE}")
    if options.loss not in (None, loss) or options.task not in (None, _LOSSES[loss]):
        parser.error(
            f"-s {options.svm_type or 0} means --task {_LOSSES[loss]} --loss {loss}; leave out one or the other"
        )
    options.loss = loss
    if _LOSSES[loss] == "regression" and options.epsilon is None:
        options.epsilon = _LIBSVM_EPSILON


def _join_weights(parser, weights):
    """Return class weights as the estimator takes them."""
    if weights is None:
        return None
    if "balanced" in weights:
        if len(weights) > 1:
            parser.error("--class-weight is either balanced or LABEL:WEIGHT for some labels, not both")
        return "balanced"
    return dict(weights)
