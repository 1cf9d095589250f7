"""`svm_rank_learn` of SVM-rank: rankings within queries."""

from widemargin.cli.programs.output import print_lines, working
from widemargin.cli.programs.svm_light_options import kernel_of
from widemargin.cli.programs.svm_struct_options import common_options
from widemargin.cli.programs.table import Option, Program
from widemargin.cli.programs.values import one_of, positive

OPTIONS = (
    Option("-c", "0.01", "C of the loss of a query, as a mean over queries",
           "`C`, translated: the printed objective is the original's", positive),
    Option("-l", "1", "1 swapped pairs, summed; 2 fraction of swapped pairs of a query",
           '`average="pairs"` or `average="queries"` of `RankSVM`', one_of("1", "2")),
    Option("-p", "1", "1 slacks, 2 squared slacks", "1", one_of("1", "2"),
           refused={"2": "a ranking has a slack for each query, and their squares are not available"}),
    Option("-o", "2", "1 slack rescaling, 2 margin rescaling", "2", one_of("1", "2"),
           refused={"1": "the loss of a ranking is added to the margin, it does not rescale the slack"}),
    *common_options(tol="0.001", algorithm="3", tol_words="a relative gap"),
)  # fmt: skip


def run(arguments):
    """Train and write the model; return the exit status."""
    from widemargin.workflows.originals.svm_struct import RankSettings, StructKernel, learn_ranking_file

    plain = "-w" in arguments.given and arguments["-w"] != 9
    kernel = StructKernel(*kernel_of(arguments))
    settings = RankSettings(C=arguments["-c"], loss=arguments["-l"], tol=arguments["-e"], plain=plain, kernel=kernel)
    data, model = arguments.files
    quiet = arguments["-v"] < 1
    with working(quiet=quiet):
        learned = learn_ranking_file(settings, data, model or "svm_struct_model")
    print_lines(learned.lines, quiet=quiet)
    return 0


PROGRAM = Program("svm_rank_learn", "SVM-rank", "train a ranking within queries", ("DATA", "[MODEL]"), OPTIONS, run)
