"""The section of a report about predicted classes: confusion matrix, ROC and precision/recall curves, margins.

Rows whose label the model does not know have their own lines in the confusion matrix; the curves and the margins are
computed without them.
"""

from itertools import combinations

import numpy as np
from sklearn.metrics import average_precision_score, precision_recall_curve, precision_recall_fscore_support, roc_curve

from widemargin.evaluation import orders
from widemargin.evaluation.retrieval import roc_area
from widemargin.models.cutting_plane.ordinal import OrdinalSVC
from widemargin.models.multiclass import one_against_rest
from widemargin.report import charts, scales
from widemargin.report.figures import Picture
from widemargin.report.markup import card, percent, plural, scrolling, section, table, words
from widemargin.report.report_data import measures_card, name_of

_MAX_CURVES = 10
_MAX_MATRIX_CLASSES = 30
_MAX_TABLE_CLASSES = 100
_MAX_HISTOGRAM_CLASSES = 6
_POINTS_OF_ONE_CURVE, _POINTS_OF_EACH_CURVE = 160, 50
_CALIBRATION_BINS = 10


def classification_section(report):
    """Return the section about predicted classes."""
    if not report.measures:
        return section("predictions", "Predictions", _unlabelled(report))
    cards = [_confusion(report), _classes_table(report)]
    if isinstance(report.model, OrdinalSVC):
        cards.append(_ordinal_scores(report))
    else:
        cards += [*_threshold_curves(report), _margins(report)]
    if type(report.model) in orders.LINES:
        cards.append(measures_card(report))
    if report.probabilities is not None:
        cards.append(_calibration(report))
    return section("predictions", "Predictions", *cards)


def names_of(report):
    """Return the labels as texts."""
    return [name_of(label) for label in report.labels]


def _unlabelled(report):
    """Return a bar chart of the predicted classes, for rows none of whose labels the model knows."""
    counts = np.bincount(report.predicted_index, minlength=report.n_classes)[: report.n_classes]
    names = names_of(report)[: report.n_classes]
    order = np.argsort(-counts, kind="stable")[:_MAX_MATRIX_CLASSES]
    rows = [(names[k], int(counts[k]), percent(counts[k] / len(report.y))) for k in order]
    return charts.bars(
        "predicted", "Predicted classes", "No row has a label that the model knows, so nothing can be measured.",
        [row[0] for row in rows], [row[1] for row in rows], rows=rows, heads=("class", "rows", "of all"),
        x_label="rows",
    )  # fmt: skip


# Confusion matrix


def _confusion(report):
    """Return the confusion matrix; if there are many classes, of those with the most rows."""
    n = len(report.labels)
    counts = np.bincount(report.true_index * n + report.predicted_index, minlength=n * n).reshape(n, n)
    frequent = np.sort(np.argsort(-(counts.sum(axis=0) + counts.sum(axis=1)), kind="stable")[:_MAX_MATRIX_CLASSES])
    right, rows = int(np.trace(counts)), len(report.y)
    summary = f"{right:,} of {plural(rows, 'row')} correct, {percent(right / rows)}. {_worst_error(report, counts)}"
    if n > len(frequent):
        summary += f" The {len(frequent)} most frequent of {n} classes."
    names = [names_of(report)[k] for k in frequent]
    return charts.matrix_of_counts("confusion", "Confusion matrix", summary, names, counts[np.ix_(frequent, frequent)])


def _worst_error(report, counts):
    wrong = counts - np.diag(np.diag(counts))
    if not wrong.any():
        return "There is no error."
    i, j = np.unravel_index(wrong.argmax(), wrong.shape)
    names = names_of(report)
    return f"Most frequent error: {plural(int(wrong[i, j]), 'row')} of class {names[i]} predicted as {names[j]}."


def _classes_table(report):
    """Return a table with precision, recall and F1 of each class."""
    n = report.n_classes
    columns = precision_recall_fscore_support(
        report.true_index, report.predicted_index, labels=np.arange(n), zero_division=np.nan
    )
    names = names_of(report)
    rows = [
        (names[k], *(percent(float(column[k])) for column in columns[:3]), int(columns[3][k]))
        for k in range(min(n, _MAX_TABLE_CLASSES))
    ]
    means = [float(np.nanmean(column)) if not np.isnan(column).all() else np.nan for column in columns[:3]]
    rows.append(("mean", *map(percent, means), int(columns[3].sum())))
    note = f" The first {_MAX_TABLE_CLASSES} of {n}." if n > _MAX_TABLE_CLASSES else ""
    explanation = (
        "Precision: the fraction of the rows predicted as the class that belong to it. "
        f"Recall: the fraction of the rows of the class that are predicted as it.{note}"
    )
    heads = ("class", "precision", "recall", "F1", "rows")
    return card("Classes", words(explanation), scrolling("Classes", table(heads, rows)))


