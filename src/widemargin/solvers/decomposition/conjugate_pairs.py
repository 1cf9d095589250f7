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
from widemargin.solvers.decomposition.pair_step import (
    HUGE,
    SCAN_FASTMATH,
    TINY_CURVATURE,
    move_pair,
    select_i,
    select_j,
)

_NEGLIGIBLE_COMPONENT = 1e-100  # smaller components of a direction become zero
_MIN_CURVATURE_RATIO = 1e-3  # u'K u / e'K e; if it is smaller, e is nearly parallel to the last direction


class Direction(NamedTuple):
    """The direction v of the last step, and h = K v."""

    v: np.ndarray
    h: np.ndarray


@compiled
def optimise_block(K, D, direction, tol, max_steps):
    """Take steps until no pair of the DualVariables violates its optimality condition by more than tol.

    Returns the decrease of the objective. Kept true: F = K beta + constant terms, and the sum of each group.
    """
    decrease, last_curvature = 0.0, 0.0  # last_curvature: v'K v, 0 if there is no last direction
    v, h = direction.v, direction.h
    for _ in range(max_steps):
        violation, i, j = _select_pair(K, D)
        if violation <= tol:
            break
        K_i, K_j = K[np.uint64(i)], K[np.uint64(j)]
        curvature, slope = D.diagonal[i] + D.diagonal[j] - 2.0 * np.float64(K_i[np.uint64(j)]), D.F[j] - D.F[i]
        cross = h[i] - h[j] if last_curvature > 0.0 else 0.0
        conjugate_curvature = curvature - cross * cross / last_curvature if last_curvature > 0.0 else 0.0
        if conjugate_curvature > max(_MIN_CURVATURE_RATIO * curvature, TINY_CURVATURE):
            factor, step = -cross / last_curvature, slope / conjugate_curvature
            if _update_direction(v, factor, i, j, step, D.beta, D.lower, D.upper) == 0:
                # Both can move afterwards; if one has reached its other bound, the next step that selects it notices.
                for t in (i, j):
                    D.rise_penalty[t], D.fall_penalty[t] = np.float32(0), np.float32(0)
                _move_along(D, v, h, factor, step, K_i, K_j)
                decrease, last_curvature = decrease + 0.5 * step * slope, conjugate_curvature
                continue
        decrease += move_pair(D, i, j, K_i, K_j)
        last_curvature = 0.0
        if curvature > TINY_CURVATURE and D.rise_penalty[i] == 0 and D.fall_penalty[j] == 0:
            last_curvature = curvature
            _start_direction(v, h, i, j, K_i, K_j)
    return decrease


@compiled
def _select_pair(K, D):
    """Return the largest violation of all groups, and the pair with the largest predicted decrease."""
    largest, best, best_i, best_j = 0.0, -1.0, 0, 0
    for group in range(D.ends.size - 1):
        violation = D.extremes[group, 1] - D.extremes[group, 0]
        if violation > 0.0:
            largest = max(largest, violation)
            i = select_i(D, group)
            gain, j = select_j(D, group, i, K[np.uint64(i)])
            if gain > best:
                best, best_i, best_j = gain, i, j
    return largest, best_i, best_j


@compiled
def _start_direction(v, h, i, j, K_i, K_j):
    """Set v = e_i − e_j and h = K v."""
    for t in range(v.size):
        v[t] = 0.0
        h[t] = np.float64(K_i[t]) - np.float64(K_j[t])
    v[i], v[j] = 1.0, -1.0


@compiled(fastmath=SCAN_FASTMATH)
def _update_direction(v, factor, i, j, step, beta, lower, upper):
    """Set v = factor v + e_i − e_j; return how many dual variables a step along it would move beyond their bounds."""
    for t in range(v.size):
        value = v[t] * factor
        v[t] = value if abs(value) > _NEGLIGIBLE_COMPONENT else 0.0  # subnormal numbers take a hundred times as long
    v[i] += 1.0
    v[j] -= 1.0
    n_beyond = 0
    for t in range(v.size):
        value = beta[t] + step * v[t]
        n_beyond += (value > upper[t]) | (value < lower[t])
    return n_beyond


@compiled
def _move_along(D, v, h, factor, step, K_i, K_j):
    """Set h = K v, add the step to beta and F, and set the extremes of each group."""
    for group in range(D.ends.size - 1):
        here = slice(D.ends[group], D.ends[group + 1])
        extremes = _move_group(
            D.F[here], D.rise_penalty[here], D.fall_penalty[here], h[here], factor, step, K_i[here], K_j[here]
        )
        D.extremes[group, 0], D.extremes[group, 1] = extremes
    for t in range(v.size):
        D.beta[t] += step * v[t]


@compiled(fastmath=SCAN_FASTMATH)
def _move_group(F, rise_penalty, fall_penalty, h, factor, step, K_i, K_j):
    """Set h = K v and add the step to F, for one group; return the extremes."""
    smallest, largest = np.float64(HUGE), -np.float64(HUGE)
    for t in range(F.size):
        product = factor * h[t] + (np.float64(K_i[t]) - np.float64(K_j[t]))
        gradient = F[t] + step * product
        h[t], F[t] = product, gradient
        rising, falling = gradient + np.float64(rise_penalty[t]), gradient - np.float64(fall_penalty[t])
        smallest = rising if rising < smallest else smallest
        largest = falling if falling > largest else largest
    return smallest, largest
