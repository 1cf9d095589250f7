"""The section of a report about the data: number of rows and features, density, and labels or targets."""

import numpy as np
from scipy.sparse import issparse

from widemargin.report import charts
from widemargin.report.markup import card, facts, percent, plural, section
from widemargin.report.report_data import name_of

_MAX_LABEL_BARS = 20  # targets with more distinct values are drawn as a histogram


def data_section(report, data_name):
    """Return the section about the data."""
    return section("data", "Data", card("Rows", facts({"file": data_name, **_row_facts(report)})), _labels(report))


def _row_facts(report):
    """Return a list of numbers about the rows and their values."""
    X = report.X
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
    if report.query is not None:
        found["queries"] = len(np.unique(report.query))
    return found


def _labels(report):
    """Return a bar chart of the labels, or a histogram of the targets."""
    values, counts = np.unique(report.y, return_counts=True)
    if len(values) > _MAX_LABEL_BARS and not report.n_classes:
        summary = f"From {values[0]:.4g} to {values[-1]:.4g}, on average {report.y.mean():.4g}."
        return charts.histogram("targets", "Targets", summary, {"rows": report.y}, x_label="target")
    order = np.arange(len(values))
    if len(values) > _MAX_LABEL_BARS:
        order = np.argsort(-counts, kind="stable")[:_MAX_LABEL_BARS]
    names, counts = [name_of(label) for label in values[order].tolist()], counts[order].tolist()
    rows = [(name, count, percent(count / len(report.y))) for name, count in zip(names, counts, strict=True)]
    left_out = f", of which the {_MAX_LABEL_BARS} most frequent are shown" if len(values) > len(names) else ""
    largest = percent(max(counts) / len(report.y))
    summary = f"{plural(len(values), 'label')}{left_out}; the most frequent has {largest} of the rows."
    heads = ("label", "rows", "of all")
    return charts.bars("labels", "Labels", summary, names, counts, rows=rows, heads=heads, x_label="rows")
