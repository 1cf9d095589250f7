"""What the estimators on a cluster do not take is refused by name, with the way out; nothing is left on the cluster."""

import subprocess
import sys

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client
from scipy.sparse import csr_matrix
from tests.distributed.clusters import blocks, classes_of

from widemargin import RowLoss
from widemargin.dask import LinearSVC, LinearSVR, RankSVM, from_blocks


@pytest.fixture
def rows(rng):
    """Rows of two classes."""
    return classes_of(rng, 300, 3)


@pytest.mark.parametrize(("bad", "word"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
def test_a_value_that_is_not_finite_is_told_with_its_partition_and_row(bad, word, client, rows):
    X, y = rows
    X[230, 1] = bad
    with pytest.raises(ValueError, match=f"X contains {word}: row 30 of partition 2, column 1"):
        LinearSVC(client=client).fit(*blocks(X, y, n_rows=100))


def test_a_sparse_value_that_is_not_finite_is_told_with_its_partition(client, rows):
    X, y = rows
    X[230, 1] = np.nan
    with pytest.raises(ValueError, match=r"Partition 2: .*NaN"):
        LinearSVC(client=client).fit(blocks(X, n_rows=100)[0].map_blocks(csr_matrix), *blocks(y, n_rows=100))


def test_targets_and_weights_that_are_not_valid_are_told_with_their_partition(client, rows):
    X, y = rows
    y = y.astype(float)
    weight = np.ones(300)
    weight[150] = -1.0
    with pytest.raises(ValueError, match=r"sample_weight must be .*not negative: row 50 of partition 1 has -1\.0"):
        LinearSVC(client=client).fit(*blocks(X, y, weight, n_rows=100))
    with pytest.raises(ValueError, match="sample_weight is zero for every row"):
        LinearSVC(client=client).fit(*blocks(X, y, np.zeros(300), n_rows=100))
    y[120] = np.nan
    for kind in (LinearSVC, LinearSVR):
        with pytest.raises(ValueError, match="artition 1"):
            kind(client=client).fit(*blocks(X, y, n_rows=100))


def test_partitions_that_do_not_fit_together_are_named(client, rows):
    X, y = rows
    parts = [dask.delayed((X[:100], y[:100])), dask.delayed((X[100:, :2], y[100:]))]
    with pytest.raises(ValueError, match="Partition 1 has 2 columns, partition 0 3"):
        LinearSVC(client=client).fit(parts)
    parts = [dask.delayed((X[:100], y[:100])), dask.delayed((csr_matrix(X[100:]), y[100:]))]
    with pytest.raises(ValueError, match="Partition 1 is sparse, partition 0 is not"):
        LinearSVC(client=client).fit(parts)
    parts = [dask.delayed((X[:100], y[:100])), dask.delayed((X[100:], y[100:].astype(str)))]
    with pytest.raises(ValueError, match="labels of one kind, got strings in some partitions and numbers in others"):
        LinearSVC(client=client).fit(parts)
    with pytest.raises(ValueError, match="Partition 0: y has 99 values, X has 100 rows"):
        LinearSVC(client=client).fit([dask.delayed((X[:100], y[:99]))])
    with pytest.raises(ValueError, match="y has 2 blocks, X has 3"):
        LinearSVC(client=client).fit(*blocks(X, n_rows=100), da.from_array(y[:200], chunks=100))


def test_rows_without_two_classes_or_without_any_row(client, rows):
    X, y = rows
    with pytest.raises(ValueError, match=r"at least 2 classes, got 1 class: \[1\]"):
        LinearSVC(client=client).fit(*blocks(X, np.ones(300, int)))
    with pytest.raises(ValueError, match="all partitions are empty"):
        LinearSVC(client=client).fit([dask.delayed((X[:0], y[:0]))] * 2)


def test_rows_in_this_process_are_refused_with_the_way_out(client, rows):
    with pytest.raises(TypeError, match=r"got ndarray\. For rows in this process, use the estimator of `widemargin`"):
        LinearSVC(client=client).fit(*rows)
    with pytest.raises(ValueError, match="y has 299 values, and X has 300 rows"):
        LinearSVC(client=client).fit(*blocks(rows[0]), rows[1][:299])
    with pytest.raises(ValueError, match="2D array, got a Dask array of 1 dimension"):
        LinearSVC(client=client).fit(*blocks(rows[1], rows[1]))
    with pytest.raises(ValueError, match="are parts of each block"):
        LinearSVC(client=client).fit([dask.delayed(rows)], rows[1])
    with pytest.raises(ValueError, match="y is None"):
        LinearSVC(client=client).fit(*blocks(rows[0]))


@pytest.mark.parametrize("solver", ["dcd", "avsf", "climb", "sbm"])
def test_solvers_that_need_all_rows_in_one_process_are_refused_by_name(solver, client, rows):
    with pytest.raises(ValueError, match=f"solver='{solver}'"):
        LinearSVC(solver=solver, client=client).fit(*blocks(*rows))


def test_problems_that_need_all_rows_in_one_process_are_refused_by_name(client, rows):
    three = rows[0], np.arange(len(rows[1])) % 3
    with pytest.raises(ValueError, match="'crammer_singer' by coordinate descent needs all rows in memory"):
        LinearSVC(multi_class="crammer_singer", solver="dcd", client=client).fit(*blocks(*three))
    huber = RowLoss(lower=-1.0, upper=1.0, curvature=0.3)
    with pytest.raises(ValueError, match="hinges"):
        LinearSVC(loss=huber, client=client).fit(*blocks(*rows))


def test_no_client_is_told_before_anything_is_done(rows, monkeypatch):
    monkeypatch.setattr("distributed.client._global_clients", {})
    with pytest.raises(ValueError, match="There is no Dask client: connect to a cluster by `distributed"):
        LinearSVC().fit(*blocks(*rows))


def test_the_default_client_is_used(client, rows):
    with Client(client.scheduler.address):
        assert LinearSVC().fit(*blocks(*rows)).gap_ <= 1e-4


def test_files_that_are_not_there_are_named(client, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file matches '.*part-\*\.arrow'"):
        from_blocks(tmp_path / "part-*.arrow")
    with pytest.raises(ValueError, match="at least one file"):
        from_blocks([])
    with pytest.raises(FileNotFoundError, match=r"part-0\.arrow"):
        LinearSVC(client=client).fit(from_blocks(tmp_path / "part-0.arrow"))


def test_rankings_without_pairs_are_refused(client, rows):
    X, _ = rows
    with pytest.raises(ValueError, match="within any query"):
        RankSVM(client=client).fit(*blocks(X, np.zeros(300), np.repeat([1, 2, 3], 100), n_rows=100))


def test_without_dask_the_error_says_how_to_get_it():
    code = "import sys; sys.modules['dask'] = None; import widemargin.dask"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert 'widemargin.dask needs dask, which is not installed: pip install "widemargin[dask]"' in ended.stderr
