"""Conjugate SMO: pair steps on a working set, each conjugate to the previous one.

An SMO step moves along e = e_i − e_j. If many dual variables are free, as they are with a large C, later steps undo a
large part of earlier ones. Let v be the direction of the last step, which ended at the minimum along it, and h = K v:

    u = e − (e'h / v'h) v    has u'K v = 0    and the smaller curvature u'K u = e'K e − (e'h)² / v'h

A step along u therefore preserves the minimum along v, and since the slope is the same, it decreases the objective more
than a step along e (Torres-Barrán, Alaíz and Dorronsoro, 2021). If the step along u would leave the bounds, an ordinary
pair step is taken, and a new sequence of directions begins. On the hardest problems of a grid over C and gamma this
takes half as many steps.
"""

from typing import NamedTuple

import numpy as np

from widemargin._runtime.compile import compiled
from widemargin.kernels.single_rows import make_ready
from widemargin.solvers.decomposition.pair_step import (
    TINY_CURVATURE,
    end_of_part,
    entry_of,
    move_pair,
    pair_curvature,
    select_i,
    select_j,
    set_extremes,
)

_NEGLIGIBLE_COMPONENT = 1e-100  # smaller components of a direction become zero
_MIN_CURVATURE_RATIO = 1e-3  # u'K u / e'K e; if it is smaller, e is nearly parallel to the last direction


class Direction(NamedTuple):
    """The direction v of the last step, and h = K v.

    `members` are the indices of the entries of v that may not be zero, and `is_member` says which these are. There are
    few of them, at most two for each step since the last ordinary one, so that they are looked at without the others.
    """

    v: np.ndarray
    h: np.ndarray
    members: np.ndarray
    is_member: np.ndarray


def no_direction(n_variables):
    """Return a Direction for a working set of so many dual variables: no entry of v is other than zero."""
    v, h = np.zeros((2, n_variables))
    return Direction(v, h, np.empty(n_variables, np.int64), np.zeros(n_variables, np.bool_))


@compiled
def optimise_block(K, rows, D, direction, tol, max_steps):
    """Take steps until no pair of the DualVariables violates its optimality condition by more than tol.

    Returns the decrease of the objective, a row of K that is needed for the next step and that the SingleRows `rows`
    neither have ready nor may compute, or −1, and the number of steps. Kept true: F = K beta + constant terms, and
    the sum of each group.
    """
    decrease, last_curvature, n_members = 0.0, 0.0, 0  # last_curvature: v'K v, 0 if there is no last direction
    h, missing, n_steps = direction.h, -1, 0
    while n_steps < max_steps:
        violation, i, j = _select_pair(K, rows, D)
        if violation <= tol:
            break
        row_i, row_j = entry_of(i, K.shape[1]), entry_of(j, K.shape[1])
        if not (make_ready(K, rows, row_i) and make_ready(K, rows, row_j)):
            missing = np.int64(row_j if make_ready(K, rows, row_i) else row_i)
            break
        n_steps += 1
        K_i, K_j = K[row_i], K[row_j]
        curvature, slope = pair_curvature(D, i, j, K_i), D.F[j] - D.F[i]
        cross = h[i] - h[j] if last_curvature > 0.0 else 0.0
        conjugate_curvature = curvature - cross * cross / last_curvature if last_curvature > 0.0 else 0.0
        if conjugate_curvature > max(_MIN_CURVATURE_RATIO * curvature, TINY_CURVATURE):
            factor, step = -cross / last_curvature, slope / conjugate_curvature
            n_members = _update_direction(direction, n_members, factor, i, j)
            if _stays_within_bounds(D, direction, n_members, step):
                # Both can move afterwards; if one has reached its other bound, the next step that selects it notices.
                for t in (i, j):
                    D.rise_penalty[t], D.fall_penalty[t] = np.float32(0), np.float32(0)
                _move_along(D, direction, n_members, factor, step, K_i, K_j)
                decrease, last_curvature = decrease + 0.5 * step * slope, conjugate_curvature
                continue
        decrease += move_pair(D, i, j, K_i, K_j)
        n_members, last_curvature = _no_members(direction, n_members), 0.0
        if curvature > TINY_CURVATURE and D.rise_penalty[i] == 0 and D.fall_penalty[j] == 0:
            last_curvature = curvature
            n_members = _update_direction(direction, n_members, 0.0, i, j)
            _set_products(h, K_i, K_j)
    _no_members(direction, n_members)
    return decrease, missing, n_steps


