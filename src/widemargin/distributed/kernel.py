"""`SVC`, `SVR` and `OneClassSVM` on a basis, for rows on a Dask cluster.

A machine on a basis is a linear machine, see `widemargin.models.fixed_basis`: kernel values of a row with the basis
points are computed where the row is, and stay there. Between client and workers go vectors and matrices with a number
for each basis point, as for linear machines of as many columns.
"""

import math
from dataclasses import replace
from itertools import combinations
from typing import Any, Self

import numpy as np

from widemargin._runtime.place import HERE
from widemargin.distributed.estimator import OnCluster, on_cluster
from widemargin.distributed.linear import class_factors
from widemargin.distributed.matrix import DistributedQP, GatheredMatrix
from widemargin.distributed.statements import ClassStatement, OneClassStatement, RegressionStatement
from widemargin.models.inputs import check_class_weight
from widemargin.models.kernel import one_class, svc, svr
from widemargin.models.kernel.on_basis import LinearOnBasis
from widemargin.problems.one_class import linear_one_class


class _LinearOnClusterBasis(OnCluster, LinearOnBasis):
    """The linear machine of a kernel machine on its basis, for rows on a cluster."""

    def __init__(self, model):
        super().__init__(model)
        self._group = model._group

    def _matrix_on(self, X, basis, dtype, n_problems):
        """Return the matrix of the features of ClusterRows; planes need the best intercept, and so all scores."""
        matrix = X.matrix_on_basis(0.0, basis, dtype, self._model.max_memory)
        return matrix if self.solver == "newton" else GatheredMatrix.of(matrix)

    def _rows_to_choose_from(self, X, seed):
        """Return a random sample of the rows, which comes to the client."""
        return X.rows_for_basis(self._model.basis, seed)

    def _keep(self, solutions, X):
        """Set the fitted attributes; the dual variables of rows are given up."""
        return super()._keep([replace(solution, beta=None) for solution in solutions], X)


class _KernelOnCluster(OnCluster):
    """Kernel machines on a basis."""

    def _check_parameters(self):
        """Raise ValueError for parameters that are not valid, or not for a cluster."""
        self._validate_params()
        name = type(self).__name__
        if not self._wants_basis:
            raise ValueError(
                f"{name} on a cluster needs a basis, for instance basis=1000 or basis='auto': the exact kernel machine "
                f"needs all rows in one process, for which there is `widemargin.{name}`."
            )
        if callable(self.kernel):
            raise ValueError(
                "kernel is a function, which is not for rows on a cluster: use 'rbf', 'poly', 'sigmoid' or 'linear', "
                f"or fit `widemargin.{name}` in one process."
            )
        if self._wants_probability:
            raise ValueError(
                f"Probabilities of {name} are fitted to rows that are left out, all in one process: leave out "
                "calibration and probability on a cluster, or fit a sample of the rows there."
            )
        LinearOnBasis(self)  # refuses what a machine on a basis does not have

    def _linear_machine(self):
        return _LinearOnClusterBasis(self)

    def _fit_statements_on_basis(self, rows, statements, whole=None):
        """Return the Expansion and the solutions of a problem for each statement.

        `whole(statement, own, matrix)` states the problem of all rows in this process, where planes need their scores;
        by default as a partition does.
        """
        self._gamma, self.shape_fit_ = rows.gamma(self.gamma), rows.shape
        whole = whole or (lambda statement, own, matrix: statement.problem(own, matrix))

        def state(matrix):
            if matrix.place is not HERE:
                return [lambda one=one: DistributedQP.of(matrix, one) for one in statements]
            own = rows.belongings()
            return [lambda one=one: whole(one, own, matrix) for one in statements]

        return self._fit_on_basis(rows, state, len(statements))


