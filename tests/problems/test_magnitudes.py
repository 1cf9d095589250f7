"""Problems that leave double precision are refused, and the quick check passes none of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from widemargin.data.matrix import Matrix
from widemargin.problems import magnitudes
from widemargin.problems.formulations import DualQP

SIZES = st.sampled_from([0.0, 1e-300, 1e-40, 1e-20, 1.0, 1e20, 1e40, 1e80, 1e150, 1e300, np.inf, np.nan, -1.0])


@given(target=SIZES, cost=SIZES, curvature=SIZES, epsilon=SIZES, squared_norm=SIZES)
def test_what_the_quick_check_passes_the_complete_one_does_too(target, cost, curvature, epsilon, squared_norm):
    X = Matrix(np.ones((3, 1)))
    numbers = {"target": target, "lower": -cost, "upper": cost, "curvature": curvature, "epsilon": epsilon}
    problem = DualQP(X, **{name: np.array([value, 0.0, 0.0]) for name, value in numbers.items()})
    norms = np.array([squared_norm, 1.0, 1.0])
    if magnitudes._are_moderate(problem, norms):
        objective = magnitudes.checked_objective_at_zero(problem, norms)
        largest = magnitudes.largest(problem, norms)
        magnitudes.check_magnitudes(*magnitudes.magnitudes(problem, norms, objective), *largest)


@pytest.mark.parametrize("name", ["target", "lower", "upper", "curvature", "epsilon"])
def test_a_number_that_is_not_valid_is_refused_by_name(name):
    numbers = {"target": 1.0, "lower": -1.0, "upper": 1.0, "curvature": 0.0, "epsilon": 0.0, name: np.nan}
    problem = DualQP(Matrix(np.ones((1, 1))), **{key: np.array([value]) for key, value in numbers.items()})
    with pytest.raises(ValueError, match=f"Row 0 has {name} nan"):
        magnitudes.check_rows(problem, np.ones(1))
