"""`widemargin scale`: scale the features of a file; see `scale_file`."""

import sys

from widemargin.cli.messages import CommandError, add_output_options, reporting, show_result
from widemargin.cli.options.parsing import Parser, number

_DESCRIPTION = """\
Scale each feature of DATA to [-1, 1], to [LOWER, UPPER], or to unit variance; "-" is standard input. The ranges are
learned from DATA, and saved with -s. With -r, saved ranges of training data are applied to test data. Range files have
the format of svm-scale."""

_EXAMPLES = """\
examples:
  widemargin scale -s heart.range -o heart_scale heart
  widemargin scale -r heart.range -o heart_scale.t heart.t
  widemargin scale -l 0 -u 1 news20.xz | widemargin train - news20.model
  widemargin scale -y -1 1 -s cadata.range -o cadata_scale.zst cadata
  widemargin scale --method variance -s news20.range -o news20_scale.xz news20.xz

An entry that is not written in DATA is zero. If all entries of a feature are positive, and some row has no entry for
it, the smallest value is therefore 0. Constant features are left out. Values outside the range of a feature, which can
occur in test data, are scaled beyond the limits; features without a range are left out. Zeros are not written. If zeros
become other numbers, a sparse file becomes dense; there is a warning if the number of entries grows by more than half.

Unit variance is x / s, where s is the standard deviation over all rows. The mean is not subtracted, so that zeros stay
zeros, except with --center. The range file maps [-s, s], or [mean - s, mean + s] with --center, to [-1, 1]; this is the
same linear function, which svm-scale -r can apply too. With --keep-zeros, the ranges are symmetric about 0.

The order of rows, labels, queries (qid) and indices do not change, and comments are dropped. Numbers are written with
the fewest digits that give the same number when read; svm-scale writes 6 digits. OUTPUT is compressed if its name ends
with .gz, .bz2, .xz or .zst. Memory does not grow with the number of rows: it is 24 to 48 bytes per feature, and one
block of lines. DATA is read twice, or once with -r; if it cannot be read twice, it is copied to a temporary file.

A row-block file, recognised by its content, is scaled to another one; feature 1 of the range file is its first column.

exit status:
  0  done      1  the data or the run failed      2  wrong usage"""


def make_parser():
    """Return the parser of `widemargin scale`."""
    parser = Parser("scale", ["DATA"], description=_DESCRIPTION, examples=_EXAMPLES)
    add = parser.add_argument
    add("-l", "--lower", type=number, metavar="LOWER", help="lower limit of the scaled features (default: -1)")
    add("-u", "--upper", type=number, metavar="UPPER", help="upper limit of the scaled features (default: 1)")
    add("-y", "--labels", type=number, nargs=2, metavar=("LOWER", "UPPER"),
        help="regression: scale the labels to these limits (default: labels are not scaled)")  # fmt: skip
    add("-s", "--save", metavar="RANGES", help="save the ranges to a file")
    add("-r", "--restore", metavar="RANGES", help="apply the ranges and limits of a file, to labels too if it "
        "was made with -y")  # fmt: skip
    add("-o", "--output", default="-", metavar="OUTPUT", help="file of the scaled rows (default: -, standard output)")
    add("--method", choices=["range", "variance"],
        help="range maps the smallest and largest value to the limits, variance gives unit variance (default: "
        "range)")  # fmt: skip
    add(
        "--center", action="store_true", help="with --method variance: subtract the mean, which makes sparse data dense"
    )
    add("--keep-zeros", action="store_true",
        help="with --method range: multiply only, so that the largest absolute value becomes UPPER")  # fmt: skip
    add_output_options(
        parser,
        quiet="print nothing but the rows, warnings and errors",
        json="print a summary as one JSON object instead of text",
    )
    return parser


def run(tokens):
    """Scale the file; return the exit status."""
    options = make_parser().parse(tokens)
    (data,) = options.files
    from widemargin.workflows.scale import scale_file

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
