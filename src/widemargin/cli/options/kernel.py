"""Options of kernel machines, LIBSVM's letters and their long names, and the estimator that they describe.

LIBSVM ignores an option that does not apply to the chosen formulation or kernel. Here it is a usage error, and the
message says what the option applies to.
"""

import argparse

from widemargin._runtime.words import listed
from widemargin.cli.options import parsing, penalty, solver_names
from widemargin.cli.options.solver_names import BASIS_CHOICES
from widemargin.models.kernel.machines import KERNELS, MACHINES

_KERNEL_OPTIONS = (  # any of these selects a kernel machine
    "svm_type", "kernel_type", "kernel", "nu", "gamma", "degree", "coef0",
    "cache_size", "probability", "calibration", "shrinking", "working_set", "basis", "basis_choice",
)  # fmt: skip
_SVM_TYPE_OF_TASK = {"classification": (0, 1), "regression": (3, 4), "oneclass": (2, 2)}  # -s without and with nu
_DEFAULTS = {  # LIBSVM's
    "C": 1.0,
    "nu": 0.5,
    "epsilon": 0.1,
    "gamma": "auto",
    "coef0": 0.0,
    "degree": 3,
    "tol": 1e-3,
    "cache_size": 100.0,
    "shrinking": True,
}
_COMMON_OPTIONS = ("tol", "stopping", "cache_size", "shrinking", "solver", "working_set", "max_seconds", "checkpoint")
_BASIS_OPTIONS = ("basis", "basis_choice", "max_memory")
OPTIONS_OF_BASIS = ("kernel_type", "kernel", "gamma", "degree", "coef0", "basis", "basis_choice")
"""Options of the tasks of cutting planes with a kernel."""
_EXACT_ONLY = ("cache_size", "shrinking", "working_set", "stopping")  # that a machine on a basis does not have
_LINEAR_ONLY = (*penalty.OPTIONS, "loss", "bias", "multi_class", "penalize_intercept", "scaling")


LIBLINEAR_TYPES = {  # equivalents of LIBLINEAR's -s, for the numbers that LIBSVM uses too
    0: "--loss log_loss",
    1: "--loss squared_hinge",
    2: "--loss squared_hinge",
    3: "--loss hinge",
    4: "--multi-class crammer_singer",
}
LOGISTIC, LINEAR_ONE_CLASS = 7, 21  # LIBLINEAR's -s of linear machines, which LIBSVM's numbers leave free
_LIBLINEAR_ONLY = {  # and for the numbers that LIBSVM does not use
    11: "use --loss squared_epsilon_insensitive",
    12: "use --loss squared_epsilon_insensitive",
    13: "use --loss epsilon_insensitive",
}


def add_kernel_options(add):
    """Add the options of kernel machines; `add` is the `add_argument` of a parser or group."""
    add("-s", type=svm_type, dest="svm_type", metavar="TYPE",
        help="LIBSVM's: 0 C-SVC, 1 nu-SVC, 2 one-class, 3 epsilon-SVR, 4 nu-SVR (default: 0, or what --task and "
        "--nu say); LIBLINEAR's types are --loss, --multi-class and --task, but for 5, --penalty l1, 6, the same with "
        "--loss log_loss, 7, --loss log_loss, and 21, linear one-class")  # fmt: skip
    add("-t", type=int, choices=range(len(KERNELS)), dest="kernel_type", metavar="KERNEL",
        help="LIBSVM's: 0 linear, 1 poly, 2 rbf, 3 sigmoid, 4 precomputed (default: 2)")  # fmt: skip
    add("--kernel", choices=list(KERNELS), help="the same by name")
    add("-g", "--gamma", type=parsing.gamma, help="poly, rbf, sigmoid: factor of <x, z> or |x - z|²; auto or 0 is "
        "1/features, scale also divides by the variance (default: auto)")  # fmt: skip
    add("-d", "--degree", type=parsing.whole(0), help="poly: (gamma <x, z> + coef0)^degree (default: 3)")
    add("-r", "--coef0", type=parsing.number, help="poly, sigmoid: tanh(gamma <x, z> + coef0) (default: 0)")
    add("-n", "--nu", type=parsing.fraction, help="nu-SVC, one-class, nu-SVR: lower bound of the fraction of "
        "support vectors (default: 0.5)")  # fmt: skip
    add("-b", type=parsing.switch, dest="probability", metavar="0|1", help="LIBSVM's: 1 is --probability")
    add("--probability", action="store_true", help="also fit LIBSVM's probabilities, for predict -b 1: "
        "six fits, or one with --basis")  # fmt: skip
    add("--calibration", choices=("sigmoid", "isotonic"), help="classification: also fit probabilities, for "
        "predict -b 1, from one fit")  # fmt: skip
    add("-m", "--cache-size", type=parsing.positive, metavar="MB", help="memory for kernel rows (default: 100)")
    add("--shrinking", type=parsing.yes_or_no, metavar="yes|no",
        help="temporarily remove dual variables at bound from the problem; also -h 0|1 (default: yes)")  # fmt: skip
    add("--working-set", type=parsing.whole(2), metavar="Q", help="dual variables that svmlight optimises "
        "at a time (default: chosen by the solver)")  # fmt: skip
    add("--basis", type=parsing.basis, metavar="M|auto", help="C-SVC, epsilon-SVR: functions of M basis points "
        "instead of the exact machine, for many rows and fast predictions; rank, ordinal, rocarea, measure: needed "
        "with a kernel; auto finds M")  # fmt: skip
    add("--basis-choice", choices=BASIS_CHOICES, help="how the points are chosen from the rows (default: auto, which "
        "is kmeans, or uniform for sparse rows)")  # fmt: skip


