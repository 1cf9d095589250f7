"""`svm_perf_classify` of SVM-Perf: scores of rows, and measures of them."""

from widemargin.cli.programs.output import print_lines, working
from widemargin.cli.programs.table import Option, Program
from widemargin.cli.programs.values import number, one_of

OPTIONS = (
    Option("-v", "2", "0 prints nothing", "the same", number),
    Option("--d", "1", "1: print all measures", "1", one_of("0", "1"),
           refused={"0": "all measures are always printed; -v 0 prints nothing"}),
)  # fmt: skip


def run(arguments):
    """Write the scores and print measures; return the exit status."""
    from widemargin.workflows.originals.svm_struct import measure_file

    data, model, output = arguments.files
    with working(quiet=arguments["-v"] < 1):
        measured = measure_file(data, model, output or "svm_perf_predictions")
    print_lines(measured.lines, quiet=arguments["-v"] < 1)
    return 0


PROGRAM = Program(
    "svm_perf_classify", "SVM-Perf", "score and measure rows", ("DATA", "MODEL", "[OUTPUT]"), OPTIONS, run
)
