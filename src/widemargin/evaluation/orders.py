"""Measures of the predictions of RankSVM, OrdinalSVC, ROCAreaSVC and MeasureSVC, as dicts and as lines of text.

In cross-validation each fold has its own model, whose scores cannot be compared with those of another model. Measures
that compare scores of different rows (ROC area, average precision, PRBEP, precision@K, recall@K) are therefore computed
per fold and averaged. All rows of a query are in one fold, so that the measures of a ranking need no average over
folds, and the remaining measures are counts of rows.
"""

import numpy as np

from widemargin.evaluation import retrieval
from widemargin.models.cutting_plane.measure import MeasureSVC
from widemargin.models.cutting_plane.ordinal import OrdinalSVC
from widemargin.models.cutting_plane.ranking import RankSVM
from widemargin.models.cutting_plane.roc_area import ROCAreaSVC
from widemargin.problems.measure_of_counts import loss_of
from widemargin.problems.measures import parsed

_NDCG_DEPTH = 10  # NDCG is computed over so many rows with the largest scores


def rank_facts(model, y, prediction):
    """Return the measures of a RankSVM: counts of rows, queries and pairs, two concordances, and "ndcg@10".

    "pair_concordance" is computed over all pairs; "concordance" is the mean over the queries that have pairs, whose
    number is "queries_with_pairs". "ndcg@10_queries" is the number of queries over which "ndcg@10" is a mean.
    """
    query = prediction.query
    swapped, tied, pairs = retrieval.count_pairs(prediction.scores, y, query)
    wrong, some = swapped + tied / 2.0, pairs > 0
    gain, n_relevant = retrieval.ndcg(prediction.scores, y, query, _NDCG_DEPTH)
    return {
        "rows": len(y),
        "queries": len(pairs),
        "pairs": int(pairs.sum()),
        "swapped_pairs": int(swapped.sum()),
        "tied_pairs": int(tied.sum()),
        "swapped_percent": 100.0 * _ratio(swapped.sum(), pairs.sum()),
        "pair_concordance": 1.0 - _ratio(wrong.sum(), pairs.sum()),
        "concordance": float(np.mean(1.0 - wrong[some] / pairs[some])) if some.any() else float("nan"),
        "queries_with_pairs": int(some.sum()),
        f"ndcg@{_NDCG_DEPTH}": gain,
        f"ndcg@{_NDCG_DEPTH}_queries": n_relevant,
    }


def ordinal_facts(model, y, prediction):
    """Return "rows", "correct", "accuracy" and the "mean_absolute_error" of ranks.

    The error is computed over the rows whose class occurred in training.
    """
    known = np.isin(y, model.classes_)
    ranks = (np.searchsorted(model.classes_, labels[known]) for labels in (y, prediction.labels))
    error = np.abs(np.subtract(*ranks))
    return {
        **_accuracy(y, prediction),
        "mean_absolute_error": float(error.mean()) if len(error) else float("nan"),
    }


def roc_facts(model, y, prediction):
    """Return "rows", "correct", "accuracy" and "roc_area"."""
    return {**_accuracy(y, prediction), "roc_area": _over_folds(retrieval.roc_area, model, y, prediction)}


def measure_facts(model, y, prediction):
    """Return the measures of a MeasureSVC: its own "measure" and "value", and "accuracy", "f1", "prbep" and others."""
    positive, predicted = y == model.classes_[1], prediction.labels == model.classes_[1]
    true_positives, total = np.sum(positive & predicted), np.sum(positive) + np.sum(predicted)
    facts = {
        "f1": _ratio(2 * true_positives, total),
        "prbep": _over_folds(retrieval.prbep, model, y, prediction),
        "precision": _ratio(true_positives, np.sum(predicted)),
        "recall": _ratio(true_positives, np.sum(positive)),
        "roc_area": _over_folds(retrieval.roc_area, model, y, prediction),
        "average_precision": _over_folds(retrieval.average_precision, model, y, prediction),
    }
    name = getattr(model.measure, "__name__", "measure") if callable(model.measure) else model.measure
    return {**_accuracy(y, prediction), "measure": name, "value": _value(model, y, prediction, facts), **facts}


