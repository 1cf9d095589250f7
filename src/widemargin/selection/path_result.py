"""The result of `c_path`: a model for each value of C, and scores of folds."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from widemargin._runtime.argument_types import Floats
from widemargin.data.column_scaling import ColumnScaling


@dataclass(frozen=True, repr=False)
class CPath:
    """Models along a grid of C.

    Attributes
    ----------
    Cs : ndarray of shape (n_Cs,)
        Ascending.
    coefs : ndarray of shape (n_Cs, n_outputs, n_features)
        Weights of the models fitted to all rows. There is one output, or one per class if there are more than two.
    intercepts : ndarray of shape (n_Cs, n_outputs)
        Intercepts of the same models.
    gaps, objectives : ndarray of shape (n_Cs,)
        The largest relative duality gap over outputs, and the sum of their objectives.
    n_iters : ndarray of shape (n_Cs,)
        Iterations of the solver for the models fitted to all rows; the largest number over outputs.
    statuses : ndarray of shape (n_Cs,)
        Why the solver stopped.
    solver : str
        The solver that was used.
    scores : ndarray of shape (n_folds, n_Cs), or None without folds
        Scores on the held-out rows of each fold.
    fold_gaps : ndarray of shape (n_folds, n_Cs), or None without folds
        The largest relative duality gap over outputs.
    histories : list of lists of ndarray
        For each C and output, the convergence history of the model fitted to all rows, as `history_` of a `LinearSVC`.
    scaling : ColumnScaling or None
        How features were scaled for the solver; coefs and intercepts are those of the features as they are.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import LinearSVC, c_path
    >>> c_path(LinearSVC(), *load_iris(return_X_y=True), [0.01, 0.1]).coefs.shape
    (2, 3, 4)
    >>> c_path(LinearSVC(), *load_iris(return_X_y=True), [0.01, 0.1])
    CPath(2 values of C from 0.01 to 0.1: newton, converged, largest gap ...)
    """

    Cs: Floats
    coefs: Floats
    intercepts: Floats
    gaps: Floats
    objectives: Floats
    n_iters: NDArray[np.int64]
    statuses: NDArray[np.str_]
    solver: str
    scores: Floats | None
    fold_gaps: Floats | None
    histories: list[list[NDArray[np.void]]] = field(default_factory=list, compare=False)
    scaling: ColumnScaling | None = field(default=None, compare=False)

    @property
    def best(self) -> int:
        """The position in `Cs` of the best mean score; of equal scores, that of the smallest C."""
        if self.scores is None:
            raise ValueError("a path without cv has no scores to choose by; give cv.")
        return int(np.argmax(self.scores.mean(axis=0)))

    def __repr__(self) -> str:
        values = f"{len(self.Cs)} values of C from {self.Cs[0]:.6g} to {self.Cs[-1]:.6g}"
        statuses = ", ".join(dict.fromkeys(map(str, self.statuses)))
        found = f"{self.solver}, {statuses}, largest gap {self.gaps.max():.1e}"
        if self.scores is None:
            return f"CPath({values}: {found})"
        best = f"best C {self.Cs[self.best]:.6g}: mean score {self.scores[:, self.best].mean():.6g}"
        return f"CPath({values}, {len(self.scores)} folds: {found}, {best})"
