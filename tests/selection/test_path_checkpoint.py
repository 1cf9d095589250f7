"""Checkpoints of a path of C: a path that ends anywhere goes on to the same numbers, and repeats no C that is done."""

import time

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.metrics import balanced_accuracy_score, make_scorer

from widemargin import ConvergenceWarning, LinearSVC, LinearSVCCV, LinearSVR, LinearSVRCV, c_path
from widemargin.data.blocks import placement
from widemargin.data.blocks.reader import open_blocks
from widemargin.data.blocks.writer import write_blocks
from widemargin.errors import FormatError
from widemargin.models import base
from widemargin.selection.warm_start_path import WarmStartPath
from widemargin.solvers.newton.smoothed import NewtonPath

CS, N_CS = [0.001, 0.01, 0.1, 1.0], 4


class Killed(Exception):
    """What ends a path in the middle."""


class Fits:
    """Counts the fits of each problem; ends the path at the end of the fit of a given number, whose result is lost."""

    def __init__(self, monkeypatch):
        self.count()
        for kind in (NewtonPath, WarmStartPath):
            monkeypatch.setattr(kind, "solved", self._watched(kind.solved))

    def count(self, n_fits=np.inf, task=0):
        """Count from zero, and end the path at the fit of this number of a problem."""
        self.begun, self._n_fits, self._task = {}, n_fits, task

    def _watched(self, solve):
        def solved(path, C):
            settings = path._settings if isinstance(path._settings, list) else [path._settings]
            for one in settings:
                self.begun[one.task] = self.begun.get(one.task, 0) + 1
            solutions = solve(path, C)
            if any(one.task == self._task for one in settings) and self.begun[self._task] >= self._n_fits:
                raise Killed
            return solutions

        return solved


@pytest.fixture
def fits(monkeypatch):
    return Fits(monkeypatch)


def data(n_rows=400, n_classes=2):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, 12)) + 0.3
    score = X[:, :3].sum(axis=1) + rng.standard_normal(n_rows)
    return X, np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))


def blocks_of(folder, X, y):
    path = folder / "rows.arrow"
    if not path.exists():
        write_blocks(path, [(X, y)], keep_order=True, block_bytes=4000)
    return open_blocks(path)


@pytest.fixture
def streaming(monkeypatch):
    """Blocks that are never loaded into a Matrix."""
    monkeypatch.setattr(placement, "_bytes_in_memory", lambda blocks: np.inf)


def assert_equal_to_the_bit(found, wanted):
    names = ("Cs", "coefs", "intercepts", "gaps", "objectives", "n_iters", "statuses", "scores", "fold_gaps")
    for name in names:
        assert_array_equal(getattr(found, name), getattr(wanted, name), err_msg=name)
    assert found.solver == wanted.solver
    for of_found, of_wanted in zip(found.histories, wanted.histories, strict=True):
        for one, other in zip(of_found, of_wanted, strict=True):
            for name in ("iteration", "passes", "primal", "dual", "gap"):
                assert_array_equal(one[name], other[name])
            assert (np.diff(one["seconds"]) >= 0.0).all()


FITS = {
    "newton, by steps": ({"solver": "newton", "loss": "hinge"}, 3000, 2),
    "newton, by steps, free intercept": ({"solver": "newton", "loss": "hinge", "penalize_intercept": False}, 3000, 2),
    "newton, small": ({"solver": "newton", "loss": "hinge"}, 400, 2),
    "newton, squared, three classes": ({"solver": "newton"}, 3000, 3),
    "auto": ({"loss": "hinge"}, 400, 2),
    "dcd": ({"solver": "dcd"}, 400, 3),
    "avsf, hinge": ({"solver": "avsf", "loss": "hinge"}, 400, 2),
    "ocas": ({"solver": "ocas", "loss": "hinge"}, 400, 2),
    "sbm": ({"solver": "sbm", "loss": "hinge"}, 400, 2),
    "standard scaling": ({"solver": "ocas", "scaling": "standard"}, 400, 2),
}


@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize("n_fits", [1, 3])
def test_a_path_that_ends_anywhere_goes_on_to_the_same_numbers(fits, name, n_fits, tmp_path):
    options, n_rows, n_classes = FITS[name]
    (X, y), path = data(n_rows, n_classes), tmp_path / "run.ckpt"
    options = {"tol": 1e-5, "random_state": 0, "max_iter": 10_000, **options}
    fits.count()
    whole = c_path(LinearSVC(**options), X, y, CS, cv=3)
    assert fits.begun[0] == N_CS
    fits.count(n_fits)
    with pytest.raises(Killed):
        c_path(LinearSVC(**options, checkpoint=path), X, y, CS, cv=3)
    assert path.exists() == (n_fits > 1)
    fits.count()
    rest = c_path(LinearSVC(**options, checkpoint=path), X, y, CS, cv=3)
    assert fits.begun[0] == N_CS - n_fits + 1
    assert_equal_to_the_bit(rest, whole)
    assert not path.exists()


