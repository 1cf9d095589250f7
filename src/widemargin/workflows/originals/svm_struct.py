"""What svm_perf_learn, svm_rank_learn and their classify programs do, with the C and the objective of these programs.

    SVM-Perf   minimise ½|w|² + c ξ,   ξ >= Δ(z) + 100/n Σ_i ½ (z_i − y_i) <w, x_i> for all labellings z, Δ in percent
    SVM-rank   minimise ½|w|² + c/n Σ over queries of the hinge losses of its pairs, or of their mean

The measures of `MeasureSVC` lack the factor ½, and their Δ is at most 1. With w = 2 v, the objective of SVM-Perf at w
is four times that of MeasureSVC at v with C = 25 c. The zero/one loss of SVM-Perf is not in percent: there w = v / 50,
and C = 2500 c. The error rate is the mean hinge loss, LinearSVC with C = 100 c / n; ROC area is ROCAreaSVC with
C = 100 c. SVM-Perf's precision@k is that of labellings with at least k positive rows, and its recall@k that of
labellings with at most k; MeasureSVC's are those of exactly k. The objective of SVM-Perf is at most 100 c, at w = 0, so
that a relative gap of e/100 is an absolute one of at most e c.

With slack rescaling (-o 1), ξ >= Δ(z) (1 + 100/n Σ_i ½ (z_i − y_i) <w, x_i>): w = v / 50, and C = 250,000 c, of the
zero/one loss 2,500 c as before. Squared slacks (-p 2) are c ξ²: `squared_slack`.

With a kernel, scores are those of a function of basis points: all rows, which is the exact machine, or so many. The
constant feature is one of the rows' features, as in the original. It does not change the kernel exp(−g |a − b|²), and
adds its square times s to r of the others.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from widemargin.evaluation.retrieval import average_precision, count_pairs, pairs_of_queries, prbep, roc_area
from widemargin.models.cutting_plane.measure import MeasureSVC
from widemargin.models.cutting_plane.ranking import RankSVM
from widemargin.models.cutting_plane.roc_area import ROCAreaSVC
from widemargin.models.linear import LinearSVC
from widemargin.persistence.model_file import save_model
from widemargin.problems.rescaled_measures import RescaledMeasureRisk
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
from widemargin.workflows.originals.squared_slack import minimise_squared
from widemargin.workflows.originals.svm_light import scores_of
from widemargin.workflows.originals.svm_light_ranking import length_of
from widemargin.workflows.originals.svm_light_unbiased import basis_of
from widemargin.workflows.originals.svm_struct_text import learned_lines, perf_lines, rank_lines


@dataclass(frozen=True)
class StructKernel:
    """A kernel: its name, its numbers as MeasureSVC calls them, and the number of basis points; None is all rows."""

    name: str = "linear"
    numbers: dict = field(default_factory=dict)
    n_points: int | None = None

    def parameters(self, X, constant=0.0):
        """Return the parameters of an estimator for rows X with a constant feature."""
        if self.name == "linear":
            return {}
        numbers = dict(self.numbers)
        if "coef0" in numbers:
            numbers["coef0"] += numbers["gamma"] * constant**2
        has_all = self.n_points is None or self.n_points >= X.shape[0]
        basis = basis_of(X, "a kernel without --k") if has_all else self.n_points
        return {"kernel": self.name, "basis": basis, **numbers}


LINEAR = StructKernel()


@dataclass(frozen=True)
class PerfSettings:
    """What svm_perf_learn minimises; the defaults are its own.

    Attributes
    ----------
    C : float
        Of a loss in percent.
    loss : int
        0 zero/one, 1 F1, 2 error rate, 3 PRBEP, 4 precision@k, 5 recall@k, 10 ROC area.
    constant : float
        Value of the constant feature whose weight is the intercept; 0 is no intercept.
    fraction : float
        k as a fraction of the number of positive rows; 0 is one half for precision@k and 2 for recall@k.
    tol : float
        Tolerance of the loss in percent.
    plain : bool
        Whether the cutting planes are SVM-Perf's, without line search.
    squared : bool
        Whether the slack is squared.
    rescaled : bool
        Whether the loss multiplies the slack instead of being added to the margin; not for ROC area.
    kernel : StructKernel
    """

    C: float = 0.01
    loss: int = 2
    constant: float = 1.0
    fraction: float = 0.0
    tol: float = 0.1
    plain: bool = False
    squared: bool = False
    rescaled: bool = False
    kernel: StructKernel = LINEAR


@dataclass(frozen=True)
class RankSettings:
    """What svm_rank_learn minimises: C, the loss 1 (swapped pairs) or 2 (their fraction), tolerance and algorithm."""

    C: float = 0.01
    loss: int = 1
    tol: float = 0.001
    plain: bool = False
    kernel: StructKernel = LINEAR


@dataclass(frozen=True, eq=False)
class LearnedStructure:
    """The result of `learn_measure_file` and `learn_ranking_file`: model, facts, and the lines that are printed."""

    model: Any
    facts: dict
    lines: tuple[str, ...]


@dataclass(frozen=True)
class _Translation:
    """An estimator whose weights times `factor` are those of the original program, and objectives times its square."""

    estimator: Any
    factor: float = 1.0
    has_constant: bool = True  # whether the intercept is the weight of a constant feature; a threshold is left out
    measure: str | None = None  # name of a measure that is given as a function, for the model file


def learn_measure_file(settings: PerfSettings, data: str, output: str) -> LearnedStructure:
    """Train a machine of SVM-Perf on a file of rows, and write SVM-light's model text."""
    check_target(output, data)
    X, y, _ = read_rows(data, zero_based=False)
    sign = np.where(y > 0, 1, -1)
    if len(np.unique(sign)) < 2:
        raise FileError(f"{name_of(data)}: all rows are of one class; there must be positive and negative labels")
    n_features = X.shape[1] + (settings.constant != 0.0)
    n_positive = int(np.sum(sign > 0))
    properties = f"{n_features} features, {len(y)} examples ({n_positive} pos / {len(y) - n_positive} neg)"

    def fit(C, tol):
        made = _translation(replace(settings, C=C, tol=tol), sign)
        made.estimator.set_params(**settings.kernel.parameters(X, settings.constant))
        return _fitted(made, C, data, (X, sign))

    started = time.process_time()
    if settings.squared:
        fitted = minimise_squared(partial(fit, tol=0.25 * settings.tol), settings.C, settings.tol / 100.0)
    else:
        fitted = fit(settings.C, settings.tol)
    return _written(fitted, settings, output, properties, started)


