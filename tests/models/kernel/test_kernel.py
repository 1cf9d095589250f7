"""SVC, NuSVC, SVR, NuSVR and OneClassSVM against scikit-learn's: numbers, layouts, weights, kernels, errors."""

import inspect

import numpy as np
import pytest
import sklearn.svm
from scipy.sparse import csr_array, csr_matrix, issparse
from sklearn.datasets import load_digits, load_iris
from sklearn.metrics.pairwise import rbf_kernel

import widemargin
from widemargin import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from widemargin.kernels.functions import Kernel
from widemargin.models.kernel import training_rows
from widemargin.models.kernel.training_rows import block_dtype

# scikit-learn keeps kernel values in single precision and may circle for ever near the optimum: it gets a limit.
pytestmark = pytest.mark.filterwarnings("ignore:Solver terminated early:sklearn.exceptions.ConvergenceWarning")

NAMES = ["SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM"]
CLASSIFIERS = ["SVC", "NuSVC"]
FORMULATION = {"SVC": {}, "NuSVC": {"nu": 0.65}, "SVR": {}, "NuSVR": {"nu": 0.45}, "OneClassSVM": {"nu": 0.31}}


def squared(A, B):
    """A polynomial kernel as a function; sparse in, sparse out."""
    return (A @ B.T).power(2) if issparse(A) else (A @ B.T) ** 2


KERNELS = {
    "linear": {"kernel": "linear"},
    "poly": {"kernel": "poly", "degree": 2, "gamma": 0.3, "coef0": 1.0},
    "rbf": {"kernel": "rbf", "gamma": 0.2},
    "sigmoid": {"kernel": "sigmoid", "gamma": 0.01},
    "precomputed": {"kernel": "precomputed"},
    "callable": {"kernel": squared},
}
CASES = [
    (name, kernel, container)
    for name in NAMES
    for kernel in KERNELS
    for container in (np.asarray, csr_array, csr_matrix)
    if kernel != "precomputed" or container is np.asarray
]


@pytest.fixture
def rows(rng):
    X = rng.standard_normal((70, 5))
    X[rng.random(X.shape) < 0.3] = 0.0
    y = X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.standard_normal(70)
    return X, y, rng.uniform(0.2, 3.0, 70)


def targets(name, y, n_classes=2):
    if name not in CLASSIFIERS:
        return y
    return np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))


def both(name, **parameters):
    parameters = {**FORMULATION[name], **parameters}
    peer = getattr(sklearn.svm, name)(tol=1e-6, max_iter=200_000, **parameters)
    return getattr(widemargin, name)(tol=1e-8, **parameters), peer


def outputs(model, X):
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)


def dense(array):
    return array.toarray() if issparse(array) else np.asarray(array)


def assert_same_layout(ours, peer, atol=1e-4):
    scale = max(1.0, np.abs(dense(peer.dual_coef_)).max())
    np.testing.assert_array_equal(ours.support_, peer.support_)
    np.testing.assert_array_equal(ours.n_support_, peer.n_support_)
    np.testing.assert_allclose(dense(ours.dual_coef_), dense(peer.dual_coef_), atol=atol * scale)
    np.testing.assert_allclose(ours.intercept_, peer.intercept_, atol=atol * scale)
    np.testing.assert_array_equal(dense(ours.support_vectors_), dense(peer.support_vectors_))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("name", "kernel", "container"), CASES)
def test_every_formulation_and_kernel_gives_scikit_learns_model(name, kernel, container, weighted, rows):
    X, y, weight = rows
    X = np.abs(X) if name == "OneClassSVM" else X  # around the origin, linear kernels would have no region to find
    X = container(rbf_kernel(X, gamma=0.3) if kernel == "precomputed" else X)
    ours, peer = both(name, **KERNELS[kernel])
    for model in (ours, peer):
        model.fit(X, targets(name, y), sample_weight=weight if weighted else None)
    assert ours.status_ == "converged"
    assert ours.gap_ < 1e-6
    np.testing.assert_allclose(outputs(ours, X), outputs(peer, X), atol=2e-4, rtol=1e-4)
    if kernel not in ("linear", "sigmoid"):  # their multipliers are not unique: more rows than dimensions
        assert_same_layout(ours, peer)
    if name in CLASSIFIERS:
        np.testing.assert_array_equal(ours.predict(X), peer.predict(X))


