"""`predict` of LIBLINEAR."""

from widemargin.cli.programs.output import print_lines, working
from widemargin.cli.programs.svm_predict import DIGITS
from widemargin.cli.programs.table import Option, Program
from widemargin.cli.programs.values import one_of

OPTIONS = (
    Option("-b", "0", "1: write probabilities of logistic regression", "for models that have them", one_of("0", "1")),
    Option("-q", "", "print nothing", "the same", None),
)


def run(arguments):
    """Write the predictions and print their accuracy; return the exit status."""
    from widemargin.workflows.predict import predict_file

    with working(quiet=arguments["-q"]):
        predicted = predict_file(*arguments.files, probability=arguments["-b"] == 1, digits=DIGITS)
    print_lines((line.removesuffix(" (classification)") for line in predicted.lines), quiet=arguments["-q"])
    return 0


PROGRAM = Program("predict", "LIBLINEAR", "predict rows with a model", ("DATA", "MODEL", "OUTPUT"), OPTIONS, run)
