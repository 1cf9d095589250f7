"""`widemargin subset`: copy a random subset of the rows of a data file; see `subset_file`."""

import re
import sys

from widemargin.cli.messages import add_output_options, reporting, show_result
from widemargin.cli.options.parsing import Parser, whole

_METHODS = {"0": "stratified", "1": "random", "stratified": "stratified", "random": "random"}

_DESCRIPTION = """\
Write NUMBER random rows of DATA (SVM-light / LIBSVM text, plain or compressed, or a row-block file) to SUBSET, and the
other rows to REST if it is given. NUMBER is a number of rows such as 100, or a fraction of the rows such as 0.8.
SUBSET is standard output by default; "-" is standard input or output."""

_EXAMPLES = """\
examples:
  widemargin subset heart_scale 100 > heart.100
  widemargin subset heart_scale 0.8 heart.train heart.test
  widemargin subset -s 1 --seed 7 covtype.xz 10000 covtype.10000.gz
  widemargin subset --by-query mq2008 0.7 mq2008.train mq2008.test

Lines are copied byte for byte, in the order of DATA; blank lines and lines with only a comment are left out. Files
whose names end with .gz, .bz2, .xz or .zst are compressed. An existing file is replaced when the new one is complete.
A subset of a row-block file is one, too, whatever its name; with --text it is text, for kernel machines and whatever
else needs all rows in memory.

The method stratified, the default, takes the same fraction of each class, rounded so that the sum is NUMBER, and at
least one row of each class if possible. Labels that look like regression targets (not integers, or more distinct values
than ten and than a tenth of the rows) are sorted and divided into NUMBER groups, and one row is taken from each. With
the method random, all sets of rows have the same probability. --by-query takes whole queries at random, so that the
number of rows is as close to NUMBER as possible.

exit status:
  0  done      1  the data or the run failed      2  wrong usage"""


def make_parser():
    """Return the parser of `widemargin subset`."""
    files = ["DATA", "NUMBER", "[SUBSET]", "[REST]"]
    parser = Parser("subset", files, description=_DESCRIPTION, examples=_EXAMPLES)
    add = parser.add_argument
    add("-s", "--method", choices=list(_METHODS), metavar="METHOD",
        help="0 or stratified keeps the distribution of the labels (default); 1 or random ignores them")  # fmt: skip
    add("--by-query", action="store_true", help="take whole queries (qid) with about NUMBER rows")
    add("--seed", type=whole(0), default=0, metavar="N", help="the same seed gives the same rows (default: 0)")
    add("--text", action="store_true", help="write rows of a row-block file as text (default: as a row-block file)")
    add_output_options(parser, quiet="print nothing but the rows, warnings and errors")
    return parser


def run(tokens):
    """Write the subset; return the exit status."""
    parser = make_parser()
    options = parser.parse(tokens)
    data, number, subset, rest = options.files
    number, subset = _read_number(parser, number), "-" if subset is None else subset
    method = None if options.method is None else _METHODS[options.method]
    from widemargin.workflows.subset import subset_file

    with reporting(options):
        taken = subset_file(
            data, number, subset, rest, method=method, by_query=options.by_query, seed=options.seed, text=options.text
        )
    stream = sys.stderr if "-" in (subset, rest) else sys.stdout
    show_result(taken, options, stream)
    return 0


def _read_number(parser, text):
    """Return a number of rows as an int, or a fraction as a float."""
    if re.fullmatch("[0-9]+", text) and int(text) > 0:
        return int(text)
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number <= 1:
        parser.error(f"NUMBER must be a count >= 1, or a fraction > 0 and <= 1 such as 0.8, got {text!r}")
    return number