@pytest.mark.parametrize("solver", ["svmlight", "smo"])
@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("data", [load_iris, load_digits])
def test_several_classes_have_scikit_learns_layout(data, name, solver):
    X, y = data(return_X_y=True)
    X, y = X[::3] / X.max(), y[::3]
    new = np.random.default_rng(0).uniform(X.min(), X.max(), (40, X.shape[1]))
    ours, peer = both(name, gamma=2.0, **({"C": 10.0} if name == "SVC" else {"nu": 0.3}))
    ours.set_params(solver=solver)
    for model in (ours.fit(X, y), peer.fit(X, y)):
        model.set_params(decision_function_shape="ovo")
    assert_same_layout(ours, peer)
    np.testing.assert_allclose(ours.decision_function(new), peer.decision_function(new), atol=1e-4)
    np.testing.assert_array_equal(ours.predict(new), peer.predict(new))
    for model in (ours, peer):
        model.set_params(decision_function_shape="ovr")
    np.testing.assert_allclose(ours.decision_function(new), peer.decision_function(new), atol=1e-4)
    for model in (ours, peer):
        model.set_params(break_ties=True)
    np.testing.assert_array_equal(ours.predict(new), peer.predict(new))
    assert ours.solver_ == solver


def test_votes_without_a_winner_are_decided_by_confidence_only_if_asked_for():
    X = np.array([[0.0, 1.0], [0.9, -0.5], [-0.9, -0.5]])  # the middle of three classes gets one vote for each
    model = SVC(kernel="linear", C=1e3).fit(X, [0, 1, 2])
    near = [[0.0, -0.01]]
    assert model.set_params(decision_function_shape="ovo").decision_function(near).shape == (1, 3)
    scores = model.set_params(decision_function_shape="ovr", break_ties=True).decision_function(near)
    assert model.predict(near) == scores.argmax()
    with pytest.raises(ValueError, match="break_ties must be False when decision_function_shape is 'ovo'"):
        model.set_params(decision_function_shape="ovo").predict(near)


@pytest.mark.parametrize("name", NAMES)
def test_parameters_and_their_defaults_are_scikit_learns(name):
    ours, peer = getattr(widemargin, name)(), getattr(sklearn.svm, name)()
    theirs = {"probability": "deprecated"}  # their word for None
    different = {key for key, value in peer.get_params().items() if ours.get_params()[key] != value}
    assert different <= set(theirs)
    order = [key for key in inspect.signature(type(ours)).parameters if key in peer.get_params()]
    assert order == list(inspect.signature(type(peer)).parameters)
    assert all(key in type(ours).__doc__ for key in ours.get_params())


@pytest.mark.parametrize("container", [np.asarray, csr_matrix])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "precomputed"])
@pytest.mark.parametrize("name", NAMES)
def test_fitted_attributes_have_scikit_learns_types_and_shapes(name, kernel, container, rows):
    X, y, _ = rows
    if kernel == "precomputed" and container is csr_matrix:
        container = np.asarray
    X = X + 5.0 * (name == "OneClassSVM")  # a plane that has the rows on one side: around the origin there is none
    X = container(rbf_kernel(X, gamma=0.3) if kernel == "precomputed" else X)
    for n_classes in (2, 3):
        ours, peer = both(name, kernel=kernel, **({"nu": 0.3} if name == "NuSVC" and kernel != "linear" else {}))
        for model in (ours, peer):
            model.fit(X, targets(name, y, n_classes))
        for attribute in [key for key in vars(peer) if key.endswith("_") and not key.startswith("_")] + ["n_support_"]:
            mine, theirs = getattr(ours, attribute), getattr(peer, attribute)
            assert type(mine) is type(theirs), attribute
            assert np.ndim(mine) == np.ndim(theirs), attribute
            assert getattr(mine, "dtype", None) == getattr(theirs, "dtype", None), attribute
        assert ours._gamma == pytest.approx(peer._gamma)


