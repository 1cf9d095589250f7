"""Passes over the squared hinge losses of rows, compiled: derivatives at a point, and along a direction.

The loss of row i is cost_i max(0, z_i)² with z_i = 1 − sign_i s_i, where the scores s include the intercept.
"""

from widemargin._runtime.compile import compiled


@compiled
def set_derivatives(scores, sign, cost, slope, curvature):
    """Set slope[i] to minus the derivative of loss i by its score, and curvature[i] to the second derivative.

    Return the sum of the losses and Σ |slope_i|.
    """
    loss, total = 0.0, 0.0
    for i in range(scores.size):
        z = 1.0 - sign[i] * scores[i]
        if z > 0.0:
            a = 2.0 * cost[i] * z
            loss += 0.5 * a * z
            total += a
            slope[i], curvature[i] = sign[i] * a, 2.0 * cost[i]
        else:
            slope[i], curvature[i] = 0.0, 0.0
    return loss, total


@compiled
def loss_along(scores, direction, sign, cost, step):
    """Return the sum of the losses at scores + step direction, and its derivative by the step."""
    loss, derivative = 0.0, 0.0
    for i in range(scores.size):
        z = 1.0 - sign[i] * (scores[i] + step * direction[i])
        if z > 0.0:
            loss += cost[i] * z * z
            derivative -= 2.0 * cost[i] * z * sign[i] * direction[i]
    return loss, derivative
