"""`msvmocas` of LIBOCAS 0.97: a linear classifier of all classes at once, by cutting planes."""

from widemargin.cli.programs import svmocas
from widemargin.cli.programs.output import print_lines, working
from widemargin.cli.programs.table import Program

_ONLY_OF_SVMOCAS = {"-C", "-b", "-p"}
OPTIONS = tuple(option for option in svmocas.OPTIONS if option.letter not in _ONLY_OF_SVMOCAS)


def run(arguments):
    """Train and write the model; return the exit status."""
    from widemargin.workflows.originals.msvmocas import learn_classes_file
    from widemargin.workflows.originals.ocas import OcasSettings

    quiet = arguments["-v"] < 1
    with working(quiet=quiet):
        lines = learn_classes_file(OcasSettings(**svmocas.common_settings(arguments)), *arguments.files)
    print_lines(lines, quiet=quiet)
    return 0


PROGRAM = Program(
    "msvmocas", "OCAS", "train a linear classifier of several classes by cutting planes", ("DATA", "MODEL"), OPTIONS,
    run,
)  # fmt: skip
