"""Every solver with every loss, intercept and kernel: small problems come out exact, whatever decided on the way.

A weight of two is the row twice, the order of rows and how they are stored do not matter, and fitting again changes
nothing: scikit-learn's checks of that, for the full product of settings. A setting that is not offered is refused by
name.
"""

from itertools import product

import pytest
from sklearn.datasets import make_classification
from sklearn.utils.estimator_checks import estimator_checks_generator

from widemargin import SVC, SVR, LinearOneClassSVM, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM
from widemargin.problems import classification, regression
from widemargin.problems.formulations import DualQP, FixedSumQP, Intercept
from widemargin.solvers.registry import KERNEL_SOLVERS, LINEAR_SOLVERS, names_of, specs_of
from widemargin.solvers.spec import Losses

INTERCEPTS = ({}, {"penalize_intercept": False}, {"fit_intercept": False})
LINEAR = [
    model(loss=loss, solver=solver, **intercept)
    for model, losses in ((LinearSVC, classification.LOSSES), (LinearSVR, regression.LOSSES))
    for loss, solver, intercept in product(losses, LINEAR_SOLVERS, INTERCEPTS)
]
FREE = names_of(DualQP, intercept=Intercept.FREE)
REFUSED = [model for model in LINEAR if model.solver not in FREE and not model.penalize_intercept]
REFUSED_LOSS = [
    model
    for model in LINEAR
    if model.loss in classification.ENTROPIES and specs_of(DualQP)[model.solver].losses is not Losses.ANY
]
REFUSED_LOSS = [model for model in REFUSED_LOSS if model not in REFUSED]
ONE_CLASS = [LinearOneClassSVM(solver=solver) for solver in names_of(FixedSumQP)]
# The sigmoid kernel is not positive definite: there may be several optima.
KERNEL = [
    model.set_params(solver=solver, kernel=kernel)
    for solver, kernel in product(KERNEL_SOLVERS, ("linear", "rbf", "poly", "precomputed"))
    for model in (SVC(), NuSVC(nu=0.3), SVR(), NuSVR(), OneClassSVM())
]
COMPARING = (
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_fit_idempotent",
)


def comparing(estimators):
    """Return pairs of an estimator and a check that compares its fits."""
    pairs = [pair for estimator in estimators for pair in estimator_checks_generator(estimator)]
    return [(estimator, check) for estimator, check in pairs if check.func.__name__ in COMPARING]


def named(part):
    """Return the name of an estimator or a check."""
    name = getattr(getattr(part, "func", None), "__name__", None) or repr(part)
    return " ".join(name.split())


@pytest.mark.filterwarnings("ignore::widemargin.errors.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::sklearn.utils.estimator_checks.SkipTestWarning")
@pytest.mark.filterwarnings("ignore:nu=0.3 is infeasible with this class_weight:UserWarning")
@pytest.mark.parametrize(
    ("estimator", "check"),
    comparing([model for model in LINEAR if model not in REFUSED + REFUSED_LOSS] + ONE_CLASS + KERNEL),
    ids=named,
)
def test_fits_of_the_same_rows_are_the_same(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", REFUSED, ids=named)
def test_what_is_not_offered_is_refused_with_the_solvers_that_would_do(estimator):
    X, y = make_classification(n_samples=20, n_features=4, random_state=0)
    with pytest.raises(ValueError, match=r"newton.*ocas"):
        estimator.fit(X, y)


@pytest.mark.parametrize("estimator", REFUSED_LOSS, ids=named)
def test_a_loss_that_is_not_taken_is_refused_with_the_solvers_that_would_do(estimator):
    X, y = make_classification(n_samples=20, n_features=4, random_state=0)
    with pytest.raises(ValueError, match=r"takes losses that are .*newton"):
        estimator.fit(X, y)
