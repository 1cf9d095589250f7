"""The demonstration: five machines in processes of their own, a table, a picture and a page."""

import json
import re
import sys
from pathlib import Path

import pytest

from widemargin import run_demo
from widemargin.cli.main import main
from widemargin.workflows.demo import contender, run
from widemargin.workflows.demo.cases import CASES
from widemargin.workflows.demo.page import demo_page
from widemargin.workflows.demo.picture import draw
from widemargin.workflows.demo.result import HEADINGS, Demo, DemoResult

SMALL = 0.004  # of the rows: 2,000 of the linear machine


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """A small demonstration, and the names of the fits as they started."""
    started = []
    folder = tmp_path_factory.mktemp("demo")
    return run_demo(folder / "new", size=SMALL, time_limit=120.0, on_start=started.append), started


def line(**changes):
    """A line of the table, with some fields changed."""
    known = {
        "machine": "SVC, rbf", "n_rows": 20_000, "n_features": 8, "measure": "accuracy", "score": 0.875, "gap": 2e-4,
        "seconds": 0.5, "peak_bytes": 300_000_000, "solver": "svmlight", "peer": "SVC", "peer_seconds": 4.0,
        "peer_score": 0.874, "history": [[0.0, 1.0], [0.2, 0.01], [0.5, 2e-4]],
    }  # fmt: skip
    return DemoResult(**known | changes)


def test_every_machine_is_certified_and_scores_as_scikit_learns(shown):
    results = shown[0].results
    assert [result.machine for result in results] == [case.machine for case in CASES.values()]
    for result in results:
        assert result.gap <= 1e-2
        assert result.seconds > 0.0
        assert result.history[-1][1] == pytest.approx(result.gap, rel=0.5, abs=1e-6)
        if result.peer:
            assert result.peer_seconds > 0.0
            assert result.score == pytest.approx(result.peer_score, abs=0.03)  # 20,000 rows held out
    assert [result.machine for result in results if not result.peer] == ["LinearSVC, from disk"]


def test_fits_are_announced_and_rows_are_removed_at_the_end(shown):
    demo, started = shown
    assert started[0] == "LinearSVC: 2,000 rows, 50 features"
    assert started[1] == "scikit-learn's LinearSVC, ended after 120 s"
    assert len(started) == 9
    folder = re.fullmatch(r"(.*)[/\\]index.html", demo.page)[1]
    assert sorted(path.name for path in Path(folder).iterdir()) == [
        "index.html",
        "widemargin-demo.png",
    ]


def test_the_picture_the_page_and_the_facts_are_those_of_the_table(shown):
    demo, _ = shown
    with open(demo.picture, "rb") as file:
        assert file.read(4) == b"\x89PNG"
    with open(demo.page, encoding="utf-8") as file:
        page = file.read()
    facts = json.loads(json.dumps(demo.to_dict()))
    for result in demo.results:
        assert f"{result.seconds:.2f}" in page
        assert f"{result.seconds:.2f}" in str(demo)
    assert facts["results"][0] == demo.results[0]._asdict()
    assert "╭" in demo.to_text(ruled=True)
    assert "╭" not in str(demo)


def test_a_fit_of_scikit_learn_is_ended_at_the_limit(tmp_path):
    assert contender.measure("kernel", contender.THEIRS, 1.0, tmp_path, 0.2) is None


def test_a_process_that_fails_is_reported_with_its_last_words(tmp_path):
    with pytest.raises(RuntimeError, match="ended with status 1: KeyError: 'no such case'"):
        contender.measure("no such case", contender.OURS, 1.0, tmp_path, 1.0)


@pytest.mark.parametrize(
    ("changes", "words"),
    [({}, "4.00  (8.0x)"), ({"peer_seconds": None, "peer_score": None}, "> 10  (> 20x)"), ({"peer": ""}, "–")],
)
def test_the_time_of_scikit_learn_is_a_number_a_bound_or_a_dash(changes, words):
    assert line(**changes).peer_time(10.0) == words


@pytest.mark.parametrize(
    ("seconds", "words"), [(12.0, "> 10  (> 0.8x)"), (1.01, "> 10  (> 9.9x)"), (0.9, "> 10  (> 11x)")]
)
def test_a_bound_of_a_ratio_is_rounded_down(seconds, words):
    assert line(seconds=seconds, peer_seconds=None).peer_time(10.0) == words


def test_names_are_escaped_on_the_page_and_bounds_are_told():
    ended = line(machine="<b>", peer_seconds=None, peer_score=None)
    page = demo_page((ended, line(machine="from disk", peer="")), 10.0, "a machine")
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    assert "&gt; 10" in page


def test_a_page_without_scikit_learn_has_the_certificates_alone():
    page = demo_page((line(peer=""),), 0.0, "a machine")
    assert "Certificates" in page
    assert "Times longer" not in page


def test_the_picture_has_fits_that_ended_and_fits_that_were_ended(tmp_path):
    draw((line(), line(peer_seconds=None), line(peer="")), 10.0, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 10_000


def test_the_command_prints_a_table_without_matplotlib(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.delitem(sys.modules, "widemargin.plots.figure", raising=False)  # imported by a test before
    found = {"score": 0.9, "gap": 1e-5, "seconds": 1.0, "peak_bytes": None, "solver": "newton", "history": [[0.1, 0.1]]}
    monkeypatch.setattr(contender, "measure", lambda *arguments: found)
    assert main(["demo", "-q"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert re.split(r"\s{2,}", out.splitlines()[0].strip()) == list(HEADINGS)
    assert 'picture skipped. Pictures need matplotlib: pip install "widemargin[plot]"' in out
    assert main(["demo", "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["results"][0]["seconds"] == 1.0
    assert "LinearSVC: 500,000 rows, 50 features ..." in err


@pytest.mark.parametrize(
    ("words", "message"),
    [(["--size", "0"], "--size must be above 0 and at most 1, got 0"), (["--limit", "-1"], "--limit must not be neg")],
)
def test_wrong_numbers_are_usage_errors(words, message, capsys):
    assert main(["demo", *words]) == 2
    assert message in capsys.readouterr().err


def test_wrong_numbers_and_folders_are_refused_in_python(tmp_path):
    with pytest.raises(ValueError, match="size must be above 0 and at most 1, got 2"):
        run_demo(tmp_path, size=2)
    with pytest.raises(ValueError, match="time_limit must not be negative, got -1"):
        run_demo(tmp_path, time_limit=-1)
    (tmp_path / "file").write_text("")
    with pytest.raises(FileExistsError, match="file"):
        run_demo(tmp_path / "file")


def test_the_result_of_a_demo_has_no_scikit_learn_if_it_is_left_out():
    demo = Demo((line(peer=""),), 0.0, "a machine", "index.html", None, "picture skipped.")
    assert "scikit-learn's fits" not in str(demo)


def test_without_pyarrow_the_machine_on_a_file_is_left_out_and_named(monkeypatch, tmp_path):
    found = {"score": 0.9, "gap": 1e-5, "seconds": 1.0, "peak_bytes": None, "solver": "newton", "history": [[0.1, 0.1]]}
    monkeypatch.setattr(contender, "measure", lambda *arguments: found)
    monkeypatch.setattr(run, "find_spec", lambda name: None)
    demo = run_demo(tmp_path, time_limit=0)
    assert len(demo.results) == 4
    assert 'left out: pip install "widemargin[arrow]"' in str(demo)
