"""What the estimators on a cluster have in common: a client, fits whose rows are elsewhere, lazy predictions."""

import inspect
from collections.abc import Callable
from copy import copy
from typing import Any, Self

import dask.array as da
import numpy as np
from dask import delayed
from dask.base import is_dask_collection
from distributed import Client
from sklearn.utils.validation import check_is_fitted

from widemargin.data.blocks.reader import open_blocks
from widemargin.distributed.cluster_rows import ClusterRows
from widemargin.distributed.failures import ClusterFailure
from widemargin.distributed.group import Group
from widemargin.distributed.sources import BlockFiles, local_path, rows_of_file
from widemargin.errors import ClusterError
from widemargin.models.base import WeightedModel
from widemargin.solvers.contract import Status


def on_cluster(cls: type) -> type:
    """Give an estimator class the parameters of the ordinary estimator that it derives from, and `client`."""
    ordinary = next(kind for kind in cls.__mro__ if "__init__" in vars(kind))
    signature = inspect.signature(ordinary.__init__)
    client = inspect.Parameter("client", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Client | None)

    def __init__(self, *arguments: Any, client: Client | None = None, **parameters: Any) -> None:
        ordinary.__init__(self, *arguments, **parameters)
        self.client = client

    __init__.__signature__ = signature.replace(parameters=[*signature.parameters.values(), client])
    cls.__init__ = __init__
    cls._ordinary = ordinary
    cls._parameter_constraints = {**ordinary._parameter_constraints, "client": [Client, None]}
    return cls


class OnCluster:
    """Precedes an ordinary estimator in the bases of the estimator of the same name on a cluster."""

    _ordinary: type
    client: Client | None
    _group: Group | None = None  # during a fit

    def _fit_on(self, data: tuple, keep: Callable[[ClusterRows], None], *, as_labels: bool = True) -> Self:
        """Call `keep` with the rows of the data on the cluster; return self.

        If the cluster fails, the best model so far is kept, if there is one, and a ClusterError is raised.
        """
        self._check_parameters()
        group = None
        try:
            with ClusterRows(self.client, data, as_labels=as_labels, n_jobs=self.n_jobs) as rows:
                group = self._group = rows.group
                self._set_features(rows)
                keep(rows)
        except KeyboardInterrupt as error:
            failure = error if group is None else group.failure
            if not isinstance(failure, ClusterFailure):
                raise
            raise ClusterError(f"{failure} There is no model yet.") from failure
        finally:
            self._group = None
        if group.failure is not None:
            raise ClusterError(f"{group.failure} The model is the best one so far: gap {self.gap_:.1e}.")
        return self

    def _warn(self, solutions, X=None):
        """Set `status_`, and warn as the ordinary estimator does, unless a ClusterError will say why the fit ended."""
        if self._group is None or self._group.failure is None:
            super()._warn(solutions, X)
        else:
            self.status_ = Status.INTERRUPTED.value

    def _set_features(self, rows):
        """Set the number of features, and their names."""
        self.n_features_in_ = rows.n_features
        vars(self).pop("feature_names_in_", None)
        if rows.names is not None:
            self.feature_names_in_ = np.array(rows.names, dtype=object)

    def to_local(self) -> Any:
        """Return the ordinary estimator with the same parameters and fitted attributes; it needs no cluster."""
        parameters = {name: value for name, value in self.get_params(deep=False).items() if name != "client"}
        model = self._ordinary(**parameters)
        vars(model).update({name: value for name, value in vars(self).items() if name.endswith("_")})
        return model

    def _lazily(self, method: str, X: Any) -> Any:
        """Return a method of the ordinary estimator on X, as a Dask array if X is on the cluster."""
        check_is_fitted(self)
        model = self.to_local()
        if isinstance(X, BlockFiles):
            parts = [delayed(_on_file)(model, method, path) for path in X.paths]
            lengths = [rows_of_file(path)[0] for path in X.paths]
        elif is_dask_collection(X):
            X = X if not isinstance(X, da.Array) or X.numblocks[1] == 1 else X.rechunk({1: -1})
            blocks = X.to_delayed()
            blocks = list(blocks.ravel()) if isinstance(X, da.Array) else list(blocks)
            parts = [delayed(_on_block)(model, method, block) for block in blocks]
            lengths = list(X.chunks[0]) if isinstance(X, da.Array) else [np.nan] * len(blocks)
        else:
            return getattr(model, method)(X)
        meta = _of_no_rows(model, method)
        arrays = [
            da.from_delayed(part, (length, *meta.shape[1:]), meta=meta)
            for part, length in zip(parts, lengths, strict=True)
        ]
        return da.concatenate(arrays, allow_unknown_chunksizes=True)

    def decision_function(self, X: Any) -> Any:
        """Return the scores of rows, as a lazy Dask array if X is on the cluster; otherwise as an array."""
        return self._lazily("decision_function", X)

    def predict(self, X: Any) -> Any:
        """Return the predictions of rows, as a lazy Dask array if X is on the cluster; otherwise as an array."""
        return self._lazily("predict", X)


def _on_block(model: WeightedModel, method: str, X: Any) -> Any:
    """Return a method of a model on a block of rows; for an empty block, no values."""
    return getattr(model, method)(X) if X.shape[0] else _of_no_rows(model, method)


def _of_no_rows(model, method):
    """Return what a method of a model returns for no rows."""
    nameless = copy(model)
    vars(nameless).pop("feature_names_in_", None)
    return getattr(nameless, method)(np.zeros((1, model.n_features_in_)))[:0]


def _on_file(model: WeightedModel, method: str, path: str) -> Any:
    """Return a method of a model on the rows of a row-block file."""
    return getattr(model, method)(open_blocks(local_path(path)))
