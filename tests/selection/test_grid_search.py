"""grid_search against scikit-learn's cross_val_score, point by point; what it keeps, and what it refuses."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold, cross_val_score
from sklearn.preprocessing import scale

from widemargin import (
    SVC,
    SVR,
    ConvergenceWarning,
    FormatError,
    LinearSVC,
    LinearSVR,
    NuSVC,
    RankSVM,
    grid_search,
    read_grid,
)
from widemargin.errors import InfeasibleNuError
from widemargin.kernels.rows import submatrix
from widemargin.models.kernel import training_rows
from widemargin.plots.grid import grid_fragment
from widemargin.selection.parameter_ranges import default_grid, edges, grown, refined
from widemargin.selection.results_file import GridFile, fingerprint

EXACT = 1e-8  # tolerance of fits whose predictions are compared one by one


class _SVCOfNames(SVC):
    """A user's subclass with a fit of its own."""

    n_fits = 0

    def fit(self, X, y, sample_weight=None):
        type(self).n_fits += 1
        self.fitted_by = "its own fit"
        return super().fit(X, y, sample_weight)


@pytest.fixture
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X), y


@pytest.fixture
def folds(cancer):
    return list(StratifiedKFold(3, shuffle=True, random_state=0).split(*cancer))


def assert_same_as_one_by_one(result, estimator, X, y, folds, scoring=None):
    assert len(result.points)
    for point, scores in zip(result.points, result.scores, strict=True):
        alone = cross_val_score(type(estimator)(**{**estimator.get_params(), **point}), X, y, cv=folds, scoring=scoring)
        np.testing.assert_allclose(scores, alone, rtol=1e-6, atol=1e-9, err_msg=str(point))


