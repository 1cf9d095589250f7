"""grid_search takes scikit-learn's parameter grids, and its result has the names of GridSearchCV's."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, ParameterGrid, StratifiedKFold
from sklearn.preprocessing import scale

from widemargin import SVC, GridResult, LinearSVC, NuSVC, grid_search, read_grid

FOLDS = StratifiedKFold(3)
KERNELS = [{"kernel": ["linear"], "C": [0.1, 1.0]}, {"kernel": ["rbf"], "C": [1.0], "gamma": [0.01, 0.1]}]


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X)[:150], y[:150]


def as_theirs(params, names):
    """Return the points of GridSearchCV as ours: each with all names, where theirs leave gamma at its default."""
    return [{"gamma": "scale", **point} if "gamma" in names else point for point in params]


@pytest.mark.parametrize(
    "grid",
    [{"C": [0.1, 1.0], "gamma": [0.01, 0.1]}, {"kernel": ["linear", "poly"], "gamma": [0.1]}, KERNELS],
    ids=["numbers", "kernels", "list of dicts"],
)
def test_scores_and_their_names_are_those_of_grid_search_cv(cancer, grid):
    model = SVC(tol=1e-6)
    ours = grid_search(model, *cancer, grid, cv=FOLDS).cv_results_
    theirs = GridSearchCV(model, grid, cv=FOLDS).fit(*cancer).cv_results_
    assert ours.keys() == {name for name in theirs if not name.endswith("_time")}
    params = as_theirs(theirs["params"], [name for one in ParameterGrid(grid) for name in one])
    order = [ours["params"].index(point) for point in params]
    assert sorted(order) == list(range(len(ours["params"])))
    for name in ours.keys() - {"params"}:
        if name.startswith("param_"):
            assert isinstance(ours[name], np.ma.MaskedArray)
            assert ours[name][order].tolist() == [point[name.removeprefix("param_")] for point in params]
        else:
            np.testing.assert_allclose(ours[name][order], theirs[name], rtol=1e-12)
            assert ours[name].dtype == theirs[name].dtype


def test_a_name_that_a_dict_lacks_has_the_estimators_own_value(cancer):
    result = grid_search(SVC(gamma=0.05), *cancer, KERNELS, cv=FOLDS)
    assert result.names == ("kernel", "C", "gamma")
    assert {tuple(point.values()) for point in result.points} == {
        ("linear", 0.1, 0.05), ("linear", 1.0, 0.05), ("rbf", 1.0, 0.01), ("rbf", 1.0, 0.1),
    }  # fmt: skip
    assert result.best_model.get_params().items() >= result.best_params.items()


def test_a_point_of_two_dicts_is_computed_once(cancer):
    heard = []
    grid = [{"C": [1.0, 2.0]}, {"C": [2.0, 4.0]}]
    result = grid_search(LinearSVC(), *cancer, grid, cv=FOLDS, refit=False, callback=heard.append)
    assert sorted(point["C"] for point in result.points) == [1.0, 2.0, 4.0]
    assert len(heard) == 3


def test_a_list_of_one_dict_is_that_dict(cancer):
    grid = {"C": [0.1, 1.0]}
    results = [grid_search(SVC(gamma=0.01), *cancer, given, cv=FOLDS, refit=False) for given in (grid, [grid], (grid,))]
    for other in results[1:]:
        assert other.points == results[0].points
        np.testing.assert_array_equal(other.scores, results[0].scores)


def test_only_the_dict_with_the_best_point_grows_and_is_refined(cancer):
    grid = [
        {"kernel": ["linear"], "C": [2.0**-9, 2.0**-7]},
        {"kernel": ["sigmoid"], "C": [1e-6, 1e-5], "gamma": [1e-4]},
    ]
    result = grid_search(SVC(), *cancer, grid, cv=FOLDS, extend=1, refine=1, refit=False)
    assert result.best_params["kernel"] == "linear"
    tried = {kernel: [p["C"] for p in result.points if p["kernel"] == kernel] for kernel in ("linear", "sigmoid")}
    assert sorted(tried["sigmoid"]) == [1e-6, 1e-5]
    assert len(tried["linear"]) > 3
    assert {2.0**-9, 2.0**-7} < set(tried["linear"])


def test_a_list_of_dicts_is_resumed_from_its_file(cancer, tmp_path):
    options = {"cv": FOLDS, "refit": False, "results": tmp_path / "r"}
    whole = grid_search(SVC(), *cancer, KERNELS, **options)
    lines = (tmp_path / "r").read_text().splitlines(keepends=True)
    (tmp_path / "r").write_text("".join(lines[:-4]))
    again = grid_search(SVC(), *cancer, KERNELS, **options, resume=True)
    for found in (again, read_grid(tmp_path / "r")):
        order = [found.points.index(point) for point in whole.points]
        np.testing.assert_array_equal(found.scores[order], whole.scores)


def test_ranks_put_equal_means_together_and_points_without_a_score_last():
    scores = np.array([[0.5, 0.7], [0.7, 0.5], [0.9, 0.9], [np.nan, 0.9], [0.1, 0.1]])
    result = GridResult(("nu",), tuple({"nu": k / 10} for k in range(5)), scores, "accuracy", np.zeros(5))
    found = result.cv_results_
    assert found["rank_test_score"].tolist() == [2, 2, 1, 5, 4]
    np.testing.assert_allclose(found["std_test_score"][:3], [0.1, 0.1, 0.0])
    assert found["rank_test_score"][result.best] == 1
    assert found["params"][result.best] == result.best_params


def test_values_of_any_kind_make_a_table(cancer):
    grid = {"class_weight": [None, {0: 1.0, 1: 2.0}, "balanced"], "shrinking": [True, False]}
    found = grid_search(SVC(), *cancer, grid, cv=FOLDS, refit=False).cv_results_
    assert found["param_shrinking"].dtype == bool
    table = pd.DataFrame(found)
    assert len(table) == 6
    assert table["param_class_weight"].tolist() == [point["class_weight"] for point in found["params"]]


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ([], "a list of such dicts with a dict at the least, got \\[\\]"),
        ([{"C": [1.0]}, {}], "a dict of name to values with a name at the least"),
        ([{"C": [1.0]}, ["gamma"]], "or a list of such dicts, got \\['gamma'\\]"),
        ("C", "got 'C'"),
        ([{"C": [1.0]}, {"nu": [0.1]}], "SVC has no parameter 'nu'"),
        ([{"C": [1.0]}, {"gamma": 0.1}], "the values of 'gamma' must be a list, got 0.1"),
    ],
)
def test_grids_that_mean_nothing_are_refused(cancer, grid, message):
    with pytest.raises(ValueError, match=message):
        grid_search(SVC(), *cancer, grid)


def test_a_list_all_of_whose_points_are_infeasible_is_refused_even_when_it_may_grow(cancer):
    with pytest.raises(ValueError, match="no point of the grid has a score: every nu is too large"):
        grid_search(NuSVC(), *cancer, [{"nu": [0.98]}, {"nu": [0.99]}], cv=FOLDS, extend=2)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (
            {"fit_parameters": {"weights": np.ones(20)}},
            "SVC.fit has no 'weights'; besides X and y it has",
        ),
        ({"fit_parameters": {"sample_weight": np.ones(19)}}, "value for each of 20 rows, got shape (19,)"),
        ({"fit_parameters": {"sample_weight": 2.0}}, "value for each of 20 rows, got shape ()"),
        ({"extend": -1}, "extend must be 0 or larger, got -1"),
        ({"refine": -1}, "refine must be 0 or larger, got -1"),
        ({"memory": np.nan}, "memory must be 0 or larger, got nan"),
    ],
)
def test_wrong_arguments_of_a_search_are_refused_by_name(options, says):
    X, y = np.arange(40.0).reshape(20, 2), np.arange(20) % 2
    with pytest.raises(ValueError, match=re.escape(says)):
        grid_search(SVC(), X, y, {"C": [1.0]}, **options)
