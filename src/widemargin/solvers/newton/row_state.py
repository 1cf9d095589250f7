"""`RowState`: the part of an iterate of `newton` that has a number for each row.

Scores, dual variables and second derivatives belong to rows, weights and gradients to columns. An `Iterate` holds what
belongs to columns, and asks a RowState for sums over rows: of losses, of the rows themselves (X'b) and of their outer
products. It never sees a vector over rows, so that these may be somewhere else: for rows on a cluster there is one
RowState for each partition, and the results of all are added.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from widemargin.problems.entropy_risk import risk_of
from widemargin.problems.smoothed_risk import mean_distance
from widemargin.solvers.combination import Combination
from widemargin.solvers.updated_gram import UpdatedGram

_COLUMNS_WORTH_UPDATES = 128  # from which on the matrix of a step takes longer than a pass
_ROWS_PER_COLUMN_WORTH_UPDATES = 16  # with fewer rows, the kept matrix would be large compared with X


class DualSums(NamedTuple):
    """Sums over rows: `linear` and `quadratic` as in RiskSums, X'b of the dual variables b, and rows read for that."""

    linear: float
    quadratic: float
    vector: np.ndarray
    n_read: float


class NewtonSystem(NamedTuple):
    """Sums over rows with their second derivatives q: the lower half of X'diag(q)X, X'q and Σ q, and rows read.

    X'q and Σ q are 0 unless there is a free intercept.
    """

    matrix: np.ndarray | float
    weighted_sum: np.ndarray | float
    intercept_curvature: float
    n_read: int


class CurvatureProduct(NamedTuple):
    """X'diag(q)X v and <q, X v> of a vector v over the columns."""

    vector: np.ndarray
    weighted: float