class TestScores:
    @pytest.mark.parametrize("container", [np.asarray, csr_array])
    @pytest.mark.parametrize("memory", [2000.0, 0.0], ids=["shared", "not shared"])
    @pytest.mark.parametrize(
        ("kernel", "values"),
        [
            ("rbf", {"gamma": [0.001, 0.1]}),
            ("poly", {"degree": [2, 3], "coef0": [1.0]}),
            ("rbf", {"gamma": ["scale", "auto"]}),
            ("linear", {}),
        ],
        ids=["gamma", "degree", "gamma by name", "C alone"],
    )
    def test_equal_those_of_one_fit_after_the_other(self, cancer, folds, kernel, values, memory, container):
        X, y = cancer
        X, machine = container(X[:, :8]), SVC(kernel=kernel, tol=EXACT)
        result = grid_search(machine, X, y, {"C": [10, 0.1], **values}, cv=folds, memory=memory, refit=False)
        assert len(result.points) == 2 * int(np.prod([len(each) for each in values.values()]))
        assert_same_as_one_by_one(result, machine, X, y, folds)

    def test_equal_them_with_several_classes_and_threads(self):
        X, y = load_iris(return_X_y=True)
        folds = list(StratifiedKFold(4).split(X, y))
        grid = {"C": [0.1, 1.0, 100.0], "gamma": [0.01, 1.0]}
        result = grid_search(SVC(tol=EXACT), X, y, grid, cv=folds, n_jobs=2)
        assert_same_as_one_by_one(result, SVC(tol=EXACT), X, y, folds)

    def test_equal_them_for_regression_with_its_tube(self):
        X, y = load_diabetes(return_X_y=True)
        X, y, machine = scale(X)[:150], scale(y)[:150], SVR(tol=EXACT)
        folds = list(KFold(3).split(X))
        grid = {"C": [0.1, 1.0], "gamma": [0.01, 0.1], "epsilon": [0.05, 0.2]}
        result = grid_search(machine, X, y, grid, cv=folds, scoring="neg_mean_squared_error")
        assert result.scores.shape == (8, 3)
        assert_same_as_one_by_one(result, machine, X, y, folds, "neg_mean_squared_error")

    def test_equal_them_for_a_precomputed_kernel(self, cancer, folds):
        X, y = cancer
        K, machine = X @ X.T, SVC(kernel="precomputed", tol=EXACT)
        result = grid_search(machine, K, y, {"C": [0.01, 1.0]}, cv=folds)
        assert_same_as_one_by_one(result, machine, K, y, folds)

    @pytest.mark.parametrize("scoring", [None, "roc_auc"])
    def test_equal_them_for_linear_models(self, cancer, folds, scoring):
        X, y = cancer
        machine = LinearSVC(tol=1e-8, random_state=0, max_iter=None)
        result = grid_search(machine, X, y, {"C": [0.01, 0.1, 1.0]}, cv=folds, scoring=scoring)
        assert_same_as_one_by_one(result, machine, X, y, folds, scoring)

    def test_equal_them_for_linear_regression_with_its_tube(self):
        X, y = load_diabetes(return_X_y=True)
        X, y, machine = scale(X), scale(y), LinearSVR(tol=1e-8, random_state=0, max_iter=None)
        folds = list(KFold(3).split(X))
        result = grid_search(machine, X, y, {"C": [0.1, 1.0], "epsilon": [0.0, 0.3]}, cv=folds)
        assert_same_as_one_by_one(result, machine, X, y, folds)

    def test_weights_of_rows_count(self, cancer, folds):
        X, y = cancer
        weight = np.where(np.arange(len(y)) % 3 == 0, 5.0, 0.2)
        result = grid_search(SVC(), X, y, {"C": [1.0]}, cv=folds, fit_parameters={"sample_weight": weight})
        train, test = folds[0]
        alone = SVC().fit(X[train], y[train], sample_weight=weight[train]).score(X[test], y[test])
        assert result.scores[0, 0] == alone

    def test_the_kernel_matrix_of_a_pair_of_classes_is_made_once_for_all_C(self, monkeypatch):
        X, y = load_iris(return_X_y=True)
        made = []
        monkeypatch.setattr(training_rows, "submatrix", lambda *given: made.append(given) or submatrix(*given))
        grid_search(SVC(gamma=0.1), X, y, {"C": [0.1, 1.0, 10.0]}, cv=4, refit=False)
        assert len(made) == 3 * 4  # pairs of classes times folds

    def test_a_subclass_is_fitted_by_its_own_fit(self):
        X, y = load_iris(return_X_y=True)
        labels = np.array(["setosa", "versicolor", "virginica"])[y]
        result = grid_search(_SVCOfNames(gamma=0.1), X, labels, {"C": [1.0, 10.0]}, cv=3)
        expected = grid_search(SVC(gamma=0.1), X, labels, {"C": [1.0, 10.0]}, cv=3)
        np.testing.assert_array_equal(result.scores, expected.scores)
        assert result.best_model.fitted_by == "its own fit"
        assert _SVCOfNames.n_fits == 2 * 3 + 1

    def test_an_error_that_only_begins_with_nu_is_not_a_missing_score(self, cancer, folds):
        def score(model, X, y):
            raise ValueError("nu is not what this score expects")

        with pytest.raises(ValueError, match="nu is not what this score expects"):
            grid_search(NuSVC(), *cancer, {"nu": [0.2, 0.3]}, cv=folds, scoring=score)

    def test_a_nu_that_is_not_in_the_grid_must_be_feasible(self, cancer, folds):
        with pytest.raises(InfeasibleNuError, match=r"nu=0\.9 is infeasible: classes 0 and 1 allow"):
            grid_search(NuSVC(nu=0.9), *cancer, {"gamma": [0.1]}, cv=folds)

    def test_a_nu_that_the_classes_do_not_allow_has_no_score(self, cancer, folds):
        result = grid_search(NuSVC(), *cancer, {"nu": [0.2, 0.9]}, cv=folds)
        assert np.isnan(result.means[1])
        assert result.best_params == {"nu": 0.2}

    def test_other_estimators_are_fitted_one_by_one(self, rng):
        X = rng.standard_normal((60, 3))
        query, y = np.repeat(np.arange(12), 5), (X[:, 0] > 0).astype(int)
        cv = GroupKFold(3)

        def in_order(model, X, y):
            scores = model.decision_function(X)
            return float(np.mean((scores[:, None] > scores)[y[:, None] > y]))

        result = grid_search(
            RankSVM(), X, y, {"C": [0.1, 10.0]}, cv=cv, groups=query, fit_parameters={"qid": query}, scoring=in_order
        )
        assert result.best_score > 0.9
        assert result.best_model.coef_.shape == (3,)


