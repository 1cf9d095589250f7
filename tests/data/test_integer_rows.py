"""Integer distances against distances computed by NumPy, and rows that do not have them."""

import numpy as np
import pytest
from scipy.sparse import csc_array, csr_array

from widemargin.data.integer_rows import integer_distances, put_distances

LEVELS = {
    "ones": [0.0, 1.0],
    "signs": [-1.0, 0.0, 1.0],
    "one-value": [0.0, 0.18257],
    "thirds": [-1.0, -1 / 3, 1 / 3, 1.0],
    "tenths": [0.1, 0.2, 0.4, 0.7],
    "tiny": [0.0, 1e-90],
    "huge": [0.0, 1e90],
}
CONTAINERS = pytest.mark.parametrize("container", [np.asarray, np.asfortranarray, csr_array], ids=str)


def all_distances(found):
    """Return the matrix of distances between the rows of Z and X, with their unit."""
    n_rows, n_support = len(found.Z.norms), found.blocks[-1].stop
    out = np.empty((n_rows, n_support), np.int16)
    for start, stop, lines, norms in found.blocks:
        for i in range(n_rows):
            row = np.empty(stop - start, np.int16)
            put_distances(found.Z, np.uint64(i), lines, norms, row)
            out[i, start:stop] = row
    return out


@CONTAINERS
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("levels", LEVELS.values(), ids=LEVELS.keys())
def test_distances_are_integers_times_their_unit(container, levels, dtype, rng):
    if dtype == np.float32 and max(levels) in (1e-90, 1e90):
        pytest.skip("not a number of single precision")
    X, Z = (rng.choice(np.array(levels, dtype), (n, 25)) for n in (2100, 40))
    found = integer_distances(container(X), container(Z))
    distances = all_distances(found)
    expected = ((Z[:, None].astype(np.float64) - X[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(distances * found.unit, expected, rtol=1e-6 if dtype == np.float32 else 1e-14)
    assert 0 <= distances.min() <= distances.max() <= found.largest


def test_few_features_differ_from_the_most_frequent_value(rng):
    X, Z = ((rng.random((n, 50)) < 0.9).astype(np.float64) for n in (500, 500))
    assert integer_distances(X, Z).lines_per_row < 10
    assert integer_distances(csr_array(X), csr_array(Z)).lines_per_row > 40


ones, numbers = np.eye(40, 7), np.random.default_rng(0).standard_normal((40, 7))
repeated = csr_array((np.ones(80), np.repeat(np.arange(40) % 7, 2), 2 * np.arange(41)), (40, 7))
REFUSED = {
    "many-values": (numbers, numbers),
    "other-values-of-Z": (ones, numbers),
    "a-value-between": (ones, np.where(np.arange(7) == 3, 0.5, ones)),
    "a-value-between-in-X": (np.vstack([ones] * 10 + [0.5 * ones]), ones),
    "nan": (ones, np.where(np.arange(7) == 3, np.nan, ones)),
    "infinite": (ones, np.where(np.arange(7) == 3, np.inf, ones)),
    "1e300": (1e300 * ones, 1e300 * ones),
    "extent-overflows": (1.7e308 * (1 - 2 * ones), ones),
    "denormal": (5e-324 * ones, 5e-324 * ones),
    "far-from-the-others": (ones, 1e5 * ones),
    "constant": (np.ones((40, 7)), np.ones((40, 7))),
    "no-features": (np.empty((40, 0)), np.empty((40, 0))),
    "empty-csr": (csr_array((40, 7)), csr_array((40, 7))),
    "too-few-rows": (ones, ones[:3]),
    "too-many-features": (np.eye(40, 2000), np.eye(40, 2000)),
    "large-distances": (np.tile([0.0, 32.0, 1.0], (40, 100)), np.tile([32.0, 0.0, 1.0], (40, 100))),
    "different-containers": (ones, csr_array(ones)),
    "different-types": (ones, ones.astype(np.float32)),
    "integers": (ones.astype(int), ones.astype(int)),
    "csc": (csc_array(ones), csc_array(ones)),
    "repeated-entries": (repeated, repeated),
}


@pytest.mark.parametrize(("X", "Z"), REFUSED.values(), ids=REFUSED.keys())
def test_other_rows_have_no_integer_distances(X, Z):
    assert integer_distances(X, Z) is None
