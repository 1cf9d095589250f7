"""The report of a model on data, as one HTML page: key numbers, data, training, predictions, influence, and grid."""

import numpy as np
from sklearn.base import is_classifier, is_regressor

from widemargin.evaluation.retrieval import roc_area
from widemargin.models.cutting_plane.ranking import RankSVM
from widemargin.report.classification import classification_section
from widemargin.report.data_section import data_section
from widemargin.report.grid_figure import grid_figure
from widemargin.report.grid_layout import lay_out
from widemargin.report.influence import influence_section, influence_title
from widemargin.report.markup import card, number, percent, section, shown, tiles
from widemargin.report.model_section import kind_of, model_section
from widemargin.report.page import page
from widemargin.report.regression import one_class_section, ranking_section, regression_section, tells_outliers
from widemargin.report.report_data import examine

_CAUTION = "If the model was trained on these rows, these results are better than those on new rows will be."


def report_page(model, X, y, qid=None, *, title=None, model_name="model", data_name="data", **more):
    """Return a report of a fitted model and its predictions for rows, as one self-contained HTML page.

    Parameters
    ----------
    model : any fitted estimator of widemargin
    X : array, sparse array or data frame of shape (n_rows, n_features)
    y : array of shape (n_rows,)
        Labels or targets.
    qid : array of shape (n_rows,), default=None
        The query of each row, for a ranking.
    title : str, default=None
        The heading; None makes one from the names.
    model_name, data_name : str
        Names of the model and the data.
    **more
        `grid`, a GridResult to draw; `command`, the command line that produces the report; `first_feature`, the number
        of the first feature (1).

    Returns
    -------
    html : str
    """
    report = examine(model, X, np.asarray(y), qid, first_feature=more.get("first_feature", 1))
    parts = {
        "data": ("Data", data_section(report, data_name)),
        "model": ("Model", model_section(report, model_name)),
        "predictions": ("Predictions", _predictions(report)),
        "influence": (influence_title(report), influence_section(report)),
    }
    if more.get("grid") is not None:
        parts["search"] = ("Grid", section("search", "Grid search", grid_figure(lay_out(more["grid"]))))
    if more.get("command"):
        again = card("The command", f"<pre>{shown(more['command'])}</pre>")
        parts["again"] = ("Command", section("again", "How to reproduce this report", again))
    content = (
        tiles(_key_numbers(report)) + f"<p class=caution>{_CAUTION}</p>" + "".join(part for _, part in parts.values())
    )
    files = f"{model_name} on {data_name}"
    kind = kind_of(model) + (f", {files}" if title else "")
    return page(title or files, kind, content, [(k, name) for k, (name, _) in parts.items()])


def _predictions(report):
    if isinstance(report.model, RankSVM):
        return ranking_section(report)
    if is_regressor(report.model):
        return regression_section(report)
    return classification_section(report) if is_classifier(report.model) else one_class_section(report)


def _key_numbers(report):
    """Return the entries of the tiles at the top of the page."""
    model, X = report.model, report.X
    entries = [*_quality(report), ("Rows", X.shape[0], ""), ("Features", X.shape[1], "")]
    if hasattr(model, "basis_"):
        entries.append(("Basis points", model.basis_.shape[0], "in place of support vectors"))
    elif report.is_kernel:
        count = int(np.sum(model.n_support_))
        part = f"{percent(count / model.shape_fit_[0])} of the training rows" if hasattr(model, "shape_fit_") else ""
        entries.append(("Support vectors", count, part))
    if hasattr(model, "gap_"):
        entries.append(("Duality gap", f"{max(model.gap_, 0.0):.1e}", model.status_))
    else:
        entries.append(("Duality gap", "–", "not recorded in this file"))
    return entries


def _quality(report):
    """Return the entries of the tiles about the quality of the predictions."""
    found = report.measures
    if isinstance(report.model, RankSVM):
        pairs = f"{found['swapped_pairs']:,} of {found['pairs']:,} pairs swapped"
        return [("Concordance", percent(found["concordance"]), pairs), ("NDCG@10", number(found["ndcg@10"]), "")]
    if is_regressor(report.model):
        return [("Mean squared error", number(found["mse"]), ""), ("R²", number(found["r2"]), "")]
    if not is_classifier(report.model):
        outliers = ("Outliers", percent(float(np.mean(report.predicted == -1))), "")
        labelled = ("As labelled", percent(found["accuracy"]), f"{found['correct']:,} of {found['rows']:,}")
        return [outliers, labelled] if tells_outliers(report.y) else [outliers]
    if not found:
        return [("Accuracy", "–", "no row has a known label")]
    entries = [("Accuracy", percent(found["accuracy"]), f"{found['correct']:,} of {found['rows']:,}")]
    if "measure" in found:
        entries.insert(0, (found["measure"].upper(), number(found["value"]), "the measure of the model"))
    if "mean_absolute_error" in found:
        entries.append(("Mean error of ranks", number(found["mean_absolute_error"]), ""))
    elif report.n_classes == 2:
        area = roc_area(report.scores[report.known], report.true_index[report.known] == 1)
        entries.append(("ROC area", number(area), ""))
    return entries
