"""`widemargin predict`: a model and rows in, a label per line out, and how many of them agree with the data."""

import sys
from itertools import combinations

import numpy as np
from sklearn.base import is_classifier, is_regressor

from widemargin.cli.files import ZERO_BASED, check_target, read_model, write_lines
from widemargin.cli.kernel_summary import laplace_lines
from widemargin.cli.messages import UsageError, print_json, say
from widemargin.cli.model_rows import read_rows_for
from widemargin.cli.options.kernel import machine_of
from widemargin.cli.options.parsing import Parser, switch
from widemargin.cli.progress import add_progress_option, reporting
from widemargin.evaluation.predictions import Prediction, has_probabilities, has_scores, measure, prediction_lines
from widemargin.models.cutting_plane.ranking import RankSVM
from widemargin.models.multiclass import labels_of
from widemargin.persistence.libsvm import written_order
from widemargin.persistence.svmlight import TASKS

_DESCRIPTION = """\
Predict a label for each row of DATA with MODEL (of widemargin, LIBSVM, LIBLINEAR or SVM-light), one per line of
OUTPUT; "-" is standard input or output. The labels in DATA serve to measure the predictions; write 0 where they are not
known. Of a ranking, scores are written, of which only the order within a query has a meaning."""

_EXAMPLES = """\
examples:
  widemargin predict heart_scale.t heart_scale.model heart.out
  widemargin predict -b 1 heart_scale.t heart_scale.model heart.out
  widemargin predict --json heart_scale.t heart_scale.model /dev/null
  widemargin predict --scores heart_scale.t heart_scale.model - | head
  widemargin predict --task rank test.dat svm_rank.model scores

With -b 1 the first line of OUTPUT is `labels 1 -1`, and each other one a label and the probabilities of these classes;
of a one-class model it is `label normal outlier`. For a regression, -b 1 prints the noise instead: svm-predict's lines.
With --scores the first line is `label` and what the values belong to: the class that a positive value speaks for, each
class of a linear model, or 1/2, a pair of classes of a kernel machine, where a positive value speaks for the first.

Rows may have fewer features than the model (the others are zero there). Further columns are dropped with a warning if
the model is linear; to a kernel machine they are features that were zero in training.

What is printed depends on the model. Classification: accuracy. Regression: mean squared error, squared correlation.
Ranking: a pair is two rows of a query with different labels; it is swapped if the row with the larger label has the
smaller score, tied if their scores are equal. Concordance is the part of pairs in order, tied ones counting half: of
all pairs together, and the mean over queries that have pairs. (svm_rank_classify counts tied pairs as swapped.)
NDCG@10: gain 2^label - 1, discount log2(1 + place), divided by that of the best order, equal scores by their mean
gain, mean over queries that have a row with a label above 0. Ordinal: accuracy, mean absolute error of ranks. ROC area:
it and accuracy. Measure: the model's own; F1, PRBEP (the precision of as many rows as are positive), precision, recall,
ROC area, accuracy. nan, or null with --json, is undefined.

exit status:
  0  done      1  the data, the model or the run failed      2  wrong usage      130  interrupted, nothing written"""


def make_parser():
    """Return the parser of `widemargin predict`."""
    parser = Parser("predict", ["DATA", "MODEL", "OUTPUT"], description=_DESCRIPTION, examples=_EXAMPLES)
    add = parser.add_argument
    add("--scores", action="store_true",
        help="write decision values after each label; the first line says what they belong to")  # fmt: skip
    add("-b", type=switch, default=False, dest="probability", metavar="0|1",
        help="1: write probabilities after each label, of a model trained with -b 1 (default: 0)")  # fmt: skip
    add("--task", choices=list(TASKS), help="what a model of SVM-light's text is for, which does not say unless "
        "widemargin wrote it (default: classification)")  # fmt: skip
    add("--zero-based", choices=list(ZERO_BASED), default="auto",
        help="whether indices count from 0 (default: auto, yes if index 0 occurs)")  # fmt: skip
    add_progress_option(parser)
    add("-q", "--quiet", action="store_true", help="print nothing but warnings and errors")
    add("--json", action="store_true", help="print one JSON object instead of text")
    return parser


