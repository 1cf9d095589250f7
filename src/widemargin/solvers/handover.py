"""Continuing the solution of one solver by another, with one history for both."""

from dataclasses import replace

import numpy as np

from widemargin.solvers.contract import HISTORY, Solution


def rest_of(settings, first):
    """Return settings whose limits of iterations and time are reduced by what the first solution has used."""
    left = {"max_iter": None if settings.max_iter is None else max(1, settings.max_iter - first.n_iter)}
    if settings.max_seconds is not None:
        left["max_seconds"] = max(0.0, settings.max_seconds - first.history["seconds"][-1])
    return replace(settings, **left)


def joined(first, second, why=""):
    """Return the Solution of two solvers that ran one after the other.

    It has the weights with the lower primal objective, the dual variables with the higher dual objective, the histories
    of both, and the status of the second.
    """
    history = np.concatenate([first.history, second.history]).astype(HISTORY)
    for name in ("iteration", "seconds", "passes"):
        history[name][len(first.history) :] += first.history[name][-1]
    best_primal = first if first.primal < second.primal else second
    best_dual = first if first.dual > second.dual else second
    history["primal"][-1], history["dual"][-1] = best_primal.primal, best_dual.dual
    return Solution(
        w=best_primal.w,
        beta=best_dual.beta,
        primal=best_primal.primal,
        dual=best_dual.dual,
        n_iter=first.n_iter + second.n_iter,
        status=second.status,
        solver=first.solver if first.solver == second.solver else f"{first.solver}, then {second.solver}",
        history=history,
        why=why,
        counts=first.counts if first.counts == second.counts else "iterations",
        intercept=best_primal.intercept,
        scale=second.scale,
        is_exact=second.is_exact and best_primal is second and best_dual is second,
    )
