"""The multipliers of a KernelQP that are still being optimised, and those that have been set aside.

Setting multipliers aside ("shrinking") makes everything smaller: scans, kernel rows, the update of the gradient. The
arrays of those still active are kept together. A kernel row whose multipliers are all set aside is removed; its entry
of f = K beta stays as it was, together with the multipliers of that moment, so that later only the rows whose
multipliers have changed since have to be added.

After Ctrl-C there is no time for all of that. What is left out then, Σ_s Δ_s K_st over the rows s that were not added,
is at most √K_tt Σ_s |Δ_s| √K_ss for a positive definite kernel: this `slack` of f_t enters the bounds that are
reported.
"""

import time
from itertools import pairwise

import numpy as np

from widemargin._compiled import compiled
from widemargin._threads import run, split
from widemargin.kernels.cache import HeldRows, RowCache

_RANGE = 8192  # columns of one task of a threaded update
_ULPS = 4.0
_LARGEST_OBJECTIVE = 1e300
_BLOCK = 256  # kernel rows that are computed at once when f is completed


class ActiveSet:
    """The state that kernel solvers share.

    Parameters
    ----------
    problem : KernelQP
    settings : KernelSettings
    start : ndarray or None
        Multipliers to start from, brought into the box and, where the sums of groups are zero, multiplied by what makes
        the objective least; the problem's own start if they do not keep its sums.
    least_rows : int
        Kernel rows that the cache has to hold at the same time.

    Attributes
    ----------
    beta, linear, lower, upper, diagonal : ndarray
        Of the active multipliers, whose indices in the problem are `index`.
    F, rising, falling, levels : ndarray
        What `scan` found.
    position : ndarray
        Where in `f` the row of each active multiplier is.
    rows, f : ndarray
        The active kernel rows and K beta there.
    ends : ndarray
        Where each group begins and ends among the active multipliers.
    slack : ndarray
        By how much each entry of f may be wrong besides rounding: 0 except after a completion that was cut short.
    cache : RowCache
    """

    def __init__(self, problem, settings, start, least_rows):
        self.problem, self.settings = problem, settings
        _check_sizes(problem)
        held = problem.K.held is not None and not settings.shrinking
        self.cache = HeldRows(problem.K) if held else RowCache(problem.K, settings.cache_size, least_rows)
        self._beta = _feasible(problem, start)  # of all multipliers; those of active ones are out of date
        self._f, self.slack = np.zeros((2, problem.K.n_rows))
        self._removed = []
        self._largest = np.abs(problem.K.diagonal).max(initial=0.0)
        self._whole = True  # whether f is that of the multipliers; not so in the middle of a change
        self._activate(np.arange(len(self._beta)), np.arange(problem.K.n_rows))
        self.recompute()
        if start is not None:
            self._stretch()

    @property
    def passes(self):
        """Kernel rows computed, as a fraction of all."""
        return self.cache.n_computed / self.problem.K.n_rows

    @property
    def everything(self):
        """Whether all multipliers are active."""
        return len(self.index) == len(self.problem.start)

    def _row_weights(self):
        """Return the sum of the multipliers of each kernel row."""
        return np.bincount(self.problem.row, self._beta, minlength=self.problem.K.n_rows)

    def _activate(self, index, rows):
        """Collect what belongs to the multipliers `index` and the kernel rows `rows`, both ascending."""
        problem = self.problem
        where = np.zeros(problem.K.n_rows, np.int64)
        where[rows] = np.arange(len(rows))
        self.index, self.rows, self.beta, self.f = index, rows, self._beta[index], self._f[rows]
        self.position = where[problem.row[index]]
        self.linear = problem.linear[index]
        self.lower, self.upper = problem.lower[index], problem.upper[index]
        self.diagonal = problem.K.diagonal[problem.row[index]]
        self.ends = np.searchsorted(index, problem.ends)
        self.F, self.rising, self.falling = np.empty((3, len(index)))
        self.levels = np.empty((len(self.ends) - 1, 2))

    def scan(self):
        """Compute the gradient F = K beta + p of the active multipliers and what each may do; return the violation.

        Sets `F`; `rising`, F where a multiplier may rise and infinite elsewhere; `falling`, −F where it may fall;
        and `levels`, for each group the smallest F that may rise and the largest that may fall.
        """
        if not np.isfinite(self.f.sum()):
            raise ValueError("Sums of kernel values are not finite: scale the features or the kernel's values.")
        return _scan(
            self.f, self.position, self.linear, self.beta, self.lower, self.upper, self.ends,
            self.F, self.rising, self.falling, self.levels,
        )  # fmt: skip

    def offsets(self):
        """Return the level r_g of each group: the mean F of multipliers inside their intervals, else between bounds.

        Where that is not admissible, as a margin or a tube below zero, the nearest that is.
        """
        self.scan()
        free = (self.beta > self.lower) & (self.beta < self.upper)
        offsets = np.empty(len(self.levels))
        for g, bounds in enumerate(self.levels):
            here = slice(self.ends[g], self.ends[g + 1])
            if free[here].any():
                offsets[g] = self.F[here][free[here]].mean()
            else:
                bounds = bounds[np.isfinite(bounds)]
                offsets[g] = bounds.mean() if len(bounds) else 0.0
        return self.problem.admissible(offsets)

    def rounding(self):
        """Return how exact F can be: its terms, |beta_t K_tt| and less, in units of the last place."""
        return _ULPS * np.finfo(np.float64).eps * np.abs(self.beta).sum() * self._largest

    def objective(self):
        """Return ½ beta'K beta + p'beta of the active multipliers, by the F of the last scan."""
        return 0.5 * (self.beta @ self.F + self.beta @ self.linear)

    def measure(self, stretch=1.0):
        """Return (primal, dual) of the whole problem, the primal that of the function times `stretch`.

        No row may have been removed.
        """
        offsets = np.repeat(self.offsets(), np.diff(self.ends))
        dual = -self.objective()
        if stretch == 1.0:
            distance = self.F - offsets
            gap = np.where(distance > 0, (self.beta - self.lower) * distance, (self.beta - self.upper) * distance).sum()
            error = 0.0
            if self.slack.any():
                slack = self.slack[self.problem.row]
                gap += float(slack @ np.maximum(self.beta - self.lower, self.upper - self.beta))
                error = 0.5 * float(slack @ np.abs(self.beta))
            return dual + error + gap, dual - error
        scores = self.F - self.linear
        residual = stretch * (offsets - scores) - self.linear
        losses = np.where(residual > 0.0, self.upper * residual, self.lower * residual).sum()
        return 0.5 * stretch**2 * (self.beta @ scores) + losses - stretch * (self.beta @ offsets), dual

    def move(self, chosen, beta, slots):
        """Give multipliers new values and add what that changes to f, by their cached rows."""
        change = beta - self.beta[chosen]
        moved = np.flatnonzero(change)
        if len(moved):
            self._whole = False
            self.beta[chosen] = beta
            _add_threaded(self.cache.values, slots[moved], change[moved], self.f, self.settings.n_jobs)
            self._whole = True

    def set_aside(self, remain):
        """Go on with the multipliers where `remain` is true; remove the kernel rows that none of them belongs to."""
        self._beta[self.index], self._f[self.rows] = self.beta, self.f
        kept = np.zeros(len(self.rows), bool)
        kept[self.position[remain]] = True
        self._whole = False
        if not kept.all():
            self._removed.append((self.rows[~kept], self._row_weights()))
            self.cache.keep_columns(self.rows[kept], np.flatnonzero(kept))
        self._activate(self.index[remain], self.rows[kept])
        self._whole = True

    def bring_back(self, seconds=np.inf):
        """Make all multipliers active again, with f complete, even if the last change was interrupted.

        After so many seconds the rest of f is bounded, where the kernel allows it: see `slack`.
        """
        if self._whole and self.everything:
            return
        until = time.perf_counter() + seconds if self.problem.K.kernel.positive_definite else np.inf
        self._beta[self.index] = self.beta
        if self._removed:
            self.cache.all_columns()
        if self._whole:
            self._f[self.rows] = self.f
            self._whole = False
            for rows, weights in self._removed:
                self._add_changes(self._row_weights() - weights, rows, until)
        else:
            self._f[:] = 0.0
            self._add_changes(self._row_weights(), np.arange(len(self._f)), until)
        self._removed = []
        self._activate(np.arange(len(self._beta)), np.arange(len(self._f)))
        self._whole = True

    def recompute(self):
        """Compute f from the multipliers alone, free of accumulated rounding, and make all multipliers active."""
        self._whole = False
        self.bring_back()

    def _stretch(self):
        """Multiply all multipliers by the factor within the box that makes the objective least.

        After a change of C, that brings those at their bounds to the new ones where nothing else is better.
        """
        if _sums(self.problem, self.problem.start).any():
            return
        curvature, slope = self.beta @ self.f[self.position], self.beta @ self.linear
        if curvature > 0.0 and slope < 0.0:
            factor = min(-slope / curvature, _room(self.problem, self.beta))
            self.beta *= factor
            self.f *= factor
            np.clip(self.beta, self.lower, self.upper, out=self.beta)

    def _add_changes(self, weights, rows, until):
        """Add Σ_i weights_i K_i to f at the given rows; keep the K_i if these are most of the rows and they fit."""
        K = self.problem.K
        changed = np.flatnonzero(weights)
        if not len(changed):
            return
        if until == np.inf and 2 * len(rows) > K.n_rows and len(changed) <= self.cache.n_slots:
            sums, slots = self._f.copy(), self.cache.fetch(changed)
            _add_threaded(self.cache.values, slots, weights[changed], sums, self.settings.n_jobs)
            self._f[rows] = sums[rows]
        else:
            self._add_blocks(weights, changed, rows, until)

    def _add_blocks(self, weights, changed, rows, until):
        """Add Σ_i weights_i K_i, i in `changed`, to f at the given rows, in blocks that are not kept.

        The largest first if that may take only `until` a time; what is left then is added to the slack.
        """
        K = self.problem.K
        if until < np.inf:
            changed = changed[np.argsort(-np.abs(weights[changed]), kind="stable")]
        every = len(rows) == K.n_rows
        columns = K.columns(None if every else rows)
        block = self.cache.lend(min(len(changed), _BLOCK), len(rows))
        n_block, slots, sums = len(block), np.arange(len(block)), self._f[rows]
        for begin in range(0, len(changed), n_block):
            if time.perf_counter() > until:
                left = changed[begin:]
                size = float(np.abs(weights[left]) @ np.sqrt(np.maximum(K.diagonal[left], 0.0)))
                self.slack[rows] += size * np.sqrt(np.maximum(K.diagonal[rows], 0.0))
                break
            part = changed[begin : begin + n_block]
            K.fill(part, columns, block, slots[: len(part)])
            _add_threaded(block, slots[: len(part)], weights[part], sums, self.settings.n_jobs)
            self.cache.n_computed += len(part) * len(rows) / K.n_rows
        self._f[rows] = sums


