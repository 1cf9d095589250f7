"""The judge of pairs and measures, in exact arithmetic.

    pairs      ½|w|² + C · mean over pairs (i, j) of a query with y_i > y_j of max(0, 1 − <w, x_i − x_j>)
    measures   ½|w|² [+ ½ (b / intercept_scaling)²] + C max(0, max over labellings z of Δ(z) + 1/n Σ_i (z_i − y_i) f_i)

Of all labellings that miss so many positives and take so many negatives, the worst misses those of the smallest scores
and takes those of the largest; all pairs of counts are tried. Of all rankings, for average precision, the worst has
each negative row at its own best place among the positives, and all places are tried.
"""

from fractions import Fraction

import numpy as np
from tests.certificates.exact_numbers import Exact
from tests.certificates.judge import HALF, dense
from tests.certificates.reference import LONG, BoxQP, interior_point

_PLANES = 60
_DONE = 1e-13


class PairJudge:
    """Exact values of one ranking problem."""

    def __init__(self, problem):
        self.problem = problem
        X, y, query = dense(problem.X), problem.target, problem.query
        self.pairs = [(i, j) for i in range(len(y)) for j in range(len(y)) if y[i] > y[j] and query[i] == query[j]]
        higher, lower = np.array(self.pairs).T
        self.differences = X[higher].astype(LONG) - X[lower].astype(LONG)
        exact = Exact.of(X)
        self._D = exact[higher] - exact[lower]
        self.cost = Fraction(problem.C) / len(self.pairs)
        self.at_zero = Fraction(problem.C)

    def objective(self, w):
        """Return the objective at weights, a Fraction."""
        w = Exact.of(w)
        z = Exact.of(np.ones(len(self._D))) - self._D @ w
        return HALF * (w * w).total() + self.cost * z.positive_part().total()

    def dual_value(self, alpha):
        """Return the dual value of one variable per pair, between 0 and the cost of a pair; a Fraction."""
        alpha = Exact.of(np.clip(alpha, 0, np.nextafter(float(self.cost), 0.0)))
        v = self._D.T @ alpha
        return alpha.total() - HALF * (v * v).total()


class MeasureJudge:
    """Exact values of one problem of a measure."""

    def __init__(self, problem):
        self.problem = problem
        self.X = Exact.of(dense(problem.X))
        self.positive, self.negative = np.flatnonzero(problem.target > 0), np.flatnonzero(problem.target < 0)
        is_of_rankings = problem.measure == "average_precision"
        self.worst = self._worst_ranking if is_of_rankings else self._worst_labelling
        counts = () if is_of_rankings else _losses(problem.measure, len(self.positive), len(self.negative))
        self.losses = dict(counts)
        self.at_zero = Fraction(problem.C)

    def objective(self, w, b):
        """Return the objective at weights and an intercept, a Fraction."""
        w, b = Exact.of(w), Exact.of(b)
        value, _ = self.worst((self.X @ w + b).fractions())
        norm = (w * w).total()
        if self.problem.intercept_scaling:
            norm += (b.total() / Fraction(self.problem.intercept_scaling)) ** 2
        return HALF * norm + Fraction(self.problem.C) * value

    def _worst_ranking(self, scores):
        """Return the largest loss of a ranking less what its scores say, and the slope of that by each score."""
        high = sorted(self.positive, key=lambda i: -scores[i])
        low = sorted(self.negative, key=lambda i: -scores[i])
        p, weight = len(high), Fraction(2, len(high) * len(low))
        value, slopes = Fraction(0), [Fraction(0)] * len(scores)
        for j, row in enumerate(low, 1):
            best, total, place = Fraction(0), Fraction(0), p
            for k in range(p, 0, -1):
                total += Fraction(k, p * (k + j - 1) * (k + j)) - weight * (scores[high[k - 1]] - scores[row])
                best, place = (total, k - 1) if total > best else (best, place)
            value += best
            slopes[row] = weight * (p - place)
            for above in high[place:]:
                slopes[above] -= weight
        return value, slopes

    def _worst_labelling(self, scores):
        """Return the largest loss of a labelling less what its scores say, and the slope of that by each score."""
        n = len(scores)
        low = sorted(self.positive, key=lambda i: scores[i])
        high = sorted(self.negative, key=lambda i: -scores[i])
        missing, taking = [Fraction(0)], [Fraction(0)]
        for i in low:
            missing.append(missing[-1] - 2 * scores[i] / n)
        for i in high:
            taking.append(taking[-1] + 2 * scores[i] / n)
        value, (missed, taken) = max(
            ((loss + missing[a] + taking[b], (a, b)) for (a, b), loss in self.losses.items()), key=lambda one: one[0]
        )
        slopes = [Fraction(0)] * n
        if value <= 0:
            return Fraction(0), slopes
        for rows, slope in ((low[:missed], Fraction(-2, n)), (high[:taken], Fraction(2, n))):
            for i in rows:
                slopes[i] = slope
        return value, slopes


