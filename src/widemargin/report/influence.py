"""The part of a report about what the model goes by: weights of features, or support vectors."""

from itertools import combinations

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.base import is_classifier

from widemargin.report import charts
from widemargin.report.markup import card, percent, plural, scrolling, section, table, words
from widemargin.report.subject import name_of

_MOST_FEATURES = 20
_MOST_VECTORS = 10
_MOST_PROBLEMS = 50


def influence_section(subject):
    """Return the section about features or support vectors; a linear kernel has both."""
    cards, whole = [], ()
    if not subject.is_kernel or subject.model.kernel == "linear":
        cards += [_features(subject), _weights(subject)]
    if subject.is_kernel:
        more, whole = _support(subject)
        cards += more
    return section("influence", influence_title(subject), *cards, whole=whole)


def influence_title(subject):
    """Return the title of the section."""
    if not subject.is_kernel:
        return "Features"
    return "Features and support vectors" if subject.model.kernel == "linear" else "Support vectors"


# Features


def _features(subject):
    """Return a picture of the features that move a score the most."""
    W, title = np.atleast_2d(_dense(subject.model.coef_)), "Most influential features"
    moved = W * _deviations(subject.X)
    output = np.abs(moved).argmax(axis=0)
    effect = moved[output, np.arange(W.shape[1])]
    top = np.argsort(-np.abs(effect), kind="stable")[:_MOST_FEATURES]
    top = top[effect[top] != 0.0]
    if not len(top):
        return card(title, words("No feature moves a score: each is constant here, or has no weight."))
    names, of_output = [str(subject.feature_names[j]) for j in top], _output_names(subject.model)
    rows = [
        (name, float(effect[j]), float(W[output[j], j]), *of_output[output[j] : output[j] + 1])
        for name, j in zip(names, top, strict=True)
    ]
    summary = (
        f"Weight times the feature's standard deviation in these rows: how far a score moves with the feature. "
        f"{np.count_nonzero(W.any(axis=0)):,} of {plural(W.shape[1], 'feature')} have a weight."
    )
    if of_output:
        summary += " Of each feature, the class whose score it moves the most."
    return charts.bars(
        "features", title, summary, names, effect[top].tolist(), rows=rows,
        heads=("feature", "weight × deviation", "weight", *(["class"] if of_output else [])),
        x_label="weight × standard deviation", legend=[(0, "raises the score"), (1, "lowers it")],
    )  # fmt: skip


def _dense(array):
    return array.toarray() if issparse(array) else np.asarray(array)


def _weights(subject):
    """Return a histogram of the weights that are not zero."""
    values = _dense(subject.model.coef_)
    values = values[values != 0.0]
    if not len(values):
        return ""
    summary = f"{plural(len(values), 'weight')} that are not zero, of length {np.linalg.norm(values):.4g} together."
    return charts.histogram("weights", "Weights", summary, {"weights": values}, x_label="weight", y_label="weights")


def _deviations(X):
    """Return the standard deviation of each column."""
    if not issparse(X):
        return np.asarray(X, dtype=np.float64).std(axis=0)
    X = csr_array(X, dtype=np.float64)
    mean, squares = np.asarray(X.mean(axis=0)).ravel(), np.asarray(X.power(2).mean(axis=0)).ravel()
    return np.sqrt(np.maximum(squares - mean**2, 0.0))


def _output_names(model):
    """Return what several weight vectors belong to; nothing if there is one."""
    classes = [name_of(label) for label in model.classes_.tolist()] if is_classifier(model) else []
    if len(np.shape(model.coef_)) < 2 or np.shape(model.coef_)[0] < 2:
        return []
    return classes if np.shape(model.coef_)[0] == len(classes) else [f"{a} / {b}" for a, b in combinations(classes, 2)]


# Support vectors


def _support(subject):
    """Return cards about support vectors, how many and how heavy, and those that stand alone, the heaviest."""
    size = _sizes(subject.model)
    if not len(size):
        return [card("Support vectors", words("The model has none: it predicts the same for every row."))], ()
    return [_counts(subject), _coefficients(size)], [_problems(subject.model), _heaviest(subject, size)]


def _sizes(model):
    """Return the largest absolute coefficient of each support vector."""
    dual = _dense(model.dual_coef_)
    return np.abs(dual).max(axis=0) if dual.shape[1] else np.empty(0)


