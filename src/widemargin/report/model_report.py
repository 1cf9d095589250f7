"""A report of a model on rows, as one page: key numbers, data, training, predictions, influence, and a grid."""

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
from widemargin.report.subject import examine

_CAUTION = "If the model was trained on these very rows, it does better here than it will on new ones."


def report_page(model, X, y, qid=None, *, title=None, model_name="model", data_name="data", **more):
    """Return a page about a fitted model and how it does on rows: one file of HTML that loads nothing.

    Parameters
    ----------
    model : any fitted estimator of widemargin
    X : array, sparse array or data frame of shape (n_rows, n_features)
    y : array of shape (n_rows,)
        Labels or targets.
    qid : array of shape (n_rows,), default=None
        Queries, of a ranking.
    title : str, default=None
        The heading; None makes one of the names.
    model_name, data_name : str
        How model and data are called.
    **more
        `grid`, a GridResult to draw; `command`, the line that makes the report again; `first_feature`, the number of
        the first feature (1).

    Returns
    -------
    html : str
    """
    subject = examine(model, X, np.asarray(y), qid, first_feature=more.get("first_feature", 1))
    parts = {
        "data": ("Data", data_section(subject, data_name)),
        "model": ("Model", model_section(subject, model_name)),
        "predictions": ("Predictions", _predictions(subject)),
        "influence": (influence_title(subject), influence_section(subject)),
    }
    if more.get("grid") is not None:
        parts["search"] = ("Grid", section("search", "Grid search", grid_figure(lay_out(more["grid"]))))
    if more.get("command"):
        again = card("The command", f"<pre>{shown(more['command'])}</pre>")
        parts["again"] = ("Again", section("again", "To make it again", again))
    content = (
        tiles(_key_numbers(subject)) + f"<p class=caution>{_CAUTION}</p>" + "".join(part for _, part in parts.values())
    )
    files = f"{model_name} on {data_name}"
    kind = kind_of(model) + (f", {files}" if title else "")
    return page(title or files, kind, content, [(k, name) for k, (name, _) in parts.items()])


def _predictions(subject):
    if isinstance(subject.model, RankSVM):
        return ranking_section(subject)
    if is_regressor(subject.model):
        return regression_section(subject)
    return classification_section(subject) if is_classifier(subject.model) else one_class_section(subject)


def _key_numbers(subject):
    """Return the tiles."""
    model, X = subject.model, subject.X
    entries = [*_quality(subject), ("Rows", X.shape[0], ""), ("Features", X.shape[1], "")]
    if subject.is_kernel:
        count = int(np.sum(model.n_support_))
        part = f"{percent(count / model.shape_fit_[0])} of the training rows" if hasattr(model, "shape_fit_") else ""
        entries.append(("Support vectors", count, part))
    if hasattr(model, "gap_"):
        entries.append(("Gap, proved", f"{max(model.gap_, 0.0):.1e}", model.status_))
    else:
        entries.append(("Gap", "–", "not recorded in this file"))
    return entries


def _quality(subject):
    """Return the tiles of how good the predictions are."""
    found = subject.measures
    if isinstance(subject.model, RankSVM):
        pairs = f"{found['swapped_pairs']:,} of {found['pairs']:,} pairs swapped"
        return [("Concordance", percent(found["concordance"]), pairs), ("NDCG@10", number(found["ndcg@10"]), "")]
    if is_regressor(subject.model):
        return [("Mean squared error", number(found["mse"]), ""), ("R²", number(found["r2"]), "")]
    if not is_classifier(subject.model):
        outliers = ("Outliers", percent(float(np.mean(subject.predicted == -1))), "")
        labelled = ("As labelled", percent(found["accuracy"]), f"{found['correct']:,} of {found['rows']:,}")
        return [outliers, labelled] if tells_outliers(subject.y) else [outliers]
    if not found:
        return [("Accuracy", "–", "no row has a known label")]
    entries = [("Accuracy", percent(found["accuracy"]), f"{found['correct']:,} of {found['rows']:,}")]
    if "measure" in found:
        entries.insert(0, (found["measure"].upper(), number(found["value"]), "the measure of the model"))
    if "mean_absolute_error" in found:
        entries.append(("Mean error of ranks", number(found["mean_absolute_error"]), ""))
    elif subject.n_classes == 2:
        area = roc_area(subject.scores[subject.known], subject.true[subject.known] == 1)
        entries.append(("ROC area", number(area), ""))
    return entries
