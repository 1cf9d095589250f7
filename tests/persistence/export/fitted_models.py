"""Small fitted models of every kind, and rows to score that they have not seen."""

import warnings
from functools import cache

import numpy as np

import widemargin as wm

_random = np.random.default_rng(5)
X = (1.0 + _random.standard_normal((90, 4))).round(3)  # on one side of the origin, as one-class models need
_SCORES = (X - 1.0) @ [1.0, -2.0, 0.5, 0.0] + 0.5 * _random.standard_normal(90)
_RANKS = np.digitize(_SCORES, [-1.0, 1.0])
TARGETS = {
    "two": np.where(_SCORES > 0.0, 7, -3),
    "two numbers": np.where(_SCORES > 0.0, 2.0, -1.0),
    "yes or no": _SCORES > 0.0,
    "three": 2 * _RANKS + 1,
    "four words": np.array(["low", "mäßig", 'quite "high"\n', "top"])[np.digitize(_SCORES, [-1.0, 0.5, 2.0])],
    "words of objects": np.array(["no", "yes"], dtype=object)[(_SCORES > 0.0).astype(int)],
    "number": _SCORES.round(3),
    "none": None,
}
NEW = 1.0 + np.concatenate([_random.standard_normal((150, 4)), 3.0 * _random.standard_normal((50, 4))]).round(3)

_LINE = {"random_state": 0, "tol": 1e-3}
LINEAR = {
    "LinearSVC": (wm.LinearSVC(**_LINE), "two"),
    "LinearSVC, numbers": (wm.LinearSVC(**_LINE), "two numbers"),
    "LinearSVC, no intercept": (wm.LinearSVC(fit_intercept=False, **_LINE), "yes or no"),
    "LinearSVC, three": (wm.LinearSVC(**_LINE), "three"),
    "LinearSVC, words": (wm.LinearSVC(scaling="standard", **_LINE), "four words"),
    "LinearSVC, objects": (wm.LinearSVC(**_LINE), "words of objects"),
    "LinearSVC, crammer": (wm.LinearSVC(multi_class="crammer_singer", **_LINE), "three"),
    "LinearSVC, logistic": (wm.LinearSVC(loss="log_loss", **_LINE), "two"),
    "LinearSVC, logistic, four": (wm.LinearSVC(loss="log_loss", **_LINE), "four words"),
    "LinearSVR": (wm.LinearSVR(**_LINE), "number"),
    "LinearOneClassSVM": (wm.LinearOneClassSVM(nu=0.3), "none"),
    "RankSVM": (wm.RankSVM(scaling="standard"), "number"),
    "OrdinalSVC": (wm.OrdinalSVC(), "four words"),
    "OrdinalSVC, two": (wm.OrdinalSVC(), "two"),
    "ROCAreaSVC": (wm.ROCAreaSVC(), "two"),
    "MeasureSVC": (wm.MeasureSVC(), "words of objects"),
    "SVR, linear": (wm.SVR(kernel="linear"), "number"),
}
_BASIS = {"kernel": "rbf", "basis": 15}
KERNEL = {
    "SVC": (wm.SVC(C=3.0), "two"),
    "SVC, three": (wm.SVC(), "three"),
    "SVC, ovo": (wm.SVC(decision_function_shape="ovo"), "four words"),
    "SVC, ties": (wm.SVC(break_ties=True, gamma=5.0), "four words"),
    "SVC, poly": (wm.SVC(kernel="poly", coef0=1.0), "three"),
    "SVC, poly 4": (wm.SVC(kernel="poly", degree=4, gamma=0.2), "two"),
    "SVC, poly 0": (wm.SVC(kernel="poly", degree=0), "two"),
    "SVC, sigmoid": (wm.SVC(kernel="sigmoid", gamma=0.1, coef0=-0.5), "three"),
    "SVC, linear": (wm.SVC(kernel="linear"), "four words"),
    "SVC, basis": (wm.SVC(basis=15, random_state=0), "three"),
    "NuSVC": (wm.NuSVC(nu=0.2), "three"),
    "SVC, sigmoids of two": (wm.SVC(calibration="sigmoid", random_state=0), "words of objects"),
    "SVC, sigmoids": (wm.SVC(calibration="sigmoid", random_state=0), "four words"),
    "SVC, isotonic of two": (wm.SVC(calibration="isotonic", random_state=0), "two"),
    "SVC, isotonic": (wm.SVC(calibration="isotonic", random_state=0), "three"),
    "SVC, libsvm": (wm.SVC(probability="libsvm", random_state=0), "three"),
    "SVC, by probability": (wm.SVC(calibration="sigmoid", predict_by="probability", random_state=0), "three"),
    "NuSVC, sigmoids": (wm.NuSVC(nu=0.2, calibration="sigmoid", random_state=0), "three"),
    "SVC, basis, isotonic": (wm.SVC(basis=15, calibration="isotonic", random_state=0), "three"),
    "SVR": (wm.SVR(), "number"),
    "SVR, poly": (wm.SVR(kernel="poly", gamma=0.1, coef0=0.3), "number"),
    "SVR, nothing to learn": (wm.SVR(epsilon=100.0), "number"),
    "SVR, basis": (wm.SVR(basis=15, random_state=0), "number"),
    "NuSVR": (wm.NuSVR(kernel="sigmoid", gamma=0.1), "number"),
    "OneClassSVM": (wm.OneClassSVM(nu=0.3), "none"),
    "OneClassSVM, linear": (wm.OneClassSVM(nu=0.3, kernel="linear"), "none"),
    "OneClassSVM, poly": (wm.OneClassSVM(nu=0.3, kernel="poly", degree=2, coef0=0.5), "none"),
    "OneClassSVM, marks": (wm.OneClassSVM(nu=0.3, probability=True), "none"),
    "OneClassSVM, basis": (wm.OneClassSVM(nu=0.3, basis=15, random_state=0), "none"),
    "RankSVM, rbf": (wm.RankSVM(**_BASIS), "number"),
    "OrdinalSVC, rbf": (wm.OrdinalSVC(**_BASIS), "three"),
    "ROCAreaSVC, poly": (wm.ROCAreaSVC(kernel="poly", basis=15), "two"),
    "MeasureSVC, rbf": (wm.MeasureSVC(**_BASIS), "two"),
}
MODELS = LINEAR | KERNEL


@cache
def fitted(name):
    """Return the fitted model of that name, which tests share and must not change."""
    model, target = MODELS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of few rows, and fits that stop early
        return model.fit(X, TARGETS[target])
