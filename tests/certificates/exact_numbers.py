"""Arrays of dyadic rationals m · 2^e with whole m of any size: sums, differences and products are exact.

Every float is such a number, so an objective that is a polynomial of the data with maxima in between can be computed
without any rounding. NumPy does the loops over arrays of Python integers.
"""

from fractions import Fraction

import numpy as np


class Exact:
    """An array of numbers `mantissa · 2^exponent`, mantissas an object array of Python integers."""

    __slots__ = ("exponent", "mantissa")

    def __init__(self, mantissa, exponent):
        self.mantissa, self.exponent = mantissa, exponent

    @classmethod
    def of(cls, values):
        """Return the exact numbers of an array of floats; of a long double, its two halves added."""
        values = np.asarray(values)
        if values.dtype == np.longdouble:
            high = values.astype(np.float64)
            return cls._of_doubles(high) + cls._of_doubles((values - high).astype(np.float64))
        return cls._of_doubles(values.astype(np.float64))

    @classmethod
    def _of_doubles(cls, values):
        if not np.isfinite(values).all():
            raise ValueError("Only finite numbers can be judged exactly.")
        fraction, exponent = np.frexp(values)
        whole = np.ldexp(fraction, 53).astype(np.int64).astype(object)
        exponent = exponent.astype(np.int64) - 53
        occurring = exponent[values != 0.0]
        least = int(occurring.min()) if occurring.size else 0
        shifts = np.maximum(exponent - least, 0).astype(object)
        return cls(np.asarray(whole * 2**shifts, dtype=object), least)

    def _aligned(self, other):
        """Return the mantissas of both for the smaller exponent of the two."""
        other = other if isinstance(other, Exact) else Exact.of(other)
        least = min(self.exponent, other.exponent)
        return (
            self.mantissa * (1 << (self.exponent - least)),
            other.mantissa * (1 << (other.exponent - least)),
            least,
        )

    def __add__(self, other):
        a, b, exponent = self._aligned(other)
        return Exact(a + b, exponent)

    def __sub__(self, other):
        a, b, exponent = self._aligned(other)
        return Exact(a - b, exponent)

    def __neg__(self):
        return Exact(-self.mantissa, self.exponent)

    def __mul__(self, other):
        other = other if isinstance(other, Exact) else Exact.of(other)
        return Exact(self.mantissa * other.mantissa, self.exponent + other.exponent)

    def __matmul__(self, other):
        return Exact(np.dot(self.mantissa, other.mantissa), self.exponent + other.exponent)

    def __abs__(self):
        return Exact(abs(self.mantissa), self.exponent)

    def __getitem__(self, index):
        return Exact(np.asarray(self.mantissa, dtype=object)[index], self.exponent)

    def __len__(self):
        return len(self.mantissa)

    @property
    def T(self):
        """The transpose."""
        return Exact(self.mantissa.T, self.exponent)

    def positive_part(self):
        """Return max(0, x) of each number."""
        return Exact(np.where(self.mantissa > 0, self.mantissa, 0), self.exponent)

    def total(self):
        """Return the sum of all numbers, a Fraction."""
        return _fraction(np.sum(self.mantissa), self.exponent)

    def fractions(self):
        """Return a list of Fractions, of a vector."""
        return [_fraction(one, self.exponent) for one in self.mantissa]


def _fraction(mantissa, exponent):
    return Fraction(int(mantissa)) * Fraction(2) ** exponent
