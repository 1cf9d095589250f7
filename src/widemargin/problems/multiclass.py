"""The multiclass SVM of Crammer and Singer (2001): one weight vector per class, one loss per row.

    minimise   ½ Σ_m |w_m|² + Σ_i cost_i max_m ( [m ≠ label_i] + <w_m, x_i> − <w_label_i, x_i> )

Its dual has n_classes dual variables beta_i[m] per row, which sum to zero:

    maximise   Σ_i beta_i[label_i] − ½ Σ_m |X'beta[:, m]|²      beta_i[m] <= cost_i if m = label_i, else 0

and w_m = X'beta[:, m] at the optimum. As a risk of scores, n_classes for each row, it is a RiskProblem (`as_risk`).
"""

from dataclasses import dataclass

import numpy as np

from widemargin.data.matrix import Matrix
from widemargin.data.stacked import StackedMatrix
from widemargin.problems.certificates import Certificate, combination, scores
from widemargin.problems.class_risk import ClassRisk
from widemargin.problems.formulations import RiskProblem, checksum_of


@dataclass(frozen=True)
class CrammerSinger:
    """Rows with a label (0 .. n_classes − 1) and a cost."""

    X: Matrix
    label: np.ndarray
    cost: np.ndarray
    n_classes: int

    def checksum(self):
        """Return a number that differs if labels or costs of rows differ."""
        return checksum_of(self.label, self.cost)

    def as_risk(self, n_jobs=1):
        """Return the RiskProblem of all classes: w are the weight vectors of the classes, one after the other."""
        risk = ClassRisk(self.label, self.cost, self.n_classes, n_jobs)
        return RiskProblem(StackedMatrix(self.X, self.n_classes), risk)


def certify(problem, W, beta):
    """Return the Certificate of W (n_columns x n_classes) and beta (n_rows x n_classes), in plain NumPy.

    Raises
    ------
    ValueError
        If beta is not feasible.
    """
    rows = np.arange(problem.X.n_rows)
    upper = np.zeros_like(beta)
    upper[rows, problem.label] = problem.cost
    if (beta > upper).any() or np.abs(beta.sum(axis=1)).max() > 1e-9 * max(1.0, problem.cost.max()):
        raise ValueError("beta is not feasible: each row must sum to zero and stay within its upper bounds.")
    s = np.stack([scores(problem.X, w) for w in W.T], axis=1)
    violation = 1.0 + s - s[rows, problem.label][:, None]
    violation[rows, problem.label] -= 1.0
    primal = 0.5 * (W**2).sum() + problem.cost @ violation.max(axis=1)
    V = np.stack([combination(problem.X, b) for b in beta.T], axis=1)
    return Certificate(primal, beta[rows, problem.label].sum() - 0.5 * (V**2).sum())
