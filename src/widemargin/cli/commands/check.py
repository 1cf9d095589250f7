"""`widemargin check`: all defects of a data file, a summary of its rows, and warnings; see `check_file`."""

import sys

from widemargin.cli.messages import add_output_options, print_json, reporting
from widemargin.cli.options.parsing import ZERO_BASED, Parser, add_zero_based_option, whole

_DESCRIPTION = """\
Check a file of SVM-light / LIBSVM text (plain, .gz, .bz2, .xz or .zst) or a row-block file: list all defects as
path:line:column, summarise the rows without defects, and warn about what looks wrong in them. "-" is standard input."""

_EXAMPLES = """\
examples:
  widemargin check heart_scale
  widemargin check --limit none heart_scale | grep "must be finite"
  widemargin check --task regression housing_scale
  xzcat big.xz | widemargin check -q -
  widemargin check --json heart_scale

A defect is an error for train, predict and the other commands: a label or value that is not a finite number; an index
that is not an integer, too large, or not larger than the previous one; a missing colon or qid; a carriage return that
is not followed by a line feed; damaged compression; a file without rows. Blank lines and comments are not defects.
Columns are counted in bytes; a wrong index or value has the column where its index:value begins.

Each block of a row-block file is compared with its checksum, and a block that is damaged is a defect. If there are more
than 20 million values, the facts about features and repeated rows are those of the first rows.

A warning is about data that are valid but look wrong, and suggests a remedy: features of different scales, unbalanced
classes, a feature that equals the label, repeated rows, labels that look like regression targets, and others. Labels
are assumed to be classes if they are integers with at most ten distinct values, or with at least ten rows per distinct
value on average; --task overrides this.

exit status:
  0  no defects, perhaps warnings      1  defects, or the file cannot be read      2  wrong usage"""


def make_parser():
    """Return the parser of `widemargin check`."""
    parser = Parser("check", ["DATA"], description=_DESCRIPTION, examples=_EXAMPLES)
    add = parser.add_argument
    add("--limit", type=whole(0, also="none"), default=100, metavar="N",
        help="list N defects and count the others (default: 100), or none for no limit")  # fmt: skip
    add("--task", choices=["classification", "regression"],
        help="whether labels are classes or regression targets (default: inferred from the labels)")  # fmt: skip
    add_zero_based_option(parser)
    add_output_options(parser, quiet="print nothing but the defects")
    return parser


def run(tokens):
    """Check the file; return the exit status."""
    options = make_parser().parse(tokens)
    (data,) = options.files
    from widemargin.workflows.check import check_file

    with reporting(options):
        found = check_file(data, limit=options.limit, task=options.task, zero_based=ZERO_BASED[options.zero_based])
    if options.json:
        print_json(found.to_dict(), sys.stdout)
    elif not options.quiet:
        print(found)
    elif found.n_defects:
        print(found.defect_lines)
    return 1 if found.n_defects else 0
