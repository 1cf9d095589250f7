"""A loss of one row, given by numbers, which `loss=` of the linear models takes besides the names of the usual losses.

A row of cost 1 and with the residual r has the loss

    loss(r) = max over lower <= b <= upper of   b r − epsilon |b| − ½ curvature b²

where r = y − f(x) for regression, and r = 1 − y f(x) with epsilon = 0 for classification with labels y = ±1. The slope
at r > epsilon is (r − epsilon) / curvature, but at most `upper`; the one at r < −epsilon is (r + epsilon) / curvature,
but at least `lower`. A row of cost c has c times this loss, which is of the same form with c lower, c upper and
curvature / c. These are the numbers of a `DualQP`, see `formulations`.

    | loss                            | lower  | upper | curvature |
    |---------------------------------|--------|-------|-----------|
    | hinge                           | 0      | 1     | 0         |
    | squared hinge                   | 0      | ∞     | ½         |
    | epsilon-insensitive             | −1     | 1     | 0         |
    | squared epsilon-insensitive     | −∞     | ∞     | ½         |
    | Huber's, quadratic up to δ      | −1     | 1     | δ         |
    | pinball, for the quantile q     | q − 1  | q     | 0         |
"""

import math
from dataclasses import dataclass
from numbers import Real

import numpy as np

from widemargin.data.matrix import Matrix
from widemargin.problems.formulations import DualQP


@dataclass(frozen=True)
class RowLoss:
    """The loss of one row as three numbers, for the parameter `loss` of `LinearSVC` and `LinearSVR`.

    The loss of a row with the residual r is the maximum of b r − epsilon |b| − ½ curvature b² over lower <= b <= upper,
    times the cost of the row. For `LinearSVR`, r = y − f(x), and epsilon is a parameter of the model; for `LinearSVC`,
    r = 1 − y f(x) with labels y = ±1, and epsilon is 0. The loss is convex, and zero at r = 0.

    Parameters
    ----------
    lower : float
        The smallest slope of the loss, reached for very negative residuals; at most 0. −inf if there is no limit.
    upper : float
        The largest slope of the loss, reached for large residuals; at least 0. inf if there is no limit.
    curvature : float, default=0.0
        Divided by this, a residual beyond epsilon is the slope of the loss there, until a limit is reached. Zero makes
        the loss linear right from epsilon on; a slope without limit needs a positive number.

    Examples
    --------
    Huber's loss, quadratic for residuals up to 20 and linear beyond:

    >>> from sklearn.datasets import load_diabetes
    >>> from widemargin import LinearSVR, RowLoss
    >>> X, y = load_diabetes(return_X_y=True)
    >>> huber = RowLoss(lower=-1.0, upper=1.0, curvature=20.0)
    >>> model = LinearSVR(C=100.0, loss=huber, penalize_intercept=False).fit(X, y)
    >>> model.gap_ <= 1e-4
    True
    """

    lower: float
    upper: float
    curvature: float = 0.0

    def __post_init__(self) -> None:
        for name in ("lower", "upper", "curvature"):
            value = getattr(self, name)
            if not isinstance(value, Real) or math.isnan(value):
                raise ValueError(f"{name} of a RowLoss must be a number, got {value!r}.")
            object.__setattr__(self, name, float(value))
        if not self.lower <= 0.0 <= self.upper:
            raise ValueError(
                f"A RowLoss must have lower <= 0 <= upper, so that it is zero where the residual is; "
                f"got lower={self.lower}, upper={self.upper}."
            )
        if self.lower == self.upper:
            raise ValueError("A RowLoss must have lower < upper, got 0 for both: no row would have a loss.")
        if not 0.0 <= self.curvature < math.inf:
            raise ValueError(f"curvature of a RowLoss must be finite and not negative, got {self.curvature}.")
        if self.curvature == 0.0 and math.isinf(self.upper - self.lower):
            raise ValueError(
                f"A RowLoss with an infinite slope needs a positive curvature; got lower={self.lower}, "
                f"upper={self.upper}, curvature=0."
            )

    def classification(self, X: Matrix, sign: np.ndarray, cost: np.ndarray, free_intercept: bool = False) -> DualQP:
        """Return the problem of rows with signs +1 and −1 and with costs, as a DualQP."""
        lower = np.where(sign > 0.0, self.lower, 0.0 - self.upper)
        upper = np.where(sign > 0.0, self.upper, 0.0 - self.lower)
        return self._problem(X, sign, lower, upper, cost, epsilon=0.0, free_intercept=free_intercept)

    def regression(
        self, X: Matrix, y: np.ndarray, cost: np.ndarray, epsilon: float = 0.0, free_intercept: bool = False
    ) -> DualQP:
        """Return the problem of rows with targets and costs, as a DualQP."""
        return self._problem(X, y, self.lower, self.upper, cost, epsilon=epsilon, free_intercept=free_intercept)

    def _problem(self, X, target, lower, upper, cost, *, epsilon, free_intercept):
        """Return the problem of losses with these slopes, multiplied by the costs; a row of cost 0 has no influence."""
        counts, zeros = cost > 0.0, np.zeros_like(cost)
        return DualQP(
            X,
            target=target,
            lower=np.multiply(lower, cost, out=zeros.copy(), where=counts),
            upper=np.multiply(upper, cost, out=zeros.copy(), where=counts),
            curvature=np.divide(self.curvature, cost, out=zeros.copy(), where=counts),
            epsilon=np.full_like(cost, epsilon),
            free_intercept=free_intercept,
        )
