"""`sbm`: selective block minimisation, dual coordinate descent for rows that do not fit into memory.

    pass        each block is read once: some sweeps of coordinate descent over its rows, then the rows whose dual
                variable is likely to change again are kept in memory
    in between  coordinate descent over the kept rows, until their violations are a tenth of what they were

A row is kept if its dual variable is free, or if its score is so close to a corner of its loss that it may become so;
if these are more than memory allows, the closest ones.

The certificate needs no pass of its own. While the weights change from block to block, the losses of each block are
also measured at the weights with which the pass began; at its end they sum up to the objective of that point, whose
duality gap is then known. The point is returned if the gap is small enough.

References: Yu, Hsieh, Chang, Lin, "Large linear classification when data cannot fit in memory", KDD 2010; Chang, Roth,
"Selective block minimization for faster convergence of limited memory large-scale linear models", KDD 2011.
"""

from typing import NamedTuple

import numpy as np

from widemargin._runtime.compile import compiled
from widemargin.data.rows import DenseRows, SparseRows, joined_rows, row_dot, row_norm, taken
from widemargin.problems.certificates import losses, relative_gap
from widemargin.problems.formulations import DualQP, Intercept
from widemargin.problems.magnitudes import check_rows
from widemargin.solvers.contract import Solution, Status, Watch
from widemargin.solvers.coordinate_descent.dcd import ShrinkingSweeps
from widemargin.solvers.coordinate_descent.state import half_square, measure_rows, random_state, zeroed_records
from widemargin.solvers.spec import Losses, Rows, SolverSpec, Start, always

_SWEEPS_PER_BLOCK = 2
_VIOLATION_LEFT = 0.1  # of that of the first sweep over the kept rows, when these sweeps end
_MOST_SWEEPS_OF_KEPT_ROWS = 50
_MARGIN = 1.0  # distance of a score from a corner of its loss within which a row is kept
_MAY_GO_ON = (Status.MAX_ITER, Status.MAX_SECONDS, Status.CALLBACK, Status.STALLED)  # from a checkpoint
_PASSES_WITHOUT_PROGRESS = 20  # before the run ends


def sbm(problem, settings, start=None):
    """Minimise a DualQP by selective block minimisation; `start` are dual variables."""
    watch, passes = Watch(settings, "passes"), _Passes(problem, settings, start)
    with watch:
        watch.restore(passes)
        while watch.status is None:
            if not passes.make_pass():
                watch.status = Status.INTERRUPTED
                break
            watch.record(passes.count, float(passes.count), passes.primal, passes.dual)
            over = watch.should_stop("sbm", passes.count, float(passes.count))
            if relative_gap(passes.primal, passes.dual) <= settings.tol:
                watch.status = Status.CONVERGED
            elif not over and passes.are_stuck:
                watch.status = Status.STALLED
            goes_on_later = settings.checkpoint is not None and watch.status in _MAY_GO_ON
            if watch.status is None or goes_on_later:
                passes.sweep_kept_rows()
                watch.save(passes, now=goes_on_later)
    if passes.count == 0:  # interrupted in the first pass
        watch.record(0, 0.0, passes.primal, passes.dual)
    return Solution(
        w=passes.best_w,
        beta=passes.best_beta,
        primal=passes.primal,
        dual=passes.dual,
        n_iter=passes.count,
        status=watch.status,
        solver="sbm",
        history=watch.history(),
        counts="passes",
    )


def _refuses(problem):
    """Return why a DualQP is refused, or None."""
    if problem.X.is_centred:
        return "sweeps over sparse rows, which scaling='standard' would make dense"
    return None


SBM = SolverSpec(
    name="sbm",
    solve=sbm,
    takes=frozenset({DualQP}),
    intercepts=frozenset({Intercept.NONE, Intercept.PENALISED}),
    losses=Losses.QUADRATIC,
    starts_from=Start.DUAL,
    stopping=("gap",),
    counts="passes",
    reads=Rows.BLOCKS,
    refuses=_refuses,
    writes_checkpoints=always,
)


class _LooseRows(NamedTuple):
    """Rows for compiled loops under the name that a Matrix gives them."""

    rows: DenseRows | SparseRows


class _RowsInMemory(NamedTuple):
    """Some rows, their records and the weights, as sweeps know them; `w` is that of all rows."""

    X: _LooseRows
    rows: np.ndarray
    w: np.ndarray