@pytest.mark.parametrize("cv", [None, 3])
@pytest.mark.parametrize("solver", ["newton", "ocas", "sbm"])
@pytest.mark.parametrize("most_problems", [1, 3, 20])
@pytest.mark.parametrize(("n_fits", "task"), [(2, 0), (3, -1)])
def test_rounds_of_blocks_on_disk_go_on_to_the_same_numbers(
    fits, solver, cv, most_problems, n_fits, task, streaming, monkeypatch, tmp_path
):
    made = base.matrix_of_blocks

    def matrix_of_blocks(*arguments, n_problems, **options):
        matrix = made(*arguments, n_problems=n_problems, **options)
        matrix.most_problems = min(most_problems, n_problems)
        return matrix

    monkeypatch.setattr(base, "matrix_of_blocks", matrix_of_blocks)
    blocks, path, n_problems = blocks_of(tmp_path, *data()), tmp_path / "run.ckpt", 1 if cv is None else 4
    task %= n_problems
    options = {"solver": solver, "loss": "hinge", "tol": 1e-4, "random_state": 0}
    whole = c_path(LinearSVC(**options), blocks, Cs=CS, cv=cv)
    fits.count(n_fits, task)
    with pytest.raises(Killed):
        c_path(LinearSVC(**options, checkpoint=path), blocks, Cs=CS, cv=cv)
    fits.count()
    rest = c_path(LinearSVC(**options, checkpoint=path), blocks, Cs=CS, cv=cv)
    assert fits.begun[task] == N_CS - n_fits + 1
    assert_equal_to_the_bit(rest, whole)
    assert not path.exists()


def test_a_range_that_was_chosen_is_not_chosen_again(fits, tmp_path):
    (X, y), path = data(), tmp_path / "run.ckpt"
    whole = c_path(LinearSVC(loss="hinge", random_state=0), X, y, cv=3)
    fits.count(4)
    with pytest.raises(Killed):
        c_path(LinearSVC(loss="hinge", random_state=0, checkpoint=path), X, y, cv=3)
    fits.count()
    rest = c_path(LinearSVC(loss="hinge", random_state=0, checkpoint=path), X, y, cv=3)
    assert fits.begun[0] == len(whole.Cs) - 3
    assert_equal_to_the_bit(rest, whole)


def test_without_a_seed_a_path_goes_on_with_that_of_its_beginning(fits, tmp_path):
    """Otherwise the orders of the sweeps of a path would depend on where it was killed."""
    (X, y), path, seeds = data(), tmp_path / "run.ckpt", []
    options = {"solver": "dcd", "loss": "hinge", "checkpoint": path}
    fits.count(2)
    with pytest.raises(Killed):
        c_path(LinearSVC(**options), X, y, CS)
    seeds.append(int(np.load(path)["path.seed"]))
    fits.count(2)
    with pytest.raises(Killed):
        c_path(LinearSVC(**options), X, y, CS)
    fits.count()
    seeds.append(int(np.load(path)["path.seed"]))
    assert seeds[0] == seeds[1]


def test_each_is_called_once_for_every_C_of_a_call(fits, tmp_path):
    (X, y), path, first, second = data(), tmp_path / "run.ckpt", [], []
    options = {"random_state": 0, "checkpoint": path}
    fits.count(3)
    with pytest.raises(Killed):
        c_path(LinearSVC(**options), X, y, CS, cv=3, each=lambda *one: first.append(one))
    fits.count()
    whole = c_path(LinearSVC(**options), X, y, CS, cv=3, each=lambda *one: second.append(one))
    assert [C for C, _ in first] == CS[:2]
    assert second[:2] == first
    assert [C for C, _ in second] == CS
    assert_array_equal(np.transpose([scores for _, scores in second]), whole.scores)


def test_a_limit_of_seconds_leaves_the_points_that_are_done(tmp_path):
    (X, y), path = data(), tmp_path / "run.ckpt"
    options = {"solver": "dcd", "loss": "hinge", "random_state": 0, "tol": 1e-5, "max_iter": None}
    whole = c_path(LinearSVC(**options), X, y, CS, cv=3)

    def waits_after_the_second_C(C, scores):
        if CS.index(C) == 1:
            time.sleep(1.0)

    first = c_path(
        LinearSVC(**options, checkpoint=path, max_seconds=1.0), X, y, CS, cv=3, each=waits_after_the_second_C
    )
    assert len(first.Cs) == 2
    assert path.exists()
    rest = c_path(LinearSVC(**options, checkpoint=path, max_seconds=100.0), X, y, CS, cv=3, each=lambda *one: None)
    assert_equal_to_the_bit(rest, whole)
    assert not path.exists()