def run(tokens):
    """Predict as the options say; return the exit status."""
    options = make_parser().parse(tokens)
    data, model_path, output = options.files
    if data == "-" and model_path == "-":
        raise UsageError("DATA and MODEL cannot both be standard input")
    if options.probability and options.scores:
        raise UsageError("-b 1 and --scores both add columns to OUTPUT; leave one of them out")
    check_target(output, data, model_path)
    with reporting(options):
        model = read_model(model_path, options.task)
        _check_abilities(model, options)
        X, y, qid = read_rows_for(model, data, model_path, zero_based=options.zero_based, quiet=options.quiet)
        predicted, lines = _predict(model, X, options)
        write_lines(lines, output)
    scores = model.decision_function(X) if has_scores(model) else None
    query = np.zeros(len(y), int) if qid is None else qid
    _print_measures(model, measure(model, y, Prediction(predicted, scores, query)), options)
    return 0


def _check_abilities(model, options):
    """Refuse an option that the model has nothing for; note what it has and was not asked for."""
    model_path = options.files[1]
    if options.scores and (is_regressor(model) or isinstance(model, RankSVM)):
        kind = "regression" if is_regressor(model) else "ranking"
        raise UsageError(f"--scores is for classification, {model_path} is a {kind} model; leave it out")
    if options.probability and not has_probabilities(model):
        raise UsageError(f"-b 1: {model_path} has no probability estimates; leave it out or train with -b 1")
    if not options.probability and has_probabilities(model) and not options.quiet:
        say("note", f"{model_path} has probability estimates; -b 1 would use them")


def _predict(model, X, options):
    """Return the predictions, and the lines of OUTPUT: labels, or a heading and labels with further numbers."""
    if options.probability and not is_regressor(model):
        predicted, heading, columns = _predict_probabilities(model, X)
    elif options.scores:
        predicted, heading, columns = _predict_scores(model, X)
    else:
        predicted = model.predict(X)
        return predicted, _number_texts(predicted)
    rows = [" ".join(map(repr, row)) for row in columns.tolist()]
    return predicted, [heading, *map(" ".join, zip(_number_texts(predicted), rows, strict=True))]


def _predict_probabilities(model, X):
    """Return predictions, svm-predict's heading of probabilities, and them; the most probable class is predicted."""
    probabilities = model.predict_proba(X)
    if not is_classifier(model):
        return model.predict(X), "label normal outlier", probabilities
    predicted, order = model.classes_[probabilities.argmax(axis=1)], written_order(model)
    return predicted, " ".join(["labels", *_number_texts(model.classes_[order])]), probabilities[:, order]


def _predict_scores(model, X):
    """Return predictions, a heading that says what decision values belong to, and the values."""
    if not is_classifier(model):  # one class, named as it is predicted
        return model.predict(X), "label 1", model.decision_function(X).reshape(-1, 1)
    names, is_machine = _number_texts(model.classes_), machine_of(model) is not None
    if is_machine:
        model.set_params(decision_function_shape="ovo")
    scores = model.decision_function(X).reshape(X.shape[0], -1)
    # Kernel values are dear: once is enough.
    predicted = labels_of(model, -scores if len(names) == 2 else scores) if is_machine else model.predict(X)
    if len(names) == 2:
        names = names[1:]
    elif is_machine:
        names = map("/".join, combinations(names, 2))
    return predicted, " ".join(["label", *names]), scores


def _print_measures(model, facts, options):
    """Print how good the predictions are, and with -b 1 the noise of a regression."""
    stream = sys.stderr if options.files[2] == "-" else sys.stdout
    scale = float(model.laplace_scale_) if options.probability and is_regressor(model) else None
    if options.json:
        print_json(facts if scale is None else {**facts, "laplace_scale": scale}, stream)
    elif not options.quiet:
        lines = [] if scale is None else laplace_lines(scale)
        print("\n".join([*lines, *prediction_lines(model, facts)]), file=stream)


def _number_texts(numbers):
    """Return texts that read back as the same numbers, whole ones without a point."""
    return [text.removesuffix(".0") for text in map(repr, np.asarray(numbers).tolist())]
