"""`svm-scale` of LIBSVM: features scaled to a range, on standard output."""

from widemargin.cli.messages import UsageError
from widemargin.cli.programs.output import working
from widemargin.cli.programs.table import Option, Program
from widemargin.cli.programs.values import number, numbers

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
    Option("-r", "", "file of ranges that are applied", "`restore`"),
)


def run(arguments):
    """Write the scaled rows to standard output; return the exit status."""
    from widemargin.workflows.scale import scale_file

    restore = arguments["-r"]
    limits = {} if restore else {"lower": arguments["-l"], "upper": arguments["-u"], "labels": arguments["-y"]}
    if restore and {"-l", "-u", "-y", "-s"} & arguments.given.keys():
        raise UsageError("-r applies the ranges and limits of a file; leave -l, -u, -y and -s out")
    with working():
        scale_file(arguments.files[0], "-", save=arguments["-s"], restore=restore, **limits)
    return 0


PROGRAM = Program("svm-scale", "LIBSVM", "scale the features of a file", ("DATA",), OPTIONS, run)
