"""Scales: where values lie on an axis, and which of them are written beside it."""

import math
from dataclasses import dataclass

import numpy as np

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Scale:
    """An axis from `low` to `high`, as they are or by their logarithm, with ticks and what is written at them."""

    low: float
    high: float
    ticks: tuple
    texts: tuple
    logarithmic: bool = False

    def places(self, values):
        """Return where values lie: 0 at the low end, 1 at the high end; those beyond are put at the end."""
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
        What it has to hold; widened to whole steps if `rounded`.
    n_ticks : int
        About how many ticks there are to be.
    whole : bool
        Whether all ticks are whole numbers.
    is_share : bool
        Whether ticks are written as percentages.
    """
    if not high > low:
        low, high = low - 0.5 * (abs(low) or 1.0), high + 0.5 * (abs(high) or 1.0)
    rough = max((high - low) / n_ticks, float(whole))
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(step * power for step in _STEPS if step * power >= rough * (1.0 - _ROUNDING))
    if rounded:
        low, high = step * math.floor(low / step + _ROUNDING), step * math.ceil(high / step - _ROUNDING)
    first, last = math.ceil(low / step - _ROUNDING), math.floor(high / step + _ROUNDING)
    ticks = tuple(k * step for k in range(first, last + 1))
    texts = [f"{plain(100.0 * tick, 100.0 * step)}%" if is_share else plain(tick, step) for tick in ticks]
    return Scale(low, high, ticks, tuple(texts))


def plain(tick, step):
    """Return a tick, a multiple of its step, with as many digits as the step has; if that is large or tiny, with a
    power of ten. The text is within a thousandth of the step of the tick."""
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
    """Return a logarithmic scale of whole powers of ten that holds `low` > 0 and `high`."""
    first, last = math.floor(math.log10(low) + _ROUNDING), math.ceil(math.log10(high) - _ROUNDING)
    last = max(last, first + 1)
    every = -(-(last - first) // n_ticks)
    exponents = range(first, last + 1, every)
    return Scale(10.0**first, 10.0**last, tuple(10.0**k for k in exponents), tuple(f"1e{k}" for k in exponents), True)


def categories(names):
    """Return a scale on which the k-th name is at k, each with half a step around it."""
    return Scale(-0.5, len(names) - 0.5, tuple(range(len(names))), tuple(map(str, names)))


def positions(values, texts, n_ticks=None):
    """Return a scale that ends half a step beyond the first and last of ascending values, all or some of them ticks."""
    values = np.asarray(values, dtype=np.float64)
    edges = boundaries(values)
    every = 1 if n_ticks is None else -(-len(values) // n_ticks)
    return Scale(float(edges[0]), float(edges[-1]), tuple(values[::every].tolist()), tuple(texts[::every]))


def boundaries(values):
    """Return where the cells of ascending values begin and end: halfway to their neighbours."""
    values = np.asarray(values, dtype=np.float64)
    if len(values) == 1:
        return values[0] + np.array([-0.5, 0.5])
    between = (values[1:] + values[:-1]) / 2.0
    return np.concatenate([[1.5 * values[0] - 0.5 * values[1]], between, [1.5 * values[-1] - 0.5 * values[-2]]])
