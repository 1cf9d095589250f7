"""Ctrl-C while rows are read from disk: no pass is waited for, and what was measured before is returned.

When Ctrl-C is pressed, the disk becomes so slow that a single pass takes seconds.
"""

import signal
import threading
import time
import warnings

import numpy as np
import pytest

pytest.importorskip("pyarrow")

from tests.data.blocks.written import written

from widemargin import ConvergenceWarning, LinearSVC, LinearSVCCV, c_path
from widemargin.data.blocks.read_ahead import ReadAhead
from widemargin.data.blocks.streamed import StreamedMatrix
from widemargin.data.matrix import Matrix
from widemargin.models import base
from widemargin.problems import classification
from widemargin.problems.certificates import losses

N_ROWS, N_BLOCKS = 3000, 100
SECONDS_OF_BLOCK = 0.05  # a pass by three threads takes more than 1.6 seconds
ALLOWED = 0.5 + 3 * SECONDS_OF_BLOCK  # blocks that are being read, or wait to be processed


@pytest.fixture(autouse=True)
def streaming(monkeypatch):
    """No block stays in memory."""

    def matrix_of_blocks(blocks, constant=0.0, *, n_problems=1, **options):
        matrix = StreamedMatrix(blocks, constant)
        matrix.most_problems = n_problems
        return matrix

    monkeypatch.setattr(base, "matrix_of_blocks", matrix_of_blocks)


