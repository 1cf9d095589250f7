"""One index of 10⁸ costs neither memory nor disk: linear machines train on the columns that occur.

Every claim about memory is made in a subprocess, whose peak is its own.
"""

import os
import subprocess
import sys

import numpy as np
import pytest
from scipy.sparse import csr_array

import widemargin
from widemargin import load_model, save_model
from widemargin.persistence import linear_fields

WIDTH = 10**8
_MEGABYTES = 600  # of which importing and compiling take about 350
_PEAK = """
with open("/proc/self/status") as file:  # getrusage would count the peak of the process that started this one
    peak = next(int(line.split()[1]) // 1024 for line in file if line.startswith("VmHWM"))
"""


@pytest.fixture
def narrow_and_wide(rng):
    """The same rows, with five columns and with 10⁸, and three classes that are told apart well."""
    places = np.array([0, 3, 4_999_999, WIDTH - 2, WIDTH - 1])
    narrow = csr_array(rng.standard_normal((60, 5)))
    wide = csr_array((narrow.data, places[narrow.indices].astype(np.int32), narrow.indptr), shape=(60, WIDTH))
    return narrow, wide, places, np.digitize(narrow.toarray()[:, 0], [-0.4, 0.4])


LINEAR = {
    "LinearSVC": {"random_state": 0},
    "LinearSVC crammer_singer": {"random_state": 0, "multi_class": "crammer_singer"},
    "LinearSVC free intercept": {"penalize_intercept": False, "random_state": 0},
    "LinearSVC no intercept": {"fit_intercept": False, "random_state": 0},
    "LinearSVCCV": {"Cs": [0.1, 1.0], "cv": 3, "random_state": 0},
    "LinearSVR": {"random_state": 0, "C": 0.01},
    "RankSVM": {},
    "OrdinalSVC": {},
    "ROCAreaSVC": {},
    "MeasureSVC": {},
}


@pytest.mark.parametrize("name", LINEAR)
def test_weights_predictions_and_files_are_those_of_the_columns_that_occur(narrow_and_wide, name, tmp_path):
    narrow, wide, places, y = narrow_and_wide
    y = (y > 0).astype(int) if name in ("ROCAreaSVC", "MeasureSVC") else y
    estimator = getattr(widemargin, name.split()[0])
    small, model = (estimator(**LINEAR[name]).fit(X, y) for X in (narrow, wide))
    assert model.coef_.shape == (*small.coef_.shape[:-1], WIDTH)
    assert model.coef_[..., places].tobytes() == small.coef_.tobytes()
    assert np.asarray(model.intercept_).tobytes() == np.asarray(small.intercept_).tobytes()
    np.testing.assert_allclose(model.predict(wide), small.predict(narrow), rtol=1e-12)
    save_model(model, tmp_path / "model")
    assert (tmp_path / "model").stat().st_size < 100_000
    again = load_model(tmp_path / "model")
    assert again.coef_.shape == model.coef_.shape
    assert again.predict(wide).tobytes() == model.predict(wide).tobytes()


def test_a_warm_start_takes_up_the_weights_of_the_columns_that_occur(narrow_and_wide):
    narrow, wide, _, y = narrow_and_wide
    for solver in ("ocas", "dcd"):
        models = [
            widemargin.LinearSVC(solver=solver, warm_start=True, random_state=0).fit(X, y) for X in (narrow, wide)
        ]
        first = models[1].n_iter_
        again = [model.fit(X, y) for model, X in zip(models, (narrow, wide), strict=True)]
        assert again[0].n_iter_ == again[1].n_iter_ <= first


def test_sparse_weights_predict_the_same_and_are_saved_sparse(narrow_and_wide, tmp_path):
    _, wide, _, y = narrow_and_wide
    model = widemargin.LinearSVC(random_state=0).fit(wide, y)
    expected = model.decision_function(wide)
    model.sparsify()
    np.testing.assert_allclose(model.decision_function(wide), expected, rtol=1e-13, atol=1e-13)
    save_model(model, tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert (again.coef_ != model.coef_).nnz == 0
    assert (tmp_path / "model").stat().st_size < 100_000


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="peaks of memory are read from /proc")
def test_train_and_predict_at_the_shell_stay_within_memory_and_write_a_small_model(tmp_path):
    rows = "".join(
        f"{label} 1:{label} 2:{k / 7} {index}:1\n" for k in range(20) for label, index in ((1, 5), (-1, WIDTH))
    )
    (tmp_path / "rows").write_text(rows)
    script = f"""
from widemargin.cli.main import main
assert main(["train", "-q", "rows", "model"]) == 0
assert main(["predict", "--json", "rows", "model", "out"]) == 0
{_PEAK}
assert peak < {_MEGABYTES}, peak
"""
    run = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    assert '"accuracy": 1.0' in run.stdout.replace('"accuracy":1.0', '"accuracy": 1.0')
    assert os.path.getsize(tmp_path / "model") < 100_000
    assert (tmp_path / "out").read_text() == 20 * "1\n-1\n"


# Model files without the columns of zero weights


@pytest.fixture
def few_weights(monkeypatch):
    """A fitted model of 200 features of which three have a weight, one of them a negative zero."""
    monkeypatch.setattr(linear_fields, "_MANY_FEATURES", 16)
    X = np.eye(4, 200)
    model = widemargin.LinearSVC(random_state=0, fit_intercept=False).fit(X, [0, 1, 0, 1])
    model.coef_[:] = 0.0
    model.coef_[0, [7, 20, 199]] = [1.5, -0.0, -2.5]
    return model


def _arrays(path):
    from safetensors.numpy import load_file

    return load_file(path)


def test_zero_weights_are_left_out_of_a_file_and_come_back_to_the_bit(few_weights, tmp_path):
    save_model(few_weights, tmp_path / "model")
    arrays = _arrays(tmp_path / "model")
    assert arrays["coef_.columns"].tolist() == [7, 20, 199]
    assert "coef_" not in arrays
    assert load_model(tmp_path / "model").coef_.tobytes() == few_weights.coef_.tobytes()


def test_weights_that_are_mostly_there_are_written_whole(few_weights, tmp_path):
    few_weights.coef_[:] = 1.0
    save_model(few_weights, tmp_path / "model")
    assert "coef_.columns" not in _arrays(tmp_path / "model")


@pytest.mark.parametrize(
    ("columns", "values", "rule"),
    [
        ([7, 20, 200], None, r"must ascend and stay below 200"),
        ([7, 7, 199], None, r"must ascend and stay below 200"),
        ([20, 7, 199], None, r"must ascend and stay below 200"),
        (np.array([7, 20, 199], dtype=np.int64), None, r"must be uint32 in one dimension"),
        ([7, 20], None, r"coef_ must have shape \(1, 2\), got \(1, 3\)"),
        (None, np.array([[1.0, np.nan, 2.0]]), "coef_ must be finite"),
        (None, np.ones(3), r"coef_ must have shape \(1, 3\)"),
    ],
)
def test_columns_that_cannot_be_are_refused(few_weights, tmp_path, columns, values, rule):
    arrays = linear_fields.arrays_of(few_weights, False)
    if columns is not None:
        arrays["coef_.columns"] = np.asarray(columns, dtype=getattr(columns, "dtype", np.uint32))
    if values is not None:
        arrays["coef_.values"] = values
    with pytest.raises(ValueError, match=rule):
        linear_fields.restore(few_weights, {}, arrays)