@on_cluster
class SVC(_KernelOnCluster, svc.SVC):
    """Kernel classification of rows on a Dask cluster, by functions of basis points, with the same certificate.

    The fitted attributes are those of `widemargin.SVC` with a basis, as arrays in this process.

    Parameters
    ----------
    **parameters
        Those of `widemargin.SVC`, with the same defaults; `basis` must be given, since the exact machine needs all
        rows in one process. Its points are chosen from a random sample of the rows, which comes to this process.
        `n_jobs` is the number of threads of each worker, by default all that it has, and `max_memory` is what each
        worker keeps of kernel values. Probabilities, kernels that are functions, and what `widemargin.SVC` does not
        have with a basis are refused.
    client : distributed.Client or None, default=None
        The cluster; None is the client that was made last in this process.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from widemargin.dask import SVC
    >>> client = Client(processes=False, dashboard_address=":0")
    >>> X = da.random.default_rng(0).standard_normal((1000, 2), chunks=(250, 2))
    >>> model = SVC(basis=30, random_state=0, client=client).fit(X, ((X**2).sum(axis=1) > 1.5).astype(int))
    >>> model.gap_ <= 1e-3, model.basis_.shape, model.predict(X).compute().shape
    (True, (30, 2), (1000,))
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
        return self._fit_on((X, y, sample_weight, None), self._fit_on_rows)

    def _check_parameters(self):
        """Raise ValueError for parameters that are not valid, or not for a cluster."""
        super()._check_parameters()
        check_class_weight(self.class_weight)
        self._check_calibration()

    def _fit_on_rows(self, rows):
        self.classes_ = rows.classes
        counts, order = rows.places_of_classes()
        self._keep_order(order)
        self.class_weight_ = class_factors(self.class_weight, self.classes_, counts)
        is_present = (rows.counts > 0) & (self.class_weight_ > 0.0)
        self._refuse_one_class(is_present)
        pairs = np.array(list(combinations(range(len(self.classes_)), 2)))
        of_pairs = is_present[pairs]
        has_both, constant = of_pairs.all(axis=1), of_pairs[:, 0] * 1.0 - of_pairs[:, 1]
        found = self._fit_statements_on_basis(rows, [self._statement(*pair) for pair in pairs[has_both]])
        self._keep_pairs_on_basis(has_both, constant, *found)

    def _statement(self, first, second):
        """Return the statement of a pair of classes, in which rows of other classes cost nothing."""
        cost = np.zeros(len(self.classes_))
        cost[[first, second]] = self._costs_of(self.class_weight_[[first, second]])
        return ClassStatement(self.classes_, cost, first, "hinge", True)


@on_cluster
class SVR(_KernelOnCluster, svr.SVR):
    """Kernel regression of rows on a Dask cluster, by functions of basis points, with the same certificate.

    The fitted attributes are those of `widemargin.SVR` with a basis, as arrays in this process.

    Parameters
    ----------
    **parameters
        Those of `widemargin.SVR`, with the same defaults; as for `SVC`, `basis` must be given.
    client : distributed.Client or None, default=None
        The cluster; None is the client that was made last in this process.
    """

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model; the arguments are those of `LinearSVC.fit`, with targets y.

        Returns
        -------
        self
        """
        return self._fit_on((X, y, sample_weight, None), self._fit_on_rows, as_labels=False)

    def _fit_on_rows(self, rows):
        statement = RegressionStatement(float(self._costs_of(1.0)), self.epsilon, "epsilon_insensitive", True)
        _, (solution,) = self._fit_statements_on_basis(rows, [statement])
        self.n_iter_ = solution.n_iter


@on_cluster
class OneClassSVM(_KernelOnCluster, one_class.OneClassSVM):
    """Outlier detection for rows on a Dask cluster, by functions of basis points, with the same certificate.

    The fitted attributes are those of `widemargin.OneClassSVM` with a basis, as arrays in this process.

    Parameters
    ----------
    **parameters
        Those of `widemargin.OneClassSVM`, with the same defaults; as for `SVC`, `basis` must be given.
    client : distributed.Client or None, default=None
        The cluster; None is the client that was made last in this process.
    """

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : Dask array or data frame, list of delayed blocks, or from_blocks(...)
            As for `SVC.fit`. A delayed block is X, or (X, None, sample_weight).
        y : ignored
            Not used; present because scikit-learn passes it.
        sample_weight : Dask array or series with the same blocks, or array, default=None
            Weight of each row; a row of weight zero has no influence.

        Returns
        -------
        self
        """
        return self._fit_on((X, None, sample_weight, None), self._fit_on_rows, as_labels=False, needs_targets=False)

    def score_samples(self, X: Any) -> Any:
        """Return the decision function plus `offset_`, as a lazy Dask array if X is on the cluster."""
        return self._lazily("score_samples", X)

    def _fit_on_rows(self, rows):
        total = math.fsum(one.weight for one in rows.facts)

        def whole(_, own, matrix):
            return linear_one_class(matrix, np.ones(rows.n_rows) if own.weight is None else own.weight, self.nu)

        _, (solution,) = self._fit_statements_on_basis(rows, [OneClassStatement(self.nu * total)], whole)
        self.offset_, self.n_iter_ = -self.intercept_, solution.n_iter
