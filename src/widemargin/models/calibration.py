"""Probabilities from decision values, as functions of arrays.

    fit_sigmoid, sigmoid               two classes: P(y = +1 | f) = 1 / (1 + exp(A f + B))
    fit_rising_sigmoid                 the same with A < 0
    fit_isotonic, isotonic             two classes: P(y = +1 | f) non-decreasing in f, linear between points
    couple                             k classes: minimise ½ p'Qp over Σp = 1, Q from the pairwise probabilities
    laplace_scale, laplace_interval    regression: y = f(x) + z, z with density exp(−|z| / s) / 2s
    density_marks, marks_probability   one class: P(inlier) by the bin that contains f, bins of equal count

The parameters should be fitted to decision values of rows that were not used for training, which five-fold
cross-validation or `kernel.out_of_sample` provide. The exception is one-class models, whose marks LIBSVM computes from
the training rows. All iteration limits and tolerances are those of LIBSVM, so that its models and ours give the same
probabilities.

References
----------
Platt, Probabilistic outputs for support vector machines (2000).
Lin, Lin and Weng, A note on Platt's probabilistic outputs for support vector machines, Machine Learning 68 (2007).
Zadrozny and Elkan, Transforming classifier scores into accurate multiclass probability estimates, KDD (2002).
Wu, Lin and Weng, Probability estimates for multi-class classification by pairwise coupling, JMLR 5 (2004).
Lin and Weng, Simple probabilistic predictions for support vector regression (2004).
Que and Lin, One-class SVM probabilistic outputs (2022).
"""

import math

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import expit

from widemargin.problems.sigmoid_loss import minimise_sigmoid_loss

_MAX_UNSCALED_DECISION = 1e100  # larger decision values are scaled, so that sums of their squares do not overflow

_MIN_SLOPE = 1e-9  # of a sigmoid that must rise: the least change of A f over the decision values

MIN_PAIRWISE_PROBABILITY = 1e-7
MAX_COUPLING_SWEEPS = 100
COUPLING_TOL = 0.005  # LIBSVM's

_OUTLIER_DEVIATIONS = 5.0  # residuals beyond so many standard deviations are left out

_N_MARKS = 10
BIN_PROBABILITIES = np.array([0.001, *(np.arange(1, _N_MARKS) / _N_MARKS), 0.999])


def _finite(name, values):
    """Return the values as a float64 array; ValueError unless they are finite, one-dimensional and not empty."""
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 1 or not values.size:
        raise ValueError(f"{name} must be an array of one dimension with a value or more, got shape {values.shape}.")
    if not np.isfinite(values).all():
        wrong = values[~np.isfinite(values)]
        raise ValueError(f"{name} must be finite, got {wrong[0]} among {wrong.size} such values: remove those rows.")
    return values


def fit_sigmoid(decision, sign, weight=None, pseudo_rows=1.0):
    """Fit P(y = +1 | f) = 1 / (1 + exp(A f + B)) by maximum likelihood with Platt's softened targets.

    Minimises F(A, B) = Σ w_i (t_i z_i + log(1 + exp(−z_i))), z_i = A f_i + B, where t_i = (N₊ + c) / (N₊ + 2c) for
    rows of sign +1 and c / (N₋ + 2c) for the others; N₊ and N₋ are the sums of their weights. Platt has c = 1, one
    pseudo-row of each class at every decision value; see `pseudo_rows_of_pair`. The method is that of Lin,
    Lin and Weng, Newton's method with backtracking: start at A = 0, B = log((N₋ + c) / (N₊ + c)); add 1e-12 to the
    diagonal of the Hessian; halve a step until F decreases by at least 1e-4 of the decrease that its slope predicts;
    stop when both components of the gradient are below 1e-5, when a step would be shorter than 1e-10, or after 100
    steps.

    If a class is absent, the starting point is the optimum. If all decision values are equal, only A f + B at this
    value of f is determined, and the ridge selects the smallest change of A and B. Ridge and tolerance are absolute, as
    in LIBSVM; for decision values of about 1e-7 and below, the iteration therefore stops before A is optimal.

    Parameters
    ----------
    decision : array-like of shape (n_rows,)
        Decision values of rows that were not used for training.
    sign : array-like of shape (n_rows,)
        +1 or −1.
    weight : array-like of shape (n_rows,), default=None
        A row of weight 2 counts as two rows; None means weight 1 for each row.
    pseudo_rows : float, default=1.0
        c, a positive number.

    Returns
    -------
    A, B : float
        A is negative if positive rows have the larger decision values.
    """
    decision, sign, weight = _checked_rows(decision, sign, weight)
    return _fit_scaled(decision, sign, weight, pseudo_rows, np.abs(decision).max())


