"""Machines on a fixed basis: equal to the exact machine if all rows are points, certified, and on blocks of rows."""

import numpy as np
import pytest
from scipy.linalg import cholesky, solve_triangular
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_iris, make_moons
from sklearn.metrics.pairwise import rbf_kernel

from widemargin import SVC, SVR, LinearSVC, OneClassSVM, load_model, open_blocks, save_model, write_blocks
from widemargin.data.blocks.row_blocks import RowBlocks
from widemargin.data.matrix import Matrix
from widemargin.problems import certificates
from widemargin.problems.classification import hinge

X, Y = make_moons(200, noise=0.25, random_state=0)
GAMMA = 1.0


def objective(model, C):
    """The objective of a machine of two classes on a basis, from its attributes alone."""
    K = rbf_kernel(model.basis_, gamma=GAMMA)
    coef = model.basis_coef_[0]
    loss = np.maximum(0.0, 1.0 - (2 * Y - 1) * model.decision_function(X)).sum()
    return 0.5 * coef @ K @ coef + C * loss


class TestAllRowsArePoints:
    @pytest.mark.parametrize("C", [0.1, 10.0])
    def test_two_classes_are_those_of_the_exact_machine(self, C):
        exact = SVC(C=C, gamma=GAMMA, tol=1e-7).fit(X, Y)
        model = SVC(C=C, gamma=GAMMA, tol=1e-7, basis=X).fit(X, Y)
        assert model.objective_ == pytest.approx(exact.objective_, rel=1e-5)
        np.testing.assert_allclose(model.decision_function(X), exact.decision_function(X), atol=1e-4)

    def test_three_classes_are_those_of_the_exact_machine(self):
        rows, labels = load_iris(return_X_y=True)
        exact, model = (SVC(tol=1e-7, basis=basis).fit(rows, labels) for basis in (None, rows))
        assert model.objective_ == pytest.approx(exact.objective_, rel=1e-5)
        for shape in ("ovo", "ovr"):
            decisions = [m.set_params(decision_function_shape=shape).decision_function(rows) for m in (exact, model)]
            np.testing.assert_allclose(*decisions, atol=1e-4)
        np.testing.assert_array_equal(model.predict(rows), exact.predict(rows))

    def test_regression_is_that_of_the_exact_machine(self):
        y = np.sin(3 * X[:, 0]) + X[:, 1]
        exact, model = (SVR(C=2.0, gamma=GAMMA, tol=1e-7, epsilon=0.05, basis=basis).fit(X, y) for basis in (None, X))
        assert model.objective_ == pytest.approx(exact.objective_, rel=1e-5)
        np.testing.assert_allclose(model.predict(X), exact.predict(X), atol=1e-3)

    @pytest.mark.parametrize("nu", [0.1, 0.5])
    def test_one_class_is_that_of_the_exact_machine(self, nu):
        exact, model = (OneClassSVM(nu=nu, gamma=GAMMA, tol=1e-7, basis=basis).fit(X) for basis in (None, X))
        assert model.objective_ == pytest.approx(exact.objective_, rel=1e-4)
        np.testing.assert_allclose(model.decision_function(X), exact.decision_function(X), atol=1e-3 * exact.offset_[0])
        assert np.mean(model.decision_function(X) < -1e-4 * model.offset_[0]) <= nu

    def test_a_linear_kernel_is_the_linear_machine(self):
        linear = LinearSVC(loss="hinge", penalize_intercept=False, tol=1e-9, solver="newton").fit(X, Y)
        model = SVC(kernel="linear", basis=X, tol=1e-9).fit(X, Y)
        assert len(model.basis_) == 2
        np.testing.assert_allclose(model.coef_, linear.coef_, rtol=1e-4)

    def test_weights_of_rows_and_classes_count(self):
        weight = np.random.default_rng(0).integers(0, 3, len(Y))
        options = {"gamma": GAMMA, "tol": 1e-8, "class_weight": {0: 2.0, 1: 0.5}}
        exact, model = (SVC(**options, basis=basis).fit(X, Y, weight) for basis in (None, X))
        np.testing.assert_allclose(model.decision_function(X), exact.decision_function(X), atol=1e-4)


