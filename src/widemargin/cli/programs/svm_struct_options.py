"""Options that svm_perf_learn and svm_rank_learn share."""

from widemargin.cli.programs.svm_light_options import KERNEL_OPTIONS
from widemargin.cli.programs.table import Option
from widemargin.cli.programs.values import number, one_of, positive, whole

_NO_KERNELS = (
    "there is no kernel machine of whole labellings; `MeasureSVC(kernel=..., basis=...)` has kernels on a basis"
)
_OWN_PLANES = "the cutting planes here keep what they need"
_NO_INNER_QP = "the inner problem has no such setting here"
_LINEAR_ONLY = dict.fromkeys(("1", "2", "3", "4"), _NO_KERNELS)

# The kernel is linear, so that the parameters of others have nothing to apply to.
_KERNELS = (
    Option("-t", "0", KERNEL_OPTIONS[0].meaning, "0, linear", one_of("0", "1", "2", "3", "4"), refused=_LINEAR_ONLY),
    *(
        Option(one.letter, one.default, one.meaning, read=one.read, default_words=one.default_words,
               refused={"*": _NO_KERNELS})
        for one in KERNEL_OPTIONS[1:]
    ),
)  # fmt: skip


def common_options(*, tol, algorithm, tol_words):
    """Return the options of both programs; `tol` and `algorithm` are the defaults of -e and -w."""
    return (
        Option("-p", "1", "1 slacks, 2 squared slacks", "1", one_of("1", "2"),
               refused={"2": "squared slacks of whole labellings are not available"}),
        Option("-o", "2", "1 slack rescaling, 2 margin rescaling", "2", one_of("1", "2"),
               refused={"1": "only the loss is added to the margin, it does not rescale the slack"}),
        Option("-w", algorithm, "algorithm: 0 to 4 cutting planes, 9 the program's special one",
               "9 `solver=\"ocas\"` or the linear solvers, 0 to 4 `solver=\"svmperf\"`; the same optimum",
               one_of("0", "1", "2", "3", "4", "9")),
        Option("-e", tol, "tolerance", tol_words, positive),
        Option("-k", "100", "constraints that are added before the problem is solved again (-w 0, 1)", read=whole(1),
               noted=_OWN_PLANES),
        Option("-f", "5", "constraints that are kept for each row (-w 4)", read=whole(1), noted=_OWN_PLANES),
        Option("-b", "100", "percentage of the constraints that are refreshed (-w 4)", read=number, noted=_OWN_PLANES),
        Option("-n", "", "new variables in each working set", read=whole(2), default_words="q", noted=_NO_INNER_QP),
        Option("-m", "40", "megabytes of kernel values that are kept", read=positive,
               noted="a linear machine has none"),
        Option("-h", "100", "iterations before a variable is left out", read=whole(1), noted=_NO_INNER_QP),
        Option("-#", "100000", "iterations without progress", read=whole(1), noted=_NO_INNER_QP),
        *_KERNELS,
        Option("-a", "", "file of dual variables", read=str,
               refused={"*": "the dual variables are those of cutting planes, not of rows"}),
        Option("-v", "1", "0 prints nothing", "the same", number),
        Option("-y", "0", "verbosity of the inner problem", read=number, noted="it prints nothing here"),
    )  # fmt: skip
