"""`svm_learn` of SVM-light 6.20: classification, transduction, regression and ranking, with estimates of the error."""

from widemargin.cli.programs.output import print_lines, working
from widemargin.cli.programs.svm_light_options import KERNEL_OPTIONS, SOLVER_OPTIONS, kernel_of
from widemargin.cli.programs.table import Option, Program
from widemargin.cli.programs.values import between, inside, non_negative, number, one_of, positive, whole

_TASKS = {"c": "classification", "r": "regression", "p": "ranking"}

OPTIONS = (
    Option("-z", "c", "c classification, r regression, p preference ranking",
           "`SVC`, `SVR`, `RankSVM`; rows of label 0 are unlabelled in classification: `TransductiveSVC`",
           one_of("c", "r", "p")),
    Option("-c", "", "C of the sum of losses", "`C`; of rankings times the number of pairs", positive,
           default_words="1 / (mean of |x|)²"),
    Option("-w", "0.1", "half the width of the regression tube", "`epsilon`", non_negative),
    Option("-j", "1", "factor of the cost of positive rows", "`class_weight`", positive),
    Option("-b", "1", "1 an intercept without penalty, 0 none",
           "0: `LinearSVC(fit_intercept=False)`, with a kernel on the basis of all rows", one_of("0", "1")),
    Option("-i", "0", "1: take out rows at their upper bound, and train again until none is left",
           "the same; not for rankings, nor with unlabelled rows", one_of("0", "1")),
    Option("-x", "0", "1: compute the leave-one-out error",
           "`leave_one_out_estimates(exact=True)`, for classification without unlabelled rows", one_of("0", "1")),
    Option("-o", "1", "rho of the xi-alpha estimates, above 0 and up to 2", "`rho`", between(1e-12, 2)),
    Option("-k", "0", "search depth of the sharper estimates, 0 to 100", "`depth`", whole(0)),
    Option("-p", "", "share of unlabelled rows that is called positive, above 0 and below 1",
           "`positive_share` of `TransductiveSVC`", inside(0, 1), default_words="that of labelled rows"),
    *KERNEL_OPTIONS,
    Option("-q", "10", "size of the working set", "`working_set`, if it is given", whole(2)),
    Option("-n", "", "new variables in each working set", read=whole(2), default_words="q",
           noted="the solver chooses the working set by itself"),
    *SOLVER_OPTIONS,
    Option("-e", "0.001", "tolerance of the optimality conditions", "`tol`, and a relative gap of 10 `tol` in addition",
           positive),
    Option("-y", "", "file of dual variables to start from",
           "`read_alphas`, for classification without unlabelled rows"),
    Option("-f", "1", "1: check all variables in the end", read=one_of("0", "1"), noted="it is always done"),
    Option("-l", "", "file of labels of unlabelled rows to write", "the same; `transduction_` in Python"),
    Option("-a", "", "file of dual variables times labels to write",
           "`write_alphas`; not for rankings, whose dual variables are those of pairs"),
    Option("-v", "1", "0 prints nothing", "the same", number),
)  # fmt: skip


def run(arguments):
    """Train and write the model; return the exit status."""
    from widemargin.workflows.originals.svm_light import LightSettings, learn_file

    kernel, numbers = kernel_of(arguments)
    settings = LightSettings(
        task=_TASKS[arguments["-z"]],
        C=arguments["-c"],
        epsilon=arguments["-w"],
        positive_factor=arguments["-j"],
        intercept=arguments["-b"] == 1,
        kernel=kernel,
        kernel_numbers=numbers,
        tol=arguments["-e"],
        cache_size=arguments["-m"],
        working_set=arguments.given.get("-q"),
        remove_inconsistent=arguments["-i"] == 1,
        leave_one_out=arguments["-x"] == 1,
        rho=arguments["-o"],
        depth=arguments["-k"],
        start=arguments["-y"],
        alphas=arguments["-a"],
        positive_share=arguments["-p"],
        labels=arguments["-l"],
    )
    data, model = arguments.files
    quiet = arguments["-v"] < 1
    with working(quiet=quiet):
        learned = learn_file(settings, data, model or "svm_model")
    print_lines(learned.lines, quiet=quiet)
    return 0


PROGRAM = Program("svm_learn", "SVM-light", "train a machine of SVM-light", ("DATA", "[MODEL]"), OPTIONS, run)
