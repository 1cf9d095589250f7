"""Probabilities of classifiers from one fit, against the six fits of Platt's method, ours and scikit-learn's."""

import importlib
import warnings
from functools import cache

import numpy as np
from sklearn.preprocessing import StandardScaler

from benchmarks.datasets import load
from benchmarks.machinery.figures import ratio, read, shown, take_turns, timed
from benchmarks.machinery.page import Frame, Table

SETS = {  # C and gamma, "scale" unless a search would take another
    "heart_scale": (1.0, "scale"),
    "australian": (1.0, "scale"),
    "diabetes_scale": (1.0, "scale"),
    "german.numer_scale": (1.0, "scale"),
    "splice": (1.0, "scale"),
    "a5a": (1.0, 0.03),
    "ijcnn1": (10.0, 0.05),
    "dna.scale": (1.0, "scale"),
    "satimage.scale": (2.0, "scale"),
    "usps": (5.0, "scale"),
    "letter.scale": (10.0, "scale"),
    "pendigits": (10.0, "scale"),
}
FITS = {
    "one fit": ("widemargin", {}),
    "sigmoid": ("widemargin", {"calibration": "sigmoid"}),
    "isotonic": ("widemargin", {"calibration": "isotonic"}),
    "six fits": ("widemargin", {"probability": "libsvm"}),
    "scikit-learn": ("sklearn.svm", {"probability": True}),
}
_MAX_TRAINING_ROWS, _MAX_TEST_ROWS = 3000, 6000
_INTRODUCTION = f"""# Probabilities

Made by `python -m benchmarks run probabilities`: `SVC` on {len(SETS)} sets, two thirds of the rows for training, at
most {_MAX_TRAINING_ROWS:,}, columns of mean 0 and deviation 1. "sigmoid" and "isotonic" are `calibration=...`, which
fits one machine; "six fits" is `probability="libsvm"`, and scikit-learn's is `probability=True`, which fits six, too.
Brier scores are means over random splits, summed over classes; smaller is better."""
_SECTIONS = {
    "summary": ("Summary", "Over all sets."),
    "scores": (
        "Brier scores",
        "Differences are paired over splits: sigmoid less six fits, ± the standard error of the mean.",
    ),
    "seconds": ("Milliseconds of fit", "The last columns are relative to one fit without probabilities."),
}


@cache
def standardised(name):
    """Return X, with columns of mean 0 and deviation 1, and labels."""
    X, y = load(name)
    return StandardScaler().fit_transform(X.toarray()), y


def split(name, seed):
    """Return the numbers of training rows and of test rows."""
    n_rows = len(standardised(name)[1])
    order = np.random.default_rng(seed).permutation(n_rows)
    n_training = min(_MAX_TRAINING_ROWS, 2 * n_rows // 3)
    return order[:n_training], order[n_training : n_training + _MAX_TEST_ROWS]


def machine(name, fit):
    """Return an estimator that is not fitted."""
    C, gamma = SETS[name]
    module, options = FITS[fit]
    return importlib.import_module(module).SVC(C=C, gamma=gamma, random_state=0, **options)


def fitted(name, fit, rows):
    """Return an estimator that is fitted to some rows, without scikit-learn's warning that `probability` will go."""
    X, y = standardised(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return machine(name, fit).fit(X[rows], y[rows])


def brier(model, X, y):
    """Return the mean of Σ (p_k − 1[y = k])² over rows."""
    return float(np.mean(np.sum((model.predict_proba(X) - (y[:, None] == model.classes_)) ** 2, axis=1)))


def scores_table(page, names, options):
    """Brier scores on rows that were not used for training."""
    columns = ["set", "rows", "classes", *list(FITS)[1:], "difference"]
    for name in page.each("scores", names):
        X, y = standardised(name)
        found = []
        for seed in range(options.splits):
            training, test = split(name, seed)
            found.append([brier(fitted(name, fit, training), X[test], y[test]) for fit in list(FITS)[1:]])
        scores = np.array(found)
        difference = scores[:, 0] - scores[:, 2]
        error = difference.std(ddof=1) / len(difference) ** 0.5 if len(difference) > 1 else 0.0
        cells = [f"{score:.4f}" for score in scores.mean(axis=0)]
        row = [name, len(split(name, 0)[0]), len(np.unique(y)), *cells, f"{difference.mean():+.4f} ±{error:.4f}"]
        page.put("scores", columns, row)


def seconds_table(page, names, options):
    """Times of fits, taking turns."""
    columns = ["set", *FITS, "sigmoid / one fit", "isotonic / one fit", "six fits / one fit", "scikit-learn / sigmoid"]
    for name in page.each("seconds", names):
        training, _ = split(name, 0)
        runners = {fit: timed(fitted, name, fit, training) for fit in FITS}
        found = take_turns(runners, options.repeats, often=3)
        times = {fit: one.times_factor(1e3) for fit, (_, one) in found.items()}
        ratios = [ratio(times[fit], times["one fit"]) for fit in ("sigmoid", "isotonic", "six fits")]
        cells = [shown(times[fit]) for fit in FITS]
        page.put("seconds", columns, [name, *cells, *ratios, ratio(times["scikit-learn"], times["sigmoid"])])


def finish(page):
    """Add the largest and the median ratio of times, and the difference of scores."""
    times, scores = page.rows("seconds"), page.rows("scores")
    if times and scores:
        ratios = [read(row[-4]).value for row in times]
        relative = [float(row[3]) / float(row[5]) - 1.0 for row in scores]
        columns = [
            "sets",
            "sigmoid / one fit: median",
            "largest",
            "Brier score less that of six fits: median",
            "largest",
        ]
        cells = [f"{np.median(ratios):.2f}", f"{max(ratios):.2f}"]
        cells += [f"{100 * np.median(relative):+.1f}%", f"{100 * max(relative):+.1f}%"]
        page.put("summary", columns, [len(times), *cells], n_key=1)


PAGE = Frame(
    _INTRODUCTION,
    _SECTIONS,
    {
        "scores": Table(scores_table, list(SETS), list(SETS)[:3], share=2.0),
        "seconds": Table(seconds_table, list(SETS), list(SETS)[:3]),
    },
    options={"repeats": 5, "splits": 10},
    quick_options={"repeats": 2, "splits": 2},
    finish=finish,
)
