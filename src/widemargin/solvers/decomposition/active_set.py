"""The state of a kernel solver: the active dual variables of a KernelQP, their gradient, and shrinking.

Shrinking removes dual variables from the active set, so that scans, kernel rows and updates of the gradient become
smaller. The arrays of the active dual variables are contiguous. A kernel row none of whose dual variables is active is
removed as well. Its entry of f = K beta is not updated, but stored together with the dual variables of that moment:
later, only the kernel rows whose dual variables have changed since then have to be added to it.

After Ctrl-C there is not enough time for this. For a positive definite kernel, the omitted part of f_t,
Σ_s Δ_s K_st over the rows s that were not added, is at most √K_tt Σ_s |Δ_s| √K_ss in absolute value. This bound,
`omitted_bound`, enters the reported objectives, and so does `rounding_bound`, the bound on the rounding errors of f.

An ActiveSet may also be a part of a larger problem, whose other dual variables are fixed. Then f includes their kernel
rows; it is given, and cannot be computed from the dual variables of the part.
"""

import math
import time
from itertools import pairwise

import numpy as np

from widemargin.kernels.cache import HeldRows, RowCache
from widemargin.solvers.decomposition.kernel_sums import (
    MAX_EXACT_FACTOR,
    UNIT_ROUNDOFF,
    add_rows,
    add_rows_exactly,
    addition_error,
)
from widemargin.solvers.decomposition.point import ROUNDINGS_PER_TERM, Point
from widemargin.solvers.decomposition.scans import count_at_bound, scan, set_offsets
from widemargin.solvers.decomposition.starting_point import check_sizes, feasible, group_sums, largest_feasible_factor

_MAX_EXACT_PRODUCTS = 1 << 22  # up to which f is computed with compensated sums
MAX_EXACT_PRODUCTS_AFTER_STALL = 1 << 26  # the same if rounding ends the solver: half a second for a tight bound
_ROWS_PER_BLOCK = 256  # kernel rows that are computed at once when f is computed exactly, or before a deadline
_ROWS_COMPLETED_AT_ONCE = 1 << 16  # entries of f; after Ctrl-C those that are complete remain so


