"""`widemargin export`: a model for ONNX runtimes, or as a program in Python or C; see `export_file`."""

import sys

from widemargin.cli.messages import add_output_options, reporting, show_result
from widemargin.cli.options.parsing import Parser

_DESCRIPTION = """\
Write the model MODEL (of widemargin, LIBSVM, LIBLINEAR or SVM-light) to OUTPUT for places without this package; "-" is
standard input or output."""

_EXAMPLES = """\
examples:
  widemargin train -t 2 heart_scale rbf.model
  widemargin export --to onnx rbf.model rbf.onnx
  widemargin export --to onnx --float32 rbf.model small.onnx
  widemargin train heart_scale heart.model
  widemargin export --to numpy heart.model heart_scorer.py
  widemargin export --to c --prefix heart heart.model heart.c

onnx is a graph that onnxruntime and other servers of models compute. It takes rows X and returns label, decision and,
if the model has them, probabilities; of regressions and rankings, prediction. Rows, results and kernel values are
double precision unless --float32 asks for single precision. Precomputed kernels cannot be exported. It needs the extra
"export": pip install "widemargin[export]".

numpy is a Python file with functions predict, decision_function and predict_proba that needs NumPy only, and c is a
file of C99 with the same functions of one row. Both are for linear models.

exit status:
  0  done      1  the model or the run failed      2  wrong usage"""


def make_parser():
    """Return the parser of `widemargin export`."""
    parser = Parser("export", ["MODEL", "OUTPUT"], description=_DESCRIPTION, examples=_EXAMPLES)
    add = parser.add_argument
    add("--to", choices=["onnx", "numpy", "c"], default="onnx", help="what to write (default: onnx)")
    add("--float32", action="store_true", help="of onnx: rows, results and kernel values in single precision")
    add("--prefix", metavar="WORD", help="of c: the beginning of all names (default: svm)")
    add_output_options(parser, quiet="print nothing but warnings and errors")
    return parser


def run(tokens):
    """Export the model; return the exit status."""
    options = make_parser().parse(tokens)
    model, output = options.files
    from widemargin.workflows.export import export_file

    dtype = "float32" if options.float32 else None
    with reporting(options):
        made = export_file(model, output, to=options.to, dtype=dtype, prefix=options.prefix)
    show_result(made, options, sys.stderr if output == "-" else sys.stdout)
    return 0
