"""Estimators on row blocks: the models of the same rows in memory, with labels, weights and queries of the file."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import clone, is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from widemargin import LinearSVC, LinearSVR, MeasureSVC, OrdinalSVC, RankSVM, ROCAreaSVC
from widemargin.data.blocks import placement
from widemargin.data.blocks.reader import open_blocks
from widemargin.data.blocks.streamed import StreamedMatrix
from widemargin.data.blocks.writer import write_blocks
from widemargin.models import base

N_ROWS, N_FEATURES, TOL = 90, 5, 1e-6
LOSSES = {
    LinearSVC: ["hinge", "squared_hinge"],
    LinearSVR: ["epsilon_insensitive", "squared_epsilon_insensitive"],
}
INTERCEPTS = [
    {"fit_intercept": False},
    {"penalize_intercept": True, "intercept_scaling": 2.0},
    {"penalize_intercept": False},
]


@pytest.fixture
def streaming(monkeypatch):
    """Blocks that are never loaded into a Matrix."""
    monkeypatch.setattr(placement, "_bytes_in_memory", lambda blocks: np.inf)


def rows(kind="dense", seed=0):
    """Columns of different scales and means; a third of the values is zero if sparse."""
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((N_ROWS, N_FEATURES)) + np.array([0.0, 1.0, 3.0, -2.0, 0.5])) * [1.0, 5.0, 0.2, 1.0, 2.0]
    return csr_array(X * (rng.random(X.shape) > 1 / 3)) if kind == "sparse" else X


def targets(X, kind, seed=1):
    noise = np.random.default_rng(seed).standard_normal(X.shape[0])
    score = X @ np.array([1.0, 0.3, 2.0, -1.0, 0.0]) + noise
    if kind == "numbers":
        return np.round(score, 3)
    return np.digitize(score, np.quantile(score, np.linspace(0, 1, int(kind) + 1)[1:-1]))


def blocks_of(folder, X, y, qid=None, weight=None, n_rows=20):
    """Return the rows as RowBlocks, with about n_rows rows in a block."""
    width = 8 * X.shape[1] if not hasattr(X, "nnz") else 10 * X.nnz // X.shape[0] + 4
    path = folder / f"rows{n_rows}.arrow"
    write_blocks(path, [(X, y, qid, weight)], keep_order=True, block_bytes=max(1, n_rows * width))
    return open_blocks(path)


def outputs(model, X):
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)


def assert_same_model(found, wanted, X, blocks, tol=2e-2):
    """The objectives agree within the tolerances of both; scores approximately, since they are not strictly fixed."""
    assert found.objective_ == pytest.approx(wanted.objective_, rel=3 * TOL)
    assert found.gap_ <= TOL
    scores = outputs(wanted, X)
    assert_allclose(outputs(found, X), scores, atol=tol * np.abs(scores).max())
    assert_allclose(outputs(found, blocks), outputs(found, X), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("intercept", INTERCEPTS, ids=["none", "penalised", "free"])
@pytest.mark.parametrize(("cls", "loss"), [(cls, loss) for cls, losses in LOSSES.items() for loss in losses])
def test_streamed_blocks_give_the_model_of_the_rows_in_memory(cls, loss, intercept, kind, streaming, tmp_path):
    X = rows(kind)
    y = targets(X, "2" if cls is LinearSVC else "numbers")
    weight = np.random.default_rng(2).integers(0, 4, N_ROWS).astype(float)
    blocks = blocks_of(tmp_path, X, y, weight=weight)
    assert blocks.n_blocks > 2
    model = cls(C=0.5, loss=loss, tol=TOL, random_state=0, **intercept)
    wanted = clone(model).fit(X, y, weight)
    found = model.fit(blocks)
    assert "rows in blocks" in found.solver_
    assert_same_model(found, wanted, X, blocks)
    assert found.score(blocks) == pytest.approx(found.score(X, y, weight))
    unweighted = np.ones(N_ROWS)
    assert_same_model(clone(model).fit(blocks, sample_weight=unweighted), clone(model).fit(X, y, unweighted), X, blocks)


@pytest.mark.parametrize("scaling", ["standard", "maxabs"])
@pytest.mark.parametrize("place", ["dense", "sparse", "dense blocks", "sparse blocks"])
@pytest.mark.parametrize("intercept", INTERCEPTS, ids=["none", "penalised", "free"])
@pytest.mark.parametrize(("cls", "loss"), [(cls, loss) for cls, losses in LOSSES.items() for loss in losses])
def test_scaling_gives_the_predictions_of_a_pipeline(cls, loss, intercept, place, scaling, tmp_path):
    X = rows(place.split()[0])
    y = targets(X, "2" if cls is LinearSVC else "numbers")
    model = cls(C=0.5, loss=loss, tol=TOL, random_state=0, **intercept)
    assert_scaling_equals_pipeline(model, X, y, scaling, blocks_of(tmp_path, X, y) if "blocks" in place else X)


@pytest.mark.parametrize("scaling", ["standard", "maxabs"])
@pytest.mark.parametrize("place", ["dense", "sparse", "sparse blocks"])
@pytest.mark.parametrize(
    "model",
    [
        LinearSVC(C=0.5, tol=TOL, random_state=0),
        LinearSVC(C=0.5, tol=TOL, random_state=0, loss="hinge", fit_intercept=False),
        RankSVM(C=10.0, tol=TOL),
        OrdinalSVC(C=10.0, tol=TOL),
        ROCAreaSVC(C=10.0, tol=TOL),
        MeasureSVC(C=50.0, tol=TOL, intercept_scaling=3.0),
        MeasureSVC(C=50.0, tol=TOL, fit_intercept=False, measure="error"),
    ],
    ids=lambda model: type(model).__name__,
)
def test_scaling_of_several_classes_and_of_plane_models_gives_the_predictions_of_a_pipeline(
    model, place, scaling, tmp_path
):
    X = rows(place.split()[0])
    y = targets(X, "2" if isinstance(model, ROCAreaSVC | MeasureSVC) else "3")
    assert_scaling_equals_pipeline(model, X, y, scaling, blocks_of(tmp_path, X, y) if "blocks" in place else X)


def assert_scaling_equals_pipeline(model, X, y, scaling, where):
    """Fit on `where`, the rows X or their blocks, and compare with a pipeline; then fit from the last model."""
    dense = X.toarray() if hasattr(X, "nnz") else X
    pipeline = make_pipeline(StandardScaler() if scaling == "standard" else MaxAbsScaler(), clone(model))
    wanted = outputs(pipeline.fit(dense, y), dense)
    found = clone(model).set_params(scaling=scaling, warm_start=True).fit(where, y)
    assert found.objective_ == pytest.approx(pipeline[-1].objective_, rel=3 * TOL)
    tolerance = 2e-2 * np.abs(wanted).max()
    assert_allclose(outputs(found, X), wanted, atol=tolerance)
    assert_allclose(outputs(found, where), wanted, atol=tolerance)
    if is_classifier(model):
        assert np.mean(found.predict(where) == found.predict(X)) > 0.98
    if scaling == "standard" and not isinstance(model, OrdinalSVC | ROCAreaSVC):
        assert np.any(found.intercept_)
    assert found.fit(where, y).objective_ == pytest.approx(pipeline[-1].objective_, rel=3 * TOL)


@pytest.mark.parametrize("scaling", ["standard", "maxabs", None])
@pytest.mark.parametrize("place", ["dense", "sparse", "dense blocks"])
@pytest.mark.parametrize(
    "model",
    [
        LinearSVC(solver="newton", intercept_scaling=3.0),
        LinearSVR(solver="newton", fit_intercept=False),
        RankSVM(),
        MeasureSVC(intercept_scaling=3.0),
        MeasureSVC(fit_intercept=False),
    ],
)
def test_a_warm_start_begins_at_the_last_model_however_features_are_scaled(model, place, scaling, tmp_path):
    X = rows(place.split()[0])
    y = targets(X, "2")
    where = blocks_of(tmp_path, X, y) if "blocks" in place else X
    model = clone(model).set_params(warm_start=True, scaling=scaling).fit(where, y)
    constant = model.intercept_scaling if getattr(model, "fit_intercept", False) else 0.0
    matrix = model._matrix_of(where, constant)
    (start,) = model._last_weights(1, matrix)
    assert_allclose(matrix.scores(start), outputs(model, X), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n_rows", [1, 7, 1000])
@pytest.mark.parametrize(
    "model",
    [
        RankSVM(C=10.0),
        OrdinalSVC(C=10.0),
        ROCAreaSVC(C=10.0),
        MeasureSVC(C=50.0),
        MeasureSVC("prbep", C=50.0),
        MeasureSVC("average_precision", C=50.0),
    ],
)
def test_plane_models_on_streamed_blocks_are_those_of_the_rows_in_memory(model, n_rows, streaming, tmp_path):
    X = rows()
    y = targets(X, "2" if isinstance(model, ROCAreaSVC | MeasureSVC) else "3")
    qid = np.repeat(np.arange(9), 10)
    blocks = blocks_of(tmp_path, X, y, qid=qid, n_rows=n_rows)
    model.set_params(tol=TOL)
    given = {"qid": qid} if isinstance(model, RankSVM) else {}
    wanted, found = clone(model).fit(X, y, **given), clone(model).fit(blocks)
    assert_same_model(found, wanted, X, blocks)
    assert found.score(blocks) == pytest.approx(found.score(X, y, **given))


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_several_classes_on_streamed_blocks_are_those_of_the_rows_in_memory(loss, n_jobs, streaming, tmp_path):
    X = rows()
    y = np.array(["ant", "bee", "cat", "dog"])[targets(X, "4")]
    blocks = blocks_of(tmp_path, X, y)
    model = LinearSVC(C=0.5, loss=loss, tol=TOL, random_state=0, n_jobs=n_jobs)
    wanted, found = clone(model).fit(X, y), clone(model).fit(blocks)
    assert_same_model(found, wanted, X, blocks)
    assert_array_equal(found.classes_, ["ant", "bee", "cat", "dog"])
    assert_array_equal(found.predict(blocks), found.predict(X))
    assert found.score(blocks) == accuracy_score(y, found.predict(X))


def test_as_many_classes_share_passes_as_have_room(streaming, tmp_path, monkeypatch):
    X = rows()
    blocks = blocks_of(tmp_path, X, targets(X, "5"))
    models, matrices = {}, []
    vectors = 8 * placement.VECTORS_OF_ROW_LOSSES * N_ROWS

    def matrix_of_few_rows(*arguments, **options):
        found = placement.matrix_of_blocks(*arguments, **options)
        matrices.append(StreamedMatrix(found.blocks, found.constant, 0.0))  # no memory for rows: passes are counted
        matrices[-1].most_problems = found.most_problems
        return matrices[-1]

    monkeypatch.setattr(placement, "memory_in_use", lambda: 0)
    monkeypatch.setattr(base, "matrix_of_blocks", matrix_of_few_rows)
    for n_together in (1, 2, 5):
        room = placement.BLOCKS_IN_FLIGHT * blocks.n_bytes // blocks.n_blocks + 2 * n_together * vectors + 1
        models[n_together] = LinearSVC(C=0.5, tol=TOL, random_state=0, max_memory=room).fit(blocks)
    assert [matrix.most_problems for matrix in matrices] == [1, 2, 5]
    for model in models.values():
        assert_allclose(model.coef_, models[5].coef_, atol=1e-3)
    assert matrices[0].n_passes > matrices[1].n_passes > matrices[2].n_passes
    with pytest.raises(MemoryError, match=r"max_memory is .* Raise max_memory"):
        LinearSVC(max_memory=vectors - 1).fit(blocks)


def test_blocks_that_fit_into_memory_leave_room_for_their_problems(tmp_path, monkeypatch):
    X = rows()
    blocks = blocks_of(tmp_path, X, targets(X, "5"))
    monkeypatch.setattr(placement, "memory_in_use", lambda: 0)
    vectors = 8 * placement.VECTORS_OF_ROW_LOSSES * N_ROWS
    room = placement.BLOCKS_IN_FLIGHT * blocks.n_bytes // blocks.n_blocks + 2 * X.nbytes + 2 * vectors
    matrix = LinearSVC(max_memory=room)._matrix_of(blocks, 0.0, 5)
    assert matrix.is_in_memory
    assert matrix.most_problems == 2


def test_scores_of_blocks_take_targets_and_weights_of_the_file_unless_given(tmp_path):
    X = rows()
    y, weight = targets(X, "numbers"), np.arange(1.0, N_ROWS + 1)
    blocks = blocks_of(tmp_path, X, y, weight=weight)
    model = LinearSVR(random_state=0).fit(X, y)
    predicted = model.predict(X)
    assert model.score(blocks) == pytest.approx(r2_score(y, predicted, sample_weight=weight))
    assert model.score(blocks, y + 1.0) == pytest.approx(r2_score(y + 1.0, predicted, sample_weight=weight))
    assert model.score(blocks, sample_weight=np.ones(N_ROWS)) == pytest.approx(r2_score(y, predicted))
    with pytest.raises(ValueError, match="the target y is None: only row blocks have labels of their own"):
        model.score(X)


def test_feature_names_of_blocks_are_compared_with_those_of_the_fit(tmp_path):
    pandas = pytest.importorskip("pandas")
    X = rows()
    frame = pandas.DataFrame(X, columns=list("abcde"))
    other = frame.rename(columns={"d": "x"})
    for name, one in (("frame", frame), ("other", other)):
        write_blocks(tmp_path / name, one.assign(y=targets(X, "2")), label="y", keep_order=True)
    blocks, others = open_blocks(tmp_path / "frame"), open_blocks(tmp_path / "other")
    unnamed = blocks_of(tmp_path, X, targets(X, "2"))
    model = LinearSVC(random_state=0).fit(blocks)
    assert_array_equal(model.feature_names_in_, list("abcde"))
    assert_array_equal(model.predict(blocks), model.predict(frame))
    with pytest.raises(ValueError, match="feature 3 is 'x', at fit it was 'd'"):
        model.predict(others)
    with pytest.warns(UserWarning, match="have no feature names, but LinearSVC was fitted with"):
        model.decision_function(unnamed)
    with pytest.warns(UserWarning, match="have feature names, but RankSVM was fitted without"):
        RankSVM().fit(unnamed).predict(blocks)
    with pytest.raises(ValueError, match="X has 4 features"):
        model.predict(blocks_of(tmp_path, X[:, :4], targets(X, "2")))


def test_what_needs_rows_in_memory_is_refused_by_name(streaming, tmp_path, monkeypatch):
    monkeypatch.setattr(placement, "_MAX_DENSE_ENTRIES", 0)  # centred sparse rows stay sparse
    X = rows()
    y = targets(X, "3")
    blocks = blocks_of(tmp_path, X, y)
    sweeps = LinearSVC(multi_class="crammer_singer", solver="dcd")
    with pytest.raises(ValueError, match=r"crammer_singer' by coordinate descent needs all rows .* in blocks on disk"):
        sweeps.fit(blocks)
    with pytest.raises(ValueError, match=r"crammer_singer' by coordinate descent needs all .* sparse rows dense"):
        clone(sweeps).set_params(scaling="standard").fit(rows("sparse"), y)
    with pytest.raises(ValueError, match=r"penalty='l1' needs all rows in memory .* columns; .* blocks on disk"):
        LinearSVC("l1").fit(blocks)
    with pytest.raises(ValueError, match=r"penalty='l1' needs all rows .* these are centred, which would make sparse"):
        LinearSVC("l1", scaling="standard").fit(rows("sparse"), y)
    with pytest.raises(ValueError, match="crammer_singer' by coordinate descent keeps no checkpoints"):
        clone(sweeps).set_params(checkpoint=tmp_path / "run").fit(X, y)
    with pytest.raises(ValueError, match="'dcd' needs all rows in memory"):
        LinearSVC(solver="dcd").fit(blocks)