def learn_ranking_file(settings: RankSettings, data: str, output: str) -> LearnedStructure:
    """Train a machine of SVM-rank on a file of rows with queries, and write SVM-light's model text."""
    check_target(output, data)
    X, y, qid = read_rows(data, zero_based=False)
    query = np.zeros(len(y), int) if qid is None else qid
    pairs = pairs_of_queries(y, query)
    factor = pairs.sum() if settings.loss == 1 else np.count_nonzero(pairs)
    C = settings.C * max(float(factor), 1.0) / len(pairs)
    estimator = RankSVM(
        C=C,
        average="pairs" if settings.loss == 1 else "queries",
        tol=settings.tol,
        solver=_solver(settings),
        max_iter=None,
        **settings.kernel.parameters(X),
    )
    properties = f"{X.shape[1]} features, {len(pairs)} rankings, {len(y)} examples"
    started = time.process_time()
    fitted = _fitted(_Translation(estimator), settings.C, data, (X, y, qid))
    return _written(fitted, settings, output, properties, started)


@dataclass(frozen=True)
class _Fitted:
    """A machine with the weights of the original program, and facts about it."""

    model: Any
    facts: dict


def _fitted(made, C, data, rows):
    """Fit the estimator to the rows, give it the original's weights, and return it with its objectives."""
    model = made.estimator
    naming_the_file(data, model.fit, *rows)
    if made.measure is not None:
        model.measure = made.measure
    if isinstance(model, _SlackRescaledSVC):
        model.__class__ = MeasureSVC  # it is written and read as one
    weights = "basis_coef_" if hasattr(model, "basis_") else "coef_"
    setattr(model, weights, made.factor * getattr(model, weights))
    model.intercept_ = made.factor * model.intercept_ * made.has_constant
    primal = made.factor**2 * model.objective_
    length = _length(model)
    facts = {
        "primal": primal,
        "dual": primal * (1.0 - max(model.gap_, 0.0)),
        "length": length,
        "slack": (primal - 0.5 * length**2) / C,
        "iterations": int(model.n_iter_),
    }
    return _Fitted(model, facts)


def _written(fitted, settings, output, properties, started):
    """Write the model, and return the LearnedStructure; the processor time since `started` was spent on training."""
    seconds = time.process_time() - started
    with naming(output):
        save_model(fitted.model, output, format="svmlight")
    is_linear = settings.kernel.name == "linear"
    facts = fitted.facts | {"properties": properties, "C": settings.C, "seconds": seconds, "is_linear": is_linear}
    return LearnedStructure(fitted.model, facts, tuple(learned_lines(facts)))


def _length(model):
    """Return |w|, with the weight of the constant feature."""
    constant = float(np.ravel(model.intercept_)[0]) / getattr(model, "intercept_scaling", 1.0)
    return float(np.hypot(length_of(model), constant))


class _SlackRescaledSVC(MeasureSVC):
    """A MeasureSVC with slack rescaling."""

    def _risk_of(self, sign):
        return RescaledMeasureRisk(self.measure, sign, self.C)


def _solver(settings):
    return "svmperf" if settings.plain else "ocas"


def _intercept(settings):
    """Return the parameters of a constant feature; with a kernel, it is one of the features of the rows."""
    if settings.kernel.name != "linear":
        return {"fit_intercept": False}
    return {"fit_intercept": settings.constant != 0.0, "intercept_scaling": settings.constant or 1.0}


def _of_error(settings, sign):
    solver = {"solver": "svmperf"} if settings.plain else {}
    C = 100.0 * settings.C / len(sign)
    return _Translation(
        LinearSVC(loss="hinge", C=C, tol=settings.tol / 100.0, max_iter=None, **_intercept(settings), **solver)
    )


