"""The optimum by another way: a primal-dual interior-point method in long double, judged in exact arithmetic.

    minimise ½ β'(K + diag(curvature)) β + p'β   over   lower <= β <= upper,  E β = e

K = A A' or a kernel matrix. Mehrotra's predictor and corrector (1992). The Newton system is solved over the variables
or, where these are many, over the columns of A and E. Where long double is no wider than double the answer is less
close; what is reported is always a pair of numbers, found exactly, between which the optimum lies.
"""

from dataclasses import dataclass

import numpy as np
from tests.certificates.judge import dense

LONG = np.longdouble
_ITERATIONS = 100
_TO_BOUNDARY = LONG(0.995)
_MOST_ROWS = 120  # up to here the Newton system is solved over the rows, which is the more exact way
_REFINEMENTS = 2
_DONE = 1e-18  # complementarity against the size of the objective


@dataclass(frozen=True)
class BoxQP:
    """The problem in the module's formula, in long double; either A or K is None."""

    A: np.ndarray | None
    K: np.ndarray | None
    linear: np.ndarray
    curvature: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    E: np.ndarray
    e: np.ndarray

    def product(self, beta):
        """Return K β."""
        return self.K @ beta if self.A is None else self.A @ (self.A.T @ beta)

    def part(self, kept):
        """Return the problem of some variables; the others are 0."""
        return BoxQP(
            None if self.A is None else self.A[kept], None if self.K is None else self.K[np.ix_(kept, kept)],
            self.linear[kept], self.curvature[kept], self.lower[kept], self.upper[kept], self.E[:, kept], self.e,
        )  # fmt: skip


def cholesky(M):
    """Return the lower triangular L with L L' = M, nearly so if M, of diagonal 1, is not positive definite."""
    ridge = LONG(0)
    while True:
        L = _cholesky(M, ridge)
        if L is not None:
            return L
        ridge = max(10 * ridge, 4 * np.finfo(LONG).eps)
        if ridge > 1e-6:
            raise ArithmeticError("The matrix is not positive definite.")


def _cholesky(M, ridge):
    L = np.zeros_like(M)
    for k in range(len(M)):
        column = M[k:, k] - L[k:, :k] @ L[k, :k]
        pivot = column[0] + ridge
        if not pivot > np.finfo(LONG).eps / 8:
            return None
        L[k:, k] = column / np.sqrt(pivot)
        L[k, k] = np.sqrt(pivot)
    return L


def solved(L, b):
    """Return x with L L' x = b."""
    x = b.copy()
    for k in range(len(L)):
        x[k] = (x[k] - L[k, :k] @ x[:k]) / L[k, k]
    for k in range(len(L) - 1, -1, -1):
        x[k] = (x[k] - L[k + 1 :, k] @ x[k + 1 :]) / L[k, k]
    return x


class _NewtonSystem:
    """Steps Δβ, Δr with (A A' + D) Δβ − E'Δr = g and E Δβ = h, for a positive diagonal D."""

    def __init__(self, qp, D):
        self.qp, self.D = qp, D
        self.by_columns = qp.K is None and len(D) > _MOST_ROWS and qp.A.shape[1] < len(D)
        if self.by_columns:
            self.B = np.column_stack([qp.A, qp.E.T])
            M = self.B.T @ (self.B / D[:, None])
            inner = np.arange(qp.A.shape[1])
            M[inner, inner] += 1
        else:
            M = (qp.A @ qp.A.T if qp.K is None else qp.K) + np.diag(D)
        self.size = np.sqrt(np.diag(M))
        self.L = cholesky(M / np.outer(self.size, self.size))
        if not self.by_columns:
            self.Z = np.array([self._inverse(row) for row in qp.E]).reshape(len(qp.E), len(D))
            self.S = self.Z @ qp.E.T

    def _inverse(self, b):
        return solved(self.L, b / self.size) / self.size

    def step(self, g, h):
        """Return Δβ and Δr, refined by their residuals."""
        beta, r = self._once(g, h)
        for _ in range(_REFINEMENTS):
            rest = g - self.qp.product(beta) - self.D * beta + self.qp.E.T @ r
            more = self._once(rest, h - self.qp.E @ beta)
            beta, r = beta + more[0], r + more[1]
        return beta, r

    def _once(self, g, h):
        qp = self.qp
        if self.by_columns:
            n_columns = qp.A.shape[1]
            right = self.B.T @ (g / self.D)
            right[n_columns:] -= h
            u = self._inverse(right)
            return (g - self.B @ u) / self.D, -u[n_columns:]
        x = self._inverse(g)
        if not len(qp.E):
            return x, np.zeros(0, LONG)
        r = np.linalg.solve(self.S.astype(np.float64), (h - qp.E @ x).astype(np.float64)).astype(LONG)
        return x + self.Z.T @ r, r


