"""docs/from/programs.md: every pair of lines agrees, every program is there, and our first lines come out again."""

from pathlib import Path

import pytest
from benchmarks.datasets import FOLDER
from benchmarks.programs.page import SECTIONS, pairs_on_page
from benchmarks.programs.running import ORIGINALS

from widemargin.cli.programs.registry import MODULES

EACH_SECTION = pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.program)


def test_every_program_is_on_the_page():
    assert {section.program for section in SECTIONS} == set(MODULES)


@EACH_SECTION
def test_the_runs_of_the_page_are_those_of_its_section(section):
    assert [run for run, *_ in pairs_on_page(section)] == [(case.name, case.options) for case in section.cases]


@EACH_SECTION
def test_figures_of_the_original_and_ours_agree(section):
    for run, theirs, ours in pairs_on_page(section):
        assert ours
        assert theirs.keys() == ours.keys(), run
        for name, value in ours.items():
            assert section.figures[name].agrees(theirs[name], value), (run, name, theirs[name], value)


@EACH_SECTION
def test_the_first_run_gives_the_figures_of_the_page_again(section, tmp_path):
    case = section.cases[0]
    if not (FOLDER / f"{case.data}.svm.xz").exists() or (case.stem and not ORIGINALS.exists()):
        pytest.skip(f"{case.data}: shared data set or recorded output is not there (set WIDEMARGIN_DATA)")
    try:
        found = section.ours(case, Path(tmp_path))
    except FileNotFoundError as error:
        pytest.skip(f"{error.filename} is not installed (Debian: libsvm-tools, liblinear-tools, libocas-tools)")
    _, theirs, ours = pairs_on_page(section)[0]
    for name, value in ours.items():
        assert section.figures[name].agrees(value, found[name]), (name, value, found[name])
        assert section.figures[name].agrees(theirs[name], found[name]), (name, theirs[name], found[name])


def test_figures_that_differ_do_not_agree():
    figure = SECTIONS[0].figures["objective"]
    assert figure.agrees(-100.877288, -100.8773)
    assert not figure.agrees(-100.877288, -100.9)
