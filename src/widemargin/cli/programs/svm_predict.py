"""`svm-predict` of LIBSVM."""

from widemargin.cli.programs.output import print_lines, working
from widemargin.cli.programs.table import Option, Program
from widemargin.cli.programs.values import one_of

DIGITS = 6  # of probabilities

OPTIONS = (
    Option("-b", "0", "1: write probabilities", "the same, with six digits", one_of("0", "1")),
    Option("-q", "", "print nothing", "the same", None),
)


def run(arguments):
    """Write the predictions and print their accuracy; return the exit status."""
    from widemargin.workflows.predict import predict_file

    with working(quiet=arguments["-q"]):
        predicted = predict_file(*arguments.files, probability=arguments["-b"] == 1, digits=DIGITS)
    print_lines(predicted.lines, quiet=arguments["-q"])
    return 0


PROGRAM = Program("svm-predict", "LIBSVM", "predict rows with a model", ("DATA", "MODEL", "OUTPUT"), OPTIONS, run)
