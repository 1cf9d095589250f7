"""`widemargin demo`: solvers compared on small data sets, in a table and a picture; see `compare_solvers`."""

import sys

from widemargin.cli.messages import add_progress_option, reporting
from widemargin.cli.options.parsing import Parser

_DESCRIPTION = """\
Train on three small data sets that come with scikit-learn, with several solvers and with scikit-learn's own
(LIBLINEAR), and compare them in a table and a picture. Takes less than a minute, most of it compiling."""

_EXAMPLES = """\
examples:
  widemargin demo                    writes demo/widemargin-demo.png
  widemargin demo --output pictures"""


def make_parser():
    """Return the parser of `widemargin demo`."""
    parser = Parser("demo", [], description=_DESCRIPTION, examples=_EXAMPLES)
    parser.add_argument("--output", default="demo", metavar="DIR", help="folder of the picture (default: demo)")
    add_progress_option(parser)
    parser.add_argument("-q", "--quiet", action="store_true", help="no message about compiling")
    return parser


def run(tokens):
    """Compare the solvers and print the table; return the exit status."""
    options = make_parser().parse(tokens)
    from widemargin.workflows.demo import compare_solvers

    with reporting(options):
        compared = compare_solvers(options.output)
    print(compared.to_text(ruled=sys.stdout.isatty()))
    return 0
