"""`svm-scale` of LIBSVM: features scaled to a range, on standard output."""

from widemargin.cli.messages import UsageError, say
from widemargin.cli.programs.output import working
from widemargin.cli.programs.table import Option, Program
from widemargin.cli.programs.values import number, numbers

_DIGITS = 6  # of the values that svm-scale writes

OPTIONS = (
    Option("-l", "-1", "lower limit of the scaled features", "`lower` of `scale_file`", number),
    Option("-u", "1", "upper limit of the scaled features", "`upper`", number),
    Option(
        "-y",
        "",
        "lower and upper limit of the scaled labels",
        "`labels`",
        numbers,
        default_words="not scaled",
        n_words=2,
    ),
    Option("-s", "", "file in which the ranges are saved", "`save`"),
    Option("-r", "", "file of ranges that are applied, with the limits in it", "`restore`"),
)


def run(arguments):
    """Write the scaled rows to standard output; return the exit status."""
    from widemargin.workflows.scale import scale_file

    restore = arguments["-r"]
    limits = {} if restore else {"lower": arguments["-l"], "upper": arguments["-u"], "labels": arguments["-y"]}
    if restore and arguments["-s"]:
        raise UsageError("-r applies the ranges of a file and -s saves those of the rows; leave one of them out")
    for letter in ("-l", "-u", "-y"):
        if restore and letter in arguments.given:
            say("note", f"{letter} has no effect with -r: the limits are those of {restore}")
    with working():
        scale_file(arguments.files[0], "-", save=arguments["-s"], restore=restore, digits=_DIGITS, **limits)
    return 0


PROGRAM = Program("svm-scale", "LIBSVM", "scale the features of a file", ("DATA",), OPTIONS, run)
