"""`linclassif` of LIBOCAS 0.97: labels or scores of rows by a linear model of svmocas or msvmocas."""

from widemargin.cli.programs.output import print_lines, working
from widemargin.cli.programs.table import Option, Program
from widemargin.cli.programs.values import number, one_of

OPTIONS = (
    Option("-e", "", "print the error, and of each class", "the same", None),
    Option("-o", "", "file of the output", "the same", default_words="standard output"),
    Option("-t", "0", "0 labels, 1 decision values", "the same", one_of("0", "1")),
    Option("-v", "1", "0 prints nothing but what is asked for", "the same", number),
)


def run(arguments):
    """Write labels or scores, and print the error; return the exit status."""
    from widemargin.workflows.originals.ocas import classify_file

    data, model = arguments.files
    with working(quiet=arguments["-v"] < 1):
        lines = classify_file(
            data, model, None if arguments["-e"] and arguments["-o"] is None else arguments["-o"] or "-",
            with_scores=arguments["-t"] == 1,
        )  # fmt: skip
    print_lines(lines, quiet=not arguments["-e"])
    return 0


PROGRAM = Program("linclassif", "OCAS", "classify rows by a linear model", ("DATA", "MODEL"), OPTIONS, run)
