"""The parts of a report about predicted numbers, about rankings, and about one class."""

import numpy as np
from sklearn.metrics import mean_absolute_error

from widemargin.evaluation.retrieval import roc_area
from widemargin.report import charts
from widemargin.report.markup import card, facts, percent, plural, section, words
from widemargin.report.subject import measures_card, name_of

_MOST_DOTS = 2000
_MOST_GROUPS = 6


def regression_section(subject):
    """Return the section about predicted numbers: against the true ones, and what is left between them."""
    residual = subject.y - subject.predicted
    rows = charts.thinned(len(residual), _MOST_DOTS)
    return section(
        "predictions", "Predictions", _measures(subject, residual), _against_truth(subject, rows),
        _residuals(subject, residual), _residuals_along(subject, residual, rows),
    )  # fmt: skip


def tube_of(subject):
    """Return the half-width of the tube without loss, None where the file does not tell."""
    if not subject.is_recorded:
        return None
    found = getattr(subject.model, "facts_", [{}])[0].get("epsilon", getattr(subject.model, "epsilon", None))
    return found if found is None else float(found)


def _measures(subject, residual):
    found = subject.measures
    shown = {
        "mean squared error": found["mse"],
        "mean absolute error": float(mean_absolute_error(subject.y, subject.predicted)),
        "R²": (found["r2"], "1 is perfect, 0 as good as the mean"),
        "squared correlation": found["squared_correlation"],
        "largest error": float(np.abs(residual).max()),
    }
    tube = tube_of(subject)
    if tube is not None:
        shown["within the tube"] = (percent(float(np.mean(np.abs(residual) <= tube))), f"errors up to {tube:.4g}")
    if hasattr(subject.model, "laplace_scale_"):
        remark = "Laplace distributed noise, estimated by cross-validation"
        shown["scale of the noise"] = (float(subject.model.laplace_scale_), remark)
    return card("How far off", facts(shown))


def _against_truth(subject, rows):
    cells = [(int(k) + 1, float(subject.y[k]), float(subject.predicted[k])) for k in rows]
    return charts.scatter(
        "truth", "Predicted and true", f"On the diagonal they agree.{_some(subject, rows)}", subject.y[rows],
        subject.predicted[rows], cells, heads=("row", "true", "predicted"), x_label="true", y_label="predicted",
        shared=True,
    )  # fmt: skip


def _some(subject, rows):
    return f" {len(rows):,} of {len(subject.y):,} rows, evenly spread." if len(rows) < len(subject.y) else ""


def _residuals(subject, residual):
    middle = np.median(np.abs(residual))
    summary = f"True less predicted: {residual.mean():.3g} on average, half of them within {middle:.3g}."
    return charts.histogram(
        "residuals", "Distribution of errors", summary, {"rows": residual}, x_label="true − predicted",
        guides=_tube_lines(subject),
    )  # fmt: skip


def _tube_lines(subject):
    """Return lines at zero and at the walls of the tube."""
    tube = tube_of(subject)
    return [(-tube, ""), (0.0, ""), (tube, "±ε")] if tube else [(0.0, "")]


def _residuals_along(subject, residual, rows):
    cells = [(int(k) + 1, float(subject.predicted[k]), float(residual[k])) for k in rows]
    return charts.scatter(
        "errors-along", "Errors along the predictions",
        f"A pattern here is something that the model has not learned.{_some(subject, rows)}", subject.predicted[rows],
        residual[rows], cells, heads=("row", "predicted", "error"), x_label="predicted", y_label="true − predicted",
        guides=_tube_lines(subject),
    )  # fmt: skip


# Rankings


def ranking_section(subject):
    """Return the section about a ranking: its measures, and the scores by label."""
    return section("predictions", "Predictions", measures_card(subject), _scores_by_label(subject))


def _scores_by_label(subject, *, guides=()):
    """Return a histogram of the scores, by label if there are few."""
    labels = np.unique(subject.y)
    groups = {"rows": subject.scores}
    if 1 < len(labels) <= _MOST_GROUPS:
        groups = {f"label {name_of(label)}": subject.scores[subject.y == label] for label in labels.tolist()}
    summary = "What the model says of each row." + (" By the row's label." if len(groups) > 1 else "")
    return charts.histogram("scores", "Scores", summary, groups, x_label="score", guides=guides)


# One class


def one_class_section(subject):
    """Return the section about a one-class model: which rows are outliers."""
    outliers = int(np.sum(subject.predicted == -1))
    share = outliers / len(subject.y)
    found = {"outliers": (outliers, f"{percent(share)} of the rows")}
    if hasattr(subject.model, "nu") and subject.is_recorded:
        found["nu"] = (subject.model.nu, "at most this part of the training rows were outliers")
    found |= _as_labelled(subject)
    remark = "" if tells_outliers(subject.y) else "Labels here are not 1 and −1, so that nothing is compared with them."
    cards = [card("Outliers", words("A row with a score below 0 is an outlier.", remark), facts(found))]
    return section("predictions", "Predictions", *cards, _scores_by_label(subject, guides=[(0.0, "outliers end")]))


def tells_outliers(y):
    """Whether labels say which rows are outliers: −1, all others being 1."""
    return set(np.unique(y)) <= {-1.0, 1.0}


def _as_labelled(subject):
    """Return how the predictions agree with labels, if these say which rows are outliers."""
    if not tells_outliers(subject.y):
        return {}
    labelled, called = subject.y == -1, subject.predicted == -1
    found = {"as labelled": (percent(subject.measures["accuracy"]), "rows whose label, 1 or −1, is the prediction")}
    for name, rows, label in (("outliers found", labelled, "−1"), ("false alarms", ~labelled, "1")):
        if rows.any():
            count = int(np.sum(called & rows))
            found[name] = (
                percent(count / int(rows.sum())),
                f"{count:,} of {plural(int(rows.sum()), 'row')} labelled {label}",
            )
    if labelled.any() and not labelled.all():
        found["ROC area"] = (
            roc_area(-subject.scores, labelled),
            "1 if every outlier has a lower score than every other row",
        )
    return found