@pytest.mark.parametrize("container", [np.asarray, csr_array])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_linear_weights_are_scikit_learns_and_read_only(n_classes, container, rows):
    X, y, _ = rows
    ours, peer = both("SVC", kernel="linear")
    for model in (ours, peer):
        model.fit(container(X), targets("SVC", y, n_classes))
    assert issparse(ours.coef_) == issparse(peer.coef_)
    np.testing.assert_allclose(dense(ours.coef_), dense(peer.coef_), atol=1e-4)
    coef = ours.coef_
    with pytest.raises(ValueError, match="read-only"):
        (coef.data if issparse(coef) else coef)[:] = 0.0
    with pytest.raises(AttributeError, match="no setter"):
        ours.coef_ = 0.0
    np.testing.assert_allclose(SVR(kernel="linear").fit(X, y).coef_.shape, (1, 5))
    assert not hasattr(SVC().fit(X, targets("SVC", y)), "coef_")
    assert not hasattr(SVC(kernel="linear"), "coef_")


@pytest.mark.parametrize("class_weight", [{0: 3.0, 2: 0.2}, "balanced"])
def test_class_weights_are_scikit_learns(class_weight, rows):
    X, y, weight = rows
    label = np.digitize(y, [0.0, 2.0])
    ours, peer = both("SVC", class_weight=class_weight, gamma=0.3)
    for model in (ours, peer):
        model.fit(X, label, sample_weight=weight)
    np.testing.assert_allclose(ours.class_weight_, peer.class_weight_)
    assert_same_layout(ours, peer)


def test_class_weights_of_nu_svc_multiply_the_rows_weights(rows):
    X, y, weight = rows
    label = targets("NuSVC", y)
    by_class = NuSVC(nu=0.3, class_weight={0: 2.0, 1: 0.8}, gamma=0.3, tol=1e-8).fit(X, label, sample_weight=weight)
    by_row = NuSVC(nu=0.3, gamma=0.3, tol=1e-8).fit(X, label, sample_weight=weight * np.where(label == 0, 2.0, 0.8))
    np.testing.assert_allclose(by_class.decision_function(X), by_row.decision_function(X), atol=1e-7)
    unequal = y > np.quantile(y, 0.8)
    with pytest.raises(ValueError, match=r"nu=0.6 is infeasible: classes False and True allow 0 < nu <= 0.4,"):
        NuSVC(nu=0.6).fit(X, unequal)
    assert NuSVC(nu=0.6, class_weight="balanced").fit(X, unequal).status_ == "converged"