def _value(model, y, prediction, facts):
    """Return the value of the measure that the model optimises; for a function, the loss of the predicted labels."""
    if callable(model.measure):
        positive, predicted = y == model.classes_[1], prediction.labels == model.classes_[1]
        fn, fp = np.sum(positive & ~predicted), np.sum(~positive & predicted)
        return float(loss_of(model.measure, fn, fp, np.sum(positive), np.sum(~positive)))
    name, k = parsed(model.measure)
    if name in facts:
        return facts[name]
    if name == "error":
        return 1.0 - _accuracy(y, prediction)["accuracy"]
    if name == "zero_one":
        return float(_accuracy(y, prediction)["accuracy"] < 1.0)
    function = {"precision@k": retrieval.precision_at, "recall@k": retrieval.recall_at}[name]
    return _over_folds(lambda scores, positive: function(scores, positive, k), model, y, prediction)


def _accuracy(y, prediction):
    correct = int(np.sum(prediction.labels == y))
    return {"rows": len(y), "correct": correct, "accuracy": correct / len(y)}


def _ratio(count, total):
    return float(count / total) if total else float("nan")


def _over_folds(function, model, y, prediction):
    """Return the mean of function(scores, is positive) over the folds where it is defined."""
    fold = np.zeros(len(y), int) if prediction.fold is None else prediction.fold
    of_folds = [
        function(prediction.scores[fold == k], y[fold == k] == model.classes_[1]) for k in range(fold.max() + 1)
    ]
    defined = [value for value in of_folds if not np.isnan(value)]
    return float(np.mean(defined)) if defined else float("nan")


def rank_lines(facts):
    """Return lines of text with the measures of a RankSVM."""
    swapped = f"{facts['swapped_pairs']} of {facts['pairs']} ({facts['swapped_percent']:.2f}%)"
    relevant = f"mean over {facts[f'ndcg@{_NDCG_DEPTH}_queries']} queries with relevant rows"
    return [
        f"Swapped pairs = {swapped}, {facts['tied_pairs']} tied",
        f"Concordance = {facts['pair_concordance']:g} (all pairs together, tied ones count half)",
        f"Mean concordance = {facts['concordance']:g} (mean over {facts['queries_with_pairs']} queries with pairs)",
        f"NDCG@{_NDCG_DEPTH} = {facts[f'ndcg@{_NDCG_DEPTH}']:g} ({relevant})",
    ]


def ordinal_lines(facts):
    """Return lines of text with the measures of an OrdinalSVC."""
    return [_accuracy_line(facts), f"Mean absolute error of ranks = {facts['mean_absolute_error']:g}"]


def roc_lines(facts):
    """Return lines of text with the measures of a ROCAreaSVC."""
    return [f"ROC area = {facts['roc_area']:g}", _accuracy_line(facts)]


def measure_lines(facts):
    """Return lines of text with the measures of a MeasureSVC, its own measure first."""
    names = {"f1": "F1", "prbep": "PRBEP", "precision": "Precision", "recall": "Recall", "roc_area": "ROC area"}
    names["average_precision"] = "Average precision"
    own = facts["measure"]
    lines = [f"{names.get(own, own)} = {facts['value']:g} (the measure of the model)"]
    lines += [f"{words} = {facts[name]:g}" for name, words in names.items() if name != own]
    return [*lines, _accuracy_line(facts)]


def _accuracy_line(facts):
    return f"Accuracy = {100 * facts['accuracy']:g}% ({facts['correct']}/{facts['rows']})"


FACTS = {RankSVM: rank_facts, OrdinalSVC: ordinal_facts, ROCAreaSVC: roc_facts, MeasureSVC: measure_facts}
LINES = {RankSVM: rank_lines, OrdinalSVC: ordinal_lines, ROCAreaSVC: roc_lines, MeasureSVC: measure_lines}
