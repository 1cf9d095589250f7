"""`svm_perf_learn` of SVM-Perf 3.00: measures of all predictions, error rate and ROC area."""

from widemargin.cli.messages import UsageError
from widemargin.cli.programs.output import print_lines, working
from widemargin.cli.programs.svm_light_options import kernel_of
from widemargin.cli.programs.svm_struct_options import common_options
from widemargin.cli.programs.table import Option, Program
from widemargin.cli.programs.values import non_negative, one_of, positive, whole

_OWN_BASIS = "points of a basis are chosen as `MeasureSVC(basis=...)` does, from the training rows"
_NO_FILE_OF_BASIS = "points of a basis are chosen from the training rows; `MeasureSVC(basis=...)` takes an array"
_ROC_AREA = 10

OPTIONS = (
    Option("-c", "0.01", "C of a loss in percent", "`C`, translated: the printed objective is the original's",
           positive),
    Option("-l", "2", "loss: 0 zero/one of the whole file, 1 F1, 2 error rate, 3 PRBEP, 4 precision@k, 5 recall@k, "
           "10 ROC area", '`MeasureSVC`; 2 `LinearSVC(loss="hinge")`, 10 `ROCAreaSVC`',
           one_of("0", "1", "2", "3", "4", "5", "10")),
    Option("--b", "1", "value of the constant feature; 0 is no intercept", "`intercept_scaling`", non_negative),
    Option("--p", "0", "k of precision@k and recall@k as a fraction of the positive rows; 0 is 0.5 and 2", "the K of "
           "`measure`", non_negative),
    Option("-p", "1", "1 slack, 2 squared slack", "the same; 2 is solved by machines of type 1", one_of("1", "2")),
    Option("-o", "2", "1 slack rescaling, 2 margin rescaling", "the same; -l 10 has margin rescaling only",
           one_of("1", "2")),
    *common_options(tol="0.1", algorithm="9",
                    tol_words="of a loss in percent: a relative gap of e/100, which is sharper"),
    Option("--t", "0", "how a sparse kernel expansion is trained", read=whole(0), noted=_OWN_BASIS),
    Option("--i", "2", "how its basis is chosen", read=whole(0), noted=_OWN_BASIS),
    Option("--k", "500", "size of its basis, with -t 1 to 3", "`basis`; without it all rows, the exact machine",
           whole(1)),
    Option("--r", "0", "points that are tried", read=whole(0), noted=_OWN_BASIS),
    Option("--f", "", "file of its basis", read=str, default_words="training file", refused={"*": _NO_FILE_OF_BASIS}),
    Option("--s", "1", "1: leave rows out that need no look", read=one_of("0", "1"),
           noted="the solver decides by itself"),
)  # fmt: skip


def run(arguments):
    """Train and write the model; return the exit status."""
    from widemargin.workflows.originals.svm_struct import PerfSettings, StructKernel, learn_measure_file

    if arguments["-o"] == 1 and arguments["-l"] == _ROC_AREA:
        raise UsageError("-o 1 is not available with -l 10: ROC area has margin rescaling, -o 2")
    if "--k" in arguments.given and arguments["-t"] == 0:
        raise UsageError("--k is the size of a basis of a kernel, and needs -t 1, -t 2 or -t 3")
    settings = PerfSettings(
        C=arguments["-c"],
        loss=arguments["-l"],
        constant=arguments["--b"],
        fraction=arguments["--p"],
        tol=arguments["-e"],
        plain=arguments["-w"] != 9,
        squared=arguments["-p"] == 2,
        rescaled=arguments["-o"] == 1,
        kernel=StructKernel(*kernel_of(arguments), arguments.given.get("--k")),
    )
    data, model = arguments.files
    quiet = arguments["-v"] < 1
    with working(quiet=quiet):
        learned = learn_measure_file(settings, data, model or "svm_perf_model")
    print_lines(learned.lines, quiet=quiet)
    return 0


PROGRAM = Program("svm_perf_learn", "SVM-Perf", "train a classifier for a measure", ("DATA", "[MODEL]"), OPTIONS, run)