class TestEdges:
    @staticmethod
    def points(**values):
        return [dict(zip(values, one, strict=True)) for one in product(*values.values())]

    def test_are_those_of_the_best_value(self):
        points = self.points(C=[1.0, 2.0, 4.0], gamma=[0.5, 1.0, 2.0])
        for best, expected in [
            ((1.0, 1.0), {"C": "smallest"}), ((4.0, 2.0), {"C": "largest", "gamma": "largest"}), ((2.0, 1.0), {})
        ]:  # fmt: skip
            means = np.array([1.0 if tuple(point.values()) == best else 0.5 for point in points])
            assert edges(points, means) == expected

    def test_are_none_if_points_inside_are_as_good(self):
        points = self.points(C=[1.0, 2.0, 4.0])
        assert edges(points, np.array([1.0, 1.0, 0.0])) == {}
        assert edges(points, np.array([1.0, 0.0, 1.0])) == {}
        assert edges(points, np.full(3, np.nan)) == {}

    def test_are_not_of_words_or_of_a_single_value(self):
        assert edges(self.points(gamma=["scale", 1.0], C=[1.0]), np.array([1.0, 0.0])) == {}

    def test_a_grid_grows_beyond_them(self):
        grid = {"C": [1.0, 4.0], "degree": [2, 4], "gamma": [2.0, 1.0]}
        points = self.points(**grid)
        means = np.array([1.0 if point == {"C": 4.0, "degree": 4, "gamma": 1.0} else 0.0 for point in points])
        assert grown(grid, points, means) == {"C": [1.0, 4.0, 16.0], "degree": [2, 4], "gamma": [2.0, 1.0, 0.5]}
        assert grown({"degree": [2, 4]}, self.points(degree=[2, 4]), np.array([0.0, 1.0])) is None
        assert grown({"C": [1.0, 2.0, 5.0]}, self.points(C=[1.0, 2.0, 5.0]), np.arange(3.0)) is None
        assert grown({"C": [2.0**98, 2.0**99]}, self.points(C=[2.0**98, 2.0**99]), np.arange(2.0)) is None


class TestResult:
    def test_the_best_point_is_fitted_to_all_rows(self, cancer, folds):
        result = grid_search(SVC(), *cancer, {"C": [0.01, 1.0], "gamma": [0.01, 10.0]}, cv=folds)
        assert result.best_params == {"C": 1.0, "gamma": 0.01}
        expected = SVC(**result.best_params).fit(*cancer)
        np.testing.assert_array_equal(result.best_model.dual_coef_, expected.dual_coef_)
        assert result.best_score == result.scores.mean(axis=1).max()

    def test_of_equals_the_smallest_C_is_best(self, cancer, folds):
        result = grid_search(SVC(gamma=0.01), *cancer, {"C": [1e9, 1e8]}, cv=folds, refit=False)
        assert result.means[0] == result.means[1]
        assert result.best_params == {"C": 1e8}

    def test_refining_looks_between_the_points(self, cancer, folds):
        result = grid_search(
            SVC(), *cancer, {"C": [0.25, 1, 4], "gamma": [0.01, 0.04]}, cv=folds, refine=1, refit=False
        )
        assert len(result.points) > 6
        assert {"C": 2.0, "gamma": 0.02} in result.points or {"C": 0.5, "gamma": 0.02} in result.points

    def test_refined_steps_are_halved_and_other_values_stay(self):
        closer = refined({"C": [1.0, 4.0, 16.0], "degree": [1, 2, 3, 5]}, {"C": 4.0, "degree": 3})
        assert closer == {"C": [1.0, 2.0, 4.0, 8.0, 16.0], "degree": [3]}

    def test_usual_grids_are_those_of_libsvm(self):
        grid = default_grid(SVC())
        assert np.log2(grid["C"]).tolist() == list(range(-5, 16, 2))
        assert np.log2(grid["gamma"]).tolist() == list(range(3, -16, -2))
        assert set(default_grid(LinearSVC())) == {"C"}
        assert set(default_grid(SVR())) == {"C", "gamma", "epsilon"}
        assert set(default_grid(NuSVC(kernel="linear"))) == {"nu"}

    def test_fits_that_fall_short_are_counted_in_one_warning(self, cancer, folds):
        with pytest.warns(ConvergenceWarning, match=r"^\d+ of 6 fits stopped short") as caught:
            grid_search(SVC(max_iter=1, working_set=10), *cancer, {"C": [1.0, 1e6]}, cv=folds, refit=False)
        assert len(caught) == 1

    def test_the_callback_hears_of_each_point(self, cancer, folds):
        heard = []
        grid_search(
            SVC(), *cancer, {"C": [1, 2, 3]}, cv=folds, callback=lambda so_far: heard.append(len(so_far.points))
        )
        assert heard == [1, 2, 3]


