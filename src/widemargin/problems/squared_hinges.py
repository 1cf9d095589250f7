"""The minimum of a sum of squared hinges of one variable, such as an intercept without penalty."""

import numpy as np

_MAX_NEWTON_STEPS = 100


def minimise_squared_hinges(kinks, weights, side):
    """Return the minimiser of Σ weight max(0, side (kink − b))², the midpoint if the loss is zero on an interval.

    Newton's method, safeguarded by a bracket of the minimiser.
    """
    upper, lower = kinks[side > 0.0], kinks[side < 0.0]
    low = upper.max() if len(upper) else lower.min()
    high = lower.min() if len(lower) else low
    if low <= high:
        return float(0.5 * (low + high))
    low, high, b = float(high), float(low), float(0.5 * (low + high))
    for _ in range(_MAX_NEWTON_STEPS):
        z = side * (kinks - b)
        active = z > 0.0
        half_slope, half_second = -(weights * side * z)[active].sum(), weights[active].sum()
        low, high = (b, high) if half_slope < 0.0 else (low, b)
        new_b = b - half_slope / half_second if half_second > 0.0 else 0.5 * (low + high)
        new_b = new_b if low <= new_b <= high else 0.5 * (low + high)
        if new_b == b or high - low <= np.spacing(max(abs(low), abs(high))):
            break
        b = new_b
    return b
