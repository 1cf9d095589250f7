"""`widemargin predict`: a model and rows in, a label per line out, and how many of them agree with the data."""

import sys

from widemargin.cli.messages import add_output_options, reporting, show_result
from widemargin.cli.options.parsing import ZERO_BASED, Parser, add_zero_based_option, switch
from widemargin.persistence.svmlight import TASKS
from widemargin.workflows.predict import predict_file

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
    add_zero_based_option(parser)
    add_output_options(parser, quiet="print nothing but warnings and errors")
    return parser


def run(tokens):
    """Predict as the options say; return the exit status."""
    options = make_parser().parse(tokens)
    data, model_path, output = options.files
    with reporting(options):
        found = predict_file(
            data, model_path, output, scores=options.scores, probability=options.probability, task=options.task,
            zero_based=ZERO_BASED[options.zero_based],
        )  # fmt: skip
    stream = sys.stderr if output == "-" else sys.stdout
    show_result(found, options, stream)
    return 0