def _fit_scaled(decision, sign, weight, pseudo_rows, largest):
    """Return A and B of checked rows, of which `largest` is the largest |decision value|."""
    if largest > _MAX_UNSCALED_DECISION:
        A, B = _fit_checked(decision / largest, sign, weight, pseudo_rows)
        return A / largest, B
    return _fit_checked(decision, sign, weight, pseudo_rows)


def pseudo_rows_of_pair(n_classes):
    """Return the c of `fit_sigmoid` for each pair of classes: Platt's for two classes, 2 / n_classes for more.

    The probabilities of k classes are k − 1 functions, which k (k − 1) / 2 pairs determine. With one pseudo-row of each
    class for every pair, as in LIBSVM, there are k / 2 times as many as for k − 1 functions. With 26 classes of 115
    rows, sigmoids are then far too flat: coupling adds up the excess of all pairs. Sharing the pseudo-rows of k − 1
    functions among the pairs lowers the Brier score of letter from 0.149 to 0.125, and that of pendigits by a fifth.
    """
    return 2.0 / n_classes


def _checked_rows(decision, sign, weight):
    decision, sign = _finite("decision", decision), _finite("sign", sign)
    weight = np.ones(len(decision)) if weight is None else _finite("weight", weight)
    if not len(decision) == len(sign) == len(weight):
        raise ValueError(
            f"decision, sign and weight must have equal lengths, got {len(decision)}, {len(sign)} and {len(weight)}."
        )
    if not (np.abs(sign) == 1.0).all():
        wrong = sign[np.abs(sign) != 1.0][0]
        raise ValueError(f"sign must be +1 or -1 for each row, got {wrong}: map the two classes to signs first.")
    if weight.min() < 0.0 or not weight.any():
        raise ValueError(f"weight must be >= 0 and positive for some row, got minimum {weight.min()}.")
    return decision, sign, weight


def _fit_checked(decision, sign, weight, pseudo_rows):
    """Return A and B by Newton's method with backtracking."""
    n_positive, n_negative = float(weight[sign > 0].sum()), float(weight[sign < 0].sum())
    target = np.where(sign > 0, *_softened(n_positive, n_negative, pseudo_rows))
    rows = map(np.ascontiguousarray, (decision, target, weight))
    B = math.log((n_negative + pseudo_rows) / (n_positive + pseudo_rows))
    return minimise_sigmoid_loss(*rows, B, np.empty((2, len(decision))))


def _softened(n_positive, n_negative, pseudo_rows):
    """Return Platt's targets of positive and of negative rows, with so many pseudo-rows of each class."""
    return (n_positive + pseudo_rows) / (n_positive + 2.0 * pseudo_rows), pseudo_rows / (n_negative + 2.0 * pseudo_rows)


