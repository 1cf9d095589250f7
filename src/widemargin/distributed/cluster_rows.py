"""`ClusterRows`: the rows of one fit on a cluster, from the collections of the caller to the matrix for the solver."""

from numbers import Integral
from typing import Any, Self

import numpy as np
from distributed import Client, default_client
from scipy.sparse import issparse, vstack

from widemargin.data.blocks.memory import bytes_of
from widemargin.data.column_scaling import ColumnScaling
from widemargin.distributed.failures import Overseer, all_workers
from widemargin.distributed.group import Group
from widemargin.distributed.matrix import DistributedMatrix, GatheredMatrix
from widemargin.distributed.partition import ROWS, PartitionRows
from widemargin.distributed.rows import CuttingRows, NewtonRows
from widemargin.distributed.sources import names_of, partitions_of
from widemargin.distributed.statements import (
    facts_of,
    label_numbers,
    moments_of,
    places_of_classes,
    row_belongings,
    rows_for_points,
    statistics_of,
)
from widemargin.models.kernel.training_rows import gamma_of_variance, joined_moments
from widemargin.solvers.cutting_planes.plane_rows import PlaneRows
from widemargin.solvers.newton.row_state import RowState

_PROXIES = {RowState: NewtonRows, PlaneRows: CuttingRows}
_SHARE_OF_WORKER_MEMORY = 0.5  # for rows of files
_MAX_SAMPLE_VALUES = 1 << 25  # of the rows from which basis points are chosen: 256 MB
_ROWS_OF_SAMPLE = 100_000  # at least, from which basis points are chosen, if there are so many


