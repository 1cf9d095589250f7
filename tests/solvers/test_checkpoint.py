"""Checkpoints: a fit that is killed goes on to the same model; a file that is damaged or of another fit is refused."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from widemargin import SVC, ConvergenceWarning, LinearOneClassSVM, LinearSVC, RankSVM
from widemargin.data.matrix import Matrix
from widemargin.errors import FormatError
from widemargin.problems import classification
from widemargin.problems.formulations import DualQP
from widemargin.solvers import checkpoint
from widemargin.solvers.checkpoint import CheckpointFile, Checkpoints
from widemargin.solvers.contract import Settings, Status
from widemargin.solvers.newton.smoothed import newton_together
from widemargin.solvers.registry import LINEAR_SOLVERS, SPECS, check

WRITERS = ("newton", "ocas", "svmperf", "sbm")
KILLS = Path(__file__).with_name("killed_fits.py")


@pytest.fixture(autouse=True)
def checkpoints_after_every_iteration(monkeypatch):
    monkeypatch.setattr(checkpoint, "_LEAST_SECONDS_BETWEEN", 0.0)
    monkeypatch.setattr(checkpoint, "_TIMES_THE_WRITING", 0.0)


@pytest.fixture(scope="module")
def clouds():
    """So many rows that no solver is the one for small problems."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5000, 40))
    y = np.where(X[:, :5].sum(axis=1) + rng.standard_normal(5000) > 0.0, 1, -1)
    return X, y


def svc(solver, path, **options):
    return LinearSVC(
        **{"solver": solver, "loss": "hinge", "C": 0.01, "tol": 1e-4, "random_state": 0, "checkpoint": path, **options}
    )


class Killed(Exception):
    """What ends a fit in the middle."""


def killed_at(iteration, task=0):
    def callback(progress):
        if progress.iteration >= iteration and progress.task == task:
            raise Killed

    return callback


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_fits_killed_at_random_moments_end_with_the_model_of_fits_that_were_not(tmp_path):
    command = [sys.executable, str(KILLS), str(tmp_path), "1"]
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)
    trials = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, done.stderr
    assert len(trials) >= 10
    assert [one for one in trials if not one["same"] or one["left"] or one["status"] != "converged"] == []
    assert sum(one["killed"] for one in trials) >= len(trials) // 2
    assert sum(one["resumed"] for one in trials) >= 3
    assert not list(tmp_path.glob(".*"))  # no temporary file is left


