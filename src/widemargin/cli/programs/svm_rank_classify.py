"""`svm_rank_classify` of SVM-rank: scores of rows, and the pairs that they swap."""

from widemargin.cli.programs.output import print_lines, working
from widemargin.cli.programs.table import Option, Program
from widemargin.cli.programs.values import number

OPTIONS = (Option("-v", "2", "0 prints nothing", "the same", number),)


def run(arguments):
    """Write the scores and print the swapped pairs; return the exit status."""
    from widemargin.workflows.originals.svm_struct import rank_file

    data, model, output = arguments.files
    with working(quiet=arguments["-v"] < 1):
        ranked = rank_file(data, model, output or "svm_struct_predictions")
    print_lines(ranked.lines, quiet=arguments["-v"] < 1)
    return 0


PROGRAM = Program(
    "svm_rank_classify", "SVM-rank", "score rows and count swapped pairs", ("DATA", "MODEL", "[OUTPUT]"), OPTIONS, run
)