def test_a_fit_that_ran_out_of_time_is_not_kept(tmp_path):
    (X, y), path = data(), tmp_path / "run.ckpt"
    with pytest.warns(ConvergenceWarning, match="max_seconds reached"):
        c_path(LinearSVC(solver="ocas", loss="hinge", tol=1e-9, checkpoint=path, max_seconds=1e-9), X, y, CS)
    assert not path.exists()


@pytest.mark.parametrize(("kind", "n_classes"), [(LinearSVCCV, 2), (LinearSVCCV, 3), (LinearSVRCV, 50)])
@pytest.mark.parametrize("on_disk", [False, True])
def test_models_with_cross_validated_c_go_on(fits, kind, n_classes, on_disk, streaming, tmp_path):
    (X, y), path = data(n_classes=n_classes), tmp_path / "run.ckpt"
    y = y.astype(float) if kind is LinearSVRCV else y
    rows = (blocks_of(tmp_path, X, y),) if on_disk else (X, y)
    options = {"Cs": CS, "cv": 3, "random_state": 0, "tol": 1e-4}
    whole = kind(**options).fit(*rows)
    fits.count(3)
    with pytest.raises(Killed):
        kind(**options, checkpoint=path).fit(*rows)
    fits.count()
    assert path.exists()
    rest = kind(**options, checkpoint=str(path)).fit(*rows)
    assert_equal_to_the_bit(rest.path_, whole.path_)
    for name in ("coef_", "intercept_", "scores_", "C_", "gap_", "n_iter_", "status_", "solver_"):
        assert_array_equal(getattr(rest, name), getattr(whole, name))
    assert not path.exists()


def test_the_checkpoint_of_another_path_is_refused_with_what_differs(fits, tmp_path):
    (X, y), path = data(), tmp_path / "run.ckpt"
    options = {"solver": "ocas", "loss": "hinge", "random_state": 0, "checkpoint": path}
    scoring = make_scorer(balanced_accuracy_score)
    fits.count(3)
    with pytest.raises(Killed):
        c_path(LinearSVC(**options), X, y, CS, cv=3, scoring=scoring)
    fits.count()
    others = [
        ({"loss": "squared_hinge"}, X, y, {}, "loss was"),
        ({"tol": 1e-2}, X, y, {}, r"tol was '0\.0001', is '0\.01'"),
        ({"max_iter": 7}, X, y, {}, "max_iter was"),
        ({}, X + 1e-9, y, {}, "data was"),
        ({}, X, np.where(np.arange(len(y)) == 7, 1 - y, y), {}, "targets, weights and folds was"),
        ({}, X, y, {"sample_weight": 1.0 + np.arange(len(y)) % 2}, "targets, weights and folds was"),
        ({}, X, y, {"cv": 4}, "targets, weights and folds was"),
        ({}, X, y, {"Cs": CS[:3]}, "Cs was"),
        ({}, X, y, {"Cs": None}, "Cs was .*, is 'None'"),
        ({}, X, y, {"scoring": "accuracy"}, r"scoring was .make_scorer\(balanced_accuracy_score.*is .'accuracy'"),
        ({}, X, y, {"each": print}, "each was 'None', is 'given'"),
    ]
    for changed, X_, y_, arguments, words in others:
        arguments = {"Cs": CS, "cv": 3, "scoring": scoring, **arguments}
        with pytest.raises(FormatError, match=rf"run\.ckpt: .* written by another one: .*{words}.*Remove it"):
            c_path(LinearSVC(**{**options, **changed}), X_, y_, **arguments)
    with pytest.raises(FormatError, match="estimator was"):
        c_path(LinearSVR(checkpoint=path, loss="epsilon_insensitive"), X, y.astype(float), CS, cv=3)
    with pytest.raises(FormatError, match="not a checkpoint of the fit"):
        LinearSVC(**options).fit(X, y)  # a fit with one C
    c_path(LinearSVC(**options), X, y, CS, cv=3, scoring=scoring)
    assert not path.exists()


def test_a_checkpoint_that_needs_more_memory_than_there_is_now_is_refused(fits, streaming, monkeypatch, tmp_path):
    made, room = base.matrix_of_blocks, [4]

    def matrix_of_blocks(*arguments, **options):
        matrix = made(*arguments, **options)
        matrix.most_problems = room[0]
        return matrix

    monkeypatch.setattr(base, "matrix_of_blocks", matrix_of_blocks)
    blocks, path = blocks_of(tmp_path, *data()), tmp_path / "run.ckpt"
    options = {"solver": "newton", "loss": "hinge", "random_state": 0, "checkpoint": path}
    fits.count(2)
    with pytest.raises(Killed):
        c_path(LinearSVC(**options), blocks, Cs=CS, cv=3)
    fits.count()
    room[0] = 3
    with pytest.raises(MemoryError, match="room for 4 problems at the same time, now there is room for 3"):
        c_path(LinearSVC(**options), blocks, Cs=CS, cv=3)
