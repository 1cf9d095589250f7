"""Save one model of each kind and format, with predictions to compare with: run with the version that is to be kept.

python make.py FOLDER
"""

import sys
import warnings
from pathlib import Path

import numpy as np

import widemargin

random = np.random.default_rng(0)
X = random.standard_normal((30, 4)).round(3)
scores = X @ [1.0, -2.0, 0.5, 0.0] + 0.3 * random.standard_normal(30)
TARGETS = {
    "two": np.where(scores > 0.0, 7, -3),
    "three": np.digitize(scores, [-1.0, 1.0]) + 1,
    "text": np.array(["low", "middle", "high"])[np.digitize(scores, [-1.0, 1.0])],
    "number": scores.round(3),
}
MODELS = {
    "LinearSVC": (widemargin.LinearSVC(), "two", ("widemargin", "liblinear", "svmlight")),
    "LinearSVC-three": (widemargin.LinearSVC(), "three", ("widemargin", "liblinear")),
    "LinearSVC-text": (widemargin.LinearSVC(loss="hinge", penalize_intercept=False), "text", ("widemargin",)),
    "LinearSVC-crammer": (widemargin.LinearSVC(multi_class="crammer_singer"), "three", ("widemargin", "liblinear")),
    "LinearSVR": (widemargin.LinearSVR(), "number", ("widemargin", "liblinear", "svmlight")),
    "SVC": (widemargin.SVC(), "two", ("widemargin", "libsvm")),
    "SVC-three": (widemargin.SVC(kernel="poly", degree=2, coef0=1.0), "three", ("widemargin", "libsvm")),
    "SVC-text": (widemargin.SVC(kernel="sigmoid", gamma=0.1), "text", ("widemargin",)),
    "NuSVC": (widemargin.NuSVC(nu=0.2), "two", ("widemargin", "libsvm")),
    "SVR": (widemargin.SVR(kernel="linear"), "number", ("widemargin", "libsvm")),
    "NuSVR": (widemargin.NuSVR(), "number", ("widemargin", "libsvm")),
    "OneClassSVM": (widemargin.OneClassSVM(nu=0.3), None, ("widemargin", "libsvm")),
    "LinearOneClassSVM": (widemargin.LinearOneClassSVM(nu=0.3), None, ("widemargin", "liblinear")),
    "RankSVM": (widemargin.RankSVM(), "number", ("widemargin", "svmlight")),
    "OrdinalSVC": (widemargin.OrdinalSVC(), "three", ("widemargin",)),
    "ROCAreaSVC": (widemargin.ROCAreaSVC(), "two", ("widemargin", "svmlight")),
    "MeasureSVC": (widemargin.MeasureSVC(), "two", ("widemargin", "svmlight")),
}


def main(folder):
    folder.mkdir(exist_ok=True)
    expected = {"X": X}
    for name, (model, target, formats) in MODELS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, None if target is None else TARGETS[target])
        for kind in formats:
            path = folder / f"{name}.{kind}"
            widemargin.save_model(model, path, format=kind)
            loaded = widemargin.load_model(path)
            expected[f"{path.name} predict"] = loaded.predict(X)
            if hasattr(loaded, "decision_function"):
                expected[f"{path.name} decision_function"] = loaded.decision_function(X)
    np.savez_compressed(folder / "expected.npz", **expected)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
