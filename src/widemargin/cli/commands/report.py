"""`widemargin report`: a model and rows in, one page out that says and shows how good the model is."""

import os
import shlex
import sys

from widemargin._runtime.atomic_file import replacing
from widemargin.cli.files import ZERO_BASED, check_target, read_model
from widemargin.cli.messages import CommandError, UsageError, naming, print_facts, print_json
from widemargin.cli.model_rows import read_rows_for
from widemargin.cli.options.parsing import Parser
from widemargin.cli.progress import add_progress_option, reporting
from widemargin.errors import FormatError
from widemargin.models.cutting_plane.ranking import RankSVM
from widemargin.persistence.svmlight import TASKS
from widemargin.report.markup import size
from widemargin.report.model_report import report_page
from widemargin.selection.results_file import read_grid

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
    add("--zero-based", choices=list(ZERO_BASED), default="auto",
        help="whether indices count from 0 (default: auto, yes if index 0 occurs); the page numbers features likewise, "
        "from 1 unless this is yes")  # fmt: skip
    add_progress_option(parser)
    add("-q", "--quiet", action="store_true", help="print nothing but warnings and errors")
    add("--json", action="store_true", help="print one JSON object instead of text")
    return parser


def run(tokens, command=None):
    """Write the report that the options ask for; return the exit status.

    `command` is the line that made it, as the page shows it; None takes the tokens as they are.
    """
    options = make_parser().parse(tokens)
    model_path, data = options.files
    if data == "-" and model_path == "-":
        raise UsageError("DATA and MODEL cannot both be standard input")
    target = _choose_target(model_path, options.output)
    check_target(target, *filter(None, (model_path, data, options.grid)))
    with reporting(options):
        page = _make(options, command or shlex.join(["widemargin", "report", *tokens]))
    content = page.encode("utf-8", "backslashreplace")  # file names may hold bytes that are no characters
    _write(content, target)
    _tell(target, len(content), options)
    return 0


def _choose_target(model_path, output):
    """Return where the page goes."""
    if output is None and model_path == "-":
        raise UsageError("-o/--output must be given if MODEL is standard input")
    return os.path.basename(model_path) + ".html" if output is None else output


def _make(options, command):
    """Return the page."""
    model_path, data = options.files
    grid = None if options.grid is None else _read_grid(options.grid)
    model = _read_model(model_path, data, options.task)
    X, y, qid = read_rows_for(model, data, model_path, zero_based=options.zero_based, quiet=options.quiet)
    if getattr(getattr(model, "classes_", None), "dtype", y.dtype).kind not in "biuf":
        raise CommandError(
            f"{model_path}: its classes are words, such as {str(model.classes_[0])!r}, and labels in a data file are "
            "numbers; train on numbers, or make the page in Python: widemargin.report.model_report.report_page"
        )
    names = {"model_name": _name(model_path), "data_name": _name(data), "title": options.title}
    first = 0 if options.zero_based == "yes" else 1
    query = qid if isinstance(model, RankSVM) else None
    return report_page(model, X, y, query, **names, grid=grid, command=command, first_feature=first)


def _read_grid(path):
    """Return the results of a grid search, which must have a point."""
    with naming(path):
        grid = read_grid(path)
    if not grid.points:
        raise CommandError(
            f"{path}: no point of the grid has all its folds yet; let the search go on, or leave --grid out"
        )
    return grid


def _read_model(model_path, data, task):
    """Return the model; if the files were given in the order of predict, say so."""
    try:
        return read_model(model_path, task)
    except FormatError as error:
        if model_path != "-" and data != "-" and _is_model(data):
            raise UsageError(f"{data} is a model and {model_path} is not; the order is: report MODEL DATA") from error
        raise


def _is_model(path):
    try:
        read_model(path)
    except (FormatError, OSError):
        return False
    return True


def _name(path):
    return "standard input" if path == "-" else os.path.basename(path)


def _write(content, target):
    if target == "-":
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    with naming(target), replacing(target) as file:
        file.write(content)


def _tell(target, n_bytes, options):
    """Say what was written."""
    stream = sys.stderr if target == "-" else sys.stdout
    if options.json:
        print_json({"report": target, "bytes": n_bytes}, stream)
    elif not options.quiet:
        print_facts({"report": "standard output" if target == "-" else target, "size": size(n_bytes)}, stream)
