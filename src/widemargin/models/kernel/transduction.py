"""Transduction: a C-SVC whose unlabelled rows have signs that are variables, too.

    minimise   ½|w|² + Σ_L cost_i max(0, 1 − s_i f(x_i)) + Σ_U cost(s_i) max(0, 1 − s_i f(x_i)),    f(x) = <w, φ(x)> + b

over w, b and the signs s_i of the unlabelled rows U, of which a given number are +1. The signs of the labelled rows L
are given. The cost of an unlabelled row depends on its sign only.

Given the signs, the problem is a C-SVC: convex, and solved with a certificate. Given f, the best signs are +1 for the
rows with the largest scores: if row m, of sign +1, and row l, of sign −1, exchange their signs, the objective changes
by

    g(f(x_l)) − g(f(x_m)),    g(t) = cost(+1) max(0, 1 − t) − cost(−1) max(0, 1 + t)

where g decreases everywhere, so that the exchange lowers the objective just if f(x_l) > f(x_m). Both steps together
lower the objective until no exchange does. With the final costs from the start, this would end near the signs of the
labelled rows' machine. The costs of unlabelled rows therefore begin at 1e-5 of the final ones and rise by half at a
time; after each rise, exchanges are made until there are none. Each problem starts from the last dual variables: if two
rows exchange their signs, they exchange their dual variables as well, which keeps their sum.

T. Joachims, Transductive inference for text classification using support vector machines, ICML 1999. As in SVM-light,
costs rise by half, where the article doubles them.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from widemargin.kernels.rows import KernelRows
from widemargin.problems.certificates import relative_gap
from widemargin.problems.classification import c_svc
from widemargin.problems.formulations import KernelQP
from widemargin.solvers.contract import KernelSolution, Status, changed

_FIRST_FACTOR = 1e-5  # of the final costs of unlabelled rows
_RISE = 1.5  # of the costs, from one stage to the next
_STOPPED = (Status.MAX_SECONDS, Status.CALLBACK, Status.INTERRUPTED)  # no further problem is solved
STAGE = np.dtype(
    [("factor", float), ("above", np.int64), ("exchanges", np.int64), ("iterations", np.int64), ("seconds", float),
     ("primal", float), ("gap", float)]
)  # fmt: skip
"""What is recorded of each problem that was solved: the factor of the costs of unlabelled rows; before it, how many
unlabelled rows had a positive score, and how many pairs exchanged their signs; iterations, seconds since the beginning,
objective with these costs, relative gap."""


@dataclass(frozen=True)
class PartlyLabelled:
    """Rows of which some have no sign; the formulas are those of this module.

    Attributes
    ----------
    K : KernelRows
        Of all rows.
    sign : ndarray
        +1 or −1, and 0 for unlabelled rows.
    cost : ndarray
        Of the labelled rows; not used for others.
    n_above : int
        How many unlabelled rows get the sign +1.
    cost_above, cost_below : float
        Of an unlabelled row of sign +1, and of sign −1.
    """

    K: KernelRows
    sign: np.ndarray
    cost: np.ndarray
    n_above: int
    cost_above: float
    cost_below: float

    @property
    def labelled(self):
        """The numbers of the labelled rows."""
        return np.flatnonzero(self.sign)

    @property
    def unlabelled(self):
        """The numbers of the unlabelled rows."""
        return np.flatnonzero(self.sign == 0.0)

    def costs(self, sign, factor=1.0):
        """Return the cost of each row, where rows have these signs; those of unlabelled rows times a factor."""
        of_sign = np.where(sign > 0.0, factor * self.cost_above, factor * self.cost_below)
        return np.where(self.sign == 0.0, of_sign, self.cost)

    def signs_of(self, scores):
        """Return the signs of all rows that are best for these scores: +1 for the highest of the unlabelled rows."""
        sign, rows = self.sign.copy(), self.unlabelled
        sign[rows] = -1.0
        sign[rows[np.argsort(-scores[rows], kind="stable")[: self.n_above]]] = 1.0
        return sign

    def problem(self, sign, factor=1.0):
        """Return the KernelQP in which all rows have these signs."""
        return c_svc(self.K, sign, self.costs(sign, factor))

    def problem_of_labelled(self):
        """Return the KernelQP of the labelled rows alone."""
        rows = self.labelled
        return c_svc(self.K.restricted(rows), self.sign[rows], self.cost[rows])


@dataclass(frozen=True)
class Point:
    """Signs of all rows, a decision function, and the objective with the final costs of unlabelled rows.

    `dual` is a lower bound of the objective over all functions, given the signs.
    """

    sign: np.ndarray
    beta: np.ndarray
    scores: np.ndarray
    solution: KernelSolution
    primal: float
    dual: float


@dataclass(frozen=True)
class Transduction:
    """The result of `transduce`.

    Attributes
    ----------
    sign : ndarray
        Of all rows.
    problem : KernelQP
        The C-SVC that has these signs and the final costs.
    solution : KernelSolution
        Its solution; `n_iter` are the iterations of all problems.
    inductive : float
        The objective of the machine of the labelled rows, with the signs that are best for its scores.
    n_exchanges : int
        Pairs of rows that exchanged their signs on the way.
    stages : ndarray of STAGE
    """

    sign: np.ndarray
    problem: KernelQP
    solution: KernelSolution
    inductive: float
    n_exchanges: int
    stages: np.ndarray


def transduce(rows: PartlyLabelled, solve: Callable[..., KernelSolution], settings: Any) -> Transduction:
    """Find signs of the unlabelled rows and a decision function whose objective no exchange of two signs lowers.

    The objective is never above that of the machine of the labelled rows with the signs that are best for it. A run
    that is stopped early returns the better of that machine and the point where it was.

    Parameters
    ----------
    rows : PartlyLabelled
        With labelled rows of both signs, and unlabelled ones.
    solve : callable(problem, settings, start) -> KernelSolution
    settings : KernelSettings
        Rows exchange their signs if the order of their scores is wrong by more than `tol`.
    """
    search = _Search(rows, solve, settings)
    inductive = search.inductive()
    points = [inductive]
    if not search.is_stopped:
        points.append(search.raised(inductive))
    if not search.is_stopped and points[-1].primal > inductive.primal:
        first = search.solved(inductive, 1.0)
        points[0] = replace(inductive, dual=max(inductive.dual, first.dual))  # they have the same signs
        points.append(search.settled(first, 1.0))
    best = min(reversed(points), key=lambda point: point.primal)
    return search.result(best, inductive.primal)


@dataclass
class _Search:
    """The problems that are solved one after the other; counts their iterations and records their stages."""

    rows: PartlyLabelled
    solve: Callable
    settings: Any
    begun: float = field(default_factory=time.perf_counter)
    stages: list = field(default_factory=list)
    n_iter: int = 0
    n_exchanges: int = 0
    status: Status = Status.CONVERGED

    @property
    def is_stopped(self):
        """Whether a limit, a callback or Ctrl-C has ended the run."""
        return self.status in _STOPPED

    def _solution(self, problem, start):
        """Return the solution of a problem, within the seconds that are left."""
        settings, limit = self.settings, self.settings.max_seconds
        if limit is not None:
            settings = changed(settings, max_seconds=limit - (time.perf_counter() - self.begun))
        solution = self.solve(problem, settings, start)
        self.n_iter += int(solution.n_iter)
        self.status = solution.status
        return solution

    def _scores(self, solution, beta):
        """Return the scores of all rows."""
        K, used, sums = self.rows.K, np.flatnonzero(beta), np.zeros(self.rows.K.n_rows)
        K.add(used, beta[used], K.columns(), sums)
        return solution.stretch * (sums - solution.offsets[0])

    def _objective(self, sign, beta, scores, solution):
        """Return the objective with the final costs of unlabelled rows."""
        sums = scores / solution.stretch + solution.offsets[0]
        losses = np.maximum(1.0 - sign * scores, 0.0)
        return 0.5 * solution.stretch**2 * float(beta @ sums) + float(self.rows.costs(sign) @ losses)

    def inductive(self):
        """Return the machine of the labelled rows, with the signs that are best for its scores."""
        rows = self.rows
        solution, beta = self._solution(rows.problem_of_labelled(), None), np.zeros(rows.K.n_rows)
        beta[rows.labelled] = solution.beta
        scores = self._scores(solution, beta)
        sign = rows.signs_of(scores)
        return Point(sign, beta, scores, solution, self._objective(sign, beta, scores, solution), solution.dual)

    def solved(self, start, factor, pairs=()):
        """Return the solution of the problem with this factor, from a point, after pairs exchanged their signs."""
        sign, beta = start.sign.copy(), start.beta.copy()
        for array in (sign, beta):
            for one, other in pairs:
                array[one], array[other] = array[other], array[one]
        problem = self.rows.problem(sign, factor)
        solution = self._solution(problem, beta)
        scores = self._scores(solution, solution.beta)
        primal = self._objective(sign, solution.beta, scores, solution) if factor < 1.0 else solution.primal
        point = Point(sign, solution.beta, scores, solution, primal, solution.dual)
        self._record(point, factor, int(np.sum(start.scores[self.rows.unlabelled] > 0.0)), len(pairs))
        return point

    def _record(self, point, factor, above, n_pairs):
        seconds, solution = time.perf_counter() - self.begun, point.solution
        self.stages.append((factor, above, n_pairs, solution.n_iter, seconds, solution.primal, solution.gap))

    def raised(self, start):
        """Return the point to which rising costs of unlabelled rows lead."""
        factor, point = _FIRST_FACTOR, start
        while True:
            point = self.settled(self.solved(point, factor), factor)
            if factor >= 1.0 or self.is_stopped:
                return point
            factor = min(1.0, _RISE * factor)

    def settled(self, point, factor):
        """Return the point from which no exchange lowers the objective with this factor any more."""
        while not self.is_stopped:
            pairs = self._wrong_pairs(point)
            if not pairs:
                break
            other = self.solved(point, factor, pairs)
            if not other.solution.primal < point.solution.primal:  # by less than the accuracy of the solver
                self.stages.pop()
                break
            point, self.n_exchanges = other, self.n_exchanges + len(pairs)
        return point

    def _wrong_pairs(self, point):
        """Return pairs of unlabelled rows, of signs +1 and −1, that should exchange them: half of the wrong ones.

        Each exchange lowers the objective, whatever the others do. All of them at once would pass by minima near by.
        """
        rows = self.rows.unlabelled
        above, below = rows[point.sign[rows] > 0.0], rows[point.sign[rows] < 0.0]
        above = above[np.argsort(point.scores[above], kind="stable")]
        below = below[np.argsort(-point.scores[below], kind="stable")]
        n_pairs = min(len(above), len(below))
        above, below = above[:n_pairs], below[:n_pairs]
        n_wrong = int(np.sum(point.scores[below] - point.scores[above] > self.settings.tol))
        n_chosen = (n_wrong + 1) // 2
        return list(zip(above[:n_chosen].tolist(), below[:n_chosen].tolist(), strict=True))

    def result(self, point, inductive):
        """Return the Transduction of a point."""
        solution, history = point.solution, point.solution.history.copy()
        numbers = {"primal": point.primal, "dual": point.dual}
        for name, value in {**numbers, "gap": relative_gap(point.primal, point.dual, solution.scale)}.items():
            history[name][-1:] = value
        numbers |= {"n_iter": self.n_iter, "status": self.status}
        solution = replace(solution, beta=point.beta, history=history, **numbers)
        problem, stages = self.rows.problem(point.sign), np.array(self.stages, dtype=STAGE)
        return Transduction(point.sign, problem, solution, inductive, self.n_exchanges, stages)
