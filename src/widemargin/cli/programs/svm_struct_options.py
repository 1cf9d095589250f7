"""Options that svm_perf_learn and svm_rank_learn share.

With a kernel, scores are those of a function of basis points; all rows as basis points are the exact machine.
"""

from widemargin.cli.programs.svm_light_options import KERNEL_OPTIONS
from widemargin.cli.programs.table import Option
from widemargin.cli.programs.values import number, one_of, positive, whole

_OWN_PLANES = "the cutting planes here keep what they need"
_NO_INNER_QP = "the inner problem has no such setting here"


def common_options(*, tol, algorithm, tol_words):
    """Return the options of both programs; `tol` and `algorithm` are the defaults of -e and -w."""
    return (
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
               noted="the kernel values of basis points are kept as memory allows"),
        Option("-h", "100", "iterations before a variable is left out", read=whole(1), noted=_NO_INNER_QP),
        Option("-#", "100000", "iterations without progress", read=whole(1), noted=_NO_INNER_QP),
        *KERNEL_OPTIONS,
        Option("-a", "", "file of dual variables", read=str,
               refused={"*": "the dual variables are those of cutting planes, not of rows"}),
        Option("-v", "1", "0 prints nothing", "the same", number),
        Option("-y", "0", "verbosity of the inner problem", read=number, noted="it prints nothing here"),
    )  # fmt: skip
