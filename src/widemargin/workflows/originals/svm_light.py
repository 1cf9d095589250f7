"""What svm_learn and svm_classify do: train a machine of SVM-light on a file, and score the rows of a file.

    classification   minimise ½|w|² + C Σ j_i max(0, 1 − y_i f(x_i)),    j_i = positive_factor if y_i > 0, else 1
    regression       minimise ½|w|² + C Σ max(0, |y_i − f(x_i)| − epsilon)
    ranking          minimise ½|w|² + C Σ over pairs of rows of a query of max(0, 1 − f(x_i) + f(x_j)), y_i > y_j

f(x) = <w, φ(x)> + b. Without a C, SVM-light takes 1 / (mean of |φ(x_i) − φ(0)|)². Labels of classification are taken
by their sign.
"""

import time
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from widemargin.data.products import squared_norms
from widemargin.evaluation.leave_one_out import leave_one_out_estimates
from widemargin.evaluation.retrieval import pairs_of_queries
from widemargin.kernels.functions import Kernel
from widemargin.models.cutting_plane.ranking import RankSVM
from widemargin.models.kernel.base import set_dual_start
from widemargin.models.kernel.svc import SVC
from widemargin.models.kernel.svr import SVR
from widemargin.models.linear import LinearSVC, LinearSVR
from widemargin.persistence.alpha_file import read_alphas, write_alphas
from widemargin.persistence.model_file import save_model
from widemargin.workflows.errors import FileError
from widemargin.workflows.files import (
    check_target,
    name_of,
    naming,
    naming_the_file,
    read_model,
    read_rows,
    write_lines,
)
from widemargin.workflows.model_rows import read_rows_for
from widemargin.workflows.originals.svm_light_text import classified_lines, learned_lines

_MOST_ROWS_OF_WORKING_SET = 2048
TASKS = ("classification", "regression", "ranking")


@dataclass(frozen=True)
class LightSettings:
    """What svm_learn minimises, and what it estimates and writes besides the model; the defaults are its own.

    Attributes
    ----------
    task : {"classification", "regression", "ranking"}
    C : float or None
        None is SVM-light's default, see the module.
    epsilon : float
        Half the width of the tube of regression.
    positive_factor : float
        Factor of C for positive rows.
    intercept : bool
        Whether there is an intercept, which is not penalised.
    kernel : str
    kernel_numbers : dict
        gamma, coef0 and degree, as far as the kernel has them.
    tol, cache_size, working_set
        As those of SVC.
    remove_inconsistent : bool
        Whether rows at their upper bound are taken out, and the rest is trained again until none is left.
    leave_one_out : bool
        Whether to compute the leave-one-out error, besides the bounds.
    rho, depth
        As those of `leave_one_out_estimates`.
    start, alphas : str or None
        Files of dual variables: those to start from, and those to write.
    """

    task: str = "classification"
    C: float | None = None
    epsilon: float = 0.1
    positive_factor: float = 1.0
    intercept: bool = True
    kernel: str = "linear"
    kernel_numbers: dict = field(default_factory=dict)
    tol: float = 1e-3
    cache_size: float = 40.0
    working_set: int | None = None
    remove_inconsistent: bool = False
    leave_one_out: bool = False
    rho: float = 1.0
    depth: int = 0
    start: str | None = None
    alphas: str | None = None


@dataclass(frozen=True, eq=False)
class LearnedFile:
    """The result of `learn_file`.

    Attributes
    ----------
    model : estimator
    facts : dict
        Numbers by the names that `svm_light_text` gives them.
    lines : tuple of str
        What svm_learn prints.
    """

    model: Any
    facts: dict
    lines: tuple[str, ...]


def learn_file(settings: LightSettings, data: str, output: str) -> LearnedFile:
    """Train the machine that the settings describe on a file of rows, and write SVM-light's model text."""
    for target in filter(None, (output, settings.alphas)):
        check_target(target, data)
    X, y, qid = read_rows(data, zero_based=False)
    y = _targets(settings, y, data)
    settings, default_C = _with_C(settings, X)
    started = time.process_time()
    if settings.task == "ranking":
        model, facts = _rank(settings, X, y, qid)
    else:
        model, facts = naming_the_file(data, _learn, settings, X, y)
    facts |= {"seconds": time.process_time() - started, "rows": len(y), "default_C": default_C}
    if settings.task != "ranking":
        facts["longest"] = float(np.sqrt(_kernel_of(settings).diagonal(squared_norms(X)).max()))
    if settings.alphas is not None:
        with naming(settings.alphas):
            write_alphas(settings.alphas, facts["alphas"])
    with naming(output):
        save_model(model, output, format="svmlight")
    return LearnedFile(model, facts, tuple(learned_lines(settings, facts)))


def _targets(settings, y, data):
    """Return targets, of classification their signs; a FileError for rows without a label and files of one class."""
    if settings.task != "classification":
        return y
    unlabelled = np.flatnonzero(y == 0)
    if len(unlabelled):
        raise FileError(
            f"{name_of(data)}: the label of row {unlabelled[0] + 1} is 0, which is an unlabelled row for SVM-light; "
            "transduction cannot be had: leave these rows out"
        )
    return np.where(y > 0, 1, -1)


