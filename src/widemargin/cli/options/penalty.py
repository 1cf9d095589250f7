"""The options --penalty and --l1-ratio of linear classification, and LIBLINEAR's -s 5, which is --penalty l1."""

from widemargin.cli.options import parsing

LIBLINEAR_TYPE = 5  # LIBLINEAR's -s of the squared hinge with an L1 penalty
OPTIONS = ("penalty", "l1_ratio")
PENALTIES = ("l2", "l1", "elasticnet")
_OTHERS = {  # the only values of other options that a penalty with an L1 part takes
    "loss": ("squared_hinge", "--loss"),
    "solver": ("auto", "--solver"),
    "stopping": ("gap", "--stopping"),
    "multi_class": ("ovr", "--multi-class"),
}


def add_penalty_options(add):
    """Add the options; `add` is the `add_argument` of a parser or group."""
    add("--penalty", choices=PENALTIES, help="linear classification: l2, |w|²/2; l1, the sum of |w|, or elasticnet, "
        "a mixture of both, for weights of which many are zero, with --loss squared_hinge; LIBLINEAR's -s 5 is "
        "--penalty l1 (default: l2)")  # fmt: skip
    add("--l1-ratio", type=parsing.number, metavar="R", help="elasticnet: the part of l1, from 0 to 1")


def take_liblinear_type(parser, options):
    """Make --penalty l1 of LIBLINEAR's -s 5; a usage error if another penalty or task is given."""
    if getattr(options, "svm_type", None) != LIBLINEAR_TYPE:
        return
    if getattr(options, "penalty", "l1") != "l1":
        parser.error(f"-s {LIBLINEAR_TYPE} means --penalty l1, got --penalty {options.penalty}; leave one of them out")
    if options.task not in (None, "classification"):
        parser.error(f"-s {LIBLINEAR_TYPE} means --task classification, got --task {options.task}")
    del options.svm_type
    options.penalty = "l1"


def check_penalty(parser, given):
    """Report a usage error for options that do not go with the penalty; `given` are those of a linear model."""
    penalty = given.get("penalty", "l2")
    if penalty == "elasticnet" and not 0.0 <= given.get("l1_ratio", -1.0) <= 1.0:
        parser.error("--penalty elasticnet needs --l1-ratio, from 0 to 1")
    if penalty != "elasticnet" and "l1_ratio" in given:
        parser.error(f"--l1-ratio is for --penalty elasticnet, the penalty is {penalty}; leave it out")
    if penalty == "l2":
        return
    for dest, (value, name) in _OTHERS.items():
        if given.get(dest, value) != value:
            parser.error(f"--penalty {penalty} needs {name} {value}, got {given[dest]}; leave one of them out")
    if "checkpoint" in given:
        parser.error(f"--penalty {penalty} has no checkpoints; leave --checkpoint out")
