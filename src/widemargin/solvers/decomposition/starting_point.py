"""Feasible dual variables from which a kernel solver starts, and a check that no objective overflows."""

import math
from itertools import pairwise

import numpy as np

_LARGEST_OBJECTIVE = 1e300
_GROUP_SUM_TOL = 1e-10  # of a start, per dual variable


def check_sizes(problem):
    """Raise ValueError if the objective may overflow: it is at most ½ (Σ costs)² max |K| + Σ costs max |p|."""
    costs = float(np.maximum(np.abs(problem.lower), np.abs(problem.upper)).sum())
    check_costs(problem, costs, float(np.abs(problem.linear).max(initial=0.0)))


def check_costs(problem, costs, linear):
    """Raise ValueError as `check_sizes` does, given the sum of the costs and max |p|."""
    costs_or_one = costs if costs > 1.0 or costs != costs else 1.0
    size = max(float(problem.K.bound), 1.0) * (costs_or_one * costs_or_one) + linear * costs_or_one
    if not size < _LARGEST_OBJECTIVE:
        raise ValueError(
            f"The objective overflows: kernel values reach {problem.K.bound:.3g}, targets {linear:.3g} and the weights "
            f"of losses add up to {costs:.3g}. Scale the features or the targets, or lower C or sample_weight."
        )


def feasible(problem, start):
    """Return the start clipped to its bounds; if this changes the group sums, the start of the problem."""
    if start is None:
        return problem.start.copy()
    start, sums = np.asarray(start, dtype=np.float64), group_sums(problem, problem.start)
    is_within = (start >= problem.lower).all() and (start <= problem.upper).all()
    if not is_within and not sums.any():
        start = start * min(1.0, largest_feasible_factor(problem, start))
    start = start.copy() if is_within else np.clip(start, problem.lower, problem.upper)
    scale = max(1.0, np.abs(start).max(initial=0.0))
    tol = _GROUP_SUM_TOL * scale * np.maximum(1, np.diff(problem.ends))
    found = np.array([start[begin:end].sum() for begin, end in pairwise(problem.ends)])
    return start if (np.abs(found - sums) <= tol).all() else problem.start.copy()


def group_sums(problem, beta):
    """Return the sum of the dual variables of each group."""
    if not beta.any():
        return np.zeros(len(problem.ends) - 1)
    return np.array([math.fsum(beta[begin:end].tolist()) for begin, end in pairwise(problem.ends)])


def largest_feasible_factor(problem, beta):
    """Return the largest factor by which beta can be multiplied without leaving its bounds."""
    bound = np.where(beta > 0.0, problem.upper, problem.lower)
    return np.divide(bound, beta, out=np.full(len(beta), np.inf), where=beta != 0.0).min(initial=np.inf)