@compiled
def _set_products(h, K_i, K_j):
    """Set h = K_i − K_j."""
    begin = 0
    while begin < h.size:
        end, first = end_of_part(begin, h.size, K_i.size)
        part, row_i, row_j = h[begin:end], K_i[first:], K_j[first:]
        for t in range(part.size):
            part[t] = np.float64(row_i[t]) - np.float64(row_j[t])
        begin = end


@compiled
def _select_pair(K, rows, D):
    """Return the largest violation of all groups, and the pair with the largest predicted decrease.

    If the row of K of an i is not ready and cannot be computed, the pair is (i, i).
    """
    largest, best, best_i, best_j = 0.0, -1.0, 0, 0
    for group in range(D.ends.size - 1):
        violation = D.extremes[group, 1] - D.extremes[group, 0]
        if violation > 0.0:
            largest = max(largest, violation)
            i = select_i(D, group)
            row = entry_of(i, K.shape[1])
            if not make_ready(K, rows, row):
                return max(largest, violation), i, i
            gain, j = select_j(D, group, i, K[row])
            if gain > best:
                best, best_i, best_j = gain, i, j
    return largest, best_i, best_j


@compiled
def _no_members(direction, n_members):
    """Set v = 0; return the number of its members, 0."""
    for t in direction.members[:n_members]:
        direction.v[t], direction.is_member[t] = 0.0, False
    return 0


@compiled
def _update_direction(direction, n_members, factor, i, j):
    """Set v = factor v + e_i − e_j; return the number of its members."""
    v, members = direction.v, direction.members
    for t in members[:n_members]:
        value = v[t] * factor
        v[t] = value if abs(value) > _NEGLIGIBLE_COMPONENT else 0.0  # subnormal numbers take a hundred times as long
    for t in (i, j):
        if not direction.is_member[t]:
            members[n_members], direction.is_member[t] = t, True
            n_members += 1
    v[i] += 1.0
    v[j] -= 1.0
    return n_members


@compiled
def _stays_within_bounds(D, direction, n_members, step):
    """Return whether a step along v moves no dual variable beyond its bounds."""
    for t in direction.members[:n_members]:
        value = D.beta[t] + step * direction.v[t]
        if value > D.upper[t] or value < D.lower[t]:
            return False
    return True


@compiled
def _move_along(D, direction, n_members, factor, step, K_i, K_j):
    """Set h = K v, add the step to beta and F, and set the extremes of each group."""
    _move(D.F, direction.h, factor, step, K_i, K_j)
    set_extremes(D)
    for t in direction.members[:n_members]:
        D.beta[t] += step * direction.v[t]


@compiled
def _move(F, h, factor, step, K_i, K_j):
    """Set h = K v and add the step to F."""
    begin = 0
    while begin < F.size:
        end, first = end_of_part(begin, F.size, K_i.size)
        here, columns = slice(begin, end), slice(first, first + end - begin)
        _move_part(F[here], h[here], factor, step, K_i[columns], K_j[columns])
        begin = end


@compiled(fastmath=frozenset({"contract"}))
def _move_part(F, h, factor, step, K_i, K_j):
    """Set h = K v and add the step to F, all of the same size."""
    for t in range(F.size):
        product = factor * h[t] + (np.float64(K_i[t]) - np.float64(K_j[t]))
        h[t] = product
        F[t] += step * product
