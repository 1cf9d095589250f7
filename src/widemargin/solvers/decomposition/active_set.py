"""The multipliers of a KernelQP that are still being optimised, and those that have been set aside.

Setting multipliers aside ("shrinking") makes everything smaller: scans, kernel rows, the update of the gradient. The
arrays of those still active are kept together. A kernel row whose multipliers are all set aside is removed; its entry
of f = K beta stays as it was, together with the multipliers of that moment, so that later only the rows whose
multipliers have changed since have to be added.

After Ctrl-C there is no time for all of that. What is left out then, Σ_s Δ_s K_st over the rows s that were not added,
is at most √K_tt Σ_s |Δ_s| √K_ss for a positive definite kernel: this `slack` of f_t enters the bounds that are
reported, and so does `wrong`, what rounding has made of f.
"""

import math
import time
from itertools import pairwise

import numpy as np

from widemargin._runtime.compile import compiled
from widemargin.kernels.cache import HeldRows, RowCache
from widemargin.solvers.decomposition.certificate import measure
from widemargin.solvers.decomposition.kernel_sums import SAFE, UNIT, add_rows, add_rows_exactly

_ULPS, _ULPS_OF_SUMS = 8.0, 4.0
_ROUNDING_THAT_SHOWS = 1e-10  # against the objective
_FEW_PRODUCTS = 1 << 22  # for sums that carry their rounding along
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
    wrong : float
        By how much an entry of f may be wrong by rounding.
    sums : ndarray
        What the multipliers of each group add up to.
    cache : RowCache
    """

    def __init__(self, problem, settings, start, least_rows):
        self.problem, self.settings = problem, settings
        _check_sizes(problem)
        held = problem.K.held is not None and not settings.shrinking
        self.cache = HeldRows(problem.K) if held else RowCache(problem.K, settings.cache_size, least_rows)
        self.sums = _sums(problem, problem.start)
        self._beta = _feasible(problem, start)  # of all multipliers; those of active ones are out of date
        self._f, self.slack = np.zeros((2, problem.K.n_rows))
        self._removed = []
        self._largest = np.abs(problem.K.diagonal).max(initial=0.0)
        self._sums_of_two = problem.K.bound if len(self._beta) > problem.K.n_rows else 0.0  # what their rounding costs
        self._whole = True  # whether f is that of the multipliers; not so in the middle of a change
        self.wrong, self._fresh = 0.0, True
        self._activate(np.arange(len(self._beta)), np.arange(problem.K.n_rows))
        self._whole = False
        self.bring_back()
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
        return self.problem.project_offsets(offsets)

    def rounding(self):
        """Return how exact F can be: its terms, |beta_t K_tt| and less, and its values, in units of the last place."""
        terms = np.abs(self.beta).sum() * self._largest
        return UNIT * (_ULPS * terms + _ULPS_OF_SUMS * np.abs(self.F).max(initial=0.0))

    def scale(self):
        """Return what the objective is at most if nothing cancels: Σ_t (upper_t − lower_t) (max |f| + max |p|)."""
        size = np.abs(self.beta).sum() * self._largest + np.abs(self.linear).max(initial=0.0)
        return float((self.upper - self.lower).sum() * size)

    def objective(self):
        """Return ½ beta'K beta + p'beta of the active multipliers, by the F of the last scan."""
        return 0.5 * (self.beta @ self.F + self.beta @ self.linear)

    def measure(self, stretch=1.0):
        """Return (primal, dual) of the whole problem, the primal that of the function times `stretch`.

        No row may have been removed.
        """
        return measure(self, stretch)[:2]

    @property
    def is_rough(self):
        """Whether rounding shows in what is measured, and can be taken out of f by `recompute` in little time."""
        if self._fresh or not self._can_be_exact():
            return False
        primal, _, doubt = measure(self)
        return not doubt <= _ROUNDING_THAT_SHOWS * abs(primal)

    def _can_be_exact(self):
        """Return whether there are few enough products, of sizes that can be split."""
        n_products = np.count_nonzero(self.beta) * self.problem.K.n_rows
        sizes = max(self.problem.K.bound, np.abs(self.beta).max(initial=0.0))
        return n_products <= _FEW_PRODUCTS and sizes < SAFE

    def move(self, chosen, beta, slots):
        """Give multipliers new values and add what that changes to f, by their cached rows."""
        change = beta - self.beta[chosen]
        moved = np.flatnonzero(change)
        if len(moved):
            self._whole = False
            self.beta[chosen] = beta
            self._add(self.cache.values, slots[moved], change[moved], self.f)
            self._whole = True

    def moved(self, n_steps):
        """Take notice of steps, of two multipliers each, by which a solver has changed F itself."""
        self._fresh = False
        self.wrong += _ULPS * UNIT * n_steps * np.abs(self.F).max(initial=0.0)

    def _add(self, values, slots, weights, sums):
        """Add weighted kernel rows to `sums`, a part of f, and take notice of the rounding."""
        self._fresh = False
        self.wrong += add_rows(values, slots, weights, sums, self.problem.K.bound, self.settings.n_jobs)

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

    def bring_back(self, seconds=np.inf, exactly=False):
        """Make all multipliers active again, with f complete, even if the last change was interrupted.

        After so many seconds the rest of f is bounded, where the kernel allows it: see `slack`. What is summed up anew
        after an interrupted change is, if asked for, summed up without rounding.
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
        elif exactly:
            self._sum_up_exactly()
        else:
            self._f[:], self.wrong = 0.0, 0.0
            self._add_changes(self._row_weights(), np.arange(len(self._f)), until)
        self._removed = []
        self._activate(np.arange(len(self._beta)), np.arange(len(self._f)))
        self._whole = True

    def recompute(self):
        """Compute f from the multipliers alone, free of accumulated rounding, and make all multipliers active.

        The multipliers of each group add up to what they have to, as exactly as numbers can.
        """
        self._balance()
        self._whole = False
        self.bring_back(exactly=self._can_be_exact())
        self._fresh = True

    def _balance(self):
        """Put the sum of each group right, where that is furthest from a bound."""
        self._beta[self.index] = self.beta
        for (begin, end), total in zip(pairwise(self.problem.ends), self.sums, strict=True):
            beta, lower, upper = self._beta[begin:end], self.problem.lower[begin:end], self.problem.upper[begin:end]
            rest = math.fsum(beta) - total
            if rest != 0.0:
                t = int(np.argmax(np.minimum(beta - lower, upper - beta)))
                beta[t] = min(max(beta[t] - rest, lower[t]), upper[t])
        self.beta = self._beta[self.index]

    def _sum_up_exactly(self):
        """Set f to K beta, right to the last bits."""
        weights, rest = self._row_weights(), np.zeros_like(self._f)
        changed, self._f[:] = np.flatnonzero(weights), 0.0
        fits = len(changed) <= self.cache.n_slots
        lines = [(changed, self.cache.values, self.cache.fetch(changed))] if fits else self._blocks(changed)
        for part, values, slots in lines:
            add_rows_exactly(values, slots, weights[part], self._f, rest, self.settings.n_jobs)
        self._f += rest
        self.wrong = UNIT * (2.0 * np.abs(self._f).max(initial=0.0) + np.abs(weights).sum() * self._sums_of_two)

    def _stretch(self):
        """Multiply all multipliers by the factor within the box that makes the objective least.

        After a change of C, that brings those at their bounds to the new ones where nothing else is better.
        """
        if self.sums.any():
            return
        curvature, slope = float(self.beta @ self.f[self.position]), float(self.beta @ self.linear)
        if curvature > 0.0 and slope < 0.0:
            factor = min(-slope / curvature, _room(self.problem, self.beta))
            self.beta *= factor
            self.f *= factor
            self.wrong = factor * self.wrong + UNIT * np.abs(self.f).max(initial=0.0)
            np.clip(self.beta, self.lower, self.upper, out=self.beta)

    def _add_changes(self, weights, rows, until):
        """Add Σ_i weights_i K_i to f at the given rows; keep the K_i if these are most of the rows and they fit."""
        K = self.problem.K
        changed = np.flatnonzero(weights)
        if not len(changed):
            return
        if until == np.inf and 2 * len(rows) > K.n_rows and len(changed) <= self.cache.n_slots:
            sums, slots = self._f.copy(), self.cache.fetch(changed)
            self._add(self.cache.values, slots, weights[changed], sums)
            self._f[rows] = sums[rows]
        else:
            self._add_blocks(weights, changed, rows, until)

    def _add_blocks(self, weights, changed, rows, until):
        """Add Σ_i weights_i K_i, i in `changed`, to f at the given rows, in blocks that are not kept.

        The largest first if that may take only `until` a time; what is left then is added to the slack.
        """
        K, sums = self.problem.K, self._f[rows]
        if until < np.inf:
            changed = changed[np.argsort(-np.abs(weights[changed]), kind="stable")]
        n_added, blocks = 0, self._blocks(changed, rows)
        while n_added < len(changed) and time.perf_counter() <= until:
            part, values, slots = next(blocks)
            self._add(values, slots, weights[part], sums)
            n_added += len(part)
        left = changed[n_added:]
        size = float(np.abs(weights[left]) @ np.sqrt(np.maximum(K.diagonal[left], 0.0)))
        self.slack[rows] += size * np.sqrt(np.maximum(K.diagonal[rows], 0.0))
        self._f[rows] = sums

    def _blocks(self, chosen, columns=None):
        """Yield (rows, values, slots) of the chosen kernel rows at some columns or all, in blocks that are not kept."""
        K = self.problem.K
        n_columns = K.n_rows if columns is None else len(columns)
        columns = K.columns(None if n_columns == K.n_rows else columns)
        block = self.cache.lend(min(len(chosen), _BLOCK), n_columns)
        for begin in range(0, len(chosen), len(block)):
            part = chosen[begin : begin + len(block)]
            slots = np.arange(len(part))
            K.fill(part, columns, block, slots)
            self.cache.n_computed += len(part) * n_columns / K.n_rows
            yield part, block, slots


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
    return np.array([math.fsum(beta[begin:end]) for begin, end in pairwise(problem.ends)])


def _room(problem, beta):
    """Return the largest factor that keeps beta in its box."""
    bound = np.where(beta > 0.0, problem.upper, problem.lower)
    return np.divide(bound, beta, out=np.full(len(beta), np.inf), where=beta != 0.0).min(initial=np.inf)


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