def _longest(x, dx):
    """Return the longest step up to 1 that keeps x + step dx positive, a little inside."""
    falling = dx < 0
    return min(LONG(1), _TO_BOUNDARY * np.min(-x[falling] / dx[falling])) if falling.any() else LONG(1)


@dataclass
class _Point:
    beta: np.ndarray
    r: np.ndarray
    low: np.ndarray  # multipliers of β >= lower and β <= upper
    high: np.ndarray


class _Steps:
    """What a Newton step is made of at one point."""

    def __init__(self, qp, point, bounded):
        self.qp, self.point, self.bounded = qp, point, bounded
        self.has_low, self.has_high = bounded
        one = LONG(1)
        self.s = np.where(self.has_low, point.beta - qp.lower, one)
        self.t = np.where(self.has_high, qp.upper - point.beta, one)
        gradient = qp.product(point.beta) + qp.curvature * point.beta + qp.linear
        self.stationarity = gradient - qp.E.T @ point.r - point.low + point.high
        self.balance = qp.e - qp.E @ point.beta
        count = self.has_low.sum() + self.has_high.sum()
        self.mu = (self.s * point.low + self.t * point.high).sum() / max(1, count)
        self.system = _NewtonSystem(qp, qp.curvature + point.low / self.s + point.high / self.t)

    def to(self, low_target, high_target):
        """Return the step towards the complementarity products given."""
        point = self.point
        low_target, high_target = np.where(self.has_low, low_target, 0), np.where(self.has_high, high_target, 0)
        right = -self.stationarity + low_target / self.s - point.low - high_target / self.t + point.high
        dbeta, dr = self.system.step(right, self.balance)
        dlow = np.where(self.has_low, (low_target - point.low * dbeta) / self.s - point.low, 0)
        dhigh = np.where(self.has_high, (high_target + point.high * dbeta) / self.t - point.high, 0)
        return dbeta, dr, dlow, dhigh

    def length(self, step):
        dbeta, _, dlow, dhigh = step
        point, low, high = self.point, self.has_low, self.has_high
        return min(
            _longest(self.s[low], dbeta[low]),
            _longest(self.t[high], -dbeta[high]),
            _longest(point.low[low], dlow[low]),
            _longest(point.high[high], dhigh[high]),
        )


def _start(qp, has_low, has_high):
    """Return a point inside the bounds, of the size that β is likely to have."""
    diagonal = ((qp.A**2).sum(axis=1) if qp.K is None else np.diag(qp.K)) + qp.curvature
    size = max(np.abs(qp.linear).max(), LONG(1e-12)) / max(diagonal.mean(), LONG(1e-30))
    if len(qp.E):  # sums that are not 0 say how large β is
        size = max(size, np.max(np.abs(qp.e) / np.maximum(qp.E.sum(axis=1), 1)))
    room = np.where(has_low & has_high, (qp.upper - qp.lower) / 2, size)
    inward = np.minimum(room, size)
    beta = np.where(has_low, qp.lower + inward, qp.upper - inward)
    beta = np.where(has_low & (qp.lower < 0) & (qp.upper <= 0), qp.upper - inward, beta)
    push = np.abs(qp.linear).max() + np.abs(qp.product(beta)).max() + LONG(1e-12)
    return _Point(beta, np.zeros(len(qp.E), LONG), np.where(has_low, push, 0), np.where(has_high, push, 0))


def interior_point(qp):
    """Return β and r of the last point that arithmetic allowed."""
    has_low, has_high = np.isfinite(qp.lower), np.isfinite(qp.upper)
    point = _start(qp, has_low, has_high)
    best, least = point, np.inf
    for _ in range(_ITERATIONS):
        with np.errstate(all="ignore"):
            try:
                steps = _Steps(qp, point, (has_low, has_high))
                affine = steps.to(LONG(0), LONG(0))
                length = steps.length(affine)
                s, t = steps.s + length * affine[0], steps.t - length * affine[0]
                low, high = point.low + length * affine[2], point.high + length * affine[3]
                count = max(1, has_low.sum() + has_high.sum())
                ahead = (np.where(has_low, s * low, 0) + np.where(has_high, t * high, 0)).sum() / count
                target = min((ahead / steps.mu) ** 3, LONG(1)) * steps.mu
                step = steps.to(target - affine[0] * affine[2], target + affine[0] * affine[3])
            except (ArithmeticError, np.linalg.LinAlgError):
                break
            length = steps.length(step)
            if not all(np.isfinite(part).all() for part in step):
                break
            wrong = _wrong(qp, steps, point)
            if wrong < least:
                best, least = point, wrong
            if wrong < _DONE:
                break
            point = _Point(*(a + length * b for a, b in zip(vars(point).values(), step, strict=True)))
    return best.beta, best.r