class TestCertificate:
    def test_the_gap_is_that_of_the_judge_in_the_reduced_space(self):
        points = X[:30]
        model = SVC(C=3.0, gamma=GAMMA, basis=points, tol=1e-3).fit(X, Y)
        assert model.objective_ == pytest.approx(objective(model, 3.0), rel=1e-9)
        factor = cholesky(rbf_kernel(points, gamma=GAMMA), lower=True)
        features = solve_triangular(factor, rbf_kernel(points, X, gamma=GAMMA), lower=True).T
        best = LinearSVC(loss="hinge", C=3.0, penalize_intercept=False, tol=1e-10, solver="newton").fit(features, Y)
        assert model.objective_ >= best.objective_ * (1.0 - 1e-9)
        assert model.objective_ - best.objective_ <= model.gap_ * model.objective_ + 1e-9
        problem = hinge(Matrix(features), 2.0 * Y - 1.0, np.full(len(Y), 3.0), free_intercept=True)
        w = factor.T @ model.basis_coef_[0]
        losses = certificates.losses(problem, certificates.scores(problem.X, w) + model.intercept_[0])
        assert 0.5 * w @ w + losses.sum() == pytest.approx(model.objective_, rel=1e-8)

    def test_duplicate_and_dependent_points_change_nothing(self):
        once, twice = (SVC(gamma=GAMMA, basis=B, tol=1e-8).fit(X, Y) for B in (X[:20], np.repeat(X[:20], 3, axis=0)))
        assert once.objective_ == pytest.approx(twice.objective_, rel=1e-7)
        assert len(twice.basis_) == 20

    def test_more_points_never_raise_the_objective(self):
        found = [SVC(gamma=GAMMA, basis=X[:m], tol=1e-6).fit(X, Y).objective_ for m in (5, 10, 20, 40, 80)]
        assert np.all(np.diff(found) <= 1e-5 * np.array(found[1:]))

    def test_growth_never_raises_the_objective_and_is_recorded(self):
        random = np.random.default_rng(0)
        rows = random.standard_normal((1500, 6))
        labels = (np.sin(rows).sum(axis=1) * rows[:, 0] > 0).astype(int)
        model = SVC(C=5.0, basis="auto", random_state=0).fit(rows, labels)
        stages = model.history_
        assert len(stages) > 1
        assert np.all(np.diff(stages["points"]) > 0)
        assert np.all(stages["decrease"][1:] >= 0.0)
        np.testing.assert_allclose(-np.diff(stages["primal"]), stages["decrease"][1:])
        assert stages["points"][-1] == len(model.basis_)
        assert np.all(stages["gap"] <= model.tol)


class TestRows:
    @pytest.mark.parametrize("seed", [0, 1])
    def test_blocks_are_as_memory(self, seed, tmp_path):
        random = np.random.default_rng(seed)
        rows = random.standard_normal((40_000, 4)).astype(np.float32)
        labels = (np.square(rows).sum(axis=1) > 3.0).astype(int)
        options = {"basis": rows[:60], "gamma": 0.3, "tol": 1e-5}
        write_blocks(tmp_path / "rows", [(rows, labels)], keep_order=True)
        blocks = open_blocks(tmp_path / "rows")
        in_memory, in_blocks = SVC(**options).fit(rows, labels), SVC(**options).fit(blocks)
        assert in_memory.objective_ == pytest.approx(in_blocks.objective_, rel=1e-5)
        np.testing.assert_array_equal(in_blocks.predict(blocks), in_blocks.predict(blocks.to_memory()))
        assert in_blocks.score(blocks) == in_blocks.score(rows, labels) > 0.95

    def test_little_memory_gives_the_same_model(self):
        random = np.random.default_rng(0)
        rows = random.standard_normal((60_000, 3)).astype(np.float32)
        labels = (rows[:, 0] * rows[:, 1] > 0).astype(int)
        options = {"basis": rows[:200], "gamma": 0.5, "tol": 1e-4}
        whole = SVC(**options).fit(rows, labels)
        from widemargin.data.blocks.memory import memory_in_use

        tight = SVC(**options, max_memory=memory_in_use() + 400_000_000).fit(rows, labels)
        assert whole.objective_ == pytest.approx(tight.objective_, rel=1e-4)

    def test_sparse_rows_are_as_dense_ones(self):
        dense = np.where(np.random.default_rng(0).random((300, 30)) < 0.1, 1.0, 0.0)
        labels = (dense[:, :10].sum(axis=1) > 1).astype(int)
        models = [
            SVC(basis=B, tol=1e-8).fit(R, labels)
            for R, B in ((dense, dense[:50]), (csr_array(dense), csr_array(dense[:50])))
        ]
        assert models[0].objective_ == pytest.approx(models[1].objective_, rel=1e-6)
        np.testing.assert_allclose(*(m.decision_function(dense) for m in models), atol=1e-5)

    def test_kernel_values_in_single_precision_are_accurate_enough(self):
        random = np.random.default_rng(0)
        rows = random.standard_normal((30_000, 5))
        labels = (np.square(rows).sum(axis=1) > 4.0).astype(int)
        fine, coarse = (SVC(basis=rows[:300], tol=tol, gamma=0.2).fit(rows, labels) for tol in (1e-5, 1e-3))
        assert coarse.objective_ - fine.objective_ <= 1.1e-3 * fine.objective_


