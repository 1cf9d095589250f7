"""c_path, LinearSVCCV and LinearSVRCV on row blocks: the paths of the same rows in memory."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.metrics import balanced_accuracy_score, make_scorer
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from widemargin import LinearSVC, LinearSVCCV, LinearSVR, LinearSVRCV, NuSVC, c_path, grid_search
from widemargin.data.blocks import placement
from widemargin.data.blocks.reader import open_blocks
from widemargin.data.blocks.row_blocks import RowBlocks
from widemargin.data.blocks.streamed import StreamedMatrix
from widemargin.data.blocks.writer import write_blocks
from widemargin.models import base

N_ROWS, TOL, CS = 120, 1e-7, [0.01, 0.3, 5.0]


@pytest.fixture
def streaming(monkeypatch):
    """Blocks that are never loaded into a Matrix."""
    monkeypatch.setattr(placement, "_bytes_in_memory", lambda blocks: np.inf)


def data(n_classes=2, kind="dense", seed=0):
    """Return X, y and weights; y are targets if n_classes is None."""
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((N_ROWS, 4)) + np.array([0.0, 1.0, 2.0, -1.0])) * np.array([1.0, 3.0, 0.3, 1.0])
    X = csr_array(X * (rng.random(X.shape) < 0.7)) if kind == "sparse" else X
    score = X @ np.array([1.0, -0.3, 2.0, 0.5]) + rng.standard_normal(N_ROWS)
    y = score if n_classes is None else np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))
    return X, y, rng.integers(0, 3, N_ROWS).astype(float)


def blocks_of(folder, X, y, weight=None, block_bytes=500):
    write_blocks(folder / "rows.arrow", [(X, y, None, weight)], keep_order=True, block_bytes=block_bytes)
    return open_blocks(folder / "rows.arrow")


def assert_same_path(found, wanted):
    """Both paths are optimal within TOL, so that a score may differ by a row whose decision value is about zero."""
    assert_array_equal(found.Cs, wanted.Cs)
    assert_allclose(found.objectives, wanted.objectives, rtol=3 * TOL)
    assert (found.gaps <= TOL).all()
    assert (found.fold_gaps <= TOL).all()
    assert_allclose(found.coefs, wanted.coefs, atol=5e-3 * np.abs(wanted.coefs).max())
    assert_allclose(found.intercepts, wanted.intercepts, atol=2e-2 * max(1.0, np.abs(wanted.intercepts).max()))
    assert_allclose(found.scores, wanted.scores, atol=1.1 / (N_ROWS / len(found.scores)))


INTERCEPTS = [{"fit_intercept": False}, {"intercept_scaling": 2.0}, {"penalize_intercept": False}]


@pytest.mark.parametrize("intercept", INTERCEPTS, ids=["none", "penalised", "free"])
@pytest.mark.parametrize(
    ("estimator", "kind"),
    [
        (LinearSVC(loss="hinge"), "dense"),
        (LinearSVC(), "sparse"),
        (LinearSVR(epsilon=0.1), "sparse"),
        (LinearSVR(loss="squared_epsilon_insensitive"), "dense"),
    ],
)
def test_the_path_of_streamed_blocks_is_that_of_the_rows_in_memory(estimator, kind, intercept, streaming, tmp_path):
    X, y, weight = data(None if isinstance(estimator, LinearSVR) else 2, kind)
    blocks = blocks_of(tmp_path, X, y, weight)
    assert blocks.n_blocks > 3
    estimator.set_params(tol=TOL, random_state=0, **intercept)
    wanted = c_path(estimator, X, y, CS, cv=3, sample_weight=weight)
    found = c_path(estimator, blocks, Cs=CS, cv=3)
    assert found.solver == "newton"
    assert_same_path(found, wanted)
    unweighted = c_path(estimator, blocks, y, CS, cv=3, sample_weight=np.ones(N_ROWS))
    assert_same_path(unweighted, c_path(estimator, X, y, CS, cv=3))


@pytest.mark.parametrize("solver", ["newton", "ocas"])
@pytest.mark.parametrize("n_together", [1, 2, 4, 20])
def test_folds_and_classes_that_do_not_fit_are_taken_in_turn(n_together, solver, streaming, tmp_path, monkeypatch):
    X, y, _ = data(n_classes=3)
    names = np.array(["low", "medium", "top"])[y]
    blocks = blocks_of(tmp_path, X, names)
    memory = memory_for(blocks, n_together, monkeypatch)
    estimator = LinearSVC(tol=1e-5, random_state=0, solver=solver, max_memory=memory)
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    called = []
    found = c_path(estimator, blocks, Cs=CS, cv=folds, each=lambda C, scores: called.append((C, scores)))
    wanted = c_path(LinearSVC(tol=1e-5, random_state=0), X, names, CS, cv=folds)
    assert_allclose(found.objectives, wanted.objectives, rtol=3e-5)
    assert_allclose(found.scores, wanted.scores, atol=2.1 / (N_ROWS / 3))
    assert [C for C, _ in called] == CS
    assert_allclose(np.array([scores for _, scores in called]).T, found.scores)
    assert_allclose(c_path(estimator, blocks, Cs=CS, cv=folds).scores, found.scores)
    assert found.coefs.shape == (3, 3, 4)


def memory_for(blocks, n_problems, monkeypatch):
    """Return max_memory with room for the vectors of so many problems, and for as many bytes of rows."""
    monkeypatch.setattr(placement, "memory_in_use", lambda: 0)
    vectors = 8 * placement.VECTORS_OF_ROW_LOSSES * len(blocks)
    return placement.BLOCKS_IN_FLIGHT * blocks.n_bytes // blocks.n_blocks + 2 * n_problems * vectors + 1


def test_folds_share_their_passes_and_scoring_is_one_pass(streaming, tmp_path, monkeypatch):
    X, y, _ = data()
    blocks, matrices, scored = blocks_of(tmp_path, X, y), [], []

    def matrix_without_memory_for_rows(*arguments, **options):
        found = placement.matrix_of_blocks(*arguments, **options)
        matrices.append(StreamedMatrix(found.blocks, found.constant, 0.0))
        matrices[-1].most_problems = found.most_problems
        return matrices[-1]

    def count(matrix, W, *arguments, scores_of_all=StreamedMatrix.scores_of_all, **options):
        scored.append((len(W), "likely" in options))
        return scores_of_all(matrix, W, *arguments, **options)

    monkeypatch.setattr(base, "matrix_of_blocks", matrix_without_memory_for_rows)
    monkeypatch.setattr(StreamedMatrix, "scores_of_all", count)
    for n_together in (1, 20):
        memory = memory_for(blocks, n_together, monkeypatch)
        c_path(LinearSVC(tol=1e-5, loss="hinge", max_memory=memory), blocks, Cs=CS, cv=4)
    assert [matrix.most_problems for matrix in matrices] == [1, 5]
    assert matrices[1].n_passes < 0.8 * matrices[0].n_passes
    held_out = [n for n, is_step in scored if not is_step]
    assert held_out == [10, 2, 12]  # 4 folds and 3 values of C: ten at a time with room for one problem


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_no_Cs_choose_the_same_range_as_in_memory(kind, streaming, tmp_path):
    X, y, _ = data(3, kind)
    blocks = blocks_of(tmp_path, X, y)
    estimator = LinearSVC(tol=1e-5, random_state=0)
    found, wanted = c_path(estimator, blocks, cv=3), c_path(estimator, X, y, cv=3)
    assert_allclose(found.Cs, wanted.Cs)
    assert_allclose(found.objectives, wanted.objectives, rtol=3e-5)


def test_Cs_of_all_classes_need_room_for_all_classes(streaming, tmp_path, monkeypatch):
    X, y, _ = data(3)
    blocks = blocks_of(tmp_path, X, y)
    estimator = LinearSVC(max_memory=memory_for(blocks, 2, monkeypatch))
    with pytest.raises(MemoryError, match=r"Cs=None needs room for the problems of all 3 classes .* has room for 2"):
        c_path(estimator, blocks, cv=3)


@pytest.mark.parametrize("where", ["dense", "sparse", "blocks"])
def test_scaling_gives_the_path_of_scaled_rows(where, tmp_path):
    X, y, _ = data(kind="sparse" if where == "sparse" else "dense")
    dense = X.toarray() if where == "sparse" else X
    rows = blocks_of(tmp_path, X, y) if where == "blocks" else X
    for intercept in INTERCEPTS:
        wanted = c_path(LinearSVC(tol=TOL, **intercept), StandardScaler().fit_transform(dense), y, CS, cv=3)
        found = c_path(LinearSVC(tol=TOL, scaling="standard", **intercept), rows, y, CS, cv=3)
        assert_allclose(found.objectives, wanted.objectives, rtol=3 * TOL)
        assert_allclose(found.scores, wanted.scores, atol=1.1 / (N_ROWS / 3))
        by_name = c_path(LinearSVC(tol=TOL, scaling="standard", **intercept), rows, y, CS, cv=3, scoring="accuracy")
        assert_allclose(by_name.scores, found.scores)
        model = LinearSVCCV(CS, cv=3, tol=TOL, scaling="standard", **intercept).fit(rows, y)
        pipeline = make_pipeline(StandardScaler(), LinearSVC(C=model.C_, tol=TOL, **intercept)).fit(dense, y)
        assert_allclose(model.decision_function(X), pipeline.decision_function(dense), atol=1e-2)
        assert_allclose(model.chosen().decision_function(rows), model.decision_function(X), rtol=1e-9)


def test_scorers_are_given_the_decision_values_of_held_out_blocks(streaming, tmp_path):
    X, y, _ = data(3)
    blocks = blocks_of(tmp_path, X, y)
    estimator = LinearSVC(tol=TOL, random_state=0)
    for scoring in ("balanced_accuracy", make_scorer(balanced_accuracy_score)):
        found, wanted = (c_path(estimator, rows, y, CS, cv=3, scoring=scoring) for rows in (blocks, X))
        assert_allclose(found.scores, wanted.scores, atol=1.1 / (N_ROWS / 9))
    X, y, _ = data(2)
    blocks = blocks_of(tmp_path, X, y)
    found, wanted = (c_path(estimator, rows, y, CS, cv=3, scoring="roc_auc") for rows in (blocks, X))
    assert_allclose(found.scores, wanted.scores, atol=2e-2)
    X, y, _ = data(None)
    blocks = blocks_of(tmp_path, X, y)
    found, wanted = (
        c_path(LinearSVR(tol=TOL), rows, y, CS, cv=3, scoring="neg_mean_absolute_error") for rows in (blocks, X)
    )
    assert_allclose(found.scores, wanted.scores, rtol=1e-3)
    with pytest.raises(ValueError, match="scoring must be a name, or made by make_scorer, for row blocks"):
        c_path(LinearSVR(), blocks, Cs=CS, cv=3, scoring=lambda model, X, y: 0.0)


@pytest.mark.parametrize("is_streamed", [False, True])
def test_cross_validated_models_take_blocks(is_streamed, tmp_path, monkeypatch):
    if is_streamed:
        monkeypatch.setattr(placement, "_bytes_in_memory", lambda blocks: np.inf)
    X, y, weight = data(3)
    names = np.array(["low", "medium", "top"])[y]
    blocks, groups = blocks_of(tmp_path, X, names, weight), np.arange(N_ROWS) // 10
    model = LinearSVCCV(CS, cv=GroupKFold(3), tol=TOL, random_state=0).fit(blocks, groups=groups)
    wanted = LinearSVCCV(CS, cv=GroupKFold(3), tol=TOL, random_state=0).fit(X, names, weight, groups)
    assert_same_path(model.path_, wanted.path_)
    assert model.C_ == wanted.C_
    assert_array_equal(model.classes_, ["low", "medium", "top"])
    assert_allclose(model.decision_function(blocks), wanted.decision_function(X), atol=1e-2)
    assert model.score(blocks) == pytest.approx(model.score(X, names, weight))
    X, y, weight = data(None)
    blocks = blocks_of(tmp_path, X, y, weight)
    folds = list(KFold(4, shuffle=True, random_state=0).split(X))
    regression = LinearSVRCV(CS, cv=iter(folds), epsilon=0.1, tol=TOL).fit(blocks)
    wanted = LinearSVRCV(CS, cv=iter(folds), epsilon=0.1, tol=TOL).fit(X, y, weight)
    assert regression.C_ == wanted.C_
    assert regression.coef_.shape == (4,)
    assert_allclose(regression.predict(blocks), wanted.predict(X), atol=2e-2)
    assert_allclose(regression.scores_, wanted.scores_, atol=1e-3)


def test_what_a_path_of_blocks_has_no_place_for_is_refused_by_name(streaming, tmp_path):
    X, y, _ = data()
    blocks = blocks_of(tmp_path, X, y)
    assert isinstance(blocks, RowBlocks)
    with pytest.raises(ValueError, match="'dcd' needs all rows in memory"):
        c_path(LinearSVC(solver="dcd"), blocks, Cs=CS)
    with pytest.raises(ValueError, match="y has 5 values, the row blocks have 120 rows"):
        c_path(LinearSVC(), blocks, y[:5], CS)
    with pytest.raises(ValueError, match="the target y is None"):
        c_path(LinearSVC(), X, None, CS)


def test_max_seconds_ends_a_path_in_several_rounds_with_at_least_one_C(streaming, tmp_path, monkeypatch):
    X, y, _ = data()
    blocks = blocks_of(tmp_path, X, y)
    estimator = LinearSVC(max_seconds=0.0, max_memory=memory_for(blocks, 1, monkeypatch))
    with pytest.warns(match="max_seconds"):
        path = c_path(estimator, blocks, Cs=CS, cv=3)
    assert path.scores.shape == (3, 1)
    assert path.coefs.shape == (1, 1, 4)


def test_a_grid_search_refuses_row_blocks_and_names_the_way_out(tmp_path):
    X, y, _ = data()
    with pytest.raises(TypeError, match=r"grid_search needs all rows in memory: pass X.to_memory.*c_path"):
        grid_search(LinearSVC(), blocks_of(tmp_path, X, y), y, {"C": [1.0]})


def test_a_machine_without_a_basis_does_not_advise_to_set_one(tmp_path):
    X, y, _ = data()
    with pytest.raises(TypeError, match="NuSVC has no basis, and needs all rows in memory"):
        NuSVC().fit(blocks_of(tmp_path, X, y))
