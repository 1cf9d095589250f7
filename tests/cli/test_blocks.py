"""`widemargin` on row-block files: recognised by their content, with options of their own, refused in one sentence."""

import json
import subprocess
import sys

import numpy as np
import pytest

from widemargin import load_model, open_blocks, read_svmlight, write_blocks

PATIENCE = 60.0  # seconds, to tell a hang from a busy machine


@pytest.fixture
def blocks(two, tmp_path):
    """The rows of `two` as a row-block file whose name does not tell, beside the text."""
    write_blocks(tmp_path / "blocks", two, keep_order=True, block_bytes=400)
    assert open_blocks(tmp_path / "blocks").n_blocks > 3
    return tmp_path / "blocks"


def test_from_blocks_to_predictions(call, two, blocks, tmp_path):
    status, out, err = call("train", "--max-memory", "30G", "--json", "blocks", "from.blocks")
    assert (status, err) == (0, "")
    found = json.loads(out)
    assert call("train", "-q", "two", "from.text") == (0, "", "")
    assert (found["rows"], found["features"], found["classes"]) == (60, 4, [-1, 1])
    models = [load_model(tmp_path / name) for name in ("from.blocks", "from.text")]
    assert np.allclose(models[0].coef_, models[1].coef_, atol=1e-3)
    assert models[0].max_memory == "30G"
    lines = [call("predict", data, "from.text", f"{data}.out") for data in ("blocks", "two")]
    assert lines[0] == lines[1]
    assert (tmp_path / "blocks.out").read_text() == (tmp_path / "two.out").read_text()
    assert call("predict", "-q", "--scores", "blocks", "from.text", "-")[1].startswith("label 1\n")


def test_several_files_of_rows(call, two, tmp_path):
    X, y, _ = read_svmlight(two)
    for k, part in enumerate((slice(0, 25), slice(25, 60))):
        write_blocks(tmp_path / f"part-{k}.arrow", [(X[part], y[part])], keep_order=True)
    assert call("train", "-q", "part-0.arrow", "part-1.arrow", "listed") == (0, "", "")
    assert call("train", "-q", "part-*.arrow", "pattern") == (0, "", "")
    assert np.array_equal(load_model(tmp_path / "listed").coef_, load_model(tmp_path / "pattern").coef_)
    before = (tmp_path / "part-1.arrow").read_bytes()
    status, _, err = call("train", "-q", "part-0.arrow", "part-1.arrow")
    assert status == 2
    assert "part-1.arrow is a row-block file, which the model would replace; name another file" in err
    assert (tmp_path / "part-1.arrow").read_bytes() == before
    status, _, err = call("train", "-q", "part-*.arrow")
    assert status == 2
    assert "MODEL must be named if DATA is several files" in err


