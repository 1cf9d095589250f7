"""Whether the numbers of a problem stay within double precision: what linear solvers ask before they begin.

Solvers work with points whose objective is at most about F(0) = Σ_i loss_i(0), the objective of w = 0. For rows of norm
|x_i| this bounds all that they compute:

    weights          |w| <= W = √(2 F(0))
    scores           |s_i| <= |x_i| W
    slopes           |loss_i'| <= c_i, the cost; (|target_i| + |s_i|) / curvature_i for a squared loss
    cutting planes   |a| <= A = Σ_i c_i |x_i|, of which the square is needed
    losses           Σ_i c_i (|target_i| + epsilon_i + |s_i|)

A problem for which one of these leaves double precision, or of which a number is not finite, is refused here, in
words that say which and what to do. So no loop ever begins with numbers that become infinite or NaN on its way.
"""

import numpy as np

_LARGEST = 1e300  # of anything computed on the way; the largest double is 1.8e308
_WAY_OUT = "Scale the features, or lower C or the weights of rows and classes."


def check_rows(problem, norms):
    """Refuse a DualQP whose numbers leave double precision.

    Parameters
    ----------
    problem : DualQP
    norms : ndarray
        |x_i|² of each row.

    Raises
    ------
    ValueError
        If a number is not legal, or would overflow.
    """
    _check_norms(norms)
    _check_legal(problem)
    with np.errstate(over="ignore", invalid="ignore"):
        length, target = np.sqrt(norms), np.abs(problem.target)
        reach = np.sqrt(2.0 * np.sum(_slopes(problem, target) * target))
        residual = target + problem.epsilon + length * reach
        slopes = _slopes(problem, residual)
        _check_sizes(slopes, length, float(np.sum(slopes * residual)))


def check_mean_risk(scale, norms):
    """Refuse a risk that is `scale` times a mean of hinges of differences of scores, if it leaves double precision.

    Raises
    ------
    ValueError
        If `scale` is not positive and finite, or something would overflow.
    """
    _check_norms(norms)
    if not 0.0 < scale < np.inf:
        raise ValueError(f"The factor of the risk must be positive and finite, got {scale}. {_WAY_OUT}")
    longest = np.sqrt(norms.max(initial=0.0))
    with np.errstate(over="ignore", invalid="ignore"):
        difference = 2.0 * longest
        _check_sizes(np.array([scale]), np.array([difference]), scale * (1.0 + difference * np.sqrt(2.0 * scale)))


def check_costs(cost, norms):
    """Refuse rows of these costs that each lose at most cost · (1 + 2 |s_i|), if that leaves double precision.

    Raises
    ------
    ValueError
        If a cost is negative or not finite, or something would overflow.
    """
    _check_norms(norms)
    _refuse_where(~((cost >= 0.0) & (cost < np.inf)), "cost", cost, "be finite and not negative")
    with np.errstate(over="ignore", invalid="ignore"):
        length = 2.0 * np.sqrt(norms)
        reach = np.sqrt(2.0 * np.sum(cost))
        _check_sizes(cost, length, float(np.sum(cost * (1.0 + length * reach))))


def _slopes(problem, residual):
    """Return the steepest slope of each loss at residuals of up to this size."""
    bound = np.maximum(np.abs(problem.lower), np.abs(problem.upper))
    soft = np.divide(residual, problem.curvature, out=np.full(len(bound), np.inf), where=problem.curvature > 0.0)
    return np.where(bound > 0.0, np.minimum(bound, soft), 0.0)


def _check_norms(norms):
    finite = np.isfinite(norms)
    if not finite.all():
        i = int(np.argmin(finite))
        raise ValueError(f"Row {i} of X is too long: its squared norm overflows. Scale the features.")


def _check_legal(problem):
    """Refuse targets that are not finite, and losses that are not those of finite, nonnegative costs."""
    _refuse_where(~np.isfinite(problem.target), "target", problem.target, "be finite")
    for name in ("epsilon", "curvature"):
        values = getattr(problem, name)
        _refuse_where(~((values >= 0.0) & (values < np.inf)), name, values, "be finite and not negative")
    for name, sign in (("lower", -1.0), ("upper", 1.0)):
        bound = sign * getattr(problem, name)
        unlimited = (bound == np.inf) & (problem.curvature == 0.0)
        _refuse_where(~(bound >= 0.0) | unlimited, name, getattr(problem, name), "come from a finite, positive cost")


def _refuse_where(wrong, name, values, rule):
    if wrong.any():
        i = int(np.argmax(wrong))
        raise ValueError(f"Row {i} has {name} {values[i]}, which must {rule}. Check y, C and the weights of rows.")


def _check_sizes(slopes, length, losses):
    """Refuse slopes and lengths of rows whose planes, or losses, are too large."""
    plane = float(np.sum(slopes * length))
    largest = max(plane * plane, losses) if plane == plane and losses == losses else np.inf
    if not largest < _LARGEST:
        raise ValueError(
            f"The problem leaves double precision: costs up to {slopes.max():.3g} and rows of length up to "
            f"{length.max():.3g} give an objective of up to {largest:.3g}, where {_LARGEST:.0g} is allowed. {_WAY_OUT}"
        )
