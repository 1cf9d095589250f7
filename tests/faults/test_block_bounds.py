"""No loop over row blocks leaves its arrays, whatever the numbers; see `test_bounds`, whose arrays these tests use."""

import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.faults.test_bounds import NASTY, numbers, quiet_arithmetic, strict  # noqa: F401

from widemargin.data.gram import add_dense_products, add_outer_products
from widemargin.data.gram_of_few_columns import add_products_of_columns
from widemargin.data.matrix import Matrix, add_combination, set_all_scores, set_scores
from widemargin.data.rows import DenseRows, SparseRows, joined_rows, ones, taken
from widemargin.problems import classification
from widemargin.problems.smoothed_risk import SmoothedRisk
from widemargin.solvers.coordinate_descent.block_minimisation import _set_curvatures, _set_distances
from widemargin.solvers.coordinate_descent.state import zeroed_records

EXAMPLES = settings(max_examples=40)
N_FEATURES = 3


@st.composite
def rows_of_blocks(draw):
    """Draw rows as files have them: dense, sparse, or sparse without values; some are empty."""
    n, constant = draw(st.integers(0, 8)), draw(st.sampled_from([0.0, 1.0]))
    kind = draw(st.sampled_from(["dense", "sparse", "ones"]))
    if kind == "dense":
        return n, DenseRows(strict(draw(numbers((n, N_FEATURES)))), constant)
    lists = [sorted(draw(st.sets(st.integers(0, N_FEATURES - 1)))) for _ in range(n)]
    indices = np.array([j for one in lists for j in one], dtype=np.uint16)
    offsets = np.cumsum([0, *map(len, lists)]).astype(np.uint32)
    values = ones(len(indices)) if kind == "ones" else draw(numbers(len(indices)))
    return n, SparseRows(strict(values), strict(indices), strict(offsets), constant)


@EXAMPLES
@given(st.data(), rows_of_blocks())
def test_products_of_any_rows_stay_within_their_arrays(data, drawn):
    n, rows = drawn
    n_columns = N_FEATURES + (rows.constant != 0.0)
    w, c = strict(data.draw(numbers(n_columns))), strict(data.draw(numbers(n)))
    set_scores(rows, w, 0, n, strict(np.empty(n)))
    set_all_scores(rows, strict(data.draw(numbers((2, n_columns)))), 0, n, strict(np.empty((2, n))))
    add_combination(rows, c, 0, n, strict(np.zeros(n_columns)))
    out = np.zeros((n_columns, n_columns))
    add_dense_products(rows, np.abs(c), 0, n, strict(out))
    if isinstance(rows, SparseRows):
        add_outer_products(rows, np.abs(c), 0, n, strict(out))
        add_products_of_columns(rows, c, 0, n, strict(out))


@EXAMPLES
@given(st.data(), rows_of_blocks())
def test_chosen_rows_are_copied_within_their_arrays(data, drawn):
    n, rows = drawn
    chosen = sorted(data.draw(st.sets(st.integers(0, n - 1)))) if n else []
    part = taken(rows, np.array(chosen, dtype=np.int64))
    together = joined_rows([part, rows, part])
    length = len(together.indptr) - 1 if isinstance(together, SparseRows) else len(together.values)
    assert length == 2 * len(chosen) + n


@EXAMPLES
@given(st.data(), rows_of_blocks())
def test_distances_of_any_rows_are_numbers_for_each(data, drawn):
    n, rows = drawn
    records, out = zeroed_records(n), strict(np.full(n, -1.0))
    for name in ("beta", "target", "lower", "upper", "curvature", "epsilon"):
        records[name] = data.draw(numbers(n))
    _set_curvatures(rows, records)
    _set_distances(rows, records, strict(data.draw(numbers(N_FEATURES + (rows.constant != 0.0)))), out)
    assert not (np.asarray(out) < 0.0).any()


@EXAMPLES
@given(st.data(), st.integers(1, 12), st.sampled_from(["hinge", "squared_hinge"]))
def test_rows_that_may_change_are_rows_of_the_block_at_any_scores(data, n, loss):
    sign = np.where(np.arange(n) % 2, 1.0, -1.0)
    risk = SmoothedRisk(classification.LOSSES[loss](Matrix(np.zeros((n, 1))), sign, np.ones(n)))
    s, t, h = strict(data.draw(numbers(n))), strict(data.draw(numbers(n))), data.draw(NASTY)
    start = data.draw(st.integers(0, n))
    stop = data.draw(st.integers(start, n))
    if h == 0.0:
        return  # half widths are positive
    for rows in (risk.changing_rows(s, t, h, start, stop), risk.support_rows(s, h, start, stop)):
        assert (np.diff(rows) > 0).all()
        assert len(rows) == 0 or 0 <= rows[0] <= rows[-1] < stop - start


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="these are the uncompiled loops")
def test_the_plain_bodies_stay_within_their_arrays_too():
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", __file__],
        capture_output=True, text=True, timeout=400, env=environment, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
    assert "1 skipped" in done.stdout
