"""scikit-learn's SGDClassifier, by its number of epochs: a peer to try the others against."""

import warnings

import numpy as np
from benchopt import BaseSolver
from benchopt.stopping_criterion import SufficientProgressCriterion
from sklearn.linear_model import SGDClassifier


class Solver(BaseSolver):
    """SGDClassifier(loss="hinge", fit_intercept=False), alpha = 1 / (C n)."""

    name = "SGD (scikit-learn)"
    stopping_criterion = SufficientProgressCriterion(strategy="iteration", patience=15)  # it does not fall steadily
    requirements = ["scikit-learn"]

    def set_objective(self, X, y, C):
        """Take the problem."""
        self.X, self.y, self.alpha = X, y, 1.0 / (C * len(y))

    def run(self, n_iter):
        """Take so many epochs."""
        self.beta = np.zeros(self.X.shape[1])
        if n_iter:
            model = SGDClassifier(
                loss="hinge", alpha=self.alpha, fit_intercept=False, max_iter=n_iter, tol=None, random_state=0
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.beta = model.fit(self.X, self.y).coef_.ravel()

    def get_result(self):
        """Return the weights."""
        return {"beta": self.beta}
