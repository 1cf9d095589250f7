"""Warnings point to the line of whoever called into the package, not into the package."""

import inspect
import threading
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.model_selection import KFold

import widemargin
from widemargin import ConvergenceWarning
from widemargin._runtime.threads import run
from widemargin._runtime.warning import warn_caller

ESTIMATORS = [
    kind
    for name in widemargin.__all__
    if inspect.isclass(kind := getattr(widemargin, name)) and issubclass(kind, BaseEstimator)
    and "max_iter" in kind().get_params()
]  # fmt: skip
FURTHER = {"LinearSVCCV": {"Cs": [1.0, 1e6]}, "LinearSVRCV": {"Cs": [1.0, 1e6]}}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4)) * [1.0, 10.0, 100.0, 1.0]
    return X, np.where(X[:, 0] + rng.standard_normal(60) > 0, 1, -1)


def impossible(kind):
    """Return an estimator that must stop short."""
    parameters = {"max_iter": 1, "tol": 1e-14, **FURTHER.get(kind.__name__, {})}
    known = kind().get_params()
    if kind is widemargin.LinearOneClassSVM:
        parameters["solver"] = "ocas"
    elif "solver" in known and kind.__name__.startswith("Linear"):
        parameters["solver"] = "dcd"
    elif "cache_size" in known:
        parameters["solver"] = "smo"
    else:
        parameters["C"] = 1e4
    return kind(**parameters)


def line_of(text):
    """Return the number of the line of this file that holds a text, the first one."""
    with open(__file__, encoding="utf-8") as file:
        return next(number for number, line in enumerate(file, 1) if text in line)


def test_there_are_estimators_to_be_tested():
    assert len(ESTIMATORS) >= 12


@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
def test_a_fit_that_stops_short_points_to_the_call_of_fit(kind, rows):
    X, y = rows
    with pytest.warns(ConvergenceWarning, match="stopped after") as caught:
        impossible(kind).fit(X, y)  # this line
    assert {(one.filename, one.lineno) for one in caught} == {(__file__, line_of("# this line"))}


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("kind", [widemargin.SVC, widemargin.LinearSVC], ids=lambda kind: kind.__name__)
def test_grid_search_and_c_path_point_to_their_callers(kind, n_jobs, rows):
    X, y = rows
    estimator = impossible(kind)
    with pytest.warns(ConvergenceWarning, match="stopped") as caught:
        widemargin.grid_search(estimator, X, y, {"C": [1.0, 10.0]}, cv=3, n_jobs=n_jobs)
    assert {one.filename for one in caught} == {__file__}
    if kind is widemargin.LinearSVC:
        with pytest.warns(ConvergenceWarning, match="stopped") as caught:
            widemargin.c_path(estimator, X, y, [1.0, 10.0], cv=3)
        assert {one.filename for one in caught} == {__file__}


def test_a_warning_of_a_fold_in_a_worker_thread_points_to_the_caller_of_grid_search(rows):
    X, _ = rows
    y = np.where(np.arange(60) % 3 == 0, 1, -1)
    model = widemargin.NuSVC(class_weight={1: 1.0, -1: 20.0})
    points = {"nu": [0.5, 0.6], "gamma": [0.1, 1.0]}
    with pytest.warns(UserWarning, match="infeasible with this class_weight") as caught:
        widemargin.grid_search(model, X, y, points, cv=KFold(3), n_jobs=2, refit=False)
    assert {one.filename for one in caught} == {__file__}


def test_a_fit_in_a_thread_of_the_caller_points_to_the_function_of_that_thread(rows):
    X, y = rows
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        thread = threading.Thread(target=lambda: impossible(widemargin.OrdinalSVC).fit(X, y))
        thread.start()
        thread.join()
    assert [one.filename for one in caught] == [__file__]


def test_the_line_is_found_from_every_thread_of_the_pool():
    gate = threading.Barrier(2, timeout=60)

    def work(_):
        gate.wait()
        scope = {"__name__": "widemargin.made_up", "warn_caller": warn_caller}
        code = compile("def inside(): warn_caller('from the pool')", inspect.getfile(warn_caller), "exec")
        exec(code, scope)
        scope["inside"]()

    with pytest.warns(UserWarning, match="from the pool") as caught:
        run(work, [(0,), (1,)], n_jobs=2)
    assert [one.filename for one in caught] == [__file__, __file__]


def test_the_same_place_warns_once_under_the_default_filter():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            warn_caller("the same words")
    assert [str(one.message) for one in caught] == ["the same words"]


@pytest.mark.parametrize("model", [widemargin.LinearSVC(loss="hinge"), widemargin.ROCAreaSVC()])
def test_a_large_gap_that_rounding_leaves_is_not_to_be_met_by_raising_tol(rows, model):
    X, y = rows
    with pytest.warns(ConvergenceWarning, match=r"gap \S+, gap asked .*: scale the features or lower C\.$"):
        model.fit(X * 1e100, y)
    assert model.gap_ > 0.01
