"""The continuation of one solver by another, and the joint record of both."""

from dataclasses import replace

import numpy as np

from widemargin.solvers.contract import HISTORY, Solution


def rest_of(settings, first):
    """Return settings that allow what a first solution has left of the limits."""
    left = {"max_iter": None if settings.max_iter is None else max(1, settings.max_iter - first.n_iter)}
    if settings.max_seconds is not None:
        left["max_seconds"] = max(0.0, settings.max_seconds - first.history["seconds"][-1])
    return replace(settings, **left)


def joined(first, second, why=""):
    """Return the second solution with the history of the first before its own, the better one of each bound."""
    history = np.concatenate([first.history, second.history]).astype(HISTORY)
    for name in ("iteration", "seconds", "passes"):
        history[name][len(first.history) :] += first.history[name][-1]
    proof = first if first.dual > second.dual else second
    point = first if first.primal < second.primal else second
    history["primal"][-1], history["dual"][-1] = point.primal, proof.dual
    return Solution(
        w=point.w,
        beta=proof.beta,
        primal=point.primal,
        dual=proof.dual,
        n_iter=first.n_iter + second.n_iter,
        status=second.status,
        solver=first.solver if first.solver == second.solver else f"{first.solver}, then {second.solver}",
        history=history,
        why=why,
        counts=first.counts if first.counts == second.counts else "iterations",
        intercept=point.intercept,
        is_exact=second.is_exact and point is second and proof is second,
    )
