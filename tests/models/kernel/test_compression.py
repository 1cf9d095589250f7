"""`compress`: the identity with all vectors, proofs that hold, refits that help, files, and what is refused."""

import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_diabetes, load_digits, make_classification
from sklearn.exceptions import NotFittedError

from widemargin import SVC, SVR, LinearSVC, NuSVC, NuSVR, OneClassSVM, compress, load_model, save_model
from widemargin.models.kernel.compression import decision_values
from widemargin.models.kernel.refit import weights_near_zero


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16.0, y


@pytest.fixture(scope="module")
def two():
    return make_classification(300, 6, n_informative=4, random_state=0)


@pytest.fixture(scope="module")
def numbers():
    X, y = load_diabetes(return_X_y=True)
    return 10.0 * X, (y - y.mean()) / y.std()


@pytest.fixture(scope="module")
def models(digits, two, numbers):
    """A fitted machine of each kind, and the rows that it was fitted to."""
    few = digits[0][:500], digits[1][:500]
    return {
        "two classes": (SVC(C=2.0).fit(*two), two[0]),
        "ten classes": (SVC(C=10.0, gamma=0.1).fit(*few), few[0]),
        "nu": (NuSVC(nu=0.2).fit(*few), few[0]),
        "regression": (SVR().fit(*numbers), numbers[0]),
        "nu regression": (NuSVR().fit(*numbers), numbers[0]),
        "one class": (OneClassSVM(nu=0.2).fit(two[0]), two[0]),
        "sparse": (SVC(C=10.0, gamma=0.1).fit(csr_array(few[0]), few[1]), csr_array(few[0])),
        "single": (SVC(C=10.0, gamma=0.1).fit(few[0].astype(np.float32), few[1]), few[0].astype(np.float32)),
        "poly": (SVC(kernel="poly", coef0=1.0, degree=2).fit(*few), few[0]),
        "linear": (SVC(kernel="linear").fit(*few), few[0]),
        "linear one class": (OneClassSVM(kernel="linear", nu=0.3).fit(two[0] + 3.0), two[0] + 3.0),
    }


KINDS = ["two classes", "ten classes", "nu", "regression", "nu regression", "one class", "sparse", "single", "poly",
         "linear", "linear one class"]  # fmt: skip
SHARED = {"ten classes", "nu", "sparse", "single", "poly", "linear"}  # whose pairs of classes share all vectors
every_kind = pytest.mark.parametrize("kind", KINDS)


@every_kind
def test_all_vectors_are_the_identity(models, kind):
    model, X = models[kind]
    same = compress(model, X, n_vectors=len(model.support_))
    assert np.array_equal(decision_values(same, X), decision_values(model, X))
    report = same.compression_
    assert (report.n_before, report.n_after) == (len(model.support_),) * 2
    assert (report.distance.max(), report.relative_distance.max(), report.bound, report.change) == (0.0, 0.0, 0.0, 0.0)
    assert report.agreement in (None, 1.0)


