"""`widemargin convert`: data of any size as a row-block file, which is trained on block by block."""

import sys

from widemargin.cli.messages import add_output_options, reporting, show_result
from widemargin.cli.options.parsing import Parser, whole, yes_or_no

_COMPRESSIONS = {"none": None, "lz4": "lz4", "zstd": "zstd"}

_DESCRIPTION = """\
Convert DATA to OUTPUT, a row-block file: an Arrow file that is read block by block, for data larger than memory. DATA
is SVM-light / LIBSVM text, plain or compressed; a table (.parquet, .csv, .feather, .arrow, or a folder of Parquet
files); an array (.npy); or a row-block file. "-" is standard input, with text, or standard output."""

_EXAMPLES = """\
examples:
  widemargin convert huge.svm.xz huge.arrow
  widemargin convert --max-memory 3G --compression zstd huge.svm huge.arrow
  widemargin convert --label clicked --columns age,country,device clicks.parquet clicks.arrow
  widemargin convert --label y.npy X.npy data.arrow
  xzcat huge.svm.xz | widemargin convert - huge.arrow

Rows are written in random order, so that the first part of OUTPUT is a random sample of all, which training begins
with; consecutive rows with the same qid, a query, stay together. --keep-order keeps the order. The same DATA, seed and
options give the same OUTPUT to the last bit. Numbers are stored in the narrowest types that hold them without loss.

Of a table, --label names the column with the labels, and all columns that are not named are features unless --columns
chooses some. A column of strings becomes a feature for each of its values, which is 1 where the column has this value.
Values that are missing, NaN or infinite are refused, with row and column.

Memory does not grow with DATA: what --max-memory does not hold is kept in temporary files beside OUTPUT, in the folder
of TMPDIR if that is standard output. OUTPUT is replaced when the new file is complete. Needs the extra "arrow":
pip install "widemargin[arrow]".

exit status:
  0  done      1  the data or the run failed      2  wrong usage"""


def make_parser():
    """Return the parser of `widemargin convert`."""
    parser = Parser("convert", ["DATA", "OUTPUT"], description=_DESCRIPTION, examples=_EXAMPLES)
    add = parser.add_argument
    add("--label", metavar="COLUMN", help="of a table: the column with the labels; of an array: a .npy file with them")
    add("--qid", metavar="COLUMN", help="of a table: the column with the queries; of an array: a .npy file with them")
    add("--weight", metavar="COLUMN",
        help="of a table: the column with the weights of rows; of an array: a .npy file with them")  # fmt: skip
    add("--columns", metavar="A,B,...", help="of a table: the columns that are features (default: all others)")
    add("--features", type=whole(1), metavar="N", help="of text: the number of columns (default: the largest index)")
    add("--zero-based", type=yes_or_no, default=False, metavar="yes|no",
        help="of text: whether indices count from 0 (default: no)")  # fmt: skip
    add("--float32", action="store_true", help="of text: round values to single precision, which halves the size")
    add("--keep-order", action="store_true", help="keep the order of the rows")
    add("--seed", type=whole(0), default=0, metavar="N", help="the same seed gives the same order (default: 0)")
    add("--compression", choices=list(_COMPRESSIONS), default="none",
        help="of blocks; lz4 and zstd save space, none is read fastest from a fast disk (default: none)")  # fmt: skip
    add("--max-memory", metavar="SIZE",
        help="memory that may be used, such as 3G or 500M (default: half of what is free)")  # fmt: skip
    add_output_options(parser, quiet="print nothing but warnings and errors")
    return parser


def run(tokens):
    """Convert as the options say; return the exit status."""
    options = make_parser().parse(tokens)
    data, output = options.files
    names = ("label", "qid", "weight", "zero_based", "keep_order", "seed", "max_memory")
    from widemargin.workflows.convert import convert_file

    with reporting(options):
        written = convert_file(
            data,
            output,
            columns=None if options.columns is None else options.columns.split(","),
            n_features=options.features,
            dtype="float32" if options.float32 else None,
            compression=_COMPRESSIONS[options.compression],
            **{name: getattr(options, name) for name in names},
        )
    show_result(written, options, sys.stderr if output == "-" else sys.stdout)
    return 0
