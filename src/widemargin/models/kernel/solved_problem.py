"""A kernel problem that is solved: its decision function, and the numbers that LIBSVM prints of it."""

from dataclasses import dataclass

import numpy as np

from widemargin.models.kernel.full_precision import refined
from widemargin.problems.dual_counts import count_support
from widemargin.solvers.contract import KernelSolution, Status


@dataclass(frozen=True)
class SolvedProblem:
    """The function f(x) = Σ coef_i K(x_i, x) + intercept of one problem, the sum being over the rows of the problem.

    `facts` are the numbers that LIBSVM prints, by its names. `solution` is None if nothing had to be solved.
    """

    coef: np.ndarray
    intercept: float
    facts: dict
    solution: KernelSolution | None = None

    @property
    def status(self):
        """Why the solver stopped."""
        return Status.CONVERGED if self.solution is None else self.solution.status


def solved(problem, settings, solution):
    """Return the SolvedProblem of a problem and its solution, which is refined if the problem is small."""
    return solved_problem(problem, refined(problem, settings, solution))


def solved_problem(problem, solution):
    """Return the SolvedProblem of a KernelQP and its solution, as it is."""
    coef, intercept, facts = problem.model(solution)
    facts = {name: float(value) for name, value in facts.items()}
    counts = count_support(coef, solution.beta, problem.lower, problem.upper)
    facts["nSV"], facts["nBSV"] = map(int, counts)
    facts["iterations"] = int(solution.n_iter)
    return SolvedProblem(coef, float(intercept), facts, solution)
