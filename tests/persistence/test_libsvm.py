"""LIBSVM predicts from our text as we do, and we from theirs as it does."""

import itertools
from copy import copy
from ctypes import c_double

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from libsvm import svm
from libsvm.svmutil import svm_load_model, svm_save_model, svm_train
from scipy.sparse import csr_array, csr_matrix, issparse

from widemargin import LinearSVC
from widemargin.models.kernel.nu_svc import NuSVC
from widemargin.models.kernel.nu_svr import NuSVR
from widemargin.models.kernel.one_class import OneClassSVM
from widemargin.models.kernel.svc import SVC
from widemargin.models.kernel.svr import SVR
from widemargin.persistence.model_file import load_model, save_model

KERNELS = {"linear": 0, "poly": 1, "rbf": 2, "sigmoid": 3, "precomputed": 4}
CLASSIFIERS = {SVC: 0, NuSVC: 1}
OTHERS = {OneClassSVM: 2, SVR: 3, NuSVR: 4}
LABELS = {
    "1 -1": [1, -1],
    "3 7": [3, 7],
    "three": [3, 1, 2],
    "three, sorted": [-2, 0, 5],
    "four": [2, 7, -3, 5],
}
N_ROWS = 60
RELATIVE = 1e-12


def rows_of(seed):
    random = np.random.default_rng(seed)
    rows = random.normal(0.7, 1.0, size=(N_ROWS, 4))
    rows[random.random(rows.shape) < 0.25] = 0.0
    return rows


@pytest.fixture(scope="module")
def X():
    """Rows to train on."""
    return rows_of(21)


@pytest.fixture(scope="module")
def Z():
    """Rows to predict."""
    return rows_of(23)


def labelled(X, labels):
    """Return noisy classes of rows, first a row of each label in turn: LIBSVM orders labels by their first rows."""
    random = np.random.default_rng(37)
    scores = X @ random.normal(size=(4, len(labels))) + 0.2 * random.normal(size=(len(X), len(labels)))
    y = np.array(labels)[(scores - scores.mean(axis=0)).argmax(axis=1)]
    y[: len(labels)] = labels
    return y


def target_of(X):
    return np.sin(X @ [1.0, 2.0, -1.0, 0.5]) + X[:, 0]


def gram(A, B):
    return (1.0 + A @ B.T) ** 2


def nodes(rows, is_precomputed):
    """Return rows as LIBSVM takes them: K with the number of the row before it, or the rows themselves."""
    return [{0: i + 1, **dict(enumerate(row, 1))} if is_precomputed else list(row) for i, row in enumerate(rows)]


def theirs_of(y, X, path, options, kernel="rbf"):
    """Train and save LIBSVM's model, and return what it loads from the file."""
    is_precomputed = kernel == "precomputed"
    rows = nodes(gram(X, X) if is_precomputed else X, is_precomputed)
    trained = svm_train(y.astype(float).tolist(), rows, f"-q -t {KERNELS[kernel]} -r 0.3 {options}")
    svm_save_model(str(path), trained)
    return svm_load_model(str(path))


