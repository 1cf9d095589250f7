"""Objectives, duality gaps and KKT violations in plain NumPy, for any w and any feasible beta.

By weak duality, dual(beta) <= optimum <= primal(w) for every w and every feasible beta, so that the gap between the two
values proves how accurate a solution is. Solvers compute both values in compiled loops; the functions here check them,
and use none of those loops.

Examples
--------
>>> from widemargin import certificates
>>> certificates.relative_gap(primal=2.0, dual=1.5)
0.25
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from widemargin._runtime.argument_types import Floats

if TYPE_CHECKING:  # only annotations need these: nothing of what is checked is imported
    from widemargin.data.matrix import Matrix
    from widemargin.problems.elastic_net import ElasticNet
    from widemargin.problems.formulations import DualQP, KernelQP

_SUM_TOL = 1e-9  # difference of a sum of dual variables from the required one, relative to their sizes
_ROUNDING_TOL = 1e-12  # excess of |X'beta| over the L1 penalty, relative to |X|'|beta|, that is taken for rounding
_TINY, _LARGEST = float(np.finfo(np.float64).tiny), float(np.finfo(np.float64).max)


class Certificate(NamedTuple):
    """A proof that dual <= optimum <= primal."""

    primal: float
    dual: float

    @property
    def gap(self) -> float:
        """(primal − dual) / |primal|: the objective exceeds the optimum by at most this fraction of itself."""
        return relative_gap(self.primal, self.dual)


def relative_gap(primal: float, dual: float, scale: float = 0.0) -> float:
    """Return (primal − dual) / max(|primal|, scale); 0 if all are 0, the largest double if the quotient overflows."""
    primal, size = float(primal), max(float(scale), _TINY)
    gap = (primal - float(dual)) / (size if abs(primal) < size else abs(primal))
    return _LARGEST if gap > _LARGEST else gap


def scores(X: "Matrix", w: Floats) -> Floats:
    """Return X w for a Matrix, computed by NumPy or SciPy."""
    return X.values @ w[: X.n_features] + (X.constant * w[-1] if X.constant else 0.0)


def combination(X: "Matrix", c: Floats) -> Floats:
    """Return X'c for a Matrix, computed by NumPy or SciPy."""
    v = X.values.T.astype(np.float64) @ c
    return np.append(v, X.constant * c.sum()) if X.constant else v


def losses(problem: "DualQP", s: Floats) -> Floats:
    """Return the loss of each row at scores s: the maximum of b r − ε|b| − ½ curvature b² over lower <= b <= upper.

    With an entropy, entropy H(b) is added to what is maximised.
    """
    r = problem.target - s
    if problem.entropy:
        width, bound = problem.upper - problem.lower, np.where(r > 0.0, problem.upper, problem.lower)
        return bound * r + problem.entropy * width * np.log1p(np.exp(-np.abs(r) / problem.entropy))
    b = loss_slopes(problem, r)
    return b * r - problem.epsilon * np.abs(b) - 0.5 * problem.curvature * b**2


