"""Fits that are stopped: by Ctrl-C, by time, by callbacks, by kill -9 of the process that fits."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from tests.distributed import driver
from tests.distributed.clusters import assert_nothing_left, blocks, classes_of, same_bits

from widemargin import ConvergenceWarning, FormatError
from widemargin.dask import LinearSVC

IS_NIGHTLY = os.environ.get("WIDEMARGIN_NIGHTLY", "") not in ("", "0")
SECONDS_UNTIL_CTRL_C_HAS_ENDED_A_FIT = 8.0  # the end of the process included, on a busy machine


def started(client, kind, folder):
    """Return the process of a fit."""
    command = [sys.executable, Path(driver.__file__), client.scheduler.address, kind, folder]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def read_until(process, line):
    """Read what a fit tells until a line comes."""
    for one in process.stdout:
        if one.strip() == line:
            return
    process.kill()
    _, errors = process.communicate()
    pytest.fail(f"the fit ended before {line!r}: {errors}")


@pytest.mark.parametrize(
    ("kind", "line"), [("stuck", "stuck")] + [("endless", "3"), ("endless newton", "3")] * IS_NIGHTLY
)
def test_ctrl_c_cancels_the_tasks_and_keeps_the_model(kind, line, client, tmp_path):
    process = started(client, kind, tmp_path)
    read_until(process, line)
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    seconds = time.monotonic() - begun
    assert process.returncode == 0, errors
    status, gap = output.splitlines()[-1].split(", gap ")
    assert status == "interrupted"
    assert 0.0 < float(gap) < 1.0
    assert seconds < SECONDS_UNTIL_CTRL_C_HAS_ENDED_A_FIT
    assert_nothing_left(client)


def test_max_seconds_and_callbacks_stop_a_fit_with_the_model_so_far(client, rng):
    X, y = blocks(*classes_of(rng, 300, 4))
    options = {"solver": "ocas", "loss": "hinge", "C": 100.0, "tol": 1e-15, "max_iter": None, "client": client}
    with pytest.warns(ConvergenceWarning, match="max_iter reached"):
        LinearSVC(**{**options, "max_iter": 5}).fit(X, y)  # compiles
    begun = time.monotonic()
    with pytest.warns(ConvergenceWarning, match="max_seconds reached"):
        model = LinearSVC(max_seconds=0.7, **options).fit(X, y)
    assert time.monotonic() - begun < 5.0
    assert 0.0 < model.gap_ < 1.0
    seen = []
    with pytest.warns(ConvergenceWarning, match="stopped by a callback"):
        model = LinearSVC(callbacks=lambda one: seen.append(one) or one.iteration >= 4, **options).fit(X, y)
    assert [one.iteration for one in seen][-1] == 4
    assert model.gap_ == pytest.approx(seen[-1].gap, rel=1e-6)
    assert model.status_ == "stopped by a callback"


@pytest.mark.parametrize(
    ("kind", "line"), [("newton", "5"), ("ranking", "3")] + [("free", "4"), ("ocas", "6")] * IS_NIGHTLY
)
def test_a_fit_whose_process_was_killed_goes_on_to_the_same_bits(kind, line, client, tmp_path):
    process = started(client, kind, tmp_path)
    read_until(process, line)
    process.kill()
    process.communicate()
    iterations = []
    model = driver.fitted(client, kind, tmp_path / "state", lambda one: iterations.append(one.iteration))
    assert iterations[0] >= int(line) - 1, "the fit began anew"
    assert same_bits(model, driver.fitted(client, kind))
    assert not (tmp_path / "state").exists()


def test_checkpoints_of_other_data_or_parameters_are_refused(client, tmp_path):
    path = tmp_path / "state"

    class Stopped(Exception):
        pass

    def stop(progress):
        if progress.iteration >= 4:
            raise Stopped

    with pytest.raises(Stopped):
        driver.fitted(client, "newton", path, stop)
    assert path.exists()
    with pytest.raises(FormatError, match="checkpoint"):
        driver.fitted(client, "newton", path, C=2.0)
    X, y = driver.data_of("newton")
    options = driver.KINDS["newton"][1]
    with pytest.raises(FormatError, match="checkpoint"):
        LinearSVC(client=client, checkpoint=path, **options).fit(X, -y)
    with pytest.raises(FormatError, match="checkpoint"):
        LinearSVC(client=client, checkpoint=path, **options).fit(X.rechunk((64, 4)), y)
    assert np.isfinite(driver.fitted(client, "newton", path).gap_)
