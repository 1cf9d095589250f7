"""`export_c`: a fitted linear model as a file of C99 that needs nothing but the standard library.

For a prefix P, the file defines

    P_N_FEATURES, P_N_CLASSES                           numbers
    P_labels[P_N_CLASSES]                               the labels of the classes
    void P_decision_function(const double *x, double *decision)
    int P_predict(const double *x)                      the number of the class, or 1 and −1; double of regressions
    void P_predict_proba(const double *x, double *p)    with the log loss
"""

import re
from typing import Any

import numpy as np

from widemargin._runtime.argument_types import FilePath
from widemargin._runtime.atomic_file import replacing
from widemargin._runtime.version import __version__
from widemargin.persistence.export.scorer import (
    Inlier,
    LargestScore,
    Number,
    Ordered,
    SecondIfPositive,
    linear_scorer_of,
)

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_NUMBERS_PER_LINE = 4
_SCORES = """\
static void P_scores(const double *x, double *scores)
{
    for (int k = 0; k < P_N_OUTPUTS; k++) {
        double sum = 0.0;
        for (int j = 0; j < P_N_FEATURES; j++) {
            const double product = P_coef[k][j] * x[j];
            sum += product;
        }
        scores[k] = sum + P_intercept[k];
    }
}
"""
_NUMBER = """
/* The prediction of a row x of P_N_FEATURES numbers. */
double P_predict(const double *x)
{
    double score;
    P_scores(x, &score);
    return score;
}
"""
_TWO = """
/* The score of a row x of P_N_FEATURES numbers, one number, positive for the second class. */
void P_decision_function(const double *x, double *decision)
{
    P_scores(x, decision);
}

/* The number of the class of a row, whose label is P_labels[number]. */
int P_predict(const double *x)
{
    double score;
    P_scores(x, &score);
    return score > 0.0;
}
"""
_LOGISTIC = """
static double P_logistic(double score)
{
    return score >= 0.0 ? 1.0 / (1.0 + exp(-score)) : exp(score) / (1.0 + exp(score));
}

/* The probabilities of the two classes. */
void P_predict_proba(const double *x, double *p)
{
    double score;
    P_scores(x, &score);
    p[0] = P_logistic(-score);
    p[1] = P_logistic(score);
}
"""
_LARGEST = """
/* The scores of a row x of P_N_FEATURES numbers, one for each class. */
void P_decision_function(const double *x, double *decision)
{
    P_scores(x, decision);
}

/* The number of the class of a row, whose label is P_labels[number]. */
int P_predict(const double *x)
{
    double scores[P_N_OUTPUTS];
    int largest = 0;
    P_scores(x, scores);
    for (int k = 1; k < P_N_OUTPUTS; k++)
        if (scores[k] > scores[largest])
            largest = k;
    return largest;
}
"""
_LOGISTICS = """
/* The probabilities of all classes: logistic functions of scores, divided by their sum; logarithms first. */
void P_predict_proba(const double *x, double *p)
{
    double largest, sum = 0.0;
    P_scores(x, p);
    for (int k = 0; k < P_N_OUTPUTS; k++)
        p[k] = (p[k] < 0.0 ? p[k] : 0.0) - log1p(exp(p[k] < 0.0 ? p[k] : -p[k]));
    largest = p[0];
    for (int k = 1; k < P_N_OUTPUTS; k++)
        largest = p[k] > largest ? p[k] : largest;
    for (int k = 0; k < P_N_OUTPUTS; k++) {
        p[k] = exp(p[k] - largest);
        sum += p[k];
    }
    for (int k = 0; k < P_N_OUTPUTS; k++)
        p[k] /= sum;
}
"""
_ORDERED = """
/* The distance of the score of a row x of P_N_FEATURES numbers to the nearest bound of the interval of each class;
   of two classes, one number, the score minus the threshold. */
void P_decision_function(const double *x, double *decision)
{
    double score;
    P_scores(x, &score);
    if (P_N_CLASSES == 2) {
        decision[0] = score - P_thresholds[0];
        return;
    }
    for (int k = 0; k < P_N_CLASSES; k++) {
        const int last = k == P_N_CLASSES - 1;
        const double below = last ? 0.0 : P_thresholds[k] - score;
        const double above = k ? score - P_thresholds[k - 1] : below;
        decision[k] = last || above < below ? above : below;
    }
}

/* The number of the class of a row, whose label is P_labels[number]. */
int P_predict(const double *x)
{
    double score;
    int rank = 0;
    P_scores(x, &score);
    while (rank < P_N_CLASSES - 1 && score > P_thresholds[rank])
        rank++;
    return rank;
}
"""
_INLIER = """
/* The score of a row x of P_N_FEATURES numbers, one number: negative of outliers, zero within rounding of the
   boundary. */
void P_decision_function(const double *x, double *decision)
{
    P_scores(x, decision);
    if (*decision <= P_rounding && *decision >= -P_rounding)
        *decision = 0.0;
}

/* 1 of an inlier, -1 of an outlier. */
int P_predict(const double *x)
{
    double decision;
    P_decision_function(x, &decision);
    return decision >= 0.0 ? 1 : -1;
}
"""


