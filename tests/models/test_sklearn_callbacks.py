"""scikit-learn's callbacks: the hooks are called, in order, with the progress of solvers, and can stop them."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from widemargin import SVC, SVR, LinearSVC, LinearSVCCV, MeasureSVC, OneClassSVM, OrdinalSVC, RankSVM, ROCAreaSVC
from widemargin.errors import ConvergenceWarning

pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks since 1.9")

X, Y = make_classification(300, 8, flip_y=0.1, random_state=0)
ESTIMATORS = [
    LinearSVC(random_state=0),
    LinearSVC(random_state=0, penalty="l1"),
    LinearSVCCV(random_state=0, cv=2),
    SVC(),
    SVC(basis=20, random_state=0),
    SVR(),
    OneClassSVM(),
    OrdinalSVC(),
    ROCAreaSVC(),
    MeasureSVC(),
]


class Recorder:
    """Records the hooks that are called, and asks to stop after some iterations."""

    max_propagation_depth = None  # passed on from searches and pipelines

    def __init__(self, most_iterations=None):
        self.events, self.gaps, self.fitted, self.most_iterations = [], [], [], most_iterations

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.events.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, metadata=None, fitted_estimator=None):
        self.events.append(f"end {context.task_name}")
        if context.task_name == "iteration":
            self.gaps.append(metadata["gap"])
            assert fitted_estimator is None
            return self.most_iterations is not None and len(self.gaps) >= self.most_iterations
        if context.task_name == "fit":
            self.fitted.append((type(estimator), np.shape(X), np.shape(y), fitted_estimator, metadata))
        return False


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_hooks_are_called_around_the_fit_and_its_iterations(estimator):
    recorder, model = Recorder(), clone(estimator)
    assert model.set_callbacks(recorder) is model
    model.fit(X, Y)
    assert recorder.events[:2] == ["setup", "begin fit"]
    assert recorder.events[-2:] == ["end fit", "teardown"]
    iterations = recorder.events[2:-2]
    assert iterations == ["begin iteration", "end iteration"] * (len(iterations) // 2)
    (kind, shape, _, fitted, metadata) = recorder.fitted[0]
    assert (kind, shape, metadata) == (type(model), X.shape, None)
    np.testing.assert_array_equal(fitted.predict(X), model.predict(X))
    assert not any(name.startswith("_callback") for name in vars(model))


def test_ranking_passes_its_queries_as_metadata():
    recorder, queries = Recorder(), np.repeat(np.arange(10), 30)
    RankSVM().set_callbacks(recorder).fit(X, Y, qid=queries)
    np.testing.assert_array_equal(recorder.fitted[0][-1]["qid"], queries)
    assert recorder.gaps


def test_models_do_not_depend_on_callbacks():
    plain = LinearSVC(random_state=0, solver="dcd").fit(X, Y)
    seen = LinearSVC(random_state=0, solver="dcd").set_callbacks(Recorder()).fit(X, Y)
    np.testing.assert_array_equal(plain.coef_, seen.coef_)


def test_a_hook_stops_the_solver():
    recorder = Recorder(most_iterations=2)
    model = LinearSVC(random_state=0, solver="dcd", tol=1e-12).set_callbacks(recorder)
    with pytest.warns(ConvergenceWarning, match="stopped by a callback"):
        model.fit(X, Y)
    assert len(recorder.gaps) == 2


def test_teardown_is_called_after_an_error_and_the_next_fit_works():
    recorder = Recorder()
    model = LinearSVC(random_state=0).set_callbacks(recorder)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(X, Y[:-1])
    assert recorder.events == ["setup", "begin fit", "teardown"]
    model.fit(X, Y)
    assert recorder.events[-1] == "teardown"


def test_callbacks_of_pipelines_and_searches_are_passed_on():
    recorder = Recorder()
    search = GridSearchCV(make_pipeline(StandardScaler(), SVC()), {"svc__C": [0.1, 1.0]}, cv=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # scikit-learn warns of estimators without callbacks
        search.set_callbacks(recorder).fit(X, Y)
    assert sum(kind is SVC for kind, *_ in recorder.fitted) == 5  # two values of C, two folds, and the last fit


def test_both_kinds_of_callbacks_are_called():
    recorder, seen = Recorder(), []
    LinearSVC(random_state=0, solver="dcd", callbacks=seen.append).set_callbacks(recorder).fit(X, Y)
    assert [progress.gap for progress in seen] == recorder.gaps