def svm_type(text):
    """Return a number of LIBSVM's -s, or 5, 6, 7 or 21; for others of LIBLINEAR's, the error names the option."""
    number = parsing.whole(0)(text)
    if number in (LOGISTIC, LINEAR_ONE_CLASS, *penalty.LIBLINEAR_TYPES):
        return number
    if number in _LIBLINEAR_ONLY:
        raise argparse.ArgumentTypeError(
            f"-s is LIBSVM's here, from 0 to {len(MACHINES) - 1}, and {number} is a type of LIBLINEAR: "
            f"{_LIBLINEAR_ONLY[number]}"
        )
    if number >= len(MACHINES):
        types = ", ".join(f"{k} {machine.name}" for k, machine in enumerate(MACHINES))
        raise argparse.ArgumentTypeError(f"must be one of LIBSVM's types, {types}; got {text}")
    return number


def selecting_option(parser, options):
    """Return the first option, as it is written, that selects a kernel machine; None if there is none."""
    if options.task == "oneclass":
        return "--task oneclass"
    return next((parser.name(dest) for dest in _KERNEL_OPTIONS if hasattr(options, dest)), None)


def make_kernel_model(parser, options, selecting):
    """Return the estimator that the options describe; a usage error if options contradict each other or do not apply.

    Parameters
    ----------
    parser : Parser
        Provides the names of options, and raises usage errors.
    options : Namespace
        The parsed options; options of estimators that were not given are absent.
    selecting : str
        The option that selects a kernel machine, as written.
    """
    linear = [parser.name(dest) for dest in _LINEAR_ONLY if hasattr(options, dest)]
    if options.format in ("liblinear", "svmlight"):
        linear.append(f"--format {options.format}")
    if vars(options).get("solver", "auto") not in solver_names.KERNEL:
        linear.append(f"--solver {options.solver}")
    if linear:
        parser.error(
            f"{linear[0]} is for linear machines, but {selecting} asks for a kernel machine{_other_type(options)}; "
            "leave one of them out"
        )
    machine, kernel = _choose_machine(parser, options), _choose_kernel(parser, options)
    _check_numbers(parser, options)
    _check_basis(parser, options, machine)
    takes = {*machine.takes, *KERNELS[kernel], *_COMMON_OPTIONS}
    if hasattr(options, "basis"):
        takes = (takes | set(_BASIS_OPTIONS)) - set(_EXACT_ONLY)
    given = {**_DEFAULTS, **vars(options)}
    parameters = {dest: given[dest] for dest in takes if dest in given}
    if "class_weight" in parameters:
        parameters["class_weight"] = parsing.join_weights(parser, parameters["class_weight"])
    parameters |= {"kernel": kernel, "n_jobs": options.jobs, "max_iter": given.get("max_iter") or -1}
    if given.get("probability"):
        if "calibration" in given:
            parser.error("--calibration and -b 1 are two ways to fit probabilities; leave one of them out")
        parameters["probability"] = True if hasattr(options, "basis") else "libsvm"
    if "random_state" in machine.estimator().get_params():
        parameters["random_state"] = options.seed
    return machine.estimator(**parameters)


def basis_parameters(parser, options):
    """Return the parameters of a kernel on a basis, for the tasks of cutting planes; none if they stay linear.

    The kernel is rbf by default if an option of kernels is given. A usage error for options that do not apply.
    """
    if not any(hasattr(options, dest) for dest in OPTIONS_OF_BASIS):
        return {}
    kernel = _choose_kernel(parser, options)
    if kernel == "precomputed":
        parser.error(f"a precomputed kernel is not for --task {options.task}; leave it out")
    if kernel == "linear":
        for dest in ("basis", "basis_choice"):
            if hasattr(options, dest):
                parser.error(f"{parser.name(dest)} is for kernels other than linear; leave it out")
        return {}
    if not hasattr(options, "basis"):
        parser.error(f"--task {options.task} with a kernel needs --basis, such as --basis 1000 or --basis auto")
    if hasattr(options, "scaling"):
        parser.error("--scaling is for linear machines; leave it out, and scale the rows by widemargin scale")
    if options.format != "widemargin":
        parser.error(f"--format {options.format} has no place for a kernel with --task {options.task}; leave it out")
    given = {**_DEFAULTS, **vars(options)}
    return {"kernel": kernel} | {dest: given[dest] for dest in (*KERNELS[kernel], *_BASIS_OPTIONS[:2]) if dest in given}


