"""Standardised targets of a regression, y' = (y − mean) / spread, and the conversion of models to the original units.

If f' is a model of the scaled targets, then f = spread f' + mean is a model of the original targets and of the same
kind: its weights, or the coefficients of its kernel expansion, are multiplied by spread, and its intercept is
multiplied by spread before the mean is added. With w = spread w' and residuals r = spread r',

    ½|w|² + C Σ max(0, |r| − epsilon)  =  spread² (½|w'|² + C' Σ max(0, |r'| − epsilon'))

for C = spread C' and epsilon = spread epsilon' (C = C' for squared losses). The converted model therefore solves the
problem of the original targets with this C and epsilon, and its relative gap is the same. If the intercept is
penalised, the penalty does not include the mean.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import get_scorer

from widemargin.models.kernel.base import KernelModel
from widemargin.problems.row_loss import RowLoss


class TargetScale(NamedTuple):
    """The mean of the targets and their standard deviation, `spread`."""

    mean: float
    spread: float

    def apply(self, y):
        """Return the scaled targets."""
        return (y - self.mean) / self.spread

    def undo(self, y):
        """Return scaled targets in their original units."""
        return y * self.spread + self.mean

    def scorer(self, name):
        """Return scikit-learn's scorer of that name, applied to predictions and targets in their original units."""
        scorer = get_scorer(name)

        def score(model, X, y):
            return scorer(_InOriginalUnits(model, self), X, self.undo(y))

        score.__name__ = name
        return score

    def restore(self, model):
        """Convert a model of the scaled targets, in place, to a model of the original targets."""
        spread, squared = self.spread, self.spread**2
        is_linear_loss = getattr(model, "loss", "epsilon_insensitive") == "epsilon_insensitive"
        changed = {"C": model.C * spread if is_linear_loss else model.C}
        if isinstance(getattr(model, "loss", None), RowLoss):  # with both times spread, loss(r) = spread² loss'(r')
            changed = {"C": model.C * spread, "loss": replace(model.loss, curvature=model.loss.curvature * spread)}
        if hasattr(model, "epsilon"):
            changed["epsilon"] = model.epsilon * spread
        if (isinstance(model, KernelModel) and not hasattr(model, "basis_")) or model.stopping == "kkt":
            changed["tol"] = model.tol * spread  # a KKT violation has the units of the targets
        model.set_params(**changed)
        for name in ("coef_", "dual_coef_", "basis_coef_"):
            if name in vars(model):
                setattr(model, name, getattr(model, name) * spread)
        model.intercept_ = self.undo(model.intercept_)
        model.objective_ *= squared
        for side in {"primal", "dual", "decrease"} & set(model.history_.dtype.names):
            model.history_[side] *= squared
        for facts in getattr(model, "facts_", ()):
            factors = {"obj": squared, "epsilon": spread}
            facts |= {name: facts[name] * factor for name, factor in factors.items() if name in facts}
            facts["rho"] = -self.undo(-facts["rho"])


def scale_of(y):
    """Return the TargetScale of the targets; ValueError if they are all equal."""
    spread = float(np.std(y))
    if not 0.0 < spread < np.inf:
        raise ValueError(
            f"targets cannot be scaled: their standard deviation is {spread:g}; leave --scale-targets out."
        )
    return TargetScale(float(np.mean(y)), spread)


class _InOriginalUnits(RegressorMixin, BaseEstimator):
    """A fitted model of scaled targets that predicts in the original units."""

    def __init__(self, model, scale):
        self.model, self.scale = model, scale

    def __sklearn_is_fitted__(self):
        return True

    def predict(self, X):
        """Return predictions in the original units."""
        return self.scale.undo(self.model.predict(X))
