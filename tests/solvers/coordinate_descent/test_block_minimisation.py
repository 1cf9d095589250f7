"""Selective block minimisation: certified optima from any blocks and memory, and honest ends of interrupted runs."""

import signal
import threading
import time

import numpy as np
import pytest
from tests.data.blocks.written import rows_of_kind, written

from widemargin import ConvergenceWarning, LinearSVC
from widemargin.data.blocks.streamed import StreamedMatrix
from widemargin.data.column_scaling import ColumnScaling
from widemargin.data.matrix import Matrix
from widemargin.problems import classification, regression
from widemargin.problems.certificates import certify
from widemargin.solvers.contract import Settings, Status
from widemargin.solvers.coordinate_descent.block_minimisation import sbm
from widemargin.solvers.coordinate_descent.dcd import dcd

N = 300
LOSSES = {
    "hinge": classification.hinge,
    "squared hinge": classification.squared_hinge,
    "epsilon-insensitive": lambda X, y, cost: regression.epsilon_insensitive(X, y, cost, 0.1),
}


def problem_of(X, loss="hinge"):
    rng = np.random.default_rng(2)
    y = np.where(rng.random(N) < 0.5, 1.0, -1.0)
    return LOSSES[loss](X, y, rng.uniform(0.1, 0.3, N))


@pytest.mark.parametrize("memory", [0.0, 3000.0, np.inf])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_optimum_is_that_of_coordinate_descent_in_memory(loss, memory, tmp_path):
    X = rows_of_kind("float64", N)
    streamed = StreamedMatrix(written(tmp_path, X, block_bytes=500), 1.0, memory)
    found = sbm(problem_of(streamed, loss), Settings(tol=1e-6))
    in_memory = problem_of(Matrix(X, 1.0), loss)
    exact = certify(in_memory, found.w, found.beta)
    assert found.status is Status.CONVERGED
    assert exact.primal == pytest.approx(found.primal, rel=1e-9)
    assert exact.dual == pytest.approx(found.dual, rel=1e-9)
    assert exact.primal - exact.dual <= 2e-6 * exact.primal
    assert found.primal == pytest.approx(dcd(in_memory, Settings(tol=1e-8)).primal, rel=2e-6)
    assert found.history["iteration"].tolist() == list(range(1, found.n_iter + 1))


@pytest.mark.parametrize("kind", ["dense float32", "ones", "uint8"])
@pytest.mark.parametrize("block_bytes", [1, 1 << 20])
def test_rows_of_every_kind_and_blocks_of_every_size_are_minimised(kind, block_bytes, tmp_path):
    X = rows_of_kind(kind, N)
    blocks = written(tmp_path, X, block_bytes=block_bytes)
    how = ColumnScaling.of("maxabs", blocks.columns)
    problem = problem_of(StreamedMatrix(blocks, 1.0, 2000.0, how))
    found = sbm(problem, Settings(tol=1e-4))
    scaled = (X if kind.startswith("dense") else X.toarray()) / how.scale
    exact = certify(problem_of(Matrix(scaled, 1.0)), found.w, found.beta)
    assert exact.primal - exact.dual <= 1.1e-4 * exact.primal


def test_a_start_is_used(tmp_path):
    streamed = StreamedMatrix(written(tmp_path, rows_of_kind("float64", N), block_bytes=500))
    problem = problem_of(streamed)
    first = sbm(problem, Settings(tol=1e-7))
    again = sbm(problem, Settings(tol=1e-6), first.beta)
    assert again.n_iter <= 2 < first.n_iter
    assert again.status is Status.CONVERGED


def test_columns_whose_mean_is_taken_off_are_refused(tmp_path):
    blocks = written(tmp_path, rows_of_kind("float64", N), np.arange(N) % 2, block_bytes=500)
    model = LinearSVC(solver="sbm", scaling="standard", loss="hinge")
    with pytest.raises(ValueError, match=r"'sbm' sweeps over sparse rows, which scaling='standard'.* Use solver="):
        model.fit(blocks)


@pytest.mark.parametrize("at", [0, 7, 25])
def test_an_interrupted_pass_measures_nothing(at, tmp_path):
    """Losses of some blocks are no objective; what is returned is the last point that was measured, or zero."""
    blocks = written(tmp_path, rows_of_kind("float64", N), block_bytes=300)
    assert blocks.n_blocks > 10
    interrupt, n_read, file = threading.Event(), [], blocks._pieces[0].file
    read = file.read

    def reading(number):
        n_read.append(number)
        if len(n_read) > at:
            interrupt.set()
        return read(number)

    file.read = reading
    problem = problem_of(StreamedMatrix(blocks))
    found = sbm(problem, Settings(tol=1e-9, interrupt=interrupt))
    assert found.status is Status.INTERRUPTED
    exact = certify(problem_of(Matrix(rows_of_kind("float64", N))), found.w, found.beta)
    assert found.primal == pytest.approx(exact.primal, rel=1e-9)
    assert found.dual == pytest.approx(exact.dual, rel=1e-9, abs=1e-12)
    assert np.isfinite(found.history["gap"]).all()
    assert len(n_read) < at + 3 * 6  # blocks that were read ahead


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("solver", ["sbm", "ocas", "newton"])
def test_ctrl_c_in_a_pass_keeps_the_model_within_half_a_second(solver, n_jobs, tmp_path):
    X = rows_of_kind("float64", 2000)
    blocks = written(tmp_path, X, np.arange(2000) % 2, block_bytes=2000)
    file, n_read, pressed = blocks._pieces[0].file, [], []
    read = file.read

    def reading(number):
        n_read.append(number)
        if len(n_read) == 2 * blocks.n_blocks + 3:
            pressed.append(time.monotonic())
            signal.raise_signal(signal.SIGINT)  # in the thread that reads: the main one hears of it
        return read(number)

    file.read = reading
    model = LinearSVC(solver=solver, loss="hinge", C=0.1, tol=1e-12, max_iter=100_000, n_jobs=n_jobs)
    matrix = StreamedMatrix(blocks, 1.0, 0.0)
    matrix.scores(np.zeros(6))  # compiles
    n_read.clear()
    model._matrix_of = lambda *arguments, **options: matrix
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model.fit(blocks)
    assert time.monotonic() - pressed[0] < 0.5
    assert np.isfinite(model.coef_).all()
    assert model.status_ == "interrupted"
    readers = [one for one in threading.enumerate() if one.name == "widemargin-read-ahead"]
    for thread in readers:
        thread.join(5.0)
    assert not any(thread.is_alive() for thread in readers)
