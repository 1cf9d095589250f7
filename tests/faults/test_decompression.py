"""Compressed text that expands beyond belief is refused before it takes the memory, in every compression."""

import bz2
import gzip
import io
import lzma
import os
import subprocess
import sys

import pytest

from widemargin import SvmlightBlocks, read_svmlight
from widemargin.data.svmlight.compression import zstd
from widemargin.errors import FormatError

COMPRESS = {"gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress, "zstandard": zstd.compress}
LIMIT = "WIDEMARGIN_MAX_DECOMPRESSED"
_LINES = b"1 1:1 2:1\n" * 500_000  # 5 MB
_ONE_LINE = b"1" + b" " * (40 << 20) + b"1:1\n"


@pytest.fixture(params=COMPRESS)
def compression(request):
    return request.param


def test_text_that_expands_beyond_the_limit_is_refused_with_a_way_out(compression, monkeypatch):
    packed = COMPRESS[compression](_LINES)
    monkeypatch.setenv(LIMIT, "1000000")
    rule = f"{compression} data: .* compressed bytes expand to .*decompress it first, or set .* variable {LIMIT}"
    with pytest.raises(FormatError, match=rule):
        read_svmlight(io.BytesIO(packed))
    monkeypatch.setenv(LIMIT, str(len(_LINES)))
    assert read_svmlight(io.BytesIO(packed))[0].shape == (500_000, 2)
    monkeypatch.delenv(LIMIT)
    assert read_svmlight(io.BytesIO(packed))[0].shape == (500_000, 2)


def test_text_of_a_usual_ratio_may_be_of_any_size(compression, monkeypatch, rng):
    monkeypatch.setenv(LIMIT, "1000")
    rows = "".join(f"1 1:{value!r}\n" for value in rng.standard_normal(2000).tolist()).encode()
    assert read_svmlight(io.BytesIO(COMPRESS[compression](rows)))[0].shape == (2000, 1)


def test_blocks_may_be_many_but_no_line_beyond_belief(compression, monkeypatch):
    monkeypatch.setenv(LIMIT, "1000000")
    blocks = SvmlightBlocks(io.BytesIO(COMPRESS[compression](_LINES)), block_bytes=100_000)
    assert sum(len(y) for _, y, _ in blocks) == 500_000
    with pytest.raises(FormatError, match=f"{compression} data: .* compressed bytes expand to"):
        list(SvmlightBlocks(io.BytesIO(COMPRESS[compression](_ONE_LINE)), block_bytes=100_000))


def test_a_limit_that_is_no_number_is_refused(monkeypatch):
    monkeypatch.setenv(LIMIT, "10 GB")
    with pytest.raises(FormatError, match=f"{LIMIT} must be a number of bytes, got '10 GB'"):
        read_svmlight(io.BytesIO(gzip.compress(b"1 1:1\n" * 1000)))


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="peaks of memory are read from /proc")
def test_a_bomb_stops_at_the_stated_limit(tmp_path):
    with zstd.open(tmp_path / "bomb.zst", "wb", level=1) as file:
        for _ in range(600):
            file.write(b"1 " + b" " * (1 << 20))
    script = """
from widemargin.cli.main import main
status = main(["train", "-q", "bomb.zst", "model"])
with open("/proc/self/status") as file:
    print(status, next(int(line.split()[1]) // 1024 for line in file if line.startswith("VmHWM")))
"""
    run = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert "zstandard data" in run.stderr, run.stderr
    status, megabytes = map(int, run.stdout.split())
    assert status == 1
    assert megabytes < 600
    assert not (tmp_path / "model").exists()
