"""`widemargin predict`: a model and rows in, a label per line out, and how many of them agree with the data."""

import sys

import numpy as np
from sklearn.base import is_classifier

from widemargin._compiled import announcing_compilation
from widemargin.progress import ProgressReport
from widemargin.tools.evaluation import measure, prediction_lines
from widemargin.tools.files import ZERO_BASED, check_target, read_model, read_rows, write_lines
from widemargin.tools.messages import UsageError, print_json, say
from widemargin.tools.options import Parser

_DESCRIPTION = """\
Predict a label for each row of DATA with MODEL (of widemargin or LIBLINEAR), one per line of OUTPUT; "-" is standard
input or output. The labels in DATA serve to measure the predictions; write 0 where they are not known."""

_EXAMPLES = """\
examples:
  widemargin predict heart_scale.t heart_scale.model heart.out
  widemargin predict --json heart_scale.t heart_scale.model /dev/null
  widemargin predict --scores heart_scale.t heart_scale.model - | head

Rows may have fewer features than the model (the others are zero there); further columns are dropped with a warning.

exit status:
  0  done      1  the data, the model or the run failed      2  wrong usage"""


def make_parser():
    """Return the parser of `widemargin predict`."""
    parser = Parser("predict", ["DATA", "MODEL", "OUTPUT"], description=_DESCRIPTION, examples=_EXAMPLES)
    add = parser.add_argument
    add("--scores", action="store_true",
        help="write decision values after each label; the first line names the labels they belong to")  # fmt: skip
    add("--zero-based", choices=list(ZERO_BASED), default="auto",
        help="whether indices count from 0 (default: auto, yes if index 0 occurs)")  # fmt: skip
    add("-q", "--quiet", action="store_true", help="print nothing but warnings and errors")
    add("--json", action="store_true", help="print one JSON object instead of text")
    parser.refuse_kernel_letters()
    return parser


def run(tokens):
    """Predict as the options say; return the exit status."""
    options = make_parser().parse(tokens)
    data, model_path, output = options.files
    if data == "-" and model_path == "-":
        raise UsageError("DATA and MODEL cannot both be standard input")
    check_target(output, data, model_path)
    with ProgressReport(0 if options.quiet else 1) as report, announcing_compilation(report.compiling):
        model = read_model(model_path)
        if options.scores and not is_classifier(model):
            raise UsageError(f"--scores is for classification, {model_path} is a regression model; leave it out")
        X, y = read_rows(data, zero_based=ZERO_BASED[options.zero_based])
        X = _fit_width(X, model.n_features_in_, data)
        predicted = model.predict(X)
    write_lines(_output_lines(model, X, predicted, options.scores), output)
    facts = measure(y, predicted, is_classifier(model))
    stream = sys.stderr if output == "-" else sys.stdout
    if options.json:
        print_json(facts, stream)
    elif not options.quiet:
        print("\n".join(prediction_lines(facts)), file=stream)
    return 0


def _fit_width(X, n_features, data):
    """Return X with as many columns as the model has features."""
    if X.shape[1] > n_features:
        say("warning", f"{data} has {X.shape[1]} features, the model {n_features}: the columns beyond are dropped")
        return X[:, :n_features]
    X.resize(X.shape[0], n_features)
    return X


def _output_lines(model, X, predicted, with_scores):
    """Return the lines of OUTPUT: labels, or a heading and labels with decision values."""
    lines = _number_texts(predicted)
    if with_scores:
        scores = model.decision_function(X).reshape(len(lines), -1)
        named = model.classes_ if scores.shape[1] > 1 else model.classes_[1:]
        rows = [" ".join(map(repr, row)) for row in scores.tolist()]
        lines = [" ".join(["label", *_number_texts(named)]), *map(" ".join, zip(lines, rows, strict=True))]
    return lines


def _number_texts(numbers):
    """Return texts that read back as the same numbers, whole ones without a point."""
    return [text.removesuffix(".0") for text in map(repr, np.asarray(numbers).tolist())]