class TestRefusals:
    @pytest.mark.parametrize(
        ("grid", "message"),
        [
            ({}, "a dict of name to values"),
            ({"c": [1]}, "has no parameter 'c'"),
            ({"C": 1.0}, "must be a list"),
            ({"C": []}, "'C' has no values"),
            ({"C": [-1.0]}, "'C' parameter of SVC must be"),
        ],
    )
    def test_grids_that_mean_nothing(self, cancer, grid, message):
        with pytest.raises(ValueError, match=message):
            grid_search(SVC(), *cancer, grid)

    @pytest.mark.parametrize("kernel", ["rbf", "linear", "precomputed"])
    def test_numbers_that_are_not_finite(self, cancer, kernel):
        X, y = cancer
        X = X @ X.T if kernel == "precomputed" else X.copy()
        X[3, 4] = np.nan
        with pytest.raises(ValueError, match="Input X contains NaN"):
            grid_search(SVC(kernel=kernel), X, y, {"C": [1.0]})

    def test_targets_and_weights_that_are_not_finite(self, cancer):
        X, y = cancer
        with pytest.raises(ValueError, match="Input y contains infinity"):
            grid_search(SVR(gamma=0.1), X, np.where(np.arange(len(y)) == 5, np.inf, y), {"C": [1.0]})
        weight = np.where(np.arange(len(y)) == 5, np.nan, 1.0)
        with pytest.raises(ValueError, match="Input sample_weight contains NaN"):
            grid_search(SVC(gamma=0.1), X, y, {"C": [1.0]}, fit_parameters={"sample_weight": weight})


