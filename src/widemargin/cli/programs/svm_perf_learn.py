"""`svm_perf_learn` of SVM-Perf 3.00: measures of all predictions, error rate and ROC area."""

from widemargin.cli.programs.output import print_lines, working
from widemargin.cli.programs.svm_struct_options import common_options
from widemargin.cli.programs.table import Option, Program
from widemargin.cli.programs.values import non_negative, one_of, positive, whole

_NO_SPARSE_KERNELS = "sparse kernel expansions are `MeasureSVC(kernel=..., basis=...)` here, in Python"

OPTIONS = (
    Option("-c", "0.01", "C of a loss in percent", "`C`, translated: the printed objective is the original's",
           positive),
    Option("-l", "2", "loss: 0 zero/one of the whole file, 1 F1, 2 error rate, 3 PRBEP, 4 precision@k, 5 recall@k, "
           "10 ROC area", '`MeasureSVC`; 2 `LinearSVC(loss="hinge")`, 10 `ROCAreaSVC`',
           one_of("0", "1", "2", "3", "4", "5", "10")),
    Option("--b", "1", "value of the constant feature; 0 is no intercept", "`intercept_scaling`", non_negative),
    Option("--p", "0", "k of precision@k and recall@k as a fraction of the positive rows; 0 is 0.5 and 2", "the K of "
           "`measure`", non_negative),
    *common_options(tol="0.1", algorithm="9",
                    tol_words="of a loss in percent: a relative gap of e/100, which is sharper"),
    Option("--t", "0", "sparse kernel expansion", read=whole(0), refused={"*": _NO_SPARSE_KERNELS}),
    Option("--i", "2", "how its basis is chosen", read=whole(0), refused={"*": _NO_SPARSE_KERNELS}),
    Option("--k", "500", "size of its basis", read=whole(1), refused={"*": _NO_SPARSE_KERNELS}),
    Option("--r", "0", "points that are tried", read=whole(0), refused={"*": _NO_SPARSE_KERNELS}),
    Option("--f", "", "file of its basis", read=str, default_words="training file", refused={"*": _NO_SPARSE_KERNELS}),
    Option("--s", "1", "1: leave rows out that need no look", read=one_of("0", "1"),
           noted="the solver decides by itself"),
)  # fmt: skip


def run(arguments):
    """Train and write the model; return the exit status."""
    from widemargin.workflows.originals.svm_struct import PerfSettings, learn_measure_file

    settings = PerfSettings(
        C=arguments["-c"],
        loss=arguments["-l"],
        constant=arguments["--b"],
        fraction=arguments["--p"],
        tol=arguments["-e"],
        plain=arguments["-w"] != 9,
    )
    data, model = arguments.files
    quiet = arguments["-v"] < 1
    with working(quiet=quiet):
        learned = learn_measure_file(settings, data, model or "svm_perf_model")
    print_lines(learned.lines, quiet=quiet)
    return 0


PROGRAM = Program("svm_perf_learn", "SVM-Perf", "train a classifier for a measure", ("DATA", "[MODEL]"), OPTIONS, run)
