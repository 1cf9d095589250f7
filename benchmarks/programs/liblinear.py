"""train and predict of LIBLINEAR, against liblinear-train and liblinear-predict of Debian's liblinear-tools.

The objective is computed here, from the weights in the model files of both: train prints it for some types only.
"""

import numpy as np

from benchmarks.programs.running import Case, Figure, Section, data_file, here, original
from benchmarks.programs.running import found as numbers
from widemargin import load_model, read_svmlight


def _half_square(w):
    return 0.5 * float(w @ w)


def _sum_of_sizes(w):
    return float(np.abs(w).sum())


def _hinge(m):
    return np.maximum(0.0, 1.0 - m)


def _squared_hinge(m):
    return _hinge(m) ** 2


def _log_loss(m):
    return np.logaddexp(0.0, -m)


_CLASSIFIERS = {  # by -s: penalty of weights, loss of margins
    0: (_half_square, _log_loss), 1: (_half_square, _squared_hinge), 2: (_half_square, _squared_hinge),
    3: (_half_square, _hinge), 5: (_sum_of_sizes, _squared_hinge), 6: (_sum_of_sizes, _log_loss),
    7: (_half_square, _log_loss),
}  # fmt: skip
_EPSILON = 0.1  # default of -p
_REGRESSORS = {11: 2, 12: 2, 13: 1}  # by -s: the power of what exceeds the tube


def _objective(path, data, options):
    """Return LIBLINEAR's objective of the model in a file, summed over classes, and its weights that are not zero."""
    words = dict(zip(options.split()[::2], options.split()[1::2], strict=True))
    kind, C, bias = int(words["-s"]), float(words.get("-c", 1.0)), float(words.get("-B", -1.0))
    model = load_model(path)
    X, y, _ = read_svmlight(data, n_features=model.n_features_in_)
    W, b = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)
    scores = X @ W.T + b
    if bias > 0.0:
        W = np.column_stack([W, b / bias])
    if kind == 4:
        own = np.searchsorted(model.classes_, y)
        rivals = scores + 1.0
        rivals[np.arange(len(y)), own] -= 1.0
        losses = C * np.sum(rivals.max(axis=1) - scores[np.arange(len(y)), own])
        return 0.5 * float(np.sum(W * W)) + losses, np.count_nonzero(W)
    if kind in _REGRESSORS:
        excess = np.maximum(0.0, np.abs(y - scores[:, 0]) - _EPSILON) ** _REGRESSORS[kind]
        return _half_square(W[0]) + C * float(excess.sum()), np.count_nonzero(W)
    penalty, loss = _CLASSIFIERS[kind]
    positives = model.classes_[1:] if len(model.classes_) == 2 else model.classes_
    total = sum(
        penalty(w) + C * float(loss(np.where(y == label, s, -s)).sum())
        for w, s, label in zip(W, scores.T, positives, strict=True)
    )
    return total, np.count_nonzero(W)


def _trained(run, program):
    def figures(case, folder):
        data = data_file(case.data, folder)
        run(program, [*case.options.split(), data, "model"], folder)
        objective, n_weights = _objective(folder / "model", folder / data, case.options)
        return {"objective": objective, "weights": n_weights}

    return figures


def _predicted(run, program):
    def figures(case, folder):
        data, test = data_file(case.data, folder), data_file(case.test, folder)
        *words, _, probability = case.options.split()
        original("liblinear-train", ["-q", *words, data, "original.model"], folder)
        out = run(program, ["-b", probability, test, "original.model", "predictions"], folder)
        lines = (folder / "predictions").read_text().splitlines()
        rows = np.array([line.split() for line in lines if not line.startswith("labels")], float)
        return {
            **numbers(out, {"accuracy, %": r"Accuracy = ([0-9.e+-]+)%", "squared error": r"error = ([0-9.e+-]+)"}),
            "rows": len(rows),
            "sum of what is written": float(rows.sum()),
            "of its squares": float(np.sum(rows * rows)),
        }

    return figures


_FINE = " -e 1e-4"
SECTIONS = [
    Section(
        "train",
        "Both train with the same options; the tolerance is small, since LIBLINEAR's default of 0.1 leaves the second "
        "digit open. The objective is computed from the weights that both have written.",
        {
            "objective": Figure(relative=1e-4, shown=".8g"),
            "weights": Figure(absolute=2, relative=0.02, shown=".0f"),
        },
        (
            *[Case("heart_scale", f"-s {kind} -B 1{_FINE}") for kind in (0, 1, 2, 3, 5, 6, 7)],
            *[Case("a1a", f"-s {kind} -c 0.1{_FINE}") for kind in (1, 3, 5, 6, 7)],
            *[Case("svmlight-example1", f"-s {kind}{_FINE}") for kind in (1, 5, 6)],
            *[Case("dna.scale", f"-s {kind} -c 0.1{_FINE}") for kind in (4, 5, 6)],
            *[Case("housing_scale", f"-s {kind} -B 1{_FINE}") for kind in (11, 12, 13)],
        ),
        _trained(original, "liblinear-train"),
        _trained(here, "train"),
    ),
    Section(
        "predict",
        "Both predict with the model that liblinear-train has written with these options; -b 1 writes probabilities.",
        {
            "rows": Figure(shown=".0f"),
            "accuracy, %": Figure(absolute=1e-4),
            "squared error": Figure(relative=1e-5),
            "sum of what is written": Figure(absolute=1e-3, relative=1e-6, shown=".8g"),
            "of its squares": Figure(relative=1e-5, shown=".8g"),
        },
        (
            Case("heart_scale", "-s 1 -b 0", "heart_scale"), Case("heart_scale", "-s 6 -b 1", "heart_scale"),
            Case("a1a", "-s 0 -b 1", "a1a.t"), Case("dna.scale", "-s 7 -b 1", "dna.scale.t"),
            Case("housing_scale", "-s 13 -b 0", "housing_scale"),
        ),
        _predicted(original, "liblinear-predict"),
        _predicted(here, "predict"),
    ),
]  # fmt: skip