class TestParameters:
    def test_the_model_depends_on_the_seed_only(self):
        models = [SVC(basis=20, random_state=seed, n_jobs=jobs).fit(X, Y) for seed, jobs in ((0, 1), (0, 2), (1, 1))]
        np.testing.assert_array_equal(models[0].basis_coef_, models[1].basis_coef_)
        assert not np.array_equal(models[0].basis_, models[2].basis_)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"solver": "smo"}, "With a basis, solver is for the exact machine"),
            ({"working_set": 10}, "With a basis, working_set"),
            ({"warm_start": True}, "With a basis, warm_start"),
            ({"kernel": "precomputed", "basis": 5}, "With a basis, kernel must compute values of any two rows"),
            ({"basis": np.ones((3, 5))}, r"of shape \(n_points, 2\), got \(3, 5\)"),
            ({"basis": np.full((3, 2), np.nan)}, "NaN or infinite"),
            ({"basis": 0}, "basis"),
            ({"basis": "many"}, "basis"),
            ({"basis_choice": "best"}, "basis_choice"),
            ({"probability": "libsvm"}, "with a basis use calibration='sigmoid'"),
        ],
    )
    def test_what_does_not_apply_is_refused(self, options, message):
        rows = X if options.get("kernel") != "precomputed" else np.eye(len(Y))
        with pytest.raises(ValueError, match=message):
            SVC(**{"basis": 10, **options}).fit(rows, Y)

    def test_row_blocks_need_a_basis(self):
        with pytest.raises(TypeError, match="takes row blocks with a basis only"):
            SVC().fit(RowBlocks.of_array(X), Y)

    def test_a_fit_leaves_nothing_of_the_one_before(self):
        model = SVC(basis=10).fit(X, Y)
        assert not hasattr(model, "support_")
        model.set_params(basis=None).fit(X, Y)
        assert not hasattr(model, "basis_")
        np.testing.assert_array_equal(model.decision_function(X), SVC().fit(X, Y).decision_function(X))
        model.set_params(basis=10).fit(X, Y)
        assert not hasattr(model, "dual_coef_")
        clone(model)

    def test_a_callable_kernel_has_a_basis_too(self):
        def kernel(A, B):
            return rbf_kernel(A, B, gamma=GAMMA)

        by_name, by_function = (SVC(kernel=k, gamma=GAMMA, basis=X[:20], tol=1e-8).fit(X, Y) for k in ("rbf", kernel))
        np.testing.assert_allclose(by_name.decision_function(X), by_function.decision_function(X), atol=1e-6)


class TestFiles:
    @pytest.mark.parametrize("storage", [np.asarray, csr_array])
    def test_a_model_file_is_equal_to_the_bit(self, tmp_path, storage):
        rows, labels = load_iris(return_X_y=True)
        for machine in (SVC, SVR, OneClassSVM):
            model = machine(basis=15, random_state=0)
            model.fit(storage(rows), labels)
            save_model(model, tmp_path / "model")
            loaded = load_model(tmp_path / "model")
            np.testing.assert_array_equal(loaded.predict(storage(rows)), model.predict(storage(rows)))
            assert loaded.gap_ == model.gap_

    def test_libsvm_text_predicts_the_same(self, tmp_path):
        rows, labels = load_iris(return_X_y=True)
        model = SVC(basis=15, random_state=0, decision_function_shape="ovo").fit(rows, labels)
        save_model(model, tmp_path / "model", format="libsvm")
        loaded = load_model(tmp_path / "model").set_params(decision_function_shape="ovo")
        np.testing.assert_allclose(loaded.decision_function(rows), model.decision_function(rows), atol=1e-9)
        np.testing.assert_array_equal(loaded.predict(rows), model.predict(rows))