class _Passes:
    """Passes over the blocks, and sweeps over the rows kept of the last one.

    Attributes
    ----------
    count : int
        Passes made.
    primal, dual : float
        The lowest objective and the highest dual value that a pass has measured.
    best_w, best_beta : ndarray
        The weights and dual variables that have them.
    are_stuck : bool
        Whether many passes have improved neither.
    """

    STATE = (
        "_records", "_w", "_random", "count", "_n_without_progress", "primal", "dual", "best_w", "best_beta",
    )  # fmt: skip

    def __init__(self, problem, settings, start):
        X = problem.X
        check_rows(problem, X.squared_norms(settings.n_jobs))
        self._X, self._settings, self._random = X, settings, random_state(settings.seed)
        self._records = zeroed_records(X.n_rows)
        for name in ("target", "lower", "upper", "curvature", "epsilon"):
            self._records[name] = getattr(problem, name)
        self._records["preference"] = 1.0
        self._w = np.zeros(X.n_columns)
        if start is not None:
            self._records["beta"] = np.clip(start, problem.lower, problem.upper)
            self._w[:] = X.combine(self._records["beta"], settings.n_jobs)
        self._share = min(1.0, X.most_rows_in_memory / max(1, X.n_rows))
        self._kept = []
        self.count, self._n_without_progress = 0, 0
        self.primal, self.dual = float(losses(problem, np.zeros(X.n_rows)).sum()), 0.0  # of zeros
        self.best_w, self.best_beta = np.zeros(X.n_columns), np.zeros(X.n_rows)

    @property
    def are_stuck(self):
        return self._n_without_progress >= _PASSES_WITHOUT_PROGRESS

    def make_pass(self):
        """Read each block once: measure its losses at the first weights, sweep over its rows, keep the likely ones.

        Returns whether the pass was made; one that is interrupted measures nothing.
        """
        w, beta = self._w.copy(), self._records["beta"].copy()
        sums, n_visited, self._kept = np.zeros(2), 0, []

        def visit(rows, start, stop):
            nonlocal sums, n_visited
            records = self._records[start:stop]
            if self.count == 0:
                _set_curvatures(rows, records)
            sums = sums + measure_rows(rows, records, w, 0, stop - start)
            self._sweeps(rows, records).sweep(_SWEEPS_PER_BLOCK * len(records), _SWEEPS_PER_BLOCK)
            chosen = self._likely(rows, records)
            n_visited += stop - start
            self._kept.append((start + chosen, taken(rows, chosen)))

        self._X.visit_blocks(visit, self._settings.interrupt)
        if n_visited < len(self._records):
            return False
        loss, value = sums
        half_norm = half_square(w)
        self.count += 1
        self._take(half_norm + loss, value - half_norm, w, beta)
        return True

    def _take(self, primal, dual, w, beta):
        """Keep a measured point, if it is better than what is known."""
        self._n_without_progress += 1
        if primal < self.primal:
            self.primal, self.best_w, self._n_without_progress = float(primal), w, 0
        if dual > self.dual:
            self.dual, self.best_beta, self._n_without_progress = float(dual), beta, 0

    def _sweeps(self, rows, records):
        sweeps = ShrinkingSweeps(_RowsInMemory(_LooseRows(rows), records, self._w), self._settings)
        sweeps.random = self._random
        return sweeps

    def _likely(self, rows, records):
        """Return the rows of a block whose dual variables are likely to change again, ascending."""
        distance, most = np.empty(len(records)), int(self._share * len(records))
        _set_distances(rows, records, self._w, distance)
        chosen = np.flatnonzero(distance <= _MARGIN)
        if len(chosen) > most:
            chosen = np.sort(chosen[np.argpartition(distance[chosen], most)[:most]]) if most else chosen[:0]
        return chosen

    def sweep_kept_rows(self):
        """Sweep over the rows kept of all blocks, until their violations are small against those at the beginning."""
        index = np.concatenate([index for index, _ in self._kept]) if self._kept else np.zeros(0, np.int64)
        if not len(index):
            return
        rows, self._kept = joined_rows([rows for _, rows in self._kept]), []
        records = zeroed_records(len(index))
        records[:] = self._records[index]
        sweeps, first = self._sweeps(rows, records), None
        for _ in range(_MOST_SWEEPS_OF_KEPT_ROWS):
            report = sweeps.sweep(0, 1)
            first = report.violation if first is None else first
            if self._settings.interrupt.is_set() or not report.moved:
                break
            if report.violation <= _VIOLATION_LEFT * first:
                if report.full:
                    break
                sweeps.reset_selection()
        self._records["beta"][index] = records["beta"]


@compiled
def _set_curvatures(rows, records):
    """Set the curvature of the dual along each variable: |x_i|² plus that of its loss."""
    for i in range(records.size):
        records[i]["total_curvature"] = row_norm(rows, i) + records[i]["curvature"]


@compiled
def _set_distances(rows, records, w, out):
    """Set out to the distance of each score from the nearest corner of the loss; 0 for a free dual variable."""
    for i in range(records.size):
        row = records[i]
        beyond = abs(abs(row["target"] - row_dot(rows, i, w)) - row["epsilon"])
        is_free = (row["beta"] != 0.0) & (row["lower"] < row["beta"]) & (row["beta"] < row["upper"])
        out[i] = np.inf if row["lower"] == row["upper"] else (0.0 if is_free else beyond)
