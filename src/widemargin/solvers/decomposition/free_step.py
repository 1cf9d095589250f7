"""The minimum over the free dual variables of a tiny problem, by Newton steps.

When pair steps have reached a tolerance of some thousandths, it is mostly known which dual variables are free. With E
as in `newton_on_free`, the change d of these is the solution of

    K d + F = E r,   E'd = 0        K = L L',   z = L⁻¹ F,   Z = L⁻¹ E        (Z'Z) r = Z'z,   d = L⁻ᵀ (Z r − z)

It is exact to rounding, and takes as long as a few dozen of the hundreds of pair steps that it saves. If the change
would leave the bounds, it ends where the first dual variable reaches one, and the minimum over the others is sought. If
the matrix is singular, or so nearly that the change has large rounding errors, nothing is changed, and pair steps go
on.
"""

from typing import NamedTuple

import numpy as np

from widemargin._runtime.compile import SUMS, compiled
from widemargin.kernels.rows import add_weighted_rows
from widemargin.solvers.decomposition.conjugate_pairs import optimise_block
from widemargin.solvers.decomposition.pair_step import entry_of, largest_violation, set_penalties

_MAX_GROUPS = 2
_MIN_PIVOT = 1e-10  # relative to the diagonal of K; if a pivot is smaller, K is too close to a singular matrix
_MAX_WORK = 1e6  # cubes of the numbers of free dual variables, some ten microseconds, after which pair steps go on
_MAX_DRIFT = 1e-7  # of the sum of a group by a step, relative to the sizes of the changes
_FIRST_PAIR_STEPS = 16  # after a step that does not reach the goal; then twice as many each time


class FreeWorkspace(NamedTuple):
    """Memory for a step: the factor L and below it Z' and z', the free dual variables, their rows and their change."""

    factor: np.ndarray
    free: np.ndarray
    rows: np.ndarray
    change: np.ndarray


def free_workspace(n_free):
    """Return the FreeWorkspace for so many free dual variables; with more, no step is taken."""
    free, rows = np.empty((2, n_free), np.int64)
    return FreeWorkspace(np.empty((n_free + _MAX_GROUPS + 1, n_free)), free, rows, np.empty(n_free))


@compiled
def optimise_finely(K, rows, D, direction, workspace, tol, max_steps, finer_tol, max_finer_steps):
    """Take pair steps as `optimise_block`, then steps on the free dual variables and pair steps to a finer tolerance.

    Returns what `optimise_block` does. At most `max_finer_steps` pair steps are taken after the first `max_steps`.
    """
    decrease, missing, n_steps = optimise_block(K, rows, D, direction, tol, max_steps)
    n_allowed = _FIRST_PAIR_STEPS
    while missing < 0 and max_finer_steps > 0 and largest_violation(D) > finer_tol:
        decrease += _step_on_free(K, D, workspace)
        if largest_violation(D) <= finer_tol:
            break
        more, missing, n_more = optimise_block(K, rows, D, direction, finer_tol, min(n_allowed, max_finer_steps))
        decrease, n_steps = decrease + more, n_steps + n_more
        max_finer_steps -= n_allowed
        n_allowed *= 2
    return decrease, missing, n_steps


@compiled
def _step_on_free(K, D, workspace):
    """Move the free dual variables to their minimum, or towards it, until one after the other is at a bound.

    Returns the decrease. Kept true: F = K beta + constant terms, the sum of each group to rounding, penalties and
    extremes.
    """
    decrease, work = 0.0, 0.0
    while work <= _MAX_WORK and D.ends.size - 1 <= _MAX_GROUPS:
        n_free = _find_free(D, workspace.free)
        if n_free <= 0:
            break
        free, change = workspace.free[:n_free], workspace.change[:n_free]
        if not (_factorise(K, D, free, workspace.factor) and _solve(workspace.factor, n_free, D.ends.size - 1, change)):
            break
        if not _balance(D, free, change):
            break
        slope = 0.0
        for k in range(n_free):
            slope -= D.F[np.uint64(free[k])] * change[k]
        if not 0.0 < slope < np.inf:
            break
        fraction, first = _largest_fraction(D, free, change)
        _move_free(D, free, change, fraction, first)
        rows, n_entries = workspace.rows[:n_free], K.shape[1]
        for k in range(n_free):
            rows[k] = np.int64(entry_of(free[k], n_entries))
        for begin in range(0, D.F.size, n_entries):
            add_weighted_rows(K, rows, change, 0, min(n_entries, D.F.size - begin), D.F[begin : begin + n_entries])
        decrease += slope * fraction * (1.0 - 0.5 * fraction)
        if first < 0:
            break
        work += float(n_free) ** 3
    set_penalties(D)
    return decrease


