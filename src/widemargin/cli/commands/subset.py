"""`widemargin subset`: some of the rows of a data file, and the others apart; lines are copied as they are."""

import re
import sys

from widemargin.cli.messages import add_output_options, reporting, show_result
from widemargin.cli.options.parsing import Parser, whole
from widemargin.workflows.subset import subset_file

_METHODS = {"0": "stratified", "1": "random", "stratified": "stratified", "random": "random"}

_DESCRIPTION = """\
Take NUMBER rows of DATA (SVM-light / LIBSVM text, plain or compressed) at random and write them to SUBSET, the others
to REST if it is named. NUMBER is a count, or with a point a fraction of the rows: 100, 0.8. SUBSET is standard output
if left out; "-" is standard input or output."""

_EXAMPLES = """\
examples:
  widemargin subset heart_scale 100 > heart.100
  widemargin subset heart_scale 0.8 heart.train heart.test
  widemargin subset -s 1 --seed 7 covtype.xz 10000 covtype.10000.gz
  widemargin subset --by-query mq2008 0.7 mq2008.train mq2008.test

Lines are copied byte for byte, in their order; blank lines and comments of their own are left out. Files that end with
.gz, .bz2, .xz or .zst are written compressed, and a file is replaced when the new one is complete.

Stratified, the default: as many rows of each class as its part of all, rounded so that the sum is NUMBER, and one at
least where there is room. Labels that look like quantities (not whole, or more distinct ones than ten or a tenth of
the rows) are put in order and cut into NUMBER groups of neighbours, of which one row is taken from each. Random: each
set of rows is as likely as another. --by-query takes queries whole, at random, until there are as nearly NUMBER rows
as that gives.

exit status:
  0  done      1  the data or the run failed      2  wrong usage"""


def make_parser():
    """Return the parser of `widemargin subset`."""
    files = ["DATA", "NUMBER", "[SUBSET]", "[REST]"]
    parser = Parser("subset", files, description=_DESCRIPTION, examples=_EXAMPLES)
    add = parser.add_argument
    add("-s", "--method", choices=list(_METHODS), metavar="METHOD",
        help="0 or stratified: labels in the same proportion (default); 1 or random: whatever they are")  # fmt: skip
    add("--by-query", action="store_true", help="take whole queries (qid), about NUMBER rows")
    add("--seed", type=whole(0), default=0, metavar="N", help="the same seed gives the same rows (default: 0)")
    add_output_options(parser, quiet="print nothing but the rows, warnings and errors")
    return parser


def run(tokens):
    """Take a subset as the options say; return the exit status."""
    parser = make_parser()
    options = parser.parse(tokens)
    data, number, subset, rest = options.files
    number, subset = _read_number(parser, number), "-" if subset is None else subset
    method = None if options.method is None else _METHODS[options.method]
    with reporting(options):
        taken = subset_file(data, number, subset, rest, method=method, by_query=options.by_query, seed=options.seed)
    stream = sys.stderr if "-" in (subset, rest) else sys.stdout
    show_result(taken, options, stream)
    return 0


def _read_number(parser, text):
    """Return a count as an int, or a fraction as a float."""
    if re.fullmatch("[0-9]+", text) and int(text) > 0:
        return int(text)
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number <= 1:
        parser.error(f"NUMBER must be a count >= 1, or a fraction > 0 and <= 1 such as 0.8, got {text!r}")
    return number
