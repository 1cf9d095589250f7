"""½|β|² + C Σ max(0, 1 − yᵢ ⟨xᵢ, β⟩): what benchopt's benchmark of linear SVMs without intercept minimises.

The names that solvers and data sets meet are those of `benchmark_linear_svm_binary_classif_no_intercept`, in the
interface of benchopt 1.6 and later, so that `solvers/widemargin.py` and `datasets/simulated.py` can be put into it as
they are. This file and the peers are here to try them.
"""

import numpy as np
from benchopt import BaseObjective


class Objective(BaseObjective):
    """The objective of one data set and one C."""

    name = "SVM Binary Classification (no intercept)"
    min_benchopt_version = "1.6"
    requirements = ["numpy"]
    parameters = {"C": [0.1, 10.0]}

    def set_data(self, X, y):
        """Take what a data set returns."""
        self.X, self.y = X, y

    def get_objective(self):
        """Return what a solver is given."""
        return {"X": self.X, "y": self.y, "C": self.C}

    def evaluate_result(self, beta):
        """Return the objective of weights."""
        loss = np.maximum(0.0, 1.0 - self.y * (self.X @ beta)).sum()
        return {"value": 0.5 * float(beta @ beta) + self.C * float(loss)}

    def get_one_result(self):
        """Return a result, for benchopt's own tests."""
        return {"beta": np.zeros(self.X.shape[1])}
