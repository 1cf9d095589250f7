"""`widemargin report`: a model and rows in, one page out that says and shows how good the model is."""

import shlex
import sys

from widemargin.cli.messages import add_output_options, reporting, show_result
from widemargin.cli.options.parsing import ZERO_BASED, Parser, add_zero_based_option
from widemargin.persistence.svmlight import TASKS
from widemargin.workflows.report import report_file

_DESCRIPTION = """\
Write a page of HTML about MODEL (of widemargin, LIBSVM, LIBLINEAR or SVM-light) and how it does on DATA: one file that
needs no network, for a screen, a phone or paper, light and dark, with mouse or keyboard."""

_EXAMPLES = """\
examples:
  widemargin report heart.model heart_scale.t
  widemargin report -o heart.html --title "Heart disease" heart.model heart_scale.t
  widemargin report --grid heart_scale.grid heart.model heart_scale.t
  widemargin report --task rank -o rank.html svm_rank.model test.dat

It shows a summary of DATA, the parameters, the certificate and how the gap closed. Classes: confusion matrix, precision
and recall of each class, ROC and precision/recall curves, margins, and calibration if MODEL has probabilities.
Numbers: predicted against true, errors. Rankings: pairs in order, NDCG, scores. One class: outliers. Then the features
with the most influence, or the support vectors, and with --grid the picture of a grid search. Under each figure stands
what it shows as a table.

The same files give the same page, to the byte: it bears no date. "-" is standard input or output.

exit status:
  0  done      1  the data, the model or the run failed      2  wrong usage"""


def make_parser():
    """Return the parser of `widemargin report`."""
    parser = Parser("report", ["MODEL", "DATA"], description=_DESCRIPTION, examples=_EXAMPLES)
    add = parser.add_argument
    add("-o", "--output", metavar="FILE", help="where the page goes (default: MODEL.html, here)")
    add("--grid", metavar="FILE", help="the results of a grid search, to be drawn as well")
    add("--title", help="the heading of the page (default: the names of the files)")
    add("--task", choices=list(TASKS), help="what a model of SVM-light's text is for, which does not say unless "
        "widemargin wrote it (default: classification)")  # fmt: skip
    add_zero_based_option(parser, "; the page numbers features likewise, from 1 unless this is yes")
    add_output_options(parser, quiet="print nothing but warnings and errors")
    return parser


def run(tokens):
    """Write the report that the options ask for; return the exit status."""
    options = make_parser().parse(tokens)
    model_path, data = options.files
    with reporting(options):
        report = report_file(
            model_path, data, options.output, grid=options.grid, title=options.title, task=options.task,
            zero_based=ZERO_BASED[options.zero_based], command=shlex.join(["widemargin", "report", *tokens]),
        )  # fmt: skip
    stream = sys.stderr if report.path == "-" else sys.stdout
    show_result(report, options, stream)
    return 0