class Disk:
    """Rows in blocks; Ctrl-C is pressed when so many blocks have been read."""

    def __init__(self, folder, n_classes=2):
        rng = np.random.default_rng(0)
        self.X = rng.standard_normal((N_ROWS, 12))
        score = self.X[:, :3].sum(axis=1) + 2.0 * rng.standard_normal(N_ROWS) + 0.5
        self.y = np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))
        self.blocks = written(folder, self.X, self.y, block_bytes=self.X.nbytes // N_BLOCKS)
        assert self.blocks.n_blocks >= N_BLOCKS
        file = self.blocks._pieces[0].file
        self._read, file.read = file.read, self.read
        self.n_read, self.press_at, self.pressed = 0, np.inf, None

    def read(self, number):
        self.n_read += 1
        if self.pressed is not None:
            time.sleep(SECONDS_OF_BLOCK)
        elif self.n_read >= self.press_at:
            self.pressed = time.monotonic()
            signal.raise_signal(signal.SIGINT)  # the main thread hears of it
        return self._read(number)

    def passes_of(self, fit):
        """Return how many passes a fit makes, which compiles it, too."""
        self.n_read, self.press_at, self.pressed = 0, np.inf, None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fit()
        return self.n_read / self.blocks.n_blocks

    def press_after(self, passes):
        self.n_read, self.press_at, self.pressed = 0, max(1, round(passes * self.blocks.n_blocks)), None

    def assert_ended_at_once(self):
        assert self.pressed is not None
        assert time.monotonic() - self.pressed < ALLOWED
        readers = [one for one in threading.enumerate() if one.name == "widemargin-read-ahead"]
        for thread in readers:
            thread.join(5.0)
        assert not any(thread.is_alive() for thread in readers)


def objective(model, disk, positive):
    """Return the objective of one row of the weights of a model, computed from all rows."""
    k = positive if len(model.coef_) > 1 else 0
    problem = classification.hinge(
        Matrix(disk.X), np.where(disk.y == positive, 1.0, -1.0), np.full(N_ROWS, model.C), free_intercept=True
    )
    w, b = model.coef_[k], model.intercept_[k] if np.ndim(model.intercept_) else 0.0
    penalty = 0.5 * float(w @ w) + (0.5 * b * b if model.fit_intercept and model.penalize_intercept else 0.0)
    return penalty + float(losses(problem, disk.X @ w + b).sum())


INTERCEPTS = {
    "none": {"fit_intercept": False},
    "penalised": {},
    "free": {"penalize_intercept": False},
}
FITS = [(solver, intercept) for solver in ("newton", "ocas") for intercept in INTERCEPTS] + [("sbm", "penalised")]


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize(("solver", "intercept"), FITS)
def test_the_model_so_far_is_kept_with_bounds_that_hold(solver, intercept, n_jobs, tmp_path):
    disk = Disk(tmp_path)
    options = {"solver": solver, "loss": "hinge", "C": 0.01, "tol": 1e-6, **INTERCEPTS[intercept]}
    whole = LinearSVC(**options, n_jobs=n_jobs)
    n_passes, n_kept = disk.passes_of(lambda: whole.fit(disk.blocks)), 0
    for share in (0.05, 0.4, 0.8):
        disk.press_after(share * n_passes)
        model = LinearSVC(**options, n_jobs=n_jobs)
        try:
            with pytest.warns(ConvergenceWarning, match="interrupted"):
                model.fit(disk.blocks)
        except KeyboardInterrupt:  # there was nothing to keep
            assert share < 0.8
            disk.assert_ended_at_once()
            continue
        disk.assert_ended_at_once()
        n_kept += 1
        assert model.status_ == "interrupted"
        assert model.objective_ == pytest.approx(objective(model, disk, 1), rel=1e-9)
        assert model.objective_ * (1.0 - model.gap_) <= whole.objective_ * (1.0 + 1e-9)
        assert model.gap_ >= whole.gap_
    assert n_kept >= 1


@pytest.mark.parametrize("solver", ["newton", "ocas", "sbm"])
def test_classes_that_were_not_begun_have_weights_zero(solver, tmp_path, monkeypatch):
    """The models of other classes are kept; no pass is made for those that are left."""
    monkeypatch.setattr(base, "_MAX_PROBLEMS_IN_GROUP", 1)
    disk = Disk(tmp_path, n_classes=4)
    options = {"solver": solver, "loss": "hinge", "C": 0.01, "tol": 1e-4}
    n_passes = disk.passes_of(lambda: LinearSVC(**options).fit(disk.blocks))
    disk.press_after(0.6 * n_passes)
    model = LinearSVC(**options)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model.fit(disk.blocks)
    disk.assert_ended_at_once()
    assert model.coef_[0].any()
    assert not model.coef_[-1].any()
    assert model.gap_ == 1.0
    assert model.objective_ == pytest.approx(sum(objective(model, disk, k) for k in range(4)), rel=1e-9)
    histories = model.history_
    assert histories[0]["gap"][-1] <= 1e-4
    assert histories[-1]["gap"].tolist() == [1.0]


@pytest.mark.parametrize("solver", ["newton", "ocas"])
def test_ctrl_c_before_there_is_any_model_is_a_keyboard_interrupt(solver, tmp_path):
    disk = Disk(tmp_path)
    model = LinearSVC(solver=solver, loss="hinge", C=0.01)
    disk.passes_of(lambda: model.fit(disk.blocks))
    coef = model.coef_.copy()
    disk.press_after(0.1)
    with pytest.raises(KeyboardInterrupt):
        model.set_params(warm_start=True).fit(disk.blocks)
    disk.assert_ended_at_once()
    np.testing.assert_array_equal(model.coef_, coef)  # what was fitted before is there


@pytest.mark.parametrize("solver", ["newton", "ocas", "sbm"])
def test_an_interrupted_path_has_the_values_of_c_that_are_done(solver, tmp_path):
    disk, Cs = Disk(tmp_path), [0.001, 0.01, 0.1, 1.0]
    estimator = LinearSVC(solver=solver, loss="hinge", tol=1e-4, random_state=0)
    whole = []
    n_passes = disk.passes_of(lambda: whole.append(c_path(estimator, disk.blocks, Cs=Cs)))
    lengths = []
    for share in (0.4, 0.6, 0.8):
        disk.press_after(share * n_passes)
        with pytest.warns(ConvergenceWarning, match="interrupted"):
            path = c_path(estimator, disk.blocks, Cs=Cs)
        disk.assert_ended_at_once()
        lengths.append(len(path.Cs))
        done = path.statuses == "converged"
        np.testing.assert_array_equal(path.coefs[done], whole[0].coefs[: len(path.Cs)][done])
        assert np.isfinite(path.objectives).all()
        assert (path.objectives * (1.0 - path.gaps) <= whole[0].objectives[: len(path.Cs)] * (1.0 + 1e-9)).all()
    assert min(lengths) < len(Cs)


def test_an_interrupted_path_goes_on_from_its_checkpoint(tmp_path):
    disk = Disk(tmp_path)
    options = {"Cs": [0.001, 0.01, 0.1, 1.0], "cv": 3, "solver": "newton", "loss": "hinge", "tol": 1e-4}
    models = []
    n_passes = disk.passes_of(lambda: models.append(LinearSVCCV(**options).fit(disk.blocks)))
    path = tmp_path / "run.ckpt"
    disk.press_after(0.6 * n_passes)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        LinearSVCCV(**options, checkpoint=path).fit(disk.blocks)
    assert path.exists()
    assert disk.passes_of(lambda: models.append(LinearSVCCV(**options, checkpoint=path).fit(disk.blocks))) < n_passes
    np.testing.assert_array_equal(models[1].path_.coefs, models[0].path_.coefs)
    np.testing.assert_array_equal(models[1].scores_, models[0].scores_)
    assert not path.exists()


def test_who_waits_for_a_block_when_the_pass_is_over_goes_on():
    """Ctrl-C that comes again during the wait for other threads ends the pass while these still wait for blocks."""
    may_read, errors = threading.Event(), []

    def read(k):
        may_read.wait(10.0)
        return k

    def work():
        try:
            with ahead.block(1):
                pass
        except RuntimeError as error:
            errors.append(str(error))

    with ReadAhead(read, range(5), 2) as ahead:
        waiting = threading.Thread(target=work)
        waiting.start()
        threading.Timer(0.2, may_read.set).start()
        ahead._stop()
        waiting.join(0.15)
        assert not waiting.is_alive()
    assert errors == ["the pass has ended"]