def fit_rising_sigmoid(decision, sign, weight=None, pseudo_rows=1.0):
    """Fit a sigmoid as `fit_sigmoid`, with a probability that increases with the decision value, A < 0.

    Few decision values of rows that were left out may be on the wrong side more often than not. The best sigmoid that
    does not fall is then constant. One that rises by less than can be seen is returned, so that the most probable of
    two equally frequent classes is still that of the decision value.

    Parameters
    ----------
    decision, sign, weight, pseudo_rows
        As those of `fit_sigmoid`.

    Returns
    -------
    A, B : float
    """
    decision, sign, weight = _checked_rows(decision, sign, weight)
    largest = float(np.abs(decision).max())
    A, B = _fit_scaled(decision, sign, weight, pseudo_rows, largest)
    if A < 0.0 or largest == 0.0:
        return A, B
    _, B = _fit_checked(np.zeros(len(sign)), sign, weight, pseudo_rows)
    return -_MIN_SLOPE / largest, B


def sigmoid(decision, A, B):
    """Return P(y = +1 | f) = 1 / (1 + exp(A f + B)), without overflow.

    Parameters
    ----------
    decision : array-like
        Decision values f.
    A, B : float or array-like that broadcasts against decision
        One number each, or one per column (per pair of classes).

    Returns
    -------
    ndarray of float64
        Of the shape of decision; exactly 0 or 1 where the probability rounds to that.
    """
    with np.errstate(over="ignore"):  # an exponent that overflows to infinity gives the probability 0 or 1
        return expit(-(np.asarray(A, dtype=np.float64) * np.asarray(decision, dtype=np.float64) + B))


def fit_isotonic(decision, sign, weight=None, pseudo_rows=1.0):
    """Fit P(y = +1 | f) as a non-decreasing function of f by least squares (isotonic regression).

    The fitted probabilities are constant on intervals of decision values. They are clipped to the targets of
    `fit_sigmoid`, as no finite number of rows proves a probability of 0 or 1.

    Parameters
    ----------
    decision, sign, weight, pseudo_rows
        As those of `fit_sigmoid`.

    Returns
    -------
    ndarray of shape (n_points, 2)
        Ascending decision values and their probabilities: the first and the last decision value of each interval.
    """
    decision, sign, weight = _checked_rows(decision, sign, weight)
    counted = weight > 0.0
    decision, sign, weight = decision[counted], sign[counted], weight[counted]
    values, group = np.unique(decision, return_inverse=True)
    total, positive = np.bincount(group, weight), np.bincount(group, weight * (sign > 0.0))
    n_positive, n_negative = positive.sum(), (total - positive).sum()
    fitted = isotonic_regression(positive / total, weights=total).x
    largest, smallest = _softened(n_positive, n_negative, pseudo_rows)
    fitted = np.clip(fitted, smallest, largest)
    is_new = np.diff(fitted) != 0.0
    is_end = np.concatenate([[True], is_new]) | np.concatenate([is_new, [True]])
    return np.column_stack([values[is_end], fitted[is_end]])


def isotonic(decision, points):
    """Return P(y = +1 | f), linear between the points of `fit_isotonic` and constant outside of them.

    Parameters
    ----------
    decision : array-like
        Decision values f.
    points : ndarray of shape (n_points, 2)
        Ascending decision values and their probabilities.

    Returns
    -------
    ndarray of float64
        Of the shape of decision.
    """
    return np.interp(decision, points[:, 0], points[:, 1])


