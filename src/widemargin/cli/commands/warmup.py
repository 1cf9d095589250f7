"""`widemargin warmup`: compile ahead of the first fit; see `widemargin.warmup`."""

import sys

from widemargin.cli.messages import add_output_options, show_result, wants_progress
from widemargin.cli.options.parsing import Parser, threads

_NAMES = (
    "LinearSVC", "LinearSVR", "LinearOneClassSVM", "LinearSVCCV", "LinearSVRCV", "SVC", "TransductiveSVC", "NuSVC",
    "SVR", "NuSVR", "OneClassSVM", "RankSVM", "OrdinalSVC", "ROCAreaSVC", "MeasureSVC", "files",
)  # fmt: skip

_DESCRIPTION = """\
Compile the functions of all estimators, or of some, for dense and sparse rows in double and single precision, and keep
them on disk. Fits, predictions and commands of later processes then compile nothing. What is there already is not
compiled again."""

_EXAMPLES = """\
examples:
  widemargin warmup
  widemargin warmup --only SVC --only files

Compiled code is kept in NUMBA_CACHE_DIR if that is set, otherwise beside the package or, if that cannot be written, in
the home folder; in a Dockerfile, set NUMBA_CACHE_DIR before this command runs. The code is used by the same version of
widemargin, Numba, NumPy and Python on the same kind of processor.

exit status:
  0  done      1  the folder cannot be written, or a process failed      2  wrong usage"""


def make_parser():
    """Return the parser of `widemargin warmup`."""
    parser = Parser("warmup", [], description=_DESCRIPTION, examples=_EXAMPLES)
    add = parser.add_argument
    add("--only", action="append", choices=_NAMES, metavar="NAME",
        help="an estimator such as SVC, or files for reading and writing; may be repeated (default: all)")  # fmt: skip
    add("-j", "--jobs", type=threads, default=-1, metavar="N", help="processes; -1 for all cores (default: -1)")
    add_output_options(parser, quiet="print nothing but warnings and errors")
    return parser


def run(tokens):
    """Compile; return the exit status."""
    options = make_parser().parse(tokens)
    verbose = wants_progress(options)
    from widemargin.workflows.warmup import warmup

    show_result(warmup(options.only, n_jobs=options.jobs, verbose=verbose), options, sys.stdout)
    return 0
