"""Whatever may take long tells how far it is: reading, writing, fitting, predicting; each to the last byte or row."""

import bz2
import gzip
import lzma
import sys
from io import BytesIO, StringIO

import numpy as np
import pytest
from scipy.sparse import csr_array

from widemargin import (
    SVC,
    SVR,
    LinearSVC,
    LinearSVCCV,
    NuSVC,
    NuSVR,
    OneClassSVM,
    read_svmlight,
    write_svmlight,
)
from widemargin._runtime import progress
from widemargin._runtime.progress import show_progress, task
from widemargin.data.svmlight import reader
from widemargin.models.kernel import training_rows

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


@pytest.fixture(autouse=True)
def talkative(monkeypatch):
    """Every advance has its line."""
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", 0.0)
    monkeypatch.setattr(progress, "_LATER_LINES", 0.0)


@pytest.fixture
def classes(rng):
    """Rows of three classes."""
    X = rng.standard_normal((300, 4))
    return X, np.digitize(X[:, 0], [-0.4, 0.4])


def heard_of(work):
    """Return the lines about some work."""
    stream = StringIO()
    with show_progress(stream):
        work()
    return stream.getvalue().splitlines()


def lines_about(what, lines):
    """Return those of the lines that are about one task, without its name and the time left."""
    return [line.removeprefix(f"{what}: ").split(", ")[0] for line in lines if line.startswith(f"{what}: ")]


def test_reading_tells_of_every_chunk_to_the_last_byte(two, monkeypatch):
    monkeypatch.setattr(reader, "_CHUNK_BYTES", 500)
    size = f"{two.stat().st_size / 1e3:.3g} kB"
    shares = lines_about("reading two", heard_of(lambda: read_svmlight(two)))
    assert len(shares) > 20
    assert shares[-2:] == [f"100% of {size}", size]


@pytest.mark.parametrize(("module", "suffix"), [(lzma, "xz"), (gzip, "gz"), (bz2, "bz2"), (zstd, "zst")])
def test_decompressing_tells_of_compressed_bytes(module, suffix, tmp_path, rng):
    numbers = rng.standard_normal((40_000, 4))
    path = tmp_path / f"rows.{suffix}"
    write_svmlight(path, numbers, np.ones(len(numbers)))
    size = f"{path.stat().st_size / 1e6:.3g} MB"
    shares = lines_about(f"decompressing rows.{suffix}", heard_of(lambda: read_svmlight(path)))
    assert len(shares) > 2
    assert shares[-2:] == [f"100% of {size}", size]
    np.testing.assert_array_equal(read_svmlight(BytesIO(path.read_bytes()))[0].toarray(), numbers)


def test_a_stream_of_unknown_length_is_told_of(two):
    opened = []

    class Stream(BytesIO):
        def read(self):
            opened.extend(one.what for one in progress._in_force.get()._tasks)
            return super().read()

    heard_of(lambda: read_svmlight(Stream(two.read_bytes())))
    assert opened == ["reading <stream>"]


def test_writing_tells_of_rows(tmp_path, rng):
    shares = lines_about("writing rows", heard_of(lambda: write_svmlight(tmp_path / "rows", np.eye(30), np.ones(30))))
    assert shares == ["30 of 30 rows", "30 rows"]


@pytest.mark.parametrize("container", [np.asarray, csr_array])
@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("name", ["rbf", "linear", "poly"])
def test_prediction_tells_of_all_rows_once(name, n_jobs, container, classes):
    X, y = container(classes[0]), classes[1]
    for model in (SVC(), NuSVC(nu=0.3), SVR(), NuSVR(), OneClassSVM()):
        model.set_params(kernel=name, n_jobs=n_jobs).fit(X, y)
        shares = lines_about("predicting", heard_of(lambda model=model: model.predict(X)))
        assert shares[-2:] == ["300 of 300 rows", "300 rows"], model
        assert shares.count("300 of 300 rows") == 1


def test_prediction_in_parts_is_one_task(classes, monkeypatch):
    X, y = classes
    model, alone = SVC(probability="libsvm", random_state=0).fit(X, y), SVC().fit(X, y).predict(X)
    monkeypatch.setattr(training_rows, "_NUMBERS_PER_BLOCK", 600)
    shares = lines_about("predicting", heard_of(lambda: model.predict_proba(X)))
    assert shares == ["100 of 300 rows", "200 of 300 rows", "300 of 300 rows", "300 rows"]
    np.testing.assert_array_equal(model.predict(X), alone)


@pytest.mark.parametrize("name", ["precomputed", lambda A, B: A @ B.T])
def test_prediction_by_values_or_functions_tells_of_rows(name, classes, monkeypatch):
    X, y = classes
    rows = X @ X.T if name == "precomputed" else X
    model = SVC(kernel=name).fit(rows, y)
    monkeypatch.setattr(training_rows, "_NUMBERS_PER_BLOCK", 300 * 100)
    shares = lines_about("predicting", heard_of(lambda: model.predict(rows)))
    assert shares == ["100 of 300 rows", "200 of 300 rows", "300 of 300 rows", "300 rows"]


def test_a_verbose_model_tells_of_its_prediction(classes, capsys):
    X, y = classes
    model = SVC().fit(X, y)
    model.predict(X)
    assert capsys.readouterr().err == ""
    model.set_params(verbose=1).predict(X)
    assert "predicting: 300 of 300 rows" in capsys.readouterr().err


@pytest.mark.parametrize("model", [SVC(), SVR(), OneClassSVM(nu=0.3)])
def test_calibration_tells_of_rows(model, classes):
    X, y = classes
    model.set_params(probability="libsvm", random_state=0)
    assert lines_about("calibrating", heard_of(lambda: model.fit(X, y)))[-2:] == ["300 of 300 rows", "300 rows"]


def test_fitting_counts_problems_and_shows_solvers(classes):
    for model in (LinearSVC(solver="dcd"), SVC(solver="smo")):
        lines = heard_of(lambda model=model: model.fit(*classes))
        assert lines_about("solving", lines) == ["1 of 3 problems", "2 of 3 problems", "3 of 3 problems", "3 problems"]
        assert any(line.startswith(("[1/3] dcd: ", "[1/3] smo: ")) for line in lines)


def test_a_path_counts_the_values_of_c(classes):
    model = LinearSVCCV(Cs=[0.1, 1.0, 10.0], cv=3)
    counted = lines_about("solving", heard_of(lambda: model.fit(*classes)))
    assert counted[:3] == [f"{k} of 3 values of C" for k in (1, 2, 3)]


def test_a_report_that_is_a_callback_too_is_told_once(classes):
    stream, turns = StringIO(), []
    X, y = classes
    with progress.ProgressReport(2, stream) as report:
        LinearSVC(solver="dcd", callbacks=[report, turns.append]).fit(X, y > 1)
    assert sum(line.startswith("dcd: ") for line in stream.getvalue().splitlines()) == len(turns)


def test_verbose_within_show_progress_is_not_said_twice(classes, capsys):
    lines = heard_of(lambda: LinearSVC(solver="dcd", verbose=2).fit(classes[0], classes[1] > 1))
    assert capsys.readouterr().err == ""
    assert len(lines) == len(set(lines)) > 0


def test_other_threads_have_reports_of_their_own():
    from threading import Thread

    def work():
        with task("elsewhere", 1) as elsewhere:
            elsewhere.advance()

    def start():
        thread = Thread(target=work)
        thread.start()
        thread.join()

    assert heard_of(start) == []
    assert heard_of(work) != []