def couple(pairwise, *, tol=COUPLING_TOL):
    """Return class probabilities from pairwise ones, by the second method of Wu, Lin and Weng.

    Minimises ½ Σ_{i<j} (r_ji p_i − r_ij p_j)² = ½ p'Qp over Σp = 1, where Q_tt = Σ_{j≠t} r_jt² and
    Q_tj = −r_jt r_tj. At the optimum (Qp)_t = p'Qp for all t, and p >= 0 holds without a constraint. The iteration
    starts from p = 1/k. A sweep sets p_t ← p_t + (p'Qp − (Qp)_t) / Q_tt for t = 1..k, normalising p each time. It
    stops when max_t |(Qp)_t − p'Qp| < tol / k. All rows are updated together; a row that has reached the tolerance
    is not updated further, so that its result does not depend on the other rows.

    Parameters
    ----------
    pairwise : array-like of shape (n_rows, n_classes, n_classes)
        r_ij, the probability of class i given that the class is i or j; r_ij + r_ji = 1. The diagonal is not used.
        Values are clipped to [1e-7, 1 − 1e-7], as in LIBSVM.
    tol : float, default=0.005
        Stopping tolerance; the default is LIBSVM's.

    Returns
    -------
    ndarray of shape (n_rows, n_classes)
        Each row sums to one. With two classes these are r_01 and r_10.
    """
    r = _checked_pairwise(pairwise)
    n_classes, _, n_rows = r.shape
    if n_classes == 2:
        return np.column_stack([r[0, 1], r[1, 0]])
    Q = -r * r.transpose(1, 0, 2)
    Q[np.diag_indices(n_classes)] = np.einsum("jtn,jtn->tn", r, r)
    p = np.full((n_classes, n_rows), 1.0 / n_classes)
    rows, Q_left, p_left = np.arange(n_rows), Q, p.copy()
    for _ in range(max(MAX_COUPLING_SWEEPS, n_classes)):
        Qp = np.einsum("tjn,jn->tn", Q_left, p_left)
        pQp = np.einsum("tn,tn->n", p_left, Qp)
        active = np.abs(Qp - pQp).max(axis=0) >= tol / n_classes
        p[:, rows[~active]] = p_left[:, ~active]
        if not active.any():
            break
        if not active.all():
            rows, Q_left, p_left = rows[active], Q_left[..., active], p_left[:, active]
            Qp, pQp = Qp[:, active], pQp[active]
        _coupling_sweep(Q_left, p_left, Qp, pQp)
    else:
        p[:, rows] = p_left
    return np.ascontiguousarray((p / p.sum(axis=0)).T)


def _coupling_sweep(Q, p, Qp, pQp):
    """Update the probability of each class once, in place, for all rows. Invariants: Σp = 1, Qp = Q p, pQp = p'Q p."""
    for t in range(len(p)):
        step = (pQp - Qp[t]) / Q[t, t]
        total = 1.0 + step
        pQp += step * (step * Q[t, t] + 2.0 * Qp[t])
        pQp /= total * total
        Qp += step * Q[:, t]
        Qp /= total
        p[t] += step
        p /= total


def _checked_pairwise(pairwise):
    """Return r, clipped and with a zero diagonal, as (n_classes, n_classes, n_rows), so that rows are contiguous."""
    pairwise = np.asarray(pairwise, dtype=np.float64)
    if pairwise.ndim != 3 or pairwise.shape[1] != pairwise.shape[2] or pairwise.shape[1] < 2:
        raise ValueError(
            f"pairwise must have shape (n_rows, n_classes, n_classes) with 2 classes or more, got {pairwise.shape}."
        )
    first, second = np.triu_indices(pairwise.shape[1], 1)
    above, below = pairwise[:, first, second].T, pairwise[:, second, first].T
    if not ((above >= 0.0) & (above <= 1.0)).all():
        wrong = above[~((above >= 0.0) & (above <= 1.0))][0]
        raise ValueError(f"pairwise must hold probabilities, 0 to 1, got {wrong}.")
    if not (np.abs(above + below - 1.0) <= 1e-6).all():
        wrong = np.abs(above + below - 1.0)
        raise ValueError(
            f"pairwise must have r_ij + r_ji = 1, got a sum that is off by {wrong.max()}: fill both halves."
        )
    r = np.zeros((*pairwise.shape[1:], len(pairwise)))
    r[first, second] = np.clip(above, MIN_PAIRWISE_PROBABILITY, 1.0 - MIN_PAIRWISE_PROBABILITY)
    r[second, first] = 1.0 - r[first, second]
    return r


