"""Rows of a file as a model wants them: with as many columns as it has features, or kernel values it needs."""

from scipy.sparse import csr_array, issparse

from widemargin._runtime.warning import warn_caller
from widemargin.models.cutting_plane.ranking import RankSVM
from widemargin.models.kernel.machines import machine_of
from widemargin.workflows.errors import ArgumentError, FileWarning
from widemargin.workflows.files import name_of, note_queries, read_rows
from widemargin.workflows.precomputed import read_kernel_rows
from widemargin.workflows.spelling import spelled


def read_rows_for(model, data, model_path, *, zero_based):
    """Return the rows of a file, with as many columns as the model has features, their labels and queries or None.

    Parameters
    ----------
    model : fitted estimator
        A kernel machine is given more features if the file has more: its support vectors are zero there.
    data : str or binary file object
        The file of rows.
    model_path : str
        That of the model, for messages.
    zero_based : {"auto", True, False}
        Whether indices count from 0.
    """
    n_features = getattr(model, "n_features_in_", 0)  # LIBSVM's text does not tell if there is no support vector
    if getattr(model, "kernel", None) == "precomputed":
        if zero_based != "auto":
            raise ArgumentError(
                f"{spelled('zero_based')} is for features, {model_path} has a precomputed kernel; leave it out"
            )
        K, _, y = read_kernel_rows(data, n_columns=n_features)
        return K[:, :n_features], y, None
    X, y, qid = read_rows(data, zero_based=zero_based)
    note_queries(data, qid, wanted=isinstance(model, RankSVM))
    if X.shape[1] <= n_features:
        X.resize(X.shape[0], n_features)
    elif machine_of(model) is not None:
        _widen(model, X.shape[1])
    else:
        extent = f"{name_of(data)} has {X.shape[1]} features, the model {n_features}"
        warn_caller(f"{extent}: the columns beyond are dropped", FileWarning)
        X = X[:, :n_features]
    return X, y, qid


def _widen(model, n_features):
    """Let a kernel machine have more features; its support vectors are zero there."""
    support = csr_array(model.support_vectors_)
    support.resize(support.shape[0], n_features)
    model.support_vectors_ = support if issparse(model.support_vectors_) else support.toarray()
    model.n_features_in_ = n_features
