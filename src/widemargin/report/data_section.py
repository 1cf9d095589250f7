"""The part of a report about the rows: how many, how dense, which labels or targets."""

import numpy as np
from scipy.sparse import issparse

from widemargin.report import charts
from widemargin.report.markup import card, facts, percent, plural, section
from widemargin.report.subject import name_of

_MOST_LABELS = 20  # drawn as bars; targets with more values are a histogram


def data_section(subject, data_name):
    """Return the section about the data."""
    return section("data", "Data", card("Rows", facts({"file": data_name, **_row_facts(subject)})), _labels(subject))


def _row_facts(subject):
    """Return facts about the rows and their values."""
    X = subject.X
    n_rows, n_features = X.shape
    stored = X.data if issparse(X) else np.asarray(X).ravel()
    filled = np.count_nonzero(stored)
    has_zeros = filled < n_rows * n_features
    values = np.append(stored, 0.0) if has_zeros or not len(stored) else stored
    used = np.unique(X.indices[X.data != 0]) if issparse(X) else np.flatnonzero(np.any(X, axis=0))
    found = {
        "rows": n_rows,
        "features": (n_features, f"{plural(n_features - len(used), 'feature')} zero in every row"),
        "density": (percent(filled / max(1, n_rows * n_features)), f"{filled:,} values that are not zero"),
        "smallest value": float(values.min()),
        "largest value": float(values.max()),
    }
    if len(used) == n_features:
        found["features"] = n_features
    if subject.query is not None:
        found["queries"] = len(np.unique(subject.query))
    return found


def _labels(subject):
    """Return a picture of the labels, or of targets if there are many values."""
    values, counts = np.unique(subject.y, return_counts=True)
    if len(values) > _MOST_LABELS and not subject.n_classes:
        summary = f"From {values[0]:.4g} to {values[-1]:.4g}, on average {subject.y.mean():.4g}."
        return charts.histogram("targets", "Targets", summary, {"rows": subject.y}, x_label="target")
    order = np.arange(len(values))
    if len(values) > _MOST_LABELS:
        order = np.argsort(-counts, kind="stable")[:_MOST_LABELS]
    names, counts = [name_of(label) for label in values[order].tolist()], counts[order].tolist()
    rows = [(name, count, percent(count / len(subject.y))) for name, count in zip(names, counts, strict=True)]
    left_out = f", of which the {_MOST_LABELS} most frequent are shown" if len(values) > len(names) else ""
    largest = percent(max(counts) / len(subject.y))
    summary = f"{plural(len(values), 'label')}{left_out}; the most frequent has {largest} of the rows."
    heads = ("label", "rows", "of all")
    return charts.bars("labels", "Labels", summary, names, counts, rows=rows, heads=heads, x_label="rows")