def _kernel_of(settings):
    return Kernel(settings.kernel, **settings.kernel_numbers)


def distances_from_zero(kernel, norms):
    """Return |φ(x) − φ(0)| of rows with these squared norms: the root of K(x, x) − 2 K(x, 0) + K(0, 0)."""
    if kernel.name == "rbf":
        return np.sqrt(2.0 - 2.0 * np.exp(-kernel.gamma * norms))
    at_zero = {
        "linear": 0.0,
        "poly": float(kernel.coef0) ** kernel.degree,
        "sigmoid": np.tanh(kernel.coef0),
    }[kernel.name]
    return np.sqrt(np.maximum(kernel.diagonal(norms) - at_zero, 0.0))  # K(x, 0) is K(0, 0)


def _with_C(settings, X):
    """Return settings that have a C, and the C if it is SVM-light's default, otherwise None."""
    if settings.C is not None:
        return settings, None
    mean = float(distances_from_zero(_kernel_of(settings), squared_norms(X)).mean())
    C = 1.0 / mean**2 if mean > 0.0 else 1.0
    return replace(settings, C=C), C


def _learn(settings, X, y):
    """Return the model of classification or regression, and facts about it."""
    kept, n_iter = np.arange(len(y)), 0
    while True:
        model = _estimator(settings, y[kept])
        if settings.start is not None and len(kept) == len(y):
            _start_from(model, settings.start, X.shape[0])
        model.fit(X[kept], y[kept])
        n_iter += int(np.max(model.n_iter_))
        beta = np.zeros(len(y))
        beta[kept] = _signed_alphas(model, len(kept))
        at_bound = np.abs(beta) >= _costs(settings, y) * (1.0 - 1e-12)
        if not (settings.remove_inconsistent and at_bound.any()):
            break
        kept = np.setdiff1d(kept, np.flatnonzero(at_bound))
        if len(np.unique(y[kept])) < 2:
            raise ValueError("all rows of a class are inconsistent: raise C, or do not remove them.")
    facts = _facts(settings, X, y, model, beta)
    facts |= {"iterations": n_iter, "inconsistent": len(y) - len(kept), "alphas": beta}
    facts["at_bound"] = int(at_bound.sum())
    if settings.task == "classification" and not settings.remove_inconsistent:
        facts |= _estimates(settings, X, y, model)
    return model, facts


def _estimator(settings, y):
    """Return the estimator of classification or regression, not fitted."""
    C, factor = float(settings.C), settings.positive_factor
    weights = {"class_weight": {1: factor}} if settings.task == "classification" and factor != 1.0 else {}
    if not settings.intercept:
        if settings.kernel != "linear":
            raise ValueError("kernel machines here have an intercept: -b 0 needs the linear kernel, -t 0.")
        options = {"C": C, "fit_intercept": False, "stopping": "kkt", "solver": "dcd", "tol": settings.tol}
        if settings.task == "regression":
            return LinearSVR(loss="epsilon_insensitive", epsilon=settings.epsilon, max_iter=None, **options)
        return LinearSVC(loss="hinge", max_iter=None, random_state=0, **options, **weights)
    options = {"C": C, "kernel": settings.kernel, "tol": settings.tol, "cache_size": settings.cache_size}
    options |= settings.kernel_numbers | weights
    if settings.working_set is not None:
        options["working_set"] = min(settings.working_set, _MOST_ROWS_OF_WORKING_SET)
    return SVR(epsilon=settings.epsilon, **options) if settings.task == "regression" else SVC(**options)


def _start_from(model, path, n_rows):
    """Have a kernel machine start from the dual variables of a file."""
    with naming(path):
        alphas = read_alphas(path, n_rows)
    if not isinstance(model, SVC):
        raise ValueError("starting from alphas is for classification with an intercept: leave -y out.")
    model.set_params(warm_start=True)
    set_dual_start(model, [-_balanced(alphas)])  # the first class is the positive one of the problem that is solved


def _balanced(alphas):
    """Return signed dual variables whose sum is zero, by lowering those of the sign that has the larger sum."""
    above, below = alphas[alphas > 0.0].sum(), -alphas[alphas < 0.0].sum()
    if above == below or min(above, below) == 0.0:
        return alphas
    factors = np.where(alphas > 0.0, min(1.0, below / above), min(1.0, above / below))
    return alphas * factors


def _signed_alphas(model, n_rows):
    """Return a number for each row: its dual variable times its label, of regression the difference of two."""
    if isinstance(model, (LinearSVC, LinearSVR)):
        return np.asarray(model.dual_coef_, dtype=float).ravel()
    beta = np.zeros(n_rows)
    coefficients = model.dual_coef_
    beta[model.support_] = (coefficients.toarray() if hasattr(coefficients, "toarray") else coefficients).ravel()
    return beta


def _costs(settings, y):
    """Return the upper bound of the dual variable of each row."""
    cost = np.full(len(y), float(settings.C))
    if settings.task == "classification":
        cost[y > 0] *= settings.positive_factor
    return cost