class TestFile:
    GRID = {"C": [0.1, 1.0, 10.0], "gamma": [0.01, 0.1]}

    def test_holds_the_result(self, cancer, folds, tmp_path):
        result = grid_search(SVC(), *cancer, self.GRID, cv=folds, results=tmp_path / "r")
        found = read_grid(tmp_path / "r")
        assert found.points == result.points
        np.testing.assert_array_equal(found.scores, result.scores)
        assert os.listdir(tmp_path) == ["r"]

    def test_is_not_overwritten(self, cancer, folds, tmp_path):
        (tmp_path / "r").write_text("precious\n")
        with pytest.raises(FileExistsError, match="earlier search"):
            grid_search(SVC(), *cancer, self.GRID, cv=folds, results=tmp_path / "r")
        with pytest.raises(FormatError, match="r:1: is not a results file"):
            grid_search(SVC(), *cancer, self.GRID, cv=folds, results=tmp_path / "r", resume=True)
        assert (tmp_path / "r").read_text() == "precious\n"

    def test_of_other_data_or_parameters_is_refused(self, cancer, folds, tmp_path):
        X, y = cancer
        grid_search(SVC(), X, y, self.GRID, cv=folds, results=tmp_path / "r")
        for machine, rows in ((SVC(tol=1e-2), X), (SVC(), X + 1.0)):
            with pytest.raises(ValueError, match="is of another search"):
                grid_search(machine, rows, y, self.GRID, cv=folds, results=tmp_path / "r", resume=True)

    def test_that_is_complete_costs_nothing(self, cancer, folds, tmp_path, monkeypatch):
        result = grid_search(SVC(), *cancer, self.GRID, cv=folds, results=tmp_path / "r")
        monkeypatch.setattr(SVC, "_fit", lambda *arguments: pytest.fail("a finished point was computed again"))
        again = grid_search(SVC(), *cancer, self.GRID, cv=folds, results=tmp_path / "r", resume=True, refit=False)
        np.testing.assert_array_equal(again.scores, result.scores)

    @pytest.mark.parametrize("machine", [SVC(), LinearSVC(random_state=0)], ids=["kernel", "linear"])
    def test_cut_anywhere_gives_the_same_table(self, machine, cancer, folds, tmp_path):
        grid = self.GRID if isinstance(machine, SVC) else {"C": [0.01, 0.1, 1.0, 10.0]}
        whole = grid_search(machine, *cancer, grid, cv=folds, results=tmp_path / "whole", refit=False)
        content = (tmp_path / "whole").read_bytes()
        start = content.index(b"\n") + 1
        for cut in np.linspace(start, len(content), 7).astype(int):
            (tmp_path / "cut").write_bytes(content[:cut])
            found = grid_search(machine, *cancer, grid, cv=folds, results=tmp_path / "cut", resume=True, refit=False)
            order = [found.points.index(point) for point in whole.points]
            np.testing.assert_allclose(found.scores[order], whole.scores, atol=0.02)  # walks begin anew: no states

    def test_cut_at_any_byte_goes_on_with_the_whole_lines_or_begins_anew(self, tmp_path):
        path, header = tmp_path / "r", {"names": ["C"], "n_folds": 1, "scoring": "accuracy"}
        made = GridFile(path, header, True)
        results = {((("C", C),), 0): made.add({"C": C}, 0, C / 4.0, 0.5) for C in (1.0, 2.0)}
        assert list(results.values()) == [(0.25, 0.5), (0.5, 0.5)]
        assert made.records == {}
        content = path.read_bytes()
        for cut in range(len(content) + 1):
            path.write_bytes(content[:cut])
            found = GridFile(path, header, True)
            n_lines = content[:cut].count(b"\n")
            assert found.was_cut == (cut > 0 and n_lines == 0)
            assert list(found.records.items()) == list(results.items())[: max(n_lines - 1, 0)]
            for C in (1.0, 2.0)[len(found.records) :]:
                found.add({"C": C}, 0, C / 4.0, 0.5)
            assert path.read_bytes() == content

    def test_cut_in_its_first_line_begins_anew_with_a_word(self, tmp_path, rng):
        X, y, path = rng.standard_normal((12, 2)), np.tile([0, 1], 6), tmp_path / "r"
        search = partial(grid_search, SVC(), X, y, {"C": [1.0, 2.0]}, cv=2, results=path, resume=True, refit=False)
        whole = search()
        path.write_bytes(path.read_bytes().partition(b"\n")[0])
        with pytest.warns(UserWarning, match="r is cut inside its first line and holds no results: the search begins"):
            found = search()
        np.testing.assert_array_equal(found.scores, whole.scores)
        np.testing.assert_array_equal(read_grid(path).scores, whole.scores)

    def test_cut_in_its_first_line_cannot_be_drawn(self, tmp_path):
        (tmp_path / "r").write_text('{"widemargin_grid": 1, "names": ["C"')
        with pytest.raises(FormatError, match="r:1: is cut inside its first line, and holds no results"):
            read_grid(tmp_path / "r")

    def test_states_of_a_search_that_was_overwritten_are_not_those_of_the_next(self, tmp_path):
        path, header = tmp_path / "r", {"names": ["C"]}
        GridFile(path, header, False).add({"C": 1.0}, 0, 0.123, 0.0, [np.zeros(3)])
        path.unlink()  # as --overwrite does
        GridFile(path, header, False).add({"C": 2.0}, 0, 0.456, 0.0)
        assert list(GridFile(path, header, True).records.values()) == [(0.456, 0.0)]

    def test_a_killed_search_goes_on_as_if_nothing_had_happened(self, tmp_path):
        script = """
import sys
import numpy as np
from widemargin import SVC, grid_search
rng = np.random.default_rng(0)
X = rng.standard_normal((700, 5))
y = (X[:, 0] * X[:, 1] + 0.6 * rng.standard_normal(700) > 0).astype(int)
grid = {"C": [2.0**k for k in range(-3, 9)], "gamma": [2.0**k for k in (0, -2, -4)]}
result = grid_search(SVC(), X, y, grid, cv=4, results=sys.argv[1], resume=True, n_jobs=2, refit=False)
for point, scores in sorted(zip(result.points, result.scores.tolist()), key=str):
    print(point, scores)
"""
        whole = subprocess.run(
            [sys.executable, "-c", script, tmp_path / "whole"], capture_output=True, text=True, check=True
        )
        n_lines = len((tmp_path / "whole").read_text().splitlines())
        assert n_lines == 1 + 12 * 3 * 4
        path, kills = tmp_path / "killed", 0
        for wanted in (10, 60, 100):
            process = subprocess.Popen([sys.executable, "-c", script, path])
            limit = time.monotonic() + 60
            while process.poll() is None and time.monotonic() < limit:
                if path.exists() and path.read_bytes().count(b"\n") >= wanted:
                    process.send_signal(signal.SIGKILL)
                    kills += 1
                    break
                time.sleep(0.001)
            process.wait()
        assert kills >= 1
        before = path.read_bytes()
        before = before[: before.rfind(b"\n") + 1]
        resumed = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True, check=True)
        assert resumed.stdout == whole.stdout
        assert path.read_bytes().startswith(before)
        points = [json.loads(line) for line in path.read_text().splitlines()[1:]]
        assert len({(str(line["point"]), line["fold"]) for line in points}) == len(points) == 12 * 3 * 4
        assert sorted(os.listdir(tmp_path)) == ["killed", "whole"]


