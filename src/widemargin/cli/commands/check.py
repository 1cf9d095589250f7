"""`widemargin check`: every mistake of a data file, then what is worth knowing about its rows and what looks wrong."""

import sys

from widemargin.cli.messages import add_output_options, print_json, reporting
from widemargin.cli.options.parsing import ZERO_BASED, Parser, add_zero_based_option, whole
from widemargin.workflows.check import check_file

_DESCRIPTION = """\
Check a file of SVM-light / LIBSVM text (plain, .gz, .bz2, .xz or .zst): list every mistake as path:line:column, then
summarise the rows that have none, and say what looks wrong in them. "-" is standard input."""

_EXAMPLES = """\
examples:
  widemargin check heart_scale
  widemargin check --limit none heart_scale | grep "must be finite"
  widemargin check --task regression housing_scale
  xzcat big.xz | widemargin check -q -
  widemargin check --json heart_scale

A defect is what train, predict and the others refuse: a label or value that is no finite number, an index that is not
whole, too large or not larger than the one before, a colon or a qid that is missing, a carriage return that stands
alone, damaged compression, no rows at all. Blank lines and comments are none. Columns are counted in bytes; a wrong
index or value is shown where its index:value begins.

A warning is what is allowed but looks wrong, with the way out: features of different scales, uneven classes, a feature
that is the label again, rows that occur twice, labels that look like quantities, and more. Labels are taken for classes
if they are whole numbers, ten distinct ones or more if each has ten rows on average; --task overrules that.

exit status:
  0  no defects, whatever the warnings      1  defects, or the file cannot be read      2  wrong usage"""


def make_parser():
    """Return the parser of `widemargin check`."""
    parser = Parser("check", ["DATA"], description=_DESCRIPTION, examples=_EXAMPLES)
    add = parser.add_argument
    add("--limit", type=whole(0, also="none"), default=100, metavar="N",
        help="list N defects and count the others (default: 100), or none for no limit")  # fmt: skip
    add("--task", choices=["classification", "regression"],
        help="whether labels are classes or quantities (default: told from them)")  # fmt: skip
    add_zero_based_option(parser)
    add_output_options(parser, quiet="print nothing but the defects")
    return parser


def run(tokens):
    """Check as the options say; return the exit status."""
    options = make_parser().parse(tokens)
    (data,) = options.files
    with reporting(options):
        found = check_file(data, limit=options.limit, task=options.task, zero_based=ZERO_BASED[options.zero_based])
    if options.json:
        print_json(found.to_dict(), sys.stdout)
    elif not options.quiet:
        print(found)
    elif found.n_defects:
        print(found.defect_lines)
    return 1 if found.n_defects else 0
