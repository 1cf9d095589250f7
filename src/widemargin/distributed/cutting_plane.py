"""`RankSVM`, `OrdinalSVC`, `ROCAreaSVC` and `MeasureSVC` on a Dask cluster.

The loss of a ranking is a sum over queries. If each query lies in one partition, scores stay where the rows are.
Ordinal regression, ROC area and measures compare any two rows: here the scores of all rows come to the client in every
iteration, eight bytes for each row, and coefficients go back.
"""

from typing import Any, Self

import dask
import numpy as np

from widemargin.data.blocks.reader import open_blocks
from widemargin.distributed.cluster_rows import ClusterRows
from widemargin.distributed.estimator import OnCluster, is_on_cluster, on_cluster
from widemargin.distributed.matrix import GatheredMatrix, PairProblem
from widemargin.distributed.partition import ROWS, THREADS
from widemargin.distributed.sources import BlockFiles, local_path
from widemargin.distributed.statements import PairStatement, pairs_of, scores_on
from widemargin.models.cutting_plane import measure, ordinal, ranking, roc_area
from widemargin.models.cutting_plane.queries import queries, query_ends
from widemargin.models.inputs import finite_targets
from widemargin.models.kernel.training_rows import block_dtype
from widemargin.problems.ranking import concordance, pair_risk


class _PlanesOnCluster(OnCluster):
    """Models fitted by cutting planes, whose scores are brought to the client unless a subclass avoids it."""

    def _matrix_of(self, X, constant, n_problems=1, n_vectors=0):
        """Return the matrix of ClusterRows, whose scores come to the client."""
        return X.gathered(constant, self.scaling, self.max_memory)

    def _matrix_on_basis(self, X, constant, basis, n_vectors):
        """Return the matrix of the features of ClusterRows on a basis, whose scores come to the client."""
        return GatheredMatrix.of(self._features_on(X, constant, basis))

    def _features_on(self, rows, constant, basis):
        """Return the matrix of the features of ClusterRows on a basis."""
        dtype = block_dtype(basis.kernel, self.tol, rows.n_rows)
        return rows.matrix_on_basis(constant, basis, dtype, self.max_memory)

    def _gamma_of(self, X):
        """Return the number that the parameter gamma stands for."""
        return X.gamma(self.gamma)

    def _rows_to_choose_from(self, X):
        """Return a random sample of the rows, from which basis points are chosen; it comes to the client."""
        return X.rows_for_basis(self.basis, 0)

    def _scores_of_checked(self, X):
        """Return the scores of rows on the cluster, one column for each output."""
        if not isinstance(X, ClusterRows):
            return super()._scores_of_checked(X)
        if self._is_on_basis:
            arguments = self._kernel(), self.basis_, self.basis_coef_, THREADS
            return np.concatenate(X.group.each(scores_on, ROWS, *arguments)) + self.intercept_
        coef = self.coef_ if self.coef_.ndim == 2 else self.coef_[np.newaxis]
        matrix = X.gathered(0.0, None, self.max_memory)
        return np.column_stack([matrix.scores(w) for w in coef]) + self.intercept_