class TestValuesThatAreNoNumbers:
    WEIGHTS = (None, "balanced", {0: 1.0, 1: 5.0}, {0: 5.0, 1: 1.0})

    @pytest.mark.parametrize("machine", [SVC(tol=EXACT), LinearSVC(tol=EXACT)], ids=lambda one: type(one).__name__)
    def test_class_weights_in_a_grid_are_searched_recorded_and_gone_on_with(self, machine, cancer, folds, tmp_path):
        grid = {"C": [0.1, 1.0], "class_weight": list(self.WEIGHTS)}
        options = {"cv": folds, "refit": False}
        result = grid_search(machine, *cancer, grid, **options, results=tmp_path / "r")
        assert_same_as_one_by_one(result, machine, *cancer, folds)
        lines = (tmp_path / "r").read_bytes().splitlines(keepends=True)
        (tmp_path / "r").write_bytes(b"".join(lines[:8]))
        again = grid_search(machine, *cancer, grid, **options, results=tmp_path / "r", resume=True)
        assert {point["C"]: point["class_weight"] for point in again.points}  # which can be looked up
        for found in (again, read_grid(tmp_path / "r")):
            scores = {tuple(point.items()): mean for point, mean in zip(found.points, found.means, strict=True)}
            assert scores == {tuple(p.items()): m for p, m in zip(result.points, result.means, strict=True)}
            assert found.best_params == result.best_params
        assert grid_fragment(result)
        assert result.matrix("C", "class_weight")[2].shape == (4, 2)

    def test_values_that_nothing_can_be_looked_up_by_are_refused_by_name(self, cancer):
        with pytest.raises(ValueError, match=r"grid: the values of 'class_weight' must be numbers, .* got a list"):
            grid_search(SVC(), *cancer, {"class_weight": [[1.0, 2.0]]})

    def test_a_function_in_a_grid_has_no_place_in_a_file_and_no_file_is_made(self, cancer, tmp_path):
        with pytest.raises(ValueError, match="results: a file has no place for kernel=<function"):
            grid_search(SVC(), *cancer, {"kernel": ["rbf", lambda A, B: A @ B.T]}, results=tmp_path / "r")
        assert not list(tmp_path.iterdir())