def test_class_weights_that_make_nu_infeasible_multiply_the_C_that_it_comes_to(rows):
    X, y, _ = rows
    label = targets("NuSVC", y)
    plain = NuSVC(nu=0.5, gamma=0.3, tol=1e-8).fit(X, label)
    with pytest.warns(UserWarning, match="nu=0.5 is infeasible with this class_weight") as caught:
        ours = NuSVC(nu=0.5, gamma=0.3, tol=1e-8, class_weight={0: 50.0}).fit(X, label)
    assert caught[0].filename == __file__
    other = SVC(C=plain.facts_[0]["C"], gamma=0.3, tol=1e-8, class_weight={0: 50.0}).fit(X, label)
    np.testing.assert_allclose(ours.decision_function(X), other.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("kernel", ["rbf", "precomputed", "callable"])
@pytest.mark.parametrize("name", NAMES)
def test_a_weight_of_zero_removes_a_row_and_of_two_doubles_it(name, kernel, rows):
    X, y, _ = rows
    y = targets(name, y, 3)
    count = np.arange(70) % 3
    parameters = {**FORMULATION[name], **({"nu": 0.3} if "nu" in FORMULATION[name] else {})}
    parameters |= {"kernel": squared} if kernel == "callable" else {"kernel": kernel}
    again = np.repeat(np.arange(70), count)
    train, removed, new = (X, X[again], X) if kernel != "precomputed" else (
        rbf_kernel(X), rbf_kernel(X[again]), rbf_kernel(X))  # fmt: skip
    ours = getattr(widemargin, name)(tol=1e-9, **parameters).fit(train, y, sample_weight=count)
    other = getattr(widemargin, name)(tol=1e-9, **parameters).fit(removed, y[again])
    expected = outputs(other, new[:, again] if kernel == "precomputed" else new)
    np.testing.assert_allclose(outputs(ours, new), expected, atol=1e-6)
    assert not np.isin(ours.support_, np.flatnonzero(count == 0)).any()
    negative = getattr(widemargin, name)(tol=1e-9, **parameters).fit(train, y, sample_weight=np.where(count, count, -1))
    np.testing.assert_array_equal(outputs(negative, new), outputs(ours, new))


@pytest.mark.parametrize("model", [SVC(), NuSVC(nu=0.3), SVC(probability="libsvm", random_state=0)])
def test_a_class_without_weight_is_never_predicted(model, rows):
    X, y, _ = rows
    label = np.array(["a", "b", "c"])[targets("SVC", y, 3)]
    fitted = model.fit(X, label, sample_weight=label != "b")
    assert fitted.classes_.tolist() == ["a", "b", "c"]
    assert set(fitted.predict(X)) == {"a", "c"}
    assert fitted.n_support_[1] == 0
    present = label != "b"
    alone = type(model)(gamma=fitted._gamma, **({"nu": 0.3} if isinstance(model, NuSVC) else {}))
    np.testing.assert_array_equal(alone.fit(X[present], label[present]).predict(X), fitted.predict(X))


@pytest.mark.parametrize("container", [np.asarray, csr_array])
def test_gamma_scale_counts_rows_by_weight_and_is_scikit_learns_without_weights(container, rows):
    X, y, _ = rows
    for gamma in ("scale", "auto", 0.7, 0.0):
        ours, peer = SVR(gamma=gamma).fit(container(X), y), sklearn.svm.SVR(gamma=gamma).fit(container(X), y)
        assert ours._gamma == pytest.approx(peer._gamma, rel=1e-12)
    count = np.arange(70) % 3
    weighted = SVR().fit(container(X), y, sample_weight=count)
    assert weighted._gamma == pytest.approx(1 / (5 * np.repeat(X, count, axis=0).var()), rel=1e-12)
    assert SVC(class_weight="balanced").fit(container(X), y > 0)._gamma == pytest.approx(1 / (5 * X.var()))
    assert SVR().fit(np.full((3, 2), 7.0), [1, 2, 3])._gamma == 1.0


@pytest.mark.parametrize("name", NAMES)
def test_models_of_sparse_rows_predict_dense_ones_and_the_other_way_round(name, rows):
    X, y, _ = rows
    y = targets(name, y, 3)
    parameters = {"tol": 1e-8, "gamma": 0.2, **({"nu": 0.3} if name.startswith("Nu") else {})}
    of_dense = getattr(widemargin, name)(**parameters).fit(X, y)
    of_sparse = getattr(widemargin, name)(**parameters).fit(csr_matrix(X), y)
    for model in (of_dense, of_sparse):
        np.testing.assert_allclose(outputs(model, X), outputs(model, csr_array(X)), atol=1e-12)
    np.testing.assert_allclose(outputs(of_dense, X), outputs(of_sparse, X), atol=1e-6)


def test_single_precision_rows_stay_so_and_give_nearly_the_same_model(rows):
    X, y, _ = rows
    single, double = SVR(tol=1e-6).fit(X.astype(np.float32), y), SVR(tol=1e-6).fit(X, y)
    assert single.support_vectors_.dtype == np.float32
    assert SVR().fit(X.astype(np.float16), y).support_vectors_.dtype == np.float64
    np.testing.assert_allclose(single.predict(X.astype(np.float32)), double.predict(X), atol=1e-4)
    assert block_dtype(Kernel("rbf"), 1e-3, 5000) is np.float32
    assert block_dtype(Kernel("rbf"), 1e-5, 5000) is np.float64
    assert block_dtype(Kernel("rbf"), 1e-3, 2000) is np.float64
    assert block_dtype(Kernel("linear"), 1e-3, 5000) is np.float64


def test_prediction_in_parts_is_that_of_the_whole(rows, monkeypatch):
    X, y, _ = rows
    models = [
        SVC(gamma=0.3).fit(X, targets("SVC", y, 4)),
        SVC(gamma=0.3, kernel=squared).fit(X, targets("SVC", y, 4)),
        SVR(kernel=squared).fit(X, y),
        NuSVR().fit(csr_array(X), y),
    ]
    whole = [outputs(model, X) for model in models]
    monkeypatch.setattr(training_rows, "_NUMBERS_PER_BLOCK", 100)
    for model, expected in zip(models, whole, strict=True):
        np.testing.assert_allclose(outputs(model, X), expected, atol=1e-12)


@pytest.mark.parametrize("dtype", [float, np.float32, int, np.uint8, object])
def test_a_function_of_anything_is_a_kernel(dtype):
    words = ["gap", "gape", "grape", "drape", "dual", "duel", "fuel"]

    def common_letters(A, B):
        return np.array([[len(set(a) & set(b)) for b in B] for a in A], dtype=dtype)

    model = SVC(kernel=common_letters).fit(words, [0, 0, 0, 0, 1, 1, 1])
    assert model.predict(["grade", "fuels"]).tolist() == [0, 1]
    assert model.shape_fit_ == (7,)
    assert not hasattr(model, "n_features_in_")


def test_a_callable_kernel_is_computed_once_for_all_pairs_if_the_cache_holds_it(rows):
    X, y, _ = rows
    calls = []

    def recorded(A, B):
        calls.append((A.shape[0], B.shape[0]))
        return rbf_kernel(A, B, gamma=0.3)

    label = targets("SVC", y, 4)
    model = SVC(kernel=recorded).fit(X, label)
    assert calls == [(70, 70)]
    small = SVC(kernel=recorded, cache_size=0.01).fit(X, label)
    assert calls.count((70, 70)) == 1
    np.testing.assert_allclose(model.decision_function(X), small.decision_function(X), atol=1e-2)
    calls.clear()
    model.predict(X[:3])
    assert calls == [(3, 70)]  # against all training rows, as scikit-learn does


def test_errors_name_the_argument_and_the_way_out(rows):
    X, y, _ = rows
    label = targets("SVC", y)
    with pytest.raises(ValueError, match=r"y must hold at least 2 classes, got 1 class: \[3\]"):
        SVC().fit(X, np.full(70, 3))
    for name in NAMES:
        with pytest.raises(ValueError, match="all samples have zero or negative weights"):
            getattr(widemargin, name)().fit(X, label, sample_weight=np.zeros(70))
        with pytest.raises(ValueError, match=r"square matrix, .* got 70x5"):
            getattr(widemargin, name)(kernel="precomputed").fit(X, label)
        with pytest.raises(TypeError, match="Sparse precomputed kernels are not supported"):
            getattr(widemargin, name)(kernel="precomputed").fit(csr_array(X @ X.T), label)
        with pytest.raises(ValueError, match="callable kernel returned NaN"):
            getattr(widemargin, name)(kernel=lambda A, B: np.full((len(A), len(B)), np.nan)).fit(X, label)
        with pytest.raises(ValueError, match=r"callable kernel must return shape \(\d+, \d+\).*; got \(\d+, 5\)"):
            getattr(widemargin, name)(kernel=lambda A, B: A).fit(X, label)
        with pytest.raises(ValueError, match=r"X has 4 features, but .* is expecting 5 features"):
            getattr(widemargin, name)().fit(X, label).predict(X[:, :4])
    for name in CLASSIFIERS:
        with pytest.raises(ValueError, match="all samples with positive weights belong to the same class"):
            getattr(widemargin, name)().fit(X, label, sample_weight=label)
    with pytest.raises(ValueError, match=r"nu=0.5 is infeasible: .* 0 < nu <= 0.4"):
        NuSVC().fit(X, y > np.quantile(y, 0.8))
    with pytest.raises(ValueError, match="not finite: the variance of X, for gamma='scale', is not"):
        SVR().fit(1e300 * X, y)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"kernel": "gauss"}, "'kernel' parameter of SVC must be"),
        ({"C": 0.0}, "'C' parameter"),
        ({"gamma": -1.0}, "'gamma' parameter"),
        ({"tol": 0.0}, "'tol' parameter"),
        ({"solver": "newton"}, "'solver' parameter"),
        ({"working_set": 1}, "'working_set' parameter"),
        ({"cache_size": 0}, "'cache_size' parameter"),
        ({"probability": "yes"}, "'probability' parameter"),
        ({"max_iter": -2}, "'max_iter' parameter"),
    ],
)
def test_wrong_parameters_are_refused_by_name(change, match, rows):
    with pytest.raises(ValueError, match=match):
        SVC(**change).fit(rows[0], rows[1] > 0)


def test_one_class_predictions_on_the_boundary_are_inside(rows):
    X = rows[0]
    model = OneClassSVM(nu=0.3, gamma=0.2).fit(X)
    decisions = model.decision_function(X)
    assert (decisions == 0.0).sum() == len(model.support_) - model.facts_[0]["nBSV"]
    np.testing.assert_array_equal(model.predict(X), np.where(decisions >= 0, 1, -1))
    np.testing.assert_array_equal(model.score_samples(X) - model.offset_, decisions)
    assert np.mean(model.predict(X) == -1) <= 0.3