@on_cluster
class RankSVM(_PlanesOnCluster, ranking.RankSVM):
    """Ranking of rows on a Dask cluster, with the same certificate.

    The rows of a query must be in one partition. Without queries all rows are ranked against each other, and their
    scores come to the client in every iteration.

    The fitted attributes are those of `widemargin.RankSVM`, as arrays in this process.

    Parameters
    ----------
    **parameters
        Those of `widemargin.RankSVM`, with the same defaults.
    client : distributed.Client or None, default=None
        The cluster; None is the client that was made last in this process.
    """

    def fit(self, X: Any, y: Any = None, qid: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : Dask array or data frame, list of delayed (X, y, None, qid) blocks, or from_blocks(...)
        y, qid : Dask arrays or series with the same blocks, or arrays; None for blocks that contain them
            Targets, and the query of each row; the rows of a query are adjacent, and in one partition.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a query is cut by the border of two partitions.
        """
        return self._fit_on((X, y, None, qid), self._fit_rows, as_labels=False)

    def score(self, X: Any, y: Any = None, qid: Any = None) -> float:
        """Return the mean over queries of the fraction of pairs in the right order; scores come to this process for it.

        Of row-block files, y=None and qid=None take the targets and the queries of the files.
        """
        if not is_on_cluster(X):
            return self.to_local().score(X, y, qid)
        if isinstance(X, BlockFiles):
            X = open_blocks([local_path(path) for path in X.paths])
            return self.to_local().score(X, y, qid)
        y, scores, qid = dask.compute(y, self.decision_function(X), qid)
        group = queries(qid, len(scores))
        fractions = concordance(scores, finite_targets(np.asarray(y)), group)
        return float(fractions.mean()) if len(fractions) else float("nan")

    def _fit_rows(self, rows):
        if self.average != "pairs":
            raise ValueError(
                f"average={self.average!r} is not available on a cluster: use average='pairs', or fit in one process."
            )
        found = rows.group.each(pairs_of, ROWS)
        if any(queries is None for _, queries in found):
            targets = rows.belongings().y
            risk = pair_risk(targets, query_ends(None, len(targets)), self.C, self.n_jobs)
            self._refuse_no_pairs(risk.n_pairs > 0, "")
            self.intercept_ = self._minimise(rows, risk)
            return
        _refuse_cut_queries([queries for _, queries in found])
        n_pairs = sum(n for n, _ in found)
        self._refuse_no_pairs(n_pairs > 0, " within any query")

        def state(basis):
            if basis is None:
                matrix = rows.matrix(0.0, self.scaling, self.max_memory)
            else:
                matrix = self._features_on(rows, 0.0, basis)
            return PairProblem.of(matrix, PairStatement(self.C, n_pairs))

        self.intercept_ = self._minimise_stated(rows, state)


def _refuse_cut_queries(queries):
    """Raise ValueError if a query has rows in several partitions."""
    names, counts = np.unique(np.concatenate(queries), return_counts=True)
    if (counts > 1).any():
        name = names[np.argmax(counts > 1)]
        where = [number for number, own in enumerate(queries) if name in own]
        raise ValueError(
            f"Rows of query {name} are in partitions {where[0]} and {where[1]}: a query must be in one partition. Sort "
            "the rows by qid, and repartition at the borders of queries."
        )


@on_cluster
class OrdinalSVC(_PlanesOnCluster, ordinal.OrdinalSVC):
    """Ordinal regression of rows on a Dask cluster, with the same certificate.

    The scores of all rows come to the client in every iteration, eight bytes for each row.

    The fitted attributes are those of `widemargin.OrdinalSVC`, as arrays in this process.

    Parameters
    ----------
    **parameters
        Those of `widemargin.OrdinalSVC`, with the same defaults.
    client : distributed.Client or None, default=None
        The cluster; None is the client that was made last in this process.
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the model; the arguments are those of `LinearSVC.fit`, without weights.

        Returns
        -------
        self
        """
        return self._fit_on((X, y, None, None), self._fit_rows)

    def position(self, X: Any) -> Any:
        """Return the score of each row, which the thresholds are compared with; lazy if X is on the cluster."""
        return self._lazily("position", X)

    def _fit_rows(self, rows):
        self.classes_ = rows.classes
        self._fit_order(rows, rows.labels().astype(np.intp))


class _BinaryPlanesOnCluster(_PlanesOnCluster):
    """Models of two classes."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the model; the arguments are those of `LinearSVC.fit`, without weights.

        Returns
        -------
        self
        """
        return self._fit_on((X, y, None, None), self._fit_rows)

    def _fit_rows(self, rows):
        self.classes_ = rows.classes
        self._refuse_more_than_two_classes()
        self._fit_labels(rows, rows.labels().astype(np.intp))


@on_cluster
class ROCAreaSVC(_BinaryPlanesOnCluster, roc_area.ROCAreaSVC):
    """Classification of two classes by the area under the ROC curve, of rows on a Dask cluster.

    The scores of all rows come to the client in every iteration, eight bytes for each row.

    The fitted attributes are those of `widemargin.ROCAreaSVC`, as arrays in this process.

    Parameters
    ----------
    **parameters
        Those of `widemargin.ROCAreaSVC`, with the same defaults.
    client : distributed.Client or None, default=None
        The cluster; None is the client that was made last in this process.
    """


@on_cluster
class MeasureSVC(_BinaryPlanesOnCluster, measure.MeasureSVC):
    """Classification of two classes by a measure of all predictions, of rows on a Dask cluster.

    The scores of all rows come to the client in every iteration, eight bytes for each row.

    The fitted attributes are those of `widemargin.MeasureSVC`, as arrays in this process.

    Parameters
    ----------
    **parameters
        Those of `widemargin.MeasureSVC`, with the same defaults.
    client : distributed.Client or None, default=None
        The cluster; None is the client that was made last in this process.
    """
