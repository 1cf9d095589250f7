"""What svm_learn and svm_classify do: train a machine of SVM-light on a file, and score the rows of a file.

    classification   minimise ½|w|² + C Σ j_i max(0, 1 − y_i f(x_i)),    j_i = positive_factor if y_i > 0, else 1
    regression       minimise ½|w|² + C Σ max(0, |y_i − f(x_i)| − epsilon)
    ranking          minimise ½|w|² + C Σ over pairs of rows of a query of max(0, 1 − f(x_i) + f(x_j)), y_i > y_j

f(x) = <w, φ(x)> + b. Without a C, SVM-light takes 1 / (mean of |φ(x_i) − φ(0)|)². Labels of classification are taken
by their sign; rows of label 0 are unlabelled, see `svm_light_transduction`.
"""

import time
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from widemargin.data.products import squared_norms
from widemargin.evaluation.leave_one_out import leave_one_out_estimates
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
from widemargin.workflows.originals.svm_light_facts import (
    are_at_bound,
    costs_of,
    distances_from_zero,
    facts_of,
    kernel_of,
    signed_alphas,
)
from widemargin.workflows.originals.svm_light_ranking import rank
from widemargin.workflows.originals.svm_light_text import classified_lines, learned_lines
from widemargin.workflows.originals.svm_light_transduction import transduce
from widemargin.workflows.originals.svm_light_unbiased import features_of, is_unbiased_kernel, machine_of_rows

_MOST_ROWS_OF_WORKING_SET = 2048
_VECTORS = ("support_vectors_", "basis_")
TASKS = ("classification", "regression", "ranking")
_NO_UNLABELLED = "no row has the label 0, which marks unlabelled rows"
_REFUSED = {  # reasons by option, for each kind of learning
    "classification": {"-p": _NO_UNLABELLED, "-l": _NO_UNLABELLED},
    "regression": {
        "-x 1": "leave-one-out errors are those of a classifier",
        "-y": "starting from alphas is for classification",
        "-p": "it is for classification",
        "-l": "it is for classification",
    },
    "ranking": {
        "-i 1": "rows at their upper bound are taken out of a classifier or a regression, not pairs of a ranking",
        "-x 1": "leave-one-out errors are those of a classifier",
        "-y": "dual variables of a ranking belong to pairs of rows, and are not used",
        "-a": "dual variables of a ranking belong to pairs of rows, and are not kept",
        "-p": "it is for classification",
        "-l": "it is for classification",
    },
    "transduction": {
        "-i 1": "unlabelled rows have no label with which they could be inconsistent",
        "-x 1": "the estimates are for files whose rows all have a label",
        "-y": "it starts from the machine of the labelled rows",
        "-b 0": "TransductiveSVC has an intercept",
    },
}


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
    positive_share : float or None
        Share of the unlabelled rows that is called positive; None is that of the labelled rows.
    labels : str or None
        File for the labels of unlabelled rows.
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
    positive_share: float | None = None
    labels: str | None = None


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
    for target in filter(None, (output, settings.alphas, settings.labels)):
        check_target(target, data)
    X, y, qid = read_rows(data, zero_based=False)
    if settings.task == "classification":
        y = np.sign(y).astype(int)
    kind = "transduction" if settings.task == "classification" and not y.all() else settings.task
    _refuse_options(settings, kind, data)
    settings, default_C = _with_C(settings, X)
    settings = replace(settings, working_set=_bounded(settings.working_set))
    started = time.process_time()
    learn = {"ranking": partial(rank, qid=qid), "transduction": transduce}.get(kind, _learn)
    model, facts = naming_the_file(data, learn, settings, X, y)
    facts |= {"seconds": time.process_time() - started, "rows": len(y), "default_C": default_C}
    _write(settings, model, facts, output)
    return LearnedFile(model, facts, tuple(learned_lines(settings, kind, facts)))


def _write(settings, model, facts, output):
    """Write the files that the settings name, and the model."""
    if settings.labels is not None:
        write_lines(_with_signs(facts["label_values"]), settings.labels)
    if settings.alphas is not None:
        with naming(settings.alphas):
            write_alphas(settings.alphas, facts["alphas"])
    with naming(output):
        save_model(model, output, format="svmlight")


def _refuse_options(settings, kind, data):
    """Raise a FileError for an option that this kind of learning does not have; kind is a task or transduction."""
    asked = {
        "-i 1": settings.remove_inconsistent,
        "-x 1": settings.leave_one_out,
        "-y": settings.start is not None,
        "-a": settings.alphas is not None,
        "-b 0": not settings.intercept,
        "-p": settings.positive_share is not None,
        "-l": settings.labels is not None,
    }
    for letter, reason in _REFUSED[kind].items():
        if asked[letter]:
            raise FileError(f"{name_of(data)}: {letter} cannot be had with {kind}: {reason}; leave it out")