class ActiveSet(Point):
    """The active dual variables of a KernelQP and their gradient.

    Parameters
    ----------
    problem : KernelQP
    settings : KernelSettings
    start : ndarray or None
        Dual variables to start from, clipped to their bounds. If all group sums are zero they are multiplied by the
        factor that minimises the objective. If clipping changes the group sums, the start of the problem is used.
    least_rows : int
        Number of kernel rows that the cache has to hold at the same time.
    f : ndarray or None
        For a part of a larger problem: f at the start of the problem, other dual variables included.

    Attributes
    ----------
    index : ndarray
        Indices of the active dual variables in the problem.
    beta, linear, lower, upper, diagonal : ndarray
        The active dual variables, their linear terms p, bounds, and K_tt.
    ends : ndarray
        Group g has the active dual variables ends[g] .. ends[g + 1].
    rows, f : ndarray
        The active kernel rows, and K beta of these rows.
    position : ndarray
        The position in `rows` and `f` of each active dual variable.
    F, rising, falling, extremes : ndarray
        The results of `scan`.
    rounding_bound : float
        Bound on the rounding error of the entries of f.
    omitted_bound : ndarray
        Bound on the part of f that is missing in each row; 0 unless f was completed after Ctrl-C.
    sums : ndarray
        The sum that the dual variables of each group must have.
    cache : RowCache
    max_exact_products : int
        The number of products up to which f is computed with compensated sums.
    """

    max_exact_products = _MAX_EXACT_PRODUCTS

    def __init__(self, problem, settings, start, least_rows, f=None):
        self.problem, self.settings = problem, settings
        check_sizes(problem)
        in_memory = problem.K.held is not None and not settings.shrinking
        self.cache = HeldRows(problem.K) if in_memory else RowCache(problem.K, settings.cache_size, least_rows)
        self.sums = group_sums(problem, problem.start)
        self._beta = feasible(problem, start)  # all dual variables; entries of active ones are out of date
        self._f, self.omitted_bound = np.zeros((2, problem.K.n_rows))
        self._removed = []  # (kernel rows, sums of the dual variables of every row when these were removed)
        self._largest_diagonal = np.abs(problem.K.diagonal).max(initial=0.0)
        # The sum of the two dual variables of a row is rounded as well.
        self._pair_sum_size = problem.K.bound if len(self._beta) > problem.K.n_rows else 0.0
        self._f_is_current = True  # whether f belongs to beta; False during a change, which may be interrupted
        self._heeds_interrupts = True  # False while f is completed because of one
        self.rounding_bound, self._f_is_recomputed = 0.0, True
        self._is_part = f is not None
        if self._is_part:
            self._f[:] = f
        self._activate(np.arange(len(self._beta)), np.arange(problem.K.n_rows))
        self._f_is_current = self._is_part
        self.unshrink()
        if start is not None:
            self._scale_start()

    STATE = ("rounding_bound", "_f_is_recomputed", "n_computed", "_all_beta", "_all_f", "_removals", "_membership")

    @property
    def n_computed(self):
        """Number of kernel rows computed so far, in proportion to their columns."""
        return self.cache.n_computed

    @n_computed.setter
    def n_computed(self, number):
        self.cache.n_computed = number

    @property
    def _all_beta(self):
        """All dual variables, as a checkpoint keeps them."""
        self._beta[self.index] = self.beta
        return self._beta.copy()

    @_all_beta.setter
    def _all_beta(self, beta):
        self._beta[:] = beta

    @property
    def _all_f(self):
        """f of all kernel rows; entries of those that are removed are of the time of their removal."""
        self._f[self.rows] = self.f
        return self._f.copy()

    @_all_f.setter
    def _all_f(self, f):
        self._f[:] = f

    @property
    def _removals(self):
        """A line for each removal of kernel rows: the sums of the dual variables of every row at that moment."""
        return np.array([weights for _, weights in self._removed]).reshape(len(self._removed), self.problem.K.n_rows)

    @_removals.setter
    def _removals(self, weights):
        self._removed = [(np.empty(0, np.int64), line) for line in weights]

    @property
    def _membership(self):
        """For each dual variable −1 if it is active, −2 if only its kernel row is, else the number of the removal."""
        of_row = np.full(self.problem.K.n_rows, -2)
        for number, (rows, _) in enumerate(self._removed):
            of_row[rows] = number
        membership = of_row[self.problem.row]
        membership[self.index] = -1
        return membership

    @_membership.setter
    def _membership(self, membership):
        row = self.problem.row
        self._removed = [(np.unique(row[membership == k]), line) for k, (_, line) in enumerate(self._removed)]
        self._activate(np.flatnonzero(membership == -1), np.unique(row[membership < 0]))

    @property
    def passes(self):
        """Kernel rows computed, divided by the number of rows."""
        return self.n_computed / self.problem.K.n_rows

    @property
    def is_consistent(self):
        """Whether f belongs to the dual variables; not if a change was interrupted."""
        return self._f_is_current

    @property
    def all_active(self):
        """Whether all dual variables are active."""
        return len(self.index) == len(self.problem.start)

    def _row_weights(self):
        """Return the sum of the dual variables of each kernel row."""
        return np.bincount(self.problem.row, self._beta, minlength=self.problem.K.n_rows)

    def _activate(self, index, rows):
        """Make the dual variables `index` and the kernel rows `rows` active, both in ascending order."""
        problem = self.problem
        position_of = np.zeros(problem.K.n_rows, np.int64)
        position_of[rows] = np.arange(len(rows))
        self.index, self.rows, self.beta, self.f = index, rows, self._beta[index], self._f[rows]
        self.position = position_of[problem.row[index]]
        self.linear = problem.linear[index]
        self.lower, self.upper = problem.lower[index], problem.upper[index]
        self.diagonal = problem.K.diagonal[problem.row[index]]
        self.ends = np.searchsorted(index, problem.ends)
        self.F, self.rising, self.falling = np.empty((3, len(index)))
        self.extremes = np.empty((len(self.ends) - 1, 2))

    def scan(self):
        """Compute the gradient F = K beta + p of the active dual variables; return the largest violation of a group.

        Sets `F`; `rising`, F of the dual variables below their upper bounds, ∞ for the others; `falling`, −F of those
        above their lower bounds, ∞ for the others; and `extremes`, for each group the smallest F of the former and the
        largest F of the latter. The violation is the second less the first.
        """
        if not np.isfinite(self.f.sum()):
            raise ValueError("Sums of kernel values are not finite: scale the features or the kernel's values.")
        return scan(
            self.f, self.position, self.linear, self.beta, self.lower, self.upper, self.ends,
            self.F, self.rising, self.falling, self.extremes,
        )  # fmt: skip

    def offsets(self):
        """Return the offset r_g of each group: the mean F of its free dual variables, else the mean of its extremes.

        If the problem does not admit such offsets, as a negative margin or tube, the nearest admissible ones.
        """
        self.scan()
        offsets = np.empty(len(self.extremes))
        order = self.problem.offset_order
        set_offsets(self.F, self.beta, self.lower, self.upper, self.ends, self.extremes, order, offsets)
        return offsets

    @property
    def needs_recomputation(self):
        """Whether rounding errors of f matter for the objectives, and `recompute` can remove them in little time."""
        if self._is_part or self._f_is_recomputed or not self.settings.certify:
            return False
        return self.rounding_matters and self._can_be_exact()

    def _can_be_exact(self):
        """Return whether f can be computed with compensated sums: few products, and no overflow."""
        n_products = np.count_nonzero(self.beta) * self.problem.K.n_rows
        largest_factor = max(self.problem.K.bound, np.abs(self.beta).max(initial=0.0))
        return n_products <= self.max_exact_products and largest_factor < MAX_EXACT_FACTOR

    def move(self, chosen, beta, slots):
        """Set the dual variables `chosen` to `beta`, and update f by their kernel rows, which are in the cache."""
        change = beta - self.beta[chosen]
        moved = np.flatnonzero(change)
        if len(moved):
            self._f_is_current = False
            self.beta[chosen] = beta
            self._add_rows(self.cache.values, slots[moved], change[moved], self.f)
            self._f_is_current = True

    def move_uncached(self, chosen, beta):
        """Set the dual variables `chosen` to `beta`, and update f by their kernel rows, which are computed, not stored.

        If this is interrupted, nothing has changed.
        """
        change = np.bincount(self.position[chosen], beta - self.beta[chosen], minlength=len(self.rows))
        moved = np.flatnonzero(change)
        f, error = self._sums(self.f.copy(), self.rows, self.rows[moved], change[moved])
        self._f_is_current = False
        self.f[:], self.beta[chosen] = f, beta
        self.rounding_bound += error
        self._f_is_current = True

    def _sums(self, sums, columns, rows, weights):
        """Add weighted kernel rows, which are not stored, to `sums`, the values of f at rows `columns`.

        Returns `sums` and a bound on their rounding errors. Each block of rows is summed up by itself, so that the
        bound grows with the number of blocks, not of rows. Raises KeyboardInterrupt if the solver is interrupted from
        another thread, unless this is what it does then.
        """
        K, error = self.problem.K, 0.0
        self._f_is_recomputed = False
        size = max(sums.max(initial=0.0), -sums.min(initial=0.0))
        some = K.columns(None if len(columns) == K.n_rows else columns)
        for begin in range(0, len(rows), K.rows_added_at_once):
            if self._heeds_interrupts and self.settings.interrupt.is_set():
                raise KeyboardInterrupt
            part = slice(begin, begin + K.rows_added_at_once)
            K.add(rows[part], weights[part], some, sums)
            self.cache.n_computed += len(rows[part]) * len(columns) / K.n_rows
            size += float(np.abs(weights[part]).sum()) * K.bound
            error += addition_error(weights[part], K.bound, 0.0) + UNIT_ROUNDOFF * size
        return sums, error

    def activate(self, rows):
        """Make the kernel rows `rows`, which are removed, and their dual variables active; f is completed at these."""
        self._beta[self.index], self._f[self.rows] = self.beta, self.f
        wanted = np.zeros(self.problem.K.n_rows, bool)
        wanted[rows] = True
        weights, f, rest, errors = self._row_weights(), self._f.copy(), [], [0.0]
        for removed, before in self._removed:
            now, change = removed[wanted[removed]], weights - before
            changed = np.flatnonzero(change)
            f[now], error = self._sums(f[now], now, changed, change[changed])
            errors.append(error)
            rest.append((removed[~wanted[removed]], before))
        wanted[self.rows] = True
        self._f_is_current = False
        self.rounding_bound += max(errors)  # each is that of other rows
        self._f, self._removed = f, [(removed, before) for removed, before in rest if len(removed)]
        self._activate(np.flatnonzero(wanted[self.problem.row]), np.flatnonzero(wanted))
        self._f_is_current = True

    def count_at_bound(self, n_iterations, limit):
        """Add 1 to `n_iterations` of each active dual variable at a bound without a violating pair, set others to 0.

        Returns for how many of them the number has reached the limit.
        """
        return count_at_bound(self.F, self.beta, self.lower, self.upper, self.ends, self.extremes, n_iterations, limit)

    def record_pair_steps(self, n_steps):
        """Add the rounding errors of pair steps by which a solver has updated F itself."""
        self._f_is_recomputed = False
        self.rounding_bound += ROUNDINGS_PER_TERM * UNIT_ROUNDOFF * n_steps * np.abs(self.F).max(initial=0.0)

    def _add_rows(self, values, slots, weights, sums):
        """Add weighted kernel rows to `sums`, a part of f, and their rounding errors to the bound."""
        self._f_is_recomputed = False
        self.rounding_bound += add_rows(values, slots, weights, sums, self.problem.K.bound, self.settings.n_jobs)

    def shrink(self, remain):
        """Keep only the dual variables where `remain` is true active, and the kernel rows that they belong to."""
        self._beta[self.index], self._f[self.rows] = self.beta, self.f
        kept = np.zeros(len(self.rows), bool)
        kept[self.position[remain]] = True
        self._f_is_current = False
        if not kept.all():
            self._removed.append((self.rows[~kept], self._row_weights()))
            self.cache.keep_columns(self.rows[kept], np.flatnonzero(kept))
        self._activate(self.index[remain], self.rows[kept])
        self._f_is_current = True

    def unshrink(self, seconds=np.inf, exactly=False):
        """Make all dual variables active, and complete f, even if the last change was interrupted.

        If the kernel is positive definite, f is completed for at most so many seconds, and a bound on the rest is added
        to `omitted_bound`. If f has to be computed from scratch, `exactly` asks for compensated sums.
        """
        if self._f_is_current and self.all_active:
            return
        deadline = time.perf_counter() + seconds if self.problem.K.kernel.positive_definite else np.inf
        self._heeds_interrupts = seconds == np.inf
        self._beta[self.index] = self.beta
        if self._removed:
            self.cache.all_columns()
        if self._f_is_current:
            self._f[self.rows] = self.f
            self._complete(deadline)
        elif exactly:
            self._compute_exactly()
        else:
            self._f[:] = 0.0
            self._f[:], self.rounding_bound = self._with_changes(self._row_weights(), np.arange(len(self._f)), deadline)
        self._f_is_current = False
        self._removed = []
        self._activate(np.arange(len(self._beta)), np.arange(len(self._f)))
        self._f_is_current = self._heeds_interrupts = True

    def _complete(self, deadline):
        """Complete f at all rows that are removed, some at a time; those that are complete remain so after Ctrl-C."""
        before = self.rounding_bound
        while self._removed:
            rows, weights = self._removed[-1]
            some, rest = rows[:_ROWS_COMPLETED_AT_ONCE], rows[_ROWS_COMPLETED_AT_ONCE:]
            f, error = self._with_changes(self._row_weights() - weights, some, deadline)
            self._f_is_current = False
            self._f[some] = f
            self.rounding_bound = max(self.rounding_bound, before + error)  # each error is that of other rows
            self._removed[-1:] = [(rest, weights)] if len(rest) else []
            self._f_is_current = True

    def recompute(self):
        """Compute f = K beta from scratch, without accumulated rounding errors, and make all dual variables active.

        The group sums are corrected first. If this is a part of a larger problem, all become active, and no more.
        """
        if self._is_part:
            self.unshrink()
            return
        self._correct_sums()
        self._f_is_current = False
        self.unshrink(exactly=self._can_be_exact())
        self._f_is_recomputed = True

    def _correct_sums(self):
        """Correct the sum of each group by a change of the dual variable that is furthest from its bounds."""
        self._beta[self.index] = self.beta
        for (begin, end), total in zip(pairwise(self.problem.ends), self.sums, strict=True):
            beta, lower, upper = self._beta[begin:end], self.problem.lower[begin:end], self.problem.upper[begin:end]
            error = math.fsum(beta) - total
            if error != 0.0:
                t = int(np.argmax(np.minimum(beta - lower, upper - beta)))
                beta[t] = min(max(beta[t] - error, lower[t]), upper[t])
        self.beta = self._beta[self.index]

    def _compute_exactly(self):
        """Set f = K beta by compensated sums, accurate to the last bits."""
        weights, rest = self._row_weights(), np.zeros_like(self._f)
        nonzero, self._f[:] = np.flatnonzero(weights), 0.0
        fits = len(nonzero) <= self.cache.n_slots
        blocks = [(nonzero, self.cache.values, self.cache.fetch(nonzero))] if fits else self._blocks(nonzero)
        for part, values, slots in blocks:
            add_rows_exactly(values, slots, weights[part], self._f, rest, self.settings.n_jobs)
        self._f += rest
        size = 2.0 * np.abs(self._f).max(initial=0.0) + np.abs(weights).sum() * self._pair_sum_size
        self.rounding_bound = UNIT_ROUNDOFF * size

    def _scale_start(self):
        """Multiply all dual variables by the feasible factor that minimises the objective.

        If C has increased, this moves the dual variables that were at their old bounds towards the new ones.
        """
        if self.sums.any():
            return
        curvature, slope = float(self.beta @ self.f[self.position]), float(self.beta @ self.linear)
        if curvature > 0.0 and slope < 0.0:
            factor = min(-slope / curvature, largest_feasible_factor(self.problem, self.beta))
            self.beta *= factor
            self.f *= factor
            self.rounding_bound = factor * self.rounding_bound + UNIT_ROUNDOFF * np.abs(self.f).max(initial=0.0)
            np.clip(self.beta, self.lower, self.upper, out=self.beta)

    def _with_changes(self, weights, rows, deadline):
        """Return f at the given rows plus Σ_i weights_i K_i, and a bound on the rounding errors of this addition.

        The K_i are cached if these are most rows and they fit.
        """
        K = self.problem.K
        changed = np.flatnonzero(weights)
        if deadline == np.inf and 2 * len(rows) > K.n_rows and 0 < len(changed) <= self.cache.n_slots:
            sums, slots = self._f.copy(), self.cache.fetch(changed)
            self._f_is_recomputed = False
            error = add_rows(self.cache.values, slots, weights[changed], sums, K.bound, self.settings.n_jobs)
            return sums[rows], error
        if deadline == np.inf:
            return self._sums(self._f[rows], rows, changed, weights[changed])
        return self._with_largest_changes(weights, changed, rows, deadline)

    def _with_largest_changes(self, weights, changed, rows, deadline):
        """Return what `_with_changes` does, the largest weights first, as far as the time allows.

        A bound on the rest is added to `omitted_bound`.
        """
        K, sums, n_added, total = self.problem.K, self._f[rows], 0, 0.0
        changed = changed[np.argsort(-np.abs(weights[changed]), kind="stable")]
        while n_added < len(changed) and time.perf_counter() <= deadline:
            part = changed[n_added : n_added + _ROWS_PER_BLOCK]
            _, error = self._sums(sums, rows, part, weights[part])
            n_added, total = n_added + len(part), total + error
        omitted = changed[n_added:]
        size = float(np.abs(weights[omitted]) @ np.sqrt(np.maximum(K.diagonal[omitted], 0.0)))
        self.omitted_bound[rows] += size * np.sqrt(np.maximum(K.diagonal[rows], 0.0))
        return sums, total

    def _blocks(self, chosen, columns=None):
        """Yield (rows, values, slots) for blocks of the chosen kernel rows, at some columns or all; not cached."""
        K = self.problem.K
        n_columns = K.n_rows if columns is None else len(columns)
        columns = K.columns(None if n_columns == K.n_rows else columns)
        block = self.cache.lend(min(len(chosen), _ROWS_PER_BLOCK), n_columns)
        for begin in range(0, len(chosen), len(block)):
            part = chosen[begin : begin + len(block)]
            slots = np.arange(len(part))
            K.fill(part, columns, block, slots)
            self.cache.n_computed += len(part) * n_columns / K.n_rows
            yield part, block, slots
