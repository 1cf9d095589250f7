"""How good the predictions of models for orders and measures are: facts for programs, and lines about them.

By cross-validation, measures that compare scores across rows (ROC area, PRBEP, precision@K, recall@K) are means over
the folds, as each fold has a model of its own; queries lie in one fold whole, and everything else counts rows.
"""

import numpy as np

from widemargin.evaluation import retrieval
from widemargin.models.cutting_plane.measure import MeasureSVC
from widemargin.models.cutting_plane.ranking import OrdinalSVC, RankSVM, ROCAreaSVC
from widemargin.problems.measures import parsed

_AT = 10


def rank_facts(model, y, prediction):
    """Return "rows", "queries", pairs and how many are swapped and tied, concordances, and "ndcg@10" with its queries.

    "pair_concordance" is that of all pairs together, "concordance" the mean over the "queries_with_pairs".
    """
    query = prediction.query
    swapped, tied, pairs = retrieval.count_pairs(prediction.scores, y, query)
    wrong, some = swapped + tied / 2.0, pairs > 0
    gain, n_relevant = retrieval.ndcg(prediction.scores, y, query, _AT)
    return {
        "rows": len(y),
        "queries": len(pairs),
        "pairs": int(pairs.sum()),
        "swapped_pairs": int(swapped.sum()),
        "tied_pairs": int(tied.sum()),
        "swapped_percent": 100.0 * _part(swapped.sum(), pairs.sum()),
        "pair_concordance": 1.0 - _part(wrong.sum(), pairs.sum()),
        "concordance": float(np.mean(1.0 - wrong[some] / pairs[some])) if some.any() else float("nan"),
        "queries_with_pairs": int(some.sum()),
        f"ndcg@{_AT}": gain,
        f"ndcg@{_AT}_queries": n_relevant,
    }


def ordinal_facts(model, y, prediction):
    """Return "rows", "correct", "accuracy" and "mean_absolute_error" of ranks, over rows of a class that is known."""
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
    """Return "rows", "correct", "accuracy", the model's "measure" and its "value", "f1", "prbep" and others."""
    positive, called = y == model.classes_[1], prediction.labels == model.classes_[1]
    both, either = np.sum(positive & called), np.sum(positive) + np.sum(called)
    facts = {
        "f1": _part(2 * both, either),
        "prbep": _over_folds(retrieval.prbep, model, y, prediction),
        "precision": _part(both, np.sum(called)),
        "recall": _part(both, np.sum(positive)),
        "roc_area": _over_folds(retrieval.roc_area, model, y, prediction),
    }
    return {**_accuracy(y, prediction), "measure": model.measure, "value": _value(model, y, prediction, facts), **facts}


def _value(model, y, prediction, facts):
    """Return the model's own measure."""
    name, k = parsed(model.measure)
    if name in facts:
        return facts[name]
    if name == "error":
        return 1.0 - _accuracy(y, prediction)["accuracy"]
    function = {"precision@k": retrieval.precision_at, "recall@k": retrieval.recall_at}[name]
    return _over_folds(lambda scores, positive: function(scores, positive, k), model, y, prediction)


def _accuracy(y, prediction):
    correct = int(np.sum(prediction.labels == y))
    return {"rows": len(y), "correct": correct, "accuracy": correct / len(y)}


def _part(count, whole):
    return float(count / whole) if whole else float("nan")


def _over_folds(function, model, y, prediction):
    """Return the mean over folds of a measure of scores and positive rows, of the folds where it is defined."""
    fold = np.zeros(len(y), int) if prediction.fold is None else prediction.fold
    of_folds = [
        function(prediction.scores[fold == k], y[fold == k] == model.classes_[1]) for k in range(fold.max() + 1)
    ]
    defined = [value for value in of_folds if not np.isnan(value)]
    return float(np.mean(defined)) if defined else float("nan")


def rank_lines(facts):
    """Return lines about the facts of a RankSVM."""
    swapped = f"{facts['swapped_pairs']} of {facts['pairs']} ({facts['swapped_percent']:.2f}%)"
    relevant = f"mean over {facts[f'ndcg@{_AT}_queries']} queries with relevant rows"
    return [
        f"Swapped pairs = {swapped}, {facts['tied_pairs']} tied",
        f"Concordance = {facts['pair_concordance']:g} (all pairs together, tied ones count half)",
        f"Mean concordance = {facts['concordance']:g} (mean over {facts['queries_with_pairs']} queries with pairs)",
        f"NDCG@{_AT} = {facts[f'ndcg@{_AT}']:g} ({relevant})",
    ]


def ordinal_lines(facts):
    """Return lines about the facts of an OrdinalSVC."""
    return [_accuracy_line(facts), f"Mean absolute error of ranks = {facts['mean_absolute_error']:g}"]


def roc_lines(facts):
    """Return lines about the facts of a ROCAreaSVC."""
    return [f"ROC area = {facts['roc_area']:g}", _accuracy_line(facts)]


def measure_lines(facts):
    """Return lines about the facts of a MeasureSVC, its own measure first."""
    names = {"f1": "F1", "prbep": "PRBEP", "precision": "Precision", "recall": "Recall", "roc_area": "ROC area"}
    own = facts["measure"]
    lines = [f"{names.get(own, own)} = {facts['value']:g} (the measure of the model)"]
    lines += [f"{words} = {facts[name]:g}" for name, words in names.items() if name != own]
    return [*lines, _accuracy_line(facts)]


def _accuracy_line(facts):
    return f"Accuracy = {100 * facts['accuracy']:g}% ({facts['correct']}/{facts['rows']})"


FACTS = {RankSVM: rank_facts, OrdinalSVC: ordinal_facts, ROCAreaSVC: roc_facts, MeasureSVC: measure_facts}
LINES = {RankSVM: rank_lines, OrdinalSVC: ordinal_lines, ROCAreaSVC: roc_lines, MeasureSVC: measure_lines}