@compiled
def _balance(D, free, change):
    """Correct rounding errors of the sums of the change, which are zero in each group; return whether they are small.

    If K is nearly singular, the change is large, and so are its rounding errors.
    """
    first = 0
    for group in range(D.ends.size - 1):
        stop, total, size = first, 0.0, 0.0
        while stop < free.size and free[stop] < D.ends[group + 1]:
            total, size, stop = total + change[stop], size + abs(change[stop]), stop + 1
        if not abs(total) <= _MAX_DRIFT * size:
            return False
        for k in range(first, stop):
            change[k] -= total / size * abs(change[k]) if size > 0.0 else 0.0
        first = stop
    return True


@compiled
def _largest_fraction(D, free, change):
    """Return the largest fraction of the change within the bounds, at most 1, and which entry limits it, or −1."""
    fraction, first = 1.0, -1
    for k in range(free.size):
        t, step = np.uint64(free[k]), change[k]
        distance = D.upper[t] - D.beta[t] if step > 0.0 else D.lower[t] - D.beta[t]
        if abs(step) * fraction > abs(distance):
            fraction, first = distance / step, k
    return fraction, first


@compiled
def _move_free(D, free, change, fraction, first):
    """Add the fraction of the change to beta, for entry `first` to its bound; set the change to what was added."""
    for k in range(free.size):
        t = np.uint64(free[k])
        before, value = D.beta[t], D.beta[t] + fraction * change[k]
        if k == first:
            value = D.upper[t] if change[k] > 0.0 else D.lower[t]
        D.beta[t] = min(max(value, D.lower[t]), D.upper[t])
        change[k] = D.beta[t] - before


@compiled
def _find_free(D, free):
    """Write the dual variables strictly between their bounds to `free`; return their number, −1 if it has no room."""
    n_free = 0
    for t in range(D.beta.size):
        if D.lower[t] < D.beta[t] < D.upper[t]:
            if n_free >= free.size:
                return -1
            free[n_free] = t
            n_free += 1
    return n_free


@compiled
def _factorise(K, D, free, factor):
    """Write L, and below it Z' and z', to the factor; return whether K of the free dual variables is not singular."""
    n_free, n_groups = free.size, D.ends.size - 1
    for a in range(n_free + n_groups + 1):
        line = factor[np.uint64(a)]
        for b in range(min(a + 1, n_free)):
            t = np.uint64(free[b])
            if a < n_free:
                value = np.float64(K[entry_of(free[a], K.shape[1]), entry_of(free[b], K.shape[1])])
            elif a < n_free + n_groups:
                value = 1.0 if D.ends[a - n_free] <= free[b] < D.ends[a - n_free + 1] else 0.0
            else:
                value = D.F[t]
            value -= _product(line[:b], factor[np.uint64(b)][:b])
            if a == b:
                if not value > _MIN_PIVOT * abs(D.diagonal[t]):
                    return False
                line[b] = np.sqrt(value)
            else:
                line[b] = value / factor[np.uint64(b), np.uint64(b)]
    return True


@compiled(fastmath=SUMS)
def _product(a, b):
    """Return the inner product of two vectors."""
    total = 0.0
    for k in range(a.size):
        total += a[k] * b[k]
    return total


@compiled
def _solve(factor, n_free, n_groups, change):
    """Set `change` to d; return whether each group has a free dual variable, without which r is not determined."""
    z, first = factor[n_free + n_groups][:n_free], factor[n_free][:n_free]
    second = factor[n_free + n_groups - 1][:n_free]
    a, b, c = _product(first, first), _product(first, second), _product(second, second)
    first_z, second_z = _product(first, z), _product(second, z)
    if n_groups == 1:
        r, q = first_z / a, 0.0
    else:
        determinant = a * c - b * b
        if not determinant > _MIN_PIVOT * a * c:
            return False
        r, q = (c * first_z - b * second_z) / determinant, (a * second_z - b * first_z) / determinant
    for k in range(n_free - 1, -1, -1):
        value = r * first[k] + q * second[k] - z[k]
        for m in range(k + 1, n_free):
            value -= factor[np.uint64(m), np.uint64(k)] * change[m]
        change[k] = value / factor[np.uint64(k), np.uint64(k)]
    return True