def kernel_hint(options):
    """Return a hint on LIBLINEAR's -s if -s is the only option of this group, or ""."""
    others = any(hasattr(options, dest) for dest in _KERNEL_OPTIONS if dest != "svm_type")
    return "" if others else _other_type(options)


def _other_type(options):
    """Return, in brackets, the equivalent of LIBLINEAR's type with the number of -s; "" if there is none."""
    number = getattr(options, "svm_type", None)
    return f" (LIBLINEAR's -s {number} is {LIBLINEAR_TYPES[number]})" if number in LIBLINEAR_TYPES else ""


def _choose_machine(parser, options):
    """Return the formulation that -s, or --task and --nu, select; a usage error for options of other formulations."""
    number = getattr(options, "svm_type", None)
    if number is None:
        # With LIBSVM's -t, the default of -s is LIBSVM's too, to which --nu does not apply.
        with_nu = hasattr(options, "nu") and not hasattr(options, "kernel_type")
        number = _SVM_TYPE_OF_TASK[options.task or "classification"][with_nu]
    machine = MACHINES[number]
    if options.task not in (None, machine.task):
        parser.error(f"-s {number} means --task {machine.task}, got --task {options.task}; leave one of them out")
    for dest in ("C", "nu", "epsilon", "class_weight", "calibration"):
        if hasattr(options, dest) and dest not in machine.takes:
            others = [f"{other.name} (-s {k})" for k, other in enumerate(MACHINES) if dest in other.takes]
            parser.error(
                f"{parser.name(dest)} is for {listed(others, str)}, this is {machine.name} (-s {number})"
                f"{_other_type(options)}; leave it out or change -s"
            )
    return machine


def _choose_kernel(parser, options):
    """Return the name of the kernel; a usage error for options of other kernels."""
    by_letter = list(KERNELS)[options.kernel_type] if hasattr(options, "kernel_type") else None
    kernel = getattr(options, "kernel", by_letter or "rbf")
    if by_letter not in (None, kernel):
        parser.error(f"-t {options.kernel_type} means --kernel {by_letter}, got {kernel}; leave one of them out")
    for dest in ("gamma", "coef0", "degree"):
        if hasattr(options, dest) and dest not in KERNELS[kernel]:
            others = [f"{name} (-t {k})" for k, name in enumerate(KERNELS) if dest in KERNELS[name]]
            parser.error(
                f"{parser.name(dest)} is for the kernel {listed(others, str)}, this one is {kernel} "
                f"(-t {list(KERNELS).index(kernel)}); leave it out or change the kernel"
            )
    if kernel == "precomputed":
        for name, given in (("--zero-based", options.zero_based != "auto"), ("--n-features", options.n_features)):
            if given:
                parser.error(f"{name} is for features, but a precomputed kernel has rows `0:serial 1:K(x, x1) ...`")
    return kernel


def _check_basis(parser, options, machine):
    """Raise a usage error if options of a machine on a basis, or of the exact machine, do not apply."""
    if not hasattr(options, "basis"):
        for dest in ("basis_choice", "max_memory"):
            if hasattr(options, dest):
                parser.error(f"{parser.name(dest)} of a kernel machine needs --basis, such as --basis 1000")
        return
    if "basis" not in machine.takes:
        parser.error(f"--basis is for {listed(_with_basis(), str)}, this is {machine.name}; leave it out or change -s")
    for dest in _EXACT_ONLY:
        if hasattr(options, dest):
            parser.error(f"{parser.name(dest)} is for the exact machine; leave it out, or --basis")


def _with_basis():
    """Return the machines that take a basis, as they are written."""
    return [f"{machine.name} (-s {k})" for k, machine in enumerate(MACHINES) if "basis" in machine.takes]


def _check_numbers(parser, options):
    if getattr(options, "tol", None) == 0:
        parser.error(f"{parser.name('tol')} must be > 0 for kernel machines, got 0")
    if getattr(options, "stopping", None) == "violation":
        parser.error("--stopping violation is svmperf's criterion; kernel machines take gap or kkt")
    if getattr(options, "solver", None) == "smo" and hasattr(options, "working_set"):
        parser.error("--working-set is for --solver svmlight; smo optimises two dual variables at a time")
