"""`widemargin train --dask`: at an address, on processes of this machine, refused in one line; an ordinary model."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import psutil
import pytest

from widemargin import SVC, SVR, LinearSVC, OneClassSVM, RankSVM, load_model, open_blocks, write_blocks
from widemargin.errors import ClusterError
from widemargin.workflows.cluster import ClusterFit

PATIENCE = 60.0  # seconds, to tell a hang from a busy machine
SECONDS_TO_LIVE = "180"  # of a scheduler or worker without anybody, should a test end without ending it


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@pytest.fixture(scope="module")
def address():
    """The address of a scheduler with two workers, in processes of their own that end with the module."""
    port = free_port()
    address = f"tcp://127.0.0.1:{port}"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    dask = [sys.executable, "-m", "dask"]
    scheduler = [*dask, "scheduler", "--host", "127.0.0.1", "--port", str(port), "--dashboard-address", "127.0.0.1:0",
                 "--idle-timeout", SECONDS_TO_LIVE]  # fmt: skip
    worker = [*dask, "worker", address, "--nthreads", "1", "--no-dashboard", "--nworkers", "2", "--death-timeout",
              SECONDS_TO_LIVE]  # fmt: skip
    processes = [subprocess.Popen(command, **quiet) for command in (scheduler, worker)]
    try:
        wait_for(port)
        yield address
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait(timeout=PATIENCE)


def wait_for(port):
    """Return when somebody listens at a port."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        with socket.socket() as connection:
            if connection.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise AssertionError("the scheduler does not start")


@pytest.fixture
def parts(tmp_path, rng):
    """Two files of rows of two classes, part-0.arrow and part-1.arrow, and one of queries, queries.arrow."""
    X = rng.standard_normal((800, 5))
    y = np.where(X[:, 0] - X[:, 1] + rng.standard_normal(800) > 0, 3, -1)
    for k, rows in enumerate((slice(0, 300), slice(300, 800))):
        write_blocks(tmp_path / f"part-{k}.arrow", [(X[rows], y[rows])], keep_order=True, block_bytes=4000)
    relevance = np.digitize(X[:, 0] + rng.standard_normal(800), [-1.0, 1.0])
    write_blocks(tmp_path / "queries.arrow", [(X, relevance, np.repeat(np.arange(80), 10))], keep_order=True)
    write_blocks(tmp_path / "slope.arrow", [(X, X[:, 0] + 0.1)], keep_order=True)
    return X, y


def test_train_at_an_address_from_a_pattern(address, call, parts, tmp_path):
    status, out, err = call("train", "--dask", address, "--json", "-e", "1e-8", "part-*.arrow", "model")
    assert (status, err) == (0, "")
    facts = json.loads(out)
    assert (facts["rows"], facts["features"], facts["classes"], facts["status"]) == (800, 5, [-1, 3], "converged")
    assert 1 <= facts["workers"] <= 2
    assert facts["gap"] <= 1e-8
    model, ordinary = load_model(tmp_path / "model"), LinearSVC(tol=1e-8).fit(*parts)
    assert type(model) is LinearSVC
    assert model.classes_.dtype == np.int64
    assert not hasattr(model, "client")
    assert np.isclose(model.objective_, ordinary.objective_, rtol=1e-7)
    assert call("predict", "-q", "part-0.arrow", "model", "out") == (0, "", "")


@pytest.mark.parametrize("task", ["regression", "rank", "ordinal", "rocarea", "measure"])
def test_every_linear_task_is_trained_at_an_address(task, address, call, parts, tmp_path):
    data = {"regression": ["slope.arrow"], "rank": ["queries.arrow"]}.get(task, ["part-0.arrow", "part-1.arrow"])
    assert call("train", "-q", "--task", task, "--dask", address, *data, "cluster") == (0, "", "")
    assert call("train", "-q", "--task", task, *data, "here") == (0, "", "")
    on_cluster, here = (load_model(tmp_path / name) for name in ("cluster", "here"))
    assert type(on_cluster) is type(here)
    assert max(on_cluster.gap_, here.gap_) <= here.tol
    assert np.isclose(on_cluster.objective_, here.objective_, rtol=2 * here.tol)


def test_the_summary_counts_queries_and_workers(address, call, parts, tmp_path):
    status, out, _ = call("train", "--task", "rank", "--dask", address, "queries.arrow", "model")
    assert status == 0
    assert "queries    80\n" in out
    assert "workers    " in out
    assert isinstance(load_model(tmp_path / "model"), RankSVM)


@pytest.mark.parametrize(("words", "kind"), [(["-s", "0"], SVC), (["-s", "3"], SVR), (["-s", "2"], OneClassSVM)])
def test_a_machine_on_a_basis_is_trained_at_an_address(words, kind, address, call, parts, tmp_path):
    status, out, err = call("train", *words, "--dask", address, "--basis", "20", "part-*.arrow", "model")
    assert (status, err) == (0, "")
    assert re.search(r"^workers +\d+$", out, re.MULTILINE)
    assert "basis points = 20\n" in out
    model = load_model(tmp_path / "model")
    assert type(model) is kind
    assert model.basis_.shape == (20, 5)
    assert model.gap_ <= 1e-3
    assert model.predict(parts[0]).shape == (800,)


