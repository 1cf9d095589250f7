"""No loop leaves its arrays, and every loop ends, whatever the numbers: NaN, infinities, the largest and the smallest.

The tests call loops by way of the classes that own their arrays. They run twice: compiled, and, in a process of its
own, as plain Python, where NumPy checks every index and `Strict` arrays refuse negative ones, which would count from
the end. (Run with NUMBA_BOUNDSCHECK=1, the compiled loops check their indices too.)
"""

import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from widemargin.data.matrix import Matrix
from widemargin.problems import classification
from widemargin.problems.measures import measure_risk
from widemargin.problems.multiclass import CrammerSinger
from widemargin.problems.ranking import OneGroupRisk, PairRisk, TwoRankRisk, concordance, thresholds
from widemargin.problems.row_risk import FreeInterceptRisk, RowRisk
from widemargin.problems.sorting import Sorter
from widemargin.solvers.contract import Settings
from widemargin.solvers.coordinate_descent import avsf, crammer_singer, dcd
from widemargin.solvers.coordinate_descent.state import Coordinates
from widemargin.solvers.cutting_planes.reduced_qp import ReducedProblem

NASTY = st.sampled_from(
    [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 1e-3, np.nan, np.inf, -np.inf, 1e300, -1e300, 1e308, 5e-324, -5e-324, 1e-300, 1e16]
)
EXAMPLES = settings(max_examples=60)
MEASURES = ["error", "f1", "prbep", "precision@2", "recall@2", "average_precision"]


class Strict(np.ndarray):
    """An array that refuses negative indices."""

    def __getitem__(self, index):
        self._check(index)
        return super().__getitem__(index)

    def __setitem__(self, index, value):
        self._check(index)
        super().__setitem__(index, value)

    def _check(self, index):
        for one in index if isinstance(index, tuple) else (index,):
            if isinstance(one, (int, np.integer)) and one < 0:
                raise IndexError(f"index {one} is negative")


def strict(values):
    """Return arrays, in tuples and lists too, as Strict ones; what is compiled takes them as they are."""
    if not numba.config.DISABLE_JIT:
        return values
    if isinstance(values, np.ndarray) and values.dtype.names is None:
        return values.view(Strict)
    if isinstance(values, tuple) and hasattr(values, "_fields"):
        return type(values)(*(strict(one) for one in values))
    if isinstance(values, (tuple, list)):
        return type(values)(strict(one) for one in values)
    return values


def with_strict_arrays(owner):
    """Make all arrays that an object owns Strict; return it."""
    for name, value in vars(owner).items():
        setattr(owner, name, strict(value))
    return owner


@pytest.fixture(autouse=True)
def quiet_arithmetic():
    """Overflow is what these tests are about."""
    with np.errstate(all="ignore"):
        yield


def numbers(n, elements=NASTY):
    return arrays(np.float64, n, elements=elements)


# --- The reduced problem --------------------------------------------------------------------------------------------


@EXAMPLES
@given(st.lists(st.tuples(numbers(20), NASTY), min_size=1, max_size=19), st.sampled_from([0.0, 1e-9, np.nan]))
def test_planes_of_any_numbers_leave_the_reduced_problem_within_its_arrays(planes, accuracy):
    """The door, which refuses what is not finite, is left out: the loops are safe on their own."""
    reduced = ReducedProblem()
    for products, offset in planes:
        k = reduced.n_planes
        reduced.add(np.zeros(k + 1), 0.0)
        reduced._G[k, : k + 1] = reduced._G[: k + 1, k] = products[: k + 1]
        reduced._b[k] = offset
        with_strict_arrays(reduced)
        reduced.solve(accuracy)
        check_support(reduced)
    kept = np.arange(reduced.n_planes) % 2 == 0
    reduced.keep(kept)
    check_support(reduced)
    reduced.solve(accuracy)
    check_support(reduced)


def check_support(reduced):
    support = np.asarray(reduced._support[: reduced._n_support])
    assert 0 <= reduced._n_support <= reduced.n_planes
    assert len(set(support.tolist())) == len(support)
    assert ((support >= 0) & (support < reduced.n_planes)).all()


