"""Targets of a regression in units of their own: y' = (y − mean) / spread, and models back in the units of the file.

A model f' of scaled targets predicts f = spread f' + mean, which is a model of the same kind: its weights, or the
coefficients of its kernel expansion, are multiplied by spread, and so is its intercept before the mean is added. With
w = spread w' and residuals r = spread r',

    ½|w|² + C Σ max(0, |r| − epsilon)  =  spread² (½|w'|² + C' Σ max(0, |r'| − epsilon'))

for C = spread C' and epsilon = spread epsilon' (C = C' if the losses are squared). So it solves the problem of the
unscaled targets with that C and epsilon, and its relative gap is the same. An intercept that is penalised is penalised
without the mean.
"""

from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import get_scorer

from widemargin.models.kernel.base import KernelModel


class TargetScale(NamedTuple):
    """Where the targets lie, and how far they spread: their mean and standard deviation."""

    mean: float
    spread: float

    def apply(self, y):
        """Return the targets in these units."""
        return (y - self.mean) / self.spread

    def undo(self, y):
        """Return targets in the units of the file."""
        return y * self.spread + self.mean

    def scorer(self, name):
        """Return scikit-learn's scorer of that name, which judges in the units of the file."""
        judge = get_scorer(name)

        def score(model, X, y):
            return judge(_InFileUnits(model, self), X, self.undo(y))

        score.__name__ = name
        return score

    def restore(self, model):
        """Let a model that was fitted to scaled targets be one of the targets in the file."""
        spread, squared = self.spread, self.spread**2
        is_linear_loss = getattr(model, "loss", "epsilon_insensitive") == "epsilon_insensitive"
        changed = {"C": model.C * spread if is_linear_loss else model.C}
        if hasattr(model, "epsilon"):
            changed["epsilon"] = model.epsilon * spread
        if isinstance(model, KernelModel) or model.stopping == "kkt":
            changed["tol"] = model.tol * spread  # a violation in units of the targets
        model.set_params(**changed)
        for name in ("coef_", "dual_coef_") if "coef_" in vars(model) else ("dual_coef_",):
            setattr(model, name, getattr(model, name) * spread)
        model.intercept_ = self.undo(model.intercept_)
        model.objective_ *= squared
        for side in ("primal", "dual"):
            model.history_[side] *= squared
        for facts in getattr(model, "facts_", ()):
            factors = {"obj": squared, "epsilon": spread}
            facts |= {name: facts[name] * factor for name, factor in factors.items() if name in facts}
            facts["rho"] = -self.undo(-facts["rho"])


def scale_of(y):
    """Return the TargetScale of some targets; ValueError if they are all the same."""
    spread = float(np.std(y))
    if not 0.0 < spread < np.inf:
        raise ValueError(
            f"targets cannot be scaled: their standard deviation is {spread:g}; leave --scale-targets out."
        )
    return TargetScale(float(np.mean(y)), spread)


class _InFileUnits(RegressorMixin, BaseEstimator):
    """A fitted model of scaled targets, which predicts in the units of the file."""

    def __init__(self, model, scale):
        self.model, self.scale = model, scale

    def __sklearn_is_fitted__(self):
        return True

    def predict(self, X):
        """Return predictions in the units of the file."""
        return self.scale.undo(self.model.predict(X))
