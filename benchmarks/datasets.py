"""The shared data sets: where they are, which there are, and how a benchmark gets them."""

import os
from functools import cache
from pathlib import Path

import numpy as np

from widemargin import read_svmlight

FOLDER = Path(os.environ.get("WIDEMARGIN_DATA", Path(__file__).parents[2] / "shared" / "data"))


@cache
def load(name):
    """Return X (CSR, float64) and y of a shared set."""
    X, y, _ = read_svmlight(FOLDER / f"{name}.svm.xz")
    return X, y


@cache
def binary(name):
    """Return X and signs: the second of two labels against the first, or the most frequent one against the rest."""
    X, y = load(name)
    labels, counts = np.unique(y, return_counts=True)
    chosen = labels[1] if len(labels) == 2 else labels[np.argmax(counts)]
    return X, np.where(y == chosen, 1.0, -1.0)
