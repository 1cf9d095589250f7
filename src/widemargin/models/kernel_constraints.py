"""Which values the parameters of kernels and of a basis may have, for all machines that have them."""

from numbers import Integral, Real
from typing import get_args

import numpy as np

from widemargin.models.argument_types import BasisChoice
from widemargin.models.sklearn_private import Interval, StrOptions

KERNEL_CONSTRAINTS: dict = {
    "degree": [Interval(Integral, 0, np.iinfo(np.int32).max, closed="both")],
    "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="left")],
    "coef0": [Interval(Real, None, None, closed="neither")],
}
"""Of the parameters of kernels."""
BASIS_CONSTRAINTS: dict = {
    "basis": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"}), "array-like", "sparse matrix", None],
    "basis_choice": [StrOptions(set(get_args(BasisChoice)))],
}
"""Of the parameters `basis` and `basis_choice`."""