@EXAMPLES
@given(st.lists(st.tuples(numbers(3, st.floats(-2, 2)), st.floats(-1, 2)), min_size=1, max_size=30))
@example([(np.array([1.0, 0.0, 0.0]), 5e-324)])
def test_planes_of_usual_numbers_are_weighted_to_one(planes):
    reduced, A = ReducedProblem(), np.empty((0, 3))
    for a, b in planes:
        A = np.concatenate([A, a[np.newaxis]])
        reduced.add(np.concatenate([[0.0], A @ a]), b)
        with_strict_arrays(reduced)
        reduced.solve(0.0)
        assert (np.asarray(reduced.v) >= 0.0).all()
        assert np.sum(reduced.v) == pytest.approx(1.0)


def test_a_plane_that_is_not_finite_is_refused():
    with pytest.raises(FloatingPointError, match="Plane 1 is not finite"):
        ReducedProblem().add(np.array([0.0, np.nan]), 1.0)
    with pytest.raises(FloatingPointError, match="Plane 1 is not finite"):
        ReducedProblem().add(np.array([0.0, 1.0]), np.inf)


# --- Risks ----------------------------------------------------------------------------------------------------------


@EXAMPLES
@given(st.data(), st.integers(1, 12), st.sampled_from(["hinge", "squared_hinge"]))
def test_sums_over_rows_end_at_any_scores(data, n, loss):
    s, t, cost = (data.draw(numbers(n)) for _ in range(3))
    sign = np.where(np.arange(n) % 2, 1.0, -1.0)
    problem = classification.LOSSES[loss](Matrix(np.zeros((n, 1))), sign, np.abs(cost))
    if not problem.is_made_of_hinges:  # refused by name
        return
    risk = with_strict_arrays(RowRisk(problem))
    curvature, slope = data.draw(NASTY), data.draw(NASTY)
    assert risk.subgradient(strict(s))[1].shape == (n,)
    assert risk.step(strict(s), strict(t), curvature, slope).scores.shape == (n,)
    assert FreeInterceptRisk(risk).subgradient(strict(s))[1].shape == (n,)


@EXAMPLES
@given(st.data(), st.integers(2, 40))
def test_orders_of_pairs_end_at_any_scores(data, n):
    s, t = data.draw(numbers(n)), data.draw(numbers(n))
    rank = data.draw(arrays(np.int64, n, elements=st.integers(0, 4)))
    rank[:2] = 0, 1
    group = np.sort(data.draw(arrays(np.int64, n, elements=st.integers(0, 3))))
    ends = np.append(np.unique(group, return_index=True)[1], n)
    risks = [PairRisk(rank, ends, 1.0), OneGroupRisk(rank, 1.0), TwoRankRisk(rank > 0, 1.0)]
    for risk in risks:
        _, c = with_strict_arrays(risk).subgradient(strict(s))
        assert c.shape == (n,)
        assert risk.step(strict(s), strict(t), 1.0, data.draw(NASTY)).scores.shape == (n,)
    parts = concordance(s, rank, group)
    assert ((parts >= 0.0) & (parts <= 1.0)).all()
    assert thresholds(s, rank, 5).shape == (4,)


@EXAMPLES
@given(st.data(), st.integers(2, 30), st.sampled_from(MEASURES))
def test_measures_end_at_any_scores(data, n, measure):
    sign = np.where(np.arange(n) % 2, 1.0, -1.0)
    risk = with_strict_arrays(measure_risk(measure, sign, 1.0))
    value, c = risk.subgradient(strict(data.draw(numbers(n))))
    assert not value < 0.0
    assert np.isfinite(c).all()