def _wrong(qp, steps, point):
    """Return how far a point is from optimal, relative."""
    value = abs(qp.linear @ point.beta) + point.beta @ qp.product(point.beta) + LONG(1e-300)
    gap = steps.s @ point.low + steps.t @ point.high
    return (gap + np.abs(steps.stationarity) @ np.abs(point.beta) + np.abs(steps.balance) @ np.abs(point.r)) / value


def linear_qp(problem, judge):
    """Return the dual of a linear problem as a BoxQP: one variable per row, or two in regression."""
    X = dense(problem.X).astype(LONG)
    if problem.intercept == "penalised":
        X = np.column_stack([X, np.full(len(X), problem.intercept_scaling, LONG)])
    lower, upper = (bound.astype(LONG) for bound in judge.bounds())
    y, cost = problem.target.astype(LONG), problem.cost.astype(LONG)
    curvature = np.zeros(len(y), LONG)
    if problem.is_squared:
        np.divide(1, 2 * cost, out=curvature, where=cost > 0)
    linear = -y
    if problem.is_regression:
        zero = np.zeros(len(y), LONG)
        X, curvature = np.concatenate([X, X]), np.concatenate([curvature, curvature])
        linear = np.concatenate([problem.epsilon - y, -problem.epsilon - y])
        lower, upper = np.concatenate([zero, lower]), np.concatenate([upper, zero])
    E = np.ones((int(problem.intercept == "free"), len(linear)), LONG)
    return BoxQP(X, None, linear, curvature, lower, upper, E, np.zeros(len(E), LONG))


def linear_bracket(problem, judge):
    """Return (lower, upper), Fractions between which the optimum of a linear problem lies."""
    there = np.flatnonzero(problem.cost > 0.0)
    qp = linear_qp(problem, judge)
    n = len(problem.cost)
    kept = np.concatenate([there, there + n]) if problem.is_regression else there
    found, r = interior_point(qp.part(kept))
    beta = np.zeros(len(qp.linear), LONG)
    beta[kept] = found
    w = qp.A.T @ beta
    beta = beta[:n] + beta[n:] if problem.is_regression else beta
    if problem.intercept == "penalised":
        w, b = w[:-1], w[-1:] * LONG(problem.intercept_scaling)
    else:
        b = -r if len(r) else np.zeros(1)
    nothing = np.zeros(n)
    lower = max(judge.dual_value(judge.repaired(one)) for one in (beta, nothing))
    middle = np.array([np.median(problem.target) if problem.intercept == "free" else 0.0])
    return lower, min(judge.objective(w, b), judge.objective(np.zeros(len(w)), middle))


def kernel_bracket(judge):
    """Return (lower, upper), Fractions between which the optimum of a kernel problem lies."""
    form = judge.form
    variables = np.flatnonzero(form.upper > form.lower)
    K = judge.K_long[np.ix_(form.row, form.row)]
    qp = BoxQP(
        None, K, form.linear.astype(LONG), np.zeros(len(form.row), LONG), form.lower.astype(LONG),
        form.upper.astype(LONG), form.groups.astype(LONG), np.array([LONG(float(total)) for total in form.totals]),
    )  # fmt: skip
    found, r = interior_point(qp.part(variables))
    beta = np.zeros(len(form.row), LONG)
    beta[variables] = found
    beta = np.clip(beta, qp.lower, qp.upper)
    found = judge.objective(judge.folded(beta), *judge.read_offsets(r))
    candidates = [beta] if any(form.totals) else [beta, np.zeros(len(beta))]
    return max(map(judge.dual_value, candidates)), min(found, *judge.plain_objectives())


def pairs_bracket(judge):
    """Return (lower, upper), Fractions between which the optimum of a ranking problem lies."""
    A = judge.differences.astype(LONG)
    n, cost = len(A), LONG(judge.problem.C) / len(judge.pairs)
    qp = BoxQP(
        A, None, -np.ones(n, LONG), np.zeros(n, LONG), np.zeros(n, LONG), np.full(n, cost), np.zeros((0, n), LONG),
        np.zeros(0, LONG),
    )  # fmt: skip
    beta, _ = interior_point(qp)
    beta = np.clip(beta, qp.lower, qp.upper)
    w = A.T @ beta
    return judge.dual_value(beta), min(judge.objective(w), judge.objective(np.zeros(len(w))))
