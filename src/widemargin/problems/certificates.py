"""The judge: objectives, duality gap and violations in plain NumPy, for any w and any feasible beta.

Solvers measure themselves with compiled loops of their own; this file shares no code with them. Weak duality,
dual(beta) <= optimum <= primal(w), holds for every w and every feasible beta, so the gap is a proof.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from widemargin._runtime.argument_types import Floats

if TYPE_CHECKING:  # this file runs without what it judges
    from widemargin.data.matrix import Matrix
    from widemargin.problems.formulations import DualQP, KernelQP

_LIMITS = np.finfo(float)


class Certificate(NamedTuple):
    """What is proved: dual <= optimum <= primal."""

    primal: float
    dual: float

    @property
    def gap(self) -> float:
        """(primal − dual) / |primal|: the objective is at most this fraction away from the optimum."""
        return relative_gap(self.primal, self.dual)


def relative_gap(primal: float, dual: float, scale: float = 0.0) -> float:
    """Return (primal − dual) / max(|primal|, scale), and 0 where all are 0; the largest number if it overflows."""
    gap = float(primal - dual) / max(float(abs(primal)), float(scale), float(_LIMITS.tiny))
    return min(gap, float(_LIMITS.max))


def scores(X: "Matrix", w: Floats) -> Floats:
    """Return X w for a Matrix, by NumPy or SciPy alone."""
    return X.values @ w[: X.n_features] + (X.constant * w[-1] if X.constant else 0.0)


def combination(X: "Matrix", c: Floats) -> Floats:
    """Return X'c for a Matrix, by NumPy or SciPy alone."""
    v = X.values.T.astype(np.float64) @ c
    return np.append(v, X.constant * c.sum()) if X.constant else v


def losses(problem: "DualQP", s: Floats) -> Floats:
    """Return each row's loss at scores s: the best value of b r − ε|b| − ½ curvature b² over the row's interval."""
    r = problem.target - s
    beyond = np.sign(r) * np.maximum(np.abs(r) - problem.epsilon, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        b = np.where(beyond == 0.0, 0.0, beyond / problem.curvature)
    b = np.clip(b, problem.lower, problem.upper)
    return b * r - problem.epsilon * np.abs(b) - 0.5 * problem.curvature * b**2


def primal(problem: "DualQP", w: Floats) -> float:
    """Return ½|w|² + Σ loss_i."""
    return 0.5 * w @ w + losses(problem, scores(problem.X, w)).sum()


def dual(problem: "DualQP", beta: Floats) -> float:
    """Return the dual value of beta, which must lie in its box: ValueError otherwise."""
    outside = (beta < problem.lower) | (beta > problem.upper)
    if outside.any():
        i = int(np.argmax(outside))
        raise ValueError(f"beta[{i}] = {beta[i]} lies outside [{problem.lower[i]}, {problem.upper[i]}].")
    v = combination(problem.X, beta)
    separable = problem.target * beta - problem.epsilon * np.abs(beta) - 0.5 * problem.curvature * beta**2
    return separable.sum() - 0.5 * v @ v


def certify(problem: "DualQP", w: Floats, beta: Floats) -> Certificate:
    """Return the Certificate of w and beta."""
    return Certificate(primal(problem, w), dual(problem, beta))


def violations(problem: "DualQP", w: Floats, beta: Floats) -> Floats:
    """Return by how much each multiplier violates its optimality (KKT) condition at scores X w; 0 where it holds."""
    slope = problem.target - scores(problem.X, w) - problem.curvature * beta
    rise = slope - np.where(beta >= 0, problem.epsilon, -problem.epsilon)
    fall = slope + np.where(beta <= 0, problem.epsilon, -problem.epsilon)
    upwards = np.where(beta < problem.upper, np.maximum(rise, 0.0), 0.0)
    downwards = np.where(beta > problem.lower, np.maximum(-fall, 0.0), 0.0)
    return np.maximum(upwards, downwards)


def certify_kernel(problem: "KernelQP", K: Floats, beta: Floats, offsets: Floats) -> Certificate:
    """Return the Certificate of multipliers beta and offsets of a KernelQP.

    Parameters
    ----------
    problem : "KernelQP"
        Its own kernel rows are not looked at.
    K : ndarray of shape (n_rows, n_rows), float64
        The kernel matrix.
    beta, offsets : ndarray
        One number per multiplier and per group.

    Raises
    ------
    ValueError
        If a multiplier lies outside its interval, or a group has another sum than at the problem's start.
    """
    _check_feasible(problem, beta)
    F = _kernel_gradient(problem, K, beta)
    value = 0.5 * (beta @ (F + problem.linear))
    slack = F - np.repeat(offsets, np.diff(problem.ends))
    gap = np.maximum((beta - problem.lower) * slack, (beta - problem.upper) * slack).sum()
    return Certificate(gap - value, -value)


def kernel_violation(problem: "KernelQP", K: Floats, beta: Floats) -> float:
    """Return the largest F_t that may fall less the smallest that may rise, of the worst group; 0 if none violates."""
    F = _kernel_gradient(problem, K, beta)
    worst = 0.0
    for begin, end in zip(problem.ends[:-1], problem.ends[1:], strict=True):
        here = slice(begin, end)
        rising = F[here][beta[here] < problem.upper[here]]
        falling = F[here][beta[here] > problem.lower[here]]
        if len(rising) and len(falling):
            worst = max(worst, falling.max() - rising.min())
    return worst


def _kernel_gradient(problem: "KernelQP", K: Floats, beta: Floats) -> Floats:
    """Return F = K beta + p, the multipliers of each kernel row added up first."""
    return (K @ np.bincount(problem.row, beta, minlength=len(K)))[problem.row] + problem.linear


def _check_feasible(problem: "KernelQP", beta: Floats) -> None:
    outside = (beta < problem.lower) | (beta > problem.upper)
    if outside.any():
        t = int(np.argmax(outside))
        raise ValueError(f"beta[{t}] = {beta[t]} lies outside [{problem.lower[t]}, {problem.upper[t]}].")
    room = max(1.0, np.abs(beta).sum(), np.abs(problem.start).sum())
    for g, (begin, end) in enumerate(zip(problem.ends[:-1], problem.ends[1:], strict=True)):
        total, owed = beta[begin:end].sum(), problem.start[begin:end].sum()
        if abs(total - owed) > 1e-9 * room:
            raise ValueError(f"The multipliers of group {g} sum to {total}, not to {owed}.")
