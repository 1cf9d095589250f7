"""`prox_newton`: the proximal Newton method, for problems whose penalty makes weights zero (`ElasticNet`).

In each step the losses are replaced by their quadratic model at the current point, the penalty is kept, the model is
minimised, and a line search goes from the current point towards its minimum. The squared hinge is quadratic between its
kinks, and the log loss is smooth, so that few steps are needed. A step takes one pass over X for the gradient of all
columns, which gives the certificate, too.

    few columns     the model has the matrix X'diag(curvature)X, which for the squared hinge changes by the rows whose
                    loss becomes zero or positive; see `whole_steps`, `gram_model`
    many columns    Newton steps on working sets of columns by coordinate descent; see `working_sets`, `column_model`

References: Lee, Sun, Saunders, "Proximal Newton-type methods for minimizing composite functions", SIAM Journal on
Optimization 2014. Yuan, Ho, Lin, "An improved GLMNET for L1-regularized logistic regression", JMLR 2012. Massias,
Gramfort, Salmon, "Celer: a fast solver for the Lasso with dual extrapolation", ICML 2018.
"""

from widemargin._runtime.threads import single_threaded_blas
from widemargin.problems.certificates import relative_gap
from widemargin.problems.elastic_net import ElasticNet, certified
from widemargin.solvers.contract import Solution, Status, Watch
from widemargin.solvers.proximal_newton.point import Point
from widemargin.solvers.proximal_newton.whole_steps import WholeSteps, sampled_start
from widemargin.solvers.proximal_newton.working_sets import WorkingSets
from widemargin.solvers.spec import Rows, SolverSpec, Start

MAX_COLUMNS = 1000  # of a model with a matrix; above, steps are made on working sets of columns
_STEPS_TO_FULL_PRECISION, _FULL_PRECISION = 10, 1e-14  # steps of small problems beyond the tolerance, and their gap
_ALLOWANCE_FOR_ROUNDING = 1e-3  # of the tolerance, for the difference between a measured gap and a certified one


def prox_newton(problem, settings, start=None):
    """Minimise an ElasticNet; `start` are weights."""
    problem.check(problem.X.squared_norms(settings.n_jobs))
    with single_threaded_blas():
        with Watch(settings, PROX_NEWTON.counts) as watch:
            if start is None and _has_few_columns(problem.X):
                start = sampled_start(problem, watch)
            point = Point(problem, start, settings.n_jobs)
            step = WholeSteps(point, settings.n_jobs) if _has_few_columns(problem.X) else _SetSteps(point)
            _steps(point, step, watch)
        if watch.last_iteration < 0:  # Ctrl-C came before there was anything
            raise KeyboardInterrupt
        return _solution(point, watch)


def _steps(point, step, watch):
    """Take steps until the gap is small enough or a limit is reached; for small problems, some more.

    The weights of small problems then do not depend on the order of rows, or on whether rows are repeated or weighted.
    """
    target, n_steps = (1.0 - _ALLOWANCE_FOR_ROUNDING) * watch.settings.tol, 0
    n_more = _STEPS_TO_FULL_PRECISION if point.problem.X.is_small else 0
    while True:
        point.measure()
        gap = watch.record(n_steps, 2.0 * n_steps, point.primal, point.dual)
        n_more -= gap <= target
        if gap <= target and (n_more < 0 or gap <= _FULL_PRECISION):
            watch.status = Status.CONVERGED
        elif not watch.should_stop(PROX_NEWTON.name, n_steps, 2.0 * n_steps) and not step():
            watch.status = Status.STALLED
        if watch.status is not None:
            return
        n_steps += 1


def _has_few_columns(X):
    """Return whether steps have a matrix; if there are fewer rows than columns, it would be far from definite."""
    return X.n_columns <= MAX_COLUMNS and not X.is_wide


class _SetSteps:
    """Newton steps on working sets."""

    def __init__(self, point):
        self._sets = WorkingSets(point)

    def __call__(self):
        """Take steps after a measurement; return whether the objective has decreased."""
        self._sets.screen()
        return self._sets.step()


def _solution(point, watch):
    """Return the Solution at a point, with a certificate that includes rounding errors."""
    problem, settings = point.problem, watch.settings
    point.drop_negligible()
    w, intercept = point.theta[: problem.X.n_columns].copy(), problem.intercept_of(point.theta)
    beta, primal, dual = certified(problem, w, intercept, settings.n_jobs)
    history, status = watch.history(), watch.status
    gap = relative_gap(primal, dual)
    iteration, seconds, passes = history[-1].item()[:3]
    history[-1] = iteration, seconds, passes, primal, dual, gap
    if status in (Status.CONVERGED, Status.STALLED):
        status = Status.CONVERGED if gap <= settings.tol else Status.STALLED
    return Solution(
        w, beta, primal, dual, iteration, status, PROX_NEWTON.name, history, intercept=intercept, counts="steps"
    )


def _refuses(problem):
    """Return why a problem with a free intercept has no optimum, or None if it has one."""
    if not (problem.free_intercept and problem.loss.needs_both_signs):
        return None
    signs = problem.sign[problem.cost > 0.0]
    if (signs > 0.0).any() and (signs < 0.0).any():
        return None
    return "needs rows of positive weight in both classes: with one class, the best intercept is infinite"


PROX_NEWTON = SolverSpec(
    name="prox_newton",
    solve=prox_newton,
    takes=frozenset({ElasticNet}),
    starts_from=Start.WEIGHTS,
    stopping=("gap",),
    counts="steps",
    reads=Rows.IN_MEMORY,
    refuses=_refuses,
)