@pytest.mark.parametrize("solver", WRITERS)
def test_a_fit_that_ends_anywhere_goes_on_with_one_history(solver, clouds, tmp_path):
    path = tmp_path / "run.ckpt"
    whole = svc(solver, None).fit(*clouds)
    with pytest.raises(Killed):
        svc(solver, path, callbacks=killed_at(max(2, whole.n_iter_ // 2))).fit(*clouds)
    assert path.exists()
    seen = []
    rest = svc(solver, path, callbacks=lambda progress: seen.append(progress.iteration)).fit(*clouds)
    assert min(seen) >= max(2, whole.n_iter_ // 2) - 1  # nothing is made twice but the last iteration
    assert rest.coef_.tobytes() == whole.coef_.tobytes()
    for name in ("iteration", "passes", "primal", "dual", "gap"):
        np.testing.assert_array_equal(rest.history_[name], whole.history_[name])
    assert (np.diff(rest.history_["seconds"]) >= 0.0).all()
    assert not path.exists()


@pytest.mark.parametrize("solver", WRITERS)
def test_a_limit_of_iterations_leaves_a_checkpoint_from_which_a_second_call_goes_on(solver, clouds, tmp_path):
    path = tmp_path / "run.ckpt"
    whole = svc(solver, None).fit(*clouds)
    with pytest.warns(ConvergenceWarning, match="max_iter reached"):
        first = svc(solver, path, max_iter=2).fit(*clouds)
    assert first.n_iter_ == 2
    rest = svc(solver, path, max_iter=1000).fit(*clouds)
    assert rest.coef_.tobytes() == whole.coef_.tobytes()
    np.testing.assert_array_equal(rest.history_["iteration"], whole.history_["iteration"])
    np.testing.assert_array_equal(rest.history_["gap"], whole.history_["gap"])
    assert not path.exists()


@pytest.mark.parametrize("solver", WRITERS)
def test_a_limit_of_seconds_is_one_of_each_call(solver, clouds, tmp_path):
    path, seen = tmp_path / "run.ckpt", []
    whole = svc(solver, None, tol=1e-6).fit(*clouds)
    with pytest.warns(ConvergenceWarning, match="max_seconds reached"):
        svc(solver, path, tol=1e-6, max_seconds=1e-9).fit(*clouds)
    state = dict(np.load(path))
    state["watch.state"][-1, 1] = 1e4  # as if that had taken hours
    np.savez(path.with_suffix(".npz"), **state)
    path.with_suffix(".npz").rename(path)
    rest = svc(solver, path, tol=1e-6, max_seconds=1e3, callbacks=lambda one: seen.append(one.seconds)).fit(*clouds)
    assert seen[0] > 1e4
    assert rest.coef_.tobytes() == whole.coef_.tobytes()
    np.testing.assert_array_equal(rest.history_["iteration"], whole.history_["iteration"])
    assert (np.diff(rest.history_["seconds"]) >= 0.0).all()


@pytest.mark.parametrize("solver", WRITERS)
def test_a_checkpoint_of_another_fit_is_refused_with_what_differs(solver, clouds, tmp_path):
    path, (X, y) = tmp_path / "run.ckpt", clouds
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        svc(solver, path, max_iter=2).fit(X, y)
    others = [
        ({"C": 0.02}, X, y, {}, r"C was '0\.01', is '0\.02'"),
        ({"loss": "squared_hinge"}, X, y, {}, "loss was"),
        ({"random_state": 1}, X, y, {}, "random_state was"),
        ({}, X[:-1], y[:-1], {}, "data was '5000 x 40, .*is '4999 x 40"),
        ({}, X + 1e-9, y, {}, "data was '5000 x 40, .*is '5000 x 40"),
        ({}, X, np.where(np.arange(5000) == 7, -y, y), {}, "targets and weights was"),
        ({}, X, y, {"sample_weight": 1.0 + np.arange(5000) % 2}, "targets and weights was"),
    ]
    for options, X_, y_, more, words in others:
        with pytest.raises(FormatError, match=rf"run\.ckpt: .* written by another one: .*{words}.*Remove it"):
            svc(solver, path, **options).fit(X_, y_, **more)
    svc(solver, path).fit(X, y)  # that of the fit itself is there, all the same


def test_the_checkpoint_of_a_ranking_with_other_queries_is_refused(tmp_path):
    rng = np.random.default_rng(0)
    X, y, qid = rng.standard_normal((400, 30)), rng.integers(0, 3, 400), np.arange(400) // 10
    path = tmp_path / "run.ckpt"
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        RankSVM(checkpoint=path, max_iter=2).fit(X, y, qid)
    with pytest.raises(FormatError, match="targets and weights was"):
        RankSVM(checkpoint=path).fit(X, y, qid // 2)
    again, whole = RankSVM(checkpoint=path).fit(X, y, qid), RankSVM().fit(X, y, qid)
    assert again.coef_.tobytes() == whole.coef_.tobytes()
    assert not path.exists()


def test_the_rows_of_a_file_that_were_chosen_are_part_of_the_fit(clouds, tmp_path):
    from tests.data.blocks.written import written

    blocks, path = written(tmp_path, *clouds, block_bytes=1 << 16), tmp_path / "run.ckpt"
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        svc("ocas", path, max_iter=2).fit(blocks[:4000])
    with pytest.raises(FormatError, match=r"data was '4000 x 40, rows 0 of block 0 to .* of block .*, is '4000 x 40"):
        svc("ocas", path).fit(blocks[1000:])


# --- The file ---------------------------------------------------------------------------------------------------------


class Part:
    STATE = ("vector", "count")

    def __init__(self):
        self.vector, self.count = np.arange(4.0), 3


class State:
    STATE = ("numbers", "matrix", "pair", "nothing", "flag", "part")

    def __init__(self):
        self.memory = np.zeros((2, 5))
        self.numbers, self.matrix, self.pair = self.memory[0], np.eye(2), (1.5, np.inf)
        self.nothing, self.flag, self.part = None, True, Part()

    def values(self):
        part = self.part
        return [self.numbers.tolist(), self.matrix.tolist(), self.pair, self.nothing, self.flag, part.vector.tolist(),
                part.count]  # fmt: skip


def saved(path):
    state, words = State(), {"C": "1.0"}
    state.numbers[:], state.matrix, state.pair = 7.0, np.full((2, 3), 2.0), (np.nan, -3.0)
    state.flag, state.part.count, state.part.vector = False, 9, np.arange(6.0)
    state.pair = (2.0, -3.0)
    Checkpoints(CheckpointFile(str(path), words)).save({"state": state}, now=True)
    return state, words


def restored(path, words):
    state = State()
    assert Checkpoints(CheckpointFile(str(path), words)).restore({"state": state})
    return state


def test_what_was_saved_comes_back_and_views_stay_views(tmp_path):
    state, words = saved(tmp_path / "a")
    found = restored(tmp_path / "a", words)
    assert found.values() == state.values()
    assert np.shares_memory(found.numbers, found.memory)
    assert type(found.part.count) is int
    assert not Checkpoints(CheckpointFile(str(tmp_path / "b"), words)).restore({"state": State()})
    assert not Checkpoints(None).restore({"state": State()})


def test_a_checkpoint_cut_off_anywhere_is_refused(tmp_path):
    path = tmp_path / "run.ckpt"
    _, words = saved(path)
    whole = path.read_bytes()
    for size in range(0, len(whole), 11):
        path.write_bytes(whole[:size])
        with pytest.raises(FormatError, match=r"run\.ckpt: this is not a checkpoint of the fit \(.*Remove it"):
            restored(path, words)


@given(data=st.data())
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_flipped_bit_is_refused_or_changes_nothing(data, tmp_path):
    path = tmp_path / "run.ckpt"
    state, words = saved(path)
    whole = bytearray(path.read_bytes())
    whole[data.draw(st.integers(0, len(whole) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(whole)
    try:
        found = restored(path, words)
    except FormatError:
        return
    assert found.values() == state.values()


def test_checkpoints_are_not_written_more_often_than_is_worth_it(monkeypatch, tmp_path):
    monkeypatch.setattr(checkpoint, "_LEAST_SECONDS_BETWEEN", 1000.0)
    run = Checkpoints(CheckpointFile(str(tmp_path / "run.ckpt"), {}))
    run.save({"state": State()})
    assert not list(tmp_path.iterdir())
    run.save({"state": State()}, now=True)
    assert [one.name for one in tmp_path.iterdir()] == ["run.ckpt"]


# --- Several problems -------------------------------------------------------------------------------------------------


def test_problems_of_which_only_some_have_a_checkpoint_start_anew(clouds, tmp_path):
    X, y = clouds
    matrix = Matrix(X)
    problems = [classification.hinge(matrix, sign * y, np.full(5000, cost)) for sign, cost in ((1, 0.1), (-1, 0.01))]
    files = [CheckpointFile(str(tmp_path / "run.ckpt"), {}).of_task(task, 2) for task in range(2)]
    plain = [Settings(tol=1e-6, task=task, n_tasks=2) for task in range(2)]
    kept = [Settings(tol=1e-6, task=task, n_tasks=2, checkpoint=files[task], max_iter=3) for task in range(2)]
    whole = newton_together(problems, plain, [None, None])
    assert {one.status for one in newton_together(problems, kept, [None, None])} == {Status.MAX_ITER}
    Path(files[1].path).unlink()
    kept = [Settings(tol=1e-6, task=task, n_tasks=2, checkpoint=files[task]) for task in range(2)]
    for found, expected in zip(newton_together(problems, kept, [None, None]), whole, strict=True):
        assert found.w.tobytes() == expected.w.tobytes()
        np.testing.assert_array_equal(found.history["iteration"], expected.history["iteration"])


# --- Solvers without checkpoints --------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["dcd", "avsf", "climb"])
def test_a_solver_without_checkpoints_is_refused_with_those_that_have_them(solver, clouds, tmp_path):
    names = "'sbm', 'newton', 'svmperf' or 'ocas', or checkpoint=None"
    with pytest.raises(ValueError, match=f"'{solver}' writes no checkpoints for this problem. Use solver={names}"):
        svc(solver, tmp_path / "run.ckpt").fit(*clouds)


def test_every_solver_that_declares_checkpoints_writes_them(clouds, tmp_path):
    problem = classification.hinge(Matrix(clouds[0]), clouds[1].astype(float), np.full(5000, 0.01))
    for spec in (one for one in SPECS if DualQP in one.takes and not one.chooses):
        file = CheckpointFile(str(tmp_path / spec.name), {})
        if not spec.writes_checkpoints(problem):
            assert spec.name in ("dcd", "avsf", "climb")
            continue
        LINEAR_SOLVERS[spec.name](problem, Settings(tol=1e-6, max_iter=2, checkpoint=file))
        assert Path(file.path).exists(), spec.name


def test_auto_chooses_a_solver_with_checkpoints_unless_the_problem_is_small(tmp_path):
    rng = np.random.default_rng(0)
    file, shapes = CheckpointFile(str(tmp_path / "run.ckpt"), {}), {(5000, 40): "newton", (400, 6000): "sbm"}
    for (n_rows, n_columns), solver in shapes.items():
        X = rng.standard_normal((n_rows, n_columns))
        sign = np.where(X[:, 0] > 0.0, 1.0, -1.0)
        problem = classification.hinge(Matrix(X), sign, np.full(n_rows, 1e-4))
        solution = LINEAR_SOLVERS["auto"](problem, Settings(tol=1e-2, max_iter=2, checkpoint=file))
        assert (solution.solver, solution.why) == (solver, "it writes checkpoints")
        Path(file.path).unlink(missing_ok=True)
    small = classification.hinge(Matrix(X[:50, :4]), sign[:50], np.ones(50))
    assert LINEAR_SOLVERS["auto"](small, Settings(checkpoint=file)).status is Status.CONVERGED
    free = classification.hinge(Matrix(X), sign, np.full(n_rows, 1e-4), free_intercept=True)
    assert LINEAR_SOLVERS["auto"](free, Settings(tol=0.5, max_iter=2, checkpoint=file)).solver == "ocas"


def test_where_no_solver_writes_checkpoints_they_are_refused(clouds, tmp_path):
    path, (X, y) = tmp_path / "run.ckpt", clouds
    with pytest.raises(ValueError, match=r"'auto' writes no checkpoints for this .* No solver .* checkpoint=None"):
        svc("auto", path, stopping="kkt").fit(X, y)
    with pytest.raises(ValueError, match=r"'newton' writes no checkpoints .* Use solver='sbm', 'svmperf' or 'ocas'"):
        svc("newton", path).fit(X[:1000].repeat(2, axis=1).repeat(20, axis=1), y[:1000])  # wide: an active set
    with pytest.raises(ValueError, match="crammer_singer' by coordinate descent keeps no checkpoints"):
        svc("dcd", path, multi_class="crammer_singer").fit(X, np.arange(5000) % 3)
    assert not path.exists()


def test_the_check_is_that_of_the_specs(clouds, tmp_path):
    problem = classification.hinge(Matrix(clouds[0]), clouds[1].astype(float), np.ones(5000))
    with_file = Settings(checkpoint=CheckpointFile(str(tmp_path / "run.ckpt"), {}))
    for spec in (one for one in SPECS if DualQP in one.takes):
        if spec.chooses or spec.writes_checkpoints(problem):
            check(spec, problem, with_file)
        else:
            with pytest.raises(ValueError, match="writes no checkpoints"):
                check(spec, problem, with_file)


def test_a_file_of_another_kind_is_refused_without_advice_to_load_pickles(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("hello", encoding="ascii")
    model = LinearSVC(loss="hinge", solver="ocas", checkpoint=path)
    with pytest.raises(FormatError, match=r"\(it is damaged or of another kind\)\. Remove it to start anew"):
        model.fit([[0.0], [1.0], [2.0]], [0, 1, 1])
    assert path.read_text(encoding="ascii") == "hello"


@pytest.mark.parametrize("model", [LinearSVC(), SVC(), SVC(basis=5), LinearOneClassSVM()], ids=repr)
def test_a_file_of_another_kind_is_not_removed_by_a_fit_that_never_reads_it(model, tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("of the user")
    X = np.random.default_rng(0).standard_normal((40, 3))
    with pytest.raises(FormatError, match="not a checkpoint of the fit"):
        model.set_params(checkpoint=path).fit(X, X[:, 0] > 0)
    assert path.read_text() == "of the user"


@pytest.mark.parametrize("model", [LinearSVC(), LinearSVC(solver="ocas"), SVC(), RankSVM()], ids=repr)
@pytest.mark.parametrize(
    ("name", "error", "words"),
    [("", IsADirectoryError, "is a file, and this is a"), ("none/run", FileNotFoundError, "no such directory for a")],
)
def test_a_place_where_no_checkpoint_can_be_written_is_refused_before_the_fit(model, name, error, words, tmp_path):
    X = np.random.default_rng(0).standard_normal((40, 3))
    steps = []
    model = clone(model).set_params(checkpoint=tmp_path / name, callbacks=steps.append)
    with pytest.raises(error, match=words):
        model.fit(X, X[:, 0] > 0)
    assert not steps
