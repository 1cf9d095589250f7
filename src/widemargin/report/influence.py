"""The section of a report about the features with the largest weights and about the support vectors."""

from itertools import combinations

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.base import is_classifier

from widemargin.report import charts
from widemargin.report.markup import card, percent, plural, scrolling, section, table, words
from widemargin.report.report_data import name_of

_MAX_BARS = 20
_MAX_VECTORS = 10
_MAX_PROBLEMS = 50


def influence_section(report):
    """Return the section about features, support vectors or basis points; a linear kernel has features, too."""
    cards, whole = [], ()
    if hasattr(report.model, "coef_"):
        cards += [_features(report), _weights(report)]
    if report.is_kernel or hasattr(report.model, "basis_"):
        more, whole = _support(report)
        cards += more
    return section("influence", influence_title(report), *cards, whole=whole)


def influence_title(report):
    """Return the title of the section."""
    if hasattr(report.model, "basis_") and not hasattr(report.model, "coef_"):
        return "Basis points"
    if not report.is_kernel:
        return "Features"
    return "Features and support vectors" if report.model.kernel == "linear" else "Support vectors"


# Features


def _features(report):
    """Return a bar chart of the features with the largest |weight| times standard deviation."""
    W, title = np.atleast_2d(_dense(report.model.coef_)), "Most influential features"
    moved = W * _deviations(report.X)
    output = np.abs(moved).argmax(axis=0)
    effect = moved[output, np.arange(W.shape[1])]
    top = np.argsort(-np.abs(effect), kind="stable")[:_MAX_BARS]
    top = top[effect[top] != 0.0]
    if not len(top):
        return card(title, words("No feature affects a score: each is constant in these rows, or has weight 0."))
    names, of_output = [str(report.feature_names[j]) for j in top], _output_names(report.model)
    rows = [
        (name, float(effect[j]), float(W[output[j], j]), *of_output[output[j] : output[j] + 1])
        for name, j in zip(names, top, strict=True)
    ]
    summary = (
        f"Weight times the feature's standard deviation in these rows: the typical effect of the feature on a score. "
        f"{np.count_nonzero(W.any(axis=0)):,} of {plural(W.shape[1], 'feature')} have a nonzero weight."
    )
    if of_output:
        summary += " For each feature, the class on whose score it has the largest effect."
    return charts.bars(
        "features", title, summary, names, effect[top].tolist(), rows=rows,
        heads=("feature", "weight × deviation", "weight", *(["class"] if of_output else [])),
        x_label="weight × standard deviation", legend=[(0, "raises the score"), (1, "lowers it")],
    )  # fmt: skip


def _dense(array):
    return array.toarray() if issparse(array) else np.asarray(array)


def _weights(report):
    """Return a histogram of the nonzero weights."""
    values = _dense(report.model.coef_)
    values = values[values != 0.0]
    if not len(values):
        return ""
    summary = f"{plural(len(values), 'nonzero weight')}, of Euclidean norm {np.linalg.norm(values):.4g}."
    return charts.histogram("weights", "Weights", summary, {"weights": values}, x_label="weight", y_label="weights")


def _deviations(X):
    """Return the standard deviation of each column."""
    if not issparse(X):
        return np.asarray(X, dtype=np.float64).std(axis=0)
    X = csr_array(X, dtype=np.float64)
    mean, squares = np.asarray(X.mean(axis=0)).ravel(), np.asarray(X.power(2).mean(axis=0)).ravel()
    return np.sqrt(np.maximum(squares - mean**2, 0.0))


def _output_names(model):
    """Return the class, or pair of classes, of each weight vector; an empty list if there is one vector."""
    classes = [name_of(label) for label in model.classes_.tolist()] if is_classifier(model) else []
    if len(np.shape(model.coef_)) < 2 or np.shape(model.coef_)[0] < 2:
        return []
    return classes if np.shape(model.coef_)[0] == len(classes) else [f"{a} / {b}" for a, b in combinations(classes, 2)]


# Support vectors


def _support(report):
    """Return cards with the number and the coefficients of support vectors, and wide cards with tables of them."""
    if hasattr(report.model, "basis_"):
        return [_coefficients(np.abs(report.model.basis_coef_).max(axis=0), "basis points")], ()
    size = _sizes(report.model)
    if not len(size):
        return [card("Support vectors", words("The model has none; its decision value is the same for every row."))], ()
    return [_counts(report), _coefficients(size)], [_problems(report.model), _largest_coefficients(report, size)]


