"""The negative log-likelihood of a sigmoid of decision values, its gradient and its curvature, as compiled sums.

    F(A, B) = Σ w_i (t_i z_i + log(1 + exp(−z_i))),   z_i = A f_i + B

Many small problems of this kind are fitted, one for each pair of classes. A pass of NumPy over some hundred rows takes
a dozen calls and ten times as long as these loops.
"""

import math

from widemargin._runtime.compile import compiled


@compiled
def sigmoid_loss(decision, target, weight, A, B):
    """Return F(A, B), in a form without overflow or cancellation for large |z|."""
    total = 0.0
    for i in range(decision.size):
        z = A * decision[i] + B
        total += weight[i] * ((target[i] if z >= 0.0 else target[i] - 1.0) * z + math.log1p(math.exp(-abs(z))))
    return total


@compiled
def sigmoid_curvatures(decision, target, weight, A, B, parts):
    """Set parts[0] to the derivatives of the terms of F by z, and parts[1] to their second derivatives.

    Returns the sums of derivatives times f, of derivatives, and of second derivatives.
    """
    along_A = along_B = total = 0.0
    for i in range(decision.size):
        z = A * decision[i] + B
        small = math.exp(-abs(z))
        other = 1.0 / (1.0 + small)  # the larger one of P(y = +1 | f) and 1 minus it
        probability = small * other if z >= 0.0 else other
        parts[0, i] = weight[i] * (target[i] - probability)
        parts[1, i] = weight[i] * small * other * other
        along_A += parts[0, i] * decision[i]
        along_B += parts[0, i]
        total += parts[1, i]
    return along_A, along_B, total


@compiled
def weighted_mean(values, weight, reference, total):
    """Return reference + Σ weight_i (values_i − reference) / total; reference if the total is zero."""
    mean = 0.0
    for i in range(values.size):
        mean += weight[i] * (values[i] - reference)
    return reference + mean / total if total > 0.0 else reference


@compiled
def centred_sums(values, first, second, centre):
    """Return Σ first_i (values_i − centre) and Σ second_i (values_i − centre)²."""
    linear = square = 0.0
    for i in range(values.size):
        difference = values[i] - centre
        linear += first[i] * difference
        square += second[i] * difference * difference
    return linear, square
