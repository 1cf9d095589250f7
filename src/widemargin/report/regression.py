"""The sections of a report about the predictions of regression, ranking and one-class models."""

import numpy as np
from sklearn.metrics import mean_absolute_error

from widemargin.evaluation.retrieval import roc_area
from widemargin.report import charts
from widemargin.report.markup import card, facts, percent, plural, section, words
from widemargin.report.report_data import measures_card, name_of

_MAX_DOTS = 2000
_MAX_GROUPS = 6


def regression_section(report):
    """Return the section about a regression: measures, predictions against targets, and residuals."""
    residual = report.y - report.predicted
    rows = charts.thinned(len(residual), _MAX_DOTS)
    return section(
        "predictions", "Predictions", _measures(report, residual), _against_truth(report, rows),
        _residuals(report, residual), _residuals_along(report, residual, rows),
    )  # fmt: skip


def tube_of(report):
    """Return epsilon, the half-width of the tube; None if the model has no record of it."""
    if not report.is_recorded:
        return None
    found = getattr(report.model, "facts_", [{}])[0].get("epsilon", getattr(report.model, "epsilon", None))
    return found if found is None else float(found)


def _measures(report, residual):
    found = report.measures
    shown = {
        "mean squared error": found["mse"],
        "mean absolute error": float(mean_absolute_error(report.y, report.predicted)),
        "R²": (found["r2"], "1 is perfect; 0 is as good as predicting the mean"),
        "squared correlation": found["squared_correlation"],
        "largest error": float(np.abs(residual).max()),
    }
    tube = tube_of(report)
    if tube is not None:
        shown["within the tube"] = (percent(float(np.mean(np.abs(residual) <= tube))), f"errors up to {tube:.4g}")
    if hasattr(report.model, "laplace_scale_"):
        remark = "Laplace distributed noise, estimated by cross-validation"
        shown["scale of the noise"] = (float(report.model.laplace_scale_), remark)
    return card("Errors", facts(shown))


def _against_truth(report, rows):
    cells = [(int(k) + 1, float(report.y[k]), float(report.predicted[k])) for k in rows]
    return charts.scatter(
        "truth", "Predicted and true", f"On the diagonal they agree.{_some(report, rows)}", report.y[rows],
        report.predicted[rows], cells, heads=("row", "true", "predicted"), x_label="true", y_label="predicted",
        shared=True,
    )  # fmt: skip


def _some(report, rows):
    return f" {len(rows):,} of {len(report.y):,} rows, evenly spaced." if len(rows) < len(report.y) else ""


def _residuals(report, residual):
    median = np.median(np.abs(residual))
    summary = f"Target minus prediction: mean {residual.mean():.3g}, median absolute value {median:.3g}."
    return charts.histogram(
        "residuals", "Distribution of errors", summary, {"rows": residual}, x_label="true − predicted",
        guides=_tube_lines(report),
    )  # fmt: skip


def _tube_lines(report):
    """Return guide lines at zero and at ±epsilon."""
    tube = tube_of(report)
    return [(-tube, ""), (0.0, ""), (tube, "±ε")] if tube else [(0.0, "")]


def _residuals_along(report, residual, rows):
    cells = [(int(k) + 1, float(report.predicted[k]), float(residual[k])) for k in rows]
    return charts.scatter(
        "errors-along", "Errors along the predictions",
        f"A pattern in the errors is something that the model has not learned.{_some(report, rows)}",
        report.predicted[rows], residual[rows], cells, heads=("row", "predicted", "error"), x_label="predicted",
        y_label="true − predicted", guides=_tube_lines(report),
    )  # fmt: skip


# Rankings


def ranking_section(report):
    """Return the section about a ranking: measures, and scores by label."""
    return section("predictions", "Predictions", measures_card(report), _scores_by_label(report))


def _scores_by_label(report, *, guides=()):
    """Return a histogram of the scores, by label if there are few."""
    labels = np.unique(report.y)
    groups = {"rows": report.scores}
    if 1 < len(labels) <= _MAX_GROUPS:
        groups = {f"label {name_of(label)}": report.scores[report.y == label] for label in labels.tolist()}
    summary = "The decision value of each row" + (", by the row's label." if len(groups) > 1 else ".")
    return charts.histogram("scores", "Scores", summary, groups, x_label="score", guides=guides)


# One class


def one_class_section(report):
    """Return the section about a one-class model: the number of outliers, and scores."""
    outliers = int(np.sum(report.predicted == -1))
    share = outliers / len(report.y)
    found = {"outliers": (outliers, f"{percent(share)} of the rows")}
    if hasattr(report.model, "nu") and report.is_recorded:
        found["nu"] = (report.model.nu, "upper bound of the fraction of training rows that are outliers")
    found |= _as_labelled(report)
    remark = (
        "" if tells_outliers(report.y) else "The labels are not 1 and −1, so predictions are not compared with them."
    )
    cards = [card("Outliers", words("A row with a score below 0 is an outlier.", remark), facts(found))]
    return section("predictions", "Predictions", *cards, _scores_by_label(report, guides=[(0.0, "outliers end")]))


def tells_outliers(y):
    """Return whether the labels say which rows are outliers: −1 for outliers, 1 for the others."""
    return set(np.unique(y)) <= {-1.0, 1.0}


def _as_labelled(report):
    """Return measures of the agreement of predictions and labels, if the labels say which rows are outliers."""
    if not tells_outliers(report.y):
        return {}
    labelled, predicted = report.y == -1, report.predicted == -1
    found = {"as labelled": (percent(report.measures["accuracy"]), "rows whose label, 1 or −1, is the prediction")}
    for name, rows, label in (("outliers found", labelled, "−1"), ("false alarms", ~labelled, "1")):
        if rows.any():
            count = int(np.sum(predicted & rows))
            found[name] = (
                percent(count / int(rows.sum())),
                f"{count:,} of {plural(int(rows.sum()), 'row')} labelled {label}",
            )
    if labelled.any() and not labelled.all():
        found["ROC area"] = (
            roc_area(-report.scores, labelled),
            "1 if every outlier has a lower score than every other row",
        )
    return found
