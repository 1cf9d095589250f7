"""`widemargin predict`: predict the rows of a file, and compare with its labels; see `predict_file`."""

import sys

from widemargin.cli.messages import add_output_options, reporting, show_result
from widemargin.cli.options.parsing import SVMLIGHT_TASKS, ZERO_BASED, Parser, add_zero_based_option, switch

_DESCRIPTION = """\
Predict a label for each row of DATA with MODEL (of widemargin, LIBSVM, LIBLINEAR or SVM-light), one per line of
OUTPUT; "-" is standard input or output. The predictions are compared with the labels in DATA, which may be 0 if they
are not known. A ranking model predicts scores, of which only the order within a query has a meaning."""

_EXAMPLES = """\
examples:
  widemargin predict heart_scale.t heart_scale.model heart.out
  widemargin predict -b 1 heart_scale.t heart_scale.model heart.out
  widemargin predict --json heart_scale.t heart_scale.model /dev/null
  widemargin predict --scores heart_scale.t heart_scale.model - | head
  widemargin predict --task rank test.dat svm_rank.model scores

With -b 1 the first line of OUTPUT is `labels 1 -1`, and each further line is a label and the probabilities of these
classes; for a one-class model the first line is `label normal outlier`. For regression, -b 1 prints the distribution of
the noise as svm-predict does. With --scores the first line is `label` and the names of the decision values: the
positive class of two, each class of a linear model, or pairs of classes of a kernel machine, such as 1/2, for which a
positive value means the first class.

DATA may be a row-block file, recognised by its content: blocks are read one by one, and OUTPUT is written meanwhile.
Features that are missing in DATA are zero. Features that the model does not have are dropped with a warning if the
model is linear; for a kernel machine they are features that were zero in all training rows.

The measures depend on the model. Classification: accuracy. Regression: mean squared error and squared correlation.
Ranking: a pair is two rows of one query with different labels; it is swapped if the row with the larger label has the
smaller score, and tied if their scores are equal. Concordance is the fraction of pairs that are not swapped, where tied
pairs count half, over all pairs and as the mean over queries with pairs (svm_rank_classify counts tied pairs as
swapped). NDCG@10 has the gain 2^label - 1 and the discount log2(1 + rank), rows with equal scores have their mean gain,
and the mean is over queries that have a label above 0. Ordinal: accuracy and mean absolute error of ranks. ROC area:
ROC area and accuracy. Measure: the measure of the model, F1, PRBEP (the precision of the n rows with the largest
scores, n being the number of positive rows), precision, recall, ROC area and accuracy. An undefined measure is nan, or
null with --json.

exit status:
  0  done      1  the data, the model or the run failed      2  wrong usage      130  interrupted, nothing written"""


def make_parser():
    """Return the parser of `widemargin predict`."""
    parser = Parser("predict", ["DATA", "MODEL", "OUTPUT"], description=_DESCRIPTION, examples=_EXAMPLES)
    add = parser.add_argument
    add("--scores", action="store_true",
        help="write decision values after each label, and their names in the first line")  # fmt: skip
    add("-b", type=switch, default=False, dest="probability", metavar="0|1",
        help="1: write probabilities after each label, of a model trained with -b 1 or --loss log_loss (default: "
        "0)")  # fmt: skip
    add("--task", choices=SVMLIGHT_TASKS, help="what a model of SVM-light's text is for, which does not say unless "
        "widemargin wrote it (default: classification)")  # fmt: skip
    add_zero_based_option(parser)
    add_output_options(parser, quiet="print nothing but warnings and errors")
    return parser


def run(tokens):
    """Predict the rows; return the exit status."""
    options = make_parser().parse(tokens)
    data, model_path, output = options.files
    from widemargin.workflows.predict import predict_file

    with reporting(options):
        found = predict_file(
            data, model_path, output, scores=options.scores, probability=options.probability, task=options.task,
            zero_based=ZERO_BASED[options.zero_based],
        )  # fmt: skip
    stream = sys.stderr if output == "-" else sys.stdout
    show_result(found, options, stream)
    return 0