def test_scaling_applies_to_text_as_well(call, two, tmp_path):
    assert call("train", "-q", "--scaling", "maxabs", two, "model") == (0, "", "")
    X, _, _ = read_svmlight(two)
    assert np.allclose(load_model(tmp_path / "model").scaling_.scale, np.abs(X.toarray()).max(axis=0))


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (
            ["train", "-t", "2", "blocks"],
            1,
            "blocks is a row-block file, which a kernel machine without a basis cannot read; write",
        ),
        (["train", "-v", "3", "blocks"], 1, "which cross-validation cannot read"),
        (["grid", "blocks"], 1, "which a grid search cannot read"),
        (["easy", "blocks"], 1, "which easy cannot read"),
        (["train", "--max-memory", "3X", "blocks"], 2, "must be an amount of memory such as 3G or 500M, got '3X'"),
        (["train", "--max-memory", "3G", "two"], 2, "--max-memory is for row-block files, two is not one"),
        (["train", "--max-memory", "3G", "absent.arrow"], 1, "absent.arrow: no such file; check the path"),
        (["train", "--max-memory", "1M", "blocks"], 1, "blocks: The fit needs about"),
        (["train", "--float32", "blocks"], 2, "--float32 is for text, blocks is a row-block file; leave it out"),
        (["train", "--n-features", "9", "blocks"], 2, "--n-features is for text"),
        (["train", "--zero-based", "yes", "blocks"], 2, "--zero-based is for text"),
        (["train", "-t", "2", "--scaling", "standard", "two"], 2, "--scaling is for linear machines"),
        (["train", "-v", "2", "--checkpoint", "run", "two"], 2, "--checkpoint is for a single fit"),
        (["train", "--checkpoint", "nowhere/run", "blocks"], 1, "nowhere/run: there is no directory"),
        (["train", "--scaling", "minmax", "two"], 2, "argument --scaling: invalid choice: 'minmax'"),
        (["subset", "--text", "two", "9"], 2, "--text is for row-block files, two is text; leave it out"),
        (["check", "--zero-based", "no", "blocks"], 2, "--zero-based is for text"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_what_does_not_apply_is_one_line_and_nothing_is_written(words, status, message, call, two, blocks, tmp_path):
    before = sorted(path.name for path in tmp_path.iterdir())
    found, out, err = call(*words)
    assert (found, out) == (status, "")
    assert message in err
    assert err.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_check_scale_and_subset(call, two, blocks, tmp_path):
    status, out, _ = call("check", "blocks")
    assert status == 0
    assert out.replace("blocks", "two") == call("check", "two")[1]
    assert call("scale", "-q", "-s", "ranges", "-o", "blocks.scale", "blocks") == (0, "", "")
    assert call("scale", "-q", "-r", "ranges", "-o", "two.scale", "two") == (0, "", "")
    scaled = open_blocks(tmp_path / "blocks.scale").to_memory()
    assert np.array_equal(scaled, read_svmlight(tmp_path / "two.scale")[0].toarray())
    assert call("subset", "-q", "--text", "blocks", "20", "part.text") == (0, "", "")
    assert call("subset", "-q", "two", "20", "part.two") == (0, "", "")
    assert (tmp_path / "part.text").read_text() == (tmp_path / "part.two").read_text()
    assert call("subset", "-q", "blocks", "0.5", "half", "rest") == (0, "", "")
    assert len(open_blocks(tmp_path / "half")) == len(open_blocks(tmp_path / "rest")) == 30


def test_a_damaged_file_is_named_with_its_block(call, blocks):
    content = bytearray(blocks.read_bytes())
    content[len(content) // 2] ^= 0xFF
    blocks.write_bytes(content)
    status, out, err = call("train", "-q", "blocks", "model")
    assert (status, out) == (1, "")
    assert "blocks: the file is damaged: block" in err
    status, out, _ = call("check", "-q", "blocks")
    assert status == 1
    assert out.startswith("blocks: the file is damaged: block")


def test_progress_of_passes_over_the_disk(tmp_path, rng):
    """Reading is slowed down to a second a pass or more; lines tell the pass, its bytes, speed and time left."""
    X = rng.standard_normal((2000, 20))
    write_blocks(tmp_path / "rows", [(X, np.where(X[:, 0] > 0, 1, 0))], block_bytes=10_000)
    script = (
        "import sys, time\n"
        "from widemargin._runtime import progress\n"
        "from widemargin.cli.main import main\n"
        "from widemargin.data.blocks import arrow_file, placement\n"
        "progress._SECONDS_BETWEEN_LINES = 0.3\n"
        "read, streamed = arrow_file.ArrowFile.read, placement.StreamedMatrix\n"
        "def slowly(file, number):\n"
        "    time.sleep(0.1)\n"
        "    return read(file, number)\n"
        "arrow_file.ArrowFile.read = slowly\n"
        "placement.StreamedMatrix = lambda blocks, constant, memory, how: streamed(blocks, constant, 0.0, how)\n"
        "words = ['--progress', 'yes', '--solver', 'ocas', '--scaling', 'maxabs', '--max-iter', '2']\n"
        "sys.exit(main(['train', *words, 'rows', 'model']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path, timeout=5 * PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "pass 1, " in done.stderr
    assert " MB/s, 0:0" in done.stderr
    assert " left\n" in done.stderr


def test_ctrl_c_keeps_the_model(tmp_path, rng):
    X = rng.standard_normal((3000, 60))
    write_blocks(tmp_path / "endless", [(X, np.where(rng.random(3000) < 0.5, 1, -1))], block_bytes=30_000)
    script = (  # Ctrl-C comes a while after the second iteration, when everything is compiled
        "import os, signal, sys, threading, time\n"
        "from widemargin.cli.commands import train\n"
        "from widemargin.cli.main import main\n"
        "make, pressed = train.make_model, []\n"
        "def press():\n"
        "    pressed.append(time.monotonic())\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "def watch(progress):\n"
        "    if progress.iteration == 2:\n"
        "        threading.Timer(0.2, press).start()\n"
        "train.make_model = lambda *arguments: make(*arguments).set_params(callbacks=watch)\n"
        "words = ['--scaling', 'standard', '--solver', 'ocas', '-c', '1e9', '-e', '1e-12', '--max-iter', 'none']\n"
        "status = main(['train', '-q', *words, 'endless', 'model'])\n"
        "print(time.monotonic() - pressed[0])\n"
        "sys.exit(status)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path, timeout=5 * PATIENCE, check=False
    )
    assert done.returncode == 1, done.stderr
    assert "interrupted: model holds the model so far" in done.stderr
    model = load_model(tmp_path / "model")
    assert model.status_ == "interrupted"
    assert np.isfinite(model.predict(X)).all()
    assert float(done.stdout) < 0.5 + 0.5  # the model is saved, too


@pytest.mark.parametrize("solver", ["newton", "ocas"])
def test_ctrl_c_before_there_is_a_model_says_so(solver, tmp_path, rng):
    X = rng.standard_normal((3000, 60))
    write_blocks(tmp_path / "rows", [(X, np.where(rng.random(3000) < 0.5, 1, -1))], block_bytes=30_000)
    script = (  # Ctrl-C comes in the first pass of the solver
        "import signal, sys, time\n"
        "from widemargin.cli.main import main\n"
        "from widemargin.data.blocks.streamed import StreamedMatrix\n"
        "one_pass, pressed = StreamedMatrix._pass, []\n"
        "def interrupted_pass(*arguments, **options):\n"
        "    if not pressed:\n"
        "        pressed.append(time.monotonic())\n"
        "        signal.raise_signal(signal.SIGINT)\n"
        "    return one_pass(*arguments, **options)\n"
        "StreamedMatrix._pass = interrupted_pass\n"
        f"words = ['--scaling', 'standard', '--solver', '{solver}', '--loss', 'hinge']\n"
        "status = main(['train', '-q', *words, 'rows', 'model'])\n"
        "print(time.monotonic() - pressed[0])\n"
        "sys.exit(status)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path, timeout=5 * PATIENCE, check=False
    )
    assert done.returncode == 130, done.stderr
    assert done.stderr == "widemargin: error: interrupted; nothing was written\n"
    assert float(done.stdout) < 0.5
    assert not (tmp_path / "model").exists()
