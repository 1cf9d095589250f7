"""Compiled losses of single rows: against the plain NumPy of certificates, for every kind of loss."""

import numpy as np
import pytest

from widemargin.data.matrix import Matrix
from widemargin.problems.certificates import loss_slopes, losses
from widemargin.problems.formulations import DualQP
from widemargin.problems.losses import hinge_argument, loss_and_slope

LOSSES = {
    "hinge": (0.0, 2.0, 0.0, 0.0),
    "hinge of a negative row": (-2.0, 0.0, 0.0, 0.0),
    "squared hinge": (0.0, np.inf, 0.25, 0.0),
    "epsilon-insensitive": (-2.0, 2.0, 0.0, 0.3),
    "squared epsilon-insensitive": (-np.inf, np.inf, 0.25, 0.3),
    "Huber": (-2.0, 2.0, 0.5, 0.0),
    "pinball": (-0.2, 1.8, 0.0, 0.0),
    "zero cost": (0.0, 0.0, 0.0, 0.3),
}


@pytest.mark.parametrize("numbers", LOSSES.values(), ids=LOSSES.keys())
def test_compiled_losses_and_slopes_are_those_of_the_certificates(numbers):
    lower, upper, curvature, epsilon = numbers
    r = np.concatenate([np.linspace(-3.0, 3.0, 61), [-epsilon, epsilon, 0.0]])
    columns = {"lower": lower, "upper": upper, "curvature": curvature, "epsilon": epsilon}
    arrays = {name: np.full(len(r), value) for name, value in columns.items()}
    problem = DualQP(Matrix(np.zeros((len(r), 1))), target=r, **arrays)
    found = np.array([loss_and_slope(one, lower, upper, curvature, epsilon) for one in r])
    np.testing.assert_allclose(found[:, 0], losses(problem, np.zeros(len(r))), rtol=1e-14, atol=1e-15)
    np.testing.assert_array_equal(found[:, 1], np.abs(loss_slopes(problem, r)))


@pytest.mark.parametrize(("signed_weight", "z"), [(2.0, 1.0 - 0.25), (-2.0, 1.0 + 0.25), (0.0, 0.75), (-0.0, 1.25)])
def test_the_argument_of_a_hinge_has_the_side_of_its_weight(signed_weight, z):
    assert hinge_argument(signed_weight, 1.0, 0.25) == z