def _of_roc_area(settings, sign):
    return _Translation(
        ROCAreaSVC(C=100.0 * settings.C, tol=settings.tol / 100.0, solver=_solver(settings), max_iter=None),
        has_constant=False,
    )


def _of_measure(name: str) -> Callable:
    """Return a function that makes the MeasureSVC of a measure in percent."""

    def make(settings, sign):
        k = _k(settings, sign, name) if name in _OF_COUNTS else 0
        options = {"tol": settings.tol / 100.0, "solver": _solver(settings), "max_iter": None, **_intercept(settings)}
        estimator, scale, factor = (
            (_SlackRescaledSVC, 250_000.0, 0.02) if settings.rescaled else (MeasureSVC, 25.0, 2.0)
        )
        measure = partial(_OF_COUNTS[name], k) if k else name
        return _Translation(
            estimator(measure, C=scale * settings.C, **options), factor, measure=f"{name}{k}" if k else None
        )

    return make


def _precision_loss(k, fn, fp, n_positive, n_negative):
    """Return 1 − precision of labellings with at least k positive rows; others are not allowed."""
    labelled = n_positive - fn + fp
    return np.where(labelled >= k, fp / np.maximum(labelled, 1), -np.inf)


def _recall_loss(k, fn, fp, n_positive, n_negative):
    """Return 1 − recall of labellings with at most k positive rows; others are not allowed."""
    return np.where(n_positive - fn + fp <= k, fn / n_positive, -np.inf)


_OF_COUNTS = {"precision@": _precision_loss, "recall@": _recall_loss}


def _of_zero_one(settings, sign):
    options = {"tol": settings.tol, "solver": _solver(settings), "max_iter": None}
    return _Translation(MeasureSVC("zero_one", C=2500.0 * settings.C, **options, **_intercept(settings)), 0.02)


def _k(settings, sign, name):
    """Return the number of rows that are labelled positive."""
    fraction = settings.fraction or {"precision@": 0.5, "recall@": 2.0}[name]
    return min(max(1, int(fraction * np.sum(sign > 0))), len(sign))


def _translation(settings, sign):
    """Return the estimator of a loss; the error rate is a LinearSVC unless it has a kernel or rescales the slack."""
    is_linear = settings.kernel.name == "linear" and not settings.rescaled
    if settings.loss == _ERROR_RATE and is_linear:
        return _of_error(settings, sign)
    return _LOSSES[settings.loss](settings, sign)


_ERROR_RATE = 2
_LOSSES = {
    0: _of_zero_one,
    1: _of_measure("f1"),
    _ERROR_RATE: _of_measure("error"),
    3: _of_measure("prbep"),
    4: _of_measure("precision@"),
    5: _of_measure("recall@"),
    10: _of_roc_area,
}


@dataclass(frozen=True, eq=False)
class ScoredFile:
    """The result of `measure_file` and `rank_file`: the score of each row, measures, and the lines that are printed."""

    scores: np.ndarray
    facts: dict
    lines: tuple[str, ...]


def measure_file(data: str, model: str, output: str) -> ScoredFile:
    """Write the score of each row of a file, and measure the scores as svm_perf_classify does."""
    scores, y, _, seconds = _scored(data, model, output)
    positive, found = y > 0, scores > 0
    both = int(np.sum(positive & found))
    facts = {
        "Accuracy": float(np.mean(positive == found)),
        "Precision": both / found.sum() if found.any() else 0.0,
        "Recall": both / positive.sum() if positive.any() else 0.0,
        "F1": 2.0 * both / (found.sum() + positive.sum()) if found.any() or positive.any() else 0.0,
        "PRBEP": prbep(scores, positive),
        "ROCArea": roc_area(scores, positive),
        "AvgPrec": average_precision(scores, positive),
    }
    return ScoredFile(scores, facts, tuple(perf_lines(facts, seconds)))


def rank_file(data: str, model: str, output: str) -> ScoredFile:
    """Write the score of each row of a file, and count swapped pairs as svm_rank_classify does: tied ones are swapped.

    A query without pairs has no loss.
    """
    scores, y, qid, seconds = _scored(data, model, output)
    swapped, tied, pairs = count_pairs(scores, y, np.zeros(len(y), int) if qid is None else qid)
    wrong = swapped + tied
    facts = {
        "loss": float(np.mean(wrong / np.maximum(pairs, 1))),
        "correct": int(np.sum(wrong == 0)),
        "queries": len(pairs),
        "swapped": int(wrong.sum()),
    }
    return ScoredFile(scores, facts, tuple(rank_lines(facts, seconds)))


def _scored(data, model, output):
    """Return scores, targets and queries of a file, and the seconds that scoring took; write the scores."""
    check_target(output, data, model)
    fitted = read_model(model)
    X, y, qid = read_rows_for(fitted, data, model, zero_based=False)
    started = time.process_time()
    scores = scores_of(fitted, X)
    seconds = time.process_time() - started
    write_lines((f"{score:.8f}" for score in scores), output)
    return scores, y, qid, seconds