class TestFingerprint:
    SCRIPT = """
import sys
import numpy as np
from widemargin import SVC, grid_search
X = np.random.default_rng(0).standard_normal((60, 3))
y = np.array(["".join(["ye", "s"]) if row[0] > 0 else "".join(["n", "o"]) for row in X], dtype=object)
y[int(sys.argv[2])] = "yes"
result = grid_search(SVC(), X, y, {"C": [1.0, 2.0]}, cv=3, results=sys.argv[1], resume=True, refit=False)
print(result.means.tolist())
"""

    def test_labels_that_are_objects_are_known_again_in_another_process(self, tmp_path):
        def run(row):
            words = [sys.executable, "-c", self.SCRIPT, str(tmp_path / "r"), str(row)]
            return subprocess.run(words, capture_output=True, text=True, check=False)

        X = np.random.default_rng(0).standard_normal((60, 3))
        same, other = int(np.argmax(X[:, 0] > 0)), int(np.argmax(X[:, 0] <= 0))
        first, second = run(same), run(same)
        assert (first.returncode, second.returncode) == (0, 0), second.stderr
        assert second.stdout == first.stdout
        assert "is of another search (data:" in run(other).stderr

    def test_equal_objects_have_equal_fingerprints_and_no_others(self):
        def of(values):
            return fingerprint(np.zeros((2, 1)), np.array(values, dtype=object), [], {})

        assert of(["ab", "c"]) == of(["".join("ab"), "c"])
        assert len({of(pair) for pair in (["ab", "c"], ["a", "bc"], [1, 2], ["1", "2"], [1.0, 2.0], [None, 2])}) == 6
        assert of([(1, "a"), (2, "b")]) == of([(1, "a"), (2, "b")]) != of([(1, "a"), (2, "c")])


def test_a_results_file_cut_within_its_first_line_is_begun_anew(cancer, folds, tmp_path):
    options = {"cv": folds, "refit": False, "results": tmp_path / "r"}
    whole = grid_search(SVC(), *cancer, {"C": [1.0]}, **options)
    first = (tmp_path / "r").read_bytes().partition(b"\n")[0]
    for n_bytes in (1, len(first) // 2, len(first)):
        (tmp_path / "r").write_bytes(first[:n_bytes])
        with pytest.warns(UserWarning, match="cut inside its first line and holds no results: the search begins anew"):
            again = grid_search(SVC(), *cancer, {"C": [1.0]}, **options, resume=True)
        np.testing.assert_array_equal(again.scores, whole.scores)
        assert (tmp_path / "r").read_bytes().startswith(first + b"\n")
    (tmp_path / "r").write_bytes(b"not ours")
    with pytest.raises(FormatError, match="is not a results file of a grid search"):
        grid_search(SVC(), *cancer, {"C": [1.0]}, **options, resume=True)


def test_a_result_is_told_in_a_line_or_two(cancer, folds):
    result = grid_search(SVC(), *cancer, {"C": [1.0, 10.0], "gamma": [0.01, 0.1]}, cv=folds)
    text = repr(result)
    assert text.startswith("GridResult(C, gamma: 4 points, 3 folds, best {'C': ")
    assert text.endswith(", best_model SVC)")
    assert len(text) < 200
    assert "accuracy 0." in text
    assert repr(replace(result, points=(), scores=np.empty((0, 3)))) == "GridResult(C, gamma: no point, best_model SVC)"