# ROC and precision/recall curves


def _threshold_curves(report):
    """Return the ROC and precision/recall curves; with several classes, of each class against the rest."""
    known, chosen = report.known, _curve_classes(report)
    columns = _scores_by_class(report)[known]
    if report.n_classes == 2:
        chosen = [1] if len(np.unique(report.true_index[known])) == 2 else []
    if not chosen:
        return [card("ROC and precision/recall", words("These curves need rows of at least two classes."))]
    tasks = [(names_of(report)[k], columns[:, k], report.true_index[known] == k) for k in chosen]
    most = _POINTS_OF_ONE_CURVE if len(tasks) == 1 else _POINTS_OF_EACH_CURVE
    against = f"of class {tasks[0][0]}" if len(tasks) == 1 else "of each class against the rest"
    some = f" The {len(tasks)} classes with the most rows." if 2 < len(tasks) < report.n_classes else ""
    return [_roc(tasks, most, against, some), _precision_recall(tasks, most, against, some)]


def _curve_classes(report):
    """Return the classes with the most rows, without those that no row or all rows have."""
    counts = np.bincount(report.true_index[report.known], minlength=report.n_classes)[: report.n_classes]
    frequent = np.argsort(-counts, kind="stable")[:_MAX_CURVES]
    return [int(k) for k in np.sort(frequent) if 0 < counts[k] < counts.sum()]


def _scores_by_class(report):
    """Return a score for each class; with two classes, the decision value and its negative."""
    if report.n_classes == 2:
        return np.column_stack([-report.scores, report.scores])
    if report.is_kernel:
        return one_against_rest(report.scores, report.n_classes)
    return report.scores


def _roc(tasks, most, against, some):
    areas = [roc_area(scores, positive) for _, scores, positive in tasks]
    drawn = []
    for (name, scores, positive), area in zip(tasks, areas, strict=True):
        false, true, threshold = roc_curve(positive, scores)
        at = charts.along(false, true, most)
        rows = zip(false[at].tolist(), true[at].tolist(), threshold[at].tolist(), strict=True)
        rows = [(*([name] if len(tasks) > 1 else []), percent(f), percent(t), _threshold(cut)) for f, t, cut in rows]
        drawn.append((f"{name} ({area:.3f})", false[at], true[at], rows))
    summary = f"ROC area {areas[0]:.4f}" if len(tasks) == 1 else f"ROC area {min(areas):.4f} to {max(areas):.4f}"
    heads = (*(["class"] if len(tasks) > 1 else []), "false positives", "true positives", "score from")
    unit = scales.linear(0.0, 1.0, 4, is_share=True)
    return charts.curves(
        "roc", "ROC curve", f"{summary}, {against}.{some}", drawn, x=unit, y=unit, heads=heads,
        x_label="false positives", y_label="true positives", diagonal=True,
    )  # fmt: skip


def _precision_recall(tasks, most, against, some):
    means = [float(average_precision_score(positive, scores)) for _, scores, positive in tasks]
    drawn = []
    for (name, scores, positive), mean in zip(tasks, means, strict=True):
        precision, recall, threshold = precision_recall_curve(positive, scores, drop_intermediate=True)
        precision, recall, threshold = (
            precision[:-1],
            recall[:-1],
            threshold,
        )  # the last point, precision 1 at recall 0, is a convention
        at = charts.along(recall, precision, most)
        rows = zip(recall[at].tolist(), precision[at].tolist(), threshold[at].tolist(), strict=True)
        rows = [(*([name] if len(tasks) > 1 else []), percent(r), percent(p), _threshold(cut)) for r, p, cut in rows]
        drawn.append((f"{name} ({mean:.3f})", recall[at], precision[at], rows))
    summary = f"{means[0]:.4f}" if len(tasks) == 1 else f"{min(means):.4f} to {max(means):.4f}"
    share = float(np.mean(tasks[0][2]))
    base = f" Predicting every row as positive has a precision of {percent(share)}." if len(tasks) == 1 else ""
    heads = (*(["class"] if len(tasks) > 1 else []), "recall", "precision", "score from")
    unit = scales.linear(0.0, 1.0, 4, is_share=True)
    return charts.curves(
        "precision-recall", "Precision and recall", f"Average precision {summary}, {against}.{base}{some}", drawn,
        x=unit, y=unit, heads=heads, x_label="recall", y_label="precision",
        level=(share, "all positive") if len(tasks) == 1 else None,
    )  # fmt: skip