def _facts(settings, X, y, model, beta):
    """Return what svm_learn prints about a solution with the signed dual variables beta."""
    is_regression = settings.task == "regression"
    f = model.predict(X) if is_regression else model.decision_function(X)
    b, cost = float(np.ravel(model.intercept_)[0]), _costs(settings, y)
    length = float(np.sqrt(max(beta @ (f - b), 0.0)))
    residual = y - f
    loss = np.maximum(np.abs(residual) - settings.epsilon, 0.0) if is_regression else np.maximum(1.0 - y * f, 0.0)
    excess = np.abs(residual) - settings.epsilon if is_regression else 1.0 - y * f
    at_bound = np.abs(beta) >= cost * (1.0 - 1e-12)
    violation = np.where(
        beta == 0.0, np.maximum(excess, 0.0), np.where(at_bound, np.maximum(-excess, 0.0), np.abs(excess))
    )
    linear = y @ beta - settings.epsilon * np.abs(beta).sum() if is_regression else np.abs(beta).sum()
    dual = float(linear) - 0.5 * length**2
    norms = squared_norms(X[np.flatnonzero(beta)]) if beta.any() else np.zeros(1)
    return {
        "support": int(np.count_nonzero(beta)),
        "misclassified": int(np.sum(y * f <= 0.0)),
        "violation": float(violation.max()),
        "dual": dual,
        "gap": 0.5 * length**2 + float(cost @ loss) - dual,
        "loss": float(loss.sum()),
        "length": length,
        "sphere": float(distances_from_zero(_kernel_of(settings), norms).max()),
    }


def _estimates(settings, X, y, model):
    """Return the estimates of error, recall and precision, and the leave-one-out ones if they are asked for."""
    radius = float(distances_from_zero(_kernel_of(settings), squared_norms(X)).max())
    options = {"rho": settings.rho, "depth": settings.depth, "squared_radius": radius**2}
    return {"estimates": leave_one_out_estimates(model, X, y, exact=settings.leave_one_out, **options)}


def _rank(settings, X, y, qid):
    """Return a RankSVM whose C is that of a sum over pairs, and facts about it."""
    if settings.kernel != "linear":
        raise FileError(
            "ranking with kernels (-z p -t) cannot be had: there is no kernel machine of all pairs; use -t 0"
        )
    n_pairs = int(pairs_of_queries(y, np.zeros(len(y), int) if qid is None else qid).sum())
    model = RankSVM(C=settings.C * n_pairs, tol=settings.tol, max_iter=None).fit(X, y, qid=qid)
    length = float(np.linalg.norm(model.coef_))
    dual = model.objective_ * (1.0 - max(model.gap_, 0.0))
    return model, {
        "iterations": int(model.n_iter_),
        "pairs": n_pairs,
        "violation": max(model.gap_, 0.0),
        "dual": dual,
        "length": length,
        "loss": (model.objective_ - 0.5 * length**2) / settings.C,
        "longest": _longest_difference(X, y, qid),
    }


def _longest_difference(X, y, qid):
    """Return the largest |x_i − x_j| over the pairs of rows of a query with different targets."""
    query = np.zeros(len(y), int) if qid is None else np.unique(qid, return_inverse=True)[1]
    order = np.argsort(query, kind="stable")
    longest = 0.0
    for rows in np.split(order, np.flatnonzero(np.diff(query[order])) + 1):
        norms, products = squared_norms(X[rows]), (X[rows] @ X[rows].T).toarray()
        is_pair = y[rows, np.newaxis] != y[rows]
        squares = norms[:, np.newaxis] + norms - 2.0 * products
        longest = max(longest, float(squares[is_pair].max(initial=0.0)))
    return float(np.sqrt(longest))


@dataclass(frozen=True, eq=False)
class ClassifiedFile:
    """The result of `classify_file`: the score of each row, and the lines that svm_classify prints."""

    scores: np.ndarray
    lines: tuple[str, ...]


def classify_file(data: str, model: str, output: str, *, with_signs: bool = False) -> ClassifiedFile:
    """Write the decision value of each row of a file by a model of SVM-light's text.

    `with_signs` is SVM-light's older form of a line, `value:+1 -value:-1`.
    """
    check_target(output, data, model)
    fitted = read_model(model)
    X, y, _ = read_rows_for(fitted, data, model, zero_based=False)
    started = time.process_time()
    scores = scores_of(fitted, X)
    seconds = time.process_time() - started
    write_lines(_with_signs(scores) if with_signs else (f"{score:.8g}" for score in scores), output)
    vectors = getattr(fitted, "support_vectors_", np.empty((1, 0))).shape[0]
    return ClassifiedFile(scores, tuple(classified_lines(vectors, scores, y, seconds)))


def _with_signs(scores):
    """Return lines with the score for both labels, the predicted one first."""
    for score in scores:
        sign = "+1" if score > 0 else "-1"
        other = "-1" if score > 0 else "+1"
        yield f"{abs(score):.8g}:{sign} {-abs(score):.8g}:{other}"


def scores_of(model, X):
    """Return the score of each row."""
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)