def _counts(subject):
    """Return a picture of the number of support vectors: of each class, or at their bound and free."""
    model = subject.model
    total, solved = int(np.sum(model.n_support_)), getattr(model, "facts_", [])
    part = f", {percent(total / model.shape_fit_[0])} of the training rows" if hasattr(model, "shape_fit_") else ""
    summary = f"{plural(total, 'support vector')}{part}."
    counts = {"all": total}
    if len(solved) == 1:
        counts = {"free": solved[0]["nSV"] - solved[0]["nBSV"], "at bound": solved[0]["nBSV"]}
        summary += f" {counts['at bound']:,} are at their bound, {counts['free']:,} are free."
    if is_classifier(model):
        counts = dict(zip(map(name_of, model.classes_.tolist()), model.n_support_.tolist(), strict=True))
    rows = sorted(counts.items(), key=lambda pair: -pair[1])[:_MOST_FEATURES]
    return charts.bars(
        "support", "How many", summary, [name for name, _ in rows], [count for _, count in rows], rows=rows,
        heads=("class" if is_classifier(model) else "which", "support vectors"), x_label="support vectors",
    )  # fmt: skip


def _coefficients(size):
    summary = f"Absolute dual coefficient of each, from {size.min():.3g} to {size.max():.3g}."
    labels = {"x_label": "|coefficient|", "y_label": "support vectors"}
    return charts.histogram("coefficients", "How heavy", summary, {"all": size}, **labels)


def _problems(model):
    """Return a table of the problems that were solved, a pair of classes each, if there are several."""
    problems = getattr(model, "facts_", [])
    if len(problems) < 2:
        return ""
    names = [f"{name_of(a)} / {name_of(b)}" for a, b in combinations(model.classes_.tolist(), 2)]
    rows = [
        (name, fact["nSV"], fact["nBSV"], fact["iterations"], fact["obj"])
        for name, fact in zip(names, problems, strict=True)
    ]
    heads = ("pair", "support vectors", "at bound", "iterations", "objective")
    note = f"The first {_MOST_PROBLEMS} of {len(rows)}." if len(rows) > _MOST_PROBLEMS else ""
    content = scrolling("Pairs of classes", table(heads, rows[:_MOST_PROBLEMS]))
    return card("Pairs of classes", words(f"A machine for each pair. {note}"), content)


def _heaviest(subject, size):
    """Return a table of the support vectors with the largest coefficients."""
    model = subject.model
    top = np.argsort(-size, kind="stable")[:_MOST_VECTORS]
    columns = {"coefficient": size[top].tolist()}
    if hasattr(model, "support_"):
        columns = {"training row": (model.support_[top] + 1).tolist(), **columns}
    if is_classifier(model):
        of_class = np.repeat(np.arange(len(model.n_support_)), model.n_support_)[top]
        columns["class"] = [name_of(label) for label in model.classes_[of_class].tolist()]
    explanation = "Those with the largest absolute coefficients."
    if len(size) == model.support_vectors_.shape[0]:  # none are kept of a kernel that is precomputed or a function
        explanation = explanation[:-1] + ", and the row of these data that is nearest to each."
        row, distance = _nearest_rows(model.support_vectors_[top], subject.X)
        columns |= {"nearest row here": (row + 1).tolist(), "distance": distance.tolist()}
        columns["its label"] = [name_of(label) for label in subject.y[row].tolist()]
    rows = list(zip(*columns.values(), strict=True))
    content = scrolling("Heaviest support vectors", table(list(columns), rows))
    return card("The heaviest", words(explanation), content)


def _nearest_rows(vectors, X):
    """Return, for each vector, the position of the row of X that is nearest, and how far that is."""
    vectors, X = csr_array(vectors, dtype=np.float64), csr_array(X, dtype=np.float64)
    norms, own = X.power(2).sum(axis=1), vectors.power(2).sum(axis=1)
    squares = norms[np.newaxis] + own[:, np.newaxis] - 2.0 * (vectors @ X.T).toarray()
    row = squares.argmin(axis=1)
    differences = vectors - X[row]  # once more by difference: the sum above cancels where they are close
    return row, np.sqrt(differences.power(2).sum(axis=1))