class RowState:
    """Scores s, dual variables b and second derivatives q of the rows, at the current weights of an iterate.

    Parameters
    ----------
    problem : DualQP
    n_jobs : int or None

    Attributes
    ----------
    best_b : ndarray of shape (n_rows,)
        The dual variables that were kept last.
    """

    STATE = ("_s", "best_b", "_risk", "_combination")

    def __init__(self, problem, n_jobs):
        self._X, self._free, self._n_jobs = problem.X, problem.free_intercept, n_jobs
        self._dual_sum = problem.dual_sum
        self._risk, self._combination = risk_of(problem, n_jobs), Combination(self._X, n_jobs)
        self._s, self._b, self._q, self.best_b, self._t = np.zeros((5, self._X.n_rows))
        # With an entropy all dual variables change in every step, and predicted ones have an array of their own.
        self._has_entropy = problem.entropy > 0.0
        self._predicted = np.zeros(self._X.n_rows) if self._has_entropy else self._b
        self._clipped = np.zeros(self._X.n_rows if self._has_entropy else 0)  # what was added to predicted ones
        self._product, self._has_direction = self._t, False  # see `begin_direction`
        self._measured = self._b  # the dual variables whose sums were returned last
        enough_rows = self._X.n_rows >= _ROWS_PER_COLUMN_WORTH_UPDATES * self._X.n_columns
        is_kept = self._X.n_columns >= _COLUMNS_WORTH_UPDATES and enough_rows and not self._has_entropy
        self._gram = UpdatedGram(self._X, n_jobs) if is_kept else None

    # --- Scores and losses --------------------------------------------------------------------------------------------

    def set_scores(self, w, h):
        """Set the scores to X w, by a pass over the rows; h is the half width of the band that follows."""
        self._X.scores(w, self._n_jobs, out=self._s, likely=partial(self._risk.support_rows, self._s, h))

    def evaluate(self, h):
        """Compute dual variables and second derivatives for bands of half width h.

        A free intercept is set to its best value first, and the dual variables then sum to `dual_sum`. Returns
        Σ losses, DualSums, and what was added to the intercept.
        """
        if not self._free:
            loss, linear, quadratic = self._risk.evaluate(self._s, h, self._b, self._q)
            return loss, self._combined(linear, quadratic), 0.0
        shift = self._risk.best_intercept(self._s, h)
        self.shift_scores(shift)
        loss, imbalance, _ = self.evaluate_unbalanced(h)
        return loss, self.balance(imbalance - self._dual_sum), shift

    def evaluate_unbalanced(self, h):
        """As `evaluate`, with the intercept as it is; return Σ losses, Σ b, and how far a b is from its bounds."""
        loss, _, _ = self._risk.evaluate(self._s, h, self._b, self._q)
        distance = self._risk.distance_to_bounds(self._b)
        return loss, float(self._b.sum()), float(distance.max(initial=-np.inf))

    def balance(self, imbalance):
        """Subtract a number from the dual variable that is farthest from its bounds; return DualSums."""
        if imbalance != 0.0:
            i = int(np.argmax(self._risk.distance_to_bounds(self._b)))
            self._b[i] = self._risk.clipped(i, self._b[i] - imbalance)
        return self._combined(*self._risk.dual_sums(self._b))

    def evaluate_losses(self):
        """As `evaluate`, with an entropy and without a free intercept; return Σ losses, and `linear` of DualSums."""
        loss, linear, _ = self._risk.evaluate(self._s, 1.0, self._b, self._q)
        return loss, linear

    def combined(self):
        """Return X'b of the dual variables b of `evaluate_losses`."""
        self._measured = self._b
        return self._X.combine(self._b, self._n_jobs)

    def _combined(self, linear, quadratic):
        """Return the DualSums of the dual variables."""
        if self._has_entropy:
            return DualSums(linear, quadratic, self.combined(), float(self._X.n_rows))
        read_before = self._combination.n_read
        self._combination.update(self._b, self._s)
        return DualSums(linear, quadratic, self._combination.vector, self._combination.n_read - read_before)

    def evaluate_restored(self, h):
        """Compute what a checkpoint does not keep: the second derivatives at the scores."""
        self._risk.evaluate(self._s, h, self._b, self._q)

    def shift_scores(self, shift):
        """Add a number to all scores."""
        self._s += shift

    def intercept_derivatives(self, shift, h):
        """Return the first and second derivative of the smoothed losses by a number added to all scores."""
        return self._risk.derivatives_by_shift(self._s, shift, h)

    # --- A step -------------------------------------------------------------------------------------------------------

    def newton_system(self):
        """Return the NewtonSystem at the current scores."""
        if self._gram is None:
            return self.intercept_system()._replace(matrix=self._X.gram(self._q, self._n_jobs))
        matrix = self._gram.lower(self._q).copy()
        return self.intercept_system()._replace(matrix=matrix, n_read=self._gram.n_read)

    def intercept_system(self):
        """Return the NewtonSystem without its matrix, which `curvature_product` stands for."""
        curvature = float(self._q.sum()) if self._free else 0.0
        weighted_sum = self._X.combine(self._q, self._n_jobs) if curvature > 0.0 else 0.0
        return NewtonSystem(0.0, weighted_sum, curvature, np.count_nonzero(self._q))

    def curvature_product(self, v):
        """Return X'diag(q)X v and <q, X v>, by two passes over the rows."""
        self._product = self._X.scores(v, self._n_jobs)
        t = self._q * self._product
        return CurvatureProduct(self._X.combine(t, self._n_jobs), float(t.sum()))

    def begin_direction(self):
        """Return a function that adds k times the scores of the last `curvature_product` to those of a step.

        They are then known without a pass over the rows.
        """
        self._t[:], self._has_direction = 0.0, True

        def take(k):
            self._t += k * self._product

        return take

    def takes_known_direction(self):
        """Return whether the scores of the step are known since `begin_direction`, which is forgotten."""
        known, self._has_direction = self._has_direction, False
        return known

    def set_direction(self, d, h):
        """Set the scores t = X d of a step d, by a pass over the rows."""
        self._X.scores(d, self._n_jobs, out=self._t, likely=partial(self._changing_rows, h))

    def _changing_rows(self, h, start, stop):
        """Return the rows from start to stop, counted from start, whose dual variable the step may change."""
        return self._risk.changing_rows(self._s, self._t, h, start, stop)

    def centre_direction(self, intercept_curvature):
        """Subtract from t the mean of its entries, weighted by q, whose sum is given; return what was added to t."""
        shift = -self.weighted_direction() / intercept_curvature
        self.shift_direction(shift)
        return shift

    def weighted_direction(self):
        """Return <q, t>."""
        return float(self._q @ self._t)

    def shift_direction(self, shift):
        """Add a number to all entries of t."""
        self._t += shift

    def predict(self):
        """Predict the dual variables b − q t, clipped to their bounds; return DualSums."""
        if self._has_entropy:
            linear, _ = self.predict_clipped()
            return DualSums(linear, 0.0, self.predicted_vector(), float(self._X.n_rows))
        sums = self._risk.predict_dual(self._combination.c, self._q, self._t, self._b)
        return self._combined(*sums)

    def predict_clipped(self):
        """As `predict` with an entropy, without a pass over the rows; return `linear`, and how many were clipped."""
        self._measured = self._predicted
        return self._risk.predict_dual(self._b, self._q, self._t, self._predicted, self._clipped)

    def predicted_vector(self):
        """Return X'b of the predicted dual variables, by a pass over the rows."""
        return self._X.combine(self._predicted, self._n_jobs)

    def clipped_vector(self):
        """Return X'c of what was added to predicted dual variables beyond their bounds, for the rows of which alone."""
        return self._X.combine(self._clipped, self._n_jobs)

    def line_search(self, h, *terms):
        """Return the step length, as `SmoothedRisk.line_search` does; `terms` are its last three arguments."""
        return self._risk.line_search(self._s, self._t, h, *terms)

    def line_search_with_intercept(self, h, *terms):
        """Return the step length, as `SmoothedRisk.line_search_with_intercept` does."""
        return self._risk.line_search_with_intercept(self._s, self._t, h, *terms)

    def predict_and_search(self, h, *terms):
        """Return the results of `predict` and of `line_search`."""
        return self.predict(), self.line_search(h, *terms)

    def derivatives(self, k, h):
        """Return the first and second derivative of the smoothed losses at s + k t by k."""
        return self._risk.derivatives(self._s, self._t, k, h)

    def derivatives_with_shift(self, k, shift, h):
        """Return R' by k, and R' and R'' by the shift, of the smoothed losses R at the scores s + k t + shift."""
        scores = self._s + k * self._t + shift
        along = self._risk.derivatives(scores, self._t, 0.0, h)
        return np.array([along[0], *self._risk.derivatives_by_shift(scores, 0.0, h)])

    def advance(self, k):
        """Add k t to the scores."""
        self._s += k * self._t

    # --- Bands, costs and kept dual variables -------------------------------------------------------------------------

    def recentre(self, h):
        """Take the dual variables as centres of the bands; return how far they are from their bounds."""
        return mean_distance(*self.recentre_sums(h))

    def recentre_sums(self, h):
        """Take the dual variables as centres of the bands; return the two sums that `mean_distance` takes."""
        return self._risk.recentre(self._s, h)

    def band_sums(self, h):
        """Return the sums of `recentre_sums`, and leave the centres as they are."""
        return self._risk.band_sums(self._s, h)

    def change_costs(self, problem, factor):
        """Continue with a problem that differs only in its costs, and forget the kept dual variables.

        Centres of the bands below 1 are multiplied by a factor.
        """
        self._risk.change_costs(problem, factor)
        self.best_b[:] = 0.0

    def keep_dual(self, factor):
        """Keep the dual variables, multiplied by a factor, as `best_b`."""
        np.multiply(self._measured if self._has_entropy else self._combination.c, factor, out=self.best_b)

    def kept_dual(self):
        """Return the dual variables that were kept, as an array of its own."""
        return self.best_b.copy()


def set_directions(states, directions, half_widths, n_jobs):
    """Set the scores of one direction for each of several RowStates with the same X, by one pass over the rows.

    Directions whose scores are known take no part in the pass.
    """
    unknown = [one for one in zip(states, directions, half_widths, strict=True) if not one[0].takes_known_direction()]
    if len(unknown) == 1:
        state, d, h = unknown[0]
        state.set_direction(d, h)
    elif unknown:
        _set_several(*zip(*unknown, strict=True), n_jobs)


def _set_several(states, directions, half_widths, n_jobs):
    X = states[0]._X
    scores = np.empty((len(states), X.n_rows))
    for state, own in zip(states, scores, strict=True):
        state._t = own

    def changing_rows(start, stop):
        found = [state._changing_rows(h, start, stop) for state, h in zip(states, half_widths, strict=True)]
        return np.unique(np.concatenate(found))

    X.scores_of_all(np.stack(directions), n_jobs, out=scores, likely=changing_rows)
