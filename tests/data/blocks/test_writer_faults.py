"""Memory stays bounded, and writers that are killed, interrupted or run out of disk leave the target as it was."""

import errno
import os
import resource
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
from tests.data.blocks.plain_reader import read_back

from widemargin import write_blocks
from widemargin._runtime.atomic_file import SUFFIX
from widemargin.data.blocks import sink, spool

BLOCKS = """
import sys, time
import numpy as np
from widemargin import write_blocks

def blocks(n, seconds=0.0):
    for k in range(n):
        X = np.random.default_rng(k).random((5000, 100))
        yield X, np.ones(5000)
        time.sleep(seconds)
"""


def script(text):
    return [sys.executable, "-c", BLOCKS + textwrap.dedent(text)]


def test_memory_is_bounded(tmp_path):
    """200 MB of rows; the memory beside them, of libraries and compiled code, is that of a run with few rows."""
    run = """
        import resource
        write_blocks(sys.argv[1], blocks(2), max_memory=10**7)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        write_blocks(sys.argv[1], blocks(50), max_memory=4 * 10**7, block_bytes=10**6)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    """
    done = subprocess.run([*script(run), tmp_path / "rows.arrow"], capture_output=True, text=True, check=True)
    assert int(done.stdout) * 1024 < 8e7
    assert read_back(tmp_path / "rows.arrow").summary.n_rows == 250_000


@pytest.mark.parametrize("moment", [0.3, 1.0])
def test_a_killed_writer_leaves_the_target_untouched_and_the_next_one_cleans_up(tmp_path, moment):
    target = tmp_path / "rows.arrow"
    target.write_bytes(b"old")
    run = """
        print("begun", flush=True)
        def slow():
            yield from blocks(20)
            yield from blocks(1, 60) if float(sys.argv[2]) < 0.5 else ()
        from widemargin.data.blocks import block_file
        encode = block_file.encode
        def slowly(*arguments):
            print("writing", flush=True)
            time.sleep(0.5)
            return encode(*arguments)
        block_file.encode = slowly
        write_blocks(sys.argv[1], slow(), max_memory=10**7, block_bytes=10**6)
    """
    writer = subprocess.Popen([*script(run), target, str(moment)], stdout=subprocess.PIPE, text=True)
    assert writer.stdout.readline() == "begun\n"
    if moment > 0.5:
        assert writer.stdout.readline() == "writing\n"
    time.sleep(moment)
    writer.kill()
    writer.wait(timeout=60)
    writer.stdout.close()
    assert target.read_bytes() == b"old"
    left = [name for name in os.listdir(tmp_path) if name != "rows.arrow"]
    assert all(name.endswith(SUFFIX) for name in left)
    assert len(left) == (1 if moment > 0.5 else 0)
    write_blocks(target, [(np.ones((3, 2)), np.ones(3))])
    assert os.listdir(tmp_path) == ["rows.arrow"]
    assert read_back(target).summary.n_rows == 3


def test_an_interrupted_writer_leaves_nothing(tmp_path):
    run = """
        print("begun", flush=True)
        try:
            write_blocks(sys.argv[1], blocks(1000, 0.1), max_memory=10**6)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """
    writer = subprocess.Popen([*script(run), tmp_path / "rows.arrow"], stdout=subprocess.PIPE, text=True)
    assert writer.stdout.readline() == "begun\n"
    time.sleep(2)
    writer.send_signal(signal.SIGINT)
    sent = time.monotonic()
    assert writer.stdout.readline() == "interrupted\n"
    assert time.monotonic() - sent < 5
    writer.wait(timeout=60)
    writer.stdout.close()
    assert os.listdir(tmp_path) == []


class FullDisk:
    """A file on a disk that has no room after some bytes."""

    def __init__(self, file, room):
        self._file, self._room = file, room

    def write(self, data):
        self._room -= len(data)
        if self._room < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self._file.write(data)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._file.close()

    def __getattr__(self, name):
        return getattr(self._file, name)


@pytest.mark.parametrize("room", [0, 100, 5000, 40_000])
def test_a_full_disk_is_named_and_leaves_the_target_as_it_was(tmp_path, monkeypatch, room):
    from widemargin.data.blocks import block_file

    make = block_file.Sink
    monkeypatch.setattr(block_file, "Sink", lambda file: make(FullDisk(file, room)))
    target = tmp_path / "rows.arrow"
    target.write_bytes(b"old")
    with pytest.raises(OSError, match="No space left") as error:
        write_blocks(target, [(np.random.default_rng(1).random((1000, 10)), np.ones(1000))], block_bytes=10_000)
    assert (error.value.errno, error.value.filename) == (errno.ENOSPC, str(target))
    assert os.listdir(tmp_path) == ["rows.arrow"]
    assert target.read_bytes() == b"old"


