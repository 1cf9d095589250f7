"""What the estimators on a cluster have in common: a client, fits whose rows are elsewhere, lazy predictions."""

import inspect
import os
from copy import copy
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask import delayed
from dask.base import is_dask_collection
from distributed import Client
from sklearn.base import is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from widemargin.data.blocks.reader import open_blocks
from widemargin.distributed.cluster_rows import ClusterRows
from widemargin.distributed.failures import ClusterFailure
from widemargin.distributed.group import Group
from widemargin.distributed.partition import THREADS
from widemargin.distributed.sources import BlockFiles, blocks_of, local_path, rows_of_file
from widemargin.errors import ClusterError
from widemargin.models.base import WeightedModel
from widemargin.solvers.contract import Status

_PRIVATE_PARTS = ("_gamma", "_seen_order")  # of fitted models


def on_cluster(cls: Any) -> Any:
    """Give an estimator class the parameters of the ordinary estimator that it derives from, and `client`."""
    ordinary = next(kind for kind in cls.__mro__ if "__init__" in vars(kind))
    signature = inspect.signature(ordinary.__init__)
    client = inspect.Parameter("client", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Client | None)

    def initialise(self: Any, *arguments: Any, client: Client | None = None, **parameters: Any) -> None:
        ordinary.__init__(self, *arguments, **parameters)
        self.client = client

    parameters = [*signature.parameters.values(), client]
    vars(initialise).update(__signature__=signature.replace(parameters=parameters), __name__="__init__")
    initialise.__qualname__, initialise.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    cls.__init__ = initialise
    cls._ordinary = ordinary
    cls._parameter_constraints = {**ordinary._parameter_constraints, "client": [Client, None]}
    return cls


class OnCluster:
    """Precedes an ordinary estimator in the bases of the estimator of the same name on a cluster."""

    _ordinary: type
    client: Client | None
    _group: Group | None = None  # during a fit

    def _fit_on(self, data, keep, **kind):
        """Call `keep` with the ClusterRows of the data, of labels unless `kind` says otherwise; return self.

        If the cluster fails, the best model so far is kept, if there is one, and a ClusterError is raised.
        """
        self._check_parameters()
        group = None
        try:
            with ClusterRows(self.client, data, n_jobs=self.n_jobs, **{"as_labels": True, **kind}) as rows:
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

    def _limits(self, report, n_tasks):
        """Return the settings of every solver; on a worker, threads are those that it has for a task."""
        return {**super()._limits(report, n_tasks), "n_jobs": THREADS}

    def _set_features(self, rows):
        """Set the number of features, and their names."""
        self.n_features_in_ = rows.n_features
        vars(self).pop("feature_names_in_", None)
        if rows.names is not None:
            self.feature_names_in_ = np.array(rows.names, dtype=object)

    def to_local(self: Any) -> Any:
        """Return the ordinary estimator with the same parameters and fitted attributes; it needs no cluster."""
        parameters = {name: value for name, value in self.get_params(deep=False).items() if name != "client"}
        model = self._ordinary(**parameters)
        vars(model).update(
            {name: value for name, value in vars(self).items() if name.endswith("_") or name in _PRIVATE_PARTS}
        )
        return model

    def _lazily(self, method: str, X: Any) -> Any:
        """Return a method of the ordinary estimator on X, as a Dask array if X is on the cluster."""
        check_is_fitted(self)
        model = self.to_local()
        if not is_on_cluster(X):
            return getattr(model, method)(X)
        if isinstance(X, BlockFiles):
            parts = [delayed(_on_file)(model, method, path) for path in X.paths]
            lengths = [rows_of_file(path)[0] if os.path.exists(path) else np.nan for path in X.paths]
        else:
            parts = [delayed(_on_block)(model, method, block) for block in blocks_of(X)]
            lengths = list(X.chunks[0]) if isinstance(X, da.Array) else [np.nan] * len(parts)
        meta = _of_no_rows(model, method)
        arrays = [
            da.from_delayed(part, (length, *meta.shape[1:]), meta=meta)
            for part, length in zip(parts, lengths, strict=True)
        ]
        return da.concatenate(arrays, allow_unknown_chunksizes=True)

    @available_if(lambda self: hasattr(self._ordinary, "decision_function"))
    def decision_function(self, X: Any) -> Any:
        """Return the scores of rows, as a lazy Dask array if X is on the cluster; otherwise as an array."""
        return self._lazily("decision_function", X)

    def predict(self, X: Any) -> Any:
        """Return the predictions of rows, as a lazy Dask array if X is on the cluster; otherwise as an array."""
        return self._lazily("predict", X)

    @available_if(lambda self: hasattr(super(), "predict_proba"))
    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of classes, as a lazy Dask array if X is on the cluster; otherwise as an array."""
        return self._lazily("predict_proba", X)

    @available_if(lambda self: hasattr(super(), "predict_log_proba"))
    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithms of `predict_proba`, as it does."""
        return self._lazily("predict_log_proba", X)

    @available_if(lambda self: hasattr(self._ordinary, "score"))
    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the accuracy of a classifier, or the R² of a regressor; predictions come to this process for it.

        Of row-block files, y=None and sample_weight=None take the labels and the weights of the files.
        """
        if not is_on_cluster(X):
            return self.to_local().score(X, y, sample_weight)
        if isinstance(X, BlockFiles) and y is None:
            y, sample_weight = belongings_of_files(X)
        metric = accuracy_score if is_classifier(self) else r2_score
        y, predicted, weight = dask.compute(y, self.predict(X), sample_weight)
        return float(metric(np.asarray(y), predicted, sample_weight=None if weight is None else np.asarray(weight)))


def is_on_cluster(X: Any) -> bool:
    """Return whether rows are those of a Dask collection, or of files that workers read."""
    return isinstance(X, BlockFiles) or is_dask_collection(X)


def belongings_of_files(X: BlockFiles) -> tuple[Any, Any]:
    """Return the labels and the weights of row-block files, read by workers; None if there are no weights."""
    found = dask.compute(*(delayed(_belongings)(path) for path in X.paths))
    labels, weights = zip(*found, strict=True)
    return np.concatenate(labels), None if any(one is None for one in weights) else np.concatenate(weights)


def _belongings(path):
    blocks = open_blocks(local_path(path))
    return blocks.labels, blocks.weight


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
