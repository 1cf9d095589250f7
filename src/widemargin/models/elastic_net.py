"""`penalty="l1"` and `penalty="elasticnet"` of LinearSVC: what they take, their problems and their solver."""

from functools import partial

import numpy as np

from widemargin.models.base import one_by_one
from widemargin.problems.elastic_net import ElasticNet
from widemargin.problems.formulations import Intercept
from widemargin.problems.margin_losses import LOSSES
from widemargin.solvers.proximal_newton.prox_newton import PROX_NEWTON
from widemargin.solvers.registry import solve_with

_VALUES_WORTH_THREADS = 1 << 14  # stored values of X from which on problems of several classes are solved by threads
_ONLY_VALUE = {  # of parameters of LinearSVC, and why
    "multi_class": ("ovr", "all classes at once have a penalty of their own"),
    "solver": ("auto", f"the solver is {PROX_NEWTON.name!r}"),
    "stopping": ("gap", f"{PROX_NEWTON.name!r} stops by the duality gap"),
    "checkpoint": (None, f"{PROX_NEWTON.name!r} writes no checkpoints"),
}


def has_sparse_penalty(model):
    """Return whether the penalty of a linear model makes weights zero."""
    return getattr(model, "penalty", "l2") != "l2"


def check_sparse_penalty(model):
    """Refuse parameters of a LinearSVC that do not go with its penalty."""
    if model.penalty != "elasticnet" and model.l1_ratio is not None:
        raise ValueError(
            f"l1_ratio is for penalty='elasticnet', got l1_ratio={model.l1_ratio!r} with penalty={model.penalty!r}: "
            "use l1_ratio=None."
        )
    if not has_sparse_penalty(model):
        return
    if model.penalty == "elasticnet" and model.l1_ratio is None:
        raise ValueError("penalty='elasticnet' needs l1_ratio, a number from 0 (L2) to 1 (L1), got None.")
    if not (isinstance(model.loss, str) and model.loss in LOSSES) or model.dual is True:
        raise ValueError(
            f"Unsupported set of arguments: penalty={model.penalty!r}, loss={model.loss!r}, dual={model.dual!r}. "
            f"penalty={model.penalty!r} needs loss={' or '.join(map(repr, LOSSES))}, and dual=False or 'auto', as in "
            "scikit-learn."
        )
    for name, (value, reason) in _ONLY_VALUE.items():
        given = getattr(model, name)
        if given != value:
            raise ValueError(f"penalty={model.penalty!r} needs {name}={value!r}, since {reason}; got {given!r}.")


def refuse_elsewhere(model, where):
    """Raise ValueError if the penalty makes weights zero, since rows are not in memory but `where` this says."""
    if has_sparse_penalty(model):
        raise ValueError(
            f"penalty={model.penalty!r} needs all rows in memory as they are, because its solver reads columns; these "
            f"are {where}. Use penalty='l2'."
        )


def elastic_nets(model, X, label, cost, positives):
    """Return a function for each class of `positives` that states the problem of that class against the rest."""
    if not X.is_in_memory:
        refuse_elsewhere(model, "centred, which would make sparse rows dense" if X.is_centred else "in blocks on disk")
    l1 = 1.0 if model.l1_ratio is None else float(model.l1_ratio)
    options = {"free_intercept": model._intercept is Intercept.FREE, "loss": LOSSES[model.loss]}
    return [
        lambda k=k: ElasticNet(X, np.where(label == k, 1.0, -1.0), cost, l1, 1.0 - l1, **options) for k in positives
    ]


def penalty_of(model):
    """Return a function of weights that returns their penalty in the objective of a linear model."""
    if not has_sparse_penalty(model):
        return half_square
    l1 = 1.0 if model.l1_ratio is None else float(model.l1_ratio)
    return lambda w: l1 * float(np.abs(w).sum()) + (1.0 - l1) * half_square(w)


def half_square(w):
    """Return ½|w|²."""
    return 0.5 * float(w @ w)


def solve_elastic_nets(model, problems, X):
    """Return the Solution of each problem of a LinearSVC, whose weights are the start if it asks for a warm start."""
    last = model._last_weights(len(problems), X)
    starts = [None] * len(problems) if last is None else list(last)
    in_turn = X.n_stored < _VALUES_WORTH_THREADS
    return model._solve(one_by_one(partial(solve_with, PROX_NEWTON)), problems, starts, in_turn=in_turn)
