"""The options --penalty and --l1-ratio of linear classification, and LIBLINEAR's -s 5 and -s 6, --penalty l1."""

from widemargin.cli.options import parsing

LIBLINEAR_TYPES = {5: "squared_hinge", 6: "log_loss"}  # by LIBLINEAR's -s: losses with an L1 penalty
OPTIONS = ("penalty", "l1_ratio")
PENALTIES = ("l2", "l1", "elasticnet")
_OTHERS = {  # the only values of other options that a penalty with an L1 part takes, the default first
    "loss": (tuple(LIBLINEAR_TYPES.values()), "--loss"),
    "solver": (("auto",), "--solver"),
    "stopping": (("gap",), "--stopping"),
    "multi_class": (("ovr",), "--multi-class"),
}


def add_penalty_options(add):
    """Add the options; `add` is the `add_argument` of a parser or group."""
    add("--penalty", choices=PENALTIES, help="linear classification: l2, |w|²/2; l1, the sum of |w|, or elasticnet, "
        "a mixture of both, for weights of which many are zero, with --loss squared_hinge or log_loss; LIBLINEAR's "
        "-s 5 and -s 6 are --penalty l1 with these (default: l2)")  # fmt: skip
    add("--l1-ratio", type=parsing.number, metavar="R", help="elasticnet: the part of l1, from 0 to 1")


def take_liblinear_type(parser, options):
    """Make --penalty l1 and --loss of LIBLINEAR's -s 5 or -s 6; a usage error if others or another task are given."""
    number = getattr(options, "svm_type", None)
    if number not in LIBLINEAR_TYPES:
        return
    for name, value in (("penalty", "l1"), ("loss", LIBLINEAR_TYPES[number])):
        given = getattr(options, name, value)
        if given != value:
            parser.error(f"-s {number} means --{name} {value}, got --{name} {given}; leave one of them out")
        setattr(options, name, value)
    if options.task not in (None, "classification"):
        parser.error(f"-s {number} means --task classification, got --task {options.task}")
    del options.svm_type


def check_penalty(parser, given):
    """Report a usage error for options that do not go with the penalty; `given` are those of a linear model."""
    penalty = given.get("penalty", "l2")
    if penalty == "elasticnet" and not 0.0 <= given.get("l1_ratio", -1.0) <= 1.0:
        parser.error("--penalty elasticnet needs --l1-ratio, from 0 to 1")
    if penalty != "elasticnet" and "l1_ratio" in given:
        parser.error(f"--l1-ratio is for --penalty elasticnet, the penalty is {penalty}; leave it out")
    if penalty == "l2":
        return
    for dest, (values, name) in _OTHERS.items():
        if given.get(dest, values[0]) not in values:
            rule = f"--penalty {penalty} needs {name} {' or '.join(values)}"
            parser.error(f"{rule}, got {given[dest]}; leave one of them out")
    if "checkpoint" in given:
        parser.error(f"--penalty {penalty} has no checkpoints; leave --checkpoint out")
