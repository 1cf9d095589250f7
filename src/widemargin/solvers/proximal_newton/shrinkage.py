"""The minimiser of a quadratic function of one weight with the penalty of the elastic net: soft thresholding."""

from widemargin._runtime.compile import compiled


@compiled
def best_weight(weight, gradient, h, l1, l2):
    """Return the minimiser of gradient (θ − weight) + ½ (h − l2) (θ − weight)² + l1 |θ| + ½ l2 θ².

    If h is 0, so is the gradient of every function that is bounded from below, and the minimiser is zero if there is a
    penalty.
    """
    if h <= 0.0:
        return 0.0 if l1 > 0.0 else weight
    best, threshold = weight - (gradient + l2 * weight) / h, l1 / h
    return max(best - threshold, 0.0) + min(best + threshold, 0.0)