def predicted_by_libsvm(model, Z, kernel, X, *, probability=False):
    """Return LIBSVM's predictions, and its decision values or probabilities.

    Not by way of its svm_predict, which reserves one decision value for nu-SVC however many there are.
    """
    is_precomputed = kernel == "precomputed"
    n_classes = model.get_nr_class()
    values = (c_double * (n_classes if probability else n_classes * (n_classes - 1) // 2))()
    predict = svm.libsvm.svm_predict_probability if probability else svm.libsvm.svm_predict_values
    labels, table = [], []
    for row in nodes(gram(Z, X) if is_precomputed else Z, is_precomputed):
        node, _ = svm.gen_svm_nodearray(row, isKernel=is_precomputed)
        labels.append(predict(model, node, values))
        table.append(values[:])
    return np.array(labels), np.array(table)


def rows_for(model, Z, X):
    """Return what a model of ours, trained on X, predicts from for the rows Z."""
    return gram(Z, X)[:, : model.n_features_in_] if model.kernel == "precomputed" else Z


def decisions_in_order(theirs, values):
    """Return LIBSVM's decision values for sorted labels: the second of two positive, the first of each pair else."""
    labels = theirs.get_labels()
    found = {}
    for k, (first, second) in enumerate(itertools.combinations(labels, 2)):
        found[first, second], found[second, first] = values[:, k], -values[:, k]
    if len(labels) == 2:
        return found[max(labels), min(labels)]
    return np.stack([found[pair] for pair in itertools.combinations(sorted(labels), 2)], axis=1)


def assert_close(mine, theirs, model):
    """Compare decisions, relative to the terms that they are sums of."""
    terms = np.abs(model.dual_coef_).sum() + np.abs(model.intercept_).max()
    np.testing.assert_allclose(mine, theirs, rtol=RELATIVE, atol=RELATIVE * terms)


# Their text


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("estimator", CLASSIFIERS)
def test_we_predict_from_their_classifiers_as_libsvm_does(estimator, kernel, labels, X, Z, tmp_path):
    theirs = theirs_of(labelled(X, labels), X, tmp_path / "model", f"-s {CLASSIFIERS[estimator]} -n 0.3", kernel)
    assert theirs.get_labels() == labels
    loaded = load_model(tmp_path / "model").set_params(decision_function_shape="ovo")
    assert type(loaded) is estimator
    assert loaded.kernel == kernel
    assert loaded.classes_.tolist() == sorted(labels)
    expected, values = predicted_by_libsvm(theirs, Z, kernel, X)
    decisions = loaded.decision_function(rows_for(loaded, Z, X))
    assert_close(decisions, decisions_in_order(theirs, values), loaded)
    np.testing.assert_array_equal(loaded.predict(rows_for(loaded, Z, X)), expected)


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("estimator", CLASSIFIERS)
def test_we_give_the_probabilities_of_their_classifiers(estimator, kernel, labels, X, Z, tmp_path):
    theirs = theirs_of(labelled(X, labels), X, tmp_path / "model", f"-s {CLASSIFIERS[estimator]} -n 0.3 -b 1", kernel)
    loaded = load_model(tmp_path / "model")
    assert loaded.probability == "libsvm"
    _, expected = predicted_by_libsvm(theirs, Z, kernel, X, probability="libsvm")
    rows, order = rows_for(loaded, Z, X), np.argsort(theirs.get_labels())
    np.testing.assert_allclose(loaded.predict_proba(rows), expected[:, order], atol=1e-9)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("estimator", OTHERS)
def test_we_predict_from_their_other_models_as_libsvm_does(estimator, kernel, X, Z, tmp_path):
    theirs = theirs_of(target_of(X), X, tmp_path / "model", f"-s {OTHERS[estimator]} -n 0.4 -b 1", kernel)
    loaded = load_model(tmp_path / "model")
    assert type(loaded) is estimator
    expected, values = predicted_by_libsvm(theirs, Z, kernel, X)
    rows = rows_for(loaded, Z, X)
    if estimator is not OneClassSVM:
        assert_close(loaded.predict(rows), expected, loaded)
        assert loaded.laplace_scale_ == theirs.get_svr_probability()
        return
    assert_close(loaded.decision_function(rows), values.ravel(), loaded)
    np.testing.assert_array_equal(loaded.predict(rows), expected)
    _, probabilities = predicted_by_libsvm(theirs, Z, kernel, X, probability="libsvm")
    np.testing.assert_allclose(loaded.predict_proba(rows), probabilities, atol=1e-9)


def test_new_rows_may_be_sparse_or_dense(X, tmp_path):
    theirs_of(labelled(X, [3, 1, 2]), X, tmp_path / "model", "-s 0")
    loaded = load_model(tmp_path / "model")
    assert isinstance(loaded.support_vectors_, csr_array)
    np.testing.assert_array_equal(loaded.predict(csr_matrix(X)), loaded.predict(X))


def test_what_their_text_does_not_say_is_absent(X, tmp_path):
    theirs_of(labelled(X, [1, 2]), X, tmp_path / "model", "-s 0 -c 7")
    loaded = load_model(tmp_path / "model")
    fitted = {"classes_", "support_vectors_", "n_support_", "dual_coef_", "intercept_", "probA_", "probB_"}
    assert set(vars(loaded)) - set(loaded.get_params()) == fitted | {"n_features_in_", "_gamma"}
    assert (loaded.C, loaded.gamma, loaded.probability) == (1.0, 0.25, None)


@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
@pytest.mark.parametrize("labels", [[1, -1], [3, 1, 2]], ids=str)
def test_their_model_can_be_saved_as_ours_and_as_theirs_again(labels, kernel, X, Z, tmp_path):
    theirs_of(labelled(X, labels), X, tmp_path / "model", "-s 0 -b 1", kernel)
    loaded = load_model(tmp_path / "model")
    rows = rows_for(loaded, Z, X)
    for format in ("widemargin", "libsvm"):  # noqa: A001
        save_model(loaded, tmp_path / "again", format=format)
        again = load_model(tmp_path / "again")
        np.testing.assert_array_equal(again.predict_proba(rows), loaded.predict_proba(rows))
        np.testing.assert_array_equal(again.decision_function(rows), loaded.decision_function(rows))
        np.testing.assert_array_equal(again.predict(rows), loaded.predict(rows))


def test_a_model_from_their_text_can_be_fitted_again(X, tmp_path):
    y = labelled(X, [3, 1, 2])
    theirs_of(y, X, tmp_path / "model", "-s 0")
    assert load_model(tmp_path / "model").fit(X, y).status_ == "converged"


@pytest.mark.parametrize("format", ["widemargin", "libsvm"])
def test_a_model_without_support_vectors_predicts_its_constant(format, X, tmp_path):  # noqa: A002
    theirs_of(target_of(X), X, tmp_path / "model", "-s 3 -p 100")
    loaded = load_model(tmp_path / "model")
    assert loaded.n_support_.tolist() == [0]
    assert not hasattr(loaded, "n_features_in_")
    np.testing.assert_array_equal(loaded.predict(X), np.full(N_ROWS, loaded.intercept_[0]))
    save_model(loaded, tmp_path / "again", format=format)
    np.testing.assert_array_equal(load_model(tmp_path / "again").predict(X), loaded.predict(X))


# Our text


@pytest.fixture(scope="module")
def fitted(X):
    """Return a function that fits a model once: of a class, kernel and labels, to rows of a kind."""
    models = {}

    def fit(estimator, kernel, labels=(), container=np.asarray, probability=False):
        key = (estimator, kernel, tuple(labels), container, probability)
        if key not in models:
            settings = {"nu": 0.3} if estimator is NuSVC else {}
            if probability:
                settings |= {"probability": "libsvm", "random_state": 0}
            model = estimator(kernel=kernel, coef0=0.3, gamma=0.25, **settings)
            y = labelled(X, labels) if labels else target_of(X)
            models[key] = model.fit(gram(X, X) if kernel == "precomputed" else container(X), y)
        return models[key]

    return fit


@pytest.mark.filterwarnings("ignore::widemargin.errors.ConvergenceWarning")
@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("estimator", CLASSIFIERS)
def test_libsvm_predicts_from_our_classifiers_as_we_do(estimator, kernel, labels, X, Z, fitted, tmp_path):
    model = fitted(estimator, kernel, labels)
    save_model(model, tmp_path / "model", format="libsvm")
    theirs = svm_load_model(str(tmp_path / "model"))
    predictions, values = predicted_by_libsvm(theirs, Z, kernel, X)
    rows = rows_for(model, Z, X)
    assert theirs.get_labels() == labels
    by_file = copy(model)
    by_file._class_order = np.array([sorted(labels).index(label) for label in labels])  # which of equal votes wins
    np.testing.assert_array_equal(predictions, by_file.predict(rows))
    shape = model.decision_function_shape
    decisions = model.set_params(decision_function_shape="ovo").decision_function(rows)
    model.set_params(decision_function_shape=shape)
    assert_close(decisions_in_order(theirs, values), decisions, model)


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("estimator", CLASSIFIERS)
def test_libsvm_gives_our_probabilities(estimator, labels, X, Z, fitted, tmp_path):
    model = fitted(estimator, "rbf", labels, probability="libsvm")
    save_model(model, tmp_path / "model", format="libsvm")
    _, values = predicted_by_libsvm(svm_load_model(str(tmp_path / "model")), Z, "rbf", X, probability="libsvm")
    expected = model.predict_proba(Z)[:, [sorted(labels).index(label) for label in labels]]
    np.testing.assert_allclose(values, expected, atol=0.005 if len(labels) > 2 else 1e-9)  # the iteration's tolerance


@pytest.mark.parametrize("labels", [*LABELS.values(), [-1, 1], [7, 3], [2, -1, 1]], ids=str)
def test_labels_are_written_in_the_order_of_svm_train(labels, X, Z, tmp_path):
    y = labelled(X, labels)
    theirs = theirs_of(y, X, tmp_path / "theirs", "-s 0 -b 1 -g 0.25")
    model = SVC(gamma=0.25, probability="libsvm", random_state=0).fit(X, y)
    for saved in (model, through(model, "widemargin", tmp_path), through(model, "libsvm", tmp_path)):
        save_model(saved, tmp_path / "model", format="libsvm")
        mine = svm_load_model(str(tmp_path / "model"))
        assert mine.get_labels() == theirs.get_labels()
        (_, mine), (_, expected) = (predicted_by_libsvm(each, Z, "rbf", X, probability=True) for each in (mine, theirs))
        assert np.corrcoef(mine[:, 0], expected[:, 0])[0, 1] > 0.9  # folds are drawn otherwise; columns swapped: < 0
    again = (tmp_path / "model").read_bytes()
    save_model(load_model(tmp_path / "model"), tmp_path / "again", format="libsvm")
    assert (tmp_path / "again").read_bytes() == again


def through(model, form, folder):
    """Return a model that was saved and loaded."""
    save_model(model, folder / "saved", format=form)
    return load_model(folder / "saved")


def test_equal_votes_go_to_the_smallest_label_also_after_the_trip(tmp_path):
    angles = np.deg2rad([0.0, 120.0, 240.0])
    X = np.column_stack([np.cos(angles), np.sin(angles)]).repeat(2, axis=0)
    model = SVC(kernel="linear").fit(X, [3, 3, 1, 1, 2, 2])
    model.dual_coef_, model.intercept_ = np.zeros_like(model.dual_coef_), np.array([1.0, -1.0, 1.0])  # a cycle of votes
    assert model.predict(X).tolist() == [1] * 6
    assert through(model, "libsvm", tmp_path).predict(X).tolist() == [1] * 6
    theirs = svm_load_model(str(tmp_path / "saved"))
    assert predicted_by_libsvm(theirs, X, "linear", X)[0].tolist() == [3] * 6


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("estimator", OTHERS)
def test_libsvm_predicts_from_our_other_models_as_we_do(estimator, kernel, X, Z, fitted, tmp_path):
    model = fitted(estimator, kernel, probability="libsvm")
    save_model(model, tmp_path / "model", format="libsvm")
    theirs = svm_load_model(str(tmp_path / "model"))
    predictions, values = predicted_by_libsvm(theirs, Z, kernel, X)
    rows = rows_for(model, Z, X)
    if estimator is not OneClassSVM:
        assert_close(predictions, model.predict(rows), model)
        assert theirs.get_svr_probability() == model.laplace_scale_
        return
    np.testing.assert_array_equal(predictions, model.predict(rows))
    assert_close(values.ravel(), model.decision_function(rows), model)
    _, values = predicted_by_libsvm(theirs, Z, kernel, X, probability="libsvm")
    np.testing.assert_allclose(values, model.predict_proba(rows), atol=1e-9)


def single(X):
    return X.astype(np.float32)


def single_sparse(X):
    return csr_matrix(X.astype(np.float32))


def last_feature_zero(X):
    return np.column_stack([X, np.zeros(len(X))])


def last_feature_zero_sparse(X):
    return csr_array(last_feature_zero(X))


def mostly_zero(X):
    return np.column_stack([X, np.zeros((len(X), 200))])


CONTAINERS = [np.asarray, csr_array, csr_matrix, single, single_sparse, last_feature_zero, last_feature_zero_sparse,
              mostly_zero]  # fmt: skip


def outcome(model, X):
    return model.predict(X) if isinstance(model, SVR | NuSVR) else model.decision_function(X)


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize(
    ("estimator", "labels"),
    [(SVC, [1, -1]), (SVC, [3, 1, 2]), (NuSVC, [3, 1, 2]), (SVR, []), (NuSVR, []), (OneClassSVM, [])],
)
def test_our_text_comes_back_equal_to_the_bit(estimator, labels, container, X, Z, fitted, tmp_path):
    model = fitted(estimator, "rbf", labels, container)
    save_model(model, tmp_path / "model", format="libsvm")
    loaded = load_model(tmp_path / "model")
    rows = container(Z)
    np.testing.assert_array_equal(outcome(loaded, rows), outcome(model, rows))
    np.testing.assert_array_equal(outcome(loaded, csr_array(rows)), outcome(model, csr_array(rows)))
    vectors = loaded.support_vectors_
    assert issparse(vectors) == issparse(model.support_vectors_)
    assert (vectors.dtype, vectors.shape) == (model.support_vectors_.dtype, model.support_vectors_.shape)
    assert (
        np.asarray(vectors.toarray() if issparse(vectors) else vectors).tobytes()
        == np.asarray(model.support_vectors_.toarray() if issparse(vectors) else model.support_vectors_).tobytes()
    )


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("labels", [[1, -1], [2, 7, -3, 5]], ids=str)
def test_every_kernel_comes_back_equal_to_the_bit(labels, kernel, X, Z, fitted, tmp_path):
    model = fitted(SVC, kernel, labels)
    save_model(model, tmp_path / "model", format="libsvm")
    loaded = load_model(tmp_path / "model")
    rows = rows_for(model, Z, X)
    np.testing.assert_array_equal(loaded.decision_function(rows), model.decision_function(rows))
    assert loaded.n_features_in_ == model.n_features_in_


@pytest.mark.parametrize("labels", [[1, -1], [3, 1, 2]], ids=str)
def test_probabilities_come_back_equal_to_the_bit(labels, X, Z, fitted, tmp_path):
    model = fitted(SVC, "rbf", labels, probability="libsvm")
    save_model(model, tmp_path / "model", format="libsvm")
    np.testing.assert_array_equal(load_model(tmp_path / "model").predict_proba(Z), model.predict_proba(Z))


@pytest.mark.parametrize("labels", [[1, -1], [3, 1, 2]], ids=str)
def test_calibrated_sigmoids_are_written_and_isotonic_regressions_refused(labels, X, Z, tmp_path):
    y = np.resize(labels, len(X))
    model = SVC(gamma=0.25, calibration="sigmoid").fit(X, y)
    save_model(model, tmp_path / "model", format="libsvm")
    loaded = load_model(tmp_path / "model")
    assert loaded.probability == "libsvm"
    np.testing.assert_array_equal(loaded.predict_proba(Z), model.predict_proba(Z))
    _, values = predicted_by_libsvm(svm_load_model(str(tmp_path / "model")), Z, "rbf", X, probability=True)
    order = [sorted(labels).index(label) for label in labels]
    np.testing.assert_allclose(values, model.predict_proba(Z)[:, order], atol=0.005 if len(labels) > 2 else 1e-9)
    with pytest.raises(TypeError, match="no place for probabilities by isotonic regression"):
        save_model(model.set_params(calibration="isotonic").fit(X, y), tmp_path / "model", format="libsvm")


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), n_classes=st.integers(2, 4), is_sparse=st.booleans())
def test_any_finite_numbers_come_back_to_the_bit(data, n_classes, is_sparse, tmp_path):
    def numbers(*shape):
        values = st.floats(allow_nan=False, allow_infinity=False)
        n = int(np.prod(shape))
        return np.array(data.draw(st.lists(values, min_size=n, max_size=n))).reshape(shape)

    n_vectors, n_pairs = 2 * n_classes, n_classes * (n_classes - 1) // 2
    model = SVC(kernel="rbf", gamma=0.5)
    model._gamma, model.n_features_in_, model.classes_ = 0.5, 3, np.arange(n_classes)
    model.n_support_ = np.full(n_classes, 2, dtype=np.int32)
    model.probA_, model.probB_ = numbers(n_pairs), numbers(n_pairs)
    model.intercept_, model.dual_coef_ = numbers(n_pairs), numbers(n_classes - 1, n_vectors)
    model.support_vectors_ = numbers(n_vectors, 3)
    if is_sparse:
        model.support_vectors_ = csr_array(model.support_vectors_)
    save_model(model, tmp_path / "model", format="libsvm")
    loaded = load_model(tmp_path / "model")
    for name in ("probA_", "probB_", "intercept_"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(model, name))
    vectors = [each.support_vectors_.toarray() if is_sparse else each.support_vectors_ for each in (loaded, model)]
    assert vectors[0].tobytes() == vectors[1].tobytes()
    coefficients = loaded.dual_coef_.toarray() if is_sparse else loaded.dual_coef_
    np.testing.assert_array_equal(coefficients, model.dual_coef_)