@given(st.data())
@settings(max_examples=5)
def test_sorting_any_scores_gives_each_position_once(data):
    n = 1 << 10 if numba.config.DISABLE_JIT else 1 << 15
    few = data.draw(numbers(64))
    s = np.tile(few, n // 64)
    sorter = Sorter(n)
    sorter._keys = np.empty((2, n), np.uint64)
    if with_strict_arrays(sorter)._radix_sort(strict(s)):
        assert sorted(sorter._order.tolist()) == list(range(n))


# --- One dual variable at a time ------------------------------------------------------------------------------------


@EXAMPLES
@given(st.data(), st.integers(1, 12), st.sampled_from(["hinge", "squared_hinge"]), st.sampled_from(["dcd", "avsf"]))
def test_sweeps_over_any_numbers_end(data, n, loss, solver):
    """The door is left out here as well: numbers are put into the records behind it."""
    X = np.random.default_rng(0).standard_normal((n, 2))
    sign = np.where(np.arange(n) % 2, 1.0, -1.0)
    state = Coordinates(classification.LOSSES[loss](Matrix(X), sign, np.ones(n)))
    for name in ("target", "curvature", "total_curvature", "beta"):
        state.rows[name] = data.draw(numbers(n))
    method = {"dcd": dcd.ShrinkingSweeps, "avsf": avsf.AdaptiveSweeps}[solver](state, Settings())
    with_strict_arrays(method)
    for _ in range(3):
        sweep = method.sweep(0, 1)
        assert 0 <= sweep.visits <= n


@EXAMPLES
@given(st.data(), st.integers(1, 12), NASTY)
def test_schedules_of_any_preferences_stay_within_their_array(data, n, total):
    X = np.random.default_rng(0).standard_normal((n, 2))
    state = Coordinates(classification.hinge(Matrix(X), np.ones(n), np.ones(n)))
    method = with_strict_arrays(avsf.AdaptiveSweeps(state, Settings()))
    state.rows["preference"] = data.draw(numbers(n))
    n_drawn = avsf._draw(state.rows, total, method.schedule, method.random)
    assert 0 <= n_drawn <= n
    assert (np.asarray(method.schedule[:n_drawn]) < n).all()


@EXAMPLES
@given(st.data(), st.integers(1, 8), st.integers(2, 4))
def test_crammer_singer_ends_with_any_numbers(data, n, n_classes):
    X = np.random.default_rng(0).standard_normal((n, 2))
    problem = CrammerSinger(Matrix(X), np.arange(n) % n_classes, np.ones(n), n_classes)
    sweeps = crammer_singer.RowSweeps(problem, Settings())
    state = with_strict_arrays(sweeps.coordinates)
    state.cost, state.curvature = strict(data.draw(numbers(n))), strict(data.draw(numbers(n)))
    state.w[:] = data.draw(numbers((2, n_classes)))
    assert sweeps.sweep(0, 3).n_sweeps == 1
    assert len(state.measure()) == 3


@given(st.data(), st.integers(1, 6), st.floats(-14, 3))
@EXAMPLES
def test_a_row_of_crammer_singer_stays_feasible_at_every_scale(data, n, exponent):
    """A curvature far below the slopes must not leave the multipliers of a row with another sum than zero."""
    X = 10.0**exponent * data.draw(arrays(np.float64, (n, 2), elements=st.floats(-2, 2)))
    problem = CrammerSinger(Matrix(X), np.arange(n) % 3, np.full(n, 2.0), 3)
    solution = crammer_singer.crammer_singer(problem, Settings(max_iter=5))
    assert np.abs(solution.beta.sum(axis=1)).max() <= 1e-12


# --- Uncompiled -----------------------------------------------------------------------------------------------------


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="these are the uncompiled loops")
def test_the_plain_bodies_divide_by_zero_as_silently_as_machine_code():
    script = """
import itertools, warnings
import numpy as np
from widemargin import ConvergenceWarning, LinearSVC, LinearSVR
warnings.simplefilter("error")
warnings.simplefilter("ignore", ConvergenceWarning)
X = np.random.default_rng(0).standard_normal((12, 3))
X[3] = 0.0
y, t = np.where(X[:, 0] + X[:, 1] ** 2 > 0.5, 1, -1), X @ [1.0, 2.0, 0.0]
common = {"max_iter": 5, "fit_intercept": False, "random_state": 0}
for solver, squared in itertools.product(("dcd", "avsf", "climb", "ocas", "svmperf"), ("", "squared_")):
    LinearSVC(solver=solver, loss=squared + "hinge", **common).fit(X, y)
    LinearSVR(solver=solver, loss=squared + "epsilon_insensitive", **common).fit(X, t)
LinearSVC(multi_class="crammer_singer", **common).fit(X, np.arange(12) % 3)
print("silent")
"""
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=200, env=environment)
    assert done.stdout == "silent\n", done.stderr[-2000:]


# --- Once more, uncompiled ------------------------------------------------------------------------------------------


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="these are the uncompiled loops")
def test_the_plain_bodies_stay_within_their_arrays_too():
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", __file__],
        capture_output=True, text=True, timeout=400, env=environment, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
    assert "2 skipped" in done.stdout
