"""`LinearSVC` and `LinearSVR` on a Dask cluster."""

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils.class_weight import compute_class_weight

from widemargin.distributed.estimator import OnCluster, on_cluster
from widemargin.distributed.matrix import ClassProblem, DistributedQP, GatheredMatrix
from widemargin.distributed.statements import AllClassesStatement, ClassStatement, RegressionStatement
from widemargin.models import linear
from widemargin.models.crammer_singer import check_crammer_singer
from widemargin.models.elastic_net import refuse_elsewhere
from widemargin.problems.formulations import Intercept
from widemargin.solvers.newton.smoothed import MAX_COLUMNS


def class_factors(class_weight, classes, counts):
    """Return the factor of the costs of each class; `counts` are its rows, by which "balanced" is computed."""
    if class_weight == "balanced":
        factor, present = np.ones(len(classes)), counts > 0
        factor[present] = counts.sum() / (present.sum() * counts[present])
        return factor
    return compute_class_weight(class_weight, classes=classes, y=classes)


class _LinearOnCluster(OnCluster):
    """Linear models whose objective is a sum over rows."""

    def _matrix_of_rows(self, rows):
        """Return the matrix of ClusterRows, with a constant column if the intercept is penalised."""
        constant = self.intercept_scaling if self._intercept is Intercept.PENALISED else 0.0
        return rows.matrix(constant, self.scaling, self.max_memory)

    def _fit_statements(self, rows, statements):
        """Solve a problem for each statement, and keep the solutions; those have no dual variables of rows."""
        matrix = self._matrix_of_rows(rows)
        is_by_planes = self.solver not in ("auto", "newton") or matrix.n_columns > MAX_COLUMNS
        is_by_planes = is_by_planes and not statements[0].entropy
        if self._intercept is Intercept.FREE and is_by_planes:  # planes need the best intercept, and so all scores
            matrix, own = GatheredMatrix.of(matrix), rows.belongings()
            problems = [lambda one=one: one.problem(own, matrix) for one in statements]
        else:
            problems = [lambda one=one: DistributedQP.of(matrix, one) for one in statements]
        solutions = self._solve_problems(problems, matrix)
        self._keep([replace(solution, beta=None) for solution in solutions], matrix)


class ClassifierOnCluster(_LinearOnCluster):
    """Classifiers: the costs of classes, and a statement for each problem."""

    def _class_costs(self, rows):
        """Return the cost of a row of each class."""
        return self.C * class_factors(self.class_weight, self.classes_, rows.counts)

    def _statements(self, cost, fold=None):
        """Return a statement for each problem: one for two classes, else one for each class."""
        positives = [1] if len(self.classes_) == 2 else range(len(self.classes_))
        free = self._intercept is Intercept.FREE
        return [ClassStatement(self.classes_, cost, k, self.loss, free, fold) for k in positives]


@on_cluster
class LinearSVC(ClassifierOnCluster, linear.LinearSVC):
    """Linear support vector classification of rows on a Dask cluster, with the same certificate.

    The fitted attributes are those of `widemargin.LinearSVC`, as arrays in this process, except `dual_coef_`.

    Parameters
    ----------
    **parameters
        Those of `widemargin.LinearSVC`, with the same defaults. `n_jobs` is the number of threads of each
        worker, by default all that it has, and `max_memory` is what each worker keeps of rows in files. Solvers that
        need all rows in one process ("dcd", "avsf", "climb", "sbm") and penalties other than "l2" are refused.
        `multi_class="crammer_singer"` is solved by cutting planes.
    client : distributed.Client or None, default=None
        The cluster; None is the client that was made last in this process.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from widemargin.dask import LinearSVC
    >>> client = Client(processes=False, dashboard_address=":0")
    >>> X = da.random.default_rng(0).standard_normal((1000, 3), chunks=(250, 3))
    >>> model = LinearSVC(client=client).fit(X, (X[:, 0] > 0).astype(int))
    >>> model.gap_ <= 1e-4, model.predict(X).compute().shape
    (True, (1000,))
    >>> client.close()
    """

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : Dask array or data frame, list of delayed (X, y[, sample_weight]) blocks, or from_blocks(...)
            Chunks may be dense or SciPy sparse, and of unknown length. Columns are in one chunk, or are rechunked.
        y, sample_weight : Dask arrays or series with the same blocks, or arrays; None for blocks that contain them
            Labels, and factors of C for each row.

        Returns
        -------
        self
        """
        return self._fit_on((X, y, sample_weight, None), self._fit_rows)

    def _check_parameters(self):
        """Raise ValueError for parameters that are not valid, or not for a cluster."""
        super()._check_parameters()
        refuse_elsewhere(self, "in partitions on a cluster")

    def _fit_rows(self, rows):
        self.classes_ = rows.classes
        if not self._solves_all_classes_at_once:
            self._fit_statements(rows, self._statements(self._class_costs(rows)))
            return
        matrix = self._matrix_of_rows(rows)
        check_crammer_singer(self, matrix)
        problem = ClassProblem.of(matrix, AllClassesStatement(self.classes_, self._class_costs(rows)))
        self._keep([self._solve_all_classes(problem, matrix)], matrix)


@on_cluster
class LinearSVR(_LinearOnCluster, linear.LinearSVR):
    """Linear support vector regression of rows on a Dask cluster, with the same certificate.

    The fitted attributes are those of `widemargin.LinearSVR`, as arrays in this process, except `dual_coef_`.

    Parameters
    ----------
    **parameters
        Those of `widemargin.LinearSVR`, with the same defaults.
    client : distributed.Client or None, default=None
        The cluster; None is the client that was made last in this process.
    """

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model; the arguments are those of `LinearSVC.fit`, with targets y.

        Returns
        -------
        self
        """
        return self._fit_on((X, y, sample_weight, None), self._fit_rows, as_labels=False)

    def _fit_rows(self, rows):
        free = self._intercept is Intercept.FREE
        self._fit_statements(rows, [RegressionStatement(self.C, self.epsilon, self.loss, free)])