def test_whole_floats_are_labels_for_libsvm(X, tmp_path):
    model = SVC().fit(X, labelled(X, [-1.0, 1.0]))
    save_model(model, tmp_path / "model", format="libsvm")
    assert "label 1 -1" in (tmp_path / "model").read_text().splitlines()


@pytest.mark.parametrize("labels", [["a", "b"], [False, True], [0, 2**31]], ids=str)
def test_labels_that_libsvm_cannot_hold_are_refused(labels, X, tmp_path):
    model = SVC().fit(X, labelled(X, labels))
    with pytest.raises(TypeError, match="LIBSVM's labels are 32-bit integers, got classes_"):
        save_model(model, tmp_path / "model", format="libsvm")
    assert not list(tmp_path.iterdir())


def test_each_text_has_a_place_for_its_own_models_only(X, tmp_path):
    y = labelled(X, [1, 2])
    with pytest.raises(TypeError, match="format='liblinear' has no place for SVC; use format='libsvm'"):
        save_model(SVC().fit(X, y), tmp_path / "model", format="liblinear")
    with pytest.raises(TypeError, match="format='libsvm' has no place for LinearSVC; use format='liblinear'"):
        save_model(LinearSVC(random_state=0).fit(X, y), tmp_path / "model", format="libsvm")
