"""`train` of LIBLINEAR: linear machines, cross-validation, and the search for C."""

from widemargin.cli.messages import UsageError, say
from widemargin.cli.programs.output import print_lines, working
from widemargin.cli.programs.table import Option, Program
from widemargin.cli.programs.values import non_negative, number, one_of, positive, whole

_DUAL, _PRIMAL = 0.1, 0.01  # defaults of -e
TYPES = {  # by -s: estimator, its parameters, default of -e, and whether -e is the KKT violation of a dual solver
    0: ("LinearSVC", {"loss": "log_loss"}, _PRIMAL, False),
    1: ("LinearSVC", {"loss": "squared_hinge"}, _DUAL, True),
    2: ("LinearSVC", {"loss": "squared_hinge"}, _PRIMAL, False),
    3: ("LinearSVC", {"loss": "hinge"}, _DUAL, True),
    4: ("LinearSVC", {"multi_class": "crammer_singer"}, _DUAL, False),
    5: ("LinearSVC", {"penalty": "l1", "loss": "squared_hinge"}, _PRIMAL, False),
    6: ("LinearSVC", {"penalty": "l1", "loss": "log_loss"}, _PRIMAL, False),
    7: ("LinearSVC", {"loss": "log_loss"}, _DUAL, False),
    11: ("LinearSVR", {"loss": "squared_epsilon_insensitive"}, 1e-4, False),
    12: ("LinearSVR", {"loss": "squared_epsilon_insensitive"}, _DUAL, True),
    13: ("LinearSVR", {"loss": "epsilon_insensitive"}, _DUAL, True),
    21: ("LinearOneClassSVM", {}, _PRIMAL, False),
}
_WITH_FREE_INTERCEPT = (0, 2, 5, 6, 11)
_WITH_SEARCH = (0, 2, 11)

OPTIONS = (
    Option("-s", "1", "type: 0 to 7 classification, 11 to 13 regression, 21 one-class",
           "`LinearSVC` (0, 7 logistic; 1, 2 squared hinge; 3 hinge; 4 Crammer and Singer; "
           "5 squared hinge and 6 logistic with an L1 penalty), "
           "`LinearSVR` (11, 12 squared; 13), `LinearOneClassSVM` (21)",
           one_of("0", "1", "2", "3", "4", "5", "6", "7", "11", "12", "13", "21")),
    Option("-c", "1", "C", "`C`; with -C where the search begins", positive),
    Option("-p", "0.1", "half the width of the tube of regression", "`epsilon`; with -C where the search begins",
           non_negative),
    Option("-n", "0.5", "nu of one-class", "`nu`", positive),
    Option("-e", "", "tolerance", 'of types 1, 3, 12, 13 `tol` with `solver="dcd"` and `stopping="kkt"`; of others a '
           "relative gap of e/100", positive, default_words="by type"),
    Option("-B", "-1", "value of the constant feature whose weight is the intercept; none if 0 or below",
           "`intercept_scaling`", number),
    Option("-R", "", "the intercept is not penalised, with -B 1 and types 0, 2, 5, 6 and 11",
           "`penalize_intercept=False`", None),
    Option("-wi", "1", "factor of C for class i", "`class_weight`", positive),
    Option("-v", "", "cross-validate with so many folds, and write no model",
           "the same; folds are stratified, and the same each time", whole(2)),
    Option("-C", "", "search for C by cross-validation, with types 0 and 2, 2 without -s; for C and p with type 11",
           "`c_path`, over powers of 2 up to 1024, with type 11 up to 1048576 for each of 20 values of p", None),
    Option("-q", "", "print nothing", "the same", None),
)  # fmt: skip


def run(arguments):
    """Train and write the model, cross-validate, or search for C and p; return the exit status."""
    from widemargin.workflows.originals import liblinear
    from widemargin.workflows.originals.libsvm import cross_validated_lines

    data, output = arguments.files
    model, quiet = _estimator(arguments), arguments["-q"]
    folds = arguments["-v"]
    with working(quiet=quiet):
        if arguments["-C"]:
            begin = arguments.given.get("-c"), arguments.given.get("-p")
            lines, quiet = liblinear.searched_lines(model, data, folds or 5, *begin), False
        elif folds is not None:
            lines, quiet = cross_validated_lines(model, data, folds), False
        else:
            lines = liblinear.trained_lines(model, data, output, arguments["-s"])
    print_lines(lines, quiet=quiet)
    return 0


def _kind(arguments):
    """Return the type; the search for C has type 2 if none is given, as in LIBLINEAR."""
    if arguments["-C"] and "-s" not in arguments.given:
        say("note", "-C without -s searches with type -s 2")
        return 2
    return arguments["-s"]


def _estimator(arguments):
    """Return the estimator that the options describe; UsageError for those that contradict each other."""
    from widemargin.models.linear import LinearSVC, LinearSVR
    from widemargin.models.linear_one_class import LinearOneClassSVM

    kind, bias = _kind(arguments), arguments["-B"]
    name, options, default_tol, is_kkt = TYPES[kind]
    if arguments["-R"] and (kind not in _WITH_FREE_INTERCEPT or bias != 1.0):
        raise UsageError("-R needs -B 1 and type -s 0, -s 2, -s 5, -s 6 or -s 11")
    if arguments["-C"] and kind not in _WITH_SEARCH:
        raise UsageError("-C needs type -s 0, -s 2 or -s 11; widemargin grid searches for other parameters")
    tol = arguments["-e"] or default_tol
    criterion = {"solver": "dcd", "stopping": "kkt", "tol": tol} if is_kkt else {"tol": tol / 100.0}
    if name == "LinearOneClassSVM":
        return LinearOneClassSVM(nu=arguments["-n"], **criterion)
    options = {**options, **criterion, "C": arguments["-c"], "random_state": 0, "fit_intercept": bias > 0.0}
    options["intercept_scaling"] = bias if bias > 0.0 else 1.0
    if arguments["-R"]:
        options["penalize_intercept"] = False
    if name == "LinearSVR":
        return LinearSVR(epsilon=arguments["-p"], **options)
    return LinearSVC(class_weight=arguments.by_label or None, **options)


PROGRAM = Program("train", "LIBLINEAR", "train a linear machine of LIBLINEAR", ("DATA", "[MODEL]"), OPTIONS, run)