def export_c(model: Any, path: FilePath, *, prefix: str = "svm") -> None:
    """Write a fitted linear model as a file of C99 that needs nothing but the standard library.

    The file defines `svm_predict`, `svm_decision_function` (not of regressions and RankSVM) and, with the loss
    "log_loss", `svm_predict_proba`, for one row each, and the array `svm_labels` of classifiers. `svm_predict` returns
    the number of a class, 1 or -1 of one-class models, or the prediction of regressions and RankSVM. No memory is
    allocated and nothing is changed, so that threads may share the functions.

    Weights are written as hexadecimal numbers, the same to the bit. Scores are sums in the order of the features, in
    double precision, and differ from those of the model by the rounding of this order.

    Parameters
    ----------
    model : LinearSVC, LinearSVR, LinearOneClassSVM, RankSVM, OrdinalSVC, ROCAreaSVC or MeasureSVC
        A fitted model with a weight for each feature; also SVR and NuSVR with kernel="linear". For a LinearSVCCV or
        LinearSVRCV the selected model is exported, and for an estimator of `widemargin.dask` the ordinary one.
    path : str or path
        File to write; a file of that name is replaced only when the new one is complete.
    prefix : str, default="svm"
        The beginning of all names in the file, so that a program can have several models: letters, digits and
        underscores, a letter first.

    Raises
    ------
    TypeError
        If the model is not linear, or its labels are neither numbers, booleans nor strings.
    NotFittedError
        If the model has not been fitted.
    ValueError
        If the prefix is no such word, or the model is not valid: weights that are not finite, or shapes that do not
        match.
    OSError
        If the file cannot be written; an existing file is then unchanged.

    Examples
    --------
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import LinearSVC, export_c
    >>> export_c(LinearSVC(C=0.1, random_state=0).fit(*load_iris(return_X_y=True)), "iris.c", prefix="iris")
    >>> "int iris_predict(const double *x)" in Path("iris.c").read_text()
    True
    """
    if not isinstance(prefix, str) or not _IDENTIFIER.fullmatch(prefix):
        raise ValueError(
            f"prefix must be letters, digits and underscores of ASCII, a letter first, got {prefix!r}: names in C "
            "begin with it."
        )
    scorer = linear_scorer_of(model, "export_c")
    with replacing(path) as file:
        file.write(_text(scorer, prefix).encode())


def _text(scorer, prefix):
    """Return the C file of a Scorer."""
    weights, classes = scorer.function.weights, scorer.classes
    numbers = {"N_FEATURES": scorer.n_features, "N_OUTPUTS": len(weights)}
    numbers |= {} if classes is None else {"N_CLASSES": len(classes)}
    constants, functions = _TEXTS[type(scorer.outcome)](scorer.outcome)
    head = [
        f"/* {scorer.name} with {scorer.n_features} features in C99; widemargin {__version__} has written this. */\n",
        "#include <math.h>\n" if getattr(scorer.outcome, "logistic", False) else "",
        f"enum {{ {', '.join(f'P_{name} = {number}' for name, number in numbers.items())} }};\n",
        f"static const double P_coef[P_N_OUTPUTS][P_N_FEATURES] = {{\n{_braced_lines(weights)}\n}};\n",
        f"static const double P_intercept[P_N_OUTPUTS] = {_braced(scorer.function.intercept)};\n",
        constants,
    ]
    labels = "" if classes is None else f"const {_labels(classes, f'{prefix}_labels[{prefix}_N_CLASSES]')};\n\n"
    return _named("\n".join(filter(None, head)), prefix) + "\n" + labels + _named(_SCORES + functions, prefix)


def _named(text, prefix):
    """Return a text in which names that begin with P_ begin with the prefix instead."""
    return re.sub(r"\bP_", f"{prefix}_", text)


def _braced(numbers):
    """Return numbers as the initial values of an array, in hexadecimal digits."""
    words = [value.hex() for value in np.asarray(numbers).tolist()]
    lines = [", ".join(words[k : k + _NUMBERS_PER_LINE]) for k in range(0, len(words), _NUMBERS_PER_LINE)]
    return "{" + ",\n ".join(lines) + "}"


def _braced_lines(table):
    """Return the rows of a table as the initial values of an array of arrays."""
    return ",\n".join(map(_braced, table))


def _labels(classes, name):
    """Return the definition of an array of labels, without `const`."""
    values, kind = classes.tolist(), classes.dtype.kind
    if kind == "f":
        return f"double {name} = {_braced(classes)}"
    if kind in "bi":
        return f"long long {name} = {{{', '.join(map(_integer, values))}}}"
    return f"char *const {name} = {{{', '.join(map(_quoted, values))}}}"


def _integer(value):
    """Return an integer in C, which has no literal of the smallest one."""
    return f"{int(value)}LL" if value > -(2**63) else "-9223372036854775807LL - 1"


def _quoted(label):
    """Return a string in C, in UTF-8; what is not a plain character of ASCII is written as its octal code."""
    if "\0" in label:
        raise TypeError(f"The label {label!r} has a null character, which ends a string in C.")
    plain = set(range(32, 127)) - set(b'"\\?')  # two ? may begin a trigraph
    return '"' + "".join(chr(byte) if byte in plain else f"\\{byte:03o}" for byte in label.encode()) + '"'


def _number(outcome):
    return "", _NUMBER


def _two(outcome):
    return "", _TWO + (_LOGISTIC if outcome.logistic else "")


def _largest(outcome):
    return "", _LARGEST + (_LOGISTICS if outcome.logistic else "")


def _ordered(outcome):
    return f"static const double P_thresholds[P_N_CLASSES - 1] = {_braced(outcome.thresholds)};\n", _ORDERED


def _inlier(outcome):
    return f"static const double P_rounding = {outcome.rounding.hex()};\n", _INLIER


_TEXTS = {Number: _number, SecondIfPositive: _two, LargestScore: _largest, Ordered: _ordered, Inlier: _inlier}
