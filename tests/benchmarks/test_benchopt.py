"""The files for benchopt import, and their solver finds the certified minimum of a tiny problem."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import widemargin

benchopt = pytest.importorskip("benchopt", reason="benchopt is not installed")
FOLDER = Path(__file__).parents[2] / "benchmarks" / "benchopt"


def loaded(name):
    """Return the module of a file of the benchmark."""
    spec = importlib.util.spec_from_file_location(f"benchopt_{name.replace('/', '_')}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(params=[(60, 8, 1.0), (60, 40, 0.2)], ids=["dense", "sparse"])
def objective(request):
    """The objective of simulated rows."""
    n_samples, n_features, density = request.param
    dataset = loaded("datasets/simulated").Dataset.get_instance(
        n_samples=n_samples, n_features=n_features, density=density, noise=1.0, random_state=0
    )
    found = loaded("objective").Objective.get_instance(C=0.5)
    found.set_data(**dataset.get_data())
    return found


@pytest.mark.parametrize("name", ["auto", "dcd", "newton"])
def test_our_solver_comes_to_the_certified_minimum(objective, name):
    solver = loaded("solvers/widemargin").Solver.get_instance(solver=name)
    problem = objective.get_objective()
    assert solver.skip(**problem) == (False, None)
    solver.set_objective(**problem)
    solver.run(1e-9)
    reached = objective.evaluate_result(**solver.get_result())["value"]
    model = widemargin.LinearSVC(loss="hinge", C=0.5, fit_intercept=False, tol=1e-10, max_iter=None)
    model.fit(problem["X"], problem["y"])
    assert reached * (1.0 - 1e-8) <= model.objective_ <= reached * (1.0 + 1e-8)


def test_a_tolerance_that_asks_for_nothing_gives_zero(objective):
    solver = loaded("solvers/widemargin").Solver.get_instance(solver="auto")
    solver.set_objective(**objective.get_objective())
    solver.run(1e38)
    assert not solver.get_result()["beta"].any()


@pytest.mark.parametrize("file", ["liblinear", "sgd"])
def test_a_peer_comes_nearer_with_more_iterations(objective, file):
    solver = loaded(f"solvers/{file}").Solver.get_instance()
    solver.set_objective(**objective.get_objective())
    values = []
    for n_iter in (0, 200):
        solver.run(n_iter)
        values.append(objective.evaluate_result(**solver.get_result())["value"])
    assert values[1] < values[0]


def test_newton_is_skipped_where_it_would_refuse():
    solver = loaded("solvers/widemargin").Solver.get_instance(solver="newton")
    assert solver.skip(X=np.zeros((2, 3001)), y=None, C=1.0)[0]