def _sizes(model):
    """Return the largest absolute coefficient of each support vector."""
    dual = _dense(model.dual_coef_)
    return np.abs(dual).max(axis=0) if dual.shape[1] else np.empty(0)


def _counts(report):
    """Return a bar chart of the number of support vectors: of each class, or at bound and free."""
    model = report.model
    total, solved = int(np.sum(model.n_support_)), getattr(model, "facts_", [])
    part = f", {percent(total / model.shape_fit_[0])} of the training rows" if hasattr(model, "shape_fit_") else ""
    summary = f"{plural(total, 'support vector')}{part}."
    counts = {"all": total}
    if len(solved) == 1:
        counts = {"free": solved[0]["nSV"] - solved[0]["nBSV"], "at bound": solved[0]["nBSV"]}
        summary += f" {counts['at bound']:,} are at bound, {counts['free']:,} are free."
    if is_classifier(model):
        counts = dict(zip(map(name_of, model.classes_.tolist()), model.n_support_.tolist(), strict=True))
    rows = sorted(counts.items(), key=lambda pair: -pair[1])[:_MAX_BARS]
    return charts.bars(
        "support", "Number of support vectors", summary, [name for name, _ in rows], [count for _, count in rows],
        rows=rows,
        heads=("class" if is_classifier(model) else "kind", "support vectors"), x_label="support vectors",
    )  # fmt: skip


def _coefficients(size, vectors="support vectors"):
    """Return a histogram of the coefficients of vectors."""
    name = "Dual coefficients" if vectors == "support vectors" else "Coefficients of basis points"
    summary = f"Absolute coefficients of the {vectors}, from {size.min():.3g} to {size.max():.3g}."
    labels = {"x_label": "|coefficient|", "y_label": vectors}
    return charts.histogram("coefficients", name, summary, {"all": size}, **labels)


def _problems(model):
    """Return a table of the problems that were solved, one per pair of classes, if there are several."""
    problems = getattr(model, "facts_", [])
    if len(problems) < 2:
        return ""
    names = [f"{name_of(a)} / {name_of(b)}" for a, b in combinations(model.classes_.tolist(), 2)]
    rows = [
        (name, fact["nSV"], fact["nBSV"], fact["iterations"], fact["obj"])
        for name, fact in zip(names, problems, strict=True)
    ]
    heads = ("pair", "support vectors", "at bound", "iterations", "objective")
    note = f"The first {_MAX_PROBLEMS} of {len(rows)}." if len(rows) > _MAX_PROBLEMS else ""
    content = scrolling("Pairs of classes", table(heads, rows[:_MAX_PROBLEMS]))
    return card("Pairs of classes", words(f"One binary problem for each pair. {note}"), content)


def _largest_coefficients(report, size):
    """Return a table of the support vectors with the largest coefficients."""
    model = report.model
    top = np.argsort(-size, kind="stable")[:_MAX_VECTORS]
    columns = {"coefficient": size[top].tolist()}
    if hasattr(model, "support_"):
        columns = {"training row": (model.support_[top] + 1).tolist(), **columns}
    if is_classifier(model):
        of_class = np.repeat(np.arange(len(model.n_support_)), model.n_support_)[top]
        columns["class"] = [name_of(label) for label in model.classes_[of_class].tolist()]
    explanation = "The support vectors with the largest absolute coefficients."
    if len(size) == model.support_vectors_.shape[0]:  # a model with a precomputed or callable kernel has no vectors
        explanation = explanation[:-1] + ", and the row of these data that is nearest to each."
        row, distance = _nearest_rows(model.support_vectors_[top], report.X)
        columns |= {"nearest row here": (row + 1).tolist(), "distance": distance.tolist()}
        columns["its label"] = [name_of(label) for label in report.y[row].tolist()]
    rows = list(zip(*columns.values(), strict=True))
    content = scrolling("Largest coefficients", table(list(columns), rows))
    return card("Largest coefficients", words(explanation), content)


def _nearest_rows(vectors, X):
    """Return, for each vector, the position of the nearest row of X, and the distance to it."""
    vectors, X = csr_array(vectors, dtype=np.float64), csr_array(X, dtype=np.float64)
    norms, own = X.power(2).sum(axis=1), vectors.power(2).sum(axis=1)
    squares = norms[np.newaxis] + own[:, np.newaxis] - 2.0 * (vectors @ X.T).toarray()
    row = squares.argmin(axis=1)
    differences = vectors - X[row]  # the formula above loses digits by cancellation if the two are close
    return row, np.sqrt(differences.power(2).sum(axis=1))