def laplace_scale(residuals):
    """Return the scale s of a zero-mean Laplace distribution, estimated by maximum likelihood without outliers.

    The estimate is the mean of |r| over all residuals; the standard deviation of the distribution is √2 s. Residuals
    with |r| > 5 √2 s are then left out, and the mean is computed once more, as in LIBSVM (Lin and Weng 2004).

    Parameters
    ----------
    residuals : array-like of shape (n_rows,)
        y − f(x) of rows that were not used for training.

    Returns
    -------
    float
        0.0 if all residuals are zero.
    """
    size = np.abs(_finite("residuals", residuals))
    # The smallest residual is at most the mean, so that the selection is never empty.
    return float(size[size <= _OUTLIER_DEVIATIONS * math.sqrt(2.0) * size.mean()].mean())


def laplace_interval(scale, level):
    """Return the half width h with P(|z| <= h) = level for z ~ Laplace(0, scale): h = −scale log(1 − level).

    Parameters
    ----------
    scale : float
        Scale of the distribution, >= 0.
    level : float
        Probability, 0 < level < 1.

    Returns
    -------
    float
    """
    if not 0.0 <= scale < math.inf:
        raise ValueError(f"scale must be a finite number >= 0, got {scale}.")
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must lie between 0 and 1, got {level}: 0.9 is an interval that holds 90 % of targets.")
    return float(-scale * math.log1p(-level))


def density_marks(decision):
    """Return the ten marks from which `marks_probability` computes probabilities of a one-class model.

    Let a_0 <= ... <= a_{m−1} < 0 be the m negative decision values and b_1 <= ... <= b_q the q others. Five bins on
    each side of zero, with equally many values, have the eleven edges

        a_0, a_⌊m/5⌋, a_⌊2m/5⌋, a_⌊3m/5⌋, a_⌊4m/5⌋, 0, b_⌊q/5⌋, b_⌊2q/5⌋, b_⌊3q/5⌋, b_⌊4q/5⌋, b_q

    The marks are the midpoints of adjacent edges (Que and Lin 2022; LIBSVM >= 3.31).

    Parameters
    ----------
    decision : array-like of shape (n_rows,)
        Decision values of the training rows.

    Returns
    -------
    ndarray of shape (10,)
        Non-decreasing.

    Raises
    ------
    ValueError
        If there are fewer than five negative or five other values; LIBSVM does not accept these either.
    """
    ordered = np.sort(_finite("decision", decision))
    n_bins = _N_MARKS // 2  # each side of zero
    n_below = int(np.searchsorted(ordered, 0.0, side="left"))
    n_above = len(ordered) - n_below
    if min(n_below, n_above) < n_bins:
        raise ValueError(
            f"decision must have at least {n_bins} values below zero and {n_bins} others for density marks, "
            f"got {n_below} and {n_above}: train on more rows, raise nu, or do without probabilities."
        )
    below = ordered[np.arange(n_bins) * n_below // n_bins]
    above = ordered[n_below - 1 + np.arange(1, n_bins + 1) * n_above // n_bins]
    edges = np.concatenate([below, [0.0], above])
    return 0.5 * edges[:-1] + 0.5 * edges[1:]


def marks_probability(decision, marks):
    """Return the probability of being an inlier, by the bin between marks that contains the decision value.

    It is 0.001 below the first mark, i / 10 from mark i (counted from 1) to the next one, and 0.999 from the last mark.
    For a value that equals the last mark LIBSVM returns 0; here it is 0.999, so that the probability is a
    non-decreasing function of the decision value.

    Parameters
    ----------
    decision : array-like
        Decision values, of any shape.
    marks : array-like of shape (10,)
        From `density_marks` or a LIBSVM model file, non-decreasing.

    Returns
    -------
    ndarray of the shape of decision
    """
    marks = _finite("marks", marks)
    if len(marks) != _N_MARKS or (np.diff(marks) < 0.0).any():
        raise ValueError(f"marks must be {_N_MARKS} numbers in non-decreasing order, got {marks.tolist()}.")
    decision = np.asarray(decision, dtype=np.float64)
    if np.isnan(decision).any():
        raise ValueError("decision must not be NaN, which is in no bin; check the rows.")
    return BIN_PROBABILITIES[np.searchsorted(marks, decision, side="right")]
