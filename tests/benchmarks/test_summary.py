"""The tables of README.md and of the documentation are those that are made from the pages."""

import pytest
from benchmarks.summary import (
    EXCERPTS,
    HEADLINES,
    TARGETS,
    excerpt,
    first_headlines,
    headline_row,
    made,
    path_of_results,
    states_of_pages,
)

PAGE = """# A page

<!-- grid -->
| set | rows | classes | grid_search | GridSearchCV | GridSearchCV / grid_search |
|---|--:|--:|--:|--:|--:|
| a | 10 | 2 | 2 ±1% | 8 ±2% | 4.00 |
| b | 20 | 2 | 3 | 1.5 | 0.50 |
| c | 30 | 2 | 1 | >30 | >30 |
<!-- /grid -->
"""


@pytest.fixture
def results(tmp_path):
    (tmp_path / "grid.md").write_text(PAGE)
    return tmp_path


@pytest.mark.parametrize("target", TARGETS, ids=lambda path: path.name)
def test_the_numbers_of_a_text_are_those_of_the_pages(target):
    text = target.read_text(encoding="utf-8")
    assert "<!-- made: " in text
    assert made(text, path_of_results=path_of_results(target)) == text, "run `python -m benchmarks summary`"


def test_a_headline_is_made_from_the_column_of_its_page(results):
    headline = next(one for one in HEADLINES if one.page == "grid")
    assert headline_row(headline, results)[1:5] == ["4.0", "0.50", ">30", "2 of 3"]


def test_the_first_headlines_have_words_of_their_own(results):
    lines = first_headlines(results).splitlines()
    assert lines[2].startswith("| `grid_search`: scikit-learn's GridSearchCV | 4.0 |")


def test_an_excerpt_has_the_cells_of_its_page(results):
    lines = excerpt("grid", results).splitlines()
    assert lines[2] == "| a | 10 | 2 | 2 ±1% | 8 ±2% | 4.00 |"
    assert lines[5:] == ["", "From [grid](benchmarks/results/grid.md#a-page)."]


def test_only_what_is_between_markers_changes(results):
    text = "before\n<!-- made: grid -->\nold\n<!-- /made: grid -->\nafter"
    new = made(text, results)
    assert new.startswith("before\n<!-- made: grid -->\n| set |")
    assert new.endswith("<!-- /made: grid -->\nafter")
    assert "old" not in new
    assert made(new, results) == new


def test_a_page_that_is_not_there_is_said_to_be_not_made(tmp_path):
    assert excerpt("small", tmp_path) == "This page has not been made yet."


def test_every_marker_of_a_text_has_an_excerpt():
    names = {"headlines", "first headlines", *EXCERPTS}
    for target in TARGETS:
        found = [part.partition(" -->")[0] for part in target.read_text(encoding="utf-8").split("<!-- made: ")[1:]]
        assert set(found) <= names


def test_the_way_from_a_text_to_the_pages_leads_there():
    for target in TARGETS:
        assert (target.parent / path_of_results(target) / "linear.md").exists()


@pytest.mark.parametrize(
    ("packages", "told"),
    [
        (("aa", "aa"), "All pages are of one state of the package, that of commit 1."),
        (("aa", "bb"), "Commits. first: 1; second: 2."),
    ],
)
def test_pages_of_one_state_of_the_package_are_told(tmp_path, packages, told):
    for name, commit, package in zip(("first", "second"), (1, 2), packages, strict=True):
        (tmp_path / f"{name}.md").write_text(f"**This run.** Commit {commit}; package {package}, with more.")
    assert states_of_pages(["first", "second"], tmp_path) == told


def test_pages_without_a_state_are_told_by_their_commits(tmp_path):
    (tmp_path / "old.md").write_text("**This run.** Commit 1; sources 2.")
    (tmp_path / "older.md").write_text("Nothing is told.")
    assert states_of_pages(["old", "older"], tmp_path) == "Commits. old: 1; older: not recorded."
