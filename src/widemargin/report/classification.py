"""The part of a report about predicted classes: what was mistaken for what, curves over all thresholds, margins.

Rows whose label the model does not know stand in the matrix as lines of their own; curves and margins are without them.
"""

from itertools import combinations

import numpy as np
from sklearn.metrics import average_precision_score, precision_recall_curve, precision_recall_fscore_support, roc_curve

from widemargin.evaluation import orders
from widemargin.evaluation.retrieval import roc_area
from widemargin.models.cutting_plane.ranking import OrdinalSVC
from widemargin.models.multiclass import one_against_rest
from widemargin.report import charts, scales
from widemargin.report.figures import Picture
from widemargin.report.markup import card, percent, plural, scrolling, section, table, words
from widemargin.report.subject import measures_card, name_of

_MOST_CURVES = 10
_MOST_IN_MATRIX = 30
_MOST_IN_TABLE = 100
_MOST_IN_HISTOGRAM = 6
_POINTS, _POINTS_OF_MANY = 160, 50
_N_BINS = 10


def classification_section(subject):
    """Return the section about predicted classes."""
    if not subject.measures:
        return section("predictions", "Predictions", _unlabelled(subject))
    cards = [_confusion(subject), _classes_table(subject)]
    if isinstance(subject.model, OrdinalSVC):
        cards.append(_ordinal_scores(subject))
    else:
        cards += [*_threshold_curves(subject), _margins(subject)]
    if type(subject.model) in orders.LINES:
        cards.append(measures_card(subject))
    if subject.probabilities is not None:
        cards.append(_calibration(subject))
    return section("predictions", "Predictions", *cards)


def names_of(subject):
    """Return the labels as text."""
    return [name_of(label) for label in subject.labels]


def _unlabelled(subject):
    """Return a picture of what was predicted for rows whose labels say nothing."""
    counts = np.bincount(subject.called, minlength=subject.n_classes)[: subject.n_classes]
    names = names_of(subject)[: subject.n_classes]
    order = np.argsort(-counts, kind="stable")[:_MOST_IN_MATRIX]
    rows = [(names[k], int(counts[k]), percent(counts[k] / len(subject.y))) for k in order]
    return charts.bars(
        "predicted", "What was predicted", "No row has a label that the model knows, so nothing can be measured.",
        [row[0] for row in rows], [row[1] for row in rows], rows=rows, heads=("class", "rows", "of all"),
        x_label="rows",
    )  # fmt: skip


# What was mistaken for what


def _confusion(subject):
    """Return the matrix of true and predicted classes; of many, those with the most rows."""
    n = len(subject.labels)
    counts = np.bincount(subject.true * n + subject.called, minlength=n * n).reshape(n, n)
    frequent = np.sort(np.argsort(-(counts.sum(axis=0) + counts.sum(axis=1)), kind="stable")[:_MOST_IN_MATRIX])
    right, rows = int(np.trace(counts)), len(subject.y)
    summary = f"{right:,} of {plural(rows, 'row')} right, {percent(right / rows)}. {_worst_mistake(subject, counts)}"
    if n > len(frequent):
        summary += f" The {len(frequent)} most frequent of {n} classes."
    names = [names_of(subject)[k] for k in frequent]
    return charts.matrix_of_counts("confusion", "Confusion matrix", summary, names, counts[np.ix_(frequent, frequent)])


def _worst_mistake(subject, counts):
    wrong = counts - np.diag(np.diag(counts))
    if not wrong.any():
        return "No mistake."
    i, j = np.unravel_index(wrong.argmax(), wrong.shape)
    names = names_of(subject)
    return f"The most frequent mistake: {plural(int(wrong[i, j]), 'row')} of {names[i]} taken for {names[j]}."


def _classes_table(subject):
    """Return a table of precision, recall and F1 of each class."""
    n = subject.n_classes
    columns = precision_recall_fscore_support(subject.true, subject.called, labels=np.arange(n), zero_division=np.nan)
    names = names_of(subject)
    rows = [
        (names[k], *(percent(float(column[k])) for column in columns[:3]), int(columns[3][k]))
        for k in range(min(n, _MOST_IN_TABLE))
    ]
    means = [float(np.nanmean(column)) if not np.isnan(column).all() else np.nan for column in columns[:3]]
    rows.append(("mean", *map(percent, means), int(columns[3].sum())))
    note = f" The first {_MOST_IN_TABLE} of {n}." if n > _MOST_IN_TABLE else ""
    explanation = (
        f"Precision: the part of what is called so that is. Recall: the part of what is so that is called so.{note}"
    )
    heads = ("class", "precision", "recall", "F1", "rows")
    return card("Classes", words(explanation), scrolling("Classes", table(heads, rows)))


# Curves over all thresholds


def _threshold_curves(subject):
    """Return the ROC and precision/recall curves, of several classes each against the rest."""
    known, chosen = subject.known, _curve_classes(subject)
    columns = _scores_by_class(subject)[known]
    if subject.n_classes == 2:
        chosen = [1] if len(np.unique(subject.true[known])) == 2 else []
    if not chosen:
        return [card("ROC and precision/recall", words("These curves need rows of two classes at least."))]
    tasks = [(names_of(subject)[k], columns[:, k], subject.true[known] == k) for k in chosen]
    most = _POINTS if len(tasks) == 1 else _POINTS_OF_MANY
    against = f"of class {tasks[0][0]}" if len(tasks) == 1 else "of each class against the rest"
    some = f" The {len(tasks)} classes with the most rows." if 2 < len(tasks) < subject.n_classes else ""
    return [_roc(tasks, most, against, some), _precision_recall(tasks, most, against, some)]


