"""`widemargin report`: write a page about a model and its predictions; see `report_file`."""

import shlex
import sys

from widemargin.cli.messages import add_output_options, reporting, show_result
from widemargin.cli.options.parsing import SVMLIGHT_TASKS, ZERO_BASED, Parser, add_zero_based_option

_DESCRIPTION = """\
Write a page of HTML about MODEL (of widemargin, LIBSVM, LIBLINEAR or SVM-light) and its predictions on DATA. The page
is one file, needs no network, and can be read on a screen, a phone or paper, with a mouse or a keyboard."""

_EXAMPLES = """\
examples:
  widemargin report heart.model heart_scale.t
  widemargin report -o heart.html --title "Heart disease" heart.model heart_scale.t
  widemargin report --grid heart_scale.grid heart.model heart_scale.t
  widemargin report --task rank -o rank.html svm_rank.model test.dat

The page shows a summary of DATA, the parameters, the certificate and the convergence of the gap. For classification it
has the confusion matrix, precision and recall of each class, ROC and precision/recall curves, margins, and calibration
if MODEL has probabilities; for regression predictions against targets, and errors; for ranking concordance, NDCG and
scores; for one-class models outliers. It lists the features with the largest influence, or the support vectors. With
--grid it shows the scores of a grid search. Below each figure is a table of its values.

The same files give the same page, byte for byte, because it has no date. "-" is standard input or output.

exit status:
  0  done      1  the data, the model or the run failed      2  wrong usage"""


def make_parser():
    """Return the parser of `widemargin report`."""
    parser = Parser("report", ["MODEL", "DATA"], description=_DESCRIPTION, examples=_EXAMPLES)
    add = parser.add_argument
    add("-o", "--output", metavar="FILE", help="file of the page (default: MODEL.html in the current directory)")
    add("--grid", metavar="FILE", help="results file of a grid search, which is shown as a figure")
    add("--title", help="the heading of the page (default: the names of the files)")
    add("--task", choices=SVMLIGHT_TASKS, help="task of a model in SVM-light's text, which contains it only if "
        "widemargin wrote the file (default: classification)")  # fmt: skip
    add_zero_based_option(parser, "; the page numbers features likewise, from 1 unless this is yes")
    add_output_options(parser, quiet="print nothing but warnings and errors")
    return parser


def run(tokens):
    """Write the page; return the exit status."""
    options = make_parser().parse(tokens)
    model_path, data = options.files
    from widemargin.workflows.report import report_file

    with reporting(options):
        report = report_file(
            model_path, data, options.output, grid=options.grid, title=options.title, task=options.task,
            zero_based=ZERO_BASED[options.zero_based], command=shlex.join(["widemargin", "report", *tokens]),
        )  # fmt: skip
    stream = sys.stderr if report.path == "-" else sys.stdout
    show_result(report, options, stream)
    return 0
