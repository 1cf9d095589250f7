"""`widemargin scale`: feature ranges are learned from a file or restored, and its rows written scaled."""

import sys

from widemargin.cli.messages import CommandError, add_output_options, reporting, show_result
from widemargin.cli.options.parsing import Parser, number
from widemargin.workflows.scale import scale_file

_DESCRIPTION = """\
Scale the features of DATA, each on its own, to [-1, 1], to [LOWER, UPPER], or to unit variance; "-" is standard input.
The ranges are learned from DATA, and saved with -s; or with -r those that were learned from training data are applied
to test data. Range files are those of svm-scale, both ways."""

_EXAMPLES = """\
examples:
  widemargin scale -s heart.range -o heart_scale heart
  widemargin scale -r heart.range -o heart_scale.t heart.t
  widemargin scale -l 0 -u 1 news20.xz | widemargin train - news20.model
  widemargin scale -y -1 1 -s cadata.range -o cadata_scale.zst cadata
  widemargin scale --method variance -s news20.range -o news20_scale.xz news20.xz

An entry that is not written in DATA is a zero like any other: of a feature whose entries are all positive and which
some row lacks, the least value is 0. A feature that never varies is left out. Values beyond the range of a feature, as
test data may have, are scaled beyond the limits; features without a range are left out. Zeros are not written. If zeros
become other numbers, a sparse file becomes a dense one: there is a warning if the entries grow by more than half.

Unit variance is x / s, s the standard deviation over all rows: without subtracting the mean, as zeros stay zeros then,
or with --center. Its range file maps [-s, s], or [mean - s, mean + s], to [-1, 1], which is the same straight line, so
that svm-scale -r applies it too; that of --keep-zeros is symmetric in the same way.

Order of rows, labels, queries (qid) and indices are kept, comments are dropped. Numbers are written with the fewest
digits that read back the same, where svm-scale writes 6. OUTPUT is compressed if it ends with .gz, .bz2, .xz or .zst.
Memory does not grow with the number of rows: 24 to 48 bytes per feature, and a block of lines. DATA is read twice, once
with -r; what cannot be read twice is copied to a temporary file first.

exit status:
  0  done      1  the data or the run failed      2  wrong usage"""


def make_parser():
    """Return the parser of `widemargin scale`."""
    parser = Parser("scale", ["DATA"], description=_DESCRIPTION, examples=_EXAMPLES)
    add = parser.add_argument
    add("-l", "--lower", type=number, metavar="LOWER", help="lower limit of the scaled features (default: -1)")
    add("-u", "--upper", type=number, metavar="UPPER", help="upper limit of the scaled features (default: 1)")
    add("-y", "--labels", type=number, nargs=2, metavar=("LOWER", "UPPER"),
        help="scale the labels too, to these limits, for regression (default: labels are kept)")  # fmt: skip
    add("-s", "--save", metavar="RANGES", help="save the ranges to a file")
    add("-r", "--restore", metavar="RANGES", help="apply the ranges of a file; its limits too, and to labels if it "
        "was made with -y")  # fmt: skip
    add("-o", "--output", default="-", metavar="OUTPUT", help="where the rows go (default: -, standard output)")
    add("--method", choices=["range", "variance"],
        help="range: least and largest value to the limits; variance: unit variance (default: range)")  # fmt: skip
    add("--center", action="store_true", help="of --method variance: subtract the mean, which makes sparse data dense")
    add("--keep-zeros", action="store_true",
        help="of --method range: multiply only, so that the largest absolute value becomes UPPER")  # fmt: skip
    add_output_options(
        parser,
        quiet="print nothing but the rows, warnings and errors",
        json="print a summary as one JSON object instead of text",
    )
    return parser


def run(tokens):
    """Scale as the options say; return the exit status."""
    options = make_parser().parse(tokens)
    (data,) = options.files
    names = ("lower", "upper", "labels", "save", "restore", "method", "center", "keep_zeros")
    try:
        with reporting(options):
            scaled = scale_file(data, options.output, **{name: getattr(options, name) for name in names})
    except MemoryError as error:
        name = "standard input" if data == "-" else data
        raise CommandError(f"{name}: the ranges do not fit into memory, 24 to 48 bytes per feature") from error
    stream = sys.stderr if "-" in (options.output, options.save) else sys.stdout
    show_result(scaled, options, stream)
    return 0
