"""Kernel functions K(x, z), computed from inner products <x, z>.

    linear    <x, z>                        rbf        exp(−gamma |x − z|²)
    poly      (gamma <x, z> + coef0)^degree   sigmoid    tanh(gamma <x, z> + coef0)

A kernel is a name and numbers, so that one compiled function serves these four. The values of "precomputed" and
"callable" kernels come from a matrix, or from a function K(A, B) of two blocks of rows.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from widemargin._runtime.compile import compiled
from widemargin.kernels.exponential import fast_exp
from widemargin.kernels.gaussians import exp_for, numbers_per_vector, put_gaussians

_LARGEST_SINGLE = 1e30  # limit for numbers in single precision, with a margin before they overflow
_LARGEST_DOUBLE = 1e300  # the same in double precision
_LARGEST_EXPONENT_IN_SINGLE = 16.0  # for gamma |x|² up to this, the rbf exponent has an error of about 1e-5

_LARGEST_EXPONENT_UNCENTRED = 1e3  # the same in double precision, for an error of less than 1e-12

_LINEAR, _POLY, _RBF, _SIGMOID = range(4)
_KINDS = {"linear": _LINEAR, "poly": _POLY, "rbf": _RBF, "sigmoid": _SIGMOID}


@dataclass(frozen=True)
class Kernel:
    """A kernel function and its parameters.

    Parameters
    ----------
    name : {"linear", "poly", "rbf", "sigmoid", "precomputed", "callable"}
    gamma, coef0 : float
    degree : int
    function : callable
        For "callable": K(A, B), which returns an array of shape (rows of A, rows of B).
    """

    name: str
    gamma: float = 1.0
    coef0: float = 0.0
    degree: int = 3
    function: Callable | None = None

    @property
    def from_products(self):
        """Whether K(x, z) is computed from inner products."""
        return self.name in _KINDS

    @property
    def numbers(self):
        """The numbers that say to compiled functions which kernel it is, if it is computed from inner products."""
        return _KINDS[self.name], self.gamma, self.coef0, self.degree

    @property
    def positive_definite(self):
        """Whether every kernel matrix is known to be positive semidefinite; then |K(x, z)|² <= K(x, x) K(z, z)."""
        return self.name in ("linear", "rbf") or (self.name == "poly" and self.coef0 >= 0.0)

    def diagonal(self, squared_norms):
        """Return K(x, x) of rows with these squared norms, in float64."""
        with np.errstate(over="ignore"):
            if self.name == "linear":
                return squared_norms.copy()
            if self.name == "poly":
                return (self.gamma * squared_norms + self.coef0) ** self.degree
            if self.name == "rbf":
                return np.ones_like(squared_norms)
            return np.tanh(self.gamma * squared_norms + self.coef0)

    def bound(self, squared_norms):
        """Return an upper bound of |K(x, z)| for rows with these squared norms; infinite if values may overflow."""
        if self.name in ("rbf", "sigmoid"):
            return 1.0
        return self.largest(squared_norms)

    def check(self, squared_norms):
        """Raise ValueError if a kernel value or an intermediate result may overflow in double precision."""
        if self.largest(squared_norms) < _LARGEST_DOUBLE and abs(self.gamma) < _LARGEST_DOUBLE:
            return
        remedies = {
            "poly": f"lower degree (now {self.degree}), gamma ({self.gamma:.3g}) or coef0 ({self.coef0:.3g}), or scale",
            "rbf": f"lower gamma ({self.gamma:.3g}), or scale",
            "sigmoid": f"lower gamma ({self.gamma:.3g}), or scale",
        }
        raise ValueError(
            f"kernel={self.name!r} overflows: squared norms of rows reach {squared_norms.max(initial=0.0):.3g}. "
            f"To make its values smaller, {remedies.get(self.name, 'scale')} the features."
        )

    def largest(self, squared_norms):
        """Return an upper bound of |K(x, z)| and of all intermediate results, for rows with these squared norms."""
        product = squared_norms.max(initial=0.0)
        with np.errstate(over="ignore"):
            inner = np.float64(abs(self.gamma)) * product + abs(self.coef0) if self.name != "linear" else product
            inner = inner**self.degree if self.name == "poly" else inner
        return float(max(product, inner))

    def exact_uncentred(self, squared_norms):
        """Return whether the rbf exponent of rows that are not centred is accurate in double precision."""
        return self.name != "rbf" or self.gamma * squared_norms.max(initial=0.0) <= _LARGEST_EXPONENT_UNCENTRED

    def exact_in_single(self, squared_norms):
        """Return whether inner products in single precision suffice: no overflow, and an accurate rbf exponent."""
        if not (self.largest(squared_norms) < _LARGEST_SINGLE and _is_single(self.gamma) and _is_single(self.coef0)):
            return False
        if not _is_single(squared_norms.max(initial=0.0)):
            return False
        return self.name != "rbf" or self.gamma * squared_norms.max(initial=0.0) <= _LARGEST_EXPONENT_IN_SINGLE

    def finish(self, products, own, others, slots, out, start):
        """Set out[slots[b], start + j] to the kernel value of products[b, j], own[b] and others[start + j].

        `own` and `others` are the squared norms of the two rows, which only rbf uses. `products` is overwritten.
        """
        _finish_tile(*self.numbers, products, own, others, slots, out, start)


def _is_single(number):
    """Return whether a number is zero, or neither overflows nor underflows in single precision, with a margin."""
    return number == 0.0 or 1.0 / _LARGEST_SINGLE < abs(number) < _LARGEST_SINGLE


@compiled(fastmath=frozenset({"contract"}))
def _finish_tile(kind, gamma, coef0, degree, products, own, others, slots, out, start):
    """Turn a tile of inner products into kernel values, as `Kernel.finish` describes."""
    for b in range(products.shape[0]):
        source, target = products[np.uint64(b)], out[np.uint64(slots[b])][start : start + products.shape[1]]
        finish_row(kind, gamma, coef0, degree, source, own[b], others[start : start + source.size], target)


@compiled(fastmath=frozenset({"contract"}))
def finish_row(kind, gamma, coef0, degree, products, own, others, target):
    """Set target to the kernel values of a row of inner products; `own` is |x|², `others` are |z|². See `numbers`."""
    number = products.dtype.type
    if kind == _RBF:
        _rbf(products, number(gamma), number(own), others, target)
    elif kind == _POLY:
        _poly(products, number(gamma), number(coef0), degree, target)
    elif kind == _SIGMOID:
        _sigmoid(products, number(gamma), number(coef0), target)
    else:
        for j in range(products.size):
            target[j] = products[j]


@compiled(fastmath=frozenset({"contract"}))
def _rbf(products, gamma, own, others, target):
    """Set target = exp(−gamma (|x|² + |z|² − 2 <x, z>)); an exponent that rounding makes positive becomes 0."""
    # Constants of the type of the products: an integer constant would make the expression float64.
    zero, double_gamma, width = gamma - gamma, gamma + gamma, numbers_per_vector(products, target)
    n_by_vectors = products.size // width * width
    for j in range(0, n_by_vectors, width):
        put_gaussians(products, gamma, (own, others), target, j)
    for j in range(n_by_vectors, products.size):
        exponent = double_gamma * products[j] - gamma * (own + others[j])
        target[j] = exp_for(exponent if exponent < zero else zero, products, target)


@compiled(fastmath=frozenset({"contract"}))
def _poly(products, gamma, coef0, degree, target):
    """Set target = (gamma <x, z> + coef0)^degree by repeated squaring, one pass over the row for each step."""
    for j in range(products.size):
        products[j] = gamma * products[j] + coef0
        target[j] = 1.0
    while degree > 0:
        if degree % 2:
            for j in range(products.size):
                target[j] *= products[j]
        for j in range(products.size):
            products[j] *= products[j]
        degree //= 2


@compiled(fastmath=frozenset({"contract"}))
def _sigmoid(products, gamma, coef0, target):
    """Set target = tanh(z) = 1 − 2 / (exp(2 z) + 1); near 0, where this cancels, by the Taylor series of tanh."""
    number = products.dtype.type
    one, two, largest_double_z = number(1), number(2), number(40)  # tanh(20) rounds to 1 in double precision
    near_zero = number(0.25**2 if products.itemsize == 4 else 0.004**2)
    for j in range(products.size):
        z = gamma * products[j] + coef0
        square, double_z = z * z, two * z
        far = one - two / (fast_exp(double_z if double_z < largest_double_z else largest_double_z) + one)
        series = number(62 / 2835) * square - number(17 / 315)
        series = (series * square + number(2 / 15)) * square - number(1 / 3)
        target[j] = z + z * square * series if square < near_zero else far
