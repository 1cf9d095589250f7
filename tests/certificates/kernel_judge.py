"""The judge of kernel problems, in exact arithmetic: f = K β + b over the training rows.

    C-SVC       ½ β'Kβ + Σ c_i max(0, 1 − y_i f_i)
    ν-SVC       ½ β'Kβ − ν r Σ w_i + Σ w_i max(0, r − y_i f_i)             r the margin; the model is divided by it
    one-class   ½ β'Kβ − ν ρ Σ w_i + Σ w_i max(0, ρ − (K β)_i)
    ε-SVR       ½ β'Kβ + Σ c_i max(0, |y_i − f_i| − ε)
    ν-SVR       ½ β'Kβ + Σ c_i (max(0, |y_i − f_i| − ε) + ν ε)             ε is a variable

Each has a dual: maximise −½ β'Kβ − p'β with bounds and sums that are given in `_form`. Linear and polynomial kernels
and given matrices are exact here; the Gaussian is computed in long double. The library computes its kernel values in
double precision: `doubt` bounds what that can do to an objective.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from tests.certificates.exact_numbers import Exact
from tests.certificates.judge import HALF, dense

EPS = np.finfo(float).eps


@dataclass(frozen=True)
class Form:
    """The dual: variables of kernel rows, −p, bounds, and groups (lines of 0 and 1) with their sums."""

    row: np.ndarray
    linear: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    groups: np.ndarray
    totals: list


def kernel_values(problem):
    """Return the kernel matrix: exact, and in long double."""
    X = dense(problem.X)
    if problem.kernel == "rbf":
        wide = X.astype(np.longdouble)
        squares = ((wide[:, None, :] - wide[None, :, :]) ** 2).sum(axis=2)
        K = np.exp(-np.longdouble(problem.gamma) * squares)
        return Exact.of(K), K
    if problem.kernel == "precomputed":
        K = given_matrix(problem)
        return Exact.of(K), K.astype(np.longdouble)
    products = Exact.of(X) @ Exact.of(X).T
    if problem.kernel == "poly":
        one = products * np.full((1, 1), problem.gamma) + np.full((1, 1), problem.coef0)
        products = one * one
    K = np.array([[_rounded(one, products.exponent) for one in line] for line in products.mantissa])
    return products, K


def _rounded(mantissa, exponent):
    value = Fraction(int(mantissa)) * Fraction(2) ** exponent
    high = float(value)
    return np.longdouble(high) + np.longdouble(float(value - Fraction(high)))


def given_matrix(problem):
    """Return the matrix that is given to a model with kernel="precomputed": Gaussian, exactly symmetric."""
    X = dense(problem.X)
    squares = ((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2)
    return np.exp(-problem.gamma * squares)


class KernelJudge:
    """Exact values of one kernel problem of `nasty_kernel.Kernel`."""

    def __init__(self, problem):
        self.problem = problem
        self.K, self.K_long = kernel_values(problem)
        self.weight = problem.weights
        self.cost = problem.C * self.weight
        self.form = _form(problem, self.weight, self.cost)
        total = float(max(abs(total) for total in self.form.totals))
        self.scale = max(0.5 * total**2 * float(np.diag(self.K_long).mean()), float(abs(self._at_zero())))

    def objective(self, beta, b, extra):
        """Return the objective at β (one number per row), an intercept b and r, ρ or ε, a Fraction."""
        problem, kind = self.problem, self.problem.kind
        beta, b, extra = Exact.of(beta), Exact.of(np.array([b])), Exact.of(np.array([extra]))
        scores = self.K @ beta
        value = HALF * (beta * scores).total()
        f, y = scores + b, Exact.of(problem.target)
        if kind in ("c_svc", "eps_svr"):
            z = np.ones(1) if kind == "c_svc" else np.array([problem.epsilon])
            z = Exact.of(z) - y * f if kind == "c_svc" else abs(y - f) - z
            return value + (z.positive_part() * self.cost).total()
        prize = Fraction(problem.nu) * extra.total()
        if kind == "nu_svr":
            z = abs(y - f) - extra
            return value + (z.positive_part() * self.cost).total() + prize * sum(map(Fraction, self.cost.tolist()))
        z = extra - (scores if kind == "one_class" else y * f)
        return value + (z.positive_part() * self.weight).total() - prize * sum(map(Fraction, self.weight.tolist()))

    def _at_zero(self):
        return self.objective(np.zeros(len(self.weight)), 0.0, 0.0)

    def plain_objectives(self):
        """Return the objectives of models that are a constant."""
        middle = float(np.median(self.problem.target)) if self.problem.kind.endswith("svr") else 0.0
        return self._at_zero(), self.objective(np.zeros(len(self.weight)), middle, 0.0)

    def dual_value(self, variables):
        """Return the dual value of variables of the form, their sums put right exactly; a Fraction."""
        form = self.form
        exact = Exact.of(variables)
        for group, total in zip(form.groups, form.totals, strict=True):
            exact = _summing_to(exact, np.flatnonzero(group), total, variables, form)
        folded = Exact(np.zeros(len(self.weight), dtype=object) + 0, exact.exponent)
        for t, i in enumerate(form.row):
            folded.mantissa[i] = folded.mantissa[i] + exact.mantissa[t]
        return -HALF * (folded * (self.K @ folded)).total() - (exact * form.linear).total()

    def folded(self, variables):
        """Return one number per row: the sum of its variables."""
        beta = np.zeros(len(self.weight), variables.dtype)
        np.add.at(beta, self.form.row, variables)
        return beta

    def read_offsets(self, r):
        """Return b and r, ρ or ε, from the multipliers of the sums."""
        kind = self.problem.kind
        if kind == "nu_svc":
            return -(r[0] + r[1]) / 2, (r[0] - r[1]) / 2
        if kind == "nu_svr":
            return -(r[0] + r[1]) / 2, (r[1] - r[0]) / 2
        return (0.0, r[0]) if kind == "one_class" else (-r[0], 0.0)

    def doubt(self, beta):
        """Return by how much the objective at β may change with the rounding of kernel values."""
        problem = self.problem
        if problem.kernel == "precomputed":
            return 0.0
        X = dense(problem.X)
        size = np.sqrt(np.diag(self.K_long)).astype(np.float64)
        wrong = np.outer(size, size) * (X.shape[1] + 16) * EPS
        if problem.kernel == "rbf":
            squares = (X**2).sum(axis=1)
            wrong = wrong * (1.0 + problem.gamma * (squares[:, None] + squares[None, :]))
        scores = wrong @ np.abs(beta)
        cost = self.weight if problem.kind in ("nu_svc", "one_class") else self.cost
        return 0.5 * float(np.abs(beta) @ scores) + float(cost @ scores)


def _summing_to(exact, members, total, variables, form):
    """Return the variables with those of a group summing to a total: the rest is taken where there is most room."""
    rest = exact[members].total() - total
    bound = form.lower if rest > 0 else form.upper
    room = np.abs(variables[members] - bound[members]).astype(np.float64)
    for place in np.argsort(-room, kind="stable"):
        if rest == 0:
            break
        step = min(abs(rest), Fraction(float(room[place])))
        step = -step if rest > 0 else step
        step = Fraction(int(step * 2**1100), 2**1100) if step.denominator & (step.denominator - 1) else step
        alone = np.zeros(len(exact), dtype=object)
        alone[members[place]] = step.numerator
        exact = exact + Exact(alone, 1 - step.denominator.bit_length())
        rest += step
    return exact


def _form(problem, weight, cost):
    n, y, none = len(weight), problem.target, np.zeros(len(weight))
    rows, kind = np.arange(n), problem.kind
    if kind == "c_svc":
        return Form(rows, -y, np.where(y < 0, -cost, 0), np.where(y > 0, cost, 0), np.ones((1, n)), [Fraction(0)])
    if kind == "nu_svc":
        half = Fraction(problem.nu) * sum(map(Fraction, weight.tolist())) / 2
        groups = np.array([y > 0, y < 0], dtype=np.float64)
        return Form(rows, none, np.where(y < 0, -weight, 0), np.where(y > 0, weight, 0), groups, [half, -half])
    if kind == "one_class":
        whole = Fraction(problem.nu) * sum(map(Fraction, weight.tolist()))
        return Form(rows, none, none, weight, np.ones((1, n)), [whole])
    both, lower, upper = np.concatenate([rows, rows]), np.concatenate([none, -cost]), np.concatenate([cost, none])
    if kind == "eps_svr":
        linear = np.concatenate([problem.epsilon - y, -problem.epsilon - y])
        return Form(both, linear, lower, upper, np.ones((1, 2 * n)), [Fraction(0)])
    half = Fraction(problem.nu) * sum(map(Fraction, cost.tolist())) / 2
    groups = np.array([np.concatenate([none + 1, none]), np.concatenate([none, none + 1])])
    return Form(both, np.concatenate([-y, -y]), lower, upper, groups, [half, -half])