def _losses(measure, p, q):
    """Yield ((missed, taken), loss) for all counts that a measure allows."""
    name, _, k = measure.partition("@")
    n, k = p + q, int(k) if k else 0
    for missed in range(p + 1):
        for taken in range(q + 1):
            called = p - missed + taken
            if (name == "prbep" and missed != taken) or (k and called != k):
                continue
            hits = Fraction(p - missed)
            yield (
                (missed, taken),
                {
                    "error": lambda a=missed, b=taken: Fraction(a + b, n),
                    "f1": lambda a=missed, b=taken: Fraction(a + b, 2 * p - a + b),
                    "prbep": lambda a=missed: Fraction(a, p),
                    "precision": lambda h=hits: 1 - h / k,
                    "recall": lambda h=hits: 1 - h / p,
                }[name](),
            )


def measure_bracket(judge):
    """Return (lower, upper), Fractions between which the optimum lies: cutting planes with an exact oracle.

    The planes max over k of <g_k, w> + d_k bound the risk from below; ½|w|² plus that maximum is minimised by the
    interior-point method in the dual, whose value for any weights of planes that sum to C at most is a lower bound.
    """
    problem = judge.problem
    scaling = problem.intercept_scaling
    X = dense(problem.X).astype(LONG)
    X = np.column_stack([X, np.full(len(X), scaling, LONG)]) if scaling else X
    w = np.zeros(X.shape[1], LONG)
    G, offsets = [np.zeros(X.shape[1], LONG)], [Fraction(0)]
    lower, upper = Fraction(0), None
    for _ in range(_PLANES):
        coef, b = (w[:-1], w[-1:] * LONG(scaling)) if scaling else (w, np.zeros(1))
        here = judge.objective(coef, b)
        upper = here if upper is None else min(upper, here)
        if float(upper - lower) <= _DONE * float(upper):
            break
        scores = (judge.X @ Exact.of(coef) + Exact.of(b)).fractions()
        value, slopes = judge.worst(scores)
        G.append(X.T @ np.array([LONG(slope.numerator) / LONG(slope.denominator) for slope in slopes]))
        offsets.append(value - sum(a * s for a, s in zip(slopes, scores, strict=True)))
        weights = _plane_weights(np.array(G), offsets, problem.C)
        w = -np.array(G).T @ weights
        weights = np.minimum(np.maximum(weights, 0), problem.C).astype(np.float64)
        weights *= min(1.0, problem.C / weights.sum()) * (1 - 1e-15)
        v = Exact.of(np.array(G)).T @ Exact.of(weights)
        value = sum(Fraction(float(a)) * d for a, d in zip(weights, offsets, strict=True)) - HALF * (v * v).total()
        lower = max(lower, value)
    return lower, upper


def _plane_weights(G, offsets, C):
    """Return the weights of planes, at least 0 and summing to C, that maximise Σ a_k d_k − ½|Σ a_k g_k|²."""
    m = len(G)
    linear = np.array([-LONG(float(d)) for d in offsets])
    one = np.ones((1, m), LONG)
    zero = np.zeros(m, LONG)
    return interior_point(BoxQP(G, None, linear, zero, zero, zero + LONG(C) * 2, one, np.array([LONG(C)])))[0]
