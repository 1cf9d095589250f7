"""`svm_classify` of SVM-light: the decision values of rows."""

from widemargin.cli.programs.output import print_lines, working
from widemargin.cli.programs.table import Option, Program
from widemargin.cli.programs.values import number, one_of

OPTIONS = (
    Option("-v", "2", "0 prints nothing", "the same", number),
    Option("-f", "1", "1 writes decision values, 0 lines `value:+1 -value:-1`", "the same", one_of("0", "1")),
)


def run(arguments):
    """Write the decision values and print the accuracy; return the exit status."""
    from widemargin.workflows.originals.svm_light import classify_file

    data, model, output = arguments.files
    with working(quiet=arguments["-v"] < 1):
        classified = classify_file(data, model, output or "svm_predictions", with_signs=arguments["-f"] == 0)
    print_lines(classified.lines, quiet=arguments["-v"] < 1)
    return 0


PROGRAM = Program(
    "svm_classify", "SVM-light", "score rows with a model of SVM-light", ("DATA", "MODEL", "[OUTPUT]"), OPTIONS, run
)