def _check_sizes(problem):
    """Raise ValueError if the objective may overflow: it is at most ½ bound of K (Σ costs)² + Σ costs |p|."""
    costs = np.maximum(np.abs(problem.lower), np.abs(problem.upper)).sum()
    linear = float(np.abs(problem.linear).max(initial=0.0))
    most = np.maximum(costs, 1.0)
    with np.errstate(over="ignore"):
        size = max(problem.K.bound, 1.0) * most**2 + linear * most
    if not size < _LARGEST_OBJECTIVE:
        raise ValueError(
            f"The objective overflows: kernel values reach {problem.K.bound:.3g}, targets {linear:.3g} and the weights "
            f"of losses add up to {costs:.3g}. Scale the features or the targets, or lower C or sample_weight."
        )


def _feasible(problem, start):
    """Return the start within its box if that leaves the sums of the groups as they have to be, else the problem's."""
    if start is None:
        return problem.start.copy()
    start, sums = np.asarray(start, dtype=np.float64), _sums(problem, problem.start)
    if not sums.any():
        start = start * min(1.0, _room(problem, start))
    start = np.clip(start, problem.lower, problem.upper)
    scale = max(1.0, np.abs(start).max(initial=0.0))
    if (np.abs(_sums(problem, start) - sums) > 1e-10 * scale * np.maximum(1, np.diff(problem.ends))).any():
        return problem.start.copy()
    return start


