"""Specs of solvers are true, and a problem that a solver does not take is refused with the names of those that do."""

from dataclasses import replace

import numpy as np
import pytest

from widemargin.data.matrix import Matrix
from widemargin.problems import classification
from widemargin.problems.formulations import DualQP, Intercept, KernelQP, RiskProblem
from widemargin.problems.multiclass import CrammerSinger
from widemargin.solvers.contract import Settings, Status
from widemargin.solvers.registry import LINEAR_SOLVERS, SPECS, check, counts_of, listed, names_of, specs_of

LINEAR_SPECS = [spec for spec in SPECS if DualQP in spec.takes]
EACH_LINEAR = pytest.mark.parametrize("spec", LINEAR_SPECS, ids=lambda spec: spec.name)


@pytest.fixture
def problem(rng):
    X = rng.standard_normal((40, 3))
    sign = np.where(X[:, 0] + rng.standard_normal(40) > 0.0, 1.0, -1.0)
    return classification.hinge(Matrix(X), sign, np.ones(40))


def test_every_formulation_has_solvers_of_distinct_names():
    for formulation in (DualQP, RiskProblem, KernelQP, CrammerSinger):
        takers = [spec.name for spec in SPECS if formulation in spec.takes]
        assert takers
        assert len(set(takers)) == len(takers)
        assert list(specs_of(formulation)) == takers


@EACH_LINEAR
@pytest.mark.parametrize("intercept", Intercept)
@pytest.mark.parametrize("stopping", ["gap", "kkt", "violation"])
def test_solvers_take_the_intercepts_and_stopping_rules_of_their_specs(spec, intercept, stopping, problem):
    if intercept is Intercept.PENALISED:
        problem = replace(problem, X=Matrix(problem.X.values, constant=1.0))
    problem = replace(problem, free_intercept=intercept is Intercept.FREE)
    assert problem.intercept is intercept
    settings = Settings(tol=1e-2, stopping=stopping, max_iter=10_000)
    if spec.name in names_of(DualQP, intercept=intercept, stopping=stopping):
        solution = LINEAR_SOLVERS[spec.name](problem, settings)
        assert solution.status is Status.CONVERGED
        assert spec.chooses or solution.counts == spec.counts
    else:
        with pytest.raises(ValueError, match=r"penalize_intercept=False needs|stopping="):
            LINEAR_SOLVERS[spec.name](problem, settings)


@EACH_LINEAR
def test_losses_that_a_solver_does_not_take_are_refused_with_those_that_do(spec, problem):
    huber = replace(problem, lower=-np.ones(40), upper=np.ones(40), curvature=np.ones(40))
    takers = ["auto", "dcd", "avsf", "climb", "sbm", "newton"]
    if spec.name in takers:
        check(spec, huber, Settings())
    else:
        with pytest.raises(ValueError, match=f"are hinges or their squares. Use solver={listed(takers)}"):
            check(spec, huber, Settings())


def test_another_formulation_is_refused_with_the_solvers_that_take_it(problem):
    smo = next(spec for spec in SPECS if spec.name == "smo")
    with pytest.raises(TypeError, match="solver='smo' does not minimise a DualQP; use solver='auto', 'dcd'"):
        check(smo, problem, Settings())


@pytest.mark.parametrize(
    ("solver", "counts"),
    [
        ("dcd", "sweeps"),
        ("newton (a small problem)", "steps"),
        ("ocas", "planes"),
        ("dcd, then newton (sweeps turned out to be slow)", "iterations"),
        ("climb, then dcd", "sweeps"),
        ("newton (large costs); dcd (small costs)", "iterations"),
        ("svmlight", "iterations"),
    ],
)
def test_the_unit_of_iterations_follows_from_the_names_of_solvers(solver, counts):
    assert counts_of(solver) == counts
