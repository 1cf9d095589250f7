"""`linclassif` of LIBOCAS 0.97: labels or scores of rows by a linear model of svmocas or msvmocas."""

from widemargin.cli.programs.output import print_lines, working
from widemargin.cli.programs.table import Option, Program
from widemargin.cli.programs.values import number, one_of

_DONE, _FAILED = 1, 0  # exit status, the other way round than usual, which scripts around the original rely on

OPTIONS = (
    Option("-e", "", "print the error, and of each class", "the same", None),
    Option("-o", "", "file of the output", "the same", default_words="standard output"),
    Option("-t", "0", "0 labels, 1 decision values", "the same", one_of("0", "1")),
    Option("-v", "0", "verbosity", read=number, noted="it prints what is asked for, nothing else"),
)


def run(arguments):
    """Write labels or scores, and print the error; return the exit status, which is 1 as that of the original."""
    from widemargin.workflows.originals.ocas import classify_file

    data, model = arguments.files
    with working(quiet=True):
        lines = classify_file(data, model, arguments["-o"] or "-", with_scores=arguments["-t"] == 1)
    print_lines(lines, quiet=not arguments["-e"])
    return _DONE


PROGRAM = Program(
    "linclassif", "OCAS", "classify rows by a linear model", ("DATA", "MODEL"), OPTIONS, run, failure_status=_FAILED
)