def _sums(problem, beta):
    """Return the sum of each group."""
    return np.array([beta[begin:end].sum() for begin, end in pairwise(problem.ends)])


def _room(problem, beta):
    """Return the largest factor that keeps beta in its box."""
    bound = np.where(beta > 0.0, problem.upper, problem.lower)
    return np.divide(bound, beta, out=np.full(len(beta), np.inf), where=beta != 0.0).min(initial=np.inf)


def _add_threaded(values, slots, weights, sums, n_jobs):
    ranges = split(len(sums), -(-len(sums) // _RANGE))
    slots = np.ascontiguousarray(slots, dtype=np.int64)
    run(_add_weighted, [(values, slots, weights, start, stop, sums) for start, stop in ranges], n_jobs)


@compiled
def _scan(f, position, linear, beta, lower, upper, ends, F, rising, falling, levels):
    """See `ActiveSet.scan`."""
    violation = 0.0
    for g in range(levels.shape[0]):
        smallest, largest = np.inf, -np.inf
        for t in range(ends[g], ends[g + 1]):
            slope = f[np.uint64(position[t])] + linear[t]
            F[t] = slope
            rising[t] = slope if beta[t] < upper[t] else np.inf
            falling[t] = -slope if beta[t] > lower[t] else np.inf
            smallest = min(smallest, rising[t])
            largest = max(largest, -falling[t])
        levels[g, 0], levels[g, 1] = smallest, largest
        violation = max(violation, largest - smallest)
    return violation


@compiled(fastmath=frozenset({"contract"}))
def _add_weighted(values, slots, weights, start, stop, sums):
    """Add Σ_k weights[k] values[slots[k]] to sums[start:stop], four lines at a time, sums staying in cache."""
    for begin in range(start, stop, 1024):
        end = min(begin + 1024, stop)
        part = sums[begin:end]
        k = 0
        while k + 4 <= slots.size:
            w0, w1, w2, w3 = weights[k], weights[k + 1], weights[k + 2], weights[k + 3]
            line0, line1 = values[np.uint64(slots[k])][begin:end], values[np.uint64(slots[k + 1])][begin:end]
            line2, line3 = values[np.uint64(slots[k + 2])][begin:end], values[np.uint64(slots[k + 3])][begin:end]
            for j in range(part.size):
                part[j] += (w0 * line0[j] + w1 * line1[j]) + (w2 * line2[j] + w3 * line3[j])
            k += 4
        while k < slots.size:
            w0, line0 = weights[k], values[np.uint64(slots[k])][begin:end]
            for j in range(part.size):
                part[j] += w0 * line0[j]
            k += 1
