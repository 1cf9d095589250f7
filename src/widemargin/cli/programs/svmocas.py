"""`svmocas` of LIBOCAS 0.97: a linear classifier with hinge loss, by cutting planes."""

from widemargin.cli.programs.output import print_lines, working
from widemargin.cli.programs.table import Option, Program
from widemargin.cli.programs.values import non_negative, number, one_of, positive, whole

OPTIONS = (
    Option("-c", "1", "C of the sum of losses", "`C`", positive),
    Option("-C", "", "file with the C of each row", "`C` times `sample_weight`"),
    Option("-b", "0", "value of the constant feature whose weight is the intercept; 0 is none", "`intercept_scaling`",
           non_negative),
    Option("-n", "", "use the first n rows", "the same", whole(1), default_words="all"),
    Option("-m", "1", "0 plain cutting planes, 1 with line search", '`solver="svmperf"` or `solver="ocas"`',
           one_of("0", "1")),
    Option("-s", "2000", "largest number of planes", "`max_iter`", whole(1)),
    Option("-p", "1", "threads", "`n_jobs`", whole(1)),
    Option("-a", "0", "absolute tolerance: stop if primal - dual is at most this", "the same, by a callback",
           non_negative),
    Option("-r", "0.01", "relative tolerance: stop if primal - dual is at most this part of primal", "`tol`",
           non_negative),
    Option("-q", "0", "stop if the primal objective is at most this", "the same, by a callback", non_negative),
    Option("-t", "", "stop after so many seconds", "`max_seconds`", positive, default_words="no limit"),
    Option("-v", "1", "0 prints nothing", "the same", number),
)  # fmt: skip


def common_settings(arguments):
    """Return the settings that svmocas and msvmocas have in common, as arguments of OcasSettings."""
    return {
        "C": arguments["-c"],
        "n_rows": arguments["-n"],
        "plain": arguments["-m"] == 0,
        "max_planes": arguments["-s"],
        "absolute": arguments["-a"],
        "relative": arguments["-r"],
        "target": arguments["-q"],
        "max_seconds": arguments["-t"],
    }


def run(arguments):
    """Train and write the model; return the exit status."""
    from widemargin.workflows.originals.ocas import OcasSettings, learn_file

    settings = OcasSettings(
        costs=arguments["-C"], constant=arguments["-b"], n_jobs=arguments["-p"], **common_settings(arguments)
    )
    quiet = arguments["-v"] < 1
    with working(quiet=quiet):
        lines = learn_file(settings, *arguments.files)
    print_lines(lines, quiet=quiet)
    return 0


PROGRAM = Program("svmocas", "OCAS", "train a linear classifier by cutting planes", ("DATA", "MODEL"), OPTIONS, run)
