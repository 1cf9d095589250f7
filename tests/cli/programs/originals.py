"""Recorded output of the original programs, and the data sets they ran on; tests that need them skip where absent."""

import lzma
import os
import re
from pathlib import Path

import pytest

_BESIDE = Path(__file__).parents[4] / "shared"
FOLDER = Path(os.environ.get("WIDEMARGIN_ORIGINALS", _BESIDE / "originals"))
DATA = Path(os.environ.get("WIDEMARGIN_DATA", _BESIDE / "data"))


def recorded(name):
    """Return the text of a recorded file, or skip the test."""
    path = FOLDER / name
    if not path.exists():
        pytest.skip(f"{name}: recorded output of the original program is not there (set WIDEMARGIN_ORIGINALS)")
    return path.read_text()


def data_file(name, folder):
    """Return the path of a plain copy of a shared data set, or skip the test."""
    source = DATA / f"{name}.svm.xz"
    if not source.exists():
        pytest.skip(f"{name}: shared data set is not there (set WIDEMARGIN_DATA)")
    path = Path(folder) / name
    path.write_bytes(lzma.decompress(source.read_bytes()))
    return path


def figures(text):
    """Return the numbers of lines such as `Dual objective value: dval=92.47337` by what precedes them."""
    found = {}
    for line in text.splitlines():
        match = re.match(r"(.*?)(?:[:=]|<=|=>)\s*([a-zA-Z|]*(?:=>|<=|=))?\s*(-?[0-9][0-9.]*)%?", line)
        if match:
            found[match[1].strip(" :=")] = float(match[3])
    return found
