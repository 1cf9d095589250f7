"""Transduction of svm_learn: rows of label 0 are unlabelled, and get their labels together with the model.

`-l` writes a line for each unlabelled row, its decision value for either label, the chosen one first. SVM-light has a
rule for support vectors, whose margins are at most 1: in place of the decision value, the line has

    label (1 − tol − α / (2 max α)),    the largest α being that of all unlabelled rows
"""

import numpy as np

from widemargin.data.products import squared_norms
from widemargin.models.kernel.transductive import TransductiveSVC
from widemargin.workflows.originals.svm_light_facts import (
    costs_of,
    distances_from_zero,
    facts_of,
    kernel_of,
    signed_alphas,
)


def transduce(settings, X, y):
    """Return the TransductiveSVC of rows with labels 1, −1 and 0, and facts about it."""
    options = {"C": float(settings.C), "kernel": settings.kernel, "tol": settings.tol, "unlabeled": 0}
    options |= {"cache_size": settings.cache_size, "positive_share": settings.positive_share, **settings.kernel_numbers}
    if settings.positive_factor != 1.0:
        options["class_weight"] = {1: settings.positive_factor}
    if settings.working_set is not None:
        options["working_set"] = settings.working_set
    model = TransductiveSVC(**options).fit(X, y)
    label, beta, cost = model.transduction_, signed_alphas(model, len(y)), costs_of(settings, y)
    unlabelled = y == 0
    share = model.positive_share_
    cost[unlabelled] = float(settings.C) * np.where(label[unlabelled] > 0, (1.0 - share) / share, 1.0)
    f = model.decision_function(X)
    facts = facts_of(settings, X, label, f, beta, cost)
    facts |= {"iterations": int(model.n_iter_[0]), "inconsistent": 0, "alphas": beta, "stages": model.stages_}
    facts |= {"n_positive": int(np.sum(label[unlabelled] > 0)), "n_unlabelled": int(unlabelled.sum())}
    facts["exchanges"] = model.n_exchanges_
    facts["criteria"] = _criteria(settings, X, y, label, beta, f)
    facts["label_values"] = _label_values(settings, label[unlabelled], np.abs(beta[unlabelled]), f[unlabelled])
    return model, facts


def _label_values(settings, label, alpha, f):
    """Return the number that the file of labels has for each unlabelled row."""
    by_rule = label * (1.0 - settings.tol - alpha / (2.0 * max(alpha.max(), np.finfo(float).tiny)))
    return np.where(alpha > 0.0, by_rule, f)


def _criteria(settings, X, y, label, beta, f):
    """Return what svm_learn prints about ξ + α R²: in percent, rows with at least 1, and means."""
    squared_radius = float(distances_from_zero(kernel_of(settings), squared_norms(X)).max()) ** 2
    alpha, loss = np.abs(beta), np.maximum(1.0 - label * f, 0.0)
    criterion, known = loss + squared_radius * alpha, y != 0
    is_large, n_known, n_unknown = criterion >= 1.0, int(known.sum()), int((~known).sum())

    def percent(rows, n_rows):
        return 100.0 * float(np.sum(rows)) / n_rows

    parts = {
        f"{name}{sign}": percent(is_large & rows & (label * one > 0), n_rows)
        for name, rows, n_rows in (("labeled", known, n_known), ("unlabel", ~known, n_unknown))
        for sign, one in (("pos", 1), ("neg", -1))
    }
    return {
        "parts": parts | {"default": percent(known & (y > 0), n_known)},
        "large": {
            "labeled": percent(is_large & known, n_known),
            "unlabled": percent(is_large & ~known, n_unknown),
            "all": percent(is_large, len(y)),
        },
        "means": {
            "labeled": percent(criterion[known], n_known),
            "unlabled": percent(criterion[~known], n_unknown),
            "all": percent(criterion, len(y)),
        },
        "sums": {"r_delta_sq": squared_radius, "xisum": float(loss.sum()), "asum": float(alpha.sum())},
    }