@every_kind
def test_almost_all_vectors_change_almost_nothing(models, kind):
    model, X = models[kind]
    small = compress(model, X, n_vectors=len(model.support_) - 1)
    half = compress(model, X, n_vectors=len(model.support_) // 2)
    assert small.compression_.change <= half.compression_.change + 1e-6
    assert small.compression_.distance.sum() <= half.compression_.distance.sum() + 1e-6


@every_kind
def test_the_bound_holds_for_all_rows(models, kind):
    model, X = models[kind]
    small = compress(model, X, n_vectors=max(1, len(model.support_) // 4))
    rows = X
    if small.kernel == "rbf" and kind not in ("sparse", "single"):  # any row, be it far away
        random = np.random.default_rng(0)
        rows = np.vstack([X, random.normal(size=X.shape), small._expansion()[0], 3.0 * X])
    change = np.abs(decision_values(small, rows) - decision_values(model, rows)).max(axis=0)
    rounding = 1e-4 if kind == "single" else 1e-9
    assert (change <= small.compression_.bound + rounding).all()
    assert small.compression_.change <= small.compression_.bound + rounding


@every_kind
def test_more_vectors_come_nearer(models, kind):
    model, _ = models[kind]
    sums = [
        (compress(model, n_vectors=n).compression_.distance ** 2).sum()
        for n in np.unique(np.linspace(1, len(model.support_) - 1, 6).astype(int))
    ]
    assert (np.diff(sums) <= 1e-6).all()


@pytest.mark.parametrize("kind", ["two classes", "ten classes", "regression", "one class", "poly"])
def test_max_change_is_kept_and_takes_no_more_vectors_than_needed(models, kind):
    model, X = models[kind]
    half = compress(model, X, n_vectors=len(model.support_) // 2).compression_
    small = compress(model, X, max_change=half.bound)
    assert small.compression_.bound <= half.bound
    assert small.compression_.n_after < len(model.support_)
    tight = compress(model, X, max_change=small.compression_.bound / 10.0)
    assert tight.compression_.bound <= small.compression_.bound / 10.0
    assert tight.compression_.n_after > small.compression_.n_after


def test_a_large_max_change_leaves_one_vector_and_a_tiny_one_leaves_all(models):
    model, _ = models["ten classes"]
    assert compress(model, max_change=1e6).compression_.n_after == 1
    assert compress(model, max_change=1e-14).compression_.n_after == len(model.support_)


@every_kind
@pytest.mark.parametrize("refit", ["coefficients", "vectors"])
def test_a_refit_comes_nearer_at_its_rows(models, kind, refit):
    model, X = models[kind]
    if refit == "vectors" and model.kernel != "rbf":
        pytest.skip("vectors move with the rbf kernel only")
    n = max(2, len(model.support_) // 6)
    plain, small = compress(model, X, n_vectors=n), compress(model, X, n_vectors=n, refit=refit)
    assert hasattr(small, "basis_") == (kind in SHARED)
    error = {name: _own_errors(model, each, X) for name, each in (("plain", plain), ("refit", small))}
    assert error["refit"] <= 1.001 * error["plain"] + 1e-4
    assert small.compression_.refit == refit
    assert small.compression_.bound >= small.compression_.change - 1e-4
    if refit == "vectors":
        fixed = compress(model, X, n_vectors=n, refit="coefficients")
        assert error["refit"] < _own_errors(model, fixed, X)
        assert not hasattr(small, "support_")


def _own_errors(model, small, X):
    """Return the weighted sum of squared changes of decision values, of a pair over the rows of its classes."""
    before, after = decision_values(model, X), decision_values(small, X)
    squares = (after - before) ** 2
    if not is_classifier(model):
        return squares.sum()
    first, second = np.triu_indices(len(model.classes_), 1)
    label = np.searchsorted(model.classes_, model.predict(X))[:, np.newaxis]
    counts = (first == label) | (second == label)
    weights = weights_near_zero(np.where(counts, np.abs(before), np.inf).min(axis=1))
    return (squares * counts).sum(axis=1) @ weights


def test_a_tenth_of_the_vectors_of_digits_predicts_as_well(digits):
    X, y = digits
    model = SVC(C=10.0, gamma=0.1).fit(X[:1200], y[:1200])
    small = compress(model, X[:1200], n_vectors=len(model.support_) // 5, refit="vectors")
    assert small.compression_.agreement > 0.995
    assert small.score(X[1200:], y[1200:]) > model.score(X[1200:], y[1200:]) - 0.01


@every_kind
def test_attributes_are_those_of_the_chosen_vectors_and_none_of_the_fit(models, kind):
    model, X = models[kind]
    before = pickle.dumps(model)
    n = len(model.support_) // 3
    small = compress(model, X, n_vectors=n, shared=False)
    assert pickle.dumps(model) == before
    assert type(small) is type(model)
    assert set(small.support_) <= set(model.support_)
    rows = np.searchsorted(model.support_, small.support_) if kind in ("two classes", "regression") else None
    if rows is not None and kind == "regression":
        assert np.array_equal(small.support_vectors_, model.support_vectors_[rows])
    assert small.support_vectors_.shape[0] == small.dual_coef_.shape[1] == small.n_support_.sum() == len(small.support_)
    assert type(small.dual_coef_) is type(model.dual_coef_)
    assert small.support_vectors_.dtype == model.support_vectors_.dtype
    for name in ("gap_", "objective_", "history_", "solver_", "status_", "fit_status_", "facts_", "n_iter_"):
        assert not hasattr(small, name)
    assert not hasattr(clone(small), "dual_coef_")
    assert clone(small).get_params() == clone(model).get_params()


@pytest.mark.parametrize("kind", sorted(SHARED))
def test_pairs_that_share_all_vectors_come_nearer(models, kind):
    model, X = models[kind]
    n = len(model.support_) // 6
    shared, apart = (compress(model, X, n_vectors=n, shared=each) for each in (True, False))
    assert np.array_equal(compress(model, X, n_vectors=n).basis_coef_, shared.basis_coef_)
    assert (shared.compression_.distance**2).sum() < (apart.compression_.distance**2).sum()
    assert shared.basis_.shape[0] == shared.basis_coef_.shape[1] == shared.compression_.n_after <= n
    assert shared.basis_coef_.shape[0] == len(model.intercept_)
    assert shared.basis_.dtype == model.support_vectors_.dtype
    assert type(shared.basis_) is type(model.support_vectors_)
    for name in ("support_", "support_vectors_", "n_support_", "dual_coef_", "gap_", "n_iter_"):
        assert not hasattr(shared, name)
    assert clone(shared).get_params() == clone(model).get_params()
    assert not hasattr(clone(shared).fit(X, model.predict(X)), "basis_")


def test_many_pairs_of_few_features_keep_the_vectors_of_their_classes():
    random = np.random.default_rng(0)
    centres = random.normal(size=(20, 3))
    X, y = np.repeat(centres, 20, axis=0) + 0.3 * random.normal(size=(400, 3)), np.repeat(np.arange(20), 20)
    model = SVC().fit(X, y)
    assert not hasattr(compress(model, n_vectors=50), "basis_")
    assert hasattr(compress(model, n_vectors=50, shared=True), "basis_")


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_machine_on_a_basis_is_compressed_too(n_classes, rng, tmp_path):
    X = rng.normal(size=(300, 4))
    y = np.digitize(X[:, 0] + X[:, 1] ** 2, [0.7, 1.5][: n_classes - 1])
    model = SVC(basis=60, random_state=0).fit(X, y)
    same = compress(model, X, n_vectors=60)
    assert np.array_equal(same.basis_coef_, model.basis_coef_)
    assert same.compression_.change == 0.0
    small = compress(model, X, n_vectors=20)
    assert small.basis_.shape[0] == small.compression_.n_after == 20
    change = np.abs(decision_values(small, X) - decision_values(model, X)).max()
    assert change == pytest.approx(small.compression_.change)
    assert change <= small.compression_.bound
    assert compress(model, X, n_vectors=20, refit="vectors").compression_.agreement >= 0.9
    save_model(small, tmp_path / "small")
    assert np.array_equal(load_model(tmp_path / "small").predict(X), small.predict(X))


def test_libsvm_text_repeats_shared_vectors_and_predicts_the_same(models, tmp_path):
    model, X = models["ten classes"]
    small = compress(model, X, n_vectors=12)
    save_model(small, tmp_path / "small", format="libsvm")
    loaded = load_model(tmp_path / "small")
    assert loaded.dual_coef_.shape[1] == 9 * 12
    np.testing.assert_allclose(decision_values(loaded, X), decision_values(small, X), atol=1e-9)


@every_kind
@pytest.mark.parametrize("form", ["widemargin", "libsvm"])
def test_files_hold_compressed_models(models, kind, form, tmp_path):
    model, X = models[kind]
    for refit in [None, "vectors"] if model.kernel == "rbf" else [None]:
        small = compress(model, X, n_vectors=12, refit=refit, shared=None if form == "widemargin" else False)
        save_model(small, tmp_path / "small", format=form)
        loaded = load_model(tmp_path / "small")
        assert np.array_equal(loaded.predict(X), small.predict(X)) or np.allclose(loaded.predict(X), small.predict(X))
        assert (
            loaded._expansion()[1].shape[1] == small.compression_.n_after == (5 if kind == "linear one class" else 12)
        )
        assert compress(loaded, n_vectors=4).compression_.n_after == 4
        pickled = pickle.loads(pickle.dumps(small))
        assert np.array_equal(pickled.predict(X), small.predict(X))


def test_probabilities_stay(two):
    X, y = two
    model = SVC(probability="libsvm", random_state=0).fit(X, y)
    small = compress(model, X, n_vectors=len(model.support_) // 2)
    assert np.array_equal(small.probA_, model.probA_)
    np.testing.assert_allclose(small.predict_proba(X).sum(axis=1), 1.0)


def test_the_same_call_gives_the_same_model_for_any_number_of_threads(models):
    model, X = models["ten classes"]
    found = []
    for n_jobs in (1, 2, 1):
        each = clone(model).set_params(n_jobs=n_jobs)
        vars(each).update({name: value for name, value in vars(model).items() if name != "n_jobs"})
        small = compress(each, X, n_vectors=40, refit="vectors")
        found.append((small.basis_coef_.tobytes(), small.basis_.tobytes()))
    assert found[0] == found[1] == found[2]


def test_repeated_support_vectors_are_merged_without_loss():
    random = np.random.default_rng(0)
    X = np.repeat(random.normal(size=(20, 3)), 4, axis=0)
    y = np.repeat(random.normal(size=20), 4)
    model = SVR(C=10.0, gamma=1.0, epsilon=0.01).fit(X, y)
    assert len(model.support_) > 20
    small = compress(model, X, n_vectors=len(model.support_) - 1)
    assert small.compression_.n_after <= 20
    np.testing.assert_allclose(small.predict(X), model.predict(X), atol=1e-6)


def test_the_report_reads_well(models):
    model, X = models["ten classes"]
    report = compress(model, X, n_vectors=20).compression_
    text = repr(report)
    assert text.splitlines()[0] == f"vectors            20 of {len(model.support_)}"
    assert "the largest of 45 pairs" in text
    assert "% of the rows" in text
    assert str(report) == text
    assert set(report.to_dict()) == {
        "n_before", "n_after", "distance", "relative_distance", "bound", "change", "agreement", "refit",
    }  # fmt: skip
    assert compress(model, n_vectors=20).compression_.change is None
    assert compress(models["poly"][0], n_vectors=20).compression_.bound is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "give either n_vectors or max_change, got n_vectors=None and max_change=None"),
        ({"n_vectors": 3, "max_change": 0.1}, "give either n_vectors or max_change"),
        ({"n_vectors": 0}, "n_vectors must be an integer >= 1, got 0"),
        ({"X": 5}, "X must be rows, got 5: for so many vectors, write n_vectors=5"),
        ({"n_vectors": 2.5}, "n_vectors must be an integer >= 1, got 2.5"),
        ({"n_vectors": True}, "n_vectors must be an integer >= 1, got True"),
        ({"max_change": 0.0}, "max_change must be a positive number, got 0.0"),
        ({"max_change": float("nan")}, "max_change must be a positive number, got nan"),
        ({"n_vectors": 3, "refit": "all"}, "refit must be one of 'coefficients', 'vectors' or None, got 'all'"),
        ({"n_vectors": 3, "refit": "vectors"}, "refit='vectors' needs X"),
        ({"max_change": 3.0, "refit": "vectors"}, "refit does not keep to max_change"),
    ],
)
def test_wrong_arguments_are_refused(models, options, message):
    with pytest.raises(ValueError, match=message):
        compress(models["two classes"][0], **options)


def test_kernels_without_vectors_or_a_norm_are_refused(two, models):
    X, y = two
    given, callable_ = SVC(kernel="precomputed").fit(X @ X.T, y), SVC(kernel=lambda A, B: A @ B.T).fit(X, y)
    for model, message in (
        (given, 'kernel is precomputed: .* Fit with kernel="rbf", "poly" or "linear"'),
        (callable_, "kernel is a function: "),
        (SVC(kernel="sigmoid", gamma=0.01).fit(X, y), "kernel='sigmoid' has no norm"),
        (SVC(kernel="poly", coef0=-1.0).fit(X, y), 'coef0 is negative: "poly" needs coef0 >= 0'),
    ):
        with pytest.raises(ValueError, match=message):
            compress(model, n_vectors=5)
    with pytest.raises(ValueError, match="max_change with kernel='poly' needs X"):
        compress(models["poly"][0], max_change=0.1)
    with pytest.raises(ValueError, match="refit='vectors' is for kernel='rbf', got 'poly'"):
        compress(models["poly"][0], models["poly"][1], n_vectors=5, refit="vectors")
    with pytest.raises(TypeError, match=r"compress takes a fitted SVC, .* got LinearSVC"):
        compress(LinearSVC().fit(X, y), n_vectors=5)
    with pytest.raises(NotFittedError):
        compress(SVC(), n_vectors=5)
    with pytest.raises(ValueError, match="X has 2 features, but SVC is expecting 6"):
        compress(SVC().fit(X, y), X[:, :2], n_vectors=5)


@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_support_vectors_of_zeros_only_are_no_obstacle_to_a_refit(two, kernel):
    X, y = two[0].copy(), two[1]
    X[:20] = 0.0
    model = SVC(kernel=kernel).fit(X, y)
    assert (~model.support_vectors_.any(axis=1)).any()
    small = compress(model, X, n_vectors=len(X), refit="coefficients")
    np.testing.assert_allclose(small.decision_function(X), model.decision_function(X), atol=1e-6)
