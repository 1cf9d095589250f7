"""Sums over rows for the certificates of `finishing`: of losses, of losses at the worst scores, and of dual terms.

Losses of hinges and their dual terms are added one by one, by compensated sums. Losses with an entropy need an
exponential and logarithms. Their loops are vectorised, so that few terms are added plainly, and these sums by
compensated ones.
"""

from widemargin._runtime.compile import SUMS, compiled
from widemargin.kernels.exponential import fast_exp
from widemargin.problems.entropy_risk import sum_dual_terms
from widemargin.problems.losses import loss_and_slope, unit_log1p

ROWS_ADDED_PLAINLY = 64  # terms with an entropy whose sum is one term of a compensated sum


@compiled
def sum_losses(target, lower, upper, curvature, epsilon, start, stop, scores, norms, intercept, w_norm, score_error):
    """Return three sums over start <= i < stop: losses, losses at the worst score, and |c_i| (|target_i| + |x_i| |w|).

    The worst score is the one with the largest loss within score_error (|x_i| |w| + |intercept|) of the given one. c_i
    is the derivative of the loss; the last sum includes the tube.
    """
    loss, loss_rest, worst, worst_rest, plane_size = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(start, stop):
        residual, error = target[i] - (scores[i] + intercept), score_error * (norms[i] * w_norm + abs(intercept))
        is_zero_above, is_zero_below = residual + error <= epsilon[i], residual - error >= -epsilon[i]
        if (is_zero_above or upper[i] == 0.0) and (is_zero_below or lower[i] == 0.0):
            continue  # no loss, at any of the three scores
        here, slope = loss_and_slope(residual, lower[i], upper[i], curvature[i], epsilon[i])
        above, _ = loss_and_slope(residual + error, lower[i], upper[i], curvature[i], epsilon[i])
        below, _ = loss_and_slope(residual - error, lower[i], upper[i], curvature[i], epsilon[i])
        loss, loss_rest = _compensated_sum(loss, loss_rest, here)
        worst, worst_rest = _compensated_sum(worst, worst_rest, max(above, below))
        plane_size += slope * (abs(target[i]) + epsilon[i] + norms[i] * w_norm)
    return loss + loss_rest, worst + worst_rest, plane_size


@compiled
def sum_dual(target, lower, upper, curvature, epsilon, start, stop, beta, norms):
    """Return Σ target_i beta_i − epsilon_i |beta_i| − ½ curvature_i beta_i² over start <= i < stop.

    The second result is the sum of the absolute values of these terms, the third is Σ |beta_i| |x_i|.
    """
    value, rest, size, v_size = 0.0, 0.0, 0.0, 0.0
    for i in range(start, stop):
        gain, cost = target[i] * beta[i], abs(beta[i]) * (epsilon[i] + 0.5 * curvature[i] * abs(beta[i]))
        value, rest = _compensated_sum(value, rest, gain - cost)
        size += abs(gain) + cost
        v_size += abs(beta[i]) * norms[i]
    return value + rest, size, v_size


@compiled
def sum_smooth_losses(target, lower, upper, entropy, start, stop, scores, norms, intercept, w_norm, score_error):
    """Return the sums of `sum_losses` for losses with an entropy."""
    loss, loss_rest, excess, plane_size = 0.0, 0.0, 0.0, 0.0
    for first in range(start, stop, ROWS_ADDED_PLAINLY):
        here = slice(first, min(first + ROWS_ADDED_PLAINLY, stop))
        rows = target[here], lower[here], upper[here], scores[here], norms[here]
        part, excess_part, size_part = _smooth_losses_of_block(*rows, entropy, intercept, w_norm, score_error)
        loss, loss_rest = _compensated_sum(loss, loss_rest, part)
        excess += excess_part
        plane_size += size_part
    return loss + loss_rest, loss + loss_rest + excess, plane_size


@compiled(fastmath=SUMS)
def _smooth_losses_of_block(target, lower, upper, scores, norms, entropy, intercept, w_norm, score_error):
    """Return the sums of losses, of bounds on how much the worst score increases each of them, and of plane sizes.

    A loss has a second derivative of at most width / (4 entropy), and a slope of at most the larger bound.
    """
    loss, excess, plane_size = 0.0, 0.0, 0.0
    for i in range(scores.size):
        residual, error = target[i] - (scores[i] + intercept), score_error * (norms[i] * w_norm + abs(intercept))
        e, width = fast_exp(-abs(residual) / entropy), upper[i] - lower[i]
        share = width * (e / (1.0 + e))
        bound, slope = (
            upper[i] if residual > 0.0 else lower[i],
            upper[i] - share if residual > 0.0 else lower[i] + share,
        )
        loss += bound * residual + entropy * width * unit_log1p(e)
        by_curvature = error * (abs(slope) + 0.125 * width / entropy * error)
        by_slope = error * (upper[i] if upper[i] > -lower[i] else -lower[i])
        excess += by_curvature if by_curvature < by_slope else by_slope
        plane_size += abs(slope) * (abs(target[i]) + norms[i] * w_norm)
    return loss, excess, plane_size


@compiled
def sum_smooth_dual(target, lower, upper, entropy, start, stop, beta, norms):
    """Return the sums of `sum_dual` for losses with an entropy, whose terms are target_i beta_i + entropy H_i."""
    value, rest, size, v_size = 0.0, 0.0, 0.0, 0.0
    for first in range(start, stop, ROWS_ADDED_PLAINLY):
        here = slice(first, min(first + ROWS_ADDED_PLAINLY, stop))
        part, part_size = sum_dual_terms(target[here], lower[here], upper[here], entropy, beta[here])
        value, rest = _compensated_sum(value, rest, part)
        size += part_size
        v_size += _sum_of_sizes(beta[here], norms[here])
    return value + rest, size, v_size


@compiled(fastmath=SUMS)
def _sum_of_sizes(beta, norms):
    """Return Σ |beta_i| |x_i|."""
    total = 0.0
    for i in range(beta.size):
        total += abs(beta[i]) * norms[i]
    return total


@compiled
def _compensated_sum(total, rest, number):
    """Return total + number, and the sum of all rounding errors so far, by the method of Neumaier (1974)."""
    new_total = total + number
    if abs(total) >= abs(number):
        rest += (total - new_total) + number
    else:
        rest += (number - new_total) + total
    return new_total, rest
