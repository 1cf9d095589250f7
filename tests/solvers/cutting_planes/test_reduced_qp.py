"""The reduced problem, judged by its duality gap: repeated, dependent and hundreds of planes, and their storage."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from widemargin.data.matrix import Matrix
from widemargin.solvers.cutting_planes import reduced_qp
from widemargin.solvers.cutting_planes.plane_store import DensePlanes, RowPlanes, SparsePlanes, plane_store_for
from widemargin.solvers.cutting_planes.reduced_qp import ReducedProblem


def relative_gap(A, b, v):
    """Return the relative duality gap of the reduced problem at v, by NumPy alone: 0 if v is optimal."""
    w = -A.T @ v[1:]
    primal, dual = 0.5 * w @ w + max(0.0, (A @ w + b).max()), b @ v[1:] - 0.5 * w @ w
    return (primal - dual) / max(1.0, abs(primal))


def solved_plane_by_plane(A, b, accuracy=0.0):
    """Add planes one by one and solve each time; check the invariants, and return the problem."""
    reduced, planes, before = ReducedProblem(), DensePlanes(A.shape[1]), 0.0
    for k in range(len(b)):
        reduced.add(np.concatenate([[0.0], planes.add(A[k])]), b[k])
        value = reduced.solve(accuracy)
        assert (reduced.v >= 0.0).all()
        assert reduced.v.sum() == pytest.approx(1.0)
        w = planes.combine(reduced.v[1:])
        assert value == pytest.approx(reduced.linear_term() - 0.5 * w @ w, rel=1e-8, abs=1e-12)
        assert value >= before - 1e-10 * abs(before)
        before = value
    return reduced


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("dimension", [1, 3, 40])
def test_every_solution_is_optimal(seed, dimension):
    rng = np.random.default_rng(seed)
    A, b = rng.standard_normal((30, dimension)), rng.standard_normal(30) + 0.3
    assert relative_gap(A, b, solved_plane_by_plane(A, b).v) <= 1e-10


@pytest.mark.parametrize("seed", range(5))
def test_repeated_and_dependent_planes_are_solved(seed):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((6, 3))
    mixed = rng.dirichlet(np.ones(6), 20) @ A
    A = np.concatenate([A, A, mixed, np.zeros((2, 3))])
    b = rng.standard_normal(len(A))
    assert relative_gap(A, b, solved_plane_by_plane(A, b).v) <= 1e-10


def test_hundreds_of_nearly_parallel_planes_are_solved(rng):
    """Such planes as a cutting plane method takes near the optimum."""
    n, d = 300, 25
    X, sign = rng.standard_normal((400, d)), np.where(rng.random(400) < 0.5, 1.0, -1.0)
    A, b, w = [], [], np.zeros(d)
    for _ in range(n):
        active = (sign * (X @ w) < 1.0) / 40.0
        A.append(-(active * sign) @ X)
        b.append(active.sum())
        w = w - 0.05 * (w + A[-1]) + 1e-3 * rng.standard_normal(d)
    A, b = np.array(A), np.array(b)
    assert relative_gap(A, b, solved_plane_by_plane(A, b).v) <= 1e-9


def test_planes_without_weight_can_be_removed(rng):
    A, b = rng.standard_normal((40, 8)), rng.standard_normal(40)
    reduced = solved_plane_by_plane(A, b)
    before = reduced.value
    kept = reduced.v > 0.0
    kept[0] = True
    reduced.keep(kept)
    assert reduced.n_planes == kept.sum()
    assert reduced.solve(0.0) == pytest.approx(before, rel=1e-10)
    planes = DensePlanes(8)
    for k in np.flatnonzero(kept[1:]):
        planes.add(A[k])
    new = rng.standard_normal(8)
    reduced.add(np.concatenate([[0.0], planes.add(new)]), 1.0)
    chosen = np.concatenate([A[kept[1:]], new[np.newaxis]])
    reduced.solve(0.0)
    assert relative_gap(chosen, np.append(b[kept[1:]], 1.0), reduced.v) <= 1e-10


def test_planes_that_are_idle_for_long_are_not_in_use(rng, monkeypatch):
    monkeypatch.setattr(reduced_qp, "_MAX_IDLE_SOLVES", 6)
    monkeypatch.setattr(reduced_qp, "_MAX_IDLE_PLANES", 4)
    reduced, planes, idle = ReducedProblem(), DensePlanes(8), {0: -np.inf}
    for _ in range(40):
        reduced.add(planes.add(rng.standard_normal(8)), rng.standard_normal(), 2.0, 3.0)  # 0 with the zero plane
        reduced.solve(0.0)
        linear, of_vectors, of_offsets = reduced.count_use()
        assert linear == pytest.approx(reduced.linear_term(), rel=1e-12)
        total = reduced.v[1:].sum()  # the zero plane has no rounding errors
        assert (of_vectors, of_offsets) == pytest.approx((2.0 * total, 3.0 * total), rel=1e-12)
        for plane, weight in enumerate(reduced.v):
            idle[plane] = min(idle.get(plane, 0), 0) if weight > 0.0 else idle.get(plane, 0) + 1
        in_use = reduced.in_use()
        assert in_use[0]
        assert in_use[reduced.v > 0.0].all()
        assert all(idle[plane] < 6 for plane in np.flatnonzero(in_use))
        left_out = [idle[plane] for plane in np.flatnonzero(~in_use)]
        waiting = [idle[plane] for plane in np.flatnonzero(in_use) if idle[plane] > 0]
        assert max(waiting, default=0) <= min(left_out, default=np.inf)
        assert len(waiting) >= 4 or min(left_out, default=6) >= 6
        assert len(waiting) <= 4 or len(set(waiting)) < len(waiting)  # of planes idle for as long, all or none
    assert not in_use.all()


def test_the_first_plane_determines_the_kind_of_storage():
    wide = np.zeros(6000)
    wide[:300] = 1.0
    few, many = Matrix(np.zeros((70, 6000))), Matrix(np.zeros((80, 6000)))
    assert isinstance(plane_store_for(wide, few), RowPlanes)
    assert isinstance(plane_store_for(wide, many), SparsePlanes)
    assert isinstance(plane_store_for(np.ones(6000), Matrix(np.zeros((2000, 6000)))), DensePlanes)
    assert isinstance(plane_store_for(wide[:300], few), DensePlanes)


def test_all_kinds_of_storage_give_the_same_results(rng):
    X = Matrix(csr_array(rng.standard_normal((25, 6000)) * (rng.random((25, 6000)) < 0.05)))
    stores = [SparsePlanes(6000), DensePlanes(6000), RowPlanes(X, None)]
    for _ in range(20):
        c = rng.standard_normal(25)
        first, *others = [store.add(X.combine(c), c) for store in stores]
        for other in others:
            np.testing.assert_allclose(first, other, atol=1e-10)
    weights, kept = rng.random(20) * (rng.random(20) < 0.5), np.arange(20) % 3 > 0
    for chosen in (np.ones(20, bool), kept):
        for store in stores:
            store.keep(chosen)
        first, *others = [store.combine(weights[chosen]) for store in stores]
        for other in others:
            np.testing.assert_allclose(first, other, atol=1e-10)