class ClusterRows:
    """The partitions of one fit; a context manager that releases them at its end.

    Parameters
    ----------
    client : distributed.Client or None
        None is the client of this process that was made last.
    data : tuple
        X, y, sample_weight and qid, as `partitions_of` takes them.
    as_labels : bool
        Whether y are class labels; otherwise they are numbers.
    needs_targets : bool
        Whether there is y at all; without, that of the data must be None.
    n_jobs : int or None
        Threads of each worker.

    Attributes
    ----------
    group : Group
    facts : list of RowFacts
    n_rows, n_features : int
    names : tuple of str or None
        Names of the features.
    classes, counts : ndarray
        Of labels: the distinct ones, and the number of rows of positive weight of each.
    """

    def __init__(
        self, client: Client | None, data: tuple, *, as_labels: bool, n_jobs: int | None, needs_targets: bool = True
    ) -> None:
        self._client = client_of(client)
        overseer = Overseer(self._client)
        overseer.workers()
        numeric = None if not needs_targets else not as_labels
        partitions = partitions_of(self._client, *data, numeric=numeric)
        self.group = Group(self._client, partitions, n_jobs, _PROXIES)
        try:
            overseer.wait_until_built(partitions)  # so that it is known where they are
            self.facts = self.group.each(facts_of, ROWS, as_labels)
            self.n_rows, self.n_features = sum(one.n_rows for one in self.facts), self.facts[0].n_features
            self.names = names_of(data[0]) or self.facts[0].names
            self._check()
            self.classes: np.ndarray = np.array([])
            self.counts: np.ndarray = np.array([])
            if as_labels:
                self.classes, self.counts = _joined_labels(self.facts)
        except BaseException:
            self.close()
            raise

    def _check(self):
        """Raise ValueError if partitions differ in their columns, or have no rows or no weight."""
        for number, one in enumerate(self.facts):
            if one.n_features != self.n_features:
                raise ValueError(f"Partition {number} has {one.n_features} columns, partition 0 {self.n_features}.")
            if one.is_sparse != self.facts[0].is_sparse and one.n_rows and self.facts[0].n_rows:
                raise ValueError(f"Partition {number} is {'sparse' if one.is_sparse else 'dense'}, partition 0 is not.")
        if self.n_rows == 0:
            raise ValueError("Found array with 0 sample(s): all partitions are empty.")
        if sum(one.weight for one in self.facts) == 0.0:
            raise ValueError("sample_weight is zero for every row; at least one must be positive.")

    def matrix(self, constant: float, scaling: str | None, max_memory: int | str | None) -> DistributedMatrix:
        """Return the matrix; `max_memory` is what each worker may use for rows of files, None half of what it has."""
        how = None if scaling is None else ColumnScaling.of(scaling, self._statistics())
        return DistributedMatrix(self.group, self.facts, constant, how, self._memory_per_byte(max_memory))

    def matrix_on_basis(self, constant: float, basis: Any, dtype: Any, max_memory: int | str | None) -> Any:
        """Return the matrix of features on a Basis, from kernel values of this type.

        `max_memory` is what each worker may use for kernel values, None half of what it has. Workers without a limit
        keep all of them.
        """
        memory = self._memory(max_memory) or np.inf
        return DistributedMatrix.on_basis(self.group, self.facts, constant, basis, dtype, memory)

    def sample(self, n_rows: int, seed: int) -> Any:
        """Return at least n_rows random rows, or all, which come to this process; fewer if they have many values."""
        most = _MAX_SAMPLE_VALUES / max(1.0, sum(one.n_stored for one in self.facts) / self.n_rows)
        share = min(1.0, min(n_rows, most) / self.n_rows)
        parts = [part for part in self.group.each(rows_for_points, ROWS, share, seed) if part.shape[0]]
        return vstack(parts, format="csr") if issparse(parts[0]) else np.concatenate(parts)

    def rows_for_basis(self, basis: Any, seed: int) -> Any:
        """Return a random sample of the rows, from which basis points are chosen; one of each partition if none are."""
        if not isinstance(basis, Integral | str):
            return self.sample(1, seed)
        return self.sample(max(_ROWS_OF_SAMPLE, int(basis) if isinstance(basis, Integral) else 0), seed)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and features."""
        return self.n_rows, self.n_features

    def gamma(self, gamma: float | str) -> float:
        """Return the number that the parameter gamma stands for; weights of rows count, if there are any."""
        if gamma == "auto":
            return 1.0 / self.n_features
        if gamma != "scale":
            return float(gamma)
        has_weight = any(one.has_weight for one in self.facts)
        return gamma_of_variance(self._weighted_variance() if has_weight else self._variance(), self.n_features)

    def _variance(self):
        """Return the variance of all values."""
        found = self._statistics()
        return float(np.mean(found["deviation"] ** 2) + np.var(found["mean"]))

    def _weighted_variance(self):
        """Return the variance of all values, each row counted by its weight."""
        return joined_moments([one for one in self.group.each(moments_of, ROWS) if one[0] > 0.0])[1]

    def places_of_classes(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the number of rows of each class, and the classes in the order in which they first occur."""
        counts, first, n_before = np.zeros(len(self.classes), np.int64), np.full(len(self.classes), self.n_rows), 0
        found = self.group.each(places_of_classes, ROWS, self.classes)
        for here, facts in zip(found, self.facts, strict=True):
            first = np.where(here[0] > 0, np.minimum(first, n_before + here[1]), first)
            counts, n_before = counts + here[0], n_before + facts.n_rows
        return counts, np.argsort(first)

    def gathered(self, constant: float, scaling: str | None, max_memory: int | str | None) -> GatheredMatrix:
        """Return the matrix as `matrix` does, for risks that need the scores of all rows in this process."""
        return GatheredMatrix.of(self.matrix(constant, scaling, max_memory))

    def labels(self) -> np.ndarray:
        """Return the position of the label of each row in `classes`, in the narrowest type of integers."""
        return np.concatenate(self.group.each(label_numbers, ROWS, self.classes))

    def belongings(self) -> PartitionRows:
        """Return targets, or labels, and weights of all rows, which come to this process for it."""
        y, weight = zip(*self.group.each(row_belongings, ROWS), strict=True)
        return PartitionRows(0, None, np.concatenate(y), None if weight[0] is None else np.concatenate(weight), None)

    def _memory_per_byte(self, max_memory):
        """Return the memory of all workers for rows of files, divided by the bytes of the rows."""
        return self._memory(max_memory) / max(1, sum(one.n_bytes for one in self.facts))

    def _memory(self, max_memory):
        """Return the memory of all workers together for rows; 0 if it is not known."""
        workers = all_workers(self._client).values()
        if max_memory is None:
            return sum(_SHARE_OF_WORKER_MEMORY * (one.get("memory_limit") or 0) for one in workers)
        return bytes_of(max_memory) * len(workers)

    def _statistics(self):
        """Return mean, deviation and largest absolute value of each column, from those of the partitions."""
        n_rows, mean, squares, largest = 0, 0.0, 0.0, 0.0
        for n, here, deviation, peak in self.group.each(statistics_of, ROWS):
            if n:
                total = n_rows + n
                squares = squares + n * deviation**2 + (here - mean) ** 2 * n_rows * n / total
                mean, n_rows, largest = mean + (here - mean) * n / total, total, np.maximum(largest, peak)
        return {"mean": mean, "deviation": np.sqrt(squares / n_rows), "max_abs": largest}

    def close(self) -> None:
        """Release the partitions."""
        self.group.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def client_of(client: Client | None) -> Client:
    """Return a client, by default the one of this process that was made last.

    Raises
    ------
    ValueError
        If there is none.
    """
    if client is not None:
        return client
    try:
        return default_client()
    except ValueError as error:
        raise ValueError(
            "There is no Dask client: connect to a cluster by `distributed.Client(...)` first, or give client=."
        ) from error


def _joined_labels(facts):
    """Return the distinct labels of all partitions, and the number of rows of positive weight of each."""
    kinds = {one.labels.dtype.kind in "US" for one in facts if len(one.labels)}
    if len(kinds) > 1:
        raise ValueError("y must hold labels of one kind, got strings in some partitions and numbers in others.")
    classes = np.unique(np.concatenate([one.labels for one in facts if len(one.labels)]))
    if len(classes) < 2:
        raise ValueError(f"y must hold at least 2 classes, got 1 class: {classes.tolist()}.")
    counts = np.zeros(len(classes), np.int64)
    for one in facts:
        counts[np.searchsorted(classes, one.labels)] += one.counts
    return classes, counts