def _bounded(working_set):
    """Return a size of the working set that the solver takes, or None."""
    return None if working_set is None else min(working_set, _MOST_ROWS_OF_WORKING_SET)


def _with_C(settings, X):
    """Return settings that have a C, and the C if it is SVM-light's default, otherwise None."""
    if settings.C is not None:
        return settings, None
    mean = float(distances_from_zero(kernel_of(settings), squared_norms(X)).mean())
    C = 1.0 / mean**2 if mean > 0.0 else 1.0
    return replace(settings, C=C), C


def _learn(settings, X, y):
    """Return the model of classification or regression, and facts about it."""
    kept, n_iter, features = np.arange(len(y)), 0, features_of(settings, X)
    while True:
        model = _estimator(settings, y[kept])
        if settings.start is not None and len(kept) == len(y):
            _start_from(model, settings.start, X.shape[0])
        model.fit(features[kept], y[kept])
        n_iter += int(np.max(model.n_iter_))
        beta = np.zeros(len(y))
        beta[kept] = signed_alphas(model, len(kept))
        at_bound = are_at_bound(beta, costs_of(settings, y))
        if not (settings.remove_inconsistent and at_bound.any()):
            break
        kept = np.setdiff1d(kept, np.flatnonzero(at_bound))
        if len(np.unique(y[kept])) < 2:
            raise ValueError("all rows of a class are inconsistent: raise C, or do not remove them.")
    f, cost = scores_of(model, features), costs_of(settings, y)
    facts = facts_of(settings, X, y, f, beta, cost)
    if len(kept) < len(y):  # rows that were taken out have a loss, but no optimality condition
        facts["violation"] = facts_of(settings, X[kept], y[kept], f[kept], beta[kept], cost[kept])["violation"]
    facts |= {"iterations": n_iter, "inconsistent": len(y) - len(kept), "alphas": beta}
    if settings.task == "classification" and not settings.remove_inconsistent:
        facts |= _estimates(settings, X, features, y, model)
    if is_unbiased_kernel(settings):
        model = machine_of_rows(settings, X, beta, getattr(model, "classes_", None))
    return model, facts


def _estimator(settings, y):
    """Return the estimator of classification or regression, not fitted."""
    C, factor = float(settings.C), settings.positive_factor
    weights = {"class_weight": {1: factor}} if settings.task == "classification" and factor != 1.0 else {}
    if not settings.intercept:
        options = {"C": C, "fit_intercept": False, "stopping": "kkt", "solver": "dcd", "tol": settings.tol}
        if settings.task == "regression":
            return LinearSVR(loss="epsilon_insensitive", epsilon=settings.epsilon, max_iter=None, **options)
        return LinearSVC(loss="hinge", max_iter=None, random_state=0, **options, **weights)
    options = {"C": C, "kernel": settings.kernel, "tol": settings.tol, "cache_size": settings.cache_size}
    options |= settings.kernel_numbers | weights
    if settings.working_set is not None:
        options["working_set"] = settings.working_set
    return SVR(epsilon=settings.epsilon, **options) if settings.task == "regression" else SVC(**options)


def _start_from(model, path, n_rows):
    """Have a kernel machine start from the dual variables of a file."""
    if not isinstance(model, SVC):
        raise ValueError("starting from alphas needs an intercept: leave -y or -b 0 out.")
    with naming(path):
        alphas = read_alphas(path, n_rows)
    model.set_params(warm_start=True)
    set_dual_start(model, [-_balanced(alphas)])  # the first class is the positive one of the problem that is solved


def _balanced(alphas):
    """Return signed dual variables whose sum is zero, by lowering those of the sign that has the larger sum."""
    above, below = alphas[alphas > 0.0].sum(), -alphas[alphas < 0.0].sum()
    if above == below or min(above, below) == 0.0:
        return alphas
    factors = np.where(alphas > 0.0, min(1.0, below / above), min(1.0, above / below))
    return alphas * factors


def _estimates(settings, X, features, y, model):
    """Return the estimates of error, recall and precision, and the leave-one-out ones if they are asked for.

    `features` are the rows that the model was fitted to.
    """
    radius = float(distances_from_zero(kernel_of(settings), squared_norms(X)).max())
    options = {"rho": settings.rho, "depth": settings.depth, "squared_radius": radius**2}
    return {"estimates": leave_one_out_estimates(model, features, y, exact=settings.leave_one_out, **options)}


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
    n_vectors = next((getattr(fitted, name).shape[0] for name in _VECTORS if hasattr(fitted, name)), 1)
    return ClassifiedFile(scores, tuple(classified_lines(n_vectors, scores, y, seconds)))


def _with_signs(scores):
    """Return lines with the score for both labels, the predicted one first."""
    for score in scores:
        sign = "+1" if score > 0 else "-1"
        other = "-1" if score > 0 else "+1"
        yield f"{abs(score):.8g}:{sign} {-abs(score):.8g}:{other}"


def scores_of(model, X):
    """Return the score of each row."""
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)