def loss_slopes(problem: "DualQP", r: Floats) -> Floats:
    """Return the derivative of each row's loss by its residual r = target − score; 0 at a kink.

    It is the b that attains the maximum in `losses`. At the optimum beta_i is this number, unless row i is at a kink.
    """
    if problem.entropy:
        e = np.exp(-np.abs(r) / problem.entropy)
        share = (problem.upper - problem.lower) * (e / (1.0 + e))
        return np.where(r > 0.0, problem.upper - share, problem.lower + share)
    excess = np.sign(r) * np.maximum(np.abs(r) - problem.epsilon, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        b = np.where(excess == 0.0, 0.0, excess / problem.curvature)
    return np.clip(b, problem.lower, problem.upper)


def primal(problem: "DualQP", w: Floats, intercept: float = 0.0) -> float:
    """Return ½|w|² + dual_sum b + Σ loss_i, where b is an intercept that is not penalised, and part of the scores."""
    loss = losses(problem, scores(problem.X, w) + intercept).sum()
    return 0.5 * w @ w + problem.dual_sum * intercept + loss


def dual(problem: "DualQP", beta: Floats) -> float:
    """Return Σ target_i beta_i − ε_i |beta_i| − ½ curvature_i beta_i² + entropy H_i(beta_i), less ½|X'beta|².

    Raises
    ------
    ValueError
        If beta violates a box constraint, or the intercept is not penalised and Σ beta_i differs from `dual_sum`.
    """
    outside = (beta < problem.lower) | (beta > problem.upper)
    if outside.any():
        i = int(np.argmax(outside))
        raise ValueError(f"beta[{i}] = {beta[i]} lies outside [{problem.lower[i]}, {problem.upper[i]}].")
    total = beta.sum()
    if problem.free_intercept and abs(total - problem.dual_sum) > _SUM_TOL * max(np.abs(beta).sum(), problem.dual_sum):
        raise ValueError(f"beta sums to {total}, not to {problem.dual_sum}.")
    v = combination(problem.X, beta)
    separable = problem.target * beta - problem.epsilon * np.abs(beta) - 0.5 * problem.curvature * beta**2
    if problem.entropy:
        separable = separable + problem.entropy * entropies(problem, beta)
    return separable.sum() - 0.5 * v @ v


def entropies(problem: "DualQP", beta: Floats) -> Floats:
    """Return H_i(beta_i) = −a log(a / (a + c)) − c log(c / (a + c)), a and c the distances of beta_i to its bounds."""
    width, part = problem.upper - problem.lower, np.minimum(beta - problem.lower, problem.upper - beta)
    with np.errstate(divide="ignore", invalid="ignore"):
        fraction = part / width
        entropy = -part * np.log(fraction) - (width - part) * np.log1p(-fraction)
    return np.where(fraction > 0.0, entropy, 0.0)


def certify(problem: "DualQP", w: Floats, beta: Floats, intercept: float = 0.0) -> Certificate:
    """Return the Certificate of w and beta, and of an intercept that is not penalised."""
    return Certificate(primal(problem, w, intercept), dual(problem, beta))


def violations(problem: "DualQP", w: Floats, beta: Floats) -> Floats:
    """Return by how much each dual variable violates its KKT condition at scores X w; 0 where the condition holds.

    That is the slope of the dual objective in the direction, up or down, in which the dual variable may still move.
    With an entropy it is ∞ at a bound.
    """
    if problem.entropy:
        return np.abs(problem.target - scores(problem.X, w) + _entropy_slopes(problem, beta))
    slope = problem.target - scores(problem.X, w) - problem.curvature * beta
    right_slope = slope - np.where(beta >= 0, problem.epsilon, -problem.epsilon)
    left_slope = slope + np.where(beta <= 0, problem.epsilon, -problem.epsilon)
    upwards = np.where(beta < problem.upper, np.maximum(right_slope, 0.0), 0.0)
    downwards = np.where(beta > problem.lower, np.maximum(-left_slope, 0.0), 0.0)
    return np.maximum(upwards, downwards)


def _entropy_slopes(problem: "DualQP", beta: Floats) -> Floats:
    """Return the derivative of entropy H_i at beta_i; 0 for rows without cost."""
    above, below = problem.upper - beta, beta - problem.lower
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(above + below > 0.0, problem.entropy * (np.log(above) - np.log(below)), 0.0)


class _MarginLoss(NamedTuple):
    """A loss of margins for the cost 1, its derivative, and the dual term of a for a cost, −∞ if it is not feasible."""

    value: Callable[[Floats], Floats]
    slope: Callable[[Floats], Floats]
    dual_term: Callable[[Floats, Floats], Floats]


def _dual_term_of_squared_hinge(a: Floats, cost: Floats) -> Floats:
    """Return a − a² / (4 cost)."""
    square = np.divide(a * a, 4.0 * cost, out=np.zeros_like(a), where=cost > 0.0)
    return np.where((a < 0.0) | ((cost == 0.0) & (a != 0.0)), -np.inf, a - square)


def _dual_term_of_log_loss(a: Floats, cost: Floats) -> Floats:
    """Return −a log(a / cost) − (cost − a) log((cost − a) / cost)."""
    p = np.divide(a, cost, out=np.zeros_like(a), where=cost > 0.0)
    terms = [q * np.log(np.where(q > 0.0, q, 1.0)) for q in (p, 1.0 - p)]
    return np.where((a < 0.0) | (a > cost), -np.inf, -cost * (terms[0] + terms[1]))


_MARGIN_LOSSES = {
    "squared_hinge": _MarginLoss(
        lambda m: np.maximum(0.0, 1.0 - m) ** 2, lambda m: -2.0 * np.maximum(0.0, 1.0 - m), _dual_term_of_squared_hinge
    ),
    "log_loss": _MarginLoss(
        lambda m: np.log1p(np.exp(-np.abs(m))) + np.maximum(0.0, -m),
        lambda m: -np.exp(-np.logaddexp(0.0, m)),
        _dual_term_of_log_loss,
    ),
}


def certify_elastic_net(problem: "ElasticNet", w: Floats, beta: Floats, intercept: float = 0.0) -> Certificate:
    """Return the Certificate of weights, signed dual variables, and an intercept that is not penalised.

    Raises
    ------
    ValueError
        If a dual variable has not the sign of its row, belongs to a row of zero cost or exceeds the cost with the log
        loss, if |X'beta| exceeds the L1 penalty without an L2 penalty, or if the intercept is not penalised and beta
        does not sum to 0.
    """
    rows = _MARGIN_LOSSES[problem.loss.name]
    of_rows = rows.value(problem.sign * (scores(problem.X, w) + intercept))
    primal = problem.l1 * np.abs(w).sum() + 0.5 * problem.l2 * (w @ w) + problem.cost @ of_rows
    terms = rows.dual_term(problem.sign * beta, problem.cost)
    if (terms == -np.inf).any():
        i = int(np.argmin(terms))
        raise ValueError(f"beta[{i}] = {beta[i]} is not feasible for sign {problem.sign[i]}, cost {problem.cost[i]}.")
    if problem.free_intercept and abs(beta.sum()) > _SUM_TOL * np.abs(beta).sum():
        raise ValueError(f"beta sums to {beta.sum()}, not to 0.")
    excess = np.maximum(0.0, np.abs(combination(problem.X, beta)) - problem.l1)
    if problem.l2 == 0.0:
        if (excess > _ROUNDING_TOL * (problem.l1 + _absolute_combination(problem.X, beta))).any():
            raise ValueError(f"|X'beta| exceeds {problem.l1} by {excess.max()} in column {int(np.argmax(excess))}.")
        excess[:] = 0.0
    of_penalty = excess @ excess / (2.0 * problem.l2) if problem.l2 else 0.0
    return Certificate(primal, terms.sum() - of_penalty)


def _absolute_combination(X: "Matrix", beta: Floats) -> Floats:
    """Return |X|'|beta|, the sizes of the sums in X'beta."""
    v = abs(X.values.T.astype(np.float64)) @ np.abs(beta)
    return np.append(v, X.constant * np.abs(beta).sum()) if X.constant else v


def elastic_net_violations(problem: "ElasticNet", w: Floats, intercept: float = 0.0) -> Floats:
    """Return the smallest absolute value of a subgradient of the objective by each weight; 0 at the optimum.

    The derivative by an intercept that is not penalised is added at the end.
    """
    slopes = _MARGIN_LOSSES[problem.loss.name].slope
    a = -problem.cost * slopes(problem.sign * (scores(problem.X, w) + intercept))
    slope = problem.l2 * w - combination(problem.X, problem.sign * a)
    at_zero = np.maximum(0.0, np.abs(slope) - problem.l1)
    found = np.where(w == 0.0, at_zero, np.abs(slope + problem.l1 * np.sign(w)))
    return np.append(found, abs(problem.sign @ a)) if problem.free_intercept else found


def certify_kernel(problem: "KernelQP", K: Floats, beta: Floats, offsets: Floats) -> Certificate:
    """Return the Certificate of dual variables beta and offsets of a KernelQP.

    Parameters
    ----------
    problem : "KernelQP"
        Its field `K` is not used.
    K : ndarray of shape (n_rows, n_rows), float64
        The kernel matrix.
    beta, offsets : ndarray
        One number per dual variable, and one per group.

    Raises
    ------
    ValueError
        If beta violates a box constraint, or the sum of a group differs from that of `problem.start`.
    """
    _check_feasible(problem, beta)
    F = _kernel_gradient(problem, K, beta)
    value = 0.5 * (beta @ (F + problem.linear))
    reduced_gradient = F - np.repeat(offsets, np.diff(problem.ends))
    below, above = (beta - problem.lower) * reduced_gradient, (beta - problem.upper) * reduced_gradient
    gap = np.maximum(below, above).sum()
    return Certificate(gap - value, -value)


def kernel_violation(problem: "KernelQP", K: Floats, beta: Floats) -> float:
    """Return the largest KKT violation of all groups, max{F_t: beta_t > lower_t} − min{F_t: beta_t < upper_t}, or 0.

    F = K beta + p is the gradient.
    """
    F = _kernel_gradient(problem, K, beta)
    worst = 0.0
    for begin, end in zip(problem.ends[:-1], problem.ends[1:], strict=True):
        group = slice(begin, end)
        below_upper = F[group][beta[group] < problem.upper[group]]
        above_lower = F[group][beta[group] > problem.lower[group]]
        if len(below_upper) and len(above_lower):
            worst = max(worst, above_lower.max() - below_upper.min())
    return worst


def _kernel_gradient(problem: "KernelQP", K: Floats, beta: Floats) -> Floats:
    """Return F = K beta + p; the dual variables that share a kernel row are summed first."""
    return (K @ np.bincount(problem.row, beta, minlength=len(K)))[problem.row] + problem.linear


def _check_feasible(problem: "KernelQP", beta: Floats) -> None:
    outside = (beta < problem.lower) | (beta > problem.upper)
    if outside.any():
        t = int(np.argmax(outside))
        raise ValueError(f"beta[{t}] = {beta[t]} lies outside [{problem.lower[t]}, {problem.upper[t]}].")
    scale = max(1.0, np.abs(beta).sum(), np.abs(problem.start).sum())
    for g, (begin, end) in enumerate(zip(problem.ends[:-1], problem.ends[1:], strict=True)):
        total, required = beta[begin:end].sum(), problem.start[begin:end].sum()
        if abs(total - required) > _SUM_TOL * scale:
            raise ValueError(f"The dual variables of group {g} sum to {total}, not to {required}.")
