"""Checks that a problem can be solved in double precision, made by linear solvers before they start.

Solvers visit points whose objective is at most about F(0) = Σ_i loss_i(0), the objective of w = 0. This bounds all
numbers that they compute. (If the sum of the dual variables is fixed to another number than 0, the weights are at most
dual_sum max |x_i|, and half the square of this is added to F(0).)

    weights          |w| <= W = √(2 F(0))
    scores           |s_i| <= |x_i| W
    slopes           |loss_i'| <= c_i, the cost; (|target_i| + |s_i|) / curvature_i for a squared loss
                     (with an entropy, entropy log 2 is added to |target_i| here and below)
    cutting planes   |a| <= A = Σ_i c_i |x_i|; its square is computed too
    losses           Σ_i c_i (|target_i| + epsilon_i + |s_i|)

A problem is refused if one of these bounds could overflow, or if one of its numbers is not finite. The message says
which number it is and what to do. No solver therefore meets an infinity or a NaN on its way.
"""

import numpy as np

from widemargin._runtime.compile import compiled

_MAX_MAGNITUDE = 1e300  # of any number that a solver computes; the largest double is 1.8e308
_MODERATE = 1e30
_ALLOWANCE = 1e-9  # relative, of a bound that rounding errors must not make too small
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
    if _are_moderate(problem, squared_norms):
        return
    objective_at_zero = checked_objective_at_zero(problem, squared_norms)
    check_magnitudes(*magnitudes(problem, squared_norms, objective_at_zero), *largest(problem, squared_norms))


def _are_moderate(problem, squared_norms):
    """Return whether all numbers are valid and so moderate that no bound overflows; a quick check of most problems.

    With M = 1e30 and n rows, F(0) <= n M³, |w| <= 2 √n M^1.5, residuals are at most about √n M², slopes √n M³ and a
    cutting plane n^1.5 M^3.5.
    """
    arrays = problem.target, problem.lower, problem.upper, problem.curvature, problem.epsilon
    return _all_moderate(*arrays, squared_norms)


@compiled
def _all_moderate(target, lower, upper, curvature, epsilon, squared_norms):
    """Return whether no number is negative that must not be, and none is too large; NaN is neither."""
    largest_cost, smallest_curvature, are_valid = 0.0, np.inf, True
    for i in range(target.size):
        largest_cost = max(largest_cost, upper[i], -lower[i])
        smallest_curvature = min(smallest_curvature, curvature[i])
        are_valid &= (lower[i] <= 0.0) & (upper[i] >= 0.0) & (abs(target[i]) <= _MODERATE)
        are_valid &= (epsilon[i] >= 0.0) & (epsilon[i] <= _MODERATE)
        are_valid &= (curvature[i] >= 0.0) & (curvature[i] <= _MODERATE)
        are_valid &= (squared_norms[i] >= 0.0) & (squared_norms[i] <= _MODERATE)
    return are_valid and (largest_cost <= _MODERATE or smallest_curvature >= 1.0 / _MODERATE)


def checked_objective_at_zero(problem, squared_norms):
    """Return F(0) of a DualQP, or a bound of it, after a check of all numbers of the problem."""
    _check_norms(squared_norms)
    _check_numbers(problem)
    with np.errstate(over="ignore", invalid="ignore"):
        target = _largest_loss_per_slope(problem)
        return float(np.sum(_max_slopes(problem, target) * target)) + largest_decrease(problem, squared_norms)


def largest_decrease(problem, squared_norms):
    """Return by how much an optimum may be below F(0) because of `dual_sum`, if rows do not cancel: 0 if that is 0.

    It is ½ dual_sum² max |x_i|², with an allowance for rounding errors.
    """
    largest_square = float(squared_norms.max(initial=0.0)) * (1.0 + _ALLOWANCE)
    return 0.5 * problem.dual_sum * problem.dual_sum * largest_square if problem.dual_sum else 0.0


def magnitudes(problem, squared_norms, objective_at_zero):
    """Return bounds of the norm of a cutting plane, and of the sum of the losses: both are sums over rows."""
    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.sqrt(squared_norms)
        target = _largest_loss_per_slope(problem)
        residual = target + problem.epsilon + norms * np.sqrt(2.0 * objective_at_zero)
        slopes = _max_slopes(problem, residual)
        return np.array([np.sum(slopes * norms), np.sum(slopes * residual)])


def largest(problem, squared_norms):
    """Return the largest cost of a row, and the largest norm, for the message."""
    with np.errstate(over="ignore", invalid="ignore"):
        slopes = _max_slopes(problem, np.abs(problem.target))
        return np.array([slopes.max(initial=0.0), np.sqrt(squared_norms.max(initial=0.0))])


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
        check_magnitudes(scale * difference, max_loss, scale, difference)


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
        losses = float(np.sum(cost * (1.0 + difference * max_w)))
        check_magnitudes(np.sum(cost * difference), losses, cost.max(initial=0.0), difference.max(initial=0.0))


def _largest_loss_per_slope(problem):
    """Return a bound of the losses at w = 0, divided by the largest slopes."""
    return np.abs(problem.target) + problem.entropy * np.log(2.0)


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


def check_magnitudes(plane, losses, largest_cost, largest_norm):
    """Refuse costs and norms of rows that give too large a cutting plane, or too large a sum of losses."""
    plane, losses = float(plane), float(losses)
    with np.errstate(over="ignore", invalid="ignore"):
        largest = max(plane * plane, losses) if plane == plane and losses == losses else np.inf
    if not largest < _MAX_MAGNITUDE:
        raise ValueError(
            f"The problem leaves double precision: costs up to {largest_cost:.3g} and rows of length up to "
            f"{largest_norm:.3g} give an objective of up to {largest:.3g}, where {_MAX_MAGNITUDE:.0g} is allowed. "
            f"{_ADVICE}"
        )
