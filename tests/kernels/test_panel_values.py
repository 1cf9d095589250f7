"""Values of the rbf kernel for panels of rows, against NumPy."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from widemargin._runtime.lanes import LANES
from widemargin.data.products import InnerProducts, squared_norms
from widemargin.kernels.panel_values import PanelValues

TYPES = [np.float32, np.float64]


@pytest.mark.parametrize("target", TYPES, ids=["to-float32", "to-float64"])
@pytest.mark.parametrize("dtype", TYPES, ids=["float32", "float64"])
@pytest.mark.parametrize("n_panel", [1, 8, 13, LANES])
@pytest.mark.parametrize("n_columns", [0, 1, 7, 8, 64, 71, 200])
def test_values_of_chosen_columns_go_to_their_slots(n_columns, n_panel, dtype, target, rng):
    X = np.where(rng.random((210, 30)) < 0.2, rng.standard_normal((210, 30)), 0.0).astype(dtype)
    products, norms = InnerProducts(csr_array(X), dtype), squared_norms(X).astype(dtype)
    rows, columns = rng.permutation(210)[:n_panel], rng.permutation(210)[:n_columns].astype(np.uint32)
    slots, out = rng.permutation(40)[:n_panel], np.full((40, 205), np.nan, target)
    (panel,) = products.panels(rows)
    values = PanelValues(0.7, products.rows_for_panels)
    values.fill(panel, norms[rows], columns, norms[columns], out, slots, origin=5)
    distances = ((X[rows, None].astype(float) - X[columns].astype(float)) ** 2).sum(axis=-1)
    accuracy = 1e-5 if np.float32 in (dtype, target) else 1e-13
    np.testing.assert_allclose(out[slots, 5 : 5 + n_columns], np.exp(-0.7 * distances), rtol=accuracy)
    out[slots, 5 : 5 + n_columns] = np.nan
    assert np.isnan(out).all()


def test_rows_of_text_and_arrays_have_no_panels(rng):
    assert InnerProducts(rng.standard_normal((50, 9)), np.float64).rows_for_panels is None
    text = csr_array((rng.random((300, 4000)) < 0.005).astype(float))
    assert InnerProducts(text, np.float64).rows_for_panels is None
