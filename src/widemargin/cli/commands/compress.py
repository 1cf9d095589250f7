"""`widemargin compress`: a kernel machine on fewer vectors; see `compress_file`."""

import sys

from widemargin.cli.messages import add_output_options, reporting, show_result
from widemargin.cli.options.parsing import ZERO_BASED, Parser, add_zero_based_option, positive, whole

_DESCRIPTION = """\
Write the kernel machine MODEL (of widemargin or LIBSVM) to OUTPUT with fewer support vectors, so that it predicts in
proportion faster, and print how far it is from MODEL; "-" is standard input or output."""

_EXAMPLES = """\
examples:
  widemargin train --kernel rbf heart_scale rbf.model
  widemargin compress --vectors 50 rbf.model small.model
  widemargin compress --vectors 50 --rows heart_scale --refit vectors rbf.model small.model
  widemargin compress --max-change 0.01 rbf.model small.model
  widemargin compress --vectors 50 --format libsvm rbf.model small.model

Vectors are chosen among the support vectors one after the other, each so that the distance from MODEL falls most, in
the norm of the kernel's space; their coefficients make it as small as these vectors can. The kernel is rbf, linear, or
poly with coef0 >= 0. --max-change is a proof for every row if the kernel is rbf, and for those of --rows otherwise;
such proofs take many vectors.

--rows names a file such as that of training, whose labels are not used. The largest change of its decision values and
the fraction of equal labels are printed. With --refit coefficients, coefficients and intercepts are fitted to the
decision values of MODEL at these rows by least squares, which usually changes predictions much less; --refit vectors
also moves the vectors (rbf only), which changes them least and takes longest. Probabilities keep their parameters.

exit status:
  0  done      1  the data, the model or the run failed      2  wrong usage"""


def make_parser():
    """Return the parser of `widemargin compress`."""
    parser = Parser("compress", ["MODEL", "OUTPUT"], description=_DESCRIPTION, examples=_EXAMPLES)
    add = parser.add_argument
    add("--vectors", type=whole(1), dest="n_vectors", metavar="N", help="how many vectors to keep")
    add("--max-change", type=positive, metavar="X",
        help="keep as few vectors as prove that no decision value changes by more than X")  # fmt: skip
    add("--rows", metavar="FILE", help="SVM-light / LIBSVM text, such as the training rows")
    add("--refit", choices=["coefficients", "vectors"], help="what to fit to the decision values of MODEL at the rows")
    add("--format", choices=["widemargin", "libsvm"], default="widemargin", help="of OUTPUT (default: widemargin)")
    add_zero_based_option(parser, more=", of --rows")
    add_output_options(parser, quiet="print nothing but warnings and errors")
    return parser


def run(tokens):
    """Compress the model; return the exit status."""
    options = make_parser().parse(tokens)
    model, output = options.files
    from widemargin.workflows.compress import compress_file

    with reporting(options):
        made = compress_file(
            model, output, n_vectors=options.n_vectors, max_change=options.max_change, rows=options.rows,
            refit=options.refit, format=options.format, zero_based=ZERO_BASED[options.zero_based],
        )  # fmt: skip
    show_result(made, options, sys.stderr if output == "-" else sys.stdout)
    return 0
