"""The time that working sets will take to the end, estimated from the last of them."""

import numpy as np
import pytest

from widemargin.solvers.decomposition.forecast import Forecast


def forecast_of(violations, nanoseconds=5.0):
    forecast = Forecast()
    for violation in violations:
        forecast.add(nanoseconds, violation)
    return forecast


def test_violations_that_fall_by_a_constant_factor_reach_the_goal_as_estimated():
    violations = 0.5 ** np.arange(100)
    left = forecast_of(violations[:31]).nanoseconds_left(violations[80])
    assert left == pytest.approx(5.0 * (80 - 30), rel=0.15)  # from the middle of the newer half on


@pytest.mark.parametrize(
    "violations",
    [np.ones(40), 2.0 ** np.arange(40), 0.5 ** np.arange(10), np.zeros(40), np.full(40, np.nan), np.full(40, np.inf)],
    ids=["constant", "rising", "too few", "zero", "nan", "infinite"],
)
def test_no_end_is_seen_where_violations_do_not_fall(violations):
    assert forecast_of(violations).nanoseconds_left(1e-3) == np.inf


def test_no_end_is_seen_without_a_goal():
    assert forecast_of(0.5 ** np.arange(40)).nanoseconds_left(0.0) == np.inf


def test_nothing_is_left_below_the_goal():
    assert forecast_of(0.5 ** np.arange(40)).nanoseconds_left(1.0) == 0.0
