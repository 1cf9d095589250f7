"""A point of a KernelQP: its objectives, and the size of their rounding errors."""

import numpy as np

from widemargin.solvers.decomposition.certificate import measure
from widemargin.solvers.decomposition.kernel_sums import UNIT_ROUNDOFF

ROUNDINGS_PER_TERM, ROUNDINGS_PER_SUM = 8.0, 4.0  # errors of terms and values of F, in units of the roundoff
_MAX_ROUNDING_PER_OBJECTIVE = 1e-10  # if the effect of rounding is larger, f is computed again


class Point:
    """Dual variables of a KernelQP, and their gradient.

    Subclasses have the attributes `problem`, `beta`, `linear`, `lower`, `upper`, `diagonal`, `F`, `ends`, `sums`,
    `rounding_bound`, `omitted_bound`, `_largest_diagonal` and the method `offsets` of an ActiveSet.
    """

    def gradient_rounding(self):
        """Return the size of rounding errors in F: of its terms, at most |beta_t K_tt|, and of its values."""
        terms = np.abs(self.beta).sum() * self._largest_diagonal
        return UNIT_ROUNDOFF * (ROUNDINGS_PER_TERM * terms + ROUNDINGS_PER_SUM * np.abs(self.F).max(initial=0.0))

    def largest_sum(self):
        """Return the largest |(K beta)_t| of the active dual variables."""
        return np.abs(self.F - self.linear).max(initial=0.0)

    def objective_scale(self):
        """Return a bound on the objective if no terms cancel: Σ_t (upper_t − lower_t) (max |f| + max |p|)."""
        size = np.abs(self.beta).sum() * self._largest_diagonal + np.abs(self.linear).max(initial=0.0)
        return float((self.upper - self.lower).sum() * size)

    def objective(self):
        """Return ½ beta'K beta + p'beta of the active dual variables, by the F of the last scan."""
        return 0.5 * (self.beta @ self.F + self.beta @ self.linear)

    def measure(self, stretch=1.0):
        """Return (primal, dual) of the problem, the primal objective that of the decision function times `stretch`.

        All kernel rows must be active.
        """
        return self.certificate(stretch)[:2]

    def certificate(self, stretch=1.0):
        """Return `measure`, and the bound on rounding errors that was subtracted from the dual."""
        return measure(self, stretch)

    @property
    def rounding_matters(self):
        """Whether rounding errors of f matter for the objectives."""
        primal, _, rounding = self.certificate()
        return not rounding <= _MAX_ROUNDING_PER_OBJECTIVE * abs(primal)
