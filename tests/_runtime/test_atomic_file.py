"""Files are replaced whole or not at all, and what a killed writer leaves behind is removed by the next."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from widemargin._runtime import atomic_file
from widemargin._runtime.atomic_file import SUFFIX, replacing

WRITER = """
import sys, time
sys.path.insert(0, sys.argv[2])  # the module alone, as importing the package takes seconds
from atomic_file import replacing
with replacing(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    print("open", flush=True)
    time.sleep(60)
"""


def leftovers(folder):
    return sorted(name for name in os.listdir(os.fsencode(folder)) if name.endswith(SUFFIX.encode()))


def start_writer(path):
    """Return a process that has written half of a file."""
    words = [sys.executable, "-c", WRITER, os.fsencode(path), os.path.dirname(atomic_file.__file__)]
    writer = subprocess.Popen(words, stdout=subprocess.PIPE)
    assert writer.stdout.readline() == b"open\n"
    return writer


def end(writer):
    writer.kill()
    writer.wait(timeout=60)
    writer.stdout.close()


def write(path, content):
    with replacing(path) as file:
        file.write(content)


@pytest.mark.parametrize("name", ["model", "naïve model", "x" * 250, "\udcff\udcfe.model"])
def test_what_a_killed_writer_leaves_is_recognised_and_removed_by_the_next_writer_of_the_file(tmp_path, name):
    target = tmp_path / name
    target.write_bytes(b"old")
    writer = start_writer(target)
    writer_id = writer.pid
    end(writer)
    (left,) = leftovers(tmp_path)
    assert left.startswith(b"." + os.fsencode(name)[:200])
    assert b".%d-" % writer_id in left
    assert target.read_bytes() == b"old"
    write(tmp_path / "another", b"new")
    assert leftovers(tmp_path) == [left]  # that of another file
    write(target, b"new")
    assert leftovers(tmp_path) == []
    assert target.read_bytes() == b"new"


def test_the_file_of_a_living_writer_stays(tmp_path):
    target = tmp_path / "model"
    writer = start_writer(target)
    try:
        (left,) = leftovers(tmp_path)
        write(target, b"new")
        assert leftovers(tmp_path) == [left]
    finally:
        end(writer)
    assert target.read_bytes() == b"new"


def test_a_process_that_fails_or_is_interrupted_leaves_nothing(tmp_path):
    target = tmp_path / "model"
    with pytest.raises(TypeError, match="bytes-like"):
        write(target, "text")
    writer = start_writer(target)
    writer.send_signal(signal.SIGINT)
    writer.wait(timeout=60)
    writer.stdout.close()
    assert os.listdir(tmp_path) == []


def test_files_that_only_look_similar_stay(tmp_path):
    names = [f".model{SUFFIX}", f".model.12{SUFFIX}", f".model.x-0123456789ab{SUFFIX}", f"model.1-0123456789ab{SUFFIX}"]
    names += [f".model2.1-0123456789ab{SUFFIX}", ".model.1-0123456789ab.part"]
    for name in names:
        (tmp_path / name).write_bytes(b"mine")
    (tmp_path / f".model.1-0123456789ab{SUFFIX}").symlink_to(tmp_path / names[0])
    write(tmp_path / "model", b"new")
    assert sorted(os.listdir(tmp_path)) == sorted([*names, f".model.1-0123456789ab{SUFFIX}", "model"])


def test_threads_that_write_the_same_file_do_not_remove_each_other_s(tmp_path):
    target, failures = tmp_path / "model", []

    def write_often(content):
        try:
            for _ in range(30):
                write(target, content)
        except OSError as error:
            failures.append(error)

    threads = [threading.Thread(target=write_often, args=(bytes([k]) * 1000,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert os.listdir(tmp_path) == ["model"]
    assert len(set(target.read_bytes())) == 1


def test_a_file_that_was_removed_before_it_was_locked_is_made_anew(tmp_path, monkeypatch):
    lock, removed = atomic_file._lock, []

    def remove_the_first(descriptor):
        if not removed:
            removed.extend(leftovers(tmp_path))
            os.unlink(tmp_path / os.fsdecode(removed[0]))
        return lock(descriptor)

    monkeypatch.setattr(atomic_file, "_lock", remove_the_first)
    write(tmp_path / "model", b"new")
    assert len(removed) == 1
    assert os.listdir(tmp_path) == ["model"]


@pytest.mark.parametrize("missing", ["fcntl", "locks"])
def test_where_files_cannot_be_locked_they_are_written_all_the_same(tmp_path, monkeypatch, missing):
    if missing == "fcntl":
        monkeypatch.setattr(atomic_file, "fcntl", None)
    else:
        monkeypatch.setattr(atomic_file, "_lock", lambda descriptor: None)
    write(tmp_path / "model", b"new")
    assert os.listdir(tmp_path) == ["model"]


def test_an_error_names_the_file_that_was_asked_for_and_not_the_temporary_one(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        write(tmp_path / "missing" / "model", b"new")
    assert caught.value.filename == str(tmp_path / "missing" / "model")
