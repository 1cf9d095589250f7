"""widemargin's LinearSVC, stopped by its certificate: the tolerance is the relative duality gap."""

import warnings

import numpy as np
from benchopt import BaseSolver

from widemargin import LinearSVC

_LARGEST_GAP = 0.5  # a tolerance above it asks for nothing: β = 0
_SMALLEST_GAP = 1e-13


class Solver(BaseSolver):
    """LinearSVC(loss="hinge", fit_intercept=False) with one of its solvers, on one thread."""

    name = "widemargin"
    sampling_strategy = "tolerance"
    install_cmd = "conda"
    requirements = ["pip::widemargin"]
    parameters = {"solver": ["auto", "dcd", "newton"]}

    def set_objective(self, X, y, C):
        """Take the problem."""
        self.X, self.y, self.C = X, y, C

    def skip(self, X, y, C):
        """Refuse what the solver refuses: newton is for few columns."""
        if self.solver == "newton" and X.shape[1] > 3000:
            return True, "newton is for up to 3,000 columns"
        return False, None

    def warm_up(self):
        """Compile, which is not timed."""
        self.run_once(1e-2)

    def get_next(self, stop_val):
        """Return the next tolerance: a third of the last one."""
        return min(stop_val, 1.0) / 3.0

    def run(self, tolerance):
        """Solve to a relative duality gap."""
        if tolerance > _LARGEST_GAP:
            self.beta = np.zeros(self.X.shape[1])
            return
        gap = max(float(tolerance), _SMALLEST_GAP)
        model = LinearSVC(
            loss="hinge", C=self.C, fit_intercept=False, solver=self.solver, tol=gap, max_iter=None, n_jobs=1,
            max_seconds=60.0, random_state=0,
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a gap below the precision of the numbers is not reached
            self.beta = model.fit(self.X, self.y).coef_.ravel()

    def get_result(self):
        """Return the weights."""
        return {"beta": self.beta}
