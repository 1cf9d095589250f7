"""Scales of axes: the positions of values, and the ticks."""

import math
from dataclasses import dataclass

import numpy as np

_TICK_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)  # times a power of ten
_ROUNDING = 1e-9  # relative tolerance of comparisons


@dataclass(frozen=True)
class Scale:
    """A linear or logarithmic axis from `low` to `high`, with ticks and their texts."""

    low: float
    high: float
    ticks: tuple
    texts: tuple
    logarithmic: bool = False

    def places(self, values):
        """Return the relative positions of values: 0 at `low`, 1 at `high`; values beyond are clipped."""
        values = np.clip(np.asarray(values, dtype=np.float64), self.low, self.high)
        low, high = self.low, self.high
        if self.logarithmic:
            values, low, high = np.log(values), math.log(low), math.log(high)
        return (values - low) / (high - low)


def linear(low, high, n_ticks=5, *, rounded=True, whole=False, is_share=False):
    """Return a scale whose ticks are multiples of 1, 2, 2.5 or 5 times a power of ten.

    Parameters
    ----------
    low, high : float
        Range of the scale; extended to the next ticks if `rounded`.
    n_ticks : int
        Approximate number of ticks.
    whole : bool
        Whether all ticks are integers.
    is_share : bool
        Whether ticks are written as percentages.
    """
    if not high > low:
        low, high = low - 0.5 * (abs(low) or 1.0), high + 0.5 * (abs(high) or 1.0)
    rough = max((high - low) / n_ticks, float(whole))
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(step * power for step in _TICK_STEPS if step * power >= rough * (1.0 - _ROUNDING))
    if rounded:
        low, high = step * math.floor(low / step + _ROUNDING), step * math.ceil(high / step - _ROUNDING)
    first, last = math.ceil(low / step - _ROUNDING), math.floor(high / step + _ROUNDING)
    ticks = tuple(k * step for k in range(first, last + 1))
    texts = [f"{plain(100.0 * tick, 100.0 * step)}%" if is_share else plain(tick, step) for tick in ticks]
    return Scale(low, high, ticks, tuple(texts))


def plain(tick, step):
    """Return the text of a tick, a multiple of its step, with the decimals of the step.

    If the step is below 1e-4 or from 1e6 on, the text has an exponent. It differs from the tick by at most a thousandth
    of the step.
    """
    if abs(tick) < 0.5 * step:
        return "0"
    if not 1e-4 <= step < 1e6:
        exponent = math.floor(math.log10(abs(tick)))
        digits = max(0, exponent - math.floor(math.log10(step)) + 2)
        mantissa, _, power = f"{tick:.{digits}e}".partition("e")
        decimals = mantissa.rstrip("0").removesuffix(".") if "." in mantissa else mantissa
        return f"{decimals}e{int(power)}".replace("-", "−")
    digits = next((k for k in range(7) if abs(round(step, k) - step) <= _ROUNDING * step), 7)
    return f"{tick:,.{digits}f}".replace("-", "−")


def powers_of_ten(low, high, n_ticks=5):
    """Return a logarithmic scale between powers of ten that contains `low` > 0 and `high`."""
    first, last = math.floor(math.log10(low) + _ROUNDING), math.ceil(math.log10(high) - _ROUNDING)
    last = max(last, first + 1)
    every = -(-(last - first) // n_ticks)
    exponents = range(first, last + 1, every)
    return Scale(10.0**first, 10.0**last, tuple(10.0**k for k in exponents), tuple(f"1e{k}" for k in exponents), True)


def categories(names):
    """Return a scale from −0.5 to n − 0.5 on which the k-th of n names is at k."""
    return Scale(-0.5, len(names) - 0.5, tuple(range(len(names))), tuple(map(str, names)))


def positions(values, texts, n_ticks=None):
    """Return a scale that extends half a step beyond ascending values; all or every n-th of them are ticks."""
    values = np.asarray(values, dtype=np.float64)
    edges = boundaries(values)
    every = 1 if n_ticks is None else -(-len(values) // n_ticks)
    return Scale(float(edges[0]), float(edges[-1]), tuple(values[::every].tolist()), tuple(texts[::every]))


def boundaries(values):
    """Return the boundaries of the cells of ascending values, halfway between neighbours."""
    values = np.asarray(values, dtype=np.float64)
    if len(values) == 1:
        return values[0] + np.array([-0.5, 0.5])
    between = (values[1:] + values[:-1]) / 2.0
    return np.concatenate([[1.5 * values[0] - 0.5 * values[1]], between, [1.5 * values[-1] - 0.5 * values[-2]]])
