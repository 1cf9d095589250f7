"""What the fits of a grid search on one fold share: the kernel matrix, its memory, and sums of its rows."""

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_outlier_detector
from sklearn.model_selection import KFold, cross_val_score

from widemargin import SVC, SVR, OneClassSVM, grid_search
from widemargin.kernels.rows import KernelRows
from widemargin.selection.fold_path import FoldPath, Memory, SharedData, shared_dtype


def _noisy_rows(n_rows):
    random = np.random.RandomState(0)
    X = random.randn(n_rows, 3)
    return X, (X[:, 0] + X[:, 1] ** 2 + random.randn(n_rows) > 1.0).astype(int)


def _path(X, y, memory=None):
    fold = np.arange(50, len(y)), np.arange(50)
    memory = memory or Memory()
    shared = SharedData(SVC(gamma=0.5, n_jobs=1), X, np.float64, memory)
    return FoldPath(shared, fold, y, {}, lambda model, *_: model.objective_, lambda: False, memory=memory)


class TestPrecision:
    def test_a_large_C_asks_for_double_precision_of_the_whole_path(self):
        model = SVC(gamma=0.5)
        assert shared_dtype(model, 3000, 1.0, 2, np.inf) == np.float32
        assert shared_dtype(model, 3000, 1e4, 2, np.inf) == np.float64

    def test_single_precision_is_taken_if_there_is_no_memory_for_double(self):
        model, n_rows = SVC(gamma=0.5), 3000
        assert shared_dtype(model, n_rows, 1e4, 2, 4 * 5 * n_rows**2) == np.float32
        assert shared_dtype(model, n_rows, 1e4, 2, 4 * 5 * n_rows**2 - 1) is None

    def test_a_gamma_that_depends_on_the_rows_of_a_fold_shares_nothing(self):
        assert shared_dtype(SVC(), 3000, 1.0, 2, np.inf) is None


@pytest.mark.parametrize(
    ("machine", "grid"),
    [
        (SVC(basis=10, random_state=0), {"C": [0.1, 10.0], "gamma": [0.1, 1.0]}),
        (SVC(random_state=0), {"basis": [None, 10], "C": [0.1, 10.0]}),
        (SVR(basis=10, random_state=0, gamma=0.5), {"C": [0.1, 10.0]}),
        (OneClassSVM(basis=10, random_state=0, gamma=0.5), {"nu": [0.1, 0.5]}),
    ],
)
def test_machines_on_a_basis_are_searched_as_scikit_learn_scores_them(machine, grid):
    X, y = _noisy_rows(90)
    y = y if is_classifier(machine) else np.where(y == 1, 1.0, -1.0)
    scoring = None if not is_outlier_detector(machine) else "accuracy"
    folds = list(KFold(3).split(X))
    found = grid_search(machine, X, y, grid, cv=folds, scoring=scoring, refit=False)
    for point, scores in zip(found.points, found.scores, strict=True):
        expected = cross_val_score(clone(machine).set_params(**point), X, y, cv=folds, scoring=scoring)
        np.testing.assert_allclose(scores, expected, atol=1e-6)


class TestSums:
    def test_a_warm_start_does_not_add_up_the_kernel_rows_again(self, monkeypatch):
        path, starts = _path(*_noisy_rows(400)), []
        path.score({"C": 1.0})
        (K,) = path._reused.submatrices.values()
        monkeypatch.setattr(KernelRows, "remember", lambda self, *given: starts.append(given))
        np.testing.assert_allclose(K.held @ K.remembered.weights, K.remembered.sums, atol=K.remembered.error)
        before = K.remembered.sums.copy()
        K.remembered.sums[:] += 1e-3  # a constant changes no violation
        path.score({"C": 1.0})
        np.testing.assert_allclose(starts[0][1], before + 1e-3, rtol=0.0, atol=1e-6)

    def test_a_path_that_goes_on_from_its_state_is_the_same_to_the_bit(self):
        X, y = _noisy_rows(400)
        whole = _path(X, y)
        whole.score({"C": 1.0})
        state = [array.copy() for array in whole.state]
        expected = whole.score({"C": 100.0})
        rest = _path(X, y)
        rest.state = state
        assert rest.score({"C": 100.0}) == expected

    def test_a_state_without_sums_is_taken(self):
        X, y = _noisy_rows(400)
        whole = _path(X, y)
        whole.score({"C": 1.0})
        rest = _path(X, y)
        rest.state = [array for array in whole.state if array.ndim == 1]
        assert rest.score({"C": 100.0}) == pytest.approx(whole.score({"C": 100.0}), rel=1e-4)


class TestMemory:
    def test_memory_that_was_given_back_is_used_again(self):
        memory = Memory()
        _, first = memory.take((10, 10), np.float64)
        memory.give_back([first])
        array, second = memory.take((5, 5), np.float64)
        assert second is not first  # more than twice as large as needed
        array, second = memory.take((9, 11), np.float64)
        assert second is first
        assert array.shape == (9, 11)
        assert array.flags.c_contiguous

    def test_a_fold_with_a_few_rows_more_uses_the_memory_of_another(self):
        memory = Memory()
        _, first = memory.take((100, 100), np.float64)
        memory.give_back([first])
        assert memory.take((102, 102), np.float64)[1] is first

    def test_paths_use_the_memory_of_earlier_ones_and_score_the_same(self):
        X, y = _noisy_rows(300)
        memory = Memory()
        first = _path(X, y, memory)
        expected = first.score({"C": 10.0})
        taken = {id(one) for one in first._taken}
        first.release()
        second = _path(X, y, memory)
        assert {id(one) for one in second._taken} & taken
        assert second.score({"C": 10.0}) == expected


@pytest.mark.parametrize("C", [1.0, 1e4])
def test_a_fit_at_the_end_of_a_path_reaches_the_objective_of_a_fit_by_itself(C):
    X, y = _noisy_rows(600)
    path = _path(X, y)
    for smaller in (C / 64, C / 16, C / 4):
        path.score({"C": smaller})
    alone = SVC(C=C, gamma=0.5).fit(X[50:], y[50:])
    assert path.score({"C": C}) == pytest.approx(alone.objective_, rel=2e-3)
    assert not path.fell_short


def test_a_path_without_certificates_ends_at_the_tolerance_and_predicts_the_same():
    X, y = _noisy_rows(600)
    fold, memory = (np.arange(100, 600), np.arange(100)), Memory()
    shared = SharedData(SVC(gamma=0.5, n_jobs=1), X, np.float64, memory)
    score = lambda model, Z, target, _: np.mean(model.predict(Z) == target)  # noqa: E731
    paths = [FoldPath(shared, fold, y, {}, score, bool, memory=memory, certify=certify) for certify in (True, False)]
    for C in (0.1, 1.0, 10.0):
        certified, rough = (path.score({"C": C}) for path in paths)
        alone = SVC(C=C, gamma=0.5).fit(X[100:], y[100:])
        assert alone.score(X[:100], y[:100]) == pytest.approx(rough, abs=0.0101)
        assert certified == pytest.approx(rough, abs=0.0101)
        assert not paths[1].fell_short
