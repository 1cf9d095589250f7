"""Running a program and its original on the same files, and the sections that compare them."""

import contextlib
import io
import lzma
import os
import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.datasets import FOLDER
from widemargin.cli.main import main

ORIGINALS = Path(os.environ.get("WIDEMARGIN_ORIGINALS", FOLDER.parent / "originals"))


@dataclass(frozen=True)
class Case:
    """A run: a shared set, options, and where they are needed a test set and the stem of recorded files."""

    data: str
    options: str = ""
    test: str = ""
    stem: str = ""
    expected: tuple = ()  # pairs of a figure and its value, where that is all that is recorded

    @property
    def name(self):
        """The set, and the test set if there is one."""
        return f"{self.data}, {self.test}" if self.test else self.data


@dataclass(frozen=True)
class Figure:
    """A column of a table: the largest difference that is agreement, and how its numbers are shown."""

    absolute: float = 0.0
    relative: float = 0.0
    shown: str = ".6g"

    def agrees(self, theirs, ours):
        """Return whether two numbers agree."""
        return abs(theirs - ours) <= self.absolute + self.relative * abs(theirs)


@dataclass(frozen=True)
class Section:
    """The comparison of a program: `theirs` and `ours` are functions of a Case and a folder that return figures."""

    program: str
    words: str
    figures: Mapping[str, Figure]
    cases: tuple[Case, ...]
    theirs: Callable
    ours: Callable


def data_file(name, folder):
    """Return the name of a plain copy of a shared set in a folder, made unless it is there."""
    path = Path(folder) / name
    if not path.exists():
        path.write_bytes(lzma.decompress((FOLDER / f"{name}.svm.xz").read_bytes()))
    return name


def original(program, words, folder, status=0):
    """Return what an original program prints; RuntimeError if its exit status is not the one of success."""
    done = subprocess.run([program, *words], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != status:
        raise RuntimeError(f"{program} {' '.join(words)}: exit status {done.returncode}: {done.stderr}")
    return done.stdout


def here(program, words, folder, status=0):
    """Return what `widemargin as` a program prints, in this process; RuntimeError if it fails, as for `original`."""
    printed = io.BytesIO()
    with (
        contextlib.chdir(folder),
        io.TextIOWrapper(printed, encoding="utf-8", write_through=True) as stream,
        contextlib.redirect_stdout(stream),
    ):
        found, text = main(["as", program, *words]), printed.getvalue().decode()
    if found != status:
        raise RuntimeError(f"widemargin as {program} {' '.join(words)}: exit status {found}")
    return text


def recorded(name):
    """Return the text of a recorded file."""
    return (ORIGINALS / name).read_text()


def found(text, patterns):
    """Return the last number that each pattern finds, by name; a pattern may find none."""
    numbers = {name: re.findall(pattern, text, flags=re.MULTILINE) for name, pattern in patterns.items()}
    return {name: float(all_of_it[-1]) for name, all_of_it in numbers.items() if all_of_it}