@pytest.mark.skipif(not hasattr(os, "fdatasync"), reason="files are sent to the disk at the end only")
@pytest.mark.parametrize("n_rows", [1000, 20_000], ids=["the last time", "before further blocks"])
def test_an_error_of_the_disk_while_a_file_is_written_is_raised(tmp_path, monkeypatch, n_rows):
    def fail(descriptor):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(sink, "_BYTES_SENT_AT_ONCE", 50_000)
    monkeypatch.setattr(os, "fdatasync", fail)
    target = tmp_path / "rows.arrow"
    target.write_bytes(b"old")
    with pytest.raises(OSError, match="Input/output error") as error:
        write_blocks(target, [(np.random.default_rng(1).random((n_rows, 10)), np.ones(n_rows))], block_bytes=10_000)
    assert (error.value.errno, error.value.filename) == (errno.EIO, str(target))
    assert os.listdir(tmp_path) == ["rows.arrow"]
    assert target.read_bytes() == b"old"


@pytest.mark.skipif(not hasattr(os, "fdatasync"), reason="files are sent to the disk at the end only")
def test_a_file_is_sent_to_the_disk_while_it_is_written(tmp_path, monkeypatch):
    sizes, send = [], os.fdatasync

    def note(descriptor):
        sizes.append(os.fstat(descriptor).st_size)
        send(descriptor)

    monkeypatch.setattr(sink, "_BYTES_SENT_AT_ONCE", 50_000)
    monkeypatch.setattr(os, "fdatasync", note)
    write_blocks(tmp_path / "rows.arrow", [(np.random.default_rng(1).random((20_000, 10)), np.ones(20_000))])
    assert 0 < sizes[0] < os.path.getsize(tmp_path / "rows.arrow")


def test_a_disk_that_is_full_of_temporary_files_is_named(tmp_path, monkeypatch):
    make = spool.tempfile.TemporaryFile
    monkeypatch.setattr(spool.tempfile, "TemporaryFile", lambda **options: FullDisk(make(**options), 500))
    with pytest.raises(OSError, match="No space left") as error:
        write_blocks(tmp_path / "rows.arrow", [(np.ones((1000, 10)), np.ones(1000))], max_memory=1000)
    assert error.value.filename == str(tmp_path / "rows.arrow")
    assert os.listdir(tmp_path) == []


def test_the_limit_of_the_size_of_files_is_an_error_like_a_full_disk(tmp_path):
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10**6, 10**6))

    run = """
        try:
            write_blocks(sys.argv[1], blocks(2))
        except OSError as error:
            print(error.filename)
    """
    words = [*script(run), tmp_path / "rows.arrow"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, preexec_fn=limit)
    assert done.stdout == f"{tmp_path / 'rows.arrow'}\n"
    assert os.listdir(tmp_path) == []


def test_a_source_that_fails_leaves_nothing(tmp_path):
    def blocks():
        yield np.ones((3, 2)), np.ones(3)
        raise RuntimeError("the database went away")

    with pytest.raises(RuntimeError, match="the database went away"):
        write_blocks(tmp_path / "rows.arrow", blocks(), max_memory=10)
    assert os.listdir(tmp_path) == []


def test_a_folder_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(FileNotFoundError) as error:
        write_blocks(tmp_path / "absent" / "rows.arrow", [(np.ones((3, 2)), np.ones(3))])
    assert "absent" in error.value.filename


def test_without_the_extra_there_is_a_message_with_the_way_out_and_the_package_is_imported(tmp_path):
    run = """
        import importlib.util, sys
        class Missing:
            def find_spec(self, name, path=None, target=None):
                if name.partition(".")[0] in ("pyarrow", "xxhash"):
                    raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        sys.meta_path.insert(0, Missing())
        from widemargin import *
        try:
            write_blocks(sys.argv[1], [])
        except ImportError as error:
            print(error)
    """
    words = [sys.executable, "-c", textwrap.dedent(run), str(tmp_path / "rows.arrow")]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout == (
        'row-block files need pyarrow and xxhash, which are not installed: pip install "widemargin[arrow]"\n'
    )


def test_importing_everything_does_not_import_the_extra():
    """pandas, which scikit-learn imports, imports pyarrow if it is there: xxhash and our own module tell."""
    run = "from widemargin import *\nimport sys\n"
    run += "assert not {'xxhash', 'widemargin.data.blocks.layout'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", run], check=True)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="this system does not list open files")
def test_no_file_stays_open(tmp_path):
    before = len(os.listdir("/proc/self/fd"))
    write_blocks(tmp_path / "rows.arrow", [(np.ones((100, 2)), np.ones(100))], max_memory=1000)
    assert len(os.listdir("/proc/self/fd")) == before
