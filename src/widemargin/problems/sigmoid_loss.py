"""The negative log-likelihood of a sigmoid of decision values, and its minimum by Newton's method, compiled.

    F(A, B) = Σ w_i (t_i z_i + log(1 + exp(−z_i))),   z_i = A f_i + B

Many small problems of this kind are solved, one for each pair of classes. A pass of NumPy over some hundred rows takes
a dozen calls and ten times as long as these loops. Iteration limits and tolerances are those of LIBSVM.

Reference: Lin, Lin and Weng, A note on Platt's probabilistic outputs for support vector machines, Machine Learning 68
(2007).
"""

from widemargin._runtime.compile import SUMS, compiled
from widemargin.kernels.exponential import fast_exp
from widemargin.problems.losses import unit_log1p

_MAX_NEWTON_STEPS = 100
_GRADIENT_TOL = 1e-5
_MIN_STEP_LENGTH = 1e-10
_RIDGE = 1e-12  # added to the diagonal of the Hessian, which is singular if all decision values are equal
_ARMIJO = 1e-4  # a step must reduce the loss by this fraction of the decrease that the slope predicts


@compiled
def minimise_sigmoid_loss(decision, target, weight, B, parts):
    """Return the A and B that minimise F, from A = 0 and a given B; `parts` is memory for two numbers a row.

    Kept true: F(A, B) decreases with every step.
    """
    lowest = highest = decision[0]
    for i in range(decision.size):
        lowest, highest = min(lowest, decision[i]), max(highest, decision[i])
    middle, A = 0.5 * (lowest + highest), 0.0
    value = sigmoid_loss(decision, target, weight, A, B)
    for _ in range(_MAX_NEWTON_STEPS):
        along_A, along_B, step_A, step_B = _newton(decision, target, weight, A, B, middle, parts)
        if max(abs(along_A), abs(along_B)) < _GRADIENT_TOL:
            break
        slope, length, is_lower = along_A * step_A + along_B * step_B, 1.0, False
        while length >= _MIN_STEP_LENGTH:
            new_value = sigmoid_loss(decision, target, weight, A + length * step_A, B + length * step_B)
            is_lower = new_value < value + _ARMIJO * length * slope
            if is_lower:
                break
            length /= 2.0
        if not is_lower:  # no step decreases the loss: the optimum is reached to double precision
            break
        A, B, value = A + length * step_A, B + length * step_B, new_value
    return A, B


@compiled
def _newton(decision, target, weight, A, B, middle, parts):
    """Return the gradient g and the Newton direction −(H + ridge I)⁻¹ g.

    Let c_i be the curvature of row i, s = Σ c_i, m = Σ c_i f_i / s and v = Σ c_i (f_i − m)². Then
    H = [[v + m² s, m s], [m s, s]]. The determinant is computed from v, s and m as a sum of positive terms. The formula
    H₁₁ H₂₂ − H₁₂² would lose all digits by cancellation if the decision values are almost equal. `middle` is that of
    the range of f: if all values are equal, their differences from it are exactly zero.
    """
    along_A, along_B, s = sigmoid_curvatures(decision, target, weight, A, B, parts)
    m = weighted_mean(decision, parts[1], middle, s)
    centred_gradient, v = centred_sums(decision, parts[0], parts[1], m)
    determinant = v * s + _RIDGE * (v + m * m * s + s) + _RIDGE**2
    step_A = s * centred_gradient + _RIDGE * along_A
    step_B = (v + _RIDGE) * along_B - m * s * centred_gradient
    return along_A, along_B, -step_A / determinant, -step_B / determinant


@compiled(fastmath=SUMS)
def sigmoid_loss(decision, target, weight, A, B):
    """Return F(A, B), in a form without overflow or cancellation for large |z|."""
    total = 0.0
    for i in range(decision.size):
        z = A * decision[i] + B
        total += weight[i] * ((target[i] if z >= 0.0 else target[i] - 1.0) * z + unit_log1p(fast_exp(-abs(z))))
    return total


@compiled(fastmath=SUMS)
def sigmoid_curvatures(decision, target, weight, A, B, parts):
    """Set parts[0] to the derivatives of the terms of F by z, and parts[1] to their second derivatives.

    Returns the sums of derivatives times f, of derivatives, and of second derivatives.
    """
    along_A = along_B = total = 0.0
    for i in range(decision.size):
        z = A * decision[i] + B
        small = fast_exp(-abs(z))
        other = 1.0 / (1.0 + small)  # the larger one of P(y = +1 | f) and 1 minus it
        probability = small * other if z >= 0.0 else other
        parts[0, i] = weight[i] * (target[i] - probability)
        parts[1, i] = weight[i] * small * other * other
        along_A += parts[0, i] * decision[i]
        along_B += parts[0, i]
        total += parts[1, i]
    return along_A, along_B, total


@compiled(fastmath=SUMS)
def weighted_mean(values, weight, reference, total):
    """Return reference + Σ weight_i (values_i − reference) / total; reference if the total is zero."""
    mean = 0.0
    for i in range(values.size):
        mean += weight[i] * (values[i] - reference)
    return reference + mean / total if total > 0.0 else reference


@compiled(fastmath=SUMS)
def centred_sums(values, first, second, centre):
    """Return Σ first_i (values_i − centre) and Σ second_i (values_i − centre)²."""
    linear = square = 0.0
    for i in range(values.size):
        difference = values[i] - centre
        linear += first[i] * difference
        square += second[i] * difference * difference
    return linear, square
