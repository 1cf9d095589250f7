"""`svm-train` of LIBSVM: the five kernel machines, and cross-validation."""

from widemargin.cli.messages import say
from widemargin.cli.programs.output import print_lines, working
from widemargin.cli.programs.table import Option, Program
from widemargin.cli.programs.values import non_negative, number, one_of, positive, whole

_C_SVC = 0

OPTIONS = (
    Option("-s", "0", "type: 0 C-SVC, 1 nu-SVC, 2 one-class, 3 epsilon-SVR, 4 nu-SVR",
           "`SVC`, `NuSVC`, `OneClassSVM`, `SVR`, `NuSVR`", one_of("0", "1", "2", "3", "4")),
    Option("-t", "2", "kernel: 0 linear, 1 polynomial, 2 rbf, 3 sigmoid, 4 precomputed", "`kernel`",
           one_of("0", "1", "2", "3", "4")),
    Option("-d", "3", "degree of the polynomial kernel", "`degree`", whole(0)),
    Option("-g", "0", "gamma of the kernel", "`gamma`; 0 is 1 / features", non_negative, default_words="1 / features"),
    Option("-r", "0", "constant of the polynomial and sigmoid kernel", "`coef0`", number),
    Option("-c", "1", "C of C-SVC and of regression", "`C`", positive),
    Option("-n", "0.5", "nu of nu-SVC, one-class and nu-SVR", "`nu`", positive),
    Option("-p", "0.1", "half the width of the tube of epsilon-SVR", "`epsilon`", non_negative),
    Option("-m", "100", "megabytes of kernel values that are kept", "`cache_size`", positive),
    Option("-e", "0.001", "tolerance of the optimality conditions", "`tol`", positive),
    Option("-h", "1", "shrinking, 0 or 1", "`shrinking`", one_of("0", "1")),
    Option("-b", "0", "1: fit probabilities", '`probability="libsvm"`', one_of("0", "1")),
    Option("-wi", "1", "factor of C for class i, of C-SVC", "`class_weight` of `SVC`", positive),
    Option("-v", "", "cross-validate with so many folds, and write no model",
           "the same; folds are stratified, and the same each time", whole(2)),
    Option("-q", "", "print nothing", "the same", None),
)  # fmt: skip


def run(arguments):
    """Train and write the model, or cross-validate; return the exit status."""
    from widemargin.workflows.originals.libsvm import cross_validated_lines, trained_lines

    data, output = arguments.files
    model, quiet = _estimator(arguments), arguments["-q"]
    with working(quiet=quiet):
        if arguments["-v"] is not None:
            lines, quiet = cross_validated_lines(model, data, arguments["-v"]), False
        else:
            lines = trained_lines(model, data, output)
    print_lines(lines, quiet=quiet)
    return 0


def _estimator(arguments):
    """Return the estimator that the options describe; of options that do not apply to it, nothing is taken."""
    from widemargin.models.kernel.machines import KERNELS, MACHINES

    machine, kernel = MACHINES[arguments["-s"]], list(KERNELS)[arguments["-t"]]
    numbers = {"degree": arguments["-d"], "gamma": arguments["-g"] or "auto", "coef0": arguments["-r"]}
    of_machine = {"C": arguments["-c"], "nu": arguments["-n"], "epsilon": arguments["-p"]}
    if arguments["-s"] == _C_SVC:
        of_machine["class_weight"] = arguments.by_label or None
    else:
        for label in arguments.by_label:
            say("note", f"-w{label} has no effect with -s {arguments['-s']}: weights of classes are for C-SVC")
    options = {name: numbers[name] for name in KERNELS[kernel]}
    options |= {name: value for name, value in of_machine.items() if name in machine.takes}
    if arguments["-b"]:
        options["probability"] = "libsvm" if machine.task == "classification" else True
    limits = {"cache_size": arguments["-m"], "tol": arguments["-e"], "shrinking": arguments["-h"] == 1}
    return machine.estimator(kernel=kernel, **options, **limits)


PROGRAM = Program("svm-train", "LIBSVM", "train a kernel machine of LIBSVM", ("DATA", "[MODEL]"), OPTIONS, run)