def test_processes_of_this_machine_give_the_same_bits_whatever_their_number(run, parts, tmp_path):
    for n_processes in ("1", "2"):
        done = run("train", "-q", "--dask", "local", "-j", n_processes, "part-*.arrow", f"by-{n_processes}")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    one, two = (load_model(tmp_path / f"by-{n}") for n in ("1", "2"))
    assert np.array_equal(one.coef_, two.coef_)


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["--dask", "local", "-t", "2", "part-0.arrow"], 2, "with --basis for some kernel machines; SVC is neither"),
        (["--dask", "local", "-s", "1", "part-0.arrow"], 2, "kernel machines; NuSVC is neither: leave it out"),
        (["--dask", "local", "-v", "3", "part-0.arrow"], 2, "--dask is for training, and -v measures in this process"),
        (["--dask", "somewhere", "part-0.arrow"], 2, "must be local, or the address of a scheduler such as tcp://HOST"),
        (["--dask", "local", "-", "model"], 2, "--dask is for row-block files, which the workers read; name them in"),
        (["--dask", "local", "--float32", "part-0.arrow"], 2, "--float32 is for text"),
        (["--dask", "local", "part-*.arrow"], 2, "MODEL must be named if DATA is several files"),
        (["--dask", "local", "two", "model"], 1, "is not a row-block file, and --dask is for such; convert it first"),
        (["--dask", "local", "absent-*.arrow", "model"], 1, "absent-*.arrow: no such file; check the path"),
        (["--dask", "local", "absent.arrow", "model"], 1, "absent.arrow: no such file; check the path"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_what_does_not_apply_is_one_line_and_nothing_is_written(words, status, message, call, parts, two, tmp_path):
    before = sorted(path.name for path in tmp_path.iterdir())
    found, out, err = call("train", *words)
    assert (found, out) == (status, "")
    assert message in err
    assert err.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["slope.arrow"], "labels are not whole numbers, but classes are; for regression add --task regression"),
        (["-w7", "2", "part-0.arrow"], "no row has the label 7 that -w gives a weight; leave it out"),
        (["--solver", "dcd", "part-0.arrow"], "solver='dcd' needs all rows in memory"),
        (["elsewhere.arrow"], "elsewhere.arrow: no such file; check the path"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_what_workers_find_is_one_line_and_no_model_is_written(words, message, address, call, parts, tmp_path):
    status, out, err = call("train", "--dask", address, *words, "model")
    assert (status, out) == (1, "")
    assert message in err
    assert err.count("\n") == 1
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("is_silent", [False, True], ids=["refused", "silent"])
def test_a_scheduler_that_does_not_answer_is_one_line_within_ten_seconds(is_silent, call, parts, tmp_path):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        if is_silent:
            listener.listen()
        address = f"tcp://127.0.0.1:{listener.getsockname()[1]}"
        begun = time.monotonic()
        status, out, err = call("train", "--dask", address, "part-*.arrow", "model")
    assert time.monotonic() - begun < 10.0
    assert (status, out) == (1, "")
    assert f"{address}: no Dask scheduler answers there" in err
    assert err.count("\n") == 1
    assert not (tmp_path / "model").exists()


def test_without_dask_the_message_names_the_extra(call, parts, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("widemargin.distributed")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "distributed", None)
    status, _, err = call("train", "--dask", "local", "part-*.arrow", "model")
    assert status == 1
    assert "--dask needs Dask" in err
    assert "pip install 'widemargin[dask]'" in err


def test_ctrl_c_at_a_terminal_keeps_the_model_and_ends_all_processes(tmp_path, rng):
    """The signal goes to all processes of the group, as from a terminal."""
    X = rng.standard_normal((3000, 60))
    write_blocks(tmp_path / "endless.arrow", [(X, np.where(rng.random(3000) < 0.5, 1, -1))])
    words = ["train", "--dask", "local", "-j", "2", "-c", "1e9", "-e", "1e-14", "--max-iter", "none", "--loss", "hinge",
             "--solver", "svmperf", "--progress", "yes", "endless.arrow"]  # fmt: skip
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen([sys.executable, "-m", "widemargin", *words], cwd=tmp_path, stderr=subprocess.PIPE,
                          env=environment, text=True, start_new_session=True) as process:  # fmt: skip
        while "gap" not in (line := process.stderr.readline()):
            assert line, "the process ended without progress"
        os.killpg(process.pid, signal.SIGINT)
        err = process.stderr.read()
        assert process.wait(timeout=PATIENCE) == 1
    assert "widemargin: warning: interrupted: endless.arrow.model holds the model so far" in err
    assert "Traceback" not in err
    assert load_model(tmp_path / "endless.arrow.model").status_ == "interrupted"
    end = time.monotonic() + PATIENCE
    while alive_in(process.pid):
        assert time.monotonic() < end, "processes of the cluster are still there"
        time.sleep(0.1)


def alive_in(group):
    """Return the processes of a group that have not ended; those that nobody has waited for have."""
    alive = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, ProcessLookupError):
            if os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE:
                alive.append(process)
    return alive


def test_a_file_that_only_its_name_makes_a_pattern_is_read(address, call, parts, tmp_path):
    (tmp_path / "part-0.arrow").rename(tmp_path / "part[0].arrow")
    assert call("train", "-q", "--dask", address, "part[0].arrow", "model") == (0, "", "")
    assert load_model(tmp_path / "model").n_features_in_ == open_blocks(tmp_path / "part[0].arrow").shape[1]


def test_if_the_cluster_fails_the_best_model_so_far_is_written(call, parts, tmp_path, monkeypatch):
    so_far = LinearSVC().fit(*parts)

    def failing(*_):
        return ClusterFit(
            so_far,
            {"seconds": 1.0},
            ClusterError("No worker for 20 seconds. The model is the best one so far: gap 1.0e-02."),
        )

    monkeypatch.setattr("widemargin.workflows.train.fit_on_cluster", failing)
    status, out, err = call("train", "--dask", "local", "part-*.arrow", "model")
    assert (status, out) == (1, "")
    assert err.endswith("The model is the best one so far: gap 1.0e-02. model holds it.\n")
    assert err.count("\n") == 1
    assert np.array_equal(load_model(tmp_path / "model").coef_, so_far.coef_)
