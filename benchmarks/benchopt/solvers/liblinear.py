"""LIBLINEAR's dual coordinate descent through scikit-learn, by its number of sweeps: a peer to try ours against."""

import warnings

import numpy as np
from benchopt import BaseSolver
from benchopt.stopping_criterion import SufficientProgressCriterion
from sklearn.svm import LinearSVC


class Solver(BaseSolver):
    """LinearSVC(loss="hinge", dual=True, fit_intercept=False)."""

    name = "LIBLINEAR (scikit-learn)"
    stopping_criterion = SufficientProgressCriterion(strategy="iteration", patience=15)  # it does not fall steadily
    requirements = ["scikit-learn"]

    def set_objective(self, X, y, C):
        """Take the problem."""
        self.X, self.y, self.C = X, y, C

    def run(self, n_iter):
        """Solve with so many sweeps."""
        self.beta = np.zeros(self.X.shape[1])
        if n_iter:
            model = LinearSVC(loss="hinge", dual=True, fit_intercept=False, C=self.C, tol=1e-12, max_iter=n_iter)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # it does not converge in so few sweeps
                self.beta = model.fit(self.X, self.y).coef_.ravel()

    def get_result(self):
        """Return the weights."""
        return {"beta": self.beta}
