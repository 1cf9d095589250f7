"""The five cases of the demonstration: made-up rows, our machine, and what scikit-learn has for the same objective.

Rows are drawn with a fixed seed; held-out rows come from the same distribution. Both sides get the same rows, the same
C and kernel, and their default tolerances.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

MEMORY_LIMIT = 800_000_000  # bytes, of the fit from a file that is larger
N_BASIS = 500
_N_TEST = 20_000
_N_BLOCK = 100_000  # rows that are made at a time for the file
_N_DOCUMENTS = 20  # of a query
_MIN_BASIS = 20
_RBF = {"C": 10.0, "gamma": 0.5}


class Rows(NamedTuple):
    """Rows to train on and rows held out; `X` may be row blocks on disk, `queries` is None but for a ranking."""

    X: Any
    y: Any
    X_test: np.ndarray
    y_test: np.ndarray
    queries: np.ndarray | None = None
    queries_test: np.ndarray | None = None


@dataclass(frozen=True)
class Case:
    """One line of the demonstration.

    Attributes
    ----------
    machine, peer : str
        Our call, and scikit-learn's for the same objective; "" if there is none.
    score : str
        What is measured on the rows held out.
    n_rows, n_features : int
    make_rows : callable(n_rows, n_features, folder) -> Rows
    needs : str
        A package that is not always installed; "" if there is none.
    ours, theirs : callable(Rows) -> fitted model
        `theirs` is None if scikit-learn has no such machine.
    """

    machine: str
    peer: str
    score: str
    n_rows: int
    n_features: int
    make_rows: Callable[[int, int, Path], Rows]
    ours: Callable[[Rows], Any]
    theirs: Callable[[Rows], Any] | None
    needs: str = ""


def _linear_rows(n, d, folder):
    """Two classes with a plane between them and much overlap."""
    X, y = _overlapping(np.random.default_rng(1), n + _N_TEST, d, np.float64)
    return Rows(X[:n], y[:n], X[n:], y[n:])


def _overlapping(rng, n, d, dtype):
    """Return normal rows, the later columns larger, and the side of a fixed plane on which noise puts them."""
    X = rng.standard_normal((n, d), dtype=dtype)
    X *= np.linspace(0.2, 2.0, d, dtype=dtype)
    w = np.random.default_rng(0).standard_normal(d)
    noise = rng.standard_normal(n) * np.sqrt(d)
    return X, np.where(X @ w.astype(dtype) + noise > 0.0, 1, -1)


def _curved_rows(n, d, folder):
    """Two classes with a curved boundary, a tenth of the labels wrong."""
    rng = np.random.default_rng(2)
    X = rng.uniform(-1.0, 1.0, (n + _N_TEST, d))
    y = np.where(np.sin(4.0 * X[:, :4]).sum(axis=1) > 0.0, 1, -1)
    y[rng.random(len(y)) < 0.1] *= -1
    return Rows(X[:n], y[:n], X[n:], y[n:])


def _query_rows(n, d, folder):
    """Queries of twenty documents each, with relevance from 0 to 4."""
    rng = np.random.default_rng(3)
    n_all = n + _N_TEST
    X = rng.standard_normal((n_all, d))
    value = X @ np.random.default_rng(0).standard_normal(d) + np.sqrt(d) * rng.standard_normal(n_all)
    y = np.searchsorted(np.quantile(value, [0.5, 0.75, 0.9, 0.97]), value)
    queries = np.arange(n_all) // _N_DOCUMENTS
    return Rows(X[:n], y[:n], X[n:], y[n:], queries[:n], queries[n:])


def _rows_on_disk(n, d, folder):
    """A file of more bytes than the memory limit, written block by block."""
    from widemargin.data.blocks.reader import open_blocks
    from widemargin.data.blocks.writer import write_blocks

    path = folder / "rows.arrow"
    rng = np.random.default_rng(4)
    X_test, y_test = _overlapping(rng, _N_TEST, d, np.float32)
    starts = range(0, n, _N_BLOCK)
    blocks = (_overlapping(rng, min(_N_BLOCK, n - start), d, np.float32) for start in starts)
    write_blocks(path, blocks, keep_order=True, max_memory=MEMORY_LIMIT)
    return Rows(open_blocks(path), None, X_test, y_test)


def _linear(rows):
    from widemargin.models.linear import LinearSVC

    return LinearSVC(loss="hinge", C=1.0, random_state=0).fit(rows.X, rows.y)


def _linear_peer(rows):
    from sklearn.svm import LinearSVC

    return LinearSVC(loss="hinge", C=1.0, random_state=0, max_iter=1_000_000).fit(rows.X, rows.y)


def _rbf(rows):
    from widemargin.models.kernel.svc import SVC

    return SVC(**_RBF).fit(rows.X, rows.y)


def _rbf_peer(rows):
    from sklearn.svm import SVC

    return SVC(**_RBF, cache_size=1000).fit(rows.X, rows.y)


def _ranking(rows):
    from widemargin.models.cutting_plane.ranking import RankSVM

    return RankSVM(C=1000.0).fit(rows.X, rows.y, qid=rows.queries)


def _ranking_peer(rows):
    """Fit the differences of all pairs of a query, by which a linear classifier ranks: the same objective."""
    from sklearn.svm import LinearSVC

    better, worse = _pairs(rows.y, rows.queries)
    sign = np.where(np.arange(len(better)) % 2, 1.0, -1.0)
    differences = sign[:, None] * (rows.X[better] - rows.X[worse])
    model = LinearSVC(loss="hinge", C=1000.0 / len(better), fit_intercept=False, max_iter=1_000_000)
    return model.fit(differences, sign)


def _pairs(y, queries):
    """Return the rows of all pairs within queries: the better ones, and the worse ones."""
    better, worse = [], []
    for rows in np.split(np.arange(len(y)), np.flatnonzero(np.diff(queries)) + 1):
        i, j = np.nonzero(y[rows][:, None] > y[rows][None, :])
        better.append(rows[i])
        worse.append(rows[j])
    return np.concatenate(better), np.concatenate(worse)


def _from_disk(rows):
    from widemargin.models.linear import LinearSVC

    return LinearSVC(loss="hinge", C=1.0, random_state=0, max_memory=MEMORY_LIMIT).fit(rows.X)


def _n_basis(rows):
    return min(N_BASIS, max(_MIN_BASIS, len(rows.y) // 10))


def _basis(rows):
    from widemargin.models.kernel.svc import SVC

    return SVC(**_RBF, basis=_n_basis(rows), random_state=0).fit(rows.X, rows.y)


def _basis_peer(rows):
    from sklearn.kernel_approximation import Nystroem
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    features = Nystroem(gamma=_RBF["gamma"], n_components=_n_basis(rows), random_state=0)
    machine = LinearSVC(loss="hinge", C=_RBF["C"], random_state=0, max_iter=1_000_000)
    return make_pipeline(features, machine).fit(rows.X, rows.y)


CASES = {
    "linear": Case(
        "LinearSVC", "LinearSVC", "accuracy", 500_000, 50, _linear_rows, _linear, _linear_peer
    ),
    "kernel": Case("SVC, rbf", "SVC", "accuracy", 20_000, 8, _curved_rows, _rbf, _rbf_peer),
    "ranking": Case(
        "RankSVM", "LinearSVC of all pairs", "pairs in order", 60_000, 40, _query_rows, _ranking, _ranking_peer
    ),
    "disk": Case(
        "LinearSVC, from disk", "", "accuracy", 2_000_000, 120, _rows_on_disk, _from_disk, None, "pyarrow"
    ),
    "basis": Case(
        f"SVC, basis={N_BASIS}", "Nystroem, LinearSVC", "accuracy", 200_000, 8, _curved_rows, _basis, _basis_peer
    ),
}  # fmt: skip


def score(model, rows):
    """Return the score of a model of either side on the rows held out: accuracy, or pairs in the right order."""
    if rows.queries_test is None:
        return float(model.score(rows.X_test, rows.y_test))
    from widemargin.models.cutting_plane.queries import queries
    from widemargin.problems.ranking import concordance

    y, groups = rows.y_test.astype(np.float64), queries(rows.queries_test, len(rows.y_test))
    return float(concordance(model.decision_function(rows.X_test), y, groups).mean())