def _threshold(cut):
    return float(cut) if np.isfinite(cut) else "none"


# Margins and scores


def _margins(report):
    """Return a histogram of the margins."""
    true = report.true_index[report.known]
    margin, guides, meaning = _margins_of(report, true)
    wrong, within = np.mean(margin < 0), np.mean((margin >= 0) & (margin < 1))
    summary = f"{meaning} {percent(float(wrong))} of the rows are on the wrong side"
    summary += f", {percent(float(within))} on the right side within the margin." if len(guides) == 3 else "."
    groups = {"all classes": margin}
    if report.n_classes <= _MAX_HISTOGRAM_CLASSES:
        groups = {f"class {names_of(report)[k]}": margin[true == k] for k in np.unique(true)}
    return charts.histogram("margins", "Margins", summary, groups, x_label="margin", guides=guides)


def _margins_of(report, true):
    """Return the margins of the rows with a known label, lines to draw, and a sentence that defines the margin."""
    scores, lines = report.scores[report.known], [(-1.0, "−1"), (0.0, "0"), (1.0, "1")]
    if report.n_classes == 2:
        return np.where(true == 1, scores, -scores), lines, "y·f(x), the score in the direction of the row's own class."
    if report.is_kernel:
        least = np.full(len(true), np.inf)
        for k, (one, other) in enumerate(combinations(range(report.n_classes), 2)):
            for own, sign in ((one, 1.0), (other, -1.0)):
                rows = true == own
                least[rows] = np.minimum(least[rows], sign * scores[rows, k])
        return least, lines, "The smallest score of the row's own class against another class."
    rows = np.arange(len(true))
    own, rest = scores[rows, true], scores.copy()
    rest[rows, true] = -np.inf
    return own - rest.max(axis=1), lines[1:2], "The score of the row's own class minus the largest other score."


def _ordinal_scores(report):
    """Return a histogram of the scores by class, with the thresholds between classes."""
    names = names_of(report)
    groups = {"all classes": report.scores}
    if len(report.labels) <= _MAX_HISTOGRAM_CLASSES:
        groups = {f"class {names[k]}": report.scores[report.true_index == k] for k in np.unique(report.true_index)}
    guides = [(float(at), "") for at in report.model.thresholds_]
    return charts.histogram(
        "scores", "Scores", "One score for all classes; the dashed lines are the thresholds between classes.", groups,
        x_label="score", guides=guides,
    )  # fmt: skip


# Probabilities


def _calibration(report):
    """Return the calibration curve: of the second of two classes, or of the most probable of several classes."""
    known = report.known
    if report.n_classes == 2:
        predicted, observed = report.probabilities[known, 1], report.true_index[known] == 1
        what = f"the probability of class {names_of(report)[1]}"
    else:
        probable = report.probabilities[known].argmax(axis=1)
        predicted, observed = report.probabilities[known].max(axis=1), probable == report.true_index[known]
        what = "the probability of the most probable class"
    bins = np.minimum((predicted * _CALIBRATION_BINS).astype(int), _CALIBRATION_BINS - 1)
    counts = np.bincount(bins, minlength=_CALIBRATION_BINS)
    used = np.flatnonzero(counts)
    sums = (np.bincount(bins, values, _CALIBRATION_BINS)[used] for values in (predicted, observed))
    mean, frequency = (sum_of_bin / counts[used] for sum_of_bin in sums)
    error = float(np.sum(counts[used] * np.abs(mean - frequency)) / counts.sum())
    summary = (
        f"Observed frequency against predicted probability ({what}); on the diagonal they agree. "
        f"Mean difference {percent(error)}, Brier score {np.mean((predicted - observed) ** 2):.4f}. Bars: rows per bin."
    )
    unit = scales.linear(0.0, 1.0, 4, is_share=True)
    heads = ("probability", "frequency", "rows")
    picture = Picture(unit, unit, heads, x_label="predicted probability", y_label="frequency", nearest="x")
    rows = list(zip(map(percent, mean.tolist()), map(percent, frequency.tolist()), counts[used].tolist(), strict=True))
    edges = np.linspace(0.0, 1.0, _CALIBRATION_BINS + 1)
    for k in used:
        picture.shade(edges[k : k + 2], (0.0, 0.3 * counts[k] / counts.max()), "bar pale s6")
    picture.line([0.0, 1.0], [0.0, 1.0])
    picture.line(mean, frequency, "curve s0")
    picture.dots(mean, frequency, rows)
    return picture.figure("calibration", "Calibration", summary)
