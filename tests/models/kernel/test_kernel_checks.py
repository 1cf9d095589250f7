"""The kernel machines keep scikit-learn's contract: all of its checks, with one exception.

`check_classifiers_train` wants `predict` to agree with `decision_function` and with `predict_proba`. Calibrated
probabilities need not be 1/2 where the decision value is 0: `predict_by` says with which of the two `predict` agrees.
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
@pytest.mark.filterwarnings("ignore:Probabilities are fitted to [0-9] row:UserWarning")
@pytest.mark.filterwarnings("ignore:nu=0.3 is infeasible with this class_weight:UserWarning")
@pytest.mark.parametrize(
    ("estimator", "check"), CHECKS, ids=lambda part: getattr(getattr(part, "func", None), "__name__", repr(part))
)
def test_scikit_learns_contract_is_kept(estimator, check):
    if check.func.__name__ == "check_array_api_input":
        pytest.skip("array API input is not offered: scikit-learn issue 22352, until 2.0")
    if check.func.__name__ == "check_classifiers_train" and getattr(estimator, "calibration", None) == "isotonic":
        pytest.skip("the isotonic probability of 1/2 is not at the decision value 0; see predict_by")
    check(estimator)
