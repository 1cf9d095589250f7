"""`widemargin easy`: check, scale, grid, train, predict and report; see `easy_files`."""

import shlex
import sys

from widemargin.cli.messages import add_output_options, print_json, wants_progress, warnings_afterwards
from widemargin.cli.options.parsing import Parser, threads, whole
from widemargin.workflows.errors import DefectiveFile

_DESCRIPTION = """\
Make a good model from a file of SVM-light / LIBSVM text with one command. TRAIN is checked and scaled, C and gamma are
chosen by cross-validation, and a model is trained with the best values and described on a page. TEST, if it is given,
is scaled by the same ranges and predicted."""

_EXAMPLES = """\
examples:
  widemargin easy heart
  widemargin easy svmguide1 svmguide1.t
  widemargin easy --kernel linear news20.xz news20.t.xz
  widemargin easy --resume svmguide1 svmguide1.t    continue an interrupted search

Files are written in the current directory, named after TRAIN and TEST: TRAIN.range, TRAIN.scale, TRAIN.scale.grid,
TRAIN.model, TRAIN.html, TEST.scale, TEST.predict. If a file has defects, they are listed and nothing is trained; what
merely looks wrong is noted. Sparse files are scaled so that zeros stay zeros.

Whether labels are classes or regression targets is inferred from them. If rows have queries (qid), a RankSVM is
trained, which is linear and scored by concordance. The kernel is rbf, or linear if there are more than 20,000 rows, or
if there are more features than rows and more than 1,000; --kernel selects another. For regression, epsilon is tried at
2^-8, 2^-5 and 2^-2 times the standard deviation of the labels.

exit status:
  0  done      1  the data or the run failed      2  wrong usage      130  interrupted; continue with --resume"""


def make_parser():
    """Return the parser of `widemargin easy`."""
    parser = Parser("easy", ["TRAIN", "[TEST]"], description=_DESCRIPTION, examples=_EXAMPLES)
    add = parser.add_argument
    add("--task", choices=["classification", "regression", "rank"], help="the task (default: inferred from the "
        "labels; rank if rows have queries)")  # fmt: skip
    add("--kernel", choices=["rbf", "linear"], help="the kernel (default: rbf unless the data are large)")
    add("--extend", type=whole(0), default=0, metavar="N", help="while the best C, gamma or epsilon is on the edge "
        "of the grid, add the next value beyond it, at most N times (default: 0)")  # fmt: skip
    add("--scale-targets", action="store_true", help="regression: search with targets scaled to mean 0 and standard "
        "deviation 1; the model predicts in the units of TRAIN")  # fmt: skip
    add(
        "--refine",
        type=whole(0),
        default=0,
        metavar="N",
        help="refine the grid around the best point N times (default: 0)",
    )
    add("-v", type=whole(2), default=5, dest="n_folds", metavar="K", help="number of folds of the search (default: 5)")
    add("-j", "--jobs", type=threads, metavar="N", help="threads (default: all cores where that saves time)")
    add("--seed", type=whole(0), default=0, metavar="N", help="the same seed gives the same folds (default: 0)")
    add("--resume", action="store_true", help="continue the search of an earlier run")
    add("--overwrite", action="store_true", help="replace the results of an earlier search")
    add_output_options(parser, quiet="print nothing but warnings and errors")
    return parser


def run(tokens):
    """Run all steps; return the exit status."""
    command = shlex.join(["widemargin", "easy", *tokens])
    parser = make_parser()
    options = parser.parse(tokens)
    if "-" in options.files:
        parser.error("TRAIN and TEST must be files, as they are read more than once")
    if options.resume and options.overwrite:
        parser.error("--resume and --overwrite contradict each other; leave one of them out")
    if options.task == "rank" and options.kernel == "rbf":
        parser.error("--kernel rbf is not for --task rank: a RankSVM is linear; leave it out")
    if options.scale_targets and options.task not in (None, "regression"):
        parser.error("--scale-targets is for regression; leave it out")
    from widemargin.workflows.easy import easy_files

    prints_steps = not (options.quiet or options.json)
    names = ("task", "kernel", "extend", "refine", "scale_targets", "n_folds", "seed", "resume", "overwrite")
    arguments = {name: getattr(options, name) for name in names}
    with warnings_afterwards(notes=not options.quiet) as release:

        def tell(line):
            release()
            if prints_steps:
                print(line, flush=True)

        try:
            made = easy_files(
                *options.files, **arguments, n_jobs=options.jobs, tell=tell, command=command,
                verbose=wants_progress(options),
            )  # fmt: skip
        except DefectiveFile as error:
            _list_defects(error.check)
            raise
    if options.json:
        print_json(made.to_dict(), sys.stdout)
    elif not options.quiet:
        print(made.last_line)
    return 0


def _list_defects(check):
    """Print the defects of a file on standard error."""
    for line in check.defect_lines.splitlines()[: len(check.defects)]:
        print(line, file=sys.stderr)
