"""Folds of rows, and scores of models on the held-out rows, from decision values that are computed for all rows.

For row blocks, the rows of a fold are Boolean masks, which take an eighth of the memory of row numbers, and a scorer of
scikit-learn is given a model that returns the decision values that are known already: no row is read again.
"""

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import accuracy_score, check_scoring, make_scorer
from sklearn.model_selection import check_cv

from widemargin.data.blocks.row_blocks import RowBlocks


def folds_of(model, X, y, cv, groups):
    """Return the (train, test) rows of each fold: row numbers, or masks for row blocks."""
    if cv is None:
        return []
    folds, as_masks = [], isinstance(X, RowBlocks)
    for k, (train, test) in enumerate(split_rows(cv, model, X, y, groups)):
        if len(test) == 0 or len(train) == 0:
            raise ValueError(f"fold {k} of cv has no rows to {'score' if len(test) == 0 else 'train'} on.")
        if is_classifier(model) and len(np.unique(np.asarray(y)[train])) < 2:
            raise ValueError(f"fold {k} of cv trains on one class only; use stratified folds, or fewer.")
        folds.append((_mask(train, len(X)), _mask(test, len(X))) if as_masks else (train, test))
    return folds


def split_rows(cv, model, X, y, groups):
    """Return the (train, test) row numbers of each fold of scikit-learn's splitter for a model."""
    with np.errstate(invalid="ignore"):  # it casts labels to integers, which those of 1e20 are not
        return list(check_cv(cv, y, classifier=is_classifier(model)).split(X, y, groups))


def _mask(rows, n_rows):
    mask = np.zeros(n_rows, dtype=bool)
    mask[rows] = True
    return mask


def scorer_of(model, X, y, scoring):
    """Return a function of a fitted model, its decision values on all rows, and the rows to be scored.

    The decision values have one row for each output.
    """
    y = np.asarray(y)
    if scoring is not None:
        scorer = check_scoring(model, scoring=scoring)
        if isinstance(X, RowBlocks):
            return _scorer_of_known_values(scorer, scoring, y)
        rows = X if hasattr(X, "shape") else np.asarray(X)
        return lambda fitted, _, test: scorer(fitted, rows[test], y[test])
    if is_classifier(model):
        return lambda fitted, scores, test: float(np.mean(_classes_of(fitted, scores[:, test]) == y[test]))
    return lambda _, scores, test: _r2(scores[0, test], y[test])


def _scorer_of_known_values(scorer, scoring, y):
    """Return the same function for row blocks, whose held-out rows are not in memory."""
    if not isinstance(scorer, type(make_scorer(accuracy_score))):
        raise ValueError(
            "scoring must be a name, or made by make_scorer, for row blocks: other functions are given the held-out "
            f"rows, which are not in memory; got {scoring!r}."
        )

    def score(fitted, scores, test):
        known = scores[:, test]

        def decision_function(rows):
            return known[0] if len(known) == 1 else known.T

        def predict(rows):
            return _classes_of(fitted, known) if is_classifier(fitted) else known[0]

        fitted.predict = predict  # scikit-learn goes by the names of these functions
        if is_classifier(fitted):
            fitted.decision_function = decision_function
        return scorer(fitted, np.flatnonzero(test), y[test])

    return score


def _classes_of(model, scores):
    return model.classes_[(scores[0] > 0).astype(int) if len(scores) == 1 else scores.argmax(axis=0)]


def _r2(predicted, y):
    largest = max(1e-300, float(np.max(np.abs(y))), float(np.max(np.abs(predicted))))
    y, predicted = y / largest, predicted / largest  # squares of large targets would overflow
    spread = float(np.sum((y - y.mean()) ** 2))
    rest = float(np.sum((y - predicted) ** 2))
    return 1.0 - rest / spread if spread > 0.0 else float(rest == 0.0)
