"""Row-block files on a Dask cluster in workflows: the workers read the files, and the model is an ordinary one."""

import errno
import glob
import importlib
import os
import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier

from widemargin._runtime.warning import warn_caller
from widemargin.errors import ClusterError
from widemargin.models.base import LinearModel, WeightedModel
from widemargin.models.cutting_plane.ranking import RankSVM
from widemargin.models.kernel.base import KernelModel
from widemargin.models.linear_one_class import LinearOneClassSVM
from widemargin.workflows.block_files import is_block_file, name_of_files, refuse_options_of_text
from widemargin.workflows.errors import ArgumentError, FileError, FileNote, spelled
from widemargin.workflows.files import naming_the_file, note_queries
from widemargin.workflows.model_rows import check_classes, check_words

_LOCAL = "local"


class ClusterFit(NamedTuple):
    """What came of a fit on a cluster: the ordinary estimator, facts, and the error that ended the fit, or None."""

    model: Any
    facts: dict
    error: ClusterError | None


@dataclass(frozen=True)
class ClusterFiles:
    """Row-block files for a fit on a cluster, which need not be visible from here.

    Attributes
    ----------
    paths : list of str
    """

    paths: list[str]

    @property
    def name(self) -> str:
        """The name of the files in messages."""
        return name_of_files(self.paths)


def cluster_files(model, data, dask, options):
    """Return the ClusterFiles that a path, a pattern or a list of these stands for.

    Raises
    ------
    ArgumentError
        If the estimator, the data or an option is not for a cluster.
    FileError
        If a file is not a row-block file, or Dask is not installed.
    """
    name = spelled("dask")
    if not isinstance(model, WeightedModel) and getattr(model, "basis", None) is None:
        raise ArgumentError(
            f"{name} is for linear machines, and with {spelled('basis')} for some kernel machines; "
            f"{type(model).__name__} is neither: leave it out"
        )
    if isinstance(model, LinearOneClassSVM):
        raise ArgumentError(f"{name} is not for linear one-class machines, whose rows are in one process; leave it out")
    if isinstance(dask, str) and dask != _LOCAL and ":" not in dask:
        raise ArgumentError(
            f"{name} must be {_LOCAL}, or the address of a scheduler such as tcp://HOST:8786, got {dask!r}"
        )
    several = data if isinstance(data, list | tuple) else [data]
    if not all(isinstance(path, str | bytes | os.PathLike) and path != "-" for path in several):
        raise ArgumentError(f"{name} is for row-block files, which the workers read; name them in {spelled('data')}")
    for path in map(os.fsdecode, several):
        must_be_here = dask == _LOCAL or glob.has_magic(path)  # workers elsewhere may see other files
        if must_be_here and "://" not in path and not os.path.lexists(path) and not glob.glob(path):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    from_blocks = _distributed("sources").from_blocks
    paths = list(from_blocks([_as_given(os.fsdecode(path)) for path in several]).paths)
    for path in paths:
        if os.path.isfile(path) and not is_block_file(path):
            raise FileError(
                f"{path} is not a row-block file, and {name} is for such; convert it first with "
                f"{spelled('convert_file')}"
            )
    given = {spelled("n_features"): options.n_features is not None, spelled("zero_based"): options.zero_based != "auto"}
    refuse_options_of_text(paths, {**given, spelled("dtype"): np.dtype(options.dtype) != np.float64})
    return ClusterFiles(paths)


def _as_given(path):
    """Return a path, with the characters of patterns escaped if a file has that very name."""
    return glob.escape(path) if "://" not in path and os.path.lexists(path) else path


def _distributed(module):
    """Return a module of `widemargin.distributed`; FileError if Dask is not installed."""
    try:
        return importlib.import_module(f"widemargin.distributed.{module}")
    except ImportError as error:
        raise FileError(
            f"{spelled('dask')} needs Dask, and {error.name or 'it'} is not installed: pip install 'widemargin[dask]'"
        ) from error


def fit_on_cluster(model, files, dask, options):
    """Return the ClusterFit of a linear model, or one on a basis, and ClusterFiles.

    `n_jobs` of the model is the number of processes if `dask` is "local", and otherwise that of threads of each worker.
    If the cluster fails, the model is the best one so far; ClusterError if there is none.
    """
    connection = _distributed("connection")
    n_jobs = model.n_jobs if (model.n_jobs or 0) > 0 else None
    with connection.connected(dask, n_jobs) as client:
        rows = _distributed("sources").BlockFiles(tuple(files.paths))
        known = connection.facts_of_files(client, rows, labels=is_classifier(model), queries=isinstance(model, RankSVM))
        facts = _checked_facts(model, files.name, known, options)
        fitted = connection.counterpart(model, client).set_params(n_jobs=None if dask == _LOCAL else n_jobs)
        started, error = time.perf_counter(), None
        try:
            naming_the_file(files.name, fitted.fit, rows)
        except ClusterError as failure:
            if not hasattr(fitted, "intercept_"):
                raise
            error = failure
        facts |= {"workers": len(client.nthreads()), "seconds": time.perf_counter() - started}
        ordinary = fitted.to_local()
    if is_classifier(model) and ordinary.classes_.dtype.kind in "iu":
        ordinary.classes_ = ordinary.classes_.astype(np.int64)
    return ClusterFit(ordinary, facts, error)


def _checked_facts(model, name, known, options):
    """Return a dict of facts about the rows; FileError or notes if they do not suit the model, as for other files."""
    has_queries = any(one.n_queries is not None for one in known)
    note_queries(name, True if has_queries else None, wanted=isinstance(model, RankSVM))
    if any(one.has_weight for one in known) and not isinstance(model, LinearModel | KernelModel):
        warn_caller(f"{name} has weights of rows, which {type(model).__name__} does not use", FileNote)
    check_words(model, known[0].labels if known[0].has_words else None, name, options.format)
    if is_classifier(model) and not known[0].has_words:
        if any(one.labels is None for one in known):
            raise FileError(
                f"{name}: labels are not whole numbers, but classes are; for regression "
                f"{spelled('take SVR or LinearSVR')}"
            )
        check_classes(model, np.unique(np.concatenate([one.labels for one in known])), name, options.format)
    facts = {"rows": sum(one.n_rows for one in known), "features": known[0].n_features}
    if isinstance(model, RankSVM):
        facts["queries"] = sum(one.n_queries or 0 for one in known) if has_queries else 1
    return facts