def _curve_classes(subject):
    """Return the classes with the most rows, of those that some but not all rows have."""
    counts = np.bincount(subject.true[subject.known], minlength=subject.n_classes)[: subject.n_classes]
    frequent = np.argsort(-counts, kind="stable")[:_MOST_CURVES]
    return [int(k) for k in np.sort(frequent) if 0 < counts[k] < counts.sum()]


def _scores_by_class(subject):
    """Return a score for each class; of two, that of the second and its negative."""
    if subject.n_classes == 2:
        return np.column_stack([-subject.scores, subject.scores])
    if subject.is_kernel:
        return one_against_rest(subject.scores, subject.n_classes)
    return subject.scores


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
        precision, recall, threshold = precision[:-1], recall[:-1], threshold  # the last point is a convention
        at = charts.along(recall, precision, most)
        rows = zip(recall[at].tolist(), precision[at].tolist(), threshold[at].tolist(), strict=True)
        rows = [(*([name] if len(tasks) > 1 else []), percent(r), percent(p), _threshold(cut)) for r, p, cut in rows]
        drawn.append((f"{name} ({mean:.3f})", recall[at], precision[at], rows))
    summary = f"{means[0]:.4f}" if len(tasks) == 1 else f"{min(means):.4f} to {max(means):.4f}"
    share = float(np.mean(tasks[0][2]))
    base = f" Calling every row positive has a precision of {percent(share)}." if len(tasks) == 1 else ""
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


def _margins(subject):
    """Return a histogram of how far rows are on the right side."""
    true = subject.true[subject.known]
    margin, guides, meaning = _margins_of(subject, true)
    wrong, within = np.mean(margin < 0), np.mean((margin >= 0) & (margin < 1))
    summary = f"{meaning} {percent(float(wrong))} of the rows are on the wrong side"
    summary += f", {percent(float(within))} on the right side within the margin." if len(guides) == 3 else "."
    groups = {"all classes": margin}
    if subject.n_classes <= _MOST_IN_HISTOGRAM:
        groups = {f"class {names_of(subject)[k]}": margin[true == k] for k in np.unique(true)}
    return charts.histogram("margins", "Margins", summary, groups, x_label="margin", guides=guides)


def _margins_of(subject, true):
    """Return the margin of each row that is known, lines to draw, and what a margin is."""
    scores, lines = subject.scores[subject.known], [(-1.0, "−1"), (0.0, "0"), (1.0, "1")]
    if subject.n_classes == 2:
        return np.where(true == 1, scores, -scores), lines, "y·f(x), the score towards the row's own class."
    if subject.is_kernel:
        least = np.full(len(true), np.inf)
        for k, (one, other) in enumerate(combinations(range(subject.n_classes), 2)):
            for own, sign in ((one, 1.0), (other, -1.0)):
                rows = true == own
                least[rows] = np.minimum(least[rows], sign * scores[rows, k])
        return least, lines, "The smallest score of the row's own class against another."
    rows = np.arange(len(true))
    own, rest = scores[rows, true], scores.copy()
    rest[rows, true] = -np.inf
    return own - rest.max(axis=1), lines[1:2], "The score of the row's own class less the largest other."


def _ordinal_scores(subject):
    """Return a histogram of scores by class, with the thresholds between classes."""
    names = names_of(subject)
    groups = {"all classes": subject.scores}
    if len(subject.labels) <= _MOST_IN_HISTOGRAM:
        groups = {f"class {names[k]}": subject.scores[subject.true == k] for k in np.unique(subject.true)}
    guides = [(float(at), "") for at in subject.model.thresholds_]
    return charts.histogram(
        "scores", "Scores", "One score for all classes; thresholds, the dashed lines, tell them apart.", groups,
        x_label="score", guides=guides,
    )  # fmt: skip


# Probabilities


def _calibration(subject):
    """Return how often predictions of a probability come true: of the second class of two, or of the likeliest."""
    known = subject.known
    if subject.n_classes == 2:
        claimed, came = subject.probabilities[known, 1], subject.true[known] == 1
        what = f"the probability of class {names_of(subject)[1]}"
    else:
        claimed = subject.probabilities[known].max(axis=1)
        came, what = subject.probabilities[known].argmax(axis=1) == subject.true[known], "that of the likeliest class"
    bins = np.minimum((claimed * _N_BINS).astype(int), _N_BINS - 1)
    counts = np.bincount(bins, minlength=_N_BINS)
    used = np.flatnonzero(counts)
    mean, share = (np.bincount(bins, values, _N_BINS)[used] / counts[used] for values in (claimed, came))
    error = float(np.sum(counts[used] * np.abs(mean - share)) / counts.sum())
    summary = (
        f"How often it is so ({what}), against how probable it was called; on the diagonal they agree. "
        f"Mean difference {percent(error)}, Brier score {np.mean((claimed - came) ** 2):.4f}. Bars: rows."
    )
    unit = scales.linear(0.0, 1.0, 4, is_share=True)
    heads = ("probability", "is so", "rows")
    picture = Picture(unit, unit, heads, x_label="predicted probability", y_label="is so", nearest="x")
    rows = list(zip(map(percent, mean.tolist()), map(percent, share.tolist()), counts[used].tolist(), strict=True))
    for k in used:
        picture.shade((k / _N_BINS, (k + 1) / _N_BINS), (0.0, 0.3 * counts[k] / counts.max()), "bar pale s6")
    picture.line([0.0, 1.0], [0.0, 1.0])
    picture.line(mean, share, "curve s0")
    picture.dots(mean, share, rows)
    return picture.figure("calibration", "Calibration", summary)
