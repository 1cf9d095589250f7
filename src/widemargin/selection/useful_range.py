"""The useful range of C: values between two limits, in geometric progression.

The lower limit is the smallest C at which some row reaches zero loss; below it, the direction of w does not depend on
C. With an L1 penalty it is the largest C for which all weights are zero. The upper limit is reached when either the
penalty or the sum of the losses is at most a thousandth of the objective; beyond it, the model changes very little.
"""

import numpy as np

from widemargin.models.elastic_net import half_square

_RATIO_OF_ADJACENT_C = 10.0**0.5
_MAX_VALUES_OF_C = 40
_NEGLIGIBLE_PART_OF_OBJECTIVE = 1e-3


def is_final(solution, penalty_of=half_square, at_zero=np.inf):
    """Return whether the penalty or the sum of the losses is negligible, so that a larger C changes the model little.

    `penalty_of(w)` returns the penalty of weights. If an objective `at_zero` of weights zero is given, a solution that
    is hardly better is not final: its weights have hardly begun to grow.
    """
    penalty, negligible = penalty_of(solution.w), _NEGLIGIBLE_PART_OF_OBJECTIVE * solution.primal
    return min(penalty, solution.primal - penalty) <= negligible and solution.primal < at_zero - negligible


def useful_range(problems):
    """Return values of C in geometric progression; the costs of the problems are those for C = 1."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        power = np.floor(np.log(min(map(_smallest_useful_C, problems))) / np.log(_RATIO_OF_ADJACENT_C))
        Cs = _RATIO_OF_ADJACENT_C ** (power + np.arange(_MAX_VALUES_OF_C))
    if not (np.isfinite(Cs).all() and Cs[0] > 0.0):
        raise ValueError(
            "The useful range of C for these X, y and weights is beyond double precision: scale the features and "
            "targets, or give Cs."
        )
    return Cs


def _smallest_useful_C(problem):
    """Return the lower limit of the range."""
    own = getattr(problem, "smallest_C", None)
    return _smallest_C_with_a_zero_loss(problem) if own is None else own()


def _smallest_C_with_a_zero_loss(problem):
    """Return the smallest factor of the costs at which a row with positive loss at w = 0 reaches zero loss.

    For small C, w is C times the sum of the negative gradients of the losses at w = 0. The residual of a row
    decreases in proportion to C, from `beyond` at C = 0, at the rate `gain`.
    """
    place = problem.X.place
    rate = float(place.largest(_fastest_gain, problem, place.total(_descent_at_zero, problem)))
    return 1.0 / rate if rate > 0.0 else 1.0


def _side_and_beyond(problem):
    """Return the side on which a row has a loss at w = 0, and how far its score is from zero loss.

    Losses with an entropy are never zero: they are taken as half decayed where the score equals the entropy.
    """
    if problem.entropy:
        return np.sign(problem.upper + problem.lower), np.full(len(problem.upper), problem.entropy)
    return np.sign(problem.target), np.maximum(np.abs(problem.target) - problem.epsilon, 0.0)


def _descent_at_zero(problem):
    """Return the sum of the negative gradients of the losses at w = 0."""
    side, beyond = _side_and_beyond(problem)
    is_squared, bound = problem.curvature > 0.0, np.where(side > 0.0, problem.upper, -problem.lower)
    gradient = np.divide(beyond, problem.curvature, out=np.where(is_squared, 0.0, bound), where=is_squared)
    return problem.X.combine(np.where(beyond > 0.0, side * gradient, 0.0))


def _fastest_gain(problem, direction):
    """Return the largest gain of a row in proportion to what it is beyond zero loss; 0 if no row gains."""
    side, beyond = _side_and_beyond(problem)
    gain = side * problem.X.scores(direction)
    improves = (gain > 0.0) & (beyond > 0.0)
    return float(np.max(gain[improves] / beyond[improves])) if improves.any() else 0.0
