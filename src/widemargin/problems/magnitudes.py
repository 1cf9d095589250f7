"""Checks that a problem can be solved in double precision, made by linear solvers before they start.

Solvers visit points whose objective is at most about F(0) = Σ_i loss_i(0), the objective of w = 0. This bounds all
numbers that they compute:

    weights          |w| <= W = √(2 F(0))
    scores           |s_i| <= |x_i| W
    slopes           |loss_i'| <= c_i, the cost; (|target_i| + |s_i|) / curvature_i for a squared loss
    cutting planes   |a| <= A = Σ_i c_i |x_i|; its square is computed too
    losses           Σ_i c_i (|target_i| + epsilon_i + |s_i|)

A problem is refused if one of these bounds could overflow, or if one of its numbers is not finite. The message says
which number it is and what to do. No solver therefore meets an infinity or a NaN on its way.
"""

import numpy as np

_MAX_MAGNITUDE = 1e300  # of any number that a solver computes; the largest double is 1.8e308
_ADVICE = "Scale the features, or lower C or the weights of rows and classes."


def check_rows(problem, squared_norms):
    """Refuse a DualQP whose numbers may overflow.

    Parameters
    ----------
    problem : DualQP
    squared_norms : ndarray
        |x_i|² of each row.

    Raises
    ------
    ValueError
        If a number of the problem is not valid, or a bound could overflow.
    """
    _check_norms(squared_norms)
    _check_numbers(problem)
    with np.errstate(over="ignore", invalid="ignore"):
        norms, target = np.sqrt(squared_norms), np.abs(problem.target)
        max_w = np.sqrt(2.0 * np.sum(_max_slopes(problem, target) * target))
        residual = target + problem.epsilon + norms * max_w
        slopes = _max_slopes(problem, residual)
        _check_magnitudes(slopes, norms, float(np.sum(slopes * residual)))


def check_mean_risk(scale, squared_norms):
    """Refuse a risk that is `scale` times a mean of hinge losses of differences of scores, if it may overflow.

    Raises
    ------
    ValueError
        If `scale` is not positive and finite, or a bound could overflow.
    """
    _check_norms(squared_norms)
    if not 0.0 < scale < np.inf:
        raise ValueError(f"The factor of the risk must be positive and finite, got {scale}. {_ADVICE}")
    max_norm = np.sqrt(squared_norms.max(initial=0.0))
    with np.errstate(over="ignore", invalid="ignore"):
        difference = 2.0 * max_norm
        max_loss = scale * (1.0 + difference * np.sqrt(2.0 * scale))
        _check_magnitudes(np.array([scale]), np.array([difference]), max_loss)


def check_costs(cost, squared_norms):
    """Refuse rows whose losses are at most cost_i (1 + 2 |s_i|), if they may overflow.

    Raises
    ------
    ValueError
        If a cost is negative or not finite, or a bound could overflow.
    """
    _check_norms(squared_norms)
    _refuse_where(~((cost >= 0.0) & (cost < np.inf)), "cost", cost, "be finite and not negative")
    with np.errstate(over="ignore", invalid="ignore"):
        difference = 2.0 * np.sqrt(squared_norms)
        max_w = np.sqrt(2.0 * np.sum(cost))
        _check_magnitudes(cost, difference, float(np.sum(cost * (1.0 + difference * max_w))))


def _max_slopes(problem, residual):
    """Return the largest |loss_i'| at residuals of up to the given size."""
    bound = np.maximum(np.abs(problem.lower), np.abs(problem.upper))
    no_limit = np.full(len(bound), np.inf)
    of_square = np.divide(residual, problem.curvature, out=no_limit, where=problem.curvature > 0.0)
    return np.where(bound > 0.0, np.minimum(bound, of_square), 0.0)


def _check_norms(squared_norms):
    finite = np.isfinite(squared_norms)
    if not finite.all():
        i = int(np.argmin(finite))
        raise ValueError(f"Row {i} of X is too long: its squared norm overflows. Scale the features.")


def _check_numbers(problem):
    """Refuse targets that are not finite, and losses that are not those of finite, nonnegative costs."""
    _refuse_where(~np.isfinite(problem.target), "target", problem.target, "be finite")
    for name in ("epsilon", "curvature"):
        values = getattr(problem, name)
        _refuse_where(~((values >= 0.0) & (values < np.inf)), name, values, "be finite and not negative")
    for name, sign in (("lower", -1.0), ("upper", 1.0)):
        bound = sign * getattr(problem, name)
        unbounded = (bound == np.inf) & (problem.curvature == 0.0)
        _refuse_where(~(bound >= 0.0) | unbounded, name, getattr(problem, name), "come from a finite, positive cost")


def _refuse_where(invalid, name, values, rule):
    if invalid.any():
        i = int(np.argmax(invalid))
        raise ValueError(f"Row {i} has {name} {values[i]}, which must {rule}. Check y, C and the weights of rows.")


def _check_magnitudes(slopes, norms, losses):
    """Refuse slopes and norms of rows that give too large a cutting plane, and sums of losses that are too large."""
    plane = float(np.sum(slopes * norms))
    largest = max(plane * plane, losses) if plane == plane and losses == losses else np.inf
    if not largest < _MAX_MAGNITUDE:
        raise ValueError(
            f"The problem leaves double precision: costs up to {slopes.max():.3g} and rows of length up to "
            f"{norms.max():.3g} give an objective of up to {largest:.3g}, where {_MAX_MAGNITUDE:.0g} is allowed. "
            f"{_ADVICE}"
        )
